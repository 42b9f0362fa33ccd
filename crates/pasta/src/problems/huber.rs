use super::proximal::is_single_valued;
use super::radial::{norm, on_ray};
use crate::objective::{Facts, Objective};

/// Huber's function of r = |x|: h r^2/2 up to r = G/h, then G r - G^2/(2h), with curvature h and slope G.
///
/// * grad f = h times the projection of x on the ball of radius G/h, and projections do not expand: convex
///   (f is the Moreau envelope of G|x|), L = h, and |grad f| <= G, both attained.
/// * inf f = 0 at the only minimiser 0.
/// * Neither PL nor star-convex: the gradient is bounded and f is not.
///
/// ```
/// use pasta_opt::objective::Objective;
/// use pasta_opt::problems::Huber;
///
/// let huber = Huber { dimension: 2, curvature: 2.0, lipschitz: 4.0 };
/// assert_eq!((huber.value(&[0.0, 1.0]), huber.value(&[3.0, 4.0])), (1.0, 16.0));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Huber {
    /// d, the number of coordinates.
    pub dimension: usize,
    /// h, the curvature of the quadratic part; positive.
    pub curvature: f64,
    /// G, the slope of the conical part; positive.
    pub lipschitz: f64,
}

impl Huber {
    /// G/h, where the two parts meet.
    fn knee(&self) -> f64 {
        self.lipschitz / self.curvature
    }
}

impl Objective for Huber {
    fn identity(&self) -> String {
        let Self { dimension, curvature, lipschitz } = self;
        format!("huber(dimension = {dimension}, curvature = {curvature:?}, lipschitz = {lipschitz:?})")
    }

    fn dim(&self) -> usize {
        self.dimension
    }

    fn value(&self, x: &[f64]) -> f64 {
        let r = norm(x);
        if r <= self.knee() { 0.5 * self.curvature * r * r } else { self.lipschitz * (r - 0.5 * self.knee()) }
    }

    #[inline]
    fn gradient(&self, x: &[f64], out: &mut [f64]) {
        let r = norm(x);
        if r <= self.knee() {
            out.iter_mut().zip(x).for_each(|(o, x)| *o = self.curvature * x);
        } else {
            on_ray(x, r, self.lipschitz, out);
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
            smoothness: Some(self.curvature),
            lipschitz: Some(self.lipschitz),
            weak_convexity: Some(0.0),
            pl: None,
            star: None,
        }
    }

    fn prox(&self, lambda: f64, x: &[f64], out: &mut [f64]) -> bool {
        if !is_single_valued(lambda, 0.0) {
            return false;
        }
        let r = norm(x);
        let shrunk = lambda / (lambda + self.curvature) * r;
        on_ray(x, r, if shrunk <= self.knee() { shrunk } else { r - self.lipschitz / lambda }, out);
        true
    }
}
