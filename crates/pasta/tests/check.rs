//! Every classic slip of an oracle is caught and named, and honest oracles are not accused.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::atomic::{AtomicU64, Ordering};

use pasta_opt::check::{self, Effort, Findings, Slip};
use pasta_opt::draws::Role;
use pasta_opt::prelude::*;
use pasta_opt::problems::{Huber, Quadratic, SineBowl, SoftAbsolute};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    Honest,
    IgnoresWeight,
    Overwrites,
    OwnGenerator,
    WrongDifference,
    OneSample,
    Nan,
    Factor(f64),
    MissingTerm,
    WrongSign,
    Kink,
    LikelihoodRatio,
    NoNoise,
    Bend,
}

/// E |x - c - xi|^2/2 in `dim` coordinates, with the slip.
struct Bowl {
    way: Way,
    dim: usize,
    noise: f64,
    calls: AtomicU64,
}

fn bowl(way: Way, dim: usize, noise: f64) -> Batched<Bowl> {
    Batched::new(Bowl { way, dim, noise, calls: AtomicU64::new(0) })
}

impl Sampled for Bowl {
    fn dim(&self) -> usize {
        self.dim
    }
    fn identity(&self) -> String {
        format!("{:?}", self.way)
    }
    fn add_gradient(
        &self,
        weight: f64,
        x: &[f64],
        xi: &mut Stream,
        out: &mut [f64],
    ) -> Result<(), OracleError> {
        if self.way == Way::OwnGenerator {
            let call = self.calls.fetch_add(1, Ordering::Relaxed);
            *xi = pasta_opt::draws::Address { seed: 3, role: Role::Setup, step: call, sample: 0 }.stream();
        }
        if self.way == Way::OneSample {
            *xi = pasta_opt::draws::Address { seed: 3, role: Role::Setup, step: 0, sample: 0 }.stream();
        }
        if self.way == Way::LikelihoodRatio {
            // f(x, u) = [x + N(u) > 0]: its derivative in the mean is the density, the loss jumps.
            let z = xi.normal();
            out[0] += weight * f64::from(u8::from(x[0] + z > 0.0)) * z;
            return Ok(());
        }
        let weight = if self.way == Way::IgnoresWeight { 1.0 } else { weight };
        for (i, (x, out)) in x.iter().zip(out).enumerate() {
            let noise = if self.way == Way::NoNoise { 0.0 } else { self.noise * xi.normal() };
            let error = x - 1.0 - noise;
            let g = match self.way {
                Way::Kink => error.signum(),
                Way::Nan if i == 1 && *x < 2.0 => f64::NAN,
                // The start is where the second derivative jumps.
                Way::Bend if i == 0 => error + 3.0 * (x - 2.5).max(0.0),
                _ => error,
            };
            if self.way == Way::Overwrites { *out = weight * g } else { *out += weight * g }
        }
        Ok(())
    }
    fn add_difference(
        &self,
        weight: f64,
        x: &[f64],
        y: &[f64],
        xi: &mut Stream,
        out: &mut [f64],
    ) -> Result<(), OracleError> {
        if self.way == Way::WrongDifference {
            // Two samples where one belongs.
            self.add_gradient(weight, x, xi, out)?;
            return self.add_gradient(-weight, y, xi, out);
        }
        let mut again = xi.clone();
        self.add_gradient(weight, x, xi, out)?;
        self.add_gradient(-weight, y, &mut again, out)
    }
    fn gives_losses(&self) -> bool {
        !matches!(self.way, Way::OwnGenerator | Way::OneSample)
    }
    fn is_pathwise(&self) -> bool {
        self.way != Way::LikelihoodRatio
    }
    fn loss(&self, x: &[f64], xi: &mut Stream) -> Result<f64, OracleError> {
        if self.way == Way::LikelihoodRatio {
            return Ok(f64::from(u8::from(x[0] + xi.normal() > 0.0)));
        }
        let mut sum = 0.0;
        for (i, x) in x.iter().enumerate() {
            let noise = if self.way == Way::NoNoise { 0.0 } else { self.noise * xi.normal() };
            let error = x - 1.0 - noise;
            sum += match self.way {
                Way::Kink => error.abs(),
                Way::Bend if i == 0 => error * error / 2.0 + 1.5 * (x - 2.5).max(0.0).powi(2),
                Way::WrongSign => -error * error / 2.0,
                Way::Factor(factor) => factor * error * error / 2.0,
                Way::MissingTerm => error * error / 2.0 - 0.05 * x * x,
                _ => error * error / 2.0,
            };
        }
        Ok(sum)
    }
}

fn findings(way: Way, noise: f64, seed: u64, effort: Effort) -> Findings {
    let mut gate = Gate::new(bowl(way, 3, noise), seed);
    let findings = check::oracle(&mut gate, &[2.5, -1.0, 0.0], effort).unwrap();
    assert_eq!(gate.ledger().of(Role::Check).samples, findings.samples);
    assert_eq!(gate.ledger().samples(), findings.samples);
    // What raises a suspicion is looked at again.
    assert!(findings.samples <= effort.samples() + 100, "{way:?}: {}", findings.samples);
    findings
}

fn slips(way: Way, noise: f64, seed: u64) -> Vec<Slip> {
    findings(way, noise, seed, Effort::Quick).slips
}

#[test]
fn every_slip_is_caught_and_named_in_a_few_dozen_samples() {
    assert!(Effort::Quick.samples() <= 48);
    for seed in 1..=20 {
        assert!(matches!(slips(Way::IgnoresWeight, 1.0, seed)[..], [Slip::IgnoresWeight]));
        assert_eq!(slips(Way::Overwrites, 1.0, seed), [Slip::Overwrites { samples: 5 }]);
        assert!(matches!(slips(Way::OwnGenerator, 1.0, seed)[..], [Slip::OwnGenerator { samples: 5, .. }]));
        assert!(matches!(slips(Way::WrongDifference, 1.0, seed)[..], [Slip::NotTheDifference { .. }]));
        assert_eq!(slips(Way::Nan, 1.0, seed), [Slip::NotFinite { away: 0.0 }]);
        // Far more noise than gradient: the means could not tell, the samples one by one do.
        for (way, noise) in [(Way::Factor(2.0), 10.0), (Way::Factor(0.9), 10.0), (Way::WrongSign, 1.0)] {
            assert!(
                matches!(slips(way, noise, seed)[..], [Slip::Loss { samples: 16, .. }]),
                "{way:?} {seed}"
            );
        }
        // At x_2 = 0 the missing term has no slope.
        let missing = slips(Way::MissingTerm, 3.0, seed);
        let coordinates: Vec<usize> = missing
            .iter()
            .map(|slip| match slip {
                Slip::Coordinate { coordinate, .. } => *coordinate,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(coordinates, [0, 1], "{seed}");
    }
    let loss = |way| slips(way, 1.0, 1)[0].to_string();
    assert!(
        loss(Way::Factor(2.0)).ends_with("the gradient of each sample is 0.5000 times what its loss says")
    );
    assert!(
        loss(Way::MissingTerm).contains("does not belong to the loss, and others do"),
        "{}",
        loss(Way::MissingTerm)
    );
    let sentences = [
        (Way::Overwrites, "overwrites the sum instead of adding to it"),
        (Way::IgnoresWeight, "ignores its weight"),
        (Way::OwnGenerator, "a generator of its own"),
        (Way::WrongDifference, "is not g(x) - g(y)"),
        (Way::Nan, "not finite"),
        (Way::WrongSign, "the loss does not belong to the gradient"),
    ];
    for (way, sentence) in sentences {
        assert!(slips(way, 1.0, 1)[0].to_string().contains(sentence), "{}", slips(way, 1.0, 1)[0]);
    }
}

#[test]
fn honest_oracles_are_not_accused() {
    // At 10^-6 a test, 1500 of them pass by luck alone but for a chance of about 0.001.
    for seed in 1..=100 {
        for way in [Way::Honest, Way::Kink, Way::Bend, Way::LikelihoodRatio, Way::NoNoise] {
            for noise in [0.01, 1.0, 100.0] {
                assert_eq!(slips(way, noise, seed), [], "{way:?} {noise} {seed}");
            }
        }
    }
    for way in [Way::Honest, Way::Kink, Way::LikelihoodRatio] {
        let found = findings(way, 1.0, 7, Effort::Thorough);
        assert_eq!((found.slips.len(), found.slopes.len(), found.has_noise), (0, 4, true), "{found:?}");
    }
    assert!(!findings(Way::NoNoise, 1.0, 1, Effort::Quick).has_noise);
}

#[test]
fn a_seed_that_is_ignored_is_noticed_where_samples_differ() {
    use pasta_opt::oracle::{About, Answer, Charge, Draw, Request};
    struct Numbered(About);
    impl Oracle for Numbered {
        fn about(&self) -> &About {
            &self.0
        }
        fn answer(&self, request: &Request<'_>, answer: &mut Answer<'_>) -> Result<Charge, OracleError> {
            let Draw::Batch(batch) = &request.draw else { return Err(OracleError::new("no")) };
            answer.gradients.fill(0.0);
            batch
                .samples
                .clone()
                .for_each(|i| answer.gradients.iter_mut().for_each(|g| *g += (i as f64).sin()));
            if request.form == pasta_opt::oracle::Form::Differences {
                answer.gradients.fill(0.0);
            }
            Ok(request.usual_price(&self.0))
        }
    }
    let mut gate = Gate::new(Numbered(About::stream(2, "numbered")), 1);
    let found = check::oracle(&mut gate, &[0.0, 0.0], Effort::Quick).unwrap();
    assert_eq!(found.slips, [Slip::IgnoresSeed { samples: 5, addresses: 16 }]);
    // An oracle whose samples are all the same has no noise, as far as anyone can tell.
    assert!(!findings(Way::OneSample, 1.0, 1, Effort::Quick).has_noise);
}

#[test]
fn a_sum_that_misses_a_sample_is_noticed() {
    use pasta_opt::oracle::{About, Answer, Charge, Draw, Form, Request};
    struct Lossy(Batched<Bowl>);
    impl Oracle for Lossy {
        fn about(&self) -> &About {
            self.0.about()
        }
        fn answer(&self, request: &Request<'_>, answer: &mut Answer<'_>) -> Result<Charge, OracleError> {
            let mut request = request.clone();
            if let (Draw::Batch(batch), Form::Sums, 1) =
                (&mut request.draw, request.form, request.points.len())
                && batch.count() > 2
            {
                batch.samples.end -= 1;
            }
            self.0.answer(&request, answer)
        }
    }
    let mut gate = Gate::new(Lossy(bowl(Way::Honest, 2, 1.0)), 1);
    let found = check::oracle(&mut gate, &[5.0, 5.0], Effort::Quick).unwrap();
    assert!(matches!(found.slips[..], [Slip::NotAdditive { samples: 5, .. }]), "{found:?}");
}

/// Ten steps of SGD.
fn ten_steps(gate: &mut Gate, start: &[f64]) -> Result<Finished, Halt> {
    let rule = Rule::Sgd { eta: Sequence::Constant(0.1) };
    Baseline::start(gate, Settings { rule, steps: 10, batch: 1 }, start).unwrap().finish(gate)
}

#[test]
fn a_run_checks_a_stranger_s_oracle_before_its_first_step_and_counts_that() {
    for way in [Way::IgnoresWeight, Way::Overwrites, Way::OwnGenerator, Way::Nan, Way::WrongSign] {
        let mut gate = Gate::new(bowl(way, 3, 1.0), 1);
        let refused = ten_steps(&mut gate, &[1.0, 2.0, 3.0]).unwrap_err().to_string();
        assert!(refused.starts_with("the oracle failed: it failed its check: "), "{way:?}: {refused}");
        assert_eq!(gate.ledger().steps().samples, 0, "{way:?}");
        // The switch: believed, it runs, to nowhere.
        let mut gate = Gate::new(bowl(way, 3, 1.0), 1).without_check();
        let _ = ten_steps(&mut gate, &[1.0, 2.0, 3.0]);
        // Where an answer is not finite, the gate asks for others, to tell whose fault it is.
        let most = if matches!(way, Way::Nan) { 64 } else { 0 };
        assert!(gate.ledger().of(Role::Check).samples <= most, "{way:?}");
    }
    let mut gate = Gate::new(bowl(Way::Honest, 3, 1.0), 1);
    let checked = ten_steps(&mut gate, &[1.0, 2.0, 3.0]).unwrap();
    let samples = gate.ledger().of(Role::Check).samples;
    assert!(samples > 0 && samples <= Effort::Quick.samples(), "{samples}");
    // The check changes no bit of the run, and is made once.
    let mut believing = Gate::new(bowl(Way::Honest, 3, 1.0), 1).without_check();
    assert_eq!(ten_steps(&mut believing, &[1.0, 2.0, 3.0]).unwrap().point, checked.point);
    assert!(check::before_run(&mut gate, &[1.0, 2.0, 3.0]).unwrap().is_none());
    // A budget is for the run: the check takes a fifth of it at most, and nothing of a small one.
    let mut poor = Gate::new(bowl(Way::Honest, 3, 1.0), 1).with_budget(99);
    ten_steps(&mut poor, &[1.0, 2.0, 3.0]).unwrap();
    assert_eq!(poor.ledger().samples(), 10);
    for budget in [100, 150, 230, 400, 1_000] {
        let mut gate = Gate::new(bowl(Way::Honest, 3, 1.0), 1).with_budget(budget);
        ten_steps(&mut gate, &[1.0, 2.0, 3.0]).unwrap();
        let samples = gate.ledger().of(Role::Check).samples;
        assert!(
            samples >= budget / 10 && samples <= budget / 5 || samples == Effort::Quick.samples(),
            "{budget}: {samples}"
        );
        for way in [Way::IgnoresWeight, Way::Overwrites, Way::OwnGenerator, Way::Nan, Way::WrongSign] {
            let mut gate = Gate::new(bowl(way, 3, 1.0), 1).with_budget(budget);
            assert!(ten_steps(&mut gate, &[1.0, 2.0, 3.0]).is_err(), "{way:?} {budget}");
            assert!(gate.ledger().samples() <= budget / 5, "{way:?} {budget}");
        }
    }
}

#[test]
fn the_oracles_of_this_library_need_no_check_and_pass_it() {
    let [heavy, light] = [Tail::StudentT { dof: 3.0 }, Tail::Gaussian];
    let objectives: Vec<Box<dyn Objective>> = vec![
        Box::new(SineBowl { dimension: 3 }),
        Box::new(Quadratic { spectrum: vec![2.0, 0.5, 0.1] }),
        Box::new(Huber { dimension: 3, curvature: 1.0, lipschitz: 1.0 }),
        Box::new(SoftAbsolute { dimension: 3 }),
    ];
    for (objective, tail) in objectives.into_iter().zip([heavy, light, heavy, light]) {
        let noise = Noise { growth: 1.0, floor: 1.0, tail };
        let start = vec![1.0, -0.5, 2.0];
        let name = objective.identity();
        let mut gate = Gate::new(Noisy::new(objective, noise, start.clone()).unwrap(), 1);
        assert!(!gate.needs_check());
        let before = gate.ledger().samples();
        assert!(ten_steps(&mut gate, &start).unwrap().ledger.of(Role::Check).samples == before);
        let findings = check::oracle(&mut gate, &start, Effort::Thorough).unwrap();
        assert_eq!(findings.slips, [], "{name}");
    }
}

/// Sums that are drawn whole, from one stream for all their samples, as a function in Python draws them that takes n.
struct Whole {
    about: pasta_opt::oracle::About,
    way: Adds,
    noise: fn(&mut Stream) -> f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Adds {
    All,
    Mean,
    One,
    MeanOfLosses,
    Opposites,
}

impl Oracle for Whole {
    fn about(&self) -> &pasta_opt::oracle::About {
        &self.about
    }
    fn answer(
        &self,
        request: &pasta_opt::oracle::Request<'_>,
        answer: &mut pasta_opt::oracle::Answer<'_>,
    ) -> Result<pasta_opt::oracle::Charge, OracleError> {
        let pasta_opt::oracle::Draw::Batch(batch) = &request.draw else { unreachable!("a stream") };
        let dim = self.about.dim;
        let sum_at = |x: &[f64]| {
            let mut xi = batch.whole();
            let (mut sum, mut loss) = (vec![0.0; dim], 0.0);
            let taken = if self.way == Adds::One { 1 } else { batch.count() };
            let mut last = vec![0.0; dim];
            for i in 0..taken {
                for (j, x) in x.iter().enumerate() {
                    let is_opposite = self.way == Adds::Opposites && i % 2 == 1;
                    last[j] = if is_opposite { -last[j] } else { (self.noise)(&mut xi) };
                    let error = x - last[j];
                    sum[j] += error;
                    loss += error * error / 2.0;
                }
            }
            let n = batch.count() as f64;
            if self.way == Adds::Mean {
                sum.iter_mut().for_each(|sum| *sum /= n);
            }
            if matches!(self.way, Adds::Mean | Adds::MeanOfLosses) {
                loss /= n;
            }
            (sum, loss)
        };
        let base = sum_at(request.base()).0;
        for (i, row) in answer.gradients.chunks_exact_mut(dim).enumerate() {
            let (sum, _) = sum_at(request.points[i]);
            let is_difference = request.form == pasta_opt::oracle::Form::Differences;
            row.iter_mut().enumerate().for_each(|(j, out)| {
                *out = sum[j] - if is_difference { base[j] } else { 0.0 };
            });
        }
        if request.losses {
            answer.losses.iter_mut().zip(request.points).for_each(|(loss, x)| *loss = sum_at(x).1);
        }
        Ok(request.usual_price(&self.about))
    }
}

#[test]
fn a_mean_where_the_sum_belongs_is_caught_and_sums_are_not_accused() {
    let normal: fn(&mut Stream) -> f64 = Stream::normal;
    // No variance: the tail is that of Cauchy's law.
    let heavy: fn(&mut Stream) -> f64 = |xi| xi.normal() / xi.normal();
    let found = |way, noise, start: &[f64], seed| {
        let about = pasta_opt::oracle::About {
            losses: true,
            additive: false,
            ..pasta_opt::oracle::About::stream(start.len(), "whole")
        };
        let mut gate = Gate::new(Whole { about, way, noise }, seed);
        check::oracle(&mut gate, start, Effort::Quick).unwrap()
    };
    for start in [&[0.0][..], &[3.0], &[0.0, 0.0, 0.0], &[2.0, -1.0, 10.0]] {
        let mut caught = [0; 3];
        for seed in 1..=100 {
            // The medians of four mean squares of 8 normal numbers and of 8 sums of 16 of them are less than a factor of two apart with probability
            // 10^-5 or so, and their changes, which have no noise, never.
            for noise in [normal, heavy] {
                assert_eq!(found(Adds::All, noise, start, seed).slips, [], "{start:?} {seed}");
            }
            // Where the gradient vanishes, opposite draws add up to nothing. They are honest all the same.
            assert_eq!(found(Adds::Opposites, normal, start, seed).slips, [], "{start:?} {seed}");
            let ways = [(Adds::Mean, false), (Adds::One, false), (Adds::MeanOfLosses, true)];
            for ((way, losses), caught) in ways.into_iter().zip(&mut caught) {
                let slips = found(way, normal, start, seed).slips;
                let is_it =
                    |slip: &Slip| matches!(slip, Slip::MeanForSum { of_losses, .. } if *of_losses == losses);
                *caught += usize::from(slips.iter().any(is_it));
            }
        }
        assert_eq!(caught, [100; 3], "{start:?}");
    }
    let said = found(Adds::Mean, normal, &[2.0, -1.0, 10.0], 1).slips[0].to_string();
    assert!(
        said.starts_with("the sum of the gradients of 16 samples is no larger than that of one sample"),
        "{said}"
    );
    assert!(found(Adds::All, normal, &[2.0, -1.0, 10.0], 1).samples <= Effort::Quick.samples() + 20);
    // A few hundred samples in all are enough to see it.
    for seed in 1..=100 {
        let about =
            pasta_opt::oracle::About { additive: false, ..pasta_opt::oracle::About::stream(3, "whole") };
        let mut gate = Gate::new(Whole { about, way: Adds::Mean, noise: normal }, seed).with_budget(450);
        assert!(check::before_run(&mut gate, &[2.0, -1.0, 10.0]).is_err(), "{seed}");
        assert!(gate.ledger().samples() <= 90);
    }
}
