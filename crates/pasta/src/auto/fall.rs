//! A function without a minimum: f falls as far as a run goes, and is still falling there.

use super::Auto;
use super::blocks::{Eval, fresh, norm};
use super::compare::{mean_and_error, rise};
use super::vouch::EVENTS;
use crate::gate::{Gate, Halt};
use crate::kernels::{along, dot, minus};
use crate::stop::{Divergence, Fall, Stop};

/// A run is asked whether f is still falling from this distance on, over 1 + |x0|; at its end, from a smaller one, and from a still smaller one
/// where f has become far steeper, as no convex function does.
const FAR: f64 = 1e30;
const FAR_AT_END: f64 = 1e10;
const FAR_AND_STEEPER: f64 = 1e3;
const STEEPER: f64 = 100.0;
/// No point is farther from the start than this, in any problem in doubles.
const RUNAWAY: f64 = 1e50;
/// At its end f must still fall this share as steeply as at the start: otherwise it may only be far from its minimum.
const STEEP: f64 = 0.5;
/// A slope falls clearly if it is negative by this many standard errors of eight blocks.
const CLEARLY: f64 = 3.0;
/// At the end it takes this share of the budget to find out.
const SHARE: f64 = 0.02;
/// The slope of a term is taken over this share of the way.
const SHORT: f64 = 1e-3;

impl Auto {
    /// How the run is lost, if it is: f falls without end, as far as one can see, or the point is beyond everything.
    pub(super) fn lost(&mut self, gate: &mut Gate) -> Result<Option<Stop>, Halt> {
        let way = minus(&self.x, &self.start);
        let distance = norm(&way);
        let ends = self.state.ended == Some(Stop::PlannedEnd);
        let unit = 1.0 + norm(&self.start);
        if distance <= if ends { FAR_AND_STEEPER } else { FAR } * unit {
            return Ok(None);
        }
        let runaway = Some(Stop::Diverged(Divergence::Runaway { step: self.state.round }));
        let is_beyond = distance > RUNAWAY;
        if !distance.is_finite() {
            return Ok(runaway);
        }
        let share = gate.budget().filter(|_| ends).map_or(0.0, |budget| SHARE * budget as f64);
        let samples = share.max(self.walk.numbers.sizes.check).min(0.4 * gate.left() as f64);
        // Samples without any of the rare events all lean to one side, the more the farther out: a minimum that only events show would be called none.
        if self.walk.is_heavy() && samples < EVENTS * self.walk.rarity() {
            return Ok(runaway.filter(|_| is_beyond));
        }
        let blocks = fresh(&mut self.state.next, samples);
        let both = Eval::at(gate, &self.start, &blocks)
            .and_then(|from| Ok((from, Eval::at(gate, &self.x, &blocks)?)));
        let (from, there) = match both {
            Ok(both) => both,
            Err(Halt::OverBudget { .. }) => return Ok(runaway.filter(|_| is_beyond)),
            Err(halt) => return Err(halt),
        };
        let slopes =
            |eval: &Eval| eval.gradients.iter().map(|g| dot(g, &way) / distance).collect::<Vec<f64>>();
        let (slope, error) = mean_and_error(&slopes(&there));
        // What the term does along the way: where the way ends it is steepest, since it is convex.
        let steeper = |from: &[f64], to: &[f64]| rise(gate, from, to) / norm(&minus(to, from));
        let (mut near, mut far) = (along(&self.start, SHORT, &way), along(&self.start, 1.0 - SHORT, &way));
        [&mut near, &mut far].into_iter().for_each(|x| gate.keep_inside(x));
        let of_term =
            gate.term().map_or((0.0, 0.0), |_| (steeper(&far, &self.x), steeper(&self.start, &near)));
        let slope = slope + of_term.0;
        let (slope_at_start, error_at_start) = mean_and_error(&slopes(&from));
        let slope_at_start = slope_at_start + of_term.1;
        let factor = if distance > FAR_AT_END * unit { STEEP } else { STEEPER };
        let is_steep = slope <= -factor * (slope_at_start.abs() + error_at_start);
        let is_falling = slope + CLEARLY * error < 0.0 && (!ends || is_steep);
        if !is_falling {
            return Ok(runaway.filter(|_| is_beyond));
        }
        let fell = if gate.about().losses {
            from.mean(|k| from.losses[k] - there.losses[k]) - rise(gate, &self.start, &self.x)
        } else {
            -0.5 * (slope + slope_at_start) * distance
        };
        let step = self.state.round;
        Ok(Some(Stop::Unbounded(Fall { step, fell, distance, slope, slope_at_start })))
    }
}
