//! The files of `pasta`: problem files ([`spec`]), models and tables with a loss ([`table`]), and the tables themselves: LIBSVM and SVMlight text, CSV, NPY and NPZ, the texts also compressed by gzip or zstd; and Parquet with the feature `parquet`.
//!
//! ```
//! use std::sync::Arc;
//! use pasta_io::{Options, Source, read};
//!
//! let text = "price,rooms,colour\n3.5,2,red\n4.1,3,blue\n";
//! let options = Options { label: Label::Column("price".into()), one_hot: true, ..Options::default() };
//! # use pasta_io::Label;
//! let data = read(&Source::Bytes("houses".into(), Arc::from(text.as_bytes())), &options, None, &|_, _| {})?;
//! assert_eq!(data.encoding.names(), ["rooms", "colour=blue", "colour=red"]);
//! assert_eq!(data.labels, Some(vec![3.5, 4.1]));
//! # Ok::<(), pasta_io::ReadError>(())
//! ```
//!
//! Text is parsed on all threads, in chunks of whole lines, and the rows are the same for any number of threads. What is wrong
//! with a file is said with line and column.

mod blocks;
mod cache;
mod csv;
mod encoding;
mod failure;
mod fault;
mod libsvm;
pub mod limits;
mod memory;
mod names;
mod nearest;
mod number;
mod numpy;
#[cfg(feature = "parquet")]
mod parquet;
mod source;
pub mod spec;
mod store;
pub mod table;
mod talk;
pub mod words;
pub mod world;
mod write;

use pasta_opt::table::Features;

pub use blocks::Blocks;
pub use cache::{Cached, Notify, cached, pick_up, put_down};
pub use encoding::{Code, Encoding};
pub use failure::{Exit, Failure, safe};
use fault::Located;
pub use fault::{Fault, ReadError};
pub use names::is_same_number;
pub use nearest::nearest;
pub use numpy::{vector_from_npy, vector_to_npy};
use source::{Chunks, Opened};
pub use source::{Source, Watch};
pub use store::Storage;
pub use talk::{Listener, is_muted, listen, mute};
pub use write::{make_folder, write, write_file};

/// What a file holds.
#[derive(Debug, Clone)]
pub struct Data {
    /// The columns of numbers.
    pub features: Features,
    /// A number for each row; `None` where the file has no column of labels and none is needed.
    pub labels: Option<Vec<f64>>,
    /// A weight for each row.
    pub weights: Option<Vec<f64>>,
    /// What each row adds to its score, if there is a column of that.
    pub offsets: Option<Vec<f64>>,
    /// How the columns became numbers.
    pub encoding: Encoding,
    /// The name of the column of labels; its number, from 1, in a file without names. Empty where it has neither.
    pub label: String,
    /// For labels that are words, and for all that are [names of classes](Meaning::Classes): label k stands for the k-th. Numbers are in the
    /// order of their size; where there is a word, all are in the order of the alphabet.
    pub classes: Vec<String>,
    /// Rows that were left out because something was missing, by their number in the file, from 0.
    pub left_out: Vec<u64>,
    /// Cells of the other rows that were missing and were filled in.
    pub filled: u64,
    /// The columns of the file in which cells were missing, filled in or not, and how many were.
    pub missing: Vec<(String, u64)>,
    /// Columns in which words stand that the encoding has not seen, where [that is allowed](Options::unseen).
    pub unseen: Vec<Unseen>,
    /// Columns of numbers in a CSV file in which some are written like codes, with zeros in front or more digits than a double keeps, and the first of these.
    pub written_as_codes: Vec<(String, String)>,
    /// Whether the columns are mapped from a file, so that they take no memory of their own.
    pub mapped: bool,
}

/// Words of a column that the encoding has not seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unseen {
    /// The name of the column.
    pub column: String,
    /// How many cells hold such words.
    pub cells: u64,
    /// The first few of them.
    pub words: Vec<String>,
}

/// The kinds of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `label index:value ..`
    Libsvm,
    /// Columns with a delimiter between them.
    Csv,
    /// An array of numpy.
    Npy,
    /// Several arrays of numpy: `X`, and `y` or other names.
    Npz,
}

/// Which column is the label.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Label {
    /// That of a LIBSVM file, the array `y`, or the one column that is called label, target, class or y.
    #[default]
    Usual,
    /// The column of this name, or of this number, from 1.
    Column(String),
    /// The same if it is there: a file to predict needs no labels.
    IfThere(String),
}

/// What labels mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Meaning {
    /// Numbers, unless there are words among them.
    #[default]
    Numbers,
    /// Names of classes, as the file writes them, also where they look like numbers: `02139` is not `2139`. `+1` is `1`; other texts that are the same
    /// number, such as `1` and `1.0`, are refused, but not in a file that is read by the encoding of another.
    Classes,
}

/// What becomes of values that are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Missing {
    /// Nothing: the file is refused.
    #[default]
    Refuse,
    /// The mean of the column stands for them.
    Mean,
    /// The median of the column.
    Median,
    /// Zero.
    Zero,
    /// Their rows are left out.
    DropRow,
}

/// How values are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// Doubles.
    F64,
    /// Floats of 32 bits.
    F32,
}

/// What to know about a file that it does not say itself.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Its kind; by its first bytes, its name and its first line if not given.
    pub format: Option<Format>,
    /// Which column is the label.
    pub label: Label,
    /// What labels mean.
    pub meaning: Meaning,
    /// NPY and NPZ: another file with the labels, an array of one dimension.
    pub labels: Option<Source>,
    /// A column of weights, by name or number.
    pub weight: Option<String>,
    /// CSV: a column of [offsets](Data::offsets), by name or number.
    pub offset: Option<String>,
    /// Columns to leave out, by name or number.
    pub ignore: Vec<String>,
    /// CSV: whether the first line holds names. If not given, it does where no cell of it is a number, and where all its cells differ and one of them is a word
    /// above nothing but numbers in the first 100 rows, or is called as labels are (label, target, class, y) and is no label there.
    pub header: Option<bool>,
    /// CSV: what stands between columns; if not given, what the first line has most of.
    pub delimiter: Option<u8>,
    /// CSV: what becomes of missing values.
    pub missing: Missing,
    /// CSV: make columns of zeros and ones of words. A column that has words beside more than 20 different numbers is refused.
    pub one_hot: bool,
    /// CSV: columns that hold categories, by name or number: zeros and ones are made of all that they hold, of numbers too, and of `None`, `N/A`, `n/a` and `.`,
    /// which mean a missing value elsewhere.
    pub categories: Vec<String>,
    /// CSV: pairs of columns whose products are features, too, as `a:b`. The words of a column each have their own.
    pub interact: Vec<String>,
    /// True if a word that the encoding has not seen counts as a value that is missing, and is [counted](Data::unseen), instead of being refused.
    pub unseen: bool,
    /// LIBSVM: the index of the first column, 0 or 1; if not given, 0 where that appears and 1 elsewhere.
    pub first_index: Option<u32>,
    /// LIBSVM: how many columns there are; if not given, as many as appear, and at most as many as the text has bytes, or 2^20.
    pub columns: Option<usize>,
    /// True if a table that is read by the encoding of another may have words, and columns of LIBSVM, that the other has not. They are added to the
    /// [encoding](Data::encoding).
    pub grow: bool,
    /// The most bytes of memory that the table may take; no limit if not given.
    pub memory: Option<u64>,
    /// Dense or sparse.
    pub storage: Storage,
    /// How values are kept; doubles if not given, or as an NPY file has them.
    pub precision: Option<Precision>,
}

/// Reads a table. With an `encoding` its columns become numbers in the way of another table.
pub fn read(
    source: &Source,
    options: &Options,
    encoding: Option<&Encoding>,
    watch: Watch<'_>,
) -> Result<Data, ReadError> {
    let read = || -> Result<Data, Located> {
        let opened = source.open()?;
        if opened.head.is_empty() {
            return Err(Fault::Empty.into());
        }
        match binary(&opened).or(options.format) {
            Some(Format::Npy) => numpy::read_npy(source, opened, options, encoding),
            Some(Format::Npz) => numpy::read_npz(source, opened, options, encoding),
            #[cfg(feature = "parquet")]
            _ if opened.head.starts_with(b"PAR1") => parquet::read(source, opened, options, encoding, watch),
            format => text(source, opened, format, options, encoding, watch),
        }
    };
    read().map_err(|located| located.in_file(&source.name()))
}

/// The kind of a binary file, by its first bytes.
fn binary(opened: &Opened) -> Option<Format> {
    match &opened.head[..] {
        [0x93, b'N', b'U', b'M', b'P', b'Y'] => Some(Format::Npy),
        [b'P', b'K', 3 | 5, 4 | 6, ..] => Some(Format::Npz),
        _ => None,
    }
}

fn text(
    source: &Source,
    opened: Opened,
    format: Option<Format>,
    options: &Options,
    encoding: Option<&Encoding>,
    watch: Watch<'_>,
) -> Result<Data, Located> {
    if opened.head.starts_with(b"PAR1") {
        return Err(Fault::Choice(
            "this is a Parquet file, and the program was built without the feature parquet; write it as CSV or NPY".into(),
        )
        .into());
    }
    if options.labels.is_some() {
        let message = "labels in a file of their own are for NPY and NPZ; a text has them in a column";
        return Err(Fault::Choice(message.into()).into());
    }
    let mut chunks = Chunks::of(opened.unpacked());
    let format = kind_of_text(source, &mut chunks, format)?;
    parse(format, chunks, options, encoding, watch)
}

/// The kind of a text, by its name or its first line where it is not given.
fn kind_of_text(source: &Source, chunks: &mut Chunks, format: Option<Format>) -> Result<Format, Fault> {
    if let Some(what) = no_table(chunks.peek()?) {
        return Err(Fault::Kind(what));
    }
    let stem = source.stem();
    let ends = |endings: &[&str]| endings.iter().any(|ending| stem.ends_with(ending));
    Ok(match format {
        Some(format) => format,
        None if ends(&[".csv", ".tsv"]) => Format::Csv,
        None if ends(&[".svm", ".libsvm", ".svmlight"]) => Format::Libsvm,
        None if libsvm::looks_so(chunks.peek()?) => Format::Libsvm,
        None => Format::Csv,
    })
}

/// What a text is that is no table, by its beginning: what the first line would be called by a reader of tables leads astray.
fn no_table(text: &[u8]) -> Option<&'static str> {
    const LOOKED_AT: usize = 1 << 12;
    let head = &text[..text.len().min(LOOKED_AT)];
    let has_lines = memchr::memchr(b'\n', text).is_some();
    let first = text.trim_ascii_start();
    Some(match head {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "this is text in UTF-16; write it in UTF-8",
        [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, ..] => {
            "this is compressed by bzip2; gzip and zstd are read"
        }
        [0xfd, b'7', b'z', b'X', b'Z', ..] => "this is compressed by xz; gzip and zstd are read",
        [0x1f, 0x8b, ..] => "this is compressed twice; unpack it once",
        _ if head.contains(&0) => "NUL bytes near its beginning: this is no text, or text in UTF-16",
        _ if first.starts_with(b"{\"") || first.starts_with(b"[{") || first.starts_with(b"[[") => {
            "this looks like JSON; write it as CSV"
        }
        _ if !has_lines && memchr::memchr(b'\r', text).is_some_and(|at| at + 1 < text.len()) => {
            "its lines end with a carriage return alone; tr '\\r' '\\n' makes lines of them"
        }
        _ => return None,
    })
}

fn parse(
    format: Format,
    chunks: Chunks,
    options: &Options,
    encoding: Option<&Encoding>,
    watch: Watch<'_>,
) -> Result<Data, Located> {
    let single = options.precision == Some(Precision::F32);
    match (format, single) {
        (Format::Libsvm, false) => libsvm::read::<f64>(chunks, options, encoding, watch),
        (Format::Libsvm, true) => libsvm::read::<f32>(chunks, options, encoding, watch),
        (_, false) => csv::read::<f64>(chunks, options, encoding, watch),
        (_, true) => csv::read::<f32>(chunks, options, encoding, watch),
    }
}

/// The examples of the package's readme run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
