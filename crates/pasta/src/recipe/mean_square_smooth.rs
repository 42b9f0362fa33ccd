//! Theorem 7: mean-square smooth, by PAGE.

use super::{Constant, Cost, Guarantee, Hypotheses, Plan, Recipe, RecipeError};
use crate::exact::{Exact, ceil_sqrt};
use crate::objective::Measure;
use crate::schedule::{BatchRule, Estimator, Output, Schedule, Sequence};

/// Theorem 7: a mean-square smooth oracle, variance reduced by PAGE.
///
/// **Problem.** E|g(x, xi) - g(y, xi)|^2 <= Lbar^2 |x - y|^2 with the same xi at both points,
/// f(x0) - inf f <= Delta, the oracle is unbiased with variance at most B^2 |x - x0|^2 + b^2.
///
/// **Schedule.** One epoch, no anchor. N_ref = max{1, ceil(8 B^2 Delta^2/eps^4 + 2 b^2/eps^2)},
/// b_small = ceil(sqrt(N_ref)), p = b_small/N_ref, eta = 1/(4 Lbar), K = ceil(16 Delta Lbar/eps^2 + 1/p),
/// N_0 = max{1, ceil(2 b^2/eps^2)}, N_t = max{N_ref, ceil(2 (B^2 |x_t - x0|^2 + b^2)/eps^2)}.
///
/// **Promise.** The mean over t < K of E|grad f(x_t)|^2 is at most eps^2: it holds in expectation for an
/// iterate drawn uniformly.
///
/// **Tight?** Upper bound; its order eps^-4 is the best possible for zero-respecting methods (Theorem 2).
///
/// **Expected samples.** The closed display of the paper. Gradient evaluations count the small batches twice.
///
/// **Reference.** Theorem 7 (convergence under mean-square smoothness).
///
/// | field | symbol | range |
/// |---|---|---|
/// | ms_smoothness | Lbar | > 0 |
/// | gap | Delta | >= 0 |
/// | growth | B | >= 0 |
/// | floor | b | >= 0 |
/// | target | eps | > 0 |
///
/// ```
/// use pasta_opt::recipe::{MeanSquareSmooth, Recipe};
///
/// let recipe = MeanSquareSmooth { ms_smoothness: 1.0, gap: 1.0, growth: 1.0, floor: 1.0, target: 0.25 };
/// assert_eq!(recipe.plan()?.schedule.steps, 302);
/// assert_eq!(recipe.batches()?.small, 46);
/// # Ok::<(), pasta_opt::recipe::RecipeError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeanSquareSmooth {
    /// Lbar.
    pub ms_smoothness: f64,
    /// Delta.
    pub gap: f64,
    /// B.
    pub growth: f64,
    /// b.
    pub floor: f64,
    /// eps.
    pub target: f64,
}

/// The counts of Theorem 7.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageBatches {
    /// N_ref: the smallest large batch.
    pub reference: u64,
    /// b: samples of a correction.
    pub small: u64,
    /// N_0: the first batch.
    pub first: u64,
    /// K.
    pub steps: u64,
}

const HYPOTHESES: Hypotheses = Hypotheses("mean-square-smooth");

impl Recipe for MeanSquareSmooth {
    fn plan(&self) -> Result<Plan, RecipeError> {
        let PageBatches { reference, small, first, steps } = self.batches()?;
        let eta = 1 / (4 * Exact::from_f64(self.ms_smoothness));
        let variance = Exact::from_f64(self.target).pow(2) / Exact::from_count(2);
        let samples = self.printed_bound()?;
        Ok(Plan {
            recipe: "mean-square-smooth",
            schedule: Schedule {
                epochs: 1,
                steps,
                eta: Sequence::Constant(eta.to_f64()),
                beta: Sequence::Constant(0.0),
                estimator: Estimator::Page {
                    refresh: Sequence::Constant(Exact::ratio(small, reference).to_f64()),
                    small,
                },
                first: BatchRule::Fixed(first),
                large: BatchRule::Drift {
                    growth: self.growth,
                    floor: self.floor,
                    target_variance: variance.to_f64(),
                    at_least: reference,
                },
                output: Output::Uniform,
            },
            guarantee: Guarantee {
                measure: Measure::GradientSquared,
                point: Output::Uniform,
                bound: self.target * self.target,
            },
            // A correction evaluates each of its samples at two points.
            cost: Cost { samples, evaluations: samples + steps as f64 * small as f64, exact: None },
        })
    }
}

impl MeanSquareSmooth {
    /// The counts, exactly.
    pub fn batches(&self) -> Result<PageBatches, RecipeError> {
        let lbar = HYPOTHESES.positive(Constant::MsSmoothness, self.ms_smoothness)?;
        let delta = HYPOTHESES.non_negative(Constant::Gap, self.gap)?;
        let b2 = HYPOTHESES.non_negative(Constant::Growth, self.growth)?.pow(2);
        let floor2 = HYPOTHESES.non_negative(Constant::Floor, self.floor)?.pow(2);
        let eps2 = HYPOTHESES.positive(Constant::Target, self.target)?.pow(2);

        let first = 2 * &floor2 / &eps2;
        let reference = 8 * b2 * delta.pow(2) / eps2.pow(2) + &first;
        let reference = HYPOTHESES.count("N_ref", reference.ceil_count())?.max(1);
        let small = ceil_sqrt(reference);
        // 1/p as a ratio of integers: through a rounded p, K can come out one too large.
        let steps = 16 * delta * lbar / eps2 + Exact::ratio(reference, small);
        Ok(PageBatches {
            reference,
            small,
            first: HYPOTHESES.count("N_0", first.ceil_count())?.max(1),
            steps: HYPOTHESES.count("K", steps.ceil_count())?,
        })
    }

    /// The paper's closed display of the expected samples, its last line.
    pub fn printed_bound(&self) -> Result<f64, RecipeError> {
        let PageBatches { reference, small, .. } = self.batches()?;
        let Self { ms_smoothness: lbar, gap, growth, floor, target } = *self;
        let (b2, floor2, e2) = (growth * growth, floor * floor, target * target);
        let k = 16.0 * gap * lbar / e2
            + (8.0 * b2 * gap * gap / (e2 * e2) + 2.0 * floor2 / e2 + 1.0).sqrt()
            + 1.0;
        let steps = self.per_step(k, small as f64, small as f64 / reference as f64);
        Ok(2.0 * floor2 / e2 + 1.0 + k * steps)
    }

    /// The display before K is replaced by its bound: sharper.
    pub fn unsimplified_bound(&self) -> Result<f64, RecipeError> {
        let PageBatches { reference, small, steps, .. } = self.batches()?;
        let (k, floor2) = (steps as f64, self.floor * self.floor);
        let per_step = self.per_step(k, small as f64, small as f64 / reference as f64);
        Ok(2.0 * floor2 / (self.target * self.target) + 1.0 + k * per_step)
    }

    /// The bound on the expected samples of a step, when there are k of them.
    fn per_step(&self, k: f64, small: f64, p: f64) -> f64 {
        let Self { ms_smoothness: lbar, gap, growth, floor, target } = *self;
        let (b2, floor2, e2) = (growth * growth, floor * floor, target * target);
        let eta2 = 1.0 / (16.0 * lbar * lbar);
        let drift = k * eta2 * (32.0 * gap * lbar + 2.0 * e2 / p + e2);
        2.0 * small + p + p * 2.0 * floor2 / e2 + p * 2.0 * b2 / e2 * drift
    }
}
