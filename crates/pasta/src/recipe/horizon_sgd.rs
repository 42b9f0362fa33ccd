//! Plain SGD with one sample a step, tuned to the horizon.

use super::{Constant, Cost, Guarantee, Hypotheses, Plan, Recipe, RecipeError, over, smallest, unanchored};
use crate::objective::Measure;
use crate::schedule::{BatchRule, Output};

/// N = 1 SGD whose step is small enough for the noise at the end of its own horizon.
///
/// **Problem.** f is L-smooth, f(x0) - inf f <= Delta, eps^2 <= L Delta; the oracle is unbiased with variance
/// at most B^2 |x - x0|^2 + b^2.
///
/// **Schedule.** One epoch, no anchor, N = 1.
/// eta = min{1/L, eps^4/(200 L B^2 Delta^2), eps^2/(40 B^2 Delta), eps^2/(8 L b^2)},
/// K = ceil(4 Delta/(eta eps^2)).
///
/// **Promise.** The mean over t < K of E|grad f(x_t)|^2 is at most eps^2.
///
/// **Tight?** Upper bound; the order eps^-6 of [`Smooth`](super::Smooth), all of it in sequential steps.
///
/// **Expected samples.** K, exactly.
///
/// **Reference.** Not in the paper; derived for this library (`docs/theorems.md`).
///
/// | field | symbol | range |
/// |---|---|---|
/// | smoothness | L | > 0 |
/// | gap | Delta | >= eps^2/L |
/// | growth | B | >= 0 |
/// | floor | b | >= 0 |
/// | target | eps | in (0, sqrt(L Delta)] |
///
/// ```
/// use pasta_opt::recipe::{HorizonSgd, Recipe};
///
/// let recipe = HorizonSgd { smoothness: 1.0, gap: 1.0, growth: 0.0, floor: 1.0, target: 0.1 };
/// assert_eq!(recipe.plan()?.schedule.steps, 320_000);
/// # Ok::<(), pasta_opt::recipe::RecipeError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HorizonSgd {
    /// L.
    pub smoothness: f64,
    /// Delta.
    pub gap: f64,
    /// B.
    pub growth: f64,
    /// b.
    pub floor: f64,
    /// eps.
    pub target: f64,
}

const HYPOTHESES: Hypotheses = Hypotheses("horizon-sgd");

impl Recipe for HorizonSgd {
    fn plan(&self) -> Result<Plan, RecipeError> {
        let l = HYPOTHESES.positive(Constant::Smoothness, self.smoothness)?;
        let delta = HYPOTHESES.non_negative(Constant::Gap, self.gap)?;
        let b2 = HYPOTHESES.non_negative(Constant::Growth, self.growth)?.pow(2);
        let floor2 = HYPOTHESES.non_negative(Constant::Floor, self.floor)?.pow(2);
        let eps2 = HYPOTHESES.positive(Constant::Target, self.target)?.pow(2);
        HYPOTHESES.require(eps2 <= &l * &delta, "eps^2 <= L Delta", "target", self.target)?;

        let eta = smallest(
            1 / &l,
            [
                over(eps2.pow(2), 200 * &l * &b2 * delta.pow(2)),
                over(eps2.clone(), 40 * &b2 * &delta),
                over(eps2.clone(), 8 * &l * floor2),
            ],
        );
        let steps = HYPOTHESES.count("K", (4 * delta / (&eta * eps2)).ceil_count())?;
        Ok(Plan {
            recipe: "horizon-sgd",
            schedule: unanchored(&eta, steps, BatchRule::Fixed(1), Output::Uniform),
            guarantee: Guarantee {
                measure: Measure::GradientSquared,
                point: Output::Uniform,
                bound: self.target * self.target,
            },
            cost: Cost::exactly(u128::from(steps)),
        })
    }
}
