//! What the method without constants is meant to achieve, measured.

use std::sync::Arc;

use pasta_opt::Auto;
use pasta_opt::gate::Gate;
use pasta_opt::oracle::{Noise, Noisy, Tail};
use pasta_opt::prelude::{Basis, Pasta, Stop, StopRule, Walk};
use pasta_opt::problems::SineBowl;
use pasta_opt::recipe::{self, Constant, Constants};
use pasta_report::{Column, Table, significant};
use rayon::prelude::*;
use serde::Serialize;

use super::race::geometric_mean_of;
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

/// The goals that no race measures: the cost of a certificate, the hard instance of Theorem 1.
pub(super) fn beside_the_race(seeds: u64, seed: u64) -> Result<Vec<Goal>, Failure> {
    Ok(vec![certified(seeds, seed)?, hard(seeds, seed)?])
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
