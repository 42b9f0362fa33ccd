//! One run of one method, watched.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use pasta_opt::hard::HardInstance;
use pasta_opt::objective::Objective;
use pasta_opt::oracle::{Batch, Oracle, OracleError};
use pasta_opt::walk::{Advance, Divergence, Stop};
use serde::Serialize;

use super::contender::Contender;
use super::instance::Instance;
use pasta_report::console::Failure;

/// Where a run has to end at the latest.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Limits {
    pub(super) steps: u64,
    pub(super) budget: Option<u128>,
}

/// What one run came to.
#[derive(Debug, Serialize)]
pub(super) struct Run {
    pub(super) seed: u64,
    #[serde(flatten)]
    pub(super) end: End,
    pub(super) samples: u128,
    pub(super) evaluations: u128,
    pub(super) steps: u64,
    /// prog_1 of the last point.
    pub(super) progress: usize,
    /// Whether no coordinate of any point was other than zero before the oracle had answered so in it.
    pub(super) zero_respecting: bool,
    /// Samples drawn before u passed D/2, where the oracle has no noise.
    pub(super) samples_on_slope: u128,
    pub(super) largest_batch: u64,
    /// Samples drawn when prog_1 first came to 1, 2, ..
    #[serde(skip)]
    pub(super) marks: Vec<u128>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "end", rename_all = "kebab-case")]
pub(super) enum End {
    /// |grad F| <= eps.
    Reached,
    /// The limit of steps.
    OutOfSteps,
    /// The limit of samples.
    OutOfBudget,
    /// All steps that its theorem plans.
    PlanFinished,
    /// The batch rule asked for more than 2^63 samples.
    BatchTooLarge {
        batch: f64,
    },
    Diverged {
        step: u64,
    },
}

/// The instance behind a note of every coordinate in which it has answered something other than zero.
struct Watched<'i> {
    instance: &'i HardInstance,
    seen: Vec<AtomicBool>,
    /// Coordinates from here on have only ever been answered with zero.
    length: AtomicUsize,
}

impl<'i> Watched<'i> {
    fn new(instance: &'i HardInstance) -> Self {
        let seen = (0..Objective::dim(instance)).map(|_| AtomicBool::new(false)).collect();
        Self { instance, seen, length: AtomicUsize::new(0) }
    }

    fn note(&self, answer: &[f64]) {
        let Some(last) = answer.iter().rposition(|g| *g != 0.0) else { return };
        self.length.fetch_max(last + 1, Relaxed);
        for (seen, g) in self.seen.iter().zip(&answer[..=last]) {
            if *g != 0.0 {
                seen.store(true, Relaxed);
            }
        }
    }

    /// The coordinates that can have a gradient at a point that respects zeros.
    fn awake(&self) -> usize {
        self.instance.reach(self.length.load(Relaxed))
    }

    fn covers(&self, x: &[f64]) -> bool {
        x.iter().zip(&self.seen).all(|(x, seen)| *x == 0.0 || seen.load(Relaxed))
    }
}

impl Oracle for Watched<'_> {
    fn dim(&self) -> usize {
        Oracle::dim(self.instance)
    }

    fn sum(&self, x: &[f64], batch: &Batch, out: &mut [f64]) -> Result<(), OracleError> {
        self.instance.sum(x, batch, out)?;
        self.note(out);
        Ok(())
    }

    /// A difference that is not zero is one of two answers that are not both zero.
    fn sum_difference(
        &self,
        x: &[f64],
        y: &[f64],
        batch: &Batch,
        out: &mut [f64],
    ) -> Result<(), OracleError> {
        self.instance.sum_difference(x, y, batch, out)?;
        self.note(out);
        Ok(())
    }

    fn reach(&self, active: usize) -> usize {
        self.instance.reach(active)
    }

    fn identity(&self) -> String {
        Oracle::identity(self.instance)
    }
}

/// Runs a method until |grad F| <= eps, which is computed exactly after every step, or to a limit.
pub(super) fn run(
    contender: &Contender,
    instance: &Instance,
    limits: Limits,
    seed: u64,
) -> Result<Run, Failure> {
    let watched = Watched::new(&instance.hard);
    let mut walk = contender.start(&watched, limits.steps, seed).map_err(Failure::input)?;
    let halfway = 0.5 * instance.bound().reach;
    let goal = instance.target() * instance.target();
    let mut gradient = vec![0.0; watched.dim()];
    let mut run = Run {
        seed,
        end: End::OutOfSteps,
        samples: 0,
        evaluations: 0,
        steps: 0,
        progress: 0,
        zero_respecting: true,
        samples_on_slope: 0,
        largest_batch: 0,
        marks: Vec::new(),
    };
    while walk.state().step < limits.steps {
        let spent = walk.state().ledger.samples;
        if limits.budget.is_some_and(|budget| spent + u128::from(walk.next_samples()) > budget) {
            run.end = End::OutOfBudget;
            break;
        }
        match walk.advance().map_err(Failure::system)? {
            Advance::Step(record) => run.largest_batch = run.largest_batch.max(record.n),
            Advance::Check => {}
            Advance::Stop(stop) => {
                run.end = End::of(stop);
                break;
            }
        }
        let state = walk.state();
        let x = &state.x[..watched.awake()];
        run.zero_respecting &= watched.covers(x);
        if x[0] <= halfway {
            run.samples_on_slope = state.ledger.samples;
        }
        run.progress = instance.hard.progress(&x[1..], 1.0);
        while run.marks.len() < run.progress {
            run.marks.push(state.ledger.samples);
        }
        let gradient = &mut gradient[..x.len()];
        instance.hard.gradient(x, gradient);
        if gradient.iter().map(|g| g * g).sum::<f64>() <= goal {
            run.end = End::Reached;
            break;
        }
    }
    let state = walk.state();
    // Beyond the awake coordinates too.
    run.zero_respecting &= watched.covers(&state.x);
    (run.samples, run.evaluations, run.steps) = (state.ledger.samples, state.ledger.evaluations, state.step);
    Ok(run)
}

impl End {
    fn of(stop: Stop) -> Self {
        match stop {
            Stop::PlannedEnd | Stop::Asked | Stop::Certified => Self::PlanFinished,
            Stop::OutOfBudget => Self::OutOfBudget,
            Stop::Diverged(Divergence::Batch { needed, .. }) => Self::BatchTooLarge { batch: needed },
            Stop::Diverged(
                Divergence::Gradient { step } | Divergence::NotFinite { step } | Divergence::Runaway { step },
            ) => Self::Diverged { step },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::duel::instance::Kind;

    #[test]
    fn a_coordinate_that_was_only_ever_answered_with_zero_must_stay_zero() {
        let instance = Instance::new(Kind::Smooth, &pasta_opt::recipe::Constants::default()).unwrap();
        let watched = Watched::new(&instance.hard);
        assert!(watched.covers(&[0.0; 9]) && !watched.covers(&[1.0, 0.0]));
        // At the start the oracle shows the slope along u and nothing else.
        let batch = Batch { seed: 1, role: pasta_opt::draws::Role::Large, step: 0, n: 1 };
        watched.sum(&[0.0; 9], &batch, &mut [0.0; 9]).unwrap();
        assert!(watched.covers(&[1.0, 0.0, 0.0]) && !watched.covers(&[1.0, 1e-300, 0.0]));
        // A gap in the middle is seen too.
        watched.note(&[0.0, 0.0, 1.0]);
        assert!(watched.covers(&[1.0, 0.0, 1.0]) && !watched.covers(&[1.0, 1.0, 1.0]));
        assert_eq!(watched.awake(), 4);
    }
}
