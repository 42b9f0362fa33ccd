//! (z - y)^2/2.

use super::{Bounds, Class, Labels, LossRow, Scalar};
use crate::kernels::double::Double;

pub(super) const ROW: LossRow = LossRow {
    name: "least-squares",
    formula: "(z - y)^2/2",
    class: Class::SmoothConvex,
    labels: Labels::Real,
    parameter: None,
};

#[derive(Debug, Clone, Copy)]
pub(crate) struct LeastSquares;

impl Scalar for LeastSquares {
    #[inline]
    fn value(self, z: f64, y: f64) -> f64 {
        0.5 * (z - y) * (z - y)
    }

    #[inline]
    fn slope(self, z: f64, y: f64) -> f64 {
        z - y
    }

    #[inline]
    fn precise_slope(self, z: Double, y: f64) -> Double {
        z - Double::from(y)
    }

    #[inline]
    fn curvature(self, _z: f64, _y: f64) -> f64 {
        1.0
    }

    fn conjugate(self, p: f64, y: f64) -> f64 {
        p * (0.5 * p + y)
    }

    /// The second derivative is 1.
    fn bounds(self) -> Bounds {
        Bounds { curvature: Some(1.0), concavity: Some(0.0), slope: None }
    }
}
