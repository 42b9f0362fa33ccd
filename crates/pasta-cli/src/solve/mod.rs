//! `pasta solve` and `pasta resume`: a run with progress, trace, checkpoint and a final table.

mod folder;
mod progress;
mod summary;

use std::path::{Path, PathBuf};

use clap::Args;
use folder::Keep;
pub(crate) use folder::{point as point_of, spec_file};
use pasta_opt::prelude::*;
use pasta_opt::trace::{Attempt, Line, is_milestone};
use pasta_opt::walk::Progress as CertificateProgress;
use progress::Progress;
use summary::Summary;

use crate::pilot;
use crate::spec::{self, Method, Overrides, Spec};
use pasta_report::console::{Exit, Failure, Signals, flags, say, with_threads};

/// The long help: a whole file, ready to copy.
const HELP: &str = r#"Run what a problem file describes: a problem, its noise, and a recipe or another method.

A file has the tables [problem], [noise] and [recipe]:

    seed = 1
    budget = 1e9                # stop before drawing more samples than this (optional)
    threads = 2                 # changes the time, not a bit of the result (optional)
    output = "runs/bowl"        # trace, checkpoint, result; nothing is written without it

    [problem]
    name = "sine-bowl"
    start = [1.2]

    [noise]
    tail = "gaussian"           # or student-t (dof), lognormal (sigma), two-point (probability)
    growth = 9.0                # B: the variance is B^2 |x - x0|^2 + b^2
    floor = 1.0                 # b
    exponent = 2.0              # another power of |x - x0| than 2 breaks the theorems (optional)

    [recipe]
    name = "smooth"             # any recipe of `pasta plan`, or sgd, sgd-decaying, clipped-sgd,
    target = 0.1                # halpern, krasnoselskii-mann, storm
    constants = "problem"       # or a table [recipe.constants] with smoothness, gap, ..

    [certificate]               # optional: stop when |grad f| <= target is certified
    target = 0.1                # default: the recipe's, if it promises a small gradient
    delta = 0.05                # the probability that the certificate may be wrong
    share = 0.5                 # of all samples, at most so many go into certificates
    pilot = 1e5                 # samples for a forecast before the run; 0 is none
    kurtosis = 100              # assumed; or variance = V, or growth = B with floor = b (declared);
                                # without any, the growth and floor of [noise]

A table of constants may have a line estimated = ["growth", "floor"], as `pasta calibrate` prints it: these
were measured, and with measured constants nothing is promised.

Flags override the file. Ctrl-C and SIGTERM write a checkpoint into the output folder, or into
FILE.interrupted if there is none; `pasta resume DIR` goes on, bit for bit."#;

/// Run what a problem file describes: a problem, its noise, and a recipe or another method.
#[derive(Args)]
#[command(long_about = HELP)]
pub(crate) struct Arguments {
    /// The problem file.
    file: PathBuf,
    #[command(flatten)]
    overrides: Overrides,
    #[command(flatten)]
    style: Style,
    /// Replace a run that the output folder already holds.
    #[arg(long)]
    overwrite: bool,
}

/// Go on with a run that was interrupted or ran out of budget, bit for bit as if it had not stopped.
///
/// Certificates go on where they were, too; but the attempt that a run makes when its budget ends counts as one.
///
/// A new budget or number of threads is written into the folder's problem.toml, for the next time.
#[derive(Args)]
pub(crate) struct ResumeArguments {
    /// The output folder of the run.
    folder: PathBuf,
    /// A new budget, in samples of the whole run.
    #[arg(long, allow_negative_numbers = true, value_name = "SAMPLES", value_parser = flags::sample_count)]
    budget: Option<u128>,
    /// Threads; does not change a bit of the result.
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = flags::thread_count())]
    threads: Option<u16>,
    #[command(flatten)]
    style: Style,
}

/// How a run talks.
#[derive(Args, Clone, Copy)]
struct Style {
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
    /// Seconds between checkpoints, in case the machine fails; inf is never.
    #[arg(long, allow_negative_numbers = true, value_name = "SECONDS", value_parser = seconds)]
    #[arg(default_value_t = 10.0)]
    checkpoint_every: f64,
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|s| *s >= 0.0);
    seconds.ok_or_else(|| "expected a number of seconds, not negative".into())
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let Arguments { file, overrides, style, overwrite } = arguments;
    let mut spec = spec::read(file, overrides)?;
    with_threads(spec.threads, || {
        // The folder comes last: what is in it stays as it is until the run is known to be possible.
        drop(spec.walk(None)?);
        let signals = Signals::register()?;
        if let Err(exit) = pilot::forecast(&mut spec, &signals)? {
            return Ok(exit);
        }
        let walk = certified(&spec, spec.walk(None)?, None)?;
        let keep = match &spec.output {
            Some(path) => Keep::create(path, &spec.effective, *overwrite)?,
            None => Keep::in_memory(),
        };
        go(&spec, walk, keep, &signals, &file.with_extension("interrupted"), *style)
    })
}

pub(crate) fn resume(arguments: &ResumeArguments) -> Result<Exit, Failure> {
    let ResumeArguments { folder: path, budget, threads, style } = arguments;
    let overrides = Overrides { budget: *budget, threads: *threads, ..Overrides::default() };
    let spec = spec::read(&spec_file(path)?, &overrides)?;
    let checkpoint = folder::checkpoint(path)?;
    with_threads(spec.threads, || {
        let walk = go_on(&spec, path, checkpoint)?;
        let keep = Keep::open(path, &spec.effective, &*walk)?;
        go(&spec, walk, keep, &Signals::register()?, path, *style)
    })
}

/// The walk with its certificates, if the file asks for any.
fn certified<'s>(
    spec: &'s Spec,
    walk: Box<dyn Walk + 's>,
    progress: Option<CertificateProgress>,
) -> Result<Box<dyn Walk + 's>, Failure> {
    let Some(certification) = &spec.certification else { return Ok(walk) };
    let left = spec.budget.map(|budget| budget.saturating_sub(certification.pilot_samples()));
    let rule = StopRule { budget: left, ..certification.rule };
    Ok(Box::new(walk.certified(&spec.oracle, rule, spec.seed, progress).map_err(Failure::input)?))
}

/// The walk of a checkpoint, which must be the one that the file asks for: the final table states the file's
/// promise.
fn go_on<'s>(spec: &'s Spec, path: &Path, checkpoint: Checkpoint) -> Result<Box<dyn Walk + 's>, Failure> {
    let refuse = |what: &str| {
        let hint = "problem.toml must stay as the run wrote it; for another run there is `pasta solve`";
        Failure::input(format!("{}: {what}", path.display())).hint(hint)
    };
    let certification = checkpoint.certification.clone();
    if certification.is_some() && spec.certification.is_none() {
        return Err(refuse("the run has been making certificates, but problem.toml asks for none"));
    }
    let drawn = checkpoint.state.ledger.samples
        + certification.as_ref().map_or(0, |progress| progress.samples)
        + spec.certification.map_or(0, |certification| certification.pilot_samples());
    if let Some(budget) = spec.budget.filter(|budget| *budget < drawn) {
        let message = format!("the run has already drawn {drawn} samples, more than the budget of {budget}");
        return Err(Failure::input(format!("{}: {message}", path.display())));
    }
    let seed = checkpoint.seed;
    let same_recipe = checkpoint.method == spec.walk(None)?.checkpoint().method;
    let walk: Box<dyn Walk + 's> = match spec.method {
        Method::Baseline { .. } => {
            Box::new(Baseline::resume(&spec.oracle, checkpoint).map_err(|error| refuse(&error.to_string()))?)
        }
        Method::Recipe { .. } | Method::Named { .. } => {
            Box::new(Pasta::resume(&spec.oracle, checkpoint).map_err(|error| refuse(&error.to_string()))?)
        }
    };
    if !same_recipe {
        return Err(refuse("the checkpoint is of another [recipe] than problem.toml has"));
    }
    if seed != spec.seed {
        let asked = spec.seed;
        return Err(refuse(&format!("the checkpoint is of seed {seed}, but problem.toml has seed {asked}")));
    }
    certified(spec, walk, certification)
}

/// How the loop ended.
enum End {
    Stopped(Stop),
    Signalled(Exit),
}

/// Runs to an end, keeps what there is to keep, and reports.
fn go(
    spec: &Spec,
    mut walk: Box<dyn Walk + '_>,
    mut keep: Keep,
    signals: &Signals,
    rescue: &Path,
    style: Style,
) -> Result<Exit, Failure> {
    if let Method::Recipe { doubts, .. } = &spec.method
        && !doubts.is_empty()
    {
        say(&format!("note: nothing is promised for this run: {}", doubts.join("; ")));
    }
    if spec.certification.is_some() && spec.oracle.objective().facts().smoothness.is_none() {
        say(
            "note: f has kinks, where |grad f| need not become small; `pasta certify --moreau` is for such f",
        );
    }
    if spec.recipe_over_certificate() > 1.0 {
        say(
            "note: the recipe aims at a coarser target than the certificate's; it may end before it is certified",
        );
    }
    let end = match spec.budget {
        // Certificates count against the budget too: with them it is theirs to keep.
        Some(budget) if spec.certification.is_none() => {
            drive((&mut walk).budget(budget), spec, &mut keep, signals, style)
        }
        _ => drive(&mut walk, spec, &mut keep, signals, style),
    };
    // Whatever happened, what was computed is kept.
    let saved = keep.save(&walk);
    let end = end?;
    saved?;
    match end {
        End::Signalled(exit) => {
            let (step, samples) = (walk.state().step, walk.state().ledger.samples);
            let path = keep.or_rescue(rescue, &spec.effective, &walk)?;
            say(&format!(
                "stopped at step {step} with {samples} samples; the run is kept in {}",
                path.display()
            ));
            say(&format!("go on with: pasta resume {}", path.display()));
            Ok(exit)
        }
        End::Stopped(stop) => {
            let summary = Summary::new(spec, &*walk, stop);
            keep.write_result(&summary)?;
            summary.print(style.json)?;
            match (stop, keep.path()) {
                (Stop::Diverged(divergence), _) => say(&format!("diverged: {divergence}")),
                (Stop::OutOfBudget, Some(path)) => {
                    say(&format!("go on with: pasta resume {} --budget SAMPLES", path.display()));
                }
                _ => {}
            }
            let certified = walk.certification().is_none_or(CertificateProgress::is_certified);
            Ok(match stop {
                Stop::Diverged(_) => Exit::Diverged,
                _ if !certified => Exit::NotCertified,
                _ => Exit::Done,
            })
        }
    }
}

/// The loop: step, trace, look at the clock now and then.
fn drive(
    mut walk: impl Walk,
    spec: &Spec,
    keep: &mut Keep,
    signals: &Signals,
    style: Style,
) -> Result<End, Failure> {
    let mut progress = Progress::start(&walk, spec.likely_end(), style.checkpoint_every);
    keep.save(&walk)?;
    loop {
        let attempts = walk.certification().map_or(0, |progress| progress.attempts);
        let due = match walk.advance().map_err(Failure::system)? {
            Advance::Stop(stop) => return Ok(End::Stopped(stop)),
            Advance::Step(record) => {
                let state = walk.state();
                if is_milestone(state.step) {
                    keep.trace(&Line::new(&record, state, Some(spec.oracle.objective())))?;
                }
                progress.tick(&walk)
            }
            Advance::Check => {
                if let Some(certification) = walk.certification().filter(|now| now.attempts > attempts)
                    && let Some(line) = Attempt::last(walk.state(), certification)
                {
                    keep.trace_attempt(&line)?;
                }
                progress.check(&walk)
            }
        };
        if let Some(exit) = signals.received() {
            return Ok(End::Signalled(exit));
        }
        if due {
            keep.save(&walk)?;
        }
    }
}
