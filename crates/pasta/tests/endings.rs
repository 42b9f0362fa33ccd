//! How runs end that cannot end well: answers that are not finite, functions without a minimum, targets out of reach.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pasta_opt::draws::Role;
use pasta_opt::gate::OnNan;
use pasta_opt::oracle::{About, Answer, Charge, Draw, Request};
use pasta_opt::prelude::*;
use pasta_opt::problems::{Absolute, SineBowl};
use pasta_opt::stop::{Divergence, Hopeless};

/// f(x) + noise, by one function for f and its slope in every coordinate.
#[derive(Clone)]
struct Separable {
    dim: usize,
    /// f and f' of one coordinate.
    f: fn(f64) -> (f64, f64),
    noise: f64,
    losses: bool,
    nan: Nan,
}

/// Which samples are NaN.
#[derive(Clone)]
enum Nan {
    Never,
    /// This share, by the sample's own draws: the same sample is NaN at every point.
    BySample(f64),
    /// One in so many calls, whatever is asked.
    ByCall(u64, Arc<AtomicU64>),
    /// All, at points with a negative coordinate.
    Below0,
}

impl Nan {
    fn by_call(every: u64) -> Self {
        Self::ByCall(every, Arc::default())
    }

    fn is_due(&self, x: &[f64], xi: &mut Stream) -> bool {
        match self {
            Self::Never => false,
            Self::BySample(share) => xi.uniform() < *share,
            Self::ByCall(every, calls) => calls.fetch_add(1, Ordering::Relaxed) % every == every - 1,
            Self::Below0 => x.iter().any(|x| *x < 0.0),
        }
    }
}

impl Sampled for Separable {
    fn dim(&self) -> usize {
        self.dim
    }
    fn identity(&self) -> String {
        "separable".into()
    }
    fn add_gradient(
        &self,
        weight: f64,
        x: &[f64],
        xi: &mut Stream,
        out: &mut [f64],
    ) -> Result<(), OracleError> {
        let is_nan = self.nan.is_due(x, xi);
        for (out, x) in out.iter_mut().zip(x) {
            let g = (self.f)(*x).1 + self.noise * xi.normal();
            *out += if is_nan { f64::NAN } else { weight * g };
        }
        Ok(())
    }
    fn loss(&self, x: &[f64], xi: &mut Stream) -> Result<f64, OracleError> {
        let _ = self.nan.is_due(x, xi);
        Ok(x.iter().map(|x| (self.f)(*x).0 + self.noise * xi.normal() * x).sum())
    }
    fn gives_losses(&self) -> bool {
        self.losses
    }
}

/// (x - 1)^2/2.
fn bowl(x: f64) -> (f64, f64) {
    (0.5 * (x - 1.0).powi(2), x - 1.0)
}

fn oracle(f: fn(f64) -> (f64, f64)) -> Separable {
    Separable { dim: 3, f, noise: 1.0, losses: true, nan: Nan::Never }
}

fn auto(oracle: Separable, start: f64, budget: u128, seed: u64, on_nan: OnNan) -> Finished {
    let start = vec![start; oracle.dim];
    let mut gate =
        Gate::new(Batched::new(oracle), seed).with_budget(budget).with_on_nan(on_nan).without_check();
    Auto::start(&gate, &start, None).unwrap().finish(&mut gate).unwrap()
}

#[test]
fn a_run_stops_at_an_oracle_that_answers_with_nan_now_and_then_and_says_how_often() {
    for losses in [true, false] {
        for seed in 1..=4 {
            for nan in [Nan::BySample(0.01), Nan::by_call(100), Nan::BySample(1e-4), Nan::by_call(9_973)] {
                let end = auto(Separable { losses, nan, ..oracle(bowl) }, 4.0, 50_000, seed, OnNan::Stop);
                let Stop::NotFinite(mixed) = end.stop else { panic!("seed {seed}: {:?}", end.stop) };
                assert!(
                    0 < mixed.not_finite && mixed.not_finite < mixed.answers && mixed.step < 100,
                    "{mixed:?}"
                );
                assert!(end.ledger.not_finite() > 0);
                assert_eq!(end.stop.kind(), "not-finite");
                let meaning = end.stop.meaning();
                assert!(
                    meaning.contains("of the oracle at one point are not finite (seen at step "),
                    "{meaning}"
                );
            }
        }
    }
}

#[test]
fn methods_that_cannot_step_back_blame_the_oracle_too_and_a_divergence_is_one() {
    let settings =
        |eta: f64| Settings { rule: Rule::Sgd { eta: Sequence::Constant(eta) }, steps: 5_000, batch: 4 };
    let run = |nan: Nan, eta| {
        let mut gate = Gate::new(Batched::new(Separable { nan, ..oracle(bowl) }), 1).without_check();
        Baseline::start(&gate, settings(eta), &[4.0; 3]).unwrap().finish(&mut gate).unwrap()
    };
    let end = run(Nan::BySample(0.01), 0.1);
    let Stop::NotFinite(mixed) = end.stop else { panic!("{:?}", end.stop) };
    assert_eq!(mixed.step, end.steps);
    // A point beyond the domain is not the oracle's fault, nor is a step that is too long.
    assert!(matches!(run(Nan::Below0, 1.9).stop, Stop::Diverged(Divergence::Gradient { .. })));
    assert!(matches!(run(Nan::Never, 5.0).stop, Stop::Diverged(Divergence::Runaway { .. })));
}

#[test]
fn samples_that_are_left_out_are_counted_and_the_run_comes_to_its_end() {
    for nan in [Nan::BySample(0.01), Nan::by_call(100)] {
        for budget in [2_000, 50_000] {
            let end = auto(Separable { nan: nan.clone(), ..oracle(bowl) }, 4.0, budget, 1, OnNan::Skip);
            assert_eq!(end.stop, Stop::PlannedEnd);
            // One in a hundred, and some that were asked for again.
            let share = end.ledger.not_finite() as f64 / budget as f64;
            assert!((0.002..0.05).contains(&share), "{share}");
            assert!(end.ledger.samples() <= budget);
            assert!(end.point.iter().all(|x| (x - 1.0).abs() < 0.3), "{end:?}");
        }
    }
}

#[test]
fn a_batch_without_the_samples_that_are_not_finite_is_the_mean_of_the_others() {
    let nan = |share| Separable { nan: Nan::BySample(share), ..oracle(bowl) };
    // By one sample at a time, and by the gate.
    let mut single = Gate::new(Batched::new(nan(0.1)), 1);
    let (mut kept, mut sum) = (0.0, [0.0; 3]);
    for i in 0..100 {
        let batch = Batch { samples: i..i + 1, ..single.batch(Role::Large, 0, 0) };
        let mut g = [0.0; 3];
        if single.ask(Request::sums(batch, &[&[2.0; 3]]), &mut Answer::new(&mut g)).is_ok() {
            kept += 1.0;
            sum.iter_mut().zip(g).for_each(|(sum, g)| *sum += g);
        }
    }
    let mut gate = Gate::new(Batched::new(nan(0.1)), 1).with_on_nan(OnNan::Skip).with_budget(100);
    let mut g = [0.0; 3];
    gate.ask(Request::sums(gate.batch(Role::Large, 0, 100), &[&[2.0; 3]]), &mut Answer::new(&mut g)).unwrap();
    for (g, sum) in g.iter().zip(sum) {
        // The two are added in other orders.
        assert!((g / 100.0 - sum / kept).abs() < 1e-12);
    }
    assert_eq!((gate.ledger().samples(), gate.ledger().not_finite() as f64), (100, 100.0 - kept));
    assert!(gate.ledger().evaluations() > 100);
    // Where no sample is finite, neither is the answer.
    let mut gate = Gate::new(Batched::new(nan(1.0)), 1).with_on_nan(OnNan::Skip);
    let batch = gate.batch(Role::Large, 0, 4);
    let halt = gate.ask(Request::sums(batch, &[&[2.0; 3]]), &mut Answer::new(&mut g)).unwrap_err();
    assert!(matches!(halt, Halt::NotFinite { .. }), "{halt}");
}

#[test]
fn what_rests_on_samples_that_were_chosen_is_not_certified() {
    let rule = StopRule { target: 0.3, delta: 0.05, basis: Basis::Kurtosis(100.0), share: 0.5 };
    let run = |on_nan, nan| {
        let oracle = Batched::new(Separable { nan, ..oracle(bowl) });
        let mut gate = Gate::new(oracle, 1).with_on_nan(on_nan).without_check();
        let walk = Auto::start(&gate, &[4.0; 3], Some(0.3)).unwrap().certified(&gate, rule).unwrap();
        let end = walk.finish(&mut gate).unwrap();
        (end, gate)
    };
    assert_eq!(run(OnNan::Skip, Nan::Never).0.stop, Stop::Certified);
    let (end, gate) = run(OnNan::Skip, Nan::BySample(0.01));
    assert_eq!(end.stop, Stop::Void);
    let certificate = end.certification.unwrap().last.unwrap();
    assert_eq!((certificate.verdict, certificate.bound), (Verdict::Void, None));
    assert!(gate.meaning(end.stop).contains("samples were not finite and were left out"));
}

/// Answers certificates with NaN, once.
#[derive(Debug)]
struct NanAt<O>(O, Role, u64);

impl<O: Oracle> Oracle for NanAt<O> {
    fn about(&self) -> &About {
        self.0.about()
    }
    fn answer(&self, request: &Request<'_>, answer: &mut Answer<'_>) -> Result<Charge, OracleError> {
        let charge = self.0.answer(request, answer)?;
        if matches!(&request.draw, Draw::Batch(batch) if batch.role == self.1 && batch.step % (1 << 40) == self.2)
        {
            answer.gradients[0] = f64::NAN;
        }
        Ok(charge)
    }
}

#[test]
fn what_a_look_or_a_certificate_meets_names_a_step_of_the_run_and_no_address() {
    for role in [Role::Certificate, Role::Look] {
        let oracle = NanAt(Batched::new(oracle(bowl)), role, 9);
        let mut gate = Gate::new(oracle, 1).without_check();
        let rule = StopRule { target: 0.3, delta: 0.05, basis: Basis::Kurtosis(100.0), share: 0.5 };
        let walk = Auto::start(&gate, &[4.0; 3], Some(0.3)).unwrap().certified(&gate, rule).unwrap();
        let end = walk.finish(&mut gate).unwrap();
        let Stop::NotFinite(mixed) = end.stop else { panic!("{:?}", end.stop) };
        assert_eq!((mixed.step, mixed.not_finite > 0), (end.steps, true));
        assert!(end.steps < 1_000 && end.ledger.not_finite() > 0);
        // The point is the walk's, and nothing is said of it.
        assert!(end.certification.unwrap().last.is_none());
    }
}

#[test]
fn points_beyond_the_domain_are_stepped_around_and_nobody_is_blamed() {
    // Some samples of exp(a x) overflow far out, and others do not.
    struct Exponential;
    impl Sampled for Exponential {
        fn dim(&self) -> usize {
            1
        }
        fn identity(&self) -> String {
            "exp(a x) - 2 x".into()
        }
        fn add_gradient(
            &self,
            weight: f64,
            x: &[f64],
            xi: &mut Stream,
            out: &mut [f64],
        ) -> Result<(), OracleError> {
            let a = 1.0 + 0.3 * xi.normal().abs();
            out[0] += weight * (a * (a * x[0]).exp() - 200.0 + xi.normal());
            Ok(())
        }
    }
    for seed in 1..=6 {
        let mut gate = Gate::new(Batched::new(Exponential), seed).with_budget(20_000).without_check();
        let end = Auto::start(&gate, &[-300.0], None).unwrap().finish(&mut gate).unwrap();
        assert!(matches!(end.stop, Stop::PlannedEnd), "seed {seed}: {end:?}");
        let end = auto(Separable { nan: Nan::Below0, ..oracle(bowl) }, 3.0, 20_000, seed, OnNan::Stop);
        assert_eq!(end.stop, Stop::PlannedEnd, "seed {seed}");
        assert!(end.point.iter().all(|x| (x - 1.0).abs() < 0.2), "{end:?}");
    }
}

#[test]
fn a_ledger_of_before_has_no_answers_that_were_not_finite() {
    let old = r#"{"samples": 3, "evaluations": 3, "by_role": {"large": {"samples": 3, "evaluations": 3}}}"#;
    let ledger: Ledger = serde_json::from_str(old).unwrap();
    assert_eq!((ledger.samples(), ledger.not_finite()), (3, 0));
}

#[test]
fn f_without_a_minimum_ends_as_unbounded() {
    let functions: [(&str, fn(f64) -> (f64, f64)); 3] = [
        ("linear", |x| (-x, -1.0)),
        ("a bowl upside down", |x| (-0.5 * x * x, -x)),
        ("steeper than that", |x| (-0.25 * x.powi(4), -x.powi(3))),
    ];
    for (name, f) in functions {
        for (budget, losses) in [(4_000, true), (4_000, false), (50_000, true), (50_000, false)] {
            for seed in 1..=4 {
                let end = auto(Separable { losses, ..oracle(f) }, 1.0, budget, seed, OnNan::Stop);
                let place = format!("{name}, {budget} samples, losses {losses}, seed {seed}: {end:?}");
                match end.stop {
                    Stop::Unbounded(fall) => assert!(fall.fell > 0.0 && fall.slope < 0.0, "{place}"),
                    Stop::Diverged(Divergence::Runaway { .. }) => {}
                    // A walk that was lost begins again, and may not have come far.
                    _ => assert!(end.point.iter().all(|x| x.abs() < 1e4), "{place}"),
                }
            }
        }
    }
    // Without a budget, too.
    let rule = StopRule { target: 0.1, delta: 0.05, basis: Basis::Kurtosis(100.0), share: 0.5 };
    let mut gate = Gate::new(Batched::new(oracle(|x| (-x, -1.0))), 1).without_check();
    let walk = Auto::start(&gate, &[1.0; 3], Some(0.1)).unwrap().certified(&gate, rule).unwrap();
    let end = walk.finish(&mut gate).unwrap();
    assert!(matches!(end.stop, Stop::Unbounded(_)), "{:?}", end.stop);
    assert!(end.stop.meaning().starts_with("unbounded: f fell by about "), "{}", end.stop.meaning());
}

#[test]
fn a_minimum_that_is_far_away_is_not_called_none() {
    let functions: [(&str, fn(f64) -> (f64, f64)); 6] = [
        ("at 1e6, slope 1", |x| (0.5e-6 * (x - 1e6).powi(2), 1e-6 * (x - 1e6))),
        ("at 1e6, curvature 1", |x| (0.5 * (x - 1e6).powi(2), x - 1e6)),
        ("at 1e8, slope 10", |x| (0.5e-7 * (x - 1e8).powi(2), 1e-7 * (x - 1e8))),
        ("at 1e6, with a kink", |x| ((x - 1e6).abs(), (x - 1e6).signum())),
        ("wells at 1000 and -1000", |x| {
            let u = x / 1e3;
            (250.0 * (u * u - 1.0).powi(2), u * (u * u - 1.0))
        }),
        ("at infinity", |x| ((-x / 100.0).exp(), -0.01 * (-x / 100.0).exp())),
    ];
    for (name, f) in functions {
        for (budget, losses) in
            [(1_000, true), (4_000, true), (4_000, false), (30_000, true), (30_000, false)]
        {
            for seed in 1..=4 {
                let end = auto(Separable { losses, ..oracle(f) }, 1.0, budget, seed, OnNan::Stop);
                let place = format!("{name}, {budget} samples, losses {losses}, seed {seed}: {end:?}");
                assert!(!end.stop.is_lost(), "{place}");
            }
        }
    }
}

/// A run to a certificate, without a budget.
fn to_target(oracle: Arc<dyn Oracle>, start: &[f64], rule: StopRule) -> Finished {
    let mut gate = Gate::over(oracle, 1).without_check();
    let walk = Auto::start(&gate, start, Some(rule.target)).unwrap();
    walk.certified(&gate, rule).unwrap().finish(&mut gate).unwrap()
}

#[test]
fn a_run_whose_target_is_out_of_reach_ends_and_says_what_is_not() {
    let noise = Noise { growth: 1.0, floor: 1.0, tail: Tail::Gaussian };
    let bowl: Arc<dyn Oracle> =
        Arc::new(Noisy::new(Box::new(SineBowl { dimension: 2 }), noise, vec![1.2; 2]).unwrap());
    let rule = StopRule { target: 1e-6, delta: 0.05, basis: Basis::Kurtosis(100.0), share: 0.5 };
    let end = to_target(Arc::clone(&bowl), &[1.2; 2], rule);
    let Stop::Hopeless(Hopeless::Noise { target, drawn, needed, reach }) = end.stop else {
        panic!("{:?}", end.stop)
    };
    // The variance is 1 near the solution, and a certificate takes some 30 V/eps^2.
    assert!(
        target == 1e-6 && (3e12..3e14).contains(&needed) && (1e-3..0.1).contains(&reach),
        "{:?}",
        end.stop
    );
    assert!((100_000..400_000).contains(&drawn), "{drawn}");
    assert!(end.point.iter().all(|x| x.abs() < 0.1), "the point is good all the same: {end:?}");
    let meaning = end.stop.meaning();
    assert!(meaning.starts_with("the target 1e-6 is not within reach: "), "{meaning}");
    assert_eq!(end.stop.kind(), "hopeless");
    // What is within reach by its own account is reached.
    let rule = StopRule { target: 2.0 * reach, ..rule };
    assert_eq!(to_target(bowl, &[1.2; 2], rule).stop, Stop::Certified);

    // The slope of |x| is 1 everywhere.
    let kink: Arc<dyn Oracle> = Arc::new(
        Noisy::new(Box::new(Absolute { dimension: 1 }), Noise { floor: 0.1, ..noise }, vec![1.2]).unwrap(),
    );
    let rule = StopRule { target: 0.05, ..rule };
    let end = to_target(Arc::clone(&kink), &[1.2], rule);
    let Stop::Hopeless(Hopeless::Stuck { since, drawn, gradient, .. }) = end.stop else {
        panic!("{:?}", end.stop)
    };
    assert!(16 * since <= drawn && gradient > 0.05, "{:?}", end.stop);
    // Without a limit it goes on: here, for two rounds.
    let mut gate = Gate::over(kink, 1).without_check().without_limit();
    let walk = Auto::start(&gate, &[1.2], Some(rule.target)).unwrap().certified(&gate, rule).unwrap();
    let further = walk.until(|_, view| view.step == end.steps + 2).finish(&mut gate).unwrap();
    assert_eq!((further.stop, further.steps), (Stop::Asked, end.steps + 2));
}

#[test]
fn a_run_without_hope_goes_on_with_a_budget() {
    let noise = Noise { growth: 1.0, floor: 1.0, tail: Tail::Gaussian };
    let oracle: Arc<dyn Oracle> =
        Arc::new(Noisy::new(Box::new(SineBowl { dimension: 2 }), noise, vec![1.2; 2]).unwrap());
    let rule = StopRule { target: 1e-6, delta: 0.05, basis: Basis::Kurtosis(100.0), share: 0.5 };
    let mut gate = Gate::over(Arc::clone(&oracle), 1);
    let mut walk = Auto::start(&gate, &[1.2; 2], Some(1e-6)).unwrap().certified(&gate, rule).unwrap();
    let end = (&mut walk).finish(&mut gate).unwrap();
    assert!(matches!(end.stop, Stop::Hopeless(_)), "{:?}", end.stop);
    let mut saver = Saver::default();
    gate.save(&mut saver);
    walk.save(&mut saver);
    let bytes = saver.to_bytes();
    let resumed = |budget: Option<u128>| {
        let mut checkpoint = Checkpoint::from_bytes(&bytes).unwrap();
        let mut gate = Gate::resume(Arc::clone(&oracle), &mut checkpoint).unwrap().with_budget(budget);
        let walk = Auto::resume(&gate, &mut checkpoint).unwrap();
        walk.certified_again(&gate, rule, &mut checkpoint).unwrap().finish(&mut gate).unwrap()
    };
    // It had ended, and is what it was.
    assert_eq!(resumed(None), end);
    let samples = end.ledger.samples();
    let further = resumed(Some(3 * samples));
    assert!(
        further.ledger.samples() > samples && !matches!(further.stop, Stop::Hopeless(_)),
        "{:?}",
        further.stop
    );
}

/// x itself, one sample in a hundred NaN if asked for.
struct Plain(f64);

impl Sampled for Plain {
    fn dim(&self) -> usize {
        3
    }
    fn identity(&self) -> String {
        "plain".into()
    }
    fn add_gradient(
        &self,
        weight: f64,
        x: &[f64],
        xi: &mut Stream,
        out: &mut [f64],
    ) -> Result<(), OracleError> {
        let nan = if xi.uniform() < self.0 { f64::NAN } else { 0.0 };
        out.iter_mut().zip(x).for_each(|(out, x)| *out += weight * (x + nan));
        Ok(())
    }
}

#[test]
fn without_noise_samples_that_are_left_out_change_nothing() {
    for share in [0.0, 0.01] {
        let mut gate = Gate::new(Batched::new(Plain(share)), 1)
            .with_on_nan(OnNan::Skip)
            .with_budget(10_000)
            .without_check();
        let end = Auto::start(&gate, &[1.0, -2.0, 3.0], None).unwrap().finish(&mut gate).unwrap();
        assert!(end.point.iter().all(|x| x.abs() < 1e-3), "{share}: {end:?}");
    }
}
