//! The gradient mapping in the place of the gradient, where a term stands beside f: see `docs/certificate.md`.

use serde::{Deserialize, Serialize};

use super::means::NUMBER_BITS;
use super::{CertificateError, ClaimError, demand};
use crate::draws::{Address, Role};
use crate::gate::{Gate, Halt};
use crate::kernels::{along, minus, squared_distance, squared_norm};
use crate::oracle::{Answer, Request};
use crate::term::{Mapping, Term};

/// The centre g0 is the mean of so many means, which have numbers of their own among those of the pilot.
pub(super) const CENTRE_MEANS: u64 = 16;
pub(super) const CENTRE: u64 = 1 << 30;
/// Of the error of a track, the bound on |g - g0| has this share.
const CENTRE_SHARE: f64 = 0.1;

/// gamma is chosen by so many differences of so many pairs of samples.
const ROUNDS: u64 = 4;
const PAIRS: u64 = 32;
/// The number of the first of them among those of the pilot.
const CURVATURE: u64 = 1 << 31;
/// How far apart the points of a pair are, over 1 + |x|.
const APART: f64 = 1e-3;

/// What the certificate of a gradient mapping has besides.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Centred {
    pub(super) gamma: f64,
    /// g0.
    #[serde(skip)]
    pub(super) centre: Vec<f64>,
    /// The samples that chose gamma.
    pub(super) samples: u128,
}

impl Centred {
    pub(super) fn mapping<'a>(&self, term: &'a dyn Term, x: &'a [f64]) -> Mapping<'a> {
        Mapping { term, gamma: self.gamma, x }
    }

    /// g0 + sum/count.
    pub(super) fn plus(&self, sum: &[f64], count: f64) -> Vec<f64> {
        self.centre.iter().zip(sum).map(|(centre, sum)| centre + sum / count).collect()
    }

    /// What is added to log(1/delta) for the share of the mean.
    pub(super) fn log_of_rest() -> f64 {
        -(1.0 - CENTRE_SHARE).ln()
    }

    /// What is added to that for the share of the centre.
    pub(super) fn log_of_centre() -> f64 {
        ((1.0 - CENTRE_SHARE) / CENTRE_SHARE).ln()
    }
}

/// |G| is at most this, if a bounds a(q), tau bounds <g - q, u>, and kappa/gamma is a [modulus](Term::modulus) of h at x; without one it is a + tau.
pub(super) fn bound(a: f64, tau: f64, kappa: f64) -> f64 {
    let bound = if a * kappa <= 2.0 * tau {
        (a + tau) / (1.0 + kappa / 2.0)
    } else {
        (tau + (tau * tau + (1.0 + kappa) * a * a).sqrt()) / (1.0 + kappa)
    };
    bound * (1.0 + 8.0 * f64::EPSILON)
}

/// What a certificate at x needs besides, where there is a term.
pub(super) fn start(
    gate: &mut Gate,
    x: &[f64],
    attempt: u64,
    budget: Option<u128>,
) -> Result<Option<Centred>, CertificateError> {
    let Some(term) = gate.term() else { return Ok(None) };
    if let Some(outside) = term.outside(x) {
        return Err(ClaimError::Outside { words: outside.words }.into());
    }
    let before = gate.ledger().of(Role::Pilot).samples;
    let gamma = match gate.gamma() {
        Some(gamma) => gamma,
        None => choose_gamma(gate, x, attempt, budget)?,
    };
    demand("gamma", "positive and finite", gamma, gamma > 0.0 && gamma.is_finite())?;
    let samples = gate.ledger().of(Role::Pilot).samples - before;
    Ok(Some(Centred { gamma, centre: Vec::new(), samples }))
}

/// gamma of a gradient mapping near x: the gate's, or about 1/L as a few samples show it, as a certificate would choose it.
pub fn gamma_near(gate: &mut Gate, x: &[f64]) -> Result<f64, Halt> {
    match gate.gamma() {
        Some(gamma) => Ok(gamma),
        None => choose_gamma(gate, x, 0, None),
    }
}

/// About 1/L, L the largest curvature of f that a few differences of gradients near x show, rounded down to two digits; 1 where they show none. Power iteration,
/// inside of the domain, on samples that are used for nothing else.
pub(crate) fn choose_gamma(
    gate: &mut Gate,
    x: &[f64],
    attempt: u64,
    budget: Option<u128>,
) -> Result<f64, Halt> {
    let needed = u128::from(ROUNDS * PAIRS);
    let affordable = gate.left().min(budget.unwrap_or(u128::MAX)) / 8 >= needed;
    if !gate.about().shared || !affordable {
        return Ok(1.0);
    }
    let length = APART * (1.0 + squared_norm(x).sqrt());
    let step = |round: u64| (attempt << NUMBER_BITS) | (CURVATURE + round);
    let mut xi =
        Address { seed: gate.seed(), role: Role::Pilot, step: step(0), sample: Address::WHOLE_BATCH - 3 }
            .stream();
    let mut direction: Vec<f64> = x.iter().map(|_| xi.normal()).collect();
    let mut largest: f64 = 0.0;
    for round in 0..ROUNDS {
        let size = squared_norm(&direction).sqrt();
        let mut there = along(x, length / size, &direction);
        gate.keep_inside(&mut there);
        if squared_distance(&there, x) < (0.1 * length).powi(2) {
            // That way leads out of the domain.
            there = along(x, -length / size, &direction);
            gate.keep_inside(&mut there);
        }
        let moved = squared_norm(&minus(&there, x)).sqrt();
        if moved.is_nan() || moved == 0.0 {
            break;
        }
        let mut change = vec![0.0; x.len()];
        let batch = gate.batch(Role::Pilot, step(round), PAIRS);
        gate.ask(Request::differences(batch, &[&there, x]), &mut Answer::new(&mut change))?;
        let curvature = squared_norm(&change).sqrt() / PAIRS as f64 / moved;
        if curvature.is_nan() || curvature == 0.0 {
            break;
        }
        largest = largest.max(curvature);
        direction = change;
    }
    let gamma = 1.0 / largest;
    Ok(if gamma > 0.0 && gamma.is_finite() { two_digits(gamma) } else { 1.0 })
}

/// Rounded down to two digits.
fn two_digits(number: f64) -> f64 {
    let unit = 10f64.powf(number.log10().floor() - 1.0);
    // What is a round number but for the noise of differences stays one.
    let digits = (number / unit * (1.0 + 1e-6)).floor();
    // The decimal number itself, not a product that is next to it.
    format!("{digits}e{}", number.log10().floor() - 1.0).parse().unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::bound;
    use crate::draws::{Address, Role};
    use crate::kernels::{minus, squared_norm};
    use crate::term::{Ball, ElasticNet, LogBarrier, Mapping, Steps, Term};

    fn dot(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    /// 30,000 random points, gradients and estimates of them, in 1 to 6 coordinates, with the least |v| and the reach that are true.
    #[test]
    fn the_bound_on_a_mapping_holds_with_the_modulus_of_every_term_that_has_one() {
        let mut xi = Address { seed: 1, role: Role::Check, step: 0, sample: 0 }.stream();
        let terms: [Arc<dyn Term>; 3] = [
            Arc::new(Ball { centre: vec![0.5], radius: 1.5 }),
            Arc::new(ElasticNet { l1: vec![0.3], l2: vec![0.8] }),
            Arc::new(LogBarrier { weight: vec![0.7] }),
        ];
        let mut sharper = [0; 3];
        for case in 0..30_000 {
            let (term, d) = (&*terms[case % 3], 1 + case % 6);
            let gamma = 10f64.powf(xi.uniform() - 0.5);
            let mut random = |size: f64| -> Vec<f64> { (0..d).map(|_| size * xi.normal()).collect() };
            let [mut x, g, noise] = [random(2.0), random(3.0), random(1.0)];
            term.prox(Steps::One(gamma), &mut x);
            let q: Vec<f64> = g.iter().zip(&noise).map(|(g, noise)| g + noise).collect();
            let mapping = Mapping { term, gamma, x: &x };
            let (z, moved) = (mapping.step(&g), mapping.of(&g));
            let norm = squared_norm(&moved).sqrt();
            if norm < 1e-6 {
                continue;
            }
            // v = G - g is a subgradient of h at z.
            let v = minus(&moved, &g);
            let modulus = term.modulus(&x, squared_norm(&v).sqrt(), gamma * norm);
            let away = minus(&x, &z);
            let curved = term.value(&z) + dot(&v, &away) + 0.5 * modulus * squared_norm(&away);
            let size = term.value(&x).abs() + term.value(&z).abs() + squared_norm(&v) + squared_norm(&away);
            assert!(term.value(&x) >= curved - 1e-12 * size, "{case}: {} < {curved}", term.value(&x));
            let tau = (dot(&minus(&g, &q), &moved) / norm).max(0.0);
            let a = mapping.stationarity(&q);
            let most = bound(a, tau, gamma * modulus);
            assert!(norm <= most * (1.0 + 1e-9), "{case}: {norm} > {most}");
            assert!(most <= (a + tau) * (1.0 + 1e-12), "{case}");
            sharper[case % 3] += usize::from(most < 0.9 * (a + tau));
        }
        assert!(sharper.into_iter().all(|count| count > 100), "{sharper:?}");
    }
}
