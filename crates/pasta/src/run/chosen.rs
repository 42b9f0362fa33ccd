//! A method with its settings, ready for a problem, and what a theorem promises of it there.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::method::{self, AUTO, EXACT, Engine, MethodError, Plan as FitPlan, Values};
use crate::objective::{Facts, Measure, Objective};
use crate::recipe::{self, Constant, Constants, Plan, RecipeError, RecipeRow};
use crate::schedule::ScheduleError;
use crate::table::TableError;
use crate::target::Target;
use crate::walk::StopRule;

use super::problem::{KnownTable, Problem, Truth};

/// What the user chooses, as against what is true of the problem.
pub const CHOICES: [Constant; 3] = [Constant::Target, Constant::Variance, Constant::Lambda];

/// A method that is ready to run on a problem.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// Its name in [`METHODS`](method::METHODS).
    pub name: &'static str,
    /// What runs.
    pub engine: Engine,
    /// For a recipe.
    pub promise: Option<Promise>,
    /// True if the method without constants runs beside a recipe, and the certificate chooses.
    pub fallback: bool,
}

/// A recipe's plan, and the reasons against its promise.
#[derive(Debug, Clone)]
pub struct Promise {
    /// What it was planned from.
    pub constants: Constants,
    /// The plan, with its guarantee and its cost.
    pub plan: Plan,
    /// Reasons why the promise may not hold for this problem; that some constants are only `estimated` is one.
    pub doubts: Vec<String>,
    /// The constants that were measured and not proved.
    pub estimated: Vec<Constant>,
    /// True if the constants are proved about the problem, and not given.
    pub proved: bool,
}

/// Where the constants of a recipe come from.
#[derive(Debug, Clone, PartialEq)]
pub enum Given {
    /// They are proved about the problem; only [choices](CHOICES) are given.
    Proved(Constants),
    /// They are given, and some of them may be estimates.
    Declared {
        /// All that is given.
        constants: Constants,
        /// Those that were measured.
        estimated: Vec<Constant>,
    },
}

/// Why a method cannot be run with what was given.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ChoiceError {
    /// No method has this name.
    #[error("there is no method {name:?}; there are {}", names().join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// The method has no such setting.
    #[error("{method} has no setting {setting}")]
    Setting {
        /// The method.
        method: &'static str,
        /// What was given.
        setting: String,
    },
    /// Settings do not make the method.
    #[error(transparent)]
    Method(#[from] MethodError),
    /// Constants do not make a plan.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// Constants at the edge of the doubles may be admitted and still give a step size of zero.
    #[error("{recipe}: {error}")]
    Schedule {
        /// The recipe.
        recipe: &'static str,
        /// Which number, and its range.
        error: ScheduleError,
    },
    /// The constants of a table cannot be proved.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The method reads the rows of a table, and there is none.
    #[error("{name} is for tables of data, and {words} is none")]
    NoTable {
        /// The method.
        name: &'static str,
        /// The problem.
        words: String,
    },
    /// Nothing would end the run.
    #[error("{AUTO} needs a target or a budget")]
    NoEnd,
    /// A fall-back without a certificate.
    #[error("a certificate chooses between a recipe and its fall-back, and none is asked for")]
    NoCertificate,
    /// The method stops on a certificate, and none is asked for.
    #[error("{name} stops on a certificate, and none is asked for: give a target")]
    NoTarget {
        /// The method.
        name: &'static str,
    },
    /// Nothing is proved from which the recipe could be planned.
    #[error("{why}")]
    NotProved {
        /// Why not.
        why: String,
    },
}

/// The names of all methods.
pub fn names() -> Vec<&'static str> {
    method::METHODS.iter().map(|method| method.name).collect()
}

impl Chosen {
    /// The method without constants.
    pub fn auto(target: Option<f64>) -> Self {
        Self { name: AUTO, engine: Engine::Auto { target }, promise: None, fallback: false }
    }

    /// Second-order steps on the rows of a table.
    pub fn exact(problem: &Problem) -> Result<Self, ChoiceError> {
        let table = problem.table.as_ref();
        let none = || ChoiceError::NoTable { name: EXACT, words: problem.words.clone() };
        let plan = FitPlan::exact(Arc::clone(table.ok_or_else(none)?.linear()))?;
        Ok(Self { name: EXACT, engine: Engine::Fit(plan), promise: None, fallback: false })
    }

    /// The quickest method that needs no constants: [`exact`](Self::exact) for a table with a loss that it fits and no term, otherwise the method without constants.
    pub fn usual(problem: &Problem) -> Self {
        let is_exact = |table: &KnownTable| problem.term.is_none() && FitPlan::is_quickest(table.linear());
        let exact =
            problem.table.as_ref().filter(|table| is_exact(table)).and_then(|_| Self::exact(problem).ok());
        exact.unwrap_or_else(|| Self::auto(None))
    }

    /// A method that is no recipe, with its settings by name, for `steps` steps of `batch` samples.
    pub fn named(
        name: &str,
        settings: &BTreeMap<String, f64>,
        steps: u64,
        batch: u64,
    ) -> Result<Self, ChoiceError> {
        let method = method::find(name).ok_or_else(|| ChoiceError::Unknown { name: name.into() })?;
        let mut values = Values::default();
        for (setting, value) in settings {
            let known = method.settings().iter().find(|known| known.name == setting);
            let unknown = || ChoiceError::Setting { method: method.name, setting: setting.clone() };
            values.set(known.ok_or_else(unknown)?.name, *value);
        }
        let engine = method.engine(&values, steps, batch)?;
        Ok(Self { name: method.name, engine, promise: None, fallback: false })
    }

    /// A recipe with its constants, on a problem.
    pub fn recipe(row: &'static RecipeRow, given: Given, problem: &Problem) -> Result<Self, ChoiceError> {
        let (constants, estimated, proved) = match given {
            Given::Declared { constants, estimated } => (constants, estimated, false),
            Given::Proved(choices) => {
                let mut constants = row.relevant(&proved_for(row, problem)?);
                choices.known().for_each(|(constant, value)| constants.set(constant, value));
                (constants, Vec::new(), true)
            }
        };
        let plan = row.plan(&constants)?;
        plan.schedule.check().map_err(|error| ChoiceError::Schedule { recipe: row.name, error })?;
        let mut doubts = match &problem.truth {
            Some(truth) if !proved => doubts(row, truth, &constants),
            _ => Vec::new(),
        };
        doubts.extend(estimates(&estimated));
        if problem.term.is_some() {
            doubts.push(format!("no promise with a term: {} is about f alone", row.reference));
        }
        let engine = Engine::Schedule(plan.schedule.clone());
        let promise = Some(Promise { constants, plan, doubts, estimated, proved });
        Ok(Self { name: row.name, engine, promise, fallback: false })
    }

    /// Gives the method without constants something to aim at.
    pub fn aim(&mut self, at: Option<f64>) {
        if let Engine::Auto { target } = &mut self.engine {
            *target = at;
        }
    }

    /// Gives the rule to a method that makes its certificates itself: SGD with every step size at once, or a recipe that asks for the method without
    /// constants beside it.
    pub fn hedge(&mut self, rule: StopRule) {
        if let Engine::Universal { rule: own } = &mut self.engine {
            *own = Some(rule);
        }
        if let Some(Promise { plan, .. }) = self.promise.as_ref().filter(|_| self.fallback) {
            self.engine = Engine::Hedged { schedule: plan.schedule.clone(), rule };
        }
    }

    /// Gives a fit its target, a number or a share of what is found at the start, and the rule of its certificate.
    pub(crate) fn fit_to(&mut self, target: Option<Target>, rule: Option<StopRule>) {
        self.engine.aim_fit(target, rule);
    }

    /// True if it has no end of its own.
    pub fn is_endless(&self) -> bool {
        matches!(self.engine, Engine::Auto { .. } | Engine::Universal { .. })
    }

    /// The target for the norm of the gradient, if it is a recipe that promises one.
    pub fn gradient_target(&self) -> Option<f64> {
        let Promise { constants, plan, .. } = self.promise.as_ref()?;
        let promised = plan.guarantee.measure == Measure::GradientSquared;
        constants.get(Constant::Target).filter(|_| promised)
    }

    /// The same method for a gradient of norm `target`, if it is a recipe that promises one and admits it; as it is, finer
    /// than asked, otherwise.
    pub fn aimed_at(&self, target: f64) -> Engine {
        match &self.engine {
            Engine::Auto { .. } => return Engine::Auto { target: Some(target) },
            Engine::Universal { rule } => {
                return Engine::Universal { rule: rule.map(|rule| StopRule { target, ..rule }) };
            }
            Engine::Fit(plan) => {
                return Engine::Fit(FitPlan { target: Some(Target::Norm(target)), ..plan.clone() });
            }
            _ => {}
        }
        let aimed = || {
            self.gradient_target()?;
            let Promise { constants, plan, .. } = self.promise.as_ref()?;
            let mut constants = *constants;
            constants.set(Constant::Target, target);
            Some(Engine::Schedule(recipe::find(plan.recipe)?.plan(&constants).ok()?.schedule))
        };
        aimed().unwrap_or_else(|| self.engine.clone())
    }

    /// The method of a pilot for a certificate of `target`, where the run's is of `certified`. It has no end: a coarse target has a short plan, which
    /// would end before it could be certified.
    pub fn pilot(&self, target: f64, certified: f64) -> Engine {
        self.aimed_at(self.over(certified) * target).endless()
    }

    /// How the target of a recipe for the gradient compares to that of the certificate; 1 where there are not two.
    pub fn over(&self, certified: f64) -> f64 {
        self.gradient_target().map_or(1.0, |target| target / certified)
    }

    /// The most samples that it will draw, or is expected to draw; `None` where that is not planned.
    pub fn planned_samples(&self) -> Option<f64> {
        match (&self.promise, &self.engine) {
            // What runs beside a recipe has no plan.
            (_, Engine::Hedged { .. } | Engine::Universal { .. } | Engine::Fit(_))
            | (None, Engine::Schedule(_) | Engine::Auto { .. }) => None,
            (Some(promise), _) => Some(promise.plan.cost.samples),
            (None, Engine::Baseline(settings)) => Some(settings.steps as f64 * settings.batch as f64),
        }
    }
}

/// What is proved about the problem, or why the recipe cannot rest on that.
fn proved_for(row: &RecipeRow, problem: &Problem) -> Result<Constants, ChoiceError> {
    let refuse = |why: String| ChoiceError::NotProved { why };
    let Some((mut proved, facts)) = problem.proved()? else {
        return Err(refuse("nothing is proved about this problem; give a table [recipe.constants]".into()));
    };
    let name = || problem.objective().map_or_else(|| problem.words.clone(), Objective::identity);
    let other_growth = || problem.truth.as_ref().and_then(other_growth);
    if let Some(doubt) = not_covered(row, &facts, name).or_else(other_growth) {
        return Err(refuse(doubt));
    }
    if let Some(mu) = (row.mu)(&facts) {
        proved.set(Constant::Mu, mu);
    }
    Ok(proved)
}

/// That constants were measured is a reason why the promise may fail.
fn estimates(estimated: &[Constant]) -> Option<String> {
    let names: Vec<_> = estimated.iter().map(|constant| constant.name()).collect();
    match names.as_slice() {
        [] => None,
        [name] => Some(format!("{name} is an estimate")),
        _ => Some(format!("{} are estimates", names.join(", "))),
    }
}

fn proved_constants(row: &RecipeRow, truth: &Truth) -> Constants {
    let mut proved = truth.proved();
    if let Some(mu) = (row.mu)(&truth.objective().facts()) {
        proved.set(Constant::Mu, mu);
    }
    proved
}

/// Why BG-0 may fail: the noise grows with another power of the distance than the square.
fn other_growth(truth: &Truth) -> Option<String> {
    let exponent = truth.exponent();
    let consequence = match exponent {
        2.0 => return None,
        above if above > 2.0 => "so no B and b bound it: BG-0 fails",
        _ => "and BG-0 is proved only for the power 2",
    };
    Some(format!("the noise grows with the distance to the power {exponent} (variance), {consequence}"))
}

/// Why the theorem may say nothing about this problem.
fn not_covered(row: &RecipeRow, facts: &Facts, problem: impl FnOnce() -> String) -> Option<String> {
    (!(row.applies)(facts)).then(|| {
        let (problem, name, what) = (problem(), row.name, row.for_problems);
        format!("{name} is not proved to cover {problem}; it is for: {what}")
    })
}

/// The truth is itself a rounded number: a declared constant may miss it by this much, relatively.
const ROUNDING: f64 = 1e-12;

/// Why the promise may fail although the constants as given admit it.
fn doubts(row: &RecipeRow, truth: &Truth, given: &Constants) -> Vec<String> {
    let proved = proved_constants(row, truth);
    let mut doubts: Vec<_> = not_covered(row, &truth.objective().facts(), || truth.objective().identity())
        .into_iter()
        .chain(other_growth(truth))
        .collect();
    for (constant, value) in given.known().filter(|(c, _)| !CHOICES.contains(c)) {
        if let Some(truth) = proved.get(constant) {
            // mu is a bound from below, all the others are bounds from above.
            let too_bold = match constant {
                Constant::Mu => value > truth * (1.0 + ROUNDING),
                _ => value < truth * (1.0 - ROUNDING),
            };
            if too_bold {
                doubts.push(format!("{} = {value} is declared, but {truth} is true", constant.name()));
            }
        }
    }
    doubts
}
