//! The runs, and how their points are judged.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pasta_opt::certificate::gamma_near;
use pasta_opt::draws::{Role, derived_seed};
use pasta_opt::gate::{Gate, Halt};
use pasta_opt::method::Engine;
use pasta_opt::objective::{Measure, Objective};
use pasta_opt::oracle::{Answer, Oracle, Request};
use pasta_opt::run::{Event, Run, feasible};
use pasta_opt::stop::Stop;
use pasta_opt::term::{Mapping, Term};
use pasta_opt::walk::Walk;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::entrant::Entrant;
use crate::spec::Contest;
use crate::world;
use pasta_report::console::{Bar, Failure};

/// How long and how often.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Limits {
    pub(crate) target: Option<f64>,
    pub(crate) budget: u64,
    pub(crate) seeds: u64,
    pub(crate) seed: u64,
}

/// All runs of an entrant.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) entrant: Entrant,
    pub(super) runs: Vec<Played>,
}

/// One run.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Played {
    pub(super) seed: u64,
    pub(super) stop: String,
    pub(super) samples: u128,
    /// Samples after which it was at the target.
    pub(super) reached: Option<u128>,
    /// |grad f| of the point that it handed out; null where there is none.
    pub(super) gradient: f64,
    pub(super) diverged: bool,
    /// Whether that point is worse than the start.
    pub(super) worse: bool,
    /// (samples, |grad f|) on the way.
    #[serde(skip)]
    pub(super) curve: Vec<(f64, f64)>,
}

impl Played {
    pub(super) fn failed(&self) -> bool {
        self.diverged || self.worse
    }
}

/// Who says how good a point is. No method sees it.
pub(super) struct Judge<'p> {
    oracle: Arc<dyn Oracle>,
    kind: JudgeKind<'p>,
    pub(super) start_gradient: f64,
    start_value: Option<f64>,
    /// Where there is a term: it, and gamma of the mapping that takes the place of the gradient.
    term: Option<(Arc<dyn Term>, f64)>,
}

enum JudgeKind<'p> {
    Formula(&'p dyn Objective),
    /// A pass over all rows.
    Exact,
    /// This many fresh samples.
    Samples(u64),
}

/// Blocks of samples from which a gradient is measured.
const BLOCKS: u64 = 16;

impl<'p> Judge<'p> {
    pub(super) fn new(contest: &'p Contest, limits: &Limits) -> Result<Self, Failure> {
        let problem = &contest.setup.problem;
        let kind = match problem.objective() {
            Some(objective) => JudgeKind::Formula(objective),
            None if problem.oracle.about().full_pass().is_some() => JudgeKind::Exact,
            None => JudgeKind::Samples((limits.budget / BLOCKS).clamp(64, 1 << 16)),
        };
        // Runs are shared out among processes, not the work of one.
        let oracle = world::alone(Arc::clone(&problem.oracle));
        feasible(problem.term.as_deref(), problem.start.len(), &problem.start, false)
            .map_err(Failure::input)?;
        let term = match &problem.term {
            None => None,
            Some(term) => {
                let gate = Gate::over(Arc::clone(&oracle), derived_seed(limits.seed, Role::Certificate, 1));
                let mut gate = gate.with_term(Some(Arc::clone(term))).with_gamma(contest.gamma);
                let gamma = gamma_near(&mut gate, &problem.start);
                Some((Arc::clone(term), gamma.map_err(Failure::system)?))
            }
        };
        let mut judge = Self { oracle, kind, start_gradient: 0.0, start_value: None, term };
        judge.start_value = problem.objective().map(|f| f.value(&problem.start) + judge.rise(&problem.start));
        judge.start_gradient = judge.gradient(&problem.start, limits.seed)?;
        Ok(judge)
    }

    /// What it judges by.
    pub(super) fn name(&self) -> &'static str {
        match self.kind {
            JudgeKind::Formula(_) => "formula",
            JudgeKind::Exact => "exact-pass",
            JudgeKind::Samples(_) => "samples",
        }
    }

    /// Whether it costs so little that a run can be watched.
    fn watches(&self) -> bool {
        !matches!(self.kind, JudgeKind::Samples(_))
    }

    /// h(x).
    fn rise(&self, x: &[f64]) -> f64 {
        self.term.as_ref().map_or(0.0, |(term, _)| term.value(x))
    }

    /// The length of a gradient, or of its mapping.
    fn length(&self, x: &[f64], gradient: &[f64]) -> f64 {
        match &self.term {
            Some((term, gamma)) => Mapping { term: &**term, gamma: *gamma, x }.norm(gradient),
            None => gradient.iter().map(|g| g * g).sum::<f64>().sqrt(),
        }
    }

    /// gamma, where there is a term.
    pub(super) fn gamma(&self) -> Option<f64> {
        self.term.as_ref().map(|(_, gamma)| *gamma)
    }

    /// |grad f(x)|, or an estimate of it; with a term, the same of the gradient mapping.
    fn gradient(&self, x: &[f64], seed: u64) -> Result<f64, Failure> {
        let gate = || Gate::over(Arc::clone(&self.oracle), derived_seed(seed, Role::Certificate, 0));
        match self.kind {
            JudgeKind::Formula(objective) if self.term.is_some() => {
                let mut out = vec![0.0; x.len()];
                objective.gradient(x, &mut out);
                Ok(self.length(x, &out))
            }
            JudgeKind::Formula(objective) => {
                Ok(Measure::GradientSquared.at(objective, x).unwrap_or(f64::NAN).sqrt())
            }
            JudgeKind::Exact => {
                let mut out = vec![0.0; x.len()];
                finite(gate().exact(Role::Certificate, x, &mut out))?;
                Ok(self.length(x, &out))
            }
            JudgeKind::Samples(size) => {
                // |grad f|^2 from products of means of different blocks, which have no bias.
                let (mut gate, points) = (gate(), [x]);
                let (mut sum, mut squares) = (vec![0.0; x.len()], 0.0);
                for block in 0..BLOCKS {
                    let mut out = vec![0.0; x.len()];
                    let batch = gate.batch(Role::Certificate, block, size);
                    finite(gate.ask(Request::sums(batch, &points), &mut Answer::new(&mut out)))?;
                    for (sum, g) in sum.iter_mut().zip(&out) {
                        *sum += g / size as f64;
                        squares += (g / size as f64).powi(2);
                    }
                }
                if self.term.is_some() {
                    sum.iter_mut().for_each(|sum| *sum /= BLOCKS as f64);
                    return Ok(self.length(x, &sum));
                }
                let all: f64 = sum.iter().map(|g| g * g).sum();
                let pairs = (BLOCKS * (BLOCKS - 1)) as f64;
                Ok(((all - squares) / pairs).max(0.0).sqrt())
            }
        }
    }

    /// Whether a point is worse than the start: by its value where that is known, by its gradient elsewhere.
    fn is_worse(&self, x: &[f64], gradient: f64) -> bool {
        match (&self.kind, self.start_value) {
            (JudgeKind::Formula(objective), Some(start)) => {
                let value = objective.value(x) + self.rise(x);
                value.is_nan() || value > start + 1e-9 * (1.0 + start.abs())
            }
            _ => gradient.is_nan() || gradient > self.start_gradient,
        }
    }
}

/// An answer that is not finite is a judgement too.
fn finite<T>(answer: Result<T, Halt>) -> Result<(), Failure> {
    match answer {
        Ok(_) | Err(Halt::NotFinite { .. }) => Ok(()),
        Err(halt) => Err(Failure::system(halt)),
    }
}

/// What a process made of its runs.
#[derive(Debug, Serialize, Deserialize)]
enum Message {
    Runs(Vec<Sent>),
    Interrupted,
    Failed(String),
}

/// A run as it travels: JSON knows no infinity, and bits are bits.
#[derive(Debug, Serialize, Deserialize)]
struct Sent {
    seed: u64,
    stop: String,
    samples: u128,
    reached: Option<u128>,
    gradient: u64,
    diverged: bool,
    worse: bool,
    curve: Vec<[u64; 2]>,
}

impl From<Played> for Sent {
    fn from(run: Played) -> Self {
        let Played { seed, stop, samples, reached, gradient, diverged, worse, curve } = run;
        let curve = curve.iter().map(|(x, y)| [x.to_bits(), y.to_bits()]).collect();
        Self { seed, stop, samples, reached, gradient: gradient.to_bits(), diverged, worse, curve }
    }
}

impl From<Sent> for Played {
    fn from(sent: Sent) -> Self {
        let Sent { seed, stop, samples, reached, gradient, diverged, worse, curve } = sent;
        let curve = curve.iter().map(|[x, y]| (f64::from_bits(*x), f64::from_bits(*y))).collect();
        Self { seed, stop, samples, reached, gradient: f64::from_bits(gradient), diverged, worse, curve }
    }
}

/// The runs of all processes, in the order of the places; `None` if one of them was interrupted.
fn gather(mine: Result<Option<Vec<Played>>, Failure>, places: usize) -> Result<Option<Vec<Played>>, Failure> {
    let (message, failure) = match mine {
        Ok(Some(runs)) => (Message::Runs(runs.into_iter().map(Sent::from).collect()), None),
        Ok(None) => (Message::Interrupted, None),
        Err(failure) => (Message::Failed(failure.message().to_owned()), Some(failure)),
    };
    let bytes = serde_json::to_vec(&message).map_err(Failure::system)?;
    let all = world::gather(bytes).map_err(Failure::system)?;
    if let Some(failure) = failure {
        return Err(failure);
    }
    let mut of_rank = Vec::with_capacity(all.len());
    for (rank, bytes) in all.iter().enumerate() {
        match serde_json::from_slice(bytes).map_err(Failure::system)? {
            Message::Runs(runs) => of_rank.push(runs.into_iter().map(Played::from)),
            Message::Interrupted => return Ok(None),
            Message::Failed(words) => return Err(Failure::system(format!("{words} (on rank {rank})"))),
        }
    }
    let size = of_rank.len();
    Ok((0..places).map(|place| of_rank[place % size].next()).collect())
}

/// Every entrant with every seed; `None` if `stop` was set. Each run has a seed of its own, so the threads and processes that
/// share them out leave no trace.
pub(super) fn run(
    contest: &Contest,
    limits: &Limits,
    judge: &Judge<'_>,
    entrants: &[Entrant],
    stop: &Arc<AtomicBool>,
) -> Result<Option<Vec<Outcome>>, Failure> {
    let places: Vec<(usize, u64)> =
        (0..entrants.len()).flat_map(|i| (0..limits.seeds).map(move |run| (i, run))).collect();
    let mine: Vec<usize> = world::mine(places.len()).collect();
    let progress = Bar::of(mine.len() as u64);
    let runs: Result<Vec<Played>, Failure> = mine
        .par_iter()
        .map(|&place| {
            let (entrant, run) = places[place];
            let seed = limits.seed.wrapping_add(run);
            let run = play(contest, limits, judge, &entrants[entrant], seed, stop);
            progress.done(1);
            run
        })
        .collect();
    drop(progress);
    let runs = runs.map(|runs| (!stop.load(Ordering::Relaxed)).then_some(runs));
    let Some(runs) = gather(runs, places.len())? else { return Ok(None) };
    let mut runs = runs.into_iter();
    let outcome = |entrant: &Entrant| Outcome {
        entrant: entrant.clone(),
        runs: runs.by_ref().take(limits.seeds as usize).collect(),
    };
    Ok(Some(entrants.iter().map(outcome).collect()))
}

/// A run is looked at whenever it has drawn so many times the samples of the last look.
const LOOK: f64 = 1.05;

fn play(
    contest: &Contest,
    limits: &Limits,
    judge: &Judge<'_>,
    entrant: &Entrant,
    seed: u64,
    stop: &Arc<AtomicBool>,
) -> Result<Played, Failure> {
    let problem = &contest.setup.problem;
    let gate = Gate::over(Arc::clone(&judge.oracle), seed).with_budget(u128::from(limits.budget));
    // It was checked before the first run.
    let gate = gate.with_stop(Arc::clone(stop)).without_check();
    let gate = gate.with_term(problem.term.clone()).with_gamma(judge.gamma());
    let walk = entrant.engine.clone().start(&gate, &problem.start).map_err(Failure::input)?;
    let mut run = match contest.rule.filter(|_| !entrant.engine.is_certified()) {
        None => Run::of(gate, walk),
        Some(rule) => {
            let walk = walk.certified(&gate, rule).map_err(Failure::input)?;
            Run::of(gate, walk)
        }
    };
    // The rounds of auto are few, and each ends with a point to be looked at.
    let rounds = entrant.engine.is_certified() || matches!(entrant.engine, Engine::Auto { .. });
    let mut curve = vec![(1.0, judge.start_gradient)];
    let mut reached = None;
    let mut next = 1.0;
    let stop = loop {
        if let Event::End(stop) = run.next().map_err(Failure::system)? {
            break stop;
        }
        let samples = run.gate().ledger().samples() as f64;
        if !judge.watches() || !(rounds || samples >= next) {
            continue;
        }
        next = (LOOK * samples).max(samples + 1.0);
        let gradient = judge.gradient(run.view().point, seed)?;
        curve.push((samples, gradient));
        if limits.target.is_some_and(|target| gradient <= target) {
            reached = Some(run.gate().ledger().samples());
            break Stop::Asked;
        }
    };
    let (samples, point) = (run.gate().ledger().samples(), run.view().point);
    let diverged = stop.is_lost() || point.iter().any(|x| !x.is_finite());
    let gradient = if diverged { f64::INFINITY } else { judge.gradient(point, seed)? };
    if judge.watches() {
        curve.push((samples as f64, gradient));
        let there = limits.target.is_some_and(|target| gradient <= target);
        reached = reached.or(there.then_some(samples));
    } else if stop == Stop::Certified {
        reached = Some(samples);
    }
    let worse = !diverged && judge.is_worse(point, gradient);
    let stop = if reached.is_some() && stop == Stop::Asked { "reached" } else { stop.kind() }.to_owned();
    Ok(Played { seed, stop, samples, reached, gradient, diverged, worse, curve })
}
