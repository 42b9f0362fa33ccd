//! `pasta inspect`: what a table holds, what is proved about a loss on it, and what a run would cost.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use pasta_io::{Code, Data, Encoding, Source};
use pasta_opt::draws::Role;
use pasta_opt::gate::Gate;
use pasta_opt::inference::Caution;
use pasta_opt::objective::{Facts, Measure};
use pasta_opt::recipe::{self, Constant, Constants, RecipeError};
use pasta_opt::table::{Features, Linear, Proved};
use pasta_report::console::{self, Exit, Failure, Report, flags, with_threads};
use pasta_report::number::{at_most, real};
use pasta_report::{Column, Table, fitted, grouped};
use serde::Serialize;

use crate::table::{
    Chosen, Filling, Loaded, Reading, Shaping, coded_columns, kept, load_and_choose, losses, naming, refused,
};

/// Show what a table holds, what is proved about a loss on it, and what a run would cost.
///
/// Reads the table, summarises its labels and columns (of a wide table those whose scale is strangest), and computes the constants
/// that are proved for a loss on it. With these, every recipe whose theorem covers the loss is planned.
#[derive(Args)]
#[command(after_long_help = after_help())]
pub(crate) struct Arguments {
    /// The table; - reads standard input
    data: PathBuf,
    /// The loss [default: least-squares for numbers, logistic for two classes, multinomial for words of more]
    #[arg(long, value_name = "LOSS")]
    loss: Option<String>,
    /// What costs are computed for: |grad f| (or f - inf f, where a theorem is about that) at most this share of the start's
    #[arg(long, value_name = "SHARE", value_parser = share, default_value_t = 0.01)]
    share: f64,
    /// Threads; does not change a bit of the result
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = flags::thread_count())]
    threads: Option<u16>,
    /// Print one JSON object, with all columns, instead of tables
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reading: Reading,
    #[command(flatten)]
    shaping: Shaping,
}

fn after_help() -> String {
    format!("{}\n\nExample:\n  pasta inspect train.csv --label price --loss huber", losses())
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| *share > 0.0 && *share < 1.0);
    share.ok_or_else(|| "expected a number between 0 and 1".into())
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    with_threads(arguments.threads.map(usize::from), || inspect(arguments))
}

fn inspect(arguments: &Arguments) -> Result<Exit, Failure> {
    arguments.shaping.refuse_auto("inspect")?;
    let source = Source::named(&arguments.data);
    let file = source.name();
    let Chosen { data, loss, why } = read(arguments, &source)?;
    let words = word_columns(&data.encoding);
    let command = command(arguments, &loss, !words.is_empty(), &data);
    let missing = data.missing.clone();
    let codes = coded_columns(&data);
    let labels = LabelSummary::of(&data);
    let dropped = data.left_out.len() as u64;
    let loaded = Loaded::new(&file, data, &loss, &arguments.shaping.plain())?;
    let linear = loaded.linear;
    let table = linear.table();
    let names = loaded.encoding.names();
    let start = linear.start();
    let proved = linear.constants(&start).map_err(|error| refused(&file, &names, &error))?;
    let mut gradient = vec![0.0; start.len()];
    let mut gate = Gate::over(linear.clone(), 1);
    gate.exact(Role::Calibration, &start, &mut gradient).map_err(Failure::system)?;
    let gradient = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
    let (storage, bytes) = match &table.features {
        Features::Dense(dense) => ("dense", dense.values.len() * dense.values.width()),
        Features::Sparse(sparse) => {
            ("sparse", sparse.entries() * (sparse.values.width() + 4) + 8 * table.rows())
        }
    };
    let (columns, full) = columns(&linear, &names);
    let costs = costs(&proved, gradient, arguments.share, table.rows() as f64);
    let report = Findings {
        file,
        rows: table.rows(),
        columns_in_all: table.columns(),
        naming: naming(&loaded.encoding),
        density: full as f64 / (table.rows() as f64 * table.columns() as f64),
        storage,
        bytes,
        dropped,
        missing,
        words,
        cautions: Caution::of_table(table).iter().map(ToString::to_string).chain(codes).collect(),
        command,
        labels,
        loss,
        guessed: why.map_or_else(String::new, |why| format!(" (guessed: {why})")),
        share: arguments.share,
        start_gradient: gradient,
        constants: proved,
        costs,
        columns,
    };
    console::print(&report, arguments.json)
}

/// The table, whatever is missing in it and whatever words it holds: gaps are filled with medians, or else rows that have some left out, and words become columns.
fn read(arguments: &Arguments, source: &Source) -> Result<Chosen, Failure> {
    let (asked, loss) = (&arguments.reading, arguments.loss.as_deref());
    let source = kept(source, asked.memory)?;
    if asked.missing.is_none() && asked.cache.is_none() {
        for missing in [Filling::Median, Filling::DropRow] {
            let reading = Reading { missing: Some(missing), one_hot: true, ..asked.clone() };
            if let Ok(chosen) = load_and_choose(&source, &reading.plain(), loss) {
                return Ok(chosen);
            }
        }
    }
    let reading = Reading { one_hot: asked.one_hot || asked.cache.is_none(), ..asked.clone() };
    load_and_choose(&source, &reading.plain(), loss)
        .or_else(|_| load_and_choose(&source, &asked.plain(), loss))
}

/// The columns that hold words, and how many different ones.
fn word_columns(encoding: &Encoding) -> Vec<(String, usize)> {
    let Encoding::Cells { columns, .. } = encoding else { return Vec::new() };
    let words = |code: &Code| Some((code.name.clone(), code.categories.as_ref()?.len()));
    columns.iter().filter_map(words).collect()
}

/// The command that fits the table as it was read here.
fn command(arguments: &Arguments, loss: &str, has_words: bool, data: &Data) -> String {
    let reading = &arguments.reading;
    let mut words = vec!["pasta fit".to_owned(), shell(&arguments.data.display().to_string())];
    let mut say = |flag: &str, value: Option<String>| {
        words.extend(value.map(|value| format!("{flag} {}", shell(&value))));
    };
    say("--label", reading.label.clone());
    say("--labels", reading.labels.as_ref().map(|path| path.display().to_string()));
    say("--weight", reading.weight.clone());
    say("--offset", reading.offset.clone());
    say("--ignore", Some(reading.ignore.join(",")).filter(|names| !names.is_empty()));
    say("--categories", Some(reading.categories.join(",")).filter(|names| !names.is_empty()));
    say("--loss", Some(loss.to_owned()));
    let missing = match (reading.missing, data.missing.is_empty(), data.left_out.is_empty()) {
        (Some(filling), _, _) => filling.to_possible_value().map(|value| value.get_name().to_owned()),
        (None, _, false) => Some("drop-row".into()),
        (None, false, true) => Some("median".into()),
        (None, true, true) => None,
    };
    say("--missing", missing);
    if reading.one_hot || has_words && reading.categories.is_empty() {
        words.push("--one-hot".into());
    }
    words.push("-o model.json".into());
    words.join(" ")
}

/// A word of a command line, in quotes where a shell would take it apart.
fn shell(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./,=+:@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// What there is to say.
#[derive(Serialize)]
struct Findings {
    file: String,
    rows: usize,
    columns_in_all: usize,
    /// Where their names are from, if that may be a surprise.
    #[serde(skip)]
    naming: &'static str,
    density: f64,
    storage: &'static str,
    bytes: usize,
    dropped: u64,
    /// Columns with missing cells, and how many.
    missing: Vec<(String, u64)>,
    /// Columns that hold words, and how many different ones.
    words: Vec<(String, usize)>,
    /// What to ask about the table before believing a fit.
    cautions: Vec<String>,
    /// The command that fits the table.
    command: String,
    labels: LabelSummary,
    loss: String,
    /// Why this loss, where none was given.
    #[serde(skip)]
    guessed: String,
    share: f64,
    start_gradient: f64,
    constants: Proved,
    costs: Vec<Cost>,
    /// The strangest first.
    columns: Vec<ColumnSummary>,
}

/// What labels are.
#[derive(Serialize)]
struct LabelSummary {
    column: String,
    /// How many rows each class has, for words and for few different numbers.
    classes: Vec<(String, u64)>,
    words: bool,
    min: Option<f64>,
    max: Option<f64>,
    mean: Option<f64>,
    sd: Option<f64>,
}

/// More different numbers are no classes.
const CLASSES: usize = 20;
/// From here on, doubles leave out whole numbers.
const EXACT: f64 = (1_u64 << 53) as f64;

impl LabelSummary {
    fn of(data: &Data) -> Self {
        let labels = data.labels.as_deref().unwrap_or_default();
        let numbers: Option<Vec<f64>> = data.classes.iter().map(|name| name.parse().ok()).collect();
        let words = numbers.is_none();
        let mut counts: Vec<(f64, u64)> = Vec::new();
        for label in labels {
            match counts.binary_search_by(|(other, _)| other.total_cmp(label)) {
                Ok(k) => counts[k].1 += 1,
                Err(k) if words || counts.len() <= CLASSES => counts.insert(k, (*label, 1)),
                Err(_) => {}
            }
        }
        // Numbers that a double has no room for may be several; they are named only where they are read as names.
        let exact = !data.classes.is_empty() || counts.iter().all(|(label, _)| label.abs() < EXACT);
        let few = words || (counts.len() <= CLASSES && exact);
        let name =
            |label: f64| data.classes.get(label as usize).cloned().unwrap_or_else(|| label.to_string());
        // Names of classes may be numbers all the same.
        let value =
            |label: &f64| numbers.iter().flatten().nth(*label as usize).map_or(*label, |value| *value);
        let labels: Vec<f64> = labels.iter().map(value).collect();
        let n = labels.len() as f64;
        let mean = labels.iter().map(|label| label / n).sum::<f64>();
        let deviation = labels.iter().map(|label| (label - mean).powi(2) / n).sum::<f64>().sqrt();
        let number = |value: f64| (!words && !labels.is_empty()).then_some(value);
        Self {
            column: data.label.clone(),
            classes: if few {
                counts.iter().map(|(label, n)| (name(*label), *n)).collect()
            } else {
                Vec::new()
            },
            words,
            min: number(labels.iter().copied().fold(f64::INFINITY, f64::min)),
            max: number(labels.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
            mean: number(mean),
            sd: number(deviation),
        }
    }

    fn text(&self) -> String {
        let of = if self.column.is_empty() { String::new() } else { format!("{}: ", self.column) };
        if self.classes.is_empty() {
            let show = |value: Option<f64>| value.map_or_else(|| "?".into(), real);
            let (min, max) = (show(self.min), show(self.max));
            return format!("{of}{min} to {max}, mean {}, sd {}", show(self.mean), show(self.sd));
        }
        let shown: Vec<_> =
            self.classes.iter().take(10).map(|(name, n)| format!("{name} ({})", grouped(*n))).collect();
        let more = if self.classes.len() > 10 { ", .." } else { "" };
        format!("{of}{} classes: {}{more}", self.classes.len(), shown.join(", "))
    }
}

/// What a column is.
#[derive(Serialize)]
struct ColumnSummary {
    name: String,
    min: f64,
    max: f64,
    mean: f64,
    sd: f64,
    /// The share of values that are zero.
    zeros: f64,
}

/// How many columns a terminal shows, and how many a program gets of a very wide table.
const SHOWN: usize = 12;
const LISTED: usize = 10_000;

/// All columns, those first whose deviation is farthest from the usual, and the number of values that are not zero.
fn columns(linear: &Linear, names: &[String]) -> (Vec<ColumnSummary>, u64) {
    let table = linear.table();
    let (rows, width) = (table.rows(), table.columns());
    let n = rows as f64;
    // Least, most, mean, sum of squares around it, and how many are not zero, of the values that are stored.
    let mut sums = vec![(f64::INFINITY, f64::NEG_INFINITY, 0.0, 0.0, 0_u64, 0_u64); width];
    for row in 0..rows {
        table.features.visit_row(row, |j, value| {
            let (least, most, mean, squares, stored, full) = &mut sums[j];
            (*least, *most) = (least.min(value), most.max(value));
            *stored += 1;
            *full += u64::from(value != 0.0);
            let away = value - *mean;
            *mean += away / *stored as f64;
            *squares += away * (value - *mean);
        });
    }
    let all: u64 = sums.iter().map(|sum| sum.5).sum();
    let mut columns: Vec<ColumnSummary> = sums
        .iter()
        .zip(names)
        .map(|(&(least, most, mean, squares, stored, full), name)| {
            // The zeros that are not stored count too.
            let kept = stored as f64 / n;
            let (min, max) =
                if stored < rows as u64 { (least.min(0.0), most.max(0.0)) } else { (least, most) };
            let variance = squares / n + mean * mean * kept * (1.0 - kept);
            let zeros = 1.0 - full as f64 / n;
            ColumnSummary { name: name.clone(), min, max, mean: mean * kept, sd: variance.sqrt(), zeros }
        })
        .collect();
    let mut scales: Vec<f64> = columns.iter().map(|c| c.sd).filter(|sd| *sd > 0.0).collect();
    scales.sort_by(f64::total_cmp);
    let usual = scales.get(scales.len() / 2).copied().unwrap_or(1.0);
    let strange = |c: &ColumnSummary| {
        if c.sd > 0.0 { (c.sd / usual).ln().abs() } else { f64::INFINITY }
    };
    columns.sort_by(|a, b| strange(b).total_cmp(&strange(a)));
    columns.truncate(LISTED);
    (columns, all)
}

/// What a recipe would cost.
#[derive(Serialize)]
struct Cost {
    recipe: &'static str,
    /// What is promised to be at most the square of the target, or the target.
    measure: &'static str,
    target: f64,
    /// Samples, in expectation or at most; `None` where it cannot be planned.
    samples: Option<f64>,
    passes: Option<f64>,
    why_not: Option<String>,
}

/// The cost of every recipe whose theorem covers the loss.
fn costs(proved: &Proved, gradient: f64, share: f64, rows: f64) -> Vec<Cost> {
    let constants: Constants = proved.into();
    let facts = Facts {
        smoothness: constants.get(Constant::Smoothness),
        lipschitz: constants.get(Constant::Lipschitz),
        weak_convexity: constants.get(Constant::Rho),
        pl: constants.get(Constant::Mu),
        star: constants.get(Constant::Mu),
    };
    let cost = |row: &'static recipe::RecipeRow| {
        let mut own = row.relevant(&constants);
        if let Some(mu) = (row.mu)(&facts) {
            own.set(Constant::Mu, mu);
        }
        if row.uses(Constant::Lambda) {
            own.set(Constant::Lambda, 2.0 * facts.weak_convexity.unwrap_or(0.0).max(1e-3));
        }
        // A theorem about the gap has its target in units of f, the others in units of the gradient.
        let plan = |target: f64| {
            let mut own = own;
            own.set(Constant::Target, target);
            row.plan(&own)
        };
        let by_gradient = plan(share * gradient);
        let is_gap = by_gradient.as_ref().is_ok_and(|plan| plan.guarantee.measure == Measure::Gap);
        let gap = constants.get(Constant::Gap).filter(|_| is_gap);
        let (target, plan) = match gap {
            Some(gap) => (share * gap, plan(share * gap)),
            None => (share * gradient, by_gradient),
        };
        let measure = if is_gap { "f - inf f" } else { "|grad f|" };
        match plan {
            Ok(plan) => {
                let samples = plan.cost.samples;
                let passes = Some(samples / rows);
                Cost { recipe: row.name, measure, target, samples: Some(samples), passes, why_not: None }
            }
            Err(error) => {
                let why_not = Some(match error {
                    RecipeError::Missing { constant, .. } => {
                        format!("needs {}, which is not proved", constant.name())
                    }
                    other => other.to_string(),
                });
                Cost { recipe: row.name, measure, target, samples: None, passes: None, why_not }
            }
        }
    };
    recipe::TABLE.iter().filter(|row| (row.applies)(&facts)).map(cost).collect()
}

impl Findings {
    fn column_table(&self) -> Table {
        let strangest = self.columns.iter().take(SHOWN).map(|c| {
            let numbers = [c.min, c.max, c.mean, c.sd].map(real);
            [vec![c.name.clone()], numbers.to_vec(), vec![format!("{:.2}", c.zeros)]].concat()
        });
        let more = if self.columns_in_all > SHOWN {
            "Columns, those with the strangest scale first"
        } else {
            "Columns"
        };
        Table {
            caption: more.into(),
            columns: Column::all(b"lrrrrr", ["column", "min", "max", "mean", "sd", "zeros"]),
            rows: strangest.collect(),
        }
    }

    fn constant_words(&self) -> String {
        if self.constants.constants.is_empty() {
            return fitted("Nothing is proved about this loss on a table.");
        }
        let rows = self.constants.constants.iter().map(|proved| {
            let (name, symbol) = (proved.constant.name(), proved.constant.symbol());
            vec![format!("{name} ({symbol})"), real(proved.value), proved.how.clone()]
        });
        let table = Table {
            caption: "Proved constants".into(),
            columns: Column::all(b"lrl", ["constant", "value", "why"]),
            rows: rows.collect(),
        };
        table.text()
    }

    /// What recipes cost, if there is one that covers the loss.
    fn cost_table(&self) -> Option<Table> {
        let rows = self.costs.iter().map(|cost| {
            let target = format!("{} <= {}", cost.measure, real(cost.target));
            let samples = cost.samples.map_or_else(|| cost.why_not.clone().unwrap_or_default(), at_most);
            let passes = cost.passes.map_or_else(String::new, |passes| format!("{passes:.3e}"));
            vec![cost.recipe.to_owned(), target, samples, passes]
        });
        let rows: Vec<_> = rows.collect();
        (!rows.is_empty()).then(|| Table {
            caption: format!("What recipes with a promise cost, for {} of the start", self.share),
            columns: Column::all(b"llrr", ["recipe", "target", "samples", "passes"]),
            rows,
        })
    }
}

impl Report for Findings {
    fn text(&self) -> String {
        let mebibytes = self.bytes as f64 / f64::from(1 << 20);
        let mut rows = vec![
            ("rows", grouped(self.rows as u64)),
            ("columns", format!("{}{}", grouped(self.columns_in_all as u64), self.naming)),
            ("density", format!("{:.4} ({}, {mebibytes:.1} MiB)", self.density, self.storage)),
            ("labels", self.labels.text()),
            (
                "loss",
                format!(
                    "{}{}, |grad f| = {} at the start",
                    self.loss,
                    self.guessed,
                    real(self.start_gradient)
                ),
            ),
        ];
        if self.dropped > 0 {
            rows.push(("left out", format!("{} rows, in which something is missing", grouped(self.dropped))));
        }
        let listed = |columns: Vec<String>| {
            let more = columns.len().saturating_sub(SHOWN);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("{}{more}", columns.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", "))
        };
        if !self.missing.is_empty() {
            let cells = self.missing.iter().map(|(name, count)| format!("{name} ({})", grouped(*count)));
            rows.push(("missing", listed(cells.collect())));
        }
        if !self.words.is_empty() {
            let columns = self.words.iter().map(|(name, count)| format!("{name} ({count} different)"));
            rows.push(("words", listed(columns.collect())));
        }
        rows.extend(self.cautions.iter().map(|caution| ("caution", caution.clone())));
        rows.push(("to fit it", self.command.clone()));
        let mut text = vec![Table::labelled(rows).text()];
        text.push(self.column_table().text());
        text.push(self.constant_words());
        text.extend(self.cost_table().map(|table| table.text()));
        text.push(fitted("`pasta fit` needs none of these constants; it usually takes 30 to 300 passes."));
        text.join("\n\n")
    }
}
