//! What is remembered of a run's certificates.

use serde::{Deserialize, Serialize};

use crate::certificate::{Certificate, Verdict};
use crate::stop::Stop;

use super::look::Seen;

/// How far a run's certificates have come. Part of its checkpoint: no error is spent twice.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CertificateLog {
    /// Certificates tried.
    pub attempts: u64,
    /// The last one, if nothing has moved since.
    pub last: Option<Certificate>,
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

impl CertificateLog {
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
            ended,
            // What two walks saw is no ladder of one.
            sightings: Vec::new(),
            looks,
            next_look,
            expected,
            about,
            budget,
        }
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
