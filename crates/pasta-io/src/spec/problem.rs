//! The tables `problem` and `noise`: what samples are drawn from, whatever kind it is, and what is known about it.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pasta_opt::gate::{Gate, Halt};
use pasta_opt::oracle::{
    About, Answer, Charge, Noise, NoiseError, Noisy, Oracle, OracleError, Request, Source, Tail,
};
use pasta_opt::problems::{self, Parameters};
use pasta_opt::run::{self, KnownTable, OfStart, Truth};
use pasta_opt::term::Term;

use super::pipe::Simulated;
use super::section::{Section, meant};
use crate::Failure;
use crate::talk::say;
use crate::words::real;
use crate::world;

/// What a problem file describes, whatever kind it is.
pub struct Problem {
    what: Arc<run::Problem>,
    /// The workers, if it is a simulator.
    pub simulator: Option<Simulated>,
}

impl Problem {
    /// A gate to its oracle, all of whose processes stop when `stop` is set.
    pub fn gate(&self, seed: u64, budget: Option<u128>, stop: Arc<AtomicBool>) -> Gate {
        Gate::over(Arc::clone(&self.oracle), seed)
            .with_term(self.term.clone())
            .with_budget(budget)
            .with_stop(world::watch(stop))
    }

    /// Measures |grad f| at the start, of which a target is a share, and says so.
    pub fn of_start(&self, share: f64, gate: &mut Gate) -> Result<OfStart, Failure> {
        let measured = OfStart::measure(share, gate, &self.start).map_err(|halt| match halt {
            Halt::NoTarget(_) => Failure::input(halt),
            other => Failure::system(other),
        })?;
        say(&format!("target {}: {}", real(measured.target), measured.words()));
        Ok(measured)
    }

    /// The same with a term beside f.
    pub(super) fn with_term(mut self, term: Option<Arc<dyn Term>>) -> Self {
        // Nobody else has it yet.
        if let Some(what) = Arc::get_mut(&mut self.what) {
            what.term = term;
        }
        self
    }

    /// What a simulator's workers answer.
    pub(super) fn simulated(what: run::Problem, simulator: Option<Simulated>) -> Self {
        Self { what: Arc::new(what), simulator }
    }

    /// The same, from the best constant of its table if it is one.
    pub(super) fn at_best_constant(self) -> Self {
        let Some(linear) = self.table.as_ref().map(|table| Arc::clone(table.linear())) else { return self };
        let run::Problem { oracle, term, words, .. } = &**self.what();
        let (oracle, term, words) = (Arc::clone(oracle), term.clone(), words.clone());
        let (start, table) = (linear.best_constant(), Some(KnownTable::new(linear)));
        Self { what: Arc::new(run::Problem { oracle, start, term, truth: None, table, words }), ..self }
    }

    /// What is minimised.
    pub fn what(&self) -> &Arc<run::Problem> {
        &self.what
    }
}

impl From<run::Problem> for Problem {
    fn from(what: run::Problem) -> Self {
        Self { what: Arc::new(what), simulator: None }
    }
}

impl Deref for Problem {
    type Target = run::Problem;

    fn deref(&self) -> &run::Problem {
        &self.what
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
        Ok(run::Problem { oracle, start, term: None, truth, table: None, words }.into())
    } else {
        let oracle = world::spread(Arc::new(SamplesOnly::of(oracle)));
        let words = format!("{words}, samples only");
        Ok(run::Problem { oracle, start, term: None, truth: None, table: None, words }.into())
    }
}

/// The key that hides what is known about a built-in problem.
pub(super) const FORMULAS: &str = "formulas";

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
        let complaint = problem.complain(&key, &error.to_string());
        match problems::TABLE.iter().find(|row| row.name == name) {
            None => meant(complaint, name, problems::TABLE.iter().map(|row| row.name)),
            Some(row) => meant(complaint, &key, row.parameters.iter().map(|parameter| parameter.name)),
        }
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

/// The laws of built-in noise.
pub(super) const TAILS: [&str; 4] = ["gaussian", "student-t", "lognormal", "two-point"];
/// The keys of the table `noise`, whatever the law.
pub(super) const NOISE: [&str; 4] = ["tail", "growth", "floor", "exponent"];

fn read_noise(noise: &Section<'_>) -> Result<Noise, Failure> {
    let (tail, own) = match noise.required_text("tail", &format!("one of {}", TAILS.join(", ")))? {
        "gaussian" => (Tail::Gaussian, None),
        "student-t" => (Tail::StudentT { dof: noise.required("dof")? }, Some("dof")),
        "lognormal" => (Tail::Lognormal { sigma: noise.required("sigma")? }, Some("sigma")),
        "two-point" => (Tail::TwoPoint { probability: noise.required("probability")? }, Some("probability")),
        other => return Err(noise.unknown_word("tail", other, TAILS)),
    };
    let known: Vec<_> = NOISE.into_iter().chain(own).collect();
    noise.only(&known)?;
    noise.number("exponent")?;
    Ok(Noise { growth: noise.required("growth")?, floor: noise.required("floor")?, tail })
}

impl fmt::Debug for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}
