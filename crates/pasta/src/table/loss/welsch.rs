//! c^2/2 (1 - exp(-(r/c)^2)), r = z - y: bounded.

use super::{Bounds, Class, Labels, LossRow, Parameter, Range, Scalar};

pub(super) const ROW: LossRow = LossRow {
    name: "welsch",
    formula: "c^2/2 (1 - exp(-(r/c)^2)), r = z - y, c = scale",
    class: Class::SmoothNonConvex,
    labels: Labels::Real,
    parameter: Some(Parameter { name: "scale", default: 2.985, range: Range::Positive }),
};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Welsch {
    pub(crate) scale: f64,
}

impl Scalar for Welsch {
    #[inline]
    fn value(self, z: f64, y: f64) -> f64 {
        let u = (z - y) / self.scale;
        -0.5 * self.scale * self.scale * libm::expm1(-u * u)
    }

    #[inline]
    fn slope(self, z: f64, y: f64) -> f64 {
        let u = (z - y) / self.scale;
        (z - y) * libm::exp(-u * u)
    }

    /// With u = (r/c)^2 the second derivative is (1 - 2u) e^-u: 1 at u = 0, least at u = 3/2, where it is -2 e^-3/2 =
    /// -0.44626... The slope is largest at u = 1/2, where it is c/sqrt(2 e) = 0.42888... c. Both are rounded up.
    fn bounds(self) -> Bounds {
        Bounds { curvature: Some(1.0), concavity: Some(0.446_261), slope: Some(0.428_882 * self.scale) }
    }
}
