//! The program `pasta`; see the library beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    pasta_cli::run(std::env::args_os().collect()).into()
}
