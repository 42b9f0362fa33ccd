//! Mean and variance of a stream of vectors, by Welford's recursion.

use serde::{Deserialize, Serialize};

use crate::kernels::{squared_distance, squared_norm};

/// Mean and scatter. Vectors that are all equal have a variance of exactly zero.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Moments {
    pub(crate) count: u64,
    #[serde(skip)]
    pub(crate) mean: Vec<f64>,
    scatter: f64,
}

impl Moments {
    pub(crate) fn new(dim: usize) -> Self {
        Self { count: 0, mean: vec![0.0; dim], scatter: 0.0 }
    }

    pub(crate) fn add(&mut self, x: &[f64]) {
        self.count += 1;
        let before = squared_distance(x, &self.mean);
        let n = self.count as f64;
        self.mean.iter_mut().zip(x).for_each(|(mean, x)| *mean += (x - *mean) / n);
        self.scatter += before * (n - 1.0) / n;
    }

    /// The sum of |x - mean|^2.
    pub(crate) fn scatter(&self) -> f64 {
        self.scatter
    }

    /// The unbiased estimate of E|X - EX|^2.
    pub(crate) fn variance(&self) -> f64 {
        if self.count < 2 { 0.0 } else { self.scatter / (self.count as f64 - 1.0) }
    }

    /// The variance of the mean.
    pub(crate) fn error2(&self) -> f64 {
        self.variance() / self.count.max(1) as f64
    }

    /// |EX|^2, estimated without bias: the square of the mean less what its own noise adds.
    pub(crate) fn squared_mean(&self) -> f64 {
        squared_norm(&self.mean) - self.error2()
    }
}
