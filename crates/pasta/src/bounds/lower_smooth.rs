//! Theorem 1: lower bound for smooth functions.

use super::{CHAIN_NOISE, CHAIN_SMOOTHNESS, LowerBound, Setting};
use crate::exact::Exact;
use crate::recipe::{Constant, Hypotheses, RecipeError};

/// Theorem 1: for some L-smooth f with gap Delta and a BG-0 oracle, every zero-respecting method needs at
/// least B^2 L Delta^3/(1572864 l1 varsigma^2 eps^6) + b^2 L Delta/(24576 l1 varsigma^2 eps^4) samples in expectation to
/// reach |grad f| <= eps, if eps <= sqrt(L Delta/(1536 l1)).
///
/// ```
/// use pasta_opt::bounds::LowerSmooth;
///
/// let bound = LowerSmooth { smoothness: 1.0, gap: 1.0, growth: 1.0, floor: 0.5, target: 0.001 }.evaluate()?;
/// assert_eq!((bound.admissible, bound.chain), (true, 8));
/// # Ok::<(), pasta_opt::recipe::RecipeError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LowerSmooth {
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

const HYPOTHESES: Hypotheses = Hypotheses("lower-smooth");

impl LowerSmooth {
    /// The bound, and the parameters of the instance that proves it.
    pub fn evaluate(&self) -> Result<LowerBound, RecipeError> {
        let l = HYPOTHESES.positive(Constant::Smoothness, self.smoothness)?;
        let setting = Setting::check(HYPOTHESES, self.gap, self.growth, self.floor, self.target)?;
        let Setting { gap, growth, floor, eps } = &setting;
        let l_delta = &l * gap;
        let chain_length = &l_delta / (768 * CHAIN_SMOOTHNESS * eps.pow(2));
        let chain = HYPOTHESES.count("T", chain_length.floor_count())?;
        let p = setting.reveal();

        let scale = CHAIN_SMOOTHNESS * Exact::from_count(CHAIN_NOISE).pow(2);
        let from_growth = growth.pow(2) * &l_delta * gap.pow(2) / (1_572_864 * &scale * eps.pow(6));
        let from_floor = floor.pow(2) * &l_delta / (24_576 * &scale * eps.pow(4));
        let lambda = 4 * CHAIN_SMOOTHNESS * eps / &l;
        let admissible = chain >= 2;
        Ok(LowerBound {
            admissible,
            eps_max: (l_delta / Exact::from_count(1536 * CHAIN_SMOOTHNESS)).to_f64().sqrt(),
            chain,
            bound: admissible.then(|| (&from_growth + &from_floor).to_f64()),
            sharp_bound: admissible.then(|| (Exact::from_count(chain.max(1) - 1) / (2 * &p)).to_f64()),
            p: p.to_f64(),
            terms: [from_growth.to_f64(), from_floor.to_f64()],
            distance: (gap / (4 * eps)).to_f64(),
            scale: (&l * lambda.pow(2) / Exact::from_count(2 * CHAIN_SMOOTHNESS)).to_f64(),
            lambda: lambda.to_f64(),
            effective_smoothness: self.smoothness,
        })
    }
}
