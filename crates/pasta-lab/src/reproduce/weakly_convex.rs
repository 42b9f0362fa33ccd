//! Weakly convex: eps^-6 by anchored epochs, measured by the gradient of the Moreau envelope.

use pasta_opt::problems::KinkedWell;
use pasta_opt::recipe::Constant;

use super::finding::{Check, Claim, Finding, Measured, Point, Predicted, samples_chart};
use super::fit::{grid, slope};
use super::rate::LIMIT;
use super::runs::{Kept, Posed, estimate};
use super::{Setting, effort};
use pasta_report::{Column, Series, Shape, Table, Tone, grouped, significant};

pub(super) const CLAIM: Claim = Claim {
    name: "weakly-convex",
    title: "Weakly convex functions with kinks cost eps^-6 by anchored epochs",
    statement: "Epochs of anchored steps bring the gradient of the Moreau envelope of a weakly convex function, kinks \
                allowed, to eps with of the order of eps^-6 samples (Theorem 10, with its batch sizes corrected).",
    measure,
};

/// The well from its top.
fn posed(target: f64) -> Measured<Posed> {
    let chosen = [(Constant::Lambda, 6.0), (Constant::Target, target)];
    Posed::new("weakly-convex", KinkedWell { dimension: 1 }, [1.0, 1.0], &[0.0], &chosen)
}

fn measure(setting: &Setting) -> Measured<Finding> {
    let targets = grid(0.5, 0.125, 5);
    let run: Vec<f64> = effort(setting, targets[..2].to_vec(), targets[..3].to_vec());
    let seeds = setting.seeds(20, 24);
    let cost = |target: f64| Ok((target, posed(target)?.plan.cost.samples));
    let line: Vec<(f64, f64)> = targets.iter().map(|&target| cost(target)).collect::<Measured<_>>()?;
    let beyond: Vec<(f64, f64)> = [0.02, 0.01].into_iter().map(cost).collect::<Measured<_>>()?;

    let mut finding = Finding {
        text: vec![
            "The well |x^2 - 1/4|/2, linear beyond |x| = 1 (rho = G = 1), from its top at 0, with lambda = 6, \
             Delta = 1/8, B = b = 1. The number of samples S (N_0 + (K - 1) N) is not random. The guarantee is \
             measured with the exact proximal map, at the targets that fit the time."
                .into(),
        ],
        checks: vec![slope_check(&line, &beyond)],
        ..Finding::default()
    };
    let mut drawn = Vec::new();
    let mut rows = Vec::new();
    for &target in &run {
        let posed = posed(target)?;
        let (plan, runs) = (&posed.plan, posed.runs(&seeds)?);
        let kept = estimate(&runs, |kept| kept.measure).over(plan.guarantee.bound);
        let exact = runs.iter().all(|kept| Some(kept.samples) == plan.cost.exact.map(|n| n as f64));
        let setting = format!("eps = {target}, {} seeds", seeds.len());
        let name = "Mean |grad phi|^2 over the anchors, in units of eps^2";
        let mut check = Check::within(name, setting, kept, Predicted::AtMost(1.0));
        if !exact {
            (check.holds, check.reason) = (false, "a run did not draw the planned number of samples".into());
        }
        finding.checks.push(check);
        drawn.push((target, runs[0].samples));
        rows.push(vec![
            target.to_string(),
            grouped(plan.schedule.epochs),
            grouped(plan.schedule.steps),
            significant(plan.cost.samples, 4),
            significant(kept.value, 3),
        ]);
        let measured: [(_, fn(&Kept) -> f64); 2] =
            [("samples", |kept| kept.samples), ("mean |grad phi|^2", |kept| kept.measure)];
        finding.points.extend(Point::of_runs("kinked well", ("eps", target), &seeds, &runs, &measured));
    }
    let planned = |&(at, value)| Point::new("kinked well", ("eps", at), None, ("planned samples", value));
    finding.points.extend(line.iter().map(planned));
    finding.tables.push(Table {
        caption: "The runs".into(),
        columns: ["eps", "epochs S", "steps K", "samples", "measure/eps^2"].map(Column::right).to_vec(),
        rows,
    });
    let guide = line.iter().map(|&(x, _)| (x, 2.5 * line[0].1 * (x / line[0].0).powi(-6))).collect();
    finding.figures.push(samples_chart(
        "weakly-convex-samples",
        "Anchored epochs on a well with a kink",
        "Line: the planned samples, which are exact. Points: what the runs drew.",
        vec![
            Series::new("slope -6", Tone::Grey, Shape::Line(guide)),
            Series::new("planned", Tone::Blue, Shape::Line(line)),
            Series::new("drawn", Tone::Blue, Shape::Points(drawn)),
        ],
    ));
    Ok(finding)
}

/// The count is exact, so there is no interval: the slope must be near -6 and come nearer at smaller targets.
fn slope_check(line: &[(f64, f64)], beyond: &[(f64, f64)]) -> Check {
    let (measured, limit) = (slope(line), slope(beyond));
    let holds = (measured + 6.0).abs() <= LIMIT && (limit + 6.0).abs() <= (measured + 6.0).abs();
    let found = format!("slope {} here, {} at eps = .01", significant(measured, 4), significant(limit, 5));
    let reason = if holds {
        format!("the count is exact, and its slope tends to -6: {found}")
    } else {
        format!("the slope does not tend to -6: {found}")
    };
    let setting = format!("kinked well, lambda = 6, eps {} to {}", line[0].0, line[line.len() - 1].0);
    Check::counted("Slope of samples".into(), setting, (measured, -6.0), (holds, reason))
}
