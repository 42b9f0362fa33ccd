use super::proximal::is_single_valued;
use crate::objective::{Facts, Objective};

/// f(x) = sum over i of lambda_i x_i^2/2, with curvatures lambda_i >= 0 that are not all zero.
///
/// The Hessian is diagonal with entries lambda_i, so
/// * convex; L is the largest lambda_i, attained along its axis;
/// * all lambda_i positive: strongly convex with mu the smallest of them, which gives star-convexity and PL
///   with the same mu (along its axis f'^2 = 2 mu f, so neither has a larger constant);
/// * some lambda_i zero: the minimisers are the subspace where the other coordinates vanish. Star-convexity
///   fails on it, and PL is not stated because the minimiser is not unique.
///
/// ```
/// use pasta_opt::objective::Objective;
/// use pasta_opt::problems::Quadratic;
///
/// let quadratic = Quadratic { spectrum: vec![4.0, 1.0] };
/// assert_eq!(quadratic.value(&[1.0, 2.0]), 4.0);
/// assert_eq!((quadratic.facts().smoothness, quadratic.facts().pl), (Some(4.0), Some(1.0)));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Quadratic {
    /// The curvatures lambda_i, one for each coordinate.
    pub spectrum: Vec<f64>,
}

/// Longer spectra enter the identity by a checksum.
const LONGEST_IN_FULL: usize = 8;

impl Objective for Quadratic {
    fn identity(&self) -> String {
        if self.spectrum.len() <= LONGEST_IN_FULL {
            return format!("quadratic(spectrum = {:?})", self.spectrum);
        }
        let mut checksum = crc32fast::Hasher::new();
        self.spectrum.iter().for_each(|curvature| checksum.update(&curvature.to_le_bytes()));
        format!("quadratic(spectrum of {}, crc32 {:08x})", self.spectrum.len(), checksum.finalize())
    }

    fn dim(&self) -> usize {
        self.spectrum.len()
    }

    fn value(&self, x: &[f64]) -> f64 {
        self.spectrum.iter().zip(x).map(|(curvature, x)| 0.5 * curvature * x * x).sum()
    }

    fn gradient(&self, x: &[f64], out: &mut [f64]) {
        for ((o, curvature), x) in out.iter_mut().zip(&self.spectrum).zip(x) {
            *o = curvature * x;
        }
    }

    fn infimum(&self) -> f64 {
        0.0
    }

    fn nearest_minimiser(&self, x: &[f64], out: &mut [f64]) -> bool {
        for ((o, &curvature), &x) in out.iter_mut().zip(&self.spectrum).zip(x) {
            *o = if curvature == 0.0 { x } else { 0.0 };
        }
        true
    }

    fn facts(&self) -> Facts {
        let smallest = self.spectrum.iter().copied().fold(f64::INFINITY, f64::min);
        let unique = (smallest > 0.0).then_some(smallest);
        Facts {
            smoothness: Some(self.spectrum.iter().copied().fold(0.0, f64::max)),
            lipschitz: None,
            weak_convexity: Some(0.0),
            pl: unique,
            star: unique,
        }
    }

    fn prox(&self, lambda: f64, x: &[f64], out: &mut [f64]) -> bool {
        if !is_single_valued(lambda, 0.0) {
            return false;
        }
        for ((o, curvature), x) in out.iter_mut().zip(&self.spectrum).zip(x) {
            *o = lambda / (lambda + curvature) * x;
        }
        true
    }
}
