//! The rows that are fitted, and those that the model is scored on.

use pasta_io::{Data, Label, Options, Source};
use pasta_opt::score::balanced;
use pasta_report::console::{Failure, say};
use pasta_report::number::given;

use super::arguments::Arguments;
use crate::table::{
    Chosen, Classes, Loaded, Rows, check_classes, check_width, coded_columns, load, load_and_choose,
    mixed_columns, refused,
};

/// What a fit begins with.
pub(super) struct Opened {
    /// The problem.
    pub(super) loaded: Loaded,
    /// Rows that are not fitted, and what they are called.
    pub(super) validation: Option<(String, Rows)>,
    /// Why this loss was chosen, if none was given.
    pub(super) guessed: Option<String>,
}

/// Reads the table, and the rows to score the model on.
pub(super) fn open(arguments: &Arguments, source: &Source) -> Result<Opened, Failure> {
    let file = source.name();
    let Chosen { data, loss, why: guessed } =
        load_and_choose(source, &arguments.reading.plain(), arguments.loss.as_deref())?;
    let loss = loss.as_str();
    mixed_columns(&data.encoding).iter().for_each(|line| say(line));
    coded_columns(&data).iter().for_each(|line| say(&format!("note: {line}")));
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

/// The problem, and the rows that are put aside.
fn prepare(
    file: &str,
    data: Data,
    loss: &str,
    arguments: &Arguments,
    share: Option<f64>,
) -> Result<(Loaded, Option<Rows>), Failure> {
    if share.is_none() && arguments.class_weight.is_none() {
        return Ok((Loaded::new(file, data, loss, &arguments.shaping.plain())?, None));
    }
    let in_file = |failure: Failure| failure.in_file(file);
    let classes = Classes::learn(&data, loss).map_err(in_file)?;
    let loss = arguments.shaping.loss(loss, classes.0.len().max(2))?;
    let labels = classes.code(&data).map_err(in_file)?;
    let Data { features, weights, offsets, encoding, label, left_out, .. } = data;
    let dropped = left_out.len() as u64;
    let rows = Rows::new(file, features, labels, weights, offsets, loss)?;
    let (mut kept, held) = match share {
        None => (rows, None),
        Some(share) => {
            let (kept, held) = rows.split(share, arguments.seed);
            if kept.labels.is_empty() || held.labels.is_empty() {
                let (kept, held) = (kept.labels.len(), held.labels.len());
                let message = format!("a share of {share} leaves {kept} rows to fit and {held} to score");
                return Err(Failure::input(message).in_file(file));
            }
            (kept, Some(held))
        }
    };
    check_classes(file, &classes, &kept.labels, kept.weights.as_deref())?;
    if arguments.class_weight.is_some() {
        if classes.0.is_empty() {
            return Err(Failure::input(format!(
                "--class-weight: labels of the {} loss are no classes",
                loss.row().name
            )));
        }
        kept.weights = Some(balanced(&kept.labels, kept.weights.as_deref()));
    }
    let linear = kept.linear(file, &encoding, loss, arguments.shaping.design())?;
    Ok((Loaded { linear, encoding, label, classes, dropped }, held))
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
    Rows::new(path, data.features, labels, data.weights, data.offsets, loaded.linear.loss())
}
