//! What the problems that depend on |x| only have in common.

use crate::kernels::squared_norm;

/// Below this the square of a norm has lost digits to the smallest doubles.
const SMALL_SQUARE: f64 = 1e-290;

/// |x|, right for every finite x: the squares may neither overflow nor vanish.
#[inline]
pub(super) fn norm(x: &[f64]) -> f64 {
    let square = squared_norm(x);
    if (SMALL_SQUARE..=f64::MAX).contains(&square) { square.sqrt() } else { scaled_norm(x, square) }
}

#[cold]
fn scaled_norm(x: &[f64], square: f64) -> f64 {
    let largest = x.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
    if square.is_nan() || largest == 0.0 || largest.is_infinite() {
        return square.sqrt();
    }
    largest * x.iter().map(|x| (x / largest) * (x / largest)).sum::<f64>().sqrt()
}

/// Overwrites `out` with the point at distance `s` from the origin in the direction of x, where r = |x|. The
/// origin has no direction and stays where it is.
#[inline]
pub(super) fn on_ray(x: &[f64], r: f64, s: f64, out: &mut [f64]) {
    if r == 0.0 {
        out.fill(0.0);
    } else {
        // x/r first: s/r overflows for the smallest r.
        out.iter_mut().zip(x).for_each(|(o, x)| *o = x / r * s);
    }
}
