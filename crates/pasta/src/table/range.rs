//! The ranges of columns, and which rows of another table leave them.

use rayon::prelude::*;

use super::data::Features;

/// Rows that are looked at together.
const BLOCK: usize = 4096;

/// Rows of a table with a value outside of the range of its column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outside {
    /// How many rows have one.
    pub rows: u64,
    /// For each column, how many rows have one there.
    pub columns: Vec<u64>,
}

impl Features {
    /// The smallest and the largest value of each column; values that are not stored are 0.
    ///
    /// ```
    /// use pasta_opt::table::{Dense, Features};
    ///
    /// let values = vec![1.0, 5.0, 3.0, -2.0].into();
    /// let features = Features::Dense(Dense { rows: 2, columns: 2, values });
    /// let ranges = features.ranges();
    /// assert_eq!(ranges, [[1.0, 3.0], [-2.0, 5.0]]);
    /// let other = Features::Dense(Dense { rows: 2, columns: 2, values: vec![2.0, 6.0, 3.0, 0.0].into() });
    /// let outside = other.outside(&ranges);
    /// assert_eq!((outside.rows, outside.columns), (1, vec![0, 1]));
    /// ```
    pub fn ranges(&self) -> Vec<[f64; 2]> {
        let (rows, columns) = (self.rows(), self.columns());
        let none = ([f64::INFINITY, f64::NEG_INFINITY], 0_usize);
        let blocks = (0..rows.div_ceil(BLOCK)).into_par_iter();
        let all = blocks.fold(
            || vec![none; columns],
            |mut found, block| {
                for row in block * BLOCK..((block + 1) * BLOCK).min(rows) {
                    self.visit_row(row, |j, value| {
                        let (range, stored) = &mut found[j];
                        *range = [range[0].min(value), range[1].max(value)];
                        *stored += 1;
                    });
                }
                found
            },
        );
        let joined = all.reduce(
            || vec![none; columns],
            |mut one, other| {
                for ((range, stored), (more, also)) in one.iter_mut().zip(other) {
                    *range = [range[0].min(more[0]), range[1].max(more[1])];
                    *stored += also;
                }
                one
            },
        );
        let with_zeros = |([low, high], stored): ([f64; 2], usize)| {
            if stored < rows { [low.min(0.0), high.max(0.0)] } else { [low, high] }
        };
        joined.into_iter().map(with_zeros).collect()
    }

    /// The rows with a value outside of these ranges, one for each column. Zeros that are not stored do not count.
    pub fn outside(&self, ranges: &[[f64; 2]]) -> Outside {
        let mut outside = Outside { rows: 0, columns: vec![0; ranges.len()] };
        let rows = if ranges.is_empty() { 0 } else { self.rows() };
        for row in 0..rows {
            let mut any = false;
            self.visit_row(row, |j, value| {
                if ranges.get(j).is_some_and(|[low, high]| value < *low || value > *high) {
                    outside.columns[j] += 1;
                    any = true;
                }
            });
            outside.rows += u64::from(any);
        }
        outside
    }
}
