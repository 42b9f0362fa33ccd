//! How far f can be above its least value, for a loss with a [kink](Kink): by slopes of the rows.
//!
//! The loss of a row is max(lo t, hi t), so with any p_i from lo to hi the mean of the p_i t_i plus the penalty is nowhere above f. It is convex; where its gradient
//! at x is zero it is least at x, and f(x) is above its own least value by at most the mean of what is left, the loss less p_i t_i.
//!
//! The slopes of the smoothed loss, p = t/width cut off at lo and hi, make a gradient g that is small but not zero, and f may fall for long along a direction in which g is
//! hardly anything. So g is taken away by other slopes that are known to exist. Let s_i be how far p_i is from lo and hi, and M the mean of s_i^2 a_i a_i'. With
//! M c = g the slopes p_i - s_i^2 t_i' <a_i, c> have no gradient, and with e^2 = <g, c> they are within lo and hi if e <= sqrt(w_i/W) for every row, whose share of the weight that is.
//! They are below f by at most e sqrt(mean of s_i^2 t_i^2) more, by Cauchy and Schwarz. What rounding may have made of g counts in e, too.
//!
//! - Where few rows are near their kinks, M does not have all directions. If lo < 0 < hi, all slopes are made a little smaller, which gives every row some room.
//! - With a penalty l, which is l/2 |w|^2, slopes that leave |g| are below the least value of f by at most |g|^2/(2 l) more; the intercept has none, and its part of g alone is taken away.
//! - Where e is too large (a width of 1e-9 makes a slope of 1e-3 out of the twelfth digit of a score), slopes are corrected row by row by this c first.

use std::ops::Range;

use super::hessian::{Factor, Hessian, MOST_FULL};
use super::linear::Reader;
use super::matrix::ROUNDOFF;
use super::{Kink, Linear, triangle};
use crate::kernels::rows::{self, SCORED};
use crate::kernels::{dot, squared_norm};

/// Slopes of the rows of a table at a point, as a smoothing over a width has them, and their correction.
#[derive(Debug)]
pub(crate) struct Slopes<'a> {
    linear: &'a Linear,
    kink: Kink,
    width: f64,
    x: &'a [f64],
    /// Coordinates that depend on others exactly: where those have no gradient, they have none.
    left_out: &'a [usize],
    /// By how much slopes are made smaller.
    smaller: f64,
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

/// What a pass over all rows says, in means: the losses less p t, s^2 t^2, what rounding may have made of the scores, the gradient and the size of its parts.
struct Means {
    left: f64,
    spread: f64,
    rounding: f64,
    gradient: Vec<f64>,
    sizes: Vec<f64>,
}

/// Sums besides the gradient, the sizes of its parts and the matrix.
const SUMS: usize = 3;

impl<'a> Slopes<'a> {
    /// Those at x; `None` where a correction would need a matrix that is too large.
    pub(crate) fn new(
        linear: &'a Linear,
        kink: Kink,
        width: f64,
        x: &'a [f64],
        left_out: &'a [usize],
    ) -> Option<Self> {
        let (correction, gradient) = (vec![0.0; x.len()], Vec::new());
        let slopes =
            Self { linear, kink, width, x, left_out, smaller: 0.0, correction, factor: None, gradient };
        (linear.dim() <= MOST_FULL).then_some(slopes)
    }

    /// A pass over all rows: by how much f can be above its least value; infinite where that cannot be told.
    pub(crate) fn gap(&mut self) -> f64 {
        let d = self.linear.dim();
        let sums = self.linear.add_up(SUMS + 2 * d + d * d, &|rows, out| self.add(rows, out));
        let means = self.means(&sums);
        let entries = self.linear.means(d, &sums[SUMS + 2 * d..]);
        self.factor = Hessian::Full { dim: d, entries: entries.clone() }.factor_without(self.left_out);
        if self.factor.as_ref().is_some_and(|factor| factor.loses(self.left_out)) {
            self.factor = self
                .linear
                .triangle(&|reader, rows, squares| {
                    let mut a = vec![0.0; d];
                    for (row, square) in rows.zip(squares) {
                        reader.write_row(row, &mut a);
                        let weight = reader.weights.map_or(1.0, |weights| weights[row]);
                        *square = weight * self.of_row(&a, reader.labels[row]).room.powi(2);
                    }
                })
                .factor(self.left_out, |_| triangle::ROUNDING);
        }
        let gap = self.by_factor(&means).min(self.by_penalty(&means, &entries));
        self.gradient = means.gradient;
        // Everything above was rounded, too.
        1.001 * gap + means.rounding
    }

    /// Makes slopes smaller by a share, where that leaves them room; false where it does not.
    pub(crate) fn shrink(&mut self, share: f64) -> bool {
        let (low, high) = self.kink.slopes();
        self.smaller = share;
        low < 0.0 && high > 0.0
    }

    /// Corrects the slopes by the gradient of the last pass; false where they cannot be.
    pub(crate) fn correct(&mut self) -> bool {
        let Some(factor) = &self.factor else { return false };
        let step = factor.solve(&self.gradient);
        rows::add(-1.0, &step, &mut self.correction);
        true
    }

    /// A pass that finds the gradient alone.
    pub(crate) fn look(&mut self) {
        let d = self.linear.dim();
        let sums = self.linear.add_up(SUMS + 2 * d, &|rows, out| self.add(rows, out));
        self.gradient = self.means(&sums).gradient;
    }

    fn means(&self, sums: &[f64]) -> Means {
        let (d, penalty) = (self.linear.dim(), self.linear.design().penalty);
        let mean = |sum: &f64| sum / self.linear.total_weight();
        let of_penalty = |i: usize| if i < self.linear.features() { penalty * self.x[i] } else { 0.0 };
        let (gradient, sizes) = sums[SUMS..SUMS + 2 * d].split_at(d);
        Means {
            left: mean(&sums[0]),
            spread: mean(&sums[1]).sqrt(),
            rounding: mean(&sums[2]),
            gradient: gradient.iter().enumerate().map(|(i, sum)| mean(sum) + of_penalty(i)).collect(),
            sizes: sizes.iter().enumerate().map(|(i, sum)| mean(sum) + of_penalty(i).abs()).collect(),
        }
    }

    /// What rounding may have made of a mean, over the mean size of its parts: a chain of additions, and a few roundings of each part.
    fn rounding(&self) -> f64 {
        1.01 * ROUNDOFF * (self.linear.table().rows().min(1 << 17) as f64 + 64.0)
    }

    /// One over the root of the least share of the weight that a row has.
    fn lightest(&self) -> f64 {
        let weights = self.linear.table().weight_slice();
        let least =
            |weights: &[f64]| weights.iter().copied().filter(|w| *w > 0.0).fold(f64::INFINITY, f64::min);
        (self.linear.total_weight() / weights.map_or(1.0, least)).sqrt()
    }

    /// The gap by slopes without a gradient.
    fn by_factor(&self, means: &Means) -> f64 {
        let d = self.linear.dim();
        // Hinge: a direction in which no row is near its kink, with a gradient that is all rounding. Other losses shrink their slopes instead.
        let is_flat = |i: usize| {
            self.kink == Kink::Hinge && means.gradient[i].abs() <= 64.0 * f64::EPSILON * means.sizes[i]
        };
        let without = self.factor.as_ref().map_or_else(|| (0..d).collect(), Factor::left_out);
        if !without.iter().all(|i| self.left_out.contains(i) || is_flat(*i)) {
            return f64::INFINITY;
        }
        let Some(factor) = &self.factor else { return means.left };
        let mut doubts = vec![0.0; d];
        for j in (0..d).filter(|j| !self.left_out.contains(j)) {
            let mut unit = vec![0.0; d];
            unit[j] = self.rounding() * means.sizes[j];
            factor.half_solve(&unit).iter().zip(&mut doubts).for_each(|(v, doubt)| *doubt += v.abs());
        }
        let e = (factor.promised(&means.gradient)).sqrt() + squared_norm(&doubts).sqrt();
        if e * self.lightest() <= 1.0 { means.left + e * means.spread } else { f64::INFINITY }
    }

    /// The gap by the penalty, which bounds the way to the minimiser.
    fn by_penalty(&self, means: &Means, matrix: &[f64]) -> f64 {
        let (d, features, penalty) =
            (self.linear.dim(), self.linear.features(), self.linear.design().penalty);
        let size = |i: usize| means.gradient[i].abs() + self.rounding() * means.sizes[i];
        let (e, c) = match matrix.last() {
            _ if d == features => (0.0, 0.0),
            Some(own) if *own > 0.0 => (size(d - 1) / own.sqrt(), size(d - 1) / own),
            _ => return f64::INFINITY,
        };
        let left = (0..features).map(|i| (size(i) + c * matrix[i * d + d - 1].abs()).powi(2)).sum::<f64>();
        let left = left / (2.0 * penalty);
        if penalty > 0.0 && e * self.lightest() <= 1.0 {
            means.left + e * means.spread + left
        } else {
            f64::INFINITY
        }
    }

    /// The sums of [`Means`], and above the diagonal the matrix, if there is room for it.
    fn add(&self, rows: Range<usize>, out: &mut [f64]) {
        let d = self.linear.dim();
        let (sums, out) = out.split_at_mut(SUMS);
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
                let parts: f64 = a.iter().zip(self.x).map(|(a, x)| (a * x).abs()).sum();
                let end = if t > 0.0 { high } else { low };
                sums[0] += weight * t * (end - p);
                sums[1] += weight * (room * t).powi(2);
                // A row at the end that its t belongs to has nothing left, unless rounding hides the sign of t.
                let doubt = ROUNDOFF * (d as f64 + 8.0) * (parts + reader.labels[row].abs() + 1.0);
                let reach = if t.abs() <= doubt { high - low } else { end - p };
                sums[2] += weight * doubt * reach.abs();
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
        let before = (smoothed - low).min(high - smoothed);
        let q = if before > 0.0 { before * before * dt * dot(a, &self.correction) } else { 0.0 };
        let p = (1.0 - self.smaller) * (smoothed + q).clamp(low, high);
        Slope { t, dt, p, room: (p - low).min(high - p) }
    }
}
