//! The oracle: a linear model with a loss on the rows of a table.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use super::data::{Features, Slice, Table};
use super::design::{Design, Model, Room, Scaling, feature_names, total_weight};
use super::loss::{Scalar, differentiate_all, multinomial, with_scalar};
use super::sampling::{Leaves, Urn};
use super::{Loss, TableError};
use crate::draws::Role;
use crate::kernels::rows::{self, DenseRows, SCORED, SparseRows};
use crate::kernels::{dot, squared_norm};
use crate::oracle::{About, Answer, Batch, Charge, Draw, Form, Oracle, OracleError, Request, Source};

/// A linear model with a loss on the rows of a table, as an oracle.
///
/// f(x) is the mean over the rows of loss(<a, w> + b, y), weighted if the table has weights, plus penalty/2 |w|^2. The
/// coordinates are the weights of the features, then the intercept if there is one; for the multinomial loss that for one
/// class after another. With standardised columns they belong to the standardised columns:
/// [`raw_weights`](Self::raw_weights) undoes that.
///
/// One sample is one row, drawn with replacement in proportion to the weights.
#[derive(Debug)]
pub struct Linear {
    table: Arc<Table>,
    loss: Loss,
    design: Design,
    scaling: Option<Scaling>,
    way: Way,
    features: usize,
    total: f64,
    squared_offset: f64,
    urn: Urn,
    about: About,
}

/// How the features of a row are had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// The row as it is stored; centring and scaling are done to the weights before and to the sums after.
    Stored,
    /// Computed for each row: monomials, or columns so far from zero that centring sums would lose digits.
    Computed,
}

/// Above this ratio of mean to standard deviation a column is centred row by row.
const FAR: f64 = 1000.0;

/// Values that a leaf of a pass has at least, so that adding up leaves costs little.
const LEAF_VALUES: usize = 1 << 17;

/// Rows that are looked at between two questions whether the answer is still wanted.
const PATIENCE: usize = 4096;

impl Linear {
    /// Checks that loss, design and labels fit, and finds the scaling of the columns.
    pub fn new(table: Arc<Table>, loss: Loss, design: Design) -> Result<Self, TableError> {
        design.check()?;
        let scaling = if design.standardise { Some(Scaling::of(&table, &design)?) } else { None };
        Self::scaled(table, loss, design, scaling)
    }

    /// The same with columns that are scaled in the way of another table, whatever the design says: for rows that belong to it.
    pub fn scaled(
        table: Arc<Table>,
        loss: Loss,
        design: Design,
        scaling: Option<Scaling>,
    ) -> Result<Self, TableError> {
        loss.check()?;
        loss.check_labels(table.label_slice())?;
        design.check()?;
        let features = design.features(table.columns())?;
        let rows = table.rows();
        if rows > u32::MAX as usize {
            return Err(TableError::Setting { name: "rows", needs: "below 2^32", got: rows as f64 });
        }
        if let Some(Scaling { shift, scale }) = &scaling {
            let needs = table.columns();
            if let Some(got) = [shift.len(), scale.len()].into_iter().find(|got| *got != needs) {
                return Err(TableError::Shape { what: "column scales", needs, got });
            }
        }
        let dense = matches!(table.features, Features::Dense(_));
        let far = dense && scaling.as_ref().is_some_and(|scaling| scaling.offset() > FAR);
        let way = if design.degree > 1 || far { Way::Computed } else { Way::Stored };
        let dim = loss.outputs() * (features + usize::from(design.intercept));
        let identity = format!(
            "{} loss {} on a table of {rows} rows and {} columns, checksum {:08x}, design {}",
            loss.row().name,
            serde_json::to_string(&loss).expect("a loss is plain data"),
            table.columns(),
            table.checksum(),
            serde_json::to_string(&design).expect("a design is plain data"),
        );
        let about =
            About { dim, identity, source: Source::Table { rows: rows as u64 }, losses: true, shared: true };
        let total = total_weight(&table);
        // A leaf should cost much more than the sums that are added up.
        let values = (table.features.entries() / rows).max(1);
        let block = (LEAF_VALUES.max(8 * dim) / values).clamp(64, 1 << 20).next_power_of_two();
        let urn = Urn::new(rows, block, table.weight_slice());
        let squared_offset = scaling.as_ref().map_or(0.0, |Scaling { shift, scale }| {
            shift.iter().zip(scale).map(|(shift, scale)| (shift / scale).powi(2)).sum()
        });
        Ok(Self { table, loss, design, scaling, way, features, total, squared_offset, urn, about })
    }

    /// The number of coordinates.
    pub fn dim(&self) -> usize {
        self.about.dim
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The loss.
    pub fn loss(&self) -> Loss {
        self.loss
    }

    /// The design.
    pub fn design(&self) -> Design {
        self.design
    }

    /// The scaling of the columns, if they are standardised.
    pub fn scaling(&self) -> Option<&Scaling> {
        self.scaling.as_ref()
    }

    /// Features of one output: columns and their monomials, without the intercept.
    pub fn features(&self) -> usize {
        self.features
    }

    /// The name of every feature, made of the names of the columns: `a`, `a*b`, `a^2`.
    pub fn feature_names(&self) -> Vec<String> {
        feature_names(&self.table.names, self.table.columns(), self.design.degree)
    }

    /// The sum of the weights: the number of rows if the table has none.
    pub fn total_weight(&self) -> f64 {
        self.total
    }

    /// Where a run starts: at 0. Phase retrieval, for which 0 is a critical point, starts on the diagonal, at the
    /// distance where the scores are as large as the labels ask in the mean.
    pub fn start(&self) -> Vec<f64> {
        let mut start = vec![0.0; self.about.dim];
        if self.loss == Loss::PhaseRetrieval {
            let labels: f64 = self.table.label_slice().iter().map(|y| y.max(0.0)).sum();
            start.fill(1.0);
            let point = self.point(&start);
            let mut reader = Reader::new(self);
            let squares: f64 = (0..self.table.rows()).map(|row| reader.score(row, &point).powi(2)).sum();
            let length = if squares > 0.0 && labels > 0.0 { (labels / squares).sqrt() } else { 1.0 };
            start.fill(length);
        }
        start
    }

    /// What x says in terms of the table's own columns: the scaling is undone.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use pasta_opt::table::{Dense, Design, Features, Linear, Loss, Table, Values};
    ///
    /// let values = Values::F64(Arc::new(vec![0.0, 10.0, 20.0, 30.0]));
    /// let features = Features::Dense(Dense { rows: 4, columns: 1, values });
    /// let table = Table::new(features, Arc::new(vec![1.0, 2.0, 3.0, 4.0]), None, Vec::new())?;
    /// let problem = Linear::new(Arc::new(table), Loss::LeastSquares, Design::default())?;
    /// // The column has mean 15 and variance 125, the label mean 2.5 and slope 1/10.
    /// let model = problem.raw_weights(&[0.1 * 125f64.sqrt(), 2.5]);
    /// assert!((model.weights[0] - 0.1).abs() < 1e-15 && (model.intercepts[0] - 1.0).abs() < 1e-15);
    /// # Ok::<(), pasta_opt::table::TableError>(())
    /// ```
    pub fn raw_weights(&self, x: &[f64]) -> Model {
        let scaling = if self.design.degree > 1 { self.scaling.clone() } else { None };
        let (mut weights, mut intercepts) = (Vec::new(), Vec::new());
        for output in x.chunks(self.stride().max(1)) {
            let (w, b) = self.weights_of(output);
            match &self.scaling {
                Some(Scaling { shift, scale }) if self.design.degree == 1 => {
                    let raw: Vec<f64> = w.iter().zip(scale).map(|(w, scale)| w / scale).collect();
                    intercepts.push(b - dot(shift, &raw));
                    weights.extend(raw);
                }
                _ => {
                    weights.extend_from_slice(w);
                    intercepts.push(b);
                }
            }
        }
        Model {
            loss: self.loss,
            columns: self.table.columns(),
            degree: self.design.degree,
            scaling,
            weights,
            intercepts,
        }
    }

    pub(super) fn way(&self) -> Way {
        self.way
    }

    /// Rows of the smallest leaf.
    pub(super) fn block(&self) -> usize {
        self.urn.block
    }

    /// The squared length of a row of zeros once it is standardised.
    pub(super) fn squared_offset(&self) -> f64 {
        self.squared_offset
    }

    /// Coordinates of one output.
    pub(super) fn stride(&self) -> usize {
        self.features + usize::from(self.design.intercept)
    }

    /// Weights and intercept of one output.
    fn weights_of<'x>(&self, output: &'x [f64]) -> (&'x [f64], f64) {
        let (w, b) = output.split_at(self.features);
        (w, b.first().copied().unwrap_or(0.0))
    }

    /// |w|^2 over all outputs.
    pub(super) fn squared_weights(&self, x: &[f64]) -> f64 {
        x.chunks(self.stride()).map(|output| squared_norm(&output[..self.features])).sum()
    }

    /// x in terms of the rows as they are read.
    pub(super) fn point<'x>(&self, x: &'x [f64]) -> Point<'x> {
        let outputs = x.chunks(self.stride()).map(|output| {
            let (w, b) = self.weights_of(output);
            match (&self.scaling, self.way) {
                (Some(Scaling { shift, scale }), Way::Stored) => {
                    let u: Vec<f64> = w.iter().zip(scale).map(|(w, scale)| w / scale).collect();
                    let offset = b - dot(shift, &u);
                    (Cow::Owned(u), offset)
                }
                _ => (Cow::Borrowed(w), b),
            }
        });
        Point { outputs: outputs.collect() }
    }

    /// Turns a sum over rows as they are read (the features of each output, then the sum of the slopes) into a sum over samples:
    /// scaled, with the intercept's and the penalty's part, for samples of this total weight.
    pub(super) fn finish(
        &self,
        raw: &[f64],
        x: &[f64],
        base: Option<&[f64]>,
        weight: f64,
        factor: f64,
        out: &mut [f64],
    ) {
        let stride = self.stride();
        for (k, raw) in raw.chunks(self.features + 1).enumerate() {
            let place = k * stride..(k + 1) * stride;
            let (sums, slopes) = raw.split_at(self.features);
            let (out, rest) = out[place.clone()].split_at_mut(self.features);
            match (&self.scaling, self.way) {
                (Some(Scaling { shift, scale }), Way::Stored) => {
                    for (((out, sum), shift), scale) in out.iter_mut().zip(sums).zip(shift).zip(scale) {
                        *out = factor * ((sum - slopes[0] * shift) / scale);
                    }
                }
                _ if factor == 1.0 => out.copy_from_slice(sums),
                _ => out.iter_mut().zip(sums).for_each(|(out, sum)| *out = factor * sum),
            }
            if self.design.penalty > 0.0 {
                let pull = self.design.penalty * weight;
                let w = &x[place.clone()];
                match base {
                    None => out.iter_mut().zip(w).for_each(|(out, w)| *out += pull * w),
                    Some(base) => out
                        .iter_mut()
                        .zip(w.iter().zip(&base[place]))
                        .for_each(|(out, (w, v))| *out += pull * (w - v)),
                }
            }
            rest.iter_mut().for_each(|out| *out = factor * slopes[0]);
        }
    }

    /// Whether a request is answered by all rows: `None` if not, otherwise what the mean is multiplied by.
    fn pass(&self, draw: &Draw) -> Option<f64> {
        match draw {
            Draw::Everything(_) => Some(1.0),
            Draw::Batch(batch) if batch.count() >= self.table.rows() as u64 => Some(batch.count() as f64),
            Draw::Batch(_) => None,
        }
    }

    /// The sum over rows in their stored order: of gradients at x, to `out`, each times the row's weight, with the penalty.
    pub fn sum_stored(&self, rows: Range<usize>, x: &[f64], out: &mut [f64]) {
        let mut raw = vec![0.0; self.loss.outputs() * (self.features + 1)];
        self.sum_into(&mut Reader::new(self), rows, x, &mut raw, out);
    }

    fn sum_into(
        &self,
        reader: &mut Reader<'_>,
        rows: Range<usize>,
        x: &[f64],
        raw: &mut [f64],
        out: &mut [f64],
    ) {
        let weight = match self.table.weight_slice() {
            None => rows.len() as f64,
            Some(weights) => weights[rows.clone()].iter().sum(),
        };
        let point = [self.point(x)];
        reader.add_rows(&Ask { points: &point, form: Form::Sums, losses: false }, rows, raw);
        self.finish(raw, x, None, weight, 1.0, out);
    }

    /// Goes over rows in their stored order, and after each `batch` of them moves x against the mean of their gradients, times
    /// `step`. One pass of plain SGD for rows that come in random order; nothing is drawn.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use pasta_opt::table::{Dense, Design, Features, Linear, Loss, Table, Values};
    ///
    /// let values = Values::F64(Arc::new(vec![1.0, 2.0]));
    /// let features = Features::Dense(Dense { rows: 2, columns: 1, values });
    /// let table = Table::new(features, Arc::new(vec![1.0, 1.0]), None, Vec::new())?;
    /// let plain = Design { intercept: false, standardise: false, degree: 1, penalty: 0.0 };
    /// let problem = Linear::new(Arc::new(table), Loss::LeastSquares, plain)?;
    /// let mut x = [0.0];
    /// problem.sweep(0..2, 1, 0.5, &mut x);
    /// // 0 - 0.5 (0 - 1) 1 = 0.5, where the second row has no error.
    /// assert_eq!(x, [0.5]);
    /// # Ok::<(), pasta_opt::table::TableError>(())
    /// ```
    pub fn sweep(&self, rows: Range<usize>, batch: usize, step: f64, x: &mut [f64]) {
        let batch = batch.max(1);
        let plain = self.scaling.is_none() && self.design.penalty == 0.0 && self.table.weights.is_none();
        if batch == 1 && plain && self.sweep_rows(rows.clone(), step, x) {
            return;
        }
        let mut reader = Reader::new(self);
        let mut raw = vec![0.0; self.loss.outputs() * (self.features + 1)];
        let mut gradient = vec![0.0; x.len()];
        let total = |rows: Range<usize>| match self.table.weight_slice() {
            None => rows.len() as f64,
            Some(weights) => weights[rows].iter().sum(),
        };
        for first in rows.clone().step_by(batch) {
            let some = first..(first + batch).min(rows.end);
            let weight = total(some.clone());
            if weight > 0.0 {
                raw.fill(0.0);
                self.sum_into(&mut reader, some, x, &mut raw, &mut gradient);
                rows::add(-step / weight, &gradient, x);
            }
        }
    }

    /// Batches of one row on coordinates that are those of the rows, in place. False if this loss has several scores, or rows
    /// are computed.
    fn sweep_rows(&self, rows: Range<usize>, step: f64, x: &mut [f64]) -> bool {
        let labels = self.table.label_slice();
        let (u, rest) = x.split_at_mut(self.features);
        let offset = (rest.first().copied().unwrap_or(0.0), f64::from(u8::from(self.design.intercept)));
        let slope: &dyn Fn(usize, f64) -> f64 = with_scalar!(
            self.loss,
            loss => &move |row: usize, z: f64| step * loss.slope(z, labels[row]),
            return false
        );
        let end = match Store::of(self) {
            Store::Dense64(table) => rows::sweep_dense(table, rows, slope, u, offset),
            Store::Dense32(table) => rows::sweep_dense(table, rows, slope, u, offset),
            Store::Sparse64(table) => rows::sweep_sparse(table, rows, slope, u, offset),
            Store::Sparse32(table) => rows::sweep_sparse(table, rows, slope, u, offset),
            Store::DenseRoom | Store::SparseRoom => return false,
        };
        rest.iter_mut().for_each(|b| *b = end);
        true
    }
}

/// A point in terms of the rows as they are read: weights and offset for each output.
#[derive(Debug)]
pub(super) struct Point<'x> {
    pub(super) outputs: Vec<(Cow<'x, [f64]>, f64)>,
}

/// What is asked of every row.
#[derive(Debug)]
struct Ask<'a> {
    points: &'a [Point<'a>],
    form: Form,
    losses: bool,
}

impl Ask<'_> {
    /// Rows of the answer.
    fn rows(&self) -> usize {
        match self.form {
            Form::Sums => self.points.len(),
            Form::Differences => self.points.len() - 1,
        }
    }

    /// Numbers that are added up: for each row of the answer and each output the features and the slope; then the losses.
    fn width(&self, linear: &Linear) -> usize {
        let gradients = self.rows() * linear.loss.outputs() * (linear.features + 1);
        gradients + if self.losses { self.points.len() } else { 0 }
    }
}

/// Reads rows, and knows where their features are.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    pub(super) linear: &'a Linear,
    pub(super) labels: &'a [f64],
    pub(super) weights: Option<&'a [f64]>,
    store: Store<'a>,
    room: Room,
    /// Scores, then slopes, of a row at all points.
    scores: Vec<f64>,
}

/// Where the features of rows are.
#[derive(Debug, Clone, Copy)]
enum Store<'a> {
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
    fn of(linear: &'a Linear) -> Self {
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
    pub(super) fn new(linear: &'a Linear) -> Self {
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
    pub(super) fn open(&mut self, row: usize) {
        if matches!(self.store, Store::DenseRoom | Store::SparseRoom) {
            let linear = self.linear;
            self.room.fill(&linear.table.features, row, linear.scaling.as_ref(), linear.design.degree);
        }
    }

    /// <a, u> for the features of an opened row.
    #[inline]
    pub(super) fn product(&self, row: usize, u: &[f64]) -> f64 {
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
    pub(super) fn add(&self, row: usize, c: f64, out: &mut [f64]) {
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
    pub(super) fn computed(&self) -> &[f64] {
        &self.room.values
    }

    /// Calls `visit` with feature and value of all that is computed of an opened row.
    pub(super) fn visit_computed(&self, mut visit: impl FnMut(usize, f64)) {
        self.room.values.iter().enumerate().for_each(|(i, value)| visit(self.room.feature(i), *value));
    }

    /// The first score of a row.
    fn score(&mut self, row: usize, point: &Point<'_>) -> f64 {
        self.open(row);
        let (u, offset) = &point.outputs[0];
        self.product(row, u) + offset
    }

    /// Adds what is asked of these rows, each with its weight.
    fn add_rows(&mut self, ask: &Ask<'_>, rows: Range<usize>, out: &mut [f64]) {
        let (visits, first) = ((rows.len(), self.labels.len() - rows.start), rows.start);
        match self.weights {
            None => self.add_each(ask, visits, |i| first + i, |_| 1.0, out),
            Some(weights) => {
                let weights = &weights[rows];
                self.add_each(ask, visits, |i| first + i, |i| weights[i], out);
            }
        }
    }

    /// Adds what is asked of drawn rows, each as often as it occurs.
    fn add_drawn(&mut self, ask: &Ask<'_>, drawn: &[(u32, u64)], out: &mut [f64]) {
        self.add_each(ask, (drawn.len(), drawn.len()), |i| drawn[i].0 as usize, |i| drawn[i].1 as f64, out);
    }

    /// Adds what is asked of the rows `row(i)`, times `factor(i)`, for all visits i: how many there are, and for how
    /// many `row` can be asked.
    #[inline]
    fn add_each(
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
    fn add_gradients(
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
            let (row, reach) = (|i: usize| row(first + i), reach - first);
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
    pub(super) fn write_scores(
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
    pub(super) fn write_each(&self, row: usize, outputs: &rows::Outputs<'_>, scores: &mut [f64]) {
        match self.store {
            Store::Dense64(table) => rows::dot_each(table.row(row), outputs, scores),
            Store::Dense32(table) => rows::dot_each(table.row(row), outputs, scores),
            Store::DenseRoom => rows::dot_each(&self.room.values, outputs, scores),
            _ => scores.iter_mut().zip(outputs).for_each(|(z, (u, offset))| *z = self.product(row, u) + offset),
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
    fn add_scalar_row(&mut self, loss: impl Scalar, ask: &Ask<'_>, row: usize, factor: f64, out: &mut [f64]) {
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
    fn add_multinomial_row(&mut self, ask: &Ask<'_>, row: usize, factor: f64, out: &mut [f64]) {
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

/// Which rows are added up, leaf by leaf.
#[derive(Debug)]
enum Rows<'a> {
    /// All of them, in blocks of so many, with their weights.
    All { block: usize, rows: usize },
    /// Those of a batch, each as often as it occurs.
    Drawn { batch: &'a Batch, leaves: Leaves<'a> },
}

impl Oracle for Linear {
    fn about(&self) -> &About {
        &self.about
    }

    fn price(&self, request: &Request<'_>) -> Charge {
        if self.pass(&request.draw).is_none() {
            return request.usual_price(&self.about);
        }
        let samples = self.table.rows() as u128;
        Charge { samples, evaluations: samples * request.points.len() as u128, exact: true }
    }

    fn is_vouched_for(&self) -> bool {
        true
    }

    /// Rows are counted down a tree of the whole batch.
    fn is_additive(&self) -> bool {
        false
    }

    fn answer(&self, request: &Request<'_>, answer: &mut Answer<'_>) -> Result<Charge, OracleError> {
        let parts = self.parts(request);
        let mut sums = vec![0.0; parts.width()];
        let tree = Batch { seed: 0, role: Role::Setup, step: 0, samples: 0..parts.count() };
        let charge = self.price(request);
        let rows = u64::try_from(charge.samples).unwrap_or(u64::MAX);
        request.sum_leaves(rows, &tree, 1, &mut sums, &|leaves: Range<u64>, out: &mut [f64]| {
            leaves.into_iter().try_for_each(|leaf| parts.add(leaf, out))
        })?;
        parts.complete(&sums, answer);
        Ok(charge)
    }
}

/// The parts of an answer, for machines that each hold some of the rows.
///
/// The rows are cut into parts, and the sums of the parts are added down the tree of [`Batch::halves`] with blocks of one: whoever adds
/// them in this order has the bits of [`Linear`]'s own answer.
#[derive(Debug)]
pub struct Parts<'a> {
    linear: &'a Linear,
    request: &'a Request<'a>,
    points: Vec<Point<'a>>,
    rows: Rows<'a>,
}

impl Linear {
    /// The parts of the answer to a request.
    pub fn parts<'a>(&'a self, request: &'a Request<'a>) -> Parts<'a> {
        let rows = match (&request.draw, self.pass(&request.draw)) {
            (Draw::Batch(batch), None) => Rows::Drawn { batch, leaves: self.urn.leaves(batch) },
            _ => Rows::All { block: self.urn.block, rows: self.table.rows() },
        };
        let points = request.points.iter().map(|x| self.point(x)).collect();
        Parts { linear: self, request, points, rows }
    }
}

impl Parts<'_> {
    /// How many parts there are.
    pub fn count(&self) -> u64 {
        match &self.rows {
            Rows::All { block, rows } => rows.div_ceil(*block) as u64,
            Rows::Drawn { leaves, .. } => leaves.count(),
        }
    }

    /// The rows that a part may read. Its samples are among them.
    pub fn rows(&self, part: u64) -> Range<usize> {
        match &self.rows {
            Rows::All { block, rows } => part as usize * block..((part as usize + 1) * block).min(*rows),
            Rows::Drawn { leaves, .. } => leaves.rows_of_leaf(part),
        }
    }

    /// How many numbers the sum of a part has.
    pub fn width(&self) -> usize {
        self.ask().width(self.linear)
    }

    fn ask(&self) -> Ask<'_> {
        Ask { points: &self.points, form: self.request.form, losses: self.request.losses }
    }

    /// Adds the sum of a part to `out`.
    pub fn add(&self, part: u64, out: &mut [f64]) -> Result<(), OracleError> {
        let (ask, mut reader) = (self.ask(), Reader::new(self.linear));
        match &self.rows {
            Rows::All { .. } => {
                let rows = self.rows(part);
                for first in rows.clone().step_by(PATIENCE) {
                    self.request.interrupted()?;
                    reader.add_rows(&ask, first..(first + PATIENCE).min(rows.end), out);
                }
            }
            Rows::Drawn { batch, leaves } => {
                for drawn in leaves.draws(batch, part).chunks(PATIENCE) {
                    self.request.interrupted()?;
                    reader.add_drawn(&ask, drawn, out);
                }
            }
        }
        Ok(())
    }

    /// Makes the answer of the sum of all parts.
    pub fn complete(&self, sums: &[f64], answer: &mut Answer<'_>) {
        let Self { linear, request, .. } = self;
        // A pass has the mean, times the number of samples that were asked for; a batch has its sum.
        let (weight, factor) = match (linear.pass(&request.draw), &request.draw) {
            (Some(times), _) => (times, times / linear.total),
            (None, Draw::Batch(batch)) => (batch.count() as f64, 1.0),
            (None, Draw::Everything(_)) => unreachable!("everything is a pass"),
        };
        let width = linear.loss.outputs() * (linear.features + 1);
        let (sums, losses) = sums.split_at(request.rows() * width);
        let base = match request.form {
            Form::Sums => None,
            Form::Differences => Some(request.base()),
        };
        let out = answer.gradients.chunks_mut(linear.about.dim);
        for ((x, raw), out) in request.points.iter().zip(sums.chunks(width)).zip(out) {
            linear.finish(raw, x, base, weight, factor, out);
        }
        if request.losses {
            for ((x, loss), out) in request.points.iter().zip(losses).zip(answer.losses.iter_mut()) {
                *out = factor * loss + weight * 0.5 * linear.design.penalty * linear.squared_weights(x);
            }
        }
    }
}
