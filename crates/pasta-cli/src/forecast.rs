//! The pilot of `pasta plan --pilot`.

use pasta_opt::forecast::{Family, Forecast, Measured, Outlook, Pilot, PilotError};
use pasta_opt::gate::{Gate, Halt};

use crate::spec::Spec;
use pasta_report::answer::held;
use pasta_report::console::{Failure, say};
use pasta_report::number::rough;

/// How often the ranges of a pilot held, in words.
pub(crate) fn pilot_held(method: &str) -> String {
    held(method, Family::measured)
}

/// The share of runs in which ranges held for methods of this kind, where it was tried.
pub(crate) fn share(method: &str, measured: fn(Family) -> Measured) -> Option<f64> {
    let Measured { held, of } = measured(Family::of(method)?);
    (of > 0).then(|| f64::from(held) / f64::from(of))
}

/// A pilot runs one method.
pub(crate) const FALLBACK: &str =
    "a recipe and its fall-back run side by side, and how long that takes was not tried";

/// What a pilot says about a target: nothing about certified runs that are longer than the plan.
pub(crate) fn judge(spec: &Spec, pilot: &Pilot, target: f64) -> Result<Forecast, String> {
    if let Some(why) = Outlook::start(spec.problem.oracle.about(), spec.task.certify, 1)
        .silent
        .filter(|_| spec.problem.table.is_some())
    {
        return Err(why);
    }
    let forecast = pilot.forecast(target).map_err(|silence| silence.to_string())?;
    match spec.planned_in_all() {
        Some(planned) if forecast.low > planned => Err(format!(
            "a certified run would take {} samples or more, and the plan ends before",
            rough(forecast.low)
        )),
        _ => Ok(forecast),
    }
}

/// The pilot of a problem file, with at most so many samples; `None` if it was interrupted.
pub(crate) fn run_pilot(
    spec: &Spec,
    gate: &mut Gate,
    samples: u128,
    watch: impl Fn(f64, u128),
) -> Result<Option<Pilot>, Failure> {
    let Some(rule) = spec.task.certify else { return Ok(None) };
    let run = |gate: &Gate, target| {
        watch(target, samples.saturating_sub(gate.left()));
        spec.walk_to(gate, target)
    };
    match Pilot::run(gate, &spec.problem.start, rule, samples, run) {
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
