//! A forecast before a run that shall end with a certificate.

use pasta_opt::forecast::{Pilot, PilotError};

use crate::spec::{Certification, Flown, Spec};
use pasta_report::console::{Exit, Failure, Signals, say};

/// Of a budget, at most this part goes into the pilot.
const BUDGET_PART: u128 = 10;

/// Runs the pilot that the file asks for and writes its forecast into the spec; the exit code if it was interrupted.
pub(crate) fn forecast(spec: &mut Spec, signals: &Signals) -> Result<Result<(), Exit>, Failure> {
    let Some(certification) = spec.certification else { return Ok(Ok(())) };
    let samples =
        spec.budget.map_or(certification.pilot, |budget| certification.pilot.min(budget / BUDGET_PART));
    if samples == 0 || certification.rule.share == 0.0 || certification.flown.is_some() {
        return Ok(Ok(()));
    }
    let target = certification.rule.target;
    let pilot = match fly(spec, &certification, samples, signals)? {
        Ok(pilot) => pilot,
        Err(exit) => return Ok(Err(exit)),
    };
    let forecast = pilot.forecast(target);
    match forecast {
        Some(forecast) => say(&format!(
            "forecast: about {:.2e} samples to a certified {target}, {:.1e} to {:.1e} in four of five runs (from a \
             pilot of {} samples)",
            forecast.middle, forecast.low, forecast.high, pilot.samples
        )),
        None => {
            say(&format!("no forecast: no run of the pilot was certified within {} samples", pilot.samples));
        }
    }
    spec.set_forecast(Flown { forecast, samples: pilot.samples })?;
    Ok(Ok(()))
}

/// The pilot of a problem file; the exit code if it was interrupted.
pub(crate) fn fly(
    spec: &Spec,
    certification: &Certification,
    samples: u128,
    signals: &Signals,
) -> Result<Result<Pilot, Exit>, Failure> {
    let run = |target, seed| spec.walk(Some((target, seed)));
    let go_on = || signals.received().is_none();
    match Pilot::fly(&spec.oracle, spec.oracle.start(), certification.rule, samples, spec.seed, run, go_on) {
        Ok(pilot) => Ok(Ok(pilot)),
        Err(PilotError::Interrupted) => {
            say("interrupted during the pilot; nothing was kept");
            Ok(Err(signals.received().unwrap_or(Exit::Interrupted)))
        }
        Err(PilotError::Run(failure)) => Err(failure),
        Err(PilotError::Rule(error)) => Err(Failure::input(error)),
        Err(PilotError::Oracle(error)) => Err(Failure::system(error)),
    }
}
