//! Stochastic optimisation when the noise grows with the distance.
//!
//! `pasta_opt` minimises f(x) = E f(x, xi) from noisy (sub)gradients whose variance may grow without bound:
//! at most B^2 |x - x0|^2 + b^2, x0 the start. It implements PASTA, one loop of epochs, proximal anchoring,
//! dynamic batches and PAGE variance reduction, with settings for seven classes of functions. Before a run it
//! says what the run will cost and what it promises; during a run it never spends a sample it has not counted.
//!
//! Data flows one way; each module uses only what stands to its left:
//!
//! ```text
//! draws -> oracle -> estimator -+
//!                               +-> algorithm -> walk -> trace
//! recipe -> schedule -----------+
//!
//! oracle -> certificate -> walk (stop rule) -> forecast
//! oracle -> calibrate
//! ```
//!
//! # A dozen lines: your own oracle
//!
//! ```
//! use pasta_opt::prelude::*;
//!
//! /// E (x - xi)^2/2 with xi exponential of mean 1: the minimiser is 1.
//! struct Mean;
//!
//! impl Sampled for Mean {
//!     fn dim(&self) -> usize { 1 }
//!     fn add_gradient(&self, weight: f64, x: &[f64], xi: &mut Stream, out: &mut [f64]) {
//!         out[0] += weight * (x[0] + xi.open_uniform().ln());
//!     }
//! }
//!
//! let oracle = Batched::new(Mean);
//! let recipe =
//!     SmoothConvex { smoothness: 1.0, distance: 1.0, growth: 0.0, floor: 1.0, variance: None, target: 0.01 };
//! let plan = recipe.plan()?;
//! println!("at most {} samples", plan.cost.samples);
//! let end = Pasta::start(&oracle, plan.schedule, &[0.0], 1)?.finish()?;
//! assert!((end.point[0] - 1.0).abs() < 0.2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod algorithm;
pub mod baseline;
pub mod bounds;
pub mod calibrate;
pub mod certificate;
pub mod checkpoint;
pub mod draws;
pub mod estimator;
mod exact;
pub mod forecast;
pub mod hard;
mod kernels;
mod moments;
pub mod objective;
pub mod oracle;
pub mod prelude;
pub mod problems;
pub mod recipe;
pub mod schedule;
pub mod state;
pub mod trace;
pub mod walk;
