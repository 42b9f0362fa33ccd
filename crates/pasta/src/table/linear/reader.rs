//! Reads rows and adds up what a question asks of them.

use std::borrow::Cow;
use std::ops::Range;

use super::super::data::{Features, Slice};
use super::super::design::Room;
use super::super::loss::{Scalar, differentiate_all, multinomial, with_scalar};
use super::{Linear, Way};
use crate::kernels::rows::{self, DenseRows, SCORED, SparseRows};
use crate::oracle::Form;

/// A point in terms of the rows as they are read: weights and offset for each output.
#[derive(Debug)]
pub(in crate::table) struct Point<'x> {
    pub(in crate::table) outputs: Vec<(Cow<'x, [f64]>, f64)>,
}

/// What is asked of every row.
#[derive(Debug)]
pub(super) struct Ask<'a> {
    pub(super) points: &'a [Point<'a>],
    pub(super) form: Form,
    pub(super) losses: bool,
}

impl Ask<'_> {
    /// Rows of the answer.
    pub(super) fn rows(&self) -> usize {
        match self.form {
            Form::Sums => self.points.len(),
            Form::Differences => self.points.len() - 1,
        }
    }

    /// Numbers that are added up: for each row of the answer and each output the features and the slope; then the losses.
    pub(super) fn width(&self, linear: &Linear) -> usize {
        let gradients = self.rows() * linear.loss.outputs() * (linear.features + 1);
        gradients + if self.losses { self.points.len() } else { 0 }
    }
}

/// Reads rows, and knows where their features are.
#[derive(Debug)]
pub(in crate::table) struct Reader<'a> {
    pub(in crate::table) linear: &'a Linear,
    pub(in crate::table) labels: &'a [f64],
    pub(in crate::table) weights: Option<&'a [f64]>,
    pub(super) store: Store<'a>,
    pub(super) room: Room,
    /// Scores, then slopes, of a row at all points.
    pub(super) scores: Vec<f64>,
}

/// Where the features of rows are.
#[derive(Debug, Clone, Copy)]
pub(super) enum Store<'a> {
    Dense64(DenseRows<'a, f64>),
    Dense32(DenseRows<'a, f32>),
    Sparse64(SparseRows<'a, f64>),
    Sparse32(SparseRows<'a, f32>),
    /// In the reader's room, all features.
    DenseRoom,
    /// In the reader's room, some features.
    SparseRoom,
}

impl<'a> Store<'a> {
    pub(super) fn of(linear: &'a Linear) -> Self {
        match (&linear.table.features, linear.way) {
            (Features::Dense(_), Way::Computed) => Self::DenseRoom,
            (Features::Sparse(_), Way::Computed) => Self::SparseRoom,
            (Features::Dense(dense), Way::Stored) => {
                let columns = dense.columns;
                match dense.values.slice() {
                    Slice::F64(values) => Self::Dense64(DenseRows { values, columns }),
                    Slice::F32(values) => Self::Dense32(DenseRows { values, columns }),
                }
            }
            (Features::Sparse(sparse), Way::Stored) => {
                let (starts, indices) = ((*sparse.starts).as_ref(), (*sparse.indices).as_ref());
                match sparse.values.slice() {
                    Slice::F64(values) => Self::Sparse64(SparseRows { starts, indices, values }),
                    Slice::F32(values) => Self::Sparse32(SparseRows { starts, indices, values }),
                }
            }
        }
    }
}

impl<'a> Reader<'a> {
    pub(in crate::table) fn new(linear: &'a Linear) -> Self {
        Self {
            linear,
            labels: linear.table.label_slice(),
            weights: linear.table.weight_slice(),
            store: Store::of(linear),
            room: Room::default(),
            scores: Vec::new(),
        }
    }

    /// Makes the features of a row ready where they are computed.
    pub(in crate::table) fn open(&mut self, row: usize) {
        if matches!(self.store, Store::DenseRoom | Store::SparseRoom) {
            let linear = self.linear;
            self.room.fill(&linear.table.features, row, linear.scaling.as_ref(), linear.design.degree);
        }
    }

    /// <a, u> for the features of an opened row.
    #[inline]
    pub(in crate::table) fn product(&self, row: usize, u: &[f64]) -> f64 {
        match self.store {
            Store::Dense64(table) => rows::dot(table.row(row), u),
            Store::Dense32(table) => rows::dot(table.row(row), u),
            Store::Sparse64(table) => {
                let (indices, values) = table.row(row);
                rows::sparse_dot(indices, values, u)
            }
            Store::Sparse32(table) => {
                let (indices, values) = table.row(row);
                rows::sparse_dot(indices, values, u)
            }
            Store::DenseRoom => rows::dot(&self.room.values, u),
            Store::SparseRoom => rows::sparse_dot(&self.room.indices, &self.room.values, u),
        }
    }

    /// out += c a for the features of an opened row.
    #[inline]
    pub(in crate::table) fn add(&self, row: usize, c: f64, out: &mut [f64]) {
        match self.store {
            Store::Dense64(table) => rows::add(c, table.row(row), out),
            Store::Dense32(table) => rows::add(c, table.row(row), out),
            Store::Sparse64(table) => {
                let (indices, values) = table.row(row);
                rows::sparse_add(c, indices, values, out);
            }
            Store::Sparse32(table) => {
                let (indices, values) = table.row(row);
                rows::sparse_add(c, indices, values, out);
            }
            Store::DenseRoom => rows::add(c, &self.room.values, out),
            Store::SparseRoom => rows::sparse_add(c, &self.room.indices, &self.room.values, out),
        }
    }

    /// The values of an opened row that are computed.
    pub(in crate::table) fn computed(&self) -> &[f64] {
        &self.room.values
    }

    /// Calls `visit` with feature and value of all that is computed of an opened row.
    pub(in crate::table) fn visit_computed(&self, mut visit: impl FnMut(usize, f64)) {
        self.room.values.iter().enumerate().for_each(|(i, value)| visit(self.room.feature(i), *value));
    }

    /// The first score of a row.
    pub(super) fn score(&mut self, row: usize, point: &Point<'_>) -> f64 {
        self.open(row);
        let (u, offset) = &point.outputs[0];
        self.product(row, u) + offset
    }

    /// Adds what is asked of these rows, each with its weight.
    pub(super) fn add_rows(&mut self, ask: &Ask<'_>, rows: Range<usize>, out: &mut [f64]) {
        let first = rows.start;
        let visits = (rows.len(), rows::asked_in_order(self.labels.len() - first));
        match self.weights {
            None => self.add_each(ask, visits, |i| first + i, |_| 1.0, out),
            Some(weights) => {
                let weights = &weights[rows];
                self.add_each(ask, visits, |i| first + i, |i| weights[i], out);
            }
        }
    }

    /// Adds what is asked of drawn rows, each as often as it occurs.
    pub(super) fn add_drawn(&mut self, ask: &Ask<'_>, drawn: &[(u32, u64)], out: &mut [f64]) {
        self.add_each(ask, (drawn.len(), drawn.len()), |i| drawn[i].0 as usize, |i| drawn[i].1 as f64, out);
    }

    /// Adds what is asked of the rows `row(i)`, times `factor(i)`, for all visits i: how many there are, and for how
    /// many `row` can be asked.
    #[inline]
    pub(super) fn add_each(
        &mut self,
        ask: &Ask<'_>,
        visits: (usize, usize),
        row: impl Fn(usize) -> usize,
        factor: impl Fn(usize) -> f64,
        out: &mut [f64],
    ) {
        let (loss, labels) = (self.linear.loss, self.labels);
        with_scalar!(loss, loss => match (ask.form, ask.points, ask.losses) {
            (Form::Sums, [point], false) => {
                let slope = |i: usize, z: f64| factor(i) * loss.slope(z, labels[row(i)]);
                self.add_gradients(point, visits, &row, &slope, out);
            }
            (Form::Sums, [point], true) if !self.is_computed() => {
                self.add_with_losses(loss, point, visits, &row, &factor, out);
            }
            _ => (0..visits.0).for_each(|i| self.add_scalar_row(loss, ask, row(i), factor(i), out)),
        }, (0..visits.0).for_each(|i| self.add_multinomial_row(ask, row(i), factor(i), out)));
    }

    /// The most frequent question: gradients at one point, no losses. A call for each row's slope is little beside the row, and one
    /// kernel serves all losses.
    pub(super) fn add_gradients(
        &mut self,
        point: &Point<'_>,
        visits: (usize, usize),
        row: &impl Fn(usize) -> usize,
        slope: &dyn Fn(usize, f64) -> f64,
        out: &mut [f64],
    ) {
        let (u, offset) = &point.outputs[0];
        let at = (&u[..], *offset);
        let (sums, slopes) = out.split_at_mut(self.linear.features);
        let before = slopes[0];
        slopes[0] = match self.store {
            Store::Dense64(table) => rows::add_dense(table, visits, row, slope, at, sums, before),
            Store::Dense32(table) => rows::add_dense(table, visits, row, slope, at, sums, before),
            Store::Sparse64(table) => rows::add_sparse(table, visits, row, slope, at, sums, before),
            Store::Sparse32(table) => rows::add_sparse(table, visits, row, slope, at, sums, before),
            Store::DenseRoom | Store::SparseRoom => (0..visits.0).fold(before, |total, i| {
                let row = row(i);
                self.open(row);
                let c = slope(i, self.product(row, u) + offset);
                self.add(row, c, sums);
                total + c
            }),
        };
    }

    /// Whether the features of a row are computed when it is opened.
    fn is_computed(&self) -> bool {
        matches!(self.store, Store::DenseRoom | Store::SparseRoom)
    }

    /// Gradients and losses at one point, of rows as they are stored: scores of some rows first, then their losses at once, then the rows.
    fn add_with_losses(
        &self,
        loss: impl Scalar,
        point: &Point<'_>,
        (count, reach): (usize, usize),
        row: &impl Fn(usize) -> usize,
        factor: &impl Fn(usize) -> f64,
        out: &mut [f64],
    ) {
        let (mut scores, mut values, mut labels) = ([0.0; SCORED], [0.0; SCORED], [0.0; SCORED]);
        let (u, offset) = &point.outputs[0];
        let at = (&u[..], *offset);
        let (sums, rest) = out.split_at_mut(self.linear.features);
        let block = rows::scored(size_of::<f64>() * self.linear.features);
        for first in (0..count).step_by(block) {
            let some = block.min(count - first);
            let (row, reach) = (|i: usize| row(first + i), reach.saturating_sub(first));
            let (scores, values, labels) = (&mut scores[..some], &mut values[..some], &mut labels[..some]);
            self.write_scores(reach, row, at, scores);
            labels.iter_mut().enumerate().for_each(|(i, label)| *label = self.labels[row(i)]);
            differentiate_all(loss, labels, scores, values);
            for (i, (slope, value)) in scores.iter_mut().zip(&*values).enumerate() {
                *slope *= factor(first + i);
                rest[0] += *slope;
                rest[1] += factor(first + i) * value;
            }
            match self.store {
                Store::Dense64(table) => rows::add_all_dense(table, row, scores, sums),
                Store::Dense32(table) => rows::add_all_dense(table, row, scores, sums),
                _ => scores.iter().enumerate().for_each(|(i, c)| self.add(row(i), *c, sums)),
            }
        }
    }

    /// The first scores of the rows `row(i)` as they are stored.
    pub(in crate::table) fn write_scores(
        &self,
        reach: usize,
        row: impl Fn(usize) -> usize,
        at: (&[f64], f64),
        scores: &mut [f64],
    ) {
        match self.store {
            Store::Dense64(table) => rows::dot_dense(table, reach, row, at, scores),
            Store::Dense32(table) => rows::dot_dense(table, reach, row, at, scores),
            _ => scores.iter_mut().enumerate().for_each(|(i, z)| *z = self.product(row(i), at.0) + at.1),
        }
    }

    /// All scores of an opened row.
    pub(in crate::table) fn write_each(&self, row: usize, outputs: &rows::Outputs<'_>, scores: &mut [f64]) {
        match self.store {
            Store::Dense64(table) => rows::dot_each(table.row(row), outputs, scores),
            Store::Dense32(table) => rows::dot_each(table.row(row), outputs, scores),
            Store::DenseRoom => rows::dot_each(&self.room.values, outputs, scores),
            _ => {
                scores
                    .iter_mut()
                    .zip(outputs)
                    .for_each(|(z, (u, offset))| *z = self.product(row, u) + offset);
            }
        }
    }

    /// For each score of an opened row: out += c a, and c to what stands after it.
    fn add_to_each(&self, row: usize, c: &[f64], out: &mut [f64]) {
        match self.store {
            Store::Dense64(table) => rows::add_to_each(c, table.row(row), out),
            Store::Dense32(table) => rows::add_to_each(c, table.row(row), out),
            Store::DenseRoom => rows::add_to_each(c, &self.room.values, out),
            _ => {
                let width = self.linear.features + 1;
                for (c, out) in c.iter().zip(out.chunks_exact_mut(width)) {
                    self.add(row, *c, &mut out[..width - 1]);
                    out[width - 1] += c;
                }
            }
        }
    }

    /// Everything that can be asked of a row with one score.
    pub(super) fn add_scalar_row(
        &mut self,
        loss: impl Scalar,
        ask: &Ask<'_>,
        row: usize,
        factor: f64,
        out: &mut [f64],
    ) {
        self.open(row);
        let label = self.labels[row];
        let width = self.linear.features + 1;
        let (sums, losses) = out.split_at_mut(ask.rows() * width);
        self.scores.clear();
        for (i, point) in ask.points.iter().enumerate() {
            let (u, offset) = &point.outputs[0];
            let z = self.product(row, u) + offset;
            if ask.losses {
                losses[i] += factor * loss.value(z, label);
            }
            self.scores.push(loss.slope(z, label));
        }
        // Of each sample the difference, before anything is added up: sums at both points share their leading digits.
        let base = match ask.form {
            Form::Sums => 0.0,
            Form::Differences => self.scores[ask.points.len() - 1],
        };
        for (i, out) in sums.chunks_mut(width).enumerate() {
            let c = factor * (self.scores[i] - base);
            if c != 0.0 {
                self.add(row, c, &mut out[..width - 1]);
                out[width - 1] += c;
            }
        }
    }

    /// The same of a row with a score for each class.
    pub(super) fn add_multinomial_row(&mut self, ask: &Ask<'_>, row: usize, factor: f64, out: &mut [f64]) {
        self.open(row);
        let class = self.labels[row] as usize;
        let (outputs, width) = (self.linear.loss.outputs(), self.linear.features + 1);
        let (sums, losses) = out.split_at_mut(ask.rows() * outputs * width);
        let mut scores = std::mem::take(&mut self.scores);
        scores.clear();
        for (i, point) in ask.points.iter().enumerate() {
            scores.resize((i + 1) * outputs, 0.0);
            self.write_each(row, &point.outputs, &mut scores[i * outputs..]);
            let value = multinomial::differentiate(&mut scores[i * outputs..], class);
            if ask.losses {
                losses[i] += factor * value;
            }
        }
        let (slopes, base) = scores.split_at_mut((ask.points.len() - 1) * outputs);
        match ask.form {
            Form::Sums => scores.iter_mut().for_each(|c| *c *= factor),
            Form::Differences => {
                slopes.iter_mut().enumerate().for_each(|(i, c)| *c = factor * (*c - base[i % outputs]));
            }
        }
        let slopes = &scores[..ask.rows() * outputs];
        for (c, out) in slopes.chunks(outputs).zip(sums.chunks_mut(outputs * width)) {
            self.add_to_each(row, c, out);
        }
        self.scores = scores;
    }
}
