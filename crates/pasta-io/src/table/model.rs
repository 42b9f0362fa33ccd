//! Model files: JSON with a format number, weights by the names of columns.

use std::path::Path;

use crate::Encoding;
use crate::Failure;
use pasta_opt::Ledger;
use pasta_opt::conformal::Conformal;
use pasta_opt::fit::{LeftOut, Redundant, Verdict};
use pasta_opt::table::{Design, Loss, Model, Scaling};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Classes;

/// The format of a model file.
pub const FORMAT: u64 = 1;

const ORDER: &str = "the model comes first, a file that `pasta fit -o` wrote: pasta predict MODEL DATA";

/// What a model file holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelFile {
    /// The format of the file: [`FORMAT`].
    pub format: u64,
    /// The program that wrote it, and its version.
    pub program: String,
    /// The loss that was minimised.
    pub loss: Loss,
    /// How columns became features.
    pub design: Design,
    /// The name of the column of labels; empty where it has none.
    pub label: String,
    /// The column of offsets, by name or number.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub offset: Option<String>,
    /// What label k stands for; empty where labels are numbers.
    pub classes: Classes,
    /// A number for each feature, or a list with one for each class.
    pub weights: Map<String, Value>,
    /// A number, or a list with one for each class.
    pub intercept: Value,
    /// How columns were brought to mean 0 and deviation 1 while fitting. Undone in the weights, unless there are products.
    pub scaling: Option<Scaling>,
    /// How columns became numbers.
    pub encoding: Encoding,
    /// What it was learnt from.
    pub data: Provenance,
    /// The constants that are known of the loss on this table.
    pub constants: Vec<Value>,
    /// The method that found it.
    pub method: String,
    /// The seed of the run.
    pub seed: u64,
    /// The samples and evaluations that it took.
    pub ledger: Ledger,
    /// What is known about the point.
    pub certificate: Certificate,
    /// Of a loss whose scale was taken from the residuals: their standard deviation.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub deviation: Option<f64>,
    /// Features whose weights the rows do not decide: they are 0.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub left_out: Vec<LeftOutFeature>,
    /// Coefficients with their standard errors, as `pasta fit --json` prints them, where they have any.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub summary: Option<Value>,
    /// How far predictions are off, by rows that were not fitted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub conformal: Option<Conformal>,
    /// The smallest and the largest value of each column, in the order of the encoding; none for very wide tables.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub ranges: Vec<[f64; 2]>,
}

/// A feature that was left out, by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOutFeature {
    /// Its name.
    pub feature: String,
    /// Why the rows do not decide its weight.
    pub why: Redundant,
}

impl LeftOutFeature {
    /// Those of a fit, given the names of the features.
    pub fn all(left_out: &[LeftOut], names: &[String]) -> Vec<Self> {
        let name = |feature: usize| names.get(feature).cloned().unwrap_or_else(|| "the intercept".into());
        left_out.iter().map(|one| Self { feature: name(one.feature), why: one.why }).collect()
    }
}

/// What the model was learnt from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// The name of the file.
    pub file: String,
    /// How many rows it has.
    pub rows: u64,
    /// How many columns.
    pub columns: u64,
    /// CRC-32 of all values, labels and weights, in hexadecimal.
    pub checksum: String,
}

/// What is known about the point: all of it by exact passes over the table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// Whether the target was reached.
    pub verdict: Verdict,
    /// True if the numbers are of the whole table, and not of a sample.
    pub exact: bool,
    /// |grad f| at the point.
    pub gradient: f64,
    /// What the gradient, or the gap, should at most be.
    pub target: f64,
    /// |grad f| at the start.
    pub start_gradient: f64,
    /// f at the point, the penalty included.
    pub objective: f64,
    /// Of a loss with kinks: by how much f can be above its least value. The target is then one for this number.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub gap: Option<f64>,
    /// Of a model that was learnt in one pass: what rows say that were kept back. The other numbers are then means over these.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tail: Option<TailBound>,
}

/// A bound on the gradient by fresh rows, at the end of a stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TailBound {
    /// How many rows were kept back.
    pub rows: u64,
    /// |grad f| is at most this, with probability at least 1 - delta; `None` where the rows were too few, or contradict what it rests on.
    pub bound: Option<f64>,
    /// The probability that the bound is wrong.
    pub delta: f64,
    /// What the noise of a row's gradient is assumed to have at most.
    pub kurtosis: f64,
}

impl ModelFile {
    /// Weights by name, from those of a model.
    pub fn named(model: &Model, names: &[String]) -> (Map<String, Value>, Value) {
        let names = model.feature_names(names);
        let outputs = model.outputs();
        let width = names.len();
        let of = |k: usize| match outputs {
            1 => Value::from(model.weights[k]),
            _ => (0..outputs).map(|output| model.weights[output * width + k]).collect(),
        };
        let weights = names.into_iter().enumerate().map(|(k, name)| (name, of(k))).collect();
        let intercept = match &model.intercepts[..] {
            [one] => Value::from(*one),
            many => many.iter().copied().collect(),
        };
        (weights, intercept)
    }

    /// The model that the file describes.
    pub fn model(&self) -> Result<Model, Failure> {
        let wrong = |what: &str| Failure::input(format!("the model does not fit together: {what}"));
        let outputs = self.loss.outputs();
        let numbers = |value: &Value| -> Option<Vec<f64>> {
            match value {
                Value::Array(list) => list.iter().map(Value::as_f64).collect(),
                one => one.as_f64().map(|one| vec![one]),
            }
        };
        let names = self.encoding.names();
        let mut model = Model {
            loss: self.loss,
            columns: names.len(),
            degree: self.design.degree,
            scaling: self.scaling.clone().filter(|_| self.design.degree > 1),
            weights: Vec::new(),
            intercepts: numbers(&self.intercept).ok_or_else(|| wrong("its intercept is no number"))?,
        };
        if self.design.features(names.len()).map_err(Failure::input)? != self.weights.len() {
            return Err(wrong("it has not as many weights as features"));
        }
        let features = model.feature_names(&names);
        model.weights = vec![0.0; outputs * features.len()];
        for (k, name) in features.iter().enumerate() {
            let weights = self.weights.get(name).and_then(numbers).filter(|weights| weights.len() == outputs);
            let weights = weights
                .ok_or_else(|| wrong(&format!("{name:?} has no weight, or not one for each class")))?;
            weights
                .iter()
                .enumerate()
                .for_each(|(output, weight)| model.weights[output * features.len() + k] = *weight);
        }
        model.check().map_err(Failure::input)?;
        let classes = self.classes.0.len();
        if classes != 0 && classes != outputs.max(2) {
            return Err(wrong("it has not a name for each class"));
        }
        Ok(model)
    }

    /// Reads a model file.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let text =
            std::fs::read_to_string(path).map_err(|error| Failure::input(error).in_file(name.as_str()))?;
        Self::parse(&name, &text)
    }

    fn parse(name: &str, text: &str) -> Result<Self, Failure> {
        let failed = |message: String| Failure::input(message).in_file(name);
        let value: Value = serde_json::from_str(text)
            .map_err(|error| failed(format!("not a model: {error}")).hint(ORDER))?;
        match value.get("format").and_then(Value::as_u64) {
            Some(FORMAT) => {}
            Some(newer) if newer > FORMAT => {
                return Err(failed(format!(
                    "a model of format {newer}, but this program knows format {FORMAT}"
                ))
                .hint("use the program that wrote it, or a newer one"));
            }
            _ => return Err(failed("not a model of this program".into()).hint(ORDER)),
        }
        serde_json::from_value(value).map_err(|error| failed(format!("not a model: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use pasta_opt::draws::{Address, Role, Stream};

    use super::ModelFile;

    /// Written by `pasta fit` for a table with numbers, missing values and categories.
    const EXAMPLE: &str = include_str!("../../tests/data/model.json");

    /// The text with a few changes at random: bytes, words, pieces that go or stand twice.
    fn damaged(xi: &mut Stream) -> String {
        const WORDS: [&str; 14] = [
            "null",
            "0",
            "-1",
            "1e999",
            "1e308",
            "[]",
            "{}",
            "\"\"",
            "true",
            "18446744073709551616",
            ",",
            "2",
            "3",
            "1.5",
        ];
        let mut text = EXAMPLE.as_bytes().to_vec();
        for _ in 0..=xi.below(3) {
            let at = xi.below(text.len() as u64) as usize;
            let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"_+-.".contains(byte);
            let until = at + text[at..].iter().take_while(|byte| is_word(byte)).count();
            match xi.below(5) {
                0 => text[at] ^= 1 << xi.below(7),
                1 => drop(text.drain(at..(at + 1 + xi.below(30) as usize).min(text.len()))),
                2 => {
                    let copy = text[at..(at + xi.below(60) as usize).min(text.len())].to_vec();
                    text.splice(at..at, copy);
                }
                _ => drop(text.splice(at..until, WORDS[xi.below(14) as usize].bytes())),
            }
        }
        String::from_utf8_lossy(&text).into_owned()
    }

    /// `FUZZ_CASES=1000000` tries more.
    #[test]
    fn damaged_models_are_read_or_refused() {
        let trials = std::env::var("FUZZ_CASES").map_or(3000, |n| n.parse().expect("a number"));
        assert!(ModelFile::parse("m", EXAMPLE).and_then(|file| file.model()).is_ok());
        let mut counts = [0; 2];
        for trial in 0..trials {
            let mut xi = Address { seed: 6, role: Role::Setup, step: 0, sample: trial }.stream();
            let read = ModelFile::parse("m", &damaged(&mut xi)).and_then(|file| file.model());
            counts[usize::from(read.is_ok())] += 1;
        }
        assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
    }
}
