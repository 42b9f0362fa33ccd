//! Why the gate gave no answer.

use crate::draws::Role;
use crate::oracle::{ErrorKind, OracleError};
use crate::stop::{Divergence, Mixed, NoTarget, Stop};

/// Why the gate gave no answer. Nothing was counted, except where the answer came and was not finite.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Halt {
    /// The oracle failed.
    #[error(transparent)]
    Oracle(OracleError),
    /// The answer would have overdrawn the budget, or the samples have [come to an end](ErrorKind::Exhausted).
    #[error("the next {needed} samples would overdraw the budget, which has {left} left")]
    OverBudget {
        /// What the answer costs.
        needed: u128,
        /// What is left.
        left: u128,
    },
    /// The gate was told to stop.
    #[error("interrupted")]
    Interrupted,
    /// The gate was told to pause, and the work under way is kept: see [`Gate::with_pause`](super::Gate::with_pause).
    #[error("paused")]
    Paused,
    /// The oracle answered with NaN or infinity.
    #[error("{} is not finite, or too large to be squared", asked_for(*.role, *.step))]
    NotFinite {
        /// What was asked for.
        role: Role,
        /// The step of the batch, which is a step of the run for large and small batches alone.
        step: u64,
    },
    /// At one point the oracle answers with numbers and with NaN or infinity.
    #[error(transparent)]
    Mixed(Mixed),
    /// The target is a share of the gradient at the start, which cannot be measured.
    #[error(transparent)]
    NoTarget(#[from] NoTarget),
    /// The point is outside of the domain of the term, where no oracle is asked.
    #[error("no answer outside of the domain: {words}")]
    Outside {
        /// Which coordinate, and what it breaks.
        words: String,
    },
}

/// Which answer. Only the batches of steps have steps of the run for addresses.
fn asked_for(role: Role, step: u64) -> String {
    match role {
        Role::Large | Role::Small => format!("the oracle's answer at step {step}"),
        Role::Certificate | Role::Pilot => "an answer of the oracle to a certificate".into(),
        _ => "an answer of the oracle".into(),
    }
}

impl Halt {
    /// Whether the work under way is dropped, to be done again: not where it ran its course to an end of the budget or of the
    /// numbers.
    pub(crate) fn drops_work(&self) -> bool {
        matches!(self, Self::Oracle(_) | Self::Interrupted | Self::Paused)
    }

    /// How a run ends that cannot go on; `None` where it does not end but fail.
    pub fn stop(&self) -> Option<Stop> {
        match *self {
            Self::Oracle(_) | Self::Paused | Self::NoTarget(_) | Self::Outside { .. } => None,
            Self::OverBudget { .. } => Some(Stop::OutOfBudget),
            Self::Interrupted => Some(Stop::Interrupted),
            Self::NotFinite { step, .. } => Some(Stop::Diverged(Divergence::Gradient { step })),
            Self::Mixed(mixed) => Some(Stop::NotFinite(mixed)),
        }
    }
}

impl From<Halt> for OracleError {
    /// For an oracle that asks another one.
    fn from(halt: Halt) -> Self {
        match halt {
            Halt::Oracle(error) => error,
            Halt::Interrupted => Self::interrupted(),
            other => Self::new(other),
        }
    }
}

impl From<OracleError> for Halt {
    fn from(error: OracleError) -> Self {
        match error.kind() {
            ErrorKind::Interrupted => Self::Interrupted,
            ErrorKind::Exhausted { left } => {
                Self::OverBudget { needed: u128::from(left) + 1, left: u128::from(left) }
            }
            _ => Self::Oracle(error),
        }
    }
}
