//! Slopes on logarithmic axes, and how far to trust them.

use pasta_report::Spread;

/// The confidence of every interval here. A page has some forty of them; at 95 % two would miss by chance.
pub(super) const CONFIDENCE: &str = "99.9 %";

/// The two-sided normal quantile of that confidence.
const NORMAL: f64 = 3.290_526_731_491_926;

/// A number that was measured, with the interval of its seeds. A count that is not random has none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Estimate {
    pub(super) value: f64,
    pub(super) interval: Option<(f64, f64)>,
}

impl Estimate {
    /// The mean over the seeds.
    pub(super) fn of(values: &[f64]) -> Self {
        let Some(spread) = Spread::of(values.iter().copied()) else {
            return Self { value: f64::NAN, interval: None };
        };
        let half_width = student(NORMAL, spread.runs) * spread.standard_error;
        Self { value: spread.mean, interval: Some((spread.mean - half_width, spread.mean + half_width)) }
    }

    /// A number that no seed can change.
    pub(super) fn certain(value: f64) -> Self {
        Self { value, interval: None }
    }

    /// The one that reaches highest; of none, what no check accepts.
    pub(super) fn highest(all: impl Iterator<Item = Self>) -> Self {
        all.max_by(|a, b| a.high().total_cmp(&b.high())).unwrap_or(Self::certain(f64::NAN))
    }

    /// The one that reaches lowest; of none, what no check accepts.
    pub(super) fn lowest(all: impl Iterator<Item = Self>) -> Self {
        all.min_by(|a, b| a.low().total_cmp(&b.low())).unwrap_or(Self::certain(f64::NAN))
    }

    /// In other units.
    pub(super) fn over(self, unit: f64) -> Self {
        let interval = self.interval.map(|(low, high)| (low / unit, high / unit));
        Self { value: self.value / unit, interval }
    }

    pub(super) fn low(&self) -> f64 {
        self.interval.map_or(self.value, |(low, _)| low)
    }

    pub(super) fn high(&self) -> f64 {
        self.interval.map_or(self.value, |(_, high)| high)
    }

    /// Whether a value lies in the interval made wider by `slack` on both sides.
    pub(super) fn admits(&self, value: f64, slack: f64) -> bool {
        (self.low() - slack..=self.high() + slack).contains(&value)
    }
}

/// The quantile of Student's law with n - 1 degrees of freedom where the normal law has z, by the expansion of Cornish and Fisher: from
/// twenty runs on, or ten for z = 1.96, its error is below one part in a thousand.
pub(crate) fn student(z: f64, n: usize) -> f64 {
    let v = n as f64 - 1.0;
    let first = (z.powi(3) + z) / (4.0 * v);
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * v * v);
    let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / (384.0 * v.powi(3));
    z + first + second + third
}

/// The slope of the least-squares line through the points on doubly logarithmic axes.
pub(super) fn slope(points: &[(f64, f64)]) -> f64 {
    let logs: Vec<(f64, f64)> = points.iter().map(|(x, y)| (x.ln(), y.ln())).collect();
    let n = logs.len() as f64;
    let (x, y) = (logs.iter().map(|p| p.0).sum::<f64>() / n, logs.iter().map(|p| p.1).sum::<f64>() / n);
    let covariance: f64 = logs.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
    covariance / logs.iter().map(|p| (p.0 - x).powi(2)).sum::<f64>()
}

/// The slope of the line through the means over the seeds, with the interval of the jackknife: how much the slope
/// moves when a seed is left out, at all targets at once. `values[i][s]` belongs to `at[i]` and seed s.
pub(super) fn slope_over_seeds(at: &[f64], values: &[Vec<f64>]) -> Estimate {
    let seeds = values.first().map_or(0, Vec::len);
    let n = seeds as f64;
    let totals: Vec<f64> = values.iter().map(|row| row.iter().sum()).collect();
    let without = |left_out: Option<usize>| {
        let line: Vec<(f64, f64)> = at
            .iter()
            .zip(values.iter().zip(&totals))
            .map(|(&x, (row, total))| match left_out {
                Some(s) => (x, (total - row[s]) / (n - 1.0)),
                None => (x, total / n),
            })
            .collect();
        slope(&line)
    };
    let all = without(None);
    let pseudo: Vec<f64> = (0..seeds).map(|s| n * all - (n - 1.0) * without(Some(s))).collect();
    Estimate::of(&pseudo)
}

/// So many values from `from` to `to`, each the same factor from the one before.
pub(super) fn grid(from: f64, to: f64, points: u32) -> Vec<f64> {
    let last = f64::from(points.max(2) - 1);
    let at = |i: u32| from * (to / from).powf(f64::from(i) / last);
    // Three digits: a target that a person would type.
    (0..points).map(|i| format!("{:.2e}", at(i)).parse().unwrap_or_else(|_| at(i))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_has_its_exponent_as_slope() {
        let at = [0.1, 0.2, 0.4, 0.8];
        let values: Vec<Vec<f64>> =
            at.iter().map(|x: &f64| vec![3.0 * x.powi(-6), 5.0 * x.powi(-6), 4.0 * x.powi(-6)]).collect();
        let slope = slope_over_seeds(&at, &values);
        assert!((slope.value + 6.0).abs() < 1e-12 && slope.admits(-6.0, 1e-9), "{slope:?}");
    }

    #[test]
    fn students_quantile_is_the_tables() {
        // Two-sided .001: 3.883 with 19 degrees of freedom, 3.460 with 60.
        assert!((student(NORMAL, 20) - 3.883).abs() < 1e-3, "{}", student(NORMAL, 20));
        assert!((student(NORMAL, 61) - 3.460).abs() < 1e-3, "{}", student(NORMAL, 61));
        // Two-sided .05: 2.262 with 9, 2.145 with 14.
        assert!((student(1.96, 10) - 2.262).abs() < 2e-3, "{}", student(1.96, 10));
        assert!((student(1.96, 15) - 2.145).abs() < 1e-3, "{}", student(1.96, 15));
    }

    #[test]
    fn one_run_leaves_everything_open_and_a_diverged_one_nothing() {
        assert_eq!(Estimate::of(&[2.0]).high(), f64::INFINITY);
        let diverged = Estimate::of(&[1.0, f64::INFINITY, 2.0]);
        assert!(diverged.value.is_infinite() && !diverged.admits(1.0, 0.0));
    }

    #[test]
    fn a_grid_has_its_ends_and_short_numbers() {
        assert_eq!(grid(0.4, 0.1, 3), [0.4, 0.2, 0.1]);
        assert_eq!(grid(0.3, 0.0125, 2), [0.3, 0.0125]);
    }
}
