//! The compiled half of the Python package `pasta_opt`: the engine, and the program `pasta`.
//!
//! Python checks and reads what a user gives; this half runs it. `oracle` makes an oracle of a Python function, `serve` calls it,
//! `run` is the run, `asking` one that is answered from outside. `native` has the oracles of the library, `fit` linear models;
//! `borrowed` reads numpy's memory without a copy.

mod asking;
mod borrowed;
mod fit;
mod native;
mod oracle;
mod run;
mod serve;
mod source;
mod term;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use numpy::{PyArray1, PyReadonlyArray1};
use pasta_cli::answers::Race;
use pasta_opt::bounds::{LowerMeanSquareSmooth, LowerSmooth};
use pasta_opt::certificate::Basis;
use pasta_opt::checkpoint::Checkpoint;
use pasta_opt::draws::Role;
use pasta_opt::forecast::{Outlook, Pilot};
use pasta_opt::method::{AUTO, Engine, METHODS, find};
use pasta_opt::oracle::Oracle;
use pasta_opt::recipe::{Constant, Constants};
use pasta_opt::run::{ChoiceError, MethodSpec, Problem, Stored, Target, Task};
use pasta_opt::walk::StopRule;
use pasta_report::Table;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::asking::Asking;
use crate::native::Native;
use crate::oracle::Line;
use crate::run::{Begin, Job, Outcome, Shows, Trouble};
use crate::serve::{PATIENCE, Server};
use crate::source::OracleSource;
use crate::term::{GivenTerm, term_of, unless_raised};

/// When a run is certified: target, delta, share, and on what that rests, a name and its numbers in order.
type RuleOf = (TargetOf, f64, f64, (String, Vec<f64>));
/// An outcome as JSON, the point, the columns of the trace, and a checkpoint.
type Ended<'py> = (String, Bound<'py, PyArray1<f64>>, Columns<'py>, Bound<'py, PyBytes>);
type Columns<'py> = (
    Bound<'py, PyArray1<u64>>,
    Bound<'py, PyArray1<u64>>,
    Bound<'py, PyArray1<u64>>,
    Bound<'py, PyArray1<f64>>,
);

/// The settings of a run: `pasta_opt._minimize.Beginning`.
#[derive(FromPyObject)]
pub(crate) struct Beginning<'py> {
    x0: PyReadonlyArray1<'py, f64>,
    method: MethodOf,
    rule: Option<RuleOf>,
    budget: Option<u128>,
    seed: u64,
    /// Whether the oracle is checked before the first step.
    check: bool,
    /// The samples of the run before its first forecast.
    pilot: u128,
    threads: usize,
    /// What becomes of samples that are not finite: "stop" or "skip".
    on_nan: String,
    /// Whether a run without a budget goes on where its target is not within reach.
    no_limit: bool,
    /// What is minimised with f.
    term: GivenTerm<'py>,
    /// Whether a start outside of their domain is moved into it.
    project: bool,
    /// Of the gradient mapping, where it is given.
    gamma: Option<f64>,
    /// The samples that a round costs beside its own.
    round_cost: u64,
}

impl Beginning<'_> {
    fn read(self) -> PyResult<Begin> {
        let Self {
            x0,
            method,
            rule,
            budget,
            seed,
            check,
            pilot,
            on_nan,
            no_limit,
            term,
            project,
            gamma,
            round_cost,
            ..
        } = self;
        let on_nan = on_nan.parse().map_err(|error| value_error(format!("on_nan: {error}")))?;
        let start = x0.as_slice()?.to_vec();
        let (certify, of_start) = match rule.map(read_rule).transpose()? {
            Some((rule, target)) => (Some(rule), target.share()),
            None => (None, None),
        };
        let method = method.spec()?;
        let term = term_of(&term);
        let task = Task {
            method,
            certify,
            of_start,
            budget,
            seed,
            check,
            pilot,
            on_nan,
            no_limit,
            project,
            gamma,
            round_cost,
        };
        Ok(Begin::Fresh { start, task: Box::new(task), term })
    }
}

/// Runs a method. Every `every` seconds the callback is called, after every step if that is 0.
#[pyfunction]
fn minimize<'py>(
    leaves: Bound<'py, PyAny>,
    beginning: Beginning<'py>,
    callback: Option<Bound<'py, PyAny>>,
    every: f64,
    checkpoint: Option<PathBuf>,
) -> PyResult<Ended<'py>> {
    let Beginning { budget, threads, no_limit, .. } = beginning;
    let term = beginning.term.as_ref().map(|term| (**term).clone());
    let ended = work(leaves, beginning.read()?, (budget, no_limit), threads, callback, every, checkpoint);
    unless_raised(term.as_ref(), ended)
}

/// Goes on with the run of a checkpoint.
#[pyfunction]
fn resume<'py>(
    leaves: Bound<'py, PyAny>,
    limits: (Option<u128>, bool),
    threads: usize,
    callback: Option<Bound<'py, PyAny>>,
    every: f64,
    checkpoint: PathBuf,
    term: GivenTerm<'py>,
) -> PyResult<Ended<'py>> {
    let stored = Checkpoint::load(&checkpoint).map_err(value_error)?;
    let begin = Begin::Stored { checkpoint: Box::new(stored), term: term_of(&term) };
    let ended = work(leaves, begin, limits, threads, callback, every, Some(checkpoint));
    unless_raised(term.as_deref(), ended)
}

fn work<'py>(
    leaves: Bound<'py, PyAny>,
    begin: Begin,
    (budget, no_limit): (Option<u128>, bool),
    threads: usize,
    callback: Option<Bound<'py, PyAny>>,
    every: f64,
    checkpoint: Option<PathBuf>,
) -> PyResult<Ended<'py>> {
    let py = leaves.py();
    let shows = match &callback {
        None => Shows::Never,
        Some(_) => Shows::Every(Duration::from_secs_f64(every.clamp(0.0, 1e6))),
    };
    let job = Job { begin, asked: OracleSource::of(&leaves)?, budget, no_limit, shows, checkpoint };
    let outcome = beside(leaves, callback, threads, move |line| run::run(job, line))?;
    ended(py, outcome)
}

/// An outcome for Python.
fn ended(py: Python<'_>, outcome: Outcome) -> PyResult<Ended<'_>> {
    let text = serde_json::to_string(&outcome).map_err(value_error)?;
    let whole = |number: u128| u64::try_from(number).unwrap_or(u64::MAX);
    let rows = &outcome.trace;
    let columns = (
        PyArray1::from_iter(py, rows.iter().map(|row| row.step)),
        PyArray1::from_iter(py, rows.iter().map(|row| whole(row.samples))),
        PyArray1::from_iter(py, rows.iter().map(|row| whole(row.evaluations))),
        PyArray1::from_iter(py, rows.iter().map(|row| row.distance)),
    );
    let checkpoint = PyBytes::new(py, &outcome.checkpoint);
    Ok((text, PyArray1::from_vec(py, outcome.point), columns, checkpoint))
}

/// Threads of a run's own.
fn pool(threads: usize) -> PyResult<rayon::ThreadPool> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| PyOSError::new_err(format!("no threads: {error}")))
}

/// Works on threads of its own without Python, while this one looks for signals.
fn alone<T: Send + 'static>(
    py: Python<'_>,
    threads: usize,
    work: impl FnOnce(&Arc<AtomicBool>) -> T + Send + 'static,
) -> PyResult<T> {
    let pool = pool(threads)?;
    let stop = Arc::<AtomicBool>::default();
    let flag = Arc::clone(&stop);
    let (done, news) = channel::<()>();
    let worker = thread::Builder::new().name("pasta".into()).spawn(move || {
        let _done = done;
        pool.install(|| work(&flag))
    })?;
    let mut raised = None;
    let mut news = news;
    while py.detach(|| {
        let news = &mut news;
        news.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout)
    }) {
        if let Err(error) = py.check_signals() {
            stop.store(true, Ordering::Relaxed);
            raised = Some(error);
        }
    }
    let worked = py.detach(|| worker.join()).unwrap_or_else(|panic| resume_unwind(panic));
    raised.map_or(Ok(worked), Err)
}

/// Has the engine work on threads of its own, and answers it from this one.
fn beside<T: Send + 'static>(
    leaves: Bound<'_, PyAny>,
    callback: Option<Bound<'_, PyAny>>,
    threads: usize,
    work: impl FnOnce(Line) -> Result<T, Trouble> + Send + 'static,
) -> PyResult<T> {
    let py = leaves.py();
    let pool = pool(threads)?;
    let (sender, messages) = channel();
    let line = Line { messages: sender, stop: Arc::default(), gives_losses: Arc::default() };
    let server = Server::new(leaves, callback, Arc::clone(&line.stop), Arc::clone(&line.gives_losses))?;
    // The line ends with the engine, however it ends.
    let engine = thread::Builder::new().name("pasta".into()).spawn(move || pool.install(|| work(line)))?;
    let raised = server.serve(messages);
    let ended = py.detach(|| engine.join()).unwrap_or_else(|panic| resume_unwind(panic));
    if let Some(error) = raised {
        return Err(error);
    }
    ended.map_err(trouble)
}

fn trouble(trouble: Trouble) -> PyErr {
    match trouble {
        Trouble::Input(message) => PyValueError::new_err(message),
        Trouble::System(message) => PyRuntimeError::new_err(message),
        Trouble::Raised => PyRuntimeError::new_err("it was stopped before it began"),
    }
}

/// Certifies a point. The certificate as JSON.
#[pyfunction]
fn certify(
    leaves: Bound<'_, PyAny>,
    x: PyReadonlyArray1<'_, f64>,
    rule: RuleOf,
    budget: Option<u128>,
    seed: u64,
    threads: usize,
    of_term: (GivenTerm<'_>, Option<f64>),
) -> PyResult<String> {
    let (asked, x) = (OracleSource::of(&leaves)?, x.as_slice()?.to_vec());
    let (given, gamma) = of_term;
    let term = (term_of(&given), gamma);
    let (rule, target) = read_rule(rule)?;
    if target.norm().is_none() {
        return Err(value_error("target: a point that is certified by hand has no start; give a number"));
    }
    let certify = move |line| run::certify(&asked, &x, rule, budget, seed, term, &line);
    let certified = unless_raised(given.as_deref(), beside(leaves, None, threads, certify))?;
    serde_json::to_string(&certified).map_err(value_error)
}

/// Makes the certificate of a result again, and compares. What was done, in a sentence.
#[pyfunction]
fn verify(
    leaves: Bound<'_, PyAny>,
    x: PyReadonlyArray1<'_, f64>,
    result: String,
    checkpoint: Vec<u8>,
    threads: usize,
    given: GivenTerm<'_>,
) -> PyResult<String> {
    let (asked, x) = (OracleSource::of(&leaves)?, x.as_slice()?.to_vec());
    let term = term_of(&given);
    let verify = move |line| run::verify(&asked, x, &result, &checkpoint, term, &line);
    unless_raised(given.as_deref(), beside(leaves, None, threads, verify))
}

/// Measures constants around a point. What was found as JSON.
#[pyfunction]
fn calibrate(
    leaves: Bound<'_, PyAny>,
    x0: PyReadonlyArray1<'_, f64>,
    budget: u64,
    seed: u64,
    threads: usize,
    given: GivenTerm<'_>,
) -> PyResult<String> {
    let (asked, x0) = (OracleSource::of(&leaves)?, x0.as_slice()?.to_vec());
    let term = term_of(&given);
    let measure = move |line| run::calibrate(&asked, &x0, budget, seed, term, &line);
    let measured = unless_raised(given.as_deref(), beside(leaves, None, threads, measure))?;
    serde_json::to_string(&measured).map_err(value_error)
}

/// Checks an oracle at length. What was found as JSON.
#[pyfunction]
fn check(
    leaves: Bound<'_, PyAny>,
    x0: PyReadonlyArray1<'_, f64>,
    seed: u64,
    threads: usize,
    given: GivenTerm<'_>,
) -> PyResult<String> {
    let (asked, x0) = (OracleSource::of(&leaves)?, x0.as_slice()?.to_vec());
    let term = term_of(&given);
    let check = move |line| run::check(&asked, &x0, seed, term, &line);
    unless_raised(given.as_deref(), beside(leaves, None, threads, check))
}

/// What a certified run will probably cost, as JSON.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "keywords of Python, one by one")]
fn forecast(
    leaves: Bound<'_, PyAny>,
    x0: PyReadonlyArray1<'_, f64>,
    method: MethodOf,
    rule: RuleOf,
    samples: u128,
    seed: u64,
    threads: usize,
    of_term: (GivenTerm<'_>, Option<f64>),
) -> PyResult<String> {
    let (asked, x0) = (OracleSource::of(&leaves)?, x0.as_slice()?.to_vec());
    let rule = read_rule(rule)?;
    let method = method.spec()?;
    let (given, gamma) = of_term;
    let term = (term_of(&given), gamma);
    let forecast = move |line| run::forecast(&asked, &x0, rule, samples, &method, seed, term, &line);
    unless_raised(given.as_deref(), beside(leaves, None, threads, forecast))
}

/// Methods side by side, as JSON.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "keywords of Python, one by one")]
fn compare(
    leaves: Bound<'_, PyAny>,
    x0: PyReadonlyArray1<'_, f64>,
    methods: Vec<String>,
    grid: bool,
    rule: Option<RuleOf>,
    budget: u64,
    seeds: u64,
    seed: u64,
    threads: usize,
    of_term: (GivenTerm<'_>, Option<f64>),
) -> PyResult<String> {
    let (asked, start) = (OracleSource::of(&leaves)?, x0.as_slice()?.to_vec());
    let (rule, target) = rule.map(read_rule).transpose()?.unzip();
    let (given, gamma) = of_term;
    let term = term_of(&given);
    let compared = beside(leaves, None, threads, move |line| {
        run::feasible(term.as_deref(), &start)?;
        let (_, losses) = run::gate(&asked, &start, seed, None, &line)?;
        let oracle = asked.oracle(losses, &line);
        let race = Race { oracle, start, methods, grid, rule, target, budget, seeds, seed, term, gamma };
        race.run(&line.stop).map_err(Trouble::Input)?.ok_or(Trouble::Raised)
    });
    unless_raised(given.as_deref(), compared)
}

/// What is planned for a recipe, as JSON.
#[pyfunction]
fn plan(recipe: &str, flags: Vec<(String, f64)>) -> PyResult<String> {
    pasta_cli::answers::plan(recipe, &flags).map_err(PyValueError::new_err)
}

/// Theorem 1, or Theorem 2 for functions that are smooth in mean square. The bound and its instance as JSON.
#[pyfunction]
fn lower_bound(
    smoothness: f64,
    mean_square: bool,
    gap: f64,
    growth: f64,
    floor: f64,
    target: f64,
) -> PyResult<String> {
    let bound = if mean_square {
        LowerMeanSquareSmooth { ms_smoothness: smoothness, gap, growth, floor, target }.evaluate()
    } else {
        LowerSmooth { smoothness, gap, growth, floor, target }.evaluate()
    };
    serde_json::to_string(&bound.map_err(value_error)?).map_err(value_error)
}

fn value_error(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// A target: a number, or a text such as "1%".
#[derive(FromPyObject)]
pub(crate) enum TargetOf {
    Number(f64),
    Text(String),
}

impl TargetOf {
    pub(crate) fn read(self) -> PyResult<Target> {
        match self {
            Self::Number(number) => Ok(Target::Norm(number)),
            Self::Text(text) => text.parse().map_err(|error| value_error(format!("target: {error}"))),
        }
    }
}

fn read_rule((target, delta, share, (name, numbers)): RuleOf) -> PyResult<(StopRule, Target)> {
    let target = target.read()?;
    let basis = match (name.as_str(), numbers.as_slice()) {
        ("variance", [variance]) => Basis::Variance(*variance),
        ("kurtosis", [kurtosis]) => Basis::Kurtosis(*kurtosis),
        ("exact", []) => Basis::Exact,
        ("growth", [growth, floor]) => Basis::Growth { growth: *growth, floor: *floor, distance: 0.0 },
        _ => return Err(PyValueError::new_err(format!("no certificate rests on {name} {numbers:?}"))),
    };
    Ok((StopRule { target: target.provisional(), delta, basis, share }, target))
}

/// A method: its name, its settings by name, its steps, and their samples.
#[derive(Clone, FromPyObject)]
pub(crate) struct MethodOf(String, BTreeMap<String, f64>, u64, u64);

impl MethodOf {
    fn name(&self) -> &str {
        &self.0
    }

    /// The method for an oracle.
    fn engine(&self, oracle: Arc<dyn Oracle>) -> PyResult<Engine> {
        let problem = Problem::of(oracle, Vec::new());
        Ok(self.spec()?.choose(&problem).map_err(value_error)?.engine)
    }

    /// What is asked for; names are checked, numbers are not yet.
    fn spec(&self) -> PyResult<MethodSpec> {
        let Self(name, settings, steps, batch) = self;
        let method = find(name).ok_or_else(|| value_error(ChoiceError::Unknown { name: name.clone() }))?;
        if method.row().is_none() {
            let (name, settings) = (name.clone(), settings.clone());
            let named = MethodSpec::Named { name, settings, steps: *steps, batch: *batch };
            return Ok(if method.name == AUTO { MethodSpec::Auto } else { named });
        }
        let mut constants = Constants::default();
        for (setting, value) in settings {
            let constant = Constant::ALL.iter().find(|constant| constant.name() == setting);
            let unknown = || ChoiceError::Setting { method: method.name, setting: setting.clone() };
            constants.set(*constant.ok_or_else(|| value_error(unknown()))?, *value);
        }
        let (name, estimated) = (name.clone(), Vec::new());
        Ok(MethodSpec::Recipe { name, constants, estimated, proved: false, fallback: false })
    }
}

/// How many coordinates the run of a checkpoint has.
#[pyfunction]
fn stored_dimension(checkpoint: PathBuf) -> PyResult<usize> {
    let stored = Checkpoint::load(&checkpoint).and_then(|stored| Stored::of(&stored));
    Ok(stored.map_err(value_error)?.dim)
}

/// All methods: name, what it does, and for each setting its name, meaning and default.
#[pyfunction]
fn methods(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let one = |method: &pasta_opt::method::Method| {
        let settings: Vec<(&str, &str, Option<f64>, bool)> = if let Some(row) = method.row() {
            let needed = row.needs.iter().map(|c| (c.name(), c.meaning(), None, true));
            let taken = row.takes.iter().map(|c| (c.name(), c.meaning(), None, false));
            needed.chain(taken).collect()
        } else {
            let settings = method.settings().iter();
            settings.map(|s| (s.name, s.meaning, s.default, s.default.is_none())).collect()
        };
        let dict = PyDict::new(py);
        dict.set_item("name", method.name)?;
        dict.set_item("about", method.about)?;
        dict.set_item("has_steps", method.has_steps())?;
        dict.set_item("settings", settings)?;
        Ok(dict)
    };
    METHODS.iter().map(one).collect()
}

/// Rows of a label and a value as the program would print them.
#[pyfunction]
fn rows(rows: Vec<(String, String)>, width: usize) -> String {
    Table::labelled(rows).text_within(width)
}

/// The program `pasta` with a command line, its own name first. What it returns is the exit code.
#[pyfunction]
fn program(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| pasta_cli::run(arguments))
}

// Nothing here rests on the interpreter's lock: every run has its own threads and generator, and what Python can reach is frozen or behind a mutex.
#[pymodule(gil_used = false)]
fn _engine(module: &Bound<'_, PyModule>) -> PyResult<()> {
    pasta_report::console::listen();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("FIRST_FORECAST", Outlook::FIRST)?;
    module.add("PILOT", Pilot::SAMPLES)?;
    module.add("StreamEnded", module.py().get_type::<serve::StreamEnded>())?;
    // Of what certifies a point, as generators have them in their keys.
    module.add("CERTIFYING", [Role::Certificate, Role::Pilot, Role::Slopes].map(|role| role as u64))?;
    module.add_function(wrap_pyfunction!(minimize, module)?)?;
    module.add_function(wrap_pyfunction!(resume, module)?)?;
    module.add_function(wrap_pyfunction!(certify, module)?)?;
    module.add_function(wrap_pyfunction!(verify, module)?)?;
    module.add_function(wrap_pyfunction!(calibrate, module)?)?;
    module.add_function(wrap_pyfunction!(check, module)?)?;
    module.add_class::<Native>()?;
    module.add_class::<Asking>()?;
    module.add_function(wrap_pyfunction!(forecast, module)?)?;
    module.add_function(wrap_pyfunction!(compare, module)?)?;
    module.add_function(wrap_pyfunction!(plan, module)?)?;
    module.add_function(wrap_pyfunction!(term::terms, module)?)?;
    module.add_function(wrap_pyfunction!(term::own_term, module)?)?;
    module.add_class::<term::PyTerm>()?;
    module.add_function(wrap_pyfunction!(native::read_problem, module)?)?;
    module.add_function(wrap_pyfunction!(native::hard_instance, module)?)?;
    module.add_function(wrap_pyfunction!(native::table, module)?)?;
    module.add_function(wrap_pyfunction!(native::losses, module)?)?;
    module.add_function(wrap_pyfunction!(fit::fit, module)?)?;
    module.add_function(wrap_pyfunction!(fit::stream, module)?)?;
    module.add_function(wrap_pyfunction!(lower_bound, module)?)?;
    module.add_function(wrap_pyfunction!(stored_dimension, module)?)?;
    module.add_function(wrap_pyfunction!(methods, module)?)?;
    module.add_function(wrap_pyfunction!(rows, module)?)?;
    module.add_function(wrap_pyfunction!(program, module)?)?;
    Ok(())
}
