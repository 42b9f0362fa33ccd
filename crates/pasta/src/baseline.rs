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
    /// Adam (Kingma and Ba 2015): x - eta_t mhat/(sqrt(vhat) + epsilon), with bias-corrected moments of g and g^2.
    Adam {
        /// Step sizes.
        eta: Sequence,
        /// Decay of the first moment, in [0, 1).
        first: f64,
        /// Decay of the second moment, in [0, 1).
        second: f64,
        /// Added to the root, so that a coordinate without gradient does not move.
        epsilon: f64,
    },
    /// AdaGrad-Norm (Ward, Wu and Bottou 2019): x - eta g/sqrt(offset^2 + the sum of all |g|^2 so far).
    AdaGradNorm {
        /// Step size.
        eta: f64,
        /// The root's value before the first step.
        offset: f64,
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
        let awake = ..oracle.reach(state.active);
        oracle.sum(&state.x[awake], &batch, &mut state.g[awake])?;
        state.ledger.charge(*n, 1);

        let t = state.t;
        let mean = Blend::Divide(*n as f64);
        let (eta, blend) = rule.step(t, *n, &mut state.g[awake], &mut state.memory, mean);
        let points = [&state.x, &state.anchor, &state.start].map(|x| &x[awake]);
        let distance2 = anchored_step(0.0, eta, blend, &mut state.g[awake], points, &mut state.x_prev[awake]);
        if let Err(divergence) = state.settle(distance2, awake.end) {
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
            certification: None,
        }
    }

    fn has_theorem(&self) -> bool {
        false
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
        let mut state = State::new(start, Output::Last);
        state.memory = match rule {
            Rule::Sgd { .. } | Rule::ClippedSgd { .. } => Vec::new(),
            Rule::Adam { .. } => vec![0.0; 2 * start.len()],
            Rule::AdaGradNorm { offset, .. } => vec![offset * offset],
        };
        Ok(Self { oracle, settings, seed, state })
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

impl Rule {
    /// Completes g, a sum over n samples, to the direction of the step, and says how far to go along it.
    fn step<'b>(
        &self,
        t: u64,
        n: u64,
        g: &mut [f64],
        memory: &mut [f64],
        mean: Blend<'b>,
    ) -> (f64, Blend<'b>) {
        let n = n as f64;
        match *self {
            Self::Sgd { eta } => (eta.at(t), mean),
            Self::ClippedSgd { eta, threshold } => {
                let norm = squared_norm(g).sqrt() / n;
                (eta.at(t) * if norm > threshold { threshold / norm } else { 1.0 }, mean)
            }
            Self::AdaGradNorm { eta, .. } => {
                memory[0] += squared_norm(g) / (n * n);
                (eta / memory[0].sqrt(), mean)
            }
            Self::Adam { eta, first, second, epsilon } => {
                let (m, v) = memory.split_at_mut(memory.len() / 2);
                let [keep, keep_squares] = [first, second].map(|decay| 1.0 - decay.powf(t as f64 + 1.0));
                for ((g, m), v) in g.iter_mut().zip(m).zip(v) {
                    let mean = *g / n;
                    *m = first * *m + (1.0 - first) * mean;
                    *v = second * *v + (1.0 - second) * mean * mean;
                    *g = *m / keep / ((*v / keep_squares).sqrt() + epsilon);
                }
                (eta.at(t), Blend::Ready)
            }
        }
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
            Rule::AdaGradNorm { eta, offset } => {
                positive("eta", eta)?;
                positive("offset", offset)?;
            }
            Rule::Adam { eta, first, second, epsilon } => {
                positive("eta", eta.at(0))?;
                positive("epsilon", epsilon)?;
                for (name, decay) in [("first", first), ("second", second)] {
                    if !(0.0..1.0).contains(&decay) {
                        return Err(ScheduleError { name, needs: "in [0, 1)", got: decay });
                    }
                }
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
