//! Oracles made of closures, and a catalogue of what goes wrong with oracles.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use pasta_opt::draws::{Address, Role};
use pasta_opt::oracle::{About, Answer, Charge, Draw, Form, Request};
use pasta_opt::prelude::*;

type Of<T> = Box<dyn Fn(&[f64], &mut Stream) -> T + Send + Sync>;

/// How what a sample adds gets into the sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Adds {
    #[default]
    Right,
    Overwrites,
    IgnoresWeight,
    OtherSample,
}

/// One sample at a time.
pub(crate) struct Made {
    pub(crate) dim: usize,
    pub(crate) gradient: Of<Vec<f64>>,
    pub(crate) loss: Option<Of<f64>>,
    pub(crate) pathwise: bool,
    pub(crate) adds: Adds,
}

impl Made {
    pub(crate) fn new(
        dim: usize,
        gradient: impl Fn(&[f64], &mut Stream) -> Vec<f64> + Send + Sync + 'static,
        loss: impl Fn(&[f64], &mut Stream) -> f64 + Send + Sync + 'static,
    ) -> Self {
        let (gradient, loss): (Of<Vec<f64>>, Of<f64>) = (Box::new(gradient), Box::new(loss));
        Self { dim, gradient, loss: Some(loss), pathwise: true, adds: Adds::Right }
    }
}

impl Sampled for Made {
    fn dim(&self) -> usize {
        self.dim
    }
    fn identity(&self) -> String {
        "made of closures".into()
    }
    fn add_gradient(
        &self,
        weight: f64,
        x: &[f64],
        xi: &mut Stream,
        out: &mut [f64],
    ) -> Result<(), OracleError> {
        let weight = if self.adds == Adds::IgnoresWeight { 1.0 } else { weight };
        for (out, g) in out.iter_mut().zip((self.gradient)(x, xi)) {
            *out = if self.adds == Adds::Overwrites { 0.0 } else { *out } + weight * g;
        }
        Ok(())
    }
    fn add_difference(
        &self,
        weight: f64,
        x: &[f64],
        y: &[f64],
        xi: &mut Stream,
        out: &mut [f64],
    ) -> Result<(), OracleError> {
        let mut again = xi.clone();
        self.add_gradient(weight, x, xi, out)?;
        let second = if self.adds == Adds::OtherSample { xi } else { &mut again };
        self.add_gradient(-weight, y, second, out)
    }
    fn gives_losses(&self) -> bool {
        self.loss.is_some()
    }
    fn loss(&self, x: &[f64], xi: &mut Stream) -> Result<f64, OracleError> {
        self.loss.as_ref().map(|loss| loss(x, xi)).ok_or_else(|| OracleError::new("none"))
    }
    fn is_pathwise(&self) -> bool {
        self.pathwise
    }
}

/// All samples of a call at once, from one generator, as a function of numpy that takes n has them.
pub(crate) struct Whole {
    about: About,
    /// The sum of gradients, then the loss.
    sum: Box<dyn Fn(&[f64], &mut Stream, u64) -> Vec<f64> + Send + Sync>,
}

impl Whole {
    pub(crate) fn new(
        dim: usize,
        losses: bool,
        sum: impl Fn(&[f64], &mut Stream, u64) -> Vec<f64> + Send + Sync + 'static,
    ) -> Self {
        Self { about: About { losses, additive: false, ..About::stream(dim, "whole") }, sum: Box::new(sum) }
    }
}

impl Oracle for Whole {
    fn about(&self) -> &About {
        &self.about
    }
    fn answer(&self, request: &Request<'_>, answer: &mut Answer<'_>) -> Result<Charge, OracleError> {
        let Draw::Batch(batch) = &request.draw else { return Err(OracleError::new("a stream")) };
        let dim = self.about.dim;
        let all: Vec<_> =
            request.points.iter().map(|x| (self.sum)(x, &mut batch.whole(), batch.count())).collect();
        for (i, row) in answer.gradients.chunks_exact_mut(dim).enumerate() {
            let base = if request.form == Form::Differences { all.last() } else { None };
            for (j, out) in row.iter_mut().enumerate() {
                *out = all[i][j] - base.map_or(0.0, |base| base[j]);
            }
        }
        if request.losses {
            answer.losses.iter_mut().zip(&all).for_each(|(loss, sum)| *loss = sum[dim]);
        }
        Ok(request.usual_price(&self.about))
    }
}

pub(crate) const TRUTH: [f64; 4] = [1.0, -2.0, 0.5, 3.0];
pub(crate) const START: [f64; 4] = [0.3, 1.0, -2.0, 0.0];

/// A row of a regression: a, and the residual at x.
fn row(x: &[f64], xi: &mut Stream) -> (Vec<f64>, f64) {
    let a: Vec<f64> = x.iter().map(|_| xi.normal()).collect();
    let residual = a.iter().zip(x).zip(TRUTH).map(|((a, x), t)| a * (x - t)).sum::<f64>();
    (a, residual - 0.3 * xi.normal())
}

pub(crate) fn gradient(x: &[f64], xi: &mut Stream) -> Vec<f64> {
    let (a, residual) = row(x, xi);
    a.into_iter().map(|a| residual * a).collect()
}

pub(crate) fn loss(x: &[f64], xi: &mut Stream) -> f64 {
    row(x, xi).1.powi(2) / 2.0
}

/// A matrix that is not symmetric.
const MATRIX: [[f64; 3]; 3] = [[2.0, 1.0, 0.0], [0.0, 1.0, 0.5], [0.3, 0.0, 1.5]];

fn matrix_error(x: &[f64], xi: &mut Stream) -> Vec<f64> {
    MATRIX.iter().map(|row| row.iter().zip(x).map(|(m, x)| m * x).sum::<f64>() - xi.normal()).collect()
}

fn fixed() -> Stream {
    Address { seed: 3, role: Role::Setup, step: 0, sample: 0 }.stream()
}

/// What is wrong, the oracle, its start, and where it would be certified.
pub(crate) struct Wrong {
    pub(crate) name: &'static str,
    pub(crate) oracle: Box<dyn Oracle>,
    pub(crate) start: Vec<f64>,
    pub(crate) point: Vec<f64>,
}

/// A regression in four coordinates.
pub(crate) fn regression() -> Made {
    Made::new(4, gradient, loss)
}

fn wrong(name: &'static str, change: impl FnOnce(&mut Made)) -> Wrong {
    let mut made = regression();
    change(&mut made);
    Wrong { name, oracle: Box::new(Batched::new(made)), start: START.to_vec(), point: TRUTH.to_vec() }
}

fn gradients(
    name: &'static str,
    gradient: impl Fn(&[f64], &mut Stream) -> Vec<f64> + Send + Sync + 'static,
) -> Wrong {
    wrong(name, |made| made.gradient = Box::new(gradient))
}

fn losses(name: &'static str, loss: impl Fn(&[f64], &mut Stream) -> f64 + Send + Sync + 'static) -> Wrong {
    wrong(name, |made| made.loss = Some(Box::new(loss)))
}

fn changed(
    change: impl Fn(&mut Vec<f64>) + Send + Sync + 'static,
) -> impl Fn(&[f64], &mut Stream) -> Vec<f64> {
    move |x, xi| {
        let mut g = gradient(x, xi);
        change(&mut g);
        g
    }
}

fn whole(
    name: &'static str,
    losses: bool,
    sum: impl Fn(&[f64], &mut Stream, u64) -> Vec<f64> + Send + Sync + 'static,
) -> Wrong {
    let oracle = Box::new(Whole::new(4, losses, sum));
    Wrong { name, oracle, start: START.to_vec(), point: TRUTH.to_vec() }
}

/// The sum of n rows, gradients and then the loss.
fn sum_of(x: &[f64], xi: &mut Stream, n: u64) -> Vec<f64> {
    let mut sum = vec![0.0; 5];
    for _ in 0..n {
        let (a, residual) = row(x, xi);
        a.iter().zip(&mut sum).for_each(|(a, sum)| *sum += residual * a);
        sum[4] += residual.powi(2) / 2.0;
    }
    sum
}

/// The catalogue.
pub(crate) fn catalogue() -> Vec<Wrong> {
    let calls = AtomicU64::new(0);
    let last = Mutex::new(vec![0.0; 4]);
    let kept = Mutex::new(vec![0.0; 4]);
    let origin = START.to_vec();
    vec![
        gradients("a forgotten coordinate", changed(|g| g[2] = 0.0)),
        gradients("two coordinates swapped", changed(|g| g.swap(0, 3))),
        gradients("the sign of one coordinate", changed(|g| g[1] = -g[1])),
        gradients("a factor 2 on one coordinate", changed(|g| g[3] *= 2.0)),
        gradients(
            "a factor 2 on all (no 1/2 in the loss)",
            changed(|g| g.iter_mut().for_each(|g| *g *= 2.0)),
        ),
        gradients("the sign of all (maximised)", changed(|g| g.iter_mut().for_each(|g| *g = -*g))),
        gradients("coordinates shifted by one", changed(|g| g.rotate_left(1))),
        losses("a penalty in the loss alone", |x, xi| {
            loss(x, xi) + 0.05 * x.iter().map(|x| x * x).sum::<f64>()
        }),
        losses("a constant loss", |_, _| 0.0),
        losses("an unrelated loss", |x, xi| x.iter().map(|x| (x + xi.normal()).powi(4)).sum()),
        losses("the loss of another sample", |x, xi| {
            xi.normal();
            loss(x, xi)
        }),
        gradients("noise that ignores x", |_, xi| (0..4).map(|_| xi.normal()).collect()),
        {
            let transposed = |x: &[f64], xi: &mut Stream| {
                let e = matrix_error(x, xi);
                MATRIX.iter().map(|row| row.iter().zip(&e).map(|(m, e)| m * e).sum()).collect()
            };
            let half = |x: &[f64], xi: &mut Stream| matrix_error(x, xi).iter().map(|e| e * e / 2.0).sum();
            Wrong {
                name: "a matrix not transposed",
                oracle: Box::new(Batched::new(Made::new(3, transposed, half))),
                start: vec![1.0, -1.0, 2.0],
                point: vec![0.0; 3],
            }
        },
        {
            let cost = |x: &[f64], xi: &mut Stream| (x[0] - xi.normal()).powi(2) / 2.0;
            let made = Made::new(1, move |x, xi| vec![cost(x, xi)], cost);
            Wrong {
                name: "the cost for the gradient, d = 1",
                oracle: Box::new(Batched::new(made)),
                start: vec![3.0],
                point: vec![0.0],
            }
        },
        wrong("overwrites the sum", |made| made.adds = Adds::Overwrites),
        wrong("ignores its weight", |made| made.adds = Adds::IgnoresWeight),
        wrong("a difference of two samples", |made| made.adds = Adds::OtherSample),
        gradients("a generator of its own", move |x, _| {
            let step = calls.fetch_add(1, Ordering::Relaxed);
            gradient(x, &mut Address { seed: 3, role: Role::Setup, step, sample: 0 }.stream())
        }),
        gradients("the point of the call before", move |x, xi| {
            let mut last = last.lock().unwrap();
            let before = std::mem::replace(&mut *last, x.to_vec());
            gradient(&before, xi)
        }),
        gradients("a sum that is kept between calls", move |x, xi| {
            let mut kept = kept.lock().unwrap();
            kept.iter_mut().zip(gradient(x, xi)).for_each(|(kept, g)| *kept += g);
            kept.clone()
        }),
        gradients("NaN in a quarter of the samples", |x, xi| {
            let g = gradient(x, xi);
            if xi.uniform() < 0.25 { vec![f64::NAN; 4] } else { g }
        }),
        whole("a fixed seed, n samples a call", true, |x, _, n| sum_of(x, &mut fixed(), n)),
        whole("a fixed seed, n samples a call, no losses", false, |x, _, n| sum_of(x, &mut fixed(), n)),
        whole("the mean for the sum", false, |x, xi, n| {
            sum_of(x, xi, n).into_iter().map(|sum| sum / n as f64).collect()
        }),
        whole("the mean for the sum of gradients, losses right", true, |x, xi, n| {
            let mut sum = sum_of(x, xi, n);
            sum[..4].iter_mut().for_each(|sum| *sum /= n as f64);
            sum
        }),
        wrong("a fixed seed in every sample", |made| {
            made.gradient = Box::new(|x, _| gradient(x, &mut fixed()));
            made.loss = Some(Box::new(|x, _| loss(x, &mut fixed())));
        }),
        gradients("the gradient at the start, at every point", move |_, xi| gradient(&origin, xi)),
        wrong("a forgotten coordinate, no losses", |made| {
            made.gradient = Box::new(changed(|g| g[2] = 0.0));
            made.loss = None;
        }),
    ]
}

/// An honest oracle, and a point where it is checked.
pub(crate) struct Honest {
    pub(crate) name: &'static str,
    pub(crate) oracle: Box<dyn Oracle>,
    pub(crate) point: Vec<f64>,
}

fn honest(name: &'static str, point: &[f64], made: Made) -> Honest {
    Honest { name, oracle: Box::new(Batched::new(made)), point: point.to_vec() }
}

/// f(x, xi) = sum of h(x_i - c_i xi_i) with h and its derivative.
fn separable(
    draw: fn(&mut Stream) -> f64,
    h: fn(f64) -> f64,
    derivative: fn(f64) -> f64,
    scales: &'static [f64],
) -> Made {
    Made::new(
        scales.len(),
        move |x, xi| x.iter().zip(scales).map(|(x, s)| derivative(x / s - draw(xi)) / s).collect(),
        move |x, xi| x.iter().zip(scales).map(|(x, s)| h(x / s - draw(xi))).sum(),
    )
}

fn half_square(t: f64) -> f64 {
    t * t / 2.0
}

fn logistic(t: f64) -> f64 {
    t.max(0.0) + (-t.abs()).exp().ln_1p()
}

fn sigmoid(t: f64) -> f64 {
    1.0 / (1.0 + (-t).exp())
}

fn cauchy(xi: &mut Stream) -> f64 {
    xi.normal() / xi.normal()
}

fn coin(xi: &mut Stream) -> f64 {
    if xi.bernoulli(0.5) { 1.0 } else { -1.0 }
}

fn rare(xi: &mut Stream) -> f64 {
    if xi.bernoulli(0.05) { 20.0 } else { 0.0 }
}

const EVEN: [f64; 3] = [1.0; 3];
const UNEVEN: [f64; 5] = [1e-6, 1e-3, 1.0, 1e3, 1e6];

/// A net of one hidden layer of eight rectified units on three inputs: 33 weights.
fn net(x: &[f64], xi: &mut Stream) -> (f64, Vec<f64>) {
    let input: Vec<f64> = (0..3).map(|_| xi.normal()).collect();
    let label = input[0].sin() + 0.1 * xi.normal();
    let (hidden, out) = x.split_at(24);
    let sums: Vec<f64> = hidden.chunks(3).map(|w| w.iter().zip(&input).map(|(w, i)| w * i).sum()).collect();
    let error = sums.iter().zip(out).map(|(s, o)| s.max(0.0) * o).sum::<f64>() + out[8] - label;
    let mut g = vec![0.0; 33];
    for (k, s) in sums.iter().enumerate() {
        if *s > 0.0 {
            input.iter().enumerate().for_each(|(i, v)| g[3 * k + i] = error * out[k] * v);
            g[24 + k] = error * s;
        }
    }
    g[32] = error;
    (error * error / 2.0, g)
}

/// Oracles that are right, with what makes a check stumble.
#[expect(clippy::too_many_lines, reason = "a list")]
pub(crate) fn honest_ones(large: usize) -> Vec<Honest> {
    let wide = |x: &[f64], xi: &mut Stream| {
        let scale: f64 = x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64;
        (scale, xi.normal())
    };
    let mut all = vec![
        honest("squares", &[2.5, -1.0, 0.0], separable(Stream::normal, half_square, |t| t, &EVEN)),
        honest("absolute values", &[2.5, -1.0, 0.0], separable(Stream::normal, f64::abs, f64::signum, &EVEN)),
        honest("on a kink", &[0.0; 3], separable(|xi| rare(xi) / 20.0, f64::abs, f64::signum, &EVEN)),
        honest(
            "near a kink",
            &[1e-5, 1e-3, 1e-7],
            separable(|xi| rare(xi) / 20.0, f64::abs, f64::signum, &EVEN),
        ),
        honest("steps of demand", &[3.0, 7.0, 2.0], {
            let demand = |xi: &mut Stream| (-5.0 * xi.open_uniform().ln()).floor();
            separable(
                demand,
                |t| 3.0 * t.max(0.0) - 7.0 * t.min(0.0),
                |t| if t > 0.0 { 3.0 } else { -7.0 },
                &EVEN,
            )
        }),
        honest(
            "hinges",
            &[0.4, -0.2, 0.1],
            separable(coin, |t| (1.0 - t).max(0.0), |t| if t < 1.0 { -1.0 } else { 0.0 }, &EVEN),
        ),
        honest("Cauchy's law, squares", &[2.0, 0.0, -3.0], separable(cauchy, half_square, |t| t, &EVEN)),
        honest(
            "Cauchy's law, absolute values",
            &[2.0, 0.0, -3.0],
            separable(cauchy, f64::abs, f64::signum, &EVEN),
        ),
        honest("coins", &[0.3, 0.0, -3.0], separable(coin, half_square, |t| t, &EVEN)),
        honest("rare events", &[0.3, 0.0, -3.0], separable(rare, half_square, |t| t, &EVEN)),
        honest("rare events, logistic", &[0.3, 0.0, -3.0], separable(rare, logistic, sigmoid, &EVEN)),
        honest("no noise", &[0.3, 2.0, -3.0], separable(|_| 0.0, logistic, sigmoid, &EVEN)),
        honest("uneven units, from 0", &[0.0; 5], separable(Stream::normal, logistic, sigmoid, &UNEVEN)),
        honest(
            "uneven units, from their size",
            &UNEVEN,
            separable(Stream::normal, logistic, sigmoid, &UNEVEN),
        ),
        honest(
            "uneven units with kinks",
            &[1.0; 5],
            separable(Stream::normal, f64::abs, f64::signum, &UNEVEN),
        ),
        honest(
            "far from zero",
            &[1e3, -2e3, 5e2],
            separable(Stream::normal, |t| t * t / 2.0 - 5.0 * t.cos(), |t| t + 5.0 * t.sin(), &EVEN),
        ),
        honest(
            "waves, far from zero",
            &[1e5, -2e6, 5e4],
            separable(Stream::normal, |t| -t.cos(), f64::sin, &EVEN),
        ),
        honest("quartic", &[2.0, -1.0, 0.5], separable(cauchy, |t| t.powi(4), |t| 4.0 * t.powi(3), &EVEN)),
        honest("exponential", &[2.0, -1.0, 0.5], separable(Stream::normal, f64::exp, f64::exp, &EVEN)),
        honest(
            "an offset of 1e9",
            &[2.5, -1.0, 0.0],
            separable(Stream::normal, |t| t * t / 2.0 + 1e9, |t| t, &EVEN),
        ),
        honest(
            "an offset of 1e14",
            &[2.5, -1.0, 0.0],
            separable(Stream::normal, |t| t * t / 2.0 + 1e14, |t| t, &EVEN),
        ),
        honest(
            "offsets that differ",
            &[2.5, -1.0, 0.0],
            Made::new(
                3,
                |x, xi| x.iter().map(|x| x - xi.normal()).collect(),
                |x, xi| x.iter().map(|x| half_square(x - xi.normal())).sum::<f64>() + 1e8 * cauchy(xi),
            ),
        ),
        honest(
            "single precision",
            &[2.5, -1.0, 0.1],
            Made::new(
                3,
                |x, xi| x.iter().map(|x| f64::from((x - xi.normal()) as f32)).collect(),
                |x, xi| f64::from(x.iter().map(|x| half_square(x - xi.normal()) as f32).sum::<f32>()),
            ),
        ),
        honest(
            "single precision, offset",
            &[2.5, -1.0, 0.1],
            Made::new(
                3,
                |x, xi| x.iter().map(|x| f64::from((x - xi.normal()) as f32)).collect(),
                |x, xi| f64::from(x.iter().map(|x| half_square(x - xi.normal()) as f32 + 1e5).sum::<f32>()),
            ),
        ),
        honest(
            "forward differences",
            &[2.5, -1.0, 0.5],
            Made::new(
                3,
                |x, xi| {
                    x.iter()
                        .map(|x| {
                            let c = xi.normal();
                            (logistic(x + 1e-5 - c) - logistic(x - c)) / 1e-5
                        })
                        .collect()
                },
                |x, xi| x.iter().map(|x| logistic(x - xi.normal())).sum(),
            ),
        ),
        honest(
            "rectified net",
            &(0..33).map(|i| (f64::from(i * 7 % 11) - 5.0) / 6.0).collect::<Vec<_>>(),
            Made::new(33, |x, xi| net(x, xi).1, |x, xi| net(x, xi).0),
        ),
        honest(
            "phase retrieval",
            &[0.0; 4],
            Made::new(
                4,
                |x, xi| {
                    let (a, p) = row(x, xi);
                    a.iter().map(|a| 2.0 * (p * p - 1.0) * p * a).collect()
                },
                |x, xi| {
                    let (_, p) = row(x, xi);
                    (p * p - 1.0).powi(2) / 2.0
                },
            ),
        ),
        honest(
            "likelihood ratio, declared",
            &[0.4],
            Made {
                pathwise: false,
                ..Made::new(
                    1,
                    |x, xi| {
                        let z = xi.normal();
                        vec![f64::from(u8::from(x[0] + z > 0.0)) * z]
                    },
                    |x, xi| f64::from(u8::from(x[0] + xi.normal() > 0.0)),
                )
            },
        ),
        honest(
            "likelihood ratio of a smooth cost, declared",
            &[0.4, 2.0],
            Made {
                pathwise: false,
                ..Made::new(
                    2,
                    |x, xi| {
                        let z = [xi.normal(), xi.normal()];
                        let cost: f64 = x.iter().zip(z).map(|(x, z)| (x + z).powi(2)).sum();
                        z.iter().map(|z| cost * z).collect()
                    },
                    |x, xi| x.iter().map(|x| (x + xi.normal()).powi(2)).sum(),
                )
            },
        ),
        honest(
            "likelihood ratio with a baseline and rare jumps, declared",
            &[3.0],
            Made {
                pathwise: false,
                ..Made::new(
                    1,
                    |x, xi| {
                        let z = xi.normal();
                        vec![(f64::from(u8::from(x[0] + z > 0.0)) - 1.0) * z + 1e-3 * z]
                    },
                    |x, xi| f64::from(u8::from(x[0] + xi.normal() > 0.0)),
                )
            },
        ),
        honest(
            "thousands of coordinates",
            &vec![0.7; large],
            Made::new(
                large,
                move |x, xi| {
                    let (scale, noise) = wide(x, xi);
                    x.iter().map(|x| 4.0 * (scale - noise) * x).collect()
                },
                move |x, xi| {
                    let (scale, noise) = wide(x, xi);
                    (scale - noise).powi(2) * x.len() as f64
                },
            ),
        ),
    ];
    let sums: [(&'static str, fn(&mut Stream) -> f64); 4] = [
        ("sums of normal numbers", Stream::normal),
        ("sums of Cauchy's", cauchy),
        ("sums of coins", coin),
        ("sums of rare events", rare),
    ];
    for (name, draw) in sums {
        let sum = move |x: &[f64], xi: &mut Stream, n: u64| {
            let mut sum = vec![0.0; x.len() + 1];
            for _ in 0..n {
                for (j, x) in x.iter().enumerate() {
                    let error = x - draw(xi);
                    sum[j] += error;
                    *sum.last_mut().unwrap() += half_square(error);
                }
            }
            sum
        };
        for (point, losses) in [(vec![2.0, -1.0, 0.0], true), (vec![0.0], true), (vec![0.0], false)] {
            let oracle = Box::new(Whole::new(point.len(), losses, sum));
            all.push(Honest { name, oracle, point });
        }
    }
    all
}
