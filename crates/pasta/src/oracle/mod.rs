//! Oracles: one question, one answer, one price.
//!
//! A [`Request`] names samples (a [`Batch`], or everything there is), one or several points, and whether sums or
//! differences are wanted. The [`Answer`] holds sums, not means: sums compose over threads and machines and are divided
//! once. A batch is an address and a range, never data, so whoever answers recomputes its samples and any number of
//! threads gives the same bits.

mod batch;
mod batched;
mod error;
mod noisy;
mod team;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

pub use batch::Batch;
pub use batched::{Batched, Sampled};
pub use error::{ErrorKind, OracleError};
pub use noisy::{BatchMode, Noise, NoiseError, Noisy, Tail};
pub use team::{PartOfRows, PartsOfSum, Team};

use crate::draws::Role;

/// What an oracle says about itself, once and for all.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "five properties that do not depend on one another")]
pub struct About {
    /// The number of coordinates.
    pub dim: usize,
    /// What it is, parameters included. A checkpoint is only resumed on an oracle of the same identity.
    pub identity: String,
    /// Where its gradients come from.
    pub source: Source,
    /// Whether it can give the loss f(x, xi) of a sample beside its gradient.
    pub losses: bool,
    /// Whether it can evaluate one sample at several points. Without that there are no differences, so no PAGE.
    pub shared: bool,
    /// True if the gradient of a sample is that of its loss. Not so of likelihood ratios and other gradients that belong to the losses in the mean alone: a
    /// [check](crate::check) then compares means, and not samples.
    pub pathwise: bool,
    /// True if the sum over a batch is the sum of its samples asked for one by one. Not so of an oracle that draws the sum of a batch, or of a block,
    /// at once: its samples have the right law, but belong to the batch.
    pub additive: bool,
    /// True if its answers were shown to be right once and for all, so that no run need [check](crate::check) them, as the tests of this library do for
    /// its own oracles. A wrapper that changes the answers of one says `false`.
    pub trusted: bool,
}

impl About {
    /// A stream of samples without losses, each of which can be evaluated at several points.
    pub fn stream(dim: usize, identity: impl Into<String>) -> Self {
        Self {
            dim,
            identity: identity.into(),
            source: Source::Stream,
            losses: false,
            shared: true,
            pathwise: true,
            additive: true,
            trusted: false,
        }
    }

    /// What the exact gradient costs, in samples; `None` where there are only samples.
    pub fn full_pass(&self) -> Option<u64> {
        match self.source {
            Source::Stream => None,
            Source::Table { rows } => Some(rows),
            Source::Formula => Some(0),
        }
    }
}

/// Where an oracle's gradients come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Samples, as many as are asked for, and nothing else.
    Stream,
    /// The rows of a finite table: reading all of them gives the exact gradient.
    Table {
        /// How many there are.
        rows: u64,
    },
    /// Samples around a known formula, which gives the exact gradient free of charge.
    Formula,
}

/// Which samples are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Draw {
    /// Those of a batch.
    Batch(Batch),
    /// All that there are: the exact gradient (and loss) as a mean, for an oracle with a [full pass](About::full_pass).
    Everything(Role),
}

impl Draw {
    /// What the samples are for.
    #[inline]
    pub fn role(&self) -> Role {
        match self {
            Self::Batch(batch) => batch.role,
            Self::Everything(role) => *role,
        }
    }
}

/// Whether sums at each point are wanted, or sums of differences to the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The sum of g(x, xi) at each point: as many rows as points.
    Sums,
    /// The sum of g(x, xi) - g(y, xi), the same xi at both, for y the last point and x each of the others.
    Differences,
}

/// A question to an oracle.
#[derive(Clone)]
pub struct Request<'a> {
    /// Which samples.
    pub draw: Draw,
    /// Where, the same samples at all points.
    pub points: &'a [&'a [f64]],
    /// Sums or differences.
    pub form: Form,
    /// Whether the sums of the losses at all points are wanted too.
    pub losses: bool,
    /// All points are zero from this coordinate on.
    pub active: usize,
    /// Set when the answer is no longer wanted; see [`interrupted`](Self::interrupted).
    pub stop: Option<&'a AtomicBool>,
    /// Who shares the work; `None` where this process is to answer alone.
    pub team: Option<&'a dyn Team>,
}

impl<'a> Request<'a> {
    /// The sums of a batch at these points.
    #[inline]
    pub fn sums(batch: Batch, points: &'a [&'a [f64]]) -> Self {
        Self::new(Draw::Batch(batch), points, Form::Sums)
    }

    /// The sums of differences to the last of these points.
    #[inline]
    pub fn differences(batch: Batch, points: &'a [&'a [f64]]) -> Self {
        Self::new(Draw::Batch(batch), points, Form::Differences)
    }

    /// The exact gradients at these points.
    pub fn everything(role: Role, points: &'a [&'a [f64]]) -> Self {
        Self::new(Draw::Everything(role), points, Form::Sums)
    }

    #[inline]
    fn new(draw: Draw, points: &'a [&'a [f64]], form: Form) -> Self {
        Self { draw, points, form, losses: false, active: usize::MAX, stop: None, team: None }
    }

    /// How many rows the answer has.
    #[inline]
    pub fn rows(&self) -> usize {
        match self.form {
            Form::Sums => self.points.len(),
            Form::Differences => self.points.len() - 1,
        }
    }

    /// The point that differences are taken to.
    pub fn base(&self) -> &'a [f64] {
        self.points[self.points.len() - 1]
    }

    /// What it costs an oracle that draws each sample afresh: the [price](Oracle::price) of most.
    pub fn usual_price(&self, about: &About) -> Charge {
        let samples = match &self.draw {
            Draw::Batch(batch) => batch.count(),
            Draw::Everything(_) => about.full_pass().unwrap_or(0),
        };
        let evaluations = u128::from(samples) * self.points.len() as u128;
        let exact = matches!(self.draw, Draw::Everything(_));
        Charge { samples: u128::from(samples), evaluations, exact }
    }

    /// An error as soon as the answer is no longer wanted. To be asked every millisecond or so of a long computation.
    #[inline]
    pub fn interrupted(&self) -> Result<(), OracleError> {
        match self.stop {
            Some(stop) if stop.load(Ordering::Relaxed) => Err(OracleError::interrupted()),
            _ => Ok(()),
        }
    }

    /// Refuses a question that this oracle cannot be asked, or an answer of the wrong shape.
    #[inline]
    pub(crate) fn check(&self, about: &About, answer: &Answer<'_>) -> Result<(), OracleError> {
        let fits = !self.points.is_empty()
            && self.points.iter().all(|x| x.len() == about.dim)
            && answer.gradients.len() == self.rows() * about.dim
            && (!self.losses || answer.losses.len() == self.points.len());
        let drawn = match &self.draw {
            Draw::Batch(batch) => batch.count() > 0,
            Draw::Everything(_) => about.source != Source::Stream,
        };
        let possible = drawn && (self.points.len() == 1 || about.shared) && (!self.losses || about.losses);
        if fits && possible { Ok(()) } else { Err(self.refusal(about, answer)) }
    }

    #[cold]
    fn refusal(&self, about: &About, answer: &Answer<'_>) -> OracleError {
        let dim = about.dim;
        if let Some(x) = self.points.iter().find(|x| x.len() != dim) {
            return OracleError::new(format!("it has {dim} coordinates, but was asked at {}", x.len()));
        }
        OracleError::new(match &self.draw {
            _ if self.points.is_empty() => "it was asked at no point".to_owned(),
            Draw::Everything(_) if about.source == Source::Stream => {
                "it does not know its gradient, only samples of it".to_owned()
            }
            Draw::Batch(batch) if batch.count() == 0 => "it was asked for no samples".to_owned(),
            _ if self.losses && !about.losses => "it gives no losses".to_owned(),
            _ if self.points.len() > 1 && !about.shared => {
                "it cannot evaluate one sample at several points".to_owned()
            }
            _ if self.losses && answer.losses.len() != self.points.len() => format!(
                "the answer has room for {} losses, but needs {}",
                answer.losses.len(),
                self.points.len()
            ),
            _ => format!(
                "the answer has room for {} numbers, but needs {}",
                answer.gradients.len(),
                self.rows() * dim
            ),
        })
    }
}

/// Where an oracle writes: up to `support` everything is overwritten.
#[derive(Debug)]
pub struct Answer<'a> {
    /// A row of `dim` numbers for each point, or for each but the last if differences are wanted.
    pub gradients: &'a mut [f64],
    /// A number for each point, if losses are wanted.
    pub losses: &'a mut [f64],
    /// Only the first so many coordinates of each row were written: the others are zero, and were left as they were. Never
    /// below the request's `active`, and the whole dimension unless the oracle knows better.
    pub support: usize,
}

impl<'a> Answer<'a> {
    /// Room for gradients and no losses.
    #[inline]
    pub fn new(gradients: &'a mut [f64]) -> Self {
        Self { gradients, losses: &mut [], support: usize::MAX }
    }
}

/// What an answer cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Charge {
    /// Samples drawn, or rows read.
    pub samples: u128,
    /// Stochastic gradients evaluated: a sample at two points is two.
    pub evaluations: u128,
    /// Whether the answer has no noise, because it rests on all samples that there are.
    pub exact: bool,
}

/// A source of stochastic (sub)gradients of f.
///
/// Implement [`Sampled`] instead if you have one sample at a time: [`Batched`] makes an oracle of it. Nobody calls an
/// oracle but a [`Gate`](crate::gate::Gate), which counts.
///
/// A wrapper forwards two methods (three if the inner oracle has prices of its own) and loses nothing:
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// use pasta_opt::oracle::{About, Answer, Charge, Oracle, OracleError, Request};
///
/// struct Counted<O> { inner: O, asked: AtomicU64 }
///
/// impl<O: Oracle> Oracle for Counted<O> {
///     fn about(&self) -> &About { self.inner.about() }
///     fn price(&self, request: &Request<'_>) -> Charge { self.inner.price(request) }
///     fn answer(&self, request: &Request<'_>, answer: &mut Answer<'_>) -> Result<Charge, OracleError> {
///         self.asked.fetch_add(1, Ordering::Relaxed);
///         self.inner.answer(request, answer)
///     }
/// }
///
/// # use pasta_opt::{oracle::{Noise, Noisy, Tail}, prelude::*, problems::SineBowl};
/// # let noise = Noise { growth: 1.0, floor: 1.0, tail: Tail::Gaussian };
/// # let noisy = Noisy::new(Box::new(SineBowl { dimension: 2 }), noise, vec![1.0, 1.0])?;
/// let mut gate = Gate::new(Counted { inner: noisy, asked: AtomicU64::new(0) }, 1).with_budget(1_000);
/// let end = Auto::start(&gate, &[1.0, 1.0], None)?.finish(&mut gate)?;
/// assert_eq!(end.stop, Stop::PlannedEnd);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Oracle: Send + Sync {
    /// What it is.
    fn about(&self) -> &About;

    /// What an answer will cost, before anything is drawn. An answer never costs more.
    fn price(&self, request: &Request<'_>) -> Charge {
        request.usual_price(self.about())
    }

    /// Answers, and says what it cost. The shapes were checked: points and rows have `dim` coordinates, and nothing is asked
    /// that [`About`] rules out.
    fn answer(&self, request: &Request<'_>, answer: &mut Answer<'_>) -> Result<Charge, OracleError>;

    /// The size of a leaf, if the sum over every batch is, bit for bit, the sum down [`Batch::halves`] of leaves of this size. A long
    /// question can then be asked in parts, so that an interrupted step keeps those that were answered.
    fn leaf(&self) -> Option<u64> {
        None
    }

    /// Who shares the work on its answers, where that is not this process alone. A wrapper that does not forward it is
    /// answered by every member alone: the same bits, without help.
    fn team(&self) -> Option<&dyn Team> {
        None
    }
}

impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("draw", &self.draw)
            .field("points", &self.points)
            .field("form", &self.form)
            .field("losses", &self.losses)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for dyn Oracle + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.about().identity)
    }
}

macro_rules! oracle_through {
    ($pointer:ty) => {
        impl<O: Oracle + ?Sized> Oracle for $pointer {
            fn about(&self) -> &About {
                (**self).about()
            }
            fn price(&self, request: &Request<'_>) -> Charge {
                (**self).price(request)
            }
            fn answer(&self, request: &Request<'_>, answer: &mut Answer<'_>) -> Result<Charge, OracleError> {
                (**self).answer(request, answer)
            }
            fn leaf(&self) -> Option<u64> {
                (**self).leaf()
            }
            fn team(&self) -> Option<&dyn Team> {
                (**self).team()
            }
        }
    };
}

oracle_through!(&O);
oracle_through!(Box<O>);
oracle_through!(std::sync::Arc<O>);
