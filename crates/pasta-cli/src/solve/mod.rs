//! `pasta solve` and `pasta resume`: a run with progress, trace, checkpoint and a final table.

mod folder;
mod progress;
mod result;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use clap::Args;
use folder::Keep;
pub(crate) use folder::{point as point_of, spec_file};
use pasta_opt::checkpoint::CheckpointError;
use pasta_opt::forecast::Outlook;
use pasta_opt::method::{self, Engine};
use pasta_opt::prelude::*;
use pasta_opt::trace::{self, Event, Standing, is_milestone};
use pasta_opt::walk::View;
use progress::Progress;
use result::Outcome;

use crate::check;
use crate::forecast;
use crate::spec::{self, Overrides, Problem, QuickTry, Spec};
use crate::waiting::{Waiting, duration};
use crate::world;
use pasta_report::console::{self, Exit, Failure, Signals, flags, say, say_over_bar, with_threads};
use pasta_report::number::{grouped, rough};

/// The long help: a whole file, ready to copy.
const HELP: &str = r#"Run what a problem file describes: a problem, its noise, and a method.

A file has the tables [problem], [noise] and [recipe]:

    seed = 1
    budget = 1e9            # stop before drawing more samples (optional)
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

So is a simulator in any language (docs/pipe.md), which is checked before
it is believed:

    [problem]
    command = ["python3", "sim.py"]
    dimension = 20
    start = 0.0

docs/formats.md has every key and every method. A table of constants may
have a line estimated = ["growth", "floor"], as `pasta calibrate` prints
it: with measured constants nothing is promised.

Flags override the file. Ctrl-C, SIGTERM and SIGHUP drop the step under
way and write a checkpoint into the output folder, or into
FILE.interrupted if there is none; `pasta resume DIR` goes on, bit for
bit."#;

/// Run what a problem file describes: a problem, its noise, and a method.
#[derive(Args)]
#[command(long_about = HELP)]
pub(crate) struct Arguments {
    /// The problem file.
    #[arg(required_unless_present = "command")]
    file: Option<PathBuf>,
    #[command(flatten)]
    quick: QuickTry,
    #[command(flatten)]
    overrides: Overrides,
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
    /// Seconds between checkpoints, in case the machine fails; inf for never.
    #[arg(long, allow_negative_numbers = true, value_name = "SECONDS", value_parser = seconds)]
    #[arg(default_value_t = 10.0)]
    checkpoint_every: f64,
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|s| *s >= 0.0);
    seconds.ok_or_else(|| "expected a number of seconds, not negative".into())
}

/// A run: the way to the oracle, the method, and what was forecast.
struct Run {
    gate: Gate,
    walk: Box<dyn Walk>,
    outlook: Outlook,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let Arguments { file, quick, overrides, style, overwrite, no_check } = arguments;
    let spec = match file {
        Some(file) => spec::read(file, overrides)?,
        None => spec::read_quick(quick, overrides)?,
    };
    let mut notes = notes(&spec)?;
    if file.is_none() {
        notes.extend(QuickTry::note(spec.certification.is_some()));
    }
    let rescue = file.clone().unwrap_or("simulator".into()).with_extension("interrupted");
    with_threads(spec.threads, || {
        let signals = Signals::register()?;
        notes.iter().for_each(|note| say(&format!("note: {note}")));
        let mut gate = spec.problem.gate(spec.seed, spec.budget, signals.flag());
        // The folder comes last: what is in it stays as it is until the run is known to be possible.
        let walk = certified(&spec, &gate, spec.walk(&gate)?)?;
        if !no_check {
            let waiting = Waiting::start("checking the simulator");
            let is_sound = check::before_run(&spec.problem, &mut gate);
            drop(waiting);
            if !is_sound? {
                return Ok(signals.received().unwrap_or(Exit::Interrupted));
            }
        }
        let run = Run { gate, walk, outlook: forecast::outlook(&spec) };
        let keep = match &spec.output {
            Some(path) => Keep::create(path, &spec.effective, *overwrite)?,
            None => Keep::default(),
        };
        go(&spec, run, keep, &signals, &rescue, *style)
    })
}

pub(crate) fn resume(arguments: &ResumeArguments) -> Result<Exit, Failure> {
    let ResumeArguments { folder: path, budget, threads, style } = arguments;
    let overrides = Overrides { budget: *budget, threads: *threads, ..Overrides::default() };
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
        let run = go_on(&spec, path, &mut checkpoint, signals.flag())?;
        let says_itself = |stop: &Stop| matches!(stop, Stop::OutOfBudget | Stop::Diverged(_));
        if let Some(stop) = run.walk.view().ended.filter(|stop| !says_itself(stop)) {
            say(&format!(
                "note: the run had ended before ({}), and nothing is left to do; for more, start anew with a larger budget",
                stop.kind()
            ));
        }
        let keep = Keep::open(path, &spec.effective, &run)?;
        go(&spec, run, keep, &signals, path, *style)
    })
}

/// The walk with its certificates, if the file asks for any.
fn certified(spec: &Spec, gate: &Gate, walk: Box<dyn Walk>) -> Result<Box<dyn Walk>, Failure> {
    let Some(certification) = spec.certification.filter(|_| !spec.method.engine.is_certified()) else {
        return Ok(walk);
    };
    Ok(Box::new(walk.certified(gate, certification.rule).map_err(Failure::input)?))
}

/// The section of a checkpoint that certificates have.
const CERTIFICATES: &str = "certificate";

/// The run of a checkpoint, which must be the one that the file asks for: the final table states the file's promise.
fn go_on(
    spec: &Spec,
    path: &Path,
    checkpoint: &mut Checkpoint,
    stop: Arc<AtomicBool>,
) -> Result<Run, Failure> {
    let refuse = |what: &str| {
        let hint = "problem.toml must stay as the run wrote it; start another run with `pasta solve`";
        Failure::input(what).in_file(path.display().to_string()).hint(hint)
    };
    let refused = |error: CheckpointError| refuse(&error.to_string());
    let with_certificates = checkpoint.has(CERTIFICATES);
    if with_certificates && spec.certification.is_none() {
        return Err(refuse("the run has been making certificates, but problem.toml asks for none"));
    }
    let gate = Gate::resume(Arc::clone(&spec.problem.oracle), checkpoint).map_err(refused)?;
    let gate = gate.with_budget(spec.budget).with_stop(world::watch(stop));
    let drawn = gate.ledger().samples();
    if let Some(budget) = spec.budget.filter(|budget| *budget < drawn) {
        let message = format!("the run has already drawn {drawn} samples, more than the budget of {budget}");
        return Err(Failure::input(message).in_file(path.display().to_string()));
    }
    if Engine::of(checkpoint).map_err(refused)? != spec.method.engine {
        return Err(refuse("the checkpoint is of another [recipe] than problem.toml has"));
    }
    if gate.seed() != spec.seed {
        let (seed, asked) = (gate.seed(), spec.seed);
        return Err(refuse(&format!("the checkpoint is of seed {seed}, but problem.toml has seed {asked}")));
    }
    let walk = method::resume(&gate, checkpoint).map_err(refused)?;
    let walk: Box<dyn Walk> = match &spec.certification {
        Some(certification) if with_certificates => {
            Box::new(walk.certified_again(&gate, certification.rule, checkpoint).map_err(refused)?)
        }
        _ => certified(spec, &gate, walk)?,
    };
    Ok(Run { gate, walk, outlook: forecast::resume(checkpoint) })
}

/// The walk of a checkpoint, to look at.
fn stored(problem: &Problem, checkpoint: &mut Checkpoint) -> Result<Box<dyn Walk>, CheckpointError> {
    let gate = Gate::resume(Arc::clone(&problem.oracle), checkpoint)?;
    method::resume(&gate, checkpoint)
}

impl Run {
    /// All that is needed to go on later.
    fn saver(&self) -> Saver<'_> {
        let mut saver = Saver::default();
        self.gate.save(&mut saver);
        self.walk.save(&mut saver);
        forecast::save(&self.outlook, &mut saver);
        saver
    }

    fn standing(&self, spec: &Spec) -> Standing {
        Standing::new(&self.walk.view(), self.gate.ledger(), spec.problem.objective())
    }

    /// After how many samples it will end, if that is known or forecast.
    fn likely_end(&self) -> Option<u128> {
        let forecast =
            self.outlook.likely_end(self.gate.ledger()).filter(|_| self.walk.view().ended.is_none());
        self.gate.budget().into_iter().chain(forecast).min()
    }

    /// Forecasts the run anew where it is time for that. True if that is its first forecast.
    fn follow(&mut self, spec: &Spec) -> bool {
        let Some(certification) = spec.certification.filter(|_| self.outlook.is_due(self.gate.ledger()))
        else {
            return false;
        };
        self.outlook.follow(&self.walk.view(), self.gate.ledger(), certification.rule)
            && self.outlook.first == self.outlook.latest
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
    if let Some(doubt) = spec.certification.and_then(|certification| at_start(certification.rule)) {
        notes.push(format!("every certificate of this run will be void: {doubt}"));
    }
    if spec.certification.is_some() && spec.problem.has_kinks() {
        let note =
            "f has kinks, where |grad f| need not become small; `pasta certify --moreau` is for such f";
        notes.push(note.into());
    }
    if spec.recipe_over_certificate() > 1.0 {
        let note =
            "the recipe aims at a coarser target than the certificate's; it may end before it is certified";
        notes.push(note.into());
    }
    Ok(notes)
}

/// Runs to an end, keeps what there is to keep, and reports.
fn go(
    spec: &Spec,
    mut run: Run,
    mut keep: Keep,
    signals: &Signals,
    rescue: &Path,
    style: Style,
) -> Result<Exit, Failure> {
    let (clock, before) = (Instant::now(), run.gate.ledger().samples());
    let end = drive(&mut run, spec, &mut keep, style);
    let seconds = clock.elapsed().as_secs_f64();
    // Whatever happened, what was computed is kept.
    let saved = keep.save(&run);
    let stop = match end? {
        Ok(stop) => stop,
        Err(halt) => {
            saved?;
            tell_where(spec, &run, &mut keep, rescue)?;
            return Err(Failure::system(&halt));
        }
    };
    saved?;
    if stop == Stop::Interrupted {
        tell_where(spec, &run, &mut keep, rescue)?;
        if style.json {
            console::print(&Outcome::new(spec, &run, stop), true)?;
        }
        return Ok(signals.received().unwrap_or(Exit::Interrupted));
    }
    let mut outcome = Outcome::new(spec, &run, stop);
    keep.write_result(&mut outcome)?;
    console::print(&outcome, style.json)?;
    // A run whose samples cost nothing says nothing that was not asked for.
    let has_cost = spec.price.is_some() || spec.problem.simulator.is_some();
    if has_cost || std::io::stderr().is_terminal() {
        say(&spent(spec, &run, run.gate.ledger().samples() - before, seconds));
    }
    match (stop, keep.path()) {
        (Stop::Diverged(divergence), _) => {
            say(&format!("diverged: {divergence}"));
            let simulator = spec.problem.simulator.as_ref();
            if let Some(fault) = simulator.and_then(|simulator| simulator.pipe.last_fault()) {
                say(&format!("the last failure of the simulator: {fault}"));
            }
        }
        (Stop::Void, _) => say(&outcome.void().unwrap_or_default()),
        (Stop::OutOfBudget, Some(path)) => {
            say(&format!("go on with: pasta resume {} --budget SAMPLES", path.display()));
        }
        _ => {}
    }
    Ok(match stop {
        Stop::Diverged(_) => Exit::Diverged,
        _ if spec.certification.is_some() && !outcome.is_certified() => Exit::NotCertified,
        Stop::OutOfBudget if !outcome.is_certified() => Exit::OutOfBudget,
        _ => Exit::Done,
    })
}

/// What the run cost, and how long this process took for its part. Time is never part of a result.
fn spent(spec: &Spec, run: &Run, here: u128, seconds: f64) -> String {
    let samples = run.gate.ledger().samples();
    let money = spec
        .price
        .as_ref()
        .map_or(String::new(), |price| format!(", {}", forecast::money(price, samples as f64)));
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
    let forecast = run.outlook.first?.forecast;
    let workers = spec.problem.simulator.as_ref().map_or(String::new(), |simulator| {
        let workers = simulator.pipe.simulator().workers;
        format!(" on {workers} worker{}", if workers == 1 { "" } else { "s" })
    });
    let time = duration(forecast.middle * seconds_each);
    let price = spec.price.as_ref();
    let limit = spec.budget.map(|budget| format!("; limit {}", forecast::about(budget as f64, price)));
    let (middle, limit) = (forecast::about(forecast.middle, price), limit.unwrap_or_default());
    let [low, high] = [forecast.low, forecast.high].map(rough);
    Some(format!("forecast: about {middle}, {time}{workers}; {low} to {high} samples{limit}"))
}

/// Says where a run stands that stopped before its end, and how to go on. One that can go on is kept.
fn tell_where(spec: &Spec, run: &Run, keep: &mut Keep, rescue: &Path) -> Result<(), Failure> {
    let (step, samples) = (run.walk.view().step, run.gate.ledger().samples());
    let stopped = format!("stopped at step {step} with {samples} samples");
    if !spec.problem.oracle.about().shared {
        say(&format!("{stopped}; it cannot be resumed, since its samples do not follow from their seeds"));
        return Ok(());
    }
    let path = keep.or_rescue(rescue, &spec.effective, run)?;
    let path = path.display();
    say(&format!("{stopped}; the run is kept in {path}"));
    say(&format!("go on with: pasta resume {path}"));
    Ok(())
}

/// Why the last certificate is void, if it is.
fn doubt(spec: &Spec, view: &View<'_>) -> Option<String> {
    let certificate = view.certification?.last?;
    spec.problem.false_assumption(&certificate.basis, view.point)
}

/// A certificate of the run, judged by what is known about the noise. Of one that failed the point is not known here; what is
/// false at the start, where noise is least, is false there too.
fn judged(spec: &Spec, view: &View<'_>, certificate: Certificate) -> Certificate {
    let point = if view.ended.is_some() { view.point } else { &spec.problem.start };
    match spec.problem.false_assumption(&certificate.basis, point) {
        Some(_) => certificate.void(),
        None => certificate,
    }
}

/// The loop: step, trace, look at the clock now and then. An oracle that fails for good ends it.
fn drive(run: &mut Run, spec: &Spec, keep: &mut Keep, style: Style) -> Result<Result<Stop, Halt>, Failure> {
    let mut progress = Progress::start(run, spec.price.clone(), style.checkpoint_every);
    if !keep.is_begun {
        keep.trace(&Event::Start {
            format: trace::FORMAT,
            method: spec.method.name.to_owned(),
            problem: run.gate.about().identity.clone(),
            seed: spec.seed,
        })?;
    }
    keep.save(run)?;
    let stop = loop {
        let due = match run.walk.advance(&mut run.gate) {
            Ok(Advance::Step(record)) => {
                let step = run.walk.view().step;
                if is_milestone(step) {
                    keep.trace(&Event::step(&record, run.standing(spec)))?;
                }
                progress.tick(run, step)
            }
            Ok(Advance::Tried(certificate)) => {
                let view = run.walk.view();
                keep.trace(&Event::Tried {
                    step: view.step,
                    attempt: view.certification.map_or(0, |log| log.attempts),
                    samples: run.gate.ledger().samples(),
                    certificate: judged(spec, &view, certificate),
                })?;
                // Neither the end of an attempt nor its plan is left to the clock: see `Advance::Planned`.
                progress.check(run);
                true
            }
            Ok(Advance::Planned) => {
                progress.check(run);
                true
            }
            Ok(Advance::Stop(Stop::Certified)) if doubt(spec, &run.walk.view()).is_some() => {
                break Stop::Void;
            }
            Ok(Advance::Stop(stop)) => break stop,
            Ok(_) => progress.check(run),
            Err(halt) => match halt.stop() {
                Some(stop) => break stop,
                None => return Ok(Err(halt)),
            },
        };
        if run.follow(spec)
            && let Some(line) = prospect(spec, run, progress.seconds_each(run))
        {
            say_over_bar(&line);
        }
        if due {
            keep.save(run)?;
        }
    };
    if stop != Stop::Interrupted {
        keep.trace(&Event::end(stop, run.standing(spec)))?;
    }
    Ok(Ok(stop))
}
