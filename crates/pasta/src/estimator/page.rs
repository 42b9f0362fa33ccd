//! PAGE (Li, Bao, Zhang and Richtarik 2021): the estimator of Algorithm 1, line 4.

use super::{Ask, Kind, StepView};
use crate::draws::{Address, Role};
use crate::gate::{Gate, Halt};
use crate::oracle::{Answer, Request};

#[inline]
pub(super) fn ask(p: f64, seed: u64, step: u64, large: u64, small: u64) -> Ask {
    let coin = Address { seed, role: Role::Coin, step, sample: 0 };
    if p >= 1.0 || coin.stream().bernoulli(p) {
        Ask { kind: Kind::Fresh, n: large }
    } else {
        Ask { kind: Kind::Correction, n: small }
    }
}

/// The sum over n samples of g(x_t, zeta) - g(x_{t-1}, zeta), into `sum`; up to which coordinate it was written.
pub(super) fn correction(
    n: u64,
    gate: &mut Gate,
    at: StepView<'_>,
    sum: &mut Vec<f64>,
) -> Result<usize, Halt> {
    sum.resize(at.x.len(), 0.0);
    let batch = gate.batch(Role::Small, at.step, n);
    let mut answer = Answer::new(sum);
    let points = &[at.x, at.x_prev];
    gate.ask_for_step(Request { active: at.active, ..Request::differences(batch, points) }, &mut answer)?;
    Ok(answer.support)
}
