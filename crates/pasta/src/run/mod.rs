//! One run: a method behind its gate, event by event, to its end.
//!
//! Programs, the Python package and the laboratory drive every run through [`Run::next`]. It is the one place where an oracle is
//! checked before the first step, and where a [`Halt`] becomes an end.
//!
//! ```
//! use pasta_opt::prelude::*;
//! use pasta_opt::problems::SineBowl;
//! use pasta_opt::run::{Event, Run};
//!
//! let noise = Noise { growth: 0.0, floor: 1.0, tail: Tail::Gaussian };
//! let oracle = Noisy::new(Box::new(SineBowl { dimension: 1 }), noise, vec![1.2])?;
//! let gate = Gate::new(oracle, 7).with_budget(500);
//! let walk = Auto::start(&gate, &[1.2], None)?;
//! let mut run = Run::of(gate, walk);
//! let mut steps = 0;
//! let stop = loop {
//!     match run.next()? {
//!         Event::Step(_) => steps += 1,
//!         Event::End(stop) => break stop,
//!         _ => {}
//!     }
//! };
//! assert_eq!((stop, steps), (Stop::PlannedEnd, run.view().step));
//! assert!(run.gate().ledger().samples() <= 500);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod chosen;
mod problem;

use std::fmt;
use std::ops::ControlFlow;

pub use chosen::{AUTO, CHOICES, ChoiceError, Chosen, Given, Promise, names};
pub use problem::{KnownTable, Problem, Truth};

use crate::certificate::Certificate;
use crate::check;
use crate::checkpoint::Saver;
use crate::gate::{Gate, Halt};
use crate::stop::Stop;
use crate::walk::{Advance, Record, View, Walk};

/// A method behind its gate, from the first event to the end.
pub struct Run {
    gate: Gate,
    walk: Box<dyn Walk>,
    /// True if the oracle was checked, or need not be.
    is_checked: bool,
    ended: Option<Stop>,
}

/// What one call of [`Run::next`] did.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// The oracle passed its check before the first step.
    Checked,
    /// A step was taken.
    Step(Record),
    /// Samples were drawn for a certificate, or for a look whether to try one.
    Looked,
    /// An attempt at a certificate is planned, and none of its samples is drawn yet. If you keep checkpoints, keep one here: a run that is resumed from
    /// an older one, under another budget, would make another attempt with the same samples and the same share of delta.
    Planned,
    /// A certificate came to its end, successful or not.
    Tried(Certificate),
    /// The run is over.
    End(Stop),
}

impl Run {
    /// A run of a walk that stands at its start, or was resumed.
    pub fn of(gate: Gate, walk: impl Walk + 'static) -> Self {
        let is_checked = !gate.doubts();
        Self { gate, walk: Box::new(walk), is_checked, ended: None }
    }

    /// Does the next piece of work. After an end it keeps giving that end, unless the run was interrupted: then it goes on. An error is an oracle that
    /// failed, or did not pass its check.
    #[inline]
    pub fn next(&mut self) -> Result<Event, Halt> {
        if let Some(stop) = self.ended {
            return Ok(Event::End(stop));
        }
        let advance = if self.is_checked { self.walk.advance(&mut self.gate) } else { self.check() };
        Ok(match advance {
            Ok(Advance::Step(record)) => Event::Step(record),
            Ok(Advance::Checked) if !self.is_checked => {
                self.is_checked = true;
                Event::Checked
            }
            Ok(Advance::Checked) => Event::Looked,
            Ok(Advance::Planned) => Event::Planned,
            Ok(Advance::Tried(certificate)) => Event::Tried(certificate),
            Ok(Advance::Stop(stop)) => self.end(stop),
            Err(halt) => self.end(halt.stop().ok_or(halt)?),
        })
    }

    #[cold]
    fn check(&mut self) -> Result<Advance, Halt> {
        check::before_run(&mut self.gate, self.walk.view().start)?;
        Ok(Advance::Checked)
    }

    #[cold]
    fn end(&mut self, stop: Stop) -> Event {
        self.ended = (stop != Stop::Interrupted).then_some(stop);
        Event::End(stop)
    }

    /// Runs to the end. `watch` sees every event with the run as it then stands, and ends the run by a break.
    pub fn follow(
        &mut self,
        mut watch: impl FnMut(&mut Self, Event) -> ControlFlow<()>,
    ) -> Result<Stop, Halt> {
        loop {
            let event = self.next()?;
            if let Event::End(stop) = event {
                return Ok(stop);
            }
            if watch(self, event).is_break() {
                self.end(Stop::Asked);
                return Ok(Stop::Asked);
            }
        }
    }

    /// Runs to the end.
    pub fn finish(&mut self) -> Result<Stop, Halt> {
        self.follow(|_, _| ControlFlow::Continue(()))
    }

    /// Where the walk stands.
    pub fn view(&self) -> View<'_> {
        self.walk.view()
    }

    /// The gate, with its ledger.
    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    /// How it ended, if it did.
    pub fn ended(&self) -> Option<Stop> {
        self.ended
    }

    /// Writes what it needs to go on later, bit for bit.
    pub fn save<'a>(&'a self, to: &mut Saver<'a>) {
        self.gate.save(to);
        self.walk.save(to);
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("gate", &self.gate).field("ended", &self.ended).finish_non_exhaustive()
    }
}
