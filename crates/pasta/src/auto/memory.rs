//! What past steps say about curvature: limited-memory quasi-Newton pairs.

use crate::kernels::{dot, squared_norm};

/// At least and at most so many pairs: many make up for bad scaling, and as many as fit into this many numbers cost little.
const PAIRS: (usize, usize) = (10, 100);
const NUMBERS: usize = 4_000_000;

/// Pairs of a step s and the change y of the gradient along it.
#[derive(Debug, Clone, Default)]
pub(super) struct Memory {
    pub(super) pairs: Vec<Pair>,
}

#[derive(Debug, Clone)]
pub(super) struct Pair {
    pub(super) step: Vec<f64>,
    pub(super) change: Vec<f64>,
    /// Whether <s, y> is positive beyond the noise of the blocks. What is not is forgotten when the samples change.
    pub(super) sure: bool,
}

impl Memory {
    pub(super) fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.pairs.clear();
    }

    pub(super) fn keep_sure(&mut self) {
        self.pairs.retain(|pair| pair.sure);
    }

    pub(super) fn add(&mut self, step: Vec<f64>, change: Vec<f64>, sure: bool) {
        let lengths = (squared_norm(&step) * squared_norm(&change)).sqrt();
        if dot(&step, &change) > 1e-10 * lengths {
            let most = (NUMBERS / (2 * step.len()).max(1)).clamp(PAIRS.0, PAIRS.1);
            if self.pairs.len() >= most {
                self.pairs.remove(0);
            }
            self.pairs.push(Pair { step, change, sure });
        }
    }

    /// -H g, H the inverse curvature of the pairs with `pull` added to each (the curvature of pull/2 |x - a|^2). What no pair says is
    /// measured in `units`, the curvatures of the coordinates up to a factor.
    pub(super) fn direction(&self, gradient: &[f64], pull: f64, units: &[f64]) -> Vec<f64> {
        let mut q: Vec<f64> = gradient.iter().map(|g| -g).collect();
        let curvature = |pair: &Pair| dot(&pair.step, &pair.change) + pull * squared_norm(&pair.step);
        let pulled = |pair: &Pair, q: &[f64]| dot(&pair.change, q) + pull * dot(&pair.step, q);
        let mut weights = Vec::with_capacity(self.pairs.len());
        for pair in self.pairs.iter().rev() {
            let weight = dot(&pair.step, &q) / curvature(pair);
            for ((q, y), s) in q.iter_mut().zip(&pair.change).zip(&pair.step) {
                *q -= weight * (y + pull * s);
            }
            weights.push(weight);
        }
        let scale = self.pairs.last().map_or(1.0, |last| {
            let changes = last.change.iter().zip(&last.step).zip(units);
            curvature(last) / changes.map(|((y, s), unit)| (y + pull * s).powi(2) / unit).sum::<f64>()
        });
        q.iter_mut().zip(units).for_each(|(q, unit)| *q *= scale / unit);
        for (pair, weight) in self.pairs.iter().zip(weights.into_iter().rev()) {
            let correction = weight - pulled(pair, &q) / curvature(pair);
            q.iter_mut().zip(&pair.step).for_each(|(q, s)| *q += correction * s);
        }
        q
    }
}
