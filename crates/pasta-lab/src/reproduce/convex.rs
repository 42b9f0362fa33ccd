//! Convex: eps^-2, smooth or not.

use pasta_opt::problems::{Absolute, SoftAbsolute};
use pasta_opt::recipe::Constant::{Target, Variance};

use super::finding::{Claim, Finding, Measured, samples_chart};
use super::fit::grid;
use super::rate::{Counted, Rate};
use super::runs::Posed;
use super::{Setting, effort};
use pasta_report::Tone;

pub(super) const CLAIM: Claim = Claim {
    name: "convex",
    title: "Convex functions cost eps^-2",
    statement: "With batches that grow with the distance, a convex function is brought to f - f* <= eps with of the order \
                of eps^-2 samples, whether it is smooth (Theorem 4) or has kinks (Theorem 5).",
    measure,
};

fn measure(setting: &Setting) -> Measured<Finding> {
    let chosen = |target| [(Target, target), (Variance, 1.0)];
    let smooth = "Theorem 4, L = 1, R^2 = 4, B = 2, b = sigma^2 = 1";
    let smooth = rate(setting, "sqrt(1 + x^2)", smooth, |target| {
        Posed::new("smooth-convex", SoftAbsolute { dimension: 1 }, [2.0, 1.0], &[2.0], &chosen(target))
    })?;
    let kinked = "Theorem 5, G = 1, R^2 = 4, B = b = sigma^2 = 1";
    let kinked = rate(setting, "|x|", kinked, |target| {
        Posed::new("lipschitz-convex", Absolute { dimension: 1 }, [1.0, 1.0], &[2.0], &chosen(target))
    })?;
    let rates = [&smooth, &kinked];
    Ok(Finding {
        text: rates.map(Rate::sentence).to_vec(),
        checks: rates.map(Rate::check).to_vec(),
        figures: vec![samples_chart(
            "convex-samples",
            "Two convex functions",
            "Samples of the whole recipe. Points: means over the seeds. Lines: the same runs with exact gradients.",
            [vec![smooth.guide(-2.0)], smooth.series(Tone::Blue), kinked.series(Tone::Red)].concat(),
        )],
        points: rates.into_iter().flat_map(Rate::points).collect(),
        tables: Vec::new(),
    })
}

fn rate(
    setting: &Setting,
    name: &'static str,
    constants: &str,
    pose: impl Fn(f64) -> Measured<Posed> + Sync,
) -> Measured<Rate> {
    let targets = effort(setting, grid(0.4, 0.0125, 6), grid(0.4, 0.00625, 7));
    // The whole run is counted; when it first meets the target does not matter here.
    let count = |target: f64, seed| Ok(pose(target)?.samples(f64::INFINITY, seed)?.in_all);
    let counted = Counted::and_beyond(targets, setting.seeds(24, 64), count)?;
    let place = format!("{constants}, {}", counted.range(f64::INFINITY));
    Ok(counted.rate((name, place), -2.0, f64::INFINITY, |samples| *samples))
}
