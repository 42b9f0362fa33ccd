//! Rows of a table with a loss: an oracle like any other.
//!
//! f(x) is the (weighted) mean over the rows of a [`Loss`] of a linear model, plus a penalty. One sample is one row, drawn
//! with replacement in proportion to its weight, so the stochastic gradient has no bias. A batch never reads a row twice: it
//! draws how often each row occurs. As soon as a batch has as many samples as the table has rows, all rows are read instead,
//! and the answer has no noise.
//!
//! ```
//! use std::sync::Arc;
//!
//! use pasta_opt::draws::Role;
//! use pasta_opt::gate::Gate;
//! use pasta_opt::table::{Dense, Design, Features, Linear, Loss, Table};
//!
//! // y = 3 a - 1 at a = 0, 1, 2, 3.
//! let features = Dense { rows: 4, columns: 1, values: vec![0.0, 1.0, 2.0, 3.0].into() };
//! let labels = Arc::new(vec![-1.0, 2.0, 5.0, 8.0]);
//! let table = Table::new(Features::Dense(features), labels, None, vec!["a".into()])?;
//! let problem = Linear::new(Arc::new(table), Loss::LeastSquares, Design { standardise: false, ..Design::default() })?;
//! let mut gate = Gate::new(problem, 1);
//! let mut gradient = [0.0; 2];
//! let charge = gate.exact(Role::Large, &[3.0, -1.0], &mut gradient)?;
//! assert_eq!((gradient, charge.samples, charge.exact), ([0.0, 0.0], 4, true));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod constant;
mod constants;
mod data;
mod design;
mod duality;
mod error;
mod hessian;
mod information;
mod lanczos;
mod linear;
mod loss;
mod matrix;
mod offset;
mod precise;
mod range;
mod sampling;
mod slopes;
mod tails;
mod triangle;

pub use constants::{Proved, ProvedConstant};
pub use data::{Dense, Features, Shared, Sparse, Table, Values, room, shared};
pub(crate) use design::monomials;
pub use design::{Design, Model, Scaling};
pub use error::TableError;
pub(crate) use hessian::Columns;
pub use hessian::{Factor, Hessian, MOST_FULL};
pub(crate) use information::Information;
pub use linear::{Linear, Parts};
pub use loss::{Bounds, Class, Kink, LOSSES, Labels, Loss, LossRow, Parameter, Range};
pub use range::Outside;
pub(crate) use slopes::Slopes;
pub(crate) use tails::Tails;
