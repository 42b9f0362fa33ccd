//! The guarantee of each recipe, measured.

use pasta_opt::prelude::*;
use pasta_opt::problems::{Absolute, Clover, KinkedWell, SineBowl, SoftAbsolute};
use pasta_opt::recipe::Constant::{self, Lambda, Target};

use super::Setting;
use super::finding::{Check, Claim, Finding, Measured, Point, Predicted};
use super::runs::{Kept, Posed, estimate, noisy};
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
    posed: Posed,
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
        objective: impl Objective + Copy + 'static,
        told: [f64; 2],
        start: &[f64],
        chosen: &[(Constant, f64)],
    ) -> Measured<()> {
        // The library writes its names in lower case, with hyphens.
        let name = recipe.to_lowercase().replace(' ', "-");
        let Posed { plan, .. } = Posed::new(&name, objective, told, start, chosen)?;
        let [growth, floor] = told.map(|told| told * self.sabotage);
        let posed = Posed { oracle: noisy(objective, growth, floor, start)?, plan };
        self.made.push(Case { theorem, recipe, problem, posed });
        Ok(())
    }
}

fn cases(sabotage: f64) -> Measured<Vec<Case>> {
    let mut cases = Cases { sabotage, made: Vec::new() };
    let (bowl, wide) = (SineBowl { dimension: 1 }, SineBowl { dimension: 10 });
    let smooth = ["smooth", "x^2/2 + sin^2 x, B = 9, b = 1, eps = .2"];
    cases.add(3, smooth, bowl, [9.0, 1.0], &[1.2], &[(Target, 0.2)])?;
    let smooth = ["smooth", "the same in ten dimensions, B = 2, b = 1, eps = .5"];
    cases.add(3, smooth, wide, [2.0, 1.0], &[0.4; 10], &[(Target, 0.5)])?;
    let convex = ["smooth convex", "sqrt(1 + x^2), B = 2, b = 1, eps = .1"];
    cases.add(4, convex, SoftAbsolute { dimension: 1 }, [2.0, 1.0], &[2.0], &[(Target, 0.1)])?;
    let kinked = ["Lipschitz convex", "|x| in five dimensions, B = .5, b = 1, eps = .2"];
    cases.add(5, kinked, Absolute { dimension: 5 }, [0.5, 1.0], &[1.0; 5], &[(Target, 0.2)])?;
    let page = ["mean-square smooth", "x^2/2 + sin^2 x, B = 2, b = 1, eps = .3"];
    cases.add(7, page, bowl, [2.0, 1.0], &[1.2], &[(Target, 0.3)])?;
    let pl = ["PL", "x^2/2 + sin^2 x, B = b = .5, eps = .2"];
    cases.add(8, pl, bowl, [0.5, 0.5], &[1.2], &[(Target, 0.2)])?;
    let star = ["star-convex", "clover of depth .3, B = b = .7, eps = .1"];
    cases.add(9, star, Clover { depth: 0.3 }, [0.7, 0.7], &[0.9, 0.5], &[(Target, 0.1)])?;
    let weakly = ["weakly convex", "kinked well, lambda = 6, B = b = 1, eps = .5"];
    let chosen = [(Lambda, 6.0), (Target, 0.5)];
    cases.add(10, weakly, KinkedWell { dimension: 1 }, [1.0, 1.0], &[0.05], &chosen)?;
    Ok(cases.made)
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
        let long = case.posed.plan.schedule.total_steps() > 1_000_000;
        let seeds = if long { setting.seeds(20, 24) } else { setting.seeds(64, 256) };
        let runs = case.posed.runs(&seeds)?;
        let promise = case.promise_check(&runs);
        marks.push((f64::from(case.theorem), promise.measured));
        let (low, high) = promise.interval.unwrap_or((f64::NAN, f64::NAN));
        let theorem = f64::from(case.theorem);
        bars.extend([(theorem, low.max(high / 1e3)), (theorem, high), (f64::NAN, f64::NAN)]);
        finding.checks.push(promise);
        finding.checks.push(case.cost_check(&runs));
        let samples = estimate(&runs, |kept| kept.samples);
        let kind = if case.posed.plan.cost.exact.is_some() { "exact" } else { "an upper bound" };
        finding.tables[0].rows.push(vec![
            case.name(),
            significant(samples.value, 4),
            significant(case.posed.plan.cost.samples, 4),
            kind.into(),
        ]);
        let series = format!("{}: {}", case.name(), case.problem);
        let at = ("bound", case.posed.plan.guarantee.bound);
        let measured: [(_, fn(&Kept) -> f64); 2] =
            [("measure", |kept| kept.measure), ("samples", |kept| kept.samples)];
        finding.points.extend(Point::of_runs(&series, at, &seeds, &runs, &measured));
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
        let times = setting.sabotage;
        let warning = format!("SABOTAGED: the oracles are {times} times as noisy as the recipes were told.");
        finding.text.push(warning);
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
        let guarantee = self.posed.plan.guarantee;
        let formula = guarantee.measure.formula().replace("phi_{1/lambda}", "phi");
        let name = format!("{}: mean {formula} over its bound", self.name());
        let measured = estimate(runs, |kept| kept.measure).over(guarantee.bound);
        Check::within(name, self.setting(runs), measured, Predicted::AtMost(1.0))
    }

    fn cost_check(&self, runs: &[Kept]) -> Check {
        let cost = self.posed.plan.cost;
        let samples = estimate(runs, |kept| kept.samples).over(cost.samples);
        let name = format!("{}: samples over their plan", self.name());
        let predicted = if cost.exact.is_some() { Predicted::Is(1.0) } else { Predicted::AtMost(1.0) };
        Check::within(name, self.setting(runs), samples, predicted)
    }
}
