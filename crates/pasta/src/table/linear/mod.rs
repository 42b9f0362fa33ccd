//! The oracle: a linear model with a loss on the rows of a table.

mod parts;
mod reader;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use super::data::{Features, Table};
use super::design::{Design, Model, Scaling, feature_names, total_weight};
use super::loss::{Scalar, with_scalar};
use super::sampling::RowSampler;
use super::{Loss, TableError};
use crate::kernels::double::Double;
use crate::kernels::rows;
use crate::kernels::{dot, squared_norm};
use crate::oracle::{About, Draw, Form, Source};

pub use parts::Parts;
use reader::{Ask, Store};
pub(super) use reader::{Point, Reader};

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
    sampler: RowSampler,
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
        let about = About {
            source: Source::Table { rows: rows as u64 },
            losses: true,
            // Rows are counted down a tree of the whole batch.
            additive: false,
            trusted: true,
            ..About::stream(dim, identity)
        };
        let total = total_weight(&table);
        // A leaf should cost much more than the sums that are added up.
        let values = (table.features.entries() / rows).max(1);
        let block = (LEAF_VALUES.max(8 * dim) / values).clamp(64, 1 << 20).next_power_of_two();
        let sampler = RowSampler::new(rows, block, table.weight_slice());
        let squared_offset = scaling.as_ref().map_or(0.0, |Scaling { shift, scale }| {
            shift.iter().zip(scale).map(|(shift, scale)| (shift / scale).powi(2)).sum()
        });
        Ok(Self { table, loss, design, scaling, way, features, total, squared_offset, sampler, about })
    }

    /// The same table, design and scaling with another loss.
    pub fn with_loss(&self, loss: Loss) -> Result<Self, TableError> {
        Self::scaled(Arc::clone(&self.table), loss, self.design, self.scaling.clone())
    }

    /// The same table, loss and scaling with another penalty.
    pub fn with_penalty(&self, penalty: f64) -> Result<Self, TableError> {
        let design = Design { penalty, ..self.design };
        Self::scaled(Arc::clone(&self.table), self.loss, design, self.scaling.clone())
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

    /// How far columns are from 0 as they are added up, in standard deviations, at most; 0 where each row is centred first.
    pub(crate) fn offset(&self) -> f64 {
        let scaling = self.scaling.as_ref().filter(|_| self.way == Way::Stored);
        scaling.map_or(0.0, Scaling::offset)
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
        if self.loss.is_even() {
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
                    // By the weights as they are rounded: what that takes counts by distances from the means, not from 0.
                    let products =
                        shift.iter().zip(&raw).map(|(shift, raw)| Double::from(*shift) * Double::from(*raw));
                    intercepts.push(products.fold(Double::from(b), |b, product| b - product).rounded());
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
        self.sampler.block
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
