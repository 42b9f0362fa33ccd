//! Service rates of a tandem queue, by simulation with pathwise derivatives.

use pasta_opt::draws::{Address, Role, Stream};
use rayon::prelude::*;

use super::{Instance, Law, stream};

/// Customers arrive once a unit of time on average at three stations in a row, which serve at rates exp(x_j) and start empty. The
/// loss is the mean time that a customer spends there, plus the cost of the rates.
struct Tandem;

const STATIONS: usize = 3;
const CUSTOMERS: usize = 15;
const COST: [f64; STATIONS] = [0.3, 0.5, 0.8];

/// Expectations are means over so many fixed samples: five times as many as a run of 50,000, whose end they can judge.
const REFERENCE: u64 = 1 << 18;

pub(super) fn tandem() -> Instance {
    stream("queue", Tandem)
}

impl Tandem {
    /// The mean over the reference: gradient, then value. Sums over fixed chunks, added in their order.
    fn reference(x: &[f64]) -> [f64; STATIONS + 1] {
        let chunks: Vec<[f64; STATIONS + 1]> = (0..REFERENCE / 1024)
            .into_par_iter()
            .map(|step| {
                let mut sum = [0.0; STATIONS + 1];
                for sample in 0..1024 {
                    let mut xi = Address { seed: 71, role: Role::Setup, step, sample }.stream();
                    let (gradient, value) = sum.split_at_mut(STATIONS);
                    value[0] += Self.sample(1.0, x, &mut xi, gradient);
                }
                sum
            })
            .collect();
        let mut mean = [0.0; STATIONS + 1];
        for chunk in chunks {
            mean.iter_mut().zip(chunk).for_each(|(mean, sum)| *mean += sum / REFERENCE as f64);
        }
        mean
    }
}

impl Law for Tandem {
    fn start(&self) -> Vec<f64> {
        vec![0.0; STATIONS]
    }

    fn sample(&self, weight: f64, x: &[f64], xi: &mut Stream, out: &mut [f64]) -> f64 {
        let service: [f64; STATIONS] = std::array::from_fn(|j| (-x[j]).exp());
        // When each station is free, and how that moves with x.
        let mut free = [0.0; STATIONS];
        let mut slopes = [[0.0; STATIONS]; STATIONS];
        let (mut arrival, mut spent, mut slope) = (0.0, 0.0, [0.0; STATIONS]);
        for _ in 0..CUSTOMERS {
            arrival -= xi.open_uniform().ln();
            let (mut now, mut moves) = (arrival, [0.0; STATIONS]);
            for j in 0..STATIONS {
                if free[j] > now {
                    (now, moves) = (free[j], slopes[j]);
                }
                let time = -xi.open_uniform().ln() * service[j];
                now += time;
                moves[j] -= time;
                (free[j], slopes[j]) = (now, moves);
            }
            spent += now - arrival;
            slope.iter_mut().zip(moves).for_each(|(slope, moves)| *slope += moves);
        }
        let mut loss = spent / CUSTOMERS as f64;
        for j in 0..STATIONS {
            let rate = COST[j] * x[j].exp();
            loss += rate;
            out[j] += weight * (slope[j] / CUSTOMERS as f64 + rate);
        }
        loss
    }

    fn gradient(&self, x: &[f64], out: &mut [f64]) {
        self.gradient_and_value(x, out);
    }

    fn gradient_and_value(&self, x: &[f64], out: &mut [f64]) -> f64 {
        let reference = Self::reference(x);
        out.copy_from_slice(&reference[..STATIONS]);
        reference[STATIONS]
    }

    fn value(&self, x: &[f64]) -> f64 {
        Self::reference(x)[STATIONS]
    }
}
