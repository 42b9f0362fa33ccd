//! The wire of MPI.

use std::{env, fmt};

use mpi::Threading;
use mpi::environment::Universe;
use mpi::point_to_point::{Destination, Source};
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
        SimpleCommunicator::world().process_at_rank(to as i32).send_with_tag(words, TAG);
        Ok(())
    }

    fn receive(&mut self, from: usize) -> Result<Vec<u64>, Gone> {
        Ok(SimpleCommunicator::world().process_at_rank(from as i32).receive_vec_with_tag(TAG).0)
    }
}
