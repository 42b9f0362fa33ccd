//! Orthonormal columns that hide which directions the chain lives in.

use crate::draws::{Address, Role};

/// U: d rows, T orthonormal columns, d >= T.
#[derive(Debug, Clone)]
pub struct Rotation {
    rows: usize,
    /// One column after another.
    entries: Vec<f64>,
    name: String,
}

/// Why there is no rotation.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RotationError {
    /// Too few rows, or columns of another number than the chain has coordinates.
    #[error(
        "a rotation of a chain of {chain} needs {chain} columns and at least as many rows, but has {columns} columns and {rows} rows"
    )]
    Shape {
        /// Coordinates of the chain.
        chain: usize,
        /// Rows given.
        rows: usize,
        /// Columns given.
        columns: usize,
    },
    /// Not as many entries as rows times columns.
    #[error("{columns} columns of {rows} rows are not {entries} entries")]
    Entries {
        /// Rows given.
        rows: usize,
        /// Columns given.
        columns: usize,
        /// Entries given.
        entries: usize,
    },
    /// The columns are not orthonormal.
    #[error("the columns are not orthonormal: U'U differs from the identity by {error:e}")]
    NotOrthonormal {
        /// The largest entry of U'U - I.
        error: f64,
    },
}

impl Rotation {
    /// A rotation drawn from the uniform law: the columns of a Gaussian matrix, made orthonormal in their order.
    pub fn random(rows: usize, columns: usize, seed: u64) -> Result<Self, RotationError> {
        if rows < columns || columns == 0 {
            return Err(RotationError::Shape { chain: columns.max(1), rows, columns });
        }
        let mut xi = Address { seed, role: Role::Setup, step: 0, sample: 0 }.stream();
        let mut entries: Vec<f64> = (0..rows * columns).map(|_| xi.normal()).collect();
        // The Q of the QR factors with a positive diagonal, which is unique: a rotation of the Gaussian matrix, whose law
        // has no direction, rotates Q.
        orthonormalise(&mut entries, rows);
        Ok(Self { rows, entries, name: format!("random {rows} x {columns}, seed {seed}") })
    }

    /// A rotation with these columns, one after another.
    pub fn from_columns(rows: usize, columns: usize, entries: Vec<f64>) -> Result<Self, RotationError> {
        if rows < columns || columns == 0 {
            return Err(RotationError::Shape { chain: columns.max(1), rows, columns });
        }
        if rows.checked_mul(columns) != Some(entries.len()) {
            return Err(RotationError::Entries { rows, columns, entries: entries.len() });
        }
        // A maximum that keeps NaN.
        let larger = |m: f64, e: f64| if m.is_nan() || e.abs() <= m { m } else { e.abs() };
        let column = |i: usize| &entries[i * rows..(i + 1) * rows];
        let pairs = (0..columns).flat_map(|i| (0..=i).map(move |j| (i, j)));
        let error = pairs.map(|(i, j)| dot(column(i), column(j)) - f64::from(i == j)).fold(0.0, larger);
        // Columns that were normalised in doubles are this good.
        if error.is_nan() || error > 1e-12 {
            return Err(RotationError::NotOrthonormal { error });
        }
        let mut checksum = crc32fast::Hasher::new();
        entries.iter().for_each(|x| checksum.update(&x.to_le_bytes()));
        let name = format!("{rows} x {columns} columns {:08x}", checksum.finalize());
        Ok(Self { rows, entries, name })
    }

    /// d.
    pub fn dim(&self) -> usize {
        self.rows
    }

    /// The columns of U, one after another.
    pub fn columns(&self) -> impl Iterator<Item = &[f64]> {
        self.entries.chunks_exact(self.rows)
    }

    pub(super) fn identity(&self) -> &str {
        &self.name
    }

    pub(super) fn fits(&self, chain: usize) -> Result<(), RotationError> {
        let (rows, columns) = (self.rows, self.entries.len() / self.rows);
        if columns == chain { Ok(()) } else { Err(RotationError::Shape { chain, rows, columns }) }
    }

    /// out = U y.
    pub(super) fn apply(&self, y: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        for (column, y) in self.columns().zip(y) {
            out.iter_mut().zip(column).for_each(|(out, u)| *out += u * y);
        }
    }

    /// out = U' x.
    pub(super) fn apply_transpose(&self, x: &[f64], out: &mut [f64]) {
        for (out, column) in out.iter_mut().zip(self.columns()) {
            *out = dot(column, x);
        }
    }
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// Makes the columns orthonormal, each by those before it. Twice, since what rounding leaves after the first time is of the
/// size of the cancellation, and after the second of the size of an ulp.
fn orthonormalise(entries: &mut [f64], rows: usize) {
    for start in (0..entries.len()).step_by(rows) {
        let (before, rest) = entries.split_at_mut(start);
        let column = &mut rest[..rows];
        for _ in 0..2 {
            for other in before.chunks_exact(rows) {
                let along = dot(other, column);
                column.iter_mut().zip(other).for_each(|(c, o)| *c -= along * o);
            }
            let norm = dot(column, column).sqrt();
            column.iter_mut().for_each(|c| *c /= norm);
        }
    }
}
