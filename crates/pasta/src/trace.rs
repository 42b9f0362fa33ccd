//! A trace: the events of a run, one JSON object a line, each with a checksum.
//!
//! Format 2. The first line is the event `start`; `step` lines are those of the [milestones](is_milestone); a certificate
//! that was tried is an event of its own; the last line is `end`. The last key of each line, `crc`, is the CRC-32 of all
//! that stands before it on the line, in hexadecimal. `docs/formats.md` has the keys.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use crate::certificate::Certificate;
use crate::estimator::Kind;
use crate::ledger::Ledger;
use crate::objective::{Measure, Objective};
use crate::stop::Stop;
use crate::walk::{Record, View};

/// The format of the lines.
pub const FORMAT: u32 = 2;

/// The formats that are read: format 1 has other keys in certificates, which nobody reads again.
pub const FORMATS: std::ops::RangeInclusive<u32> = 1..=FORMAT;

/// Whether a trace keeps the state after this many steps: all up to 128, then 64 for every doubling. A pure
/// function of the step, so that a resumed run keeps the same ones.
#[inline]
pub fn is_milestone(step: u64) -> bool {
    let spacing = step.max(1).ilog2().saturating_sub(6);
    step.trailing_zeros() >= spacing
}

/// The last step up to this one that a trace keeps.
pub fn last_milestone(step: u64) -> u64 {
    let spacing = step.max(1).ilog2().saturating_sub(6);
    step >> spacing << spacing
}

/// A line of a trace.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Event {
    /// A run begins.
    Start {
        /// The format of all lines.
        format: u32,
        /// What runs.
        method: String,
        /// On which oracle: its identity.
        problem: String,
        /// The seed of all randomness.
        seed: u64,
    },
    /// A step was taken.
    Step {
        /// Where the run then stood.
        #[serde(flatten)]
        at: Standing,
        /// s of the step.
        epoch: u64,
        /// t of the step.
        t: u64,
        /// How its g_t was made.
        kind: Kind,
        /// Samples it drew.
        batch: u64,
    },
    /// A certificate was tried.
    Tried {
        /// Steps taken before.
        step: u64,
        /// Its number, from 1.
        attempt: u64,
        /// All samples drawn so far.
        samples: u128,
        /// How it ended.
        certificate: Certificate,
    },
    /// The run ended.
    End {
        /// Where.
        #[serde(flatten)]
        at: Standing,
        /// Why: [`Stop::kind`].
        stop: &'static str,
    },
}

/// Step, samples and distance of a run at one line of its trace.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Standing {
    /// Steps taken.
    pub step: u64,
    /// All samples drawn so far.
    pub samples: u128,
    /// Gradients evaluated so far.
    pub evaluations: u128,
    /// |x - x0|.
    pub distance: f64,
    /// f(x) - inf f, where the objective is known. Never an estimate.
    pub gap: Option<f64>,
    /// |grad f(x)|^2, where the objective is known. Never an estimate.
    pub gradient_squared: Option<f64>,
}

impl Standing {
    /// Where a walk stands; with what is true at x if the objective is given.
    pub fn new(view: &View<'_>, ledger: &Ledger, objective: Option<&dyn Objective>) -> Self {
        Self {
            step: view.step,
            samples: ledger.samples(),
            evaluations: ledger.evaluations(),
            distance: view.distance2.sqrt(),
            gap: objective.map(|f| f.gap(view.x)),
            gradient_squared: objective.and_then(|f| Measure::GradientSquared.at(f, view.x)),
        }
    }
}

impl Event {
    /// The line for a step.
    pub fn step(record: &Record, at: Standing) -> Self {
        Self::Step { at, epoch: record.epoch, t: record.t, kind: record.kind, batch: record.n }
    }

    /// The line for the end.
    pub fn end(stop: Stop, at: Standing) -> Self {
        Self::End { at, stop: stop.kind() }
    }

    /// Writes the line, with its checksum.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut line = serde_json::to_vec(self)?;
        // An object with at least its tag: it ends with a brace, which the checksum goes before.
        line.pop();
        let checksum = crc32fast::hash(&line);
        writeln!(line, "{CHECKSUM}{checksum:08x}\"}}")?;
        out.write_all(&line)
    }
}

const CHECKSUM: &str = ",\"crc\":\"";

/// What places a line in its trace.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Mark {
    /// The event.
    pub event: String,
    /// The format, at the start.
    pub format: Option<u32>,
    /// Steps taken, but at the start.
    pub step: Option<u64>,
    /// The number of the certificate, where one was tried.
    pub attempt: Option<u64>,
}

impl Mark {
    /// Reads a line, its newline included; `None` if it is torn or altered.
    pub fn read(line: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(line.strip_suffix(b"\n")?).ok()?;
        let (body, checksum) = text.strip_suffix("\"}")?.rsplit_once(CHECKSUM)?;
        // As it was written, letter for letter: an altered letter may be the same digit.
        let whole = format!("{:08x}", crc32fast::hash(body.as_bytes())) == checksum;
        whole.then(|| serde_json::from_str(text).ok()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::{Event, FORMAT, Mark, is_milestone, last_milestone};

    #[test]
    fn a_line_is_read_back_and_every_flipped_bit_is_noticed() {
        let start = Event::Start { format: FORMAT, method: "sgd".into(), problem: "p".into(), seed: 1 };
        let mut line = Vec::new();
        start.write(&mut line).unwrap();
        assert_eq!(Mark::read(&line).unwrap().format, Some(FORMAT));
        for bit in 0..8 * line.len() {
            let mut altered = line.clone();
            altered[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Mark::read(&altered), None, "bit {bit}: {}", String::from_utf8_lossy(&altered));
        }
    }

    #[test]
    fn the_last_milestone_is_the_last_step_that_is_kept() {
        let mut last = 0;
        for step in 1..5_000 {
            last = if is_milestone(step) { step } else { last };
            assert_eq!(last_milestone(step), last);
        }
    }

    #[test]
    fn a_trace_of_a_billion_steps_has_some_thousand_lines() {
        // 128 up to 2^7, then 64 for each of the 23 doublings up to 2^30.
        let mut kept = 1u64;
        let mut step = 1u64;
        while step < 1 << 30 {
            step += 1u64 << step.ilog2().saturating_sub(6);
            kept += u64::from(is_milestone(step));
        }
        assert!((1..=128).all(is_milestone));
        assert_eq!(kept, 128 + 64 * 23);
        assert!(!is_milestone(129) && is_milestone(130));
    }
}
