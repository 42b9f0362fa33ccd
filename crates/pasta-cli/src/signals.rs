//! Ctrl-C and SIGTERM: noticed between steps; a second one ends the program at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator;

use crate::error::{Exit, Failure};
use crate::talk::say_over_bar;

/// `timeout` and others signal both the program and its group: what comes so soon is no second thought.
const ECHO: Duration = Duration::from_millis(500);

/// The signal that was received, or 0.
pub(crate) struct Signals(Arc<AtomicI32>);

impl Signals {
    /// From here on a signal no longer ends the program by itself.
    pub(crate) fn register() -> Result<Self, Failure> {
        let failed = |error| Failure::system(format!("cannot watch for signals: {error}"));
        let mut arriving = iterator::Signals::new([SIGINT, SIGTERM]).map_err(failed)?;
        let received = Arc::new(AtomicI32::new(0));
        let noticed = Arc::clone(&received);
        // A thread, since a step with many samples may take long and the user should hear something.
        let watch = move || {
            let mut first = None;
            for signal in arriving.forever() {
                let first = *first.get_or_insert_with(Instant::now);
                if noticed.load(Ordering::Relaxed) == 0 {
                    say_over_bar("stopping after this step (once more to stop at once)");
                    noticed.store(signal, Ordering::Relaxed);
                } else if first.elapsed() > ECHO {
                    std::process::exit(exit(signal) as i32);
                }
            }
        };
        std::thread::Builder::new().spawn(watch).map_err(failed)?;
        Ok(Self(received))
    }

    /// How to exit, if it is time to.
    #[inline]
    pub(crate) fn received(&self) -> Option<Exit> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            signal => Some(exit(signal)),
        }
    }
}

fn exit(signal: i32) -> Exit {
    if signal == SIGTERM { Exit::Terminated } else { Exit::Interrupted }
}
