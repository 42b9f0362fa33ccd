use super::proximal::{is_single_valued, root};
use crate::objective::{Facts, Objective};

/// f(x) = sum over i of x_i^2/2 + sin^2 x_i: a bowl with ripples that are not convex.
///
/// * f'' = 1 + 2 cos 2x lies in \[-1, 3\] and attains both ends: L = 3, and weakly convex with rho = 1.
/// * PL with mu = .2525. In one coordinate f'^2/(2f) = (x + sin 2x)^2/(x^2 + 2 sin^2 x) has its smallest
///   value .252579446.. at x = 2.164691532..; it tends to 3 at 0 and exceeds (|x| - 1)^2/(x^2 + 2) >= 1/2
///   from |x| = 4 on. The sum over coordinates keeps the constant.
/// * Not star-convex: at x = 2.1 the product x f' = 2.58 is less than f = 2.95.
/// * inf f = 0 at the only minimiser 0, for f >= |x|^2/2.
///
/// ```
/// use pasta_opt::objective::Objective;
/// use pasta_opt::problems::SineBowl;
///
/// let bowl = SineBowl { dimension: 1 };
/// assert!((bowl.value(&[1.2]) - 1.588696857770623).abs() < 1e-12);
/// assert_eq!(bowl.facts().pl, Some(0.2525));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SineBowl {
    /// d, the number of coordinates.
    pub dimension: usize,
}

impl Objective for SineBowl {
    fn identity(&self) -> String {
        format!("sine-bowl(dimension = {})", self.dimension)
    }

    fn dim(&self) -> usize {
        self.dimension
    }

    fn value(&self, x: &[f64]) -> f64 {
        x.iter()
            .map(|&x| {
                let sine = libm::sin(x);
                0.5 * x * x + sine * sine
            })
            .sum()
    }

    #[inline]
    fn gradient(&self, x: &[f64], out: &mut [f64]) {
        for (o, &x) in out.iter_mut().zip(x) {
            *o = x + libm::sin(2.0 * x);
        }
    }

    fn infimum(&self) -> f64 {
        0.0
    }

    fn nearest_minimiser(&self, _x: &[f64], out: &mut [f64]) -> bool {
        out.fill(0.0);
        true
    }

    fn facts(&self) -> Facts {
        Facts {
            smoothness: Some(3.0),
            lipschitz: None,
            weak_convexity: Some(1.0),
            pl: Some(0.2525),
            star: None,
        }
    }

    /// Solves (1 + lambda) y + sin 2y = lambda x by a safeguarded Newton method, for lambda > 1. The
    /// relative error is a few roundings over 1 + 2 cos(2y)/(1 + lambda), so it grows only as lambda nears
    /// 1.
    fn prox(&self, lambda: f64, x: &[f64], out: &mut [f64]) -> bool {
        if !is_single_valued(lambda, 1.0) {
            return false;
        }
        for (o, x) in out.iter_mut().zip(x) {
            let centre = lambda / (1.0 + lambda) * x;
            // |sin| <= 1 brackets the root; the equation is divided by 1 + lambda.
            let width = 1.0 / (1.0 + lambda);
            *o = root(centre - width, centre + width, |y| {
                let (sine, cosine) = libm::sincos(2.0 * y);
                (y - centre + width * sine, 1.0 + 2.0 * width * cosine)
            });
        }
        true
    }
}
