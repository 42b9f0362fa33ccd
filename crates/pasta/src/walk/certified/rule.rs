//! When a run may stop on a certificate.

use serde::{Deserialize, Serialize};

use crate::certificate::{Basis, Claim, ClaimError, demand};
use crate::oracle::About;

/// When a run may stop on a certificate of |grad f| <= target.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StopRule {
    /// eps.
    pub target: f64,
    /// The probability that any certificate of the run is wrong. Attempts share it.
    pub delta: f64,
    /// On what certificates rest; the distance of [`Basis::Growth`] is the run's.
    #[serde(alias = "grade")]
    pub basis: Basis,
    /// The largest share of all samples that certificates, and looks whether to try one, may take.
    pub share: f64,
}

impl StopRule {
    /// How often a certificate may be wrong, unless something else is asked for.
    pub const DELTA: f64 = 0.05;
    /// Which part of all samples certificates may take, likewise.
    pub const SHARE: f64 = 0.5;

    /// Refuses numbers out of their ranges, and a basis that is no certificate or that the oracle cannot give.
    pub fn check(&self, about: &About) -> Result<(), ClaimError> {
        let Self { target, delta, basis, share } = *self;
        // Attempts have parts of delta, which a claim allows down to 1e-100.
        demand("delta", "at least 1e-90 and below 1", delta, (1e-90..1.0).contains(&delta))?;
        demand("share", "at least 0 and below 1", share, (0.0..1.0).contains(&share))?;
        if basis == Basis::Approximate {
            return Err(ClaimError::NoCertificate);
        }
        let basis = basis.at_distance(0.0);
        Claim { target, delta, basis, budget: None, guess: None }.check_numbers(about)
    }
}
