//! What a program says when it cannot go on, and the exit code that goes with it.

use std::fmt;
use std::process::ExitCode;

use pasta_opt::verify::FORMAT;
use serde::Serialize;

/// Exit codes. 129, 130, 137 and 143 are those that shells give to programs ended by a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The promise is kept, or the budget was reached as asked.
    Done = 0,
    /// The system failed: a file could not be read or written, an oracle broke down.
    System = 1,
    /// The input is wrong: flags, files, constants.
    Input = 2,
    /// The run diverged.
    Diverged = 3,
    /// A certificate was asked for, and there is none.
    NotCertified = 4,
    /// The budget ended before the run did.
    OutOfBudget = 5,
    /// Stopped by SIGHUP; a run that had begun has written a checkpoint.
    HungUp = 129,
    /// Stopped by Ctrl-C; a run that had begun has written a checkpoint.
    Interrupted = 130,
    /// Stopped at once by a second signal; nothing was written.
    Killed = 137,
    /// Stopped by SIGTERM; a run that had begun has written a checkpoint.
    Terminated = 143,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// One sentence, where it is about, an optional hint, and an exit code. All of it may echo what a user gave, and is made
/// safe to show.
#[derive(Debug, Serialize)]
pub struct Failure {
    /// How the program shall exit.
    #[serde(skip)]
    pub exit: Exit,
    message: String,
    file: Option<String>,
    line: Option<usize>,
    hint: Option<String>,
}

impl Failure {
    /// Something is wrong with what the user gave.
    pub fn input(message: impl fmt::Display) -> Self {
        Self::new(Exit::Input, message)
    }

    /// Something is wrong with the machine.
    pub fn system(message: impl fmt::Display) -> Self {
        Self::new(Exit::System, message)
    }

    fn new(exit: Exit, message: impl fmt::Display) -> Self {
        let message = safe(&message.to_string(), LONGEST_MESSAGE);
        Self { exit, message, file: None, line: None, hint: None }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(self, hint: impl AsRef<str>) -> Self {
        Self { hint: Some(safe(hint.as_ref(), LONGEST_HINT)), ..self }
    }

    /// Adds the file that it is about.
    #[must_use]
    pub fn in_file(self, file: impl AsRef<str>) -> Self {
        Self { file: Some(safe(file.as_ref(), LONGEST_PATH)), ..self }
    }

    /// Adds the line of the file.
    #[must_use]
    pub fn at_line(self, line: usize) -> Self {
        Self { line: Some(line), ..self }
    }

    /// What to do about it, if that was said.
    pub fn given_hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// What went wrong, without its place.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// All of it but the word error, for those who have another word for that.
    pub fn words(&self) -> String {
        let text = self.to_string();
        text.strip_prefix("error: ").unwrap_or(&text).to_owned()
    }

    /// The failure as an object: `{"format": 2, "error": {"message", "file", "line", "hint"}}`.
    pub fn json(&self) -> String {
        format!(r#"{{"format":{FORMAT},"error":{}}}"#, serde_json::to_string(self).unwrap_or_default())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: ")?;
        if let Some(file) = &self.file {
            write!(f, "{file}:")?;
            self.line.map_or(Ok(()), |line| write!(f, "{line}:"))?;
            write!(f, " ")?;
        }
        write!(f, "{}", self.message)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "\n\nhint: {hint}"))
    }
}

/// Longer words were not written to be read; paths hardly ever are so long.
const LONGEST_WORD: usize = 120;
const LONGEST_PATH: usize = 200;
const LONGEST_MESSAGE: usize = 600;
/// Some list all there is to choose from.
const LONGEST_HINT: usize = 2000;

/// Text that may echo what a user gave, made safe to show: control characters but line ends escaped, long words cut in
/// their middle, and at most `longest` characters in all.
pub fn safe(text: &str, longest: usize) -> String {
    let mut out = String::new();
    // One that is cut anyway need not be read to its end, which may be megabytes away.
    for (i, word) in text.split(' ').take(longest).enumerate() {
        if i > 0 {
            out.push(' ');
        }
        for c in shortened(word, LONGEST_WORD.min(longest)).chars() {
            if c.is_control() && c != '\n' {
                out.extend(c.escape_default());
            } else {
                out.push(c);
            }
        }
    }
    match out.char_indices().nth(longest) {
        Some(_) => out.chars().take(longest - 1).chain(['…']).collect(),
        None => out,
    }
}

/// The beginning and the end of a word that is too long.
fn shortened(word: &str, longest: usize) -> String {
    if word.char_indices().nth(longest).is_none() {
        return word.to_owned();
    }
    let part = (longest - 1) / 2;
    let end = word.char_indices().rev().nth(part - 1).map_or(0, |(at, _)| at);
    word.chars().take(part).chain(['…']).chain(word[end..].chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::Failure;

    #[test]
    fn a_failure_knows_its_place_and_says_it_to_people_and_programs() {
        let failure = Failure::input("seed: expected a number").in_file("p.toml").at_line(3).hint("give one");
        assert_eq!(failure.to_string(), "error: p.toml:3: seed: expected a number\n\nhint: give one");
        let error = r#"{"message":"seed: expected a number","file":"p.toml","line":3,"hint":"give one"}"#;
        assert_eq!(failure.json(), format!(r#"{{"format":2,"error":{error}}}"#));
        let bare = r#"{"format":2,"error":{"message":"m","file":null,"line":null,"hint":null}}"#;
        assert_eq!(Failure::system("m").json(), bare);
    }

    #[test]
    fn what_is_echoed_is_short_and_harmless() {
        let digits = "7".repeat(300);
        let message = Failure::input(format!("got {digits}, expected less")).to_string();
        assert!(
            message.starts_with("error: got 777") && message.ends_with("777, expected less"),
            "{message}"
        );
        assert!(message.contains('…') && message.chars().count() < 150, "{message}");
        let megabytes = ["name ".repeat(1 << 20), "x".repeat(10 << 20), "é".repeat(1 << 20)];
        for text in megabytes {
            let failure = Failure::input(&text).in_file(&text).hint(&text);
            assert!(failure.to_string().chars().count() < 3000);
            assert!(failure.json().chars().count() < 3000);
        }
        let message = Failure::input("got \"\u{1b}[2J\u{7}\r\"\nsecond line").to_string();
        assert_eq!(message, "error: got \"\\u{1b}[2J\\u{7}\\r\"\nsecond line");
    }
}
