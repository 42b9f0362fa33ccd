//! Who takes part, with which settings.

use pasta_opt::method::{self, EXACT, Engine, METHODS, Values};
use pasta_opt::oracle::About;
use pasta_opt::recipe::{Constant, Constants};
use pasta_opt::run::{Chosen, Given, Problem};

use super::race::Limits;
use crate::spec::Contest;
use pasta_report::console::Failure;

/// A method with its settings.
#[derive(Debug, Clone)]
pub(super) struct Entrant {
    pub(super) method: &'static str,
    pub(super) entry: Entry,
    /// Samples a step, where that is fixed.
    pub(super) batch: Option<u64>,
    /// The step size of a grid.
    pub(super) eta: Option<f64>,
    pub(super) engine: Engine,
}

/// How a method got its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    /// As published, or without anything to be set.
    Untuned,
    /// The problem file's own.
    File,
    /// A recipe with the constants that are proved.
    Proved,
    /// One of a grid.
    Grid,
}

/// Samples a step.
const BATCHES: [u64; 2] = [1, 8];

/// The step sizes of a grid: half decades from 1e-4 to 1.
pub(super) const GRID: [f64; 9] = [1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0];

/// The setting that a grid is over.
const ETA: &str = "eta";
/// A setting that has no default, but a scale: the gradient at the start.
const THRESHOLD: &str = "threshold";

/// Every method that needs nothing to be set and can run on such a problem.
pub(super) fn untuned(limits: &Limits, problem: &Problem) -> Vec<Entrant> {
    let losses = problem.oracle.about().losses;
    let runs_here = |method: &&method::Method| method.name != NEEDS_LOSSES || losses;
    let published = METHODS.iter().filter(runs_here).flat_map(|method| as_published(method, limits));
    let is_exact = |chosen: &Chosen| chosen.name == EXACT;
    let exact = Some(Chosen::usual(problem)).filter(is_exact).map(|exact| fit(&exact, limits));
    exact.into_iter().chain(published).collect()
}

/// Second-order steps, to the target.
fn fit(exact: &Chosen, limits: &Limits) -> Entrant {
    let engine = limits.target.map_or_else(|| exact.engine.clone(), |target| exact.aimed_at(target));
    Entrant { method: EXACT, entry: Entry::Untuned, batch: None, eta: None, engine }
}

/// The method that cannot run without losses.
const NEEDS_LOSSES: &str = "sps";

/// A method as published, once for each batch; nothing if nobody publishes a step size.
fn as_published(method: &'static method::Method, limits: &Limits) -> Vec<Entrant> {
    let Some(values) = method.untuned() else { return Vec::new() };
    let entrant = |batch: Option<u64>| {
        let engine = engine(method, &values, limits, batch)?;
        Some(Entrant { method: method.name, entry: Entry::Untuned, batch, eta: None, engine })
    };
    batches(method).into_iter().filter_map(entrant).collect()
}

fn batches(method: &method::Method) -> Vec<Option<u64>> {
    if method.has_steps() { BATCHES.map(Some).to_vec() } else { vec![None] }
}

fn engine(method: &method::Method, values: &Values, limits: &Limits, batch: Option<u64>) -> Option<Engine> {
    let batch = batch.unwrap_or(1);
    // The gate stops a run whose next step would overdraw the budget.
    let engine = method.engine(values, limits.budget.div_ceil(batch), batch).ok()?;
    Some(match engine {
        Engine::Auto { .. } => Engine::Auto { target: limits.target },
        other => other,
    })
}

/// The file's own method, unless it takes part anyway.
pub(super) fn own(method: &Chosen) -> Option<Entrant> {
    if let Engine::Auto { .. } | Engine::Fit(_) = method.engine {
        return None;
    }
    let batch = match &method.engine {
        Engine::Baseline(settings) => Some(settings.batch),
        _ => None,
    };
    let engine = method.engine.clone();
    Some(Entrant { method: method.name, entry: Entry::File, batch, eta: None, engine })
}

/// The ways in which a method of this name takes part without a grid.
pub(super) fn named(name: &str, contest: &Contest, limits: &Limits) -> Result<Vec<Entrant>, Failure> {
    let Some(method) = method::find(name) else {
        let all: Vec<_> = METHODS.iter().map(|method| method.name).collect();
        let message = format!("--methods: no method is called {name:?}");
        return Err(Failure::input(message).hint(format!("the methods: {}", all.join(", "))));
    };
    if name == NEEDS_LOSSES && !contest.setup.problem.oracle.about().losses {
        return Err(Failure::input(format!(
            "--methods: {name} needs losses, which this problem does not give"
        )));
    }
    if method.needs_table() {
        let exact = Chosen::exact(&contest.setup.problem);
        let exact = exact.map_err(|reason| Failure::input(format!("--methods: {name}: {reason}")))?;
        return Ok(vec![fit(&exact, limits)]);
    }
    let of_file = contest.own.as_ref().filter(|own| own.name == method.name).and_then(own);
    let Some(row) = method.row() else {
        return Ok(as_published(method, limits).into_iter().chain(of_file).collect());
    };
    if let Some(of_file) = of_file {
        return Ok(vec![of_file]);
    }
    let of_file = contest.own.as_ref().and_then(Chosen::gradient_target);
    let Some(target) = limits.target.or(of_file) else {
        return Err(Failure::input(format!("--methods: {name} needs a target")).hint("give --target EPS"));
    };
    let mut choices = Constants::default();
    choices.set(Constant::Target, target);
    let recipe = Chosen::recipe(row, Given::Proved(choices), &contest.setup.problem)
        .map_err(|reason| Failure::input(format!("--methods: {name}: {reason}")))?;
    Ok(vec![Entrant {
        method: row.name,
        entry: Entry::Proved,
        batch: None,
        eta: None,
        engine: recipe.engine,
    }])
}

/// Whether a grid has a place for it.
pub(super) fn has_grid(name: &str) -> bool {
    method::find(name).is_some_and(|method| values(method, GRID[0], 1.0).is_some())
}

/// The values of one step size, if that and a threshold are all that has to be given.
fn values(method: &method::Method, eta: f64, start_gradient: f64) -> Option<Values> {
    let mut values = Values::default();
    for setting in method.settings() {
        match setting.name {
            ETA => values.set(ETA, eta),
            THRESHOLD => values.set(THRESHOLD, start_gradient),
            _ if setting.default.is_none() => return None,
            _ => {}
        }
    }
    values.given(ETA).map(|_| values)
}

/// Every method with a step size, for all of them and both batches.
pub(super) fn grid(
    limits: &Limits,
    start_gradient: f64,
    about: &About,
    only: impl Fn(&str) -> bool,
) -> Vec<Entrant> {
    let mut entrants = Vec::new();
    for method in METHODS.iter().filter(|method| only(method.name)) {
        if method.name == NEEDS_LOSSES && !about.losses {
            continue;
        }
        for batch in batches(method) {
            entrants.extend(GRID.iter().filter_map(|&eta| {
                let values = values(method, eta, start_gradient)?;
                let engine = engine(method, &values, limits, batch)?;
                Some(Entrant { method: method.name, entry: Entry::Grid, batch, eta: Some(eta), engine })
            }));
        }
    }
    entrants
}
