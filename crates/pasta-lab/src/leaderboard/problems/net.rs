//! Small nets with one hidden layer of tanh.

use pasta_opt::draws::Stream;

use super::table::Rows;
use super::{Instance, Law, dot, normals, setup, sigmoid, softplus, stream};

/// x has the weights of the hidden units, row by row, their offsets, the weights of the output, and its offset.
#[derive(Debug, Clone, Copy)]
struct Net {
    inputs: usize,
    hidden: usize,
}

impl Net {
    fn dim(self) -> usize {
        self.hidden * (self.inputs + 2) + 1
    }

    /// Adds the gradient of a loss of the net's output at the input `a`, and gives the loss; `loss` gives itself and its derivative.
    fn add(
        self,
        a: &[f64],
        loss: impl Fn(f64) -> (f64, f64),
        weight: f64,
        x: &[f64],
        out: &mut [f64],
    ) -> f64 {
        let Self { inputs, hidden } = self;
        let (first, rest) = x.split_at(inputs * hidden);
        let (offsets, rest) = rest.split_at(hidden);
        let (second, last) = rest.split_at(hidden);
        let unit = |h: usize| (dot(&first[h * inputs..(h + 1) * inputs], a) + offsets[h]).tanh();
        let output = last[0] + (0..hidden).map(|h| second[h] * unit(h)).sum::<f64>();
        let (loss, slope) = loss(output);
        if weight != 0.0 {
            let slope = weight * slope;
            for h in 0..hidden {
                let t = unit(h);
                let inner = slope * second[h] * (1.0 - t * t);
                for (out, a) in out[h * inputs..(h + 1) * inputs].iter_mut().zip(a) {
                    *out += inner * a;
                }
                out[hidden * inputs + h] += inner;
                out[hidden * (inputs + 1) + h] += slope * t;
            }
            out[hidden * (inputs + 2)] += slope;
        }
        loss
    }

    fn start(self, xi: &mut Stream) -> Vec<f64> {
        normals(xi, self.dim()).iter().map(|x| 0.5 * x).collect()
    }
}

/// (u - y)^2/2.
fn square(y: f64) -> impl Fn(f64) -> (f64, f64) {
    move |u| (0.5 * (u - y).powi(2), u - y)
}

/// log(1 + exp(-y u)).
fn logistic(y: f64) -> impl Fn(f64) -> (f64, f64) {
    move |u| (softplus(-y * u), -y * sigmoid(-y * u))
}

/// A net on a table.
struct Fit {
    net: Net,
    inputs: Vec<Vec<f64>>,
    labels: Vec<f64>,
    start: Vec<f64>,
    classes: bool,
}

impl Rows for Fit {
    fn rows(&self) -> usize {
        self.labels.len()
    }

    fn start(&self) -> Vec<f64> {
        self.start.clone()
    }

    fn row(&self, row: usize, weight: f64, x: &[f64], out: &mut [f64]) -> f64 {
        let (a, y) = (&self.inputs[row], self.labels[row]);
        if self.classes {
            self.net.add(a, logistic(y), weight, x, out)
        } else {
            self.net.add(a, square(y), weight, x, out)
        }
    }
}

pub(super) fn table() -> Instance {
    let mut xi = setup(24);
    let net = Net { inputs: 3, hidden: 6 };
    let inputs: Vec<Vec<f64>> = (0..2_000).map(|_| normals(&mut xi, 3)).collect();
    let labels = inputs.iter().map(|a| (1.5 * a[0]).sin() + 0.5 * a[1] * a[2] + 0.1 * xi.normal()).collect();
    let start = net.start(&mut xi);
    super::table("net", Fit { net, inputs, labels, start, classes: false })
}

/// Two arms that wind around each other.
pub(super) fn classes() -> Instance {
    let mut xi = setup(25);
    let net = Net { inputs: 2, hidden: 8 };
    let mut inputs = Vec::new();
    let mut labels = Vec::new();
    for i in 0..1_500 {
        let y = if i % 2 == 0 { 1.0 } else { -1.0 };
        let turn = 0.5 + 3.5 * xi.uniform();
        let noise = normals(&mut xi, 2);
        inputs.push(vec![
            y * 0.6 * turn * turn.cos() + 0.15 * noise[0],
            y * 0.6 * turn * turn.sin() + 0.15 * noise[1],
        ]);
        labels.push(y);
    }
    let start = net.start(&mut xi);
    super::table("net-classes", Fit { net, inputs, labels, start, classes: true })
}

/// A net that learns sin(1.5 a) + a b/2 from normal (a, b) and noise of deviation .3.
struct Learning {
    net: Net,
    start: Vec<f64>,
}

const NOISE: f64 = 0.3;

fn taught(a: &[f64]) -> f64 {
    (1.5 * a[0]).sin() + 0.5 * a[0] * a[1]
}

pub(super) fn stream_of_two() -> Instance {
    let net = Net { inputs: 2, hidden: 6 };
    stream("net-stream", Learning { net, start: net.start(&mut setup(26)) })
}

impl Learning {
    /// Adds the expected gradient, and gives the expected loss. A step of .15 resolves tanh of slopes up to 5 to 1e-6.
    fn expect(&self, weight: f64, x: &[f64], out: &mut [f64]) -> f64 {
        let nodes: Vec<(f64, f64)> = super::normal::nodes(0.15).collect();
        let mut value = 0.5 * NOISE * NOISE;
        for &(a, p) in &nodes {
            for &(b, q) in &nodes {
                let input = [a, b];
                value += p * q * self.net.add(&input, square(taught(&input)), weight * p * q, x, out);
            }
        }
        value
    }
}

impl Law for Learning {
    fn start(&self) -> Vec<f64> {
        self.start.clone()
    }

    fn sample(&self, weight: f64, x: &[f64], xi: &mut Stream, out: &mut [f64]) -> f64 {
        let input = [xi.normal(), xi.normal()];
        let y = taught(&input) + NOISE * xi.normal();
        self.net.add(&input, square(y), weight, x, out)
    }

    fn gradient(&self, x: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        self.expect(1.0, x, out);
    }

    fn value(&self, x: &[f64]) -> f64 {
        self.expect(0.0, x, &mut vec![0.0; x.len()])
    }
}
