//! Means of fresh samples at a point.

use std::ops::Range;

use rayon::prelude::*;

use crate::draws::Role;
use crate::kernels::squared_norm;
use crate::moments::Moments;
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

    /// Mean and spread over some of the means. Holds at most 256 of them at a time, few if they are long.
    pub(crate) fn moments(&self, numbers: Range<u64>) -> Result<Moments, OracleError> {
        let held = (1_000_000 / self.x.len().max(1) as u64).clamp(16, 256);
        let mut moments = Moments::new(self.x.len());
        for first in numbers.clone().step_by(held as usize) {
            self.means(first..numbers.end.min(first + held))?.iter().for_each(|mean| moments.add(mean));
        }
        Ok(moments)
    }
}
