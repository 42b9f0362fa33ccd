//! Walks: any method that moves a point by asking an oracle, and adaptors over all of them.
//!
//! ```
//! use pasta_opt::prelude::*;
//!
//! let noise = Noise { growth: 0.0, floor: 1.0, tail: Tail::Gaussian };
//! let oracle = Noisy::new(Box::new(SineBowl { dimension: 1 }), noise, vec![1.2])?;
//! let sgd = Baseline::start(&oracle, Rule::Sgd { eta: Sequence::Constant(0.1) }, 1_000, 1, &[1.2], 7)?;
//! let mut seen = 0;
//! let end = sgd
//!     .every(100, |_, _| seen += 1)
//!     .until(|_, state| state.x[0].abs() < 1e-3)
//!     .budget(500)
//!     .finish()?;
//! assert!(end.ledger.samples <= 500 && seen <= 5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod certified;

pub use certified::{Candidate, Certified, Progress, StopRule};
use serde::{Deserialize, Serialize};

use crate::certificate::RequestError;
use crate::checkpoint::Checkpoint;
use crate::estimator::Kind;
use crate::oracle::{Ledger, Oracle, OracleError};
use crate::schedule::ScheduleError;
use crate::state::State;

/// A method that asks an oracle and moves.
pub trait Walk {
    /// Takes one step, or says why there is none. After a stop it keeps giving the same answer.
    fn advance(&mut self) -> Result<Advance, OracleError>;

    /// Where the walk stands.
    fn state(&self) -> &State;

    /// How many samples the next step will draw; 0 at the end. Known before any is drawn.
    fn next_samples(&self) -> u64;

    /// How many steps the walk has planned in all.
    fn planned_steps(&self) -> u128;

    /// All that is needed to go on later, bit for bit.
    fn checkpoint(&self) -> Checkpoint;

    /// The point that the walk hands out, were it to end here.
    fn point(&self) -> &[f64] {
        self.state().output()
    }

    /// How far the walk's certificates have come, where it has any.
    fn certification(&self) -> Option<&Progress> {
        None
    }

    /// Whether a theorem may speak of the point that the walk hands out at its planned end.
    fn has_theorem(&self) -> bool {
        true
    }

    /// Stops when |grad f| <= target is certified by fresh samples of the same oracle, and tries once more at the end.
    /// Tried when a few samples suggest that it will succeed; `seed` is that of the walk, `progress` that of its
    /// checkpoint if it is resumed. A budget belongs into the rule, which counts the certificates' samples too.
    ///
    /// ```
    /// use pasta_opt::certificate::Grade;
    /// use pasta_opt::prelude::*;
    ///
    /// let noise = Noise { growth: 9.0, floor: 1.0, tail: Tail::Gaussian };
    /// let oracle = Noisy::new(Box::new(SineBowl { dimension: 1 }), noise, vec![1.2])?;
    /// let recipe = Smooth { smoothness: 3.0, gap: 1.6, growth: 9.0, floor: 1.0, variance: None, target: 0.1 };
    /// let grade = Grade::Growth { growth: 9.0, floor: 1.0, distance: 0.0 };
    /// let rule = StopRule { target: 0.1, delta: 0.05, grade, share: 0.5, budget: None };
    /// let walk = Pasta::start(&oracle, recipe.plan()?.schedule, &[1.2], 1)?;
    /// let end = walk.certified(&oracle, rule, 1, None)?.finish()?;
    /// assert_eq!(end.stop, Stop::Certified);
    /// assert!(end.ledger.samples < 5_000_000); // the recipe's worst case is 45 million
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn certified(
        self,
        oracle: &dyn Oracle,
        rule: StopRule,
        seed: u64,
        progress: Option<Progress>,
    ) -> Result<Certified<'_, Self>, RequestError>
    where
        Self: Sized,
    {
        Certified::new(self, oracle, rule, seed, progress)
    }

    /// Stops after the first step for which `stop` is true.
    fn until<F>(self, stop: F) -> Until<Self, F>
    where
        Self: Sized,
        F: FnMut(&Record, &State) -> bool,
    {
        Until { walk: self, stop, met: false }
    }

    /// Shows every step to `observe`.
    fn tee<F>(self, observe: F) -> Every<Self, F>
    where
        Self: Sized,
        F: FnMut(&Record, &State),
    {
        self.every(1, observe)
    }

    /// Shows the steps 0, n, 2n, .. of the run to `observe`.
    fn every<F>(self, n: u64, observe: F) -> Every<Self, F>
    where
        Self: Sized,
        F: FnMut(&Record, &State),
    {
        Every { walk: self, n: n.max(1), observe }
    }

    /// Stops before a step that would draw more than `samples` samples in all. Never overspends by one.
    fn budget(self, samples: u128) -> Budget<Self>
    where
        Self: Sized,
    {
        Budget { walk: self, samples }
    }

    /// Walks to the end.
    fn finish(mut self) -> Result<Finished, OracleError>
    where
        Self: Sized,
    {
        loop {
            if let Advance::Stop(stop) = self.advance()? {
                let state = self.state();
                return Ok(Finished {
                    stop,
                    point: self.point().to_vec(),
                    last: state.x.clone(),
                    ledger: state.ledger,
                    steps: state.step,
                    certification: self.certification().cloned(),
                });
            }
        }
    }
}

/// What one call of [`Walk::advance`] did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Advance {
    /// A step was taken.
    Step(Record),
    /// No step, but samples for a certificate.
    Check,
    /// There is no further step.
    Stop(Stop),
}

/// What a step was.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Record {
    /// s.
    pub epoch: u64,
    /// t.
    pub t: u64,
    /// Fresh batch or correction.
    pub kind: Kind,
    /// Samples drawn.
    pub n: u64,
    /// |x_{t+1} - x0|^2.
    pub distance2: f64,
}

/// Why a walk stopped, and so what its point means.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// All planned steps were taken: the recipe's promise, if it has one, holds for the output point.
    PlannedEnd,
    /// The next step would have overdrawn the budget: nothing is promised.
    OutOfBudget,
    /// A condition of the caller was met: it means what the caller meant.
    Asked,
    /// The point is certified: with the stated confidence, under the stated assumption, its gradient is small.
    Certified,
    /// The run left the region where numbers mean something: the point is the last sane one.
    Diverged(Divergence),
}

impl Stop {
    /// What happened and, but for the planned end, what the output point is then worth. (After the planned
    /// end it is worth what the recipe promises.)
    pub fn meaning(&self) -> String {
        match self {
            Self::PlannedEnd => "all planned steps were taken".into(),
            Self::OutOfBudget => {
                "the next step would overdraw the budget; nothing is promised for this point".into()
            }
            Self::Asked => "the caller's own condition was met; nothing else is promised".into(),
            Self::Certified => "the point is certified; what that means is in the certificate".into(),
            Self::Diverged(divergence) => format!("diverged: {divergence}; the last finite iterate is kept"),
        }
    }
}

/// How a run diverged.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum Divergence {
    /// The oracle answered with NaN or infinity.
    #[error("the oracle's answer at step {step} is not finite")]
    Gradient {
        /// The step.
        step: u64,
    },
    /// The iterate overflowed.
    #[error("the iterate after step {step} is not finite")]
    NotFinite {
        /// The step.
        step: u64,
    },
    /// The iterate is finite but absurdly far away.
    #[error("the iterate after step {step} is more than 1e50 from the start")]
    Runaway {
        /// The step.
        step: u64,
    },
    /// The dynamic batch rule asks for more samples than can be counted.
    #[error("step {step} needs a batch of {needed:e} samples, more than 2^63")]
    Batch {
        /// The step.
        step: u64,
        /// The size needed.
        needed: f64,
    },
}

impl Divergence {
    /// The step at which it was noticed.
    pub fn step(&self) -> u64 {
        match *self {
            Self::Gradient { step }
            | Self::NotFinite { step }
            | Self::Runaway { step }
            | Self::Batch { step, .. } => step,
        }
    }
}

/// The end of a walk.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// Why it ended.
    pub stop: Stop,
    /// The point that carries the guarantee, if the stop leaves one.
    pub point: Vec<f64>,
    /// The last iterate.
    pub last: Vec<f64>,
    /// What was asked of the oracle.
    pub ledger: Ledger,
    /// Steps taken.
    pub steps: u64,
    /// The walk's certificates and what they cost, where it had any.
    pub certification: Option<Progress>,
}

/// Why a walk cannot start.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StartError {
    /// The start has the wrong number of coordinates.
    #[error("the start has {start} coordinates, but the oracle has {oracle}")]
    Dimension {
        /// Coordinates of the start.
        start: usize,
        /// Coordinates of the oracle.
        oracle: usize,
    },
    /// The start is not a point.
    #[error("coordinate {coordinate} of the start is {value}")]
    NotFinite {
        /// Which coordinate, from 0.
        coordinate: usize,
        /// Its value.
        value: f64,
    },
    /// The schedule cannot be run.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
}

pub(crate) fn check_start(oracle: &dyn Oracle, start: &[f64]) -> Result<(), StartError> {
    if start.len() != oracle.dim() {
        return Err(StartError::Dimension { start: start.len(), oracle: oracle.dim() });
    }
    match start.iter().position(|x| !x.is_finite()) {
        Some(coordinate) => Err(StartError::NotFinite { coordinate, value: start[coordinate] }),
        None => Ok(()),
    }
}

/// Everything but `advance` is the inner walk's.
macro_rules! inner_walk {
    () => {
        fn state(&self) -> &State {
            self.walk.state()
        }
        fn next_samples(&self) -> u64 {
            self.walk.next_samples()
        }
        fn planned_steps(&self) -> u128 {
            self.walk.planned_steps()
        }
        fn checkpoint(&self) -> Checkpoint {
            self.walk.checkpoint()
        }
        fn point(&self) -> &[f64] {
            self.walk.point()
        }
        fn certification(&self) -> Option<&Progress> {
            self.walk.certification()
        }
        fn has_theorem(&self) -> bool {
            self.walk.has_theorem()
        }
    };
}

/// See [`Walk::until`].
#[derive(Debug)]
pub struct Until<W, F> {
    walk: W,
    stop: F,
    met: bool,
}

impl<W: Walk, F: FnMut(&Record, &State) -> bool> Walk for Until<W, F> {
    fn advance(&mut self) -> Result<Advance, OracleError> {
        if self.met {
            return Ok(Advance::Stop(Stop::Asked));
        }
        let advance = self.walk.advance()?;
        if let Advance::Step(record) = &advance {
            self.met = (self.stop)(record, self.walk.state());
        }
        Ok(advance)
    }
    inner_walk!();
}

/// See [`Walk::every`].
#[derive(Debug)]
pub struct Every<W, F> {
    walk: W,
    n: u64,
    observe: F,
}

impl<W: Walk, F: FnMut(&Record, &State)> Walk for Every<W, F> {
    fn advance(&mut self) -> Result<Advance, OracleError> {
        let step = self.walk.state().step;
        let advance = self.walk.advance()?;
        if let Advance::Step(record) = &advance
            && step.is_multiple_of(self.n)
        {
            (self.observe)(record, self.walk.state());
        }
        Ok(advance)
    }
    inner_walk!();
}

/// See [`Walk::budget`].
#[derive(Debug)]
pub struct Budget<W> {
    walk: W,
    samples: u128,
}

impl<W: Walk> Walk for Budget<W> {
    fn advance(&mut self) -> Result<Advance, OracleError> {
        if self.walk.state().ledger.samples + u128::from(self.walk.next_samples()) > self.samples {
            return Ok(Advance::Stop(Stop::OutOfBudget));
        }
        self.walk.advance()
    }
    inner_walk!();
}

macro_rules! walk_through {
    ($pointer:ty) => {
        impl<W: Walk + ?Sized> Walk for $pointer {
            fn advance(&mut self) -> Result<Advance, OracleError> {
                (**self).advance()
            }
            fn state(&self) -> &State {
                (**self).state()
            }
            fn next_samples(&self) -> u64 {
                (**self).next_samples()
            }
            fn planned_steps(&self) -> u128 {
                (**self).planned_steps()
            }
            fn checkpoint(&self) -> Checkpoint {
                (**self).checkpoint()
            }
            fn point(&self) -> &[f64] {
                (**self).point()
            }
            fn certification(&self) -> Option<&Progress> {
                (**self).certification()
            }
            fn has_theorem(&self) -> bool {
                (**self).has_theorem()
            }
        }
    };
}

walk_through!(&mut W);
walk_through!(Box<W>);
