//! ln(1 + e^-m), m = s z the margin, s the sign of the label.

use super::{Bounds, Class, Labels, LossRow, Scalar, sign};

pub(super) const ROW: LossRow = LossRow {
    name: "logistic",
    formula: "ln(1 + exp(-s z)), s = -1 or 1",
    class: Class::SmoothConvex,
    labels: Labels::Signs,
    parameter: None,
};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Logistic;

/// ln(1 + e^-m), without overflow and without loss of digits for large m.
#[inline]
pub(super) fn softplus_of_minus(m: f64) -> f64 {
    (-m).max(0.0) + libm::log1p(libm::exp(-m.abs()))
}

/// 1/(1 + e^m).
#[inline]
pub(super) fn sigmoid_of_minus(m: f64) -> f64 {
    let e = libm::exp(-m.abs());
    if m >= 0.0 { e / (1.0 + e) } else { 1.0 / (1.0 + e) }
}

impl Scalar for Logistic {
    #[inline]
    fn value(self, z: f64, y: f64) -> f64 {
        softplus_of_minus(sign(y) * z)
    }

    #[inline]
    fn slope(self, z: f64, y: f64) -> f64 {
        let s = sign(y);
        -s * sigmoid_of_minus(s * z)
    }

    /// The slope is in (-1, 1); the second derivative is p (1 - p) for p = 1/(1 + e^m), at most 1/4.
    fn bounds(self) -> Bounds {
        Bounds { curvature: Some(0.25), concavity: Some(0.0), slope: Some(1.0) }
    }
}
