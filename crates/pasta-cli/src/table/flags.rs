//! Flags for reading a table and for what is fitted to it. The same names are keys of `[problem]`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use pasta_io::table::{self, Cache, delimiter, memory_size};
use pasta_io::{Format, Label, Meaning, Missing, Options, Precision, Source, Storage};
use pasta_opt::table::{Design, LOSSES, Loss};
use pasta_report::console::Failure;
use pasta_report::console::flags::number;

const HOW: &str = "How the file is read";
const WHAT: &str = "What is fitted";

/// How a file is read.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = HOW)]
pub(crate) struct Reading {
    /// The column of labels, by name or by number, from 1 [default: the one called label, target, class or y; a LIBSVM file
    /// begins with them]
    #[arg(long, value_name = "COLUMN")]
    pub(crate) label: Option<String>,
    /// A file of its own with the labels, for NPY and NPZ
    #[arg(long, value_name = "FILE", conflicts_with = "label")]
    pub(crate) labels: Option<PathBuf>,
    /// A column of weights, by name or number
    #[arg(long, value_name = "COLUMN")]
    pub(crate) weight: Option<String>,
    /// A column of offsets, by name or number: known numbers that are added to the scores of their rows, such as the logarithm of an exposure (CSV)
    #[arg(long, value_name = "COLUMN")]
    pub(crate) offset: Option<String>,
    /// Columns to leave out, by name or number, with commas between
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub(crate) ignore: Vec<String>,
    /// What stands for missing values of a CSV file; without this, one is an error
    #[arg(long, value_name = "WHAT")]
    pub(crate) missing: Option<Filling>,
    /// Make columns of zeros and ones of the words in a CSV file; a word in a column of more than 20 different numbers is an error
    #[arg(long)]
    pub(crate) one_hot: bool,
    /// Columns of a CSV file that hold categories, by name or number, with commas between: all that they hold becomes columns of zeros and ones, numbers
    /// too, and `None`, `N/A` and `.`, which mean a missing value elsewhere
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub(crate) categories: Vec<String>,
    /// Make features of the products of two columns of a CSV file, with commas between pairs: --interact age:dose. The words of a column each have their own
    #[arg(long, value_name = "A:B", value_delimiter = ',')]
    pub(crate) interact: Vec<String>,
    /// Whether the first line of a CSV file holds names [default: if no cell of it is a number, or a word in it stands above numbers
    /// only]
    #[arg(long, value_name = "yes|no", value_parser = yes_or_no)]
    pub(crate) header: Option<bool>,
    /// What stands between the columns of a CSV file; `tab` and `space` by name [default: what the first line has most of]
    #[arg(long, value_name = "CHAR", value_parser = delimiter, allow_hyphen_values = true)]
    pub(crate) delimiter: Option<u8>,
    /// The index of the first column of a LIBSVM file [default: 0 if that appears, 1 otherwise]
    #[arg(long, value_name = "0|1", value_parser = clap::value_parser!(u32).range(0..=1))]
    pub(crate) first_index: Option<u32>,
    /// The kind of file [default: by its first bytes, its name and its first line]
    #[arg(long, value_name = "KIND")]
    pub(crate) format: Option<Kind>,
    /// How many columns a LIBSVM file has [default: as many as appear; more than 2^20, and more than the text has bytes, must be said]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = pasta_report::console::flags::count)]
    pub(crate) columns: Option<u64>,
    /// Map the table from a cache beside the file, or in a folder, which is written the first time: for text larger than memory [default: for
    /// text of more than half of the memory that is free]
    #[arg(long, value_name = "FOLDER", num_args = 0..=1, require_equals = true)]
    #[expect(clippy::option_option, reason = "not given, given alone, given with a folder")]
    pub(crate) cache: Option<Option<PathBuf>>,
    /// The most memory that the table may take, in bytes or with K, M, G or T; a larger one is refused [default: half of what is free]
    #[arg(long, value_name = "SIZE", value_parser = memory_size)]
    pub(crate) memory: Option<u64>,
    /// Keep every value, or only those that are not zero [default: by the density of the first rows]
    #[arg(long, value_name = "LAYOUT")]
    pub(crate) storage: Option<Layout>,
    /// Keep values as f64 or f32 [default: f64, or as an NPY file has them]
    #[arg(long, value_name = "f64|f32")]
    pub(crate) precision: Option<Width>,
}

#[derive(ValueEnum, Debug, Clone, Copy)]
pub(crate) enum Filling {
    Mean,
    Median,
    Zero,
    /// The rows are left out
    DropRow,
}

#[derive(ValueEnum, Debug, Clone, Copy)]
pub(crate) enum Kind {
    Libsvm,
    Csv,
    Npy,
    Npz,
}

#[derive(ValueEnum, Debug, Clone, Copy)]
pub(crate) enum Layout {
    Dense,
    Sparse,
}

#[derive(ValueEnum, Debug, Clone, Copy)]
pub(crate) enum Width {
    F64,
    F32,
}

fn yes_or_no(text: &str) -> Result<bool, String> {
    match text {
        "yes" | "true" => Ok(true),
        "no" | "false" => Ok(false),
        _ => Err("expected yes or no".into()),
    }
}

impl Reading {
    /// The same without flags.
    pub(crate) fn plain(&self) -> table::Reading {
        let options = Options {
            format: self.format.map(|kind| match kind {
                Kind::Libsvm => Format::Libsvm,
                Kind::Csv => Format::Csv,
                Kind::Npy => Format::Npy,
                Kind::Npz => Format::Npz,
            }),
            label: self.label.clone().map_or(Label::Usual, Label::Column),
            meaning: Meaning::Numbers,
            labels: self.labels.clone().map(Source::File),
            weight: self.weight.clone(),
            offset: self.offset.clone(),
            ignore: self.ignore.clone(),
            header: self.header,
            delimiter: self.delimiter,
            missing: self.missing.map_or(Missing::Refuse, |filling| match filling {
                Filling::Mean => Missing::Mean,
                Filling::Median => Missing::Median,
                Filling::Zero => Missing::Zero,
                Filling::DropRow => Missing::DropRow,
            }),
            one_hot: self.one_hot,
            categories: self.categories.clone(),
            interact: self.interact.clone(),
            unseen: false,
            first_index: self.first_index,
            columns: self.columns.map(|columns| usize::try_from(columns).unwrap_or(usize::MAX)),
            grow: false,
            memory: self.memory,
            storage: self.storage.map_or(Storage::ByDensity, |layout| match layout {
                Layout::Dense => Storage::Dense,
                Layout::Sparse => Storage::Sparse,
            }),
            precision: self.precision.map(|width| match width {
                Width::F64 => Precision::F64,
                Width::F32 => Precision::F32,
            }),
        };
        let cache = match &self.cache {
            None => Cache::IfLarge,
            Some(None) => Cache::Beside,
            Some(Some(folder)) => Cache::In(folder.clone()),
        };
        table::Reading { options, cache }
    }

    /// How a file is read that is for this loss.
    pub(crate) fn options(&self, loss: &str) -> Options {
        self.plain().options(loss)
    }
}

/// What is fitted.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = WHAT)]
pub(crate) struct Shaping {
    /// The error at which huber becomes linear [default: 1.345; for a fit in memory, times the deviation of the residuals of an absolute fit]
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, value_parser = number)]
    pub(crate) delta: Option<f64>,
    /// The quantile that is estimated [default: 0.5]
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, value_parser = number)]
    pub(crate) level: Option<f64>,
    /// The scale of cauchy, welsch and tukey [default: that of 95 % efficiency for errors of deviation 1; for a fit in memory, of the deviation that huber takes]
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, value_parser = number)]
    pub(crate) scale: Option<f64>,
    /// l of the term l/2 |w|^2, on the weights of standardised columns unless --raw; the intercept is free
    /// [default: 0, and for a fit in memory that has no minimiser then, such as one of classes that can be separated, 1e-4; the result says so]
    /// `auto`, for `pasta fit`, takes the one of 15 from 10 to 1e-6 that does best in cross-validation (--cv, 5 folds unless given)
    #[arg(long, value_name = "l|auto", allow_hyphen_values = true, value_parser = penalty)]
    pub(crate) penalty: Option<Penalty>,
    /// Fit without an intercept
    #[arg(long)]
    pub(crate) no_intercept: bool,
    /// Do not bring columns to mean 0 and deviation 1 while fitting (without an intercept: to a mean square of 1)
    #[arg(long)]
    pub(crate) raw: bool,
    /// Use all products of up to this many columns as features
    #[arg(long, value_name = "1|2|3", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=3))]
    pub(crate) degree: u32,
}

/// A penalty on the command line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Penalty {
    Given(f64),
    /// To be chosen by cross-validation.
    Auto,
}

impl Penalty {
    /// The number; 0 until it is chosen.
    pub(crate) fn number(self) -> f64 {
        match self {
            Self::Given(number) => number,
            Self::Auto => 0.0,
        }
    }
}

fn penalty(text: &str) -> Result<Penalty, String> {
    if text == "auto" { Ok(Penalty::Auto) } else { number(text).map(Penalty::Given) }
}

impl Shaping {
    /// Refuses a penalty that is to be chosen where nothing is fitted twice.
    pub(crate) fn refuse_auto(&self, what: &str) -> Result<(), Failure> {
        match self.penalty {
            Some(Penalty::Auto) => {
                Err(Failure::input(format!("--penalty auto: {what} chooses none; give a number")))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn design(&self) -> Design {
        Design {
            intercept: !self.no_intercept,
            standardise: !self.raw,
            degree: self.degree,
            penalty: self.penalty.map_or(0.0, Penalty::number),
        }
    }

    /// The same without flags.
    pub(crate) fn plain(&self) -> table::Shaping {
        let Self { delta, level, scale, .. } = *self;
        table::Shaping { delta, level, scale, design: self.design() }
    }

    /// The loss of this name, with its parameter.
    pub(crate) fn loss(&self, name: &str, classes: usize) -> Result<Loss, Failure> {
        self.plain().loss(name, classes)
    }
}

/// All losses with their formulas, for the help.
pub(crate) fn losses() -> String {
    let lines = LOSSES.iter().map(|row| format!("  {:<16} {}", row.name, row.formula));
    format!("Losses (z = <row, w> + b is the score, y the label):\n{}", lines.collect::<Vec<_>>().join("\n"))
}
