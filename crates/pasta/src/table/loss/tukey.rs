//! Tukey's biweight: c^2/6 (1 - (1 - (r/c)^2)^3) up to |r| = c, then c^2/6, r = z - y.

use super::{Bounds, Class, Labels, LossRow, Parameter, Range, Scalar};

pub(super) const ROW: LossRow = LossRow {
    name: "tukey",
    formula: "c^2/6 (1 - (1 - (r/c)^2)^3) for |r| <= c, else c^2/6, r = z - y, c = scale",
    class: Class::SmoothNonConvex,
    labels: Labels::Real,
    parameter: Some(Parameter { name: "scale", default: 4.685, range: Range::Positive }),
};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Tukey {
    pub(crate) scale: f64,
}

impl Scalar for Tukey {
    #[inline]
    fn value(self, z: f64, y: f64) -> f64 {
        let u = (z - y) / self.scale;
        let u = (u * u).min(1.0);
        // 1 - (1 - u)^3 without the cancellation.
        self.scale * self.scale / 6.0 * u * (3.0 - u * (3.0 - u))
    }

    #[inline]
    fn slope(self, z: f64, y: f64) -> f64 {
        let u = (z - y) / self.scale;
        let rest = (1.0 - u * u).max(0.0);
        (z - y) * rest * rest
    }

    /// With u = (r/c)^2 the second derivative is (1 - u)(1 - 5u): 1 at u = 0, least at u = 3/5, where it is -4/5. The slope is
    /// largest at u = 1/5, where it is 16 c/(25 sqrt 5) = 0.28621... c, rounded up.
    fn bounds(self) -> Bounds {
        Bounds { curvature: Some(1.0), concavity: Some(0.8), slope: Some(0.286_217 * self.scale) }
    }
}
