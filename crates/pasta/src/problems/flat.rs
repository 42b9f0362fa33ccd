use super::proximal::is_single_valued;
use crate::objective::{Facts, Objective};

/// f(x) = 0: nothing to find, so whatever moves is the noise.
///
/// * Convex, and L = G = 0 are the best constants. Any positive L is valid too: a recipe that divides by L
///   needs one, and its promise then holds for every choice.
/// * Every point is a minimiser, so PL (with a unique minimiser) and star-convexity are not stated.
///
/// ```
/// use pasta_opt::objective::Objective;
/// use pasta_opt::problems::Flat;
///
/// assert_eq!(Flat { dimension: 2 }.distance_to_minimiser(&[3.0, 4.0]), Some(0.0));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flat {
    /// d, the number of coordinates.
    pub dimension: usize,
}

// 0 x rather than 0: a point that is not a number has no value and no gradient.
impl Objective for Flat {
    fn identity(&self) -> String {
        format!("flat(dimension = {})", self.dimension)
    }

    fn dim(&self) -> usize {
        self.dimension
    }

    fn value(&self, x: &[f64]) -> f64 {
        x.iter().fold(0.0, |sum, x| sum + 0.0 * x)
    }

    #[inline]
    fn gradient(&self, x: &[f64], out: &mut [f64]) {
        out.iter_mut().zip(x).for_each(|(o, x)| *o = 0.0 * x.abs());
    }

    fn infimum(&self) -> f64 {
        0.0
    }

    fn nearest_minimiser(&self, x: &[f64], out: &mut [f64]) -> bool {
        out.copy_from_slice(x);
        true
    }

    fn facts(&self) -> Facts {
        Facts { smoothness: Some(0.0), lipschitz: Some(0.0), weak_convexity: Some(0.0), pl: None, star: None }
    }

    fn prox(&self, lambda: f64, x: &[f64], out: &mut [f64]) -> bool {
        out.copy_from_slice(x);
        is_single_valued(lambda, 0.0)
    }
}
