//! Theorem 2: lower bound under mean-square smoothness.

use super::{CHAIN_MS_SMOOTHNESS, CHAIN_NOISE, CHAIN_SMOOTHNESS, LowerBound, Setting};
use crate::exact::Exact;
use crate::recipe::{Constant, Hypotheses, RecipeError};

/// Theorem 2: for some f with gap Delta and a mean-square smooth BG-0 oracle, every zero-respecting method needs
/// at least B Lbar Delta^2/(98304 sqrt2 lbar1 varsigma eps^4) + b Lbar Delta/(12288 sqrt2 lbar1 varsigma eps^3) samples
/// in expectation to reach |grad f| <= eps, if B < varsigma Lbar/(96 lbar1) and eps is at most `eps_max`.
///
/// At targets that a run can reach the bound is numerically tiny; it shows the order eps^-4, not a cost. The
/// theorem's statistical terms B^2 Delta^2/eps^4 and b^2/eps^2 have an unknown constant and are reported apart, by
/// [`statistical_floor`](Self::statistical_floor).
///
/// ```
/// use pasta_opt::bounds::LowerMeanSquareSmooth;
///
/// let limit = LowerMeanSquareSmooth { ms_smoothness: 1.0, gap: 1.0, growth: 1e-4, floor: 0.0, target: 8.5e-4 };
/// assert_eq!(limit.evaluate()?.chain, 5);
/// # Ok::<(), pasta_opt::recipe::RecipeError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LowerMeanSquareSmooth {
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

const HYPOTHESES: Hypotheses = Hypotheses("lower-mss");

impl LowerMeanSquareSmooth {
    /// The bound, and the parameters of the instance that proves it.
    pub fn evaluate(&self) -> Result<LowerBound, RecipeError> {
        let lbar = HYPOTHESES.positive(Constant::MsSmoothness, self.ms_smoothness)?;
        let setting = Setting::check(HYPOTHESES, self.gap, self.growth, self.floor, self.target)?;
        let Setting { gap, growth, floor, eps } = &setting;
        let p = setting.reveal();
        // T = floor(Lbar Delta sqrt(p)/(768 lbar1 eps^2)), through its square, which is rational.
        let chain_squared = (&lbar * gap).pow(2) * &p / (768 * CHAIN_MS_SMOOTHNESS * eps.pow(2)).pow(2);
        let chain = HYPOTHESES.count("T", chain_squared.floor_sqrt_count())?;

        // eps <= eps_max is equivalent to T >= 2; B < B_max is strict.
        let growth_admissible = growth < &(Exact::ratio(CHAIN_NOISE, 96 * CHAIN_MS_SMOOTHNESS) * &lbar);
        let admissible = growth_admissible && chain >= 2;

        let rate = CHAIN_MS_SMOOTHNESS * CHAIN_NOISE;
        let sqrt2 = std::f64::consts::SQRT_2;
        let from_growth = growth * &lbar * gap.pow(2) / (98_304 * rate * eps.pow(4));
        let from_floor = floor * &lbar * gap / (12_288 * rate * eps.pow(3));
        let terms = [from_growth.to_f64() / sqrt2, from_floor.to_f64() / sqrt2];

        let smoothness =
            (Exact::ratio(CHAIN_SMOOTHNESS, CHAIN_MS_SMOOTHNESS) * &lbar).to_f64() * p.to_f64().sqrt();
        let lambda = 4.0 * CHAIN_SMOOTHNESS as f64 * self.target / smoothness;
        Ok(LowerBound {
            admissible,
            eps_max: self.eps_max(),
            chain,
            bound: admissible.then_some(terms[0] + terms[1]),
            sharp_bound: admissible.then(|| (Exact::from_count(chain.max(1) - 1) / (2 * &p)).to_f64()),
            p: p.to_f64(),
            terms,
            distance: (gap / (4 * eps)).to_f64(),
            lambda,
            scale: smoothness * lambda * lambda / (2.0 * CHAIN_SMOOTHNESS as f64),
            effective_smoothness: smoothness,
        })
    }

    /// The largest B that the theorem admits; B must stay strictly below.
    pub fn growth_limit(&self) -> f64 {
        CHAIN_NOISE as f64 * self.ms_smoothness / (96.0 * CHAIN_MS_SMOOTHNESS as f64)
    }

    /// B^2 Delta^2/(64 eps^4) + b^2/eps^2: the theorem's statistical terms, up to an unknown constant.
    pub fn statistical_floor(&self) -> f64 {
        let Self { gap, growth, floor, target, .. } = *self;
        ((growth * gap / target).powi(2) / 64.0 + floor * floor) / (target * target)
    }

    /// The printed eps_max; 0 if B is too large for any.
    fn eps_max(&self) -> f64 {
        let Self { gap, growth, floor, .. } = *self;
        let noise = CHAIN_NOISE as f64;
        let limit = self.growth_limit();
        if growth >= limit {
            return 0.0;
        }
        // varsigma^2 Delta^2 (B_max^2 - B^2); then sqrt(4 b^4 + c) - 2 b^2 without cancellation.
        let c = (noise * gap).powi(2) * (limit - growth) * (limit + growth);
        let floor2 = floor * floor;
        let root = (4.0 * floor2 * floor2 + c).sqrt();
        (c / (root + 2.0 * floor2)).sqrt() / (4.0 * noise)
    }
}
