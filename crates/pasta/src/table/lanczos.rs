//! An upper bound of the largest eigenvalue of a matrix M without negative eigenvalues that is only multiplied by vectors: Lanczos'
//! method from random starts, with an argument that holds for what was computed, rounding included.
//!
//! Let x be a unit eigenvector of the largest eigenvalue λ. From v_1 the method makes numbers α_j, β_j and unit vectors v_j with
//!
//! M v_j = β_{j-1} v_{j-1} + α_j v_j + β_j v_{j+1} + f_j,
//!
//! where f_j is rounding, |f_j| <= e. Multiplied by x, with s_j = <x, v_j>, this is
//!
//! β_j s_{j+1} = (λ - α_j) s_j - β_{j-1} s_{j-1} - <x, f_j>.
//!
//! Suppose that |s_1| >= δ and λ >= t. If t is larger than all eigenvalues of the tridiagonal matrix (and e is small), the recurrence bounds
//! the s_j from below by numbers that grow geometrically, the faster the larger t is. But |s_{j+1}| <= 1. So a t whose bound passes 1
//! is larger than λ. Nowhere are the v_j asked to be orthogonal, so none is kept, and the argument holds after every number of steps:
//! they may end as soon as the bound is good.
//!
//! What is random is |s_1| >= δ alone. For a start that is uniform on the sphere of R^n, s_1 has the density c (1 - s^2)^((n-3)/2) with
//! c <= sqrt((n-1)/(2π)), hence P(|s_1| < δ) <= δ sqrt(2n/π). One start with a small chance of failure would have a δ not far above the
//! rounding. [`STARTS`] independent starts, which share every pass over the table, fail together only if each does: the largest of their
//! bounds holds except with the probability P(|s_1| < δ)^STARTS.
//!
//! How many steps this takes at most: the polynomials p_j with s_{j+1} = p_j(λ) s_1 are orthonormal for the measure of v_1, so that
//! p_0^2 + .. + p_k^2 at t is the largest q(t)^2 of all q of degree k with mean square 1, among them a multiple of Chebyshev's polynomial on
//! [0, λ] that is at least T_k(2t/λ - 1). The largest p_j has a share of 1/(k+1) of that sum. Hence t <= λ (1 + ε) with sqrt ε about
//! ln(2 sqrt(k+1)/δ)/(2k). (With orthogonal v_j, s_1^2 + .. + s_{k+1}^2 <= 1 gives the same without sqrt(k+1): the rate of Kuczynski and Wozniakowski,
//! "Estimating the largest eigenvalue by the power and Lanczos algorithms with a random start", SIAM J. Matrix Anal. Appl. 13, 1992.) Bounds of
//! this kind, from the steps that were made and not from their number alone, are van Dorsselaer, Hochstenbach and van der Vorst's, "Computing
//! probabilistic bounds for extreme eigenvalues of symmetric matrices with the Lanczos method", SIAM J. Matrix Anal. Appl. 22, 2000.

use super::matrix::ROUNDOFF;
use crate::draws::{Address, Role, derived_seed};
use crate::kernels::{dot, squared_norm};

/// The probability that a bound does not hold, for the two matrices of a table together.
pub(super) const FAILURE: f64 = 1e-12;

/// Independent starts.
pub(super) const STARTS: usize = 4;

/// How far above the largest eigenvalue the bound may be for the steps to end.
const MARGIN: f64 = 0.05;

/// The most steps.
const MOST_STEPS: usize = 80;

/// Steps in which the bound has to fall by a thousandth, once there is one: where rounding is large it ends above the margin.
const PATIENCE: usize = 4;

/// Lanczos' method from all starts.
#[derive(Debug)]
pub(super) struct Lanczos {
    runs: Vec<Run>,
    /// Rows of M.
    n: usize,
    /// An upper bound that is known already.
    known: f64,
    /// e
    error: f64,
    /// The bound after each step.
    bounds: Vec<f64>,
}

/// The method from one start.
#[derive(Debug)]
struct Run {
    /// v_j
    v: Vec<f64>,
    /// v_{j-1}
    before: Vec<f64>,
    recurrence: Recurrence,
    /// Whether M v_j was a combination of v_{j-1} and v_j, but for rounding.
    ended: bool,
}

/// α_1, β_1, α_2, .. with what is known of the s_j.
#[derive(Debug)]
struct Recurrence {
    coefficients: Vec<(f64, f64)>,
    /// e
    error: f64,
    /// δ
    least: f64,
    /// The largest |v_j|, which is 1 but for rounding.
    length: f64,
}

impl Lanczos {
    /// For a matrix of n rows; `number` tells its starts from those of other matrices. `error` bounds the rounding of a product M v with
    /// |v| = 1, together with 64 roundings of numbers as large as |M|.
    pub(super) fn new(n: usize, number: u64, known: f64, error: f64) -> Self {
        // Half of the probability for each of two matrices, its fourth root for each start: P(|s_1| < δ) <= δ sqrt(2n/π).
        const { assert!(STARTS == 4) };
        let each = (FAILURE / 2.0).sqrt().sqrt();
        let least = each / (n as f64 * 2.0 / std::f64::consts::PI).sqrt();
        let length = 1.0 + 2.0 * (n as f64 + 16.0) * ROUNDOFF;
        let run = |start: usize| Run {
            v: on_sphere(n, number, start as u64),
            before: vec![0.0; n],
            // The start has its own rounding, far below δ.
            recurrence: Recurrence { coefficients: Vec::new(), error, least: least * (1.0 - 1e-6), length },
            ended: false,
        };
        Self { runs: (0..STARTS).map(run).collect(), n, known, error, bounds: Vec::new() }
    }

    /// The vectors that are to be multiplied by M; none when the bound is good, or will not become better.
    pub(super) fn vectors(&self) -> Vec<&[f64]> {
        let steps = self.bounds.len();
        let earlier = steps.checked_sub(PATIENCE + 1).map_or(self.known, |step| self.bounds[step]);
        let stands = earlier < self.known && self.bound() > 0.999 * earlier;
        if steps >= MOST_STEPS || stands || self.bound() <= (1.0 + MARGIN) * self.ritz() {
            return Vec::new();
        }
        self.runs.iter().filter(|run| !run.ended).map(|run| &run.v[..]).collect()
    }

    /// Takes the products of M and the vectors, one after another.
    pub(super) fn advance(&mut self, products: &[f64]) {
        let open = self.runs.iter_mut().filter(|run| !run.ended);
        open.zip(products.chunks(self.n)).for_each(|(run, product)| run.advance(product, self.error));
        let bound = self.runs.iter().map(|run| run.recurrence.bound(self.known)).fold(0.0, f64::max);
        self.bounds.push(bound);
    }

    /// The upper bound: that which was known, if there is no better one.
    pub(super) fn bound(&self) -> f64 {
        self.bounds.last().copied().unwrap_or(self.known)
    }

    /// The largest eigenvalue of all tridiagonal matrices, a lower bound but for rounding.
    fn ritz(&self) -> f64 {
        self.runs.iter().map(|run| run.recurrence.ritz(self.known)).fold(0.0, f64::max)
    }
}

impl Run {
    fn advance(&mut self, product: &[f64], error: f64) {
        let (v, before) = (&self.v, &mut self.before);
        let last = self.recurrence.coefficients.last().map_or(0.0, |(_, beta)| *beta);
        let rest = |alpha: f64, before: &[f64]| -> Vec<f64> {
            let terms = product.iter().zip(v).zip(before);
            terms.map(|((product, v), before)| product - last * before - alpha * v).collect()
        };
        // The second time for the digits that the first loses where the rest is small.
        let mut alpha = dot(product, v);
        alpha += dot(&rest(alpha, before), v);
        let next = rest(alpha, before);
        let beta = squared_norm(&next).sqrt();
        self.recurrence.coefficients.push((alpha, beta));
        self.ended = beta.is_nan() || beta <= error;
        if !self.ended {
            before.copy_from_slice(v);
            self.v = next.iter().map(|next| next / beta).collect();
        }
    }
}

impl Recurrence {
    /// Whether λ >= t contradicts the recurrence.
    fn excludes(&self, t: f64) -> bool {
        let (mut least, mut pull) = (self.least, 0.0);
        for &(alpha, beta) in &self.coefficients {
            // (t - α_j) s_j - β_{j-1} s_{j-1} - e is at least rest s_j; its own rounding is taken off.
            let rest = t - alpha - pull - self.error / least;
            let rest = rest - 8.0 * ROUNDOFF * (t + alpha.abs() + pull + self.error / least);
            if rest.is_nan() || rest <= 0.0 {
                return false;
            }
            let product = rest * least * (1.0 - 8.0 * ROUNDOFF);
            if product > beta * self.length {
                return true;
            }
            pull = beta * beta / rest * (1.0 + 8.0 * ROUNDOFF);
            least = product / beta * (1.0 - 8.0 * ROUNDOFF);
        }
        false
    }

    /// A number up to `most` that is larger than λ, or `most`.
    fn bound(&self, most: f64) -> f64 {
        least_such(most, |t| self.excludes(t))
    }

    /// The largest eigenvalue of the tridiagonal matrix: above it all pivots are positive.
    fn ritz(&self, most: f64) -> f64 {
        least_such(most, |t| {
            let mut pull = 0.0;
            self.coefficients.iter().all(|&(alpha, beta)| {
                let rest = t - alpha - pull;
                pull = beta * beta / rest;
                rest > 0.0
            })
        })
    }
}

/// About the least t in 0..=most from which on a statement is true, one for which it is; `most` if it is not true there.
fn least_such(most: f64, is_true: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, most);
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        if is_true(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

/// A start, uniform on the sphere: the same for every table of so many columns.
fn on_sphere(n: usize, number: u64, start: u64) -> Vec<f64> {
    // Nothing else is drawn from this seed, whatever a table is made of.
    let seed = derived_seed(0, Role::Setup, u64::from(u32::from_be_bytes(*b"lanc")));
    let mut xi = Address { seed, role: Role::Setup, step: number, sample: start }.stream();
    let normal: Vec<f64> = (0..n).map(|_| xi.normal()).collect();
    let length = squared_norm(&normal).sqrt();
    normal.iter().map(|normal| normal / length).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bound and the number of steps for a diagonal matrix, with starts of its own for each number: starts are uniform on the sphere,
    /// so a diagonal matrix stands for all with its eigenvalues.
    fn bound_of(eigenvalues: &[f64], number: u64) -> (f64, usize) {
        let trace: f64 = eigenvalues.iter().sum();
        let n = eigenvalues.len();
        let mut method = Lanczos::new(n, number, trace * (1.0 + 1e-12), 100.0 * ROUNDOFF * trace);
        loop {
            let vectors = method.vectors().concat();
            if vectors.is_empty() {
                return (method.bound(), method.bounds.len());
            }
            let products: Vec<f64> =
                vectors.chunks(n).flat_map(|v| v.iter().zip(eigenvalues).map(|(v, l)| v * l)).collect();
            method.advance(&products);
        }
    }

    /// Spectra that are easy, hard and in between, of n eigenvalues, the largest being 1.
    fn spectra(n: usize) -> Vec<(&'static str, Vec<f64>)> {
        let of = |f: &dyn Fn(f64) -> f64| (0..n).map(|i| f(i as f64 / n as f64)).collect::<Vec<f64>>();
        let cluster = |k: usize| (0..n).map(|i| if i < k { 1.0 - 1e-4 * i as f64 } else { 0.5 }).collect();
        vec![
            ("rank one", (0..n).map(|i| f64::from(u8::from(i == 0))).collect()),
            ("all alike", vec![1.0; n]),
            ("one above many", (0..n).map(|i| if i == 0 { 1.0 } else { 0.9 }).collect()),
            ("two alike", (0..n).map(|i| if i < 2 { 1.0 } else { 0.3 }).collect()),
            ("cluster", cluster(10.min(n))),
            ("evenly", of(&|s| 1.0 - s)),
            ("soft edge", of(&|s| (1.0 - s.powf(2.0 / 3.0)).max(0.0))),
            ("powers", of(&|s| (1.0 + s * n as f64).powi(-2))),
            ("geometric", of(&|s| (-(s * n as f64)).exp())),
            ("nearly none", (0..n).map(|i| if i == 0 { 1.0 } else { 1e-9 }).collect()),
        ]
    }

    #[test]
    fn the_bound_is_above_the_largest_eigenvalue_and_within_the_margin() {
        for n in [1, 2, 3, 10, 200, 1500] {
            for (name, eigenvalues) in spectra(n) {
                let largest = eigenvalues.iter().copied().fold(0.0, f64::max);
                // A thousand times as many starts would still fail with probability 1e-9.
                for number in 0..if n <= 200 { 100 } else { 5 } {
                    let (bound, steps) = bound_of(&eigenvalues, number);
                    assert!(bound >= largest, "{name}, n = {n}: {bound} < {largest}");
                    // The lower bound that ended the steps is itself below the largest eigenvalue.
                    assert!(
                        bound <= (1.0 + MARGIN) * largest * (1.0 + 1e-9),
                        "{name}, n = {n}: {bound}, {steps} steps"
                    );
                }
            }
        }
    }

    #[test]
    fn steps_are_at_most_those_of_the_rate() {
        // Chebyshev's polynomials: after k steps t <= λ (1 + cosh(acosh(sqrt(k + 1)/δ)/k))/2. The steps end when that is within the margin of
        // a lower bound, which a bound for 0.6 of the margin leaves room for.
        for n in [10, 200, 1500] {
            let least = (FAILURE / 2.0).sqrt().sqrt() / (n as f64 * 2.0 / std::f64::consts::PI).sqrt();
            let reached = |k: f64| ((((k + 1.0).sqrt() / least).acosh() / k).cosh() + 1.0) / 2.0;
            let most = (1..=MOST_STEPS).find(|k| reached(*k as f64) <= 1.0 + 0.6 * MARGIN).unwrap();
            for (name, eigenvalues) in spectra(n) {
                let (_, steps) = bound_of(&eigenvalues, 3);
                assert!(steps <= most, "{name}, n = {n}: {steps} steps, at most {most}");
            }
        }
    }

    #[test]
    fn a_start_without_the_eigenvector_is_caught_by_the_others() {
        // One start that lies in the space of the other eigenvectors knows nothing of the largest.
        let eigenvalues: Vec<f64> = (0..50).map(|i| if i == 7 { 1.0 } else { 0.1 }).collect();
        let trace = eigenvalues.iter().sum::<f64>();
        let mut method = Lanczos::new(50, 0, trace, 100.0 * ROUNDOFF * trace);
        for run in &mut method.runs[..STARTS - 1] {
            run.v[7] = 0.0;
            let length = squared_norm(&run.v).sqrt();
            run.v.iter_mut().for_each(|v| *v /= length);
        }
        for _ in 0..10 {
            let vectors: Vec<f64> =
                method.runs.iter().filter(|run| !run.ended).flat_map(|run| run.v.clone()).collect();
            let products: Vec<f64> =
                vectors.chunks(50).flat_map(|v| v.iter().zip(&eigenvalues).map(|(v, l)| v * l)).collect();
            method.advance(&products);
        }
        assert!(method.runs[0].recurrence.bound(trace) < 0.2);
        assert!((1.0..1.001).contains(&method.bound()), "{}", method.bound());
    }

    #[test]
    fn more_rounding_makes_the_bound_larger_and_never_false() {
        let eigenvalues: Vec<f64> = (0..100).map(|i| 1.0 / f64::from(1 + i)).collect();
        let trace: f64 = eigenvalues.iter().sum();
        let mut last = 0.0;
        for error in [1e-15, 1e-9, 1e-7, 1e-6, 1e-5, 1e-3] {
            // Products that are wrong by almost as much as is allowed, always to the disadvantage of the first eigenvector.
            let mut method = Lanczos::new(100, 1, trace, error);
            for _ in 0..30 {
                let vectors = method.vectors().concat();
                if vectors.is_empty() {
                    break;
                }
                let wrong = |v: &[f64]| {
                    let mut product: Vec<f64> = v.iter().zip(&eigenvalues).map(|(v, l)| v * l).collect();
                    product[0] -= v[0].signum() * 0.9 * error.min(v[0].abs());
                    product
                };
                let products: Vec<f64> = vectors.chunks(100).flat_map(wrong).collect();
                method.advance(&products);
            }
            let bound = method.bound().min(trace);
            assert!(bound >= 1.0 && bound >= last * 0.97, "{error}: {bound} after {last}");
            last = bound;
        }
        assert!(last > 1.5, "{last}");
    }

    #[test]
    fn steps_end_where_rounding_stands_in_the_way() {
        let eigenvalues: Vec<f64> = (0..100).map(|i| 1.0 - f64::from(i) / 100.0).collect();
        let mut method = Lanczos::new(100, 2, 50.5, 3e-5);
        while !method.vectors().is_empty() {
            let products: Vec<f64> = method.vectors().concat();
            let products = products.chunks(100).flat_map(|v| v.iter().zip(&eigenvalues).map(|(v, l)| v * l));
            method.advance(&products.collect::<Vec<f64>>());
        }
        assert!((1.0 + MARGIN..2.0).contains(&method.bound()), "{}", method.bound());
        assert!(method.bounds.len() < 40, "{}", method.bounds.len());
    }

    #[test]
    fn a_start_has_a_small_part_in_a_direction_as_often_as_the_bound_says() {
        // P(|s_1| < δ) <= δ sqrt(2n/π), and at n = 2 it is sqrt(π)/π = .56 of that: 20,000 starts, |count - mean| <= 5 deviations.
        for n in [2, 3, 30] {
            let delta = 0.1 / (n as f64).sqrt();
            let most = delta * (2.0 * n as f64 / std::f64::consts::PI).sqrt();
            let count = (0..20_000).filter(|start| on_sphere(n, 99, *start)[0].abs() < delta).count() as f64;
            let deviation = (20_000.0 * most).sqrt();
            assert!(count <= 20_000.0 * most + 5.0 * deviation, "{n}: {count}");
            assert!(count >= 20_000.0 * 0.55 * most - 5.0 * deviation, "{n}: {count}");
        }
    }
}
