//! What a run came to: one type for files, for programs and for Python.

use serde::{Deserialize, Serialize};

use super::Run;
use super::chosen::Promise;
use crate::certificate::{Certificate, Consequence, GapBound, Made, Verdict};
use crate::digest::Digest;
use crate::forecast::{Family, Said};
use crate::ledger::Ledger;
use crate::objective::{Measure, Objective};
use crate::recipe::{Cost, Guarantee};
use crate::stop::Stop;
use crate::target::OfStart;
use crate::walk::{Candidate, CertificateLog};

/// What a run came to. `docs/formats.md` has the keys.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// What ran.
    pub method: String,
    /// On what, for people.
    pub problem: String,
    /// The term that was minimised with f, if there is one: what is certified then is the gradient mapping of their sum.
    pub term: Option<String>,
    /// The seed of all randomness.
    pub seed: u64,
    /// Why it ended.
    pub stop: Stopped,
    /// The point that it hands out; `None` where `point_file` names a file beside the report.
    pub point: Option<Vec<f64>>,
    /// The file that holds the point, where that is too large for the report.
    pub point_file: Option<String>,
    /// Steps taken.
    pub steps: u64,
    /// How many steps led to the point, where it is an iterate drawn at random; then `last` is the last iterate.
    pub drawn_at: Option<u64>,
    /// See `drawn_at`.
    pub last: Option<Vec<f64>>,
    /// |x - x0| of the last iterate.
    pub distance: f64,
    /// What was drawn, by what it was for.
    pub ledger: Ledger,
    /// What a theorem promises, or why nothing is promised; `None` where no theorem covers the method.
    pub promise: Option<Promised>,
    /// Whose point it is, where a recipe has a fall-back.
    pub by: Option<&'static str>,
    /// What the problem's own formulas say about the point, where they are known and there is no term.
    pub truth: Option<Truths>,
    /// True if a certificate was asked for.
    pub asked: bool,
    /// The gradient at the start, where the target is a share of it.
    pub of_start: Option<OfStart>,
    /// Attempts at certificates.
    #[serde(skip)]
    pub attempts: u64,
    /// The last certificate, if it is about the point.
    pub certificate: Option<Certified>,
    /// The first forecast that the run made of itself.
    pub forecast: Option<Expected>,
    /// Why there is none.
    pub forecast_silent: Option<String>,
    /// What a verification rests on.
    pub rests_on: RestsOn,
}

/// A forecast, with how often such ranges held.
#[derive(Debug, Clone, Copy, Serialize)]
#[non_exhaustive]
pub struct Expected {
    /// The forecast, and after how many samples it was made.
    #[serde(flatten)]
    pub said: Said,
    /// The share of runs of such methods in which ranges like this held, where that was tried.
    pub share: Option<f64>,
}

impl Expected {
    fn of(said: Said, method: &str) -> Self {
        let measured = Family::of(method).map(Family::measured_own).filter(|measured| measured.of > 0);
        Self { said, share: measured.map(|measured| f64::from(measured.held) / f64::from(measured.of)) }
    }
}

/// Why a run ended.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Stopped {
    /// [`Stop::kind`].
    pub kind: &'static str,
    /// What that means for the point.
    pub meaning: String,
    /// At which step it was seen that the run is lost.
    pub step: Option<u64>,
}

/// What a theorem promises, or why nothing is promised.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Promised {
    /// True if the theorem's promise holds for the point.
    pub holds: bool,
    /// The promise, or why there is none.
    pub statement: String,
    /// What the theorem bounds.
    pub guarantee: Guarantee,
    /// Reasons why the promise may not hold for this problem.
    pub doubts: Vec<String>,
    /// The cost that was planned, where the recipe ran alone.
    pub predicted: Option<Cost>,
}

/// The problem's own formulas at the point.
#[derive(Debug, Clone, Copy, Serialize)]
#[non_exhaustive]
pub struct Truths {
    /// f(x) - inf f.
    pub gap: Option<f64>,
    /// |grad f(x)|^2.
    pub gradient_squared: Option<f64>,
    /// Where the promise is about the Moreau envelope.
    pub moreau_squared: Option<f64>,
}

impl Truths {
    /// By the formulas of an objective; `promised` is what a theorem bounds, if one does.
    pub(crate) fn at(objective: &dyn Objective, x: &[f64], promised: Option<Measure>) -> Self {
        let at = |measure: Measure| measure.at(objective, x);
        let is_moreau = |measure: &Measure| matches!(measure, Measure::MoreauSquared { .. });
        Self {
            gap: at(Measure::Gap),
            gradient_squared: at(Measure::GradientSquared),
            moreau_squared: promised.filter(is_moreau).and_then(at),
        }
    }
}

/// A certificate of a point with its words: the same object in a report, in what `pasta certify` and `fit` print, and in Python.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Certified {
    /// The numbers.
    #[serde(flatten)]
    pub certificate: Certificate,
    /// The verdict in a word or two.
    pub words: &'static str,
    /// The claim, with its confidence and its assumption.
    pub statement: String,
    /// Why the certificate is void: what is known about the noise against its assumption.
    pub doubt: Option<String>,
    /// True if it is about a point that was given, and not one that a run found.
    pub by_hand: bool,
    /// Which point of the run it is about.
    pub about: Option<Candidate>,
    /// How many attempts the run made; by hand, the number of the attempt.
    pub attempts: u64,
    /// By hand: the number of the attempt, if it was told, so that it has a share of delta alone.
    pub attempt: Option<u64>,
    /// By hand: what follows for f from what is declared about it.
    pub gaps: Vec<GapBound>,
    /// How it was made, so that it can be [verified](crate::verify); `None` if it was begun by a version that did not note it, and of Moreau envelopes.
    pub made: Option<Made>,
}

impl Certified {
    /// A certificate with its words; void, if there is a doubt.
    fn of(certificate: Certificate, doubt: Option<String>) -> Self {
        let certificate = if doubt.is_some() { certificate.void() } else { certificate };
        Self {
            words: certificate.verdict.words(),
            statement: doubt.as_deref().map_or_else(|| certificate.statement(), void),
            certificate,
            doubt,
            by_hand: false,
            about: None,
            attempts: 0,
            attempt: None,
            gaps: Vec::new(),
            made: None,
        }
    }

    /// A certificate of a run.
    pub(crate) fn of_run(
        certificate: Certificate,
        doubt: Option<String>,
        about: Option<Candidate>,
        attempts: u64,
        made: Option<&Made>,
    ) -> Self {
        Self { about, attempts, made: made.copied(), ..Self::of(certificate, doubt) }
    }

    /// A certificate of a point that was given, by an attempt that has a number if it shares delta with others; and what follows from it.
    pub fn by_hand(
        certificate: Certificate,
        doubt: Option<String>,
        attempt: Option<u64>,
        declared: &[Consequence],
        made: Option<&Made>,
    ) -> Self {
        let certified = Self::of(certificate, doubt);
        let gaps = declared.iter().map(|declared| GapBound::of(&certified.certificate, *declared)).collect();
        Self {
            by_hand: true,
            attempts: attempt.unwrap_or(1),
            attempt,
            gaps,
            made: made.copied(),
            ..certified
        }
    }
}

/// What a verification of a report rests on.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct RestsOn {
    /// The version of this library that wrote it.
    pub version: &'static str,
    /// The [identity](crate::oracle::About::identity) of the oracle; that of a table has a checksum of its values.
    pub oracle: String,
    /// Programs and other files that a simulator is made of, as far as its command names them.
    pub files: Vec<Named>,
}

/// A file as it was when the report was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// Its name in the command.
    pub name: String,
    /// SHA-256 of its bytes.
    pub sha256: Digest,
}

/// What is said in place of a certificate whose assumption is false.
pub fn void(doubt: &str) -> String {
    format!("VOID: the declared noise is wrong: {doubt}; nothing follows from this certificate")
}

impl Report {
    /// What a run came to that ended, or stands, like this.
    pub(super) fn of(run: &Run, stop: Stop) -> Self {
        let (view, problem, chosen) = (run.view(), &run.problem, &run.chosen);
        let certificate = view.certification.and_then(|log| {
            Some(Certified::of_run(log.last?, run.doubt(), log.handed_out(), log.attempts, log.made.as_ref()))
        });
        // A certificate may be about another point.
        let handed_out = view.certification.and_then(CertificateLog::handed_out);
        let drawn_at = view.drawn_at.filter(|_| handed_out.is_none_or(|about| about == Candidate::Output));
        let promised = chosen.promise.as_ref().map(|promise| promise.plan.guarantee.measure);
        let truth = problem.free_objective().map(|objective| Truths::at(objective, view.point, promised));
        Self {
            method: chosen.name.to_owned(),
            problem: problem.words.clone(),
            term: problem.term.as_ref().map(|term| term.identity()),
            seed: run.gate.seed(),
            stop: Stopped { kind: stop.kind(), meaning: run.meaning(stop), step: stop.lost_at() },
            point: Some(view.point.to_vec()),
            point_file: None,
            steps: view.step,
            drawn_at,
            last: drawn_at.map(|_| view.x.to_vec()),
            distance: view.distance2.sqrt(),
            ledger: run.gate.ledger().clone(),
            promise: Promised::of(run, stop, view.promised),
            by: chosen.fallback.then_some(if view.promised { "recipe" } else { "auto" }),
            truth,
            asked: run.task.certify.is_some(),
            of_start: run.of_start,
            attempts: view.certification.map_or(0, |log| log.attempts),
            certificate,
            forecast: run.outlook.first.map(|said| Expected::of(said, chosen.name)),
            forecast_silent: run.outlook.silent.clone(),
            rests_on: RestsOn {
                version: env!("CARGO_PKG_VERSION"),
                oracle: run.gate.about().identity.clone(),
                files: Vec::new(),
            },
        }
    }

    /// True if the point is certified.
    pub fn is_certified(&self) -> bool {
        self.certificate.as_ref().is_some_and(|c| c.certificate.verdict == Verdict::Certified)
    }
}

impl Promised {
    fn of(run: &Run, stop: Stop, is_recipe: bool) -> Option<Self> {
        let Promise { plan, doubts, estimated, proved, .. } = run.chosen.promise.as_ref()?;
        let Guarantee { measure, point, bound, .. } = plan.guarantee;
        let provided = match run.problem.failure() {
            _ if run.problem.truth.is_none() && !proved => ", provided the constants are true".into(),
            failure if *proved && failure > 0.0 => {
                format!(", if the constants hold, which they do except with probability {}", plain(failure))
            }
            _ => String::new(),
        };
        let promise =
            format!("E {} <= {} for {}{provided}", measure.formula(), plain(bound), point.description());
        let only_estimates = doubts.len() == 1 && !estimated.is_empty();
        let statement = match (stop, doubts.as_slice()) {
            (Stop::PlannedEnd, _) if !is_recipe => {
                format!("none: the point is auto's, not the recipe's ({promise})")
            }
            (Stop::PlannedEnd, []) => promise,
            (Stop::PlannedEnd, [doubt]) if only_estimates => {
                let they = if estimated.len() > 1 { "they" } else { "it" };
                format!("none proved: {doubt} (were {they} true: {promise})")
            }
            (Stop::PlannedEnd, doubts) => format!("none for this problem: {}", doubts.join("; ")),
            (Stop::Certified, _) => {
                format!("not needed: the certificate applies (planned end not reached; {promise})")
            }
            _ => format!("none: the run did not reach its planned end ({promise})"),
        };
        Some(Self {
            holds: stop == Stop::PlannedEnd && is_recipe && doubts.is_empty(),
            statement,
            guarantee: plan.guarantee,
            doubts: doubts.clone(),
            predicted: (!run.chosen.fallback).then_some(plan.cost),
        })
    }
}

/// Twelve digits hide the rounding of eps^2 and nothing else.
fn plain(bound: f64) -> String {
    if bound < 1e-6 {
        return format!("{bound:e}");
    }
    format!("{bound:.12}").trim_end_matches('0').trim_end_matches('.').to_owned()
}
