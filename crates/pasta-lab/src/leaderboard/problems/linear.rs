//! Linear models on tables: a loss of <a, x> and a label for each row.

use pasta_opt::draws::Stream;

use super::table::Rows;
use super::{Instance, dot, geometric, norm, normals, setup, sigmoid, softplus, table};

/// The loss of a row as a function of u = <a, x> and its label y.
#[derive(Debug, Clone, Copy)]
enum Loss {
    /// (u - y)^2/2.
    Square,
    /// log(1 + exp(-y u)), y = 1 or -1.
    Logistic,
    /// 2 (1 - exp(-(u - y)^2/4)).
    Welsch,
    /// |u^2 - y|.
    Phase,
    /// max(0, 1 - y u)^2/2, y = 1 or -1.
    Hinge,
    /// exp(u) - y u.
    Poisson,
}

impl Loss {
    /// The loss and its derivative in u.
    fn at(self, u: f64, y: f64) -> (f64, f64) {
        match self {
            Self::Square => (0.5 * (u - y).powi(2), u - y),
            Self::Logistic => (softplus(-y * u), -y * sigmoid(-y * u)),
            Self::Welsch => {
                let kept = (-(u - y).powi(2) / 4.0).exp();
                (2.0 * (1.0 - kept), (u - y) * kept)
            }
            Self::Phase => {
                let error = u * u - y;
                (error.abs(), 2.0 * u * error.signum())
            }
            Self::Hinge => {
                let short = (1.0 - y * u).max(0.0);
                (0.5 * short * short, -y * short)
            }
            Self::Poisson => (u.exp() - y * u, u.exp() - y),
        }
    }
}

/// Rows a_i with labels y_i, and ridge/2 |x|^2 with every row.
struct Linear {
    matrix: Vec<f64>,
    labels: Vec<f64>,
    start: Vec<f64>,
    loss: Loss,
    ridge: f64,
    /// The signal that is sought up to its sign, where the error is the distance to it.
    signal: Option<Vec<f64>>,
}

impl Linear {
    fn new(rows: Vec<Vec<f64>>, labels: Vec<f64>, loss: Loss) -> Self {
        let start = vec![0.0; rows[0].len()];
        Self { matrix: rows.concat(), labels, start, loss, ridge: 0.0, signal: None }
    }
}

impl Rows for Linear {
    fn rows(&self) -> usize {
        self.labels.len()
    }

    fn start(&self) -> Vec<f64> {
        self.start.clone()
    }

    fn row(&self, row: usize, weight: f64, x: &[f64], out: &mut [f64]) -> f64 {
        let a = &self.matrix[row * x.len()..(row + 1) * x.len()];
        let (mut loss, slope) = self.loss.at(dot(a, x), self.labels[row]);
        let scale = weight * slope;
        out.iter_mut().zip(a).for_each(|(out, a)| *out += scale * a);
        if self.ridge > 0.0 {
            let pull = weight * self.ridge;
            out.iter_mut().zip(x).for_each(|(out, x)| *out += pull * x);
            loss += 0.5 * self.ridge * dot(x, x);
        }
        loss
    }

    fn error(&self, x: &[f64]) -> Option<f64> {
        let signal = self.signal.as_ref()?;
        let distance = |sign: f64| {
            let squares = x.iter().zip(signal).map(|(x, s)| (x - sign * s).powi(2));
            squares.sum::<f64>().sqrt()
        };
        let (plus, minus) = (distance(1.0), distance(-1.0));
        Some(if plus.is_nan() { plus } else { plus.min(minus) })
    }
}

/// Takes its mean from each column and divides by its deviation.
fn standardise(rows: &mut [Vec<f64>], columns: std::ops::Range<usize>) {
    let n = rows.len() as f64;
    for j in columns {
        let mean = rows.iter().map(|row| row[j]).sum::<f64>() / n;
        let deviation = (rows.iter().map(|row| (row[j] - mean).powi(2)).sum::<f64>() / n).sqrt();
        rows.iter_mut().for_each(|row| row[j] = (row[j] - mean) / deviation);
    }
}

/// Two common factors make pairs of columns nearly the same, as blood values are.
pub(super) fn small() -> Instance {
    let mut xi = setup(11);
    let loads: Vec<[f64; 2]> = (0..10).map(|_| [xi.normal(), xi.normal()]).collect();
    let mut rows: Vec<Vec<f64>> = (0..442)
        .map(|_| {
            let common = [xi.normal(), xi.normal()];
            loads.iter().map(|load| dot(load, &common) + 0.4 * xi.normal()).collect()
        })
        .collect();
    // The last two are what is left of each other.
    rows.iter_mut().for_each(|row| row[9] = row[8] + 0.1 * row[9]);
    standardise(&mut rows, 0..10);
    let truth = normals(&mut xi, 10);
    let mut labels: Vec<Vec<f64>> =
        rows.iter().map(|row| vec![dot(row, &truth) + 2.0 * xi.normal()]).collect();
    standardise(&mut labels, 0..1);
    table("lsq-small", Linear::new(rows, labels.concat(), Loss::Square))
}

/// Eight columns and a constant as a file may have them: neither centred nor scaled.
fn raw_rows(xi: &mut Stream, n: usize) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
    const SCALE: [f64; 8] = [2.0, 12.0, 5.0, 1.0, 1000.0, 3.0, 0.5, 2.0];
    const SHIFT: [f64; 8] = [4.0, 28.0, 5.0, 0.0, 1400.0, 3.0, 36.0, 120.0];
    let standard: Vec<Vec<f64>> = (0..n)
        .map(|_| {
            let mut z = normals(xi, 8);
            z[3] = z[3].exp();
            z[6] = 0.9 * z[5] + 0.4 * z[6];
            z
        })
        .collect();
    let raw = standard
        .iter()
        .map(|z| z.iter().zip(SCALE).zip(SHIFT).map(|((z, s), m)| s * z + m).chain([1.0]).collect())
        .collect();
    (standard, raw)
}

pub(super) fn raw() -> Instance {
    let mut xi = setup(12);
    let (standard, rows) = raw_rows(&mut xi, 20_000);
    let truth = normals(&mut xi, 8);
    let labels = standard.iter().map(|z| 2.0 + dot(z, &truth) + 0.5 * xi.normal()).collect();
    table("lsq-raw", Linear::new(rows, labels, Loss::Square))
}

/// All products of up to three of four factors, one of them with heavy tails (Student t, 5 degrees of freedom).
pub(super) fn cubic() -> Instance {
    let mut xi = setup(13);
    let mut rows: Vec<Vec<f64>> = (0..5_000)
        .map(|_| {
            let mut z = normals(&mut xi, 4);
            let squares: f64 = (0..5).map(|_| xi.normal().powi(2)).sum();
            z[3] /= (squares / 5.0).sqrt();
            let mut row = vec![1.0];
            for i in 0..4 {
                row.push(z[i]);
                for j in i..4 {
                    row.push(z[i] * z[j]);
                    row.extend((j..4).map(|k| z[i] * z[j] * z[k]));
                }
            }
            row
        })
        .collect();
    standardise(&mut rows, 1..35);
    let truth = normals(&mut xi, 35);
    let labels = rows.iter().map(|row| 0.5 * dot(row, &truth) + xi.normal()).collect();
    table("lsq-cubic", Linear::new(rows, labels, Loss::Square))
}

/// 1 or -1, by a coin that is biased by u.
fn label(xi: &mut Stream, u: f64) -> f64 {
    if xi.uniform() < sigmoid(u) { 1.0 } else { -1.0 }
}

pub(super) fn logistic() -> Instance {
    let mut xi = setup(14);
    let scales = geometric(1.0, 0.2, 19);
    let rows: Vec<Vec<f64>> = (0..20_000)
        .map(|_| scales.iter().map(|scale| scale * xi.normal()).collect())
        .map(|mut row: Vec<f64>| {
            row.push(1.0);
            row
        })
        .collect();
    let truth = normals(&mut xi, 20);
    let labels = rows.iter().map(|row| label(&mut xi, 2.0 * dot(row, &truth))).collect();
    table("logistic", Linear::new(rows, labels, Loss::Logistic))
}

pub(super) fn welsch() -> Instance {
    let mut xi = setup(15);
    let truth = normals(&mut xi, 10);
    let rows: Vec<Vec<f64>> = (0..5_000).map(|_| normals(&mut xi, 10)).collect();
    let labels = rows
        .iter()
        .map(|row| {
            let y = dot(row, &truth) + 0.3 * xi.normal();
            // Student t with 2 degrees of freedom: a normal over the root of an exponential.
            let wild = 10.0 * xi.normal() / (-xi.open_uniform().ln()).sqrt();
            if xi.uniform() < 0.2 { y + wild } else { y }
        })
        .collect();
    table("welsch", Linear::new(rows, labels, Loss::Welsch))
}

pub(super) fn phase() -> Instance {
    let mut xi = setup(16);
    let unit = |xi: &mut Stream| {
        let x = normals(xi, 20);
        let length = norm(&x);
        x.into_iter().map(|x| x / length).collect::<Vec<_>>()
    };
    let (signal, aside) = (unit(&mut xi), unit(&mut xi));
    let rows: Vec<Vec<f64>> = (0..400).map(|_| normals(&mut xi, 20)).collect();
    let labels = rows
        .iter()
        .map(|row| {
            let wrong = (5.0 * xi.normal()).abs();
            if xi.uniform() < 0.1 { wrong } else { dot(row, &signal).powi(2) }
        })
        .collect();
    let start = signal.iter().zip(&aside).map(|(s, a)| s + 0.5 * a).collect();
    table("phase", Linear { start, signal: Some(signal), ..Linear::new(rows, labels, Loss::Phase) })
}

pub(super) fn hinge() -> Instance {
    let mut xi = setup(17);
    let scales = geometric(1.0, 0.1, 25);
    let rows: Vec<Vec<f64>> =
        (0..3_000).map(|_| scales.iter().map(|scale| scale * xi.normal()).collect()).collect();
    let truth = normals(&mut xi, 25);
    let labels = rows.iter().map(|row| label(&mut xi, 4.0 * dot(row, &truth))).collect();
    table("hinge", Linear { ridge: 1e-4, ..Linear::new(rows, labels, Loss::Hinge) })
}

pub(super) fn hinge_raw() -> Instance {
    let mut xi = setup(18);
    let (standard, rows) = raw_rows(&mut xi, 4_000);
    let truth = normals(&mut xi, 8);
    let labels = standard.iter().map(|z| label(&mut xi, 3.0 * dot(z, &truth))).collect();
    table("hinge-raw", Linear { ridge: 1e-3, ..Linear::new(rows, labels, Loss::Hinge) })
}

pub(super) fn poisson() -> Instance {
    let mut xi = setup(19);
    let truth: Vec<f64> = normals(&mut xi, 12).iter().map(|x| 0.35 * x).collect();
    let mut rows: Vec<Vec<f64>> = (0..3_000).map(|_| normals(&mut xi, 12)).collect();
    rows.iter_mut().for_each(|row| row[0] = 1.0);
    let labels = rows.iter().map(|row| xi.poisson(dot(row, &truth).exp()) as f64).collect();
    table("poisson-table", Linear::new(rows, labels, Loss::Poisson))
}

pub(super) fn separable() -> Instance {
    let mut xi = setup(20);
    let truth = normals(&mut xi, 10);
    let length = norm(&truth);
    let mut rows = Vec::new();
    let mut labels = Vec::new();
    while rows.len() < 500 {
        let row = normals(&mut xi, 10);
        let margin = dot(&row, &truth) / length;
        if margin.abs() > 0.3 {
            labels.push(margin.signum());
            rows.push(row);
        }
    }
    table("separable", Linear::new(rows, labels, Loss::Logistic))
}
