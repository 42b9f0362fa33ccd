//! Second derivatives of f over all rows, and linear systems with them.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::linear::{Reader, Way};
use super::loss::{bend, curvatures, with_scalar};
use super::{Class, Linear, Loss, Scaling};
use crate::draws::Role;
use crate::kernels::rows::{self, SCORED};
use crate::kernels::{dot, squared_norm};
use crate::oracle::{Batch, OracleError};

/// Up to so many coordinates a [`Hessian`] is a whole matrix; beyond, its diagonal alone.
pub const MOST_FULL: usize = 512;

/// Second derivatives, or what stands for them: a symmetric matrix without negative eigenvalues.
///
/// Where a loss has kinks they are those of the loss smoothed over a width that shrinks with the number of rows; where it bends downwards, 0.
#[derive(Debug, Clone, PartialEq)]
pub enum Hessian {
    /// All entries, row by row.
    Full {
        /// Rows and columns.
        dim: usize,
        /// `dim` squared numbers.
        entries: Vec<f64>,
    },
    /// The diagonal; the rest counts as zero.
    Diagonal(Vec<f64>),
}

impl Hessian {
    /// Zero: whole up to [`MOST_FULL`] coordinates.
    pub fn zero(dim: usize) -> Self {
        if dim <= MOST_FULL {
            Self::Full { dim, entries: vec![0.0; dim * dim] }
        } else {
            Self::Diagonal(vec![0.0; dim])
        }
    }

    /// Adds a multiple of another one of the same size.
    pub fn add(&mut self, times: f64, other: &Self) {
        match (self, other) {
            (Self::Full { entries: mine, .. }, Self::Full { entries: others, .. })
            | (Self::Diagonal(mine), Self::Diagonal(others)) => {
                mine.iter_mut().zip(others).for_each(|(mine, other)| *mine += times * other);
            }
            _ => debug_assert!(false, "whole or not is decided by the size alone"),
        }
    }

    /// The product with a vector.
    pub fn times(&self, v: &[f64]) -> Vec<f64> {
        match self {
            Self::Full { dim, entries } => entries.chunks(*dim).map(|row| dot(row, v)).collect(),
            Self::Diagonal(diagonal) => diagonal.iter().zip(v).map(|(h, v)| h * v).collect(),
        }
    }

    /// The mean of the diagonal.
    fn mean(&self) -> f64 {
        match self {
            Self::Full { dim, entries } => (0..*dim).map(|i| entries[i * dim + i]).sum::<f64>() / *dim as f64,
            Self::Diagonal(diagonal) => diagonal.iter().sum::<f64>() / diagonal.len() as f64,
        }
    }

    /// Its factor; `None` if it is zero or not finite.
    pub fn factor(&self) -> Option<Factor> {
        self.factor_without(&[])
    }

    /// The same without some coordinates.
    pub(crate) fn factor_without(&self, left_out: &[usize]) -> Option<Factor> {
        let mean = self.mean();
        (mean > 0.0 && mean.is_finite()).then(|| Factor::of(self, left_out)).flatten()
    }
}

/// A matrix L with L L' = H on all coordinates but those that depend on others before them, which are left out.
#[derive(Debug, Clone, PartialEq)]
pub struct Factor {
    dim: usize,
    /// Row by row; nothing above the diagonal is used, which is infinite where a coordinate is left out. Of a diagonal matrix the roots alone.
    entries: Vec<f64>,
    /// Of the coordinates that are not left out, the least share of one that those before it do not have. 1 for a diagonal.
    least: f64,
}

impl Factor {
    /// Of a coordinate that depends on those before it rounding leaves at most so much, times the root of their number.
    const ROUNDING: f64 = 64.0 * f64::EPSILON;

    fn of(hessian: &Hessian, left_out: &[usize]) -> Option<Self> {
        let (d, mut a) = match hessian {
            Hessian::Diagonal(diagonal) => {
                let root = |h: &f64| if *h == 0.0 { f64::INFINITY } else { h.sqrt() };
                let mut entries: Vec<f64> = diagonal.iter().map(root).collect();
                left_out.iter().for_each(|i| entries[*i] = f64::INFINITY);
                let positive = diagonal.iter().all(|h| *h >= 0.0 && h.is_finite());
                return positive.then_some(Self { dim: diagonal.len(), entries, least: 1.0 });
            }
            Hessian::Full { dim, entries } => (*dim, entries.clone()),
        };
        let mut least = 1.0_f64;
        for i in 0..d {
            let (above, below) = a.split_at_mut(i * d);
            let row = &mut below[..d];
            for j in 0..i {
                let product = rows::dot(&row[..j], &above[j * d..j * d + j]);
                row[j] = (row[j] - product) / above[j * d + j];
            }
            let (before, whole) = (squared_norm(&row[..i]), row[i]);
            let rest = whole - before;
            if !rest.is_finite() {
                return None;
            }
            let is_own = rest > Self::ROUNDING * (i as f64 + 1.0).sqrt() * whole && !left_out.contains(&i);
            row[i] = if is_own { rest.sqrt() } else { f64::INFINITY };
            least = if is_own { least.min(rest / whole) } else { least };
        }
        Some(Self { dim: d, entries: a, least })
    }

    /// One whose rows, up to the diagonal, are known.
    pub(super) fn of_rows(dim: usize, entries: Vec<f64>, least: f64) -> Self {
        Self { dim, entries, least }
    }

    /// Of the coordinates that are not left out, the least share of one that those before it do not have: 1 where none says anything about another, and 0 where one
    /// depends on others. The condition number of the rows is about one over its root.
    pub(crate) fn least(&self) -> f64 {
        self.least
    }

    /// Rows and columns.
    pub(crate) fn dim(&self) -> usize {
        self.dim
    }

    /// Whether a matrix of squares has lost digits that its rows still have: coordinates are left out beside those that were to be, or nearly.
    pub(super) fn loses(&self, without: &[usize]) -> bool {
        /// The square of a condition number of 10^5.
        const LOST: f64 = 1e-10;
        self.least < LOST || self.left_out().iter().any(|i| !without.contains(i))
    }

    /// The coordinates that are left out.
    pub fn left_out(&self) -> Vec<usize> {
        let root = |i: usize| if self.entries.len() == self.dim { i } else { i * self.dim + i };
        (0..self.dim).filter(|i| self.entries[root(*i)] == f64::INFINITY).collect()
    }

    /// Twice the fall of f that a step promises where the gradient is g: <g, H^-1 g>.
    pub(crate) fn promised(&self, g: &[f64]) -> f64 {
        squared_norm(&self.half_solve(g))
    }

    /// <x, H x>, but for the coordinates that are left out.
    pub(crate) fn squared_length(&self, x: &[f64]) -> f64 {
        let d = self.dim;
        let is_in = |i: &usize| self.entries[i * d + i].is_finite();
        let column = |k: usize| (k..d).filter(is_in).map(|i| self.entries[i * d + k] * x[i]).sum::<f64>();
        (0..d).filter(is_in).map(|k| column(k).powi(2)).sum()
    }

    /// L^-1 b, and 0 in the coordinates that are left out: its squared length is <b, v> of the v with H v = b.
    pub(crate) fn half_solve(&self, b: &[f64]) -> Vec<f64> {
        let d = self.dim;
        let mut v = b.to_vec();
        for i in 0..d {
            let row = &self.entries[i * d..=i * d + i];
            v[i] = (v[i] - rows::dot(&row[..i], &v[..i])) / row[i];
        }
        v
    }

    /// v with H v = b, and 0 in the coordinates that are left out.
    pub fn solve(&self, b: &[f64]) -> Vec<f64> {
        let d = self.dim;
        if self.entries.len() == d {
            return b.iter().zip(&self.entries).map(|(b, root)| b / root / root).collect();
        }
        let mut v = self.half_solve(b);
        for i in (0..d).rev() {
            v[i] /= self.entries[i * d + i];
            let (last, row) = (v[i], &self.entries[i * d..i * d + i]);
            rows::add(-last, row, &mut v[..i]);
        }
        v
    }
}

/// What is known of the columns of a table, whatever the loss.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Columns {
    /// The coordinates of a score that depend on others before them.
    pub(crate) left_out: Vec<usize>,
    /// True if the others nearly do: matrices of squares lose too many digits.
    pub(crate) hard: bool,
}

/// What stands for the second derivative of the loss of a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bent {
    /// Half the width over which kinks are smoothed.
    width: f64,
    /// The share of the way from the second derivative to the majoriser; with several scores, for which one number stands, there is no such way.
    caution: f64,
}

impl Bent {
    /// The second derivative itself.
    pub(super) const EXACT: Self = Self { width: 0.0, caution: 0.0 };
}

impl Linear {
    /// The second derivatives of f at x, by a pass over all rows, in an order of additions that no number of threads changes.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use pasta_opt::table::{Dense, Design, Features, Hessian, Linear, Loss, Table};
    ///
    /// let features = Features::Dense(Dense { rows: 2, columns: 1, values: vec![1.0, 3.0].into() });
    /// let table = Table::new(features, Arc::new(vec![1.0, 1.0]), None, Vec::new())?;
    /// let plain = Design { intercept: true, standardise: false, degree: 1, penalty: 0.5 };
    /// let problem = Linear::new(Arc::new(table), Loss::LeastSquares, plain)?;
    /// let Hessian::Full { entries, .. } = problem.hessian(&[0.0, 0.0]) else { return Err("small".into()) };
    /// // The mean of a^2 and the penalty, the mean of a, 1.
    /// let expected = [5.5, 2.0, 2.0, 1.0];
    /// assert!(entries.iter().zip(expected).all(|(h, e)| (h - e).abs() < 1e-9));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn hessian(&self, x: &[f64]) -> Hessian {
        if self.dim() > MOST_FULL {
            return self.hessian_diagonal(x, 0.0);
        }
        let (bent, dim) = (Bent { width: self.smoothing(x), caution: 0.0 }, self.dim());
        let sums = self.add_up(dim * dim, &|rows, out| match self.loss().classes() {
            Some(classes) => self.add_multinomial(x, classes, rows, out),
            None => self.add_full(x, bent, rows, out),
        });
        self.mirrored(dim, &sums)
    }

    /// A matrix for the coordinates of one score, at most [`MOST_FULL`] of them, that stands for the second derivatives in those of
    /// each score. With one score these are the second derivatives. With several the row counts by the mean eigenvalue of the second derivatives
    /// of its loss: at 0, where all classes are equally likely, nothing is lost by that.
    ///
    /// `caution` is the share of the way from second derivatives, 0, to a curvature that majorises the loss of each row, 1. The mean eigenvalue is neither,
    /// and is taken as it is: a bound in its place made digits and wine take up to 1.8 times the passes.
    pub(crate) fn hessian_of_one(&self, x: &[f64], caution: f64) -> Hessian {
        let (bent, dim) = (Bent { width: self.smoothing(x), caution }, self.stride());
        let sums = self.add_up(dim * dim, &|rows, out| self.add_full(x, bent, rows, out));
        self.mirrored(dim, &sums)
    }

    /// The factor of this matrix, without the columns that are left out: by the rows themselves where the matrix would lose too many digits.
    pub(crate) fn factor_of_one(&self, x: &[f64], caution: f64, columns: &Columns) -> Option<Factor> {
        let (by_rows, without) = (|| Bent { width: self.smoothing(x), caution }, &columns.left_out[..]);
        if columns.hard {
            return self.factor_of_rows(x, by_rows(), without);
        }
        let factor = self.hessian_of_one(x, caution).factor_without(without);
        // Where a kink is smoothed, few rows are left that bend, and nothing is lost.
        let may_lose = !matches!(self.loss(), Loss::Smoothed { .. });
        match factor {
            Some(factor) if may_lose && factor.loses(without) => self.factor_of_rows(x, by_rows(), without),
            factor => factor,
        }
    }

    /// What the factor of a matrix in which every row counts says about the columns; `None` if it lost too many digits to tell.
    pub(crate) fn columns_by(&self, first: &Factor) -> Option<Columns> {
        let left_out = first.left_out();
        (!first.loses(&self.constant_features())).then_some(Columns { left_out, hard: false })
    }

    /// The same by the rows themselves, and the factor of the mean of their a a' plus the penalty.
    pub(crate) fn columns_by_rows(&self) -> (Columns, Option<Factor>) {
        let Some(factor) = self.factor_of_columns() else { return (Columns::default(), None) };
        let left_out = factor.left_out();
        (Columns { hard: factor.loses(&left_out), left_out }, Some(factor))
    }

    /// The features that do not vary, where columns are standardised.
    pub(crate) fn constant_features(&self) -> Vec<usize> {
        let scaling = self.scaling().filter(|_| self.design().degree == 1);
        let is_constant = |j: &usize| scaling.is_some_and(|scaling| !scaling.varies(*j));
        (0..self.features()).filter(is_constant).collect()
    }

    /// The diagonal of the second derivatives at x, by a pass over all rows, with the same `caution`.
    pub(crate) fn hessian_diagonal(&self, x: &[f64], caution: f64) -> Hessian {
        let sums = self.diagonal(x, Bent { width: self.smoothing(x), caution });
        let mean = |(i, sum): (usize, &f64)| sum / self.total_weight() + self.penalty_of(i);
        Hessian::Diagonal(sums.iter().enumerate().map(mean).collect())
    }

    /// The second derivative of the penalty in a coordinate.
    pub(super) fn penalty_of(&self, i: usize) -> f64 {
        if i % self.stride() < self.features() { self.design().penalty } else { 0.0 }
    }

    /// The whole matrix of sums above the diagonal, with the penalty.
    fn mirrored(&self, dim: usize, sums: &[f64]) -> Hessian {
        let mut entries = self.means(dim, sums);
        (0..dim).for_each(|i| entries[i * dim + i] += self.penalty_of(i));
        Hessian::Full { dim, entries }
    }

    /// The whole matrix of means whose sums above the diagonal these are.
    pub(super) fn means(&self, dim: usize, sums: &[f64]) -> Vec<f64> {
        let mut entries = vec![0.0; dim * dim];
        for i in 0..dim {
            for j in i..dim {
                let mean = sums[i * dim + j] / self.total_weight();
                (entries[i * dim + j], entries[j * dim + i]) = (mean, mean);
            }
        }
        entries
    }

    /// Half the width over which kinks are smoothed: the mean size of what is left to explain, over the fifth root of the rows (the rule
    /// for estimating a density). 0 for a loss that needs none.
    fn smoothing(&self, x: &[f64]) -> f64 {
        if !matches!(self.loss().row().class, Class::LipschitzConvex | Class::WeaklyConvex) {
            return 0.0;
        }
        let (point, loss) = (self.point(x), self.loss());
        let sums = self.add_up(1, &|rows, out| {
            let mut reader = Reader::new(self);
            for row in rows {
                reader.open(row);
                let (u, offset) = &point.outputs[0];
                let z = reader.product(row, u) + offset;
                let weight = reader.weights.map_or(1.0, |weights| weights[row]);
                out[0] += weight * loss.differentiate(&mut [z], reader.labels[row]);
            }
        });
        let mean = sums[0] / self.total_weight();
        let size = if loss.is_even() { mean.max(0.0).sqrt() } else { mean };
        size.max(1e-9) / libm::pow(self.table().rows() as f64, 0.2)
    }

    /// Sums over all rows, added up block by block.
    pub(super) fn add_up(&self, width: usize, add: &(dyn Fn(Range<usize>, &mut [f64]) + Sync)) -> Vec<f64> {
        let mut sums = vec![0.0; width];
        let rows = self.table().rows();
        let block = self.block().max((2 * width).next_power_of_two().min(1 << 16));
        let tree = Batch { seed: 0, role: Role::Setup, step: 0, samples: 0..rows.div_ceil(block) as u64 };
        let add_blocks = |blocks: Range<u64>, out: &mut [f64]| -> Result<(), OracleError> {
            blocks.into_iter().for_each(|b| {
                let first = b as usize * block;
                add(first..(first + block).min(rows), out);
            });
            Ok(())
        };
        tree.sum_over(1, &mut sums, &add_blocks).expect("adding cannot fail");
        sums
    }

    /// Adds c aa' above the diagonal for each row, some rows at a time.
    fn add_full(&self, x: &[f64], bent: Bent, rows: Range<usize>, out: &mut [f64]) {
        let (point, d) = (self.point(x), self.stride());
        let mut reader = Reader::new(self);
        let block = rows::scored(size_of::<f64>() * d);
        let mut room = vec![0.0; block * d];
        let mut bends = [0.0; SCORED];
        for first in rows.clone().step_by(block) {
            let some = first..(first + block).min(rows.end);
            let bends = &mut bends[..some.len()];
            self.write_bends(&mut reader, some.clone(), &point, bent, bends);
            for (row, a) in some.zip(room.chunks_exact_mut(d)) {
                reader.write_row(row, a);
            }
            rows::add_outer(bends, &room, d, out);
        }
    }

    /// The weight of each of some rows times the curvature of its loss, which is smooth.
    pub(super) fn write_smooth_bends(
        &self,
        reader: &mut Reader<'_>,
        rows: Range<usize>,
        point: &super::linear::Point<'_>,
        caution: f64,
        bends: &mut [f64],
    ) {
        self.write_bends(reader, rows, point, Bent { width: 0.0, caution }, bends);
    }

    /// The weight of each of some rows times the second derivative of its loss; the mean eigenvalue of those, where a row has several scores.
    pub(super) fn write_bends(
        &self,
        reader: &mut Reader<'_>,
        rows: Range<usize>,
        point: &super::linear::Point<'_>,
        bent: Bent,
        bends: &mut [f64],
    ) {
        let labels = reader.labels;
        if let Some(classes) = self.loss().classes() {
            let mut chances = vec![0.0; classes];
            for (row, bend) in rows.clone().zip(&mut *bends) {
                self.write_chances(reader, row, point, &mut chances);
                let sum: f64 = chances.iter().map(|p| p * (1.0 - p)).sum();
                *bend = sum / (classes as f64 - 1.0);
            }
        } else {
            self.write_scores(reader, rows.clone(), point, bends);
            let labels = &labels[rows.clone()];
            with_scalar!(self.loss(), loss => if bent.width > 0.0 {
                bends.iter_mut().zip(labels).for_each(|(z, y)| *z = bend(loss, *z, *y, bent.width));
            } else {
                curvatures(loss, bent.caution, labels, bends);
            }, ());
        }
        if let Some(weights) = reader.weights {
            bends.iter_mut().zip(&weights[rows]).for_each(|(bend, weight)| *bend *= weight);
        }
    }

    /// The first score of each of some rows.
    pub(super) fn write_scores(
        &self,
        reader: &mut Reader<'_>,
        rows: Range<usize>,
        point: &super::linear::Point<'_>,
        scores: &mut [f64],
    ) {
        let (u, offset) = &point.outputs[0];
        if self.way() == Way::Computed {
            for (row, z) in rows.zip(scores) {
                reader.open(row);
                *z = reader.product(row, u) + offset;
            }
        } else {
            let first = rows.start;
            reader.write_scores(rows.len(), |i| first + i, (u, *offset), scores);
        }
    }

    /// The probabilities of the classes of a row, which is opened.
    fn write_chances(
        &self,
        reader: &mut Reader<'_>,
        row: usize,
        point: &super::linear::Point<'_>,
        chances: &mut [f64],
    ) {
        reader.open(row);
        reader.write_each(row, &point.outputs, chances);
        self.loss().mean(chances);
    }

    /// For each pair of classes k, l: (p_k [k = l] - p_k p_l) aa'.
    fn add_multinomial(&self, x: &[f64], classes: usize, rows: Range<usize>, out: &mut [f64]) {
        let (point, s, d) = (self.point(x), self.stride(), self.dim());
        let mut reader = Reader::new(self);
        let (mut a, mut chances) = (vec![0.0; s], vec![0.0; classes]);
        for row in rows {
            reader.write_row(row, &mut a);
            self.write_chances(&mut reader, row, &point, &mut chances);
            let weight = reader.weights.map_or(1.0, |weights| weights[row]);
            for k in 0..classes {
                for l in k..classes {
                    let c = weight * chances[k] * (f64::from(u8::from(k == l)) - chances[l]);
                    if c == 0.0 {
                        continue;
                    }
                    for i in 0..s {
                        let from = if k == l { i } else { 0 };
                        let place = (k * s + i) * d + l * s;
                        rows::add(c * a[i], &a[from..], &mut out[place + from..place + s]);
                    }
                }
            }
        }
    }

    /// Sums for the diagonal. Of a sparse row only what is stored is read: all of its features count as zeros first, which are not zero
    /// once they are centred.
    fn diagonal(&self, x: &[f64], bent: Bent) -> Vec<f64> {
        let (s, outputs) = (self.stride(), self.loss().outputs());
        let mut sums = self.add_up(self.dim() + outputs, &|rows, out| self.add_diagonal(x, bent, rows, out));
        let all = sums.split_off(self.dim());
        if let Some(Scaling { shift, scale }) = self.scaling().filter(|_| self.way() == Way::Stored) {
            for (sums, all) in sums.chunks_mut(s).zip(all) {
                let zeros = shift.iter().zip(scale).map(|(shift, scale)| (shift / scale).powi(2));
                sums.iter_mut().zip(zeros).for_each(|(sum, zero)| *sum += all * zero);
            }
        }
        sums
    }

    fn add_diagonal(&self, x: &[f64], bent: Bent, rows: Range<usize>, out: &mut [f64]) {
        let (point, s, dim) = (self.point(x), self.stride(), self.dim());
        let features = &self.table().features;
        let scaling = self.scaling().filter(|_| self.way() == Way::Stored);
        let mut reader = Reader::new(self);
        let mut bends = vec![0.0; self.loss().outputs()];
        let (out, all) = out.split_at_mut(dim);
        for row in rows {
            reader.open(row);
            let weight = reader.weights.map_or(1.0, |weights| weights[row]);
            if self.loss().classes().is_some() {
                self.write_chances(&mut reader, row, &point, &mut bends);
                bends.iter_mut().for_each(|p| *p = weight * *p * (1.0 - *p));
            } else {
                self.write_bends(&mut reader, row..row + 1, &point, bent, &mut bends);
            }
            for ((out, all), c) in out.chunks_mut(s).zip(&mut *all).zip(&bends) {
                *all += c;
                match scaling {
                    _ if self.way() == Way::Computed => reader.visit_computed(|j, a| out[j] += c * a * a),
                    None => features.visit_row(row, |j, a| out[j] += c * a * a),
                    Some(Scaling { shift, scale }) => features.visit_row(row, |j, value| {
                        let (a, zero) = ((value - shift[j]) / scale[j], shift[j] / scale[j]);
                        out[j] += c * (a * a - zero * zero);
                    }),
                }
                out[self.features()..].iter_mut().for_each(|out| *out += c);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Hessian;

    #[test]
    fn a_factor_solves_and_leaves_out_what_depends() {
        let entries = vec![4.0, 2.0, 0.0, 2.0, 5.0, 1.0, 0.0, 1.0, 3.0];
        let matrix = Hessian::Full { dim: 3, entries };
        let factor = matrix.factor().expect("it is positive definite");
        let v = factor.solve(&[1.0, 2.0, 3.0]);
        let back = matrix.times(&v);
        // A condition number below 10: a few roundings.
        assert!(back.iter().zip([1.0, 2.0, 3.0]).all(|(got, b)| (got - b).abs() < 1e-14));
        assert!(factor.left_out().is_empty());
        // The second coordinate is three times the first, in units of 1e-20; the third is of its own.
        let entries = vec![1.0, 3e-20, 1.0, 3e-20, 9e-40, 3e-20, 1.0, 3e-20, 2.0];
        let depends = Hessian::Full { dim: 3, entries }.factor().expect("it is not zero");
        assert_eq!((depends.left_out(), depends.solve(&[2.0, 6e-20, 3.0])), (vec![1], vec![1.0, 0.0, 1.0]));
        let zero = Hessian::Diagonal(vec![0.0; 3]);
        assert!(zero.factor().is_none());
        let scaled = Hessian::Diagonal(vec![2.0, 4.0, 8.0]);
        let solved = scaled.factor().expect("it is positive").solve(&[2.0, 4.0, 8.0]);
        assert!(solved.iter().all(|v| (v - 1.0).abs() < 1e-15));
    }
}
