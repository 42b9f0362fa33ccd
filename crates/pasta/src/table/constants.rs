//! The constants that are proved of a loss on a table.

use serde::Serialize;

use super::{Linear, TableError};
use crate::recipe::{Constant, Constants};

/// A constant with the argument that proves it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProvedConstant {
    /// Which constant.
    pub constant: Constant,
    /// Its value: an upper bound, or a lower bound for mu.
    pub value: f64,
    /// Why it holds.
    pub how: String,
}

/// What is proved of a loss on a table.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Proved {
    /// The constants that recipes use.
    pub constants: Vec<ProvedConstant>,
    /// The largest smoothness constant of a single row.
    pub row_smoothness: Option<f64>,
}

impl Proved {
    /// The value of a constant, if it is proved.
    pub fn get(&self, constant: Constant) -> Option<f64> {
        self.constants.iter().find(|proved| proved.constant == constant).map(|proved| proved.value)
    }
}

impl From<&Proved> for Constants {
    fn from(proved: &Proved) -> Self {
        let mut constants = Self::default();
        proved.constants.iter().for_each(|proved| constants.set(proved.constant, proved.value));
        constants
    }
}

impl Linear {
    /// The constants that are proved for a run from this start.
    pub fn constants(&self, start: &[f64]) -> Result<Proved, TableError> {
        if start.len() != self.dim() {
            let (needs, got) = (self.dim(), start.len());
            return Err(TableError::Shape { what: "coordinates of the start", needs, got });
        }
        Ok(Proved::default())
    }
}
