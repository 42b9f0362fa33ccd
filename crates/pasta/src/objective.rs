//! Exact objectives: what a problem knows about itself when its formula is known.

use std::fmt::Debug;

use serde::{Deserialize, Serialize};

/// What is proved about f, whatever the start. `None` means that the class does not hold (or is not known to).
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Facts {
    /// L: |grad f(x) - grad f(y)| <= L |x - y|.
    pub smoothness: Option<f64>,
    /// G: every subgradient has norm at most G.
    pub lipschitz: Option<f64>,
    /// rho: f + rho/2 |x|^2 is convex; zero for a convex f.
    pub weak_convexity: Option<f64>,
    /// mu of the Polyak-Lojasiewicz inequality, stated only where the minimiser is unique (Theorem 8 needs it).
    pub pl: Option<f64>,
    /// mu of star-convexity.
    pub star: Option<f64>,
}

impl Facts {
    /// Whether f is known to be convex.
    pub fn is_convex(&self) -> bool {
        self.weak_convexity == Some(0.0)
    }
}

/// A function with a known value, (sub)gradient and constants.
///
/// ```
/// use pasta_opt::objective::Objective;
/// use pasta_opt::problems::SineBowl;
///
/// let bowl = SineBowl { dimension: 1 };
/// let mut gradient = [0.0];
/// bowl.gradient(&[0.0], &mut gradient);
/// assert_eq!((bowl.value(&[0.0]), gradient), (0.0, [0.0]));
/// assert_eq!(bowl.facts().smoothness, Some(3.0));
/// ```
pub trait Objective: Debug + Send + Sync {
    /// Name and parameters: two objectives with the same identity are the same function.
    fn identity(&self) -> String;

    /// The number of coordinates.
    fn dim(&self) -> usize;

    /// f(x).
    fn value(&self, x: &[f64]) -> f64;

    /// A (sub)gradient of f at x; the gradient where f is differentiable.
    fn gradient(&self, x: &[f64], out: &mut [f64]);

    /// The infimum of f.
    fn infimum(&self) -> f64;

    /// The minimiser nearest to `x`, or false where none is attained or known.
    fn nearest_minimiser(&self, x: &[f64], out: &mut [f64]) -> bool;

    /// The constants and classes that are proved for f.
    fn facts(&self) -> Facts;

    /// The minimiser of f(y) + lambda/2 |y - x|^2, or false where no formula is known.
    fn prox(&self, _lambda: f64, _x: &[f64], _out: &mut [f64]) -> bool {
        false
    }

    /// f(x) - inf f.
    fn gap(&self, x: &[f64]) -> f64 {
        self.value(x) - self.infimum()
    }

    /// |x - x*| for the nearest minimiser, where one is known.
    fn distance_to_minimiser(&self, x: &[f64]) -> Option<f64> {
        let mut nearest = vec![0.0; x.len()];
        self.nearest_minimiser(x, &mut nearest).then(|| crate::kernels::squared_distance(x, &nearest).sqrt())
    }
}

/// How good a point is: what a theorem promises about it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// |grad f(x)|^2.
    GradientSquared,
    /// f(x) - inf f.
    Gap,
    /// |grad phi_{1/lambda}(x)|^2, phi the Moreau envelope.
    MoreauSquared {
        /// lambda, larger than the weak-convexity constant.
        lambda: f64,
    },
}

impl Measure {
    /// The measure's value at `x`, or `None` where the objective has no formula for it.
    pub fn at(&self, objective: &dyn Objective, x: &[f64]) -> Option<f64> {
        let mut scratch = vec![0.0; x.len()];
        match *self {
            Self::GradientSquared => {
                objective.gradient(x, &mut scratch);
                Some(crate::kernels::squared_norm(&scratch))
            }
            Self::Gap => Some(objective.gap(x)),
            // grad phi(x) = lambda (x - prox(x)) (Davis and Drusvyatskiy; Lemma "Moreau gradient" of the paper).
            Self::MoreauSquared { lambda } => objective
                .prox(lambda, x, &mut scratch)
                .then(|| lambda * lambda * crate::kernels::squared_distance(x, &scratch)),
        }
    }

    /// The measure in mathematical notation.
    pub fn formula(&self) -> &'static str {
        match self {
            Self::GradientSquared => "|grad f|^2",
            Self::Gap => "f - inf f",
            Self::MoreauSquared { .. } => "|grad phi_{1/lambda}|^2",
        }
    }
}
