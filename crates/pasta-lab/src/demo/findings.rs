//! What came out, and how it is told.

use std::path::Path;

use pasta_opt::calibrate::Calibration;
use pasta_opt::forecast::Pilot;
use serde::Serialize;

use super::certified::Certified;
use super::cost::Predicted;
use super::methods::{Outcome, outcomes};
use super::noise::Diagnosed;
use super::runs::Round;
use super::{NOISE, RUNS, START, Setting, TARGET, broken};
use pasta_report::console::Failure;
use pasta_report::{Column, Spread, Table, fitted, given, grouped, significant};

/// What came out: all that is said anywhere is said from here.
#[derive(Serialize)]
pub(super) struct Findings {
    pub(super) seed: u64,
    runs: u64,
    problem: Problem,
    target: f64,
    /// eps^2.
    goal: f64,
    pub(super) diagnosed: Diagnosed,
    pub(super) predicted: Predicted,
    methods: Vec<Outcome>,
    happened: Happened,
    pub(super) certified: Certified,
}

#[derive(Serialize)]
struct Problem {
    objective: &'static str,
    start: f64,
    smoothness: f64,
    gap: f64,
    growth: f64,
    floor: f64,
}

/// PASTA after the runs to the planned end.
#[derive(Serialize)]
struct Happened {
    steps: Spread,
    samples: Spread,
    measure: Spread,
    /// 95 % confidence.
    measure_interval: (f64, f64),
}

impl Findings {
    pub(super) fn new(
        setting: &Setting,
        seed: u64,
        calibration: &Calibration,
        pilot: &Pilot,
        rounds: &[Round],
    ) -> Result<Self, Failure> {
        let over = |what: fn(&Round) -> f64| {
            Spread::of(rounds.iter().map(what)).ok_or_else(|| broken("there were no runs"))
        };
        let measure = over(|round| round.pasta.measure)?;
        let predicted = Predicted::new(setting, pilot);
        Ok(Self {
            seed,
            runs: RUNS,
            problem: Problem {
                objective: "x^2/2 + sin^2 x",
                start: START,
                smoothness: setting.recipe.smoothness,
                gap: setting.recipe.gap,
                growth: NOISE.growth,
                floor: NOISE.floor,
            },
            target: TARGET,
            goal: setting.goal(),
            diagnosed: Diagnosed::new(setting, calibration),
            methods: outcomes(setting, rounds),
            happened: Happened {
                steps: over(|round| round.pasta.steps as f64)?,
                samples: over(|round| round.pasta.samples as f64)?,
                measure,
                measure_interval: measure.interval(),
            },
            certified: Certified::new(rounds, predicted.forecast),
            predicted,
        })
    }

    pub(super) fn json(&self, path: &Path) -> Result<String, Failure> {
        let mut value = serde_json::to_value(self).map_err(broken)?;
        value["page"] = path.display().to_string().into();
        serde_json::to_string_pretty(&value).map_err(broken)
    }

    pub(super) fn text(&self, path: &Path) -> String {
        let statement = self.certified.first.as_ref().map_or("", |example| &example.statement);
        let parts = [
            self.problem(),
            format!("{}\n{}", self.diagnosed.table().text(), self.diagnosed.verdict),
            self.predicted.table().text(),
            format!("{}\n{FOOTNOTE}", self.comparison().text()),
            format!("{}\n{statement}\n{}", self.certified.sentence(), self.certified.truth()),
            self.check().text(),
            format!("Page with the curves: {}", path.display()),
        ];
        fitted(&parts.join("\n\n"))
    }

    pub(super) fn problem(&self) -> String {
        let Problem { objective, start, .. } = self.problem;
        format!(
            "Minimise f(x) = {objective} from x_0 = {start} until |grad f| is at most eps = {}, with noisy gradients.",
            self.target
        )
    }

    pub(super) fn comparison(&self) -> Table {
        Table {
            caption: format!(
                "{} runs of each method; the measure is the mean of |grad f|^2 over the iterates of a run",
                self.runs
            ),
            columns: Column::all(
                b"lrrrll",
                ["method", "samples", "measure/eps^2", "range", "promise", "verdict"],
            ),
            rows: self.methods.iter().map(|outcome| outcome.row(self.goal)).collect(),
        }
    }

    /// All that was predicted beside what happened.
    pub(super) fn check(&self) -> Table {
        let Self { predicted, happened, certified, .. } = self;
        let worst_case = &predicted.worst_case;
        let (low, high) = happened.measure_interval;
        let [mean, low, high] = [happened.measure.mean, low, high].map(|value| significant(value, 3));
        let to_certificate = match (&certified.samples, &certified.against_forecast) {
            (Some(samples), Some(counts)) => format!("{}; {}", range(samples), counts.words()),
            (Some(samples), None) => range(samples),
            (None, _) => "-".into(),
        };
        let rows = [
            ("steps", grouped(worst_case.steps), range(&happened.steps)),
            (
                "mean of |grad f|^2",
                format!("worst case: at most eps^2 = {}", given(worst_case.measure)),
                format!("{mean} (95 % confidence: {low} to {high})"),
            ),
            (
                "samples to the planned end",
                format!("worst case: at most {}", significant(worst_case.samples, 3)),
                format!("{}; 1/{} of it", range(&happened.samples), self.slack()),
            ),
            ("samples to a certificate", format!("forecast: {}", predicted.forecast_range()), to_certificate),
            (
                "false certificates",
                format!("at most {} %", given(100.0 * certified.delta)),
                format!("{} of {}", certified.mistaken, certified.succeeded),
            ),
        ];
        Table {
            caption: "PASTA, predicted and happened".into(),
            columns: Column::all(b"lll", ["", "predicted", "happened"]),
            rows: rows.map(|(what, predicted, happened)| vec![what.into(), predicted, happened]).to_vec(),
        }
    }

    /// How many times more the worst case is than what was needed.
    fn slack(&self) -> String {
        significant(self.predicted.worst_case.samples / self.happened.samples.mean, 2)
    }

    /// What came out, in a sentence for each method and one for the certificates.
    pub(super) fn sentences(&self) -> String {
        let mut sentences: Vec<String> =
            self.methods.iter().filter_map(|outcome| outcome.sentence(self.goal)).collect();
        let Certified { succeeded, runs, mistaken, .. } = self.certified;
        let mistaken = if mistaken == 0 { "none".into() } else { mistaken.to_string() };
        sentences.push(format!(
            "{succeeded} of {runs} runs of it ended with a certificate, {mistaken} of them false."
        ));
        sentences.join(" ")
    }
}

/// The mean of counts, and from where to where they go.
fn range(counts: &Spread) -> String {
    let [least, mean, greatest] =
        [counts.least, counts.mean, counts.greatest].map(|n| grouped(n.round() as u128));
    if least == greatest { least } else { format!("{mean} ({least} to {greatest})") }
}

pub(super) const FOOTNOTE: &str = "(*) if no sample were noisier than at the start.";
