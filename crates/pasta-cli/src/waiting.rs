//! Work without steps to show: on a terminal, what is going on and for how long. Elsewhere nothing is drawn.

use std::time::Instant;

use pasta_report::console::Bar;

/// A line on a terminal, with the time since it was started.
pub(crate) struct Waiting {
    bar: Bar,
    started: Instant,
}

impl Waiting {
    pub(crate) fn start(what: &str) -> Self {
        Self { bar: Bar::endless(what), started: Instant::now() }
    }

    pub(crate) fn say(&self, what: &str) {
        self.bar.say(what);
    }

    /// How long it has taken so far.
    pub(crate) fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }
}
