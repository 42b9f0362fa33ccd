//! `pasta plan`: what a run would do, promise and cost, before it draws a sample.

mod compare;
mod limit;
mod pilot;
mod recipe;
mod single;

use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Args};
use pasta_opt::recipe::{Constant, Constants};
use pasta_opt::run::Target;
use recipe::Given;

use pasta_report::console::flags::{self, FlagSet, number, sample_count};
use pasta_report::console::{self, Exit, Failure};

/// Show what a run would do, promise and cost, before it draws a sample.
///
/// Choose a recipe by what you know about f, and give its constants. You get the step size, the number of steps and the batch sizes
/// of its theorem, the accuracy it promises, its expected cost in samples and, where one is known, a number of samples that no
/// zero-respecting method can do without. The noise may grow without bound: its variance at x is at most B^2 |x - x0|^2 + b^2, x0 the
/// start.
///
/// `pasta plan RECIPE` alone names the constants that the recipe needs. Tables are rounded; --json is not.
#[derive(Args)]
#[command(after_long_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The recipe, by what you know about f
    #[arg(value_name = "RECIPE", value_parser = recipe::names())]
    recipe: Option<String>,
    /// Compare every recipe whose constants are given
    #[arg(long, conflicts_with = "recipe")]
    all: bool,
    /// Forecast what a certified run of this problem file will cost, from a pilot of a few cheap runs
    #[arg(long, value_name = "FILE", conflicts_with_all = ["recipe", "all", "budget"])]
    pilot: Option<PathBuf>,
    /// Samples that the pilot may draw [default: the file's, at most a tenth of its budget and plan]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = sample_count)]
    #[arg(requires = "pilot", conflicts_with_all = ["recipe", "all"])]
    samples: Option<u128>,
    #[command(flatten)]
    constants: flags::Given<ConstantFlags>,
    /// Instead of a target: find the best target whose expected samples are at most N
    #[arg(long, value_name = "N", conflicts_with = Constant::Target.name())]
    #[arg(allow_hyphen_values = true, value_parser = number)]
    budget: Option<f64>,
    /// Print one JSON object, in full precision, instead of a table
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
Examples:
  # Constants known, target given: the whole plan.
  pasta plan smooth --smoothness 3 --gap 1.6 --growth 9 --floor 1 --target 0.1

  # A budget instead of a target: the best accuracy that 10^9 samples buy.
  pasta plan mean-square-smooth --ms-smoothness 2 --gap 1 --growth 1 \\
    --floor 1 --budget 1e9 --json

  # All recipes side by side, with what is missing for the others.
  pasta plan --all --smoothness 3 --mu 0.25 --gap 1.6 --distance 1.2 \\
    --growth 0.5 --floor 0.5 --target 0.1

  # What a certified run will probably cost, beside the worst case.
  pasta plan --pilot examples/sine-bowl.toml --target 0.01

What a promise means:
  It bounds an expectation over the noise (and over the draw of the point, if
  the point is drawn), for every f and every oracle with these constants. It
  says nothing if a constant is too small for your problem. It is a worst case,
  not a forecast: most runs do better. It is about the named point, which is
  not always the last one.";

/// The constants that were given.
struct ConstantFlags(Constants);

impl FlagSet for ConstantFlags {
    fn flags() -> Vec<Arg> {
        let heading = "Constants (those that the recipe uses; the others are refused)";
        Constant::ALL.iter().map(|&constant| flags::constant(constant, heading, "")).collect()
    }

    fn take(matches: &ArgMatches) -> Self {
        Self(flags::take_constants(matches))
    }
}

/// Runs `pasta plan`.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let given = Given { constants: arguments.constants.0, budget: arguments.budget };
    given.check_numbers()?;
    if let Some(file) = &arguments.pilot {
        return arguments.forecast(file);
    }
    match &arguments.recipe {
        _ if arguments.all => compare::run(&given, arguments.json),
        Some(name) => console::print(&planned(name, &given)?, arguments.json),
        None => Err(Failure::input("name a recipe, or compare them with --all")
            .hint(format!("the recipes are\n{}", recipe::list()))),
    }
}

impl Arguments {
    /// Everything but the target is in the file.
    fn forecast(&self, file: &Path) -> Result<Exit, Failure> {
        let constants = &self.constants.0;
        let mut stray = constants.known().map(|(constant, _)| constant.name());
        if let Some(name) = stray.find(|name| *name != Constant::Target.name()) {
            let message = format!("--{name} cannot be used with --pilot: it is taken from the file");
            return Err(Failure::input(message));
        }
        pilot::run(file, constants.get(Constant::Target).map(Target::Norm), self.samples, self.json)
    }
}

/// The plan of one recipe.
fn planned(name: &str, given: &Given) -> Result<single::Planned, Failure> {
    let row = recipe::find(name)?;
    given.check_for(row)?;
    single::plan(row, &given.constants, given.budget).map_err(Failure::input)
}

/// What `pasta plan --json` prints for one recipe, given its constants and perhaps a budget by name.
pub(crate) fn json(name: &str, numbers: &[(String, f64)]) -> Result<String, Failure> {
    recipe::find(name)?;
    let mut given = Given { constants: Constants::default(), budget: None };
    for (key, value) in numbers {
        match Constant::ALL.iter().find(|constant| constant.name() == key) {
            Some(&constant) => given.constants.set(constant, *value),
            None if key == "budget" => given.budget = Some(*value),
            None => return Err(Failure::input(format!("{name}: there is no constant {key:?}"))),
        }
    }
    if given.budget.is_some() && given.constants.get(Constant::Target).is_some() {
        return Err(Failure::input("a target cannot be used with a budget"));
    }
    given.check_numbers()?;
    serde_json::to_string(&planned(name, &given)?).map_err(Failure::system)
}
