//! One lane: SGD with one step size, and the points of it that may be certified.

use serde::{Deserialize, Serialize};

use crate::algorithm::Pasta;
use crate::certificate::{Certificate, CertificateError, Certifier, Claim, Guess, Made, delta_of_attempt};
use crate::checkpoint::{Checkpoint, CheckpointError, Saver};
use crate::draws::Role;
use crate::exact::MAX_COUNT;
use crate::gate::{Gate, Halt};
use crate::kernels::{squared_distance, update_mean};
use crate::schedule::{BatchRule, Estimator, Output, Schedule, Sequence};
use crate::state::StartError;
use crate::stop::{Divergence, Stop};
use crate::walk::{Advance, Record, StopRule, Walk};

/// The steps after which a lane first tries a certificate.
const FIRST: u64 = 1024;
/// The gradient that a certificate is planned for, over the target.
const LIKELY: f64 = 0.5;

/// SGD with one step size, on samples of its own.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) gate: Gate,
    walk: Pasta,
    /// The mean of the iterates since the number of steps was last a power of two.
    mean: Vec<f64>,
    /// Which point is to try a certificate before the lane moves on.
    due: Option<Which>,
    attempt: Option<Certifier>,
    ended: Option<Stop>,
}

/// Of the points that may be certified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Which {
    /// The mean of the latter half of the iterates: what succeeds in practice.
    Mean,
    /// One of all iterates, drawn at random: what the theorem is about.
    Drawn,
}

/// An attempt that came to its end.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Tried {
    pub(super) certificate: Certificate,
    pub(super) made: Option<Made>,
    #[serde(skip)]
    pub(super) point: Vec<f64>,
}

/// What a lane did.
pub(super) enum Moved {
    Step(Record),
    /// Samples of an attempt under way.
    Looked,
    /// An attempt begins.
    Planned,
    Tried(Box<Tried>),
    /// A certificate would take so many samples, more than the lane has made steps: no attempt is made.
    Skipped(u128),
    /// It left the region where numbers mean something.
    Lost,
}

/// What a checkpoint holds besides the walk, the gate and vectors.
#[derive(Serialize, Deserialize)]
struct Saved<A> {
    due: Option<Which>,
    attempt: Option<A>,
    ended: Option<Stop>,
}

const SECTION: &str = "lane";

impl Lane {
    /// The lane that opens as this one, at the start.
    pub(super) fn start(outer: &Gate, number: u64, eta: f64, start: &[f64]) -> Result<Self, StartError> {
        let schedule = Schedule {
            epochs: 1,
            steps: MAX_COUNT,
            eta: Sequence::Constant(eta),
            beta: Sequence::Constant(0.0),
            estimator: Estimator::Minibatch,
            first: BatchRule::Fixed(1),
            large: BatchRule::Fixed(1),
            output: Output::Uniform,
        };
        let gate = outer.fork(Role::Large, number, u128::MAX);
        let walk = Pasta::start(&gate, schedule, start)?;
        Ok(Self { gate, walk, mean: start.to_vec(), due: None, attempt: None, ended: None })
    }

    /// The same as it was saved.
    pub(super) fn resume(outer: &Gate, checkpoint: &mut Checkpoint) -> Result<Self, CheckpointError> {
        let gate = outer.fork_again(checkpoint)?;
        let walk = Pasta::resume(&gate, checkpoint)?;
        let (saved, mut vectors): (Saved<Certifier>, _) = checkpoint.take(SECTION)?;
        let Saved { due, mut attempt, ended } = saved;
        if vectors.first().is_none_or(|mean| mean.len() != gate.about().dim) {
            return Err(CheckpointError::damaged("the mean of its iterates does not fit the problem"));
        }
        let mean = vectors.remove(0);
        if let Some(certifier) = &mut attempt {
            certifier.restore(vectors, gate.about())?;
        }
        Ok(Self { gate, walk, mean, due, attempt, ended })
    }

    pub(super) fn save<'a>(&'a self, to: &mut Saver<'a>) {
        self.gate.save(to);
        self.walk.save(to);
        let saved = Saved { due: self.due, attempt: self.attempt.as_ref(), ended: self.ended };
        let vectors = self.attempt.iter().flat_map(Certifier::vectors);
        to.put(SECTION, &saved, [self.mean.as_slice()].into_iter().chain(vectors));
    }

    /// Gives up the attempt under way. Its share of delta is spent.
    pub(super) fn drop_attempt(&mut self) {
        if self.attempt.take().is_some() {
            self.next_candidate();
        }
    }

    /// Samples drawn.
    pub(super) fn drawn(&self) -> u128 {
        self.gate.ledger().samples()
    }

    pub(super) fn steps(&self) -> u64 {
        self.walk.state().step
    }

    pub(super) fn x(&self) -> &[f64] {
        &self.walk.state().x
    }

    pub(super) fn ended(&self) -> Option<Stop> {
        self.ended
    }

    /// A step, a group of samples of a certificate, or the plan of one. After a halt it stands where it stood.
    pub(super) fn advance(&mut self, rule: &StopRule, attempts: &mut u64) -> Result<Moved, Halt> {
        let moved = if self.attempt.is_some() {
            self.go_on()
        } else if let Some(which) = self.due {
            self.try_certificate(which, rule, attempts)
        } else {
            self.step()
        };
        match moved {
            // A lane that is lost leaves the run to the others.
            Err(halt @ (Halt::NotFinite { .. } | Halt::Mixed(_))) => {
                let lost = Stop::Diverged(Divergence::Gradient { step: self.steps() });
                self.ended = Some(halt.stop().unwrap_or(lost));
                self.attempt = None;
                Ok(Moved::Lost)
            }
            moved => moved,
        }
    }

    fn step(&mut self) -> Result<Moved, Halt> {
        let record = match self.walk.advance(&mut self.gate)? {
            Advance::Step(record) => record,
            Advance::Stop(stop) => {
                self.ended = Some(stop);
                return Ok(Moved::Lost);
            }
            _ => return Ok(Moved::Looked),
        };
        let state = self.walk.state();
        // The iterates after 2^k steps and before 2^(k+1).
        let before = 1 << (state.step.max(2) - 1).ilog2();
        update_mean(&mut self.mean, &state.x, state.step.saturating_sub(before).max(1));
        self.gate.keep_inside(&mut self.mean);
        if state.step >= FIRST && state.step.is_power_of_two() {
            self.due = Some(Which::Mean);
        }
        Ok(Moved::Step(record))
    }

    fn candidate(&self, which: Which) -> &[f64] {
        match which {
            Which::Mean => &self.mean,
            Which::Drawn => self.walk.state().output(),
        }
    }

    fn next_candidate(&mut self) {
        self.due = match self.due {
            Some(Which::Mean) => Some(Which::Drawn),
            _ => None,
        };
    }

    /// Begins an attempt, if as many samples as the lane has made steps are enough for one.
    fn try_certificate(&mut self, which: Which, rule: &StopRule, attempts: &mut u64) -> Result<Moved, Halt> {
        let point = self.candidate(which).to_vec();
        let most = u128::from(self.steps());
        let claim = Claim {
            target: rule.target,
            delta: delta_of_attempt(rule.delta, *attempts + 1),
            basis: rule.basis.at_distance(squared_distance(&point, &self.walk.state().start).sqrt()),
            budget: Some(most),
            guess: Some(Guess { norm: LIKELY * rule.target, variance: None }),
        };
        let before = self.gate.ledger().clone();
        let wanted = match Certifier::start(&mut self.gate, &point, claim, *attempts + 1) {
            Ok(certifier) if certifier.wanted_samples() <= most => {
                *attempts += 1;
                self.attempt = Some(certifier);
                return Ok(Moved::Planned);
            }
            Ok(certifier) => certifier.wanted_samples(),
            Err(CertificateError::Claim(_)) => u128::MAX,
            Err(CertificateError::Halt(halt)) => {
                if halt.drops_work() {
                    self.gate.rewind(before);
                }
                return Err(halt);
            }
        };
        self.next_candidate();
        Ok(Moved::Skipped(wanted))
    }

    /// Goes on with the attempt under way.
    fn go_on(&mut self) -> Result<Moved, Halt> {
        let Some(certifier) = &mut self.attempt else { return Ok(Moved::Looked) };
        let Some(certificate) = certifier.advance(&mut self.gate)? else { return Ok(Moved::Looked) };
        let made = certifier.made();
        self.attempt = None;
        let point = self.candidate(self.due.unwrap_or(Which::Drawn)).to_vec();
        self.next_candidate();
        Ok(Moved::Tried(Box::new(Tried { certificate, made, point })))
    }
}
