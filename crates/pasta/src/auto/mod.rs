//! `auto`: a method without constants.
//!
//! Two ways down take turns, and fresh samples, the same at both points, judge each of them:
//!
//! - **Walk.** Small steps from the start, of a length that distance over gradients gives, and their averages (see `average`). Where
//!   noise rules, nothing is better.
//! - **Stages.** Where the gradient of the best point stands out from its noise, quasi-Newton steps on shared samples lead down to where
//!   that noise rules (see `stage`). The noise of paired differences, which grows with the distance, is measured on the way: it limits how
//!   far a stage trusts itself and pulls it towards its anchor.
//!
//! A check compares losses (without losses: the slope along the way between the points) and gradients. A point that it calls worse is
//! refused; of the others the smallest gradient wins, and within the noise of the check the walk. The way that found the best point leads,
//! and gets nine tenths of the samples.
//!
//! On a table the samples become all rows as soon as that is cheaper, and the method is L-BFGS with exact passes. What is handed out is
//! always the last point that passed. `docs/auto.md` has what it is good and bad at.

mod average;
mod blocks;
mod compare;
mod fall;
pub(crate) mod memory;
mod sizes;
mod stage;
mod vouch;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use self::average::{Average, Done, Leg, Numbers};
use self::blocks::{Block, Eval, fresh, norm};
use self::compare::{Verdict, unbiased};
use self::memory::{Memory, Pair};
use self::sizes::Sizes;
use self::stage::{Reached, Stage};
use crate::checkpoint::{Checkpoint, CheckpointError, Saver};
use crate::estimator::Kind;
use crate::exact::MAX_COUNT;
use crate::gate::{Gate, Halt};
use crate::kernels::{along, minus, squared_distance, squared_norm};
use crate::oracle::Source;
use crate::schedule::Output;
use crate::state::{StartError, State};
use crate::stop::{Divergence, Mixed, Stop};
use crate::term::Mapping;
use crate::walk::{Advance, Record, View, Walk};

/// A run of `auto`, the method that needs no constants.
///
/// ```
/// use pasta_opt::Auto;
/// use pasta_opt::prelude::*;
/// use pasta_opt::problems::SineBowl;
///
/// let noise = Noise { growth: 9.0, floor: 1.0, tail: Tail::Gaussian };
/// let oracle = Noisy::new(Box::new(SineBowl { dimension: 1 }), noise, vec![1.2])?;
/// let mut gate = Gate::new(oracle, 1).with_budget(100_000);
/// let end = Auto::start(&gate, &[1.2], None)?.finish(&mut gate)?;
/// assert!(end.point[0].abs() < 0.2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Auto {
    state: Progress,
    start: Vec<f64>,
    /// The best point: the last one that passed a check.
    x: Vec<f64>,
    /// What is known of the anchor's samples.
    known: Eval,
    /// The anchor's gradient as the model saw it before.
    prior: Vec<f64>,
    memory: Memory,
    walk: Average,
    /// The walk's part of a round that was put aside.
    leg: Option<Leg>,
}

/// The numbers of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Progress {
    /// No finer gradient than this is asked for; 0 if there is no target.
    target: f64,
    round: u64,
    /// The next address of a draw.
    next: u64,
    /// How far a stage may go.
    radius: Option<f64>,
    /// Length of a first step.
    first: f64,
    /// The longest way of a round so far, or a guess.
    scale: f64,
    growth: f64,
    /// The variance of the prior's error, if there is a prior.
    prior_error: Option<f64>,
    refused: u32,
    /// The way that gets most samples, since the last check of the walk.
    lead: Option<Way>,
    /// What each way has drawn, checks included.
    by_stages: f64,
    by_walk: f64,
    /// No stage begins before so many samples: the last time, the gradient did not stand out.
    rests: f64,
    /// Whether the last round has begun.
    last: bool,
    distance2: f64,
    ended: Option<Stop>,
    /// Where there is a term: gamma of the gradient mappings that are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gamma: Option<f64>,
}

/// The two ways down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Way {
    Walk,
    Stages,
}

/// The square of a gradient that stands out is so many times the variance of its error.
const CLEAR: f64 = 2.0;
/// A check of a stage takes this share of the anchor's samples, one of the walk this share of its leg.
const CHECK: f64 = 0.25;
const LEG_CHECK: f64 = 0.03;
/// A refused point shrinks the radius by this factor; an accepted one lets it grow by its square.
const SHRINK: f64 = 4.0;
/// A prior is trusted a little less than its measured error says.
const TRUST: f64 = 1.5;
/// No stage goes farther than this many times the longest so far: what few samples did not show cannot throw a run far.
const FARTHER: f64 = 32.0;
/// No stage goes farther from the start than so many times the walk's average, which has seen many more samples.
const BEYOND: f64 = 8.0;
/// A last look at the start takes this share of a budget.
const VOUCH: f64 = 0.05;
/// Where gradients have heavy tails it takes this share.
const HEAVY_VOUCH: f64 = 0.15;
/// So many refusals in a row end a run.
const MOST_REFUSED: u32 = 40;
/// A stage costs about so many times the samples of its anchor; a refused one draws no more than this share of what is left.
const STAGE: f64 = 4.0;
const REDRAWN: f64 = 0.3;
/// Noise rules where a gradient does not stand out with this share of all samples.
const RULES: f64 = 0.03;
/// Where a gradient did not stand out, no stage begins before so many times the samples.
const RESTS: f64 = 2.0;
/// The same where rounds have a price: a larger share costs no more rounds.
const WIDE_RULES: f64 = 0.1;
const WIDE_RESTS: f64 = 1.5;
/// Stages get this share of all samples.
const SHARE: f64 = 0.25;
/// Stages lead once |grad f|^2 of the walk's point is so many times that of the best one; the walk then gets this share.
const FAR: f64 = 25.0;
const MINOR: f64 = 0.1;
/// Other samples that are asked for at the best point where an answer is not finite.
const DOUBTS: u64 = 32;
/// A table is read in exact passes once so many times its rows were drawn.
const EPOCHS: f64 = 3.0;
/// Where the walk leads, it goes on by this share of all samples before the next check.
const LEG: f64 = 0.5;
/// Where there is a term, the best point is moved by a prox-gradient step of this share of gamma.
const SETTLE: f64 = 0.125;

/// The section of a checkpoint that a leg has, where a round was put aside.
const LEG_SECTION: &str = "auto-leg";

impl Walk for Auto {
    /// One round.
    fn advance(&mut self, gate: &mut Gate) -> Result<Advance, Halt> {
        if let Some(stop) = self.state.ended {
            return Ok(Advance::Stop(stop));
        }
        // Under another budget the round is another one.
        if let Some(leg) = self.leg.take_if(|leg| leg.done.budget != gate.budget()) {
            leg.done.count(gate);
        }
        let before = gate.ledger().samples();
        let (mut round, mut leg) = (self.clone(), None);
        let done = gate.keep(|gate| {
            let held = gate.held();
            let vouch = (self.vouch_samples(gate) as u128).min(gate.left());
            gate.hold(held + vouch);
            let done = round.round(gate);
            gate.hold(held);
            leg = round.leg.take();
            match done {
                Ok(()) => round.look_back(gate),
                // What is left is too little for a round: the last point that passed is the answer.
                Err(Halt::OverBudget { .. }) => {
                    round = Self { leg: None, ..self.clone() };
                    round.state.ended = Some(Stop::PlannedEnd);
                    round.look_back(gate)
                }
                // Not a sign of distance: the run ends where it was.
                Err(Halt::Mixed(mixed)) => {
                    round = Self { leg: None, ..self.clone() };
                    round.state.ended = Some(Stop::NotFinite(Mixed { step: self.state.round, ..mixed }));
                    Ok(())
                }
                other => other,
            }
        });
        if let Err(halt) = done {
            // A round is put aside whole: the gate and the leg have what it was answered.
            self.leg = leg.filter(|_| halt.drops_work());
            return if let Halt::Paused = halt { Ok(Advance::Paused) } else { Err(halt) };
        }
        *self = round;
        if let Some(stop) = self.state.ended {
            return Ok(Advance::Stop(stop));
        }
        let n = u64::try_from(gate.ledger().samples() - before).unwrap_or(u64::MAX);
        let Progress { round: epoch, distance2, .. } = self.state;
        Ok(Advance::Step(Record { epoch, t: 0, kind: Kind::Fresh, n, distance2 }))
    }

    fn view(&self) -> View<'_> {
        let mut view = View::new(self.state.round, &self.start, &self.x);
        view.ended = self.state.ended;
        view.under_way = self.leg.as_ref().map_or(0, |leg| leg.done.samples);
        view
    }

    fn save<'a>(&'a self, to: &mut Saver<'a>) {
        let Self { state, start, x, known, prior, memory, walk, leg } = self;
        let sure: Vec<bool> = memory.pairs.iter().map(|pair| pair.sure).collect();
        let vectors = [start, x, prior].into_iter().map(Vec::as_slice).chain(walk.vectors());
        let pairs = memory.pairs.iter().flat_map(|pair| [pair.step.as_slice(), pair.change.as_slice()]);
        let gradients = known.gradients.iter().map(Vec::as_slice);
        let data = (state, sure, &known.blocks, known.rows, &known.losses, &walk.numbers);
        to.put(Self::SECTION, &data, vectors.chain(pairs).chain(gradients));
        if let Some(Leg { done, walk }) = leg {
            to.put(LEG_SECTION, &(done, &walk.numbers), walk.vectors());
        }
    }
}

impl Auto {
    /// The name of its section in a checkpoint.
    pub const SECTION: &'static str = "auto";

    /// A run from `start`. With a target for |grad f|, no sample is drawn to tell gradients apart that are far below it.
    pub fn start(gate: &Gate, start: &[f64], target: Option<f64>) -> Result<Self, StartError> {
        // The same demands as every walk makes of a start.
        State::start(gate, start, Output::Last)?;
        let scale = 1e-3 * (1.0 + norm(start));
        let sizes = Sizes::of(gate.budget(), gate.round_cost());
        Ok(Self {
            state: Progress {
                target: target.unwrap_or(0.0),
                round: 0,
                next: 0,
                radius: None,
                first: scale,
                scale,
                growth: 0.0,
                prior_error: None,
                refused: 0,
                lead: None,
                by_stages: 0.0,
                by_walk: 0.0,
                rests: 0.0,
                last: false,
                distance2: 0.0,
                ended: None,
                gamma: None,
            },
            start: start.to_vec(),
            x: start.to_vec(),
            known: Eval::default(),
            prior: Vec::new(),
            memory: Memory::default(),
            walk: Average::start(start, sizes),
            leg: None,
        })
    }

    /// The run that a checkpoint was taken of, from where it was taken, bit for bit.
    pub fn resume(gate: &Gate, checkpoint: &mut Checkpoint) -> Result<Self, CheckpointError> {
        type Data = (Progress, Vec<bool>, Vec<Block>, Option<u64>, Vec<f64>, Numbers);
        let ((state, sure, blocks, rows, losses, numbers), vectors): (Data, _) =
            checkpoint.take(Self::SECTION)?;
        let dim = gate.about().dim;
        let evals = losses.len();
        let fits = vectors.len() == 7 + 2 * sure.len() + evals
            && vectors.iter().enumerate().all(|(i, v)| v.len() == dim || (i == 2 && v.is_empty()));
        if !fits {
            return Err(CheckpointError::damaged("the vectors of its run do not fit the problem"));
        }
        let mut vectors = vectors.into_iter();
        let mut take = || vectors.next().unwrap_or_default();
        let (start, x, prior) = (take(), take(), take());
        let walk = Average { numbers, z: take(), slow: take(), fast: take(), squares: take() };
        let pairs = sure.into_iter().map(|sure| Pair { step: take(), change: take(), sure }).collect();
        let known = Eval { blocks, rows, gradients: (0..evals).map(|_| take()).collect(), losses };
        let counters = [state.round, state.next, walk.numbers.step, u64::from(state.refused) << 32];
        if !known.fits() || counters.iter().any(|&n| n > MAX_COUNT) {
            return Err(CheckpointError::damaged("the numbers of its run do not fit together"));
        }
        let leg = if checkpoint.has(LEG_SECTION) { Some(Self::leg_of(dim, checkpoint)?) } else { None };
        Ok(Self { state, start, x, known, prior, memory: Memory { pairs }, walk, leg })
    }

    fn leg_of(dim: usize, checkpoint: &mut Checkpoint) -> Result<Leg, CheckpointError> {
        let ((done, numbers), vectors): ((Done, Numbers), Vec<Vec<f64>>) = checkpoint.take(LEG_SECTION)?;
        let most = u128::from(MAX_COUNT);
        let counts = [done.samples, done.evaluations, done.steps.into(), numbers.step.into()];
        match <[_; 4]>::try_from(vectors) {
            Ok(vectors) if vectors.iter().all(|v| v.len() == dim) && counts.iter().all(|n| *n <= most) => {
                let [z, slow, fast, squares] = vectors;
                Ok(Leg { done, walk: Average { numbers, z, slow, fast, squares } })
            }
            _ => Err(CheckpointError::damaged("the leg of its walk does not fit the problem")),
        }
    }

    /// The target of the run that a checkpoint was taken of.
    pub(crate) fn target_of(checkpoint: &Checkpoint) -> Result<Option<f64>, CheckpointError> {
        let (state, ..): (Progress, IgnoredAny, IgnoredAny, IgnoredAny, IgnoredAny, IgnoredAny) =
            checkpoint.peek(Self::SECTION)?;
        Ok(Some(state.target).filter(|target| *target > 0.0))
    }

    /// A turn of one of the ways.
    fn round(&mut self, gate: &mut Gate) -> Result<(), Halt> {
        let begun = gate.ledger().samples();
        let way = self.turn(gate);
        match way {
            Way::Walk => self.leg(gate)?,
            Way::Stages => self.stage(gate)?,
        }
        let drawn = (gate.ledger().samples() - begun) as f64;
        match way {
            Way::Walk => self.state.by_walk += drawn,
            Way::Stages => self.state.by_stages += drawn,
        }
        self.state.round += 1;
        self.state.distance2 = squared_distance(&self.x, &self.start);
        if self.state.last && self.state.ended.is_none() {
            self.state.ended = Some(Stop::PlannedEnd);
        }
        Ok(())
    }

    /// What there is to say after a round: that the oracle failed at a point where it had not, that f has no minimum as far as one can see, and at the
    /// end, whether the point is better than the start.
    fn look_back(&mut self, gate: &mut Gate) -> Result<(), Halt> {
        if gate.suspect().is_some_and(|point| point == self.x || point == self.start) {
            let at = self.x.clone();
            if let Some(mixed) = gate.blame(&at, DOUBTS, self.state.round)? {
                self.state.ended = Some(Stop::NotFinite(mixed));
                return Ok(());
            }
        }
        if let Some(stop) = self.lost(gate)? {
            self.state.ended = Some(stop);
            return Ok(());
        }
        if self.state.ended.is_some() { self.vouch(gate) } else { Ok(()) }
    }

    /// Whether steps and stages are wide, because a round has a price and there are samples to spare.
    fn is_wide(&self) -> bool {
        self.walk.numbers.sizes.round_cost > 0
    }

    /// Everything that was drawn.
    fn drawn(&self) -> f64 {
        self.state.by_stages + self.state.by_walk
    }

    /// Whose turn it is: the one that leads, unless the other has had less than its share. Exact passes need no walk.
    fn turn(&self, gate: &Gate) -> Way {
        let Progress { lead, by_stages, rests, .. } = self.state;
        let all = self.drawn();
        // Quasi-Newton steps know nothing of a term.
        if gate.term().is_some() {
            return Way::Walk;
        }
        if self.known.is_exact() || all >= EPOCHS * Self::rows(gate) {
            return Way::Stages;
        }
        if self.walk.numbers.sizes.is_early(all) && self.state.round > 0 {
            return if all >= rests { Way::Stages } else { Way::Walk };
        }
        let share = match lead {
            Some(Way::Stages) => 1.0 - MINOR,
            _ => SHARE,
        };
        if by_stages < share * all && all >= rests { Way::Stages } else { Way::Walk }
    }

    /// A leg of the walk, and the check of its averages.
    fn leg(&mut self, gate: &mut Gate) -> Result<(), Halt> {
        let all = self.drawn();
        let left = gate.left() as f64;
        let leads = self.state.lead != Some(Way::Stages);
        if self.is_wide() {
            self.walk.numbers.sizes = self.walk.numbers.sizes.widened(gate.budget(), all);
        }
        let wanted =
            (if leads { LEG } else { MINOR } * all).max(self.walk.numbers.sizes.leg).min(Self::rows(gate));
        // A last leg that is a little longer is better than one that is very short. A check takes four times its samples at most.
        let most = (1.0 - 5.0 * LEG_CHECK) * left;
        let samples = if 1.5 * wanted > most { most } else { wanted };
        self.state.last |= samples == most;
        if self.state.round == 0 {
            let blocks = fresh(&mut self.state.next, self.walk.numbers.sizes.check);
            let gamma = self.walk.probe(gate, &self.start, &blocks)?;
            self.state.gamma = gate.term().map(|_| gate.gamma().unwrap_or(gamma));
        }
        self.walk.go(gate, &self.start, &mut self.state.next, samples, &mut self.leg)?;
        let blocks = fresh(
            &mut self.state.next,
            (LEG_CHECK * samples).max(self.walk.numbers.sizes.check).min(0.2 * gate.left() as f64),
        );
        let (slow, fast) = (self.walk.slow.clone(), self.walk.fast.clone());
        let (here, mut found) = self.compare_all(gate, vec![slow, fast], &blocks)?;
        let (Some(fast), Some(slow)) = (found.pop(), found.pop()) else { return Ok(()) };
        // Within the noise of the check the slow average is the better bet: its error falls with all of its samples.
        let fast_wins = slow.verdict == Verdict::Worse || fast.squared + fast.noise() < slow.squared;
        let found = if fast_wins { fast } else { slow };
        let ours =
            here.as_ref().map_or_else(|| self.squared(gate), |here| self.stationarity(gate, &self.x, here));
        let far = FAR * (ours.max(0.0) + found.noise()) < found.squared;
        self.state.lead = Some(if far { Way::Stages } else { Way::Walk });
        if found.squared < ours + found.noise() && found.verdict != Verdict::Worse {
            self.state.scale = self.state.scale.max(squared_distance(&found.x, &self.x).sqrt());
            self.state.prior_error = None;
            self.state.refused = 0;
            (self.x, self.known) = (found.x, found.eval);
            self.settle(gate);
        }
        Ok(())
    }

    /// A short prox-gradient step from the best point, where there is a term: means of points of which most are at a bound, or at zero, are only near it.
    /// The step is so short that the noise of the check moves the point by less than its own error.
    fn settle(&mut self, gate: &Gate) {
        if let (Some(term), Some(gamma)) = (gate.term(), self.state.gamma) {
            self.x =
                Mapping { term: &**term, gamma: SETTLE * gamma, x: &self.x }.step(&self.known.gradient());
        }
    }

    /// |grad f(x)|^2, without bias, from what samples say there; with a term, the square of what a certificate would bound.
    fn stationarity(&self, gate: &Gate, x: &[f64], eval: &Eval) -> f64 {
        match (gate.term(), self.state.gamma) {
            (Some(term), Some(gamma)) => {
                let short = Mapping { term: &**term, gamma: SETTLE * gamma, x }.step(&eval.gradient());
                let mapping = Mapping { term: &**term, gamma, x: &short };
                mapping.norm(&eval.gradient()).powi(2) - eval.variance() / eval.samples()
            }
            _ => unbiased(eval),
        }
    }

    /// A stage from the best point, if its gradient stands out, and its check.
    fn stage(&mut self, gate: &mut Gate) -> Result<(), Halt> {
        let (gradient, error, clear) = self.clear_gradient(gate)?;
        let length = norm(&gradient);
        if !length.is_finite() {
            self.state.ended = Some(Stop::Diverged(Divergence::Gradient { step: self.state.round }));
            return Ok(());
        }
        let done = length == 0.0 || (self.known.is_exact() && length <= 0.5 * self.state.target);
        if done || self.state.refused > MOST_REFUSED {
            self.state.ended = Some(Stop::Settled);
            return Ok(());
        }
        if !clear {
            self.state.rests = if self.is_wide() { WIDE_RESTS } else { RESTS } * self.drawn();
            self.state.lead = Some(Way::Walk);
            return Ok(());
        }
        let reached = self.descend(gate, &gradient, error)?;
        self.judge(gate, reached, &gradient, error)
    }

    /// What a check of a stage takes at each point.
    fn check_samples(&self, gate: &Gate) -> f64 {
        let most = 0.2 * gate.left() as f64;
        (CHECK * self.known.samples()).max(self.walk.numbers.sizes.check).min(most)
    }

    /// The way down from the anchor; enough is left for the check.
    fn descend(&mut self, gate: &mut Gate, gradient: &[f64], error: f64) -> Result<Reached, Halt> {
        let before = gate.held();
        gate.hold(before + (4.4 * self.check_samples(gate)) as u128);
        let away = norm(&minus(&self.x, &self.start));
        // Where rounds have a price stages may be ahead of the walk: as far as larger checks confirmed it.
        let seen = if self.is_wide() { self.walk.numbers.radius.max(away) } else { self.walk.numbers.radius };
        let beyond = BEYOND * seen - away;
        let near = if self.known.is_exact() { f64::INFINITY } else { beyond.max(0.0) };
        let radius = self.state.radius.unwrap_or(f64::INFINITY).min(FARTHER * self.state.scale).min(near);
        let units = self.walk.units();
        let stage = Stage {
            units: &units,
            anchor: &self.x,
            known: &self.known,
            gradient,
            error,
            radius,
            first: self.state.first.max(1e-4 * radius.min(self.state.scale)),
            growth: self.state.growth,
            left: gate.left() as f64,
            is_wide: self.is_wide(),
        };
        let reached = stage.run(gate, &mut self.state.next, &mut self.memory);
        gate.hold(before);
        let reached = reached?;
        self.memory.keep_sure();
        (self.state.first, self.state.growth) = (reached.length, reached.growth);
        Ok(reached)
    }

    /// The rows of the table, if it is one.
    fn rows(gate: &Gate) -> f64 {
        match gate.about().source {
            Source::Table { rows } => rows as f64,
            Source::Stream | Source::Formula => f64::INFINITY,
        }
    }

    /// The anchor's gradient from its own samples, and the variance of its error.
    fn gradient(&self) -> (Vec<f64>, f64) {
        let error = if self.known.is_exact() { 0.0 } else { self.known.variance() / self.known.samples() };
        (self.known.gradient(), error)
    }

    /// |grad f|^2 of the best point, without bias, from its own samples.
    fn squared(&self, gate: &Gate) -> f64 {
        let (gradient, error) = self.gradient();
        if self.known.gradients.is_empty() {
            f64::INFINITY
        } else if gate.term().is_some() {
            self.stationarity(gate, &self.x, &self.known)
        } else {
            squared_norm(&gradient) - error
        }
    }

    /// The norm test: the anchor's gradient, pooled with what the model said of it, the variance of its error, and whether it stands out.
    /// Stages that do not lead spend no more than their share on it.
    fn clear_gradient(&mut self, gate: &mut Gate) -> Result<(Vec<f64>, f64, bool), Halt> {
        let rows = Self::rows(gate);
        let all = self.drawn();
        if all >= EPOCHS * rows && !self.known.is_exact() {
            self.turn_exact(gate)?;
        } else if self.known.gradients.is_empty() {
            self.draw(gate, self.walk.numbers.sizes.check, rows)?;
        }
        let rules = match self.is_wide() {
            false => RULES,
            true if self.state.target > 0.0 && self.walk.numbers.sizes.is_early(all) => f64::INFINITY,
            true => WIDE_RULES,
        };
        let allowed = (rules * all).max(self.walk.numbers.sizes.check);
        loop {
            let (own, error) = self.gradient();
            if self.known.is_exact() {
                return Ok((own, 0.0, true));
            }
            let samples = self.known.samples();
            // Weighed by inverse variances.
            let weight = self.state.prior_error.map_or(0.0, |prior| error / (error + prior));
            let (gradient, error) = if weight > 0.0 {
                (along(&own, weight, &minus(&self.prior, &own)), error * (1.0 - weight))
            } else {
                (own, error)
            };
            let squared = squared_norm(&gradient);
            let fine = error <= self.state.target.powi(2) / 9.0 && error > 0.0;
            if squared >= CLEAR * error || fine || !squared.is_finite() {
                return Ok((gradient, error, true));
            }
            let left = gate.left() as f64;
            if 2.0 * samples > allowed || STAGE * samples > left {
                return Ok((gradient, error, false));
            }
            self.draw(gate, samples, rows)?;
        }
    }

    /// Goes on with all rows, from the best point or the start, whichever is lower: exact steps never lead up, so that the run ends no higher
    /// than it began.
    fn turn_exact(&mut self, gate: &mut Gate) -> Result<(), Halt> {
        self.known = Eval::exact(gate, &self.x)?;
        if gate.about().losses && self.x != self.start {
            let start = Eval::exact(gate, &self.start)?;
            let (here, there) = (self.known.losses[0], start.losses[0]);
            if here > there || here.is_nan() {
                (self.x, self.known) = (self.start.clone(), start);
                self.memory.clear();
            }
        }
        Ok(())
    }

    /// More samples at the anchor; all rows, as soon as half of them would be drawn.
    fn draw(&mut self, gate: &mut Gate, samples: f64, rows: f64) -> Result<(), Halt> {
        if self.known.samples() + samples >= rows / 2.0 {
            self.turn_exact(gate)?;
        } else {
            let blocks = fresh(&mut self.state.next, samples);
            let more = Eval::at(gate, &self.x, &blocks)?;
            self.known.join(more);
        }
        Ok(())
    }

    /// Accepts or refuses what a stage found, on fresh samples.
    fn judge(&mut self, gate: &mut Gate, reached: Reached, gradient: &[f64], error: f64) -> Result<(), Halt> {
        if let Reached { exact: Some(eval), x, .. } = reached {
            self.state.refused = if x == self.x { self.state.refused + 1 } else { 0 };
            self.state.lead = Some(Way::Stages);
            (self.x, self.known) = (x, eval);
            return Ok(());
        }
        let moved = squared_distance(&reached.x, &self.x).sqrt();
        if moved == 0.0 {
            return self.refuse(gate, moved);
        }
        let samples = self.check_samples(gate);
        let blocks = fresh(&mut self.state.next, samples);
        let (_, mut found) = self.compare_all(gate, vec![reached.x], &blocks)?;
        let Some(mut found) = found.pop() else { return Ok(()) };
        if found.verdict == Verdict::Open
            && found.squared < squared_norm(gradient) - error
            && found.mean <= 0.5 * found.deviation
            && !found.lopsided
        {
            found.verdict = Verdict::Better;
        }
        if found.verdict != Verdict::Better {
            return self.refuse(gate, moved);
        }
        self.state.prior_error = (!self.known.is_exact()).then_some(TRUST * reached.error);
        self.state.refused = 0;
        self.state.scale = self.state.scale.max(moved);
        self.state.radius = self.state.radius.map(|radius| radius.max(SHRINK * SHRINK * moved));
        (self.prior, self.x, self.known) = (reached.gradient, found.x, found.eval);
        Ok(())
    }

    /// Whether the last look must prove that the point is lower than the start: where a few samples, or a few coordinates, make up nearly all
    /// of the noise, a point that is higher may pass any other look.
    fn needs_proof(&self) -> bool {
        self.walk.is_heavy() || self.walk.is_uneven() || self.is_wide()
    }

    /// What the last look at the start may take: where gradients have heavy tails, enough to see some of their rarest events.
    fn vouch_samples(&self, gate: &Gate) -> f64 {
        let Some(budget) = gate.budget() else { return 0.0 };
        let share = if self.needs_proof() { HEAVY_VOUCH } else { VOUCH };
        share * budget as f64
    }

    /// Shrinks the radius and doubles the anchor's samples.
    fn refuse(&mut self, gate: &mut Gate, moved: f64) -> Result<(), Halt> {
        self.state.refused += 1;
        if moved > 0.0 {
            let radius = moved / SHRINK;
            self.state.radius = Some(radius);
            self.state.first = self.state.first.min(radius / 4.0);
            self.memory.clear();
        }
        if !self.known.is_exact() && !self.state.last {
            let samples = self.known.samples().min(REDRAWN * gate.left() as f64);
            self.draw(gate, samples, Self::rows(gate))?;
        }
        Ok(())
    }
}
