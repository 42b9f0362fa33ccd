//! The guarantee of each recipe, measured.

use std::sync::Arc;

use pasta_opt::prelude::*;

use super::Setting;
use super::finding::{Check, Claim, Finding, Measured, Point, Predicted};
use super::runs::{Kept, estimate, noisy, over_seeds, promise};
use pasta_report::{Axis, Chart, Column, Reference, Series, Shape, Table, Tone, significant};

pub(super) const CLAIM: Claim = Claim {
    name: "guarantees",
    title: "Every recipe keeps its promise",
    statement: "On problems that meet its hypotheses, the mean of what each of the seven recipes bounds (Theorems 3, 4, \
                5, 7, 8, 9, 10) is below the bound, and so is its cost.",
    measure,
};

/// A recipe on a problem.
struct Case {
    theorem: u32,
    recipe: &'static str,
    problem: &'static str,
    oracle: Arc<Noisy>,
    plan: Plan,
}

/// Makes cases whose oracles are this many times as noisy as the recipes are told.
struct Cases {
    sabotage: f64,
    made: Vec<Case>,
}

impl Cases {
    fn add(
        &mut self,
        theorem: u32,
        [recipe, problem]: [&'static str; 2],
        objective: impl Objective + 'static,
        noise: [f64; 2],
        start: &[f64],
        plan: &dyn Recipe,
    ) -> Measured<()> {
        let [growth, floor] = noise.map(|told| told * self.sabotage);
        let oracle = noisy(objective, growth, floor, start)?;
        self.made.push(Case { theorem, recipe, problem, oracle, plan: plan.plan()? });
        Ok(())
    }
}

fn cases(sabotage: f64) -> Measured<Vec<Case>> {
    let mut cases = Cases { sabotage, made: Vec::new() };
    by_dynamic_batches(&mut cases)?;
    by_other_means(&mut cases)?;
    Ok(cases.made)
}

/// Theorems 3, 4 and 5.
fn by_dynamic_batches(cases: &mut Cases) -> Measured<()> {
    let (bowl, wide) = (SineBowl { dimension: 1 }, SineBowl { dimension: 10 });
    let (gap, wide_gap) = (bowl.gap(&[1.2]), wide.gap(&[0.4; 10]));
    cases.add(
        3,
        ["smooth", "x^2/2 + sin^2 x, B = 9, b = 1, eps = .2"],
        bowl,
        [9.0, 1.0],
        &[1.2],
        &Smooth { smoothness: 3.0, gap, growth: 9.0, floor: 1.0, variance: None, target: 0.2 },
    )?;
    cases.add(
        3,
        ["smooth", "the same in ten dimensions, B = 2, b = 1, eps = .5"],
        wide,
        [2.0, 1.0],
        &[0.4; 10],
        &Smooth { smoothness: 3.0, gap: wide_gap, growth: 2.0, floor: 1.0, variance: None, target: 0.5 },
    )?;
    cases.add(
        4,
        ["smooth convex", "sqrt(1 + x^2), B = 2, b = 1, eps = .1"],
        SoftAbsolute { dimension: 1 },
        [2.0, 1.0],
        &[2.0],
        &SmoothConvex {
            smoothness: 1.0,
            distance: 2.0,
            growth: 2.0,
            floor: 1.0,
            variance: None,
            target: 0.1,
        },
    )?;
    cases.add(
        5,
        ["Lipschitz convex", "|x| in five dimensions, B = .5, b = 1, eps = .2"],
        Absolute { dimension: 5 },
        [0.5, 1.0],
        &[1.0; 5],
        &LipschitzConvex {
            lipschitz: 1.0,
            distance: 5f64.sqrt(),
            growth: 0.5,
            floor: 1.0,
            variance: None,
            target: 0.2,
        },
    )
}

/// Theorems 7, 8, 9 and 10.
fn by_other_means(cases: &mut Cases) -> Measured<()> {
    let bowl = SineBowl { dimension: 1 };
    let gap = bowl.gap(&[1.2]);
    let mu = bowl.facts().pl.ok_or("the bowl is PL")?;
    let clover = Clover { depth: 0.3 };
    let (leaf_smoothness, leaf_mu) =
        clover.facts().smoothness.zip(clover.facts().star).ok_or("the clover is smooth and star-convex")?;
    let well = KinkedWell { dimension: 1 };
    cases.add(
        7,
        ["mean-square smooth", "x^2/2 + sin^2 x, B = 2, b = 1, eps = .3"],
        bowl,
        [2.0, 1.0],
        &[1.2],
        &MeanSquareSmooth { ms_smoothness: 3f64.hypot(2.0), gap, growth: 2.0, floor: 1.0, target: 0.3 },
    )?;
    cases.add(
        8,
        ["PL", "x^2/2 + sin^2 x, B = b = .5, eps = .2"],
        bowl,
        [0.5, 0.5],
        &[1.2],
        &Pl { smoothness: 3.0, mu, gap, growth: 0.5, floor: 0.5, target: 0.2 },
    )?;
    cases.add(
        9,
        ["star-convex", "clover of depth .3, B = b = .7, eps = .1"],
        clover,
        [0.7, 0.7],
        &[0.9, 0.5],
        &StarConvex {
            smoothness: leaf_smoothness,
            mu: leaf_mu,
            gap: clover.gap(&[0.9, 0.5]),
            growth: 0.7,
            floor: 0.7,
            target: 0.1,
        },
    )?;
    cases.add(
        10,
        ["weakly convex", "kinked well, lambda = 6, B = b = 1, eps = .5"],
        well,
        [1.0, 1.0],
        &[0.05],
        &WeaklyConvex {
            rho: 1.0,
            lambda: 6.0,
            lipschitz: 1.0,
            gap: well.gap(&[0.05]),
            growth: 1.0,
            floor: 1.0,
            target: 0.5,
            formulas: Formulas::Corrected,
        },
    )
}

fn measure(setting: &Setting) -> Measured<Finding> {
    let mut finding = Finding {
        text: vec![
            "Each recipe plans from the constants of its problem, runs to its planned end, and is measured at \
             the point that its theorem speaks of; where that point is drawn at random, the mean over all the points \
             that it is drawn from is taken. In units of the bound, so 1 is the limit."
                .into(),
        ],
        tables: vec![Table {
            caption: "Samples drawn and planned".into(),
            columns: Column::all(b"lrrl", ["recipe", "mean samples", "planned", "the plan is"]),
            rows: Vec::new(),
        }],
        ..Finding::default()
    };
    let (mut marks, mut bars) = (Vec::new(), Vec::new());
    for case in cases(setting.sabotage)? {
        let long = case.plan.schedule.total_steps() > 1_000_000;
        let seeds = if long { setting.seeds(20, 24) } else { setting.seeds(64, 256) };
        let runs = over_seeds(&seeds, |seed| promise(&case.oracle, &case.plan, seed))?;
        let promise = case.promise_check(&runs);
        marks.push((f64::from(case.theorem), promise.measured));
        let (low, high) = promise.interval.unwrap_or((f64::NAN, f64::NAN));
        bars.extend([
            (f64::from(case.theorem), low.max(high / 1e3)),
            (f64::from(case.theorem), high),
            (f64::NAN, f64::NAN),
        ]);
        finding.checks.push(promise);
        finding.checks.push(case.cost_check(&runs));
        let samples = estimate(&runs, |kept| kept.samples);
        let kind = if case.plan.cost.exact.is_some() { "exact" } else { "an upper bound" };
        finding.tables[0].rows.push(vec![
            case.name(),
            significant(samples.value, 4),
            significant(case.plan.cost.samples, 4),
            kind.into(),
        ]);
        finding.points.extend(runs.iter().zip(&seeds).flat_map(|(kept, &seed)| {
            [("measure", kept.measure), ("samples", kept.samples)].map(|measured| {
                let series = format!("{}: {}", case.name(), case.problem);
                Point::new(series, ("bound", case.plan.guarantee.bound), Some(seed), measured)
            })
        }));
    }
    finding.figures.push(Chart {
        id: "guarantees-measured",
        title: "What is promised, and what was measured".into(),
        caption: "The mean of the promised measure over its bound, with its interval, for each theorem. Theorem 3 is \
                  measured on two problems."
            .into(),
        x: Axis::linear("theorem").within(2.5, 10.5),
        y: Axis::log("measured/bound"),
        series: vec![
            Series::new("interval", Tone::Blue, Shape::Line(bars)),
            Series::new("mean", Tone::Blue, Shape::Points(marks)),
        ],
        references: vec![Reference::y("the bound", 1.0)],
    });
    if setting.sabotage != 1.0 {
        finding.text.push(format!(
            "SABOTAGED: the oracles are {} times as noisy as the recipes were told.",
            setting.sabotage
        ));
    }
    Ok(finding)
}

impl Case {
    fn name(&self) -> String {
        format!("Theorem {} ({})", self.theorem, self.recipe)
    }

    fn setting(&self, runs: &[Kept]) -> String {
        format!("{}, {} seeds", self.problem, runs.len())
    }

    fn promise_check(&self, runs: &[Kept]) -> Check {
        let guarantee = self.plan.guarantee;
        Check::within(
            format!(
                "{}: mean {} over its bound",
                self.name(),
                guarantee.measure.formula().replace("phi_{1/lambda}", "phi")
            ),
            self.setting(runs),
            estimate(runs, |kept| kept.measure).over(guarantee.bound),
            Predicted::AtMost(1.0),
        )
    }

    fn cost_check(&self, runs: &[Kept]) -> Check {
        let cost = self.plan.cost;
        let samples = estimate(runs, |kept| kept.samples).over(cost.samples);
        let name = format!("{}: samples over their plan", self.name());
        let predicted = if cost.exact.is_some() { Predicted::Is(1.0) } else { Predicted::AtMost(1.0) };
        Check::within(name, self.setting(runs), samples, predicted)
    }
}
