//! The methods that people use today, on the same oracle with the same ledger. A new one is a file here, a variant of
//! [`Rule`] and a row in the table of methods.

mod dog;
mod momentum;
mod polyak;
mod prodigy;
mod schedule_free;

pub use dog::Dog;
pub use momentum::Momentum;
pub use polyak::Polyak;
pub use prodigy::Prodigy;
pub use schedule_free::ScheduleFree;
use serde::{Deserialize, Serialize};

use std::ops::RangeTo;

use crate::checkpoint::{Checkpoint, CheckpointError, Saver};
use crate::draws::Role;
use crate::estimator::{Kind, StepView, sum};
use crate::gate::{Gate, Halt};
use crate::kernels::{Blend, anchored_step, squared_distance, squared_norm};
use crate::oracle::{Answer, Request};
use crate::schedule::{Output, ScheduleError, Sequence};
use crate::state::{StartError, State};
use crate::stop::{Divergence, Stop};
use crate::term::{Steps, Term};
use crate::walk::{Advance, Record, View, Walk};

/// How a baseline turns the mean of its batch into a step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
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
    /// AdaGrad-Norm that hands out the average of its iterates, with weights that grow like t^8 as those of [`Dog`].
    AdaGradNormAveraged {
        /// Step size.
        eta: f64,
        /// The root's value before the first step.
        offset: f64,
    },
    /// See [`Momentum`].
    Momentum(Momentum),
    /// See [`Dog`].
    Dog(Dog),
    /// See [`Prodigy`].
    Prodigy(Prodigy),
    /// See [`ScheduleFree`].
    ScheduleFree(ScheduleFree),
    /// See [`Polyak`].
    Polyak(Polyak),
}

/// What a rule sees of a step, and where it writes.
struct Turn<'a> {
    t: u64,
    start: &'a [f64],
    x: &'a [f64],
    /// The mean loss of the batch, for rules that ask for it.
    loss: f64,
    /// The mean gradient of the batch; to be replaced by the direction of the step.
    g: &'a mut [f64],
    memory: &'a mut [f64],
    /// The point that is handed out, for rules that hand out another than x.
    carried: &'a mut [f64],
    term: Option<&'a dyn Term>,
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
/// use pasta_opt::problems::SineBowl;
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
        let at = StepView { step: state.step, t, x: &state.x, x_prev: &state.x_prev, active: state.active };
        let (support, loss) = if rule.needs_losses() {
            let batch = gate.batch(Role::Large, state.step, *n);
            let mut losses = [0.0];
            let mut answer = Answer { losses: &mut losses, ..Answer::new(&mut state.g) };
            let points: &[&[f64]] = &[&state.x];
            match gate.ask(Request { losses: true, ..Request::sums(batch.clone(), points) }, &mut answer) {
                Err(Halt::NotFinite { .. }) => {
                    let divergence = Divergence::Gradient { step: state.step };
                    let stop = gate.end_of(divergence, batch, &state.x, &state.start)?;
                    return Ok(Advance::Stop(*state.ended.get_or_insert(stop)));
                }
                asked => asked?,
            };
            (state.x.len(), losses[0] / *n as f64)
        } else {
            (sum(gate, at, *n, &mut state.g)?, 0.0)
        };

        let awake = ..support;
        let term = gate.term().cloned();
        let (eta, blend) = rule.step(*n, loss, state, awake, term.as_deref());
        let points = [&state.x, &state.anchor, &state.start].map(|x| &x[awake]);
        let distance2 = anchored_step(0.0, eta, blend, &mut state.g[awake], points, &mut state.x_prev[awake]);
        let (distance2, support) = match rule.lengths(eta, state, gate) {
            Lengths::None => (distance2, support),
            Lengths::Taken => {
                [&mut state.x_prev, &mut state.carried].into_iter().for_each(|x| gate.keep_inside(x));
                (squared_distance(&state.x_prev, &state.start), state.x_prev.len())
            }
            Lengths::One(length) => state.prox(gate, Steps::One(length), distance2, support),
            Lengths::Each(lengths) => state.prox(gate, Steps::Each(&lengths), distance2, support),
        };
        if let Err(divergence) = state.accept(distance2, support) {
            let batch = gate.batch(Role::Large, state.step, *n);
            let stop = gate.end_of(divergence, batch, &state.x, &state.start)?;
            return Ok(Advance::Stop(*state.ended.get_or_insert(stop)));
        }
        if let Rule::Dog(_) | Rule::AdaGradNormAveraged { .. } = rule {
            Dog::average(t, &state.x, &mut state.carried);
            gate.keep_inside(&mut state.carried);
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
        let rule = &settings.rule;
        if rule.needs_losses() && !gate.about().losses {
            return Err(StartError::Losses);
        }
        let mut state = State::start(gate, start, Output::Last)?;
        state.memory = vec![0.0; rule.memory(start.len())];
        if let Rule::AdaGradNorm { offset, .. } | Rule::AdaGradNormAveraged { offset, .. } = rule {
            state.memory[0] = offset * offset;
        }
        if rule.carries() {
            state.carried = start.to_vec();
        }
        Ok(Self { settings, state })
    }

    /// The run that a checkpoint was taken of, from where it was taken, bit for bit.
    pub fn resume(gate: &Gate, checkpoint: &mut Checkpoint) -> Result<Self, CheckpointError> {
        let ((settings, mut state), vectors): ((Settings, State), _) = checkpoint.take(Self::SECTION)?;
        state.restore(vectors, gate.about().dim)?;
        let rule = &settings.rule;
        let fits = state.memory.len() == rule.memory(state.x.len())
            && state.carried.is_empty() != rule.carries()
            && settings.check().is_ok();
        if !fits {
            return Err(CheckpointError::damaged("the method's memory does not fit the method"));
        }
        Ok(Self { settings, state })
    }

    fn finished(&self) -> bool {
        self.state.ended.is_some() || self.state.t >= self.settings.steps
    }
}

impl Rule {
    /// How many numbers it remembers besides the state.
    fn memory(&self, dim: usize) -> usize {
        match self {
            Self::Sgd { .. } | Self::ClippedSgd { .. } | Self::Polyak(_) => 0,
            Self::AdaGradNorm { .. } | Self::AdaGradNormAveraged { .. } => 1,
            Self::Adam { .. } => 2 * dim,
            Self::Momentum(_) => dim,
            Self::Dog(_) => Dog::MEMORY,
            Self::Prodigy(_) => Prodigy::memory(dim),
            Self::ScheduleFree(_) => ScheduleFree::memory(dim),
        }
    }

    /// Whether it hands out another point than x.
    fn carries(&self) -> bool {
        matches!(self, Self::Dog(_) | Self::ScheduleFree(_) | Self::AdaGradNormAveraged { .. })
    }

    fn needs_losses(&self) -> bool {
        matches!(self, Self::Polyak(_))
    }

    /// Completes g, a sum over n samples, to the direction of the step, and says how far to go along it.
    fn step(
        &self,
        n: u64,
        loss: f64,
        state: &mut State,
        awake: RangeTo<usize>,
        term: Option<&dyn Term>,
    ) -> (f64, Blend<'static>) {
        let State { t, start, x, g, memory, carried, .. } = state;
        let (g, n) = (&mut g[awake], n as f64);
        let mean = Blend::Divide(n);
        match self {
            Self::Sgd { eta } => return (eta.at(*t), mean),
            Self::ClippedSgd { eta, threshold } => {
                let norm = squared_norm(g).sqrt() / n;
                return (eta.at(*t) * if norm > *threshold { threshold / norm } else { 1.0 }, mean);
            }
            Self::AdaGradNorm { eta, .. } | Self::AdaGradNormAveraged { eta, .. } => {
                memory[0] += squared_norm(g) / (n * n);
                return (eta / memory[0].sqrt(), mean);
            }
            Self::Adam { eta, first, second, epsilon } => {
                let dim = memory.len() / 2;
                let (m, v) = memory.split_at_mut(dim);
                let [keep, keep_squares] = [first, second].map(|decay| 1.0 - decay.powf(*t as f64 + 1.0));
                for ((g, m), v) in g.iter_mut().zip(m).zip(v) {
                    let mean = *g / n;
                    *m = first * *m + (1.0 - first) * mean;
                    *v = second * *v + (1.0 - second) * mean * mean;
                    *g = *m / keep / ((*v / keep_squares).sqrt() + epsilon);
                }
                return (eta.at(*t), Blend::Ready);
            }
            _ => g.iter_mut().for_each(|g| *g /= n),
        }
        let turn = Turn { t: *t, start: &start[awake], x: &x[awake], loss, g, memory, carried, term };
        let eta = match self {
            Self::Momentum(rule) => rule.step(turn),
            Self::Dog(rule) => rule.step(turn),
            Self::Prodigy(rule) => rule.step(turn),
            Self::ScheduleFree(rule) => rule.step(turn),
            Self::Polyak(rule) => rule.step(turn),
            Self::Sgd { .. }
            | Self::ClippedSgd { .. }
            | Self::AdaGradNorm { .. }
            | Self::AdaGradNormAveraged { .. }
            | Self::Adam { .. } => 0.0,
        };
        (eta, Blend::Ready)
    }
}

/// The lengths of the prox that follows a step.
enum Lengths {
    /// There is no term.
    None,
    /// The rule has taken the prox itself: x is a mean of points of the domain, but for rounding.
    Taken,
    One(f64),
    Each(Vec<f64>),
}

impl Rule {
    /// The prox that belongs to the step that was just made, with eta along its direction: the one for which a point that the step does not move is a
    /// stationary point of f + h. For a set it is the projection; Adam and Prodigy take it in the metric of their steps, which for bounds is the same.
    fn lengths(&self, eta: f64, state: &State, gate: &Gate) -> Lengths {
        if gate.term().is_none() {
            return Lengths::None;
        }
        let State { t, memory, .. } = state;
        match self {
            Self::Sgd { .. }
            | Self::ClippedSgd { .. }
            | Self::AdaGradNorm { .. }
            | Self::AdaGradNormAveraged { .. }
            | Self::Dog(_)
            | Self::Polyak(_) => Lengths::One(eta),
            Self::Momentum(Momentum { momentum, .. }) => Lengths::One(eta / (1.0 - momentum)),
            Self::Adam { second, epsilon, .. } => {
                let keep = 1.0 - second.powf(*t as f64 + 1.0);
                let squares = &memory[memory.len() / 2..];
                Lengths::Each(squares.iter().map(|v| eta / ((v / keep).sqrt() + epsilon)).collect())
            }
            Self::Prodigy(rule) => Lengths::Each(rule.lengths(eta, memory)),
            Self::ScheduleFree(_) => Lengths::Taken,
        }
    }
}

/// Refuses a number that is not positive and finite.
fn positive(name: &'static str, got: f64) -> Result<(), ScheduleError> {
    let met = got > 0.0 && got.is_finite();
    if met { Ok(()) } else { Err(ScheduleError { name, needs: "positive and finite", got }) }
}

/// Refuses a number outside [0, 1).
fn decay(name: &'static str, got: f64) -> Result<(), ScheduleError> {
    let met = (0.0..1.0).contains(&got);
    if met { Ok(()) } else { Err(ScheduleError { name, needs: "in [0, 1)", got }) }
}

impl Settings {
    /// Refuses numbers out of their ranges.
    pub fn check(&self) -> Result<(), ScheduleError> {
        match &self.rule {
            Rule::Sgd { eta } => positive("eta", eta.at(0))?,
            Rule::ClippedSgd { eta, threshold } => {
                positive("eta", eta.at(0))?;
                positive("threshold", *threshold)?;
            }
            Rule::AdaGradNorm { eta, offset } | Rule::AdaGradNormAveraged { eta, offset } => {
                positive("eta", *eta)?;
                positive("offset", *offset)?;
            }
            Rule::Adam { eta, first, second, epsilon } => {
                positive("eta", eta.at(0))?;
                positive("epsilon", *epsilon)?;
                decay("first", *first)?;
                decay("second", *second)?;
            }
            Rule::Momentum(rule) => rule.check()?,
            Rule::Dog(rule) => rule.check()?,
            Rule::Prodigy(rule) => rule.check()?,
            Rule::ScheduleFree(rule) => rule.check()?,
            Rule::Polyak(rule) => rule.check()?,
        }
        positive("batch", self.batch as f64)
    }
}
