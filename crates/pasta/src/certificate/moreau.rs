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

use std::sync::Arc;

use serde::Serialize;

use super::means::Means;
use super::{
    Basis, CertificateError, Claim, ClaimError, Verdict, check_point, confidence, demand, rounded_up,
};
use crate::draws::Role;
use crate::gate::{Gate, Halt};
use crate::kernels::{squared_distance, squared_norm, update_mean};
use crate::moments::Moments;
use crate::oracle::{About, Answer, Batch, Charge, Draw, Oracle, OracleError, Request, Source, Team};

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

/// The result of a Moreau certificate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct MoreauCertificate {
    /// How it ended.
    pub verdict: Verdict,
    /// The smallest bound on |grad phi_{1/lambda}(x)| found, valid whatever the verdict; `None` if there is none.
    pub bound: Option<f64>,
    /// The target.
    pub target: f64,
    /// The probability of error.
    pub delta: f64,
    /// On what it rests, besides rho.
    #[serde(rename = "grade")]
    pub basis: Basis,
    /// The largest declared variance over its points, if one is declared.
    pub variance: Option<f64>,
    /// lambda.
    pub lambda: f64,
    /// rho, declared.
    pub rho: f64,
    /// On how many points it rests.
    pub points: u64,
    /// Samples drawn, those of the search and the pilot included.
    pub samples: u128,
}

impl MoreauCertificate {
    /// Takes the bound away, for someone who knows that the assumption is false.
    #[must_use]
    pub fn void(self) -> Self {
        Self { verdict: Verdict::Void, bound: None, ..self }
    }

    /// The claim in words, with its confidence and all that it rests on.
    pub fn statement(&self) -> String {
        if self.verdict == Verdict::Void {
            return super::VOID.into();
        }
        let Self { bound: Some(bound), lambda, rho, points, .. } = self else {
            return "no bound: the points that were found are too far from x, or too few samples were allowed".into();
        };
        let at = if *points == 1 { "the point it rests on".into() } else { format!("its {points} points") };
        let noise = match (self.basis, self.variance) {
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
        let confidence = match self.basis {
            Basis::Exact => "But for rounding".into(),
            _ => {
                format!(
                    "With probability at least {} over the certificate's own samples",
                    confidence(self.delta)
                )
            }
        };
        format!(
            "{confidence}, |grad phi(x)| <= {} for the Moreau envelope phi with lambda = {lambda}, provided \
             {noise}f + {rho}/2 |x|^2 is convex (declared).",
            rounded_up(*bound)
        )
    }
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
/// Samples of the pilot that sizes the search.
const PILOT: u64 = 256;
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
    pub fn finish(self, gate: &mut Gate) -> Result<MoreauCertificate, CertificateError> {
        let Self { claim, geometry, margin, variance, attempt, searched } = self;
        let mut answer = MoreauCertificate {
            verdict: Verdict::NotReached,
            bound: None,
            target: claim.target,
            delta: claim.delta,
            basis: claim.basis,
            variance,
            lambda: claim.lambda,
            rho: claim.rho,
            points: geometry.points.len() as u64,
            samples: searched,
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
fn certify(gate: &mut Gate, claim: Claim, attempt: u64) -> Result<super::Certificate, CertificateError> {
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

/// Epochs of normalised stochastic gradient steps on F, each from the mean of the last with half its radius: they need
/// to know neither how smooth F is nor how steep.
struct Search<'a> {
    x: &'a [f64],
    attempt: u64,
    lambda: f64,
    mu: f64,
    epochs: u32,
    steps: u64,
    /// Samples of a step.
    n: u64,
    samples: u128,
}

impl<'a> Search<'a> {
    fn plan(x: &'a [f64], attempt: u64, claim: &MoreauClaim, pilot: &Moments, norm: f64) -> Self {
        let MoreauClaim { lambda, rho, target, points, budget, .. } = *claim;
        let mu = lambda - rho;
        let steps = points.max(LEAST_STEPS);
        let epochs = (4.0 * norm * lambda / (mu * target)).log2().ceil().clamp(1.0, MOST_EPOCHS) as u32;
        // The mean of an epoch shall know F's gradient to a quarter of what the target leaves.
        let precision = mu * target / lambda / 4.0;
        let needed = pilot.variance() / (steps as f64 * precision * precision);
        let all_steps = u128::from(steps) * u128::from(epochs);
        let affordable = budget.map_or(u128::MAX, |budget| budget / SEARCH_SHARE / all_steps);
        let n =
            (needed.ceil().clamp(1.0, MOST_EACH) as u64).min(u64::try_from(affordable).unwrap_or(u64::MAX));
        Self { x, attempt, lambda, mu, epochs, steps, n, samples: 0 }
    }

    /// The last `count` iterates of the last epoch, or the mean of the epoch if only one point is wanted. `norm` is
    /// about |grad f(x)|: the minimiser of F is at most norm/mu away.
    fn points(&mut self, gate: &mut Gate, norm: f64, count: u64) -> Result<Vec<Vec<f64>>, Halt> {
        let mut mean = self.x.to_vec();
        let mut kept = Vec::new();
        for epoch in 0..self.epochs {
            let radius = norm / self.mu * 0.5f64.powi(epoch as i32);
            let kept_here = if epoch + 1 == self.epochs { count } else { 1 };
            (mean, kept) = self.epoch(gate, epoch, mean, radius, kept_here)?;
        }
        Ok(if count == 1 { vec![mean] } else { kept })
    }

    /// The mean of the epoch's iterates, and the last `count` of them.
    fn epoch(
        &mut self,
        gate: &mut Gate,
        epoch: u32,
        from: Vec<f64>,
        radius: f64,
        count: u64,
    ) -> Result<(Vec<f64>, Vec<Vec<f64>>), Halt> {
        let Self { x, attempt, lambda, steps, n, .. } = *self;
        let (mut y, mut mean) = (from.clone(), from);
        let (mut g, mut squares) = (vec![0.0; y.len()], 0.0);
        let mut kept = Vec::new();
        for t in 0..steps {
            if t >= steps - count {
                kept.push(y.clone());
            }
            update_mean(&mut mean, &y, t + 1);
            // Beyond the pilot's numbers.
            let step = attempt << 40 | u64::from(epoch + 1) << 32 | t;
            let batch = gate.batch(Role::Search, step, n);
            self.samples += gate.ask(Request::sums(batch, &[&y]), &mut Answer::new(&mut g))?.samples;
            for ((g, y), x) in g.iter_mut().zip(&y).zip(x) {
                *g = *g / n as f64 + lambda * (y - x);
            }
            squares += squared_norm(&g);
            if !squares.is_finite() {
                return Err(Halt::NotFinite { role: Role::Search, step });
            }
            // The first step is as long as the epoch's radius, the later ones are as long as they are wide.
            let eta = if squares > 0.0 { radius / squares.sqrt() } else { 0.0 };
            y.iter_mut().zip(&g).for_each(|(y, g)| *y -= eta * g);
        }
        Ok((mean, kept))
    }
}

/// The points that a certificate rests on, and what follows from the vector (mean G, C/r).
#[derive(Debug)]
struct Geometry {
    points: Vec<Vec<f64>>,
    /// ybar.
    mean: Vec<f64>,
    /// lambda (ybar - x): the part of mean G that is known.
    pull: Vec<f64>,
    distance: f64,
    /// S.
    spread: f64,
    lambda: f64,
    rho: f64,
    /// r.
    scale: f64,
}

impl Geometry {
    fn new(x: &[f64], points: Vec<Vec<f64>>, lambda: f64, rho: f64) -> Self {
        let mut mean = vec![0.0; x.len()];
        for (t, point) in points.iter().enumerate() {
            update_mean(&mut mean, point, t as u64 + 1);
        }
        let spread =
            points.iter().map(|y| squared_distance(y, &mean)).sum::<f64>() / points.len().max(1) as f64;
        let pull = mean.iter().zip(x).map(|(mean, x)| lambda * (mean - x)).collect();
        let distance = squared_distance(x, &mean).sqrt();
        Self { points, mean, pull, distance, spread, lambda, rho, scale: 1.0 }
    }

    fn mu(&self) -> f64 {
        self.lambda - self.rho
    }

    /// Whether there is a C at all.
    fn has_last(&self) -> bool {
        self.points.len() > 1
    }

    /// How much the last coordinate, C/r, can add to a noise at y_t: a factor on its square.
    fn stretch(&self, point: &[f64]) -> f64 {
        if self.has_last() {
            1.0 + squared_distance(point, &self.mean) / (self.scale * self.scale)
        } else {
            1.0
        }
    }

    /// The largest declared variance over the points.
    fn declared_variance(&self, basis: Basis, start: &[f64]) -> Option<f64> {
        let at = |y: &Vec<f64>| basis.at_distance(squared_distance(y, start).sqrt()).declared_variance();
        self.points.iter().map(at).try_fold(0.0, |largest: f64, v| v.map(|v| largest.max(v)))
    }

    /// The basis of the sum, from that of f's samples.
    fn basis(&self, basis: Basis, variance: Option<f64>) -> Basis {
        let count = self.points.len() as f64;
        let stretches = || self.points.iter().map(|y| self.stretch(y));
        match (basis, variance) {
            // Independent samples at K points, each weighed 1/K.
            (_, Some(variance)) => Basis::Variance(variance * stretches().sum::<f64>() / (count * count)),
            // A stretched noise has at most its kurtosis times the square of the stretch, and a sum of independent
            // ones at most the largest, or 3.
            (Basis::Kurtosis(kappa), None) => {
                Basis::Kurtosis(kappa.max(3.0) * stretches().fold(1.0, f64::max).powi(2))
            }
            (other, None) => other,
        }
    }

    /// The U that makes D at most this.
    fn norm_for(&self, d: f64) -> f64 {
        let r = if self.has_last() { self.scale } else { 0.0 };
        self.mu() * d * d / d.hypot(r)
    }

    /// lambda (|x - ybar| + D) with the largest D that mu D^2 <= U sqrt(D^2 + r^2) allows.
    fn moreau_bound(&self, norm: f64) -> f64 {
        let r = if self.has_last() { self.scale } else { 0.0 };
        let u = norm / self.mu();
        // D^2 is the larger root of t^2 = u^2 (t + r^2).
        let d = (0.5 * u * (u + u.hypot(2.0 * r))).sqrt();
        self.lambda * (self.distance + d)
    }

    /// Adds what is known without a sample: the pull, and (rho S)/r, since mean <lambda (y_t - x), y_t - ybar> = lambda S.
    fn add_known(&self, n: f64, out: &mut [f64]) {
        out.iter_mut().zip(&self.pull).for_each(|(out, pull)| *out += n * pull);
        if self.has_last() {
            out[self.pull.len()] += n * self.rho * self.spread / self.scale;
        }
    }

    /// Adds g, a sum of f's subgradients at y_t, with its weight.
    fn add(&self, t: usize, g: &[f64], out: &mut [f64]) {
        let weight = 1.0 / self.points.len() as f64;
        out.iter_mut().zip(g).for_each(|(out, g)| *out += weight * g);
        if self.has_last() {
            let along = g.iter().zip(&self.points[t]).zip(&self.mean).map(|((g, y), mean)| g * (y - mean));
            out[g.len()] += weight * along.sum::<f64>() / self.scale;
        }
    }
}

/// An oracle for the vector (mean G, C/r): one of its samples is one of f's at each of the points.
struct Averaged {
    oracle: Arc<dyn Oracle>,
    geometry: Arc<Geometry>,
    about: About,
}

impl Averaged {
    fn new(oracle: Arc<dyn Oracle>, geometry: Arc<Geometry>) -> Self {
        let points = geometry.points.len();
        let inner = oracle.about();
        let about = About {
            dim: inner.dim + usize::from(geometry.has_last()),
            identity: format!("{points} points of {}", inner.identity),
            source: match inner.source {
                Source::Table { rows } => Source::Table { rows: rows * points as u64 },
                other => other,
            },
            losses: false,
            shared: false,
        };
        Self { oracle, geometry, about }
    }

    /// The question to f's oracle at point number `t`: fresh samples at every point.
    fn draw(&self, draw: &Draw, t: usize) -> Draw {
        match draw {
            Draw::Batch(batch) => {
                let points = self.geometry.points.len() as u64;
                let step = batch.step.wrapping_mul(points).wrapping_add(t as u64);
                Draw::Batch(Batch { step, ..batch.clone() })
            }
            everything @ Draw::Everything(_) => everything.clone(),
        }
    }
}

impl Oracle for Averaged {
    fn about(&self) -> &About {
        &self.about
    }

    fn price(&self, request: &Request<'_>) -> Charge {
        let points = self.geometry.points.len() as u128;
        let at = [self.geometry.mean.as_slice()];
        let inner =
            Request { draw: request.draw.clone(), points: &at, ..Request::everything(Role::Search, &at) };
        let Charge { samples, evaluations, exact } = self.oracle.price(&inner);
        Charge { samples: samples * points, evaluations: evaluations * points, exact }
    }

    fn answer(&self, request: &Request<'_>, answer: &mut Answer<'_>) -> Result<Charge, OracleError> {
        let n = match &request.draw {
            Draw::Batch(batch) => batch.count() as f64,
            Draw::Everything(_) => 1.0,
        };
        let mut total = Charge { exact: true, ..Charge::default() };
        let out = &mut *answer.gradients;
        out.fill(0.0);
        let mut g = vec![0.0; self.geometry.pull.len()];
        for (t, y) in self.geometry.points.iter().enumerate() {
            let points: &[&[f64]] = &[y];
            let request = Request {
                draw: self.draw(&request.draw, t),
                stop: request.stop,
                team: request.team,
                ..Request::everything(Role::Search, points)
            };
            let Charge { samples, evaluations, exact } =
                self.oracle.answer(&request, &mut Answer::new(&mut g))?;
            total.samples += samples;
            total.evaluations += evaluations;
            total.exact &= exact;
            self.geometry.add(t, &g, out);
        }
        self.geometry.add_known(n, out);
        Ok(total)
    }

    fn team(&self) -> Option<&dyn Team> {
        self.oracle.team()
    }
}
