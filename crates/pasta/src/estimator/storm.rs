//! STORM (Cutkosky and Orabona 2019): a recursive estimator without large batches.

use super::{Ask, Kind, StepView};
use crate::draws::Role;
use crate::gate::{Gate, Halt};
use crate::oracle::{Answer, Request};

#[inline]
pub(super) fn ask(momentum: f64, n: u64) -> Ask {
    // With momentum 1 nothing of the past is kept, so the old point need not be evaluated.
    Ask { kind: if momentum >= 1.0 { Kind::Fresh } else { Kind::Correction }, n }
}

/// Replaces g_{t-1} by g_t; up to which coordinate it may differ from zero. The old point is evaluated anew on today's
/// samples: reusing yesterday's value there would leave the two terms independent and the variance would not shrink.
pub(super) fn correct(
    momentum: f64,
    n: u64,
    gate: &mut Gate,
    at: StepView<'_>,
    g: &mut [f64],
    sums: &mut Vec<f64>,
) -> Result<usize, Halt> {
    sums.resize(2 * g.len(), 0.0);
    let batch = gate.batch(Role::Large, at.step, n);
    let mut answer = Answer::new(sums);
    let points = &[at.x, at.x_prev];
    gate.ask_for_step(Request { active: at.active, ..Request::sums(batch, points) }, &mut answer)?;
    let support = answer.support;
    let (now, before) = sums.split_at(g.len());
    let n = n as f64;
    for ((g, now), before) in g[..support].iter_mut().zip(now).zip(before) {
        *g = *now / n + (1.0 - momentum) * (*g - *before / n);
    }
    Ok(support)
}
