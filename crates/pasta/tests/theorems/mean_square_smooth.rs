use pasta_opt::prelude::*;
use pasta_opt::problems::{Quadratic, Ramp, SineBowl};

use super::support::{Mutation, assert_broken, assert_promise, assert_sharp, cost_exponent, noisy, outcome};

const START: [f64; 1] = [1.2];

fn recipe(growth: f64, floor: f64, target: f64) -> MeanSquareSmooth {
    let gap = SineBowl { dimension: 1 }.gap(&START);
    MeanSquareSmooth { ms_smoothness: 3f64.hypot(growth), gap, growth, floor, target }
}

#[test]
fn page_keeps_its_promise() {
    let oracle = noisy(SineBowl { dimension: 1 }, 2.0, 1.0, &START);
    assert_promise(&oracle, &recipe(2.0, 1.0, 0.3).plan().unwrap(), 64);
}

#[test]
fn page_counts_corrections_twice_in_evaluations_and_once_in_samples() {
    let oracle = noisy(SineBowl { dimension: 1 }, 2.0, 1.0, &START);
    let plan = recipe(2.0, 1.0, 0.3).plan().unwrap();
    let Estimator::Page { small, .. } = plan.schedule.estimator else { panic!("PAGE") };
    let mut corrections = 0;
    let mut gate = Gate::over(oracle, 5);
    let end = Pasta::start(&gate, plan.schedule.clone(), &START)
        .unwrap()
        .tee(|record, _, _| corrections += u128::from(record.kind == pasta_opt::estimator::Kind::Correction))
        .finish(&mut gate)
        .unwrap();
    assert!(corrections > 0);
    assert_eq!(end.ledger.evaluations() - end.ledger.samples(), corrections * u128::from(small));
    assert!((end.ledger.evaluations() as f64) < plan.cost.evaluations);
}

#[test]
fn a_page_recipe_that_was_told_too_little_noise_breaks_its_promise() {
    let oracle = noisy(SineBowl { dimension: 1 }, 2.0, 3.0, &START);
    assert_broken(
        &oracle,
        &MeanSquareSmooth { ms_smoothness: 4.0, ..recipe(0.0, 0.0, 0.3) }.plan().unwrap(),
        32,
    );
}

#[test]
fn halving_the_target_multiplies_the_cost_by_sixteen() {
    let exponent = cost_exponent(|target| recipe(2.0, 1.0, target).plan().unwrap(), 1e-3);
    assert!((exponent - 4.0).abs() < 0.01, "{exponent}");
}

#[test]
fn page_beats_plain_batches_on_the_ramp() {
    let target = 0.05;
    let ramp = || Ramp::family(1.0, 1.0, target);
    let gap = ramp().gap(&[0.0]);
    let oracle = noisy(ramp(), 3.0, 0.1, &[0.0]);
    let page = MeanSquareSmooth { ms_smoothness: 1f64.hypot(3.0), gap, growth: 3.0, floor: 0.1, target }
        .plan()
        .unwrap();
    let plain =
        Smooth { smoothness: 1.0, gap, growth: 3.0, floor: 0.1, variance: None, target }.plan().unwrap();
    let page = assert_promise(&oracle, &page, 16);
    let plain = outcome(&oracle, &plain.schedule, plain.guarantee.measure, 16);
    assert!(page.samples.value < plain.samples.value);
}

#[test]
fn page_is_sharp_where_its_estimate_stays_wrong_between_refreshes() {
    // Noise that does not depend on x cancels in the corrections, so the error of a large batch, of variance eps^2/2,
    // stays until the next one, and x settles where the gradient is minus that error.
    let recipe = MeanSquareSmooth { ms_smoothness: 1.0, gap: 0.5, growth: 0.0, floor: 5.0, target: 0.1 };
    let oracle = noisy(Quadratic { spectrum: vec![1.0] }, 0.0, 5.0, &[1.0]);
    assert_sharp(&oracle, &recipe.plan().unwrap(), 24, &[Mutation::SmallBatches]);
}
