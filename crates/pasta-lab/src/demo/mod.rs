//! `pasta-lab demo`: one small problem on which noise that grows with the distance breaks plain SGD, told from the first
//! look at the noise to the certificate of a point.

mod certified;
mod charts;
mod cost;
mod findings;
mod methods;
mod noise;
mod runs;
mod story;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use findings::Findings;
use pasta_opt::prelude::*;
use pasta_opt::problems::SineBowl;

use pasta_report as report;
use pasta_report::console::{Exit, Failure, answer};

/// Diagnose noise, forecast a cost, watch SGD fail and PASTA arrive: the whole story in seconds
///
/// Minimises f(x) = x^2/2 + sin^2 x from samples whose noise grows with the distance from the start. Measures that
/// noise, predicts what a run will cost, and runs many times over: SGD at the two step sizes that theory without such
/// noise gives, PASTA, and PASTA that may stop on a certificate. Says what was predicted and what happened, and writes a
/// page with the curves. The same seed gives the same numbers and the same page, byte for byte.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Folder for the page, index.html; made if it is not there
    #[arg(long, short, value_name = "DIR", default_value = "pasta-demo")]
    output: PathBuf,

    /// Seed of all randomness: another one gives other runs, independent of these
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Print all numbers as one JSON object instead of the tables
    #[arg(long)]
    json: bool,
}

/// x0.
const START: f64 = 1.2;
/// A sample at x has variance B^2 |x - x0|^2 + b^2.
const NOISE: Noise = Noise { growth: 9.0, floor: 1.0, tail: Tail::Gaussian };
/// eps. Large enough that SGD can be given every sample that PASTA had, in seconds.
const TARGET: f64 = 0.25;
/// How a run of `pasta solve` is certified where its file does not say: the probability of a false certificate, ..
const DELTA: f64 = 0.05;
/// .. the part of the samples that certificates may take, ..
const SHARE: f64 = 0.5;
/// .. and the samples of the pilot.
const PILOT: u128 = 100_000;
/// Runs of each method.
const RUNS: u64 = 64;
/// Runs of each method whose curves are drawn.
const DRAWN: usize = 3;

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    // A folder that cannot be had is told before the work, not after.
    report::folder_for_page(&arguments.output)?;
    let setting = Setting::new().map_err(broken)?;
    // Of the first run; the others count on from it. No two seeds below 2^58 share a run.
    let seed = arguments.seed.wrapping_mul(RUNS);
    let calibration = noise::measure(&setting, seed)?;
    let pilot = cost::pilot(&setting, seed)?;
    let rounds = runs::play(&setting, seed)?;
    let findings = Findings::new(&setting, arguments.seed, &calibration, &pilot, &rounds)?;
    let page = story::page(&setting, &findings, &calibration, &rounds).html()?;
    let path = report::write(&arguments.output, "index.html", &page)?;
    answer(&if arguments.json { findings.json(&path)? } else { findings.text(&path) })?;
    Ok(Exit::Done)
}

/// The problem is fixed, so nothing of it can be refused unless the program itself is wrong.
fn broken(cause: impl std::fmt::Display) -> Failure {
    Failure::system(format!("the demonstration cannot run: {cause}"))
}

/// The problem, and what theory says before the first sample.
struct Setting {
    oracle: Arc<Noisy>,
    /// Theorem 3 with the true constants.
    recipe: Smooth,
    pasta: Plan,
    /// What the same theorem says to someone who believes that the noise is b everywhere: one sample a step,
    /// eta = eps^2/(2 L b^2).
    bounded: Plan,
    /// SGD with one sample a step that knows how far it may go in its own time.
    horizon: Plan,
}

impl Setting {
    fn new() -> Result<Self, Box<dyn std::error::Error>> {
        let bowl = SineBowl { dimension: 1 };
        let smoothness = bowl.facts().smoothness.ok_or("the objective is not smooth")?;
        let gap = bowl.gap(&[START]);
        let Noise { growth, floor, .. } = NOISE;
        let recipe = Smooth { smoothness, gap, growth, floor, variance: None, target: TARGET };
        let naive = Smooth { growth: 0.0, variance: Some(floor * floor), ..recipe };
        Ok(Self {
            oracle: Arc::new(Noisy::new(Box::new(bowl), NOISE, vec![START])?),
            recipe,
            pasta: recipe.plan()?,
            bounded: naive.plan()?,
            horizon: HorizonSgd { smoothness, gap, growth, floor, target: TARGET }.plan()?,
        })
    }

    /// A gate for one run.
    fn gate(&self, seed: u64) -> Gate {
        Gate::over(Arc::<Noisy>::clone(&self.oracle), seed)
    }

    /// eps^2: what |grad f|^2 shall come down to.
    fn goal(&self) -> f64 {
        self.pasta.guarantee.bound
    }

    /// When a run may stop: as `pasta solve` does, with B and b declared as they are.
    fn stop_rule() -> StopRule {
        let Noise { growth, floor, .. } = NOISE;
        let basis = Basis::Growth { growth, floor, distance: 0.0 };
        StopRule { target: TARGET, delta: DELTA, basis, share: SHARE }
    }

    /// |grad f|^2, by formula. There is one coordinate.
    fn squared_gradient(&self, x: &[f64]) -> f64 {
        let mut gradient = [0.0];
        self.oracle.objective().gradient(x, &mut gradient);
        gradient[0] * gradient[0]
    }
}
