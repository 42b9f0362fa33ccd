//! How many samples a run takes at once.

use serde::{Deserialize, Serialize};

use crate::gate::is_zero;

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
    /// What a round costs, in samples; the batch then grows with the run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) round_cost: u64,
}

/// From this budget on everything has its full size; a smaller one takes smaller steps and checks, in proportion.
const FULL: f64 = 16_384.0;
/// Where a round costs c samples, a step of the walk takes this many times c once the run has drawn enough: this share of what was drawn before, and no
/// less than so many; of a budget, this part at most.
const WIDTH: f64 = 4.0;
const OF_DRAWN: f64 = 0.125;
const FIRST: f64 = 64.0;
const OF_BUDGET: f64 = 256.0;
/// The steps of the first leg then.
const FIRST_STEPS: f64 = 4.0;
/// The least check then, if a round costs as much.
const CHECK: f64 = 512.0;
/// Stages go first until so many steps of full width would fit into what was drawn: a walk of few steps does not come far.
const EARLY: f64 = 64.0;

impl Sizes {
    pub(super) fn of(budget: Option<u128>, round_cost: u64) -> Self {
        let sizes = Self::usual(budget);
        // Smaller budgets have no steps to spare: only their questions go out together.
        if round_cost == 0 || budget.is_some_and(|budget| (budget as f64) < FULL) {
            return sizes;
        }
        let most = budget.map_or(f64::INFINITY, |budget| budget as f64 / 64.0);
        let check = (round_cost as f64).min(CHECK).min(most).max(sizes.check);
        Self { check, round_cost, ..sizes }.widened(budget, 0.0)
    }

    /// Where rounds have a price: the batch of a walk that has drawn so much, and what depends on it.
    pub(super) fn widened(self, budget: Option<u128>, drawn: f64) -> Self {
        let usual = Self::usual(budget);
        let most = budget.map_or(f64::INFINITY, |budget| budget as f64 / OF_BUDGET);
        let widest = (WIDTH * self.round_cost as f64).min(most);
        let wide = (OF_DRAWN * drawn).max(FIRST).min(widest);
        let batch = (wide as u64).max(usual.batch);
        // A step may double the radius, and no more.
        let doubles = usual.doubles.max(batch as f64);
        Self { batch, leg: usual.leg.max(FIRST_STEPS * batch as f64), doubles, ..self }
    }

    /// True while the walk could have taken only a few steps of full width.
    pub(super) fn is_early(&self, drawn: f64) -> bool {
        self.round_cost > 0 && drawn < EARLY * WIDTH * self.round_cost as f64
    }

    fn usual(budget: Option<u128>) -> Self {
        let share = budget.map_or(1.0, |budget| (budget as f64 / FULL).min(1.0));
        Self {
            batch: (4.0 * share).ceil().max(1.0) as u64,
            check: (64.0 * share).max(16.0),
            leg: (256.0 * share).max(128.0),
            doubles: (64.0 * share).max(8.0),
            round_cost: 0,
        }
    }
}
