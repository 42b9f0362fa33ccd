//! Decisions under risk: sample gradients that jump.

use pasta_opt::draws::Stream;

use super::normal::{below, density};
use super::{Instance, Law, dot, normals, setup, stream};

/// How much of five goods to order at cost 1 a unit, sold at their prices as far as there is demand, which is lognormal.
struct Newsvendor;

const MEDIAN: [f64; 5] = [1.0, 2.0, 5.0, 10.0, 20.0];
const SPREAD: [f64; 5] = [0.3, 0.5, 0.5, 0.8, 1.0];
const PRICE: [f64; 5] = [2.0, 3.0, 2.0, 4.0, 3.0];

pub(super) fn newsvendor() -> Instance {
    stream("newsvendor", Newsvendor)
}

impl Law for Newsvendor {
    fn start(&self) -> Vec<f64> {
        MEDIAN.iter().map(|median| 0.2 * median).collect()
    }

    fn sample(&self, weight: f64, x: &[f64], xi: &mut Stream, out: &mut [f64]) -> f64 {
        let mut loss = 0.0;
        for i in 0..5 {
            let demand = MEDIAN[i] * (SPREAD[i] * xi.normal()).exp();
            out[i] += weight * if demand > x[i] { 1.0 - PRICE[i] } else { 1.0 };
            loss += x[i] - PRICE[i] * x[i].min(demand);
        }
        loss
    }

    fn gradient(&self, x: &[f64], out: &mut [f64]) {
        for i in 0..5 {
            out[i] = 1.0 - PRICE[i] * below(-(x[i].max(1e-300) / MEDIAN[i]).ln() / SPREAD[i]);
        }
    }

    /// E min(x, D) = x P(D > x) + E D 1(D < x), and a lognormal D weighted by itself is lognormal with a larger median.
    fn value(&self, x: &[f64]) -> f64 {
        let of = |i: usize| {
            if x[i] <= 0.0 {
                return x[i] - PRICE[i] * x[i];
            }
            let (z, s) = ((x[i] / MEDIAN[i]).ln() / SPREAD[i], SPREAD[i]);
            let sold = x[i] * below(-z) + MEDIAN[i] * (0.5 * s * s).exp() * below(z - s);
            x[i] - PRICE[i] * sold
        };
        (0..5).map(of).sum()
    }
}

/// t + E max(0, -<r, w> - t)/alpha + 5 (sum w - 1)^2: the expected shortfall of a portfolio w of normal returns r with one common
/// factor, in the form of Rockafellar and Uryasev; t comes last in x.
struct Shortfall {
    means: Vec<f64>,
    own: Vec<f64>,
    common: Vec<f64>,
}

const GOODS: usize = 8;
const ALPHA: f64 = 0.1;

pub(super) fn shortfall() -> Instance {
    let mut xi = setup(51);
    let means = normals(&mut xi, GOODS).iter().map(|m| 0.1 + 0.05 * m).collect();
    let own = (0..GOODS).map(|i| 0.2 + 0.1 * i as f64).collect();
    let common = normals(&mut xi, GOODS).iter().map(|c| 0.3 * c.abs()).collect();
    stream("shortfall", Shortfall { means, own, common })
}

impl Shortfall {
    /// Mean and deviation of the loss -<r, w>.
    fn law_of_loss(&self, w: &[f64]) -> (f64, f64) {
        let own: f64 = w.iter().zip(&self.own).map(|(w, own)| (w * own).powi(2)).sum();
        (-dot(&self.means, w), (own + dot(&self.common, w).powi(2)).sqrt())
    }
}

impl Law for Shortfall {
    fn start(&self) -> Vec<f64> {
        let mut x = vec![0.0; GOODS + 1];
        x[0] = 1.0;
        x
    }

    fn sample(&self, weight: f64, x: &[f64], xi: &mut Stream, out: &mut [f64]) -> f64 {
        let (w, t) = (&x[..GOODS], x[GOODS]);
        let factor = xi.normal();
        let returns: Vec<f64> =
            (0..GOODS).map(|i| self.means[i] + self.common[i] * factor + self.own[i] * xi.normal()).collect();
        let excess = -dot(&returns, w) - t;
        let missing = w.iter().sum::<f64>() - 1.0;
        let tail = if excess > 0.0 { 1.0 / ALPHA } else { 0.0 };
        for i in 0..GOODS {
            out[i] += weight * (10.0 * missing - tail * returns[i]);
        }
        out[GOODS] += weight * (1.0 - tail);
        t + tail * excess + 5.0 * missing * missing
    }

    fn gradient(&self, x: &[f64], out: &mut [f64]) {
        let (w, t) = (&x[..GOODS], x[GOODS]);
        let (centre, spread) = self.law_of_loss(w);
        let q = (centre - t) / spread;
        let along = dot(&self.common, w);
        let missing = w.iter().sum::<f64>() - 1.0;
        for i in 0..GOODS {
            let covariance = self.own[i].powi(2) * w[i] + self.common[i] * along;
            let tail = covariance / spread * density(q) - self.means[i] * below(q);
            out[i] = 10.0 * missing + tail / ALPHA;
        }
        out[GOODS] = 1.0 - below(q) / ALPHA;
    }

    fn value(&self, x: &[f64]) -> f64 {
        let (w, t) = (&x[..GOODS], x[GOODS]);
        let (centre, spread) = self.law_of_loss(w);
        let q = (centre - t) / spread;
        let excess = (centre - t) * below(q) + spread * density(q);
        t + excess / ALPHA + 5.0 * (w.iter().sum::<f64>() - 1.0).powi(2)
    }
}
