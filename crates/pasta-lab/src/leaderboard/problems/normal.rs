//! Expectations under the standard normal law.

/// The density at z.
pub(super) fn density(z: f64) -> f64 {
    (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

/// The probability of being below z.
pub(super) fn below(z: f64) -> f64 {
    0.5 * libm::erfc(-z * std::f64::consts::FRAC_1_SQRT_2)
}

/// E f(z). The trapezoid rule: for f that is analytic in a strip around the real line its error falls like exp(-2 pi width/step),
/// which is below 1e-11 for sigmoids of slope up to 7.
pub(super) fn mean(f: impl Fn(f64) -> f64) -> f64 {
    nodes(0.1).map(|(z, weight)| weight * f(z)).sum()
}

/// The points and weights of the trapezoid rule with this step; what is left out has probability 1e-17.
pub(super) fn nodes(step: f64) -> impl Iterator<Item = (f64, f64)> {
    let last = (8.5 / step).round() as i32;
    (-last..=last).map(move |k| {
        let z = f64::from(k) * step;
        (z, step * density(z))
    })
}

#[cfg(test)]
mod tests {
    use super::{below, mean};

    #[test]
    fn moments_of_the_normal_law_are_known() {
        for (power, moment) in [(0, 1.0), (1, 0.0), (2, 1.0), (3, 0.0), (4, 3.0), (6, 15.0)] {
            assert!((mean(|z| z.powi(power)) - moment).abs() < 1e-11, "{power}");
        }
        // E exp(2z) = exp(2).
        assert!((mean(|z| (2.0 * z).exp()) / 2f64.exp() - 1.0).abs() < 1e-9);
        assert!((below(1.959_963_984_540_054) - 0.975).abs() < 1e-12);
    }
}
