//! The lower bounds: no zero-respecting method is faster, and what is measured lies between the two bounds.

use std::sync::Arc;

use pasta_opt::hard::HardInstance;
use pasta_opt::prelude::*;

use super::finding::Predicted::{AtLeast, AtMost, Is};
use super::finding::{Check, Claim, Finding, Measured, Point, samples_chart};
use super::fit::Estimate;
use super::rate::Rate;
use super::runs::{Until, gate, over_seeds, samples};
use super::smooth::{instance, listed, recipe, recipe_on_instance, target_of_chain};
use super::{Setting, effort};
use pasta_report::{Chart, Series, Shape, Tone, significant};

pub(super) const CLAIM: Claim = Claim {
    name: "lower",
    title: "No zero-respecting method beats the lower bound",
    statement: "On the hard instance of Theorem 1 no zero-respecting method reaches |grad F| <= eps before \
                (T - log(1/delta))/(2p) samples with probability more than delta, so none needs fewer than (T - 1)/(2p) on \
                average; the recipe and plain SGD lie between that and the recipe's own upper bound.",
    measure,
};

/// B. With less noise than B = 1 the chain reveals itself sooner, so that SGD with one sample a step can be run.
const GROWTH: f64 = 0.3;

/// delta.
const DELTA: f64 = 0.05;

/// All that is known about one target.
struct LowerRow {
    target: f64,
    lower: f64,
    upper: f64,
    /// What SGD should need: see [`expected_sgd`].
    expected: f64,
    recipe: Vec<f64>,
    /// Empty where it would take too long.
    sgd: Vec<f64>,
}

/// SGD with the step 1/L.
const SGD: Rule = Rule::Sgd { eta: Sequence::Constant(1.0) };

/// Samples, one a step, until |grad F| <= eps; without a seed also without noise.
fn run_baseline(hard: &Arc<HardInstance>, rule: Rule, steps: u64, seed: Option<u64>) -> Measured<f64> {
    let gate = gate(hard, seed);
    let start = vec![0.0; gate.about().dim];
    let walk = Baseline::start(&gate, Settings { rule, steps, batch: 1 }, &start)?;
    Ok(samples(Run::of(gate, walk), &**hard, hard.target(), Until::Hit)?.to_hit)
}

/// The way to the chain with exact gradients, and 1/p samples for each of T coordinates to be shown.
fn expected_sgd(target: f64) -> Measured<f64> {
    let hard = instance(GROWTH, target)?;
    let way = run_baseline(&hard, SGD, u64::MAX, None)?;
    Ok(way + hard.bound().chain as f64 / hard.bound().p)
}

fn row(target: f64, seeds: &[u64], with_sgd: bool) -> Measured<LowerRow> {
    let hard = instance(GROWTH, target)?;
    let bound = *hard.bound();
    let expected = expected_sgd(target)?;
    // A run that has not arrived by then counts as never.
    let patience = (30.0 * expected) as u64;
    Ok(LowerRow {
        target,
        lower: bound.sharp_bound.ok_or("the target is admissible")?,
        upper: recipe(GROWTH, target)?.cost.samples,
        expected,
        recipe: over_seeds(seeds, |seed| recipe_on_instance(GROWTH, target, Some(seed)))?,
        sgd: over_seeds(if with_sgd { seeds } else { &[] }, |seed| {
            run_baseline(&hard, SGD, patience, Some(seed))
        })?,
    })
}

fn measure(setting: &Setting) -> Measured<Finding> {
    let chains: &[u32] = effort(setting, &[2, 3, 4, 6, 8, 16], &[2, 3, 4, 6, 8, 12, 16, 32]);
    let longest_for_sgd = effort(setting, 6, 12);
    let seeds = setting.seeds(24, 32);
    let rows: Vec<LowerRow> = chains
        .iter()
        .map(|&length| row(target_of_chain(length), &seeds, length <= longest_for_sgd))
        .collect::<Measured<_>>()?;
    let last = rows.last().ok_or("there are no targets")?;
    let place = |longest: u32| {
        let chains: Vec<u32> = chains.iter().copied().filter(|&length| length <= longest).collect();
        format!("B = {GROWTH}, chains of {} coordinates, {} seeds", listed(&chains), seeds.len())
    };
    let with_sgd: Vec<&LowerRow> = rows.iter().filter(|row| !row.sgd.is_empty()).collect();
    let mut checks = sgd_checks(&with_sgd, &place(longest_for_sgd), &seeds)?;
    checks.extend(sandwich(&rows, &place(u32::MAX)));
    checks.extend(early_hits(setting)?);
    Ok(Finding {
        text: vec![
            format!(
                "L = Delta = 1, B = {GROWTH}, b = 0. The oracle hides the next coordinate of a chain of T and shows it \
                 with probability p; a method that moves only along what it has been shown (it is zero-respecting) \
                 can be at most one coordinate further with each success."
            ),
            format!(
                "The bounds agree in their order, not in their constants: at the smallest target the recipe's upper bound \
                 is {} times the lower bound, and what the recipe draws is {} times the lower bound. That is the price \
                 of constants that are easy to prove.",
                significant(last.upper / last.lower, 2),
                significant(Estimate::of(&last.recipe).value / last.lower, 2)
            ),
            "SGD with one sample a step needs the way to the chain, which is not random, and about 1/p samples for each \
             coordinate: the sum of the two is what its samples are checked against."
                .into(),
            "The bound is on zero-respecting methods. That a random rotation extends it to all randomised algorithms \
             does not follow; see the last claim."
                .into(),
        ],
        figures: vec![sandwich_chart(&rows)],
        points: rows.iter().flat_map(|row| row.points(&seeds)).collect(),
        checks,
        tables: Vec::new(),
    })
}

/// The mean samples of the recipe against the two bounds: the worst over the targets.
fn sandwich(rows: &[LowerRow], place: &str) -> [Check; 2] {
    let over = |bound: fn(&LowerRow) -> f64| move |row: &LowerRow| Estimate::of(&row.recipe).over(bound(row));
    let least = Estimate::lowest(rows.iter().map(over(|row| row.lower)));
    let most = Estimate::highest(rows.iter().map(over(|row| row.upper)));
    [
        Check::within("Recipe: least mean samples over the lower bound", place, least, AtLeast(1.0)),
        Check::within("Recipe: largest mean samples over its upper bound", place, most, AtMost(1.0)),
    ]
}

/// SGD against the lower bound and against what it should need, and its slope.
fn sgd_checks(rows: &[&LowerRow], place: &str, seeds: &[u64]) -> Measured<Vec<Check>> {
    let least = Estimate::lowest(rows.iter().map(|row| Estimate::of(&row.sgd).over(row.lower)));
    // One ratio a seed, over all targets: the seeds share their draws from one target to the next.
    let ratios: Vec<f64> = (0..seeds.len())
        .map(|s| rows.iter().map(|row| row.sgd[s] / row.expected).sum::<f64>() / rows.len() as f64)
        .collect();
    let rate = Rate {
        name: "SGD, N = 1",
        setting: place.into(),
        exponent: -6.0,
        targets: rows.iter().map(|row| row.target).collect(),
        fitted_from: f64::INFINITY,
        seeds: seeds.to_vec(),
        samples: rows.iter().map(|row| row.sgd.clone()).collect(),
        noiseless: rows.iter().map(|row| row.expected).collect(),
        beyond: [32, 64]
            .into_iter()
            .map(|length| Ok((target_of_chain(length), expected_sgd(target_of_chain(length))?)))
            .collect::<Measured<_>>()?,
    };
    let expected = "SGD, N = 1: samples over the way to the chain plus T/p";
    Ok(vec![
        Check::within("SGD, N = 1: least mean samples over the lower bound", place, least, AtLeast(1.0)),
        Check::within(expected, place, Estimate::of(&ratios), Is(1.0)),
        rate.check(),
    ])
}

/// Zero-respecting methods with a budget of (T - log(1/delta))/(2p) samples: at most a part delta of the runs may arrive.
fn early_hits(setting: &Setting) -> Measured<Vec<Check>> {
    let length = effort(setting, 6, 8);
    let target = target_of_chain(length);
    let hard = instance(GROWTH, target)?;
    let bound = *hard.bound();
    let budget = ((bound.chain as f64 - (1.0 / DELTA).ln()) / (2.0 * bound.p)).floor() as u64;
    let seeds = setting.seeds(20, 40);
    let start = vec![0.0; hard.about().dim];
    let rules = [
        ("SGD, N = 1", SGD),
        ("Clipped SGD", Rule::ClippedSgd { eta: Sequence::Constant(10.0), threshold: 0.1 }),
        ("Adam", Rule::Adam { eta: Sequence::Constant(0.05), first: 0.9, second: 0.999, epsilon: 1e-8 }),
        ("AdaGrad-Norm", Rule::AdaGradNorm { eta: 100.0, offset: 1.0 }),
    ];
    let check = |name: &str, hits: &[f64]| {
        let part = hits.iter().filter(|hit| **hit <= budget as f64).count() as f64 / hits.len() as f64;
        Check::within(
            format!("{name}: part of the runs that arrive early"),
            format!("T = {length}, budget {budget} samples, delta = {DELTA}, {} seeds", seeds.len()),
            Estimate::certain(part),
            AtMost(DELTA),
        )
    };
    let mut checks = Vec::new();
    for (name, rule) in rules {
        let hits = over_seeds(&seeds, |seed| run_baseline(&hard, rule, budget, Some(seed)))?;
        checks.push(check(name, &hits));
    }
    let hits = over_seeds(&seeds, |seed| {
        let gate = gate(&hard, Some(seed)).with_budget(u128::from(budget));
        let walk = Pasta::start(&gate, recipe(GROWTH, target)?.schedule, &start)?;
        Ok(samples(Run::of(gate, walk), &*hard, target, Until::Hit)?.to_hit)
    })?;
    checks.push(check("Recipe", &hits));
    Ok(checks)
}

fn sandwich_chart(rows: &[LowerRow]) -> Chart {
    let line = |what: &dyn Fn(&LowerRow) -> f64| rows.iter().map(|row| (row.target, what(row))).collect();
    let mean = |values: &[f64]| Estimate::of(values).value;
    samples_chart(
        "lower-sandwich",
        "Between the bounds",
        "Samples until |grad F| <= eps on the hard instance of each target: the lower bound (T - 1)/(2p) of Theorem 1, \
         SGD with one sample a step, the recipe of Theorem 3, and that recipe's upper bound.",
        vec![
            Series::new("upper bound of the recipe", Tone::Grey, Shape::Line(line(&|row| row.upper))),
            Series::new("recipe", Tone::Blue, Shape::Points(line(&|row| mean(&row.recipe)))),
            Series::new("SGD, N = 1", Tone::Green, Shape::Crosses(line(&|row| mean(&row.sgd)))),
            Series::new("lower bound", Tone::Red, Shape::Line(line(&|row| row.lower))),
        ],
    )
}

impl LowerRow {
    fn points(&self, seeds: &[u64]) -> Vec<Point> {
        let at = ("eps", self.target);
        let mut points = vec![
            Point::new("bounds", at, None, ("lower bound", self.lower)),
            Point::new("bounds", at, None, ("upper bound of the recipe", self.upper)),
        ];
        for (method, samples) in [("recipe", &self.recipe), ("SGD, N = 1", &self.sgd)] {
            points.extend(Point::of_runs(method, at, seeds, samples, &[("samples", |&samples| samples)]));
        }
        points
    }
}
