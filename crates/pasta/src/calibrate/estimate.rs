//! A number and how far it can be trusted.

use serde::Serialize;

/// Every figure is computed from this many equal blocks of samples. How much it changes when one of them is left out
/// is its error.
pub(super) const BLOCKS: usize = 16;

/// Student's t with 15 degrees of freedom: 95 % lie within.
const STUDENT: f64 = 2.131_449_546;

/// A measured number with its interval of about 95 %.
///
/// The interval is a jackknife over sixteen blocks of samples with Student's t, on a logarithmic scale for what cannot
/// be negative. It covers the error of sampling and nothing else: heavy tails widen it, but an event that is too rare to
/// be among the samples leaves no trace, and a maximum over a few directions is not a maximum over all.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// The number.
    pub value: f64,
    /// The low end of its interval.
    pub low: f64,
    /// The high end of its interval.
    pub high: f64,
}

impl Estimate {
    /// Zero, without error.
    pub const ZERO: Self = Self { value: 0.0, low: 0.0, high: 0.0 };

    /// A statistic of the means of N columns, one row a block.
    pub(super) fn of<const N: usize>(rows: &[[f64; N]], statistic: impl Fn([f64; N]) -> f64) -> Self {
        let (value, error) = jackknife(rows, statistic);
        let half_width = STUDENT * error;
        if half_width.is_finite() {
            Self { value, low: value - half_width, high: value + half_width }
        } else {
            Self { value, low: f64::NEG_INFINITY, high: f64::INFINITY }
        }
    }

    /// The same for a statistic that is positive in truth: an interval in factors where the samples allow it, an
    /// ordinary one that ends at 0 where they do not.
    pub(super) fn positive<const N: usize>(rows: &[[f64; N]], statistic: impl Fn([f64; N]) -> f64) -> Self {
        let value = statistic(means(rows, None));
        let logs = Self::of(rows, |means| statistic(means).ln());
        if logs.value.is_finite() && logs.low.is_finite() {
            return Self {
                value,
                low: value * (logs.low - logs.value).exp(),
                high: value * (logs.high - logs.value).exp(),
            };
        }
        let plain = Self::of(rows, statistic);
        Self { value: plain.value.max(0.0), low: plain.low.max(0.0), high: plain.high.max(0.0) }
    }

    /// The absolute value.
    pub(super) fn magnitude(self) -> Self {
        if self.value < 0.0 {
            Self { value: -self.value, low: (-self.high).max(0.0), high: -self.low }
        } else {
            Self { low: self.low.max(0.0), ..self }
        }
    }

    /// An increasing function of it.
    pub(super) fn map(self, increasing: impl Fn(f64) -> f64) -> Self {
        Self { value: increasing(self.value), low: increasing(self.low), high: increasing(self.high) }
    }

    /// Whether the interval holds this number.
    pub fn covers(&self, truth: f64) -> bool {
        self.low <= truth && truth <= self.high
    }
}

/// The statistic and its standard error.
fn jackknife<const N: usize>(rows: &[[f64; N]], statistic: impl Fn([f64; N]) -> f64) -> (f64, f64) {
    let n = rows.len() as f64;
    let without: Vec<f64> = (0..rows.len()).map(|k| statistic(means(rows, Some(k)))).collect();
    let centre = without.iter().sum::<f64>() / n;
    let scatter: f64 = without.iter().map(|value| (value - centre) * (value - centre)).sum();
    (statistic(means(rows, None)), ((n - 1.0) / n * scatter).sqrt())
}

/// The mean of each column, without row `left_out`.
fn means<const N: usize>(rows: &[[f64; N]], left_out: Option<usize>) -> [f64; N] {
    let mut sums = [0.0; N];
    let kept = rows.iter().enumerate().filter(|(k, _)| Some(*k) != left_out);
    kept.for_each(|(_, row)| sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x));
    let count = (rows.len() - usize::from(left_out.is_some())) as f64;
    sums.map(|sum| sum / count)
}

#[cfg(test)]
mod tests {
    use super::{BLOCKS, Estimate};

    #[test]
    fn the_jackknife_of_a_mean_is_the_textbook_interval() {
        let rows: Vec<_> = (0..BLOCKS).map(|k| [k as f64]).collect();
        let estimate = Estimate::of(&rows, |[mean]| mean);
        // 0..15: variance 16 * 17/12, so the standard error of the mean is sqrt(17/12).
        let half_width = super::STUDENT * (17f64 / 12.0).sqrt();
        assert!((estimate.value - 7.5).abs() < 1e-14);
        assert!(
            (estimate.high - 7.5 - half_width).abs() < 1e-12
                && (7.5 - half_width - estimate.low).abs() < 1e-12
        );
    }

    #[test]
    fn what_cannot_be_negative_has_no_negative_end() {
        let rows: Vec<_> = (0..BLOCKS).map(|k| [k as f64 - 7.4]).collect();
        let estimate = Estimate::positive(&rows, |[mean]| mean);
        assert!(estimate.low >= 0.0 && estimate.high > 0.0, "{estimate:?}");
        assert_eq!(
            Estimate { value: -3.0, low: -5.0, high: -1.0 }.magnitude(),
            Estimate { value: 3.0, low: 1.0, high: 5.0 }
        );
        assert_eq!(Estimate { value: -3.0, low: -5.0, high: 1.0 }.magnitude().low, 0.0);
    }
}
