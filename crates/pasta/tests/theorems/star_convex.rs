use pasta_opt::prelude::*;
use pasta_opt::problems::{Clover, Quadratic};

use super::support::{Mutation, assert_broken, assert_promise, assert_sharp, cost_exponent, noisy};

const START: [f64; 2] = [0.9, 0.5];

fn recipe(growth: f64, floor: f64, target: f64) -> StarConvex {
    let clover = Clover { depth: 0.3 };
    let facts = clover.facts();
    StarConvex {
        smoothness: facts.smoothness.unwrap(),
        mu: facts.star.unwrap(),
        gap: clover.gap(&START),
        growth,
        floor,
        target,
    }
}

#[test]
fn star_convex_keeps_its_promise_on_a_non_convex_clover() {
    let oracle = noisy(Clover { depth: 0.3 }, 0.7, 0.7, &START);
    assert_promise(&oracle, &recipe(0.7, 0.7, 0.1).plan().unwrap(), 64);
}

#[test]
fn a_star_recipe_that_was_told_too_little_noise_breaks_its_promise() {
    let oracle = noisy(Clover { depth: 0.3 }, 0.7, 2.0, &START);
    assert_broken(&oracle, &recipe(0.0, 0.0, 0.1).plan().unwrap(), 64);
}

#[test]
fn halving_the_target_doubles_the_cost_up_to_a_logarithm() {
    let exponent = cost_exponent(|target| recipe(0.7, 0.7, target).plan().unwrap(), 1e-6);
    assert!((1.0..1.1).contains(&exponent), "{exponent}");
}

#[test]
fn star_convex_is_sharp_on_the_quadratic_with_mu_equal_to_l() {
    // b^2 = eps/3 and B^2 = eps/(12 Delta) make every term of eta that is not slack equal to 1/L: each step forgets
    // its start and leaves the whole noise.
    let gap: f64 = 0.56;
    let (growth, floor) = ((1.0 / (12.0 * gap)).sqrt(), (1.0f64 / 3.0).sqrt());
    let oracle = noisy(Quadratic { spectrum: vec![1.0] }, growth, floor, &[(2.0 * gap).sqrt()]);
    let recipe = StarConvex { smoothness: 1.0, mu: 1.0, gap, growth, floor, target: 1.0 };
    assert_sharp(&oracle, &recipe.plan().unwrap(), 2000, &[Mutation::LongSteps]);
}
