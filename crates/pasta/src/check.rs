//! Whether an oracle can be believed: a few samples that catch the usual slips.
//!
//! Runs of oracles that are not of this library begin with it ([`before_run`]); [`Gate::believing`] turns that off.
//!
//! A slip in an oracle does not crash: it returns numbers, and a run on them ends as planned at a point that means nothing. Each of
//! these is caught at the start, by samples that are counted under [`Role::Check`] and used for nothing else: a generator of one's own instead of
//! the stream, a sum that is overwritten instead of added to, a weight that is ignored, a difference that is not the difference, NaN, a seed
//! that is ignored, and a loss that does not belong to the gradient.
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

use serde::Serialize;

use crate::draws::{Address, Role};
use crate::gate::{Gate, Halt};
use crate::kernels::squared_norm;
use crate::oracle::{Answer, Batch, OracleError, Request};

/// How many samples a check may draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effort {
    /// A few dozen samples, at the start of a run.
    Quick,
    /// A few hundred, for whoever asks.
    Thorough,
}

impl Effort {
    /// Samples of a sum, samples for losses, and directions along which losses are compared.
    fn size(self) -> (u64, u64, u64) {
        match self {
            Self::Quick => (5, 16, 1),
            Self::Thorough => (37, 64, 4),
        }
    }

    /// The most samples that the check draws of an oracle whose sums can be compared with their terms. Of another it draws 20 more, or 150 for
    /// [`Thorough`](Self::Thorough), and some 550 if its sums look like means.
    pub fn samples(self) -> u128 {
        let (sum, losses, directions) = self.size();
        u128::from(6 * sum + losses * directions)
    }
}

/// A slip that a check found in an oracle.
#[derive(Debug, Clone, PartialEq, Serialize, thiserror::Error)]
#[serde(rename_all = "kebab-case", tag = "kind")]
#[non_exhaustive]
pub enum Slip {
    /// NaN, infinity, or too large to be squared.
    #[error("its answer {away} from the start is not finite, or too large to be squared")]
    NotFinite {
        /// How far from the start.
        away: f64,
    },
    /// Two answers to one question.
    #[error(
        "asked twice for the same {samples} samples, it gave two answers, {relative:.1e} apart (relatively): it draws from a generator of \
         its own instead of that of the sample, keeps something from one call to the next, or depends on its process"
    )]
    OwnGenerator {
        /// How many samples.
        samples: u64,
        /// The distance of the answers over their size.
        relative: f64,
    },
    /// The last sample stands for the sum.
    #[error(
        "the sum of {samples} samples is the last of them: it overwrites the sum instead of adding to it"
    )]
    Overwrites {
        /// How many samples.
        samples: u64,
    },
    /// A sum that is not the sum.
    #[error(
        "the sum of {samples} samples is not the sum of the same samples asked for one by one, but off by {relative:.1e} of it: a sample \
         must depend on its address alone, and a sum must hold each once"
    )]
    NotAdditive {
        /// How many samples.
        samples: u64,
        /// The error of the sum over the size of its terms.
        relative: f64,
    },
    /// The mean, or a single sample, in place of the sum.
    #[error(
        "the sum of the {} of {samples} samples is no larger than that of one sample ({sum:.3e} against {single:.3e} in the mean square): it is \
         their mean, or leaves out all but one",
        if *of_losses { "losses" } else { "gradients" }
    )]
    MeanForSum {
        /// How many samples.
        samples: u64,
        /// Whether it is the losses that are not added up, rather than the gradients.
        of_losses: bool,
        /// The size of a sum, in the mean square.
        sum: f64,
        /// The size of one sample.
        single: f64,
    },
    /// Other addresses, the same samples.
    #[error(
        "two batches of {samples} samples under different addresses have the same sum to the last bit: it ignores its seed"
    )]
    IgnoresSeed {
        /// How many samples.
        samples: u64,
    },
    /// The sum of gradients in place of the difference.
    #[error("the difference of two points is g(x) + g(y): it ignores its weight, which is -1 at y")]
    IgnoresWeight,
    /// A difference that is not the difference.
    #[error(
        "the difference of two points is not g(x) - g(y) of the same samples, but off by {relative:.1e} of the gradients"
    )]
    NotTheDifference {
        /// The error over the size of the gradients.
        relative: f64,
    },
    /// Losses that change at another rate than the gradient says.
    #[error("{}", loss_sentence(*losses, *gradients, *difference, *error, *factor, *samples))]
    Loss {
        /// The mean rate of change of the losses.
        losses: f64,
        /// The mean of the gradients along the direction.
        gradients: f64,
        /// The difference of the two means.
        difference: f64,
        /// By how much chance and rounding may move it.
        error: f64,
        /// What the gradient of every sample is times the rate of its loss, if they are proportional.
        factor: Option<f64>,
        /// How many samples.
        samples: u64,
    },
}

fn loss_sentence(
    losses: f64,
    gradients: f64,
    difference: f64,
    error: f64,
    factor: Option<f64>,
    samples: u64,
) -> String {
    let rates = format!(
        "the loss does not belong to the gradient: along a direction the losses of {samples} samples change at the rate {losses:.4e} in \
         the mean, where their gradients say {gradients:.4e}"
    );
    match factor {
        Some(factor) => {
            format!("{rates}; the gradient of each sample is {factor:.4} times what its loss says")
        }
        None => format!(
            "{rates}; the difference is {difference:.1e}, and chance and rounding explain {error:.1e}"
        ),
    }
}

/// How losses and gradients compare along a direction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Slopes {
    /// The mean rate of change of the losses.
    pub losses: f64,
    /// The mean of the gradients along the direction.
    pub gradients: f64,
    /// Their difference.
    pub difference: f64,
    /// By how much chance and rounding may move the difference.
    pub error: f64,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Findings {
    /// What is wrong; nothing, of an oracle that can be believed as far as a few samples tell.
    pub slips: Vec<Slip>,
    /// Whether samples at the start differ from each other at all.
    pub has_noise: bool,
    /// Whether the same samples could be asked for twice: without that most of the check cannot be made.
    pub is_repeatable: bool,
    /// Losses against gradients, direction by direction; none where there are no losses.
    pub slopes: Vec<Slopes>,
    /// The samples that it took.
    pub samples: u128,
}

/// Checks an oracle at and near a point.
///
/// What is not finite, or an oracle that cannot repeat a sample, ends the check early: what else is wrong cannot be told then.
pub fn oracle(gate: &mut Gate, x: &[f64], effort: Effort) -> Result<Findings, Halt> {
    let before = gate.ledger().of(Role::Check).samples;
    let is_repeatable = gate.about().shared;
    let mut findings =
        Findings { slips: Vec::new(), has_noise: true, is_repeatable, slopes: Vec::new(), samples: 0 };
    match (Checker { gate, x, effort }).all(&mut findings) {
        Ok(()) => {}
        Err(Early::Slip(slip)) => findings.slips.push(slip),
        Err(Early::Halt(halt)) => return Err(halt),
    }
    findings.samples = gate.ledger().of(Role::Check).samples - before;
    Ok(findings)
}

/// Checks the oracle of a run that is about to begin, with a few dozen samples, and refuses one that is not to be believed.
///
/// [`Walk::finish`](crate::walk::Walk::finish) does this for every oracle that is not of this library; who drives a walk step by step calls it. Nothing is drawn
/// if the gate [believes](Gate::believing) its oracle, if it was checked before, if a step was taken already, or if a budget is below ten times the
/// samples of the check.
pub fn before_run(gate: &mut Gate, x: &[f64]) -> Result<Option<Findings>, Halt> {
    let begun = gate.ledger().steps().samples > 0;
    if !gate.doubts() || begun || gate.left() / 10 < Effort::Quick.samples() {
        return Ok(None);
    }
    let before = gate.ledger().clone();
    // What did not come to its end is made, and counted, again when the run is resumed.
    let findings = oracle(gate, x, Effort::Quick).inspect_err(|_| gate.rewind(before))?;
    if findings.slips.is_empty() {
        gate.believe();
        return Ok(Some(findings));
    }
    Err(Halt::Oracle(OracleError::new(CheckError { slips: findings.slips })))
}

/// Why a run did not begin: its oracle is wrong. The source of the [`OracleError`] of [`before_run`].
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("it is not to be believed: {}", sentences(slips))]
#[non_exhaustive]
pub struct CheckError {
    /// What is wrong.
    pub slips: Vec<Slip>,
}

/// The slips as one line of sentences.
pub fn sentences(slips: &[Slip]) -> String {
    slips.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Why a check ended before its end.
enum Early {
    Slip(Slip),
    Halt(Halt),
}

/// Sums are compared up to this part of the size of their terms. Rounding is below it by far, slips are above it.
const ROUNDING: f64 = 1e-9;

/// Of gradients and of losses: the size of a sum, and of its change from one point to another.
type Sizes = [[f64; 2]; 2];

struct Checker<'a> {
    gate: &'a mut Gate,
    x: &'a [f64],
    effort: Effort,
}

impl Checker<'_> {
    fn all(&mut self, findings: &mut Findings) -> Result<(), Early> {
        let (n, ..) = self.effort.size();
        let sum = self.sum(0, 0..n)?;
        if !findings.is_repeatable {
            findings.has_noise = self.sum(0, 0..n)? != sum;
            return Ok(());
        }
        let again = self.sum(0, 0..n)?;
        if sum.iter().zip(&again).any(|(a, b)| a.to_bits() != b.to_bits()) {
            let relative = distance(&sum, &again) / norm(&sum).max(norm(&again));
            return Err(Early::Slip(Slip::OwnGenerator { samples: n, relative }));
        }
        let singles: Vec<Vec<f64>> = (0..n).map(|i| self.sum(0, i..i + 1)).collect::<Result<_, _>>()?;
        findings.has_noise = singles.iter().any(|single| *single != singles[0]);
        if self.gate.is_additive() {
            findings.slips.extend(not_the_sum(&sum, &singles));
        } else {
            findings.slips.extend(self.mean_for_sum(n)?);
        }
        // Where few values occur, two sums may agree by chance.
        let all_differ = (1..singles.len()).all(|i| !singles[..i].contains(&singles[i]));
        if all_differ && n > 1 && self.sum(1, 0..n)? == sum {
            findings.slips.push(Slip::IgnoresSeed { samples: n });
        }
        findings.slips.extend(self.difference(n)?);
        // An oracle that overwrites is wrong about its differences too: once is enough.
        findings.slips.dedup_by(|a, b| std::mem::discriminant(a) == std::mem::discriminant(b));
        if self.gate.about().losses {
            self.losses(findings)?;
        }
        Ok(())
    }

    /// The sum of some samples at the start.
    fn sum(&mut self, step: u64, samples: std::ops::Range<u64>) -> Result<Vec<f64>, Early> {
        let batch = Batch { samples, ..self.gate.batch(Role::Check, step, 0) };
        let mut sum = vec![0.0; self.x.len()];
        let asked = self.gate.ask(Request::sums(batch, &[self.x]), &mut Answer::new(&mut sum));
        finite(asked, 0.0)?;
        Ok(sum)
    }

    /// Whether sums over samples are sums, where they cannot be compared with their terms.
    ///
    /// The mean square of a sum of n independent samples is at least n times that of one, whatever their law is; that of their mean is at most that of
    /// one. A few samples raise a suspicion, which more samples confirm or not, by medians of mean squares, which no outlier moves: an honest oracle pays for
    /// them now and then, and is not accused. Draws that cancel each other, as antithetic ones do, may make the sum small where the gradient is; the change from one point to
    /// another is then still that of a sum.
    fn mean_for_sum(&mut self, n: u64) -> Result<Option<Slip>, Early> {
        const SAMPLES: u64 = 16;
        const TIMES: u64 = 32;
        const GROUP: usize = 8;
        let mean = |sizes: &[Sizes], of: usize| -> f64 {
            sizes.iter().map(|sizes| sizes[of][0].powi(2)).sum::<f64>() / sizes.len() as f64
        };
        // In doubt, the mean square of the sums is large and that of the single samples small.
        let medians = |sums: &[Sizes], singles: &[Sizes], of: usize, what: usize| {
            let groups = |sizes: &[Sizes]| {
                let square = |group: &[Sizes]| group.iter().map(|sizes| sizes[of][what].powi(2)).sum::<f64>();
                let mut squares: Vec<f64> = sizes.chunks_exact(GROUP).map(square).collect();
                squares.sort_by(f64::total_cmp);
                squares.into_iter().map(|square| square / GROUP as f64).collect::<Vec<f64>>()
            };
            let (sums, singles) = (groups(sums), groups(singles));
            [sums[sums.len() / 2], singles[(singles.len() - 1) / 2]]
        };
        let (sums, singles) = (self.sizes(100, n, 3)?, self.sizes(200, 1, n)?);
        let suspects = [0, 1].map(|of| mean(&sums, of) < 4.0 * mean(&singles, of));
        if suspects == [false; 2] || self.gate.left() / 10 < u128::from(TIMES * (SAMPLES + 1)) {
            return Ok(None);
        }
        let (sums, singles) = (self.sizes(300, SAMPLES, TIMES)?, self.sizes(400, 1, TIMES)?);
        let medians = |of: usize, what: usize| medians(&sums, &singles, of, what);
        let is_small = |[sum, single]: [f64; 2]| sum < 2.0 * single;
        // Where most samples do not change at all, as between the kinks of a loss, the change says nothing.
        let is_wrong = |of: usize| {
            let changes = medians(of, 1);
            suspects[of] && is_small(medians(of, 0)) && (changes[1] == 0.0 || is_small(changes))
        };
        Ok((0..2).find(|of| is_wrong(*of)).map(|of| {
            let [sum, single] = medians(of, 0).map(f64::sqrt);
            Slip::MeanForSum { samples: SAMPLES, of_losses: of == 1, sum, single }
        }))
    }

    /// The sizes of the sums of so many batches of n samples at the start, and of their changes to a point nearby.
    fn sizes(&mut self, step: u64, n: u64, batches: u64) -> Result<Vec<Sizes>, Early> {
        let has_losses = self.gate.about().losses;
        let (y, away) = self.moved(0, 1e-2);
        let points: [&[f64]; 2] = [self.x, &y];
        let d = y.len();
        let (mut sums, mut losses) = (vec![0.0; 2 * d], [0.0; 2]);
        let mut all = Vec::new();
        for i in 0..batches {
            let batch = self.gate.batch(Role::Check, step + i, n);
            let room: &mut [f64] = if has_losses { &mut losses } else { &mut [] };
            let mut answer = Answer { gradients: &mut sums, losses: room, support: d };
            let request = Request { losses: has_losses, ..Request::sums(batch, &points) };
            finite(self.gate.ask(request, &mut answer), away)?;
            let (here, there) = sums.split_at(d);
            let [loss, other] = losses;
            all.push([[norm(here), distance(here, there)], [loss.abs(), (loss - other).abs()]]);
        }
        Ok(all)
    }

    /// What is wrong with differences.
    fn difference(&mut self, n: u64) -> Result<Option<Slip>, Early> {
        let (y, away) = self.moved(0, 1e-3);
        let points: [&[f64]; 2] = [self.x, &y];
        let d = self.x.len();
        let (mut both, mut difference) = (vec![0.0; 2 * d], vec![0.0; d]);
        let batch = self.gate.batch(Role::Check, 2, n);
        finite(self.gate.ask(Request::sums(batch.clone(), &points), &mut Answer::new(&mut both)), away)?;
        let asked = self.gate.ask(Request::differences(batch, &points), &mut Answer::new(&mut difference));
        finite(asked, away)?;
        let (gx, gy) = both.split_at(d);
        let combined = |sign: f64| -> Vec<f64> { gx.iter().zip(gy).map(|(a, b)| a + sign * b).collect() };
        let size = norm(gx) + norm(gy);
        // A few samples may cancel; what each of them adds is what rounding is measured by.
        let is =
            |what: &[f64]| distance(&difference, what) <= ROUNDING * (n as f64) * size.max(f64::MIN_POSITIVE);
        Ok(if is(&combined(-1.0)) {
            None
        } else if is(&combined(1.0)) {
            Some(Slip::IgnoresWeight)
        } else if is(&gy.iter().map(|g| -g).collect::<Vec<_>>()) {
            Some(Slip::Overwrites { samples: n })
        } else {
            Some(Slip::NotTheDifference { relative: distance(&difference, &combined(-1.0)) / size })
        })
    }

    /// Losses against gradients: central differences along random directions, the same samples at all points, at two scales.
    fn losses(&mut self, findings: &mut Findings) -> Result<(), Early> {
        let (_, n, directions) = self.effort.size();
        for direction in 1..=directions {
            let [coarse, fine] = self.slopes(direction, n)?;
            findings.slopes.push(fine.0);
            // What kinks and curvature do depends on the scale, what a slip does does not: a start on a kink is off by a hundredth at a hundredth of the scale.
            let is_everywhere = fine.0.difference.abs() > 0.1 * coarse.0.difference.abs();
            let is_wrong = coarse.1.is_some() && fine.1.is_some() && is_everywhere;
            let factor = fine.1.flatten();
            if is_wrong && !findings.slips.iter().any(|slip| matches!(slip, Slip::Loss { .. })) {
                let Slopes { losses, gradients, difference, error } = fine.0;
                findings.slips.push(Slip::Loss { losses, gradients, difference, error, factor, samples: n });
            }
        }
        Ok(())
    }

    /// The slopes along a direction at two scales, each with how they contradict each other, if they do.
    fn slopes(&mut self, direction: u64, n: u64) -> Result<[(Slopes, Contradiction); 2], Early> {
        const SCALES: [f64; 2] = [1e-2, 1e-4];
        let v = self.direction(direction);
        let d = v.len();
        let at = |h: f64| -> Vec<f64> { self.x.iter().zip(&v).map(|(x, v)| x + h * v).collect() };
        let points = SCALES.map(|h| [at(h), at(-h)]).concat();
        let points: Vec<&[f64]> = points.iter().map(Vec::as_slice).collect();
        let mut pairs: [Vec<(f64, f64)>; 2] = Default::default();
        let mut sizes = 0.0;
        let (mut gradients, mut losses) = (vec![0.0; 4 * d], vec![0.0; 4]);
        for i in 0..n {
            let batch = Batch { samples: i..i + 1, ..self.gate.batch(Role::Check, 2 + direction, 0) };
            let mut answer = Answer { gradients: &mut gradients, losses: &mut losses, support: d };
            let asked = self.gate.ask(Request { losses: true, ..Request::sums(batch, &points) }, &mut answer);
            finite(asked, SCALES[0] * norm(&v))?;
            let along =
                |k: usize| -> f64 { gradients[k * d..(k + 1) * d].iter().zip(&v).map(|(g, v)| g * v).sum() };
            for (j, h) in SCALES.into_iter().enumerate() {
                let rate = (losses[2 * j] - losses[2 * j + 1]) / (2.0 * h);
                pairs[j].push((rate, 0.5 * (along(2 * j) + along(2 * j + 1))));
            }
            sizes += losses.iter().map(|loss| loss.abs()).sum::<f64>() / 4.0;
        }
        let size = sizes / n as f64;
        Ok([0, 1].map(|j| compare(&pairs[j], SCALES[j], size)))
    }

    /// The start moved a little in a random direction, and by how much.
    fn moved(&self, number: u64, h: f64) -> (Vec<f64>, f64) {
        let v = self.direction(number);
        let y = self.x.iter().zip(&v).map(|(x, v)| x + h * v).collect();
        (y, h * norm(&v))
    }

    /// A random direction in which each coordinate moves by about its own size, so that none leaves its domain.
    fn direction(&self, number: u64) -> Vec<f64> {
        let (seed, sample) = (self.gate.seed(), Address::WHOLE_BATCH - 1);
        let mut xi = Address { seed, role: Role::Check, step: number, sample }.stream();
        let mean = self.x.iter().map(|x| x.abs()).sum::<f64>() / self.x.len().max(1) as f64;
        let usual = if mean > 0.0 && mean.is_finite() { mean } else { 1.0 };
        let size = |x: f64| if x == 0.0 { usual } else { x.abs() };
        self.x.iter().map(|&x| size(x) * xi.normal()).collect()
    }
}

/// The mean difference of the two rates of each sample must be within this many of its standard errors. Student's law with 15 degrees of
/// freedom goes beyond with probability 10^-6.
const ERRORS: f64 = 8.0;

/// `None` where nothing speaks against the losses; the factor where each sample is off by the same one.
type Contradiction = Option<Option<f64>>;

/// Whether rates of losses and of gradients, sample by sample, contradict each other.
fn compare(pairs: &[(f64, f64)], h: f64, size: f64) -> (Slopes, Contradiction) {
    let n = pairs.len() as f64;
    let mean = |of: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / n;
    let (losses, gradients) = (mean(&|p| p.0), mean(&|p| p.1));
    let difference = mean(&|p| p.0 - p.1);
    let variance = mean(&|p| (p.0 - p.1 - difference).powi(2)) * n / (n - 1.0);
    let sizes = mean(&|p| p.0.abs() + p.1.abs());
    // Curvature of the third order, and the rounding of losses.
    let allowed = (10.0 * h * h + 1e-6) * sizes + 8.0 * f64::EPSILON * size / h;
    let error = ERRORS * (variance / n).sqrt() + allowed;
    // Rates of the same samples that are proportional, but not equal, say it with far fewer samples than their means.
    let (square, product) = (mean(&|p| p.0 * p.0), mean(&|p| p.0 * p.1));
    let factor = product / square;
    let residual = mean(&|p| (p.1 - factor * p.0).powi(2)).sqrt();
    let is_proportional = square > 0.0 && residual <= 1e-3 * sizes + allowed && (factor - 1.0).abs() > 1e-2;
    let off = is_proportional && (factor - 1.0).abs() * square.sqrt() > 4.0 * allowed;
    let contradiction = match (off, difference.abs() > error) {
        (true, _) => Some(Some(factor)),
        (false, true) => Some(None),
        (false, false) => None,
    };
    (Slopes { losses, gradients, difference, error }, contradiction)
}

/// What is wrong with a sum, beside its terms.
fn not_the_sum(sum: &[f64], singles: &[Vec<f64>]) -> Option<Slip> {
    let samples = singles.len() as u64;
    let mut expected = vec![0.0; sum.len()];
    singles.iter().for_each(|single| expected.iter_mut().zip(single).for_each(|(e, g)| *e += g));
    let size: f64 = singles.iter().map(|single| norm(single)).sum::<f64>().max(f64::MIN_POSITIVE);
    let relative = distance(sum, &expected) / size;
    if relative <= ROUNDING {
        return None;
    }
    let last = singles.last()?;
    Some(if distance(sum, last) <= ROUNDING * size {
        Slip::Overwrites { samples }
    } else {
        Slip::NotAdditive { samples, relative }
    })
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
