//! PAGE (Li, Bao, Zhang and Richtarik 2021): the estimator of Algorithm 1, line 4.

use super::{Ask, Kind, Moment, Scratch};
use crate::draws::{Address, Role};
use crate::oracle::{Oracle, OracleError};

#[inline]
pub(super) fn ask(p: f64, seed: u64, step: u64, large: u64, small: u64) -> Ask {
    let coin = Address { seed, role: Role::Coin, step, sample: 0 };
    if p >= 1.0 || coin.stream().bernoulli(p) {
        Ask { kind: Kind::Fresh, n: large }
    } else {
        Ask { kind: Kind::Correction, n: small }
    }
}

/// The sum over n samples of g(x_t, zeta) - g(x_{t-1}, zeta).
pub(super) fn correction<'s>(
    n: u64,
    oracle: &dyn Oracle,
    at: Moment<'_>,
    scratch: &'s mut Scratch,
) -> Result<&'s [f64], OracleError> {
    scratch.first.resize(at.x.len(), 0.0);
    oracle.sum_difference(at.x, at.x_prev, &at.batch(Role::Small, n), &mut scratch.first)?;
    Ok(&scratch.first)
}
