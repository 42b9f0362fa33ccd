//! STORM (Cutkosky and Orabona 2019): a recursive estimator without large batches.

use super::{Ask, Kind, Moment, Scratch};
use crate::draws::Role;
use crate::oracle::{Oracle, OracleError};

#[inline]
pub(super) fn ask(momentum: f64, n: u64) -> Ask {
    // With momentum 1 nothing of the past is kept, so the old point need not be evaluated.
    Ask { kind: if momentum >= 1.0 { Kind::Fresh } else { Kind::Correction }, n }
}

/// Replaces g_{t-1} by g_t. The old point is evaluated anew on today's samples: reusing yesterday's value
/// there would leave the two terms independent and the variance would not shrink.
pub(super) fn correct(
    momentum: f64,
    n: u64,
    oracle: &dyn Oracle,
    at: Moment<'_>,
    g: &mut [f64],
    scratch: &mut Scratch,
) -> Result<(), OracleError> {
    let batch = at.batch(Role::Large, n);
    let Scratch { first: now, second: before } = scratch;
    now.resize(g.len(), 0.0);
    before.resize(g.len(), 0.0);
    oracle.sum(at.x, &batch, now)?;
    oracle.sum(at.x_prev, &batch, before)?;
    let n = n as f64;
    for ((g, now), before) in g.iter_mut().zip(now).zip(before) {
        *g = *now / n + (1.0 - momentum) * (*g - *before / n);
    }
    Ok(())
}
