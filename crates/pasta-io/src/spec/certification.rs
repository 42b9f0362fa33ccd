//! The table `certificate`: how a run is to be certified.

use pasta_opt::certificate::{Basis, Claim, ClaimError, delta_of_attempt};
use pasta_opt::forecast::{Outlook, Pilot};
use pasta_opt::run::{Chosen, Target};
use pasta_opt::walk::StopRule;
use toml_edit::Item;

use super::problem::Problem;
use super::section::Section;
use super::{Overrides, Spec};
use crate::Failure;
use crate::words::at_most;

/// The table `certificate`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Certification {
    pub(super) rule: StopRule,
    /// The share of the gradient at the start that is the target, if it is one.
    pub(super) of_start: Option<f64>,
    /// The samples of the run before it is first forecast; 0 for no forecast.
    pub(super) pilot: u128,
    /// gamma of the gradient mapping, where there is a term and it is given.
    pub(super) gamma: Option<f64>,
}

/// Of a budget, and of what the method plans to draw, at most this part goes into a pilot.
const PILOT_PART: u128 = 10;

impl Spec {
    /// The most samples of a pilot, unless a flag says otherwise.
    pub fn pilot(&self) -> u128 {
        let planned = self.method.planned_samples().map(|samples| samples as u128);
        let parts = [self.task.budget, planned].into_iter().flatten().map(|samples| samples / PILOT_PART);
        parts.fold(Pilot::SAMPLES, u128::min)
    }

    /// What the plan leaves to a certified run, certificates included, if there is a plan.
    pub fn planned_in_all(&self) -> Option<f64> {
        let share = self.task.certify.map_or(0.0, |rule| rule.share);
        self.method.planned_samples().map(|samples| samples / (1.0 - share))
    }

    /// Whether the plan leaves enough for a certificate: refuses one that cannot, and says so of one that hardly can. Before
    /// anything is drawn.
    pub fn prospects(&self) -> Result<Option<String>, Failure> {
        let Some(rule) = self.task.certify.filter(|_| self.task.of_start.is_none()) else { return Ok(None) };
        let (StopRule { target, delta, basis, share }, method) = (rule, &self.method);
        let table = self.problem.oracle.about().full_pass().is_some_and(|rows| rows > 0);
        let planned = method.planned_samples().filter(|_| basis != Basis::Exact && !table && share > 0.0);
        let Some(planned) = planned else { return Ok(None) };
        let claim = Claim { target, delta: delta_of_attempt(delta, 1), basis, budget: None, guess: None };
        // At the start the declared variance is smallest.
        let variance = basis.declared_variance().unwrap_or(0.0);
        let (least, usual) = (claim.least_samples(variance), claim.usual_samples(variance));
        let allowed = share / (1.0 - share) * planned;
        let plan = || {
            let (planned, allowed) = (at_most(planned), at_most(allowed));
            format!("{} ends after {planned} samples, which leaves {allowed} for certificates", method.name)
        };
        if allowed < least {
            let message =
                format!("{}; one of |grad f| <= {target} takes at least {}", plan(), at_most(least));
            let hint = "certify a larger gradient, or give the method more steps or a finer target";
            return Err(Failure::input(message).hint(hint));
        }
        let note = || {
            let usual = at_most(usual);
            format!("{}; one of |grad f| <= {target} usually takes {usual}, so there may be none", plan())
        };
        Ok((allowed < usual).then(note))
    }
}

/// The key of the first forecast.
pub(super) const PILOT: &str = "pilot";
/// The key of gamma.
const GAMMA: &str = "gamma";

/// The keys of the table `certificate`.
pub(super) const KEYS: [&str; 9] =
    ["target", "delta", "share", "variance", "growth", "floor", "kurtosis", PILOT, GAMMA];

pub(super) fn read_certification(
    section: Option<&Section<'_>>,
    problem: &Problem,
    method: &Chosen,
    overrides: &Overrides,
) -> Result<Option<Certification>, Failure> {
    let flag = overrides.certify;
    let number = |key| section.map_or(Ok(None), |section| section.number(key));
    if section.is_none() && flag.is_none() {
        return Ok(None);
    }
    if let Some(section) = section {
        section.only(&KEYS)?;
    }
    let gamma = section.map_or(Ok(None), |section| read_gamma(section, problem))?;
    let in_file = section.map_or(Ok(None), |section| section.target("target"))?;
    let Some(target) = flag.or(in_file).or(method.gradient_target().map(Target::Norm)) else {
        let message =
            format!("target is missing: {} has no target for |grad f| to take it from", method.name);
        return Err(complain(section, &message));
    };
    let rule = StopRule {
        target: target.provisional(),
        delta: number("delta")?.unwrap_or(StopRule::DELTA),
        basis: read_basis(section, problem, overrides.undeclared)?,
        share: number("share")?.unwrap_or(StopRule::SHARE),
    };
    rule.check(problem.oracle.about()).map_err(|error| match (&error, section) {
        (ClaimError::Number { name: "target", .. }, _) if flag.is_some() => {
            Failure::input(format!("--certify (or --target): {error}"))
        }
        (ClaimError::Number { name, .. }, Some(section)) => section.complain(name, &error.to_string()),
        _ => Failure::input(&error),
    })?;
    let in_file = match section {
        Some(section) if section.item(PILOT).and_then(Item::as_str) == Some("none") => Some(0),
        Some(section) => section.samples(PILOT)?,
        None => None,
    };
    let pilot = overrides.pilot.or(in_file).unwrap_or(Outlook::FIRST);
    Ok(Some(Certification { rule, of_start: target.share(), pilot, gamma }))
}

/// gamma of the gradient mapping, if it is given.
pub(super) fn read_gamma(section: &Section<'_>, problem: &Problem) -> Result<Option<f64>, Failure> {
    let gamma = section.number(GAMMA)?;
    match gamma {
        Some(_) if problem.term.is_none() => {
            Err(section.complain(GAMMA, "is for problems with a term, and there is no [[term]]"))
        }
        Some(gamma) if !(gamma > 0.0 && gamma.is_finite()) => {
            Err(section.complain(GAMMA, &format!("expected a positive number, got {gamma}")))
        }
        gamma => Ok(gamma),
    }
}

/// A complaint about the table, if there is one.
fn complain(section: Option<&Section<'_>>, message: &str) -> Failure {
    section.map_or_else(|| Failure::input(message), |section| section.complain("", message))
}

/// What a certificate rests on: what the table says, or else what the table `noise` says about the noise.
fn read_basis(
    section: Option<&Section<'_>>,
    problem: &Problem,
    undeclared: Option<Basis>,
) -> Result<Basis, Failure> {
    let of_problem = || {
        problem.usual_basis().or(undeclared).ok_or_else(|| {
            let message = match &problem.truth {
                Some(truth) => format!(
                    "growth and floor do not bound a noise with exponent {}, on which a certificate could rest",
                    truth.exponent()
                ),
                None => "nothing is known about the noise on which a certificate could rest".into(),
            };
            complain(section, &message)
                .hint("write kurtosis = 100, say, or variance = V under [certificate] in the file (docs/faq.md: which kurtosis?)")
        })
    };
    let Some(section) = section else { return of_problem() };
    let [variance, growth, floor, kurtosis] =
        ["variance", "growth", "floor", "kurtosis"].map(|key| section.number(key));
    match (variance?, growth?, floor?, kurtosis?) {
        (None, None, None, None) => of_problem(),
        (Some(variance), None, None, None) => Ok(Basis::Variance(variance)),
        (None, Some(growth), Some(floor), None) => Ok(Basis::Growth { growth, floor, distance: 0.0 }),
        (None, None, None, Some(kurtosis)) => Ok(Basis::Kurtosis(kurtosis)),
        _ => {
            let message = "expected one of: variance; growth with floor; kurtosis; or none of them, for the growth \
                           and floor of [noise]";
            Err(section.complain("", message))
        }
    }
}
