//! `pasta`: plan, run and check stochastic optimisation under unbounded variance.

mod calibrate;
mod certify;
mod demo;
mod duel;
mod error;
mod instance;
mod pilot;
mod plan;
mod report;
mod reproduce;
mod signals;
mod solve;
mod spec;
mod talk;
mod text;
mod threads;

use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use error::Failure;

/// Stochastic optimisation when the noise grows with the distance.
///
/// Says before a run what it will cost, never returns nonsense silently, and counts every sample.
#[derive(Parser)]
#[command(name = "pasta", version, propagate_version = true)]
#[command(
    after_help = "Exit codes: 0 done, 1 system failure, 2 bad input, 3 diverged, 4 not certified though that \
                        was asked for, 130/143 interrupted (a run has written a checkpoint).\nStart here: pasta demo"
)]
struct Program {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Calibrate(calibrate::Arguments),
    Certify(certify::Arguments),
    Demo(demo::Arguments),
    Duel(duel::Arguments),
    Instance(instance::Arguments),
    Plan(plan::Arguments),
    Reproduce(reproduce::Arguments),
    Solve(solve::Arguments),
    Resume(solve::ResumeArguments),
}

fn main() -> ExitCode {
    let outcome = match Program::parse().command {
        Command::Calibrate(arguments) => calibrate::run(&arguments),
        Command::Certify(arguments) => certify::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Duel(arguments) => duel::run(&arguments),
        Command::Instance(arguments) => instance::run(&arguments),
        Command::Plan(arguments) => plan::run(&arguments),
        Command::Reproduce(arguments) => reproduce::run(&arguments),
        Command::Solve(arguments) => solve::run(&arguments),
        Command::Resume(arguments) => solve::resume(&arguments),
    };
    let exit = outcome.unwrap_or_else(|failure: Failure| {
        // A closed stderr is no reason to fail otherwise than by the exit code.
        let _ = writeln!(std::io::stderr(), "{failure}");
        failure.exit
    });
    ExitCode::from(exit as u8)
}
