//! e^z - y z: the negative log-likelihood of a count y of mean e^z, up to a constant.

use super::{Bounds, Class, Labels, LossRow, Scalar};
use crate::kernels::elementary::exp;

pub(super) const ROW: LossRow = LossRow {
    name: "poisson",
    formula: "exp(z) - y z",
    class: Class::LocallySmoothConvex,
    labels: Labels::Counts,
    parameter: None,
};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Poisson;

impl Scalar for Poisson {
    #[inline]
    fn value(self, z: f64, y: f64) -> f64 {
        exp(z) - y * z
    }

    #[inline]
    fn slope(self, z: f64, y: f64) -> f64 {
        exp(z) - y
    }

    #[inline]
    fn curvature(self, z: f64, _y: f64) -> f64 {
        exp(z)
    }

    /// m ln m - m, m = p + y >= 0.
    fn conjugate(self, p: f64, y: f64) -> f64 {
        let m = (p + y).max(0.0);
        if m > 0.0 { m * libm::log(m) - m } else { 0.0 }
    }

    /// The second derivative is e^z, without a bound: not smooth on the whole space.
    fn bounds(self) -> Bounds {
        Bounds { curvature: None, concavity: Some(0.0), slope: None }
    }

    /// At z = ln y; 0 as z falls without end if y = 0.
    fn least(self, y: f64) -> f64 {
        if y > 0.0 { y - y * libm::log(y) } else { 0.0 }
    }
}
