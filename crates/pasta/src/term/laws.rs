//! What every term must keep, checked on a few points: for terms that are not of this library.

use super::{Steps, Term, TermError};
use crate::draws::{Address, Role};
use crate::kernels::{dot, minus, squared_distance, squared_norm};

/// Points at each scale.
const POINTS: u64 = 6;
/// How far from the start they are, over 1 + |start|, and the lengths of the steps.
const SCALES: [f64; 3] = [0.03, 0.3, 3.0];
/// What rounding, and a prox that is computed by iterations, may be off by, over the sizes of what is compared.
const TOLERANCE: f64 = 1e-6;
/// The same of values, over how much they change.
const SLACK: f64 = 1e-4;
/// Rounds of the prox in a diagonal metric, and the distance between two of them at which it has settled.
const ROUNDS: usize = 500;
const SETTLED: f64 = 1e-13;

/// One answer of a prox.
struct Case {
    gamma: f64,
    v: Vec<f64>,
    z: Vec<f64>,
    /// h(z).
    value: f64,
}

/// Checks on some dozens of points around `start` that a term keeps its laws: each prox is finite and in the domain, and the same when asked again; it is firmly
/// non-expansive; and it is the prox of the value, that is, (v - prox(v))/gamma is a subgradient of h there. The error names the law, with numbers.
///
/// A term may pass and still be wrong elsewhere. Those of this library keep them by their tests.
pub fn check_laws(term: &dyn Term, start: &[f64], seed: u64) -> Result<(), TermError> {
    term.check(start.len())?;
    let mut cases = Vec::new();
    for (number, scale) in SCALES.into_iter().enumerate() {
        let gamma = scale;
        for i in 0..POINTS {
            let step = number as u64 * POINTS + i;
            let mut xi = Address { seed, role: Role::Check, step, sample: Address::WHOLE_BATCH - 7 }.stream();
            let length = scale * (1.0 + squared_norm(start).sqrt()) / (start.len() as f64).sqrt();
            let v: Vec<f64> = start.iter().map(|x| x + length * xi.normal()).collect();
            cases.push(case(term, gamma, v)?);
        }
    }
    for a in &cases {
        for b in &cases {
            if a.gamma == b.gamma {
                firm(a, b)?;
            }
            subgradient(term, a, b)?;
        }
    }
    Ok(())
}

/// The prox of v, which must be a point of the domain.
fn case(term: &dyn Term, gamma: f64, v: Vec<f64>) -> Result<Case, TermError> {
    let prox = || {
        let mut z = v.clone();
        term.prox(Steps::One(gamma), &mut z);
        z
    };
    let z = prox();
    if let Some(i) = z.iter().position(|z| !z.is_finite()) {
        return Err(TermError(format!(
            "the prox with gamma = {gamma} of a finite point is {} at coordinate {i}",
            z[i]
        )));
    }
    if let Some(outside) = term.outside(&z) {
        let words = outside.words;
        return Err(TermError(format!("the prox with gamma = {gamma} is outside of the domain: {words}")));
    }
    let value = term.value(&z);
    if !value.is_finite() {
        return Err(TermError(format!(
            "the value at a prox (gamma = {gamma}) is {value}, which must be finite"
        )));
    }
    if prox() != z {
        return Err(TermError(format!(
            "the prox with gamma = {gamma} of one and the same point differs from call to call"
        )));
    }
    Ok(Case { gamma, v, z, value })
}

/// |z - z'|^2 <= <z - z', v - v'>, which holds for the prox of any convex function.
fn firm(a: &Case, b: &Case) -> Result<(), TermError> {
    let (moved, apart) = (minus(&a.z, &b.z), minus(&a.v, &b.v));
    let (square, product) = (squared_norm(&moved), dot(&moved, &apart));
    let size = square.max(squared_norm(&apart)) + squared_norm(&a.z).max(squared_norm(&b.z)) * f64::EPSILON;
    if square > product + TOLERANCE * size {
        return Err(TermError(format!(
            "the prox with gamma = {} is not firmly non-expansive: |prox(v) - prox(w)|^2 = {square:.6e} for two points with <prox(v) - prox(w), v - w> = \
             {product:.6e}, so it is the prox of no convex function",
            a.gamma
        )));
    }
    Ok(())
}

/// h(w) >= h(z) + <(v - z)/gamma, w - z> for w on the way to another point of the domain, and at it.
fn subgradient(term: &dyn Term, a: &Case, b: &Case) -> Result<(), TermError> {
    let Case { gamma, v, z, value } = a;
    let slope: Vec<f64> = v.iter().zip(z).map(|(v, z)| (v - z) / gamma).collect();
    for share in [1e-2, 1.0] {
        let w: Vec<f64> = z.iter().zip(&b.z).map(|(z, w)| z + share * (w - z)).collect();
        // A mean of points of the domain is outside of it by rounding at most; what a wrong value says there is met at the other end.
        let there = if share == 1.0 { b.value } else { term.value(&w) };
        if !there.is_finite() {
            continue;
        }
        let least = value + dot(&slope, &minus(&w, z));
        let moved = (squared_norm(&slope) * squared_distance(&w, z)).sqrt();
        let size = moved + (there - value).abs() + f64::EPSILON * 1e4 * (value.abs() + there.abs());
        if there < least - SLACK * size {
            return Err(TermError(format!(
                "the prox with gamma = {gamma} is not that of the value: (v - prox(v))/gamma must be a subgradient, so the value at another point must be at \
                 least {least:.6e}, but is {there:.6e}"
            )));
        }
    }
    Ok(())
}

/// The prox in a diagonal metric of a term that only has one for a single length: the minimiser z of h(z) + sum (z_i - v_i)^2/(2 gamma_i), by accelerated
/// proximal steps of the shortest gamma_i. For terms of your own; it calls [`Term::prox`] with [`Steps::One`] up to 500 times, more often the more uneven the gammas are.
pub fn metric_prox(term: &dyn Term, gammas: &[f64], v: &mut [f64]) {
    let least = gammas.iter().copied().fold(f64::INFINITY, f64::min);
    let most = gammas.iter().copied().fold(0.0, f64::max);
    if least == most || least.is_nan() || least <= 0.0 {
        term.prox(Steps::One(most), v);
        return;
    }
    let root = (least / most).sqrt();
    let momentum = (1.0 - root) / (1.0 + root);
    let target = v.to_vec();
    let (mut z, mut ahead) = (target.clone(), target.clone());
    for _ in 0..ROUNDS {
        let mut next: Vec<f64> =
            (0..ahead.len()).map(|i| ahead[i] - least * (ahead[i] - target[i]) / gammas[i]).collect();
        term.prox(Steps::One(least), &mut next);
        let moved = squared_distance(&next, &z);
        ahead = next.iter().zip(&z).map(|(next, z)| next + momentum * (next - z)).collect();
        z = next;
        if moved <= SETTLED * SETTLED * (1.0 + squared_norm(&z)) {
            break;
        }
    }
    v.copy_from_slice(&z);
}
