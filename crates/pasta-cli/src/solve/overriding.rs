//! The flags of `pasta solve` about its problem.

use std::path::PathBuf;

use clap::Args;
use pasta_opt::forecast::Price;
use pasta_opt::gate::{MOST_ROUND_COST, OnNan};
use pasta_opt::run::Target;
use pasta_report::console::flags::{sample_count, seed, thread_count};

use crate::spec::{Ends, Overrides, QuickTry};

/// Flags that override a problem file.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct Flags {
    /// Seed of all randomness (overrides the file; default 1).
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    #[arg(value_parser = seed())]
    seed: Option<u64>,
    /// Threads; does not change a bit of the result.
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = thread_count())]
    threads: Option<u16>,
    /// Stop before drawing more samples than this.
    #[arg(long, allow_negative_numbers = true, value_name = "SAMPLES", value_parser = sample_count)]
    budget: Option<u128>,
    /// If some samples at a point are NaN or infinite and others are not: stop (the default), or skip them, which biases the result and voids
    /// certificates.
    #[arg(long, value_name = "stop|skip")]
    on_nan: Option<OnNan>,
    /// Without a budget, go on even if the target is out of reach (like no_limit = true in the file).
    #[arg(long)]
    no_limit: bool,
    /// What a round costs, in samples (as round_cost in the file does): auto and certificates then ask less often, and for more at once. A round is a
    /// question, or several that go out together [default: 0, rounds are free].
    #[arg(long, value_name = "SAMPLES", value_parser = clap::value_parser!(u64).range(0..=MOST_ROUND_COST))]
    round_cost: Option<u64>,
    /// Target accuracy of the recipe; for auto, the same as --certify.
    #[arg(long, allow_negative_numbers = true, value_name = "EPS")]
    target: Option<Target>,
    /// Stop when fresh samples certify |grad f| <= EPS (like `certificate` in the file); 1% means 1 % of the gradient at the start, which is
    /// measured. A recipe with a larger target aims at EPS instead, unless you give --target.
    #[arg(long, allow_negative_numbers = true, value_name = "EPS")]
    certify: Option<Target>,
    /// Samples of the run before it forecasts itself for the first time; none for no forecast [default: 1000].
    #[arg(long, allow_negative_numbers = true, value_name = "N|none", value_parser = pilot)]
    pilot: Option<u128>,
    /// What a sample costs, such as 0.2 or "0.2 EUR": forecast, progress and report say what the run costs.
    #[arg(long, allow_negative_numbers = true, value_name = "PRICE")]
    price: Option<Price>,
    /// Keep every coordinate at least this: one number, or one for each with commas between (-inf: no bound). Adds to the terms of the file.
    #[arg(long, allow_hyphen_values = true, value_name = "NUMBERS")]
    lower: Option<Ends>,
    /// Keep every coordinate at most this, likewise.
    #[arg(long, allow_hyphen_values = true, value_name = "NUMBERS")]
    upper: Option<Ends>,
    /// Move a start outside of the bounds, or of what a term allows, to the nearest point inside; without this flag it is refused.
    #[arg(long)]
    project_start: bool,
    /// Folder for trace, checkpoint and result; a relative one is taken from where you are.
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// A number of samples, or none.
fn pilot(text: &str) -> Result<u128, String> {
    if text == "none" { Ok(0) } else { sample_count(text).map_err(|error| format!("{error}, or none")) }
}

impl Flags {
    /// What they override.
    pub(super) fn overrides(&self) -> Overrides {
        let Self {
            seed,
            threads,
            budget,
            on_nan,
            no_limit,
            round_cost,
            target,
            certify,
            pilot,
            price,
            lower,
            upper,
            project_start,
            output,
        } = self.clone();
        Overrides {
            seed,
            threads,
            budget,
            on_nan,
            no_limit,
            round_cost,
            target,
            certify,
            pilot,
            price,
            lower,
            upper,
            project_start,
            output,
            ..Overrides::default()
        }
    }
}

/// A simulator on the command line, without a file.
#[derive(Debug, Clone, Args)]
pub(super) struct Quick {
    /// Start this simulator instead of reading a file: the program and its arguments, quoted as for a shell (but no shell runs). The method is
    /// auto, so give --target or --budget.
    #[arg(long, value_name = "WORDS", conflicts_with = "file", requires = "dimension", help_heading = HEADING)]
    command: Option<String>,
    /// The number of coordinates.
    #[arg(long, value_name = "D", requires = "command", help_heading = HEADING)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    dimension: Option<u32>,
    /// The start: one number for all coordinates, or as many as there are with commas between [default: 0]
    #[arg(long, value_name = "X", requires = "command", allow_hyphen_values = true, help_heading = HEADING)]
    start: Option<String>,
}

const HEADING: &str = "A simulator without a file";

impl Quick {
    /// The simulator, if one was given.
    pub(super) fn simulator(&self) -> Option<QuickTry<'_>> {
        let (dimension, start) = (self.dimension.unwrap_or(1), self.start.as_deref().unwrap_or("0"));
        Some(QuickTry { command: self.command.as_deref()?, dimension, start })
    }
}
