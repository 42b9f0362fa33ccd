//! What a program on a console needs: answers on stdout, talk on stderr, failures, flags, signals, threads.

mod alarm;
mod bar;
pub mod flags;
mod listener;
mod output;
mod program;
mod signals;

pub use alarm::alarm;
pub use bar::{Bar, duration};
pub use listener::listen;
pub use output::{Report, Tone, answer, json, pass_on, pretty_json, print, say, say_over_bar, width};
pub use pasta_io::{Exit, Failure, is_muted, mute};
pub use pasta_opt::verify::FORMAT;
pub use program::{EXIT_CODES, program, program_with, with_threads};
pub use signals::Signals;
