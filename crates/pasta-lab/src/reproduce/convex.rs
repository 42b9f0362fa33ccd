//! Convex: eps^-2, smooth or not.

use std::sync::Arc;

use pasta_opt::prelude::*;

use super::finding::{Claim, Finding, Measured};
use super::fit::grid;
use super::rate::Rate;
use super::runs::{Samples, Until, gate, noisy, samples};
use super::{Setting, effort};
use pasta_report::{Axis, Chart, Tone};

pub(super) const CLAIM: Claim = Claim {
    name: "convex",
    title: "Convex functions cost eps^-2",
    statement: "With batches that grow with the distance, a convex function is brought to f - f* <= eps with of the order \
                of eps^-2 samples, whether it is smooth (Theorem 4) or has kinks (Theorem 5).",
    measure,
};

fn measure(setting: &Setting) -> Measured<Finding> {
    let smooth =
        rate(setting, "sqrt(1 + x^2)", "Theorem 4, L = 1, R^2 = 4, B = 2, b = sigma^2 = 1", |target| {
            let recipe = SmoothConvex {
                smoothness: 1.0,
                distance: 2.0,
                growth: 2.0,
                floor: 1.0,
                variance: Some(1.0),
                target,
            };
            Ok((noisy(SoftAbsolute { dimension: 1 }, 2.0, 1.0, &[2.0])?, recipe.plan()?))
        })?;
    let kinked = rate(setting, "|x|", "Theorem 5, G = 1, R^2 = 4, B = b = sigma^2 = 1", |target| {
        let recipe = LipschitzConvex {
            lipschitz: 1.0,
            distance: 2.0,
            growth: 1.0,
            floor: 1.0,
            variance: Some(1.0),
            target,
        };
        Ok((noisy(Absolute { dimension: 1 }, 1.0, 1.0, &[2.0])?, recipe.plan()?))
    })?;
    let rates = [&smooth, &kinked];
    Ok(Finding {
        text: rates.map(Rate::sentence).to_vec(),
        checks: rates.map(Rate::check).to_vec(),
        figures: vec![Chart {
            id: "convex-samples",
            title: "Two convex functions".into(),
            caption:
                "Samples of the whole recipe. Points: means over the seeds. Lines: the same runs with exact \
                      gradients."
                    .into(),
            x: Axis::log("target eps"),
            y: Axis::log("samples"),
            series: [vec![smooth.guide(-2.0)], smooth.series(Tone::Blue), kinked.series(Tone::Red)].concat(),
            references: Vec::new(),
        }],
        points: rates.into_iter().flat_map(Rate::points).collect(),
        tables: Vec::new(),
    })
}

fn rate(
    setting: &Setting,
    name: &'static str,
    constants: &str,
    pose: impl Fn(f64) -> Measured<(Arc<Noisy>, Plan)> + Sync,
) -> Measured<Rate> {
    let targets = effort(setting, grid(0.4, 0.0125, 6), grid(0.4, 0.00625, 7));
    let seeds = setting.seeds(24, 64);
    let smallest = targets.iter().copied().fold(f64::INFINITY, f64::min);
    let count = |target: f64, seed: Option<u64>| -> Measured<f64> {
        let (oracle, plan) = pose(target)?;
        let mut gate = gate(&oracle, seed);
        let walk = Pasta::start(&gate, plan.schedule, oracle.start())?;
        // The whole run is counted; when it first meets the target does not matter here.
        let Samples { in_all, .. } = samples(&mut gate, walk, oracle.objective(), f64::INFINITY, Until::End)?;
        Ok(in_all)
    };
    let place = format!("{constants}, eps {} to {smallest}, {} seeds", targets[0], seeds.len());
    Rate::counted((name, place), -2.0, targets, &[smallest / 2.0, smallest / 4.0], seeds, count)
}
