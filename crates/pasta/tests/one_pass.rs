//! Rows that go by once, second derivatives, and second-order steps.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use pasta_opt::certificate::{Basis, Claim, Verdict};
use pasta_opt::draws::{Address, Role, Stream};
use pasta_opt::gate::Gate;
use pasta_opt::newton::{Newton, has_no_minimiser};
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
        learner.learn(table.clone(), &Arc::default()).unwrap();
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

/// A table of rows with so many columns each, and their labels.
fn table_of(rows: &[Vec<f64>], labels: Vec<f64>) -> Arc<Table> {
    let columns = rows[0].len();
    let features = Features::Dense(Dense { rows: rows.len(), columns, values: rows.concat().into() });
    Arc::new(Table::new(features, Arc::new(labels), None, Vec::new()).unwrap())
}

/// Blocks of a stream in which columns begin to vary late: the second after five blocks of 7s, the third after two of 1e9 and one of 1e9 + 3, the fourth never.
fn late_columns(blocks: usize, rows: usize) -> Vec<Arc<Table>> {
    let mut xi = stream(31);
    let mut block = |k: usize| {
        let rows: Vec<Vec<f64>> = (0..rows)
            .map(|_| {
                let second = if k < 5 { 7.0 } else { 7.0 + 40.0 * xi.normal() };
                let third = match k {
                    0 | 1 => 1e9,
                    2 => 1e9 + 3.0,
                    _ => 1e9 + 3.0 * xi.normal(),
                };
                vec![2.0 + xi.normal(), second, third, -0.1]
            })
            .collect();
        let label = |row: &Vec<f64>| 1.0 + 2.0 * row[0] - 0.5 * row[1] + 0.25 * (row[2] - 1e9) + 0.1 * row[3];
        let labels = rows.iter().map(|row| label(row) + 0.1 * xi.normal()).collect();
        table_of(&rows, labels)
    };
    (0..blocks).map(&mut block).collect()
}

/// The largest difference of predictions between a pass and the fit of all rows, over the size of the labels' noise, 0.1.
fn behind(learner: &OnePass, all: Arc<Table>, design: Design) -> f64 {
    let linear = Arc::new(Linear::new(all.clone(), Loss::LeastSquares, design).unwrap());
    let mut gate = Gate::over(linear.clone(), 1);
    let end = Newton::start(linear.clone(), 1e-12).unwrap().finish(&mut gate).unwrap();
    let fitted = linear.raw_weights(&end.point).scores(&all.features).unwrap();
    let problem = learner.problem(all.clone()).unwrap();
    let ours = problem.raw_weights(learner.point()).scores(&all.features).unwrap();
    ours.iter().zip(&fitted).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) / 0.1
}

/// What was learnt before a column varied stays exact. A block is worked on until a hundredth of its gradient is left, so a hundredth of the noise is far.
#[test]
fn a_column_wakes_when_it_first_varies_and_the_end_is_the_fit_of_all_rows() {
    for degree in [1, 2] {
        let design = Design { degree, ..Design::default() };
        let blocks = late_columns(9, 1500);
        let mut learner = OnePass::start(blocks[0].clone(), Loss::LeastSquares, design, 1).unwrap();
        assert_eq!(learner.first_seen(&blocks[0]).unwrap(), Vec::<usize>::new());
        for (k, table) in blocks.iter().enumerate() {
            let expected: &[usize] = match k {
                2 => &[2],
                5 => &[1],
                _ => &[],
            };
            assert_eq!(learner.first_seen(table).unwrap(), expected, "block {k}");
            learner.learn(table.clone(), &Arc::default()).unwrap();
        }
        let left = behind(&learner, joined(&blocks), design);
        assert!(left < 0.01, "degree {degree}: {left}");
    }
}

/// A column that only the rows kept back show has no weight, and a look at them says so: the part of the gradient that it has is its covariance with the label, here 20.
#[test]
fn a_column_that_only_the_tail_shows_is_seen() {
    let blocks = late_columns(6, 1500);
    let mut learner = OnePass::start(blocks[0].clone(), Loss::LeastSquares, Design::default(), 1).unwrap();
    for table in &blocks[..5] {
        learner.learn(table.clone(), &Arc::default()).unwrap();
    }
    assert_eq!(learner.first_seen(&blocks[5]).unwrap(), [1]);
    let (_, gradient) = learner.look(&blocks[5], &Arc::default()).unwrap();
    // Its standard error is about 20 sqrt(2 / 1500) = 0.7.
    assert!((gradient - 20.0).abs() < 4.0, "{gradient}");
    let tail = learner.problem(blocks[5].clone()).unwrap();
    let mut gate = Gate::over(tail.clone(), 1);
    let mut asleep = vec![0.0; tail.dim()];
    gate.exact(Role::Look, learner.point(), &mut asleep).unwrap();
    // What is divided by the largest number there is.
    assert!(asleep[1].abs() < 1e-300);
}

/// The gradient of a certificate belongs to columns of deviation 1 over all rows, whatever the first block had: here a thousandth, or a thousand times that.
#[test]
fn the_gradient_of_a_tail_does_not_depend_on_the_units_of_the_first_block() {
    let rows = |units: f64, seed: u64| {
        let mut xi = stream(seed);
        let rows: Vec<Vec<f64>> = (0..2000).map(|_| vec![units * xi.normal()]).collect();
        let labels = rows.iter().map(|row| row[0] / units + xi.normal()).collect();
        table_of(&rows, labels)
    };
    for first in [1e-3, 1.0, 1e3] {
        // The first block says that the weight is 1/first, the others that it is 1.
        let mut learner = OnePass::start(rows(first, 1), Loss::LeastSquares, Design::default(), 1).unwrap();
        for seed in 2..40 {
            learner.learn(rows(1.0, seed), &Arc::default()).unwrap();
        }
        let tail = rows(1.0, 50);
        let spread = |y: &[f64]| y.iter().map(|y| y * y).sum::<f64>() / y.len() as f64;
        assert!((spread((*tail.labels).as_ref()) - 2.0).abs() < 0.4);
        // At the start the gradient of a column of deviation 1 is its covariance with the label, 1: the error of 76,000 rows is 0.006.
        assert!((learner.start_gradient() - 1.0).abs() < 0.04, "{first}: {}", learner.start_gradient());
        let (_, gradient) = learner.look(&tail, &Arc::default()).unwrap();
        // The noise of 2,000 rows, 1/sqrt(2000) in two coordinates, is 0.03.
        assert!(gradient < 0.1, "{first}: {gradient}");
    }
}

/// Columns that come later were 0 before: the end is the fit of all rows, those of the first blocks with zeros in them.
#[test]
fn new_columns_of_a_stream_are_learnt_as_if_they_had_been_there() {
    let places = [1, 3];
    for (degree, penalty) in [(1, 0.0), (2, 0.0), (1, 0.1)] {
        let design = Design { degree, penalty, ..Design::default() };
        let mut xi = stream(8);
        let mut block = |k: usize| {
            let wide = k >= 3;
            let rows: Vec<Vec<f64>> = (0..1500)
                .map(|_| {
                    let mut row: Vec<f64> = (0..5).map(|_| f64::from(u8::from(xi.bernoulli(0.3)))).collect();
                    [0, 2, 4].into_iter().filter(|_| !wide).for_each(|j| row[j] = 0.0);
                    row
                })
                .collect();
            let label = |row: &Vec<f64>| row.iter().zip(1..).map(|(a, k)| a * f64::from(k)).sum::<f64>();
            let labels: Vec<f64> = rows.iter().map(|row| label(row) + 0.1 * xi.normal()).collect();
            let narrow: Vec<Vec<f64>> = rows.iter().map(|row| places.map(|j| row[j]).to_vec()).collect();
            (table_of(if wide { &rows } else { &narrow }, labels.clone()), table_of(&rows, labels))
        };
        let blocks: Vec<_> = (0..7).map(&mut block).collect();
        let mut learner = OnePass::start(blocks[0].0.clone(), Loss::LeastSquares, design, 1).unwrap();
        for (k, (table, _)) in blocks.iter().enumerate() {
            if k == 3 {
                assert!(learner.problem(table.clone()).is_err() && learner.first_seen(table).is_err());
                assert!(learner.learn(table.clone(), &Arc::default()).is_err());
                assert!(learner.widen(&[3, 1], 5).is_err() && learner.widen(&[0], 5).is_err());
                learner.widen(&places, 5).unwrap();
            }
            learner.learn(table.clone(), &Arc::default()).unwrap();
        }
        let whole: Vec<_> = blocks.iter().map(|(_, whole)| whole.clone()).collect();
        let all = joined(&whole);
        let problem = learner.problem(all.clone()).unwrap();
        let mut gate = Gate::over(problem.clone(), 1);
        let mut gradient = vec![0.0; problem.dim()];
        gate.exact(Role::Look, learner.point(), &mut gradient).unwrap();
        let length = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
        // As in the pass without new columns.
        assert!(length < 1e-3, "degree {degree}: {length}");
        if penalty == 0.0 {
            let left = behind(&learner, all, design);
            assert!(left < 0.02, "degree {degree}: {left}");
        }
    }
}

/// Other losses: of what there is to learn, a pass in blocks learns 97 % at least (the worst is the sigmoid loss, which is not convex).
#[test]
fn one_pass_of_any_loss_comes_close_to_the_fit_of_all_rows() {
    for loss in losses().filter(|loss| *loss != Loss::PhaseRetrieval) {
        let design = Design { penalty: 1e-4, ..Design::default() };
        let blocks: Vec<_> = (0..6).map(|k| block(loss, 1500, 3, 200 + k)).collect();
        let mut learner = OnePass::start(blocks[0].clone(), loss, design, 1).unwrap();
        for table in &blocks {
            learner.learn(table.clone(), &Arc::default()).unwrap();
        }
        let all = learner.problem(joined(&blocks)).unwrap();
        let mut whole = OnePass::start(blocks[0].clone(), loss, design, 2).unwrap();
        whole.learn(joined(&blocks), &Arc::default()).unwrap();
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
        learner.learn(rows(50, 1000 + run), &Arc::default()).unwrap();
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
        let end =
            pasta_opt::Auto::start(&gate, &linear.start(), Some(1e-7)).unwrap().finish(&mut gate).unwrap();
        has_no_minimiser(&linear, &mut gate, &end.point).unwrap()
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
