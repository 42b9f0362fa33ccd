//! Schedule-free learning (Defazio et al. 2024): SGD and AdamW whose average takes the place of a decaying step.

use serde::{Deserialize, Serialize};

use super::Turn;
use crate::schedule::ScheduleError;
use crate::term::Steps;

/// Gradients at y = (1 - first) z + first x; z - eta g (divided by the root of its second moment, if that is kept); x the mean of all
/// z. The point that is handed out is x.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ScheduleFree {
    /// Step size.
    pub eta: f64,
    /// Where between z and x gradients are taken, in [0, 1).
    pub first: f64,
    /// For AdamW: decay of the second moment, and what is added to its root; SGD without.
    pub second: Option<(f64, f64)>,
}

impl ScheduleFree {
    /// z of each coordinate, and its second moment.
    pub(super) fn memory(dim: usize) -> usize {
        2 * dim
    }

    pub(super) fn check(&self) -> Result<(), ScheduleError> {
        super::positive("eta", self.eta)?;
        super::decay("first", self.first)?;
        if let Some((second, epsilon)) = self.second {
            super::decay("second", second)?;
            super::positive("epsilon", epsilon)?;
        }
        Ok(())
    }

    pub(super) fn step(&self, turn: Turn<'_>) -> f64 {
        let Self { eta, first, second } = *self;
        let (z, v) = turn.memory.split_at_mut(turn.memory.len() / 2);
        if turn.t == 0 {
            z.copy_from_slice(turn.start);
        }
        // Equal step sizes have equal weights in the mean.
        let weight = 1.0 / (turn.t as f64 + 1.0);
        let keep = second.map_or(0.0, |(decay, _)| 1.0 - decay.powf(turn.t as f64 + 1.0));
        for ((g, z), v) in turn.g.iter().zip(&mut *z).zip(&mut *v) {
            let scaled = match second {
                None => *g,
                Some((decay, epsilon)) => {
                    *v = decay * *v + (1.0 - decay) * *g * *g;
                    *g / ((*v / keep).sqrt() + epsilon)
                }
            };
            *z -= eta * scaled;
        }
        if let Some(term) = turn.term {
            match second {
                None => term.prox(Steps::One(eta), z),
                Some((_, epsilon)) => {
                    let lengths: Vec<f64> = v.iter().map(|v| eta / ((v / keep).sqrt() + epsilon)).collect();
                    term.prox(Steps::Each(&lengths), z);
                }
            }
        }
        for ((x, z), (g, y)) in turn.carried.iter_mut().zip(&*z).zip(turn.g.iter_mut().zip(turn.x)) {
            *x = (1.0 - weight) * *x + weight * *z;
            // The walk subtracts this from y.
            *g = y - (first * *x + (1.0 - first) * *z);
        }
        1.0
    }
}
