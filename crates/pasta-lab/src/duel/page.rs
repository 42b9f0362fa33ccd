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
        Part::Text(LEGEND.join(" ")),
        Part::Table(findings.checks()),
        Part::Text(format!("{PROGRESS} {}", findings.instance.limit().join(" "))),
    ]);
    happened.extend(findings.remarks().into_iter().map(Part::Text));
    let why: Vec<Part> = why(findings).into_iter().map(Part::Text).collect();
    let mut sections = vec![
        section("The opponent", vec![text(&findings.instance.sentences()), Part::Text(RULES.into())]),
        section("What happened", happened),
    ];
    if !why.is_empty() {
        sections.push(section("Why", why));
    }
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

/// The recipes and their like beside SGD, and the other methods of one sample a step beside SGD.
fn charts(findings: &Findings) -> Vec<Chart> {
    let ran = |outcome: &&Outcome| !outcome.runs.is_empty();
    let of_a_kind = |outcome: &Outcome| outcome.is_recipe() || outcome.method == "storm";
    let (mut family, mut others): (Vec<&Outcome>, Vec<&Outcome>) =
        findings.methods.iter().filter(ran).partition(|outcome| of_a_kind(outcome));
    let sgd = others.iter().position(|outcome| outcome.method == "sgd").map(|place| others.remove(place));
    let mut charts = Vec::new();
    if family.len() + others.len() <= 3 {
        family.append(&mut others);
    }
    for (id, title, group) in [
        ("progress", "How far the recipes and STORM come, and SGD", family),
        ("progress-others", "How far the other methods come", others),
    ] {
        if !group.is_empty() || (sgd.is_some() && charts.is_empty()) {
            charts.push(chart(findings, id, title, group.into_iter().chain(sgd).collect()));
        }
    }
    match &mut charts[..] {
        [only] => only.title = "How far it comes".into(),
        [_, rest @ ..] => rest.iter_mut().for_each(|chart| {
            chart.caption =
                "The same for the other methods, again beside SGD. The methods share their luck, seed by \
                             seed, so that some curves lie on each other."
                    .into();
        }),
        [] => {}
    }
    charts
}

const TONES: [Tone; 3] = [Tone::Blue, Tone::Green, Tone::Pink];

fn chart(findings: &Findings, id: &'static str, title: &str, group: Vec<&Outcome>) -> Chart {
    let LowerBound { chain, p, .. } = findings.instance.bound;
    let length = chain as f64;
    let lines: Vec<(&Outcome, Vec<f64>)> =
        group.iter().map(|&outcome| (outcome, medians(outcome, chain as usize))).collect();
    let ends = group.iter().filter_map(|outcome| outcome.score.as_ref()).map(|score| score.samples.median);
    let most = ends.fold(length / (2.0 * p), f64::max);
    let first = lines.iter().filter_map(|(_, marks)| marks.first().copied());
    let least = first.fold(0.5 / p, f64::min);
    // A logarithmic axis where the methods lie orders of magnitude apart.
    let (scale, from, to) = if most > 30.0 * length / (2.0 * p) {
        (Scale::Log, 0.3 * least, 3.0 * most)
    } else {
        (Scale::Linear, 0.0, 1.05 * most)
    };
    let limit = Shape::Line(limit_line(from, p, length));
    let mut series = vec![Series { name: "2p a sample".into(), tone: Tone::Grey, shape: limit }];
    let mut tones = TONES.into_iter().cycle();
    for (outcome, marks) in &lines {
        let tone = if outcome.method == "sgd" { Tone::Red } else { tones.next().unwrap_or(Tone::Blue) };
        let end = outcome.score.as_ref().map_or(from, |score| score.samples.median);
        let shape = Shape::Line(staircase(marks, from, end));
        series.push(Series { name: outcome.method.into(), tone, shape });
    }
    Chart {
        id,
        title: title.into(),
        caption: format!(
            "prog_1, the last coordinate of the chain that has come beyond lambda, of {} in all: the median over {} \
             of the samples after which it first comes so far. The grey line gains 2p coordinates a sample. It is how the \
             bound is proved: after any number of samples, with probability 95 %, a zero-respecting method is less \
             than three coordinates above it.",
            given(length),
            if findings.seeds == 1 { "one run".to_owned() } else { format!("{} runs", findings.seeds) },
        ),
        x: Axis { label: "samples".into(), scale, range: Some((from, to)) },
        y: Axis { label: "prog_1".into(), scale: Scale::Linear, range: Some((0.0, 1.04 * length)) },
        series,
        references: Vec::new(),
    }
}

/// The line of slope 2p, up to the length of the chain.
fn limit_line(from: f64, p: f64, length: f64) -> Vec<(f64, f64)> {
    let last = length / (2.0 * p);
    // Many points: on a logarithmic axis the line is bent.
    let points = (0..=400).map(|i| {
        let part = f64::from(i) / 400.0;
        let samples = if from > 0.0 { from * (last / from).powf(part) } else { last * part };
        (samples, samples * 2.0 * p)
    });
    points.collect()
}

/// The median samples with which the runs first came to 1, 2, .., as far as more than half of them came.
fn medians(outcome: &Outcome, chain: usize) -> Vec<f64> {
    let runs = outcome.runs.len();
    (0..chain)
        .map_while(|k| {
            let marks =
                outcome.runs.iter().map(|run| run.marks.get(k).map_or(f64::INFINITY, |mark| *mark as f64));
            let mut marks: Vec<f64> = marks.collect();
            marks.sort_by(f64::total_cmp);
            marks.get(runs / 2).copied().filter(|mark| mark.is_finite())
        })
        .collect()
}

/// A line that stays until it rises.
fn staircase(marks: &[f64], from: f64, end: f64) -> Vec<(f64, f64)> {
    let mut points = vec![(from, 0.0)];
    for (below, &mark) in marks.iter().enumerate() {
        points.extend([(mark, below as f64), (mark, below as f64 + 1.0)]);
    }
    points.push((end.max(marks.last().copied().unwrap_or(from)), marks.len() as f64));
    points
}
