//! One question to an oracle: refused, asked again, or answered without what is not finite.

use std::ops::Range;

use super::Halt;
use crate::draws::Role;
use crate::oracle::{About, Answer, Batch, Charge, Draw, ErrorKind, Oracle, OracleError, Request};
use crate::term::Term;

/// How often a question is asked again if the oracle says that this may help.
const RETRIES: u32 = 3;

/// Where all samples of a batch are to be left out, so many others are tried; they have indices from here on.
const OTHERS: u64 = 32;
const OTHERS_FROM: u64 = 1 << 62;

/// What an answer cost, and what was left out of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Paid {
    pub(super) charge: Charge,
    pub(super) skipped: Skipped,
}

/// Samples that were left out, and the evaluations that it took to find them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Skipped {
    pub(super) count: u128,
    pub(super) evaluations: u128,
}

impl Skipped {
    /// The samples themselves were counted before.
    pub(super) fn charge(self) -> Charge {
        Charge { samples: 0, evaluations: self.evaluations, exact: false }
    }
}

impl Paid {
    /// What two parts of an answer cost together.
    pub(super) fn and(self, other: Self) -> Self {
        let samples = self.charge.samples + other.charge.samples;
        let evaluations = self.charge.evaluations + other.charge.evaluations;
        let skipped = Skipped {
            count: self.skipped.count + other.skipped.count,
            evaluations: self.skipped.evaluations + other.skipped.evaluations,
        };
        Self { charge: Charge { samples, evaluations, exact: false }, skipped }
    }
}

/// Refuses a question about points outside of the domain.
#[inline]
pub(super) fn inside(term: Option<&dyn Term>, request: &Request<'_>) -> Result<(), Halt> {
    let Some(term) = term else { return Ok(()) };
    match request.points.iter().find_map(|x| term.outside(x)) {
        Some(outside) => Err(Halt::Outside { words: outside.words }),
        None => Ok(()),
    }
}

/// Asks an oracle, more than once if that may help.
#[inline]
pub(super) fn put(
    oracle: &dyn Oracle,
    about: &About,
    request: &Request<'_>,
    answer: &mut Answer<'_>,
) -> Result<Charge, Halt> {
    request.check(about, answer)?;
    request.interrupted()?;
    answer.support = about.dim;
    match oracle.answer(request, answer) {
        Ok(charge) => Ok(charge),
        Err(error) => put_again(oracle, request, answer, error),
    }
}

#[cold]
fn put_again(
    oracle: &dyn Oracle,
    request: &Request<'_>,
    answer: &mut Answer<'_>,
    mut error: OracleError,
) -> Result<Charge, Halt> {
    for _ in 0..RETRIES {
        if error.kind() != ErrorKind::Retry {
            break;
        }
        request.interrupted()?;
        // As if it were asked for the first time.
        answer.support = answer.gradients.len() / request.rows().max(1);
        match oracle.answer(request, answer) {
            Ok(charge) => return Ok(charge),
            Err(again) => error = again,
        }
    }
    Err(error.into())
}

/// Replaces an answer that is not finite by what its finite samples say, scaled to the size of the batch. Halves are asked for until what is not
/// finite stands alone. If no sample is left, others are drawn; if none of them is finite either, the answer stays as it is.
#[cold]
pub(super) fn skip(
    oracle: &dyn Oracle,
    about: &About,
    request: &Request<'_>,
    answer: &mut Answer<'_>,
) -> Result<Skipped, Halt> {
    let mut skipped = Skipped::default();
    let Draw::Batch(batch) = &request.draw else { return Ok(skipped) };
    if !about.additive {
        return Ok(skipped);
    }
    let numbers = answer.gradients.len() + answer.losses.len();
    let (mut kept, mut sum) = (0, vec![0.0; numbers]);
    let mut add = |part: Batch, skipped: &mut Skipped, kept: &mut u64| -> Result<bool, Halt> {
        let mut row = vec![0.0; numbers];
        let (gradients, losses) = row.split_at_mut(answer.gradients.len());
        let count = part.count();
        let request = Request { draw: Draw::Batch(part), ..request.clone() };
        let mut part = Answer { gradients, losses, support: about.dim };
        skipped.evaluations += put(oracle, about, &request, &mut part)?.evaluations;
        let is_finite = check_finite(&part, (batch.role, batch.step)).is_ok();
        if is_finite {
            *kept += count;
            sum.iter_mut().zip(row).for_each(|(sum, number)| *sum += number);
        }
        Ok(is_finite)
    };
    let mut parts = vec![batch.samples.clone()];
    while let Some(Range { start, end }) = parts.pop() {
        if end - start == 1 {
            skipped.count += 1;
            continue;
        }
        let middle = start + (end - start) / 2;
        for samples in [middle..end, start..middle] {
            if !add(Batch { samples: samples.clone(), ..batch.clone() }, &mut skipped, &mut kept)? {
                parts.push(samples);
            }
        }
    }
    let first = batch.samples.start.wrapping_mul(OTHERS) % OTHERS_FROM + OTHERS_FROM;
    for other in 0..OTHERS {
        if kept > 0 {
            break;
        }
        let samples = first + other..first + other + 1;
        add(Batch { samples, ..batch.clone() }, &mut skipped, &mut kept)?;
    }
    // An oracle that does not repeat itself may answer the parts.
    skipped.count = skipped.count.max(1);
    if kept > 0 {
        let scale = batch.count() as f64 / kept as f64;
        let rows = answer.gradients.iter_mut().chain(answer.losses.iter_mut());
        rows.zip(&sum).for_each(|(number, sum)| *number = scale * sum);
        answer.support = about.dim;
    }
    Ok(skipped)
}

/// The price, if it can be paid.
pub(super) fn afford(needed: u128, left: u128) -> Result<u128, Halt> {
    if needed <= left { Ok(needed) } else { Err(Halt::OverBudget { needed, left }) }
}

pub(super) fn asked(draw: &Draw) -> (Role, u64) {
    match draw {
        Draw::Batch(batch) => (batch.role, batch.step),
        Draw::Everything(role) => (*role, 0),
    }
}

/// Refuses NaN and infinity. What is too large to be squared is of no use to anyone either.
pub(super) fn check_finite(answer: &Answer<'_>, asked: (Role, u64)) -> Result<(), Halt> {
    finite(answer.gradients, answer.losses, asked)
}

pub(super) fn finite(gradients: &[f64], losses: &[f64], (role, step): (Role, u64)) -> Result<(), Halt> {
    let squares: f64 = gradients.iter().map(|g| g * g).sum();
    let losses: f64 = losses.iter().map(|loss| loss.abs()).sum();
    if (squares + losses).is_finite() { Ok(()) } else { Err(Halt::NotFinite { role, step }) }
}
