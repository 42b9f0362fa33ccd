//! What the method without constants is meant to achieve, measured.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use pasta_opt::auto::Auto;
use pasta_opt::gate::Gate;
use pasta_opt::oracle::{Noise, Noisy, Source, Tail};
use pasta_opt::prelude::{Basis, Pasta, Run, Stop, StopRule, Walk};
use pasta_opt::problems::SineBowl;
use pasta_opt::recipe::{self, Constant, Constants};
use pasta_report::{Column, Table, significant};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::lbfgs;
use super::problems::{Kind, Problem};
use super::race::{self, Contender, Limits, MARKS, geometric_mean_of};
use crate::duel;
use pasta_report::console::Failure;

/// One goal: a number that is to be at most another.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Goal {
    pub(super) what: String,
    pub(super) most: f64,
    /// Null if it was not reached at all.
    pub(super) measured: f64,
    pub(super) met: bool,
    /// What the number is made of.
    pub(super) note: String,
}

impl Goal {
    pub(super) fn new(what: impl Into<String>, measured: f64, most: f64, note: impl Into<String>) -> Self {
        Self { what: what.into(), most, measured, met: measured <= most, note: note.into() }
    }
}

pub(super) fn table(goals: &[Goal]) -> Table {
    let row = |goal: &Goal| {
        let verdict = if goal.met { "met" } else { "missed" };
        vec![
            goal.what.clone(),
            significant(goal.measured, 2),
            significant(goal.most, 2),
            verdict.to_owned(),
            goal.note.clone(),
        ]
    };
    Table {
        caption: "Goals".into(),
        columns: Column::all(b"lrrll", ["what", "measured", "at most", "", "note"]),
        rows: goals.iter().map(row).collect(),
    }
}

/// The goals that no race measures: tables against L-BFGS, the cost of a certificate, the hard instance of Theorem 1.
pub(super) fn beside_the_race(
    problems: &[&'static Problem],
    seeds: u64,
    seed: u64,
) -> Result<Vec<Goal>, Failure> {
    let mut goals = against_prototype(problems, seeds, seed)?;
    goals.extend(against_lbfgs(problems, seeds, seed)?);
    goals.push(certified(seeds, seed)?);
    goals.push(hard(seeds, seed)?);
    Ok(goals)
}

/// What the prototype that `auto` grew out of needed, as `tests/peers/prototype.py` recorded it.
const PROTOTYPE: &str = include_str!("../../data/prototype.json");

#[derive(Deserialize)]
struct Prototype {
    budget: u64,
    /// For each problem and seed the samples to each of [`MARKS`], if it got there.
    runs: BTreeMap<String, Vec<[Option<u64>; MARKS.len()]>>,
}

/// Samples until the method holds a checked point with a part of the initial gradient, over those of the prototype. A run that does not get
/// there counts with the whole budget, and a problem where nobody gets there does not count.
fn against_prototype(problems: &[&'static Problem], seeds: u64, seed: u64) -> Result<Vec<Goal>, Failure> {
    let prototype: Prototype = serde_json::from_str(PROTOTYPE).map_err(Failure::system)?;
    let known: Vec<&'static Problem> =
        problems.iter().copied().filter(|problem| prototype.runs.contains_key(problem.name)).collect();
    if known.is_empty() {
        return Ok(Vec::new());
    }
    let limits = Limits { budget: prototype.budget, seeds, seed };
    let entries = race::run(&known, &Contender::all("auto")?, limits, &[])?;
    let goal = |(mark, most): (usize, f64)| {
        let mut ratios = Vec::new();
        for entry in &entries {
            let ours: Vec<_> = entry.ends.iter().map(|end| end.checked[mark]).collect();
            let theirs: Vec<_> = prototype.runs[&entry.problem].iter().map(|run| run[mark]).collect();
            if ours.iter().chain(&theirs).any(Option::is_some) {
                let mean = |runs: Vec<Option<u64>>| {
                    let samples = runs.into_iter().map(|run| run.unwrap_or(prototype.budget) as f64);
                    geometric_mean_of(samples.collect())
                };
                ratios.push(mean(ours) / mean(theirs));
            }
        }
        let ahead = ratios.iter().filter(|ratio| **ratio < 1.0).count();
        let note = format!("fewer on {ahead} of {} problems", ratios.len());
        let what = format!("samples to a checked {} % over the prototype", 100.0 * MARKS[mark]);
        (!ratios.is_empty()).then(|| Goal::new(what, geometric_mean_of(ratios), most, note))
    };
    Ok([(0, 0.5), (1, 1.0), (2, 1.0)].into_iter().filter_map(goal).collect())
}

/// The part of the initial gradient that is sought on tables.
const FINE: f64 = 1e-6;
/// Passes after which neither is waited for.
const MOST_PASSES: u64 = 5_000;
/// A problem whose gradient does not become small at a solution.
const KINKED: &str = "phase";

/// Passes to 1e-6 of the initial gradient over those of L-BFGS.
fn against_lbfgs(problems: &[&'static Problem], seeds: u64, seed: u64) -> Result<Vec<Goal>, Failure> {
    let tables: Vec<_> = problems.iter().filter(|p| p.kind == Kind::Table && p.name != KINKED).collect();
    let ratios: Result<Vec<(&str, Option<f64>)>, Failure> = tables
        .par_iter()
        .map(|problem| {
            let instance = problem.instance();
            let Source::Table { rows } = instance.oracle.about().source else {
                return Ok((problem.name, None));
            };
            let budget = u128::from(rows * MOST_PASSES);
            let mut gate = Gate::over(instance.oracle.clone(), seed).with_budget(budget);
            let theirs = lbfgs::passes_to(&mut gate, &instance.start, FINE, rows).map_err(Failure::system)?;
            // Where L-BFGS does not arrive there is nothing to compare with.
            let Some(theirs) = theirs else { return Ok((problem.name, None)) };
            let goal = FINE * instance.truth.error(&instance.start);
            let ours: Result<Vec<f64>, Failure> = (0..seeds)
                .into_par_iter()
                .map(|run| {
                    let gate =
                        Gate::over(instance.oracle.clone(), seed.wrapping_add(run)).with_budget(budget);
                    let walk = Auto::start(&gate, &instance.start, None).map_err(Failure::system)?;
                    let mut run = Run::of(gate, walk);
                    let is_there = |run: &Run| instance.truth.error(run.view().point) <= goal;
                    let watch = |run: &mut Run, _| {
                        if is_there(run) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                    };
                    run.follow(watch).map_err(Failure::system)?;
                    let there = is_there(&run);
                    let drawn = run.gate().ledger().samples() as f64 / rows as f64;
                    Ok(if there { drawn } else { MOST_PASSES as f64 })
                })
                .collect();
            Ok((problem.name, Some(geometric_mean_of(ours?) / theirs)))
        })
        .collect();
    let ratios = ratios?;
    let lost = ratios.iter().filter(|(_, ratio)| ratio.is_none()).map(|(name, _)| format!("{name} -"));
    let mut known: Vec<(&str, f64)> =
        ratios.iter().filter_map(|(name, ratio)| Some((*name, (*ratio)?))).collect();
    known.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (Some(worst), Some(median)) = (known.last(), known.get(known.len() / 2)) else {
        return Ok(Vec::new());
    };
    let all = known.iter().map(|(name, ratio)| format!("{name} {}", significant(*ratio, 2)));
    let words: Vec<String> = all.chain(lost).collect();
    Ok(vec![
        Goal::new("passes to 1e-6 over L-BFGS, worst table", worst.1, 1.5, words.join(", ")),
        Goal::new("the same, median table", median.1, 1.0, format!("{} tables", known.len())),
    ])
}

/// Samples to a certified gradient of .1 without constants, over those of the recipe `smooth` with the true ones: the sine bowl with
/// B = b = 1 and the tails and bases on which certified runs are tested.
fn certified(seeds: u64, seed: u64) -> Result<Goal, Failure> {
    const TARGET: f64 = 0.1;
    let growth = Basis::Growth { growth: 1.0, floor: 1.0, distance: 0.0 };
    let settings = [
        (Tail::Gaussian, growth),
        (Tail::TwoPoint { probability: 0.02 }, growth),
        (Tail::StudentT { dof: 3.0 }, growth),
        (Tail::Gaussian, Basis::Kurtosis(100.0)),
    ];
    let mut ratios = Vec::new();
    for (tail, basis) in settings {
        let noise = Noise { growth: 1.0, floor: 1.0, tail };
        let oracle =
            Noisy::new(Box::new(SineBowl { dimension: 1 }), noise, vec![1.2]).map_err(Failure::system)?;
        let oracle = Arc::new(oracle);
        let rule = StopRule { target: TARGET, delta: 0.05, basis, share: 0.5 };
        let mut constants = Constants::of(oracle.objective(), &oracle.noise(), oracle.start());
        constants.set(Constant::Target, TARGET);
        let row = recipe::find("smooth").ok_or_else(|| Failure::system("there is no recipe smooth"))?;
        let plan = row.plan(&row.relevant(&constants)).map_err(Failure::system)?;
        let cost = |auto: bool| -> Result<f64, Failure> {
            let samples: Result<Vec<f64>, Failure> = (0..seeds)
                .into_par_iter()
                .map(|run| {
                    let mut gate = Gate::over(oracle.clone(), seed.wrapping_add(run)).with_budget(1_000_000);
                    let walk: Box<dyn Walk> = if auto {
                        Box::new(Auto::start(&gate, oracle.start(), Some(TARGET)).map_err(Failure::system)?)
                    } else {
                        let schedule = plan.schedule.clone().endless();
                        Box::new(Pasta::start(&gate, schedule, oracle.start()).map_err(Failure::system)?)
                    };
                    let walk = walk.certified(&gate, rule).map_err(Failure::system)?;
                    let end = walk.finish(&mut gate).map_err(Failure::system)?;
                    let certified = end.stop == Stop::Certified;
                    Ok(if certified { end.ledger.samples() as f64 } else { f64::INFINITY })
                })
                .collect();
            Ok(geometric_mean_of(samples?))
        };
        ratios.push(cost(true)? / cost(false)?);
    }
    let words: Vec<String> = ratios.iter().map(|ratio| significant(*ratio, 2)).collect();
    let note = format!("Gaussian, two-point, Student t, Gaussian by kurtosis: {}", words.join(", "));
    let worst = ratios.into_iter().fold(0.0, f64::max);
    Ok(Goal::new("samples to a certified gradient over `smooth`, worst of 4", worst, 1.3, note))
}

/// Samples on the hard instance of Theorem 1 over the sharp lower bound.
fn hard(seeds: u64, seed: u64) -> Result<Goal, Failure> {
    let duel::Against { bound, samples, reached, zero_respecting } =
        duel::auto_against_theorem_1(seeds, seed)?;
    let mean = samples.iter().sum::<f64>() / samples.len() as f64 / bound;
    let respect = if zero_respecting {
        "zero-respecting"
    } else {
        "not zero-respecting, so the bound does not bind it"
    };
    let note = format!("{reached} of {seeds} runs arrived; {respect}");
    let measured = if reached as u64 == seeds { mean } else { f64::INFINITY };
    Ok(Goal::new("samples on the hard instance over its lower bound", measured, 10.0, note))
}
