//! Who sums which part of a batch, and how the parts become the whole.
//!
//! The tree of additions has leaves (blocks of samples) and nodes, each of which spans a range of leaves. Its shape is that of
//! [`Batch::halves`]: the left child of a node has the largest power of two of leaves that leaves something over. A member
//! takes a range of leaves, sums each of the largest nodes within it, and whoever has two children of a node adds them.

use std::iter::Peekable;
use std::ops::Range;

use pasta_opt::oracle::Batch;

/// A node of the tree and its sum.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Piece {
    pub(crate) span: Range<u64>,
    pub(crate) sum: Vec<f64>,
}

/// Leaves per member that cuts are rounded to: more balance the work, fewer make fewer pieces.
const FINENESS: u64 = 16;

/// The number of leaves of a batch.
pub(crate) fn leaves(batch: &Batch, block: u64) -> u64 {
    batch.count().div_ceil(block.max(1))
}

/// The part of a batch that a node spans.
pub(crate) fn part(batch: &Batch, block: u64, span: &Range<u64>) -> Batch {
    let at = |leaf: u64| {
        let offset = leaf.saturating_mul(block.max(1)).min(batch.count());
        batch.samples.start + offset
    };
    Batch { samples: at(span.start)..at(span.end), ..batch.clone() }
}

/// The leaves of one of `size` members. Cuts are at multiples of a power of two, where nodes are large.
pub(crate) fn share(leaves: u64, rank: usize, size: usize) -> Range<u64> {
    let units = FINENESS * size as u64;
    let grain = if leaves >= units { 1 << (leaves / units).ilog2() } else { 1 };
    let cut = |rank: usize| {
        if rank == size {
            return leaves;
        }
        let even = (u128::from(leaves) * rank as u128 / size as u128) as u64;
        let rounded = (even + grain / 2) / grain * grain;
        rounded.min(leaves)
    };
    cut(rank)..cut(rank + 1)
}

/// The children of a node; `None` for a leaf.
fn children(span: &Range<u64>) -> Option<[Range<u64>; 2]> {
    let leaves = span.end - span.start;
    if leaves <= 1 {
        return None;
    }
    let middle = span.start + (1 << (leaves - 1).ilog2());
    Some([span.start..middle, middle..span.end])
}

/// The largest nodes within a range, from left to right.
pub(crate) fn nodes(leaves: u64, within: &Range<u64>) -> Vec<Range<u64>> {
    let mut found = Vec::new();
    collect(0..leaves, within, &mut found);
    found
}

fn collect(span: Range<u64>, within: &Range<u64>, found: &mut Vec<Range<u64>>) {
    if span.end <= within.start || span.start >= within.end {
    } else if within.start <= span.start && span.end <= within.end {
        found.push(span);
    } else if let Some(both) = children(&span) {
        both.into_iter().for_each(|child| collect(child, within, found));
    }
}

/// Adds whatever pieces are children of one node, and so on. The pieces are nodes from left to right, without a gap.
pub(crate) fn join(leaves: u64, pieces: Vec<Piece>) -> Vec<Piece> {
    let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else { return pieces };
    let covered = first.span.start..last.span.end;
    let mut joined = Vec::new();
    add(0..leaves, &covered, &mut pieces.into_iter().peekable(), &mut joined);
    joined
}

fn add(
    span: Range<u64>,
    covered: &Range<u64>,
    pieces: &mut Peekable<impl Iterator<Item = Piece>>,
    joined: &mut Vec<Piece>,
) {
    if span.end <= covered.start || span.start >= covered.end {
        return;
    }
    // Where the next piece is not below this node there is nothing to join, however many leaves it has.
    let is_below = |piece: &Piece| span.start <= piece.span.start && piece.span.end <= span.end;
    if !pieces.peek().is_some_and(is_below) {
        return;
    }
    if let Some(piece) = pieces.next_if(|piece| piece.span == span) {
        joined.push(piece);
        return;
    }
    let Some([left, right]) = children(&span) else { return };
    let before = joined.len();
    add(left.clone(), covered, pieces, joined);
    add(right.clone(), covered, pieces, joined);
    if let [first, second] = &joined[before..]
        && (&first.span, &second.span) == (&left, &right)
    {
        let second = joined.pop().expect("there are two");
        let whole = joined.last_mut().expect("there are two");
        whole.span = span;
        whole.sum.iter_mut().zip(&second.sum).for_each(|(total, term)| *total += term);
    }
}

#[cfg(test)]
mod tests {
    use pasta_opt::draws::Role;
    use pasta_opt::oracle::Batch;

    use super::{FINENESS, Piece, join, leaves, nodes, part, share};

    fn batch(start: u64, n: u64) -> Batch {
        Batch { seed: 1, role: Role::Large, step: 3, samples: start..start + n }
    }

    /// Numbers whose sum depends on the order of additions.
    fn term(sample: u64) -> f64 {
        1.0 / (sample as f64 + 0.3) * if sample.is_multiple_of(3) { -1.0 } else { 1e3 }
    }

    fn sum(batch: &Batch, block: u64) -> f64 {
        let mut out = [0.0];
        let add = |samples: std::ops::Range<u64>, out: &mut [f64]| {
            samples.for_each(|i| out[0] += term(i));
            Ok(())
        };
        batch.sum_over(block, &mut out, &add).unwrap();
        out[0]
    }

    #[test]
    fn parts_of_any_number_of_members_add_to_the_bits_of_the_whole() {
        for size in [1, 2, 3, 4, 7, 64, 1000] {
            for (start, n, block) in
                [(0, 1, 8), (5, 9, 8), (0, 64, 8), (17, 1000, 8), (3, 4097, 1), (0, 10_000, 3)]
            {
                let batch = batch(start, n);
                let leaves = leaves(&batch, block);
                let mut all = Vec::new();
                for rank in 0..size {
                    let mine = nodes(leaves, &share(leaves, rank, size)).into_iter().map(|span| {
                        let sum = vec![sum(&part(&batch, block, &span), block)];
                        Piece { span, sum }
                    });
                    all.extend(mine);
                    // Joined at once or at the end, it is the same.
                    if rank.is_multiple_of(2) {
                        all = join(leaves, all);
                    }
                }
                let all = join(leaves, all);
                assert_eq!(all.len(), 1, "{size} {start} {n} {block}");
                assert_eq!(all[0].span, 0..leaves);
                assert_eq!(
                    all[0].sum[0].to_bits(),
                    sum(&batch, block).to_bits(),
                    "{size} {start} {n} {block}"
                );
            }
        }
    }

    #[test]
    fn shares_cover_all_and_are_even_and_of_few_pieces() {
        for size in [1, 2, 3, 7, 100] {
            for leaves in [1, 2, 99, 1250, 123_457, 1 << 40, u64::MAX / 8] {
                let shares: Vec<_> = (0..size).map(|rank| share(leaves, rank, size)).collect();
                assert_eq!((shares[0].start, shares[size - 1].end), (0, leaves));
                assert!(shares.windows(2).all(|pair| pair[0].end == pair[1].start));
                let most = shares.iter().map(|share| share.end - share.start).max().unwrap();
                // A cut is off by half a grain at most, and a grain is at most 1/16 of a share.
                let even = leaves as f64 / size as f64;
                assert!(most as f64 <= even * (1.0 + 1.0 / FINENESS as f64) + 1.0, "{leaves} {size}: {most}");
                let pieces = shares.iter().map(|share| nodes(leaves, share).len()).max().unwrap();
                // Up and down a tree whose leaves are the grains, of which a share has fewer than 34.
                assert!(pieces <= 12, "{leaves} {size}: {pieces}");
            }
        }
    }
}
