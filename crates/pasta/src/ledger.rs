//! What has been asked of an oracle, by what it was for.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::draws::Role;
use crate::oracle::Charge;

/// Samples and evaluations, by role. A paired difference of b samples is b samples and 2b evaluations.
///
/// ```
/// use pasta_opt::draws::Role;
/// use pasta_opt::Ledger;
/// use pasta_opt::oracle::Charge;
///
/// let mut ledger = Ledger::default();
/// ledger.charge(Role::Large, Charge { samples: 10, evaluations: 10, exact: false });
/// ledger.charge(Role::Small, Charge { samples: 2, evaluations: 4, exact: false });
/// assert_eq!((ledger.samples(), ledger.evaluations(), ledger.of(Role::Small).samples), (12, 14, 2));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(into = "Sheet", try_from = "Sheet")]
pub struct Ledger {
    entries: [Entry; Role::ALL.len()],
    not_finite: u128,
    /// `None` where nobody counts them.
    rounds: Option<u128>,
}

/// What was asked for one purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Entry {
    /// Samples drawn.
    pub samples: u128,
    /// Stochastic gradients evaluated.
    pub evaluations: u128,
}

impl Ledger {
    /// All samples.
    pub fn samples(&self) -> u128 {
        self.entries.iter().map(|entry| entry.samples).sum()
    }

    /// All evaluations.
    pub fn evaluations(&self) -> u128 {
        self.entries.iter().map(|entry| entry.evaluations).sum()
    }

    /// What was asked for one purpose.
    #[inline]
    pub fn of(&self, role: Role) -> Entry {
        self.entries[role as usize - 1]
    }

    /// What the steps of a walk asked: all but certificates, looks, pilots and the like.
    #[inline]
    pub fn steps(&self) -> Entry {
        let (large, small) = (self.of(Role::Large), self.of(Role::Small));
        Entry { samples: large.samples + small.samples, evaluations: large.evaluations + small.evaluations }
    }

    /// Samples of certificates, of the pilots that plan them, of the slopes that they compare, and of the looks whether to try one.
    pub fn certificate_samples(&self) -> u128 {
        [Role::Certificate, Role::Pilot, Role::Look, Role::Slopes]
            .map(|role| self.of(role).samples)
            .iter()
            .sum()
    }

    /// Answers that were NaN or infinite, or too large to be squared. Where a run leaves out such samples, each of them counts.
    pub fn not_finite(&self) -> u128 {
        self.not_finite
    }

    /// Counts answers that were not finite.
    pub(crate) fn count_not_finite(&mut self, answers: u128) {
        self.not_finite += answers;
    }

    /// Rounds: how often something was asked and waited for. Questions that went out together, such as the blocks of a check at several points, are
    /// one round. `None` where they are not counted: see [`Gate::counting_rounds`](crate::gate::Gate::counting_rounds).
    pub fn rounds(&self) -> Option<u128> {
        self.rounds
    }

    /// Counts rounds from here on, if they are not counted yet.
    pub(crate) fn start_counting_rounds(&mut self) {
        self.rounds.get_or_insert(0);
    }

    /// Counts rounds, where they are counted.
    #[inline]
    pub(crate) fn count_rounds(&mut self, rounds: u128) {
        if let Some(counted) = &mut self.rounds {
            *counted += rounds;
        }
    }

    /// Counts a charge.
    #[inline]
    pub fn charge(&mut self, role: Role, charge: Charge) {
        let entry = &mut self.entries[role as usize - 1];
        entry.samples += charge.samples;
        entry.evaluations += charge.evaluations;
    }

    /// The roles that something was asked for.
    pub fn by_role(&self) -> impl Iterator<Item = (Role, Entry)> {
        Role::ALL
            .into_iter()
            .map(|role| (role, self.of(role)))
            .filter(|(_, entry)| *entry != Entry::default())
    }
}

/// A ledger as a file has it.
#[derive(Serialize, Deserialize)]
struct Sheet {
    samples: u128,
    evaluations: u128,
    /// Ledgers that were written before it was counted have none.
    #[serde(default)]
    not_finite: u128,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rounds: Option<u128>,
    by_role: BTreeMap<Role, Entry>,
}

impl From<Ledger> for Sheet {
    fn from(ledger: Ledger) -> Self {
        Self {
            samples: ledger.samples(),
            evaluations: ledger.evaluations(),
            not_finite: ledger.not_finite,
            rounds: ledger.rounds,
            by_role: ledger.by_role().collect(),
        }
    }
}

/// No run comes near this many; a ledger that says more is damaged, and its sums might not fit.
const MOST: u128 = 1 << 120;

impl TryFrom<Sheet> for Ledger {
    type Error = String;

    /// The totals follow from the entries.
    fn try_from(sheet: Sheet) -> Result<Self, String> {
        let rounds = sheet.rounds.map(|rounds| rounds.min(MOST));
        let mut ledger = Self { not_finite: sheet.not_finite.min(MOST), rounds, ..Self::default() };
        for (role, entry) in sheet.by_role {
            let most = entry.samples.max(entry.evaluations);
            if most > MOST {
                return Err(format!("the ledger counts {most}, more than 2^120"));
            }
            ledger.entries[role as usize - 1] = entry;
        }
        Ok(ledger)
    }
}
