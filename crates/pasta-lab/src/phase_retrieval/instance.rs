//! One instance, and the course of a method on it.

use std::sync::Arc;

use pasta_opt::draws::{Address, Role, derived_seed};
use pasta_opt::oracle::{Answer, Request};
use pasta_opt::prelude::*;
use pasta_opt::prelude::{BatchRule, Estimator, Output};
use pasta_opt::recipe::{Constant, Constants};
use pasta_opt::table::{Dense, Design, Features, Linear, Loss, Table};
use pasta_report::Tone;
use pasta_report::console::Failure;
use serde::Serialize;

use super::prox_linear;

/// Passes of an anchored epoch.
const ANCHORED: u64 = 20;
/// Passes between two steps that fall, and in how many they halve.
const FALLING: u64 = 1;
const HALVED: u64 = 20;

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Contender {
    /// The same step always; alpha/sqrt(T) as in Davis and Drusvyatskiy.
    Sgd,
    /// Steps alpha/sqrt(t + 1).
    Subgradient,
    /// Theorem 10's epochs with anchoring: the same step always, lambda = 2 rho.
    Anchored,
    /// The method without constants.
    Auto,
    /// SGD with steps that fall geometrically.
    FallingSgd,
    /// Epochs with anchoring, lambda = 2 rho, with steps that fall geometrically from epoch to epoch.
    FallingAnchored,
    /// The stochastic prox-linear method, steps alpha/sqrt(t + 1).
    ProxLinear,
}

impl Contender {
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Sgd => "SGD, fixed step",
            Self::Subgradient => "subgradient, steps ~ 1/sqrt(t + 1)",
            Self::Anchored => "anchored epochs, fixed step",
            Self::Auto => "auto",
            Self::FallingSgd => "SGD, halved every 20 passes",
            Self::FallingAnchored => "anchored epochs, halved every 20 passes",
            Self::ProxLinear => "prox-linear, steps ~ 1/sqrt(t + 1)",
        }
    }

    pub(super) fn tone(self) -> Tone {
        match self {
            Self::Sgd | Self::FallingSgd => Tone::Blue,
            Self::Subgradient => Tone::Red,
            Self::Anchored | Self::FallingAnchored => Tone::Green,
            Self::Auto => Tone::Pink,
            Self::ProxLinear => Tone::Grey,
        }
    }
}

/// Rows, a start, and rho.
pub(super) struct Instance {
    problem: Arc<Linear>,
    start: Vec<f64>,
    rho: f64,
    seed: u64,
}

/// How long a method is followed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Until {
    /// Passes over the rows.
    pub(super) passes: u64,
    /// It ends before when f over f at the start is this low.
    pub(super) low: f64,
}

impl Until {
    fn is_over(self, course: &[f64]) -> bool {
        let last = course[course.len() - 1];
        course.len() as u64 > self.passes || !last.is_finite() || last <= self.low
    }
}

impl Instance {
    /// d coordinates and m rows, the same for the same seed and run.
    pub(super) fn new(d: u32, m: u32, seed: u64, run: u64) -> Result<Self, Failure> {
        let (d, m) = (d as usize, m as usize);
        let address = |sample| Address { seed, role: Role::Setup, step: run, sample };
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

    fn rows(&self) -> u64 {
        self.problem.table().rows() as u64
    }

    /// f over f at the start after each pass, for a method with this first step; shorter where the run ended by itself or is low enough.
    pub(super) fn course(&self, contender: Contender, first: f64, until: Until) -> Result<Vec<f64>, Failure> {
        let mut course = vec![1.0];
        match contender {
            Contender::FallingSgd | Contender::FallingAnchored => {
                let mut x = self.start.clone();
                for stage in 0.. {
                    if until.is_over(&course) {
                        break;
                    }
                    let eta = first * 0.5f64.powf((stage * FALLING) as f64 / HALVED as f64);
                    let passes = FALLING.min(until.passes + 1 - course.len() as u64);
                    let seed = derived_seed(self.seed, Role::Setup, stage);
                    let gate = self.gate(seed, passes);
                    let walk = if contender == Contender::FallingSgd {
                        self.sgd(&gate, Sequence::Constant(eta), passes, &x)?
                    } else {
                        self.anchored(&gate, eta, (1, passes), &x)?
                    };
                    let before = course.len();
                    let mut run = Run::of(gate, walk);
                    self.follow(&mut run, until, &mut course)?;
                    x.copy_from_slice(run.view().point);
                    if course.len() == before {
                        break;
                    }
                }
            }
            Contender::ProxLinear => {
                let start = self.value(&self.start);
                prox_linear::run(&self.problem, &self.start, first, self.seed, |x| {
                    course.push(self.value(x) / start);
                    !until.is_over(&course)
                });
            }
            _ => {
                let gate = self.gate(self.seed, until.passes);
                let walk = match contender {
                    Contender::Sgd => {
                        self.sgd(&gate, Sequence::Constant(first), until.passes, &self.start)?
                    }
                    Contender::Subgradient => {
                        let steps = Sequence::InverseRoot { scale: first, shift: 1.0 };
                        self.sgd(&gate, steps, until.passes, &self.start)?
                    }
                    Contender::Anchored => {
                        let epochs = (until.passes / ANCHORED).max(1);
                        self.anchored(&gate, first, (epochs, ANCHORED), &self.start)?
                    }
                    _ => Box::new(Auto::start(&gate, &self.start, None).map_err(Failure::input)?),
                };
                self.follow(&mut Run::of(gate, walk), until, &mut course)?;
            }
        }
        course.truncate(until.passes as usize + 1);
        Ok(course)
    }

    fn gate(&self, seed: u64, passes: u64) -> Gate {
        Gate::over(self.problem.clone(), seed).with_budget(u128::from(passes * self.rows()))
    }

    fn sgd(&self, gate: &Gate, eta: Sequence, passes: u64, start: &[f64]) -> Result<Box<dyn Walk>, Failure> {
        let settings = Settings { rule: Rule::Sgd { eta }, steps: passes * self.rows(), batch: 1 };
        Ok(Box::new(Baseline::start(gate, settings, start).map_err(Failure::input)?))
    }

    /// So many epochs of so many passes.
    fn anchored(
        &self,
        gate: &Gate,
        eta: f64,
        (epochs, passes): (u64, u64),
        start: &[f64],
    ) -> Result<Box<dyn Walk>, Failure> {
        let schedule = Schedule {
            epochs,
            steps: passes * self.rows(),
            eta: Sequence::Constant(eta),
            beta: Sequence::Constant((2.0 * self.rho * eta).min(1.0)),
            estimator: Estimator::Minibatch,
            first: BatchRule::Fixed(1),
            large: BatchRule::Fixed(1),
            output: Output::Last,
        };
        Ok(Box::new(Pasta::start(gate, schedule, start).map_err(Failure::input)?))
    }

    /// Adds the passes of a run to a course, until it ends or it is over.
    fn follow(&self, run: &mut Run, until: Until, course: &mut Vec<f64>) -> Result<(), Failure> {
        let start = self.value(&self.start);
        let before = course.len() - 1;
        loop {
            let ended = match run.next().map_err(Failure::system)? {
                // The end of all stages: smaller steps must not bring back a run that was lost.
                Event::End(Stop::Diverged(_)) => {
                    course.push(f64::INFINITY);
                    return Ok(());
                }
                Event::End(_) => true,
                _ => false,
            };
            let (samples, rows) = (run.gate().ledger().samples(), u128::from(self.rows()));
            let passed = before + (samples / rows) as usize;
            // A walk that ends by itself may do so within a pass.
            if passed >= course.len() || (ended && samples % rows > 0) {
                // A round of auto is several passes, during which its point stays.
                let last = course[course.len() - 1];
                course.resize(passed.max(course.len()), last);
                course.push(self.value(run.view().point) / start);
            }
            if ended || until.is_over(course) {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const METHODS: [Contender; 7] = [
        Contender::Sgd,
        Contender::Subgradient,
        Contender::Anchored,
        Contender::Auto,
        Contender::FallingSgd,
        Contender::FallingAnchored,
        Contender::ProxLinear,
    ];

    #[test]
    fn a_course_has_a_value_for_each_pass_and_is_the_same_again() {
        let instance = Instance::new(4, 24, 1, 0).unwrap();
        let until = Until { passes: 41, low: 0.0 };
        for method in METHODS {
            let course = instance.course(method, 0.01, until).unwrap();
            // Epochs of 20 passes: two of them fit; auto may end by itself.
            let passes = if method == Contender::Anchored { 40 } else { 41 };
            assert!(course.len() == passes + 1 || method == Contender::Auto, "{method:?}: {}", course.len());
            assert_eq!(course[0], 1.0);
            let again = Instance::new(4, 24, 1, 0).unwrap().course(method, 0.01, until).unwrap();
            assert_eq!(course, again, "{method:?}");
        }
    }

    #[test]
    fn steps_that_fall_begin_as_sgd_does_and_go_on_where_it_was() {
        let instance = Instance::new(4, 24, 1, 0).unwrap();
        let until = Until { passes: 120, low: 0.0 };
        let course = instance.course(Contender::FallingSgd, 0.02, until).unwrap();
        // After 120 passes steps are a 64th. The error of a row's step is in proportion to it.
        assert!(course[120] < 0.1 * course[20], "{} and {}", course[120], course[20]);
    }

    #[test]
    fn a_run_ends_when_it_is_low_enough_and_one_that_diverges_is_seen_to() {
        let instance = Instance::new(4, 24, 1, 0).unwrap();
        let until = Until { passes: 400, low: 1e-4 };
        let course = instance.course(Contender::ProxLinear, 0.1, until).unwrap();
        let (last, others) = course.split_last().unwrap();
        assert!(*last <= 1e-4 && others.iter().all(|f| *f > 1e-4), "{course:?}");
        for method in [Contender::Sgd, Contender::FallingSgd] {
            let course = instance.course(method, 1e3, until).unwrap();
            assert!(course.len() < 400 && !course[course.len() - 1].is_finite(), "{method:?}: {course:?}");
        }
    }
}
