//! Algorithm 1 of the paper: proximally anchored stochastic approximation.
//!
//! `docs/algorithm.md` lays the paper's lines beside these.

use crate::checkpoint::{Checkpoint, CheckpointError, Saver};
use crate::estimator::{Ask, StepView};
use crate::gate::{Gate, Halt};
use crate::kernels::anchored_step;
use crate::schedule::{Output, Schedule};
use crate::state::{StartError, State};
use crate::stop::{Divergence, Stop};
use crate::term::Steps;
use crate::walk::{Advance, Record, View, Walk};

/// A run of Algorithm 1.
///
/// ```
/// use pasta_opt::prelude::*;
/// use pasta_opt::problems::SineBowl;
///
/// let noise = Noise { growth: 9.0, floor: 1.0, tail: Tail::Gaussian };
/// let oracle = Noisy::new(Box::new(SineBowl { dimension: 1 }), noise, vec![1.2])?;
/// let recipe = Smooth { smoothness: 3.0, gap: 1.6, growth: 9.0, floor: 1.0, variance: None, target: 0.3 };
/// let plan = recipe.plan()?;
/// let mut gate = Gate::new(oracle, 1);
/// let end = Pasta::start(&gate, plan.schedule, &[1.2])?.finish(&mut gate)?;
/// assert_eq!(end.stop, Stop::PlannedEnd);
/// assert!((end.ledger.samples() as f64) < plan.cost.samples);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Pasta {
    schedule: Schedule,
    state: State,
    scratch: Vec<f64>,
}

impl Walk for Pasta {
    /// One step of Algorithm 1.
    #[inline]
    fn advance(&mut self, gate: &mut Gate) -> Result<Advance, Halt> {
        let ask = match self.next_ask(gate.seed()) {
            Ok(Some(ask)) => ask,
            Ok(None) => return Ok(self.end(Stop::PlannedEnd)),
            Err(divergence) => return Ok(self.end(Stop::Diverged(divergence))),
        };
        let Self { schedule, state, scratch } = self;
        let (s, t) = (state.epoch, state.t);

        // Line 2: the epoch is anchored where it starts.
        if t == 0 {
            state.anchor.copy_from_slice(&state.x);
        }

        // Line 4: g_t.
        let at = StepView { step: state.step, t, x: &state.x, x_prev: &state.x_prev, active: state.active };
        let (blend, support) = schedule.estimator.estimate(ask, gate, at, &mut state.g, scratch)?;
        state.update_output(schedule.output, gate);

        // Line 5: x_{t+1} = beta_t x_{s-1} + (1 - beta_t) x_t - eta_t g_t, and where there is a term, its prox.
        let (beta, eta, awake) = (schedule.beta.at(t), schedule.eta.at(t), ..support);
        let points = [&state.x, &state.anchor, &state.start].map(|x| &x[awake]);
        let distance2 =
            anchored_step(beta, eta, blend, &mut state.g[awake], points, &mut state.x_prev[awake]);
        let (distance2, support) = state.prox(gate, Steps::One(eta), distance2, support);
        if let Err(divergence) = state.accept(distance2, support) {
            let batch = gate.batch(schedule.estimator.role(ask.kind), state.step, ask.n);
            let stop = gate.end_of(divergence, batch, &state.x, &state.start)?;
            return Ok(self.end(stop));
        }

        // Line 7: the epoch's last iterate starts the next epoch.
        if state.t == schedule.steps {
            (state.epoch, state.t) = (s + 1, 0);
        }
        Ok(Advance::Step(Record { epoch: s, t, kind: ask.kind, n: ask.n, distance2 }))
    }

    fn view(&self) -> View<'_> {
        let is_drawn = matches!(self.schedule.output, Output::Uniform | Output::RandomAnchor);
        let drawn_at = is_drawn.then_some(self.state.picked);
        View { promised: true, drawn_at, ..self.state.view(self.schedule.total_steps()) }
    }

    fn save<'a>(&'a self, to: &mut Saver<'a>) {
        to.put(Self::SECTION, &(&self.schedule, &self.state), self.state.vectors());
    }
}

impl Pasta {
    /// The name of its section in a checkpoint.
    pub const SECTION: &'static str = "pasta";

    /// A run from `start`. Nothing is drawn before the first [`advance`](Walk::advance).
    pub fn start(gate: &Gate, schedule: Schedule, start: &[f64]) -> Result<Self, StartError> {
        schedule.check()?;
        if schedule.estimator.needs_differences() && !gate.about().shared {
            return Err(StartError::Differences);
        }
        let state = State::start(gate, start, schedule.output)?;
        Ok(Self { schedule, state, scratch: Vec::new() })
    }

    /// The run that a checkpoint was taken of, from where it was taken, bit for bit.
    pub fn resume(gate: &Gate, checkpoint: &mut Checkpoint) -> Result<Self, CheckpointError> {
        let ((schedule, mut state), vectors): ((Schedule, State), _) = checkpoint.take(Self::SECTION)?;
        state.restore(vectors, gate.about().dim)?;
        let sound = schedule.check().is_ok() && state.carried.is_empty() == (schedule.output == Output::Last);
        if !sound {
            return Err(CheckpointError::damaged("its schedule does not fit its state"));
        }
        Ok(Self { schedule, state, scratch: Vec::new() })
    }

    /// The schedule of this run.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// The state of this run.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// What the next step asks; `None` at the end. Draws nothing but the coin, which has an address.
    #[inline]
    fn next_ask(&self, seed: u64) -> Result<Option<Ask>, Divergence> {
        let State { epoch, t, step, distance2, ended, .. } = self.state;
        let Schedule { epochs, steps, first, large, estimator, .. } = &self.schedule;
        if ended.is_some() || epoch > *epochs || *steps == 0 {
            return Ok(None);
        }
        let rule = if t == 0 { first } else { large };
        match rule.size(distance2) {
            Ok(large) => Ok(Some(estimator.ask(seed, step, t, large))),
            Err(needed) => Err(Divergence::Batch { step, needed }),
        }
    }

    fn end(&mut self, stop: Stop) -> Advance {
        Advance::Stop(*self.state.ended.get_or_insert(stop))
    }
}
