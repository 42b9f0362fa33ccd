//! What is asked for: a method, when it is certified, a budget and a seed. Plain data.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use super::chosen::{ChoiceError, Chosen, Given};
use super::problem::Problem;
use crate::certificate::{ClaimError, demand};
use crate::forecast::Outlook;
use crate::gate::{Gate, OnNan, is_zero};
use crate::method::{EXACT, Engine};
use crate::recipe::{self, Constant, Constants};
use crate::target::{OfStart, Target};
use crate::walk::StopRule;

/// What is asked for. A problem file, flags and keywords of Python are translated into it, and a checkpoint keeps it.
///
/// ```
/// use pasta_opt::run::{MethodSpec, Task};
///
/// let task = Task { budget: Some(10_000), ..Task::default() };
/// assert_eq!((task.method, task.seed, task.check), (MethodSpec::Auto, 1, true));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// What runs.
    pub method: MethodSpec,
    /// When the run stops on a certificate; `None` if it makes none.
    pub certify: Option<StopRule>,
    /// If the target of `certify` is a share of |grad f| at the start (with a term, of the gradient mapping), that share: the run measures it after its check, and sets the target.
    #[serde(default)]
    pub of_start: Option<f64>,
    /// The most samples that are drawn in all.
    pub budget: Option<u128>,
    /// The seed of all randomness.
    pub seed: u64,
    /// True if an oracle that is not of this library is checked before the first step.
    pub check: bool,
    /// The samples of the run before it is first forecast; 0 for no forecast.
    #[serde(default)]
    pub pilot: u128,
    /// What becomes of samples that are not finite.
    #[serde(default)]
    pub on_nan: OnNan,
    /// True if a run without a budget goes on where its target is not within reach.
    #[serde(default)]
    pub no_limit: bool,
    /// True if a start outside of the domain of the term is moved into it; otherwise it is refused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub project: bool,
    /// gamma of the gradient mapping that is certified, where there is a term; if none is given, one is chosen from a few samples before the first look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gamma: Option<f64>,
    /// What a round costs, in samples; 0 if rounds are free. Part of the run's bits.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub round_cost: u64,
}

impl Default for Task {
    fn default() -> Self {
        Self {
            method: MethodSpec::Auto,
            certify: None,
            of_start: None,
            budget: None,
            seed: 1,
            check: true,
            pilot: Outlook::FIRST,
            on_nan: OnNan::Stop,
            no_limit: false,
            project: false,
            gamma: None,
            round_cost: 0,
        }
    }
}

/// A method with what it is given.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum MethodSpec {
    /// The method without constants.
    #[default]
    Auto,
    /// The quickest method that needs no constants: second-order steps on a table whose loss they fit, the method without constants elsewhere.
    Usual,
    /// A method that is no recipe.
    Named {
        /// Its name in [`METHODS`](crate::method::METHODS).
        name: String,
        /// Its settings by name; defaults are filled in.
        settings: BTreeMap<String, f64>,
        /// Steps.
        steps: u64,
        /// Samples of a step.
        batch: u64,
    },
    /// A method with a theorem, planned from constants.
    Recipe {
        /// Its name in [`TABLE`](recipe::TABLE).
        name: String,
        /// What is given.
        constants: Constants,
        /// Those that were measured and not proved.
        estimated: Vec<Constant>,
        /// True if all other constants are taken from what is proved about the problem.
        proved: bool,
        /// True if the method without constants runs beside it, and the certificate chooses.
        fallback: bool,
    },
}

impl MethodSpec {
    /// The method, ready for a problem.
    pub fn choose(&self, problem: &Problem) -> Result<Chosen, ChoiceError> {
        match self {
            Self::Auto => Ok(Chosen::auto(None)),
            Self::Usual => Ok(Chosen::usual(problem)),
            Self::Named { name, .. } if name == EXACT => Chosen::exact(problem),
            Self::Named { name, settings, steps, batch } => Chosen::named(name, settings, *steps, *batch),
            Self::Recipe { name, constants, estimated, proved, fallback } => {
                let row = recipe::find(name).ok_or_else(|| ChoiceError::Unknown { name: name.clone() })?;
                let given = if *proved {
                    Given::Proved(*constants)
                } else {
                    Given::Declared { constants: *constants, estimated: estimated.clone() }
                };
                Ok(Chosen { fallback: *fallback, ..Chosen::recipe(row, given, problem)? })
            }
        }
    }
}

impl Task {
    /// A gate with what it says about budget, samples that are not finite, and the check.
    pub(super) fn limit(&self, engine: &Engine, gate: Gate, stop: Arc<AtomicBool>) -> Gate {
        let budget = self.budget.or_else(|| engine.usual_budget());
        let gate = gate.with_budget(budget).with_stop(stop).with_on_nan(self.on_nan).with_gamma(self.gamma);
        let gate = gate.with_round_cost(self.round_cost);
        let gate = if self.no_limit { gate.without_limit() } else { gate };
        if self.check { gate } else { gate.without_check() }
    }

    /// The method, ready for a problem: one without constants aims at what is to be certified, and a fall-back has its rule.
    pub fn choose(&self, problem: &Problem) -> Result<Chosen, ChoiceError> {
        let mut chosen = self.method.choose(problem)?;
        chosen.aim(self.certify.map(|rule| rule.target));
        chosen.fit_to(self.target(), self.certify);
        match self.certify {
            Some(rule) => chosen.hedge(rule),
            None if chosen.fallback => return Err(ChoiceError::NoCertificate),
            None if chosen.engine.needs_rule() => return Err(ChoiceError::NoTarget { name: chosen.name }),
            None => {}
        }
        Ok(chosen)
    }

    /// The same with the target that was measured, and with its gamma where there is a term.
    pub(super) fn aimed(self, measured: &OfStart) -> Self {
        let certify = self.certify.map(|rule| StopRule { target: measured.target, ..rule });
        Self { certify, gamma: self.gamma.or(measured.gamma), ..self }
    }

    /// What is to be certified, if anything is.
    pub fn target(&self) -> Option<Target> {
        let rule = self.certify?;
        Some(self.of_start.map_or(Target::Norm(rule.target), Target::OfStart))
    }

    /// Refuses a gamma with which no certificate could begin.
    pub(super) fn check_gamma(&self) -> Result<(), ClaimError> {
        self.gamma.map_or(Ok(()), |gamma| {
            demand("gamma", "positive and finite", gamma, gamma > 0.0 && gamma.is_finite())
        })
    }

    /// Refuses a run that nothing would end.
    pub(super) fn check_end(&self, chosen: &Chosen) -> Result<(), ChoiceError> {
        let has_end = !chosen.is_endless() || self.budget.is_some() || self.certify.is_some();
        has_end.then_some(()).ok_or(ChoiceError::NoEnd)
    }
}
