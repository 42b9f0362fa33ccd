//! Noise along a ray from the start, the same samples at all of its points.

use std::fmt;

use serde::Serialize;

use super::estimate::{BLOCKS, Estimate};
use super::meter::{Gradients, Meter, Samples, normalise};
use super::{CalibrationError, Start, finite};
use crate::kernels::{along, dot, minus, squared_distance, squared_norm};
use crate::oracle::Form;

/// Points at unit 4^i: i from here, so that there are some between the start and where a run will go, ..
const NEAREST: i32 = -3;
/// .. to here, and on to there if the noise has grown but its slope has not settled.
const FARTHEST: i32 = 11;
const BEYOND: i32 = 15;
/// The noise has grown where it is so many times that of the start. Only where it is well above it is its slope looked at.
const FAR_ABOVE: f64 = 1000.0;
pub(super) const WELL_ABOVE: f64 = 10.0;
/// A slope has settled when so many neighbouring ones, over a factor of 4^4 = 256 of the distance, agree to this much.
/// A transition, from quiet to noisy or from one power to another, takes a factor of 16 or so, and in it slopes are anything.
const STRETCH: usize = 4;
const AGREE: f64 = 0.3;
/// Slopes that still rise by no less than minus this from one to the next do not come down to 2 either.
const RISING: f64 = -0.1;
/// Noise of which more and more samples get their part is in transition too: the share of blocks that carry it must be at
/// least this part of the share at the far end.
const SAME_CARRIERS: f64 = 0.5;

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
#[non_exhaustive]
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
    /// The noise is a thousand times that of the start, and grows with a power of the distance that has settled.
    NoiseGrew,
    /// As far as rays go: four million units, or a billion where the noise has grown without settling.
    Farthest,
    /// The next gradients are no finite numbers, or their squares are none.
    NotFinite,
    /// The domain of the term ends.
    Boundary,
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

    fn of(exponent: Option<Estimate>, end: RayEnd, trend: Trend) -> Self {
        match exponent {
            Some(Estimate { value, low, .. }) if value > Self::TOO_FAST && low > 2.0 => match trend {
                Trend::Settled | Trend::Rising => Self::WorseThanQuadratic,
                Trend::Changing => Self::CannotTell,
            },
            Some(Estimate { high, .. })
                if high <= Self::HARDLY && matches!(end, RayEnd::Farthest | RayEnd::Boundary) =>
            {
                Self::Bounded
            }
            Some(Estimate { value, high, .. })
                if value <= Self::TOO_FAST && high <= 3.0 && trend != Trend::Rising =>
            {
                Self::Plausible
            }
            _ => Self::CannotTell,
        }
    }
}

/// How the power with which the noise grows changes over the last points of a ray.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trend {
    /// It is the same over a factor of 256 of the distance.
    Settled,
    /// It rises over all of that.
    Rising,
    /// Neither, or the ray is too short to tell.
    Changing,
}

/// A ray from the start.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
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
    /// Whether that power has settled. Where it has not, nothing follows from it for places farther out.
    pub trend: Trend,
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
    for i in NEAREST..=BEYOND {
        if i > FARTHEST && !grown(&variances) {
            break;
        }
        let point = along(start.x, unit * 4f64.powi(i), &v);
        if meter.is_outside(&point) {
            end = RayEnd::Boundary;
            break;
        }
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
        // Of noise that has stopped growing it takes the whole ray to say so.
        let grows = exponent(&variances, &radii).is_some_and(|exponent| exponent.high > Diagnosis::HARDLY);
        if grown(&variances) && grows && trend(&variances, &radii) == Trend::Settled {
            end = RayEnd::NoiseGrew;
            break;
        }
    }
    let exponent = exponent(&variances, &radii);
    let trend = trend(&variances, &radii);
    let silent = variances.last().is_some_and(|rows| mean(rows) == 0.0);
    let diagnosis = match silent {
        false => Diagnosis::of(exponent, end, trend),
        // No noise anywhere is noise that does not grow.
        true if end == RayEnd::Farthest && mean(&start.variances) == 0.0 => Diagnosis::Bounded,
        // The start has noise, and more samples than a ray: what carries it may be too rare to be among these.
        true => Diagnosis::CannotTell,
    };
    let points =
        radii.iter().zip(&variances).map(|(&radius, rows)| Point { radius, variance: variance(rows) });
    let ray = Ray { direction, points: points.collect(), end, exponent, trend, diagnosis };
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

fn above(variances: &[[f64; BLOCKS]], rows: &[f64; BLOCKS], factor: f64) -> bool {
    mean(rows) > 0.0 && mean(rows) >= factor * mean(&variances[0])
}

fn grown(variances: &[[f64; BLOCKS]]) -> bool {
    matches!(variances, [_, .., last] if above(variances, last, FAR_ABOVE))
}

/// How the slopes of the last points, all of them well above the noise of the start, compare with each other.
fn trend(variances: &[[f64; BLOCKS]], radii: &[f64]) -> Trend {
    let Some(first) = radii.len().checked_sub(STRETCH + 1).filter(|first| *first > 0) else {
        return Trend::Changing;
    };
    let [near, .., far] = &variances[first..] else { return Trend::Changing };
    let well_above = variances[first..].iter().all(|rows| above(variances, rows, WELL_ABOVE));
    if !well_above || carriers(near) < SAME_CARRIERS * carriers(far) {
        return Trend::Changing;
    }
    let at_start = mean(&variances[0]);
    let slope = |i: usize| {
        let [near, far] = [i, i + 1].map(|i| mean(&variances[i]) - at_start);
        (far / near).ln() / (radii[i + 1] / radii[i]).ln()
    };
    let slopes: Vec<f64> = (first..radii.len() - 1).map(slope).collect();
    let (least, most) = slopes.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), slope| {
        (least.min(*slope), most.max(*slope))
    });
    if most - least <= AGREE {
        Trend::Settled
    } else if slopes.windows(2).all(|pair| pair[1] - pair[0] >= RISING) {
        Trend::Rising
    } else {
        Trend::Changing
    }
}

/// Over how many blocks the noise is spread: all of them if each has the same, one if only one has any.
fn carriers(rows: &[f64; BLOCKS]) -> f64 {
    // In parts of the mean, since squares of variances may leave the doubles.
    let mean = mean(rows);
    BLOCKS as f64 * BLOCKS as f64 / rows.iter().map(|v| (v / mean).powi(2)).sum::<f64>()
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
