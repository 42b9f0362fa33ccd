//! `pasta predict`: what a model says about the rows of a table.

use std::cmp::Reverse;
use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use pasta_io::{Data, Label, Source, Unseen};
use pasta_opt::conformal::Conformal;
use pasta_opt::score::{Score, class, has_classes};
use pasta_opt::table::{Model, Outside, TableError};
use pasta_report::console::{self, Exit, Failure, Report, flags, say, with_threads};
use pasta_report::grouped;
use serde::Serialize;

use crate::table::{ModelFile, Reading, check_output, counted, load, refused, score_words};

/// Predict with a model of `pasta fit`: a line for each row of a table.
///
/// Columns are matched by name where they have names, in any order; one that is missing or unknown is refused. A column of labels
/// is not needed; if it is there, the model is scored on it. Numbers are predicted as they are, classes by name. With --missing drop-row there is NA in the place
/// of a row that lacks a value.
#[derive(Args)]
#[command(after_long_help = AFTER_HELP)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct Arguments {
    /// The model, a file that `pasta fit -o` wrote
    model: PathBuf,
    /// The table; - reads standard input
    data: PathBuf,
    /// Write the predictions to this file instead of standard output; one that ends in .npy holds numbers of classes or values
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print the probability of each class, for logistic and multinomial models
    #[arg(long, conflicts_with = "scores")]
    probabilities: bool,
    /// Print the scores <row, w> + b themselves
    #[arg(long)]
    scores: bool,
    /// Print the prediction and the ends of an interval that covers the label with this probability, for labels that are numbers; the model must have been
    /// fitted with --validation
    #[arg(long, value_name = "LEVEL", conflicts_with_all = ["scores", "probabilities"])]
    interval: Option<f64>,
    /// Take words that the model has not seen for missing values, and count them: no word of their column counts then, or with --missing drop-row the row has no
    /// prediction
    #[arg(long)]
    unseen: bool,
    /// Threads; does not change a bit of the result
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = flags::thread_count())]
    threads: Option<u16>,
    /// Print one JSON object instead of lines
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reading: Reading,
}

const AFTER_HELP: &str = "\
Examples:
  pasta predict model.json new.csv > predictions.txt
  cat new.csv | pasta predict model.json - --probabilities
  pasta predict model.json new.csv --interval 0.9
  pasta predict model.json test.svm --json";

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    with_threads(arguments.threads.map(usize::from), || predict(arguments))
}

fn predict(arguments: &Arguments) -> Result<Exit, Failure> {
    check_output(arguments.output.as_deref(), &[&arguments.model, &arguments.data])?;
    let file = ModelFile::read(&arguments.model)?;
    let name = arguments.model.display().to_string();
    let model = file.model().map_err(|failure| failure.in_file(&name))?;
    let has_classes = has_classes(file.loss);
    let loss = file.loss.row().name;
    let knows_chances = file.loss.has_probabilities();
    if arguments.probabilities && !knows_chances {
        return Err(Failure::input(format!("--probabilities: the {loss} loss has none")));
    }
    if let Some(level) = arguments.interval {
        // Before anything is read.
        conformal(&file, level)?.reach(level).map_err(|error| Failure::input(error).in_file(&name))?;
    }
    let source = Source::named(&arguments.data);
    let mut options = arguments.reading.options(loss);
    if options.label == Label::Usual {
        options.label = Label::IfThere(file.label.clone());
    }
    if options.offset.is_some() && file.offset.is_none() {
        return Err(Failure::input("--offset: the model was fitted without one").in_file(&name));
    }
    options.unseen = arguments.unseen;
    if !options.interact.is_empty() {
        return Err(Failure::input("--interact: the model knows its interactions"));
    }
    options.offset = options.offset.or_else(|| file.offset.clone());
    let mut data = load(&source, &options, Some(&file.encoding))?;
    let wrong = |error| refused(&source.name(), &file.encoding.names(), &error);
    data.features.check().map_err(wrong)?;
    let mut scores = model.scores(&data.features).map_err(wrong)?;
    let places = Places { left_out: data.left_out.clone(), kept: data.features.rows() };
    if let Some(k) = scores.iter().position(|score| !score.is_finite()) {
        let row = places.lines().position(|row| row == Some(k / model.outputs())).unwrap_or(0);
        let message = format!("row {}: its values are too large, the score is {}", row + 1, scores[k]);
        return Err(Failure::input(message).in_file(source.name()));
    }
    let offsets = data.offsets.take();
    let scored = scored(&file, &model, &data, offsets.as_deref(), &wrong)?;
    let outputs = model.outputs();
    let wanted = arguments.wanted(has_classes);
    let classes: Vec<usize> = scores.chunks_exact(outputs).map(class).collect();
    if wanted != Wanted::Scores {
        scores.chunks_exact_mut(outputs).for_each(|row| model.loss.mean(row));
    }
    let (numbers, outputs) = match arguments.interval {
        None => (scores, outputs),
        Some(level) => (with_intervals(&file, level, &scores)?, 3),
    };
    let numbers = match &offsets {
        None => numbers,
        Some(offsets) => with_offsets(&file, wanted, numbers, outputs, offsets),
    };
    let outside = data.features.outside(&file.ranges);
    let dropped = places.left_out.len();
    let answer =
        Answer { wanted, places, classes, numbers, outputs, names: &file.classes.0, score: scored.clone() };
    hand_out(arguments, &answer)?;
    if dropped > 0 {
        let rows = counted(dropped as u64, "row");
        say(&format!("{}: {rows} with a missing value: NA in the output", source.name()));
    }
    if !data.unseen.is_empty() {
        say(&unseen_words(&source.name(), &data.unseen));
    }
    if outside.rows > 0 {
        say(&outside_words(&source.name(), &outside, &file));
    }
    if let Some(score) = scored {
        say(&score_words(&score));
    }
    Ok(Exit::Done)
}

impl Arguments {
    /// What is asked for.
    fn wanted(&self, has_classes: bool) -> Wanted {
        match (self.scores, self.probabilities) {
            _ if self.interval.is_some() => Wanted::Intervals,
            (true, _) => Wanted::Scores,
            (_, true) => Wanted::Probabilities,
            _ if has_classes => Wanted::Classes,
            _ => Wanted::Means,
        }
    }
}

/// How good the predictions are, if there are labels. Labels that the model has never seen cannot be scored, but are no reason not to predict.
fn scored(
    file: &ModelFile,
    model: &Model,
    data: &Data,
    offsets: Option<&[f64]>,
    wrong: &impl Fn(TableError) -> Failure,
) -> Result<Option<Score>, Failure> {
    match data.labels.as_ref().map(|_| file.classes.code(data)) {
        Some(Ok(mut labels)) => {
            let mut weights = data.weights.clone();
            if let Some(offsets) = offsets {
                file.loss.absorb(offsets, &mut labels, &mut weights).map_err(wrong)?;
            }
            Score::of(model, &data.features, &labels, weights.as_deref()).map(Some).map_err(wrong)
        }
        Some(Err(failure)) => {
            say(&format!("note: no score: {}", failure.message()));
            Ok(None)
        }
        None => Ok(None),
    }
}

/// Writes the predictions, or prints them.
fn hand_out(arguments: &Arguments, answer: &Answer<'_>) -> Result<(), Failure> {
    if let Some(path) = &arguments.output {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(std::path::Path::new("."));
        let name = path.file_name().and_then(|name| name.to_str());
        let name =
            name.ok_or_else(|| Failure::input(format!("{} is not the name of a file", path.display())))?;
        let bytes = if path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("npy")) {
            answer.array()?
        } else {
            (answer.text() + "\n").into_bytes()
        };
        pasta_report::write(folder, name, bytes)?;
        if arguments.json {
            let rows = answer.places.lines().count();
            console::print(
                &Written { rows, output: path.display().to_string(), score: answer.score.clone() },
                true,
            )?;
        }
    } else {
        console::print(answer, arguments.json)?;
    }
    Ok(())
}

/// The numbers of each row with its offset.
fn with_offsets(
    file: &ModelFile,
    wanted: Wanted,
    mut numbers: Vec<f64>,
    outputs: usize,
    offsets: &[f64],
) -> Vec<f64> {
    for (row, offset) in numbers.chunks_exact_mut(outputs).zip(offsets) {
        row.iter_mut().for_each(|number| match wanted {
            Wanted::Scores => *number += offset,
            _ => *number = file.loss.with_offset(*number, *offset),
        });
    }
    numbers
}

/// Each prediction with the ends of its interval.
fn with_intervals(file: &ModelFile, level: f64, means: &[f64]) -> Result<Vec<f64>, Failure> {
    let conformal = conformal(file, level)?;
    let mut numbers = Vec::with_capacity(3 * means.len());
    for mean in means {
        let [low, high] = conformal.interval(level, file.loss, *mean).map_err(Failure::input)?;
        numbers.extend([*mean, low, high]);
    }
    Ok(numbers)
}

/// How far predictions of a model are off.
fn conformal(file: &ModelFile, level: f64) -> Result<&Conformal, Failure> {
    if has_classes(file.loss) {
        return Err(Failure::input("--interval: labels are classes here")
            .hint("--probabilities says how likely each is"));
    }
    file.conformal.as_ref().ok_or_else(|| {
        let message = format!("--interval {level}: the model knows no rows that it was not fitted to");
        Failure::input(message)
            .hint("fit it with --validation 0.2, say: the rows put aside calibrate the intervals")
    })
}

/// Which words the model has not seen.
fn unseen_words(source: &str, unseen: &[Unseen]) -> String {
    let one = |Unseen { column, cells, words }: &Unseen| {
        let more = if *cells > words.len() as u64 { ", .." } else { "" };
        format!("{column} ({}: {}{more})", grouped(u128::from(*cells)), words.join(", "))
    };
    let cells = counted(unseen.iter().map(|one| one.cells).sum(), "cell");
    let columns: Vec<String> = unseen.iter().map(one).collect();
    format!("{source}: {cells} with words that the model has not seen: {}", columns.join("; "))
}

/// Which rows have values that the rows of the fit had not.
fn outside_words(source: &str, outside: &Outside, file: &ModelFile) -> String {
    const NAMED: usize = 5;
    let names = file.encoding.names();
    let mut columns: Vec<(u64, &String)> =
        outside.columns.iter().copied().zip(&names).filter(|(count, _)| *count > 0).collect();
    columns.sort_by_key(|(count, _)| Reverse(*count));
    let more = columns.len().saturating_sub(NAMED);
    let named: Vec<String> =
        columns.iter().take(NAMED).map(|(count, name)| format!("{name} ({})", grouped(*count))).collect();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let rows = counted(outside.rows, "row");
    format!(
        "{source}: {rows} with values outside of the range that the model was fitted on: {}{more}",
        named.join(", ")
    )
}

/// What is printed of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Wanted {
    Means,
    Classes,
    Probabilities,
    Scores,
    Intervals,
}

/// Which rows of the file there is a prediction for.
struct Places {
    /// Rows without one, in their order.
    left_out: Vec<u64>,
    /// How many have one.
    kept: usize,
}

impl Places {
    /// For each row of the file, which prediction it has, if any.
    fn lines(&self) -> impl Iterator<Item = Option<usize>> {
        let mut out = self.left_out.iter().peekable();
        let mut kept = 0..self.kept;
        (0..(self.kept + self.left_out.len()) as u64)
            .map(move |line| if out.next_if(|row| **row == line).is_some() { None } else { kept.next() })
    }
}

/// What stands in the place of a prediction that there is not.
const NOTHING: &str = "NA";

/// What the model says.
struct Answer<'m> {
    wanted: Wanted,
    places: Places,
    classes: Vec<usize>,
    numbers: Vec<f64>,
    outputs: usize,
    names: &'m [String],
    score: Option<Score>,
}

impl Answer<'_> {
    /// The numbers of a row: two probabilities where the model has one score.
    fn row(&self, row: usize) -> Vec<f64> {
        let numbers = &self.numbers[row * self.outputs..(row + 1) * self.outputs];
        match (self.wanted, numbers) {
            (Wanted::Probabilities, [chance]) => vec![1.0 - chance, *chance],
            _ => numbers.to_vec(),
        }
    }

    fn numbers_of_a_row(&self) -> usize {
        if self.wanted == Wanted::Probabilities { self.outputs.max(2) } else { self.outputs }
    }

    fn class(&self, row: usize) -> String {
        let class = self.classes[row];
        self.names.get(class).cloned().unwrap_or_else(|| class.to_string())
    }

    fn array(&self) -> Result<Vec<u8>, Failure> {
        let placed = |number: &dyn Fn(usize) -> f64| {
            let numbers: Vec<f64> = self.places.lines().map(|row| row.map_or(f64::NAN, number)).collect();
            Ok(pasta_io::vector_to_npy(&numbers))
        };
        match self.wanted {
            Wanted::Classes => placed(&|row| self.classes[row] as f64),
            _ if self.outputs == 1 && self.wanted != Wanted::Probabilities => {
                placed(&|row| self.numbers[row])
            }
            _ => Err(Failure::input("a file .npy holds one number for each row; write text instead")),
        }
    }
}

impl Serialize for Answer<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = serializer.serialize_map(None)?;
        let lines = || self.places.lines();
        map.serialize_entry("rows", &lines().count())?;
        map.serialize_entry("left_out", &self.places.left_out.len())?;
        map.serialize_entry("kind", &self.wanted)?;
        map.serialize_entry("classes", &self.names)?;
        match self.wanted {
            Wanted::Classes => {
                let of = |row: Option<usize>| row.map(|row| self.class(row));
                map.serialize_entry("predictions", &lines().map(of).collect::<Vec<_>>())?;
            }
            _ if self.outputs == 1 && self.wanted != Wanted::Probabilities => {
                let of = |row: Option<usize>| row.map(|row| self.numbers[row]);
                map.serialize_entry("predictions", &lines().map(of).collect::<Vec<_>>())?;
            }
            _ => {
                let of = |row: Option<usize>| row.map(|row| self.row(row));
                map.serialize_entry("predictions", &lines().map(of).collect::<Vec<_>>())?;
            }
        }
        map.serialize_entry("score", &self.score)?;
        map.end()
    }
}

impl Report for Answer<'_> {
    fn text(&self) -> String {
        let mut text = String::new();
        if self.wanted == Wanted::Intervals {
            text.push_str("prediction,low,high\n");
        }
        if self.wanted == Wanted::Probabilities {
            text.push_str(&self.names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(","));
            text.push('\n');
        }
        for row in self.places.lines() {
            match (self.wanted, row) {
                (Wanted::Classes, None) => text.push_str(NOTHING),
                // As many as a row has.
                (_, None) => text.push_str(&vec![NOTHING; self.numbers_of_a_row()].join(",")),
                (Wanted::Classes, Some(row)) => text.push_str(&self.class(row)),
                (_, Some(row)) => {
                    for (k, number) in self.row(row).iter().enumerate() {
                        let comma = if k > 0 { "," } else { "" };
                        let _ = if *number != 0.0 && number.abs() < 1e-5 {
                            write!(text, "{comma}{number:e}")
                        } else {
                            write!(text, "{comma}{number}")
                        };
                    }
                }
            }
            text.push('\n');
        }
        // The last line end is added by whoever prints.
        text.pop();
        text
    }
}

/// A cell of a CSV file.
fn quoted(name: &str) -> String {
    if name.contains([',', '"', '\n']) {
        format!("\"{}\"", name.replace('"', "\"\""))
    } else {
        name.to_owned()
    }
}

#[derive(Serialize)]
struct Written {
    rows: usize,
    output: String,
    score: Option<Score>,
}

impl Report for Written {
    fn text(&self) -> String {
        format!("{} in {}", counted(self.rows as u64, "row"), self.output)
    }
}
