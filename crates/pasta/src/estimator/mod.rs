//! Estimators: how samples become g_t.
//!
//! Each first says what it will ask (a pure function of the state, because the coin has an address) and then
//! asks.

mod page;
mod storm;

use serde::{Deserialize, Serialize};

use crate::draws::Role;
use crate::gate::{Gate, Halt};
use crate::kernels::Blend;
use crate::oracle::{Answer, Request};
use crate::schedule::Estimator;

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

/// Where a step stands: all that an estimator may look at besides the oracle.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepView<'a> {
    /// The step of the run, which is the address of its draws.
    pub(crate) step: u64,
    /// The step of the epoch.
    pub(crate) t: u64,
    pub(crate) x: &'a [f64],
    pub(crate) x_prev: &'a [f64],
    /// Both are zero from this coordinate on.
    pub(crate) active: usize,
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

    /// The role of the samples of a step.
    pub(crate) fn role(&self, kind: Kind) -> Role {
        match (kind, self) {
            (Kind::Correction, Self::Page { .. }) => Role::Small,
            _ => Role::Large,
        }
    }

    /// Does what `ask` says. Afterwards `blend` applied to the first so many coordinates of `g` is g_t, which is zero beyond.
    #[inline]
    pub(crate) fn estimate<'s>(
        &self,
        ask: Ask,
        gate: &mut Gate,
        at: StepView<'_>,
        g: &mut [f64],
        scratch: &'s mut Vec<f64>,
    ) -> Result<(Blend<'s>, usize), Halt> {
        let n = ask.n as f64;
        match (ask.kind, self) {
            (Kind::Fresh, _) => {
                let support = sum(gate, at, ask.n, g)?;
                Ok((Blend::Divide(n), support))
            }
            (Kind::Correction, Self::Storm { momentum }) => {
                let support = storm::correct(momentum.at(at.t), ask.n, gate, at, g, scratch)?;
                Ok((Blend::Ready, support))
            }
            (Kind::Correction, _) => {
                let support = page::correction(ask.n, gate, at, scratch)?;
                Ok((Blend::AddMean { sum: &scratch[..support], n }, support))
            }
        }
    }
}

/// The sum of n fresh samples at x_t; up to which coordinate it was written.
#[inline]
pub(crate) fn sum(gate: &mut Gate, at: StepView<'_>, n: u64, out: &mut [f64]) -> Result<usize, Halt> {
    let batch = gate.batch(Role::Large, at.step, n);
    let mut answer = Answer::new(out);
    gate.ask_for_step(Request { active: at.active, ..Request::sums(batch, &[at.x]) }, &mut answer)?;
    Ok(answer.support)
}
