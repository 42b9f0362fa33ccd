//! Progress: a bar on a terminal, a line every ten seconds elsewhere. Never part of a result.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{HumanCount, HumanDuration, ProgressBar, ProgressStyle};
use pasta_report::console::{is_muted, say};
use pasta_report::number::rough;

use super::Run;

/// How often a terminal is redrawn, and how often a log gets a line.
const REDRAW: Duration = Duration::from_millis(100);
const LINE: Duration = Duration::from_secs(10);

/// Watches a run.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    started: Instant,
    /// Samples drawn and fraction done before, where the run is resumed.
    before: (u128, f64),
    shown: Instant,
    saved: Instant,
    save_every: Duration,
    /// Steps between looks at the clock, adapted so that a look comes every few milliseconds.
    stride: u64,
    looked: (u64, Instant),
}

impl Progress {
    pub(super) fn start(run: &Run, save_every: f64) -> Self {
        let now = Instant::now();
        let bar = (std::io::stderr().is_terminal() && !is_muted()).then(|| {
            let style = ProgressStyle::with_template("{bar:20} {percent:>3} %  {wide_msg}");
            ProgressBar::new(1000).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        Self {
            bar,
            started: now,
            before: (run.gate.ledger().samples(), fraction(run, run.likely_end())),
            shown: now,
            saved: now,
            save_every: Duration::try_from_secs_f64(save_every).unwrap_or(Duration::MAX),
            stride: 1,
            looked: (run.walk.view().step, now),
        }
    }

    /// Called after every step; true when it is time for a checkpoint.
    #[inline]
    pub(super) fn tick(&mut self, run: &Run, step: u64) -> bool {
        step >= self.looked.0.saturating_add(self.stride) && self.look(run, step)
    }

    fn look(&mut self, run: &Run, step: u64) -> bool {
        let now = Instant::now();
        let since = now - self.looked.1;
        if since < Duration::from_millis(2) {
            self.stride = self.stride.saturating_mul(2);
        } else if since > Duration::from_millis(20) {
            // Steps may become slow all at once, when batches grow: back to some ten milliseconds in one go.
            self.stride = (self.stride / (since.as_millis() as u64 / 10)).max(1);
        }
        self.looked = (step, now);
        self.pulse(run, now)
    }

    /// Called where there was no step, but samples for a certificate; true when it is time for a checkpoint.
    pub(super) fn check(&mut self, run: &Run) -> bool {
        self.pulse(run, Instant::now())
    }

    fn pulse(&mut self, run: &Run, now: Instant) -> bool {
        let pause = if self.bar.is_some() { REDRAW } else { LINE };
        if now - self.shown >= pause {
            self.shown = now;
            self.show(run, now);
        }
        let due = now - self.saved >= self.save_every;
        if due {
            self.saved = now;
        }
        due
    }

    fn show(&self, run: &Run, now: Instant) {
        let view = run.walk.view();
        let drawn = run.gate.ledger().samples();
        let seconds = (now - self.started).as_secs_f64().max(1e-9);
        let rate = (drawn - self.before.0) as f64 / seconds;
        let end = run.likely_end();
        let fraction = fraction(run, end);
        // Samples where their end is known or forecast, steps otherwise; a forecast moves on as long as the run outlasts it.
        let left = match end {
            Some(end) => end.saturating_sub(drawn) as f64 / rate.max(1e-12),
            None => seconds * (1.0 - fraction) / (fraction - self.before.1).max(1e-12),
        };
        // Beyond a century a duration is no information (and would not fit one). Nor is the end of a plan one for a run
        // that will be certified long before.
        let left = match end {
            None if view.certification.is_some() => String::new(),
            _ => format!(", {} left", HumanDuration(Duration::from_secs_f64(left.clamp(0.0, 3e9)))),
        };
        let of = match (end, run.outlook.forecast) {
            (Some(end), Some(_)) => format!(" of about {}", rough(end as f64)),
            _ => String::new(),
        };
        let text = format!("{} samples{of}, {rate:.3e}/s{left}", HumanCount(saturated(drawn)));
        let planned = view.planned_steps.map_or(String::new(), |steps| format!(" of {steps}"));
        match &self.bar {
            Some(bar) => {
                bar.set_position((1000.0 * fraction) as u64);
                bar.set_message(text);
            }
            None => say(&format!("step {}{planned}: {text}", view.step)),
        }
    }
}

/// How much of the run is behind us, by steps or by budget, whichever ends it first.
fn fraction(run: &Run, budget: Option<u128>) -> f64 {
    let view = run.walk.view();
    let by_steps = view.planned_steps.map_or(0.0, |steps| view.step as f64 / steps.max(1) as f64);
    let by_budget = budget.map_or(0.0, |b| run.gate.ledger().samples() as f64 / b.max(1) as f64);
    by_steps.max(by_budget).min(1.0)
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn saturated(count: u128) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
