//! The report of a run in words: the answer in a few lines, the verdict first, and the rest for those who ask.

use pasta_opt::certificate::{Certificate, Verdict};
use pasta_opt::draws::Role;
use pasta_opt::forecast::{Family, Forecast, Measured, Price};
use pasta_opt::objective::Measure;
use pasta_opt::run::{Certified, Report};

use crate::console::Tone;
use crate::number::{at_most, grouped, real, rough};

/// How many coordinates of the point are shown.
const SHOWN: usize = 6;

/// A label and a text.
pub type Row = (String, String);

/// The report of a run in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words {
    /// At most eight rows: the verdict, on what it rests, the point, its value, the cost.
    pub answer: Vec<Row>,
    /// All else.
    pub details: Vec<Row>,
}

/// What is known besides a report.
#[derive(Debug, Clone, Copy, Default)]
pub struct Besides<'a> {
    /// What a sample costs.
    pub price: Option<&'a Price>,
    /// True if the point is weights of standardised columns.
    pub is_standardised: bool,
}

impl Words {
    /// The colour of its verdict.
    pub fn tone(report: &Report) -> Tone {
        match report.stop.kind {
            "diverged" | "unbounded" | "not-finite" | "void" => Tone::Bad,
            _ if report.is_certified() => Tone::Good,
            _ if report.asked => Tone::Open,
            "planned-end" => Tone::Good,
            _ => Tone::Open,
        }
    }

    /// The report in words.
    pub fn of(report: &Report, besides: Besides<'_>) -> Self {
        let mut rows = vec![verdict(report)];
        let mut row = |name: &str, text: String| rows.push((name.to_owned(), text));
        if let Some(Certified { certificate, doubt: None, .. }) = &report.certificate
            && certificate.bound.is_some()
            && let Some(provided) = provided(certificate)
        {
            row("provided", provided);
        }
        if let Some(promise) = report.promise.as_ref().filter(|_| !report.is_certified()) {
            row("promise", promise.statement.clone());
        }
        row("point", point(report, besides));
        let truths = truths(report);
        if !truths.is_empty() {
            row("there", truths.join(", "));
        }
        row("cost", cost(report, besides.price));
        if report.ledger.not_finite() > 0 {
            row("warning", format!("{} answers were not finite", grouped(report.ledger.not_finite())));
        }
        if let Some(term) = &report.term {
            row("term", shortened(term));
        }
        row("run", format!("{} on {}, seed {}", method(report), report.problem, report.seed));
        Self { answer: rows, details: details(report, besides) }
    }
}

/// As much of a long text as a table has room for.
fn shortened(text: &str) -> String {
    const MOST: usize = 160;
    if text.chars().count() <= MOST {
        text.into()
    } else {
        text.chars().take(MOST).chain("..".chars()).collect()
    }
}

/// What the run came to, in a word and a line.
fn verdict(report: &Report) -> Row {
    let meaning = report.stop.meaning.clone();
    let row = |label: &str, text: String| (label.to_owned(), text);
    let certificate = report.certificate.as_ref();
    let bare = |text: &str| text.strip_prefix("VOID: ").unwrap_or(text).to_owned();
    match (report.stop.kind, certificate) {
        (kind @ ("diverged" | "unbounded" | "not-finite"), _) => {
            let said = meaning.strip_prefix(&format!("{kind}: ")).map(str::to_owned);
            row(&kind.replace('-', " "), said.unwrap_or(meaning))
        }
        (_, Some(Certified { certificate, statement, .. })) if certificate.verdict == Verdict::Void => {
            row("VOID", bare(statement))
        }
        (_, Some(Certified { certificate, .. })) if certificate.verdict == Verdict::Certified => {
            row("certified", claim(report, certificate))
        }
        (_, Some(Certified { certificate, .. })) if certificate.bound.is_some() => {
            row("not certified", format!("{meaning}; {}", claim(report, certificate)))
        }
        (_, Some(Certified { certificate, .. })) => {
            row("not certified", format!("{meaning}; {}", certificate.headline()))
        }
        (_, None) if report.asked => row("not certified", format!("{meaning}; {}", untried(report))),
        ("planned-end", None) => row("done", meaning),
        (kind, None) => row(&kind.replace('-', " "), meaning),
    }
}

/// On what a certificate rests, and what was compared for it.
pub fn provided(certificate: &Certificate) -> Option<String> {
    let agree = certificate.agreement.map(|agreement| {
        format!("losses and gradients of {} further samples agree there", agreement.samples)
    });
    let all: Vec<String> = certificate.basis.assumption().into_iter().chain(agree).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// The claim of a certificate, and where its target comes from.
fn claim(report: &Report, certificate: &Certificate) -> String {
    let share =
        report.of_start.map_or_else(String::new, |measured| format!("; the target is {}", measured.words()));
    format!("{}{share}", certificate.headline())
}

/// Why there is no certificate of the point.
fn untried(report: &Report) -> String {
    match report.attempts {
        0 => "it never looked good enough to try a certificate, or had no samples left for one".into(),
        1 => "a certificate of another point failed".into(),
        attempts => format!("{attempts} certificates of other points failed"),
    }
}

fn method(report: &Report) -> String {
    let point = match report.by {
        None => return report.method.clone(),
        Some("recipe") => &report.method,
        Some(other) => other,
    };
    format!("{} with auto beside it (the point is {point}'s)", report.method)
}

fn point(report: &Report, Besides { is_standardised, .. }: Besides<'_>) -> String {
    let x = report.point.as_deref().unwrap_or_default();
    let shown: Vec<_> = x.iter().take(SHOWN).map(|x| real(*x)).collect();
    let rest = if x.len() > SHOWN { format!(", .. ({} coordinates)", x.len()) } else { String::new() };
    let weights = if is_standardised { ", weights of standardised columns" } else { "" };
    let about = report.certificate.as_ref().and_then(|certified| certified.about);
    let about = match (report.drawn_at, &report.last, about) {
        (Some(step), Some(last), _) => format!(": {}", drawn_point(report, step, last)),
        (_, _, Some(about)) => format!(": {}", about.words()),
        _ => String::new(),
    };
    match &report.point_file {
        Some(file) => format!("in {file}{weights}{about}"),
        None => format!("({}{rest}){weights}{about}", shown.join(", ")),
    }
}

/// Why the point is not the last iterate, and how far it is from there.
fn drawn_point(report: &Report, step: u64, last: &[f64]) -> String {
    let far = |point: &[f64]| point.iter().zip(last).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt();
    let away = |point: &[f64]| format!("; the last one is {} away", real(far(point)));
    let far = report.point.as_deref().map_or(String::new(), away);
    let (step, steps) = (grouped(step), grouped(report.steps));
    format!(
        "drawn uniformly among the iterates, as the theorem requires: that of step {step} of {steps}{far}"
    )
}

/// The truth at the point as far as it is known, the promised measure first.
fn truths(report: &Report) -> Vec<String> {
    let promised = report.promise.as_ref().map(|promise| promise.guarantee.measure);
    let mut measures: Vec<Measure> = promised.into_iter().collect();
    measures.extend([Measure::Gap, Measure::GradientSquared].iter().filter(|m| Some(**m) != promised));
    let value = |measure: Measure| match (measure, &report.truth) {
        (Measure::Gap, Some(truth)) => truth.gap,
        (Measure::GradientSquared, Some(truth)) => truth.gradient_squared,
        (Measure::MoreauSquared { .. }, Some(truth)) => truth.moreau_squared,
        (_, None) => None,
    };
    measures.into_iter().filter_map(|m| Some(format!("{} = {}", m.formula(), real(value(m)?)))).collect()
}

/// Samples, and money where a price is known.
fn cost(report: &Report, price: Option<&Price>) -> String {
    let ledger = &report.ledger;
    let certificates = ledger.certificate_samples();
    let parts = [(certificates, "for certificates"), (ledger.of(Role::Check).samples, "for the check")];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(samples, _)| *samples > 0)
        .map(|(samples, what)| format!("{} {what}", grouped(samples)))
        .collect();
    let parts = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
    let rounds = ledger.rounds().map_or_else(String::new, |rounds| format!(" in {} rounds", grouped(rounds)));
    let cost = price.map_or_else(String::new, |price| {
        format!(", {} at {price} a sample", money(price, ledger.samples() as f64))
    });
    format!("{} samples{rounds}{parts}{cost}", grouped(ledger.samples()))
}

fn details(report: &Report, Besides { price, .. }: Besides<'_>) -> Vec<Row> {
    let row = |name: &str, value: String| (name.to_owned(), value);
    let mut rows = vec![row("stopped", report.stop.meaning.clone())];
    if let Some(Certified { statement, attempts, .. }) = &report.certificate {
        rows.push(row("certificate", format!("attempt {attempts}: {statement}")));
    }
    if let Some(promise) = report.promise.as_ref().filter(|_| report.is_certified()) {
        rows.push(row("promise", promise.statement.clone()));
    }
    rows.push(row("last distance from start", real(report.distance)));
    rows.push(row("steps", grouped(report.steps)));
    rows.push(row("samples of steps", samples_of_steps(report)));
    let others = report.ledger.by_role().filter(|(role, _)| ![Role::Large, Role::Small].contains(role));
    let others: Vec<String> = others
        .map(|(role, entry)| format!("{} {}", format!("{role:?}").to_lowercase(), grouped(entry.samples)))
        .collect();
    if !others.is_empty() {
        rows.push(row("other samples", others.join(", ")));
    }
    rows.push(row("evaluations", grouped(report.ledger.evaluations())));
    if let Some(forecast) = forecast(report, price) {
        rows.push(row("forecast", forecast));
    }
    rows
}

fn samples_of_steps(report: &Report) -> String {
    let drawn = report.ledger.steps().samples;
    let used = grouped(drawn);
    match report.promise.as_ref().and_then(|promise| promise.predicted) {
        Some(cost) if cost.exact == Some(drawn) => format!("{used} (exactly as predicted)"),
        Some(cost) if cost.exact.is_some() => format!("{used} (predicted {:.4e})", cost.samples),
        Some(cost) => format!("{used} (worst case: {:.4e} in expectation)", cost.samples),
        None => used,
    }
}

/// The first forecast of a run, or why there was none, in a line.
fn forecast(report: &Report, price: Option<&Price>) -> Option<String> {
    match (&report.forecast, &report.forecast_silent) {
        (Some(expected), _) => {
            let Forecast { low, middle, high, rules, .. } = expected.said.forecast;
            let (middle, [low, high]) = (about(middle, price), [low, high].map(rough));
            let (held, rules) = (held(&report.method, Family::measured_own), rules.words());
            let after = expected.said.after;
            Some(format!("about {middle}, {low} to {high}, made after {after} samples ({held}); {rules}"))
        }
        (None, Some(why)) if report.asked => Some(format!("none: {why}")),
        _ => None,
    }
}

/// How often ranges held for methods of this kind, in words.
pub fn held(method: &str, measured: fn(Family) -> Measured) -> String {
    match Family::of(method).map(|family| (family.name(), measured(family))) {
        Some((name, Measured { held, of })) if of > 0 => {
            format!("such ranges held in {held} of {of} runs of {name} that were tried")
        }
        _ => format!("how often such ranges hold for {method} was not tried"),
    }
}

/// Samples that are only a guess, and what they cost.
pub fn about(samples: f64, price: Option<&Price>) -> String {
    match price {
        None => format!("{} samples", rough(samples)),
        Some(price) => format!("{} samples, {}", rough(samples), money(price, two_digits(samples))),
    }
}

/// Rounded as [`rough`] shows it.
fn two_digits(samples: f64) -> f64 {
    format!("{samples:.1e}").parse().unwrap_or(samples)
}

/// What samples cost.
pub fn money(price: &Price, samples: f64) -> String {
    let (cost, unit) = (price.of(samples), &price.unit);
    let cost = if cost < 100.0 { format!("{cost:.2}") } else { at_most(cost.round()) };
    if unit.is_empty() { format!("cost {cost}") } else { format!("{cost} {unit}") }
}
