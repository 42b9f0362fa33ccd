//! A certificate of one point.

use pasta_opt::certificate::moreau::{self, MoreauClaim};
use pasta_opt::certificate::{
    CertificateError, ClaimError, Consequence, Made, Quantity, delta_of_attempt, number_by_hand, seed_by_hand,
};
use pasta_opt::objective::Measure;
use pasta_opt::prelude::*;
use pasta_opt::run::{Certified, Target, void};
use serde::Serialize;

use super::Arguments;
use crate::solve::{point_of, spec_file};
use crate::spec::trust::Origin;
use crate::spec::{Overrides, ProblemFile, Setup};
use crate::world::{self, At};
use pasta_report::Table;
use pasta_report::answer::provided;
use pasta_report::console::{self, Bar, Exit, Failure, Report, Signals, Tone, say, with_threads};
use pasta_report::number::{real, whole};

/// Where a Moreau certificate is asked for and nothing is said about its points.
const POINTS: u64 = 256;

/// Runs `pasta certify`.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let path = &arguments.path;
    let mut overrides =
        Overrides { seed: arguments.seed, threads: arguments.threads, ..Overrides::default() };
    let folder = world::look(path).map_err(Failure::system)? == At::Folder;
    let file = if folder { spec_file(path)? } else { path.clone() };
    if folder {
        overrides.origin = Origin::folder(arguments.trust);
    }
    let file = ProblemFile::load(&file)?;
    let mut setup = file.setup(&overrides)?;
    let problem = &setup.problem;
    let x = match &arguments.at {
        Some(text) => read_point(text)?,
        None if folder => point_of(path, problem)?,
        None => {
            let hint = "give it with --at, or give the output folder of a run instead of a file";
            return Err(Failure::input("which point?").hint(hint));
        }
    };
    let (point, oracle) = (x.len(), problem.start.len());
    if point != oracle {
        return Err(Failure::input(ClaimError::Dimension { point, oracle }));
    }
    // A Moreau certificate rests on other points than x too.
    let truth = problem.truth.as_ref().filter(|_| arguments.moreau.is_none());
    let flags = arguments.basis();
    overrides.undeclared = flags.or_else(|| truth.map(|truth| Basis::Variance(truth.variance(&x))));
    // What the file asks of a certificate holds where no flag says otherwise.
    let (rule, in_file) = if let Some(target) = arguments.target {
        // A file may leave the target to the flag.
        (file.rule(problem, target.provisional(), &overrides)?, None)
    } else {
        let spec = file.rest(setup, &overrides)?;
        let in_file = spec.task.target().or(spec.method.gradient_target().map(Target::Norm));
        let rule = spec.task.certify;
        setup = spec.into();
        (rule, in_file)
    };
    let problem = &setup.problem;
    let Some(target) = arguments.target.or(in_file) else {
        return Err(Failure::input("which target?").hint("give it with --target: certify |grad f(x)| <= EPS"));
    };
    let far = problem.distance(&x);
    if !far.is_finite() && x.iter().all(|x| x.is_finite()) {
        return Err(Failure::input(
            "the point is so far from the start that the square of the distance overflows",
        ));
    }
    let declared = rule.map(|rule| rule.basis).or_else(|| problem.usual_basis());
    let Some(basis) = flags.or(declared).or(overrides.undeclared) else {
        let message = match problem.truth {
            Some(_) => "growth and floor do not bound this noise, whose exponent is not 2",
            None => "nothing is known about the noise on which a certificate could rest",
        };
        return Err(Failure::input(message).hint("give --variance for all points near x, or --kurtosis"));
    };
    let question = Question {
        target,
        delta: arguments.delta.or(rule.map(|rule| rule.delta)).unwrap_or(StopRule::DELTA),
        basis: basis.at_distance(far),
        far,
    };
    with_threads(setup.threads, || answer(&setup, &x, &question, arguments))
}

/// What is asked about the point.
struct Question {
    target: Target,
    delta: f64,
    basis: Basis,
    /// |x - x0|.
    far: f64,
}

fn answer(setup: &Setup, x: &[f64], question: &Question, arguments: &Arguments) -> Result<Exit, Failure> {
    let Question { target, delta, basis, far } = *question;
    let doubt = setup.problem.false_assumption(&basis, x);
    if let Some(doubt) = &doubt {
        say(&void(doubt));
    }
    // Each attempt has samples of its own, and they share delta as the attempts of a run do.
    let (number, shared) = match arguments.attempt {
        Some(attempt) => (number_by_hand(attempt), delta_of_attempt(delta, attempt)),
        None => (number_by_hand(1), delta),
    };
    let signals = Signals::register()?;
    if setup.problem.term.is_some() && (arguments.radius.is_some() || arguments.mu.is_some()) {
        let message = "--radius and --mu say what follows from |grad f|; with a [[term]] it is the gradient mapping that is certified";
        return Err(Failure::input(message));
    }
    if arguments.gamma.is_some() && setup.problem.term.is_none() {
        return Err(Failure::input("--gamma is for problems with a term, and the file has no [[term]]"));
    }
    let gate = setup.problem.gate(seed_by_hand(setup.seed, x), arguments.budget, signals.flag());
    let mut gate = gate.with_gamma(arguments.gamma);
    let declared = arguments.declared()?;
    let target = match target {
        Target::Norm(norm) => norm,
        Target::OfStart(share) => setup.problem.of_start(share, &mut gate)?.target,
    };
    let (mut certificate, made) = if let Some(lambda) = arguments.moreau {
        let claim = MoreauClaim {
            lambda,
            rho: arguments.rho.unwrap_or_default(),
            target,
            delta: shared,
            basis,
            points: arguments.points.unwrap_or(POINTS),
            budget: None,
        };
        let certifier = moreau::Certifier::start(&mut gate, x, &setup.problem.start, claim, number);
        match certifier.and_then(|certifier| certifier.finish(&mut gate)) {
            Err(CertificateError::Halt(Halt::Interrupted)) => {
                say("interrupted during the search; nothing is known yet");
                return Ok(signals.received().unwrap_or(Exit::Interrupted));
            }
            other => (other.map_err(refused)?, None),
        }
    } else {
        let claim = Claim { target, delta: shared, basis, budget: None, guess: None };
        let Some(certified) = certify(&mut gate, x, claim, number)? else {
            say("interrupted during its pilot; nothing is known yet");
            return Ok(signals.received().unwrap_or(Exit::Interrupted));
        };
        certified
    };
    // What is stated is the confidence of all attempts together.
    certificate.delta = delta;
    // Formulas know no term.
    let is_known = basis != Basis::Exact && setup.problem.term.is_none();
    let objective = setup.problem.objective().filter(|_| is_known);
    let report = Answer {
        problem: &setup.problem.words,
        seed: setup.seed,
        point: x,
        truth: objective.and_then(|f| measure(&certificate).at(f, x)).map(f64::sqrt),
        certificate: Certified::by_hand(certificate, doubt, arguments.attempt, &declared, made.as_ref()),
        distance: far,
        ledger: gate.ledger(),
    };
    console::print(&report, arguments.json)?;
    if let Some(exit) = signals.received() {
        say("interrupted: this is how far it had come");
        return Ok(exit);
    }
    let is_certified = report.certificate.certificate.verdict == Verdict::Certified;
    Ok(if is_certified { Exit::Done } else { Exit::NotCertified })
}

/// A certificate of the gradient; as far as it came, if it was interrupted, and nothing if it had not begun.
fn certify(
    gate: &mut Gate,
    x: &[f64],
    claim: Claim,
    number: u64,
) -> Result<Option<(Certificate, Option<Made>)>, Failure> {
    let bar = Bar::endless("certifying");
    let mut certifier = match Certifier::start(gate, x, claim, number) {
        Err(CertificateError::Halt(Halt::Interrupted)) => return Ok(None),
        other => other.map_err(refused)?,
    };
    let certificate = certifier.follow(gate, |gate, planned| {
        let (drawn, planned) = (gate.ledger().samples() as f64, planned as f64);
        bar.say(format!("{drawn:.2e} of about {planned:.2e} samples"));
    });
    let certificate = certificate.map_err(Failure::system)?;
    Ok(Some((certificate, certifier.made())))
}

/// Numbers with commas between, or a file with a JSON list.
fn read_point(text: &str) -> Result<Vec<f64>, Failure> {
    if let Some(file) = text.strip_prefix('@') {
        let failed = |error: &dyn std::fmt::Display| Failure::input(error).in_file(file);
        let text = world::read_to_string(file.as_ref()).map_err(|error| failed(&error))?;
        return serde_json::from_str(&text)
            .map_err(|error| failed(&format!("expected a JSON list of numbers: {error}")));
    }
    let numbers = text.split(',').map(|part| part.trim().parse().ok()).collect::<Option<Vec<f64>>>();
    numbers.ok_or_else(|| {
        Failure::input(format!("--at: expected numbers with commas between, or @FILE, got {text:?}"))
    })
}

impl Arguments {
    /// What the flags say; `None` if they say nothing.
    fn basis(&self) -> Option<Basis> {
        match *self {
            Self { exact: true, .. } => Some(Basis::Exact),
            Self { approximate: true, .. } => Some(Basis::Approximate),
            Self { variance: Some(variance), .. } => Some(Basis::Variance(variance)),
            Self { kurtosis: Some(kappa), .. } => Some(Basis::Kurtosis(kappa)),
            Self { growth: Some(growth), floor: Some(floor), .. } => {
                Some(Basis::Growth { growth, floor, distance: 0.0 })
            }
            _ => None,
        }
    }

    /// What is declared about f.
    fn declared(&self) -> Result<Vec<Consequence>, Failure> {
        let convex = self.radius.map(|radius| Consequence::Convex { radius });
        let pl = self.mu.map(|mu| Consequence::Pl { mu });
        let declared: Vec<_> = convex.into_iter().chain(pl).collect();
        declared.iter().try_for_each(Consequence::check).map_err(Failure::input)?;
        Ok(declared)
    }
}

fn refused(error: CertificateError) -> Failure {
    match error {
        CertificateError::Halt(halt) => Failure::system(halt),
        CertificateError::Claim(error) => Failure::input(error),
    }
}

/// What formulas know of what was certified.
fn measure(certificate: &Certificate) -> Measure {
    match certificate.of {
        Quantity::Moreau { lambda, .. } => Measure::MoreauSquared { lambda },
        _ => Measure::GradientSquared,
    }
}

/// What an attempt by hand costs.
fn spent(attempt: u64, delta: f64) -> String {
    let alone = format!("{attempt}, made with {} of delta", real(delta));
    match attempt {
        1 => format!("{alone}: half is left for further ones"),
        _ => format!(
            "{alone}; the confidence is that of all {attempt} together, if those before were made with --attempt 1 to {}",
            attempt - 1
        ),
    }
}

/// The answer, with what is known besides.
#[derive(Serialize)]
struct Answer<'a> {
    problem: &'a str,
    seed: u64,
    point: &'a [f64],
    certificate: Certified,
    /// What the problem's own formula says, for comparison. Nothing above rests on it.
    truth: Option<f64>,
    distance: f64,
    ledger: &'a Ledger,
}

impl Report for Answer<'_> {
    fn text(&self) -> String {
        let Certified { certificate, statement, attempt, gaps, .. } = &self.certificate;
        let verdict = certificate.verdict.words();
        let bare = statement.strip_prefix("VOID: ").unwrap_or(statement);
        let is_moreau = matches!(certificate.of, Quantity::Moreau { .. });
        let mut rows = if certificate.bound.is_some() && !is_moreau {
            let mut rows = vec![(verdict, certificate.headline())];
            rows.extend(provided(certificate).map(|provided| ("provided", provided)));
            rows
        } else {
            vec![(verdict, bare.to_owned())]
        };
        if let Some(attempt) = *attempt {
            rows.push(("attempt", spent(attempt, delta_of_attempt(certificate.delta, attempt))));
        }
        rows.extend(gaps.iter().map(|gap| ("it follows", gap.statement.clone())));
        // Formulas know no term: there is no truth beside a gradient mapping.
        let what = if is_moreau { "|grad phi(x)|" } else { "|grad f(x)|" };
        if let Some(truth) = self.truth {
            let truth = format!("{what} = {} by the problem's own formula, which was not used", real(truth));
            rows.push(("the truth", truth));
        }
        rows.push(("cost", format!("{} samples", whole(self.ledger.samples()))));
        let far = real(self.distance);
        rows.push((
            "run",
            format!("{}, seed {}; the point is {far} from the start", self.problem, self.seed),
        ));
        Table::labelled(rows).text()
    }

    fn tone(&self) -> Tone {
        match self.certificate.certificate.verdict {
            Verdict::Certified => Tone::Good,
            Verdict::Void => Tone::Bad,
            _ => Tone::Open,
        }
    }
}
