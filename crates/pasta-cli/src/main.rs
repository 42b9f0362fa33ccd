//! `pasta`: plan, run and check stochastic optimisation under unbounded variance.
#![expect(clippy::print_stderr, reason = "stderr is where a program talks")]

mod demo;
mod error;
mod plan;
mod report;
mod solve;
mod spec;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use error::Failure;

/// Stochastic optimisation when the noise grows with the distance.
///
/// Says before a run what it will cost, never returns nonsense silently, and counts every sample.
#[derive(Parser)]
#[command(name = "pasta", version, propagate_version = true)]
#[command(
    after_help = "Exit codes: 0 done, 1 system failure, 2 bad input, 3 diverged, 130/143 interrupted (a \
                        checkpoint was written).\nStart here: pasta demo"
)]
struct Program {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Demo(demo::Arguments),
    Plan(plan::Arguments),
    Solve(solve::Arguments),
    Resume(solve::ResumeArguments),
}

fn main() -> ExitCode {
    let outcome = match Program::parse().command {
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Plan(arguments) => plan::run(&arguments),
        Command::Solve(arguments) => solve::run(&arguments),
        Command::Resume(arguments) => solve::resume(&arguments),
    };
    let exit = outcome.unwrap_or_else(|failure: Failure| {
        eprintln!("{failure}");
        failure.exit
    });
    ExitCode::from(exit as u8)
}
