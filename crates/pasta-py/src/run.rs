//! A run, on threads of its own.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use pasta_opt::calibrate::Calibration;
use pasta_opt::certificate::{Certificate, Certifier, Claim};
use pasta_opt::check::{self, Effort};
use pasta_opt::checkpoint::{Checkpoint, Saver};
use pasta_opt::draws::{Role, derived_seed};
use pasta_opt::forecast::{self, Family, Forecast, Measured, Outlook, Pilot, PilotError};
use pasta_opt::gate::{Gate, Halt};
use pasta_opt::ledger::Ledger;
use pasta_opt::method::{self, Engine};
use pasta_opt::oracle::{Answer, Request};
use pasta_opt::recipe::{Constant, Constants, RecipeRow};
use pasta_opt::stop::Stop;
use pasta_opt::trace::is_milestone;
use pasta_opt::walk::{Advance, StopRule, Walk};
use serde::{Deserialize, Serialize};

use crate::asked::Asked;
use crate::oracle::{Line, Message, Snapshot, is_set, sent};

/// What is to be run.
pub(crate) struct Job {
    pub(crate) begin: Begin,
    pub(crate) asked: Asked,
    pub(crate) budget: Option<u128>,
    pub(crate) shows: Shows,
    pub(crate) checkpoint: Option<PathBuf>,
}

/// How often a run shows where it stands.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shows {
    Never,
    /// After a step, if the last time was so long ago.
    Every(Duration),
}

/// Where a run begins.
pub(crate) enum Begin {
    Fresh {
        start: Vec<f64>,
        seed: u64,
        method: Box<Aimed>,
        /// The samples of the run before it is first forecast; 0 for no forecast.
        pilot: u128,
        told: Box<Told>,
    },
    Stored(Box<Checkpoint>),
}

/// A method, which may be aimed at other targets.
#[derive(Debug, Clone)]
pub(crate) struct Aimed {
    pub(crate) name: String,
    pub(crate) engine: Engine,
    /// For a recipe that promises a gradient: its row and constants.
    pub(crate) recipe: Option<(&'static RecipeRow, Constants)>,
}

impl Aimed {
    /// The same method for another target of |grad f|, without an end: a coarse target has a short plan, which would end before it
    /// could be certified.
    fn at(&self, target: f64, of: f64) -> Engine {
        if let Engine::Auto { .. } = self.engine {
            return Engine::Auto { target: Some(target) };
        }
        let aimed = || {
            let (row, mut constants) = self.recipe?;
            let own = constants.get(Constant::Target)?;
            constants.set(Constant::Target, own / of * target);
            Some(Engine::Schedule(row.plan(&constants).ok()?.schedule))
        };
        aimed().unwrap_or_else(|| self.engine.clone()).endless()
    }
}

/// What is known about a run from its beginning, and kept in its checkpoint.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Told {
    pub(crate) method: String,
    pub(crate) dim: usize,
    /// What a theorem promises at the planned end.
    pub(crate) promise: Option<String>,
    pub(crate) rule: Option<StopRule>,
    pub(crate) losses: bool,
    /// Whether the oracle is checked before the first step.
    #[serde(default)]
    pub(crate) check: bool,
    pub(crate) trace: Vec<TraceRow>,
    /// What the run says of its own cost.
    #[serde(default, rename = "forecasts")]
    pub(crate) outlook: Outlook,
    /// The budget with which it began, which its plan was made for.
    #[serde(default)]
    pub(crate) budget: Option<u128>,
}

/// What is said about the cost of a run.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Prospect {
    forecast: Option<Range>,
    forecast_silent: Option<String>,
}

/// A forecast.
#[derive(Debug, Clone, Copy, Serialize)]
struct Range {
    low: f64,
    middle: f64,
    high: f64,
    /// What the run had drawn; `None` where a pilot made it.
    after: Option<u128>,
    /// The share of runs of such methods in which ranges like this held, where that was tried.
    share: Option<f64>,
}

impl Range {
    fn new(forecast: Forecast, after: Option<u128>, method: &str, measured: fn(Family) -> Measured) -> Self {
        let Forecast { low, middle, high, .. } = forecast;
        let measured = Family::of(method).map(measured).filter(|measured| measured.of > 0);
        let share = measured.map(|measured| f64::from(measured.held) / f64::from(measured.of));
        Self { low, middle, high, after, share }
    }
}

impl Prospect {
    fn of_pilot(pilot: &Pilot, target: f64, method: &str) -> Self {
        match pilot.forecast(target) {
            Ok(forecast) => {
                let range = Range::new(forecast, None, method, Family::measured);
                Self { forecast: Some(range), forecast_silent: None }
            }
            Err(silence) => Self { forecast: None, forecast_silent: Some(silence.to_string()) },
        }
    }

    fn of_run(outlook: &Outlook, method: &str) -> Self {
        let range =
            |said: forecast::Said| Range::new(said.forecast, Some(said.after), method, Family::measured_own);
        Self { forecast: outlook.first.map(range), forecast_silent: outlook.silent.clone() }
    }
}

/// A row of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct TraceRow {
    pub(crate) step: u64,
    pub(crate) samples: u128,
    pub(crate) evaluations: u128,
    pub(crate) distance: f64,
}

/// The end of a run.
#[derive(Serialize)]
pub(crate) struct Outcome {
    method: String,
    problem: String,
    seed: u64,
    stop: Stopped,
    steps: u64,
    distance: f64,
    ledger: Ledger,
    promise: Option<String>,
    /// Whether a certificate was asked for.
    asked: bool,
    certificate: Option<Certified>,
    #[serde(skip)]
    pub(crate) point: Vec<f64>,
    #[serde(skip)]
    pub(crate) trace: Vec<TraceRow>,
    outlook: Prospect,
    /// All that is needed to go on later.
    #[serde(skip)]
    pub(crate) checkpoint: Vec<u8>,
}

#[derive(Serialize)]
struct Stopped {
    kind: &'static str,
    meaning: String,
}

/// A certificate, with its words.
#[derive(Serialize)]
pub(crate) struct Certified {
    #[serde(flatten)]
    certificate: Certificate,
    words: &'static str,
    statement: String,
    attempts: u64,
}

impl Certified {
    fn new(certificate: Certificate, attempts: u64) -> Self {
        let (words, statement) = (certificate.verdict.words(), certificate.statement());
        Self { certificate, words, statement, attempts }
    }
}

/// Why there is no outcome.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// What was given makes no run.
    Input(String),
    /// The engine or a file failed.
    System(String),
    /// User code raised before the run had begun.
    Raised,
}

/// The name of this package's section in a checkpoint.
pub(crate) const SECTION: &str = "python";
/// The section of a checkpoint that certificates have.
const CERTIFICATES: &str = "certificate";
/// Time between checkpoints, in case the machine fails.
const BETWEEN: Duration = Duration::from_secs(10);

struct Run {
    gate: Gate,
    walk: Box<dyn Walk>,
    told: Told,
    /// The budget of a run that was resumed, and how it had ended by itself, if it had.
    resumed: Option<(Option<u128>, Option<Stop>)>,
    line: Line,
}

/// Runs to an end. An interrupted run is one, too.
pub(crate) fn run(job: Job, line: Line) -> Result<Outcome, Trouble> {
    let Job { begin, asked, budget, shows, checkpoint } = job;
    let run = match begin {
        Begin::Fresh { start, seed, method, pilot, told } => {
            let (mut gate, losses) = gate(&asked, &start, seed, budget, &line)?;
            let walk = method.engine.clone().start(&gate, &start).map_err(input)?;
            if told.check {
                believed(&mut gate, &start)?;
            }
            let walk = certified(&gate, walk, told.rule)?;
            let outlook = Outlook::start(gate.about(), told.rule, pilot);
            Run { gate, walk, told: Told { losses, outlook, budget, ..*told }, resumed: None, line }
        }
        Begin::Stored(mut stored) => {
            let (told, _): (Told, _) = stored.take(SECTION).map_err(input)?;
            let gate = Gate::resume(asked.oracle(told.losses, &line), &mut stored).map_err(input)?;
            let drawn = gate.ledger().samples();
            if let Some(budget) = budget.filter(|budget| *budget < drawn) {
                let message =
                    format!("the run has already drawn {drawn} samples, more than the budget of {budget}");
                return Err(Trouble::Input(message));
            }
            let mut gate = gate.with_budget(budget).with_stop(Arc::clone(&line.stop));
            let has_end = !matches!(Engine::of(&stored).map_err(input)?, Engine::Auto { .. });
            let walk = method::resume(&gate, &mut stored).map_err(input)?;
            if budget.is_none() && told.rule.is_none() && !has_end && walk.view().ended.is_none() {
                return Err(Trouble::Input(format!(
                    "say when to stop: the run has no target and its method no end, and {drawn} samples are drawn; budget=1_000_000 draws at most that many in all"
                )));
            }
            if told.check {
                believed(&mut gate, walk.view().start)?;
            }
            let walk: Box<dyn Walk> = match told.rule {
                Some(rule) if stored.has(CERTIFICATES) => {
                    Box::new(walk.certified_again(&gate, rule, &mut stored).map_err(input)?)
                }
                rule => certified(&gate, walk, rule)?,
            };
            let resumed = Some((budget, walk.view().ended));
            Run { gate, walk, told, resumed, line }
        }
    };
    run.finish(shows, checkpoint)
}

/// Refuses an oracle that a few samples show to be wrong. Whoever stops it meanwhile is heard by the walk.
fn believed(gate: &mut Gate, start: &[f64]) -> Result<(), Trouble> {
    match check::before_run(gate, start) {
        Ok(_) => Ok(()),
        Err(_) if gate.is_stopped() => Ok(()),
        Err(Halt::Oracle(error)) => {
            let words =
                std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
            let words = words.strip_prefix("it ").unwrap_or(&words);
            Err(Trouble::Input(format!(
                "the oracle {words} (pasta_opt.check says more; check=False runs it all the same)"
            )))
        }
        Err(halt) => Err(input(halt)),
    }
}

/// What a check at length finds, as JSON.
pub(crate) fn check(asked: &Asked, x0: &[f64], seed: u64, line: &Line) -> Result<String, Trouble> {
    #[derive(Serialize)]
    struct Checked {
        problem: String,
        is_believable: bool,
        sentences: Vec<String>,
        #[serde(flatten)]
        findings: check::Findings,
    }
    let (mut gate, _) = gate(asked, x0, seed, None, line)?;
    let findings = check::oracle(&mut gate, x0, Effort::Thorough).map_err(|halt| match halt {
        Halt::Interrupted => Trouble::Raised,
        other => input(other),
    })?;
    let sentences: Vec<_> = findings.slips.iter().map(ToString::to_string).collect();
    let problem = gate.about().identity.clone();
    let checked = Checked { problem, is_believable: sentences.is_empty(), sentences, findings };
    serde_json::to_string(&checked).map_err(input)
}

/// The gate, and whether there are losses, which one sample at the start shows where it is not known.
pub(crate) fn gate(
    asked: &Asked,
    start: &[f64],
    seed: u64,
    budget: Option<u128>,
    line: &Line,
) -> Result<(Gate, bool), Trouble> {
    let gate = |losses| over(asked, losses, seed, line).with_budget(budget);
    let probe = if asked.losses().is_none() { Some(probed(gate(false), start)?) } else { None };
    let losses = asked.losses().unwrap_or_else(|| is_set(&line.gives_losses));
    let mut gate = gate(losses);
    probe.iter().for_each(|probe| gate.merge(probe));
    Ok((gate, losses))
}

/// A gate that Ctrl-C and exceptions stop.
fn over(asked: &Asked, losses: bool, seed: u64, line: &Line) -> Gate {
    Gate::over(asked.oracle(losses, line), seed).with_stop(Arc::clone(&line.stop))
}

/// The pilot of a forecast.
fn run_pilot(
    gate: &mut Gate,
    start: &[f64],
    rule: StopRule,
    samples: u128,
    method: &Aimed,
) -> Result<Pilot, Trouble> {
    let run = |gate: &Gate, target| method.at(target, rule.target).start(gate, start);
    Pilot::run(gate, start, rule, samples, run).map_err(|error| match error {
        PilotError::Halt(Halt::Interrupted) => Trouble::Raised,
        other => input(other),
    })
}

/// What a certified run of a method will probably cost.
pub(crate) fn forecast(
    asked: &Asked,
    start: &[f64],
    rule: StopRule,
    samples: u128,
    method: &Aimed,
    seed: u64,
    line: &Line,
) -> Result<String, Trouble> {
    #[derive(Serialize)]
    struct Forecasted {
        problem: String,
        target: f64,
        #[serde(flatten)]
        prospect: Prospect,
        pilot_budget: u128,
        pilot: Pilot,
    }
    let (mut gate, _) = gate(asked, start, seed, None, line)?;
    let pilot = run_pilot(&mut gate, start, rule, samples, method)?;
    let forecasted = Forecasted {
        problem: gate.about().identity.clone(),
        target: rule.target,
        prospect: Prospect::of_pilot(&pilot, rule.target, &method.name),
        pilot_budget: samples,
        pilot,
    };
    serde_json::to_string(&forecasted).map_err(input)
}

fn input(error: impl std::fmt::Display) -> Trouble {
    Trouble::Input(error.to_string())
}

fn certified(gate: &Gate, walk: Box<dyn Walk>, rule: Option<StopRule>) -> Result<Box<dyn Walk>, Trouble> {
    let Some(rule) = rule else { return Ok(walk) };
    Ok(Box::new(walk.certified(gate, rule).map_err(input)?))
}

/// The gate after one sample at the start, which shows whether there are losses, and whether shapes are right. It counts.
fn probed(mut gate: Gate, start: &[f64]) -> Result<Gate, Trouble> {
    let mut sum = vec![0.0; start.len()];
    let batch = gate.batch(Role::Check, 0, 1);
    let asked = gate.ask(Request::sums(batch, &[start]), &mut Answer::new(&mut sum));
    match asked {
        Ok(_) => Ok(gate),
        Err(_) if gate.is_stopped() => Err(Trouble::Raised),
        Err(halt) => Err(Trouble::Input(format!("at x0: {halt}"))),
    }
}

/// A certificate of a point. Its samples are not those of any run with this seed.
pub(crate) fn certify(
    asked: &Asked,
    x: &[f64],
    StopRule { target, delta, basis, .. }: StopRule,
    budget: Option<u128>,
    seed: u64,
    line: &Line,
) -> Result<Certified, Trouble> {
    let seed = derived_seed(seed, Role::Certificate, u64::MAX);
    let mut gate = over(asked, false, seed, line).with_budget(budget);
    let claim = Claim { target, delta, basis, budget, guess: None };
    let certified =
        Certifier::start(&mut gate, x, claim, 0).and_then(|certifier| Ok(certifier.finish(&mut gate)?));
    certified.map(|certificate| Certified::new(certificate, 1)).map_err(input)
}

/// What samples say about the constants of an oracle.
pub(crate) fn calibrate(
    asked: &Asked,
    x0: &[f64],
    budget: u64,
    seed: u64,
    line: &Line,
) -> Result<Calibration, Trouble> {
    let mut gate = over(asked, false, seed, line);
    Calibration::measure(&mut gate, x0, budget, &mut |_| ()).map_err(input)
}

impl Run {
    fn finish(mut self, shows: Shows, checkpoint: Option<PathBuf>) -> Result<Outcome, Trouble> {
        let mut saved = Instant::now();
        let save = |run: &Self| match &checkpoint {
            None => Ok(()),
            Some(path) => run.saver().save(path).map_err(|error| Trouble::System(error.to_string())),
        };
        save(&self)?;
        let mut shown: Option<Instant> = None;
        let stop = loop {
            // A walk that is asked plans for the budget that is left, and whoever stopped the check has not paid for it yet.
            if self.gate.is_stopped() {
                break Stop::Interrupted;
            }
            match self.walk.advance(&mut self.gate) {
                Ok(Advance::Step(_)) => {
                    if is_milestone(self.walk.view().step) {
                        self.note();
                    }
                    let is_due = match shows {
                        Shows::Never => false,
                        Shows::Every(time) => shown.is_none_or(|shown| shown.elapsed() >= time),
                    };
                    if is_due {
                        shown = Some(Instant::now());
                    }
                    match if is_due { self.show() } else { Some(false) } {
                        Some(false) => {}
                        Some(true) => break Stop::Asked,
                        None => break Stop::Interrupted,
                    }
                }
                Ok(Advance::Stop(stop)) => break stop,
                Ok(_) => {}
                Err(halt) => {
                    let Some(stop) = halt.stop() else {
                        save(&self)?;
                        return Err(Trouble::System(halt.to_string()));
                    };
                    break stop;
                }
            }
            if let Some(rule) = self.told.rule
                && self.told.outlook.is_due(self.gate.ledger())
            {
                self.told.outlook.follow(&self.walk.view(), self.gate.ledger(), rule);
            }
            if checkpoint.is_some() && saved.elapsed() > BETWEEN {
                save(&self)?;
                saved = Instant::now();
            }
        };
        save(&self)?;
        self.note();
        Ok(self.outcome(stop))
    }

    fn row(&self) -> TraceRow {
        let (view, ledger) = (self.walk.view(), self.gate.ledger());
        TraceRow {
            step: view.step,
            samples: ledger.samples(),
            evaluations: ledger.evaluations(),
            distance: view.distance2.sqrt(),
        }
    }

    fn note(&mut self) {
        let row = self.row();
        if self.told.trace.last() != Some(&row) {
            self.told.trace.push(row);
        }
    }

    /// What the callback says, or `None` if it raised.
    fn show(&self) -> Option<bool> {
        let TraceRow { step, samples, evaluations, distance } = self.row();
        let x = self.walk.view().x.to_vec();
        let (reply, replied) = sync_channel(1);
        let snapshot = Snapshot { step, samples, evaluations, distance, x };
        sent(&self.line, Message::Show(snapshot, reply), &replied)
    }

    /// All that is needed to go on later.
    fn saver(&self) -> Saver<'_> {
        let mut saver = Saver::default();
        self.gate.save(&mut saver);
        self.walk.save(&mut saver);
        saver.put(SECTION, &self.told, []);
        saver
    }

    /// What a stop means; of a run that was resumed, why it did not go on.
    fn meaning(&self, stop: Stop) -> String {
        let is_empty = stop == Stop::PlannedEnd && self.walk.view().step == 0 && self.gate.budget().is_some();
        if is_empty && self.told.promise.is_none() {
            return "the budget has no room for a first step; the point is the start".into();
        }
        let meaning = stop.meaning();
        let Some((budget, ended)) = self.resumed else { return meaning };
        // A plan that was made for the first budget leaves most of what a larger one adds.
        let is_left = |first: u128| {
            let drawn = self.gate.ledger().samples();
            budget.is_some_and(|budget| budget > first && 2 * budget.saturating_sub(drawn) > budget - first)
        };
        match self.told.budget.filter(|first| stop == Stop::PlannedEnd && is_left(*first)) {
            Some(first) => format!(
                "{meaning}; they were planned when the run began, with a budget of {first} samples, and a larger one does not add to them: start anew for more"
            ),
            None if ended.is_some() => {
                format!("{meaning}; the run had ended before it was resumed, and nothing was left to do")
            }
            None => meaning,
        }
    }

    fn outcome(self, stop: Stop) -> Outcome {
        let checkpoint = self.saver().to_bytes();
        let view = self.walk.view();
        let certificate = view.certification.and_then(|log| {
            let certificate = log.last?;
            Some(Certified::new(certificate, log.attempts))
        });
        Outcome {
            problem: self.gate.about().identity.clone(),
            seed: self.gate.seed(),
            stop: Stopped { kind: stop.kind(), meaning: self.meaning(stop) },
            steps: view.step,
            distance: view.distance2.sqrt(),
            ledger: self.gate.ledger().clone(),
            asked: self.told.rule.is_some(),
            certificate,
            point: view.point.to_vec(),
            outlook: Prospect::of_run(&self.told.outlook, &self.told.method),
            method: self.told.method,
            promise: self.told.promise.filter(|_| stop == Stop::PlannedEnd),
            trace: self.told.trace,
            checkpoint,
        }
    }
}
