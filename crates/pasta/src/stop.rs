//! Why a walk stopped, and so what its point means.

use serde::{Deserialize, Serialize};

/// Why a walk stopped, and so what its point means.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Stop {
    /// All planned steps were taken: the recipe's promise, if it has one, holds for the output point.
    PlannedEnd,
    /// The next step would have overdrawn the budget: nothing is promised.
    OutOfBudget,
    /// A condition of the caller was met: it means what the caller meant.
    Asked,
    /// No further step would be kept: the point is the last that passed a check.
    Settled,
    /// The gate was told to stop: nothing is promised. The run can go on.
    Interrupted,
    /// The point is certified: with the stated confidence, under the stated assumption, its gradient is small.
    Certified,
    /// The run stopped on a certificate that is void, and says why: losses contradict gradients at the point, no noise was seen where
    /// some is assumed, or its assumption is known to be false. The last no walk says by itself, since samples do not tell; the caller who knows the
    /// noise says it. Nothing is promised.
    Void,
    /// The run left the region where numbers mean something: the point is the last sane one.
    Diverged(Divergence),
    /// At one and the same point some answers of the oracle are finite and others are not: it is the oracle, and not the distance. The point is
    /// the last sane one.
    NotFinite(Mixed),
    /// f falls as far as the run went, and is still falling there: it seems to have no minimum.
    Unbounded(Fall),
    /// The target is not within reach: nothing is promised. The run can go on with a budget, or without a limit.
    Hopeless(Hopeless),
}

impl Stop {
    /// Its name in files.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::PlannedEnd => "planned-end",
            Self::OutOfBudget => "out-of-budget",
            Self::Asked => "asked",
            Self::Settled => "settled",
            Self::Interrupted => "interrupted",
            Self::Certified => "certified",
            Self::Void => "void",
            Self::Diverged(_) => "diverged",
            Self::NotFinite(_) => "not-finite",
            Self::Unbounded(_) => "unbounded",
            Self::Hopeless(_) => "hopeless",
        }
    }

    /// What happened and, but for the planned end, what the output point is then worth. (After the planned
    /// end it is worth what the recipe promises.)
    pub fn meaning(&self) -> String {
        match self {
            Self::PlannedEnd => "all planned steps were taken".into(),
            Self::OutOfBudget => {
                "the budget has no room for another step; nothing is promised for this point".into()
            }
            Self::Asked => "the caller's own condition was met; nothing else is promised".into(),
            Self::Settled => "no further step passed its check; the point is the last that did".into(),
            Self::Interrupted => "it was interrupted; nothing is promised for this point".into(),
            Self::Certified => {
                "a certificate of the target succeeded, and says what the point is worth".into()
            }
            Self::Void => "the certificate that ended it is void; nothing is promised for this point".into(),
            Self::Diverged(divergence) => format!("diverged: {divergence}; the last finite iterate is kept"),
            Self::NotFinite(mixed) => format!("{mixed}; the last finite iterate is kept"),
            Self::Unbounded(fall) => format!("unbounded: {fall}"),
            Self::Hopeless(hopeless) => format!("{hopeless}; nothing is promised for this point"),
        }
    }

    /// True if the run left the region where its numbers mean something, so that its point is worth nothing.
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Diverged(_) | Self::NotFinite(_) | Self::Unbounded(_))
    }

    /// The step at which it was noticed that the run is [lost](Self::is_lost).
    pub fn lost_at(&self) -> Option<u64> {
        match self {
            Self::Diverged(divergence) => Some(divergence.step()),
            Self::NotFinite(mixed) => Some(mixed.step),
            Self::Unbounded(fall) => Some(fall.step),
            _ => None,
        }
    }
}

/// Answers at one point of which some are finite and others are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error(
    "{not_finite} of {answers} answers of the oracle at one point are not finite (seen at step {step}): mend the oracle, or leave such samples out by on_nan = \"skip\", which biases the result"
)]
pub struct Mixed {
    /// The step of the run at which it was noticed.
    pub step: u64,
    /// How many were not finite.
    pub not_finite: u64,
    /// Of how many.
    pub answers: u64,
}

/// How far f fell, and how fast it is still falling.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error(
    "f fell by about {fell:.3e} over a distance of {distance:.3e}, and is still falling there, with slope {slope:.3e} (at the start: {slope_at_start:.3e}); is its sign right, and has it a minimum?"
)]
pub struct Fall {
    /// The step of the run at which it was noticed.
    pub step: u64,
    /// f(start) - f(x), about.
    pub fell: f64,
    /// |x - x0|.
    pub distance: f64,
    /// The slope at x of the way from the start.
    pub slope: f64,
    /// The slope of the same way at the start.
    pub slope_at_start: f64,
}

/// Why a target is not within reach.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Hopeless {
    /// Its certificate would need far more samples than were drawn.
    #[error(
        "the target {target:?} is not within reach: with the noise at this point its certificate needs about {needed:.1e} samples, and {drawn} were drawn; they are enough for about {}",
        short(*.reach)
    )]
    Noise {
        /// The target.
        target: f64,
        /// What the run's steps have drawn.
        drawn: u128,
        /// What the certificate would need.
        needed: f64,
        /// A target whose certificate needs as many samples as were drawn.
        reach: f64,
    },
    /// The gradient has not become smaller for several doublings of the samples.
    #[error(
        "the target {target:?} is not within reach: |grad f| is about {} and has not become a tenth smaller since {since} samples, and {drawn} were drawn",
        short(*.gradient)
    )]
    Stuck {
        /// The target.
        target: f64,
        /// What the run's steps have drawn.
        drawn: u128,
        /// What they had drawn when it last became smaller.
        since: u128,
        /// The gradient, about.
        gradient: f64,
    },
}

/// A number with two digits.
fn short(number: f64) -> String {
    let rounded: f64 = format!("{number:.1e}").parse().unwrap_or(number);
    format!("{rounded:?}")
}

/// How a run diverged.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Divergence {
    /// The oracle answered with NaN or infinity.
    #[error("the oracle's answer at step {step} is not finite")]
    Gradient {
        /// The step.
        step: u64,
    },
    /// The iterate overflowed.
    #[error("the iterate after step {step} is not finite")]
    NotFinite {
        /// The step.
        step: u64,
    },
    /// The iterate is finite but absurdly far away.
    #[error("the iterate after step {step} is more than 1e50 from the start")]
    Runaway {
        /// The step.
        step: u64,
    },
    /// The dynamic batch rule asks for more samples than can be counted.
    #[error("step {step} needs a batch of {needed:e} samples, more than 2^63")]
    Batch {
        /// The step.
        step: u64,
        /// The size needed.
        needed: f64,
    },
}

impl Divergence {
    /// The step at which it was noticed.
    pub fn step(&self) -> u64 {
        match *self {
            Self::Gradient { step }
            | Self::NotFinite { step }
            | Self::Runaway { step }
            | Self::Batch { step, .. } => step,
        }
    }
}

/// Why a share of the gradient at the start is no target.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NoTarget {
    /// The gradient is not above its noise.
    #[error(
        "the gradient at the start cannot be told from its noise by {samples} samples (|mean| = {mean:.3e}, standard error {error:.3e}), so there is no share of it to aim at; give the target as a number"
    )]
    Noise {
        /// What was drawn.
        samples: u128,
        /// The length of the mean.
        mean: f64,
        /// Its standard error.
        error: f64,
    },
    /// The gradient is exactly zero.
    #[error(
        "the gradient at the start is 0, so there is no share of it to aim at; give the target as a number, or start elsewhere"
    )]
    Zero,
    /// The budget does not allow a measurement.
    #[error(
        "a tenth of the budget of {budget} samples is too little to measure the gradient at the start; give the target as a number"
    )]
    Budget {
        /// The budget.
        budget: u128,
    },
}
