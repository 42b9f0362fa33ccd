//! Problems by name and parameters, for files and command lines: nothing here knows a particular problem.

use std::collections::{BTreeMap, btree_map};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::TABLE;
use crate::objective::Objective;

/// One problem of the [`TABLE`].
#[derive(Debug)]
#[non_exhaustive]
pub struct ProblemRow {
    /// What the problem is called in a file.
    pub name: &'static str,
    /// f in one line.
    pub formula: &'static str,
    /// Every parameter that the problem takes.
    pub parameters: &'static [Parameter],
    /// Makes the objective once all parameters are there and in range.
    pub(super) make: fn(&Checked) -> Box<dyn Objective>,
}

impl ProblemRow {
    /// The problem with these parameters, or what is wrong with them.
    pub fn build(&self, given: &Parameters) -> Result<Box<dyn Objective>, ProblemError> {
        let stranger = given.iter().find(|(name, _)| self.parameters.iter().all(|p| p.name != *name));
        if let Some((name, _)) = stranger {
            return Err(ProblemError::UnknownParameter {
                problem: self.name,
                parameter: name.to_owned(),
                accepted: self.parameters.iter().map(|p| p.name).collect(),
            });
        }
        let mut checked = Checked::default();
        for parameter in self.parameters {
            checked.0.insert(parameter.name, parameter.check(self.name, given.get(parameter.name))?);
        }
        Ok((self.make)(&checked))
    }
}

/// Whether a parameter is one number or several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// One number.
    Number,
    /// A list of numbers.
    List,
}

/// One parameter of a problem.
#[derive(Debug)]
pub struct Parameter {
    /// What it is called in a file.
    pub name: &'static str,
    /// What it does to f.
    pub meaning: &'static str,
    /// One number or a list.
    pub kind: Kind,
    /// Its range, in words that follow "must be".
    pub needs: &'static str,
    /// What it is when it is not given; `None` where it must be given.
    pub default: Option<f64>,
    /// The range in code; a number comes as a list of one.
    pub(super) admits: fn(&[f64]) -> bool,
}

/// Vectors of this many doubles fill 8 GB: beyond, the machine and not the mathematics would refuse.
const MAX_DIMENSION: f64 = 1e9;

impl Parameter {
    /// The number of coordinates.
    pub(super) const DIMENSION: Self = Self {
        name: "dimension",
        meaning: "the number of coordinates",
        kind: Kind::Number,
        needs: "a whole number from 1 to 1e9",
        default: Some(1.0),
        admits: |d| d[0].fract() == 0.0 && (1.0..=MAX_DIMENSION).contains(&d[0]),
    };

    /// A constant above zero that has to be given.
    pub(super) const fn positive(name: &'static str, meaning: &'static str) -> Self {
        Self {
            name,
            meaning,
            kind: Kind::Number,
            needs: "a finite number above 0",
            default: None,
            admits: |c| c[0].is_finite() && c[0] > 0.0,
        }
    }

    fn check(&self, problem: &'static str, given: Option<&Value>) -> Result<Vec<f64>, ProblemError> {
        let Some(value) = given else {
            return self.default.map(|number| vec![number]).ok_or(ProblemError::Missing {
                problem,
                parameter: self.name,
                meaning: self.meaning,
                needs: self.needs,
            });
        };
        match (self.kind, value) {
            (Kind::Number, Value::Number(number)) if (self.admits)(&[*number]) => Ok(vec![*number]),
            (Kind::List, Value::List(list)) if (self.admits)(list) => Ok(list.clone()),
            _ => Err(ProblemError::Refused {
                problem,
                parameter: self.name,
                needs: self.needs,
                got: value.clone(),
            }),
        }
    }
}

/// The parameters of a row, complete and in range.
#[derive(Debug, Default)]
pub(super) struct Checked(BTreeMap<&'static str, Vec<f64>>);

impl Checked {
    pub(super) fn list(&self, name: &str) -> Vec<f64> {
        self.0.get(name).expect("a row reads only the parameters that it declares").clone()
    }

    pub(super) fn number(&self, name: &str) -> f64 {
        self.list(name)[0]
    }

    pub(super) fn dimension(&self) -> usize {
        self.number(Parameter::DIMENSION.name) as usize
    }
}

/// The value of a parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// One number.
    Number(f64),
    /// A list of numbers.
    List(Vec<f64>),
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<Vec<f64>> for Value {
    fn from(list: Vec<f64>) -> Self {
        Self::List(list)
    }
}

impl fmt::Display for Value {
    /// A long list is shown by its ends in the total order of doubles, where a NaN is an end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number:?}"),
            Self::List(list) if list.len() <= 8 => write!(f, "the list {list:?}"),
            Self::List(list) => {
                let mut sorted = list.clone();
                sorted.sort_by(f64::total_cmp);
                let (low, high) = (sorted[0], sorted[sorted.len() - 1]);
                write!(f, "a list of {} numbers from {low:?} to {high:?}", list.len())
            }
        }
    }
}

/// Parameter names and their values.
///
/// ```
/// use pasta_opt::problems::{Parameters, build};
///
/// let given = Parameters::from([("slope", 0.5.into()), ("reach", 2.0.into()), ("curvature", 0.5.into())]);
/// // slope reach + slope^2/(2 curvature) = 1 + 1/4
/// assert_eq!(build("ramp", &given)?.infimum(), -1.25);
/// # Ok::<(), pasta_opt::problems::ProblemError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Parameters(BTreeMap<String, Value>);

impl Parameters {
    /// Sets a parameter; the value it had before, if any.
    pub fn insert(&mut self, name: impl Into<String>, value: impl Into<Value>) -> Option<Value> {
        self.0.insert(name.into(), value.into())
    }

    /// The value of a parameter.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}

impl<const N: usize> From<[(&str, Value); N]> for Parameters {
    fn from(pairs: [(&str, Value); N]) -> Self {
        pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

impl FromIterator<(String, Value)> for Parameters {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(pairs: I) -> Self {
        Self(pairs.into_iter().collect())
    }
}

impl IntoIterator for Parameters {
    type Item = (String, Value);
    type IntoIter = btree_map::IntoIter<String, Value>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// The problem called `name` with these parameters, or what is wrong with the request.
///
/// ```
/// use pasta_opt::problems::{Parameters, build};
///
/// let bowl = build("sine-bowl", &Parameters::from([("dimension", 3.0.into())]))?;
/// assert_eq!((bowl.dim(), bowl.facts().pl), (3, Some(0.2525)));
///
/// let refused = build("sine-bowl", &Parameters::from([("dimension", 0.5.into())])).unwrap_err();
/// assert_eq!(refused.parameter(), Some("dimension"));
/// # Ok::<(), pasta_opt::problems::ProblemError>(())
/// ```
pub fn build(name: &str, parameters: &Parameters) -> Result<Box<dyn Objective>, ProblemError> {
    match TABLE.iter().find(|row| row.name == name) {
        Some(row) => row.build(parameters),
        None => Err(ProblemError::Unknown { name: name.to_owned(), nearest: nearest_name(name) }),
    }
}

/// Why a problem could not be built.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ProblemError {
    /// No row has this name.
    #[error("no problem is called {name:?}{}; the problems are {}", guess(*.nearest), names())]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// A problem whose name is spelt almost like it.
        nearest: Option<&'static str>,
    },
    /// The problem takes no such parameter.
    #[error("{problem} has no parameter {parameter:?}: it takes {}", .accepted.join(", "))]
    UnknownParameter {
        /// The problem.
        problem: &'static str,
        /// The parameter that was given.
        parameter: String,
        /// The parameters that it takes.
        accepted: Vec<&'static str>,
    },
    /// A parameter without a default was not given.
    #[error("{problem} needs {parameter} ({meaning}), {needs}")]
    Missing {
        /// The problem.
        problem: &'static str,
        /// The parameter.
        parameter: &'static str,
        /// What it does.
        meaning: &'static str,
        /// Its range.
        needs: &'static str,
    },
    /// A parameter is out of its range, or a list where a number is due, or the other way round.
    #[error("{problem}: {parameter} must be {needs}, but is {got}")]
    Refused {
        /// The problem.
        problem: &'static str,
        /// The parameter.
        parameter: &'static str,
        /// Its range.
        needs: &'static str,
        /// What was given.
        got: Value,
    },
}

impl ProblemError {
    /// The parameter that is to blame, or `None` where it is the problem's name.
    pub fn parameter(&self) -> Option<&str> {
        match self {
            Self::Unknown { .. } => None,
            Self::UnknownParameter { parameter, .. } => Some(parameter),
            Self::Missing { parameter, .. } | Self::Refused { parameter, .. } => Some(parameter),
        }
    }
}

fn names() -> String {
    TABLE.iter().map(|row| row.name).collect::<Vec<_>>().join(", ")
}

fn guess(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!(" (did you mean {name:?}?)"))
}

/// The problem that `name` is a misspelling of: at most every third letter is wrong.
fn nearest_name(name: &str) -> Option<&'static str> {
    let (edits, nearest) = TABLE.iter().map(|row| (edit_distance(name, row.name), row.name)).min()?;
    (3 * edits <= nearest.len()).then_some(nearest)
}

/// The fewest insertions, deletions and replacements of letters that turn `a` into `b` (Wagner and Fischer).
fn edit_distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.chars().enumerate() {
            let replaced = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.chars().count()]
}
