//! `pasta-lab duel`: methods against the hard instances of the lower bounds.

mod contender;
mod curves;
mod explanation;
mod instance;
mod run;
mod score;
mod tables;

use std::path::PathBuf;

use clap::Args;
use contender::{Contender, Settings};
use instance::{ConstantFlags, Instance};
use pasta_opt::method::Engine;
use pasta_opt::recipe::Constants;
use pasta_report::number::real;
use rayon::prelude::*;
use run::{Bout, Limits};
use score::{Findings, Outcome, Verdict};
use tables::count;

use crate::hard::Kind;
use pasta_report as report;
use pasta_report::console::flags::{self, Given};
use pasta_report::console::{self, Bar, Exit, Failure};

/// Pit methods against the hard instance of a lower bound
///
/// The instance is a chain far from the start, whose coordinates the oracle reveals one at a time, each with a
/// small probability p. A method that only moves along coordinates in which the oracle has answered something
/// other than zero (zero-respecting) needs at least (T - 1)/(2p) samples in expectation to get to |grad F| <= eps, T
/// the length of the chain. Here the methods try. After every step the exact gradient is computed, and it is
/// checked that the method respected zeros.
///
/// Without METHOD all methods run, each with settings that suit the instance.
#[derive(Args)]
#[command(after_long_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The method; all of them if none is named
    #[arg(value_name = "METHOD", value_parser = contender::names())]
    method: Option<String>,
    /// The theorem whose instance is used
    #[arg(long, value_name = "KIND", default_value = "smooth")]
    instance: Kind,
    /// Runs of each method [default: 20 for one method, 10 for all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    seeds: Option<u32>,
    /// Seed of the first run; the others count up from it
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Stop a run after this many steps
    #[arg(long, value_name = "N", default_value = MANY_STEPS, value_parser = flags::count)]
    steps: u64,
    /// Stop a run before it draws more samples than this
    #[arg(long, value_name = "SAMPLES", value_parser = flags::sample_count)]
    budget: Option<u128>,
    /// Folder for a page with the curves, index.html; made if it is not there
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Print one JSON object, in full precision, instead of the tables
    #[arg(long)]
    json: bool,
    // Last, since their headings hold for all that follows.
    #[command(flatten)]
    constants: Given<ConstantFlags>,
    #[command(flatten)]
    settings: Given<Settings>,
}

const MANY_STEPS: &str = "2e7";

const AFTER_HELP: &str = "\
Examples:
  # Every method, and a page with the curves.
  pasta-lab duel --output duel

  # SGD with a step ten times shorter: now the way to the chain costs most.
  pasta-lab duel sgd --eta 0.1 --seeds 4

  # The recipe of Theorem 3 on a longer chain: some 1e14 samples, in batches
  # that are drawn at once.
  pasta-lab duel smooth --target 7e-4 --seeds 4 --json

  # The instance of Theorem 2, whose oracle is mean-square smooth.
  pasta-lab duel mean-square-smooth --instance mss --seeds 2

The methods:
  Recipes have no settings but their constants, which the instance knows; the
  bound on |grad F| that smooth-anchored asks for is derived from the chain's.
  Their plans go on long after the first good point; here they stop at it. Not
  among them: recipes for convex, gradient-dominated or star-convex functions,
  since F is none of these, and weakly-convex, whose promise is about an
  envelope (with lambda = 2 L it is smooth-anchored).

  The other methods draw --batch samples a step, by default 1. With L the
  smoothness of F, lambda the scale of a chain coordinate and D the way to the
  chain, their defaults are
    sgd           eta = 1/L
    clipped-sgd   eta = 1/L, threshold = 46 eps (no coordinate is steeper)
    storm         eta = 1/L, momentum = 0.1
    adam          eta = lambda/20, first = 0.9, second = 0.999, epsilon = 1e-8
    adagrad-norm  eta = D/10, offset = 2 eps (the slope at the start)

What is not said:
  A method that does well here need not do so elsewhere. The instance is made to
  slow every zero-respecting method down alike; it is not made to break SGD, and
  does not. For that, see: pasta-lab demo

Exit codes: 0 done (also if the target was not reached within the limits), 2 bad
input, 3 the named method diverged.";

/// Runs `pasta-lab duel`.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let instance = Instance::new(arguments.instance, &arguments.constants.0, arguments.runs() as usize)?;
    let contenders = if let Some(name) = &arguments.method {
        vec![Ok(Contender::new(name, &arguments.settings, &instance)?)]
    } else {
        arguments.settings.refuse_all()?;
        contender::all(&instance)
    };
    if let Some(folder) = &arguments.output {
        report::folder_for_page(folder)?;
    }
    let limits = Limits { steps: arguments.steps, budget: arguments.budget };
    let entries = contenders.into_iter().map(|one| admit(one, &instance, limits)).collect();
    let outcomes = arguments.play(&instance, entries, limits)?;
    let (seed, seeds) = (arguments.seed, arguments.runs() as usize);
    let mut findings = Findings { instance, seed, seeds, limits, methods: outcomes, page: None };
    if let Some(folder) = &arguments.output {
        let page = explanation::page(&findings, arguments.command()).html()?;
        findings.page = Some(report::write(folder, "index.html", &page)?);
    }
    console::print(&findings, arguments.json)?;
    let diverged = findings.methods.iter().any(|outcome| outcome.verdict == Verdict::Diverged);
    Ok(if diverged && arguments.method.is_some() { Exit::Diverged } else { Exit::Done })
}

/// Runs of the method without constants against the instance of Theorem 1.
pub(crate) struct Against {
    /// What no zero-respecting method can beat in expectation.
    pub(crate) bound: f64,
    /// Of each run, whether it arrived or not.
    pub(crate) samples: Vec<f64>,
    pub(crate) reached: usize,
    pub(crate) zero_respecting: bool,
}

/// So many times the lower bound are waited for.
const PATIENCE: f64 = 30.0;

/// Runs `auto` on the instance of Theorem 1 with its usual constants.
pub(crate) fn auto_against_theorem_1(seeds: u64, seed: u64) -> Result<Against, Failure> {
    let instance = Instance::new(Kind::Smooth, &Constants::default(), seeds as usize)?;
    let bound = (instance.bound.chain as f64 - 1.0) / (2.0 * instance.bound.p);
    let engine = Engine::Auto { target: Some(instance.target()) };
    let contender = Contender { name: "auto", settings: Vec::new(), planned: None, engine };
    let limits = Limits { steps: u64::MAX, budget: Some((PATIENCE * bound) as u128) };
    let runs: Result<Vec<Bout>, Failure> = (0..seeds)
        .into_par_iter()
        .map(|run| run::run(&contender, &instance, limits, seed.wrapping_add(run)))
        .collect();
    let runs = runs?;
    Ok(Against {
        bound,
        samples: runs.iter().map(|run| run.samples as f64).collect(),
        reached: runs.iter().filter(|run| run.end == run::End::Reached).count(),
        zero_respecting: runs.iter().all(|run| run.zero_respecting),
    })
}

/// The method if it will run, or why it will not.
fn admit(
    contender: Result<Contender, (&'static str, Failure)>,
    instance: &Instance,
    limits: Limits,
) -> Result<Contender, Box<Outcome>> {
    let contender = contender.map_err(|(name, error)| {
        let reason = error.message();
        let bare = reason.strip_prefix(name).and_then(|rest| rest.strip_prefix(": "));
        let reason = Some(bare.unwrap_or(reason).to_owned());
        Box::new(Outcome { method: name, reason, ..Outcome::default() })
    })?;
    let steps = contender.steps_on_slope(instance);
    if steps <= limits.steps as f64 {
        return Ok(contender);
    }
    let reason = format!(
        "half the way to the chain would take it {} steps; the limit is {} (--steps)",
        count(steps),
        real(limits.steps as f64)
    );
    Err(Box::new(Outcome { reason: Some(reason), ..Outcome::set_up(&contender) }))
}

impl Arguments {
    fn runs(&self) -> u32 {
        self.seeds.unwrap_or(if self.method.is_some() { 20 } else { 10 })
    }

    /// All runs. Each has a seed of its own, so the threads that share them out leave no trace.
    fn play(
        &self,
        instance: &Instance,
        entries: Vec<Result<Contender, Box<Outcome>>>,
        limits: Limits,
    ) -> Result<Vec<Outcome>, Failure> {
        let ready = entries.iter().flatten().count();
        let progress = Bar::of(ready as u64 * u64::from(self.runs()));
        let outcomes = entries
            .into_par_iter()
            .map(|entry| {
                let contender = match entry {
                    Err(outcome) => return Ok(*outcome),
                    Ok(contender) => contender,
                };
                let runs: Result<Vec<Bout>, Failure> = (0..self.runs())
                    .into_par_iter()
                    .map(|run| {
                        let run = run::run(&contender, instance, limits, self.seed.wrapping_add(run.into()));
                        progress.done(1);
                        run
                    })
                    .collect();
                Ok(Outcome::of(&contender, runs?, instance))
            })
            .collect();
        drop(progress);
        outcomes
    }

    /// The command that does the same again.
    fn command(&self) -> String {
        let mut words = vec!["pasta-lab duel".to_owned()];
        words.extend(self.method.clone());
        words.push(format!("--instance {}", self.instance.name()));
        words.extend(
            self.constants.0.known().map(|(constant, value)| format!("--{} {value}", constant.name())),
        );
        words.extend(self.settings.given().map(|(name, value)| format!("--{name} {value}")));
        words.push(format!("--seeds {} --seed {}", self.runs(), self.seed));
        if flags::count(MANY_STEPS) != Ok(self.steps) {
            words.push(format!("--steps {}", self.steps));
        }
        words.extend(self.budget.map(|budget| format!("--budget {}", budget as f64)));
        words.push("--output duel".to_owned());
        words.join(" ")
    }
}
