use pasta_opt::prelude::*;
use pasta_opt::problems::{Flat, SoftAbsolute};
use pasta_opt::recipe::Uncertainty;

use super::common::{batch_of, sum_at};
use super::support::noisy;

/// The mean of |x_1 - y|^2 over one anchored step from x with the anchor x0, with its standard error.
fn one_step(oracle: &Noisy, x: f64, y: f64, beta: f64, eta: f64, n: u64) -> (f64, f64) {
    let runs = 40_000;
    let mut gradient = [0.0];
    let x0 = oracle.start()[0];
    let squares: Vec<f64> = (0..runs)
        .map(|seed| {
            let batch = batch_of(seed, pasta_opt::draws::Role::Large, 0, n);
            sum_at(&oracle, &[x], &batch, &mut gradient);
            (beta * x0 + (1.0 - beta) * x - eta * gradient[0] / n as f64 - y).powi(2)
        })
        .collect();
    let mean = squares.iter().sum::<f64>() / f64::from(runs as u32);
    let variance = squares.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / f64::from(runs as u32);
    (mean, (variance / f64::from(runs as u32)).sqrt())
}

#[test]
fn the_conditions_are_sufficient_for_the_drift_inequality() {
    let (growth, floor, eta) = (3.0, 1.0, 0.09);
    let oracle = noisy(SoftAbsolute { dimension: 1 }, growth, floor, &[1.0]);
    let principle = Uncertainty { smoothness: 1.0, growth, eta };
    for beta in [0.1, 0.2, 0.3] {
        let n = principle.check(beta, 1).unwrap().min_n.unwrap();
        let check = principle.check(beta, n).unwrap();
        assert!(check.variance_ok && check.eta_ok);
        for x in [-40.0, -2.0, 0.5, 3.0, 100.0] {
            let (mean, error) = one_step(&oracle, x, 0.0, beta, eta, n);
            let bound = (1.0 - beta / 2.0) * x * x + beta + eta * eta * floor * floor / n as f64;
            // Level .001 at each of the points.
            assert!(mean - 3.1 * error <= bound, "beta {beta}, N {n}, x {x}: {mean} exceeds {bound}");
        }
    }
}

#[test]
fn for_f_zero_the_boundary_is_beta_one_minus_beta() {
    // Every point minimises f = 0; with x* = x the inequality reads E|x_1 - x|^2 <= beta D^2 + eta^2 b^2/N.
    let (growth, floor, distance) = (3.0, 0.0, 50.0);
    let oracle = noisy(Flat { dimension: 1 }, growth, floor, &[0.0]);
    let holds = |beta: f64, eta: f64| {
        let (mean, error) = one_step(&oracle, distance, distance, beta, eta, 1);
        let bound = beta * distance * distance;
        // Level 3.2e-5 to each side, at each of the six points.
        assert!((mean - bound).abs() > 4.0 * error, "too close to the boundary to decide");
        mean < bound
    };
    for beta in [0.1, 0.3, 0.45_f64] {
        let boundary = (beta * (1.0 - beta)).sqrt() / growth;
        assert!(holds(beta, 0.95 * boundary));
        assert!(!holds(beta, 1.05 * boundary));
        // The theorem's condition is stricter: just inside the exact boundary it already fails, so it is not necessary.
        let check = Uncertainty { smoothness: 0.0, growth, eta: 0.95 * boundary }.check(beta, 1).unwrap();
        assert!(check.exact_noise_ok);
        assert_eq!(check.variance_ok, beta < 0.1);
    }
}

#[test]
fn the_planner_agrees_with_the_checker() {
    for (smoothness, growth, eta) in [(1.0, 3.0, 0.05), (0.5, 1.0, 0.2), (2.0, 10.0, 0.1), (0.0, 2.0, 1.0)] {
        let principle = Uncertainty { smoothness, growth, eta };
        let range = principle.anchor_range().unwrap();
        let beta = range.smallest.max(0.25);
        let check = principle.check(beta * (1.0 + 1e-12), range.least_batch).unwrap();
        assert!(check.eta_ok);
        assert!(range.least_batch == 1 || !principle.check(beta, range.least_batch - 1).unwrap().variance_ok);
        if let Some((low, high)) = range.single_sample {
            for beta in [low + 1e-9, f64::midpoint(low, high), high - 1e-9] {
                assert!(principle.check(beta, 1).unwrap().variance_ok, "{beta}");
            }
        }
    }
    let too_large = Uncertainty { smoothness: 1.0, growth: 1.0, eta: 0.4 };
    assert!(too_large.anchor_range().unwrap_err().to_string().contains("eta < 1/(2 sqrt(2) L)"));
}
