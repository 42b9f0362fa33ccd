//! `pasta certify`: how small the gradient at a point is, how sure that is, and on what it rests.

mod point;

use std::path::PathBuf;

use clap::Args;
use pasta_opt::run::Target;
pub(crate) use point::run;

use pasta_report::console::flags::{self, count, number};

/// Bound the gradient at a point from fresh samples, with a confidence level.
///
/// Draws fresh samples at the point, never those that chose it, and stops as soon as they prove that |grad f| is at most the target.
/// Samples alone prove nothing: they cannot rule out a rare event they have not seen. So you declare or assume something about the
/// noise, and the answer repeats it. Exits with 0 if the point is certified and with 4 if it is not. If a declaration is known to be
/// false, the certificate is void (4).
///
/// A simulator is a program, which this command starts. If DIR was not written by your pasta on this machine, add --trust.
#[derive(Args)]
#[command(after_long_help = AFTER_HELP)]
#[expect(clippy::struct_excessive_bools, reason = "flags, each on its own")]
pub(crate) struct Arguments {
    /// A problem file, or the output folder of a run, whose point is certified
    #[arg(value_name = "FILE or DIR")]
    path: PathBuf,
    /// The point: numbers with commas between, or @FILE with a JSON list of numbers [default: the point of DIR]
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    at: Option<String>,
    /// eps: certify |grad f(x)| <= EPS; 1% is a hundredth of the gradient at the start [default: that of the file, in its table certificate or its recipe]
    #[arg(long, value_name = "EPS", allow_hyphen_values = true)]
    target: Option<Target>,
    /// The probability that a false certificate is issued [default: the file's, or 0.05]
    #[arg(long, value_name = "P", allow_hyphen_values = true, value_parser = number)]
    delta: Option<f64>,
    // On what the certificate may rest; without any, on the growth and floor of the table `noise`, as declared by the file.
    /// Declare: E|g - grad f|^2 <= V at the point
    #[arg(long, value_name = "V", allow_hyphen_values = true, value_parser = number, help_heading = BASES)]
    #[arg(conflicts_with_all = ["growth", "floor", "kurtosis", "exact", "approximate"])]
    variance: Option<f64>,
    /// Declare: E|g - grad f|^2 <= B^2 |x - x0|^2 + b^2; with --floor
    #[arg(long, value_name = "B", allow_hyphen_values = true, value_parser = number, help_heading = BASES)]
    #[arg(requires = "floor", conflicts_with_all = ["kurtosis", "exact", "approximate"])]
    growth: Option<f64>,
    /// Declare b of --growth
    #[arg(long, value_name = "b", allow_hyphen_values = true, value_parser = number, help_heading = BASES)]
    #[arg(requires = "growth")]
    floor: Option<f64>,
    /// Assume kurtosis <= KAPPA; events rarer than 1/KAPPA would break the bound [if no number: 100]
    #[arg(long, value_name = "KAPPA", allow_negative_numbers = true, value_parser = number, help_heading = BASES)]
    #[arg(num_args = 0..=1, default_missing_value = "100", conflicts_with_all = ["exact", "approximate"])]
    kurtosis: Option<f64>,
    /// Use the problem's own formula instead of samples (the search of a Moreau certificate still draws some)
    #[arg(long, help_heading = BASES, conflicts_with = "approximate")]
    exact: bool,
    /// A normal approximation: cheap, and not a certificate
    #[arg(long, help_heading = BASES)]
    approximate: bool,
    /// With a term: gamma of the gradient mapping that is certified [default: about 1/L, from a few samples]
    #[arg(long, value_name = "GAMMA", allow_hyphen_values = true, value_parser = number)]
    gamma: Option<f64>,
    // What else is declared about f, and what follows from it.
    /// Declare: f is convex and a minimiser is within R of the point; then f - inf f <= R |grad f|
    #[arg(long, value_name = "R", allow_hyphen_values = true, value_parser = number, help_heading = DECLARED)]
    radius: Option<f64>,
    /// Declare: 2 MU (f - inf f) <= |grad f|^2 (strongly convex, or PL); then f - inf f <= |grad f|^2/(2 MU)
    #[arg(long, value_name = "MU", allow_hyphen_values = true, value_parser = number, help_heading = DECLARED)]
    mu: Option<f64>,
    /// For f with kinks: certify the gradient of the Moreau envelope phi_{1/LAMBDA} instead; with --rho
    #[arg(long, value_name = "LAMBDA", allow_hyphen_values = true, value_parser = number, help_heading = DECLARED)]
    #[arg(requires = "rho", conflicts_with_all = ["radius", "mu", "approximate"])]
    moreau: Option<f64>,
    /// Declare: f + RHO/2 |x|^2 is convex (0 for a convex f)
    #[arg(long, value_name = "RHO", allow_hyphen_values = true, value_parser = number, help_heading = DECLARED)]
    #[arg(requires = "moreau")]
    rho: Option<f64>,
    /// Points that a Moreau certificate rests on: 1 for a smooth f, more for kinks [default: 256]
    #[arg(long, value_name = "K", allow_hyphen_values = true, value_parser = count, help_heading = DECLARED)]
    #[arg(requires = "moreau")]
    points: Option<u64>,
    /// Number your attempts: the K-th gets fresh samples and DELTA/(K(K+1)) of the error probability
    ///
    /// Retrying until one attempt succeeds inflates the error rate: two attempts with their own seeds may be wrong with
    /// probability 2 delta. Attempts numbered from --attempt 1 on share delta, as those of a certified run do: the K-th gets
    /// delta/(K(K+1)), so that all of them together never exceed it.
    #[arg(long, value_name = "K", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    attempt: Option<u64>,
    /// Draw at most this many samples
    #[arg(long, value_name = "SAMPLES", allow_negative_numbers = true, value_parser = flags::sample_count)]
    budget: Option<u128>,
    /// Seed of the samples; use another one for a second certificate of the same run [default: the file's]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = flags::seed())]
    seed: Option<u64>,
    /// Threads; does not change a bit of the result
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = flags::thread_count())]
    threads: Option<u16>,
    /// Start the simulator of a DIR that your pasta did not write on this machine
    #[arg(long)]
    trust: bool,
    /// Print one JSON object, in full precision, instead of a table
    #[arg(long)]
    json: bool,
}

const BASES: &str = "What the certificate assumes (default: the variance that [noise] states)";
const DECLARED: &str = "Declared about f, for a bound on f - inf f or for kinks";

const AFTER_HELP: &str = "\
Examples:
  # The point that a run found.
  pasta solve examples/sine-bowl.toml --output run
  pasta certify run --target 0.1

  # Any point of any problem, if its noise has no event rarer than 1 in 100.
  pasta certify examples/sine-bowl.toml --at 0.001 --target 0.1 --kurtosis

  # What it means for f, if f is declared to be strongly convex.
  pasta certify examples/quadratic-pl.toml --at 0.01,0.02 --target 0.1 --mu 0.5

  # At a kink the gradient says nothing; that of the Moreau envelope does.
  pasta certify examples/kinked-well.toml --at 0.5 --target 0.5 --moreau 3 --rho 1

The evidence, how often certificates are wrong for every basis and noise, is
measured by: pasta-lab self-test

docs/certificate.md has the method and its proof.";
