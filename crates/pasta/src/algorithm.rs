//! Algorithm 1 of the paper: proximally anchored stochastic approximation.
//!
//! `docs/algorithm.md` lays the paper's lines beside these.

use crate::checkpoint::{Checkpoint, CheckpointError, Method};
use crate::estimator::{Ask, Moment, Scratch};
use crate::kernels::anchored_step;
use crate::oracle::{Oracle, OracleError};
use crate::schedule::Schedule;
use crate::state::State;
use crate::walk::{Advance, Divergence, Record, StartError, Stop, Walk, check_start};

/// A run of Algorithm 1.
///
/// ```
/// use pasta_opt::prelude::*;
///
/// let noise = Noise { growth: 9.0, floor: 1.0, tail: Tail::Gaussian };
/// let oracle = Noisy::new(Box::new(SineBowl { dimension: 1 }), noise, vec![1.2])?;
/// let recipe = Smooth { smoothness: 3.0, gap: 1.6, growth: 9.0, floor: 1.0, variance: None, target: 0.3 };
/// let plan = recipe.plan()?;
/// let end = Pasta::start(&oracle, plan.schedule, &[1.2], 1)?.finish()?;
/// assert_eq!(end.stop, Stop::PlannedEnd);
/// assert!((end.ledger.samples as f64) < plan.cost.samples);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Pasta<'o> {
    oracle: &'o dyn Oracle,
    schedule: Schedule,
    seed: u64,
    state: State,
    scratch: Scratch,
}

impl Walk for Pasta<'_> {
    /// One step of Algorithm 1.
    #[inline]
    fn advance(&mut self) -> Result<Advance, OracleError> {
        let ask = match self.next_ask() {
            Ok(Some(ask)) => ask,
            Ok(None) => return Ok(self.end(Stop::PlannedEnd)),
            Err(divergence) => return Ok(self.end(Stop::Diverged(divergence))),
        };
        let Self { oracle, schedule, seed, state, scratch } = self;
        let (s, t) = (state.epoch, state.t);

        // Line 2: the epoch is anchored where it starts.
        if t == 0 {
            state.anchor.copy_from_slice(&state.x);
        }

        // Line 4: g_t.
        let awake = ..oracle.reach(state.active);
        let at =
            Moment { seed: *seed, step: state.step, t, x: &state.x[awake], x_prev: &state.x_prev[awake] };
        let blend = schedule.estimator.estimate(ask, *oracle, at, &mut state.g[awake], scratch)?;
        state.ledger.charge(ask.n, ask.points());
        state.carry(schedule.output, *seed);

        // Line 5: x_{t+1} = beta_t x_{s-1} + (1 - beta_t) x_t - eta_t g_t.
        let (beta, eta) = (schedule.beta.at(t), schedule.eta.at(t));
        let points = [&state.x, &state.anchor, &state.start].map(|x| &x[awake]);
        let distance2 =
            anchored_step(beta, eta, blend, &mut state.g[awake], points, &mut state.x_prev[awake]);
        if let Err(divergence) = state.settle(distance2, awake.end) {
            return Ok(self.end(Stop::Diverged(divergence)));
        }

        // Line 7: the epoch's last iterate starts the next epoch.
        if state.t == schedule.steps {
            (state.epoch, state.t) = (s + 1, 0);
        }
        Ok(Advance::Step(Record { epoch: s, t, kind: ask.kind, n: ask.n, distance2 }))
    }

    fn state(&self) -> &State {
        &self.state
    }

    fn next_samples(&self) -> u64 {
        self.next_ask().ok().flatten().map_or(0, |ask| ask.n)
    }

    fn planned_steps(&self) -> u128 {
        self.schedule.total_steps()
    }

    fn checkpoint(&self) -> Checkpoint {
        Checkpoint {
            identity: self.oracle.identity(),
            seed: self.seed,
            method: Method::Pasta(self.schedule.clone()),
            state: self.state.clone(),
            certification: None,
        }
    }
}

impl<'o> Pasta<'o> {
    /// A run from `start`. Nothing is drawn before the first [`advance`](Walk::advance).
    pub fn start(
        oracle: &'o dyn Oracle,
        schedule: Schedule,
        start: &[f64],
        seed: u64,
    ) -> Result<Self, StartError> {
        check_start(oracle, start)?;
        schedule.check()?;
        let state = State::new(start, schedule.output);
        Ok(Self { oracle, schedule, seed, state, scratch: Scratch::default() })
    }

    /// The run that a checkpoint was taken of, from where it was taken, bit for bit.
    pub fn resume(oracle: &'o dyn Oracle, checkpoint: Checkpoint) -> Result<Self, CheckpointError> {
        checkpoint.matches(oracle)?;
        let Checkpoint { seed, method, state, .. } = checkpoint;
        match method {
            Method::Pasta(schedule) => {
                Ok(Self { oracle, schedule, seed, state, scratch: Scratch::default() })
            }
            Method::Baseline(_) => {
                Err(CheckpointError::Method { found: "a baseline", wanted: "Algorithm 1" })
            }
        }
    }

    /// The schedule of this run.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// What the next step asks; `None` at the end. Draws nothing but the coin, which has an address.
    #[inline]
    fn next_ask(&self) -> Result<Option<Ask>, Divergence> {
        let State { epoch, t, step, distance2, ended, .. } = self.state;
        let Schedule { epochs, steps, first, large, estimator, .. } = &self.schedule;
        if ended.is_some() || epoch > *epochs || *steps == 0 {
            return Ok(None);
        }
        let rule = if t == 0 { first } else { large };
        match rule.size(distance2) {
            Ok(large) => Ok(Some(estimator.ask(self.seed, step, t, large))),
            Err(needed) => Err(Divergence::Batch { step, needed }),
        }
    }

    fn end(&mut self, stop: Stop) -> Advance {
        Advance::Stop(*self.state.ended.get_or_insert(stop))
    }
}

impl std::fmt::Debug for Pasta<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pasta")
            .field("oracle", &self.oracle.identity())
            .field("schedule", &self.schedule)
            .field("seed", &self.seed)
            .field("step", &self.state.step)
            .finish_non_exhaustive()
    }
}
