//! Stochastic Polyak steps (Loizou, Vaswani, Laradji and Lacoste-Julien 2021): SPS_max. Needs losses.

use serde::{Deserialize, Serialize};

use super::Turn;
use crate::kernels::squared_norm;
use crate::schedule::ScheduleError;

/// x - min{(loss - lower)/(c |g|^2), most} g, loss and g means over the batch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Polyak {
    /// A lower bound on the loss of every batch; 0 for losses that are not negative.
    pub lower: f64,
    /// c: 1/2 in the published experiments.
    pub scale: f64,
    /// The largest step.
    pub most: f64,
}

impl Polyak {
    pub(super) fn check(&self) -> Result<(), ScheduleError> {
        super::positive("scale", self.scale)?;
        super::positive("most", self.most)?;
        let met = self.lower.is_finite();
        if met { Ok(()) } else { Err(ScheduleError { name: "lower", needs: "finite", got: self.lower }) }
    }

    pub(super) fn step(&self, turn: Turn<'_>) -> f64 {
        let squared = squared_norm(turn.g);
        if squared == 0.0 {
            return 0.0;
        }
        ((turn.loss - self.lower).max(0.0) / (self.scale * squared)).min(self.most)
    }
}
