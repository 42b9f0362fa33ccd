//! A forecast before a run that shall end with a certificate.

use pasta_opt::checkpoint::{Checkpoint, Saver};
use pasta_opt::forecast::{Family, Forecast, Measured, Pilot, PilotError};
use pasta_opt::gate::{Gate, Halt};
use serde::{Deserialize, Serialize};

use crate::spec::Spec;
use pasta_report::console::{Failure, say};
use pasta_report::number::rough;

/// What was said before the run about its cost, or why nothing was.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Outlook {
    pub(crate) forecast: Option<Forecast>,
    pub(crate) silent: Option<String>,
}

/// How often such ranges held for methods of this kind, in words.
pub(crate) fn held(method: &str) -> String {
    match Family::of(method).map(|family| (family.name(), family.measured())) {
        Some((name, Measured { held, of })) if of > 0 => {
            format!("such ranges held in {held} of {of} runs of {name} that were tried")
        }
        _ => format!("how often such ranges hold for {method} was not tried"),
    }
}

/// The share of runs in which such ranges held for methods of this kind, where it was tried.
pub(crate) fn share(method: &str) -> Option<f64> {
    let Measured { held, of } = Family::of(method)?.measured();
    (of > 0).then(|| f64::from(held) / f64::from(of))
}

/// A pilot goes by samples, which says far too much where the end is reached by passes.
pub(crate) const TABLE: &str =
    "a run on a table ends by exact passes over all rows, and how many of them it takes is not known before";

/// A pilot runs one method.
pub(crate) const FALLBACK: &str =
    "a recipe and its fall-back run side by side, and how long that takes was not tried";

const SECTION: &str = "forecast";

impl Outlook {
    fn silent(why: impl Into<String>) -> Self {
        Self { forecast: None, silent: Some(why.into()) }
    }

    pub(crate) fn save(&self, to: &mut Saver<'_>) {
        to.put(SECTION, self, []);
    }

    pub(crate) fn resume(checkpoint: &mut Checkpoint) -> Self {
        // One that is not there takes nothing from the run.
        checkpoint.take(SECTION).map_or_else(|_| Self::silent("none was made"), |(outlook, _)| outlook)
    }

    /// Nothing about certified runs that are longer than the plan, or on a table.
    pub(crate) fn within(self, spec: &Spec) -> Self {
        if spec.problem.table.is_some() {
            return Self::silent(TABLE);
        }
        let share = spec.certification.map_or(0.0, |certification| certification.rule.share);
        let planned = spec.method.planned_samples().map(|samples| samples / (1.0 - share));
        match (self.forecast, planned) {
            (Some(forecast), Some(planned)) if forecast.low > planned => Self::silent(format!(
                "a certified run would take {} samples or more, and the plan ends before",
                rough(forecast.low)
            )),
            _ => self,
        }
    }

    /// In a line.
    pub(crate) fn words(&self, method: &str) -> String {
        match (self.forecast, &self.silent) {
            (Some(Forecast { low, middle, high, rules, .. }), _) => {
                let [low, middle, high] = [low, middle, high].map(rough);
                let (held, rules) = (held(method), rules.words());
                format!("about {middle} samples, {low} to {high}, without the pilot ({held}); {rules}")
            }
            (None, Some(why)) => format!("none: {why}"),
            (None, None) => "none".into(),
        }
    }
}

/// Runs the pilot that the file asks for; `None` if it was interrupted.
pub(crate) fn outlook(spec: &Spec, gate: &mut Gate) -> Result<Option<Outlook>, Failure> {
    let Some(certification) = spec.certification else {
        return Ok(Some(Outlook::silent("the run is not to be certified")));
    };
    if spec.problem.table.is_some() {
        return Ok(Some(Outlook::silent(TABLE)));
    }
    if spec.method.fallback {
        return Ok(Some(Outlook::silent(FALLBACK)));
    }
    let samples = spec.pilot().unwrap_or(0);
    if samples == 0 || certification.rule.share == 0.0 {
        return Ok(Some(Outlook::silent("no samples are set aside for a pilot")));
    }
    let Some(pilot) = run_pilot(spec, gate, samples)? else { return Ok(None) };
    let target = certification.rule.target;
    let outlook = judge(&pilot, target).within(spec);
    say(&format!("forecast to a certified {target}: {}", outlook.words(spec.method.name)));
    Ok(Some(outlook))
}

/// What a pilot says about a target.
pub(crate) fn judge(pilot: &Pilot, target: f64) -> Outlook {
    match pilot.forecast(target) {
        Ok(forecast) => Outlook { forecast: Some(forecast), silent: None },
        Err(silence) => Outlook::silent(silence.to_string()),
    }
}

/// The pilot of a problem file, with at most so many samples; `None` if it was interrupted.
pub(crate) fn run_pilot(spec: &Spec, gate: &mut Gate, samples: u128) -> Result<Option<Pilot>, Failure> {
    let Some(certification) = spec.certification else { return Ok(None) };
    let run = |gate: &Gate, target| spec.walk_to(gate, target);
    match Pilot::run(gate, &spec.problem.start, certification.rule, samples, run) {
        Ok(pilot) => Ok(Some(pilot)),
        Err(PilotError::Halt(Halt::Interrupted)) => {
            say("interrupted during the pilot; nothing was kept");
            Ok(None)
        }
        Err(PilotError::Run(failure)) => Err(failure),
        Err(PilotError::Rule(error)) => Err(Failure::input(error)),
        Err(PilotError::Halt(halt)) => Err(Failure::system(halt)),
    }
}
