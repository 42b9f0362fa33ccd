//! The hard instance that the methods are pitted against, with what is proved about it.

use std::f64::consts::{E, PI};
use std::sync::Arc;

use clap::{Arg, ArgMatches};
use pasta_opt::bounds::{CHAIN_NOISE, LowerBound};
use pasta_opt::hard::HardInstance;
use pasta_opt::recipe::{Constant, Constants};
use serde::Serialize;

use crate::hard::Kind;
use pasta_report::console::Failure;
use pasta_report::console::flags::{self, FlagSet};
use pasta_report::constants::Echo;
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

/// The constants of the instance that were given.
pub(super) struct ConstantFlags(pub(super) Constants);

const FLAGS: [Constant; 6] = [Smoothness, MsSmoothness, Gap, Growth, Floor, Target];

impl FlagSet for ConstantFlags {
    fn flags() -> Vec<Arg> {
        FLAGS.map(flag).to_vec()
    }

    fn take(matches: &ArgMatches) -> Self {
        Self(flags::take_constants(matches))
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

/// Longer chains are a mistake: no run here gets to the end of one.
const LONGEST: u64 = 100_000;

/// A hard instance, and the bounds that it proves.
#[derive(Debug, Serialize)]
pub(super) struct Instance {
    pub(super) kind: Kind,
    pub(super) theorem: &'static str,
    pub(super) constants: Echo,
    #[serde(flatten)]
    pub(super) bound: LowerBound,
    pub(super) safe: Safe,
    #[serde(skip)]
    pub(super) hard: Arc<HardInstance>,
    /// (T - 1)/(2p).
    #[serde(skip)]
    pub(super) sharp: f64,
    /// The closed form, which is smaller.
    #[serde(skip)]
    pub(super) closed: f64,
}

/// (T - log(runs/delta))/(2p): with probability 1 - delta none of the runs of a zero-respecting method ends within so
/// many samples. Zero where that says nothing.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Safe {
    pub(super) delta: f64,
    pub(super) runs: usize,
    pub(super) samples: f64,
}

impl Safe {
    /// How often, at most, the check fails by chance though the method respects zeros.
    const DELTA: f64 = 0.05;

    /// A single run needs more than (T - log(1/delta))/(2p) samples: n of them hold Binomial(n, p) reveals, and
    /// P(T reveals or more) <= exp(2 n p - T). All runs do if delta is shared among them.
    fn of(LowerBound { chain, p, .. }: LowerBound, runs: usize) -> Self {
        let samples = (chain as f64 - (runs as f64 / Self::DELTA).ln()) / (2.0 * p);
        Self { delta: Self::DELTA, runs, samples: samples.max(0.0) }
    }
}

impl Instance {
    /// The instance with these constants, and with the defaults for those that are not given, for so many runs of each
    /// method.
    pub(super) fn new(kind: Kind, given: &Constants, runs: usize) -> Result<Self, Failure> {
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
        let hard = Arc::new(kind.build(values)?);
        let bound = *hard.bound();
        let LowerBound { chain, p, .. } = bound;
        if chain > LONGEST {
            return Err(Failure::input(format!(
                "the chain would have T = {chain} coordinates, but this command runs chains of at most {LONGEST}"
            ))
            .hint("take a larger --target or a smaller --gap"));
        }
        let (Some(sharp), Some(closed)) = (bound.sharp_bound, bound.bound) else {
            return Err(Failure::input(format!("no bound at these constants: p = {p:e}")));
        };
        let (theorem, constants) = (kind.theorem(), Echo(kind.named(values)));
        Ok(Self { kind, theorem, constants, bound, safe: Safe::of(bound, runs), hard, sharp, closed })
    }

    /// eps.
    pub(super) fn target(&self) -> f64 {
        self.hard.target()
    }

    /// The constants that are proved for F and its oracle.
    pub(super) fn known(&self) -> Constants {
        let mut constants = self.constants.0;
        constants.set(Smoothness, self.bound.effective_smoothness);
        constants.set(Lipschitz, self.lipschitz());
        constants
    }

    /// G, a bound on |grad F| everywhere. Along u: |f0'| <= 2 eps, phi' <= 15 eps/Delta, and |Fs| is at most what lies
    /// between the chain's infimum and its supremum, scale sqrt(2 pi e) (1 + 2e (T - 1)). Along each of the T
    /// chain coordinates: 2 eps times 23.
    fn lipschitz(&self) -> f64 {
        let LowerBound { chain, scale, distance, .. } = self.bound;
        let (eps, length) = (self.target(), chain as f64);
        let depth = scale * (2.0 * PI * E).sqrt() * (1.0 + 2.0 * E * (length - 1.0));
        // D = Delta/(4 eps).
        let along_u = 2.0 * eps + 3.75 / distance * depth;
        let along_chain = 2.0 * eps * CHAIN_NOISE as f64 * length.sqrt();
        along_u.hypot(along_chain)
    }
}
