//! `pasta fit`: a linear model from a table, certified by exact passes.

mod html;
mod one_pass;
mod outcome;

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use pasta_data::{Label, Options, Source};
use pasta_opt::checkpoint::{Checkpoint, Saver};
use pasta_opt::draws::Role;
use pasta_opt::fit::{Exactly, Fit, FitError, Fitted, RELATIVE, Way, exactly, usual_budget};
use pasta_opt::gate::{Gate, Halt};
use pasta_opt::method::{self, Values};
use pasta_opt::newton;
use pasta_opt::table::{Features, Linear, Loss};
use pasta_opt::walk::Walk;
use pasta_report::console::{self, Exit, Failure, Signals, flags, say, with_threads};
use pasta_report::grouped;
use pasta_report::number::given;
use std::io::IsTerminal;

use crate::table::{
    Certificate, Classes, Loaded, ModelFile, Provenance, Reading, Rows, Score, Shaping, Verdict, load,
    load_table, losses, refused, score,
};
use crate::world;
use outcome::{Outcome, Validation};

/// Fit a linear model to a table, and certify it by exact passes over the rows.
///
/// Minimises the mean loss of the rows plus the penalty until the exact gradient is a millionth of what it was at the start.
/// Columns are standardised while fitting; the weights that are written belong to the columns as they are. No step size is asked
/// for. A model is written only if it is certified, or if --budget or kinks in the loss are the reason why it is not; then the
/// exit code says so.
#[derive(Args)]
#[command(after_long_help = after_help())]
pub(crate) struct Arguments {
    /// The table: LIBSVM, CSV, NPY or NPZ, text also compressed by gzip or zstd; - reads standard input
    data: PathBuf,
    /// The loss of a prediction, given the label; --help lists all
    #[arg(long, value_name = "LOSS")]
    loss: String,
    /// Write the model to this file
    #[arg(long, short, value_name = "MODEL")]
    output: Option<PathBuf>,
    /// Stop when |grad f| is at most EPS [default: 1e-6 of that at the start]
    #[arg(long, value_name = "EPS", allow_hyphen_values = true, value_parser = positive)]
    target: Option<f64>,
    /// Read at most this many rows; a row counts each time it is read [default: 2000 passes over the table, or more over a small one]
    #[arg(long, value_name = "ROWS", allow_negative_numbers = true, value_parser = flags::sample_count)]
    budget: Option<u128>,
    /// Score the model on another file, or on this share of the rows, which is then not fitted
    #[arg(long, value_name = "FILE|SHARE")]
    validation: Option<String>,
    /// The method: exact, second-order steps with a Cholesky factor, for smooth convex losses with at most 512 weights (of a class); auto, which
    /// needs no matrix and takes any loss; or another that docs/formats.md lists, with --steps and --set [default: exact for least squares, logistic,
    /// multinomial and Poisson losses where a matrix costs at most some dozen passes, otherwise auto; the first line says which]
    #[arg(long, value_name = "NAME")]
    method: Option<String>,
    /// Steps of a method that has no end of its own
    #[arg(long, value_name = "N", value_parser = flags::count, allow_negative_numbers = true)]
    steps: Option<u64>,
    /// Rows of a step of such a method
    #[arg(long, value_name = "N", value_parser = flags::count, allow_negative_numbers = true, default_value_t = 1)]
    batch: u64,
    /// Settings of such a method, with commas between: --set eta=0.1
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',', value_parser = setting)]
    set: Vec<(String, f64)>,
    /// Learn from a stream in one pass, in memory that does not grow, and certify by rows kept back from its end
    #[arg(long, conflicts_with_all = ["budget", "validation", "steps", "set", "page", "constants", "resume", "weight", "labels", "cache"])]
    one_pass: bool,
    /// With --one-pass: the kurtosis that the noise of a row's gradient has at most, an assumption on which the certificate rests
    #[arg(long, value_name = "K", default_value_t = 100.0, value_parser = kurtosis, requires = "one_pass")]
    kurtosis: f64,
    /// With --one-pass: bytes of text that are learnt at a time; about five blocks are in memory
    #[arg(long, value_name = "BYTES", default_value_t = 16 << 20, requires = "one_pass",
          value_parser = clap::value_parser!(u32).range(1 << 16..=1 << 30))]
    block: u32,
    /// Continue an interrupted fit; the rest of the command must be the same as before
    #[arg(long, value_name = "CHECKPOINT", conflicts_with = "page")]
    resume: Option<PathBuf>,
    /// Seed of all randomness
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = flags::seed(), default_value_t = 1)]
    seed: u64,
    /// Threads; does not change a bit of the result
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = flags::thread_count())]
    threads: Option<u16>,
    /// Write a page with the curve of the run to this file; costs a pass for each point of the curve
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// Prove constants for the model file also where that takes as long as the fit (`pasta inspect` shows them)
    #[arg(long)]
    constants: bool,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reading: Reading,
    #[command(flatten)]
    shaping: Shaping,
}

fn after_help() -> String {
    format!(
        "{}\n
Examples:
  pasta fit train.svm --loss logistic -o model.json
  pasta fit houses.csv --loss huber --label price --one-hot --missing median --validation 0.2
  zcat rows.csv.gz | pasta fit - --loss least-squares --label 1 --penalty 1e-3
  cat parts/*.svm | pasta fit - --one-pass --loss logistic --columns 500 -o model.json
  pasta predict model.json new.csv

docs/fit.md is a tutorial.",
        losses()
    )
}

fn positive(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    number.filter(|x| *x > 0.0 && x.is_finite()).ok_or_else(|| "expected a positive number".into())
}

fn kurtosis(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    number.filter(|x| *x >= 1.0 && x.is_finite()).ok_or_else(|| "expected a number of at least 1".into())
}

fn setting(text: &str) -> Result<(String, f64), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    let value = value.trim().parse().map_err(|_| format!("{value:?} is not a number"))?;
    Ok((key.trim().to_owned(), value))
}

/// Values times columns up to which proving constants takes no time to speak of.
const QUICK: f64 = 4e6;
/// The method of second-order steps.
const EXACT: &str = "exact";
/// The method that takes any loss.
const AUTO: &str = "auto";
/// Rows times the square of the coordinates up to which second derivatives take no time to speak of.
const MOST_WORK: f64 = 4e9;
/// Passes that a look for directions without a minimiser may take.
const LOOK_PASSES: u128 = 20;
/// Coordinates of which dozens of vectors can be held.
const MOST_COORDINATES: usize = 1 << 28;

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    with_threads(arguments.threads.map(usize::from), || fit(arguments))
}

fn fit(arguments: &Arguments) -> Result<Exit, Failure> {
    let begun = Instant::now();
    arguments.shaping.loss(&arguments.loss, 2)?;
    let asked = asked_way(arguments)?;
    if arguments.one_pass && world::rank().is_some() {
        return Err(Failure::input("--one-pass: a stream is learnt by one process"));
    }
    if arguments.one_pass {
        return one_pass::run(arguments, begun);
    }
    if let Some(page) = &arguments.page
        && page.file_name().is_none()
    {
        return Err(Failure::input("--page: expected the name of a file"));
    }
    let signals = Signals::register()?;
    let source = Source::named(&arguments.data);
    let file = source.name();
    let options = arguments.reading.options();
    let data = load_table(&source, &arguments.reading)?;
    let width = data.encoding.width();
    if width > MOST_COORDINATES {
        let message = format!("{width} columns, but at most {MOST_COORDINATES} can be fitted");
        return Err(Failure::input(message).in_file(&file));
    }
    let share = arguments.share()?;
    let (loaded, held) = prepare(&file, data, arguments, share)?;
    let validation = match (&arguments.validation, held) {
        (None, _) => None,
        (Some(_), Some(rows)) => Some((format!("a share of {}", given(share.unwrap_or(0.0))), rows)),
        (Some(path), None) => Some((path.clone(), other_rows(path, &options, &loaded)?)),
    };
    if signals.received().is_some() {
        return Ok(interrupted(&signals));
    }
    let read = begun.elapsed();
    let linear = &loaded.linear;
    let budget = arguments.budget.unwrap_or_else(|| usual_budget(linear));
    let way = asked.unwrap_or_else(|| Way::usual(linear));
    let method = method_name(arguments, &way);
    say(&header(arguments, &file, &loaded, &method, budget));
    let mut run = match descend(arguments, way, linear, budget, &signals)? {
        Descent::Done(run) => *run,
        Descent::Interrupted(None) => return Ok(interrupted(&signals)),
        Descent::Interrupted(Some(checkpoint)) => {
            say(&format!("interrupted; the same command with --resume {} goes on", checkpoint.display()));
            return Ok(signals.received().unwrap_or(Exit::Interrupted));
        }
    };
    let fitted = begun.elapsed();
    let falls = match falls(linear, &mut run, arguments.budget.is_some(), &signals) {
        Ok(falls) => falls,
        Err(Halt::Interrupted) => return Ok(interrupted(&signals)),
        Err(halt) => return Err(Failure::system(halt)),
    };
    if console::is_muted() {
        // The first of several processes judges, and says how all exit.
        return Ok(Exit::Done);
    }
    let outcome = judge(arguments, &file, &loaded, &run, validation, method, falls)?;
    if let Some(checkpoint) = &arguments.resume {
        // What was to be gone on with is done. One that cannot be removed does no harm.
        let _ = std::fs::remove_file(checkpoint);
    }
    if let Some(page) = &arguments.page {
        write_file(page, html::page(&outcome, &run).html()?)?;
    }
    let seconds = |duration: std::time::Duration| format!("{:.4} s", duration.as_secs_f64());
    let timed = format!(
        "{}, of which {} to read and {} to fit",
        seconds(begun.elapsed()),
        seconds(read),
        seconds(fitted.saturating_sub(read))
    );
    if let Some(failure) = outcome.failure() {
        say(&timed);
        return Err(failure);
    }
    if let Some(path) = &arguments.output {
        let model = serde_json::to_string_pretty(&outcome.model).map_err(Failure::system)?;
        write_file(path, model + "\n")?;
    }
    console::print(&outcome, arguments.json)?;
    say(&timed);
    Ok(match outcome.model.certificate.verdict {
        Verdict::Certified => Exit::Done,
        Verdict::NotCertified | Verdict::Worse => {
            say("not certified: the budget ended first; the model is the point that was reached");
            Exit::OutOfBudget
        }
        Verdict::Kinks => {
            say("not certified: the loss has kinks, where the gradient need not be small");
            Exit::NotCertified
        }
    })
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

impl Arguments {
    /// The share of the rows that is put aside.
    fn share(&self) -> Result<Option<f64>, Failure> {
        let Some(share) = self.validation.as_ref().and_then(|text| text.parse::<f64>().ok()) else {
            return Ok(None);
        };
        if share > 0.0 && share < 1.0 {
            Ok(Some(share))
        } else {
            Err(Failure::input(format!(
                "--validation: expected a file, or a share between 0 and 1, got {share}"
            )))
        }
    }
}

/// The name of the method that runs.
fn method_name(arguments: &Arguments, way: &Way) -> String {
    match (&arguments.method, way) {
        (Some(name), _) => name.clone(),
        (None, Way::SecondOrder) => EXACT.to_owned(),
        (None, _) => AUTO.to_owned(),
    }
}

/// The way that was asked for; `None` leaves the choice to the table.
fn asked_way(arguments: &Arguments) -> Result<Option<Way>, Failure> {
    let name = match &arguments.method {
        None if arguments.steps.is_some() || !arguments.set.is_empty() => AUTO,
        None => return Ok(None),
        Some(name) => name,
    };
    if arguments.one_pass && name != AUTO {
        return Err(Failure::input(format!("--method: {name} does not learn in one pass; leave it out")));
    }
    if name == EXACT {
        return match (arguments.steps, arguments.set.first()) {
            (None, None) => Ok(Some(Way::SecondOrder)),
            (Some(_), _) => Err(Failure::input("--steps: exact ends by itself")),
            (_, Some(_)) => Err(Failure::input("--set: exact has no settings")),
        };
    }
    let found = method::find(name).filter(|method| method.row().is_none());
    let Some(method) = found else {
        let names: Vec<_> = method::METHODS
            .iter()
            .filter(|method| method.row().is_none())
            .map(|method| method.name)
            .collect();
        let message =
            format!("--method: unknown method {name:?}; expected one of {EXACT}, {}", names.join(", "));
        return Err(
            Failure::input(message).hint("a recipe with constants runs by `pasta solve` and a problem file")
        );
    };
    let mut values = Values::default();
    for (key, value) in &arguments.set {
        let Some(setting) = method.settings().iter().find(|setting| setting.name == key) else {
            return Err(Failure::input(format!("--set: {name} has no setting {key:?}")));
        };
        values.set(setting.name, *value);
    }
    let steps = match arguments.steps {
        Some(steps) if method.has_steps() => steps,
        Some(_) => return Err(Failure::input(format!("--steps: {name} ends by itself"))),
        None if method.has_steps() => return Err(Failure::input(format!("{name} needs --steps N"))),
        None => 0,
    };
    let engine = method.engine(&values, steps, arguments.batch).map_err(Failure::input)?;
    Ok(Some(Way::Method(engine)))
}

/// The problem, and the rows that are put aside.
fn prepare(
    file: &str,
    data: pasta_data::Data,
    arguments: &Arguments,
    share: Option<f64>,
) -> Result<(Loaded, Option<Rows>), Failure> {
    let Some(share) = share else {
        return Ok((Loaded::new(file, data, &arguments.loss, &arguments.shaping)?, None));
    };
    let in_file = |failure: Failure| failure.in_file(file);
    let classes = Classes::learn(&data, &arguments.loss).map_err(in_file)?;
    let loss = arguments.shaping.loss(&arguments.loss, classes.0.len().max(2))?;
    let labels = classes.code(&data).map_err(in_file)?;
    let pasta_data::Data { features, weights, encoding, label, dropped, .. } = data;
    let (kept, held) = Rows { features, labels, weights }.split(share, arguments.seed);
    if kept.labels.is_empty() || held.labels.is_empty() {
        let (kept, held) = (kept.labels.len(), held.labels.len());
        let message = format!("a share of {share} leaves {kept} rows to fit and {held} to score");
        return Err(Failure::input(message).in_file(file));
    }
    let linear = kept.linear(file, &encoding, loss, arguments.shaping.design())?;
    Ok((Loaded { linear, encoding, label, classes, dropped }, Some(held)))
}

/// The rows of another file, read in the way of the first.
fn other_rows(path: &str, options: &Options, loaded: &Loaded) -> Result<Rows, Failure> {
    let label = match &options.label {
        Label::Usual if !loaded.label.is_empty() => Label::Column(loaded.label.clone()),
        label => label.clone(),
    };
    let options = Options { label, ..options.clone() };
    let data = load(&Source::named(path), &options, Some(&loaded.encoding))?;
    let labels = loaded.classes.code(&data).map_err(|failure| failure.in_file(path))?;
    data.features.check().map_err(|error| refused(path, &loaded.encoding.names(), &error))?;
    Ok(Rows { features: data.features, labels, weights: None })
}

/// Every setting, in a line.
fn header(arguments: &Arguments, file: &str, loaded: &Loaded, method: &str, budget: u128) -> String {
    let linear = &loaded.linear;
    let table = linear.table();
    let (rows, columns) = (grouped(table.rows() as u64), grouped(table.columns() as u64));
    let (layout, width) = match &table.features {
        Features::Dense(dense) => ("dense", dense.values.width()),
        Features::Sparse(sparse) => ("sparse", sparse.values.width()),
    };
    let design = linear.design();
    let label = match (&loaded.label[..], loaded.classes.0.len()) {
        ("", 0) => String::new(),
        ("", classes) => format!(", {classes} classes"),
        (label, 0) => format!(", label {label}"),
        (label, classes) => format!(", label {label} ({classes} classes)"),
    };
    let target = arguments.target.map_or_else(|| format!("{RELATIVE:e} of the start"), given);
    let dropped = match loaded.dropped {
        0 => String::new(),
        dropped => format!(", {} rows dropped", grouped(dropped)),
    };
    format!(
        "{file}: {rows} rows, {columns} columns ({layout} f{}){label}{dropped}; loss {}, {}, {}, degree {}, penalty {}; method {}{}, |grad f| <= {target}, \
         at most {} rows read, seed {}, threads {}",
        8 * width,
        words(&linear.loss()),
        if design.intercept { "intercept" } else { "no intercept" },
        if design.standardise { "standardised" } else { "raw columns" },
        design.degree,
        given(design.penalty),
        method,
        if arguments.method.is_none() && method == EXACT { " (the quickest for this table)" } else { "" },
        grouped(budget),
        arguments.seed,
        rayon_threads(arguments),
    )
}

fn rayon_threads(arguments: &Arguments) -> String {
    arguments.threads.map_or_else(|| "all".to_owned(), |threads| threads.to_string())
}

/// A loss with its parameter.
fn words(loss: &Loss) -> String {
    let name = loss.row().name;
    match *loss {
        Loss::Huber { delta } => format!("{name} (delta {delta})"),
        Loss::Quantile { level } => format!("{name} (level {level})"),
        Loss::Cauchy { scale } | Loss::Welsch { scale } | Loss::Tukey { scale } => {
            format!("{name} (scale {scale})")
        }
        _ => name.to_owned(),
    }
}

/// What a run came to.
struct Run {
    fitted: Fitted,
    /// Samples and the exact state after rounds, where a page is asked for.
    curve: Vec<(u128, Exactly)>,
}

/// How a run ended.
enum Descent {
    Done(Box<Run>),
    /// It can go on from this file, if there is one.
    Interrupted(Option<PathBuf>),
}

/// Runs the method to its end.
fn descend(
    arguments: &Arguments,
    way: Way,
    linear: &std::sync::Arc<Linear>,
    budget: u128,
    signals: &Signals,
) -> Result<Descent, Failure> {
    let rows = linear.table().rows() as u128;
    let way = match &arguments.resume {
        Some(path) => Way::Resume(Box::new(asked_before(arguments, path)?)),
        None => way,
    };
    let bar = (std::io::stderr().is_terminal() && !console::is_muted()).then(|| {
        let style = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}");
        ProgressBar::new_spinner().with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
    });
    let mut curve = Vec::new();
    let mut watch = |gate: &mut Gate, walk: &dyn Walk| {
        if let Some(bar) = &bar {
            let passes = gate.ledger().samples() as f64 / rows as f64;
            bar.tick();
            bar.set_message(format!("round {}, {passes:.1} passes", walk.view().step));
        }
        let room = gate.left() > rows;
        if arguments.page.is_some() && room && curve.len() < 1000 {
            // What goes wrong here shows in the next round.
            if let Ok(state) = exactly(gate, Role::Look, walk.view().point) {
                curve.push((gate.ledger().samples(), state));
            }
        }
    };
    let (target, seed) = (arguments.target, arguments.seed);
    let fit = Fit { way, start: None, target, budget: Some(budget), seed };
    let fitted = fit.run(linear, world::spread(linear.clone()), world::watch(signals.flag()), &mut watch);
    if let Some(bar) = &bar {
        bar.finish_and_clear();
    }
    match fitted {
        Ok(fitted) => {
            curve.insert(0, (rows, fitted.start));
            curve.push((fitted.gate.ledger().samples(), fitted.end));
            Ok(Descent::Done(Box::new(Run { fitted, curve })))
        }
        Err(FitError::Interrupted(None)) => Ok(Descent::Interrupted(None)),
        Err(FitError::Interrupted(Some(unfinished))) => {
            keep(arguments, &unfinished.gate, &*unfinished.walk).map(Descent::Interrupted)
        }
        Err(error) if error.is_not_finite() => Err(not_finite(&error)),
        Err(error @ FitError::Halt(_)) => Err(Failure::system(error)),
        Err(error @ FitError::Table(_)) => {
            Err(Failure::input(error).hint("--method auto fits any loss and any size"))
        }
        Err(error @ FitError::Checkpoint(_)) => {
            let file = arguments.resume.as_ref().map_or_else(String::new, |path| path.display().to_string());
            Err(Failure::input(error).in_file(&file))
        }
        Err(error) => Err(Failure::input(error)),
    }
}

/// Writes a checkpoint beside the model, or here.
fn keep(arguments: &Arguments, gate: &Gate, walk: &dyn Walk) -> Result<Option<PathBuf>, Failure> {
    let mut path = arguments.output.clone().unwrap_or_else(|| PathBuf::from("fit")).into_os_string();
    path.push(".checkpoint");
    let path = PathBuf::from(path);
    if console::is_muted() {
        // The first of several processes writes.
        return Ok(Some(path));
    }
    let mut saver = Saver::default();
    gate.save(&mut saver);
    walk.save(&mut saver);
    saver.put(SECTION, &asked(arguments), []);
    saver.save(&path).map_err(Failure::system)?;
    Ok(Some(path))
}

/// The section of a checkpoint with what a fit was asked for, besides the problem.
const SECTION: &str = "fit";

fn asked(arguments: &Arguments) -> String {
    let Arguments { target, budget, validation, steps, batch, set, seed, .. } = arguments;
    let method = arguments.method.as_deref().unwrap_or("usual");
    format!("{method} {target:?} {budget:?} {validation:?} {steps:?} {batch} {set:?} {seed}")
}

/// The checkpoint of a run, which must be the one that the command asks for.
fn asked_before(arguments: &Arguments, path: &Path) -> Result<Checkpoint, Failure> {
    let file = path.display().to_string();
    let mut checkpoint = Checkpoint::load(path).map_err(Failure::input)?;
    let (then, _): (String, _) =
        checkpoint.take(SECTION).map_err(|error| Failure::input(error).in_file(&file))?;
    let now = asked(arguments);
    if then != now {
        let message = format!(
            "a checkpoint of another command: method, target, budget, validation, steps, batch, settings and seed were {then}, and are {now}"
        );
        return Err(Failure::input(message).in_file(&file));
    }
    Ok(checkpoint)
}

/// Whether the loss falls for ever from the end of the run, where that can be told with less work than a few dozen passes.
fn falls(
    linear: &std::sync::Arc<Linear>,
    run: &mut Run,
    budgeted: bool,
    signals: &Signals,
) -> Result<bool, Halt> {
    let penalised = linear.design().penalty > 0.0;
    let rows = linear.table().rows() as u128;
    let costly = rows as f64 * (linear.dim() as f64).powi(2) > MOST_WORK;
    // A budget that was asked for is never overdrawn, and what it bought is not judged.
    let short = budgeted && run.fitted.gate.left() < LOOK_PASSES * rows;
    if penalised || costly || short {
        return Ok(false);
    }
    let gate = Gate::over(linear.clone(), run.fitted.gate.seed()).with_stop(signals.flag());
    let mut gate = if budgeted { gate.with_budget(LOOK_PASSES * rows) } else { gate };
    let falls = match newton::falls_for_ever(linear, &mut gate, &run.fitted.point) {
        Err(Halt::OverBudget { .. }) => None,
        other => other?,
    };
    run.fitted.gate.absorb(Role::Look, &gate);
    Ok(falls == Some(true))
}

/// A gradient that no number holds.
fn not_finite(error: &FitError) -> Failure {
    let mut failure = Failure::input(format!("the gradient of the loss is not finite: {error}"));
    failure.exit = Exit::Diverged;
    failure.hint("the labels or columns are too large for this loss; scale them down")
}

/// What the end means.
fn judge(
    arguments: &Arguments,
    file: &str,
    loaded: &Loaded,
    run: &Run,
    validation: Option<(String, Rows)>,
    method: String,
    falls: bool,
) -> Result<Outcome, Failure> {
    let linear = &loaded.linear;
    let run = &run.fitted;
    let table = linear.table();
    let names = loaded.encoding.names();
    let model = linear.raw_weights(&run.point);
    let has_classes = !loaded.classes.0.is_empty();
    let wrong = |error| refused(file, &names, &error);
    let training = score(&model, &table.features, (*table.labels).as_ref(), has_classes).map_err(wrong)?;
    let validation = match validation {
        None => None,
        Some((name, rows)) => {
            let score = score(&model, &rows.features, &rows.labels, has_classes).map_err(wrong)?;
            Some(Validation { of: name, score })
        }
    };
    let work = table.features.entries() as f64 * table.columns() as f64;
    let constants = if arguments.constants || work <= QUICK {
        linear.constants(&linear.start()).map_err(wrong)?.constants
    } else {
        Vec::new()
    };
    let constants = constants.iter().map(serde_json::to_value).collect::<Result<_, _>>();
    let (weights, intercept) = ModelFile::named(&model, &names);
    let file = ModelFile {
        format: crate::table::FORMAT,
        program: concat!("pasta ", env!("CARGO_PKG_VERSION")).into(),
        loss: linear.loss(),
        design: linear.design(),
        label: loaded.label.clone(),
        classes: loaded.classes.clone(),
        weights,
        intercept,
        scaling: linear.scaling().cloned(),
        encoding: loaded.encoding.clone(),
        data: Provenance {
            file: file.to_owned(),
            rows: table.rows() as u64,
            columns: table.columns() as u64,
            checksum: format!("{:08x}", table.checksum()),
        },
        constants: constants.map_err(Failure::system)?,
        method: method.clone(),
        seed: arguments.seed,
        ledger: run.gate.ledger().clone(),
        certificate: Certificate {
            verdict: run.verdict,
            exact: true,
            gradient: run.end.gradient,
            target: run.target,
            start_gradient: run.start.gradient,
            objective: run.end.objective,
            tail: None,
        },
    };
    Ok(Outcome {
        no_minimiser: no_minimiser(linear, &training, falls),
        stop: run.stop,
        budgeted: arguments.budget.is_some(),
        auto: method == AUTO,
        other: match method.as_str() {
            AUTO if newton::fits(linear).is_ok() => Some(EXACT),
            EXACT => Some(AUTO),
            _ => None,
        },
        passes: run.gate.ledger().samples() as f64 / table.rows() as f64,
        training,
        validation,
        output: arguments.output.as_ref().map(|path| path.display().to_string()),
        model: file,
    })
}

/// Why the loss has no minimiser, where that is seen: classes that can be separated, some or all of them, or counts that are zero in a whole
/// direction; and no penalty on large weights.
fn no_minimiser(linear: &Linear, training: &Score, falls: bool) -> Option<&'static str> {
    let classes = matches!(linear.loss(), Loss::Logistic | Loss::Multinomial { .. });
    let penalised = linear.design().penalty > 0.0;
    match (classes, falls) {
        _ if penalised => None,
        (true, _) if training.separated => Some(
            "the classes can be separated, so the loss has no minimiser: it falls for ever as the weights grow",
        ),
        (true, true) => Some(
            "some rows can be told apart with certainty (quasi-separation), so the loss has no minimiser: it falls for ever as some weights grow",
        ),
        (false, true) => Some(
            "the labels are zero wherever some columns are not, so the loss has no minimiser: it falls for ever as some weights grow",
        ),
        (_, false) => None,
    }
}
