//! What a run came to: an object for machines, which is also result.json, and a table for people.

use pasta_opt::certificate::{Certificate, Verdict};
use pasta_opt::forecast::{Family, Outlook, Price, Said};
use pasta_opt::ledger::Ledger;
use pasta_opt::objective::Measure;
use pasta_opt::prelude::*;
use pasta_opt::recipe::{self, Guarantee};
use pasta_opt::walk::{Candidate, CertificateLog};
use pasta_pipe::Counts;
use serde::Serialize;

use super::Run;
use crate::forecast::{self, share};
use crate::spec::{Promise, Simulated, Spec, void};
use pasta_report::console::Report;
use pasta_report::number::real;
use pasta_report::{Table, grouped};

/// How many coordinates of the point a table shows.
const SHOWN: usize = 6;

/// The end of a run. `docs/formats.md` has the keys.
#[derive(Serialize)]
pub(super) struct Outcome<'s> {
    method: &'static str,
    problem: &'s str,
    seed: u64,
    stop: Stopped,
    /// `None` where `point_file` names a file beside the result.
    pub(super) point: Option<&'s [f64]>,
    pub(super) point_file: Option<&'static str>,
    steps: u64,
    /// How many steps led to the point, where it is an iterate drawn at random; then `last` is the last iterate.
    drawn_at: Option<u64>,
    pub(super) last: Option<&'s [f64]>,
    /// |x - x0| of the last iterate.
    distance: f64,
    ledger: &'s Ledger,
    promise: Promised,
    /// Whose point it is, where a recipe has a fall-back.
    by: Option<&'static str>,
    /// What the problem's own formulas say of the point; `None` where they are not known.
    truth: Option<Truths>,
    certificate: Option<Certified>,
    forecast: Option<Range>,
    forecast_silent: Option<&'s str>,
    cost: Option<Cost>,
    /// What the workers did, since this process started them.
    simulator: Option<Counts>,
    /// Whether the point is weights of standardised columns.
    #[serde(skip)]
    standardised: bool,
    #[serde(skip)]
    outlook: &'s Outlook,
    #[serde(skip)]
    log: Option<&'s CertificateLog>,
}

/// Why the run ended.
#[derive(Serialize)]
struct Stopped {
    kind: &'static str,
    meaning: String,
    /// At which step it diverged.
    step: Option<u64>,
}

/// What a theorem promises, or why nothing is promised.
#[derive(Serialize)]
struct Promised {
    holds: bool,
    statement: String,
    guarantee: Option<Guarantee>,
    doubts: Vec<String>,
    predicted: Option<recipe::Cost>,
}

/// The problem's own formulas at the point.
#[derive(Serialize)]
struct Truths {
    gap: Option<f64>,
    gradient_squared: Option<f64>,
    /// Where the promise is about the Moreau envelope.
    moreau_squared: Option<f64>,
}

/// The last certificate, if it is about the point.
#[derive(Serialize)]
struct Certified {
    #[serde(flatten)]
    certificate: Certificate,
    statement: String,
    /// Why the certificate is void: what `[noise]` says against its assumption.
    doubt: Option<String>,
    /// Which point it is about.
    about: Option<Candidate>,
    attempts: u64,
}

/// A forecast, with the share of runs in which such ranges held.
#[derive(Serialize)]
struct Range {
    #[serde(flatten)]
    said: Said,
    share: Option<f64>,
}

/// What all samples cost, where the price of one is known.
#[derive(Serialize)]
struct Cost {
    price: Price,
    /// The price times all samples.
    amount: f64,
}

impl<'s> Outcome<'s> {
    pub(super) fn new(spec: &'s Spec, run: &'s Run, stop: Stop) -> Self {
        let view = run.walk.view();
        let log = view.certification;
        let promise = spec.method.promise.as_ref();
        // A certificate may be about another point.
        let is_output =
            log.and_then(CertificateLog::handed_out).is_none_or(|about| about == Candidate::Output);
        let drawn_at = view.drawn_at.filter(|_| is_output);
        let certified = log.and_then(|log| {
            let certificate = log.last?;
            let doubt = super::doubt(spec, &view);
            let certificate = if doubt.is_some() { certificate.void() } else { certificate };
            Some(Certified {
                certificate,
                statement: doubt.as_deref().map_or_else(|| certificate.statement(), void),
                doubt,
                about: log.handed_out(),
                attempts: log.attempts,
            })
        });
        Self {
            method: spec.method.name,
            problem: &spec.problem.words,
            seed: spec.seed,
            stop: Stopped {
                kind: stop.kind(),
                meaning: stop.meaning(),
                step: match stop {
                    Stop::Diverged(divergence) => Some(divergence.step()),
                    _ => None,
                },
            },
            point: Some(view.point),
            point_file: None,
            steps: view.step,
            drawn_at,
            last: drawn_at.and(Some(view.x)),
            distance: view.distance2.sqrt(),
            ledger: run.gate.ledger(),
            promise: Promised::new(spec, stop, view.promised),
            by: spec.method.fallback.then_some(if view.promised { "recipe" } else { "auto" }),
            truth: spec.problem.truth.as_ref().map(|truth| {
                let at = |measure: Measure| measure.at(truth.objective(), view.point);
                let promised = promise.map(|promise| promise.plan.guarantee.measure);
                Truths {
                    gap: at(Measure::Gap),
                    gradient_squared: at(Measure::GradientSquared),
                    moreau_squared: promised
                        .filter(|measure| matches!(measure, Measure::MoreauSquared { .. }))
                        .and_then(at),
                }
            }),
            certificate: certified,
            forecast: run
                .outlook
                .first
                .map(|said| Range { said, share: share(spec.method.name, Family::measured_own) }),
            forecast_silent: run.outlook.silent.as_deref(),
            cost: spec
                .price
                .clone()
                .map(|price| Cost { amount: price.of(run.gate.ledger().samples() as f64), price }),
            simulator: spec.problem.simulator.as_ref().map(Simulated::counts),
            standardised: spec.problem.is_standardised(),
            outlook: &run.outlook,
            log,
        }
    }

    pub(super) fn is_certified(&self) -> bool {
        self.certificate.as_ref().is_some_and(|c| c.certificate.verdict == Verdict::Certified)
    }

    /// What a void certificate says.
    pub(super) fn void(&self) -> Option<String> {
        let certificate = self.certificate.as_ref()?;
        certificate.doubt.as_deref().map(void)
    }

    fn method(&self) -> String {
        let point = match self.by {
            None => return self.method.to_owned(),
            Some("recipe") => self.method,
            Some(other) => other,
        };
        format!("{}, and auto beside it; the point is {point}'s", self.method)
    }

    /// The certificate in words.
    fn certificate(&self) -> String {
        let Some(log) = self.log else { return "none was asked for (--certify EPS)".into() };
        match &self.certificate {
            None if log.attempts == 0 => {
                "none: no samples were left for one, or the run never looked good enough to try".into()
            }
            None => format!("none for this point, after {} failed attempts at others", log.attempts),
            Some(Certified { statement, doubt: Some(_), .. }) => statement.clone(),
            Some(Certified { certificate, statement, attempts, .. }) => {
                let tried = if *attempts == 1 { String::new() } else { format!(", attempt {attempts}") };
                let (verdict, target) = (certificate.verdict.words(), certificate.target);
                format!("{verdict}{tried} (target {target}): {statement}")
            }
        }
    }

    /// The truth at the point, the promised measure first.
    fn truths(&self) -> Vec<(String, String)> {
        let promised = self.promise.guarantee.map(|guarantee| guarantee.measure);
        let mut measures: Vec<Measure> = promised.into_iter().collect();
        measures.extend([Measure::Gap, Measure::GradientSquared].iter().filter(|m| Some(**m) != promised));
        let value = |measure: Measure| match (measure, &self.truth) {
            (Measure::Gap, Some(truth)) => truth.gap,
            (Measure::GradientSquared, Some(truth)) => truth.gradient_squared,
            (Measure::MoreauSquared { .. }, Some(truth)) => truth.moreau_squared,
            (Measure::GradientSquared, None) => self.exact_gradient().map(|gradient| gradient.powi(2)),
            (_, None) => None,
        };
        let row = |measure: Measure| {
            let value = value(measure).map_or_else(|| "not known".to_owned(), real);
            (format!("{} there", measure.formula()), value)
        };
        measures.into_iter().map(row).collect()
    }

    /// |grad f| at the point, where a certificate passed over all rows of a table.
    fn exact_gradient(&self) -> Option<f64> {
        let Certified { certificate, about, .. } = self.certificate.as_ref()?;
        certificate.rows.and(*about).and(certificate.bound)
    }

    fn samples(&self) -> String {
        let drawn = self.ledger.steps().samples;
        let used = grouped(drawn);
        match self.promise.predicted {
            Some(cost) if cost.exact == Some(drawn) => format!("{used} (exactly as predicted)"),
            Some(cost) if cost.exact.is_some() => format!("{used} (predicted {:.4e})", cost.samples),
            Some(cost) => format!("{used} (worst case: {:.4e} in expectation)", cost.samples),
            None => used,
        }
    }

    fn point(&self) -> String {
        let x = self.point.unwrap_or_default();
        let shown: Vec<_> = x.iter().take(SHOWN).map(|x| real(*x)).collect();
        let rest = if x.len() > SHOWN { format!(", .. ({} coordinates)", x.len()) } else { String::new() };
        let about = self.certificate.as_ref().and_then(|certified| certified.about);
        let about = match (self.drawn_at, self.last, about) {
            (Some(step), Some(last), _) => format!(": {}", self.drawn_point(step, last)),
            (_, _, Some(about)) => format!(": {}", about.words()),
            _ => String::new(),
        };
        let weights = if self.standardised { ", weights of standardised columns" } else { "" };
        match self.point_file {
            Some(file) => format!("in {file}{weights}{about}"),
            None => format!("({}{rest}){weights}{about}", shown.join(", ")),
        }
    }
}

impl Outcome<'_> {
    /// Why the point is not the last iterate, and how far it is from there.
    fn drawn_point(&self, step: u64, last: &[f64]) -> String {
        let far = |point: &[f64]| point.iter().zip(last).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt();
        let far =
            self.point.map_or(String::new(), |point| format!("; the last one is {} away", real(far(point))));
        let (step, steps) = (grouped(step), grouped(self.steps));
        format!(
            "drawn uniformly among the iterates, as the theorem requires: that of step {step} of {steps}{far}"
        )
    }
}

impl Report for Outcome<'_> {
    fn text(&self) -> String {
        let row = |name: &str, value: String| (name.to_owned(), value);
        let mut rows = vec![
            row("method", self.method()),
            row("problem", self.problem.to_owned()),
            row("seed", self.seed.to_string()),
            row("stopped", self.stop.meaning.clone()),
            row("promise", self.promise.statement.clone()),
            row("certificate", self.certificate()),
            row("point", self.point()),
        ];
        rows.extend(self.truths());
        rows.push(row("last distance from start", real(self.distance)));
        rows.push(row("samples", self.samples()));
        if self.log.is_some() {
            let ledger = self.ledger;
            rows.push(row("samples of certificates", grouped(ledger.certificate_samples())));
            rows.push(row("samples in all", grouped(ledger.samples())));
            let price = self.cost.as_ref().map(|cost| &cost.price);
            rows.push(row("forecast", forecast::words(self.outlook, self.method, price)));
        }
        let checked = self.ledger.of(pasta_opt::draws::Role::Check).samples;
        if checked > 0 {
            rows.push(row("samples of the check", grouped(checked)));
        }
        if let Some(Cost { price, .. }) = &self.cost {
            let samples = self.ledger.samples();
            let cost = forecast::money(price, samples as f64);
            rows.push(row("cost", format!("{cost}, {} samples at {price}", grouped(samples))));
        }
        rows.push(row("evaluations", grouped(self.ledger.evaluations())));
        if let Some(counts) = self.simulator {
            rows.push(row("simulator", repeated(counts)));
        }
        rows.push(row("steps", grouped(self.steps)));
        Table::labelled(rows).text()
    }
}

/// What had to be done again, which no ledger counts.
fn repeated(counts: Counts) -> String {
    let Counts { requests, repeated_requests, repeated_samples, .. } = counts;
    let requests = grouped(u128::from(requests));
    if repeated_requests == 0 {
        return format!("{requests} requests, none repeated");
    }
    let [repeated, samples] = [repeated_requests, repeated_samples].map(|n| grouped(u128::from(n)));
    format!(
        "{requests} requests; {repeated} failed and were asked again ({samples} samples, not counted above)"
    )
}

impl Promised {
    fn new(spec: &Spec, stop: Stop, is_recipe: bool) -> Self {
        let Some(Promise { plan, doubts, estimated, proved, .. }) = &spec.method.promise else {
            let statement = "none: no theorem is about this method".into();
            return Self { holds: false, statement, guarantee: None, doubts: Vec::new(), predicted: None };
        };
        let Guarantee { measure, point, bound, .. } = plan.guarantee;
        let provided = match spec.problem.failure() {
            _ if spec.problem.truth.is_none() && !proved => ", provided the constants are true".into(),
            failure if *proved && failure > 0.0 => {
                format!(", if the constants hold, which they do except with probability {}", plain(failure))
            }
            _ => String::new(),
        };
        let promise =
            format!("E {} <= {} for {}{provided}", measure.formula(), plain(bound), point.description());
        let only_estimates = doubts.len() == 1 && !estimated.is_empty();
        let statement = match (stop, doubts.as_slice()) {
            (Stop::PlannedEnd, _) if !is_recipe => {
                format!("none: the point is auto's, not the recipe's ({promise})")
            }
            (Stop::PlannedEnd, []) => promise,
            (Stop::PlannedEnd, [doubt]) if only_estimates => {
                let they = if estimated.len() > 1 { "they" } else { "it" };
                format!("none proved: {doubt} (were {they} true: {promise})")
            }
            (Stop::PlannedEnd, doubts) => format!("none for this problem: {}", doubts.join("; ")),
            (Stop::Certified, _) => {
                format!("the certificate's; the theorem's planned end was not needed ({promise})")
            }
            _ => format!("none: the run did not reach its planned end ({promise})"),
        };
        Self {
            holds: stop == Stop::PlannedEnd && is_recipe && doubts.is_empty(),
            statement,
            guarantee: Some(plan.guarantee),
            doubts: doubts.clone(),
            predicted: (!spec.method.fallback).then_some(plan.cost),
        }
    }
}

/// Twelve digits hide the rounding of eps^2 and nothing else.
fn plain(bound: f64) -> String {
    if bound < 1e-6 {
        return format!("{bound:e}");
    }
    format!("{bound:.12}").trim_end_matches('0').trim_end_matches('.').to_owned()
}
