//! What a pass knows of the columns of its stream: which have varied, how they are scaled, how far they vary.

use crate::table::{Design, Scaling, Table, TableError};

/// Values of a column that differ by no more than this share are one value.
const ROUNDING: f64 = 8.0 * f64::EPSILON;

/// The columns of a stream.
///
/// A column that has had one value so far is asleep: its shift is that value, its scale [`Scaling::CONSTANT`], and it counts for nothing. It wakes when it first
/// varies. Its shift stays, so that its feature was 0 in all rows before; its scale is the deviation from the shift in the rows in which it woke. So what was learnt
/// before stays exact.
#[derive(Debug, Clone)]
pub(super) struct Columns {
    /// None where columns are taken as they are.
    scaling: Option<Scaling>,
    /// Rows so far, the mean of each column over these, and the sum of squares around it.
    rows: f64,
    means: Vec<f64>,
    squares: Vec<f64>,
}

impl Columns {
    /// The columns of a stream that begins with these rows, none of which is counted yet.
    pub(super) fn of(first: &Table, design: &Design) -> Result<Self, TableError> {
        let scaling = own_scaling(first, design)?;
        let counted = if scaling.is_some() { first.columns() } else { 0 };
        Ok(Self { scaling, rows: 0.0, means: vec![0.0; counted], squares: vec![0.0; counted] })
    }

    pub(super) fn scaling(&self) -> Option<&Scaling> {
        self.scaling.as_ref()
    }

    /// Wakes the columns that vary for the first time in rows with this scaling of their own; which they are.
    pub(super) fn wake(&mut self, own: &Scaling) -> Result<Vec<usize>, TableError> {
        let Some(scaling) = &mut self.scaling else { return Ok(Vec::new()) };
        let mut woken = Vec::new();
        for column in 0..scaling.scale.len() {
            if scaling.varies(column) {
                continue;
            }
            let value = scaling.shift[column];
            let away = (own.shift[column] - value).abs();
            let deviation = if own.varies(column) { own.scale[column].hypot(away) } else { away };
            if !own.varies(column) && away <= ROUNDING * value.abs() {
                continue;
            }
            if deviation * deviation < f64::MIN_POSITIVE {
                return Err(TableError::TooSmall { column });
            }
            woken.push((column, deviation));
        }
        woken.iter().for_each(|(column, deviation)| scaling.scale[*column] = *deviation);
        Ok(woken.into_iter().map(|(column, _)| column).collect())
    }

    /// Counts rows that have this scaling of their own.
    pub(super) fn count(&mut self, rows: f64, own: &Scaling) {
        let all = self.rows + rows;
        for (j, (mean, squares)) in self.means.iter_mut().zip(&mut self.squares).enumerate() {
            let away = own.shift[j] - *mean;
            let spread = if own.varies(j) { own.scale[j] * own.scale[j] } else { 0.0 };
            *squares += rows * (spread + away * away * (self.rows / all));
            *mean += away * (rows / all);
        }
        self.rows = all;
    }

    /// Mean and deviation of each scaled column over the rows that were counted; 0 and 1 where it is asleep. Nothing if columns are taken as they are.
    pub(super) fn moments(&self) -> (Vec<f64>, Vec<f64>) {
        let Some(Scaling { shift, scale }) = &self.scaling else { return (Vec::new(), Vec::new()) };
        let moments = |j: usize| {
            let deviation = (self.squares[j] / self.rows).sqrt() / scale[j];
            let shows = scale[j] < Scaling::CONSTANT && deviation.is_normal();
            if shows { ((self.means[j] - shift[j]) / scale[j], deviation) } else { (0.0, 1.0) }
        };
        (0..scale.len()).map(moments).unzip()
    }

    /// Puts column k at `places[k]` of so many columns. The others were 0 in all rows so far.
    pub(super) fn widen(&mut self, places: &[usize], columns: usize) {
        let Some(scaling) = &mut self.scaling else { return };
        let Scaling { shift, scale } = scaling;
        for (vector, new) in
            [(shift, 0.0), (scale, Scaling::CONSTANT), (&mut self.means, 0.0), (&mut self.squares, 0.0)]
        {
            *vector = spread_out(vector, places, columns, new);
        }
    }
}

/// A vector whose k-th number stands at `places[k]` of `length`, with `new` everywhere else.
pub(super) fn spread_out(vector: &[f64], places: &[usize], length: usize, new: f64) -> Vec<f64> {
    let mut wider = vec![new; length];
    places.iter().zip(vector).for_each(|(place, number)| wider[*place] = *number);
    wider
}

/// The scaling that rows have of their own; `None` where columns are taken as they are. The shift of a column that does not vary is its value, without the
/// rounding of a mean.
pub(super) fn own_scaling(rows: &Table, design: &Design) -> Result<Option<Scaling>, TableError> {
    if !design.standardise {
        return Ok(None);
    }
    let mut scaling = Scaling::of(rows, design)?;
    let mut row = vec![0.0; rows.columns()];
    rows.features.visit_row(0, |j, value| row[j] = value);
    for (j, value) in row.into_iter().enumerate() {
        if !scaling.varies(j) {
            scaling.shift[j] = value;
        }
    }
    Ok(Some(scaling))
}
