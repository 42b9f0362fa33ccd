//! Two certified walks as one run: the certificate chooses between them.
//!
//! For a method whose constants may be wrong, beside one that needs none. Whichever has drawn less moves next, each has half of the budget
//! and half of delta, and the first to be certified ends the run. So it costs about twice what the better of the two costs alone.

use serde::{Deserialize, Serialize};

use super::{Advance, CertificateLog, Certified, StopRule, View, Walk};
use crate::certificate::{Certificate, ClaimError};
use crate::checkpoint::{Checkpoint, CheckpointError, Saver};
use crate::draws::Role;
use crate::gate::{Gate, Halt};
use crate::kernels::squared_distance;
use crate::stop::Stop;

/// Two certified walks as one run: the certificate chooses between them.
///
/// ```
/// use pasta_opt::Auto;
/// use pasta_opt::certificate::Basis;
/// use pasta_opt::prelude::*;
/// use pasta_opt::problems::SineBowl;
/// use pasta_opt::walk::Hedged;
///
/// let noise = Noise { growth: 1.0, floor: 1.0, tail: Tail::Gaussian };
/// let oracle = Noisy::new(Box::new(SineBowl { dimension: 1 }), noise, vec![1.2])?;
/// // The true gap is 1.6: the plan of this recipe is far too long.
/// let recipe = Smooth { smoothness: 3.0, gap: 1.6e6, growth: 1.0, floor: 1.0, variance: None, target: 0.1 };
/// let basis = Basis::Growth { growth: 1.0, floor: 1.0, distance: 0.0 };
/// let rule = StopRule { target: 0.1, delta: 0.05, basis, share: 0.5 };
/// let mut gate = Gate::new(oracle, 1);
/// let start = [1.2];
/// let hedged = Hedged::start(
///     &gate,
///     rule,
///     |gate| Pasta::start(gate, recipe.plan()?.schedule, &start).map_err(Box::<dyn std::error::Error>::from),
///     |gate| Ok(Auto::start(gate, &start, Some(rule.target))?),
/// )?;
/// let end = hedged.finish(&mut gate)?;
/// assert_eq!(end.stop, Stop::Certified);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Hedged<A, B> {
    /// The rule of the run; that of each walk has half of its delta.
    rule: StopRule,
    first: Certified<A>,
    second: Certified<B>,
    sides: [Side; 2],
    /// The walk that moved last; at the end, the one whose point is handed out.
    chosen: Which,
    ended: Option<Stop>,
    log: CertificateLog,
}

/// Of two walks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Which {
    First,
    Second,
}

/// What a walk has for itself: a gate with a seed of its own, and its end.
#[derive(Debug)]
struct Side {
    gate: Gate,
    ended: Option<Stop>,
}

/// What a checkpoint holds besides the two walks.
#[derive(Serialize, Deserialize)]
struct Saved {
    rule: StopRule,
    chosen: Which,
    ended: Option<Stop>,
    ends: [Option<Stop>; 2],
}

/// The parts of a checkpoint that the walks have.
const PARTS: [&str; 2] = ["first", "second"];

/// The rule of each of two walks: one of them is wrong with probability delta at most.
fn half(rule: StopRule) -> StopRule {
    StopRule { delta: rule.delta / 2.0, ..rule }
}

impl<A, B> Hedged<A, B> {
    /// The name of its section in a checkpoint.
    pub const SECTION: &'static str = "hedged";

    /// The name under which a checkpoint has a section of the first walk.
    pub(crate) fn first_section(name: &str) -> String {
        format!("{}/{name}", PARTS[0])
    }

    /// The rule of the run that a checkpoint was taken of.
    pub(crate) fn rule_of(checkpoint: &Checkpoint) -> Result<StopRule, CheckpointError> {
        checkpoint.peek(Self::SECTION).map(|saved: Saved| saved.rule)
    }
}

impl<A: Walk, B: Walk> Hedged<A, B> {
    /// Both walks at their starts. The first is the one whose point is handed out where no bound tells them apart: let it be the one of which
    /// a theorem speaks.
    pub fn start<E: From<ClaimError>>(
        gate: &Gate,
        rule: StopRule,
        first: impl FnOnce(&Gate) -> Result<A, E>,
        second: impl FnOnce(&Gate) -> Result<B, E>,
    ) -> Result<Self, E> {
        rule.check(gate.about())?;
        let budget = gate.budget().map(|budget| budget / 2);
        let sides = [0, 1].map(|number| Side {
            gate: gate.fork(Role::Large, number, u128::MAX).with_budget(budget),
            ended: None,
        });
        Ok(Self {
            rule,
            first: Certified::start(first(&sides[0].gate)?, &sides[0].gate, half(rule))?,
            second: Certified::start(second(&sides[1].gate)?, &sides[1].gate, half(rule))?,
            sides,
            chosen: Which::First,
            ended: None,
            log: CertificateLog::default(),
        })
    }

    /// The run that a checkpoint was taken of, bit for bit; the walks are resumed as they are told.
    pub fn resume(
        gate: &Gate,
        checkpoint: &mut Checkpoint,
        first: impl FnOnce(&Gate, &mut Checkpoint) -> Result<A, CheckpointError>,
        second: impl FnOnce(&Gate, &mut Checkpoint) -> Result<B, CheckpointError>,
    ) -> Result<Self, CheckpointError> {
        let (Saved { rule, chosen, mut ended, mut ends }, _) = checkpoint.take(Self::SECTION)?;
        let mut parts = PARTS.map(|name| checkpoint.take_part(name));
        let [one, two] = &mut parts;
        let mut gates = [gate.fork_again(one)?, gate.fork_again(two)?];
        let share = share(gate, gates.each_ref());
        gates.iter_mut().for_each(|gate| gate.allow(share));
        let first = Certified::resume(first(&gates[0], one)?, &gates[0], half(rule), one)?;
        let second = Certified::resume(second(&gates[1], two)?, &gates[1], half(rule), two)?;
        // With another budget a walk goes on that ran out of one.
        for (end, view) in ends.iter_mut().zip([first.view(), second.view()]) {
            if matches!(end, Some(Stop::OutOfBudget | Stop::Hopeless(_))) && view.ended.is_none() {
                (*end, ended) = (None, None);
            }
        }
        let [one, two] = gates;
        let sides = [Side { gate: one, ended: ends[0] }, Side { gate: two, ended: ends[1] }];
        let log = CertificateLog::default();
        let mut hedged = Self { rule, first, second, sides, chosen, ended, log };
        hedged.keep_log();
        Ok(hedged)
    }

    /// Whose turn it is: of those that have not ended, the one that has drawn less.
    fn turn(&self) -> Option<Which> {
        let [first, second] = &self.sides;
        match (first.ended, second.ended) {
            (Some(_), Some(_)) => None,
            (Some(_), None) => Some(Which::Second),
            (None, Some(_)) => Some(Which::First),
            (None, None) => {
                let is_ahead = first.gate.ledger().samples() > second.gate.ledger().samples();
                Some(if is_ahead { Which::Second } else { Which::First })
            }
        }
    }

    /// Moves one of the walks, and counts what it drew.
    fn step(&mut self, gate: &mut Gate, which: Which) -> Result<Advance, Halt> {
        let share = share(gate, self.sides.each_ref().map(|side| &side.gate));
        let own = &mut self.sides[which as usize].gate;
        own.allow(share);
        let before = own.ledger().clone();
        let advance = match which {
            Which::First => self.first.advance(own),
            Which::Second => self.second.advance(own),
        };
        gate.absorb_since(own, &before);
        advance
    }

    fn logs(&self) -> [&CertificateLog; 2] {
        [self.first.log(), self.second.log()]
    }

    fn keep_log(&mut self) {
        let [first, second] = self.logs();
        let (own, other) = match self.chosen {
            Which::First => (first, second),
            Which::Second => (second, first),
        };
        self.log = own.beside(other, self.rule.delta, self.ended);
    }

    /// Ends the run if it is at its end: where one is certified, or both have ended.
    fn conclude(&mut self) -> Option<Stop> {
        let ends = self.sides.each_ref().map(|side| side.ended);
        let bounds = self.logs().map(|log| log.last.and_then(|certificate| certificate.bound));
        self.chosen = match (ends, bounds) {
            ([Some(Stop::Certified), _], _) => Which::First,
            ([_, Some(Stop::Certified)], _) => Which::Second,
            ([None, _] | [_, None], _) => return None,
            // Both bounds hold at once, with the confidence of the run.
            (_, [Some(first), Some(second)]) if second < first => Which::Second,
            (_, [None, Some(_)]) => Which::Second,
            ([Some(first), _], [None, None]) if first.is_lost() => Which::Second,
            _ => Which::First,
        };
        self.ended = ends[self.chosen as usize];
        self.ended
    }
}

/// Half of what the budget leaves to the walks: all but what was drawn before them.
fn share(gate: &Gate, of: [&Gate; 2]) -> Option<u128> {
    let theirs: u128 = of.map(|gate| gate.ledger().samples()).iter().sum();
    let besides = gate.ledger().samples().saturating_sub(theirs);
    gate.budget().map(|budget| budget.saturating_sub(besides) / 2)
}

impl<A: Walk, B: Walk> Walk for Hedged<A, B> {
    fn advance(&mut self, gate: &mut Gate) -> Result<Advance, Halt> {
        if let Some(stop) = self.ended {
            return Ok(Advance::Stop(stop));
        }
        let Some(which) = self.turn() else {
            return Ok(self.conclude().map_or(Advance::Checked, Advance::Stop));
        };
        let stop = match self.step(gate, which) {
            Ok(Advance::Stop(stop)) => stop,
            Ok(advance) => {
                self.chosen = which;
                self.keep_log();
                return Ok(match advance {
                    // As sure as all attempts of both together.
                    Advance::Tried(certificate) => {
                        Advance::Tried(Certificate { delta: self.rule.delta, ..certificate })
                    }
                    other => other,
                });
            }
            Err(halt) => match halt.stop() {
                // One that is lost or at its end leaves the run to the other.
                Some(stop) if stop != Stop::Interrupted => stop,
                _ => return Err(halt),
            },
        };
        self.sides[which as usize].ended = Some(stop);
        let ended = self.conclude();
        self.keep_log();
        Ok(ended.map_or(Advance::Checked, Advance::Stop))
    }

    fn view(&self) -> View<'_> {
        let (first, second) = (self.first.view(), self.second.view());
        let step = first.step + second.step;
        let view = match self.chosen {
            Which::First => first,
            Which::Second => second,
        };
        View {
            step,
            planned_steps: None,
            distance2: squared_distance(view.x, view.start),
            under_way: view.under_way + self.sides[self.chosen as usize].gate.under_way(),
            ended: self.ended,
            certification: Some(&self.log),
            ..view
        }
    }

    fn save<'a>(&'a self, to: &mut Saver<'a>) {
        let ends = self.sides.each_ref().map(|side| side.ended);
        let saved = Saved { rule: self.rule, chosen: self.chosen, ended: self.ended, ends };
        to.put(Self::SECTION, &saved, []);
        let [one, two] = &self.sides;
        to.put_part(PARTS[0], |to| {
            one.gate.save(to);
            self.first.save(to);
        });
        to.put_part(PARTS[1], |to| {
            two.gate.save(to);
            self.second.save(to);
        });
    }
}
