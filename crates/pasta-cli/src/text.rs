//! Numbers and tables for people, objects for programs.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};
use pasta_opt::recipe::{Constant, Constants};
use serde::{Serialize, Serializer};

use crate::error::{Exit, Failure};
use crate::report::grouped;
use crate::talk::answer;

/// An answer that can be printed either way.
pub(crate) trait Report: Serialize {
    /// For people: at most [`WIDTH`] columns.
    fn text(&self) -> String;
}

const WIDTH: u16 = 80;

/// Prints an answer to stdout.
pub(crate) fn print(report: &impl Report, as_json: bool) -> Result<Exit, Failure> {
    let text = if as_json { serde_json::to_string(report).map_err(Failure::system)? } else { report.text() };
    answer(&text).map(|()| Exit::Done)
}

/// Lines of a label and a value.
pub(crate) fn labelled(rows: &[(&str, String)]) -> String {
    let mut table = plain();
    table.add_rows(rows.iter().map(|(label, value)| [*label, value.as_str()]));
    trimmed(&table)
}

/// Lines of cells under a header, numbers aligned to the right.
pub(crate) fn columns(header: &[(&str, Cells)], rows: Vec<Vec<String>>) -> String {
    let mut table = plain();
    table.set_header(header.iter().map(|(name, _)| *name)).add_rows(rows);
    for (column, (_, cells)) in table.column_iter_mut().zip(header) {
        match cells {
            Cells::Name => column.set_constraint(ColumnConstraint::ContentWidth),
            Cells::Number => {
                column.set_cell_alignment(CellAlignment::Right);
                column.set_constraint(ColumnConstraint::ContentWidth)
            }
            Cells::Sentence => column,
        };
    }
    trimmed(&table)
}

/// What a column holds: only sentences are broken into lines.
#[derive(Clone, Copy)]
pub(crate) enum Cells {
    Name,
    Number,
    Sentence,
}

fn plain() -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(WIDTH)
        .force_no_tty();
    table
}

fn trimmed(table: &Table) -> String {
    let lines: Vec<_> = table.lines().map(|line| line.trim_end().replace(NO_BREAK, " ")).collect();
    lines.join("\n")
}

const NO_BREAK: &str = "\u{a0}";

/// Text that a table does not break; its spaces are plain again when it is printed.
pub(crate) fn unbroken(text: &str) -> String {
    text.replace(' ', NO_BREAK)
}

/// Six significant digits.
pub(crate) fn real(value: f64) -> String {
    exactly(format!("{value:.5e}").parse().unwrap_or(value))
}

/// Three significant digits.
pub(crate) fn rough(value: f64) -> String {
    exactly(format!("{value:.2e}").parse().unwrap_or(value))
}

/// A limit from above, in four digits that do not exceed it.
pub(crate) fn ceiling(limit: f64) -> String {
    if !(limit > 0.0 && limit.is_finite()) {
        return real(limit);
    }
    let unit = 10f64.powf(limit.log10().floor() - 3.0);
    real((limit / unit).floor() * unit)
}

/// A count in full, its digits in threes, or in three digits from 10^15 on.
pub(crate) fn whole(count: u128) -> String {
    if (count as f64) < IN_FULL { grouped(count) } else { format!("{:.2e}", count as f64) }
}

const IN_FULL: f64 = 1e15;

/// An upper bound on a number of samples: rounded up to a whole number where that shows.
pub(crate) fn at_most(samples: f64) -> String {
    match samples {
        samples if samples < IN_FULL => grouped(samples.ceil() as u128),
        samples if samples.is_finite() => format!("{samples:.2e}"),
        _ => real(samples),
    }
}

/// A lower bound on a number of samples: rounded down where it is large.
pub(crate) fn at_least(samples: f64) -> String {
    match samples {
        samples if samples < 1e4 => real(samples),
        samples if samples < IN_FULL => grouped(samples as u128),
        samples if samples.is_finite() => format!("{samples:.2e}"),
        _ => real(samples),
    }
}

/// A count in at most seven characters.
pub(crate) fn short(count: f64) -> String {
    match count {
        count if count <= 999_999.0 => grouped(count.ceil() as u128),
        count if count.is_finite() => format!("{count:.2e}"),
        _ => ">1e308".to_owned(),
    }
}

/// "L = 3, Delta = 1.6, ..", the values as they were given.
pub(crate) fn given(constants: &Constants) -> String {
    let known: Vec<_> = constants.known().map(|(constant, value)| equation(constant, value)).collect();
    known.join(", ")
}

fn equation(constant: Constant, value: f64) -> String {
    unbroken(&format!("{} = {}", constant.symbol(), exactly(value)))
}

/// The shortest text that reads back as the same number.
pub(crate) fn exactly(value: f64) -> String {
    if value == 0.0 || (1e-4..1e7).contains(&value.abs()) || !value.is_finite() {
        value.to_string()
    } else {
        format!("{value:e}")
    }
}

/// The constants as an object, by name.
pub(crate) struct Echo(pub(crate) Constants);

impl Serialize for Echo {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.known().map(|(constant, value)| (constant.name(), value)))
    }
}
