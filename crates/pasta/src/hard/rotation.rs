//! Orthonormal columns that hide which directions the chain lives in.

use nalgebra::DMatrix;

use crate::draws::{Address, Role};

/// U: d rows, T orthonormal columns, d >= T.
#[derive(Debug, Clone)]
pub struct Rotation {
    columns: DMatrix<f64>,
    name: String,
}

/// Why there is no rotation.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
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
    /// A rotation drawn from the uniform law, by the QR factors of a Gaussian matrix.
    pub fn random(rows: usize, columns: usize, seed: u64) -> Result<Self, RotationError> {
        if rows < columns || columns == 0 {
            return Err(RotationError::Shape { chain: columns.max(1), rows, columns });
        }
        let mut xi = Address { seed, role: Role::Setup, step: 0, sample: 0 }.stream();
        let gaussian = DMatrix::from_fn(rows, columns, |_, _| xi.normal());
        // R has a positive diagonal, which makes Q unique, and its law that of the Gaussian matrix under rotations.
        let columns_of_q = gaussian.qr().q();
        Ok(Self { columns: columns_of_q, name: format!("random {rows} x {columns}, seed {seed}") })
    }

    /// A rotation with these columns, one after another.
    pub fn from_columns(rows: usize, columns: usize, entries: Vec<f64>) -> Result<Self, RotationError> {
        if rows < columns || columns == 0 {
            return Err(RotationError::Shape { chain: columns.max(1), rows, columns });
        }
        if rows.checked_mul(columns) != Some(entries.len()) {
            return Err(RotationError::Entries { rows, columns, entries: entries.len() });
        }
        let matrix = DMatrix::from_vec(rows, columns, entries);
        let errors = matrix.tr_mul(&matrix) - DMatrix::identity(columns, columns);
        // A maximum that keeps NaN.
        let error = errors.iter().fold(0.0, |m: f64, e| if m.is_nan() || e.abs() <= m { m } else { e.abs() });
        // Columns that were normalised in doubles are this good.
        if error.is_nan() || error > 1e-12 {
            return Err(RotationError::NotOrthonormal { error });
        }
        let mut checksum = crc32fast::Hasher::new();
        matrix.iter().for_each(|x| checksum.update(&x.to_le_bytes()));
        let name = format!("{rows} x {columns} columns {:08x}", checksum.finalize());
        Ok(Self { columns: matrix, name })
    }

    /// d.
    pub fn dim(&self) -> usize {
        self.columns.nrows()
    }

    /// The columns of U, one after another.
    pub fn columns(&self) -> impl Iterator<Item = &[f64]> {
        self.columns.as_slice().chunks_exact(self.dim())
    }

    pub(super) fn identity(&self) -> &str {
        &self.name
    }

    pub(super) fn fits(&self, chain: usize) -> Result<(), RotationError> {
        let (rows, columns) = self.columns.shape();
        if columns == chain { Ok(()) } else { Err(RotationError::Shape { chain, rows, columns }) }
    }

    /// out = U y.
    pub(super) fn apply(&self, y: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        for (column, y) in self.columns.column_iter().zip(y) {
            out.iter_mut().zip(column.iter()).for_each(|(out, u)| *out += u * y);
        }
    }

    /// out = U' x.
    pub(super) fn apply_transpose(&self, x: &[f64], out: &mut [f64]) {
        for (out, column) in out.iter_mut().zip(self.columns.column_iter()) {
            *out = column.iter().zip(x).map(|(u, x)| u * x).sum();
        }
    }
}
