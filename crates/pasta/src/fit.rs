//! A linear model from a table: a method runs until an exact pass over all rows finds the gradient small enough.
//!
//! The program `pasta fit` and the estimators of the Python package are this, with what they show and write around it.
//!
//! ```
//! use std::sync::Arc;
//!
//! use pasta_opt::fit::{Fit, Verdict, Way};
//! use pasta_opt::method::Engine;
//! use pasta_opt::table::{Dense, Design, Features, Linear, Loss, Table};
//!
//! // y = 3 a - 1 at a = 0, 1, 2, 3.
//! let features = Dense { rows: 4, columns: 1, values: vec![0.0, 1.0, 2.0, 3.0].into() };
//! let table = Table::new(Features::Dense(features), Arc::new(vec![-1.0, 2.0, 5.0, 8.0]), None, Vec::new())?;
//! let linear = Arc::new(Linear::new(Arc::new(table), Loss::LeastSquares, Design::default())?);
//! let way = Way::Method(Engine::Auto { target: None });
//! let fit = Fit { way, start: None, target: None, budget: None, seed: 1 };
//! let fitted = fit.run(&linear, linear.clone(), Arc::default(), &mut |_| ())?;
//! assert_eq!(fitted.verdict, Verdict::Certified);
//! let model = linear.raw_weights(&fitted.point);
//! assert!((model.weights[0] - 3.0).abs() < 1e-5 && (model.intercepts[0] + 1.0).abs() < 1e-5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::draws::Role;
use crate::gate::{Gate, Halt};
use crate::kernels::squared_norm;
use crate::kinks;
use crate::method::{AUTO, By, EXACT, Engine, Plan};
pub use crate::method::{RELATIVE, usual_budget};
use crate::newton::{self, Newton};
use crate::oracle::Oracle;
use crate::run::{Chosen, Event, KnownTable, MethodSpec, Problem, Run, RunError, Task};
use crate::state::StartError;
use crate::stop::Stop;
use crate::table::{Design, Linear, Loss, TableError, Tails};
use crate::target::Target;
use crate::term::Separable;
use crate::walk::{Ending, FitLog};
pub use crate::walk::{Exactly, FitVerdict as Verdict};

/// The settings of a fit: its method, target and budget.
#[derive(Debug)]
pub struct Fit {
    /// The way down.
    pub way: Way,
    /// Where it starts. If nothing is said, at [`Linear::best_constant`]; with a loss that is [flat far out](crate::table::Loss::convex_surrogate), where the fit of its convex kin ends.
    pub start: Option<Vec<f64>>,
    /// The gradient that is small enough, or its share of that at the start; if nothing is said, [`RELATIVE`] of that at the start, of the convex kin where there is one, and then second-order steps go on until
    /// they promise f no more. By second-order steps on a loss with kinks, the gap that is small enough, or [`RELATIVE`] of the loss of a typical row at the start.
    pub target: Option<Target>,
    /// Rows that may be read, each as often as it is read; [`usual_budget`] if nothing is said.
    pub budget: Option<u128>,
    /// The seed of all randomness.
    pub seed: u64,
}

/// The method of a fit.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one of them in a fit")]
pub enum Way {
    /// By one of the methods; `auto` aims at the target of the fit.
    Method(Engine),
    /// By second-order steps: see [`crate::newton`], and [`crate::kinks`] for convex losses with kinks.
    SecondOrder,
    /// By second-order steps with a term for the coordinates, such as that of [`Penalties`](crate::proximal::Penalties): see [`crate::proximal`].
    Proximal(Separable),
}

impl Way {
    /// The quickest way that is known to fit a table: second-order steps where the loss is smooth and convex, or convex with kinks and a matrix of second
    /// derivatives costs little, and otherwise `auto`.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use pasta_opt::fit::Way;
    /// use pasta_opt::table::{Dense, Design, Features, Linear, Loss, Table};
    ///
    /// let features = Dense { rows: 4, columns: 1, values: vec![0.0, 1.0, 2.0, 3.0].into() };
    /// let table = Arc::new(Table::new(Features::Dense(features), Arc::new(vec![-1.0, 2.0, 5.0, 8.0]), None, Vec::new())?);
    /// let smooth = Linear::new(Arc::clone(&table), Loss::LeastSquares, Design::default())?;
    /// assert!(matches!(Way::usual(&smooth), Way::SecondOrder));
    /// let not_convex = Linear::new(table, Loss::Tukey { scale: 4.0 }, Design::default())?;
    /// assert!(matches!(Way::usual(&not_convex), Way::Method(_)));
    /// # Ok::<(), pasta_opt::table::TableError>(())
    /// ```
    pub fn usual(linear: &Linear) -> Self {
        if Plan::is_quickest(linear) {
            Self::SecondOrder
        } else {
            Self::Method(Engine::Auto { target: None })
        }
    }
}

/// The penalty of a second fit of classes where none was given and the loss has no minimiser without one, since they can be separated, some or all of them. Small enough to leave standardised weights of up to 100 nearly free.
pub const PENALTY: f64 = 1e-4;
/// Passes that a look for directions without a minimiser may take.
const LOOK_PASSES: u128 = 50;

/// The result of a fit.
#[derive(Debug)]
#[non_exhaustive]
pub struct Fitted {
    /// The gate, with its ledger.
    pub gate: Gate,
    /// The coordinates: see [`Linear::raw_weights`].
    pub point: Vec<f64>,
    /// Why the method ended.
    pub stop: Stop,
    /// Steps, or rounds, of the method.
    pub steps: u64,
    /// The gradient that was asked for.
    pub target: f64,
    /// f at the start.
    pub start: Exactly,
    /// f at the point.
    pub end: Exactly,
    /// By how much f can be above its least value at the point, where a loss with kinks was fitted by second-order steps: see [`crate::kinks`]; or f with a term by its duality gap: see
    /// [`crate::proximal`]. The target is then one for this number.
    pub gap: Option<f64>,
    /// True if a term was part of the fit: the objectives include it, and gradients are |x - prox(x - grad f)|.
    pub has_term: bool,
    /// What the point is worth.
    pub verdict: Verdict,
    /// Features whose weights the rows do not decide, in their order: see [`LeftOut`].
    pub left_out: Vec<LeftOut>,
}

/// A feature that was left out of a fit, with weight 0: others say all that it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Its place among the [features](Linear::feature_names), or the number of features for the intercept.
    pub feature: usize,
    /// Why it was left out.
    pub why: Redundant,
}

/// Why the rows do not decide the weight of a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Redundant {
    /// It is the same in all rows.
    Constant,
    /// It is a combination of the features before it, up to rounding.
    Dependent,
}

impl LeftOut {
    /// Those of a table whose columns a walk has looked at, or has not.
    fn of(linear: &Linear, looked: Option<&[usize]>) -> Vec<Self> {
        let constant = linear.constant_features();
        let dependent = looked.unwrap_or_default().iter().filter(|feature| !constant.contains(feature));
        let mut all: Vec<Self> =
            dependent.map(|feature| Self { feature: *feature, why: Redundant::Dependent }).collect();
        all.extend(constant.iter().map(|feature| Self { feature: *feature, why: Redundant::Constant }));
        all.sort_unstable_by_key(|left_out| left_out.feature);
        all
    }

    /// What to say about those of a fit, given the names of the features; `None` if there are none.
    ///
    /// ```
    /// use pasta_opt::fit::{LeftOut, Redundant};
    ///
    /// let names = ["a", "b", "c"].map(str::to_owned);
    /// let left_out = [LeftOut { feature: 2, why: Redundant::Dependent }];
    /// let words = "the minimiser is not unique: rank 2 of 3; left out, with weight 0: c (depends on columns before it)";
    /// assert_eq!(LeftOut::words(&left_out, &names).as_deref(), Some(words));
    /// ```
    pub fn words(left_out: &[Self], names: &[String]) -> Option<String> {
        let of = |why: Redundant, one: &str, many: &str| {
            let mine = left_out.iter().filter(|left_out| left_out.why == why);
            let name = |left_out: &Self| names.get(left_out.feature).map_or("the intercept", String::as_str);
            let named: Vec<&str> = mine.map(name).collect();
            let more = named.len().saturating_sub(MOST_NAMED);
            let list = named[..named.len() - more].join(", ");
            match (named.len(), more) {
                (0, _) => None,
                (1, _) => Some(format!("{list} ({one})")),
                (_, 0) => Some(format!("{list} ({many})")),
                _ => Some(format!("{list} and {more} more ({many})")),
            }
        };
        let dependent =
            of(Redundant::Dependent, "depends on columns before it", "depend on columns before them");
        let constant = of(Redundant::Constant, "constant", "constant");
        let columns = left_out.iter().filter(|left_out| left_out.feature < names.len()).count();
        let rank = names.len() - columns;
        let unique = dependent
            .as_ref()
            .map(|_| format!("the minimiser is not unique: rank {rank} of {}; ", names.len()));
        let parts: Vec<String> = [dependent, constant].into_iter().flatten().collect();
        let parts = (!parts.is_empty()).then(|| parts.join(", "))?;
        Some(format!("{}left out, with weight 0: {parts}", unique.unwrap_or_default()))
    }
}

/// Names of features that are left out that are said.
const MOST_NAMED: usize = 12;

/// Why a fit failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FitError {
    /// The budget is too small.
    #[error("a budget of {budget} rows is less than {passes} passes over {rows} rows")]
    Budget {
        /// The budget.
        budget: u128,
        /// The passes that are needed at least.
        passes: u128,
        /// The rows of the table.
        rows: u128,
    },
    /// The method could not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Second-order steps do not fit the loss or the size of the table.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The checkpoint cannot be gone on with.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The flag to stop was set; what has been done by then can be saved, unless that is nothing.
    #[error("interrupted")]
    Interrupted(Option<Box<Run>>),
    /// The gate gave no answer: numbers overflowed at the start or the end, or the oracle failed.
    #[error(transparent)]
    Halt(Halt),
}

impl From<RunError> for FitError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Start(StartError::Table(error)) => Self::Table(error),
            RunError::Start(error) => Self::Start(error),
            RunError::Checkpoint(error) => Self::Checkpoint(error),
            other => Self::Checkpoint(CheckpointError::Settings { what: other.to_string() }),
        }
    }
}

impl From<Halt> for FitError {
    fn from(halt: Halt) -> Self {
        match halt {
            Halt::Interrupted => Self::Interrupted(None),
            other => Self::Halt(other),
        }
    }
}

impl FitError {
    /// Whether the flag to stop was set.
    pub fn is_interrupted(&self) -> bool {
        matches!(self, Self::Interrupted(_))
    }

    /// Whether the gradient is no number at the start or the end.
    pub fn is_not_finite(&self) -> bool {
        matches!(self, Self::Halt(Halt::NotFinite { .. }))
    }
}

/// A table whose loss has the scale of the errors of its labels.
#[derive(Debug)]
#[non_exhaustive]
pub struct AtScale {
    /// The table with that loss.
    pub linear: Arc<Linear>,
    /// The standard deviation of the errors: 1.4826 times the median size of the residuals of an absolute fit, or that of the labels around their median where residuals are none
    /// to speak of.
    pub deviation: f64,
    /// What reading for it has cost.
    pub gate: Gate,
}

/// What residuals have at least, over the deviation of the labels: less is a perfect fit, and rounding.
const PERFECT: f64 = 1e-8;
/// Passes of such a fit where there is no quick way.
const ROUGH_PASSES: u128 = 60;

impl AtScale {
    /// Gives a loss that has a [scale](crate::table::Loss::for_deviation) that of the errors, so that labels in other units make the same model; `None` for
    /// other losses. The errors are the residuals of an absolute fit of the same columns without a penalty, which reads at most `budget` rows.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use pasta_opt::fit::AtScale;
    /// use pasta_opt::table::{Dense, Design, Features, Linear, Loss, Table};
    ///
    /// // Errors of 1, 3 and 5 around the line 10 a; their median is 3.
    /// let features = Dense { rows: 6, columns: 1, values: vec![0.0, 0.0, 0.0, 0.0, 0.0, 0.0].into() };
    /// let table = Table::new(Features::Dense(features), Arc::new(vec![-5.0, -3.0, -1.0, 1.0, 3.0, 5.0]), None, Vec::new())?;
    /// let linear = Arc::new(Linear::new(Arc::new(table), Loss::Huber { delta: 1.0 }, Design::default())?);
    /// let Some(at) = AtScale::of(&linear, None, 1, Arc::default())? else { return Err("it has a scale".into()) };
    /// assert!((2.0..7.0).contains(&at.deviation), "{}", at.deviation);
    /// assert_eq!(at.linear.loss(), Loss::Huber { delta: 1.345 * at.deviation });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of(
        linear: &Arc<Linear>,
        budget: Option<u128>,
        seed: u64,
        stop: Arc<AtomicBool>,
    ) -> Result<Option<Self>, FitError> {
        let loss = linear.loss();
        if loss.for_deviation(1.0).is_none() {
            return Ok(None);
        }
        let (table, scaling) = (Arc::clone(linear.table()), linear.scaling().cloned());
        let design = Design { penalty: 0.0, ..linear.design() };
        let absolute = Arc::new(Linear::scaled(table, Loss::Absolute, design, scaling)?);
        let of_labels = linear.deviation_of_labels();
        let passes = linear.table().rows() as u128 * ROUGH_PASSES;
        let is_quick = kinks::is_quickest(&absolute);
        let budget = if is_quick { budget } else { Some(budget.map_or(passes, |budget| budget.min(passes))) };
        let fit = Fit { way: Way::usual(&absolute), start: None, target: None, budget, seed };
        let mut gate = Gate::over(Arc::clone(linear) as _, seed);
        let mut deviation = match fit.run(&absolute, Arc::clone(&absolute) as _, stop, &mut |_| ()) {
            Ok(fitted) => {
                gate.merge(&fitted.gate);
                let scores = absolute.raw_weights(&fitted.point).scores(&linear.table().features)?;
                let labels = (*linear.table().labels).as_ref();
                let residuals: Vec<f64> = scores.iter().zip(labels).map(|(z, y)| z - y).collect();
                linear.robust_deviation(&residuals)
            }
            // Too few rows may be read.
            Err(FitError::Budget { .. }) => of_labels,
            Err(FitError::Interrupted(_)) => return Err(FitError::Interrupted(None)),
            Err(error) => return Err(error),
        };
        if deviation.is_nan() || deviation <= PERFECT * of_labels {
            deviation = of_labels;
        }
        // Labels that are all the same leave no scale, and need none.
        deviation = if deviation > 0.0 { deviation } else { 1.0 };
        let loss = loss.for_deviation(deviation).unwrap_or(loss);
        Ok(Some(Self { linear: Arc::new(linear.with_loss(loss)?), deviation, gate }))
    }
}

/// f and its gradient at x, by a pass.
pub fn exactly(gate: &mut Gate, role: Role, x: &[f64]) -> Result<Exactly, Halt> {
    let (objective, gradient) = Newton::evaluate(gate, role, x)?;
    Ok(Exactly::from((objective, squared_norm(&gradient).sqrt())))
}

/// Sees a fit after every round.
pub type Watch<'a> = &'a mut dyn FnMut(&Run);

/// Where a fit begins.
struct Begun {
    point: Vec<f64>,
    /// The fit that ended there.
    first: Option<Fitted>,
}

impl Begun {
    /// Begins at [`Linear::best_constant`], or where the fit of the loss's convex kin ends: from there a loss that is flat far out may see no row at all.
    fn of(linear: &Arc<Linear>, budget: u128, seed: u64, stop: Arc<AtomicBool>) -> Result<Self, FitError> {
        let Some(kin) = linear.loss().convex_surrogate() else {
            return Ok(Self { point: linear.best_constant(), first: None });
        };
        let kin = Arc::new(linear.with_loss(kin)?);
        let fit = Fit { way: Way::usual(&kin), start: None, target: None, budget: Some(budget), seed };
        let first = fit.run(&kin, Arc::clone(&kin) as _, stop, &mut |_| ()).map_err(|error| match error {
            // Its checkpoint would be that of another loss.
            FitError::Interrupted(_) => FitError::Interrupted(None),
            other => other,
        })?;
        Ok(Self { point: first.point.clone(), first: Some(first) })
    }
}

impl Fit {
    /// Passes that it takes at least: the start, a step and the end. With a term, the start, its gap and that of the end, a matrix and a step. From where the convex kin ends, twice as many.
    fn passes(&self, linear: &Linear) -> u128 {
        match self.way {
            Way::Proximal(_) => 8,
            _ if self.start.is_none() && linear.loss().convex_surrogate().is_some() => 6,
            _ => 3,
        }
    }

    /// What is asked for, of the rows of a table.
    fn chosen(&self, linear: &Arc<Linear>, scale: Option<f64>) -> Chosen {
        let by = match &self.way {
            Way::SecondOrder => By::SecondOrder,
            Way::Proximal(term) => By::Proximal(Arc::new(term.clone())),
            Way::Method(engine) => By::Method(Box::new(engine.clone())),
        };
        let name = if matches!(by, By::Method(_)) { AUTO } else { EXACT };
        let plan = Plan { linear: Arc::clone(linear), by, target: self.target, scale, rule: None };
        Chosen { name, engine: Engine::Fit(plan), promise: None, fallback: false }
    }

    fn task(&self, budget: u128) -> Task {
        Task {
            method: MethodSpec::Usual,
            budget: Some(budget),
            seed: self.seed,
            check: false,
            pilot: 0,
            ..Task::default()
        }
    }

    /// Runs the method to its end, or until `stop` is set. `oracle` is the table itself, or whatever answers for it. `watch` is shown the
    /// run after every round.
    pub fn run(
        mut self,
        linear: &Arc<Linear>,
        oracle: Arc<dyn Oracle>,
        stop: Arc<AtomicBool>,
        watch: Watch<'_>,
    ) -> Result<Fitted, FitError> {
        let rows = linear.table().rows() as u128;
        let budget = self.budget.unwrap_or_else(|| usual_budget(linear));
        let passes = self.passes(linear);
        if budget < passes * rows {
            return Err(FitError::Budget { budget, passes, rows });
        }
        let begun = match (self.start.take(), &self.way) {
            (Some(point), _) => Begun { point, first: None },
            (None, Way::Proximal(_)) => Begun { point: linear.best_constant(), first: None },
            (None, _) => Begun::of(linear, budget - 3 * rows, self.seed, Arc::clone(&stop))?,
        };
        let scale = begun.first.as_ref().map(|first| first.target / RELATIVE);
        let problem = of_table(linear, oracle, begun.point);
        let mut run = Run::begin(problem, self.task(budget), self.chosen(linear, scale), stop)?;
        if let Some(first) = &begun.first {
            run.count(&first.gate);
        }
        followed(run, linear, watch)
    }

    /// Goes on with a run that was interrupted, from its checkpoint: the same way, table and seed.
    pub fn resume(
        self,
        linear: &Arc<Linear>,
        oracle: Arc<dyn Oracle>,
        checkpoint: &mut Checkpoint,
        stop: Arc<AtomicBool>,
        watch: Watch<'_>,
    ) -> Result<Fitted, FitError> {
        let budget = self.budget.unwrap_or_else(|| usual_budget(linear));
        let problem = of_table(linear, oracle, linear.start());
        let run = Run::go_on(problem, self.task(budget), self.chosen(linear, None), checkpoint, stop)?;
        followed(run, linear, watch)
    }
}

/// The rows of a table, as whatever answers for them.
fn of_table(linear: &Arc<Linear>, oracle: Arc<dyn Oracle>, start: Vec<f64>) -> Arc<Problem> {
    let table = Some(KnownTable::new(Arc::clone(linear)));
    Arc::new(Problem { table, ..Problem::of(oracle, start) })
}

/// Follows a fit to its end.
fn followed(mut run: Run, linear: &Linear, watch: Watch<'_>) -> Result<Fitted, FitError> {
    let stop = run.follow(|run, event| {
        // The look at its start is no round.
        if !matches!(event, Event::Looked | Event::Checked) {
            watch(run);
        }
        ControlFlow::Continue(())
    })?;
    if stop == Stop::Interrupted {
        let has_begun = run.view().fit.is_some();
        return Err(FitError::Interrupted(has_begun.then(|| Box::new(run))));
    }
    let view = run.view();
    let asked = |role| match stop {
        Stop::NotFinite(mixed) => Halt::Mixed(mixed),
        _ => Halt::NotFinite { role, step: 0 },
    };
    let log = *view.fit.ok_or_else(|| asked(Role::Look))?;
    let end = log.end.ok_or_else(|| asked(Role::Certificate))?;
    let has_term = run.chosen().engine.has_term();
    let (point, steps) = (view.point.to_vec(), view.step);
    let left_out = LeftOut::of(linear, view.left_out);
    let (FitLog { start, target, .. }, Ending { at, gap, verdict, .. }) = (log, end);
    let gate = run.into_gate();
    Ok(Fitted { gate, point, stop, steps, target, start, end: at, gap, has_term, verdict, left_out })
}

impl Fitted {
    /// Whether the loss falls for ever from the end of a fit, so that it has no minimiser; false where a penalty gives it one, and where nothing is seen with
    /// less work than a few dozen passes, or within the budget that was asked for. What the look reads is added to the ledger.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use pasta_opt::fit::{Fit, Way};
    /// use pasta_opt::table::{Dense, Design, Features, Linear, Loss, Table};
    ///
    /// // Counts that are zero wherever the column is not: its weight would be minus infinity.
    /// let features = Dense { rows: 4, columns: 1, values: vec![0.0, 0.0, 1.0, 1.0].into() };
    /// let table = Table::new(Features::Dense(features), Arc::new(vec![1.0, 2.0, 0.0, 0.0]), None, Vec::new())?;
    /// let linear = Arc::new(Linear::new(Arc::new(table), Loss::Poisson, Design::default())?);
    /// let fit = Fit { way: Way::usual(&linear), start: None, target: None, budget: None, seed: 1 };
    /// let mut fitted = fit.run(&linear, linear.clone(), Arc::default(), &mut |_| ())?;
    /// assert!(fitted.has_no_minimiser(&linear, None, Arc::default())?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn has_no_minimiser(
        &mut self,
        linear: &Arc<Linear>,
        budget: Option<u128>,
        stop: Arc<AtomicBool>,
    ) -> Result<bool, Halt> {
        if self.has_term {
            // Weights are kept finite, or the loss does that; the intercept alone has nothing beside the labels.
            return Ok(Tails::of(linear).is_some_and(|tails| tails.intercept_alone()));
        }
        let rows = linear.table().rows() as u128;
        // A budget that was asked for is never overdrawn, and what it bought is not judged.
        let short = budget.is_some() && self.gate.left() < LOOK_PASSES * rows;
        if short {
            return Ok(false);
        }
        let most = budget.map(|_| LOOK_PASSES * rows);
        let mut gate = Gate::over(linear.clone(), self.gate.seed()).with_budget(most).with_stop(stop);
        let falls = match newton::has_no_minimiser(linear, &mut gate, &self.point) {
            Err(Halt::OverBudget { .. }) => None,
            other => other?,
        };
        self.gate.absorb(Role::Look, &gate);
        Ok(falls == Some(true))
    }
}
