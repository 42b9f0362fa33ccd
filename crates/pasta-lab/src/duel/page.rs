//! The page: curves, tables, and why they are as they are.

use pasta_opt::bounds::LowerBound;

use super::findings::{Findings, LEGEND, Outcome, PROGRESS, Score, Verdict, count};
use pasta_report::{Axis, Chart, Page, Part, Scale, Section, Series, Shape, Tone, given, significant};

/// The whole page. `command` makes it again.
pub(super) fn page(findings: &Findings, command: String) -> Page {
    let text = |lines: &[String]| Part::Text(lines.join(" "));
    let section = |heading: &str, parts: Vec<Part>| Section { heading: heading.into(), parts };
    let mut happened: Vec<Part> = charts(findings).into_iter().map(Part::Figure).collect();
    happened.extend([
        Part::Table(findings.comparison()),
        Part::Text(LEGEND.into()),
        Part::Table(findings.checks()),
        Part::Text(format!("{PROGRESS} {}", findings.instance.limit())),
    ]);
    happened.extend(findings.remarks().into_iter().map(Part::Text));
    let why: Vec<Part> = why(findings).into_iter().map(Part::Text).collect();
    // First, since without it the headline misleads.
    let mut sections = if why.is_empty() { Vec::new() } else { vec![section("Why, and what it means", why)] };
    sections
        .push(section("The opponent", vec![text(&findings.instance.sentences()), Part::Text(RULES.into())]));
    sections.push(section("What happened", happened));
    sections.push(section(
        "Do it again",
        vec![
            Part::Table(findings.settings()),
            Part::Text("The same command gives these numbers and this page again, byte for byte.".into()),
            Part::Command(command),
        ],
    ));
    Page {
        title: format!("Methods against the hard instance of {}", findings.instance.theorem),
        lead: lead(findings),
        sections,
    }
}

const RULES: &str = "The instance is F(u, y) = f_0(u) + phi(u) Fs(y). A slope f_0 leads away from the start; far out, phi \
    switches a chain Fs on. The gradient is larger than eps until the last coordinate of the chain has come beyond \
    lambda, a coordinate has no slope before its predecessor is there, and the oracle answers zero in the next one \
    unless it is lucky. A method is zero-respecting if it only ever moves along coordinates in which the \
    oracle has answered something other than zero. The bound is proved for such methods, and nothing is claimed \
    about others. Whether a method is one was checked in every run, after every step, as was the exact \
    gradient.";

/// The fewest and the most samples among the methods that got there.
fn lead(findings: &Findings) -> String {
    let reached = |outcome: &&Outcome| outcome.verdict == Verdict::Reached;
    let ratio = |outcome: &Outcome| outcome.score.as_ref().map_or(f64::NAN, |score| score.ratio_to_sharp);
    let mut ranked: Vec<&Outcome> = findings.methods.iter().filter(reached).collect();
    ranked.sort_by(|a, b| ratio(a).total_cmp(&ratio(b)));
    let said =
        |outcome: &Outcome| format!("{} took {} times", outcome.method, significant(ratio(outcome), 2));
    match ranked[..] {
        [] => "No method got to |grad F| <= eps in all its runs.".into(),
        [only] => format!("{} the samples that the bound asks for.", said(only)),
        [first, .., last] => format!(
            "{} the samples that the bound asks for, {}.",
            said(first),
            said(last).replace(" took ", " ")
        ),
    }
}

/// Why one sample a step does better here than batches, if in this duel it did.
fn why(findings: &Findings) -> Vec<String> {
    let Some(((sgd, single), (smooth, batched))) = findings.one_sample_and_batches() else {
        return Vec::new();
    };
    let bound = &findings.instance.bound;
    let numbers = format!(
        "sgd, with one sample a step, took {} samples; the recipe smooth took {}, which is {} times as many.",
        count(single.samples.median),
        count(batched.samples.median),
        significant(batched.samples.median / single.samples.median, 2)
    );
    let leap = sgd.leap.filter(|leap| *leap > 1.0);
    let reason = match leap {
        Some(leap) => luck(leap, single, bound),
        None => format!(
            "In steps they are closer: {} and {}. Here one sample a step is good enough to go by.",
            count(single.steps.median),
            count(batched.steps.median)
        ),
    };
    vec![format!("{numbers} {reason}"), price(smooth, bound, leap), MEANING.into()]
}

/// What a sample does that throws a coordinate farther than lambda, so that the next one opens.
fn luck(leap: f64, single: &Score, bound: &LowerBound) -> String {
    let reveals = bound.chain as f64 / bound.p;
    let samples = single.samples.median;
    let rest = if samples > 2.0 * reveals {
        format!(" Most of its {} samples are the steps of the long way down the slope.", count(samples))
    } else {
        String::new()
    };
    format!(
        "On this instance a method has to wait for a lucky sample for each coordinate, and one is enough: it shows \
         the slope of the coordinate 1/p times as steep as it is, which throws the first coordinate {} lambda \
         far, beyond where the next one opens. To overshoot does no harm, since the chain is flat out there. So \
         T/p = {} samples do, in expectation.{rest}",
        significant(leap, 2),
        count(reveals)
    )
}

fn price(smooth: &Outcome, bound: &LowerBound, leap: Option<f64>) -> String {
    let largest = smooth.runs.iter().map(|run| run.largest_batch).max().unwrap_or(0) as f64;
    let early = smooth.runs.iter().map(|run| run.samples_on_slope as f64 / run.samples as f64);
    let early = early.sum::<f64>() / smooth.runs.len() as f64;
    let lucky = largest * bound.p;
    let enough = if lucky > 2.0 && leap.is_some() { ", where one would do" } else { "" };
    format!(
        "smooth does not know that it is on a chain. In every step it averages as many samples as the worst \
         noise asks for that its constants allow at this distance. Its largest batch had {} samples, of which \
         {} are lucky in expectation{enough}; and it drew {} % of its samples on the first half of the way, \
         where this oracle has no noise at all.",
        count(largest),
        count(lucky),
        significant(100.0 * early, 2)
    )
}

const MEANING: &str = "This is what the recipe's promise costs, and the instance is not where it pays: the promise holds for \
    every function and every noise with these constants. SGD with this step size has none; what it then does \
    elsewhere, pasta-lab demo shows.";

/// The methods that take about as many samples, together: an axis for all would be empty for the most part.
fn charts(findings: &Findings) -> Vec<Chart> {
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
        series.push(Series { name: "2p a sample".into(), tone: Tone::Grey, shape: line });
    }
    // The methods share their luck, seed by seed: without a lift some curves would lie on each other.
    let lift = 0.012 * length;
    series.extend(group.iter().zip(TONES).enumerate().map(|(place, (curve, tone))| Series {
        name: curve.method.into(),
        tone,
        shape: Shape::Line(curve.staircase(lift * place as f64)),
    }));
    let methods: Vec<&str> = group.iter().map(|curve| curve.method).collect();
    Chart {
        id,
        title: format!("How far it comes: {}", methods.join(", ")),
        caption: if id == "progress" { caption(findings, length) } else { "The same.".into() }
            + if limit > from { "" } else { " The grey line would end left of this figure." },
        x: Axis { label: "samples".into(), scale, range: Some((from, to)) },
        y: Axis { label: "prog_1".into(), scale: Scale::Linear, range: Some((0.0, 1.08 * length)) },
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
