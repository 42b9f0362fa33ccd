//! A run, on threads of its own.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use pasta_opt::calibrate::Calibration;
use pasta_opt::certificate::{Certifier, Claim, number_by_hand, seed_by_hand};
use pasta_opt::check::{self, CheckError, Effort};
use pasta_opt::checkpoint::{Checkpoint, Saver};
use pasta_opt::draws::Role;
use pasta_opt::forecast::{Family, Forecast, Pilot, PilotError};
use pasta_opt::gate::{Gate, Halt};
use pasta_opt::oracle::{Answer, Request};
use pasta_opt::run::{
    self, Certified, ChoiceError, Chosen, Event, Mark, MethodSpec, OfStart, Problem, Report, Run, RunError,
    Stored, Target, Task,
};
use pasta_opt::stop::Stop;
use pasta_opt::term::Term;
use pasta_opt::verify::{self, Given};
use pasta_opt::walk::StopRule;
use pasta_report::answer::{Besides, Row, Words};
use pasta_report::console;
use serde::Serialize;

use crate::oracle::{Line, Message, Snapshot, is_set, sent};
use crate::source::OracleSource;

/// What is to be run.
pub(crate) struct Job {
    pub(crate) begin: Begin,
    pub(crate) asked: OracleSource,
    pub(crate) budget: Option<u128>,
    /// Whether it goes on without a budget where its target is not within reach.
    pub(crate) no_limit: bool,
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
    Fresh { start: Vec<f64>, task: Box<Task>, term: Option<Arc<dyn Term>> },
    Stored { checkpoint: Box<Checkpoint>, term: Option<Arc<dyn Term>> },
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
    /// The share of runs of such methods in which ranges like this held, where that was tried.
    share: Option<f64>,
}

impl Range {
    fn of_pilot(forecast: Forecast, method: &str) -> Self {
        let Forecast { low, middle, high, .. } = forecast;
        let measured = Family::of(method).map(Family::measured).filter(|measured| measured.of > 0);
        let share = measured.map(|measured| f64::from(measured.held) / f64::from(measured.of));
        Self { low, middle, high, share }
    }
}

impl Prospect {
    fn of_pilot(pilot: &Pilot, target: f64, method: &str) -> Self {
        match pilot.forecast(target) {
            Ok(forecast) => {
                let range = Range::of_pilot(forecast, method);
                Self { forecast: Some(range), forecast_silent: None }
            }
            Err(silence) => Self { forecast: None, forecast_silent: Some(silence.to_string()) },
        }
    }
}

/// The end of a run.
#[derive(Serialize)]
pub(crate) struct Outcome {
    #[serde(flatten)]
    report: Report,
    /// The report in words: the answer, and the rest.
    answer: Vec<Row>,
    details: Vec<Row>,
    #[serde(skip)]
    pub(crate) point: Vec<f64>,
    #[serde(skip)]
    pub(crate) trace: Vec<Mark>,
    /// All that is needed to go on later.
    #[serde(skip)]
    pub(crate) checkpoint: Vec<u8>,
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

/// Time between checkpoints, in case the machine fails.
const BETWEEN: Duration = Duration::from_secs(10);

/// A run, and its line to Python.
struct Live {
    run: Run,
    line: Line,
}

/// Runs to an end. An interrupted run is one, too.
pub(crate) fn run(job: Job, line: Line) -> Result<Outcome, Trouble> {
    let Job { begin, asked, budget, no_limit, shows, checkpoint } = job;
    let stop = Arc::clone(&line.stop);
    let live = match begin {
        Begin::Fresh { start, task, term } => {
            // Before a sample shows whether there are losses.
            let start = run::feasible(term.as_deref(), start.len(), &start, task.project).map_err(input)?;
            let (probe, losses) = gate(&asked, &start, task.seed, budget, &line)?;
            let problem = Problem { term, ..asked.problem(losses, start, &line) };
            let mut run = Run::start(Arc::new(problem), *task, stop).map_err(input)?;
            run.count(&probe);
            prepared(&mut run, &line)?;
            Live { run, line }
        }
        Begin::Stored { checkpoint: mut stored, term } => {
            let Stored { task, dim, losses, .. } = Stored::of(&stored).map_err(input)?;
            let task = Task { budget, no_limit, ..task };
            let problem = Problem { term, ..asked.problem(losses, vec![0.0; dim], &line) };
            let run = Run::resume(Arc::new(problem), task, &mut stored, stop);
            let mut run = run.map_err(|error| match error {
                RunError::Choice(ChoiceError::NoEnd) => Trouble::Input(
                    "say when to stop: the run has no target and its method no end; budget=1_000_000 draws at most that many samples in all"
                        .into(),
                ),
                error => input(error),
            })?;
            prepared(&mut run, &line)?;
            Live { run, line }
        }
    };
    live.finish(shows, checkpoint)
}

/// Refuses an oracle that a few samples show to be wrong, warns of one that shows no noise, and measures the target where that is a share. Whoever stops it
/// meanwhile is heard by the run.
fn prepared(run: &mut Run, line: &Line) -> Result<(), Trouble> {
    if run.is_prepared() {
        return Ok(());
    }
    match run.next() {
        Ok(Event::Checked) => {
            if let Some(note) = run.findings().and_then(check::Findings::note) {
                // Nobody may be there any more.
                let _ = line.messages.send(Message::Warn(note.into()));
            }
            prepared(run, line)
        }
        Ok(_) => Ok(()),
        Err(_) if run.gate().is_stopped() => Ok(()),
        Err(Halt::Oracle(error)) => {
            let words =
                std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
            let words = words.strip_prefix("it ").unwrap_or(&words);
            let slips =
                std::error::Error::source(&error).and_then(|source| source.downcast_ref::<CheckError>());
            let is_own = |slip: &check::Slip| matches!(slip, check::Slip::OwnGenerator { .. });
            let hint = if slips.is_some_and(|error| error.slips.iter().any(is_own)) {
                "; rows that come once, as by next(consumer), are for pasta_opt.Stream(consumer, gradient)"
            } else {
                ""
            };
            Err(Trouble::Input(format!(
                "the oracle {words}{hint} (pasta_opt.check says more; check=False runs it all the same)"
            )))
        }
        Err(halt) => Err(input(halt)),
    }
}

/// What a check at length finds, as JSON.
pub(crate) fn check(
    asked: &OracleSource,
    x0: &[f64],
    seed: u64,
    term: Option<Arc<dyn Term>>,
    line: &Line,
) -> Result<String, Trouble> {
    #[derive(Serialize)]
    struct Checked {
        problem: String,
        is_believable: bool,
        sentences: Vec<String>,
        #[serde(flatten)]
        findings: check::Findings,
    }
    feasible(term.as_deref(), x0)?;
    let (gate, _) = gate(asked, x0, seed, None, line)?;
    let mut gate = gate.with_term(term);
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
    asked: &OracleSource,
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
fn over(asked: &OracleSource, losses: bool, seed: u64, line: &Line) -> Gate {
    Gate::over(asked.oracle(losses, line), seed).with_stop(Arc::clone(&line.stop))
}

/// The pilot of a forecast.
fn run_pilot(
    gate: &mut Gate,
    start: &[f64],
    rule: StopRule,
    samples: u128,
    method: &Chosen,
) -> Result<Pilot, Trouble> {
    let run = |gate: &Gate, target| method.pilot(target, rule.target).start(gate, start);
    Pilot::run(gate, start, rule, samples, run).map_err(|error| match error {
        PilotError::Halt(Halt::Interrupted) => Trouble::Raised,
        other => input(other),
    })
}

/// The gradient at the start, of which the target is a share.
fn measured(gate: &mut Gate, start: &[f64], share: f64) -> Result<OfStart, Trouble> {
    OfStart::measure(share, gate, start).map_err(|halt| match halt {
        Halt::Interrupted => Trouble::Raised,
        other => input(other),
    })
}

/// What a certified run of a method will probably cost.
#[expect(clippy::too_many_arguments, reason = "keywords of Python, one by one")]
pub(crate) fn forecast(
    asked: &OracleSource,
    start: &[f64],
    (rule, target): (StopRule, Target),
    samples: u128,
    method: &MethodSpec,
    seed: u64,
    (term, gamma): (Option<Arc<dyn Term>>, Option<f64>),
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
    feasible(term.as_deref(), start)?;
    let (gate, losses) = gate(asked, start, seed, None, line)?;
    let mut gate = gate.with_term(term).with_gamma(gamma);
    let method = method.choose(&asked.problem(losses, start.to_vec(), line)).map_err(input)?;
    let rule = match target.share() {
        Some(share) => StopRule { target: measured(&mut gate, start, share)?.target, ..rule },
        None => rule,
    };
    let pilot = run_pilot(&mut gate, start, rule, samples, &method)?;
    let forecasted = Forecasted {
        problem: gate.about().identity.clone(),
        target: rule.target,
        prospect: Prospect::of_pilot(&pilot, rule.target, method.name),
        pilot_budget: samples,
        pilot,
    };
    serde_json::to_string(&forecasted).map_err(input)
}

fn input(error: impl std::fmt::Display) -> Trouble {
    Trouble::Input(error.to_string())
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

/// Refuses a point outside of the domain of a term.
pub(crate) fn feasible(term: Option<&dyn Term>, x: &[f64]) -> Result<(), Trouble> {
    run::feasible(term, x.len(), x, false).map(drop).map_err(input)
}

/// A certificate of a point. Its samples are not those of any run with this seed.
pub(crate) fn certify(
    asked: &OracleSource,
    x: &[f64],
    StopRule { target, delta, basis, .. }: StopRule,
    budget: Option<u128>,
    seed: u64,
    (term, gamma): (Option<Arc<dyn Term>>, Option<f64>),
    line: &Line,
) -> Result<Certified, Trouble> {
    feasible(term.as_deref(), x)?;
    let seed = seed_by_hand(seed, x);
    // Where there are losses, the certificate compares them with the gradients.
    let (gate, _) = gate(asked, x, seed, budget, line)?;
    let mut gate = gate.with_term(term).with_gamma(gamma);
    let claim = Claim { target, delta, basis, budget, guess: None };
    let mut certifier = Certifier::start(&mut gate, x, claim, number_by_hand(1)).map_err(input)?;
    let certificate = certifier.follow(&mut gate, |_, _| ()).map_err(input)?;
    Ok(Certified::by_hand(certificate, None, None, &[], certifier.made().as_ref()))
}

/// Makes the certificate of a result again. What was done, in a sentence.
pub(crate) fn verify(
    asked: &OracleSource,
    x: Vec<f64>,
    result: &str,
    checkpoint: &[u8],
    term: Option<Arc<dyn Term>>,
    line: &Line,
) -> Result<String, Trouble> {
    let stored = Checkpoint::from_bytes(checkpoint).and_then(|checkpoint| Stored::of(&checkpoint));
    let Stored { task, dim, losses, .. } = stored.map_err(input)?;
    let problem = Problem { term, ..asked.problem(losses, vec![0.0; dim], line) };
    let mut given = Given::of(&problem);
    (given.task, given.point, given.start_unknown) = (Some(&task), Some(x), true);
    match verify::verify(result, &given, Arc::clone(&line.stop)) {
        Ok(verified) => Ok(verified.sentence()),
        Err(error) if error.is_interrupted() => Err(Trouble::Raised),
        Err(error) => Err(input(error)),
    }
}

/// What samples say about the constants of an oracle.
pub(crate) fn calibrate(
    asked: &OracleSource,
    x0: &[f64],
    budget: u64,
    seed: u64,
    term: Option<Arc<dyn Term>>,
    line: &Line,
) -> Result<Calibration, Trouble> {
    feasible(term.as_deref(), x0)?;
    let mut gate = over(asked, false, seed, line).with_term(term);
    Calibration::measure(&mut gate, x0, budget, &mut |_| ()).map_err(input)
}

impl Live {
    fn finish(mut self, shows: Shows, checkpoint: Option<PathBuf>) -> Result<Outcome, Trouble> {
        let mut saved = Instant::now();
        let save = |live: &Self| match &checkpoint {
            None => Ok(()),
            Some(path) => live.saver().save(path).map_err(|error| Trouble::System(error.to_string())),
        };
        save(&self)?;
        let alarm = console::alarm(checkpoint.as_ref().map(|_| BETWEEN));
        self.run.pause_on(alarm);
        let mut shown: Option<Instant> = None;
        let stop = loop {
            let mut is_paused = false;
            match self.run.next() {
                Ok(Event::Paused) => is_paused = true,
                Ok(Event::End(stop)) => break stop,
                Ok(Event::Step(_)) => {
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
                Ok(_) => {}
                Err(halt) => {
                    save(&self)?;
                    return Err(Trouble::System(halt.to_string()));
                }
            }
            if is_paused || (checkpoint.is_some() && saved.elapsed() > BETWEEN) {
                save(&self)?;
                saved = Instant::now();
            }
        };
        save(&self)?;
        Ok(self.outcome(stop))
    }

    /// What the callback says, or `None` if it raised.
    fn show(&self) -> Option<bool> {
        let Mark { step, samples, evaluations, distance } = self.run.stands();
        let x = self.run.view().x.to_vec();
        let (reply, replied) = sync_channel(1);
        let snapshot = Snapshot { step, samples, evaluations, distance, x };
        sent(&self.line, Message::Show(snapshot, reply), &replied)
    }

    /// All that is needed to go on later.
    fn saver(&self) -> Saver<'_> {
        let mut saver = Saver::default();
        self.run.save(&mut saver);
        saver
    }

    fn outcome(self, stop: Stop) -> Outcome {
        let checkpoint = self.saver().to_bytes();
        let mut report = self.run.report(stop);
        if let Some(remark) = self.run.remark(stop) {
            report.stop.meaning = format!("{}; {remark}", report.stop.meaning);
        }
        let Words { answer, details } = Words::of(&report, Besides::default());
        let (point, trace) = (report.point.take().unwrap_or_default(), self.run.trail());
        Outcome { report, answer, details, point, trace, checkpoint }
    }
}
