//! What a claim is, and what comes of it.

use serde::Serialize;

use super::Setting;
use super::fit::Estimate;
use pasta_report::{Axis, Chart, Series, Table};

/// Anything that keeps a claim from being measured at all.
pub(super) type Measured<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// A statement of the paper, or about it, with the measurement that decides it.
#[derive(Debug)]
pub(super) struct Claim {
    /// In commands and files.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// The claim in one sentence.
    pub(super) statement: &'static str,
    pub(super) measure: fn(&Setting) -> Measured<Finding>,
}

/// What was measured.
#[derive(Debug, Default)]
pub(super) struct Finding {
    /// What a reader needs to know besides the statement; one paragraph each.
    pub(super) text: Vec<String>,
    pub(super) checks: Vec<Check>,
    pub(super) tables: Vec<Table>,
    pub(super) figures: Vec<Chart>,
    pub(super) points: Vec<Point>,
}

impl Finding {
    pub(super) fn holds(&self) -> bool {
        !self.checks.is_empty() && self.checks.iter().all(|check| check.holds)
    }
}

/// One number against one prediction.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Check {
    /// What is measured, on what.
    pub(super) name: String,
    /// The family, the targets, the seeds.
    pub(super) setting: String,
    pub(super) measured: f64,
    /// Where the number is random: its interval over the seeds.
    pub(super) interval: Option<(f64, f64)>,
    /// What the theory says: a value, or a limit.
    pub(super) predicted: Predicted,
    /// For an exponent: the slope that the cost formula itself has on these targets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) on_this_grid: Option<f64>,
    /// Why it holds or does not, in words.
    pub(super) reason: String,
    pub(super) holds: bool,
}

/// What the theory says of a number.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Predicted {
    Is(f64),
    AtMost(f64),
    AtLeast(f64),
}

impl Check {
    /// The whole interval lies on the right side of a limit.
    pub(super) fn within(
        name: impl Into<String>,
        setting: impl Into<String>,
        measured: Estimate,
        predicted: Predicted,
    ) -> Self {
        let (name, setting) = (name.into(), setting.into());
        let (holds, reason) = match predicted {
            Predicted::AtMost(bound) => (measured.high() <= bound, "the interval lies below the limit"),
            Predicted::AtLeast(bound) => (measured.low() >= bound, "the interval lies above the limit"),
            Predicted::Is(value) => (measured.admits(value, 0.0), "the interval contains the value"),
        };
        let reason =
            if measured.interval.is_some() { reason.into() } else { reason.replace("the interval", "it") };
        let reason = if holds { reason } else { format!("it is not so that {reason}") };
        let Estimate { value, interval } = measured;
        Self { name, setting, measured: value, interval, predicted, on_this_grid: None, reason, holds }
    }

    /// A number without an interval, judged elsewhere.
    pub(super) fn counted(
        name: String,
        setting: String,
        (measured, predicted): (f64, f64),
        (holds, reason): (bool, String),
    ) -> Self {
        let predicted = Predicted::Is(predicted);
        Self { name, setting, measured, interval: None, predicted, on_this_grid: None, reason, holds }
    }
}

/// One measured number.
#[derive(Debug, Clone)]
pub(super) struct Point {
    pub(super) series: String,
    /// What `at` is a value of.
    pub(super) parameter: &'static str,
    pub(super) at: f64,
    /// None where no draw was involved.
    pub(super) seed: Option<u64>,
    pub(super) quantity: &'static str,
    pub(super) value: f64,
}

impl Point {
    /// One number; without a seed it is not random.
    pub(super) fn new(
        series: impl Into<String>,
        (parameter, at): (&'static str, f64),
        seed: Option<u64>,
        (quantity, value): (&'static str, f64),
    ) -> Self {
        Self { series: series.into(), parameter, at, seed, quantity, value }
    }

    /// What the runs of all seeds gave at one place, seed by seed.
    pub(super) fn of_runs<T>(
        series: &str,
        at: (&'static str, f64),
        seeds: &[u64],
        runs: &[T],
        quantities: &[(&'static str, fn(&T) -> f64)],
    ) -> Vec<Self> {
        let of_run = |(&seed, run)| {
            quantities.iter().map(move |(name, what)| Self::new(series, at, Some(seed), (*name, what(run))))
        };
        seeds.iter().zip(runs).flat_map(of_run).collect()
    }
}

/// Samples against the target, both axes logarithmic.
pub(super) fn samples_chart(id: &'static str, title: &str, caption: &str, series: Vec<Series>) -> Chart {
    Chart {
        id,
        title: title.into(),
        caption: caption.into(),
        x: Axis::log("target eps"),
        y: Axis::log("samples"),
        series,
        references: Vec::new(),
    }
}
