//! A fit that is interrupted goes on bit for bit.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pasta_opt::checkpoint::{Checkpoint, Saver};
use pasta_opt::draws::{Address, Role};
use pasta_opt::fit::{Fit, FitError, Fitted, Unfinished, Verdict, Way};
use pasta_opt::method::Engine;
use pasta_opt::table::{Dense, Design, Features, Linear, Loss, Table};

fn table(loss: Loss, classes: u32) -> Arc<Linear> {
    of_size(300, 4, loss, classes)
}

fn of_size(rows: usize, columns: usize, loss: Loss, classes: u32) -> Arc<Linear> {
    let mut xi = Address { seed: 5, role: Role::Setup, step: 0, sample: 0 }.stream();
    let values: Vec<f64> = (0..rows * columns).map(|k| xi.normal() * f64::from(1 + k as u32 % 3)).collect();
    let label = |a: &[f64]| match a[0] + a[1] + xi.normal() {
        sum if classes == 2 => sum.signum(),
        sum => f64::from(sum.abs() as u32 % classes),
    };
    let labels: Vec<f64> = values.chunks(columns).map(label).collect();
    let features = Features::Dense(Dense { rows, columns, values: values.into() });
    let table = Table::new(features, Arc::new(labels), None, Vec::new()).unwrap();
    Arc::new(Linear::new(Arc::new(table), loss, Design { penalty: 1e-4, ..Design::default() }).unwrap())
}

/// Runs a fit, which is told to stop after so many steps.
fn run(linear: &Arc<Linear>, way: Way, steps: Option<u64>) -> Result<Fitted, FitError> {
    let stop = Arc::new(AtomicBool::new(false));
    let mut seen = 0;
    let fit = Fit { way, start: None, target: None, budget: None, seed: 3 };
    fit.run(linear, Arc::clone(linear) as _, Arc::clone(&stop), &mut |_, _| {
        seen += 1;
        stop.store(Some(seen) == steps, Ordering::Relaxed);
    })
}

/// Goes on with a fit, through the bytes of a checkpoint.
fn resumed(linear: &Arc<Linear>, unfinished: &Unfinished) -> Fitted {
    let mut saver = Saver::default();
    unfinished.gate.save(&mut saver);
    unfinished.walk.save(&mut saver);
    let checkpoint = Checkpoint::from_bytes(&saver.to_bytes()).unwrap();
    run(linear, Way::Resume(Box::new(checkpoint)), None).unwrap()
}

fn assert_same(one: &Fitted, other: &Fitted, what: &str) {
    let bits = |fitted: &Fitted| fitted.point.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(one), bits(other), "{what}");
    assert_eq!(one.gate.ledger(), other.gate.ledger(), "{what}");
    assert_eq!((one.stop, one.steps), (other.stop, other.steps), "{what}");
}

#[test]
fn an_interrupted_fit_goes_on_bit_for_bit() {
    let way = |exact: bool| {
        if exact { Way::SecondOrder } else { Way::Method(Engine::Auto { target: None }) }
    };
    let losses = [
        (Loss::Logistic, 2),
        (Loss::Multinomial { classes: 3 }, 3),
        (Loss::Poisson, 9),
        (Loss::Huber { delta: 0.1 }, 9),
        (Loss::SquaredHinge, 2),
    ];
    for (loss, classes) in losses {
        let linear = table(loss, classes);
        for exact in [true, false] {
            let whole = run(&linear, way(exact), None).unwrap();
            let mut interrupted = 0;
            for steps in 1..=whole.steps {
                let FitError::Interrupted(Some(unfinished)) = (match run(&linear, way(exact), Some(steps)) {
                    // At its end there is nothing to interrupt.
                    Ok(_) => continue,
                    Err(error) => error,
                }) else {
                    panic!("{loss:?} {exact} {steps}: not interrupted")
                };
                interrupted += 1;
                assert_same(&resumed(&linear, &unfinished), &whole, &format!("{loss:?} {exact} {steps}"));
            }
            assert!(interrupted > 0, "{loss:?} {exact}");
        }
    }
}

#[test]
fn second_order_steps_end_at_the_minimiser_wherever_a_run_begins() {
    // All rows begin on the flat part of Huber's loss, by far; one row is extreme in its column and its label; the classes overlap.
    let (rows, columns) = (200, 3);
    let mut xi = Address { seed: 8, role: Role::Setup, step: 0, sample: 0 }.stream();
    let values: Vec<f64> = (0..rows * columns).map(|_| xi.normal()).collect();
    let noise: Vec<f64> = (0..rows).map(|_| xi.normal()).collect();
    let plain = |row: usize| values[row * columns] - 2.0 * values[row * columns + 1] + noise[row];
    let far: Vec<f64> = (0..rows).map(|row| 5000.0 + 100.0 * plain(row)).collect();
    let signs: Vec<f64> = (0..rows).map(|row| if plain(row) > 0.0 { 1.0 } else { -1.0 }).collect();
    let mut extreme = (values.clone(), (0..rows).map(plain).collect::<Vec<f64>>());
    extreme.0[0] = 1e4;
    extreme.1[0] = 1e6;
    let cases = [
        (Loss::Huber { delta: 1.345 }, values.clone(), far),
        (Loss::Huber { delta: 1.345 }, extreme.0, extreme.1),
        (Loss::SquaredHinge, values, signs),
    ];
    for (loss, values, labels) in cases {
        let features = Features::Dense(Dense { rows, columns, values: values.into() });
        let table = Table::new(features, Arc::new(labels), None, Vec::new()).unwrap();
        let linear = Arc::new(Linear::new(Arc::new(table), loss, Design::default()).unwrap());
        assert!(matches!(Way::usual(&linear), Way::SecondOrder));
        let fitted = run(&linear, Way::SecondOrder, None).unwrap();
        assert_eq!(fitted.verdict, Verdict::Certified, "{loss:?}");
        assert!(fitted.end.gradient <= 1e-6 * fitted.start.gradient, "{loss:?}");
        // `auto` knows no second derivatives, and finds the same minimum: f is flat to second order there, so both agree to far more digits than
        // their gradients have.
        let auto = run(&linear, Way::Method(Engine::Auto { target: None }), None).unwrap();
        assert!(fitted.end.objective <= auto.end.objective * (1.0 + 1e-9), "{loss:?}");
    }
}

#[test]
fn a_checkpoint_goes_on_under_another_caution_than_the_first() {
    // Caution falls with the steps, so a checkpoint that forgot it would begin again with the majoriser and take another way.
    let linear = table(Loss::Huber { delta: 0.1 }, 9);
    let FitError::Interrupted(Some(unfinished)) = run(&linear, Way::SecondOrder, Some(2)).unwrap_err() else {
        panic!("not interrupted")
    };
    let mut saver = Saver::default();
    unfinished.walk.save(&mut saver);
    let text = String::from_utf8_lossy(&saver.to_bytes()).into_owned();
    assert!(text.contains("\"caution\"") && !text.contains("\"caution\":1.0"), "{text}");
}

#[test]
fn with_more_weights_than_a_matrix_may_have_its_diagonal_leads_to_the_minimiser() {
    let linear = of_size(300, 600, Loss::Logistic, 2);
    assert!(matches!(Way::usual(&linear), Way::SecondOrder));
    let whole = run(&linear, Way::SecondOrder, None).unwrap();
    assert_eq!(whole.verdict, Verdict::Certified);
    let FitError::Interrupted(Some(unfinished)) = run(&linear, Way::SecondOrder, Some(4)).unwrap_err() else {
        panic!("not interrupted")
    };
    assert_same(&resumed(&linear, &unfinished), &whole, "after four steps");
}
