//! `pasta plan`: what a run would do, promise and cost, before it draws a sample.

mod compare;
mod limit;
mod pilot;
mod principle;
mod regime;
mod scaling;
mod single;

use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Args, Parser};
use pasta_opt::recipe::{Constant, Constants};
use pasta_opt::run::Target;
use principle::Question;
use regime::{Kind, Regime};
use scaling::MachineFlags;

use pasta_report::console::flags::{self, FlagSet, Given, count, number, sample_count};
use pasta_report::console::{self, Exit, Failure, Report};
use serde::Serialize;

/// Show what a run would do, promise and cost, before it draws a sample.
///
/// Name the regime that f belongs to and give its constants. Out come the step size, the number of steps and
/// the batch sizes of the theorem for that regime, the accuracy it promises, the samples it is expected to
/// cost and, where one is known, a number of samples that zero-respecting methods cannot do without. The
/// noise may grow without bound: its variance at x is at most B^2 |x - x0|^2 + b^2, x0 the start.
///
/// `pasta plan REGIME` alone names the constants that the regime needs. Tables are rounded; --json is not.
#[derive(Args)]
#[command(after_long_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// What is known about f, or the bound or principle to evaluate
    #[arg(value_name = "REGIME", value_parser = regime::names())]
    regime: Option<String>,
    /// Compare every regime whose constants are given
    #[arg(long, conflicts_with = "regime")]
    all: bool,
    /// Forecast what a certified run of this problem file will cost, from a pilot of a few cheap runs
    #[arg(long, value_name = "FILE", conflicts_with_all = ["regime", "all", "budget"])]
    pilot: Option<PathBuf>,
    /// Samples that the pilot may draw [default: the file's, at most a tenth of its budget and plan]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = sample_count)]
    #[arg(requires = "pilot", conflicts_with_all = ["regime", "all"])]
    samples: Option<u128>,
    #[command(flatten)]
    constants: Given<ConstantFlags>,
    /// Instead of a target: find the best target whose expected samples are at most N
    #[arg(long, value_name = "N", conflicts_with = Constant::Target.name())]
    #[arg(allow_hyphen_values = true, value_parser = number)]
    budget: Option<f64>,
    /// Step size to check
    #[arg(long, value_name = "ETA", help_heading = UNCERTAINTY, allow_hyphen_values = true, value_parser = number)]
    eta: Option<f64>,
    /// Anchoring to check; without it, the anchorings that the step size allows
    #[arg(long, value_name = "BETA", help_heading = UNCERTAINTY, allow_hyphen_values = true, value_parser = number)]
    beta: Option<f64>,
    /// Samples a step, to check with --beta [default: 1]
    #[arg(long, value_name = "N", help_heading = UNCERTAINTY, allow_hyphen_values = true, value_parser = count)]
    batch: Option<u64>,
    #[command(flatten)]
    machine: MachineFlags,
    /// Print one JSON object, in full precision, instead of a table
    #[arg(long)]
    json: bool,
}

const UNCERTAINTY: &str = "For the regime uncertainty only";

const AFTER_HELP: &str = "\
Examples:
  # Constants known, target given: the whole plan.
  pasta plan smooth --smoothness 3 --gap 1.6 --growth 9 --floor 1 --target 0.1

  # A budget instead of a target: the best accuracy that 10^9 samples buy.
  pasta plan mean-square-smooth --ms-smoothness 2 --gap 1 --growth 1 \\
    --floor 1 --budget 1e9 --json

  # All regimes side by side, with what is missing for the others.
  pasta plan --all --smoothness 3 --mu 0.25 --gap 1.6 --distance 1.2 \\
    --growth 0.5 --floor 0.5 --target 0.1

  # What a certified run will probably cost, beside the worst case.
  pasta plan --pilot examples/sine-bowl.toml --target 0.01

  # How long it takes on a cluster of 1000 ranks, and how wide steps should be.
  pasta plan smooth --smoothness 3 --gap 1.6 --growth 9 --floor 1 --target 0.01 \\
    --ranks 1000 --seconds-per-sample 1e-4 --latency 2e-6

  # Which anchorings keep a step of 0.09 stable, and with how many samples.
  pasta plan uncertainty --smoothness 1 --growth 3 --eta 0.09

What a promise means:
  It bounds an expectation, over all noise and over the draw of the point
  where the point is drawn, and it holds for every f and every oracle with
  these constants. It says nothing if a constant is too small for your problem.
  It is worst-case: an envelope, not a forecast, and most runs do better. It is
  about the point that is named, which is not always the last one.";

/// The constants that were given.
struct ConstantFlags(Constants);

impl FlagSet for ConstantFlags {
    fn flags() -> Vec<Arg> {
        let heading = "Constants (those that the regime uses; the others are refused)";
        Constant::ALL.iter().map(|&constant| flags::constant(constant, heading, "")).collect()
    }

    fn take(matches: &ArgMatches) -> Self {
        Self(flags::take_constants(matches))
    }
}

/// Runs `pasta plan`.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    arguments.check_numbers()?;
    if let Some(trace) = &arguments.machine.replay {
        return arguments.replay(trace);
    }
    if arguments.machine.ranks.is_some() && (arguments.all || arguments.pilot.is_some()) {
        return Err(Failure::input("--ranks is for one regime, or for --replay"));
    }
    if let Some(file) = &arguments.pilot {
        return arguments.forecast(file);
    }
    match &arguments.regime {
        _ if arguments.all => compare::run(arguments),
        Some(name) => arguments.answer(&regime::find(name)?),
        None => {
            let list = regime::list();
            Err(Failure::input("name a regime, or compare them with --all")
                .hint(format!("the regimes are\n{list}")))
        }
    }
}

impl Arguments {
    /// No theorem has a use for a constant that is negative, infinite or not a number.
    fn check_numbers(&self) -> Result<(), Failure> {
        for (constant, value) in self.constants.0.known() {
            if !(value >= 0.0 && value.is_finite()) {
                let (name, described) = (constant.name(), regime::described(constant));
                let message = format!("{name} must be finite and not negative, but is {value}");
                return Err(Failure::input(message).hint(format!("{name} is {described}")));
            }
        }
        match self.budget {
            Some(budget) if !(budget > 0.0 && budget.is_finite()) => {
                Err(Failure::input(format!("the budget must be positive and finite, but is {budget}")))
            }
            _ => Ok(()),
        }
    }

    /// Everything but the target is in the file.
    fn forecast(&self, file: &Path) -> Result<Exit, Failure> {
        let stray = self.constants.0.known().map(|(constant, _)| constant.name());
        if let Some(name) = stray.filter(|name| *name != Constant::Target.name()).chain(self.extras()).next()
        {
            let message = format!("--{name} cannot be used with --pilot: it is taken from the file");
            return Err(Failure::input(message));
        }
        pilot::run(file, self.constants.0.get(Constant::Target).map(Target::Norm), self.samples, self.json)
    }

    /// Everything but the machines is in the trace.
    fn replay(&self, trace: &Path) -> Result<Exit, Failure> {
        let constants = self.constants.0.known().map(|(constant, _)| constant.name());
        if let Some(name) = constants.chain(self.extras()).next() {
            return Err(Failure::input(format!(
                "--{name} cannot be used with --replay: it is taken from the trace"
            )));
        }
        scaling::replay(trace, &self.machine, self.json)
    }

    /// The flags besides the constants that only some regimes use, if given.
    fn extras(&self) -> impl Iterator<Item = &'static str> {
        let given = [
            ("budget", self.budget.is_some()),
            ("eta", self.eta.is_some()),
            ("beta", self.beta.is_some()),
            ("batch", self.batch.is_some()),
        ];
        given.into_iter().filter_map(|(name, given)| given.then_some(name))
    }

    fn answer(&self, regime: &Regime) -> Result<Exit, Failure> {
        regime.refuse_unused(self)?;
        regime.refuse_missing(self)?;
        match regime.kind {
            _ if self.machine.ranks.is_none() => console::print(&self.answered(regime)?, self.json),
            Kind::Recipe(row) if self.budget.is_none() => {
                scaling::run(row, &self.constants.0, &self.machine, self.json)
            }
            _ => Err(Failure::input("--ranks is for a recipe with a target")),
        }
    }

    /// What is said about a regime whose constants are there.
    fn answered(&self, regime: &Regime) -> Result<Answered, Failure> {
        let constants = &self.constants.0;
        Ok(match regime.kind {
            Kind::Recipe(row) => Answered::Planned(Box::new(
                single::plan(row, constants, self.budget).map_err(Failure::input)?,
            )),
            Kind::Lower(theorem) => Answered::Limit(limit::Alone::new(theorem, constants)?),
            Kind::Uncertainty => {
                let question = Question { eta: self.eta, beta: self.beta, batch: self.batch };
                Answered::Principle(principle::answer(question, constants)?)
            }
        })
    }
}

/// What is said about one regime.
#[derive(Serialize)]
#[serde(untagged)]
enum Answered {
    Planned(Box<single::Planned>),
    Limit(limit::Alone),
    Principle(principle::Answer),
}

impl Report for Answered {
    fn text(&self) -> String {
        match self {
            Self::Planned(planned) => planned.text(),
            Self::Limit(limit) => limit.text(),
            Self::Principle(answer) => answer.text(),
        }
    }
}

/// The flags of this command alone.
#[derive(Parser)]
struct Alone {
    #[command(flatten)]
    arguments: Arguments,
}

/// What `pasta plan --json` prints for one regime, given its flags by name.
pub(crate) fn json(regime: &str, flags: &[(String, f64)]) -> Result<String, Failure> {
    let regime = regime::all().find(|known| known.name == regime).ok_or_else(|| {
        Failure::input(format!("no regime is called {regime:?}"))
            .hint(format!("the regimes are\n{}", regime::list()))
    })?;
    let known = |name: &str| Constant::ALL.iter().any(|constant| constant.name() == name);
    let extras = ["budget", "eta", "beta", "batch"];
    if let Some((name, _)) = flags.iter().find(|(name, _)| !known(name) && !extras.contains(&name.as_str())) {
        return Err(Failure::input(format!("{}: there is no constant {name:?}", regime.name)));
    }
    let words = flags.iter().map(|(name, value)| format!("--{name}={value}"));
    let words = ["plan".to_owned(), regime.name.to_owned()].into_iter().chain(words);
    let Alone { arguments } = Alone::try_parse_from(words).map_err(|error| {
        let text = error.to_string();
        let line = text.lines().next().unwrap_or_default();
        Failure::input(line.strip_prefix("error: ").unwrap_or(line))
    })?;
    arguments.check_numbers()?;
    regime.refuse_unused(&arguments)?;
    regime.refuse_missing(&arguments)?;
    serde_json::to_string(&arguments.answered(&regime)?).map_err(Failure::system)
}
