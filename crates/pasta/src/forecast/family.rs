//! How often forecasts held, by the kind of method: measured on settings that the model was not chosen on (docs/forecast.md).

use serde::{Deserialize, Serialize};

/// Methods that a forecast treats alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Family {
    /// Recipes whose batches grow as the target of the gradient shrinks.
    Batches,
    /// Recipes that aim at values, one sample a step.
    Gap,
    /// SGD and its kin with a given step.
    Sgd,
    /// Steps that follow the gradients seen.
    Adaptive,
    /// PAGE, of which nothing is forecast.
    Page,
    /// The method without constants.
    Auto,
}

/// How often the range of a forecast held, on settings that the model was not chosen on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// Runs that ended within the range that was given.
    pub held: u32,
    /// Runs for which a range was given.
    pub of: u32,
}

impl Family {
    /// The family of a method; `None` where forecasts were not tried.
    pub fn of(method: &str) -> Option<Self> {
        Some(match method {
            "smooth" | "smooth-anchored" => Self::Batches,
            "pl" | "star-convex" | "smooth-convex" => Self::Gap,
            "sgd" | "sgd-decaying" | "clipped-sgd" | "momentum" | "storm" => Self::Sgd,
            "adam" | "adagrad-norm" | "adagrad-norm-averaged" => Self::Adaptive,
            "mean-square-smooth" => Self::Page,
            "auto" => Self::Auto,
            _ => return None,
        })
    }

    /// The name of the family.
    pub fn name(self) -> &'static str {
        match self {
            Self::Batches => "recipes with growing batches",
            Self::Gap => "recipes that aim at values",
            Self::Sgd => "SGD and its kin",
            Self::Adaptive => "adaptive steps",
            Self::Page => "PAGE",
            Self::Auto => "auto",
        }
    }

    /// All families.
    pub const ALL: [Self; 6] = [Self::Batches, Self::Gap, Self::Sgd, Self::Adaptive, Self::Page, Self::Auto];

    /// How often the first range held that a run of this family gave of itself.
    pub fn measured_own(self) -> Measured {
        let (held, of) = match self {
            Self::Batches => (44, 46),
            Self::Gap => (37, 38),
            Self::Sgd => (51, 51),
            Self::Adaptive => (39, 39),
            Self::Page => (0, 0),
            Self::Auto => (114, 118),
        };
        Measured { held, of }
    }

    /// How often the range of a pilot held for methods of this family.
    pub fn measured(self) -> Measured {
        let (held, of) = match self {
            Self::Batches => (36, 38),
            Self::Gap | Self::Adaptive => (38, 40),
            Self::Sgd => (57, 60),
            Self::Page => (0, 0),
            Self::Auto => (107, 115),
        };
        Measured { held, of }
    }
}

#[cfg(test)]
mod tests {
    use super::{Family, Measured};

    #[test]
    fn no_family_has_forecasts_that_hold_in_less_than_four_of_five_runs() {
        for family in Family::ALL {
            for Measured { held, of } in [family.measured(), family.measured_own()] {
                assert!(10 * held >= 8 * of, "{}: {held} of {of}; it must be silent", family.name());
            }
        }
    }
}
