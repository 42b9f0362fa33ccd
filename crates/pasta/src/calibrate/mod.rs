//! Calibration: what samples say about the constants of an oracle, before a run, and what they cannot say.
//!
//! Everything is measured at the start and along a few rays from it. The figures are for plans and warnings. None of
//! them is a bound: a maximum over a few directions lies below the maximum over all, and the gap Delta, the distance R,
//! mu and rho cannot be measured at all, since they speak of places where nobody has been.
//!
//! A sample is an address, so the same sample is asked for at many points. Noise that all points share drops out
//! of slopes and differences, which makes them sharp.
//!
//! ```
//! use pasta_opt::calibrate::{Calibration, Diagnosis, USUAL_BUDGET};
//! use pasta_opt::prelude::*;
//! use pasta_opt::problems::Quadratic;
//!
//! let noise = Noise { growth: 0.5, floor: 1.0, tail: Tail::Gaussian };
//! let objective = Box::new(Quadratic { spectrum: vec![4.0, 1.0] });
//! let oracle = Noisy::new(objective, noise, vec![1.0, 1.0])?;
//! let mut gate = Gate::new(oracle, 1);
//! let found = Calibration::measure(&mut gate, &[1.0, 1.0], USUAL_BUDGET, &mut |_| {})?;
//! assert!((found.smoothness.value - 4.0).abs() < 0.4);
//! assert!(found.rays.iter().all(|ray| ray.diagnosis == Diagnosis::Plausible));
//! assert!(found.cost.samples <= 32_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod curvature;
mod estimate;
mod meter;
mod plan;
mod ray;
mod tail;
mod trial;

pub use curvature::MeanSquare;
pub use estimate::Estimate;
pub use ray::{Diagnosis, Direction, Point, Ray, RayEnd, Trend};
use serde::Serialize;
pub use tail::TailShape;
pub use trial::Trial;

use crate::draws::Role;
use crate::gate::{Gate, Halt};
use crate::kernels::{along, minus, squared_distance, squared_norm};
use crate::ledger::Entry;
use crate::oracle::{About, Form};
use curvature::Local;
use estimate::BLOCKS;
use meter::{Gradients, Meter, normalise};
use plan::Sizes;
pub use plan::USUAL_BUDGET;
use ray::{Measured, Secant};
use trial::{Conditions, Curvatures};

/// Where a figure was found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Found {
    /// By small steps at the start.
    AtStart,
    /// Between two points of a ray.
    Between {
        /// The ray.
        direction: Direction,
        /// The distance of the nearer point from the start.
        from: f64,
        /// The distance of the farther one.
        to: f64,
    },
    /// At one point of a ray.
    At {
        /// The ray.
        direction: Direction,
        /// The distance from the start.
        radius: f64,
    },
    /// At a point that a short run came to.
    OnTheWay {
        /// The distance from the start.
        distance: f64,
    },
    /// Nowhere: no ray shows noise that grows.
    Nowhere,
}

/// L and Lbar are given to a run as this many times what was seen: they are the largest of a few places, and a step of
/// 1/(2 L) keeps what it promises as long as no place is more than twice as curved as those.
pub const SAFETY: f64 = 2.0;

/// Estimates of an oracle's constants around a start. For plans and warnings; no theorem holds because of them.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Calibration {
    /// |grad f(x0)|, zero where the noise hides it.
    pub gradient: f64,
    /// |grad f(x0)|/L: the unit of length of all steps and rays.
    pub unit: f64,
    /// E|g(x0) - grad f(x0)|^2. Good for sizing first batches.
    pub variance_at_start: Estimate,
    /// The tail of the noise at the start. b and B are lower estimates: what is too rare to be among the samples is not in them; the high ends of their
    /// intervals allow for a tail like this one.
    pub tail: TailShape,
    /// b of variance <= B^2 r^2 + b^2: the root of the variance at the start, or of the largest seen if B = 0.
    pub floor: Estimate,
    /// B from below: the largest sqrt(variance - b^2)/r on the rays, measured afresh there. Along other directions, or
    /// farther out, it may be larger; where a ray is worse than quadratic, no B is large enough. `None` if the
    /// samples show growth, but none that is well above the noise at the start.
    pub growth: Option<Estimate>,
    /// Where B was found.
    pub growth_found: Found,
    /// L from below: the largest curvature found. Elsewhere it may be larger; so the high end of its interval is at least
    /// [`SAFETY`] times its value, also where the sampling error is nothing but rounding.
    pub smoothness: Estimate,
    /// Where L was found.
    pub smoothness_found: Found,
    /// Lbar from below, likewise; `None` if the gradients of single samples jump, so that there is none.
    pub ms_smoothness: Option<Estimate>,
    /// Where Lbar was found.
    pub ms_smoothness_found: Found,
    /// Whether paired differences shrink with the step as PAGE and STORM need it.
    pub mean_square: MeanSquare,
    /// The smallest curvature seen at the start: an upper bound of the smallest there is, which may be very far below.
    /// Never mu.
    pub least_curvature: Estimate,
    /// The noise along rays from the start.
    pub rays: Vec<Ray>,
    /// A short run with L, Lbar and B as they are; `None` if no curvature was found.
    pub trial: Option<Trial>,
    /// What it cost. One sample at many points is one sample and many evaluations.
    pub cost: Entry,
}

/// Why a calibration failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CalibrationError {
    /// Too few samples.
    #[error("calibration: a budget of {given} samples is too small; {needed} are needed")]
    Budget {
        /// What was allowed.
        given: u64,
        /// The least that will do.
        needed: u64,
    },
    /// The start has another dimension than the oracle.
    #[error("the start has {start} coordinates, but the oracle has {oracle}")]
    Dimension {
        /// Coordinates of the start.
        start: usize,
        /// Coordinates of the oracle.
        oracle: usize,
    },
    /// There is nothing to measure.
    #[error("the oracle has no coordinates")]
    Empty,
    /// The start is no point.
    #[error("the start must be finite, but coordinate {coordinate} is {got}")]
    Start {
        /// Which coordinate, from 0.
        coordinate: usize,
        /// What it is.
        got: f64,
    },
    /// The gradients at the start, or a small step from it, are not finite or too large to be squared.
    #[error("the gradients at the start are not finite, or too large to be squared")]
    NotFinite,
    /// The gate gave no answer.
    #[error(transparent)]
    Halt(#[from] Halt),
}

/// The start and what is known of it.
#[derive(Debug)]
struct Start<'x> {
    x: &'x [f64],
    /// |x0|.
    length: f64,
    /// The mean gradient.
    mean: Vec<f64>,
    /// |grad f(x0)|, without the bias of a noisy length.
    gradient: f64,
    /// The smallest gradient that the noise would not hide.
    visible: f64,
    /// sqrt(E|g(x0)|^2): the size of one sample's gradient.
    sample: f64,
    variances: [f64; BLOCKS],
    tail: TailShape,
}

impl Calibration {
    /// Measures around `start` with at most `budget` samples: more of them sharpen every figure, and fewer than 6,400 are
    /// refused. `watch` hears of the samples drawn so far, some hundreds of times.
    pub fn measure(
        gate: &mut Gate,
        start: &[f64],
        budget: u64,
        watch: &mut dyn FnMut(u128),
    ) -> Result<Self, CalibrationError> {
        check(gate.about(), start)?;
        let sizes = Sizes::of(budget)?;
        let before = gate.ledger().of(Role::Calibration);
        let mut found = Self::measured(&mut Meter::new(gate, watch), start, &sizes)?;
        let Entry { samples, evaluations } = gate.ledger().of(Role::Calibration);
        found.cost =
            Entry { samples: samples - before.samples, evaluations: evaluations - before.evaluations };
        Ok(found)
    }

    fn measured(meter: &mut Meter<'_>, start: &[f64], sizes: &Sizes) -> Result<Self, CalibrationError> {
        let start = &Start::look(meter, start, sizes.start)?;
        let local = curvature::local(meter, start, sizes)?;
        let least_curvature = curvature::least(meter, start, &local, sizes)?;
        let mean_square = curvature::mean_square(meter, start, &local, sizes)?;
        let rays = directions(meter, start)
            .into_iter()
            .map(|(direction, v)| {
                let v = into_domain(meter, start, local.unit, v);
                ray::measure(meter, start, local.unit, (direction, v), sizes.ray)
            })
            .collect::<Result<Vec<_>, _>>()?;

        let variance_at_start = ray::variance(&start.variances);
        let (growth, growth_found) = growth(meter, start, &rays, sizes.growth)?;
        let floor = match growth_found {
            Found::Nowhere => largest_noise(variance_at_start, &rays),
            _ => variance_at_start,
        };
        let mut steepest = |slope, local| steepest(meter, start, &rays, slope, local, sizes.secant);
        let known = Curvatures {
            smoothness: steepest(Slope::Mean, local.smoothness)?,
            ms_smoothness: steepest(Slope::MeanSquare, local.ms_smoothness)?,
        };
        let Local { unit, .. } = local;
        let conditions = Conditions { unit, growth: growth.map_or(0.0, |growth| growth.value) };
        let (known, trial) = trial::run(meter, start, &conditions, known, sizes)?;
        let (smoothness, smoothness_found) = known.smoothness;
        // No mean of gradients changes faster than they do in mean square.
        let (ms_smoothness, ms_smoothness_found) = if known.ms_smoothness.0.value < smoothness.value {
            known.smoothness
        } else {
            known.ms_smoothness
        };
        let tail = start.tail;
        Ok(Self {
            gradient: start.gradient,
            unit,
            variance_at_start: tail.widen(variance_at_start, 1.0),
            tail,
            floor: tail.widen(floor.map(f64::sqrt), 0.5),
            growth: growth.map(|growth| tail.widen(growth, 0.5)),
            growth_found,
            smoothness: from_below(smoothness),
            smoothness_found,
            ms_smoothness: (!mean_square.jumps()).then_some(from_below(ms_smoothness)),
            ms_smoothness_found,
            mean_square,
            least_curvature,
            rays: rays.into_iter().map(|measured| measured.ray).collect(),
            trial,
            cost: Entry::default(),
        })
    }

    /// Whether some ray shows noise that grows faster than BG-0 allows.
    pub fn breaks_bg0(&self) -> bool {
        self.rays.iter().any(|ray| ray.diagnosis == Diagnosis::WorseThanQuadratic)
    }
}

fn check(about: &About, start: &[f64]) -> Result<(), CalibrationError> {
    if start.len() != about.dim {
        return Err(CalibrationError::Dimension { start: start.len(), oracle: about.dim });
    }
    if start.is_empty() {
        return Err(CalibrationError::Empty);
    }
    match start.iter().enumerate().find(|(_, x)| !x.is_finite()) {
        Some((coordinate, &got)) => Err(CalibrationError::Start { coordinate, got }),
        None => Ok(()),
    }
}

impl<'x> Start<'x> {
    fn look(meter: &mut Meter<'_>, x: &'x [f64], per_block: u64) -> Result<Self, CalibrationError> {
        let mut blocks = vec![Gradients::new(x.len()); BLOCKS];
        let samples = meter.draw(per_block);
        meter.each(samples, Form::Sums, &[x], &mut blocks, Gradients::add)?;
        let mut mean = vec![0.0; x.len()];
        for block in &blocks {
            mean.iter_mut().zip(block.mean()).for_each(|(sum, g)| *sum += g / BLOCKS as f64);
        }
        let variances: [f64; BLOCKS] = std::array::from_fn(|k| blocks[k].variance());
        let variance = variances.iter().sum::<f64>() / BLOCKS as f64;
        // The same samples again, now that their mean is known.
        let mut squares = vec![Vec::new(); BLOCKS];
        meter.each(samples, Form::Sums, &[x], &mut squares, |squares, g| {
            squares.push(squared_distance(g, &mean));
        })?;
        let tail = TailShape::of(squares.concat());
        // The variance of the mean: so much of |mean|^2 is noise.
        let noise2 = variance / (BLOCKS as u64 * per_block) as f64;
        let mean2 = squared_norm(&mean);
        let start = Self {
            x,
            length: squared_norm(x).sqrt(),
            gradient: (mean2 - noise2).max(0.0).sqrt(),
            visible: noise2.sqrt(),
            sample: (mean2 + variance).sqrt(),
            mean,
            variances,
            tail,
        };
        finite(&[start.sample, start.length])?;
        Ok(start)
    }

    /// Another point, with the scale of the start.
    fn moved_to<'y>(&self, x: &'y [f64]) -> Start<'y> {
        let length = squared_norm(x).sqrt();
        Start { x, length, mean: self.mean.clone(), ..*self }
    }

    /// |g|/L; a length of the order of the start where there is no gradient or no curvature.
    fn unit(&self, curvature: f64) -> f64 {
        // Differences of single gradients over .001 of the unit must not drown in their rounding.
        let gradient = self.gradient.max(self.visible).max(1e-4 * self.sample);
        let scale = self.length.max(1.0);
        let unit = gradient / curvature;
        if unit > 0.0 && unit.is_finite() { unit.clamp(1e-12 * scale, 1e12 * scale) } else { scale }
    }

    /// A step that the rounding of x0 does not spoil.
    fn step(&self, wanted: f64) -> f64 {
        wanted.max(1e-7 * self.length)
    }
}

/// The largest of a few: the truth may be larger, whatever the samples say of these.
fn from_below(seen: Estimate) -> Estimate {
    Estimate { high: seen.high.max(SAFETY * seen.value), ..seen }
}

/// At the start, and a small step from it, everything must be a number.
fn finite(values: &[f64]) -> Result<(), CalibrationError> {
    if values.iter().all(|v| v.is_finite()) { Ok(()) } else { Err(CalibrationError::NotFinite) }
}

/// Against the gradient and three random directions; in one dimension there are only two.
fn directions(meter: &Meter<'_>, start: &Start<'_>) -> Vec<(Direction, Vec<f64>)> {
    /// Numbers of random directions that the search for curvature does not use.
    const FIRST: u64 = 100;
    let mut descent: Vec<f64> = start.mean.iter().map(|g| -g).collect();
    if normalise(&mut descent) == 0.0 {
        descent = meter.direction(FIRST);
    }
    if start.x.len() == 1 {
        let ascent = vec![-descent[0]];
        return vec![(Direction::Descent, descent), (Direction::Ascent, ascent)];
    }
    let random = (1..plan::RAYS).map(|i| (Direction::Random(i), meter.direction(FIRST + i)));
    [(Direction::Descent, descent)].into_iter().chain(random).collect()
}

/// The direction itself; where a term leaves it no room, that of the point of the domain which is nearest to a unit along it.
fn into_domain(meter: &Meter<'_>, start: &Start<'_>, unit: f64, v: Vec<f64>) -> Vec<f64> {
    let there = along(start.x, unit, &v);
    if !meter.is_outside(&there) {
        return v;
    }
    let mut way = minus(&meter.inside(there), start.x);
    if normalise(&mut way) > 0.0 { way } else { v }
}

/// B where (V - b^2)/r^2 is largest, from samples that did not choose the place.
fn growth(
    meter: &mut Meter<'_>,
    start: &Start<'_>,
    rays: &[Measured],
    per_block: u64,
) -> Result<(Option<Estimate>, Found), CalibrationError> {
    if rays.iter().all(|measured| measured.ray.diagnosis == Diagnosis::Bounded) {
        return Ok((Some(Estimate::ZERO), Found::Nowhere));
    }
    let mut largest: Option<(f64, &Measured, f64)> = None;
    for measured in rays {
        let [at_start, points @ ..] = measured.ray.points.as_slice() else { continue };
        let at_start = at_start.variance.value;
        for point in points {
            let variance = point.variance.value;
            let growth2 = (variance - at_start) / (point.radius * point.radius);
            if variance > 0.0
                && variance >= ray::WELL_ABOVE * at_start
                && largest.is_none_or(|(best, ..)| growth2 > best)
            {
                largest = Some((growth2, measured, point.radius));
            }
        }
    }
    let Some((_, measured, radius)) = largest else { return Ok((None, Found::AtStart)) };
    let point = meter.inside(along(start.x, radius, &measured.direction));
    let mut blocks = vec![[Gradients::new(start.x.len()), Gradients::new(start.x.len())]; BLOCKS];
    let samples = meter.draw(per_block);
    meter.each(samples, Form::Sums, &[start.x, &point], &mut blocks, |[at_start, there], rows| {
        let (near, far) = rows.split_at(rows.len() / 2);
        at_start.add(near);
        there.add(far);
    })?;
    let rows: Vec<_> =
        blocks.iter().map(|[at_start, there]| [there.variance() - at_start.variance()]).collect();
    let growth = Estimate::positive(&rows, |[rise]| rise.sqrt() / radius);
    // Silence where there was noise: its events are too rare for these samples.
    let growth = Some(growth).filter(|growth| growth.value > 0.0);
    Ok((growth, Found::At { direction: measured.ray.direction, radius }))
}

/// The largest variance seen; that of the start, which is known best, where nothing stands out.
fn largest_noise(at_start: Estimate, rays: &[Measured]) -> Estimate {
    let points = rays.iter().flat_map(|measured| &measured.ray.points).map(|point| point.variance);
    points.filter(|v| v.low > at_start.high).max_by(|a, b| a.value.total_cmp(&b.value)).unwrap_or(at_start)
}

/// L is the slope of the mean gradient, Lbar that of single ones in mean square.
#[derive(Debug, Clone, Copy)]
enum Slope {
    Mean,
    MeanSquare,
}

impl Slope {
    fn of(self, secant: &Secant) -> Estimate {
        match self {
            Self::Mean => secant.smoothness,
            Self::MeanSquare => secant.ms_smoothness,
        }
    }

    /// From the means that [`curvature::pairs`] gives.
    fn of_pairs(self, [mean, square]: [f64; 2]) -> f64 {
        match self {
            Self::Mean => mean,
            Self::MeanSquare => square.sqrt(),
        }
    }
}

/// The local figure, or that of a secant if one stands out and stays larger on samples that did not choose it.
fn steepest(
    meter: &mut Meter<'_>,
    start: &Start<'_>,
    rays: &[Measured],
    slope: Slope,
    local: Estimate,
    per_block: u64,
) -> Result<(Estimate, Found), CalibrationError> {
    let secants =
        rays.iter().flat_map(|measured| measured.secants.iter().map(move |secant| (measured, secant)));
    let steepest = secants
        .filter(|(_, secant)| slope.of(secant).low > local.high)
        .max_by(|(_, a), (_, b)| slope.of(a).low.total_cmp(&slope.of(b).low));
    let Some((measured, secant)) = steepest else { return Ok((local, Found::AtStart)) };
    let [near, far] =
        [secant.from, secant.to].map(|radius| meter.inside(along(start.x, radius, &measured.direction)));
    let samples = meter.draw(per_block);
    let rows = curvature::pairs(meter, samples, &far, &near, &secant.towards)?;
    let fresh = Estimate::positive(&rows, |means| slope.of_pairs(means));
    let Secant { from, to, .. } = *secant;
    let between = Found::Between { direction: measured.ray.direction, from, to };
    Ok(if fresh.value > local.value && fresh.value.is_finite() {
        (fresh, between)
    } else {
        (local, Found::AtStart)
    })
}
