//! All recipes, one row each.

use super::{
    Constant, Constants, Formulas, HorizonSgd, LipschitzConvex, MeanSquareSmooth, Pl, Plan, Recipe,
    RecipeError, Smooth, SmoothAnchored, SmoothConvex, StarConvex, WeaklyConvex,
};
use crate::objective::Facts;

/// A recipe by name: what it asks for and how it is made.
#[derive(Debug, Clone, Copy)]
pub struct Row {
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

    fn weakly_convex(&self, formulas: Formulas) -> Result<Box<dyn Recipe>, RecipeError> {
        Ok(Box::new(WeaklyConvex {
            rho: self.need(Rho)?,
            lambda: self.need(Lambda)?,
            lipschitz: self.need(Lipschitz)?,
            gap: self.need(Gap)?,
            growth: self.need(Growth)?,
            floor: self.need(Floor)?,
            target: self.need(Target)?,
            formulas,
        }))
    }
}

use Constant::{
    Distance, Floor, Gap, Growth, Lambda, Lipschitz, MsSmoothness, Mu, Rho, Smoothness, Target, Variance,
};

const NO_MU: fn(&Facts) -> Option<f64> = |_| None;

/// Every recipe of the library.
pub const TABLE: &[Row] = &[
    Row {
        name: "smooth",
        reference: "Theorem 3",
        for_problems: "smooth, not convex",
        needs: &[Smoothness, Gap, Growth, Floor, Target],
        takes: &[Variance],
        applies: |facts| facts.smoothness.is_some_and(|l| l > 0.0),
        mu: NO_MU,
        build: |given| {
            Ok(Box::new(Smooth {
                smoothness: given.need(Smoothness)?,
                gap: given.need(Gap)?,
                growth: given.need(Growth)?,
                floor: given.need(Floor)?,
                variance: given.constants.get(Variance),
                target: given.need(Target)?,
            }))
        },
    },
    Row {
        name: "smooth-convex",
        reference: "Theorem 4",
        for_problems: "smooth and convex",
        needs: &[Smoothness, Distance, Growth, Floor, Target],
        takes: &[Variance],
        applies: |facts| facts.smoothness.is_some_and(|l| l > 0.0) && facts.is_convex(),
        mu: NO_MU,
        build: |given| {
            Ok(Box::new(SmoothConvex {
                smoothness: given.need(Smoothness)?,
                distance: given.need(Distance)?,
                growth: given.need(Growth)?,
                floor: given.need(Floor)?,
                variance: given.constants.get(Variance),
                target: given.need(Target)?,
            }))
        },
    },
    Row {
        name: "lipschitz-convex",
        reference: "Theorem 5",
        for_problems: "convex with bounded subgradients, kinks allowed",
        needs: &[Lipschitz, Distance, Growth, Floor, Target],
        takes: &[Variance],
        applies: |facts| facts.lipschitz.is_some() && facts.is_convex(),
        mu: NO_MU,
        build: |given| {
            Ok(Box::new(LipschitzConvex {
                lipschitz: given.need(Lipschitz)?,
                distance: given.need(Distance)?,
                growth: given.need(Growth)?,
                floor: given.need(Floor)?,
                variance: given.constants.get(Variance),
                target: given.need(Target)?,
            }))
        },
    },
    Row {
        name: "mean-square-smooth",
        reference: "Theorem 7",
        for_problems: "smooth sample by sample, not convex",
        needs: &[MsSmoothness, Gap, Growth, Floor, Target],
        takes: &[],
        applies: |facts| facts.smoothness.is_some_and(|l| l > 0.0),
        mu: NO_MU,
        build: |given| {
            Ok(Box::new(MeanSquareSmooth {
                ms_smoothness: given.need(MsSmoothness)?,
                gap: given.need(Gap)?,
                growth: given.need(Growth)?,
                floor: given.need(Floor)?,
                target: given.need(Target)?,
            }))
        },
    },
    Row {
        name: "pl",
        reference: "Theorem 8",
        for_problems: "smooth, gradient dominated (Polyak-Lojasiewicz), one minimiser",
        needs: &[Smoothness, Mu, Gap, Growth, Floor, Target],
        takes: &[],
        applies: |facts| facts.smoothness.is_some() && facts.pl.is_some(),
        mu: |facts| facts.pl,
        build: |given| {
            Ok(Box::new(Pl {
                smoothness: given.need(Smoothness)?,
                mu: given.need(Mu)?,
                gap: given.need(Gap)?,
                growth: given.need(Growth)?,
                floor: given.need(Floor)?,
                target: given.need(Target)?,
            }))
        },
    },
    Row {
        name: "star-convex",
        reference: "Theorem 9",
        for_problems: "smooth, convex towards its minimiser",
        needs: &[Smoothness, Mu, Gap, Growth, Floor, Target],
        takes: &[],
        applies: |facts| facts.smoothness.is_some() && facts.star.is_some(),
        mu: |facts| facts.star,
        build: |given| {
            Ok(Box::new(StarConvex {
                smoothness: given.need(Smoothness)?,
                mu: given.need(Mu)?,
                gap: given.need(Gap)?,
                growth: given.need(Growth)?,
                floor: given.need(Floor)?,
                target: given.need(Target)?,
            }))
        },
    },
    Row {
        name: "weakly-convex",
        reference: "Theorem 10",
        for_problems: "weakly convex with bounded subgradients, kinks allowed",
        needs: &[Rho, Lambda, Lipschitz, Gap, Growth, Floor, Target],
        takes: &[],
        applies: |facts| facts.weak_convexity.is_some() && facts.lipschitz.is_some(),
        mu: NO_MU,
        build: |given| given.weakly_convex(Formulas::Corrected),
    },
    Row {
        name: "weakly-convex-as-printed",
        reference: "Theorem 10 with the paper's batch sizes, whose promise can fail",
        for_problems: "checking the paper; use weakly-convex",
        needs: &[Rho, Lambda, Lipschitz, Gap, Growth, Floor, Target],
        takes: &[],
        applies: |_| false,
        mu: NO_MU,
        build: |given| given.weakly_convex(Formulas::AsPrinted),
    },
    Row {
        name: "smooth-anchored",
        reference: "Remark after Theorem 10",
        for_problems: "smooth with a bounded gradient, by anchored epochs",
        needs: &[Smoothness, Lipschitz, Gap, Growth, Floor, Target],
        takes: &[],
        applies: |facts| facts.smoothness.is_some_and(|l| l > 0.0) && facts.lipschitz.is_some(),
        mu: NO_MU,
        build: |given| {
            Ok(Box::new(SmoothAnchored {
                smoothness: given.need(Smoothness)?,
                lipschitz: given.need(Lipschitz)?,
                gap: given.need(Gap)?,
                growth: given.need(Growth)?,
                floor: given.need(Floor)?,
                target: given.need(Target)?,
            }))
        },
    },
    Row {
        name: "horizon-sgd",
        reference: "Derived in docs/theorems.md",
        for_problems: "smooth, one sample a step",
        needs: &[Smoothness, Gap, Growth, Floor, Target],
        takes: &[],
        applies: |facts| facts.smoothness.is_some_and(|l| l > 0.0),
        mu: NO_MU,
        build: |given| {
            Ok(Box::new(HorizonSgd {
                smoothness: given.need(Smoothness)?,
                gap: given.need(Gap)?,
                growth: given.need(Growth)?,
                floor: given.need(Floor)?,
                target: given.need(Target)?,
            }))
        },
    },
];

/// The row of that name.
pub fn find(name: &str) -> Option<&'static Row> {
    TABLE.iter().find(|row| row.name == name)
}

impl Row {
    /// The plan for these constants. A constant that the recipe does not use is refused.
    pub fn plan(&self, constants: &Constants) -> Result<Plan, RecipeError> {
        if let Some((constant, _)) = constants.known().find(|(c, _)| !self.uses(*c)) {
            let used: Vec<_> = self.needs.iter().chain(self.takes).map(|c| c.name()).collect();
            return Err(RecipeError::Unused { recipe: self.name, constant, used: used.join(", ") });
        }
        (self.build)(&Given { row: self.name, constants })?.plan()
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
pub fn best_target(row: &Row, constants: &Constants, budget: f64) -> Result<(f64, Plan), RecipeError> {
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
