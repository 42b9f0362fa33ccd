//! Formulas behind additive noise whose variance grows: B^2 |x - x0|^2 + b^2.

use std::sync::Arc;

use pasta_opt::draws::Stream;
use pasta_opt::objective::{Measure, Objective};
use pasta_opt::oracle::{Noise, Noisy, Tail};
use pasta_opt::problems::{Quadratic, Ramp, SineBowl};

use super::{Instance, Law, Truth, geometric, norm, normals, setup, stream};

/// The truth of a formula.
struct Formula(Arc<Noisy>);

impl Truth for Formula {
    fn error(&self, x: &[f64]) -> f64 {
        Measure::GradientSquared.at(self.0.objective(), x).unwrap_or(f64::NAN).sqrt()
    }

    fn value(&self, x: &[f64]) -> f64 {
        self.0.objective().value(x)
    }
}

fn noisy(objective: Box<dyn Objective>, growth: f64, floor: f64, start: Vec<f64>) -> Instance {
    let noise = Noise { growth, floor, tail: Tail::Gaussian };
    let oracle = Noisy::new(objective, noise, start.clone()).expect("the numbers below are in range");
    let oracle = Arc::new(oracle);
    Instance { oracle: oracle.clone(), truth: Arc::new(Formula(oracle)), start }
}

pub(super) fn sine() -> Instance {
    noisy(Box::new(SineBowl { dimension: 1 }), 9.0, 1.0, vec![1.2])
}

/// Slope 2 eps for 1/(2 eps), eps = .1, then flat within 4 eps.
pub(super) fn ramp() -> Instance {
    noisy(Box::new(Ramp { slope: 0.2, reach: 5.0, curvature: 0.5 }), 3.0, 0.1, vec![0.0])
}

/// A fixed random point at this distance from 0, the minimiser.
fn away(distance: f64) -> Vec<f64> {
    let mut x = normals(&mut setup(301), 50);
    let length = norm(&x);
    x.iter_mut().for_each(|x| *x *= distance / length);
    x
}

fn quad(growth: f64) -> Instance {
    noisy(Box::new(Quadratic { spectrum: geometric(1.0, 1e-3, 50) }), growth, 1.0, away(10.0))
}

pub(super) fn quad_0() -> Instance {
    quad(0.0)
}

pub(super) fn quad_1() -> Instance {
    quad(1.0)
}

pub(super) fn quad_10() -> Instance {
    quad(10.0)
}

pub(super) fn quad_30() -> Instance {
    quad(30.0)
}

fn round(growth: f64) -> Instance {
    noisy(Box::new(Quadratic { spectrum: vec![1.0; 50] }), growth, 1.0, away(5.0))
}

pub(super) fn round_0() -> Instance {
    round(0.0)
}

pub(super) fn round_1() -> Instance {
    round(1.0)
}

pub(super) fn round_10() -> Instance {
    round(10.0)
}

pub(super) fn round_30() -> Instance {
    round(30.0)
}

/// The quadratics with losses f(x) + s(x) <u, x - x0>, u the noise of the gradient: of mean f, and as noisy as they look.
struct Losses {
    spectrum: Vec<f64>,
    start: Vec<f64>,
    growth: f64,
}

pub(super) fn losses_10() -> Instance {
    losses("quad-losses-10", 10.0)
}

pub(super) fn losses_30() -> Instance {
    losses("quad-losses-30", 30.0)
}

fn losses(name: &'static str, growth: f64) -> Instance {
    stream(name, Losses { spectrum: geometric(1.0, 1e-3, 50), start: away(10.0), growth })
}

impl Law for Losses {
    fn start(&self) -> Vec<f64> {
        self.start.clone()
    }

    fn sample(&self, weight: f64, x: &[f64], xi: &mut Stream, out: &mut [f64]) -> f64 {
        let distance2: f64 = x.iter().zip(&self.start).map(|(x, start)| (x - start).powi(2)).sum();
        let deviation = ((self.growth * self.growth * distance2 + 1.0) / x.len() as f64).sqrt();
        let mut loss = 0.0;
        for (i, out) in out.iter_mut().enumerate() {
            let noise = deviation * xi.normal();
            *out += weight * (self.spectrum[i] * x[i] + noise);
            loss += 0.5 * self.spectrum[i] * x[i] * x[i] + noise * (x[i] - self.start[i]);
        }
        loss
    }

    fn gradient(&self, x: &[f64], out: &mut [f64]) {
        out.iter_mut().zip(x).zip(&self.spectrum).for_each(|((out, x), h)| *out = h * x);
    }

    fn value(&self, x: &[f64]) -> f64 {
        x.iter().zip(&self.spectrum).map(|(x, h)| 0.5 * h * x * x).sum()
    }
}
