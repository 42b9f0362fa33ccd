//! What rounds cost: the method without constants to a certified target, where a round is as dear as some samples.

use pasta_opt::Auto;
use pasta_opt::gate::Gate;
use pasta_opt::prelude::{Basis, Stop, StopRule, Walk};
use pasta_report::console::{Bar, Failure, Report};
use pasta_report::{Column, Table, grouped, significant};
use rayon::prelude::*;
use serde::Serialize;

use super::problems::Problem;
use super::race::geometric_mean_of;

/// What is run.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Terms {
    /// The target is this share of the gradient at the start.
    pub(super) share: f64,
    /// No run draws more samples.
    pub(super) budget: u64,
    pub(super) seeds: u64,
    pub(super) seed: u64,
}

/// All runs at all costs.
#[derive(Debug, Serialize)]
pub(super) struct Rounds {
    #[serde(flatten)]
    terms: Terms,
    entries: Vec<Entry>,
}

/// The runs on one problem at one cost of a round.
#[derive(Debug, Serialize)]
struct Entry {
    problem: &'static str,
    round_cost: u64,
    /// Runs that ended with a certificate.
    certified: u64,
    /// Geometric means of all runs.
    samples: f64,
    rounds: f64,
    /// How many runs ended above their start, certified or not.
    above: u64,
}

/// Every cost on every problem.
pub(super) fn run(problems: &[&'static Problem], costs: &[u64], terms: Terms) -> Result<Rounds, Failure> {
    let runs: Vec<_> = problems
        .iter()
        .flat_map(|problem| costs.iter().map(move |cost| (*problem, *cost)))
        .flat_map(|(problem, cost)| (0..terms.seeds).map(move |run| (problem, cost, run)))
        .collect();
    let progress = Bar::of(runs.len() as u64);
    let ends: Result<Vec<End>, Failure> = runs
        .par_iter()
        .map(|&(problem, cost, run)| {
            let end = play(problem, cost, terms, terms.seed.wrapping_add(run));
            progress.done(1);
            end
        })
        .collect();
    drop(progress);
    let ends = ends?;
    let of_one = runs.chunks(terms.seeds as usize).zip(ends.chunks(terms.seeds as usize));
    let entry = |(runs, ends): (&[(&'static Problem, u64, u64)], &[End])| Entry {
        problem: runs[0].0.name,
        round_cost: runs[0].1,
        certified: ends.iter().filter(|end| end.certified).count() as u64,
        samples: geometric_mean_of(ends.iter().map(|end| end.samples).collect()),
        rounds: geometric_mean_of(ends.iter().map(|end| end.rounds).collect()),
        above: ends.iter().filter(|end| end.above).count() as u64,
    };
    Ok(Rounds { terms, entries: of_one.map(entry).collect() })
}

#[derive(Debug, Clone, Copy)]
struct End {
    certified: bool,
    samples: f64,
    rounds: f64,
    above: bool,
}

fn play(problem: &Problem, round_cost: u64, terms: Terms, seed: u64) -> Result<End, Failure> {
    let instance = problem.instance();
    let (error, value) = instance.truth.judge(&instance.start);
    let target = terms.share * error;
    let rule = StopRule { target, delta: 0.05, basis: Basis::Kurtosis(100.0), share: 0.5 };
    let mut gate = Gate::over(instance.oracle.clone(), seed)
        .with_budget(u128::from(terms.budget))
        .with_round_cost(round_cost)
        .counting_rounds();
    let walk = Auto::start(&gate, &instance.start, Some(target)).map_err(Failure::system)?;
    let walk = walk.certified(&gate, rule).map_err(Failure::system)?;
    let end = walk.finish(&mut gate).map_err(Failure::system)?;
    let end_value = instance.truth.value(&end.point);
    Ok(End {
        certified: end.stop == Stop::Certified,
        samples: end.ledger.samples() as f64,
        rounds: end.ledger.rounds().unwrap_or(0) as f64,
        above: end_value.is_nan() || end_value > value + 1e-9 * (1.0 + value.abs()),
    })
}

impl Rounds {
    /// Where rounds are free, on the same problem.
    fn free(&self, entry: &Entry) -> Option<&Entry> {
        self.entries.iter().find(|free| free.round_cost == 0 && free.problem == entry.problem)
    }

    /// A row for each problem and cost, and one for each cost over all problems on which every run was certified, at that cost and at none.
    pub(super) fn table(&self) -> Table {
        let ratios = |entry: &Entry| {
            self.free(entry).map(|free| (entry.samples / free.samples, free.rounds / entry.rounds))
        };
        let mut rows: Vec<Vec<String>> = Vec::new();
        for entry in &self.entries {
            let ratios = ratios(entry);
            let number = |ratio: Option<f64>| ratio.map_or(String::new(), |ratio| significant(ratio, 3));
            rows.push(vec![
                entry.problem.to_owned(),
                entry.round_cost.to_string(),
                format!("{}/{}", entry.certified, self.terms.seeds),
                grouped(entry.samples.round() as u128),
                grouped(entry.rounds.round() as u128),
                number(ratios.map(|(samples, _)| samples)),
                number(ratios.map(|(_, rounds)| rounds)),
                entry.above.to_string(),
            ]);
        }
        let mut costs: Vec<u64> = self.entries.iter().map(|entry| entry.round_cost).collect();
        costs.sort_unstable();
        costs.dedup();
        for cost in costs.into_iter().filter(|cost| *cost > 0) {
            let all = |entry: &&Entry| entry.certified == self.terms.seeds;
            let compared = self.entries.iter().filter(|entry| entry.round_cost == cost).filter(all);
            let compared: Vec<(f64, f64)> = compared
                .filter(|entry| self.free(entry).is_some_and(|free| all(&free)))
                .filter_map(ratios)
                .collect();
            let mean = |of: fn(&(f64, f64)) -> f64| {
                significant(geometric_mean_of(compared.iter().map(of).collect()), 3)
            };
            rows.push(vec![
                format!("all {} that were always certified", compared.len()),
                cost.to_string(),
                String::new(),
                String::new(),
                String::new(),
                mean(|ratios| ratios.0),
                mean(|ratios| ratios.1),
                String::new(),
            ]);
        }
        let what = [
            "problem",
            "round cost",
            "certified",
            "samples",
            "rounds",
            "samples x",
            "rounds /",
            "above start",
        ];
        let Terms { share, budget, .. } = self.terms;
        Table {
            caption: format!("To a certified {share} of |grad f(x0)|, at most {} samples", grouped(budget)),
            columns: Column::all(b"lrrrrrrr", what),
            rows,
        }
    }
}

impl Report for Rounds {
    fn text(&self) -> String {
        self.table().text()
    }
}
