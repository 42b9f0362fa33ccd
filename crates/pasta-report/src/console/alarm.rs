//! A clock that rings: the library has none, and asks a flag.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// It does not ring more often than this.
const SHORTEST: Duration = Duration::from_millis(100);

/// A flag that is set again and again, after this time each, as long as somebody has it: for `Gate::with_pause`, so that a long step pauses for a
/// checkpoint. `None` never sets it.
pub fn alarm(every: Option<Duration>) -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let Some(every) = every else { return flag };
    let heard = Arc::downgrade(&flag);
    let ring = move || {
        loop {
            thread::sleep(every.max(SHORTEST));
            let Some(flag) = heard.upgrade() else { return };
            flag.store(true, Ordering::Relaxed);
        }
    };
    // Without a thread checkpoints come between steps only.
    let _ = thread::Builder::new().spawn(ring);
    flag
}
