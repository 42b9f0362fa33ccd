//! What the theorem says about the cost. The constants are those of the proof in `docs/theorems.md`.

use super::OPENS;

/// What is true of a problem, from which the cost of [`Universal`](super::Universal) is bounded. The method needs none of it.
///
/// ```
/// use pasta_opt::universal::Bound;
///
/// let at = |target: f64, growth: f64| {
///     let bound = Bound { smoothness: 1.0, gap: 1.0, growth, floor: 1.0, target, delta: 0.05, eta: 1.0 };
///     bound.samples().unwrap_or(f64::NAN)
/// };
/// // The order of the recipes that know the constants, up to the logarithms of the lanes: half the target costs 2^6 times as much, or 2^4 if B = 0.
/// assert!((6.0..6.3).contains(&(at(0.01, 1.0) / at(0.02, 1.0)).log2()));
/// assert!((4.0..4.3).contains(&(at(0.01, 0.0) / at(0.02, 0.0)).log2()));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    /// L.
    pub smoothness: f64,
    /// Delta.
    pub gap: f64,
    /// B.
    pub growth: f64,
    /// b.
    pub floor: f64,
    /// eps.
    pub target: f64,
    /// delta, at most 1/4.
    pub delta: f64,
    /// eta_0: the first lane's step.
    pub eta: f64,
}

impl Bound {
    /// No more samples than these are drawn in expectation; `None` if a constant is out of its range.
    pub fn samples(&self) -> Option<f64> {
        let Self { smoothness, gap, growth, floor, target, delta, eta } = *self;
        let positive = [smoothness, gap, target, delta, eta].iter().all(|x| *x > 0.0 && x.is_finite());
        if !positive || growth.is_nan() || growth < 0.0 || floor.is_nan() || floor < 0.0 || delta > 0.25 {
            return None;
        }
        // eps'^2. A function that is L-smooth is so with any larger L.
        let fine = target * target / 64.0;
        let l = smoothness.max(fine / gap);
        let step = [
            1.0 / l,
            fine * fine / (2048.0 * l * (growth * gap).powi(2)),
            fine / (64.0 * growth * growth * gap),
            fine / (8.0 * l * floor * floor),
        ];
        let step = step.into_iter().fold(f64::INFINITY, f64::min);
        let variance = 800.0 * (growth * gap).powi(2) / fine + floor * floor;
        // Lanes and attempts grow with the logarithm of the cost, which they are part of: from below, to the least that is consistent.
        let mut samples = OPENS as f64 * 32.0;
        for _ in 0..200 {
            let lanes = 2.0 * (samples / OPENS as f64).log2() + 3.0;
            let attempts = 2.0 * lanes * samples.log2();
            let log = (1.25 * attempts * (attempts + 1.0) / delta).ln();
            let certificate =
                20.0 * (200.0 * log * (log / 8.0).max(1.0) * variance / (target * target) + 250.0 * log);
            let steps = (32.0 * gap / (step * fine)).max(4.0 * certificate);
            let away = (eta * fine * steps / (32.0 * gap)).max(32.0 * gap / (eta * fine * steps));
            let first = OPENS as f64 * 2.0 * away + 10.0 * steps * lanes;
            let next = 4.55 * first + 645.0 * steps;
            if next <= samples {
                return Some(next);
            }
            samples = next;
        }
        Some(samples)
    }
}
