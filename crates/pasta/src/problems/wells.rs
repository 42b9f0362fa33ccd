use super::kinked_well::{BOTTOM, profile, profile_prox, profile_slope};
use super::proximal::is_single_valued;
use crate::objective::{Facts, Objective};

/// f(x) = (1/d) sum over i of w(|x_i|), with w the profile of [`KinkedWell`](super::KinkedWell): 2^d
/// minimisers and kinks on every hyperplane x_i = 1/2 and x_i = -1/2.
///
/// * w + x^2/2 is convex, so f + |x|^2/(2d) is: weakly convex with rho = 1/d (w'' = -1 near 0, so not less).
/// * |w'| <= 1, so |grad f|^2 <= d/d^2: G = 1/sqrt(d), attained where every |x_i| >= 1.
/// * inf f = 0 where every coordinate is 1/2 or -1/2. From a coordinate 0 the nearest one is said to be 1/2.
///
/// ```
/// use pasta_opt::objective::Objective;
/// use pasta_opt::problems::Wells;
///
/// let wells = Wells { dimension: 4 };
/// assert_eq!(wells.value(&[0.5, -0.5, 0.0, 2.0]), (0.125 + 1.375) / 4.0);
/// assert_eq!((wells.facts().lipschitz, wells.facts().weak_convexity), (Some(0.5), Some(0.25)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wells {
    /// d, the number of coordinates.
    pub dimension: usize,
}

impl Wells {
    /// 1/d.
    fn share(self) -> f64 {
        1.0 / self.dimension as f64
    }
}

impl Objective for Wells {
    fn identity(&self) -> String {
        format!("wells(dimension = {})", self.dimension)
    }

    fn dim(&self) -> usize {
        self.dimension
    }

    fn value(&self, x: &[f64]) -> f64 {
        self.share() * x.iter().map(|x| profile(x.abs())).sum::<f64>()
    }

    #[inline]
    fn gradient(&self, x: &[f64], out: &mut [f64]) {
        let share = self.share();
        for (o, x) in out.iter_mut().zip(x) {
            *o = share * profile_slope(x.abs()) * x.signum();
        }
    }

    fn infimum(&self) -> f64 {
        0.0
    }

    fn nearest_minimiser(&self, x: &[f64], out: &mut [f64]) -> bool {
        for (o, &x) in out.iter_mut().zip(x) {
            *o = if x == 0.0 { BOTTOM } else { BOTTOM * x.signum() };
        }
        true
    }

    fn facts(&self) -> Facts {
        Facts {
            smoothness: None,
            lipschitz: Some(self.share().sqrt()),
            weak_convexity: Some(self.share()),
            pl: None,
            star: None,
        }
    }

    fn prox(&self, lambda: f64, x: &[f64], out: &mut [f64]) -> bool {
        // w/d + lambda/2 (. - x)^2 is 1/d times w + lambda d/2 (. - x)^2.
        let lambda_of_one = lambda * self.dimension as f64;
        if !is_single_valued(lambda_of_one, 1.0) {
            return false;
        }
        for (o, x) in out.iter_mut().zip(x) {
            *o = profile_prox(lambda_of_one, x.abs()) * x.signum();
        }
        true
    }
}
