//! `pasta demo`: one small problem on which noise that grows with the distance breaks plain SGD.

mod findings;
mod page;

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use findings::Findings;
use indicatif::ProgressBar;
use pasta_opt::prelude::*;
use rayon::prelude::*;

use crate::error::{Exit, Failure};
use crate::report;

/// Show in seconds what the rest of the program is for
///
/// Minimises f(x) = x^2/2 + sin^2 x from samples whose noise grows with the distance from the start, many
/// times over: with PASTA, and with SGD at the two step sizes that theory without such noise gives. Says what
/// PASTA was predicted to cost and to reach, what happened, and writes a page with the curves. The same seed
/// gives the same numbers and the same page, byte for byte.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Folder for the page, index.html; made if it is not there
    #[arg(long, short, value_name = "DIR", default_value = "pasta-demo")]
    output: PathBuf,

    /// Which random numbers: another seed gives other runs, independent of these
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
/// Runs of each method.
const RUNS: u64 = 64;
/// Runs of each method whose curves are drawn.
const DRAWN: usize = 3;

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    // A folder that cannot be had is told before the work, not after.
    report::folder(&arguments.output)?;
    let forecast = Forecast::new().map_err(broken)?;
    let rounds = forecast.play(arguments.seed)?;
    let findings = Findings::new(&forecast, arguments.seed, &rounds)?;
    let page = page::page(&forecast, &findings, &rounds).html()?;
    let path = report::write(&arguments.output, "index.html", &page)?;
    say(&if arguments.json { findings.json(&path)? } else { findings.text(&path) })?;
    Ok(Exit::Done)
}

/// The problem is fixed, so nothing of it can be refused unless the program itself is wrong.
fn broken(cause: impl std::fmt::Display) -> Failure {
    Failure::system(format!("the demonstration cannot run: {cause}"))
}

fn say(text: &str) -> Result<(), Failure> {
    match writeln!(io::stdout().lock(), "{text}") {
        // Whoever reads has read enough.
        Err(cause) if cause.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::system(format!("cannot write to the standard output: {cause}")))
        }
        _ => Ok(()),
    }
}

/// What is known before the first sample.
struct Forecast {
    oracle: Noisy,
    smoothness: f64,
    gap: f64,
    /// Theorem 3.
    pasta: Plan,
    /// What the same theorem says to someone who believes that the noise is b everywhere: one sample a step,
    /// eta = eps^2/(2 L b^2).
    bounded: Plan,
    /// SGD with one sample a step that knows how far it may go in its own time.
    horizon: Plan,
}

impl Forecast {
    fn new() -> Result<Self, Box<dyn std::error::Error>> {
        let bowl = SineBowl { dimension: 1 };
        let smoothness = bowl.facts().smoothness.ok_or("the objective is not smooth")?;
        let gap = bowl.gap(&[START]);
        let Noise { growth, floor, .. } = NOISE;
        let honest = Smooth { smoothness, gap, growth, floor, variance: None, target: TARGET };
        let naive = Smooth { growth: 0.0, variance: Some(floor * floor), ..honest };
        Ok(Self {
            oracle: Noisy::new(Box::new(bowl), NOISE, vec![START])?,
            smoothness,
            gap,
            pasta: honest.plan()?,
            bounded: naive.plan()?,
            horizon: HorizonSgd { smoothness, gap, growth, floor, target: TARGET }.plan()?,
        })
    }

    /// eps^2: what |grad f|^2 shall come down to.
    fn goal(&self) -> f64 {
        self.pasta.guarantee.bound
    }

    /// All runs. Each has a seed of its own, so the threads that share them out leave no trace.
    fn play(&self, seed: u64) -> Result<Vec<Round>, Failure> {
        // Draws nothing where stderr is not a terminal.
        let progress = ProgressBar::new(RUNS);
        let rounds: Result<Vec<Round>, _> = (0..RUNS)
            .into_par_iter()
            .map(|run| {
                // No two seeds below 2^58 share a run.
                let round = self.round(seed.wrapping_mul(RUNS).wrapping_add(run));
                progress.inc(1);
                round.map_err(|cause| cause.to_string())
            })
            .collect();
        progress.finish_and_clear();
        rounds.map_err(broken)
    }

    fn round(&self, seed: u64) -> Result<Round, Box<dyn std::error::Error>> {
        let sgd = |eta, steps: u128| {
            let rule = Rule::Sgd { eta };
            Baseline::start(&self.oracle, rule, u64::try_from(steps)?, 1, &[START], seed)
                .map_err(Box::<dyn std::error::Error>::from)
                .and_then(|walk| Ok(self.follow(walk)?))
        };
        let mut batches = Vec::new();
        let walk = Pasta::start(&self.oracle, self.pasta.schedule.clone(), &[START], seed)?;
        let pasta = self.follow(walk.tee(|record, _| batches.push(record.n)))?;
        let eta = self.bounded.schedule.eta;
        Ok(Round {
            classical: sgd(Sequence::Constant(1.0 / self.smoothness), pasta.samples)?,
            bounded: sgd(eta, self.bounded.schedule.total_steps())?,
            patient: sgd(eta, pasta.samples)?,
            pasta,
            batches,
        })
    }

    /// Walks to the end and keeps the mean of |grad f|^2 over x_0 .. x_{K-1}, which is what Theorem 3 bounds.
    fn follow(&self, mut walk: impl Walk) -> Result<Run, OracleError> {
        let objective = self.oracle.objective();
        let mut gradient = vec![0.0; objective.dim()];
        let (mut sum, mut mark) = (0.0, 1);
        let mut trail = Vec::new();
        loop {
            objective.gradient(&walk.state().x, &mut gradient);
            let here: f64 = gradient.iter().map(|g| g * g).sum();
            let advance = walk.advance()?;
            let (steps, samples) = (walk.state().step, walk.state().ledger.samples);
            match advance {
                Advance::Step(_) => {
                    sum += here;
                    if steps == mark {
                        trail.push((samples as f64, sum / steps as f64));
                        // Even on a logarithmic axis.
                        mark = (mark + 1).max((mark as f64 * 1.02) as u64);
                    }
                }
                Advance::Check => {}
                Advance::Stop(stop) => {
                    let measure = sum / steps as f64;
                    trail.push((samples as f64, measure));
                    let diverged = match stop {
                        Stop::Diverged(divergence) => Some(divergence.step()),
                        _ => None,
                    };
                    return Ok(Run { steps, samples, measure, diverged, trail });
                }
            }
        }
    }
}

/// One run of every method, all with the same seed.
struct Round {
    pasta: Run,
    /// N_t.
    batches: Vec<u64>,
    /// eta = 1/L.
    classical: Run,
    /// eta = eps^2/(2 L b^2), for as long as its theory says.
    bounded: Run,
    /// The same for as many samples as PASTA had.
    patient: Run,
}

struct Run {
    steps: u64,
    samples: u128,
    /// The mean of |grad f|^2 over the iterates.
    measure: f64,
    /// The step at which it diverged, if it did.
    diverged: Option<u64>,
    /// Samples so far and the measure so far.
    trail: Vec<(f64, f64)>,
}
