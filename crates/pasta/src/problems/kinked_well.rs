use super::proximal::is_single_valued;
use super::radial::{norm, on_ray};
use crate::objective::{Facts, Objective};

/// f(x) = |r^2 - 1/4|/2 for r = |x| <= 1, and 3/8 + (r - 1) beyond: a circular ditch with a kink at its
/// bottom.
///
/// * Weakly convex with rho = 1: f + r^2/2 is 1/8, then r^2 - 1/8, then r^2/2 + r - 5/8, whose slopes 0, 2r
///   and r + 1 do not fall. Not less than 1, for the Hessian is -1 inside the ditch.
/// * |f'| = r up to r = 1 and 1 beyond: G = 1.
/// * Not smooth: the slope jumps from -1/2 to 1/2 at r = 1/2.
/// * inf f = 0 on the sphere r = 1/2, in one dimension at 1/2 and -1/2.
///
/// On the kink the subgradient is 0. The centre is as far from every minimiser; its nearest one is said to be
/// the one on the first axis.
///
/// ```
/// use pasta_opt::objective::Objective;
/// use pasta_opt::problems::KinkedWell;
///
/// let well = KinkedWell { dimension: 1 };
/// assert_eq!((well.value(&[0.0]), well.value(&[-2.0])), (0.125, 1.375));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KinkedWell {
    /// d, the number of coordinates.
    pub dimension: usize,
}

/// Where the profile is smallest, and has its kink.
pub(super) const BOTTOM: f64 = 0.5;

/// f at r >= 0.
#[inline]
pub(super) fn profile(r: f64) -> f64 {
    if r > 1.0 { 0.375 + (r - 1.0) } else { 0.5 * (r * r - BOTTOM * BOTTOM).abs() }
}

/// f' at r >= 0, and 0 at the kink.
#[inline]
pub(super) fn profile_slope(r: f64) -> f64 {
    if r > 1.0 {
        1.0
    } else if r > BOTTOM {
        r
    } else if r == BOTTOM {
        0.0
    } else {
        -r
    }
}

/// The s >= 0 that minimises f(s) + lambda/2 (s - r)^2, for lambda > 1 and r >= 0.
pub(super) fn profile_prox(lambda: f64, r: f64) -> f64 {
    // The stationary point of each piece, and the kink between the first two.
    let inside = lambda / (lambda - 1.0) * r;
    let outside = lambda / (lambda + 1.0) * r;
    if inside < BOTTOM {
        inside
    } else if outside <= BOTTOM {
        BOTTOM
    } else if outside <= 1.0 {
        outside
    } else {
        r - 1.0 / lambda
    }
}

impl Objective for KinkedWell {
    fn identity(&self) -> String {
        format!("kinked-well(dimension = {})", self.dimension)
    }

    fn dim(&self) -> usize {
        self.dimension
    }

    fn value(&self, x: &[f64]) -> f64 {
        profile(norm(x))
    }

    #[inline]
    fn gradient(&self, x: &[f64], out: &mut [f64]) {
        let r = norm(x);
        on_ray(x, r, profile_slope(r), out);
    }

    fn infimum(&self) -> f64 {
        0.0
    }

    fn nearest_minimiser(&self, x: &[f64], out: &mut [f64]) -> bool {
        let r = norm(x);
        on_ray(x, r, BOTTOM, out);
        if r == 0.0 {
            out[0] = BOTTOM;
        }
        true
    }

    fn facts(&self) -> Facts {
        Facts { smoothness: None, lipschitz: Some(1.0), weak_convexity: Some(1.0), pl: None, star: None }
    }

    fn prox(&self, lambda: f64, x: &[f64], out: &mut [f64]) -> bool {
        if !is_single_valued(lambda, 1.0) {
            return false;
        }
        let r = norm(x);
        on_ray(x, r, profile_prox(lambda, r), out);
        true
    }
}
