//! Theorem 10: weakly convex, by anchored epochs.

use super::{Constant, Cost, Guarantee, Hypotheses, Plan, Recipe, RecipeError, over, smallest};
use crate::exact::Exact;
use crate::objective::Measure;
use crate::schedule::{BatchRule, Estimator, Output, Schedule, Sequence};

/// Theorem 10: a rho-weakly convex, G-Lipschitz f, possibly non-smooth, by epochs of anchored steps.
///
/// **Problem.** f + rho/2 |x|^2 is convex, every subgradient has norm at most G *everywhere*,
/// f(x0) - inf f <= Delta; the oracle is unbiased for a subgradient with variance at most
/// B^2 |x - x0|^2 + b^2.
///
/// **Schedule.** lambda > rho, mu = lambda - rho, q = 3 lambda^2 - rho^2, beta = lambda eta,
/// eta = min{mu^3/(96 lambda^2 q), mu^3 eps^2/(256 G^2 lambda^2 q)}, S = ceil(32 lambda^2 Delta/(mu eps^2)),
/// K = ceil(1 + log(12 q/mu^2)/(eta mu)); the first batch of an epoch has
/// N_0 = max{1, ceil max{(4/3 + 2 mu^2/(3q)) B^2 eta^2 S^2, 16 b^2 eta^2 lambda^2/(3 eps^2)}} samples, the
/// others N = max{1, ceil max{(96 q/mu^3 + 48/mu) B^2 eta S^2, 128 b^2 eta q lambda^2/(mu^3 eps^2),
/// 72 B^2 eta q/mu^3}}. The paper prints lambda^2 on the other side of both b terms; so printed, the
/// promise fails for lambda > 1. [`Formulas::AsPrinted`] runs that version.
///
/// **Promise.** The mean over s <= S of E|grad phi_{1/lambda}(x_{s-1})|^2 is at most eps^2: it holds in
/// expectation for an anchor drawn uniformly.
///
/// **Tight?** Upper bound; its order eps^-6 is the best possible for zero-respecting methods (Theorem 1).
///
/// **Expected samples.** S (N_0 + (K - 1) N), exactly.
///
/// **Reference.** Theorem 10 (weak convexity).
///
/// | field | symbol | range |
/// |---|---|---|
/// | rho | rho | >= 0 |
/// | lambda | lambda | > rho |
/// | lipschitz | G | >= 0 |
/// | gap | Delta | >= 0 |
/// | growth | B | >= 0 |
/// | floor | b | >= 0 |
/// | target | eps | > 0 |
/// | formulas | | corrected, or as printed |
///
/// ```
/// use pasta_opt::recipe::{Formulas, Recipe, WeaklyConvex};
///
/// let recipe = WeaklyConvex {
///     rho: 1.0,
///     lambda: 2.0,
///     lipschitz: 1.0,
///     gap: 1.0,
///     growth: 0.5,
///     floor: 0.5,
///     target: 0.3,
///     formulas: Formulas::Corrected,
/// };
/// assert_eq!(recipe.plan()?.cost.exact, Some(3_883_676_162_403));
/// # Ok::<(), pasta_opt::recipe::RecipeError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WeaklyConvex {
    /// rho.
    pub rho: f64,
    /// lambda.
    pub lambda: f64,
    /// G.
    pub lipschitz: f64,
    /// Delta.
    pub gap: f64,
    /// B.
    pub growth: f64,
    /// b.
    pub floor: f64,
    /// eps.
    pub target: f64,
    /// Which batch sizes.
    pub formulas: Formulas,
}

/// Which version of Theorem 10's batch sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Formulas {
    /// The ones that the proof needs.
    Corrected,
    /// The ones that the paper prints. Their promise fails for lambda > 1.
    AsPrinted,
}

impl Recipe for WeaklyConvex {
    fn plan(&self) -> Result<Plan, RecipeError> {
        let name = match self.formulas {
            Formulas::Corrected => "weakly-convex",
            Formulas::AsPrinted => "weakly-convex-as-printed",
        };
        let hypotheses = Hypotheses(name);
        let eps2 = hypotheses.positive(Constant::Target, self.target)?.pow(2);
        let (schedule, cost) = self.anchored_epochs(hypotheses, &eps2)?;
        Ok(Plan {
            recipe: name,
            schedule,
            guarantee: Guarantee {
                measure: Measure::MoreauSquared { lambda: self.lambda },
                point: Output::RandomAnchor,
                bound: self.target * self.target,
            },
            cost,
        })
    }
}

impl WeaklyConvex {
    /// The schedule and its cost for a squared target that need not be the square of a double.
    pub(super) fn anchored_epochs(
        &self,
        hypotheses: Hypotheses,
        eps2: &Exact,
    ) -> Result<(Schedule, Cost), RecipeError> {
        let rho = hypotheses.non_negative(Constant::Rho, self.rho)?;
        let lambda = hypotheses.positive(Constant::Lambda, self.lambda)?;
        hypotheses.require(lambda > rho, "lambda > rho", "lambda", self.lambda)?;
        let g2 = hypotheses.non_negative(Constant::Lipschitz, self.lipschitz)?.pow(2);
        let delta = hypotheses.non_negative(Constant::Gap, self.gap)?;
        let b2 = hypotheses.non_negative(Constant::Growth, self.growth)?.pow(2);
        let floor2 = hypotheses.non_negative(Constant::Floor, self.floor)?.pow(2);

        let mu = &lambda - &rho;
        let lambda2 = lambda.pow(2);
        let q = 3 * &lambda2 - rho.pow(2);
        let mu3 = mu.pow(3);

        let eta = smallest(&mu3 / (96 * &lambda2 * &q), [over(&mu3 * eps2, 256 * g2 * &lambda2 * &q)]);
        let epochs = hypotheses.count("S", (32 * &lambda2 * delta / (&mu * eps2)).ceil_count())?;
        let log = libm::log((12 * &q / mu.pow(2)).to_f64());
        let steps = hypotheses.rounded_count("K", 1.0 + log / (&eta * &mu).to_f64())?;

        let s2 = Exact::from_count(epochs).pow(2);
        let floor_term = match self.formulas {
            Formulas::Corrected => &floor2 * &lambda2 / eps2,
            Formulas::AsPrinted => &floor2 / (&lambda2 * eps2),
        };
        let first = ((Exact::ratio(4, 3) + Exact::ratio(2, 3) * mu.pow(2) / &q) * &b2 * eta.pow(2) * &s2)
            .max(Exact::ratio(16, 3) * &floor_term * eta.pow(2));
        let large = ((96 * &q / &mu3 + 48 / &mu) * &b2 * &eta * &s2)
            .max(128 * &floor_term * &eta * &q / &mu3)
            .max(72 * &b2 * &eta * &q / &mu3);
        let first = hypotheses.count("N_0", first.ceil_count())?.max(1);
        let large = hypotheses.count("N", large.ceil_count())?.max(1);

        let schedule = Schedule {
            epochs,
            steps,
            eta: Sequence::Constant(eta.to_f64()),
            beta: Sequence::Constant((lambda * eta).to_f64()),
            estimator: Estimator::Minibatch,
            first: BatchRule::Fixed(first),
            large: BatchRule::Fixed(large),
            output: Output::RandomAnchor,
        };
        Ok((schedule, exact_cost(hypotheses, epochs, steps, first, large)?))
    }
}

/// S (N_0 + (K - 1) N).
fn exact_cost(
    hypotheses: Hypotheses,
    epochs: u64,
    steps: u64,
    first: u64,
    large: u64,
) -> Result<Cost, RecipeError> {
    let [s, k, n0, n] = [epochs, steps, first, large].map(u128::from);
    // (K - 1) N and its sum with N_0 fit: each factor is at most 2^63.
    let epoch = n0 + k.saturating_sub(1) * n;
    let total = s.checked_mul(epoch).ok_or(f64::INFINITY);
    total.map(Cost::exactly).map_err(|_| RecipeError::TooMany {
        recipe: hypotheses.0,
        count: "samples",
        needed: s as f64 * epoch as f64,
    })
}
