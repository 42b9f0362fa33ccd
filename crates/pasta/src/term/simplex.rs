//! Non-negative numbers with a given sum.

use std::sync::Arc;

use super::{Key, Kind, Outside, Steps, Term, TermError};

/// x >= 0 and sum x_i = total: portfolios, mixtures, probabilities.
///
/// Non-negativity holds exactly; the sum holds up to 1e-9 of the total, since sums of doubles round.
#[derive(Debug, Clone, PartialEq)]
pub struct Simplex {
    /// The sum of all coordinates, above 0.
    pub total: f64,
}

pub(super) const KIND: Kind = Kind {
    name: "simplex",
    formula: "x >= 0, sum of x = total",
    keys: &[Key::optional("total", "a number above 0; 1 by default")],
    example: r#"{"kind": "simplex", "total": 1}"#,
    build: |spec, _| Ok(Arc::new(Simplex { total: spec.total.unwrap_or(1.0) })),
};

/// Relative error that the sum may have.
const TOLERANCE: f64 = 1e-9;

impl Term for Simplex {
    fn identity(&self) -> String {
        format!("simplex, total {:?}", self.total)
    }

    fn check(&self, dim: usize) -> Result<(), TermError> {
        if dim == 0 {
            return Err(TermError("a simplex needs at least 1 coordinate".into()));
        }
        if !(self.total.is_finite() && self.total > 0.0) {
            return Err(TermError(format!("total must be finite and above 0, but is {}", self.total)));
        }
        Ok(())
    }

    fn value(&self, x: &[f64]) -> f64 {
        if self.outside(x).is_none() { 0.0 } else { f64::INFINITY }
    }

    /// z_i = max(0, v_i - gamma_i tau) with the tau at which they sum to the total.
    fn prox(&self, steps: Steps<'_>, v: &mut [f64]) {
        let most = (0..v.len()).map(|i| steps.at(i)).fold(0.0, f64::max);
        let gammas: Vec<f64> = (0..v.len()).map(|i| (steps.at(i) / most).max(f64::MIN_POSITIVE)).collect();
        for v in v.iter_mut() {
            *v = v.clamp(f64::MIN / 4.0, f64::MAX / 4.0);
        }
        // Two rounds: the second starts at the first's tau, so differences of large numbers cost no digits.
        for _ in 0..2 {
            let tau = threshold(v, &gammas, self.total);
            for (v, gamma) in v.iter_mut().zip(&gammas) {
                *v = (-gamma).mul_add(tau, *v).clamp(f64::MIN / 4.0, f64::MAX / 4.0);
            }
        }
        for v in v.iter_mut() {
            // 0.0 and not -0.0.
            *v = if *v > 0.0 { v.min(self.total) } else { 0.0 };
        }
        self.settle(v);
    }

    fn outside(&self, x: &[f64]) -> Option<Outside> {
        let below = x.iter().enumerate().find_map(|(i, &x)| {
            let words = if x < 0.0 {
                format!("x{i} = {x} is below 0")
            } else if x.is_nan() {
                format!("x{i} is not a number")
            } else {
                return None;
            };
            Some(Outside { coordinate: Some(i), words })
        });
        let sum: f64 = x.iter().sum();
        let words = || format!("the coordinates sum to {sum}, not to {}", self.total);
        let wrong = (sum - self.total).abs() > TOLERANCE * self.total;
        below.or_else(|| wrong.then(|| Outside { coordinate: None, words: words() }))
    }
}

impl Simplex {
    /// Gives what rounding left of the sum to the largest coordinate, which has at least a share of 1/d.
    fn settle(&self, x: &mut [f64]) {
        let sum: f64 = x.iter().sum();
        if sum > self.total * 1.5 {
            // The threshold has no digits for the total where coordinates are 1e16 times as large: ties share it.
            x.iter_mut().for_each(|x| *x *= self.total / sum);
        }
        for _ in 0..2 {
            let sum: f64 = x.iter().sum();
            if let Some(largest) = x.iter_mut().max_by(|a, b| a.total_cmp(b)) {
                *largest = (*largest + (self.total - sum)).clamp(0.0, self.total);
            }
        }
    }
}

/// The tau at which sum max(0, v_i - gamma_i tau) = total: Newton's method from the left on a convex, decreasing, piecewise linear
/// function, which ends after finitely many steps.
fn threshold(v: &[f64], gammas: &[f64], total: f64) -> f64 {
    let (mut tau, mut gamma_there) = (f64::NEG_INFINITY, 1.0);
    for (v, &gamma) in v.iter().zip(gammas) {
        if v / gamma > tau {
            (tau, gamma_there) = (v / gamma, gamma);
        }
    }
    // There one coordinate alone has the total.
    tau = (tau - total / gamma_there).clamp(f64::MIN, f64::MAX);
    for _ in 0..v.len() + 10 {
        let (mut sum, mut slope) = (0.0, 0.0);
        for (&v, &gamma) in v.iter().zip(gammas) {
            let above = (-gamma).mul_add(tau, v);
            if above > 0.0 {
                sum += above;
                slope += gamma;
            }
        }
        let next = tau + (sum - total) / slope;
        if !(next > tau && next.is_finite()) {
            break;
        }
        tau = next;
    }
    tau
}
