//! Lower bounds: what no zero-respecting method can beat. (The upper bounds are the recipes' costs.)
//!
//! A method is zero-respecting if it only moves along coordinates in which the oracle has answered something
//! other than zero. The bounds are proved for such methods. The paper extends them to every randomised
//! algorithm by a rotation; that argument has a gap, so nothing here claims it.

mod lower_mss;
mod lower_smooth;

pub use lower_mss::LowerMeanSquareSmooth;
pub use lower_smooth::LowerSmooth;
use serde::Serialize;

use crate::exact::Exact;
use crate::recipe::{Constant, Hypotheses, RecipeError};

/// l1: Lipschitz constant of the gradient of the base chain.
pub const CHAIN_SMOOTHNESS: u64 = 152;
/// lbar1: mean-square Lipschitz constant of the base chain's estimator, times sqrt(p).
pub const CHAIN_MS_SMOOTHNESS: u64 = 328;
/// varsigma: the base chain's estimator has variance at most varsigma^2 (1 - p)/p.
pub const CHAIN_NOISE: u64 = 23;

/// A lower bound with the hard instance that proves it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LowerBound {
    /// Whether the theorem's conditions hold. If not, the bounds are absent.
    pub admissible: bool,
    /// The largest target that the theorem admits.
    pub eps_max: f64,
    /// T: length of the chain.
    #[serde(rename = "T")]
    pub chain: u64,
    /// p: probability that a sample reveals the next coordinate.
    pub p: f64,
    /// The closed form: at least so many samples are needed in expectation.
    pub bound: Option<f64>,
    /// (T - 1)/(2p): what the closed form is simplified from.
    pub sharp_bound: Option<f64>,
    /// The two terms of the closed form, from B and from b.
    pub terms: [f64; 2],
    /// D: how far the chain is from the start.
    #[serde(rename = "D")]
    pub distance: f64,
    /// lambda: scale of a chain coordinate.
    pub lambda: f64,
    /// L lambda^2/(2 l1): scale of the chain's value.
    pub scale: f64,
    /// L of the composite: the given one, or the one that keeps it mean-square smooth.
    pub effective_smoothness: f64,
}

/// The constants that both theorems share, checked.
struct Setting {
    gap: Exact,
    growth: Exact,
    floor: Exact,
    eps: Exact,
}

impl Setting {
    fn check(
        hypotheses: Hypotheses,
        gap: f64,
        growth: f64,
        floor: f64,
        target: f64,
    ) -> Result<Self, RecipeError> {
        Ok(Self {
            gap: hypotheses.positive(Constant::Gap, gap)?,
            growth: hypotheses.non_negative(Constant::Growth, growth)?,
            floor: hypotheses.non_negative(Constant::Floor, floor)?,
            eps: hypotheses.positive(Constant::Target, target)?,
        })
    }

    /// 256 varsigma^2 eps^4.
    fn signal(&self) -> Exact {
        256 * Exact::from_count(CHAIN_NOISE).pow(2) * self.eps.pow(4)
    }

    /// B^2 Delta^2 + 64 b^2 eps^2.
    fn noise(&self) -> Exact {
        self.growth.pow(2) * self.gap.pow(2) + 64 * self.floor.pow(2) * self.eps.pow(2)
    }

    /// p, exactly.
    fn reveal(&self) -> Exact {
        self.signal() / (self.noise() + self.signal())
    }
}
