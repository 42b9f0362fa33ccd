//! Penalties and bounds on the weights of a linear model: optimality, gaps that hold, weights that are exactly 0.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pasta_opt::checkpoint::{Checkpoint, Saver};
use pasta_opt::fit::{Fit, FitError, Fitted, Verdict, Way};
use pasta_opt::gate::Gate;
use pasta_opt::proximal::Penalties;
use pasta_opt::table::{Dense, Design, Features, Linear, Loss, Sparse, Table, Values};
use pasta_opt::term::{Steps, Term};

/// Numbers that look random, the same on every machine.
fn numbers(n: usize, seed: u64) -> Vec<f64> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    // Sums of four uniforms: nearly normal.
    (0..n).map(|_| 2.0 * (next() + next() + next() + next() - 2.0)).collect()
}

/// A table in which every third column counts, and neighbours are correlated.
fn table(rows: usize, columns: usize, loss: Loss, sparse: bool, weights: bool) -> Arc<Table> {
    let mut values = numbers(rows * columns, 7);
    for row in values.chunks_mut(columns) {
        for j in 1..columns {
            row[j] += 0.6 * row[j - 1];
        }
        for (j, a) in row.iter_mut().enumerate() {
            *a = if sparse && *a < 0.5 { 0.0 } else { *a * (1.0 + j as f64 % 3.0) + 0.3 };
            *a = if sparse && *a == 0.3 { 0.0 } else { *a };
        }
    }
    let noise = numbers(rows, 8);
    let label = |(row, noise): (&[f64], &f64)| {
        let z: f64 =
            row.iter().step_by(3).enumerate().map(|(i, a)| a * [0.5, -0.4, 0.3][i % 3]).sum::<f64>() / 2.0;
        match loss {
            Loss::Logistic | Loss::SquaredHinge => (z + noise).signum(),
            Loss::Poisson => (0.3 * z.clamp(-3.0, 3.0) + 0.5 * noise).exp().round(),
            Loss::Multinomial { .. } => {
                f64::from(u8::from(z + noise > -0.5)) + f64::from(u8::from(z + noise > 0.5))
            }
            _ => z + 0.5 * noise + 3.0,
        }
    };
    let labels: Vec<f64> = values.chunks(columns).zip(&noise).map(label).collect();
    let features = if sparse {
        let (mut starts, mut indices, mut kept) = (vec![0u64], Vec::new(), Vec::new());
        for row in values.chunks(columns) {
            for (j, a) in row.iter().enumerate().filter(|(_, a)| **a != 0.0) {
                indices.push(j as u32);
                kept.push(*a);
            }
            starts.push(kept.len() as u64);
        }
        let (starts, indices) = (Arc::new(starts), Arc::new(indices));
        Features::Sparse(Sparse { columns, starts, indices, values: Values::F64(Arc::new(kept)) })
    } else {
        Features::Dense(Dense { rows, columns, values: values.into() })
    };
    let weights = weights.then(|| pasta_opt::table::shared((0..rows).map(|i| (i % 4) as f64).collect()));
    Arc::new(Table::new(features, Arc::new(labels), weights, Vec::new()).unwrap())
}

fn fitted(linear: &Arc<Linear>, penalties: &Penalties) -> Fitted {
    let way = Way::Proximal(penalties.term(linear).unwrap());
    let fit = Fit { way, start: None, target: None, budget: None, seed: 1 };
    fit.run(linear, linear.clone(), Arc::default(), &mut |_| ()).unwrap()
}

#[test]
fn a_fit_with_a_penalty_that_is_interrupted_goes_on_bit_for_bit() {
    // With more columns than a matrix has, least squares keep the matrix of a set.
    let cases = [(Loss::LeastSquares, 600, 0.05), (Loss::LeastSquares, 8, 0.05), (Loss::Logistic, 8, 0.01)];
    for (loss, columns, l1) in cases {
        let table = table(120, columns, loss, columns > 8, false);
        let linear = Arc::new(Linear::new(table, loss, Design::default()).unwrap());
        let fit = || {
            let way = Way::Proximal(Penalties { l1, ..Penalties::default() }.term(&linear).unwrap());
            Fit { way, start: None, target: None, budget: None, seed: 1 }
        };
        let whole = fit().run(&linear, linear.clone(), Arc::default(), &mut |_| ()).unwrap();
        let mut interrupted = 0;
        for steps in 1..=whole.steps {
            let flag = Arc::new(AtomicBool::new(false));
            let mut seen = 0;
            let stopped = fit().run(&linear, linear.clone(), Arc::clone(&flag), &mut |_| {
                seen += 1;
                flag.store(seen == steps, Ordering::Relaxed);
            });
            let Err(FitError::Interrupted(Some(run))) = stopped else { continue };
            interrupted += 1;
            let mut saver = Saver::default();
            run.save(&mut saver);
            let mut checkpoint = Checkpoint::from_bytes(&saver.to_bytes()).unwrap();
            let stop = Arc::default();
            let again = fit().resume(&linear, linear.clone(), &mut checkpoint, stop, &mut |_| ()).unwrap();
            let bits = |fitted: &Fitted| fitted.point.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&again), bits(&whole), "{loss:?} {columns} {steps}");
            assert_eq!(again.gate.ledger(), whole.gate.ledger(), "{loss:?} {columns} {steps}");
            assert_eq!((again.stop, again.gap), (whole.stop, whole.gap), "{loss:?} {columns} {steps}");
        }
        assert!(interrupted > 0, "{loss:?} {columns}");
    }
}

/// f and its gradient, by a pass.
fn evaluate(linear: &Arc<Linear>, x: &[f64]) -> (f64, Vec<f64>) {
    use pasta_opt::draws::Role;
    use pasta_opt::oracle::{Answer, Request};
    let mut gate = Gate::over(linear.clone(), 1);
    let (mut gradient, mut losses) = (vec![0.0; x.len()], [0.0]);
    let mut answer = Answer { losses: &mut losses, ..Answer::new(&mut gradient) };
    gate.ask(Request { losses: true, ..Request::everything(Role::Look, &[x]) }, &mut answer).unwrap();
    (losses[0], gradient)
}

/// The least value by plain proximal gradient steps with momentum, which know nothing of matrices, sets or dual points.
fn reference(linear: &Arc<Linear>, term: &dyn Term, steps: usize) -> f64 {
    let mut x = vec![0.0; linear.dim()];
    term.prox(Steps::One(1e-300), &mut x);
    let (mut y, mut momentum, mut gamma) = (x.clone(), 1.0_f64, 1.0);
    let mut least = f64::INFINITY;
    for _ in 0..steps {
        let (f, g) = evaluate(linear, &y);
        let next = loop {
            let mut z: Vec<f64> = y.iter().zip(&g).map(|(y, g)| y - gamma * g).collect();
            term.prox(Steps::One(gamma), &mut z);
            let (after, _) = evaluate(linear, &z);
            let model: f64 = z
                .iter()
                .zip(&y)
                .zip(&g)
                .map(|((z, y), g)| g * (z - y) + (z - y).powi(2) / (2.0 * gamma))
                .sum();
            if after <= f + model + 1e-13 * f.abs() {
                least = least.min(after + term.value(&z));
                break z;
            }
            gamma *= 0.5;
        };
        let after = f64::midpoint(1.0, (1.0 + 4.0 * momentum * momentum).sqrt());
        let turns: f64 = (0..x.len()).map(|i| (y[i] - next[i]) * (next[i] - x[i])).sum();
        let by = if turns > 0.0 { 0.0 } else { (momentum - 1.0) / after };
        y = next.iter().zip(&x).map(|(next, x)| next + by * (next - x)).collect();
        term.prox(Steps::One(1e-300), &mut y);
        momentum = if turns > 0.0 { 1.0 } else { after };
        x = next;
    }
    least
}

const LOSSES: [Loss; 5] =
    [Loss::LeastSquares, Loss::Logistic, Loss::Poisson, Loss::SquaredHinge, Loss::Huber { delta: 1.0 }];

fn all_penalties() -> [Penalties; 4] {
    let bounds = |lower: f64, upper: f64| (vec![lower], vec![upper]);
    let (lower, upper) = bounds(0.0, f64::INFINITY);
    let (low, high) = bounds(-0.05, 0.04);
    [
        Penalties { l1: 0.05, ..Penalties::default() },
        Penalties { l1: 0.02, lower: lower.clone(), upper: upper.clone() },
        Penalties { l1: 0.0, lower, upper },
        Penalties { l1: 0.0, lower: low, upper: high },
    ]
}

#[test]
fn it_finds_the_minimum_that_proximal_gradient_steps_find() {
    for (n, loss) in LOSSES.into_iter().enumerate() {
        let (sparse, weights) = (n % 2 == 1, n % 3 == 1);
        let table = table(120, 10, loss, sparse, weights);
        for (case, penalties) in all_penalties().iter().enumerate() {
            let penalty = if case == 0 { 0.01 } else { 0.0 };
            let design = Design { penalty, intercept: case != 1, ..Design::default() };
            let linear = Arc::new(Linear::new(table.clone(), loss, design).unwrap());
            let term = penalties.term(&linear).unwrap();
            let fitted = fitted(&linear, penalties);
            assert_eq!(fitted.verdict, Verdict::Certified, "{loss:?} {penalties:?}: {fitted:?}");
            let (f, _) = evaluate(&linear, &fitted.point);
            let value = f + term.value(&fitted.point);
            assert!((value - fitted.end.objective).abs() <= 1e-13 * value.abs());
            let least = reference(&linear, &term, 1500);
            // Neither is allowed to be better than the other by more than rounding and what 1,500 gradient steps leave.
            assert!(value <= least + 1e-13 * least.abs(), "{loss:?} {penalties:?}: {value} above {least}");
            assert!(value >= least - 1e-8 * least.abs(), "{loss:?} {penalties:?}: {value} below {least}");
            // The gap bounds what is left; with open bounds alone there is none.
            assert_eq!(fitted.gap.is_none(), case == 2, "{loss:?} {penalties:?}");
            if let Some(gap) = fitted.gap {
                assert!(gap <= 1e-11 * value.abs(), "{loss:?} {penalties:?}: {gap}");
                assert!(fitted.end.objective - least <= gap + 1e-13 * least.abs());
            }
            // Bounds are kept by the weights of the table's own columns.
            let model = linear.raw_weights(&fitted.point);
            for w in &model.weights {
                assert!(penalties.lower.iter().all(|l| w >= l) && penalties.upper.iter().all(|u| w <= u));
            }
            if case < 3 {
                assert!(model.weights.contains(&0.0), "{loss:?} {penalties:?}: {:?}", model.weights);
            }
        }
    }
}

#[test]
fn a_gap_is_never_below_the_distance_to_the_minimum() {
    for loss in LOSSES {
        let linear = Arc::new(Linear::new(table(80, 6, loss, false, true), loss, Design::default()).unwrap());
        let penalties = Penalties { l1: 0.05, ..Penalties::default() };
        let best = fitted(&linear, &penalties).end.objective;
        let x = numbers(linear.dim(), 3);
        for share in [1.0, 0.3, 0.1, 0.01, 0.0] {
            let start: Vec<f64> = x.iter().map(|x| share * x).collect();
            // A budget for the start, its gap and those of the end, but not for getting anywhere.
            let way = Way::Proximal(penalties.term(&linear).unwrap());
            let fit = Fit { way, start: Some(start), target: None, budget: Some(8 * 80), seed: 1 };
            let short = fit.run(&linear, linear.clone(), Arc::default(), &mut |_| ()).unwrap();
            assert!(short.gap.unwrap() >= short.end.objective - best, "{loss:?} {share}");
        }
    }
}

#[test]
fn a_lasso_of_more_columns_than_a_matrix_has_is_found_by_sets() {
    for (loss, sparse, l1) in [(Loss::LeastSquares, true, 0.1), (Loss::Logistic, false, 0.03)] {
        let linear =
            Arc::new(Linear::new(table(150, 900, loss, sparse, false), loss, Design::default()).unwrap());
        let fitted = fitted(&linear, &Penalties { l1, ..Penalties::default() });
        assert_eq!(fitted.verdict, Verdict::Certified);
        assert!(fitted.gap.unwrap() <= 1e-11 * fitted.end.objective, "{:?}", fitted.gap);
        let kept = fitted.point.iter().filter(|x| **x != 0.0).count();
        assert!((3..150).contains(&kept), "{kept} weights");
    }
}

#[test]
fn several_classes_are_fitted_without_a_gap() {
    let loss = Loss::Multinomial { classes: 3 };
    let linear = Arc::new(Linear::new(table(150, 6, loss, false, false), loss, Design::default()).unwrap());
    let penalties = Penalties { l1: 0.03, ..Penalties::default() };
    let fitted = fitted(&linear, &penalties);
    assert_eq!((fitted.verdict, fitted.gap), (Verdict::Certified, None));
    let least = reference(&linear, &penalties.term(&linear).unwrap(), 1000);
    assert!((fitted.end.objective - least).abs() <= 1e-8 * least);
}

#[test]
fn without_penalties_it_is_the_plain_fit() {
    let loss = Loss::Logistic;
    let design = Design { penalty: 0.01, ..Design::default() };
    let linear = Arc::new(Linear::new(table(200, 5, loss, false, false), loss, design).unwrap());
    let plain = Fit { way: Way::SecondOrder, start: None, target: None, budget: None, seed: 1 };
    let plain = plain.run(&linear, linear.clone(), Arc::default(), &mut |_| ()).unwrap();
    let free = fitted(&linear, &Penalties::default());
    for (a, b) in plain.point.iter().zip(&free.point) {
        assert!((a - b).abs() <= 1e-10, "{a} {b}");
    }
}

#[test]
fn a_large_penalty_leaves_the_intercept_alone() {
    let linear = Arc::new(
        Linear::new(table(50, 4, Loss::LeastSquares, false, false), Loss::LeastSquares, Design::default())
            .unwrap(),
    );
    let fitted = fitted(&linear, &Penalties { l1: 1e6, ..Penalties::default() });
    let model = linear.raw_weights(&fitted.point);
    assert_eq!((model.weights.as_slice(), fitted.verdict), (&[0.0; 4][..], Verdict::Certified));
    assert!((model.intercepts[0] - 3.0).abs() < 0.5);
}

#[test]
fn what_cannot_be_is_refused() {
    let loss = Loss::LeastSquares;
    let linear = Arc::new(Linear::new(table(50, 4, loss, false, false), loss, Design::default()).unwrap());
    let refused = |penalties: Penalties| penalties.term(&linear).unwrap_err().to_string();
    assert!(
        refused(Penalties { l1: -1.0, ..Penalties::default() })
            .contains("l1 must be finite and at least 0, but is -1")
    );
    let crossed = Penalties { lower: vec![1.0], upper: vec![0.0], ..Penalties::default() };
    assert!(refused(crossed).starts_with("feature 0 lies nowhere"));
    assert!(
        refused(Penalties { lower: vec![0.0; 3], ..Penalties::default() })
            .contains("lower has 3 numbers for 4 features")
    );
    let kinked = Arc::new(linear.with_loss(Loss::Absolute).unwrap());
    let way = Way::Proximal(Penalties::default().term(&kinked).unwrap());
    let fit = Fit { way, start: None, target: None, budget: None, seed: 1 };
    let error = fit.run(&kinked, kinked.clone(), Arc::default(), &mut |_| ()).unwrap_err();
    assert!(error.to_string().contains("not smooth and convex"), "{error}");
}
