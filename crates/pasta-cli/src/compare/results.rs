//! What the runs come to, as a table, as JSON and as CSV.

use std::fmt::Write as _;

use pasta_report::console::Report;
use pasta_report::number::{real, short};
use pasta_report::{Column, Spread, Table, clopper_pearson, fitted, significant};
use serde::Serialize;

use super::entrant::{Entrant, Entry, GRID};
use super::race::{Judge, Limits, Outcome, Played};
use crate::spec::Contest;

/// The result of a comparison.
#[derive(Debug, Serialize)]
pub(crate) struct Results {
    pub(super) problem: String,
    #[serde(flatten)]
    pub(super) limits: Limits,
    /// `formula`, `exact-pass` or `samples`.
    pub(super) judged_by: &'static str,
    pub(super) start_gradient: f64,
    /// Where there is a term: gamma of the gradient mapping, which then takes the place of the gradient.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) gamma: Option<f64>,
    /// What the check of the oracle took, before the first run.
    pub(super) check_samples: u128,
    /// Best first.
    pub(super) methods: Vec<MethodRow>,
}

/// One method with one choice of settings.
#[derive(Debug, Serialize)]
pub(super) struct MethodRow {
    pub(super) method: &'static str,
    /// `untuned`, `file`, `proved`, `grid-best` or `grid-median`.
    entry: &'static str,
    batch: Option<u64>,
    eta: Option<f64>,
    /// Runs that reached the target; null without one.
    reached: Option<usize>,
    /// Samples to the target, of the runs that reached it.
    samples_to_target: Option<Middle>,
    /// |grad f| at the end.
    gradient: Option<Middle>,
    diverged: usize,
    worse: usize,
    /// The probability of either: the exact 95 % interval.
    failure: (f64, f64),
    #[serde(skip)]
    fallback: bool,
    pub(super) runs: Vec<Played>,
}

/// A geometric mean, and two of its standard errors to either side.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Middle {
    mean: f64,
    low: f64,
    high: f64,
}

impl Middle {
    /// A zero, as gradient mappings on bounds are, counts as the smallest of the others: its logarithm would outweigh them all.
    fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.into_iter().collect();
        let least = values.iter().copied().filter(|value| *value > 0.0).reduce(f64::min);
        let Some(least) = least else {
            return (!values.is_empty()).then_some(Self { mean: 0.0, low: 0.0, high: 0.0 });
        };
        let spread = Spread::of(values.into_iter().map(|value| value.max(least).ln()))?;
        let (low, high) = spread.interval();
        spread.mean.is_finite().then(|| Self { mean: spread.mean.exp(), low: low.exp(), high: high.exp() })
    }

    fn words(&self) -> String {
        let [mean, low, high] = [self.mean, self.low, self.high].map(|value| significant(value, 2));
        if self.high.is_finite() { format!("{mean} ({low} to {high})") } else { mean }
    }

    fn counts(&self) -> String {
        let [mean, low, high] = [self.mean, self.low, self.high].map(short);
        if self.high.is_finite() { format!("{mean} ({low} to {high})") } else { mean }
    }
}

/// Fewer is better: runs that failed or did not arrive come first, then samples, or the gradient where there is no target.
fn score(outcome: &Outcome, limits: &Limits) -> (usize, f64) {
    let failed = outcome.runs.iter().filter(|run| run.diverged).count();
    if limits.target.is_some() {
        let missed = outcome.runs.iter().filter(|run| run.reached.is_none()).count();
        let samples = Middle::of(outcome.runs.iter().filter_map(|run| run.reached.map(|n| n as f64)));
        // Of two that never arrive the one that came nearer is better.
        let gradient = Middle::of(finite(&outcome.runs)).map_or(f64::INFINITY, |middle| middle.mean);
        return (missed, samples.map_or(gradient, |samples| samples.mean));
    }
    (failed, Middle::of(finite(&outcome.runs)).map_or(f64::INFINITY, |middle| middle.mean))
}

fn finite(runs: &[Played]) -> impl Iterator<Item = f64> {
    runs.iter().map(|run| run.gradient).filter(|gradient| gradient.is_finite())
}

fn compare(a: (usize, f64), b: (usize, f64)) -> std::cmp::Ordering {
    a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
}

impl Results {
    pub(super) fn new(
        contest: &Contest,
        limits: Limits,
        judge: &Judge<'_>,
        check_samples: u128,
        outcomes: Vec<Outcome>,
    ) -> Self {
        let (grid, others): (Vec<_>, Vec<_>) =
            outcomes.into_iter().partition(|outcome| outcome.entrant.entry == Entry::Grid);
        let mut rows: Vec<((usize, f64), MethodRow)> = others
            .into_iter()
            .map(|outcome| (score(&outcome, &limits), MethodRow::new(outcome, &limits, None)))
            .collect();
        let mut names: Vec<&'static str> = grid.iter().map(|outcome| outcome.entrant.method).collect();
        names.dedup();
        let mut grid: Vec<((usize, f64), Outcome)> =
            grid.into_iter().map(|outcome| (score(&outcome, &limits), outcome)).collect();
        // Stable: of equals the one with the smaller step stands first.
        grid.sort_by(|a, b| compare(a.0, b.0));
        for name in names {
            let (own, rest): (Vec<_>, Vec<_>) =
                grid.into_iter().partition(|(_, outcome)| outcome.entrant.method == name);
            grid = rest;
            let middle = own.len() / 2;
            for (place, (score, outcome)) in own.into_iter().enumerate() {
                let part = match place {
                    0 => GridPart::Best,
                    place if place == middle => GridPart::Median,
                    _ => continue,
                };
                rows.push((score, MethodRow::new(outcome, &limits, Some(part))));
            }
        }
        rows.sort_by(|a, b| compare(a.0, b.0));
        Self {
            problem: contest.setup.problem.words.clone(),
            limits,
            judged_by: judge.name(),
            start_gradient: judge.start_gradient,
            gamma: judge.gamma(),
            check_samples,
            methods: rows.into_iter().map(|(_, row)| row).collect(),
        }
    }

    /// One line for each run.
    pub(super) fn csv(&self) -> String {
        let mut text =
            String::from("method,entry,batch,eta,seed,stop,samples,reached,gradient,diverged,worse\n");
        let shown = |value: Option<String>| value.unwrap_or_default();
        for row in &self.methods {
            for run in &row.runs {
                let gradient = run.gradient.is_finite().then(|| format!("{:e}", run.gradient));
                let _ = writeln!(
                    text,
                    "{},{},{},{},{},{},{},{},{},{},{}",
                    row.method,
                    row.entry,
                    shown(row.batch.map(|batch| batch.to_string())),
                    shown(row.eta.map(|eta| eta.to_string())),
                    run.seed,
                    run.stop,
                    run.samples,
                    shown(run.reached.map(|samples| samples.to_string())),
                    shown(gradient),
                    run.diverged,
                    run.worse
                );
            }
        }
        text
    }

    /// What is measured: the gradient, or with a term its mapping.
    pub(super) fn measure(&self) -> &'static str {
        if self.gamma.is_some() { "|G|" } else { "|grad f|" }
    }

    pub(super) fn table(&self) -> Table {
        let last = if self.gamma.is_some() { "final |G|" } else { "final |grad f|" };
        let with_target = self.limits.target.is_some();
        let columns = if with_target {
            Column::all(b"lrrrrr", ["method", "reached", "samples to target", last, "diverged", "worse"])
        } else {
            Column::all(b"lrrr", ["method", last, "diverged", "worse"])
        };
        let row = |row: &MethodRow| {
            let middle = |middle: &Option<Middle>, words: fn(&Middle) -> String| {
                middle.as_ref().map_or_else(|| "-".to_owned(), words)
            };
            let mut cells = vec![row.name()];
            if with_target {
                cells.push(format!("{} of {}", row.reached.unwrap_or(0), row.runs.len()));
                cells.push(middle(&row.samples_to_target, Middle::counts));
            }
            cells.push(middle(&row.gradient, Middle::words));
            cells.extend([row.diverged.to_string(), row.worse.to_string()]);
            cells
        };
        Table { caption: String::new(), columns, rows: self.methods.iter().map(row).collect() }
    }

    /// What was run.
    pub(super) fn setting(&self) -> String {
        let Limits { target, budget, seeds, seed } = self.limits;
        let goal = match target {
            Some(target) => {
                format!(
                    "until {} <= {}, at most {} samples",
                    self.measure(),
                    real(target),
                    short(budget as f64)
                )
            }
            None => format!("{} samples", short(budget as f64)),
        };
        let judged = match self.judged_by {
            "formula" => "by the formulas of the problem",
            "exact-pass" => "by exact passes",
            _ => "by certificates; final gradients are measured by fresh samples",
        };
        let check = match self.check_samples {
            0 => String::new(),
            samples => format!(" A check of the oracle took {samples} samples before."),
        };
        let mapping = match self.gamma {
            Some(gamma) => format!(" G is the gradient mapping of f + h, with gamma = {}.", real(gamma)),
            None => String::new(),
        };
        format!(
            "{}. Each run: {goal}; {seeds} runs each, seeds from {seed}. Points are judged {judged}; {} = {} at the start.{mapping}{check}",
            self.problem,
            self.measure(),
            significant(self.start_gradient, 3)
        )
    }

    /// What the columns mean.
    pub(super) fn legend(&self) -> String {
        let mut text = String::from(
            "A number in brackets after a method is its batch. Figures are geometric means with two standard errors to either side. \
             Worse: the point that was handed out is worse than the start.",
        );
        if self.methods.iter().any(|row| row.entry == "untuned" && row.batch.is_some()) {
            text.push_str(" Step sizes are the published ones.");
        }
        if self.methods.iter().any(|row| row.entry.starts_with("grid")) {
            let _ = write!(
                text,
                " Best and median are of the step sizes {} to {} with both batches, chosen in hindsight.",
                GRID[0],
                GRID[GRID.len() - 1]
            );
        }
        text
    }
}

#[derive(Debug, Clone, Copy)]
enum GridPart {
    Best,
    Median,
}

impl MethodRow {
    fn new(outcome: Outcome, limits: &Limits, part: Option<GridPart>) -> Self {
        let Outcome { entrant: Entrant { method, entry, batch, eta, engine }, runs } = outcome;
        let reached = runs.iter().filter(|run| run.reached.is_some()).count();
        let failed = runs.iter().filter(|run| run.failed()).count();
        Self {
            method,
            entry: match (entry, part) {
                (Entry::Untuned, _) => "untuned",
                (Entry::File, _) => "file",
                (Entry::Proved, _) => "proved",
                (Entry::Grid, Some(GridPart::Median)) => "grid-median",
                (Entry::Grid, _) => "grid-best",
            },
            batch,
            eta,
            reached: limits.target.map(|_| reached),
            samples_to_target: Middle::of(runs.iter().filter_map(|run| run.reached.map(|n| n as f64))),
            gradient: Middle::of(finite(&runs)),
            diverged: runs.iter().filter(|run| run.diverged).count(),
            worse: runs.iter().filter(|run| run.worse).count(),
            failure: clopper_pearson(failed as u64, runs.len() as u64),
            fallback: engine.is_certified(),
            runs,
        }
    }

    /// Its name in tables.
    pub(super) fn name(&self) -> String {
        let mut name = self.method.to_owned();
        if let Some(batch) = self.batch {
            let _ = write!(name, " ({batch})");
        }
        let from = match self.entry {
            "file" if self.fallback => ", as in the file, and auto beside it".to_owned(),
            "file" => ", as in the file".to_owned(),
            "proved" => ", proved constants".to_owned(),
            "grid-best" => format!(", best: eta {}", self.eta.unwrap_or(0.0)),
            "grid-median" => format!(", median: eta {}", self.eta.unwrap_or(0.0)),
            _ => String::new(),
        };
        name + &from
    }
}

impl Report for Results {
    fn text(&self) -> String {
        format!("{}\n\n{}\n\n{}", fitted(&self.setting()), self.table().text(), fitted(&self.legend()))
    }
}

#[cfg(test)]
mod tests {
    use super::Middle;

    #[test]
    fn a_gradient_mapping_of_zero_does_not_outweigh_the_others() {
        let middle = Middle::of([0.0, 0.01, 0.01]).unwrap();
        assert!((middle.mean - 0.01).abs() < 1e-15, "{middle:?}");
        let all = Middle::of([0.0, 0.0]).unwrap();
        assert_eq!((all.mean, all.low, all.high), (0.0, 0.0, 0.0));
        assert!(Middle::of([]).is_none());
    }
}
