use pasta_opt::prelude::*;
use pasta_opt::problems::{Flat, Huber, KinkedWell};

use super::support::{
    Mean, Mutation, assert_broken, assert_documented, assert_promise, cost_exponent, noisy,
};

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

/// Where f is linear, an epoch ends at the proximal point plus noise. The recursion in the proof, which contracts by
/// 1 - eta mu a step, and the size of the batches bound it: lambda^2 E|x_1 - prox(x_0)|^2 <= lambda^2 eta b^2/(N mu)
/// <= mu^2 eps^2/(128 q), the share of eps^2 that the batches have to keep.
#[test]
fn an_epoch_leaves_no_more_noise_than_its_batches_allow() {
    let (lambda, floor, target, dimension) = (1.0, 5.0, 0.5, 64);
    let start = vec![0.0; dimension];
    let recipe = WeaklyConvex {
        rho: 0.0,
        lambda,
        lipschitz: 0.0,
        // One epoch.
        gap: target * target / 32.0,
        growth: 0.0,
        floor,
        target,
        formulas: Formulas::Corrected,
    };
    let plan = recipe.plan().unwrap();
    assert_eq!(plan.schedule.epochs, 1);
    let oracle = noisy(Flat { dimension }, 0.0, floor, &start);
    let bound = target * target / 384.0;
    let left = |schedule: &Schedule| {
        let squares: Vec<f64> = (1..=16)
            .map(|seed| {
                let mut gate = Gate::over(oracle.clone(), seed);
                let run = Pasta::start(&gate, schedule.clone(), &start).unwrap();
                let end = run.finish(&mut gate).unwrap();
                end.last.iter().map(|x| (lambda * x).powi(2)).sum()
            })
            .collect();
        Mean::of(&squares)
    };
    let kept = left(&plan.schedule);
    assert!(kept.is_below(bound), "{kept:?}, {bound}");
    let mutations = [Mutation::LongSteps, Mutation::SmallBatches];
    for mutation in mutations {
        let broken = left(&mutation.of(&plan.schedule));
        assert!(broken.is_above(bound), "{mutation:?} is not seen: {broken:?}, {bound}");
    }
    assert_documented(plan.recipe, kept.value / bound, &mutations);
}
