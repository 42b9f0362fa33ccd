//! The page: the table, and how the gradient falls with the samples.

use pasta_report::{Axis, Chart, Page, Part, Reference, Section, Series, Shape, Tone};

use super::results::{MethodRow, Results};

/// Curves in a chart: more cannot be told apart.
const TONES: [Tone; 4] = [Tone::Blue, Tone::Red, Tone::Green, Tone::Pink];
/// Names of charts: as many as are drawn at most.
const IDS: [&str; 8] =
    ["curves", "curves-2", "curves-3", "curves-4", "curves-5", "curves-6", "curves-7", "curves-8"];

pub(super) fn page(results: &Results) -> Page {
    let mut sections = vec![Section::new(
        "The table",
        vec![Part::Text(results.setting()), Part::Table(results.table()), Part::Text(results.legend())],
    )];
    let charts = charts(results);
    let curves = if charts.is_empty() {
        vec![Part::Text(
            "Nothing but samples is known of this problem, so no run was watched on its way.".into(),
        )]
    } else {
        charts.into_iter().map(Part::Figure).collect()
    };
    sections.push(Section::new("On the way", curves));
    Page { title: "Methods compared".into(), lead: lead(results), sections }
}

fn lead(results: &Results) -> String {
    let first = results.methods.first().map_or_else(String::new, MethodRow::name);
    let what = if results.limits.target.is_some() { "reaches the target first" } else { "comes farthest" };
    format!("{first} {what}. Best first, batch in brackets.")
}

/// The methods in the order of the table, four to a chart.
fn charts(results: &Results) -> Vec<Chart> {
    let curves: Vec<(String, Vec<(f64, f64)>)> = results
        .methods
        .iter()
        .filter_map(|row| Some((row.name(), curve(row, results.limits.budget)?)))
        .collect();
    let groups = curves.chunks(TONES.len());
    IDS.into_iter().zip(groups).map(|(id, group)| chart(results, id, group)).collect()
}

fn chart(results: &Results, id: &'static str, group: &[(String, Vec<(f64, f64)>)]) -> Chart {
    let names: Vec<&str> = group.iter().map(|(name, _)| name.as_str()).collect();
    let series = group
        .iter()
        .zip(TONES)
        .map(|((name, points), tone)| Series::new(name.clone(), tone, Shape::Line(points.clone())))
        .collect();
    let target = results.limits.target.map(|target| Reference::y("target", target));
    Chart {
        id,
        title: names.join(", "),
        caption: format!(
            "{} of the point that would be handed out: the median over the runs that had not ended.",
            results.measure()
        ),
        x: Axis::log("samples"),
        y: Axis::log(results.measure()),
        series,
        references: target.into_iter().collect(),
    }
}

/// Places of a curve for every factor of ten.
const PLACES: f64 = 16.0;

/// The median over runs of the last look before each of many places; as far as half of the runs come.
fn curve(row: &MethodRow, budget: u64) -> Option<Vec<(f64, f64)>> {
    if row.runs.iter().all(|run| run.curve.is_empty()) || row.runs[0].curve.len() < 2 {
        return None;
    }
    let last = (PLACES * (budget as f64).log10()).ceil() as i32;
    let points: Vec<(f64, f64)> = (0..=last)
        .map_while(|place| {
            let samples = 10f64.powf(f64::from(place) / PLACES).min(budget as f64);
            let running = row.runs.iter().filter(|run| run.samples as f64 >= samples);
            let mut gradients: Vec<f64> = running
                .map(|run| {
                    let seen = run.curve.partition_point(|(drawn, _)| *drawn <= samples);
                    run.curve[seen.saturating_sub(1)].1
                })
                .collect();
            gradients.sort_by(f64::total_cmp);
            let most = gradients.len();
            (2 * most > row.runs.len()).then(|| (samples, gradients[most / 2]))
        })
        .collect();
    (points.len() > 1).then_some(points)
}
