//! `pasta fit`: a linear model from a table, certified by exact passes.

mod arguments;
mod checkpoint;
mod descent;
mod header;
mod html;
mod judging;
mod one_pass;
mod outcome;
mod rows;
mod words;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pasta_io::Source;
use pasta_opt::cross::{CrossValidation, PENALTIES};
use pasta_opt::fit::{AtScale, FitError, PENALTY, Way, usual_budget};
use pasta_opt::gate::{Gate, Halt};
use pasta_opt::inference::{StdErrors, Summary};
use pasta_opt::score::has_classes;
use pasta_opt::stop::Stop;
use pasta_opt::table::{Linear, Loss};
use pasta_report::console::{self, Exit, Failure, Signals, say, with_threads};

pub(crate) use arguments::Arguments;
use descent::{Descent, Run, descend};
use header::Header;
use outcome::Outcome;

use crate::table::{Loaded, Penalty, Verdict, check_folder, check_output};
use crate::world;

/// Folds of a cross-validation, unless given.
const FOLDS: u32 = 5;
/// Passes that a fit needs at least.
const LEAST_PASSES: u128 = 6;

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    with_threads(arguments.threads.map(usize::from), || fit(arguments))
}

fn fit(arguments: &Arguments) -> Result<Exit, Failure> {
    let begun = Instant::now();
    if let Some(loss) = &arguments.loss {
        arguments.shaping.loss(loss, 2)?;
    }
    let asked = arguments.way()?;
    if arguments.one_pass && world::rank().is_some() {
        return Err(Failure::input("--one-pass: a stream is learnt by one process"));
    }
    if arguments.one_pass {
        arguments.penalties(&[])?;
        return one_pass::run(arguments, begun);
    }
    check_files(arguments)?;
    let signals = Signals::register()?;
    let source = Source::named(&arguments.data);
    let file = source.name();
    let mut opened = rows::open(arguments, &source)?;
    if signals.received().is_some() {
        return Ok(interrupted(&signals));
    }
    if arguments.elastic_net.is_some() {
        // A part of --penalty is not the ridge's.
        let ridge = opened.loaded.linear.with_penalty(arguments.ridge());
        opened.loaded.linear = Arc::new(ridge.map_err(Failure::input)?);
    }
    let read = begun.elapsed();
    let at_scale = match at_scale(arguments, &opened.loaded.linear, &signals) {
        Err(FitError::Interrupted(_)) => return Ok(interrupted(&signals)),
        at_scale => at_scale.map_err(|error| refused(error, opened.loaded.linear.loss()))?,
    };
    if let Some(at_scale) = &at_scale {
        opened.loaded.linear = Arc::clone(&at_scale.linear);
    }
    // Refused before anything is chosen.
    arguments.penalties(&opened.loaded.linear.feature_names())?;
    let mut crossed = choose_penalty(arguments, &mut opened.loaded, &signals)?;
    let linear = &opened.loaded.linear;
    let read_before = at_scale.as_ref().map_or(0, |at_scale| at_scale.gate.ledger().samples());
    let budget = arguments.budget.unwrap_or_else(|| usual_budget(linear)).saturating_sub(read_before);
    let way = match arguments.penalties(&linear.feature_names())? {
        Some(penalties) => Way::Proximal(penalties.term(linear).map_err(Failure::input)?),
        None => asked.unwrap_or_else(|| Way::usual(linear)),
    };
    let method = arguments.method_name(&way);
    let deviation = at_scale.as_ref().map(|at_scale| at_scale.deviation);
    let guessed = opened.guessed.as_deref();
    let (file_name, loaded) = (&file[..], &opened.loaded);
    let header = Header { arguments, file: file_name, loaded, method: &method, budget, deviation, guessed };
    say(&header.line());
    let settings = header.settings();
    let mut run = match descend(arguments, way, linear, budget, &signals)? {
        Descent::Done(run) => *run,
        Descent::Interrupted(checkpoint) => return Ok(interrupted_at(checkpoint.as_deref(), "", &signals)),
    };
    if let Some(at_scale) = &at_scale {
        run.fitted.gate.merge(&at_scale.gate);
    }
    let mut fitted = begun.elapsed();
    if console::is_muted() {
        // The first of several processes judges, and says how all exit.
        return Ok(Exit::Done);
    }
    let mut trained = judging::trained(&file, &opened.loaded, &run)?;
    let mut falls = match judging::falls(arguments, linear, &trained, &mut run, &signals) {
        Ok(falls) => falls,
        Err(Halt::Interrupted) => return Ok(interrupted(&signals)),
        Err(halt) => return Err(Failure::system(halt)),
    };
    let left = budget.saturating_sub(run.fitted.gate.ledger().samples());
    let rescued = judging::no_minimiser(linear, trained.score.separated, falls)
        .filter(|_| !run.fitted.has_term && may_rescue(arguments, linear, left))
        .map(|(why, _)| why);
    if rescued.is_some() {
        run = match penalise(arguments, &mut opened.loaded, &run.fitted.gate, left, &signals)? {
            Descent::Done(run) => *run,
            Descent::Interrupted(checkpoint) => {
                let penalty = format!("--penalty {PENALTY} ");
                return Ok(interrupted_at(checkpoint.as_deref(), &penalty, &signals));
            }
        };
        trained = judging::trained(&file, &opened.loaded, &run)?;
        (falls, fitted) = (false, begun.elapsed());
    }
    if arguments.cv.is_some() && crossed.is_none() {
        let linear = &opened.loaded.linear;
        crossed = Some(cross(arguments, linear, &[linear.design().penalty], &signals)?);
    }
    if let Some(crossed) = &crossed {
        run.fitted.gate.merge(&crossed.gate);
    }
    trained.resampled = resampled(arguments, &opened.loaded.linear, &mut run, &signals)?;
    let mut outcome = judging::judge(arguments, &file, &opened, &run, trained, method, falls)?;
    outcome.rescued = rescued;
    outcome.crossed = crossed;
    outcome.model.deviation = deviation;
    outcome.settings = settings;
    answer(arguments, &outcome, &run, || timed(begun.elapsed(), read, fitted))
}

/// Refuses files that cannot be written, before the work.
fn check_files(arguments: &Arguments) -> Result<(), Failure> {
    if let Some(page) = &arguments.page {
        if page.file_name().is_none() {
            return Err(Failure::input("--page: expected the name of a file"));
        }
        check_folder("--page", page)?;
    }
    check_output(arguments.output.as_deref(), &arguments.inputs())
}

/// Gives the table the penalty that does best in cross-validation, if that is asked for.
fn choose_penalty(
    arguments: &Arguments,
    loaded: &mut Loaded,
    signals: &Signals,
) -> Result<Option<CrossValidation>, Failure> {
    if arguments.shaping.penalty != Some(Penalty::Auto) {
        return Ok(None);
    }
    if arguments.budget.is_some() || arguments.resume.is_some() || world::rank().is_some() {
        return Err(Failure::input("--penalty auto: not with --budget, --resume or several processes"));
    }
    let crossed = cross(arguments, &loaded.linear, &PENALTIES, signals)?;
    let penalised = loaded.linear.with_penalty(crossed.best().penalty).map_err(Failure::input)?;
    loaded.linear = Arc::new(penalised);
    Ok(Some(crossed))
}

/// Scores by cross-validation along some penalties.
fn cross(
    arguments: &Arguments,
    linear: &Arc<Linear>,
    penalties: &[f64],
    signals: &Signals,
) -> Result<CrossValidation, Failure> {
    let folds = arguments.cv.unwrap_or(FOLDS) as usize;
    let crossed = CrossValidation::of(linear, penalties, folds, arguments.seed, &signals.flag());
    crossed.map_err(|error| without_refits(error, linear.loss(), &format!("--cv {folds}"), signals))
}

/// The coefficients with standard errors from resamples of the rows, if these are asked for.
fn resampled(
    arguments: &Arguments,
    linear: &Arc<Linear>,
    run: &mut Run,
    signals: &Signals,
) -> Result<Option<Summary>, Failure> {
    if arguments.std_errors() != Some(StdErrors::Bootstrap) {
        return Ok(None);
    }
    if world::rank().is_some() {
        return Err(Failure::input("--std-errors bootstrap: not with several processes"));
    }
    let (names, count, seed) = (linear.feature_names(), arguments.resamples, arguments.seed);
    let found = Summary::bootstrapped(linear, &run.fitted, &names, count, seed, &signals.flag());
    let (summary, gate) =
        found.map_err(|error| without_refits(error, linear.loss(), "--std-errors bootstrap", signals))?;
    run.fitted.gate.merge(&gate);
    Ok(Some(summary))
}

/// Why fits of parts of the rows did not end.
fn without_refits(error: FitError, loss: Loss, flag: &str, signals: &Signals) -> Failure {
    match error {
        FitError::Interrupted(_) => {
            let mut failure = Failure::input("interrupted; nothing was written");
            failure.exit = signals.received().unwrap_or(Exit::Interrupted);
            failure
        }
        error if error.is_not_finite() => descent::not_finite(&error, loss),
        error => Failure::input(format!("{flag}: {error}")),
    }
}

/// Fits the table again, with the usual penalty, and counts what was read before.
fn penalise(
    arguments: &Arguments,
    loaded: &mut Loaded,
    before: &Gate,
    left: u128,
    signals: &Signals,
) -> Result<Descent, Failure> {
    loaded.linear = Arc::new(loaded.linear.with_penalty(PENALTY).map_err(Failure::input)?);
    let way = arguments.way()?.unwrap_or_else(|| Way::usual(&loaded.linear));
    let mut descent = descend(arguments, way, &loaded.linear, left, signals)?;
    if let Descent::Done(run) = &mut descent {
        run.fitted.gate.merge(before);
    }
    Ok(descent)
}

/// True if a fit of classes without a minimiser may be tried again with the usual penalty: none was given, and there is room for it. Several processes would have to agree.
fn may_rescue(arguments: &Arguments, linear: &Linear, left: u128) -> bool {
    let room = left >= LEAST_PASSES * linear.table().rows() as u128;
    arguments.shaping.penalty.is_none()
        && has_classes(linear.loss())
        && room
        && world::rank().is_none()
        && arguments.resume.is_none()
}

/// The table with a loss whose scale is that of the residuals, where it has one and none was given.
fn at_scale(
    arguments: &Arguments,
    linear: &Arc<Linear>,
    signals: &Signals,
) -> Result<Option<AtScale>, FitError> {
    if arguments.shaping.delta.is_some() || arguments.shaping.scale.is_some() {
        return Ok(None);
    }
    // Half of what may be read, at most.
    let budget = arguments.budget.map(|budget| budget / 2);
    AtScale::of(linear, budget, arguments.seed, signals.flag())
}

fn refused(error: FitError, loss: Loss) -> Failure {
    if error.is_not_finite() { descent::not_finite(&error, loss) } else { Failure::input(error) }
}

/// Writes what was asked for, and says how it ended.
fn answer(
    arguments: &Arguments,
    outcome: &Outcome,
    run: &Run,
    timed: impl Fn() -> String,
) -> Result<Exit, Failure> {
    if let Some(checkpoint) = &arguments.resume {
        // What was to be gone on with is done. One that cannot be removed does no harm.
        let _ = std::fs::remove_file(checkpoint);
    }
    if let Some(page) = &arguments.page {
        write_file(page, html::page(outcome, run).html()?)?;
    }
    if let Some(failure) = outcome.failure() {
        say(&timed());
        return Err(failure);
    }
    if let Some(path) = &arguments.output {
        let model = serde_json::to_string_pretty(&outcome.model).map_err(Failure::system)?;
        write_file(path, model + "\n")?;
    }
    console::print(outcome, arguments.json)?;
    say(&timed());
    let short = outcome.budgeted && outcome.stop == Stop::OutOfBudget;
    Ok(match outcome.model.certificate.verdict {
        Verdict::Certified => Exit::Done,
        Verdict::Kinks if !short => {
            say(&outcome.with_kinks());
            Exit::NotCertified
        }
        Verdict::Kinks | Verdict::NotCertified | Verdict::Worse => {
            say("not certified: the budget ended first; the model is the point that was reached");
            Exit::OutOfBudget
        }
    })
}

fn timed(whole: Duration, read: Duration, fitted: Duration) -> String {
    let seconds = |duration: Duration| format!("{:.4} s", duration.as_secs_f64());
    let fit = fitted.saturating_sub(read);
    format!("{}, of which {} to read and {} to fit", seconds(whole), seconds(read), seconds(fit))
}

/// What helps a run that was interrupted: the same command with this flag, and where it stands.
fn interrupted_at(checkpoint: Option<&Path>, flag: &str, signals: &Signals) -> Exit {
    let Some(checkpoint) = checkpoint else { return interrupted(signals) };
    say(&format!("interrupted; the same command with {flag}--resume {} goes on", checkpoint.display()));
    signals.received().unwrap_or(Exit::Interrupted)
}

fn interrupted(signals: &Signals) -> Exit {
    say("interrupted; nothing was written");
    signals.received().unwrap_or(Exit::Interrupted)
}

fn write_file(path: &Path, text: impl AsRef<[u8]>) -> Result<(), Failure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| Failure::input(format!("{} is not the name of a file", path.display())))?;
    pasta_report::write(folder, name, text).map(drop)
}
