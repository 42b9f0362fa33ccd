//! How rows become features: scaling, monomials, the intercept; and the model that comes of it.

use std::ops::Range;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::data::{Dense, Features, Slice, Table};
use super::loss::LEAST;
use super::{Loss, TableError};
use crate::draws::Role;
use crate::kernels::rows::{self, DenseRows, Element};
use crate::oracle::{Batch, OracleError};

/// How the columns of a table become the coordinates of a linear model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Design {
    /// Whether each output has an intercept.
    pub intercept: bool,
    /// Whether columns are brought to mean 0 (only if there is an intercept) and standard deviation 1 first.
    pub standardise: bool,
    /// All monomials of the columns up to this degree are features: 1, 2 or 3. They are computed on the fly.
    pub degree: u32,
    /// l of the term l/2 |w|^2; the intercept is not in w.
    pub penalty: f64,
}

impl Default for Design {
    /// An intercept and standardised columns, no monomials, no penalty.
    fn default() -> Self {
        Self { intercept: true, standardise: true, degree: 1, penalty: 0.0 }
    }
}

/// The most features, so that an index is a u32.
const MOST_FEATURES: usize = u32::MAX as usize;

impl Design {
    /// How many features so many columns make.
    pub fn features(&self, columns: usize) -> Result<usize, TableError> {
        if !(1..=3).contains(&self.degree) {
            return Err(TableError::Setting {
                name: "degree",
                needs: "1, 2 or 3",
                got: f64::from(self.degree),
            });
        }
        let d = columns as u128;
        let pairs = if self.degree > 1 { d * (d + 1) / 2 } else { 0 };
        let triples = if self.degree > 2 { d * (d + 1) * (d + 2) / 6 } else { 0 };
        let features = d + pairs + triples;
        if features > MOST_FEATURES as u128 {
            return Err(TableError::Features { degree: self.degree, columns, most: MOST_FEATURES });
        }
        Ok(features as usize)
    }

    pub(super) fn check(&self) -> Result<(), TableError> {
        if self.penalty.is_finite() && self.penalty >= 0.0 {
            Ok(())
        } else {
            Err(TableError::Setting {
                name: "penalty",
                needs: "a finite number, at least 0",
                got: self.penalty,
            })
        }
    }
}

/// The columns of each feature, in the order of the features: first the columns, then the pairs i <= j, then the triples
/// i <= j <= k, each in lexicographic order.
pub(crate) fn monomials(columns: usize, degree: u32) -> impl Iterator<Item = Vec<usize>> {
    let pairs = (0..columns).flat_map(move |i| (i..columns).map(move |j| vec![i, j]));
    let triples = (0..columns)
        .flat_map(move |i| (i..columns).flat_map(move |j| (j..columns).map(move |k| vec![i, j, k])));
    let some = |wanted: bool| if wanted { usize::MAX } else { 0 };
    let pairs = pairs.take(some(degree > 1));
    (0..columns).map(|i| vec![i]).chain(pairs).chain(triples.take(some(degree > 2)))
}

/// Writes all monomials of the values to `out`, in the order of [`monomials`].
pub(super) fn expand(values: &[f64], degree: u32, out: &mut Vec<f64>) {
    out.clear();
    out.extend_from_slice(values);
    if degree > 1 {
        for (i, a) in values.iter().enumerate() {
            out.extend(values[i..].iter().map(|b| a * b));
        }
    }
    if degree > 2 {
        for (i, a) in values.iter().enumerate() {
            for (j, b) in values.iter().enumerate().skip(i) {
                let ab = a * b;
                out.extend(values[j..].iter().map(|c| ab * c));
            }
        }
    }
}

/// Appends all monomials of the entries of a sparse row. Their indices increase within each degree.
pub(super) fn expand_sparse(
    columns: usize,
    degree: u32,
    entries: &[(u32, f64)],
    indices: &mut Vec<u32>,
    values: &mut Vec<f64>,
) {
    indices.clear();
    values.clear();
    let mut put = |index: usize, value: f64| {
        indices.push(index as u32);
        values.push(value);
    };
    entries.iter().for_each(|&(i, a)| put(i as usize, a));
    let d = columns;
    // Pairs with a first column below i, and triples with one.
    let pairs_before = |i: usize, d: usize| i * (2 * d + 1 - i) / 2;
    let choose3 = |d: usize| d * (d + 1) * (d + 2) / 6;
    if degree > 1 {
        for (place, &(i, a)) in entries.iter().enumerate() {
            let from = d + pairs_before(i as usize, d) - i as usize;
            entries[place..].iter().for_each(|&(j, b)| put(from + j as usize, a * b));
        }
    }
    if degree > 2 {
        let first = d + d * (d + 1) / 2;
        for (place, &(i, a)) in entries.iter().enumerate() {
            let i = i as usize;
            let of_i = first + choose3(d) - choose3(d - i);
            for (second, &(j, b)) in entries.iter().enumerate().skip(place) {
                let j = j as usize;
                let from = of_i + pairs_before(j - i, d - i) - j;
                let ab = a * b;
                entries[second..].iter().for_each(|&(k, c)| put(from + k as usize, ab * c));
            }
        }
    }
}

/// What is taken from each column, and by what it is then divided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scaling {
    /// The weighted mean of each column; 0 where columns are not centred.
    pub shift: Vec<f64>,
    /// The weighted standard deviation around the shift. A column that does not vary has the largest number there is, so that it counts for nothing.
    pub scale: Vec<f64>,
}

/// Deviations below so much of the mean may be rounding of the mean.
const DOUBTFUL: f64 = 1e-9;

impl Scaling {
    /// What a column that does not vary is divided by: rounding is all there is of it, and would be given a weight.
    pub(crate) const CONSTANT: f64 = f64::MAX;

    /// True if the column varies.
    pub(crate) fn varies(&self, column: usize) -> bool {
        self.scale[column] < Self::CONSTANT
    }

    /// The scaling of a table's columns, in two passes. Monomials of sparse columns are sparse only if zeros stay zeros, so
    /// those are not centred.
    pub(crate) fn of(table: &Table, design: &Design) -> Result<Self, TableError> {
        let sparse = matches!(table.features, Features::Sparse(_));
        let centred = design.intercept && !(sparse && design.degree > 1);
        let columns = table.columns();
        let total = total_weight(table);
        let shift = if centred {
            let mut sums = column_sums(table, 1, &|_, value| [value, 0.0]);
            sums.iter_mut().for_each(|sum| *sum /= total);
            sums
        } else {
            vec![0.0; columns]
        };
        // The second sum is the weight of the entries that are stored: the others are zeros, each of them -shift away.
        let squares = column_sums(table, 2, &|j, value| [(value - shift[j]) * (value - shift[j]), 1.0]);
        let mut scale = Vec::with_capacity(columns);
        for (column, shift) in shift.iter().enumerate() {
            let absent = if sparse { (total - squares[columns + column]).max(0.0) } else { 0.0 };
            let deviation = ((squares[column] + absent * shift * shift) / total).sqrt();
            if !deviation.is_finite() {
                return Err(TableError::TooLarge { column });
            }
            scale.push(deviation);
        }
        // A mean has rounding, which is no deviation; and squares may vanish.
        let is_doubtful = |j: &usize| scale[*j] <= (DOUBTFUL * shift[*j].abs()).max(LEAST);
        let doubtful: Vec<usize> = (0..columns).filter(is_doubtful).collect();
        let weights = table.weight_slice();
        let spreads: Vec<f64> = match &table.features {
            Features::Dense(dense) => doubtful.par_iter().map(|j| spread(dense, weights, *j)).collect(),
            // Columns of which nothing is stored are many, and no pass is needed to know them.
            sparse if doubtful.iter().any(|j| squares[columns + j] > 0.0) => {
                spreads(sparse, weights, &doubtful, columns)
            }
            Features::Sparse(_) => vec![0.0; doubtful.len()],
        };
        for (column, spread) in doubtful.into_iter().zip(spreads) {
            if spread <= 8.0 * f64::EPSILON * shift[column].abs() {
                scale[column] = Self::CONSTANT;
            } else if scale[column] < LEAST {
                return Err(TableError::TooSmall { column });
            }
        }
        Ok(Self { shift, scale })
    }

    /// The largest |shift|/scale: how many digits a row loses if it is centred after the sum instead of before.
    pub(super) fn offset(&self) -> f64 {
        self.shift.iter().zip(&self.scale).map(|(shift, scale)| shift.abs() / scale).fold(0.0, f64::max)
    }
}

/// The largest value less the smallest of a dense column, over the rows that have a weight.
fn spread(dense: &Dense, weights: Option<&[f64]>, column: usize) -> f64 {
    let values = dense.values.slice();
    let has_weight = |row: &usize| weights.is_none_or(|weights| weights[*row] > 0.0);
    let rows = (0..dense.rows).filter(has_weight).map(|row| values.get(row * dense.columns + column));
    let ends = rows.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (v.min(low), v.max(high)));
    ends.1 - ends.0
}

/// The same of some sparse columns: what is not stored is zero.
fn spreads(sparse: &Features, weights: Option<&[f64]>, columns: &[usize], all: usize) -> Vec<f64> {
    let mut ends = vec![None; all];
    columns.iter().for_each(|column| ends[*column] = Some((f64::INFINITY, f64::NEG_INFINITY, 0)));
    let has_weight = |row: &usize| weights.is_none_or(|weights| weights[*row] > 0.0);
    let mut rows = 0;
    for row in (0..sparse.rows()).filter(has_weight) {
        rows += 1;
        sparse.visit_row(row, |j, value| {
            if let Some((low, high, stored)) = &mut ends[j] {
                (*low, *high, *stored) = (low.min(value), high.max(value), *stored + 1);
            }
        });
    }
    let spread = |column: &usize| match ends[*column] {
        Some((low, high, stored)) if stored < rows => high.max(0.0) - low.min(0.0),
        Some((low, high, _)) => high - low,
        None => 0.0,
    };
    columns.iter().map(spread).collect()
}

/// The sum of the weights: the number of rows if there are none.
pub(super) fn total_weight(table: &Table) -> f64 {
    table.weight_slice().map_or(table.rows() as f64, |weights| weights.iter().sum())
}

/// The weighted sums over all stored entries of the first `width` of two terms, all columns of one after all of the other, in an
/// order that no number of threads changes.
fn column_sums(table: &Table, width: usize, terms: &(impl Fn(usize, f64) -> [f64; 2] + Sync)) -> Vec<f64> {
    const ADDED: usize = 2048;
    let (rows, columns) = (table.rows(), table.columns());
    let mut sums = vec![0.0; width * columns];
    let weights = table.weight_slice();
    let tree = Batch { seed: 0, role: Role::Setup, step: 0, samples: 0..rows.div_ceil(ADDED) as u64 };
    let add_block = |blocks: Range<u64>, out: &mut [f64]| -> Result<(), OracleError> {
        let (first, second) = out.split_at_mut(columns);
        for row in blocks.start as usize * ADDED..(blocks.end as usize * ADDED).min(rows) {
            let weight = weights.map_or(1.0, |weights| weights[row]);
            match dense_row(table, row) {
                // Columns one after another, which the compiler makes vectors of; a dense table has all entries.
                Some(Slice::F64(values)) => add_terms(weight, values, terms, first),
                Some(Slice::F32(values)) => add_terms(weight, values, terms, first),
                None => table.features.visit_row(row, |j, value| {
                    let [one, two] = terms(j, value);
                    first[j] += weight * one;
                    if let Some(second) = second.get_mut(j) {
                        *second += weight * two;
                    }
                }),
            }
        }
        Ok(())
    };
    tree.sum_over(1, &mut sums, &add_block).expect("adding cannot fail");
    sums
}

fn dense_row(table: &Table, row: usize) -> Option<Slice<'_>> {
    let Features::Dense(dense) = &table.features else { return None };
    let place = row * dense.columns..(row + 1) * dense.columns;
    Some(match dense.values.slice() {
        Slice::F64(values) => Slice::F64(&values[place]),
        Slice::F32(values) => Slice::F32(&values[place]),
    })
}

#[inline]
fn add_terms<T: Element>(
    weight: f64,
    values: &[T],
    terms: &impl Fn(usize, f64) -> [f64; 2],
    sums: &mut [f64],
) {
    for (j, (sum, value)) in sums.iter_mut().zip(values).enumerate() {
        *sum += weight * terms(j, value.real())[0];
    }
}

/// Rows that a thread scores at a time.
const BLOCK: usize = 1024;

/// A linear model: what was learnt, in terms of the table's own columns.
///
/// With degree 1 there is no scaling left: `weights` and `intercepts` apply to the columns as they are. With monomials the
/// columns are scaled first, since undoing that would mix the monomials and lose digits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// What was minimised.
    pub loss: Loss,
    /// The columns of the table.
    pub columns: usize,
    /// Up to which degree monomials are features.
    pub degree: u32,
    /// The scaling of the columns before monomials are made of them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub scaling: Option<Scaling>,
    /// The weights of the features, one output after another.
    pub weights: Vec<f64>,
    /// An intercept for each output; 0 where the design has none.
    pub intercepts: Vec<f64>,
}

impl Model {
    /// How many scores a row has.
    pub fn outputs(&self) -> usize {
        self.intercepts.len()
    }

    /// Refuses a model whose parts do not fit together or are not finite: to be asked of one that was read from a file.
    pub fn check(&self) -> Result<(), TableError> {
        let design = Design { intercept: true, standardise: false, degree: self.degree, penalty: 0.0 };
        let features = design.features(self.columns)?;
        self.loss.check()?;
        let shape = |what, needs, got| {
            if needs == got { Ok(()) } else { Err(TableError::Shape { what, needs, got }) }
        };
        shape("intercepts", self.loss.outputs(), self.outputs())?;
        shape("weights", self.outputs().saturating_mul(features), self.weights.len())?;
        if let Some(Scaling { shift, scale }) = &self.scaling {
            shape("column shifts", self.columns, shift.len())?;
            shape("column scales", self.columns, scale.len())?;
        }
        let numbers = self.weights.iter().chain(&self.intercepts);
        match numbers.copied().find(|value| !value.is_finite()) {
            Some(got) => Err(TableError::Setting { name: "a weight of the model", needs: "finite", got }),
            None => Ok(()),
        }
    }

    /// The scores of every row, one row after another. Refuses features with another number of columns.
    pub fn scores(&self, features: &Features) -> Result<Vec<f64>, TableError> {
        self.fits(features)?;
        let outputs = self.outputs();
        let mut scores = vec![0.0; features.rows() * outputs];
        let blocks = scores.par_chunks_mut(BLOCK * outputs).enumerate();
        blocks.for_each(|(block, scores)| self.write_scores(features, block * BLOCK, scores));
        Ok(scores)
    }

    /// Calls `work` for blocks of rows, with their scores one row after another, on all threads; what it returns, in the order of the rows. Refuses features
    /// with another number of columns.
    ///
    /// ```
    /// use pasta_opt::table::{Dense, Features, Loss, Model};
    ///
    /// let (weights, intercepts) = (vec![2.0], vec![1.0]);
    /// let model = Model { loss: Loss::LeastSquares, columns: 1, degree: 1, scaling: None, weights, intercepts };
    /// let features = Features::Dense(Dense { rows: 3, columns: 1, values: vec![0.0, 1.0, 2.0].into() });
    /// let sums = model.map_scores(&features, |_, scores| scores.iter().sum::<f64>())?;
    /// assert_eq!(sums, [9.0]);
    /// # Ok::<(), pasta_opt::table::TableError>(())
    /// ```
    pub fn map_scores<T: Send>(
        &self,
        features: &Features,
        work: impl Fn(Range<usize>, &mut [f64]) -> T + Sync,
    ) -> Result<Vec<T>, TableError> {
        self.fits(features)?;
        let (rows, outputs) = (features.rows(), self.outputs());
        let room = || vec![0.0; BLOCK * outputs];
        let blocks = (0..rows.div_ceil(BLOCK)).into_par_iter().map_init(room, |room, block| {
            let range = block * BLOCK..((block + 1) * BLOCK).min(rows);
            let scores = &mut room[..range.len() * outputs];
            self.write_scores(features, range.start, scores);
            work(range, scores)
        });
        Ok(blocks.collect())
    }

    fn fits(&self, features: &Features) -> Result<(), TableError> {
        let (needs, got) = (self.columns, features.columns());
        if needs == got { Ok(()) } else { Err(TableError::Shape { what: "columns", needs, got }) }
    }

    /// The scores of the rows from the first one on.
    fn write_scores(&self, features: &Features, first: usize, scores: &mut [f64]) {
        if let (Features::Dense(dense), 1, [offset], None) =
            (features, self.degree, &self.intercepts[..], &self.scaling)
        {
            let (columns, reach, row) = (self.columns, scores.len(), |i| first + i);
            let at = (&self.weights[..], *offset);
            match dense.values.slice() {
                Slice::F64(values) => {
                    rows::dot_dense(DenseRows { values, columns }, reach, row, at, scores);
                }
                Slice::F32(values) => {
                    rows::dot_dense(DenseRows { values, columns }, reach, row, at, scores);
                }
            }
            return;
        }
        let mut room = Room::default();
        for (i, out) in scores.chunks_mut(self.outputs()).enumerate() {
            self.score_row(features, first + i, &mut room, out);
        }
    }

    fn score_row(&self, features: &Features, row: usize, room: &mut Room, out: &mut [f64]) {
        out.copy_from_slice(&self.intercepts);
        let width = self.weights.len() / self.outputs();
        if self.degree == 1 && self.scaling.is_none() {
            let weights = &self.weights;
            if let Features::Dense(dense) = features {
                let place = row * self.columns..(row + 1) * self.columns;
                for (z, weights) in out.iter_mut().zip(weights.chunks_exact(width.max(1))) {
                    *z += match dense.values.slice() {
                        Slice::F64(values) => rows::dot(&values[place.clone()], weights),
                        Slice::F32(values) => rows::dot(&values[place.clone()], weights),
                    };
                }
                return;
            }
            features.visit_row(row, |j, value| {
                out.iter_mut().enumerate().for_each(|(k, z)| *z += weights[k * width + j] * value);
            });
            return;
        }
        room.fill(features, row, self.scaling.as_ref(), self.degree);
        for (k, z) in out.iter_mut().enumerate() {
            let weights = &self.weights[k * width..(k + 1) * width];
            *z += room.values.iter().enumerate().map(|(i, v)| weights[room.feature(i)] * v).sum::<f64>();
        }
    }

    /// The name of every feature, made of the names of the columns (`names`, or numbers where that is empty).
    pub fn feature_names(&self, names: &[String]) -> Vec<String> {
        feature_names(names, self.columns, self.degree)
    }
}

/// The name of every feature: `a`, `a*b`, `a^2`, `a^2*b`.
pub(super) fn feature_names(names: &[String], columns: usize, degree: u32) -> Vec<String> {
    let name = |j: usize| names.get(j).cloned().unwrap_or_else(|| j.to_string());
    let product = |factors: Vec<usize>| {
        let powers = factors.chunk_by(|a, b| a == b).map(|same| match same.len() {
            1 => name(same[0]),
            power => format!("{}^{power}", name(same[0])),
        });
        powers.collect::<Vec<_>>().join("*")
    };
    monomials(columns, degree).map(product).collect()
}

/// Room for the features of one row that are computed and not stored.
#[derive(Debug, Default)]
pub(super) struct Room {
    base: Vec<f64>,
    entries: Vec<(u32, f64)>,
    /// The features of a sparse row; empty for a dense row, which has them all.
    pub(super) indices: Vec<u32>,
    /// Their values.
    pub(super) values: Vec<f64>,
}

impl Room {
    /// Computes the features of a row.
    pub(super) fn fill(&mut self, features: &Features, row: usize, scaling: Option<&Scaling>, degree: u32) {
        let scaled = |j: usize, value: f64| match scaling {
            Some(Scaling { shift, scale }) => (value - shift[j]) / scale[j],
            None => value,
        };
        match features {
            Features::Dense(dense) => {
                self.base.clear();
                let base = &mut self.base;
                features.visit_row(row, |j, value| base.push(scaled(j, value)));
                debug_assert_eq!(base.len(), dense.columns);
                expand(&self.base, degree, &mut self.values);
            }
            Features::Sparse(sparse) => {
                self.entries.clear();
                let entries = &mut self.entries;
                features.visit_row(row, |j, value| entries.push((j as u32, scaled(j, value))));
                expand_sparse(sparse.columns, degree, entries, &mut self.indices, &mut self.values);
            }
        }
    }

    /// Which feature the value in this place is.
    pub(super) fn feature(&self, place: usize) -> usize {
        self.indices.get(place).map_or(place, |&index| index as usize)
    }
}
