use pasta_opt::prelude::*;
use pasta_opt::problems::{Quadratic, Ramp, SineBowl};

use super::support::{Mutation, assert_broken, assert_promise, assert_sharp, cost_exponent, noisy, outcome};

const START: [f64; 1] = [1.2];

fn recipe(growth: f64, floor: f64, target: f64) -> Smooth {
    let gap = SineBowl { dimension: 1 }.gap(&START);
    Smooth { smoothness: 3.0, gap, growth, floor, variance: None, target }
}

#[test]
fn smooth_keeps_its_promise_where_sgd_fails() {
    let oracle = noisy(SineBowl { dimension: 1 }, 9.0, 1.0, &START);
    assert_promise(&oracle, &recipe(9.0, 1.0, 0.2).plan().unwrap(), 64);
}

#[test]
fn smooth_keeps_its_promise_in_ten_dimensions_and_at_other_variances() {
    let start = [0.4; 10];
    let bowl = SineBowl { dimension: 10 };
    let gap = bowl.gap(&start);
    let oracle = noisy(bowl, 2.0, 1.0, &start);
    for variance in [None, Some(0.5), Some(8.0)] {
        let recipe = Smooth { smoothness: 3.0, gap, growth: 2.0, floor: 1.0, variance, target: 0.5 };
        assert_promise(&oracle, &recipe.plan().unwrap(), 32);
    }
}

#[test]
fn a_smooth_recipe_that_was_told_too_little_noise_breaks_its_promise() {
    let oracle = noisy(SineBowl { dimension: 1 }, 9.0, 1.0, &START);
    assert_broken(&oracle, &recipe(0.0, 0.0, 0.2).plan().unwrap(), 16);
}

#[test]
fn halving_the_target_multiplies_the_cost_by_two_to_the_sixth() {
    // The cost is a sum of powers of 1/eps up to the sixth; at this target the sixth is all but alone.
    let exponent = cost_exponent(|target| recipe(9.0, 1.0, target).plan().unwrap(), 1e-3);
    assert!((exponent - 6.0).abs() < 0.01, "{exponent}");
}

#[test]
fn the_measured_cost_on_the_ramp_family_grows_like_the_sixth_power() {
    // Whole-recipe local slopes on this family approach 6 from below: the recipe stays at the end of the ramp,
    // and the ramp's distance Delta/(2 eps) + 4 eps/L grows a little slower than 1/eps.
    let samples = |target: f64| {
        let ramp = Ramp::family(1.0, 1.0, target);
        let gap = ramp.gap(&[0.0]);
        let recipe = Smooth { smoothness: 1.0, gap, growth: 3.0, floor: 0.1, variance: None, target };
        let plan = recipe.plan().unwrap();
        let oracle = noisy(ramp, 3.0, 0.1, &[0.0]);
        assert_promise(&oracle, &plan, 24);
        outcome(&oracle, &plan.schedule, plan.guarantee.measure, 24).samples.value
    };
    let slope = (samples(0.05) / samples(0.1)).log2();
    assert!((5.5..6.1).contains(&slope), "{slope}");
}

#[test]
fn the_printed_display_is_refused_outside_its_case() {
    let outside = Smooth { variance: Some(0.01), ..recipe(1.0, 1.0, 0.5) };
    assert!(outside.printed_bound().unwrap_err().to_string().contains("eps^2 <= 2 sigma^2"));
}

#[test]
fn smooth_is_sharp_on_a_quadratic_of_curvature_l() {
    // sigma^2 = eps^2/2 makes eta = 1/L: each step leaves the whole noise of its batch. The bound is attained here with
    // the gap itself, 1/2; the gap that is declared leaves room for the error of the mean.
    let recipe =
        Smooth { smoothness: 1.0, gap: 0.6, growth: 1.0, floor: 5.0, variance: Some(0.005), target: 0.1 };
    let oracle = noisy(Quadratic { spectrum: vec![1.0] }, 1.0, 5.0, &[1.0]);
    let both = [Mutation::LongSteps, Mutation::SmallBatches];
    assert_sharp(&oracle, &recipe.plan().unwrap(), 24, &both);
}
