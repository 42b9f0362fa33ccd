//! Mean-square smooth: eps^-4 by PAGE.

use pasta_opt::prelude::*;
use pasta_opt::problems::Ramp;
use pasta_opt::recipe::Constant;

use super::finding::{Check, Claim, Finding, Measured, Point, Predicted, samples_chart};
use super::fit::{Estimate, grid};
use super::rate::Counted;
use super::runs::{Kept, Posed, estimate, gate};
use super::smooth::FITTED_FROM;
use super::{Setting, effort};
use pasta_report::Tone;

pub(super) const CLAIM: Claim = Claim {
    name: "mss",
    title: "Mean-square smooth oracles cost eps^-4 with PAGE",
    statement: "If the stochastic gradient itself is smooth in mean square, PAGE brings |grad f| to eps with of the order \
                of eps^-4 samples (Theorem 7), two powers fewer than without it.",
    measure,
};

/// The ramp for one target with L = 1, Delta = 1, B = 3, b = .1. The noise s(x) u with a shared u is mean-square smooth
/// with Lbar^2 = L^2 + B^2.
fn posed(target: f64) -> Measured<Posed> {
    let ramp = Ramp::family(1.0, 1.0, target);
    let chosen = [(Constant::MsSmoothness, 1f64.hypot(3.0)), (Constant::Target, target)];
    Posed::new("mean-square-smooth", ramp, [3.0, 0.1], &[0.0], &chosen)
}

/// The expected samples along the path of exact gradients: only the coin is averaged over.
fn noiseless(target: f64) -> Measured<f64> {
    let Posed { oracle, plan } = posed(target)?;
    let Estimator::Page { refresh, small } = plan.schedule.estimator else {
        return Err("Theorem 7 plans PAGE".into());
    };
    // Large batches at every step: their sizes are what the coin decides about.
    let schedule = Schedule { estimator: Estimator::Minibatch, ..plan.schedule };
    let gate = gate(&oracle, None);
    let walk = Pasta::start(&gate, schedule, oracle.start())?;
    let mut run = Run::of(gate, walk);
    let mut expected = 0.0;
    while let Event::Step(record) = run.next()? {
        let p = if record.t == 0 { 1.0 } else { refresh.at(record.t) };
        expected += p * record.n as f64 + (1.0 - p) * small as f64;
    }
    Ok(expected)
}

fn measure(setting: &Setting) -> Measured<Finding> {
    let targets = effort(setting, grid(0.3, 0.0125, 8), grid(0.3, 0.00625, 10));
    let counted = Counted::and_beyond(targets, setting.seeds(48, 64), |target, seed| match seed {
        Some(seed) => posed(target)?.run(seed),
        None => Ok(Kept { measure: f64::NAN, samples: noiseless(target)? }),
    })?;
    let place =
        format!("L = 1, Delta = 1, B = 3, b = .1, Lbar^2 = L^2 + B^2, {}", counted.range(FITTED_FROM));
    let rate = counted.rate(("Ramp, PAGE", place), -4.0, FITTED_FROM, |kept| kept.samples);
    let rows = || counted.runs.iter().zip(&counted.targets);
    let kept = Check::within(
        "Ramp, PAGE: largest mean |grad f|^2 over all targets, in units of eps^2",
        counted.range(f64::INFINITY),
        Estimate::highest(rows().map(|(row, eps)| estimate(row, |kept| kept.measure).over(eps * eps))),
        Predicted::AtMost(1.0),
    );
    let mut points = rate.points();
    for (row, &at) in rows() {
        let measured: (_, fn(&Kept) -> f64) = ("mean |grad f|^2", |kept| kept.measure);
        points.extend(Point::of_runs(rate.name, ("eps", at), &counted.seeds, row, &[measured]));
    }
    Ok(Finding {
        text: vec![
            "The ramp of the claim before, with the sample shared between the two points of a difference. Without \
             noise the path is that of gradient descent, and the expected samples are averaged over PAGE's coin."
                .into(),
            rate.sentence(),
        ],
        checks: vec![rate.check(), kept],
        figures: vec![samples_chart(
            "mss-ramp",
            "PAGE on the ramp",
            "Samples of the whole recipe of Theorem 7. Points: means over the seeds. Line: along the path of exact gradients.",
            [vec![rate.guide(-4.0)], rate.series(Tone::Blue)].concat(),
        )],
        points,
        tables: Vec::new(),
    })
}
