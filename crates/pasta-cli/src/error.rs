//! What the program says when it cannot go on, and the exit code that goes with it.

use std::fmt;

/// Exit codes. 130 and 143 (interrupted, terminated) are the shell's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
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
    /// Stopped by Ctrl-C, after writing a checkpoint.
    Interrupted = 130,
    /// Stopped by SIGTERM, after writing a checkpoint.
    Terminated = 143,
}

/// One sentence, an optional hint, and an exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    message: String,
    hint: Option<String>,
}

impl Failure {
    /// Something is wrong with what the user gave.
    pub(crate) fn input(message: impl fmt::Display) -> Self {
        Self { exit: Exit::Input, message: message.to_string(), hint: None }
    }

    /// Something is wrong with the machine.
    pub(crate) fn system(message: impl fmt::Display) -> Self {
        Self { exit: Exit::System, message: message.to_string(), hint: None }
    }

    /// Adds what to do about it.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\n\nhint: {hint}"),
            None => Ok(()),
        }
    }
}
