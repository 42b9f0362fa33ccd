//! Polyak-Lojasiewicz and star-convex: eps^-1 log(1/eps), one sample a step.

use std::sync::Arc;

use pasta_opt::prelude::*;

use super::finding::{Check, Claim, Finding, Measured, Point, Predicted};
use super::fit::{Estimate, grid, slope};
use super::runs::{Kept, estimate, noisy, over_seeds, promise};
use super::{Setting, effort};
use pasta_report::{Axis, Chart, Column, Series, Shape, Table, Tone, grouped, significant};

pub(super) const CLAIM: Claim = Claim {
    name: "curvature",
    title: "Curvature towards the minimiser brings the cost to eps^-1 log(1/eps)",
    statement: "A smooth function that is Polyak-Lojasiewicz with one minimiser (Theorem 8) or star-convex (Theorem 9) is \
                brought to f - f* <= eps by plain SGD, one sample a step, with of the order of eps^-1 log(1/eps) samples.",
    measure,
};

/// How far the exponent of K/log may be from -1: K is rounded up to a whole number of steps, and is in the thousands.
const ROUNDING: f64 = 2e-3;

/// A recipe with the objective it is for.
struct Case {
    name: &'static str,
    constants: &'static str,
    targets: Vec<f64>,
    pose: fn(f64) -> Measured<Posed>,
}

struct Posed {
    oracle: Arc<Noisy>,
    plan: Plan,
    /// The logarithm in K.
    log: f64,
}

fn pl(target: f64) -> Measured<Posed> {
    let (start, growth, floor) = ([1.2], 0.5, 0.5);
    let bowl = SineBowl { dimension: 1 };
    let mu = bowl.facts().pl.ok_or("the bowl is PL")?;
    let gap = bowl.gap(&start);
    let plan = Pl { smoothness: 3.0, mu, gap, growth, floor, target }.plan()?;
    Ok(Posed { oracle: noisy(bowl, growth, floor, &start)?, plan, log: (3.0 * gap / target).ln() })
}

fn star(target: f64) -> Measured<Posed> {
    let (start, growth, floor) = ([0.9, 0.5], 0.7, 0.7);
    let clover = Clover { depth: 0.3 };
    let facts = clover.facts();
    let smoothness = facts.smoothness.ok_or("the clover is smooth")?;
    let mu = facts.star.ok_or("the clover is star-convex")?;
    let gap = clover.gap(&start);
    let plan = StarConvex { smoothness, mu, gap, growth, floor, target }.plan()?;
    let log = (3.0 * smoothness * gap / (mu * target)).ln();
    Ok(Posed { oracle: noisy(clover, growth, floor, &start)?, plan, log })
}

/// What one target came to.
struct Row {
    target: f64,
    steps: f64,
    log: f64,
    runs: Vec<Kept>,
}

fn measure(setting: &Setting) -> Measured<Finding> {
    let cases = [
        Case {
            name: "PL",
            constants: "x^2/2 + sin^2 x, B = b = .5",
            targets: effort(setting, grid(0.8, 0.05, 5), grid(0.8, 0.0125, 7)),
            pose: pl,
        },
        Case {
            name: "Star-convex",
            constants: "clover of depth .3, B = b = .7",
            targets: effort(setting, grid(0.4, 0.0125, 6), grid(0.4, 0.00625, 7)),
            pose: star,
        },
    ];
    let seeds = setting.seeds(24, 64);
    let mut finding = Finding {
        text: vec![
            "The number of samples is known before the run and is not random: K steps of one sample. What is \
             checked is that the runs draw exactly K, that K eps/log(..) does not depend on eps (the logarithm is \
             the one in the theorem's K), and that the promise is kept at every target."
                .into(),
        ],
        ..Finding::default()
    };
    let mut series = Vec::new();
    let mut table = Table {
        caption: "K eps divided by the theorem's logarithm".into(),
        columns: Column::all(b"lrrrr", ["recipe", "eps", "K", "K eps/log", "mean f - f*, in units of eps"]),
        rows: Vec::new(),
    };
    for (case, tone) in cases.iter().zip([Tone::Blue, Tone::Red]) {
        let rows = case.rows(&seeds)?;
        finding.checks.extend(case.checks(&rows, seeds.len())?);
        finding.points.extend(rows.iter().flat_map(|row| case.points(row, &seeds)));
        table.rows.extend(rows.iter().map(|row| case.cells(row)));
        let line: Vec<(f64, f64)> = rows.iter().map(|row| (row.target, row.steps)).collect();
        series.push(Series::new(format!("{}: K", case.name), tone, Shape::Line(line)));
        let drawn =
            rows.iter().map(|row| (row.target, estimate(&row.runs, |kept| kept.samples).value)).collect();
        series.push(Series::new(format!("{}: samples drawn", case.name), tone, Shape::Points(drawn)));
    }
    finding.tables.push(table);
    finding.figures.push(Chart {
        id: "curvature-samples",
        title: "Samples with curvature".into(),
        caption: "Lines: K of the theorem. Points: what the runs drew.".into(),
        x: Axis::log("target eps"),
        y: Axis::log("samples"),
        series,
        references: Vec::new(),
    });
    Ok(finding)
}

impl Row {
    /// E f - f* over eps.
    fn promise(&self) -> Estimate {
        estimate(&self.runs, |kept| kept.measure).over(self.target)
    }
}

impl Case {
    fn rows(&self, seeds: &[u64]) -> Measured<Vec<Row>> {
        self.targets
            .iter()
            .map(|&target| {
                let Posed { oracle, plan, log } = (self.pose)(target)?;
                let runs = over_seeds(seeds, |seed| promise(&oracle, &plan, seed))?;
                Ok(Row { target, steps: plan.schedule.steps as f64, log, runs })
            })
            .collect()
    }

    fn checks(&self, rows: &[Row], seeds: usize) -> Measured<Vec<Check>> {
        let name = self.name;
        let first = self.targets.first().ok_or("there are no targets")?;
        let setting =
            format!("{}, eps {first} to {}, {seeds} seeds", self.constants, rows[rows.len() - 1].target);
        let line: Vec<(f64, f64)> = rows.iter().map(|row| (row.target, row.steps / row.log)).collect();
        let exponent = slope(&line);
        let counted = rows.iter().all(|row| row.runs.iter().all(|kept| kept.samples == row.steps));
        let worst = rows
            .iter()
            .map(Row::promise)
            .max_by(|a, b| a.high().total_cmp(&b.high()))
            .ok_or("there are no targets")?;
        let holds = (exponent + 1.0).abs() <= ROUNDING && counted;
        let reason = match (holds, counted) {
            (true, _) => {
                "K is not random, every run drew exactly K, and the exponent is -1 up to rounding K".into()
            }
            (false, true) => format!("the exponent differs from -1 by more than {ROUNDING}"),
            (false, false) => "some run did not draw K samples".into(),
        };
        Ok(vec![
            Check::counted(
                format!("{name}: slope of samples/log"),
                setting.clone(),
                (exponent, -1.0),
                (holds, reason),
            ),
            Check::within(
                format!("{name}: largest mean f - f* over all targets, in units of eps"),
                setting,
                worst,
                Predicted::AtMost(1.0),
            ),
        ])
    }

    fn cells(&self, row: &Row) -> Vec<String> {
        vec![
            self.name.into(),
            row.target.to_string(),
            grouped(row.steps as u128),
            significant(row.steps * row.target / row.log, 6),
            significant(row.promise().value, 3),
        ]
    }

    fn points(&self, row: &Row, seeds: &[u64]) -> Vec<Point> {
        let point =
            |seed, quantity, value| Point::new(self.name, ("eps", row.target), seed, (quantity, value));
        let runs = row.runs.iter().zip(seeds).flat_map(|(kept, &seed)| {
            [point(Some(seed), "samples", kept.samples), point(Some(seed), "f - f*", kept.measure)]
        });
        runs.chain([point(None, "K", row.steps)]).collect()
    }
}
