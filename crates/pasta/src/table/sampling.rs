//! How often each row occurs in a batch of rows drawn with replacement, without drawing them one by one.
//!
//! The rows are cut into leaves, and the leaves are those of the fixed tree of [`Batch::halves`]. The number of samples is
//! split down the tree by binomial counts, each drawn from a stream of its own, so that whoever holds some of the leaves
//! finds their counts without asking anybody. Within a leaf the rows of its samples are drawn and sorted.

use std::ops::Range;

use crate::draws::Stream;
use crate::oracle::Batch;

/// The rows of a table as an sampler.
#[derive(Debug)]
pub(super) struct RowSampler {
    rows: usize,
    /// Rows of the smallest leaf, a power of two.
    pub(super) block: usize,
    /// The weight of the rows before each row, and of all; `None` if all rows weigh the same.
    before: Option<Vec<f64>>,
}

/// Samples that a leaf should have at least, for its binomial count and its sum to be cheap beside it.
const LEAF_SAMPLES: u128 = 256;

/// Above so many samples a row, the rows of a leaf are split further by binomials instead of being drawn one by one.
const DENSE: u64 = 4;

/// A row, and how often it occurs.
pub(super) type DrawnRows = Vec<(u32, u64)>;

impl RowSampler {
    pub(super) fn new(rows: usize, block: usize, weights: Option<&[f64]>) -> Self {
        let before = weights.map(|weights| {
            let mut sum = 0.0;
            let sums = weights.iter().map(|weight| {
                sum += weight;
                sum
            });
            std::iter::once(0.0).chain(sums).collect()
        });
        Self { rows, block, before }
    }

    /// The rows of the leaf of a batch of so many samples.
    fn leaf_rows(&self, samples: u64) -> usize {
        let mut leaf = self.block;
        while leaf < self.rows && u128::from(samples) * (leaf as u128) < LEAF_SAMPLES * self.rows as u128 {
            leaf *= 2;
        }
        leaf
    }

    /// The leaves of a batch, with the number of samples in each.
    pub(super) fn leaves(&self, batch: &Batch) -> Leaves<'_> {
        let rows = self.leaf_rows(batch.count());
        let mut counts = vec![0; self.rows.div_ceil(rows)];
        let leaves = Leaves { sampler: self, rows, counts: Vec::new() };
        leaves.split(batch, 0..counts.len(), batch.count(), &mut counts);
        Leaves { counts, ..leaves }
    }

    fn weight(&self, rows: &Range<usize>) -> f64 {
        match &self.before {
            None => rows.len() as f64,
            Some(before) => before[rows.end] - before[rows.start],
        }
    }

    /// The share of the left part of two neighbours.
    fn share(&self, left: &Range<usize>, both: &Range<usize>) -> f64 {
        let all = self.weight(both);
        if all > 0.0 { (self.weight(left) / all).clamp(0.0, 1.0) } else { 0.5 }
    }

    /// One of these rows, in proportion to the weights.
    fn draw(&self, rows: &Range<usize>, xi: &mut Stream) -> usize {
        let Some(before) = &self.before else {
            return rows.start + xi.below(rows.len() as u64) as usize;
        };
        let (least, all) = (before[rows.start], self.weight(rows));
        loop {
            let level = least + xi.uniform() * all;
            // The row whose weight covers the level; rows without weight cover nothing.
            let row = rows.start + before[rows.start + 1..rows.end].partition_point(|&sum| sum <= level);
            if before[row] < before[row + 1] || all <= 0.0 {
                return row;
            }
        }
    }

    /// Draws so many samples among the rows and appends each row that occurs, in order.
    fn draw_all(&self, rows: Range<usize>, samples: u64, xi: &mut Stream, out: &mut DrawnRows) {
        if samples == 0 {
            return;
        }
        if rows.len() == 1 {
            out.push((rows.start as u32, samples));
        } else if samples > DENSE * rows.len() as u64 {
            let middle = rows.start + rows.len() / 2;
            let left = xi.binomial(samples, self.share(&(rows.start..middle), &rows));
            self.draw_all(rows.start..middle, left, xi, out);
            self.draw_all(middle..rows.end, samples - left, xi, out);
        } else {
            let mut drawn: Vec<u32> = (0..samples).map(|_| self.draw(&rows, xi) as u32).collect();
            drawn.sort_unstable();
            out.extend(drawn.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u64)));
        }
    }
}

/// The leaves of a batch.
#[derive(Debug)]
pub(super) struct Leaves<'a> {
    sampler: &'a RowSampler,
    /// Rows of a leaf.
    rows: usize,
    /// Samples of each leaf.
    counts: Vec<u64>,
}

impl Leaves<'_> {
    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        self.counts.len() as u64
    }

    fn rows_of(&self, leaves: &Range<usize>) -> Range<usize> {
        leaves.start * self.rows..(leaves.end * self.rows).min(self.sampler.rows)
    }

    /// The rows of one leaf.
    pub(super) fn rows_of_leaf(&self, leaf: u64) -> Range<usize> {
        self.rows_of(&(leaf as usize..leaf as usize + 1))
    }

    /// Splits the samples among the leaves, down the tree of [`Batch::halves`].
    fn split(&self, batch: &Batch, leaves: Range<usize>, samples: u64, counts: &mut [u64]) {
        if samples == 0 {
            return;
        }
        let node = Batch { samples: leaves.start as u64..leaves.end as u64, ..batch.clone() };
        let Some([left, _]) = node.halves(1) else {
            counts[leaves.start] = samples;
            return;
        };
        let middle = left.samples.end as usize;
        let share = self.sampler.share(&self.rows_of(&(leaves.start..middle)), &self.rows_of(&leaves));
        // A boundary between leaves is the middle of one node only.
        let drawn = batch.part(2 * middle as u64).binomial(samples, share);
        self.split(batch, leaves.start..middle, drawn, counts);
        self.split(batch, middle..leaves.end, samples - drawn, counts);
    }

    /// The rows of a leaf that occur in the batch.
    pub(super) fn draws(&self, batch: &Batch, leaf: u64) -> DrawnRows {
        let samples = self.counts[leaf as usize];
        let mut out = Vec::with_capacity(samples.min(1 << 16) as usize);
        self.sampler.draw_all(self.rows_of_leaf(leaf), samples, &mut batch.part(2 * leaf + 1), &mut out);
        out
    }
}
