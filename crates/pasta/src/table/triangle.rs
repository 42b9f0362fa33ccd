//! Rows taken to a triangle: the R of a QR factorisation, some rows at a time.
//!
//! A matrix of second derivatives is a sum of squares, c a a' over the rows, and its condition number the square of that of the rows: of columns that agree to eight
//! digits it keeps nothing. The triangle R with R'R = H that Householder reflections make of the rows themselves keeps half of the digits
//! more, and is a [`Factor`] of H like any other. Rows are stacked below the triangle of those before them, so it needs no more memory than the matrix.

use std::ops::Range;

use rayon::prelude::*;

use super::hessian::{Bent, Factor};
use super::linear::Reader;
use super::{Linear, Scaling};
use crate::kernels::rows;
use crate::kernels::squared_norm;

/// An upper triangle, row by row.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Triangle {
    d: usize,
    entries: Vec<f64>,
}

/// Parts of a table that have a triangle of their own at first, whatever the number of threads.
const PARTS: usize = 16;
/// Values of the rows that are taken in at a time.
const VALUES: usize = 1 << 15;

impl Triangle {
    pub(super) fn zero(d: usize) -> Self {
        Self { d, entries: vec![0.0; d * d] }
    }

    /// Takes in `count` rows, which are given column by column and written over.
    pub(super) fn take(&mut self, columns: &mut [f64], count: usize) {
        let d = self.d;
        for j in 0..d {
            let (done, rest) = columns.split_at_mut((j + 1) * count);
            let v = &done[j * count..];
            let below = squared_norm(v);
            if below == 0.0 {
                continue;
            }
            // The reflection that takes (r, v) to (-sign r |(r, v)|, 0).
            let r = self.entries[j * d + j];
            let length = (r * r + below).sqrt();
            let end = if r > 0.0 { -length } else { length };
            let first = r - end;
            let twice = 2.0 / (first * first + below);
            self.entries[j * d + j] = end;
            let row = &mut self.entries[j * d + j + 1..(j + 1) * d];
            for (above, column) in row.iter_mut().zip(rest.chunks_exact_mut(count)) {
                let times = twice * (first * *above + rows::dot(v, column));
                *above -= times * first;
                rows::add(-times, v, column);
            }
        }
    }

    /// The product with a vector.
    pub(super) fn times(&self, v: &[f64]) -> Vec<f64> {
        let row = |i: usize| rows::dot(&self.entries[i * self.d + i..(i + 1) * self.d], &v[i..]);
        (0..self.d).map(row).collect()
    }

    /// Takes in another triangle.
    pub(super) fn join(&mut self, other: &Self) {
        let d = self.d;
        let mut columns: Vec<f64> = (0..d * d).map(|k| other.entries[(k % d) * d + k / d]).collect();
        self.take(&mut columns, d);
    }

    /// The length of a column.
    fn length(&self, j: usize) -> f64 {
        (0..=j).map(|i| self.entries[i * self.d + j].powi(2)).sum::<f64>().sqrt()
    }

    /// Leaves out a coordinate: what its row says about later columns is taken in by the rows below it.
    fn leave_out(&mut self, j: usize) {
        let d = self.d;
        (0..j).for_each(|i| self.entries[i * d + j] = 0.0);
        let mut row = vec![0.0; d];
        row[j + 1..].copy_from_slice(&self.entries[j * d + j + 1..(j + 1) * d]);
        self.entries[j * d + j..(j + 1) * d].fill(0.0);
        self.take(&mut row, 1);
    }

    /// Its factor without the coordinates that are to be left out and those that depend on others before them, up to rounding: column j is known up to `doubt(j)` of its length.
    pub(super) fn factor(mut self, without: &[usize], doubt: impl Fn(usize) -> f64) -> Option<Factor> {
        let d = self.d;
        if !self.entries.iter().all(|entry| entry.is_finite()) {
            return None;
        }
        let mut lengths = vec![0.0; d];
        let (mut least, mut left_out) = (1.0_f64, vec![false; d]);
        for j in 0..d {
            lengths[j] = self.length(j);
            let own = self.entries[j * d + j].abs();
            // The column as a combination of those before it, whose doubts are then its own, too.
            let mut doubts = doubt(j) * lengths[j];
            let mut rest: Vec<f64> = (0..j).map(|i| self.entries[i * d + j]).collect();
            for k in (0..j).rev().filter(|k| !left_out[*k]) {
                let times = rest[k] / self.entries[k * d + k];
                doubts += doubt(k) * (times * lengths[k]).abs();
                (0..k).for_each(|i| rest[i] -= times * self.entries[i * d + k]);
            }
            if without.contains(&j) || own <= doubts || own == 0.0 {
                left_out[j] = true;
                self.leave_out(j);
            } else {
                least = least.min((own / lengths[j]).powi(2));
            }
        }
        // Rows of L are columns of R.
        let mut entries = vec![0.0; d * d];
        for i in 0..d {
            for k in 0..=i {
                entries[i * d + k] = self.entries[k * d + i];
            }
            if left_out[i] {
                entries[i * d + i] = f64::INFINITY;
            }
        }
        Some(Factor::of_rows(d, entries, least))
    }
}

/// What rounding makes of a column, over its length.
pub(super) const ROUNDING: f64 = 64.0 * f64::EPSILON;
/// What rounding its values to doubles has made of a column, over their size.
const OF_VALUES: f64 = 4.0 * f64::EPSILON;

/// Writes a number for each of some rows: what their a a' count by.
pub(super) type Squares<'s> = dyn Fn(&mut Reader<'_>, Range<usize>, &mut [f64]) + Sync + 's;

impl Linear {
    /// The triangle R with R'R the mean of a a', each row counted by its number; without the penalty.
    pub(super) fn triangle(&self, squares: &Squares<'_>) -> Triangle {
        let (rows, d) = (self.table().rows(), self.stride());
        let part = rows.div_ceil(PARTS).max(8 * d);
        let parts = (0..rows.div_ceil(part)).into_par_iter();
        let triangles: Vec<Triangle> =
            parts.map(|p| self.triangle_of(squares, p * part..((p + 1) * part).min(rows))).collect();
        let mut whole = Triangle::zero(d);
        triangles.iter().for_each(|triangle| whole.join(triangle));
        whole
    }

    /// Adds the penalty.
    fn penalised(&self, mut triangle: Triangle) -> Triangle {
        let d = self.stride();
        for i in (0..d).filter(|i| self.penalty_of(*i) > 0.0) {
            let mut row = vec![0.0; d];
            row[i] = self.penalty_of(i).sqrt();
            triangle.take(&mut row, 1);
        }
        triangle
    }

    fn triangle_of(&self, squares: &Squares<'_>, rows: Range<usize>) -> Triangle {
        let d = self.stride();
        let mut triangle = Triangle::zero(d);
        let block = (VALUES / d).clamp(32, 512);
        let mut reader = Reader::new(self);
        let (mut a, mut columns, mut roots) = (vec![0.0; d], vec![0.0; block * d], vec![0.0; block]);
        for first in rows.clone().step_by(block) {
            let some = first..(first + block).min(rows.end);
            let (count, roots) = (some.len(), &mut roots[..some.len()]);
            squares(&mut reader, some.clone(), roots);
            roots.iter_mut().for_each(|root| *root = (*root / self.total_weight()).sqrt());
            for (i, (row, root)) in some.zip(&*roots).enumerate() {
                reader.write_row(row, &mut a);
                a.iter().enumerate().for_each(|(j, a)| columns[j * count + i] = root * a);
            }
            triangle.take(&mut columns[..count * d], count);
        }
        triangle
    }

    /// The factor of [`Linear::hessian_of_one`] by the rows themselves, without some coordinates.
    pub(super) fn factor_of_rows(&self, x: &[f64], bent: Bent, without: &[usize]) -> Option<Factor> {
        let point = self.point(x);
        let triangle =
            self.triangle(&|reader, rows, squares| self.write_bends(reader, rows, &point, bent, squares));
        self.penalised(triangle).factor(without, |_| ROUNDING)
    }

    /// The factor of the mean of a a' plus the penalty, whatever the loss. Columns that depend on others but for rounding of their values, such as a sum of
    /// decimals, are left out, too.
    pub(crate) fn factor_of_columns(&self) -> Option<Factor> {
        let offsets: Vec<f64> = match self.scaling() {
            Some(Scaling { shift, scale }) if self.design().degree == 1 => {
                shift.iter().zip(scale).map(|(shift, scale)| shift.abs() / scale).collect()
            }
            _ => Vec::new(),
        };
        let doubt = |j: usize| ROUNDING + OF_VALUES * offsets.get(j).copied().unwrap_or(0.0);
        let triangle = self.triangle(&|reader, rows, squares| match reader.weights {
            None => squares.fill(1.0),
            Some(weights) => squares.copy_from_slice(&weights[rows]),
        });
        self.penalised(triangle).factor(&[], doubt)
    }
}

#[cfg(test)]
mod tests {
    use super::{ROUNDING, Triangle};

    /// Rows of a Vandermonde matrix, column by column.
    fn powers(rows: usize, d: usize) -> Vec<f64> {
        let x = |i: usize| i as f64 / rows as f64;
        (0..d).flat_map(|j| (0..rows).map(move |i| x(i).powi(j as i32))).collect()
    }

    #[test]
    fn a_triangle_has_the_products_of_its_rows_in_any_parts() {
        let (rows, d) = (40, 5);
        let columns = powers(rows, d);
        let mut at_once = Triangle::zero(d);
        at_once.take(&mut columns.clone(), rows);
        let mut in_parts = Triangle::zero(d);
        for part in 0..4 {
            let mut some: Vec<f64> = (0..d)
                .flat_map(|j| columns[j * rows + part * 10..j * rows + part * 10 + 10].to_vec())
                .collect();
            in_parts.take(&mut some, 10);
        }
        for triangle in [at_once, in_parts] {
            for (i, j) in (0..d).flat_map(|i| (0..d).map(move |j| (i, j))) {
                let entry = |k: usize, j: usize| triangle.entries[k * d + j];
                let got: f64 = (0..d).map(|k| entry(k, i) * entry(k, j)).sum();
                let want: f64 = (0..rows).map(|k| columns[i * rows + k] * columns[j * rows + k]).sum();
                // Sums of 40 products of order 1.
                assert!((got - want).abs() < 1e-13 * want.abs(), "{i} {j}: {got} {want}");
            }
        }
    }

    #[test]
    fn a_column_that_depends_on_others_is_left_out_and_later_ones_are_not() {
        // The third column is the sum of the first two; the fourth is the first but for its ninth digit.
        let rows = 30;
        let column = |of: &dyn Fn(f64) -> f64| (0..rows).map(|i| of(f64::from(i))).collect::<Vec<f64>>();
        let parts: [&dyn Fn(f64) -> f64; 4] =
            [&|t| libm::sin(t), &|t| libm::cos(1.7 * t), &|t| libm::sin(t) + libm::cos(1.7 * t), &|t| {
                libm::sin(t) + 1e-9 * libm::sin(2.3 * t)
            }];
        let mut columns: Vec<f64> = parts.iter().flat_map(|part| column(part)).collect();
        let mut triangle = Triangle::zero(4);
        triangle.take(&mut columns, rows as usize);
        let factor = triangle.factor(&[], |_| ROUNDING).expect("it is finite");
        assert_eq!(factor.left_out(), [2]);
        assert!((1e-20..1e-16).contains(&factor.least()), "{}", factor.least());
    }
}
