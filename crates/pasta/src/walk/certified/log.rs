//! What is remembered of a run's certificates.

use serde::{Deserialize, Serialize};

use crate::certificate::{Certificate, Made, Verdict};
use crate::stop::{Hopeless, Stop};

use super::look::Seen;

/// A run draws so many samples before it may be called hopeless.
const PATIENT: u128 = 100_000;
/// A target is not within reach if its certificate needs so many times what was drawn.
const OUT_OF_REACH: u128 = 100;
/// A run is stuck if its samples became so many times as many, four doublings, while its gradient did not become a tenth smaller.
const STUCK: u128 = 16;

/// How far a run's certificates have come. Part of its checkpoint: no error is spent twice.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CertificateLog {
    /// Certificates tried.
    pub attempts: u64,
    /// The last one, if nothing has moved since.
    pub last: Option<Certificate>,
    /// How the last one was made.
    #[serde(default)]
    pub(crate) made: Option<Made>,
    /// Looks whether to try one.
    pub(super) looks: u64,
    /// The run looks again when it has drawn this many samples.
    pub(super) next_look: u128,
    /// What a certificate would cost, by the last look.
    pub(super) expected: u128,
    /// Which point the last attempt was about.
    pub(super) about: Candidate,
    /// What its looks saw, in their order: a few dozen, since looks become rarer as the run goes on.
    #[serde(default)]
    pub(crate) sightings: Vec<Sighting>,
    /// How the run ended, and with which budget.
    pub(super) ended: Option<Stop>,
    pub(super) budget: Option<u128>,
    /// The smallest gradient that looks and certificates have seen, and after how many samples it was a tenth smaller than before.
    #[serde(default)]
    pub(super) smallest: Option<(f64, u128)>,
    /// What a certificate was expected to cost when the run had drawn half of what it has, or a little more: the samples, and the cost.
    #[serde(default)]
    pub(super) costs: Vec<(u128, u128)>,
    /// Where there is a term: gamma of the gradient mappings of this run, chosen before its first look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) gamma: Option<f64>,
}

/// What a look saw of a point of the run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sighting {
    /// The run's steps, and the samples that they had drawn.
    pub(crate) step: u64,
    pub(crate) drawn: u128,
    /// Samples that certificates and looks had drawn, this one included.
    pub(crate) spent: u128,
    pub(crate) seen: Seen,
}

/// What a look saw of a point of the run, for charts: estimates from a few fresh samples, no bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Glimpse {
    /// The run's steps before it.
    pub step: u64,
    /// What the run had drawn, certificates and looks included, the check not.
    pub samples: u128,
    /// |grad f|^2, without bias; may be negative.
    pub gradient_squared: f64,
    /// The square of the standard error of that gradient.
    pub error_squared: f64,
    /// E|g - grad f|^2 of one sample.
    pub variance: f64,
}

impl CertificateLog {
    /// What its looks saw, in their order: a few dozen, since looks become rarer as the run goes on.
    pub fn glimpses(&self) -> impl Iterator<Item = Glimpse> {
        self.sightings.iter().map(|&Sighting { step, drawn, spent, seen }| Glimpse {
            step,
            samples: drawn + spent,
            gradient_squared: seen.squared,
            error_squared: seen.squared_error,
            variance: seen.variance,
        })
    }

    /// Samples of a look that resolves the target, roughly.
    pub(super) fn resolving(&self) -> u128 {
        self.expected / 8
    }

    /// The log of a run that is made of two: that of the one whose point counts, with the attempts of both and the confidence of both.
    pub(in crate::walk) fn beside(&self, other: &Self, delta: f64, ended: Option<Stop>) -> Self {
        let Self { looks, next_look, expected, about, budget, .. } = *self;
        Self {
            attempts: self.attempts + other.attempts,
            last: self.last.map(|last| Certificate { delta, ..last }),
            made: self.made,
            ended,
            // What two walks saw is no ladder of one.
            sightings: Vec::new(),
            looks,
            next_look,
            expected,
            about,
            budget,
            smallest: self.smallest,
            costs: self.costs.clone(),
            gamma: self.gamma,
        }
    }

    /// The log of a method that makes its attempts by itself: how many, and the one whose point is handed out.
    pub(crate) fn of_attempts(
        attempts: u64,
        last: Option<Certificate>,
        made: Option<&Made>,
        ended: Option<Stop>,
    ) -> Self {
        Self { attempts, last, made: made.copied(), ended, ..Self::default() }
    }

    /// Notes the gradient that a look or a certificate saw.
    pub(super) fn note_gradient(&mut self, norm: f64, drawn: u128) {
        // The first looks are too small to be relied on.
        let is_early = drawn < PATIENT / STUCK;
        if norm.is_finite() && !is_early && self.smallest.is_none_or(|(smallest, _)| norm < 0.9 * smallest) {
            self.smallest = Some((norm, drawn));
        }
    }

    /// Notes what a certificate is expected to cost.
    pub(super) fn note_cost(&mut self, drawn: u128) {
        let old = self.costs.iter().rposition(|(then, _)| 2 * then <= drawn).unwrap_or(0);
        self.costs.drain(..old);
        self.costs.push((drawn, self.expected));
    }

    /// Why the target is not within reach, if it is not, for a run that has drawn so many samples.
    pub(super) fn hopeless(&self, target: f64, drawn: u128) -> Option<Hopeless> {
        if drawn < PATIENT {
            return None;
        }
        let (gradient, since) = self.smallest?;
        if drawn >= since.saturating_mul(STUCK) && gradient > target {
            return Some(Hopeless::Stuck { target, drawn, since, gradient });
        }
        // On the way to a solution the noise may become smaller: that is waited for.
        let (then, before) = *self.costs.first()?;
        let is_steady = 2 * then <= drawn && self.expected as f64 > 0.7 * before as f64;
        if is_steady && self.expected > OUT_OF_REACH * drawn {
            let needed = self.expected as f64;
            let reach = target * (needed / drawn as f64).sqrt();
            return Some(Hopeless::Noise { target, drawn, needed, reach });
        }
        None
    }

    /// Which point the run handed out, once it has ended.
    pub fn handed_out(&self) -> Option<Candidate> {
        self.ended.map(|_| self.about)
    }

    /// Whether the last certificate succeeded.
    pub fn is_certified(&self) -> bool {
        self.last.is_some_and(|certificate| certificate.verdict == Verdict::Certified)
    }
}

/// A point that may be certified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Candidate {
    /// x_t.
    Last,
    /// The mean of the last iterates. Near the end it has far less noise than each of them.
    Tail,
    /// What the run hands out at its end.
    #[default]
    Output,
}

impl Candidate {
    /// Which point it is, in words.
    pub fn words(&self) -> &'static str {
        match self {
            Self::Last => "the last iterate",
            Self::Tail => "the mean of the last iterates",
            Self::Output => "the method's output",
        }
    }
}
