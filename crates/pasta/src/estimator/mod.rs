//! Estimators: how samples become g_t.
//!
//! Each first says what it will ask (a pure function of the state, because the coin has an address) and then
//! asks. That makes the cost of a step known before a single sample is drawn: a hard budget needs it.

mod page;
mod storm;

use serde::{Deserialize, Serialize};

use crate::draws::Role;
use crate::kernels::Blend;
use crate::oracle::{Batch, Oracle, OracleError};
use crate::schedule::Sequence;

/// The estimators of Algorithm 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Estimator {
    /// g_t is the mean of N_t fresh samples at x_t.
    Minibatch,
    /// PAGE: with probability p_t a fresh mean of N_t samples, otherwise g_{t-1} plus the mean difference
    /// between x_t and x_{t-1} over `small` samples, the same samples at both points.
    Page {
        /// p_t: probability of a fresh batch.
        refresh: Sequence,
        /// b: samples of a correction.
        small: u64,
    },
    /// STORM: g_t = m(x_t) + (1 - a_t)(g_{t-1} - m(x_{t-1})), m the mean over the same N_t samples at both points.
    Storm {
        /// a_t: weight of the fresh mean.
        momentum: Sequence,
    },
}

/// What a step asks of the oracle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// Fresh batch or correction.
    pub kind: Kind,
    /// Samples.
    pub n: u64,
}

/// The two ways of making g_t.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The mean of fresh samples at x_t.
    Fresh,
    /// g_{t-1} corrected by samples evaluated at x_t and x_{t-1}.
    Correction,
}

impl Ask {
    /// At how many points each sample is evaluated.
    #[inline]
    pub fn points(self) -> u32 {
        match self.kind {
            Kind::Fresh => 1,
            Kind::Correction => 2,
        }
    }
}

/// Where a step stands: all that an estimator may look at besides the oracle.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment<'a> {
    pub(crate) seed: u64,
    /// The step of the run, which is the address of its draws.
    pub(crate) step: u64,
    /// The step of the epoch.
    pub(crate) t: u64,
    pub(crate) x: &'a [f64],
    pub(crate) x_prev: &'a [f64],
}

impl Moment<'_> {
    fn batch(&self, role: Role, n: u64) -> Batch {
        Batch { seed: self.seed, role, step: self.step, n }
    }
}

impl Estimator {
    /// What step (seed, step, t) asks, when a large batch would have `large` samples.
    #[inline]
    pub(crate) fn ask(&self, seed: u64, step: u64, t: u64, large: u64) -> Ask {
        let fresh = Ask { kind: Kind::Fresh, n: large };
        // There is no g_{t-1} at the start of an epoch: p_0 = 1.
        if t == 0 {
            return fresh;
        }
        match *self {
            Self::Minibatch => fresh,
            Self::Page { refresh, small } => page::ask(refresh.at(t), seed, step, large, small),
            Self::Storm { momentum } => storm::ask(momentum.at(t), large),
        }
    }

    /// Does what `ask` says. Afterwards `blend` applied to `g` is g_t.
    #[inline]
    pub(crate) fn estimate<'s>(
        &self,
        ask: Ask,
        oracle: &dyn Oracle,
        at: Moment<'_>,
        g: &mut [f64],
        scratch: &'s mut Scratch,
    ) -> Result<Blend<'s>, OracleError> {
        let n = ask.n as f64;
        match (ask.kind, self) {
            (Kind::Fresh, _) => {
                oracle.sum(at.x, &at.batch(Role::Large, ask.n), g)?;
                Ok(Blend::Divide(n))
            }
            (Kind::Correction, Self::Storm { momentum }) => {
                storm::correct(momentum.at(at.t), ask.n, oracle, at, g, scratch)?;
                Ok(Blend::Ready)
            }
            (Kind::Correction, _) => {
                let sum = page::correction(ask.n, oracle, at, scratch)?;
                Ok(Blend::AddMean { sum, n })
            }
        }
    }
}

/// Buffers that only the correcting estimators use; empty until then.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    first: Vec<f64>,
    second: Vec<f64>,
}
