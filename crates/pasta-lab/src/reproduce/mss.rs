//! Mean-square smooth: eps^-4 by PAGE.

use std::sync::Arc;

use pasta_opt::prelude::*;

use super::finding::{Check, Claim, Finding, Measured, Point, Predicted};
use super::fit::grid;
use super::rate::Rate;
use super::runs::{Kept, estimate, gate, noisy, over_seeds, promise};
use super::smooth::FITTED_FROM;
use super::{Setting, effort};
use pasta_report::{Axis, Chart, Tone};

pub(super) const CLAIM: Claim = Claim {
    name: "mss",
    title: "Mean-square smooth oracles cost eps^-4 with PAGE",
    statement: "If the stochastic gradient itself is smooth in mean square, PAGE brings |grad f| to eps with of the order \
                of eps^-4 samples (Theorem 7), two powers fewer than without it.",
    measure,
};

/// The ramp for one target with L = 1, Delta = 1, B = 3, b = .1.
fn posed(target: f64) -> Measured<(Arc<Noisy>, Plan)> {
    let ramp = Ramp::family(1.0, 1.0, target);
    let (growth, floor) = (3.0, 0.1);
    let gap = ramp.gap(&[0.0]);
    // The noise s(x) u with a shared u is mean-square smooth with Lbar^2 = L^2 + B^2.
    let recipe = MeanSquareSmooth { ms_smoothness: 1f64.hypot(growth), gap, growth, floor, target };
    Ok((noisy(ramp, growth, floor, &[0.0])?, recipe.plan()?))
}

/// The expected samples along the path of exact gradients: only the coin is averaged over.
fn noiseless(target: f64) -> Measured<f64> {
    let (oracle, plan) = posed(target)?;
    let Estimator::Page { refresh, small } = plan.schedule.estimator else {
        return Err("Theorem 7 plans PAGE".into());
    };
    // Large batches at every step: their sizes are what the coin decides about.
    let schedule = Schedule { estimator: Estimator::Minibatch, ..plan.schedule };
    let mut gate = gate(&oracle, None);
    let mut walk = Pasta::start(&gate, schedule, oracle.start())?;
    let mut expected = 0.0;
    while let Advance::Step(record) = walk.advance(&mut gate)? {
        let p = if record.t == 0 { 1.0 } else { refresh.at(record.t) };
        expected += p * record.n as f64 + (1.0 - p) * small as f64;
    }
    Ok(expected)
}

fn measure(setting: &Setting) -> Measured<Finding> {
    let targets = effort(setting, grid(0.3, 0.0125, 8), grid(0.3, 0.00625, 10));
    let seeds = setting.seeds(48, 64);
    let smallest = targets.iter().copied().fold(f64::INFINITY, f64::min);
    let runs: Vec<Vec<Kept>> = targets
        .iter()
        .map(|&target| {
            let (oracle, plan) = posed(target)?;
            over_seeds(&seeds, |seed| promise(&oracle, &plan, seed))
        })
        .collect::<Measured<_>>()?;
    let range = format!("eps {} to {smallest}, {} seeds", targets[0], seeds.len());
    let rate = Rate {
        name: "Ramp, PAGE",
        setting: format!(
            "L = 1, Delta = 1, B = 3, b = .1, Lbar^2 = L^2 + B^2, eps {FITTED_FROM} to {smallest}, {} seeds",
            seeds.len()
        ),
        exponent: -4.0,
        samples: runs.iter().map(|row| row.iter().map(|kept| kept.samples).collect()).collect(),
        noiseless: targets.iter().map(|&target| noiseless(target)).collect::<Measured<_>>()?,
        beyond: [smallest / 2.0, smallest / 4.0]
            .into_iter()
            .map(|target| Ok((target, noiseless(target)?)))
            .collect::<Measured<_>>()?,
        targets: targets.clone(),
        fitted_from: FITTED_FROM,
        seeds: seeds.clone(),
    };
    let worst = runs
        .iter()
        .zip(&targets)
        .map(|(row, target)| estimate(row, |kept| kept.measure).over(target * target))
        .max_by(|a, b| a.high().total_cmp(&b.high()))
        .ok_or("there are no targets")?;
    let kept = Check::within(
        "Ramp, PAGE: largest mean |grad f|^2 over all targets, in units of eps^2".into(),
        range,
        worst,
        Predicted::AtMost(1.0),
    );
    let mut points = rate.points();
    for (row, &at) in runs.iter().zip(&targets) {
        points.extend(row.iter().zip(&seeds).map(|(kept, &seed)| {
            Point::new(rate.name, ("eps", at), Some(seed), ("mean |grad f|^2", kept.measure))
        }));
    }
    Ok(Finding {
        text: vec![
            "The ramp of the claim before, with the sample shared between the two points of a difference. Without \
             noise the path is that of gradient descent, and the expected samples are averaged over PAGE's coin."
                .into(),
            rate.sentence(),
        ],
        checks: vec![rate.check(), kept],
        figures: vec![Chart {
            id: "mss-ramp",
            title: "PAGE on the ramp".into(),
            caption: "Samples of the whole recipe of Theorem 7. Points: means over the seeds. Line: along the path of \
                      exact gradients."
                .into(),
            x: Axis::log("target eps"),
            y: Axis::log("samples"),
            series: [vec![rate.guide(-4.0)], rate.series(Tone::Blue)].concat(),
            references: Vec::new(),
        }],
        points,
        tables: Vec::new(),
    })
}
