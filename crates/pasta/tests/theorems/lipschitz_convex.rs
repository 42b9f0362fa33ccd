use pasta_opt::prelude::*;
use pasta_opt::problems::Absolute;

use super::support::{Mutation, assert_broken, assert_promise, assert_sharp, cost_exponent, noisy};

fn recipe(distance: f64, growth: f64, floor: f64, target: f64) -> LipschitzConvex {
    LipschitzConvex { lipschitz: 1.0, distance, growth, floor, variance: None, target }
}

#[test]
fn lipschitz_convex_keeps_its_promise_at_kinks() {
    let oracle = noisy(Absolute { dimension: 1 }, 1.0, 1.0, &[2.0]);
    assert_promise(&oracle, &recipe(2.0, 1.0, 1.0, 0.1).plan().unwrap(), 64);
    let start = [1.0; 5];
    let oracle = noisy(Absolute { dimension: 5 }, 0.5, 1.0, &start);
    assert_promise(&oracle, &recipe(5f64.sqrt(), 0.5, 1.0, 0.2).plan().unwrap(), 64);
}

#[test]
fn a_lipschitz_recipe_that_was_told_too_little_noise_breaks_its_promise() {
    let oracle = noisy(Absolute { dimension: 1 }, 1.0, 30.0, &[2.0]);
    assert_broken(&oracle, &recipe(2.0, 0.0, 0.0, 0.1).plan().unwrap(), 128);
}

#[test]
fn halving_the_target_multiplies_the_cost_by_four() {
    let exponent = cost_exponent(|target| recipe(2.0, 1.0, 1.0, target).plan().unwrap(), 1e-3);
    assert!((exponent - 2.0).abs() < 0.01, "{exponent}");
}

#[test]
fn the_default_variance_makes_the_bound_smallest() {
    let best = recipe(2.0, 1.0, 1.0, 0.01);
    let variance = (1.0f64 + 5.0 * 4.0).sqrt();
    let cost = |variance| LipschitzConvex { variance, ..best }.plan().unwrap().cost.samples;
    for factor in [0.2, 0.8, 1.2, 5.0] {
        // Equality up to the ceiling of K, which is above 10^5 here.
        assert!(cost(None) <= cost(Some(factor * variance)) * (1.0 + 1e-4));
    }
}

#[test]
fn lipschitz_convex_is_sharp_where_the_noise_carries_as_far_as_the_start() {
    // sigma^2 far above G^2, eps = G R/1.5: over the run the noise alone would move x by R, the slope by 1.5 R.
    let oracle = noisy(Absolute { dimension: 1 }, 5.0, 32.0, &[2.0]);
    let recipe = LipschitzConvex { variance: Some(100.0), ..recipe(2.0, 5.0, 32.0, 4.0 / 3.0) };
    assert_sharp(&oracle, &recipe.plan().unwrap(), 512, &[Mutation::LongSteps, Mutation::SmallBatches]);
}
