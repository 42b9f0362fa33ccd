//! A run, on threads of its own.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Sender, sync_channel};
use std::time::{Duration, Instant};

use pasta_opt::calibrate::Calibration;
use pasta_opt::certificate::{Certificate, Certifier, Claim};
use pasta_opt::checkpoint::{Checkpoint, Saver};
use pasta_opt::draws::{Role, derived_seed};
use pasta_opt::gate::Gate;
use pasta_opt::ledger::Ledger;
use pasta_opt::method::{self, Engine};
use pasta_opt::oracle::{About, Answer, Request, Source};
use pasta_opt::stop::Stop;
use pasta_opt::trace::is_milestone;
use pasta_opt::walk::{Advance, StopRule, Walk};
use serde::{Deserialize, Serialize};

use crate::oracle::{Message, Moment, Remote, is_set, sent};

/// What is to be run.
pub(crate) struct Job {
    pub(crate) begin: Begin,
    pub(crate) dim: usize,
    pub(crate) identity: String,
    /// Whether the function gives losses; `None` where one sample is to show it.
    pub(crate) losses: Option<bool>,
    pub(crate) budget: Option<u128>,
    pub(crate) has_callback: bool,
    pub(crate) checkpoint: Option<PathBuf>,
}

/// Where a run begins.
pub(crate) enum Begin {
    Fresh { start: Vec<f64>, seed: u64, engine: Box<Engine>, told: Told },
    Stored(Box<Checkpoint>),
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
    pub(crate) trace: Vec<Row>,
}

/// A row of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
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
    certificate: Option<Certified>,
    #[serde(skip)]
    pub(crate) point: Vec<f64>,
    #[serde(skip)]
    pub(crate) trace: Vec<Row>,
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
    line: Sender<Message>,
}

/// Runs to an end. An interrupted run is one, too.
pub(crate) fn run(
    job: Job,
    line: Sender<Message>,
    stop: &Arc<AtomicBool>,
    gives_losses: &Arc<AtomicBool>,
) -> Result<Outcome, Trouble> {
    let Job { begin, dim, identity, losses, budget, has_callback, checkpoint } = job;
    let remote = |losses| {
        let about = About { dim, identity: identity.clone(), source: Source::Stream, losses, shared: true };
        Remote { about, line: line.clone() }
    };
    let run = match begin {
        Begin::Fresh { start, seed, engine, told } => {
            let gate =
                |losses| Gate::new(remote(losses), seed).with_budget(budget).with_stop(Arc::clone(stop));
            let probe = if losses.is_none() { Some(probed(gate(false), &start)?) } else { None };
            let losses = losses.unwrap_or_else(|| is_set(gives_losses));
            let mut gate = gate(losses);
            probe.iter().for_each(|probe| gate.merge(probe));
            let walk = engine.start(&gate, &start).map_err(input)?;
            let walk = certified(&gate, walk, told.rule)?;
            Run { gate, walk, told: Told { losses, ..told }, line: line.clone() }
        }
        Begin::Stored(mut stored) => {
            let (told, _): (Told, _) = stored.take(SECTION).map_err(input)?;
            let gate = Gate::resume(Arc::new(remote(told.losses)), &mut stored).map_err(input)?;
            let drawn = gate.ledger().samples();
            if let Some(budget) = budget.filter(|budget| *budget < drawn) {
                let message =
                    format!("the run has already drawn {drawn} samples, more than the budget of {budget}");
                return Err(Trouble::Input(message));
            }
            let gate = gate.with_budget(budget).with_stop(Arc::clone(stop));
            let walk = method::resume(&gate, &mut stored).map_err(input)?;
            let walk: Box<dyn Walk> = match told.rule {
                Some(rule) if stored.has(CERTIFICATES) => {
                    Box::new(walk.certified_again(&gate, rule, &mut stored).map_err(input)?)
                }
                rule => certified(&gate, walk, rule)?,
            };
            Run { gate, walk, told, line: line.clone() }
        }
    };
    run.finish(has_callback, checkpoint)
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
    identity: String,
    x: &[f64],
    StopRule { target, delta, grade, .. }: StopRule,
    budget: Option<u128>,
    seed: u64,
    line: Sender<Message>,
    stop: &Arc<AtomicBool>,
) -> Result<Certified, Trouble> {
    let seed = derived_seed(seed, Role::Certificate, u64::MAX);
    let remote = Remote { about: About::stream(x.len(), identity), line };
    let mut gate = Gate::new(remote, seed).with_budget(budget).with_stop(Arc::clone(stop));
    let claim = Claim { target, delta, grade, budget, guess: None };
    let certified =
        Certifier::start(&mut gate, x, claim, 0).and_then(|certifier| Ok(certifier.finish(&mut gate)?));
    certified.map(|certificate| Certified::new(certificate, 1)).map_err(input)
}

/// What samples say about the constants of an oracle.
pub(crate) fn calibrate(
    identity: String,
    x0: &[f64],
    budget: u64,
    seed: u64,
    line: Sender<Message>,
    stop: &Arc<AtomicBool>,
) -> Result<Calibration, Trouble> {
    let remote = Remote { about: About::stream(x0.len(), identity), line };
    let mut gate = Gate::new(remote, seed).with_stop(Arc::clone(stop));
    Calibration::measure(&mut gate, x0, budget, &mut |_| ()).map_err(input)
}

impl Run {
    fn finish(mut self, has_callback: bool, checkpoint: Option<PathBuf>) -> Result<Outcome, Trouble> {
        let mut saved = Instant::now();
        let save = |run: &Self| match &checkpoint {
            None => Ok(()),
            Some(path) => run.saver().save(path).map_err(|error| Trouble::System(error.to_string())),
        };
        save(&self)?;
        let stop = loop {
            match self.walk.advance(&mut self.gate) {
                Ok(Advance::Step(_)) => {
                    if is_milestone(self.walk.view().step) {
                        self.note();
                    }
                    match if has_callback { self.show() } else { Some(false) } {
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
            if checkpoint.is_some() && saved.elapsed() > BETWEEN {
                save(&self)?;
                saved = Instant::now();
            }
        };
        save(&self)?;
        self.note();
        Ok(self.outcome(stop))
    }

    fn row(&self) -> Row {
        let (view, ledger) = (self.walk.view(), self.gate.ledger());
        Row {
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
        let Row { step, samples, evaluations, distance } = self.row();
        let x = self.walk.view().x.to_vec();
        let (reply, replied) = sync_channel(1);
        let moment = Moment { step, samples, evaluations, distance, x };
        sent(&self.line, Message::Show(moment, reply), &replied)
    }

    /// All that is needed to go on later.
    fn saver(&self) -> Saver<'_> {
        let mut saver = Saver::default();
        self.gate.save(&mut saver);
        self.walk.save(&mut saver);
        saver.put(SECTION, &self.told, []);
        saver
    }

    fn outcome(self, stop: Stop) -> Outcome {
        let view = self.walk.view();
        let certificate = view.certification.and_then(|log| {
            let certificate = log.last?;
            Some(Certified::new(certificate, log.attempts))
        });
        Outcome {
            problem: self.gate.about().identity.clone(),
            seed: self.gate.seed(),
            stop: Stopped { kind: stop.kind(), meaning: stop.meaning() },
            steps: view.step,
            distance: view.distance2.sqrt(),
            ledger: self.gate.ledger().clone(),
            certificate,
            point: view.point.to_vec(),
            method: self.told.method,
            promise: self.told.promise.filter(|_| stop == Stop::PlannedEnd),
            trace: self.told.trace,
        }
    }
}
