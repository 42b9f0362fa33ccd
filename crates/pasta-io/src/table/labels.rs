//! Labels that stand for classes.

use crate::Failure;
use crate::{Data, Source, is_same_number};
use pasta_opt::table::{LOSSES, Labels};
use serde::{Deserialize, Serialize};

use super::{Reading, kept, load_table};

/// The classes of labels, in their order: label k is the k-th. Empty where labels are numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Classes(pub Vec<String>);

/// A table, and the loss for its labels.
#[derive(Debug)]
pub struct Chosen {
    /// The table.
    pub data: Data,
    /// The name of the loss.
    pub loss: String,
    /// Why this loss, where none was given.
    pub why: Option<String>,
}

/// The loss for labels that are numbers.
const NUMBERS: &str = "least-squares";
/// Whole numbers that take at most this many values may be classes.
const FEW: usize = 20;

/// Reads a table. Where no loss is given the labels choose; if they turn out to be classes, they are read once more, as names.
pub fn load_and_choose(source: &Source, reading: &Reading, loss: Option<&str>) -> Result<Chosen, Failure> {
    if let Some(loss) = loss {
        return Ok(Chosen { data: load_table(source, reading, loss)?, loss: loss.into(), why: None });
    }
    let source = kept(source, reading.options.memory)?;
    let data = load_table(&source, reading, NUMBERS)?;
    let (loss, why) = guess(&data);
    let data = if loss == NUMBERS { data } else { load_table(&source, reading, loss)? };
    Ok(Chosen { data, loss: loss.into(), why: Some(why) })
}

/// A loss for labels that were read as numbers unless there are words among them, and why. Numbers that take more than two values may be classes or counts, too, and nobody can
/// tell from outside: they stay numbers, and the words say what else to ask for.
fn guess(data: &Data) -> (&'static str, String) {
    match &data.classes[..] {
        [] => {}
        [one, two] => return ("logistic", format!("two labels, {one} and {two}")),
        many => return ("multinomial", format!("{} labels that are words", many.len())),
    }
    let mut values: Vec<f64> = Vec::new();
    for label in data.labels.iter().flatten() {
        if let Err(place) = values.binary_search_by(|value| value.total_cmp(label)) {
            values.insert(place, *label);
        }
        if values.len() > FEW {
            return (NUMBERS, "labels that are numbers".into());
        }
    }
    let is_whole = values.iter().all(|value| value.fract() == 0.0);
    match values[..] {
        [one] => (NUMBERS, format!("every label is {one}")),
        [one, two] if is_whole => ("logistic", format!("two labels, {one} and {two}")),
        [one, two] => (NUMBERS, format!("the numbers {one} and {two}; --loss logistic if they are classes")),
        _ if is_whole => {
            let count = values.len();
            let other = "--loss multinomial if they are classes, poisson if they are counts";
            (NUMBERS, format!("{count} different numbers; {other}"))
        }
        _ => (NUMBERS, "labels that are numbers".into()),
    }
}

/// More are hardly classes.
const MOST: usize = 1000;

impl Classes {
    /// What the labels of a table stand for under a loss.
    pub fn learn(data: &Data, loss: &str) -> Result<Self, Failure> {
        let kind = LOSSES.iter().find(|row| row.name == loss).map_or(Labels::Real, |row| row.labels);
        if matches!(kind, Labels::Real | Labels::Counts) {
            return match word(data) {
                Some(word) => Err(Failure::input(format!(
                    "the {loss} loss needs labels that are numbers, but {:?} holds words such as {word:?}",
                    data.label
                ))
                .hint("logistic tells two classes apart, multinomial more")),
                None => Ok(Self::default()),
            };
        }
        let names = data.classes.clone();
        if names.len() > MOST && names.iter().all(|name| name.parse::<f64>().is_ok()) {
            let message = format!("there are more than {MOST} different labels, which are hardly classes");
            return Err(Failure::input(message).hint("--loss least-squares is for numbers"));
        }
        match (kind, names.len()) {
            (_, 1) => Err(Failure::input(format!(
                "every row has the label {:?}: there is nothing to tell apart",
                names[0]
            ))),
            (Labels::Signs, 2) | (Labels::Classes, _) => Ok(Self(names)),
            (_, many) => {
                Err(Failure::input(format!("the {loss} loss tells two classes apart, but there are {many}"))
                    .hint("--loss multinomial is for more"))
            }
        }
    }

    /// The labels as numbers of classes, or as they are.
    pub fn code(&self, data: &Data) -> Result<Vec<f64>, Failure> {
        let labels = data.labels.clone().unwrap_or_default();
        if self.0.is_empty() {
            // Words have numbers too, which mean nothing as labels.
            return match word(data) {
                Some(word) => Err(Failure::input(format!(
                    "labels are numbers here, but {:?} holds words such as {word:?}",
                    data.label
                ))),
                None => Ok(labels),
            };
        }
        // Few classes, many rows: each class is looked up once. In another table 1.0 may stand for 1.
        let place = |name: &String| {
            let same = |class: &String| is_same_number(class, name);
            self.0.iter().position(|class| class == name).or_else(|| self.0.iter().position(same))
        };
        let places: Vec<Option<usize>> = data.classes.iter().map(place).collect();
        let code = |(row, label): (usize, &f64)| {
            places[*label as usize].map(|k| k as f64).ok_or_else(|| {
                let (name, known) = (&data.classes[*label as usize], self.0.join(", "));
                Failure::input(format!("row {}: the label {name:?} is none of {known}", row + 1))
            })
        };
        labels.iter().enumerate().map(code).collect()
    }
}

/// A label that is a word, if there is one: where one is, all count as words.
fn word(data: &Data) -> Option<&String> {
    let is_word = |label: &&String| label.parse::<f64>().is_err();
    data.classes.iter().find(is_word).or(data.classes.first())
}
