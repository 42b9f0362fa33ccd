//! Theorem 5: Lipschitz and convex, by dynamic batching.

use super::{Constant, Cost, Guarantee, Hypotheses, Plan, Recipe, RecipeError, unanchored};
use crate::exact::Exact;
use crate::objective::Measure;
use crate::schedule::{BatchRule, Output};

/// Theorem 5: a G-Lipschitz convex f, possibly non-smooth.
///
/// **Problem.** f is convex, every subgradient has norm at most G, there is a minimiser x*; the oracle is
/// unbiased for a subgradient with variance at most B^2 |x - x0|^2 + b^2.
///
/// **Schedule.** One epoch, no anchor, p = 1. eta = eps/(G^2 + sigma^2),
/// K = ceil((G^2 + sigma^2) |x0 - x*|^2/eps^2), N_t = max{1, ceil((B^2 |x_t - x0|^2 + b^2)/sigma^2)}.
///
/// **Promise.** E f - f* <= eps at the average of x_0 .. x_{K-1}.
///
/// **Tight?** Upper bound; order eps^-2.
///
/// **Expected samples.** At most K (1 + (b^2 + 4 B^2 R^2)/sigma^2) + (B^2/sigma^2) K^2 eta^2 (G^2 + sigma^2),
/// R = |x0 - x*|.
///
/// **Reference.** Theorem 5 (Lipschitz continuity and convexity).
///
/// | field | symbol | range |
/// |---|---|---|
/// | lipschitz | G | >= 0, not both G and sigma^2 zero |
/// | distance | the norm of x0 - x* | >= 0 |
/// | growth | B | >= 0 |
/// | floor | b | >= 0 |
/// | variance | sigma^2 | > 0; `None` is G sqrt(b^2 + 5 B^2 R^2), which makes the bound smallest |
/// | target | eps | > 0 |
///
/// ```
/// use pasta_opt::recipe::{LipschitzConvex, Recipe};
///
/// let recipe =
///     LipschitzConvex { lipschitz: 1.0, distance: 2.0, growth: 1.0, floor: 1.0, variance: Some(1.0), target: 0.25 };
/// let plan = recipe.plan()?;
/// assert_eq!((plan.schedule.steps, plan.cost.samples), (128, 2816.0));
/// # Ok::<(), pasta_opt::recipe::RecipeError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LipschitzConvex {
    /// G.
    pub lipschitz: f64,
    /// |x0 - x*|.
    pub distance: f64,
    /// B.
    pub growth: f64,
    /// b.
    pub floor: f64,
    /// sigma^2; `None` is G sqrt(b^2 + 5 B^2 R^2).
    pub variance: Option<f64>,
    /// eps.
    pub target: f64,
}

const HYPOTHESES: Hypotheses = Hypotheses("lipschitz-convex");

impl Recipe for LipschitzConvex {
    fn plan(&self) -> Result<Plan, RecipeError> {
        let g2 = HYPOTHESES.non_negative(Constant::Lipschitz, self.lipschitz)?.pow(2);
        let r2 = HYPOTHESES.non_negative(Constant::Distance, self.distance)?.pow(2);
        HYPOTHESES.non_negative(Constant::Growth, self.growth)?;
        HYPOTHESES.non_negative(Constant::Floor, self.floor)?;
        let eps = HYPOTHESES.positive(Constant::Target, self.target)?;
        let sigma2 =
            HYPOTHESES.positive(Constant::Variance, self.variance.unwrap_or_else(|| self.best_variance()))?;
        let second_moment = &g2 + &sigma2;
        let eta = &eps / &second_moment;
        let steps = HYPOTHESES.count("K", (&second_moment * &r2 / eps.pow(2)).ceil_count())?;

        let [sigma2, r2, second_moment] = [sigma2, r2, second_moment].map(|x: Exact| x.to_f64());
        let (b2, floor2, k) = (self.growth * self.growth, self.floor * self.floor, steps as f64);
        let travelled = (k * eta.to_f64()).powi(2) * second_moment;
        let samples = k * (1.0 + (floor2 + 4.0 * b2 * r2) / sigma2) + b2 / sigma2 * travelled;
        let batches =
            BatchRule::Drift { growth: self.growth, floor: self.floor, target_variance: sigma2, at_least: 1 };
        Ok(Plan {
            recipe: "lipschitz-convex",
            schedule: unanchored(&eta, steps, batches, Output::Average),
            guarantee: Guarantee { measure: Measure::Gap, point: Output::Average, bound: self.target },
            cost: Cost::at_most(samples),
        })
    }
}

impl LipschitzConvex {
    /// Up to the ceiling, the bound is R^2/eps^2 (G^2 + sigma^2)(1 + (b^2 + 5 B^2 R^2)/sigma^2), smallest here.
    fn best_variance(&self) -> f64 {
        let noise = (self.floor * self.floor + 5.0 * (self.growth * self.distance).powi(2)).sqrt();
        match self.lipschitz * noise {
            // Without noise or without slope any variance serves; the larger of the two keeps the units.
            0.0 => self.lipschitz.powi(2).max(noise.powi(2)).max(self.target),
            best => best,
        }
    }
}
