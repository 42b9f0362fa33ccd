//! max(0, 1 - m)^2/2, m = s z the margin.

use super::{Bounds, Class, Labels, LossRow, Scalar, sign};

pub(super) const ROW: LossRow = LossRow {
    name: "squared-hinge",
    formula: "max(0, 1 - s z)^2/2, s = -1 or 1",
    class: Class::SmoothConvex,
    labels: Labels::Signs,
    parameter: None,
};

#[derive(Debug, Clone, Copy)]
pub(crate) struct SquaredHinge;

impl Scalar for SquaredHinge {
    #[inline]
    fn value(self, z: f64, y: f64) -> f64 {
        let short = (1.0 - sign(y) * z).max(0.0);
        0.5 * short * short
    }

    #[inline]
    fn slope(self, z: f64, y: f64) -> f64 {
        let s = sign(y);
        -s * (1.0 - s * z).max(0.0)
    }

    #[inline]
    fn curvature(self, z: f64, y: f64) -> f64 {
        f64::from(u8::from(sign(y) * z < 1.0))
    }

    /// q^2/2 - q, q = -s p >= 0.
    fn conjugate(self, p: f64, y: f64) -> f64 {
        let q = -sign(y) * p;
        q * (0.5 * q - 1.0)
    }

    /// The slope is a projection on a half line: its Lipschitz constant is 1.
    fn bounds(self) -> Bounds {
        Bounds { curvature: Some(1.0), concavity: Some(0.0), slope: None }
    }
}
