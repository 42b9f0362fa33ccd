//! Recipes: one file per theorem. Constants in; schedule, guarantee and expected cost out; hypotheses checked.
//!
//! A new theorem is a file here, a row in [`TABLE`], and a row in `docs/theorems.md`.

mod constants;
mod horizon_sgd;
mod lipschitz_convex;
mod mean_square_smooth;
mod pl;
mod smooth;
mod smooth_anchored;
mod smooth_convex;
mod star_convex;
mod table;
mod uncertainty;
mod weakly_convex;

pub use constants::{Constant, Constants};
pub use horizon_sgd::HorizonSgd;
pub use lipschitz_convex::LipschitzConvex;
pub use mean_square_smooth::MeanSquareSmooth;
pub use pl::Pl;
use serde::Serialize;
pub use smooth::Smooth;
pub use smooth_anchored::SmoothAnchored;
pub use smooth_convex::SmoothConvex;
pub use star_convex::StarConvex;
pub use table::{RecipeRow, TABLE, best_target, find};
pub use uncertainty::{AnchorRange, Uncertainty, UncertaintyCheck};
pub use weakly_convex::{Formulas, WeaklyConvex};

use crate::exact::Exact;
use crate::objective::Measure;
use crate::schedule::{BatchRule, Estimator, Output, Schedule, Sequence};

/// Constants of a problem with a target accuracy: all that is needed to plan a run.
pub trait Recipe: std::fmt::Debug {
    /// The schedule with its guarantee and its expected cost, or the hypothesis that fails.
    fn plan(&self) -> Result<Plan, RecipeError>;
}

/// A run before it starts: what it will do, what it promises, what it will cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Plan {
    /// The recipe's name in [`TABLE`].
    pub recipe: &'static str,
    /// The settings of Algorithm 1.
    pub schedule: Schedule,
    /// What is promised, and of which point.
    pub guarantee: Guarantee,
    /// What it costs at most, in expectation.
    pub cost: Cost,
}

/// E measure(point) <= bound, if the hypotheses of the theorem hold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Guarantee {
    /// What is bounded, in expectation over everything random.
    pub measure: Measure,
    /// Of which point.
    pub point: Output,
    /// The bound.
    pub bound: f64,
}

/// Expected cost of a run: an upper bound, or the exact number where it is not random.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Cost {
    /// Oracle samples.
    pub samples: f64,
    /// Stochastic gradient evaluations: a paired sample counts twice.
    pub evaluations: f64,
    /// The number of samples where it is known exactly before the run.
    pub exact: Option<u128>,
}

impl Cost {
    /// A cost that is not random, one evaluation a sample.
    fn exactly(samples: u128) -> Self {
        Self { samples: samples as f64, evaluations: samples as f64, exact: Some(samples) }
    }

    /// An upper bound, one evaluation a sample.
    fn at_most(samples: f64) -> Self {
        Self { samples, evaluations: samples, exact: None }
    }
}

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RecipeError {
    /// A hypothesis of the theorem does not hold.
    #[error("{recipe}: needs {needs}, but {name} = {got:?}")]
    Unmet {
        /// The recipe.
        recipe: &'static str,
        /// The hypothesis.
        needs: &'static str,
        /// The constant that breaks it.
        name: &'static str,
        /// Its value.
        got: f64,
    },
    /// A count is beyond 2^63.
    #[error("{recipe}: {count} would be {}, more than 2^63", number(*.needed))]
    TooMany {
        /// The recipe.
        recipe: &'static str,
        /// What is counted.
        count: &'static str,
        /// How many.
        needed: f64,
    },
    /// A constant was not given.
    #[error("{recipe}: needs {} ({}, {})", constant.name(), constant.symbol(), constant.meaning())]
    Missing {
        /// The recipe.
        recipe: &'static str,
        /// The constant.
        constant: Constant,
    },
    /// A constant was given that the recipe does not use.
    #[error("{recipe}: does not use {}; it uses {used}", constant.name())]
    Unused {
        /// The recipe.
        recipe: &'static str,
        /// The constant.
        constant: Constant,
        /// What it does use.
        used: String,
    },
    /// No target is cheap enough.
    #[error("{recipe}: no target costs at most {budget} samples")]
    Budget {
        /// The recipe.
        recipe: &'static str,
        /// The budget.
        budget: f64,
    },
}

impl RecipeError {
    /// The name of the constant at fault, where there is one.
    pub fn constant(&self) -> Option<&'static str> {
        match self {
            Self::Unmet { name, .. } => Some(name),
            Self::Missing { constant, .. } | Self::Unused { constant, .. } => Some(constant.name()),
            Self::TooMany { .. } | Self::Budget { .. } => None,
        }
    }
}

/// A count that is too large, in words where no double holds it.
fn number(needed: f64) -> String {
    if needed.is_finite() { format!("{needed:e}") } else { "beyond all bounds".into() }
}

/// Checks hypotheses on behalf of one recipe.
#[derive(Clone, Copy)]
pub(crate) struct Hypotheses(pub(crate) &'static str);

impl Hypotheses {
    pub(crate) fn positive(self, constant: Constant, value: f64) -> Result<Exact, RecipeError> {
        let needs = "a positive finite constant";
        self.require(value > 0.0 && value.is_finite(), needs, constant.name(), value)?;
        Ok(Exact::from_f64(value))
    }

    pub(crate) fn non_negative(self, constant: Constant, value: f64) -> Result<Exact, RecipeError> {
        let needs = "a finite constant that is not negative";
        self.require(value >= 0.0 && value.is_finite(), needs, constant.name(), value)?;
        Ok(Exact::from_f64(value))
    }

    pub(crate) fn require(
        self,
        met: bool,
        needs: &'static str,
        name: &'static str,
        got: f64,
    ) -> Result<(), RecipeError> {
        if met { Ok(()) } else { Err(RecipeError::Unmet { recipe: self.0, needs, name, got }) }
    }

    pub(crate) fn count(self, count: &'static str, number: Result<u64, f64>) -> Result<u64, RecipeError> {
        number.map_err(|needed| RecipeError::TooMany { recipe: self.0, count, needed })
    }

    /// The ceiling of a formula with a logarithm in it, which has no exact value to take the ceiling of.
    pub(crate) fn rounded_count(self, count: &'static str, number: f64) -> Result<u64, RecipeError> {
        let fits = number <= crate::exact::MAX_COUNT as f64;
        self.count(count, if fits { Ok(number.ceil() as u64) } else { Err(number) })
    }
}

/// One epoch without anchor, minibatches of this rule: the shape of Theorems 3, 4, 5, 8 and 9.
fn unanchored(eta: &Exact, steps: u64, batches: BatchRule, output: Output) -> Schedule {
    Schedule {
        epochs: 1,
        steps,
        eta: Sequence::Constant(eta.to_f64()),
        beta: Sequence::Constant(0.0),
        estimator: Estimator::Minibatch,
        first: batches,
        large: batches,
        output,
    }
}

/// The smallest of the terms whose constants are not zero: a zero constant drops its term.
fn smallest(first: Exact, others: impl IntoIterator<Item = Option<Exact>>) -> Exact {
    others.into_iter().flatten().fold(first, Exact::min)
}

/// `numerator/denominator`, or `None` if the denominator is zero.
fn over(numerator: Exact, denominator: Exact) -> Option<Exact> {
    (!denominator.is_zero()).then(|| numerator / denominator)
}
