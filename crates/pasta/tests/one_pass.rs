//! Rows that go by once, second derivatives, and second-order steps.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use pasta_opt::certificate::{Basis, Claim, Verdict};
use pasta_opt::draws::{Address, Role, Stream};
use pasta_opt::gate::Gate;
use pasta_opt::newton::{Newton, falls_for_ever};
use pasta_opt::one_pass::OnePass;
use pasta_opt::stop::Stop;
use pasta_opt::table::{
    Dense, Design, Features, Hessian, LOSSES, Labels, Linear, Loss, Sparse, Table, TableError,
};
use pasta_opt::walk::Walk;

fn stream(seed: u64) -> Stream {
    Address { seed, role: Role::Setup, step: 0, sample: 0 }.stream()
}

/// Rows of correlated columns, and labels of a linear model with noise that fit the loss.
fn block(loss: Loss, rows: usize, columns: usize, seed: u64) -> Arc<Table> {
    let mut xi = stream(seed);
    let (mut values, mut labels) = (Vec::new(), Vec::new());
    for _ in 0..rows {
        let common = xi.normal();
        let a: Vec<f64> = (0..columns).map(|j| 2.0 + common + (1.0 + j as f64) * xi.normal()).collect();
        let z: f64 = a.iter().enumerate().map(|(j, a)| 0.3 * a * if j % 2 == 0 { 1.0 } else { -1.0 }).sum();
        let z = 0.5 * (z - 0.3);
        labels.push(match loss.row().labels {
            Labels::Real => z + 0.5 * xi.normal(),
            Labels::Signs => f64::from(u8::from(xi.uniform() < 1.0 / (1.0 + (-z).exp()))),
            Labels::Classes => {
                f64::from(u8::from(xi.uniform() < 1.0 / (1.0 + (-z).exp())))
                    + f64::from(u8::from(a[0] > 4.0 && xi.bernoulli(0.5)))
            }
            Labels::Counts => (z.clamp(-3.0, 3.0).exp() + xi.uniform()).floor(),
        });
        values.extend(a);
    }
    let features = Features::Dense(Dense { rows, columns, values: values.into() });
    Arc::new(Table::new(features, Arc::new(labels), None, Vec::new()).unwrap())
}

fn joined(blocks: &[Arc<Table>]) -> Arc<Table> {
    let (mut values, mut labels, mut columns) = (Vec::new(), Vec::new(), 0);
    for table in blocks {
        for row in 0..table.rows() {
            table.features.visit_row(row, |_, value| values.push(value));
        }
        labels.extend_from_slice((*table.labels).as_ref());
        columns = table.columns();
    }
    let features = Features::Dense(Dense { rows: labels.len(), columns, values: values.into() });
    Arc::new(Table::new(features, Arc::new(labels), None, Vec::new()).unwrap())
}

fn losses() -> impl Iterator<Item = Loss> {
    LOSSES.iter().map(|row| Loss::named(row.name, None, 3).unwrap())
}

/// Differences of the gradient, for losses that have a second derivative; both ways are right to about 1e-5.
#[test]
fn second_derivatives_are_differences_of_gradients() {
    for loss in [
        Loss::LeastSquares,
        Loss::Logistic,
        Loss::Multinomial { classes: 3 },
        Loss::Poisson,
        Loss::Cauchy { scale: 50.0 },
    ] {
        for design in
            [Design::default(), Design { intercept: false, standardise: false, degree: 2, penalty: 0.3 }]
        {
            if loss == Loss::Poisson && design.degree == 2 {
                continue;
            }
            let linear = Linear::new(block(loss, 150, 3, 5), loss, design).unwrap();
            let d = linear.dim();
            let x: Vec<f64> = (0..d).map(|i| 0.02 * (i as f64 - 1.5)).collect();
            let Hessian::Full { entries, .. } = linear.hessian(&x) else { panic!("{d} is small") };
            let linear = Arc::new(linear);
            let mut gate = Gate::over(linear.clone(), 1);
            let mut at = |i: usize, h: f64| {
                let mut x = x.clone();
                x[i] += h;
                let mut g = vec![0.0; d];
                gate.exact(Role::Look, &x, &mut g).unwrap();
                g
            };
            for i in 0..d {
                let (above, below) = (at(i, 1e-5), at(i, -1e-5));
                for j in 0..d {
                    let (by_gradients, h) = ((above[j] - below[j]) / 2e-5, entries[i * d + j]);
                    let size = entries[i * d + i].max(entries[j * d + j]);
                    assert!(
                        (by_gradients - h).abs() < 2e-5 * (size + 1.0),
                        "{loss:?} {i} {j} {by_gradients} {h}"
                    );
                }
            }
        }
    }
}

/// Columns beyond the limit for a matrix: the diagonal, also of sparse rows that are centred without being touched.
#[test]
fn a_diagonal_is_that_of_the_matrix_dense_or_sparse() {
    let (rows, columns) = (40, 600);
    let mut xi = stream(9);
    let values: Vec<f64> =
        (0..rows * columns).map(|_| if xi.bernoulli(0.1) { xi.normal() } else { 0.0 }).collect();
    let labels = Arc::new((0..rows).map(|_| xi.normal()).collect::<Vec<f64>>());
    let dense = Features::Dense(Dense { rows, columns, values: values.clone().into() });
    let (mut starts, mut indices, mut kept) = (vec![0], Vec::new(), Vec::new());
    for row in values.chunks(columns) {
        for (j, v) in row.iter().enumerate().filter(|(_, v)| **v != 0.0) {
            indices.push(j as u32);
            kept.push(*v);
        }
        starts.push(kept.len() as u64);
    }
    let sparse = Features::Sparse(Sparse {
        columns,
        starts: Arc::new(starts),
        indices: Arc::new(indices),
        values: kept.into(),
    });
    let diagonal = |features: Features, design: Design| {
        let table = Arc::new(Table::new(features, labels.clone(), None, Vec::new()).unwrap());
        let linear = Linear::new(table, Loss::LeastSquares, design).unwrap();
        match linear.hessian(&vec![0.0; linear.dim()]) {
            Hessian::Diagonal(diagonal) => diagonal,
            Hessian::Full { .. } => panic!("601 is too many"),
        }
    };
    let (one, other) =
        (diagonal(dense.clone(), Design::default()), diagonal(sparse.clone(), Design::default()));
    // Standardised columns have variance 1, as the intercept has, unless they do not vary; a few roundings.
    assert!(
        one.iter().zip(&other).all(|(a, b)| (a - b).abs() < 1e-8 && (*a - 1.0).abs() < 1e-8 || *a < 1e-8)
    );
    let raw = Design { standardise: false, intercept: false, ..Design::default() };
    let (one, other) = (diagonal(dense, raw), diagonal(sparse, raw));
    assert!(one.iter().zip(&other).all(|(a, b)| (a - b).abs() < 1e-10));
}

#[test]
fn second_order_steps_end_at_the_minimiser_of_every_smooth_convex_loss() {
    for loss in losses() {
        let table = block(loss, 400, 4, 3);
        let design = Design { penalty: 1e-3, ..Design::default() };
        let linear = Arc::new(Linear::new(table, loss, design).unwrap());
        let smooth = ["least-squares", "logistic", "multinomial", "squared-hinge", "huber", "poisson"];
        let walk = Newton::start(linear.clone(), 1e-11);
        if !smooth.contains(&loss.row().name) {
            assert!(matches!(walk.unwrap_err(), TableError::NotSmoothConvex { .. }), "{loss:?}");
            continue;
        }
        let mut gate = Gate::over(linear.clone(), 1);
        let end = walk.unwrap().finish(&mut gate).unwrap();
        let mut gradient = vec![0.0; linear.dim()];
        gate.exact(Role::Look, &end.point, &mut gradient).unwrap();
        let length = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
        assert!(end.stop == Stop::Settled && length <= 1e-11, "{loss:?} {length}");
        // Every pass counts, also those for second derivatives.
        assert!(end.ledger.samples() >= 3 * 400 && end.ledger.samples() <= 60 * 400, "{:?}", end.ledger);
    }
}

/// The recursion is exact for least squares: what is left is what each block was not worked on for.
#[test]
fn one_pass_of_least_squares_is_the_fit_of_all_rows() {
    let loss = Loss::LeastSquares;
    let blocks: Vec<_> = (0..8).map(|k| block(loss, 1000, 4, 100 + k)).collect();
    let mut learner = OnePass::start(blocks[0].clone(), loss, Design::default(), 1).unwrap();
    for table in &blocks {
        let rows = learner.problem(table.clone()).unwrap();
        learner.learn(&rows, &Arc::default()).unwrap();
    }
    let all = learner.problem(joined(&blocks)).unwrap();
    let mut gate = Gate::over(all.clone(), 1);
    let mut gradient = vec![0.0; all.dim()];
    gate.exact(Role::Look, learner.point(), &mut gradient).unwrap();
    let length = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
    // The gradient of 8,000 rows at the true weights is about 0.5 sqrt(5/8000) = 0.0125; a hundredth of it is left at most.
    assert!(length < 1.3e-4, "{length}");
    assert_eq!((learner.rows(), learner.blocks()), (8000, 8));
}

/// Other losses: of what there is to learn, a pass in blocks learns 97 % at least (the worst is the sigmoid loss, which is not convex).
#[test]
fn one_pass_of_any_loss_comes_close_to_the_fit_of_all_rows() {
    for loss in losses().filter(|loss| *loss != Loss::PhaseRetrieval) {
        let design = Design { penalty: 1e-4, ..Design::default() };
        let blocks: Vec<_> = (0..6).map(|k| block(loss, 1500, 3, 200 + k)).collect();
        let mut learner = OnePass::start(blocks[0].clone(), loss, design, 1).unwrap();
        for table in &blocks {
            let rows = learner.problem(table.clone()).unwrap();
            learner.learn(&rows, &Arc::default()).unwrap();
        }
        let all = learner.problem(joined(&blocks)).unwrap();
        let mut whole = OnePass::start(blocks[0].clone(), loss, design, 2).unwrap();
        whole.learn(&all, &Arc::default()).unwrap();
        let value = |x: &[f64]| {
            let model = all.raw_weights(x);
            let mut scores = model.scores(&all.table().features).unwrap();
            let labels = (*all.table().labels).as_ref();
            let each = scores.chunks_mut(model.outputs()).zip(labels);
            each.map(|(z, y)| loss.differentiate(z, *y)).sum::<f64>() / labels.len() as f64
        };
        let (once, fitted, start) = (value(learner.point()), value(whole.point()), value(learner.origin()));
        assert!(once - fitted < 0.03 * (start - fitted) + 1e-3, "{loss:?}: {once} {fitted} {start}");
    }
}

/// Of 200 passes with a certificate of 95 %, no more bounds below the true gradient than a level of 1e-6 allows (25 of 200 at 5 %).
#[test]
fn the_certificate_of_a_tail_is_honest() {
    let (loss, design) =
        (Loss::LeastSquares, Design { intercept: false, standardise: false, degree: 1, penalty: 0.0 });
    let (mut wrong, mut given) = (0, 0);
    for run in 0..200 {
        // y = a + noise with a standard normal: grad f(x) = x - 1 for the law that rows come from.
        let rows = |count: usize, seed: u64| {
            let mut xi = stream(seed);
            let a: Vec<f64> = (0..count).map(|_| xi.normal()).collect();
            let labels: Vec<f64> = a.iter().map(|a| a + xi.normal()).collect();
            let features = Features::Dense(Dense { rows: count, columns: 1, values: a.into() });
            Arc::new(Table::new(features, Arc::new(labels), None, Vec::new()).unwrap())
        };
        let mut learner = OnePass::start(rows(50, 1000 + run), loss, design, run).unwrap();
        let block = learner.problem(rows(50, 1000 + run)).unwrap();
        learner.learn(&block, &Arc::default()).unwrap();
        let tail = learner.problem(rows(20_000, 5000 + run)).unwrap();
        let claim =
            Claim { target: 0.05, delta: 0.05, basis: Basis::Kurtosis(10.0), budget: None, guess: None };
        let certificate = learner.certify(&tail, claim, &Arc::default()).unwrap();
        let truth = (learner.point()[0] - 1.0).abs();
        if let Some(bound) = certificate.bound {
            given += 1;
            wrong += u32::from(bound < truth);
            assert!(certificate.verdict != Verdict::Certified || bound <= 0.05);
        }
        assert!(certificate.samples <= 20_000);
    }
    assert!(given > 150 && wrong <= 25, "{wrong} wrong of {given}");
}

#[test]
fn a_loss_without_a_minimiser_falls_for_ever_and_one_with_does_not() {
    let table = |rows: &[[f64; 3]]| {
        let values: Vec<f64> = rows.iter().flat_map(|row| row[..2].to_vec()).collect();
        let labels: Vec<f64> = rows.iter().map(|row| row[2]).collect();
        let features = Features::Dense(Dense { rows: rows.len(), columns: 2, values: values.into() });
        Arc::new(Table::new(features, Arc::new(labels), None, Vec::new()).unwrap())
    };
    let mixed = [
        [1.0, 0.0, 1.0],
        [1.0, 0.0, 0.0],
        [0.0, 0.0, 1.0],
        [0.0, 0.0, 0.0],
        [2.0, 0.0, 0.0],
        [3.0, 0.0, 1.0],
    ];
    let verdict = |loss: Loss, more: &[[f64; 3]]| {
        let rows: Vec<_> = mixed.iter().chain(more).copied().collect();
        let linear = Arc::new(Linear::new(table(&rows), loss, Design::default()).unwrap());
        let mut gate = Gate::over(linear.clone(), 1);
        // Where L-BFGS ends after a hundred passes or so.
        let end = pasta_opt::auto::Auto::start(&gate, &linear.start(), Some(1e-7))
            .unwrap()
            .finish(&mut gate)
            .unwrap();
        falls_for_ever(&linear, &mut gate, &end.point).unwrap()
    };
    // Where the second column is 1 the label always is the same; or once it is not.
    let (always, once) =
        ([[1.0, 1.0, 1.0], [2.0, 1.0, 1.0]], [[1.0, 1.0, 1.0], [2.0, 1.0, 1.0], [1.5, 1.0, 0.0]]);
    assert_eq!(verdict(Loss::Logistic, &always), Some(true));
    assert_eq!(verdict(Loss::Logistic, &once), Some(false));
    assert_eq!(verdict(Loss::Multinomial { classes: 2 }, &always), Some(true));
    assert_eq!(verdict(Loss::Multinomial { classes: 2 }, &once), Some(false));
    let zeros = [[1.0, 1.0, 0.0], [2.0, 1.0, 0.0]];
    assert_eq!(verdict(Loss::Poisson, &zeros), Some(true));
    assert_eq!(verdict(Loss::Poisson, &[[1.0, 1.0, 0.0], [2.0, 1.0, 3.0]]), Some(false));
    assert_eq!(verdict(Loss::LeastSquares, &always), None);
}

#[test]
fn rows_show_the_kurtosis_of_their_noise() {
    let design = Design { intercept: false, standardise: false, degree: 1, penalty: 0.0 };
    // With a = 1 and the start at 0, the gradient of a row is minus its label.
    let shown = |labels: Vec<f64>, each: usize| {
        let rows = labels.len();
        let features = Features::Dense(Dense { rows, columns: 1, values: vec![1.0; rows].into() });
        let table = Arc::new(Table::new(features, Arc::new(labels), None, Vec::new()).unwrap());
        let learner = OnePass::start(table.clone(), Loss::LeastSquares, design, 1).unwrap();
        learner.seen_kurtosis(&learner.problem(table).unwrap(), each)
    };
    // Two values as often have 1, and so has no noise at all: pairs of one each have none.
    let signs: Vec<f64> = (0..4000).map(|k| if k % 2 == 0 { 5.0 } else { 3.0 }).collect();
    assert!((shown(signs.clone(), 1) - 1.0).abs() < 1e-12);
    assert!((shown(signs, 2) - 1.0).abs() < 1e-12 && (shown(vec![2.0; 100], 1) - 1.0).abs() < 1e-12);
    // One row of n has n - 2 + 1/(n - 1); fourth powers do not overflow.
    let mut outlier = vec![0.0; 1000];
    outlier[7] = 1e100;
    assert!((shown(outlier, 1) - (998.0 + 1.0 / 999.0)).abs() < 1e-6);
    // Normal noise has 3, with a standard error of sqrt(24/n), of which five are far.
    let mut xi = stream(77);
    let normal: Vec<f64> = (0..40_000).map(|_| xi.normal()).collect();
    for each in [1_u32, 4] {
        let error = (24.0 * f64::from(each) / 40_000.0).sqrt();
        assert!((shown(normal.clone(), each as usize) - 3.0).abs() < 5.0 * error);
    }
}
