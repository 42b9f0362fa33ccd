//! Linear models on a stream: normal features a = c z, z standard normal and c the scales of the columns.
//!
//! Expectations follow from E z h(<z, v>) = v E h'(<z, v>) (Stein), so each gradient is a vector times integrals over one normal
//! variable. Capitals below are in the metric of the features: X = c x, W = c w, V = X - W.

use pasta_opt::draws::Stream;

use super::normal::{below, density, mean};
use super::{Instance, Law, dot, geometric, norm, normals, setup, sigmoid, softplus, stream};

/// The product of the entries.
fn times(c: &[f64], x: &[f64]) -> Vec<f64> {
    c.iter().zip(x).map(|(c, x)| c * x).collect()
}

/// out = sum of the vectors times their factors, times c.
fn combine(c: &[f64], terms: [(f64, &[f64]); 2], out: &mut [f64]) {
    let [(p, v), (q, w)] = terms;
    for (i, out) in out.iter_mut().enumerate() {
        *out = c[i] * (p * v[i] + q * w[i]);
    }
}

fn draw(c: &[f64], xi: &mut Stream) -> Vec<f64> {
    c.iter().map(|c| c * xi.normal()).collect()
}

fn add(weight: f64, a: &[f64], out: &mut [f64]) {
    out.iter_mut().zip(a).for_each(|(out, a)| *out += weight * a);
}

/// (<a, x - w> - e)^2/2, e normal with deviation .5.
struct Columns {
    c: Vec<f64>,
    w: Vec<f64>,
}

pub(super) fn columns() -> Instance {
    let c = geometric(1.0, 0.03, 15);
    let w = normals(&mut setup(31), 15).iter().zip(&c).map(|(w, c)| w / c).collect();
    stream("lsq-columns", Columns { c, w })
}

impl Law for Columns {
    fn start(&self) -> Vec<f64> {
        vec![0.0; self.c.len()]
    }

    fn sample(&self, weight: f64, x: &[f64], xi: &mut Stream, out: &mut [f64]) -> f64 {
        let a = draw(&self.c, xi);
        let error = dot(&a, x) - dot(&a, &self.w) - 0.5 * xi.normal();
        add(weight * error, &a, out);
        0.5 * error * error
    }

    fn gradient(&self, x: &[f64], out: &mut [f64]) {
        let (x, w) = (times(&self.c, x), times(&self.c, &self.w));
        combine(&self.c, [(1.0, &x), (-1.0, &w)], out);
    }

    fn value(&self, x: &[f64]) -> f64 {
        let squares = x.iter().zip(&self.w).zip(&self.c).map(|((x, w), c)| (c * (x - w)).powi(2));
        0.5 * squares.sum::<f64>() + 0.125
    }
}

/// exp(u) - y u, u = <a, x>, y Poisson with mean exp(<a, w>).
struct Poisson {
    c: Vec<f64>,
    w: Vec<f64>,
}

pub(super) fn poisson() -> Instance {
    let c = geometric(1.0, 0.3, 8);
    let mut w = normals(&mut setup(32), 8);
    let length = norm(&times(&c, &w));
    w.iter_mut().for_each(|w| *w *= 0.8 / length);
    stream("poisson", Poisson { c, w })
}

impl Law for Poisson {
    fn start(&self) -> Vec<f64> {
        vec![0.0; self.c.len()]
    }

    fn sample(&self, weight: f64, x: &[f64], xi: &mut Stream, out: &mut [f64]) -> f64 {
        let a = draw(&self.c, xi);
        let u = dot(&a, x);
        let y = xi.poisson(dot(&a, &self.w).exp()) as f64;
        add(weight * (u.exp() - y), &a, out);
        u.exp() - y * u
    }

    fn gradient(&self, x: &[f64], out: &mut [f64]) {
        let (x, w) = (times(&self.c, x), times(&self.c, &self.w));
        let rate = |v: &[f64]| (0.5 * dot(v, v)).exp();
        combine(&self.c, [(rate(&x), &x), (-rate(&w), &w)], out);
    }

    fn value(&self, x: &[f64]) -> f64 {
        let (x, w) = (times(&self.c, x), times(&self.c, &self.w));
        (0.5 * dot(&x, &x)).exp() - dot(&x, &w) * (0.5 * dot(&w, &w)).exp()
    }
}

/// log(1 + exp(u)) - y u, u = s <a, x>, y = 1 with probability sigmoid(s <a, w>); s is 1, or now and then another scale.
struct Logistic {
    c: Vec<f64>,
    w: Vec<f64>,
    /// (probability, scale), of which the second is drawn as often as its probability says.
    scales: [(f64, f64); 2],
}

pub(super) fn logistic() -> Instance {
    let c = geometric(1.0, 0.2, 20);
    let w = normals(&mut setup(33), 20);
    stream("logistic-stream", Logistic { c, w, scales: [(1.0, 1.0), (0.0, 1.0)] })
}

pub(super) fn outliers() -> Instance {
    let c = vec![1.0; 10];
    let w = normals(&mut setup(34), 10).iter().map(|w| 0.3 * w).collect();
    stream("logistic-outliers", Logistic { c, w, scales: [(0.95, 1.0), (0.05, 10.0)] })
}

impl Logistic {
    /// E sigmoid'(s t) for t normal with deviation `spread`; for steep slopes after a substitution, the integral of
    /// sigmoid'(v) density(v/(s spread))/(s spread).
    fn steepness(slope: f64) -> f64 {
        let steep = |u: f64| sigmoid(u) * sigmoid(-u);
        if slope < 4.0 {
            return mean(|t| steep(slope * t));
        }
        (-2_000..=2_000)
            .map(|k| f64::from(k) * 0.02)
            .map(|v| 0.02 * steep(v) * density(v / slope) / slope)
            .sum()
    }

    /// E log(1 + exp(u)) for u normal with this deviation: u/2 has mean 0, and |u|/2 + log(1 + exp(-|u|)) is left.
    fn softness(slope: f64) -> f64 {
        if slope < 4.0 {
            return mean(|t| softplus(slope * t));
        }
        // E|u|/2, and an integral that is over before the density changes much; its kink at 0 is at a node.
        let tail = |v: f64| (-v).exp().ln_1p() * density(v / slope) / slope;
        let sum: f64 = (1..=20_000).map(|k| f64::from(k) * 0.002).map(tail).sum();
        // Euler and Maclaurin: half of the first term, and a correction by the slope there, which is -density(0)/(2 slope).
        let ends = 0.5 * tail(0.0) - 0.002 / 12.0 * 0.5 * density(0.0) / slope;
        slope * density(0.0) + 2.0 * 0.002 * (sum + ends)
    }
}

impl Law for Logistic {
    fn start(&self) -> Vec<f64> {
        vec![0.0; self.c.len()]
    }

    fn sample(&self, weight: f64, x: &[f64], xi: &mut Stream, out: &mut [f64]) -> f64 {
        let [(_, usual), (p, other)] = self.scales;
        let s = if xi.uniform() < p { other } else { usual };
        let mut a = draw(&self.c, xi);
        a.iter_mut().for_each(|a| *a *= s);
        let u = dot(&a, x);
        let y = if xi.uniform() < sigmoid(dot(&a, &self.w)) { 1.0 } else { 0.0 };
        add(weight * (sigmoid(u) - y), &a, out);
        softplus(u) - y * u
    }

    fn gradient(&self, x: &[f64], out: &mut [f64]) {
        let (x, w) = (times(&self.c, x), times(&self.c, &self.w));
        let factor = |v: &[f64]| {
            self.scales.iter().map(|(p, s)| p * s * s * Self::steepness(s * norm(v))).sum::<f64>()
        };
        combine(&self.c, [(factor(&x), &x), (-factor(&w), &w)], out);
    }

    fn value(&self, x: &[f64]) -> f64 {
        let (x, w) = (times(&self.c, x), times(&self.c, &self.w));
        let of = |&(p, s): &(f64, f64)| {
            p * (Self::softness(s * norm(&x)) - s * s * dot(&x, &w) * Self::steepness(s * norm(&w)))
        };
        self.scales.iter().map(of).sum()
    }
}

/// Huber's loss of <a, x - w> - e with corner 1; e is normal with deviation .5, or 10 in a fifth of all samples.
struct Huber {
    c: Vec<f64>,
    w: Vec<f64>,
}

const ERRORS: [(f64, f64); 2] = [(0.8, 0.5), (0.2, 10.0)];

pub(super) fn huber() -> Instance {
    let c = geometric(1.0, 0.1, 12);
    let w = normals(&mut setup(35), 12).iter().map(|w| 2.0 * w).collect();
    stream("huber", Huber { c, w })
}

impl Huber {
    fn difference(&self, x: &[f64]) -> Vec<f64> {
        x.iter().zip(&self.w).zip(&self.c).map(|((x, w), c)| c * (x - w)).collect()
    }
}

impl Law for Huber {
    fn start(&self) -> Vec<f64> {
        vec![0.0; self.c.len()]
    }

    fn sample(&self, weight: f64, x: &[f64], xi: &mut Stream, out: &mut [f64]) -> f64 {
        let a = draw(&self.c, xi);
        let deviation = if xi.uniform() < ERRORS[1].0 { ERRORS[1].1 } else { ERRORS[0].1 };
        let u = dot(&a, x) - dot(&a, &self.w) - deviation * xi.normal();
        add(weight * u.clamp(-1.0, 1.0), &a, out);
        if u.abs() < 1.0 { 0.5 * u * u } else { u.abs() - 0.5 }
    }

    fn gradient(&self, x: &[f64], out: &mut [f64]) {
        let v = self.difference(x);
        let inside = |&(p, s): &(f64, f64)| p * (2.0 * below(1.0 / dot(&v, &v).hypot_of(s)) - 1.0);
        let factor = ERRORS.iter().map(inside).sum();
        combine(&self.c, [(factor, &v), (0.0, &v)], out);
    }

    fn value(&self, x: &[f64]) -> f64 {
        let v = self.difference(x);
        let of = |&(p, s): &(f64, f64)| {
            let spread = dot(&v, &v).hypot_of(s);
            let r = 1.0 / spread;
            let inner = 0.5 * spread * spread * (2.0 * below(r) - 1.0);
            p * (inner + spread * density(r) - below(-r))
        };
        ERRORS.iter().map(of).sum()
    }
}

/// The root of a square and the square of a deviation.
trait HypotOf {
    fn hypot_of(self, deviation: f64) -> f64;
}

impl HypotOf for f64 {
    fn hypot_of(self, deviation: f64) -> f64 {
        (self + deviation * deviation).sqrt()
    }
}

/// The pinball loss of the nine-tenths quantile: u = <a, x - w> + offset - e, e normal with deviation 1; the offset comes last in x.
struct Quantile {
    c: Vec<f64>,
    w: Vec<f64>,
}

const QUANTILE: f64 = 0.9;

pub(super) fn quantile() -> Instance {
    let c = geometric(1.0, 0.3, 10);
    let w = normals(&mut setup(36), 10);
    stream("quantile", Quantile { c, w })
}

impl Quantile {
    /// V, the deviation of u, and its mean.
    fn law_of_residual(&self, x: &[f64]) -> (Vec<f64>, f64, f64) {
        let v: Vec<f64> = x.iter().zip(&self.w).zip(&self.c).map(|((x, w), c)| c * (x - w)).collect();
        let spread = dot(&v, &v).hypot_of(1.0);
        (v, spread, x[self.c.len()])
    }
}

impl Law for Quantile {
    fn start(&self) -> Vec<f64> {
        vec![0.0; self.c.len() + 1]
    }

    fn sample(&self, weight: f64, x: &[f64], xi: &mut Stream, out: &mut [f64]) -> f64 {
        let d = self.c.len();
        let a = draw(&self.c, xi);
        let u = dot(&a, &x[..d]) - dot(&a, &self.w) + x[d] - xi.normal();
        let slope = if u > 0.0 { 1.0 - QUANTILE } else { -QUANTILE };
        add(weight * slope, &a, &mut out[..d]);
        out[d] += weight * slope;
        slope * u
    }

    fn gradient(&self, x: &[f64], out: &mut [f64]) {
        let (v, spread, offset) = self.law_of_residual(x);
        let (features, last) = out.split_at_mut(v.len());
        combine(&self.c, [(density(offset / spread) / spread, &v), (0.0, &v)], features);
        last[0] = below(offset / spread) - QUANTILE;
    }

    fn value(&self, x: &[f64]) -> f64 {
        let (_, spread, offset) = self.law_of_residual(x);
        offset * below(offset / spread) + spread * density(offset / spread) - QUANTILE * offset
    }
}
