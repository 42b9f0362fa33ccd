//! Convex terms: constraints and penalties h beside f, so that F = f + h is minimised.
//!
//! A term is known, so it costs no samples. Methods meet it only through its [prox](Term::prox); a set is the term that is 0 on it and
//! infinite elsewhere, and its prox is the projection.

mod interval;
mod mapping;

use std::fmt;

pub use interval::Interval;
pub use mapping::Mapping;
pub(crate) use mapping::keep_inside;

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

    /// Replaces v by the minimiser z of h(z) + sum (z_i - v_i)^2/(2 gamma_i). It lies in the domain, without rounding errors.
    fn prox(&self, steps: Steps<'_>, v: &mut [f64]);

    /// Why x is outside of the domain, and by which coordinate; `None` inside.
    fn outside(&self, x: &[f64]) -> Option<Outside>;
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
