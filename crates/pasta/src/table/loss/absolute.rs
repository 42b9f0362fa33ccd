//! |z - y|.

use super::{Bounds, Class, Labels, LossRow, Scalar};

pub(super) const ROW: LossRow = LossRow {
    name: "absolute",
    formula: "|z - y|",
    class: Class::LipschitzConvex,
    labels: Labels::Real,
    parameter: None,
};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Absolute;

impl Scalar for Absolute {
    #[inline]
    fn value(self, z: f64, y: f64) -> f64 {
        (z - y).abs()
    }

    #[inline]
    fn slope(self, z: f64, y: f64) -> f64 {
        if z > y {
            1.0
        } else if z < y {
            -1.0
        } else {
            0.0
        }
    }

    fn bounds(self) -> Bounds {
        Bounds { curvature: None, concavity: Some(0.0), slope: Some(1.0) }
    }
}
