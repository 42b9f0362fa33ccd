//! How far f can be above its least value, for a loss with a [kink](Kink): by slopes of the rows.
//!
//! The loss of a row is max(lo t, hi t), so with any p_i from lo to hi the mean of the p_i t_i plus the penalty is nowhere above f. It is convex; where its gradient
//! at x is zero it is least at x, and f(x) is above its own least value by at most the mean of what is left, the loss less p_i t_i.
//!
//! The slopes of the smoothed loss, p = t/width cut off at lo and hi, make a gradient that is small, but not as small as rounding allows: a width of 1e-9
//! makes a slope of 1e-3 out of the twelfth digit of a score. So they are corrected, by q_i = s_i^2 <a_i, c> with the c that leaves no gradient and s_i how far p_i is from lo
//! and hi. That is the shortest correction where a row's part counts by what it can bear; rows that cannot bear any have none.

use std::ops::Range;

use super::hessian::{Factor, Hessian, MOST_FULL};
use super::linear::Reader;
use super::{Kink, Linear};
use crate::kernels::dot;
use crate::kernels::rows::{self, SCORED};

/// What rounding leaves of a mean, over the mean size of its parts.
const ROUNDING: f64 = 64.0 * f64::EPSILON;

/// Slopes of the rows of a table at a point, as a smoothing over a width has them, and their correction.
#[derive(Debug)]
pub(crate) struct Slopes<'a> {
    linear: &'a Linear,
    kink: Kink,
    width: f64,
    x: &'a [f64],
    correction: Vec<f64>,
    /// Of the matrix that takes c to the gradient of its correction; none before the first pass, nor if there is none.
    factor: Option<Factor>,
    gradient: Vec<f64>,
}

/// A row's t, its slope there, and how far the slope is from both ends.
struct Slope {
    t: f64,
    dt: f64,
    p: f64,
    room: f64,
}

impl<'a> Slopes<'a> {
    /// Those at x; `None` where a correction would need a matrix that is too large.
    pub(crate) fn new(linear: &'a Linear, kink: Kink, width: f64, x: &'a [f64]) -> Option<Self> {
        let (correction, gradient) = (vec![0.0; x.len()], Vec::new());
        let slopes = Self { linear, kink, width, x, correction, factor: None, gradient };
        (linear.dim() <= MOST_FULL).then_some(slopes)
    }

    /// A pass over all rows: the mean of the losses less p t, and whether the gradient that is left is all rounding.
    pub(crate) fn pass(&mut self) -> (f64, bool) {
        let d = self.linear.dim();
        let of_matrix = if self.gradient.is_empty() { d * d } else { 0 };
        let sums = self.linear.add_up(1 + 2 * d + of_matrix, &|rows, out| self.add(rows, out));
        let mean = |sum: &f64| sum / self.linear.total_weight();
        let penalty = self.linear.design().penalty;
        let of_penalty = |i: usize| if i < self.linear.features() { penalty * self.x[i] } else { 0.0 };
        let (gradient, sizes) = sums[1..=2 * d].split_at(d);
        self.gradient = gradient.iter().enumerate().map(|(i, sum)| mean(sum) + of_penalty(i)).collect();
        let mut left = self.gradient.iter().zip(sizes).enumerate();
        let is_rounding = left.all(|(i, (g, size))| g.abs() <= ROUNDING * (mean(size) + of_penalty(i).abs()));
        if of_matrix > 0 {
            let entries = self.linear.means(d, &sums[1 + 2 * d..]);
            self.factor = Hessian::Full { dim: d, entries }.factor();
        }
        (mean(&sums[0]), is_rounding)
    }

    /// Corrects the slopes for the next pass; false where they cannot be.
    pub(crate) fn correct(&mut self) -> bool {
        let Some(factor) = &self.factor else { return false };
        let step = factor.solve(&self.gradient);
        rows::add(-1.0, &step, &mut self.correction);
        true
    }

    /// What is left, the gradient, the sizes of its parts, and above the diagonal the matrix, if there is room for it.
    fn add(&self, rows: Range<usize>, out: &mut [f64]) {
        let d = self.linear.dim();
        let (left, out) = out.split_at_mut(1);
        let (gradient, rest) = out.split_at_mut(d);
        let (sizes, matrix) = rest.split_at_mut(d);
        let (low, high) = self.kink.slopes();
        let mut reader = Reader::new(self.linear);
        let block = rows::scored(size_of::<f64>() * d);
        let (mut room, mut bends) = (vec![0.0; block * d], [0.0; SCORED]);
        for first in rows.clone().step_by(block) {
            let some = first..(first + block).min(rows.end);
            let bends = &mut bends[..some.len()];
            for ((row, a), bend) in some.zip(room.chunks_exact_mut(d)).zip(&mut *bends) {
                reader.write_row(row, a);
                let weight = reader.weights.map_or(1.0, |weights| weights[row]);
                let Slope { t, dt, p, room } = self.of_row(a, reader.labels[row]);
                left[0] += weight * t * if t > 0.0 { high - p } else { low - p };
                rows::add(weight * p * dt, a, gradient);
                sizes.iter_mut().zip(&*a).for_each(|(size, a)| *size += weight * (p * a).abs());
                *bend = weight * room * room;
            }
            if !matrix.is_empty() {
                rows::add_outer(bends, &room, d, matrix);
            }
        }
    }

    fn of_row(&self, a: &[f64], y: f64) -> Slope {
        let (low, high) = self.kink.slopes();
        let (t, dt) = self.kink.inner(dot(a, self.x), y);
        let smoothed = (t / self.width).clamp(low, high);
        let room = (smoothed - low).min(high - smoothed);
        let q = if room > 0.0 { room * room * dt * dot(a, &self.correction) } else { 0.0 };
        Slope { t, dt, p: (smoothed + q).clamp(low, high), room }
    }
}
