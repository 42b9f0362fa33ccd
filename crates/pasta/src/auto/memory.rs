//! What past steps say about curvature: limited-memory quasi-Newton pairs.

use crate::kernels::{dot, squared_norm};

/// At least and at most so many pairs: many make up for bad scaling, and as many as fit into this many numbers cost little.
const PAIRS: (usize, usize) = (10, 100);
const NUMBERS: usize = 4_000_000;

/// Pairs of a step s and the change y of the gradient along it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    pub(crate) pairs: Vec<Pair>,
}

#[derive(Debug, Clone)]
pub(crate) struct Pair {
    pub(crate) step: Vec<f64>,
    pub(crate) change: Vec<f64>,
    /// Whether <s, y> is positive beyond the noise of the blocks. What is not is forgotten when the samples change.
    pub(crate) sure: bool,
}

/// What is known about curvature where no pair says anything: a matrix up to a factor.
pub(crate) trait Base {
    /// Its inverse times `scale` v, written over it.
    fn solve(&self, scale: f64, v: &mut [f64]);

    /// <v, its inverse times v>.
    fn squared(&self, v: impl Iterator<Item = f64>) -> f64;
}

/// The curvatures of the coordinates.
impl Base for [f64] {
    fn solve(&self, scale: f64, v: &mut [f64]) {
        v.iter_mut().zip(self).for_each(|(v, unit)| *v *= scale / unit);
    }

    fn squared(&self, v: impl Iterator<Item = f64>) -> f64 {
        v.zip(self).map(|(v, unit)| v.powi(2) / unit).sum()
    }
}

impl Memory {
    pub(crate) fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.pairs.clear();
    }

    pub(crate) fn keep_sure(&mut self) {
        self.pairs.retain(|pair| pair.sure);
    }

    pub(crate) fn add(&mut self, step: Vec<f64>, change: Vec<f64>, sure: bool) {
        let lengths = (squared_norm(&step) * squared_norm(&change)).sqrt();
        if dot(&step, &change) > 1e-10 * lengths {
            let most = (NUMBERS / (2 * step.len()).max(1)).clamp(PAIRS.0, PAIRS.1);
            if self.pairs.len() >= most {
                self.pairs.remove(0);
            }
            self.pairs.push(Pair { step, change, sure });
        }
    }

    /// -H g, H the inverse curvature of the pairs with `pull` added to each (the curvature of pull/2 |x - a|^2). What no pair says, `base`
    /// does, up to a factor.
    pub(crate) fn direction(&self, gradient: &[f64], pull: f64, base: &(impl Base + ?Sized)) -> Vec<f64> {
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
            curvature(last) / base.squared(last.change.iter().zip(&last.step).map(|(y, s)| y + pull * s))
        });
        base.solve(scale, &mut q);
        for (pair, weight) in self.pairs.iter().zip(weights.into_iter().rev()) {
            let correction = weight - pulled(pair, &q) / curvature(pair);
            q.iter_mut().zip(&pair.step).for_each(|(q, s)| *q += correction * s);
        }
        q
    }
}
