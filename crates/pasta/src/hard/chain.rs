//! The base chain: a function of T coordinates whose gradient reveals them one after another.
//!
//! Fbar(x) = -Psi(1) Phi(x_1) + sum over i >= 2 of Psi(-x_{i-1}) Phi(-x_i) - Psi(x_{i-1}) Phi(x_i)
//! (Carmon, Duchi, Hinder and Sidford; Arjevani, Carmon, Duchi, Foster, Srebro and Woodworth).

use std::f64::consts::{E, FRAC_1_SQRT_2, FRAC_PI_2, PI};

/// sqrt(e).
const SQRT_E: f64 = 1.648_721_270_700_128_2;

/// r = 1/(2t - 1) for t > 1/2, else 0. Psi(t) = exp(1 - r^2) and Psi'(t) = 4 r^3 Psi(t) if r > 0; else both are 0.
#[inline]
fn reciprocal(t: f64) -> f64 {
    // 1e300 stands for all that is larger, whose r would round to 0.
    if t > 0.5 { 1.0 / (2.0 * t.min(1e300) - 1.0) } else { 0.0 }
}

/// Psi(t) for the r of a t > 1/2.
#[inline]
fn psi(r: f64) -> f64 {
    libm::exp(1.0 - r * r)
}

/// sqrt(e) times the integral of exp(-s^2/2) up to t.
#[inline]
fn phi(t: f64) -> f64 {
    SQRT_E * FRAC_PI_2.sqrt() * libm::erfc(-t * FRAC_1_SQRT_2)
}

/// phi'(t) = sqrt(e) exp(-t^2/2).
#[inline]
fn phi_slope(t: f64) -> f64 {
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

/// Coordinates handled together. First the divisions of a block, then its exponentials and error functions, then what
/// they combine to: in a single loop every call would wait for a division, and that shows.
const BLOCK: usize = 16;

/// The chain of `length` coordinates at x = y/lambda, where coordinates beyond `y` are zero. Overwrites `gradient`
/// with the gradient in x and returns the value. Cost: one pass over `y`.
///
/// Of Psi(x) and Psi(-x) at most one is not zero, so with s the sign of x_i the term of the value that links x_i to
/// x_{i+1} is -s Psi(|x_i|) Phi(s x_{i+1}), and both its derivatives need the same Psi and Phi.
pub(super) fn evaluate(y: &[f64], lambda: f64, length: u64, gradient: &mut [f64]) -> f64 {
    debug_assert!(y.len() as u64 <= length && y.len() == gradient.len());
    let unit = 1.0 / lambda;
    let at = |i: usize| y.get(i).map_or(0.0, |y| y * unit);
    let mut value = -phi(at(0));
    // Psi(|x_{i-1}|); Psi(1) = 1 stands before the first coordinate.
    let mut gate = 1.0;
    let [mut x, mut r, mut link] = [[0.0; BLOCK]; 3];
    for (block, gradient) in gradient.chunks_mut(BLOCK).enumerate() {
        let first = block * BLOCK;
        for (j, y) in y[first..].iter().take(BLOCK).enumerate() {
            x[j] = y * unit;
            r[j] = reciprocal(x[j].abs());
        }
        for (j, slope) in gradient.iter_mut().enumerate() {
            *slope = -gate * phi_slope(x[j]);
            (gate, link[j]) = (0.0, 0.0);
            if r[j] != 0.0 && ((first + j) as u64) + 1 < length {
                gate = psi(r[j]);
                link[j] = gate * phi(1f64.copysign(x[j]) * at(first + j + 1));
                value -= link[j].copysign(x[j]);
            }
        }
        for (j, slope) in gradient.iter_mut().enumerate() {
            *slope -= 4.0 * r[j] * r[j] * r[j] * link[j];
        }
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
            let r = reciprocal(t);
            let gate = if r > 0.0 { psi(r) } else { 0.0 };
            close(gate, &piece["Psi"]);
            close(4.0 * r * r * r * gate, &piece["dPsi"]);
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
