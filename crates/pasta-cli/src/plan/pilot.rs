//! The forecast of a certified run, beside what the theory says of it.

use std::path::Path;

use pasta_opt::forecast::{Family, Forecast, Pilot, PilotRun, Price};
use pasta_opt::recipe::{self, Constant, Constants, Guarantee, Plan};
use serde::Serialize;

use super::limit::{self, Limit};
use crate::forecast::{FALLBACK, judge, pilot_held, run_pilot, share};
use crate::spec::{self, Overrides, Spec};
use crate::waiting::Waiting;
use pasta_opt::run::{Promise, Target};
use pasta_opt::walk::StopRule;
use pasta_report::Table;
use pasta_report::answer::about;
use pasta_report::console::{self, Exit, Failure, Report, Signals, duration, with_threads};
use pasta_report::number::{at_most, real, rough, whole};

/// Forecasts the samples that the method of a problem file takes to a certified target.
pub(super) fn run(
    file: &Path,
    target: Option<Target>,
    samples: Option<u128>,
    as_json: bool,
) -> Result<Exit, Failure> {
    // Without a target, that of the certificate or else of the recipe.
    let overrides = Overrides { certify: target, certify_recipe: true, ..Overrides::default() };
    let mut spec = spec::read(file, &overrides)?;
    let Some(rule) = spec.task.certify else {
        return Err(Failure::input("which target?").hint("give it with --target: certify |grad f| <= eps"));
    };
    if spec.method.fallback {
        let hint = "leave the fall-back out of the file for a forecast of the recipe alone";
        return Err(Failure::input(FALLBACK).hint(hint));
    }
    let samples = samples.unwrap_or_else(|| spec.pilot());
    if samples == 0 {
        let message = "a tenth of the budget or of the plan leaves no samples for a pilot";
        return Err(Failure::input(message).hint("give them with --samples"));
    }
    spec.prospects()?.iter().for_each(|note| console::say(&format!("note: {note}")));
    with_threads(spec.threads, || {
        let signals = Signals::register()?;
        let mut gate = spec.problem.gate(spec.task.seed, spec.task.budget, signals.flag());
        let waiting = Waiting::start("pilot");
        if let Some(share) = spec.task.of_start {
            let target = spec.problem.of_start(share, &mut gate)?.target;
            spec.task.certify = Some(StopRule { target, ..rule });
        }
        let target = spec.task.certify.map_or(rule.target, |rule| rule.target);
        let watch = |target, drawn| {
            waiting.say(&format!("pilot: {} samples, next a run to {}", whole(drawn), real(target)));
        };
        let done = run_pilot(&spec, &mut gate, samples, watch)?;
        let (seconds, drawn) = (waiting.seconds(), gate.ledger().samples());
        drop(waiting);
        match done {
            None => Ok(signals.received().unwrap_or(Exit::Interrupted)),
            Some(pilot) => {
                let prospect = Prospect::new(&spec, target, samples, pilot)?;
                if let Some(forecast) = &prospect.forecast {
                    let time = duration(forecast.middle * seconds / (drawn as f64).max(1.0));
                    console::say(&format!("at the pilot's pace the run would take about {time}"));
                }
                console::print(&prospect, as_json)
            }
        }
    })
}

/// All that can be said beforehand about a certified run.
#[derive(Serialize)]
struct Prospect {
    problem: String,
    method: &'static str,
    target: f64,
    forecast: Option<Forecast>,
    /// The share of runs in which such ranges held, for methods of this kind.
    forecast_share: Option<f64>,
    forecast_silent: Option<String>,
    pilot_budget: u128,
    pilot: Pilot,
    worst_case: Option<f64>,
    /// What a sample costs, if that is known.
    price: Option<Price>,
    #[serde(skip)]
    is_table: bool,
    #[serde(skip)]
    promise: Option<String>,
    lower_bound: Option<Limit>,
}

impl Prospect {
    fn new(spec: &Spec, target: f64, pilot_budget: u128, pilot: Pilot) -> Result<Self, Failure> {
        let (worst_case, promise, lower_bound) = match &spec.method.promise {
            Some(Promise { constants, plan, .. }) => {
                let Guarantee { measure, bound, .. } = plan.guarantee;
                let promise = format!("E {} <= {}", measure.formula(), real(bound));
                (Some(plan.cost.samples), Some(promise), lower_bound(constants, plan)?)
            }
            None => (None, None, None),
        };
        let judged = judge(spec, &pilot, target);
        let (forecast, silent) = (judged.as_ref().ok().copied(), judged.err());
        Ok(Self {
            problem: spec.problem.words.clone(),
            method: spec.method.name,
            target,
            forecast,
            forecast_share: forecast.and_then(|_| share(spec.method.name, Family::measured)),
            forecast_silent: silent,
            pilot_budget,
            pilot,
            worst_case,
            price: spec.price.clone(),
            is_table: spec.problem.table.is_some(),
            promise,
            lower_bound,
        })
    }

    fn forecast(&self) -> String {
        let Some(Forecast { low, middle, high, rules, .. }) = self.forecast else {
            let short = self.pilot.samples >= self.pilot_budget / 2 && !self.is_table;
            let hint = if short { ". A larger pilot (--samples) may tell more" } else { "" };
            return format!("none: {}{hint}", self.forecast_silent.as_deref().unwrap_or_default());
        };
        let ([low, high], target) = ([low, high].map(rough), real(self.target));
        let middle = about(middle, self.price.as_ref());
        let (held, rules) = (pilot_held(self.method), rules.words());
        format!(
            "about {middle} to a certified |grad f| <= {target}, {low} to {high} ({held}); {rules}. A forecast, not a bound"
        )
    }

    fn pilot_text(&self) -> String {
        let Pilot { runs, samples, .. } = &self.pilot;
        let certified: Vec<&PilotRun> = runs.iter().filter(|run| run.certified).collect();
        let ladder = match certified.as_slice() {
            [] => String::new(),
            [only] => format!(", one certified at {}", real(only.target)),
            [first, .., last] => {
                let [first, last] = [first, last].map(|run| real(run.target));
                format!(", {} certified at targets from {first} down to {last}", certified.len())
            }
        };
        let at_start = match self.pilot.gradient_at_start {
            0.0 => String::new(),
            gradient => format!("; at the start |grad f| is about {}", real(gradient)),
        };
        let plural = if runs.len() == 1 { "" } else { "s" };
        format!("{} samples in {} run{plural}{ladder}{at_start}", whole(*samples), runs.len())
    }
}

fn lower_bound(constants: &Constants, plan: &Plan) -> Result<Option<Limit>, Failure> {
    let Some(row) = recipe::find(plan.recipe).filter(|_| constants.get(Constant::Target).is_some()) else {
        return Ok(None);
    };
    limit::beside(row, plan, constants).transpose().map_err(Failure::input)
}

impl Report for Prospect {
    fn text(&self) -> String {
        let mut rows = vec![
            ("problem", self.problem.clone()),
            ("method", self.method.to_owned()),
            ("forecast", self.forecast()),
            ("pilot", self.pilot_text()),
        ];
        if let (Some(samples), Some(promise)) = (self.worst_case, &self.promise) {
            let text = format!(
                "at most {} samples in expectation for {promise}, whatever the function with these constants; without \
                 a certificate",
                at_most(samples)
            );
            rows.push(("worst case", text));
        }
        if let Some(limit) = &self.lower_bound {
            rows.push(("lower bound", limit.sentence()));
        }
        Table::labelled(rows).text()
    }
}
