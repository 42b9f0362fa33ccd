//! What can be wrong with a file, and where.

use std::fmt;

/// What is wrong with a file, and where.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadError {
    /// The file, as it was named.
    pub file: String,
    /// The line, from 1.
    pub line: Option<u64>,
    /// The byte of the line, from 1; in a CSV file the number of the column.
    pub column: Option<u64>,
    /// What is wrong.
    pub fault: Fault,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The system failed.
    #[error("{0}")]
    System(String),
    /// A compressed file ends too early, or is damaged.
    #[error("the {0} data is cut short or damaged: {1}")]
    Compressed(&'static str, String),
    /// There is nothing to learn from.
    #[error("it has no rows")]
    Empty,
    /// Nothing is left of it.
    #[error("each of its {0} rows lacks a value, so none is left")]
    Dropped(u64),
    /// A column without a single value, whose mean or median is wanted.
    #[error("column {0:?} has no value in any row, so nothing can be filled in")]
    NoValues(String),
    /// A column without a name, in a file with names.
    #[error("column {0} has no name")]
    Unnamed(usize),
    /// Something that no table is, or in an encoding that is not read.
    #[error("{0}")]
    Kind(&'static str),
    /// There are rows without any feature.
    #[error("its rows have no features")]
    NoFeatures,
    /// Something else than a number.
    #[error("expected {expected}, found {found:?}")]
    Expected {
        /// What belongs there.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// Bytes that are no text.
    #[error("expected text, found the byte 0x{0:02x}, which is not UTF-8")]
    NotText(u8),
    /// NaN or infinity.
    #[error("expected a finite number, found {0}")]
    NotFinite(String),
    /// A finite number that cannot be kept.
    #[error("{found} is too large for {kept}")]
    TooLarge {
        /// The number.
        found: String,
        /// What it was to be kept as.
        kept: &'static str,
    },
    /// Indices of a row that go back.
    #[error("index {index} comes after {before}; the indices of a row must increase")]
    Order {
        /// The index before.
        before: u64,
        /// This one.
        index: u64,
    },
    /// The same index twice in a row.
    #[error("index {0} appears twice in this row")]
    Duplicate(u64),
    /// An index that is too large to be one, or larger than the table.
    #[error("index {index} is beyond {most}, the largest there can be")]
    Beyond {
        /// The index.
        index: u64,
        /// The largest.
        most: u64,
    },
    /// Index 0 where the first column is 1.
    #[error("index 0 in a file whose first column is 1")]
    ZeroIndex,
    /// A group of a ranking.
    #[error("query groups (qid) have no meaning for a loss that looks at one row at a time")]
    Query,
    /// A row that is shorter or longer than the first.
    #[error("{}, but the first line has {expected}", columns(*.found))]
    Ragged {
        /// The columns of the first line.
        expected: usize,
        /// The columns of this.
        found: usize,
    },
    /// No value.
    #[error("column {column:?} has no value here ({found:?})")]
    Missing {
        /// The column.
        column: String,
        /// What stands there.
        found: String,
    },
    /// No value, and the model that the table is read for knows none to put there.
    #[error("column {column:?} has no value here ({found:?}), and the model has none to put there")]
    NoFill {
        /// The column.
        column: String,
        /// What stands there.
        found: String,
    },
    /// No label.
    #[error("the label {column:?} has no value here ({found:?})")]
    NoLabel {
        /// The column of labels.
        column: String,
        /// What stands there.
        found: String,
    },
    /// A word in a column of numbers, where columns are made of words.
    #[error("column {column:?} holds {numbers} different numbers, but {found:?} here")]
    Stray {
        /// The column.
        column: String,
        /// What stands there.
        found: String,
        /// How many different numbers there are.
        numbers: usize,
    },
    /// Two labels that are one number, where each text is the name of a class.
    #[error("the labels {first:?} and {second:?} are the same number: one class or two?")]
    Alike {
        /// What stands there first.
        first: String,
        /// What stands here.
        second: String,
    },
    /// Text where numbers are wanted.
    #[error("column {column:?}: expected a number, found {found:?}")]
    Text {
        /// The column.
        column: String,
        /// What stands there.
        found: String,
    },
    /// A category that the model has not seen.
    #[error("column {column:?}: {found:?} is not one of its {known} categories")]
    Category {
        /// The column.
        column: String,
        /// What stands there.
        found: String,
        /// How many there are.
        known: usize,
    },
    /// More categories than can be told apart.
    #[error("column {column:?} has more than {most} categories")]
    Categories {
        /// The column.
        column: String,
        /// The most there can be.
        most: u32,
    },
    /// A dense table that is too large.
    #[error("a dense table of {rows} x {columns} values does not fit into memory")]
    Memory {
        /// Its rows.
        rows: usize,
        /// Its columns.
        columns: usize,
    },
    /// A table that takes more memory than it may.
    #[error("the table takes at least {needed} bytes of memory, and the limit is {limit}")]
    Limit {
        /// The bytes that it takes at least.
        needed: u64,
        /// The most that it may take.
        limit: u64,
    },
    /// The system has no more memory.
    #[error("there is no memory for {0} bytes")]
    OutOfMemory(u64),
    /// An index that makes a table wider than its text is long.
    #[error("index {index} makes {index} columns or so of a text of {bytes} bytes")]
    Width {
        /// The largest index.
        index: u64,
        /// The bytes of the text.
        bytes: u64,
    },
    /// Two features with one name.
    #[error("two features would be called {0:?}: a column, and a word of another column")]
    TwoFeatures(String),
    /// A quotation mark where none belongs.
    #[error("{0}")]
    Quote(&'static str),
    /// A line, or a record with line ends in quotation marks, that is too long.
    #[error("a line is longer than {0} bytes, the most that is read; is this a table?")]
    Long(usize),
    /// It is not said which column is the label.
    #[error("which column is the label? The file has {0}")]
    WhichLabel(String),
    /// A column that is not there.
    #[error("there is no column {name:?}; the file has {}", listed(.columns))]
    NoColumn {
        /// What was asked for.
        name: String,
        /// What there is.
        columns: Vec<String>,
    },
    /// A name that two columns have.
    #[error("two columns are called {0:?}")]
    TwoColumns(String),
    /// A column that the model does not know.
    #[error("column {name:?} is unknown; expected {}", listed(.expected))]
    UnknownColumn {
        /// The column.
        name: String,
        /// Those that are known.
        expected: Vec<String>,
    },
    /// Another number of columns than is needed.
    #[error("{} of features, but the number needed is {expected}", columns(*.found))]
    Columns {
        /// What is needed.
        expected: usize,
        /// What is there.
        found: usize,
    },
    /// A numpy file of another kind.
    #[error("{0}")]
    Numpy(String),
    /// A cache that cannot be written or mapped.
    #[error("the cache {0}: {1}")]
    Cache(String, String),
    /// A cache whose files are not those that were written.
    #[error("the cache {0} is damaged: {1}; delete the folder, and it is written again")]
    Damaged(String, String),
    /// A choice that this kind of file does not have.
    #[error("{0}")]
    Choice(String),
}

impl Fault {
    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Category { .. } => {
                "pasta predict --unseen takes such words for missing values, and counts them"
            }
            Self::Query => "remove the qid: pairs",
            Self::Missing { .. } => {
                "--missing mean, median or zero fills it, --missing drop-row leaves the row out"
            }
            Self::NoFill { .. } => "--missing when it is fitted; --missing drop-row leaves the row out here",
            Self::Alike { .. } => "write one class in one way, and put a letter before numbers that are two",
            Self::NoLabel { .. } => "labels are never filled in; --missing drop-row leaves the row out",
            Self::Unnamed(_) => {
                "--ignore with its number leaves it out (it may be a column of row numbers); --header no takes the first line for a row"
            }
            Self::UnknownColumn { .. } | Self::NoValues(_) => "--ignore leaves the column out",
            Self::NoColumn { columns, .. } if numbered(columns) => {
                "a first line of numbers is a row; --header yes takes it for names"
            }
            Self::Text { found, .. } if is_nearly_a_number(found) => {
                "numbers have a decimal point, no separators of thousands and no unit"
            }
            Self::Stray { .. } => {
                "an empty cell counts as missing, and --missing says what becomes of it; --categories COLUMN makes a category of each value, numbers too; \
                 --ignore leaves the column out"
            }
            Self::Text { .. } => {
                "--one-hot makes a column of zeros and ones for each word; --ignore leaves the column out"
            }
            // Not where the index is too large for any table.
            Self::Beyond { most, .. } if *most + 1 < u64::from(u32::MAX) => {
                "columns that a model did not see have no weight in it; --columns N, when it is fitted, says how many there are"
            }
            Self::WhichLabel(_) => "--label NAME, or a number, from 1",
            Self::Memory { .. } => "--storage sparse keeps only what is not zero",
            Self::Limit { .. } => {
                "--memory SIZE allows more; --cache maps a plain file of text from the disk instead; --precision f32 halves it"
            }
            Self::Width { .. } => "--columns N says how many columns there are",
            Self::TwoFeatures(_) => "rename the column, or leave it out with --ignore",
            Self::Categories { .. } => "leave it out with --ignore",
            Self::Cache(..) => "--cache=FOLDER puts it elsewhere",
            Self::TooLarge { kept, .. } if *kept == <f32 as crate::number::Number>::NAME => {
                "--precision f64 holds larger numbers"
            }
            _ => return None,
        })
    }

    pub(crate) fn at(self, column: usize) -> Misfit {
        Misfit { column: Some(column as u64 + 1), fault: self }
    }
}

/// A fault within a line.
#[derive(Debug)]
pub(crate) struct Misfit {
    pub(crate) column: Option<u64>,
    pub(crate) fault: Fault,
}

impl From<Fault> for Misfit {
    fn from(fault: Fault) -> Self {
        Self { column: None, fault }
    }
}

/// A fault within a file.
#[derive(Debug)]
pub(crate) struct Located {
    pub(crate) line: Option<u64>,
    pub(crate) column: Option<u64>,
    pub(crate) fault: Fault,
}

impl Misfit {
    pub(crate) fn in_line(self, line: u64) -> Located {
        Located { line: Some(line), column: self.column, fault: self.fault }
    }
}

impl From<Fault> for Located {
    fn from(fault: Fault) -> Self {
        Self { line: None, column: None, fault }
    }
}

impl Located {
    pub(crate) fn in_file(self, file: &str) -> ReadError {
        let Self { line, column, fault } = self;
        ReadError { file: file.to_owned(), line, column, fault }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file)?;
        for place in [self.line, self.column].into_iter().flatten() {
            write!(f, "{place}:")?;
        }
        write!(f, " {}", self.fault)
    }
}

impl std::error::Error for ReadError {}

/// What bytes are, for a message: text, cut where it is long.
pub(crate) fn shown(bytes: &[u8]) -> Result<String, Fault> {
    const LONGEST: usize = 40;
    let cut = &bytes[..bytes.len().min(LONGEST)];
    match std::str::from_utf8(cut) {
        Ok(text) => Ok(text.to_owned()),
        // A letter that was cut in two.
        Err(error) if cut.len() < bytes.len() && error.valid_up_to() + 4 > cut.len() => {
            Ok(String::from_utf8_lossy(&cut[..error.valid_up_to()]).into_owned())
        }
        Err(error) => Err(Fault::NotText(cut[error.valid_up_to()])),
    }
}

/// Whether a word would be a number but for a comma, a blank, a unit or the like.
fn is_nearly_a_number(word: &str) -> bool {
    let kept: String = word.chars().filter(|letter| !",'_ %$€£\u{a0}".contains(*letter)).collect();
    crate::number::whole(kept.as_bytes()).is_some_and(f64::is_finite)
}

/// 1 column, 2 columns.
fn columns(count: usize) -> String {
    format!("{count} column{}", if count == 1 { "" } else { "s" })
}

/// Whether columns have numbers for want of names.
fn numbered(columns: &[String]) -> bool {
    columns.iter().zip(1..).all(|(column, k): (_, usize)| *column == k.to_string())
}

/// "a, b, c, .. (17 in all)".
pub(crate) fn listed(names: &[String]) -> String {
    const SHOWN: usize = 12;
    const LONGEST: usize = 40;
    let cut = |name: &String| match name.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}..", &name[..end]),
        None => name.clone(),
    };
    let shown = names.iter().take(SHOWN).map(cut).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN { format!("{shown}, .. ({} in all)", names.len()) } else { shown }
}
