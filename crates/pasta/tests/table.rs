//! Tables: gradients, draws, scaling and refusals.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use pasta_opt::draws::{Address, Role, Stream};
use pasta_opt::fit::{Fit, Way};
use pasta_opt::gate::Gate;
use pasta_opt::oracle::{Answer, Batch, Form, Oracle, Request};
use pasta_opt::recipe::{Constant, Constants};
use pasta_opt::table::{
    Dense, Design, Features, LOSSES, Labels, Linear, Loss, Parts, Sparse, Table, TableError, Values,
};

use common::{batch_of, difference_at, sum_at};

mod common;

fn stream(number: u64) -> Stream {
    Address { seed: 12, role: Role::Setup, step: 0, sample: number }.stream()
}

/// How the features of a test table are stored.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Storage {
    Dense64,
    Dense32,
    Sparse64,
    Sparse32,
}

const STORAGES: [Storage; 4] = [Storage::Dense64, Storage::Dense32, Storage::Sparse64, Storage::Sparse32];

/// Random rows, a third of the values zero; every value is a multiple of 1/64, so that f32 holds it.
fn values(rows: usize, columns: usize, seed: u64) -> Vec<f64> {
    let mut xi = stream(seed);
    (0..rows * columns)
        .map(|i| {
            let value = (64.0 * xi.normal()).round() / 64.0;
            if xi.bernoulli(1.0 / 3.0) { 0.0 } else { value + (i % columns) as f64 }
        })
        .collect()
}

fn stored(values: &[f64], columns: usize, storage: Storage) -> Features {
    let single = |values: &[f64]| Values::F32(Arc::new(values.iter().map(|v| *v as f32).collect::<Vec<_>>()));
    let rows = values.len() / columns;
    match storage {
        Storage::Dense64 => {
            Features::Dense(Dense { rows, columns, values: Values::F64(Arc::new(values.to_vec())) })
        }
        Storage::Dense32 => Features::Dense(Dense { rows, columns, values: single(values) }),
        Storage::Sparse64 | Storage::Sparse32 => {
            let (mut starts, mut indices, mut entries) = (vec![0], Vec::new(), Vec::new());
            for row in values.chunks(columns) {
                for (j, v) in row.iter().enumerate().filter(|(_, v)| **v != 0.0) {
                    indices.push(j as u32);
                    entries.push(*v);
                }
                starts.push(entries.len() as u64);
            }
            let values =
                if storage == Storage::Sparse32 { single(&entries) } else { Values::F64(Arc::new(entries)) };
            Features::Sparse(Sparse { columns, starts: Arc::new(starts), indices: Arc::new(indices), values })
        }
    }
}

/// Every loss, with parameters that put both of its branches to use.
fn losses() -> Vec<Loss> {
    let parameter = |name| if name == "quantile" { 0.3 } else { 1.5 };
    LOSSES.iter().map(|row| Loss::named(row.name, Some(parameter(row.name)), 3).unwrap()).collect()
}

fn labels(loss: Loss, rows: usize) -> Vec<f64> {
    let mut xi = stream(99);
    let label = |_| match loss.row().labels {
        Labels::Real => 2.0 * xi.normal(),
        Labels::Signs => f64::from(u8::from(xi.bernoulli(0.5))) * 2.0 - 1.0,
        Labels::Classes => xi.below(3) as f64,
        Labels::Counts => xi.poisson(2.0) as f64,
    };
    (0..rows).map(label).collect()
}

fn problem(loss: Loss, design: Design, storage: Storage, rows: usize, weighted: bool) -> Linear {
    let columns = 5;
    let features = stored(&values(rows, columns, 1), columns, storage);
    let mut xi = stream(7);
    let weights: Vec<f64> =
        (0..rows).map(|_| if xi.bernoulli(0.1) { 0.0 } else { xi.uniform() + 0.1 }).collect();
    let weights = weighted.then(|| Arc::new(weights) as _);
    let table = Table::new(features, Arc::new(labels(loss, rows)), weights, Vec::new()).unwrap();
    Linear::new(Arc::new(table), loss, design).unwrap()
}

fn designs() -> Vec<Design> {
    let mut all = Vec::new();
    for (intercept, standardise) in [(true, true), (true, false), (false, true), (false, false)] {
        for degree in 1..=3 {
            all.push(Design { intercept, standardise, degree, penalty: 0.3 });
        }
    }
    all
}

/// Small weights: a Poisson model of high degree must not overflow.
fn somewhere(dim: usize, seed: u64) -> Vec<f64> {
    let mut xi = stream(seed);
    (0..dim).map(|_| 0.02 * xi.normal()).collect()
}

fn exact(problem: &Linear, x: &[f64]) -> (Vec<f64>, f64) {
    let (mut gradient, mut loss) = (vec![0.0; x.len()], [0.0]);
    let points = [x];
    let request = Request { losses: true, ..Request::everything(Role::Large, &points) };
    let mut answer = Answer { losses: &mut loss, ..Answer::new(&mut gradient) };
    let charge = problem.answer(&request, &mut answer).unwrap();
    assert!(charge.exact);
    (gradient, loss[0])
}

#[test]
fn the_gradient_of_every_loss_is_the_slope_of_its_value() {
    for loss in losses() {
        for design in designs() {
            let problem = problem(loss, design, Storage::Dense64, 40, true);
            let x = somewhere(problem.dim(), 3);
            let v = somewhere(problem.dim(), 4);
            let (gradient, _) = exact(&problem, &x);
            let along = |t: f64| -> f64 {
                let there: Vec<f64> = x.iter().zip(&v).map(|(x, v)| x + t * v).collect();
                exact(&problem, &there).1
            };
            let h = 1e-6;
            let slope = (along(h) - along(-h)) / (2.0 * h);
            let product: f64 = gradient.iter().zip(&v).map(|(g, v)| g * v).sum();
            // Central differences of values of about 10: a rounding of 1e-15/1e-6, and curvature terms far below that; a kink
            // within 1e-6 of a score would show, and there is none.
            let tolerance = 1e-7 * (1.0 + product.abs());
            assert!((slope - product).abs() < tolerance, "{loss:?}, {design:?}: {slope} and {product}");
        }
    }
}

#[test]
fn every_storage_of_the_same_values_gives_the_same_problem() {
    for loss in [Loss::Logistic, Loss::Multinomial { classes: 3 }] {
        for design in designs() {
            // Sparse columns are not centred before monomials are made of them: another problem, tested by its gradient.
            if design.degree > 1 && design.intercept && design.standardise {
                continue;
            }
            let [dense, others @ ..] = STORAGES.map(|storage| problem(loss, design, storage, 300, true));
            let x = somewhere(dense.dim(), 5);
            let (gradient, value) = exact(&dense, &x);
            for other in others {
                let (same, same_value) = exact(&other, &x);
                assert!((value - same_value).abs() < 1e-12 * value, "{loss:?} {design:?}");
                for (a, b) in gradient.iter().zip(&same) {
                    // Other orders of additions of 300 terms, each up to about 1000 (cubes).
                    assert!((a - b).abs() < 1e-10, "{loss:?} {design:?}: {a} and {b}");
                }
            }
        }
    }
}

#[test]
fn differences_and_several_points_are_sums_point_by_point() {
    let design = Design { penalty: 0.1, ..Design::default() };
    for loss in losses() {
        for storage in STORAGES {
            let problem = problem(loss, design, storage, 500, false);
            let d = problem.dim();
            let [x, y] = [somewhere(d, 1), somewhere(d, 2)];
            let batch = batch_of(4, Role::Small, 9, 64);
            let (mut both, mut at_x, mut at_y) = (vec![0.0; 2 * d], vec![0.0; d], vec![0.0; d]);
            let mut losses = [0.0; 2];
            let points = [&x[..], &y];
            let request = Request { losses: true, ..Request::sums(batch.clone(), &points) };
            let mut answer = Answer { losses: &mut losses, ..Answer::new(&mut both) };
            let charge = problem.answer(&request, &mut answer).unwrap();
            assert_eq!((charge.samples, charge.evaluations, charge.exact), (64, 128, false));
            sum_at(&problem, &x, &batch, &mut at_x);
            sum_at(&problem, &y, &batch, &mut at_y);
            assert_eq!(both, [at_x.clone(), at_y.clone()].concat(), "{loss:?}, {storage:?}");
            let mut difference = vec![0.0; d];
            difference_at(&problem, &x, &y, &batch, &mut difference);
            for ((d, x), y) in difference.iter().zip(&at_x).zip(&at_y) {
                assert!((d - (x - y)).abs() < 1e-9, "{loss:?}: {d} and {}", x - y);
            }
        }
    }
}

/// The mean over many batches is the gradient, coordinate by coordinate, and each sample is one row: the variance of a sum of n
/// is n times that of one row. Levels: 6 standard errors for each mean of up to 6 coordinates, a probability below 1e-7 in all; the
/// variance over 4000 batches within 10 %, 4.5 standard errors of it for normal sums.
#[test]
fn batches_have_the_mean_and_the_variance_of_rows_drawn_with_replacement() {
    for (weighted, n) in [(false, 1), (false, 7), (true, 7), (false, 900), (true, 900)] {
        let problem = problem(Loss::LeastSquares, Design::default(), Storage::Dense64, 1000, weighted);
        let x = vec![0.1; problem.dim()];
        let (gradient, _) = exact(&problem, &x);
        let spread = row_variance(&problem, &x, &gradient);
        let batches = 4000;
        let (mut mean, mut scatter) = (vec![0.0; x.len()], 0.0);
        for step in 0..batches {
            let mut sum = vec![0.0; x.len()];
            sum_at(&problem, &x, &batch_of(3, Role::Large, step, n), &mut sum);
            for ((mean, sum), g) in mean.iter_mut().zip(&sum).zip(&gradient) {
                let error = sum / n as f64 - g;
                *mean += error / batches as f64;
                scatter += error * error / batches as f64;
            }
        }
        let error = (spread / n as f64 / batches as f64).sqrt();
        assert!(
            mean.iter().all(|m| m.abs() < 6.0 * error),
            "weighted {weighted}, n = {n}: {mean:?}, {error}"
        );
        let ratio = scatter / (spread / n as f64);
        assert!((ratio - 1.0).abs() < 0.1, "weighted {weighted}, n = {n}: variance off by {ratio}");
    }
}

/// E|g(x, row) - grad f|^2 by its definition.
fn row_variance(problem: &Linear, x: &[f64], gradient: &[f64]) -> f64 {
    let table = problem.table();
    let mut sum = 0.0;
    for row in 0..table.rows() {
        let weight = table.weights.as_ref().map_or(1.0, |w| (**w).as_ref()[row]);
        if weight == 0.0 {
            continue;
        }
        let mut g = vec![0.0; x.len()];
        problem.sum_stored(row..row + 1, x, &mut g);
        let distance: f64 = g.iter().zip(gradient).map(|(g, mean)| (g / weight - mean).powi(2)).sum();
        sum += weight * distance;
    }
    sum / problem.total_weight()
}

/// Counts of rows, seen through the gradient of f(x) = mean of rows that are unit vectors: coordinate i of the sum counts row i.
#[test]
fn counts_of_rows_are_multinomial() {
    let rows = 64;
    let mut unit = vec![0.0; rows * rows];
    (0..rows).for_each(|i| unit[i * rows + i] = 1.0);
    let labels = Arc::new(vec![-1.0; rows]);
    let plain = Design { intercept: false, standardise: false, degree: 1, penalty: 0.0 };
    for storage in [Storage::Dense64, Storage::Sparse64] {
        let weights: Vec<f64> = (0..rows).map(|i| (i % 4) as f64).collect();
        for weights in [None, Some(weights)] {
            let share = |i: usize| weights.as_ref().map_or(1.0 / 64.0, |w| w[i] / 96.0);
            let shared = weights.clone().map(|w| Arc::new(w) as _);
            let table = Table::new(stored(&unit, rows, storage), labels.clone(), shared, Vec::new()).unwrap();
            let problem = Linear::new(Arc::new(table), Loss::LeastSquares, plain).unwrap();
            let (n, batches) = (63, 2000);
            let mut counts = vec![0.0; rows];
            for step in 0..batches {
                let mut sum = vec![0.0; rows];
                sum_at(&problem, &vec![0.0; rows], &batch_of(8, Role::Large, step, n), &mut sum);
                // The slope at 0 is 0 - (-1): every sample counts 1, and none is lost.
                assert_eq!(sum.iter().sum::<f64>(), n as f64);
                counts.iter_mut().zip(&sum).for_each(|(c, s)| *c += s);
            }
            let total = (n * batches) as f64;
            let mut chi2 = 0.0;
            let mut cells = 0.0;
            for (i, count) in counts.iter().enumerate() {
                let expected = total * share(i);
                if expected == 0.0 {
                    assert_eq!(*count, 0.0, "row {i} has no weight");
                } else {
                    chi2 += (count - expected).powi(2) / expected;
                    cells += 1.0;
                }
            }
            // Chi-squared with at most 63 degrees of freedom: mean + 6 standard deviations, a probability below 1e-6.
            let degrees: f64 = cells - 1.0;
            assert!(chi2 < degrees + 6.0 * (2.0 * degrees).sqrt(), "chi2 = {chi2} with {degrees} degrees");
        }
    }
}

#[test]
fn a_batch_as_large_as_the_table_is_the_table() {
    let problem = problem(Loss::Logistic, Design::default(), Storage::Dense64, 1000, true);
    let x = somewhere(problem.dim(), 1);
    let (gradient, value) = exact(&problem, &x);
    let points = [&x[..]];
    for n in [1000, 1_000_000_000] {
        let mut gate_gradient = vec![0.0; x.len()];
        let mut loss = [0.0];
        let request = Request { losses: true, ..Request::sums(batch_of(1, Role::Large, 0, n), &points) };
        let mut answer = Answer { losses: &mut loss, ..Answer::new(&mut gate_gradient) };
        let price = problem.price(&request);
        let charge = problem.answer(&request, &mut answer).unwrap();
        assert_eq!(charge, price);
        assert_eq!((charge.samples, charge.evaluations, charge.exact), (1000, 1000, true));
        for (sum, mean) in gate_gradient.iter().zip(&gradient) {
            // Once rounded for the factor, once for the product.
            assert!((sum / n as f64 - mean).abs() <= 4.0 * f64::EPSILON * mean.abs());
        }
        assert!((loss[0] / n as f64 - value).abs() <= 4.0 * f64::EPSILON * value);
    }
    // One sample fewer is drawn.
    let mut sum = vec![0.0; x.len()];
    let request = Request::sums(batch_of(1, Role::Large, 0, 999), &points);
    let charge = problem.answer(&request, &mut Answer::new(&mut sum)).unwrap();
    assert_eq!((charge.samples, charge.exact), (999, false));
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let pool = |threads| rayon_pool(threads);
    for (storage, weighted) in [(Storage::Dense64, false), (Storage::Sparse32, true)] {
        // Five leaves of a pass.
        let rows = 150_000;
        let answers: Vec<Vec<u64>> = [1, 2, 3]
            .into_iter()
            .map(|threads| {
                pool(threads).install(|| {
                    let problem = problem(Loss::Logistic, Design::default(), storage, rows, weighted);
                    let [x, y] = [somewhere(problem.dim(), 1), somewhere(problem.dim(), 2)];
                    let mut bits = Vec::new();
                    for n in [1, 300, 50_000, 150_000] {
                        for form in [Form::Sums, Form::Differences] {
                            let mut out = vec![0.0; x.len() * if form == Form::Sums { 2 } else { 1 }];
                            let mut losses = [0.0; 2];
                            let batch = batch_of(5, Role::Large, n, n);
                            let points = [&x[..], &y];
                            let request = Request { losses: true, form, ..Request::sums(batch, &points) };
                            let mut answer = Answer { losses: &mut losses, ..Answer::new(&mut out) };
                            problem.answer(&request, &mut answer).unwrap();
                            bits.extend(out.iter().chain(&losses).map(|v| v.to_bits()));
                        }
                    }
                    bits
                })
            })
            .collect();
        assert_eq!(answers[0], answers[1]);
        assert_eq!(answers[0], answers[2]);
    }
}

/// The sum of a subtree of parts, as a machine that holds their rows computes it.
fn subtree(parts: &Parts<'_>, node: &Batch) -> Vec<f64> {
    if let Some([left, right]) = node.halves(1) {
        let (left, right) = (subtree(parts, &left), subtree(parts, &right));
        return left.iter().zip(&right).map(|(a, b)| a + b).collect();
    }
    let mut sum = vec![0.0; parts.width()];
    parts.add(node.samples.start, &mut sum).unwrap();
    sum
}

#[test]
fn parts_that_are_added_down_the_tree_have_the_bits_of_the_answer() {
    let problem = problem(Loss::Logistic, Design::default(), Storage::Dense64, 150_000, true);
    let [x, y] = [somewhere(problem.dim(), 1), somewhere(problem.dim(), 2)];
    let points = [&x[..], &y];
    for n in [10, 5_000, 100_000, 150_000] {
        let request = Request { losses: true, ..Request::sums(batch_of(5, Role::Large, n, n), &points) };
        let parts = problem.parts(&request);
        // Together they cover the rows, each once.
        let covered: Vec<usize> = (0..parts.count()).flat_map(|part| parts.rows(part)).collect();
        assert!(covered.iter().copied().eq(0..150_000), "{} parts", parts.count());
        let answers = [true, false].map(|whole| {
            let (mut out, mut losses) = (vec![0.0; 2 * x.len()], [0.0; 2]);
            let mut answer = Answer { losses: &mut losses, ..Answer::new(&mut out) };
            if whole {
                problem.answer(&request, &mut answer).unwrap();
            } else {
                parts.complete(&subtree(&parts, &batch_of(0, Role::Setup, 0, parts.count())), &mut answer);
            }
            (out, losses)
        });
        assert_eq!(answers[0], answers[1]);
    }
}

fn rayon_pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

/// A sweep in place agrees with gradients that are asked for one after another.
#[test]
fn a_sweep_is_plain_sgd_in_stored_order() {
    for loss in losses() {
        for (k, design) in designs().into_iter().enumerate() {
            let design = Design { penalty: if k % 2 == 0 { 0.0 } else { 0.1 }, ..design };
            for (storage, batch) in [(STORAGES[k % 4], 1), (STORAGES[(k + 1) % 4], 7)] {
                let problem = problem(loss, design, storage, 50, k % 5 == 4);
                let mut x = somewhere(problem.dim(), 2);
                let mut y = x.clone();
                let step = 1e-5;
                problem.sweep(3..48, batch, step, &mut x);
                let weights = problem.table().weights.clone();
                for first in (3..48).step_by(batch) {
                    let rows = first..(first + batch).min(48);
                    let weight = match &weights {
                        None => rows.len() as f64,
                        Some(weights) => (**weights).as_ref()[rows.clone()].iter().sum(),
                    };
                    if weight > 0.0 {
                        let mut g = vec![0.0; y.len()];
                        problem.sum_stored(rows, &y, &mut g);
                        y.iter_mut().zip(&g).for_each(|(y, g)| *y -= step * g / weight);
                    }
                }
                assert!(distance(&x, &y) < 1e-12 * (1.0 + norm(&y)), "{loss:?} {design:?} {storage:?}");
            }
        }
    }
}

/// The first sums of a small table: a changed stream is a line of the changelog.
#[test]
fn the_stream_of_rows_is_pinned() {
    let features = stored(&(0..100).map(f64::from).collect::<Vec<_>>(), 1, Storage::Dense64);
    let table = Table::new(features, Arc::new(vec![-1.0; 100]), None, Vec::new()).unwrap();
    let plain = Design { intercept: true, standardise: false, degree: 1, penalty: 0.0 };
    let problem = Linear::new(Arc::new(table), Loss::Absolute, plain).unwrap();
    // Slope 1 everywhere: the first coordinate adds up the numbers of the rows.
    let sums = [1, 2, 10, 99].map(|n| {
        let mut sum = [0.0; 2];
        sum_at(&problem, &[0.0, 0.0], &batch_of(1, Role::Large, 0, n), &mut sum);
        assert_eq!(sum[1], n as f64);
        sum[0]
    });
    assert_eq!(sums, [4.0, 80.0, 441.0, 4539.0]);
}

#[test]
fn a_batch_that_begins_elsewhere_draws_other_rows() {
    let problem = problem(Loss::LeastSquares, Design::default(), Storage::Dense64, 1000, false);
    let x = somewhere(problem.dim(), 1);
    let sum = |samples| {
        let mut sum = vec![0.0; x.len()];
        sum_at(&problem, &x, &Batch { seed: 1, role: Role::Large, step: 0, samples }, &mut sum);
        sum
    };
    assert_ne!(sum(0..10), sum(10..20));
    assert_eq!(sum(10..20), sum(10..20));
}

#[test]
fn scaling_is_undone_in_the_raw_weights() {
    for storage in STORAGES {
        for design in designs() {
            let problem = problem(Loss::Multinomial { classes: 3 }, design, storage, 50, true);
            let x = somewhere(problem.dim(), 1);
            let model = problem.raw_weights(&x);
            model.check().unwrap();
            let scores = model.scores(&problem.table().features).unwrap();
            // The mean loss by hand is the oracle's.
            let table = problem.table();
            let mut sum = 0.0;
            for (row, scores) in scores.chunks(3).enumerate() {
                let label = (*table.labels).as_ref()[row];
                sum += (**table.weights.as_ref().unwrap()).as_ref()[row]
                    * problem.loss().differentiate(&mut scores.to_vec(), label);
            }
            let stride = problem.features() + usize::from(design.intercept);
            let penalty: f64 = x
                .iter()
                .enumerate()
                .filter(|(i, _)| i % stride < problem.features())
                .map(|(_, w)| w * w)
                .sum();
            let value = sum / problem.total_weight() + 0.15 * penalty;
            let (_, exact) = exact(&problem, &x);
            assert!((value - exact).abs() < 1e-12 * exact, "{storage:?} {design:?}: {value} and {exact}");
        }
    }
}

#[test]
fn standardised_columns_have_mean_zero_and_variance_one_and_constants_stay_finite() {
    let rows = 1000;
    let mut xi = stream(1);
    let mut all = Vec::new();
    for _ in 0..rows {
        // A column far from zero, a constant one, a huge constant one, a small one.
        all.extend([1e9 + xi.normal(), 3.0, 1e12, 1e-9 * xi.normal()]);
    }
    let labels: Vec<f64> = (0..rows).map(|_| xi.normal()).collect();
    let table = Table::new(stored(&all, 4, Storage::Dense64), Arc::new(labels), None, Vec::new()).unwrap();
    let problem = Linear::new(Arc::new(table), Loss::LeastSquares, Design::default()).unwrap();
    let scaling = problem.scaling().unwrap();
    assert!(scaling.scale[1..3].iter().all(|scale| *scale == f64::MAX));
    let zero = vec![0.0; 5];
    let (at_zero, _) = exact(&problem, &zero);
    // H e_j = grad f(e_j) - grad f(0): 1 on the diagonal for columns that vary, 0 for constants; nothing in common with the
    // intercept, which means that columns are centred. A mean of 1e9 has a rounding of 1e-7 of the standard deviation.
    for (j, variance) in [(0, 1.0), (1, 0.0), (2, 0.0), (3, 1.0)] {
        let mut unit = zero.clone();
        unit[j] = 1.0;
        let (there, _) = exact(&problem, &unit);
        assert!((there[j] - at_zero[j] - variance).abs() < 1e-6, "column {j}: {}", there[j] - at_zero[j]);
        assert!((there[4] - at_zero[4]).abs() < 1e-6, "column {j} is not centred");
    }
}

#[test]
fn names_of_features_are_made_of_names_of_columns() {
    let features = stored(&[1.0, 2.0, 3.0, 4.0], 2, Storage::Dense64);
    let names = vec!["a".to_owned(), "b".to_owned()];
    let table = Arc::new(Table::new(features, Arc::new(vec![0.0, 1.0]), None, names).unwrap());
    let design = Design { degree: 3, ..Design::default() };
    let problem = Linear::new(table, Loss::LeastSquares, design).unwrap();
    let expected = ["a", "b", "a^2", "a*b", "b^2", "a^3", "a^2*b", "a*b^2", "b^3"];
    assert_eq!(problem.feature_names(), expected);
}

fn message(result: Result<impl std::fmt::Debug, TableError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn tables_that_do_not_fit_are_refused_with_row_and_column() {
    let dense = |rows, columns, values: Vec<f64>| {
        Features::Dense(Dense { rows, columns, values: Values::F64(Arc::new(values)) })
    };
    let sparse = |starts: Vec<u64>, indices: Vec<u32>, values: Vec<f64>| {
        Features::Sparse(Sparse {
            columns: 3,
            starts: Arc::new(starts),
            indices: Arc::new(indices),
            values: Values::F64(Arc::new(values)),
        })
    };
    let table = |features, labels: Vec<f64>, weights: Option<Vec<f64>>, names: &[&str]| {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        Table::new(features, Arc::new(labels), weights.map(|w| Arc::new(w) as _), names)
    };
    let two = || dense(2, 1, vec![1.0, 2.0]);
    let cases = [
        (table(dense(0, 3, vec![]), vec![], None, &[]), "0 rows and 3 columns"),
        (table(dense(2, 2, vec![1.0]), vec![0.0; 2], None, &[]), "needs 4 values, but has 1"),
        (table(dense(1, 2, vec![1.0, f64::NAN]), vec![0.0], None, &[]), "row 0, column 1: the value NaN"),
        (table(two(), vec![0.0], None, &[]), "needs 2 labels, but has 1"),
        (table(two(), vec![0.0, f64::INFINITY], None, &[]), "row 1: the label inf does not fit"),
        (table(two(), vec![0.0; 2], Some(vec![1.0, -1.0]), &[]), "row 1: the weight -1"),
        (table(two(), vec![0.0; 2], Some(vec![0.0, 0.0]), &[]), "the weights add up to 0"),
        (table(two(), vec![0.0; 2], None, &["a", "b"]), "needs 1 names, but has 2"),
        (
            table(sparse(vec![1, 1], vec![0], vec![1.0]), vec![0.0], None, &[]),
            "row 0 of the sparse table starts at",
        ),
        (
            table(sparse(vec![0, 2, 1], vec![0, 1], vec![1.0; 2]), vec![0.0; 2], None, &[]),
            "starts at entry 1",
        ),
        (table(sparse(vec![0, 1], vec![0], vec![1.0; 2]), vec![0.0], None, &[]), "needs 1 values"),
        (table(sparse(vec![0, 1], vec![3], vec![1.0]), vec![0.0], None, &[]), "row 0: there is no column 3"),
        (
            table(sparse(vec![0, 2], vec![1, 1], vec![1.0; 2]), vec![0.0], None, &[]),
            "row 0: column 1 follows column 1",
        ),
        (
            table(sparse(vec![0, 1], vec![2], vec![f64::NAN]), vec![0.0], None, &[]),
            "row 0, column 2: the value NaN",
        ),
    ];
    for (result, expected) in cases {
        let message = message(result);
        assert!(message.contains(expected), "{message:?} does not say {expected:?}");
    }
}

#[test]
fn losses_and_designs_that_do_not_fit_are_refused() {
    let linear = |labels: Vec<f64>, loss, design| {
        let rows = labels.len();
        let features = stored(&vec![1e200; rows], 1, Storage::Dense64);
        Linear::new(Arc::new(Table::new(features, Arc::new(labels), None, Vec::new()).unwrap()), loss, design)
    };
    let plain = Design { standardise: false, ..Design::default() };
    let cases = [
        (
            linear(vec![-1.0, 1.0, 0.0], Loss::Logistic, plain),
            "row 2: the label 0 does not fit, the logistic loss",
        ),
        (linear(vec![1.0, 2.0], Loss::Hinge, plain), "needs labels -1 and 1, or 0 and 1"),
        (linear(vec![3.0], Loss::Multinomial { classes: 3 }, plain), "whole numbers from 0 to 2"),
        (linear(vec![0.5], Loss::Multinomial { classes: 3 }, plain), "row 0: the label 0.5"),
        (linear(vec![-1.0], Loss::Poisson, plain), "labels of at least 0"),
        (linear(vec![0.0], Loss::Huber { delta: 0.0 }, plain), "delta must be positive"),
        (linear(vec![0.0], Loss::Quantile { level: 1.0 }, plain), "level must be strictly between"),
        (linear(vec![0.0], Loss::Multinomial { classes: 1 }, plain), "classes must be at least 2"),
        (linear(vec![0.0], Loss::LeastSquares, Design { degree: 4, ..plain }), "degree must be 1, 2 or 3"),
        (
            linear(vec![0.0], Loss::LeastSquares, Design { penalty: -1.0, ..plain }),
            "penalty must be a finite",
        ),
        (
            linear(vec![0.0], Loss::LeastSquares, Design { intercept: false, ..Design::default() }),
            "column 0: its values are too large",
        ),
        (linear(vec![0.0, 2e-200, -3e-200], Loss::Huber { delta: 1.0 }, plain), "at most 3.000e-200 in size"),
    ];
    for (result, expected) in cases {
        let message = message(result);
        assert!(message.contains(expected), "{message:?} does not say {expected:?}");
    }
}

#[test]
fn columns_whose_squares_vanish_are_refused_and_constant_ones_are_not() {
    for storage in
        STORAGES.into_iter().filter(|storage| !matches!(storage, Storage::Dense32 | Storage::Sparse32))
    {
        let linear = |values: &[f64]| {
            let features = stored(values, 2, storage);
            let table = Table::new(features, Arc::new(vec![1.0, 2.0, 4.0]), None, Vec::new()).unwrap();
            Linear::new(Arc::new(table), Loss::LeastSquares, Design::default())
        };
        let message = message(linear(&[1.0, 1e-300, 2.0, 3e-300, 5.0, 4e-300]));
        assert!(message.contains("column 1: its values differ by too little"), "{message}");
        for constant in [0.0, 1e-300, 7.0] {
            assert!(linear(&[1.0, constant, 2.0, constant, 5.0, constant]).is_ok(), "{storage:?} {constant}");
        }
    }
}

/// The mean of many a constant is not that constant, and what rounding has left of it is no column.
#[test]
fn a_constant_column_gets_no_weight() {
    let rows = 700;
    for constant in [0.1, 19.99, 36.6, 2024.0, -1e9, 1e-12] {
        for storage in STORAGES {
            let mut xi = stream(3);
            let (mut values, mut labels) = (Vec::new(), Vec::new());
            for _ in 0..rows {
                let a = xi.normal();
                values.extend([a, constant]);
                labels.push(1e6 + 3.0 * a + xi.normal());
            }
            let table = Table::new(stored(&values, 2, storage), Arc::new(labels), None, Vec::new()).unwrap();
            for loss in [Loss::LeastSquares, Loss::Huber { delta: 1.0 }, Loss::Absolute] {
                let linear = Arc::new(Linear::new(Arc::new(table.clone()), loss, Design::default()).unwrap());
                let fit = Fit { way: Way::usual(&linear), start: None, target: None, budget: None, seed: 1 };
                let fitted = fit.run(&linear, linear.clone(), Arc::default(), &mut |_| ()).unwrap();
                let model = linear.raw_weights(&fitted.point);
                assert!(model.weights[1].abs() < 1e-300, "{constant} {storage:?} {loss:?}: {model:?}");
                assert!((model.weights[0] - 3.0).abs() < 0.2 && (model.intercepts[0] - 1e6).abs() < 0.2);
            }
        }
    }
}

#[test]
fn every_loss_is_a_row_and_comes_back_by_its_name_and_from_json() {
    for loss in losses() {
        let json = serde_json::to_string(&loss).unwrap();
        assert!(json.contains(&format!("\"name\":\"{}\"", loss.row().name)), "{json}");
        assert_eq!(serde_json::from_str::<Loss>(&json).unwrap(), loss);
    }
}

#[test]
fn a_run_through_the_gate_counts_rows() {
    let problem = problem(Loss::Logistic, Design::default(), Storage::Dense64, 1000, false);
    let x = problem.start();
    assert!(x.iter().all(|x| *x == 0.0));
    let mut gate = Gate::new(problem, 1).with_budget(3000);
    let mut g = vec![0.0; x.len()];
    gate.exact(Role::Large, &x, &mut g).unwrap();
    // A batch of a million costs the table, so the budget still holds one.
    gate.ask(Request::sums(gate.batch(Role::Large, 1, 1_000_000), &[&x]), &mut Answer::new(&mut g)).unwrap();
    gate.ask(Request::sums(gate.batch(Role::Large, 2, 999), &[&x]), &mut Answer::new(&mut g)).unwrap();
    assert_eq!(gate.ledger().samples(), 2999);
}

fn norm(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

fn distance(x: &[f64], y: &[f64]) -> f64 {
    norm(&x.iter().zip(y).map(|(x, y)| x - y).collect::<Vec<_>>())
}

/// Points near and far from the start.
fn points(problem: &Linear, start: &[f64]) -> Vec<Vec<f64>> {
    let mut xi = stream(31);
    let near = |scale: f64, xi: &mut Stream| start.iter().map(|x| x + scale * xi.normal()).collect();
    // A Poisson model has no bounds far out, and none are claimed.
    let far = if problem.loss() == Loss::Poisson { 0.1 } else { 10.0 };
    [1e-3, 0.1, 1.0, far].map(|scale| near(scale, &mut xi)).to_vec()
}

/// Each row's gradient, without its weight, and its share of all weight.
fn row_gradients(problem: &Linear, x: &[f64]) -> Vec<(f64, Vec<f64>)> {
    let table = problem.table();
    let weight = |row: usize| table.weights.as_ref().map_or(1.0, |w| (**w).as_ref()[row]);
    (0..table.rows())
        .filter(|row| weight(*row) > 0.0)
        .map(|row| {
            let mut g = vec![0.0; x.len()];
            problem.sum_stored(row..row + 1, x, &mut g);
            g.iter_mut().for_each(|g| *g /= weight(row));
            (weight(row) / problem.total_weight(), g)
        })
        .collect()
}

/// Every constant that is called proved holds between the start and some points, for every loss, storage and design.
#[test]
fn proved_constants_hold() {
    for loss in losses() {
        for (k, design) in designs().into_iter().enumerate() {
            let design = Design { penalty: if k % 2 == 0 { 0.0 } else { 0.3 }, ..design };
            let problem = problem(loss, design, STORAGES[k % 4], 60, k % 3 == 0);
            let start = problem.start();
            let proved = problem.constants(&start).unwrap();
            let get = |constant| proved.get(constant);
            let (at_start, value_at_start) = exact(&problem, &start);
            let rows_at_start = row_gradients(&problem, &start);
            assert_eq!(get(Constant::Smoothness).is_some(), loss.bounds().curvature.is_some());
            for x in points(&problem, &start) {
                let (gradient, value) = exact(&problem, &x);
                let apart = distance(&x, &start);
                let says = |name: &str, small: f64, large: f64| {
                    assert!(
                        small <= large * (1.0 + 1e-9),
                        "{name} of {loss:?}, {design:?}: {small} > {large}"
                    );
                };
                if let Some(l) = get(Constant::Smoothness) {
                    says("L", distance(&gradient, &at_start), l * apart);
                }
                let rows = row_gradients(&problem, &x);
                if let Some(lbar) = get(Constant::MsSmoothness) {
                    let pairs = rows.iter().zip(&rows_at_start);
                    let mean: f64 = pairs.map(|((p, g), (_, h))| p * distance(g, h).powi(2)).sum();
                    says("Lbar", mean.sqrt(), lbar * apart);
                    let largest = rows.iter().zip(&rows_at_start).map(|((_, g), (_, h))| distance(g, h));
                    says(
                        "row smoothness",
                        largest.fold(0.0, f64::max),
                        proved.row_smoothness.unwrap() * apart,
                    );
                }
                if let (Some(growth), Some(floor)) = (get(Constant::Growth), get(Constant::Floor)) {
                    let variance: f64 = rows.iter().map(|(p, g)| p * distance(g, &gradient).powi(2)).sum();
                    says("B and b", variance.sqrt(), (growth * apart).hypot(floor));
                }
                if let Some(g) = get(Constant::Lipschitz) {
                    says("G", norm(&gradient), g);
                }
                says("Delta", value_at_start - value, get(Constant::Gap).unwrap());
                // f + rho/2 |x|^2 is convex: above its tangent at the start.
                if let Some(rho) = get(Constant::Rho) {
                    let slope: f64 = at_start.iter().zip(&x).zip(&start).map(|((g, x), s)| g * (x - s)).sum();
                    let below = value_at_start + slope - 0.5 * rho * apart * apart - value;
                    says("rho", below, 1e-9 * (1.0 + value.abs() + value_at_start.abs()));
                }
                if let Some(mu) = get(Constant::Mu) {
                    let product: f64 = gradient
                        .iter()
                        .zip(&at_start)
                        .zip(x.iter().zip(&start))
                        .map(|((g, h), (x, s))| (g - h) * (x - s))
                        .sum();
                    says("mu", mu * apart * apart, product);
                }
            }
        }
    }
}

/// Not only true but good: the Hessian of least squares on these tables is known, and the bounds are close to it.
#[test]
fn bounds_of_eigenvalues_are_close() {
    let design = Design { intercept: false, standardise: false, degree: 1, penalty: 0.0 };
    for (storage, columns) in [(Storage::Dense64, 40), (Storage::Sparse64, 40), (Storage::Sparse64, 600)] {
        // Non-negative rows, for which Collatz and Wielandt's bound is exact in the limit.
        let rows = 700;
        let values: Vec<f64> = values(rows, columns, 5).iter().map(|v| v.abs()).collect();
        let table =
            Table::new(stored(&values, columns, storage), Arc::new(vec![0.0; rows]), None, Vec::new())
                .unwrap();
        let problem = Linear::new(Arc::new(table), Loss::LeastSquares, design).unwrap();
        let proved = problem.constants(&vec![0.0; columns]).unwrap();
        // The power method from below.
        let mut v = vec![1.0; columns];
        let mut lower = 0.0;
        for _ in 0..50 {
            lower = norm(&v);
            v.iter_mut().for_each(|v| *v /= lower);
            v = exact(&problem, &v).0;
        }
        let upper = proved.get(Constant::Smoothness).unwrap();
        assert!(
            (1.0 - 1e-9..1.001).contains(&(upper / lower)),
            "{columns} columns: {lower}..{upper}, {proved:?}"
        );
        let constants = Constants::from(&proved);
        assert_eq!(constants.get(Constant::Smoothness), Some(upper));
        if columns == 40 {
            let mu = proved.get(Constant::Mu).unwrap();
            assert!(mu > 0.0 && mu < upper);
            assert!(proved.get(Constant::Distance).is_some());
        }
    }
}

/// Steps of the power method on the Hessian of least squares: its largest eigenvalue, from below.
fn from_below(problem: &Linear, steps: usize) -> f64 {
    let start = vec![0.0; problem.dim()];
    let mut xi = stream(77);
    let mut v: Vec<f64> = (0..problem.dim()).map(|_| xi.normal()).collect();
    let (at_zero, _) = exact(problem, &start);
    let mut length = 0.0;
    for _ in 0..steps {
        length = norm(&v);
        v.iter_mut().for_each(|v| *v /= length);
        v = exact(problem, &v).0.iter().zip(&at_zero).map(|(g, h)| g - h).collect();
    }
    length
}

/// Too wide for a matrix: bounds by absolute values are far off where columns are centred, and Lanczos' method is not.
#[test]
fn wide_tables_have_bounds_that_are_close_with_a_probability_that_is_stated() {
    let (rows, columns) = (1500, 1000);
    let mut xi = stream(50);
    let values: Vec<f64> = (0..rows * columns).map(|_| xi.normal() + 3.0).collect();
    let dense = Features::Dense(Dense { rows, columns, values: values.into() });
    // About 200 entries a row, 1 or -1, in 20,000 columns.
    let (rows, columns, entries) = (4000, 20_000, 200);
    let (mut starts, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for _ in 0..rows {
        let mut own: Vec<u32> = (0..entries).map(|_| xi.below(columns as u64) as u32).collect();
        own.sort_unstable();
        own.dedup();
        values.extend(own.iter().map(|_| if xi.bernoulli(0.5) { 1.0 } else { -1.0 }));
        indices.extend(own);
        starts.push(values.len() as u64);
    }
    let (starts, indices, values) = (Arc::new(starts), Arc::new(indices), Values::F64(Arc::new(values)));
    let sparse = Features::Sparse(Sparse { columns, starts, indices, values });
    for (features, standardise) in [(dense, true), (sparse.clone(), false), (sparse, true)] {
        let rows = features.rows();
        // What the largest eigenvalue of E |a||a|' is at least, for columns of scale 1: a quotient of Rayleigh's.
        let root = if standardise { (columns as f64 / f64::from(entries)).sqrt() } else { 1.0 };
        let absolute = match &features {
            Features::Sparse(_) => (root * f64::from(entries)).powi(2) / columns as f64 * 0.9,
            // E |a| = sqrt(2/π) of a normal a.
            Features::Dense(dense) => dense.columns as f64 * 0.63,
        };
        let table = Table::new(features, Arc::new(vec![0.0; rows]), None, Vec::new()).unwrap();
        let design = Design { standardise, intercept: standardise, degree: 1, penalty: 0.0 };
        let problem = Linear::new(Arc::new(table), Loss::LeastSquares, design).unwrap();
        let proved = problem.constants(&problem.start()).unwrap();
        // 300 steps of the power method are within half a percent, here.
        let truth = from_below(&problem, 300);
        assert!((1.0..1.06).contains(&(proved.eigenvalue / truth)), "{truth}, {proved:?}");
        assert!(proved.eigenvalue < 0.1 * absolute, "{} and {absolute}", proved.eigenvalue);
        assert!(proved.eigenvalue_from.contains("Lanczos"), "{}", proved.eigenvalue_from);
        for constant in &proved.constants {
            // What rests on random starts says so, in words and as a number; the others are certain.
            let random =
                matches!(constant.constant, Constant::Smoothness | Constant::MsSmoothness | Constant::Growth);
            assert_eq!(constant.failure, if random { 1e-12 } else { 0.0 }, "{constant:?}");
            assert_eq!(constant.how.contains("except with probability 1e-12"), random, "{constant:?}");
        }
        // The same bits from a pool of another size.
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        assert_eq!(pool.install(|| problem.constants(&problem.start()).unwrap()), proved);
    }
}

#[test]
fn phase_retrieval_starts_where_there_is_a_slope() {
    let problem = problem(Loss::PhaseRetrieval, Design::default(), Storage::Dense64, 100, false);
    let start = problem.start();
    assert!(norm(&start) > 0.0);
    assert!(norm(&exact(&problem, &start).0) > 0.0);
}

#[test]
fn constants_of_a_start_of_the_wrong_dimension_are_refused() {
    let problem = problem(Loss::Logistic, Design::default(), Storage::Dense64, 100, false);
    let refused = message(problem.constants(&[0.0]));
    assert!(refused.contains("needs 6 coordinates of the start, but has 1"), "{refused}");
}

#[test]
fn the_page_about_tables_lists_every_loss() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tables.md")).unwrap();
    let listed: Vec<&str> =
        page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    let names: Vec<&str> = LOSSES.iter().map(|row| row.name).collect();
    assert_eq!(listed, names);
}
