//! How many samples a run takes at once.

use serde::{Deserialize, Serialize};

/// Fixed at the start of a run, by its budget.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Sizes {
    /// Samples of a step of the walk.
    pub(super) batch: u64,
    /// The least that a check, a probe or a first look at a gradient takes.
    pub(super) check: f64,
    /// The first leg of the walk.
    pub(super) leg: f64,
    /// The walk's radius doubles in so many samples at most.
    pub(super) doubles: f64,
}

/// From this budget on everything has its full size; a smaller one takes smaller steps and checks, in proportion.
const FULL: f64 = 16_384.0;

impl Sizes {
    pub(super) fn of(budget: Option<u128>) -> Self {
        let share = budget.map_or(1.0, |budget| (budget as f64 / FULL).min(1.0));
        Self {
            batch: (4.0 * share).ceil().max(1.0) as u64,
            check: (64.0 * share).max(16.0),
            leg: (256.0 * share).max(128.0),
            doubles: (64.0 * share).max(8.0),
        }
    }
}
