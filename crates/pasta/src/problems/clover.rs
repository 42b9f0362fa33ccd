use std::f64::consts::FRAC_PI_2;

use super::proximal::{is_single_valued, root};
use super::radial::norm;
use crate::objective::{Facts, Objective};

/// f = r^2 (1 + a cos 4theta)/2 in the plane, with depth 0 < a < 1: star-convex, and not
/// convex for a > 1/7.
///
/// * f is homogeneous of degree 2, so <grad f, x> = 2f (Euler). With f >= (1 - a) r^2/2 this is
///   star-convexity with mu = 1 - a, and PL with the same mu, for |grad f| >= 2f/r. Both are equalities on
///   the diagonals.
/// * The Hessian depends on c = cos 4theta only, with eigenvalues 1 - 3ac +- a sqrt(4 + 12 c^2). The
///   largest is 1 + 7a (diagonals, c = -1) and the smallest 1 - 7a (axes, c = 1): L = 1 + 7a, and weakly
///   convex with rho = max(0, 7a - 1).
/// * inf f = 0 at the only minimiser 0, where the gradient is 0.
///
/// ```
/// use pasta_opt::objective::Objective;
/// use pasta_opt::problems::Clover;
///
/// let clover = Clover { depth: 0.5 };
/// assert_eq!((clover.value(&[2.0, 0.0]), clover.value(&[1.0, 1.0])), (3.0, 0.5));
/// assert_eq!((clover.facts().smoothness, clover.facts().star), (Some(4.5), Some(0.5)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clover {
    /// a, strictly between 0 and 1.
    pub depth: f64,
}

impl Clover {
    /// rho.
    fn weak_convexity(self) -> f64 {
        (7.0 * self.depth - 1.0).max(0.0)
    }
}

/// cos 4theta and sin 4theta at the angle theta of (u, v) and the scale max(|u|, |v|), which must not be 0:
/// the powers of u and v are taken in units of it, so that none overflows.
#[inline]
fn fourfold([u, v]: [f64; 2]) -> (f64, f64, f64) {
    let scale = u.abs().max(v.abs());
    let (u, v) = (u / scale, v / scale);
    let square = u * u + v * v;
    let (cos2, sin2) = ((u - v) * (u + v) / square, 2.0 * u * v / square);
    ((cos2 - sin2) * (cos2 + sin2), 2.0 * sin2 * cos2, scale)
}

impl Objective for Clover {
    fn identity(&self) -> String {
        format!("clover(depth = {:?})", self.depth)
    }

    fn dim(&self) -> usize {
        2
    }

    fn value(&self, x: &[f64]) -> f64 {
        if x[0] == 0.0 && x[1] == 0.0 {
            return 0.0;
        }
        let (cos4, _, scale) = fourfold([x[0], x[1]]);
        let (u, v) = (x[0] / scale, x[1] / scale);
        0.5 * (1.0 + self.depth * cos4) * (u * u + v * v) * scale * scale
    }

    #[inline]
    fn gradient(&self, x: &[f64], out: &mut [f64]) {
        if x[0] == 0.0 && x[1] == 0.0 {
            out.fill(0.0);
            return;
        }
        let (cos4, sin4, _) = fourfold([x[0], x[1]]);
        // f_r = r (1 + a cos 4theta) along x, f_theta/r = -2 a r sin 4theta along (-x_2, x_1).
        let (radial, turning) = (1.0 + self.depth * cos4, -2.0 * self.depth * sin4);
        out[0] = radial * x[0] - turning * x[1];
        out[1] = radial * x[1] + turning * x[0];
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
            smoothness: Some(1.0 + 7.0 * self.depth),
            lipschitz: None,
            weak_convexity: Some(self.weak_convexity()),
            pl: Some(1.0 - self.depth),
            star: Some(1.0 - self.depth),
        }
    }

    /// In polar coordinates, h(theta) = 1 + a cos 4theta and delta the angle from x to the answer: the
    /// radius is lambda |x| cos delta/(lambda + h), and delta solves (lambda + h) sin delta + h'/2 cos
    /// delta = 0, once between -pi/2 and pi/2 because the prox problem has one stationary point.
    /// Safeguarded Newton method.
    fn prox(&self, lambda: f64, x: &[f64], out: &mut [f64]) -> bool {
        if !is_single_valued(lambda, self.weak_convexity()) {
            return false;
        }
        let r = norm(x);
        if r == 0.0 {
            out.fill(0.0);
            return true;
        }
        let (u, v) = (x[0] / r, x[1] / r);
        let angle = libm::atan2(v, u);
        // h and half of h' and h'' at x's angle plus delta.
        let leaf = |delta: f64| {
            let (sin4, cos4) = libm::sincos(4.0 * (angle + delta));
            (1.0 + self.depth * cos4, -2.0 * self.depth * sin4, -8.0 * self.depth * cos4)
        };
        let delta = root(-FRAC_PI_2, FRAC_PI_2, |delta| {
            let (h, half_first, half_second) = leaf(delta);
            let (sine, cosine) = libm::sincos(delta);
            let radial = lambda + h;
            (radial * sine + half_first * cosine, (radial + half_second) * cosine + half_first * sine)
        });
        let (sine, cosine) = libm::sincos(delta);
        let radius = lambda / (lambda + leaf(delta).0) * cosine * r;
        out[0] = radius * (cosine * u - sine * v);
        out[1] = radius * (sine * u + cosine * v);
        true
    }
}
