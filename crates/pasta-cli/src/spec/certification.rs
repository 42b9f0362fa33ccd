//! The table `certificate`: how a run is to be certified.

use pasta_opt::certificate::{Grade, RequestError};
use pasta_opt::forecast::Forecast;
use pasta_opt::oracle::{Noise, Noisy};
use pasta_opt::walk::StopRule;

use super::Overrides;
use super::method::Method;
use super::section::Section;
use pasta_report::console::Failure;
use pasta_report::console::flags::SAMPLES;

/// The table `certificate`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Certification {
    /// Without the budget, which is the run's.
    pub(crate) rule: StopRule,
    /// The most samples that a forecast before the run may take.
    pub(crate) pilot: u128,
    /// What the pilot came to, once it is flown.
    pub(crate) flown: Option<Flown>,
}

/// A forecast, or none, and the samples that it took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flown {
    pub(crate) forecast: Option<Forecast>,
    pub(crate) samples: u128,
}

impl Certification {
    /// Samples that the forecast took.
    pub(crate) fn pilot_samples(&self) -> u128 {
        self.flown.map_or(0, |flown| flown.samples)
    }
}

/// Samples of the pilot before a certified run, unless the file says otherwise.
pub(crate) const PILOT: u128 = 100_000;
/// How often a certificate may be wrong, unless the file says otherwise.
pub(crate) const DELTA: f64 = 0.05;
/// Which part of all samples certificates may take, likewise.
const SHARE: f64 = 0.5;

pub(super) fn read_certification(
    section: Option<&Section<'_>>,
    oracle: &Noisy,
    method: &Method,
    overrides: &Overrides,
) -> Result<Option<Certification>, Failure> {
    let flag = overrides.certify;
    let number = |key| section.map_or(Ok(None), |section| section.number(key));
    if section.is_none() && flag.is_none() {
        return Ok(None);
    }
    if let Some(section) = section {
        let keys =
            ["target", "delta", "share", "variance", "growth", "floor", "kurtosis", "pilot", "forecast"];
        section.only(&keys)?;
    }
    let Some(target) = flag.or(number("target")?).or(method.gradient_target()) else {
        let message =
            format!("target is missing: {} has no target for |grad f| to take it from", method.name());
        return Err(
            section.map_or_else(|| Failure::input(&message), |section| section.complain("", &message))
        );
    };
    let rule = StopRule {
        target,
        delta: number("delta")?.unwrap_or(DELTA),
        grade: read_grade(section, oracle, overrides.undeclared)?,
        share: number("share")?.unwrap_or(SHARE),
        budget: None,
    };
    rule.check(oracle).map_err(|error| match (&error, section) {
        (RequestError::Number { name: "target", .. }, _) if flag.is_some() => {
            Failure::input(format!("--certify: {error}"))
        }
        (RequestError::Number { name, .. }, Some(section)) => section.complain(name, &error.to_string()),
        _ => Failure::input(&error),
    })?;
    let pilot = section.map_or(Ok(None), |section| section.samples("pilot"))?.unwrap_or(PILOT);
    let flown = match section.filter(|section| section.item("forecast").is_some()) {
        None => None,
        Some(section) => Some(read_forecast(&section.section("forecast")?)?),
    };
    Ok(Some(Certification { rule, pilot, flown }))
}

fn read_forecast(table: &Section<'_>) -> Result<Flown, Failure> {
    table.only(&["pilot", "low", "middle", "high"])?;
    let samples = table.samples("pilot")?.ok_or_else(|| table.missing("pilot", SAMPLES))?;
    let forecast = match table.item("middle") {
        None => None,
        Some(_) => Some(Forecast {
            low: table.required("low")?,
            middle: table.required("middle")?,
            high: table.required("high")?,
        }),
    };
    Ok(Flown { forecast, samples })
}

/// What a file declares about its noise wherever one is: growth and floor, unless the noise grows with another power of the
/// distance than 2.
pub(crate) fn declared_noise(oracle: &Noisy) -> Option<Grade> {
    let Noise { growth, floor, .. } = oracle.noise();
    (oracle.exponent == 2.0).then_some(Grade::Growth { growth, floor, distance: 0.0 })
}

/// Why a certificate of x means nothing, by what the file says about its noise.
pub(crate) fn false_assumption(grade: &Grade, oracle: &Noisy, x: &[f64]) -> Option<String> {
    let variance = oracle.variance(x);
    // Both are rounded.
    let too_small = |declared: &f64| *declared < variance * (1.0 - 1e-9);
    if let Some(declared) = grade.declared_variance().filter(too_small) {
        return Some(format!(
            "[noise] has E|g - grad f|^2 = {variance:.4e} there, not at most {declared:.4e}"
        ));
    }
    let kurtosis = oracle.noise().tail.kurtosis(x.len());
    match grade {
        Grade::Kurtosis(assumed) if *assumed < kurtosis * (1.0 - 1e-9) && variance > 0.0 => {
            Some(format!("[noise] has kurtosis {kurtosis:.4e}, not at most {assumed}"))
        }
        _ => None,
    }
}

/// What a certificate rests on: what the table says, or else what the table `noise` says about the noise.
fn read_grade(
    section: Option<&Section<'_>>,
    oracle: &Noisy,
    undeclared: Option<Grade>,
) -> Result<Grade, Failure> {
    let of_problem = || {
        declared_noise(oracle).or(undeclared).ok_or_else(|| {
            let exponent = oracle.exponent;
            let message = format!("growth and floor do not bound a noise with exponent {exponent}");
            let hint = "let the table certificate have kurtosis = 100, say, or variance = V";
            section
                .map_or_else(|| Failure::input(&message), |section| section.complain("", &message))
                .hint(hint)
        })
    };
    let Some(section) = section else { return of_problem() };
    let [variance, growth, floor, kurtosis] =
        ["variance", "growth", "floor", "kurtosis"].map(|key| section.number(key));
    match (variance?, growth?, floor?, kurtosis?) {
        (None, None, None, None) => of_problem(),
        (Some(variance), None, None, None) => Ok(Grade::Variance(variance)),
        (None, Some(growth), Some(floor), None) => Ok(Grade::Growth { growth, floor, distance: 0.0 }),
        (None, None, None, Some(kurtosis)) => Ok(Grade::Kurtosis(kurtosis)),
        _ => {
            let message = "expected one of: variance; growth with floor; kurtosis; or none of them, for the growth \
                           and floor of [noise]";
            Err(section.complain("", message))
        }
    }
}
