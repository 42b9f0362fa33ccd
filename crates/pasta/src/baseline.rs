//! The methods that people use today, on the same oracle with the same ledger.

use serde::{Deserialize, Serialize};

use crate::checkpoint::{Checkpoint, CheckpointError, Method};
use crate::draws::Role;
use crate::estimator::Kind;
use crate::kernels::{Blend, anchored_step, squared_norm};
use crate::oracle::{Batch, Oracle, OracleError};
use crate::schedule::{Output, ScheduleError, Sequence};
use crate::state::State;
use crate::walk::{Advance, Record, StartError, Stop, Walk, check_start};

/// How a baseline turns the mean of its batch into a step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// x - eta_t g.
    Sgd {
        /// Step sizes.
        eta: Sequence,
    },
    /// x - eta_t g min(1, threshold/|g|).
    ClippedSgd {
        /// Step sizes.
        eta: Sequence,
        /// The largest norm of a gradient that is used as it is.
        threshold: f64,
    },
}

/// The settings of a baseline run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The update.
    pub rule: Rule,
    /// Steps.
    pub steps: u64,
    /// Samples per step.
    pub batch: u64,
}

/// A run of a baseline.
///
/// ```
/// use pasta_opt::prelude::*;
///
/// let noise = Noise { growth: 9.0, floor: 1.0, tail: Tail::Gaussian };
/// let oracle = Noisy::new(Box::new(SineBowl { dimension: 1 }), noise, vec![1.2])?;
/// let rule = Rule::Sgd { eta: Sequence::Constant(1.0 / 3.0) };
/// let end = Baseline::start(&oracle, rule, 10_000, 1, &[1.2], 1)?.finish()?;
/// // One sample a step at the classical step size 1/L: the noise wins.
/// assert!(matches!(end.stop, Stop::Diverged(_)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Baseline<'o> {
    oracle: &'o dyn Oracle,
    settings: Settings,
    seed: u64,
    state: State,
}

impl Walk for Baseline<'_> {
    fn advance(&mut self) -> Result<Advance, OracleError> {
        if self.finished() {
            return Ok(Advance::Stop(*self.state.ended.get_or_insert(Stop::PlannedEnd)));
        }
        let Self { oracle, settings: Settings { rule, batch: n, .. }, seed, state } = self;
        let batch = Batch { seed: *seed, role: Role::Large, step: state.step, n: *n };
        oracle.sum(&state.x, &batch, &mut state.g)?;
        state.ledger.charge(*n, 1);

        let t = state.t;
        let eta = match *rule {
            Rule::Sgd { eta } => eta.at(t),
            Rule::ClippedSgd { eta, threshold } => {
                let norm = squared_norm(&state.g).sqrt() / *n as f64;
                eta.at(t) * if norm > threshold { threshold / norm } else { 1.0 }
            }
        };
        let points = [&*state.x, &*state.anchor, &*state.start];
        let distance2 =
            anchored_step(0.0, eta, Blend::Divide(*n as f64), &mut state.g, points, &mut state.x_prev);
        if let Err(divergence) = state.settle(distance2) {
            return Ok(Advance::Stop(*state.ended.get_or_insert(Stop::Diverged(divergence))));
        }
        Ok(Advance::Step(Record { epoch: 1, t, kind: Kind::Fresh, n: *n, distance2 }))
    }

    fn state(&self) -> &State {
        &self.state
    }

    fn next_samples(&self) -> u64 {
        if self.finished() { 0 } else { self.settings.batch }
    }

    fn planned_steps(&self) -> u128 {
        u128::from(self.settings.steps)
    }

    fn checkpoint(&self) -> Checkpoint {
        Checkpoint {
            identity: self.oracle.identity(),
            seed: self.seed,
            method: Method::Baseline(self.settings),
            state: self.state.clone(),
        }
    }
}

impl<'o> Baseline<'o> {
    /// A run of `steps` steps with `batch` samples each, from `start`.
    pub fn start(
        oracle: &'o dyn Oracle,
        rule: Rule,
        steps: u64,
        batch: u64,
        start: &[f64],
        seed: u64,
    ) -> Result<Self, StartError> {
        check_start(oracle, start)?;
        let settings = Settings { rule, steps, batch };
        settings.check()?;
        Ok(Self { oracle, settings, seed, state: State::new(start, Output::Last) })
    }

    /// The run that a checkpoint was taken of, from where it was taken, bit for bit.
    pub fn resume(oracle: &'o dyn Oracle, checkpoint: Checkpoint) -> Result<Self, CheckpointError> {
        checkpoint.matches(oracle)?;
        let Checkpoint { seed, method, state, .. } = checkpoint;
        match method {
            Method::Baseline(settings) => Ok(Self { oracle, settings, seed, state }),
            Method::Pasta(_) => Err(CheckpointError::Method { found: "Algorithm 1", wanted: "a baseline" }),
        }
    }

    fn finished(&self) -> bool {
        self.state.ended.is_some() || self.state.t >= self.settings.steps
    }
}

impl Settings {
    fn check(&self) -> Result<(), ScheduleError> {
        let positive = |name, got: f64| {
            let met = got > 0.0 && got.is_finite();
            if met { Ok(()) } else { Err(ScheduleError { name, needs: "positive and finite", got }) }
        };
        match self.rule {
            Rule::Sgd { eta } => positive("eta", eta.at(0))?,
            Rule::ClippedSgd { eta, threshold } => {
                positive("eta", eta.at(0))?;
                positive("threshold", threshold)?;
            }
        }
        positive("batch", self.batch as f64)
    }
}

impl std::fmt::Debug for Baseline<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Baseline")
            .field("oracle", &self.oracle.identity())
            .field("settings", &self.settings)
            .field("seed", &self.seed)
            .field("step", &self.state.step)
            .finish_non_exhaustive()
    }
}
