//! What is said on stderr while work goes on.

use std::io::{IsTerminal, Write};

/// A line on stderr. A closed stderr is no reason to stop a run.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// A line on stderr in place of the bar, which goes on below it.
pub(crate) fn say_over_bar(line: &str) {
    let clear = if std::io::stderr().is_terminal() { "\r\x1b[2K" } else { "" };
    say(&format!("{clear}{line}"));
}
