//! How a certificate was made: what it takes to make it again, and the numbers behind its bound.

use serde::{Deserialize, Serialize};

use super::Claim;
use super::sequential::TRACKS;
use crate::digest::Digest;
use crate::draws::Role;
use crate::ledger::{Entry, Ledger};

/// How a certificate was made. [`verify`](crate::verify) makes it again from this, the point and the oracle, and compares.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Made {
    /// The seed of its samples: the run's, or one that follows from it.
    pub seed: u64,
    /// The number of the attempt in the addresses of its samples.
    pub attempt: u64,
    /// What was claimed: with the share of delta of this attempt, and the most samples that it could draw.
    pub claim: Claim,
    /// SHA-256 of the point, as little-endian doubles.
    pub point: Digest,
    /// m: samples of a sub-batch.
    pub samples_each: u64,
    /// k: sub-batches drawn.
    pub sub_batches: u64,
    /// The sub-batches that the first track planned.
    pub planned: f64,
    /// s of each track.
    pub scales: [f64; TRACKS],
    /// The sub-batches of a group between two looks, where a round has a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<u64>,
    /// The bound on v that it rests on, if there is one.
    pub variance: Option<f64>,
    /// The length of the mean of all sub-batches.
    pub mean: f64,
    /// The sum of the squared distances of the sub-batches from their mean.
    pub scatter: f64,
    /// What had been drawn for certificates before.
    pub before: Spent,
}

/// What was drawn for certificates, by role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Spent {
    /// By certificates.
    pub certificate: Entry,
    /// By the pilots that plan them.
    pub pilot: Entry,
    /// To compare losses with gradients.
    pub slopes: Entry,
}

impl Spent {
    /// What a ledger says.
    pub fn of(ledger: &Ledger) -> Self {
        let [certificate, pilot, slopes] = Self::ROLES.map(|role| ledger.of(role));
        Self { certificate, pilot, slopes }
    }

    /// The roles, in the order of the fields.
    pub(crate) const ROLES: [Role; 3] = [Role::Certificate, Role::Pilot, Role::Slopes];

    /// The entries, in the order of the fields.
    pub(crate) fn entries(&self) -> [Entry; 3] {
        [self.certificate, self.pilot, self.slopes]
    }
}
