//! One number of many runs, in a few numbers.

use serde::Serialize;

/// Where a sample of numbers lies.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// How many numbers.
    pub runs: usize,
    /// Their mean.
    pub mean: f64,
    /// Of the mean.
    pub standard_error: f64,
    /// The smallest.
    pub least: f64,
    /// The middle one.
    pub median: f64,
    /// The largest.
    pub greatest: f64,
}

impl Spread {
    /// The spread of at least one number.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (&least, &greatest) = (sorted.first()?, sorted.last()?);
        let n = sorted.len() as f64;
        let mean = sorted.iter().sum::<f64>() / n;
        let squares: f64 = sorted.iter().map(|value| (value - mean) * (value - mean)).sum();
        let standard_error = if sorted.len() < 2 { f64::INFINITY } else { (squares / (n - 1.0) / n).sqrt() };
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        };
        Some(Self { runs: sorted.len(), mean, standard_error, least, median, greatest })
    }

    /// The mean and two standard errors to either side: 95 % confidence from some thirty runs on.
    pub fn interval(&self) -> (f64, f64) {
        (self.mean - 2.0 * self.standard_error, self.mean + 2.0 * self.standard_error)
    }
}

#[cfg(test)]
mod tests {
    use super::Spread;

    #[test]
    fn the_spread_of_one_to_four_is_known() {
        let spread = Spread::of([4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!((spread.least, spread.median, spread.greatest, spread.mean), (1.0, 2.5, 4.0, 2.5));
        // Variance 5/3, four numbers.
        assert!((spread.standard_error - (5.0 / 12.0_f64).sqrt()).abs() < 1e-15);
    }

    #[test]
    fn nothing_has_no_spread_and_one_number_no_confidence() {
        assert_eq!(Spread::of([]), None);
        assert_eq!(Spread::of([7.0]).unwrap().interval(), (f64::NEG_INFINITY, f64::INFINITY));
    }
}
