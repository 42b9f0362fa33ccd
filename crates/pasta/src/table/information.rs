//! How well the rows decide a minimiser: variances of its coordinates, and sums of what rows say about it.
//!
//! The variance of <t, x> is <t, V t>. Classically V = H^-1/W, where H is the matrix of second derivatives of the mean loss and W the sum of the weights; the sandwich is
//! V = H^-1 M H^-1/W, where M is the mean over the rows of w g g' and w g the gradient of a row. Both are squares of vectors that a triangular factor makes of t, so that nothing is
//! subtracted. Where columns nearly depend on each other, the factor is made of the rows themselves.
//!
//! What is added to all scores of a multinomial model changes nothing. Its coordinates are those of the classes from the second on, the first one's being 0.

use std::ops::Range;

use rayon::prelude::*;

use super::Linear;
use super::hessian::{Bent, Factor};
use super::linear::Reader;
use super::triangle::{ROUNDING, Triangle};
use crate::kernels::squared_norm;

/// What the rows say about the coordinates of a minimiser.
#[derive(Debug, Clone)]
pub(crate) struct Information {
    /// That of H.
    factor: Factor,
    /// R with R'R = M, for the sandwich.
    middle: Option<Triangle>,
    /// W.
    total: f64,
}

/// The least share of a coordinate that those before it do not have, with which a matrix of squares keeps ten digits.
const WELL: f64 = 1e-6;
/// Parts of a table that have a triangle of their own at first, whatever the number of threads.
const PARTS: usize = 16;
/// Values of the rows that are taken in at a time.
const VALUES: usize = 1 << 15;

impl Information {
    /// The variance of <t, x>.
    pub(crate) fn variance(&self, t: &[f64]) -> f64 {
        let squared = match &self.middle {
            None => squared_norm(&self.factor.half_solve(t)),
            Some(middle) => squared_norm(&middle.times(&self.factor.solve(t))),
        };
        squared / self.total
    }

    /// The coordinates that others decide.
    pub(crate) fn left_out(&self) -> Vec<usize> {
        self.factor.left_out()
    }
}

impl Linear {
    /// The information at x without some coordinates of a score, by a pass or two; `None` if it is zero or not finite. For smooth losses without a penalty.
    pub(crate) fn information(&self, x: &[f64], without: &[usize], sandwich: bool) -> Option<Information> {
        let total = self.total_weight();
        if let Some(classes) = self.loss().classes() {
            let all: Vec<usize> =
                (1..classes).flat_map(|k| without.iter().map(move |i| (k - 1) * self.stride() + i)).collect();
            let factor = self.triangle_of_classes(x, classes, false).factor(&all, |_| ROUNDING)?;
            let middle = sandwich.then(|| self.triangle_of_classes(x, classes, true));
            return Some(Information { factor, middle, total });
        }
        let factor = match self.hessian_of_one(x, 0.0).factor_without(without) {
            Some(factor) if factor.least() >= WELL && factor.left_out().len() == without.len() => factor,
            _ => self.factor_of_rows(x, Bent::EXACT, without)?,
        };
        let point = self.point(x);
        let middle = sandwich.then(|| {
            self.triangle(&|reader, rows, squares| {
                self.write_scores(reader, rows.clone(), &point, squares);
                let mut losses = vec![0.0; squares.len()];
                self.loss().differentiate_rows(squares, &reader.labels[rows.clone()], &mut losses);
                match reader.weights {
                    None => squares.iter_mut().for_each(|slope| *slope *= *slope),
                    Some(weights) => squares.iter_mut().zip(&weights[rows]).for_each(|(slope, weight)| {
                        *slope *= weight;
                        *slope *= *slope;
                    }),
                }
            })
        });
        Some(Information { factor, middle, total })
    }

    /// The triangle of the classes' scores but the first: R'R is H, or M for the sandwich.
    fn triangle_of_classes(&self, x: &[f64], classes: usize, sandwich: bool) -> Triangle {
        let (stride, point, loss) = (self.stride(), self.point(x), self.loss());
        let d = (classes - 1) * stride;
        let several = if sandwich { 1 } else { classes - 1 };
        let some = |rows: Range<usize>| {
            let (mut triangle, mut reader) = (Triangle::zero(d), Reader::new(self));
            let block = (VALUES / (several * d)).clamp(8, 512);
            let (mut a, mut p) = (vec![0.0; stride], vec![0.0; classes]);
            let mut columns = vec![0.0; block * several * d];
            for first in rows.clone().step_by(block) {
                let count = several * (rows.end - first).min(block);
                let columns = &mut columns[..count * d];
                for (i, row) in (first..rows.end.min(first + block)).enumerate() {
                    reader.write_row(row, &mut a);
                    reader.write_each(row, &point.outputs, &mut p);
                    let weight = reader.weights.map_or(1.0, |weights| weights[row]);
                    let mut put = |line: usize, k: usize, times: f64| {
                        let at = |j: usize| ((k - 1) * stride + j) * count + i * several + line;
                        a.iter().enumerate().for_each(|(j, a)| columns[at(j)] = times * a);
                    };
                    if sandwich {
                        loss.differentiate(&mut p, reader.labels[row]);
                        let times = weight / self.total_weight().sqrt();
                        (1..classes).for_each(|k| put(0, k, times * p[k]));
                    } else {
                        loss.mean(&mut p);
                        let root = (weight / self.total_weight()).sqrt();
                        // The Cholesky factor of diag p - p p' (Tanabe and Sagae 1992): its entries are products alone.
                        let mut rest: f64 = p.iter().sum();
                        for k in 1..classes {
                            let after = p[0] + p[k + 1..].iter().sum::<f64>();
                            (1..k).for_each(|l| put(k - 1, l, 0.0));
                            put(k - 1, k, root * (p[k] * after / rest).sqrt());
                            let times = if after > 0.0 { (p[k] / (rest * after)).sqrt() } else { 0.0 };
                            (k + 1..classes).for_each(|l| put(k - 1, l, -root * p[l] * times));
                            rest = if after > 0.0 { after } else { 1.0 };
                        }
                    }
                }
                triangle.take(columns, count);
            }
            triangle
        };
        let rows = self.table().rows();
        let part = rows.div_ceil(PARTS).max(8 * d);
        let parts = (0..rows.div_ceil(part)).into_par_iter();
        let triangles: Vec<Triangle> = parts.map(|p| some(p * part..((p + 1) * part).min(rows))).collect();
        let mut whole = Triangle::zero(d);
        triangles.iter().for_each(|triangle| whole.join(triangle));
        whole
    }

    /// Sums over all rows of what `add` makes of a row and its scores at x.
    pub(crate) fn sum_scores(
        &self,
        x: &[f64],
        width: usize,
        add: &(dyn Fn(usize, &[f64], &mut [f64]) + Sync),
    ) -> Vec<f64> {
        let point = self.point(x);
        self.add_up(width, &|rows, out| {
            let mut reader = Reader::new(self);
            let mut scores = vec![0.0; self.loss().outputs()];
            for row in rows {
                reader.open(row);
                reader.write_each(row, &point.outputs, &mut scores);
                add(row, &scores, out);
            }
        })
    }

    /// Calls `visit` with each coordinate of x and its factor in the weight of a feature of the table's own columns, or for the feature after the last in the intercept.
    pub(crate) fn visit_raw(&self, feature: usize, mut visit: impl FnMut(usize, f64)) {
        let scaling = self.scaling().filter(|_| self.design().degree == 1);
        match scaling {
            Some(scaling) if feature < self.features() => visit(feature, 1.0 / scaling.scale[feature]),
            None => visit(feature, 1.0),
            Some(scaling) => {
                visit(feature, 1.0);
                let columns = (0..self.features()).filter(|j| scaling.varies(*j));
                columns.for_each(|j| visit(j, -scaling.shift[j] / scaling.scale[j]));
            }
        }
    }
}
