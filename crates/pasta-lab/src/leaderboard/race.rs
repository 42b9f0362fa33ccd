//! The runs of the race.

use std::ops::ControlFlow;

use pasta_opt::gate::Gate;
use pasta_opt::method::{Method, find};
use pasta_opt::run::Run;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::problems::{Instance, Problem};
use pasta_report::console::{Bar, Failure};

/// A method as it takes part, untuned.
#[derive(Debug, Clone, Copy)]
pub(super) struct Contender {
    pub(super) method: &'static Method,
    /// Samples a step, where that can be set.
    pub(super) batch: Option<u64>,
}

/// Batches of peers: the better one counts.
const BATCHES: [u64; 2] = [1, 8];

impl Contender {
    /// All ways in which a method takes part.
    pub(super) fn all(name: &str) -> Result<Vec<Self>, Failure> {
        let method = find(name).filter(|method| method.untuned().is_some()).ok_or_else(|| {
            Failure::input(format!("no method called {name:?} runs without constants and step sizes"))
                .hint(format!("the methods that do: {}", untuned().join(", ")))
        })?;
        let batches = if method.has_steps() { BATCHES.map(Some).to_vec() } else { vec![None] };
        Ok(batches.into_iter().map(|batch| Self { method, batch }).collect())
    }
}

/// The names of all methods that need nothing to be set.
pub(super) fn untuned() -> Vec<&'static str> {
    let methods = pasta_opt::method::METHODS.iter();
    methods.filter(|method| method.untuned().is_some()).map(|method| method.name).collect()
}

/// How long and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Limits {
    pub(super) budget: u64,
    pub(super) seeds: u64,
    pub(super) seed: u64,
}

/// The end of one run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct End {
    /// The final gradient over the initial one; null where it is not finite.
    #[serde(deserialize_with = "or_infinite")]
    pub(super) ratio: f64,
    /// Whether the run ended above its start, or nowhere.
    pub(super) bad: bool,
    pub(super) samples: u64,
    /// Samples until the method held a point that had passed its own check, with a gradient of at most each of [`MARKS`].
    #[serde(default)]
    pub(super) checked: [Option<u64>; MARKS.len()],
}

/// Parts of the initial gradient.
pub(super) const MARKS: [f64; 3] = [0.1, 0.01, 0.001];

fn or_infinite<'de, D: serde::Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Option::<f64>::deserialize(from).map(|ratio| ratio.unwrap_or(f64::INFINITY))
}

/// All runs of one contender on one problem.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) problem: String,
    /// |grad f(x0)|: another number is another problem.
    pub(super) start_error: f64,
    pub(super) method: String,
    pub(super) batch: Option<u64>,
    pub(super) ends: Vec<End>,
}

/// A ratio outside of this counts as the nearer end: what is below is rounding, and a run that ended far above its start is not worse
/// for having gone on.
const COUNTED: (f64, f64) = (1e-8, 10.0);

impl Entry {
    fn is_of(&self, ready: &Ready, contender: Contender) -> bool {
        self.problem == ready.problem.name
            && self.start_error == ready.error
            && self.method == contender.method.name
            && self.batch == contender.batch
    }

    /// The geometric mean of the final gradients over the initial one.
    pub(super) fn mean(&self) -> f64 {
        geometric_mean(self.ends.iter().map(|end| end.ratio))
    }

    pub(super) fn bad(&self) -> usize {
        self.ends.iter().filter(|end| end.bad).count()
    }

    /// The deviation of the logarithm of the mean over the seeds.
    pub(super) fn uncertainty(&self) -> f64 {
        let logs = self.ends.iter().map(|end| end.ratio.clamp(COUNTED.0, COUNTED.1).ln());
        pasta_report::Spread::of(logs).map_or(f64::INFINITY, |spread| spread.standard_error)
    }
}

/// The geometric mean of ratios within what counts.
pub(super) fn geometric_mean(ratios: impl IntoIterator<Item = f64>) -> f64 {
    let logs: Vec<f64> = ratios.into_iter().map(|ratio| ratio.clamp(COUNTED.0, COUNTED.1).ln()).collect();
    (logs.iter().sum::<f64>() / logs.len() as f64).exp()
}

/// The geometric mean of positive numbers.
pub(super) fn geometric_mean_of(values: Vec<f64>) -> f64 {
    (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp()
}

/// A problem that is ready, and what is known of its start.
struct Ready {
    problem: &'static Problem,
    instance: Instance,
    error: f64,
    value: f64,
}

impl Ready {
    fn new(problem: &'static Problem) -> Self {
        let instance = problem.instance();
        let (error, value) = instance.truth.judge(&instance.start);
        Self { problem, instance, error, value }
    }
}

/// A contender on a problem, and its runs if they are known.
struct Slot<'r> {
    ready: &'r Ready,
    contender: Contender,
    ends: Option<Vec<End>>,
}

/// Every contender on every problem, but for what is known already. A contender that cannot start somewhere has no entry there.
pub(super) fn run(
    problems: &[&'static Problem],
    contenders: &[Contender],
    limits: Limits,
    known: &[Entry],
) -> Result<Vec<Entry>, Failure> {
    let ready: Vec<Ready> = problems.par_iter().map(|problem| Ready::new(problem)).collect();
    let mut slots: Vec<Slot<'_>> = Vec::new();
    for ready in &ready {
        slots.extend(contenders.iter().map(|contender| {
            let ends =
                known.iter().find(|entry| entry.is_of(ready, *contender)).map(|entry| entry.ends.clone());
            Slot { ready, contender: *contender, ends }
        }));
    }
    let missing = slots.iter().enumerate().filter(|(_, slot)| slot.ends.is_none());
    let runs: Vec<(usize, u64)> =
        missing.flat_map(|(slot, _)| (0..limits.seeds).map(move |run| (slot, run))).collect();
    let progress = Bar::of(runs.len() as u64);
    let ends: Result<Vec<(usize, Option<End>)>, Failure> = runs
        .par_iter()
        .map(|&(slot, run)| {
            let Slot { ready, contender, .. } = &slots[slot];
            let end = play(ready, *contender, limits.budget, limits.seed.wrapping_add(run));
            progress.done(1);
            Ok((slot, end?))
        })
        .collect();
    drop(progress);
    for (slot, end) in ends? {
        slots[slot].ends.get_or_insert_default().extend(end);
    }
    let entries = slots.into_iter().map(|Slot { ready, contender, ends }| Entry {
        problem: ready.problem.name.to_owned(),
        start_error: ready.error,
        method: contender.method.name.to_owned(),
        batch: contender.batch,
        ends: ends.unwrap_or_default(),
    });
    Ok(entries.filter(|entry| !entry.ends.is_empty()).collect())
}

/// One run; `None` if the method cannot run on such an oracle.
fn play(ready: &Ready, contender: Contender, budget: u64, seed: u64) -> Result<Option<End>, Failure> {
    let Ready { problem, instance, error, value } = ready;
    let gate = Gate::over(instance.oracle.clone(), seed).with_budget(u128::from(budget));
    let batch = contender.batch.unwrap_or(1);
    let values = contender.method.untuned().unwrap_or_default();
    let engine = contender.method.engine(&values, budget / batch, batch).map_err(Failure::system)?;
    let Ok(walk) = engine.start(&gate, &instance.start) else { return Ok(None) };
    let mut run = Run::of(gate, walk);
    // Methods without a batch hold points that passed a check, and only those.
    let checks = contender.batch.is_none();
    let mut checked = [None; MARKS.len()];
    let mut held = instance.start.clone();
    let stop = run.follow(|run, _| {
        if checks && run.view().point != held {
            held.copy_from_slice(run.view().point);
            let ratio = instance.truth.error(&held) / error;
            for (mark, checked) in MARKS.iter().zip(&mut checked) {
                if ratio <= *mark && checked.is_none() {
                    *checked = Some(run.gate().ledger().samples() as u64);
                }
            }
        }
        ControlFlow::Continue(())
    });
    let (method, name) = (contender.method.name, problem.name);
    let stop = stop.map_err(|halt| Failure::system(format!("{method} on {name}: {halt}")))?;
    let (samples, point) = (run.gate().ledger().samples() as u64, run.view().point);
    if stop.is_lost() || point.iter().any(|x| !x.is_finite()) {
        return Ok(Some(End { ratio: f64::INFINITY, bad: true, samples, checked }));
    }
    let (end_error, end_value) = instance.truth.judge(point);
    let ratio = if end_error.is_finite() { (end_error / error).max(problem.floor) } else { f64::INFINITY };
    // Rounding is no bad end.
    let bad = !(ratio.is_finite() && end_value <= value + 1e-9 * (1.0 + value.abs()));
    Ok(Some(End { ratio, bad, samples, checked }))
}
