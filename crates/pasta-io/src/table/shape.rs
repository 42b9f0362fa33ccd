//! How a table is read, and what is fitted to it.

use std::path::PathBuf;

use pasta_opt::table::{Design, LOSSES, Labels, Loss};

use crate::{Failure, Meaning, Options, nearest};

/// How a table is read.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// What its file does not say. What labels mean is for the loss to say.
    pub options: Options,
    /// Whether it is mapped from a cache.
    pub cache: Cache,
}

/// Whether a table is mapped from a cache, which is written the first time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Cache {
    /// If its text has more bytes than half of the memory that is free.
    #[default]
    IfLarge,
    /// From one beside its file.
    Beside,
    /// From one in this folder.
    In(PathBuf),
}

impl Reading {
    /// How a file is read that is for this loss.
    pub fn options(&self, loss: &str) -> Options {
        let meaning = if has_classes(loss) { Meaning::Classes } else { Meaning::Numbers };
        Options { meaning, ..self.options.clone() }
    }
}

/// Bytes, with a unit of 1024, 1024^2, .. behind them or without.
pub fn memory_size(text: &str) -> Result<u64, String> {
    let wrong = || format!("expected a size such as 500M or 8G, got {text:?}");
    let bare = text.strip_suffix(['B', 'b']).unwrap_or(text);
    let bare = bare.strip_suffix('i').unwrap_or(bare);
    let (number, power) = match bare.char_indices().last() {
        Some((at, unit)) if unit.is_ascii_alphabetic() => {
            let power = "KMGT".find(unit.to_ascii_uppercase()).ok_or_else(wrong)?;
            (&bare[..at], power as i32 + 1)
        }
        _ => (bare, 0),
    };
    let number: f64 = number.trim().parse().map_err(|_| wrong())?;
    let bytes = number * 1024_f64.powi(power);
    if (1.0..1e19).contains(&bytes) { Ok(bytes as u64) } else { Err(wrong()) }
}

/// What stands between columns: a character, or `tab` or `space`.
pub fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        b"space" => Ok(b' '),
        [byte] if byte.is_ascii() && !byte.is_ascii_alphanumeric() && !b"\"\n\r.+-".contains(byte) => {
            Ok(*byte)
        }
        _ => Err("expected one character, or tab, or space".into()),
    }
}

/// True if labels are names of classes for the loss of this name.
fn has_classes(loss: &str) -> bool {
    let row = LOSSES.iter().find(|row| row.name == loss);
    row.is_some_and(|row| matches!(row.labels, Labels::Signs | Labels::Classes))
}

/// What is fitted to a table.
#[derive(Debug, Clone, Copy)]
pub struct Shaping {
    /// The parameter of huber.
    pub delta: Option<f64>,
    /// The parameter of quantile.
    pub level: Option<f64>,
    /// The parameter of cauchy, welsch and tukey.
    pub scale: Option<f64>,
    /// How columns become features.
    pub design: Design,
}

impl Shaping {
    /// What differs from the usual design.
    pub fn words(&self) -> String {
        let mut words = String::new();
        let mut say = |differs: bool, what: String| {
            if differs {
                words = format!("{words}, {what}");
            }
        };
        let Design { intercept, standardise, degree, penalty } = self.design;
        say(penalty != 0.0, format!("penalty {penalty}"));
        say(degree > 1, format!("degree {degree}"));
        say(!intercept, "no intercept".into());
        say(!standardise, "not standardised".into());
        words
    }

    /// The loss of this name, with its parameter.
    pub fn loss(&self, name: &str, classes: usize) -> Result<Loss, Failure> {
        let given = [("delta", self.delta), ("level", self.level), ("scale", self.scale)];
        let row = LOSSES.iter().find(|row| row.name == name).ok_or_else(|| unknown(name))?;
        let own = row.parameter.map(|parameter| parameter.name);
        if let Some((other, _)) = given.iter().find(|(key, value)| value.is_some() && Some(*key) != own) {
            return Err(Failure::input(format!("the {name} loss has no {other}")));
        }
        let parameter = given.iter().find(|(key, _)| Some(*key) == own).and_then(|(_, value)| *value);
        let loss = Loss::named(name, parameter, classes).ok_or_else(|| unknown(name))?;
        loss.check().map_err(Failure::input)?;
        Ok(loss)
    }
}

/// What a loss is called here that other packages call so.
fn elsewhere(name: &str) -> Option<&'static str> {
    let here = match name.to_ascii_lowercase().replace('_', "-").as_str() {
        "mse" | "l2" | "ols" | "linear" | "squared-error" | "squared-loss" => "least-squares",
        "mae" | "l1" | "lad" | "absolute-error" => "absolute",
        "log-loss" | "logloss" | "log" | "bce" | "binary-cross-entropy" | "binomial" => "logistic",
        "softmax" | "cross-entropy" | "categorical" | "multiclass" => "multinomial",
        "svm" => "hinge",
        "pinball" => "quantile",
        _ => return None,
    };
    Some(here)
}

fn unknown(name: &str) -> Failure {
    let names: Vec<_> = LOSSES.iter().map(|row| row.name).collect();
    let failure = Failure::input(format!("unknown loss {name:?}; expected one of {}", names.join(", ")));
    match (elsewhere(name), nearest(name, names)) {
        (Some(here), _) => failure.hint(format!("{name} is called {here} here")),
        (None, Some(near)) => failure.hint(format!("did you mean {near}?")),
        (None, None) => failure,
    }
}
