//! The cost, predicted: a bound by the theorem, and a forecast by a pilot.

use pasta_opt::forecast::{Forecast, Pilot};
use pasta_opt::prelude::*;
use serde::Serialize;

use super::{PILOT, START, Setting, TARGET, broken};
use pasta_report::console::Failure;
use pasta_report::number::rough;
use pasta_report::{Column, Table, given, grouped, significant};

/// What was known of PASTA before the runs.
#[derive(Serialize)]
pub(super) struct Predicted {
    pub(super) worst_case: WorstCase,
    /// None if no run of the pilot was certified.
    pub(super) forecast: Option<Forecast>,
    pilot_samples: f64,
    pilot_runs: usize,
}

/// Theorem 3: bounds, in expectation, for every function with these constants.
#[derive(Serialize)]
pub(super) struct WorstCase {
    pub(super) steps: u64,
    pub(super) samples: f64,
    pub(super) measure: f64,
}

/// Runs the pilot as `pasta solve` does; its seeds are none of the runs'.
pub(super) fn pilot(setting: &Setting, seed: u64) -> Result<Pilot, Failure> {
    let run = |gate: &Gate, target| {
        let plan = Smooth { target, ..setting.recipe }.plan()?;
        Ok::<_, Box<dyn std::error::Error>>(Pasta::start(gate, plan.schedule.endless(), &[START])?)
    };
    Pilot::run(&mut setting.gate(seed), &[START], Setting::stop_rule(), PILOT, run).map_err(broken)
}

impl Predicted {
    pub(super) fn new(setting: &Setting, pilot: &Pilot) -> Self {
        let Plan { schedule, guarantee, cost, .. } = &setting.pasta;
        Self {
            worst_case: WorstCase { steps: schedule.steps, samples: cost.samples, measure: guarantee.bound },
            forecast: pilot.forecast(TARGET).ok(),
            pilot_samples: pilot.samples as f64,
            pilot_runs: pilot.runs.len(),
        }
    }

    pub(super) fn table(&self) -> Table {
        let WorstCase { samples, measure, .. } = self.worst_case;
        let samples = format!("at most {}", significant(samples, 3));
        let proved =
            format!("a proved bound, in expectation: mean of |grad f|^2 <= eps^2 = {}", given(measure));
        let guessed = format!("a forecast, not a bound: certified |grad f| <= eps = {TARGET}");
        Table {
            caption: "Samples of PASTA, said beforehand".into(),
            columns: Column::all(b"lll", ["", "samples", "what it is"]),
            rows: vec![
                vec!["worst case".into(), samples, proved],
                vec!["forecast".into(), self.forecast_range(), guessed],
            ],
        }
    }

    pub(super) fn forecast_range(&self) -> String {
        let Some(Forecast { low, middle, high, .. }) = self.forecast else {
            return "none: no run of the pilot was certified".into();
        };
        format!("about {} ({} to {})", rough(middle), rough(low), rough(high))
    }

    /// Where the two numbers are from.
    pub(super) fn sources(&self) -> String {
        format!(
            "Theorem 3 bounds the samples for every function with these constants. The forecast is for this function: a \
             pilot of {} samples, {} cheap runs at coarser targets, continued to eps.",
            grouped(self.pilot_samples as u128),
            self.pilot_runs,
        )
    }
}
