//! What a run came to: an object for machines, which is also result.json, and a table for people.

use pasta_opt::forecast::Price;
use pasta_opt::prelude::*;
use pasta_opt::run::{self, void};
use pasta_pipe::Counts;
use serde::Serialize;

use super::{Live, Style};
use crate::spec::{Simulated, Spec};
use pasta_report::answer::{Besides, Words};
use pasta_report::console::{Report, Tone};
use pasta_report::{Table, grouped};

/// The end of a run: the library's report, with what the program knows besides. `docs/formats.md` has the keys.
#[derive(Serialize)]
pub(super) struct Outcome {
    #[serde(flatten)]
    pub(super) report: run::Report,
    cost: Option<Cost>,
    /// What the workers did, since this process started them.
    simulator: Option<Counts>,
    /// Whether the point is weights of standardised columns.
    #[serde(skip)]
    standardised: bool,
    /// True if all is told, and not only the answer.
    #[serde(skip)]
    with_details: bool,
}

/// What all samples cost, where the price of one is known.
#[derive(Serialize)]
struct Cost {
    price: Price,
    /// The price times all samples.
    amount: f64,
}

impl Outcome {
    pub(super) fn new(spec: &Spec, live: &Live, stop: Stop, style: &Style) -> Self {
        let amount = |price: &Price| price.of(live.run.gate().ledger().samples() as f64);
        let mut report = live.run.report(stop);
        report.rests_on.files = spec.problem.simulator.as_ref().map_or_else(Vec::new, Simulated::files);
        Self {
            report,
            cost: spec.price.clone().map(|price| Cost { amount: amount(&price), price }),
            simulator: spec.problem.simulator.as_ref().map(Simulated::counts),
            standardised: spec.problem.is_standardised(),
            with_details: style.details,
        }
    }

    /// What a void certificate says.
    pub(super) fn void(&self) -> Option<String> {
        let certificate = self.report.certificate.as_ref()?;
        Some(certificate.doubt.as_deref().map_or_else(|| certificate.statement.clone(), void))
    }
}

impl Report for Outcome {
    fn text(&self) -> String {
        let price = self.cost.as_ref().map(|cost| &cost.price);
        let besides = Besides { price, is_standardised: self.standardised };
        let Words { answer: mut rows, details } = Words::of(&self.report, besides);
        if self.with_details {
            rows.extend(details);
            rows.extend(self.simulator.map(|counts| ("simulator".into(), repeated(counts))));
        }
        Table::labelled(rows).text()
    }

    fn tone(&self) -> Tone {
        Words::tone(&self.report)
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
