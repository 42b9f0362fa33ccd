//! Whose samples a run draws.

use std::sync::Arc;

use pasta_opt::oracle::{About, Oracle};
use pasta_opt::run::{KnownTable, Problem};
use pasta_opt::table::Linear;
use pyo3::prelude::*;

use crate::native::Native;
use crate::oracle::{Line, Remote};

/// Whose samples a run draws.
#[derive(Clone)]
pub(crate) enum OracleSource {
    /// A Python function's. Whether it answers for several samples at once, and whether it gives losses; `None` where one sample is to show it.
    Python { identity: String, dim: usize, batched: bool, losses: Option<bool>, pathwise: bool },
    /// An oracle's of this library: Python is not called.
    Library { oracle: Arc<dyn Oracle>, table: Option<Arc<Linear>> },
}

impl OracleSource {
    /// What `pasta_opt._oracle.Leaves` stand for.
    pub(crate) fn of(leaves: &Bound<'_, PyAny>) -> PyResult<Self> {
        let native: Option<Py<Native>> = leaves.getattr("native")?.extract()?;
        Ok(match native {
            Some(native) => {
                let native = native.get();
                Self::Library { oracle: Arc::clone(&native.oracle), table: native.linear.clone() }
            }
            None => Self::Python {
                identity: leaves.getattr("identity")?.extract()?,
                dim: leaves.getattr("dim")?.extract()?,
                batched: leaves.getattr("batched")?.extract()?,
                losses: leaves.getattr("losses")?.extract()?,
                pathwise: leaves.getattr("pathwise")?.extract()?,
            },
        })
    }

    /// Whether it gives losses, if that is known.
    pub(crate) fn losses(&self) -> Option<bool> {
        match self {
            Self::Python { losses, .. } => *losses,
            Self::Library { oracle, .. } => Some(oracle.about().losses),
        }
    }

    /// The problem of minimising it from a start.
    pub(crate) fn problem(&self, losses: bool, start: Vec<f64>, line: &Line) -> Problem {
        let table = match self {
            Self::Library { table, .. } => table.clone().map(KnownTable::new),
            Self::Python { .. } => None,
        };
        Problem { table, ..Problem::of(self.oracle(losses, line), start) }
    }

    /// The oracle, which asks Python through the line where it has to.
    pub(crate) fn oracle(&self, losses: bool, line: &Line) -> Arc<dyn Oracle> {
        match self {
            Self::Library { oracle, .. } => Arc::clone(oracle),
            Self::Python { identity, dim, batched, pathwise, .. } => {
                // Each sample has a generator of its own, unless a call gets one for all of its samples.
                let (additive, pathwise) = (!batched, *pathwise);
                let about = About { losses, additive, pathwise, ..About::stream(*dim, identity.clone()) };
                Arc::new(Remote { about, line: line.clone() })
            }
        }
    }
}
