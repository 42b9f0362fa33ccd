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
use crate::stop::{Divergence, Stop};

/// The only way to an oracle: it counts, keeps the budget, and can be told to stop.
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
    doubts: bool,
    /// Answers of the step under way.
    kept: Kept,
    /// True while a step keeps its answers.
    is_keeping: bool,
    pause: Option<Arc<AtomicBool>>,
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
    #[error("the oracle's answer at step {step} is not finite, or too large to be squared")]
    NotFinite {
        /// What was asked for.
        role: Role,
        /// The step of the batch.
        step: u64,
    },
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
            Self::Oracle(_) | Self::Paused => None,
            Self::OverBudget { .. } => Some(Stop::OutOfBudget),
            Self::Interrupted => Some(Stop::Interrupted),
            Self::NotFinite { step, .. } => Some(Stop::Diverged(Divergence::Gradient { step })),
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

impl Gate {
    /// The way to this oracle, with all randomness from this seed.
    pub fn new(oracle: impl Oracle + 'static, seed: u64) -> Self {
        Self::over(Arc::new(oracle), seed)
    }

    /// The same for an oracle that is shared.
    pub fn over(oracle: Arc<dyn Oracle>, seed: u64) -> Self {
        let (about, has_team) = (oracle.about().clone(), oracle.team().is_some());
        let doubts = !oracle.is_vouched_for();
        Self {
            oracle,
            about,
            has_team,
            seed,
            ledger: Ledger::default(),
            budget: None,
            held: 0,
            stop: Arc::default(),
            doubts,
            kept: Kept::default(),
            is_keeping: false,
            pause: None,
        }
    }

    /// Believes the oracle without the few dozen samples by which a run [checks](crate::check) one that is not of this library.
    #[must_use]
    pub fn believing(self) -> Self {
        Self { doubts: false, ..self }
    }

    /// Whether a run is to check the oracle before its first step.
    pub fn doubts(&self) -> bool {
        self.doubts
    }

    /// Whether sums over batches are sums of samples that can be asked for one by one.
    pub(crate) fn is_additive(&self) -> bool {
        self.oracle.is_additive()
    }

    /// The oracle was checked.
    pub(crate) fn believe(&mut self) {
        self.doubts = false;
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
    pub fn with_pause(self, pause: Arc<AtomicBool>) -> Self {
        let pause = (!self.has_team).then_some(pause);
        Self { pause, ..self }
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
        let asked = asked(&request.draw);
        let charge = self.ask_for_step(request, answer)?;
        check_finite(answer, asked)?;
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
        Ok(charge)
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
            kept: self.is_keeping.then(|| Mutex::new(&mut self.kept)),
            spent: Mutex::default(),
            most,
        };
        let done = work(&window);
        if !done.as_ref().is_err_and(Halt::drops_work) {
            let spent = window.spent.into_inner().unwrap_or_else(PoisonError::into_inner);
            self.ledger.charge(role, spent);
        }
        done
    }

    /// Does a long step whole, or puts it aside: what it was answered before it was interrupted, paused or failed is kept, also in a
    /// checkpoint, and is not asked again. Only then is it counted, so that the step sees the same ledger as if it had never stopped.
    pub(crate) fn keep<T>(&mut self, step: impl FnOnce(&mut Self) -> Result<T, Halt>) -> Result<T, Halt> {
        let in_vain = self.kept.begin(self.budget);
        in_vain.into_iter().for_each(|(role, charge)| self.ledger.charge(role, charge));
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
            in_vain.into_iter().for_each(|(role, charge)| self.ledger.charge(role, charge));
        }
        done
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
        if let Some(charge) = self.kept.recall(&question, &mut row) {
            let (gradients, losses) = row.split_at(answer.gradients.len());
            answer.gradients.copy_from_slice(gradients);
            answer.losses.copy_from_slice(losses);
            self.count_again(role, charge);
            return Ok(charge);
        }
        if self.is_paused() && self.kept.may_pause() {
            return Err(Halt::Paused);
        }
        let charge = self.ask_for_step(request, answer)?;
        let row = [&*answer.gradients, &*answer.losses].concat();
        self.kept.record(question, &row, charge);
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
            .pausing_with(self)
            .believing()
    }

    fn pausing_with(self, outer: &Self) -> Self {
        Self { pause: outer.pause.clone(), ..self }
    }

    /// The fork of a run that is resumed, as it [saved](Self::save) itself.
    pub(crate) fn fork_again(&self, checkpoint: &mut Checkpoint) -> Result<Self, CheckpointError> {
        let fork = Self::resume(Arc::clone(&self.oracle), checkpoint)?;
        Ok(fork.with_stop(Arc::clone(&self.stop)).pausing_with(self))
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
    }

    /// A gate to an oracle that is made of this one's, with the same seed, interrupt and budget. What it draws is counted here
    /// once it is [merged](Self::merge).
    #[must_use]
    pub fn wrap(&self, make: impl FnOnce(Arc<dyn Oracle>) -> Arc<dyn Oracle>) -> Self {
        let oracle = make(Arc::clone(&self.oracle));
        let budget = self.budget.map(|_| self.left());
        Self::over(oracle, self.seed).with_budget(budget).with_stop(Arc::clone(&self.stop)).believing()
    }

    /// Counts all that a fork drew under one role.
    pub fn absorb(&mut self, role: Role, fork: &Self) {
        let (samples, evaluations) = (fork.ledger.samples(), fork.ledger.evaluations());
        self.ledger.charge(role, Charge { samples, evaluations, exact: false });
    }

    /// Counts all that a wrapped gate drew, each under its own role.
    pub fn merge(&mut self, wrapped: &Self) {
        for (role, entry) in wrapped.ledger.by_role() {
            let charge = Charge { samples: entry.samples, evaluations: entry.evaluations, exact: false };
            self.ledger.charge(role, charge);
        }
    }

    /// Writes its section of a checkpoint.
    pub fn save<'a>(&'a self, to: &mut Saver<'a>) {
        let About { identity, dim, .. } = self.about();
        let saved =
            Saved { identity: identity.clone(), dim: *dim, seed: self.seed, ledger: self.ledger.clone() };
        to.put(SECTION, &saved, []);
        self.kept.save(to);
    }

    /// The gate of a run that is resumed: seed and ledger are the checkpoint's. Refuses an oracle that is not the one the
    /// checkpoint was taken on.
    pub fn resume(oracle: Arc<dyn Oracle>, checkpoint: &mut Checkpoint) -> Result<Self, CheckpointError> {
        let (Saved { identity, dim, seed, ledger }, _) = checkpoint.take(SECTION)?;
        let here = oracle.about();
        if identity != here.identity || dim != here.dim {
            let here = here.identity.clone();
            return Err(CheckpointError::Problem { found: identity, here });
        }
        let gate = Self::over(oracle, seed);
        // It was checked before the first step. A check that did not come to its end is not in the ledger; a single sample is none.
        let doubts = gate.doubts && ledger.steps().samples == 0 && ledger.of(Role::Check).samples <= 1;
        Ok(Self { ledger, doubts, kept: Kept::resume(checkpoint)?, ..gate })
    }
}

const SECTION: &str = "gate";

#[derive(Serialize, Deserialize)]
struct Saved {
    identity: String,
    dim: usize,
    seed: u64,
    ledger: Ledger,
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
    spent: Mutex<Charge>,
    most: u128,
}

/// A long question is asked in 2^5 parts at most, of at least 16 leaves of the tree of additions.
const PARTS: u32 = 5;
const LEAVES: u64 = 16;

impl Window<'_> {
    /// The first `n` samples of a step, under the window's role.
    pub fn batch(&self, step: u64, n: u64) -> Batch {
        Batch { seed: self.seed, role: self.role, step, samples: 0..n }
    }

    /// Asks the oracle, and counts. An answer that is not finite is no answer.
    pub fn ask(&self, request: Request<'_>, answer: &mut Answer<'_>) -> Result<Charge, Halt> {
        let asked = asked(&request.draw);
        let charge = self.ask_unchecked(request, answer, Samples::New)?;
        check_finite(answer, asked)?;
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
            charges: Vec::new(),
        };
        let numbers = &mut answers.numbers;
        answers.charges = match self.oracle.team() {
            None => {
                let rows = numbers.par_chunks_mut(width.max(1)).enumerate();
                rows.map(|(i, row)| self.put_or_recall(question(i), row, PARTS))
                    .collect::<Result<_, Halt>>()?
            }
            Some(team) => {
                if let Some(charges) = self.recall_all(width, numbers, &question) {
                    charges
                } else {
                    let charges = self.each_of_team(team, width, numbers, &question)?;
                    self.record_all(width, numbers, &charges, &question);
                    charges
                }
            }
        };
        for charge in &mut answers.charges {
            *charge = self.spend(*charge, samples)?;
        }
        Ok(answers)
    }

    fn each_of_team<'p>(
        &self,
        team: &dyn Team,
        width: usize,
        numbers: &mut [f64],
        question: &(impl Fn(usize) -> Request<'p> + Sync),
    ) -> Result<Vec<Charge>, Halt> {
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
    ) -> Option<Vec<Charge>> {
        let mut kept = lock(self.kept.as_ref()?);
        let rows = numbers.chunks_mut(width.max(1)).enumerate();
        rows.map(|(i, row)| kept.recall(&Question::of(&question(i)), row)).collect()
    }

    fn record_all<'p>(
        &self,
        width: usize,
        numbers: &[f64],
        charges: &[Charge],
        question: &impl Fn(usize) -> Request<'p>,
    ) {
        let Some(kept) = &self.kept else { return };
        let mut kept = lock(kept);
        for (i, (row, charge)) in numbers.chunks(width.max(1)).zip(charges).enumerate() {
            kept.record(Question::of(&question(i)), row, *charge);
        }
    }

    /// An answer, or parts of it, that a step kept when it was interrupted; the rest is asked, a long question in parts that are kept as well.
    fn put_or_recall(&self, request: Request<'_>, row: &mut [f64], depth: u32) -> Result<Charge, Halt> {
        let Some(kept) = &self.kept else { return self.put_row(request, row) };
        let question = Question::of(&request);
        {
            let mut kept = lock(kept);
            if let Some(charge) = kept.recall(&question, row) {
                return Ok(charge);
            }
            if self.pause.is_some_and(|pause| pause.load(Ordering::Relaxed)) && kept.may_pause() {
                return Err(Halt::Paused);
            }
        }
        let Some([left, right]) = self.parts(&request, depth) else {
            let charge = self.put_row(request, row)?;
            lock(kept).record(question, row, charge);
            return Ok(charge);
        };
        let parts = [question.about(&left), question.about(&right)];
        let part = |batch: Batch, row: &mut [f64]| {
            self.put_or_recall(Request { draw: Draw::Batch(batch), ..request.clone() }, row, depth - 1)
        };
        let mut sum = vec![0.0; row.len()];
        let (first, second) = rayon::join(|| part(left, row), || part(right, &mut sum));
        let (first, second) = (first?, second?);
        row.iter_mut().zip(&sum).for_each(|(total, term)| *total += term);
        let charge = Charge {
            samples: first.samples + second.samples,
            evaluations: first.evaluations + second.evaluations,
            exact: false,
        };
        lock(kept).join(question, &parts, row, charge);
        Ok(charge)
    }

    /// The two parts of a long question whose answers add up to the answer, bit for bit.
    fn parts(&self, request: &Request<'_>, depth: u32) -> Option<[Batch; 2]> {
        let Draw::Batch(batch) = &request.draw else { return None };
        let leaf = self.oracle.leaf().filter(|_| depth > 0)?;
        let is_long = batch.count() / LEAVES / 2 >= leaf.max(1);
        if is_long { batch.halves(leaf) } else { None }
    }

    fn put_row(&self, request: Request<'_>, row: &mut [f64]) -> Result<Charge, Halt> {
        let (gradients, losses) = row.split_at_mut(request.rows() * self.about.dim);
        self.put(request, &mut Answer { gradients, losses, support: usize::MAX })
    }

    fn is_divided_by_rows(&self, team: &dyn Team, question: &Request<'_>, width: usize) -> bool {
        let samples = u64::try_from(question.usual_price(self.about).samples).unwrap_or(u64::MAX);
        matches!(self.about.source, Source::Table { .. }) && team.divides(samples, width)
    }

    fn ask_unchecked(
        &self,
        request: Request<'_>,
        answer: &mut Answer<'_>,
        samples: Samples,
    ) -> Result<Charge, Halt> {
        self.spend(self.put(request, answer)?, samples)
    }

    fn put(&self, request: Request<'_>, answer: &mut Answer<'_>) -> Result<Charge, Halt> {
        put(self.oracle, self.about, &Request { stop: Some(self.stop), ..request }, answer)
    }

    fn spend(&self, mut charge: Charge, samples: Samples) -> Result<Charge, Halt> {
        if samples == Samples::Known {
            charge.samples = 0;
        }
        let mut spent = lock(&self.spent);
        spent.samples += charge.samples;
        spent.evaluations += charge.evaluations;
        if spent.samples > self.most {
            return Err(Halt::Oracle(OracleError::new("it charged more than its price")));
        }
        Ok(charge)
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
    ask: impl Fn(usize, &mut [f64]) -> Result<Charge, Halt> + Sync,
) -> Result<Vec<Charge>, Halt> {
    const COST: usize = 5;
    let mut rows = vec![0; (width + COST) * (numbers.len() / width.max(1))];
    team.share(work, width + COST, &mut rows, &|range: Range<usize>, rows: &mut [u64]| {
        let both = rows.par_chunks_mut(width + COST).zip(range);
        both.try_for_each(|(row, i)| {
            let mut numbers = vec![0.0; width];
            let Charge { samples, evaluations, exact } = ask(i, &mut numbers).map_err(OracleError::from)?;
            let words = |n: u128| [n as u64, (n >> 64) as u64];
            row[..2].copy_from_slice(&words(samples));
            row[2..4].copy_from_slice(&words(evaluations));
            row[4] = u64::from(exact);
            row[COST..].iter_mut().zip(numbers).for_each(|(word, number)| *word = number.to_bits());
            Ok(())
        })
    })?;
    let filled = numbers.chunks_mut(width.max(1)).zip(rows.chunks(width + COST));
    let read = |(numbers, row): (&mut [f64], &[u64])| {
        numbers.iter_mut().zip(&row[COST..]).for_each(|(number, word)| *number = f64::from_bits(*word));
        let number = |words: &[u64]| u128::from(words[0]) | u128::from(words[1]) << 64;
        Charge { samples: number(&row[..2]), evaluations: number(&row[2..4]), exact: row[4] != 0 }
    };
    Ok(filled.map(read).collect())
}

/// Whether samples are drawn, or were drawn before and are now evaluated elsewhere: then only the evaluations count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Samples {
    New,
    Known,
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
