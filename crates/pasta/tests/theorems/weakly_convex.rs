use pasta_opt::prelude::*;

use super::support::{assert_broken, assert_promise, cost_exponent, noisy};

#[test]
fn weakly_convex_keeps_its_promise_at_a_kink_under_growing_noise() {
    let start = [0.05];
    let gap = KinkedWell { dimension: 1 }.gap(&start);
    let oracle = noisy(KinkedWell { dimension: 1 }, 1.0, 1.0, &start);
    let recipe = WeaklyConvex {
        rho: 1.0,
        lambda: 6.0,
        lipschitz: 1.0,
        gap,
        growth: 1.0,
        floor: 1.0,
        target: 0.5,
        formulas: Formulas::Corrected,
    };
    assert_promise(&oracle, &recipe.plan().unwrap(), 12);
}

/// A Huber function and noise so large that the batch sizes carry the whole promise. lambda = 16: the printed
/// formulas divide where they should multiply by lambda^2, so their batches are 65536 times too small.
fn counterexample(formulas: Formulas) -> (std::sync::Arc<Noisy>, Plan) {
    let start = [0.03];
    let huber = || Huber { dimension: 1, curvature: 16.0, lipschitz: 1.0 };
    let recipe = WeaklyConvex {
        rho: 0.0,
        lambda: 16.0,
        lipschitz: 1.0,
        gap: huber().gap(&start),
        growth: 0.0,
        floor: 500.0,
        target: 0.5,
        formulas,
    };
    (noisy(huber(), 0.0, 500.0, &start), recipe.plan().unwrap())
}

#[test]
fn weakly_convex_keeps_its_promise_with_the_corrected_batches() {
    let (oracle, plan) = counterexample(Formulas::Corrected);
    assert_promise(&oracle, &plan, 32);
}

#[test]
fn weakly_convex_as_printed_breaks_its_promise() {
    let (oracle, plan) = counterexample(Formulas::AsPrinted);
    assert_broken(&oracle, &plan, 32);
}

#[test]
fn halving_the_target_multiplies_the_cost_by_two_to_the_sixth() {
    let plan = |target: f64| {
        let recipe = WeaklyConvex {
            rho: 1.0,
            lambda: 6.0,
            lipschitz: 1.0,
            gap: 0.125,
            growth: 1.0,
            floor: 1.0,
            target,
            formulas: Formulas::Corrected,
        };
        recipe.plan().unwrap()
    };
    let exponent = cost_exponent(plan, 0.01);
    assert!((exponent - 6.0).abs() < 0.01, "{exponent}");
}
