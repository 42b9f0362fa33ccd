//! Noise along a ray from the start, the same samples at all of its points.

use std::fmt;

use serde::Serialize;

use super::estimate::{BLOCKS, Estimate};
use super::meter::{Gradients, Meter, Samples, normalise};
use super::{CalibrationError, Start, finite};
use crate::kernels::{along, dot, minus, squared_distance, squared_norm};
use crate::oracle::Form;

/// Points at unit 4^i, i = 0, 1, ..: at most so many.
const FARTHEST: i32 = 12;
/// The ray ends where the noise is so many times that of the start, and was well above it one point before.
const FAR_ABOVE: f64 = 1000.0;
pub(super) const WELL_ABOVE: f64 = 10.0;
/// With no noise at the start every noise is far above it: at least so many points then show a slope.
const FEWEST: usize = 3;

/// Which way a ray goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Against the mean gradient, the way a run will go.
    Descent,
    /// Along the mean gradient: in one dimension the only other way.
    Ascent,
    /// A random direction, by its number.
    Random(u64),
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Descent => f.write_str("against the gradient"),
            Self::Ascent => f.write_str("along the gradient"),
            Self::Random(number) => write!(f, "random {number}"),
        }
    }
}

/// The noise at one distance from the start.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// |x - x0|.
    pub radius: f64,
    /// E|g(x) - grad f(x)|^2.
    pub variance: Estimate,
}

/// Why a ray ends where it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RayEnd {
    /// The noise is a thousand times that of the start.
    NoiseGrew,
    /// As far as rays go: four million units.
    Farthest,
    /// The next gradients are no finite numbers, or their squares are none.
    NotFinite,
}

/// What a ray says about BG-0: is there a B with variance at most B^2 |x - x0|^2 + b^2?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Diagnosis {
    /// The noise does not grow along this ray: B = 0 would do here.
    Bounded,
    /// The variance grows about like the square of the distance or slower: some B does, as far as the ray goes.
    Plausible,
    /// The variance grows faster than the square of the distance: no B does, and recipes that rest on BG-0 promise
    /// nothing once a run goes far in this direction.
    WorseThanQuadratic,
    /// The samples do not decide.
    CannotTell,
}

impl Diagnosis {
    /// From this exponent on a finite ray of a truly quadratic variance is no excuse: linear terms that may still be
    /// felt where rays end make at most 2.2 of 2.
    const TOO_FAST: f64 = 2.3;
    /// Up to here growth is not told from none.
    const HARDLY: f64 = 0.3;

    fn of(exponent: Option<Estimate>, end: RayEnd) -> Self {
        match exponent {
            Some(Estimate { value, low, .. }) if value > Self::TOO_FAST && low > 2.0 => {
                Self::WorseThanQuadratic
            }
            Some(Estimate { high, .. }) if high <= Self::HARDLY && end == RayEnd::Farthest => Self::Bounded,
            Some(Estimate { value, high, .. }) if value <= Self::TOO_FAST && high <= 3.0 => Self::Plausible,
            _ => Self::CannotTell,
        }
    }
}

/// A ray from the start.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ray {
    /// Which way.
    pub direction: Direction,
    /// The start, and the points at growing distances.
    pub points: Vec<Point>,
    /// Why there are no more.
    pub end: RayEnd,
    /// The power of the distance with which the variance grows at the last two points (less its value at the start where
    /// both are well above it); `None` if there are no two points with noise.
    pub exponent: Option<Estimate>,
    /// What that means.
    pub diagnosis: Diagnosis,
}

/// A ray with what is needed to measure again along it.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) ray: Ray,
    pub(super) direction: Vec<f64>,
    /// Between each point and the one before it.
    pub(super) secants: Vec<Secant>,
}

/// How the gradient changes between two neighbouring points of a ray.
#[derive(Debug)]
pub(super) struct Secant {
    pub(super) from: f64,
    pub(super) to: f64,
    /// |E difference|/distance, without the bias of a noisy length.
    pub(super) smoothness: Estimate,
    /// sqrt(E|difference|^2)/distance.
    pub(super) ms_smoothness: Estimate,
    /// Where the mean difference points.
    pub(super) towards: Vec<f64>,
}

struct Block {
    here: Gradients,
    /// Sum of g(here) - g(before).
    difference: Vec<f64>,
    /// Sum of |g(here) - g(before)|^2.
    square: f64,
}

pub(super) fn measure(
    meter: &mut Meter<'_>,
    start: &Start<'_>,
    unit: f64,
    (direction, v): (Direction, Vec<f64>),
    per_block: u64,
) -> Result<Measured, CalibrationError> {
    let samples = meter.draw(per_block);
    let (at_start, _) = look(meter, samples, per_block, start.x, None)?;
    finite(&at_start)?;
    let mut variances = vec![at_start];
    let mut radii = vec![0.0];
    let mut secants = Vec::new();
    let mut end = RayEnd::Farthest;
    let mut before = start.x.to_vec();
    for i in 0..FARTHEST {
        let point = along(start.x, unit * 4f64.powi(i), &v);
        // As it is after rounding.
        let radius = squared_distance(&point, start.x).sqrt();
        let (rows, secant) = look(meter, samples, per_block, &point, Some(&before))?;
        let secant = secant.filter(|s| s.smoothness.high.is_finite() && s.ms_smoothness.high.is_finite());
        if !(rows.iter().all(|v| v.is_finite()) && radius.is_finite()) {
            end = RayEnd::NotFinite;
            break;
        }
        let from = radii[radii.len() - 1];
        secants.extend(secant.map(|secant| Secant { from, to: radius, ..secant }));
        variances.push(rows);
        radii.push(radius);
        before = point;
        if grown(&variances) {
            end = RayEnd::NoiseGrew;
            break;
        }
    }
    let exponent = exponent(&variances, &radii);
    // No noise at the far end, or none at all, is noise that does not grow.
    let silent = end == RayEnd::Farthest && variances.last().is_some_and(|rows| mean(rows) == 0.0);
    let diagnosis = if silent { Diagnosis::Bounded } else { Diagnosis::of(exponent, end) };
    let points =
        radii.iter().zip(&variances).map(|(&radius, rows)| Point { radius, variance: variance(rows) });
    let ray = Ray { direction, points: points.collect(), end, exponent, diagnosis };
    Ok(Measured { ray, direction: v, secants })
}

/// The variance at x, block by block, and the secant to the point before.
fn look(
    meter: &mut Meter<'_>,
    samples: Samples,
    per_block: u64,
    x: &[f64],
    before: Option<&[f64]>,
) -> Result<([f64; BLOCKS], Option<Secant>), CalibrationError> {
    let d = x.len();
    let block = || Block { here: Gradients::new(d), difference: vec![0.0; d], square: 0.0 };
    let mut blocks: Vec<_> = (0..BLOCKS).map(|_| block()).collect();
    let points: Vec<&[f64]> = [x].into_iter().chain(before).collect();
    meter.each(samples, Form::Sums, &points, &mut blocks, |block, rows| {
        let (here, before) = rows.split_at(d);
        block.here.add(here);
        if !before.is_empty() {
            block.square += squared_distance(here, before);
            let difference = block.difference.iter_mut().zip(here).zip(before);
            difference.for_each(|((sum, here), before)| *sum += here - before);
        }
    })?;
    let rows = std::array::from_fn(|k| blocks[k].here.variance());
    let secant =
        before.map(|before| secant(&blocks, squared_norm(&minus(x, before)).sqrt(), per_block as f64));
    Ok((rows, secant))
}

fn secant(blocks: &[Block], length: f64, per_block: f64) -> Secant {
    let mut towards = vec![0.0; blocks[0].difference.len()];
    for block in blocks {
        towards.iter_mut().zip(&block.difference).for_each(|(sum, d)| *sum += d);
    }
    // |mean|^2 = (sum over pairs of blocks of their products)/(number of pairs): blocks are independent, so that their
    // noise does not add to the length as it does in the square of one mean.
    let own: Vec<[f64; 2]> =
        blocks.iter().map(|b| [dot(&b.difference, &towards), squared_norm(&b.difference)]).collect();
    let n = blocks.len() as f64;
    let scale = per_block * per_block * length * length;
    let total: f64 = own.iter().map(|[product, _]| product).sum();
    let squares: f64 = own.iter().map(|[_, square]| square).sum();
    let value = (total - squares) / (n * (n - 1.0) * scale);
    let without = |[product, square]: &[f64; 2]| {
        (total - 2.0 * product + square - (squares - square)) / ((n - 1.0) * (n - 2.0) * scale)
    };
    // Pseudo-values, whose mean and spread are those of the jackknife.
    let rows: Vec<_> = own.iter().map(|row| [n * value - (n - 1.0) * without(row)]).collect();
    let root = |x: f64| x.max(0.0).sqrt();
    let smoothness = Estimate::of(&rows, |[square]| square).map(root);
    let rows: Vec<_> = blocks.iter().map(|b| [b.square / (per_block * length * length)]).collect();
    let ms_smoothness = Estimate::positive(&rows, |[square]| square.sqrt());
    normalise(&mut towards);
    Secant { from: 0.0, to: 0.0, smoothness, ms_smoothness, towards }
}

pub(super) fn variance(rows: &[f64; BLOCKS]) -> Estimate {
    Estimate::positive(&rows.map(|v| [v]), |[v]| v)
}

fn mean(rows: &[f64; BLOCKS]) -> f64 {
    rows.iter().sum::<f64>() / BLOCKS as f64
}

fn grown(variances: &[[f64; BLOCKS]]) -> bool {
    let at_start = mean(&variances[0]);
    let above = |rows: &[f64; BLOCKS], factor: f64| mean(rows) > 0.0 && mean(rows) >= factor * at_start;
    match variances {
        [_, .., before, last] => {
            variances.len() > FEWEST && above(before, WELL_ABOVE) && above(last, FAR_ABOVE)
        }
        _ => false,
    }
}

fn exponent(variances: &[[f64; BLOCKS]], radii: &[f64]) -> Option<Estimate> {
    let ([start, .., before, last], [_, .., near, far]) = (variances, radii) else { return None };
    let rows: [[f64; 3]; BLOCKS] = std::array::from_fn(|k| [start[k], before[k], last[k]]);
    let span = (far / near).ln();
    let above = |rows: &[f64; BLOCKS]| mean(rows) >= WELL_ABOVE * mean(start);
    if mean(before) == 0.0 || mean(last) == 0.0 {
        None
    } else if above(before) && above(last) {
        Some(Estimate::of(&rows, |[start, before, last]| ((last - start) / (before - start)).ln() / span))
    } else {
        Some(Estimate::of(&rows, |[_, before, last]| (last / before).ln() / span))
    }
}
