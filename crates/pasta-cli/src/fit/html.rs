//! The page of a fit: how objective and gradient came down.

use pasta_opt::fit::Exactly;
use pasta_report::console::Report;
use pasta_report::{Axis, Chart, Page, Part, Scale, Section, Series, Shape, Tone};

use super::descent::Run;
use super::outcome::Outcome;

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
        Part::Quote(outcome.text()),
    ];
    Page {
        title: format!("{} loss on {}", outcome.model.loss.row().name, outcome.model.data.file),
        lead: match outcome.failure() {
            Some(failure) => failure.message().to_owned(),
            None => format!("{:.1} passes over {} rows.", outcome.passes, outcome.model.data.rows),
        },
        sections: vec![Section::new("The run", parts)],
    }
}
