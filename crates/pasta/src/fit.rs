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
//! let fitted = fit.run(&linear, linear.clone(), Arc::default(), &mut |_, _| ())?;
//! assert_eq!(fitted.verdict, Verdict::Certified);
//! let model = linear.raw_weights(&fitted.point);
//! assert!((model.weights[0] - 3.0).abs() < 1e-5 && (model.intercepts[0] + 1.0).abs() < 1e-5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::draws::Role;
use crate::gate::{Gate, Halt};
use crate::kernels::squared_norm;
use crate::kinks::{self, Kinks};
use crate::method::{self, Engine};
use crate::newton::{self, Newton, Until};
use crate::oracle::Oracle;
use crate::proximal::Proximal;
use crate::state::StartError;
use crate::stop::Stop;
use crate::table::{Class, Design, Kink, Linear, Loss, TableError, Tails};
use crate::target::Target;
use crate::term::Separable;
use crate::walk::{Advance, Walk};

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
    /// From where a fit of the same table was interrupted.
    Resume(Box<Checkpoint>),
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
        if newton::applies(linear).is_ok() || kinks::is_quickest(linear) {
            Self::SecondOrder
        } else {
            Self::Method(Engine::Auto { target: None })
        }
    }
}

/// How much smaller than at the start the gradient shall be, unless a target is given.
pub const RELATIVE: f64 = 1e-6;
/// The penalty of a second fit of classes where none was given and the loss has no minimiser without one, since they can be separated, some or all of them. Small enough to leave standardised weights of up to 100 nearly free.
pub const PENALTY: f64 = 1e-4;
/// Passes over the table, unless a budget is given; more over a small one, as long as they read no more values than this.
const PASSES: u128 = 2000;
const VALUES: u128 = 200_000_000;
/// What rounding makes of the gradient of labels, at most.
const ROUNDING: f64 = 1e-8;
/// Passes that a look for directions without a minimiser may take.
const LOOK_PASSES: u128 = 50;

/// Rows that a fit without a budget may read: 2000 passes, or more over a small table.
pub fn usual_budget(linear: &Linear) -> u128 {
    let rows = linear.table().rows() as u128;
    let entries = linear.table().features.entries() as u128 * linear.loss().outputs() as u128;
    PASSES.max(VALUES / entries.max(1)).min(50 * PASSES) * rows
}

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

/// f and its gradient, by a pass over the rows.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Exactly {
    /// f, the penalty included.
    pub objective: f64,
    /// |grad f|.
    pub gradient: f64,
}

/// What an exact pass says about the end of a fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The gradient, or the gap of a loss with kinks, is at most the target.
    Certified,
    /// It is larger.
    NotCertified,
    /// It is larger, but the loss has kinks, where the gradient need not be small.
    Kinks,
    /// f is larger than at the start, whatever its gradient: far out a loss that is not convex is flat.
    Worse,
}

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
    Interrupted(Option<Box<Unfinished>>),
    /// The gate gave no answer: numbers overflowed at the start or the end, or the oracle failed.
    #[error(transparent)]
    Halt(Halt),
}

impl From<Halt> for FitError {
    fn from(halt: Halt) -> Self {
        match halt {
            Halt::Interrupted => Self::Interrupted(None),
            other => Self::Halt(other),
        }
    }
}

/// A fit that was interrupted.
pub struct Unfinished {
    /// The gate, with its ledger.
    pub gate: Gate,
    /// The method, where it stands.
    pub walk: Box<dyn Walk>,
}

impl fmt::Debug for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unfinished").field("gate", &self.gate).finish_non_exhaustive()
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
        let mut deviation = match fit.run(&absolute, Arc::clone(&absolute) as _, stop, &mut |_, _| ()) {
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
    Ok(Exactly { objective, gradient: squared_norm(&gradient).sqrt() })
}

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
        let first =
            fit.run(&kin, Arc::clone(&kin) as _, stop, &mut |_, _| ()).map_err(|error| match error {
                // Its checkpoint would be that of another loss.
                FitError::Interrupted(_) => FitError::Interrupted(None),
                other => other,
            })?;
        Ok(Self { point: first.point.clone(), first: Some(first) })
    }
}

impl Fit {
    /// Runs the method to its end, or until `stop` is set. `oracle` is the table itself, or whatever answers for it. `watch` is shown the
    /// gate and the walk after every round.
    pub fn run(
        self,
        linear: &Arc<Linear>,
        oracle: Arc<dyn Oracle>,
        stop: Arc<AtomicBool>,
        watch: &mut dyn FnMut(&mut Gate, &dyn Walk),
    ) -> Result<Fitted, FitError> {
        if let Way::Proximal(term) = self.way {
            let with =
                WithTerm { term: Arc::new(term), start: self.start, target: self.target, seed: self.seed };
            return with.run(linear, oracle, self.budget, stop, watch);
        }
        let rows = linear.table().rows() as u128;
        let budget = self.budget.unwrap_or_else(|| usual_budget(linear));
        let passes = if self.start.is_none() && linear.loss().convex_surrogate().is_some() { 6 } else { 3 };
        if budget < passes * rows {
            return Err(FitError::Budget { budget, passes, rows });
        }
        let mut gate =
            Gate::over(Arc::clone(&oracle), self.seed).with_budget(budget).with_stop(Arc::clone(&stop));
        let begun = match self.start {
            Some(point) => Begun { point, first: None },
            None => Begun::of(linear, budget - 3 * rows, self.seed, Arc::clone(&stop))?,
        };
        if let Some(first) = &begun.first {
            gate.merge(&first.gate);
        }
        let x0 = begun.point;
        let here = Newton::evaluate(&mut gate, Role::Look, &x0)?;
        let start = Exactly { objective: here.0, gradient: squared_norm(&here.1).sqrt() };
        // A gradient that is rounding of the labels alone is no measure.
        let of_start = || start.gradient.max(ROUNDING * linear.slope_of_labels());
        let first_gradient = begun.first.map_or_else(of_start, |first| first.target / RELATIVE);
        let is_second_order = match &self.way {
            Way::SecondOrder => true,
            Way::Resume(checkpoint) => checkpoint.has(Kinks::SECTION),
            Way::Method(_) | Way::Proximal(_) => false,
        };
        let kink = Kink::of(linear.loss()).filter(|_| is_second_order);
        // Where there is one, f is told by its gap.
        let typical = kink.map(|kink| linear.typical_loss(kink, &x0));
        let at_start = typical.unwrap_or(first_gradient);
        let target = match self.target {
            Some(Target::Norm(norm)) => norm,
            Some(Target::OfStart(share)) => share * at_start,
            None => RELATIVE * at_start,
        };
        let until = self.target.map_or(Until::Flat(target), |_| Until::Gradient(target));
        let mut walk: Box<dyn Walk> = match self.way {
            Way::Method(Engine::Auto { .. }) => Engine::Auto { target: Some(target) }.start(&gate, &x0)?,
            Way::Method(other) => other.start(&gate, &x0)?,
            Way::Proximal(_) => return Err(FitError::Interrupted(None)),
            Way::SecondOrder => match typical {
                Some(typical) => {
                    Box::new(Kinks::from(Arc::clone(linear), x0, target, start.objective, typical)?)
                }
                None => Box::new(Newton::from(Arc::clone(linear), x0, until, Some(here))?),
            },
            Way::Resume(mut checkpoint) => {
                gate = Gate::resume(oracle, &mut checkpoint)?.with_budget(budget).with_stop(stop);
                if let Some(typical) = typical {
                    let (linear, value) = (Arc::clone(linear), start.objective);
                    Box::new(Kinks::resume(linear, target, value, typical, &mut checkpoint)?)
                } else if checkpoint.has(Newton::SECTION) {
                    Box::new(Newton::resume(Arc::clone(linear), until, &mut checkpoint)?)
                } else {
                    method::resume(&gate, &mut checkpoint)?
                }
            }
        };
        let unfinished = |gate, walk| Err(FitError::Interrupted(Some(Box::new(Unfinished { gate, walk }))));
        // The last pass is the certificate's.
        gate.hold(rows);
        let stop = loop {
            match walk.advance(&mut gate) {
                Ok(Advance::Stop(stop)) => break stop,
                Ok(_) => watch(&mut gate, &walk),
                Err(Halt::Interrupted) => return unfinished(gate, walk),
                Err(halt) => break halt.stop().ok_or(halt)?,
            }
        };
        gate.hold(0);
        let (point, steps, gap) = (walk.view().point.to_vec(), walk.view().step, walk.view().gap);
        let left_out = LeftOut::of(linear, walk.view().left_out);
        let end = match walk.view().exact {
            // The walk's own last pass was over all rows at this point: another would have the same bits.
            Some((objective, gradient)) => Exactly { objective, gradient },
            None => match exactly(&mut gate, Role::Certificate, &point) {
                Err(Halt::Interrupted) => return unfinished(gate, walk),
                end => end?,
            },
        };
        let kinks = matches!(linear.loss().row().class, Class::LipschitzConvex | Class::WeaklyConvex);
        let rounding = 1e-9 * (1.0 + start.objective.abs());
        // Where f is told by its gap, a gradient that is small says nothing more.
        let verdict = match gap.unwrap_or(end.gradient) <= target {
            _ if end.objective > start.objective + rounding => Verdict::Worse,
            small if small && (gap.is_some() || typical.is_none()) => Verdict::Certified,
            _ if kinks => Verdict::Kinks,
            _ => Verdict::NotCertified,
        };
        Ok(Fitted { gate, point, stop, steps, target, start, end, gap, has_term: false, verdict, left_out })
    }
}

/// A fit with a term.
struct WithTerm {
    term: Arc<Separable>,
    start: Option<Vec<f64>>,
    target: Option<Target>,
    seed: u64,
}

impl WithTerm {
    /// Passes that it takes at least: the start, its gap and that of the end, a matrix and a step.
    const PASSES: u128 = 8;

    fn run(
        self,
        linear: &Arc<Linear>,
        oracle: Arc<dyn Oracle>,
        budget: Option<u128>,
        stop: Arc<AtomicBool>,
        watch: &mut dyn FnMut(&mut Gate, &dyn Walk),
    ) -> Result<Fitted, FitError> {
        let rows = linear.table().rows() as u128;
        let (budget, passes) = (budget.unwrap_or_else(|| usual_budget(linear)), Self::PASSES);
        if budget < passes * rows {
            return Err(FitError::Budget { budget, passes, rows });
        }
        let mut gate = Gate::over(oracle, self.seed).with_budget(budget).with_stop(stop);
        let x0 = self.start.unwrap_or_else(|| linear.best_constant());
        let mut walk = Proximal::start(Arc::clone(linear), Arc::clone(&self.term), x0)?;
        let x0 = walk.view().point.to_vec();
        let start = walk.exactly(&mut gate)?;
        let first_gap = walk.look(&mut gate, &x0)?;
        // A start that is the minimum leaves rounding alone.
        let of_gap = |gap: f64| gap.max(RELATIVE * start.0.abs());
        let scale = first_gap.map_or_else(|| start.1.max(ROUNDING * linear.slope_of_labels()), of_gap);
        let target = match self.target {
            Some(Target::Norm(norm)) => norm,
            Some(Target::OfStart(share)) => share * scale,
            None => RELATIVE * scale,
        };
        // The last passes are the certificate's.
        gate.hold(2 * rows);
        let stop = loop {
            match walk.advance(&mut gate) {
                Ok(Advance::Stop(stop)) => break stop,
                Ok(_) => watch(&mut gate, &walk),
                Err(halt) => break halt.stop().ok_or(halt)?,
            }
        };
        gate.hold(0);
        let point = walk.view().point.to_vec();
        let end = walk.exactly(&mut gate)?;
        let gap = match first_gap {
            Some(_) => walk.look(&mut gate, &point)?,
            None => None,
        };
        let rounding = 1e-9 * (1.0 + start.0.abs());
        let verdict = match gap.unwrap_or(end.1) <= target {
            _ if end.0 > start.0 + rounding => Verdict::Worse,
            true => Verdict::Certified,
            false => Verdict::NotCertified,
        };
        let exactly = |(objective, gradient)| Exactly { objective, gradient };
        let (start, end, steps) = (exactly(start), exactly(end), walk.view().step);
        let left_out = LeftOut::of(linear, None);
        Ok(Fitted { gate, point, stop, steps, target, start, end, gap, has_term: true, verdict, left_out })
    }
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
    /// let mut fitted = fit.run(&linear, linear.clone(), Arc::default(), &mut |_, _| ())?;
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
