//! Intervals for predictions cover as often as they say, on twenty laws, whatever the model misses.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use pasta_opt::conformal::Conformal;
use pasta_opt::draws::{Address, Role};
use pasta_opt::fit::{Fit, Way};
use pasta_opt::table::{Dense, Design, Features, Linear, Loss, Table};

/// Columns of every table.
const COLUMNS: usize = 3;
/// Rows that are fitted, that calibrate and that are predicted: with 39 to calibrate, an interval of level 0.9 has rank 36 of 40.
const ROWS: [usize; 3] = [60, 39, 50];
const LEVEL: f64 = 0.9;
const REPETITIONS: u64 = 60;

/// Uniform numbers and normal ones.
struct Draws(Vec<f64>, usize);

impl Draws {
    fn new(law: u64, repetition: u64) -> Self {
        let mut stream = Address { seed: law, role: Role::Setup, step: repetition, sample: 0 }.stream();
        Self((0..8000).map(|_| stream.uniform()).collect(), 0)
    }

    fn uniform(&mut self) -> f64 {
        self.1 += 1;
        self.0[self.1 - 1]
    }

    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    fn count(&mut self, mean: f64) -> f64 {
        let (mut product, mut count) = (self.uniform(), 0.0);
        while product > (-mean).exp() {
            product *= self.uniform();
            count += 1.0;
        }
        count
    }
}

/// A row of a law and its label: lines, bends and steps, with noise that is normal, heavy, skewed or grows.
fn row(law: u64, draws: &mut Draws) -> ([f64; COLUMNS], f64) {
    let a = [draws.normal(), draws.uniform(), draws.normal().exp()];
    let signal = match law % 5 {
        0 => 2.0 * a[0] - a[1],
        1 => a[0] * a[0],
        2 => (3.0 * a[0]).sin() + a[2],
        3 => 10.0 * f64::from(u8::from(a[1] > 0.7)),
        _ => 0.0,
    };
    let noise = match law / 5 {
        0 => draws.normal(),
        // Cauchy: without a mean.
        1 => (std::f64::consts::PI * (draws.uniform() - 0.5)).tan(),
        2 => -(1.0 - draws.uniform()).ln(),
        _ => (1.0 + a[0].abs()) * draws.normal(),
    };
    (a, signal + noise)
}

/// The share of labels that intervals cover, with a model of this loss.
fn coverage(loss: Loss, of: impl Fn(&mut Draws) -> ([f64; COLUMNS], f64), draws: &mut Draws) -> f64 {
    let parts: Vec<(Features, Vec<f64>)> = ROWS
        .iter()
        .map(|rows| {
            let (values, labels): (Vec<_>, Vec<f64>) = (0..*rows).map(|_| of(draws)).unzip();
            let dense = Dense { rows: *rows, columns: COLUMNS, values: values.concat().into() };
            (Features::Dense(dense), labels)
        })
        .collect();
    let table = Table::new(parts[0].0.clone(), Arc::new(parts[0].1.clone()), None, Vec::new()).unwrap();
    let linear = Arc::new(Linear::new(Arc::new(table), loss, Design::default()).unwrap());
    let fit = Fit { way: Way::usual(&linear), start: None, target: None, budget: None, seed: 1 };
    let fitted = fit.run(&linear, linear.clone(), Arc::default(), &mut |_| ()).unwrap();
    let model = linear.raw_weights(&fitted.point);
    let conformal = Conformal::of(&model, &parts[1].0, &parts[1].1).unwrap().unwrap();
    let covered = model.scores(&parts[2].0).unwrap().into_iter().zip(&parts[2].1).filter(|(score, label)| {
        let mut mean = [*score];
        loss.mean(&mut mean);
        let [low, high] = conformal.interval(LEVEL, loss, mean[0]).unwrap();
        (low..=high).contains(*label)
    });
    covered.count() as f64 / ROWS[2] as f64
}

fn mean_and_error(shares: &[f64]) -> (f64, f64) {
    let n = shares.len() as f64;
    let mean = shares.iter().sum::<f64>() / n;
    let variance = shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

#[test]
fn intervals_cover_as_often_as_they_say_on_twenty_laws() {
    for law in 0..20 {
        let loss = if law % 2 == 0 { Loss::LeastSquares } else { Loss::Huber { delta: 1.0 } };
        let of = |repetition| coverage(loss, |draws| row(law, draws), &mut Draws::new(law, repetition));
        let (mean, error) = mean_and_error(&(0..REPETITIONS).map(of).collect::<Vec<f64>>());
        // Labels without ties are covered with probability 0.9 exactly. Four standard errors, twenty times: a false alarm in a thousand such tests.
        assert!((mean - LEVEL).abs() < 4.0 * error, "law {law}: {mean} +- {error}");
    }
}

#[test]
fn intervals_of_counts_cover_at_least_as_often_as_they_say() {
    let of = |repetition| {
        let count = |draws: &mut Draws| {
            let a = [draws.normal(), draws.uniform(), draws.normal()];
            (a, draws.count((1.0 + 0.5 * a[0] + a[1]).exp()))
        };
        coverage(Loss::Poisson, count, &mut Draws::new(100, repetition))
    };
    let (mean, error) = mean_and_error(&(0..REPETITIONS).map(of).collect::<Vec<f64>>());
    assert!(mean > LEVEL - 4.0 * error && mean < 0.98, "{mean} +- {error}");
}
