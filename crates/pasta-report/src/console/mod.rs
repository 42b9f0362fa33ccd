//! What a program on a console needs: answers on stdout, talk on stderr, failures, flags, signals, threads.

mod alarm;
mod bar;
mod failure;
pub mod flags;
mod output;
mod program;
mod signals;

pub use alarm::alarm;
pub use bar::{Bar, duration};
pub use failure::{Exit, Failure};
pub use output::{
    FORMAT, Report, Tone, answer, is_muted, json, mute, pass_on, pretty_json, print, say, say_over_bar, width,
};
pub use program::{EXIT_CODES, program, program_with, with_threads};
pub use signals::Signals;
