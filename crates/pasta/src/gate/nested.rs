//! Gates within gates: a run within a run, and an oracle that is made of another.

use std::sync::Arc;

use super::Gate;
use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::draws::{Role, derived_seed};
use crate::ledger::Ledger;
use crate::oracle::{Charge, Oracle};

impl Gate {
    /// Forgets what was counted since the ledger stood so. Work that fails or is interrupted is dropped whole: its draws have
    /// addresses, and a resumed run makes and counts them again.
    pub(crate) fn rewind(&mut self, ledger: Ledger) {
        self.ledger = ledger;
    }

    /// A gate for a run within this one: the same oracle and interrupt, a seed of its own, at most so many samples. What it
    /// draws is counted here once it is [absorbed](Self::absorb).
    #[must_use]
    pub fn fork(&self, role: Role, number: u64, budget: u128) -> Self {
        Self::over(Arc::clone(&self.oracle), derived_seed(self.seed, role, number))
            .with_budget(budget.min(self.left()))
            .with_stop(Arc::clone(&self.stop))
            .with_on_nan(self.on_nan)
            .with_limits_of(self)
            .with_term_of(self)
            .without_check()
    }

    /// What a run within another one has from it.
    fn with_limits_of(self, outer: &Self) -> Self {
        let mut gate = Self { endless: outer.endless, pause: outer.pause.clone(), ..self };
        gate.round_cost = outer.round_cost;
        if outer.ledger.rounds().is_some() { gate.counting_rounds() } else { gate }
    }

    /// The term of a run and its gamma, for one within it that asks about the same coordinates.
    fn with_term_of(self, outer: &Self) -> Self {
        Self { term: outer.term.clone(), gamma: outer.gamma, ..self }
    }

    /// The fork of a run that is resumed, as it [saved](Self::save) itself.
    pub(crate) fn fork_again(&self, checkpoint: &mut Checkpoint) -> Result<Self, CheckpointError> {
        let fork = Self::resume_with_term(Arc::clone(&self.oracle), self.term.clone(), checkpoint)?;
        let fork = fork.with_stop(Arc::clone(&self.stop)).with_on_nan(self.on_nan);
        Ok(fork.with_limits_of(self).with_term_of(self))
    }

    /// Sets the budget anew.
    pub(crate) fn allow(&mut self, samples: Option<u128>) {
        self.budget = samples;
    }

    /// Counts what a fork drew since its ledger stood so, each under its own role.
    pub(crate) fn absorb_since(&mut self, fork: &Self, before: &Ledger) {
        for (role, now) in fork.ledger.by_role() {
            let then = before.of(role);
            let samples = now.samples.saturating_sub(then.samples);
            let evaluations = now.evaluations.saturating_sub(then.evaluations);
            self.ledger.charge(role, Charge { samples, evaluations, exact: false });
        }
        self.ledger.count_not_finite(fork.ledger.not_finite().saturating_sub(before.not_finite()));
        let rounds = |ledger: &Ledger| ledger.rounds().unwrap_or(0);
        self.ledger.count_rounds(rounds(&fork.ledger).saturating_sub(rounds(before)));
    }

    /// A gate to an oracle that is made of this one's, with the same seed, interrupt and budget. What it draws is counted here
    /// once it is [merged](Self::merge).
    #[must_use]
    pub fn wrap(&self, make: impl FnOnce(Arc<dyn Oracle>) -> Arc<dyn Oracle>) -> Self {
        let oracle = make(Arc::clone(&self.oracle));
        let budget = self.budget.map(|_| self.left());
        Self::over(oracle, self.seed)
            .with_budget(budget)
            .with_stop(Arc::clone(&self.stop))
            .with_on_nan(self.on_nan)
            .with_limits_of(self)
            .without_check()
    }

    /// Counts all that a fork drew under one role.
    pub fn absorb(&mut self, role: Role, fork: &Self) {
        let (samples, evaluations) = (fork.ledger.samples(), fork.ledger.evaluations());
        self.ledger.charge(role, Charge { samples, evaluations, exact: false });
        self.ledger.count_not_finite(fork.ledger.not_finite());
        self.ledger.count_rounds(fork.ledger.rounds().unwrap_or(0));
    }

    /// Counts all that a wrapped gate drew, each under its own role.
    pub fn merge(&mut self, wrapped: &Self) {
        for (role, entry) in wrapped.ledger.by_role() {
            let charge = Charge { samples: entry.samples, evaluations: entry.evaluations, exact: false };
            self.ledger.charge(role, charge);
        }
        self.ledger.count_not_finite(wrapped.ledger.not_finite());
        self.ledger.count_rounds(wrapped.ledger.rounds().unwrap_or(0));
    }
}
