//! A fit that is interrupted goes on bit for bit.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pasta_opt::checkpoint::{Checkpoint, Saver};
use pasta_opt::draws::{Address, Role};
use pasta_opt::fit::{AtScale, Fit, FitError, Fitted, LeftOut, Verdict, Way};
use pasta_opt::method::Engine;
use pasta_opt::run::{Run, Target};
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
    fit.run(linear, Arc::clone(linear) as _, Arc::clone(&stop), &mut |_| {
        seen += 1;
        stop.store(Some(seen) == steps, Ordering::Relaxed);
    })
}

/// Goes on with a fit, through the bytes of a checkpoint.
fn resumed(linear: &Arc<Linear>, way: Way, unfinished: &Run) -> Fitted {
    let mut saver = Saver::default();
    unfinished.save(&mut saver);
    let mut checkpoint = Checkpoint::from_bytes(&saver.to_bytes()).unwrap();
    let fit = Fit { way, start: None, target: None, budget: None, seed: 3 };
    fit.resume(linear, Arc::clone(linear) as _, &mut checkpoint, Arc::default(), &mut |_| ()).unwrap()
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
        (Loss::Tukey { scale: 2.0 }, 9),
        (Loss::Absolute, 9),
        (Loss::Hinge, 2),
    ];
    for (loss, classes) in losses {
        let linear = table(loss, classes);
        // Losses that are flat far out go by `auto`, which takes hundreds of rounds on kinks.
        let ways = match loss {
            Loss::Tukey { .. } => &[false][..],
            Loss::Absolute | Loss::Hinge => &[true],
            _ => &[true, false],
        };
        for &exact in ways {
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
                assert_same(
                    &resumed(&linear, way(exact), &unfinished),
                    &whole,
                    &format!("{loss:?} {exact} {steps}"),
                );
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
    unfinished.save(&mut saver);
    let text = String::from_utf8_lossy(&saver.to_bytes()).into_owned();
    assert!(text.contains("\"caution\"") && !text.contains("\"caution\":1.0"), "{text}");
}

/// From 0 every row is beyond the reach of Tukey's and Welsch's losses, whose gradient is 0 there: a model of zeros would be certified.
#[test]
fn a_loss_that_is_flat_far_out_is_fitted_from_where_its_convex_kin_is_least() {
    let (rows, columns) = (300, 2);
    let mut xi = Address { seed: 6, role: Role::Setup, step: 0, sample: 0 }.stream();
    let values: Vec<f64> = (0..rows * columns).map(|_| xi.normal()).collect();
    // One row in ten is far off.
    let label = |(row, a): (usize, &[f64])| {
        let error = if row % 10 == 0 { 500.0 } else { xi.normal() };
        100.0 + a[0] - 2.0 * a[1] + error
    };
    let labels: Vec<f64> = values.chunks(columns).enumerate().map(label).collect();
    let features = Features::Dense(Dense { rows, columns, values: values.into() });
    let table = Arc::new(Table::new(features, Arc::new(labels), None, Vec::new()).unwrap());
    for loss in [Loss::Tukey { scale: 4.685 }, Loss::Welsch { scale: 2.985 }, Loss::Cauchy { scale: 2.385 }] {
        let linear = Arc::new(Linear::new(Arc::clone(&table), loss, Design::default()).unwrap());
        let fitted = run(&linear, Way::usual(&linear), None).unwrap();
        assert_eq!(fitted.verdict, Verdict::Certified, "{loss:?}");
        assert!(fitted.target > 0.0 && fitted.end.gradient <= fitted.target, "{loss:?}");
        let model = linear.raw_weights(&fitted.point);
        let errors = [model.weights[0] - 1.0, model.weights[1] + 2.0, model.intercepts[0] - 100.0];
        // Six standard errors of 1/sqrt 270; Cauchy's loss gives the tenth some weight.
        assert!(errors.iter().all(|error| error.abs() < 0.4), "{loss:?}: {errors:?}");
        assert!(matches!(run_with(&linear, Some(5 * 300)), Err(FitError::Budget { passes: 6, .. })));
    }
}

fn run_with(linear: &Arc<Linear>, budget: Option<u128>) -> Result<Fitted, FitError> {
    let fit = Fit { way: Way::usual(linear), start: None, target: None, budget, seed: 3 };
    fit.run(linear, Arc::clone(linear) as _, Arc::default(), &mut |_| ())
}

/// The least value of the mean of max(lo t, hi t) over all lines through two of the points, where it is attained.
fn least_by_pairs(a: &[f64], y: &[f64], loss: impl Fn(f64, f64) -> f64) -> f64 {
    let mean = |w: f64, b: f64| {
        let losses = a.iter().zip(y).map(|(a, y)| loss(w * a + b, *y));
        losses.sum::<f64>() / a.len() as f64
    };
    let pairs = (0..a.len()).flat_map(|i| (0..i).map(move |j| (i, j))).filter(|(i, j)| a[*i] != a[*j]);
    let lines = pairs.map(|(i, j)| {
        let w = (y[i] - y[j]) / (a[i] - a[j]);
        (w, y[i] - w * a[i])
    });
    lines.map(|(w, b)| mean(w, b)).fold(f64::INFINITY, f64::min)
}

/// A line of least absolute errors, or of a quantile, goes through two of the points: all pairs are tried.
#[test]
fn the_gap_of_a_loss_with_a_kink_is_true_and_small() {
    for (seed, rows) in [(1, 5), (2, 30), (3, 60), (4, 61)] {
        let mut xi = Address { seed, role: Role::Setup, step: 0, sample: 0 }.stream();
        // Errors without a mean, in raw units far from 1.
        let a: Vec<f64> = (0..rows).map(|_| 1e3 + 20.0 * xi.normal()).collect();
        let y: Vec<f64> = a.iter().map(|a| 1e-3 * a + 0.01 * xi.normal() / xi.normal()).collect();
        for (loss, low, high) in [(Loss::Absolute, -1.0, 1.0), (Loss::Quantile { level: 0.2 }, -0.2, 0.8)] {
            let features = Features::Dense(Dense { rows, columns: 1, values: a.clone().into() });
            let table = Arc::new(Table::new(features, Arc::new(y.clone()), None, Vec::new()).unwrap());
            let linear = Arc::new(Linear::new(table, loss, Design::default()).unwrap());
            assert!(matches!(Way::usual(&linear), Way::SecondOrder));
            let fitted = run(&linear, Way::usual(&linear), None).unwrap();
            let least = least_by_pairs(&a, &y, |z, y| (low * (z - y)).max(high * (z - y)));
            let (gap, above) = (fitted.gap.unwrap(), fitted.end.objective - least);
            assert_eq!(fitted.verdict, Verdict::Certified, "{loss:?} {rows}: {gap}");
            // Rounding of scores that are differences of numbers of order 1.
            assert!((-1e-14..=gap + 1e-14).contains(&above), "{loss:?} {rows}: {above} {gap}");
            assert!(gap <= 1e-6 * fitted.start.objective, "{loss:?} {rows}: {gap}");
        }
    }
}

/// How small a gradient is small enough at the last width depends on where that width began, far from the start: a run that goes on there keeps it.
#[test]
fn an_interrupted_fit_through_kinks_goes_on_bit_for_bit_far_from_its_start() {
    let (rows, columns) = (80, 2);
    let mut xi = Address { seed: 9, role: Role::Setup, step: 0, sample: 0 }.stream();
    let values: Vec<f64> = (0..rows * columns).map(|_| xi.normal()).collect();
    let labels: Vec<f64> = values.chunks(columns).map(|a| 1e4 + a[0] - a[1] + xi.normal()).collect();
    let features = Features::Dense(Dense { rows, columns, values: values.into() });
    let table = Arc::new(Table::new(features, Arc::new(labels), None, Vec::new()).unwrap());
    let linear = Arc::new(Linear::new(table, Loss::Absolute, Design::default()).unwrap());
    let whole = run(&linear, Way::SecondOrder, None).unwrap();
    let mut interrupted = 0;
    for steps in 1..whole.steps {
        // A change of the width asks nothing, and does not see that it is to stop.
        if let Err(FitError::Interrupted(Some(unfinished))) = run(&linear, Way::SecondOrder, Some(steps)) {
            interrupted += 1;
            assert_same(&resumed(&linear, Way::SecondOrder, &unfinished), &whole, &steps.to_string());
        }
    }
    assert!(2 * interrupted > whole.steps, "{interrupted} of {}", whole.steps);
}

fn of_columns(columns: usize, values: Vec<f64>, labels: Vec<f64>, loss: Loss) -> Arc<Linear> {
    let features = Features::Dense(Dense { rows: labels.len(), columns, values: values.into() });
    let table = Arc::new(Table::new(features, Arc::new(labels), None, Vec::new()).unwrap());
    Arc::new(Linear::new(table, loss, Design::default()).unwrap())
}

/// Columns that are the same but for their fifth digit have weights of 10^5, and scores few digits: what slopes of a narrow smoothing leave is corrected.
#[test]
fn kinks_are_certified_where_columns_nearly_depend_on_each_other() {
    let mut xi = Address { seed: 4, role: Role::Setup, step: 0, sample: 0 }.stream();
    let rows = 400;
    let (mut values, mut labels) = (Vec::new(), Vec::new());
    for _ in 0..rows {
        let (a, b) = (xi.normal(), xi.normal());
        values.extend([a, b, a + 1e-5 * xi.normal()]);
        labels.push(a + b + xi.normal());
    }
    let signs: Vec<f64> = labels.iter().map(|y| y.signum()).collect();
    for (loss, labels) in
        [(Loss::Absolute, &labels), (Loss::Quantile { level: 0.3 }, &labels), (Loss::Hinge, &signs)]
    {
        let linear = of_columns(3, values.clone(), labels.clone(), loss);
        let fitted = run(&linear, Way::SecondOrder, None).unwrap();
        assert_eq!(fitted.verdict, Verdict::Certified, "{loss:?}: {:?}", fitted.gap);
        // The gap holds for a point that is as low as another target gets.
        let fit = Fit {
            way: Way::SecondOrder,
            start: None,
            target: Some(Target::Norm(1e-9)),
            budget: None,
            seed: 1,
        };
        let lower = fit.run(&linear, linear.clone(), Arc::default(), &mut |_| ()).unwrap();
        assert!(fitted.end.objective - lower.end.objective <= fitted.gap.unwrap(), "{loss:?}");
    }
}

#[test]
fn a_fit_through_kinks_from_the_minimiser_ends_there() {
    // Five zeros are the median, whatever the column.
    let labels = vec![0.0, 0.0, 5.0, 0.0, -7.0, 0.0, 0.0];
    let linear = of_columns(1, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], labels, Loss::Absolute);
    let fitted = run(&linear, Way::SecondOrder, None).unwrap();
    assert_eq!((fitted.verdict, &fitted.point[..]), (Verdict::Certified, &[0.0, 0.0][..]));
}

/// Two columns and noisy classes; one cell, of a row of the first class, is far off.
fn with_a_cell_far_off(loss: Loss, cell: f64) -> (Arc<Linear>, Vec<f64>, Vec<f64>) {
    let mut xi = Address { seed: 6, role: Role::Setup, step: 0, sample: 0 }.stream();
    let (mut values, mut labels) = (Vec::new(), Vec::new());
    for row in 0..400 {
        let (a, b) = (xi.normal(), xi.normal());
        let label = if row == 8 || 2.0 * a + b + xi.normal() > 0.0 { 1.0 } else { -1.0 };
        values.extend([if row == 8 { cell } else { a }, b]);
        labels.push(label);
    }
    (of_columns(2, values.clone(), labels.clone(), loss), values, labels)
}

/// Standardised by such a cell, the weight of the best model is 10^9, far beyond any distance that a bound could take for granted.
#[test]
fn no_hinge_fit_is_certified_above_a_model_far_away() {
    for cell in [1e6, 1e10, 1e12] {
        let (linear, values, labels) = with_a_cell_far_off(Loss::Hinge, cell);
        let fitted = run(&linear, Way::SecondOrder, None).unwrap();
        let losses =
            values.chunks(2).zip(&labels).map(|(a, y)| (1.0 - y * (1.5 * a[0] + 0.75 * a[1])).max(0.0));
        let by_hand = losses.sum::<f64>() / labels.len() as f64;
        assert!(fitted.end.objective - by_hand <= fitted.gap.unwrap(), "{cell}: {:?}", fitted.gap);
    }
}

/// Nor does such a cell make classes that overlap separable.
#[test]
fn classes_that_overlap_have_a_minimiser_beside_a_cell_far_off() {
    for cell in [1e3, 1e6, 1e9] {
        let (linear, ..) = with_a_cell_far_off(Loss::Logistic, cell);
        let mut fitted = run(&linear, Way::SecondOrder, None).unwrap();
        assert!(!fitted.has_no_minimiser(&linear, None, Arc::default()).unwrap(), "{cell}");
    }
}

/// What is added to all labels is the intercept's, and changes no weight.
#[test]
fn labels_far_from_zero_are_fitted_as_well_as_others() {
    let mut xi = Address { seed: 5, role: Role::Setup, step: 0, sample: 0 }.stream();
    let values: Vec<f64> = (0..600).map(|_| xi.normal()).collect();
    let labels: Vec<f64> = values.chunks(3).map(|a| a[0] - 2.0 * a[1] + xi.normal()).collect();
    for loss in
        [Loss::LeastSquares, Loss::Huber { delta: 1.0 }, Loss::Absolute, Loss::Quantile { level: 0.9 }]
    {
        let weights = |offset: f64| {
            let labels = labels.iter().map(|y| y + offset).collect();
            let linear = of_columns(3, values.clone(), labels, loss);
            let fitted = run(&linear, Way::usual(&linear), None).unwrap();
            assert_eq!(fitted.verdict, Verdict::Certified, "{loss:?} {offset}");
            linear.raw_weights(&fitted.point).weights
        };
        let (near, far) = (weights(0.0), weights(1e9));
        // Labels of 1e9 have seven digits after the point.
        assert!(near.iter().zip(&far).all(|(a, b)| (a - b).abs() < 1e-3), "{loss:?}: {near:?} {far:?}");
    }
}

/// Hinge: the gap is a true statement about every other point that is tried, and about the minimiser of many passes.
#[test]
fn no_point_is_lower_than_the_gap_of_a_hinge_fit_allows() {
    let linear = table(Loss::Hinge, 2);
    let fitted = run(&linear, Way::SecondOrder, None).unwrap();
    assert_eq!(fitted.verdict, Verdict::Certified);
    let by_auto = run(&linear, Way::Method(Engine::Auto { target: None }), None).unwrap();
    assert_eq!((by_auto.verdict, by_auto.gap), (Verdict::Kinks, None));
    let floor = fitted.end.objective - fitted.gap.unwrap();
    assert!(by_auto.end.objective >= floor && by_auto.end.objective - floor < 1e-3);
    let mut xi = Address { seed: 8, role: Role::Setup, step: 0, sample: 0 }.stream();
    for size in [1e-6, 1e-3, 0.1, 1.0] {
        let near: Vec<f64> = fitted.point.iter().map(|x| x + size * xi.normal()).collect();
        let mut gate = pasta_opt::gate::Gate::over(Arc::clone(&linear) as _, 1);
        assert!(pasta_opt::fit::exactly(&mut gate, Role::Look, &near).unwrap().objective >= floor);
    }
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
    assert_same(&resumed(&linear, Way::SecondOrder, &unfinished), &whole, "after four steps");
}

/// Eight rows of noise, and two columns that agree to some digits: the labels are a combination of both, with weights of 10^14, say.
fn agreeing(seed: u64, digits: i32, loss: Loss) -> Arc<Linear> {
    let mut xi = Address { seed, role: Role::Setup, step: 0, sample: 0 }.stream();
    let rows = 8;
    let (mut values, mut labels) = (Vec::new(), Vec::new());
    for _ in 0..rows {
        let (a, difference) = (xi.normal(), xi.normal().signum());
        let b = a + 10f64.powi(-digits) * difference;
        values.extend([a, b]);
        // What the doubles differ by, not what they were made to.
        labels.push(if b > a { 1.0 } else { -1.0 });
    }
    of_columns(2, values, labels, loss)
}

/// With w = (-1, 1)/10^-digits the scores are the labels, but for rounding of the columns: f is 0.2 or less, and 1 at most of what no difference is used for.
#[test]
fn no_gap_of_a_loss_with_a_kink_forgets_models_far_away() {
    for digits in [5, 8, 10, 12, 13, 14, 15] {
        for (seed, loss) in (1..=4).flat_map(|seed| {
            [(seed, Loss::Absolute), (seed, Loss::Quantile { level: 0.3 }), (seed, Loss::Hinge)]
        }) {
            let linear = agreeing(seed, digits, loss);
            let fitted = run(&linear, Way::SecondOrder, None).unwrap();
            // The labels are known exactly from the signs of b - a, which are differences of doubles and exact; f at this model, in units of the last place of the columns.
            let far = {
                let scale = 10f64.powi(digits);
                let Features::Dense(dense) = &linear.table().features else { unreachable!() };
                let pasta_opt::table::Values::F64(values) = &dense.values else { unreachable!() };
                let labels = (*linear.table().labels).as_ref();
                let losses = (**values)
                    .as_ref()
                    .chunks(2)
                    .zip(labels)
                    .map(|(a, y)| loss.differentiate(&mut [scale * (a[1] - a[0])], *y));
                losses.sum::<f64>() / 8.0
            };
            let gap = fitted.gap.unwrap();
            assert!(
                fitted.end.objective - far <= gap * (1.0 + 1e-9) + 1e-12,
                "{loss:?} {digits} {seed}: {} {far} {gap}",
                fitted.end.objective
            );
            if digits <= 10 {
                assert_eq!(fitted.verdict, Verdict::Certified, "{loss:?} {digits} {seed}: {gap}");
            }
        }
    }
}

/// A sum of whole numbers is exactly that; it is left out, and the gap is one of all columns.
#[test]
fn a_column_that_is_a_sum_of_others_is_named_and_does_no_harm() {
    let mut xi = Address { seed: 4, role: Role::Setup, step: 0, sample: 0 }.stream();
    let (mut values, mut labels) = (Vec::new(), Vec::new());
    for _ in 0..60 {
        let (a, b) = ((10.0 * xi.normal()).round(), (10.0 * xi.normal()).round());
        values.extend([a, 7.0, b, a + b]);
        labels.push(a - b + 5.0 * xi.normal());
    }
    let names = ["a", "seven", "b", "sum"].map(str::to_owned);
    for loss in [Loss::LeastSquares, Loss::Absolute, Loss::Huber { delta: 5.0 }] {
        let linear = of_columns(4, values.clone(), labels.clone(), loss);
        let fitted = run(&linear, Way::SecondOrder, None).unwrap();
        assert_eq!(fitted.verdict, Verdict::Certified, "{loss:?}: {:?}", fitted.gap);
        let words = "the minimiser is not unique: rank 2 of 4; left out, with weight 0: sum (depends on columns before it), seven (constant)";
        assert_eq!(LeftOut::words(&fitted.left_out, &names).as_deref(), Some(words), "{loss:?}");
        let weights = linear.raw_weights(&fitted.point).weights;
        assert_eq!((weights[1], weights[3]), (0.0, 0.0), "{loss:?}");
    }
}

/// Fewer rows than columns: some columns fit every label, and the others are named.
#[test]
fn more_columns_than_rows_are_left_out_by_name() {
    let mut xi = Address { seed: 7, role: Role::Setup, step: 0, sample: 0 }.stream();
    let values: Vec<f64> = (0..10 * 30).map(|_| xi.normal()).collect();
    let labels: Vec<f64> = (0..10).map(|_| xi.normal()).collect();
    let linear = of_columns(30, values, labels, Loss::LeastSquares);
    let fitted = run(&linear, Way::SecondOrder, None).unwrap();
    assert_eq!(fitted.verdict, Verdict::Certified);
    let left_out: Vec<usize> = fitted.left_out.iter().map(|left_out| left_out.feature).collect();
    // Nine of them, centred, have ten rows less the mean.
    assert_eq!(left_out, (9..30).collect::<Vec<_>>());
    assert!(fitted.point[9..30].iter().all(|w| *w == 0.0));
}

/// Prices in dollars and in thousands are the same prices.
#[test]
fn labels_in_other_units_make_the_same_robust_model() {
    let mut xi = Address { seed: 3, role: Role::Setup, step: 0, sample: 0 }.stream();
    let rows = 200;
    let (mut values, mut labels) = (Vec::new(), Vec::new());
    for row in 0..rows {
        let (a, b) = (xi.normal(), 50.0 + 10.0 * xi.normal());
        values.extend([a, b]);
        // One row in eight is far off; the errors of the others have deviation 3.
        let error = if row % 8 == 0 { 200.0 } else { 3.0 * xi.normal() };
        labels.push(20.0 + 2.0 * a - 0.5 * b + error);
    }
    for loss in [
        Loss::Huber { delta: 1.0 },
        Loss::Cauchy { scale: 1.0 },
        Loss::Welsch { scale: 1.0 },
        Loss::Tukey { scale: 1.0 },
    ] {
        let model = |unit: f64| {
            let linear = of_columns(2, values.clone(), labels.iter().map(|y| unit * y).collect(), loss);
            let at = AtScale::of(&linear, None, 1, Arc::default()).unwrap().unwrap();
            // An eighth of the rows move the median of 1.4826 |r| up by a seventh or so; three standard errors of 200 rows are another quarter.
            assert!((0.7..1.5).contains(&(at.deviation / (3.0 * unit))), "{loss:?}: {}", at.deviation);
            let fitted = run(&at.linear, Way::usual(&at.linear), None).unwrap();
            assert_eq!(fitted.verdict, Verdict::Certified, "{loss:?} {unit}");
            let model = at.linear.raw_weights(&fitted.point);
            [model.weights[0] / unit, model.weights[1] / unit, model.intercepts[0] / unit]
        };
        let (one, thousand) = (model(1.0), model(1000.0));
        // Both gradients are a millionth of those at the start; `auto` does not take the last steps.
        assert!(
            one.iter().zip(&thousand).all(|(a, b)| (a - b).abs() < 1e-4 * a.abs()),
            "{loss:?}: {one:?} {thousand:?}"
        );
    }
    let linear = of_columns(2, values, labels, Loss::Absolute);
    assert!(AtScale::of(&linear, None, 1, Arc::default()).unwrap().is_none());
}

/// Labels that a line fits exactly leave no residuals: the scale is that of the labels.
#[test]
fn a_perfect_fit_has_a_scale_all_the_same() {
    let values: Vec<f64> = (0..20).map(f64::from).collect();
    let labels = values.iter().map(|a| 3.0 * a - 1.0).collect();
    let linear = of_columns(1, values, labels, Loss::Huber { delta: 1.0 });
    let at = AtScale::of(&linear, None, 1, Arc::default()).unwrap().unwrap();
    // The median distance of 3 times 0, .., 19 from their median is 15.
    assert!((at.deviation * 0.6745 - 15.0).abs() <= 1.5, "{}", at.deviation);
    let flat = of_columns(1, vec![1.0, 2.0, 3.0], vec![4.0; 3], Loss::Huber { delta: 1.0 });
    assert_eq!(AtScale::of(&flat, None, 1, Arc::default()).unwrap().unwrap().deviation, 1.0);
}

/// Every row occurs with both labels, so that no direction tells them apart; with `alone`, two more rows, of one label, are not zero in a column that is zero elsewhere, which then has no
/// best weight. The columns are mixed, so that none of them shows it by itself.
fn told_apart(seed: u64, loss: Loss, alone: bool) -> Arc<Linear> {
    let mut xi = Address { seed, role: Role::Setup, step: 0, sample: 0 }.stream();
    let (mut values, mut labels) = (Vec::new(), Vec::new());
    let yes = |count: f64| if loss == Loss::Poisson { 1.0 + count } else { 1.0 };
    let mut row = |a: [f64; 3], label: f64| {
        values.extend([a[0] + 2.0 * a[2], a[1] - a[2], a[0] + a[1] + 3.0 * a[2]]);
        labels.push(label);
    };
    for _ in 0..12 {
        let a = [(3.0 * xi.normal()).round(), (30.0 * xi.normal()).round(), 0.0];
        row(a, yes((2.0 * xi.normal()).abs().round()));
        row(a, 0.0);
    }
    if alone {
        (1..=2).for_each(|k| row([f64::from(k), 3.0, f64::from(k)], 0.0));
    } else {
        row([1.0, 3.0, 1.0], 0.0);
        row([1.0, 3.0, 1.0], yes(0.0));
    }
    of_columns(3, values, labels, loss)
}

#[test]
fn a_loss_without_a_minimiser_is_told_from_one_with() {
    for loss in [Loss::Logistic, Loss::Poisson] {
        for seed in 1..=20 {
            for alone in [false, true] {
                let linear = told_apart(seed, loss, alone);
                let mut fitted = run(&linear, Way::SecondOrder, None).unwrap();
                let falls = fitted.has_no_minimiser(&linear, None, Arc::default()).unwrap();
                assert_eq!(falls, alone, "{loss:?} {seed}");
            }
        }
    }
}

/// Fifteen rows, five columns, three counts that are not zero: a linear program finds a direction in which all zeros fall. Second derivatives in it are 10^-14 of the others'.
#[test]
fn counts_that_are_zero_in_a_direction_of_all_columns_have_no_minimiser() {
    #[rustfmt::skip]
    let values = vec![
        -8.3, 0.012, -0.012, -0.048, 7.3, -3.6, -0.133, -0.046, 0.148, -2.6, -6.7, -0.302, -0.084, -0.06, 5.0, -13.5, 0.039, 0.11, -0.102, -0.8,
        16.7, 0.033, -0.085, -0.033, 23.5, -4.6, -0.229, -0.044, -0.05, -6.2, 3.4, 0.139, 0.163, 0.172, 4.7, -5.1, -0.06, -0.121, 0.104, -5.9,
        7.3, 0.041, 0.122, -0.011, 5.4, 11.7, 0.248, 0.041, 0.065, 1.8, -12.6, 0.091, 0.112, -0.091, 11.0, -14.4, 0.019, -0.066, 0.039, -11.6,
        25.0, -0.043, 0.131, 0.154, -4.1, -1.0, 0.098, -0.029, -0.023, -13.7, -6.8, -0.076, 0.048, 0.05, -9.5,
    ];
    let labels = vec![0.0, 3.0, 2.0, 0.0, 0.0, 0.0, 0.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    let linear = of_columns(5, values, labels, Loss::Poisson);
    let mut fitted = run(&linear, Way::SecondOrder, None).unwrap();
    assert!(fitted.has_no_minimiser(&linear, None, Arc::default()).unwrap());
}
