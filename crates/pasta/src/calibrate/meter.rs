//! Samples by address, in blocks, asked for again wherever they are wanted.

use rayon::prelude::*;

use super::CalibrationError;
use super::estimate::BLOCKS;
use crate::draws::{Address, Role};
use crate::gate::{self, Gate};
use crate::kernels::{along, squared_distance, squared_norm};
use crate::moments::Moments;
use crate::oracle::{Answer, Form, Request};
use crate::term::Steps;

/// Samples of each block between two looks at the outside world.
const WAVE: usize = 16;
/// Numbers that are held between two looks, unless one sample of each block is more.
const HELD: usize = 1 << 20;

/// Samples by their addresses: block k has `per_block` of them, from `first + k per_block` on. They can be asked for
/// again at other points, and are then the same samples.
#[derive(Debug, Clone, Copy)]
pub(super) struct Samples {
    first: u64,
    per_block: u64,
}

/// Names samples and asks for them.
pub(super) struct Meter<'a> {
    gate: &'a mut Gate,
    watch: &'a mut dyn FnMut(u128),
    /// The first address that is not named yet, and the first that was not asked for yet.
    next: u64,
    asked: u64,
}

impl<'a> Meter<'a> {
    pub(super) fn new(gate: &'a mut Gate, watch: &'a mut dyn FnMut(u128)) -> Self {
        Self { gate, watch, next: 0, asked: 0 }
    }

    /// New samples, `per_block` in each block.
    pub(super) fn draw(&mut self, per_block: u64) -> Samples {
        let samples = Samples { first: self.next, per_block };
        self.next += BLOCKS as u64 * per_block;
        samples
    }

    /// Asks for each sample at all of the points and hands the rows of the answer to the sample's block: the blocks in
    /// parallel, the samples of a block in their order. The answers may be anything, also infinite.
    pub(super) fn each<B: Send>(
        &mut self,
        samples: Samples,
        form: Form,
        points: &[&[f64]],
        blocks: &mut [B],
        take: impl Fn(&mut B, &[f64]) + Sync,
    ) -> Result<(), CalibrationError> {
        let Samples { first, per_block } = samples;
        let known = first < self.asked;
        self.asked = self.asked.max(first + BLOCKS as u64 * per_block);
        let samples = if known { gate::Samples::Known } else { gate::Samples::New };
        let rows = if form == Form::Sums { points.len() } else { points.len() - 1 };
        let wave = (HELD / (BLOCKS * rows * points[0].len()).max(1)).clamp(1, WAVE);
        for from in (0..per_block).step_by(wave) {
            let wave = (per_block - from).min(wave as u64) as usize;
            let count = wave * BLOCKS;
            let most = if known { 0 } else { count as u128 };
            let answers = self.gate.window(Role::Calibration, most, |window| {
                window.each(count, samples, |i| {
                    let (k, i) = (i / wave, i % wave);
                    let batch = window.batch(first + k as u64 * per_block + from + i as u64, 1);
                    Request { form, ..Request::sums(batch, points) }
                })
            })?;
            blocks.par_iter_mut().enumerate().for_each(|(k, block)| {
                (0..wave).for_each(|i| take(block, answers.gradients(k * wave + i)));
            });
            (self.watch)(self.gate.ledger().of(Role::Calibration).samples);
        }
        Ok(())
    }

    /// The mean of g(x) - g(y) over n new samples.
    pub(super) fn mean_difference(
        &mut self,
        x: &[f64],
        y: &[f64],
        n: u64,
    ) -> Result<Vec<f64>, CalibrationError> {
        let batch = self.gate.batch(Role::Calibration, self.next, n);
        self.next += 1;
        let mut mean = vec![0.0; x.len()];
        let points = &[x, y];
        self.gate.ask_for_step(Request::differences(batch, points), &mut Answer::new(&mut mean))?;
        mean.iter_mut().for_each(|d| *d /= n as f64);
        (self.watch)(self.gate.ledger().of(Role::Calibration).samples);
        Ok(mean)
    }

    /// x + step v, moved into the domain of the term where there is one. Where that leads back to x, the other way is taken.
    pub(super) fn along(&self, x: &[f64], step: f64, v: &[f64]) -> Vec<f64> {
        let there = self.inside(along(x, step, v));
        let is_back = self.has_term() && squared_distance(&there, x) < (0.1 * step).powi(2) * squared_norm(v);
        if is_back { self.inside(along(x, -step, v)) } else { there }
    }

    /// The same point, moved into the domain of the term where there is one.
    pub(super) fn inside(&self, mut x: Vec<f64>) -> Vec<f64> {
        self.gate.keep_inside(&mut x);
        x
    }

    /// x, after a step of this length that went to v: by the prox, where there is a term.
    pub(super) fn prox(&self, eta: f64, mut v: Vec<f64>) -> Vec<f64> {
        if let Some(term) = self.gate.term() {
            term.prox(Steps::One(eta), &mut v);
        }
        v
    }

    pub(super) fn has_term(&self) -> bool {
        self.gate.term().is_some()
    }

    /// True if the domain of the term ends before x.
    pub(super) fn is_outside(&self, x: &[f64]) -> bool {
        self.gate.term().is_some_and(|term| term.outside(x).is_some())
    }

    /// A random direction: a unit vector.
    pub(super) fn direction(&self, number: u64) -> Vec<f64> {
        let sample = Address::WHOLE_BATCH - 1;
        let seed = self.gate.seed();
        let mut xi = Address { seed, role: Role::Calibration, step: number, sample }.stream();
        let mut v: Vec<f64> = (0..self.gate.about().dim).map(|_| xi.normal()).collect();
        normalise(&mut v);
        v
    }
}

/// Divides by the length, which is returned. What has no length, or none that doubles hold, becomes zero.
pub(super) fn normalise(v: &mut [f64]) -> f64 {
    // Twice, since the square of a very long or very short vector leaves the doubles.
    let largest = v.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    if !(largest > 0.0 && largest.is_finite() && v.iter().all(|x| x.is_finite())) {
        v.fill(0.0);
        return 0.0;
    }
    v.iter_mut().for_each(|x| *x /= largest);
    let length = squared_norm(v).sqrt();
    v.iter_mut().for_each(|x| *x /= length);
    length * largest
}

/// Mean and variance of the gradients of a block.
#[derive(Debug, Clone)]
pub(super) struct Gradients {
    moments: Moments,
}

impl Gradients {
    pub(super) fn new(dim: usize) -> Self {
        Self { moments: Moments::new(dim) }
    }

    pub(super) fn mean(&self) -> &[f64] {
        &self.moments.mean
    }

    pub(super) fn add(&mut self, gradient: &[f64]) {
        self.moments.add(gradient);
    }

    /// The unbiased estimate of E|g - grad f|^2, zero where it is no more than the rounding of the gradient.
    pub(super) fn variance(&self) -> f64 {
        let variance = self.moments.variance();
        if variance < ROUNDING2 * squared_norm(self.mean()) { 0.0 } else { variance }
    }
}

/// (1e-14)^2: gradients that agree to so many digits are taken for equal.
const ROUNDING2: f64 = 1e-28;
