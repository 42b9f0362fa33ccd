//! Certificates: fresh samples that say, with a stated confidence and under a stated assumption, how small the
//! gradient at a point is.
//!
//! The method and its proof are in `docs/certificate.md`. In short: X_1, X_2, .. are means of m fresh samples at x,
//! E|X - grad f(x)|^2 <= v. Each is shrunk to c(X) = X psi(s|X|)/(s|X|) with Catoni's psi(t) = log(1 + t + t^2/2).
//! If s^2 v <= 1/100, then with probability at least 1 - delta, at *all* k >= 20 log(1/delta) with |mean c| <= 0.17/s,
//! |grad f(x)| is at most U, the smaller root of U - s U^2/2 = |mean c| + s v/2 + log(1/delta)/(s k).
//! No dimension, no tail assumption, no union over looks.
//!
//! ```
//! use pasta_opt::certificate::{Certifier, Claim, Basis, Verdict};
//! use pasta_opt::prelude::*;
//! use pasta_opt::problems::SineBowl;
//!
//! let noise = Noise { growth: 0.0, floor: 1.0, tail: Tail::StudentT { dof: 3.0 } };
//! let oracle = Noisy::new(Box::new(SineBowl { dimension: 2 }), noise, vec![1.0, 1.0])?;
//! let claim = Claim { target: 0.1, delta: 0.05, basis: Basis::Variance(1.0), budget: None, guess: None };
//! let mut gate = Gate::new(oracle, 1);
//! let certificate = Certifier::start(&mut gate, &[0.01, 0.0], claim, 0)?.finish(&mut gate)?;
//! assert_eq!(certificate.verdict, Verdict::Certified);
//! assert!(certificate.bound.is_some_and(|u| u <= 0.1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod consequence;
mod made;
pub(crate) mod mapping;
pub(crate) mod means;
pub mod moreau;
mod rounding;
pub(crate) mod sequential;

pub use consequence::{Consequence, GapBound};
pub use made::{Made, Spent};
pub use mapping::gamma_near;
pub use sequential::Certifier;
use serde::{Deserialize, Serialize};

use crate::check::Agreement;
use crate::digest::Digest;
use crate::draws::{Role, derived_seed};
use crate::gate::Halt;
use crate::oracle::{About, Source};

/// What a certificate rests on: a look at every row, a declaration, or an assumption.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Basis {
    /// The oracle knows its gradient ([`About::full_pass`]). Exact, but for rounding.
    Exact,
    /// Declared: E|g - grad f|^2 at the point is at most this. Proved, whatever the tails.
    Variance(f64),
    /// Declared: E|g - grad f|^2 at the point is at most B^2 |x - x0|^2 + b^2. Proved, whatever the tails.
    Growth {
        /// B.
        growth: f64,
        /// b.
        floor: f64,
        /// |x - x0|.
        distance: f64,
    },
    /// Assumed: E|g - grad f|^4 is at most this times (E|g - grad f|^2)^2. Proved; samples cannot verify it.
    Kurtosis(f64),
    /// A normal approximation. Never a certificate.
    Approximate,
}

impl Basis {
    /// The same basis at a point that is so far from the start.
    #[must_use]
    pub fn at_distance(self, distance: f64) -> Self {
        match self {
            Self::Growth { growth, floor, .. } => Self::Growth { growth, floor, distance },
            other => other,
        }
    }

    /// The bound on E|g - grad f|^2 that is declared, if one is.
    pub fn declared_variance(&self) -> Option<f64> {
        match *self {
            Self::Variance(variance) => Some(variance),
            Self::Growth { growth, floor, distance } => Some((growth * distance).powi(2) + floor * floor),
            Self::Exact | Self::Kurtosis(_) | Self::Approximate => None,
        }
    }

    /// What must be true for the bound to hold, after "provided"; `None` where nothing need be.
    pub fn assumption(&self) -> Option<String> {
        match *self {
            Self::Exact | Self::Approximate => None,
            Self::Variance(variance) => Some(format!("E|g - grad f|^2 <= {variance} at x (declared)")),
            Self::Growth { growth, floor, .. } => Some(format!(
                "E|g - grad f|^2 <= B^2 |x - x0|^2 + b^2 = {} at x (B = {growth}, b = {floor}, declared)",
                rounded_up(self.declared_variance().unwrap_or_default())
            )),
            Self::Kurtosis(kappa) => Some(format!(
                "the noise at x has kurtosis at most {kappa} (assumed; samples cannot verify it)"
            )),
        }
    }
}

/// Samples of the pilot that plans a certificate where no variance is declared or guessed. The rows of a stream's tail are dealt by it: its first
/// ones are the pilot's, and the certificate has those after them.
pub(crate) const PILOT: u64 = 256;

/// A claim to certify: |grad f(x)| is at most the target.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// eps: is the gradient's norm at most this?
    pub target: f64,
    /// The probability with which the answer may be wrong.
    pub delta: f64,
    /// What it may rest on.
    #[serde(alias = "grade")]
    pub basis: Basis,
    /// The most samples it may draw, if the gate has as many; `None` is the end of its own plan.
    pub budget: Option<u128>,
    /// A guess at the gradient and the variance, to plan with.
    pub guess: Option<Guess>,
}

/// A belief about the point, not from the certificate's samples. It steers the cost, not the validity.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Guess {
    /// |grad f|.
    pub norm: f64,
    /// E|g - grad f|^2. Without one, and where none is declared, a pilot of 256 samples makes one.
    pub variance: Option<f64>,
}

/// How an attempt at a certificate ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Verdict {
    /// The bound is at most the target.
    Certified,
    /// A normal approximation says that the gradient is at most the target. Not a certificate.
    Likely,
    /// The samples suggest that the gradient is larger than the target (on the exact basis: it is). Claims nothing.
    Above,
    /// The samples that were allowed are used up.
    OutOfBudget,
    /// The bound does not come down to the target, though what it bounds may be below it: too close to the target for all
    /// samples that are planned, or, for a Moreau certificate, at the points that were found.
    NotReached,
    /// The caller interrupted it.
    Interrupted,
    /// The bound would rest on the spread of samples that are all equal: they say nothing about the variance, unless it is declared.
    NoNoise,
    /// What it rests on is known to be false, so that it says nothing: losses contradict gradients at the point
    /// ([`Certificate::agreement`]), or the caller knows the noise, and so what samples cannot find out ([`Certificate::void`]).
    Void,
}

impl Verdict {
    /// The verdict in a word or two.
    pub fn words(&self) -> &'static str {
        match self {
            Self::Certified => "certified",
            Self::Likely => "likely, not certified",
            Self::Above => "above the target",
            Self::OutOfBudget => "out of budget",
            Self::NotReached => "not certified: the bound stays above the target",
            Self::Interrupted => "interrupted",
            Self::NoNoise => "not certified: no noise was seen",
            Self::Void => "VOID",
        }
    }
}

/// What a certificate bounds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Quantity {
    /// |grad f(x)|.
    #[default]
    Gradient,
    /// Where there is a term: the norm of (x - prox(gamma, x - gamma grad f(x)))/gamma.
    GradientMapping {
        /// gamma.
        gamma: f64,
    },
    /// f(x) - inf f, where f is convex and passes over all rows of a table show how far it can still fall: a loss with kinks, or a term on the weights.
    Gap,
    /// The norm of the gradient of the [Moreau envelope](moreau) with lambda.
    Moreau {
        /// lambda.
        lambda: f64,
        /// rho: f + rho/2 |x|^2 is declared to be convex.
        rho: f64,
        /// On how many points it rests.
        points: u64,
        /// The largest declared variance over its points, if one is declared.
        variance: Option<f64>,
    },
}

/// The result of a certificate, whatever it bounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(from = "Stored")]
#[non_exhaustive]
pub struct Certificate {
    /// Whether the point is certified, and if not, why.
    pub verdict: Verdict,
    /// What the bound is about.
    #[serde(flatten)]
    pub of: Quantity,
    /// U: the smallest bound found, valid (under the basis's assumption) with probability at least 1 - delta whatever
    /// the verdict; `None` if there were too few samples for any.
    pub bound: Option<f64>,
    /// The target.
    pub target: f64,
    /// The probability of error.
    pub delta: f64,
    /// The assumption it rests on.
    pub basis: Basis,
    /// Samples drawn, the pilot's included, and rows read.
    pub samples: u128,
    /// The rows of the table that was passed over, where the bound is exact because of that.
    pub rows: Option<u64>,
    /// How losses and gradients of fresh samples agree at the point; `None` where they were not compared, because there are no losses, gradients are not
    /// [pathwise](About::pathwise), or the oracle is one of this library.
    pub agreement: Option<Agreement>,
}

/// A certificate as a checkpoint has it. Those of earlier versions have `grade` for `basis` and no `of`, but gamma where there is a term.
#[derive(Deserialize)]
struct Stored {
    verdict: Verdict,
    #[serde(flatten)]
    of: StoredQuantity,
    bound: Option<f64>,
    target: f64,
    delta: f64,
    #[serde(alias = "grade")]
    basis: Basis,
    samples: u128,
    rows: Option<u64>,
    #[serde(default)]
    agreement: Option<Agreement>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum StoredQuantity {
    Named(Quantity),
    Mapping { gamma: f64 },
    Gradient {},
}

impl From<Stored> for Certificate {
    fn from(stored: Stored) -> Self {
        let Stored { verdict, of, bound, target, delta, basis, samples, rows, agreement } = stored;
        let of = match of {
            StoredQuantity::Named(of) => of,
            StoredQuantity::Mapping { gamma } => Quantity::GradientMapping { gamma },
            StoredQuantity::Gradient {} => Quantity::Gradient,
        };
        Self { verdict, of, bound, target, delta, basis, samples, rows, agreement }
    }
}

impl Certificate {
    /// Takes the bound away, for someone who knows that the assumption is false.
    #[must_use]
    pub fn void(self) -> Self {
        Self { verdict: Verdict::Void, bound: None, ..self }
    }

    /// gamma of the gradient mapping that is bounded, if one is.
    pub fn gamma(&self) -> Option<f64> {
        match self.of {
            Quantity::GradientMapping { gamma } => Some(gamma),
            Quantity::Gradient | Quantity::Gap | Quantity::Moreau { .. } => None,
        }
    }

    /// The claim in words, with its confidence and its assumption. What is approximate is not called certified.
    pub fn statement(&self) -> String {
        if let Quantity::Moreau { lambda, rho, points, variance } = self.of {
            return moreau::statement(self, lambda, rho, points, variance);
        }
        let contradiction = self.agreement.and_then(|agreement| agreement.contradiction);
        let compared = match self.agreement {
            Some(Agreement { samples, .. }) => {
                format!(" Losses and gradients of {samples} further samples agree at x.")
            }
            None => String::new(),
        };
        let claim = match (self.bound, self.basis) {
            (None, _) if self.verdict == Verdict::Void => match contradiction {
                Some(contradiction) => format!("VOID: nothing is claimed: {}", contradiction.sentence()),
                None => VOID.into(),
            },
            (None, _) if self.verdict == Verdict::NoNoise => no_noise(self.samples),
            (None, _) => "no bound: there were too few samples for one".into(),
            (Some(norm), Basis::Exact) => match self.rows {
                Some(rows) => format!("{} over all {rows} rows.", self.comparison("=", norm)),
                None => {
                    format!("{} by the oracle's own formula, but for rounding.", self.comparison("=", norm))
                }
            },
            (Some(bound), _) => self.claim(&self.comparison("<=", bound), None),
        };
        if self.bound.is_some() { claim + &compared } else { claim }
    }

    /// What is bounded, beside a number.
    fn comparison(&self, sign: &str, bound: f64) -> String {
        let up = rounded_up(bound);
        match self.of {
            Quantity::Gradient => format!("|grad f(x)| {sign} {up}"),
            Quantity::Gap => format!("f(x) - inf f <= {up}"),
            Quantity::Moreau { lambda, .. } => {
                format!("|grad phi(x)| <= {up} for the Moreau envelope phi with lambda = {lambda}")
            }
            Quantity::GradientMapping { gamma } => format!(
                "|x - prox(x - gamma grad f(x))|/gamma {sign} {up} with gamma = {} (the gradient mapping of f + h: a step of length {})",
                short(gamma),
                rounded_up(gamma * bound)
            ),
        }
    }

    /// The same in few words, with the target.
    fn brief(&self, sign: &str, bound: f64) -> String {
        let (up, target) = (rounded_up(bound), rounded(self.target));
        match self.of {
            Quantity::Gradient => format!("|grad f| {sign} {up} (target {target})"),
            Quantity::Gap => format!("f - inf f <= {up} (target {target})"),
            Quantity::Moreau { lambda, .. } => {
                format!("|grad phi| <= {up} (target {target}, Moreau envelope with lambda {lambda})")
            }
            Quantity::GradientMapping { gamma } => {
                format!("gradient mapping {sign} {up} (target {target}, gamma {})", short(gamma))
            }
        }
    }

    /// The claim in half a line: bound, target and confidence, without what it rests on.
    pub fn headline(&self) -> String {
        let sure = confidence(self.delta);
        match (self.bound, self.basis, self.rows) {
            (None, ..) => self.statement(),
            (Some(norm), Basis::Exact, Some(rows)) => {
                format!("{}, by a pass over all {rows} rows", self.brief("=", norm))
            }
            (Some(norm), Basis::Exact, None) => {
                format!("{}, by the oracle's own formula", self.brief("=", norm))
            }
            (Some(bound), Basis::Approximate, _) => {
                format!("{}, about {sure} by normal approximation", self.brief("<=", bound))
            }
            (Some(bound), ..) => format!("{}, {sure} confidence", self.brief("<=", bound)),
        }
    }

    /// That something follows from the bound, under the basis's assumption and perhaps another.
    fn claim(&self, what: &str, also: Option<String>) -> String {
        let sure = confidence(self.delta);
        let confidence = match self.basis {
            Basis::Exact => String::new(),
            Basis::Approximate => format!("About {sure} by normal approximation, not a guarantee: "),
            _ => format!("With probability at least {sure} over the certificate's own samples, "),
        };
        let provided: Vec<String> = self.basis.assumption().into_iter().chain(also).collect();
        let provided = match provided.as_slice() {
            [] => String::new(),
            all => format!(", provided {}", all.join(", and ")),
        };
        format!("{confidence}{what}{provided}.")
    }
}

/// What is said in place of a claim.
const VOID: &str = "VOID: nothing is claimed, since what it rests on is false";

/// What is said of samples that are all equal.
fn no_noise(samples: u128) -> String {
    format!(
        "no noise was seen: {samples} samples are all equal, and say nothing about the variance; if there is none, declare variance = 0"
    )
}

/// A number in as few characters as it takes.
fn short(number: f64) -> String {
    let [plain, scientific] = [number.to_string(), format!("{number:e}")];
    if plain.len() <= 12 { plain } else { scientific }
}

/// A given number in at most six digits.
fn rounded(number: f64) -> String {
    short(format!("{number:.5e}").parse().unwrap_or(number))
}

/// A bound with five digits, never below itself.
pub(crate) fn rounded_up(bound: f64) -> String {
    if bound == 0.0 || !bound.is_finite() {
        return bound.to_string();
    }
    let exponent = bound.log10().floor();
    let unit = 10f64.powf(exponent - 4.0);
    let up = (bound / unit).ceil() * unit;
    match exponent as i32 {
        exponent @ -4..=4 => format!("{up:.*}", (4 - exponent) as usize),
        _ => format!("{up:.4e}"),
    }
}

/// A probability of being right: in percent, never rounded up to certainty.
fn confidence(delta: f64) -> String {
    if delta >= 1e-6 {
        // Ten digits, to be rid of the rounding of the subtraction.
        format!("{} %", (1e10 * (1.0 - delta)).round() / 1e8)
    } else {
        format!("1 - {delta:e}")
    }
}

/// The share of delta that attempt i = 1, 2, .. of one run may use: all of them together never exceed delta.
pub fn delta_of_attempt(delta: f64, attempt: u64) -> f64 {
    let i = attempt as f64;
    delta / (i * (i + 1.0))
}

/// The number under which [`Certifier::start`] makes attempt K = 1, 2, .. by hand. Those of a run count from 1; an attempt by hand shares no sample with
/// any of them, though it has the run's seed: what became of them decided at which point the run is now.
pub fn number_by_hand(attempt: u64) -> u64 {
    // A step has 24 bits for the number; a run makes far fewer attempts than half of that.
    const BY_HAND: u64 = 1 << 23;
    if attempt <= 1 { 0 } else { BY_HAND + attempt % BY_HAND }
}

/// The seed under which a point is certified by hand: it follows from the seed and from every bit of the point. So a point that was chosen by what an
/// attempt at another one said has samples that it was not chosen by.
///
/// ```
/// use pasta_opt::certificate::seed_by_hand;
///
/// assert_eq!(seed_by_hand(1, &[0.5]), seed_by_hand(1, &[0.5]));
/// assert_ne!(seed_by_hand(1, &[0.5]), seed_by_hand(1, &[0.5 + f64::EPSILON]));
/// ```
pub fn seed_by_hand(seed: u64, x: &[f64]) -> u64 {
    derived_seed(seed, Role::Certificate, Digest::of_point(x).word())
}

/// Why a claim cannot be certified.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ClaimError {
    /// A number out of its range.
    #[error("certificate: {name} must be {needs}, but is {}", short(*.got))]
    Number {
        /// Which.
        name: &'static str,
        /// Its range.
        needs: &'static str,
        /// What it is.
        got: f64,
    },
    /// The point has another dimension than the oracle.
    #[error("the point has {point} coordinates, but the oracle has {oracle}")]
    Dimension {
        /// Coordinates of the point.
        point: usize,
        /// Coordinates of the oracle.
        oracle: usize,
    },
    /// The point is outside of the domain of the term.
    #[error("certificate: the point is outside of the domain: {words}")]
    Outside {
        /// Which coordinate, and what it breaks.
        words: String,
    },
    /// A certificate that is not derived for problems with a term.
    #[error("certificate: {what} is not proved where a term stands beside f")]
    Term {
        /// Which.
        what: &'static str,
    },
    /// The target is out of reach.
    #[error("certificate: it would take some {planned:.1e} samples; a larger target takes fewer")]
    TooMany {
        /// How many.
        planned: f64,
    },
    /// The exact basis was asked of an oracle that only has samples.
    #[error("certificate: the oracle does not know its gradient exactly; it only has samples")]
    NotExact,
    /// A run was resumed with another rule than it had.
    #[error(
        "certificate: the run was started with another target, delta, share or assumption; they cannot change"
    )]
    OtherRule,
    /// A run was to stop on something that is no certificate.
    #[error("certificate: a normal approximation is no certificate, so no run may stop on it")]
    NoCertificate,
}

/// Refuses a number outside its range.
pub(crate) fn demand(name: &'static str, needs: &'static str, got: f64, met: bool) -> Result<(), ClaimError> {
    if met { Ok(()) } else { Err(ClaimError::Number { name, needs, got }) }
}

impl Claim {
    fn check(&self, about: &About, x: &[f64]) -> Result<(), ClaimError> {
        check_point(about, x)?;
        self.check_numbers(about)
    }

    pub(crate) fn check_numbers(&self, about: &About) -> Result<(), ClaimError> {
        let Self { target, delta, basis, guess, .. } = *self;
        demand("target", "positive, from 1e-100 to 1e100", target, (1e-100..=1e100).contains(&target))?;
        demand("delta", "at least 1e-100 and below 1", delta, (1e-100..1.0).contains(&delta))?;
        for guess in guess.into_iter().flat_map(|guess| [Some(guess.norm), guess.variance]).flatten() {
            demand("guess", "finite, at least 0", guess, guess >= 0.0 && guess.is_finite())?;
        }
        basis.check()?;
        match basis {
            Basis::Exact if about.source == Source::Stream => Err(ClaimError::NotExact),
            _ => Ok(()),
        }
    }
}

fn check_point(about: &About, x: &[f64]) -> Result<(), ClaimError> {
    if x.len() != about.dim {
        return Err(ClaimError::Dimension { point: x.len(), oracle: about.dim });
    }
    match x.iter().find(|x| !x.is_finite()) {
        Some(&x) => demand("the point", "finite", x, false),
        None => Ok(()),
    }
}

impl Basis {
    fn check(&self) -> Result<(), ClaimError> {
        let at_least = |name, least: f64, needs, value: f64| {
            demand(name, needs, value, value >= least && value.is_finite())
        };
        const ZERO: &str = "finite, at least 0";
        match *self {
            Self::Exact | Self::Approximate => Ok(()),
            Self::Variance(variance) => at_least("variance", 0.0, ZERO, variance),
            Self::Growth { growth, floor, distance } => {
                at_least("growth", 0.0, ZERO, growth)?;
                at_least("floor", 0.0, ZERO, floor)?;
                at_least("distance", 0.0, ZERO, distance)
            }
            Self::Kurtosis(kappa) => at_least("kurtosis", 1.0, "finite, at least 1", kappa),
        }
    }
}

/// Why no certificate could be made.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The claim makes no sense, or is out of reach.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// The gate gave no answer.
    #[error(transparent)]
    Halt(#[from] Halt),
}
