//! How the columns of a file become columns of numbers: learnt from one file, used on others.

use serde::{Deserialize, Serialize};

/// How the columns of a file become columns of numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Encoding {
    /// The columns of the file that are features, in their order.
    pub columns: Vec<Code>,
    /// Whether the columns have names of their own: then they are matched by name, in any order.
    pub named: bool,
    /// The index of the first column in a LIBSVM file, 0 or 1; `None` for other files.
    pub first_index: Option<u32>,
}

/// What becomes of a column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Code {
    /// Its name; its number, from 1, in a file without names.
    pub name: String,
    /// What stands for a value that is missing; `None` where none may be.
    pub fill: Option<f64>,
    /// For a column of words: each becomes a column that is 1 where the word stands, and 0 elsewhere.
    pub categories: Option<Vec<String>>,
}

impl Encoding {
    /// Columns of numbers without names.
    pub(crate) fn unnamed(columns: usize, first_index: Option<u32>) -> Self {
        let first = first_index.unwrap_or(1) as usize;
        let code = |k: usize| Code { name: (k + first).to_string(), fill: None, categories: None };
        Self { columns: (0..columns).map(code).collect(), named: false, first_index }
    }

    /// The names of the columns of numbers: `colour=red` for a word.
    pub fn names(&self) -> Vec<String> {
        let names = self.columns.iter().flat_map(|code| match &code.categories {
            None => vec![code.name.clone()],
            Some(words) => words.iter().map(|word| format!("{}={word}", code.name)).collect(),
        });
        names.collect()
    }

    /// How many columns of numbers there are.
    pub fn width(&self) -> usize {
        self.columns.iter().map(|code| code.categories.as_ref().map_or(1, Vec::len)).sum()
    }
}
