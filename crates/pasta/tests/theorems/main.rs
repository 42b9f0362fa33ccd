//! The theorems, measured. Each test runs a recipe on a problem that meets its hypotheses, over fixed seeds, and
//! asks that the mean of the promised measure is below the bound at the one-sided level .001, by Student's law, and
//! the same of the cost. Each comes with a run that breaks the promise, and with an instance on which steps five times
//! as long or a tenth of the samples break it: the tests can fail.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;
mod horizon_sgd;
mod lipschitz_convex;
mod mean_square_smooth;
mod pl;
mod smooth;
mod smooth_anchored;
mod smooth_convex;
mod star_convex;
mod support;
mod table;
mod uncertainty;
mod weakly_convex;
