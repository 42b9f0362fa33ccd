//! What a run will probably cost, in words; and the pilot of `pasta plan --pilot`.

use pasta_opt::forecast::{Family, Forecast, Measured, Outlook, Pilot, PilotError, Price};
use pasta_opt::gate::{Gate, Halt};

use crate::spec::Spec;
use pasta_report::console::{Failure, say};
use pasta_report::number::{at_most, rough};

/// How often ranges held for methods of this kind, in words.
fn held(method: &str, measured: fn(Family) -> Measured) -> String {
    match Family::of(method).map(|family| (family.name(), measured(family))) {
        Some((name, Measured { held, of })) if of > 0 => {
            format!("such ranges held in {held} of {of} runs of {name} that were tried")
        }
        _ => format!("how often such ranges hold for {method} was not tried"),
    }
}

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

/// Samples that are only a guess, and what they cost.
pub(crate) fn about(samples: f64, price: Option<&Price>) -> String {
    match price {
        None => format!("{} samples", rough(samples)),
        Some(price) => format!("{} samples, {}", rough(samples), money(price, two_digits(samples))),
    }
}

/// Rounded as [`rough`] shows it.
fn two_digits(samples: f64) -> f64 {
    format!("{samples:.1e}").parse().unwrap_or(samples)
}

/// What samples cost.
pub(crate) fn money(price: &Price, samples: f64) -> String {
    let (cost, unit) = (price.of(samples), &price.unit);
    let cost = if cost < 100.0 { format!("{cost:.2}") } else { at_most(cost.round()) };
    if unit.is_empty() { format!("cost {cost}") } else { format!("{cost} {unit}") }
}

/// The first forecast of a run, in a line.
pub(crate) fn words(outlook: &Outlook, method: &str, price: Option<&Price>) -> String {
    match (outlook.first, &outlook.silent) {
        (Some(said), _) => {
            let Forecast { low, middle, high, rules, .. } = said.forecast;
            let (middle, [low, high]) = (about(middle, price), [low, high].map(rough));
            let (held, rules) = (held(method, Family::measured_own), rules.words());
            format!("about {middle}, {low} to {high}, made after {} samples ({held}); {rules}", said.after)
        }
        (None, Some(why)) => format!("none: {why}"),
        (None, None) => "none".into(),
    }
}

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
