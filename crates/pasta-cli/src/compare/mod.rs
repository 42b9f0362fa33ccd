//! `pasta compare`: the methods of the table on one problem, untuned and from the same start.

mod entrant;
mod html;
mod race;
mod results;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::{ArgGroup, Args};
use pasta_opt::draws::Role;
use pasta_opt::method::UNIVERSAL;
use pasta_opt::run::{Run, Target, Task};

use self::entrant::Entrant;
use self::race::Judge;
pub(crate) use self::race::Limits;
pub(crate) use self::results::Results;
use crate::check;
use crate::spec::{self, Contest, Overrides};
use crate::table::check_folder;
use crate::world;
use pasta_report as report;
use pasta_report::console::{self, Exit, Failure, Signals, flags, say, with_threads};

/// The long help.
const HELP: &str = "\
Compare methods on a problem: how soon each reaches a target, how far it comes, how often it fails.

Reads [problem] and [noise] of a file for `pasta solve`. Runs every method
without required settings (auto, and the others with the settings that their
authors publish), each with 1 and with 8 samples a step where you could choose
that, and the file's own [recipe], if it has one.

    pasta compare examples/sine-bowl.toml --budget 50000
    pasta compare examples/sine-bowl.toml --target 0.1 --seeds 20
    pasta compare p.toml --target 0.1 --methods auto,dog,smooth --page race.html
    pasta compare p.toml --budget 1e5 --grid --csv runs.csv

With --target a run ends when it reaches the target, or at the budget. Points
are judged by the problem's formulas, which no method sees. If only samples
are known, a run has reached the target when that is certified, and final
gradients are measured by fresh samples that count for no run.

A simulator is checked once before the first run (docs/pipe.md).

You can name a recipe if its constants are proved for the problem. The file's
own recipe uses the constants of the file, and its fall-back.

--grid tries nine step sizes, 1e-4 to 1, of every method that has one, and
adds two rows for each method: the best in hindsight, which you only get if you
know the answer, and the median. Methods without a published step size run
only with --grid.

The same seed gives the same bits on any number of threads.";

/// Compare methods on a problem: how soon each reaches a target, how far it comes, how often it fails.
#[derive(Args)]
#[command(long_about = HELP)]
#[command(group = ArgGroup::new("end").args(["target", "budget"]).required(true).multiple(true))]
pub(crate) struct Arguments {
    /// The problem file.
    file: PathBuf,
    /// Which methods, separated by commas [default: all without required settings, and the file's own]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    methods: Vec<String>,
    /// Stop a run when |grad f| <= EPS; 1% is a hundredth of the gradient at the start.
    #[arg(long, value_name = "EPS", allow_negative_numbers = true)]
    target: Option<Target>,
    /// Samples of each run; with a target 1e6 unless given.
    #[arg(long, value_name = "SAMPLES", allow_negative_numbers = true, value_parser = flags::count)]
    budget: Option<u64>,
    /// Runs of each method.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: u64,
    /// Add the best and the median of nine step sizes.
    #[arg(long)]
    grid: bool,
    /// Seed of the first run; the others count up from it (overrides the file; default 1).
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = flags::seed())]
    seed: Option<u64>,
    /// Threads; does not change a bit of the result.
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = flags::thread_count())]
    threads: Option<u16>,
    /// Write a table of all runs, one a line.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write a page with the table and the curves.
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// Skip the few dozen samples that check a simulator before the first run (as check = false in the file does).
    #[arg(long)]
    no_check: bool,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

/// Samples of a run that has a target and no budget.
const BUDGET: u64 = 1_000_000;

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let Arguments { file, target, seed, threads, .. } = arguments;
    let overrides = Overrides { seed: *seed, threads: *threads, target: *target, ..Overrides::default() };
    let budget = arguments.budget.unwrap_or(BUDGET);
    if budget == 0 {
        return Err(Failure::input("--budget: must be at least 1"));
    }
    for (flag, path) in [("--csv", &arguments.csv), ("--page", &arguments.page)] {
        path.as_ref().map_or(Ok(()), |path| check_folder(flag, path))?;
    }
    let signals = Signals::register()?;
    let contest = spec::read_contest(file, &overrides, signals.flag())?;
    let limits = Limits { budget, target: contest.target, seeds: arguments.seeds, seed: contest.setup.seed };
    with_threads(contest.setup.threads, || {
        let Arguments { methods, grid, no_check, .. } = arguments;
        let raced = match checked(&contest, &limits, *no_check, &signals.flag())? {
            None => None,
            Some(samples) => raced(&contest, limits, methods, *grid, samples, &signals.flag())?,
        };
        let Some(results) = raced else {
            say("interrupted; no results were written");
            return Ok(signals.received().unwrap_or(Exit::Interrupted));
        };
        if let Some(path) = &arguments.csv {
            report::write_file(path, results.csv())?;
        }
        if let Some(path) = &arguments.page {
            report::write_file(path, html::page(&results).html()?)?;
        }
        console::print(&results, arguments.json)
    })
}

/// Checks an oracle that is not of this library, once for all runs: the samples that it took; `None` if `stop` was set.
pub(crate) fn checked(
    contest: &Contest,
    limits: &Limits,
    unwanted: bool,
    stop: &Arc<AtomicBool>,
) -> Result<Option<u128>, Failure> {
    if unwanted {
        return Ok(Some(0));
    }
    let problem = &contest.setup.problem;
    let check = problem.simulator.as_ref().is_none_or(|simulator| simulator.check);
    // No run comes of it, so that its budget is only for the check.
    let task = Task { seed: limits.seed, budget: Some(u128::MAX), check, ..Task::default() };
    let stop = world::watch(Arc::clone(stop));
    let mut run = Run::start(Arc::clone(problem.what()), task, stop).map_err(Failure::input)?;
    let is_done = check::before_run(&mut run)?;
    Ok(is_done.then(|| run.gate().ledger().of(Role::Check).samples))
}

/// The results of the methods with these names, or of all, after a check that took so many samples; `None` if `stop` was set.
pub(crate) fn raced(
    contest: &Contest,
    limits: Limits,
    methods: &[String],
    grid: bool,
    check_samples: u128,
    stop: &Arc<AtomicBool>,
) -> Result<Option<Results>, Failure> {
    let judge = Judge::new(contest, &limits)?;
    let entrants = entrants(methods, grid, contest, &limits, &judge)?;
    let outcomes = race::run(contest, &limits, &judge, &entrants, stop)?;
    Ok(outcomes.map(|outcomes| Results::new(contest, limits, &judge, check_samples, outcomes)))
}

fn entrants(
    methods: &[String],
    grid: bool,
    contest: &Contest,
    limits: &Limits,
    judge: &Judge<'_>,
) -> Result<Vec<Entrant>, Failure> {
    let mut entrants = Vec::new();
    if methods.is_empty() {
        entrants = entrant::untuned(limits, &contest.setup.problem);
        entrants.extend(contest.own.as_ref().and_then(entrant::own));
    } else {
        for name in methods {
            let found = entrant::named(name, contest, limits)?;
            if found.is_empty() && name == UNIVERSAL {
                let message = "universal takes part as the file's own method";
                let hint = "write [recipe] name = \"universal\" into the file, and give --target EPS";
                return Err(Failure::input(message).hint(hint));
            }
            if found.is_empty() && !(grid && entrant::has_grid(name)) {
                let message = format!("nobody publishes a step size for {name}");
                return Err(Failure::input(message).hint("--grid runs it with nine of them"));
            }
            entrants.extend(found);
        }
    }
    if grid {
        let only = |name: &str| methods.is_empty() || methods.iter().any(|m| m == name);
        entrants.extend(entrant::grid(
            limits,
            judge.start_gradient,
            contest.setup.problem.oracle.about(),
            only,
        ));
    }
    Ok(entrants)
}
