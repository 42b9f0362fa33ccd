//! What some commands answer, as JSON, for the Python package: the keys are those of `--json`.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pasta_opt::oracle::Oracle;
use pasta_opt::run::{self, Target};
use pasta_opt::term::Term;
use pasta_opt::walk::StopRule;
use pasta_report::console::Failure;

use crate::compare::{Limits, checked, raced};
use crate::plan;
use crate::spec::{Contest, Setup};

/// `pasta plan RECIPE`, with its flags by name. An error is what the program would say.
pub fn plan(recipe: &str, flags: &[(String, f64)]) -> Result<String, String> {
    plan::json(recipe, flags).map_err(said)
}

/// A race of methods on an oracle.
#[derive(Debug)]
pub struct Race {
    /// Whose samples are drawn.
    pub oracle: Arc<dyn Oracle>,
    /// Where all of them start.
    pub start: Vec<f64>,
    /// Which methods; all that need nothing to be set if none is named.
    pub methods: Vec<String>,
    /// Whether methods with a step size run with nine of them.
    pub grid: bool,
    /// How a run is certified, where there is a target and nothing but samples can tell.
    pub rule: Option<StopRule>,
    /// The gradient at which a run ends.
    pub target: Option<Target>,
    /// Samples of each run.
    pub budget: u64,
    /// Runs of each method.
    pub seeds: u64,
    /// The seed of the first; the others count up from it.
    pub seed: u64,
    /// What is minimised with f.
    pub term: Option<Arc<dyn Term>>,
    /// gamma of the gradient mapping, if it is given.
    pub gamma: Option<f64>,
}

impl Race {
    /// `pasta compare`; `None` if `stop` was set. An error is what the program would say.
    pub fn run(self, stop: &Arc<AtomicBool>) -> Result<Option<String>, String> {
        let Self { oracle, start, methods, grid, rule, target, budget, seeds, seed, term, gamma } = self;
        let judged = oracle.about().full_pass().is_some();
        let problem = run::Problem { term, ..run::Problem::of(oracle, start) }.into();
        let setup = Setup { seed, threads: None, problem };
        let (target, rule, gamma) = match target {
            Some(Target::OfStart(share)) => {
                let mut gate = setup.problem.gate(seed, None, Arc::clone(stop)).with_gamma(gamma);
                let measured = setup.problem.of_start(share, &mut gate).map_err(said)?;
                let target = measured.target;
                (Some(target), rule.map(|rule| StopRule { target, ..rule }), measured.gamma)
            }
            given => (given.and_then(Target::norm), rule, gamma),
        };
        let contest = Contest { setup, own: None, rule: rule.filter(|_| !judged), target, gamma };
        let limits = Limits { target, budget, seeds, seed };
        let Some(samples) = checked(&contest, &limits, false, stop).map_err(said)? else { return Ok(None) };
        let results = raced(&contest, limits, &methods, grid, samples, stop).map_err(said)?;
        results.map(|results| serde_json::to_string(&results).map_err(|error| error.to_string())).transpose()
    }
}

fn said(failure: Failure) -> String {
    failure.words()
}
