//! Intervals for single predictions, by split conformal prediction.
//!
//! Rows that a model was not fitted to say how far its predictions are off: the interval of level 0.9 reaches as far as the error of rank ceil(0.9 (n + 1)) among n of them. If these
//! rows and a new one are exchangeable, it covers the label of the new one with probability 0.9 at least, whatever the model and the noise (Vovk, Gammerman and Shafer 2005; Lei, G'Sell, Rinaldo,
//! Tibshirani and Wasserman 2018). That is a mean over rows: of rows of one kind, more or fewer may be covered.

use serde::{Deserialize, Serialize};

use crate::score::has_classes;
use crate::table::{Features, Labels, Loss, Model, TableError};

/// How far predictions of a model are off, by rows that it was not fitted to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conformal {
    /// The rows.
    pub rows: u64,
    /// Errors in increasing order, at most [`MOST`] of them: the k-th of m is that of rank ceil(k rows/m), from 1.
    pub errors: Vec<f64>,
}

/// Errors that are kept.
pub const MOST: usize = 1000;

/// Why there is no interval.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConformalError {
    /// The level is out of range.
    #[error("an interval needs a level between 0 and 1, got {0}")]
    Level(f64),
    /// Too few rows were kept back.
    #[error(
        "an interval of level {level} needs at least {needs} rows that were not fitted, but there are {rows}"
    )]
    TooFew {
        /// The level.
        level: f64,
        /// The rows that it needs.
        needs: u64,
        /// The rows.
        rows: u64,
    },
}

/// What an error is measured in: counts vary with the root of their mean.
fn unit(loss: Loss, mean: f64) -> f64 {
    if loss.row().labels == Labels::Counts { mean.max(f64::MIN_POSITIVE).sqrt() } else { 1.0 }
}

impl Conformal {
    /// The errors of a model on rows that it was not fitted to; `None` where labels are classes. Refuses features with another number of columns.
    ///
    /// ```
    /// use pasta_opt::conformal::Conformal;
    /// use pasta_opt::table::{Dense, Features, Loss, Model};
    ///
    /// let model = Model { loss: Loss::LeastSquares, columns: 1, degree: 1, scaling: None, weights: vec![1.0], intercepts: vec![0.0] };
    /// let features = Features::Dense(Dense { rows: 4, columns: 1, values: vec![0.0, 1.0, 2.0, 3.0].into() });
    /// let Some(conformal) = Conformal::of(&model, &features, &[1.0, -1.0, 2.0, 6.0])? else { return Err("numbers".into()) };
    /// assert_eq!(conformal.errors, [0.0, 1.0, 2.0, 3.0]);
    /// // Rank ceil(0.6 * 5) = 3.
    /// assert_eq!(conformal.interval(0.6, Loss::LeastSquares, 10.0)?, [8.0, 12.0]);
    /// assert!(conformal.interval(0.9, Loss::LeastSquares, 10.0).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of(model: &Model, features: &Features, labels: &[f64]) -> Result<Option<Self>, TableError> {
        if has_classes(model.loss) {
            return Ok(None);
        }
        let scores = model.scores(features)?;
        let error = |(score, label): (&f64, &f64)| {
            let mut mean = [*score];
            model.loss.mean(&mut mean);
            (label - mean[0]).abs() / unit(model.loss, mean[0])
        };
        let mut errors: Vec<f64> = scores.iter().zip(labels).map(error).collect();
        errors.sort_unstable_by(f64::total_cmp);
        let rows = errors.len();
        let kept = rows.min(MOST);
        let errors = (1..=kept).map(|k| errors[(k * rows).div_ceil(kept) - 1]).collect();
        Ok(Some(Self { rows: rows as u64, errors }))
    }

    /// The interval of a prediction; not below 0 for counts.
    pub fn interval(&self, level: f64, loss: Loss, mean: f64) -> Result<[f64; 2], ConformalError> {
        let half = self.reach(level)? * unit(loss, mean);
        let low = mean - half;
        Ok([if loss.row().labels == Labels::Counts { low.max(0.0) } else { low }, mean + half])
    }

    /// The error that an interval of this level reaches to.
    pub fn reach(&self, level: f64) -> Result<f64, ConformalError> {
        if !(level > 0.0 && level < 1.0) {
            return Err(ConformalError::Level(level));
        }
        let n = self.rows as f64;
        let rank = (level * (n + 1.0)).ceil();
        // Of those that are kept, the first whose rank is as large.
        let place = (rank * self.errors.len() as f64 / n).ceil();
        if rank > n || self.errors.is_empty() {
            let needs = (level / (1.0 - level)).ceil() as u64;
            return Err(ConformalError::TooFew { level, needs, rows: self.rows });
        }
        Ok(self.errors[(place as usize).clamp(1, self.errors.len()) - 1])
    }
}

#[cfg(test)]
mod tests {
    use super::{Conformal, MOST};
    use crate::table::{Dense, Features, Loss, Model};

    #[test]
    fn of_many_errors_those_that_are_kept_reach_at_least_as_far() {
        let rows = 2 * MOST + 345;
        let features = Features::Dense(Dense { rows, columns: 1, values: vec![0.0; rows].into() });
        let (weights, intercepts) = (vec![0.0], vec![0.0]);
        let model =
            Model { loss: Loss::LeastSquares, columns: 1, degree: 1, scaling: None, weights, intercepts };
        let labels: Vec<f64> = (1..=rows).map(|k| k as f64).collect();
        let conformal = Conformal::of(&model, &features, &labels).unwrap().unwrap();
        assert_eq!(conformal.errors.len(), MOST);
        for level in [0.01, 0.5, 0.9, 0.95, 0.999] {
            let rank = (level * (rows as f64 + 1.0)).ceil();
            let reach = conformal.reach(level).unwrap();
            // At most the two or three errors between those that are kept.
            assert!((rank..=rank + 3.0).contains(&reach), "{level}: {reach} {rank}");
        }
    }
}
