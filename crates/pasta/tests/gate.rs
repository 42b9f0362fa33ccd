//! The gate: what it counts, what it refuses, how it stops, and that nothing gets past it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use pasta_opt::calibrate::{Calibration, CalibrationError};
use pasta_opt::certificate::CertificateError;
use pasta_opt::checkpoint::CheckpointError;
use pasta_opt::draws::Role;
use pasta_opt::forecast::{Pilot, PilotError, PilotRun};
use pasta_opt::oracle::{About, Answer, BatchMode, Charge, Draw, ErrorKind, Request};
use pasta_opt::prelude::*;
use pasta_opt::problems::SineBowl;
use pasta_opt::stop::Mixed;
use pasta_opt::walk::Certified;

use common::{Around, Made};

mod common;

const START: [f64; 1] = [1.2];
const GROWTH: Basis = Basis::Growth { growth: 1.0, floor: 1.0, distance: 0.0 };
const STUDENT: Tail = Tail::StudentT { dof: 3.0 };

fn bowl(tail: Tail) -> Noisy {
    let noise = Noise { growth: 1.0, floor: 1.0, tail };
    Noisy::new(Box::new(SineBowl { dimension: 1 }), noise, START.to_vec()).unwrap()
}

fn rule(target: f64) -> StopRule {
    StopRule { target, delta: 0.05, basis: GROWTH, share: 0.5 }
}

/// Theorem 3 on the bowl.
fn smooth(target: f64) -> Schedule {
    let recipe = Smooth { smoothness: 3.0, gap: 1.6, growth: 1.0, floor: 1.0, variance: None, target };
    recipe.plan().unwrap().schedule.endless()
}

/// Steps of ten samples that go on for ever, so short that the first looks see a gradient above the target.
fn estimated_by(estimator: Estimator) -> Schedule {
    Schedule { estimator, ..Schedule::plain(Sequence::Constant(0.01), 1_000_000, 10) }
}

fn schedules() -> [Schedule; 3] {
    let half = Sequence::Constant(0.5);
    [
        smooth(0.3),
        estimated_by(Estimator::Page { refresh: half, small: 3 }),
        estimated_by(Estimator::Storm { momentum: half }),
    ]
}

/// A certified run to its end.
fn end_of(gate: &mut Gate, schedule: Schedule, target: f64) -> Finished {
    let walk = Pasta::start(gate, schedule, &START).unwrap();
    walk.certified(gate, rule(target)).unwrap().finish(gate).unwrap()
}

fn around<F>(tail: Tail, answer: F) -> Around<Noisy, F>
where
    F: Fn(&Noisy, &Request<'_>, &mut Answer<'_>) -> Result<Charge, OracleError> + Send + Sync,
{
    Around { inner: bowl(tail), answer }
}

/// What was asked for, by address.
#[derive(Default)]
struct Seen {
    addresses: HashSet<(u64, Role, u64, u64)>,
    /// Samples and evaluations by role; all that another seed draws is a forecast's.
    by_role: BTreeMap<Role, (u128, u128)>,
}

fn watched(tail: Tail, seed: u64) -> (Arc<Mutex<Seen>>, impl Oracle) {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let book = Arc::clone(&seen);
    let oracle = around(tail, move |inner, request, answer| {
        if let Draw::Batch(batch) = &request.draw {
            let mut book = book.lock().unwrap();
            let n = u128::from(batch.samples.end - batch.samples.start);
            let new = book.addresses.insert((batch.seed, batch.role, batch.step, batch.samples.start));
            let role = if batch.seed == seed { batch.role } else { Role::Forecast };
            let entry = book.by_role.entry(role).or_default();
            entry.0 += if new { n } else { 0 };
            entry.1 += n * request.points.len() as u128;
        }
        inner.answer(request, answer)
    });
    (seen, oracle)
}

#[test]
fn a_hard_budget_is_never_overdrawn_by_all_that_draws_together_and_every_sample_is_counted_once() {
    let tails = [Tail::Gaussian, Tail::TwoPoint { probability: 0.1 }, STUDENT];
    for tail in tails {
        for budget in [0, 1, 63, 511, 5_000, 5_001, 20_000, 77_777, 200_000] {
            let (seen, oracle) = watched(tail, 3);
            let mut gate = Gate::new(oracle, 3).with_budget(budget);
            match Calibration::measure(&mut gate, &START, 6_400, &mut |_| {}) {
                Ok(_) | Err(CalibrationError::Halt(Halt::OverBudget { .. })) => {}
                Err(other) => panic!("{other}"),
            }
            let run = |gate: &Gate, target| Pasta::start(gate, smooth(target), &START);
            match Pilot::run(&mut gate, &START, rule(0.05), 30_000, run) {
                Ok(_) | Err(PilotError::Halt(Halt::OverBudget { .. })) => {}
                Err(other) => panic!("{other}"),
            }
            let end = end_of(&mut gate, smooth(0.02), 0.02);
            assert!(matches!(end.stop, Stop::OutOfBudget | Stop::Certified), "{end:?}");
            let claim =
                Claim { target: 0.1, delta: 0.05, basis: Basis::Kurtosis(9.0), budget: None, guess: None };
            let certifier = Certifier::start(&mut gate, &[0.01], claim, 77).unwrap();
            certifier.finish(&mut gate).unwrap();

            let seen = seen.lock().unwrap();
            let ledger: BTreeMap<_, _> =
                gate.ledger().by_role().map(|(role, e)| (role, (e.samples, e.evaluations))).collect();
            assert_eq!(ledger, seen.by_role, "{tail:?} {budget}");
            let total: u128 = seen.by_role.values().map(|(samples, _)| samples).sum();
            let evaluations: u128 = seen.by_role.values().map(|(_, evaluations)| evaluations).sum();
            assert!(total <= budget, "{tail:?}: {total} of {budget}");
            assert_eq!((gate.ledger().samples(), gate.ledger().evaluations()), (total, evaluations));
            assert_eq!(gate.left(), budget - total);
        }
    }
}

#[test]
fn a_question_that_failed_for_once_is_asked_again_and_the_run_is_the_run_of_an_oracle_that_never_fails() {
    for schedule in schedules() {
        let whole = end_of(&mut Gate::new(bowl(Tail::Gaussian), 5), schedule.clone(), 0.3);
        let failed = Mutex::new(HashSet::new());
        let oracle = around(Tail::Gaussian, move |inner, request, answer| {
            if let Draw::Batch(Batch { role, step, .. }) = request.draw
                && failed.lock().unwrap().insert((role, step))
            {
                // What a failed attempt leaves behind does not count.
                answer.gradients.fill(f64::NAN);
                return Err(OracleError::of_kind(ErrorKind::Retry, "the line is busy"));
            }
            inner.answer(request, answer)
        });
        assert_eq!(end_of(&mut Gate::new(oracle, 5), schedule, 0.3), whole);
    }
}

#[test]
fn failures_surface_with_their_cause_and_are_not_counted() {
    for (kind, asks, message) in [
        (ErrorKind::Fatal, 1, "the oracle failed: no licence"),
        (ErrorKind::TimedOut, 1, "the oracle did not answer in time: no licence"),
        (ErrorKind::Retry, 4, "the oracle failed: no licence"),
    ] {
        let asked = Arc::new(AtomicU64::new(0));
        let count = asked.clone();
        let oracle = around(Tail::Gaussian, move |_, _, _| {
            count.fetch_add(1, Ordering::Relaxed);
            Err(OracleError::of_kind(kind, std::io::Error::other("no licence")))
        });
        let mut gate = Gate::new(oracle, 1);
        let walk = Pasta::start(&gate, smooth(0.3), &START).unwrap();
        let halt = walk.finish(&mut gate).unwrap_err();
        assert_eq!((halt.to_string().as_str(), halt.stop()), (message, None));
        let Halt::Oracle(error) = halt else { panic!("{halt:?}") };
        assert_eq!(error.kind(), kind);
        let source = std::error::Error::source(&error).unwrap();
        assert!(source.downcast_ref::<std::io::Error>().is_some());
        assert_eq!((asked.load(Ordering::Relaxed), gate.ledger().samples()), (asks, 0));
    }
}

/// Sets a flag when so many samples were drawn.
struct Fuse {
    stop: Arc<AtomicBool>,
    drawn: Arc<AtomicU64>,
    length: u64,
}

impl Sampled for Fuse {
    fn dim(&self) -> usize {
        1
    }
    fn identity(&self) -> String {
        "fuse".into()
    }
    fn add_gradient(
        &self,
        weight: f64,
        x: &[f64],
        xi: &mut Stream,
        out: &mut [f64],
    ) -> Result<(), OracleError> {
        if self.drawn.fetch_add(1, Ordering::Relaxed) == self.length {
            self.stop.store(true, Ordering::Relaxed);
        }
        out[0] += weight * (x[0] + xi.normal());
        Ok(())
    }
}

#[test]
fn a_batch_of_a_billion_samples_is_left_in_the_middle_when_the_gate_is_told_to_stop() {
    const BILLION: u64 = 1_000_000_000;
    let schedule = || Schedule::plain(Sequence::Constant(0.1), 10, BILLION);
    let (stop, drawn) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let fuse = Fuse { stop: stop.clone(), drawn: drawn.clone(), length: 1000 };
    let mut gate = Gate::new(Batched::new(fuse), 1).with_stop(stop.clone()).without_check();
    let end = Pasta::start(&gate, schedule(), &START).unwrap().finish(&mut gate).unwrap();
    assert_eq!((end.stop, end.steps, end.ledger.samples()), (Stop::Interrupted, 0, 0));
    // Each thread may finish the block of eight that it had begun.
    let most = 1001 + 8 * rayon::current_num_threads() as u64;
    assert!((1001..=most).contains(&drawn.load(Ordering::Relaxed)), "{drawn:?}");
    assert!(gate.is_stopped());

    // Noise that is drawn one by one stops as well; the flag is set once the question has reached the oracle.
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    let oracle = around(STUDENT, move |inner, request, answer| {
        flag.store(true, Ordering::Relaxed);
        inner.answer(request, answer)
    });
    let mut gate = Gate::new(oracle, 1).with_stop(stop);
    let mut walk = Pasta::start(&gate, schedule(), &START).unwrap();
    assert!(matches!(walk.advance(&mut gate), Err(Halt::Interrupted)));
    assert_eq!((walk.view().step, walk.view().x, gate.ledger().samples()), (0, &START[..], 0));
}

#[test]
fn an_oracle_that_says_interrupted_interrupts_the_run() {
    let oracle = around(Tail::Gaussian, |_, _, _| Err(OracleError::interrupted()));
    let mut gate = Gate::new(oracle, 1);
    let end = Pasta::start(&gate, smooth(0.3), &START).unwrap().finish(&mut gate).unwrap();
    assert_eq!(end.stop, Stop::Interrupted);
}

/// The walk and its gate, from the bytes of a file.
fn reloaded(
    oracle: Arc<dyn Oracle>,
    gate: &Gate,
    walk: &Certified<Pasta>,
    target: f64,
) -> (Gate, Certified<Pasta>) {
    let mut saver = Saver::default();
    gate.save(&mut saver);
    walk.save(&mut saver);
    let mut checkpoint = Checkpoint::from_bytes(&saver.to_bytes()).unwrap();
    let gate = Gate::resume(oracle, &mut checkpoint).unwrap();
    let walk = Pasta::resume(&gate, &mut checkpoint).unwrap();
    let walk = walk.certified_again(&gate, rule(target), &mut checkpoint).unwrap();
    (gate, walk)
}

#[test]
fn a_run_interrupted_at_any_question_and_resumed_is_the_run_that_was_not() {
    const TARGET: f64 = 0.3;
    let mut roles = BTreeSet::new();
    for schedule in schedules() {
        let asks = Arc::new(AtomicU64::new(0));
        let count = asks.clone();
        let healthy: Arc<dyn Oracle> = Arc::new(bowl(STUDENT));
        let oracle = around(STUDENT, move |inner, request, answer| {
            count.fetch_add(1, Ordering::Relaxed);
            inner.answer(request, answer)
        });
        let whole = end_of(&mut Gate::new(oracle, 2), schedule.clone(), TARGET);
        assert_eq!(whole.stop, Stop::Certified);
        let asks = asks.load(Ordering::Relaxed);
        // Every question of a short run would be thousands: all of the first, and some hundred of the others.
        for at in (0..40).chain((40..asks).step_by(asks as usize / 100 + 1)) {
            let stop = Arc::new(AtomicBool::new(false));
            let (flag, asked, role) = (stop.clone(), AtomicU64::new(0), Arc::new(Mutex::new(None)));
            let here = role.clone();
            // Whatever comes once the flag is set is drawn one by one, and so left in its middle.
            let oracle = around(STUDENT, move |inner, request, answer| {
                if asked.fetch_add(1, Ordering::Relaxed) == at {
                    *here.lock().unwrap() = Some(request.draw.role());
                    flag.store(true, Ordering::Relaxed);
                }
                inner.answer(request, answer)
            });
            let mut gate = Gate::new(oracle, 2).with_stop(stop);
            let walk = Pasta::start(&gate, schedule.clone(), &START).unwrap();
            let mut walk = walk.certified(&gate, rule(TARGET)).unwrap();
            let halt = loop {
                match walk.advance(&mut gate) {
                    Ok(Advance::Stop(stop)) => panic!("{stop:?} before question {at}"),
                    Ok(_) => {}
                    Err(halt) => break halt,
                }
            };
            assert!(matches!(halt, Halt::Interrupted), "{halt}");
            let (mut gate, walk) = reloaded(healthy.clone(), &gate, &walk, TARGET);
            assert_eq!(walk.finish(&mut gate).unwrap(), whole, "question {at}");
            roles.insert(role.lock().unwrap().unwrap());
        }
    }
    let expected = BTreeSet::from([Role::Large, Role::Small, Role::Look, Role::Certificate]);
    assert_eq!(roles, expected);
}

#[test]
fn a_run_whose_oracle_broke_down_at_any_question_and_that_is_resumed_is_the_run_that_was_not() {
    const TARGET: f64 = 0.3;
    let schedule = schedules()[0].clone();
    let healthy: Arc<dyn Oracle> = Arc::new(bowl(STUDENT));
    let whole = end_of(&mut Gate::over(healthy.clone(), 2), schedule.clone(), TARGET);
    let mut broken = 0;
    for at in (0..1000u64).step_by(11) {
        let asked = AtomicU64::new(0);
        let oracle = around(STUDENT, move |inner, request, answer| {
            if asked.fetch_add(1, Ordering::Relaxed) == at {
                return Err(OracleError::new("out of order"));
            }
            inner.answer(request, answer)
        });
        let mut gate = Gate::new(oracle, 2);
        let walk = Pasta::start(&gate, schedule.clone(), &START).unwrap();
        let mut walk = walk.certified(&gate, rule(TARGET)).unwrap();
        let halt = loop {
            match walk.advance(&mut gate) {
                Ok(Advance::Stop(_)) => break None,
                Ok(_) => {}
                Err(halt) => break Some(halt),
            }
        };
        let Some(halt) = halt else { continue };
        assert!(matches!(halt, Halt::Oracle(_)), "{halt}");
        let (mut gate, walk) = reloaded(healthy.clone(), &gate, &walk, TARGET);
        assert_eq!(walk.finish(&mut gate).unwrap(), whole, "question {at}");
        broken += 1;
    }
    assert!(broken > 20, "{broken}");
}

#[test]
fn what_a_failed_answer_said_of_its_support_is_forgotten_when_the_question_is_asked_again() {
    let noise = Noise { growth: 0.0, floor: 1.0, tail: Tail::Gaussian };
    let bowl = || Noisy::new(Box::new(SineBowl { dimension: 3 }), noise, vec![1.0; 3]).unwrap();
    let asked = AtomicU64::new(0);
    let answer = move |inner: &Noisy, request: &Request<'_>, answer: &mut Answer<'_>| {
        if asked.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
            answer.support = 1;
            return Err(OracleError::of_kind(ErrorKind::Retry, "once more"));
        }
        inner.answer(request, answer)
    };
    let run = |oracle: Arc<dyn Oracle>| {
        let mut gate = Gate::over(oracle, 1);
        let schedule = Schedule::plain(Sequence::Constant(0.1), 20, 2);
        Pasta::start(&gate, schedule, &[1.0; 3]).unwrap().finish(&mut gate).unwrap()
    };
    assert_eq!(run(Arc::new(Around { inner: bowl(), answer })), run(Arc::new(bowl())));
}

#[test]
fn a_run_that_was_left_in_its_final_attempt_goes_on_with_a_larger_budget() {
    const TARGET: f64 = 0.02;
    let oracle: Arc<dyn Oracle> = Arc::new(bowl(Tail::Gaussian));
    let schedule = Schedule::plain(Sequence::Constant(0.01), 1_000_000, 10);
    let mut gate = Gate::over(oracle.clone(), 1).with_budget(30_000);
    let walk = Pasta::start(&gate, schedule, &START).unwrap();
    let mut walk = walk.certified(&gate, rule(TARGET)).unwrap();
    // Up to where the budget has ended the steps and the last attempt is under way.
    let mut steps = 0;
    while gate.ledger().of(Role::Certificate).samples == 0 || walk.view().step > steps {
        steps = walk.view().step;
        assert!(!matches!(walk.advance(&mut gate).unwrap(), Advance::Stop(_)), "it ended too early");
    }
    let mut saver = Saver::default();
    gate.save(&mut saver);
    walk.save(&mut saver);
    let mut checkpoint = Checkpoint::from_bytes(&saver.to_bytes()).unwrap();
    let mut gate = Gate::resume(oracle, &mut checkpoint).unwrap().with_budget(300_000);
    let walk = Pasta::resume(&gate, &mut checkpoint).unwrap();
    let walk = walk.certified_again(&gate, rule(TARGET), &mut checkpoint).unwrap();
    let end = walk.finish(&mut gate).unwrap();
    assert!(end.stop == Stop::Certified || end.ledger.samples() > 200_000, "{end:?}");
    assert!(end.steps > steps);
}

#[test]
fn an_oracle_that_charges_more_than_its_price_is_refused() {
    let oracle = around(Tail::Gaussian, |inner, request, answer| {
        let charge = inner.answer(request, answer)?;
        Ok(Charge { samples: charge.samples + 1, ..charge })
    });
    let oracle = Arc::new(oracle);
    let mut gate = Gate::over(oracle.clone(), 1).with_budget(1_000_000);
    let walk = Pasta::start(&gate, smooth(0.3), &START).unwrap();
    let halt = walk.finish(&mut gate).unwrap_err();
    assert_eq!(halt.to_string(), "the oracle failed: it charged more than its price");
    // Many threads that ask at once are watched too, with a budget or without.
    let mut gate = Gate::over(oracle, 1);
    let claim = Claim { target: 0.1, delta: 0.05, basis: GROWTH, budget: None, guess: None };
    let halt = Certifier::start(&mut gate, &[0.01], claim, 0).unwrap().finish(&mut gate).unwrap_err();
    assert_eq!(halt.to_string(), "the oracle failed: it charged more than its price");
}

#[test]
fn questions_that_an_oracle_cannot_be_asked_are_refused_with_a_sentence() {
    let stream = |shared| Made {
        about: About { shared, trusted: true, ..About::stream(2, "stream") },
        answer: |_: &Request<'_>, answer: &mut Answer<'_>| {
            answer.gradients.fill(1.0);
            Ok(())
        },
    };
    let refused = |gate: &mut Gate, request: Request<'_>, room: usize| {
        let error = gate.ask(request, &mut Answer::new(&mut vec![0.0; room])).unwrap_err();
        assert_eq!(gate.ledger().samples(), 0);
        error.to_string()
    };
    let x: &[f64] = &[0.0, 1.0];
    let mut known = Gate::new(bowl(Tail::Gaussian), 1);
    for mut gate in [Gate::new(stream(true), 1), Gate::new(stream(false), 1).with_budget(100)] {
        let batch = |n| Batch { seed: 1, role: Role::Large, step: 0, samples: 0..n };
        let mut ask = |request: Request<'_>, room| refused(&mut gate, request, room);
        assert_eq!(
            ask(Request::sums(batch(1), &[&[0.0]]), 2),
            "the oracle failed: it has 2 coordinates, but was asked at 1"
        );
        assert_eq!(
            ask(Request::sums(batch(1), &[x]), 3),
            "the oracle failed: the answer has room for 3 numbers, but needs 2"
        );
        assert_eq!(ask(Request::sums(batch(0), &[x]), 2), "the oracle failed: it was asked for no samples");
        assert_eq!(ask(Request::sums(batch(1), &[]), 0), "the oracle failed: it was asked at no point");
        assert_eq!(
            ask(Request { losses: true, ..Request::sums(batch(1), &[x]) }, 2),
            "the oracle failed: it gives no losses"
        );
        assert_eq!(
            ask(Request::everything(Role::Large, &[x]), 2),
            "the oracle failed: it does not know its gradient, only samples of it"
        );
        if !gate.about().shared {
            let twice = [x, x];
            for request in [Request::sums(batch(1), &twice), Request::differences(batch(1), &twice)] {
                let room = 2 * request.rows();
                assert_eq!(
                    refused(&mut gate, request, room),
                    "the oracle failed: it cannot evaluate one sample at several points"
                );
            }
        }
    }
    // An oracle that knows its gradient is asked for samples or for everything, and not for neither.
    let nothing = known.batch(Role::Large, 0, 0);
    let refusal = refused(&mut known, Request::sums(nothing, &[&START]), 1);
    assert_eq!(refusal, "the oracle failed: it was asked for no samples");
}

#[test]
fn an_answer_that_is_no_number_ends_a_walk_with_its_step_and_a_certificate_with_a_halt() {
    // Other answers at the start are finite, so that it is the oracle's fault.
    let is_blamed = |stop: Stop| matches!(stop, Stop::NotFinite(Mixed { step: 7, .. }));
    let lying = |at: u64, role: Role| {
        // Sample by sample, so that single ones can be asked for.
        let inner = bowl(Tail::Gaussian).with_mode(BatchMode::OneByOne);
        let answer = move |inner: &Noisy, request: &Request<'_>, answer: &mut Answer<'_>| {
            let charge = inner.answer(request, answer)?;
            if matches!(&request.draw, Draw::Batch(batch) if batch.role == role && batch.step % (1 << 40) == at)
            {
                answer.gradients[0] = f64::NAN;
            }
            Ok(charge)
        };
        Around { inner, answer }
    };
    let mut gate = Gate::new(lying(7, Role::Large), 1);
    let pasta = Pasta::start(&gate, smooth(0.3), &START).unwrap().finish(&mut gate).unwrap();
    assert!(is_blamed(pasta.stop) && pasta.steps == 7, "{pasta:?}");
    let eta = Sequence::Constant(0.01);
    for rule in [
        Rule::Sgd { eta },
        Rule::ClippedSgd { eta, threshold: 1.0 },
        Rule::Adam { eta, first: 0.9, second: 0.999, epsilon: 1e-8 },
        Rule::AdaGradNorm { eta: 0.1, offset: 0.1 },
    ] {
        let mut gate = Gate::new(lying(7, Role::Large), 1);
        let settings = Settings { rule, steps: 20, batch: 1 };
        let end = Baseline::start(&gate, settings, &START).unwrap().finish(&mut gate).unwrap();
        assert!(is_blamed(end.stop) && end.steps == 7, "{rule:?}: {end:?}");
    }
    let claim = |basis| Claim { target: 0.1, delta: 0.05, basis, budget: None, guess: None };
    let mut gate = Gate::new(lying(40, Role::Certificate), 1);
    let certifier = Certifier::start(&mut gate, &[0.01], claim(GROWTH), 0).unwrap();
    let halt = certifier.finish(&mut gate).unwrap_err();
    assert!(matches!(halt, Halt::NotFinite { role: Role::Certificate, step: 40 }), "{halt:?}");
    let mut gate = Gate::new(lying(40, Role::Pilot), 1);
    let error = Certifier::start(&mut gate, &[0.01], claim(Basis::Kurtosis(9.0)), 0).unwrap_err();
    assert!(matches!(error, CertificateError::Halt(Halt::NotFinite { role: Role::Pilot, .. })), "{error:?}");
}

/// (x - xi)^2/2 in two coordinates, with its loss.
struct Squares;

impl Squares {
    fn draw(xi: &mut Stream) -> [f64; 2] {
        [xi.normal(), 3.0 * xi.normal()]
    }
}

impl Sampled for Squares {
    fn dim(&self) -> usize {
        2
    }
    fn identity(&self) -> String {
        "squares".into()
    }
    fn add_gradient(
        &self,
        weight: f64,
        x: &[f64],
        xi: &mut Stream,
        out: &mut [f64],
    ) -> Result<(), OracleError> {
        let y = Self::draw(xi);
        (0..2).for_each(|i| out[i] += weight * (x[i] - y[i]));
        Ok(())
    }
    fn gives_losses(&self) -> bool {
        true
    }
    fn loss(&self, x: &[f64], xi: &mut Stream) -> Result<f64, OracleError> {
        let y = Self::draw(xi);
        Ok(0.5 * ((x[0] - y[0]).powi(2) + (x[1] - y[1]).powi(2)))
    }
}

#[test]
fn a_batch_is_read_back_from_what_is_written_of_it() {
    let batch = Batch { seed: u64::MAX, role: Role::Look, step: 1 << 60, samples: 17..u64::MAX };
    let text = serde_json::to_string(&batch).unwrap();
    assert_eq!(serde_json::from_str::<Batch>(&text).unwrap(), batch);
}

/// The sum down the tree of halves, by hand.
fn by_hand(batch: &Batch, block: u64, x: &[f64]) -> [f64; 2] {
    let mut sum = [0.0; 2];
    match batch.halves(block) {
        None => {
            for i in batch.samples.clone() {
                Squares.add_gradient(1.0, x, &mut batch.sample(i), &mut sum).unwrap();
            }
        }
        Some([left, right]) => {
            let [left, right] = [left, right].map(|half| by_hand(&half, block, x));
            (0..2).for_each(|i| sum[i] = left[i] + right[i]);
        }
    }
    sum
}

#[test]
fn halves_are_the_order_of_additions() {
    let x = [0.3, -0.7];
    for block in [1, 3, 8] {
        let mut oracle = Batched::new(Squares);
        oracle.block = block;
        let mut gate = Gate::new(oracle, 9);
        for n in [1, 2, 7, 8, 9, 64, 65, 1000] {
            let batch = gate.batch(Role::Large, 4, n);
            let mut sum = [0.0; 2];
            gate.ask(Request::sums(batch.clone(), &[&x]), &mut Answer::new(&mut sum)).unwrap();
            assert_eq!(sum.map(f64::to_bits), by_hand(&batch, block, &x).map(f64::to_bits), "{block} {n}");
            // The halves are parts of the batch, and any part may be asked for by itself.
            if let Some([left, right]) = batch.halves(block) {
                assert_eq!((left.samples.start, left.samples.end), (0, right.samples.start));
                assert_eq!(right.samples.end, n);
                let mut parts = [[0.0; 2]; 2];
                for (half, part) in [left, right].into_iter().zip(&mut parts) {
                    gate.ask(Request::sums(half, &[&x]), &mut Answer::new(part)).unwrap();
                }
                assert_eq!(sum, [parts[0][0] + parts[1][0], parts[0][1] + parts[1][1]]);
            }
        }
    }
    // The test can fail: one after another is not the tree.
    let batch = Batch { seed: 9, role: Role::Large, step: 4, samples: 0..1000 };
    assert_ne!(by_hand(&batch, 1, &x), by_hand(&batch, 1000, &x));
}

#[test]
fn losses_and_gradients_are_of_the_same_samples_on_any_number_of_threads() {
    let points: [&[f64]; 2] = [&[0.3, -0.7], &[1.0, 2.0]];
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut gate = Gate::new(Batched::new(Squares), 9);
        let (mut gradients, mut losses) = ([0.0; 4], [0.0; 2]);
        let request = Request { losses: true, ..Request::sums(gate.batch(Role::Large, 0, 100), &points) };
        let mut answer = Answer { losses: &mut losses, ..Answer::new(&mut gradients) };
        pool.install(|| gate.ask(request, &mut answer)).unwrap();
        assert_eq!((gate.ledger().samples(), gate.ledger().evaluations()), (100, 200));
        (gradients, losses)
    };
    let (gradients, losses) = on(1);
    assert_eq!(on(3), (gradients, losses));
    let batch = Batch { seed: 9, role: Role::Large, step: 0, samples: 0..100 };
    for (k, x) in points.iter().enumerate() {
        let (mut gradient, mut loss) = ([0.0; 2], 0.0);
        for i in 0..100 {
            Squares.add_gradient(1.0, x, &mut batch.sample(i), &mut gradient).unwrap();
            loss += Squares.loss(x, &mut batch.sample(i)).unwrap();
        }
        // A hundred additions of numbers of order ten.
        assert!((losses[k] - loss).abs() < 1e-11, "{} is not {loss}", losses[k]);
        (0..2).for_each(|i| assert!((gradients[2 * k + i] - gradient[i]).abs() < 1e-11));
        // Without losses the gradients have the same bits.
        let mut alone = [0.0; 2];
        let mut gate = Gate::new(Batched::new(Squares), 9);
        gate.ask(Request::sums(batch.clone(), &[x]), &mut Answer::new(&mut alone)).unwrap();
        assert_eq!(alone, gradients[2 * k..2 * k + 2]);
    }
}

#[test]
fn a_walk_that_moves_to_another_thread_is_the_same_run() {
    fn assert_send<T: Send>() {}
    assert_send::<Gate>();
    assert_send::<Pasta>();
    assert_send::<Baseline>();
    assert_send::<Certified<Box<dyn Walk>>>();
    let start = || {
        let gate = Gate::new(bowl(STUDENT), 4);
        let walk: Box<dyn Walk> = Box::new(Pasta::start(&gate, smooth(0.3), &START).unwrap());
        let walk = walk.certified(&gate, rule(0.3)).unwrap();
        (gate, walk)
    };
    let (mut gate, walk) = start();
    let whole = walk.finish(&mut gate).unwrap();
    let (mut gate, mut walk) = start();
    for _ in 0..10 {
        assert!(!matches!(walk.advance(&mut gate).unwrap(), Advance::Stop(_)));
    }
    let moved = std::thread::spawn(move || walk.finish(&mut gate).unwrap());
    assert_eq!(moved.join().unwrap(), whole);
}

#[test]
fn forks_of_neighbouring_seeds_share_no_seed_and_no_pilot_run() {
    let oracle: Arc<dyn Oracle> = Arc::new(bowl(Tail::Gaussian));
    let mut seeds = BTreeSet::new();
    for seed in 1..=200 {
        let gate = Gate::over(oracle.clone(), seed);
        // The seed of the run itself is no fork's either.
        assert!(seeds.insert(seed));
        for number in 0..20 {
            assert!(seeds.insert(gate.fork(Role::Forecast, number, 1).seed()), "{seed} {number}");
        }
    }
    let pilot = |seed| {
        let mut gate = Gate::over(oracle.clone(), seed);
        let run = |gate: &Gate, target| Pasta::start(gate, smooth(target), &START);
        Pilot::run(&mut gate, &START, rule(0.05), 100_000, run).unwrap().runs
    };
    let [one, two] = [1, 2].map(pilot);
    assert!(one.len() > 2 && two.len() > 2, "{one:?} {two:?}");
    let common = |run: &PilotRun| two.iter().any(|other| other == run || other.samples == run.samples);
    assert!(!one.iter().any(common), "{one:?} {two:?}");
}

#[test]
fn a_checkpoint_of_one_users_oracle_is_refused_on_anothers() {
    let made = |identity: &str| {
        let answer = |_: &Request<'_>, answer: &mut Answer<'_>| {
            answer.gradients.fill(1.0);
            Ok(())
        };
        Arc::new(Made { about: About { trusted: true, ..About::stream(1, identity) }, answer })
    };
    let gate = Gate::over(made("mine"), 1);
    let mut saver = Saver::default();
    gate.save(&mut saver);
    let read = || Checkpoint::from_bytes(&saver.to_bytes()).unwrap();
    assert!(Gate::resume(made("mine"), &mut read()).is_ok());
    let error = Gate::resume(made("yours"), &mut read()).unwrap_err();
    assert!(matches!(error, CheckpointError::Problem { .. }));
    assert_eq!(
        error.to_string(),
        "the checkpoint is of another problem: it was taken on \"mine\", but this is \"yours\""
    );
}
