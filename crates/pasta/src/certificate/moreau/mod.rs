//! The gradient of the Moreau envelope, certified: for weakly convex f, smooth or not.
//!
//! Where f has kinks its gradient says nothing; what is small near a good point is grad phi(x) = lambda (x - xhat), xhat
//! the minimiser of F(y) = f(y) + lambda/2 |y - x|^2. F is strongly convex with mu = lambda - rho, so subgradients G_t
//! of F at *any* points y_1 .. y_K tell how far their mean ybar is from xhat: <G_t, y_t - xhat> >= mu |y_t - xhat|^2,
//! and averaged, with S the mean of |y_t - ybar|^2 and D = |ybar - xhat|,
//!
//! mu D^2 <= |mean G| D + C, where C = mean <G_t, y_t - ybar> - mu S.
//!
//! The vector (mean G, C/r) is a mean of samples, so the sequential certificate bounds its norm by some U, whatever r.
//! Then mu D^2 <= U sqrt(D^2 + r^2), which bounds D, and |grad phi(x)| <= lambda (|x - ybar| + D).
//! `docs/certificate.md` has the details.
//!
//! ```
//! use pasta_opt::certificate::moreau::{self, MoreauClaim};
//! use pasta_opt::certificate::{Basis, Verdict};
//! use pasta_opt::prelude::*;
//! use pasta_opt::problems::Absolute;
//!
//! // At a kink the gradient of |x| has norm 1 on both sides; the envelope knows that this is the minimum.
//! let noise = Noise { growth: 0.0, floor: 1.0, tail: Tail::Gaussian };
//! let oracle = Noisy::new(Box::new(Absolute { dimension: 1 }), noise, vec![1.0])?;
//! let claim = MoreauClaim {
//!     lambda: 1.0,
//!     rho: 0.0,
//!     target: 0.3,
//!     delta: 0.05,
//!     basis: Basis::Variance(1.0),
//!     points: 256,
//!     budget: None,
//! };
//! let mut gate = Gate::new(oracle, 1);
//! let certificate = moreau::Certifier::start(&mut gate, &[0.001], &[1.0], claim, 0)?.finish(&mut gate)?;
//! assert_eq!(certificate.verdict, Verdict::Certified);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod geometry;
mod search;

use std::sync::Arc;

use geometry::{Averaged, Geometry};
use search::Search;

use super::means::Means;
use super::{
    Basis, Certificate, CertificateError, Claim, ClaimError, PILOT, Quantity, Verdict, check_point,
    confidence, demand, rounded_up,
};
use crate::draws::Role;
use crate::gate::{Gate, Halt};
use crate::kernels::{squared_distance, squared_norm};
use crate::oracle::{About, Source};

/// A claim to certify: |grad phi_{1/lambda}(x)| is at most the target.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MoreauClaim {
    /// lambda, larger than rho.
    pub lambda: f64,
    /// rho: f + rho/2 |x|^2 is convex. Declared; no sample can bound it from above. L will do for a smooth f.
    pub rho: f64,
    /// The target.
    pub target: f64,
    /// The probability with which the answer may be wrong.
    pub delta: f64,
    /// On what it may rest. A variance is one at every point near x that the certificate visits; a growth is measured
    /// from the start (its own distance is not used). A normal approximation is refused.
    pub basis: Basis,
    /// K: on how many points it rests. One is enough, and best, where f is smooth; a kink takes points on both sides.
    pub points: u64,
    /// The most samples it may draw, the search for the points included. A small one makes do with fewer points.
    pub budget: Option<u128>,
}

/// The claim of a certificate in words, with its confidence and all that it rests on.
pub(super) fn statement(
    certificate: &Certificate,
    lambda: f64,
    rho: f64,
    points: u64,
    variance: Option<f64>,
) -> String {
    match certificate.verdict {
        Verdict::Void => return super::VOID.into(),
        Verdict::NoNoise => return super::no_noise(certificate.samples),
        _ => {}
    }
    let Some(bound) = certificate.bound else {
        return "no bound: the points that were found are too far from x, or too few samples were allowed"
            .into();
    };
    let at = if points == 1 { "the point it rests on".into() } else { format!("its {points} points") };
    let noise = match (certificate.basis, variance) {
        (Basis::Exact, _) => None,
        (Basis::Growth { growth, floor, .. }, Some(variance)) => Some(format!(
            "E|g - grad f|^2 <= B^2 |y - x0|^2 + b^2, at most {}, at {at} (B = {growth}, b = {floor}, declared)",
            rounded_up(variance)
        )),
        (_, Some(variance)) => Some(format!("E|g - grad f|^2 <= {variance} at {at} (declared)")),
        (Basis::Kurtosis(kappa), None) => Some(format!(
            "the noise at {at} has kurtosis at most {kappa} (assumed; samples cannot verify it)"
        )),
        _ => None,
    };
    let noise = noise.map_or(String::new(), |noise| format!("{noise}, and "));
    let confidence = match certificate.basis {
        Basis::Exact => "But for rounding".into(),
        _ => format!(
            "With probability at least {} over the certificate's own samples",
            confidence(certificate.delta)
        ),
    };
    format!(
        "{confidence}, |grad phi(x)| <= {} for the Moreau envelope phi with lambda = {lambda}, provided \
         {noise}f + {rho}/2 |x|^2 is convex (declared).",
        rounded_up(bound)
    )
}

/// A Moreau certificate in the making.
#[derive(Debug)]
pub struct Certifier {
    claim: MoreauClaim,
    geometry: Arc<Geometry>,
    /// D at which the target is met.
    margin: f64,
    variance: Option<f64>,
    attempt: u64,
    searched: u128,
}

/// The search halves its radius until it is a quarter of what the target leaves, and at most so many times.
const MOST_EPOCHS: f64 = 24.0;
/// Steps of an epoch, at least.
const LEAST_STEPS: u64 = 256;
/// However small the target, a step of the search takes at most so many samples.
const MOST_EACH: f64 = 1e9;
/// Of a budget, at most this share goes into the search.
const SEARCH_SHARE: u128 = 4;

impl Certifier {
    /// Searches for the points near `x` that the certificate shall rest on. `start` is x0 of [`Basis::Growth`].
    pub fn start(
        gate: &mut Gate,
        x: &[f64],
        start: &[f64],
        claim: MoreauClaim,
        attempt: u64,
    ) -> Result<Self, CertificateError> {
        claim.check(gate.about(), x, start)?;
        if gate.term().is_some() {
            return Err(ClaimError::Term { what: "that of the Moreau envelope" }.into());
        }
        let left = gate.budget().map(|_| gate.left());
        let budget = [claim.budget, left].into_iter().flatten().min();
        let claim = MoreauClaim { budget, ..claim };
        let claim = MoreauClaim { points: claim.affordable_points(), ..claim };
        let MoreauClaim { lambda, rho, target, points, .. } = claim;
        let means = Means { x, role: Role::Search, attempt, samples_each: 1 };
        let (pilot, spent) = means.moments(gate, 0..PILOT.min(claim.affordable()))?;
        let norm = squared_norm(&pilot.mean).sqrt();
        let mut search = Search::plan(x, attempt, &claim, &pilot, norm);
        let found = if search.n == 0 { vec![x.to_vec()] } else { search.points(gate, norm, points)? };
        let searched = spent + search.samples;
        let mut geometry = Geometry::new(x, found, lambda, rho);
        let margin = target / lambda - squared_distance(x, &geometry.mean).sqrt();
        geometry.scale = if margin > 0.0 { margin } else { target / lambda };
        let variance = geometry.declared_variance(claim.basis, start);
        Ok(Self { claim, geometry: Arc::new(geometry), margin, variance, attempt, searched })
    }

    /// Draws to the end; or, if the gate is told to stop, as far as that leads.
    pub fn finish(self, gate: &mut Gate) -> Result<Certificate, CertificateError> {
        let Self { claim, geometry, margin, variance, attempt, searched } = self;
        let points = geometry.points.len() as u64;
        let MoreauClaim { lambda, rho, target, delta, basis, .. } = claim;
        let mut answer = Certificate {
            verdict: Verdict::NotReached,
            of: Quantity::Moreau { lambda, rho, points, variance },
            bound: None,
            target,
            delta,
            basis,
            samples: searched,
            rows: None,
            agreement: None,
        };
        if margin <= 0.0 {
            return Ok(answer);
        }
        let inner = Claim {
            target: geometry.norm_for(margin),
            delta: claim.delta,
            basis: geometry.basis(claim.basis, variance),
            budget: claim.budget.map(|budget| budget.saturating_sub(searched)),
            guess: None,
        };
        let mut averaged = gate.wrap(|oracle| Arc::new(Averaged::new(oracle, Arc::clone(&geometry))));
        let certificate = certify(&mut averaged, inner, attempt);
        gate.merge(&averaged);
        let certificate = certificate?;
        answer.verdict = match certificate.verdict {
            // Only the bound is above.
            Verdict::Above => Verdict::NotReached,
            other => other,
        };
        answer.bound = certificate.bound.map(|norm| geometry.moreau_bound(norm));
        answer.samples += certificate.samples;
        Ok(answer)
    }
}

/// Certifies the vector (mean G, C/r), which does not depend on a point.
fn certify(gate: &mut Gate, claim: Claim, attempt: u64) -> Result<Certificate, CertificateError> {
    let nowhere = vec![0.0; gate.about().dim];
    let mut certifier = super::Certifier::start(gate, &nowhere, claim, attempt)?;
    loop {
        match certifier.advance(gate) {
            Ok(Some(certificate)) => return Ok(certificate),
            Ok(None) => {}
            Err(Halt::Interrupted) => return Ok(certifier.answer(Verdict::Interrupted)),
            Err(halt) => return Err(halt.into()),
        }
    }
}

impl MoreauClaim {
    fn check(&self, about: &About, x: &[f64], start: &[f64]) -> Result<(), ClaimError> {
        check_point(about, x)?;
        check_point(about, start)?;
        let Self { lambda, rho, target, delta, basis, points, .. } = *self;
        demand("rho", "finite, at least 0", rho, rho >= 0.0 && rho.is_finite())?;
        demand("lambda", "finite and larger than rho", lambda, lambda > rho && lambda.is_finite())?;
        demand("target", "positive, from 1e-100 to 1e100", target, (1e-100..=1e100).contains(&target))?;
        demand("delta", "at least 1e-100 and below 1", delta, (1e-100..1.0).contains(&delta))?;
        demand("points", "from 1 to 4096", points as f64, (1..=4096).contains(&points))?;
        basis.at_distance(0.0).check()?;
        match basis {
            Basis::Approximate => Err(ClaimError::NoCertificate),
            Basis::Exact if about.source == Source::Stream => Err(ClaimError::NotExact),
            _ => Ok(()),
        }
    }

    /// As many points as a budget allows: below a least number of samples at each there is no bound at all.
    fn affordable_points(&self) -> u64 {
        let Self { target, delta, basis, points, budget, .. } = *self;
        let least = Claim { target, delta, basis, budget: None, guess: None }.usual_samples(0.0);
        let left = budget.map_or(f64::INFINITY, |budget| (budget - budget / SEARCH_SHARE) as f64);
        points.min((left / least) as u64).max(1)
    }

    fn affordable(&self) -> u64 {
        self.budget.map_or(u64::MAX, |budget| u64::try_from(budget / SEARCH_SHARE).unwrap_or(u64::MAX))
    }
}
