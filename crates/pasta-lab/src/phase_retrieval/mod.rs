//! `pasta-lab phase-retrieval`: robust phase retrieval in the setting of Davis and Drusvyatskiy.

mod charts;
mod instance;
mod prox_linear;

use std::path::PathBuf;

use clap::Args;
use pasta_report::console::{self, Exit, Failure, Report, flags};
use pasta_report::number::real;
use pasta_report::{self as report, Column};
use rayon::prelude::*;
use serde::Serialize;

use instance::{Contender, Instance, Until};

/// Compare methods on robust phase retrieval, f(x) = mean |<a, x>^2 - y|, over many first steps.
///
/// Each run draws m Gaussian rows and a solution on the unit sphere, and starts at another point of the sphere. All methods have the
/// same runs, and one row a step. First with few rows, m = 1.5 d, which is too few to find the solution: how low f comes, and the course of each method
/// with its best first step. Then with more rows, m = 3 d: the rows, in passes, until f is a ten-thousandth of f at the start, for first
/// steps over three decades. docs/phase-retrieval.md discusses it.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Coordinates
    #[arg(long, value_name = "d", default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..=1000))]
    dimension: u32,
    /// Rows of the courses
    #[arg(long, value_name = "m", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rows: u32,
    /// Passes of the courses: a run takes so many times m steps
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(20..=100_000))]
    passes: u32,
    /// Rows of the curve over first steps [default: 3 d]
    #[arg(long, value_name = "m", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    curve_rows: Option<u32>,
    /// Passes of the curve over first steps
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(20..=100_000))]
    curve_passes: u32,
    /// Runs, each with rows of its own
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u32).range(2..=1000))]
    runs: u32,
    /// Seed of all randomness
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = flags::seed(), default_value_t = 1)]
    seed: u64,
    /// Write the figures phase-retrieval.svg and phase-retrieval-steps.svg into this folder
    #[arg(long, value_name = "FOLDER")]
    figures: Option<PathBuf>,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
}

/// Relative to the start, f shall be at most this.
const ACCURATE: f64 = 1e-4;
/// First steps: three decades, so many for each.
const PER_DECADE: i32 = 4;

/// What the courses compare, and the lowest alpha of their decades.
const COURSES: [Contender; 3] = [Contender::Sgd, Contender::Subgradient, Contender::Anchored];
const LOWEST_ALPHA: f64 = 1e-2;

/// What the curve compares, and its lowest first step.
const CURVE: [Contender; 6] = [
    Contender::Sgd,
    Contender::Subgradient,
    Contender::Anchored,
    Contender::ProxLinear,
    Contender::FallingSgd,
    Contender::FallingAnchored,
];
const LOWEST_STEP: f64 = 1e-3;

/// What a method came to with a first step.
#[derive(Debug, Clone, Serialize)]
struct Cell {
    method: Contender,
    /// The first step; none for auto.
    first: Option<f64>,
    /// The median over the runs of the passes to the accuracy; none where fewer than half come there.
    passes: Option<f64>,
    /// An interval for the median of at least 95 %, by order statistics; none is beyond the budget.
    low: Option<f64>,
    high: Option<f64>,
    /// Runs that come there.
    arrived: u32,
    /// Runs that end where f is infinite or above the start.
    diverged: u32,
    /// The mean over the runs of the logarithm of f at the end over f at the start, as a number.
    last: f64,
    #[serde(skip)]
    courses: Vec<Vec<f64>>,
}

impl Cell {
    fn measure(
        instances: &[Instance],
        method: Contender,
        first: Option<f64>,
        until: Until,
    ) -> Result<Self, Failure> {
        let courses: Vec<Vec<f64>> = instances
            .par_iter()
            .map(|instance| instance.course(method, first.unwrap_or(0.0), until))
            .collect::<Result<_, _>>()?;
        let arrival = |course: &Vec<f64>| course.iter().position(|f| *f <= ACCURATE).unwrap_or(usize::MAX);
        let mut arrivals: Vec<usize> = courses.iter().map(arrival).collect();
        arrivals.sort_unstable();
        let (low, middle, high) = ranks(arrivals.len());
        let at = |rank: usize| (arrivals[rank] != usize::MAX).then_some(arrivals[rank] as f64);
        let ends: Vec<f64> = courses.iter().map(|course| course[course.len() - 1]).collect();
        let logs = ends.iter().map(|f| f.clamp(1e-18, 1e18).ln()).sum::<f64>() / ends.len() as f64;
        Ok(Self {
            method,
            first,
            passes: at(middle),
            low: at(low),
            high: at(high),
            arrived: arrivals.iter().filter(|arrival| **arrival != usize::MAX).count() as u32,
            diverged: ends.iter().filter(|f| f.is_nan() || **f > 1.0).count() as u32,
            last: logs.exp(),
            courses,
        })
    }
}

/// Which of n sorted values, from 0, bound their law's median with probability .95 at least, and which is the (lower) median. Fewer
/// than six values do not bound it so surely: then the least and the largest.
fn ranks(n: usize) -> (usize, usize, usize) {
    // P(fewer than k + 1 of n values lie below the median), for the largest k with at most .025.
    let (mut term, mut sum, mut low) = (0.5f64.powi(n as i32), 0.0, 0);
    for k in 0..n / 2 {
        sum += term;
        if sum > 0.025 {
            break;
        }
        low = k;
        term *= (n - k) as f64 / (k + 1) as f64;
    }
    (low, (n - 1) / 2, n - 1 - low)
}

/// Three decades from here.
fn decades(lowest: f64) -> Vec<f64> {
    (0..=3 * PER_DECADE).map(|k| lowest * 10f64.powf(f64::from(k) / f64::from(PER_DECADE))).collect()
}

/// A number of rows, and what all methods came to.
#[derive(Serialize)]
struct Setting {
    dimension: u32,
    rows: u32,
    passes: u64,
    runs: u32,
    cells: Vec<Cell>,
}

impl Setting {
    /// Measures auto and these methods, with first steps that may depend on the method.
    fn measure(
        arguments: &Arguments,
        rows: u32,
        until: Until,
        methods: &[Contender],
        firsts: impl Fn(Contender) -> Vec<f64>,
    ) -> Result<Self, Failure> {
        let (dimension, runs) = (arguments.dimension, arguments.runs);
        let instance = |run| Instance::new(dimension, rows, arguments.seed, run);
        let instances: Vec<Instance> = (0..u64::from(runs)).map(instance).collect::<Result<_, _>>()?;
        let mut cells = vec![Cell::measure(&instances, Contender::Auto, None, until)?];
        for method in methods {
            for first in firsts(*method) {
                cells.push(Cell::measure(&instances, *method, Some(first), until)?);
            }
        }
        Ok(Self { dimension, rows, passes: until.passes, runs, cells })
    }

    fn table(&self) -> report::Table {
        let row = |cell: &Cell| {
            let bound = |bound: Option<f64>| bound.map_or_else(|| ">".into(), real);
            let passes = match cell.passes {
                Some(passes) => format!("{} ({} to {})", real(passes), bound(cell.low), bound(cell.high)),
                None => "-".into(),
            };
            vec![
                cell.method.words().to_owned(),
                cell.first.map_or_else(|| "-".into(), |first| format!("{first:.1e}")),
                passes,
                format!("{} of {}", cell.arrived, self.runs),
                cell.diverged.to_string(),
                real(cell.last),
            ]
        };
        let names = ["method", "first step", "passes to 1e-4", "arrived", "diverged", "f/f(x0) at the end"];
        report::Table {
            caption: format!("d = {}, m = {}, {} passes", self.dimension, self.rows, self.passes),
            columns: Column::all(b"lrrrrr", names),
            rows: self.cells.iter().map(row).collect(),
        }
    }
}

/// Runs `pasta-lab phase-retrieval`.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let passes = u64::from(arguments.passes);
    let root = ((passes * u64::from(arguments.rows)) as f64).sqrt();
    let courses =
        Setting::measure(arguments, arguments.rows, Until { passes, low: 0.0 }, &COURSES, |method| {
            // Steps alpha/sqrt(T), or alpha/sqrt(t + 1), which begin with alpha.
            let scale = if method == Contender::Subgradient { 1.0 } else { root };
            decades(LOWEST_ALPHA).iter().map(|alpha| alpha / scale).collect()
        })?;
    let rows = arguments.curve_rows.unwrap_or(3 * arguments.dimension);
    let until = Until { passes: u64::from(arguments.curve_passes), low: ACCURATE };
    let curve = Setting::measure(arguments, rows, until, &CURVE, |_| decades(LOWEST_STEP))?;
    if let Some(folder) = &arguments.figures {
        report::write(folder, "phase-retrieval.svg", courses.courses().svg()?)?;
        report::write(folder, "phase-retrieval-steps.svg", curve.curve().svg()?)?;
    }
    console::print(&Findings { courses, curve }, arguments.json)?;
    Ok(Exit::Done)
}

#[derive(Serialize)]
struct Findings {
    courses: Setting,
    curve: Setting,
}

impl Report for Findings {
    fn text(&self) -> String {
        [&self.courses, &self.curve].map(|setting| setting.table().text()).join("\n\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_bound_a_median() {
        // P(Bin(15, 1/2) <= 3) = .0176 and <= 4 = .059: the 4th and the 12th of 15; of 6 the first and the last, .0156.
        assert_eq!(ranks(15), (3, 7, 11));
        assert_eq!(ranks(6), (0, 2, 5));
        assert_eq!(ranks(3), (0, 1, 2));
        assert_eq!(ranks(2), (0, 0, 1));
    }
}
