//! How heavy the tail of the noise is, and what that means for the variance.

use serde::Serialize;

use super::estimate::Estimate;

/// The tail of |g - grad f| at the start, as far as the samples there show it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TailShape {
    /// a of P(|g - grad f| > t) ~ t^-a over the largest samples (Hill's estimate); `None` where too few samples stand out. The variance is finite if it is
    /// above 2. Light tails have none, and show some large number.
    pub index: Option<Estimate>,
    /// Of the sum of all squares, the part that the largest sample alone has.
    pub largest_share: f64,
    /// How many samples it rests on. Events that are rarer than one in so many leave no trace.
    pub samples: u64,
    /// Whether the interval of the index reaches down to 2: no number of samples may be enough for a variance.
    pub may_be_infinite: bool,
    /// The upper end of the variance over the variance that was seen.
    widening: f64,
}

/// Beyond this one-sided quantile of Hill's estimate a tenth of all cases lie.
const TENTH: f64 = 1.2816;
/// Of a normal law 95 % lie within.
const NORMAL: f64 = 1.96;
/// Fewer than this are no tail.
const LEAST: usize = 10;

impl TailShape {
    /// From the squares of the distances to the mean.
    pub(super) fn of(mut squares: Vec<f64>) -> Self {
        squares.retain(|square| square.is_finite());
        squares.sort_by(|a, b| b.total_cmp(a));
        let n = squares.len();
        let sum: f64 = squares.iter().sum();
        let largest_share = if sum > 0.0 { squares[0] / sum } else { 0.0 };
        let quiet =
            Self { index: None, largest_share, samples: n as u64, may_be_infinite: false, widening: 1.0 };
        // The largest so many are the tail: few enough to be one, enough to measure it.
        let count = (n as f64).sqrt() as usize;
        let Some(&threshold) = squares.get(count).filter(|t| **t > 0.0 && count >= LEAST) else {
            return quiet;
        };
        let tail = &squares[..count];
        let mean_log = tail.iter().map(|square| (square / threshold).ln()).sum::<f64>() / count as f64;
        if mean_log <= 0.0 {
            return quiet;
        }
        // That of the squares is half of that of the distances.
        let hill = 1.0 / mean_log;
        let error = 1.0 / (count as f64).sqrt();
        let ends = [1.0 - NORMAL * error, 1.0 + NORMAL * error].map(|times| 2.0 * hill * times);
        let index = Some(Estimate { value: 2.0 * hill, low: ends[0], high: ends[1] });
        // A tail of the lowest index that the samples allow, from the threshold on, in place of the largest samples.
        let low = hill * (1.0 - TENTH * error);
        let body: f64 = squares[count..].iter().sum();
        let beyond = if low > 1.0 { count as f64 * threshold * low / (low - 1.0) } else { f64::INFINITY };
        let widening = ((body + beyond) / sum).max(1.0);
        Self { index, may_be_infinite: ends[0] <= 2.0, widening, ..quiet }
    }

    /// An estimate of a variance (or of its root, the power 1/2) whose upper end allows for what the tail may hold.
    pub(super) fn widen(&self, estimate: Estimate, power: f64) -> Estimate {
        let up = self.widening.powf(power);
        if estimate.value > 0.0 && up > 1.0 {
            // The error of the body and that of the tail.
            let high = estimate.high.max(estimate.value * up)
                + (estimate.high - estimate.value).max(0.0) * (up - 1.0).min(1.0);
            return Estimate { high, ..estimate };
        }
        estimate
    }
}

#[cfg(test)]
mod tests {
    use super::TailShape;
    use crate::draws::{Address, Role};

    fn squares(draw: impl Fn(f64) -> f64) -> Vec<f64> {
        let mut xi = Address { seed: 5, role: Role::Setup, step: 0, sample: 0 }.stream();
        (0..6144).map(|_| draw(xi.open_uniform()).powi(2)).collect()
    }

    #[test]
    fn the_index_of_a_pareto_law_is_within_its_interval() {
        for index in [1.5, 2.5, 4.0] {
            let tail = TailShape::of(squares(|u| u.powf(-1.0 / index)));
            assert!(tail.index.unwrap().covers(index), "{index}: {tail:?}");
            assert_eq!(tail.may_be_infinite, index < 3.0, "{index}: {tail:?}");
        }
    }

    #[test]
    fn what_never_stands_out_has_no_tail() {
        assert_eq!(TailShape::of(vec![0.0; 1000]).index, None);
        assert_eq!(TailShape::of(vec![2.0; 1000]).index, None);
        assert_eq!(TailShape::of(Vec::new()).largest_share, 0.0);
        let light = TailShape::of(squares(|u| u));
        assert!(!light.may_be_infinite && light.widening < 1.05, "{light:?}");
    }
}
