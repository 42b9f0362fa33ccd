//! What a careful reader would ask about a table before believing a fit to it.

use std::fmt;

use rayon::prelude::*;
use serde::{Serialize, Serializer};

use super::{Omitted, StdErrors, Summary};
use crate::fit::PENALTY;
use crate::score::has_classes;
use crate::table::{Dense, Features, Linear, Table};

/// A reason to doubt that a fit answers the question that was meant. None of them changes the fit.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Caution {
    /// There are as many coefficients as rows, or more: labels that mean nothing would be met as well.
    Saturated {
        /// Rows with a weight above 0.
        rows: u64,
        /// Coefficients.
        coefficients: usize,
    },
    /// All labels are equal.
    NothingToExplain,
    /// The rows do not decide the weights, and no column was left out: the estimates are one choice of many.
    Undecided {
        /// The weights that are decided.
        rank: usize,
        /// All weights.
        of: usize,
    },
    /// A column is the label, up to a factor and a shift.
    HoldsLabel {
        /// Its name.
        column: String,
    },
    /// Columns nearly depend on each other.
    NearlyDependent {
        /// Their names.
        columns: Vec<String>,
        /// By how much this multiplies the variance of an estimate, at most.
        inflation: f64,
    },
    /// Rows occur more than once, more often than chance would have it.
    Repeated {
        /// The rows that are equal to one before them.
        rows: u64,
    },
    /// A column goes up by 1 from row to row.
    Counter {
        /// Its name.
        column: String,
    },
    /// The numbers of a column read as days: 20260131.
    Dates {
        /// Its name.
        column: String,
    },
    /// A value far from all others that often stands for one that is missing.
    Sentinel {
        /// The name of the column.
        column: String,
        /// The value.
        value: f64,
        /// How many rows have it.
        rows: u64,
    },
}

impl fmt::Display for Caution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Saturated { rows, coefficients } => write!(
                f,
                "{coefficients} coefficients for {rows} rows: labels that mean nothing would be met as well; score it on other rows (--validation, --cv)"
            ),
            Self::NothingToExplain => write!(f, "all labels are equal: there is nothing to explain"),
            Self::Undecided { rank, of } => write!(
                f,
                "the minimiser is not unique: rank {rank} of {of}; the estimates are one choice of many, predictions are not"
            ),
            Self::HoldsLabel { column } => {
                write!(f, "column {column} is the label, up to a factor and a shift")
            }
            Self::NearlyDependent { columns, inflation } => write!(
                f,
                "{} nearly depend on other columns: variances are up to {inflation:.0e} times as large as without them",
                listed(columns)
            ),
            Self::Repeated { rows } => write!(
                f,
                "{rows} rows repeat earlier ones; standard errors and scores count each as a new observation"
            ),
            Self::Counter { column } => write!(
                f,
                "column {column} goes up by 1 from row to row; if it numbers the rows, leave it out (--ignore {column})"
            ),
            Self::Dates { column } => write!(
                f,
                "column {column} reads as days (YYYYMMDD), whose differences are not numbers of days"
            ),
            Self::Sentinel { column, value, rows } => {
                let rows = if *rows == 1 { "1 row".into() } else { format!("{rows} rows") };
                write!(f, "column {column} is {value} in {rows}, far from all else: a missing value?")
            }
        }
    }
}

fn listed(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let more = names.len().saturating_sub(SHOWN);
    let shown = names[..names.len() - more].join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

impl Serialize for Caution {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Values up to which a table is looked at: a fraction of a second.
const MOST_VALUES: usize = 20_000_000;
/// Fewer rows show no pattern.
const FEWEST: usize = 10;
/// Variances that are multiplied by this are worth a word.
const INFLATION: f64 = 1e3;

impl Caution {
    /// All reasons to doubt a fit, the gravest first. Values are looked at where the table is dense and has at most twenty million.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use pasta_opt::fit::{Fit, Way};
    /// use pasta_opt::inference::{Caution, Summary};
    /// use pasta_opt::table::{Dense, Design, Features, Linear, Loss, Table};
    ///
    /// let values = (0..20).flat_map(|k| [f64::from(k), f64::from(k * k % 7)]).collect::<Vec<f64>>();
    /// let labels = (0..20).map(|k| f64::from(k * k * k % 11)).collect::<Vec<f64>>();
    /// let features = Features::Dense(Dense { rows: 20, columns: 2, values: values.into() });
    /// let table = Table::new(features, Arc::new(labels), None, vec!["row".into(), "a".into()])?;
    /// let linear = Arc::new(Linear::new(Arc::new(table), Loss::LeastSquares, Design::default())?);
    /// let fit = Fit { way: Way::usual(&linear), start: None, target: None, budget: None, seed: 1 };
    /// let fitted = fit.run(&linear, linear.clone(), Arc::default(), &mut |_| ())?;
    /// let summary = Summary::of(&linear, &fitted, None);
    /// assert_eq!(Caution::of(&linear, &summary), [Caution::Counter { column: "row".into() }]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of(linear: &Linear, summary: &Summary) -> Vec<Self> {
        let mut all: Vec<Self> = about_fit(linear, summary).into_iter().collect();
        all.extend(Self::of_table(linear.table()));
        let near = nearly_dependent(linear, summary);
        all.splice(all.len().min(1)..all.len().min(1), near);
        all
    }

    /// Those that the table alone gives.
    pub fn of_table(table: &Table) -> Vec<Self> {
        let Features::Dense(dense) = &table.features else { return Vec::new() };
        if dense.rows < FEWEST || dense.rows * dense.columns > MOST_VALUES {
            return Vec::new();
        }
        let labels = (*table.labels).as_ref();
        let columns = (0..dense.columns).into_par_iter();
        let of_columns: Vec<Self> =
            columns.filter_map(|j| of_column(&column(dense, j), labels, table.name(j))).collect();
        let mut all: Vec<Self> = repeated(dense, labels).into_iter().collect();
        all.extend(of_columns);
        all.sort_by_key(|caution| !matches!(caution, Self::HoldsLabel { .. }));
        all
    }
}

fn about_fit(linear: &Linear, summary: &Summary) -> Option<Caution> {
    let explained = &summary.explained;
    let (rows, coefficients) = (explained.rows, explained.coefficients);
    let labels = (*linear.table().labels).as_ref();
    if !has_classes(linear.loss()) && labels.iter().all(|label| *label == labels[0]) {
        return Some(Caution::NothingToExplain);
    }
    // A penalty as small as that of a second fit of separated classes holds nothing back.
    let is_free = linear.design().penalty <= PENALTY && summary.omitted != Some(Omitted::Term);
    if is_free && rows <= coefficients as u64 {
        return Some(Caution::Saturated { rows, coefficients });
    }
    match summary.omitted {
        Some(Omitted::Singular { rank, of }) => Some(Caution::Undecided { rank, of }),
        _ => None,
    }
}

/// Columns whose estimates vary far more than they would alone, by classical errors of least squares.
fn nearly_dependent(linear: &Linear, summary: &Summary) -> Option<Caution> {
    let (deviation, scaling) = (summary.explained.residual_deviation?, linear.scaling()?);
    if summary.std_errors != Some(StdErrors::Classical) || linear.design().degree > 1 {
        return None;
    }
    let first = usize::from(linear.design().intercept);
    // Alone, a column of deviation sd has the variance s^2/(n sd^2).
    let root = (linear.total_weight()).sqrt() / deviation;
    let inflations = summary.coefficients[first..].iter().zip(&scaling.scale).filter_map(|(one, scale)| {
        let inflation = (one.std_error? * scale * root).powi(2);
        (inflation > INFLATION).then_some((one.name.clone(), inflation))
    });
    let (columns, inflations): (Vec<String>, Vec<f64>) = inflations.unzip();
    let inflation = inflations.into_iter().fold(0.0, f64::max);
    (!columns.is_empty()).then_some(Caution::NearlyDependent { columns, inflation })
}

fn column(dense: &Dense, j: usize) -> Vec<f64> {
    let slice = dense.values.slice();
    (0..dense.rows).map(|row| slice.get(row * dense.columns + j)).collect()
}

fn of_column(values: &[f64], labels: &[f64], column: String) -> Option<Caution> {
    if holds(values, labels) {
        return Some(Caution::HoldsLabel { column });
    }
    // Columns of years go up by 1, too.
    let is_year = |value: f64| (1500.0..2200.0).contains(&value);
    if values.windows(2).all(|pair| pair[1] - pair[0] == 1.0) && !is_year(values[0]) {
        return Some(Caution::Counter { column });
    }
    if values.iter().all(|value| is_day(*value)) && values.iter().any(|value| *value != values[0]) {
        return Some(Caution::Dates { column });
    }
    sentinel(values).map(|(value, rows)| Caution::Sentinel { column, value, rows })
}

/// Whether the label is a multiple of the column, plus a constant, up to rounding.
fn holds(values: &[f64], labels: &[f64]) -> bool {
    const ROUNDING: f64 = 1e-12;
    let n = values.len() as f64;
    let mean = |numbers: &[f64]| numbers.iter().map(|x| x / n).sum::<f64>();
    let (a, b) = (mean(values), mean(labels));
    let [mut aa, mut ab, mut bb] = [0.0_f64; 3];
    for (x, y) in values.iter().zip(labels) {
        let (x, y) = (x - a, y - b);
        aa += x * x;
        ab += x * y;
        bb += y * y;
    }
    let share = ab / aa * (ab / bb);
    aa > 0.0 && bb > 0.0 && share >= 1.0 - ROUNDING
}

fn is_day(value: f64) -> bool {
    if value.fract() != 0.0 || !(18_000_101.0..21_001_232.0).contains(&value) {
        return false;
    }
    let day = value as u32;
    (1..=12).contains(&(day / 100 % 100)) && (1..=31).contains(&(day % 100))
}

/// The value at one end of a column that is written with nines and farther from all others than they are from each other, and how often it occurs.
fn sentinel(values: &[f64]) -> Option<(f64, u64)> {
    let is_nines = |value: f64| {
        let size = value.abs() + 1.0;
        (size.log10().round() - size.log10()).abs() < 1e-12 && size >= if value < 0.0 { 10.0 } else { 100.0 }
    };
    let ends = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(*x), b.max(*x)));
    [ends.0, ends.1].into_iter().filter(|end| is_nines(*end)).find_map(|end| {
        let others = values.iter().filter(|value| **value != end);
        let (low, high) = others.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(*x), b.max(*x)));
        let gap = if end < low { low - end } else { end - high };
        let rows = values.iter().filter(|value| **value == end).count() as u64;
        (high > low && gap > high - low).then_some((end, rows))
    })
}

/// Rows that are equal to an earlier one, if they are at least one of a hundred and chance would not make a tenth of them: by the column in which different rows agree
/// most rarely.
fn repeated(dense: &Dense, labels: &[f64]) -> Option<Caution> {
    let slice = dense.values.slice();
    let hash = |row: usize| {
        let bits = (0..dense.columns).map(|j| slice.get(row * dense.columns + j)).chain([labels[row]]);
        bits.fold(0xcbf2_9ce4_8422_2325_u64, |hash, value| {
            // 0 and -0 are one number.
            let mixed = (hash ^ (value + 0.0).to_bits()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            mixed ^ (mixed >> 29)
        })
    };
    let mut rows: Vec<(u64, usize)> = (0..dense.rows).into_par_iter().map(|row| (hash(row), row)).collect();
    rows.par_sort_unstable();
    let distinct: Vec<usize> = rows.chunk_by(|a, b| a.0 == b.0).map(|equal| equal[0].1).collect();
    let repeats = dense.rows - distinct.len();
    if repeats < 2 || repeats * 100 < dense.rows {
        return None;
    }
    let pairs = |n: usize| n as f64 * (n as f64 - 1.0) / 2.0;
    let by_chance = |values: &[f64]| {
        let mut values: Vec<f64> = distinct.iter().map(|row| values[*row]).collect();
        values.sort_unstable_by(f64::total_cmp);
        let equal: f64 = values.chunk_by(|a, b| a == b).map(|equal| pairs(equal.len())).sum();
        equal / pairs(distinct.len()).max(1.0) * pairs(dense.rows)
    };
    let mut columns = (0..dense.columns).map(|j| by_chance(&column(dense, j)));
    let is_rare = |chance: f64| chance * 10.0 < repeats as f64;
    (is_rare(by_chance(labels)) || columns.any(is_rare)).then_some(Caution::Repeated { rows: repeats as u64 })
}
