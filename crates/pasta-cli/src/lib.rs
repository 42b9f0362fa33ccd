//! `pasta`: plan, run and check stochastic optimisation under unbounded variance.
//!
//! The program is a function, so that the Python package can bring it along.

pub mod answers;
mod calibrate;
mod certify;
mod check;
mod compare;
mod doors;
mod fit;
mod forecast;
mod inspect;
mod plan;
mod predict;
mod problems;
mod solve;
mod table;
mod verify;
mod waiting;
mod world;

use std::ffi::OsString;

use clap::{Parser, Subcommand};
use pasta_io::spec;
use pasta_report::console;

/// The stochastic optimiser that tells you when it is done.
///
/// Start with `pasta init`, which writes a small working problem. docs/tutorial.md takes a problem of your own to a certified point in 15 minutes.
#[derive(Parser)]
#[command(name = "pasta", version = VERSION, propagate_version = true)]
#[command(after_help = format!("{}\n{LAB}", console::EXIT_CODES))]
struct Program {
    #[command(subcommand)]
    command: Command,
}

/// The version, and what it was built with.
const VERSION: &str = match (cfg!(feature = "mpi"), cfg!(feature = "parquet")) {
    (true, true) => concat!(env!("CARGO_PKG_VERSION"), " (features: mpi, parquet)"),
    (true, false) => concat!(env!("CARGO_PKG_VERSION"), " (features: mpi)"),
    (false, true) => concat!(env!("CARGO_PKG_VERSION"), " (features: parquet)"),
    (false, false) => env!("CARGO_PKG_VERSION"),
};

const LAB: &str = "`pasta-lab demo` shows what pasta does; pasta-lab also reproduces the paper.";

/// In the order in which they are used.
#[derive(Subcommand)]
enum Command {
    Init(doors::InitArguments),
    Inspect(Box<inspect::Arguments>),
    Fit(Box<fit::Arguments>),
    Predict(Box<predict::Arguments>),
    Check(check::Arguments),
    Calibrate(calibrate::Arguments),
    Plan(plan::Arguments),
    Solve(solve::Arguments),
    Resume(solve::ResumeArguments),
    Certify(certify::Arguments),
    Verify(verify::Arguments),
    Compare(compare::Arguments),
    Problems(problems::Arguments),
    Schema(doors::SchemaArguments),
    Completions(doors::CompletionArguments),
    Man(doors::ManArguments),
}

/// Runs the program with a command line, its own name first. What it returns is the exit code.
pub fn run(arguments: Vec<OsString>) -> u8 {
    console::listen();
    let session = match world::begin() {
        Ok(session) => session,
        Err(failure) => {
            console::say(&failure.to_string());
            return failure.exit as u8;
        }
    };
    let mut complaint = String::new();
    let exit = console::program_with(arguments, |program: Program| {
        let done = match program.command {
            Command::Calibrate(arguments) => calibrate::run(&arguments),
            Command::Certify(arguments) => certify::run(&arguments),
            Command::Compare(arguments) => compare::run(&arguments),
            Command::Fit(arguments) => fit::run(&arguments),
            Command::Inspect(arguments) => inspect::run(&arguments),
            Command::Check(arguments) => check::run(&arguments),
            Command::Plan(arguments) => plan::run(&arguments),
            Command::Predict(arguments) => predict::run(&arguments),
            Command::Problems(arguments) => problems::run(&arguments),
            Command::Solve(arguments) => solve::run(&arguments),
            Command::Resume(arguments) => solve::resume(&arguments),
            Command::Verify(arguments) => verify::run(&arguments),
            Command::Init(arguments) => doors::init(&arguments),
            Command::Schema(arguments) => doors::schema(&arguments),
            Command::Completions(arguments) => doors::completions(&arguments),
            Command::Man(arguments) => doors::man(&arguments),
        };
        done.inspect_err(|failure| complaint = failure.to_string())
    });
    session.end(exit, &complaint)
}
