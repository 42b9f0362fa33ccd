//! Oracles: "the sum of n stochastic gradients at x" and "the sum of n differences at (x, y), same samples".
//!
//! Sums, not means: sums compose over threads and machines and are divided once. A batch is an address and a
//! size, never data, so whoever answers recomputes its samples and any number of threads gives the same bits.

mod batched;
mod noisy;
mod tree;

use std::fmt;

pub use batched::{Batched, Sampled};
pub use noisy::{BatchMode, Noise, NoiseError, Noisy, Tail};
use serde::{Deserialize, Serialize};

use crate::draws::{Address, Role, Stream};

/// Which samples, and how many: an address and a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    /// The seed of the run.
    pub seed: u64,
    /// What the samples are for.
    pub role: Role,
    /// The step of the run.
    pub step: u64,
    /// The number of samples, at least one.
    pub n: u64,
}

impl Batch {
    /// The stream of sample `i`.
    #[inline]
    pub fn sample(&self, i: u64) -> Stream {
        Address { seed: self.seed, role: self.role, step: self.step, sample: i }.stream()
    }

    /// The stream of a draw that stands for the whole batch.
    #[inline]
    pub fn whole(&self) -> Stream {
        self.sample(Address::WHOLE_BATCH)
    }
}

/// A source of stochastic (sub)gradients of f.
///
/// Implement [`Sampled`] instead if you have one sample at a time: [`Batched`] makes an oracle of it.
pub trait Oracle: Sync {
    /// The number of coordinates.
    fn dim(&self) -> usize;

    /// Overwrites `out` with the sum of g(x, xi) over the batch.
    fn sum(&self, x: &[f64], batch: &Batch, out: &mut [f64]) -> Result<(), OracleError>;

    /// Overwrites `out` with the sum of g(x, xi) - g(y, xi) over the batch, the same xi at both points.
    fn sum_difference(&self, x: &[f64], y: &[f64], batch: &Batch, out: &mut [f64])
    -> Result<(), OracleError>;

    /// If x is zero from coordinate `active` on, the answers are zero from coordinate `reach(active)` on, and the oracle
    /// takes an x that is cut short there. A chain of a million coordinates of which ten are awake then costs ten.
    fn reach(&self, _active: usize) -> usize {
        self.dim()
    }

    /// What grad f(x) itself costs, in samples: the rows of a finite table, or 0 for a formula. `None` where there are
    /// only samples.
    fn full_pass(&self) -> Option<u64> {
        None
    }

    /// Overwrites `out` with grad f(x), exactly but for rounding, where there is a [`full_pass`](Self::full_pass).
    fn exact_gradient(&self, _x: &[f64], _out: &mut [f64]) -> Result<(), OracleError> {
        Err(OracleError::new("it does not know its gradient, only samples of it"))
    }

    /// What this oracle is, parameters included. A checkpoint is only resumed on an oracle of the same identity.
    fn identity(&self) -> String {
        format!("an oracle in dimension {}", self.dim())
    }
}

/// What an oracle answers when it cannot answer. Keeps its cause.
#[derive(Debug)]
pub struct OracleError {
    source: Box<dyn std::error::Error + Send + Sync>,
}

impl OracleError {
    /// Wraps the cause: an error, or a sentence.
    pub fn new(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { source: source.into() }
    }
}

impl fmt::Display for OracleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the oracle failed: {}", self.source)
    }
}

impl std::error::Error for OracleError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.source)
    }
}

/// What has been asked of the oracle. A paired difference of b samples is b samples and 2b evaluations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Ledger {
    /// Samples drawn.
    pub samples: u128,
    /// Stochastic gradients evaluated.
    pub evaluations: u128,
}

impl Ledger {
    /// Counts `samples` samples, each evaluated at `points` points.
    #[inline]
    pub fn charge(&mut self, samples: u64, points: u32) {
        self.samples += u128::from(samples);
        self.evaluations += u128::from(samples) * u128::from(points);
    }
}
