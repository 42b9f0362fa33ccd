//! How far each method comes, drawn.

use pasta_opt::bounds::LowerBound;

use super::score::{Findings, Outcome};
use pasta_report::{Axis, Chart, Scale, Series, Shape, Tone, given};

/// The methods that take about as many samples, together: an axis for all would be empty for the most part.
pub(super) fn charts(findings: &Findings) -> Vec<Chart> {
    let chain = findings.instance.bound.chain as usize;
    let mut curves: Vec<Curve> =
        findings.methods.iter().filter_map(|outcome| Curve::of(outcome, chain)).collect();
    curves.sort_by(|a, b| a.first().total_cmp(&b.first()));
    let groups: Vec<&[Curve]> = curves
        .chunk_by(|a, b| b.first() < APART * a.first())
        .flat_map(|group| group.chunks(group.len().div_ceil(group.len().div_ceil(TONES.len()))))
        .collect();
    let ids = ["progress", "progress-2", "progress-3", "progress-4", "progress-5", "progress-6"];
    ids.into_iter().zip(groups).map(|(id, group)| chart(findings, id, group)).collect()
}

/// Methods whose first coordinates come so many times as late are not drawn on one axis.
const APART: f64 = 300.0;

const TONES: [Tone; 4] = [Tone::Blue, Tone::Red, Tone::Green, Tone::Pink];

/// How far a method comes.
struct Curve {
    method: &'static str,
    /// The median samples with which the runs first came to 1, 2, .., as far as more than half of them came.
    marks: Vec<f64>,
    /// The median samples at the end.
    end: f64,
}

impl Curve {
    fn of(outcome: &Outcome, chain: usize) -> Option<Self> {
        let end = outcome.score.as_ref()?.samples.median;
        let median = |k: usize| {
            let marks =
                outcome.runs.iter().map(|run| run.marks.get(k).map_or(f64::INFINITY, |mark| *mark as f64));
            let mut marks: Vec<f64> = marks.collect();
            marks.sort_by(f64::total_cmp);
            marks.get(outcome.runs.len() / 2).copied().filter(|mark| mark.is_finite())
        };
        Some(Self { method: outcome.method, marks: (0..chain).map_while(median).collect(), end })
    }

    /// The samples after which something happens.
    fn first(&self) -> f64 {
        self.marks.first().copied().unwrap_or(self.end).max(1.0)
    }

    fn last(&self) -> f64 {
        self.marks.last().copied().unwrap_or(self.end).max(self.end)
    }

    /// A line that stays until it rises, as high above its place as this.
    fn staircase(&self, lift: f64) -> Vec<(f64, f64)> {
        let mut points = vec![(self.first(), lift)];
        for (below, &mark) in self.marks.iter().enumerate() {
            points.extend([(mark, below as f64 + lift), (mark, below as f64 + 1.0 + lift)]);
        }
        points.push((self.last(), self.marks.len() as f64 + lift));
        points
    }
}

fn chart(findings: &Findings, id: &'static str, group: &[Curve]) -> Chart {
    let LowerBound { chain, p, .. } = findings.instance.bound;
    let length = chain as f64;
    let least = group.iter().map(Curve::first).fold(f64::INFINITY, f64::min);
    let most = group.iter().map(Curve::last).fold(least, f64::max);
    // A logarithmic axis where the methods lie orders of magnitude apart.
    let (scale, from, to) = if most > 30.0 * least {
        (Scale::Log, 0.7 * least, 1.4 * most)
    } else {
        (Scale::Linear, (least - 0.1 * (most - least)).max(0.0), most + 0.05 * (most - least).max(0.1 * most))
    };
    let mut series = Vec::new();
    let limit = length / (2.0 * p);
    if limit > from {
        let line = Shape::Line(limit_line(from, limit, length));
        series.push(Series::new("2p a sample", Tone::Grey, line));
    }
    // The methods share their luck, seed by seed: without a lift some curves would lie on each other.
    let lift = 0.012 * length;
    series.extend(group.iter().zip(TONES).enumerate().map(|(place, (curve, tone))| {
        Series::new(curve.method, tone, Shape::Line(curve.staircase(lift * place as f64)))
    }));
    let methods: Vec<&str> = group.iter().map(|curve| curve.method).collect();
    Chart {
        id,
        title: format!("How far it comes: {}", methods.join(", ")),
        caption: if id == "progress" { caption(findings, length) } else { "The same.".into() }
            + if limit > from { "" } else { " The grey line would end left of this figure." },
        x: Axis { label: "samples".into(), scale, range: Some((from, to)) },
        y: Axis::linear("prog_1").within(0.0, 1.08 * length),
        series,
        references: Vec::new(),
    }
}

fn caption(findings: &Findings, length: f64) -> String {
    format!(
        "prog_1, the last coordinate of the chain that has come beyond lambda, of {} in all: the median over {} of the \
         samples after which it first comes so far. Curves that would hide each other are drawn a little higher. The \
         grey line gains 2p coordinates a sample. It is how the bound is proved: after any number of samples, with \
         probability 95 %, a zero-respecting method is less than three coordinates above it.",
        given(length),
        if findings.seeds == 1 { "one run".to_owned() } else { format!("{} runs", findings.seeds) },
    )
}

/// The straight line to the length of the chain.
fn limit_line(from: f64, last: f64, length: f64) -> Vec<(f64, f64)> {
    // Many points: on a logarithmic axis the line is bent.
    let points = (0..=400).map(|i| {
        let part = f64::from(i) / 400.0;
        let samples = if from > 0.0 { from * (last / from).powf(part) } else { last * part };
        (samples, length * samples / last)
    });
    points.collect()
}
