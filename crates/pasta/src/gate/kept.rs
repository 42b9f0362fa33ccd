//! Answers of a long step that has not come to its end: an interrupted step takes them up again instead of asking anew.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::checkpoint::{Checkpoint, CheckpointError, Saver};
use crate::draws::Role;
use crate::exact::MAX_COUNT;
use crate::oracle::{Batch, Charge, Draw, Form, Request};

use super::{Paid, Skipped};

/// Numbers that are kept at most: 64 MB in memory and in a checkpoint.
const MOST: usize = 1 << 23;

/// A question by all that its answer depends on: the samples, and a digest of the points.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Question {
    role: Role,
    step: u64,
    /// `None` for a pass over everything.
    samples: Option<[u64; 2]>,
    differences: bool,
    losses: bool,
    digest: u64,
}

impl Question {
    pub(super) fn of(request: &Request<'_>) -> Self {
        let (role, step, samples) = match &request.draw {
            Draw::Batch(batch) => (batch.role, batch.step, Some([batch.samples.start, batch.samples.end])),
            Draw::Everything(role) => (*role, 0, None),
        };
        let words = request.points.iter().flat_map(|x| x.iter()).map(|x| x.to_bits());
        let digest = words.fold(request.points.len() as u64, |digest, word| mixed(digest ^ word));
        let differences = request.form == Form::Differences;
        Self { role, step, samples, differences, losses: request.losses, digest }
    }

    /// The same question about part of the samples.
    pub(super) fn about(&self, part: &Batch) -> Self {
        Self { samples: Some([part.samples.start, part.samples.end]), ..self.clone() }
    }
}

/// A bijection after which every bit depends on every bit (the end of splitmix64).
fn mixed(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[derive(Debug)]
struct Row {
    numbers: Vec<f64>,
    paid: Paid,
}

/// What was answered since a step began.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// By attempts that were interrupted, under this budget.
    earlier: BTreeMap<Question, Row>,
    budget: Option<u128>,
    /// By this attempt, or taken up by it.
    now: BTreeMap<Question, Row>,
    /// How many numbers they hold.
    numbers: usize,
    /// True if this attempt has kept something that no earlier one had.
    has_news: bool,
    /// True if there was no room for an answer.
    is_full: bool,
}

impl Kept {
    /// The answer of an earlier attempt.
    pub(super) fn recall(&mut self, question: &Question, row: &mut [f64]) -> Option<Paid> {
        let kept = self.earlier.remove(question)?;
        if kept.numbers.len() != row.len() {
            // Of a damaged file: it still counts.
            self.earlier.insert(question.clone(), kept);
            return None;
        }
        row.copy_from_slice(&kept.numbers);
        let paid = kept.paid;
        self.now.insert(question.clone(), kept);
        Some(paid)
    }

    /// Keeps an answer, if there is room.
    pub(super) fn record(&mut self, question: Question, row: &[f64], paid: Paid) {
        if self.numbers + row.len() > MOST {
            self.is_full = true;
            return;
        }
        self.has_news = true;
        self.put(question, Row { numbers: row.to_vec(), paid });
    }

    /// Keeps the sum of two parts in their place.
    pub(super) fn join(&mut self, whole: Question, parts: &[Question; 2], row: &[f64], paid: Paid) {
        for part in parts {
            let gone = self.now.remove(part).map_or(0, |row| row.numbers.len());
            self.numbers -= gone;
        }
        self.record(whole, row, paid);
    }

    fn put(&mut self, question: Question, row: Row) {
        self.numbers += row.numbers.len();
        let replaced = self.now.insert(question, row).map_or(0, |row| row.numbers.len());
        self.numbers -= replaced;
    }

    /// True if a pause costs nothing and something was done since the last one.
    pub(super) fn may_pause(&self) -> bool {
        self.has_news && !self.is_full
    }

    /// The attempt was interrupted: what it has is for the next one.
    pub(super) fn put_aside(&mut self, budget: Option<u128>) {
        let now = std::mem::take(&mut self.now);
        self.earlier.extend(now);
        (self.budget, self.has_news, self.is_full) = (budget, false, false);
    }

    /// What was drawn in vain, and has to be counted: all of it, where the step begins again under another budget, for which it would have been another step.
    pub(super) fn begin(&mut self, budget: Option<u128>) -> Vec<(Role, Paid)> {
        if self.budget == budget { Vec::new() } else { self.finish() }
    }

    /// The step came to its end: what it did not take up again was drawn in vain.
    pub(super) fn finish(&mut self) -> Vec<(Role, Paid)> {
        let Self { earlier, .. } = std::mem::take(self);
        earlier.into_iter().map(|(question, row)| (question.role, row.paid)).collect()
    }

    /// The samples of all that is kept.
    pub(super) fn samples(&self) -> u128 {
        self.earlier.values().chain(self.now.values()).map(|row| row.paid.charge.samples).sum()
    }

    pub(super) fn save<'a>(&'a self, to: &mut Saver<'a>) {
        if self.earlier.is_empty() {
            return;
        }
        let saved = |(question, row): (&Question, &Row)| {
            let Paid { charge: Charge { samples, evaluations, exact }, skipped } = row.paid;
            (question.clone(), samples, evaluations, exact, [skipped.count, skipped.evaluations])
        };
        let rows: Vec<Saved> = self.earlier.iter().map(saved).collect();
        to.put(SECTION, &(self.budget, rows), self.earlier.values().map(|row| row.numbers.as_slice()));
    }

    pub(super) fn resume(checkpoint: &mut Checkpoint) -> Result<Self, CheckpointError> {
        let mut kept = Self::default();
        if !checkpoint.has(SECTION) {
            return Ok(kept);
        }
        let ((budget, rows), vectors): ((Option<u128>, Vec<Saved>), _) = checkpoint.take(SECTION)?;
        let most = u128::from(MAX_COUNT);
        if rows.len() != vectors.len()
            || rows.iter().any(|row| row.1.max(row.2).max(row.4[0]).max(row.4[1]) > most)
        {
            return Err(CheckpointError::damaged("the answers of its last step do not fit together"));
        }
        for ((question, samples, evaluations, exact, [count, again]), numbers) in
            rows.into_iter().zip(vectors)
        {
            let skipped = Skipped { count, evaluations: again };
            let paid = Paid { charge: Charge { samples, evaluations, exact }, skipped };
            kept.put(question, Row { numbers, paid });
        }
        kept.put_aside(budget);
        Ok(kept)
    }
}

const SECTION: &str = "kept";

/// A question; the samples, the evaluations and the exactness of its answer; and what was left out of it.
type Saved = (Question, u128, u128, bool, [u128; 2]);
