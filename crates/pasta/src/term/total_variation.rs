//! Differences of neighbours.

use std::sync::Arc;

use super::{Key, Kind, Outside, Steps, Term, TermError, entry, finite_and_non_negative, not_a_number};

/// sum w_i |x_{i+1} - x_i|: it makes neighbours exactly equal, so x becomes piecewise constant.
#[derive(Debug, Clone, PartialEq)]
pub struct TotalVariation {
    /// The weights w: one, or one for each pair of neighbours.
    pub weight: Vec<f64>,
}

pub(super) const KIND: Kind = Kind {
    name: "total-variation",
    formula: "sum of weight |x_{i+1} - x_i|",
    keys: &[Key::required("weight", "a number or a list with one for each pair of neighbours")],
    example: r#"{"kind": "total-variation", "weight": 0.4}"#,
    build: |spec, _| {
        let weight = spec.weight.clone().map_or_else(Vec::new, |weight| weight.0);
        Ok(Arc::new(TotalVariation { weight }))
    },
};

impl Term for TotalVariation {
    fn identity(&self) -> String {
        format!("total variation, weight {:?}", self.weight)
    }

    fn check(&self, dim: usize) -> Result<(), TermError> {
        let (n, pairs) = (self.weight.len(), dim.saturating_sub(1));
        if n != 1 && n != pairs {
            return Err(TermError(format!("weight has {n} numbers for {pairs} pairs: give 1 or {pairs}")));
        }
        finite_and_non_negative("weight", &self.weight)
    }

    fn value(&self, x: &[f64]) -> f64 {
        if self.outside(x).is_some() {
            return f64::INFINITY;
        }
        x.windows(2).enumerate().map(|(i, pair)| entry(&self.weight, i) * (pair[1] - pair[0]).abs()).sum()
    }

    /// Dynamic programming over the coordinates (N. Johnson, 2013), exact and in linear time.
    fn prox(&self, steps: Steps<'_>, v: &mut [f64]) {
        if v.len() < 2 {
            return;
        }
        // Times the largest gamma, from the first coordinate on: no overflow, and no digits lost to a common offset.
        let most = (0..v.len()).map(|i| steps.at(i)).fold(0.0, f64::max);
        let masses: Vec<f64> = (0..v.len()).map(|i| (most / steps.at(i)).min(1e150)).collect();
        let largest = v.iter().fold(0.0, |most: f64, v| most.max(v.abs()));
        let unit = if largest > 1e150 { largest } else { 1.0 };
        let offset = v[0] / unit;
        v.iter_mut().for_each(|v| *v = *v / unit - offset);
        // No dual variable can be larger than this, so a larger weight is as good, and costs digits.
        let enough: f64 = 2.0 * v.iter().zip(&masses).map(|(v, mass)| mass * v.abs()).sum::<f64>();
        let weights: Vec<f64> =
            (0..v.len() - 1).map(|i| (most / unit * entry(&self.weight, i)).min(enough)).collect();
        smooth(&masses, &weights, v);
        v.iter_mut().for_each(|v| *v = ((*v + offset) * unit).clamp(f64::MIN, f64::MAX));
    }

    fn outside(&self, x: &[f64]) -> Option<Outside> {
        not_a_number(x)
    }
}

/// A bend of the derivative of the minimum over all coordinates to the left: a piecewise linear, increasing function.
#[derive(Clone, Copy)]
struct Bend {
    at: f64,
    slope: f64,
    intercept: f64,
}

/// Replaces v by the minimiser of sum mass_i (z_i - v_i)^2/2 + sum weight_i |z_{i+1} - z_i|.
///
/// The derivative is kept by its bends, clipped to +-weight_i before coordinate i + 1 is added; where it was clipped bounds z_i once
/// z_{i+1} is known. Every bend is made once and dropped at most once.
fn smooth(masses: &[f64], weights: &[f64], v: &mut [f64]) {
    let n = v.len();
    // The bends are bends[left..=right]; either end grows by at most 1 for each coordinate.
    let mut bends = vec![Bend { at: 0.0, slope: 0.0, intercept: 0.0 }; 2 * n + 2];
    let (mut left, mut right) = (n + 1, n);
    let mut clips = Vec::with_capacity(n - 1);
    let mut before = 0.0; // the weight at which the derivative was clipped last
    for i in 0..n {
        let (mass, target) = (masses[i], masses[i] * v[i]);
        let weight = weights.get(i).copied().unwrap_or(0.0);
        // From the left: where the derivative reaches -weight.
        let (mut slope, mut intercept) = (mass, -target - before);
        while left <= right {
            let bend = bends[left];
            if slope * bend.at + intercept > -weight {
                break;
            }
            slope += bend.slope;
            intercept += bend.intercept;
            left += 1;
        }
        // Exactly it is at least the mass; rounding may take that away.
        let low = (-weight - intercept) / slope.max(mass);
        if i + 1 == n {
            v[i] = low;
            break;
        }
        let first = Bend { at: low, slope, intercept: intercept + weight };
        // From the right: where it reaches weight.
        let (mut slope, mut intercept) = (mass, -target + before);
        while left <= right {
            let bend = bends[right];
            if slope * bend.at + intercept < weight {
                break;
            }
            slope -= bend.slope;
            intercept -= bend.intercept;
            right -= 1;
        }
        let high = ((weight - intercept) / slope.max(mass)).max(low);
        clips.push((low, high));
        left -= 1;
        right += 1;
        bends[left] = first;
        bends[right] = Bend { at: high, slope: -slope, intercept: weight - intercept };
        before = weight;
    }
    for (i, (low, high)) in clips.into_iter().enumerate().rev() {
        v[i] = v[i + 1].max(low).min(high);
    }
}
