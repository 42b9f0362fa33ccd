//! Many processes that work on one run: the same bits on any number of them.
//!
//! Every member of a [`World`] runs the same walk in lock step, since all randomness has addresses. Only the oracle's answers
//! are shared: [`Spread`] wraps any oracle, each member sums some subtrees of a batch's tree of additions, and all get the sum
//! that one process alone would get, bit for bit. With the feature `mpi` the members are processes of MPI, on one machine or
//! many; without it the crate needs no MPI, and members are threads that talk over [`Local`] wires.
//!
//! ```
//! use std::thread;
//!
//! use pasta_mpi::{Local, Sharing, Spread, World};
//! use pasta_opt::draws::Role;
//! use pasta_opt::oracle::{Answer, Request};
//! use pasta_opt::prelude::*;
//!
//! /// E (x - xi)^2/2 with xi exponential of mean 1.
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
//! let sum = |mut gate: Gate| {
//!     let mut sum = [0.0];
//!     let batch = gate.batch(Role::Large, 0, 10_000);
//!     gate.ask(Request::sums(batch, &[&[0.5]]), &mut Answer::new(&mut sum)).map(|_| sum[0].to_bits())
//! };
//! let alone = sum(Gate::new(Batched::new(Mean), 1))?;
//! let members: Vec<_> = Local::wires(3).into_iter().map(|wire| thread::spawn(move || {
//!     let world = World::new(wire, Sharing::Always);
//!     sum(Gate::new(Spread::new(Batched::new(Mean), &world), 1))
//! })).collect();
//! for member in members {
//!     assert_eq!(member.join().expect("no panic")?, alone);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod message;
#[cfg(feature = "mpi")]
mod mpi;
mod spread;
mod tree;
mod wire;
mod world;

#[cfg(feature = "mpi")]
pub use crate::mpi::{Mpi, MpiError, MpiWire};
pub use spread::Spread;
pub use wire::{Gone, Local, Wire};
pub use world::{Sharing, Tally, World};
