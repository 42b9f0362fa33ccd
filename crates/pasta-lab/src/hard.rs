//! The two hard instances by name, for the commands that take one.

use clap::ValueEnum;
use pasta_opt::bounds::{LowerMeanSquareSmooth, LowerSmooth};
use pasta_opt::hard::HardInstance;
use pasta_opt::recipe::Constant::{self, Floor, Gap, Growth, MsSmoothness, Smoothness, Target};
use pasta_opt::recipe::Constants;
use serde::Serialize;

use pasta_report::console::Failure;

/// The theorem that an instance belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// Theorem 1: F is smooth, the oracle is not
    Smooth,
    /// Theorem 2: the oracle is mean-square smooth
    Mss,
}

impl Kind {
    /// The constants that make the instance; the first is its own, the others belong to both.
    pub(crate) const fn constants(self) -> [Constant; 5] {
        let own = match self {
            Self::Smooth => Smoothness,
            Self::Mss => MsSmoothness,
        };
        [own, Gap, Growth, Floor, Target]
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Smooth => "smooth",
            Self::Mss => "mss",
        }
    }

    pub(crate) fn theorem(self) -> &'static str {
        match self {
            Self::Smooth => "Theorem 1",
            Self::Mss => "Theorem 2",
        }
    }

    /// The instance with these constants, in the order of [`Self::constants`].
    pub(crate) fn build(self, [own, gap, growth, floor, target]: [f64; 5]) -> Result<HardInstance, Failure> {
        let built = match self {
            Self::Smooth => HardInstance::smooth(LowerSmooth { smoothness: own, gap, growth, floor, target }),
            Self::Mss => HardInstance::mean_square_smooth(LowerMeanSquareSmooth {
                ms_smoothness: own,
                gap,
                growth,
                floor,
                target,
            }),
        };
        built.map_err(Failure::input)
    }

    /// The values by name.
    pub(crate) fn named(self, values: [f64; 5]) -> Constants {
        let mut constants = Constants::default();
        self.constants().into_iter().zip(values).for_each(|(constant, value)| constants.set(constant, value));
        constants
    }
}
