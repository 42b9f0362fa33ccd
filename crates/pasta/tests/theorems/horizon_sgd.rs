use pasta_opt::prelude::*;
use pasta_opt::problems::SineBowl;

use super::support::{assert_broken, assert_promise, cost_exponent, noisy};

const START: [f64; 1] = [1.2];

fn recipe(growth: f64, floor: f64, target: f64) -> HorizonSgd {
    let gap = SineBowl { dimension: 1 }.gap(&START);
    HorizonSgd { smoothness: 3.0, gap, growth, floor, target }
}

#[test]
fn horizon_tuned_sgd_keeps_its_promise_with_one_sample_a_step() {
    let oracle = noisy(SineBowl { dimension: 1 }, 1.0, 1.0, &START);
    assert_promise(&oracle, &recipe(1.0, 1.0, 0.6).plan().unwrap(), 16);
}

#[test]
fn sgd_tuned_to_a_noise_that_does_not_grow_breaks_its_promise() {
    let oracle = noisy(SineBowl { dimension: 1 }, 9.0, 1.0, &START);
    assert_broken(&oracle, &recipe(0.0, 1.0, 0.2).plan().unwrap(), 32);
}

#[test]
fn halving_the_target_multiplies_the_steps_by_two_to_the_sixth() {
    let exponent = cost_exponent(|target| recipe(1.0, 1.0, target).plan().unwrap(), 0.01);
    assert!((exponent - 6.0).abs() < 0.01, "{exponent}");
}
