//! Convex terms: constraints and penalties h beside f, so that F = f + h is minimised.
//!
//! A term is known, so it costs no samples. Methods meet it only through its [prox](Term::prox); a set is the term that is 0 on it and
//! infinite elsewhere, and its prox is the projection.

mod ball;
mod blocks;
mod elastic_net;
mod group;
mod interval;
mod l1;
mod laws;
mod log_barrier;
mod mapping;
mod polyhedron;
mod separable;
mod simplex;
mod spec;
mod total_variation;

use std::fmt;

pub use ball::Ball;
pub use blocks::{Block, Blocks, Coordinates};
pub use elastic_net::ElasticNet;
pub use group::GroupL2;
pub use interval::Interval;
pub use l1::L1;
pub use laws::{check_laws, metric_prox};
pub use log_barrier::LogBarrier;
pub use mapping::Mapping;
pub(crate) use mapping::keep_inside;
pub use polyhedron::Polyhedron;
pub use separable::{Piece, Separable};
pub use simplex::Simplex;
pub use spec::{KINDS, Key, Kind, Numbers, TermSpec, of_specs};
pub use total_variation::TotalVariation;

/// A convex function h of x, infinite outside of its domain.
///
/// ```
/// use pasta_opt::term::{Interval, Steps, Term};
///
/// let probability = Interval { lower: vec![0.0], upper: vec![1.0] };
/// let mut x = [1.5, -0.5, 0.25];
/// probability.prox(Steps::One(0.1), &mut x);
/// assert_eq!(x, [1.0, 0.0, 0.25]);
/// assert_eq!(probability.value(&x), 0.0);
/// ```
pub trait Term: Send + Sync + fmt::Debug {
    /// What it is, parameters included. A checkpoint is only resumed with a term of the same identity.
    fn identity(&self) -> String;

    /// Refuses a number of coordinates that it is not for, and parameters without a meaning.
    fn check(&self, dim: usize) -> Result<(), TermError>;

    /// h(x), infinite outside of the domain.
    fn value(&self, x: &[f64]) -> f64;

    /// Replaces v by the minimiser z of h(z) + sum (z_i - v_i)^2/(2 gamma_i). It lies in the domain as [`outside`](Self::outside) sees
    /// it: `outside` of the result is `None`. Finite v gives finite z.
    fn prox(&self, steps: Steps<'_>, v: &mut [f64]);

    /// Why x is outside of the domain, and by which coordinate; `None` inside.
    fn outside(&self, x: &[f64]) -> Option<Outside>;

    /// Its part that depends on coordinate i alone, if h is a sum of such parts; `None` otherwise. Such terms can be added.
    fn piece(&self, _i: usize) -> Option<Piece> {
        None
    }

    /// How strongly h curves near x: a number m >= 0 such that h(x) >= h(z) + <v, x - z> + m |x - z|^2/2 for every z of the domain with |x - z| <= `reach`
    /// and every subgradient v of h at z with |v| >= `least`. 0 is always right; more makes certificates of the gradient mapping cheaper.
    fn modulus(&self, x: &[f64], _least: f64, reach: f64) -> f64 {
        let of = |(i, x): (usize, &f64)| self.piece(i).map_or(0.0, |piece| piece.modulus(*x, reach));
        x.iter().enumerate().map(of).reduce(f64::min).unwrap_or(0.0)
    }
}

/// The lengths gamma of a [prox](Term::prox).
#[derive(Debug, Clone, Copy)]
pub enum Steps<'a> {
    /// One for all coordinates.
    One(f64),
    /// One for each: a prox in a diagonal metric.
    Each(&'a [f64]),
}

impl Steps<'_> {
    /// That of coordinate i.
    #[inline]
    pub fn at(&self, i: usize) -> f64 {
        match self {
            Self::One(gamma) => *gamma,
            Self::Each(gammas) => gammas[i],
        }
    }
}

/// Where a point leaves a domain.
#[derive(Debug, Clone, PartialEq)]
pub struct Outside {
    /// A coordinate that breaks it; `None` where no single one does.
    pub coordinate: Option<usize>,
    /// What is broken, with numbers: "x2 = -1 is below 0".
    pub words: String,
}

/// A term that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TermError(pub String);

/// Number i of a list that has one for all coordinates, or one for each.
fn entry(numbers: &[f64], i: usize) -> f64 {
    if numbers.len() == 1 { numbers[0] } else { numbers[i] }
}

/// Refuses a list that has neither one number nor `dim`.
fn one_or_each(name: &str, numbers: &[f64], dim: usize) -> Result<(), TermError> {
    let n = numbers.len();
    if n == 1 || n == dim {
        return Ok(());
    }
    Err(TermError(format!("{name} has {n} numbers for {dim} coordinates: give 1 or {dim}")))
}

/// Refuses numbers that are negative, infinite or not numbers.
fn finite_and_non_negative(name: &str, numbers: &[f64]) -> Result<(), TermError> {
    match numbers.iter().find(|&&w| !(w.is_finite() && w >= 0.0)) {
        Some(wrong) => Err(TermError(format!("{name} must be finite and at least 0, but is {wrong}"))),
        None => Ok(()),
    }
}

/// The first coordinate that is not a number, as a reason to be outside.
fn not_a_number(x: &[f64]) -> Option<Outside> {
    let i = x.iter().position(|x| x.is_nan())?;
    Some(Outside { coordinate: Some(i), words: format!("x{i} is not a number") })
}

/// |x| without overflow or underflow.
fn norm(x: impl Iterator<Item = f64> + Clone) -> f64 {
    let largest = x.clone().fold(0.0, |most: f64, x| most.max(x.abs()));
    if largest == 0.0 || !largest.is_finite() {
        return largest;
    }
    largest * x.map(|x| (x / largest).powi(2)).sum::<f64>().sqrt()
}

/// The point of (low, high) where `rises`, which grows, turns from negative to non-negative: bisection to the last bit, by exponents
/// first, so that any range costs about a hundred steps.
fn root(mut low: f64, mut high: f64, rises: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..200 {
        let middle =
            if low > 0.0 && high > 4.0 * low { low.sqrt() * high.sqrt() } else { low + (high - low) / 2.0 };
        if !(low < middle && middle < high) {
            break;
        }
        if rises(middle) < 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}
