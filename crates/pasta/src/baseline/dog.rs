//! DoG: distance over gradients (Ivgi, Hinder and Carmon 2023), with its average.

use serde::{Deserialize, Serialize};

use super::Turn;
use crate::kernels::{squared_distance, squared_norm};
use crate::schedule::ScheduleError;

/// x - r_t/sqrt(G_t) g, r_t the largest distance from the start so far and G_t the sum of all |g|^2. The point that is handed out
/// is the average with weights that grow like t^8.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Dog {
    /// r_0 is this times 1 + |x0|.
    pub radius: f64,
    /// Added to G_0.
    pub epsilon: f64,
}

/// The power with which the weights of the average grow.
const POWER: f64 = 8.0;

impl Dog {
    /// r and G.
    pub(super) const MEMORY: usize = 2;

    pub(super) fn check(&self) -> Result<(), ScheduleError> {
        super::positive("radius", self.radius)?;
        super::positive("epsilon", self.epsilon)
    }

    pub(super) fn step(&self, turn: Turn<'_>) -> f64 {
        let [r, sum] = turn.memory else { return 0.0 };
        if turn.t == 0 {
            *r = self.radius * (1.0 + squared_norm(turn.start).sqrt());
            *sum = self.epsilon;
        }
        *r = r.max(squared_distance(turn.x, turn.start).sqrt());
        *sum += squared_norm(turn.g);
        *r / sum.sqrt()
    }

    /// Takes x_{t+1} into the average.
    pub(super) fn average(t: u64, x: &[f64], mean: &mut [f64]) {
        let weight = (POWER + 1.0) / (POWER + t as f64 + 1.0);
        mean.iter_mut().zip(x).for_each(|(mean, x)| *mean = *mean * (1.0 - weight) + weight * x);
    }
}
