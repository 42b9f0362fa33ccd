//! Labels that stand for classes.

use pasta_data::Data;
use pasta_opt::table::{LOSSES, Labels};
use pasta_report::console::Failure;
use serde::{Deserialize, Serialize};

/// The classes of labels, in their order: label k is the k-th. Empty where labels are numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Classes(pub(crate) Vec<String>);

/// More are hardly classes.
const MOST: usize = 1000;

impl Classes {
    /// What the labels of a table stand for under a loss.
    pub(crate) fn learn(data: &Data, loss: &str) -> Result<Self, Failure> {
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
        let names = if data.classes.is_empty() { numbers(data)? } else { data.classes.clone() };
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
    pub(crate) fn code(&self, data: &Data) -> Result<Vec<f64>, Failure> {
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
        let place = |name: &str| self.0.iter().position(|class| class == name);
        let unknown = |row: usize, name: &str| {
            let known = self.0.join(", ");
            Failure::input(format!("row {}: the label {name:?} is none of {known}", row + 1))
        };
        // Few classes, many rows: each class is looked up once.
        let words: Vec<Option<usize>> = data.classes.iter().map(|name| place(name)).collect();
        let values: Vec<Option<f64>> = self.0.iter().map(|name| name.parse().ok()).collect();
        let code = |(row, label): (usize, &f64)| {
            if let Some(name) = data.classes.get(*label as usize) {
                return words[*label as usize].map(|k| k as f64).ok_or_else(|| unknown(row, name));
            }
            let k = values.iter().position(|value| *value == Some(*label));
            k.map(|k| k as f64).ok_or_else(|| unknown(row, &label.to_string()))
        };
        labels.iter().enumerate().map(code).collect()
    }
}

/// A label that is a word, if there is one: where one is, all count as words.
fn word(data: &Data) -> Option<&String> {
    let is_word = |label: &&String| label.parse::<f64>().is_err();
    data.classes.iter().find(is_word).or(data.classes.first())
}

/// The different labels of a table, from small to large.
fn numbers(data: &Data) -> Result<Vec<String>, Failure> {
    let mut found: Vec<f64> = Vec::new();
    for &label in data.labels.iter().flatten() {
        if let Err(place) = found.binary_search_by(|other| other.total_cmp(&label)) {
            found.insert(place, label);
            if found.len() > MOST {
                let message =
                    format!("there are more than {MOST} different labels, which are hardly classes");
                return Err(Failure::input(message).hint("--loss least-squares is for numbers"));
            }
        }
    }
    // 0 and -0 are one number.
    found.dedup_by(|a, b| a == b);
    Ok(found.iter().map(|label| (label + 0.0).to_string()).collect())
}
