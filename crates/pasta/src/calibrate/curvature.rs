//! Curvature at the start: the largest found, the smallest seen, and how differences shrink with the step.

use serde::Serialize;

use super::estimate::{BLOCKS, Estimate};
use super::meter::{Meter, Samples, normalise};
use super::plan::Sizes;
use super::{CalibrationError, Start, finite};
use crate::kernels::{along, dot, minus, squared_norm};
use crate::oracle::Form;

/// Starts and iterations of the power method, and the pairs of an iteration.
pub(super) const STARTS: u64 = 3;
pub(super) const ITERATIONS: u64 = 8;
pub(super) const LEAST_ITERATIONS: u64 = 16;

/// The numbers of random directions at other points than the start.
const OTHERS: u64 = 50;

/// Steps as shares of the unit of length.
const LOCAL: f64 = 0.01;
const STEPS: [f64; 4] = [0.001, 0.01, 0.1, 1.0];
/// The ends of a slope, first choice first: the others are for jumps that small steps are too short to meet.
const SLOPES: [(usize, usize); 3] = [(0, 2), (1, 3), (2, 3)];

/// The largest curvature found near the start.
#[derive(Debug)]
pub(super) struct Local {
    /// Its direction; zero where there is no curvature at all.
    pub(super) direction: Vec<f64>,
    /// |<v, H v>|, on samples that did not choose v.
    pub(super) smoothness: Estimate,
    /// sqrt(E|g(x0 + h v) - g(x0)|^2)/h.
    pub(super) ms_smoothness: Estimate,
    /// The step at which a gradient of the start's size changes by its own size: |g|/L.
    pub(super) unit: f64,
}

/// How E|g(x) - g(y)|^2, same sample at both points, shrinks with |x - y| near the start.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MeanSquare {
    /// Like this power of the distance. Near 2: mean-square smooth as far as the steps show; near 1: the gradients of
    /// single samples jump; much above 2: the noise hardly moves at the start, which says nothing about elsewhere.
    Power(Estimate),
    /// It cannot be told, for this reason.
    Unknown(&'static str),
}

impl MeanSquare {
    /// Whether the gradients of single samples jump, so that no Lbar exists.
    pub fn jumps(&self) -> bool {
        matches!(self, Self::Power(power) if power.high < 1.5)
    }
}

/// Power iteration for the direction, then fresh pairs for the size: a maximum of noisy values would be too large.
pub(super) fn local(
    meter: &mut Meter<'_>,
    start: &Start<'_>,
    sizes: &Sizes,
) -> Result<Local, CalibrationError> {
    let mut unit = start.unit(0.0);
    let mut best: Option<(f64, Vec<f64>, Vec<f64>)> = None;
    for number in 0..STARTS {
        let step = start.step(LOCAL * unit);
        let (curvature, v, next) = power(meter, start, step, sizes.power, number)?;
        // Each start knows the scale better than the one before it.
        unit = start.unit(curvature.max(best.as_ref().map_or(0.0, |(largest, ..)| *largest)));
        if best.as_ref().is_none_or(|(largest, ..)| curvature > *largest) {
            best = Some((curvature, v, next));
        }
    }
    let (_, v, next) = best.expect("there is more than one start");
    let step = start.step(LOCAL * unit);
    let direction = choose(meter, start, step, sizes.choose, v, &next)?;
    let [smoothness, ms_smoothness] = quotient(meter, start, step, &direction, sizes.top)?;
    let size = if smoothness.low > 0.0 { smoothness.value } else { smoothness.high };
    Ok(Local { direction, smoothness, ms_smoothness, unit: start.unit(size) })
}

/// The largest curvature found at another point than the start, and its mean-square counterpart.
pub(super) fn at(
    meter: &mut Meter<'_>,
    place: &Start<'_>,
    unit: f64,
    number: u64,
    sizes: &Sizes,
) -> Result<[Estimate; 2], CalibrationError> {
    let step = place.step(LOCAL * unit);
    let (_, _, direction) = power(meter, place, step, sizes.power, OTHERS + number)?;
    quotient(meter, place, step, &direction, sizes.place)
}

/// One start of v <- H v/|H v|: the mean Rayleigh quotient of the second half, the last v, and H v/|H v|.
fn power(
    meter: &mut Meter<'_>,
    start: &Start<'_>,
    step: f64,
    pairs: u64,
    number: u64,
) -> Result<(f64, Vec<f64>, Vec<f64>), CalibrationError> {
    let mut v = meter.direction(number);
    let mut next = v.clone();
    let mut sum = 0.0;
    for i in 0..ITERATIONS {
        v = next;
        let point = meter.along(start.x, step, &v);
        let moved = minus(&point, start.x);
        next = meter.mean_difference(&point, start.x, pairs)?;
        finite(&next)?;
        // v is older than these pairs, so that the quotient has no bias.
        if i >= ITERATIONS / 2 && squared_norm(&moved) > 0.0 {
            sum += dot(&next, &moved) / squared_norm(&moved);
        }
        if normalise(&mut next) == 0.0 {
            return Ok((0.0, v.clone(), v));
        }
    }
    Ok((sum.abs() / (ITERATIONS - ITERATIONS / 2) as f64, v, next))
}

/// Where L and -L are both eigenvalues, power iteration swings between two directions; their sum and their
/// difference then belong to one each. Fresh pairs choose.
fn choose(
    meter: &mut Meter<'_>,
    start: &Start<'_>,
    step: f64,
    pairs: u64,
    v: Vec<f64>,
    next: &[f64],
) -> Result<Vec<f64>, CalibrationError> {
    let combine = |sign: f64| {
        let mut sum = along(&v, sign, next);
        normalise(&mut sum);
        sum
    };
    let candidates = [combine(1.0), combine(-1.0), v];
    let mut chosen = (f64::NEG_INFINITY, Vec::new());
    for v in candidates {
        let point = meter.along(start.x, step, &v);
        let moved = minus(&point, start.x);
        let length2 = squared_norm(&moved);
        let difference = meter.mean_difference(&point, start.x, pairs)?;
        finite(&difference)?;
        let quotient = if length2 > 0.0 { dot(&difference, &moved).abs() / length2 } else { -1.0 };
        if quotient > chosen.0 {
            chosen = (quotient, v);
        }
    }
    Ok(chosen.1)
}

/// |<v, H v>| by central differences, which a third derivative does not bend, and sqrt(E|g(x0 + h v) - g(x0)|^2)/h by
/// one-sided ones, since noise that is least at the start looks the same on both sides of it.
fn quotient(
    meter: &mut Meter<'_>,
    start: &Start<'_>,
    step: f64,
    v: &[f64],
    per_block: u64,
) -> Result<[Estimate; 2], CalibrationError> {
    let samples = meter.draw(per_block);
    let (ahead, behind) = (meter.along(start.x, step, v), meter.inside(along(start.x, -step, v)));
    // At the edge of a domain neither way is that of v.
    let way = if meter.has_term() { minus(&ahead, &behind) } else { v.to_vec() };
    let central = pairs(meter, samples, &ahead, &behind, &way)?;
    let one_sided = pairs(meter, samples, &ahead, start.x, v)?;
    finite(central.as_flattened())?;
    finite(one_sided.as_flattened())?;
    let along_v = Estimate::of(&central, |[rayleigh, _]| rayleigh).magnitude();
    Ok([along_v, Estimate::positive(&one_sided, |[_, square]| square.sqrt())])
}

/// Each block's means of <g(x) - g(y), w>/(|x - y| |w|) and |g(x) - g(y)|^2/|x - y|^2.
pub(super) fn pairs(
    meter: &mut Meter<'_>,
    samples: Samples,
    x: &[f64],
    y: &[f64],
    w: &[f64],
) -> Result<Vec<[f64; 2]>, CalibrationError> {
    let length = squared_norm(&minus(x, y)).sqrt();
    let mut unit = w.to_vec();
    normalise(&mut unit);
    let mut blocks = vec![([0.0; 2], 0u64); BLOCKS];
    meter.each(samples, Form::Differences, &[x, y], &mut blocks, |(sums, count), difference| {
        sums[0] += dot(difference, &unit);
        sums[1] += squared_norm(difference);
        *count += 1;
    })?;
    // No direction, no step: no curvature was found.
    let (first, second) = if length > 0.0 { (1.0 / length, 1.0 / (length * length)) } else { (0.0, 0.0) };
    Ok(blocks.iter().map(|([a, b], n)| [first * a / *n as f64, second * b / *n as f64]).collect())
}

/// The smallest Rayleigh quotient that power iteration on 1.05 L - H finds; central differences, which are exact for
/// quadratics whatever the step.
pub(super) fn least(
    meter: &mut Meter<'_>,
    start: &Start<'_>,
    local: &Local,
    sizes: &Sizes,
) -> Result<Estimate, CalibrationError> {
    let step = start.step(LOCAL * local.unit);
    let mut v = meter.direction(STARTS);
    let ends = |meter: &Meter<'_>, v: &[f64]| {
        (meter.inside(along(start.x, step, v)), meter.inside(along(start.x, -step, v)))
    };
    for _ in 0..LEAST_ITERATIONS {
        let (ahead, behind) = ends(meter, &v);
        let mut image = meter.mean_difference(&ahead, &behind, sizes.least_power)?;
        finite(&image)?;
        image
            .iter_mut()
            .zip(&v)
            .for_each(|(h, v)| *h = 1.05 * local.smoothness.value * v - *h / (2.0 * step));
        if normalise(&mut image) == 0.0 {
            break;
        }
        v = image;
    }
    let (ahead, behind) = ends(meter, &v);
    let samples = meter.draw(sizes.least);
    let rows = pairs(meter, samples, &ahead, &behind, &minus(&ahead, &behind))?;
    finite(rows.as_flattened())?;
    Ok(Estimate::of(&rows, |[rayleigh, _]| rayleigh))
}

/// The slope of log E|difference|^2 over a step and a longer one, the same samples at both.
pub(super) fn mean_square(
    meter: &mut Meter<'_>,
    start: &Start<'_>,
    local: &Local,
    sizes: &Sizes,
) -> Result<MeanSquare, CalibrationError> {
    let mut v = local.direction.clone();
    if normalise(&mut v) == 0.0 {
        v = meter.direction(STARTS + 1);
    }
    let points: Vec<_> =
        STEPS.iter().map(|step| meter.along(start.x, start.step(step * local.unit), &v)).collect();
    let lengths: Vec<_> = points.iter().map(|point| squared_norm(&minus(point, start.x)).sqrt()).collect();
    let samples = meter.draw(sizes.steps);
    let mut blocks = vec![[[0.0; 2]; STEPS.len()]; BLOCKS];
    let all: Vec<&[f64]> = points.iter().map(Vec::as_slice).chain([start.x]).collect();
    meter.each(samples, Form::Differences, &all, &mut blocks, |sums, differences| {
        for (difference, [second, fourth]) in differences.chunks(v.len()).zip(sums) {
            let square = squared_norm(difference);
            *second += square;
            *fourth += square * square;
        }
    })?;
    let total = |step: usize, power: usize| blocks.iter().map(|sums| sums[step][power]).sum::<f64>();
    if (0..STEPS.len()).any(|step| !total(step, 0).is_finite()) {
        return Ok(MeanSquare::Unknown("the differences leave the doubles"));
    }
    if total(STEPS.len() - 1, 0) == 0.0 {
        return Ok(MeanSquare::Unknown("the differences are zero"));
    }
    // Rare jumps leave nothing to see at a small step: so many samples must share the sum.
    let enough = |step: usize| total(step, 0).powi(2) >= 20.0 * total(step, 1) && total(step, 0) > 0.0;
    let Some(&(near, far)) = SLOPES.iter().find(|(near, _)| enough(*near)) else {
        return Ok(MeanSquare::Unknown("a few samples make up all of the differences"));
    };
    // Steps that were lengthened for the sake of rounding may all be the same.
    if lengths[far] < 5.0 * lengths[near] {
        return Ok(MeanSquare::Unknown("small steps are lost in the rounding of the start"));
    }
    let rows: Vec<_> = blocks.iter().map(|sums| [sums[near][0], sums[far][0]]).collect();
    let span = (lengths[far] / lengths[near]).ln();
    Ok(MeanSquare::Power(Estimate::of(&rows, |[near, far]| (far / near).ln() / span)))
}
