//! A certificate as the end of a run: tried when it looks worth it, at a bounded share of the cost.

use serde::{Deserialize, Serialize};

use super::{Advance, Stop, Walk};
use crate::certificate::means::Draws;
use crate::certificate::sequential::UNSURE;
use crate::certificate::{
    Certificate, Certifier, Grade, Guess, Named, Request, RequestError, StartCertificateError, Verdict,
    delta_of_attempt, demand,
};
use crate::checkpoint::Checkpoint;
use crate::draws::Role;
use crate::kernels::{squared_distance, squared_norm};
use crate::moments::Moments;
use crate::oracle::{Oracle, OracleError};
use crate::state::State;

/// When a run may stop on a certificate of |grad f| <= target.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StopRule {
    /// eps.
    pub target: f64,
    /// The probability that any certificate of the run is wrong. Attempts share it.
    pub delta: f64,
    /// On what certificates rest; the distance of [`Grade::Growth`] is the run's.
    pub grade: Grade,
    /// The largest share of all samples that certificates, and looks whether to try one, may take.
    pub share: f64,
    /// The most samples that run and certificates may draw together.
    pub budget: Option<u128>,
}

/// How far a run's certificates have come. Part of its checkpoint: no error is spent twice.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Progress {
    /// Certificates tried.
    pub attempts: u64,
    /// Samples that they and the looks before them drew. The run's own ledger does not count them.
    pub samples: u128,
    /// The last one.
    pub last: Option<Certificate>,
    /// Looks whether to try one.
    looks: u64,
    /// The run looks again when it has drawn this many samples.
    next_look: u128,
    /// What a certificate would cost, by the last look.
    expected: u128,
    /// Which point the last attempt was about.
    about: Candidate,
    /// How the run ended.
    ended: Option<Stop>,
    /// The mark of the rule, and its budget: attempts that were made by one rule do not count for another.
    rule: Option<(u32, Option<u128>)>,
    /// The mean of the iterates, with weights that grow like t^4: of the last ones, for the most part.
    #[serde(skip)]
    pub(crate) tail: Vec<f64>,
}

impl Progress {
    /// Samples of a look that resolves the target, roughly.
    fn resolving(&self) -> u128 {
        self.expected / 8
    }

    /// What fits on a line.
    pub(crate) fn without_vectors(&self) -> Self {
        Self { tail: Vec::new(), ..*self }
    }

    /// Which point the run handed out, once it has ended.
    pub fn handed_out(&self) -> Option<Candidate> {
        self.ended.map(|_| self.about)
    }

    /// Whether the last certificate succeeded.
    pub fn is_certified(&self) -> bool {
        self.last.is_some_and(|certificate| certificate.verdict == Verdict::Certified)
    }
}

/// A point that may be certified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Candidate {
    /// x_t.
    Last,
    /// The mean of the last iterates. Near the end it has far less noise than each of them.
    Tail,
    /// What the run hands out at its end.
    #[default]
    Output,
}

impl Candidate {
    /// Which point it is, in words.
    pub fn words(&self) -> &'static str {
        match self {
            Self::Last => "the last iterate",
            Self::Tail => "the mean of the last iterates",
            Self::Output => "the recipe's output",
        }
    }
}

/// See [`Walk::certified`].
#[derive(Debug)]
pub struct Certified<'o, W> {
    walk: W,
    oracle: Named<'o>,
    rule: StopRule,
    seed: u64,
    progress: Progress,
    attempt: Option<Attempt<'o>>,
}

#[derive(Debug)]
struct Attempt<'o> {
    certifier: Certifier<'o>,
    about: Candidate,
    /// Set where the run is at its end whatever the answer.
    ending: Option<Stop>,
    /// The progress before the look that led to it.
    before: Progress,
}

/// Sub-batches of a look, and the parts of the run's samples and of the allowance that it may take.
const LOOK_MEANS: u64 = 64;
const LOOK_SHARE: u128 = 64;
const LOOK_ALLOWANCE: u128 = 8;
/// The first look comes when the run has drawn so many samples.
const FIRST_LOOK: u128 = 512;
/// From one look to the next the run's samples grow by a quarter at least and double at most, after a failed attempt they
/// grow by a half.
const NEXT_LOOK: u128 = 4;
const NEXT_ATTEMPT: u128 = 2;
/// The weights of [`Progress::tail`] grow like this power of t. Of the first half of the run it has 3 %.
const TAIL_POWER: f64 = 4.0;
/// A gradient that looks larger than this share of the target is not tried: the bound would not fit in between.
const HOPEFUL: f64 = 0.7;
/// While the run can still move on, a certificate gets this many times what it planned: a gradient close to the target
/// would cost more than another point.
const PATIENCE: u128 = 2;
/// A look resolves the gradient if its standard error is about this share of the target.
const RESOLVED: f64 = 0.7;
/// A tail that is worth a certificate has a gradient of about this share of the target.
const LIKELY: f64 = 0.3;

impl<'o, W: Walk> Certified<'o, W> {
    /// Ends `walk`, a run on `oracle`, by the rule. `progress` is that of its checkpoint, if it is resumed.
    pub(crate) fn new(
        walk: W,
        oracle: &'o dyn Oracle,
        rule: StopRule,
        seed: u64,
        progress: Option<Progress>,
    ) -> Result<Self, RequestError> {
        rule.check(oracle)?;
        let mut progress = progress.unwrap_or_default();
        if let Some((mark, budget)) = progress.rule {
            if mark != rule.mark() {
                return Err(RequestError::OtherRule);
            }
            // A run that ran out of budget goes on with another.
            if progress.ended == Some(Stop::OutOfBudget) && budget != rule.budget {
                progress.ended = None;
            }
        }
        progress.rule = Some((rule.mark(), rule.budget));
        Ok(Self { walk, oracle: Named(oracle), rule, seed, progress, attempt: None })
    }

    fn drawn(&self) -> u128 {
        self.walk.state().ledger.samples
    }

    /// Samples that looks and certificates may still draw.
    fn allowance(&self) -> u128 {
        let StopRule { share, budget, .. } = self.rule;
        let by_share = (share / (1.0 - share) * self.drawn() as f64) as u128;
        let by_budget = budget.map_or(u128::MAX, |budget| budget.saturating_sub(self.drawn()));
        by_share.min(by_budget).saturating_sub(self.progress.samples)
    }

    /// Whether the next step would leave too little of the budget: for itself, or for a certificate at the end.
    fn budget_ends(&self) -> bool {
        let Some(budget) = self.rule.budget else { return false };
        let Progress { samples, expected, .. } = self.progress;
        let most = (self.rule.share * budget as f64) as u128;
        let kept = samples.max(most.min(samples.saturating_add(expected)));
        self.drawn() + kept + u128::from(self.walk.next_samples()) > budget
    }

    fn look_is_due(&self) -> bool {
        self.drawn() >= self.progress.next_look.max(FIRST_LOOK)
            && self.allowance() >= drawn_by_look(self.usual_look())
    }

    /// How many samples a look takes: a share of the run's, but not more than it needs, nor most of what there is.
    fn usual_look(&self) -> u64 {
        let needed = if self.progress.looks == 0 { u128::MAX } else { self.progress.resolving() };
        let samples = (self.drawn() / LOOK_SHARE).min(needed).min(self.allowance() / LOOK_ALLOWANCE);
        u64::try_from(samples).unwrap_or(u64::MAX / 2)
    }

    /// Guesses from a few fresh samples whether a candidate is good enough, and starts an attempt if so.
    fn look(&mut self) -> Result<(), OracleError> {
        let before = self.progress.clone();
        for about in [Candidate::Tail, Candidate::Last] {
            if self.allowance() < drawn_by_look(self.usual_look()) {
                break;
            }
            let point = self.point_of(about).to_vec();
            let seen = self.look_at(&point)?;
            self.progress.expected = self.cost(&seen);
            self.progress.next_look = self.worth_a_look();
            if seen.is_hopeful(self.rule.target) {
                return self.try_certificate(about, Some(seen.guess()), None, before);
            }
        }
        Ok(())
    }

    /// When the run should look again: once a certificate, and the look that it needs, can be had.
    fn worth_a_look(&self) -> u128 {
        let Progress { samples, expected, .. } = self.progress;
        let StopRule { share, .. } = self.rule;
        let spent = samples.saturating_add(expected).saturating_add(self.progress.resolving());
        let enough = spent as f64 * (1.0 - share) / share;
        let drawn = self.drawn();
        (enough as u128).clamp(drawn + drawn / NEXT_LOOK, 2 * drawn)
    }

    fn look_at(&mut self, point: &[f64]) -> Result<Seen, OracleError> {
        let usual = self.usual_look();
        if let Some(rows) = self.pass().filter(|rows| *rows <= drawn_by_look(usual)) {
            return self.pass_over(point, rows);
        }
        let seen = self.fresh(point, usual)?;
        // What resolves the target costs a tenth of a certificate or so: worth it where that can be had too.
        let resolved = (RESOLVED * self.rule.target).powi(2);
        let needed = (seen.variance / resolved) as u64;
        let affordable = self.cost(&seen).saturating_add(drawn_by_look(needed)) <= self.allowance();
        let open = seen.squared <= (HOPEFUL * self.rule.target).powi(2) + 3.0 * seen.squared_error;
        if open && seen.squared_error > resolved && needed > usual && affordable {
            return self.fresh(point, needed);
        }
        Ok(seen)
    }

    /// Samples of a certificate, roughly; or the rows, where all can be passed over for less.
    fn cost(&self, seen: &Seen) -> u128 {
        let StopRule { target, delta, grade, .. } = self.rule;
        let guess = Some(Guess { norm: LIKELY * target, variance: None });
        let request = Request { target, delta: delta_of_attempt(delta, 1), grade, budget: None, guess };
        let sampled = request.wanted_samples(seen.planned_variance) as u128;
        match self.pass() {
            Some(rows) if grade == Grade::Exact => rows,
            Some(rows) => rows.min(sampled),
            None => sampled,
        }
    }

    /// The rows that a pass over all of them reads, where a certificate may make one.
    fn pass(&self) -> Option<u128> {
        let rows = self.oracle.0.full_pass()?;
        (rows > 0 || self.rule.grade == Grade::Exact).then_some(u128::from(rows))
    }

    fn pass_over(&mut self, point: &[f64], rows: u128) -> Result<Seen, OracleError> {
        let mut gradient = vec![0.0; point.len()];
        self.oracle.0.exact_gradient(point, &mut gradient)?;
        self.progress.looks += 1;
        self.progress.samples += rows;
        let squared = squared_norm(&gradient);
        Ok(Seen { squared, squared_error: 0.0, variance: 0.0, planned_variance: 0.0, exact: true })
    }

    fn fresh(&mut self, point: &[f64], samples: u64) -> Result<Seen, OracleError> {
        let samples_each = each_of_look(samples);
        let (oracle, attempt) = (self.oracle.0, self.progress.looks);
        let draws = Draws { oracle, x: point, seed: self.seed, role: Role::Look, attempt, samples_each };
        let moments = draws.moments(0..LOOK_MEANS)?;
        self.progress.looks += 1;
        self.progress.samples += drawn_by_look(samples);
        Ok(Seen::new(&moments, samples_each, self.rule.grade.at_distance(self.distance(point))))
    }

    fn distance(&self, point: &[f64]) -> f64 {
        squared_distance(point, &self.walk.state().start).sqrt()
    }

    /// Starts a certificate if its plan fits the allowance; at the end of a run, with whatever there is.
    fn try_certificate(
        &mut self,
        about: Candidate,
        guess: Option<Guess>,
        ending: Option<Stop>,
        before: Progress,
    ) -> Result<(), OracleError> {
        let point = self.point_of(about).to_vec();
        let number = self.progress.attempts + 1;
        let request = Request {
            target: self.rule.target,
            delta: delta_of_attempt(self.rule.delta, number),
            grade: self.rule.grade.at_distance(self.distance(&point)),
            budget: Some(self.allowance()),
            guess,
        };
        let mut certifier = match Certifier::start(self.oracle.0, &point, request, self.seed, number) {
            Ok(certifier) => certifier,
            Err(StartCertificateError::Oracle(error)) => return Err(error),
            // Out of reach here, but perhaps not elsewhere.
            Err(StartCertificateError::Request(_) | StartCertificateError::Interrupted) => {
                if let Some(stop) = ending {
                    self.hand_out(about, stop);
                }
                return Ok(());
            }
        };
        if ending.is_none() {
            certifier.be_patient(PATIENCE);
        }
        if ending.is_some() || certifier.wanted_samples() <= self.allowance() {
            self.attempt = Some(Attempt { certifier, about, ending, before });
        } else {
            self.progress.samples += certifier.answer(Verdict::OutOfBudget).samples;
        }
        Ok(())
    }

    fn conclude(&mut self, certificate: Certificate, about: Candidate, ending: Option<Stop>) {
        let early = (certificate.verdict == Verdict::Certified).then_some(Stop::Certified);
        self.progress.attempts += 1;
        self.progress.samples += certificate.samples;
        // Which attempt is the last was decided by the samples: it is only as sure as all of them together.
        self.progress.last = Some(Certificate { delta: self.rule.delta, ..certificate });
        self.progress.about = about;
        self.progress.next_look = self.drawn() + self.drawn() / NEXT_ATTEMPT;
        // Of the output a theorem speaks too, so that its end is the planned one, certified or not.
        self.progress.ended = if about == Candidate::Output { ending.or(early) } else { early.or(ending) };
    }

    /// At its planned end a run certifies the point that its theorem speaks of; else, the one that is likely to be the
    /// best.
    fn try_at_the_end(&mut self, stop: Stop) -> Result<(), OracleError> {
        let theorem = stop == Stop::PlannedEnd && self.walk.has_theorem();
        if matches!(stop, Stop::Diverged(_)) || self.allowance() == 0 {
            // The point that the last attempt was about, if there was one since the last step.
            let attempted = self.progress.last.is_some() && !theorem;
            self.hand_out(if attempted { self.progress.about } else { Candidate::Output }, stop);
            return Ok(());
        }
        let (about, guess) = if theorem {
            (Candidate::Output, None)
        } else {
            (Candidate::Tail, Some(Guess { norm: LIKELY * self.rule.target, variance: None }))
        };
        self.try_certificate(about, guess, Some(stop), self.progress.clone())
    }

    /// Ends the run at this point. What was said of another is not said of it.
    fn hand_out(&mut self, about: Candidate, stop: Stop) {
        if about != self.progress.about {
            self.progress.last = None;
        }
        (self.progress.about, self.progress.ended) = (about, Some(stop));
    }

    fn point_of(&self, candidate: Candidate) -> &[f64] {
        match candidate {
            Candidate::Last => &self.walk.state().x,
            Candidate::Tail if self.progress.tail.is_empty() => &self.walk.state().x,
            Candidate::Tail => &self.progress.tail,
            Candidate::Output => self.walk.point(),
        }
    }

    fn update_tail(&mut self) {
        let State { x, step, .. } = self.walk.state();
        let weight = (TAIL_POWER + 1.0) / (*step as f64 + TAIL_POWER);
        let tail = &mut self.progress.tail;
        if tail.is_empty() {
            tail.clone_from(x);
        }
        tail.iter_mut().zip(x).for_each(|(tail, x)| *tail += weight * (x - *tail));
    }
}

impl<W: Walk> Walk for Certified<'_, W> {
    fn advance(&mut self) -> Result<Advance, OracleError> {
        if let Some(Attempt { certifier, about, ending, .. }) = &mut self.attempt {
            let (about, ending) = (*about, *ending);
            if let Some(certificate) = certifier.advance()? {
                self.attempt = None;
                self.conclude(certificate, about, ending);
            }
            return Ok(Advance::Check);
        }
        if let Some(stop) = self.progress.ended {
            return Ok(Advance::Stop(stop));
        }
        if self.look_is_due() {
            self.look()?;
            return Ok(Advance::Check);
        }
        let advance =
            if self.budget_ends() { Advance::Stop(Stop::OutOfBudget) } else { self.walk.advance()? };
        match advance {
            Advance::Stop(stop) => {
                self.try_at_the_end(stop)?;
                Ok(Advance::Check)
            }
            Advance::Step(record) => {
                // What was said of the last point is not said of this one.
                self.progress.last = None;
                self.update_tail();
                Ok(Advance::Step(record))
            }
            Advance::Check => Ok(Advance::Check),
        }
    }

    fn state(&self) -> &State {
        self.walk.state()
    }

    fn next_samples(&self) -> u64 {
        self.walk.next_samples()
    }

    fn planned_steps(&self) -> u128 {
        self.walk.planned_steps()
    }

    /// An attempt under way is not part of it: a resumed run begins it again, with the same samples.
    fn checkpoint(&self) -> Checkpoint {
        let progress = self.attempt.as_ref().map_or(&self.progress, |attempt| &attempt.before);
        Checkpoint { certification: Some(progress.clone()), ..self.walk.checkpoint() }
    }

    /// The point of the last certificate, where the run ended with one, successful or not.
    fn point(&self) -> &[f64] {
        self.point_of(if self.progress.ended.is_some() { self.progress.about } else { Candidate::Output })
    }

    fn certification(&self) -> Option<&Progress> {
        Some(&self.progress)
    }

    fn has_theorem(&self) -> bool {
        self.walk.has_theorem()
    }
}

impl StopRule {
    /// Tells rules apart that differ in more than their budget.
    fn mark(&self) -> u32 {
        let bytes =
            serde_json::to_vec(&Self { budget: None, ..*self }).expect("plain data always serialises");
        crc32fast::hash(&bytes)
    }

    /// Refuses numbers out of their ranges, and a grade that is no certificate or that the oracle cannot give.
    pub fn check(&self, oracle: &dyn Oracle) -> Result<(), RequestError> {
        let Self { target, delta, grade, share, .. } = *self;
        // Attempts have parts of delta, which a request allows down to 1e-100.
        demand("delta", "at least 1e-90 and below 1", delta, (1e-90..1.0).contains(&delta))?;
        demand("share", "at least 0 and below 1", share, (0.0..1.0).contains(&share))?;
        if grade == Grade::Approximate {
            return Err(RequestError::NoCertificate);
        }
        let grade = grade.at_distance(0.0);
        Request { target, delta, grade, budget: None, guess: None }.check_numbers(oracle)
    }
}

/// Samples of each of the means of a look of about so many samples.
fn each_of_look(samples: u64) -> u64 {
    samples.div_ceil(LOOK_MEANS).max(1)
}

/// How many samples such a look draws.
fn drawn_by_look(samples: u64) -> u128 {
    u128::from(LOOK_MEANS) * u128::from(each_of_look(samples))
}

/// What a look saw of a candidate. Nothing is claimed of it.
#[derive(Debug, Clone, Copy)]
struct Seen {
    /// |grad f|^2, without bias; may be negative.
    squared: f64,
    /// The square of the mean's standard error.
    squared_error: f64,
    /// Of one sample.
    variance: f64,
    /// Of one sample, as a certificate will take it.
    planned_variance: f64,
    /// Whether it was no guess.
    exact: bool,
}

impl Seen {
    fn new(moments: &Moments, samples_each: u64, grade: Grade) -> Self {
        let variance = moments.variance() * samples_each as f64;
        Self {
            squared: moments.squared_mean(),
            squared_error: moments.error2(),
            variance,
            planned_variance: grade.declared_variance().unwrap_or(UNSURE * variance),
            exact: false,
        }
    }

    /// For the plan of a certificate: what is not seen is not zero.
    fn guess(&self) -> Guess {
        let squared_norm = self.squared.max(0.0) + 0.1 * self.squared_error;
        Guess { norm: squared_norm.sqrt(), variance: (!self.exact).then_some(self.variance) }
    }

    fn is_hopeful(&self, target: f64) -> bool {
        if self.exact {
            return self.squared <= target * target;
        }
        // A look that was to resolve may have been planned by too small a variance.
        self.squared_error <= 2.0 * (RESOLVED * target).powi(2)
            && self.squared <= (HOPEFUL * target).powi(2) + self.squared_error
    }
}
