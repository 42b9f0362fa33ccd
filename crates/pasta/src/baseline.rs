//! The methods that people use today, on the same oracle with the same ledger.

use serde::{Deserialize, Serialize};

use crate::checkpoint::{Checkpoint, CheckpointError, Saver};
use crate::estimator::{Kind, Place, sum};
use crate::gate::{Gate, Halt};
use crate::kernels::{Blend, anchored_step, squared_norm};
use crate::schedule::{Output, ScheduleError, Sequence};
use crate::state::{StartError, State};
use crate::stop::Stop;
use crate::walk::{Advance, Record, View, Walk};

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
/// let mut gate = Gate::new(oracle, 1);
/// let end = Baseline::start(&gate, Settings { rule, steps: 10_000, batch: 1 }, &[1.2])?.finish(&mut gate)?;
/// // One sample a step at the classical step size 1/L: the noise wins.
/// assert!(matches!(end.stop, Stop::Diverged(_)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Baseline {
    settings: Settings,
    state: State,
}

impl Walk for Baseline {
    fn advance(&mut self, gate: &mut Gate) -> Result<Advance, Halt> {
        if self.finished() {
            return Ok(Advance::Stop(*self.state.ended.get_or_insert(Stop::PlannedEnd)));
        }
        let Self { settings: Settings { rule, batch: n, .. }, state } = self;
        let t = state.t;
        let at = Place { step: state.step, t, x: &state.x, x_prev: &state.x_prev, active: state.active };
        let support = sum(gate, at, *n, &mut state.g)?;

        let awake = ..support;
        let mean = Blend::Divide(*n as f64);
        let (eta, blend) = rule.step(t, *n, &mut state.g[awake], &mut state.memory, mean);
        let points = [&state.x, &state.anchor, &state.start].map(|x| &x[awake]);
        let distance2 = anchored_step(0.0, eta, blend, &mut state.g[awake], points, &mut state.x_prev[awake]);
        if let Err(divergence) = state.accept(distance2, support) {
            return Ok(Advance::Stop(*state.ended.get_or_insert(Stop::Diverged(divergence))));
        }
        Ok(Advance::Step(Record { epoch: 1, t, kind: Kind::Fresh, n: *n, distance2 }))
    }

    fn view(&self) -> View<'_> {
        self.state.view(u128::from(self.settings.steps))
    }

    fn save<'a>(&'a self, to: &mut Saver<'a>) {
        to.put(Self::SECTION, &(&self.settings, &self.state), self.state.vectors());
    }
}

impl Baseline {
    /// The name of its section in a checkpoint.
    pub const SECTION: &'static str = "baseline";

    /// A run from `start`.
    pub fn start(gate: &Gate, settings: Settings, start: &[f64]) -> Result<Self, StartError> {
        settings.check()?;
        let mut state = State::start(gate.about(), start, Output::Last)?;
        state.memory = match settings.rule {
            Rule::Sgd { .. } | Rule::ClippedSgd { .. } => Vec::new(),
            Rule::Adam { .. } => vec![0.0; 2 * start.len()],
            Rule::AdaGradNorm { offset, .. } => vec![offset * offset],
        };
        Ok(Self { settings, state })
    }

    /// The run that a checkpoint was taken of, from where it was taken, bit for bit.
    pub fn resume(gate: &Gate, checkpoint: &mut Checkpoint) -> Result<Self, CheckpointError> {
        let ((settings, mut state), vectors): ((Settings, State), _) = checkpoint.take(Self::SECTION)?;
        state.restore(vectors, gate.about().dim)?;
        let memory = match settings.rule {
            Rule::Sgd { .. } | Rule::ClippedSgd { .. } => 0,
            Rule::Adam { .. } => 2 * state.x.len(),
            Rule::AdaGradNorm { .. } => 1,
        };
        if state.memory.len() != memory {
            return Err(CheckpointError::damaged("the method's memory does not fit the method"));
        }
        Ok(Self { settings, state })
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
    /// Refuses numbers out of their ranges.
    pub fn check(&self) -> Result<(), ScheduleError> {
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
