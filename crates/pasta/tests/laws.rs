//! Laws: equalities and distributions that hold for every oracle and schedule.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pasta_opt::draws::{Address, Role};
use pasta_opt::estimator::Kind;
use pasta_opt::oracle::{About, Answer, BatchMode, Draw, Form, Request};
use pasta_opt::prelude::*;
use pasta_opt::problems::{Quadratic, SineBowl};
use pasta_opt::state::StartError;
use pasta_opt::stop::Divergence;
use pasta_opt::walk::{Record, View};

use common::{Around, Made, batch_of, difference_at, sum_at};

mod common;

fn bowl(growth: f64, floor: f64) -> Arc<Noisy> {
    let noise = Noise { growth, floor, tail: Tail::Gaussian };
    Arc::new(Noisy::new(Box::new(SineBowl { dimension: 3 }), noise, vec![1.2, -0.3, 0.7]).unwrap())
}

fn schedule() -> Schedule {
    Schedule {
        epochs: 3,
        steps: 40,
        eta: Sequence::Constant(0.05),
        beta: Sequence::Constant(0.1),
        estimator: Estimator::Minibatch,
        first: BatchRule::Fixed(9),
        large: BatchRule::Drift { growth: 2.0, floor: 1.0, target_variance: 0.1, at_least: 4 },
        output: Output::Last,
    }
}

fn page() -> Schedule {
    Schedule { estimator: Estimator::Page { refresh: Sequence::Constant(0.3), small: 3 }, ..schedule() }
}

fn storm() -> Schedule {
    Schedule { estimator: Estimator::Storm { momentum: Sequence::Constant(0.2) }, ..schedule() }
}

/// The bits of every iterate, and the ledger.
fn path<O>(oracle: &O, schedule: Schedule, start: &[f64], seed: u64) -> (Vec<Vec<u64>>, Finished)
where
    O: Oracle + Clone + 'static,
{
    let mut gate = Gate::new(oracle.clone(), seed);
    traced(Pasta::start(&gate, schedule, start).unwrap(), &mut gate)
}

fn traced(walk: impl Walk, gate: &mut Gate) -> (Vec<Vec<u64>>, Finished) {
    let mut iterates = Vec::new();
    let end = walk.tee(|_, view, _| iterates.push(bits(view.x))).finish(gate).unwrap();
    (iterates, end)
}

/// A run to its end.
fn run<O: Oracle + Clone + 'static>(oracle: &O, schedule: Schedule, start: &[f64], seed: u64) -> Finished {
    let mut gate = Gate::new(oracle.clone(), seed);
    Pasta::start(&gate, schedule, start).unwrap().finish(&mut gate).unwrap()
}

/// A run of a baseline, behind a gate of its own.
fn baseline<O>(oracle: &O, rule: Rule, steps: u64, batch: u64, start: &[f64], seed: u64) -> (Gate, Baseline)
where
    O: Oracle + Clone + 'static,
{
    let gate = Gate::new(oracle.clone(), seed);
    let walk = Baseline::start(&gate, Settings { rule, steps, batch }, start).unwrap();
    (gate, walk)
}

/// Through the bytes of a file and back.
fn saved(gate: &Gate, walk: &impl Walk) -> Checkpoint {
    let mut saver = Saver::default();
    gate.save(&mut saver);
    walk.save(&mut saver);
    Checkpoint::from_bytes(&saver.to_bytes()).unwrap()
}

fn bits(x: &[f64]) -> Vec<u64> {
    x.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn page_with_p_one_is_minibatch_bit_for_bit() {
    let oracle = bowl(2.0, 1.0);
    let sure =
        Schedule { estimator: Estimator::Page { refresh: Sequence::Constant(1.0), small: 3 }, ..schedule() };
    assert_eq!(path(&oracle, sure, oracle.start(), 7), path(&oracle, schedule(), oracle.start(), 7));
}

#[test]
fn storm_with_momentum_one_is_minibatch_bit_for_bit() {
    let oracle = bowl(2.0, 1.0);
    let forgetful =
        Schedule { estimator: Estimator::Storm { momentum: Sequence::Constant(1.0) }, ..schedule() };
    assert_eq!(path(&oracle, forgetful, oracle.start(), 7), path(&oracle, schedule(), oracle.start(), 7));
}

#[test]
fn without_anchor_algorithm_1_is_sgd_bit_for_bit() {
    let oracle = bowl(2.0, 1.0);
    for eta in [Sequence::Constant(0.05), Sequence::InverseRoot { scale: 0.1, shift: 1.0 }] {
        let ours = path(&oracle, Schedule::plain(eta, 200, 4), oracle.start(), 3);
        let (mut gate, theirs) = baseline(&oracle, Rule::Sgd { eta }, 200, 4, oracle.start(), 3);
        assert_eq!(ours, traced(theirs, &mut gate));
    }
}

#[test]
fn clipping_at_infinity_is_sgd_and_clipping_bounds_every_move() {
    let oracle = bowl(2.0, 1.0);
    let eta = Sequence::Constant(0.05);
    let run = |rule| baseline(&oracle, rule, 200, 1, oracle.start(), 3);
    let end = |rule| {
        let (mut gate, walk) = run(rule);
        walk.finish(&mut gate).unwrap()
    };
    assert_eq!(end(Rule::ClippedSgd { eta, threshold: 1e300 }), end(Rule::Sgd { eta }));
    let (mut gate, walk) = run(Rule::ClippedSgd { eta, threshold: 0.5 });
    let mut before = oracle.start().to_vec();
    let check = |_: &Record, view: &View<'_>, _: &Ledger| {
        let moved: f64 = view.x.iter().zip(&before).map(|(a, b)| (a - b).powi(2)).sum();
        before.copy_from_slice(view.x);
        // A handful of roundings of numbers of order one.
        assert!(moved.sqrt() <= 0.05 * 0.5 + 1e-15);
    };
    walk.tee(check).finish(&mut gate).unwrap();
}

#[test]
fn a_coupled_step_is_an_sgd_step_on_the_regularised_surrogate() {
    // beta = lambda eta: x_1 = x - eta (g + lambda (x - anchor)), up to the order of the roundings.
    let oracle = bowl(0.0, 1.0);
    let (eta, lambda) = (0.05, 3.0);
    let coupled =
        Schedule { beta: Sequence::Constant(lambda * eta), eta: Sequence::Constant(eta), ..schedule() };
    let mut gate = Gate::over(oracle.clone(), 11);
    let mut run = Pasta::start(&gate, coupled, oracle.start()).unwrap();
    for _ in 0..100 {
        let before = run.state().clone();
        let Advance::Step(_) = run.advance(&mut gate).unwrap() else { panic!("there are 120 steps") };
        let after = run.state();
        for i in 0..3 {
            let expected = before.x[i] - eta * (after.g[i] + lambda * (before.x[i] - after.anchor[i]));
            assert!((after.x[i] - expected).abs() < 1e-15);
        }
    }
}

#[test]
fn uncoupled_halpern_and_krasnoselskii_mann_are_what_their_names_say() {
    let oracle = bowl(0.0, 1.0);
    let x0 = oracle.start().to_vec();
    let mut gate = Gate::over(oracle, 1);
    let mut halpern = Pasta::start(&gate, Schedule::halpern(0.1, 50, 2), &x0).unwrap();
    let mut mann = Pasta::start(&gate, Schedule::krasnoselskii_mann(0.1, 0.25, 50, 2), &x0).unwrap();
    for t in 0..50u32 {
        let (h, m) = (halpern.state().x.clone(), mann.state().x.clone());
        halpern.advance(&mut gate).unwrap();
        mann.advance(&mut gate).unwrap();
        let beta = 1.0 / (f64::from(t) + 2.0);
        for i in 0..3 {
            let expected = beta * x0[i] + (1.0 - beta) * h[i] - 0.1 * halpern.state().g[i];
            assert_eq!(halpern.state().x[i], expected);
            assert!((mann.state().x[i] - (m[i] - 0.1 * mann.state().g[i])).abs() < 1e-15);
        }
    }
    assert!(matches!(mann.advance(&mut gate).unwrap(), Advance::Stop(Stop::PlannedEnd)));
}

#[test]
fn a_run_without_steps_returns_its_start_and_asks_nothing() {
    let oracle = bowl(1.0, 1.0);
    for (epochs, steps) in [(0, 5), (5, 0), (0, 0)] {
        for output in [Output::Last, Output::Uniform, Output::Average, Output::RandomAnchor] {
            let empty = Schedule { epochs, steps, output, ..schedule() };
            let end = run(&oracle, empty, oracle.start(), 1);
            assert_eq!((end.stop, end.ledger.samples()), (Stop::PlannedEnd, 0));
            assert_eq!(end.point, oracle.start());
        }
    }
}

#[test]
fn resuming_at_any_step_is_bit_identical_to_not_stopping() {
    let oracle = bowl(2.0, 1.0);
    let outputs = [Output::Last, Output::Uniform, Output::Average, Output::RandomAnchor];
    let mut random = Address { seed: 5, role: Role::Setup, step: 0, sample: 0 }.stream();
    for (i, schedule) in [schedule(), page(), storm(), schedule()].into_iter().enumerate() {
        let schedule = Schedule { output: outputs[i], ..schedule };
        let whole = run(&oracle, schedule.clone(), oracle.start(), 9);
        for _ in 0..12 {
            let mut gate = Gate::over(oracle.clone(), 9);
            let mut run = Pasta::start(&gate, schedule.clone(), oracle.start()).unwrap();
            for _ in 0..random.below(121) {
                run.advance(&mut gate).unwrap();
            }
            let mut checkpoint = saved(&gate, &run);
            let mut gate = Gate::resume(oracle.clone(), &mut checkpoint).unwrap();
            let resumed = Pasta::resume(&gate, &mut checkpoint).unwrap();
            assert_eq!(resumed.state(), run.state());
            assert_eq!(resumed.finish(&mut gate).unwrap(), whole);
        }
    }
    let rule = Rule::ClippedSgd { eta: Sequence::Constant(0.1), threshold: 1.0 };
    let start = || baseline(&oracle, rule, 100, 2, oracle.start(), 4);
    let (mut gate, whole) = start();
    let whole = whole.finish(&mut gate).unwrap();
    let (mut gate, mut run) = start();
    for _ in 0..37 {
        run.advance(&mut gate).unwrap();
    }
    let mut checkpoint = saved(&gate, &run);
    let mut gate = Gate::resume(oracle, &mut checkpoint).unwrap();
    assert_eq!(Baseline::resume(&gate, &mut checkpoint).unwrap().finish(&mut gate).unwrap(), whole);
}

/// Least squares on a stream, one sample at a time.
struct Regression;

impl Sampled for Regression {
    fn dim(&self) -> usize {
        5
    }

    fn identity(&self) -> String {
        "regression".into()
    }
    fn add_gradient(
        &self,
        weight: f64,
        x: &[f64],
        xi: &mut Stream,
        out: &mut [f64],
    ) -> Result<(), OracleError> {
        let a: Vec<f64> = x.iter().map(|_| xi.normal()).collect();
        let residual = a.iter().zip(x).map(|(a, x)| a * (x - 1.0)).sum::<f64>() - xi.normal();
        out.iter_mut().zip(&a).for_each(|(o, a)| *o += weight * residual * a);
        Ok(())
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let heavy = Noise { growth: 1.0, floor: 1.0, tail: Tail::StudentT { dof: 3.0 } };
    let heavy = Noisy::new(Box::new(SineBowl { dimension: 5 }), heavy, vec![0.5; 5]).unwrap();
    let streamed = Batched::new(Regression);
    let mut single = Batched::new(Regression);
    single.block = 1;
    let oracles: [Arc<dyn Oracle>; 3] = [Arc::new(heavy), Arc::new(streamed), Arc::new(single)];
    for oracle in oracles {
        let wide = Schedule { large: BatchRule::Fixed(1000), epochs: 1, ..page() };
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| path(&oracle, wide.clone(), &[0.5; 5], 2))
        };
        let one = on(1);
        for threads in [2, 3, 8] {
            assert_eq!(on(threads), one, "{threads} threads");
        }
    }
}

#[test]
fn a_batch_is_the_sum_of_its_samples() {
    // 37 samples of order one: the tree and the plain order differ by roundings only.
    let oracle = Batched::new(Regression);
    let batch = batch_of(3, Role::Large, 17, 37);
    let (x, y) = ([0.3; 5], [-0.2; 5]);
    let (mut sum, mut difference) = ([0.0; 5], [0.0; 5]);
    sum_at(&oracle, &x, &batch, &mut sum);
    difference_at(&oracle, &x, &y, &batch, &mut difference);
    let (mut by_hand, mut at_y) = ([0.0; 5], [0.0; 5]);
    for i in 0..37 {
        Regression.add_gradient(1.0, &x, &mut batch.sample(i), &mut by_hand).unwrap();
        Regression.add_gradient(1.0, &y, &mut batch.sample(i), &mut at_y).unwrap();
    }
    for i in 0..5 {
        assert!((sum[i] - by_hand[i]).abs() < 1e-12);
        assert!((difference[i] - (by_hand[i] - at_y[i])).abs() < 1e-12);
    }
}

/// Draws the mean of a batch of n at x, as deviations from the true gradient times sqrt(n), over many addresses.
fn scaled_deviations(oracle: &Noisy, x: &[f64], n: u64, draws: u64, seed: u64) -> Vec<f64> {
    let mut gradient = vec![0.0; x.len()];
    oracle.objective().gradient(x, &mut gradient);
    let mut sum = vec![0.0; x.len()];
    (0..draws)
        .map(|step| {
            sum_at(oracle, x, &batch_of(seed, Role::Large, step, n), &mut sum);
            let deviation = (sum[0] / n as f64 - gradient[0]) * (n as f64).sqrt();
            // Off the last digits, in which equal lattice points differ by the order of their additions.
            (deviation * 1e9).round() / 1e9
        })
        .collect()
}

/// The two-sample Kolmogorov-Smirnov distance.
fn distance_of_laws(a: &mut [f64], b: &mut [f64]) -> f64 {
    a.sort_by(f64::total_cmp);
    b.sort_by(f64::total_cmp);
    let (mut i, mut j, mut distance) = (0, 0, 0.0f64);
    while i < a.len() && j < b.len() {
        let here = a[i].min(b[j]);
        while i < a.len() && a[i] <= here {
            i += 1;
        }
        while j < b.len() && b[j] <= here {
            j += 1;
        }
        distance = distance.max((i as f64 / a.len() as f64 - j as f64 / b.len() as f64).abs());
    }
    distance
}

#[test]
fn exact_batches_have_the_law_of_batches_drawn_sample_by_sample() {
    for tail in [Tail::Gaussian, Tail::TwoPoint { probability: 0.05 }] {
        let make = |mode| {
            let noise = Noise { growth: 1.5, floor: 0.5, tail };
            let oracle = Noisy::new(Box::new(SineBowl { dimension: 2 }), noise, vec![1.0, 1.0]).unwrap();
            oracle.with_mode(mode)
        };
        let (exact, single) = (make(BatchMode::Exact), make(BatchMode::OneByOne));
        let x = [0.4, -0.6];
        for n in [1, 7, 100] {
            let draws = 20_000;
            let mut a = scaled_deviations(&exact, &x, n, draws, 1);
            let mut b = scaled_deviations(&single, &x, n, draws, 2);
            // s^2 = 1.5^2 (0.36 + 2.56) + 0.25, half of it in each coordinate.
            let variance = (2.25 * 2.92 + 0.25) / 2.0;
            for deviations in [&a, &b] {
                let mean = deviations.iter().sum::<f64>() / draws as f64;
                let second: f64 = deviations.iter().map(|d| d * d).sum::<f64>() / draws as f64;
                let fourth: f64 = deviations.iter().map(|d| d.powi(4)).sum::<f64>() / draws as f64;
                // Level 10^-4 each: 3.9 standard errors.
                assert!(mean.abs() < 3.9 * (variance / draws as f64).sqrt(), "{tail:?} {n}: mean {mean}");
                let error = ((fourth - second * second) / draws as f64).sqrt();
                assert!((second - variance).abs() < 3.9 * error, "{tail:?} {n}: {second} is not {variance}");
            }
            // Kolmogorov's 1.95 sqrt(2/m) is level 10^-3 for continuous laws, less for lattices.
            let distance = distance_of_laws(&mut a, &mut b);
            assert!(distance < 1.95 * (2.0 / draws as f64).sqrt(), "{tail:?} {n}: {distance}");
        }
        // The test can fail: a batch of 100 has not the law of a single sample with the same variance.
        let mut a = scaled_deviations(&make(BatchMode::Exact), &x, 100, 20_000, 1);
        let wrong = Noise { growth: 1.5, floor: 0.5, tail: Tail::TwoPoint { probability: 0.4 } };
        let wrong = Noisy::new(Box::new(SineBowl { dimension: 2 }), wrong, vec![1.0, 1.0]).unwrap();
        let mut b = scaled_deviations(&wrong, &x, 1, 20_000, 2);
        assert!(distance_of_laws(&mut a, &mut b) > 1.95 * (2.0f64 / 20_000.0).sqrt());
    }
}

#[test]
fn every_noise_is_unbiased_with_the_stated_variance() {
    let tails = [
        Tail::Gaussian,
        Tail::StudentT { dof: 5.0 },
        Tail::Lognormal { sigma: 0.5 },
        Tail::TwoPoint { probability: 0.1 },
    ];
    for tail in tails {
        let noise = Noise { growth: 2.0, floor: 1.0, tail };
        let oracle =
            Noisy::new(Box::new(Quadratic { spectrum: vec![1.0, 2.0] }), noise, vec![0.0, 0.0]).unwrap();
        let x = [0.6, 0.8];
        let draws = 100_000;
        let deviations = scaled_deviations(&oracle, &x, 1, draws, 3);
        let mean = deviations.iter().sum::<f64>() / draws as f64;
        let squares: Vec<f64> = deviations.iter().map(|d| d * d).collect();
        let variance = squares.iter().sum::<f64>() / draws as f64;
        // B^2 |x - x0|^2 + b^2 = 5, shared by two coordinates. Level 10^-4: 3.9 standard errors, the variance's
        // own from the sample's fourth moment (finite for dof 5).
        assert!(mean.abs() < 3.9 * (2.5 / draws as f64).sqrt(), "{tail:?}: {mean}");
        let spread = squares.iter().map(|s| (s - variance).powi(2)).sum::<f64>() / draws as f64;
        assert!((variance - 2.5).abs() < 3.9 * (spread / draws as f64).sqrt(), "{tail:?}: {variance}");
    }
}

#[test]
fn paired_differences_share_their_samples() {
    // With floor only (B = 0) the noise cancels to the last bit; with growth, MSS holds with equality in the noise part.
    let oracle = bowl(0.0, 1.0);
    let batch = batch_of(1, Role::Small, 4, 10);
    let (x, y) = ([0.1, 0.2, 0.3], [0.5, -0.2, 0.0]);
    let (mut difference, mut at_x, mut at_y) = ([0.0; 3], [0.0; 3], [0.0; 3]);
    difference_at(&oracle, &x, &y, &batch, &mut difference);
    oracle.objective().gradient(&x, &mut at_x);
    oracle.objective().gradient(&y, &mut at_y);
    for i in 0..3 {
        assert_eq!(difference[i], 10.0 * (at_x[i] - at_y[i]));
    }
    let growing = bowl(2.0, 0.0);
    difference_at(&growing, &x, &y, &batch, &mut difference);
    sum_at(&growing, &x, &batch, &mut at_x);
    sum_at(&growing, &y, &batch, &mut at_y);
    for i in 0..3 {
        // Sums of ten terms of order ten.
        assert!((difference[i] - (at_x[i] - at_y[i])).abs() < 1e-12);
    }
}

#[test]
fn storm_keeps_the_variance_that_theory_gives_it() {
    // B = 0: the shared noise cancels in the correction, so the error of g_t is the recursion
    // e_t = (1 - a) e_{t-1} + a u_t, with variance a/(2 - a) of a sample's. Evaluating the old point on
    // yesterday's samples would leave at least twice a sample's variance.
    let a = 0.2;
    let oracle = bowl(0.0, 1.0);
    let run = Schedule { epochs: 1, steps: 20_000, ..Schedule::storm(0.01, a, 20_000, 1) };
    let (mut total, mut count, mut gradient) = (0.0, 0.0, [0.0; 3]);
    let mut gate = Gate::over(oracle.clone(), 1);
    let mut run = Pasta::start(&gate, run, oracle.start()).unwrap();
    while let Advance::Step(record) = run.advance(&mut gate).unwrap() {
        let state = run.state();
        oracle.objective().gradient(&state.x_prev, &mut gradient);
        if record.t > 100 {
            total += state.g.iter().zip(&gradient).map(|(g, t)| (g - t).powi(2)).sum::<f64>();
            count += 1.0;
        }
    }
    let expected = a / (2.0 - a);
    // Effective sample size about count a; the relative error is sqrt(2/(3 count a)) < 2 %; ten percent is 5 of it.
    assert!((total / count / expected - 1.0).abs() < 0.1, "{} is not {expected}", total / count);
}

#[test]
fn every_step_costs_what_its_record_says_and_a_budget_is_never_overdrawn() {
    let oracle = bowl(2.0, 1.0);
    for schedule in [schedule(), page(), storm()] {
        let mut gate = Gate::over(oracle.clone(), 8);
        let mut walk = Pasta::start(&gate, schedule.clone(), oracle.start()).unwrap();
        let mut before = 0;
        while let Advance::Step(record) = walk.advance(&mut gate).unwrap() {
            assert_eq!(gate.ledger().samples() - before, u128::from(record.n));
            before = gate.ledger().samples();
        }
        let all = gate.ledger().samples();
        assert_eq!(all, before);
        for budget in [0, 1, 8, 9, 10, 500, all - 1, all, all + 1] {
            let mut gate = Gate::over(oracle.clone(), 8).with_budget(budget);
            let walk = Pasta::start(&gate, schedule.clone(), oracle.start()).unwrap();
            let end = walk.finish(&mut gate).unwrap();
            assert!(end.ledger.samples() <= budget);
            assert_eq!(end.stop, if budget < all { Stop::OutOfBudget } else { Stop::PlannedEnd });
        }
    }
}

#[test]
fn the_uniform_output_is_uniform_whenever_the_run_stops() {
    // f = 0 without noise but with eta = 1 and a constant push: the iterate tells its own step.
    let clock = Arc::new(Made {
        about: About { trusted: true, ..About::stream(1, "clock") },
        answer: |request: &Request<'_>, answer: &mut Answer<'_>| {
            let Draw::Batch(batch) = &request.draw else { unreachable!("a stream") };
            answer.gradients[0] = -(batch.count() as f64);
            Ok(())
        },
    });
    let chi_square = |output: Output, epochs: u64, steps: u64, stop: u64, cells: usize| {
        let mut counts = vec![0.0; cells];
        let seeds = 20_000;
        for seed in 0..seeds {
            let schedule = Schedule { epochs, output, ..Schedule::plain(Sequence::Constant(1.0), steps, 1) };
            let mut gate = Gate::over(clock.clone(), seed).with_budget(u128::from(stop));
            let end = Pasta::start(&gate, schedule, &[0.0]).unwrap().finish(&mut gate).unwrap();
            counts[(end.point[0] / if output == Output::RandomAnchor { steps as f64 } else { 1.0 })
                as usize] += 1.0;
        }
        let expected = seeds as f64 / cells as f64;
        counts.iter().map(|c| (c - expected).powi(2) / expected).sum::<f64>()
    };
    // Level 10^-4 of chi-square with 9 and 12 degrees of freedom: 33.7 and 39.1.
    assert!(chi_square(Output::Uniform, 1, 10, 100, 10) < 33.7);
    assert!(chi_square(Output::Uniform, 1, 1000, 13, 13) < 39.1);
    assert!(chi_square(Output::RandomAnchor, 10, 3, 100, 10) < 33.7);
}

#[test]
fn the_average_output_is_the_mean_of_the_points_where_gradients_were_taken() {
    let oracle = bowl(2.0, 1.0);
    let schedule = Schedule { epochs: 1, output: Output::Average, ..schedule() };
    let mut gate = Gate::over(oracle.clone(), 8);
    let mut walk = Pasta::start(&gate, schedule, oracle.start()).unwrap();
    let mut total = [0.0; 3];
    while let Advance::Step(_) = walk.advance(&mut gate).unwrap() {
        total.iter_mut().zip(&walk.state().x_prev).for_each(|(total, x)| *total += x);
    }
    let end = walk.finish(&mut gate).unwrap();
    for i in 0..3 {
        // Forty additions of numbers of order one.
        assert!((end.point[i] - total[i] / 40.0).abs() < 1e-14);
    }
}

/// Answers like the bowl, but fails or lies once, at one step.
fn faulty(at: u64, lie: Option<f64>) -> impl Oracle {
    let failures_left = AtomicU64::new(1);
    let answer = move |inner: &Arc<Noisy>, request: &Request<'_>, answer: &mut Answer<'_>| {
        let charge = inner.answer(request, answer)?;
        let here = matches!(&request.draw, Draw::Batch(batch) if batch.step == at);
        if here && request.form == Form::Sums && failures_left.swap(0, Ordering::Relaxed) > 0 {
            match lie {
                Some(lie) => answer.gradients[1] = lie,
                None => {
                    return Err(OracleError::new(std::io::Error::other("the simulator lost its licence")));
                }
            }
        }
        Ok(charge)
    };
    Around { inner: bowl(2.0, 1.0), answer }
}

#[test]
fn an_answer_that_is_not_finite_stops_the_run_and_the_last_finite_state_is_kept() {
    for lie in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let mut gate = Gate::new(faulty(23, Some(lie)), 1);
        let mut before = Vec::new();
        let end = Pasta::start(&gate, schedule(), &[1.2, -0.3, 0.7])
            .unwrap()
            .tee(|_, view, _| before = view.x.to_vec())
            .finish(&mut gate)
            .unwrap();
        assert_eq!(end.stop, Stop::Diverged(Divergence::Gradient { step: 23 }));
        assert_eq!((end.last, end.steps), (before, 23));
        assert!(end.stop.meaning().contains("step 23"));
    }
}

#[test]
fn an_absurdly_large_answer_is_a_runaway() {
    let end = |lie| run(&Arc::new(faulty(23, Some(lie))), schedule(), &[1.2, -0.3, 0.7], 1).stop;
    assert_eq!(end(1e60), Stop::Diverged(Divergence::Runaway { step: 23 }));
    assert_eq!(end(1e200), Stop::Diverged(Divergence::Runaway { step: 23 }));
}

#[test]
fn a_batch_beyond_counting_is_a_divergence_with_its_size() {
    let oracle = bowl(2.0, 1.0);
    let rule = BatchRule::Drift { growth: 1e12, floor: 0.0, target_variance: 1e-6, at_least: 1 };
    let end = run(&oracle, Schedule { large: rule, ..schedule() }, oracle.start(), 1);
    let Stop::Diverged(Divergence::Batch { step: 1, needed }) = end.stop else { panic!("{:?}", end.stop) };
    assert!(needed > 9.2e18);
}

#[test]
fn an_oracle_error_keeps_its_cause_and_the_step_can_be_tried_again() {
    for (schedule, output) in [(schedule(), Output::Uniform), (page(), Output::Average)] {
        let schedule = Schedule { output, ..schedule };
        let mut gate = Gate::new(faulty(80, None), 1);
        let mut walk = Pasta::start(&gate, schedule.clone(), &[1.2, -0.3, 0.7]).unwrap();
        let error = loop {
            match walk.advance(&mut gate) {
                Ok(Advance::Stop(stop)) => panic!("stopped: {stop:?}"),
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert_eq!(error.to_string(), "the oracle failed: the simulator lost its licence");
        assert!(std::error::Error::source(&error).unwrap().downcast_ref::<std::io::Error>().is_some());
        let whole = run(&bowl(2.0, 1.0), schedule, &[1.2, -0.3, 0.7], 1);
        assert_eq!(walk.finish(&mut gate).unwrap(), whole);
    }
}

#[test]
fn wrong_starts_and_settings_are_refused_at_the_start() {
    let gate = Gate::over(bowl(1.0, 1.0), 1);
    let refuse = |schedule: Schedule, start: &[f64]| Pasta::start(&gate, schedule, start).unwrap_err();
    assert_eq!(refuse(schedule(), &[1.0]), StartError::Dimension { start: 1, oracle: 3 });
    assert_eq!(
        refuse(schedule(), &[1.0; 2]).to_string(),
        "the start has 2 coordinates, but the oracle has 3"
    );
    assert_eq!(refuse(schedule(), &[1.0, f64::NAN, 0.0]).to_string(), "coordinate 1 of the start is NaN");
    let x = [1.0; 3];
    let settings = [
        (
            Schedule { eta: Sequence::Constant(0.0), ..schedule() },
            "eta must be positive and finite, but is 0",
        ),
        (
            Schedule { eta: Sequence::Constant(f64::NAN), ..schedule() },
            "eta must be positive and finite, but is NaN",
        ),
        (Schedule { beta: Sequence::Constant(1.5), ..schedule() }, "beta must be in [0, 1], but is 1.5"),
        (Schedule { first: BatchRule::Fixed(0), ..schedule() }, "batch must be between 1 and 2^63, but is 0"),
        (
            Schedule {
                estimator: Estimator::Page { refresh: Sequence::Constant(0.0), small: 1 },
                ..schedule()
            },
            "refresh (p) must be in (0, 1], but is 0",
        ),
        (
            Schedule {
                estimator: Estimator::Page { refresh: Sequence::Constant(0.5), small: 0 },
                ..schedule()
            },
            "small (b) must be at least 1, but is 0",
        ),
        (
            Schedule { estimator: Estimator::Storm { momentum: Sequence::Constant(2.0) }, ..schedule() },
            "momentum must be in (0, 1], but is 2",
        ),
        (
            Schedule {
                large: BatchRule::Drift { growth: 1.0, floor: 1.0, target_variance: 0.0, at_least: 1 },
                ..schedule()
            },
            "target_variance must be positive and finite, but is 0",
        ),
    ];
    for (schedule, message) in settings {
        assert_eq!(refuse(schedule, &x).to_string(), format!("schedule: {message}"));
    }
    let noise = |growth, floor, tail| {
        Noisy::new(Box::new(SineBowl { dimension: 1 }), Noise { growth, floor, tail }, vec![0.0])
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        noise(-1.0, 1.0, Tail::Gaussian),
        "noise: growth must be a finite number, at least 0, but is -1"
    );
    assert!(noise(1.0, f64::NAN, Tail::Gaussian).contains("floor"));
    assert!(noise(1.0, 1.0, Tail::StudentT { dof: 2.0 }).contains("more than 2"));
    assert!(noise(1.0, 1.0, Tail::TwoPoint { probability: 1.0 }).contains("strictly between 0 and 1"));
}

#[test]
fn adaptors_observe_thin_and_stop() {
    let oracle = bowl(1.0, 1.0);
    let gate = || Gate::over(oracle.clone(), 1);
    let run = || Pasta::start(&gate(), schedule(), oracle.start()).unwrap();
    let mut steps = Vec::new();
    run().every(50, |record, _, _| steps.push((record.epoch, record.t))).finish(&mut gate()).unwrap();
    assert_eq!(steps, [(1, 0), (2, 10), (3, 20)]);
    let mut walk = run().until(|_, view| view.step == 7);
    let end = (&mut walk).finish(&mut gate()).unwrap();
    assert_eq!((end.stop, end.steps), (Stop::Asked, 7));
    assert!(matches!(walk.advance(&mut gate()).unwrap(), Advance::Stop(Stop::Asked)));
    let mut kinds = Vec::new();
    let first = Pasta::start(&gate(), page(), oracle.start()).unwrap();
    first.tee(|record, _, _| kinds.push((record.t, record.kind))).finish(&mut gate()).unwrap();
    // There is no g_{-1} to correct: every epoch begins with a fresh batch.
    assert!(kinds.iter().all(|&(t, kind)| t > 0 || kind == Kind::Fresh));
    assert!(kinds.iter().any(|&(_, kind)| kind == Kind::Correction));
}

#[test]
fn a_run_that_touches_only_awake_coordinates_is_the_run_that_touches_all() {
    use pasta_opt::bounds::LowerSmooth;
    use pasta_opt::hard::HardInstance;

    let limit = LowerSmooth { smoothness: 1.0, gap: 1.0, growth: 0.01, floor: 0.0, target: 0.0005 };
    let instance = HardInstance::smooth(limit).unwrap();
    // Where the chain is switched on; the way there is long.
    let mut start = vec![0.0; instance.about().dim];
    start[0] = 0.9 * instance.bound().distance;
    // The same instance without its promise of zeros.
    let dense = Arc::new(Around {
        inner: instance.clone(),
        answer: |inner: &HardInstance, request: &Request<'_>, answer: &mut Answer<'_>| {
            let charge = inner.answer(&Request { active: usize::MAX, ..request.clone() }, answer)?;
            let dim = inner.about().dim;
            answer.gradients.chunks_mut(dim).for_each(|row| row[answer.support..].fill(0.0));
            answer.support = dim;
            Ok(charge)
        },
    });
    // Steps of 1/L as the recipe takes them, and batches that reveal a coordinate now and then.
    let batch = (0.3 / instance.bound().p) as u64;
    let plain = Schedule { output: Output::Average, ..Schedule::plain(Sequence::Constant(1.0), 4000, batch) };
    let page = Schedule {
        estimator: Estimator::Page { refresh: Sequence::Constant(0.2), small: 5 },
        ..plain.clone()
    };
    let anchored = Schedule { beta: Sequence::Constant(1e-5), epochs: 4, steps: 1000, ..plain.clone() };
    for schedule in [plain, page, anchored] {
        let sparse = path(&instance, schedule.clone(), &start, 1);
        assert_eq!(sparse, path(&dense, schedule.clone(), &start, 1));
        assert!(sparse.1.last.iter().skip(1).any(|y| *y != 0.0), "the chain was reached");
        let mut gate = Gate::new(instance.clone(), 1);
        let mut run = Pasta::start(&gate, schedule, &start).unwrap();
        for _ in 0..2500 {
            run.advance(&mut gate).unwrap();
        }
        let mut checkpoint = saved(&gate, &run);
        let mut gate = Gate::resume(Arc::new(instance.clone()), &mut checkpoint).unwrap();
        let resumed = Pasta::resume(&gate, &mut checkpoint).unwrap();
        assert_eq!(resumed.state(), run.state());
        assert_eq!(resumed.finish(&mut gate).unwrap(), sparse.1);
    }
    for rule in [
        Rule::Sgd { eta: Sequence::Constant(1.0) },
        Rule::ClippedSgd { eta: Sequence::Constant(1.0), threshold: 0.01 },
        Rule::Adam { eta: Sequence::Constant(0.1), first: 0.9, second: 0.999, epsilon: 1e-8 },
        Rule::AdaGradNorm { eta: 10.0, offset: 1e-3 },
    ] {
        let (mut gate, walk) = baseline(&instance, rule, 4000, batch, &start, 1);
        let sparse = walk.finish(&mut gate).unwrap();
        let (mut gate, walk) = baseline(&dense, rule, 4000, batch, &start, 1);
        assert_eq!(sparse, walk.finish(&mut gate).unwrap());
        assert!(sparse.last.iter().skip(1).any(|y| *y != 0.0), "the chain was reached by {rule:?}");
    }
}

#[test]
fn adam_and_adagrad_norm_take_the_steps_of_their_papers() {
    let oracle = bowl(0.0, 1.0);
    let (eta, first, second, epsilon) = (0.1, 0.9, 0.99, 1e-8);
    let rule = Rule::Adam { eta: Sequence::Constant(eta), first, second, epsilon };
    let (mut gate, mut adam) = baseline(&oracle, rule, 20, 1, oracle.start(), 1);
    let rule = Rule::AdaGradNorm { eta: 0.5, offset: 0.1 };
    let (mut other, mut adagrad) = baseline(&oracle, rule, 20, 1, oracle.start(), 1);
    let (mut m, mut v, mut total) = ([0.0; 3], [0.0; 3], 0.01);
    for t in 0..20 {
        let batch = batch_of(1, Role::Large, t, 1);
        let mut g = [0.0; 3];
        let before = adam.view().x.to_vec();
        sum_at(&oracle, &before, &batch, &mut g);
        adam.advance(&mut gate).unwrap();
        for i in 0..3 {
            m[i] = first * m[i] + (1.0 - first) * g[i];
            v[i] = second * v[i] + (1.0 - second) * g[i] * g[i];
            let [mhat, vhat] =
                [m[i] / (1.0 - first.powi(t as i32 + 1)), v[i] / (1.0 - second.powi(t as i32 + 1))];
            assert!((adam.view().x[i] - (before[i] - eta * mhat / (vhat.sqrt() + epsilon))).abs() < 1e-14);
        }
        let before = adagrad.view().x.to_vec();
        sum_at(&oracle, &before, &batch, &mut g);
        total += g.iter().map(|g| g * g).sum::<f64>();
        adagrad.advance(&mut other).unwrap();
        for i in 0..3 {
            assert!((adagrad.view().x[i] - (before[i] - 0.5 * g[i] / total.sqrt())).abs() < 1e-14);
        }
    }
}

#[test]
fn kurtosis_is_that_of_the_formula_where_a_formula_is_known_otherwise() {
    // |u|^2 of d normals is a chi-squared variable over d: 1 + 2/d.
    assert!((Tail::Gaussian.kurtosis(10) - 1.2).abs() < 1e-15);
    // A fair coin has |u| = 1 always.
    assert_eq!(Tail::TwoPoint { probability: 0.5 }.kurtosis(3), 1.0);
    assert_eq!(Tail::StudentT { dof: 4.0 }.kurtosis(1000), f64::INFINITY);
    // The raw moments of a lognormal variable are exp(n^2 sigma^2/2).
    let raw = |n: f64| (0.5 * n * n).exp();
    let (m1, m2, m3, m4) = (raw(1.0), raw(2.0), raw(3.0), raw(4.0));
    let fourth = m4 - 4.0 * m1 * m3 + 6.0 * m1 * m1 * m2 - 3.0 * m1.powi(4);
    let exact = fourth / (m2 - m1 * m1).powi(2);
    assert!((Tail::Lognormal { sigma: 1.0 }.kurtosis(1) / exact - 1.0).abs() < 1e-12);
}
