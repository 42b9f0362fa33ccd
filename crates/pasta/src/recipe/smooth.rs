//! Theorem 3: smooth, by dynamic batching.

use super::{Constant, Cost, Guarantee, Hypotheses, Plan, Recipe, RecipeError, over, smallest, unanchored};
use crate::exact::Exact;
use crate::objective::Measure;
use crate::schedule::{BatchRule, Output};

/// Theorem 3: an L-smooth f, batches that grow with the distance.
///
/// **Problem.** f is L-smooth, f(x0) - inf f <= Delta, the oracle is unbiased with variance at most
/// B^2 |x - x0|^2 + b^2.
///
/// **Schedule.** One epoch, no anchor, p = 1. eta = min{1/L, eps^2/(2 L sigma^2)},
/// K = ceil(4 Delta/(eta eps^2)), N_t = max{1, ceil((B^2 |x_t - x0|^2 + b^2)/sigma^2)}.
///
/// **Promise.** The mean over t < K of E|grad f(x_t)|^2 is at most eps^2: it holds in expectation for an
/// iterate drawn uniformly.
///
/// **Tight?** Upper bound; its order eps^-6 is the best possible for zero-respecting methods (Theorem 1).
///
/// **Expected samples.** At most K (1 + (B^2 D + b^2)/sigma^2), D = 4 eta K Delta + 2 K^2 L eta^3 sigma^2 +
/// 2 eta^2 K sigma^2.
///
/// **Reference.** Theorem 3 (dynamic batching, smooth non-convex case).
///
/// | field | symbol | range |
/// |---|---|---|
/// | smoothness | L | > 0 |
/// | gap | Delta | >= 0 |
/// | growth | B | >= 0 |
/// | floor | b | >= 0 |
/// | variance | sigma^2 | > 0; `None` is eps^2/2, the largest with eta = 1/L |
/// | target | eps | > 0 |
///
/// ```
/// use pasta_opt::recipe::{Recipe, Smooth};
///
/// let recipe =
///     Smooth { smoothness: 1.0, gap: 1.0, growth: 1.0, floor: 1.0, variance: Some(1.0), target: 0.25 };
/// let plan = recipe.plan()?;
/// assert_eq!(plan.schedule.steps, 2048);
/// assert_eq!(plan.cost.samples, 1_060_864.0);
/// # Ok::<(), pasta_opt::recipe::RecipeError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Smooth {
    /// L.
    pub smoothness: f64,
    /// Delta.
    pub gap: f64,
    /// B.
    pub growth: f64,
    /// b.
    pub floor: f64,
    /// sigma^2; `None` is eps^2/2.
    pub variance: Option<f64>,
    /// eps.
    pub target: f64,
}

const HYPOTHESES: Hypotheses = Hypotheses("smooth");

impl Recipe for Smooth {
    fn plan(&self) -> Result<Plan, RecipeError> {
        let (eta, steps, variance) = self.step_size_and_count()?;
        let batches = BatchRule::Drift {
            growth: self.growth,
            floor: self.floor,
            target_variance: variance,
            at_least: 1,
        };
        let k = steps as f64;
        let drift = self.drift(eta.to_f64(), k, variance);
        let (b2, floor2) = (self.growth * self.growth, self.floor * self.floor);
        Ok(Plan {
            recipe: "smooth",
            schedule: unanchored(&eta, steps, batches, Output::Uniform),
            guarantee: Guarantee {
                measure: Measure::GradientSquared,
                point: Output::Uniform,
                bound: self.target * self.target,
            },
            cost: Cost::at_most(k * (1.0 + (b2 * drift + floor2) / variance)),
        })
    }
}

impl Smooth {
    fn step_size_and_count(&self) -> Result<(Exact, u64, f64), RecipeError> {
        let l = HYPOTHESES.positive(Constant::Smoothness, self.smoothness)?;
        let delta = HYPOTHESES.non_negative(Constant::Gap, self.gap)?;
        HYPOTHESES.non_negative(Constant::Growth, self.growth)?;
        HYPOTHESES.non_negative(Constant::Floor, self.floor)?;
        let eps2 = HYPOTHESES.positive(Constant::Target, self.target)?.pow(2);
        let sigma2 = match self.variance {
            Some(variance) => HYPOTHESES.positive(Constant::Variance, variance)?,
            None => &eps2 / Exact::from_count(2),
        };
        let eta = smallest(1 / &l, [over(eps2.clone(), 2 * &l * &sigma2)]);
        let steps = HYPOTHESES.count("K", (4 * delta / (&eta * eps2)).ceil_count())?;
        Ok((eta, steps, sigma2.to_f64()))
    }

    /// The bound on E|x_t - x0|^2 over the run.
    pub fn drift_bound(&self) -> Result<f64, RecipeError> {
        let (eta, steps, variance) = self.step_size_and_count()?;
        Ok(self.drift(eta.to_f64(), steps as f64, variance))
    }

    fn drift(&self, eta: f64, k: f64, sigma2: f64) -> f64 {
        let Self { smoothness: l, gap: delta, .. } = *self;
        4.0 * eta * k * delta + 2.0 * k * k * l * eta.powi(3) * sigma2 + 2.0 * eta * eta * k * sigma2
    }

    /// The paper's expanded display of the expected samples. It holds only when eps^2 <= 2 sigma^2; elsewhere
    /// this is an error, since the display is then no bound.
    pub fn printed_bound(&self) -> Result<f64, RecipeError> {
        let (_, _, s2) = self.step_size_and_count()?;
        let Self { smoothness: l, gap: d, growth, floor, target: e, .. } = *self;
        let needs = "eps^2 <= 2 sigma^2 (the case of the printed display)";
        HYPOTHESES.require(e * e <= 2.0 * s2, needs, "target", e)?;
        let (big, small, e2) = (growth * growth, floor * floor, e * e);
        Ok(256.0 * big * d.powi(3) * l / e2.powi(3)
            + 80.0 * big * d * d / (e2 * s2)
            + 32.0 * big * d * d / (e2 * e2)
            + 8.0 * big * d * e2 / (l * s2 * s2)
            + 8.0 * big * d / (l * s2)
            + big * e2.powi(3) / (4.0 * l * l * s2.powi(3))
            + big * e2 * e2 / (2.0 * l * l * s2 * s2)
            + 8.0 * d * l * small / (e2 * e2)
            + 8.0 * d * l * s2 / (e2 * e2)
            + small / s2
            + 1.0)
    }
}
