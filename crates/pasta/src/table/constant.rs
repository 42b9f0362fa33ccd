//! The best model without columns, from the labels alone: where a fit begins.
//!
//! At 0 the gradient of labels far from 0 is nearly all the intercept's, and f is all distance: a share of either says nothing about the columns.

use super::loss::{Scalar, with_scalar};
use super::{Kink, Linear, Loss};

impl Linear {
    /// Where a fit begins: no column counts, and the intercept is the best there is or close to it. Without an intercept, and for losses whose best constant is none or not
    /// better than 0, at [`Linear::start`].
    ///
    /// ```
    /// use std::sync::Arc;
    /// use pasta_opt::table::{Dense, Design, Features, Linear, Loss, Table};
    ///
    /// let features = Features::Dense(Dense { rows: 3, columns: 1, values: vec![1.0, 2.0, 4.0].into() });
    /// let table = Arc::new(Table::new(features, Arc::new(vec![1.0, 2.0, 9.0]), None, Vec::new())?);
    /// let begins = |loss| Linear::new(Arc::clone(&table), loss, Design::default()).map(|linear| linear.best_constant());
    /// assert_eq!(begins(Loss::LeastSquares)?, [0.0, 4.0]);
    /// assert_eq!(begins(Loss::Absolute)?, [0.0, 2.0]);
    /// # Ok::<(), pasta_opt::table::TableError>(())
    /// ```
    pub fn best_constant(&self) -> Vec<f64> {
        let mut start = self.start();
        if !self.design().intercept {
            return start;
        }
        let stride = self.stride();
        match self.loss() {
            Loss::LeastSquares => start[stride - 1] = self.mean_label(|y| y),
            Loss::Absolute => start[stride - 1] = self.label_at(0.5),
            Loss::Quantile { level } => start[stride - 1] = self.label_at(level),
            Loss::Huber { delta } => start[stride - 1] = self.huber_constant(delta),
            Loss::Logistic => {
                let share = self.mean_label(|y| f64::from(u8::from(y > 0.0)));
                start[stride - 1] = finite(libm::log(share / (1.0 - share)));
            }
            Loss::SquaredHinge => start[stride - 1] = self.mean_label(|y| if y > 0.0 { 1.0 } else { -1.0 }),
            Loss::Poisson => start[stride - 1] = finite(libm::log(self.mean_label(|y| y))),
            Loss::Multinomial { classes } => {
                // A class that does not occur counts as half a row.
                let least = 0.5 / self.table().rows() as f64;
                for class in 0..classes {
                    let share = self.mean_label(|y| f64::from(u8::from(y == class as f64)));
                    start[(class + 1) * stride - 1] = libm::log(share.max(least) * classes as f64);
                }
            }
            _ => {}
        }
        start
    }

    /// The mean size of the loss's slope where every score is 0: what gradients are made of before anything is known. 0 for losses of several scores, whose slopes
    /// are below 1.
    pub(crate) fn slope_of_labels(&self) -> f64 {
        with_scalar!(self.loss(), loss => self.mean_label(|y| loss.slope(0.0, y).abs()), 0.0)
    }

    /// The loss of a typical row where no column counts: the median of those that are not 0, which labels far out do not change. 0 if all are.
    pub(crate) fn typical_loss(&self, kink: Kink, start: &[f64]) -> f64 {
        let score = if self.design().intercept { start.last().copied().unwrap_or(0.0) } else { 0.0 };
        let sizes = self.table().label_slice().iter().map(|y| kink.inner(score, *y).0.abs());
        let mut sizes: Vec<f64> = sizes.filter(|size| *size > 0.0).collect();
        if sizes.is_empty() {
            return 0.0;
        }
        let middle = sizes.len() / 2;
        kink.steepest() * *sizes.select_nth_unstable_by(middle, f64::total_cmp).1
    }

    /// A standard deviation of numbers, one for each row, around 0 that a few of them far out do not change: the median of their sizes over that of normal ones of deviation 1. Their
    /// mean size does it where more than half of them are 0.
    pub(crate) fn robust_deviation(&self, numbers: &[f64]) -> f64 {
        /// The median and the mean size of a normal number.
        const NORMAL: (f64, f64) = (0.674_489_750_196_081_7, 0.797_884_560_802_865_4);
        let sizes: Vec<f64> = numbers.iter().map(|number| number.abs()).collect();
        let median = quantile(&sizes, self.table().weight_slice(), 0.5) / NORMAL.0;
        if median > 0.0 {
            return median;
        }
        let sum: f64 = match self.table().weight_slice() {
            None => sizes.iter().sum(),
            Some(weights) => sizes.iter().zip(weights).map(|(size, weight)| size * weight).sum(),
        };
        sum / self.total_weight() / NORMAL.1
    }

    /// That of the labels around their median.
    pub(crate) fn deviation_of_labels(&self) -> f64 {
        let middle = self.label_at(0.5);
        let away: Vec<f64> = self.table().label_slice().iter().map(|y| y - middle).collect();
        self.robust_deviation(&away)
    }

    /// The weighted mean of a number for each label.
    fn mean_label(&self, of: impl Fn(f64) -> f64) -> f64 {
        let labels = self.table().label_slice();
        let sum: f64 = match self.table().weight_slice() {
            None => labels.iter().map(|y| of(*y)).sum(),
            Some(weights) => labels.iter().zip(weights).map(|(y, weight)| weight * of(*y)).sum(),
        };
        sum / self.total_weight()
    }

    /// The label below which there is this share of the weight.
    fn label_at(&self, share: f64) -> f64 {
        quantile(self.table().label_slice(), self.table().weight_slice(), share)
    }

    /// The constant of least Huber loss, or close to it: from the median by Newton's method, as long as that leads closer.
    fn huber_constant(&self, delta: f64) -> f64 {
        let slope = |b: f64| self.mean_label(|y| (b - y).clamp(-delta, delta));
        let mut best = self.label_at(0.5);
        let mut left = slope(best);
        for _ in 0..20 {
            let inside = self.mean_label(|y| f64::from(u8::from((best - y).abs() <= delta)));
            let next = best - left / inside;
            let then = slope(next);
            if !(inside > 0.0 && then.abs() < left.abs()) {
                break;
            }
            (best, left) = (next, then);
        }
        best
    }
}

/// The number below which there is this share of the weight.
fn quantile(numbers: &[f64], weights: Option<&[f64]>, share: f64) -> f64 {
    let Some(weights) = weights else {
        let mut numbers = numbers.to_vec();
        let place = ((share * numbers.len() as f64).ceil() as usize).clamp(1, numbers.len()) - 1;
        return *numbers.select_nth_unstable_by(place, f64::total_cmp).1;
    };
    let mut pairs: Vec<(f64, f64)> = numbers.iter().copied().zip(weights.iter().copied()).collect();
    pairs.retain(|(_, weight)| *weight > 0.0);
    pairs.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let (mut below, part) = (0.0, share * weights.iter().sum::<f64>());
    let found = pairs.iter().find(|(_, weight)| {
        below += weight;
        below >= part
    });
    found.or(pairs.last()).map_or(0.0, |(number, _)| *number)
}

/// The number, or 0 if it is none.
fn finite(number: f64) -> f64 {
    if number.is_finite() { number } else { 0.0 }
}
