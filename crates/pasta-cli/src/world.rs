//! The processes that run this command together: one, unless MPI started more.
//!
//! All of them do the same, and share the work on the oracle's answers. The first alone talks and writes; what it reads, all
//! get from it.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pasta_opt::oracle::{About, Answer, Charge, Oracle, OracleError, Request};
use pasta_report::console::{Exit, Failure};

#[cfg(feature = "mpi")]
use many as members;
#[cfg(not(feature = "mpi"))]
use one as members;

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

/// An oracle whose answers all work on.
pub(crate) fn spread(oracle: Arc<dyn Oracle>) -> Arc<dyn Oracle> {
    members::spread(oracle)
}

/// The same for an oracle whose samples are dear: each is drawn by one process only.
pub(crate) fn spread_once(oracle: Arc<dyn Oracle>) -> Arc<dyn Oracle> {
    members::spread_once(oracle)
}

/// The number of this process among the others; `None` if there are none.
pub(crate) fn rank() -> Option<usize> {
    members::rank()
}

/// An oracle that each asks by itself, for work that was shared out before.
pub(crate) fn alone(oracle: Arc<dyn Oracle>) -> Arc<dyn Oracle> {
    if rank().is_some() { Arc::new(Alone(oracle)) } else { oracle }
}

struct Alone(Arc<dyn Oracle>);

impl Oracle for Alone {
    fn about(&self) -> &About {
        self.0.about()
    }

    fn price(&self, request: &Request<'_>) -> Charge {
        self.0.price(request)
    }

    fn answer(&self, request: &Request<'_>, answer: &mut Answer<'_>) -> Result<Charge, OracleError> {
        self.0.answer(request, answer)
    }
}

/// Which of so many pieces of work are for this process: every one that the others do not do.
pub(crate) fn mine(count: usize) -> impl Iterator<Item = usize> {
    let (rank, size) = members::rank().map_or((0, 1), |rank| (rank, members::size()));
    (rank..count).step_by(size)
}

/// What each has to say, by rank. All have to call it.
pub(crate) fn gather(bytes: Vec<u8>) -> Result<Vec<Vec<u8>>, OracleError> {
    members::gather(bytes)
}

/// The flag that is set when all have heard that one of them is to stop.
pub(crate) fn watch(stop: Arc<AtomicBool>) -> Arc<AtomicBool> {
    members::watch(stop)
}

/// What the first decides. All have to call it.
pub(crate) fn decided(decide: impl FnOnce() -> bool) -> io::Result<bool> {
    Ok(members::tell(|| Ok(vec![u8::from(decide())]))? == [1])
}

/// The bytes of a file of the first. All have to call it.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    members::tell(|| std::fs::read(path))
}

/// The standard input of the first. All have to call it.
pub(crate) fn read_standard() -> io::Result<Vec<u8>> {
    members::tell(|| {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes)?;
        Ok(bytes)
    })
}

/// The text of a file of the first. All have to call it.
pub(crate) fn read_to_string(path: &Path) -> io::Result<String> {
    // The words of the system for a file that is no text.
    String::from_utf8(read(path)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "stream did not contain valid UTF-8"))
}

/// What the first finds at a path. All have to call it.
pub(crate) fn look(path: &Path) -> io::Result<At> {
    let found = members::tell(|| Ok(vec![u8::from(path.is_file()) + 2 * u8::from(path.is_dir())]))?;
    Ok(match found[..] {
        [1] => At::File,
        [2] => At::Folder,
        _ => At::Nothing,
    })
}

/// What can be at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum At {
    File,
    Folder,
    Nothing,
}

#[cfg(not(feature = "mpi"))]
mod one {
    use std::env;
    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use pasta_opt::oracle::{Oracle, OracleError};
    use pasta_report::console::Failure;

    pub(super) struct Session;

    pub(super) fn rank() -> Option<usize> {
        None
    }

    pub(super) fn size() -> usize {
        1
    }

    #[expect(clippy::unnecessary_wraps, reason = "others may be gone")]
    pub(super) fn gather(bytes: Vec<u8>) -> Result<Vec<Vec<u8>>, OracleError> {
        Ok(vec![bytes])
    }

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

    pub(super) fn spread(oracle: Arc<dyn Oracle>) -> Arc<dyn Oracle> {
        oracle
    }

    pub(super) fn spread_once(oracle: Arc<dyn Oracle>) -> Arc<dyn Oracle> {
        oracle
    }

    pub(super) fn watch(stop: Arc<AtomicBool>) -> Arc<AtomicBool> {
        stop
    }

    pub(super) fn tell(find: impl FnOnce() -> io::Result<Vec<u8>>) -> io::Result<Vec<u8>> {
        find()
    }
}

#[cfg(feature = "mpi")]
mod many {
    use std::io;
    use std::sync::atomic::AtomicBool;
    use std::sync::{Arc, OnceLock};

    use pasta_mpi::{Mpi, Sharing, Spread, World};
    use pasta_opt::oracle::{Oracle, OracleError};
    use pasta_report::console::{self, Failure};

    /// Set once, at the start, if there are others.
    static WORLD: OnceLock<World> = OnceLock::new();

    pub(super) struct Session(Option<Mpi>);

    pub(super) fn begin() -> Result<Session, Failure> {
        if !Mpi::is_launched() {
            return Ok(Session(None));
        }
        let mpi = Mpi::start().map_err(Failure::system)?;
        let world = World::new(mpi.wire(), Sharing::Measured);
        if world.size() > 1 {
            if world.rank() > 0 {
                console::mute();
            }
            WORLD.get_or_init(|| world);
        }
        Ok(Session(Some(mpi)))
    }

    impl Session {
        pub(super) fn end(self, code: u8, complaint: &str) -> u8 {
            let agreed = WORLD.get().map_or(Ok(code), |world| world.finish(code, complaint));
            drop(self.0);
            agreed.unwrap_or(code)
        }
    }

    pub(super) fn spread(oracle: Arc<dyn Oracle>) -> Arc<dyn Oracle> {
        match WORLD.get() {
            Some(world) => Arc::new(Spread::new(oracle, world)),
            None => oracle,
        }
    }

    pub(super) fn spread_once(oracle: Arc<dyn Oracle>) -> Arc<dyn Oracle> {
        match WORLD.get() {
            Some(world) => Arc::new(Spread::drawing_once(oracle, world)),
            None => oracle,
        }
    }

    pub(super) fn watch(stop: Arc<AtomicBool>) -> Arc<AtomicBool> {
        WORLD.get().map_or_else(|| Arc::clone(&stop), |world| world.watch(Arc::clone(&stop)))
    }

    pub(super) fn rank() -> Option<usize> {
        WORLD.get().map(World::rank)
    }

    pub(super) fn size() -> usize {
        WORLD.get().map_or(1, World::size)
    }

    pub(super) fn gather(bytes: Vec<u8>) -> Result<Vec<Vec<u8>>, OracleError> {
        WORLD.get().map_or_else(|| Ok(vec![bytes.clone()]), |world| world.gather(&bytes))
    }

    const FOUND: u8 = 0;
    const MISSING: u8 = 1;
    const FAILED: u8 = 2;

    /// What the first finds or complains of: a byte that says which, and the bytes or the complaint.
    pub(super) fn tell(find: impl FnOnce() -> io::Result<Vec<u8>>) -> io::Result<Vec<u8>> {
        let Some(world) = WORLD.get() else { return find() };
        let told = world.tell(|| {
            let (what, bytes) = match find() {
                Ok(bytes) => (FOUND, bytes),
                Err(error) if error.kind() == io::ErrorKind::NotFound => (MISSING, error.to_string().into()),
                Err(error) => (FAILED, error.to_string().into()),
            };
            [vec![what], bytes].concat()
        });
        let mut told = told.map_err(io::Error::other)?;
        let kind = match told.first() {
            Some(&FOUND) => return Ok(told.split_off(1)),
            Some(&MISSING) => io::ErrorKind::NotFound,
            _ => io::ErrorKind::Other,
        };
        Err(io::Error::new(kind, String::from_utf8_lossy(told.get(1..).unwrap_or_default())))
    }
}
