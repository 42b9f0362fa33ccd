//! `pasta calibrate`: what samples say about the constants of a problem file, and what they cannot say.

mod block;
mod findings;
mod html;

use std::path::PathBuf;

use clap::Args;
use findings::Findings;
use pasta_opt::calibrate::{Calibration, CalibrationError};
use pasta_opt::gate::Halt;

use crate::spec::{self, Overrides, Setup};
use pasta_report as report;
use pasta_report::console::{self, Bar, Exit, Failure, Signals, flags, say, with_threads};

/// The long help.
const HELP: &str = r"Estimate L, B, b of a problem and check how its noise grows.

L is the smoothness of f. B and b bound the noise: its variance at x is at
most B^2 |x - x0|^2 + b^2, x0 the start (an assumption that is called BG-0).

Reads [problem] and [noise] of a file that `pasta solve` takes; a [recipe] is
not needed. Draws samples at the start and along a few rays from it, the same
samples at all points of a ray, and prints

  * estimates of L, Lbar, B and b with intervals of about 95 %, and what each
    may be used for;
  * for each ray, how fast the noise grows, and whether BG-0 can hold;
  * what cannot be measured at all (Delta, the distance to a minimiser, mu,
    rho) and must be declared;
  * a table [recipe.constants] that `pasta solve` takes. With it nothing is
    promised: estimates prove nothing. L and Lbar are in it with a factor of
    2, and a trial run has used it: the first lines say how that went.

Examples:

    pasta calibrate examples/sine-bowl.toml
    pasta calibrate examples/sine-bowl.toml --budget 200000 --output calibration
    pasta calibrate examples/sine-bowl.toml --json

The budget of the file is for runs; this command has its own. Ctrl-C ends it,
and nothing is written.";

/// Estimate L, B, b of a problem and check how its noise grows.
#[derive(Args)]
#[command(long_about = HELP)]
pub(crate) struct Arguments {
    /// The problem file.
    file: PathBuf,
    /// The most samples to draw; more of them sharpen every figure.
    #[arg(long, allow_negative_numbers = true, value_name = "SAMPLES", value_parser = flags::sample_count)]
    #[arg(default_value = "32000")]
    budget: u128,
    /// Seed of all randomness (overrides the file; default 1).
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = flags::seed())]
    seed: Option<u64>,
    /// Threads; does not change a bit of the result.
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = flags::thread_count())]
    threads: Option<u16>,
    /// Folder for index.html, calibration.json and constants.toml; nothing is written without it.
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Print one JSON object instead of tables.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let Arguments { file, budget, seed, threads, output, json } = arguments;
    let overrides = Overrides { seed: *seed, threads: *threads, ..Overrides::default() };
    let setup = spec::read_setup(file, &overrides)?;
    if !setup.problem.oracle.about().shared {
        let message = "a calibration evaluates each sample at several points, which this simulator cannot: its samples do not follow \
                       from their seeds";
        return Err(Failure::input(message));
    }
    // Beyond 64 bits no run will ever end: nothing is lost by cutting there.
    let budget = u64::try_from(*budget).unwrap_or(u64::MAX);
    with_threads(setup.threads, || {
        let signals = Signals::register()?;
        if let Some(folder) = output {
            // A folder that cannot be had is told before the work, not after.
            report::folder_for_page(folder)?;
        }
        let Some(measured) = measure(&setup, budget, &signals)? else {
            say("interrupted; no results were written");
            return Ok(signals.received().unwrap_or(Exit::Interrupted));
        };
        let findings = Findings::new(&setup, budget, &measured);
        if let Some(folder) = output {
            report::write(folder, "calibration.json", console::json(&findings)? + "\n")?;
            report::write(folder, "constants.toml", &findings.constants)?;
            report::write(folder, "index.html", &html::page(&findings).html()?)?;
        }
        console::print(&findings, *json)
    })
}

/// The measurement, or nothing if a signal ended it.
fn measure(setup: &Setup, budget: u64, signals: &Signals) -> Result<Option<Calibration>, Failure> {
    let progress = Bar::of(budget);
    let mut gate = setup.problem.gate(setup.seed, None, signals.flag());
    let watch = &mut |samples| progress.set(u64::try_from(samples).unwrap_or(u64::MAX), budget);
    let measured = Calibration::measure(&mut gate, &setup.problem.start, budget, watch);
    drop(progress);
    match measured {
        Ok(calibration) => Ok(Some(calibration)),
        Err(CalibrationError::Halt(Halt::Interrupted)) => Ok(None),
        Err(error @ CalibrationError::Budget { .. }) => Err(Failure::input(format!("--budget: {error}"))),
        Err(error @ CalibrationError::Halt(Halt::Outside { .. })) => Err(Failure::input(error)),
        Err(error @ CalibrationError::Halt(_)) => Err(Failure::system(error)),
        Err(error) => Err(Failure::input(error)),
    }
}
