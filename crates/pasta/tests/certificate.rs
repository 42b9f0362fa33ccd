//! Certificates: how often they are wrong, what they cost, and what they say.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use pasta_opt::certificate::{CertificateError, ClaimError, Consequence, delta_of_attempt, number_by_hand};
use pasta_opt::oracle::{About, Answer, Draw, Form, Request, Source};
use pasta_opt::prelude::*;
use pasta_opt::problems::Quadratic;
use rayon::prelude::*;

use common::Made;

mod common;

const TARGET: f64 = 0.1;
const DELTA: f64 = 0.05;
/// V/eps^2: the noise below has variance 1.
const UNIT: f64 = 1.0 / (TARGET * TARGET);

const DECLARED: Basis = Basis::Variance(1.0);
const KURTOSIS: Basis = Basis::Kurtosis(100.0);

fn claim(basis: Basis) -> Claim {
    Claim { target: TARGET, delta: DELTA, basis, budget: None, guess: None }
}

/// Noise of variance 1 around a gradient that is the point itself.
fn oracle(tail: Tail, dimension: usize) -> Arc<Noisy> {
    let noise = Noise { growth: 0.0, floor: 1.0, tail };
    let objective = Box::new(Quadratic { spectrum: vec![1.0; dimension] });
    Arc::new(Noisy::new(objective, noise, vec![0.0; dimension]).unwrap())
}

/// A certificate at a point where the gradient is `gradient` times the direction (1, .., 1).
fn certify(oracle: &Arc<Noisy>, gradient: f64, claim: Claim, seed: u64) -> Certificate {
    let dimension = oracle.start().len();
    let x = vec![gradient / (dimension as f64).sqrt(); dimension];
    certify_at(oracle, &x, claim, seed)
}

fn certify_at<O: Oracle + Clone + 'static>(oracle: &O, x: &[f64], claim: Claim, seed: u64) -> Certificate {
    let mut gate = Gate::new(oracle.clone(), seed);
    Certifier::start(&mut gate, x, claim, 0).unwrap().finish(&mut gate).unwrap()
}

/// Why a claim is refused.
fn refused<O: Oracle + Clone + 'static>(oracle: &O, x: &[f64], claim: Claim) -> String {
    Certifier::start(&mut Gate::new(oracle.clone(), 1), x, claim, 0).unwrap_err().to_string()
}

/// The share of false certificates at |grad| = 1.02 eps, when four times the usual samples are allowed.
fn false_rate(tail: Tail, dimension: usize, basis: Basis, seeds: u64) -> f64 {
    let (oracle, claim) =
        (oracle(tail, dimension), Claim { budget: Some((130.0 * UNIT) as u128), ..claim(basis) });
    let wrong = |sign: f64| {
        let at = sign * 1.02 * TARGET;
        (0..seeds)
            .into_par_iter()
            .filter(|&s| certify(&oracle, at, claim, s).verdict == Verdict::Certified)
            .count()
    };
    // Skewed noise is worse on one side.
    wrong(1.0).max(wrong(-1.0)) as f64 / seeds as f64
}

/// Mean samples at |grad| = eps/2 in units of V/eps^2, and the share that is certified.
fn cost(tail: Tail, dimension: usize, basis: Basis, target: f64, seeds: u64) -> (f64, f64) {
    let oracle = oracle(tail, dimension);
    let claim = Claim { target, ..claim(basis) };
    let all: Vec<_> =
        (0..seeds).into_par_iter().map(|seed| certify(&oracle, 0.5 * target, claim, seed)).collect();
    let samples = all.iter().map(|c| c.samples as f64).sum::<f64>() / seeds as f64;
    let certified = all.iter().filter(|c| c.verdict == Verdict::Certified).count();
    (samples * target * target, certified as f64 / seeds as f64)
}

#[test]
fn declared_certificates_are_false_at_most_as_often_as_stated_whatever_the_tails() {
    let tails = [
        Tail::Gaussian,
        Tail::TwoPoint { probability: 1e-4 },
        Tail::TwoPoint { probability: 0.02 },
        Tail::StudentT { dof: 2.5 },
        Tail::Lognormal { sigma: 2.0 },
    ];
    for tail in tails {
        // The true rates are at most .03, so that more than .05 of 1000 has probability below 10^-3.
        let rate = false_rate(tail, 1, DECLARED, 1000);
        assert!(rate <= DELTA, "{tail:?}: {rate}");
    }
    let rate = false_rate(Tail::Gaussian, 10, DECLARED, 300);
    assert!(rate <= DELTA, "ten dimensions: {rate}");
}

#[test]
fn a_declared_variance_that_is_false_shows_in_the_rate() {
    // The test above can fail: four times the declared variance.
    let rate = false_rate(Tail::Gaussian, 1, Basis::Variance(0.25), 300);
    assert!(rate > 2.0 * DELTA, "{rate}");
}

#[test]
fn kurtosis_certificates_hold_where_their_assumption_does_and_fail_where_it_does_not() {
    // Kurtosis 3, and 1/p - 2 + p/(1 - p) = 48 for the two-point law.
    for tail in [Tail::Gaussian, Tail::TwoPoint { probability: 0.02 }] {
        let rate = false_rate(tail, 1, KURTOSIS, 500);
        assert!(rate <= DELTA, "{tail:?}: {rate}");
    }
    // Kurtosis 10^4: an event that has not happened yet is not seen.
    let rate = false_rate(Tail::TwoPoint { probability: 1e-4 }, 1, KURTOSIS, 200);
    assert!(rate > 2.0 * DELTA, "{rate}");
}

#[test]
fn a_certificate_at_half_the_target_costs_about_thirty_units() {
    for (tail, dimension) in [(Tail::Gaussian, 1), (Tail::Gaussian, 10), (Tail::StudentT { dof: 3.0 }, 1)] {
        let (units, certified) = cost(tail, dimension, DECLARED, TARGET, 100);
        assert!(units < 36.0 && certified > 0.97, "{tail:?} {dimension}: {units}, {certified}");
    }
    // A kurtosis of 100 needs some ten thousand samples to bound a variance at all; beyond, it costs little more.
    let (units, certified) = cost(Tail::Gaussian, 1, KURTOSIS, 0.1 * TARGET, 100);
    assert!(units < 45.0 && certified > 0.97, "kurtosis: {units}, {certified}");
}

#[test]
fn a_certificate_at_any_size_costs_the_machine_the_same() {
    // V/eps^2 = 10^14: some 10^15 samples in exact batches.
    let oracle = oracle(Tail::Gaussian, 3);
    let claim = Claim { target: 1e-7, ..claim(DECLARED) };
    let certificate = certify(&oracle, 3e-8, claim, 1);
    assert_eq!(certificate.verdict, Verdict::Certified);
    assert!(certificate.samples > 1_000_000_000_000_000);
}

#[test]
fn any_number_of_threads_gives_the_same_certificate() {
    let oracle = oracle(Tail::StudentT { dof: 3.0 }, 5);
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| certify(&oracle, 0.04, claim(KURTOSIS), 3))
    };
    assert_eq!(on(1), on(2));
    assert_eq!(on(1), on(5));
}

#[test]
fn a_budget_is_never_overdrawn_and_its_end_is_told() {
    let oracle = oracle(Tail::Gaussian, 1);
    for budget in [0, 1, 100, 255, 256, 257, 500] {
        for basis in [DECLARED, KURTOSIS, Basis::Approximate] {
            let certificate = certify(&oracle, 0.05, Claim { budget: Some(budget), ..claim(basis) }, 1);
            assert!(certificate.samples <= budget);
            assert_eq!(certificate.verdict, Verdict::OutOfBudget, "{budget} {certificate:?}");
        }
    }
    let nothing = certify(&oracle, 0.05, Claim { budget: Some(0), ..claim(DECLARED) }, 1);
    assert_eq!(nothing.statement(), "no bound: there were too few samples for one");
}

#[test]
fn a_budget_too_small_for_the_target_buys_the_best_bound_it_can() {
    let oracle = oracle(Tail::Gaussian, 1);
    for basis in [DECLARED, KURTOSIS] {
        let bounds = [10_000, 100_000, 1_000_000].map(|budget| {
            let claim = Claim { target: 1e-6, budget: Some(budget), ..claim(basis) };
            let certificate = certify(&oracle, 1e-7, claim, 1);
            assert_eq!(certificate.verdict, Verdict::OutOfBudget);
            // sqrt(2 V log(1/delta)/n) would be the best for a normal mean.
            certificate.bound.unwrap() / (2.0 * DELTA.recip().ln() / budget as f64).sqrt()
        });
        assert!(bounds.iter().all(|ratio| (0.5..3.0).contains(ratio)), "{basis:?}: {bounds:?}");
    }
}

#[test]
fn a_large_kurtosis_costs_more_and_still_comes_to_an_end() {
    let oracle = oracle(Tail::Gaussian, 2);
    for kappa in [1.0, 1e3, 3e3, 1e4] {
        for target in [1.0, 0.1] {
            let claim = Claim { target, ..claim(Basis::Kurtosis(kappa)) };
            let certificate = certify(&oracle, 0.01 * target, claim, 1);
            assert_eq!(certificate.verdict, Verdict::Certified, "{kappa} {target}: {certificate:?}");
            assert!((certificate.samples as f64) < 100.0 * (kappa + 20.0 + UNIT), "{kappa} {target}");
        }
    }
}

#[test]
fn a_gradient_far_above_the_target_is_seen_to_be() {
    let oracle = oracle(Tail::Gaussian, 2);
    let certificate = certify(&oracle, 5.0, claim(DECLARED), 1);
    assert_eq!(certificate.verdict, Verdict::Above);
    assert!((certificate.samples as f64) < 5.0 * UNIT);
}

#[test]
fn without_noise_a_certificate_is_nearly_exact() {
    let silent = Noise { growth: 0.0, floor: 0.0, tail: Tail::Gaussian };
    let oracle = Noisy::new(Box::new(Quadratic { spectrum: vec![1.0] }), silent, vec![0.0]);
    let oracle = Arc::new(oracle.unwrap());
    let certificate = certify(&oracle, 0.08, claim(Basis::Variance(0.0)), 1);
    assert_eq!(certificate.verdict, Verdict::Certified);
    let bound = certificate.bound.unwrap();
    assert!((0.08..=0.1).contains(&bound), "{bound}");
}

#[test]
fn the_statement_names_confidence_and_assumption_and_never_calls_an_approximation_certain() {
    let oracle = oracle(Tail::Gaussian, 1);
    let of = |basis| certify(&oracle, 0.03, claim(basis), 1).statement();
    let declared = of(DECLARED);
    assert!(
        declared.starts_with("With probability at least 95 %") && declared.contains("<= 1 at x (declared)")
    );
    assert!(of(KURTOSIS).contains("kurtosis at most 100 (assumed; samples cannot verify it)"));
    assert!(of(Basis::Approximate).starts_with("About 95 % by normal approximation, not a guarantee: |grad"));
    assert_eq!(certify(&oracle, 0.03, claim(Basis::Approximate), 1).verdict, Verdict::Likely);
}

#[test]
fn the_attempts_of_a_run_share_its_error() {
    let total: f64 = (1..=100_000).map(|i| delta_of_attempt(DELTA, i)).sum();
    assert!(total <= DELTA && total > 0.999 * DELTA);
    // Different attempts draw different samples.
    let oracle = oracle(Tail::Gaussian, 1);
    let bound = |attempt| {
        let mut gate = Gate::over(oracle.clone(), 1);
        Certifier::start(&mut gate, &[0.03], claim(DECLARED), attempt).unwrap().finish(&mut gate).unwrap()
    };
    assert_ne!(bound(1).bound, bound(2).bound);
}

#[test]
fn an_attempt_by_hand_draws_no_sample_that_an_attempt_of_a_run_has_drawn() {
    // A run's attempts have the numbers 1, 2, .. and the seed that an attempt by hand has by default.
    let (oracle, x) = (oracle(Tail::Gaussian, 1), [0.05]);
    let bound = |number: u64| {
        let mut gate = Gate::new(oracle.clone(), 1);
        Certifier::start(&mut gate, &x, claim(DECLARED), number).unwrap().finish(&mut gate).unwrap().bound
    };
    let of_run: Vec<_> = (1..6).map(bound).collect();
    let by_hand: Vec<_> = (1..6).map(number_by_hand).map(bound).collect();
    assert!(by_hand.iter().all(|bound| !of_run.contains(bound)), "{of_run:?} {by_hand:?}");
    assert!((1..6).all(|i| by_hand[i..].iter().all(|bound| *bound != by_hand[i - 1])), "{by_hand:?}");
}

#[test]
fn claims_that_mean_nothing_are_refused_with_the_number() {
    let oracle = oracle(Tail::Gaussian, 1);
    let refuse = |claim, x: &[f64]| refused(&oracle, x, claim);
    let base = claim(DECLARED);
    assert_eq!(
        refuse(Claim { target: 0.0, ..base }, &[0.0]),
        "certificate: target must be positive, from 1e-100 to 1e100, but is 0"
    );
    assert!(
        refuse(Claim { delta: 1.0, ..base }, &[0.0]).contains("delta must be at least 1e-100 and below 1")
    );
    assert!(refuse(Claim { basis: Basis::Variance(-1.0), ..base }, &[0.0]).contains("variance"));
    assert!(refuse(Claim { basis: Basis::Kurtosis(0.5), ..base }, &[0.0]).contains("kurtosis"));
    assert!(
        refuse(Claim { guess: Some(Guess { norm: f64::NAN, variance: None }), ..base }, &[0.0])
            .contains("guess")
    );
    assert!(refuse(base, &[f64::NAN]).contains("the point"));
    assert_eq!(refuse(base, &[0.0, 0.0]), ClaimError::Dimension { point: 2, oracle: 1 }.to_string());
}

/// The mean of (x - y)^2/2 over the rows y of a table.
fn table(rows: Vec<f64>) -> Arc<dyn Oracle> {
    let source = Source::Table { rows: rows.len() as u64 };
    let answer = move |request: &Request<'_>, answer: &mut Answer<'_>| {
        let row = |batch: &Batch, i| rows[batch.sample(i).below(rows.len() as u64) as usize];
        let x = request.points[0][0];
        answer.gradients[0] = match (&request.draw, request.form) {
            (Draw::Batch(batch), Form::Sums) => batch.samples.clone().map(|i| x - row(batch, i)).sum(),
            (Draw::Batch(batch), Form::Differences) => batch.count() as f64 * (x - request.base()[0]),
            (Draw::Everything(_), _) => x - rows.iter().sum::<f64>() / rows.len() as f64,
        };
        Ok(())
    };
    Arc::new(Made { about: About { source, trusted: true, ..About::stream(1, "rows") }, answer })
}

#[test]
fn a_small_table_is_passed_over_once_and_the_answer_is_exact() {
    let rows: Vec<f64> = (0..400).map(|i| f64::from(i % 7)).collect();
    let mean = rows.iter().sum::<f64>() / 400.0;
    let table = table(rows);
    let at = |x, claim| certify_at(&table, &[x], claim, 1);
    for basis in [Basis::Exact, Basis::Variance(6.0), KURTOSIS, Basis::Approximate] {
        let certificate = at(mean + 0.05, claim(basis));
        assert_eq!((certificate.basis, certificate.verdict), (Basis::Exact, Verdict::Certified));
        assert!((certificate.bound.unwrap() - 0.05).abs() < 1e-12);
        assert!(certificate.statement().ends_with("over all 400 rows."), "{}", certificate.statement());
        // Where no variance is declared a pilot of 256 samples came first.
        let pilot = if matches!(basis, Basis::Kurtosis(_) | Basis::Approximate) { 256 } else { 0 };
        assert_eq!((certificate.rows, certificate.samples), (Some(400), 400 + pilot));
    }
    assert_eq!(at(mean + 0.05, claim(Basis::Exact)).samples, 400);
    assert_eq!(at(mean + 0.2, claim(Basis::Exact)).verdict, Verdict::Above);
    // Too dear for the budget: nothing is read.
    let poor = at(mean, Claim { budget: Some(399), ..claim(Basis::Exact) });
    assert_eq!((poor.verdict, poor.samples, poor.bound), (Verdict::OutOfBudget, 0, None));
    // A target that few samples can certify is not worth a pass.
    let coarse = at(mean + 0.05, Claim { target: 100.0, ..claim(Basis::Variance(1e-9)) });
    assert!(coarse.samples <= 2000, "{coarse:?}");
}

#[test]
fn a_run_on_a_table_is_certified_by_a_pass_over_it_once_that_is_no_dearer() {
    let table = table((0..3000).map(|i| f64::from(i % 7)).collect());
    for basis in [Basis::Exact, Basis::Variance(4.0), KURTOSIS] {
        let rule = StopRule { target: 0.03, delta: DELTA, basis, share: 0.5 };
        let sgd = Rule::Sgd { eta: Sequence::Constant(0.01) };
        let mut gate = Gate::over(table.clone(), 1);
        let settings = Settings { rule: sgd, steps: 1_000_000, batch: 1 };
        let walk = Baseline::start(&gate, settings, &[0.0]).unwrap();
        let end = walk.certified(&gate, rule).unwrap().finish(&mut gate).unwrap();
        let progress = end.certification.as_ref().unwrap();
        assert_eq!((end.stop, progress.last.unwrap().basis), (Stop::Certified, Basis::Exact), "{basis:?}");
        assert!(
            (end.point[0] - 3.0).abs() < 0.04 && end.ledger.steps().samples < 50_000,
            "{basis:?} {end:?}"
        );
    }
}

#[test]
fn an_oracle_with_only_samples_has_no_exact_grade() {
    struct OnlySamples;
    impl Sampled for OnlySamples {
        fn dim(&self) -> usize {
            1
        }
        fn identity(&self) -> String {
            "onlysamples".into()
        }
        fn add_gradient(
            &self,
            weight: f64,
            x: &[f64],
            xi: &mut Stream,
            out: &mut [f64],
        ) -> Result<(), OracleError> {
            out[0] += weight * (x[0] + xi.normal());
            Ok(())
        }
    }
    let oracle = Arc::new(Batched::new(OnlySamples));
    assert_eq!(refused(&oracle, &[0.0], claim(Basis::Exact)), ClaimError::NotExact.to_string());
    // But every other basis, in parallel.
    let certificate = certify_at(&oracle, &[0.03], claim(DECLARED), 1);
    assert_eq!(certificate.verdict, Verdict::Certified);
}

#[test]
fn an_answer_that_is_no_number_is_an_error_and_not_a_certificate() {
    struct Faulty;
    impl Sampled for Faulty {
        fn dim(&self) -> usize {
            1
        }
        fn identity(&self) -> String {
            "faulty".into()
        }
        fn add_gradient(
            &self,
            _: f64,
            _: &[f64],
            xi: &mut Stream,
            out: &mut [f64],
        ) -> Result<(), OracleError> {
            out[0] += if xi.bernoulli(1e-2) { f64::NAN } else { 0.0 };
            Ok(())
        }
    }
    for basis in [DECLARED, KURTOSIS, Basis::Approximate] {
        let mut gate = Gate::new(Batched::new(Faulty), 1);
        let halt = match Certifier::start(&mut gate, &[0.0], claim(basis), 0) {
            Err(CertificateError::Halt(halt)) => halt,
            Err(refusal) => panic!("{refusal}"),
            Ok(certifier) => certifier.finish(&mut gate).unwrap_err(),
        };
        assert!(matches!(halt, Halt::NotFinite { .. }), "{halt}");
        assert!(halt.to_string().contains("not finite"), "{halt}");
    }
}

#[test]
fn growth_and_floor_declare_the_variance_at_the_point() {
    let noise = Noise { growth: 2.0, floor: 1.0, tail: Tail::Gaussian };
    let oracle = Noisy::new(Box::new(Quadratic { spectrum: vec![1.0] }), noise, vec![3.0]);
    let oracle = Arc::new(oracle.unwrap());
    let x = [0.03];
    let basis = Basis::Growth { growth: 2.0, floor: 1.0, distance: 2.97 };
    assert!((basis.declared_variance().unwrap() - oracle.variance(&x)).abs() < 1e-12);
    let of = |basis| certify_at(&oracle, &x, claim(basis), 1);
    let (by_growth, by_variance) = (of(basis), of(Basis::Variance(basis.declared_variance().unwrap())));
    assert_eq!(by_growth.bound, by_variance.bound);
    assert!(by_growth.statement().contains("B^2 |x - x0|^2 + b^2 = 36.284 at x (B = 2, b = 1, declared)"));
}

#[test]
fn what_follows_for_the_gap_is_true_and_says_on_what_it_rests() {
    // f = (x1^2 + x2^2/4)/2: mu = 1/4, and the minimiser is |x| away.
    let noise = Noise { growth: 0.0, floor: 1.0, tail: Tail::Gaussian };
    let f = Quadratic { spectrum: vec![1.0, 0.25] };
    let x = [0.02, 0.1];
    let gap = f.gap(&x);
    let oracle = Arc::new(Noisy::new(Box::new(f), noise, vec![1.0, 1.0]).unwrap());
    let certificate = certify_at(&oracle, &x, claim(DECLARED), 1);
    let bound = certificate.bound.unwrap();
    let convex = Consequence::Convex { radius: 0.102 };
    let pl = Consequence::Pl { mu: 0.25 };
    assert_eq!(convex.gap(&certificate), Some((0.102 * bound).next_up()));
    assert_eq!(pl.gap(&certificate), Some(((bound * bound).next_up() / 0.5).next_up()));
    assert!(gap <= convex.gap(&certificate).unwrap() && gap <= pl.gap(&certificate).unwrap());
    assert!(
        convex
            .statement(&certificate)
            .ends_with("and f is convex with a minimiser within 0.102 of x (declared).")
    );
    assert!(pl.statement(&certificate).contains("provided E|g - grad f|^2 <= 1 at x (declared), and 2 mu"));
    let refused = Consequence::Pl { mu: 0.0 }.check().unwrap_err();
    assert_eq!(refused.to_string(), "certificate: mu must be positive and finite, but is 0");
}

#[test]
fn a_printed_bound_is_never_below_the_bound() {
    let mut certificate = certify(&oracle(Tail::Gaussian, 1), 0.0, claim(DECLARED), 1);
    let mut draw =
        pasta_opt::draws::Address { seed: 1, role: pasta_opt::draws::Role::Setup, step: 0, sample: 0 }
            .stream();
    for _ in 0..10_000 {
        let bound = 10f64.powf(24.0 * draw.uniform() - 12.0);
        (certificate.verdict, certificate.bound) = (Verdict::OutOfBudget, Some(bound));
        let text = certificate.statement();
        let shown = text.split("<= ").nth(1).and_then(|rest| rest.split(',').next()).unwrap();
        let shown: f64 = shown.parse().unwrap();
        assert!(shown >= bound * (1.0 - 1e-12) && shown <= bound * (1.0 + 1.01e-4), "{bound} {shown}");
    }
}

#[test]
fn an_event_that_has_not_happened_yet_does_not_make_a_gradient_look_large() {
    // Until the event happens all samples agree, on the wrong gradient.
    let oracle = oracle(Tail::TwoPoint { probability: 1e-4 }, 1);
    let gives_up = |seed: &u64| {
        certify(&oracle, -0.005, Claim { target: 0.01, ..claim(DECLARED) }, *seed).verdict == Verdict::Above
    };
    let above = (0..200u64).into_par_iter().filter(gives_up).count();
    assert!(above <= 10, "{above} of 200");
}

#[test]
fn a_normal_approximation_is_about_right_on_normal_noise() {
    let wrong = |seed: &u64| {
        let oracle = oracle(Tail::Gaussian, 1);
        certify(&oracle, 1.02 * TARGET, claim(Basis::Approximate), *seed).verdict == Verdict::Likely
    };
    let wrong = (0..1000u64).into_par_iter().filter(wrong).count();
    // About 5 %: more than 7 % of 1000 would refute that at the level 1 %.
    assert!(wrong <= 70, "{wrong} of 1000");
}

#[test]
fn a_target_out_of_reach_is_refused_with_what_it_would_take() {
    let oracle = oracle(Tail::Gaussian, 1);
    let refuse =
        |target, variance| refused(&oracle, &[0.0], Claim { target, ..claim(Basis::Variance(variance)) });
    assert!(refuse(1e-12, 1.0).contains("it would take some 3."), "{}", refuse(1e-12, 1.0));
    assert!(refuse(1e-100, 1.0).contains("samples; a larger target takes fewer"));
    assert!(refuse(1e-101, 1.0).contains("from 1e-100 to 1e100"));
    assert!(refuse(0.1, 1e300).contains("samples"));
    for basis in [KURTOSIS, Basis::Approximate] {
        let refused = refused(&oracle, &[0.0], Claim { target: 1e-20, ..claim(basis) });
        assert!(refused.contains("it would take some"), "{refused}");
    }
}

#[test]
fn no_confidence_is_rounded_up_to_certainty() {
    let oracle = oracle(Tail::Gaussian, 1);
    let of = |delta| certify(&oracle, 0.03, Claim { delta, ..claim(DECLARED) }, 1).statement();
    assert!(of(1e-13).starts_with("With probability at least 1 - 1e-13 over"), "{}", of(1e-13));
    assert!(of(1e-4).starts_with("With probability at least 99.99 % over"), "{}", of(1e-4));
}
