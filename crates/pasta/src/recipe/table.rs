//! All recipes, one row each.

use super::{
    Constant, Constants, Formulas, HorizonSgd, LipschitzConvex, MeanSquareSmooth, Pl, Plan, Recipe,
    RecipeError, Smooth, SmoothAnchored, SmoothConvex, StarConvex, WeaklyConvex,
};
use crate::objective::Facts;

/// A recipe by name: what it asks for and how it is made.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct RecipeRow {
    /// Its name, in commands and files.
    pub name: &'static str,
    /// Where it comes from.
    pub reference: &'static str,
    /// For which problems.
    pub for_problems: &'static str,
    /// The constants it needs.
    pub needs: &'static [Constant],
    /// The constants it takes but can choose itself.
    pub takes: &'static [Constant],
    /// Whether what is proved about an objective meets its hypotheses on f.
    pub applies: fn(&Facts) -> bool,
    /// The curvature constant it means by mu.
    pub mu: fn(&Facts) -> Option<f64>,
    build: fn(&Given<'_>) -> Result<Box<dyn Recipe>, RecipeError>,
}

/// Constants on behalf of one row, for error messages.
struct Given<'c> {
    row: &'static str,
    constants: &'c Constants,
}

impl Given<'_> {
    fn need(&self, constant: Constant) -> Result<f64, RecipeError> {
        self.constants.get(constant).ok_or(RecipeError::Missing { recipe: self.row, constant })
    }
}

use Constant::{
    Distance, Floor, Gap, Growth, Lambda, Lipschitz, MsSmoothness, Mu, Rho, Smoothness, Target, Variance,
};

/// A row, from the recipe's fields and the constants that fill them: those it needs, those it takes, and choices that are
/// made here.
macro_rules! row {
    (
        $name:literal, $reference:literal, $for_problems:literal,
        $recipe:ident { $($field:ident: $needed:ident),* $(; takes $option:ident: $taken:ident)? $(; with $choice:ident = $chosen:expr)? },
        applies: $applies:expr $(, mu: $mu:expr)?
    ) => {
        RecipeRow {
            name: $name,
            reference: $reference,
            for_problems: $for_problems,
            needs: &[$($needed),*],
            takes: &[$($taken)?],
            applies: $applies,
            mu: first!($($mu,)? |_| None),
            build: |given| {
                Ok(Box::new($recipe {
                    $($field: given.need($needed)?,)*
                    $($option: given.constants.get($taken),)?
                    $($choice: $chosen,)?
                }))
            },
        }
    };
}

macro_rules! first {
    ($first:expr $(, $rest:expr)*) => {
        $first
    };
}

/// Smooth, with a constant that a step size can rest on.
const SMOOTH: fn(&Facts) -> bool = |facts| facts.smoothness.is_some_and(|l| l > 0.0);

/// Every recipe of the library.
pub const TABLE: &[RecipeRow] = &[
    row!(
        "smooth", "Theorem 3", "smooth, not convex",
        Smooth { smoothness: Smoothness, gap: Gap, growth: Growth, floor: Floor, target: Target; takes variance: Variance },
        applies: SMOOTH
    ),
    row!(
        "smooth-convex", "Theorem 4", "smooth and convex",
        SmoothConvex {
            smoothness: Smoothness, distance: Distance, growth: Growth, floor: Floor, target: Target; takes variance: Variance
        },
        applies: |facts| SMOOTH(facts) && facts.is_convex()
    ),
    row!(
        "lipschitz-convex", "Theorem 5", "convex with bounded subgradients, kinks allowed",
        LipschitzConvex {
            lipschitz: Lipschitz, distance: Distance, growth: Growth, floor: Floor, target: Target; takes variance: Variance
        },
        applies: |facts| facts.lipschitz.is_some() && facts.is_convex()
    ),
    row!(
        "mean-square-smooth", "Theorem 7", "smooth sample by sample, not convex",
        MeanSquareSmooth { ms_smoothness: MsSmoothness, gap: Gap, growth: Growth, floor: Floor, target: Target },
        applies: SMOOTH
    ),
    row!(
        "pl", "Theorem 8", "smooth, gradient dominated (Polyak-Lojasiewicz), one minimiser",
        Pl { smoothness: Smoothness, mu: Mu, gap: Gap, growth: Growth, floor: Floor, target: Target },
        applies: |facts| facts.smoothness.is_some() && facts.pl.is_some(),
        mu: |facts| facts.pl
    ),
    row!(
        "star-convex", "Theorem 9", "smooth, convex towards its minimiser",
        StarConvex { smoothness: Smoothness, mu: Mu, gap: Gap, growth: Growth, floor: Floor, target: Target },
        applies: |facts| facts.smoothness.is_some() && facts.star.is_some(),
        mu: |facts| facts.star
    ),
    row!(
        "weakly-convex", "Theorem 10", "weakly convex with bounded subgradients, kinks allowed",
        WeaklyConvex {
            rho: Rho, lambda: Lambda, lipschitz: Lipschitz, gap: Gap, growth: Growth, floor: Floor, target: Target;
            with formulas = Formulas::Corrected
        },
        applies: |facts| facts.weak_convexity.is_some() && facts.lipschitz.is_some()
    ),
    row!(
        "smooth-anchored", "Remark after Theorem 10", "smooth with a bounded gradient, by anchored epochs",
        SmoothAnchored {
            smoothness: Smoothness, lipschitz: Lipschitz, gap: Gap, growth: Growth, floor: Floor, target: Target
        },
        applies: |facts| SMOOTH(facts) && facts.lipschitz.is_some()
    ),
    row!(
        "horizon-sgd", "Derived in docs/theorems.md", "smooth, one sample a step",
        HorizonSgd { smoothness: Smoothness, gap: Gap, growth: Growth, floor: Floor, target: Target },
        applies: SMOOTH
    ),
];

/// The row of that name.
pub fn find(name: &str) -> Option<&'static RecipeRow> {
    TABLE.iter().find(|row| row.name == name)
}

impl RecipeRow {
    /// The plan for these constants. A constant that the recipe does not use is refused.
    pub fn plan(&self, constants: &Constants) -> Result<Plan, RecipeError> {
        if let Some((constant, _)) = constants.known().find(|(c, _)| !self.uses(*c)) {
            let used: Vec<_> = self.needs.iter().chain(self.takes).map(|c| c.name()).collect();
            return Err(RecipeError::Unused { recipe: self.name, constant, used: used.join(", ") });
        }
        let plan = (self.build)(&Given { row: self.name, constants })?.plan()?;
        // Constants that doubles can hold may have squares that they cannot.
        match plan.schedule.large.size(0.0) {
            Err(needed) if needed >= f64::MAX => {
                Err(RecipeError::TooMany { recipe: self.name, count: "N", needed: f64::INFINITY })
            }
            _ => Ok(plan),
        }
    }

    /// Whether the recipe needs or takes a constant.
    pub fn uses(&self, constant: Constant) -> bool {
        self.needs.contains(&constant) || self.takes.contains(&constant)
    }

    /// The constants among these that the recipe uses.
    pub fn relevant(&self, constants: &Constants) -> Constants {
        let mut relevant = Constants::default();
        constants.known().filter(|(c, _)| self.uses(*c)).for_each(|(c, value)| relevant.set(c, value));
        relevant
    }
}

/// The smallest target whose expected samples fit a budget, with its plan.
///
/// The cost falls as the target grows, up to ceilings; the answer is exact to a relative 1e-12 or to one of
/// the ceilings' steps, and its cost never exceeds the budget.
pub fn best_target(row: &RecipeRow, constants: &Constants, budget: f64) -> Result<(f64, Plan), RecipeError> {
    let affordable = |target: f64| {
        let mut constants = *constants;
        constants.set(Target, target);
        match row.plan(&constants) {
            Ok(plan) if plan.cost.samples <= budget => Ok(Some(plan)),
            Ok(_) | Err(RecipeError::TooMany { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    };
    // From the hardest target upwards: the cost falls until it fits. (It need not go on falling: with a target
    // beyond all scales of the problem a single step of absurd size is planned.)
    let mut found = None;
    for target in (-300..=100).map(|exponent| 2f64.powi(exponent)) {
        match affordable(target) {
            Ok(None) => continue,
            Ok(Some(plan)) => found = Some((target, plan)),
            // The theorem admits no larger target; the one just below its limit may still fit.
            Err(RecipeError::Unmet { name: "target", .. }) => found = largest_admitted(target, &affordable)?,
            Err(error) => return Err(error),
        }
        break;
    }
    let Some((mut high, mut plan)) = found else {
        return Err(RecipeError::Budget { recipe: row.name, budget });
    };
    let mut low = high / 2.0;
    while high - low > 1e-12 * high {
        let middle = low + (high - low) / 2.0;
        match affordable(middle)? {
            Some(better) => (high, plan) = (middle, better),
            None => low = middle,
        }
    }
    Ok((high, plan))
}

/// The largest target below `refused` that the theorem admits, if the budget admits it too.
fn largest_admitted(
    refused: f64,
    affordable: &impl Fn(f64) -> Result<Option<Plan>, RecipeError>,
) -> Result<Option<(f64, Plan)>, RecipeError> {
    let (mut low, mut high) = (refused / 2.0, refused);
    while high - low > 1e-12 * high {
        let middle = low + (high - low) / 2.0;
        match affordable(middle) {
            Err(RecipeError::Unmet { name: "target", .. }) => high = middle,
            Ok(_) => low = middle,
            Err(error) => return Err(error),
        }
    }
    Ok(affordable(low)?.map(|plan| (low, plan)))
}
