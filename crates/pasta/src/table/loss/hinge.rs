//! max(0, 1 - m), m = s z the margin.

use super::{Bounds, Class, Labels, LossRow, Scalar, sign};

pub(super) const ROW: LossRow = LossRow {
    name: "hinge",
    formula: "max(0, 1 - s z), s = -1 or 1",
    class: Class::LipschitzConvex,
    labels: Labels::Signs,
    parameter: None,
};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Hinge;

impl Scalar for Hinge {
    #[inline]
    fn value(self, z: f64, y: f64) -> f64 {
        (1.0 - sign(y) * z).max(0.0)
    }

    #[inline]
    fn slope(self, z: f64, y: f64) -> f64 {
        let s = sign(y);
        if s * z < 1.0 { -s } else { 0.0 }
    }

    fn bounds(self) -> Bounds {
        Bounds { curvature: None, concavity: Some(0.0), slope: Some(1.0) }
    }
}
