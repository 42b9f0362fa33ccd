//! Ctrl-C, SIGTERM and SIGHUP end the step under way; a second one ends the program.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

#[cfg(unix)]
use signal_hook::consts::SIGHUP;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use super::{Exit, Failure, say_over_bar};

/// The signals that end a run, and how the program exits then. Windows has no terminal that hangs up.
const WATCHED: &[(i32, Exit)] = &[
    (SIGINT, Exit::Interrupted),
    (SIGTERM, Exit::Terminated),
    #[cfg(unix)]
    (SIGHUP, Exit::HungUp),
];

/// `timeout` and others signal both the program and its group: what comes so soon is no second thought.
const ECHO: Duration = Duration::from_millis(500);
/// How often the watch looks. The flag is set at once.
const LOOK: Duration = Duration::from_millis(20);

/// What has arrived since [`Signals::register`].
#[derive(Debug)]
pub struct Signals {
    /// The exit code of the last signal, or 0.
    last: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
}

/// Has a write beyond `ulimit -f` fail with a sentence, instead of ending the program without one. Programs that this one starts are not concerned.
pub(super) fn survive_large_files() {
    // A handler that does nothing else lets the write fail; where it cannot be set, the system's way remains.
    #[cfg(unix)]
    let _ = flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
}

impl Signals {
    /// From here on a first signal no longer ends the program by itself.
    pub fn register() -> Result<Self, Failure> {
        let failed = |error| Failure::system(format!("cannot watch for signals: {error}"));
        let (last, news) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let stop = Arc::new(AtomicBool::new(false));
        for &(signal, exit) in WATCHED {
            // In this order: who sees `stop` also sees which signal it was.
            flag::register_usize(signal, Arc::clone(&last), exit as usize).map_err(failed)?;
            flag::register(signal, Arc::clone(&stop)).map_err(failed)?;
            flag::register_usize(signal, Arc::clone(&news), exit as usize).map_err(failed)?;
        }
        // A thread, since a step with many samples may take long and the user should hear something.
        thread::Builder::new().spawn(move || watch(&news)).map_err(failed)?;
        Ok(Self { last, stop })
    }

    /// True from the first signal on. The computing code watches it, and drops the step under way.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// How to exit, if it is time to.
    #[inline]
    pub fn received(&self) -> Option<Exit> {
        let last = self.last.load(Ordering::Relaxed);
        WATCHED.iter().map(|&(_, exit)| exit).find(|exit| *exit as usize == last)
    }
}

/// Answers the first signal with a line, and the second with the end.
fn watch(news: &AtomicUsize) {
    let mut first: Option<Instant> = None;
    loop {
        thread::sleep(LOOK);
        match first {
            _ if news.swap(0, Ordering::Relaxed) == 0 => {}
            None => {
                say_over_bar("stopping (once more to stop at once)");
                first = Some(Instant::now());
            }
            Some(first) if first.elapsed() > ECHO => process::exit(Exit::Killed as i32),
            Some(_) => {}
        }
    }
}
