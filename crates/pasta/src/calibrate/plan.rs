//! How a budget is spent.

use super::CalibrationError;
use super::trial::{PROVING, SCOUTING};

/// The budget at which the sizes below are as written; others scale them.
pub const USUAL_BUDGET: u64 = 32_000;
/// Below this blocks have too few samples to have a variance worth the name.
const LEAST: u64 = 6_400;
/// Rays: against the gradient, and random ones.
pub(super) const RAYS: u64 = 4;

/// Samples of each part; "a block" is one of sixteen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    /// A block at the start.
    pub(super) start: u64,
    /// An iteration of the power method.
    pub(super) power: u64,
    /// A candidate for the steepest direction.
    pub(super) choose: u64,
    /// A block of the largest curvature.
    pub(super) top: u64,
    /// An iteration towards the smallest curvature.
    pub(super) least_power: u64,
    /// A block of the smallest curvature.
    pub(super) least: u64,
    /// A block of the slope of paired differences.
    pub(super) steps: u64,
    /// A block of a ray: 256 samples a point in all.
    pub(super) ray: u64,
    /// A block of the growth, measured afresh where it was largest.
    pub(super) growth: u64,
    /// A block of a step of a trial, and the steps of the first and of the second one.
    pub(super) trial: u64,
    pub(super) scouting: u64,
    pub(super) proving: u64,
    /// A block of the curvature at a place of a trial.
    pub(super) place: u64,
    /// A block of a secant, measured afresh where it was steepest.
    pub(super) secant: u64,
}

impl Sizes {
    pub(super) fn of(budget: u64) -> Result<Self, CalibrationError> {
        if budget < LEAST {
            return Err(CalibrationError::Budget { given: budget, needed: LEAST });
        }
        // Rounding down, every part, keeps the sum below the budget.
        let scaled = |usual: u64| (u128::from(usual) * u128::from(budget) / u128::from(USUAL_BUDGET)) as u64;
        Ok(Self {
            start: scaled(384),
            power: scaled(64),
            choose: scaled(256),
            top: scaled(384),
            least_power: scaled(64),
            least: scaled(160),
            steps: scaled(160),
            ray: scaled(16),
            growth: scaled(128),
            trial: scaled(1).max(1),
            scouting: scaled(SCOUTING).min(SCOUTING),
            proving: scaled(PROVING).min(PROVING),
            place: scaled(48),
            secant: scaled(32),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::curvature::{ITERATIONS, LEAST_ITERATIONS, STARTS};
    use super::super::estimate::BLOCKS;
    use super::super::trial::PLACES;
    use super::{LEAST, RAYS, Sizes, USUAL_BUDGET};

    /// All samples that may be drawn.
    fn total(sizes: &Sizes) -> u64 {
        let Sizes { start, top, least, steps, ray, growth, secant, .. } = *sizes;
        BLOCKS as u64 * (start + top + least + steps + RAYS * ray + growth + 2 * secant)
            + STARTS * ITERATIONS * sizes.power
            + 3 * sizes.choose
            + LEAST_ITERATIONS * sizes.least_power
            + BLOCKS as u64 * sizes.trial * (sizes.scouting + sizes.proving)
            + PLACES * (ITERATIONS * sizes.power + BLOCKS as u64 * sizes.place)
    }

    #[test]
    fn no_plan_exceeds_its_budget_and_each_block_has_a_variance() {
        for budget in [LEAST, LEAST + 1, 7_777, USUAL_BUDGET, 1_000_000, u64::MAX] {
            let sizes = Sizes::of(budget).unwrap();
            assert!(total(&sizes) <= budget, "{budget}: {sizes:?}");
            assert!(sizes.ray >= 3, "{budget}");
        }
        let usual = Sizes::of(USUAL_BUDGET).unwrap();
        assert!(total(&usual) > 31_000, "{}", total(&usual));
    }
}
