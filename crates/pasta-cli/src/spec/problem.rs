//! The tables `problem` and `noise`: what samples are drawn from, whatever kind it is, and what is known about it.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pasta_opt::certificate::Basis;
use pasta_opt::gate::Gate;
use pasta_opt::objective::{Facts, Objective};
use pasta_opt::oracle::{
    About, Answer, Charge, Noise, NoiseError, Noisy, Oracle, OracleError, Request, Source, Tail,
};
use pasta_opt::problems::{self, Parameters};
use pasta_opt::recipe::{Constant, Constants};

use super::pipe::Simulated;
use super::section::Section;
use super::table::Tabled;
use crate::world;
use pasta_report::console::Failure;

/// What a problem file describes, whatever kind it is.
pub(crate) struct Problem {
    pub(crate) oracle: Arc<dyn Oracle>,
    pub(crate) start: Vec<f64>,
    /// Formulas, where they are known.
    pub(crate) truth: Option<Truth>,
    /// For the rows of a file.
    pub(crate) table: Option<Tabled>,
    /// What it is, for people.
    pub(crate) words: String,
    /// The workers, if it is a simulator.
    pub(crate) simulator: Option<Simulated>,
}

/// What is known about a problem by its formulas. No run rests on it: it is shown beside what samples say.
#[derive(Debug, Clone)]
pub(crate) struct Truth(Arc<Noisy>);

impl Problem {
    /// An oracle that no file describes.
    pub(crate) fn of(oracle: Arc<dyn Oracle>, start: Vec<f64>) -> Self {
        let words = oracle.about().identity.clone();
        Self { oracle, start, truth: None, table: None, words, simulator: None }
    }

    pub(crate) fn gate(&self, seed: u64, budget: Option<u128>, stop: Arc<AtomicBool>) -> Gate {
        Gate::over(Arc::clone(&self.oracle), seed).with_budget(budget).with_stop(world::watch(stop))
    }

    /// What is proved about it, seen from its start, and the classes that it is in; `None` where nothing is.
    pub(crate) fn proved(&self) -> Result<Option<(Constants, Facts)>, String> {
        match (&self.truth, &self.table) {
            (Some(truth), _) => Ok(Some((truth.proved(), truth.objective().facts()))),
            (None, Some(table)) => {
                let proved = table.proved(&self.start)?;
                Ok(Some((proved, Tabled::facts(&proved))))
            }
            (None, None) => Ok(None),
        }
    }

    /// The probability that a constant of [`proved`](Self::proved) does not hold, as far as it was asked for.
    pub(crate) fn failure(&self) -> f64 {
        self.table.as_ref().map_or(0.0, Tabled::failure)
    }

    /// What a certificate rests on if nothing else is said: what a file declares about its noise, or all rows of a table.
    pub(crate) fn usual_basis(&self) -> Option<Basis> {
        let of_table = self.table.as_ref().map(|_| Basis::Exact);
        self.truth.as_ref().and_then(Truth::declared_noise).or(of_table)
    }

    /// Whether f is known to have kinks.
    pub(crate) fn has_kinks(&self) -> bool {
        let by_formula = self.objective().is_some_and(|f| f.facts().smoothness.is_none());
        by_formula || self.table.as_ref().is_some_and(Tabled::has_kinks)
    }

    /// Whether its coordinates are weights of standardised columns.
    pub(crate) fn is_standardised(&self) -> bool {
        self.table.as_ref().is_some_and(Tabled::is_standardised)
    }

    /// Whether it is a table.
    pub(crate) fn is_table(&self) -> bool {
        self.table.is_some()
    }

    /// The objective, where it is known.
    pub(crate) fn objective(&self) -> Option<&dyn Objective> {
        self.truth.as_ref().map(|truth| truth.objective())
    }

    /// Why a certificate of x would be void: what `[noise]` says against its assumption.
    pub(crate) fn false_assumption(&self, basis: &Basis, x: &[f64]) -> Option<String> {
        self.truth.as_ref()?.false_assumption(basis, x)
    }
}

/// What is said in place of a certificate whose assumption is false.
pub(crate) fn void(doubt: &str) -> String {
    format!("VOID: the declared noise is wrong: {doubt}; nothing follows from this certificate")
}

impl Deref for Truth {
    type Target = Noisy;

    fn deref(&self) -> &Noisy {
        &self.0
    }
}

impl Truth {
    /// What a file declares about its noise wherever one is: growth and floor, unless the noise grows with another power of
    /// the distance than 2.
    pub(crate) fn declared_noise(&self) -> Option<Basis> {
        let Noise { growth, floor, .. } = self.noise();
        (self.exponent() == 2.0).then_some(Basis::Growth { growth, floor, distance: 0.0 })
    }

    fn false_assumption(&self, basis: &Basis, x: &[f64]) -> Option<String> {
        let variance = self.variance(x);
        // Both are rounded.
        let too_small = |declared: &f64| *declared < variance * (1.0 - 1e-9);
        if let Some(declared) = basis.declared_variance().filter(too_small) {
            return Some(format!(
                "[noise] has E|g - grad f|^2 = {variance:.4e} there, not at most {declared:.4e}"
            ));
        }
        let kurtosis = self.noise().tail.kurtosis(x.len());
        match basis {
            Basis::Kurtosis(assumed) if *assumed < kurtosis * (1.0 - 1e-9) && variance > 0.0 => {
                Some(format!("[noise] has kurtosis {kurtosis:.4e}, not at most {assumed}"))
            }
            _ => None,
        }
    }

    /// What is proved about the problem, seen from its start; of noise that does not grow with the square of the distance,
    /// nothing. mu is left out, since it means one thing for PL and another for star-convexity.
    pub(crate) fn proved(&self) -> Constants {
        let all = Constants::of(self.objective(), &self.noise(), self.start());
        let of_noise = [Constant::MsSmoothness, Constant::Growth, Constant::Floor];
        let mut proved = Constants::default();
        let kept = all.known().filter(|(c, _)| self.exponent() == 2.0 || !of_noise.contains(c));
        kept.for_each(|(constant, value)| proved.set(constant, value));
        proved
    }
}

pub(super) fn read_problem(problem: &Section<'_>, noise: &Section<'_>) -> Result<Problem, Failure> {
    let oracle = Arc::new(read_oracle(problem, noise)?);
    let start = oracle.start().to_vec();
    let Noise { growth, floor, tail } = oracle.noise();
    let exponent = match oracle.exponent() {
        2.0 => String::new(),
        exponent => format!(", exponent {exponent}"),
    };
    let words =
        format!("{}, {tail} noise, growth {growth}, floor {floor}{exponent}", oracle.objective().identity());
    if problem.flag(FORMULAS)?.unwrap_or(true) {
        let truth = Some(Truth(Arc::clone(&oracle)));
        let oracle = world::spread(oracle);
        Ok(Problem { oracle, start, truth, table: None, words, simulator: None })
    } else {
        let oracle = world::spread(Arc::new(SamplesOnly::of(oracle)));
        let words = format!("{words}, samples only");
        Ok(Problem { oracle, start, truth: None, table: None, words, simulator: None })
    }
}

/// The key that hides what is known about a built-in problem.
const FORMULAS: &str = "formulas";

/// A built-in problem as if it were a stranger's: nothing but samples.
struct SamplesOnly {
    oracle: Arc<Noisy>,
    about: About,
}

impl SamplesOnly {
    fn of(oracle: Arc<Noisy>) -> Self {
        let about = oracle.about();
        let identity = format!("samples of {}", about.identity);
        let about = About { source: Source::Stream, identity, ..about.clone() };
        Self { oracle, about }
    }
}

impl Oracle for SamplesOnly {
    fn about(&self) -> &About {
        &self.about
    }

    /// What it draws is what the built-in problem draws.
    fn is_vouched_for(&self) -> bool {
        self.oracle.is_vouched_for()
    }

    fn is_additive(&self) -> bool {
        self.oracle.is_additive()
    }

    fn answer(&self, request: &Request<'_>, answer: &mut Answer<'_>) -> Result<Charge, OracleError> {
        self.oracle.answer(request, answer)
    }
}

fn read_oracle(problem: &Section<'_>, noise: &Section<'_>) -> Result<Noisy, Failure> {
    let name = problem.required_text("name", "the name of a problem (see `pasta problems`)")?;
    let parameters: Parameters = problem
        .keys()
        .filter(|key| !["name", "start", FORMULAS].contains(key))
        .map(|key| Ok((key.to_owned(), problem.parameter(key)?)))
        .collect::<Result<_, Failure>>()?;
    let objective = problems::build(name, &parameters).map_err(|error| {
        let key = error.parameter().unwrap_or("name").to_owned();
        problem.complain(&key, &error.to_string())
    })?;
    let start = problem.start(objective.dim())?;
    let law = read_noise(noise)?;
    let oracle = Noisy::new(objective, law, start).and_then(|oracle| {
        let exponent = noise.number("exponent").ok().flatten();
        oracle.with_exponent(exponent.unwrap_or(2.0))
    });
    oracle.map_err(|error| match error {
        NoiseError::Constant { name, needs, got } => {
            noise.complain(name, &format!("expected {needs}, got {got}"))
        }
        _ => problem.complain("start", &error.to_string()),
    })
}

fn read_noise(noise: &Section<'_>) -> Result<Noise, Failure> {
    const TAILS: &str = "gaussian, student-t, lognormal or two-point";
    let (tail, own) = match noise.required_text("tail", TAILS)? {
        "gaussian" => (Tail::Gaussian, None),
        "student-t" => (Tail::StudentT { dof: noise.required("dof")? }, Some("dof")),
        "lognormal" => (Tail::Lognormal { sigma: noise.required("sigma")? }, Some("sigma")),
        "two-point" => (Tail::TwoPoint { probability: noise.required("probability")? }, Some("probability")),
        other => return Err(noise.complain("tail", &format!("expected {TAILS}, got {other:?}"))),
    };
    let known: Vec<_> = ["tail", "growth", "floor", "exponent"].into_iter().chain(own).collect();
    noise.only(&known)?;
    noise.number("exponent")?;
    Ok(Noise { growth: noise.required("growth")?, floor: noise.required("floor")?, tail })
}

impl fmt::Debug for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}
