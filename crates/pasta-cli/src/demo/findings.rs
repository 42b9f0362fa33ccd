//! What came out of the runs, and how it is told.

use std::path::Path;

use pasta_opt::prelude::*;
use serde::Serialize;

use super::{Forecast, NOISE, RUNS, Round, Run, START, TARGET, broken};
use crate::error::Failure;
use crate::report::{Align, Column, Spread, Table, given, grouped, significant};

/// What came out: all that is said anywhere is said from here.
#[derive(Serialize)]
pub(super) struct Findings {
    pub(super) seed: u64,
    runs: u64,
    problem: Problem,
    target: f64,
    /// eps^2.
    goal: f64,
    methods: Vec<Outcome>,
    predicted: Predicted,
    happened: Happened,
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

/// A method, as it is named and what it says of itself.
#[derive(Serialize)]
struct Method {
    id: &'static str,
    /// In a table.
    name: &'static str,
    /// In a sentence.
    #[serde(skip)]
    subject: &'static str,
    step_size: f64,
    /// In a table, in units of eps^2.
    #[serde(skip)]
    promise: &'static str,
}

/// What a method came to.
#[derive(Serialize)]
struct Outcome {
    #[serde(flatten)]
    method: Method,
    /// Of one run. A forecast where there was none.
    samples: f64,
    /// The mean of |grad f|^2 over the iterates of a run; none if a run diverged or there was none.
    measure: Option<Spread>,
    diverged_runs: usize,
    /// Over the runs that diverged.
    diverged_at_step: Option<Spread>,
    verdict: Verdict,
}

/// What the runs of a method say about the goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Verdict {
    /// The mean is at most eps^2, with 95 % confidence.
    Met,
    /// It is more.
    Missed,
    /// The runs do not say.
    Open,
    /// Some runs left every bound behind.
    Diverged,
    NotRun,
}

/// PASTA before the run. Upper bounds, in expectation.
#[derive(Serialize)]
struct Predicted {
    steps: u64,
    samples: f64,
    measure: f64,
}

/// PASTA after the run.
#[derive(Serialize)]
struct Happened {
    steps: Spread,
    samples: Spread,
    measure: Spread,
    /// 95 % confidence.
    measure_interval: (f64, f64),
}

impl Findings {
    pub(super) fn new(forecast: &Forecast, seed: u64, rounds: &[Round]) -> Result<Self, Failure> {
        let over = |what: fn(&Round) -> f64| {
            Spread::of(rounds.iter().map(what)).ok_or_else(|| broken("there were no runs"))
        };
        let measure = over(|round| round.pasta.measure)?;
        let Plan { schedule, guarantee, cost, .. } = &forecast.pasta;
        Ok(Self {
            seed,
            runs: RUNS,
            problem: Problem {
                objective: "x^2/2 + sin^2 x",
                start: START,
                smoothness: forecast.smoothness,
                gap: forecast.gap,
                growth: NOISE.growth,
                floor: NOISE.floor,
            },
            target: TARGET,
            goal: forecast.goal(),
            methods: outcomes(forecast, rounds),
            predicted: Predicted { steps: schedule.steps, samples: cost.samples, measure: guarantee.bound },
            happened: Happened {
                steps: over(|round| round.pasta.steps as f64)?,
                samples: over(|round| round.pasta.samples as f64)?,
                measure,
                measure_interval: measure.interval(),
            },
        })
    }

    pub(super) fn json(&self, path: &Path) -> Result<String, Failure> {
        let mut value = serde_json::to_value(self).map_err(broken)?;
        value["page"] = path.display().to_string().into();
        serde_json::to_string_pretty(&value).map_err(broken)
    }

    pub(super) fn text(&self, path: &Path) -> String {
        format!(
            "{}\n\n{}\n{FOOTNOTE}\n\n{}\n{}\n\nPage with the curves: {}",
            self.setting(),
            self.comparison().text(),
            self.forecast_check().text(),
            self.envelope(),
            path.display()
        )
    }

    pub(super) fn setting(&self) -> String {
        let Problem { objective, start, smoothness, growth, floor, .. } = self.problem;
        format!(
            "Minimise f(x) = {objective} (L = {smoothness}) from x_0 = {start}, when a sample of the gradient at \
             x has variance\nB^2 |x - x_0|^2 + b^2 with B = {growth}, b = {floor}, until |grad f|^2 is at most \
             eps^2 on average, eps = {}.",
            self.target
        )
    }

    pub(super) fn comparison(&self) -> Table {
        let column = |name, align| Column { name, align };
        Table {
            caption: format!(
                "{} runs of each method; the measure is the mean of |grad f|^2 over the iterates of a run",
                self.runs
            ),
            columns: vec![
                column("method", Align::Left),
                column("samples", Align::Right),
                column("measure/eps^2", Align::Right),
                column("range", Align::Right),
                column("promise", Align::Left),
                column("verdict", Align::Left),
            ],
            rows: self.methods.iter().map(|outcome| outcome.row(self.goal)).collect(),
        }
    }

    pub(super) fn forecast_check(&self) -> Table {
        let Self { predicted, happened, .. } = self;
        let row = |what: &str, predicted: String, happened: String| vec![what.into(), predicted, happened];
        let (low, high) = happened.measure_interval;
        let range = |spread: &Spread| {
            let [least, greatest] = [spread.least, spread.greatest].map(|n| grouped(n.round() as u128));
            if least == greatest {
                least
            } else {
                format!("{} ({least} to {greatest})", grouped(spread.mean.round() as u128))
            }
        };
        Table {
            caption: "PASTA, predicted and happened".into(),
            columns: vec![
                Column { name: "", align: Align::Left },
                Column { name: "predicted", align: Align::Left },
                Column { name: "happened", align: Align::Left },
            ],
            rows: vec![
                row("steps", grouped(predicted.steps.into()), range(&happened.steps)),
                row(
                    "samples",
                    format!("at most {}", significant(predicted.samples, 3)),
                    range(&happened.samples),
                ),
                row(
                    "mean |grad f|^2",
                    format!("at most eps^2 = {}", given(predicted.measure)),
                    format!(
                        "{} (95 % confidence: {} to {})",
                        significant(happened.measure.mean, 3),
                        significant(low, 3),
                        significant(high, 3)
                    ),
                ),
            ],
        }
    }

    /// How far the forecast of the samples was from what was needed.
    pub(super) fn envelope(&self) -> String {
        format!(
            "The forecast of the samples bounds every problem with these constants; this one took 1/{} of it.",
            significant(self.predicted.samples / self.happened.samples.mean, 2)
        )
    }

    /// What came out, in a sentence for each method that was run.
    pub(super) fn sentences(&self) -> String {
        let sentences: Vec<String> =
            self.methods.iter().filter_map(|outcome| outcome.sentence(self.goal)).collect();
        sentences.join(" ")
    }
}

pub(super) const PASTA: &str = "PASTA";
pub(super) const CLASSICAL: &str = "SGD, eta = 1/L";
pub(super) const BOUNDED: &str = "SGD, eta = eps^2/(2 L b^2)";

fn outcomes(forecast: &Forecast, rounds: &[Round]) -> Vec<Outcome> {
    let eta = |plan: &Plan| plan.schedule.eta.at(0);
    let all = |run: fn(&Round) -> &Run| -> Vec<&Run> { rounds.iter().map(run).collect() };
    let outcome = |method, runs: &[&Run]| Outcome::new(method, runs, forecast.goal());
    let pasta =
        Method { id: "pasta", name: PASTA, subject: PASTA, step_size: eta(&forecast.pasta), promise: "<= 1" };
    let classical = Method {
        id: "sgd-classical",
        name: CLASSICAL,
        subject: "SGD with eta = 1/L",
        step_size: 1.0 / forecast.smoothness,
        promise: "none",
    };
    let bounded = Method {
        id: "sgd-bounded",
        name: BOUNDED,
        subject: "SGD with eta = eps^2/(2 L b^2)",
        step_size: eta(&forecast.bounded),
        promise: "<= 1 (*)",
    };
    let patient = Method {
        id: "sgd-bounded-same-samples",
        name: "same, with PASTA's samples",
        subject: "The same with as many samples as PASTA",
        ..bounded
    };
    let horizon = Method {
        id: "sgd-horizon",
        name: "SGD, tuned to its horizon",
        subject: "SGD tuned to its horizon",
        step_size: eta(&forecast.horizon),
        promise: "<= 1",
    };
    vec![
        outcome(pasta, &all(|round| &round.pasta)),
        outcome(classical, &all(|round| &round.classical)),
        outcome(bounded, &all(|round| &round.bounded)),
        outcome(patient, &all(|round| &round.patient)),
        Outcome { samples: forecast.horizon.cost.samples, ..outcome(horizon, &[]) },
    ]
}

pub(super) const FOOTNOTE: &str = "(*) if no sample were noisier than at the start.";

impl Verdict {
    fn new(measure: Option<Spread>, diverged: usize, goal: f64) -> Self {
        match measure.map(|spread| spread.interval()) {
            _ if diverged > 0 => Self::Diverged,
            Some((_, high)) if high <= goal => Self::Met,
            Some((low, _)) if low > goal => Self::Missed,
            Some(_) => Self::Open,
            None => Self::NotRun,
        }
    }
}

impl Outcome {
    fn new(method: Method, runs: &[&Run], goal: f64) -> Self {
        let diverged: Vec<f64> = runs.iter().filter_map(|run| run.diverged).map(|step| step as f64).collect();
        let measure = Spread::of(runs.iter().map(|run| run.measure)).filter(|_| diverged.is_empty());
        Self {
            method,
            samples: Spread::of(runs.iter().map(|run| run.samples as f64)).map_or(0.0, |spread| spread.mean),
            measure,
            diverged_runs: diverged.len(),
            verdict: Verdict::new(measure, diverged.len(), goal),
            diverged_at_step: Spread::of(diverged),
        }
    }

    fn row(&self, goal: f64) -> Vec<String> {
        let ratio = |value: f64| significant(value / goal, 3);
        let samples = if self.samples < 1e9 {
            grouped(self.samples.round() as u128)
        } else {
            significant(self.samples, 3)
        };
        let (mean, range) = match self.measure {
            Some(spread) => {
                (ratio(spread.mean), format!("{} to {}", ratio(spread.least), ratio(spread.greatest)))
            }
            None => ("-".into(), "-".into()),
        };
        vec![self.method.name.into(), samples, mean, range, self.method.promise.into(), self.verdict()]
    }

    fn verdict(&self) -> String {
        match (self.verdict, self.diverged_at_step) {
            (Verdict::Met, _) => "target met".into(),
            (Verdict::Missed, _) => "target missed".into(),
            (Verdict::Open, _) => "too close to call".into(),
            (Verdict::NotRun, _) => "forecast, not run".into(),
            (Verdict::Diverged, at) => match at {
                Some(at) => format!(
                    "diverged in {} of {RUNS} (step {} to {})",
                    self.diverged_runs, at.least, at.greatest
                ),
                None => "diverged".into(),
            },
        }
    }

    fn sentence(&self, goal: f64) -> Option<String> {
        let (subject, runs) = (self.method.subject, RUNS);
        let ratio = significant(self.measure.map_or(f64::NAN, |spread| spread.mean / goal), 2);
        match self.verdict {
            Verdict::Met => Some(format!("{subject} met the target, at {ratio} eps^2.")),
            Verdict::Missed => Some(format!("{subject} missed the target, at {ratio} eps^2.")),
            Verdict::Open => {
                Some(format!("{subject} came too close to the target to call, at {ratio} eps^2."))
            }
            Verdict::Diverged => {
                Some(format!("{subject} diverged in {} of {runs} runs.", self.diverged_runs))
            }
            Verdict::NotRun => None,
        }
    }
}
