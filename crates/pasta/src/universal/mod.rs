//! Plain SGD with every step size at once; the certificate tells which of them was right.
//!
//! With one sample a step SGD is of the optimal order, if its step size is the right one, and the right one depends on L, Delta, B and b. Here nobody
//! need know them. Lane i is SGD with step eta_0 2^i, on samples of its own. Lanes i and -i open when 64 * 2^i samples have been drawn, and all that are
//! open share the samples. When a lane has made 1024, 2048, 4096, .. steps, the mean of the latter half of its iterates and then one of all its iterates,
//! drawn at random, may try a certificate, which may draw as many samples as the lane has made steps. Attempts share delta, and the first
//! that succeeds ends the run. `docs/theorems.md` proves what that costs, and [`Bound`] evaluates it.
//!
//! ```
//! use pasta_opt::method::Engine;
//! use pasta_opt::prelude::*;
//! use pasta_opt::problems::SineBowl;
//!
//! let noise = Noise { growth: 1.0, floor: 1.0, tail: Tail::Gaussian };
//! let oracle = Noisy::new(Box::new(SineBowl { dimension: 1 }), noise, vec![1.2])?;
//! let rule = StopRule { target: 0.5, delta: 0.05, basis: Basis::Kurtosis(9.0), share: 0.5 };
//! let mut gate = Gate::new(oracle, 1);
//! let end = Engine::Universal { rule: Some(rule) }.start(&gate, &[1.2])?.finish(&mut gate)?;
//! assert_eq!(end.stop, Stop::Certified);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bound;
mod lane;

pub use bound::Bound;
use serde::{Deserialize, Serialize};

use self::lane::{Lane, Moved, Tried};
use crate::certificate::{Certificate, Verdict};
use crate::checkpoint::{Checkpoint, CheckpointError, Saver};
use crate::draws::Role;
use crate::gate::{Gate, Halt};
use crate::kernels::{along, squared_distance, squared_norm};
use crate::oracle::{Answer, Request};
use crate::state::StartError;
use crate::stop::{Hopeless, Stop};
use crate::term::Steps;
use crate::walk::{Advance, CertificateLog, StopRule, View, Walk};

/// Lanes i and -i open when this many times 2^i samples have been drawn.
const OPENS: u128 = 64;
/// A lane whose turn it is goes this far ahead of the one that has drawn least.
const TURN: u128 = 256;
/// No more lanes than these, on either side: a step 2^200 times as long or as short as the first makes no sense.
const MOST_LANES: i32 = 200;
/// The number of the last lane.
pub(crate) const LAST_LANE: u64 = 2 * MOST_LANES as u64;
/// Samples that choose the first step size, at each of two points this far apart, over 1 + |x0|.
const PROBE: u64 = 64;
const APART: f64 = 1e-2;

/// A run without a budget is not called hopeless before it has drawn this many samples, nor while a thousand times what it has drawn might help.
const PATIENT: u128 = 1_000_000;
const FAR: u128 = 1_000;

/// Plain SGD with every step size at once: see the [module](self).
#[derive(Debug)]
pub struct Universal {
    rule: StopRule,
    start: Vec<f64>,
    /// eta_0; `None` before it is measured.
    eta: Option<f64>,
    /// In the order in which they opened: 0, -1, 1, -2, 2, ..
    lanes: Vec<Lane>,
    turn: Turn,
    /// The budget with which attempts under way were planned.
    budget: Option<u128>,
    attempts: u64,
    /// The attempt with the smallest bound.
    best: Option<Tried>,
    seen: Seen,
    ended: Option<Stop>,
    log: CertificateLog,
}

/// What tells a run that is hopeless.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Seen {
    /// The fewest samples that a certificate of any candidate would have taken.
    wanted: Option<u128>,
    /// The smallest gradient of any candidate, about, and the samples after which it was a tenth smaller than before.
    gradient: Option<(f64, u128)>,
}

impl Seen {
    fn want(&mut self, samples: u128) {
        self.wanted = Some(self.wanted.map_or(samples, |least| least.min(samples)));
    }

    fn note(&mut self, gradient: f64, drawn: u128) {
        if self.gradient.is_none_or(|(least, _)| gradient < 0.9 * least) {
            self.gradient = Some((gradient, drawn));
        }
    }

    fn hopeless(&self, target: f64, drawn: u128) -> Option<Hopeless> {
        if drawn < PATIENT {
            return None;
        }
        match (self.gradient, self.wanted) {
            (Some((gradient, since)), _) if gradient > target && drawn >= FAR * since => {
                Some(Hopeless::Stuck { target, drawn, since, gradient })
            }
            (None, Some(wanted)) if wanted > FAR * drawn => {
                let needed = wanted as f64;
                let reach = target * (needed / drawn as f64).sqrt();
                Some(Hopeless::Noise { target, drawn, needed, reach })
            }
            _ => None,
        }
    }
}

/// Whose turn it is, and until it has drawn how many samples.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Turn {
    lane: usize,
    until: u128,
}

/// What a checkpoint holds besides the lanes.
#[derive(Serialize, Deserialize)]
struct Saved<T> {
    rule: StopRule,
    budget: Option<u128>,
    eta: Option<f64>,
    lanes: usize,
    turn: Turn,
    attempts: u64,
    best: Option<T>,
    seen: Seen,
    ended: Option<Stop>,
}

/// The i of the lane that opens as number 0, 1, 2, ..: 0, -1, 1, -2, 2, ..
fn exponent(number: usize) -> i32 {
    let half = number.div_ceil(2) as i32;
    if number % 2 == 1 { -half } else { half }
}

impl Universal {
    /// The name of its section in a checkpoint.
    pub const SECTION: &'static str = "universal";

    /// At the start: nothing is drawn yet.
    pub fn start(gate: &Gate, rule: StopRule, start: &[f64]) -> Result<Self, StartError> {
        rule.check(gate.about())?;
        // Refuses what is no point of the problem.
        Lane::start(gate, 0, 1.0, start)?;
        Ok(Self {
            rule,
            start: start.to_vec(),
            eta: None,
            lanes: Vec::new(),
            turn: Turn::default(),
            budget: gate.budget(),
            attempts: 0,
            best: None,
            seen: Seen::default(),
            ended: None,
            log: CertificateLog::default(),
        })
    }

    /// The run that a checkpoint was taken of, bit for bit.
    pub fn resume(gate: &Gate, checkpoint: &mut Checkpoint) -> Result<Self, CheckpointError> {
        let (saved, mut vectors): (Saved<Tried>, _) = checkpoint.take(Self::SECTION)?;
        let Saved { rule, budget, eta, lanes, turn, attempts, mut best, seen, mut ended } = saved;
        let expected = 1 + usize::from(best.is_some());
        let is_sound = vectors.len() == expected && vectors.iter().all(|v| v.len() == gate.about().dim);
        if !is_sound || lanes > 2 * MOST_LANES as usize + 1 || (lanes > 0 && turn.lane >= lanes) {
            return Err(CheckpointError::damaged("its lanes do not fit the problem"));
        }
        if let Some(best) = &mut best {
            best.point = vectors.remove(1);
        }
        let other_budget = budget != gate.budget();
        let mut again = Vec::with_capacity(lanes);
        for number in 0..lanes {
            let mut part = checkpoint.take_part(&part(number));
            let mut lane = Lane::resume(gate, &mut part)?;
            // The budget is part of an attempt's plan: under another one it would be another attempt, and the one under way is spent.
            if other_budget {
                lane.drop_attempt();
            }
            again.push(lane);
        }
        let goes_on = match ended {
            Some(Stop::OutOfBudget) => other_budget,
            Some(Stop::Hopeless(_)) => !gate.ends_hopeless(),
            _ => false,
        };
        if goes_on {
            ended = None;
        }
        let start = vectors.remove(0);
        let log = CertificateLog::default();
        let budget = gate.budget();
        let mut run = Self { rule, start, eta, lanes: again, turn, budget, attempts, best, seen, ended, log };
        run.keep_log();
        Ok(run)
    }

    /// The rule of the run that a checkpoint was taken of.
    pub(crate) fn rule_of(checkpoint: &Checkpoint) -> Result<StopRule, CheckpointError> {
        checkpoint.peek(Self::SECTION).map(|saved: Saved<Tried>| saved.rule)
    }

    /// eta_0: where the gradient at the start turns over, by a few samples at two points. Any number is right; a better one needs fewer lanes.
    fn probe(&mut self, gate: &mut Gate) -> Result<f64, Halt> {
        let batch = gate.batch(Role::Calibration, 0, PROBE);
        let mut here = vec![0.0; self.start.len()];
        gate.ask(Request::sums(batch.clone(), &[&self.start]), &mut Answer::new(&mut here))?;
        let length = squared_norm(&here).sqrt();
        let way = APART * (1.0 + squared_norm(&self.start).sqrt());
        if !(length > 0.0 && length.is_finite()) {
            return Ok(1.0);
        }
        let mut there = along(&self.start, -way / length, &here);
        if let Some(term) = gate.term() {
            term.prox(Steps::One(way / length), &mut there);
        }
        let mut ahead = vec![0.0; self.start.len()];
        gate.ask(Request::sums(batch, &[&there]), &mut Answer::new(&mut ahead))?;
        let turned = squared_distance(&here, &ahead).sqrt() / PROBE as f64;
        let eta = squared_distance(&self.start, &there).sqrt() / turned;
        Ok(if eta > 0.0 && eta.is_finite() { eta } else { 1.0 })
    }

    /// Samples that the lanes have drawn.
    fn drawn(&self) -> u128 {
        self.lanes.iter().map(Lane::drawn).sum()
    }

    /// Opens every lane that is due; one at least, if none of those that are open can move.
    fn open(&mut self, gate: &Gate, eta: f64) {
        let drawn = self.drawn();
        let mut can_move = self.lanes.iter().any(|lane| lane.ended().is_none());
        loop {
            let i = exponent(self.lanes.len());
            let is_due = i.unsigned_abs() < 120 && drawn >= OPENS << i.unsigned_abs();
            if i > MOST_LANES || (can_move && !is_due) {
                return;
            }
            let step = (eta * 2f64.powi(i)).clamp(f64::MIN_POSITIVE, f64::MAX);
            let Ok(lane) = Lane::start(gate, self.lanes.len() as u64, step, &self.start) else { return };
            can_move = true;
            self.lanes.push(lane);
        }
    }

    /// The lane that moves next.
    fn next_lane(&mut self, gate: &Gate, eta: f64) -> Option<usize> {
        let Turn { lane, until } = self.turn;
        if self.lanes.get(lane).is_some_and(|lane| lane.ended().is_none() && lane.drawn() < until) {
            return Some(lane);
        }
        self.open(gate, eta);
        let open = self.lanes.iter().enumerate().filter(|(_, lane)| lane.ended().is_none());
        let (lane, drawn) = open.map(|(i, lane)| (i, lane.drawn())).min_by_key(|(_, drawn)| *drawn)?;
        self.turn = Turn { lane, until: drawn + TURN };
        Some(lane)
    }

    /// Takes note of an attempt that came to its end, and ends the run if it is at its end.
    fn conclude(&mut self, gate: &Gate, tried: Tried) -> Certificate {
        // Which attempt is the last was decided by the samples: it is only as sure as all of them together.
        let mut certificate = Certificate { delta: self.rule.delta, ..tried.certificate };
        let has_skipped = gate.has_skipped();
        self.ended = match certificate.verdict {
            // Samples that were left out may be the ones that matter.
            Verdict::Certified if has_skipped => Some(Stop::Void),
            Verdict::Certified => Some(Stop::Certified),
            Verdict::Void | Verdict::NoNoise => Some(Stop::Void),
            _ => None,
        };
        if has_skipped {
            certificate = certificate.void();
        }
        if let Some(made) = tried.made {
            self.seen.note(made.mean, self.drawn());
        }
        let bound = |tried: &Tried| tried.certificate.bound.unwrap_or(f64::INFINITY);
        let tried = Tried { certificate, ..tried };
        if self.ended.is_some() || self.best.as_ref().is_none_or(|best| bound(&tried) < bound(best)) {
            self.best = Some(tried);
        }
        self.ended = self.ended.or_else(|| self.hopeless(gate));
        self.keep_log();
        certificate
    }

    /// That the target is not within reach, if the run has no budget and is not told to go on all the same.
    fn hopeless(&self, gate: &Gate) -> Option<Stop> {
        let hopeless = self.seen.hopeless(self.rule.target, self.drawn());
        hopeless.filter(|_| gate.ends_hopeless()).map(Stop::Hopeless)
    }

    fn keep_log(&mut self) {
        let best = self.best.as_ref().filter(|_| self.ended.is_some());
        self.log = CertificateLog::of_attempts(
            self.attempts,
            best.map(|best| best.certificate),
            best.and_then(|best| best.made.as_ref()),
            self.ended,
        );
    }

    fn end(&mut self, stop: Stop) -> Advance {
        self.ended = Some(stop);
        self.keep_log();
        Advance::Stop(stop)
    }
}

/// The part of a checkpoint that a lane has.
fn part(number: usize) -> String {
    format!("lane-{number}")
}

impl Walk for Universal {
    fn advance(&mut self, gate: &mut Gate) -> Result<Advance, Halt> {
        if let Some(stop) = self.ended {
            return Ok(Advance::Stop(stop));
        }
        let Some(eta) = self.eta else {
            let before = gate.ledger().clone();
            self.eta = Some(self.probe(gate).inspect_err(|halt| {
                if halt.drops_work() {
                    gate.rewind(before);
                }
            })?);
            return Ok(Advance::Checked);
        };
        let Some(number) = self.next_lane(gate, eta) else {
            // All of them are lost.
            let stop = self.lanes.first().and_then(Lane::ended).unwrap_or(Stop::OutOfBudget);
            return Ok(self.end(stop));
        };
        let lane = &mut self.lanes[number];
        let before = lane.gate.ledger().clone();
        lane.gate.allow(gate.budget().map(|_| lane.drawn() + gate.left()));
        let moved = lane.advance(&self.rule, &mut self.attempts);
        gate.absorb_since(&lane.gate, &before);
        match moved {
            Ok(Moved::Step(record)) => Ok(Advance::Step(record)),
            Ok(Moved::Looked | Moved::Lost) => Ok(Advance::Checked),
            Ok(Moved::Planned) => Ok(Advance::Planned),
            Ok(Moved::Tried(tried)) => Ok(Advance::Tried(self.conclude(gate, *tried))),
            Ok(Moved::Skipped(wanted)) => {
                self.seen.want(wanted);
                Ok(self.hopeless(gate).map_or(Advance::Checked, |stop| self.end(stop)))
            }
            Err(Halt::OverBudget { .. }) => Ok(self.end(Stop::OutOfBudget)),
            Err(halt) => Err(halt),
        }
    }

    fn view(&self) -> View<'_> {
        let x = self.lanes.get(self.turn.lane).map_or(&self.start[..], Lane::x);
        let point = self.best.as_ref().map_or(&self.start[..], |best| &best.point);
        let mut view = View::new(self.lanes.iter().map(Lane::steps).sum(), &self.start, x);
        (view.point, view.ended, view.certification) = (point, self.ended, Some(&self.log));
        view
    }

    fn save<'a>(&'a self, to: &mut Saver<'a>) {
        let Self { rule, start, eta, lanes, turn, attempts, best, seen, budget, ended, .. } = self;
        let saved = Saved {
            rule: *rule,
            budget: *budget,
            eta: *eta,
            lanes: lanes.len(),
            turn: *turn,
            attempts: *attempts,
            best: best.as_ref(),
            seen: *seen,
            ended: *ended,
        };
        let points = best.iter().map(|best| best.point.as_slice());
        to.put(Self::SECTION, &saved, [start.as_slice()].into_iter().chain(points));
        for (number, lane) in lanes.iter().enumerate() {
            to.put_part(&part(number), |to| lane.save(to));
        }
    }
}
