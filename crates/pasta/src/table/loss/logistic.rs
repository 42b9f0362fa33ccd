//! ln(1 + e^-m), m = s z the margin, s the sign of the label.

use super::{Bounds, Class, Labels, LossRow, Scalar, sign};
use crate::kernels::elementary::{exp, ln_1p};

pub(super) const ROW: LossRow = LossRow {
    name: "logistic",
    formula: "ln(1 + exp(-s z)), s = -1 or 1",
    class: Class::SmoothConvex,
    labels: Labels::Signs,
    parameter: None,
};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Logistic;

/// ln(1 + e^-m), without overflow and without loss of digits for large m, from e^-|m|.
#[inline]
fn softplus_of_minus(m: f64, e: f64) -> f64 {
    (-m).max(0.0) + ln_1p(e)
}

/// 1/(1 + e^m) from e^-|m|.
#[inline]
fn sigmoid_from(m: f64, e: f64) -> f64 {
    (if m >= 0.0 { e } else { 1.0 }) / (1.0 + e)
}

/// 1/(1 + e^m).
#[inline]
pub(super) fn sigmoid_of_minus(m: f64) -> f64 {
    sigmoid_from(m, exp(-m.abs()))
}

impl Scalar for Logistic {
    #[inline]
    fn value(self, z: f64, y: f64) -> f64 {
        let m = sign(y) * z;
        softplus_of_minus(m, exp(-m.abs()))
    }

    #[inline]
    fn slope(self, z: f64, y: f64) -> f64 {
        let s = sign(y);
        -s * sigmoid_of_minus(s * z)
    }

    #[inline]
    fn both(self, z: f64, y: f64) -> (f64, f64) {
        let s = sign(y);
        let m = s * z;
        let e = exp(-m.abs());
        (softplus_of_minus(m, e), -s * sigmoid_from(m, e))
    }

    #[inline]
    fn curvature(self, z: f64, _y: f64) -> f64 {
        let e = exp(-z.abs());
        e / ((1.0 + e) * (1.0 + e))
    }

    /// q ln q + (1 - q) ln(1 - q), q = -s p from 0 to 1.
    fn conjugate(self, p: f64, y: f64) -> f64 {
        let q = (-sign(y) * p).clamp(0.0, 1.0);
        let part = |q: f64| if q > 0.0 { q * libm::log(q) } else { 0.0 };
        part(q) + part(1.0 - q)
    }

    /// The slope is in (-1, 1); the second derivative is p (1 - p) for p = 1/(1 + e^m), at most 1/4.
    fn bounds(self) -> Bounds {
        Bounds { curvature: Some(0.25), concavity: Some(0.0), slope: Some(1.0) }
    }
}
