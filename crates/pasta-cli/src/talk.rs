//! Answers on stdout, talk on stderr.

use std::io::{self, IsTerminal, Write};

use crate::error::Failure;

/// The answer, on stdout.
pub(crate) fn answer(text: &str) -> Result<(), Failure> {
    match writeln!(io::stdout().lock(), "{text}") {
        // Nobody listens any more: not our failure.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(|error| Failure::system(format!("stdout: {error}"))),
    }
}

/// A line on stderr. A closed stderr is no reason to stop a run.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// A line on stderr in place of the bar, which goes on below it.
pub(crate) fn say_over_bar(line: &str) {
    let clear = if io::stderr().is_terminal() { "\r\x1b[2K" } else { "" };
    say(&format!("{clear}{line}"));
}
