//! Means of fresh samples at a point.

use std::ops::Range;

use crate::draws::Role;
use crate::gate::{Gate, Halt, Samples};
use crate::moments::Moments;
use crate::oracle::Request;

/// Binary digits of a mean's number in the step of its batch; the attempt stands above them.
pub(crate) const NUMBER_BITS: u32 = 40;

/// A sequence of independent means of `samples_each` samples at x, numbered from 0.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Means<'a> {
    pub(crate) x: &'a [f64],
    pub(crate) role: Role,
    /// Tells apart the sequences of one run: attempts are few, and means are below 2^40.
    pub(crate) attempt: u64,
    pub(crate) samples_each: u64,
}

impl Means<'_> {
    /// Some of the means, drawn in parallel, and what they cost in samples.
    pub(crate) fn draw(&self, gate: &mut Gate, numbers: Range<u64>) -> Result<(Vec<Vec<f64>>, u128), Halt> {
        let Self { x, role, attempt, samples_each: n } = *self;
        let points = &[x];
        let each = gate.price(&Request::sums(gate.batch(role, 0, n), points)).samples;
        let most = each.saturating_mul(u128::from(numbers.end - numbers.start));
        gate.window(role, most, |window| {
            let question = |i: usize| {
                Request::sums(window.batch((attempt << NUMBER_BITS) | (numbers.start + i as u64), n), points)
            };
            let answers = window.each((numbers.end - numbers.start) as usize, Samples::New, question)?;
            answers.check_finite()?;
            let mean = |sum: &[f64]| sum.iter().map(|g| g / n as f64).collect();
            let means = (0..answers.len()).map(|i| mean(answers.gradients(i))).collect();
            Ok((means, answers.samples()))
        })
    }

    /// Mean and spread over some of the means, and what they cost. Holds at most 256 of them at a time, few if they are
    /// long.
    pub(crate) fn moments(&self, gate: &mut Gate, numbers: Range<u64>) -> Result<(Moments, u128), Halt> {
        let mut moments = Moments::new(self.x.len());
        let samples = self.add_to(&mut moments, gate, numbers)?;
        Ok((moments, samples))
    }

    /// Adds some of the means to moments, and says what they cost.
    pub(crate) fn add_to(
        &self,
        moments: &mut Moments,
        gate: &mut Gate,
        numbers: Range<u64>,
    ) -> Result<u128, Halt> {
        let held = (1_000_000 / self.x.len().max(1) as u64).clamp(16, 256);
        let mut samples = 0;
        for first in numbers.clone().step_by(held as usize) {
            let (means, spent) = self.draw(gate, first..numbers.end.min(first + held))?;
            means.iter().for_each(|mean| moments.add(mean));
            samples += spent;
        }
        Ok(samples)
    }
}
