//! The search for points near the minimiser of F.

use super::{LEAST_STEPS, MOST_EACH, MOST_EPOCHS, MoreauClaim, SEARCH_SHARE};
use crate::draws::Role;
use crate::gate::{Gate, Halt};
use crate::kernels::{squared_norm, update_mean};
use crate::moments::Moments;
use crate::oracle::{Answer, Request};

/// Epochs of normalised stochastic gradient steps on F, each from the mean of the last with half its radius: they need
/// to know neither how smooth F is nor how steep.
pub(super) struct Search<'a> {
    pub(super) x: &'a [f64],
    pub(super) attempt: u64,
    pub(super) lambda: f64,
    pub(super) mu: f64,
    pub(super) epochs: u32,
    pub(super) steps: u64,
    /// Samples of a step.
    pub(super) n: u64,
    pub(super) samples: u128,
}

impl<'a> Search<'a> {
    pub(super) fn plan(x: &'a [f64], attempt: u64, claim: &MoreauClaim, pilot: &Moments, norm: f64) -> Self {
        let MoreauClaim { lambda, rho, target, points, budget, .. } = *claim;
        let mu = lambda - rho;
        let steps = points.max(LEAST_STEPS);
        let epochs = (4.0 * norm * lambda / (mu * target)).log2().ceil().clamp(1.0, MOST_EPOCHS) as u32;
        // The mean of an epoch shall know F's gradient to a quarter of what the target leaves.
        let precision = mu * target / lambda / 4.0;
        let needed = pilot.variance() / (steps as f64 * precision * precision);
        let all_steps = u128::from(steps) * u128::from(epochs);
        let affordable = budget.map_or(u128::MAX, |budget| budget / SEARCH_SHARE / all_steps);
        let n =
            (needed.ceil().clamp(1.0, MOST_EACH) as u64).min(u64::try_from(affordable).unwrap_or(u64::MAX));
        Self { x, attempt, lambda, mu, epochs, steps, n, samples: 0 }
    }

    /// The last `count` iterates of the last epoch, or the mean of the epoch if only one point is wanted. `norm` is
    /// about |grad f(x)|: the minimiser of F is at most norm/mu away.
    pub(super) fn points(&mut self, gate: &mut Gate, norm: f64, count: u64) -> Result<Vec<Vec<f64>>, Halt> {
        let mut mean = self.x.to_vec();
        let mut kept = Vec::new();
        for epoch in 0..self.epochs {
            let radius = norm / self.mu * 0.5f64.powi(epoch as i32);
            let kept_here = if epoch + 1 == self.epochs { count } else { 1 };
            (mean, kept) = self.epoch(gate, epoch, mean, radius, kept_here)?;
        }
        Ok(if count == 1 { vec![mean] } else { kept })
    }

    /// The mean of the epoch's iterates, and the last `count` of them.
    pub(super) fn epoch(
        &mut self,
        gate: &mut Gate,
        epoch: u32,
        from: Vec<f64>,
        radius: f64,
        count: u64,
    ) -> Result<(Vec<f64>, Vec<Vec<f64>>), Halt> {
        let Self { x, attempt, lambda, steps, n, .. } = *self;
        let (mut y, mut mean) = (from.clone(), from);
        let (mut g, mut squares) = (vec![0.0; y.len()], 0.0);
        let mut kept = Vec::new();
        for t in 0..steps {
            if t >= steps - count {
                kept.push(y.clone());
            }
            update_mean(&mut mean, &y, t + 1);
            // Beyond the pilot's numbers.
            let step = attempt << 40 | u64::from(epoch + 1) << 32 | t;
            let batch = gate.batch(Role::Search, step, n);
            self.samples += gate.ask(Request::sums(batch, &[&y]), &mut Answer::new(&mut g))?.samples;
            for ((g, y), x) in g.iter_mut().zip(&y).zip(x) {
                *g = *g / n as f64 + lambda * (y - x);
            }
            squares += squared_norm(&g);
            if !squares.is_finite() {
                return Err(Halt::NotFinite { role: Role::Search, step });
            }
            // The first step is as long as the epoch's radius, the later ones are as long as they are wide.
            let eta = if squares > 0.0 { radius / squares.sqrt() } else { 0.0 };
            y.iter_mut().zip(&g).for_each(|(y, g)| *y -= eta * g);
        }
        Ok((mean, kept))
    }
}
