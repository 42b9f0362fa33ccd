//! The run as its own pilot: what its looks saw, as a ladder of coarser targets that it has passed.
//!
//! A look sees about how large the gradient is where the run stands. The first look that would have been hopeful at a coarser target, with
//! samples enough for that certificate, is where a run to that target would have ended. So a run that is under way is a pilot of itself, and
//! its forecast takes no samples.

use super::{COARSEST, Pilot, PilotRun, RUNG, unclaimed};
use crate::draws::Role;
use crate::ledger::Ledger;
use crate::walk::{Seen, Sighting, StopRule, View};

/// A gradient is clearly above a target if its square is, by this many times the square of its standard error.
const CLEARLY: f64 = 2.0;

impl Pilot {
    /// The pilot that a certified run is of itself, from what it has seen so far; it draws nothing. `None` before its first look.
    pub fn of_run(view: &View<'_>, ledger: &Ledger, rule: StopRule) -> Option<Self> {
        let sightings = view.certification?.sightings.as_slice();
        let first = sightings.first()?;
        let (drawn, samples) = (ledger.steps().samples, super::outlook::drawn(ledger));
        let gradient_at_start = first.seen.squared.max(first.seen.squared_error).sqrt();
        let recursive = ledger.of(Role::Small).samples > 0;
        let mut pilot =
            Self { gradient_at_start, runs: Vec::new(), samples, rule, rows: None, recursive, own: true };
        let largest = sightings.iter().map(upper).fold(0.0, f64::max);
        let mut target = (COARSEST * largest).max(rule.target).min(1e100);
        let mut last = None;
        while target > rule.target {
            let Some(at) = pilot.passed(sightings, target) else { break };
            // Of the targets that one look had passed, the finest tells.
            if last == Some(at) {
                pilot.runs.pop();
            }
            pilot.runs.push(pilot.run_to(target, &sightings[at], largest_step(&sightings[..=at])));
            last = Some(at);
            target = (target / RUNG).max(rule.target);
        }
        // The next target is not passed: a run to it takes more than what was drawn.
        let variance = sightings.last()?.seen.planned_variance;
        let (step_samples, steps) = (drawn, steps(drawn));
        pilot.runs.push(PilotRun {
            target,
            samples,
            step_samples,
            steps,
            largest_step: 0,
            certified: false,
            variance,
        });
        Some(pilot)
    }

    /// Samples of a certificate of a coarser target.
    fn certificate(&self, target: f64, variance: f64) -> f64 {
        self.noise(unclaimed(self.rule.basis), target, variance) * self.rule.share
    }

    /// The first look that would have been hopeful at a coarser target, if none after it speaks against that.
    fn passed(&self, sightings: &[Sighting], target: f64) -> Option<usize> {
        let above = |sighting: &Sighting| {
            let Seen { squared, squared_error, .. } = sighting.seen;
            squared > target * target + CLEARLY * squared_error
        };
        let from = sightings.iter().rposition(above).map_or(0, |last| last + 1);
        let passed = sightings[from..].iter().position(|sighting| self.reaches(sighting, target));
        passed.map(|at| from + at)
    }

    /// True if a run to this target would have been certified about here.
    fn reaches(&self, sighting: &Sighting, target: f64) -> bool {
        let Sighting { drawn, spent, seen, .. } = sighting;
        let share = self.rule.share;
        let allowed = share / (1.0 - share) * *drawn as f64;
        seen.is_hopeful(target) && allowed >= *spent as f64 + self.certificate(target, seen.planned_variance)
    }

    fn run_to(&self, target: f64, sighting: &Sighting, largest_step: u64) -> PilotRun {
        let Sighting { drawn, spent, seen, .. } = *sighting;
        let variance = seen.planned_variance;
        let samples = drawn + spent + self.certificate(target, variance) as u128;
        PilotRun {
            target,
            samples,
            step_samples: drawn,
            steps: steps(drawn),
            largest_step,
            certified: true,
            variance,
        }
    }
}

/// Along one run a step is a sample: how many samples the steps have is known where it matters.
fn steps(drawn: u128) -> u64 {
    u64::try_from(drawn).unwrap_or(u64::MAX)
}

fn upper(sighting: &Sighting) -> f64 {
    (sighting.seen.squared.max(0.0) + sighting.seen.squared_error).sqrt()
}

/// The samples of the largest step, as the looks show it.
fn largest_step(sightings: &[Sighting]) -> u64 {
    let between = sightings.windows(2).map(|pair| {
        let (steps, drawn) = (pair[1].step - pair[0].step, pair[1].drawn - pair[0].drawn);
        u64::try_from(drawn / u128::from(steps.max(1))).unwrap_or(u64::MAX)
    });
    between.max().unwrap_or(0)
}
