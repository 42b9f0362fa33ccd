use super::proximal::{is_single_valued, root};
use super::radial::{norm, on_ray};
use crate::kernels::squared_norm;
use crate::objective::{Facts, Objective};

/// f(x) = sqrt(1 + |x|^2): the norm with its kink smoothed.
///
/// * The Hessian has the eigenvalues f^-3 (along x) and f^-1 (across), both in (0, 1] and both 1 at the
///   origin: convex with L = 1.
/// * |grad f| = |x|/f < 1, and tends to 1: G = 1.
/// * inf f = 1 at the only minimiser 0.
/// * Neither PL nor star-convex: the gradient is bounded and f is not.
///
/// ```
/// use pasta_opt::objective::Objective;
/// use pasta_opt::problems::SoftAbsolute;
///
/// let soft = SoftAbsolute { dimension: 2 };
/// assert_eq!(soft.value(&[2.0, 2.0]), 3.0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SoftAbsolute {
    /// d, the number of coordinates.
    pub dimension: usize,
}

/// sqrt(1 + |x|^2).
#[inline]
fn softened(x: &[f64]) -> f64 {
    let square = squared_norm(x);
    // Where the square overflows, the 1 is far below rounding.
    if square.is_finite() { (1.0 + square).sqrt() } else { norm(x) }
}

impl Objective for SoftAbsolute {
    fn identity(&self) -> String {
        format!("soft-absolute(dimension = {})", self.dimension)
    }

    fn dim(&self) -> usize {
        self.dimension
    }

    fn value(&self, x: &[f64]) -> f64 {
        softened(x)
    }

    #[inline]
    fn gradient(&self, x: &[f64], out: &mut [f64]) {
        let f = softened(x);
        out.iter_mut().zip(x).for_each(|(o, x)| *o = x / f);
    }

    fn infimum(&self) -> f64 {
        1.0
    }

    fn nearest_minimiser(&self, _x: &[f64], out: &mut [f64]) -> bool {
        out.fill(0.0);
        true
    }

    fn facts(&self) -> Facts {
        Facts { smoothness: Some(1.0), lipschitz: Some(1.0), weak_convexity: Some(0.0), pl: None, star: None }
    }

    /// On the ray through x: s/sqrt(1 + s^2) + lambda (s - r) = 0, by a safeguarded Newton method to a few
    /// units of rounding.
    fn prox(&self, lambda: f64, x: &[f64], out: &mut [f64]) -> bool {
        if !is_single_valued(lambda, 0.0) {
            return false;
        }
        let r = norm(x);
        // The slope of f is below 1, so s is within 1/lambda of r.
        let nearest = if 1.0 / lambda > r { 0.0 } else { r - 1.0 / lambda };
        let s = root(nearest, r, |s| {
            let f = libm::hypot(1.0, s);
            (s / f + lambda * (s - r), 1.0 / (f * f * f) + lambda)
        });
        on_ray(x, r, s, out);
        true
    }
}
