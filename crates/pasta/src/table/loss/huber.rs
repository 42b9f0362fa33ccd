//! r^2/2 up to |r| = delta, then delta (|r| - delta/2), r = z - y.

use super::{Bounds, Class, Labels, LossRow, Parameter, Range, Scalar};

pub(super) const ROW: LossRow = LossRow {
    name: "huber",
    formula: "r^2/2 for |r| <= delta, else delta (|r| - delta/2), r = z - y",
    class: Class::SmoothConvex,
    labels: Labels::Real,
    parameter: Some(Parameter { name: "delta", default: 1.345, range: Range::Positive }),
};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Huber {
    pub(crate) delta: f64,
}

impl Scalar for Huber {
    #[inline]
    fn value(self, z: f64, y: f64) -> f64 {
        let r = (z - y).abs();
        if r <= self.delta { 0.5 * r * r } else { self.delta * (r - 0.5 * self.delta) }
    }

    #[inline]
    fn slope(self, z: f64, y: f64) -> f64 {
        (z - y).clamp(-self.delta, self.delta)
    }

    #[inline]
    fn curvature(self, z: f64, y: f64) -> f64 {
        f64::from(u8::from((z - y).abs() < self.delta))
    }

    /// The parabola with the value and slope of the loss at z that is even in r: it touches the loss again at -r, and is above it elsewhere.
    #[inline]
    fn majoriser(self, z: f64, y: f64) -> f64 {
        (self.delta / (z - y).abs()).min(1.0)
    }

    /// That of the square, for |p| <= delta.
    fn conjugate(self, p: f64, y: f64) -> f64 {
        p * (0.5 * p + y)
    }

    /// The slope is a projection on [-delta, delta].
    fn bounds(self) -> Bounds {
        Bounds { curvature: Some(1.0), concavity: Some(0.0), slope: Some(self.delta) }
    }
}
