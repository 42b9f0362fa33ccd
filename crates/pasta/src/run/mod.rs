//! One run: a task on a problem, event by event, to a report.
//!
//! Programs, the Python package and the laboratory translate what they are told into a [`Problem`] and a [`Task`], drive a [`Run`], and show its
//! [`Report`]. It is the one place where an oracle is checked before the first step, where a [`Halt`] becomes an end, and where a certificate is judged
//! by what is known about the noise.
//!
//! ```
//! use std::sync::Arc;
//!
//! use pasta_opt::prelude::*;
//! use pasta_opt::problems::SineBowl;
//! use pasta_opt::run::{Problem, Task};
//!
//! let noise = Noise { growth: 0.0, floor: 1.0, tail: Tail::Gaussian };
//! let oracle = Noisy::new(Box::new(SineBowl { dimension: 1 }), noise, vec![1.2])?;
//! let problem = Problem::of(Arc::new(oracle), vec![1.2]);
//! let task = Task { budget: Some(5_000), ..Task::default() };
//! let mut run = Run::start(Arc::new(problem), task, Arc::default())?;
//! let stop = loop {
//!     match run.next()? {
//!         Event::End(stop) => break stop,
//!         _ => assert!(run.gate().ledger().samples() <= 5_000),
//!     }
//! };
//! let report = run.report(stop);
//! assert_eq!((report.stop.kind, report.method.as_str()), ("planned-end", "auto"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod chosen;
mod problem;
mod report;
mod task;

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

pub use chosen::{CHOICES, ChoiceError, Chosen, Given, Promise, names};
pub use problem::{KnownTable, Problem, Truth, feasible};
pub use report::{Certified, Expected, Named, Promised, Report, RestsOn, Stopped, Truths, void};
pub use task::{MethodSpec, Task};

pub use crate::target::{OfStart, Target, TargetError};

use crate::certificate::{Basis, Certificate, ClaimError};
use crate::check::{self, Findings};
use crate::checkpoint::{Checkpoint, CheckpointError, Saver};
use crate::draws::Role;
use crate::forecast::Outlook;
use crate::gate::{Gate, Halt};
use crate::method::{self, Engine};
use crate::oracle::OracleError;
use crate::state::StartError;
use crate::stop::Stop;
use crate::trace::{Standing, is_milestone};
use crate::walk::{Advance, Record, View, Walk};

/// A task on a problem, from its first event to its report.
pub struct Run {
    problem: Arc<Problem>,
    task: Task,
    chosen: Chosen,
    gate: Gate,
    walk: Box<dyn Walk>,
    /// True if the oracle was checked, or need not be.
    is_checked: bool,
    findings: Option<Findings>,
    outlook: Outlook,
    /// The gradient at the start, where the target is a share of it; `None` before it is measured.
    of_start: Option<OfStart>,
    ended: Option<Stop>,
    /// Where it stood at [milestones](is_milestone); `None` where nobody will look.
    trail: Option<Vec<Mark>>,
    is_resumed: bool,
    /// How it had ended before it was resumed.
    had_ended: Option<Stop>,
    /// The budget with which it began, which its plan was made for.
    first_budget: Option<u128>,
}

/// Where a run stood at one of its steps.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    /// Steps taken.
    pub step: u64,
    /// All samples drawn so far.
    pub samples: u128,
    /// Gradients evaluated so far.
    pub evaluations: u128,
    /// |x - x0|.
    pub distance: f64,
}

/// What a checkpoint keeps of a run besides its gate and its walk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Stored {
    /// What was asked for.
    pub task: Task,
    /// The coordinates of the problem.
    pub dim: usize,
    /// True if the oracle gives losses.
    pub losses: bool,
    /// The budget with which it began.
    first_budget: Option<u128>,
    trail: Vec<Mark>,
    /// The gradient at the start, where the target is a share of it and that was measured.
    #[serde(default)]
    of_start: Option<OfStart>,
}

/// The names of the sections of a checkpoint that runs, certificates and forecasts have.
const SECTION: &str = "run";
const CERTIFICATES: &str = "certificate";
const FORECAST: &str = "forecast";

impl Stored {
    /// What a checkpoint says about its run.
    pub fn of(checkpoint: &Checkpoint) -> Result<Self, CheckpointError> {
        checkpoint.peek(SECTION)
    }

    /// The walk of a checkpoint, to look at.
    pub fn walk(problem: &Problem, checkpoint: &mut Checkpoint) -> Result<Box<dyn Walk>, RunError> {
        let stored = Self::of(checkpoint).ok();
        let gate = Gate::resume_with_term(Arc::clone(&problem.oracle), problem.term.clone(), checkpoint)?;
        let chosen = stored.map(|stored| stored.task.choose(problem)).transpose()?;
        Ok(match chosen.map(|chosen| chosen.engine) {
            Some(fit @ Engine::Fit(_)) => fit.resume(&gate, checkpoint)?,
            _ => method::resume(&gate, checkpoint)?,
        })
    }
}

/// Why there is no run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The method cannot be run with what was given.
    #[error(transparent)]
    Choice(#[from] ChoiceError),
    /// The method cannot start there.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The certificate that is asked for makes no sense.
    #[error(transparent)]
    Rule(#[from] ClaimError),
    /// The checkpoint is of another run, or damaged.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The budget of a resumed run is smaller than what it has drawn.
    #[error("the run has already drawn {drawn} samples, more than the budget of {budget}")]
    Drawn {
        /// What was drawn.
        drawn: u128,
        /// The budget.
        budget: u128,
    },
}

/// What one call of [`Run::next`] did.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// The oracle passed its check before the first step.
    Checked,
    /// The gradient at the start was measured, of which the target is a share.
    Aimed(OfStart),
    /// A step was taken.
    Step(Record),
    /// Samples were drawn for a certificate, or for a look whether to try one.
    Looked,
    /// An attempt at a certificate is planned, and none of its samples is drawn yet. If you keep checkpoints, keep one here: a run that is resumed from
    /// an older one, under another budget, would make another attempt with the same samples and the same share of delta.
    Planned,
    /// A long step paused, so that a checkpoint can be taken: see [`Run::pause_on`].
    Paused,
    /// A certificate came to its end, successful or not.
    Tried(Certificate),
    /// The run is over.
    End(Stop),
}

impl Run {
    /// A run of a walk that was started, or resumed, by hand. It keeps no trail and makes no forecast.
    pub fn of(gate: Gate, walk: impl Walk + 'static) -> Self {
        let walk: Box<dyn Walk> = Box::new(walk);
        let problem = Problem::of(Arc::clone(gate.oracle()), walk.view().start.to_vec());
        let problem = Problem { term: gate.term().cloned(), ..problem };
        let (budget, seed, round_cost) = (gate.budget(), gate.seed(), gate.round_cost());
        let task = Task { budget, seed, round_cost, ..Task::default() };
        let run = Self::with(Arc::new(problem), task, Chosen::auto(None), gate, walk);
        Self { trail: None, outlook: Outlook::silent("none was asked for"), ..run }
    }

    fn with(problem: Arc<Problem>, task: Task, chosen: Chosen, gate: Gate, walk: Box<dyn Walk>) -> Self {
        let outlook = if let Engine::Fit(_) = chosen.engine {
            Outlook::silent("second-order steps take few passes over the rows, and no samples tell how many")
        } else if chosen.engine.is_certified() {
            Outlook::silent("several walks run side by side, and how long that takes was not tried")
        } else {
            Outlook::start(gate.about(), task.certify, task.pilot)
        };
        Self {
            outlook,
            problem,
            first_budget: task.budget,
            task,
            chosen,
            is_checked: !gate.needs_check(),
            gate,
            walk,
            findings: None,
            of_start: None,
            ended: None,
            trail: Some(Vec::new()),
            is_resumed: false,
            had_ended: None,
        }
    }

    /// A run at its start: nothing is drawn yet. It stops, also in the middle of a batch, when the flag is set.
    pub fn start(problem: Arc<Problem>, task: Task, stop: Arc<AtomicBool>) -> Result<Self, RunError> {
        let chosen = task.choose(&problem)?;
        Self::begin(problem, task, chosen, stop)
    }

    /// A run of a method that was chosen.
    pub(crate) fn begin(
        problem: Arc<Problem>,
        task: Task,
        chosen: Chosen,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, RunError> {
        task.check_end(&chosen)?;
        task.check_gamma()?;
        let start = problem.feasible_start(task.project)?;
        let gate = Gate::over(Arc::clone(&problem.oracle), task.seed).with_term(problem.term.clone());
        let gate = task.limit(&chosen.engine, gate, stop);
        if let (Engine::Fit(_), Some(rule)) = (&chosen.engine, task.certify) {
            rule.check(gate.about())?;
        }
        let walk = chosen.engine.clone().start(&gate, &start)?;
        let walk = certified(&task, &chosen, &gate, walk)?;
        Ok(Self::with(problem, task, chosen, gate, walk))
    }

    /// The run of a checkpoint, which must be of this task; only its budget may be another.
    pub fn resume(
        problem: Arc<Problem>,
        task: Task,
        checkpoint: &mut Checkpoint,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, RunError> {
        let stored = Stored::of(checkpoint).ok();
        let of_start = stored.as_ref().and_then(|stored| stored.of_start);
        let mut task = match of_start.filter(|measured| Some(measured.share) == task.of_start) {
            Some(measured) => task.aimed(&measured),
            None => task,
        };
        // What was usual when the run began stays its method.
        if let (MethodSpec::Usual, Some(stored)) = (&task.method, &stored) {
            task.method = stored.task.method.clone();
        }
        let chosen = task.choose(&problem)?;
        Self::go_on(problem, task, chosen, checkpoint, stop)
    }

    /// The run of a checkpoint, of a method that was chosen.
    pub(crate) fn go_on(
        problem: Arc<Problem>,
        task: Task,
        chosen: Chosen,
        checkpoint: &mut Checkpoint,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, RunError> {
        let other = |what: String| RunError::Checkpoint(CheckpointError::Settings { what });
        let stored = Stored::of(checkpoint).ok();
        let of_start = stored.as_ref().and_then(|stored| stored.of_start);
        let outlook = checkpoint.take(FORECAST).map(|(outlook, _)| outlook);
        let with_certificates = checkpoint.has(CERTIFICATES);
        if with_certificates && task.certify.is_none() {
            return Err(other("the run has been making certificates, but none is asked for".into()));
        }
        let gate = Gate::resume_with_term(Arc::clone(&problem.oracle), problem.term.clone(), checkpoint)?;
        if gate.round_cost() != task.round_cost {
            let (was, is) = (gate.round_cost(), task.round_cost);
            return Err(other(format!(
                "the run was started with a round cost of {was}, but {is} is asked for"
            )));
        }
        let gate = task.limit(&chosen.engine, gate, stop);
        if gate.seed() != task.seed {
            let what = format!("the checkpoint is of seed {}, but {} is asked for", gate.seed(), task.seed);
            return Err(other(what));
        }
        let walk = chosen.engine.resume(&gate, checkpoint)?;
        let drawn = gate.ledger().samples() + gate.under_way() + walk.view().under_way;
        if let Some(budget) = task.budget.filter(|budget| *budget < drawn) {
            return Err(RunError::Drawn { drawn, budget });
        }
        let walk = match task.certify {
            Some(rule) if with_certificates => Box::new(walk.certified_again(&gate, rule, checkpoint)?),
            _ => certified(&task, &chosen, &gate, walk)?,
        };
        let had_ended = walk.view().ended;
        if had_ended.is_none() {
            task.check_end(&chosen)?;
        }
        let run = Self::with(problem, task, chosen, gate, walk);
        let (first_budget, trail) =
            stored.map_or((run.first_budget, Vec::new()), |stored| (stored.first_budget, stored.trail));
        // One that is not there takes nothing from the run.
        let outlook = outlook.unwrap_or_else(|_| Outlook::silent("none was made"));
        Ok(Self { first_budget, trail: Some(trail), is_resumed: true, had_ended, outlook, of_start, ..run })
    }

    /// True if the oracle was checked and the target measured, or neither need be: the next event is one of the method.
    pub fn is_prepared(&self) -> bool {
        self.is_checked && self.share_to_measure().is_none()
    }

    /// The share of the gradient at the start that is the target, where that is still to be measured. A fit measures it by itself.
    fn share_to_measure(&self) -> Option<f64> {
        let is_open = self.of_start.is_none() && !matches!(self.chosen.engine, Engine::Fit(_));
        self.task.of_start.filter(|_| is_open)
    }

    /// Does the next piece of work. After an end it keeps giving that end, unless the run was interrupted: then it goes on. An error is an oracle that
    /// failed, or did not pass its check.
    #[expect(clippy::should_implement_trait, reason = "a run is no iterator: it does not end with None")]
    #[inline]
    pub fn next(&mut self) -> Result<Event, Halt> {
        if let Some(stop) = self.ended {
            return Ok(Event::End(stop));
        }
        // A walk may plan for the budget that is left, of which an interrupted check has taken nothing yet.
        if self.gate.is_stopped() {
            return Ok(Event::End(Stop::Interrupted));
        }
        if !self.is_checked {
            return self.check();
        }
        if let Some(share) = self.share_to_measure() {
            return self.measure(share);
        }
        let event = match self.walk.advance(&mut self.gate) {
            Ok(Advance::Step(record)) => {
                if self.trail.is_some() {
                    self.mark();
                }
                Event::Step(record)
            }
            Ok(Advance::Checked) => match self.measured_by_fit() {
                Some(measured) => Event::Aimed(measured),
                None => Event::Looked,
            },
            Ok(Advance::Planned) => Event::Planned,
            Ok(Advance::Paused) => Event::Paused,
            Ok(Advance::Tried(certificate)) => Event::Tried(self.judged(certificate)),
            Ok(Advance::Stop(stop)) => self.end(stop),
            Err(halt) => self.end(halt.stop().ok_or(halt)?),
        };
        if self.outlook.is_due(self.gate.ledger())
            && let Some(rule) = self.task.certify
        {
            self.outlook.follow(&self.walk.view(), self.gate.ledger(), rule);
        }
        Ok(event)
    }

    /// Keeps a mark of where the run stands, if the step is one to remember.
    fn mark(&mut self) {
        let mark = self.stands();
        if is_milestone(mark.step)
            && let Some(trail) = &mut self.trail
        {
            trail.push(mark);
        }
    }

    #[cold]
    fn check(&mut self) -> Result<Event, Halt> {
        match check::before_run(&mut self.gate, self.walk.view().start) {
            Ok(findings) => {
                (self.findings, self.is_checked) = (findings, true);
                Ok(Event::Checked)
            }
            // A check that did not come to its end is made again when the run goes on.
            Err(Halt::Interrupted) => Ok(Event::End(Stop::Interrupted)),
            Err(halt) => Err(halt),
        }
    }

    /// Measures the gradient at the start, and aims at its share of it.
    #[cold]
    fn measure(&mut self, share: f64) -> Result<Event, Halt> {
        let before = self.gate.ledger().clone();
        match OfStart::measure(share, &mut self.gate, self.walk.view().start) {
            Ok(measured) => {
                self.aim(measured)?;
                Ok(Event::Aimed(measured))
            }
            // As a check that did not come to its end, it is made again.
            Err(Halt::Interrupted) => {
                self.gate.rewind(before);
                Ok(Event::End(Stop::Interrupted))
            }
            Err(halt) => Err(halt),
        }
    }

    /// What a fit found at its start, if its target is a share of that.
    fn measured_by_fit(&mut self) -> Option<OfStart> {
        let share = self.task.of_start.filter(|_| self.of_start.is_none())?;
        // A gap is no share of a gradient.
        let log = *self.walk.view().fit.filter(|log| !log.has_gap)?;
        let samples = self.gate.ledger().of(Role::Look).samples;
        let (gradient, target) = (log.start.gradient, log.target);
        let measured = OfStart { share, gradient, error: 0.0, samples, target, gamma: None };
        self.of_start = Some(measured);
        self.task = self.task.clone().aimed(&measured);
        Some(measured)
    }

    fn aim(&mut self, measured: OfStart) -> Result<(), Halt> {
        self.of_start = Some(measured);
        self.task = self.task.clone().aimed(&measured);
        // Nothing of the method has been drawn, and nothing but the target changes: what could start before can start now.
        let failed = |error: &dyn std::error::Error| Halt::Oracle(OracleError::new(error.to_string()));
        self.chosen = self.task.choose(&self.problem).map_err(|error| failed(&error))?;
        let walk = self.chosen.engine.clone().start(&self.gate, self.walk.view().start);
        let walk = walk.map_err(|error| failed(&error))?;
        self.walk = certified(&self.task, &self.chosen, &self.gate, walk).map_err(|error| failed(&error))?;
        Ok(())
    }

    #[cold]
    fn end(&mut self, stop: Stop) -> Event {
        let stop = if stop == Stop::Certified && self.doubt().is_some() { Stop::Void } else { stop };
        self.ended = (stop != Stop::Interrupted).then_some(stop);
        Event::End(stop)
    }

    /// Runs to the end. `watch` sees every event with the run as it then stands, and ends the run by a break.
    pub fn follow(
        &mut self,
        mut watch: impl FnMut(&mut Self, Event) -> ControlFlow<()>,
    ) -> Result<Stop, Halt> {
        loop {
            let event = self.next()?;
            if let Event::End(stop) = event {
                return Ok(stop);
            }
            if watch(self, event).is_break() {
                self.end(Stop::Asked);
                return Ok(Stop::Asked);
            }
        }
    }

    /// Runs to the end.
    pub fn finish(&mut self) -> Result<Stop, Halt> {
        self.follow(|_, _| ControlFlow::Continue(()))
    }

    /// What is asked for.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// What is minimised.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// What runs, and what is promised of it.
    pub fn chosen(&self) -> &Chosen {
        &self.chosen
    }

    /// Where the walk stands.
    pub fn view(&self) -> View<'_> {
        self.walk.view()
    }

    /// The gate, with its ledger.
    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    /// The gate of a run that is over.
    pub(crate) fn into_gate(self) -> Gate {
        self.gate
    }

    /// Lets long steps pause when the flag is set: see [`Gate::with_pause`].
    pub fn pause_on(&mut self, pause: Arc<AtomicBool>) {
        self.gate.set_pause(pause);
    }

    /// Samples of the step under way, which are counted once it goes on: 0 unless it was interrupted.
    pub fn under_way(&self) -> u128 {
        self.gate.under_way() + self.walk.view().under_way
    }

    /// Counts what another gate to the same oracle drew before the run.
    pub fn count(&mut self, before: &Gate) {
        self.gate.merge(before);
    }

    /// What the check before the first step found, if there was one.
    pub fn findings(&self) -> Option<&Findings> {
        self.findings.as_ref()
    }

    /// What it says about its own cost.
    pub fn outlook(&self) -> &Outlook {
        &self.outlook
    }

    /// How it ended, if it did.
    pub fn ended(&self) -> Option<Stop> {
        self.ended
    }

    /// How it had ended before it was resumed, if it had.
    pub fn had_ended(&self) -> Option<Stop> {
        self.had_ended
    }

    /// Where it stands, with what formulas say there.
    pub fn standing(&self) -> Standing {
        Standing::new(&self.walk.view(), self.gate.ledger(), self.problem.free_objective())
    }

    /// Where it stands.
    pub fn stands(&self) -> Mark {
        let (view, ledger) = (self.walk.view(), self.gate.ledger());
        let (samples, evaluations) = (ledger.samples(), ledger.evaluations());
        Mark { step: view.step, samples, evaluations, distance: view.distance2.sqrt() }
    }

    /// Where it stood at [milestones](is_milestone), and where it stands.
    pub fn trail(&self) -> Vec<Mark> {
        let mut trail = self.trail.clone().unwrap_or_default();
        let here = self.stands();
        if trail.last() != Some(&here) {
            trail.push(here);
        }
        trail
    }

    /// Why the last certificate is void, if it is.
    fn doubt(&self) -> Option<String> {
        let view = self.walk.view();
        let is_false = self.problem.false_assumption(&view.certification?.last?.basis, view.point);
        let skipped = || skipped(self.gate.ledger().not_finite());
        is_false.or_else(|| self.gate.has_skipped().then(skipped))
    }

    /// A certificate, judged by what is known about the noise. Of one that failed the point is not known here; what is false at
    /// the start, where noise is least, is false there too.
    fn judged(&self, certificate: Certificate) -> Certificate {
        let view = self.walk.view();
        let point = if view.ended.is_some() { view.point } else { &self.problem.start };
        match self.problem.false_assumption(&certificate.basis, point) {
            Some(_) => certificate.void(),
            None => certificate,
        }
    }

    /// Why every certificate of the run would be void, if that is known before the first step.
    pub fn false_assumption(&self) -> Option<String> {
        let basis: Basis = self.task.certify?.basis;
        self.problem.false_assumption(&basis, &self.problem.start)
    }

    /// What a stop means here.
    fn meaning(&self, stop: Stop) -> String {
        let is_empty = stop == Stop::PlannedEnd && self.walk.view().step == 0 && self.gate.budget().is_some();
        if is_empty && self.chosen.promise.is_none() {
            return "the budget has no room for a first step; the point is the start".into();
        }
        let meaning = self.gate.meaning(stop);
        // What a run with a term looks at is the mapping.
        if self.problem.term.is_some() {
            meaning.replace("|grad f|", "the gradient mapping")
        } else {
            meaning
        }
    }

    /// Why a run that was resumed did not go on, if it did not. No part of its report, which is that of the run that was never stopped.
    pub fn remark(&self, stop: Stop) -> Option<String> {
        if !self.is_resumed {
            return None;
        }
        // A plan that was made for the first budget leaves most of what a larger one adds.
        let is_left = |first: u128| {
            let (budget, drawn) = (self.gate.budget(), self.gate.ledger().samples());
            budget.is_some_and(|budget| budget > first && 2 * budget.saturating_sub(drawn) > budget - first)
        };
        match self.first_budget.filter(|first| stop == Stop::PlannedEnd && is_left(*first)) {
            Some(first) => Some(format!(
                "the plan was made for {first} samples and does not grow with the budget; start a new run for more"
            )),
            None => self.had_ended.map(|_| "the run had already ended: nothing was left to resume".into()),
        }
    }

    /// What it came to, if it ends like this.
    pub fn report(&self, stop: Stop) -> Report {
        Report::of(self, stop)
    }

    /// Writes what it needs to go on later, bit for bit.
    pub fn save<'a>(&'a self, to: &mut Saver<'a>) {
        self.gate.save(to);
        self.walk.save(to);
        let about = self.gate.about();
        let stored = Stored {
            task: self.task.clone(),
            dim: about.dim,
            losses: about.losses,
            first_budget: self.first_budget,
            trail: self.trail.clone().unwrap_or_default(),
            of_start: self.of_start,
        };
        to.put(SECTION, &stored, []);
        to.put(FORECAST, &self.outlook, []);
    }
}

/// Why a certificate is void beside samples that were left out.
pub(crate) fn skipped(count: u128) -> String {
    format!("{count} samples were not finite and were left out, and may be the ones that matter")
}

/// The walk with its certificates, if any are asked for and it does not make them itself.
fn certified(
    task: &Task,
    chosen: &Chosen,
    gate: &Gate,
    walk: Box<dyn Walk>,
) -> Result<Box<dyn Walk>, ClaimError> {
    match task.certify.filter(|_| !chosen.engine.is_certified()) {
        None => Ok(walk),
        Some(rule) => Ok(Box::new(walk.certified(gate, rule)?)),
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("task", &self.task).field("gate", &self.gate).finish_non_exhaustive()
    }
}
