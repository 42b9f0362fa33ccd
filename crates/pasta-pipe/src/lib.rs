//! Simulators in any language, over a pipe, as oracles of `pasta_opt`.
//!
//! A [`Simulator`] names a command; a [`Pipe`] starts it as often as it has workers, talks to them in the protocol of `docs/pipe.md`,
//! and is an [`Oracle`](pasta_opt::oracle::Oracle) like any other. Samples belong to addresses: a batch is cut into blocks of fixed size,
//! each with a seed of its own, and sums are added in the order of [`Batch::halves`](pasta_opt::oracle::Batch::halves). So the result depends neither on
//! the number of workers nor on which of them answered.
//!
//! ```no_run
//! use pasta_opt::prelude::*;
//! use pasta_pipe::{Pipe, Simulator};
//!
//! let simulator = Simulator { dimension: 20, ..Simulator::of(["python3", "sim.py"]) };
//! let pipe = Pipe::start(simulator, |worker, line| eprintln!("worker {worker}: {line}"))?;
//! let mut gate = Gate::new(pipe, 1).with_budget(10_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! On systems that are no Unix everything is here but the workers: [`Pipe::start`] refuses, in a sentence.
// What only workers need stays, so that both kinds of systems have one protocol.
#![cfg_attr(not(unix), allow(dead_code))]

#[cfg(not(unix))]
mod elsewhere;
#[cfg(unix)]
mod exchange;
mod fault;
mod pipe;
mod protocol;
mod tree;
#[cfg(unix)]
mod worker;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use fault::Fault;
pub use pipe::{Counts, Pipe, Question, Sums};
pub use protocol::{Framing, Hello, Wrong};

/// A command that simulates, and how it is to be used.
#[derive(Debug, Clone, PartialEq)]
pub struct Simulator {
    /// The program and its arguments. No shell reads them.
    pub command: Vec<String>,
    /// The number of coordinates of a point.
    pub dimension: usize,
    /// The most processes at a time. Does not change a bit of the result.
    pub workers: usize,
    /// Samples of a request; part of the result's bits.
    pub block: u64,
    /// How long a request may take.
    pub timeout: Duration,
    /// How long a worker may take to start and to answer the greeting.
    pub start_timeout: Duration,
    /// How often a request that failed is asked again, each time in a new process.
    pub retries: u32,
    /// Where it is started; `None` is where this process is.
    pub directory: Option<PathBuf>,
    /// Variables of its environment, beside those of this process.
    pub environment: Vec<(String, String)>,
    /// True if the gradient of a sample is that of its loss, false if it is not; `None` leaves that to the worker's greeting.
    pub pathwise: Option<bool>,
}

impl Simulator {
    /// A command of one coordinate, with one worker, blocks of eight samples, ten minutes for a request, two retries.
    pub fn of<W: Into<String>>(command: impl IntoIterator<Item = W>) -> Self {
        Self {
            command: command.into_iter().map(Into::into).collect(),
            dimension: 1,
            workers: 1,
            block: 8,
            timeout: Duration::from_secs(600),
            start_timeout: Duration::from_secs(60),
            retries: 2,
            directory: None,
            environment: Vec::new(),
            pathwise: None,
        }
    }

    /// The command as one would type it, shortened.
    pub fn words(&self) -> String {
        fault::short(&self.command.join(" "))
    }

    /// What tells the simulated function from others: the command, its variables and, since seeds belong to blocks, their size.
    fn identity(&self, hello: &Hello) -> String {
        let Self { command, environment, block, dimension, .. } = self;
        let name = if hello.name.is_empty() { String::new() } else { format!(" ({})", hello.name) };
        format!(
            "simulator {command:?}{name}, environment {environment:?}, dimension {dimension}, blocks of {block}"
        )
    }
}

/// Where lines of a worker's stderr go: called with the worker's number and the line.
pub(crate) type OnStderr = Arc<dyn Fn(usize, &str) + Send + Sync>;

/// A simulator that cannot be used at all.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// Its description is wrong.
    Setting {
        /// Which part.
        name: &'static str,
        /// What it needs.
        needs: &'static str,
    },
    /// Its first worker failed.
    Worker(Box<Fault>),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setting { name, needs } => write!(f, "{name}: expected {needs}"),
            Self::Worker(fault) => fault.fmt(f),
        }
    }
}

impl std::error::Error for StartError {}

/// The examples of the package's readme run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
