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
//! use pasta_opt::certificate::moreau::{self, MoreauRequest};
//! use pasta_opt::certificate::{Grade, Verdict};
//! use pasta_opt::prelude::*;
//!
//! // At a kink the gradient of |x| has norm 1 on both sides; the envelope knows that this is the minimum.
//! let noise = Noise { growth: 0.0, floor: 1.0, tail: Tail::Gaussian };
//! let oracle = Noisy::new(Box::new(Absolute { dimension: 1 }), noise, vec![1.0])?;
//! let request = MoreauRequest {
//!     lambda: 1.0,
//!     rho: 0.0,
//!     target: 0.3,
//!     delta: 0.05,
//!     grade: Grade::Variance(1.0),
//!     points: 256,
//!     budget: None,
//! };
//! let certificate = moreau::Certifier::start(&oracle, &[0.001], &[1.0], request, 1, 0)?.finish()?;
//! assert_eq!(certificate.verdict, Verdict::Certified);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use serde::Serialize;

use super::means::Draws;
use super::{
    Grade, Request, RequestError, StartCertificateError, Verdict, check_point, confidence, demand, rounded_up,
};
use crate::draws::Role;
use crate::kernels::{squared_distance, squared_norm, update_mean};
use crate::moments::Moments;
use crate::oracle::{Batch, Oracle, OracleError};

/// What is asked: is |grad phi_{1/lambda}(x)| at most the target?
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MoreauRequest {
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
    pub grade: Grade,
    /// K: on how many points it rests. One is enough, and best, where f is smooth; a kink takes points on both sides.
    pub points: u64,
    /// The most samples it may draw, the search for the points included. A small one makes do with fewer points.
    pub budget: Option<u128>,
}

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
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
    pub grade: Grade,
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
    /// The claim in words, with its confidence and all that it rests on.
    pub fn statement(&self) -> String {
        let Self { bound: Some(bound), lambda, rho, points, .. } = self else {
            return "no bound: the points that were found are too far from x, or too few samples were allowed".into();
        };
        let at = if *points == 1 { "the point it rests on".into() } else { format!("its {points} points") };
        let noise = match (self.grade, self.variance) {
            (Grade::Exact, _) => None,
            (Grade::Growth { growth, floor, .. }, Some(variance)) => Some(format!(
                "E|g - grad f|^2 <= B^2 |y - x0|^2 + b^2, at most {}, at {at} (B = {growth}, b = {floor}, declared)",
                rounded_up(variance)
            )),
            (_, Some(variance)) => Some(format!("E|g - grad f|^2 <= {variance} at {at} (declared)")),
            (Grade::Kurtosis(kappa), None) => Some(format!(
                "the noise at {at} has kurtosis at most {kappa} (assumed; samples cannot verify it)"
            )),
            _ => None,
        };
        let noise = noise.map_or(String::new(), |noise| format!("{noise}, and "));
        let confidence = match self.grade {
            Grade::Exact => "But for rounding".into(),
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
pub struct Certifier<'o> {
    request: MoreauRequest,
    averaged: Averaged<'o>,
    /// D at which the target is met.
    reach: f64,
    variance: Option<f64>,
    seed: u64,
    attempt: u64,
    searched: u128,
}

/// The search halves its reach until it is a quarter of what the target leaves, and at most so many times.
const MOST_EPOCHS: f64 = 24.0;
/// Steps of an epoch, at least.
const LEAST_STEPS: u64 = 256;
/// Samples of the pilot that sizes the search.
const PILOT: u64 = 256;
/// However small the target, a step of the search takes at most so many samples.
const MOST_EACH: f64 = 1e9;
/// Of a budget, at most this share goes into the search.
const SEARCH_SHARE: u128 = 4;

impl<'o> Certifier<'o> {
    /// Searches for the points near `x` that the certificate shall rest on. `start` is x0 of [`Grade::Growth`].
    pub fn start(
        oracle: &'o dyn Oracle,
        x: &[f64],
        start: &[f64],
        request: MoreauRequest,
        seed: u64,
        attempt: u64,
    ) -> Result<Self, StartCertificateError> {
        Self::start_watched(oracle, x, start, request, seed, attempt, || true)
    }

    /// The same, until `go_on`, which is asked after every step of the search, says no.
    pub fn start_watched(
        oracle: &'o dyn Oracle,
        x: &[f64],
        start: &[f64],
        request: MoreauRequest,
        seed: u64,
        attempt: u64,
        mut go_on: impl FnMut() -> bool,
    ) -> Result<Self, StartCertificateError> {
        request.check(oracle, x, start)?;
        let request = MoreauRequest { points: request.affordable_points(), ..request };
        let MoreauRequest { lambda, rho, target, points, .. } = request;
        let draws = Draws { oracle, x, seed, role: Role::Search, attempt, samples_each: 1 };
        let pilot = draws.moments(0..PILOT.min(request.affordable()))?;
        let norm = squared_norm(&pilot.mean).sqrt();
        let mut search = Search::plan(draws, &request, &pilot, norm);
        let found = if search.n == 0 { vec![x.to_vec()] } else { search.points(norm, points, &mut go_on)? };
        let searched = u128::from(search.samples);
        let mut averaged = Averaged::new(oracle, x, found, lambda, rho);
        let reach = target / lambda - squared_distance(x, &averaged.mean).sqrt();
        averaged.scale = if reach > 0.0 { reach } else { target / lambda };
        let variance = averaged.declared_variance(request.grade, start);
        Ok(Self { request, averaged, reach, variance, seed, attempt, searched })
    }

    /// Draws to the end.
    pub fn finish(self) -> Result<MoreauCertificate, StartCertificateError> {
        self.finish_watched(|| true)
    }

    /// Draws to the end, or until `go_on`, which is asked after every group of samples, says no: then as far as that
    /// leads.
    pub fn finish_watched(
        self,
        mut go_on: impl FnMut() -> bool,
    ) -> Result<MoreauCertificate, StartCertificateError> {
        let Self { request, averaged, reach, variance, seed, attempt, searched } = &self;
        let mut answer = MoreauCertificate {
            verdict: Verdict::NotReached,
            bound: None,
            target: request.target,
            delta: request.delta,
            grade: request.grade,
            variance: *variance,
            lambda: request.lambda,
            rho: request.rho,
            points: averaged.points.len() as u64,
            samples: *searched,
        };
        if *reach <= 0.0 {
            return Ok(answer);
        }
        let inner = Request {
            target: averaged.norm_for(*reach),
            delta: request.delta,
            grade: averaged.grade(request.grade, *variance),
            budget: request.budget.map(|budget| budget.saturating_sub(*searched) / u128::from(answer.points)),
            guess: None,
        };
        let nowhere = vec![0.0; averaged.dim()];
        let mut certifier = super::Certifier::start(averaged, &nowhere, inner, *seed, *attempt)?;
        let certificate = loop {
            match certifier.advance()? {
                Some(certificate) => break certificate,
                None if !go_on() => break certifier.answer(Verdict::OutOfBudget),
                None => {}
            }
        };
        answer.verdict = match certificate.verdict {
            // Only the bound is above.
            Verdict::Above => Verdict::NotReached,
            other => other,
        };
        answer.bound = certificate.bound.map(|norm| averaged.moreau_bound(norm));
        answer.samples += certificate.samples * u128::from(answer.points);
        Ok(answer)
    }
}

impl MoreauRequest {
    fn check(&self, oracle: &dyn Oracle, x: &[f64], start: &[f64]) -> Result<(), RequestError> {
        check_point(oracle, x)?;
        check_point(oracle, start)?;
        let Self { lambda, rho, target, delta, grade, points, .. } = *self;
        demand("rho", "finite, at least 0", rho, rho >= 0.0 && rho.is_finite())?;
        demand("lambda", "finite and larger than rho", lambda, lambda > rho && lambda.is_finite())?;
        demand("target", "positive, from 1e-100 to 1e100", target, (1e-100..=1e100).contains(&target))?;
        demand("delta", "at least 1e-100 and below 1", delta, (1e-100..1.0).contains(&delta))?;
        demand("points", "from 1 to 4096", points as f64, (1..=4096).contains(&points))?;
        grade.at_distance(0.0).check()?;
        match grade {
            Grade::Approximate => Err(RequestError::NoCertificate),
            Grade::Exact if oracle.full_pass().is_none() => Err(RequestError::NotExact),
            _ => Ok(()),
        }
    }

    /// As many points as a budget allows: below a least number of samples at each there is no bound at all.
    fn affordable_points(&self) -> u64 {
        let Self { target, delta, grade, points, budget, .. } = *self;
        let least = Request { target, delta, grade, budget: None, guess: None }.wanted_samples(0.0);
        let left = budget.map_or(f64::INFINITY, |budget| (budget - budget / SEARCH_SHARE) as f64);
        points.min((left / least) as u64).max(1)
    }

    fn affordable(&self) -> u64 {
        self.budget.map_or(u64::MAX, |budget| u64::try_from(budget / SEARCH_SHARE).unwrap_or(u64::MAX))
    }
}

/// Epochs of normalised stochastic gradient steps on F, each from the mean of the last with half its reach: they need
/// to know neither how smooth F is nor how steep.
struct Search<'a> {
    draws: Draws<'a>,
    lambda: f64,
    mu: f64,
    epochs: u32,
    steps: u64,
    /// Samples of a step.
    n: u64,
    samples: u64,
}

impl<'a> Search<'a> {
    fn plan(draws: Draws<'a>, request: &MoreauRequest, pilot: &Moments, norm: f64) -> Self {
        let MoreauRequest { lambda, rho, target, points, budget, .. } = *request;
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
        Self { draws, lambda, mu, epochs, steps, n, samples: pilot.count }
    }

    /// The last `count` iterates of the last epoch, or the mean of the epoch if only one point is wanted. `norm` is
    /// about |grad f(x)|: the minimiser of F is at most norm/mu away.
    fn points(
        &mut self,
        norm: f64,
        count: u64,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Vec<Vec<f64>>, StartCertificateError> {
        let mut mean = self.draws.x.to_vec();
        let mut kept = Vec::new();
        for epoch in 0..self.epochs {
            let reach = norm / self.mu * 0.5f64.powi(epoch as i32);
            let kept_here = if epoch + 1 == self.epochs { count } else { 1 };
            (mean, kept) = self.epoch(epoch, mean, reach, kept_here, go_on)?;
        }
        Ok(if count == 1 { vec![mean] } else { kept })
    }

    /// The mean of the epoch's iterates, and the last `count` of them.
    fn epoch(
        &mut self,
        epoch: u32,
        from: Vec<f64>,
        reach: f64,
        count: u64,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(Vec<f64>, Vec<Vec<f64>>), StartCertificateError> {
        let Self { draws: Draws { oracle, x, seed, role, attempt, .. }, lambda, steps, n, .. } = *self;
        let (mut y, mut mean) = (from.clone(), from);
        let (mut g, mut squares) = (vec![0.0; y.len()], 0.0);
        let mut kept = Vec::new();
        for t in 0..steps {
            if t >= steps - count {
                kept.push(y.clone());
            }
            update_mean(&mut mean, &y, t + 1);
            // Beyond the pilot's numbers.
            let number = u64::from(epoch + 1) << 32 | t;
            oracle.sum(&y, &Batch { seed, role, step: attempt << 40 | number, n }, &mut g)?;
            for ((g, y), x) in g.iter_mut().zip(&y).zip(x) {
                *g = *g / n as f64 + lambda * (y - x);
            }
            squares += squared_norm(&g);
            if !squares.is_finite() {
                return Err(OracleError::new("its answer near the point is not finite").into());
            }
            if !go_on() {
                return Err(StartCertificateError::Interrupted);
            }
            // The first step is as long as the epoch's reach, the later ones are as long as they are wide.
            let eta = if squares > 0.0 { reach / squares.sqrt() } else { 0.0 };
            y.iter_mut().zip(&g).for_each(|(y, g)| *y -= eta * g);
            self.samples += n;
        }
        Ok((mean, kept))
    }
}

/// An oracle for the vector (mean G, C/r): one of its samples is one of f's at each of the points.
struct Averaged<'o> {
    oracle: &'o dyn Oracle,
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

impl<'o> Averaged<'o> {
    fn new(oracle: &'o dyn Oracle, x: &[f64], points: Vec<Vec<f64>>, lambda: f64, rho: f64) -> Self {
        let mut mean = vec![0.0; x.len()];
        for (t, point) in points.iter().enumerate() {
            update_mean(&mut mean, point, t as u64 + 1);
        }
        let spread =
            points.iter().map(|y| squared_distance(y, &mean)).sum::<f64>() / points.len().max(1) as f64;
        let pull = mean.iter().zip(x).map(|(mean, x)| lambda * (mean - x)).collect();
        let distance = squared_distance(x, &mean).sqrt();
        Self { oracle, points, mean, pull, distance, spread, lambda, rho, scale: 1.0 }
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
    fn declared_variance(&self, grade: Grade, start: &[f64]) -> Option<f64> {
        let at = |y: &Vec<f64>| grade.at_distance(squared_distance(y, start).sqrt()).declared_variance();
        self.points.iter().map(at).try_fold(0.0, |largest: f64, v| v.map(|v| largest.max(v)))
    }

    /// The grade of the sum, from that of f's samples.
    fn grade(&self, grade: Grade, variance: Option<f64>) -> Grade {
        let count = self.points.len() as f64;
        let stretches = || self.points.iter().map(|y| self.stretch(y));
        match (grade, variance) {
            // Independent samples at K points, each weighed 1/K.
            (_, Some(variance)) => Grade::Variance(variance * stretches().sum::<f64>() / (count * count)),
            // A stretched noise has at most its kurtosis times the square of the stretch, and a sum of independent
            // ones at most the largest, or 3.
            (Grade::Kurtosis(kappa), None) => {
                Grade::Kurtosis(kappa.max(3.0) * stretches().fold(1.0, f64::max).powi(2))
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

    /// The vector, n times, from what `ask` says of f at each point.
    fn fill(
        &self,
        n: f64,
        out: &mut [f64],
        ask: impl Fn(usize, &[f64], &mut [f64]) -> Result<(), OracleError>,
    ) -> Result<(), OracleError> {
        out.fill(0.0);
        let mut g = vec![0.0; self.pull.len()];
        for (t, y) in self.points.iter().enumerate() {
            ask(t, y, &mut g)?;
            self.add(t, &g, out);
        }
        self.add_known(n, out);
        Ok(())
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

impl Oracle for Averaged<'_> {
    fn dim(&self) -> usize {
        self.pull.len() + usize::from(self.has_last())
    }

    fn sum(&self, _x: &[f64], batch: &Batch, out: &mut [f64]) -> Result<(), OracleError> {
        let points = self.points.len() as u64;
        self.fill(batch.n as f64, out, |t, y, g| {
            // Fresh samples at every point.
            let step = batch.step.wrapping_mul(points).wrapping_add(t as u64);
            self.oracle.sum(y, &Batch { step, ..*batch }, g)
        })
    }

    fn sum_difference(
        &self,
        _x: &[f64],
        _y: &[f64],
        _batch: &Batch,
        _out: &mut [f64],
    ) -> Result<(), OracleError> {
        Err(OracleError::new("the points of a certificate are fixed: there are no differences"))
    }

    fn full_pass(&self) -> Option<u64> {
        self.oracle.full_pass()
    }

    fn exact_gradient(&self, _x: &[f64], out: &mut [f64]) -> Result<(), OracleError> {
        self.fill(1.0, out, |_, y, g| self.oracle.exact_gradient(y, g))
    }
}

impl std::fmt::Debug for Averaged<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} points of {}", self.points.len(), self.oracle.identity())
    }
}
