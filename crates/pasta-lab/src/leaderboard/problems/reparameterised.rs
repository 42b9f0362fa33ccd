//! Mean-field variational inference: x has means and logarithms of deviations, and samples of the target's log density are
//! differentiated through z = mean + deviation e.

use pasta_opt::draws::Stream;

use super::normal::mean;
use super::{Instance, Law, dot, normals, setup, sigmoid, softplus, stream};

/// Dimension of the target.
const K: usize = 5;
/// Logarithms beyond this are of no use and overflow.
const MOST: f64 = 50.0;

/// A normal target with this precision matrix.
struct Gaussian {
    centre: Vec<f64>,
    precision: Vec<Vec<f64>>,
}

/// Precisions 1 to 16 along random orthogonal directions.
pub(super) fn gaussian() -> Instance {
    let mut xi = setup(41);
    let mut directions: Vec<Vec<f64>> = Vec::new();
    while directions.len() < K {
        let mut v = normals(&mut xi, K);
        for other in &directions {
            let along = dot(&v, other);
            v.iter_mut().zip(other).for_each(|(v, o)| *v -= along * o);
        }
        let length = dot(&v, &v).sqrt();
        v.iter_mut().for_each(|v| *v /= length);
        directions.push(v);
    }
    let entry = |i: usize, j: usize| {
        directions.iter().enumerate().map(|(k, q)| 2f64.powi(k as i32) * q[i] * q[j]).sum()
    };
    let precision = (0..K).map(|i| (0..K).map(|j| entry(i, j)).collect()).collect();
    stream("vi-gaussian", Gaussian { centre: normals(&mut xi, K), precision })
}

impl Gaussian {
    /// P v.
    fn steepness(&self, v: &[f64]) -> Vec<f64> {
        self.precision.iter().map(|row| dot(row, v)).collect()
    }
}

impl Law for Gaussian {
    fn start(&self) -> Vec<f64> {
        [vec![0.0; K], vec![1.0; K]].concat()
    }

    fn sample(&self, weight: f64, x: &[f64], xi: &mut Stream, out: &mut [f64]) -> f64 {
        let shift: Vec<f64> = x[K..].iter().map(|log| log.min(MOST).exp() * xi.normal()).collect();
        let away: Vec<f64> = (0..K).map(|i| x[i] + shift[i] - self.centre[i]).collect();
        let slope = self.steepness(&away);
        for i in 0..K {
            out[i] += weight * slope[i];
            out[K + i] += weight * (slope[i] * shift[i] - 1.0);
        }
        0.5 * dot(&slope, &away) - x[K..].iter().sum::<f64>()
    }

    fn gradient(&self, x: &[f64], out: &mut [f64]) {
        let away: Vec<f64> = x.iter().zip(&self.centre).map(|(x, c)| x - c).collect();
        out[..K].copy_from_slice(&self.steepness(&away));
        for i in 0..K {
            out[K + i] = self.precision[i][i] * (2.0 * x[K + i].min(MOST)).exp() - 1.0;
        }
    }

    fn value(&self, x: &[f64]) -> f64 {
        let away: Vec<f64> = x.iter().zip(&self.centre).map(|(x, c)| x - c).collect();
        let spread = (0..K).map(|i| 0.5 * self.precision[i][i] * (2.0 * x[K + i].min(MOST)).exp());
        0.5 * dot(&self.steepness(&away), &away) + spread.sum::<f64>() - x[K..].iter().sum::<f64>()
    }
}

/// The posterior of a logistic regression: a standard normal prior and a few rows y_i a_i.
struct Posterior {
    rows: Vec<Vec<f64>>,
}

pub(super) fn logistic() -> Instance {
    let mut xi = setup(42);
    let truth = normals(&mut xi, K);
    let rows = (0..60)
        .map(|_| {
            let a = normals(&mut xi, K);
            let sign = if xi.uniform() < sigmoid(2.0 * dot(&a, &truth)) { 1.0 } else { -1.0 };
            a.iter().map(|a| sign * a).collect()
        })
        .collect();
    stream("vi-logistic", Posterior { rows })
}

impl Posterior {
    /// Mean and deviation of <a, z>.
    fn score(x: &[f64], a: &[f64]) -> (f64, f64) {
        let squares = a.iter().zip(&x[K..]).map(|(a, log)| (a * log.min(MOST).exp()).powi(2));
        (dot(a, &x[..K]), squares.sum::<f64>().sqrt())
    }
}

impl Law for Posterior {
    fn start(&self) -> Vec<f64> {
        vec![0.0; 2 * K]
    }

    fn sample(&self, weight: f64, x: &[f64], xi: &mut Stream, out: &mut [f64]) -> f64 {
        let shift: Vec<f64> = x[K..].iter().map(|log| log.min(MOST).exp() * xi.normal()).collect();
        let z: Vec<f64> = x.iter().zip(&shift).map(|(x, shift)| x + shift).collect();
        let mut slope = z.clone();
        let mut loss = 0.5 * dot(&z, &z) - x[K..].iter().sum::<f64>();
        for a in &self.rows {
            let u = dot(a, &z);
            let pull = sigmoid(-u);
            loss += softplus(-u);
            slope.iter_mut().zip(a).for_each(|(slope, a)| *slope -= pull * a);
        }
        for i in 0..K {
            out[i] += weight * slope[i];
            out[K + i] += weight * (slope[i] * shift[i] - 1.0);
        }
        loss
    }

    fn gradient(&self, x: &[f64], out: &mut [f64]) {
        for i in 0..K {
            out[i] = x[i];
            out[K + i] = (2.0 * x[K + i].min(MOST)).exp() - 1.0;
        }
        for a in &self.rows {
            let (centre, spread) = Self::score(x, a);
            let pull = mean(|e| sigmoid(-centre - spread * e));
            let steep = mean(|e| sigmoid(centre + spread * e) * sigmoid(-centre - spread * e));
            for i in 0..K {
                out[i] -= pull * a[i];
                out[K + i] += steep * (a[i] * x[K + i].min(MOST).exp()).powi(2);
            }
        }
    }

    fn value(&self, x: &[f64]) -> f64 {
        let prior: f64 =
            (0..K).map(|i| 0.5 * x[i] * x[i] + 0.5 * (2.0 * x[K + i].min(MOST)).exp() - x[K + i]).sum();
        let rows = self.rows.iter().map(|a| {
            let (centre, spread) = Self::score(x, a);
            mean(|e| softplus(-centre - spread * e))
        });
        prior + rows.sum::<f64>()
    }
}
