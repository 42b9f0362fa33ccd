use super::proximal::is_single_valued;
use crate::objective::{Facts, Objective};

/// f(x) = (|x_1| + .. + |x_d|)/sqrt(d).
///
/// * Convex. A subgradient has coordinates in \[-1, 1\]/sqrt(d): G = 1, attained off the coordinate
///   hyperplanes.
/// * Not smooth, and not star-convex with a positive constant: <g, x> = f leaves nothing for |x|^2.
/// * inf f = 0 at the only minimiser 0. On a kink x_i = 0 the subgradient's coordinate is 0.
///
/// ```
/// use pasta_opt::objective::Objective;
/// use pasta_opt::problems::Absolute;
///
/// let absolute = Absolute { dimension: 4 };
/// assert_eq!(absolute.value(&[1.0, -2.0, 0.0, 3.0]), 3.0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Absolute {
    /// d, the number of coordinates.
    pub dimension: usize,
}

impl Absolute {
    /// 1/sqrt(d), the slope in each coordinate.
    fn slope(self) -> f64 {
        1.0 / (self.dimension as f64).sqrt()
    }
}

impl Objective for Absolute {
    fn identity(&self) -> String {
        format!("absolute(dimension = {})", self.dimension)
    }

    fn dim(&self) -> usize {
        self.dimension
    }

    fn value(&self, x: &[f64]) -> f64 {
        self.slope() * x.iter().map(|x| x.abs()).sum::<f64>()
    }

    #[inline]
    fn gradient(&self, x: &[f64], out: &mut [f64]) {
        let slope = self.slope();
        for (o, &x) in out.iter_mut().zip(x) {
            *o = if x == 0.0 { 0.0 } else { slope * x.signum() };
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
        Facts { smoothness: None, lipschitz: Some(1.0), weak_convexity: Some(0.0), pl: None, star: None }
    }

    /// The soft threshold at 1/(lambda sqrt(d)).
    fn prox(&self, lambda: f64, x: &[f64], out: &mut [f64]) -> bool {
        if !is_single_valued(lambda, 0.0) {
            return false;
        }
        let threshold = self.slope() / lambda;
        for (o, &x) in out.iter_mut().zip(x) {
            *o = if x.abs() <= threshold { 0.0 } else { x - threshold * x.signum() };
        }
        true
    }
}
