//! When a run may stop on a certificate.

use serde::{Deserialize, Serialize};

use crate::certificate::{Claim, ClaimError, Grade, demand};
use crate::oracle::About;

/// When a run may stop on a certificate of |grad f| <= target.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StopRule {
    /// eps.
    pub target: f64,
    /// The probability that any certificate of the run is wrong. Attempts share it.
    pub delta: f64,
    /// On what certificates rest; the distance of [`Grade::Growth`] is the run's.
    pub grade: Grade,
    /// The largest share of all samples that certificates, and looks whether to try one, may take.
    pub share: f64,
}

impl StopRule {
    /// Refuses numbers out of their ranges, and a grade that is no certificate or that the oracle cannot give.
    pub fn check(&self, about: &About) -> Result<(), ClaimError> {
        let Self { target, delta, grade, share } = *self;
        // Attempts have parts of delta, which a claim allows down to 1e-100.
        demand("delta", "at least 1e-90 and below 1", delta, (1e-90..1.0).contains(&delta))?;
        demand("share", "at least 0 and below 1", share, (0.0..1.0).contains(&share))?;
        if grade == Grade::Approximate {
            return Err(ClaimError::NoCertificate);
        }
        let grade = grade.at_distance(0.0);
        Claim { target, delta, grade, budget: None, guess: None }.check_numbers(about)
    }
}
