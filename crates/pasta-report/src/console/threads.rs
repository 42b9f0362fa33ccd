//! How many threads work.

use super::{Exit, Failure};

/// Works on so many threads; `None` is as many as the machine has.
pub fn with_threads(
    threads: Option<usize>,
    work: impl FnOnce() -> Result<Exit, Failure> + Send,
) -> Result<Exit, Failure> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0)).build();
    pool.map_err(|error| Failure::system(format!("no threads: {error}")))?.install(work)
}
