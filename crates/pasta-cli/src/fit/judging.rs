//! What the end of a run means: a model, or why there is none.

use std::sync::Arc;

use pasta_io::Encoding;
use pasta_opt::conformal::Conformal;
use pasta_opt::fit::{Fitted, LeftOut, Redundant};
use pasta_opt::gate::Halt;
use pasta_opt::inference::{Caution, Summary};
use pasta_opt::score::{Roc, Score, has_classes};
use pasta_opt::table::{Features, Linear, Model};
use pasta_opt::{kinks, newton};
use pasta_report::console::{Failure, Signals};

use super::arguments::{AUTO, Arguments, EXACT};
use super::descent::Run;
use super::outcome::{Outcome, Validation};
use super::rows::Opened;
use crate::table::{Certificate, FORMAT, LeftOutFeature, Loaded, ModelFile, Provenance, refused};

/// Values times columns up to which proving constants takes no time to speak of.
const QUICK: f64 = 4e6;

/// A model, and how well it does on the rows that it was fitted to.
pub(super) struct Trained {
    model: Model,
    pub(super) score: Score,
    /// The coefficients with errors from resamples, where these were asked for.
    pub(super) resampled: Option<Summary>,
}

/// The model at the end of a run.
pub(super) fn trained(file: &str, loaded: &Loaded, run: &Run) -> Result<Trained, Failure> {
    let table = loaded.linear.table();
    let model = loaded.linear.raw_weights(&run.fitted.point);
    let weights = table.weights.as_ref().map(|weights| (**weights).as_ref());
    let score = Score::of(&model, &table.features, (*table.labels).as_ref(), weights);
    let score = score.map_err(|error| refused(file, &loaded.encoding.names(), &error))?;
    Ok(Trained { model, score, resampled: None })
}

/// Whether the loss falls for ever from the end of the run, where that can be told with less work than a few dozen passes. Of classes that are separated it is
/// known.
pub(super) fn falls(
    arguments: &Arguments,
    linear: &Arc<Linear>,
    trained: &Trained,
    run: &mut Run,
    signals: &Signals,
) -> Result<bool, Halt> {
    if trained.score.separated {
        return Ok(false);
    }
    run.fitted.has_no_minimiser(linear, arguments.budget, signals.flag())
}

/// What the end means.
pub(super) fn judge(
    arguments: &Arguments,
    file: &str,
    Opened { loaded, validation, .. }: &Opened,
    run: &Run,
    Trained { model, score: training, resampled }: Trained,
    method: String,
    falls: bool,
) -> Result<Outcome, Failure> {
    let linear = &loaded.linear;
    let run = &run.fitted;
    let table = linear.table();
    let names = loaded.encoding.names();
    let wrong = |error| refused(file, &names, &error);
    let mut conformal = None;
    let looks_closer = arguments.details || arguments.json || arguments.page.is_some();
    let roc = |features: &Features, labels: &[f64], weights: Option<&[f64]>| {
        if looks_closer { Roc::of(&model, features, labels, weights).map_err(wrong) } else { Ok(None) }
    };
    let validation = match validation {
        None => None,
        Some((name, rows)) => {
            let score = Score::of(&model, &rows.features, &rows.labels, rows.weights.as_deref());
            let score = score.map_err(wrong)?;
            conformal = Conformal::of(&model, &rows.features, &rows.labels).map_err(wrong)?;
            let roc = roc(&rows.features, &rows.labels, rows.weights.as_deref())?;
            Some(Validation { of: name.clone(), score, roc })
        }
    };
    let weights = table.weights.as_ref().map(|weights| (**weights).as_ref());
    let roc = roc(&table.features, (*table.labels).as_ref(), weights)?;
    let summary = resampled.unwrap_or_else(|| Summary::of(linear, run, arguments.std_errors()));
    let mut file = model_file(arguments, file, loaded, run, &model, &method)?;
    file.conformal = conformal;
    if summary.std_errors.is_some() {
        file.summary = Some(serde_json::to_value(&summary).map_err(Failure::system)?);
    }
    Ok(Outcome {
        cautions: Caution::of(linear, &summary),
        settings: String::new(),
        details: arguments.details,
        summary,
        rescued: None,
        crossed: None,
        pairs: if arguments.page.is_some() { pairs(loaded, &model)? } else { Vec::new() },
        left_out: LeftOut::words(&run.left_out, &model.feature_names(&names)),
        references: references(&loaded.encoding, &run.left_out),
        no_minimiser: no_minimiser(linear, training.separated && !run.has_term, falls),
        has_term: run.has_term,
        stop: run.stop,
        budgeted: arguments.budget.is_some(),
        other: match method.as_str() {
            AUTO if newton::applies(linear).is_ok() || kinks::applies(linear) => Some(EXACT),
            EXACT if !run.has_term => Some(AUTO),
            _ => None,
        },
        passes: run.gate.ledger().samples() as f64 / table.rows() as f64,
        training,
        roc,
        validation,
        output: arguments.output.as_ref().map(|path| path.display().to_string()),
        model: file,
    })
}

/// Columns up to which a model keeps their ranges.
const RANGES: usize = 10_000;
/// Predictions and labels of some rows, for labels that are numbers: at most this many.
const PAIRS: usize = 1000;

fn pairs(loaded: &Loaded, model: &Model) -> Result<Vec<(f64, f64)>, Failure> {
    let table = loaded.linear.table();
    if has_classes(model.loss) {
        return Ok(Vec::new());
    }
    let labels: &[f64] = (*table.labels).as_ref();
    let pair = |(score, label): (&f64, &f64)| {
        let mut mean = [*score];
        model.loss.mean(&mut mean);
        (mean[0], *label)
    };
    let scores = model.scores(&table.features).map_err(Failure::system)?;
    Ok(scores.iter().zip(labels).step_by(table.rows().div_ceil(PAIRS)).map(pair).collect())
}

/// The model with all that it is to say about itself.
fn model_file(
    arguments: &Arguments,
    file: &str,
    loaded: &Loaded,
    run: &Fitted,
    model: &Model,
    method: &str,
) -> Result<ModelFile, Failure> {
    let linear = &loaded.linear;
    let table = linear.table();
    let names = loaded.encoding.names();
    let work = table.features.entries() as f64 * table.columns() as f64;
    let constants = if arguments.constants || work <= QUICK {
        linear.constants(&linear.start()).map_err(|error| refused(file, &names, &error))?.constants
    } else {
        Vec::new()
    };
    let constants = constants.iter().map(serde_json::to_value).collect::<Result<_, _>>();
    let (weights, intercept) = ModelFile::named(model, &names);
    let left_out = LeftOutFeature::all(&run.left_out, &model.feature_names(&names));
    Ok(ModelFile {
        format: FORMAT,
        program: concat!("pasta ", env!("CARGO_PKG_VERSION")).into(),
        loss: linear.loss(),
        design: linear.design(),
        label: loaded.label.clone(),
        offset: arguments.reading.offset.clone(),
        classes: loaded.classes.clone(),
        weights,
        intercept,
        scaling: linear.scaling().cloned(),
        encoding: loaded.encoding.clone(),
        data: Provenance {
            file: file.to_owned(),
            rows: table.rows() as u64,
            columns: table.columns() as u64,
            checksum: format!("{:08x}", table.checksum()),
        },
        constants: constants.map_err(Failure::system)?,
        method: method.to_owned(),
        seed: arguments.seed,
        ledger: run.gate.ledger().clone(),
        certificate: Certificate {
            verdict: run.verdict,
            exact: true,
            gradient: run.end.gradient,
            target: run.target,
            start_gradient: run.start.gradient,
            objective: run.end.objective,
            gap: run.gap,
            tail: None,
        },
        deviation: None,
        left_out,
        summary: None,
        conformal: None,
        ranges: if table.columns() <= RANGES { table.features.ranges() } else { Vec::new() },
    })
}

/// The words whose columns alone were left out of those of their column: the other words are compared with them.
fn references(encoding: &Encoding, left_out: &[LeftOut]) -> Vec<String> {
    let Encoding::Cells { columns, .. } = encoding else { return Vec::new() };
    let mut names = Vec::new();
    let mut first = 0;
    for column in columns {
        let words = column.categories.as_deref().unwrap_or_default();
        let is_left_out = |place: &usize| {
            left_out.iter().any(|one| one.feature == first + place && one.why == Redundant::Dependent)
        };
        let dependent: Vec<usize> = (0..words.len()).filter(is_left_out).collect();
        if let [one] = dependent[..] {
            names.push(format!("{} of {}", words[one], column.name));
        }
        first += column.categories.as_ref().map_or(1, Vec::len);
    }
    names
}

/// Why the loss has no minimiser, and a hint, where that is seen: classes that can be separated, some or all of them, or counts that are zero in a whole
/// direction. A penalty on the weights helps but where the intercept alone, which has none, goes on for ever.
pub(super) fn no_minimiser(
    linear: &Linear,
    separated: bool,
    falls: bool,
) -> Option<(&'static str, &'static str)> {
    let classes = linear.loss().needs_overlap();
    let hint = "--penalty 1e-3, say, makes them finite";
    match (classes, falls) {
        (_, true) if linear.design().penalty > 0.0 => Some((
            "all labels ask for the same, so the loss has no minimiser: it falls for ever as the intercept grows, which has no penalty",
            "a constant needs no fit; --no-intercept does without one",
        )),
        _ if linear.design().penalty > 0.0 => None,
        (true, _) if separated => Some((
            "the classes can be separated, so the loss has no minimiser: it falls for ever as the weights grow",
            hint,
        )),
        (true, true) => Some((
            "some rows can be told apart with certainty (quasi-separation), so the loss has no minimiser: it falls for ever as some weights grow",
            hint,
        )),
        (false, true) => Some((
            "the labels are zero wherever some columns are not, so the loss has no minimiser: it falls for ever as some weights grow",
            hint,
        )),
        (_, false) => None,
    }
}
