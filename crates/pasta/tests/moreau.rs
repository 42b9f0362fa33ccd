//! Moreau certificates: how often they are wrong, how sharp they are, and what they say.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use common::Around;
use pasta_opt::certificate::Quantity;
use pasta_opt::certificate::moreau::{Certifier, MoreauClaim};
use pasta_opt::draws::Role;
use pasta_opt::oracle::{Answer, Request};
use pasta_opt::prelude::*;
use pasta_opt::problems::{Absolute, Huber, KinkedWell, SineBowl, Wells};
use rayon::prelude::*;

mod common;

fn claim(target: f64, basis: Basis) -> MoreauClaim {
    MoreauClaim { lambda: 2.0, rho: 1.0, target, delta: 0.05, basis, points: 128, budget: None }
}

fn oracle(objective: Box<dyn Objective>, tail: Tail, start: Vec<f64>) -> Arc<Noisy> {
    Arc::new(Noisy::new(objective, Noise { growth: 0.5, floor: 1.0, tail }, start).unwrap())
}

const GROWTH: Basis = Basis::Growth { growth: 0.5, floor: 1.0, distance: 0.0 };

fn certify(oracle: &Arc<Noisy>, x: &[f64], claim: MoreauClaim, seed: u64) -> Certificate {
    let mut gate = Gate::over(oracle.clone(), seed);
    Certifier::start(&mut gate, x, oracle.start(), claim, 0).unwrap().finish(&mut gate).unwrap()
}

fn truth(oracle: &Noisy, x: &[f64], lambda: f64) -> f64 {
    Measure::MoreauSquared { lambda }.at(oracle.objective(), x).unwrap().sqrt()
}

#[test]
fn an_interrupted_certificate_says_so_and_counts_what_it_drew() {
    let inner = oracle(Box::new(KinkedWell { dimension: 1 }), Tail::Gaussian, vec![1.0]);
    let stop = Arc::new(AtomicBool::new(false));
    let (flag, asked) = (stop.clone(), AtomicU64::new(0));
    let answer = move |inner: &Arc<Noisy>, request: &Request<'_>, answer: &mut Answer<'_>| {
        // In the middle of the certificate itself, after the search.
        if request.draw.role() == Role::Certificate && asked.fetch_add(1, Ordering::Relaxed) == 3_000 {
            flag.store(true, Ordering::Relaxed);
        }
        inner.answer(request, answer)
    };
    let start = inner.start().to_vec();
    let mut gate = Gate::new(Around { inner, answer }, 1).with_stop(stop);
    let certifier = Certifier::start(&mut gate, &[0.5], &start, claim(0.3, GROWTH), 0).unwrap();
    let certificate = certifier.finish(&mut gate).unwrap();
    assert_eq!(certificate.verdict, Verdict::Interrupted);
    assert_eq!(certificate.samples, gate.ledger().samples());
}

#[test]
fn a_kink_is_certified_where_the_gradient_says_nothing() {
    // At the bottom of the kinked well |grad f| = 1/2 on both sides, and the envelope is flat.
    let oracle = oracle(Box::new(KinkedWell { dimension: 1 }), Tail::Gaussian, vec![1.0]);
    let certificate = certify(&oracle, &[0.5], claim(0.3, GROWTH), 1);
    assert_eq!(certificate.verdict, Verdict::Certified);
    let statement = certificate.statement();
    assert!(statement.starts_with("With probability at least 95 %"), "{statement}");
    assert!(statement.contains("at its 128 points (B = 0.5, b = 1, declared)"), "{statement}");
    assert!(statement.ends_with("f + 1/2 |x|^2 is convex (declared)."), "{statement}");
}

#[test]
fn bounds_are_above_the_truth_on_every_weakly_convex_problem() {
    let cases: Vec<(Box<dyn Objective>, Vec<f64>)> = vec![
        (Box::new(KinkedWell { dimension: 1 }), vec![0.6]),
        (Box::new(KinkedWell { dimension: 3 }), vec![0.3, 0.2, 0.4]),
        (Box::new(Wells { dimension: 2 }), vec![0.55, -0.4]),
        (Box::new(Absolute { dimension: 4 }), vec![0.1, -0.02, 0.0, 0.3]),
        (Box::new(SineBowl { dimension: 2 }), vec![0.05, -0.1]),
        (Box::new(Huber { dimension: 2, curvature: 1.0, lipschitz: 1.0 }), vec![0.2, 0.1]),
    ];
    for (objective, x) in cases {
        let start = vec![1.0; x.len()];
        let oracle = oracle(objective, Tail::Gaussian, start);
        let exact = certify(&oracle, &x, claim(1.0, Basis::Exact), 1);
        let truth = truth(&oracle, &x, 2.0);
        assert!(exact.bound.unwrap() >= truth, "{oracle:?}: {exact:?} {truth}");
        for (points, basis) in [(1, GROWTH), (128, GROWTH), (32, Basis::Kurtosis(10.0))] {
            let bounds: Vec<f64> = (0..20u64)
                .into_par_iter()
                .filter_map(|seed| {
                    certify(&oracle, &x, MoreauClaim { points, ..claim(1.0, basis) }, seed).bound
                })
                .collect();
            // Twenty certificates, each false with probability at most .05, far less in truth: two is the limit.
            let wrong = bounds.iter().filter(|bound| **bound < truth).count();
            assert!(wrong <= 2, "{oracle:?} {points} {basis:?}: {wrong} of {} below {truth}", bounds.len());
        }
    }
}

#[test]
fn false_certificates_are_as_rare_as_stated_where_the_target_is_just_below_the_truth() {
    // |x| with lambda = 2: grad phi = 2x near 0.
    let oracle = oracle(Box::new(Absolute { dimension: 1 }), Tail::TwoPoint { probability: 0.02 }, vec![1.0]);
    let x = [0.2];
    let target = truth(&oracle, &x, 2.0) / 1.02;
    let claim = MoreauClaim { rho: 0.0, budget: Some(200_000), ..claim(target, GROWTH) };
    let certified = |seed: &u64| certify(&oracle, &x, claim, *seed).verdict == Verdict::Certified;
    let wrong = (0..200u64).into_par_iter().filter(certified).count();
    assert!(wrong <= 18, "{wrong} of 200, where 10 are promised on average at most (level 1 %)");
}

#[test]
fn more_points_see_through_a_kink_and_one_point_does_not() {
    let oracle = oracle(Box::new(Absolute { dimension: 1 }), Tail::Gaussian, vec![0.5]);
    let at = |points| {
        let claim = MoreauClaim { rho: 0.0, points, ..claim(0.02, Basis::Exact) };
        certify(&oracle, &[0.001], claim, 1).bound
    };
    let (one, few, many) = (at(1).unwrap(), at(16).unwrap(), at(1024).unwrap());
    assert!(one >= 1.0 && few < 0.5 && many < 0.05, "{one} {few} {many}");
}

#[test]
fn a_smooth_function_needs_one_point() {
    let oracle = oracle(Box::new(SineBowl { dimension: 2 }), Tail::Gaussian, vec![1.0, 1.0]);
    let claim = MoreauClaim { points: 1, lambda: 4.0, ..claim(0.3, GROWTH) };
    let certificate = certify(&oracle, &[0.01, -0.01], claim, 1);
    assert_eq!(certificate.verdict, Verdict::Certified);
    assert!(matches!(certificate.of, Quantity::Moreau { points: 1, .. }), "{certificate:?}");
    assert!(certificate.statement().contains("at the point it rests on"));
}

#[test]
fn a_point_far_from_stationary_is_not_certified_and_a_budget_is_kept() {
    let oracle = oracle(Box::new(Absolute { dimension: 1 }), Tail::Gaussian, vec![1.0]);
    let far = certify(&oracle, &[3.0], MoreauClaim { rho: 0.0, ..claim(0.3, GROWTH) }, 1);
    assert_eq!(far.verdict, Verdict::NotReached);
    assert!(far.bound.is_none_or(|bound| bound >= 1.0));
    for budget in [0, 1, 100, 3_000, 50_000] {
        let claim = MoreauClaim { rho: 0.0, budget: Some(budget), ..claim(0.3, GROWTH) };
        let certificate = certify(&oracle, &[0.01], claim, 1);
        assert!(certificate.samples <= budget, "{budget}: {certificate:?}");
        assert!(certificate.verdict != Verdict::Certified || budget == 50_000);
    }
}

#[test]
fn any_number_of_threads_gives_the_same_certificate() {
    let oracle = oracle(Box::new(KinkedWell { dimension: 2 }), Tail::StudentT { dof: 3.0 }, vec![1.0, 0.0]);
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| certify(&oracle, &[0.4, 0.3], claim(0.5, GROWTH), 3))
    };
    assert_eq!(on(1), on(3));
}

#[test]
fn claims_that_mean_nothing_are_refused_with_the_number() {
    let oracle = oracle(Box::new(Absolute { dimension: 1 }), Tail::Gaussian, vec![1.0]);
    let refuse = |claim| {
        let mut gate = Gate::over(oracle.clone(), 1);
        Certifier::start(&mut gate, &[0.0], &[1.0], claim, 0).unwrap_err().to_string()
    };
    let base = claim(0.3, GROWTH);
    assert_eq!(
        refuse(MoreauClaim { lambda: 1.0, ..base }),
        "certificate: lambda must be finite and larger than rho, but is 1"
    );
    assert!(refuse(MoreauClaim { rho: -1.0, ..base }).contains("rho must be finite, at least 0"));
    assert!(refuse(MoreauClaim { points: 0, ..base }).contains("points must be from 1 to 4096"));
    assert!(refuse(MoreauClaim { basis: Basis::Approximate, ..base }).contains("no certificate"));
}
