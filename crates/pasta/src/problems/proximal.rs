//! What the proximal maps have in common: when there is one, and a safe way to solve its equation.

/// Whether f + lambda/2 |. - x|^2 is strongly convex for a rho-weakly convex f, so that it has one minimiser.
#[inline]
pub(super) fn is_single_valued(lambda: f64, rho: f64) -> bool {
    lambda.is_finite() && lambda > rho
}

/// Bisection alone ends within about 60 steps, and at least every other step halves the bracket or the move.
const MAX_STEPS: u32 = 200;

/// The root between `low` and `high` of a function that is negative before it and positive behind it.
///
/// `equation` returns value and slope. Newton's method, and bisection whenever Newton leaves the bracket or
/// moves more than half as far as the step before: the answer is a point where the computed value is zero, or
/// one beside which it changes sign.
pub(super) fn root(mut low: f64, mut high: f64, equation: impl Fn(f64) -> (f64, f64)) -> f64 {
    let middle = |low: f64, high: f64| low + 0.5 * (high - low);
    let mut y = middle(low, high);
    let mut moved = high - low;
    for _ in 0..MAX_STEPS {
        let (value, slope) = equation(y);
        if value < 0.0 {
            low = y;
        } else if value > 0.0 {
            high = y;
        } else {
            return y;
        }
        let newton = y - value / slope;
        let trusted = newton > low && newton < high && (newton - y).abs() <= 0.5 * moved;
        let next = if trusted { newton } else { middle(low, high) };
        if next == y {
            return y;
        }
        moved = (next - y).abs();
        y = next;
    }
    y
}
