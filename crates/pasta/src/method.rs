//! All methods by name, one row each: recipes, named special cases of Algorithm 1, and baselines.
//!
//! Programs read this table: what a method is called, what can be set about it, and how it is started or resumed.
//!
//! ```
//! use pasta_opt::method::{Values, find};
//!
//! let adam = find("adam").ok_or("it is there")?;
//! let names: Vec<_> = adam.settings().iter().map(|setting| setting.name).collect();
//! assert_eq!(names, ["eta", "first", "second", "epsilon"]);
//! let engine = adam.engine(&Values::from([("eta", 0.01)]), 1_000, 1)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod descent;

use serde::de::IgnoredAny;

use crate::algorithm::Pasta;
use crate::auto::Auto;
use crate::baseline::{Baseline, Dog, Momentum, Polyak, Prodigy, Rule, ScheduleFree, Settings};
use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::gate::Gate;
use crate::recipe::{RecipeRow, TABLE};
use crate::schedule::{Schedule, ScheduleError, Sequence};
use crate::state::StartError;
use crate::target::Target;
use crate::universal::Universal;
use crate::walk::{Hedged, StopRule, Walk};
pub use descent::{By, Descent, Plan, RELATIVE, usual_budget};

/// The name of the method without constants.
pub const AUTO: &str = "auto";
/// The name of second-order steps on a table.
pub const EXACT: &str = "exact";
/// The name of SGD with every step size at once.
pub const UNIVERSAL: &str = "universal";

/// A method of the table: its name, what it is for, and how it is made.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Method {
    /// Its name, in commands and files.
    pub name: &'static str,
    /// What it does, or what it is for, in a line.
    pub about: &'static str,
    kind: Kind,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Recipe(&'static RecipeRow),
    Auto,
    Exact,
    Universal,
    Other { settings: &'static [Setting], build: fn(&Values, u64, u64) -> Engine },
}

/// A number that a method takes, with its meaning and its default.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Setting {
    /// Its name, in commands and files.
    pub name: &'static str,
    /// What it does.
    pub meaning: &'static str,
    /// What it is when it is not given; `None` where it must be given.
    pub default: Option<f64>,
}

const ETA: Setting = Setting { name: "eta", meaning: "step size", default: None };
const FIRST: Setting = Setting { name: "first", meaning: "decay of the first moment", default: Some(0.9) };
const SECOND: Setting =
    Setting { name: "second", meaning: "decay of the second moment", default: Some(0.999) };
const EPSILON: Setting =
    Setting { name: "epsilon", meaning: "added to the root of the second moment", default: Some(1e-8) };
const OFFSET: Setting = Setting {
    name: "offset",
    meaning: "the root of the sum of squares before the first step",
    default: Some(1e-8),
};

fn baseline(rule: Rule, steps: u64, batch: u64) -> Engine {
    Engine::Baseline(Settings { rule, steps, batch })
}

/// Every method of the library.
pub const METHODS: &[Method] = &[
    Method::recipe(&TABLE[0]),
    Method::recipe(&TABLE[1]),
    Method::recipe(&TABLE[2]),
    Method::recipe(&TABLE[3]),
    Method::recipe(&TABLE[4]),
    Method::recipe(&TABLE[5]),
    Method::recipe(&TABLE[6]),
    Method::recipe(&TABLE[7]),
    Method::recipe(&TABLE[8]),
    Method { name: AUTO, about: "no constants: quasi-Newton rounds beside a long average", kind: Kind::Auto },
    Method {
        name: EXACT,
        about: "second-order steps on all rows of a table, for convex losses; no constants",
        kind: Kind::Exact,
    },
    Method {
        name: UNIVERSAL,
        about: "no constants, and a theorem: SGD with every step size at once, to a certificate",
        kind: Kind::Universal,
    },
    Method {
        name: "sgd",
        about: "x - eta g",
        kind: Kind::Other {
            settings: &[ETA],
            build: |values, steps, batch| {
                let eta = Sequence::Constant(values.get("eta"));
                baseline(Rule::Sgd { eta }, steps, batch)
            },
        },
    },
    Method {
        name: "sgd-decaying",
        about: "x - eta/sqrt(t + 1) g",
        kind: Kind::Other {
            settings: &[ETA],
            build: |values, steps, batch| {
                let eta = Sequence::InverseRoot { scale: values.get("eta"), shift: 1.0 };
                baseline(Rule::Sgd { eta }, steps, batch)
            },
        },
    },
    Method {
        name: "clipped-sgd",
        about: "x - eta g min(1, threshold/|g|)",
        kind: Kind::Other {
            settings: &[
                ETA,
                Setting {
                    name: "threshold",
                    meaning: "the largest norm of a gradient that is used as it is",
                    default: None,
                },
            ],
            build: |values, steps, batch| {
                let eta = Sequence::Constant(values.get("eta"));
                let rule = Rule::ClippedSgd { eta, threshold: values.get("threshold") };
                baseline(rule, steps, batch)
            },
        },
    },
    Method {
        name: "adam",
        about: "moments of each coordinate",
        kind: Kind::Other {
            settings: &[ETA, FIRST, SECOND, EPSILON],
            build: |values, steps, batch| {
                let rule = Rule::Adam {
                    eta: Sequence::Constant(values.get("eta")),
                    first: values.get("first"),
                    second: values.get("second"),
                    epsilon: values.get("epsilon"),
                };
                baseline(rule, steps, batch)
            },
        },
    },
    Method {
        name: "adagrad-norm",
        about: "steps that shrink with the gradients seen",
        kind: Kind::Other {
            settings: &[ETA, OFFSET],
            build: |values, steps, batch| {
                let rule = Rule::AdaGradNorm { eta: values.get("eta"), offset: values.get("offset") };
                baseline(rule, steps, batch)
            },
        },
    },
    Method {
        name: "adagrad-norm-averaged",
        about: "adagrad-norm, with an average of its iterates",
        kind: Kind::Other {
            settings: &[ETA, OFFSET],
            build: |values, steps, batch| {
                let (eta, offset) = (values.get("eta"), values.get("offset"));
                baseline(Rule::AdaGradNormAveraged { eta, offset }, steps, batch)
            },
        },
    },
    Method {
        name: "momentum",
        about: "SGD with heavy-ball momentum",
        kind: Kind::Other {
            settings: &[
                ETA,
                Setting {
                    name: "momentum",
                    meaning: "how much of the last direction is kept",
                    default: Some(0.9),
                },
            ],
            build: |values, steps, batch| {
                let (eta, momentum) = (values.get("eta"), values.get("momentum"));
                baseline(Rule::Momentum(Momentum { eta, momentum }), steps, batch)
            },
        },
    },
    Method {
        name: "dog",
        about: "distance over gradients, with its average; no step size to choose",
        kind: Kind::Other {
            settings: &[
                Setting {
                    name: "radius",
                    meaning: "first distance, relative to 1 + |x0|",
                    default: Some(1e-6),
                },
                Setting { name: "epsilon", meaning: "added to the sum of squares", default: Some(1e-8) },
            ],
            build: |values, steps, batch| {
                let (radius, epsilon) = (values.get("radius"), values.get("epsilon"));
                baseline(Rule::Dog(Dog { radius, epsilon }), steps, batch)
            },
        },
    },
    Method {
        name: "prodigy",
        about: "Adam with an estimated distance as its step size; none to choose",
        kind: Kind::Other {
            settings: &[
                Setting {
                    name: "distance",
                    meaning: "the estimate before the first step",
                    default: Some(1e-6),
                },
                FIRST,
                SECOND,
                EPSILON,
            ],
            build: |values, steps, batch| {
                let [distance, first, second, epsilon] =
                    ["distance", "first", "second", "epsilon"].map(|name| values.get(name));
                baseline(Rule::Prodigy(Prodigy { distance, first, second, epsilon }), steps, batch)
            },
        },
    },
    Method {
        name: "schedule-free-adamw",
        about: "AdamW whose average takes the place of a decaying step",
        kind: Kind::Other {
            settings: &[Setting { default: Some(0.0025), ..ETA }, FIRST, SECOND, EPSILON],
            build: |values, steps, batch| {
                let [eta, first, second, epsilon] =
                    ["eta", "first", "second", "epsilon"].map(|name| values.get(name));
                let rule = ScheduleFree { eta, first, second: Some((second, epsilon)) };
                baseline(Rule::ScheduleFree(rule), steps, batch)
            },
        },
    },
    Method {
        name: "schedule-free-sgd",
        about: "SGD whose average takes the place of a decaying step",
        kind: Kind::Other {
            settings: &[ETA, FIRST],
            build: |values, steps, batch| {
                let rule = ScheduleFree { eta: values.get("eta"), first: values.get("first"), second: None };
                baseline(Rule::ScheduleFree(rule), steps, batch)
            },
        },
    },
    Method {
        name: "sps",
        about: "stochastic Polyak steps; needs losses",
        kind: Kind::Other {
            settings: &[
                Setting { name: "lower", meaning: "a lower bound on every loss", default: Some(0.0) },
                Setting { name: "scale", meaning: "c of the published rule", default: Some(0.5) },
                Setting { name: "most", meaning: "the largest step", default: Some(1.0) },
            ],
            build: |values, steps, batch| {
                let [lower, scale, most] = ["lower", "scale", "most"].map(|name| values.get(name));
                baseline(Rule::Polyak(Polyak { lower, scale, most }), steps, batch)
            },
        },
    },
    Method {
        name: "halpern",
        about: "one epoch anchored at the start, beta = 1/(t + 2)",
        kind: Kind::Other {
            settings: &[ETA],
            build: |values, steps, batch| {
                Engine::Schedule(Schedule::halpern(values.get("eta"), steps, batch))
            },
        },
    },
    Method {
        name: "krasnoselskii-mann",
        about: "every step an epoch of its own",
        kind: Kind::Other {
            settings: &[ETA, Setting { name: "beta", meaning: "pull towards the anchor", default: None }],
            build: |values, steps, batch| {
                let (eta, beta) = (values.get("eta"), values.get("beta"));
                Engine::Schedule(Schedule::krasnoselskii_mann(eta, beta, steps, batch))
            },
        },
    },
    Method {
        name: "storm",
        about: "recursive momentum, each sample at two points",
        kind: Kind::Other {
            settings: &[
                ETA,
                Setting { name: "momentum", meaning: "weight of the fresh samples", default: None },
            ],
            build: |values, steps, batch| {
                let (eta, momentum) = (values.get("eta"), values.get("momentum"));
                Engine::Schedule(Schedule::storm(eta, momentum, steps, batch))
            },
        },
    },
];

/// The method of that name.
pub fn find(name: &str) -> Option<&'static Method> {
    METHODS.iter().find(|method| method.name == name)
}

/// Settings by name.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Values(Vec<(&'static str, f64)>);

impl Values {
    /// Sets or replaces a value.
    pub fn set(&mut self, name: &'static str, value: f64) {
        self.0.retain(|(known, _)| *known != name);
        self.0.push((name, value));
    }

    /// What was given for a setting.
    pub fn given(&self, name: &str) -> Option<f64> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    /// All that was given, in the order in which it was.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, f64)> + '_ {
        self.0.iter().copied()
    }

    /// A value that is there: [`Method::engine`] has seen to it.
    fn get(&self, name: &str) -> f64 {
        self.given(name).unwrap_or(f64::NAN)
    }
}

impl<const N: usize> From<[(&'static str, f64); N]> for Values {
    fn from(pairs: [(&'static str, f64); N]) -> Self {
        Self(pairs.to_vec())
    }
}

/// Why settings do not make a method.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MethodError {
    /// A setting without a default was not given.
    #[error("{method}: needs {name} ({meaning})")]
    Missing {
        /// The method.
        method: &'static str,
        /// The setting.
        name: &'static str,
        /// What it does.
        meaning: &'static str,
    },
    /// A recipe is set by constants, which make its plan.
    #[error("{method}: is planned from constants, not set")]
    Recipe {
        /// The recipe.
        method: &'static str,
    },
    /// It is made of the rows of a table, and of nothing else.
    #[error("{method}: is for tables of data, and is made of one")]
    Table {
        /// The method.
        method: &'static str,
    },
    /// A number is out of its range.
    #[error("{method}: {} must be {}, but is {}", .error.name, .error.needs, .error.got)]
    Number {
        /// The method.
        method: &'static str,
        /// Which number, and its range.
        error: ScheduleError,
    },
}

impl Method {
    const fn recipe(row: &'static RecipeRow) -> Self {
        Self { name: row.name, about: row.for_problems, kind: Kind::Recipe(row) }
    }

    /// The recipe's row, if it is a recipe: then it is set by constants, and has a promise.
    pub fn row(&self) -> Option<&'static RecipeRow> {
        match self.kind {
            Kind::Recipe(row) => Some(row),
            Kind::Auto | Kind::Exact | Kind::Universal | Kind::Other { .. } => None,
        }
    }

    /// What can be set, besides steps and batch; nothing for a recipe.
    pub fn settings(&self) -> &'static [Setting] {
        match self.kind {
            Kind::Recipe(_) | Kind::Auto | Kind::Exact | Kind::Universal => &[],
            Kind::Other { settings, .. } => settings,
        }
    }

    /// Whether it needs a table: nothing else has rows that it could read.
    pub fn needs_table(&self) -> bool {
        matches!(self.kind, Kind::Exact)
    }

    /// Whether it has steps and a batch to be set.
    pub fn has_steps(&self) -> bool {
        matches!(self.kind, Kind::Other { .. })
    }

    /// What a user sets who tunes nothing: the published default of every setting without one of the library's own. `None` for recipes,
    /// for methods that need a table or a certificate, and where nobody publishes a number.
    ///
    /// ```
    /// use pasta_opt::method::{Values, find};
    ///
    /// assert_eq!(find("adam").and_then(|adam| adam.untuned()), Some(Values::from([("eta", 0.001)])));
    /// assert_eq!(find("dog").and_then(|dog| dog.untuned()), Some(Values::default()));
    /// assert_eq!(find("clipped-sgd").and_then(|clipped| clipped.untuned()), None);
    /// ```
    pub fn untuned(&self) -> Option<Values> {
        match (self.kind, self.name) {
            // Without a target it has nothing to stop on, and without a table nothing to read.
            (Kind::Recipe(_) | Kind::Universal | Kind::Exact, _) => None,
            // Kingma and Ba 2015, and the default of PyTorch's SGD.
            (_, "adam" | "sgd" | "momentum") => Some(Values::from([("eta", 1e-3)])),
            // AdaGrad-Norm knows no scale, and the package of schedule-free SGD has this default.
            (_, "adagrad-norm" | "adagrad-norm-averaged" | "schedule-free-sgd") => {
                Some(Values::from([("eta", 1.0)]))
            }
            _ => self.settings().iter().all(|setting| setting.default.is_some()).then(Values::default),
        }
    }

    /// The method with these settings, defaults filled in, for so many steps of so many samples.
    pub fn engine(&self, given: &Values, steps: u64, batch: u64) -> Result<Engine, MethodError> {
        let (method, settings, build) = match self.kind {
            Kind::Recipe(_) => return Err(MethodError::Recipe { method: self.name }),
            Kind::Auto => return Ok(Engine::Auto { target: None }),
            Kind::Exact => return Err(MethodError::Table { method: self.name }),
            Kind::Universal => return Ok(Engine::Universal { rule: None }),
            Kind::Other { settings, build } => (self.name, settings, build),
        };
        let mut values = Values::default();
        for Setting { name, meaning, default } in settings {
            let value = given.given(name).or(*default);
            values.set(name, value.ok_or(MethodError::Missing { method, name, meaning })?);
        }
        let engine = build(&values, steps, batch);
        engine.check().map_err(|error| MethodError::Number { method, error })?;
        Ok(engine)
    }
}

/// A method that is ready to run.
#[derive(Debug, Clone, PartialEq)]
pub enum Engine {
    /// Algorithm 1 with a schedule.
    Schedule(Schedule),
    /// A baseline.
    Baseline(Settings),
    /// The method without constants.
    Auto {
        /// No finer gradient than this is asked for.
        target: Option<f64>,
    },
    /// A fit to a table: second-order steps, or whatever its plan says. The walk makes its certificate itself.
    Fit(Plan),
    /// Algorithm 1 with a schedule, and beside it the method without constants: each has half of the budget, and the certificate chooses.
    Hedged {
        /// The schedule, of a recipe as a rule.
        schedule: Schedule,
        /// When it stops. The walk makes its certificates itself.
        rule: StopRule,
    },
    /// SGD with every step size at once.
    Universal {
        /// When it stops: without one it cannot start. The walk makes its certificates itself.
        rule: Option<StopRule>,
    },
}

impl Engine {
    fn check(&self) -> Result<(), ScheduleError> {
        match self {
            Self::Schedule(schedule) | Self::Hedged { schedule, .. } => schedule.check(),
            Self::Baseline(settings) => settings.check(),
            Self::Auto { .. } | Self::Universal { .. } | Self::Fit(_) => Ok(()),
        }
    }

    /// The same without an end: for a run that something else will stop, such as a certificate.
    #[must_use]
    pub fn endless(self) -> Self {
        match self {
            Self::Schedule(schedule) => Self::Schedule(schedule.endless()),
            Self::Hedged { schedule, rule } => Self::Hedged { schedule: schedule.endless(), rule },
            other => other,
        }
    }

    /// The method of the run that a checkpoint was taken of.
    pub fn of(checkpoint: &Checkpoint) -> Result<Self, CheckpointError> {
        if checkpoint.has(Both::SECTION) {
            let (schedule, _): (Schedule, IgnoredAny) =
                checkpoint.peek(&Both::first_section(Pasta::SECTION))?;
            Ok(Self::Hedged { schedule, rule: Both::rule_of(checkpoint)? })
        } else if checkpoint.has(Universal::SECTION) {
            Ok(Self::Universal { rule: Some(Universal::rule_of(checkpoint)?) })
        } else if checkpoint.has(Auto::SECTION) {
            Ok(Self::Auto { target: Auto::target_of(checkpoint)? })
        } else if checkpoint.has(Baseline::SECTION) {
            let (settings, _): (Settings, IgnoredAny) = checkpoint.peek(Baseline::SECTION)?;
            Ok(Self::Baseline(settings))
        } else {
            let (schedule, _): (Schedule, IgnoredAny) = checkpoint.peek(Pasta::SECTION)?;
            Ok(Self::Schedule(schedule))
        }
    }

    /// Starts a run. Nothing is drawn before its first step.
    pub fn start(self, gate: &Gate, start: &[f64]) -> Result<Box<dyn Walk>, StartError> {
        Ok(match self {
            Self::Schedule(schedule) => Box::new(Pasta::start(gate, schedule, start)?),
            Self::Baseline(settings) => Box::new(Baseline::start(gate, settings, start)?),
            Self::Auto { target } => Box::new(Auto::start(gate, start, target)?),
            Self::Fit(plan) => Box::new(Descent::start(gate, plan, start)?),
            Self::Hedged { schedule, rule } => {
                let recipe = |gate: &Gate| Pasta::start(gate, schedule, start);
                let auto = |gate: &Gate| Auto::start(gate, start, Some(rule.target));
                Box::new(Both::start(gate, rule, recipe, auto)?)
            }
            Self::Universal { rule } => {
                Box::new(Universal::start(gate, rule.ok_or(StartError::NoRule)?, start)?)
            }
        })
    }

    /// The run that a checkpoint was taken of, which must be of this method, with these settings.
    pub fn resume(&self, gate: &Gate, checkpoint: &mut Checkpoint) -> Result<Box<dyn Walk>, CheckpointError> {
        let is_this = match self {
            Self::Fit(_) => checkpoint.has(Descent::SECTION),
            _ => !checkpoint.has(Descent::SECTION) && Self::of(checkpoint)? == *self,
        };
        match self {
            _ if !is_this => Err(CheckpointError::Settings {
                what: "the checkpoint is of another method, or of other settings".into(),
            }),
            Self::Fit(plan) => Ok(Box::new(Descent::resume(gate, plan.clone(), checkpoint)?)),
            _ => resume(gate, checkpoint),
        }
    }

    /// Whether its walk makes certificates by itself.
    pub fn is_certified(&self) -> bool {
        matches!(self, Self::Hedged { .. } | Self::Universal { .. } | Self::Fit(_))
    }

    /// Whether it cannot run without a certificate to aim at.
    pub fn needs_rule(&self) -> bool {
        matches!(self, Self::Hedged { .. } | Self::Universal { .. })
    }

    /// The most samples that it draws where nobody gives a budget; `None` if there is no such limit.
    pub fn usual_budget(&self) -> Option<u128> {
        match self {
            Self::Fit(plan) => Some(usual_budget(&plan.linear)),
            _ => None,
        }
    }

    /// Whether a term on the weights of a table is part of it.
    pub(crate) fn has_term(&self) -> bool {
        matches!(self, Self::Fit(Plan { by: By::Proximal(_), .. }))
    }

    /// Gives a fit something to aim at: a number, or a share of what is found at its start.
    pub(crate) fn aim_fit(&mut self, at: Option<Target>, rule: Option<StopRule>) {
        if let Self::Fit(plan) = self {
            (plan.target, plan.rule) = (at, rule);
        }
    }
}

/// A recipe, and the method without constants.
type Both = Hedged<Pasta, Auto>;

/// The run that a checkpoint was taken of, whichever method of samples it is; a [fit](Engine::Fit) needs its table for that.
pub fn resume(gate: &Gate, checkpoint: &mut Checkpoint) -> Result<Box<dyn Walk>, CheckpointError> {
    if checkpoint.has(Both::SECTION) {
        Ok(Box::new(Both::resume(gate, checkpoint, Pasta::resume, Auto::resume)?))
    } else if checkpoint.has(Universal::SECTION) {
        Ok(Box::new(Universal::resume(gate, checkpoint)?))
    } else if checkpoint.has(Auto::SECTION) {
        Ok(Box::new(Auto::resume(gate, checkpoint)?))
    } else if checkpoint.has(Baseline::SECTION) {
        Ok(Box::new(Baseline::resume(gate, checkpoint)?))
    } else {
        Ok(Box::new(Pasta::resume(gate, checkpoint)?))
    }
}

#[cfg(test)]
mod tests {
    use super::{METHODS, TABLE};

    #[test]
    fn every_recipe_is_a_method_and_no_name_stands_twice() {
        for row in TABLE {
            assert!(
                METHODS.iter().any(|method| method.row().is_some_and(|r| r.name == row.name)),
                "{}",
                row.name
            );
        }
        let mut names: Vec<_> = METHODS.iter().map(|method| method.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), METHODS.len());
    }
}
