//! 1/(1 + e^m), m = s z the margin: a smooth count of errors.

use super::logistic::sigmoid_of_minus;
use super::{Bounds, Class, Labels, LossRow, Scalar, sign};

pub(super) const ROW: LossRow = LossRow {
    name: "sigmoid",
    formula: "1/(1 + exp(s z)), s = -1 or 1",
    class: Class::SmoothNonConvex,
    labels: Labels::Signs,
    parameter: None,
};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Sigmoid;

impl Scalar for Sigmoid {
    #[inline]
    fn value(self, z: f64, y: f64) -> f64 {
        sigmoid_of_minus(sign(y) * z)
    }

    #[inline]
    fn slope(self, z: f64, y: f64) -> f64 {
        let s = sign(y);
        // p (1 - p) by the tail that is small.
        let p = sigmoid_of_minus((s * z).abs());
        -s * p * (1.0 - p)
    }

    /// |p (1 - p)| <= 1/4, and the derivative p (1 - p)(1 - 2p) of it is at most 1/(6 sqrt 3) = 0.096225..., rounded up.
    fn bounds(self) -> Bounds {
        Bounds { curvature: Some(0.096_226), concavity: Some(0.096_226), slope: Some(0.25) }
    }
}
