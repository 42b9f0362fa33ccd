//! `pasta solve` and `pasta resume`: a run with progress, trace, checkpoint and a final table.

mod folder;
mod progress;
mod summary;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Args;
use folder::Folder;
use pasta_opt::prelude::*;
use pasta_opt::trace::{Line, is_milestone};
use progress::Progress;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::error::{Exit, Failure};
use crate::spec::{self, Method, Overrides, Spec};

/// Run what a problem file describes: a problem, its noise, and a recipe or another method.
///
/// A file has the tables [problem], [noise] and [recipe]:
///
///     seed = 1
///     output = "runs/bowl"        # trace, checkpoint, result; nothing is written without it
///
///     [problem]
///     name = "sine-bowl"
///     start = [1.2]
///
///     [noise]
///     tail = "gaussian"           # or student-t (dof), lognormal (sigma), two-point (probability)
///     growth = 9.0                # B: the variance is B^2 |x - x0|^2 + b^2
///     floor = 1.0                 # b
///
///     [recipe]
///     name = "smooth"             # any recipe of `pasta plan`, or sgd, sgd-decaying, clipped-sgd,
///     target = 0.1                # halpern, krasnoselskii-mann, storm
///     constants = "problem"       # or a table [recipe.constants] with smoothness, gap, ..
///
/// Ctrl-C and SIGTERM write a checkpoint; `pasta resume DIR` goes on, bit for bit.
#[derive(Args)]
#[command(verbatim_doc_comment)]
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
#[derive(Args)]
pub(crate) struct ResumeArguments {
    /// The output folder of the run.
    folder: PathBuf,
    /// A new budget, in samples of the whole run.
    #[arg(long, value_name = "SAMPLES")]
    budget: Option<u64>,
    /// Threads; does not change a bit of the result.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
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
    /// Seconds between checkpoints, in case the machine fails.
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    checkpoint_every: f64,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let spec = spec::read(&arguments.file, &arguments.overrides)?;
    let folder = match &spec.output {
        Some(path) => Some(Folder::create(path, &spec.effective, arguments.overwrite)?),
        None => None,
    };
    let rescue = arguments.file.with_extension("interrupted");
    with_threads(spec.threads, || go(&spec, folder, &rescue, None, arguments.style))
}

pub(crate) fn resume(arguments: &ResumeArguments) -> Result<Exit, Failure> {
    let ResumeArguments { folder: path, budget, threads, style } = arguments;
    let overrides = Overrides { budget: *budget, threads: *threads, ..Overrides::default() };
    let spec = spec::read(&Folder::spec_file(path)?, &overrides)?;
    let (folder, checkpoint) = Folder::open(path)?;
    with_threads(spec.threads, || go(&spec, Some(folder), path, Some(checkpoint), *style))
}

fn with_threads(
    threads: Option<usize>,
    work: impl FnOnce() -> Result<Exit, Failure> + Send,
) -> Result<Exit, Failure> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0)).build();
    pool.map_err(|error| Failure::system(format!("no threads: {error}")))?.install(work)
}

/// How the loop ended.
enum End {
    Stopped(Stop),
    Signalled(Exit),
}

fn go(
    spec: &Spec,
    mut folder: Option<Folder>,
    rescue: &Path,
    checkpoint: Option<Checkpoint>,
    style: Style,
) -> Result<Exit, Failure> {
    let signals = Signals::register()?;
    let mut walk = walk(spec, checkpoint)?;
    let end = match spec.budget {
        Some(budget) => drive((&mut walk).budget(budget), spec, &mut folder, &signals, style),
        None => drive(&mut walk, spec, &mut folder, &signals, style),
    };
    // Whatever happened, what was computed is kept.
    let saved = match &mut folder {
        Some(folder) => folder.save(&walk.checkpoint()),
        None => Ok(()),
    };
    let end = end?;
    saved?;
    match end {
        End::Signalled(exit) => {
            let kept = match folder {
                Some(folder) => folder.path().to_owned(),
                None => Folder::rescue(rescue, &spec.effective, &walk.checkpoint())?,
            };
            progress::say(&format!(
                "stopped at step {} with {} samples; go on with: pasta resume {}",
                walk.state().step,
                walk.state().ledger.samples,
                kept.display()
            ));
            Ok(exit)
        }
        End::Stopped(stop) => {
            let summary = summary::Summary::new(spec, walk.state(), stop);
            if let Some(folder) = &folder {
                folder.write_result(&summary)?;
            }
            summary.print(style.json)?;
            Ok(if matches!(stop, Stop::Diverged(_)) { Exit::Diverged } else { Exit::Done })
        }
    }
}

/// The walk that the file asks for, from its start or from a checkpoint.
fn walk<'s>(spec: &'s Spec, checkpoint: Option<Checkpoint>) -> Result<Box<dyn Walk + 's>, Failure> {
    let (oracle, start, seed) = (&spec.oracle, spec.oracle.start(), spec.seed);
    match (&spec.method, checkpoint) {
        (Method::Baseline { settings, .. }, None) => {
            let run = Baseline::start(oracle, settings.rule, settings.steps, settings.batch, start, seed);
            Ok(Box::new(run.map_err(Failure::input)?))
        }
        (Method::Baseline { .. }, Some(checkpoint)) => {
            Ok(Box::new(Baseline::resume(oracle, checkpoint).map_err(Failure::input)?))
        }
        (Method::Recipe { plan: Plan { schedule, .. }, .. } | Method::Named { schedule, .. }, None) => {
            Ok(Box::new(Pasta::start(oracle, schedule.clone(), start, seed).map_err(Failure::input)?))
        }
        (Method::Recipe { .. } | Method::Named { .. }, Some(checkpoint)) => {
            Ok(Box::new(Pasta::resume(oracle, checkpoint).map_err(Failure::input)?))
        }
    }
}

/// The loop: step, trace, look at the clock now and then.
fn drive(
    mut walk: impl Walk,
    spec: &Spec,
    folder: &mut Option<Folder>,
    signals: &Signals,
    style: Style,
) -> Result<End, Failure> {
    let mut progress = Progress::start(&walk, spec.budget, style.checkpoint_every);
    if let Some(folder) = folder.as_mut() {
        folder.save(&walk.checkpoint())?;
    }
    loop {
        match walk.advance().map_err(Failure::system)? {
            Advance::Stop(stop) => return Ok(End::Stopped(stop)),
            Advance::Step(record) => {
                let state = walk.state();
                if let Some(folder) = folder.as_mut()
                    && is_milestone(state.step)
                {
                    folder.trace(&Line::new(&record, state, Some(spec.oracle.objective())))?;
                }
            }
        }
        if let Some(exit) = signals.received() {
            return Ok(End::Signalled(exit));
        }
        if progress.tick(&walk)
            && let Some(folder) = folder.as_mut()
        {
            folder.save(&walk.checkpoint())?;
        }
    }
}

/// Ctrl-C and SIGTERM, noticed between steps. A second one ends the program at once.
struct Signals(Arc<AtomicUsize>);

impl Signals {
    fn register() -> Result<Self, Failure> {
        let received = Arc::new(AtomicUsize::new(0));
        let again = Arc::new(std::sync::atomic::AtomicBool::new(false));
        for (signal, exit) in [(SIGINT, Exit::Interrupted), (SIGTERM, Exit::Terminated)] {
            flag::register_conditional_shutdown(signal, exit as i32, Arc::clone(&again))
                .and_then(|_| flag::register(signal, Arc::clone(&again)))
                .and_then(|_| flag::register_usize(signal, Arc::clone(&received), signal as usize))
                .map_err(|error| Failure::system(format!("cannot watch for signals: {error}")))?;
        }
        Ok(Self(received))
    }

    fn received(&self) -> Option<Exit> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            n if n == SIGTERM as usize => Some(Exit::Terminated),
            _ => Some(Exit::Interrupted),
        }
    }
}
