//! Theorem 6: how much anchoring and how much sampling, together, keep the drift bounded.

use serde::Serialize;

use super::{Constant, Hypotheses, RecipeError};
use crate::exact::Exact;

/// Theorem 6, as a checker and a planner.
///
/// For a convex L-smooth f and steps x_{t+1} = beta x0 + (1 - beta) x_t - eta g_t with N samples each, the
/// conditions beta (1 - 2 beta) N >= eta^2 B^2 and eta <= sqrt(beta)/(2L) are *sufficient* for
/// E|x_{t+1} - x*|^2 <= (1 - beta/2) |x_t - x*|^2 + beta |x0 - x*|^2 + eta^2 b^2/N. They are not necessary, as the
/// paper says they are: for f = 0 the exact condition is beta (1 - beta) N >= eta^2 B^2.
///
/// ```
/// use pasta_opt::recipe::Uncertainty;
///
/// let principle = Uncertainty { smoothness: 1.0, growth: 3.0, eta: 0.09 };
/// let check = principle.check(0.1, 1)?;
/// assert!(check.variance_ok && check.eta_ok);
/// # Ok::<(), pasta_opt::recipe::RecipeError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Uncertainty {
    /// L.
    pub smoothness: f64,
    /// B.
    pub growth: f64,
    /// eta.
    pub eta: f64,
}

/// Theorem 6 at one (beta, N).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct UncertaintyCheck {
    /// beta (1 - 2 beta) N.
    pub lhs: f64,
    /// eta^2 B^2.
    pub rhs: f64,
    /// lhs >= rhs.
    pub variance_ok: bool,
    /// sqrt(beta)/(2L).
    pub eta_cap: f64,
    /// eta <= eta_cap.
    pub eta_ok: bool,
    /// The smallest N with lhs >= rhs, if beta < 1/2.
    #[serde(rename = "min_N")]
    pub min_n: Option<u64>,
    /// beta (1 - beta) N: what the exact condition for f = 0 compares with rhs.
    pub exact_noise_lhs: f64,
    /// Whether the drift is bounded for f = 0.
    pub exact_noise_ok: bool,
}

/// The anchoring strengths that satisfy both conditions for some N.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct AnchorRange {
    /// 4 L^2 eta^2: below it, eta <= sqrt(beta)/(2L) fails.
    pub smallest: f64,
    /// The supremum of the range, 1/2, is not attained.
    pub below: f64,
    /// The batch size at beta = 1/4 (or at the smallest beta allowed, if that is larger): no beta allows a smaller N.
    pub least_batch: u64,
    /// The interval of beta that N = 1 allows, if there is one.
    pub single_sample: Option<(f64, f64)>,
}

const HYPOTHESES: Hypotheses = Hypotheses("uncertainty");

impl Uncertainty {
    /// Both conditions, and the exact one for f = 0, at (beta, N).
    pub fn check(&self, beta: f64, n: u64) -> Result<UncertaintyCheck, RecipeError> {
        let (l, rhs, eta) = self.exact()?;
        HYPOTHESES.require((0.0..=1.0).contains(&beta), "beta in [0, 1]", "beta", beta)?;
        HYPOTHESES.require(n > 0, "a batch of at least one sample", "batch", 0.0)?;
        let exact_beta = Exact::from_f64(beta);
        let per_sample = &exact_beta * (1 - 2 * &exact_beta);
        let samples = Exact::from_count(n);
        let lhs = &per_sample * &samples;
        let exact_noise_lhs = &exact_beta * (1 - &exact_beta) * &samples;
        let min_n = if per_sample.is_positive() {
            Some(HYPOTHESES.count("N", (&rhs / per_sample).ceil_count())?.max(1))
        } else {
            rhs.is_zero().then_some(1)
        };
        Ok(UncertaintyCheck {
            variance_ok: lhs >= rhs,
            lhs: lhs.to_f64(),
            eta_cap: beta.sqrt() / (2.0 * self.smoothness),
            // eta <= sqrt(beta)/(2L), squared so that it is decided exactly.
            eta_ok: 4 * l.pow(2) * eta.pow(2) <= exact_beta,
            min_n,
            exact_noise_ok: exact_noise_lhs >= rhs,
            exact_noise_lhs: exact_noise_lhs.to_f64(),
            rhs: rhs.to_f64(),
        })
    }

    /// Which beta satisfy the theorem for some N, and which N some beta allows.
    pub fn anchor_range(&self) -> Result<AnchorRange, RecipeError> {
        let (l, rhs, eta) = self.exact()?;
        let smallest = 4 * l.pow(2) * eta.pow(2);
        let half = Exact::ratio(1, 2);
        HYPOTHESES.require(smallest < half, "eta < 1/(2 sqrt(2) L) (some beta < 1/2)", "eta", self.eta)?;
        // beta (1 - 2 beta) is largest at 1/4.
        let best = smallest.clone().max(Exact::ratio(1, 4));
        let least_batch = (&rhs / (&best * (1 - 2 * &best))).ceil_count();
        Ok(AnchorRange {
            smallest: smallest.to_f64(),
            below: 0.5,
            least_batch: HYPOTHESES.count("N", least_batch)?.max(1),
            single_sample: single_sample(smallest.to_f64(), rhs.to_f64()),
        })
    }

    fn exact(&self) -> Result<(Exact, Exact, Exact), RecipeError> {
        let l = HYPOTHESES.non_negative(Constant::Smoothness, self.smoothness)?;
        let growth = HYPOTHESES.non_negative(Constant::Growth, self.growth)?;
        let met = self.eta > 0.0 && self.eta.is_finite();
        HYPOTHESES.require(met, "a positive finite step size", "eta", self.eta)?;
        let eta = Exact::from_f64(self.eta);
        Ok((l, (&eta * growth).pow(2), eta))
    }
}

/// The solutions of beta (1 - 2 beta) >= rhs that are at least `smallest`.
fn single_sample(smallest: f64, rhs: f64) -> Option<(f64, f64)> {
    let discriminant = 1.0 - 8.0 * rhs;
    let root = (discriminant >= 0.0).then(|| discriminant.sqrt())?;
    let high = (1.0 + root) / 4.0;
    // (1 - root)/4 without cancellation.
    let low = (2.0 * rhs / (1.0 + root)).max(smallest);
    (low <= high).then_some((low, high))
}
