//! Stochastic optimisation when the noise grows with the distance.
//!
//! `pasta_opt` minimises f(x) = E f(x, xi) from noisy (sub)gradients whose variance may grow without bound:
//! at most B^2 |x - x0|^2 + b^2, x0 the start. It implements PASTA, one loop of epochs, proximal anchoring,
//! dynamic batches and PAGE variance reduction, with settings for seven classes of functions. Before a run it
//! says what the run will cost and what it promises; during a run it never spends a sample it has not counted.
//!
//! Five names lead to everything else:
//!
//! 1. [`Sampled`] is what you write: the gradient of one sample at a point.
//! 2. A [`Gate`] asks it, with a seed and a budget, and counts every sample.
//! 3. [`Auto`] is a run without constants. (If you know constants, a [`Recipe`] plans a run that a theorem
//!    covers, and [`Pasta`] runs the plan.)
//! 4. [`Walk`] is what all runs can do: `certified` makes them stop on a certificate, `finish` runs them to their end.
//! 5. A [`Certificate`] says how small the gradient is, with a confidence, and under which assumption.
//!
//! # Your own oracle, to a certified point
//!
//! ```
//! use pasta_opt::prelude::*;
//!
//! /// E (x - xi)^2/2 with xi exponential of mean 1: the minimiser is 1.
//! struct Mean;
//!
//! impl Sampled for Mean {
//!     fn dim(&self) -> usize { 1 }
//!     fn identity(&self) -> String { "mean of an exponential law".into() }
//!     fn add_gradient(&self, weight: f64, x: &[f64], xi: &mut Stream, out: &mut [f64]) -> Result<(), OracleError> {
//!         out[0] += weight * (x[0] + xi.open_uniform().ln());
//!         Ok(())
//!     }
//! }
//!
//! let mut gate = Gate::new(Batched::new(Mean), 1).with_budget(1_000_000);
//! // Stop when |grad f| <= 0.1 is certified, if the noise has a kurtosis of at most 100 (an exponential law has 9).
//! let rule = StopRule { target: 0.1, delta: 0.05, basis: Basis::Kurtosis(100.0), share: 0.5 };
//! let end = Auto::start(&gate, &[0.0], Some(0.1))?.certified(&gate, rule)?.finish(&mut gate)?;
//! assert_eq!(end.stop, Stop::Certified);
//! assert!((end.point[0] - 1.0).abs() <= 0.1); // grad f = x - 1
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The same with constants that are known, and a promise before the first sample:
//!
//! ```
//! # use pasta_opt::prelude::*;
//! # struct Mean;
//! # impl Sampled for Mean {
//! #     fn dim(&self) -> usize { 1 }
//! #     fn identity(&self) -> String { "mean of an exponential law".into() }
//! #     fn add_gradient(&self, weight: f64, x: &[f64], xi: &mut Stream, out: &mut [f64]) -> Result<(), OracleError> {
//! #         out[0] += weight * (x[0] + xi.open_uniform().ln());
//! #         Ok(())
//! #     }
//! # }
//! let mut gate = Gate::new(Batched::new(Mean), 1);
//! let recipe =
//!     SmoothConvex { smoothness: 1.0, distance: 1.0, growth: 0.0, floor: 1.0, variance: None, target: 0.01 };
//! let plan = recipe.plan()?;
//! println!("at most {} samples", plan.cost.samples);
//! let end = Pasta::start(&gate, plan.schedule, &[0.0])?.finish(&mut gate)?;
//! assert!((end.point[0] - 1.0).abs() < 0.2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The order of the modules
//!
//! Data flows one way: each module uses only those above it. (A test reads this list.)
//!
//! ```text
//! kernels      the vector loops
//! exact        exact arithmetic for counts
//! digest       SHA-256
//! draws        randomness by address
//! moments      mean and variance of vectors
//! objective    what a problem knows about itself
//! problems     problems with known constants
//! oracle       one question, one answer, one price
//! term         constraints and penalties beside f
//! ledger       what was asked, by what it was for
//! checkpoint   named sections of plain data and vectors
//! stop         why a run ended
//! gate         the only way to an oracle
//! check        whether an oracle can be believed
//! schedule     the settings of Algorithm 1, plain data
//! recipe       one file per theorem: constants in, schedule and promise out
//! table        rows of a table with a loss
//! bounds       what no zero-respecting method can beat
//! hard         the instances that show it
//! estimator    how samples become g_t
//! calibrate    what samples say about constants
//! certificate  what fresh samples say about a point
//! target       how small the gradient shall be
//! walk         what all methods have in common, and adaptors
//! state        everything that changes from step to step
//! algorithm    Algorithm 1
//! baseline     the methods that people use today
//! auto         a method without constants
//! universal    SGD with every step size at once
//! newton       second-order steps on a table
//! kinks        second-order steps where a loss has kinks
//! proximal     second-order steps with penalties and bounds on weights
//! one_pass     rows that go by once
//! method       the table of all methods
//! forecast     what a certified run will cost
//! trace        the events of a run, line by line
//! run          one run, event by event, to its end
//! fit          a linear model from a table, to an exact certificate
//! score        how well a model does on rows
//! conformal    intervals for single predictions
//! cross        cross-validation
//! inference    standard errors and what a fit explains
//! verify       a certificate made again, from what a result says
//! prelude      the names that most programs need
//! ```

pub mod calibrate;
pub mod certificate;
pub mod check;
pub mod fit;
pub mod gate;
pub mod method;
pub mod oracle;
pub mod prelude;
pub mod problems;
pub mod recipe;
pub mod run;
pub mod table;
pub mod term;

/// How good a fitted model is: scores, cross-validation, standard errors, and intervals for single predictions.
pub mod assess {
    pub use crate::conformal::{Conformal, ConformalError};
    pub use crate::cross::{CrossValidation, Tried};
    pub use crate::inference::{
        Caution, Coefficient, Explained, Law, Omitted, Resamples, StdErrors, Summary, Test,
    };
    pub use crate::score::{Bin, Roc, Score};
}

mod algorithm;
mod auto;
mod exact;
mod kernels;
mod ledger;
mod moments;
mod schedule;
mod target;

// Public for the program, Python and the laboratory alone: no promise is made about what is only here.
#[doc(hidden)]
pub mod baseline;
#[doc(hidden)]
pub mod bounds;
#[doc(hidden)]
pub mod checkpoint;
#[doc(hidden)]
pub mod conformal;
#[doc(hidden)]
pub mod cross;
#[doc(hidden)]
pub mod digest;
#[doc(hidden)]
pub mod draws;
#[doc(hidden)]
pub mod estimator;
#[doc(hidden)]
pub mod forecast;
#[doc(hidden)]
pub mod hard;
#[doc(hidden)]
pub mod inference;
#[doc(hidden)]
pub mod kinks;
#[doc(hidden)]
pub mod newton;
#[doc(hidden)]
pub mod objective;
#[doc(hidden)]
pub mod one_pass;
#[doc(hidden)]
pub mod proximal;
#[doc(hidden)]
pub mod score;
#[doc(hidden)]
pub mod state;
#[doc(hidden)]
pub mod stop;
#[doc(hidden)]
pub mod trace;
#[doc(hidden)]
pub mod universal;
#[doc(hidden)]
pub mod verify;
#[doc(hidden)]
pub mod walk;

pub use algorithm::Pasta;
pub use auto::Auto;
pub use certificate::{Basis, Certificate};
pub use checkpoint::Checkpoint;
pub use draws::Stream;
pub use gate::Gate;
pub use ledger::Ledger;
pub use method::Method;
pub use objective::Objective;
pub use oracle::{About, Batched, Oracle, OracleError, Sampled};
pub use recipe::{Plan, Recipe};
pub use run::{Event, Problem, Report, Run, Task};
pub use stop::Stop;
pub use table::{Linear, Loss, Table};
pub use term::Term;
pub use verify::verify;
pub use walk::{StopRule, Walk};

/// The examples of the package's readme run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
