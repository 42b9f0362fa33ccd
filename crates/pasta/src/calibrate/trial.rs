//! A short run with the constants that were found, before anyone is told of them.
//!
//! Curvature at the start says little about curvature where a run goes. So a run goes there: a few dozen steps, looks at the
//! curvature on its way, and then again a few hundred steps with what will be printed. A step whose gradients change faster
//! than the printed L allows raises L, and the trial starts anew.

use serde::Serialize;

use super::curvature;
use super::estimate::{BLOCKS, Estimate};
use super::meter::Meter;
use super::plan::Sizes;
use super::{CalibrationError, Found, SAFETY, Start};
use crate::kernels::{along, dot, minus, squared_distance, squared_norm};
use crate::oracle::Form;

/// Steps of the first trial, which finds the way, and of the second, which tries what will be printed.
pub(super) const SCOUTING: u64 = 64;
pub(super) const PROVING: u64 = 192;
/// Places of the first trial at which curvature is measured.
pub(super) const PLACES: u64 = 2;
/// Steps over which the curvature along the way is averaged: few, to see it at once, and many, to see it through noise.
const WINDOWS: [u64; 2] = [8, 32];
/// So many units, or steps of pure noise, from the start a trial is lost: no sound one of that many steps comes so far.
const LOST: f64 = 1000.0;
/// What it does to L if gradients are no numbers where a step ends.
const SLOWER: f64 = 4.0;

/// What became of a short run with the printed constants.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Trial {
    /// Steps with the constants as they are printed.
    pub steps: u64,
    /// The length of a step is this times the gradient: 1/(2 L) of the printed L, or less where the batches of the trial are
    /// too small for B.
    pub eta: f64,
    /// Whether it made all of them without contradicting the constants.
    pub steady: bool,
    /// How often L was raised because a trial contradicted it.
    pub raised: u64,
    /// |x - x0| at the end.
    pub distance: f64,
}

/// L and Lbar as they are known so far, and where they were found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Curvatures {
    pub(super) smoothness: (Estimate, Found),
    pub(super) ms_smoothness: (Estimate, Found),
}

/// What a trial rests on beside the curvature.
#[derive(Debug, Clone, Copy)]
pub(super) struct Conditions {
    pub(super) unit: f64,
    /// B, as far as it is known.
    pub(super) growth: f64,
}

/// Runs the trials, and raises L and Lbar by what is seen on the way. Nothing is tried without a curvature.
pub(super) fn run(
    meter: &mut Meter<'_>,
    start: &Start<'_>,
    conditions: &Conditions,
    mut known: Curvatures,
    sizes: &Sizes,
) -> Result<(Curvatures, Option<Trial>), CalibrationError> {
    if known.smoothness.0.value <= 0.0 {
        return Ok((known, None));
    }
    let (scouted, way) = trials(meter, start, conditions, &mut known, sizes.scouting, sizes.trial)?;
    for number in 0..PLACES {
        // Halfway along the steps, and at the end.
        let place = &way[(way.len() - 1) * (number as usize + 1) / PLACES as usize];
        let [smoothness, ms_smoothness] =
            curvature::at(meter, &start.moved_to(place), conditions.unit, number, sizes)?;
        let found = Found::OnTheWay { distance: squared_distance(place, start.x).sqrt() };
        raise(&mut known.smoothness, smoothness, found);
        raise(&mut known.ms_smoothness, ms_smoothness, found);
    }
    let (mut trial, _) = trials(meter, start, conditions, &mut known, sizes.proving, sizes.trial)?;
    trial.raised += scouted.raised;
    Ok((known, Some(trial)))
}

/// What stands out replaces what was known: by more than the errors of both, and by so much that the factor of safety is not
/// there for it.
fn raise(known: &mut (Estimate, Found), seen: Estimate, found: Found) {
    if seen.low > known.0.high && seen.value > 1.25 * known.0.value && seen.value.is_finite() {
        *known = (seen, found);
    }
}

/// Flights from the start until one contradicts nothing or the steps are used up; the last of them, and its way.
fn trials(
    meter: &mut Meter<'_>,
    start: &Start<'_>,
    conditions: &Conditions,
    known: &mut Curvatures,
    steps: u64,
    per_block: u64,
) -> Result<(Trial, Vec<Vec<f64>>), CalibrationError> {
    let mut raised = 0;
    let mut left = steps;
    loop {
        let eta = eta(known.smoothness.0.value, conditions.growth, per_block);
        let (way, end) = trial(meter, start, conditions, known, eta, left, per_block)?;
        let made = way.len() as u64 - 1;
        // A contradiction is seen before its step is taken, so that each trial has drawn once more.
        left = left.saturating_sub(made + 1);
        let last = &way[way.len() - 1];
        let distance = squared_distance(last, start.x).sqrt();
        let trial = Trial { steps: made, eta, steady: matches!(end, End::Steady), raised, distance };
        match end {
            End::Steady | End::Away => return Ok((trial, way)),
            End::Steep { curvature, from } => {
                known.smoothness = (curvature, Found::OnTheWay { distance: from });
            }
            End::NotFinite => {
                let (smoothness, found) = &mut known.smoothness;
                *smoothness = smoothness.map(|value| SLOWER * value);
                *found = Found::OnTheWay { distance };
            }
        }
        raised += 1;
        if left < WINDOWS[0] {
            return Ok((Trial { raised, ..trial }, way));
        }
    }
}

/// 1/(2 L) of the L that is printed; less where noise that grows with the distance would carry such batches away.
fn eta(smoothness: f64, growth: f64, per_block: u64) -> f64 {
    let batch = BLOCKS as f64 * per_block as f64;
    let by_noise = batch.sqrt() / (4.0 * growth);
    (0.5 / (SAFETY * smoothness)).min(by_noise)
}

/// How a trial ended.
enum End {
    Steady,
    /// Gradients changed faster than the printed L allows, at this distance from the start.
    Steep {
        curvature: Estimate,
        from: f64,
    },
    /// The gradients are no numbers any more: whatever L is, the step was too long.
    NotFinite,
    /// Far from the start, though nothing on the way contradicts L: f may have no minimum, or the noise carried it away.
    Away,
}

/// One block of a step: the sum of gradients, and the slope along the step before.
struct Part {
    gradient: Vec<f64>,
    slope: f64,
}

/// Slopes along the last steps, block by block.
struct Window {
    length: u64,
    steps: u64,
    sums: Vec<[f64; 1]>,
}

impl Window {
    fn new(length: u64) -> Self {
        Self { length, steps: 0, sums: vec![[0.0]; BLOCKS] }
    }

    fn add(&mut self, parts: &[Part], scale: f64) {
        if self.steps == self.length {
            *self = Self::new(self.length);
        }
        self.steps += 1;
        self.sums.iter_mut().zip(parts).for_each(|([sum], part)| *sum += scale * part.slope);
    }

    fn is_full(&self) -> bool {
        self.steps == self.length
    }

    fn curvature(&self) -> Estimate {
        let steps = self.steps.max(1) as f64;
        Estimate::of(&self.sums, |[slope]| slope / steps).magnitude()
    }
}

/// All points of one trial, and how it ended.
fn trial(
    meter: &mut Meter<'_>,
    start: &Start<'_>,
    conditions: &Conditions,
    known: &Curvatures,
    eta: f64,
    steps: u64,
    per_block: u64,
) -> Result<(Vec<Vec<f64>>, End), CalibrationError> {
    let far = LOST * (conditions.unit + eta * start.sample);
    let printed = SAFETY * known.smoothness.0.value;
    let mut way = vec![start.x.to_vec()];
    let mut windows = WINDOWS.map(Window::new);
    for _ in 0..steps {
        let x = &way[way.len() - 1];
        let before = &way[way.len().saturating_sub(2)];
        let moved = minus(x, before);
        let from = squared_distance(x, start.x).sqrt();
        // New samples at both ends of the last step: they did not choose it.
        let parts = look(meter, x, before, &moved, per_block)?;
        let length2 = squared_norm(&moved);
        if length2 > 0.0 {
            windows.iter_mut().for_each(|window| window.add(&parts, 1.0 / (per_block as f64 * length2)));
        }
        let steep = |curvature: &Estimate| curvature.low > printed && curvature.high.is_finite();
        let seen = windows.iter().filter(|window| window.is_full()).map(Window::curvature).find(steep);
        if let Some(curvature) = seen {
            return Ok((way, End::Steep { curvature, from }));
        }
        let next = meter.prox(eta, along(x, -eta, &mean(&parts, per_block)));
        let distance = squared_distance(&next, start.x).sqrt();
        if !distance.is_finite() {
            return Ok((way, End::NotFinite));
        }
        if distance > far {
            let [short, ..] = &windows;
            let curvature = short.curvature();
            let blamed = curvature.value > printed && curvature.high.is_finite();
            return Ok((way, if blamed { End::Steep { curvature, from } } else { End::Away }));
        }
        way.push(next);
    }
    Ok((way, End::Steady))
}

/// Gradients at x, and how they differ from those before the last step.
fn look(
    meter: &mut Meter<'_>,
    x: &[f64],
    before: &[f64],
    moved: &[f64],
    per_block: u64,
) -> Result<Vec<Part>, CalibrationError> {
    let samples = meter.draw(per_block);
    let mut parts: Vec<_> = (0..BLOCKS).map(|_| Part { gradient: vec![0.0; x.len()], slope: 0.0 }).collect();
    meter.each(samples, Form::Sums, &[x, before], &mut parts, |part, rows| {
        let (here, there) = rows.split_at(rows.len() / 2);
        part.gradient.iter_mut().zip(here).for_each(|(sum, g)| *sum += g);
        part.slope += dot(&minus(here, there), moved);
    })?;
    Ok(parts)
}

fn mean(parts: &[Part], per_block: u64) -> Vec<f64> {
    let count = BLOCKS as f64 * per_block as f64;
    let mut mean = vec![0.0; parts[0].gradient.len()];
    for part in parts {
        mean.iter_mut().zip(&part.gradient).for_each(|(mean, g)| *mean += g / count);
    }
    mean
}
