//! The order of additions belongs to the batch, not to the machine.

use std::ops::Range;

/// Sums over `samples` down a fixed tree: leaves of `block` samples are added one after another, and the
/// left part of a node is the largest power of two of blocks. Threads take subtrees, so their number does
/// not change a bit. `add` adds its samples' terms to the slice.
pub(super) fn sum_over<F>(samples: Range<u64>, block: u64, out: &mut [f64], add: &F)
where
    F: Fn(Range<u64>, &mut [f64]) + Sync,
{
    let count = samples.end - samples.start;
    if count <= block {
        out.fill(0.0);
        return add(samples, out);
    }
    let blocks = count.div_ceil(block);
    let left = (blocks.next_power_of_two() / 2) * block;
    let middle = samples.start + left;
    let mut right = vec![0.0; out.len()];
    rayon::join(
        || sum_over(samples.start..middle, block, out, add),
        || sum_over(middle..samples.end, block, &mut right, add),
    );
    for (total, term) in out.iter_mut().zip(&right) {
        *total += term;
    }
}
