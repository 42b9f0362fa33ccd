//! The lower bounds beside a plan.

use pasta_opt::bounds::{LowerBound, LowerMeanSquareSmooth, LowerSmooth};
use pasta_opt::objective::Measure;
use pasta_opt::recipe::Constant::{self, Floor, Gap, Growth, MsSmoothness, Smoothness, Target};
use pasta_opt::recipe::{Constants, Plan, RecipeError, RecipeRow};
use serde::Serialize;

use pasta_report::number::{at_least, ceiling};

/// A theorem that says what zero-respecting methods cannot beat.
struct Theorem {
    name: &'static str,
    reference: &'static str,
    needs: [Constant; 5],
    /// The bound with these constants.
    bound: fn([f64; 5]) -> Result<(LowerBound, Option<Apart>), RecipeError>,
}

const THEOREMS: &[Theorem] = &[
    Theorem {
        name: "lower-smooth",
        reference: "Theorem 1",
        needs: [Smoothness, Gap, Growth, Floor, Target],
        bound: |[smoothness, gap, growth, floor, target]| {
            Ok((LowerSmooth { smoothness, gap, growth, floor, target }.evaluate()?, None))
        },
    },
    Theorem {
        name: "lower-mss",
        reference: "Theorem 2",
        needs: [MsSmoothness, Gap, Growth, Floor, Target],
        bound: |[ms_smoothness, gap, growth, floor, target]| {
            let theorem = LowerMeanSquareSmooth { ms_smoothness, gap, growth, floor, target };
            let apart = Apart {
                growth_max: theorem.growth_limit(),
                statistical_floor: theorem.statistical_floor(),
                statistical_floor_constant: "unknown",
            };
            Ok((theorem.evaluate()?, Some(apart)))
        },
    },
];

impl Theorem {
    fn evaluate(&self, constants: &Constants) -> Result<Limit, RecipeError> {
        let mut values = [0.0; 5];
        for (value, constant) in values.iter_mut().zip(self.needs) {
            let missing = RecipeError::Missing { recipe: self.name, constant };
            *value = constants.get(constant).ok_or(missing)?;
        }
        let (bound, apart) = (self.bound)(values)?;
        let [_, _, growth, _, _] = values;
        Ok(Limit { theorem: self.name, reference: self.reference, binds: BINDS, bound, apart, growth })
    }
}

/// Whom the bounds bind.
const BINDS: &str = "zero-respecting methods";

/// A lower bound at given constants.
#[derive(Serialize)]
pub(super) struct Limit {
    pub(super) theorem: &'static str,
    reference: &'static str,
    binds: &'static str,
    #[serde(flatten)]
    bound: LowerBound,
    #[serde(flatten)]
    apart: Option<Apart>,
    #[serde(skip)]
    growth: f64,
}

/// What Theorem 2 has besides.
#[derive(Serialize)]
struct Apart {
    growth_max: f64,
    statistical_floor: f64,
    statistical_floor_constant: &'static str,
}

/// The lower bound that belongs beside a plan, or why there is none; `None` if no theorem speaks about it. Both bounds are
/// about small gradients, so it takes a plan that promises one, for the same class of functions.
pub(super) fn beside(
    row: &RecipeRow,
    plan: &Plan,
    constants: &Constants,
) -> Option<Result<Limit, RecipeError>> {
    let gradient = plan.guarantee.measure == Measure::GradientSquared;
    let theorem = THEOREMS.iter().find(|theorem| gradient && theorem.needs.iter().all(|&c| row.uses(c)))?;
    Some(theorem.evaluate(constants))
}

/// The lower bounds whose constants are all given.
pub(super) fn all(constants: &Constants) -> impl Iterator<Item = (&'static str, Result<Limit, RecipeError>)> {
    let known = |theorem: &&Theorem| theorem.needs.iter().all(|&c| constants.get(c).is_some());
    THEOREMS.iter().filter(known).map(|theorem| (theorem.name, theorem.evaluate(constants)))
}

impl Limit {
    /// The bound in one line.
    pub(super) fn sentence(&self) -> String {
        let LowerBound { bound, sharp_bound, eps_max, .. } = self.bound;
        match (bound, sharp_bound, &self.apart) {
            (Some(bound), Some(sharp), _) => format!(
                "at least {} samples for {BINDS} (sharp form: {}); {}",
                at_least(bound),
                at_least(sharp),
                self.reference
            ),
            (_, _, Some(apart)) if self.growth >= apart.growth_max => {
                format!("no lower bound at this growth (needs B < {})", ceiling(apart.growth_max))
            }
            _ => format!("no lower bound at this target (needs eps <= {})", ceiling(eps_max)),
        }
    }
}
