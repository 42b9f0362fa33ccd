//! BG-0 noise around an exact objective: g(x, xi) = grad f(x) + s(x) u, s(x)^2 = B^2 |x - x0|^2 + b^2.
//!
//! u has mean zero and E|u|^2 = 1, so the variance meets BG-0 with equality. u does not depend on x, so with
//! the same sample at two points E|g(x) - g(y)|^2 <= (L^2 + B^2) |x - y|^2: mean-square smooth.
//!
//! [`Noisy::with_exponent`] replaces the square of the distance by another power, for noise that breaks BG-0.

use std::fmt;

use rand_distr::StudentT;
use serde::{Deserialize, Serialize};

use super::{About, Answer, Batch, Charge, Draw, Form, Oracle, OracleError, Request, Source};
use crate::draws::Stream;
use crate::kernels::squared_distance;
use crate::objective::Objective;

/// The law of u. All have finite variance; all but the first are there for honest tests.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tail {
    /// Independent normal coordinates. The sum of n is one normal: an exact batch at the cost of one sample.
    Gaussian,
    /// Independent Student t coordinates; `dof` above 2.
    StudentT {
        /// Degrees of freedom.
        dof: f64,
    },
    /// Independent centred lognormal coordinates: skewed.
    Lognormal {
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
    /// One event of this probability carries all the noise, in the direction (1, .., 1). The sum of n needs
    /// only the number of events, a Binomial: an exact batch.
    TwoPoint {
        /// Probability of the event, in (0, 1).
        probability: f64,
    },
}

impl Tail {
    /// E|u|^4/(E|u|^2)^2 of the noise u in d dimensions; infinite if there is no fourth moment.
    ///
    /// If the coordinates are independent with variance 1/d and kurtosis k each, then E|u|^2 = 1 and
    /// E|u|^4 = d k/d^2 + d (d - 1)/d^2, which is (k + d - 1)/d. An event of probability p with a fixed direction has
    /// u = h (z/p - 1), z its indicator. That is the fourth central moment of z, p (1 - p)(1 - 3p (1 - p)), over the
    /// square of its variance p (1 - p), in any dimension.
    pub fn kurtosis(self, dimension: usize) -> f64 {
        let of_coordinate = match self {
            Self::TwoPoint { probability: p } => return 1.0 / (p * (1.0 - p)) - 3.0,
            Self::Gaussian => 3.0,
            Self::StudentT { dof } if dof > 4.0 => 3.0 + 6.0 / (dof - 4.0),
            Self::StudentT { .. } => f64::INFINITY,
            Self::Lognormal { sigma } => {
                let power = |n: f64| libm::exp(n * sigma * sigma);
                power(4.0) + 2.0 * power(3.0) + 3.0 * power(2.0) - 3.0
            }
        };
        let d = dimension as f64;
        (of_coordinate + d - 1.0) / d
    }
}

impl fmt::Display for Tail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gaussian => f.write_str("gaussian"),
            Self::StudentT { dof } => write!(f, "student-t (dof {dof})"),
            Self::Lognormal { sigma } => write!(f, "lognormal (sigma {sigma})"),
            Self::TwoPoint { probability } => write!(f, "two-point (probability {probability})"),
        }
    }
}

/// Noise whose variance grows with the distance from the start.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// B: how fast the standard deviation grows with the distance.
    pub growth: f64,
    /// b: the standard deviation at the start.
    pub floor: f64,
    /// The law of the unit noise.
    pub tail: Tail,
}

/// How a batch is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchMode {
    /// The whole sum from its own law where there is one (Gaussian, two-point), sample by sample elsewhere.
    Exact,
    /// Sample by sample always: what the exact batches are checked against.
    OneByOne,
}

/// An exact objective behind BG-0 noise.
///
/// ```
/// use pasta_opt::draws::Role;
/// use pasta_opt::gate::Gate;
/// use pasta_opt::oracle::{Answer, Noise, Noisy, Request, Tail};
/// use pasta_opt::problems::SineBowl;
///
/// let noise = Noise { growth: 9.0, floor: 1.0, tail: Tail::Gaussian };
/// let oracle = Noisy::new(Box::new(SineBowl { dimension: 1 }), noise, vec![1.2])?;
/// let mut gate = Gate::new(oracle, 7);
/// let mut sum = [0.0];
/// let n = 1_000_000_000_000;
/// gate.ask(Request::sums(gate.batch(Role::Large, 0, n), &[&[1.2]]), &mut Answer::new(&mut sum))?;
/// // The true gradient is 1.2 + sin 2.4, and the mean of 10^12 samples has standard deviation 10^-6.
/// assert!((sum[0] / n as f64 - (1.2 + 2.4f64.sin())).abs() < 5e-6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Noisy {
    objective: Box<dyn Objective>,
    noise: Noise,
    start: Vec<f64>,
    exponent: f64,
    about: About,
    mode: BatchMode,
}

/// Samples added one after another where a batch is drawn sample by sample.
const BLOCK: u64 = 64;

impl Noisy {
    /// The objective behind noise that grows with the distance from `start`.
    pub fn new(objective: Box<dyn Objective>, noise: Noise, start: Vec<f64>) -> Result<Self, NoiseError> {
        if start.len() != objective.dim() {
            return Err(NoiseError::Dimension { start: start.len(), objective: objective.dim() });
        }
        noise.check()?;
        Ok(Self::described(objective, noise, start, 2.0))
    }

    /// The same with a variance of B^2 |x - x0|^exponent + b^2. BG-0 holds with these B and b only for 2, and above 2 it
    /// holds with none: what diagnoses of the noise are tried on. Finite and at least 0.
    pub fn with_exponent(self, exponent: f64) -> Result<Self, NoiseError> {
        check_constant("exponent", exponent)?;
        let Self { objective, noise, start, mode, .. } = self;
        Ok(Self::described(objective, noise, start, exponent).with_mode(mode))
    }

    /// The same with batches that are drawn in this way; [`BatchMode::Exact`] unless changed.
    #[must_use]
    pub fn with_mode(mut self, mode: BatchMode) -> Self {
        let at_once = matches!(self.noise.tail, Tail::Gaussian | Tail::TwoPoint { .. });
        self.about.additive = mode == BatchMode::OneByOne || !at_once;
        Self { mode, ..self }
    }

    fn described(objective: Box<dyn Objective>, noise: Noise, start: Vec<f64>, exponent: f64) -> Self {
        let identity = identity(&*objective, noise, &start, exponent);
        let about = About { source: Source::Formula, trusted: true, ..About::stream(start.len(), identity) };
        let mode = BatchMode::Exact;
        Self { objective, noise, start, exponent, about, mode }.with_mode(mode)
    }

    /// The power of the distance with which the variance grows; 2 unless changed.
    pub fn exponent(&self) -> f64 {
        self.exponent
    }

    /// The objective without its noise.
    pub fn objective(&self) -> &dyn Objective {
        &*self.objective
    }

    /// The noise.
    pub fn noise(&self) -> Noise {
        self.noise
    }

    /// x0, where the noise is smallest.
    pub fn start(&self) -> &[f64] {
        &self.start
    }

    /// E|g(x, xi) - grad f(x)|^2.
    pub fn variance(&self, x: &[f64]) -> f64 {
        self.deviation(x).powi(2)
    }

    /// s(x), the standard deviation of a sample at x.
    #[inline]
    fn deviation(&self, x: &[f64]) -> f64 {
        let Noise { growth, floor, .. } = self.noise;
        let distance2 = squared_distance(x, &self.start);
        let grown = if self.exponent == 2.0 { distance2 } else { libm::pow(distance2, 0.5 * self.exponent) };
        (growth * growth * grown + floor * floor).sqrt()
    }

    /// Turns the expectation of one sample, in `out`, into the sum of the batch: n times that, plus `scale`
    /// times the sum of the batch's u, which `units` keeps from one row to the next where it is drawn one by one.
    #[inline]
    fn sum_around(
        &self,
        scale: f64,
        batch: &Batch,
        request: &Request<'_>,
        units: &mut Vec<f64>,
        out: &mut [f64],
    ) -> Result<(), OracleError> {
        let count = batch.count();
        let n = count as f64;
        let per_coordinate = scale / (out.len() as f64).sqrt();
        match (self.mode, self.noise.tail) {
            _ if scale == 0.0 => out.iter_mut().for_each(|o| *o *= n),
            (BatchMode::Exact, Tail::Gaussian) => {
                // A sum of n independent normals is sqrt(n) times one.
                let spread = per_coordinate * n.sqrt();
                let mut xi = batch.whole();
                out.iter_mut().for_each(|o| *o = n * *o + spread * xi.normal());
            }
            (BatchMode::Exact, Tail::TwoPoint { probability }) => {
                let events = batch.whole().binomial(count, probability);
                let term = per_coordinate * two_point_sum(events, count, probability);
                out.iter_mut().for_each(|o| *o = n * *o + term);
            }
            (_, tail) => {
                if units.is_empty() {
                    *units = tail.sum_of_units(batch, request, out.len())?;
                }
                out.iter_mut().zip(units).for_each(|(o, u)| *o = n * *o + per_coordinate * *u);
            }
        }
        Ok(())
    }
}

impl Oracle for Noisy {
    fn about(&self) -> &About {
        &self.about
    }

    #[inline]
    fn answer(&self, request: &Request<'_>, answer: &mut Answer<'_>) -> Result<Charge, OracleError> {
        let mut units = Vec::new();
        // One point is one row: dividing the answer into rows costs a small step a tenth of its time.
        if let (Draw::Batch(batch), Form::Sums, [x]) = (&request.draw, request.form, request.points) {
            self.objective.gradient(x, answer.gradients);
            self.sum_around(self.deviation(x), batch, request, &mut units, answer.gradients)?;
            return Ok(request.usual_price(&self.about));
        }
        let rows = answer.gradients.chunks_mut(self.start.len().max(1));
        match (&request.draw, request.form) {
            (Draw::Batch(batch), Form::Sums) => {
                for (x, row) in request.points.iter().zip(rows) {
                    self.objective.gradient(x, row);
                    self.sum_around(self.deviation(x), batch, request, &mut units, row)?;
                }
            }
            (draw, Form::Differences) => {
                let base = request.base();
                let mut at_base = vec![0.0; base.len()];
                self.objective.gradient(base, &mut at_base);
                for (x, row) in request.points.iter().zip(rows) {
                    self.objective.gradient(x, row);
                    row.iter_mut().zip(&at_base).for_each(|(o, y)| *o -= y);
                    if let Draw::Batch(batch) = draw {
                        let scale = self.deviation(x) - self.deviation(base);
                        self.sum_around(scale, batch, request, &mut units, row)?;
                    }
                }
            }
            (Draw::Everything(_), Form::Sums) => {
                request.points.iter().zip(rows).for_each(|(x, row)| self.objective.gradient(x, row));
            }
        }
        Ok(request.usual_price(&self.about))
    }
}

fn identity(objective: &dyn Objective, noise: Noise, start: &[f64], exponent: f64) -> String {
    let Noise { growth, floor, tail } = noise;
    let mut checksum = crc32fast::Hasher::new();
    start.iter().for_each(|x| checksum.update(&x.to_le_bytes()));
    let exponent = match exponent {
        2.0 => String::new(),
        exponent => format!(", exponent {exponent}"),
    };
    format!(
        "{} with {tail} noise of growth {growth}{exponent} and floor {floor} around start {:08x}",
        objective.identity(),
        checksum.finalize()
    )
}

fn check_constant(name: &'static str, value: f64) -> Result<(), NoiseError> {
    if value.is_finite() && value >= 0.0 {
        Ok(())
    } else {
        Err(NoiseError::Constant { name, needs: "a finite number, at least 0", got: value })
    }
}

impl Noise {
    fn check(&self) -> Result<(), NoiseError> {
        check_constant("growth", self.growth)?;
        check_constant("floor", self.floor)?;
        let (name, needs, got, met) = match self.tail {
            Tail::Gaussian => return Ok(()),
            Tail::StudentT { dof } => {
                ("dof", "more than 2 and finite (for a finite variance)", dof, dof > 2.0 && dof.is_finite())
            }
            Tail::Lognormal { sigma } => {
                ("sigma", "in (0, 5] (beyond, doubles lose the law)", sigma, sigma > 0.0 && sigma <= 5.0)
            }
            Tail::TwoPoint { probability: p } => {
                ("probability", "strictly between 0 and 1", p, p > 0.0 && p < 1.0)
            }
        };
        if met { Ok(()) } else { Err(NoiseError::Constant { name, needs, got }) }
    }
}

impl Tail {
    /// The sum of the batch's u, times the square root of the dimension.
    fn sum_of_units(
        self,
        batch: &Batch,
        request: &Request<'_>,
        dimension: usize,
    ) -> Result<Vec<f64>, OracleError> {
        let mut units = vec![0.0; dimension];
        request.sum_over(batch, BLOCK, &mut units, &|samples, units: &mut [f64]| {
            samples.into_iter().try_for_each(|i| {
                request.interrupted()?;
                self.add_unit(&mut batch.sample(i), units);
                Ok(())
            })
        })?;
        Ok(units)
    }

    /// Adds one draw of u, times the square root of the dimension, to `out`.
    fn add_unit(self, xi: &mut Stream, out: &mut [f64]) {
        match self {
            Self::Gaussian => out.iter_mut().for_each(|o| *o += xi.normal()),
            Self::StudentT { dof } => {
                let law = StudentT::new(dof).expect("dof is checked when the oracle is made");
                let scale = ((dof - 2.0) / dof).sqrt();
                out.iter_mut().for_each(|o| *o += scale * xi.sample(&law));
            }
            Self::Lognormal { sigma } => {
                // E e^{sigma Z} = e^{sigma^2/2}, Var = e^{sigma^2} (e^{sigma^2} - 1).
                let s2 = sigma * sigma;
                let mean = libm::exp(0.5 * s2);
                let scale = 1.0 / (libm::exp(s2) * libm::expm1(s2)).sqrt();
                out.iter_mut().for_each(|o| *o += scale * (libm::exp(sigma * xi.normal()) - mean));
            }
            Self::TwoPoint { probability } => {
                let events = u64::from(xi.bernoulli(probability));
                let term = two_point_sum(events, 1, probability);
                out.iter_mut().for_each(|o| *o += term);
            }
        }
    }
}

/// The sum over n samples of (z/p - 1) sqrt(p/(1-p)), z the indicator of the event.
fn two_point_sum(events: u64, n: u64, p: f64) -> f64 {
    (events as f64 / p - n as f64) * (p / (1.0 - p)).sqrt()
}

/// Why a noise was refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NoiseError {
    /// A constant out of its range.
    #[error("noise: {name} must be {needs}, but is {got}")]
    Constant {
        /// The constant.
        name: &'static str,
        /// Its range.
        needs: &'static str,
        /// What it is.
        got: f64,
    },
    /// The start has another dimension than the objective.
    #[error("the start has {start} coordinates, but the objective has {objective}")]
    Dimension {
        /// Coordinates of the start.
        start: usize,
        /// Coordinates of the objective.
        objective: usize,
    },
}
