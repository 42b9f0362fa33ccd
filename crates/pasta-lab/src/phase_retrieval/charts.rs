//! The two figures.

use pasta_report::number::real;
use pasta_report::{Axis, Chart, Reference, Scale, Series, Shape};

use super::instance::Contender;
use super::{ACCURATE, Cell, LOWEST_STEP, Setting, decades};
use crate::reproduce::fit::student;

/// What the curve shows: a colour has one method, and those whose step stays, which arrive nowhere, are in the table.
const DRAWN: [Contender; 5] = [
    Contender::FallingSgd,
    Contender::FallingAnchored,
    Contender::ProxLinear,
    Contender::Subgradient,
    Contender::Auto,
];
/// Between two rows of crosses.
const APART: f64 = 1.25;

/// A number of two digits.
fn two_digits(value: f64) -> f64 {
    format!("{value:.1e}").parse().unwrap_or(value)
}

impl Setting {
    /// f over the passes, each method with its best first step.
    pub(super) fn courses(&self) -> Chart {
        let mut series = Vec::new();
        for cell in self.methods().into_iter().filter_map(|method| self.best(method)) {
            let (mut line, mut band) = (Vec::new(), Vec::new());
            let points = (0..=40).map(|k| (self.passes as f64).powf(f64::from(k) / 40.0) as usize);
            let mut points: Vec<usize> = points.collect();
            points.dedup();
            for pass in points {
                let (mean, error) = cell.mean_log(pass);
                line.push((pass as f64, 10f64.powf(mean)));
                band.push((pass as f64, 10f64.powf(mean - error), 10f64.powf(mean + error)));
            }
            let name = match cell.first {
                Some(first) => format!("{} (first {})", cell.method.words(), real(two_digits(first))),
                None => cell.method.words().to_owned(),
            };
            series.push(Series::new(name.clone(), cell.method.tone(), Shape::Band(band)));
            series.push(Series::new(name, cell.method.tone(), Shape::Line(line)));
        }
        Chart {
            id: "phase-retrieval",
            title: format!("Robust phase retrieval, d = {}, m = {}", self.dimension, self.rows),
            caption: format!(
                "f over f at the start. Mean of the logarithms of {} runs, with a band of 95 %. Each method has its best first step.",
                self.runs
            ),
            x: Axis { label: "passes".into(), scale: Scale::Log, range: None },
            y: Axis { label: "f/f(x0)".into(), scale: Scale::Log, range: None },
            series,
            references: Vec::new(),
        }
    }

    /// Passes to the accuracy over first steps.
    pub(super) fn curve(&self) -> Chart {
        let budget = self.passes as f64;
        let mut series = Vec::new();
        // Crosses above the budget, for each method in a row of its own.
        let mut above = 1.15 * budget;
        for method in DRAWN {
            above *= APART;
            let (mut line, mut band, mut crosses) = (Vec::new(), Vec::new(), Vec::new());
            for cell in self.cells.iter().filter(|cell| cell.method == method) {
                let at = cell.first.map_or_else(|| decades(LOWEST_STEP), |first| vec![first]);
                for first in at {
                    // A line breaks where fewer than half arrive; the interval may go on beyond the budget.
                    let (low, high) = (cell.low.unwrap_or(budget), cell.high.unwrap_or(budget));
                    line.push((first, cell.passes.unwrap_or(f64::NAN)));
                    band.push((first, if cell.passes.is_some() { low } else { f64::NAN }, high));
                    if cell.passes.is_none() {
                        crosses.push((first, above));
                    }
                }
            }
            let shapes =
                [Shape::Band(band), Shape::Line(line.clone()), Shape::Points(line), Shape::Crosses(crosses)];
            let named = |shape| Series::new(method.words(), method.tone(), shape);
            series.extend(shapes.into_iter().map(named));
        }
        Chart {
            id: "phase-retrieval-steps",
            title: format!("Passes to f/f(x0) <= {ACCURATE:e}, d = {}, m = {}", self.dimension, self.rows),
            caption: format!(
                "Median of {} runs, with an interval of at least 95 % for it. Crosses: fewer than half of the runs come there in {} passes.",
                self.runs, self.passes
            ),
            x: Axis { label: "first step".into(), scale: Scale::Log, range: None },
            y: Axis { label: "passes".into(), scale: Scale::Log, range: Some((10.0, above * APART)) },
            series,
            references: vec![Reference::y("the budget; not reached:", budget)],
        }
    }

    fn methods(&self) -> Vec<Contender> {
        let mut methods: Vec<Contender> = self.cells.iter().map(|cell| cell.method).collect();
        methods.dedup();
        methods
    }

    /// The cell in which a method ends lowest.
    fn best(&self, method: Contender) -> Option<&Cell> {
        let own = self.cells.iter().filter(|cell| cell.method == method);
        own.min_by(|a, b| a.last.total_cmp(&b.last))
    }
}

impl Cell {
    /// The mean of the logarithms after so many passes, and half the width of its interval of 95 %.
    fn mean_log(&self, pass: usize) -> (f64, f64) {
        let log = |course: &Vec<f64>| course[pass.min(course.len() - 1)].clamp(1e-18, 1e18).log10();
        let logs: Vec<f64> = self.courses.iter().map(log).collect();
        let n = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / n;
        let spread = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1.0);
        (mean, student(1.96, logs.len()) * (spread / n).sqrt())
    }
}
