//! The constants that recipes ask for, by name.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::objective::Objective;
use crate::oracle::Noise;

macro_rules! constants {
    ($($variant:ident, $name:literal, $symbol:literal, $meaning:literal;)*) => {
        /// A constant of a problem, or a choice of the user, that some recipe uses.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        #[non_exhaustive]
        pub enum Constant {
            $(#[doc = $meaning] $variant,)*
        }

        impl Constant {
            /// All constants.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The word for it, in flags and files.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The paper's letter for it.
            pub fn symbol(self) -> &'static str {
                match self { $(Self::$variant => $symbol,)* }
            }

            /// What it is.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)* }
            }
        }
    };
}

constants! {
    Smoothness, "smoothness", "L", "Lipschitz constant of the gradient";
    MsSmoothness, "ms-smoothness", "Lbar", "mean-square Lipschitz constant of the stochastic gradient, same sample at both points";
    Gap, "gap", "Delta", "an upper bound on f(x0) - inf f";
    Distance, "distance", "|x0 - x*|", "distance from the start to a minimiser (not squared)";
    Growth, "growth", "B", "growth of the noise: the variance is at most B^2 |x - x0|^2 + b^2";
    Floor, "floor", "b", "noise at the start: the variance is at most B^2 |x - x0|^2 + b^2";
    Mu, "mu", "mu", "Polyak-Lojasiewicz or star-convexity constant";
    Rho, "rho", "rho", "weak convexity: f + rho/2 |x|^2 is convex";
    Lipschitz, "lipschitz", "G", "bound on every subgradient";
    Lambda, "lambda", "lambda", "parameter of the Moreau envelope, larger than rho";
    Variance, "variance", "sigma^2", "variance that the batches are sized for: fewer, wider steps as it falls";
    Target, "target", "eps", "target accuracy";
}

/// Values of some of the constants.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(from = "BTreeMap<Constant, f64>", into = "BTreeMap<Constant, f64>")]
pub struct Constants([Option<f64>; Constant::ALL.len()]);

impl From<BTreeMap<Constant, f64>> for Constants {
    fn from(values: BTreeMap<Constant, f64>) -> Self {
        let mut constants = Self::default();
        values.into_iter().for_each(|(constant, value)| constants.set(constant, value));
        constants
    }
}

impl From<Constants> for BTreeMap<Constant, f64> {
    fn from(constants: Constants) -> Self {
        constants.known().collect()
    }
}

impl Constants {
    /// The value of a constant, if it is known.
    pub fn get(&self, constant: Constant) -> Option<f64> {
        self.0[constant as usize]
    }

    /// Sets or replaces the value of a constant.
    pub fn set(&mut self, constant: Constant, value: f64) {
        self.0[constant as usize] = Some(value);
    }

    /// Those that are known.
    pub fn known(&self) -> impl Iterator<Item = (Constant, f64)> + '_ {
        Constant::ALL.iter().filter_map(|&c| Some((c, self.get(c)?)))
    }

    /// What is proved about an objective behind noise, seen from `start`. `mu` is left to the recipe, since
    /// it means one thing for PL and another for star-convexity.
    pub fn of(objective: &dyn Objective, noise: &Noise, start: &[f64]) -> Self {
        let facts = objective.facts();
        let mut constants = Self::default();
        let mut put = |constant, value: Option<f64>| {
            if let Some(value) = value {
                constants.set(constant, value);
            }
        };
        put(Constant::Smoothness, facts.smoothness);
        // g = grad f + s(x) u with a shared u is mean-square smooth with Lbar^2 = L^2 + B^2 (see `oracle::Noisy`).
        put(Constant::MsSmoothness, facts.smoothness.map(|l| l.hypot(noise.growth)));
        put(Constant::Gap, Some(objective.gap(start)));
        put(Constant::Distance, objective.distance_to_minimiser(start));
        put(Constant::Growth, Some(noise.growth));
        put(Constant::Floor, Some(noise.floor));
        put(Constant::Rho, facts.weak_convexity);
        put(Constant::Lipschitz, facts.lipschitz);
        constants
    }
}
