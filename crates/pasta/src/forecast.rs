//! A forecast of what a certified run will cost, from a pilot: the same method, certified at coarser targets.
//!
//! Near a certificate the noise decides: a certificate of |grad f| <= eps costs some V/eps^2 samples, V the noise where
//! the run ends, and so does every step that shall make out a gradient of that size. So the cost is followed down a
//! ladder of targets, each 1/sqrt(2) of the last, as far as the pilot's budget goes, and continued from there along a
//! power law whose exponent is near 2. It is a forecast with a range, not a bound.
//!
//! ```
//! use pasta_opt::certificate::Grade;
//! use pasta_opt::forecast::Pilot;
//! use pasta_opt::prelude::*;
//!
//! let noise = Noise { growth: 1.0, floor: 1.0, tail: Tail::Gaussian };
//! let oracle = Noisy::new(Box::new(SineBowl { dimension: 1 }), noise, vec![1.2])?;
//! let grade = Grade::Growth { growth: 1.0, floor: 1.0, distance: 0.0 };
//! let rule = StopRule { target: 0.01, delta: 0.05, grade, share: 0.5 };
//! let run = |gate: &Gate, target| {
//!     let recipe = Smooth { smoothness: 3.0, gap: 1.6, growth: 1.0, floor: 1.0, variance: None, target };
//!     Ok::<_, Box<dyn std::error::Error>>(Pasta::start(gate, recipe.plan()?.schedule.endless(), &[1.2])?)
//! };
//! let mut gate = Gate::new(oracle, 1);
//! let pilot = Pilot::fly(&mut gate, &[1.2], rule, 100_000, run)?;
//! let forecast = pilot.forecast(0.01).ok_or("no run of the pilot arrived")?;
//! assert!(gate.ledger().samples() <= 100_000);
//!
//! let before = gate.ledger().samples();
//! let actual = run(&gate, 0.01)?.certified(&gate, rule)?.finish(&mut gate)?;
//! let samples = (actual.ledger.samples() - before) as f64;
//! assert!(forecast.low < samples && samples < forecast.high);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use serde::{Deserialize, Serialize};

use crate::certificate::means::Means;
use crate::certificate::{Claim, ClaimError, Grade, delta_of_attempt};
use crate::draws::Role;
use crate::gate::{Gate, Halt};
use crate::oracle::Source;
use crate::stop::Stop;
use crate::walk::{StopRule, Walk};

/// What a certified run will probably cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Forecast {
    /// Nine runs in ten cost more, by the forecast's own account.
    pub low: f64,
    /// As many cost more as less.
    pub middle: f64,
    /// Nine runs in ten cost less.
    pub high: f64,
}

/// A run of the pilot.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PilotRun {
    /// Its target.
    pub target: f64,
    /// What it drew, certificates included.
    pub samples: u128,
    /// Whether it ended certified, and not for want of samples.
    pub certified: bool,
}

/// A pilot: a few cheap runs of the method that shall be run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pilot {
    /// About |grad f(x0)|, from a few samples.
    pub gradient_at_start: f64,
    /// The runs, from the coarsest target to the finest.
    pub runs: Vec<PilotRun>,
    /// All samples that were drawn.
    pub samples: u128,
    /// What no certified run of this grade can do without.
    floor: f64,
    /// What the pilot's own runs cost about, if their targets are coarse.
    least: f64,
}

/// Samples at x0, before the first run.
const FIRST_LOOK: u64 = 256;
/// The coarsest target: half the gradient at the start, so that the run has to move, and this many times the target.
const COARSEST: f64 = 8.0;
/// From one target of the ladder to the next.
const RUNG: f64 = std::f64::consts::SQRT_2;
/// The finest runs count, and of those not more than this many.
const COUNTED: usize = 5;
/// A run that cost more than this many times what a coarse one does was not coarse.
const LEAST: f64 = 2.0;
/// The exponent of the power law and how far it may be from that, before any run; from the theory of the certificate.
const EXPONENT: f64 = 2.0;
const EXPONENT_SPREAD: f64 = 0.2;
/// The standard deviation of the logarithm of a run's cost around the law.
const RUN_SPREAD: f64 = 0.65;
/// The tenth part of a normal law lies beyond this.
const TENTH: f64 = 1.2816;

/// The grade for the pilot's own certificates, which nobody will believe: it need not pay for the smallest number of
/// samples that an assumed kurtosis asks for, which would hide how the cost grows with the target.
fn unclaimed(grade: Grade) -> Grade {
    match grade {
        Grade::Kurtosis(_) => Grade::Kurtosis(1.0),
        other => other,
    }
}

/// Why there is no pilot.
#[derive(Debug, thiserror::Error)]
pub enum PilotError<E> {
    /// A run could not be started.
    #[error("{0}")]
    Run(E),
    /// The stop rule was refused.
    #[error(transparent)]
    Rule(#[from] ClaimError),
    /// The gate gave no answer.
    #[error(transparent)]
    Halt(#[from] Halt),
}

impl Pilot {
    /// Runs the pilot with at most so many samples. `run` starts the method for a target, best with a schedule that is
    /// [endless](crate::schedule::Schedule::endless): if only the runs counted that a short plan let be certified, the
    /// forecast would be too low.
    ///
    /// The runs have seeds of their own, none of which any other run has; their samples are counted as
    /// [`Role::Forecast`].
    pub fn fly<W: Walk, E>(
        gate: &mut Gate,
        start: &[f64],
        rule: StopRule,
        budget: u128,
        run: impl Fn(&Gate, f64) -> Result<W, E>,
    ) -> Result<Self, PilotError<E>> {
        rule.check(gate.about())?;
        let budget = budget.min(gate.left());
        let delta = delta_of_attempt(rule.delta, 1);
        let table = matches!(gate.about().source, Source::Table { .. });
        let certificate = |grade| {
            let claim = Claim { target: rule.target, delta, grade, budget: None, guess: None };
            // A table may be passed over for less.
            if table { 0.0 } else { claim.usual_samples(0.0) }
        };
        // A certificate is tried when the run has drawn enough for what it plans, and succeeds with a quarter at best.
        let floor = certificate(rule.grade) * ((1.0 - rule.share) / rule.share + 0.25);
        let rule = StopRule { grade: unclaimed(rule.grade), ..rule };
        let least = certificate(rule.grade) / rule.share;
        let affordable = u64::try_from(budget / 4).unwrap_or(u64::MAX);
        let mut first = gate.fork(Role::Forecast, 0, budget);
        let means = Means { x: start, role: Role::Pilot, attempt: 0, samples_each: 1 };
        let look = means.moments(&mut first, 0..FIRST_LOOK.min(affordable));
        gate.absorb(Role::Forecast, &first);
        let (look, samples) = look?;
        let gradient_at_start = look.squared_mean().max(look.error2()).sqrt();
        let mut pilot = Self { gradient_at_start, floor, least, runs: Vec::new(), samples };
        // Targets end at 1e100.
        let mut target = (0.5 * gradient_at_start).max(COARSEST * rule.target).min(1e100);
        while target >= rule.target && pilot.can_afford_another(budget) {
            let number = pilot.runs.len() as u64 + 1;
            let mut fork = gate.fork(Role::Forecast, number, budget - pilot.samples);
            let walk = run(&fork, target).map_err(PilotError::Run)?;
            let end = walk.certified(&fork, StopRule { target, ..rule })?.finish(&mut fork);
            gate.absorb(Role::Forecast, &fork);
            let end = end?;
            if end.stop == Stop::Interrupted {
                return Err(Halt::Interrupted.into());
            }
            let certified = end.certification.is_some_and(|log| log.is_certified());
            let samples = fork.ledger().samples();
            pilot.samples += samples;
            pilot.runs.push(PilotRun { target, samples, certified });
            // A run that reached its planned end uncertified tells nothing; a finer one is longer.
            if end.stop == Stop::OutOfBudget {
                break;
            }
            target /= RUNG;
        }
        Ok(pilot)
    }

    /// Whether the next run, twice as dear as the last, would fit.
    fn can_afford_another(&self, budget: u128) -> bool {
        let last = self.runs.last().map_or(0, |run| run.samples);
        self.samples < budget && 2 * last <= budget - self.samples
    }

    /// The forecast for a target; `None` if no run of the pilot was certified.
    ///
    /// Least squares for the logarithm of the cost against that of the target, where the exponent is believed to be
    /// near 2 beforehand.
    pub fn forecast(&self, target: f64) -> Option<Forecast> {
        let finest = self.runs.iter().rfind(|run| run.certified)?.target;
        // What a coarse run cost at the least, however coarse, says nothing about a fine one.
        let tells = |run: &&PilotRun| run.samples as f64 > LEAST * self.least || run.target == finest;
        let counted = self.runs.iter().rev().filter(|run| run.certified).filter(tells).take(COUNTED);
        let points: Vec<(f64, f64)> =
            counted.map(|run| (-run.target.ln(), (run.samples.max(1) as f64).ln())).collect();
        let count = points.len() as f64;
        let mean = |part: fn(&(f64, f64)) -> f64| points.iter().map(part).sum::<f64>() / count;
        let (x, y) = (mean(|point| point.0), mean(|point| point.1));
        let spread: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
        let joint: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
        let (belief, evidence) = (EXPONENT_SPREAD.powi(-2), RUN_SPREAD.powi(-2));
        let precision = belief + evidence * spread;
        let exponent = (belief * EXPONENT + evidence * joint) / precision;
        let far = -target.ln() - x;
        let middle = y + exponent * far;
        let variance = RUN_SPREAD.powi(2) * (1.0 + 1.0 / count) + far * far / precision;
        // Where the floor binds, runs still differ by as much as runs do.
        let spread = RUN_SPREAD * std::f64::consts::SQRT_2;
        let middle = middle.max(self.floor.max(1.0).ln() + TENTH * spread);
        let [low, middle, high] =
            [-TENTH, 0.0, TENTH].map(|z| (middle + z * variance.sqrt()).exp().max(self.floor));
        // Beyond that nothing was learned, but that it is far.
        (high < 1e30).then_some(Forecast { low, middle, high })
    }
}
