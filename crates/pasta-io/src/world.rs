//! The processes that run a command together: one, unless MPI started more and they were [joined](join).
//!
//! All of them do the same, and share the work on the oracle's answers. The first alone talks and writes; what it reads, all
//! get from it.

use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use pasta_opt::oracle::{About, Answer, Charge, Oracle, OracleError, Request};

/// Several processes that run the same command, as one of them sees them.
pub trait Members: Send + Sync {
    /// The number of this one, from 0.
    fn rank(&self) -> usize;

    /// How many there are.
    fn size(&self) -> usize;

    /// What each has to say, by rank. All call it.
    fn gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, OracleError>;

    /// What the first finds; the others' functions are not called. All call it.
    fn tell(&self, find: &mut dyn FnMut() -> Vec<u8>) -> Result<Vec<u8>, OracleError>;

    /// An oracle whose answers all work on.
    fn spread(&self, oracle: Arc<dyn Oracle>) -> Arc<dyn Oracle>;

    /// The same for an oracle whose samples are dear: each is drawn by one process only.
    fn spread_once(&self, oracle: Arc<dyn Oracle>) -> Arc<dyn Oracle>;

    /// The flag that is set when all have heard that one of them is to stop.
    fn watch(&self, stop: Arc<AtomicBool>) -> Arc<AtomicBool>;
}

/// A process has one world, from its start to its end.
static MEMBERS: OnceLock<Box<dyn Members>> = OnceLock::new();

/// Begins to work together with others. To be called at most once, before anything is read.
pub fn join(members: Box<dyn Members>) {
    // The second of two worlds would be a mistake of the program, and the first goes on.
    let _ = MEMBERS.set(members);
}

fn members() -> Option<&'static dyn Members> {
    MEMBERS.get().map(AsRef::as_ref)
}

/// An oracle whose answers all work on.
pub fn spread(oracle: Arc<dyn Oracle>) -> Arc<dyn Oracle> {
    members().map_or_else(|| Arc::clone(&oracle), |members| members.spread(Arc::clone(&oracle)))
}

/// The same for an oracle whose samples are dear: each is drawn by one process only.
pub fn spread_once(oracle: Arc<dyn Oracle>) -> Arc<dyn Oracle> {
    members().map_or_else(|| Arc::clone(&oracle), |members| members.spread_once(Arc::clone(&oracle)))
}

/// The number of this process among the others; `None` if there are none.
pub fn rank() -> Option<usize> {
    members().map(Members::rank)
}

/// An oracle that each asks by itself, for work that was shared out before.
pub fn alone(oracle: Arc<dyn Oracle>) -> Arc<dyn Oracle> {
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

/// Of `count` pieces of work those of this process; the others do the rest.
pub fn mine(count: usize) -> impl Iterator<Item = usize> {
    let (rank, size) = members().map_or((0, 1), |members| (members.rank(), members.size()));
    (rank..count).step_by(size)
}

/// What each has to say, by rank. All have to call it.
pub fn gather(bytes: Vec<u8>) -> Result<Vec<Vec<u8>>, OracleError> {
    match members() {
        Some(members) => members.gather(&bytes),
        None => Ok(vec![bytes]),
    }
}

/// The flag that is set when all have heard that one of them is to stop.
pub fn watch(stop: Arc<AtomicBool>) -> Arc<AtomicBool> {
    members().map_or_else(|| Arc::clone(&stop), |members| members.watch(Arc::clone(&stop)))
}

/// What the first decides. All have to call it.
pub fn decided(decide: impl FnOnce() -> bool) -> io::Result<bool> {
    Ok(tell(|| Ok(vec![u8::from(decide())]))? == [1])
}

/// The bytes of a file of the first. All have to call it.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    tell(|| std::fs::read(path))
}

/// The standard input of the first. All have to call it.
pub fn read_standard() -> io::Result<Vec<u8>> {
    tell(|| {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes)?;
        Ok(bytes)
    })
}

/// The text of a file of the first. All have to call it.
pub fn read_to_string(path: &Path) -> io::Result<String> {
    // The words of the system for a file that is no text.
    String::from_utf8(read(path)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "stream did not contain valid UTF-8"))
}

/// What the first finds at a path. All have to call it.
pub fn look(path: &Path) -> io::Result<At> {
    let found = tell(|| Ok(vec![u8::from(path.is_file()) + 2 * u8::from(path.is_dir())]))?;
    Ok(match found[..] {
        [1] => At::File,
        [2] => At::Folder,
        _ => At::Nothing,
    })
}

/// What can be at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// Nothing, or something else.
    Nothing,
}

const FOUND: u8 = 0;
const MISSING: u8 = 1;
const FAILED: u8 = 2;

/// What the first finds or complains of: a byte that says which, and the bytes or the complaint.
fn tell(find: impl FnOnce() -> io::Result<Vec<u8>>) -> io::Result<Vec<u8>> {
    let Some(members) = members() else { return find() };
    let mut find = Some(find);
    let told = members.tell(&mut || {
        let found = find.take().map_or_else(|| Ok(Vec::new()), |find| find());
        let (what, bytes) = match found {
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
