use pasta_opt::prelude::*;
use pasta_opt::problems::{Quadratic, SineBowl};

use super::support::{Mutation, assert_broken, assert_promise, assert_sharp, cost_exponent, noisy};

const START: [f64; 1] = [1.2];

fn recipe(growth: f64, floor: f64, target: f64) -> Pl {
    let bowl = SineBowl { dimension: 1 };
    Pl { smoothness: 3.0, mu: bowl.facts().pl.unwrap(), gap: bowl.gap(&START), growth, floor, target }
}

#[test]
fn pl_keeps_its_promise_on_a_non_convex_bowl() {
    let oracle = noisy(SineBowl { dimension: 1 }, 0.5, 0.5, &START);
    assert_promise(&oracle, &recipe(0.5, 0.5, 0.2).plan().unwrap(), 64);
}

#[test]
fn a_pl_recipe_that_was_told_too_little_noise_breaks_its_promise() {
    let oracle = noisy(SineBowl { dimension: 1 }, 0.5, 2.0, &START);
    assert_broken(&oracle, &recipe(0.0, 0.0, 0.2).plan().unwrap(), 64);
}

#[test]
fn the_cost_is_the_stated_power_times_a_logarithm() {
    // K eps/log(3 Delta/eps) is constant once the noise term of eta is the smallest.
    let constant = |target: f64| {
        let recipe = recipe(0.5, 0.5, target);
        recipe.plan().unwrap().cost.samples * target / (3.0 * recipe.gap / target).ln()
    };
    let ratio = constant(0.05) / constant(0.4);
    assert!((ratio - 1.0).abs() < 1e-3, "{ratio}");
    assert!(cost_exponent(|target| recipe(0.5, 0.5, target).plan().unwrap(), 1e-6) < 1.1);
}

#[test]
fn pl_is_sharp_on_the_quadratic_with_mu_equal_to_l() {
    // b^2 = eps/3 and B^2 = eps/(12 Delta) make every term of eta that is not slack equal to 1/L: each step forgets
    // its start and leaves the whole noise.
    let gap: f64 = 0.56;
    let (growth, floor) = ((1.0 / (12.0 * gap)).sqrt(), (1.0f64 / 3.0).sqrt());
    let oracle = noisy(Quadratic { spectrum: vec![1.0] }, growth, floor, &[(2.0 * gap).sqrt()]);
    let recipe = Pl { smoothness: 1.0, mu: 1.0, gap, growth, floor, target: 1.0 };
    assert_sharp(&oracle, &recipe.plan().unwrap(), 2000, &[Mutation::LongSteps]);
}
