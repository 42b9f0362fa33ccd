//! Many processes that work on one answer.

use std::ops::Range;

use rayon::prelude::*;

use super::{Batch, Draw, Form, OracleError, Request};

/// Gives the sums of parts of a batch, one after another in the slice.
pub type PartsOfSum<'a> = &'a (dyn Fn(&[Batch], &mut [f64]) -> Result<(), OracleError> + Sync);

/// Fills the rows with these numbers.
pub type PartOfRows<'a> = &'a (dyn Fn(Range<usize>, &mut [u64]) -> Result<(), OracleError> + Sync);

/// Processes that run the same walk in lock step and share the work on its answers.
///
/// Each of them makes the same calls in the same order, and each call gives all of them the same bits, or the same error.
pub trait Team: Send + Sync {
    /// Sums over the batch down the tree of [`Batch::halves`]: each member sums some subtrees, and all add in the tree's
    /// order. The work is in samples, to weigh it against that of a message.
    fn sum(
        &self,
        work: u64,
        batch: &Batch,
        block: u64,
        out: &mut [f64],
        parts: PartsOfSum<'_>,
    ) -> Result<(), OracleError>;

    /// Whether a sum of so many samples, of so many numbers each, takes so much longer than a message that many of them are better
    /// divided one after another than shared out. All members say the same.
    fn divides(&self, samples: u64, width: usize) -> bool;

    /// Fills rows of `width` words: each member some of them, and all get all. The work is in evaluations of a gradient, to
    /// weigh it against that of a message.
    fn share(
        &self,
        work: u128,
        width: usize,
        rows: &mut [u64],
        part: PartOfRows<'_>,
    ) -> Result<(), OracleError>;

    /// Hears of a question before any work is done on it. All members must ask the same.
    fn hear(&self, question: &Request<'_>) -> Result<(), OracleError>;
}

impl Request<'_> {
    /// Sums over a batch of this question down the tree of [`Batch::halves`]: on all threads, and with the whole team where
    /// there is one. `add` adds its samples' terms to the slice.
    pub fn sum_over<F>(&self, batch: &Batch, block: u64, out: &mut [f64], add: &F) -> Result<(), OracleError>
    where
        F: Fn(Range<u64>, &mut [f64]) -> Result<(), OracleError> + Sync,
    {
        self.sum_leaves(batch.count(), batch, block, out, add)
    }

    /// The same where a leaf stands for other samples than its own: there are `samples` of them in all.
    pub(crate) fn sum_leaves<F>(
        &self,
        samples: u64,
        batch: &Batch,
        block: u64,
        out: &mut [f64],
        add: &F,
    ) -> Result<(), OracleError>
    where
        F: Fn(Range<u64>, &mut [f64]) -> Result<(), OracleError> + Sync,
    {
        let Some(team) = self.team else { return batch.sum_over(block, out, add) };
        let width = out.len().max(1);
        team.sum(samples, batch, block, out, &|parts, sums| {
            let each = parts.par_iter().zip(sums.par_chunks_mut(width));
            each.try_for_each(|(part, sum)| part.sum_over(block, sum, add))
        })
    }

    /// A hash of the whole question. Processes that ask the same have the same.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = match &self.draw {
            Draw::Everything(role) => fold([0, *role as u64]),
            Draw::Batch(Batch { seed, role, step, samples }) => {
                fold([1, *role as u64, *seed, *step, samples.start, samples.end])
            }
        };
        hash = mix(hash, u64::from(self.form == Form::Differences) + 2 * u64::from(self.losses));
        for x in self.points {
            hash = x.iter().fold(mix(hash, x.len() as u64), |hash, x| mix(hash, x.to_bits()));
        }
        hash
    }
}

fn fold<const N: usize>(words: [u64; N]) -> u64 {
    words.into_iter().fold(N as u64, mix)
}

/// A multiplication per word: cheap, and enough to tell numbers apart that differ in a bit.
fn mix(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
