//! `auto`: a method without constants.
//!
//! Each round starts from an anchor, the last point that passed a check on fresh samples:
//!
//! 1. **Norm test.** Samples at the anchor are doubled until its gradient stands out from its own measured noise.
//! 2. **Stage.** Quasi-Newton steps on shared samples lead down to where that noise rules (see `stage`). The noise of paired
//!    differences, which grows with the distance, is measured on the way: it limits how far the round trusts itself and pulls it
//!    towards the anchor.
//! 3. **Long walk.** Where noise rules, small steps from the start run beside the stages, and their average competes (see `average`).
//! 4. **Check.** Fresh samples, the same at both ends, compare the losses (without losses: the slope along the way between them). A point
//!    that they call worse is refused, the radius shrinks and the samples double.
//!
//! On a table the samples become all rows as soon as that is cheaper, and the method is L-BFGS with exact passes. What is handed out is
//! always the last point that passed. `docs/auto.md` has what it is good and bad at.

mod average;
mod blocks;
mod memory;
mod stage;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use self::average::{Average, Numbers};
use self::blocks::{Block, Eval, fresh, norm};
use self::memory::{Memory, Pair};
use self::stage::{Reached, Stage};
use crate::checkpoint::{Checkpoint, CheckpointError, Saver};
use crate::draws::{Address, Role};
use crate::estimator::Kind;
use crate::gate::{Gate, Halt};
use crate::kernels::{along, dot, minus, squared_distance, squared_norm};
use crate::oracle::Source;
use crate::schedule::Output;
use crate::state::{StartError, State};
use crate::stop::{Divergence, Stop};
use crate::walk::{Advance, Record, View, Walk};

/// A run without constants.
///
/// ```
/// use pasta_opt::auto::Auto;
/// use pasta_opt::prelude::*;
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
    /// The anchor: the last point that passed a check.
    x: Vec<f64>,
    /// What is known of the anchor's samples.
    known: Eval,
    /// The anchor's gradient as the model saw it before.
    prior: Vec<f64>,
    memory: Memory,
    /// The long walk beside the rounds, once noise rules.
    average: Option<Average>,
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
    /// Which of the two ways did better at the last check of both, and what each has drawn.
    lead: Option<Lead>,
    by_stages: f64,
    by_average: f64,
    /// Whether the last round has begun.
    last: bool,
    distance2: f64,
    ended: Option<Stop>,
}

/// The two ways down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Lead {
    Stages,
    Average,
}

/// Samples at the start, before anything is known.
const FIRST: f64 = 64.0;
/// The square of a gradient that stands out is so many times the variance of its error.
const CLEAR: f64 = 2.0;
/// A check takes this share of the anchor's samples, and at least so many.
const CHECK: f64 = 0.25;
const LEAST_CHECK: f64 = 64.0;
/// A refused point shrinks the radius by this factor; an accepted one lets it grow by its square.
const SHRINK: f64 = 4.0;
/// A prior is trusted a little less than its measured error says.
const TRUST: f64 = 1.5;
/// No round goes farther than this many times the longest so far: what few samples did not show cannot throw a run far.
const FARTHER: f64 = 32.0;
/// A last look at the start takes this share of a budget.
const VOUCH: f64 = 0.05;
/// So many refusals in a row end a run.
const MOST_REFUSED: u32 = 40;
/// A round costs about so many times the samples of its anchor; the last one takes this share of what is left for them.
const ROUND: f64 = 4.0;
const LAST: f64 = 0.3;
/// The long walk joins when a gradient takes so many samples to stand out.
const NOISE_RULES: f64 = 512.0;
/// The way that does not lead gets this share of all samples.
const MINOR: f64 = 0.1;
/// Where the long walk leads, it goes on by this share of all samples before the next check, which takes that share of its leg.
const LEG: f64 = 0.5;
const LEG_CHECK: f64 = 0.04;

impl Walk for Auto {
    /// One round.
    fn advance(&mut self, gate: &mut Gate) -> Result<Advance, Halt> {
        if let Some(stop) = self.state.ended {
            return Ok(Advance::Stop(stop));
        }
        let before = gate.ledger().clone();
        let mut round = self.clone();
        let held = gate.held();
        let vouch = gate.budget().map_or(0, |budget| (VOUCH * budget as f64) as u128).min(gate.left());
        gate.hold(held + vouch);
        let done = round.round(gate);
        gate.hold(held);
        let done = match done {
            Ok(()) if round.state.ended.is_some() => round.vouch(gate),
            // What is left is too little for a round: the last point that passed is the answer.
            Err(Halt::OverBudget { .. }) => {
                round = self.clone();
                round.state.ended = Some(Stop::PlannedEnd);
                round.vouch(gate)
            }
            other => other,
        };
        if let Err(halt) = done {
            // A round is dropped whole: its draws have addresses.
            if halt.drops_work() {
                gate.rewind(before);
            }
            return Err(halt);
        }
        *self = round;
        if let Some(stop) = self.state.ended {
            return Ok(Advance::Stop(stop));
        }
        let n = u64::try_from(gate.ledger().samples() - before.samples()).unwrap_or(u64::MAX);
        let Progress { round: epoch, distance2, .. } = self.state;
        Ok(Advance::Step(Record { epoch, t: 0, kind: Kind::Fresh, n, distance2 }))
    }

    fn view(&self) -> View<'_> {
        let mut view = View::new(self.state.round, &self.start, &self.x);
        view.ended = self.state.ended;
        view
    }

    fn save<'a>(&'a self, to: &mut Saver<'a>) {
        let Self { state, start, x, known, prior, memory, average } = self;
        let sure: Vec<bool> = memory.pairs.iter().map(|pair| pair.sure).collect();
        let averaged = average.iter().flat_map(|average| [&average.z, &average.mean]);
        let vectors = [start, x, prior].into_iter().chain(averaged).map(Vec::as_slice);
        let pairs = memory.pairs.iter().flat_map(|pair| [pair.step.as_slice(), pair.change.as_slice()]);
        let gradients = known.gradients.iter().map(Vec::as_slice);
        let numbers = average.as_ref().map(|average| &average.numbers);
        let data = (state, sure, &known.blocks, known.rows, &known.losses, numbers);
        to.put(Self::SECTION, &data, vectors.chain(pairs).chain(gradients));
    }
}

impl Auto {
    /// The name of its section in a checkpoint.
    pub const SECTION: &'static str = "auto";

    /// A run from `start`. With a target for |grad f|, no sample is drawn to tell gradients apart that are far below it.
    pub fn start(gate: &Gate, start: &[f64], target: Option<f64>) -> Result<Self, StartError> {
        // The same demands as every walk makes of a start.
        State::start(gate.about(), start, Output::Last)?;
        let scale = 1e-3 * (1.0 + norm(start));
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
                by_average: 0.0,
                last: false,
                distance2: 0.0,
                ended: None,
            },
            start: start.to_vec(),
            x: start.to_vec(),
            known: Eval::default(),
            prior: Vec::new(),
            memory: Memory::default(),
            average: None,
        })
    }

    /// The run that a checkpoint was taken of, from where it was taken, bit for bit.
    pub fn resume(gate: &Gate, checkpoint: &mut Checkpoint) -> Result<Self, CheckpointError> {
        type Data = (Progress, Vec<bool>, Vec<Block>, Option<u64>, Vec<f64>, Option<Numbers>);
        let ((state, sure, blocks, rows, losses, numbers), vectors): (Data, _) =
            checkpoint.take(Self::SECTION)?;
        let dim = gate.about().dim;
        let evals = losses.len();
        let fits = vectors.len() == 3 + 2 * (sure.len() + usize::from(numbers.is_some())) + evals
            && vectors.iter().enumerate().all(|(i, v)| v.len() == dim || (i == 2 && v.is_empty()));
        if !fits {
            return Err(CheckpointError::damaged("the vectors of its run do not fit the problem"));
        }
        let mut vectors = vectors.into_iter();
        let mut take = || vectors.next().unwrap_or_default();
        let (start, x, prior) = (take(), take(), take());
        let average = numbers.map(|numbers| Average { numbers, z: take(), mean: take() });
        let pairs = sure.into_iter().map(|sure| Pair { step: take(), change: take(), sure }).collect();
        let known = Eval { blocks, rows, gradients: (0..evals).map(|_| take()).collect(), losses };
        Ok(Self { state, start, x, known, prior, memory: Memory { pairs }, average })
    }

    /// The target of the run that a checkpoint was taken of.
    pub(crate) fn target_of(checkpoint: &Checkpoint) -> Result<Option<f64>, CheckpointError> {
        let (state, ..): (Progress, IgnoredAny, IgnoredAny, IgnoredAny, IgnoredAny, IgnoredAny) =
            checkpoint.peek(Self::SECTION)?;
        Ok(Some(state.target).filter(|target| *target > 0.0))
    }

    fn round(&mut self, gate: &mut Gate) -> Result<(), Halt> {
        let begun = gate.ledger().samples();
        let stages = !self.walks() || self.has_turn(Lead::Stages);
        let (gradient, error) = if stages { self.clear_gradient(gate)? } else { self.gradient() };
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
        if self.average.is_none() && self.known.samples() >= NOISE_RULES && !self.known.is_exact() {
            self.average = Some(Average::start(&self.start, self.state.scale));
        }
        let reached = if stages { Some(self.stage(gate, &gradient, error)?) } else { None };
        let drawn = (gate.ledger().samples() - begun) as f64;
        self.state.by_stages += drawn;
        let leg = if self.walks() { self.leg(gate, drawn)? } else { 0.0 };
        self.state.by_average += leg;
        self.judge(gate, reached, leg, &gradient, error)?;
        self.state.round += 1;
        self.state.distance2 = squared_distance(&self.x, &self.start);
        if self.state.last && self.state.ended.is_none() {
            self.state.ended = Some(Stop::PlannedEnd);
        }
        Ok(())
    }

    /// Whether the long walk goes on in this round. Exact passes need none.
    fn walks(&self) -> bool {
        self.average.is_some() && self.has_turn(Lead::Average) && !self.known.is_exact()
    }

    /// Whether a way may draw in this round: the one that leads always, the other as long as it has had its share.
    fn has_turn(&self, way: Lead) -> bool {
        let Progress { lead, by_stages, by_average, .. } = self.state;
        let own = match way {
            Lead::Stages => by_stages,
            Lead::Average => by_average,
        };
        lead.is_none_or(|lead| lead == way) || own <= MINOR * (by_stages + by_average)
    }

    /// What a check takes at each candidate; as much again goes to the anchor, or to the way between.
    fn check_samples(&self, gate: &Gate, leg: f64) -> f64 {
        let most = 0.2 * gate.left() as f64;
        (CHECK * self.known.samples()).max(LEG_CHECK * leg).max(LEAST_CHECK).min(most)
    }

    /// The way down from the anchor; enough is left for the check.
    fn stage(&mut self, gate: &mut Gate, gradient: &[f64], error: f64) -> Result<Reached, Halt> {
        let before = gate.held();
        gate.hold(before + (4.4 * self.check_samples(gate, 0.0)) as u128);
        let radius = self.state.radius.unwrap_or(f64::INFINITY).min(FARTHER * self.state.scale);
        let stage = Stage {
            anchor: &self.x,
            known: &self.known,
            gradient,
            error,
            radius,
            first: self.state.first.max(1e-4 * radius.min(self.state.scale)),
            growth: self.state.growth,
            left: gate.left() as f64,
        };
        let reached = stage.run(gate, &mut self.state.next, &mut self.memory);
        gate.hold(before);
        let reached = reached?;
        self.memory.keep_sure();
        (self.state.first, self.state.growth) = (reached.length, reached.growth);
        Ok(reached)
    }

    /// A leg of the long walk: beside a stage as long as that, alone by a share of all; what it drew.
    fn leg(&mut self, gate: &mut Gate, beside: f64) -> Result<f64, Halt> {
        let Some(average) = &mut self.average else { return Ok(0.0) };
        let all = self.state.by_stages + self.state.by_average;
        let left = gate.left() as f64;
        let wanted = if beside > 0.0 { beside } else { LEG * all };
        // A last leg that is a little longer is better than one that is very short.
        let most = (1.0 - 5.0 * LEG_CHECK) * left;
        let samples = if 1.5 * wanted > most { most } else { wanted };
        self.state.last |= samples == most;
        average.go(gate, &self.start, &mut self.state.next, samples)?;
        Ok(samples)
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

    /// The norm test: the anchor's gradient, pooled with what the model said of it, and the variance of its error.
    fn clear_gradient(&mut self, gate: &mut Gate) -> Result<(Vec<f64>, f64), Halt> {
        let rows = Self::rows(gate);
        if self.known.gradients.is_empty() {
            self.draw(gate, FIRST, rows)?;
        }
        loop {
            let (own, error) = self.gradient();
            if self.known.is_exact() {
                return Ok((own, 0.0));
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
            if squared >= CLEAR * error || fine || self.state.last || !squared.is_finite() {
                return Ok((gradient, error));
            }
            let left = gate.left() as f64;
            if ROUND * samples > left {
                self.state.last = true;
                if LAST * left < 16.0 {
                    return Ok((gradient, error));
                }
                self.draw(gate, LAST * left, rows)?;
            } else {
                self.draw(gate, samples, rows)?;
            }
        }
    }

    /// More samples at the anchor; all rows, as soon as half of them would be drawn.
    fn draw(&mut self, gate: &mut Gate, samples: f64, rows: f64) -> Result<(), Halt> {
        if self.known.samples() + samples >= rows / 2.0 {
            self.known = Eval::exact(gate, &self.x)?;
        } else {
            let blocks = fresh(&mut self.state.next, samples);
            let more = Eval::at(gate, &self.x, &blocks)?;
            self.known.join(more);
        }
        Ok(())
    }

    /// Accepts or refuses what was found, on fresh samples.
    fn judge(
        &mut self,
        gate: &mut Gate,
        reached: Option<Reached>,
        leg: f64,
        gradient: &[f64],
        error: f64,
    ) -> Result<(), Halt> {
        if let Some(Reached { exact: Some(eval), x, .. }) = reached {
            self.state.refused = if x == self.x { self.state.refused + 1 } else { 0 };
            (self.x, self.known) = (x, eval);
            return Ok(());
        }
        let samples = self.check_samples(gate, leg);
        let blocks = fresh(&mut self.state.next, samples);
        let moved = reached.as_ref().map_or(0.0, |reached| squared_distance(&reached.x, &self.x).sqrt());
        let ours = squared_norm(gradient) - error;
        let by_stage = match &reached {
            Some(reached) if moved > 0.0 => Some(self.compare(gate, &reached.x, &blocks, ours)?),
            _ => None,
        };
        let by_average = match &self.average {
            Some(average) if leg > 0.0 => Some(self.compare(gate, &average.mean, &blocks, ours)?),
            _ => None,
        };
        let worse = by_average.as_ref().is_some_and(|found| found.verdict == Verdict::Worse);
        let by_stage = by_stage.filter(|found| found.verdict == Verdict::Better);
        let by_average =
            by_average.filter(|found| found.verdict == Verdict::Better || (!worse && found.squared < ours));
        let squared = |found: &Option<Found>| found.as_ref().map_or(f64::INFINITY, |found| found.squared);
        // Within the noise of the check the long walk is the better bet: its error falls with all of its samples.
        let noise = by_average.as_ref().map_or(0.0, |found| found.eval.variance() / found.eval.samples());
        let average_wins = squared(&by_average) < squared(&by_stage) + noise;
        if reached.is_some() && leg > 0.0 {
            self.state.lead = Some(if average_wins { Lead::Average } else { Lead::Stages });
        }
        match (by_stage, by_average, reached) {
            (_, Some(Found { eval, .. }), _) if average_wins => {
                self.x = self.average.as_ref().map_or_else(Vec::new, |average| average.mean.clone());
                self.known = eval;
                self.state.prior_error = None;
                self.state.refused = 0;
            }
            (Some(Found { eval, .. }), _, Some(reached)) => {
                self.state.prior_error = (!self.known.is_exact()).then_some(TRUST * reached.error);
                (self.prior, self.x, self.known) = (reached.gradient, reached.x, eval);
                self.state.refused = 0;
                self.state.scale = self.state.scale.max(moved);
                self.state.radius = self.state.radius.map(|radius| radius.max(SHRINK * SHRINK * moved));
            }
            // Of a long walk that is not called worse, more may come.
            (_, _, None) => {
                if worse {
                    self.state.lead = None;
                }
            }
            (None, _, Some(_)) => self.refuse(gate, moved)?,
        }
        Ok(())
    }

    /// Compares the point with the start once more, on fresh samples, and takes back what they call worse.
    fn vouch(&mut self, gate: &mut Gate) -> Result<(), Halt> {
        let samples = (0.5 * VOUCH * gate.budget().unwrap_or(0) as f64).min(0.45 * gate.left() as f64);
        if self.x == self.start || self.known.is_exact() || samples < LEAST_CHECK {
            return Ok(());
        }
        let blocks = fresh(&mut self.state.next, samples);
        let point = std::mem::replace(&mut self.x, self.start.clone());
        let eval = Eval::at(gate, &point, &blocks)?;
        let changes = self.changes(gate, &point, &eval, &blocks)?;
        let verdict = Verdict::of(&changes, squared_norm(&eval.gradient()));
        let suspect = is_lopsided(&changes) && mean_and_error(&changes).0 > 0.0;
        if verdict != Verdict::Worse && !suspect {
            self.x = point;
        }
        Ok(())
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
            let samples = self.known.samples().min(LAST * gate.left() as f64);
            self.draw(gate, samples, Self::rows(gate))?;
        }
        Ok(())
    }

    /// What fresh samples say of a point, against the anchor, whose |grad f|^2 is about `ours`.
    fn compare(&self, gate: &mut Gate, there: &[f64], blocks: &[Block], ours: f64) -> Result<Found, Halt> {
        if self.known.is_exact() {
            let eval = Eval::exact(gate, there)?;
            let lower = if gate.about().losses {
                eval.losses[0] <= self.known.losses[0]
            } else {
                dot(&along(&eval.gradient(), 1.0, &self.known.gradient()), &minus(there, &self.x)) <= 0.0
            };
            let verdict = if lower { Verdict::Better } else { Verdict::Worse };
            return Ok(Found { squared: squared_norm(&eval.gradient()), eval, verdict });
        }
        let eval = Eval::at(gate, there, blocks)?;
        let squared = squared_norm(&eval.gradient()) - eval.variance() / eval.samples();
        let changes = self.changes(gate, there, &eval, blocks)?;
        let mut verdict = Verdict::of(&changes, squared);
        let (mean, deviation) = mean_and_error(&changes);
        if verdict == Verdict::Open && squared < ours && mean <= 0.5 * deviation && !is_lopsided(&changes) {
            verdict = Verdict::Better;
        }
        Ok(Found { eval, squared, verdict })
    }

    /// f(there) - f(anchor), block by block: from the losses of the same samples, or from the slope at a random point of each block's
    /// part of the way.
    fn changes(
        &self,
        gate: &mut Gate,
        there: &[f64],
        eval: &Eval,
        blocks: &[Block],
    ) -> Result<Vec<f64>, Halt> {
        if gate.about().losses {
            let here = Eval::at(gate, &self.x, blocks)?;
            return Ok(here.losses.iter().enumerate().map(|(k, loss)| eval.losses[k] - loss).collect());
        }
        let way = minus(there, &self.x);
        let all = eval.blocks.len() as f64;
        let mut changes = Vec::with_capacity(blocks.len());
        for (k, block) in blocks.iter().enumerate() {
            let address =
                Address { seed: gate.seed(), role: Role::Setup, step: self.state.next, sample: k as u64 };
            let share = (k as f64 + address.stream().uniform()) / all;
            let between = Eval::at(gate, &along(&self.x, share, &way), std::slice::from_ref(block))?;
            changes.push(dot(&between.gradients[0], &way));
        }
        Ok(changes)
    }
}

/// What a check found.
struct Found {
    eval: Eval,
    /// |grad f|^2, without bias.
    squared: f64,
    verdict: Verdict,
}

/// Whether f is lower there, as far as fresh samples tell.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// Lower by half a standard error, or not higher by that and with a smaller gradient.
    Better,
    Open,
    /// Higher by two standard errors, or not finite.
    Worse,
}

impl Verdict {
    /// From the changes of f, block by block.
    fn of(changes: &[f64], squared: f64) -> Self {
        let (mean, deviation) = mean_and_error(changes);
        if !(mean + squared).is_finite() || mean > 2.0 * deviation {
            Self::Worse
        } else if mean < -0.5 * deviation && !is_lopsided(changes) {
            Self::Better
        } else {
            Self::Open
        }
    }
}

/// Whether one or two of the numbers make up nearly all of their spread: then events were seen that are too rare for a standard
/// error to mean anything.
fn is_lopsided(values: &[f64]) -> bool {
    let (mean, _) = mean_and_error(values);
    let mut squares: Vec<f64> = values.iter().map(|value| (value - mean).powi(2)).collect();
    squares.sort_by(f64::total_cmp);
    let all: f64 = squares.iter().sum();
    squares.iter().rev().take(2).sum::<f64>() > 0.85 * all
}

/// The mean, and its standard error.
fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let scatter: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (scatter / (n - 1.0) / n).sqrt())
}
