//! Functions that are not convex, with noise inside.

use pasta_opt::draws::Stream;

use super::{Instance, Law, dot, geometric, norm, normals, setup, stream};

/// |x|^4/4 - <a, x>^2/2, a normal with deviations c: minimal at the first principal component, a saddle at all others and at 0.
struct Principal {
    c: Vec<f64>,
}

pub(super) fn principal() -> Instance {
    stream("principal", Principal { c: geometric(1.0, 0.2, 20) })
}

impl Law for Principal {
    fn start(&self) -> Vec<f64> {
        normals(&mut setup(61), self.c.len()).iter().map(|x| 0.3 * x).collect()
    }

    fn sample(&self, weight: f64, x: &[f64], xi: &mut Stream, out: &mut [f64]) -> f64 {
        let a: Vec<f64> = self.c.iter().map(|c| c * xi.normal()).collect();
        let (along, square) = (dot(&a, x), dot(x, x));
        for i in 0..x.len() {
            out[i] += weight * (square * x[i] - along * a[i]);
        }
        0.25 * square * square - 0.5 * along * along
    }

    fn gradient(&self, x: &[f64], out: &mut [f64]) {
        let square = dot(x, x);
        for i in 0..x.len() {
            out[i] = (square - self.c[i] * self.c[i]) * x[i];
        }
    }

    fn value(&self, x: &[f64]) -> f64 {
        let square = dot(x, x);
        0.25 * square * square - 0.5 * x.iter().zip(&self.c).map(|(x, c)| (c * x).powi(2)).sum::<f64>()
    }
}

/// Rosenbrock's valley with both squares weighted by exponential variables of mean 1.
struct Valley;

pub(super) fn valley() -> Instance {
    stream("valley", Valley)
}

/// How much steeper the sides are than the bottom.
const SIDES: f64 = 20.0;

impl Valley {
    fn add([bottom, side]: [f64; 2], weight: f64, x: &[f64], out: &mut [f64]) -> f64 {
        let (left, off) = (1.0 - x[0], x[1] - x[0] * x[0]);
        out[0] += weight * (-bottom * left - 2.0 * SIDES * side * off * x[0]);
        out[1] += weight * SIDES * side * off;
        0.5 * bottom * left * left + 0.5 * SIDES * side * off * off
    }
}

impl Law for Valley {
    fn start(&self) -> Vec<f64> {
        vec![-1.2, 1.0]
    }

    fn sample(&self, weight: f64, x: &[f64], xi: &mut Stream, out: &mut [f64]) -> f64 {
        let weights = [-xi.open_uniform().ln(), -xi.open_uniform().ln()];
        Self::add(weights, weight, x, out)
    }

    fn gradient(&self, x: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        Self::add([1.0, 1.0], 1.0, x, out);
    }

    fn value(&self, x: &[f64]) -> f64 {
        Self::add([1.0, 1.0], 0.0, x, &mut [0.0; 2])
    }
}

/// sum log(1 + (x - xi)^2), xi Cauchy with scale 1 around m. The mean of log((x - xi)^2 + s^2) over a Cauchy law is
/// log((x - m)^2 + (s + 1)^2): the logarithm is harmonic.
struct Cauchy {
    centre: Vec<f64>,
}

pub(super) fn cauchy() -> Instance {
    stream("cauchy", Cauchy { centre: normals(&mut setup(62), 5).iter().map(|m| 8.0 * m).collect() })
}

impl Law for Cauchy {
    fn start(&self) -> Vec<f64> {
        vec![0.0; self.centre.len()]
    }

    fn sample(&self, weight: f64, x: &[f64], xi: &mut Stream, out: &mut [f64]) -> f64 {
        let mut loss = 0.0;
        for i in 0..x.len() {
            let drawn = self.centre[i] + (std::f64::consts::PI * (xi.open_uniform() - 0.5)).tan();
            let off = x[i] - drawn;
            out[i] += weight * 2.0 * off / (1.0 + off * off);
            loss += (off * off).ln_1p();
        }
        loss
    }

    fn gradient(&self, x: &[f64], out: &mut [f64]) {
        for i in 0..x.len() {
            let off = x[i] - self.centre[i];
            out[i] = 2.0 * off / (4.0 + off * off);
        }
    }

    fn value(&self, x: &[f64]) -> f64 {
        x.iter().zip(&self.centre).map(|(x, m)| (4.0 + (x - m).powi(2)).ln()).sum()
    }
}

/// (<a, x>^2 - <a, w>^2 - e)^2/4, a standard normal, e normal with deviation .1.
struct Phase {
    signal: Vec<f64>,
    start: Vec<f64>,
}

pub(super) fn phase() -> Instance {
    let mut xi = setup(63);
    let signal: Vec<f64> = normals(&mut xi, 10);
    let length = norm(&signal);
    let signal: Vec<f64> = signal.iter().map(|s| s / length).collect();
    let start = signal.iter().map(|s| 0.7 * s + 0.25 * xi.normal()).collect();
    stream("phase-stream", Phase { signal, start })
}

impl Law for Phase {
    fn start(&self) -> Vec<f64> {
        self.start.clone()
    }

    fn sample(&self, weight: f64, x: &[f64], xi: &mut Stream, out: &mut [f64]) -> f64 {
        let a = normals(xi, x.len());
        let u = dot(&a, x);
        let error = u * u - dot(&a, &self.signal).powi(2) - 0.1 * xi.normal();
        let scale = weight * error * u;
        out.iter_mut().zip(&a).for_each(|(out, a)| *out += scale * a);
        0.25 * error * error
    }

    /// E <a, x>^3 a = 3 |x|^2 x and E <a, w>^2 <a, x> a = |w|^2 x + 2 <w, x> w.
    fn gradient(&self, x: &[f64], out: &mut [f64]) {
        let w = &self.signal;
        let (own, cross) = (3.0 * dot(x, x) - dot(w, w), 2.0 * dot(w, x));
        for i in 0..x.len() {
            out[i] = own * x[i] - cross * w[i];
        }
    }

    fn value(&self, x: &[f64]) -> f64 {
        let w = &self.signal;
        let (xx, ww, xw) = (dot(x, x), dot(w, w), dot(x, w));
        0.25 * (3.0 * xx * xx + 3.0 * ww * ww - 2.0 * (xx * ww + 2.0 * xw * xw) + 0.01)
    }
}

/// sum (h/2) v^2 - cos(3 v)/3, v = x + s xi: E cos(3 v) = cos(3 x) exp(-9 s^2/2).
struct Ripples {
    h: Vec<f64>,
}

/// s.
const SHAKE: f64 = 0.3;

pub(super) fn ripples() -> Instance {
    stream("ripples", Ripples { h: geometric(1.0, 0.1, 10) })
}

impl Law for Ripples {
    fn start(&self) -> Vec<f64> {
        normals(&mut setup(64), self.h.len()).iter().map(|x| 4.0 * x).collect()
    }

    fn sample(&self, weight: f64, x: &[f64], xi: &mut Stream, out: &mut [f64]) -> f64 {
        let mut loss = 0.0;
        for i in 0..x.len() {
            let v = x[i] + SHAKE * xi.normal();
            out[i] += weight * (self.h[i] * v + (3.0 * v).sin());
            loss += 0.5 * self.h[i] * v * v - (3.0 * v).cos() / 3.0;
        }
        loss
    }

    fn gradient(&self, x: &[f64], out: &mut [f64]) {
        let kept = (-4.5 * SHAKE * SHAKE).exp();
        for i in 0..x.len() {
            out[i] = self.h[i] * x[i] + kept * (3.0 * x[i]).sin();
        }
    }

    fn value(&self, x: &[f64]) -> f64 {
        let kept = (-4.5 * SHAKE * SHAKE).exp();
        let of = |(x, h): (&f64, &f64)| 0.5 * h * (x * x + SHAKE * SHAKE) - kept * (3.0 * x).cos() / 3.0;
        x.iter().zip(&self.h).map(of).sum()
    }
}
