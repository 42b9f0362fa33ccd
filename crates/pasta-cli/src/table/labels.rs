//! Labels that stand for classes.

use pasta_data::{Data, is_same_number};
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
