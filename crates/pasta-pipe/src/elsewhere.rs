//! What takes the place of workers on systems that are no Unix: a refusal.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::AtomicBool;

use pasta_opt::oracle::{Batch, OracleError};

use crate::fault::Fault;
use crate::pipe::{Pipe, Who};
use crate::protocol::{Hello, Points, Wrong};
use crate::{OnStderr, Simulator};

/// There are none.
#[derive(Debug)]
pub(crate) enum Worker {}

impl Worker {
    pub(crate) fn end(self, _: &OnStderr) -> VecDeque<String> {
        match self {}
    }
}

/// Which samples.
pub(crate) enum What<'a> {
    Parts(&'a [Batch]),
    Samples { seed: u64, samples: Range<u64> },
}

/// A request to a worker.
pub(crate) struct Ask<'a> {
    pub(crate) what: What<'a>,
    pub(crate) differences: bool,
    pub(crate) points: &'a Points<'a>,
}

/// The work on one question, which nobody does.
pub(crate) struct Exchange;

impl Exchange {
    pub(crate) fn new(_: &Pipe, _: &Ask<'_>, _: Who, _: Vec<Vec<f64>>) -> Self {
        Self
    }

    pub(crate) fn run(&mut self, _: &AtomicBool) -> Result<Vec<Vec<f64>>, OracleError> {
        Err(OracleError::new(SENTENCE))
    }

    pub(crate) fn take_spare(&mut self) -> Vec<Vec<f64>> {
        Vec::new()
    }
}

const SENTENCE: &str = "simulators over a pipe need a Unix system, which this is not";

/// Refuses.
pub(crate) fn meet(simulator: &Simulator, _: &[u8], _: &OnStderr) -> Result<(Worker, Hello), Box<Fault>> {
    Err(Box::new(Fault {
        worker: 1,
        command: simulator.words(),
        wrong: Wrong::Start(SENTENCE.into()),
        times: 1,
        request: String::new(),
        reply: String::new(),
        stderr: Vec::new(),
    }))
}
