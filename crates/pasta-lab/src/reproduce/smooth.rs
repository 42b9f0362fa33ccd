//! Smooth: eps^-6, on a family that moves with eps, and why one function is not enough.

use std::sync::Arc;

use pasta_opt::bounds::{CHAIN_SMOOTHNESS, LowerSmooth};
use pasta_opt::hard::HardInstance;
use pasta_opt::prelude::*;
use pasta_opt::problems::{Ramp, SineBowl};
use pasta_opt::recipe::Constant;

use super::finding::{Claim, Finding, Measured, samples_chart};
use super::fit::grid;
use super::rate::{Counted, Rate};
use super::runs::{Posed, Samples, Until, gate, samples};
use super::{Setting, effort};
use pasta_report::Tone;

pub(super) const CLAIM: Claim = Claim {
    name: "smooth",
    title: "Smooth functions cost eps^-6",
    statement: "With batches that grow with the distance, a smooth function is brought to |grad f| <= eps with of the \
                order of eps^-6 samples (Theorem 3), and the hard instance of Theorem 1 does cost that much.",
    measure,
};

fn measure(setting: &Setting) -> Measured<Finding> {
    let hard = hard_instance(setting)?;
    let [to_hit, whole] = ramp(setting)?;
    let fixed = one_function(setting)?;
    let mut text = vec![
        "The hard instance: L = Delta = B = 1, b = 0, sigma^2 = eps^2/2, targets at which the length T of its chain is \
         a whole number before it is rounded down. Samples are counted until |grad F| <= eps for the first time."
            .into(),
        "The ramp: f falls with slope 2 eps over a distance Delta/(2 eps), then flattens out (L = 1, Delta = 1, B = 3, \
         b = .1). A method must walk the whole way, and at its end a step needs of the order of eps^-4 samples. The targets \
         above .1 are drawn but not fitted: there the walk is a few steps long, and lower powers of 1/eps weigh as \
         much as the sixth."
            .into(),
        "One fixed function, x^2/2 + sin^2 x from 1.2 with B = 9 and b = 1, costs eps^-4 only: its minimiser \
         stays where it is, so a step never needs more than of the order of eps^-2 samples, and there are of the \
         order of eps^-2 steps. The exponent 6 is that of the worst function for each eps, so it takes a family that \
         moves with eps to see it."
            .into(),
    ];
    let rates = [&hard, &to_hit, &whole, &fixed];
    text.extend(rates.map(Rate::sentence));
    Ok(Finding {
        text,
        checks: rates.map(Rate::check).to_vec(),
        figures: vec![
            samples_chart(
                "smooth-hard",
                "The hard instance",
                "Samples until |grad F| <= eps for the first time. Points: means over the seeds. Line: the same run with \
                 exact gradients.",
                [vec![hard.guide(-6.0)], hard.series(Tone::Blue)].concat(),
            ),
            samples_chart(
                "smooth-ramp",
                "A family that moves with eps, and one function that does not",
                "Samples of the recipe of Theorem 3 on the ramp, whose length grows as eps falls, and on one function that \
                 stays as it is. Points: means over the seeds. Lines: with exact gradients.",
                [
                    vec![whole.guide(-6.0)],
                    to_hit.series(Tone::Blue),
                    whole.series(Tone::Red),
                    fixed.series(Tone::Green),
                ]
                .concat(),
            ),
        ],
        points: rates.into_iter().flat_map(Rate::points).collect(),
        tables: Vec::new(),
    })
}

/// Numbers in a sentence.
pub(super) fn listed(numbers: &[u32]) -> String {
    numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

/// The target at which L Delta/(768 l1 eps^2) is T, with L = Delta = 1, and a hair less so that it does not round to
/// T - 1.
pub(super) fn target_of_chain(length: u32) -> f64 {
    (1.0 - 1e-9) / (768.0 * CHAIN_SMOOTHNESS as f64 * f64::from(length)).sqrt()
}

/// The instance with L = Delta = 1 and b = 0.
pub(super) fn instance(growth: f64, target: f64) -> Measured<Arc<HardInstance>> {
    let limit = LowerSmooth { smoothness: 1.0, gap: 1.0, growth, floor: 0.0, target };
    Ok(Arc::new(HardInstance::smooth(limit)?))
}

/// Theorem 3's plan for it, sigma^2 = eps^2/2.
pub(super) fn recipe(growth: f64, target: f64) -> Measured<Plan> {
    Ok(Smooth { smoothness: 1.0, gap: 1.0, growth, floor: 0.0, variance: None, target }.plan()?)
}

/// Samples of the recipe on the instance until |grad F| <= eps; without a seed also without noise.
pub(super) fn recipe_on_instance(growth: f64, target: f64, seed: Option<u64>) -> Measured<f64> {
    let (hard, plan) = (instance(growth, target)?, recipe(growth, target)?);
    let gate = gate(&hard, seed);
    let walk = Pasta::start(&gate, plan.schedule, &vec![0.0; gate.about().dim])?;
    Ok(samples(Run::of(gate, walk), &*hard, target, Until::Hit)?.to_hit)
}

fn hard_instance(setting: &Setting) -> Measured<Rate> {
    let chains: &[u32] = effort(setting, &[2, 4, 8, 16, 32], &[2, 4, 8, 16, 32, 64]);
    let further = effort(setting, [32, 64], [64, 128]).map(target_of_chain);
    let targets: Vec<f64> = chains.iter().map(|&length| target_of_chain(length)).collect();
    let seeds = setting.seeds(20, 32);
    let place = format!("chains of {} coordinates, {} seeds", listed(chains), seeds.len());
    let count = |target, seed| recipe_on_instance(1.0, target, seed);
    let counted = Counted::new(targets, further, seeds, count)?;
    Ok(counted.rate(("Hard instance", place), -6.0, f64::INFINITY, |samples| *samples))
}

/// Above this target the walk along the ramp is of a few steps only, and lower powers of 1/eps weigh as much as the
/// sixth.
pub(super) const FITTED_FROM: f64 = 0.1;

/// The recipe of Theorem 3, with this L, on an objective for each target.
fn family<O: Objective + 'static>(
    setting: &Setting,
    smoothness: f64,
    objective: impl Fn(f64) -> O + Sync,
    noise: [f64; 2],
    start: f64,
) -> Measured<Counted<Samples>> {
    let targets = effort(setting, grid(0.3, 0.00625, 12), grid(0.3, 0.003, 14));
    Counted::and_beyond(targets, setting.seeds(24, 64), |target, seed| {
        let chosen = [(Constant::Smoothness, smoothness), (Constant::Target, target)];
        Posed::new("smooth", objective(target), noise, &[start], &chosen)?.samples(target, seed)
    })
}

/// Until the first hit, and in all.
fn ramp(setting: &Setting) -> Measured<[Rate; 2]> {
    let counted = family(setting, 1.0, |target| Ramp::family(1.0, 1.0, target), [3.0, 0.1], 0.0)?;
    let place = format!("L = 1, Delta = 1, B = 3, b = .1, {}", counted.range(FITTED_FROM));
    let rate = |name, what| counted.rate((name, place.clone()), -6.0, FITTED_FROM, what);
    Ok([rate("Ramp, to the first hit", |s| s.to_hit), rate("Ramp, whole recipe", |s| s.in_all)])
}

fn one_function(setting: &Setting) -> Measured<Rate> {
    let counted = family(setting, 3.0, |_| SineBowl { dimension: 1 }, [9.0, 1.0], 1.2)?;
    let place = format!("L = 3, B = 9, b = 1, {}", counted.range(FITTED_FROM));
    Ok(counted.rate(("One function, whole recipe", place), -4.0, FITTED_FROM, |s| s.in_all))
}
