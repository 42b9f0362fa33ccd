//! Answers on stdout, talk on stderr.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

use serde::Serialize;

use super::{Exit, FORMAT, Failure, is_muted};

/// An answer that can be printed either way.
pub trait Report: Serialize {
    /// For people, no wider than the console.
    fn text(&self) -> String;

    /// How the first words of the text, which are the verdict, are coloured on a terminal.
    fn tone(&self) -> Tone {
        Tone::Plain
    }
}

/// The colour of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// As it is.
    Plain,
    /// What was asked for is there.
    Good,
    /// It is not.
    Open,
    /// Nothing follows.
    Bad,
}

impl Tone {
    /// The text with its first words, up to two blanks, in this colour.
    fn tint(self, text: &str) -> String {
        let code = match self {
            Self::Plain => return text.to_owned(),
            Self::Good => "1;32",
            Self::Open => "1;33",
            Self::Bad => "1;31",
        };
        let (verdict, rest) = text.split_at(text.find("  ").or(text.find('\n')).unwrap_or(text.len()));
        format!("\x1b[{code}m{verdict}\x1b[0m{rest}")
    }
}

/// True if an answer may have colours: on a terminal, unless the environment asks for none.
fn is_coloured() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Prints an answer to stdout.
pub fn print(report: &impl Report, as_json: bool) -> Result<Exit, Failure> {
    let text = if as_json { json(report)? } else { report.text() };
    if as_json || !is_coloured() {
        return answer(&text).map(|()| Exit::Done);
    }
    write_out(&report.tone().tint(&printable(&text))).map(|()| Exit::Done)
}

/// A report with its format before it.
#[derive(Serialize)]
struct Versioned<'r, R> {
    format: u32,
    #[serde(flatten)]
    report: &'r R,
}

/// A report as one object, which begins with its format.
pub fn json(report: &impl Report) -> Result<String, Failure> {
    serde_json::to_string(&Versioned { format: FORMAT, report }).map_err(Failure::system)
}

/// The same in lines, for a file.
pub fn pretty_json(report: &impl Report) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(&Versioned { format: FORMAT, report });
    text.map(|text| text + "\n").map_err(Failure::system)
}

/// How many columns an answer may have: those of the terminal. 80 where stdout is none, or claims to be too narrow to
/// be true.
pub fn width() -> usize {
    let claimed = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
    claimed.filter(|width| *width >= 40).unwrap_or(80)
}

/// Text as a terminal can show it: names in files may hold control characters, which are escaped, line ends excepted.
fn printable(text: &str) -> Cow<'_, str> {
    let is_control = |c: char| c.is_control() && c != '\n';
    if !text.contains(is_control) {
        return text.into();
    }
    let escaped = |c: char| if is_control(c) { c.escape_default().collect() } else { String::from(c) };
    text.chars().map(escaped).collect()
}

/// The answer, on stdout.
pub fn answer(text: &str) -> Result<(), Failure> {
    write_out(&printable(text))
}

fn write_out(text: &str) -> Result<(), Failure> {
    if is_muted() {
        return Ok(());
    }
    match writeln!(io::stdout().lock(), "{text}") {
        // Nobody listens any more: not our failure.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(|error| Failure::system(format!("stdout: {error}"))),
    }
}

/// A line on stderr. A closed stderr is no reason to stop a run.
pub fn say(line: &str) {
    if !is_muted() {
        let _ = writeln!(io::stderr(), "{}", printable(line));
    }
}

/// A line on stderr in place of the bar, which goes on below it.
pub fn say_over_bar(line: &str) {
    if !is_muted() {
        pass_on(line);
    }
}

/// The same for a line that is not this program's own, and is passed on by processes that are muted too.
pub fn pass_on(line: &str) {
    let clear = if io::stderr().is_terminal() { "\r\x1b[2K" } else { "" };
    let _ = writeln!(io::stderr(), "{clear}{line}");
}
