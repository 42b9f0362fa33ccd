//! Work without steps to show: on a terminal, what is going on and for how long. Elsewhere nothing is drawn.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use pasta_report::console::is_muted;

/// How often the time is drawn anew.
const TICK: Duration = Duration::from_millis(250);

/// A line on a terminal, with the time since it was started.
pub(crate) struct Waiting {
    /// On a terminal only.
    bar: Option<ProgressBar>,
    started: Instant,
}

impl Waiting {
    pub(crate) fn start(what: &str) -> Self {
        let bar = (std::io::stderr().is_terminal() && !is_muted()).then(|| {
            let style = ProgressStyle::with_template("{spinner} {msg} ({elapsed})");
            let bar = ProgressBar::new_spinner()
                .with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            bar.set_message(what.to_owned());
            bar.enable_steady_tick(TICK);
            bar
        });
        Self { bar, started: Instant::now() }
    }

    pub(crate) fn say(&self, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(what.to_owned());
        }
    }

    /// How long it has taken so far.
    pub(crate) fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A time in words. Beyond a century it is no information (and would not fit a duration).
pub(crate) fn duration(seconds: f64) -> String {
    if seconds < 1.0 {
        return "less than a second".into();
    }
    HumanDuration(Duration::from_secs_f64(seconds.min(3e9))).to_string()
}
