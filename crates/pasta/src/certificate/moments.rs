//! Means of fresh samples at a point, and their spread.

use std::ops::Range;

use rayon::prelude::*;

use crate::draws::Role;
use crate::kernels::{squared_distance, squared_norm};
use crate::oracle::{Batch, Oracle, OracleError};

/// A sequence of independent means of `samples_each` samples at x, numbered from 0.
#[derive(Clone, Copy)]
pub(crate) struct Draws<'a> {
    pub(crate) oracle: &'a dyn Oracle,
    pub(crate) x: &'a [f64],
    pub(crate) seed: u64,
    pub(crate) role: Role,
    /// Tells apart the sequences of one run: attempts are few, and means are below 2^40.
    pub(crate) attempt: u64,
    pub(crate) samples_each: u64,
}

impl Draws<'_> {
    /// Some of the means, drawn in parallel.
    pub(crate) fn means(&self, numbers: Range<u64>) -> Result<Vec<Vec<f64>>, OracleError> {
        numbers.into_par_iter().map(|number| self.mean(number)).collect()
    }

    fn mean(&self, number: u64) -> Result<Vec<f64>, OracleError> {
        let Self { oracle, x, seed, role, attempt, samples_each: n } = *self;
        let mut mean = vec![0.0; x.len()];
        oracle.sum(x, &Batch { seed, role, step: (attempt << 40) | number, n }, &mut mean)?;
        mean.iter_mut().for_each(|g| *g /= n as f64);
        if squared_norm(&mean).is_finite() {
            Ok(mean)
        } else {
            Err(OracleError::new("its answer at the point is not finite, or too large to be squared"))
        }
    }

    /// Mean and spread over some of the means. Holds a few hundred of them at a time.
    pub(crate) fn moments(&self, numbers: Range<u64>) -> Result<Moments, OracleError> {
        const HELD: u64 = 256;
        let mut moments = Moments::new(self.x.len());
        for first in numbers.clone().step_by(HELD as usize) {
            self.means(first..numbers.end.min(first + HELD))?.iter().for_each(|mean| moments.add(mean));
        }
        Ok(moments)
    }
}

/// Mean and scatter, by Welford's recursion.
#[derive(Debug, Clone)]
pub(crate) struct Moments {
    pub(crate) count: u64,
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
