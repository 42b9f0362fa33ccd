//! SGD with heavy-ball momentum (Polyak 1964).

use serde::{Deserialize, Serialize};

use super::Turn;
use crate::schedule::ScheduleError;

/// v = momentum v + g, x - eta v.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Momentum {
    /// Step size.
    pub eta: f64,
    /// How much of the last step's direction is kept, in [0, 1).
    pub momentum: f64,
}

impl Momentum {
    pub(super) fn check(&self) -> Result<(), ScheduleError> {
        super::positive("eta", self.eta)?;
        super::decay("momentum", self.momentum)
    }

    pub(super) fn step(&self, turn: Turn<'_>) -> f64 {
        for (g, v) in turn.g.iter_mut().zip(turn.memory) {
            *v = self.momentum * *v + *g;
            *g = *v;
        }
        self.eta
    }
}
