//! c^2/2 ln(1 + (r/c)^2), r = z - y: gross errors count little.

use super::{Bounds, Class, Labels, LossRow, Parameter, Range, Scalar};

pub(super) const ROW: LossRow = LossRow {
    name: "cauchy",
    formula: "c^2/2 ln(1 + (r/c)^2), r = z - y, c = scale",
    class: Class::SmoothNonConvex,
    labels: Labels::Real,
    parameter: Some(Parameter { name: "scale", default: 2.385, range: Range::Positive }),
};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Cauchy {
    pub(crate) scale: f64,
}

impl Scalar for Cauchy {
    #[inline]
    fn value(self, z: f64, y: f64) -> f64 {
        let u = (z - y) / self.scale;
        0.5 * self.scale * self.scale * libm::log1p(u * u)
    }

    #[inline]
    fn slope(self, z: f64, y: f64) -> f64 {
        let u = (z - y) / self.scale;
        (z - y) / (1.0 + u * u)
    }

    /// With u = (r/c)^2 the second derivative is (1 - u)/(1 + u)^2: 1 at u = 0, least at u = 3, where it is -1/8. The slope is
    /// largest at r = c, where it is c/2.
    fn bounds(self) -> Bounds {
        Bounds { curvature: Some(1.0), concavity: Some(0.125), slope: Some(0.5 * self.scale) }
    }
}
