//! The hard instance that the methods are pitted against, with what is proved about it.

use std::f64::consts::{E, PI};
use std::sync::Arc;

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use pasta_opt::bounds::{CHAIN_NOISE, LowerBound};
use pasta_opt::hard::HardInstance;
use pasta_opt::recipe::{Constant, Constants};

use crate::hard::Kind;
use pasta_report::console::{Failure, flags};
use pasta_report::number::real;

use Constant::{Floor, Gap, Growth, Lipschitz, MsSmoothness, Smoothness, Target};

/// The constants where none are given: the chain is long enough to be one, and a method of one sample a step gets to its
/// end within seconds.
const fn defaults(kind: Kind) -> [f64; 5] {
    match kind {
        Kind::Smooth => [1.0, 1.0, 0.1, 0.0, 1e-3],
        Kind::Mss => [1.0, 1.0, 1e-4, 0.0, 4e-4],
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
        let place = kind.constants().iter().position(|used| *used == constant)?;
        Some(real(defaults(kind)[place]))
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
        let used = kind.constants();
        if let Some((unused, _)) = given.known().find(|(constant, _)| !used.contains(constant)) {
            let (name, used) = (kind.name(), used.map(Constant::name).join(", "));
            let message = format!("--instance {name}: does not use {}; it uses {used}", unused.name());
            return Err(Failure::input(message));
        }
        let mut values = defaults(kind);
        for (value, constant) in values.iter_mut().zip(used) {
            *value = given.get(constant).unwrap_or(*value);
        }
        let (constants, hard) = (kind.named(values), Arc::new(kind.build(values)?));
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
