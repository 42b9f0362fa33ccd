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
            Self::Certified => "the point is certified; what that means is in the certificate".into(),
            Self::Void => "the certificate that ended it is void; nothing is promised for this point".into(),
            Self::Diverged(divergence) => format!("diverged: {divergence}; the last finite iterate is kept"),
        }
    }
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
