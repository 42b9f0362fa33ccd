//! The rows that are fitted, and those that the model is scored on.

use pasta_data::{Data, Label, Options, Source};
use pasta_report::console::{Failure, say};
use pasta_report::number::given;

use super::arguments::Arguments;
use crate::table::{Classes, Loaded, Rows, check_width, load, load_table, mixed_columns, refused};

/// What a fit begins with.
pub(super) struct Opened {
    /// The problem.
    pub(super) loaded: Loaded,
    /// Rows that are not fitted, and what they are called.
    pub(super) validation: Option<(String, Rows)>,
    /// Why the loss is what it is, where none was given.
    pub(super) guessed: Option<String>,
}

/// Reads the table, and the rows to score the model on.
pub(super) fn open(arguments: &Arguments, source: &Source) -> Result<Opened, Failure> {
    let file = source.name();
    let mut data = load_table(source, &arguments.reading, arguments.loss.as_deref().unwrap_or(NUMBERS))?;
    let (loss, guessed) = match &arguments.loss {
        Some(loss) => (loss.as_str(), None),
        None => {
            let (loss, why) = guess(&mut data);
            (loss, Some(why))
        }
    };
    mixed_columns(&data.encoding).iter().for_each(|line| say(line));
    check_width(&file, &data.encoding, arguments.reading.memory)?;
    let share = arguments.share()?;
    let (loaded, held) = prepare(&file, data, loss, arguments, share)?;
    let validation = match (&arguments.validation, held) {
        (None, _) => None,
        (Some(_), Some(rows)) => Some((format!("a share of {}", given(share.unwrap_or(0.0))), rows)),
        (Some(path), None) => {
            let options = arguments.reading.options(loss);
            Some((path.clone(), other_rows(path, &options, &loaded)?))
        }
    };
    Ok(Opened { loaded, validation, guessed })
}

/// The loss for labels that are numbers.
const NUMBERS: &str = "least-squares";
/// Whole numbers that take at most this many values may be classes.
const FEW: usize = 20;

/// A loss for labels that were read as numbers unless there are words among them, and why. Two numbers become the names of classes. Numbers that take more values may be classes or
/// counts, too, and nobody can tell from outside: they stay numbers, and the words say what else to ask for.
fn guess(data: &mut Data) -> (&'static str, String) {
    let by_classes = |classes: &[String]| match classes {
        [one, two] => ("logistic", format!("two labels, {one} and {two}")),
        many => ("multinomial", format!("{} labels that are words", many.len())),
    };
    if !data.classes.is_empty() {
        return by_classes(&data.classes);
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
    if let [low, _] = values[..] {
        data.labels.iter_mut().flatten().for_each(|label| *label = f64::from(u8::from(*label != low)));
        data.classes = values.iter().map(f64::to_string).collect();
        return by_classes(&data.classes);
    }
    let count = values.len();
    let other = if values.iter().all(|value| value.fract() == 0.0) {
        "; --loss multinomial if they are classes, poisson if they are counts"
    } else {
        ""
    };
    (NUMBERS, format!("{count} different numbers{other}"))
}

/// The problem, and the rows that are put aside.
fn prepare(
    file: &str,
    data: Data,
    loss: &str,
    arguments: &Arguments,
    share: Option<f64>,
) -> Result<(Loaded, Option<Rows>), Failure> {
    let Some(share) = share else {
        return Ok((Loaded::new(file, data, loss, &arguments.shaping)?, None));
    };
    let in_file = |failure: Failure| failure.in_file(file);
    let classes = Classes::learn(&data, loss).map_err(in_file)?;
    let loss = arguments.shaping.loss(loss, classes.0.len().max(2))?;
    let labels = classes.code(&data).map_err(in_file)?;
    let Data { features, weights, encoding, label, left_out, .. } = data;
    let dropped = left_out.len() as u64;
    let (kept, held) = Rows { features, labels, weights }.split(share, arguments.seed);
    if kept.labels.is_empty() || held.labels.is_empty() {
        let (kept, held) = (kept.labels.len(), held.labels.len());
        let message = format!("a share of {share} leaves {kept} rows to fit and {held} to score");
        return Err(Failure::input(message).in_file(file));
    }
    let linear = kept.linear(file, &encoding, loss, arguments.shaping.design())?;
    Ok((Loaded { linear, encoding, label, classes, dropped }, Some(held)))
}

/// The rows of another file, read in the way of the first.
fn other_rows(path: &str, options: &Options, loaded: &Loaded) -> Result<Rows, Failure> {
    let label = match &options.label {
        Label::Usual if !loaded.label.is_empty() => Label::Column(loaded.label.clone()),
        label => label.clone(),
    };
    let options = Options { label, ..options.clone() };
    let data = load(&Source::named(path), &options, Some(&loaded.encoding))?;
    let labels = loaded.classes.code(&data).map_err(|failure| failure.in_file(path))?;
    data.features.check().map_err(|error| refused(path, &loaded.encoding.names(), &error))?;
    Ok(Rows { features: data.features, labels, weights: data.weights })
}
