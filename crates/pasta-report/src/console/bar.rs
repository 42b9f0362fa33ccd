//! Progress on a terminal: what is being done, how much of it, and for how long. Elsewhere nothing is drawn.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressStyle};

use super::is_muted;

/// Some work may take minutes between two pieces: the time goes on meanwhile.
const TICK: Duration = Duration::from_millis(250);
const COUNTED: &str = "{bar:20} {percent:>3} %  {elapsed}  {wide_msg}";
const ENDLESS: &str = "{spinner} {elapsed}  {wide_msg}";

/// A line on a terminal, which is gone when it is dropped. It draws nothing where stderr is no terminal, or another process talks for this one.
#[derive(Debug)]
pub struct Bar(Option<ProgressBar>);

impl Bar {
    /// Work of so many pieces.
    pub fn of(pieces: u64) -> Self {
        Self::drawn(Some(pieces), "")
    }

    /// Work whose length is not known.
    pub fn endless(what: &str) -> Self {
        Self::drawn(None, what)
    }

    fn drawn(pieces: Option<u64>, what: &str) -> Self {
        if !io::stderr().is_terminal() || is_muted() {
            return Self(None);
        }
        let template = if pieces.is_some() { COUNTED } else { ENDLESS };
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::new(pieces.unwrap_or(0)).with_style(style);
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(TICK);
        Self(Some(bar))
    }

    /// True if there is somebody to see it.
    pub fn is_drawn(&self) -> bool {
        self.0.is_some()
    }

    /// Says what is being done.
    pub fn say(&self, what: impl Into<String>) {
        if let Some(bar) = &self.0 {
            bar.set_message(what.into());
        }
    }

    /// So many more pieces are done.
    pub fn done(&self, pieces: u64) {
        if let Some(bar) = &self.0 {
            bar.inc(pieces);
        }
    }

    /// So many of so many pieces are done.
    pub fn set(&self, done: u64, pieces: u64) {
        if let Some(bar) = &self.0 {
            bar.set_length(pieces);
            bar.set_position(done);
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

/// A time in words. Beyond a century it is no information (and would not fit a duration).
pub fn duration(seconds: f64) -> String {
    if seconds < 1.0 {
        return "less than a second".into();
    }
    HumanDuration(Duration::from_secs_f64(seconds.min(3e9))).to_string()
}
