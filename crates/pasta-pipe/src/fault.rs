//! What a user is told about a worker that failed for good.

use std::fmt;

use pasta_opt::oracle::{ErrorKind, OracleError};

use crate::protocol::Wrong;

/// A worker's failure, with what it was asked, what it said, and the end of its stderr.
#[derive(Debug, Clone)]
pub struct Fault {
    /// Which worker.
    pub worker: usize,
    /// The command.
    pub command: String,
    /// What went wrong.
    pub wrong: Wrong,
    /// How often the same request failed.
    pub times: u32,
    /// The request, shortened.
    pub request: String,
    /// The reply, shortened; empty where there was none.
    pub reply: String,
    /// The last lines of its stderr.
    pub stderr: Vec<String>,
}

/// How long a request, a reply or a line may be in a message.
const LONGEST: usize = 110;

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { worker, command, wrong, times, request, reply, stderr } = self;
        write!(f, "worker {worker} ({command}) {wrong}")?;
        if *times > 1 {
            write!(f, "; it was the {} failure of this request", ordinal(*times))?;
        }
        if matches!(wrong, Wrong::Garbage(_) | Wrong::Greeting(_)) && !reply.is_empty() {
            write!(f, "; standard output is for replies only")?;
        }
        if !request.is_empty() {
            write!(f, "\n  request: {request}")?;
        }
        if !reply.is_empty() {
            write!(f, "\n  reply: {reply}")?;
        }
        stderr.iter().try_for_each(|line| write!(f, "\n  stderr: {}", short(line)))
    }
}

impl std::error::Error for Fault {}

impl From<Fault> for OracleError {
    fn from(fault: Fault) -> Self {
        let kind =
            if matches!(fault.wrong, Wrong::TimedOut(_)) { ErrorKind::TimedOut } else { ErrorKind::Fatal };
        Self::of_kind(kind, fault)
    }
}

fn ordinal(n: u32) -> String {
    match n {
        2 => "second".into(),
        3 => "third".into(),
        n => format!("{n}th"),
    }
}

/// The beginning of a text, on one line.
pub(crate) fn short(text: &str) -> String {
    let text = text.trim();
    let mut line: String = text.chars().take(LONGEST).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(LONGEST).is_some() {
        line.push('…');
    }
    line
}

/// The beginning of what was said, whatever it is.
pub(crate) fn short_bytes(bytes: &[u8], is_text: bool) -> String {
    if bytes.is_empty() {
        return String::new();
    }
    let begun = &bytes[..bytes.len().min(4 * LONGEST)];
    if is_text {
        return short(&String::from_utf8_lossy(begun));
    }
    let shown: Vec<_> = begun.iter().take(24).map(|byte| format!("{byte:02x}")).collect();
    let more = if bytes.len() > 24 { " …" } else { "" };
    format!("{} bytes: {}{more}", bytes.len(), shown.join(" "))
}
