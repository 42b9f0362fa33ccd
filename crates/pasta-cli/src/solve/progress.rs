//! Progress: a bar on a terminal, a line every ten seconds elsewhere. Never part of a result.

use std::time::{Duration, Instant};

use pasta_opt::forecast::Price;
use pasta_report::console::{Bar, duration, say};
use pasta_report::number::{grouped, rough};

use super::Live;
use pasta_report::answer::money;

/// How often a terminal is redrawn, and how often a log gets a line.
const REDRAW: Duration = Duration::from_millis(100);
const LINE: Duration = Duration::from_secs(10);
/// How often a page of a run that goes on is written.
const PAGE: Duration = Duration::from_secs(2);

/// What a whole run is to the bar.
const PIECES: u64 = 1000;

/// Watches a run.
pub(super) struct Progress {
    bar: Bar,
    started: Instant,
    /// Samples drawn and fraction done before, where the run is resumed.
    before: (u128, f64),
    shown: Instant,
    saved: Instant,
    save_every: Duration,
    paged: Instant,
    /// True if it is time for a page.
    wants_page: bool,
    /// Steps between looks at the clock, adapted so that a look comes every few milliseconds.
    stride: u64,
    looked: (u64, Instant),
    price: Option<Price>,
}

impl Progress {
    pub(super) fn start(live: &Live, price: Option<Price>, save_every: f64) -> Self {
        let now = Instant::now();
        let progress = Self {
            bar: Bar::of(PIECES),
            started: now,
            before: (live.run.gate().ledger().samples(), fraction(live, live.likely_end())),
            shown: now,
            saved: now,
            paged: now,
            wants_page: false,
            save_every: Duration::try_from_secs_f64(save_every).unwrap_or(Duration::MAX),
            stride: 1,
            looked: (live.run.view().step, now),
            price,
        };
        if progress.bar.is_drawn() {
            progress.show(live, now);
        }
        progress
    }

    /// Seconds that a sample has taken so far in this process.
    pub(super) fn seconds_each(&self, live: &Live) -> f64 {
        let drawn = live.run.gate().ledger().samples() - self.before.0;
        self.started.elapsed().as_secs_f64() / (drawn as f64).max(1.0)
    }

    /// Called after every step; true when it is time for a checkpoint.
    #[inline]
    pub(super) fn tick(&mut self, live: &Live, step: u64) -> bool {
        step >= self.looked.0.saturating_add(self.stride) && self.glance(live, step)
    }

    fn glance(&mut self, live: &Live, step: u64) -> bool {
        let now = Instant::now();
        let since = now - self.looked.1;
        if since < Duration::from_millis(2) {
            self.stride = self.stride.saturating_mul(2);
        } else if since > Duration::from_millis(20) {
            // Steps may become slow all at once, when batches grow: back to some ten milliseconds in one go.
            self.stride = (self.stride / (since.as_millis() as u64 / 10)).max(1);
        }
        self.looked = (step, now);
        self.pulse(live, now)
    }

    /// Called where there was no step, but samples for a certificate; true when it is time for a checkpoint.
    pub(super) fn check(&mut self, live: &Live) -> bool {
        self.pulse(live, Instant::now())
    }

    fn pulse(&mut self, live: &Live, now: Instant) -> bool {
        let pause = if self.bar.is_drawn() { REDRAW } else { LINE };
        if now - self.shown >= pause {
            self.shown = now;
            self.show(live, now);
        }
        if now - self.paged >= PAGE {
            (self.paged, self.wants_page) = (now, true);
        }
        let due = now - self.saved >= self.save_every;
        if due {
            self.saved = now;
        }
        due
    }

    /// True once whenever it is time to write a page.
    #[inline]
    pub(super) fn takes_page(&mut self) -> bool {
        std::mem::take(&mut self.wants_page)
    }

    /// How far the run is, in words.
    pub(super) fn words(&self, live: &Live) -> String {
        self.look(live, Instant::now()).words()
    }

    fn show(&self, live: &Live, now: Instant) {
        let look = self.look(live, now);
        let text = look.words();
        let view = live.run.view();
        let planned = view.planned_steps.map_or(String::new(), |steps| format!(" of {steps}"));
        if self.bar.is_drawn() {
            self.bar.set((PIECES as f64 * look.fraction) as u64, PIECES);
            self.bar.say(text);
        } else {
            say(&format!("step {}{planned}: {text}", view.step));
        }
    }

    fn look(&self, live: &Live, now: Instant) -> Look {
        let view = live.run.view();
        let drawn = live.run.gate().ledger().samples();
        let end = live.likely_end();
        let fraction = fraction(live, end);
        Look {
            drawn,
            drawn_here: drawn - self.before.0,
            seconds: (now - self.started).as_secs_f64().max(1e-9),
            end,
            fraction,
            fraction_here: fraction - self.before.1,
            has_forecast: live.run.outlook().latest.is_some(),
            has_certificates: view.certification.is_some(),
            spent: self
                .price
                .as_ref()
                .map_or(String::new(), |price| format!(", {}", money(price, drawn as f64))),
        }
    }
}

/// What is known of a run at one moment.
struct Look {
    drawn: u128,
    /// Since this process began, and in how many seconds.
    drawn_here: u128,
    seconds: f64,
    /// After how many samples it will end.
    end: Option<u128>,
    /// How much of the run is done, and how much of it since this process began.
    fraction: f64,
    fraction_here: f64,
    has_forecast: bool,
    has_certificates: bool,
    /// What was spent so far, in words.
    spent: String,
}

impl Look {
    /// Samples, speed and the time that is left.
    fn words(&self) -> String {
        let rate = self.drawn_here as f64 / self.seconds;
        // Samples where their end is known or forecast, steps otherwise; a forecast moves on as long as the run outlasts it.
        let left = match self.end {
            Some(end) => end.saturating_sub(self.drawn) as f64 / rate.max(1e-12),
            None => self.seconds * (1.0 - self.fraction) / self.fraction_here.max(1e-12),
        };
        // The end of a plan is no information for a run that will be certified long before.
        let left = match self.end {
            None if self.has_certificates => String::new(),
            _ => format!(", {} left", duration(left)),
        };
        let of = match self.end {
            Some(end) if self.has_forecast => format!(" of about {}", rough(end as f64)),
            _ => String::new(),
        };
        let pace = if self.drawn_here == 0 { String::new() } else { format!(", {rate:.3e}/s{left}") };
        format!("{} samples{of}{}{pace}", grouped(self.drawn), self.spent)
    }
}

/// How much of the run is behind us, by steps or by budget, whichever ends it first.
fn fraction(live: &Live, budget: Option<u128>) -> f64 {
    let view = live.run.view();
    let by_steps = view.planned_steps.map_or(0.0, |steps| view.step as f64 / steps.max(1) as f64);
    let by_budget = budget.map_or(0.0, |b| live.run.gate().ledger().samples() as f64 / b.max(1) as f64);
    by_steps.max(by_budget).min(1.0)
}

#[cfg(test)]
mod tests {
    use pasta_opt::Ledger;
    use pasta_opt::draws::Role;
    use pasta_opt::forecast::Outlook;
    use pasta_opt::oracle::Charge;

    use super::{Look, duration};

    /// Costs from 2,000 to 50,000 samples, 10,000 in the middle.
    fn outlook() -> Outlook {
        let quantiles: Vec<f64> = (-11..=11).map(|i| 1e4 * 5f64.powf(f64::from(i) / 11.0)).collect();
        let [low, middle, high] = [1, 11, 21].map(|i| quantiles[i]);
        let rules = serde_json::json!({ "kind": "noise" });
        let said = serde_json::json!({
            "after": 1, "low": low, "middle": middle, "high": high, "rules": rules, "quantiles": quantiles
        });
        let outlook = serde_json::json!({ "first": said, "latest": said, "silent": null, "next": null });
        serde_json::from_value(outlook).unwrap_or_else(|error| panic!("{error}"))
    }

    fn ledger(run: u128) -> Ledger {
        let mut ledger = Ledger::default();
        let charge = |samples| Charge { samples, evaluations: samples, exact: false };
        ledger.charge(Role::Check, charge(46));
        ledger.charge(Role::Large, charge(run));
        ledger
    }

    /// The line of a run that draws so many samples in so many seconds.
    fn line(drawn: u128, seconds: f64, end: Option<u128>) -> String {
        let fraction = end.map_or(0.0, |end| drawn as f64 / end as f64);
        let (drawn_here, fraction_here, spent) = (drawn, fraction, String::new());
        let (has_forecast, has_certificates) = (true, true);
        Look {
            drawn,
            drawn_here,
            seconds,
            end,
            fraction,
            fraction_here,
            has_forecast,
            has_certificates,
            spent,
        }
        .words()
    }

    #[test]
    fn a_run_that_outlasts_its_forecast_never_has_no_time_left() {
        let mut last = 0;
        for run in (0..60).map(|i| 1.5f64.powi(i) as u128) {
            let ledger = ledger(run);
            let end = outlook().likely_end(&ledger).unwrap_or(0);
            // What the check drew is no part of the forecast, but of the end. It never moves back.
            assert!(end >= last && end >= 46 + 10_000, "{end} after {run}");
            last = end;
            // A thousand samples a second: however long it has gone on, a sixth of that is still to come.
            let left = (end - ledger.samples()) as f64;
            assert!(left >= run as f64 / 6.0, "{left} of {run}");
            let text = line(ledger.samples(), ledger.samples() as f64 / 1000.0, Some(end));
            assert!(text.contains(" of about ") && text.ends_with(" left"), "{text}");
            assert!(!text.contains(" 0 seconds") && !text.contains("less than"), "{text}");
        }
    }

    #[test]
    fn a_line_names_the_end_that_is_known_and_before_the_first_sample_no_pace() {
        assert_eq!(
            line(2_000, 2.0, Some(10_000)),
            "2,000 samples of about 10,000, 1.000e3/s, 8 seconds left"
        );
        assert_eq!(line(2_000, 2.0, None), "2,000 samples, 1.000e3/s");
        assert_eq!(line(0, 1e-9, None), "0 samples");
    }

    #[test]
    fn times_are_words() {
        assert_eq!(duration(0.0), "less than a second");
        assert_eq!(duration(90.0), "2 minutes");
        assert!(duration(f64::INFINITY).contains("years"));
    }
}
