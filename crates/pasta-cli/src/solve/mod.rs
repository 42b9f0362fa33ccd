//! `pasta solve` and `pasta resume`: a run with progress, trace, checkpoint and a final table.

mod folder;
mod overriding;
mod page;
mod progress;
mod result;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use folder::RunFolder;
pub(crate) use folder::{point as point_of, point_in, result_file, spec_file};
use overriding::{Flags, Quick};
use page::LivePage;
use pasta_opt::prelude::*;
use pasta_opt::run::{Mark, RunError, Target, Task};
use pasta_opt::trace::{self, is_milestone};
use progress::Progress;
use result::Outcome;

use crate::check;
use crate::spec::trust::Origin;
use crate::spec::{self, Overrides, QuickTry, Spec};
use crate::waiting::Waiting;
use crate::world;
use pasta_report::answer;
use pasta_report::console::{self, Exit, Failure, Signals, duration, flags, say, say_over_bar, with_threads};
use pasta_report::number::{grouped, rough};

/// The long help: a whole file, ready to copy.
const HELP: &str = r#"Run what a problem file describes: a problem, its noise, and a method.

A file has the tables [problem], [noise] and [recipe]:

    seed = 1
    budget = 1e9            # stop before drawing more samples (optional)
    no_limit = false        # without a budget: go on where the target is
                            # not within reach
    on_nan = "stop"         # or "skip": leave out samples that are NaN or
                            # infinite where others are not (no certificate)
    threads = 2             # changes the time, not a bit of the result
    output = "runs/bowl"    # trace, checkpoint, result (optional)
    price = "0.2 EUR"       # of a sample (optional): what the run costs

    [problem]
    name = "sine-bowl"      # `pasta problems` lists all
    start = [1.2]

    [noise]
    tail = "gaussian"       # or student-t, lognormal, two-point
    growth = 9.0            # B: the variance is B^2 |x - x0|^2 + b^2
    floor = 1.0             # b

    [recipe]
    name = "smooth"         # a recipe of `pasta plan`, or another method:
    target = 0.1            # auto, sgd, adam, dog, ..
    constants = "problem"   # or a table [recipe.constants]
    fallback = "auto"       # optional: auto beside the recipe, each with half
                            # of the budget; the certificate chooses

    [certificate]           # optional: stop when |grad f| <= target is
    target = 0.1            # certified
    delta = 0.05            # the probability that it may be wrong
    share = 0.5             # of all samples, at most, for certificates
    pilot = 1000            # the run's first samples forecast its cost
                            # (default 1000; "none" for no forecast)
    kurtosis = 100          # assumed; or variance = V, or growth = B with
                            # floor = b (declared); or [noise], without any

A table of data is a problem too, without [noise]: [problem] has
table = "train.csv", loss = "logistic", and what flags of `pasta fit` say.

So is a simulator in any language (docs/pipe.md), a program that is started
with your rights: look at the files of others before you run them. The
command is shown on stderr first.

    [problem]
    command = ["python3", "sim.py"]
    dimension = 20
    start = 0.0

docs/formats.md has every key and every method. A table of constants may
have a line estimated = ["growth", "floor"], as `pasta calibrate` prints
it: with measured constants nothing is promised.

Flags override the file. Ctrl-C, SIGTERM and SIGHUP stop the step under
way and write a checkpoint into the output folder, or into
FILE.interrupted if there is none; `pasta resume DIR` goes on, bit for
bit. A step of auto, which may be long, goes on from where it stopped;
any other step begins anew."#;

/// Run what a problem file describes: a problem, its noise, and a method.
#[derive(Args)]
#[command(long_about = HELP)]
pub(crate) struct Arguments {
    /// The problem file.
    #[arg(required_unless_present = "command")]
    file: Option<PathBuf>,
    #[command(flatten)]
    quick: Quick,
    #[command(flatten)]
    flags: Flags,
    #[command(flatten)]
    style: Style,
    /// Replace a run that the output folder already holds.
    #[arg(long)]
    overwrite: bool,
    /// Skip the few dozen samples that check a simulator before the run (as check = false in the file does).
    #[arg(long)]
    no_check: bool,
}

/// Continue a run that was interrupted or ran out of budget, bit for bit as if it had not stopped.
///
/// Certificates go on where they were, too; but the attempt that a run makes when its budget ends counts as one.
///
/// A new budget or number of threads is written into the folder's problem.toml, for the next time.
///
/// A run of a simulator starts the program that problem.toml names. A folder that your pasta did not write on this machine needs --trust for that.
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
    /// Go on without a budget with a run whose target is not within reach.
    #[arg(long)]
    no_limit: bool,
    /// Start the simulator of a folder that your pasta did not write on this machine.
    #[arg(long)]
    trust: bool,
    #[command(flatten)]
    style: Style,
}

/// How a run talks.
#[derive(Args, Clone)]
struct Style {
    /// Tell everything, and not only the answer.
    #[arg(long)]
    details: bool,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
    /// Seconds between checkpoints, in case the machine fails; inf for never.
    #[arg(long, allow_negative_numbers = true, value_name = "SECONDS", value_parser = seconds)]
    #[arg(default_value_t = 10.0)]
    checkpoint_every: f64,
    /// Write a page: verdict, curves, forecast, noise, ledger, settings. It is written anew every two seconds while the run goes on, and a browser
    /// follows it. If FILE is a folder, such as that of --output, the page is page.html in it.
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|s| *s >= 0.0);
    seconds.ok_or_else(|| "expected a number of seconds, not negative".into())
}

/// A run, and its alarm clock.
struct Live {
    run: Run,
    /// Set when a checkpoint is due, for steps that are long.
    alarm: Arc<AtomicBool>,
}

impl Style {
    fn alarm(&self) -> Arc<AtomicBool> {
        console::alarm(Duration::try_from_secs_f64(self.checkpoint_every).ok())
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let Arguments { file, quick, flags, style, overwrite, no_check } = arguments;
    let overrides = flags.overrides();
    let spec = match (file, quick.simulator()) {
        (Some(file), _) => spec::read(file, &overrides)?,
        (None, Some(simulator)) => spec::read_quick(&simulator, &overrides)?,
        (None, None) => return Err(Failure::input("a problem file or --command is needed")),
    };
    let mut notes = notes(&spec)?;
    if file.is_none() {
        notes.extend(QuickTry::note(spec.task.certify.is_some()));
    }
    let rescue = file.clone().unwrap_or("simulator".into()).with_extension("interrupted");
    with_threads(spec.threads, || {
        let signals = Signals::register()?;
        notes.iter().for_each(|note| say(&format!("note: {note}")));
        let task = Task { check: spec.task.check && !no_check, ..spec.task.clone() };
        let stop = world::watch(signals.flag());
        let alarm = if spec.output.is_some() { style.alarm() } else { Arc::default() };
        // The folder comes last: what is in it stays as it is until the run is known to be possible.
        let mut run = Run::start(Arc::clone(spec.problem.what()), task, stop).map_err(Failure::input)?;
        let waiting = Waiting::start("checking the oracle");
        let is_sound = check::before_run(&mut run);
        drop(waiting);
        if !is_sound? {
            return Ok(signals.received().unwrap_or(Exit::Interrupted));
        }
        run.pause_on(Arc::clone(&alarm));
        let keep = match &spec.output {
            Some(path) => RunFolder::create(path, &spec.effective, *overwrite)?,
            None => RunFolder::default(),
        };
        go(&spec, Live { run, alarm }, keep, &signals, &rescue, style)
    })
}

pub(crate) fn resume(arguments: &ResumeArguments) -> Result<Exit, Failure> {
    let ResumeArguments { folder: path, budget, threads, no_limit, trust, style } = arguments;
    let (budget, threads, no_limit) = (*budget, *threads, *no_limit);
    let overrides =
        Overrides { budget, threads, no_limit, origin: Origin::folder(*trust), ..Overrides::default() };
    let spec = spec::read(&spec_file(path)?, &overrides)?;
    if !spec.problem.oracle.about().shared {
        let message = "the simulator's samples do not follow from their seeds: a resumed run would not be the run that stopped";
        return Err(Failure::input(message).in_file(path.display().to_string()));
    }
    let notes = notes(&spec)?;
    let mut checkpoint = folder::checkpoint(path)?;
    with_threads(spec.threads, || {
        let signals = Signals::register()?;
        notes.iter().for_each(|note| say(&format!("note: {note}")));
        let (task, stop) = (spec.task.clone(), world::watch(signals.flag()));
        let mut run = Run::resume(Arc::clone(spec.problem.what()), task, &mut checkpoint, stop)
            .map_err(|error| refused(&error, path))?;
        let alarm = style.alarm();
        run.pause_on(Arc::clone(&alarm));
        let says_itself =
            |stop: &Stop| matches!(stop, Stop::OutOfBudget | Stop::Hopeless(_)) || stop.is_lost();
        if let Some(stop) = run.had_ended().filter(|stop| !says_itself(stop)) {
            say(&format!(
                "note: the run already ended ({}): nothing to resume; start a new run with a larger budget",
                stop.kind()
            ));
        }
        let keep = RunFolder::open(path, &spec.effective, &run)?;
        go(&spec, Live { run, alarm }, keep, &signals, path, style)
    })
}

/// Why a folder cannot be resumed.
fn refused(error: &RunError, path: &Path) -> Failure {
    let failure = Failure::input(error).in_file(path.display().to_string());
    match error {
        RunError::Drawn { .. } => failure,
        _ => failure.hint("problem.toml must stay as the run wrote it; start another run with `pasta solve`"),
    }
}

impl Live {
    /// All that is needed to go on later.
    fn saver(&self) -> Saver<'_> {
        let mut saver = Saver::default();
        self.run.save(&mut saver);
        saver
    }

    /// After how many samples it will end, if that is known or forecast.
    fn likely_end(&self) -> Option<u128> {
        let forecast = self.run.outlook().likely_end(self.run.gate().ledger());
        let forecast = forecast.filter(|_| self.run.view().ended.is_none());
        self.run.gate().budget().into_iter().chain(forecast).min()
    }
}

/// What there is to say before a run about what it may not do.
fn notes(spec: &Spec) -> Result<Vec<String>, Failure> {
    let mut notes: Vec<String> = spec.prospects()?.into_iter().collect();
    if let Some(promise) = spec.method.promise.as_ref().filter(|promise| !promise.doubts.is_empty()) {
        notes.push(format!("nothing is promised for this run: {}", promise.doubts.join("; ")));
    }
    if !spec.problem.oracle.about().shared {
        notes.push(
            "the simulator's samples do not follow from their seeds: the run cannot be repeated, nor resumed"
                .into(),
        );
    }
    let at_start = |rule: StopRule| spec.problem.false_assumption(&rule.basis, &spec.problem.start);
    if let Some(doubt) = spec.task.certify.and_then(at_start) {
        notes.push(format!("every certificate of this run will be void: {doubt}"));
    }
    if spec.task.certify.is_some() && spec.problem.has_kinks() {
        let note =
            "f has kinks, where |grad f| need not become small; `pasta certify --moreau` is for such f";
        notes.push(note.into());
    }
    if spec.task.target().and_then(Target::norm).is_some_and(|target| spec.method.over(target) > 1.0) {
        let note =
            "the recipe aims at a coarser target than the certificate's; it may end before it is certified";
        notes.push(note.into());
    }
    Ok(notes)
}

/// Runs to an end, keeps what there is to keep, and reports.
fn go(
    spec: &Spec,
    mut live: Live,
    mut keep: RunFolder,
    signals: &Signals,
    rescue: &Path,
    style: &Style,
) -> Result<Exit, Failure> {
    let mut page = style.page.as_deref().map(|path| LivePage::of(path, keep.path()));
    let (clock, before) = (Instant::now(), live.run.gate().ledger().samples());
    let end = drive(&mut live, spec, &mut keep, &mut page, style);
    let seconds = clock.elapsed().as_secs_f64();
    // Whatever happened, what was computed is kept.
    let saved = keep.save(&live);
    let stop = match end? {
        Ok(stop) => stop,
        Err(halt) => {
            saved?;
            if let Some(page) = &mut page {
                page.fail(spec, &live, &halt.to_string());
            }
            tell_where(spec, &live, &mut keep, rescue)?;
            return Err(Failure::system(&halt));
        }
    };
    saved?;
    let mut outcome = Outcome::new(spec, &live, stop, style);
    if stop == Stop::Interrupted {
        tell_where(spec, &live, &mut keep, rescue)?;
        if let Some(page) = &mut page {
            page.finish(spec, &live, &outcome)?;
        }
        if style.json {
            console::print(&outcome, true)?;
        }
        return Ok(signals.received().unwrap_or(Exit::Interrupted));
    }
    keep.write_result(&mut outcome)?;
    console::print(&outcome, style.json)?;
    if let Some(page) = &mut page {
        page.finish(spec, &live, &outcome)?;
    }
    // A run whose samples cost nothing says nothing that was not asked for.
    let has_cost = spec.price.is_some() || spec.problem.simulator.is_some();
    if has_cost || std::io::stderr().is_terminal() {
        say(&spent(spec, &live.run, live.run.gate().ledger().samples() - before, seconds));
    }
    match (stop, keep.path()) {
        (lost, _) if lost.is_lost() => {
            say(&match lost {
                Stop::Diverged(divergence) => format!("diverged: {divergence}"),
                other => other.meaning(),
            });
            let simulator = spec.problem.simulator.as_ref();
            if let Some(fault) = simulator.and_then(|simulator| simulator.pipe.last_fault()) {
                say(&format!("the last failure of the simulator: {fault}"));
            }
        }
        (Stop::Hopeless(hopeless), path) => {
            say(&hopeless.to_string());
            say(&match path {
                Some(path) => {
                    let path = path.display();
                    format!("go on with: pasta resume {path} --budget SAMPLES, or --no-limit")
                }
                None => "--budget SAMPLES or --no-limit goes on".into(),
            });
        }
        (Stop::Void, _) => say(&outcome.void().unwrap_or_default()),
        (Stop::OutOfBudget, Some(path)) => {
            say(&format!("go on with: pasta resume {} --budget SAMPLES", path.display()));
        }
        _ => {}
    }
    Ok(match stop {
        stop if stop.is_lost() => Exit::Diverged,
        _ if spec.task.certify.is_some() && !outcome.report.is_certified() => Exit::NotCertified,
        Stop::OutOfBudget if !outcome.report.is_certified() => Exit::OutOfBudget,
        _ => Exit::Done,
    })
}

/// What the run cost, and how long this process took for its part. Time is never part of a result.
fn spent(spec: &Spec, run: &Run, here: u128, seconds: f64) -> String {
    let samples = run.gate().ledger().samples();
    let money = spec
        .price
        .as_ref()
        .map_or(String::new(), |price| format!(", {}", answer::money(price, samples as f64)));
    let each = if here == 0 {
        String::new()
    } else {
        format!(" ({} a sample)", check::seconds(seconds / here as f64))
    };
    let part =
        if here < samples && here > 0 { format!(" for {} of them", grouped(here)) } else { String::new() };
    format!("cost: {} samples, {}{part}{each}{money}", grouped(samples), duration(seconds))
}

/// The first forecast, with the time and the money that it means.
fn prospect(spec: &Spec, run: &Run, seconds_each: f64) -> Option<String> {
    let forecast = run.outlook().first?.forecast;
    let workers = spec.problem.simulator.as_ref().map_or(String::new(), |simulator| {
        let workers = simulator.pipe.simulator().workers;
        format!(" on {workers} worker{}", if workers == 1 { "" } else { "s" })
    });
    let time = duration(forecast.middle * seconds_each);
    let price = spec.price.as_ref();
    let limit = spec.task.budget.map(|budget| format!("; limit {}", answer::about(budget as f64, price)));
    let (middle, limit) = (answer::about(forecast.middle, price), limit.unwrap_or_default());
    let [low, high] = [forecast.low, forecast.high].map(rough);
    Some(format!("forecast: about {middle}, {time}{workers}; {low} to {high} samples{limit}"))
}

/// Says where a run stands that stopped before its end, and how to go on. One that can go on is kept.
fn tell_where(spec: &Spec, live: &Live, keep: &mut RunFolder, rescue: &Path) -> Result<(), Failure> {
    let Mark { step, samples, .. } = live.run.stands();
    let more = match live.run.under_way() {
        0 => String::new(),
        under_way => format!(" and {under_way} more of the step under way"),
    };
    let stopped = format!("stopped at step {step} with {samples} samples{more}");
    if !spec.problem.oracle.about().shared {
        say(&format!("{stopped}; it cannot be resumed, since its samples do not follow from their seeds"));
        return Ok(());
    }
    let path = keep.or_rescue(rescue, &spec.effective, live)?;
    let path = path.display();
    say(&format!("{stopped}; the run is kept in {path}"));
    say(&format!("go on with: pasta resume {path}"));
    Ok(())
}

/// The loop: an event, its line of the trace, a look at the clock now and then. An oracle that fails for good ends it.
fn drive(
    live: &mut Live,
    spec: &Spec,
    keep: &mut RunFolder,
    page: &mut Option<LivePage>,
    style: &Style,
) -> Result<Result<Stop, Halt>, Failure> {
    let mut progress = Progress::start(live, spec.price.clone(), style.checkpoint_every);
    let mut has_forecast = live.run.outlook().first.is_some();
    if !keep.is_begun {
        keep.trace(&trace::Event::Start {
            format: trace::FORMAT,
            method: live.run.chosen().name.to_owned(),
            problem: live.run.gate().about().identity.clone(),
            seed: live.run.task().seed,
        })?;
    }
    keep.save(live)?;
    if let Some(page) = page {
        page.show(spec, live, &progress.words(live));
    }
    let stop = loop {
        let due = match live.run.next() {
            Ok(Event::Step(record)) => {
                let step = live.run.view().step;
                if is_milestone(step) {
                    let standing = live.run.standing();
                    keep.trace(&trace::Event::step(&record, standing))?;
                    page.iter_mut().for_each(|page| page.passed(&standing));
                }
                progress.tick(live, step)
            }
            Ok(Event::Tried(certificate)) => {
                let view = live.run.view();
                page.iter_mut().for_each(|page| page.tried(live.run.gate().ledger().samples(), &certificate));
                keep.trace(&trace::Event::Tried {
                    step: view.step,
                    attempt: view.certification.map_or(0, |log| log.attempts),
                    samples: live.run.gate().ledger().samples(),
                    certificate,
                })?;
                // Neither the end of an attempt nor its plan is left to the clock: see `Event::Planned`.
                progress.check(live);
                true
            }
            Ok(Event::Planned | Event::Paused) => {
                progress.check(live);
                true
            }
            Ok(Event::End(stop)) => break stop,
            Ok(_) => progress.check(live),
            Err(halt) => return Ok(Err(halt)),
        };
        if !has_forecast && let Some(line) = prospect(spec, &live.run, progress.seconds_each(live)) {
            say_over_bar(&line);
            has_forecast = true;
        }
        if progress.takes_page()
            && let Some(page) = page
        {
            page.show(spec, live, &progress.words(live));
        }
        if due {
            keep.save(live)?;
            live.alarm.store(false, Ordering::Relaxed);
        }
    };
    if stop != Stop::Interrupted {
        keep.trace(&trace::Event::end(stop, live.run.standing()))?;
    }
    Ok(Ok(stop))
}
