//! The hard instance that the methods are pitted against, with what is proved about it.

use std::f64::consts::{E, PI};
use std::sync::Arc;

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, ValueEnum};
use pasta_opt::bounds::{CHAIN_NOISE, LowerBound, LowerMeanSquareSmooth, LowerSmooth};
use pasta_opt::hard::HardInstance;
use pasta_opt::recipe::{Constant, Constants};
use serde::Serialize;

use pasta_report::console::{Failure, flags};
use pasta_report::number::real;

/// Whose instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    /// Theorem 1: F is smooth, the oracle is not
    Smooth,
    /// Theorem 2: the oracle is mean-square smooth
    Mss,
}

use Constant::{Floor, Gap, Growth, Lipschitz, MsSmoothness, Smoothness, Target};

impl Kind {
    /// The constants that make the instance, and their values where none is given: the chain is long enough to
    /// be one, and a method of one sample a step gets to its end within seconds.
    const fn defaults(self) -> [(Constant, f64); 5] {
        match self {
            Self::Smooth => [(Smoothness, 1.0), (Gap, 1.0), (Growth, 0.1), (Floor, 0.0), (Target, 1e-3)],
            Self::Mss => [(MsSmoothness, 1.0), (Gap, 1.0), (Growth, 1e-4), (Floor, 0.0), (Target, 4e-4)],
        }
    }

    fn uses(self, constant: Constant) -> bool {
        self.defaults().iter().any(|(used, _)| *used == constant)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Smooth => "smooth",
            Self::Mss => "mss",
        }
    }

    pub(super) fn theorem(self) -> &'static str {
        match self {
            Self::Smooth => "Theorem 1",
            Self::Mss => "Theorem 2",
        }
    }
}

/// The constants of the instance that were given. Boxed: the commands share an enum, and the others are small.
pub(super) struct ConstantFlags(pub(super) Box<Constants>);

const FLAGS: [Constant; 6] = [Smoothness, MsSmoothness, Gap, Growth, Floor, Target];

impl Args for ConstantFlags {
    fn augment_args(command: Command) -> Command {
        command.args(FLAGS.map(flag))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn flag(constant: Constant) -> Arg {
    let default = |kind: Kind| {
        let (_, value) = kind.defaults().into_iter().find(|(used, _)| *used == constant)?;
        Some(real(value))
    };
    let defaults = match [Kind::Smooth, Kind::Mss].map(default) {
        [Some(one), Some(other)] if one != other => format!("{one} for smooth, {other} for mss"),
        [one, other] => one.or(other).unwrap_or_default(),
    };
    flags::constant(constant, "Constants of the instance", &format!(" [default: {defaults}]"))
}

impl FromArgMatches for ConstantFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Self(Box::default());
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for constant in FLAGS {
            if let Some(&value) = matches.get_one(constant.name()) {
                self.0.set(constant, value);
            }
        }
        Ok(())
    }
}

/// Longer chains are a mistake: no run here gets to the end of one.
const LONGEST: u64 = 100_000;

/// A hard instance with its constants.
#[derive(Debug)]
pub(super) struct Instance {
    pub(super) kind: Kind,
    /// Those that make it.
    pub(super) constants: Constants,
    pub(super) hard: Arc<HardInstance>,
    /// (T - 1)/(2p).
    pub(super) sharp: f64,
    /// The closed form, which is smaller.
    pub(super) closed: f64,
}

impl Instance {
    /// The instance with these constants, and with the defaults for those that are not given.
    pub(super) fn new(kind: Kind, given: &Constants) -> Result<Self, Failure> {
        let name = kind.name();
        if let Some((unused, _)) = given.known().find(|(constant, _)| !kind.uses(*constant)) {
            let used = kind.defaults().map(|(constant, _)| constant.name()).join(", ");
            let message = format!("--instance {name}: does not use {}; it uses {used}", unused.name());
            return Err(Failure::input(message));
        }
        let mut constants = Constants::default();
        let [first, gap, growth, floor, target] = kind.defaults().map(|(constant, default)| {
            let value = given.get(constant).unwrap_or(default);
            constants.set(constant, value);
            value
        });
        let hard = match kind {
            Kind::Smooth => {
                HardInstance::smooth(LowerSmooth { smoothness: first, gap, growth, floor, target })
            }
            Kind::Mss => HardInstance::mean_square_smooth(LowerMeanSquareSmooth {
                ms_smoothness: first,
                gap,
                growth,
                floor,
                target,
            }),
        };
        let hard = Arc::new(hard.map_err(Failure::input)?);
        let LowerBound { chain, p, bound, sharp_bound, .. } = *hard.bound();
        if chain > LONGEST {
            return Err(Failure::input(format!(
                "the chain would have T = {chain} coordinates, but this command runs chains of at most {LONGEST}"
            ))
            .hint("take a larger --target or a smaller --gap"));
        }
        let (Some(sharp), Some(closed)) = (sharp_bound, bound) else {
            return Err(Failure::input(format!("no bound at these constants: p = {p:e}")));
        };
        Ok(Self { kind, constants, hard, sharp, closed })
    }

    /// T, p, D and the rest.
    pub(super) fn bound(&self) -> &LowerBound {
        self.hard.bound()
    }

    /// eps.
    pub(super) fn target(&self) -> f64 {
        self.hard.target()
    }

    /// The constants that are proved for F and its oracle.
    pub(super) fn known(&self) -> Constants {
        let mut constants = self.constants;
        constants.set(Smoothness, self.bound().effective_smoothness);
        constants.set(Lipschitz, self.lipschitz());
        constants
    }

    /// G, a bound on |grad F| everywhere. Along u: |f0'| <= 2 eps, phi' <= 15 eps/Delta, and |Fs| is at most what lies
    /// between the chain's infimum and its supremum, scale sqrt(2 pi e) (1 + 2e (T - 1)). Along each of the T
    /// chain coordinates: 2 eps times 23.
    fn lipschitz(&self) -> f64 {
        let LowerBound { chain, scale, reach, .. } = *self.bound();
        let (eps, length) = (self.target(), chain as f64);
        let depth = scale * (2.0 * PI * E).sqrt() * (1.0 + 2.0 * E * (length - 1.0));
        // reach = Delta/(4 eps).
        let along_u = 2.0 * eps + 3.75 / reach * depth;
        let along_chain = 2.0 * eps * CHAIN_NOISE as f64 * length.sqrt();
        along_u.hypot(along_chain)
    }

    /// (T - log(1/delta))/(2p): with probability at least 1 - delta a zero-respecting method needs more samples. So
    /// many runs all do if delta is shared among them. Zero where this says nothing.
    pub(super) fn safe_from(&self, delta: f64, runs: usize) -> f64 {
        // n samples hold Binomial(n, p) reveals, and P(T reveals or more) <= exp(2 n p - T).
        let LowerBound { chain, p, .. } = *self.bound();
        ((chain as f64 - (runs as f64 / delta).ln()) / (2.0 * p)).max(0.0)
    }
}
