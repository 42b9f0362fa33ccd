//! A certificate as the end of a run: tried when it looks worth it, at a bounded share of the cost.

mod log;
mod look;
mod rule;

pub(crate) use log::Sighting;
pub use log::{Candidate, CertificateLog, Glimpse};
pub(crate) use look::Seen;
pub use rule::StopRule;
use serde::{Deserialize, Serialize};

use self::look::{GROUPS, MEANS, drawn_by, mean_of, samples_each};
use super::{Advance, View, Walk};
use crate::certificate::mapping::choose_gamma;
use crate::certificate::means::Means;
use crate::certificate::{
    Basis, Certificate, CertificateError, Certifier, Claim, ClaimError, Guess, Verdict, delta_of_attempt,
};
use crate::checkpoint::{Checkpoint, CheckpointError, Saver};
use crate::draws::Role;
use crate::gate::{Gate, Halt};
use crate::kernels::{squared_distance, squared_norm};
use crate::moments::Moments;
use crate::stop::{Divergence, Stop};
use crate::term::Mapping;

/// See [`Walk::certified`].
#[derive(Debug)]
pub struct Certified<W> {
    walk: W,
    rule: StopRule,
    log: CertificateLog,
    /// The mean of the iterates, with weights that grow like t^4: of the last ones, for the most part.
    tail: Vec<f64>,
    attempt: Option<Attempt>,
}

/// A certificate under way.
#[derive(Debug, Serialize, Deserialize)]
struct Attempt {
    certifier: Certifier,
    about: Candidate,
    /// Set where the run is at its end whatever the answer.
    ending: Option<Stop>,
    /// The budget when it was started.
    budget: Option<u128>,
}

/// What a checkpoint holds besides vectors.
#[derive(Serialize, Deserialize)]
struct Saved<L, A> {
    rule: StopRule,
    log: L,
    attempt: Option<A>,
}

const SECTION: &str = "certificate";

/// The parts of the run's samples and of the allowance that a look may take.
const LOOK_SHARE: u128 = 64;
const LOOK_ALLOWANCE: u128 = 8;
/// The first look comes when the run has drawn so many samples.
const FIRST_LOOK: u128 = 512;
/// From one look to the next the run's samples grow by a quarter at least and double at most, after a failed attempt they
/// grow by a half.
const NEXT_LOOK: u128 = 4;
const NEXT_ATTEMPT: u128 = 2;
/// The weights of the tail grow like this power of t. Of the first half of the run it has 3 %.
const TAIL_POWER: f64 = 4.0;
/// While the run can still move on, a certificate gets this many times what it planned: a gradient close to the target
/// would cost more than another point.
const PATIENCE: u128 = 2;
/// Other samples that are asked for to find out whose fault an infinite answer is.
const SINGLES: u64 = 64;
/// A certificate that would take this many times what a budget allows is out of reach; of such a budget this part is kept for a last bound.
const OUT_OF_REACH: u128 = 4;
const LAST_BOUND: u128 = 10;
/// A tail that is worth a certificate has a gradient of about this share of the target.
pub(crate) const LIKELY: f64 = 0.3;
/// A mean of fewer iterates than this is not looked at where rounds have a price.
const FEW_STEPS: u64 = 64;
/// Where there is a term, a candidate is moved by a prox-gradient step of this share of gamma.
const SETTLE: f64 = 0.125;

impl<W: Walk> Certified<W> {
    pub(super) fn start(walk: W, gate: &Gate, rule: StopRule) -> Result<Self, ClaimError> {
        rule.check(gate.about())?;
        Ok(Self { walk, rule, log: CertificateLog::default(), tail: Vec::new(), attempt: None })
    }

    /// Goes on with the certificates of a checkpoint. Attempts that were made by one rule do not count for another.
    pub(super) fn resume(
        walk: W,
        gate: &Gate,
        rule: StopRule,
        checkpoint: &mut Checkpoint,
    ) -> Result<Self, CheckpointError> {
        let (saved, mut vectors): (Saved<CertificateLog, Attempt>, _) = checkpoint.take(SECTION)?;
        let Saved { rule: before, mut log, mut attempt } = saved;
        if before != rule {
            let what =
                "the run was started with another target, delta, share or assumption; they cannot change";
            return Err(CheckpointError::Settings { what: what.into() });
        }
        if let (Some(before), Some(here)) = (log.gamma, gate.gamma())
            && before != here
        {
            let what = format!("the run was started with gamma = {before}, not {here}");
            return Err(CheckpointError::Settings { what });
        }
        // The budget is part of an attempt's plan: under another one it is another attempt, and the one under way is spent.
        if attempt.as_ref().is_some_and(|attempt| attempt.budget != gate.budget()) {
            log.attempts += 1;
            attempt = None;
            vectors.truncate(1);
        }
        // A run that ran out of budget goes on with another, and one that had no hope, with one or without a limit.
        let goes_on = match log.ended {
            Some(Stop::OutOfBudget) => log.budget != gate.budget(),
            Some(Stop::Hopeless(_)) => !gate.ends_hopeless(),
            _ => false,
        };
        if goes_on {
            log.ended = None;
        }
        let dim = gate.about().dim;
        if vectors.is_empty() || ![0, dim].contains(&vectors[0].len()) {
            return Err(CheckpointError::damaged("the mean of its iterates does not fit the problem"));
        }
        let tail = vectors.remove(0);
        if let Some(attempt) = &mut attempt {
            attempt.certifier.restore(vectors, gate.about())?;
        }
        Ok(Self { walk, rule, log, tail, attempt })
    }

    /// How far its certificates have come.
    pub(super) fn log(&self) -> &CertificateLog {
        &self.log
    }

    /// Samples that looks and certificates may still draw.
    fn allowance(&self, gate: &Gate) -> u128 {
        let share = self.rule.share;
        let by_share = (share / (1.0 - share) * drawn(gate) as f64) as u128;
        by_share.saturating_sub(gate.ledger().certificate_samples()).min(gate.left())
    }

    /// Samples that a certificate at the end may draw. A run that settled without a budget has nothing else to draw them for.
    fn allowance_at_end(&self, gate: &Gate, stop: Stop) -> u128 {
        let is_free = stop == Stop::Settled && gate.budget().is_none();
        if is_free { gate.left() } else { self.allowance(gate) }
    }

    /// What the next step must leave of the budget, for a certificate at the end.
    fn reserve(&self, gate: &Gate) -> u128 {
        let Some(budget) = gate.budget() else { return 0 };
        let most = if self.is_out_of_reach(gate) { budget / LAST_BOUND } else { self.most(budget) };
        most.saturating_sub(gate.ledger().certificate_samples()).min(self.log.expected)
    }

    /// The samples that certificates and looks may have of a budget.
    fn most(&self, budget: u128) -> u128 {
        (self.rule.share * budget as f64) as u128
    }

    /// True if, by the last look, no certificate of the target can be had for the budget: its samples are better spent on steps.
    fn is_out_of_reach(&self, gate: &Gate) -> bool {
        gate.budget().is_some_and(|budget| self.log.expected / OUT_OF_REACH > self.most(budget))
    }

    /// Where no certificate is in reach: the point that the walk would hand out by itself, unless a look at both says that the mean of the
    /// last iterates is better.
    fn better(&mut self, gate: &mut Gate) -> Result<Candidate, Halt> {
        self.fix_gamma(gate)?;
        let usual = self.usual_look(gate);
        if self.pass(gate).is_some() || self.allowance(gate) < 2 * drawn_by(usual) {
            return Ok(Candidate::Output);
        }
        let output = self.fresh(gate, Candidate::Output, usual)?;
        let tail = self.fresh(gate, Candidate::Tail, usual)?;
        let is_better = tail.squared + tail.squared_error < output.squared;
        Ok(if is_better { Candidate::Tail } else { Candidate::Output })
    }

    fn look_is_due(&self, gate: &Gate) -> bool {
        drawn(gate) >= self.log.next_look.max(FIRST_LOOK)
            && self.allowance(gate) >= drawn_by(self.usual_look(gate))
    }

    /// How many samples a look takes: a share of the run's, but not more than it needs, nor most of what there is.
    fn usual_look(&self, gate: &Gate) -> u64 {
        let needed = if self.log.looks == 0 { u128::MAX } else { self.log.resolving() };
        let samples = (drawn(gate) / LOOK_SHARE).min(needed).min(self.allowance(gate) / LOOK_ALLOWANCE);
        u64::try_from(samples).unwrap_or(u64::MAX / 2)
    }

    /// Fixes gamma for all looks and certificates of the run, where there is a term.
    fn fix_gamma(&mut self, gate: &mut Gate) -> Result<(), Halt> {
        if gate.term().is_some() {
            let gamma = match self.log.gamma.or(gate.gamma()) {
                Some(gamma) => gamma,
                None => choose_gamma(gate, self.point_of(Candidate::Last), 0, None)?,
            };
            self.log.gamma = Some(gamma);
            gate.set_gamma(Some(gamma));
        }
        Ok(())
    }

    /// Guesses from a few fresh samples whether a candidate is good enough, and starts an attempt if so.
    fn look(&mut self, gate: &mut Gate) -> Result<(), Halt> {
        self.fix_gamma(gate)?;
        for about in self.candidates(gate) {
            if self.allowance(gate) < drawn_by(self.usual_look(gate)) {
                break;
            }
            let seen = self.look_at(gate, about)?;
            self.log.sightings.push(Sighting {
                step: self.walk.view().step,
                drawn: gate.ledger().steps().samples,
                spent: gate.ledger().certificate_samples(),
                seen,
            });
            self.log.expected = self.cost(gate, &seen);
            self.log.next_look = self.worth_a_look(gate);
            self.log.note_gradient(seen.norm(), drawn(gate));
            if seen.is_hopeful(self.rule.target) {
                return self.try_certificate(gate, about, Some(seen.guess()), None);
            }
        }
        self.log.note_cost(drawn(gate));
        self.give_up(gate);
        Ok(())
    }

    /// What a look looks at. Where rounds have a price the walk takes few steps, and a mean of few is no better than the last.
    fn candidates(&self, gate: &Gate) -> Vec<Candidate> {
        match gate.round_cost() {
            0 => vec![Candidate::Tail, Candidate::Last],
            _ if self.has_few_steps(gate) => vec![Candidate::Last],
            _ => vec![Candidate::Last, Candidate::Tail],
        }
    }

    fn has_few_steps(&self, gate: &Gate) -> bool {
        gate.round_cost() > 0 && self.walk.view().step < FEW_STEPS
    }

    /// Ends a run whose target is not within reach, unless a budget or a plan ends it anyway.
    fn give_up(&mut self, gate: &Gate) {
        let is_open = gate.ends_hopeless() && self.walk.view().planned_steps.is_none();
        if let Some(hopeless) = self.log.hopeless(self.rule.target, drawn(gate)).filter(|_| is_open) {
            self.hand_out(gate, Candidate::Output, Stop::Hopeless(hopeless));
        }
    }

    /// When the run should look again: once a certificate, and the look that it needs, can be had.
    fn worth_a_look(&self, gate: &Gate) -> u128 {
        let share = self.rule.share;
        let samples = gate.ledger().certificate_samples();
        let spent = samples.saturating_add(self.log.expected).saturating_add(self.log.resolving());
        let enough = spent as f64 * (1.0 - share) / share;
        let drawn = drawn(gate);
        (enough as u128).clamp(drawn + drawn / NEXT_LOOK, 2 * drawn)
    }

    /// What is seen of a candidate. With a term, the mean of the last iterates is first moved by a short prox-gradient step.
    fn look_at(&mut self, gate: &mut Gate, about: Candidate) -> Result<Seen, Halt> {
        let usual = self.usual_look(gate);
        if self.pass(gate).is_some_and(|rows| rows <= drawn_by(usual)) {
            return self.pass_over(gate, about);
        }
        let seen = self.fresh(gate, about, usual)?;
        // What resolves the target costs a tenth of a certificate or so: worth it where that can be had too.
        if let Some(needed) = seen.wanted(self.rule.target).filter(|needed| *needed > usual) {
            let affordable = self.cost(gate, &seen).saturating_add(drawn_by(needed)) <= self.allowance(gate);
            if affordable {
                return self.fresh(gate, about, needed);
            }
        }
        Ok(seen)
    }

    /// Samples of a certificate, roughly; or the rows, where all can be passed over for less.
    fn cost(&self, gate: &Gate, seen: &Seen) -> u128 {
        let StopRule { target, delta, basis, .. } = self.rule;
        let guess = Some(Guess { norm: LIKELY * target, variance: None });
        let claim = Claim { target, delta: delta_of_attempt(delta, 1), basis, budget: None, guess };
        let sampled = claim.usual_samples(seen.planned_variance) as u128;
        match self.pass(gate) {
            Some(rows) if basis == Basis::Exact => rows,
            Some(rows) => rows.min(sampled),
            None => sampled,
        }
    }

    /// The rows that a pass over all of them reads, where a certificate may make one.
    fn pass(&self, gate: &Gate) -> Option<u128> {
        let rows = gate.about().full_pass()?;
        (rows > 0 || self.rule.basis == Basis::Exact).then_some(u128::from(rows))
    }

    fn pass_over(&mut self, gate: &mut Gate, about: Candidate) -> Result<Seen, Halt> {
        let point = self.point_of(about).to_vec();
        let mut gradient = vec![0.0; point.len()];
        gate.exact(Role::Look, &point, &mut gradient)?;
        self.log.looks += 1;
        let squared = match (gate.term(), self.log.gamma) {
            (Some(term), Some(gamma)) => Mapping { term: &**term, gamma, x: &point }.norm(&gradient).powi(2),
            _ => squared_norm(&gradient),
        };
        Ok(Seen::exactly(squared))
    }

    fn fresh(&mut self, gate: &mut Gate, about: Candidate, samples: u64) -> Result<Seen, Halt> {
        let samples_each = samples_each(samples);
        let mut point = self.point_of(about).to_vec();
        let means = Means { x: &point, role: Role::Look, attempt: self.log.looks, samples_each };
        let basis = self.rule.basis.at_distance(self.distance(&point));
        let (Some(term), Some(gamma)) = (gate.term().cloned(), self.log.gamma) else {
            let (moments, _) = means.moments(gate, 0..MEANS)?;
            self.log.looks += 1;
            return Ok(Seen::new(&moments, samples_each, basis));
        };
        let size = MEANS / GROUPS;
        let groups = (0..GROUPS).map(|k| Ok(means.moments(gate, k * size..(k + 1) * size)?.0));
        let groups: Vec<Moments> = groups.collect::<Result<_, Halt>>()?;
        self.log.looks += 1;
        if about == Candidate::Tail {
            // A mean of points of which most are at a bound, or at zero, is only near it. A short step moves it there, and not far with its noise.
            point = Mapping { term: &*term, gamma: SETTLE * gamma, x: &point }.step(&mean_of(&groups));
            self.tail.clone_from(&point);
        }
        Ok(Seen::mapped(&groups, &Mapping { term: &*term, gamma, x: &point }, samples_each, basis))
    }

    fn distance(&self, point: &[f64]) -> f64 {
        squared_distance(point, self.walk.view().start).sqrt()
    }

    /// Starts a certificate if its plan fits the allowance; at the end of a run, with whatever there is.
    fn try_certificate(
        &mut self,
        gate: &mut Gate,
        about: Candidate,
        guess: Option<Guess>,
        ending: Option<Stop>,
    ) -> Result<(), Halt> {
        self.fix_gamma(gate)?;
        let point = self.point_of(about).to_vec();
        let number = self.log.attempts + 1;
        let claim = Claim {
            target: self.rule.target,
            delta: delta_of_attempt(self.rule.delta, number),
            basis: self.rule.basis.at_distance(self.distance(&point)),
            budget: Some(
                ending.map_or_else(|| self.allowance(gate), |stop| self.allowance_at_end(gate, stop)),
            ),
            guess,
        };
        let mut certifier = match Certifier::start(gate, &point, claim, number) {
            Ok(certifier) => certifier,
            Err(CertificateError::Halt(halt)) => return Err(halt),
            // Out of reach here, but perhaps not elsewhere.
            Err(CertificateError::Claim(_)) => {
                if let Some(stop) = ending {
                    self.hand_out(gate, about, stop);
                }
                return Ok(());
            }
        };
        if ending.is_none() {
            certifier.limit_to(PATIENCE);
        }
        if ending.is_some() || certifier.wanted_samples() <= self.allowance(gate) {
            self.attempt = Some(Attempt { certifier, about, ending, budget: gate.budget() });
        }
        Ok(())
    }

    fn conclude(&mut self, gate: &Gate, certificate: Certificate, about: Candidate, ending: Option<Stop>) {
        if let Some(bound) = certificate.bound {
            self.log.note_gradient(bound, drawn(gate));
        }
        // Samples that were left out may be the ones that matter.
        let has_skipped = gate.has_skipped();
        self.log.attempts += 1;
        self.log.last = Some(if has_skipped { certificate.void() } else { certificate });
        self.log.about = about;
        self.log.next_look = drawn(gate) + drawn(gate) / NEXT_ATTEMPT;
        // Of a recipe's output a theorem speaks too, so that its end is the planned one, certified or not.
        let theorem = about == Candidate::Output && self.walk.view().promised;
        self.log.ended = match certificate.verdict {
            Verdict::Certified if has_skipped => Some(Stop::Void),
            Verdict::Certified if theorem => ending.or(Some(Stop::Certified)),
            Verdict::Certified => Some(Stop::Certified),
            Verdict::Void => Some(Stop::Void),
            // More samples would not help.
            Verdict::NoNoise => ending.or(Some(Stop::Void)),
            _ => ending,
        };
        self.log.budget = gate.budget();
    }

    /// At its planned end a run certifies the point that its theorem speaks of; else, the one that is likely to be the
    /// best.
    fn try_at_the_end(&mut self, gate: &mut Gate, stop: Stop) -> Result<(), Halt> {
        let theorem = stop == Stop::PlannedEnd && self.walk.view().promised;
        if stop.is_lost() || self.allowance_at_end(gate, stop) == 0 {
            // The point that the last attempt was about, if there was one since the last step.
            let attempted = self.log.last.is_some() && !theorem;
            self.hand_out(gate, if attempted { self.log.about } else { Candidate::Output }, stop);
            return Ok(());
        }
        let (about, guess) = if theorem {
            (Candidate::Output, None)
        } else {
            // A run that settled has itself chosen its last point; of any other the mean is the better bet.
            let about = match stop {
                Stop::Settled => Candidate::Last,
                _ if self.has_few_steps(gate) => Candidate::Output,
                _ if self.is_out_of_reach(gate) || gate.term().is_some() => self.better(gate)?,
                _ => Candidate::Tail,
            };
            (about, Some(Guess { norm: LIKELY * self.rule.target, variance: None }))
        };
        self.try_certificate(gate, about, guess, Some(stop))
    }

    /// Ends the run at this point. What was said of another is not said of it.
    fn hand_out(&mut self, gate: &Gate, about: Candidate, stop: Stop) {
        if about != self.log.about {
            self.log.last = None;
        }
        (self.log.about, self.log.ended, self.log.budget) = (about, Some(stop), gate.budget());
    }

    fn point_of(&self, candidate: Candidate) -> &[f64] {
        let view = self.walk.view();
        match candidate {
            Candidate::Last => view.x,
            Candidate::Tail if self.tail.is_empty() => view.x,
            Candidate::Tail => &self.tail,
            Candidate::Output => view.point,
        }
    }

    fn update_tail(&mut self, gate: &Gate) {
        let View { x, step, .. } = self.walk.view();
        let weight = (TAIL_POWER + 1.0) / (step as f64 + TAIL_POWER);
        if self.tail.is_empty() {
            self.tail.extend(x);
        }
        self.tail.iter_mut().zip(x).for_each(|(tail, x)| *tail += weight * (x - *tail));
        gate.keep_inside(&mut self.tail);
    }

    /// Does something whole or, if it fails or is interrupted, not at all.
    fn whole(
        &mut self,
        gate: &mut Gate,
        what: impl FnOnce(&mut Self, &mut Gate) -> Result<(), Halt>,
    ) -> Result<Advance, Halt> {
        let before = (self.log.clone(), gate.ledger().clone());
        let of_term = gate.term().map(|_| (self.tail.clone(), gate.gamma()));
        let done = what(self, gate);
        if done.as_ref().is_err_and(Halt::drops_work) {
            self.log = before.0;
            gate.rewind(before.1);
            if let Some((tail, gamma)) = of_term {
                self.tail = tail;
                gate.set_gamma(gamma);
            }
        }
        done.map(|()| if self.attempt.is_some() { Advance::Planned } else { Advance::Checked })
    }

    /// Goes on with the attempt under way.
    fn attempt(&mut self, gate: &mut Gate) -> Result<Option<Advance>, Halt> {
        let Some(Attempt { certifier, about, ending, .. }) = &mut self.attempt else { return Ok(None) };
        let (about, ending) = (*about, *ending);
        let Some(certificate) = certifier.advance(gate)? else { return Ok(Some(Advance::Checked)) };
        self.log.made = certifier.made();
        self.attempt = None;
        // Which attempt is the last was decided by the samples: it is only as sure as all of them together.
        let certificate = Certificate { delta: self.rule.delta, ..certificate };
        self.conclude(gate, certificate, about, ending);
        Ok(Some(Advance::Tried(self.log.last.unwrap_or(certificate))))
    }
}

impl<W: Walk> Certified<W> {
    /// Ends a run that met an answer to a look or a certificate that is not finite.
    fn lose(&mut self, gate: &mut Gate) -> Result<Advance, Halt> {
        let step = self.walk.view().step;
        let point = gate.suspect().map(<[f64]>::to_vec).unwrap_or_default();
        let mixed = gate.blame(&point, SINGLES, step)?;
        let stop = mixed.map_or(Stop::Diverged(Divergence::Gradient { step }), Stop::NotFinite);
        self.attempt = None;
        self.hand_out(gate, Candidate::Output, stop);
        Ok(Advance::Stop(stop))
    }
}

/// Samples of the run itself.
fn drawn(gate: &Gate) -> u128 {
    gate.ledger().steps().samples
}

impl<W: Walk> Walk for Certified<W> {
    fn advance(&mut self, gate: &mut Gate) -> Result<Advance, Halt> {
        match self.attempt(gate) {
            Ok(None) => {}
            Ok(Some(advance)) => return Ok(advance),
            Err(Halt::NotFinite { .. }) => return self.lose(gate),
            Err(halt) => return Err(halt),
        }
        if let Some(stop) = self.log.ended {
            return Ok(Advance::Stop(stop));
        }
        if self.look_is_due(gate) {
            return match self.whole(gate, Self::look) {
                Err(Halt::NotFinite { .. }) => self.lose(gate),
                looked => looked,
            };
        }
        gate.hold(self.reserve(gate));
        let advance = self.walk.advance(gate);
        gate.hold(0);
        let stop = match advance {
            Ok(Advance::Stop(stop)) => stop,
            Err(Halt::OverBudget { .. }) => Stop::OutOfBudget,
            Err(halt) => return Err(halt),
            Ok(advance) => {
                if let Advance::Step(_) = advance {
                    // What was said of the last point is not said of this one.
                    self.log.last = None;
                    self.update_tail(gate);
                }
                return Ok(advance);
            }
        };
        match self.whole(gate, |certified, gate| certified.try_at_the_end(gate, stop)) {
            Err(Halt::NotFinite { .. }) => self.lose(gate),
            tried => tried,
        }
    }

    fn view(&self) -> View<'_> {
        let about = if self.log.ended.is_some() { self.log.about } else { Candidate::Output };
        let view = self.walk.view();
        let ended = self.log.ended;
        View { point: self.point_of(about), certification: Some(&self.log), ended, exact: None, ..view }
    }

    fn save<'a>(&'a self, to: &mut Saver<'a>) {
        let Self { walk, rule, log, tail, attempt } = self;
        walk.save(to);
        let vectors = attempt.iter().flat_map(|attempt| attempt.certifier.vectors());
        let saved = Saved { rule: *rule, log, attempt: attempt.as_ref() };
        to.put(SECTION, &saved, [tail.as_slice()].into_iter().chain(vectors));
    }
}
