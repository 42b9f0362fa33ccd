//! Laws of whole runs: change a problem in a way whose effect is known, and the run changes in that way. docs/laws.md lists them.
//!
//! Each law is tried on cases that are made from a number. `FUZZ_CASES=1000 FUZZ_FIRST=5000` tries a thousand of each law, from number 5000 on;
//! `cargo xtask fuzz --seconds 600` goes on until the time is over.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::sync::Arc;

use pasta_opt::draws::{Address, Role};
use pasta_opt::fit::{Fit, Fitted, Way};
use pasta_opt::oracle::{About, Answer, Charge, Request};
use pasta_opt::prelude::*;
use pasta_opt::problems::{Absolute, Huber, Quadratic, SineBowl, SoftAbsolute};
use pasta_opt::run::{MethodSpec, Problem, Report, Target, Task};
use pasta_opt::table::{Dense, Design, Features, Linear, Loss, Sparse, Table, Values};

/// The numbers of the cases to try.
fn cases() -> std::ops::Range<u64> {
    let number = |name: &str, usual| std::env::var(name).map_or(usual, |n| n.parse().unwrap());
    let first = number("FUZZ_FIRST", 0);
    first..first + number("FUZZ_CASES", 60)
}

fn stream(case: u64, law: u64) -> Stream {
    Address { seed: 33, role: Role::Setup, step: law, sample: case }.stream()
}

fn between(xi: &mut Stream, low: f64, high: f64) -> f64 {
    low + (high - low) * xi.uniform()
}

/// One of several.
fn one_of<T: Copy>(xi: &mut Stream, of: &[T]) -> T {
    of[xi.below(of.len() as u64) as usize]
}

/// A problem and a task, both small, that a stream chooses.
struct Case {
    oracle: Arc<dyn Oracle>,
    start: Vec<f64>,
    noise: Noise,
    task: Task,
}

impl Case {
    fn draw(xi: &mut Stream, methods: &[&str]) -> Self {
        let dimension = 1 + xi.below(5) as usize;
        let spectrum = (0..dimension).map(|_| between(xi, 0.1, 2.0)).collect();
        let objective: Box<dyn Objective> = match xi.below(5) {
            0 => Box::new(SineBowl { dimension }),
            1 => Box::new(Quadratic { spectrum }),
            2 => Box::new(SoftAbsolute { dimension }),
            3 => Box::new(Huber { dimension, curvature: 1.0, lipschitz: 1.5 }),
            _ => Box::new(Absolute { dimension }),
        };
        let tail = match xi.below(4) {
            0 => Tail::Gaussian,
            1 => Tail::StudentT { dof: between(xi, 2.5, 9.0) },
            2 => Tail::Lognormal { sigma: between(xi, 0.2, 1.2) },
            _ => Tail::TwoPoint { probability: between(xi, 0.05, 0.5) },
        };
        let growth = if xi.bernoulli(0.3) { 0.0 } else { between(xi, 0.1, 2.0) };
        let noise = Noise { growth, floor: between(xi, 0.2, 2.0), tail };
        let start: Vec<f64> = (0..dimension).map(|_| between(xi, -2.0, 2.0)).collect();
        let oracle = Arc::new(Noisy::new(objective, noise, start.clone()).unwrap());
        let name = one_of(xi, methods);
        let method = match name {
            "auto" => MethodSpec::Auto,
            _ => MethodSpec::Named {
                name: name.into(),
                settings: settings(name, between(xi, 0.01, 0.2)),
                steps: 20 + xi.below(200),
                batch: 1 + xi.below(4),
            },
        };
        let basis = match xi.below(3) {
            0 => Basis::Growth { growth: noise.growth, floor: noise.floor, distance: 0.0 },
            1 => Basis::Kurtosis(between(xi, 4.0, 100.0)),
            _ => Basis::Variance(between(xi, 1.0, 20.0)),
        };
        let rule = StopRule { target: between(xi, 0.2, 1.0), delta: 0.05, basis, share: 0.5 };
        let certify = xi.bernoulli(0.6).then_some(rule);
        let budget = Some(500 + u128::from(xi.below(8000)));
        let task = Task { method, certify, budget, seed: xi.below(u64::MAX), ..Task::default() };
        Self { oracle, start, noise, task }
    }

    fn problem(&self) -> Arc<Problem> {
        Arc::new(Problem::of(Arc::clone(&self.oracle), self.start.clone()))
    }

    fn run(&self) -> Report {
        let mut run = Run::start(self.problem(), self.task.clone(), Arc::default()).unwrap();
        let stop = run.finish().unwrap();
        run.report(stop)
    }

    /// The same case in other coordinates, y with x = map(y), and with another unit of f.
    fn through(&self, map: Map) -> Self {
        let Map { unit, scale, .. } = map;
        let start = map.inverse(&self.start);
        let slope = unit * scale;
        let mut task = self.task.clone();
        if let Some(rule) = &mut task.certify {
            rule.target *= slope;
            rule.basis = match rule.basis {
                Basis::Variance(variance) => Basis::Variance(variance * slope * slope),
                Basis::Growth { growth, floor, distance } => {
                    Basis::Growth { growth: growth * slope * scale, floor: floor * slope, distance }
                }
                other => other,
            };
        }
        if let MethodSpec::Named { name, settings, .. } = &mut task.method {
            for (setting, value) in settings {
                *value *= match (name.as_str(), setting.as_str()) {
                    ("sgd" | "momentum" | "halpern", "eta") => 1.0 / (slope * scale),
                    ("adam", "eta") => 1.0 / scale,
                    ("adam", "epsilon") => slope,
                    _ => 1.0,
                };
            }
        }
        let oracle =
            Arc::new(Mapped { about: self.oracle.about().clone(), inner: Arc::clone(&self.oracle), map });
        Self { oracle, start, noise: self.noise, task }
    }
}

fn settings(name: &str, eta: f64) -> BTreeMap<String, f64> {
    let mut settings = BTreeMap::new();
    if name != "dog" && name != "prodigy" {
        settings.insert("eta".to_owned(), eta);
    }
    if name == "adam" {
        settings.insert("epsilon".to_owned(), 1e-8);
    }
    if name == "storm" {
        settings.insert("momentum".to_owned(), 0.3);
    }
    settings
}

/// Other coordinates: x_i = sign_i scale y_p(i) + shift_i; and f in another unit.
#[derive(Debug, Clone)]
struct Map {
    unit: f64,
    scale: f64,
    signs: Vec<f64>,
    order: Vec<usize>,
    shift: Vec<f64>,
}

impl Map {
    fn same(dimension: usize) -> Self {
        Self {
            unit: 1.0,
            scale: 1.0,
            signs: vec![1.0; dimension],
            order: (0..dimension).collect(),
            shift: vec![0.0; dimension],
        }
    }

    fn point(&self, y: &[f64]) -> Vec<f64> {
        let x = |i: usize| self.signs[i] * self.scale * y[self.order[i]] + self.shift[i];
        (0..y.len()).map(x).collect()
    }

    fn inverse(&self, x: &[f64]) -> Vec<f64> {
        let mut y = vec![0.0; x.len()];
        for i in 0..x.len() {
            y[self.order[i]] = (x[i] - self.shift[i]) * self.signs[i] / self.scale;
        }
        y
    }

    fn gradient(&self, g: &[f64], out: &mut [f64]) {
        for i in 0..g.len() {
            out[self.order[i]] = self.unit * self.scale * self.signs[i] * g[i];
        }
    }
}

/// An oracle seen through other coordinates.
struct Mapped {
    inner: Arc<dyn Oracle>,
    about: About,
    map: Map,
}

impl Oracle for Mapped {
    fn about(&self) -> &About {
        &self.about
    }
    fn answer(&self, request: &Request<'_>, answer: &mut Answer<'_>) -> Result<Charge, OracleError> {
        let points: Vec<Vec<f64>> = request.points.iter().map(|y| self.map.point(y)).collect();
        let points: Vec<&[f64]> = points.iter().map(Vec::as_slice).collect();
        let mut gradients = vec![0.0; answer.gradients.len()];
        let mut inside: Request<'_> = request.clone();
        inside.points = &points;
        let charge = self.inner.answer(&inside, &mut Answer::new(&mut gradients))?;
        let dim = self.about.dim;
        for (g, out) in gradients.chunks(dim).zip(answer.gradients.chunks_mut(dim)) {
            self.map.gradient(g, out);
        }
        Ok(charge)
    }
}

const ALL: [&str; 8] = ["auto", "sgd", "momentum", "adam", "halpern", "storm", "dog", "prodigy"];
/// Methods whose steps look at each coordinate by itself.
const COORDINATEWISE: [&str; 3] = ["sgd", "momentum", "adam"];
/// Methods whose settings are known in other units, and the one without settings.
const WITH_UNITS: [&str; 5] = ["auto", "sgd", "momentum", "halpern", "adam"];

fn bits(x: &[f64]) -> Vec<u64> {
    x.iter().map(|x| x.to_bits()).collect()
}

/// All but the point and numbers in units: how it ended, what it drew, what was certified.
fn course(report: &Report) -> String {
    let certificate = report.certificate.as_ref().map(|c| {
        let made = c.made.unwrap();
        (c.certificate.verdict, c.certificate.samples, c.attempts, made.samples_each, made.sub_batches)
    });
    format!("{} {} {:?} {certificate:?}", report.stop.kind, report.steps, report.ledger)
}

fn bound(report: &Report) -> Option<f64> {
    report.certificate.as_ref().and_then(|c| c.certificate.bound)
}

#[test]
fn threads_change_no_bit() {
    for case in cases() {
        let mut xi = stream(case, 1);
        let drawn = Case::draw(&mut xi, &ALL);
        let threads = 2 + xi.below(6) as usize;
        let with = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            serde_json::to_string(&pool.install(|| drawn.run())).unwrap()
        };
        assert_eq!(with(1), with(threads), "case {case}");
    }
}

#[test]
fn saving_and_resuming_anywhere_changes_no_bit() {
    for case in cases() {
        let mut xi = stream(case, 2);
        let drawn = Case::draw(&mut xi, &ALL);
        let expected = serde_json::to_string(&drawn.run()).unwrap();
        let (problem, task) = (drawn.problem(), drawn.task.clone());
        let often = between(&mut xi, 0.01, 0.3);
        let mut run = Run::start(Arc::clone(&problem), task.clone(), Arc::default()).unwrap();
        let stop = loop {
            if let Event::End(stop) = run.next().unwrap() {
                break stop;
            }
            if xi.bernoulli(often) {
                let mut saver = Saver::default();
                run.save(&mut saver);
                let mut checkpoint = Checkpoint::from_bytes(&saver.to_bytes()).unwrap();
                run =
                    Run::resume(Arc::clone(&problem), task.clone(), &mut checkpoint, Arc::default()).unwrap();
            }
        };
        assert_eq!(serde_json::to_string(&run.report(stop)).unwrap(), expected, "case {case}");
    }
}

#[test]
fn reflected_coordinates_reflect_the_point_to_the_bit() {
    for case in cases() {
        let mut xi = stream(case, 3);
        let drawn = Case::draw(&mut xi, &ALL);
        let mut map = Map::same(drawn.start.len());
        map.signs.iter_mut().for_each(|sign| *sign = if xi.bernoulli(0.5) { -1.0 } else { 1.0 });
        let (one, two) = (drawn.run(), drawn.through(map.clone()).run());
        assert_eq!(course(&one), course(&two), "case {case}");
        assert_eq!(bound(&one), bound(&two), "case {case}");
        // A zero has a sign, which no sum sees.
        let plain = |x: Vec<f64>| bits(&x.iter().map(|x| x + 0.0).collect::<Vec<_>>());
        assert_eq!(plain(one.point.unwrap()), plain(map.point(&two.point.unwrap())), "case {case}");
    }
}

#[test]
fn units_of_f_and_of_x_that_are_powers_of_two_change_no_digit() {
    for case in cases() {
        let mut xi = stream(case, 4);
        let drawn = Case::draw(&mut xi, &WITH_UNITS);
        let power = |xi: &mut Stream| 2f64.powi(xi.below(21) as i32 - 10);
        let (unit, scale) = (power(&mut xi), power(&mut xi));
        // Its first step has a length of its own, whatever the unit of x.
        let scale = if drawn.task.method == MethodSpec::Auto { 1.0 } else { scale };
        let map = Map { unit, scale, ..Map::same(drawn.start.len()) };
        let (one, two) = (drawn.run(), drawn.through(map.clone()).run());
        assert_eq!(course(&one), course(&two), "case {case}, {map:?}");
        let slope = map.unit * map.scale;
        assert_eq!(bound(&one).map(|bound| bound * slope), bound(&two), "case {case}, {map:?}");
        assert_eq!(bits(&one.point.unwrap()), bits(&map.point(&two.point.unwrap())), "case {case}, {map:?}");
    }
}

/// Norms are sums over coordinates, so that another order rounds them otherwise; methods that take no norm do not see it.
#[test]
fn permuted_coordinates_permute_the_point() {
    for case in cases() {
        let mut xi = stream(case, 5);
        let mut drawn = Case::draw(&mut xi, &COORDINATEWISE);
        drawn.task.certify = None;
        let mut map = Map::same(drawn.start.len());
        for i in (1..map.order.len()).rev() {
            map.order.swap(i, xi.below(i as u64 + 1) as usize);
        }
        let (one, two) = (drawn.run(), drawn.through(map.clone()).run());
        assert_eq!(course(&one), course(&two), "case {case}");
        assert_eq!(bits(&one.point.unwrap()), bits(&map.point(&two.point.unwrap())), "case {case}");
    }
}

/// x - a is rounded, so that a step in other coordinates is off by some units in the last place of the largest number in sight, here 8; steps of these
/// lengths on these problems do not enlarge what is there by more than 1 + eta L <= 1.6 each, and mostly shrink it.
#[test]
fn a_translated_problem_has_translated_points_up_to_rounding() {
    for case in cases() {
        let mut xi = stream(case, 6);
        let mut drawn = Case::draw(&mut xi, &["sgd"]);
        drawn.task.certify = None;
        // At a kink a rounding decides on a side, and without noise that grows the steps stay close.
        drawn.oracle = Arc::new(
            Noisy::new(
                Box::new(Quadratic { spectrum: vec![0.7; drawn.start.len()] }),
                Noise { growth: 0.0, ..drawn.noise },
                drawn.start.clone(),
            )
            .unwrap(),
        );
        let mut map = Map::same(drawn.start.len());
        map.shift.iter_mut().for_each(|shift| *shift = between(&mut xi, -4.0, 4.0));
        let (one, two) = (drawn.run(), drawn.through(map.clone()).run());
        assert_eq!(course(&one), course(&two), "case {case}");
        for (x, y) in one.point.unwrap().iter().zip(map.point(&two.point.unwrap())) {
            assert!((x - y).abs() < 1e-11, "case {case}: {x} and {y}");
        }
    }
}

/// Rows, and what is done to them.
#[derive(Clone)]
struct Rows {
    values: Vec<Vec<f64>>,
    labels: Vec<f64>,
    weights: Option<Vec<f64>>,
    loss: Loss,
}

impl Rows {
    fn draw(xi: &mut Stream) -> Self {
        let columns = 1 + xi.below(4) as usize;
        let rows = 20 + xi.below(60) as usize;
        // Multiples of 1/64, which f32 holds.
        let value = |xi: &mut Stream| (64.0 * xi.normal()).round() / 64.0;
        let values: Vec<Vec<f64>> = (0..rows).map(|_| (0..columns).map(|_| value(xi)).collect()).collect();
        let loss = one_of(xi, &[Loss::LeastSquares, Loss::Logistic, Loss::Huber { delta: 1.0 }]);
        let label = |row: &Vec<f64>| match row[0] + 2.0 * xi.normal() {
            sum if loss == Loss::Logistic => sum.signum(),
            sum => sum,
        };
        let labels = values.iter().map(label).collect();
        Self { values, labels, weights: None, loss }
    }

    fn columns(&self) -> usize {
        self.values[0].len()
    }

    fn linear(&self, features: Option<Features>, design: Design) -> Arc<Linear> {
        let (rows, columns) = (self.values.len(), self.columns());
        let dense = || Features::Dense(Dense { rows, columns, values: self.values.concat().into() });
        let weights = self.weights.clone().map(|weights| Arc::new(weights) as _);
        let table =
            Table::new(features.unwrap_or_else(dense), Arc::new(self.labels.clone()), weights, Vec::new());
        Arc::new(Linear::new(Arc::new(table.unwrap()), self.loss, design).unwrap())
    }

    /// The model by second-order steps to a tiny gradient, and its weights for the columns as they are.
    fn fit(&self) -> (Fitted, Vec<f64>) {
        let linear = self.linear(None, DESIGN);
        let fit = Fit {
            way: Way::SecondOrder,
            start: None,
            target: Some(Target::Norm(1e-10)),
            budget: None,
            seed: 1,
        };
        let fitted = fit.run(&linear, linear.clone(), Arc::default(), &mut |_| ()).unwrap();
        let model = linear.raw_weights(&fitted.point);
        let weights = [model.weights, model.intercepts].concat();
        (fitted, weights)
    }
}

/// The penalty makes f strongly convex in the weights, so that a small gradient is a small distance.
const DESIGN: Design = Design { intercept: true, standardise: true, degree: 1, penalty: 0.01 };

/// Both gradients are at most 1e-10, so that the points are within 2e-10/mu of each other; mu is at least the smallest eigenvalue of a Hessian of a few
/// dozen rows, which is above 1e-3 here but for rare tables. Weights are of size 1.
fn assert_close(one: &[f64], two: &[f64], what: &str) {
    assert_eq!(one.len(), two.len(), "{what}");
    for (a, b) in one.iter().zip(two) {
        assert!((a - b).abs() <= 1e-6 * (1.0 + a.abs()), "{what}: {one:?} and {two:?}");
    }
}

#[test]
fn a_fit_does_not_depend_on_how_rows_and_columns_are_written() {
    for case in cases() {
        let mut xi = stream(case, 7);
        let rows = Rows::draw(&mut xi);
        let (fitted, weights) = rows.fit();
        let what = |law: &str| format!("case {case}: {law}");
        let is_certified = fitted.verdict;
        let check = |law: &str, other: &Rows, expected: &[f64]| {
            let (again, weights) = other.fit();
            assert_eq!(again.verdict, is_certified, "{}", what(law));
            assert_close(expected, &weights, &what(law));
        };

        // Every row twice.
        let twice = Rows {
            values: [rows.values.clone(), rows.values.clone()].concat(),
            labels: rows.labels.repeat(2),
            ..rows.clone()
        };
        check("every row twice", &twice, &weights);
        // Some rows twice, or with weight 2.
        let doubled: Vec<bool> = rows.values.iter().map(|_| xi.bernoulli(0.3)).collect();
        let mut repeated = rows.clone();
        for (i, _) in doubled.iter().enumerate().filter(|(_, doubled)| **doubled) {
            repeated.values.push(rows.values[i].clone());
            repeated.labels.push(rows.labels[i]);
        }
        let of_repeated = repeated.fit().1;
        let weighted = doubled.iter().map(|doubled| if *doubled { 2.0 } else { 1.0 }).collect();
        check("weights for repeated rows", &Rows { weights: Some(weighted), ..rows.clone() }, &of_repeated);
        // All weights in another unit.
        let unit = between(&mut xi, 0.01, 100.0);
        let other_unit = Rows { weights: Some(vec![unit; rows.values.len()]), ..rows.clone() };
        check("another unit of weights", &other_unit, &weights);
        // Rows and columns in another order.
        let mut reversed = rows.clone();
        reversed.values.reverse();
        reversed.labels.reverse();
        check("rows reversed", &reversed, &weights);
        let columns = rows.columns();
        let mut mirrored = rows.clone();
        mirrored.values.iter_mut().for_each(|row| row.reverse());
        let mut expected = weights.clone();
        expected[..columns].reverse();
        check("columns reversed", &mirrored, &expected);
        // A column of nothing.
        let mut wider = rows.clone();
        let at = xi.below(columns as u64 + 1) as usize;
        wider.values.iter_mut().for_each(|row| row.insert(at, 0.0));
        let mut expected = weights.clone();
        expected.insert(at, 0.0);
        check("a column of zeros", &wider, &expected);
        // Columns in other units; they are standardised.
        let unit = 10f64.powf(between(&mut xi, -3.0, 3.0));
        let shift = between(&mut xi, -5.0, 5.0);
        let mut scaled = rows.clone();
        scaled.values.iter_mut().for_each(|row| row[0] = unit * row[0] + shift);
        let mut expected = weights.clone();
        expected[0] /= unit;
        expected[columns] -= expected[0] * shift;
        let (again, found) = scaled.fit();
        assert_eq!(again.verdict, is_certified, "{}", what("a column in another unit"));
        // The weight is in another unit, too.
        let in_unit = |weights: &[f64]| {
            let mut weights = weights.to_vec();
            weights[0] *= unit;
            weights
        };
        assert_close(&in_unit(&expected), &in_unit(&found), &what("a column in another unit"));
    }
}

#[test]
fn how_a_table_is_stored_and_in_which_blocks_it_is_read_changes_no_bit_of_a_run() {
    for case in cases() {
        let mut xi = stream(case, 8);
        let rows = Rows::draw(&mut xi);
        let columns = rows.columns();
        let values = rows.values.concat();
        let single = Values::F32(Arc::new(values.iter().map(|v| *v as f32).collect::<Vec<_>>()));
        let narrow = Features::Dense(Dense { rows: rows.values.len(), columns, values: single });
        let (mut starts, mut indices, mut entries) = (vec![0], Vec::new(), Vec::new());
        for row in &rows.values {
            indices.extend(0..columns as u32);
            entries.extend(row);
            starts.push(entries.len() as u64);
        }
        let sparse = Features::Sparse(Sparse {
            columns,
            starts: Arc::new(starts),
            indices: Arc::new(indices),
            values: Values::F64(Arc::new(entries)),
        });
        let task = Task { budget: Some(200 + u128::from(xi.below(2000))), seed: case, ..Task::default() };
        let run = |features: Option<Features>, threads: usize| {
            let linear = rows.linear(features, DESIGN);
            let start = vec![0.0; linear.about().dim];
            let problem = Arc::new(Problem::of(linear, start));
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let report = pool.install(|| {
                let mut run = Run::start(problem, task.clone(), Arc::default()).unwrap();
                let stop = run.finish().unwrap();
                run.report(stop)
            });
            (course(&report), report.point.unwrap())
        };
        let (expected, point) = run(None, 1);
        for (threads, features) in [(3, None), (1, Some(narrow))] {
            let (course, other) = run(features, threads);
            assert_eq!((&course, bits(&other)), (&expected, bits(&point)), "case {case}");
        }
        // Sparse rows are added in another order.
        let (course, other) = run(Some(sparse), 1);
        assert_eq!(course.split(' ').next(), expected.split(' ').next(), "case {case}");
        assert_eq!(other.len(), point.len());
    }
}
