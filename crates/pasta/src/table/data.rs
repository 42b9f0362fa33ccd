//! Tables: rows of features, dense or sparse, with labels and perhaps weights.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::TableError;
use crate::kernels::huge;

/// Numbers that are owned, shared or mapped from a file: whatever can show a slice. It must show the same slice every time.
pub type Shared<T> = Arc<dyn AsRef<[T]> + Send + Sync>;

/// An empty vector with room for so many numbers, on huge pages where the system has them: for readers that know how much comes.
pub fn room<T>(count: usize) -> Vec<T> {
    huge::room(count)
}

/// Shares numbers that are in memory, moved to huge pages where the system has them: what a table read at the speed of memory wants.
/// What was collected in a [`room`] is there already, which saves the time of moving it.
pub fn shared<T: Send + Sync + 'static>(numbers: Vec<T>) -> Shared<T> {
    huge::collapse(&numbers);
    Arc::new(numbers)
}

impl From<Vec<f64>> for Values {
    fn from(values: Vec<f64>) -> Self {
        Self::F64(shared(values))
    }
}

impl From<Vec<f32>> for Values {
    fn from(values: Vec<f32>) -> Self {
        Self::F32(shared(values))
    }
}

/// The values of a table, in double or single precision. All arithmetic is in double precision.
#[derive(Clone)]
pub enum Values {
    /// Double precision.
    F64(Shared<f64>),
    /// Single precision: half the memory, and half the time where memory is the limit.
    F32(Shared<f32>),
}

impl Values {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::F64(values) => (**values).as_ref().len(),
            Self::F32(values) => (**values).as_ref().len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of one value.
    pub fn width(&self) -> usize {
        match self {
            Self::F64(_) => 8,
            Self::F32(_) => 4,
        }
    }

    pub(crate) fn slice(&self) -> Slice<'_> {
        match self {
            Self::F64(values) => Slice::F64((**values).as_ref()),
            Self::F32(values) => Slice::F32((**values).as_ref()),
        }
    }
}

/// The values behind [`Values`], looked up once for many rows.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Slice<'a> {
    F64(&'a [f64]),
    F32(&'a [f32]),
}

impl Slice<'_> {
    #[inline]
    pub(crate) fn get(&self, i: usize) -> f64 {
        match self {
            Self::F64(values) => values[i],
            Self::F32(values) => f64::from(values[i]),
        }
    }

    /// The checksum of these, and whether all are finite numbers: both in one pass, since reading is what takes time. The whole range is looked at, without a
    /// branch for each value.
    fn checksum(&self, range: Range<usize>) -> (u32, bool) {
        let mut hash = crc32fast::Hasher::new();
        let mut finite = true;
        // In chunks that stay in the cache, as bytes in a fixed order on every machine.
        let mut bytes = [0; 8 * 512];
        match self {
            Self::F64(values) => {
                for chunk in values[range].chunks(512) {
                    let room = bytes.as_chunks_mut().0;
                    room.iter_mut().zip(chunk).for_each(|(room, v)| *room = v.to_le_bytes());
                    hash.update(&bytes[..size_of_val(chunk)]);
                    finite &= chunk.iter().fold(true, |all, v| all & v.is_finite());
                }
            }
            Self::F32(values) => {
                for chunk in values[range].chunks(512) {
                    let room = bytes.as_chunks_mut().0;
                    room.iter_mut().zip(chunk).for_each(|(room, v)| *room = v.to_le_bytes());
                    hash.update(&bytes[..size_of_val(chunk)]);
                    finite &= chunk.iter().fold(true, |all, v| all & v.is_finite());
                }
            }
        }
        (hash.finalize(), finite)
    }
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} values of {} bytes", self.len(), self.width())
    }
}

/// All values of all rows, one row after another.
#[derive(Debug, Clone)]
pub struct Dense {
    /// How many rows.
    pub rows: usize,
    /// How many columns.
    pub columns: usize,
    /// `rows` times `columns` values.
    pub values: Values,
}

/// Rows of few non-zero values: compressed sparse rows.
#[derive(Clone)]
pub struct Sparse {
    /// How many columns.
    pub columns: usize,
    /// Where each row starts among the entries, and where the last one ends: one number more than rows.
    pub starts: Shared<u64>,
    /// The column of each entry, increasing within a row.
    pub indices: Shared<u32>,
    /// The value of each entry.
    pub values: Values,
}

impl Sparse {
    /// How many entries are stored.
    pub fn entries(&self) -> usize {
        self.values.len()
    }
}

impl fmt::Debug for Sparse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = (*self.starts).as_ref().len().saturating_sub(1);
        write!(f, "{rows} sparse rows of {} columns: {:?}", self.columns, self.values)
    }
}

/// The features of a table.
#[derive(Debug, Clone)]
pub enum Features {
    /// Every value is stored.
    Dense(Dense),
    /// Zeros are not stored.
    Sparse(Sparse),
}

impl Features {
    /// How many rows there are.
    pub fn rows(&self) -> usize {
        match self {
            Self::Dense(dense) => dense.rows,
            Self::Sparse(sparse) => (*sparse.starts).as_ref().len().saturating_sub(1),
        }
    }

    /// How many columns there are.
    pub fn columns(&self) -> usize {
        match self {
            Self::Dense(dense) => dense.columns,
            Self::Sparse(sparse) => sparse.columns,
        }
    }

    /// How many values are stored.
    pub fn entries(&self) -> usize {
        match self {
            Self::Dense(dense) => dense.values.len(),
            Self::Sparse(sparse) => sparse.values.len(),
        }
    }

    /// Checks shapes, the order of indices, and that every value is finite.
    pub fn check(&self) -> Result<(), TableError> {
        self.checked().map(drop)
    }

    /// The checksum of everything stored, once that is checked.
    fn checked(&self) -> Result<u32, TableError> {
        let (rows, columns) = (self.rows(), self.columns());
        if rows == 0 || columns == 0 {
            return Err(TableError::Empty { rows, columns });
        }
        match self {
            Self::Dense(dense) => dense.check_shape()?,
            Self::Sparse(sparse) => sparse.check()?,
        }
        let (checksum, finite) = self.checksum();
        match self {
            Self::Dense(dense) if !finite => Err(dense.first_not_finite()),
            _ => Ok(checksum),
        }
    }

    /// Calls `visit` with column and value of every stored entry of a row.
    pub fn visit_row(&self, row: usize, mut visit: impl FnMut(usize, f64)) {
        match self {
            Self::Dense(dense) => {
                let values = dense.values.slice();
                (0..dense.columns).for_each(|j| visit(j, values.get(row * dense.columns + j)));
            }
            Self::Sparse(sparse) => {
                let (starts, indices) = ((*sparse.starts).as_ref(), (*sparse.indices).as_ref());
                let values = sparse.values.slice();
                let entries = starts[row] as usize..starts[row + 1] as usize;
                entries.for_each(|k| visit(indices[k] as usize, values.get(k)));
            }
        }
    }

    /// The checksum of everything stored, the same on any number of threads, and whether all values are finite.
    fn checksum(&self) -> (u32, bool) {
        const PART: usize = 1 << 20;
        let values = match self {
            Self::Dense(dense) => dense.values.slice(),
            Self::Sparse(sparse) => sparse.values.slice(),
        };
        let count = self.entries();
        let parts: Vec<(u32, bool)> = (0..count.div_ceil(PART))
            .into_par_iter()
            .map(|part| {
                let range = part * PART..((part + 1) * PART).min(count);
                let mut hash = crc32fast::Hasher::new();
                let (checksum, finite) = values.checksum(range.clone());
                hash.update(&checksum.to_le_bytes());
                if let Self::Sparse(sparse) = self {
                    (*sparse.indices).as_ref()[range].iter().for_each(|j| hash.update(&j.to_le_bytes()));
                }
                (hash.finalize(), finite)
            })
            .collect();
        let mut hash = crc32fast::Hasher::new();
        parts.iter().for_each(|(part, _)| hash.update(&part.to_le_bytes()));
        if let Self::Sparse(sparse) = self {
            (*sparse.starts).as_ref().iter().for_each(|start| hash.update(&start.to_le_bytes()));
        }
        (hash.finalize(), parts.iter().all(|(_, finite)| *finite))
    }
}

/// Rows that one thread checks at a time.
const CHECKED: usize = 4096;

/// The error of the first row that has one.
fn check_rows(
    rows: usize,
    check: impl Fn(Range<usize>) -> Result<(), TableError> + Sync,
) -> Result<(), TableError> {
    let blocks = (0..rows.div_ceil(CHECKED)).into_par_iter();
    let errors = blocks.map(|block| check(block * CHECKED..((block + 1) * CHECKED).min(rows)));
    errors.find_first(Result::is_err).unwrap_or(Ok(()))
}

impl Dense {
    fn check_shape(&self) -> Result<(), TableError> {
        let needs = self.rows.saturating_mul(self.columns);
        match self.values.len() {
            got if got == needs => Ok(()),
            got => Err(TableError::Shape { what: "values", needs, got }),
        }
    }

    /// Names the first value that is not finite, of which there must be one.
    fn first_not_finite(&self) -> TableError {
        let values = self.values.slice();
        let place = (0..self.values.len()).find(|&i| !values.get(i).is_finite()).unwrap_or(0);
        let (row, column) = (place / self.columns, place % self.columns);
        TableError::NotFinite { row, column, value: values.get(place) }
    }
}

impl Sparse {
    fn check(&self) -> Result<(), TableError> {
        let (starts, indices) = ((*self.starts).as_ref(), (*self.indices).as_ref());
        let rows = starts.len() - 1;
        let ordered = |row: usize| {
            let least = if row == 0 { 0 } else { starts[row - 1] };
            let wrong = starts[row] < least || (row == 0 && starts[0] != 0);
            if wrong { Err(TableError::Starts { row, start: starts[row], least }) } else { Ok(()) }
        };
        (0..=rows).try_for_each(ordered)?;
        let got = self.values.len();
        for (what, needs) in [("values", starts[rows]), ("values (as many as indices)", indices.len() as u64)]
        {
            if got as u64 != needs {
                return Err(TableError::Shape { what, needs: needs as usize, got });
            }
        }
        if self.columns > u32::MAX as usize {
            return Err(TableError::Setting {
                name: "columns of a sparse table",
                needs: "below 2^32",
                got: self.columns as f64,
            });
        }
        check_rows(rows, |block| block.into_iter().try_for_each(|row| self.check_row(row)))
    }

    fn check_row(&self, row: usize) -> Result<(), TableError> {
        let (starts, indices) = ((*self.starts).as_ref(), (*self.indices).as_ref());
        let values = self.values.slice();
        let mut previous = None;
        for k in starts[row] as usize..starts[row + 1] as usize {
            let (column, columns, value) = (indices[k] as usize, self.columns, values.get(k));
            if column >= columns {
                return Err(TableError::Column { row, column, columns });
            }
            if let Some(previous) = previous.filter(|&previous| column <= previous) {
                return Err(TableError::Order { row, column, previous });
            }
            if !value.is_finite() {
                return Err(TableError::NotFinite { row, column, value });
            }
            previous = Some(column);
        }
        Ok(())
    }
}

/// Rows of features with a label each, and perhaps a weight.
///
/// ```
/// use std::sync::Arc;
///
/// use pasta_opt::table::{Dense, Features, Table, TableError, Values};
///
/// let table = |values: Vec<f64>| {
///     let features = Features::Dense(Dense { rows: 2, columns: 2, values: Values::F64(Arc::new(values)) });
///     Table::new(features, Arc::new(vec![1.0, 2.0]), None, vec!["height".into(), "age".into()])
/// };
/// assert_eq!(table(vec![1.0, 2.0, 3.0, 4.0])?.rows(), 2);
/// let refused = table(vec![1.0, 2.0, 3.0, f64::INFINITY]).unwrap_err();
/// assert_eq!(refused, TableError::NotFinite { row: 1, column: 1, value: f64::INFINITY });
/// # Ok::<(), TableError>(())
/// ```
#[derive(Clone)]
pub struct Table {
    /// The features.
    pub features: Features,
    /// A label for each row.
    pub labels: Shared<f64>,
    /// A weight for each row, at least 0; all rows weigh the same without.
    pub weights: Option<Shared<f64>>,
    /// The names of the columns; empty if they have none.
    pub names: Vec<String>,
    /// The offsets that labels and weights have [absorbed](super::Loss::absorb), which a likelihood asks for.
    pub offsets: Option<Shared<f64>>,
    checksum: u32,
}

impl Table {
    /// Checks that the parts fit together, and that every number is finite.
    pub fn new(
        features: Features,
        labels: Shared<f64>,
        weights: Option<Shared<f64>>,
        names: Vec<String>,
    ) -> Result<Self, TableError> {
        let checksum = features.checked()?;
        let (rows, columns) = (features.rows(), features.columns());
        let shape = |what, needs, got| {
            if needs == got { Ok(()) } else { Err(TableError::Shape { what, needs, got }) }
        };
        shape("labels", rows, (*labels).as_ref().len())?;
        if let Some((row, &value)) = (*labels).as_ref().iter().enumerate().find(|(_, y)| !y.is_finite()) {
            return Err(TableError::Label { row, value, needs: "labels are finite numbers".into() });
        }
        if !names.is_empty() {
            shape("names", columns, names.len())?;
        }
        if let Some(weights) = &weights {
            let weights = (**weights).as_ref();
            shape("weights", rows, weights.len())?;
            if let Some((row, &value)) =
                weights.iter().enumerate().find(|(_, w)| !(w.is_finite() && **w >= 0.0))
            {
                return Err(TableError::Weight { row, value });
            }
            let sum: f64 = weights.iter().sum();
            if !(sum > 0.0 && sum.is_finite()) {
                return Err(TableError::Weights { sum });
            }
        }
        let mut hash = crc32fast::Hasher::new();
        hash.update(&checksum.to_le_bytes());
        hash.update(&Slice::F64((*labels).as_ref()).checksum(0..rows).0.to_le_bytes());
        if let Some(weights) = &weights {
            hash.update(&Slice::F64((**weights).as_ref()).checksum(0..rows).0.to_le_bytes());
        }
        Ok(Self { features, labels, weights, names, offsets: None, checksum: hash.finalize() })
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.features.rows()
    }

    /// How many columns there are.
    pub fn columns(&self) -> usize {
        self.features.columns()
    }

    /// The checksum of features, labels and weights.
    pub fn checksum(&self) -> u32 {
        self.checksum
    }

    /// The name of a column, or its number.
    pub fn name(&self, column: usize) -> String {
        self.names.get(column).cloned().unwrap_or_else(|| column.to_string())
    }

    pub(super) fn label_slice(&self) -> &[f64] {
        (*self.labels).as_ref()
    }

    pub(super) fn weight_slice(&self) -> Option<&[f64]> {
        self.weights.as_ref().map(|weights| (**weights).as_ref())
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("features", &self.features)
            .field("weighted", &self.weights.is_some())
            .field("names", &self.names)
            .field("checksum", &self.checksum)
            .finish_non_exhaustive()
    }
}
