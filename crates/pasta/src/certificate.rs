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
//! use pasta_opt::certificate::{Certifier, Grade, Request, Verdict};
//! use pasta_opt::prelude::*;
//!
//! let noise = Noise { growth: 0.0, floor: 1.0, tail: Tail::StudentT { dof: 3.0 } };
//! let oracle = Noisy::new(Box::new(SineBowl { dimension: 2 }), noise, vec![1.0, 1.0])?;
//! let request = Request { target: 0.1, delta: 0.05, grade: Grade::Variance(1.0), budget: None, guess: None };
//! let certificate = Certifier::start(&oracle, &[0.01, 0.0], request, 1, 0)?.finish()?;
//! assert_eq!(certificate.verdict, Verdict::Certified);
//! assert!(certificate.bound.is_some_and(|u| u <= 0.1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::draws::Role;
use crate::kernels::{squared_distance, squared_norm};
use crate::oracle::{Batch, Oracle, OracleError};

/// On what a certificate rests.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grade {
    /// Declared: E|g - grad f|^2 at the point is at most this. Proved, whatever the tails.
    Variance(f64),
    /// Assumed: E|g - grad f|^4 is at most this times (E|g - grad f|^2)^2. Proved; samples cannot verify it.
    Kurtosis(f64),
    /// A normal approximation. Never a certificate.
    Approximate,
}

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Request {
    /// eps: is the gradient's norm at most this?
    pub target: f64,
    /// The probability with which the answer may be wrong.
    pub delta: f64,
    /// On what it may rest.
    pub grade: Grade,
    /// The most samples it may draw; `None` is the end of its own plan.
    pub budget: Option<u128>,
    /// A guess of the gradient's norm, not from the certificate's samples. It steers the cost, not the validity.
    pub guess: Option<f64>,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The bound is at most the target.
    Certified,
    /// The samples suggest that the gradient is larger than the target. Claims nothing.
    Above,
    /// The samples that were allowed or planned are used up.
    OutOfBudget,
}

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Certificate {
    /// How it ended.
    pub verdict: Verdict,
    /// U: the smallest bound found, valid (under the grade's assumption) with probability at least 1 - delta whatever
    /// the verdict; `None` if there were too few samples for any.
    pub bound: Option<f64>,
    /// The target.
    pub target: f64,
    /// The probability of error.
    pub delta: f64,
    /// On what it rests.
    pub grade: Grade,
    /// Samples drawn, the pilot's included.
    pub samples: u128,
}

impl Certificate {
    /// The claim in words, with its confidence and its assumption. What is approximate is not called certified.
    pub fn statement(&self) -> String {
        let Some(bound) = self.bound else {
            return "no bound: too few samples were allowed".into();
        };
        let percent = 100.0 * (1.0 - self.delta);
        let claim = format!(
            "With probability at least {percent} % over the certificate's own samples, |grad f(x)| <= {bound:.6e}"
        );
        match self.grade {
            Grade::Variance(v) => format!("{claim}, provided E|g - grad f|^2 <= {v} at x (declared)."),
            Grade::Kurtosis(kappa) => format!(
                "{claim}, provided the noise at x has kurtosis at most {kappa} (assumed; samples cannot verify it)."
            ),
            Grade::Approximate => format!(
                "|grad f(x)| <= {bound:.6e} with about {percent} % by normal approximation; not a guarantee."
            ),
        }
    }
}

/// The share of delta that attempt i = 1, 2, .. of one run may use: all of them together never exceed delta.
pub fn delta_of_attempt(delta: f64, attempt: u64) -> f64 {
    let i = attempt as f64;
    delta / (i * (i + 1.0))
}

/// Why a request was refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RequestError {
    /// A number out of its range.
    #[error("certificate: {name} must be {needs}, but is {got}")]
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
}

/// Sub-batches of the first track: s^2 v = 2 log(1/delta)/k must be below 1/100, and the more there are the
/// sharper the variance is known.
const SUB_BATCHES: f64 = 4096.0;
/// Each further track aims at half the margin, so at four times the samples; it gets a fifth of the error.
const TRACKS: usize = 3;
const FIRST_SHARE: f64 = 0.8;
const NEXT_SHARE: f64 = 0.2;
/// Of a variance estimated on the side, this share of all error; look j = 0, 1, .. at it gets 2^-(j+1) of the share.
const VARIANCE_SHARE: f64 = 0.2;
/// Samples of the pilot.
const PILOT: u64 = 256;

/// A certificate in the making: a step is a group of sub-batches.
#[derive(Debug)]
pub struct Certifier<'o, 'x> {
    oracle: Debuggable<'o>,
    x: &'x [f64],
    request: Request,
    seed: u64,
    attempt: u64,
    /// m: samples of a sub-batch.
    samples_each: u64,
    tracks: Vec<Track>,
    moments: Moments,
    /// The next look at the variance: its number, and the count of sub-batches it waits for.
    variance_look: (i32, u64),
    /// An upper bound on v; the smallest so far. v itself never changes.
    variance: Option<f64>,
    samples: u128,
    bound: Option<f64>,
}

/// One value of s with its running sum.
#[derive(Debug, Clone)]
struct Track {
    /// s: the scale of the shrinking.
    scale: f64,
    /// log(1/delta) of this track, for the mean.
    log: f64,
    /// The number of sub-batches that s is best for.
    planned: f64,
    /// The sum of c(X).
    sum: Vec<f64>,
}

/// Mean and scatter of the sub-batch means, by Welford's recursion.
#[derive(Debug, Clone)]
struct Moments {
    count: u64,
    mean: Vec<f64>,
    scatter: f64,
}

/// An oracle that can be shown by name.
#[derive(Clone, Copy)]
struct Debuggable<'o>(&'o dyn Oracle);

impl std::fmt::Debug for Debuggable<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.identity())
    }
}

impl<'o, 'x> Certifier<'o, 'x> {
    /// Plans a certificate of the point x. `attempt` tells apart the certificates of one run: each has samples of its
    /// own. Unless the variance is declared, a pilot of 256 samples plans it.
    pub fn start(
        oracle: &'o dyn Oracle,
        x: &'x [f64],
        request: Request,
        seed: u64,
        attempt: u64,
    ) -> Result<Self, StartCertificateError> {
        request.check(oracle, x)?;
        let pilot = match request.grade {
            Grade::Variance(_) => 0,
            Grade::Kurtosis(_) | Grade::Approximate => PILOT.min(request.affordable()),
        };
        let mut certifier = Self {
            oracle: Debuggable(oracle),
            x,
            request,
            seed,
            attempt,
            samples_each: 1,
            tracks: Vec::new(),
            moments: Moments::new(x.len()),
            variance_look: (0, 0),
            variance: None,
            samples: u128::from(pilot),
            bound: None,
        };
        let variance = match request.grade {
            Grade::Variance(v) => v,
            // A fifth more than estimated, so that a typical error does not leave the plan too small.
            _ => 1.2 * certifier.pilot_variance(pilot)?,
        };
        certifier.plan(variance);
        Ok(certifier)
    }

    /// Draws to the end.
    pub fn finish(mut self) -> Result<Certificate, OracleError> {
        loop {
            if let Some(certificate) = self.advance()? {
                return Ok(certificate);
            }
        }
    }

    /// Draws one group of sub-batches; the answer when there is one.
    pub fn advance(&mut self) -> Result<Option<Certificate>, OracleError> {
        let left = self.request.budget.map_or(u128::MAX, |budget| budget.saturating_sub(self.samples));
        let group = self.group().min(left / u128::from(self.samples_each));
        if group == 0 || self.moments.count as f64 >= 2.0 * self.tracks.last().map_or(0.0, |t| t.planned) {
            return Ok(Some(self.answer(Verdict::OutOfBudget)));
        }
        self.draw(group as u64)?;
        self.look_at_variance();
        if let Some(bound) = self.bound_now() {
            self.bound = Some(self.bound.map_or(bound, |best| best.min(bound)));
        }
        if self.bound.is_some_and(|bound| bound <= self.request.target) {
            return Ok(Some(self.answer(Verdict::Certified)));
        }
        Ok(self.looks_above().then(|| self.answer(Verdict::Above)))
    }

    /// The answer, were it given now.
    pub fn answer(&self, verdict: Verdict) -> Certificate {
        let Request { target, delta, grade, .. } = self.request;
        Certificate { verdict, bound: self.bound, target, delta, grade, samples: self.samples }
    }

    /// Sub-batches drawn between two looks: enough to keep threads busy, few enough to stop in time.
    fn group(&self) -> u128 {
        (1_000_000 / self.x.len().max(1)).clamp(1, 32) as u128
    }

    fn pilot_variance(&self, n: u64) -> Result<f64, OracleError> {
        let mut moments = Moments::new(self.x.len());
        for i in 0..n {
            let mut g = vec![0.0; self.x.len()];
            let batch = Batch { seed: self.seed, role: Role::Pilot, step: self.address(i), n: 1 };
            self.oracle.0.sum(self.x, &batch, &mut g)?;
            moments.add(&g);
        }
        Ok(moments.variance())
    }

    /// Chooses m and the tracks for a variance V of one sample.
    fn plan(&mut self, variance: f64) {
        let Request { target, delta, guess, .. } = self.request;
        // The margin for error, as a share of the target: the guess leaves 1 - guess/target of it, less the
        // guess's own error. Beyond these limits the plan would be too bold or too dear.
        let margin = guess.map_or(0.45, |guess| (0.9 - 0.9 * guess / target).clamp(0.2, 0.8));
        let log_of = |share: f64| (1.0 / (share * delta)).ln();
        let mean_share = match self.request.grade {
            Grade::Variance(_) | Grade::Approximate => 1.0,
            Grade::Kurtosis(_) => 1.0 - VARIANCE_SHARE,
        };
        let first_log = log_of(FIRST_SHARE * mean_share);
        // sqrt(2 V log/n) = margin * target.
        let samples = 2.0 * first_log * variance / (margin * target).powi(2);
        self.samples_each = (samples / SUB_BATCHES).ceil().clamp(1.0, MAX_SUB_BATCH) as u64;
        let v = variance / self.samples_each as f64;
        if let Grade::Variance(_) = self.request.grade {
            self.variance = Some(v);
        }
        // s^2 v <= 1/100 needs this many; a noiseless oracle needs no more either.
        let planned = (samples / self.samples_each as f64).max(250.0 * first_log);
        self.tracks = (0..TRACKS)
            .map(|i| {
                let log = log_of(FIRST_SHARE * NEXT_SHARE.powi(i as i32) * mean_share);
                let planned = planned * 4f64.powi(i as i32);
                let spread = v + target * target;
                Track {
                    scale: (2.0 * log / (planned * spread)).sqrt(),
                    log,
                    planned,
                    sum: vec![0.0; self.x.len()],
                }
            })
            .collect();
        self.variance_look = (0, (planned / 4.0) as u64);
    }

    fn address(&self, i: u64) -> u64 {
        // Attempts are few and sub-batches are below 2^40.
        (self.attempt << 40) | i
    }

    /// Draws `group` sub-batch means, in parallel, and adds them in their order.
    fn draw(&mut self, group: u64) -> Result<(), OracleError> {
        let (first, n) = (self.moments.count, self.samples_each);
        let means: Vec<Vec<f64>> = (first..first + group)
            .into_par_iter()
            .map(|i| {
                let mut mean = vec![0.0; self.x.len()];
                let batch = Batch { seed: self.seed, role: Role::Certificate, step: self.address(i), n };
                self.oracle.0.sum(self.x, &batch, &mut mean)?;
                mean.iter_mut().for_each(|g| *g /= n as f64);
                Ok(mean)
            })
            .collect::<Result<_, OracleError>>()?;
        self.samples += u128::from(group) * u128::from(n);
        for mean in &means {
            self.moments.add(mean);
            let norm = squared_norm(mean).sqrt();
            for track in &mut self.tracks {
                let factor = shrink(track.scale * norm);
                track.sum.iter_mut().zip(mean).for_each(|(sum, x)| *sum += factor * x);
            }
        }
        Ok(())
    }

    /// The smallest bound that the tracks give now.
    fn bound_now(&self) -> Option<f64> {
        let bounds = self.tracks.iter().filter_map(|track| match self.request.grade {
            Grade::Approximate => self.approximate_bound(track),
            Grade::Variance(_) | Grade::Kurtosis(_) => self.bound_of(track, self.variance?),
        });
        bounds.min_by(f64::total_cmp)
    }

    fn bound_of(&self, track: &Track, v: f64) -> Option<f64> {
        let (k, s) = (self.moments.count as f64, track.scale);
        let mean = squared_norm(&track.sum).sqrt() / k;
        if k < 20.0 * track.log || s * s * v > 0.01 || mean > 0.17 / s {
            return None;
        }
        let b = mean + s * v / 2.0 + track.log / (s * k);
        // The smaller root of U - s U^2/2 = b, without cancellation; 2 s b < 1 by the conditions above.
        Some(2.0 * b / (1.0 + (1.0 - 2.0 * s * b).sqrt()))
    }

    /// Bounds v from the scatter of the sub-batch means, at counts that double.
    ///
    /// A mean of m samples of kurtosis kappa has kurtosis at most kappa/m + 3 (1 - 1/m).
    fn look_at_variance(&mut self) {
        let (Grade::Kurtosis(kappa), (j, due)) = (self.request.grade, self.variance_look) else { return };
        let (count, m) = (self.moments.count, self.samples_each as f64);
        if count < due.max(2) {
            return;
        }
        self.variance_look = (j + 1, 2 * count);
        let share = VARIANCE_SHARE * 0.5f64.powi(j + 1) * self.request.delta;
        let kappa_of_mean = kappa / m + 3.0 * (1.0 - 1.0 / m);
        let t = ((kappa_of_mean + 3.0) * (1.0 / share).ln() / (count / 2) as f64).sqrt();
        if t < 1.0 {
            let bound = self.moments.variance() / (1.0 - t);
            self.variance = Some(self.variance.map_or(bound, |best| best.min(bound)));
        }
    }

    /// The normal quantile times the standard error: what most people would do.
    fn approximate_bound(&self, track: &Track) -> Option<f64> {
        let k = self.moments.count as f64;
        if k < track.planned {
            return None;
        }
        let mean = squared_norm(&self.moments.mean).sqrt();
        Some(mean + normal_quantile(-track.log) * (self.moments.variance() / k).sqrt())
    }

    /// Whether the plain mean is beyond the target by more than its noise could explain.
    fn looks_above(&self) -> bool {
        let k = self.moments.count as f64;
        let mean2 = squared_norm(&self.moments.mean) - self.moments.variance() / k;
        let error = (self.moments.variance() / k).sqrt();
        self.tracks.first().is_some_and(|track| k >= 20.0 * track.log)
            && mean2.max(0.0).sqrt() > self.request.target + 4.0 * error
    }
}

/// A sub-batch has at most this many samples, so that the count of all of them cannot overflow.
const MAX_SUB_BATCH: f64 = 4.0e18;

impl Request {
    fn check(&self, oracle: &dyn Oracle, x: &[f64]) -> Result<(), RequestError> {
        if x.len() != oracle.dim() {
            return Err(RequestError::Dimension { point: x.len(), oracle: oracle.dim() });
        }
        let number = |name, needs, got: f64, met: bool| {
            if met { Ok(()) } else { Err(RequestError::Number { name, needs, got }) }
        };
        let Self { target, delta, grade, guess, .. } = *self;
        number("target", "positive and finite", target, target > 0.0 && target.is_finite())?;
        number("delta", "strictly between 0 and 1", delta, delta > 0.0 && delta < 1.0)?;
        match grade {
            Grade::Variance(v) => number("variance", "finite, at least 0", v, v >= 0.0 && v.is_finite())?,
            Grade::Kurtosis(k) => number("kurtosis", "finite, at least 1", k, k >= 1.0 && k.is_finite())?,
            Grade::Approximate => {}
        }
        if let Some(guess) = guess {
            number("guess", "finite, at least 0", guess, guess >= 0.0 && guess.is_finite())?;
        }
        match x.iter().find(|x| !x.is_finite()) {
            Some(&x) => Err(RequestError::Number { name: "the point", needs: "finite", got: x }),
            None => Ok(()),
        }
    }

    fn affordable(&self) -> u64 {
        self.budget.map_or(u64::MAX, |budget| u64::try_from(budget).unwrap_or(u64::MAX))
    }
}

/// Why a certificate could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartCertificateError {
    /// The request makes no sense.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The oracle failed during the pilot.
    #[error(transparent)]
    Oracle(#[from] OracleError),
}

impl Moments {
    fn new(dim: usize) -> Self {
        Self { count: 0, mean: vec![0.0; dim], scatter: 0.0 }
    }

    fn add(&mut self, x: &[f64]) {
        self.count += 1;
        let before = squared_distance(x, &self.mean);
        let n = self.count as f64;
        self.mean.iter_mut().zip(x).for_each(|(mean, x)| *mean += (x - *mean) / n);
        self.scatter += before * (n - 1.0) / n;
    }

    /// The unbiased estimate of E|X - EX|^2.
    fn variance(&self) -> f64 {
        if self.count < 2 { 0.0 } else { self.scatter / (self.count as f64 - 1.0) }
    }
}

/// psi(t)/t with psi(t) = log(1 + t + t^2/2).
#[inline]
fn shrink(t: f64) -> f64 {
    // psi(t)/t = 1 - t^2/6 + ..
    if t < 1e-8 { 1.0 } else { libm::log1p(t + 0.5 * t * t) / t }
}

/// z with P(Z > z) = exp(log_tail), by bisection on the complementary error function.
fn normal_quantile(log_tail: f64) -> f64 {
    let tail = libm::exp(log_tail);
    let (mut low, mut high) = (-40.0, 40.0);
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        if 0.5 * libm::erfc(middle * std::f64::consts::FRAC_1_SQRT_2) > tail {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}
