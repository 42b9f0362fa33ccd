//! How the columns of a file become columns of numbers: learnt from one file, used on others.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::fault::Fault;

/// How the columns of a file become columns of numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Encoding {
    /// Columns of numbers that have only numbers for names: those of a LIBSVM file or an array.
    Numbered {
        /// How many there are.
        columns: usize,
        /// The index of the first in a LIBSVM file, 0 or 1; `None` for an array.
        first_index: Option<u32>,
    },
    /// The columns of a CSV file.
    Cells {
        /// Those that are features, in their order.
        columns: Vec<Code>,
        /// Whether they have names of their own: then they are matched by name, in any order.
        named: bool,
        /// Pairs of them whose products are features, too, behind all others.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        interactions: Vec<[String; 2]>,
    },
}

/// What becomes of a column of a CSV file.
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

impl Code {
    fn width(&self) -> usize {
        self.categories.as_ref().map_or(1, Vec::len)
    }
}

impl Encoding {
    /// The names of the columns of numbers: `colour=red` for a word; numbers where they have none.
    pub fn names(&self) -> Vec<String> {
        match self {
            Self::Numbered { columns, first_index } => {
                let first = first_index.unwrap_or(1) as usize;
                (first..first + columns).map(|k| k.to_string()).collect()
            }
            Self::Cells { columns, interactions, .. } => {
                let names = columns.iter().flat_map(|code| match &code.categories {
                    None => vec![code.name.clone()],
                    Some(words) => words.iter().map(|word| format!("{}={word}", code.name)).collect(),
                });
                let mut names: Vec<String> = names.collect();
                let products: Vec<String> = products(columns, interactions)
                    .into_iter()
                    .map(|[a, b]| format!("{}:{}", names[a], names[b]))
                    .collect();
                names.extend(products);
                names
            }
        }
    }

    /// Where the columns of numbers stand among those of an encoding that [grew](crate::Options::grow) from this one.
    pub fn places_in(&self, wider: &Self) -> Vec<usize> {
        let (Self::Cells { columns, .. }, Self::Cells { columns: more, .. }) = (self, wider) else {
            return (0..self.width()).collect();
        };
        let mut begin = 0;
        let mut places = Vec::new();
        for (code, more) in columns.iter().zip(more) {
            places.extend(begin..begin + code.width());
            begin += more.width();
        }
        places
    }

    /// How many columns of numbers there are.
    pub fn width(&self) -> usize {
        match self {
            Self::Numbered { columns, .. } => *columns,
            Self::Cells { columns, interactions, .. } => {
                columns.iter().map(Code::width).sum::<usize>() + products(columns, interactions).len()
            }
        }
    }

    /// Refuses two columns of numbers with one name: a column `c=r` beside a column `c` with the word `r`.
    pub(crate) fn check_names(&self) -> Result<(), Fault> {
        let Self::Cells { columns, interactions, .. } = self else { return Ok(()) };
        // Names of columns differ, so do words of a column.
        let has_words = columns.iter().any(|code| code.categories.is_some() && columns.len() > 1);
        if !has_words && interactions.is_empty() {
            return Ok(());
        }
        let mut seen = HashSet::new();
        match self.names().into_iter().find(|name| !seen.insert(name.clone())) {
            Some(twice) => Err(Fault::TwoFeatures(twice)),
            None => Ok(()),
        }
    }

    /// Whether columns are matched by name.
    pub fn is_named(&self) -> bool {
        matches!(self, Self::Cells { named: true, .. })
    }

    /// The number of columns of a file without names that it can be used on; `None` if that must have names, or words.
    pub(crate) fn numbers(&self) -> Option<usize> {
        match self {
            Self::Numbered { columns, .. } => Some(*columns),
            Self::Cells { columns, named: false, interactions }
                if interactions.is_empty() && columns.iter().all(|code| code.categories.is_none()) =>
            {
                Some(columns.len())
            }
            Self::Cells { .. } => None,
        }
    }

    /// What becomes of each column of a CSV file.
    pub(crate) fn codes(&self) -> Vec<Code> {
        match self {
            Self::Numbered { .. } => {
                let code = |name| Code { name, fill: None, categories: None };
                self.names().into_iter().map(code).collect()
            }
            Self::Cells { columns, .. } => columns.clone(),
        }
    }
}

/// The columns of numbers, two by two, whose products are features.
pub(crate) fn products(columns: &[Code], interactions: &[[String; 2]]) -> Vec<[usize; 2]> {
    let within = |name: &String| {
        let mut begin = 0;
        for code in columns {
            if code.name == *name {
                return begin..begin + code.width();
            }
            begin += code.width();
        }
        0..0
    };
    let all = interactions.iter().flat_map(|[a, b]| {
        let (left, right) = (within(a), within(b));
        left.flat_map(move |a| right.clone().map(move |b| [a, b]))
    });
    all.collect()
}
