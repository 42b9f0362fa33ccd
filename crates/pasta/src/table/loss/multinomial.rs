//! ln sum_k e^z_k - z_y: multinomial logistic regression, one score for each class.

use multiversion::multiversion;

use super::{Bounds, Class, Labels, LossRow};
use crate::kernels::elementary::exp;

pub(super) const ROW: LossRow = LossRow {
    name: "multinomial",
    formula: "ln(sum_k exp(z_k)) - z_y, one score for each class y = 0, 1, ..",
    class: Class::SmoothConvex,
    labels: Labels::Classes,
    parameter: None,
};

/// The Hessian in z is diag(p) - p p', whose largest eigenvalue is at most 1/2 (Böhning 1992). The gradient p - e_y has norm at
/// most sqrt 2.
pub(super) const BOUNDS: Bounds =
    Bounds { curvature: Some(0.5), concavity: Some(0.0), slope: Some(std::f64::consts::SQRT_2) };

/// ln sum_k e^z_k - z_y. Writes p - e_y over the scores.
#[multiversion(targets("x86_64+avx2"))]
pub(crate) fn differentiate(scores: &mut [f64], class: usize) -> f64 {
    let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let own = scores[class];
    scores.iter_mut().for_each(|z| *z = exp(*z - most));
    let sum: f64 = scores.iter().sum();
    scores.iter_mut().for_each(|p| *p /= sum);
    scores[class] -= 1.0;
    libm::log(sum) + (most - own)
}

/// The probabilities of the classes, over the scores.
pub(super) fn probabilities(scores: &mut [f64]) {
    differentiate(scores, 0);
    scores[0] += 1.0;
}
