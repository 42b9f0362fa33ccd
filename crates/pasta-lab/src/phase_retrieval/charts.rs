//! The two figures.

use pasta_report::number::real;
use pasta_report::{Axis, Chart, Reference, Scale, Series, Shape};

use super::instance::Contender;
use super::{ACCURATE, Cell, Setting};
use crate::reproduce::fit::student;

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
                Some(first) => format!("{}, first {}", cell.method.words(), real(first)),
                None => cell.method.words().to_owned(),
            };
            series.push(Series::new(String::new(), cell.method.tone(), Shape::Band(band)));
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
        for method in self.methods() {
            let own: Vec<&Cell> = self.cells.iter().filter(|cell| cell.method == method).collect();
            let at = |cell: &Cell| cell.first.map_or_else(|| self.ends(), |first| vec![first]);
            let (mut line, mut band, mut crosses) = (Vec::new(), Vec::new(), Vec::new());
            for (cell, first) in own.iter().flat_map(|cell| at(cell).into_iter().map(move |at| (*cell, at))) {
                match cell.passes {
                    Some(passes) => line.push((first, passes)),
                    None => {
                        // A line breaks where nothing arrives.
                        line.push((first, f64::NAN));
                        crosses.push((first, budget));
                    }
                }
                let high = cell.high.unwrap_or(budget);
                let low = if cell.passes.is_some() { cell.low.unwrap_or(budget) } else { f64::NAN };
                band.push((first, low, high));
            }
            // A method that arrives nowhere is in the table alone.
            if line.iter().any(|(_, passes)| passes.is_finite()) {
                series.push(Series::new(String::new(), method.tone(), Shape::Band(band)));
                series.push(Series::new(method.words(), method.tone(), Shape::Line(line.clone())));
                series.push(Series::new(method.words(), method.tone(), Shape::Points(line)));
                series.push(Series::new(method.words(), method.tone(), Shape::Crosses(crosses)));
            }
        }
        Chart {
            id: "phase-retrieval-steps",
            title: format!("Passes to f/f(x0) <= {ACCURATE:e}, d = {}, m = {}", self.dimension, self.rows),
            caption: format!(
                "Median of {} runs, with an interval of at least 95 % for it. Crosses: fewer than half of the runs come there in {} passes.",
                self.runs, self.passes
            ),
            x: Axis { label: "first step".into(), scale: Scale::Log, range: None },
            y: Axis { label: "passes".into(), scale: Scale::Log, range: Some((10.0, 1.2 * budget)) },
            series,
            references: vec![Reference::y("the budget", budget)],
        }
    }

    /// The smallest and the largest first step.
    fn ends(&self) -> Vec<f64> {
        let firsts = || self.cells.iter().filter_map(|cell| cell.first);
        vec![firsts().fold(f64::INFINITY, f64::min), firsts().fold(0.0, f64::max)]
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
