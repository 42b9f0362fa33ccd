//! A gate in a checkpoint.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::kept::Kept;
use super::{Gate, OnNan};
use crate::checkpoint::{Checkpoint, CheckpointError, Saver};
use crate::draws::Role;
use crate::ledger::Ledger;
use crate::oracle::{About, Oracle};
use crate::term::Term;

const SECTION: &str = "gate";

#[derive(Serialize, Deserialize)]
struct Saved {
    identity: String,
    dim: usize,
    seed: u64,
    ledger: Ledger,
    /// Gates that were saved before there was a choice stop, and have a limit.
    #[serde(default)]
    on_nan: OnNan,
    #[serde(default)]
    endless: bool,
    /// What the term is, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    term: Option<String>,
    #[serde(default, skip_serializing_if = "is_zero")]
    round_cost: u64,
}

/// As in most runs, whose checkpoints say nothing of it.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
pub(crate) fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Gate {
    /// Writes its section of a checkpoint.
    pub fn save<'a>(&'a self, to: &mut Saver<'a>) {
        let About { identity, dim, .. } = self.about();
        let Self { seed, on_nan, endless, round_cost, .. } = *self;
        let (identity, ledger) = (identity.clone(), self.ledger.clone());
        let term = self.term.as_ref().map(|term| term.identity());
        let saved = Saved { identity, dim: *dim, seed, ledger, on_nan, endless, term, round_cost };
        to.put(SECTION, &saved, []);
        self.kept.save(to);
    }

    /// The gate of a run that is resumed: seed and ledger are the checkpoint's. Refuses an oracle that is not the one the
    /// checkpoint was taken on, and a run that had a term.
    pub fn resume(oracle: Arc<dyn Oracle>, checkpoint: &mut Checkpoint) -> Result<Self, CheckpointError> {
        Self::resume_with_term(oracle, None, checkpoint)
    }

    /// [`resume`](Self::resume) for a run with a term, which must be the one that it had.
    pub fn resume_with_term(
        oracle: Arc<dyn Oracle>,
        term: Option<Arc<dyn Term>>,
        checkpoint: &mut Checkpoint,
    ) -> Result<Self, CheckpointError> {
        let (Saved { identity, dim, seed, ledger, on_nan, endless, term: saved, round_cost }, _) =
            checkpoint.take(SECTION)?;
        let here = oracle.about();
        if identity != here.identity || dim != here.dim {
            let here = here.identity.clone();
            return Err(CheckpointError::Problem { found: identity, here });
        }
        let given = term.as_ref().map(|term| term.identity());
        if saved != given {
            let name = |term: Option<String>| term.unwrap_or_else(|| "none".into());
            let what = format!("the run was started with the term {}, not {}", name(saved), name(given));
            return Err(CheckpointError::Settings { what });
        }
        let gate = Self::over(oracle, seed);
        // It was checked before the first step. A check that did not come to its end is not in the ledger; a single sample is none.
        let needs_check =
            gate.needs_check && ledger.steps().samples == 0 && ledger.of(Role::Check).samples <= 1;
        let kept = Kept::resume(checkpoint)?;
        Ok(Self { ledger, needs_check, kept, on_nan, endless, term, ..gate.with_round_cost(round_cost) })
    }
}
