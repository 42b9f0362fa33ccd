//! What a run says of its own cost while it goes on.

use serde::{Deserialize, Serialize};

use super::{Forecast, Pilot};
use crate::certificate::Basis;
use crate::ledger::Ledger;
use crate::oracle::About;
use crate::walk::{StopRule, View};

/// The forecasts that a certified run makes of itself. They take no samples: its own first ones are its pilot.
///
/// Part of its checkpoint. After every call of [`Walk::advance`](crate::walk::Walk::advance) a caller lets it [`follow`](Self::follow) the run.
///
/// ```
/// use pasta_opt::certificate::Basis;
/// use pasta_opt::forecast::Outlook;
/// use pasta_opt::prelude::*;
/// use pasta_opt::problems::SineBowl;
///
/// let noise = Noise { growth: 1.0, floor: 1.0, tail: Tail::Gaussian };
/// let oracle = Noisy::new(Box::new(SineBowl { dimension: 1 }), noise, vec![1.2])?;
/// let basis = Basis::Growth { growth: 1.0, floor: 1.0, distance: 0.0 };
/// let rule = StopRule { target: 0.05, delta: 0.05, basis, share: 0.5 };
/// let mut gate = Gate::new(oracle, 1);
/// let sgd = Settings { rule: Rule::Sgd { eta: Sequence::Constant(0.01) }, steps: 1 << 40, batch: 1 };
/// let mut outlook = Outlook::default();
/// let end = Baseline::start(&gate, sgd, &[1.2])?
///     .certified(&gate, rule)?
///     .tee(|_, view, ledger| {
///         outlook.follow(view, ledger, rule);
///     })
///     .finish(&mut gate)?;
/// let first = outlook.first.ok_or("it said something")?;
/// let samples = end.ledger.samples();
/// assert!(5 * first.after < samples);
/// assert!(first.forecast.low < samples as f64 && (samples as f64) < first.forecast.high);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Outlook {
    /// The first forecast.
    pub first: Option<Said>,
    /// The last one: they move with the run.
    pub latest: Option<Said>,
    /// Why there is none, or none yet.
    pub silent: Option<String>,
    /// It is forecast next when it has drawn this many samples; `None` is never.
    next: Option<u128>,
}

/// A forecast that a run made of itself.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Said {
    /// What the run had drawn, certificates included.
    pub after: u128,
    /// The samples of the whole run, what it had drawn included.
    #[serde(flatten)]
    pub forecast: Forecast,
}

/// From one forecast to the next the samples grow by this factor.
const NEXT: u128 = 4;

impl Default for Outlook {
    /// The first forecast comes after [`Outlook::FIRST`] samples.
    fn default() -> Self {
        Self::after(Self::FIRST)
    }
}

impl Outlook {
    /// The samples of a run before its first forecast, unless told otherwise.
    pub const FIRST: u128 = 1000;

    /// The outlook of a run that begins, by its oracle and the rule by which it stops: the first forecast comes with the first look after this many
    /// samples, and none at all if that is 0.
    pub fn start(about: &About, rule: Option<StopRule>, samples: u128) -> Self {
        match rule {
            None => Self::silent("the run is not to be certified"),
            // Samples say far too much where the end is reached by passes.
            Some(rule) if rule.basis == Basis::Exact || about.full_pass().is_some_and(|rows| rows > 0) => {
                Self::silent(
                    "a run on a table ends by exact passes over all rows, whose number is not known before",
                )
            }
            Some(rule) if rule.share == 0.0 => Self::silent("certificates have no share of the samples"),
            Some(_) => Self::after(samples),
        }
    }

    /// Forecasts from the first look after this many samples on; none at all if it is 0.
    pub fn after(samples: u128) -> Self {
        if samples == 0 {
            return Self::silent("none was asked for");
        }
        let early = format!("the run ended before its first forecast, after {samples} samples");
        Self { first: None, latest: None, silent: Some(early), next: Some(samples) }
    }

    /// No forecast, and why.
    pub fn silent(why: impl Into<String>) -> Self {
        Self { first: None, latest: None, silent: Some(why.into()), next: None }
    }

    /// True if it is time to forecast a run that has drawn so much.
    pub fn is_due(&self, ledger: &Ledger) -> bool {
        self.next.is_some_and(|next| drawn(ledger) >= next)
    }

    /// Forecasts the run anew where it is time for that. True if there is a new forecast.
    pub fn follow(&mut self, view: &View<'_>, ledger: &Ledger, rule: StopRule) -> bool {
        if !self.is_due(ledger) || view.ended.is_some() {
            return false;
        }
        let drawn = drawn(ledger);
        let Some(pilot) = Pilot::of_run(view, ledger, rule) else { return false };
        self.next = Some(NEXT * drawn);
        match pilot.forecast(rule.target) {
            Ok(forecast) => {
                let said = Said { after: drawn, forecast: forecast.given(drawn as f64) };
                (self.first, self.latest, self.silent) = (self.first.or(Some(said)), Some(said), None);
                true
            }
            Err(silence) => {
                if self.first.is_none() {
                    self.silent = Some(silence.to_string());
                }
                false
            }
        }
    }

    /// After how many samples in all the run will probably end, when it has drawn so much.
    pub fn likely_end(&self, ledger: &Ledger) -> Option<u128> {
        let drawn = drawn(ledger);
        let besides = ledger.samples() - drawn;
        self.latest.map(|said| besides + said.forecast.given(drawn as f64).middle as u128)
    }
}

/// What a run has drawn: its steps, looks and certificates.
pub(super) fn drawn(ledger: &Ledger) -> u128 {
    ledger.steps().samples + ledger.certificate_samples()
}
