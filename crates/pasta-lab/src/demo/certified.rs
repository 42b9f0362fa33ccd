//! The certificate: what came out of the runs that may stop on one, beside the truth.

use pasta_opt::forecast::Forecast;
use pasta_opt::prelude::*;
use serde::Serialize;

use super::Setting;
use super::runs::{Ending, Round};
use pasta_report::{Spread, given, significant};

/// What the certificates came to.
#[derive(Serialize)]
pub(super) struct Certified {
    pub(super) target: f64,
    /// The probability with which a run's certificate may be wrong.
    pub(super) delta: f64,
    pub(super) runs: usize,
    /// Runs that ended with a certificate.
    #[serde(rename = "certified_runs")]
    pub(super) succeeded: usize,
    /// Certificates whose bound is below the true gradient.
    #[serde(rename = "false_certificates")]
    pub(super) mistaken: usize,
    /// Of the certified runs, certificates included.
    pub(super) samples: Option<Spread>,
    /// None if there was no forecast.
    pub(super) against_forecast: Option<AgainstForecast>,
    /// The first certificate.
    pub(super) first: Option<Example>,
}

/// How many certified runs took fewer samples than the forecast's range, as many, and more.
#[derive(Serialize)]
pub(super) struct AgainstForecast {
    below: usize,
    within: usize,
    above: usize,
}

/// One certificate, and the truth.
#[derive(Serialize)]
pub(super) struct Example {
    /// Counted from 1.
    run: usize,
    pub(super) statement: String,
    bound: Option<f64>,
    /// |grad f|, by formula.
    gradient: f64,
    samples: f64,
}

impl Certified {
    pub(super) fn new(rounds: &[Round], forecast: Option<Forecast>) -> Self {
        let StopRule { target, delta, .. } = Setting::stop_rule();
        let ends = rounds.iter().map(|round| &round.certified);
        let certified: Vec<(usize, &Ending, Certificate)> =
            ends.enumerate().filter_map(|(i, end)| Some((i + 1, end, end.certificate?))).collect();
        let samples: Vec<f64> = certified.iter().map(|(_, end, _)| end.samples as f64).collect();
        Self {
            target,
            delta,
            runs: rounds.len(),
            succeeded: certified.len(),
            mistaken: certified
                .iter()
                .filter(|found| found.2.bound.is_some_and(|bound| found.1.gradient > bound))
                .count(),
            against_forecast: forecast.map(|range| AgainstForecast::new(range, &samples)),
            samples: Spread::of(samples),
            first: certified.first().map(|&(run, end, certificate)| Example {
                run,
                statement: certificate.statement(),
                bound: certificate.bound,
                gradient: end.gradient,
                samples: end.samples as f64,
            }),
        }
    }

    /// How it was done, and how many succeeded.
    pub(super) fn sentence(&self) -> String {
        let Self { target, runs, succeeded, first, .. } = self;
        let first = first.as_ref().map_or(String::new(), |example| format!(" Run {} says:", example.run));
        format!(
            "The same {runs} runs of PASTA, but each may stop once fresh samples certify |grad f| <= {}. {succeeded} of \
             {runs} did.{first}",
            given(*target)
        )
    }

    /// The first certificate beside the truth, and all of them.
    pub(super) fn truth(&self) -> String {
        let Self { succeeded, mistaken, first, .. } = self;
        let there = first.as_ref().map_or(String::new(), |example| {
            format!("By formula |grad f| is {} there. ", significant(example.gradient, 3))
        });
        let most = given(100.0 * self.delta);
        format!(
            "{there}{mistaken} of {succeeded} certificates were false; at most {most} % are promised, on average."
        )
    }
}

impl AgainstForecast {
    fn new(range: Forecast, samples: &[f64]) -> Self {
        let below = samples.iter().filter(|n| **n < range.low).count();
        let above = samples.iter().filter(|n| **n > range.high).count();
        Self { below, within: samples.len() - below - above, above }
    }

    pub(super) fn words(&self) -> String {
        format!("{} in that range, {} above, {} below", self.within, self.above, self.below)
    }

    /// How good the forecast was.
    pub(super) fn sentence(&self) -> String {
        let Self { below, within, above } = self;
        format!(
            "{within} of {} runs were in the forecast's range, {above} took more, {below} \
             took less.",
            below + within + above
        )
    }
}
