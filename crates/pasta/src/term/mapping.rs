//! The gradient mapping: what takes the place of the gradient where F = f + h is minimised.

use super::{Steps, Term};
use crate::kernels::{squared_distance, squared_norm};

/// The gradient mapping at a point x of the domain: G(q) = (x - z)/gamma with z = prox(gamma, x - gamma q), for any q in the place of grad f(x).
///
/// G(grad f(x)) is zero exactly at the stationary points of F = f + h; without a term it is grad f(x). `docs/certificate.md` has the lemma that
/// certificates rest on.
///
/// ```
/// use pasta_opt::term::{Interval, Mapping};
///
/// // The gradient pushes out of the box at its first coordinate, and not at its second.
/// let interval = Interval { lower: vec![0.0], upper: vec![f64::INFINITY] };
/// let mapping = Mapping { term: &interval, gamma: 0.5, x: &[0.0, 1.0] };
/// assert_eq!(mapping.of(&[3.0, 0.5]), [0.0, 0.5]);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Mapping<'a> {
    /// h.
    pub term: &'a dyn Term,
    /// gamma.
    pub gamma: f64,
    /// x.
    pub x: &'a [f64],
}

impl Mapping<'_> {
    /// prox(gamma, x - gamma q).
    pub fn step(&self, q: &[f64]) -> Vec<f64> {
        let mut z: Vec<f64> = self.x.iter().zip(q).map(|(x, q)| x - self.gamma * q).collect();
        self.term.prox(Steps::One(self.gamma), &mut z);
        z
    }

    /// G(q).
    pub fn of(&self, q: &[f64]) -> Vec<f64> {
        self.step(q).iter().zip(self.x).map(|(z, x)| (x - z) / self.gamma).collect()
    }

    /// |G(q)|.
    pub fn norm(&self, q: &[f64]) -> f64 {
        squared_distance(&self.step(q), self.x).sqrt() / self.gamma
    }

    /// a(q) = sqrt(2 D(q)/gamma), D(q) the maximum over z of <q, x - z> + h(x) - h(z) - |z - x|^2/(2 gamma). At least |G(q)|, and 0 exactly where that is.
    /// Rounded up, as far as the values of the term and its prox are exact but for the rounding of their sums.
    pub fn stationarity(&self, q: &[f64]) -> f64 {
        let Self { term, gamma, x } = *self;
        let z = self.step(q);
        let (mut gap, mut size) = (0.0, 0.0);
        for ((x, z), q) in x.iter().zip(&z).zip(q) {
            let moved = x - z;
            gap += moved * (q - moved / (2.0 * gamma));
            size += moved.abs() * (q.abs() + moved.abs() / gamma);
        }
        let [here, there] = [term.value(x), term.value(&z)];
        gap += here - there;
        size += here.abs() + there.abs();
        // Each number of the sums is off by a few roundings, and so is each of the d additions.
        let error = (x.len() as f64 + 16.0) * f64::EPSILON * size;
        let gap = gap.max(0.0) + error;
        // D is at least gamma |G|^2/2: what cancels in the sum does not take that away.
        let least = squared_distance(&z, x).sqrt() / gamma;
        ((2.0 * gap / gamma).sqrt().max(least)) * (1.0 + 8.0 * f64::EPSILON)
    }

    /// How far the rounding of x - gamma q moves q: at most this.
    pub(crate) fn rounding(&self, q: &[f64]) -> f64 {
        let [x, q] = [self.x, q].map(|v| squared_norm(v).sqrt());
        2.0 * f64::EPSILON * (x / self.gamma + q)
    }
}

/// Moves a point that is outside of the domain into it, by a short prox; leaves every other point as it is. Means of points of the domain are in it but
/// for rounding, so they move by no more than that.
pub(crate) fn keep_inside(term: &dyn Term, x: &mut [f64]) {
    if term.outside(x).is_some() {
        let largest = x.iter().fold(1.0, |largest: f64, x| largest.max(x.abs()));
        term.prox(Steps::One(1e-8 * largest * largest), x);
    }
}
