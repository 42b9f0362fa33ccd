//! The tables `term`: constraints and penalties beside f.

use std::str::FromStr;
use std::sync::Arc;

use pasta_opt::term::{KINDS, Numbers, Term, TermSpec, of_specs};
use serde_json::Value as Json;
use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, TableLike, Value};

use super::Overrides;
use super::section::{Section, meant};
use crate::Failure;

/// The key of the tables.
pub(super) const TERM: &str = "term";
/// True if a start outside of the domain is moved into it.
pub(super) const PROJECT: &str = "project_start";

/// Ends of bounds on a command line: one number, or one for each coordinate with commas between.
#[derive(Debug, Clone, PartialEq)]
pub struct Ends(Vec<f64>);

impl FromStr for Ends {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |part: &str| part.trim().parse::<f64>().ok().filter(|number| !number.is_nan());
        let numbers: Option<Vec<f64>> = text.split(',').map(number).collect();
        numbers.map(Self).ok_or_else(|| {
            format!("expected a number, or numbers with commas between (inf is one), got {text:?}")
        })
    }
}

impl Ends {
    fn toml(&self) -> Value {
        match self.0.as_slice() {
            [one] => Value::from(*one),
            all => Value::Array(all.iter().copied().collect::<Array>()),
        }
    }
}

/// The bounds that flags ask for.
fn bounds(overrides: &Overrides) -> Option<TermSpec> {
    let Overrides { lower, upper, .. } = overrides;
    if lower.is_none() && upper.is_none() {
        return None;
    }
    let numbers = |ends: &Option<Ends>| ends.as_ref().map(|ends| Numbers(ends.0.clone()));
    Some(TermSpec { kind: "box".into(), lower: numbers(lower), upper: numbers(upper), ..TermSpec::default() })
}

/// The sum of the tables `term` and of the bounds that flags ask for; `None` if there are none.
pub(super) fn read_terms(
    root: &Section<'_>,
    overrides: &Overrides,
    dim: usize,
) -> Result<Option<Arc<dyn Term>>, Failure> {
    let mut specs = Vec::new();
    for table in tables(root)? {
        let json = Json::Object(table.iter().map(|(key, item)| (key.to_owned(), json(item))).collect());
        specs.push(
            serde_json::from_value(json)
                .map_err(|error| root.complain(TERM, &format!("term {}: {error}", specs.len() + 1)))?,
        );
    }
    let in_file = specs.len();
    let kinds = || KINDS.iter().map(|kind| kind.name);
    let stranger = specs
        .iter()
        .map(|spec: &TermSpec| spec.kind.clone())
        .find(|kind| !kinds().any(|known| known == kind));
    specs.extend(bounds(overrides));
    of_specs(&specs, dim).map_err(|error| {
        let is_flag = specs.len() > in_file && in_file == 0;
        if is_flag {
            Failure::input(format!("--lower, --upper: {error}"))
        } else {
            let complaint = root.complain(TERM, &error.to_string());
            match stranger {
                Some(kind) => meant(complaint, &kind, kinds()),
                None => complaint,
            }
        }
    })
}

/// `[[term]]`, or a list of inline tables.
fn tables<'d>(root: &Section<'d>) -> Result<Vec<&'d dyn TableLike>, Failure> {
    let Some(item) = root.item(TERM) else { return Ok(Vec::new()) };
    let inline = |value: &'d Value| value.as_inline_table().map(|table| table as &dyn TableLike);
    let tables = match item {
        Item::ArrayOfTables(tables) => Some(tables.iter().map(|table| table as &dyn TableLike).collect()),
        Item::Value(Value::Array(values)) => values.iter().map(inline).collect(),
        _ => None,
    };
    tables.ok_or_else(|| root.complain(TERM, "expected tables [[term]], each with a kind"))
}

/// TOML as JSON, where an infinite number is a word.
fn json(item: &Item) -> Json {
    match item {
        Item::Value(value) => of_value(value),
        _ => Json::Null,
    }
}

fn of_value(value: &Value) -> Json {
    match value {
        Value::String(text) => Json::from(text.value().as_str()),
        Value::Integer(number) => Json::from(*number.value()),
        Value::Float(number) => match *number.value() {
            number if number.is_finite() => Json::from(number),
            number => Json::from(number.to_string()),
        },
        Value::Boolean(flag) => Json::from(*flag.value()),
        Value::Array(values) => values.iter().map(of_value).collect(),
        Value::Datetime(date) => Json::from(date.value().to_string()),
        Value::InlineTable(table) => {
            table.iter().map(|(key, value)| (key.to_owned(), of_value(value))).collect()
        }
    }
}

/// Writes the flags into the file's text.
pub(super) fn write_flags(document: &mut DocumentMut, overrides: &Overrides) {
    if overrides.project_start {
        document.insert(PROJECT, Item::Value(true.into()));
    }
    let Overrides { lower, upper, .. } = overrides;
    let ends: Vec<(&str, Value)> = [("lower", lower), ("upper", upper)]
        .into_iter()
        .filter_map(|(key, ends)| ends.as_ref().map(|ends| (key, ends.toml())))
        .collect();
    if ends.is_empty() {
        return;
    }
    let keys = std::iter::once(("kind", Value::from("box"))).chain(ends);
    if let Some(Item::Value(Value::Array(terms))) = document.get_mut(TERM) {
        terms.push(keys.collect::<InlineTable>());
        return;
    }
    let mut table = Table::new();
    keys.for_each(|(key, value)| {
        table.insert(key, Item::Value(value));
    });
    let terms = document.entry(TERM).or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
    if let Item::ArrayOfTables(terms) = terms {
        terms.push(table);
    }
}
