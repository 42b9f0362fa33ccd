//! A schedule is plain data: everything that Algorithm 1 needs besides the oracle, the start and the seed.

use serde::{Deserialize, Serialize};

use crate::exact::MAX_COUNT;

/// All settings of Algorithm 1. A recipe makes one; so can you.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// S: epochs.
    pub epochs: u64,
    /// K: steps of an epoch.
    pub steps: u64,
    /// eta_t: step sizes.
    pub eta: Sequence,
    /// beta_t: pull towards the anchor; 0 is none.
    pub beta: Sequence,
    /// How g_t is made of samples.
    pub estimator: Estimator,
    /// Size of the batch at t = 0 of an epoch.
    pub first: BatchRule,
    /// N_t: size of the large batches at t >= 1.
    pub large: BatchRule,
    /// Which point carries the guarantee.
    pub output: Output,
}

/// The estimators of Algorithm 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Estimator {
    /// g_t is the mean of N_t fresh samples at x_t.
    Minibatch,
    /// PAGE: with probability p_t a fresh mean of N_t samples, otherwise g_{t-1} plus the mean difference
    /// between x_t and x_{t-1} over `small` samples, the same samples at both points.
    Page {
        /// p_t: probability of a fresh batch.
        refresh: Sequence,
        /// b: samples of a correction.
        small: u64,
    },
    /// STORM: g_t = m(x_t) + (1 - a_t)(g_{t-1} - m(x_{t-1})), m the mean over the same N_t samples at both points.
    Storm {
        /// a_t: weight of the fresh mean.
        momentum: Sequence,
    },
}

impl Estimator {
    /// Whether it may evaluate a sample at two points.
    pub fn needs_differences(&self) -> bool {
        !matches!(self, Self::Minibatch | Self::Page { refresh: Sequence::Constant(1.0), .. })
    }
}

/// A sequence over the steps t = 0, 1, .. of an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sequence {
    /// The same value at every step.
    Constant(f64),
    /// scale/(t + shift). The classical Halpern anchoring is scale 1, shift 2.
    Harmonic {
        /// Numerator.
        scale: f64,
        /// Added to t.
        shift: f64,
    },
    /// scale/sqrt(t + shift).
    InverseRoot {
        /// Numerator.
        scale: f64,
        /// Added to t.
        shift: f64,
    },
}

impl Sequence {
    /// The value at step t.
    #[inline]
    pub fn at(&self, t: u64) -> f64 {
        match *self {
            Self::Constant(value) => value,
            Self::Harmonic { scale, shift } => scale / (t as f64 + shift),
            Self::InverseRoot { scale, shift } => scale / (t as f64 + shift).sqrt(),
        }
    }

    /// The largest value over the steps 0, 1, .. (the sequences do not increase).
    fn largest(&self) -> f64 {
        self.at(0)
    }
}

/// How large a batch is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BatchRule {
    /// Always this many samples.
    Fixed(u64),
    /// As many as bring the variance that BG-0 allows at this distance down to the target:
    /// max{at_least, ceil((B^2 |x - x0|^2 + b^2)/target_variance)}.
    Drift {
        /// B.
        growth: f64,
        /// b.
        floor: f64,
        /// sigma^2.
        target_variance: f64,
        /// Never fewer than this.
        at_least: u64,
    },
}

impl BatchRule {
    /// The batch size at a squared distance |x - x0|^2 from the start, or the size needed if no count can
    /// hold it.
    #[inline]
    pub fn size(&self, distance2: f64) -> Result<u64, f64> {
        match *self {
            Self::Fixed(n) => Ok(n),
            Self::Drift { growth, floor, target_variance, at_least } => {
                let needed = ((growth * growth * distance2 + floor * floor) / target_variance).ceil();
                if needed <= MAX_COUNT as f64 {
                    Ok((needed as u64).max(at_least))
                } else {
                    // NaN and infinity too become a number that a checkpoint can hold.
                    Err(needed.min(f64::MAX))
                }
            }
        }
    }
}

/// Which point of a run carries the guarantee.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Output {
    /// x_K of the last epoch.
    Last,
    /// One of the points x_0 .. x_{K-1} at which a gradient was estimated, each equally likely.
    Uniform,
    /// The mean of x_0 .. x_{K-1}, of the last epoch if there are several.
    Average,
    /// One of the anchors x_0 .. x_{S-1} (the starts of the epochs), each equally likely.
    RandomAnchor,
}

impl Output {
    /// The point in words.
    pub fn description(self) -> &'static str {
        match self {
            Self::Last => "the last iterate",
            Self::Uniform => "an iterate drawn uniformly from x_0 .. x_{K-1}",
            Self::Average => "the average of x_0 .. x_{K-1}",
            Self::RandomAnchor => "an anchor drawn uniformly from x_0 .. x_{S-1}",
        }
    }
}

/// Why a schedule cannot be run.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("schedule: {name} must be {needs}, but is {got}")]
#[non_exhaustive]
pub struct ScheduleError {
    /// The setting.
    pub name: &'static str,
    /// Its range.
    pub needs: &'static str,
    /// What it is.
    pub got: f64,
}

impl Schedule {
    /// The same settings without an end: for a run that something else will stop, such as a certificate.
    #[must_use]
    pub fn endless(self) -> Self {
        match self.epochs {
            1 => Self { steps: MAX_COUNT, ..self },
            _ => Self { epochs: MAX_COUNT, ..self },
        }
    }

    /// The number of steps of the whole run.
    pub fn total_steps(&self) -> u128 {
        u128::from(self.epochs) * u128::from(self.steps)
    }

    /// Refuses settings out of their ranges.
    pub fn check(&self) -> Result<(), ScheduleError> {
        let within = |name, needs, got: f64, met: bool| {
            if met { Ok(()) } else { Err(ScheduleError { name, needs, got }) }
        };
        let eta = self.eta.largest();
        within("eta", "positive and finite", eta, eta > 0.0 && eta.is_finite())?;
        let beta = self.beta.largest();
        within("beta", "in [0, 1]", beta, (0.0..=1.0).contains(&beta))?;
        match self.estimator {
            Estimator::Minibatch => {}
            Estimator::Page { refresh, small } => {
                let p = refresh.largest();
                within("refresh (p)", "in (0, 1]", p, p > 0.0 && p <= 1.0)?;
                within("small (b)", "at least 1", small as f64, small >= 1)?;
            }
            Estimator::Storm { momentum } => {
                let a = momentum.largest();
                within("momentum", "in (0, 1]", a, a > 0.0 && a <= 1.0)?;
            }
        }
        for rule in [self.first, self.large] {
            match rule {
                BatchRule::Fixed(n) => {
                    within("batch", "between 1 and 2^63", n as f64, (1..=MAX_COUNT).contains(&n))?;
                }
                BatchRule::Drift { growth, floor, target_variance, at_least } => {
                    within("growth", "finite, at least 0", growth, growth >= 0.0 && growth.is_finite())?;
                    within("floor", "finite, at least 0", floor, floor >= 0.0 && floor.is_finite())?;
                    let met = target_variance > 0.0 && target_variance.is_finite();
                    within("target_variance", "positive and finite", target_variance, met)?;
                    within(
                        "at_least",
                        "between 1 and 2^63",
                        at_least as f64,
                        (1..=MAX_COUNT).contains(&at_least),
                    )?;
                }
            }
        }
        Ok(())
    }

    /// Uncoupled Halpern iteration: one epoch, anchored at the start by beta_t = 1/(t + 2).
    ///
    /// A named special case of Algorithm 1; no theorem here promises anything about it.
    pub fn halpern(eta: f64, steps: u64, batch: u64) -> Self {
        Self {
            beta: Sequence::Harmonic { scale: 1.0, shift: 2.0 },
            ..Self::plain(Sequence::Constant(eta), steps, batch)
        }
    }

    /// Krasnoselskii-Mann iteration: every step is an epoch of its own, so the anchor is the current point
    /// and x_{s} = x_{s-1} - eta g whatever beta is.
    ///
    /// A named special case of Algorithm 1; no theorem here promises anything about it.
    pub fn krasnoselskii_mann(eta: f64, beta: f64, steps: u64, batch: u64) -> Self {
        Self {
            epochs: steps,
            steps: 1,
            beta: Sequence::Constant(beta),
            ..Self::plain(Sequence::Constant(eta), 1, batch)
        }
    }

    /// STORM: one epoch, no anchor, the recursive estimator of Cutkosky and Orabona.
    ///
    /// A member of the family; no theorem here promises anything about it.
    pub fn storm(eta: f64, momentum: f64, steps: u64, batch: u64) -> Self {
        Self {
            estimator: Estimator::Storm { momentum: Sequence::Constant(momentum) },
            ..Self::plain(Sequence::Constant(eta), steps, batch)
        }
    }

    /// Plain minibatch SGD: one epoch, no anchor, fixed batches, last iterate.
    pub fn plain(eta: Sequence, steps: u64, batch: u64) -> Self {
        Self {
            epochs: 1,
            steps,
            eta,
            beta: Sequence::Constant(0.0),
            estimator: Estimator::Minibatch,
            first: BatchRule::Fixed(batch),
            large: BatchRule::Fixed(batch),
            output: Output::Last,
        }
    }
}
