//! Walks: any method that moves a point by asking a gate, and adaptors over all of them.
//!
//! A walk is state without an oracle: it can be moved to another thread, saved, and written outside this crate.
//!
//! ```
//! use pasta_opt::prelude::*;
//! use pasta_opt::problems::SineBowl;
//!
//! let noise = Noise { growth: 0.0, floor: 1.0, tail: Tail::Gaussian };
//! let oracle = Noisy::new(Box::new(SineBowl { dimension: 1 }), noise, vec![1.2])?;
//! let mut gate = Gate::new(oracle, 7).with_budget(500);
//! let rule = Rule::Sgd { eta: Sequence::Constant(0.1) };
//! let sgd = Baseline::start(&gate, Settings { rule, steps: 1_000, batch: 1 }, &[1.2])?;
//! let mut seen = 0;
//! let end = sgd
//!     .every(100, |_, _, _| seen += 1)
//!     .until(|_, view| view.x[0].abs() < 1e-3)
//!     .finish(&mut gate)?;
//! assert!(end.ledger.samples() <= 500 && seen <= 5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod certified;
mod fitted;
mod hedged;

pub use certified::{Candidate, CertificateLog, Certified, Glimpse, StopRule};
pub(crate) use certified::{LIKELY, Seen, Sighting};
pub use fitted::{Ending, Exactly, FitLog, Verdict as FitVerdict};
pub use hedged::Hedged;

use crate::certificate::{Certificate, ClaimError};
use crate::check;
use crate::checkpoint::{Checkpoint, CheckpointError, Saver};
use crate::estimator::Kind;
use crate::gate::{Gate, Halt};
use crate::ledger::Ledger;
use crate::stop::Stop;

/// A method that asks a gate and moves.
///
/// One outside this crate is a state, a step and a section of the checkpoint:
///
/// ```
/// use pasta_opt::draws::Role;
/// use pasta_opt::estimator::Kind;
/// use pasta_opt::oracle::{Answer, Request};
/// use pasta_opt::prelude::*;
/// use pasta_opt::problems::SineBowl;
/// use pasta_opt::walk::{Record, View};
///
/// /// Steps of fixed length against the sign of one sample, for ever.
/// struct SignDescent { step: u64, start: [f64; 1], x: [f64; 1] }
///
/// impl Walk for SignDescent {
///     fn advance(&mut self, gate: &mut Gate) -> Result<Advance, Halt> {
///         let mut g = [0.0];
///         let batch = gate.batch(Role::Large, self.step, 1);
///         gate.ask(Request::sums(batch, &[&self.x]), &mut Answer::new(&mut g))?;
///         self.x[0] -= 0.01 * g[0].signum();
///         self.step += 1;
///         let distance2 = (self.x[0] - self.start[0]).powi(2);
///         Ok(Advance::Step(Record { epoch: 1, t: self.step - 1, kind: Kind::Fresh, n: 1, distance2 }))
///     }
///     fn view(&self) -> View<'_> {
///         View::new(self.step, &self.start, &self.x)
///     }
///     fn save<'a>(&'a self, to: &mut Saver<'a>) {
///         to.put("sign-descent", &self.step, [&self.start[..], &self.x[..]]);
///     }
/// }
///
/// let noise = Noise { growth: 0.0, floor: 1.0, tail: Tail::Gaussian };
/// let oracle = Noisy::new(Box::new(SineBowl { dimension: 1 }), noise, vec![1.2])?;
/// let mut gate = Gate::new(oracle, 1).with_budget(1_000);
/// let end = SignDescent { step: 0, start: [1.2], x: [1.2] }.finish(&mut gate)?;
/// assert_eq!((end.stop, end.steps), (Stop::OutOfBudget, 1_000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Walk: Send {
    /// Takes one step, or says why there is none. After a stop it keeps giving the same answer; after a halt it stands where
    /// it stood, and can be asked again.
    fn advance(&mut self, gate: &mut Gate) -> Result<Advance, Halt>;

    /// Where the walk stands.
    fn view(&self) -> View<'_>;

    /// Writes what it needs to go on later, bit for bit, into a section of its own.
    fn save<'a>(&'a self, to: &mut Saver<'a>);

    /// Stops when |grad f| <= target is certified by fresh samples, and tries once more at the end. Tried when a few samples
    /// suggest that it will succeed. Certificates are counted, and bounded by the budget, like everything else behind the
    /// gate.
    ///
    /// ```
    /// use pasta_opt::certificate::Basis;
    /// use pasta_opt::prelude::*;
    /// use pasta_opt::problems::SineBowl;
    ///
    /// let noise = Noise { growth: 9.0, floor: 1.0, tail: Tail::Gaussian };
    /// let oracle = Noisy::new(Box::new(SineBowl { dimension: 1 }), noise, vec![1.2])?;
    /// let recipe = Smooth { smoothness: 3.0, gap: 1.6, growth: 9.0, floor: 1.0, variance: None, target: 0.1 };
    /// let basis = Basis::Growth { growth: 9.0, floor: 1.0, distance: 0.0 };
    /// let rule = StopRule { target: 0.1, delta: 0.05, basis, share: 0.5 };
    /// let mut gate = Gate::new(oracle, 1);
    /// let walk = Pasta::start(&gate, recipe.plan()?.schedule, &[1.2])?;
    /// let end = walk.certified(&gate, rule)?.finish(&mut gate)?;
    /// assert_eq!(end.stop, Stop::Certified);
    /// assert!(end.ledger.samples() < 10_000_000); // the recipe's worst case is 45 million
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn certified(self, gate: &Gate, rule: StopRule) -> Result<Certified<Self>, ClaimError>
    where
        Self: Sized,
    {
        Certified::start(self, gate, rule)
    }

    /// The same for a walk that was taken from a checkpoint, with the certificates that it had come to.
    fn certified_again(
        self,
        gate: &Gate,
        rule: StopRule,
        checkpoint: &mut Checkpoint,
    ) -> Result<Certified<Self>, CheckpointError>
    where
        Self: Sized,
    {
        Certified::resume(self, gate, rule, checkpoint)
    }

    /// Stops after the first step for which `stop` is true.
    fn until<F>(self, stop: F) -> Until<Self, F>
    where
        Self: Sized,
        F: FnMut(&Record, &View<'_>) -> bool + Send,
    {
        Until { walk: self, stop, met: false }
    }

    /// Shows every step to `observe`, with where the walk then stands and what was asked so far.
    fn tee<F>(self, observe: F) -> Every<Self, F>
    where
        Self: Sized,
        F: FnMut(&Record, &View<'_>, &Ledger) + Send,
    {
        self.every(1, observe)
    }

    /// Shows the steps 0, n, 2n, .. of the run to `observe`.
    fn every<F>(self, n: u64, observe: F) -> Every<Self, F>
    where
        Self: Sized,
        F: FnMut(&Record, &View<'_>, &Ledger) + Send,
    {
        Every { walk: self, n: n.max(1), observe }
    }

    /// Walks to the end. Running out of budget is an end, and so is being told to stop; a failing oracle is an error, and so is one that the
    /// [check](crate::check::before_run) before the first step does not believe.
    fn finish(mut self, gate: &mut Gate) -> Result<Finished, Halt>
    where
        Self: Sized,
    {
        let mut believed = check::before_run(gate, self.view().start).map(drop);
        loop {
            let advance = std::mem::replace(&mut believed, Ok(())).and_then(|()| self.advance(gate));
            let stop = match advance {
                Ok(Advance::Stop(stop)) => stop,
                Ok(_) => continue,
                Err(halt) => halt.stop().ok_or(halt)?,
            };
            let view = self.view();
            return Ok(Finished {
                stop,
                point: view.point.to_vec(),
                last: view.x.to_vec(),
                ledger: gate.ledger().clone(),
                steps: view.step,
                certification: view.certification.cloned(),
            });
        }
    }
}

/// A look at a walk: its step, its points and its promise.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct View<'w> {
    /// s: the epoch, from 1.
    pub epoch: u64,
    /// t: the step of the epoch, from 0.
    pub t: u64,
    /// Steps taken.
    pub step: u64,
    /// How many steps the walk has planned in all, if it has a plan.
    pub planned_steps: Option<u128>,
    /// x0: where the walk started.
    pub start: &'w [f64],
    /// x_t.
    pub x: &'w [f64],
    /// |x_t - x0|^2.
    pub distance2: f64,
    /// The point that the walk hands out, were it to end here.
    pub point: &'w [f64],
    /// True if a theorem may speak of that point at the planned end.
    pub promised: bool,
    /// How many steps led to that point, where the theorem's point is an iterate drawn at random.
    pub drawn_at: Option<u64>,
    /// How the walk ended by itself, if it did.
    pub ended: Option<Stop>,
    /// Samples of a step that was put aside: they will be counted once it goes on. Those of [`Gate::under_way`] come on top.
    pub under_way: u128,
    /// The walk's certificates, where it tries any.
    pub certification: Option<&'w CertificateLog>,
    /// f and |grad f| at that point, where the walk had them from a pass over all rows of a table.
    pub exact: Option<(f64, f64)>,
    /// By how much f can be above its least value there, where the walk had that from passes over all rows: see [`crate::kinks`].
    pub gap: Option<f64>,
    /// The coordinates of a score that depend on others before them and are left out, where the walk has looked: see [`crate::newton`].
    pub left_out: Option<&'w [usize]>,
    /// Where it began and what it aims at, where the walk is a fit to a table, and has begun.
    pub fit: Option<&'w FitLog>,
}

impl<'w> View<'w> {
    /// A walk without plan and promise that stands at x and would hand it out.
    pub fn new(step: u64, start: &'w [f64], x: &'w [f64]) -> Self {
        Self {
            epoch: 1,
            t: step,
            step,
            planned_steps: None,
            start,
            x,
            distance2: crate::kernels::squared_distance(x, start),
            point: x,
            promised: false,
            drawn_at: None,
            ended: None,
            under_way: 0,
            certification: None,
            exact: None,
            gap: None,
            left_out: None,
            fit: None,
        }
    }
}

/// What one call of [`Walk::advance`] did.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Advance {
    /// A step was taken.
    Step(Record),
    /// No step, but samples for a certificate, or for a look whether to try one.
    Checked,
    /// An attempt at a certificate is planned, and none of its samples is drawn yet. Whoever keeps checkpoints keeps one here:
    /// what is resumed from an older one, under another budget, would make another attempt with the same samples and the
    /// same share of delta.
    Planned,
    /// A certificate came to its end, successful or not.
    Tried(Certificate),
    /// A long step was put aside, because [the gate was told to pause](Gate::with_pause): it goes on with the next call, and a checkpoint taken here
    /// has what it was answered so far.
    Paused,
    /// There is no further step.
    Stop(Stop),
}

/// One step: its number, its kind, its samples and where it led.
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

/// The result of a run: its point, why it stopped, and what it cost.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Finished {
    /// Why it ended.
    pub stop: Stop,
    /// The point that carries the guarantee, if the stop leaves one.
    pub point: Vec<f64>,
    /// The last iterate.
    pub last: Vec<f64>,
    /// What was asked of the oracle, by what it was for.
    pub ledger: Ledger,
    /// Steps taken.
    pub steps: u64,
    /// The walk's certificates, where it tried any.
    pub certification: Option<CertificateLog>,
}

/// Everything but `advance` is the inner walk's.
macro_rules! inner_walk {
    () => {
        fn view(&self) -> View<'_> {
            self.walk.view()
        }
        fn save<'a>(&'a self, to: &mut Saver<'a>) {
            self.walk.save(to);
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

impl<W: Walk, F: FnMut(&Record, &View<'_>) -> bool + Send> Walk for Until<W, F> {
    fn advance(&mut self, gate: &mut Gate) -> Result<Advance, Halt> {
        if self.met {
            return Ok(Advance::Stop(Stop::Asked));
        }
        let advance = self.walk.advance(gate)?;
        if let Advance::Step(record) = &advance {
            self.met = (self.stop)(record, &self.walk.view());
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

impl<W: Walk, F: FnMut(&Record, &View<'_>, &Ledger) + Send> Walk for Every<W, F> {
    fn advance(&mut self, gate: &mut Gate) -> Result<Advance, Halt> {
        let step = self.walk.view().step;
        let advance = self.walk.advance(gate)?;
        if let Advance::Step(record) = &advance
            && step.is_multiple_of(self.n)
        {
            (self.observe)(record, &self.walk.view(), gate.ledger());
        }
        Ok(advance)
    }
    inner_walk!();
}

macro_rules! walk_through {
    ($pointer:ty) => {
        impl<W: Walk + ?Sized> Walk for $pointer {
            fn advance(&mut self, gate: &mut Gate) -> Result<Advance, Halt> {
                (**self).advance(gate)
            }
            fn view(&self) -> View<'_> {
                (**self).view()
            }
            fn save<'a>(&'a self, to: &mut Saver<'a>) {
                (**self).save(to);
            }
        }
    };
}

walk_through!(&mut W);
walk_through!(Box<W>);
