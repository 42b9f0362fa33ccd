//! A trace: a few steps of a run, written one JSON object a line.

use std::io::{self, Write};

use serde::Serialize;

use crate::certificate::Certificate;
use crate::estimator::Kind;
use crate::objective::{Measure, Objective};
use crate::state::State;
use crate::walk::{Progress, Record};

/// Whether a trace keeps the state after this many steps: all up to 128, then 64 for every doubling. A pure
/// function of the step, so that a resumed run keeps the same ones.
#[inline]
pub fn is_milestone(step: u64) -> bool {
    let spacing = step.max(1).ilog2().saturating_sub(6);
    step.trailing_zeros() >= spacing
}

/// A line of a trace: the state after a step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// Steps taken.
    pub step: u64,
    /// s of the step.
    pub epoch: u64,
    /// t of the step.
    pub t: u64,
    /// How its g_t was made.
    pub kind: Kind,
    /// Samples it drew.
    pub batch: u64,
    /// Samples drawn so far.
    pub samples: u128,
    /// Gradients evaluated so far.
    pub evaluations: u128,
    /// |x - x0|.
    pub distance: f64,
    /// f(x) - inf f, where the objective is known. Never an estimate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<f64>,
    /// |grad f(x)|^2, where the objective is known. Never an estimate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gradient_squared: Option<f64>,
}

impl Line {
    /// The line for a step; with what is true at x if the objective is given.
    pub fn new(record: &Record, state: &State, objective: Option<&dyn Objective>) -> Self {
        Self {
            step: state.step,
            epoch: record.epoch,
            t: record.t,
            kind: record.kind,
            batch: record.n,
            samples: state.ledger.samples,
            evaluations: state.ledger.evaluations,
            distance: record.distance2.sqrt(),
            gap: objective.map(|f| f.gap(&state.x)),
            gradient_squared: objective.and_then(|f| Measure::GradientSquared.at(f, &state.x)),
        }
    }

    /// Writes the line.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        write_line(self, out)
    }
}

/// A line for a certificate that was tried.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Attempt {
    /// Steps taken before.
    pub step: u64,
    /// Its number, from 1.
    pub attempt: u64,
    /// Samples that the run had drawn.
    pub samples: u128,
    /// Samples that certificates, and looks whether to try one, have drawn.
    pub certificate_samples: u128,
    /// How it ended.
    pub certificate: Certificate,
}

impl Attempt {
    /// The line for the last attempt of a walk, if there was one.
    pub fn last(state: &State, certification: &Progress) -> Option<Self> {
        Some(Self {
            step: state.step,
            attempt: certification.attempts,
            samples: state.ledger.samples,
            certificate_samples: certification.samples,
            certificate: certification.last?,
        })
    }

    /// Writes the line.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        write_line(self, out)
    }
}

fn write_line(line: &impl Serialize, out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use super::is_milestone;

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
