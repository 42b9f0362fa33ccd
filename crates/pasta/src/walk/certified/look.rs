//! A look: a few fresh samples by which a run guesses whether a certificate is worth trying. Nothing is claimed of it.

use serde::{Deserialize, Serialize};

use crate::certificate::sequential::UNSURE;
use crate::certificate::{Basis, Guess};
use crate::moments::Moments;
use crate::term::Mapping;

/// Sub-batches of a look.
pub(super) const MEANS: u64 = 64;
/// Groups of them, where there is a term.
pub(super) const GROUPS: u64 = 8;
/// A gradient that looks larger than this share of the target is not tried: the bound would not fit in between.
const HOPEFUL: f64 = 0.7;
/// A look resolves the gradient if its standard error is about this share of the target.
const RESOLVED: f64 = 0.7;

/// Samples of each of the means of a look of about so many samples.
pub(super) fn samples_each(samples: u64) -> u64 {
    samples.div_ceil(MEANS).max(1)
}

/// How many samples such a look draws.
pub(super) fn drawn_by(samples: u64) -> u128 {
    u128::from(MEANS) * u128::from(samples_each(samples))
}

/// The mean of groups of one size.
pub(super) fn mean_of(groups: &[Moments]) -> Vec<f64> {
    let mut all = Moments::new(groups.first().map_or(0, |group| group.mean.len()));
    groups.iter().for_each(|group| all.add(&group.mean));
    all.mean
}

/// What a look saw of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Seen {
    /// |grad f|^2, without bias; may be negative.
    pub(crate) squared: f64,
    /// The square of the mean's standard error.
    pub(crate) squared_error: f64,
    /// Of one sample.
    pub(super) variance: f64,
    /// Of one sample, as a certificate will take it.
    pub(crate) planned_variance: f64,
    /// Whether it was no guess.
    exact: bool,
}

impl Seen {
    pub(super) fn new(moments: &Moments, samples_each: u64, basis: Basis) -> Self {
        let variance = moments.variance() * samples_each as f64;
        Self {
            squared: moments.squared_mean(),
            squared_error: moments.error2(),
            variance,
            planned_variance: basis.declared_variance().unwrap_or(UNSURE * variance),
            exact: false,
        }
    }

    /// The same of a gradient mapping, from groups of means: as a certificate would bound it, with the error that leaving out one group at a time shows.
    pub(super) fn mapped(groups: &[Moments], mapping: &Mapping<'_>, samples_each: u64, basis: Basis) -> Self {
        let (n, mean) = (groups.len() as f64, mean_of(groups));
        let of_groups = groups.iter().map(Moments::variance).sum::<f64>() / n;
        let mut left_out = Moments::new(mean.len());
        for group in groups {
            let others: Vec<f64> =
                mean.iter().zip(&group.mean).map(|(m, g)| (n * m - g) / (n - 1.0)).collect();
            left_out.add(&mapping.of(&others));
        }
        let squared_error = left_out.scatter() * (n - 1.0) / n;
        let variance = of_groups * samples_each as f64;
        Self {
            squared: mapping.stationarity(&mean).powi(2) - squared_error,
            squared_error,
            variance,
            planned_variance: basis.declared_variance().unwrap_or(UNSURE * variance),
            exact: false,
        }
    }

    /// The gradient itself.
    pub(super) fn exactly(squared: f64) -> Self {
        Self { squared, squared_error: 0.0, variance: 0.0, planned_variance: 0.0, exact: true }
    }

    /// |grad f|, as far as it is known: what may be noise counts.
    pub(super) fn norm(&self) -> f64 {
        (self.squared.max(0.0) + self.squared_error).sqrt()
    }

    /// For the plan of a certificate: what is not seen is not zero.
    pub(super) fn guess(&self) -> Guess {
        let squared_norm = self.squared.max(0.0) + 0.1 * self.squared_error;
        Guess { norm: squared_norm.sqrt(), variance: (!self.exact).then_some(self.variance) }
    }

    pub(crate) fn is_hopeful(&self, target: f64) -> bool {
        if self.exact {
            return self.squared <= target * target;
        }
        // A look that was to resolve may have been planned by too small a variance.
        self.squared_error <= 2.0 * (RESOLVED * target).powi(2)
            && self.squared <= (HOPEFUL * target).powi(2) + self.squared_error
    }

    /// How many samples would resolve the target, if these do not and it is still open on which side the gradient is.
    pub(super) fn wanted(&self, target: f64) -> Option<u64> {
        let resolved = (RESOLVED * target).powi(2);
        let open = self.squared <= (HOPEFUL * target).powi(2) + 3.0 * self.squared_error;
        (open && self.squared_error > resolved).then_some((self.variance / resolved) as u64)
    }
}
