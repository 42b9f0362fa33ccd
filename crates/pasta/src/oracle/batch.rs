//! Which samples: an address and a range, never data.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};

use super::OracleError;
use crate::draws::{Address, Role, Stream};

/// Samples of one step of a run: an address and a range. Threads, workers and machines take parts of the range.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// The seed of the run.
    pub seed: u64,
    /// What the samples are for.
    pub role: Role,
    /// The step of the run.
    pub step: u64,
    /// The samples, by their numbers.
    pub samples: Range<u64>,
}

impl Batch {
    /// The number of samples.
    #[inline]
    pub fn count(&self) -> u64 {
        self.samples.end.saturating_sub(self.samples.start)
    }

    /// The stream of the sample with this number.
    #[inline]
    pub fn sample(&self, number: u64) -> Stream {
        self.address(number).stream()
    }

    /// The stream of a draw that stands for the whole batch. Parts of a batch that begin elsewhere have streams of their own.
    #[inline]
    pub fn whole(&self) -> Stream {
        self.address(Address::WHOLE_BATCH).part(self.samples.start)
    }

    /// One of the streams for draws that stand for several samples: the numbers begin with 1, and none is the stream of a
    /// sample or of another batch that begins elsewhere.
    #[inline]
    pub(crate) fn part(&self, number: u64) -> Stream {
        self.address(self.samples.start).part(number)
    }

    #[inline]
    fn address(&self, sample: u64) -> Address {
        Address { seed: self.seed, role: self.role, step: self.step, sample }
    }

    /// The two parts whose sums are added to make the sum of the batch, or `None` for a leaf of at most `block` samples, which
    /// are added one after another. The left part has the largest power of two of blocks that leaves something over.
    ///
    /// This tree is the order of additions. It belongs to the batch and not to the machine: whoever takes which part,
    /// the bits are the same.
    ///
    /// ```
    /// use pasta_opt::draws::Role;
    /// use pasta_opt::oracle::Batch;
    ///
    /// let batch = Batch { seed: 1, role: Role::Large, step: 0, samples: 0..50 };
    /// let [left, right] = batch.halves(8).ok_or("a leaf")?;
    /// assert_eq!((left.samples, right.samples), (0..32, 32..50));
    /// # Ok::<(), &str>(())
    /// ```
    pub fn halves(&self, block: u64) -> Option<[Self; 2]> {
        let block = block.max(1);
        if self.count() <= block {
            return None;
        }
        let blocks = self.count().div_ceil(block);
        // The largest power of two below the number of blocks.
        let left = 1u64 << (blocks - 1).ilog2();
        let middle = self.samples.start + left * block;
        let part = |samples| Self { samples, ..self.clone() };
        Some([part(self.samples.start..middle), part(middle..self.samples.end)])
    }

    /// Sums over the batch down the tree of [`halves`](Self::halves), on all threads. `add` adds its samples' terms to the
    /// slice. After a failure nothing more is added.
    pub fn sum_over<F>(&self, block: u64, out: &mut [f64], add: &F) -> Result<(), OracleError>
    where
        F: Fn(Range<u64>, &mut [f64]) -> Result<(), OracleError> + Sync,
    {
        self.sum_unless(&AtomicBool::new(false), block, out, add)
    }

    fn sum_unless<F>(
        &self,
        failed: &AtomicBool,
        block: u64,
        out: &mut [f64],
        add: &F,
    ) -> Result<(), OracleError>
    where
        F: Fn(Range<u64>, &mut [f64]) -> Result<(), OracleError> + Sync,
    {
        let Some([left, right]) = self.halves(block) else {
            out.fill(0.0);
            return add(self.samples.clone(), out).inspect_err(|_| failed.store(true, Ordering::Relaxed));
        };
        if failed.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut sum = vec![0.0; out.len()];
        let (first, second) = rayon::join(
            || left.sum_unless(failed, block, out, add),
            || right.sum_unless(failed, block, &mut sum, add),
        );
        first.and(second)?;
        for (total, term) in out.iter_mut().zip(&sum) {
            *total += term;
        }
        Ok(())
    }
}
