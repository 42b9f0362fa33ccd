//! A certificate made again, from what a result says: whoever has the oracle need not believe the run.
//!
//! The samples of a certificate have addresses, so that they can be drawn again. [`verify`] does that at the point that a result hands out, computes every
//! number of the certificate anew, and compares it with what was written, bit for bit. It uses nothing of the run but its seed, the number of the attempt
//! and the plan; `docs/formats.md` says what is compared, and what a verification cannot see.
//!
//! ```
//! use std::sync::Arc;
//!
//! use pasta_opt::certificate::Basis;
//! use pasta_opt::prelude::*;
//! use pasta_opt::problems::SineBowl;
//! use pasta_opt::run::{Problem, Task};
//! use pasta_opt::verify::{Given, verify};
//!
//! let noise = Noise { growth: 0.0, floor: 1.0, tail: Tail::Gaussian };
//! let oracle = Noisy::new(Box::new(SineBowl { dimension: 1 }), noise, vec![1.2])?;
//! let problem = Arc::new(Problem::of(Arc::new(oracle), vec![1.2]));
//! let rule = StopRule { target: 0.1, delta: 0.05, basis: Basis::Variance(1.0), share: 0.5 };
//! let task = Task { certify: Some(rule), ..Task::default() };
//! let mut run = Run::start(Arc::clone(&problem), task, Arc::default())?;
//! let stop = run.finish()?;
//! let result = serde_json::to_string(&run.report(stop))?;
//!
//! let verified = verify(&result, &Given::of(&problem), Arc::default())?;
//! assert!(verified.sentence().starts_with("verified: "));
//! let altered = result.replacen("\"target\":0.1", "\"target\":0.09", 1);
//! assert!(verify(&altered, &Given::of(&problem), Arc::default()).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::certificate::{
    Basis, Certificate, CertificateError, Certifier, Consequence, Made, Quantity, Spent, Verdict,
    delta_of_attempt, gamma_near, number_by_hand, rounded_up, seed_by_hand,
};
use crate::digest::Digest;
use crate::draws::{Role, derived_seed};
use crate::gate::{Gate, Halt, OnNan};
use crate::ledger::Ledger;
use crate::method::{EXACT, UNIVERSAL};
use crate::run::{Certified, Named, OfStart, Problem, Task, Truths, skipped};
use crate::universal::LAST_LANE;
use crate::walk::Candidate;

/// What a result is compared with: all that its reader has besides.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Given<'a> {
    /// What was minimised.
    pub problem: &'a Problem,
    /// What was asked for, where that is known.
    pub task: Option<&'a Task>,
    /// The point, where the result names a file instead.
    pub point: Option<Vec<f64>>,
    /// The files of a simulator, as they are now; `None` if they are not to be compared.
    pub files: Option<Vec<Named>>,
    /// True if nothing is known of where the run started, so that a distance from there is taken as it is written.
    pub start_unknown: bool,
}

impl<'a> Given<'a> {
    /// A problem, and nothing else.
    pub fn of(problem: &'a Problem) -> Self {
        Self { problem, task: None, point: None, files: None, start_unknown: false }
    }
}

/// A certificate that was made again, with the same bits.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Verified {
    /// The certificate.
    pub certificate: Certificate,
    /// How it was made.
    pub made: Made,
    /// The identity of the oracle that answered.
    pub oracle: String,
    /// The seed of the run.
    pub seed: u64,
}

impl Verified {
    /// What was done, in a sentence.
    pub fn sentence(&self) -> String {
        let Self { certificate, made, .. } = self;
        let drawn = match (certificate.basis, certificate.rows, made.sub_batches) {
            (Basis::Exact, Some(rows), _) => format!("all {rows} rows read again"),
            (Basis::Exact, None, _) => "the oracle's own formula computed again".into(),
            (_, _, 1) => format!("1 sub-batch of {} samples redrawn", made.samples_each),
            (_, _, count) => format!("{count} sub-batches of {} samples redrawn", made.samples_each),
        };
        let bound = match (certificate.bound, certificate.basis) {
            (Some(norm), Basis::Exact) => format!("|grad f| = {} reproduced to the bit", rounded_up(norm)),
            (Some(bound), _) => format!("bound {} reproduced to the bit", rounded_up(bound)),
            (None, _) => "no bound, as it says".into(),
        };
        let verdict = match certificate.verdict {
            Verdict::Certified => String::new(),
            other => format!("; the verdict is: {}", other.words()),
        };
        format!("verified: {drawn}, {bound}{verdict}")
    }
}

/// Why a result is not verified.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unverified {
    /// A number, or a text, is not what it should be.
    #[error("not verified: {name} is {written} as written, but {recomputed} if computed again")]
    Differs {
        /// Its path in the result.
        name: String,
        /// What the result says.
        written: String,
        /// What it should say.
        recomputed: String,
    },
    /// It is no result, or a damaged one.
    #[error("not a result that can be read: {0}")]
    Unreadable(String),
    /// There is nothing that could be computed again.
    #[error("nothing to verify: {0}")]
    Nothing(&'static str),
    /// The certificate cannot be made again with this oracle.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
}

/// The keys of a result that are read. All of them are compared with something.
#[derive(Deserialize)]
struct Written<'a> {
    format: Option<u32>,
    seed: u64,
    problem: String,
    point: Option<Vec<f64>>,
    by: Option<String>,
    #[serde(default)]
    method: Option<String>,
    #[serde(borrow)]
    stop: Option<Stopped<'a>>,
    asked: Option<bool>,
    #[serde(borrow)]
    ledger: &'a RawValue,
    #[serde(borrow, default)]
    truth: Option<&'a RawValue>,
    #[serde(borrow, default)]
    of_start: Option<&'a RawValue>,
    #[serde(borrow, default)]
    certificate: Option<&'a RawValue>,
    #[serde(borrow)]
    rests_on: Option<Rests<'a>>,
}

#[derive(Deserialize)]
struct Stopped<'a> {
    kind: &'a str,
}

#[derive(Deserialize)]
struct Rests<'a> {
    oracle: String,
    #[serde(borrow)]
    files: &'a RawValue,
}

/// What of a certificate cannot be computed, but only be consistent.
#[derive(Deserialize)]
struct Claimed {
    delta: f64,
    verdict: Verdict,
    about: Option<Candidate>,
    attempts: u64,
    by_hand: bool,
    attempt: Option<u64>,
    gaps: Vec<Declared>,
    #[serde(flatten)]
    of: Quantity,
    made: Option<Made>,
}

#[derive(Deserialize)]
struct Declared {
    declared: Consequence,
}

impl Claimed {
    fn gamma(&self) -> Option<f64> {
        match self.of {
            Quantity::GradientMapping { gamma } => Some(gamma),
            _ => None,
        }
    }
}

/// The format of results, and of every answer for programs.
pub const FORMAT: u32 = 2;

/// Makes the certificate of a result again, and compares. `result` is the text of result.json, of a [`Report`](crate::run::Report), or of what `pasta certify --json`
/// prints. It stops when the flag is set.
pub fn verify(result: &str, given: &Given<'_>, stop: Arc<AtomicBool>) -> Result<Verified, Unverified> {
    let written: Written<'_> = read(result)?;
    if let Some(format) = written.format.filter(|format| *format != FORMAT) {
        return Err(Unverified::Unreadable(format!(
            "it is of format {format}, and this version verifies format {FORMAT}; use the version that wrote it"
        )));
    }
    let text = written.certificate.ok_or(Unverified::Nothing("the result has no certificate"))?;
    let claimed: Claimed = read(text.get())?;
    if claimed.of == Quantity::Gap {
        return Err(Unverified::Nothing("gaps of fits are not verified"));
    }
    let made = claimed.made.ok_or(Unverified::Nothing("the certificate does not say how it was made"))?;
    let place = Place { written, claimed, made, given };
    let x = place.before()?;
    if !given.problem.oracle.about().shared {
        return Err(Unverified::Nothing("the samples of this oracle do not follow from their seeds"));
    }
    let on_nan = given.task.map_or_else(OnNan::default, |task| task.on_nan);
    let mut gate = Gate::over(Arc::clone(&given.problem.oracle), made.seed)
        .with_stop(stop)
        .with_on_nan(on_nan)
        .with_term(given.problem.term.clone())
        .with_gamma(place.claimed.gamma())
        .without_check();
    let mut certifier = Certifier::start(&mut gate, &x, made.claim, made.attempt)?;
    certifier.set_group(made.group);
    let again = |certifier: &Certifier| Made { before: made.before, ..certifier.made().unwrap_or(made) };
    // A plan that is not the one that was written would perhaps draw for long.
    let plan = |made: Made| Made { sub_batches: 0, variance: None, mean: 0.0, scatter: 0.0, ..made };
    compare("certificate.made", &raw(&plan(made))?, &raw(&plan(again(&certifier)))?)?;
    let certificate = loop {
        if let Some(certificate) = certifier.advance(&mut gate).map_err(CertificateError::Halt)? {
            break certificate;
        }
        let drawn = again(&certifier).sub_batches;
        if drawn > made.sub_batches {
            let more = format!("at least {drawn}");
            return Err(differs("certificate.made.sub_batches", &made.sub_batches, &more));
        }
    };
    let again = again(&certifier);
    let certificate = place.after(text, &x, certificate, &again, gate.ledger())?;
    let oracle = given.problem.oracle.about().identity.clone();
    Ok(Verified { certificate, made, oracle, seed: place.written.seed })
}

/// A result, and what it is compared with.
struct Place<'a> {
    written: Written<'a>,
    claimed: Claimed,
    made: Made,
    given: &'a Given<'a>,
}

impl Place<'_> {
    /// True if the certificate was made by hand, and not by a run.
    fn is_by_hand(&self) -> bool {
        self.claimed.by_hand
    }

    /// What can be compared before anything is drawn. The point, if all is well.
    fn before(&self) -> Result<Vec<f64>, Unverified> {
        let Self { written, claimed, made, given } = self;
        match claimed.of {
            Quantity::GradientMapping { .. } if claimed.by_hand => {
                return Err(Unverified::Nothing(
                    "gradient mappings that are certified by hand are not verified",
                ));
            }
            Quantity::Gradient | Quantity::GradientMapping { .. } | Quantity::Gap => {}
            Quantity::Moreau { .. } => {
                return Err(Unverified::Nothing("certificates of the Moreau envelope are not verified"));
            }
        }
        if claimed.verdict == Verdict::Interrupted {
            return Err(Unverified::Nothing("the certificate was interrupted"));
        }
        if !self.is_by_hand() && claimed.about.is_none() {
            return Err(Unverified::Nothing("the certificate is not about the point that was handed out"));
        }
        let point = written.point.as_ref().or(given.point.as_ref());
        let x = point.ok_or(Unverified::Nothing("the result has no point"))?;
        same("the number of coordinates", &x.len(), &given.problem.start.len())?;
        same("problem", &written.problem, &given.problem.words)?;
        if let Some(rests_on) = &written.rests_on {
            same("rests_on.oracle", &rests_on.oracle, &given.problem.oracle.about().identity)?;
            if let Some(files) = &given.files {
                compare("rests_on.files", rests_on.files, &raw(files)?)?;
            }
        }
        same("certificate.made.point", &made.point, &Digest::of_point(x))?;
        self.check_attempt(x)?;
        self.check_rule(x)?;
        self.check_stop()?;
        Ok(x.clone())
    }

    /// The seed of the samples, the number of the attempt and its share of delta follow from those of the run.
    fn check_attempt(&self, x: &[f64]) -> Result<(), Unverified> {
        let Self { written, claimed, made, given } = self;
        if let Some(task) = given.task.filter(|_| !self.is_by_hand()) {
            same("seed", &written.seed, &task.seed)?;
        }
        let side = match written.by.as_deref() {
            None => None,
            Some("recipe") => Some(0),
            Some(_) => Some(1),
        };
        let (seed, number, share) = match (self.is_by_hand(), claimed.attempt, side) {
            (true, None, _) => (seed_by_hand(written.seed, x), number_by_hand(1), claimed.delta),
            (true, Some(attempt), _) => {
                let share = delta_of_attempt(claimed.delta, attempt);
                (seed_by_hand(written.seed, x), number_by_hand(attempt), share)
            }
            (false, _, None) => {
                let share = delta_of_attempt(claimed.delta, made.attempt);
                (self.seed_of_lane().unwrap_or(written.seed), made.attempt, share)
            }
            // A recipe and its fall-back have half of delta each.
            (false, _, Some(side)) => (
                derived_seed(written.seed, Role::Large, side),
                made.attempt,
                delta_of_attempt(claimed.delta / 2.0, made.attempt),
            ),
        };
        same("certificate.made.seed", &made.seed, &seed)?;
        same("certificate.made.attempt", &made.attempt, &number)?;
        same("certificate.made.claim.delta", &made.claim.delta, &share)?;
        if made.attempt > claimed.attempts && !self.is_by_hand() {
            let least = format!("at least {}", made.attempt);
            return Err(differs("certificate.attempts", &claimed.attempts, &least));
        }
        // With a term samples of the pilot have chosen gamma before; a lane may have looked at points that it did not try.
        let is_first = made.attempt <= 1 || self.is_by_hand();
        let has_looked = given.problem.term.is_some() || self.seed_of_lane().is_some();
        if is_first && made.before != Spent::default() && !has_looked {
            return Err(differs("certificate.made.before", &raw(&made.before)?, &"nothing"));
        }
        Ok(())
    }

    /// The seed of the lane of `universal` that made it, if one did.
    fn seed_of_lane(&self) -> Option<u64> {
        let Self { written, made, .. } = self;
        let is_universal = written.method.as_deref() == Some(UNIVERSAL) && !self.is_by_hand();
        let seeds = (0..=LAST_LANE).map(|lane| derived_seed(written.seed, Role::Large, lane));
        seeds.filter(|_| is_universal).find(|seed| *seed == made.seed)
    }

    /// What was claimed is what was asked for.
    fn check_rule(&self, x: &[f64]) -> Result<(), Unverified> {
        let Self { claimed, made, given, .. } = self;
        if let Basis::Growth { distance, .. } = made.claim.basis
            && !given.start_unknown
        {
            let far = given.problem.distance(x);
            same("certificate.made.claim.basis.growth.distance", &distance, &far)?;
        }
        let rule = given.task.filter(|_| !self.is_by_hand()).map(|task| task.certify);
        let Some(rule) = rule else { return Ok(()) };
        let rule = rule.ok_or(Unverified::Nothing("the problem file asks for no certificate"))?;
        let target = self.target(rule.target)?;
        same("certificate.made.claim.target", &made.claim.target, &target.0)?;
        same("certificate.delta", &claimed.delta, &rule.delta)?;
        if let (Some(task), Some(gamma)) = (given.task, claimed.gamma()) {
            same("certificate.gamma", &gamma, &task.gamma.or(target.1).unwrap_or(gamma))?;
        }
        let [here, there] = [made.claim.basis, rule.basis].map(|basis| basis.at_distance(0.0));
        compare("certificate.made.claim.basis", &raw(&here)?, &raw(&there)?)
    }

    /// What the task aims at, which may be a share of the gradient at the start: that is measured again, by the samples that the result says it took. With a term,
    /// also the gamma that it was measured with.
    fn target(&self, norm: f64) -> Result<(f64, Option<f64>), Unverified> {
        let Self { written, given, .. } = self;
        let share = given.task.and_then(|task| task.of_start);
        let text = written.of_start.map(RawValue::get);
        let (share, text) = match (share, text) {
            (None, None) => return Ok((norm, None)),
            (Some(share), Some(text)) => (share, text),
            (None, Some(text)) => return Err(differs("of_start", &text, &"null")),
            (Some(share), None) => return Err(differs("of_start", &"null", &share)),
        };
        let of_start: OfStart = read(text)?;
        same("of_start.share", &of_start.share, &share)?;
        if given.start_unknown {
            same("of_start.target", &of_start.target, &(share * of_start.gradient))?;
            return Ok((of_start.target, of_start.gamma));
        }
        let problem = given.problem;
        // So many that it ends where it ended: it takes a tenth of a budget.
        let budget = of_start.samples.saturating_mul(10);
        let gate = || {
            let gate = Gate::over(Arc::clone(&problem.oracle), written.seed).without_check();
            gate.with_term(problem.term.clone())
        };
        let project = given.task.is_some_and(|task| task.project);
        let start =
            problem.feasible_start(project).map_err(|error| Unverified::Unreadable(error.to_string()))?;
        if let Some(gamma) = of_start.gamma {
            let mut free = gate().with_gamma(given.task.and_then(|task| task.gamma));
            let chosen = gamma_near(&mut free, &start).map_err(CertificateError::Halt)?;
            // It is 1 where the budget does not allow a choice.
            if gamma != 1.0 {
                same("of_start.gamma", &gamma, &chosen)?;
            }
        }
        let mut gate = gate().with_gamma(of_start.gamma).with_budget(budget);
        let again = OfStart::measure(share, &mut gate, &start).map_err(CertificateError::Halt)?;
        compare("of_start", &raw(&of_start)?, &raw(&again)?)?;
        Ok((again.target, again.gamma))
    }

    /// A run that says it is certified has such a certificate.
    fn check_stop(&self) -> Result<(), Unverified> {
        let Self { written, claimed, .. } = self;
        let Some(kind) = written.stop.as_ref().map(|stop| stop.kind) else { return Ok(()) };
        let verdicts: &[Verdict] = match kind {
            "certified" => &[Verdict::Certified],
            "void" => &[Verdict::Void, Verdict::NoNoise],
            _ => &[],
        };
        if !verdicts.is_empty() && !verdicts.contains(&claimed.verdict) {
            return Err(differs("stop.kind", &kind, &claimed.verdict.words()));
        }
        if written.asked == Some(false) {
            return Err(differs("asked", &false, &true));
        }
        Ok(())
    }

    /// Compares what was computed again.
    fn after(
        &self,
        text: &RawValue,
        x: &[f64],
        certificate: Certificate,
        again: &Made,
        drawn: &Ledger,
    ) -> Result<Certificate, Unverified> {
        let Self { written, claimed, given, .. } = self;
        let ledger: Ledger = read(written.ledger.get())?;
        let has_skipped =
            given.task.is_some_and(|task| task.on_nan == OnNan::Skip) && ledger.not_finite() > 0;
        let doubt = given.problem.false_assumption(&certificate.basis, x);
        let doubt = doubt.or_else(|| has_skipped.then(|| skipped(ledger.not_finite())));
        let certificate = Certificate { delta: claimed.delta, ..certificate };
        let certified = if self.is_by_hand() {
            let declared: Vec<Consequence> = claimed.gaps.iter().map(|gap| gap.declared).collect();
            Certified::by_hand(certificate, doubt, claimed.attempt, &declared, Some(again))
        } else {
            Certified::of_run(certificate, doubt, claimed.about, claimed.attempts, Some(again))
        };
        compare("certificate", text, &raw(&certified)?)?;
        let certificate = certified.certificate;
        self.check_ledger(&ledger, drawn)?;
        if self.is_by_hand() {
            return Ok(certificate);
        }
        if let Some(objective) = given.problem.free_objective() {
            let chosen = given.task.and_then(|task| task.choose(given.problem).ok());
            let promised = chosen.and_then(|chosen| Some(chosen.promise?.plan.guarantee.measure));
            let truth = written.truth.ok_or_else(|| differs("truth", &"null", &"the formulas' values"))?;
            compare("truth", truth, &raw(&Truths::at(objective, x, promised))?)?;
        } else if let Some(truth) = written.truth {
            return Err(differs("truth", &truth, &"null"));
        }
        Ok(certificate)
    }

    /// The ledger adds up, and the roles of certificates have what was drawn before and what was drawn again.
    fn check_ledger(&self, ledger: &Ledger, drawn: &Ledger) -> Result<(), Unverified> {
        compare("ledger", self.written.ledger, &raw(ledger)?)?;
        let is_last = self.claimed.attempts == self.made.attempt && self.written.by.is_none();
        // The pass at the end of a fit is one of its steps.
        let is_fit = self.written.method.as_deref() == Some(EXACT) && !self.is_by_hand();
        let again = if is_fit { Spent::default() } else { Spent::of(drawn) }.entries();
        let each = Spent::ROLES.into_iter().zip(self.made.before.entries()).zip(again);
        for ((role, before), again) in each {
            let entry = ledger.of(role);
            let pairs = [
                ("samples", entry.samples, before.samples.saturating_add(again.samples)),
                ("evaluations", entry.evaluations, before.evaluations.saturating_add(again.evaluations)),
            ];
            for (what, written, recomputed) in pairs {
                // Other attempts, of the run or of its other half, may have drawn more.
                let fits =
                    if is_last || self.is_by_hand() { written == recomputed } else { written >= recomputed };
                if !fits {
                    let role = serde_json::to_string(&role).unwrap_or_default();
                    let name = format!("ledger.by_role.{}.{what}", role.trim_matches('"'));
                    return Err(differs(&name, &written, &recomputed));
                }
            }
        }
        Ok(())
    }
}

fn differs(name: &str, written: &dyn fmt::Display, recomputed: &dyn fmt::Display) -> Unverified {
    Unverified::Differs {
        name: name.into(),
        written: shortened(written.to_string()),
        recomputed: shortened(recomputed.to_string()),
    }
}

/// A text that is too long for a message is cut.
fn shortened(text: String) -> String {
    match text.char_indices().nth(200) {
        Some((end, _)) => format!("{} ..", &text[..end]),
        None => text,
    }
}

fn same<T: PartialEq + fmt::Display>(name: &str, written: &T, recomputed: &T) -> Result<(), Unverified> {
    if written == recomputed { Ok(()) } else { Err(differs(name, written, recomputed)) }
}

fn raw(value: &impl Serialize) -> Result<Box<RawValue>, Unverified> {
    serde_json::value::to_raw_value(value).map_err(|error| Unverified::Unreadable(error.to_string()))
}

/// The fields of an object, in their order, with their texts.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields: Vec<(String, &'de RawValue)> = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, _>()? {
                    if fields.iter().any(|(known, _)| *known == key) {
                        return Err(A::Error::custom(format!("{key} stands twice")));
                    }
                    fields.push((key, value));
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(InOrder).map(Self)
    }
}

/// Compares all of two texts of JSON, in the order of the second. Numbers are compared by their values, to the bit.
fn compare(name: &str, written: &RawValue, recomputed: &RawValue) -> Result<(), Unverified> {
    let (one, two) = (written.get(), recomputed.get());
    let different = || Err(differs(name, &one, &two));
    match (one.as_bytes().first(), two.as_bytes().first()) {
        (Some(b'{'), Some(b'{')) => {
            let [Fields(one), Fields(two)]: [Fields<'_>; 2] = [read(one)?, read(two)?];
            for (key, value) in &two {
                let name = format!("{name}.{key}");
                match one.iter().find(|(known, _)| known == key) {
                    Some((_, written)) => compare(&name, written, value)?,
                    None => return Err(differs(&name, &"missing", &value.get())),
                }
            }
            let is_known = |key: &str| two.iter().any(|(known, _)| known == key);
            match one.iter().find(|(key, _)| !is_known(key)) {
                Some((key, value)) => Err(differs(&format!("{name}.{key}"), &value.get(), &"missing")),
                None => Ok(()),
            }
        }
        (Some(b'['), Some(b'[')) => {
            let [one, two]: [Vec<&RawValue>; 2] = [read(one)?, read(two)?];
            if one.len() != two.len() {
                return different();
            }
            let mut pairs = one.iter().zip(&two).enumerate();
            pairs.try_for_each(|(i, (one, two))| compare(&format!("{name}[{i}]"), one, two))
        }
        _ if is_same_scalar(one, two) => Ok(()),
        _ => different(),
    }
}

fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Unverified> {
    serde_json::from_str(text).map_err(|error| Unverified::Unreadable(error.to_string()))
}

/// The same number, to the bit, or the same text.
fn is_same_scalar(one: &str, two: &str) -> bool {
    if one == two {
        return true;
    }
    if let [Ok(one), Ok(two)] = [one, two].map(str::parse::<u128>) {
        return one == two;
    }
    if let [Ok(one), Ok(two)] = [one, two].map(serde_json::from_str::<f64>) {
        return one.to_bits() == two.to_bits();
    }
    matches!([one, two].map(serde_json::from_str::<String>), [Ok(one), Ok(two)] if one == two)
}

impl Unverified {
    /// True if it was interrupted.
    pub fn is_interrupted(&self) -> bool {
        matches!(self, Self::Certificate(CertificateError::Halt(Halt::Interrupted)))
    }
}
