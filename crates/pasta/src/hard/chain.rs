//! The base chain: a function of T coordinates whose gradient reveals them one after another.
//!
//! Fbar(x) = -Psi(1) Phi(x_1) + sum over i >= 2 of Psi(-x_{i-1}) Phi(-x_i) - Psi(x_{i-1}) Phi(x_i)
//! (Carmon, Duchi, Hinder and Sidford; Arjevani, Carmon, Duchi, Foster, Srebro and Woodworth).

use std::f64::consts::{E, FRAC_1_SQRT_2, FRAC_PI_2, PI};

/// sqrt(e).
const SQRT_E: f64 = 1.648_721_270_700_128_2;

/// exp(1 - 1/(2t - 1)^2) for t > 1/2, else 0; and its derivative.
#[inline]
pub(super) fn psi(t: f64) -> (f64, f64) {
    if t <= 0.5 {
        return (0.0, 0.0);
    }
    let r = 1.0 / (2.0 * t - 1.0);
    let value = libm::exp(1.0 - r * r);
    // So close to 1/2 that r^3 overflows, the exponential has long been zero.
    let slope = if value == 0.0 { 0.0 } else { 4.0 * r * r * r * value };
    (value, slope)
}

/// sqrt(e) times the integral of exp(-s^2/2) up to t.
#[inline]
pub(super) fn phi(t: f64) -> f64 {
    SQRT_E * FRAC_PI_2.sqrt() * libm::erfc(-t * FRAC_1_SQRT_2)
}

/// phi'(t) = sqrt(e) exp(-t^2/2).
#[inline]
pub(super) fn phi_slope(t: f64) -> f64 {
    SQRT_E * libm::exp(-0.5 * t * t)
}

/// The supremum of the chain, approached but never attained for T >= 2.
pub(super) fn supremum(length: u64) -> f64 {
    (length as f64 - 1.0) * E * (2.0 * PI * E).sqrt()
}

/// The infimum of the chain, never attained.
pub(super) fn infimum(length: u64) -> f64 {
    -(2.0 * PI * E).sqrt() * (1.0 + E * (length as f64 - 1.0))
}

/// The chain of `length` coordinates at x = y/lambda, where coordinates beyond `y` are zero. Overwrites `gradient`
/// with the gradient in x and returns the value. Cost: one pass over `y`.
///
/// Of Psi(x) and Psi(-x) at most one is not zero, so with s the sign of x_{i-1} the i-th term of the value is
/// -s Psi(|x_{i-1}|) Phi(s x_i), and both its derivatives need the same Psi and Phi.
pub(super) fn evaluate(y: &[f64], lambda: f64, length: u64, gradient: &mut [f64]) -> f64 {
    debug_assert!(y.len() as u64 <= length && y.len() == gradient.len());
    let Some(&first) = y.first() else { return -phi(0.0) };
    let mut x = first / lambda;
    let mut value = -phi(x);
    // Psi(|x_{i-1}|); Psi(1) = 1 stands before the first coordinate.
    let mut gate = 1.0;
    for i in 0..y.len() {
        let next = y.get(i + 1).map_or(0.0, |y| y / lambda);
        let mut slope = if gate == 0.0 { 0.0 } else { -gate * phi_slope(x) };
        let opening;
        (gate, opening) = psi(x.abs());
        if gate != 0.0 && (i as u64) + 1 < length {
            let s = x.signum();
            let level = phi(s * next);
            value -= s * gate * level;
            slope -= opening * level;
        }
        gradient[i] = slope;
        x = next;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hard::mask::gamma;

    #[test]
    fn the_scalar_pieces_match_the_reference() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/golden.json");
        let golden: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let close = |ours: f64, reference: &serde_json::Value| {
            let reference = reference.as_f64().unwrap();
            // A few roundings inside an exponential, whose argument is at most a few dozen.
            assert!((ours - reference).abs() <= 1e-14 * reference.abs(), "{ours:?} is not {reference:?}");
        };
        for piece in golden["scalar_pieces"].as_array().unwrap() {
            let t = piece["t"].as_f64().unwrap();
            close(psi(t).0, &piece["Psi"]);
            close(psi(t).1, &piece["dPsi"]);
            close(phi(t), &piece["Phi"]);
            close(phi_slope(t), &piece["dPhi"]);
            close(gamma(t), &piece["Gamma"]);
        }
        for case in golden["fbar_sup_inf"].as_array().unwrap() {
            let length = case["T"].as_u64().unwrap();
            close(supremum(length), &case["sup"]);
            close(infimum(length), &case["inf"]);
            close(evaluate(&[], 1.0, length, &mut []), &case["F0"]);
        }
    }
}
