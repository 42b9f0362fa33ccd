//! The page of a fit: the result, its coefficients, predictions beside labels, and how objective and gradient came down.

use pasta_opt::cross::Tried;
use pasta_opt::fit::Exactly;
use pasta_report::{Axis, Chart, Page, Part, Scale, Section, Series, Shape, Table, Tone};

use super::descent::Run;
use super::outcome::Outcome;
use super::words;

/// Coefficients on a page, at most.
const SHOWN: usize = 200;

pub(super) fn page(outcome: &Outcome, run: &Run) -> Page {
    let rows = outcome.model.data.rows as f64;
    let points = |value: fn(&Exactly) -> f64| -> Vec<(f64, f64)> {
        run.curve.iter().map(|(samples, state)| (*samples as f64 / rows, value(state))).collect()
    };
    let chart = |id, title: &str, points: Vec<(f64, f64)>, scale| Chart {
        id,
        title: title.into(),
        caption: "Each point is a pass over all rows, which the run itself does not need and does not count."
            .into(),
        x: Axis { label: "passes over the table".into(), scale: Scale::Linear, range: None },
        y: Axis { label: title.into(), scale, range: None },
        series: vec![Series {
            name: outcome.model.method.clone(),
            tone: Tone::Green,
            shape: Shape::Line(points),
        }],
        references: Vec::new(),
    };
    let gradients: Vec<_> =
        points(|state| state.gradient).into_iter().filter(|point| point.1 > 0.0).collect();
    let parts = vec![
        Part::Figure(chart("gradient", "|grad f|", gradients, Scale::Log)),
        Part::Figure(chart("objective", "objective", points(|state| state.objective), Scale::Linear)),
        Part::Table(Table::labelled(outcome.rest())),
    ];
    let classes = &outcome.model.classes.0;
    let mut coefficients = vec![Part::Table(words::table(&outcome.summary, classes, SHOWN))];
    coefficients.extend(words::notes(&outcome.summary, classes, SHOWN).into_iter().map(Part::Text));
    coefficients.push(Part::Text(words::explained(&outcome.summary.explained, &outcome.training)));
    Page {
        title: format!("{} loss on {}", outcome.model.loss.row().name, outcome.model.data.file),
        lead: match outcome.failure() {
            Some(failure) => failure.message().to_owned(),
            None => format!("{}.", words::headline(outcome)),
        },
        sections: vec![
            Section::new("The answer", vec![Part::Table(Table::labelled(outcome.whole_answer()))]),
            Section::new("Coefficients", coefficients),
            Section::new("Predictions and labels", predictions(outcome)),
            Section::new("The run", parts),
        ],
    }
}

/// Predictions beside labels and what is left, or classes and the worth of probabilities.
fn predictions(outcome: &Outcome) -> Vec<Part> {
    let mut parts = Vec::new();
    let axis = |label: &str| Axis { label: label.into(), scale: Scale::Linear, range: None };
    let series = |name: &str, tone, shape| Series { name: name.into(), tone, shape };
    let chart = |id, title: &str, caption: &str, axes: [&str; 2], series| {
        let (title, caption) = (title.to_owned(), caption.to_owned());
        Part::Figure(Chart {
            id,
            title,
            caption,
            x: axis(axes[0]),
            y: axis(axes[1]),
            series,
            references: Vec::new(),
        })
    };
    let pairs = &outcome.pairs;
    if !pairs.is_empty() {
        let ends = pairs
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), (p, _)| (p.min(low), p.max(high)));
        let both = vec![
            series("rows", Tone::Blue, Shape::Points(pairs.clone())),
            series("as predicted", Tone::Grey, Shape::Line(vec![(ends.0, ends.0), (ends.1, ends.1)])),
        ];
        let some = format!("{} rows, evenly spaced in the table.", pairs.len());
        parts.push(chart("observed", "Labels over predictions", &some, ["predicted", "label"], both));
        let left = pairs.iter().map(|(predicted, label)| (*predicted, label - predicted)).collect();
        let left = vec![series("rows", Tone::Blue, Shape::Points(left))];
        let caption =
            "A bend or a funnel is what a linear model of these columns, or its standard errors, leave out.";
        parts.push(chart(
            "residuals",
            "Residuals over predictions",
            caption,
            ["predicted", "label - predicted"],
            left,
        ));
    }
    if let Some(crossed) = outcome.crossed.as_ref().filter(|crossed| crossed.path.len() > 1) {
        let losses = crossed.path.iter().map(|one| (one.penalty, one.loss)).collect();
        let ends = |one: &Tried| (one.penalty, one.loss - one.std_error, one.loss + one.std_error);
        let both = vec![
            series("a standard error", Tone::Grey, Shape::Band(crossed.path.iter().map(ends).collect())),
            series("rows not fitted", Tone::Blue, Shape::Line(losses)),
        ];
        parts.push(Part::Figure(Chart {
            id: "penalties",
            title: "Mean loss over penalties".into(),
            caption: format!("{} folds; the smallest is taken.", crossed.folds),
            x: Axis { label: "penalty".into(), scale: Scale::Log, range: None },
            y: axis("mean loss"),
            series: both,
            references: Vec::new(),
        }));
    }
    if let Some(roc) = &outcome.roc {
        let held = outcome.validation.as_ref().and_then(|validation| validation.roc.as_ref());
        let mut all = vec![series("rows that were fitted", Tone::Blue, Shape::Line(roc.points.clone()))];
        all.extend(held.map(|roc| series("rows not fitted", Tone::Green, Shape::Line(roc.points.clone()))));
        all.push(series("chance", Tone::Grey, Shape::Line(vec![(0.0, 0.0), (1.0, 1.0)])));
        let area = words::roc(outcome).unwrap_or_default();
        let caption = format!("Area under the curve: {area}. Each point is a threshold of the score.");
        let axes = ["share of the first class above it", "share of the second class above it"];
        parts.push(chart("roc", "ROC: how well the score tells the classes apart", &caption, axes, all));
    }
    let score = &outcome.training;
    if let Some(table) = words::confusion(score, &outcome.model.classes.0) {
        parts.push(Part::Table(table));
    }
    if !score.calibration.is_empty() {
        let points = score.calibration.iter().map(|bin| (bin.predicted, bin.observed)).collect();
        let both = vec![
            series("rows with such probabilities", Tone::Blue, Shape::Points(points)),
            series("as predicted", Tone::Grey, Shape::Line(vec![(0.0, 0.0), (1.0, 1.0)])),
        ];
        let caption = "Of rows with a predicted probability of .8, four of five should come true.";
        parts.push(chart(
            "calibration",
            "What probabilities are worth",
            caption,
            ["predicted", "observed"],
            both,
        ));
        parts.extend(words::calibration(score).map(Part::Table));
    }
    parts
}
