//! The tree of additions of [`Batch::halves`](pasta_opt::oracle::Batch::halves), for leaves that are ready in any order.

use std::collections::BTreeMap;

/// Adds leaves as soon as their neighbours are there: the order of additions is the tree's, whoever comes first.
///
/// Node (l, k) covers the leaves from k 2^l up to (k + 1) 2^l, as far as there are any. A node without a right neighbour is its parent.
#[derive(Debug)]
pub(crate) struct Tree {
    leaves: u64,
    waiting: BTreeMap<(u32, u64), Vec<f64>>,
}

impl Tree {
    /// For so many leaves.
    pub(crate) fn new(leaves: u64) -> Self {
        Self { leaves, waiting: BTreeMap::new() }
    }

    /// How many leaves it has.
    pub(crate) fn leaves(&self) -> u64 {
        self.leaves
    }

    /// Adds a leaf; the sum, once all are there. Vectors that can be used again go to `spare`.
    pub(crate) fn add(&mut self, leaf: u64, sum: Vec<f64>, spare: &mut Vec<Vec<f64>>) -> Option<Vec<f64>> {
        let (mut level, mut k, mut sum) = (0, leaf, sum);
        // Until the node covers all leaves.
        while level < 64 && (self.leaves - 1) >> level > 0 {
            let has_right = ((k | 1) << level) < self.leaves;
            if has_right {
                let Some(other) = self.waiting.remove(&(level, k ^ 1)) else {
                    self.waiting.insert((level, k), sum);
                    return None;
                };
                let (mut left, right) = if k & 1 == 0 { (sum, other) } else { (other, sum) };
                left.iter_mut().zip(&right).for_each(|(total, term)| *total += term);
                spare.push(right);
                sum = left;
            }
            level += 1;
            k >>= 1;
        }
        Some(sum)
    }
}

#[cfg(test)]
mod tests {
    use pasta_opt::draws::Role;
    use pasta_opt::oracle::Batch;

    use super::Tree;

    #[test]
    fn leaves_in_any_order_make_the_sum_of_the_tree_of_halves() {
        for leaves in [1u64, 2, 3, 5, 6, 7, 8, 13, 31, 64, 100] {
            let value = |leaf: u64| (leaf as f64 + 0.1).exp2() * 0.3;
            let batch = Batch { seed: 1, role: Role::Large, step: 0, samples: 5..5 + 8 * leaves - 3 };
            let mut expected = [0.0];
            let add = |samples: std::ops::Range<u64>, out: &mut [f64]| {
                out[0] += value((samples.start - 5) / 8);
                Ok(())
            };
            batch.sum_over(8, &mut expected, &add).expect("it cannot fail");
            // Every order that a stride with no common factor gives.
            for stride in (1..leaves.max(2))
                .filter(|stride| (1..=*stride).rev().find(|f| stride % f == 0 && leaves % f == 0) == Some(1))
            {
                let (mut tree, mut spare) = (Tree::new(leaves), Vec::new());
                let ends: Vec<_> = (0..leaves)
                    .filter_map(|i| {
                        let leaf = (i * stride + leaves / 2) % leaves;
                        tree.add(leaf, vec![value(leaf)], &mut spare)
                    })
                    .collect();
                assert_eq!(ends, [expected.to_vec()], "{leaves} {stride}");
                assert!(tree.waiting.is_empty());
            }
        }
    }
}
