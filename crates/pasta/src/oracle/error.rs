//! What an oracle answers when it cannot answer.

use std::fmt;

/// What can be done about an oracle's failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Nothing: the same question would fail again.
    Fatal,
    /// Asking the same question once more may succeed. The gate does, a few times.
    Retry,
    /// The answer did not come in time.
    TimedOut,
    /// Whoever asked no longer wants the answer.
    Interrupted,
    /// There are no more samples: a stream has ended. To a run it is the end of its budget.
    Exhausted {
        /// Samples that are left all the same, for a last look.
        left: u64,
    },
}

/// An oracle's failure: its kind and its cause.
#[derive(Debug)]
pub struct OracleError {
    kind: ErrorKind,
    source: Box<dyn std::error::Error + Send + Sync>,
}

impl OracleError {
    /// A fatal failure, from an error or a sentence.
    pub fn new(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::of_kind(ErrorKind::Fatal, source)
    }

    /// A failure of this kind.
    pub fn of_kind(kind: ErrorKind, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { kind, source: source.into() }
    }

    /// The answer to a question that was taken back.
    pub fn interrupted() -> Self {
        Self::of_kind(ErrorKind::Interrupted, "interrupted")
    }

    /// The answer of a stream that has ended.
    pub fn exhausted(left: u64) -> Self {
        Self::of_kind(
            ErrorKind::Exhausted { left },
            format!("the samples have come to an end: {left} are left"),
        )
    }

    /// What can be done about it.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for OracleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ErrorKind::TimedOut => write!(f, "the oracle did not answer in time: {}", self.source),
            _ => write!(f, "the oracle failed: {}", self.source),
        }
    }
}

impl std::error::Error for OracleError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.source)
    }
}
