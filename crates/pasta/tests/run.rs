//! Runs: what holds whichever door they are driven through.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pasta_opt::prelude::*;
use pasta_opt::problems::SineBowl;
use pasta_opt::recipe::Constant;
use pasta_opt::run::{ChoiceError, MethodSpec, Problem, RunError, Stored, Task, Truth};

fn noisy(tail: Tail) -> Arc<Noisy> {
    let noise = Noise { growth: 1.0, floor: 1.0, tail };
    Arc::new(Noisy::new(Box::new(SineBowl { dimension: 2 }), noise, vec![1.2, -0.4]).unwrap())
}

/// The sine bowl, of which only samples are known.
fn problem() -> Arc<Problem> {
    let oracle = noisy(Tail::Gaussian);
    Arc::new(Problem::of(Arc::clone(&oracle) as Arc<dyn Oracle>, oracle.start().to_vec()))
}

/// The same with its formulas.
fn known(tail: Tail) -> Arc<Problem> {
    let oracle = noisy(tail);
    let of = Problem::of(Arc::clone(&oracle) as Arc<dyn Oracle>, oracle.start().to_vec());
    Arc::new(Problem { truth: Some(Truth(oracle)), ..of })
}

fn rule(basis: Basis) -> StopRule {
    StopRule { target: 0.3, delta: 0.05, basis, share: 0.5 }
}

fn tasks() -> Vec<Task> {
    let sgd = MethodSpec::Named {
        name: "sgd".into(),
        settings: BTreeMap::from([("eta".into(), 0.05)]),
        steps: 400,
        batch: 3,
    };
    let mut constants = pasta_opt::recipe::Constants::default();
    let values =
        [(Constant::Smoothness, 3.0), (Constant::Gap, 2.0), (Constant::Growth, 1.0), (Constant::Floor, 1.0)];
    values
        .iter()
        .chain(&[(Constant::Target, 0.9)])
        .for_each(|&(constant, value)| constants.set(constant, value));
    let recipe = |fallback| MethodSpec::Recipe {
        name: "smooth".into(),
        constants,
        estimated: Vec::new(),
        proved: false,
        fallback,
    };
    let certify = Some(rule(Basis::Growth { growth: 1.0, floor: 1.0, distance: 0.0 }));
    vec![
        Task { budget: Some(3_000), ..Task::default() },
        Task { certify, ..Task::default() },
        Task { method: sgd.clone(), ..Task::default() },
        Task { method: sgd, certify, budget: Some(900), ..Task::default() },
        Task { method: recipe(false), certify, ..Task::default() },
        Task { certify, of_start: Some(0.2), ..Task::default() },
        Task { method: recipe(true), certify, budget: Some(200_000), ..Task::default() },
    ]
}

/// The report as JSON, and the checkpoint.
fn ended(run: &mut Run) -> (String, Vec<u8>) {
    let stop = run.finish().unwrap();
    let mut saver = Saver::default();
    run.save(&mut saver);
    (serde_json::to_string(&run.report(stop)).unwrap(), saver.to_bytes())
}

#[test]
fn a_run_that_is_saved_and_resumed_at_any_event_is_the_run_that_was_never_stopped() {
    for task in tasks() {
        let mut whole = Run::start(problem(), task.clone(), Arc::default()).unwrap();
        let expected = ended(&mut whole);
        let mut run = Run::start(problem(), task.clone(), Arc::default()).unwrap();
        // Often at the beginning, then at events that are further and further apart.
        let (mut events, mut next) = (0, 1);
        while !matches!(run.next().unwrap(), Event::End(_)) {
            events += 1;
            if events == next {
                next = (next + 1).max(next * 3 / 2);
                let mut saver = Saver::default();
                run.save(&mut saver);
                let mut checkpoint = Checkpoint::from_bytes(&saver.to_bytes()).unwrap();
                // A target that is measured stands in the place of the one that was given.
                let stored = Stored::of(&checkpoint).unwrap().task;
                assert_eq!(Task { certify: task.certify, ..stored }, task);
                run = Run::resume(problem(), task.clone(), &mut checkpoint, Arc::default()).unwrap();
            }
        }
        assert!(events > 5, "{events} events of {task:?}");
        assert!(ended(&mut run) == expected, "{task:?}");
    }
}

#[test]
fn an_interrupted_run_goes_on_where_it_was() {
    let task = tasks()[2].clone();
    let expected = ended(&mut Run::start(problem(), task.clone(), Arc::default()).unwrap());
    let flag = Arc::new(AtomicBool::new(false));
    let mut run = Run::start(problem(), task, Arc::clone(&flag)).unwrap();
    for _ in 0..20 {
        run.next().unwrap();
        flag.store(true, Ordering::Relaxed);
        assert_eq!(run.next().unwrap(), Event::End(Stop::Interrupted));
        assert_eq!(run.next().unwrap(), Event::End(Stop::Interrupted));
        flag.store(false, Ordering::Relaxed);
    }
    assert!(ended(&mut run) == expected);
}

#[test]
fn what_would_never_end_or_cannot_be_chosen_is_refused() {
    let refused = |task: Task| match Run::start(problem(), task, Arc::default()) {
        Err(RunError::Choice(error)) => error,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(Task::default()), ChoiceError::NoEnd);
    let named = |name: &str, setting: &str| MethodSpec::Named {
        name: name.into(),
        settings: BTreeMap::from([(setting.to_owned(), 0.1)]),
        steps: 10,
        batch: 1,
    };
    let unknown = refused(Task { method: named("adm", "eta"), ..Task::default() });
    assert!(unknown.to_string().starts_with("there is no method \"adm\"; there are"), "{unknown}");
    let setting = refused(Task { method: named("sgd", "lr"), ..Task::default() });
    assert_eq!(setting.to_string(), "sgd has no setting lr");
    let mut hedged = tasks().pop().unwrap();
    hedged.certify = None;
    assert_eq!(refused(hedged), ChoiceError::NoCertificate);
}

#[test]
fn a_checkpoint_of_another_task_is_refused() {
    let task = Task { budget: Some(3_000), ..Task::default() };
    let mut run = Run::start(problem(), task.clone(), Arc::default()).unwrap();
    for _ in 0..3 {
        run.next().unwrap();
    }
    assert_eq!(run.ended(), None);
    let mut saver = Saver::default();
    run.save(&mut saver);
    let bytes = saver.to_bytes();
    let resumed = |task: Task| {
        let mut checkpoint = Checkpoint::from_bytes(&bytes).unwrap();
        Run::resume(problem(), task, &mut checkpoint, Arc::default())
            .map(drop)
            .map_err(|error| error.to_string())
    };
    resumed(task.clone()).unwrap();
    resumed(Task { budget: Some(5_000), ..task.clone() }).unwrap();
    let says = |task: Task, words: &str| {
        let error = resumed(task).unwrap_err();
        assert!(error.contains(words), "{error}");
    };
    says(Task { seed: 2, ..task.clone() }, "the checkpoint is of seed 1, but 2 is asked for");
    says(Task { budget: Some(1), ..task.clone() }, "more than the budget of 1");
    says(Task { budget: None, ..task.clone() }, "needs a target or a budget");
    says(Task { method: tasks()[2].method.clone(), ..task }, "of another method, or of other settings");
}

#[test]
fn a_certificate_that_rests_on_what_is_known_to_be_false_is_void_at_every_door() {
    let task = Task { certify: Some(rule(Basis::Kurtosis(1.5))), ..Task::default() };
    let heavy = Tail::StudentT { dof: 5.0 };
    let mut run = Run::start(known(heavy), task, Arc::default()).unwrap();
    assert!(run.false_assumption().unwrap().contains("[noise] has kurtosis"));
    let stop = loop {
        match run.next().unwrap() {
            Event::Tried(certificate) => {
                assert_eq!((certificate.verdict, certificate.bound), (Verdict::Void, None));
            }
            Event::End(stop) => break stop,
            _ => {}
        }
    };
    assert_eq!(stop, Stop::Void);
    let report = run.report(stop);
    assert!(!report.is_certified());
    let certificate = report.certificate.unwrap();
    assert!(certificate.statement.starts_with("VOID") && certificate.doubt.is_some(), "{certificate:?}");
}

fn sources(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, all);
        } else if path.extension().is_some_and(|end| end == "rs") {
            all.push(path);
        }
    }
}

#[test]
fn nobody_outside_the_library_drives_a_walk_or_a_certifier() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    // A package by itself has no others beside it.
    for name in ["pasta-cli", "pasta-lab", "pasta-py", "pasta-mpi", "pasta-pipe", "pasta-report"] {
        let folder = crates.join(name).join("src");
        let mut all = Vec::new();
        if folder.is_dir() {
            sources(&folder, &mut all);
        }
        for path in all {
            let text = fs::read_to_string(&path).unwrap();
            assert!(!text.contains(".advance("), "{} drives a walk: use run::Run", path.display());
        }
    }
}
