//! Results that are verified: what a run wrote is reproduced to the bit, and nothing else passes.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::sync::Arc;

use pasta_opt::certificate::seed_by_hand;
use pasta_opt::draws::{Address, Role};
use pasta_opt::prelude::*;
use pasta_opt::problems::SineBowl;
use pasta_opt::recipe::{Constant, Constants};
use pasta_opt::run::{KnownTable, MethodSpec, Problem, Task, Truth};
use pasta_opt::table::{Dense, Design, Features, Linear, Loss, Table, Values};
use pasta_opt::verify::{Given, Unverified, verify};
use serde_json::Value;

fn noisy(tail: Tail) -> Arc<Problem> {
    let noise = Noise { growth: 1.0, floor: 1.0, tail };
    let oracle = Arc::new(Noisy::new(Box::new(SineBowl { dimension: 2 }), noise, vec![1.2, -0.4]).unwrap());
    let of = Problem::of(Arc::clone(&oracle) as Arc<dyn Oracle>, oracle.start().to_vec());
    Arc::new(Problem { truth: Some(Truth(oracle)), ..of })
}

/// E |x - xi|^2/2 with xi normal around (1, 1), with losses: its certificates compare slopes.
struct Stranger;

impl Sampled for Stranger {
    fn dim(&self) -> usize {
        2
    }
    fn identity(&self) -> String {
        "a stranger".into()
    }
    fn add_gradient(
        &self,
        weight: f64,
        x: &[f64],
        xi: &mut Stream,
        out: &mut [f64],
    ) -> Result<(), OracleError> {
        out.iter_mut().zip(x).for_each(|(out, x)| *out += weight * (x - 1.0 - xi.normal()));
        Ok(())
    }
    fn gives_losses(&self) -> bool {
        true
    }
    fn loss(&self, x: &[f64], xi: &mut Stream) -> Result<f64, OracleError> {
        Ok(x.iter().map(|x| (x - 1.0 - xi.normal()).powi(2) / 2.0).sum())
    }
}

fn stranger() -> Arc<Problem> {
    Arc::new(Problem::of(Arc::new(Batched::new(Stranger)), vec![0.0, 0.0]))
}

fn table() -> Arc<Problem> {
    let mut xi = Address { seed: 3, role: Role::Setup, step: 0, sample: 0 }.stream();
    let values: Vec<f64> = (0..600).map(|_| xi.normal()).collect();
    let labels: Vec<f64> = values.chunks(3).map(|row| row[0] - 2.0 * row[1] + xi.normal()).collect();
    let features = Features::Dense(Dense { rows: 200, columns: 3, values: Values::F64(Arc::new(values)) });
    let table = Table::new(features, Arc::new(labels), None, Vec::new()).unwrap();
    let design = Design { intercept: true, ..Design::default() };
    let linear = Arc::new(Linear::new(Arc::new(table), Loss::LeastSquares, design).unwrap());
    let of = Problem::of(Arc::clone(&linear) as Arc<dyn Oracle>, vec![0.0; 4]);
    Arc::new(Problem { table: Some(KnownTable::new(linear)), ..of })
}

fn rule(target: f64, basis: Basis) -> StopRule {
    StopRule { target, delta: 0.05, basis, share: 0.5 }
}

const GROWTH: Basis = Basis::Growth { growth: 1.0, floor: 1.0, distance: 0.0 };

/// Runs of all kinds, small ones.
fn cases() -> Vec<(Arc<Problem>, Task)> {
    let settings = BTreeMap::from([("eta".to_owned(), 0.05)]);
    let sgd = MethodSpec::Named { name: "sgd".into(), settings, steps: 400, batch: 3 };
    let mut constants = Constants::default();
    let values = [
        (Constant::Smoothness, 3.0),
        (Constant::Gap, 2.0),
        (Constant::Growth, 1.0),
        (Constant::Floor, 1.0),
        (Constant::Target, 0.9),
    ];
    values.iter().for_each(|&(constant, value)| constants.set(constant, value));
    let (name, estimated) = ("smooth".to_owned(), Vec::new());
    let hedged = MethodSpec::Recipe { name, constants, estimated, proved: false, fallback: true };
    let task = |rule| Task { certify: Some(rule), ..Task::default() };
    let kurtosis = Basis::Kurtosis(100.0);
    vec![
        (noisy(Tail::Gaussian), task(rule(0.3, GROWTH))),
        (noisy(Tail::Gaussian), Task { seed: u64::MAX, ..task(rule(0.2, kurtosis)) }),
        (noisy(Tail::StudentT { dof: 3.0 }), task(rule(0.4, GROWTH))),
        (noisy(Tail::Lognormal { sigma: 1.0 }), task(rule(0.4, Basis::Variance(4.0)))),
        (noisy(Tail::TwoPoint { probability: 0.1 }), task(rule(0.4, kurtosis))),
        (noisy(Tail::Gaussian), task(rule(0.3, Basis::Exact))),
        // What is declared is false at every point but the start, so that the certificate is void.
        (noisy(Tail::Gaussian), task(rule(0.5, Basis::Variance(1.0)))),
        // Out of budget, with several attempts.
        (noisy(Tail::Gaussian), Task { budget: Some(20_000), ..task(rule(0.05, GROWTH)) }),
        (noisy(Tail::Gaussian), Task { method: sgd, ..task(rule(0.3, GROWTH)) }),
        (noisy(Tail::Gaussian), Task { method: hedged, budget: Some(200_000), ..task(rule(0.3, GROWTH)) }),
        (stranger(), task(rule(0.3, kurtosis))),
        (table(), task(rule(0.01, Basis::Exact))),
        (table(), task(rule(0.2, kurtosis))),
        // Targets that are shares of the gradient at the start, which is measured: by samples, and by a pass.
        (stranger(), Task { of_start: Some(0.3), ..task(rule(1.0, kurtosis)) }),
        (table(), Task { of_start: Some(0.01), ..task(rule(1.0, Basis::Exact)) }),
    ]
}

fn result(problem: &Arc<Problem>, task: &Task) -> String {
    let mut run = Run::start(Arc::clone(problem), task.clone(), Arc::default()).unwrap();
    let stop = run.finish().unwrap();
    serde_json::to_string(&run.report(stop)).unwrap()
}

fn verified(text: &str, problem: &Problem, task: Option<&Task>) -> Result<String, Unverified> {
    let mut given = Given::of(problem);
    given.task = task;
    verify(text, &given, Arc::default()).map(|verified| verified.sentence())
}

#[test]
fn every_certificate_of_a_run_is_reproduced_to_the_bit() {
    let mut verdicts = Vec::new();
    for (problem, task) in cases() {
        let text = result(&problem, &task);
        let said = verified(&text, &problem, Some(&task)).unwrap_or_else(|e| panic!("{e}: {text}"));
        assert!(said.starts_with("verified: "), "{said}");
        // It needs no task; then target, delta and basis are those of the result.
        assert_eq!(verified(&text, &problem, None).unwrap(), said);
        // Reformatted JSON says the same.
        let pretty = serde_json::to_string_pretty(&serde_json::from_str::<Value>(&text).unwrap()).unwrap();
        assert_eq!(verified(&pretty, &problem, Some(&task)).unwrap(), said);
        let result: Value = serde_json::from_str(&text).unwrap();
        verdicts.push(result["certificate"]["verdict"].as_str().unwrap().to_owned());
    }
    for verdict in ["certified", "void", "out-of-budget"] {
        assert!(verdicts.iter().any(|v| v == verdict), "{verdict} is not among {verdicts:?}");
    }
}

/// The addresses of all values of an object that are no objects or lists.
fn leaves(value: &Value, path: &str, all: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(key, value)| leaves(value, &format!("{path}/{key}"), all));
        }
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(i, value)| leaves(value, &format!("{path}/{i}"), all));
        }
        _ => all.push(path.to_owned()),
    }
}

/// One bit of a number, one letter of a text.
fn altered(value: &Value, xi: &mut Stream) -> Value {
    match value {
        Value::Number(number) if number.is_u64() => (number.as_u64().unwrap() ^ (1 << xi.below(63))).into(),
        Value::Number(number) => {
            let bits = number.as_f64().unwrap().to_bits();
            // Bits that make no finite number cannot be written as JSON.
            std::iter::repeat_with(|| f64::from_bits(bits ^ (1 << xi.below(64))))
                .find(|number| number.is_finite())
                .unwrap()
                .into()
        }
        Value::String(text) => {
            let mut bytes = text.clone().into_bytes();
            let i = xi.below(bytes.len() as u64) as usize;
            bytes[i] = if bytes[i] == b'a' { b'b' } else { b'a' };
            String::from_utf8_lossy(&bytes).into_owned().into()
        }
        Value::Bool(value) => (!value).into(),
        _ => xi.uniform().into(),
    }
}

/// What a verification cannot see, or takes as it is written: docs/formats.md says so.
fn matters(path: &str) -> bool {
    const READ: [&str; 8] = [
        "/of_start/",
        "/certificate/",
        "/point/",
        "/ledger/",
        "/truth/",
        "/seed",
        "/problem",
        "/rests_on/oracle",
    ];
    const AS_WRITTEN: [&str; 5] = [
        "/certificate/about",
        "/certificate/attempts",
        "/certificate/made/claim/guess",
        "/certificate/made/claim/budget",
        "/ledger/not_finite",
    ];
    let begins = |all: &[&str]| all.iter().any(|begin| path.starts_with(begin));
    begins(&READ) && !begins(&AS_WRITTEN)
}

#[test]
fn a_thousand_altered_results_are_refused() {
    let mut xi = Address { seed: 27, role: Role::Setup, step: 0, sample: 0 }.stream();
    let cases: Vec<_> =
        cases().into_iter().map(|(problem, task)| (result(&problem, &task), problem, task)).collect();
    let mut altered_paths = std::collections::BTreeSet::new();
    for number in 0..1000 {
        let (text, problem, task) = &cases[number % cases.len()];
        let mut value: Value = serde_json::from_str(text).unwrap();
        let mut paths = Vec::new();
        leaves(&value, "", &mut paths);
        paths.retain(|path| matters(path));
        let path = &paths[xi.below(paths.len() as u64) as usize];
        let before = value.pointer(path).unwrap().clone();
        let after = altered(&before, &mut xi);
        *value.pointer_mut(path).unwrap() = after.clone();
        let said = verified(&value.to_string(), problem, Some(task));
        assert!(said.is_err(), "{path} was {before}, is {after}, and: {said:?}");
        altered_paths.insert(path.clone());
    }
    for path in
        ["/certificate/bound", "/certificate/made/claim/target", "/certificate/delta", "/seed", "/point/0"]
    {
        assert!(altered_paths.contains(path), "{path} was never altered");
    }
}

/// Bytes that go, come or change: such a text is verified, refused or not read, and nothing panics. `FUZZ_CASES=100000` tries more.
#[test]
fn damaged_results_are_read_or_refused() {
    let trials: u64 = std::env::var("FUZZ_CASES").map_or(500, |n| n.parse().unwrap());
    let cases = [0, 7, 11].map(|i| cases().swap_remove(i));
    let cases = cases.map(|(problem, task)| (result(&problem, &task), problem, task));
    const WORDS: [&str; 12] =
        ["null", "0", "-1", "1e999", "1e308", "[]", "{}", "\"\"", "18446744073709551616", ",", "1.5", "9"];
    let mut counts = [0; 3];
    for trial in 0..trials {
        let mut xi = Address { seed: 28, role: Role::Setup, step: 0, sample: trial }.stream();
        let (text, problem, task) = &cases[trial as usize % 3];
        let mut text = text.clone().into_bytes();
        for _ in 0..=xi.below(2) {
            let at = xi.below(text.len() as u64) as usize;
            let until = (at + 1 + xi.below(12) as usize).min(text.len());
            match xi.below(4) {
                0 => text[at] ^= 1 << xi.below(7),
                1 => drop(text.drain(at..until)),
                2 => drop(text.splice(at..at, WORDS[xi.below(12) as usize].bytes())),
                _ => drop(text.splice(at..until, WORDS[xi.below(12) as usize].bytes())),
            }
        }
        let task = Some(task).filter(|_| xi.bernoulli(0.5));
        counts[match verified(&String::from_utf8_lossy(&text), problem, task) {
            Ok(_) => 0,
            Err(Unverified::Differs { .. }) => 1,
            Err(_) => 2,
        }] += 1;
    }
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
}

#[test]
fn the_first_number_that_differs_is_named() {
    let (problem, task) = &cases()[0];
    let text = result(problem, task);
    let differing = |old: &str, new: &str, task: Option<&Task>| {
        assert!(text.contains(old), "{old} is not in {text}");
        match verified(&text.replacen(old, new, 1), problem, task) {
            Err(Unverified::Differs { name, written, recomputed }) => (name, written, recomputed),
            other => panic!("{other:?}"),
        }
    };
    let named =
        |name: &str, written: &str, recomputed: &str| (name.into(), written.into(), recomputed.into());
    assert_eq!(
        differing("\"verdict\":\"certified\"", "\"verdict\":\"likely\"", None),
        named("stop.kind", "certified", "likely, not certified")
    );
    assert_eq!(
        differing("\"target\":0.3,", "\"target\":0.25,", None),
        named("certificate.target", "0.25", "0.3")
    );
    assert_eq!(differing("\"seed\":1,", "\"seed\":2,", Some(task)), named("seed", "2", "1"));
    assert_eq!(differing("\"seed\":1,", "\"seed\":2,", None), named("certificate.made.seed", "1", "2"));
    let other = Task { certify: Some(rule(0.4, GROWTH)), ..task.clone() };
    assert_eq!(
        differing("\"asked\":true", "\"asked\":true", Some(&other)),
        named("certificate.made.claim.target", "0.3", "0.4")
    );
}

#[test]
fn a_result_of_another_problem_or_without_a_certificate_is_not_verified() {
    let (problem, task) = &cases()[0];
    let text = result(problem, task);
    let other = noisy(Tail::Lognormal { sigma: 1.0 });
    assert!(matches!(verified(&text, &other, Some(task)), Err(Unverified::Differs { .. })));
    let plain = Task { certify: None, budget: Some(1000), ..Task::default() };
    assert!(matches!(verified(&result(problem, &plain), problem, None), Err(Unverified::Nothing(_))));
    assert!(matches!(verified("{}", problem, None), Err(Unverified::Unreadable(_))));
    assert!(matches!(verified(&text, problem, Some(&plain)), Err(Unverified::Nothing(_))));
}

#[test]
fn a_run_that_was_resumed_within_an_attempt_is_verified_like_one_that_was_not() {
    let (problem, task) = &cases()[7];
    let expected = result(problem, task);
    let mut run = Run::start(Arc::clone(problem), task.clone(), Arc::default()).unwrap();
    let stop = loop {
        match run.next().unwrap() {
            Event::End(stop) => break stop,
            Event::Looked | Event::Planned => {
                let mut saver = Saver::default();
                run.save(&mut saver);
                let mut checkpoint = Checkpoint::from_bytes(&saver.to_bytes()).unwrap();
                run =
                    Run::resume(Arc::clone(problem), task.clone(), &mut checkpoint, Arc::default()).unwrap();
            }
            _ => {}
        }
    };
    assert_eq!(serde_json::to_string(&run.report(stop)).unwrap(), expected);
}

/// Whoever sees the samples of one attempt cannot choose a point by them that has the same ones.
#[test]
fn the_samples_of_a_certificate_by_hand_depend_on_every_bit_of_the_point() {
    let point = [0.25_f64, -1.0, 1e-300];
    let seeds: std::collections::BTreeSet<_> = (0..3 * 64)
        .map(|bit| {
            let mut other = point;
            other[bit / 64] = f64::from_bits(other[bit / 64].to_bits() ^ (1 << (bit % 64)));
            seed_by_hand(1, &other)
        })
        .chain([seed_by_hand(1, &point), seed_by_hand(2, &point)])
        .collect();
    assert_eq!(seeds.len(), 3 * 64 + 2);
}
