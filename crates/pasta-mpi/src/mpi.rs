//! The wire of MPI.

use std::time::{Duration, Instant};
use std::{env, fmt, hint, thread};

use mpi::Threading;
use mpi::datatype::Equivalence;
use mpi::environment::Universe;
use mpi::point_to_point::{Destination, Source};
use mpi::request;
use mpi::topology::{Communicator, SimpleCommunicator};

use crate::wire::{Gone, Wire};

/// Keeps messages apart from those of whoever else uses MPI in this process.
const TAG: i32 = 8_017;

/// MPI, from its start to its end. Ends when it is dropped, which must be after the last message.
pub struct Mpi {
    universe: Universe,
}

/// Why there is no MPI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MpiError {
    /// It was started before.
    Started,
    /// Its library allows no calls from other threads than the first.
    Threads,
}

impl fmt::Display for MpiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Started => "MPI has already been started in this process",
            Self::Threads => "this MPI library gives less than MPI_THREAD_SERIALIZED, which is needed",
        })
    }
}

impl std::error::Error for MpiError {}

impl Mpi {
    /// Whether this process was started by `mpirun`, `mpiexec` or `srun`: MPI is slow to start for a process by itself.
    pub fn is_launched() -> bool {
        ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_RANK", "PMIX_RANK", "MPI_LOCALNRANKS"]
            .iter()
            .any(|name| env::var_os(name).is_some())
    }

    /// Starts MPI.
    pub fn start() -> Result<Self, MpiError> {
        let (universe, threading) =
            mpi::initialize_with_threading(Threading::Serialized).ok_or(MpiError::Started)?;
        if threading < Threading::Serialized {
            return Err(MpiError::Threads);
        }
        Ok(Self { universe })
    }

    /// The wire between all its processes.
    pub fn wire(&self) -> MpiWire {
        let world = self.universe.world();
        MpiWire { rank: world.rank() as usize, size: world.size() as usize }
    }
}

impl fmt::Debug for Mpi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.wire())
    }
}

/// The wire between all processes of MPI. A failure of MPI itself ends the process, as MPI does.
#[derive(Debug)]
pub struct MpiWire {
    rank: usize,
    size: usize,
}

impl Wire for MpiWire {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn send(&mut self, to: usize, words: &[u64]) -> Result<(), Gone> {
        let world = SimpleCommunicator::world();
        let receiver = world.process_at_rank(to as i32);
        request::scope(|scope| {
            let mut sending = Some(receiver.immediate_send_with_tag(scope, words, TAG));
            wait_until(|| finished(&mut sending));
        });
        Ok(())
    }

    fn receive(&mut self, from: usize) -> Result<Vec<u64>, Gone> {
        let world = SimpleCommunicator::world();
        let sender = world.process_at_rank(from as i32);
        let mut found = None;
        wait_until(|| {
            found = sender.immediate_matched_probe_with_tag(TAG);
            found.is_some()
        });
        let Some((message, status)) = found else { return Err(Gone { rank: from }) };
        let mut words = vec![0; status.count(u64::equivalent_datatype()) as usize];
        request::scope(|scope| {
            let mut receiving = Some(message.immediate_matched_receive_into(scope, &mut words[..]));
            wait_until(|| finished(&mut receiving));
        });
        Ok(words)
    }
}

/// Whether what was begun is done; nothing is left of it then.
fn finished<'a, D: ?Sized, S: request::Scope<'a>>(begun: &mut Option<request::Request<'a, D, S>>) -> bool {
    *begun = begun.take().and_then(|request| request.test().err());
    begun.is_none()
}

/// How often it is asked in a row before anybody else is let on the core.
const EAGER: u32 = 100;
/// How long the core is only lent. Whoever waits longer sleeps in between.
const LENDING: Duration = Duration::from_millis(1);
/// Small beside what has already been waited for.
const NAP: Duration = Duration::from_micros(50);

/// Asks until it is so, without keeping a core from a rank that has to work. The waiting calls of MPI may do that: those of MPICH never let go of a
/// core, so that with more ranks than cores every message would take a time slice of the system.
fn wait_until(mut is_so: impl FnMut() -> bool) {
    for _ in 0..EAGER {
        if is_so() {
            return;
        }
        hint::spin_loop();
    }
    let since = Instant::now();
    while !is_so() {
        if since.elapsed() < LENDING {
            thread::yield_now();
        } else {
            thread::sleep(NAP);
        }
    }
}
