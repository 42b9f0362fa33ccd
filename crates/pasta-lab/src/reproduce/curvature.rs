//! Polyak-Lojasiewicz and star-convex: eps^-1 log(1/eps), one sample a step.

use pasta_opt::prelude::*;
use pasta_opt::problems::{Clover, SineBowl};
use pasta_opt::recipe::Constant;

use super::finding::{Check, Claim, Finding, Measured, Point, Predicted, samples_chart};
use super::fit::{Estimate, grid, slope};
use super::runs::{Kept, Posed, estimate};
use super::{Setting, effort};
use pasta_report::{Column, Series, Shape, Table, Tone, grouped, significant};

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
    /// The problem, and the logarithm in K.
    pose: fn(f64) -> Measured<(Posed, f64)>,
}

fn pl(target: f64) -> Measured<(Posed, f64)> {
    let (bowl, start) = (SineBowl { dimension: 1 }, [1.2]);
    let posed = Posed::new("pl", bowl, [0.5, 0.5], &start, &[(Constant::Target, target)])?;
    Ok((posed, (3.0 * bowl.gap(&start) / target).ln()))
}

fn star(target: f64) -> Measured<(Posed, f64)> {
    let (clover, start) = (Clover { depth: 0.3 }, [0.9, 0.5]);
    let posed = Posed::new("star-convex", clover, [0.7, 0.7], &start, &[(Constant::Target, target)])?;
    let facts = clover.facts();
    let (smoothness, mu) = facts.smoothness.zip(facts.star).ok_or("the clover is smooth and star-convex")?;
    Ok((posed, (3.0 * smoothness * clover.gap(&start) / (mu * target)).ln()))
}

/// What one target came to.
struct CurvatureRow {
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
        finding.checks.extend(case.checks(&rows, seeds.len()));
        for row in &rows {
            let at = ("eps", row.target);
            let measured: [(_, fn(&Kept) -> f64); 2] =
                [("samples", |kept| kept.samples), ("f - f*", |kept| kept.measure)];
            finding.points.extend(Point::of_runs(case.name, at, &seeds, &row.runs, &measured));
            finding.points.push(Point::new(case.name, at, None, ("K", row.steps)));
        }
        table.rows.extend(rows.iter().map(|row| case.cells(row)));
        let planned = rows.iter().map(|row| (row.target, row.steps)).collect();
        let drawn = rows.iter().map(|row| (row.target, estimate(&row.runs, |kept| kept.samples).value));
        series.push(Series::new(format!("{}: K", case.name), tone, Shape::Line(planned)));
        series.push(Series::new(
            format!("{}: samples drawn", case.name),
            tone,
            Shape::Points(drawn.collect()),
        ));
    }
    finding.tables.push(table);
    finding.figures.push(samples_chart(
        "curvature-samples",
        "Samples with curvature",
        "Lines: K of the theorem. Points: what the runs drew.",
        series,
    ));
    Ok(finding)
}

impl CurvatureRow {
    /// E f - f* over eps.
    fn promise(&self) -> Estimate {
        estimate(&self.runs, |kept| kept.measure).over(self.target)
    }
}

impl Case {
    fn rows(&self, seeds: &[u64]) -> Measured<Vec<CurvatureRow>> {
        let row = |&target: &f64| {
            let (posed, log) = (self.pose)(target)?;
            Ok(CurvatureRow {
                target,
                steps: posed.plan.schedule.steps as f64,
                log,
                runs: posed.runs(seeds)?,
            })
        };
        self.targets.iter().map(row).collect()
    }

    fn checks(&self, rows: &[CurvatureRow], seeds: usize) -> [Check; 2] {
        let Self { name, constants, .. } = self;
        let [first, last] = [&rows[0], &rows[rows.len() - 1]].map(|row| row.target);
        let setting = format!("{constants}, eps {first} to {last}, {seeds} seeds");
        let line: Vec<(f64, f64)> = rows.iter().map(|row| (row.target, row.steps / row.log)).collect();
        let exponent = slope(&line);
        let counted = rows.iter().all(|row| row.runs.iter().all(|kept| kept.samples == row.steps));
        let holds = (exponent + 1.0).abs() <= ROUNDING && counted;
        let reason = match (holds, counted) {
            (true, _) => {
                "K is not random, every run drew exactly K, and the exponent is -1 up to rounding K".into()
            }
            (false, true) => format!("the exponent differs from -1 by more than {ROUNDING}"),
            (false, false) => "some run did not draw K samples".into(),
        };
        let slope = format!("{name}: slope of samples/log");
        let largest = format!("{name}: largest mean f - f* over all targets, in units of eps");
        let worst = Estimate::highest(rows.iter().map(CurvatureRow::promise));
        [
            Check::counted(slope, setting.clone(), (exponent, -1.0), (holds, reason)),
            Check::within(largest, setting, worst, Predicted::AtMost(1.0)),
        ]
    }

    fn cells(&self, row: &CurvatureRow) -> Vec<String> {
        vec![
            self.name.into(),
            row.target.to_string(),
            grouped(row.steps as u128),
            significant(row.steps * row.target / row.log, 6),
            significant(row.promise().value, 3),
        ]
    }
}
