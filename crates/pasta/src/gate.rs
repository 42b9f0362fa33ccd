//! The gate: the only way to an oracle.
//!
//! Whatever draws a sample asks the gate: walks, certificates, looks, pilots, calibration. It owns the oracle, the seed, the
//! ledger, the hard budget, the interrupt and the check that answers are finite, so that no two parts of a run can
//! disagree about any of them.
//!
//! ```
//! use pasta_opt::draws::Role;
//! use pasta_opt::gate::{Gate, Halt};
//! use pasta_opt::oracle::{Answer, Noise, Noisy, Request, Tail};
//! use pasta_opt::problems::SineBowl;
//!
//! let noise = Noise { growth: 0.0, floor: 1.0, tail: Tail::Gaussian };
//! let oracle = Noisy::new(Box::new(SineBowl { dimension: 1 }), noise, vec![1.2])?;
//! let mut gate = Gate::new(oracle, 1).with_budget(1_000);
//! let mut ask = |n| {
//!     let batch = gate.batch(Role::Large, 0, n);
//!     gate.ask(Request::sums(batch, &[&[1.2]]), &mut Answer::new(&mut [0.0]))
//! };
//! assert_eq!(ask(600)?.samples, 600);
//! assert!(matches!(ask(600), Err(Halt::OverBudget { needed: 600, left: 400 })));
//! assert_eq!(gate.ledger().samples(), 600);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod kept;

use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use self::kept::{Kept, Question};
use crate::checkpoint::{Checkpoint, CheckpointError, Saver};
use crate::draws::{Role, derived_seed};
use crate::ledger::Ledger;
use crate::oracle::{
    About, Answer, Batch, Charge, Draw, ErrorKind, Oracle, OracleError, Request, Source, Team,
};
use crate::stop::{Divergence, Mixed, NoTarget, Stop};
use crate::term::{Term, keep_inside};

/// The only way to an oracle: it counts, keeps the budget, and can be told to stop.
#[expect(clippy::struct_excessive_bools, reason = "each says something else, and none excludes another")]
pub struct Gate {
    oracle: Arc<dyn Oracle>,
    /// What the oracle says about itself: asked once, since a small step has no time to ask again.
    about: About,
    /// Whether the oracle has a team.
    has_team: bool,
    seed: u64,
    ledger: Ledger,
    budget: Option<u128>,
    /// Samples that are kept back.
    held: u128,
    stop: Arc<AtomicBool>,
    /// Whether the oracle is to be checked before a run.
    needs_check: bool,
    /// Answers of the step under way.
    kept: Kept,
    /// True while a step keeps its answers.
    is_keeping: bool,
    pause: Option<Arc<AtomicBool>>,
    on_nan: OnNan,
    /// Whether a run without a budget goes on where its target is not within reach.
    endless: bool,
    /// The last question whose answer was not finite, until somebody asks whose fault it was.
    suspect: Option<Suspect>,
    /// h: no oracle is asked outside of its domain.
    term: Option<Arc<dyn Term>>,
    /// gamma of the gradient mappings, where it is given or was chosen.
    gamma: Option<f64>,
}

/// What becomes of samples whose answers are NaN or infinite at a point where other answers are finite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnNan {
    /// The run stops and says so.
    #[default]
    Stop,
    /// They are left out, and counted: the mean of the others of their batch is taken, and where there is none, other samples. Nothing
    /// is certified then, since what is left out may be what matters.
    Skip,
}

impl FromStr for OnNan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "stop" => Ok(Self::Stop),
            "skip" => Ok(Self::Skip),
            other => Err(format!("expected \"stop\" or \"skip\", got {other:?}")),
        }
    }
}

/// A question whose answer was not finite.
#[derive(Debug, Clone)]
struct Suspect {
    batch: Batch,
    point: Vec<f64>,
    /// Whether losses were asked for.
    losses: bool,
}

impl Suspect {
    fn of(draw: &Draw, point: &[f64], losses: bool) -> Option<Self> {
        match draw {
            Draw::Batch(batch) => Some(Self { batch: batch.clone(), point: point.to_vec(), losses }),
            Draw::Everything(_) => None,
        }
    }
}

/// Why the gate gave no answer. Nothing was counted, except where the answer came and was not finite.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Halt {
    /// The oracle failed.
    #[error(transparent)]
    Oracle(OracleError),
    /// The answer would have overdrawn the budget.
    #[error("the next {needed} samples would overdraw the budget, which has {left} left")]
    OverBudget {
        /// What the answer costs.
        needed: u128,
        /// What is left.
        left: u128,
    },
    /// The gate was told to stop.
    #[error("interrupted")]
    Interrupted,
    /// The gate was told to pause, and the work under way is kept: see [`Gate::with_pause`].
    #[error("paused")]
    Paused,
    /// The oracle answered with NaN or infinity.
    #[error("{} is not finite, or too large to be squared", asked_for(*.role, *.step))]
    NotFinite {
        /// What was asked for.
        role: Role,
        /// The step of the batch, which is a step of the run for large and small batches alone.
        step: u64,
    },
    /// At one point the oracle answers with numbers and with NaN or infinity.
    #[error(transparent)]
    Mixed(Mixed),
    /// The target is a share of the gradient at the start, which cannot be measured.
    #[error(transparent)]
    NoTarget(#[from] NoTarget),
    /// The point is outside of the domain of the term, where no oracle is asked.
    #[error("no answer outside of the domain: {words}")]
    Outside {
        /// Which coordinate, and what it breaks.
        words: String,
    },
}

/// Which answer. Only the batches of steps have steps of the run for addresses.
fn asked_for(role: Role, step: u64) -> String {
    match role {
        Role::Large | Role::Small => format!("the oracle's answer at step {step}"),
        Role::Certificate | Role::Pilot => "an answer of the oracle to a certificate".into(),
        _ => "an answer of the oracle".into(),
    }
}

impl Halt {
    /// Whether the work under way is dropped, to be done again: not where it ran its course to an end of the budget or of the
    /// numbers.
    pub(crate) fn drops_work(&self) -> bool {
        matches!(self, Self::Oracle(_) | Self::Interrupted | Self::Paused)
    }

    /// How a run ends that cannot go on; `None` where it does not end but fail.
    pub fn stop(&self) -> Option<Stop> {
        match *self {
            Self::Oracle(_) | Self::Paused | Self::NoTarget(_) | Self::Outside { .. } => None,
            Self::OverBudget { .. } => Some(Stop::OutOfBudget),
            Self::Interrupted => Some(Stop::Interrupted),
            Self::NotFinite { step, .. } => Some(Stop::Diverged(Divergence::Gradient { step })),
            Self::Mixed(mixed) => Some(Stop::NotFinite(mixed)),
        }
    }
}

impl From<Halt> for OracleError {
    /// For an oracle that asks another one.
    fn from(halt: Halt) -> Self {
        match halt {
            Halt::Oracle(error) => error,
            Halt::Interrupted => Self::interrupted(),
            other => Self::new(other),
        }
    }
}

impl From<OracleError> for Halt {
    fn from(error: OracleError) -> Self {
        match error.kind() {
            ErrorKind::Interrupted => Self::Interrupted,
            _ => Self::Oracle(error),
        }
    }
}

/// How often a question is asked again if the oracle says that this may help.
const RETRIES: u32 = 3;
/// Where all samples of a batch are to be left out, so many others are tried; they have indices from here on.
const OTHERS: u64 = 32;
const OTHERS_FROM: u64 = 1 << 62;
/// To find out whose fault an infinite answer is, so many of its samples are asked for one by one.
const SINGLES: u64 = 64;
/// The addresses of the other samples that are asked for then.
const BLAME: u64 = 1 << 40;

impl Gate {
    /// The way to this oracle, with all randomness from this seed.
    pub fn new(oracle: impl Oracle + 'static, seed: u64) -> Self {
        Self::over(Arc::new(oracle), seed)
    }

    /// The same for an oracle that is shared.
    pub fn over(oracle: Arc<dyn Oracle>, seed: u64) -> Self {
        let (about, has_team) = (oracle.about().clone(), oracle.team().is_some());
        let needs_check = !about.trusted;
        Self {
            oracle,
            about,
            has_team,
            seed,
            ledger: Ledger::default(),
            budget: None,
            held: 0,
            stop: Arc::default(),
            needs_check,
            kept: Kept::default(),
            is_keeping: false,
            pause: None,
            on_nan: OnNan::Stop,
            endless: false,
            suspect: None,
            term: None,
            gamma: None,
        }
    }

    /// Minimises f + h, where f is the oracle's. Nobody is asked outside of the domain of h, and certificates are of the gradient mapping.
    #[must_use]
    pub fn with_term(self, term: Option<Arc<dyn Term>>) -> Self {
        Self { term, ..self }
    }

    /// gamma of the gradient mappings that are certified; if nothing is said, one is chosen by a few samples.
    #[must_use]
    pub fn with_gamma(self, gamma: Option<f64>) -> Self {
        Self { gamma, ..self }
    }

    /// h, if there is one.
    #[inline]
    pub fn term(&self) -> Option<&Arc<dyn Term>> {
        self.term.as_ref()
    }

    /// gamma of the gradient mappings, where it was given or chosen.
    pub fn gamma(&self) -> Option<f64> {
        self.gamma
    }

    pub(crate) fn set_gamma(&mut self, gamma: Option<f64>) {
        self.gamma = gamma;
    }

    /// Moves a point into the domain of the term; points that are in it stay as they are.
    pub(crate) fn keep_inside(&self, x: &mut [f64]) {
        if let Some(term) = &self.term {
            keep_inside(&**term, x);
        }
    }

    /// Lets a run go on that has a target, no budget, and no hope. If nothing is said, it ends as [`Stop::Hopeless`].
    #[must_use]
    pub fn without_limit(self) -> Self {
        Self { endless: true, ..self }
    }

    /// True if a run to a target ends where that is not within reach: it has no budget that would end it.
    pub fn ends_hopeless(&self) -> bool {
        self.budget.is_none() && !self.endless
    }

    /// What becomes of samples that are not finite; if nothing is said, the run [stops](OnNan::Stop).
    #[must_use]
    pub fn with_on_nan(self, on_nan: OnNan) -> Self {
        Self { on_nan, ..self }
    }

    /// What becomes of samples that are not finite.
    pub fn on_nan(&self) -> OnNan {
        self.on_nan
    }

    /// True if samples were left out, so that what the others say is biased, and nothing can be certified.
    pub fn has_skipped(&self) -> bool {
        self.on_nan == OnNan::Skip && self.ledger.not_finite() > 0
    }

    /// What a stop of this gate's run [means](Stop::meaning), and how many answers were not finite, if there were any.
    pub fn meaning(&self, stop: Stop) -> String {
        let count = self.ledger.not_finite();
        let meaning = stop.meaning();
        match (count, self.on_nan) {
            (0, _) => meaning,
            (_, OnNan::Skip) => {
                format!(
                    "{meaning}; {count} samples were not finite and were left out, which biases the result"
                )
            }
            (_, OnNan::Stop) => format!("{meaning}; {count} answers of the oracle were not finite"),
        }
    }

    /// Trusts the oracle without the few dozen samples by which a run [checks](crate::check) one that is not of this library.
    #[must_use]
    pub fn without_check(self) -> Self {
        Self { needs_check: false, ..self }
    }

    /// The oracle behind it, to make another gate of.
    pub(crate) fn oracle(&self) -> &Arc<dyn Oracle> {
        &self.oracle
    }

    /// True if a run checks the oracle before its first step.
    pub fn needs_check(&self) -> bool {
        self.needs_check
    }

    /// The oracle was checked.
    pub(crate) fn trust(&mut self) {
        self.needs_check = false;
    }

    /// At most so many samples in all. Not one more is ever drawn.
    #[must_use]
    pub fn with_budget(self, samples: impl Into<Option<u128>>) -> Self {
        Self { budget: samples.into(), ..self }
    }

    /// Stops, also in the middle of a batch, when the flag is set.
    #[must_use]
    pub fn with_stop(self, stop: Arc<AtomicBool>) -> Self {
        Self { stop, ..self }
    }

    /// Lets a long step pause between two questions when the flag is set, so that a checkpoint can be taken: its walk then says
    /// [`Advance::Paused`](crate::walk::Advance::Paused), and the flag is cleared. Members of a team do not pause.
    #[must_use]
    pub fn with_pause(mut self, pause: Arc<AtomicBool>) -> Self {
        self.set_pause(pause);
        self
    }

    pub(crate) fn set_pause(&mut self, pause: Arc<AtomicBool>) {
        self.pause = (!self.has_team).then_some(pause);
    }

    /// What the oracle is.
    #[inline]
    pub fn about(&self) -> &About {
        &self.about
    }

    /// The seed of all randomness.
    #[inline]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// What has been asked so far.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The most samples that may be drawn in all.
    pub fn budget(&self) -> Option<u128> {
        self.budget
    }

    /// Samples that may still be drawn; as many as can be counted where there is no budget.
    pub fn left(&self) -> u128 {
        match self.budget {
            None => u128::MAX,
            Some(budget) => budget.saturating_sub(self.ledger.samples()).saturating_sub(self.held),
        }
    }

    /// Keeps so many samples of the budget back, instead of those that were kept back before.
    pub fn hold(&mut self, samples: u128) {
        self.held = samples;
    }

    /// How many samples are kept back.
    pub fn held(&self) -> u128 {
        self.held
    }

    /// Whether it was told to stop.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// The first `n` samples of a step.
    #[inline]
    pub fn batch(&self, role: Role, step: u64, n: u64) -> Batch {
        Batch { seed: self.seed, role, step, samples: 0..n }
    }

    /// What an answer will cost, before anything is drawn.
    pub fn price(&self, request: &Request<'_>) -> Charge {
        self.oracle.price(request)
    }

    /// Asks the oracle, and counts. An answer that is not finite is no answer.
    pub fn ask(&mut self, request: Request<'_>, answer: &mut Answer<'_>) -> Result<Charge, Halt> {
        let (draw, points, losses) = (request.draw.clone(), request.points, request.losses);
        let charge = self.ask_for_step(request, answer)?;
        if let Err(halt) = check_finite(answer, asked(&draw)) {
            self.notice(&draw, points[0], losses);
            return Err(halt);
        }
        Ok(charge)
    }

    /// Asks without the pass over memory that looks for infinities: for a step whose own arithmetic shows them.
    #[inline]
    pub(crate) fn ask_for_step(
        &mut self,
        request: Request<'_>,
        answer: &mut Answer<'_>,
    ) -> Result<Charge, Halt> {
        let mut request: Request<'_> = request;
        request.stop = Some(&self.stop);
        inside(self.term.as_deref(), &request)?;
        if self.has_team {
            request.team = self.oracle.team();
        }
        let price = match self.budget {
            None => u128::MAX,
            Some(_) => afford(self.oracle.price(&request).samples, self.left())?,
        };
        let charge = put(&*self.oracle, &self.about, &request, answer)?;
        self.ledger.charge(request.draw.role(), charge);
        if charge.samples > price {
            return Err(Halt::Oracle(OracleError::new("it charged more than its price")));
        }
        if self.on_nan == OnNan::Skip && check_finite(answer, asked(&request.draw)).is_err() {
            let skipped = skip(&*self.oracle, &self.about, &request, answer)?;
            self.ledger.charge(request.draw.role(), skipped.charge());
            self.ledger.count_not_finite(skipped.count);
        }
        Ok(charge)
    }

    /// Counts an answer that was not finite.
    #[cold]
    pub(crate) fn notice(&mut self, draw: &Draw, point: &[f64], losses: bool) {
        self.ledger.count_not_finite(1);
        self.suspect = Suspect::of(draw, point, losses).or(self.suspect.take());
    }

    /// Where the last answer was asked for that was not finite, if nobody was blamed for it.
    pub(crate) fn suspect(&self) -> Option<&[f64]> {
        self.suspect.as_ref().map(|suspect| suspect.point.as_slice())
    }

    /// Whether the last answer that was not finite is the oracle's fault: then there is a point at which some answers are finite and others are
    /// not. The same question is asked once more; then its samples one by one, and some others, at a point where answers ought to be finite.
    pub(crate) fn blame(&mut self, good: &[f64], others: u64, step: u64) -> Result<Option<Mixed>, Halt> {
        let Some(suspect) = self.suspect.take() else { return Ok(None) };
        let Suspect { batch, point, losses } = &suspect;
        let (mut sum, mut loss) = (vec![0.0; point.len()], [0.0]);
        let mut answer = Answer { losses: &mut loss, ..Answer::new(&mut sum) };
        let points: &[&[f64]] = &[point];
        let again = Request { losses: *losses, ..Request::sums(batch.clone(), points) };
        let mixed = match self.ask(again, &mut answer) {
            Ok(_) => Some(Mixed { step, not_finite: 1, answers: 2 }),
            Err(Halt::NotFinite { .. }) => self.mixed_at(good, Some(&suspect), others, step)?,
            // There is no room to find out.
            Err(Halt::OverBudget { .. }) => None,
            Err(halt) => return Err(halt),
        };
        self.suspect = None;
        Ok(mixed)
    }

    /// Asks for single samples at a point, those of a batch and others: some are finite and others are not?
    fn mixed_at(
        &mut self,
        x: &[f64],
        suspect: Option<&Suspect>,
        others: u64,
        step: u64,
    ) -> Result<Option<Mixed>, Halt> {
        let losses = suspect.is_some_and(|suspect| suspect.losses);
        let own = suspect.map(|suspect| &suspect.batch).filter(|_| self.about.additive);
        let fresh = self.batch(Role::Check, BLAME + self.ledger.not_finite() as u64 % BLAME, others);
        let (mut not_finite, mut answers) = (0, 0);
        for batch in own.into_iter().chain([&fresh]) {
            let count = batch.count().min(4 * SINGLES);
            match self.not_finite_at(x, batch, count, losses) {
                Ok(bad) => (not_finite, answers) = (not_finite + bad, answers + count),
                Err(Halt::OverBudget { .. }) => {}
                Err(halt) => return Err(halt),
            }
        }
        Ok((0 < not_finite && not_finite < answers).then_some(Mixed { step, not_finite, answers }))
    }

    /// How many of the first samples of a batch are not finite at a point.
    fn not_finite_at(&mut self, x: &[f64], batch: &Batch, count: u64, losses: bool) -> Result<u64, Halt> {
        let before = self.ledger.not_finite();
        let (points, first) = (&[x], batch.samples.start);
        self.window(batch.role, u128::from(count), |window| {
            window.each(count as usize, Samples::New, |i| {
                let at = first + i as u64;
                let single = Batch { samples: at..at + 1, ..batch.clone() };
                Request { losses, ..Request::sums(single, points) }
            })
        })?;
        Ok((self.ledger.not_finite() - before) as u64)
    }

    /// How a walk ends that cannot go on from x because of this: where it is the oracle's answer, and the oracle's fault, as that.
    pub(crate) fn end_of(
        &mut self,
        divergence: Divergence,
        batch: Batch,
        x: &[f64],
        start: &[f64],
    ) -> Result<Stop, Halt> {
        let Divergence::Gradient { step } = divergence else { return Ok(Stop::Diverged(divergence)) };
        let mut sum = vec![0.0; x.len()];
        let mixed = match self.ask(Request::sums(batch, &[x]), &mut Answer::new(&mut sum)) {
            Err(Halt::NotFinite { .. }) => self.blame(start, SINGLES, step)?,
            // The oracle does not repeat itself, or the walk's own arithmetic failed.
            Ok(_) => self.mixed_at(start, None, 4 * SINGLES, step)?,
            Err(Halt::OverBudget { .. }) => None,
            Err(halt) => return Err(halt),
        };
        Ok(mixed.map_or(Stop::Diverged(divergence), Stop::NotFinite))
    }

    /// grad f(x) itself, where the oracle knows it.
    pub fn exact(&mut self, role: Role, x: &[f64], out: &mut [f64]) -> Result<Charge, Halt> {
        self.ask(Request::everything(role, &[x]), &mut Answer::new(out))
    }

    /// Counts work on the oracle's own data that no question stands for, such as the second derivatives of a table, if the budget has room
    /// for it.
    pub fn count(&mut self, role: Role, charge: Charge) -> Result<(), Halt> {
        if self.is_stopped() {
            return Err(Halt::Interrupted);
        }
        if self.budget.is_some() {
            afford(charge.samples, self.left())?;
        }
        self.ledger.charge(role, charge);
        Ok(())
    }

    /// Opens a window at which many threads can ask at once, for at most `most` samples in all.
    pub fn window<T>(
        &mut self,
        role: Role,
        most: u128,
        work: impl FnOnce(&Window<'_>) -> Result<T, Halt>,
    ) -> Result<T, Halt> {
        let left = self.left();
        if self.budget.is_some() {
            afford(most, left)?;
        }
        let window = Window {
            oracle: &*self.oracle,
            about: &self.about,
            seed: self.seed,
            role,
            stop: &self.stop,
            pause: self.pause.as_deref(),
            on_nan: self.on_nan,
            term: self.term.as_deref(),
            kept: self.is_keeping.then(|| Mutex::new(&mut self.kept)),
            spent: Mutex::default(),
            most,
        };
        let done = work(&window);
        if !done.as_ref().is_err_and(Halt::drops_work) {
            let spent = window.spent.into_inner().unwrap_or_else(PoisonError::into_inner);
            self.ledger.charge(role, spent.charge);
            self.ledger.count_not_finite(spent.not_finite);
            self.suspect = spent.suspect.or(self.suspect.take());
        }
        done
    }

    /// Does a long step whole, or puts it aside: what it was answered before it was interrupted, paused or failed is kept, also in a
    /// checkpoint, and is not asked again. Only then is it counted, so that the step sees the same ledger as if it had never stopped.
    pub(crate) fn keep<T>(&mut self, step: impl FnOnce(&mut Self) -> Result<T, Halt>) -> Result<T, Halt> {
        let in_vain = self.kept.begin(self.budget);
        in_vain.into_iter().for_each(|(role, paid)| self.pay(role, paid));
        let before = self.ledger.clone();
        self.is_keeping = true;
        let done = step(self);
        self.is_keeping = false;
        if done.as_ref().is_err_and(Halt::drops_work) {
            self.kept.put_aside(self.budget);
            self.ledger = before;
            if let (Err(Halt::Paused), Some(pause)) = (&done, &self.pause) {
                pause.store(false, Ordering::Relaxed);
            }
        } else {
            let in_vain = self.kept.finish();
            in_vain.into_iter().for_each(|(role, paid)| self.pay(role, paid));
        }
        done
    }

    fn pay(&mut self, role: Role, Paid { charge, skipped }: Paid) {
        self.ledger.charge(role, charge);
        self.ledger.charge(role, skipped.charge());
        self.ledger.count_not_finite(skipped.count);
    }

    /// True if a step that keeps its answers is to pause.
    #[inline]
    pub(crate) fn is_paused(&self) -> bool {
        self.is_keeping && self.pause.as_ref().is_some_and(|pause| pause.load(Ordering::Relaxed))
    }

    /// Counts what a step was answered before it was put aside.
    pub(crate) fn count_again(&mut self, role: Role, charge: Charge) {
        self.ledger.charge(role, charge);
    }

    /// Samples that the questions of the step under way were answered with, and that will be counted once it goes on: 0 unless it was put aside.
    pub fn under_way(&self) -> u128 {
        self.kept.samples()
    }

    /// [`ask_for_step`](Self::ask_for_step) in a step that keeps its answers.
    pub(crate) fn ask_and_keep(
        &mut self,
        request: Request<'_>,
        answer: &mut Answer<'_>,
    ) -> Result<Charge, Halt> {
        let question = Question::of(&request);
        let role = request.draw.role();
        let mut row = vec![0.0; answer.gradients.len() + answer.losses.len()];
        if let Some(paid) = self.kept.recall(&question, &mut row) {
            let (gradients, losses) = row.split_at(answer.gradients.len());
            answer.gradients.copy_from_slice(gradients);
            answer.losses.copy_from_slice(losses);
            self.pay(role, paid);
            return Ok(paid.charge);
        }
        if self.is_paused() && self.kept.may_pause() {
            return Err(Halt::Paused);
        }
        let before = (self.ledger.not_finite(), self.ledger.of(role).evaluations);
        let charge = self.ask_for_step(request, answer)?;
        let skipped = Skipped {
            count: self.ledger.not_finite() - before.0,
            evaluations: self.ledger.of(role).evaluations - before.1 - charge.evaluations,
        };
        let row = [&*answer.gradients, &*answer.losses].concat();
        self.kept.record(question, &row, Paid { charge, skipped });
        Ok(charge)
    }

    /// Forgets what was counted since the ledger stood so. Work that fails or is interrupted is dropped whole: its draws have
    /// addresses, and a resumed run makes and counts them again.
    pub(crate) fn rewind(&mut self, ledger: Ledger) {
        self.ledger = ledger;
    }

    /// A gate for a run within this one: the same oracle and interrupt, a seed of its own, at most so many samples. What it
    /// draws is counted here once it is [absorbed](Self::absorb).
    #[must_use]
    pub fn fork(&self, role: Role, number: u64, budget: u128) -> Self {
        Self::over(Arc::clone(&self.oracle), derived_seed(self.seed, role, number))
            .with_budget(budget.min(self.left()))
            .with_stop(Arc::clone(&self.stop))
            .with_on_nan(self.on_nan)
            .with_limits_of(self)
            .with_term_of(self)
            .without_check()
    }

    /// What a run within another one has from it.
    fn with_limits_of(self, outer: &Self) -> Self {
        Self { endless: outer.endless, pause: outer.pause.clone(), ..self }
    }

    /// The term of a run and its gamma, for one within it that asks about the same coordinates.
    fn with_term_of(self, outer: &Self) -> Self {
        Self { term: outer.term.clone(), gamma: outer.gamma, ..self }
    }

    /// The fork of a run that is resumed, as it [saved](Self::save) itself.
    pub(crate) fn fork_again(&self, checkpoint: &mut Checkpoint) -> Result<Self, CheckpointError> {
        let fork = Self::resume_with_term(Arc::clone(&self.oracle), self.term.clone(), checkpoint)?;
        let fork = fork.with_stop(Arc::clone(&self.stop)).with_on_nan(self.on_nan);
        Ok(fork.with_limits_of(self).with_term_of(self))
    }

    /// Sets the budget anew.
    pub(crate) fn allow(&mut self, samples: Option<u128>) {
        self.budget = samples;
    }

    /// Counts what a fork drew since its ledger stood so, each under its own role.
    pub(crate) fn absorb_since(&mut self, fork: &Self, before: &Ledger) {
        for (role, now) in fork.ledger.by_role() {
            let then = before.of(role);
            let samples = now.samples.saturating_sub(then.samples);
            let evaluations = now.evaluations.saturating_sub(then.evaluations);
            self.ledger.charge(role, Charge { samples, evaluations, exact: false });
        }
        self.ledger.count_not_finite(fork.ledger.not_finite().saturating_sub(before.not_finite()));
    }

    /// A gate to an oracle that is made of this one's, with the same seed, interrupt and budget. What it draws is counted here
    /// once it is [merged](Self::merge).
    #[must_use]
    pub fn wrap(&self, make: impl FnOnce(Arc<dyn Oracle>) -> Arc<dyn Oracle>) -> Self {
        let oracle = make(Arc::clone(&self.oracle));
        let budget = self.budget.map(|_| self.left());
        Self::over(oracle, self.seed)
            .with_budget(budget)
            .with_stop(Arc::clone(&self.stop))
            .with_on_nan(self.on_nan)
            .with_limits_of(self)
            .without_check()
    }

    /// Counts all that a fork drew under one role.
    pub fn absorb(&mut self, role: Role, fork: &Self) {
        let (samples, evaluations) = (fork.ledger.samples(), fork.ledger.evaluations());
        self.ledger.charge(role, Charge { samples, evaluations, exact: false });
        self.ledger.count_not_finite(fork.ledger.not_finite());
    }

    /// Counts all that a wrapped gate drew, each under its own role.
    pub fn merge(&mut self, wrapped: &Self) {
        for (role, entry) in wrapped.ledger.by_role() {
            let charge = Charge { samples: entry.samples, evaluations: entry.evaluations, exact: false };
            self.ledger.charge(role, charge);
        }
        self.ledger.count_not_finite(wrapped.ledger.not_finite());
    }

    /// Writes its section of a checkpoint.
    pub fn save<'a>(&'a self, to: &mut Saver<'a>) {
        let About { identity, dim, .. } = self.about();
        let Self { seed, on_nan, endless, .. } = *self;
        let (identity, ledger) = (identity.clone(), self.ledger.clone());
        let term = self.term.as_ref().map(|term| term.identity());
        let saved = Saved { identity, dim: *dim, seed, ledger, on_nan, endless, term };
        to.put(SECTION, &saved, []);
        self.kept.save(to);
    }

    /// The gate of a run that is resumed: seed and ledger are the checkpoint's. Refuses an oracle that is not the one the
    /// checkpoint was taken on, and a run that had a term.
    pub fn resume(oracle: Arc<dyn Oracle>, checkpoint: &mut Checkpoint) -> Result<Self, CheckpointError> {
        Self::resume_with_term(oracle, None, checkpoint)
    }

    /// [`resume`](Self::resume) for a run with a term, which must be the one that it had.
    pub fn resume_with_term(
        oracle: Arc<dyn Oracle>,
        term: Option<Arc<dyn Term>>,
        checkpoint: &mut Checkpoint,
    ) -> Result<Self, CheckpointError> {
        let (Saved { identity, dim, seed, ledger, on_nan, endless, term: saved }, _) =
            checkpoint.take(SECTION)?;
        let here = oracle.about();
        if identity != here.identity || dim != here.dim {
            let here = here.identity.clone();
            return Err(CheckpointError::Problem { found: identity, here });
        }
        let given = term.as_ref().map(|term| term.identity());
        if saved != given {
            let name = |term: Option<String>| term.unwrap_or_else(|| "none".into());
            let what = format!("the run was started with the term {}, not {}", name(saved), name(given));
            return Err(CheckpointError::Settings { what });
        }
        let gate = Self::over(oracle, seed);
        // It was checked before the first step. A check that did not come to its end is not in the ledger; a single sample is none.
        let needs_check =
            gate.needs_check && ledger.steps().samples == 0 && ledger.of(Role::Check).samples <= 1;
        Ok(Self { ledger, needs_check, on_nan, endless, kept: Kept::resume(checkpoint)?, term, ..gate })
    }
}

const SECTION: &str = "gate";

#[derive(Serialize, Deserialize)]
struct Saved {
    identity: String,
    dim: usize,
    seed: u64,
    ledger: Ledger,
    /// Gates that were saved before there was a choice stop, and have a limit.
    #[serde(default)]
    on_nan: OnNan,
    #[serde(default)]
    endless: bool,
    /// What the term is, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    term: Option<String>,
}

/// Where many threads ask at once. See [`Gate::window`].
#[derive(Debug)]
pub struct Window<'g> {
    oracle: &'g dyn Oracle,
    about: &'g About,
    seed: u64,
    role: Role,
    stop: &'g AtomicBool,
    pause: Option<&'g AtomicBool>,
    kept: Option<Mutex<&'g mut Kept>>,
    on_nan: OnNan,
    term: Option<&'g dyn Term>,
    spent: Mutex<Spent>,
    most: u128,
}

/// A long question is asked in 2^5 parts at most, of at least 16 leaves of the tree of additions.
const PARTS: u32 = 5;
const LEAVES: u64 = 16;

/// What was asked at a window.
#[derive(Debug, Default)]
struct Spent {
    charge: Charge,
    not_finite: u128,
    /// The last question whose answer was not finite.
    suspect: Option<Suspect>,
}

impl Window<'_> {
    /// The first `n` samples of a step, under the window's role.
    pub fn batch(&self, step: u64, n: u64) -> Batch {
        Batch { seed: self.seed, role: self.role, step, samples: 0..n }
    }

    /// Asks the oracle, and counts. An answer that is not finite is no answer.
    pub fn ask(&self, request: Request<'_>, answer: &mut Answer<'_>) -> Result<Charge, Halt> {
        let (draw, points, losses) = (request.draw.clone(), request.points, request.losses);
        let charge = self.spend(self.put(request, answer)?, Samples::New)?;
        if let Err(halt) = check_finite(answer, asked(&draw)) {
            self.notice(&draw, points[0], losses);
            return Err(halt);
        }
        Ok(charge)
    }

    /// Asks many questions of one shape: on all threads, and where the oracle has a team, each member some of them. The
    /// answers may be anything, also infinite.
    pub(crate) fn each<'p>(
        &self,
        count: usize,
        samples: Samples,
        question: impl Fn(usize) -> Request<'p> + Sync,
    ) -> Result<Answers, Halt> {
        if count == 0 {
            return Ok(Answers::default());
        }
        let first = question(0);
        let gradients = first.rows() * self.about.dim;
        let width = gradients + if first.losses { first.points.len() } else { 0 };
        let mut answers = Answers {
            asked: asked(&first.draw),
            gradients,
            width,
            numbers: vec![0.0; count * width],
            charges: vec![Charge::default(); count],
        };
        let numbers = &mut answers.numbers;
        let paid: Vec<Paid> = match self.oracle.team() {
            None => {
                let rows = numbers.par_chunks_mut(width.max(1)).enumerate();
                rows.map(|(i, row)| self.put_or_recall(question(i), row, PARTS))
                    .collect::<Result<_, Halt>>()?
            }
            Some(team) => {
                if let Some(paid) = self.recall_all(width, numbers, &question) {
                    paid
                } else {
                    let paid = self.each_of_team(team, width, numbers, &question)?;
                    self.record_all(width, numbers, &paid, &question);
                    paid
                }
            }
        };
        for (charge, paid) in answers.charges.iter_mut().zip(paid) {
            *charge = self.spend(paid, samples)?;
        }
        for i in (0..answers.len()).filter(|&i| !answers.is_finite(i)) {
            let Request { draw, points, losses, .. } = question(i);
            self.notice(&draw, points[0], losses);
        }
        Ok(answers)
    }

    #[cold]
    fn notice(&self, draw: &Draw, point: &[f64], losses: bool) {
        let mut spent = lock(&self.spent);
        spent.not_finite += 1;
        spent.suspect = Suspect::of(draw, point, losses).or(spent.suspect.take());
    }

    fn each_of_team<'p>(
        &self,
        team: &dyn Team,
        width: usize,
        numbers: &mut [f64],
        question: &(impl Fn(usize) -> Request<'p> + Sync),
    ) -> Result<Vec<Paid>, Halt> {
        let (first, count) = (question(0), numbers.len() / width.max(1));
        // Large questions to a table are divided by rows, so that a member reads no others than its own.
        if self.is_divided_by_rows(team, &first, width) {
            let rows = numbers.chunks_mut(width.max(1)).enumerate();
            let together = |(i, row): (usize, &mut [f64])| {
                self.put_row(Request { team: Some(team), ..question(i) }, row)
            };
            return rows.map(together).collect();
        }
        team.hear(&first)?;
        team.hear(&question(count - 1))?;
        let work = first.usual_price(self.about).evaluations * count as u128;
        share(team, work, width, numbers, |i, row| self.put_row(question(i), row))
    }

    /// What is kept of a step that was interrupted, if it is all that is asked: the members of a team have the same.
    fn recall_all<'p>(
        &self,
        width: usize,
        numbers: &mut [f64],
        question: &impl Fn(usize) -> Request<'p>,
    ) -> Option<Vec<Paid>> {
        let mut kept = lock(self.kept.as_ref()?);
        let rows = numbers.chunks_mut(width.max(1)).enumerate();
        rows.map(|(i, row)| kept.recall(&Question::of(&question(i)), row)).collect()
    }

    fn record_all<'p>(
        &self,
        width: usize,
        numbers: &[f64],
        paid: &[Paid],
        question: &impl Fn(usize) -> Request<'p>,
    ) {
        let Some(kept) = &self.kept else { return };
        let mut kept = lock(kept);
        for (i, (row, paid)) in numbers.chunks(width.max(1)).zip(paid).enumerate() {
            kept.record(Question::of(&question(i)), row, *paid);
        }
    }

    /// An answer, or parts of it, that a step kept when it was interrupted; the rest is asked, a long question in parts that are kept as well.
    fn put_or_recall(&self, request: Request<'_>, row: &mut [f64], depth: u32) -> Result<Paid, Halt> {
        let Some(kept) = &self.kept else { return self.put_row(request, row) };
        let question = Question::of(&request);
        {
            let mut kept = lock(kept);
            if let Some(paid) = kept.recall(&question, row) {
                return Ok(paid);
            }
            if self.pause.is_some_and(|pause| pause.load(Ordering::Relaxed)) && kept.may_pause() {
                return Err(Halt::Paused);
            }
        }
        let Some([left, right]) = self.parts(&request, depth) else {
            let paid = self.put_row(request, row)?;
            lock(kept).record(question, row, paid);
            return Ok(paid);
        };
        let parts = [question.about(&left), question.about(&right)];
        let part = |batch: Batch, row: &mut [f64]| {
            self.put_or_recall(Request { draw: Draw::Batch(batch), ..request.clone() }, row, depth - 1)
        };
        let mut sum = vec![0.0; row.len()];
        let (first, second) = rayon::join(|| part(left, row), || part(right, &mut sum));
        let paid = first?.and(second?);
        row.iter_mut().zip(&sum).for_each(|(total, term)| *total += term);
        lock(kept).join(question, &parts, row, paid);
        Ok(paid)
    }

    /// The two parts of a long question whose answers add up to the answer, bit for bit.
    fn parts(&self, request: &Request<'_>, depth: u32) -> Option<[Batch; 2]> {
        let Draw::Batch(batch) = &request.draw else { return None };
        let leaf = self.oracle.leaf().filter(|_| depth > 0)?;
        let is_long = batch.count() / LEAVES / 2 >= leaf.max(1);
        if is_long { batch.halves(leaf) } else { None }
    }

    fn put_row(&self, request: Request<'_>, row: &mut [f64]) -> Result<Paid, Halt> {
        let (gradients, losses) = row.split_at_mut(request.rows() * self.about.dim);
        self.put(request, &mut Answer { gradients, losses, support: usize::MAX })
    }

    fn is_divided_by_rows(&self, team: &dyn Team, question: &Request<'_>, width: usize) -> bool {
        let samples = u64::try_from(question.usual_price(self.about).samples).unwrap_or(u64::MAX);
        matches!(self.about.source, Source::Table { .. }) && team.divides(samples, width)
    }

    fn put(&self, request: Request<'_>, answer: &mut Answer<'_>) -> Result<Paid, Halt> {
        let request = Request { stop: Some(self.stop), ..request };
        inside(self.term, &request)?;
        let charge = put(self.oracle, self.about, &request, answer)?;
        if self.on_nan == OnNan::Skip && check_finite(answer, asked(&request.draw)).is_err() {
            let skipped = skip(self.oracle, self.about, &request, answer)?;
            return Ok(Paid { charge, skipped });
        }
        Ok(Paid { charge, skipped: Skipped::default() })
    }

    fn spend(&self, Paid { mut charge, skipped }: Paid, samples: Samples) -> Result<Charge, Halt> {
        if samples == Samples::Known {
            charge.samples = 0;
        }
        let mut spent = lock(&self.spent);
        spent.charge.samples += charge.samples;
        spent.charge.evaluations += charge.evaluations + skipped.evaluations;
        spent.not_finite += skipped.count;
        if spent.charge.samples > self.most {
            return Err(Halt::Oracle(OracleError::new("it charged more than its price")));
        }
        Ok(charge)
    }
}

/// What an answer cost, and what was left out of it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Paid {
    charge: Charge,
    skipped: Skipped,
}

/// Samples that were left out, and the evaluations that it took to find them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Skipped {
    count: u128,
    evaluations: u128,
}

impl Skipped {
    /// The samples themselves were counted before.
    fn charge(self) -> Charge {
        Charge { samples: 0, evaluations: self.evaluations, exact: false }
    }
}

impl Paid {
    /// What two parts of an answer cost together.
    fn and(self, other: Self) -> Self {
        let samples = self.charge.samples + other.charge.samples;
        let evaluations = self.charge.evaluations + other.charge.evaluations;
        let skipped = Skipped {
            count: self.skipped.count + other.skipped.count,
            evaluations: self.skipped.evaluations + other.skipped.evaluations,
        };
        Self { charge: Charge { samples, evaluations, exact: false }, skipped }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers to many questions of one shape.
#[derive(Debug)]
pub(crate) struct Answers {
    /// The role and step of the first question; each of the others is a step further.
    asked: (Role, u64),
    /// Numbers of an answer that are gradients; losses follow.
    gradients: usize,
    width: usize,
    numbers: Vec<f64>,
    charges: Vec<Charge>,
}

impl Default for Answers {
    fn default() -> Self {
        let asked = (Role::Large, 0);
        Self { asked, gradients: 0, width: 0, numbers: Vec::new(), charges: Vec::new() }
    }
}

impl Answers {
    pub(crate) fn len(&self) -> usize {
        self.charges.len()
    }

    pub(crate) fn gradients(&self, i: usize) -> &[f64] {
        &self.numbers[i * self.width..][..self.gradients]
    }

    pub(crate) fn losses(&self, i: usize) -> &[f64] {
        &self.numbers[i * self.width..(i + 1) * self.width][self.gradients..]
    }

    /// What all of them cost.
    pub(crate) fn samples(&self) -> u128 {
        self.charges.iter().map(|charge| charge.samples).sum()
    }

    fn is_finite(&self, i: usize) -> bool {
        finite(self.gradients(i), self.losses(i), self.asked).is_ok()
    }

    /// Refuses NaN and infinity.
    pub(crate) fn check_finite(&self) -> Result<(), Halt> {
        let (role, first) = self.asked;
        (0..self.len()).try_for_each(|i| finite(self.gradients(i), self.losses(i), (role, first + i as u64)))
    }
}

/// Has each member of a team answer some of the questions. An answer travels as its numbers and what it cost.
fn share(
    team: &dyn Team,
    work: u128,
    width: usize,
    numbers: &mut [f64],
    ask: impl Fn(usize, &mut [f64]) -> Result<Paid, Halt> + Sync,
) -> Result<Vec<Paid>, Halt> {
    const COST: usize = 9;
    let mut rows = vec![0; (width + COST) * (numbers.len() / width.max(1))];
    team.share(work, width + COST, &mut rows, &|range: Range<usize>, rows: &mut [u64]| {
        let both = rows.par_chunks_mut(width + COST).zip(range);
        both.try_for_each(|(row, i)| {
            let mut numbers = vec![0.0; width];
            let Paid { charge, skipped } = ask(i, &mut numbers).map_err(OracleError::from)?;
            let counts = [charge.samples, charge.evaluations, skipped.count, skipped.evaluations];
            for (words, n) in row.chunks_mut(2).zip(counts) {
                words.copy_from_slice(&[n as u64, (n >> 64) as u64]);
            }
            row[COST - 1] = u64::from(charge.exact);
            row[COST..].iter_mut().zip(numbers).for_each(|(word, number)| *word = number.to_bits());
            Ok(())
        })
    })?;
    let filled = numbers.chunks_mut(width.max(1)).zip(rows.chunks(width + COST));
    let read = |(numbers, row): (&mut [f64], &[u64])| {
        numbers.iter_mut().zip(&row[COST..]).for_each(|(number, word)| *number = f64::from_bits(*word));
        let number = |words: &[u64]| u128::from(words[0]) | u128::from(words[1]) << 64;
        let [samples, evaluations, count, again] = [0, 2, 4, 6].map(|at| number(&row[at..at + 2]));
        let charge = Charge { samples, evaluations, exact: row[COST - 1] != 0 };
        Paid { charge, skipped: Skipped { count, evaluations: again } }
    };
    Ok(filled.map(read).collect())
}

/// Whether samples are drawn, or were drawn before and are now evaluated elsewhere: then only the evaluations count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Samples {
    New,
    Known,
}

/// Refuses a question about points outside of the domain.
#[inline]
fn inside(term: Option<&dyn Term>, request: &Request<'_>) -> Result<(), Halt> {
    let Some(term) = term else { return Ok(()) };
    match request.points.iter().find_map(|x| term.outside(x)) {
        Some(outside) => Err(Halt::Outside { words: outside.words }),
        None => Ok(()),
    }
}

/// Asks an oracle, more than once if that may help.
#[inline]
fn put(
    oracle: &dyn Oracle,
    about: &About,
    request: &Request<'_>,
    answer: &mut Answer<'_>,
) -> Result<Charge, Halt> {
    request.check(about, answer)?;
    request.interrupted()?;
    answer.support = about.dim;
    match oracle.answer(request, answer) {
        Ok(charge) => Ok(charge),
        Err(error) => put_again(oracle, request, answer, error),
    }
}

#[cold]
fn put_again(
    oracle: &dyn Oracle,
    request: &Request<'_>,
    answer: &mut Answer<'_>,
    mut error: OracleError,
) -> Result<Charge, Halt> {
    for _ in 0..RETRIES {
        if error.kind() != ErrorKind::Retry {
            break;
        }
        request.interrupted()?;
        // As if it were asked for the first time.
        answer.support = answer.gradients.len() / request.rows().max(1);
        match oracle.answer(request, answer) {
            Ok(charge) => return Ok(charge),
            Err(again) => error = again,
        }
    }
    Err(error.into())
}

/// Replaces an answer that is not finite by what its finite samples say, scaled to the size of the batch. Halves are asked for until what is not
/// finite stands alone. If no sample is left, others are drawn; if none of them is finite either, the answer stays as it is.
#[cold]
fn skip(
    oracle: &dyn Oracle,
    about: &About,
    request: &Request<'_>,
    answer: &mut Answer<'_>,
) -> Result<Skipped, Halt> {
    let mut skipped = Skipped::default();
    let Draw::Batch(batch) = &request.draw else { return Ok(skipped) };
    if !about.additive {
        return Ok(skipped);
    }
    let numbers = answer.gradients.len() + answer.losses.len();
    let (mut kept, mut sum) = (0, vec![0.0; numbers]);
    let mut add = |part: Batch, skipped: &mut Skipped, kept: &mut u64| -> Result<bool, Halt> {
        let mut row = vec![0.0; numbers];
        let (gradients, losses) = row.split_at_mut(answer.gradients.len());
        let count = part.count();
        let request = Request { draw: Draw::Batch(part), ..request.clone() };
        let mut part = Answer { gradients, losses, support: about.dim };
        skipped.evaluations += put(oracle, about, &request, &mut part)?.evaluations;
        let is_finite = check_finite(&part, (batch.role, batch.step)).is_ok();
        if is_finite {
            *kept += count;
            sum.iter_mut().zip(row).for_each(|(sum, number)| *sum += number);
        }
        Ok(is_finite)
    };
    let mut parts = vec![batch.samples.clone()];
    while let Some(Range { start, end }) = parts.pop() {
        if end - start == 1 {
            skipped.count += 1;
            continue;
        }
        let middle = start + (end - start) / 2;
        for samples in [middle..end, start..middle] {
            if !add(Batch { samples: samples.clone(), ..batch.clone() }, &mut skipped, &mut kept)? {
                parts.push(samples);
            }
        }
    }
    let first = batch.samples.start.wrapping_mul(OTHERS) % OTHERS_FROM + OTHERS_FROM;
    for other in 0..OTHERS {
        if kept > 0 {
            break;
        }
        let samples = first + other..first + other + 1;
        add(Batch { samples, ..batch.clone() }, &mut skipped, &mut kept)?;
    }
    // An oracle that does not repeat itself may answer the parts.
    skipped.count = skipped.count.max(1);
    if kept > 0 {
        let scale = batch.count() as f64 / kept as f64;
        let rows = answer.gradients.iter_mut().chain(answer.losses.iter_mut());
        rows.zip(&sum).for_each(|(number, sum)| *number = scale * sum);
        answer.support = about.dim;
    }
    Ok(skipped)
}

/// The price, if it can be paid.
fn afford(needed: u128, left: u128) -> Result<u128, Halt> {
    if needed <= left { Ok(needed) } else { Err(Halt::OverBudget { needed, left }) }
}

fn asked(draw: &Draw) -> (Role, u64) {
    match draw {
        Draw::Batch(batch) => (batch.role, batch.step),
        Draw::Everything(role) => (*role, 0),
    }
}

/// Refuses NaN and infinity. What is too large to be squared is of no use to anyone either.
fn check_finite(answer: &Answer<'_>, asked: (Role, u64)) -> Result<(), Halt> {
    finite(answer.gradients, answer.losses, asked)
}

fn finite(gradients: &[f64], losses: &[f64], (role, step): (Role, u64)) -> Result<(), Halt> {
    let squares: f64 = gradients.iter().map(|g| g * g).sum();
    let losses: f64 = losses.iter().map(|loss| loss.abs()).sum();
    if (squares + losses).is_finite() { Ok(()) } else { Err(Halt::NotFinite { role, step }) }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate")
            .field("oracle", &self.about().identity)
            .field("seed", &self.seed)
            .field("ledger", &self.ledger)
            .field("budget", &self.budget)
            .finish_non_exhaustive()
    }
}
