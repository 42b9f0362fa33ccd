//! A certificate of one point.

use std::path::Path;

use indicatif::ProgressBar;
use pasta_opt::certificate::moreau::{self, MoreauCertificate, MoreauRequest};
use pasta_opt::certificate::{Consequence, RequestError, StartCertificateError};
use pasta_opt::objective::Measure;
use pasta_opt::prelude::*;
use serde::Serialize;

use super::Arguments;
use crate::solve::{point_of, spec_file};
use crate::spec::{self, Overrides, Problem};
use pasta_report::Table;
use pasta_report::console::{self, Exit, Failure, Report, Signals, say, with_threads};
use pasta_report::number::{real, whole};

/// Where a Moreau certificate is asked for and nothing is said about its points.
const POINTS: u64 = 256;

pub(super) fn run(path: &Path, arguments: &Arguments) -> Result<Exit, Failure> {
    let mut overrides =
        Overrides { seed: arguments.seed, threads: arguments.threads, ..Overrides::default() };
    let folder = path.is_dir();
    let file = if folder { spec_file(path)? } else { path.to_owned() };
    let problem = spec::read_problem(&file, &overrides)?;
    let x = match &arguments.at {
        Some(text) => read_point(text)?,
        None if folder => point_of(path)?,
        None => {
            let hint = "give it with --at, or give the output folder of a run instead of a file";
            return Err(Failure::input("which point?").hint(hint));
        }
    };
    if x.len() != problem.oracle.dim() {
        return Err(Failure::input(RequestError::Dimension { point: x.len(), oracle: problem.oracle.dim() }));
    }
    // A Moreau certificate rests on other points than x too.
    let at_the_point = || arguments.moreau.moreau.is_none().then(|| problem.oracle.variance(&x));
    let flags = arguments.grade.grade();
    overrides.undeclared = flags.or_else(|| at_the_point().map(Grade::Variance));
    // What the file asks of a certificate holds where no flag says otherwise.
    let read = problem.asks_for_certificate || arguments.target.is_none();
    let asked = if read { Some(spec::read(&file, &overrides)?) } else { None };
    let rule = asked.as_ref().and_then(|spec| Some(spec.certification?.rule));
    let in_file = asked.as_ref().and_then(|spec| spec.method.gradient_target());
    let Some(target) = arguments.target.or(rule.map(|rule| rule.target)).or(in_file) else {
        return Err(Failure::input("which target?").hint("give it with --target: certify |grad f(x)| <= EPS"));
    };
    let far = x.iter().zip(problem.oracle.start()).map(|(x, x0)| (x - x0).powi(2)).sum::<f64>().sqrt();
    if !far.is_finite() && x.iter().all(|x| x.is_finite()) {
        return Err(Failure::input(
            "the point is so far from the start that the square of the distance overflows",
        ));
    }
    let declared = rule.map(|rule| rule.grade).or_else(|| spec::declared_noise(&problem.oracle));
    let Some(grade) = flags.or(declared).or(overrides.undeclared) else {
        let message = "growth and floor do not bound this noise, whose exponent is not 2";
        return Err(Failure::input(message).hint("give --variance for all points near x, or --kurtosis"));
    };
    let question = Question {
        target,
        delta: arguments.delta.or(rule.map(|rule| rule.delta)).unwrap_or(spec::DELTA),
        grade: grade.at_distance(far),
        far,
    };
    with_threads(problem.threads, || answer(&problem, &x, &question, arguments))
}

/// What is asked about the point.
struct Question {
    target: f64,
    delta: f64,
    grade: Grade,
    /// |x - x0|.
    far: f64,
}

fn answer(problem: &Problem, x: &[f64], question: &Question, arguments: &Arguments) -> Result<Exit, Failure> {
    let Question { target, delta, grade, far } = *question;
    if let Some(doubt) = spec::false_assumption(&grade, &problem.oracle, x) {
        say(&format!("note: this certificate means nothing: {doubt}"));
    }
    let signals = Signals::register()?;
    let watch = Watch { signals: &signals, bar: ProgressBar::new_spinner() };
    let found = if let Some(lambda) = arguments.moreau.moreau {
        let request = MoreauRequest {
            lambda,
            rho: arguments.moreau.rho.unwrap_or_default(),
            target,
            delta,
            grade,
            points: arguments.moreau.points.unwrap_or(POINTS),
            budget: arguments.budget,
        };
        let Some(certificate) = watch.moreau(problem, x, request)? else {
            say("interrupted during the search; nothing is known yet");
            return Ok(signals.received().unwrap_or(Exit::Interrupted));
        };
        Found::Moreau(certificate)
    } else {
        let request = Request { target, delta, grade, budget: arguments.budget, guess: None };
        let certificate = watch.gradient(problem, x, request)?;
        Found::Gradient { certificate, gaps: arguments.consequences.gaps(&certificate)? }
    };
    let report = Answer::new(problem, x, far, found);
    console::print(&report, arguments.json)?;
    if let Some(exit) = signals.received() {
        say("interrupted: this is how far it had come");
        return Ok(exit);
    }
    Ok(if report.verdict == Verdict::Certified { Exit::Done } else { Exit::NotCertified })
}

/// Numbers with commas between, or a file with a JSON list.
fn read_point(text: &str) -> Result<Vec<f64>, Failure> {
    if let Some(file) = text.strip_prefix('@') {
        let failed = |error: &dyn std::fmt::Display| Failure::input(format!("{file}: {error}"));
        let text = std::fs::read_to_string(file).map_err(|error| failed(&error))?;
        return serde_json::from_str(&text)
            .map_err(|error| failed(&format!("expected a JSON list of numbers: {error}")));
    }
    let numbers = text.split(',').map(|part| part.trim().parse().ok()).collect::<Option<Vec<f64>>>();
    numbers.ok_or_else(|| {
        Failure::input(format!("--at: expected numbers with commas between, or @FILE, got {text:?}"))
    })
}

impl super::GradeFlags {
    /// What the flags say; `None` if they say nothing.
    fn grade(&self) -> Option<Grade> {
        match *self {
            Self { exact: true, .. } => Some(Grade::Exact),
            Self { approximate: true, .. } => Some(Grade::Approximate),
            Self { variance: Some(variance), .. } => Some(Grade::Variance(variance)),
            Self { kurtosis: Some(kappa), .. } => Some(Grade::Kurtosis(kappa)),
            Self { growth: Some(growth), floor: Some(floor), .. } => {
                Some(Grade::Growth { growth, floor, distance: 0.0 })
            }
            _ => None,
        }
    }
}

impl super::ConsequenceFlags {
    fn gaps(&self, certificate: &Certificate) -> Result<Vec<Gap>, Failure> {
        let convex = self.radius.map(|radius| Consequence::Convex { radius });
        let pl = self.mu.map(|mu| Consequence::Pl { mu });
        let gap = |consequence: Consequence| {
            consequence.check().map_err(Failure::input)?;
            let statement = consequence.statement(certificate);
            Ok(Gap { declared: consequence, bound: consequence.gap(certificate), statement })
        };
        convex.into_iter().chain(pl).map(gap).collect()
    }
}

/// Looks after a certificate in the making.
struct Watch<'s> {
    signals: &'s Signals,
    bar: ProgressBar,
}

impl Watch<'_> {
    fn gradient(&self, problem: &Problem, x: &[f64], request: Request) -> Result<Certificate, Failure> {
        let mut certifier =
            Certifier::start(&problem.oracle, x, request, problem.seed, 0).map_err(refused)?;
        loop {
            if let Some(certificate) = certifier.advance().map_err(Failure::system)? {
                self.bar.finish_and_clear();
                return Ok(certificate);
            }
            let so_far = certifier.answer(Verdict::OutOfBudget);
            self.bar.tick();
            self.bar.set_message(format!(
                "{:.2e} of about {:.2e} samples",
                so_far.samples as f64,
                certifier.planned_samples() as f64
            ));
            if self.signals.received().is_some() {
                return Ok(so_far);
            }
        }
    }

    fn moreau(
        &self,
        problem: &Problem,
        x: &[f64],
        request: MoreauRequest,
    ) -> Result<Option<MoreauCertificate>, Failure> {
        let go_on = || {
            self.bar.tick();
            self.signals.received().is_none()
        };
        let (oracle, seed) = (&problem.oracle, problem.seed);
        let certifier = moreau::Certifier::start_watched(oracle, x, oracle.start(), request, seed, 0, go_on);
        match certifier.and_then(|certifier| certifier.finish_watched(go_on)) {
            Err(StartCertificateError::Interrupted) => Ok(None),
            other => other.map(Some).map_err(refused),
        }
    }
}

fn refused(error: StartCertificateError) -> Failure {
    match error {
        StartCertificateError::Oracle(error) => Failure::system(error),
        other => Failure::input(other),
    }
}

/// What was found.
enum Found {
    Gradient { certificate: Certificate, gaps: Vec<Gap> },
    Moreau(MoreauCertificate),
}

/// A bound on f(x) - inf f that follows.
#[derive(Serialize)]
struct Gap {
    declared: Consequence,
    bound: Option<f64>,
    statement: String,
}

/// The answer, with what is known besides.
#[derive(Serialize)]
struct Answer {
    problem: String,
    seed: u64,
    point: Vec<f64>,
    verdict: Verdict,
    certified: bool,
    statement: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate: Option<Certificate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    moreau: Option<MoreauCertificate>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gaps: Vec<Gap>,
    /// What the problem's own formula says, for comparison. Nothing above rests on it.
    truth: Option<f64>,
    distance_from_start: f64,
}

impl Answer {
    fn new(problem: &Problem, x: &[f64], far: f64, found: Found) -> Self {
        let objective = problem.oracle.objective();
        let exact =
            matches!(&found, Found::Gradient { certificate, .. } if certificate.grade == Grade::Exact);
        let (verdict, statement, measure, certificate, moreau, gaps) = match found {
            Found::Gradient { certificate, gaps } => {
                let measure = Measure::GradientSquared;
                (certificate.verdict, certificate.statement(), measure, Some(certificate), None, gaps)
            }
            Found::Moreau(moreau) => {
                let measure = Measure::MoreauSquared { lambda: moreau.lambda };
                (moreau.verdict, moreau.statement(), measure, None, Some(moreau), Vec::new())
            }
        };
        Self {
            problem: problem.oracle.identity(),
            seed: problem.seed,
            point: x.to_vec(),
            verdict,
            certified: verdict == Verdict::Certified,
            statement,
            certificate,
            moreau,
            gaps,
            truth: measure.at(objective, x).map(f64::sqrt).filter(|_| !exact),
            distance_from_start: far,
        }
    }

    fn samples(&self) -> u128 {
        let gradient = self.certificate.map(|certificate| certificate.samples);
        gradient.or(self.moreau.map(|moreau| moreau.samples)).unwrap_or_default()
    }

    fn target(&self) -> f64 {
        let gradient = self.certificate.map(|certificate| certificate.target);
        gradient.or(self.moreau.map(|moreau| moreau.target)).unwrap_or_default()
    }
}

impl Report for Answer {
    fn text(&self) -> String {
        let what = if self.moreau.is_some() { "|grad phi(x)|" } else { "|grad f(x)|" };
        let mut rows = vec![
            ("problem", self.problem.clone()),
            ("verdict", format!("{} (target {})", self.verdict.words(), real(self.target()))),
            ("statement", self.statement.clone()),
        ];
        rows.extend(self.gaps.iter().map(|gap| ("it follows", gap.statement.clone())));
        rows.push(("samples", whole(self.samples())));
        rows.push(("distance from start", real(self.distance_from_start)));
        if let Some(truth) = self.truth {
            rows.push((
                "the truth",
                format!("{what} = {} by the problem's own formula, which was not used", real(truth)),
            ));
        }
        Table::labelled(rows).text()
    }
}
