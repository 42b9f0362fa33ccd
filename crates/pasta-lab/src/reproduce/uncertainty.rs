//! The uncertainty principle: which (beta, N) bound the drift of one anchored step.

use std::sync::Arc;

use pasta_opt::prelude::*;
use pasta_opt::problems::{Flat, SoftAbsolute};
use pasta_opt::recipe::{Uncertainty, UncertaintyCheck};
use rayon::prelude::*;

use super::finding::{Check, Claim, Finding, Measured, Point, Predicted};
use super::fit::Estimate;
use super::runs::{draw, noisy};
use super::{Setting, effort};
use pasta_report::{Axis, Chart, Series, Shape, Tone, significant};

pub(super) const CLAIM: Claim = Claim {
    name: "uncertainty",
    title: "Anchoring and sampling trade against each other",
    statement: "One anchored step has a bounded drift wherever beta (1 - 2 beta) N >= eta^2 B^2 and eta <= sqrt(beta)/(2L) \
                (Theorem 6); on f = 0 the exact boundary is beta (1 - beta) N >= eta^2 B^2.",
    measure,
};

const ETA: f64 = 0.09;
const GROWTH: f64 = 30.0;

/// What the draws say about the drift inequality at one (beta, N).
#[derive(Debug, Clone, Copy)]
struct Cell {
    beta: f64,
    n: u64,
    /// What Theorem 6 says there.
    theorem: UncertaintyCheck,
    /// The largest, over the points tried, of E|x_1 - x*|^2 over its bound.
    drift: Estimate,
}

impl Cell {
    fn holds(&self) -> bool {
        self.drift.high() <= 1.0
    }

    fn fails(&self) -> bool {
        self.drift.low() > 1.0
    }

    fn meets_the_conditions(&self) -> bool {
        self.theorem.variance_ok && self.theorem.eta_ok
    }
}

/// E|x_1 - y|^2 after one anchored step from x, over its bound (1 - beta/2)|x - y|^2 + beta |x0 - y|^2 + eta^2 b^2/N.
fn drift(oracle: &Arc<Noisy>, [x, y]: [f64; 2], beta: f64, n: u64, seeds: &[u64]) -> Measured<Estimate> {
    let x0 = oracle.start()[0];
    let floor = oracle.noise().floor;
    let bound =
        (1.0 - beta / 2.0) * (x - y).powi(2) + beta * (x0 - y).powi(2) + ETA * ETA * floor * floor / n as f64;
    let mut squares = Vec::with_capacity(seeds.len());
    for &seed in seeds {
        let gradient = draw(oracle, seed, x, n)?;
        squares.push((beta * x0 + (1.0 - beta) * x - ETA * gradient / n as f64 - y).powi(2));
    }
    Ok(Estimate::of(&squares).over(bound))
}

/// The worst drift over the points, at each (beta, N), for f with this L.
fn cells(
    setting: &Setting,
    oracle: &Arc<Noisy>,
    smoothness: f64,
    points: &[[f64; 2]],
) -> Measured<Vec<Cell>> {
    let principle = Uncertainty { smoothness, growth: GROWTH, eta: ETA };
    let steps: u32 = effort(setting, 12, 24);
    let draws = setting.seeds(4_000, 20_000);
    let grid: Vec<(f64, u64)> = (1..2 * steps)
        .step_by(2)
        .flat_map(|i| {
            let beta = f64::from(i) / f64::from(2 * steps);
            (0..=steps)
                .map(move |j| (beta, (8.0 * 125f64.powf(f64::from(j) / f64::from(steps))).round() as u64))
        })
        .collect();
    grid.into_par_iter()
        .map(|(beta, n)| {
            let tried = points.iter().map(|&at| drift(oracle, at, beta, n, &draws));
            let worst =
                tried.collect::<Measured<Vec<_>>>()?.into_iter().max_by(|a, b| a.value.total_cmp(&b.value));
            let theorem = principle.check(beta, n)?;
            Ok(Cell { beta, n, theorem, drift: worst.ok_or("there are no points")? })
        })
        .collect()
}

fn measure(setting: &Setting) -> Measured<Finding> {
    let flat = noisy(Flat { dimension: 1 }, GROWTH, 1.0, &[0.0])?;
    let soft = noisy(SoftAbsolute { dimension: 1 }, GROWTH, 1.0, &[1.0])?;
    // Every point minimises f = 0: the worst minimiser to measure from is the point itself, far from the start.
    let on_flat = cells(setting, &flat, 0.0, &[[1e3, 1e3]])?;
    let on_soft = cells(setting, &soft, 1.0, &[-40.0, -2.0, 0.5, 3.0, 100.0].map(|x| [x, 0.0]))?;

    let mut finding = Finding {
        text: vec![format!(
            "One step from x with step size eta = {ETA} and noise B = {GROWTH}, b = 1, anchored at x_0 with weight beta, N \
             samples: E|x_1 - x*|^2 is measured against (1 - beta/2)|x - x*|^2 + beta |x_0 - x*|^2 + eta^2 b^2/N. On f = 0 \
             the point x itself is the minimiser, at distance 1,000 from the start. On sqrt(1 + x^2) the worst of five \
             points is taken. A cell is undecided if its interval contains the boundary."
        )],
        ..Finding::default()
    };
    finding.checks = vec![
        exact_boundary(&on_flat),
        sufficient("f = 0", &on_flat),
        sufficient("sqrt(1 + x^2)", &on_soft),
        not_necessary(&on_flat),
    ];
    finding.figures = vec![
        chart("uncertainty-flat", "f = 0", &on_flat),
        chart("uncertainty-soft", "f = sqrt(1 + x^2)", &on_soft),
    ];
    for (name, cells) in [("f = 0", on_flat), ("sqrt(1 + x^2)", on_soft)] {
        finding.points.extend(cells.iter().map(|cell| {
            let measured = ("drift over its bound", cell.drift.value);
            Point::new(format!("{name}, N = {}", cell.n), ("beta", cell.beta), None, measured)
        }));
    }
    Ok(finding)
}

/// How many cells satisfy a condition.
fn count(cells: &[Cell], condition: fn(&Cell) -> bool) -> usize {
    cells.iter().filter(|cell| condition(cell)).count()
}

fn exact_boundary(cells: &[Cell]) -> Check {
    let decided = count(cells, |cell| cell.holds() || cell.fails());
    let wrong = count(cells, |cell| if cell.theorem.exact_noise_ok { cell.fails() } else { cell.holds() });
    let name = "f = 0: decided cells on the wrong side of the exact boundary";
    let setting = format!("{decided} of {} cells are decided", cells.len());
    Check::within(name, setting, Estimate::certain(wrong as f64), Predicted::AtMost(0.0))
}

fn sufficient(name: &str, cells: &[Cell]) -> Check {
    let all = count(cells, Cell::meets_the_conditions);
    let broken = count(cells, |cell| cell.meets_the_conditions() && cell.fails());
    let name = format!("{name}: cells that meet the theorem's conditions and break its inequality");
    let setting = format!("{all} of {} cells meet them", cells.len());
    Check::within(name, setting, Estimate::certain(broken as f64), Predicted::AtMost(0.0))
}

fn not_necessary(cells: &[Cell]) -> Check {
    let extra = count(cells, |cell| cell.holds() && !cell.theorem.variance_ok);
    let name = "f = 0: cells that break the conditions and keep the inequality";
    let setting = "what \"must hold\" would exclude";
    Check::within(name, setting, Estimate::certain(extra as f64), Predicted::AtLeast(1.0))
}

fn chart(id: &'static str, function: &str, cells: &[Cell]) -> Chart {
    let rhs = (ETA * GROWTH).powi(2);
    let curve = |capacity: fn(f64) -> f64| {
        (1..200)
            .map(|i| f64::from(i) / 200.0)
            .map(|beta| (beta, rhs / capacity(beta)))
            .filter(|&(_, n)| (0.0..=2000.0).contains(&n))
            .collect()
    };
    let chosen = |which: &dyn Fn(&Cell) -> bool| {
        cells.iter().filter(|cell| which(cell)).map(|cell| (cell.beta, cell.n as f64)).collect()
    };
    Chart {
        id,
        title: format!("Where one step has a bounded drift: {function}"),
        caption: format!(
            "Each mark is a pair (beta, N). Above the dashed curve Theorem 6 promises the inequality; above the solid one \
             it holds exactly on f = 0. Here eta^2 B^2 = {}.",
            significant(rhs, 3)
        ),
        x: Axis::linear("anchoring beta").within(0.0, 1.0),
        y: Axis::log("samples N").within(6.0, 1300.0),
        series: vec![
            Series::new("the inequality holds", Tone::Green, Shape::Points(chosen(&Cell::holds))),
            Series::new("it fails", Tone::Red, Shape::Crosses(chosen(&Cell::fails))),
            Series::new("undecided", Tone::Grey, Shape::Points(chosen(&|c| !c.holds() && !c.fails()))),
            Series::new(
                "beta (1 - 2 beta) N = eta^2 B^2",
                Tone::Red,
                Shape::Line(curve(|b| b * (1.0 - 2.0 * b))),
            ),
            Series::new("beta (1 - beta) N = eta^2 B^2", Tone::Blue, Shape::Line(curve(|b| b * (1.0 - b)))),
        ],
        references: Vec::new(),
    }
}
