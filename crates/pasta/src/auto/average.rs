//! A long walk of small steps from the start, and its average: where noise rules, that is better than few large steps.
//!
//! Distance over gradients, made safe: the radius is that of the average, which noise does not inflate, and gradients count at least as
//! much as the latest ones, which are the noisiest where the noise grows with the distance.

use serde::{Deserialize, Serialize};

use super::blocks::norm;
use crate::draws::Role;
use crate::gate::{Gate, Halt};
use crate::kernels::{minus, squared_norm};
use crate::oracle::{Answer, Request};

/// Samples of a step.
const BATCH: u64 = 1;
/// Gradients that count as the latest.
const LATEST: usize = 16;
/// A walk that was lost begins again with a radius so many times smaller.
const SHORTER: f64 = 16.0;
/// Steps are this share of what distance over gradients would take.
const SHORT: f64 = 0.5;

/// The walk and its average.
#[derive(Debug, Clone)]
pub(super) struct Average {
    pub(super) numbers: Numbers,
    pub(super) z: Vec<f64>,
    pub(super) mean: Vec<f64>,
}

/// Where it stands, besides vectors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Numbers {
    step: u64,
    /// The radius that it began with, and what it has become.
    first: f64,
    radius: f64,
    squares: f64,
    latest: Vec<f64>,
}

impl Average {
    pub(super) fn start(start: &[f64], radius: f64) -> Self {
        let numbers = Numbers { step: 0, first: radius, radius, squares: 0.0, latest: Vec::new() };
        Self { numbers, z: start.to_vec(), mean: start.to_vec() }
    }

    /// Walks for about so many samples.
    pub(super) fn go(
        &mut self,
        gate: &mut Gate,
        start: &[f64],
        next: &mut u64,
        samples: f64,
    ) -> Result<(), Halt> {
        let mut g = vec![0.0; self.z.len()];
        for _ in 0..(samples / BATCH as f64) as u64 {
            let batch = gate.batch(Role::Large, *next, BATCH);
            *next += 1;
            gate.ask_for_step(Request::sums(batch, &[&self.z]), &mut Answer::new(&mut g))?;
            g.iter_mut().for_each(|g| *g /= BATCH as f64);
            let square = squared_norm(&g);
            if !square.is_finite() {
                // It has left the region where numbers mean something: again, with shorter steps.
                *self = Self::start(start, self.numbers.first / SHORTER);
                continue;
            }
            let Numbers { step, radius, squares, latest, .. } = &mut self.numbers;
            *step += 1;
            *squares += square;
            if latest.len() == LATEST {
                latest.remove(0);
            }
            latest.push(square);
            let recent = latest.iter().sum::<f64>() / latest.len() as f64;
            let eta = SHORT * *radius / squares.max(*step as f64 * recent).sqrt();
            let weight = 2.0 / (*step as f64 + 1.0);
            for ((z, mean), g) in self.z.iter_mut().zip(&mut self.mean).zip(&g) {
                *z -= eta * g;
                *mean += weight * (*z - *mean);
            }
            *radius = radius.max(norm(&minus(&self.mean, start)));
        }
        Ok(())
    }
}
