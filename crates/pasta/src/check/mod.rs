//! Whether an oracle can be believed: a few samples that catch the usual slips.
//!
//! Runs of oracles that are not of this library begin with it ([`before_run`]); [`Gate::without_check`] turns that off.
//!
//! A slip in an oracle does not crash: it returns numbers, and a run on them ends as planned at a point that means nothing. Each of
//! these is caught at the start, by samples that are counted under [`Role::Check`] and used for nothing else: a generator of one's own instead of
//! the stream, a fixed seed, a sum that is overwritten instead of added to, a weight that is ignored, a difference that is not the difference, NaN,
//! and a loss that does not belong to the gradient, sample by sample and coordinate by coordinate. `docs/check.md` has a table of slips.
//! A certificate compares losses with gradients once more at its point.
//!
//! ```
//! use pasta_opt::check::{self, Effort, Slip};
//! use pasta_opt::prelude::*;
//!
//! struct Mean;
//!
//! impl Sampled for Mean {
//!     fn dim(&self) -> usize { 1 }
//!     fn identity(&self) -> String { "mean".into() }
//!     fn add_gradient(&self, weight: f64, x: &[f64], xi: &mut Stream, out: &mut [f64]) -> Result<(), OracleError> {
//!         out[0] = weight * (x[0] - xi.normal()); // = where += belongs
//!         Ok(())
//!     }
//! }
//!
//! let mut gate = Gate::new(Batched::new(Mean), 1);
//! let findings = check::oracle(&mut gate, &[1.0], Effort::Quick)?;
//! assert_eq!(findings.slips, [Slip::Overwrites { samples: 5 }]);
//! # Ok::<(), Halt>(())
//! ```

mod slip;
mod slopes;
mod sums;

use serde::{Deserialize, Serialize};

use self::slopes::{Place, Plan};
use self::sums::Sums;
use crate::draws::Role;
use crate::gate::{Gate, Halt};
use crate::kernels::squared_norm;
use crate::oracle::OracleError;

pub use self::slip::{Slip, sentences};
pub use self::slopes::Slopes;

/// How many samples a check may draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effort {
    /// A few dozen samples, at the start of a run; at most a fifth of what its budget has left.
    Quick,
    /// A few hundred.
    Thorough,
}

impl Effort {
    /// The samples that the check draws of an oracle of which nothing raises a suspicion. Where something does, it draws at most 100 more; and some 550
    /// more where sums cannot be compared with their terms and look like means.
    pub fn samples(self) -> u128 {
        let Size { sum, losses, directions, .. } = self.size(u128::MAX);
        u128::from(6 * sum + losses * directions)
    }

    /// The least budget of a run that is checked: the check gets a fifth of it, and needs 20 samples.
    pub const LEAST_BUDGET: u128 = SHARE * LEAST;

    fn size(self, left: u128) -> Size {
        let (sum, losses, directions, each) = match self {
            Self::Quick => (5, 16, 1, 4),
            Self::Thorough => (37, 64, 4, 16),
        };
        let most = match self {
            Self::Quick => u64::try_from(left / SHARE).unwrap_or(u64::MAX),
            Self::Thorough => u64::MAX,
        };
        // Of a small budget a quarter goes into losses, and a quarter is kept for what raises a suspicion.
        let losses = losses.min((most / 4).max(4));
        let sum = sum.min((most.saturating_sub(losses + most / 4) / 6).max(2));
        Size { sum, losses, directions, each, most }
    }
}

/// The part of a budget, and the samples at least, that a check before a run may draw.
const SHARE: u128 = 5;
const LEAST: u128 = 20;

/// Fresh samples that look again where losses do not agree with gradients.
const CONFIRMING: u64 = 24;

/// How many samples the parts of a check have.
#[derive(Debug, Clone, Copy)]
struct Size {
    /// Samples of a sum.
    sum: u64,
    /// Samples whose losses are compared with their gradients along a direction.
    losses: u64,
    directions: u64,
    /// Samples along each coordinate.
    each: u64,
    /// The most samples of the whole check.
    most: u64,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Findings {
    /// What is wrong; nothing, of an oracle that can be believed as far as a few samples tell.
    pub slips: Vec<Slip>,
    /// True if samples at the start differ from each other.
    pub has_noise: bool,
    /// True if the same samples could be asked for twice: without that most of the check cannot be made.
    pub is_repeatable: bool,
    /// Losses against gradients, direction by direction; none where there are no losses.
    pub slopes: Vec<Slopes>,
    /// The coordinates along which losses were compared with gradients, sample by sample.
    pub coordinates: usize,
    /// The samples that it took.
    pub samples: u128,
}

impl Findings {
    /// What should be said before a run on an oracle that passed.
    pub fn note(&self) -> Option<&'static str> {
        (!self.has_noise).then_some(NO_NOISE)
    }
}

/// What is said of an oracle whose samples are all equal.
const NO_NOISE: &str = "no noise at all was seen: all samples at the start are equal. If there should be noise, the oracle ignores the \
                        generator that it is given (a fixed seed inside it?); if there is none, a certificate needs it declared (variance = 0)";

/// Checks an oracle at and near a point.
///
/// What is not finite, or an oracle that cannot repeat a sample, ends the check early: what else is wrong cannot be told then.
pub fn oracle(gate: &mut Gate, x: &[f64], effort: Effort) -> Result<Findings, Halt> {
    let before = gate.ledger().of(Role::Check).samples;
    let mut findings = Findings {
        slips: Vec::new(),
        has_noise: true,
        is_repeatable: gate.about().shared,
        slopes: Vec::new(),
        coordinates: 0,
        samples: 0,
    };
    let size = effort.size(gate.left());
    match (Checker { gate, x, size, before }).all(&mut findings) {
        Ok(()) => {}
        Err(Early::Slip(slip)) => findings.slips.push(slip),
        Err(Early::Halt(halt)) => return Err(halt),
    }
    findings.samples = gate.ledger().of(Role::Check).samples - before;
    Ok(findings)
}

/// Checks the oracle of a run that is about to begin, with a few dozen samples, and refuses one that fails.
///
/// [`Walk::finish`](crate::walk::Walk::finish) does this for every oracle that is not of this library; a program that drives a walk step by step calls it. Nothing is drawn
/// if the gate [trusts](Gate::without_check) its oracle, if it was checked before, if a step was taken already, or if the budget leaves less than
/// [`Effort::LEAST_BUDGET`].
pub fn before_run(gate: &mut Gate, x: &[f64]) -> Result<Option<Findings>, Halt> {
    let begun = gate.ledger().steps().samples > 0;
    if !gate.needs_check() || begun || gate.left() < Effort::LEAST_BUDGET {
        return Ok(None);
    }
    let before = gate.ledger().clone();
    // What did not come to its end is made, and counted, again when the run is resumed.
    let findings = oracle(gate, x, Effort::Quick).inspect_err(|_| gate.rewind(before))?;
    if findings.slips.is_empty() {
        gate.trust();
        return Ok(Some(findings));
    }
    Err(Halt::Oracle(OracleError::new(CheckError { slips: findings.slips })))
}

/// Why a run did not begin: its oracle is wrong. The source of the [`OracleError`] of [`before_run`].
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("it failed its check: {}", sentences(slips))]
#[non_exhaustive]
pub struct CheckError {
    /// What is wrong.
    pub slips: Vec<Slip>,
}

/// Losses beside gradients at a point that is to be certified.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Agreement {
    /// The samples whose losses were compared with their gradients.
    pub samples: u64,
    /// How they contradict each other, if they do.
    pub contradiction: Option<Contradiction>,
}

/// Losses that change at another rate than gradients say.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Contradiction {
    /// Along which coordinate, counted from 0; `None` along a random direction.
    pub coordinate: Option<usize>,
    /// The mean rate of change of the losses; `None` where they do not change at all.
    pub losses: Option<f64>,
    /// The mean of the gradients along the line.
    pub gradients: Option<f64>,
}

/// The samples that [`again`] may draw.
pub(crate) const AGAIN: u64 = 16 + CONFIRMING;

/// Compares losses with gradients once more at a point that is to be certified, with fresh samples under [`Role::Slopes`]: [`AGAIN`] of them at most. `None` where
/// there is nothing to compare: no losses, gradients that are not pathwise, samples that cannot be repeated, losses that do not move, or answers that are not finite.
pub(crate) fn again(gate: &mut Gate, x: &[f64], number: u64) -> Result<Option<Agreement>, Halt> {
    let about = gate.about();
    if !(about.losses && about.shared && about.pathwise) || gate.about().trusted {
        return Ok(None);
    }
    let plan = Plan { samples: 16, each: 4, evaluations: u64::MAX, confirming: CONFIRMING };
    let compared = (Place { gate, x, role: Role::Slopes, base: number << 10 }).compare(1, plan);
    let found = match compared {
        Ok(found) => found,
        Err(Early::Slip(_)) => return Ok(None),
        Err(Early::Halt(halt)) => return Err(halt),
    };
    let contradiction = found.slips.first().map(Contradiction::of);
    let is_compared = found.moving > 0 || contradiction.is_some();
    Ok(is_compared.then_some(Agreement { samples: plan.samples, contradiction }))
}

impl Contradiction {
    fn of(slip: &Slip) -> Self {
        let (coordinate, losses, gradients) = match *slip {
            Slip::Loss { losses, gradients, .. } => (None, Some(losses), Some(gradients)),
            Slip::Forgotten { coordinate, losses, .. } => (Some(coordinate), Some(losses), Some(0.0)),
            Slip::Coordinate { coordinate, losses, gradients, .. } => {
                (Some(coordinate), Some(losses), Some(gradients))
            }
            Slip::Swapped { first, .. } => (Some(first), None, None),
            _ => (None, None, None),
        };
        Self { coordinate, losses, gradients }
    }

    /// What speaks against the gradients.
    pub fn sentence(&self) -> String {
        let line = match self.coordinate {
            Some(coordinate) => format!("coordinate {coordinate} (counted from 0)"),
            None => "a direction".into(),
        };
        let rates = match (self.losses, self.gradients) {
            (Some(losses), Some(gradients)) => {
                format!(" ({losses:.4e} in the mean, where the gradients say {gradients:.4e})")
            }
            _ => String::new(),
        };
        format!("the losses of samples at x do not change along {line} as their gradients say{rates}")
    }
}

/// Why a check ended before its end.
#[derive(Debug)]
enum Early {
    Slip(Slip),
    Halt(Halt),
}

struct Checker<'a> {
    gate: &'a mut Gate,
    x: &'a [f64],
    size: Size,
    /// The samples of earlier checks.
    before: u128,
}

impl Checker<'_> {
    fn all(&mut self, findings: &mut Findings) -> Result<(), Early> {
        let n = self.size.sum;
        let open = self.sums(n).compare(findings)?;
        if !findings.is_repeatable {
            return Ok(());
        }
        if self.gate.about().losses {
            self.losses(findings)?;
        }
        // What costs more comes last, out of what the budget spares.
        if !self.gate.about().additive {
            let most = self.left();
            let slip = self.sums(n).mean_for_sum(most)?;
            findings.slips.extend(slip);
        }
        if findings.slips.is_empty() {
            let most = self.left();
            let slip = self.sums(n).ignores_seed(&open, most)?;
            findings.slips.extend(slip);
        }
        Ok(())
    }

    fn sums(&mut self, n: u64) -> Sums<'_> {
        Sums { gate: self.gate, x: self.x, n }
    }

    /// Samples that it may still draw.
    fn left(&self) -> u64 {
        let drawn = self.gate.ledger().of(Role::Check).samples - self.before;
        u64::try_from(u128::from(self.size.most).saturating_sub(drawn)).unwrap_or(u64::MAX)
    }

    /// Losses against gradients, direction by direction. Coordinates come with the first.
    fn losses(&mut self, findings: &mut Findings) -> Result<(), Early> {
        let Size { losses, directions, each, most, .. } = self.size;
        for number in 1..=directions {
            let spared = self.left().saturating_sub(losses);
            let evaluations = if number == 1 { most.saturating_sub(4 * losses).max(8) } else { 0 };
            let plan = Plan { samples: losses, each, evaluations, confirming: CONFIRMING.min(spared) };
            let found =
                (Place { gate: self.gate, x: self.x, role: Role::Check, base: 0 }).compare(number, plan)?;
            findings.slopes.push(found.slopes);
            findings.coordinates = findings.coordinates.max(found.coordinates);
            if !findings.slips.iter().any(Slip::is_of_losses) {
                findings.slips.extend(found.slips);
            }
        }
        Ok(())
    }
}

fn finite<T>(asked: Result<T, Halt>, away: f64) -> Result<(), Early> {
    match asked {
        Ok(_) => Ok(()),
        Err(Halt::NotFinite { .. }) => Err(Early::Slip(Slip::NotFinite { away })),
        Err(halt) => Err(Early::Halt(halt)),
    }
}

fn norm(v: &[f64]) -> f64 {
    squared_norm(v).sqrt()
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}
