//! How rows are kept while they arrive: dense or sparse, by the density of the first chunk.

use pasta_opt::table::{Dense, Features, Sparse, Values, shared};
use rayon::prelude::*;

use crate::fault::Fault;
use crate::memory::Memory;
use crate::names::Names;
use crate::number::Number;

/// Which layout to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Storage {
    /// Dense where at least half of the values are not zero.
    #[default]
    ByDensity,
    /// Every value.
    Dense,
    /// Only those that are not zero.
    Sparse,
}

/// Rows of a file of pairs, with indices as the file has them.
#[derive(Debug, Default)]
pub(crate) struct Rows<T> {
    pub(crate) labels: Vec<f64>,
    /// What labels stand for that are names of classes.
    pub(crate) names: Names,
    pub(crate) lines: u64,
    /// Bytes of the text.
    pub(crate) bytes: usize,
    /// Pairs of each row.
    pub(crate) counts: Vec<u32>,
    pub(crate) indices: Vec<u32>,
    pub(crate) values: Vec<T>,
    pub(crate) least: Option<u32>,
    pub(crate) most: Option<u32>,
}

/// A matrix that grows by rows and, if it must, by columns.
#[derive(Debug)]
pub(crate) enum Store<T> {
    Empty,
    /// Row-major; the first column is that of index `base`.
    Dense {
        values: Vec<T>,
        columns: usize,
        base: u32,
    },
    /// Indices as in the file.
    Sparse {
        starts: Vec<u64>,
        indices: Vec<u32>,
        values: Vec<T>,
    },
}

/// As dense as this, and zeros are kept too.
pub(crate) const DENSE: f64 = 0.5;
/// A dense matrix that new columns make so sparse is kept no longer.
const THIN: f64 = 0.25;

impl<T: Number> Store<T> {
    /// Takes the rows. `known` is the number of columns, and `base` the first index, where they are known before.
    pub(crate) fn take(
        &mut self,
        rows: Rows<T>,
        storage: Storage,
        known: Option<usize>,
        base: Option<u32>,
        memory: Memory,
    ) -> Result<(), Fault> {
        let (Some(least), Some(most)) = (rows.least, rows.most) else {
            return self.push(&rows, memory);
        };
        if let Self::Empty = self {
            let base = base.unwrap_or_else(|| least.min(1));
            let columns = known.unwrap_or((most - base) as usize + 1);
            let density = rows.values.len() as f64 / (rows.counts.len() as f64 * columns as f64);
            *self = match storage {
                Storage::Dense => Self::Dense { values: Vec::new(), columns, base },
                Storage::ByDensity if density >= DENSE => Self::Dense { values: Vec::new(), columns, base },
                _ => Self::Sparse { starts: vec![0], indices: Vec::new(), values: Vec::new() },
            };
        }
        if let Self::Dense { values, columns, base } = self {
            let new_base = (*base).min(least);
            let needed = ((most.max(*base + (*columns as u32).saturating_sub(1))) - new_base) as usize + 1;
            if needed > *columns {
                let full = values.par_iter().filter(|value| **value != T::default()).count();
                let old = values.len() / *columns;
                let density =
                    (full + rows.values.len()) as f64 / ((old + rows.counts.len()) as f64 * needed as f64);
                if density < THIN && storage == Storage::ByDensity {
                    *self = Self::sparse(values, *columns, *base);
                } else {
                    widen(values, *columns, needed, (*base - new_base) as usize, full, memory)?;
                    (*columns, *base) = (needed, new_base);
                }
            }
        }
        self.push(&rows, memory)
    }

    fn push(&mut self, rows: &Rows<T>, memory: Memory) -> Result<(), Fault> {
        match self {
            // Rows without pairs at the beginning.
            Self::Empty => {
                let mut starts = vec![0];
                starts.resize(rows.counts.len() + 1, 0);
                *self = Self::Sparse { starts, indices: Vec::new(), values: Vec::new() };
            }
            Self::Dense { values, columns, base } => {
                let mut at = 0;
                let begin = values.len();
                let more = room::<T>(rows.counts.len(), *columns, rows.values.len())?;
                memory.grow(values, more)?;
                values.resize(begin + more, T::default());
                for (row, &count) in values[begin..].chunks_exact_mut(*columns).zip(&rows.counts) {
                    let pairs = at..at + count as usize;
                    at = pairs.end;
                    for (index, value) in rows.indices[pairs.clone()].iter().zip(&rows.values[pairs]) {
                        row[(index - *base) as usize] = *value;
                    }
                }
            }
            Self::Sparse { starts, indices, values } => {
                let mut end = starts.last().copied().unwrap_or(0);
                memory.grow(starts, rows.counts.len())?;
                for &count in &rows.counts {
                    end += u64::from(count);
                    starts.push(end);
                }
                memory.grow(indices, rows.indices.len())?;
                indices.extend_from_slice(&rows.indices);
                memory.grow(values, rows.values.len())?;
                values.extend_from_slice(&rows.values);
            }
        }
        Ok(())
    }

    /// A dense matrix as a sparse one.
    fn sparse(values: &[T], columns: usize, base: u32) -> Self {
        let (mut starts, mut indices, mut kept) = (vec![0], Vec::new(), Vec::new());
        for row in values.chunks_exact(columns) {
            for (index, value) in row.iter().enumerate().filter(|(_, value)| **value != T::default()) {
                indices.push(index as u32 + base);
                kept.push(*value);
            }
            starts.push(indices.len() as u64);
        }
        Self::Sparse { starts, indices, values: kept }
    }

    /// The finished matrix with so many columns, the first of which has index `base`.
    pub(crate) fn finish(
        self,
        columns: usize,
        base: u32,
        storage: Storage,
        memory: Memory,
    ) -> Result<Features, Fault> {
        Ok(match self {
            Self::Empty => Features::Dense(Dense { rows: 0, columns, values: T::values(Vec::new()) }),
            Self::Dense { mut values, columns: had, base: was } => {
                if columns > had {
                    let full = values.len();
                    widen(&mut values, had, columns, (was - base) as usize, full, memory)?;
                }
                Features::Dense(Dense { rows: values.len() / columns, columns, values: T::values(values) })
            }
            Self::Sparse { starts, mut indices, values } => {
                indices.par_iter_mut().for_each(|index| *index -= base);
                if storage == Storage::Dense {
                    return spread(&starts, &indices, &values, columns, memory);
                }
                Features::Sparse(Sparse {
                    columns,
                    starts: shared(starts),
                    indices: shared(indices),
                    values: T::values(values),
                })
            }
        })
    }
}

/// Only where the first rows of a file that is to be dense had nothing in them.
fn spread<T: Number>(
    starts: &[u64],
    indices: &[u32],
    values: &[T],
    columns: usize,
    memory: Memory,
) -> Result<Features, Fault> {
    let rows = starts.len() - 1;
    let mut dense = Vec::new();
    reserve(&mut dense, rows, columns, values.len(), memory)?;
    for (row, window) in dense.chunks_exact_mut(columns).zip(starts.windows(2)) {
        for at in window[0] as usize..window[1] as usize {
            row[indices[at] as usize] = values[at];
        }
    }
    Ok(Features::Dense(Dense { rows, columns, values: T::values(dense) }))
}

/// Gives each row more columns, in place: `before` new ones at its beginning, the others at its end.
pub(crate) fn widen<T: Number>(
    values: &mut Vec<T>,
    columns: usize,
    needed: usize,
    before: usize,
    full: usize,
    memory: Memory,
) -> Result<(), Fault> {
    let rows = values.len() / columns;
    reserve(values, rows, needed, full, memory)?;
    // From the last row on, no value is written over before it is moved.
    for row in (0..rows).rev() {
        let to = row * needed;
        values.copy_within(row * columns..(row + 1) * columns, to + before);
        values[to..to + before].fill(T::default());
        values[to + before + columns..to + needed].fill(T::default());
    }
    Ok(())
}

/// Makes a vector as long as a dense matrix in which so many values are not zero, if there is memory for it.
pub(crate) fn reserve<T: Number>(
    values: &mut Vec<T>,
    rows: usize,
    columns: usize,
    full: usize,
    memory: Memory,
) -> Result<(), Fault> {
    let count = room::<T>(rows, columns, full)?;
    memory.allow(count, size_of::<T>())?;
    let reserved = values.try_reserve_exact(count.saturating_sub(values.len()));
    reserved.map_err(|_| Fault::Memory { rows, columns })?;
    values.resize(count, T::default());
    Ok(())
}

/// How many values a dense matrix has. A large one with hardly a value in it is a mistake, which many systems would notice only
/// when there is no memory left.
fn room<T>(rows: usize, columns: usize, full: usize) -> Result<usize, Fault> {
    const LARGE: usize = 1 << 30;
    let bytes = rows.checked_mul(columns).and_then(|count| count.checked_mul(size_of::<T>()));
    match bytes.filter(|bytes| *bytes < LARGE || rows * columns / 1000 < full) {
        Some(_) => Ok(rows * columns),
        None => Err(Fault::Memory { rows, columns }),
    }
}

/// Values in the form of a table, on huge pages where the system has them.
pub(crate) trait IntoValues: Sized {
    fn values(vector: Vec<Self>) -> Values;
}

impl IntoValues for f64 {
    fn values(mut vector: Vec<Self>) -> Values {
        vector.shrink_to_fit();
        vector.into()
    }
}

impl IntoValues for f32 {
    fn values(mut vector: Vec<Self>) -> Values {
        vector.shrink_to_fit();
        vector.into()
    }
}
