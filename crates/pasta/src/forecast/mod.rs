//! A forecast of what a certified run will cost, from a pilot: the same method, certified at coarser targets.
//!
//! Two things cost samples: the way to the solution, and the noise there. What a certificate of |grad f| <= eps needs against the noise
//! is known, V/eps^2 times a number that follows from its proof, V the variance where the run ends. What the way takes is
//! steps, as many as the run makes, times the samples of a step. Both are followed down a ladder of targets as far
//! until there is a range, and on as long as the pilot is at most a tenth of what it forecasts, and continued from there; whichever is longer is the forecast. All that is not known about them (how the
//! number of steps grows, how runs scatter, which of the two rules) is carried along, and a range that comes out too wide to be of
//! use is not given. It is a forecast with a range, not a bound.
//!
//! ```
//! use pasta_opt::certificate::Basis;
//! use pasta_opt::forecast::Pilot;
//! use pasta_opt::prelude::*;
//! use pasta_opt::problems::SineBowl;
//!
//! let noise = Noise { growth: 1.0, floor: 1.0, tail: Tail::Gaussian };
//! let oracle = Noisy::new(Box::new(SineBowl { dimension: 1 }), noise, vec![1.2])?;
//! let basis = Basis::Growth { growth: 1.0, floor: 1.0, distance: 0.0 };
//! let rule = StopRule { target: 0.01, delta: 0.05, basis, share: 0.5 };
//! let run = |gate: &Gate, target| {
//!     let recipe = Smooth { smoothness: 3.0, gap: 1.6, growth: 1.0, floor: 1.0, variance: None, target };
//!     Ok::<_, Box<dyn std::error::Error>>(Pasta::start(gate, recipe.plan()?.schedule.endless(), &[1.2])?)
//! };
//! let mut gate = Gate::new(oracle, 1);
//! let pilot = Pilot::run(&mut gate, &[1.2], rule, 100_000, run)?;
//! let forecast = pilot.forecast(0.01)?;
//! assert!(gate.ledger().samples() <= 100_000);
//!
//! let before = gate.ledger().samples();
//! let actual = run(&gate, 0.01)?.certified(&gate, rule)?.finish(&mut gate)?;
//! let samples = (actual.ledger.samples() - before) as f64;
//! assert!(forecast.low < samples && samples < forecast.high);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod family;
mod model;
mod outlook;
mod own;
mod price;

pub use family::{Family, Measured};
pub use outlook::{Outlook, Said};
pub use price::{Price, PriceError};
use serde::{Deserialize, Serialize};

use crate::certificate::means::Means;
use crate::certificate::sequential::UNSURE;
use crate::certificate::{Basis, Claim, ClaimError, Guess, PILOT, delta_of_attempt};
use crate::draws::Role;
use crate::gate::{Gate, Halt};
use crate::kernels::squared_distance;
use crate::oracle::Source;
use crate::stop::Stop;
use crate::walk::{LIKELY, StopRule, Walk};

/// What a certified run will probably cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Forecast {
    /// The low end of the range.
    pub low: f64,
    /// As many runs cost more as less.
    pub middle: f64,
    /// The high end of the range.
    pub high: f64,
    /// What takes most of the samples, by the finest run of the pilot.
    pub rules: Rules,
    /// 1/24, 2/24, .., 23/24 of runs cost less than these, by the forecast's own account.
    pub quantiles: [f64; QUANTILES],
}

/// How many quantiles a forecast has.
pub const QUANTILES: usize = 23;

/// What takes most of the samples of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Rules {
    /// The noise at the end: the run draws what its certificate needs.
    Noise,
    /// The way to the solution.
    Way {
        /// Of the samples of the finest certified run of the pilot, those that the noise does not explain.
        beyond_noise: u64,
        /// All samples of that run.
        of: u64,
    },
}

/// The ends of a range are at most this many times apart; a wider range is not given.
pub const WIDEST: f64 = 30.0;

/// Why there is no forecast.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Silence {
    /// Nothing to go by.
    #[error("no run of the pilot was certified within {samples} samples")]
    NothingCertified {
        /// The pilot's.
        samples: u128,
    },
    /// A run has not seen enough to forecast itself.
    #[error("after {samples} samples the run has not come far enough to tell")]
    TooEarly {
        /// The run's.
        samples: u128,
    },
    /// The target is far beyond what was reached.
    #[error(
        "the finest target reached so far is {finest:.2e}, {times:.0} times the target, and {}; the range would be {low:.0e} to \
         {high:.0e} samples",
        rules.words()
    )]
    TooFar {
        /// The finest target that was reached, over the one that was asked for.
        times: f64,
        /// The finest target that was reached.
        finest: f64,
        /// The low end of the range.
        low: f64,
        /// The high end.
        high: f64,
        /// What took most of the samples.
        rules: Rules,
    },
    /// No range would be of use.
    #[error(
        "certified runs of PAGE scatter a hundredfold from seed to seed: between two large batches it carries one error along, and while \
         that is large no certificate succeeds"
    )]
    Recursive,
    /// The runs of the pilot contradict each other, or the model.
    #[error(
        "the pilot's runs do not follow a law: they scatter by a factor of {factor:.1} around the best one; the range would be {low:.0e} to \
         {high:.0e} samples"
    )]
    Scattered {
        /// The typical factor between a run and the law.
        factor: f64,
        /// The low end of the range.
        low: f64,
        /// The high end.
        high: f64,
    },
}

/// A run of the pilot.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PilotRun {
    /// Its target.
    pub target: f64,
    /// What it drew, certificates included.
    pub samples: u128,
    /// Of those, what its steps drew.
    pub step_samples: u128,
    /// How many steps it made.
    pub steps: u64,
    /// The samples of its largest step.
    #[serde(default)]
    pub largest_step: u64,
    /// Whether it ended certified, and not for want of samples.
    pub certified: bool,
    /// E|g - grad f|^2 where it ended, as a certificate takes it: declared, or measured and enlarged a little.
    pub variance: f64,
}

/// A pilot: a few cheap runs of the method that shall be run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Pilot {
    /// About |grad f(x0)|, from a few samples.
    pub gradient_at_start: f64,
    /// The runs, from the coarsest target to the finest.
    pub runs: Vec<PilotRun>,
    /// All samples that were drawn.
    pub samples: u128,
    /// The rule of the run that is forecast.
    pub rule: StopRule,
    /// The rows of a table, which certificates may pass over.
    rows: Option<u64>,
    /// True if its runs correct an old estimate by small batches, between large ones.
    recursive: bool,
    /// True if its runs are the beginning of the run that is forecast.
    #[serde(default)]
    own: bool,
}

/// Samples at the end of a run, where the variance is not declared.
const LAST_LOOK: u64 = 64;
/// The coarsest target: half the gradient at the start, so that the run has to move, and this many times the target.
const COARSEST: f64 = 8.0;
/// From one target of the ladder to the next; a longer step as long as runs take less than this part of the budget.
const RUNG: f64 = std::f64::consts::SQRT_2;
const LONG_RUNG: f64 = 2.0;
const CHEAP: u128 = 40;
/// Once there is a range, from this many certified runs, the pilot ends before it has drawn more than this part of the middle.
const FEW: usize = 3;
const PART: f64 = 10.0;

/// The basis for the pilot's own certificates, which nobody will believe: it need not pay for the smallest number of
/// samples that an assumed kurtosis asks for, which would hide how the cost grows with the target.
fn unclaimed(basis: Basis) -> Basis {
    match basis {
        Basis::Kurtosis(_) => Basis::Kurtosis(1.0),
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
    /// The most samples of a pilot, unless told otherwise.
    pub const SAMPLES: u128 = 100_000;

    /// Runs the pilot with at most `budget` samples: until there is a range, and on to a tenth of what that forecasts. `run` starts the method for a target, best with a schedule that is
    /// [endless](crate::schedule::Schedule::endless): if only the runs counted that a short plan let be certified, the
    /// forecast would be too low.
    ///
    /// The runs have seeds of their own, none of which any other run has; their samples are counted as
    /// [`Role::Forecast`].
    pub fn run<W: Walk, E>(
        gate: &mut Gate,
        start: &[f64],
        rule: StopRule,
        budget: u128,
        run: impl Fn(&Gate, f64) -> Result<W, E>,
    ) -> Result<Self, PilotError<E>> {
        rule.check(gate.about())?;
        let budget = budget.min(gate.left());
        let rows = match gate.about().source {
            Source::Table { rows } => Some(rows),
            Source::Formula if rule.basis == Basis::Exact => Some(0),
            _ => None,
        };
        let affordable = u64::try_from(budget / 4).unwrap_or(u64::MAX);
        let mut first = gate.fork(Role::Forecast, 0, budget);
        let look = Means { x: start, role: Role::Pilot, attempt: 0, samples_each: 1 }
            .moments(&mut first, 0..PILOT.min(affordable));
        gate.absorb(Role::Forecast, &first);
        let (look, samples) = look?;
        let gradient_at_start = look.squared_mean().max(look.error2()).sqrt();
        let mut pilot =
            Self { gradient_at_start, runs: Vec::new(), samples, rule, rows, recursive: false, own: false };
        let own = StopRule { basis: unclaimed(rule.basis), ..rule };
        // Targets end at 1e100.
        let mut target = (0.5 * gradient_at_start).max(COARSEST * rule.target).min(1e100);
        while target >= rule.target && pilot.is_worth_another(budget) {
            let number = pilot.runs.len() as u64 + 1;
            let mut fork = gate.fork(Role::Forecast, number, budget - pilot.samples);
            let walk = run(&fork, target).map_err(PilotError::Run)?;
            let mut largest_step = 0;
            let walk = walk.certified(&fork, StopRule { target, ..own })?;
            let end = walk.tee(|record, _, _| largest_step = largest_step.max(record.n)).finish(&mut fork);
            let seen = end.and_then(|end| {
                let (samples, steps) = (fork.ledger().samples(), fork.ledger().steps().samples);
                let distance = squared_distance(&end.point, start).sqrt();
                let variance = match rule.basis.at_distance(distance).declared_variance() {
                    Some(declared) => declared,
                    None => UNSURE * variance_at(&mut fork, &end.point)?,
                };
                Ok((end, samples, steps, variance))
            });
            gate.absorb(Role::Forecast, &fork);
            let (end, samples, step_samples, variance) = seen?;
            if end.stop == Stop::Interrupted {
                return Err(Halt::Interrupted.into());
            }
            let certified = end.certification.is_some_and(|log| log.is_certified());
            pilot.samples += fork.ledger().samples();
            pilot.recursive |= fork.ledger().of(Role::Small).samples > 0;
            let steps = end.steps;
            let run = PilotRun { target, samples, step_samples, steps, largest_step, certified, variance };
            pilot.runs.push(run);
            // A run that reached its planned end uncertified tells nothing; a finer one is longer.
            if end.stop == Stop::OutOfBudget {
                break;
            }
            let rung = if samples <= budget / CHEAP { LONG_RUNG } else { RUNG };
            // The target itself is a rung, if the ladder comes so far.
            let next = target / rung;
            target = if target > rule.target { next.max(rule.target) } else { next };
        }
        Ok(pilot)
    }

    /// True if the next run, twice as dear as the last, fits the budget; and, once there is a range from a few runs, a tenth of what it forecasts.
    fn is_worth_another(&self, budget: u128) -> bool {
        let Some(last) = self.runs.last() else { return self.samples < budget };
        let next = self.samples.saturating_add(last.samples.saturating_mul(2));
        let enough = |forecast: Forecast| next as f64 > forecast.middle / PART;
        let few = self.runs.iter().filter(|run| run.certified).count() < FEW;
        next <= budget && (few || !self.forecast(self.rule.target).is_ok_and(enough))
    }

    /// What a run to a target draws if the noise alone decides, with this variance at its end and the run's own basis, or the
    /// pilot's.
    fn noise(&self, basis: Basis, target: f64, variance: f64) -> f64 {
        let StopRule { delta, share, .. } = self.rule;
        let guess = Some(Guess { norm: LIKELY * target, variance: None });
        let claim = Claim { target, delta: delta_of_attempt(delta, 1), basis, budget: None, guess };
        let sampled = claim.usual_samples(variance);
        let certificate = match self.rows {
            Some(rows) if basis == Basis::Exact => rows as f64,
            Some(rows) => sampled.min(rows as f64),
            None => sampled,
        };
        (certificate / share).max(1.0)
    }

    /// The forecast for a target, or why there is none.
    pub fn forecast(&self, target: f64) -> Result<Forecast, Silence> {
        model::forecast(self, target)
    }
}

/// E|g - grad f|^2 at a point, as far as the budget allows.
fn variance_at(gate: &mut Gate, x: &[f64]) -> Result<f64, Halt> {
    let samples = LAST_LOOK.min(u64::try_from(gate.left()).unwrap_or(u64::MAX));
    if samples < 2 {
        return Ok(0.0);
    }
    let means = Means { x, role: Role::Pilot, attempt: 0, samples_each: 1 };
    Ok(means.moments(gate, 0..samples)?.0.variance())
}

impl Rules {
    /// What takes the samples, in words.
    pub fn words(&self) -> String {
        match self {
            Self::Noise => "most of the cost is the noise at the solution".into(),
            Self::Way { beyond_noise, of } => {
                let share = 100.0 * *beyond_noise as f64 / (*of).max(1) as f64;
                format!(
                    "most of the cost is getting there ({share:.0} % at the finest target so far), not noise"
                )
            }
        }
    }
}

impl Forecast {
    /// The forecast for a run that has drawn so many samples and has not ended: of the runs that the forecast expects,
    /// those count that are at least as long as that. One that has outlasted all of them is expected to last longer still: half of such runs by a
    /// fifth of what they have drawn at least.
    #[must_use]
    pub fn given(&self, drawn: f64) -> Self {
        let behind = model::part_below(&self.quantiles, drawn.max(1.0));
        let quantiles = std::array::from_fn(|i| {
            let part = model::part_of(i);
            // Far out a lognormal law ends at once; the power law of index 4 does not.
            let least = drawn * (1.0 - part).powf(-0.25);
            model::quantile(&self.quantiles, behind + (1.0 - behind) * part).max(least)
        });
        Self { quantiles, ..Self::from_quantiles(quantiles, self.rules) }
    }

    fn from_quantiles(quantiles: [f64; QUANTILES], rules: Rules) -> Self {
        // A twelfth of the runs on either side, by the forecast's own account.
        let [low, middle, high] = [1, QUANTILES / 2, QUANTILES - 2].map(|i| quantiles[i]);
        Self { low, middle, high, rules, quantiles }
    }
}
