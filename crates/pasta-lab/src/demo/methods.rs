//! The methods, and what their runs came to.

use pasta_opt::prelude::*;
use serde::Serialize;

use super::runs::{Course, Round};
use super::{RUNS, Setting};
use pasta_report::{Spread, grouped, significant};

/// A method, and what it came to.
#[derive(Default, Serialize)]
pub(super) struct Outcome {
    id: &'static str,
    /// In a table.
    name: &'static str,
    /// In a sentence of its own, if it gets one.
    #[serde(skip)]
    subject: Option<&'static str>,
    step_size: f64,
    /// In a table, in units of eps^2.
    #[serde(skip)]
    promise: &'static str,
    /// Of one run. A bound where there was none.
    samples: f64,
    /// The mean of |grad f|^2 over the iterates of a run; none if a run diverged or there was none.
    measure: Option<Spread>,
    diverged_runs: usize,
    /// Over the runs that diverged.
    diverged_at_step: Option<Spread>,
    verdict: Verdict,
}

/// What the runs of a method say about the goal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
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
    #[default]
    NotRun,
}

pub(super) const PASTA: &str = "PASTA";
pub(super) const CLASSICAL: &str = "SGD, eta = 1/L";
pub(super) const BOUNDED: &str = "SGD, eta = eps^2/(2 L b^2)";

/// In the order of the story.
pub(super) fn outcomes(setting: &Setting, rounds: &[Round]) -> Vec<Outcome> {
    let eta = |plan: &Plan| plan.schedule.eta.at(0);
    let all = |run: fn(&Round) -> &Course| -> Vec<&Course> { rounds.iter().map(run).collect() };
    let outcome = |[id, name, promise]: [&'static str; 3], subject, step_size, runs: &[&Course]| Outcome {
        id,
        name,
        subject,
        step_size,
        promise,
        ..Outcome::of(runs, setting.goal())
    };
    let short = eta(&setting.bounded);
    let bounded = "SGD with eta = eps^2/(2 L b^2)";
    let patient = "same, with PASTA's samples";
    let horizon = ["sgd-horizon", "SGD, tuned to its horizon", "<= 1"];
    vec![
        outcome(
            ["sgd-classical", CLASSICAL, "none"],
            Some("SGD with eta = 1/L"),
            1.0 / setting.recipe.smoothness,
            &all(|round| &round.classical),
        ),
        outcome(["sgd-bounded", BOUNDED, "<= 1 (*)"], Some(bounded), short, &all(|round| &round.bounded)),
        outcome(["sgd-bounded-same-samples", patient, "<= 1 (*)"], None, short, &all(|round| &round.patient)),
        Outcome {
            samples: setting.horizon.cost.samples,
            ..outcome(horizon, None, eta(&setting.horizon), &[])
        },
        outcome(["pasta", PASTA, "<= 1"], Some(PASTA), eta(&setting.pasta), &all(|round| &round.pasta)),
    ]
}

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
    /// What the runs of a method, whose name is still to be filled in, came to.
    fn of(runs: &[&Course], goal: f64) -> Self {
        let diverged: Vec<f64> = runs.iter().filter_map(|run| run.diverged).map(|step| step as f64).collect();
        let measure = Spread::of(runs.iter().map(|run| run.measure)).filter(|_| diverged.is_empty());
        Self {
            samples: Spread::of(runs.iter().map(|run| run.samples as f64)).map_or(0.0, |spread| spread.mean),
            measure,
            diverged_runs: diverged.len(),
            verdict: Verdict::new(measure, diverged.len(), goal),
            diverged_at_step: Spread::of(diverged),
            ..Self::default()
        }
    }

    pub(super) fn row(&self, goal: f64) -> Vec<String> {
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
        vec![self.name.into(), samples, mean, range, self.promise.into(), self.verdict()]
    }

    fn verdict(&self) -> String {
        match (self.verdict, self.diverged_at_step) {
            (Verdict::Met, _) => "target met".into(),
            (Verdict::Missed, _) => "target missed".into(),
            (Verdict::Open, _) => "too close to call".into(),
            (Verdict::NotRun, _) => "worst case, not run".into(),
            (Verdict::Diverged, Some(at)) => {
                format!("diverged in {} of {RUNS} (step {} to {})", self.diverged_runs, at.least, at.greatest)
            }
            (Verdict::Diverged, None) => "diverged".into(),
        }
    }

    /// What came out, for a method that is told about.
    pub(super) fn sentence(&self, goal: f64) -> Option<String> {
        let subject = self.subject?;
        let ratio = significant(self.measure.map_or(f64::NAN, |spread| spread.mean / goal), 2);
        let done = match self.verdict {
            Verdict::Met => "met the target",
            Verdict::Missed => "missed the target",
            Verdict::Open => "came too close to the target to call",
            Verdict::Diverged => {
                return Some(format!("{subject} diverged in {} of {RUNS} runs.", self.diverged_runs));
            }
            Verdict::NotRun => return None,
        };
        Some(format!("{subject} {done}, at {ratio} eps^2."))
    }
}
