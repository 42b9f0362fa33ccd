//! Eigenvalues of a symmetric matrix, bounded with a proof.

use crate::kernels::{rows, squared_norm};

/// A symmetric matrix that was added up.
#[derive(Debug, Clone)]
pub(super) struct Matrix {
    pub(super) d: usize,
    pub(super) entries: Vec<f64>,
}

/// The unit roundoff.
pub(super) const ROUNDOFF: f64 = 0.5 * f64::EPSILON;

impl Matrix {
    pub(super) fn trace(&self) -> f64 {
        (0..self.d).map(|i| self.entries[i * self.d + i]).sum()
    }

    pub(super) fn with_penalty(mut self, penalty: f64, features: usize) -> Self {
        (0..features).for_each(|i| self.entries[i * self.d + i] += penalty);
        self
    }

    /// How far the matrix is from the one it stands for, in spectral norm: sums of n products a_i a_j are wrong by at most
    /// (n + 8) u sqrt(M_ii M_jj), a matrix whose norm is at most its trace. `terms` bounds the length of a chain of additions.
    pub(super) fn rounding(&self, terms: f64) -> f64 {
        (terms + 64.0) * ROUNDOFF * self.trace() * 1.01
    }

    /// Whether sign (t I - M) has a Cholesky factor. If so, its smallest eigenvalue is at least minus the second number: the
    /// computed factor R has R'R = A + E, |E| <= (d + 2) u |R'||R|, and the norm of |R'||R| is at most the trace of R'R.
    pub(super) fn is_definite(&self, t: f64, sign: f64) -> (bool, f64) {
        let d = self.d;
        let mut a: Vec<f64> = self.entries.iter().map(|entry| -sign * entry).collect();
        let mut trace = 0.0;
        for i in 0..d {
            a[i * d + i] += sign * t;
            trace += a[i * d + i];
        }
        let error = 1.01 * (d as f64 + 2.0) * ROUNDOFF * trace + ROUNDOFF * d as f64 * t.abs();
        // Row by row: L[i][j] = (a[i][j] - sum_k L[i][k] L[j][k])/L[j][j].
        for i in 0..d {
            for j in 0..=i {
                let (above, below) = a.split_at_mut(i * d);
                let row = &mut below[..d];
                if j < i {
                    let other = &above[j * d..j * d + j];
                    let product = rows::dot(&row[..j], other);
                    row[j] = (row[j] - product) / above[j * d + j];
                } else {
                    let rest = row[i] - squared_norm(&row[..i]);
                    if !(rest > 0.0 && rest.is_finite()) {
                        return (false, error);
                    }
                    row[i] = rest.sqrt();
                }
            }
        }
        (true, error)
    }

    /// An upper bound of the largest eigenvalue.
    pub(super) fn largest(&self, terms: f64) -> Option<f64> {
        // The power method guesses; Cholesky proves.
        let d = self.d;
        let mut v: Vec<f64> = (0..d).map(|i| 1.0 + (i as f64 + 1.0).sqrt().fract()).collect();
        let mut guess = 0.0;
        for _ in 0..200 {
            let length = squared_norm(&v).sqrt();
            if !(length > 0.0 && length.is_finite()) {
                break;
            }
            v.iter_mut().for_each(|v| *v /= length);
            let next: Vec<f64> = self.entries.chunks(d).map(|row| rows::dot(row, &v)).collect();
            guess = rows::dot(&next, &v);
            v = next;
        }
        let excesses = [1e-9, 1e-6, 1e-4, 1e-3, 1e-2, 0.1, 1.0];
        excesses.iter().map(|excess| guess * (1.0 + excess)).find_map(|t| {
            let (definite, error) = self.is_definite(t, 1.0);
            definite.then(|| t + error + self.rounding(terms))
        })
    }

    /// A lower bound of the smallest eigenvalue, if it is seen to be positive.
    pub(super) fn least(&self, terms: f64) -> Option<f64> {
        let most = self.trace() / self.d as f64;
        // Between 2^-40 and 1 of the mean eigenvalue, halving the interval of exponents.
        let (mut low, mut high) = (-40.0, 0.0);
        let mut best = None;
        for _ in 0..9 {
            let middle = 0.5 * (low + high);
            let t = most * libm::exp2(middle);
            let (definite, error) = self.is_definite(t, -1.0);
            if definite {
                low = middle;
                best = Some(t - error - self.rounding(terms)).filter(|bound| *bound > 0.5 * t).or(best);
            } else {
                high = middle;
            }
        }
        best
    }
}
