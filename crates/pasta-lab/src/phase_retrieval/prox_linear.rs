//! The stochastic prox-linear method, which needs more than gradients: a row and its label.

use pasta_opt::draws::{Address, Role};
use pasta_opt::table::Linear;

/// The least x of |c + <g, x - x0>| + |x - x0|^2/(2 eta), where c = z^2 - y and g = 2 z a linearise the loss of a row at z = <a, x0>.
///
/// It lies on the line of g: at x0 - eta sign(c) g, unless the kink c + <g, x - x0> = 0 is nearer.
pub(super) fn step(x: &mut [f64], a: &[f64], y: f64, eta: f64) {
    let z: f64 = a.iter().zip(&*x).map(|(a, x)| a * x).sum();
    let c = z * z - y;
    let square = 4.0 * z * z * a.iter().map(|a| a * a).sum::<f64>();
    let length = if c.abs() < eta * square { c.abs() / square } else { eta };
    let factor = length * c.signum() * 2.0 * z;
    x.iter_mut().zip(a).for_each(|(x, a)| *x -= factor * a);
}

/// The method with steps first/sqrt(t + 1), one row each; calls `look` with the point after each pass, until that says no.
pub(super) fn run(
    problem: &Linear,
    start: &[f64],
    first: f64,
    seed: u64,
    mut look: impl FnMut(&[f64]) -> bool,
) {
    let table = problem.table();
    let rows = table.rows();
    let (mut x, mut a) = (start.to_vec(), vec![0.0; start.len()]);
    for t in 0_u64.. {
        let mut xi = Address { seed, role: Role::Large, step: t, sample: 0 }.stream();
        let row = xi.below(rows as u64) as usize;
        table.features.visit_row(row, |j, value| a[j] = value);
        step(&mut x, &a, (*table.labels).as_ref()[row], first / ((t + 1) as f64).sqrt());
        if (t + 1) % rows as u64 == 0 && !look(&x) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a step minimises, at a point.
    fn model(x: &[f64], x0: &[f64], a: &[f64], y: f64, eta: f64) -> f64 {
        let z: f64 = a.iter().zip(x0).map(|(a, x)| a * x).sum();
        let along: f64 = a.iter().zip(x).zip(x0).map(|((a, x), x0)| 2.0 * z * a * (x - x0)).sum();
        let apart: f64 = x.iter().zip(x0).map(|(x, x0)| (x - x0).powi(2)).sum();
        (z * z - y + along).abs() + apart / (2.0 * eta)
    }

    #[test]
    fn a_step_is_the_least_point_of_its_model() {
        let mut xi = Address { seed: 4, role: Role::Setup, step: 0, sample: 0 }.stream();
        let (mut at_kink, mut before) = (0, 0);
        for case in 0..200 {
            let mut normal = || [xi.normal(), xi.normal()];
            let (a, x0, solution) = (normal(), normal(), normal());
            let y = (a[0] * solution[0] + a[1] * solution[1]).powi(2);
            let eta = 10f64.powf(-3.0 + f64::from(case % 7) * 0.5);
            let mut x = x0.to_vec();
            step(&mut x, &a, y, eta);
            let here = model(&x, &x0, &a, y, eta);
            // By brute force: the least over one coordinate of the least over the other. Both are convex, and no step is longer than eta |g|.
            let width = 1.0 + 2.0 * eta * ((a[0] * x0[0] + a[1] * x0[1]) * a[0].hypot(a[1])).abs();
            let over = |centre: f64, f: &dyn Fn(f64) -> f64| {
                let (mut low, mut high) = (centre - width, centre + width);
                for _ in 0..120 {
                    let (left, right) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
                    if f(left) < f(right) { high = right } else { low = left }
                }
                f(0.5 * (low + high))
            };
            let least = over(x0[0], &|p| over(x0[1], &|q| model(&[p, q], &x0, &a, y, eta)));
            // Thirds of an interval are compared to about the root of the rounding, where f is flat.
            assert!((here - least).abs() < 1e-9 * (1.0 + least), "{here} and {least}");
            assert!(here <= least + 1e-12 * (1.0 + least), "{here} above {least}");
            let z = a[0] * x[0] + a[1] * x[1];
            let z0 = a[0] * x0[0] + a[1] * x0[1];
            let rest = z0 * z0 - y + 2.0 * z0 * (z - z0);
            if rest.abs() < 1e-12 * (1.0 + y) { at_kink += 1 } else { before += 1 }
        }
        // Both cases of the formula were seen.
        assert!(at_kink > 20 && before > 20, "{at_kink} and {before}");
    }

    #[test]
    fn a_row_without_a_slope_is_left_alone() {
        let mut x = [1.0, 0.0];
        step(&mut x, &[0.0, 2.0], 3.0, 0.5);
        assert_eq!(x, [1.0, 0.0]);
    }
}
