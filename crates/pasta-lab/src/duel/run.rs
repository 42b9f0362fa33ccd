//! One run of one method, watched.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use pasta_opt::gate::Gate;
use pasta_opt::hard::HardInstance;
use pasta_opt::objective::Objective;
use pasta_opt::oracle::{About, Answer, Charge, Oracle, OracleError, Request};
use pasta_opt::run::{Event, Run};
use pasta_opt::stop::{Divergence, Stop};
use pasta_opt::walk::View;
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
#[derive(Debug, Default, Serialize)]
pub(super) struct Bout {
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[serde(tag = "end", rename_all = "kebab-case")]
pub(super) enum End {
    /// |grad F| <= eps.
    Reached,
    /// The limit of steps.
    #[default]
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
struct Watched {
    instance: Arc<HardInstance>,
    seen: Vec<AtomicBool>,
    /// Coordinates from here on have only ever been answered with zero.
    length: AtomicUsize,
}

impl Watched {
    fn new(instance: &Arc<HardInstance>) -> Self {
        let seen = (0..instance.about().dim).map(|_| AtomicBool::new(false)).collect();
        Self { instance: Arc::clone(instance), seen, length: AtomicUsize::new(0) }
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
        self.instance.support(self.length.load(Relaxed))
    }

    fn covers(&self, x: &[f64]) -> bool {
        x.iter().zip(&self.seen).all(|(x, seen)| *x == 0.0 || seen.load(Relaxed))
    }
}

impl Oracle for Watched {
    fn about(&self) -> &About {
        self.instance.about()
    }

    /// A difference that is not zero is one of two answers that are not both zero.
    fn answer(&self, request: &Request<'_>, answer: &mut Answer<'_>) -> Result<Charge, OracleError> {
        let charge = self.instance.answer(request, answer)?;
        answer.gradients.chunks(self.seen.len()).for_each(|row| self.note(&row[..answer.support]));
        Ok(charge)
    }
}

/// Runs a method until |grad F| <= eps, which is computed exactly after every step, or to a limit.
pub(super) fn run(
    contender: &Contender,
    instance: &Instance,
    limits: Limits,
    seed: u64,
) -> Result<Bout, Failure> {
    let watched = Arc::new(Watched::new(&instance.hard));
    let gate = Gate::new(Arc::clone(&watched), seed).with_budget(limits.budget);
    let mut gradient = vec![0.0; gate.about().dim];
    let walk = contender.engine.clone().start(&gate, &gradient).map_err(Failure::input)?;
    let mut run = Run::of(gate, walk);
    let halfway = 0.5 * instance.bound.distance;
    let goal = instance.target() * instance.target();
    let mut bout = Bout { seed, zero_respecting: true, ..Bout::default() };
    while run.view().step < limits.steps {
        match run.next().map_err(Failure::system)? {
            Event::End(stop) => {
                bout.end = End::of(stop);
                break;
            }
            Event::Step(record) => bout.largest_batch = bout.largest_batch.max(record.n),
            _ => {}
        }
        let x = &run.view().x[..watched.awake()];
        let samples = run.gate().ledger().samples();
        bout.zero_respecting &= watched.covers(x);
        if x[0] <= halfway {
            bout.samples_on_slope = samples;
        }
        bout.progress = instance.hard.progress(&x[1..], 1.0);
        bout.marks.resize(bout.progress.max(bout.marks.len()), samples);
        let gradient = &mut gradient[..x.len()];
        instance.hard.gradient(x, gradient);
        if gradient.iter().map(|g| g * g).sum::<f64>() <= goal {
            bout.end = End::Reached;
            break;
        }
    }
    let View { x, step, .. } = run.view();
    // Beyond the awake coordinates too.
    bout.zero_respecting &= watched.covers(x);
    let ledger = run.gate().ledger();
    (bout.samples, bout.evaluations, bout.steps) = (ledger.samples(), ledger.evaluations(), step);
    Ok(bout)
}

impl End {
    fn of(stop: Stop) -> Self {
        match stop {
            Stop::OutOfBudget => Self::OutOfBudget,
            Stop::Diverged(Divergence::Batch { needed, .. }) => Self::BatchTooLarge { batch: needed },
            _ => stop.lost_at().map_or(Self::PlanFinished, |step| Self::Diverged { step }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hard::Kind;

    #[test]
    fn a_coordinate_that_was_only_ever_answered_with_zero_must_stay_zero() {
        let instance = Instance::new(Kind::Smooth, &pasta_opt::recipe::Constants::default(), 1).unwrap();
        let watched = Watched::new(&instance.hard);
        assert!(watched.covers(&[0.0; 9]) && !watched.covers(&[1.0, 0.0]));
        // At the start the oracle shows the slope along u and nothing else.
        let watched = Arc::new(watched);
        let mut gate = Gate::new(Arc::clone(&watched), 1);
        let request = Request::sums(gate.batch(pasta_opt::draws::Role::Large, 0, 1), &[&[0.0; 9]]);
        gate.ask(request, &mut Answer::new(&mut [0.0; 9])).unwrap();
        assert!(watched.covers(&[1.0, 0.0, 0.0]) && !watched.covers(&[1.0, 1e-300, 0.0]));
        // A gap in the middle is seen too.
        watched.note(&[0.0, 0.0, 1.0]);
        assert!(watched.covers(&[1.0, 0.0, 1.0]) && !watched.covers(&[1.0, 1.0, 1.0]));
        assert_eq!(watched.awake(), 4);
    }
}
