//! What a run came to: an object for machines, which is also result.json, and a table for people.

use pasta_opt::forecast::{Outlook, Price};
use pasta_opt::objective::Measure;
use pasta_opt::prelude::*;
use pasta_opt::run::{self, Certified, void};
use pasta_opt::walk::CertificateLog;
use pasta_pipe::Counts;
use serde::Serialize;

use super::Live;
use crate::forecast;
use crate::spec::{Simulated, Spec};
use pasta_report::console::Report;
use pasta_report::number::real;
use pasta_report::{Table, grouped};

/// How many coordinates of the point a table shows.
const SHOWN: usize = 6;

/// The end of a run: the library's report, with what the program knows besides. `docs/formats.md` has the keys.
#[derive(Serialize)]
pub(super) struct Outcome<'s> {
    #[serde(flatten)]
    pub(super) report: run::Report,
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

/// What all samples cost, where the price of one is known.
#[derive(Serialize)]
struct Cost {
    price: Price,
    /// The price times all samples.
    amount: f64,
}

impl<'s> Outcome<'s> {
    pub(super) fn new(spec: &'s Spec, live: &'s Live, stop: Stop) -> Self {
        let amount = |price: &Price| price.of(live.run.gate().ledger().samples() as f64);
        Self {
            report: live.run.report(stop),
            cost: spec.price.clone().map(|price| Cost { amount: amount(&price), price }),
            simulator: spec.problem.simulator.as_ref().map(Simulated::counts),
            standardised: spec.problem.is_standardised(),
            outlook: live.run.outlook(),
            log: live.run.view().certification,
        }
    }

    /// What a void certificate says.
    pub(super) fn void(&self) -> Option<String> {
        let certificate = self.report.certificate.as_ref()?;
        Some(certificate.doubt.as_deref().map_or_else(|| certificate.statement.clone(), void))
    }

    fn method(&self) -> String {
        let point = match self.report.by {
            None => return self.report.method.clone(),
            Some("recipe") => &self.report.method,
            Some(other) => other,
        };
        format!("{}, and auto beside it; the point is {point}'s", self.report.method)
    }

    /// The certificate in words.
    fn certificate(&self) -> String {
        let Some(log) = self.log else { return "none was asked for (--certify EPS)".into() };
        match &self.report.certificate {
            None if log.attempts == 0 => {
                "none: no samples were left for one, or the run never looked good enough to try".into()
            }
            None => format!("none for this point, after {} failed attempts at others", log.attempts),
            Some(Certified { statement, doubt: Some(_), .. }) => statement.clone(),
            Some(Certified { certificate, statement, attempts, .. }) => {
                let tried = if *attempts == 1 { String::new() } else { format!(", attempt {attempts}") };
                let (verdict, target) = (certificate.verdict.words(), certificate.target);
                let share = self
                    .report
                    .of_start
                    .map_or_else(String::new, |measured| format!(", {}", measured.words()));
                let target = if share.is_empty() { target.to_string() } else { real(target) };
                format!("{verdict}{tried} (target {target}{share}): {statement}")
            }
        }
    }

    /// The truth at the point as far as it is known, the promised measure first.
    fn truths(&self) -> Vec<(String, String)> {
        let promised = self.report.promise.as_ref().map(|promise| promise.guarantee.measure);
        let mut measures: Vec<Measure> = promised.into_iter().collect();
        measures.extend([Measure::Gap, Measure::GradientSquared].iter().filter(|m| Some(**m) != promised));
        let value = |measure: Measure| match (measure, &self.report.truth) {
            (Measure::Gap, Some(truth)) => truth.gap,
            (Measure::GradientSquared, Some(truth)) => truth.gradient_squared,
            (Measure::MoreauSquared { .. }, Some(truth)) => truth.moreau_squared,
            (Measure::GradientSquared, None) => self.report.exact_gradient().map(|gradient| gradient.powi(2)),
            (_, None) => None,
        };
        let row = |measure: Measure| Some((format!("{} there", measure.formula()), real(value(measure)?)));
        measures.into_iter().filter_map(row).collect()
    }

    fn samples(&self) -> String {
        let drawn = self.report.ledger.steps().samples;
        let used = grouped(drawn);
        match self.report.promise.as_ref().and_then(|promise| promise.predicted) {
            Some(cost) if cost.exact == Some(drawn) => format!("{used} (exactly as predicted)"),
            Some(cost) if cost.exact.is_some() => format!("{used} (predicted {:.4e})", cost.samples),
            Some(cost) => format!("{used} (worst case: {:.4e} in expectation)", cost.samples),
            None => used,
        }
    }

    fn point(&self) -> String {
        let x = self.report.point.as_deref().unwrap_or_default();
        let shown: Vec<_> = x.iter().take(SHOWN).map(|x| real(*x)).collect();
        let rest = if x.len() > SHOWN { format!(", .. ({} coordinates)", x.len()) } else { String::new() };
        let about = self.report.certificate.as_ref().and_then(|certified| certified.about);
        let about = match (self.report.drawn_at, &self.report.last, about) {
            (Some(step), Some(last), _) => format!(": {}", self.drawn_point(step, last)),
            (_, _, Some(about)) => format!(": {}", about.words()),
            _ => String::new(),
        };
        let weights = if self.standardised { ", weights of standardised columns" } else { "" };
        match &self.report.point_file {
            Some(file) => format!("in {file}{weights}{about}"),
            None => format!("({}{rest}){weights}{about}", shown.join(", ")),
        }
    }
}

impl Outcome<'_> {
    /// Why the point is not the last iterate, and how far it is from there.
    fn drawn_point(&self, step: u64, last: &[f64]) -> String {
        let far = |point: &[f64]| point.iter().zip(last).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt();
        let away = |point: &[f64]| format!("; the last one is {} away", real(far(point)));
        let far = self.report.point.as_deref().map_or(String::new(), away);
        let (step, steps) = (grouped(step), grouped(self.report.steps));
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
            row("problem", self.report.problem.clone()),
            row("seed", self.report.seed.to_string()),
            row("stopped", self.report.stop.meaning.clone()),
            row("certificate", self.certificate()),
            row("point", self.point()),
        ];
        if let Some(promise) = &self.report.promise {
            rows.insert(4, row("promise", promise.statement.clone()));
        }
        rows.extend(self.truths());
        rows.push(row("last distance from start", real(self.report.distance)));
        rows.push(row("samples", self.samples()));
        if self.log.is_some() {
            let ledger = &self.report.ledger;
            rows.push(row("samples of certificates", grouped(ledger.certificate_samples())));
            rows.push(row("samples in all", grouped(ledger.samples())));
            let price = self.cost.as_ref().map(|cost| &cost.price);
            rows.push(row("forecast", forecast::words(self.outlook, &self.report.method, price)));
        }
        let checked = self.report.ledger.of(pasta_opt::draws::Role::Check).samples;
        if checked > 0 {
            rows.push(row("samples of the check", grouped(checked)));
        }
        if let Some(Cost { price, .. }) = &self.cost {
            let samples = self.report.ledger.samples();
            let cost = forecast::money(price, samples as f64);
            rows.push(row("cost", format!("{cost}, {} samples at {price}", grouped(samples))));
        }
        rows.push(row("evaluations", grouped(self.report.ledger.evaluations())));
        if self.report.ledger.not_finite() > 0 {
            rows.push(row("answers not finite", grouped(self.report.ledger.not_finite())));
        }
        if let Some(counts) = self.simulator {
            rows.push(row("simulator", repeated(counts)));
        }
        rows.push(row("steps", grouped(self.report.steps)));
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
