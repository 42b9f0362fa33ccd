//! Theorem 4: smooth and convex, by dynamic batching.

use super::{Constant, Cost, Guarantee, Hypotheses, Plan, Recipe, RecipeError, over, smallest, unanchored};
use crate::objective::Measure;
use crate::schedule::{BatchRule, Output};

/// Theorem 4: an L-smooth convex f, batches that grow with the distance.
///
/// **Problem.** f is convex and L-smooth with a minimiser x*; the oracle is unbiased with variance at most
/// B^2 |x - x0|^2 + b^2.
///
/// **Schedule.** One epoch, no anchor, p = 1. eta = min{1/(2L), eps/(2 sigma^2)},
/// K = ceil(2 |x0 - x*|^2/(eta eps)), N_t = max{1, ceil((B^2 |x_t - x0|^2 + b^2)/sigma^2)}.
///
/// **Promise.** E f - f* <= eps at the average of x_0 .. x_{K-1}.
///
/// **Tight?** Upper bound; order eps^-2.
///
/// **Expected samples.** At most K (1 + (b^2 + 4 B^2 |x0 - x*|^2)/sigma^2) + B^2 K^2 eta^2.
///
/// **Reference.** Theorem 4 (dynamic batching, smooth convex case).
///
/// | field | symbol | range |
/// |---|---|---|
/// | smoothness | L | > 0 |
/// | distance | the norm of x0 - x* | >= 0 |
/// | growth | B | >= 0 |
/// | floor | b | >= 0 |
/// | variance | sigma^2 | > 0; `None` is L eps, which makes the bound smallest |
/// | target | eps | > 0 |
///
/// ```
/// use pasta_opt::recipe::{Recipe, SmoothConvex};
///
/// let recipe =
///     SmoothConvex { smoothness: 1.0, distance: 2.0, growth: 1.0, floor: 1.0, variance: Some(1.0), target: 0.25 };
/// let plan = recipe.plan()?;
/// assert_eq!((plan.schedule.steps, plan.cost.samples), (256, 5632.0));
/// # Ok::<(), pasta_opt::recipe::RecipeError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SmoothConvex {
    /// L.
    pub smoothness: f64,
    /// |x0 - x*|.
    pub distance: f64,
    /// B.
    pub growth: f64,
    /// b.
    pub floor: f64,
    /// sigma^2; `None` is L eps.
    pub variance: Option<f64>,
    /// eps.
    pub target: f64,
}

const HYPOTHESES: Hypotheses = Hypotheses("smooth-convex");

impl Recipe for SmoothConvex {
    fn plan(&self) -> Result<Plan, RecipeError> {
        let l = HYPOTHESES.positive(Constant::Smoothness, self.smoothness)?;
        let r2 = HYPOTHESES.non_negative(Constant::Distance, self.distance)?.pow(2);
        HYPOTHESES.non_negative(Constant::Growth, self.growth)?;
        HYPOTHESES.non_negative(Constant::Floor, self.floor)?;
        let eps = HYPOTHESES.positive(Constant::Target, self.target)?;
        let sigma2 = match self.variance {
            Some(variance) => HYPOTHESES.positive(Constant::Variance, variance)?,
            None => &l * &eps,
        };
        let eta = smallest(1 / (2 * &l), [over(eps.clone(), 2 * &sigma2)]);
        let steps = HYPOTHESES.count("K", (2 * &r2 / (&eta * &eps)).ceil_count())?;

        let (sigma2, r2, k) = (sigma2.to_f64(), r2.to_f64(), steps as f64);
        let (b2, floor2) = (self.growth * self.growth, self.floor * self.floor);
        let samples =
            k * (1.0 + (floor2 + 4.0 * b2 * r2) / sigma2) + b2 * (k * eta.to_f64()) * (k * eta.to_f64());
        let batches =
            BatchRule::Drift { growth: self.growth, floor: self.floor, target_variance: sigma2, at_least: 1 };
        Ok(Plan {
            recipe: "smooth-convex",
            schedule: unanchored(&eta, steps, batches, Output::Average),
            guarantee: Guarantee { measure: Measure::Gap, point: Output::Average, bound: self.target },
            cost: Cost::at_most(samples),
        })
    }
}
