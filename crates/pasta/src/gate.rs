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

mod blame;
mod halt;
mod kept;
mod nested;
mod put;
mod saved;
mod window;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};

use self::blame::Suspect;
pub use self::halt::Halt;
use self::kept::{Kept, Question};
use self::put::{Paid, Skipped, afford, asked, check_finite, inside, put, skip};
pub(crate) use self::saved::is_zero;
pub(crate) use self::window::Samples;
pub use self::window::Window;
use crate::draws::Role;
use crate::ledger::Ledger;
use crate::oracle::{About, Answer, Batch, Charge, Oracle, OracleError, Request};
use crate::stop::Stop;
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
    /// The samples in all after which the oracle has no more, once it has said so.
    end: Option<u128>,
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
    /// What a round costs, in samples.
    round_cost: u64,
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

/// No round costs more than so many samples.
pub const MOST_ROUND_COST: u64 = 1_000_000_000;

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
            end: None,
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
            round_cost: 0,
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

    /// What a round costs, in samples: methods and certificates that can ask wider then do, and rounds are
    /// [counted](Self::counting_rounds). With 0, rounds are free.
    #[must_use]
    pub fn with_round_cost(self, samples: u64) -> Self {
        let gate = Self { round_cost: samples.min(MOST_ROUND_COST), ..self };
        if gate.round_cost > 0 { gate.counting_rounds() } else { gate }
    }

    /// What a round costs, in samples.
    #[inline]
    pub fn round_cost(&self) -> u64 {
        self.round_cost
    }

    /// Counts [rounds](Ledger::rounds) from here on, whatever they cost.
    #[must_use]
    pub fn counting_rounds(mut self) -> Self {
        self.ledger.start_counting_rounds();
        self
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
        let meaning = match self.end {
            None => stop.meaning(),
            Some(_) => format!("the samples have come to an end; {}", stop.meaning()),
        };
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

    /// Samples that may still be drawn; as many as can be counted where there is no budget, unless the oracle has come to an end.
    pub fn left(&self) -> u128 {
        match self.budget.into_iter().chain(self.end).min() {
            None => u128::MAX,
            Some(budget) => budget.saturating_sub(self.ledger.samples()).saturating_sub(self.held),
        }
    }

    /// The oracle has come to an end, and has so many samples left.
    #[cold]
    fn end(&mut self, left: u128) {
        self.end = Some(self.ledger.samples() + left);
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
        let charge = match put(&*self.oracle, &self.about, &request, answer) {
            Err(Halt::OverBudget { needed, left }) => {
                self.end(left);
                return Err(Halt::OverBudget { needed, left });
            }
            charge => charge?,
        };
        self.ledger.charge(request.draw.role(), charge);
        self.ledger.count_rounds(1);
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
    pub(crate) fn count_again(&mut self, role: Role, charge: Charge, rounds: u64) {
        self.ledger.charge(role, charge);
        self.ledger.count_rounds(rounds.into());
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
            self.ledger.count_rounds(1);
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
