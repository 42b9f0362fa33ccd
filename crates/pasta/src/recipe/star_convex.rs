//! Theorem 9: star-convex, one sample a step.

use super::{Constant, Cost, Guarantee, Hypotheses, Plan, Recipe, RecipeError, over, smallest, unanchored};
use crate::objective::Measure;
use crate::schedule::{BatchRule, Output};

/// Theorem 9: a smooth f with <grad f(x), x - x*> >= f(x) - f* + mu/2 |x - x*|^2, one sample a step.
///
/// **Problem.** f is L-smooth and mu-star-convex about x*, f(x0) - f* <= Delta; the oracle is unbiased with
/// variance at most B^2 |x - x0|^2 + b^2.
///
/// **Schedule.** One epoch, no anchor, N = 1.
/// eta = min{1/L, mu/(4 B^2), mu^2 eps/(12 L B^2 Delta), mu eps/(3 L b^2)},
/// K = ceil(2/(eta mu) max{0, log(3 L Delta/(mu eps))}).
///
/// **Promise.** E f - f* <= eps at the last iterate.
///
/// **Tight?** Upper bound; order eps^-1 log(1/eps).
///
/// **Expected samples.** K, exactly.
///
/// **Reference.** Theorem 9 (star-convexity).
///
/// | field | symbol | range |
/// |---|---|---|
/// | smoothness | L | > 0 |
/// | mu | mu | in (0, L] |
/// | gap | Delta | >= 0 |
/// | growth | B | >= 0 |
/// | floor | b | >= 0 |
/// | target | eps | > 0 |
///
/// ```
/// use pasta_opt::recipe::{Recipe, StarConvex};
///
/// let recipe = StarConvex { smoothness: 3.0, mu: 0.25, gap: 1.6, growth: 0.5, floor: 0.5, target: 0.1 };
/// assert_eq!(recipe.plan()?.cost.exact, Some(117_156));
/// # Ok::<(), pasta_opt::recipe::RecipeError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StarConvex {
    /// L.
    pub smoothness: f64,
    /// mu.
    pub mu: f64,
    /// Delta.
    pub gap: f64,
    /// B.
    pub growth: f64,
    /// b.
    pub floor: f64,
    /// eps.
    pub target: f64,
}

const HYPOTHESES: Hypotheses = Hypotheses("star-convex");

impl Recipe for StarConvex {
    fn plan(&self) -> Result<Plan, RecipeError> {
        let l = HYPOTHESES.positive(Constant::Smoothness, self.smoothness)?;
        let mu = HYPOTHESES.positive(Constant::Mu, self.mu)?;
        HYPOTHESES.require(mu <= l, "mu <= L (a smooth function grows no faster)", "mu", self.mu)?;
        let delta = HYPOTHESES.non_negative(Constant::Gap, self.gap)?;
        let b2 = HYPOTHESES.non_negative(Constant::Growth, self.growth)?.pow(2);
        let floor2 = HYPOTHESES.non_negative(Constant::Floor, self.floor)?.pow(2);
        let eps = HYPOTHESES.positive(Constant::Target, self.target)?;

        let eta = smallest(
            1 / &l,
            [
                over(mu.clone(), 4 * &b2),
                over(mu.pow(2) * &eps, 12 * &l * b2 * &delta),
                over(&mu * &eps, 3 * &l * floor2),
            ],
        );
        let start_over_target = 3 * &l * &delta / (&mu * &eps);
        let log = libm::log(start_over_target.to_f64()).max(0.0);
        let steps = HYPOTHESES.rounded_count("K", (2 / (&eta * &mu)).to_f64() * log)?;
        Ok(Plan {
            recipe: "star-convex",
            schedule: unanchored(&eta, steps, BatchRule::Fixed(1), Output::Last),
            guarantee: Guarantee { measure: Measure::Gap, point: Output::Last, bound: self.target },
            cost: Cost::exactly(u128::from(steps)),
        })
    }
}
