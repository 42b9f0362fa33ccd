//! `pasta-lab`: what serves those who check the paper.

mod demo;
mod duel;
mod forecast;
mod hard;
mod instance;
mod leaderboard;
mod phase_retrieval;
mod reproduce;
mod self_test;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use pasta_report::console;

/// The laboratory of `pasta`: every claim of the paper, measured
#[derive(Parser)]
#[command(name = "pasta-lab", version, propagate_version = true)]
#[command(
    after_help = "Exit codes: 0 done, 1 system failure or a claim that does not hold, 2 bad input, 3 diverged.\nStart here: pasta-lab demo"
)]
struct Program {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Demo(demo::Arguments),
    Duel(duel::Arguments),
    Forecast(forecast::Arguments),
    Instance(instance::Arguments),
    Leaderboard(leaderboard::Arguments),
    PhaseRetrieval(phase_retrieval::Arguments),
    Reproduce(reproduce::Arguments),
    SelfTest(self_test::Arguments),
}

fn main() -> ExitCode {
    console::program(|program: Program| match program.command {
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Duel(arguments) => duel::run(&arguments),
        Command::Forecast(arguments) => forecast::run(&arguments),
        Command::Instance(arguments) => instance::run(&arguments),
        Command::Leaderboard(arguments) => leaderboard::run(&arguments),
        Command::PhaseRetrieval(arguments) => phase_retrieval::run(&arguments),
        Command::Reproduce(arguments) => reproduce::run(&arguments),
        Command::SelfTest(arguments) => self_test::run(&arguments),
    })
    .into()
}
