use pasta_opt::prelude::*;
use pasta_opt::problems::{Huber, Quadratic, SoftAbsolute};

use super::support::{Mutation, assert_broken, assert_promise, assert_sharp, cost_exponent, noisy};

const START: [f64; 1] = [2.0];

fn recipe(growth: f64, floor: f64, variance: Option<f64>, target: f64) -> SmoothConvex {
    SmoothConvex { smoothness: 1.0, distance: 2.0, growth, floor, variance, target }
}

#[test]
fn smooth_convex_keeps_its_promise() {
    let oracle = noisy(SoftAbsolute { dimension: 1 }, 2.0, 1.0, &START);
    for variance in [None, Some(1.0), Some(0.05)] {
        assert_promise(&oracle, &recipe(2.0, 1.0, variance, 0.1).plan().unwrap(), 64);
    }
}

#[test]
fn smooth_convex_keeps_its_promise_on_a_degenerate_quadratic() {
    let spectrum = vec![1.0, 0.1, 0.0];
    let start = [1.0, 1.0, 1.0];
    let quadratic = Quadratic { spectrum };
    let distance = quadratic.distance_to_minimiser(&start).unwrap();
    let oracle = noisy(quadratic, 1.0, 1.0, &start);
    let recipe =
        SmoothConvex { smoothness: 1.0, distance, growth: 1.0, floor: 1.0, variance: None, target: 0.05 };
    assert_promise(&oracle, &recipe.plan().unwrap(), 64);
}

#[test]
fn a_convex_recipe_that_was_told_too_little_noise_breaks_its_promise() {
    let oracle = noisy(SoftAbsolute { dimension: 1 }, 0.0, 10.0, &START);
    assert_broken(&oracle, &recipe(0.0, 0.0, None, 0.1).plan().unwrap(), 32);
}

#[test]
fn halving_the_target_multiplies_the_cost_by_four() {
    let exponent = cost_exponent(|target| recipe(2.0, 1.0, None, target).plan().unwrap(), 1e-4);
    assert!((exponent - 2.0).abs() < 0.01, "{exponent}");
}

#[test]
fn the_default_variance_makes_the_bound_smallest() {
    let cost = |variance| recipe(2.0, 1.0, variance, 0.01).plan().unwrap().cost.samples;
    for factor in [0.1, 0.5, 0.9, 1.1, 2.0, 10.0] {
        // Equality up to the ceiling of K, which is at least 1600 here.
        assert!(cost(None) <= cost(Some(factor * 0.01)) * (1.0 + 1e-3));
    }
}

#[test]
fn smooth_convex_is_sharp_on_a_slope_with_matched_noise() {
    // Slope 1.5 eps/R: the mean path reaches the minimiser a third of the way through the run. The batches leave a
    // variance of all but sigma^2, so that the noise alone would carry x as far as R.
    let slope = Huber { dimension: 1, curvature: 1.0, lipschitz: 0.075 };
    let oracle = noisy(slope, 1.0, 3.0, &START);
    assert_sharp(&oracle, &recipe(1.0, 3.0, None, 0.1).plan().unwrap(), 512, &[Mutation::SmallBatches]);
}

#[test]
fn smooth_convex_notices_long_steps_on_a_quadratic_of_curvature_l() {
    let oracle = noisy(Quadratic { spectrum: vec![1.0] }, 1.0, 1.0, &START);
    let mut plan = recipe(1.0, 1.0, None, 0.1).plan().unwrap();
    assert_promise(&oracle, &plan, 32);
    plan.schedule = Mutation::LongSteps.of(&plan.schedule);
    assert_broken(&oracle, &plan, 32);
}
