//! `pasta-lab phase-retrieval`: robust phase retrieval in the setting of Davis and Drusvyatskiy.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use pasta_opt::draws::{Address, Role};
use pasta_opt::estimator::Kind;
use pasta_opt::oracle::{Answer, Request};
use pasta_opt::prelude::*;
use pasta_opt::recipe::{Constant, Constants};
use pasta_opt::schedule::{BatchRule, Estimator, Output};
use pasta_opt::table::{Dense, Design, Features, Linear, Loss, Table};
use pasta_report::console::{self, Exit, Failure, Report, flags};
use pasta_report::number::real;
use pasta_report::{self as report, Axis, Chart, Column, Scale, Series, Shape, Tone};
use rayon::prelude::*;
use serde::Serialize;

/// Compare methods on robust phase retrieval, f(x) = mean |<a, x>^2 - y|, over many first steps.
///
/// Each run draws m Gaussian rows and a solution on the unit sphere, and starts at another point of the sphere. All methods have the
/// same runs, one row a step, and end after the same number of rows. Printed are the rows, in passes, until f is a ten-thousandth of f at the
/// start, for first steps over three decades; and the course of each method with its best first step. docs/phase-retrieval.md discusses it.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Coordinates
    #[arg(long, value_name = "d", default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..=1000))]
    dimension: u32,
    /// Rows
    #[arg(long, value_name = "m", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rows: u32,
    /// Passes: a run takes so many times m steps
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(20..=100_000))]
    passes: u32,
    /// Runs, each with rows of its own
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u32).range(2..=1000))]
    runs: u32,
    /// Seed of all randomness
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = flags::seed(), default_value_t = 1)]
    seed: u64,
    /// Write the figures phase-retrieval.svg and phase-retrieval-steps.svg into this folder
    #[arg(long, value_name = "FOLDER")]
    figures: Option<PathBuf>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// Relative to the start, f shall be at most this.
const ACCURATE: f64 = 1e-4;
/// First steps: three decades, so many for each.
const PER_DECADE: i32 = 4;
const LOWEST: f64 = 1e-2;
/// Passes of an anchored epoch.
const ANCHORED: u64 = 20;

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Contender {
    /// Steps alpha/sqrt(T), as in Davis and Drusvyatskiy.
    Sgd,
    /// Steps alpha/sqrt(t + 1).
    Subgradient,
    /// Theorem 10's epochs with anchoring: steps alpha/sqrt(T), lambda = 2 rho.
    Anchored,
    /// The method without constants.
    Auto,
}

impl Contender {
    const STEPPED: [Self; 3] = [Self::Sgd, Self::Subgradient, Self::Anchored];
    const ALL: [Self; 4] = [Self::Sgd, Self::Subgradient, Self::Anchored, Self::Auto];

    fn words(self) -> &'static str {
        match self {
            Self::Sgd => "SGD, steps alpha/sqrt(T)",
            Self::Subgradient => "subgradient method, steps alpha/sqrt(t + 1)",
            Self::Anchored => "anchored epochs, steps alpha/sqrt(T)",
            Self::Auto => "auto",
        }
    }

    fn tone(self) -> Tone {
        match self {
            Self::Sgd => Tone::Blue,
            Self::Subgradient => Tone::Red,
            Self::Anchored => Tone::Green,
            Self::Auto => Tone::Pink,
        }
    }
}

/// Rows, a start, and rho.
struct Instance {
    problem: Arc<Linear>,
    start: Vec<f64>,
    rho: f64,
    seed: u64,
}

impl Instance {
    fn new(arguments: &Arguments, run: u64) -> Result<Self, Failure> {
        let (d, m) = (arguments.dimension as usize, arguments.rows as usize);
        let address = |sample| Address { seed: arguments.seed, role: Role::Setup, step: run, sample };
        let mut xi = address(0).stream();
        let mut sphere = || {
            let x: Vec<f64> = (0..d).map(|_| xi.normal()).collect();
            let length = x.iter().map(|x| x * x).sum::<f64>().sqrt();
            x.iter().map(|x| x / length).collect::<Vec<f64>>()
        };
        let (solution, start) = (sphere(), sphere());
        let mut xi = address(1).stream();
        let values: Vec<f64> = (0..m * d).map(|_| xi.normal()).collect();
        let product = |row: &[f64]| row.iter().zip(&solution).map(|(a, x)| a * x).sum::<f64>();
        let labels: Vec<f64> = values.chunks(d).map(|row| product(row).powi(2)).collect();
        let features = Features::Dense(Dense { rows: m, columns: d, values: values.into() });
        let table = Table::new(features, Arc::new(labels), None, Vec::new()).map_err(Failure::input)?;
        let design = Design { intercept: false, standardise: false, degree: 1, penalty: 0.0 };
        let problem = Linear::new(Arc::new(table), Loss::PhaseRetrieval, design).map_err(Failure::input)?;
        let proved = Constants::from(&problem.constants(&start).map_err(Failure::input)?);
        let rho = proved.get(Constant::Rho).ok_or_else(|| Failure::system("rho is proved for this loss"))?;
        Ok(Self { problem: Arc::new(problem), start, rho, seed: run + 1 })
    }

    fn value(&self, x: &[f64]) -> f64 {
        let (mut gradient, mut losses) = (vec![0.0; x.len()], [0.0]);
        let mut answer = Answer { losses: &mut losses, ..Answer::new(&mut gradient) };
        let points = [x];
        let request = Request { losses: true, ..Request::everything(Role::Look, &points) };
        let asked = Gate::over(self.problem.clone(), 1).ask(request, &mut answer);
        // Far away it is not a number; that is a run which diverged.
        if asked.is_ok() { losses[0] } else { f64::INFINITY }
    }

    /// f over f at the start after each pass; shorter where the run ended by itself.
    fn course(&self, contender: Contender, alpha: f64, passes: u64) -> Result<Vec<f64>, Failure> {
        let rows = self.problem.table().rows() as u64;
        let total = passes * rows;
        let mut gate = Gate::over(self.problem.clone(), self.seed).with_budget(u128::from(total));
        let eta = alpha / (total as f64).sqrt();
        let baseline = |gate: &Gate, eta: Sequence| -> Result<Box<dyn Walk>, Failure> {
            let settings = Settings { rule: Rule::Sgd { eta }, steps: total, batch: 1 };
            Ok(Box::new(Baseline::start(gate, settings, &self.start).map_err(Failure::input)?))
        };
        let mut walk = match contender {
            Contender::Sgd => baseline(&gate, Sequence::Constant(eta))?,
            Contender::Subgradient => baseline(&gate, Sequence::InverseRoot { scale: alpha, shift: 1.0 })?,
            Contender::Anchored => {
                let schedule = Schedule {
                    epochs: (passes / ANCHORED).max(1),
                    steps: ANCHORED * rows,
                    eta: Sequence::Constant(eta),
                    beta: Sequence::Constant((2.0 * self.rho * eta).min(1.0)),
                    estimator: Estimator::Minibatch,
                    first: BatchRule::Fixed(1),
                    large: BatchRule::Fixed(1),
                    output: Output::Last,
                };
                Box::new(Pasta::start(&gate, schedule, &self.start).map_err(Failure::input)?)
            }
            Contender::Auto => Box::new(Auto::start(&gate, &self.start, None).map_err(Failure::input)?),
        };
        let start = self.value(&self.start);
        let mut course = vec![1.0];
        loop {
            let ended = match walk.advance(&mut gate) {
                Ok(Advance::Step(record)) => {
                    debug_assert!(record.kind == Kind::Fresh || contender != Contender::Auto);
                    false
                }
                Ok(Advance::Stop(_)) | Err(Halt::OverBudget { .. } | Halt::NotFinite { .. }) => true,
                Ok(_) => false,
                Err(halt) => return Err(Failure::system(halt)),
            };
            let passed = (gate.ledger().samples() / u128::from(rows)) as usize;
            if passed >= course.len() || ended {
                let now = self.value(walk.view().point) / start;
                // A round of auto is several passes, during which its point stays.
                let before = course[course.len() - 1];
                while course.len() < passed {
                    course.push(before);
                }
                course.push(now);
            }
            if ended || !course[course.len() - 1].is_finite() {
                course.truncate(passes as usize + 1);
                return Ok(course);
            }
        }
    }
}

/// What a method came to with a first step.
#[derive(Debug, Clone, Serialize)]
struct Cell {
    method: Contender,
    /// The first step; none for auto.
    alpha: Option<f64>,
    /// The median over the runs of the passes to the accuracy; none where fewer than half come there.
    passes: Option<f64>,
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
        alpha: Option<f64>,
        passes: u64,
    ) -> Result<Self, Failure> {
        let courses: Vec<Vec<f64>> = instances
            .par_iter()
            .map(|instance| instance.course(method, alpha.unwrap_or(0.0), passes))
            .collect::<Result<_, _>>()?;
        let first = |course: &Vec<f64>| course.iter().position(|f| *f <= ACCURATE);
        let mut arrivals: Vec<usize> =
            courses.iter().map(|course| first(course).unwrap_or(usize::MAX)).collect();
        arrivals.sort_unstable();
        let median = arrivals[(arrivals.len() - 1) / 2];
        let ends: Vec<f64> = courses.iter().map(|course| course[course.len() - 1]).collect();
        let logs = ends.iter().map(|f| f.clamp(1e-18, 1e18).ln()).sum::<f64>() / ends.len() as f64;
        Ok(Self {
            method,
            alpha,
            passes: (median != usize::MAX).then_some(median as f64),
            arrived: arrivals.iter().filter(|arrival| **arrival != usize::MAX).count() as u32,
            diverged: ends.iter().filter(|f| f.is_nan() || **f > 1.0).count() as u32,
            last: logs.exp(),
            courses,
        })
    }
}

/// Runs `pasta-lab phase-retrieval`.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let passes = u64::from(arguments.passes);
    let instances: Vec<Instance> =
        (0..u64::from(arguments.runs)).map(|run| Instance::new(arguments, run)).collect::<Result<_, _>>()?;
    let steps = (0..=3 * PER_DECADE).map(|k| LOWEST * 10f64.powf(f64::from(k) / f64::from(PER_DECADE)));
    let steps: Vec<f64> = steps.collect();
    let mut cells = vec![Cell::measure(&instances, Contender::Auto, None, passes)?];
    for method in Contender::STEPPED {
        for alpha in &steps {
            cells.push(Cell::measure(&instances, method, Some(*alpha), passes)?);
        }
    }
    let answer = Findings { runs: arguments.runs, passes, cells };
    if let Some(folder) = &arguments.figures {
        report::write(folder, "phase-retrieval.svg", answer.courses().svg()?)?;
        report::write(folder, "phase-retrieval-steps.svg", answer.steps(&steps).svg()?)?;
    }
    console::print(&answer, arguments.json)?;
    Ok(Exit::Done)
}

#[derive(Serialize)]
struct Findings {
    runs: u32,
    passes: u64,
    cells: Vec<Cell>,
}

impl Findings {
    /// The cell in which a method ends lowest.
    fn best(&self, method: Contender) -> Option<&Cell> {
        let own = self.cells.iter().filter(|cell| cell.method == method);
        own.min_by(|a, b| a.last.total_cmp(&b.last))
    }

    /// f over the passes, each method with its best first step.
    fn courses(&self) -> Chart {
        let mut series = Vec::new();
        for cell in Contender::ALL.into_iter().filter_map(|method| self.best(method)) {
            let (mut line, mut band) = (Vec::new(), Vec::new());
            let points = (0..=40).map(|k| (self.passes as f64).powf(f64::from(k) / 40.0) as usize);
            let mut points: Vec<usize> = points.collect();
            points.dedup();
            for pass in points {
                let logs: Vec<f64> = cell
                    .courses
                    .iter()
                    .map(|course| course[pass.min(course.len() - 1)].clamp(1e-18, 1e18).log10())
                    .collect();
                let n = logs.len() as f64;
                let mean = logs.iter().sum::<f64>() / n;
                let spread = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1.0);
                let error = 1.96 * (spread / n).sqrt();
                line.push((pass as f64, 10f64.powf(mean)));
                band.push((pass as f64, 10f64.powf(mean - error), 10f64.powf(mean + error)));
            }
            let name = match cell.alpha {
                Some(alpha) => format!("{}, alpha = {}", cell.method.words(), real(alpha)),
                None => cell.method.words().to_owned(),
            };
            series.push(Series::new(String::new(), cell.method.tone(), Shape::Band(band)));
            series.push(Series::new(name, cell.method.tone(), Shape::Line(line)));
        }
        Chart {
            id: "phase-retrieval",
            title: "Robust phase retrieval: f over f at the start".into(),
            caption: format!("Mean of the logarithms of {} runs, with a band of 95 %.", self.runs),
            x: Axis { label: "passes".into(), scale: Scale::Log, range: None },
            y: Axis { label: "f/f(x0)".into(), scale: Scale::Log, range: None },
            series,
            references: Vec::new(),
        }
    }

    /// Passes to the accuracy over first steps.
    fn steps(&self, steps: &[f64]) -> Chart {
        let mut series = Vec::new();
        for method in Contender::STEPPED {
            let own = self.cells.iter().filter(|cell| cell.method == method);
            let points = own.filter_map(|cell| Some((cell.alpha?, cell.passes?))).collect();
            series.push(Series::new(method.words(), method.tone(), Shape::Line(points)));
        }
        let auto = self.cells.iter().find(|cell| cell.method == Contender::Auto).and_then(|cell| cell.passes);
        if let (Some(passes), [low, .., high]) = (auto, steps) {
            let line = vec![(*low, passes), (*high, passes)];
            series.push(Series::new("auto, which has no step", Contender::Auto.tone(), Shape::Line(line)));
        }
        Chart {
            id: "phase-retrieval-steps",
            title: "Passes to a relative accuracy of 1e-4, over the first step".into(),
            caption: "Median of the runs; no point where fewer than half of them come there.".into(),
            x: Axis { label: "alpha".into(), scale: Scale::Log, range: None },
            y: Axis { label: "passes".into(), scale: Scale::Log, range: None },
            series,
            references: Vec::new(),
        }
    }
}

impl Report for Findings {
    fn text(&self) -> String {
        let row = |cell: &Cell| {
            vec![
                cell.method.words().to_owned(),
                cell.alpha.map_or_else(|| "-".into(), real),
                cell.passes.map_or_else(|| "-".into(), real),
                format!("{} of {}", cell.arrived, self.runs),
                cell.diverged.to_string(),
                real(cell.last),
            ]
        };
        let names = ["method", "alpha", "passes to 1e-4", "arrived", "diverged", "f/f(x0) at the end"];
        let table = report::Table {
            caption: String::new(),
            columns: Column::all(b"lrrrrr", names),
            rows: self.cells.iter().map(row).collect(),
        };
        table.text()
    }
}
