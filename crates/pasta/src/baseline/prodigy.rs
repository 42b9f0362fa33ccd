//! Prodigy (Mishchenko and Defazio 2023): Adam with an estimate of the distance to the solution as its step size.

use serde::{Deserialize, Serialize};

use super::Turn;
use crate::schedule::ScheduleError;

/// Adam whose step size is d, a lower estimate of |x0 - x*| that only grows; without bias correction, as published.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Prodigy {
    /// d before the first step.
    pub distance: f64,
    /// Decay of the first moment, in [0, 1).
    pub first: f64,
    /// Decay of the second moment, in [0, 1).
    pub second: f64,
    /// Times d, added to the root of the second moment.
    pub epsilon: f64,
}

impl Prodigy {
    /// m, v and s of each coordinate, then d, its largest estimate, and the numerator of the next.
    pub(super) fn memory(dim: usize) -> usize {
        3 * dim + 3
    }

    pub(super) fn check(&self) -> Result<(), ScheduleError> {
        super::positive("distance", self.distance)?;
        super::positive("epsilon", self.epsilon)?;
        super::decay("first", self.first)?;
        super::decay("second", self.second)
    }

    /// What a step of d multiplies a steady gradient by, coordinate by coordinate: m is then d times the gradient.
    pub(super) fn lengths(&self, step: f64, memory: &[f64]) -> Vec<f64> {
        let dim = (memory.len() - 3) / 3;
        let d = memory[3 * dim];
        memory[dim..2 * dim].iter().map(|v| step * step / (v.sqrt() + d * self.epsilon)).collect()
    }

    pub(super) fn step(&self, turn: Turn<'_>) -> f64 {
        let Self { distance: d0, first, second, epsilon } = *self;
        let dim = (turn.memory.len() - 3) / 3;
        let (moments, scalars) = turn.memory.split_at_mut(3 * dim);
        let (m, rest) = moments.split_at_mut(dim);
        let (v, s) = rest.split_at_mut(dim);
        let [d, largest, numerator] = scalars else { return 0.0 };
        if turn.t == 0 {
            (*d, *largest) = (d0, d0);
        }
        let third = second.sqrt();
        let weight = *d / d0 * *d;
        let along: f64 =
            turn.g.iter().zip(turn.start).zip(turn.x).map(|((g, start), x)| g * (start - x)).sum();
        *numerator = third * *numerator + weight * along;
        for (((g, m), v), s) in turn.g.iter().zip(&mut *m).zip(&mut *v).zip(&mut *s) {
            *m = first * *m + *d * (1.0 - first) * g;
            *v = second * *v + *d * *d * (1.0 - second) * g * g;
            *s = third * *s + weight * g;
        }
        let denominator: f64 = s.iter().map(|s| s.abs()).sum();
        let step = *d;
        if denominator > 0.0 {
            *largest = largest.max(*numerator / denominator);
            *d = *largest;
        }
        for ((g, m), v) in turn.g.iter_mut().zip(m).zip(v) {
            *g = *m / (v.sqrt() + *d * epsilon);
        }
        step
    }
}
