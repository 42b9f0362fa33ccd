//! How small the gradient shall be: a number, or a share of the gradient at the start.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::certificate::gamma_near;
use crate::certificate::means::Means;
use crate::draws::Role;
use crate::gate::{Gate, Halt};
use crate::kernels::squared_norm;
use crate::moments::Moments;
use crate::oracle::{Answer, Request};
use crate::stop::NoTarget;
use crate::term::Mapping;

/// How small |grad f| shall be; with a term, the gradient mapping.
///
/// ```
/// use pasta_opt::run::Target;
///
/// assert_eq!("0.1".parse(), Ok(Target::Norm(0.1)));
/// assert_eq!("1%".parse(), Ok(Target::OfStart(0.01)));
/// assert_eq!(Target::OfStart(0.01).to_string(), "1%");
/// assert!("100%".parse::<Target>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Target {
    /// At most this.
    Norm(f64),
    /// At most this share of what it is at the start, which is measured.
    OfStart(f64),
}

/// A text that is no target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected a positive number such as 0.1, or a share of the gradient at the start such as 1%, got {0}"
)]
pub struct TargetError(String);

impl Target {
    /// The number, unless it is yet to be measured.
    pub fn norm(self) -> Option<f64> {
        match self {
            Self::Norm(norm) => Some(norm),
            Self::OfStart(_) => None,
        }
    }

    /// The number, or 1 as long as it is yet to be measured.
    pub fn provisional(self) -> f64 {
        self.norm().unwrap_or(1.0)
    }

    /// The share of the gradient at the start, if it is one.
    pub fn share(self) -> Option<f64> {
        match self {
            Self::Norm(_) => None,
            Self::OfStart(share) => Some(share),
        }
    }
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let refuse = || TargetError(format!("{text:?}"));
        let number = |text: &str| text.trim().parse::<f64>().map_err(|_| refuse());
        let positive = |x: f64| if x > 0.0 && x.is_finite() { Ok(x) } else { Err(refuse()) };
        match text.trim().strip_suffix('%') {
            None => Ok(Self::Norm(number(text).and_then(positive)?)),
            Some(percent) => {
                let share = number(percent).and_then(positive)? / 100.0;
                if share < 1.0 { Ok(Self::OfStart(share)) } else { Err(refuse()) }
            }
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Norm(norm) => norm.fmt(f),
            // Ten digits hide the rounding of a hundredth.
            Self::OfStart(share) => write!(f, "{}%", (share * 1e12).round() / 1e10),
        }
    }
}

/// A target that was measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OfStart {
    /// The share of the gradient at the start that was asked for.
    pub share: f64,
    /// |grad f| at the start, measured; with a term, the gradient mapping with `gamma`.
    pub gradient: f64,
    /// Its standard error; 0 if it is exact.
    pub error: f64,
    /// Samples that were drawn for it.
    pub samples: u128,
    /// The target: `share` of `gradient`.
    pub target: f64,
    /// gamma of the gradient mapping, where there is a term: the certificate has the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gamma: Option<f64>,
}

/// Samples of the first round.
const FIRST: u64 = 16;
/// The most samples that are drawn.
const MOST: u128 = 1 << 16;
/// The part of a budget that may be drawn.
const PART: u128 = 10;
/// The variance of the mean over its square at which the measurement ends (a standard error of 5 %), and above which there is none.
const GOOD: f64 = 0.0025;
const USELESS: f64 = 1.0 / 9.0;

impl OfStart {
    /// Measures |grad f| at the start: exactly where a pass over all samples is at hand, and otherwise to a standard error of 5 %, or what a tenth of the budget and
    /// 65,536 samples give. With a term it measures the gradient mapping, with the gate's gamma or one that a few more samples choose; the gate keeps that gamma.
    pub fn measure(share: f64, gate: &mut Gate, x0: &[f64]) -> Result<Self, Halt> {
        let gamma = if gate.term().is_some() { Some(gamma_near(gate, x0)?) } else { None };
        let measured = Self::measure_with(gamma, share, gate, x0)?;
        if gamma.is_some() {
            gate.set_gamma(gamma);
        }
        Ok(measured)
    }

    fn measure_with(gamma: Option<f64>, share: f64, gate: &mut Gate, x0: &[f64]) -> Result<Self, Halt> {
        let allowed = gate.budget().map_or(MOST, |budget| (budget / PART).min(MOST));
        let of = |gradient: f64, error: f64, samples: u128| {
            let target = share * gradient;
            if target > 0.0 {
                Ok(Self { share, gradient, error, samples, target, gamma })
            } else {
                Err(NoTarget::Zero.into())
            }
        };
        let before = gate.ledger().samples();
        let pass = gate.about().full_pass().map(u128::from);
        if pass.is_some_and(|pass| gate.budget().is_none_or(|budget| pass <= budget / PART)) {
            let mut g = vec![0.0; x0.len()];
            gate.ask(Request::everything(Role::Calibration, &[x0]), &mut Answer::new(&mut g))?;
            let length = squared_norm(&mapped(gamma, gate, x0, g)).sqrt();
            return of(length, 0.0, gate.ledger().samples() - before);
        }
        // Samples one by one, twice as many in each round: their spread says how far off their mean is.
        let means = Means { x: x0, role: Role::Calibration, attempt: 0, samples_each: 1 };
        let groups = if gamma.is_some() { GROUPS } else { 1 };
        let (mut seen, mut drawn) = (Groups((0..groups).map(|_| Moments::new(x0.len())).collect()), 0);
        loop {
            let next = seen.count().max(FIRST);
            let is_last = drawn + u128::from(next) > allowed;
            let (mean2, variance) = seen.squares(gamma, gate, x0);
            if seen.count() > 0 && (variance <= GOOD * mean2 || is_last) {
                let error = variance.sqrt();
                return if variance <= USELESS * mean2 {
                    of((mean2 - variance).max(0.0).sqrt(), error, drawn)
                } else {
                    Err(NoTarget::Noise { samples: drawn, mean: mean2.sqrt(), error }.into())
                };
            }
            if is_last {
                return Err(NoTarget::Budget { budget: gate.budget().unwrap_or(allowed) }.into());
            }
            drawn += seen.draw(&means, gate, next)?;
        }
    }

    /// Where the target comes from.
    pub fn words(&self) -> String {
        let Self { share, gradient, error, samples, gamma, .. } = self;
        let share = Target::OfStart(*share);
        let what = match gamma {
            None => "|grad f| at the start".to_owned(),
            Some(gamma) => format!("the gradient mapping at the start with gamma = {gamma}"),
        };
        if *error == 0.0 {
            format!("{share} of {what}, {}", short(*gradient))
        } else {
            let (gradient, error) = (short(*gradient), short(*error));
            format!("{share} of {what}, {gradient} +- {error} by {samples} samples")
        }
    }
}

/// G(q) at x; q itself where there is no term.
fn mapped(gamma: Option<f64>, gate: &Gate, x: &[f64], q: Vec<f64>) -> Vec<f64> {
    match (gate.term(), gamma) {
        (Some(term), Some(gamma)) => Mapping { term: &**term, gamma, x }.of(&q),
        _ => q,
    }
}

/// Groups of samples, where there is a term.
const GROUPS: u64 = 8;

/// Samples of the gradient: with a term in groups of one size, since the error of a mapping shows when one of them is left out.
struct Groups(Vec<Moments>);

impl Groups {
    fn count(&self) -> u64 {
        self.0.iter().map(|group| group.count).sum()
    }

    /// Draws so many samples, a multiple of the groups, and says what they cost.
    fn draw(&mut self, means: &Means<'_>, gate: &mut Gate, samples: u64) -> Result<u128, Halt> {
        let (first, each) = (self.count(), samples / self.0.len() as u64);
        let mut spent = 0;
        for (group, number) in self.0.iter_mut().zip(0..) {
            let first = first + number * each;
            spent += means.add_to(group, gate, first..first + each)?;
        }
        Ok(spent)
    }

    /// The square of the length of the mean, or of its mapping, and that of its standard error.
    fn squares(&self, gamma: Option<f64>, gate: &Gate, x: &[f64]) -> (f64, f64) {
        if let [all] = self.0.as_slice() {
            return (squared_norm(&all.mean), all.error2());
        }
        let (n, mut all) = (self.0.len() as f64, Moments::new(x.len()));
        self.0.iter().for_each(|group| all.add(&group.mean));
        let mut left_out = Moments::new(x.len());
        for group in &self.0 {
            let others: Vec<f64> =
                all.mean.iter().zip(&group.mean).map(|(all, g)| (n * all - g) / (n - 1.0)).collect();
            left_out.add(&mapped(gamma, gate, x, others));
        }
        (squared_norm(&mapped(gamma, gate, x, all.mean)), left_out.scatter() * (n - 1.0) / n)
    }
}

/// A number in a few digits.
fn short(number: f64) -> String {
    if (1e-3..1e6).contains(&number) { format!("{number:.4}") } else { format!("{number:.3e}") }
}
