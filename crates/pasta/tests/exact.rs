//! `exact` is a method like the others: a fit and a run of the same table are one and the same.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pasta_opt::certificate::{Basis, Verdict};
use pasta_opt::checkpoint::{Checkpoint, Saver};
use pasta_opt::draws::{Address, Role};
use pasta_opt::fit::{Fit, Verdict as FitVerdict, Way};
use pasta_opt::method::{EXACT, METHODS, MethodError, Values, find};
use pasta_opt::prelude::*;
use pasta_opt::problems::SineBowl;
use pasta_opt::run::{ChoiceError, KnownTable, MethodSpec, Problem, RunError, Target, Task};
use pasta_opt::stop::Stop;
use pasta_opt::table::{Dense, Design, Features, Linear, Loss, Table};
use pasta_opt::verify::Given;

const ROWS: usize = 200;

fn table(loss: Loss) -> Arc<Linear> {
    let mut xi = Address { seed: 12, role: Role::Setup, step: 0, sample: 0 }.stream();
    let values: Vec<f64> = (0..3 * ROWS).map(|k| (1 + k % 3) as f64 * xi.normal()).collect();
    let mut label = |a: &[f64]| {
        let score = a[0] - 0.3 * a[2] + xi.normal();
        if matches!(loss, Loss::Logistic | Loss::Hinge) { score.signum() } else { score }
    };
    let labels: Vec<f64> = values.chunks(3).map(&mut label).collect();
    let features = Features::Dense(Dense { rows: ROWS, columns: 3, values: values.into() });
    let table = Table::new(features, Arc::new(labels), None, Vec::new()).unwrap();
    let design = Design { penalty: 1e-3, ..Design::default() };
    Arc::new(Linear::new(Arc::new(table), loss, design).unwrap())
}

/// The table as a problem that begins where fits do.
fn problem(linear: &Arc<Linear>) -> Arc<Problem> {
    let table = Some(KnownTable::new(Arc::clone(linear)));
    Arc::new(Problem { table, ..Problem::of(Arc::clone(linear) as _, linear.best_constant()) })
}

fn exact() -> MethodSpec {
    MethodSpec::Named { name: EXACT.into(), settings: BTreeMap::new(), steps: 1, batch: 1 }
}

fn task(method: MethodSpec, target: Option<Target>) -> Task {
    let rule = |target: Target| StopRule {
        target: target.provisional(),
        delta: StopRule::DELTA,
        basis: Basis::Exact,
        share: StopRule::SHARE,
    };
    Task {
        method,
        certify: target.map(rule),
        of_start: target.and_then(Target::share),
        seed: 3,
        ..Task::default()
    }
}

const LOSSES: [Loss; 6] = [
    Loss::LeastSquares,
    Loss::Logistic,
    Loss::Huber { delta: 0.5 },
    Loss::Poisson,
    Loss::Absolute,
    Loss::Hinge,
];

fn labelled(loss: Loss) -> Arc<Linear> {
    if loss != Loss::Poisson {
        return table(loss);
    }
    let plain = table(Loss::LeastSquares);
    let counts: Vec<f64> = (*plain.table().labels).as_ref().iter().map(|y: &f64| y.abs().floor()).collect();
    let table = Table::new(plain.table().features.clone(), Arc::new(counts), None, Vec::new()).unwrap();
    Arc::new(Linear::new(Arc::new(table), loss, plain.design()).unwrap())
}

#[test]
fn a_fit_and_a_run_of_the_same_table_choose_read_and_end_alike() {
    for loss in LOSSES {
        for target in [None, Some(Target::Norm(1e-5)), Some(Target::OfStart(1e-4))] {
            let linear = labelled(loss);
            let fit = Fit { way: Way::usual(&linear), start: None, target, budget: None, seed: 3 };
            let fitted = fit.run(&linear, Arc::clone(&linear) as _, Arc::default(), &mut |_| ()).unwrap();
            for method in [exact(), MethodSpec::Usual] {
                let mut run = Run::start(problem(&linear), task(method, target), Arc::default()).unwrap();
                assert_eq!(run.chosen().name, EXACT);
                let stop = run.finish().unwrap();
                let report = run.report(stop);
                let what = format!("{loss:?} {target:?}");
                assert_eq!((stop, &report.ledger), (fitted.stop, fitted.gate.ledger()), "{what}");
                assert_eq!((stop, fitted.verdict), (Stop::Certified, FitVerdict::Certified), "{what}");
                assert_eq!(
                    (report.steps, report.point.as_ref()),
                    (fitted.steps, Some(&fitted.point)),
                    "{what}"
                );
                let Some(target) = target else {
                    assert!(report.certificate.is_none());
                    continue;
                };
                let certificate = report.certificate.as_ref().unwrap().certificate;
                assert_eq!(certificate.verdict, Verdict::Certified, "{what}");
                assert_eq!(certificate.bound, Some(fitted.gap.unwrap_or(fitted.end.gradient)), "{what}");
                assert_eq!(certificate.target, fitted.target, "{what}");
                let share = report.of_start.map(|of_start| of_start.share);
                assert_eq!(share, target.share().filter(|_| fitted.gap.is_none()), "{what}");
            }
        }
    }
}

#[test]
fn a_run_of_exact_that_is_interrupted_anywhere_goes_on_bit_for_bit() {
    for loss in LOSSES {
        let linear = labelled(loss);
        let target = Some(Target::OfStart(1e-7));
        let mut whole = Run::start(problem(&linear), task(exact(), target), Arc::default()).unwrap();
        let stop = whole.finish().unwrap();
        let (steps, mut interrupted) = (whole.view().step, 0);
        for events in 1..=steps + 1 {
            let flag = Arc::new(AtomicBool::new(false));
            let mut run = Run::start(problem(&linear), task(exact(), target), Arc::clone(&flag)).unwrap();
            let mut seen = 0;
            let halted = run.follow(|_, _| {
                seen += 1;
                flag.store(seen == events, Ordering::Relaxed);
                ControlFlow::Continue(())
            });
            if halted.unwrap() != Stop::Interrupted {
                continue;
            }
            interrupted += 1;
            let mut saver = Saver::default();
            run.save(&mut saver);
            let mut checkpoint = Checkpoint::from_bytes(&saver.to_bytes()).unwrap();
            // What was usual is the method that it was.
            let task = task(MethodSpec::Usual, target);
            let mut run = Run::resume(problem(&linear), task, &mut checkpoint, Arc::default()).unwrap();
            let again = run.finish().unwrap();
            let [one, other] = [(&run, again), (&whole, stop)].map(|(run, stop)| run.report(stop));
            let [one, other] = [one, other].map(|report| serde_json::to_string(&report).unwrap());
            assert_eq!(one, other, "{loss:?} {events}");
        }
        assert!(interrupted as u64 >= steps, "{loss:?}: {interrupted} of {steps}");
    }
}

#[test]
fn a_run_of_exact_that_ran_out_of_budget_goes_on_with_a_larger_one() {
    let linear = table(Loss::Logistic);
    let target = Some(Target::Norm(1e-9));
    let of = |budget| Task { budget: Some(budget), ..task(exact(), target) };
    let mut whole = Run::start(problem(&linear), of(1 << 20), Arc::default()).unwrap();
    whole.finish().unwrap();
    let mut run = Run::start(problem(&linear), of(6 * ROWS as u128), Arc::default()).unwrap();
    let stop = run.finish().unwrap();
    assert_eq!(stop, Stop::OutOfBudget);
    assert!(run.gate().ledger().samples() <= 6 * ROWS as u128);
    assert!(!run.report(stop).is_certified());
    let mut saver = Saver::default();
    run.save(&mut saver);
    let mut checkpoint = Checkpoint::from_bytes(&saver.to_bytes()).unwrap();
    let mut run = Run::resume(problem(&linear), of(1 << 20), &mut checkpoint, Arc::default()).unwrap();
    assert_eq!(run.finish().unwrap(), Stop::Certified);
    assert_eq!(run.view().point, whole.view().point);
}

#[test]
fn the_certificate_of_exact_is_verified_by_another_pass() {
    for loss in [Loss::LeastSquares, Loss::Logistic, Loss::Huber { delta: 0.5 }] {
        for target in [Target::Norm(1e-5), Target::OfStart(1e-4)] {
            let linear = table(loss);
            let (problem, task) = (problem(&linear), task(exact(), Some(target)));
            let mut run = Run::start(Arc::clone(&problem), task.clone(), Arc::default()).unwrap();
            let stop = run.finish().unwrap();
            let result = serde_json::to_string(&run.report(stop)).unwrap();
            let mut given = Given::of(&problem);
            given.task = Some(&task);
            let verified = pasta_opt::verify(&result, &given, Arc::default()).unwrap();
            assert!(
                verified.sentence().starts_with("verified: all 200 rows read again"),
                "{}",
                verified.sentence()
            );
            // A bound that is another number is found out.
            let bound = verified.certificate.bound.unwrap();
            let altered = result.replace(&format!("{bound:?}"), &format!("{:?}", bound * (1.0 + 1e-12)));
            assert_ne!(altered, result);
            assert!(pasta_opt::verify(&altered, &given, Arc::default()).is_err());
        }
    }
}

#[test]
fn exact_is_a_row_of_the_table_of_methods_that_needs_a_table() {
    let row = find(EXACT).unwrap();
    assert!(row.needs_table() && METHODS.iter().filter(|method| method.needs_table()).count() == 1);
    assert_eq!(row.engine(&Values::default(), 1, 1).unwrap_err(), MethodError::Table { method: EXACT });
    let noise = Noise { growth: 0.0, floor: 1.0, tail: Tail::Gaussian };
    let oracle = Noisy::new(Box::new(SineBowl { dimension: 1 }), noise, vec![1.2]).unwrap();
    let bowl = Arc::new(Problem::of(Arc::new(oracle), vec![1.2]));
    let refused = Run::start(bowl, task(exact(), Some(Target::Norm(0.1))), Arc::default()).unwrap_err();
    assert!(matches!(refused, RunError::Choice(ChoiceError::NoTable { name: EXACT, .. })), "{refused}");
    let tukey = problem(&table(Loss::Tukey { scale: 2.0 }));
    let refused = Run::start(Arc::clone(&tukey), task(exact(), None), Arc::default()).unwrap_err();
    assert!(matches!(refused, RunError::Choice(ChoiceError::Table(_))), "{refused}");
    let usual = Task { budget: Some(1000), ..task(MethodSpec::Usual, None) };
    assert_eq!(Run::start(tukey, usual, Arc::default()).unwrap().chosen().name, "auto");
}
