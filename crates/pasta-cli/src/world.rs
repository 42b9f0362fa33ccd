//! The processes that run this command together: how they find each other, and part. What they do together is in `pasta_io::world`.

use pasta_report::console::{Exit, Failure};

#[cfg(feature = "mpi")]
use many as members;
#[cfg(not(feature = "mpi"))]
use one as members;

pub(crate) use pasta_io::world::*;

/// Begins to work together with the others. To be kept to the end.
pub(crate) fn begin() -> Result<Session, Failure> {
    members::begin().map(Session)
}

/// From the beginning of the program to its end.
pub(crate) struct Session(members::Session);

impl Session {
    /// Waits for the others, and exits as the first does. `complaint` is what a failure said.
    pub(crate) fn end(self, exit: Exit, complaint: &str) -> u8 {
        self.0.end(exit as u8, complaint)
    }
}

#[cfg(not(feature = "mpi"))]
mod one {
    use std::env;

    use pasta_report::console::Failure;

    pub(super) struct Session;

    /// What launchers of MPI tell a process of how many there are.
    const SIZES: [&str; 2] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"];

    /// Refuses to be one of several that know nothing of each other: each would do all of the work, and write to the same files.
    pub(super) fn begin() -> Result<Session, Failure> {
        let size = |name: &str| env::var(name).ok()?.trim().parse::<u64>().ok();
        match SIZES.iter().filter_map(|name| size(name)).max() {
            Some(processes) if processes > 1 => {
                let message =
                    format!("started by MPI as one of {processes} processes, but built without MPI");
                let hint = "build it with --features mpi (docs/mpi.md), or start it without mpirun";
                Err(Failure::input(message).hint(hint))
            }
            _ => Ok(Session),
        }
    }

    impl Session {
        #[expect(clippy::unused_self, reason = "others would have to be waited for")]
        pub(super) fn end(self, code: u8, _complaint: &str) -> u8 {
            code
        }
    }
}

#[cfg(feature = "mpi")]
mod many {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use pasta_io::world::{Members, join};
    use pasta_mpi::{Mpi, Sharing, Spread, World};
    use pasta_opt::oracle::{Oracle, OracleError};
    use pasta_report::console::{self, Failure};

    pub(super) struct Session {
        mpi: Option<Mpi>,
        world: Option<World>,
    }

    pub(super) fn begin() -> Result<Session, Failure> {
        if !Mpi::is_launched() {
            return Ok(Session { mpi: None, world: None });
        }
        let mpi = Mpi::start().map_err(Failure::system)?;
        let world = World::new(mpi.wire(), Sharing::Measured);
        let world = (world.size() > 1).then_some(world);
        if let Some(world) = &world {
            if world.rank() > 0 {
                console::mute();
            }
            join(Box::new(Ranks(world.clone())));
        }
        Ok(Session { mpi: Some(mpi), world })
    }

    impl Session {
        pub(super) fn end(self, code: u8, complaint: &str) -> u8 {
            let agreed = self.world.as_ref().map_or(Ok(code), |world| world.finish(code, complaint));
            drop(self.mpi);
            agreed.unwrap_or(code)
        }
    }

    /// The ranks of MPI.
    struct Ranks(World);

    impl Members for Ranks {
        fn rank(&self) -> usize {
            self.0.rank()
        }

        fn size(&self) -> usize {
            self.0.size()
        }

        fn gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, OracleError> {
            self.0.gather(bytes)
        }

        fn tell(&self, find: &mut dyn FnMut() -> Vec<u8>) -> Result<Vec<u8>, OracleError> {
            self.0.tell(find)
        }

        fn spread(&self, oracle: Arc<dyn Oracle>) -> Arc<dyn Oracle> {
            Arc::new(Spread::new(oracle, &self.0))
        }

        fn spread_once(&self, oracle: Arc<dyn Oracle>) -> Arc<dyn Oracle> {
            Arc::new(Spread::drawing_once(oracle, &self.0))
        }

        fn watch(&self, stop: Arc<AtomicBool>) -> Arc<AtomicBool> {
            self.0.watch(stop)
        }
    }
}
