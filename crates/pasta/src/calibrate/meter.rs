//! The only way to the oracle: draws by address, in blocks, counted.

use std::ops::ControlFlow;

use rayon::prelude::*;

use super::CalibrationError;
use super::estimate::BLOCKS;
use crate::draws::{Address, Role};
use crate::kernels::squared_norm;
use crate::moments::Moments;
use crate::oracle::{Batch, Ledger, Oracle, OracleError};

/// Samples of each block between two looks at the outside world.
const WAVE: u64 = 16;

/// Samples by their addresses: block k has `per_block` of them, from `first + k per_block` on. They can be asked for
/// again at other points, and are then the same samples.
#[derive(Debug, Clone, Copy)]
pub(super) struct Samples {
    first: u64,
    per_block: u64,
}

/// Asks and counts.
pub(super) struct Meter<'a> {
    oracle: &'a dyn Oracle,
    seed: u64,
    watch: &'a mut dyn FnMut(u64) -> ControlFlow<()>,
    ledger: Ledger,
    /// The first address that is not used yet.
    next: u64,
}

impl<'a> Meter<'a> {
    pub(super) fn new(
        oracle: &'a dyn Oracle,
        seed: u64,
        watch: &'a mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Self {
        Self { oracle, seed, watch, ledger: Ledger::default(), next: 0 }
    }

    pub(super) fn ledger(&self) -> Ledger {
        self.ledger
    }

    /// Draws new samples, `per_block` in each block. They cost nothing further when asked for again.
    pub(super) fn draw(&mut self, per_block: u64) -> Samples {
        let samples = Samples { first: self.next, per_block };
        self.next += BLOCKS as u64 * per_block;
        self.ledger.samples += u128::from(per_block) * BLOCKS as u128;
        samples
    }

    /// Hands each sample to its block, the blocks in parallel and the samples of a block in their order.
    /// `evaluations` is how many gradients `take` asks for.
    pub(super) fn each<B: Send>(
        &mut self,
        samples: Samples,
        evaluations: u32,
        blocks: &mut [B],
        take: impl Fn(&dyn Oracle, &mut B, &Batch) -> Result<(), OracleError> + Sync,
    ) -> Result<(), CalibrationError> {
        let Samples { first, per_block } = samples;
        let (oracle, seed) = (self.oracle, self.seed);
        for from in (0..per_block).step_by(WAVE as usize) {
            let wave = from..(from + WAVE).min(per_block);
            blocks.par_iter_mut().enumerate().try_for_each(|(k, block)| {
                wave.clone().try_for_each(|i| {
                    let step = first + k as u64 * per_block + i;
                    take(oracle, block, &Batch { seed, role: Role::Calibration, step, n: 1 })
                })
            })?;
            let count = (wave.end - wave.start) * BLOCKS as u64;
            self.ledger.evaluations += u128::from(count) * u128::from(evaluations);
            self.look()?;
        }
        Ok(())
    }

    /// The mean of g(x) - g(y) over n new samples.
    pub(super) fn mean_difference(
        &mut self,
        x: &[f64],
        y: &[f64],
        n: u64,
    ) -> Result<Vec<f64>, CalibrationError> {
        let batch = Batch { seed: self.seed, role: Role::Calibration, step: self.next, n };
        self.next += 1;
        self.ledger.charge(n, 2);
        let mut mean = vec![0.0; x.len()];
        self.oracle.sum_difference(x, y, &batch, &mut mean)?;
        mean.iter_mut().for_each(|d| *d /= n as f64);
        self.look()?;
        Ok(mean)
    }

    /// A random direction: a unit vector.
    pub(super) fn direction(&self, number: u64) -> Vec<f64> {
        let sample = Address::WHOLE_BATCH - 1;
        let mut xi = Address { seed: self.seed, role: Role::Calibration, step: number, sample }.stream();
        let mut v: Vec<f64> = (0..self.oracle.dim()).map(|_| xi.normal()).collect();
        normalise(&mut v);
        v
    }

    fn look(&mut self) -> Result<(), CalibrationError> {
        match (self.watch)(u64::try_from(self.ledger.samples).unwrap_or(u64::MAX)) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(CalibrationError::Interrupted),
        }
    }
}

/// Divides by the length, which is returned. What has no length, or none that doubles hold, becomes zero.
pub(super) fn normalise(v: &mut [f64]) -> f64 {
    // Twice, since the square of a very long or very short vector leaves the doubles.
    let largest = v.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    if !(largest > 0.0 && largest.is_finite() && v.iter().all(|x| x.is_finite())) {
        v.fill(0.0);
        return 0.0;
    }
    v.iter_mut().for_each(|x| *x /= largest);
    let length = squared_norm(v).sqrt();
    v.iter_mut().for_each(|x| *x /= length);
    length * largest
}

pub(super) fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// x + length v.
pub(super) fn along(x: &[f64], length: f64, v: &[f64]) -> Vec<f64> {
    x.iter().zip(v).map(|(x, v)| x + length * v).collect()
}

/// x - y.
pub(super) fn minus(x: &[f64], y: &[f64]) -> Vec<f64> {
    x.iter().zip(y).map(|(x, y)| x - y).collect()
}

/// Mean and variance of the gradients of a block.
#[derive(Debug, Clone)]
pub(super) struct Gradients {
    moments: Moments,
    gradient: Vec<f64>,
}

impl Gradients {
    pub(super) fn new(dim: usize) -> Self {
        Self { moments: Moments::new(dim), gradient: vec![0.0; dim] }
    }

    pub(super) fn mean(&self) -> &[f64] {
        &self.moments.mean
    }

    /// Adds g(x, xi).
    pub(super) fn add(
        &mut self,
        oracle: &dyn Oracle,
        x: &[f64],
        batch: &Batch,
    ) -> Result<&[f64], OracleError> {
        oracle.sum(x, batch, &mut self.gradient)?;
        self.moments.add(&self.gradient);
        Ok(&self.gradient)
    }

    /// The unbiased estimate of E|g - grad f|^2, zero where it is no more than the rounding of the gradient.
    pub(super) fn variance(&self) -> f64 {
        let variance = self.moments.variance();
        if variance < ROUNDING2 * squared_norm(self.mean()) { 0.0 } else { variance }
    }
}

/// (1e-14)^2: gradients that agree to so many digits are taken for equal.
const ROUNDING2: f64 = 1e-28;
