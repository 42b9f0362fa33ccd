//! The page: curves, tables, and why they are as they are.

use pasta_opt::bounds::LowerBound;

use super::curves::charts;
use super::score::{Findings, Outcome, Score, Verdict};
use super::tables::{LEGEND, PROGRESS, count};
use pasta_report::{Page, Part, Section, significant};

/// The whole page. `command` makes it again.
pub(super) fn page(findings: &Findings, command: String) -> Page {
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
    let mut sections =
        if why.is_empty() { Vec::new() } else { vec![Section::new("Why, and what it means", why)] };
    sections.push(Section::new(
        "The opponent",
        vec![Part::Text(findings.instance.sentences().join(" ")), Part::Text(RULES.into())],
    ));
    sections.push(Section::new("What happened", happened));
    sections.push(Section::new(
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
    let the_samples = "the samples that the bound asks for";
    match ranked[..] {
        [] => "No method got to |grad F| <= eps in all its runs.".into(),
        [only] => format!("{} {the_samples}.", said(only)),
        [first, .., last] => format!("{} {the_samples}, {}.", said(first), said(last).replace(" took ", " ")),
    }
}

/// Why one sample a step does better here than batches, if in this duel it did.
fn why(findings: &Findings) -> Vec<String> {
    let Some(((sgd, single), (smooth, batched))) = findings.one_sample_and_batches() else {
        return Vec::new();
    };
    let bound = &findings.instance.bound;
    let [few, many] = [single, batched].map(|score| score.samples.median);
    let numbers = format!(
        "sgd, with one sample a step, took {} samples; the recipe smooth took {}, which is {} times as many.",
        count(few),
        count(many),
        significant(many / few, 2)
    );
    let leap = sgd.leap.filter(|leap| *leap > 1.0);
    let [few, many] = [single, batched].map(|score| count(score.steps.median));
    let reason = if let Some(leap) = leap {
        luck(leap, single, bound)
    } else {
        format!("In steps they are closer: {few} and {many}. Here one sample a step is good enough to go by.")
    };
    vec![format!("{numbers} {reason}"), price(smooth, bound, leap), MEANING.into()]
}

/// What a sample does that throws a coordinate farther than lambda, so that the next one opens.
fn luck(leap: f64, single: &Score, bound: &LowerBound) -> String {
    let (reveals, samples) = (bound.chain as f64 / bound.p, single.samples.median);
    let mostly =
        format!(" Most of its {} samples are the steps of the long way down the slope.", count(samples));
    let rest = if samples > 2.0 * reveals { mostly.as_str() } else { "" };
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
