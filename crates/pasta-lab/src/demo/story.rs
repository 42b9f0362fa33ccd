//! The page: the noise, the cost, SGD, PASTA, the certificate.

use pasta_opt::calibrate::Calibration;
use pasta_opt::prelude::*;

use super::charts::{batch_chart, certificate_chart, progress_chart};
use super::findings::{FOOTNOTE, Findings};
use super::runs::Round;
use super::{NOISE, START, Setting, noise};
use pasta_report::{Page, Part, Section, given, significant};

pub(super) fn page(
    setting: &Setting,
    findings: &Findings,
    calibration: &Calibration,
    rounds: &[Round],
) -> Page {
    let predicted = &findings.predicted;
    let sections = [
        ("1. The noise, diagnosed", diagnosis(setting, findings, calibration)),
        ("2. The cost, predicted", vec![Part::Text(predicted.sources()), Part::Table(predicted.table())]),
        (
            "3. SGD fails",
            vec![Part::Text(why_sgd_fails(setting)), Part::Figure(progress_chart(setting, rounds))],
        ),
        (
            "4. PASTA arrives",
            vec![
                Part::Text(what_batches_do(setting)),
                Part::Figure(batch_chart(setting, rounds)),
                Part::Table(findings.comparison()),
                Part::Text(format!("{FOOTNOTE} {}", fairness(setting))),
            ],
        ),
        ("5. The certificate", certificate(findings, rounds)),
        (
            "Do it again",
            vec![
                Part::Text("The same seed gives this page again, byte for byte.".into()),
                Part::Command(format!("pasta-lab demo --seed {}", findings.seed)),
            ],
        ),
    ];
    Page {
        title: "When the noise grows with the distance".into(),
        lead: findings.sentences(),
        sections: sections.map(|(heading, parts)| Section::new(heading, parts)).to_vec(),
    }
}

fn diagnosis(setting: &Setting, findings: &Findings, calibration: &Calibration) -> Vec<Part> {
    vec![
        Part::Text(format!("{} {}", findings.problem(), findings.diagnosed.verdict)),
        Part::Figure(noise::chart(setting, calibration)),
        Part::Table(findings.diagnosed.table()),
        Part::Text(
            "Estimates serve plans, not promises: L shows how little the start may know. The runs below use the true \
             constants."
                .into(),
        ),
    ]
}

fn certificate(findings: &Findings, rounds: &[Round]) -> Vec<Part> {
    let certified = &findings.certified;
    let mut parts = vec![Part::Text(certified.sentence())];
    parts.extend(certified.first.as_ref().map(|example| Part::Quote(example.statement.clone())));
    parts.push(Part::Text(format!(
        "{} All rests on \"provided\": had B or b been declared too small, a certificate would prove nothing.",
        certified.truth()
    )));
    parts.push(Part::Figure(certificate_chart(findings, rounds)));
    parts.push(Part::Table(findings.check()));
    parts.extend(certified.against_forecast.as_ref().map(|counts| Part::Text(counts.sentence())));
    parts
}

fn why_sgd_fails(setting: &Setting) -> String {
    // N(x*)/N(x0) without its rounding.
    let ratio = |distance: f64| (NOISE.growth * distance / NOISE.floor).powi(2) + 1.0;
    let distance = setting.oracle.objective().distance_to_minimiser(&[START]);
    let ratio = distance.map_or_else(|| "many".into(), |distance| significant(ratio(distance), 3));
    format!(
        "A sample at the minimum has {ratio} times the variance of one at the start. A noisy sample throws the iterate \
         out; there the next one is noisier still. With a long step this feedback wins. A step short enough for the \
         noise at the start does not explode, but keeps shaking, however long it goes on."
    )
}

fn what_batches_do(setting: &Setting) -> String {
    let sigma2 = match setting.pasta.schedule.large {
        BatchRule::Drift { target_variance, .. } => format!("sigma^2 = {}", given(target_variance)),
        BatchRule::Fixed(_) => "sigma^2".into(),
    };
    format!(
        "PASTA keeps the long step and lets the batch answer the distance: before each step it averages as many \
         samples as bring the variance down to {sigma2}, few near the start, many far away."
    )
}

/// SGD is not hopeless, and this is not hidden.
fn fairness(setting: &Setting) -> String {
    let Plan { schedule, cost, .. } = &setting.horizon;
    let [eta, steps] = [schedule.eta.at(0), cost.samples].map(|value| significant(value, 2));
    format!("SGD tuned to its horizon, eta = {eta}, has the same promise, for {steps} steps.")
}
