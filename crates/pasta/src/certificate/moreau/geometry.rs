//! What follows from subgradients at the points that were found, and the oracle that averages them.

use std::sync::Arc;

use super::super::Basis;
use super::super::means::NUMBER_BITS;
use crate::draws::Role;
use crate::kernels::{squared_distance, update_mean};
use crate::oracle::{About, Answer, Batch, Charge, Draw, Oracle, OracleError, Request, Source, Team};

/// The points that a certificate rests on, and what follows from the vector (mean G, C/r).
#[derive(Debug)]
pub(super) struct Geometry {
    pub(super) points: Vec<Vec<f64>>,
    /// ybar.
    pub(super) mean: Vec<f64>,
    /// lambda (ybar - x): the part of mean G that is known.
    pub(super) pull: Vec<f64>,
    pub(super) distance: f64,
    /// S.
    pub(super) spread: f64,
    pub(super) lambda: f64,
    pub(super) rho: f64,
    /// r.
    pub(super) scale: f64,
}

impl Geometry {
    pub(super) fn new(x: &[f64], points: Vec<Vec<f64>>, lambda: f64, rho: f64) -> Self {
        let mut mean = vec![0.0; x.len()];
        for (t, point) in points.iter().enumerate() {
            update_mean(&mut mean, point, t as u64 + 1);
        }
        let spread =
            points.iter().map(|y| squared_distance(y, &mean)).sum::<f64>() / points.len().max(1) as f64;
        let pull = mean.iter().zip(x).map(|(mean, x)| lambda * (mean - x)).collect();
        let distance = squared_distance(x, &mean).sqrt();
        Self { points, mean, pull, distance, spread, lambda, rho, scale: 1.0 }
    }

    pub(super) fn mu(&self) -> f64 {
        self.lambda - self.rho
    }

    /// Whether there is a C at all.
    pub(super) fn has_last(&self) -> bool {
        self.points.len() > 1
    }

    /// How much the last coordinate, C/r, can add to a noise at y_t: a factor on its square.
    pub(super) fn stretch(&self, point: &[f64]) -> f64 {
        if self.has_last() {
            1.0 + squared_distance(point, &self.mean) / (self.scale * self.scale)
        } else {
            1.0
        }
    }

    /// The largest declared variance over the points.
    pub(super) fn declared_variance(&self, basis: Basis, start: &[f64]) -> Option<f64> {
        let at = |y: &Vec<f64>| basis.at_distance(squared_distance(y, start).sqrt()).declared_variance();
        self.points.iter().map(at).try_fold(0.0, |largest: f64, v| v.map(|v| largest.max(v)))
    }

    /// The basis of the sum, from that of f's samples.
    pub(super) fn basis(&self, basis: Basis, variance: Option<f64>) -> Basis {
        let count = self.points.len() as f64;
        let stretches = || self.points.iter().map(|y| self.stretch(y));
        match (basis, variance) {
            // Independent samples at K points, each weighed 1/K.
            (_, Some(variance)) => Basis::Variance(variance * stretches().sum::<f64>() / (count * count)),
            // A stretched noise has at most its kurtosis times the square of the stretch, and a sum of independent
            // ones at most the largest, or 3.
            (Basis::Kurtosis(kappa), None) => {
                Basis::Kurtosis(kappa.max(3.0) * stretches().fold(1.0, f64::max).powi(2))
            }
            (other, None) => other,
        }
    }

    /// The U that makes D at most this.
    pub(super) fn norm_for(&self, d: f64) -> f64 {
        let r = if self.has_last() { self.scale } else { 0.0 };
        self.mu() * d * d / d.hypot(r)
    }

    /// lambda (|x - ybar| + D) with the largest D that mu D^2 <= U sqrt(D^2 + r^2) allows, rounded up.
    pub(super) fn moreau_bound(&self, norm: f64) -> f64 {
        let r = if self.has_last() { self.scale } else { 0.0 };
        let u = norm / self.mu();
        // D^2 is the larger root of t^2 = u^2 (t + r^2).
        let d = (0.5 * u * (u + u.hypot(2.0 * r))).sqrt();
        // A dozen operations, and the sum of squares in |x - ybar|.
        self.lambda * (self.distance + d) * (1.0 + (self.mean.len() as f64 / 8.0 + 32.0) * f64::EPSILON)
    }

    /// Adds what is known without a sample: the pull, and (rho S)/r, since mean <lambda (y_t - x), y_t - ybar> = lambda S.
    pub(super) fn add_known(&self, n: f64, out: &mut [f64]) {
        out.iter_mut().zip(&self.pull).for_each(|(out, pull)| *out += n * pull);
        if self.has_last() {
            out[self.pull.len()] += n * self.rho * self.spread / self.scale;
        }
    }

    /// Adds g, a sum of f's subgradients at y_t, with its weight.
    pub(super) fn add(&self, t: usize, g: &[f64], out: &mut [f64]) {
        let weight = 1.0 / self.points.len() as f64;
        out.iter_mut().zip(g).for_each(|(out, g)| *out += weight * g);
        if self.has_last() {
            let along = g.iter().zip(&self.points[t]).zip(&self.mean).map(|((g, y), mean)| g * (y - mean));
            out[g.len()] += weight * along.sum::<f64>() / self.scale;
        }
    }
}

/// An oracle for the vector (mean G, C/r): one of its samples is one of f's at each of the points.
pub(super) struct Averaged {
    pub(super) oracle: Arc<dyn Oracle>,
    pub(super) geometry: Arc<Geometry>,
    pub(super) about: About,
}

impl Averaged {
    pub(super) fn new(oracle: Arc<dyn Oracle>, geometry: Arc<Geometry>) -> Self {
        let points = geometry.points.len();
        let inner = oracle.about();
        let about = About {
            dim: inner.dim + usize::from(geometry.has_last()),
            identity: format!("{points} points of {}", inner.identity),
            source: match inner.source {
                Source::Table { rows } => Source::Table { rows: rows * points as u64 },
                other => other,
            },
            losses: false,
            shared: false,
            pathwise: inner.pathwise,
            additive: inner.additive,
            trusted: inner.trusted,
        };
        Self { oracle, geometry, about }
    }

    /// The question to f's oracle at point number `t`: fresh samples at every point.
    pub(super) fn draw(&self, draw: &Draw, t: usize) -> Draw {
        match draw {
            Draw::Batch(batch) => {
                let step = step_at(batch.step, self.geometry.points.len(), t);
                Draw::Batch(Batch { step, ..batch.clone() })
            }
            everything @ Draw::Everything(_) => everything.clone(),
        }
    }
}

/// The step of the samples at point number `t`. The attempt stays where it is: another attempt may rest on another number of points, and still has
/// samples of its own.
fn step_at(step: u64, points: usize, t: usize) -> u64 {
    let number = step & ((1 << NUMBER_BITS) - 1);
    (step - number).wrapping_add(number.wrapping_mul(points as u64)).wrapping_add(t as u64)
}

impl Oracle for Averaged {
    fn about(&self) -> &About {
        &self.about
    }

    fn price(&self, request: &Request<'_>) -> Charge {
        let points = self.geometry.points.len() as u128;
        let at = [self.geometry.mean.as_slice()];
        let inner =
            Request { draw: request.draw.clone(), points: &at, ..Request::everything(Role::Search, &at) };
        let Charge { samples, evaluations, exact } = self.oracle.price(&inner);
        Charge { samples: samples * points, evaluations: evaluations * points, exact }
    }

    fn answer(&self, request: &Request<'_>, answer: &mut Answer<'_>) -> Result<Charge, OracleError> {
        let n = match &request.draw {
            Draw::Batch(batch) => batch.count() as f64,
            Draw::Everything(_) => 1.0,
        };
        let mut total = Charge { exact: true, ..Charge::default() };
        let out = &mut *answer.gradients;
        out.fill(0.0);
        let mut g = vec![0.0; self.geometry.pull.len()];
        for (t, y) in self.geometry.points.iter().enumerate() {
            let points: &[&[f64]] = &[y];
            let request = Request {
                draw: self.draw(&request.draw, t),
                stop: request.stop,
                team: request.team,
                ..Request::everything(Role::Search, points)
            };
            let Charge { samples, evaluations, exact } =
                self.oracle.answer(&request, &mut Answer::new(&mut g))?;
            total.samples += samples;
            total.evaluations += evaluations;
            total.exact &= exact;
            self.geometry.add(t, &g, out);
        }
        self.geometry.add_known(n, out);
        Ok(total)
    }

    fn team(&self) -> Option<&dyn Team> {
        self.oracle.team()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn attempts_that_rest_on_different_numbers_of_points_share_no_sample() {
        let steps = |attempt: u64, points: usize| {
            let numbers = (0..100).map(move |number| (attempt << NUMBER_BITS) | number);
            numbers.flat_map(move |step| (0..points).map(move |t| step_at(step, points, t)))
        };
        let attempts = [(0, 1), (1, 4096), (2, 2048), (3, 1000), (4, 1024)];
        let mut seen = HashSet::new();
        for (attempt, points) in attempts {
            assert!(steps(attempt, points).all(|step| seen.insert(step)), "attempt {attempt}");
        }
    }
}
