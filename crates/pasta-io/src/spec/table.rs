//! `[problem] table = ..`: the rows of a file with a loss.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::Failure;
use crate::table::{Cache, Loaded, Reading, Shaping, delimiter, load_table, memory_size};
use crate::{Format, Label, Meaning, Missing, Options, Precision, Source, Storage};
use pasta_opt::run::{self, KnownTable};
use pasta_opt::table::Design;

use super::problem::Problem;
use super::section::Section;
use crate::world;

/// The key that makes a problem one of this kind.
pub(super) const TABLE: &str = "table";
/// The keys that name files.
pub(super) const FILES: [&str; 2] = [TABLE, "labels"];

pub(super) const KEYS: [&str; 27] = [
    TABLE,
    "loss",
    "label",
    "labels",
    "weight",
    "offset",
    "ignore",
    "missing",
    "one-hot",
    "categories",
    "header",
    "delimiter",
    "first-index",
    "memory",
    "format",
    "columns",
    "cache",
    "storage",
    "precision",
    "delta",
    "level",
    "scale",
    "penalty",
    "intercept",
    "standardise",
    "degree",
    "start",
];

/// Reads a table `problem` with a key `table`, whose path is taken from where the problem file is.
pub(super) fn read_table(problem: &Section<'_>) -> Result<Problem, Failure> {
    problem.only(&KEYS)?;
    let file = problem.required_text(TABLE, "the path of a file")?;
    let loss = problem.required_text("loss", "the name of a loss (see `pasta fit --help`)")?;
    let beside = |name: &str| Path::new(problem.source.file).parent().unwrap_or(Path::new("")).join(name);
    let reading = reading(problem, beside)?;
    let degree = problem.count("degree")?.unwrap_or(1);
    if !(1..=3).contains(&degree) {
        return Err(problem.complain("degree", &format!("expected 1, 2 or 3, got {degree}")));
    }
    let design = Design {
        intercept: problem.flag("intercept")?.unwrap_or(true),
        standardise: problem.flag("standardise")?.unwrap_or(true),
        degree: degree as u32,
        penalty: problem.number("penalty")?.unwrap_or(0.0),
    };
    let [delta, level, scale] = ["delta", "level", "scale"].map(|key| problem.number(key));
    let shaping = Shaping { delta: delta?, level: level?, scale: scale?, design };
    shaping.loss(loss, 2).map_err(|failure| {
        let complaint = problem.complain("loss", failure.message());
        match failure.given_hint() {
            Some(hint) => complaint.hint(hint),
            None => complaint,
        }
    })?;
    let path = beside(file);
    let name = path.display().to_string();
    let data = load_table(&Source::File(path), &reading, loss)?;
    let loaded = Loaded::new(&name, data, loss, &shaping)?;
    let linear = loaded.linear;
    let start = if problem.item("start").is_some() { problem.start(linear.dim())? } else { linear.start() };
    let (rows, columns) = (linear.table().rows(), linear.table().columns());
    // Its name alone: the copy in an output folder names it from the root.
    let file = Path::new(file).file_name().map_or(file.into(), |name| name.to_string_lossy());
    let s = |count: usize| if count == 1 { "" } else { "s" };
    let words = format!(
        "{loss} loss on {file} ({rows} row{}, {columns} column{}{})",
        s(rows),
        s(columns),
        shaping.words()
    );
    let table = Some(KnownTable::new(Arc::clone(&linear)));
    Ok(run::Problem { oracle: world::spread(linear), start, term: None, truth: None, table, words }.into())
}

/// How the file is read. `beside` finds a path from where the problem file is.
fn reading(problem: &Section<'_>, beside: impl Fn(&str) -> PathBuf) -> Result<Reading, Failure> {
    let options = Options {
        label: text_or_number(problem, "label")?.map_or(Label::Usual, Label::Column),
        meaning: Meaning::Numbers,
        labels: problem.text("labels")?.map(|name| Source::File(beside(name))),
        weight: text_or_number(problem, "weight")?,
        offset: text_or_number(problem, "offset")?,
        ignore: problem.texts("ignore")?.unwrap_or_default(),
        missing: choice(problem, "missing", &MISSING)?.unwrap_or_default(),
        one_hot: problem.flag("one-hot")?.unwrap_or(false),
        categories: problem.texts("categories")?.unwrap_or_default(),
        header: problem.flag("header")?,
        delimiter: match problem.text("delimiter")? {
            Some(text) => Some(delimiter(text).map_err(|message| problem.complain("delimiter", &message))?),
            None => None,
        },
        first_index: match problem.count("first-index")? {
            Some(index @ (0 | 1)) => Some(index as u32),
            Some(other) => {
                return Err(problem.complain("first-index", &format!("expected 0 or 1, got {other}")));
            }
            None => None,
        },
        columns: problem.count("columns")?.map(|columns| usize::try_from(columns).unwrap_or(usize::MAX)),
        grow: false,
        memory: match text_or_number(problem, "memory")? {
            Some(text) => Some(memory_size(&text).map_err(|message| problem.complain("memory", &message))?),
            None => None,
        },
        format: choice(problem, "format", &FORMATS)?,
        storage: choice(problem, "storage", &STORAGES)?.unwrap_or(Storage::ByDensity),
        precision: choice(problem, "precision", &PRECISIONS)?,
    };
    let cache = match problem.item("cache") {
        Some(item) if item.is_bool() => {
            problem.flag("cache")?.filter(|wanted| *wanted).map(|_| Cache::Beside)
        }
        _ => problem.text("cache")?.map(|folder| Cache::In(beside(folder))),
    };
    Ok(Reading { options, cache: cache.unwrap_or_default() })
}

pub(super) const MISSING: [(&str, Missing); 4] = [
    ("mean", Missing::Mean),
    ("median", Missing::Median),
    ("zero", Missing::Zero),
    ("drop-row", Missing::DropRow),
];
pub(super) const FORMATS: [(&str, Format); 4] =
    [("libsvm", Format::Libsvm), ("csv", Format::Csv), ("npy", Format::Npy), ("npz", Format::Npz)];
pub(super) const STORAGES: [(&str, Storage); 2] = [("dense", Storage::Dense), ("sparse", Storage::Sparse)];
pub(super) const PRECISIONS: [(&str, Precision); 2] = [("f64", Precision::F64), ("f32", Precision::F32)];

/// A column: a name, or a number.
fn text_or_number(section: &Section<'_>, key: &str) -> Result<Option<String>, Failure> {
    match section.item(key) {
        Some(item) if item.is_integer() => Ok(section.count(key)?.map(|number| number.to_string())),
        _ => Ok(section.text(key)?.map(str::to_owned)),
    }
}

/// One of several words.
fn choice<C: Copy>(section: &Section<'_>, key: &str, choices: &[(&str, C)]) -> Result<Option<C>, Failure> {
    let Some(text) = section.text(key)? else { return Ok(None) };
    if let Some((_, chosen)) = choices.iter().find(|(word, _)| *word == text) {
        return Ok(Some(*chosen));
    }
    Err(section.unknown_word(key, text, choices.iter().map(|(word, _)| *word)))
}
