//! A table of a problem file: what is in it, and complaints with file, line and what was expected.

use pasta_opt::problems;
use pasta_opt::run::{Target, TargetError};
use toml_edit::{Item, TableLike, Value};

use super::pipe::COMMAND_LINE;
use crate::Failure;
use crate::limits::{LARGEST, SAMPLES, whole_float};

pub(super) const WHOLE: &str = "a whole number from 0 to 2^63 - 1";

/// The failure, with a hint if one of these names is close to what was written.
pub(super) fn meant<'a>(
    failure: Failure,
    written: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Failure {
    match crate::nearest(written, names) {
        Some(name) => failure.hint(format!("did you mean {name}?")),
        None => failure,
    }
}

/// The file at hand.
#[derive(Clone, Copy)]
pub(super) struct Source<'d> {
    pub(super) file: &'d str,
    pub(super) text: &'d str,
}

/// A table of the file, with its full name and line for complaints.
pub(super) struct Section<'d> {
    pub(super) source: Source<'d>,
    pub(super) name: String,
    pub(super) table: &'d dyn TableLike,
    pub(super) line: usize,
}

impl<'d> Section<'d> {
    pub(super) fn item(&self, key: &str) -> Option<&'d Item> {
        self.table.get(key)
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &'d str> {
        self.table.iter().map(|(key, _)| key)
    }

    pub(super) fn section(&self, key: &'d str) -> Result<Section<'d>, Failure> {
        match self.item(key) {
            None => Err(self.missing(&format!("[{key}]"), "a table")),
            Some(item) => match item.as_table_like() {
                Some(table) => Ok(self.subsection(key, table)),
                None => Err(self.wrong_type(key, "a table", item)),
            },
        }
    }

    pub(super) fn subsection(&self, key: &'d str, table: &'d dyn TableLike) -> Section<'d> {
        let name = if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) };
        Section { source: self.source, name, table, line: self.line_of(key) }
    }

    /// What a key holds, if it is there.
    fn read<T>(
        &self,
        key: &str,
        expected: &str,
        value: impl FnOnce(&'d Value) -> Option<T>,
    ) -> Result<Option<T>, Failure> {
        let Some(item) = self.item(key) else { return Ok(None) };
        let value = item.as_value().and_then(value);
        value.map(Some).ok_or_else(|| self.wrong_type(key, expected, item))
    }

    pub(super) fn number(&self, key: &str) -> Result<Option<f64>, Failure> {
        self.read(key, "a number", number)
    }

    /// A target: a number, or a share of the gradient at the start such as "1%".
    pub(super) fn target(&self, key: &str) -> Result<Option<Target>, Failure> {
        match self.item(key).and_then(Item::as_str) {
            Some(text) => {
                text.parse().map(Some).map_err(|error: TargetError| self.complain(key, &error.to_string()))
            }
            None => Ok(self.number(key)?.map(Target::Norm)),
        }
    }

    pub(super) fn required(&self, key: &str) -> Result<f64, Failure> {
        match self.number(key)? {
            Some(number) if number.is_finite() => Ok(number),
            Some(number) => Err(self.complain(key, &format!("expected a finite number, got {number}"))),
            None => Err(self.missing(key, "a number")),
        }
    }

    /// A whole number, which may be written as 1e6.
    pub(super) fn whole(&self, key: &str, expected: &str) -> Result<Option<u128>, Failure> {
        self.read(key, expected, |value| match value.as_integer() {
            Some(n) => u128::try_from(n).ok(),
            None => value.as_float().and_then(whole_float),
        })
    }

    pub(super) fn samples(&self, key: &str) -> Result<Option<u128>, Failure> {
        self.whole(key, SAMPLES)
    }

    pub(super) fn count(&self, key: &str) -> Result<Option<u64>, Failure> {
        match self.whole(key, WHOLE)? {
            Some(n) if n > u128::from(LARGEST) => {
                Err(self.complain(key, &format!("expected {WHOLE}, got {:e}", n as f64)))
            }
            whole => Ok(whole.map(|n| n as u64)),
        }
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<&'d str>, Failure> {
        self.read(key, "a string", Value::as_str)
    }

    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>, Failure> {
        self.read(key, "true or false", Value::as_bool)
    }

    pub(super) fn required_text(&self, key: &str, expected: &str) -> Result<&'d str, Failure> {
        self.text(key)?.ok_or_else(|| self.missing(key, expected))
    }

    pub(super) fn numbers(&self, key: &str) -> Result<Option<Vec<f64>>, Failure> {
        self.read(key, "a list of numbers", |value| value.as_array()?.iter().map(number).collect())
    }

    pub(super) fn texts(&self, key: &str) -> Result<Option<Vec<String>>, Failure> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        self.read(key, "a list of strings", |value| value.as_array()?.iter().map(text).collect())
    }

    pub(super) fn parameter(&self, key: &str) -> Result<problems::Value, Failure> {
        match self.item(key) {
            Some(item) if item.is_array() => {
                Ok(problems::Value::List(self.numbers(key)?.unwrap_or_default()))
            }
            _ => Ok(problems::Value::Number(self.required(key)?)),
        }
    }

    /// The start: a list, or one number for all coordinates.
    pub(super) fn start(&self, dimension: usize) -> Result<Vec<f64>, Failure> {
        let expected = "a list of numbers, or one number for all coordinates";
        let start = match self.item("start") {
            None => return Err(self.missing("start", expected)),
            Some(item) if item.is_array() => self.numbers("start")?.unwrap_or_default(),
            Some(item) if item.is_str() => return Err(self.wrong_type("start", expected, item)),
            Some(_) => vec![self.required("start")?; dimension],
        };
        if start.len() != dimension {
            let got = start.len();
            let message =
                format!("expected as many numbers as the dimension, which is {dimension}; got {got}");
            return Err(self.complain("start", &message));
        }
        match start.iter().find(|x| !x.is_finite()) {
            Some(x) => Err(self.complain("start", &format!("expected finite numbers, got {x}"))),
            None => Ok(start),
        }
    }

    /// A word of a key that is none of those it can be.
    pub(super) fn unknown_word<'a>(
        &self,
        key: &str,
        written: &str,
        words: impl IntoIterator<Item = &'a str>,
    ) -> Failure {
        let words: Vec<_> = words.into_iter().collect();
        let message = format!("expected one of {}, got {written:?}", words.join(", "));
        meant(self.complain(key, &message), written, words)
    }

    /// Refuses keys that are not among these.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), Failure> {
        let Some(key) = self.keys().find(|key| !known.contains(key)) else { return Ok(()) };
        let failure = self.complain(key, &format!("unknown key; expected one of {}", known.join(", ")));
        Err(meant(failure, key, known.iter().copied()))
    }

    pub(super) fn missing(&self, key: &str, expected: &str) -> Failure {
        self.complain("", &format!("{key} is missing; expected {expected}"))
    }

    pub(super) fn wrong_type(&self, key: &str, expected: &str, got: &Item) -> Failure {
        // As it is written, if that is one line.
        let written = got.as_value().and_then(Value::span).map(|span| &self.source.text[span]);
        let written = written.filter(|text| !text.contains('\n')).unwrap_or_default();
        let got = format!("{} {written}", got.type_name());
        self.complain(key, &format!("expected {expected}, got {}", got.trim_end()))
    }

    /// `file:line: [section] key: message`; an empty key speaks of the whole section.
    pub(super) fn complain(&self, key: &str, message: &str) -> Failure {
        if self.source.file == COMMAND_LINE {
            // There is no file, and what is wrong with [problem] is wrong with the flag of that name.
            let flag =
                if self.name == "problem" && !key.is_empty() { format!("--{key}: ") } else { String::new() };
            return Failure::input(format!("{flag}{message}"));
        }
        let line = if key.is_empty() { self.line } else { self.line_of(key) };
        let section = if self.name.is_empty() { String::new() } else { format!("[{}] ", self.name) };
        let key = if key.is_empty() { String::new() } else { format!("{key}: ") };
        Failure::input(format!("{section}{key}{message}")).in_file(self.source.file).at_line(line)
    }

    pub(super) fn line_of(&self, key: &str) -> usize {
        let span = self.table.get_key_value(key).and_then(|(key, item)| key.span().or(item.span()));
        span.map_or(self.line, |span| line_at(self.source.text, span.start))
    }
}

/// Whole or not.
fn number(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|n| n as f64))
}

pub(super) fn line_at(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|b| *b == b'\n').count() + 1
}
