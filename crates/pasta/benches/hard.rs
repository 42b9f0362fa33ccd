//! The hard instances, as ratios within one run: what a coordinate costs over the bare exponentials and error
//! functions that its formula needs, and what a step costs on a long chain over a short one.
//!
//! `cargo bench -p pasta-opt --bench hard [name]` prints one table, laid out and timed like that of `ratios`: both
//! sides of a ratio take turns in many short rounds, and the fastest round of each counts.

mod harness;

use std::hint::black_box;

use harness::{advance, fastest, print_row, sink};
use pasta_opt::bounds::{LowerMeanSquareSmooth, LowerSmooth};
use pasta_opt::draws::Role;
use pasta_opt::hard::HardInstance;
use pasta_opt::objective::Objective;
use pasta_opt::oracle::{Answer, Request};
use pasta_opt::prelude::*;

fn main() {
    harness::main(&[("coordinate", coordinate), ("long-chain", long_chain)]);
}

/// An instance of Theorem 1 whose chain has about `length` coordinates.
fn smooth(length: f64) -> HardInstance {
    let target = 1e-3;
    let gap = 768.0 * 152.0 * target * target * (length + 0.5);
    let limit = LowerSmooth { smoothness: 1.0, gap, growth: 1.0, floor: 0.5, target };
    HardInstance::smooth(limit).expect("a chain of two or more")
}

/// The same for Theorem 2, where T is about 16 varsigma Lbar/(768 lbar1 B) once p is small.
fn mean_square_smooth(length: f64) -> HardInstance {
    let growth = 16.0 * 23.0 / (768.0 * 328.0 * (length + 0.5));
    let limit = LowerMeanSquareSmooth {
        ms_smoothness: 1.0,
        gap: 1.0,
        growth,
        floor: 0.0,
        target: 1e-2 * growth.sqrt(),
    };
    HardInstance::mean_square_smooth(limit).expect("a chain of two or more")
}

/// A point beyond D whose first m chain coordinates are awake and of order one, up to the frontier.
fn point(instance: &HardInstance, m: u32) -> Vec<f64> {
    let bound = instance.bound();
    let sign = |i: u32| if i.is_multiple_of(3) { -1.0 } else { 1.0 };
    let y = (0..m).map(|i| bound.lambda * sign(i) * (0.8 + 0.5 * f64::from(i % 17) / 17.0));
    [1.5 * bound.distance].into_iter().chain(y).chain([0.0]).collect()
}

/// A gradient and an oracle's answer over the exponentials and error functions that they cannot do without.
fn coordinate(name: &str) {
    for (mask, instance) in [("basic", smooth(1e6)), ("smooth", mean_square_smooth(1e6))] {
        for (m, repeats) in [(10, 1000), (1000, 10), (100_000, 1)] {
            let x = point(&instance, m);
            let bare = Bare::new(&x[1..], instance.bound().lambda);
            let mut out = vec![0.0; x.len()];
            let mut step = 0;
            let ours = || {
                for _ in 0..repeats {
                    step += 1;
                    instance.gradient(black_box(&x), &mut out);
                    let batch = Batch { seed: 1, role: Role::Large, step, samples: 0..1 };
                    let answer = &mut Answer::new(&mut out);
                    let points: &[&[f64]] = &[&x];
                    // Up to the coordinate after the frontier, as a walk asks.
                    let request = Request { active: x.len() - 1, ..Request::sums(batch, points) };
                    let charge = instance.answer(&request, answer);
                    charge.expect("this oracle cannot fail");
                    black_box(&mut out);
                }
            };
            // Twice: once for the gradient, once for the sum.
            let theirs = || (0..2 * repeats).for_each(|_| sink(black_box(&bare).sum()));
            let [ours, theirs] = fastest(200, ours, theirs);
            let what = format!("gradient + sum, {mask} mask, m = {m}: over bare erfc, exp");
            print_row(name, &what, ours / theirs, ..=1.5);
            let calls = 2.0 * f64::from(repeats) * f64::from(m);
            print_row(name, "ns per active coordinate and evaluation", 1e9 * ours / calls, ..);
        }
    }
}

/// The arguments of the functions that the chain needs at a point: exp twice and erfc once a coordinate.
struct Bare {
    slopes: Vec<f64>,
    gates: Vec<f64>,
    levels: Vec<f64>,
}

impl Bare {
    fn new(y: &[f64], lambda: f64) -> Self {
        let x: Vec<f64> = y.iter().map(|y| y / lambda).collect();
        let awake = || x.iter().filter(|x| **x != 0.0);
        Self {
            // Phi'(x_i), also at the frontier.
            slopes: x.iter().map(|x| -0.5 * x * x).collect(),
            // Psi(|x_i|), and Psi' from it.
            gates: awake().map(|x| 1.0 - (2.0 * x.abs() - 1.0).powi(-2)).collect(),
            // Phi(s x_{i+1}), s the sign of x_i, and Phi(x_1).
            levels: awake().zip(&x[1..]).map(|(x, next)| x.signum() * next).chain([x[0]]).collect(),
        }
    }

    fn sum(&self) -> f64 {
        let level = |x: f64| libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2);
        let frontier = self.gates.len();
        let mut sum = libm::exp(self.slopes[frontier]) + level(self.levels[frontier]);
        for i in 0..frontier {
            sum += libm::exp(self.slopes[i]) + libm::exp(self.gates[i]) + level(self.levels[i]);
        }
        sum
    }
}

/// A step where ten coordinates are awake: a chain of 10^6 over a chain of 100.
fn long_chain(name: &str) {
    const STEPS: u32 = 2000;
    for (mask, instances) in
        [("basic", [1e6, 100.0].map(smooth)), ("smooth", [1e6, 100.0].map(mean_square_smooth))]
    {
        let starts = instances.each_ref().map(|instance| {
            let mut x = point(instance, 10);
            x.resize(Objective::dim(instance), 0.0);
            x
        });
        // So short a step that the point stays where it is.
        let sgd = |i: usize| {
            let rule = Rule::Sgd { eta: Sequence::Constant(1e-30) };
            let gate = Gate::new(instances[i].clone(), 1);
            let settings = Settings { rule, steps: u64::MAX, batch: 1 };
            let walk = Baseline::start(&gate, settings, &starts[i]).expect("valid settings");
            (gate, walk)
        };
        let [mut long, mut short] = [sgd(0), sgd(1)];
        let [long, short] = fastest(100, || advance(&mut long, STEPS), || advance(&mut short, STEPS));
        let what = format!("step of SGD, {mask} mask, 10 awake: T = 10^6 over T = 100");
        print_row(name, &what, long / short, ..=1.1);
        print_row(name, "ns per step, T = 10^6", 1e9 * long / f64::from(STEPS), ..);
    }
}
