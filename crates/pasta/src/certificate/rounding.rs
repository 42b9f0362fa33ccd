//! Arithmetic that never makes a bound too small.
//!
//! The last formula is computed with every operation rounded away from the safe side. What stands before it, sums of many numbers,
//! has an error that is bounded and added: `docs/certificate.md` derives each of the bounds, in its section on rounding.
//! Below, `EPSILON` is twice the largest relative error of one operation; so n of them one after another have an error below
//! n `EPSILON`, products of errors included, while n is far below 10^15.

#[cfg(test)]
mod tests;

use crate::kernels::squared_norm;
use crate::moments::Moments;

/// The theorem speaks at k >= 20 log(1/delta), ...
pub(super) const LEAST_COUNT: f64 = 20.0;
/// ... where s^2 v is at most this, ...
pub(super) const LARGEST_SPREAD: f64 = 0.01;
/// ... and |mean c| at most this, divided by s.
pub(super) const LARGEST_MEAN: f64 = 0.17;

/// The longest chain of additions behind a mean of samples: a leaf of at most 4096 samples, 64 floors of the tree of halves above it, and
/// at most 4096 points of a Moreau certificate.
const ADDITIONS: f64 = 8256.0;

/// What a track knows when it states a bound. All of it is a number that the code has, taken as exact.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    /// At least |mean c|.
    pub(super) mean: f64,
    /// s.
    pub(super) scale: f64,
    /// At least log(1/delta).
    pub(super) log: f64,
    /// k.
    pub(super) count: f64,
    /// At least v.
    pub(super) variance: f64,
}

impl Known {
    /// U, not below the smaller root of U - s U^2/2 = |mean c| + s v/2 + log(1/delta)/(s k); `None` where the theorem does not speak.
    pub(super) fn bound(&self) -> Option<f64> {
        let Self { mean, scale: s, log, count: k, variance: v } = *self;
        let spread = ((s * s).next_up() * v).next_up();
        let speaks = k >= (LEAST_COUNT * log).next_up()
            && spread <= LARGEST_SPREAD.next_down()
            && (s * mean).next_up() <= LARGEST_MEAN.next_down();
        if !speaks {
            return None;
        }
        let share_of_noise = (0.5 * (s * v).next_up()).next_up();
        let share_of_chance = (log / (s * k).next_down()).next_up();
        let b = ((mean + share_of_noise).next_up() + share_of_chance).next_up();
        // The root without cancellation; 2 s b <= .45 by the conditions above.
        let root = (1.0 - (2.0 * s * b).next_up()).next_down().sqrt().next_down();
        Some((2.0 * b / (1.0 + root).next_down()).next_up()).filter(|bound| bound.is_finite())
    }
}

/// What the roundings within a mean of samples can do: X has been computed, g is the exact gradient.
#[derive(Debug, Clone, Copy)]
pub(super) struct Means {
    /// At least v, for exact means.
    pub(super) variance: f64,
    /// m.
    pub(super) samples_each: f64,
    pub(super) dim: usize,
}

impl Means {
    /// At least E|X - EX|^2, if |g| <= 2/s; where g is larger, as much as the proof needs.
    pub(super) fn variance_at(&self, scale: f64) -> f64 {
        let noise = (self.declared() * self.samples_each).sqrt();
        let v = self.declared().sqrt() + ADDITIONS * f64::EPSILON * (noise + 2.0 / scale);
        v * v * (1.0 + 8.0 * f64::EPSILON)
    }

    /// At least |g|, if |EX| is at most this.
    pub(super) fn gradient(&self, bound: f64) -> f64 {
        let noise = (self.declared() * self.samples_each).sqrt();
        let error = ADDITIONS * f64::EPSILON;
        (bound + error * noise) * (1.0 + 2.0 * error)
    }

    /// [`variance_at`](Self::variance_at) for vectors less a centre that is this long, if |g - centre| <= 2/s; `None` where the centre is so long that rounding
    /// would spoil what the proof needs of a larger g.
    pub(super) fn variance_about(&self, scale: f64, centre: f64) -> Option<f64> {
        let noise = (self.declared() * self.samples_each).sqrt();
        let error = ADDITIONS * f64::EPSILON;
        let v = self.declared().sqrt() + error * (noise + centre + 2.0 / scale);
        (error * centre * scale <= 1e-5).then_some(v * v * (1.0 + 8.0 * f64::EPSILON))
    }

    /// At least |g - EX|, if |EX| is at most this.
    pub(super) fn shift(&self, length: f64) -> f64 {
        let noise = (self.declared() * self.samples_each).sqrt();
        let error = ADDITIONS * f64::EPSILON;
        error * (noise + length) * (1.0 + 4.0 * error)
    }

    /// v, as it was meant: it was divided by m, and where it grows with a distance, that was computed.
    fn declared(&self) -> f64 {
        self.variance * (1.0 + (self.dim as f64 / 8.0 + 64.0) * f64::EPSILON)
    }
}

/// At least log(1/delta), where this is the logarithm as it was computed: a few products, and one logarithm.
pub(super) fn log_up(log: f64) -> f64 {
    log + 16.0 * f64::EPSILON * (1.0 + log)
}

/// At least |x|.
pub(super) fn norm_up(x: &[f64]) -> f64 {
    let d = x.len() as f64;
    // Squares below the smallest normal number have lost digits, or all.
    (squared_norm(x) * (1.0 + (d / 8.0 + 16.0) * f64::EPSILON) + d * f64::MIN_POSITIVE).sqrt()
        * (1.0 + 4.0 * f64::EPSILON)
}

/// At least |mean c| for a sum of clipped vectors, if it were exact.
pub(super) fn mean_length_up(sum: &[f64], count: f64, spread: &Spread) -> f64 {
    let error = clipping_error(count, sum.len(), spread);
    (norm_up(sum) / count + error) * (1.0 + 4.0 * f64::EPSILON)
}

/// At least how far a mean of clipped vectors is from what it would be if it were exact.
pub(super) fn clipping_error(count: f64, dim: usize, spread: &Spread) -> f64 {
    // Each factor has an error, and so has each of the k additions; no clipped vector is longer than its own.
    (count + dim as f64 / 16.0 + 24.0) * f64::EPSILON * spread.root_mean_square
}

/// At least s (v + beta^2)/2 + log(1/delta)/(s k), the deviation of a centred mean; v and the rest are what is [`Known`].
pub(super) fn deviation_up(known: &Known, beta: f64) -> f64 {
    let Known { scale: s, log, count: k, variance: v, .. } = *known;
    let spread = (v + (beta * beta).next_up()).next_up();
    let share_of_noise = (0.5 * (s * spread).next_up()).next_up();
    let share_of_chance = (log / (s * k).next_down()).next_up();
    (share_of_noise + share_of_chance).next_up()
}

/// Upper bounds on what the vectors behind some moments are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spread {
    /// The root of the mean of |X|^2.
    pub(super) root_mean_square: f64,
    /// The unbiased estimate of E|X - EX|^2.
    pub(super) variance: f64,
}

impl Spread {
    /// Infinite where there are too many vectors for a bound.
    pub(super) fn of(moments: &Moments) -> Self {
        let (k, d) = (moments.count as f64, moments.mean.len() as f64);
        let scatter =
            moments.scatter() * (1.0 + (k + d / 8.0 + 16.0) * f64::EPSILON) + k * d * f64::MIN_POSITIVE;
        let (deviation, mean) = (scatter.sqrt(), k.sqrt() * norm_up(&moments.mean));
        // The recursion's mean is off by at most (k + 9) EPSILON times the longest vector.
        let off = k.sqrt() * (k + 9.0) * f64::EPSILON;
        if off > 0.125 {
            return Self { root_mean_square: f64::INFINITY, variance: f64::INFINITY };
        }
        let longest = (deviation + mean) / (1.0 - 2.0 * off) * (1.0 + 8.0 * f64::EPSILON);
        let deviation = (deviation + off * longest) * (1.0 + 8.0 * f64::EPSILON);
        Self {
            root_mean_square: longest / k.sqrt() * (1.0 + 4.0 * f64::EPSILON),
            variance: deviation * deviation / (k - 1.0) * (1.0 + 4.0 * f64::EPSILON),
        }
    }
}
