//! level (y - z) where z is below y, (1 - level) (z - y) above: minimised by the quantile of this level.

use super::{Bounds, Class, Labels, LossRow, Parameter, Range, Scalar};

pub(super) const ROW: LossRow = LossRow {
    name: "quantile",
    formula: "level (y - z) for z < y, (1 - level) (z - y) for z > y",
    class: Class::LipschitzConvex,
    labels: Labels::Real,
    parameter: Some(Parameter { name: "level", default: 0.5, range: Range::Level }),
};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Quantile {
    pub(crate) level: f64,
}

impl Scalar for Quantile {
    #[inline]
    fn value(self, z: f64, y: f64) -> f64 {
        if z < y { self.level * (y - z) } else { (1.0 - self.level) * (z - y) }
    }

    #[inline]
    fn slope(self, z: f64, y: f64) -> f64 {
        if z > y {
            1.0 - self.level
        } else if z < y {
            -self.level
        } else {
            0.0
        }
    }

    fn bounds(self) -> Bounds {
        let slope = self.level.max(1.0 - self.level);
        Bounds { curvature: None, concavity: Some(0.0), slope: Some(slope) }
    }
}
