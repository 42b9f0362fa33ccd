//! Runs over seeds and their means.

use pasta_opt::objective::Measure;
use pasta_opt::prelude::*;
use rayon::prelude::*;
use std::sync::Arc;

/// One-sided normal quantile of level .001.
const Z: f64 = 3.1;

/// A mean with its standard error.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mean {
    pub(crate) value: f64,
    pub(crate) error: f64,
}

impl Mean {
    fn of(values: &[f64]) -> Self {
        let n = values.len() as f64;
        let value = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|v| (v - value).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
        Self { value, error: (variance / n).sqrt() }
    }

    /// The true mean is below the bound, at level .001.
    pub(crate) fn is_below(self, bound: f64) -> bool {
        self.value + Z * self.error <= bound
    }

    /// The true mean is above the bound, at level .001. An infinite mean is.
    pub(crate) fn is_above(self, bound: f64) -> bool {
        self.value == f64::INFINITY || self.value - Z * self.error > bound
    }
}

/// What many runs of one schedule did.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outcome {
    /// The promised measure.
    pub(crate) measure: Mean,
    /// Samples drawn.
    pub(crate) samples: Mean,
}

/// Gaussian BG-0 noise around an objective.
pub(crate) fn noisy(
    objective: impl Objective + 'static,
    growth: f64,
    floor: f64,
    start: &[f64],
) -> Arc<Noisy> {
    let noise = Noise { growth, floor, tail: Tail::Gaussian };
    Arc::new(Noisy::new(Box::new(objective), noise, start.to_vec()).unwrap())
}

/// Runs a schedule over the seeds 1..=seeds and measures what its output rule promises.
pub(crate) fn outcome(oracle: &Arc<Noisy>, schedule: &Schedule, measure: Measure, seeds: u64) -> Outcome {
    let runs: Vec<_> = (1..=seeds).into_par_iter().map(|seed| one(oracle, schedule, measure, seed)).collect();
    let (measures, samples): (Vec<_>, Vec<_>) = runs.into_iter().unzip();
    Outcome { measure: Mean::of(&measures), samples: Mean::of(&samples) }
}

/// The measure of one run: over the points that a random output is drawn from, their mean. A run that diverges
/// has an infinite measure.
fn one(oracle: &Arc<Noisy>, schedule: &Schedule, measure: Measure, seed: u64) -> (f64, f64) {
    let at = |x: &[f64]| measure.at(oracle.objective(), x).unwrap();
    let mut gate = Gate::over(oracle.clone(), seed);
    let mut run = Pasta::start(&gate, schedule.clone(), oracle.start()).unwrap();
    let (mut total, mut points) = (0.0, 0.0);
    let stop = loop {
        let state = run.state();
        let candidate = match schedule.output {
            Output::Uniform => true,
            Output::RandomAnchor => state.t == 0,
            Output::Last | Output::Average => false,
        };
        let here = if candidate { at(&state.x) } else { 0.0 };
        match run.advance(&mut gate).unwrap() {
            Advance::Step(_) if candidate => {
                total += here;
                points += 1.0;
            }
            Advance::Stop(stop) => break stop,
            _ => {}
        }
    };
    let measured = match (stop, schedule.output) {
        (Stop::Diverged(_), _) => f64::INFINITY,
        (_, Output::Uniform | Output::RandomAnchor) => total / points,
        (_, Output::Last | Output::Average) => at(run.state().output()),
    };
    (measured, gate.ledger().samples() as f64)
}

/// The promise and the cost bound of a plan hold on this oracle.
pub(crate) fn assert_promise(oracle: &Arc<Noisy>, plan: &Plan, seeds: u64) -> Outcome {
    let outcome = outcome(oracle, &plan.schedule, plan.guarantee.measure, seeds);
    assert!(outcome.measure.is_below(plan.guarantee.bound), "{outcome:?} breaks {:?}", plan.guarantee);
    match plan.cost.exact {
        Some(exact) => assert_eq!(outcome.samples.value, exact as f64),
        None => assert!(outcome.samples.is_below(plan.cost.samples), "{outcome:?} breaks {:?}", plan.cost),
    }
    outcome
}

/// The promise of a plan is broken on this oracle: for oracles noisier than the plan was told.
pub(crate) fn assert_broken(oracle: &Arc<Noisy>, plan: &Plan, seeds: u64) {
    let outcome = outcome(oracle, &plan.schedule, plan.guarantee.measure, seeds);
    assert!(outcome.measure.is_above(plan.guarantee.bound), "{outcome:?} keeps {:?}", plan.guarantee);
}

/// How the predicted cost grows when the target is halved, as a power of two.
pub(crate) fn cost_exponent(plan: impl Fn(f64) -> Plan, target: f64) -> f64 {
    (plan(target / 2.0).cost.samples / plan(target).cost.samples).log2()
}
