//! `pasta check`: whether a simulator can be believed, and how it is best asked; and the short form of it before a run.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use pasta_opt::check::{self, CheckError, Effort, Findings, Slip, Slopes};
use pasta_opt::draws::{Address, Role};
use pasta_opt::oracle::{Answer, Batch, Request};
use pasta_opt::prelude::*;
use pasta_pipe::{Hello, Pipe, Question, Sums};
use serde::Serialize;

use crate::spec::{self, Overrides, Setup, Simulated};
use crate::waiting::Waiting;
use pasta_report::console::{self, Exit, Failure, Report, Signals, flags, say, with_threads};
use pasta_report::number::real;
use pasta_report::{Table, grouped};

/// The long help.
const HELP: &str = r"Check a problem for slips before a run, and find out how a simulator is best asked.

Reads [problem] of a file that `pasta solve` takes. Of a built-in problem or a
table it finds out whether the same seed repeats its samples, whether sums and
differences over a batch agree with single samples, and whether losses agree
with gradients. A simulator (docs/pipe.md) is a program, which it starts with
your rights, as every command does; of one it finds out, at and near the
start,

  * whether the same seed gives the same answer twice, and in another worker
    (resuming, equal bits and the variance reduction PAGE need that);
  * whether a sample depends on its seed and number alone, and sums are sums of
    samples;
  * whether losses and gradients belong together, sample by sample: differences
    of losses along up to 64 coordinates and random directions, same samples at
    all points (in the mean alone where the file or the greeting says
    pathwise = false, as for likelihood ratios);
  * the noise, the time of a sample, the time of a request beside its samples,
    and a sensible `block`.

Every `pasta solve` of a simulator makes a short form of this check first, and
so does `pasta compare`, once for all its runs (--no-check leaves it out).

    pasta check examples/simulators/newsvendor.toml

Exits with 0 if nothing is wrong and with 2 if something is.";

/// Check a problem for slips before a run, and find out how a simulator is best asked.
#[derive(Args)]
#[command(long_about = HELP)]
pub(crate) struct Arguments {
    /// The problem file.
    file: PathBuf,
    /// Seed of all randomness (overrides the file; default 1).
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = flags::seed())]
    seed: Option<u64>,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

/// Checks the oracle of a run before its first step. False if a signal ended it.
pub(crate) fn before_run(run: &mut Run) -> Result<bool, Failure> {
    if run.is_prepared() {
        return Ok(true);
    }
    let left = run.gate().left();
    match run.next() {
        Ok(Event::End(_)) => {
            say("interrupted before the first step; nothing was kept");
            return Ok(false);
        }
        Ok(Event::Aimed(measured)) => {
            say(&format!("target {}: {}", real(measured.target), measured.words()));
            return Ok(true);
        }
        Ok(_) => {}
        Err(halt @ Halt::NoTarget(_)) => return Err(Failure::input(halt)),
        Err(halt) => return Err(refused(&halt)),
    }
    match run.findings() {
        // A budget is for the run.
        None => {
            let least = Effort::LEAST_BUDGET;
            say(&format!("note: the simulator is not checked: the budget has {left} samples, below {least}"));
        }
        Some(findings) => {
            if let Some(note) = findings.note() {
                say(&format!("note: {note}"));
            }
        }
    }
    before_run(run)
}

/// Why an oracle did not pass.
fn refused(halt: &Halt) -> Failure {
    let Halt::Oracle(error) = halt else { return Failure::system(halt) };
    let found = std::error::Error::source(error).and_then(|source| source.downcast_ref::<CheckError>());
    let Some(CheckError { slips, .. }) = found else { return Failure::system(halt) };
    let hint = "`pasta check` with the file says more; --no-check runs it as it is";
    Failure::input(format!("the simulator failed its check: {}", check::sentences(slips))).hint(hint)
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let Arguments { file, seed, json } = arguments;
    let setup = spec::read_setup(file, &Overrides { seed: *seed, ..Overrides::default() })?;
    with_threads(setup.threads, || {
        let signals = Signals::register()?;
        let mut gate = setup.problem.gate(setup.seed, None, signals.flag());
        let waiting = Waiting::start("checking the oracle");
        let checked = check::oracle(&mut gate, &setup.problem.start, Effort::Thorough);
        drop(waiting);
        let findings = match checked {
            Ok(findings) => findings,
            Err(Halt::Interrupted) => {
                say("interrupted");
                return Ok(signals.received().unwrap_or(Exit::Interrupted));
            }
            Err(halt) => return Err(Failure::system(halt)),
        };
        let Some(simulator) = setup.problem.simulator.clone() else {
            let verdict = Plain::new(&setup, &mut gate, findings).map_err(Failure::system)?;
            let exit = if verdict.is_sound { Exit::Done } else { Exit::Input };
            return console::print(&verdict, *json).map(|_| exit);
        };
        let verdict = Verdict::new(&setup, &simulator, findings).map_err(Failure::system)?;
        let exit = if verdict.is_sound { Exit::Done } else { Exit::Input };
        console::print(&verdict, *json).map(|_| exit)
    })
}

/// What a check found of a problem that is no simulator: a built-in one, or the rows of a table.
#[derive(Serialize)]
struct Plain {
    problem: String,
    seed: u64,
    is_sound: bool,
    #[serde(flatten)]
    findings: Findings,
    /// What is wrong, in sentences.
    sentences: Vec<String>,
    noise: Noise,
}

impl Plain {
    fn new(setup: &Setup, gate: &mut Gate, findings: Findings) -> Result<Self, Halt> {
        let x = setup.problem.start.as_slice();
        let (mut sum, mut squares) = (vec![0.0; x.len()], 0.0);
        for i in 0..SPREAD {
            // A step that the check does not use.
            let batch = Batch { samples: i..i + 1, ..gate.batch(Role::Check, 1 << 40, 0) };
            let mut g = vec![0.0; x.len()];
            gate.ask(Request::sums(batch, &[x]), &mut Answer::new(&mut g))?;
            squares += g.iter().map(|g| g * g).sum::<f64>();
            sum.iter_mut().zip(&g).for_each(|(sum, g)| *sum += g);
        }
        let noise = Noise::of(&sum, squares);
        let sentences: Vec<String> = findings.slips.iter().map(ToString::to_string).collect();
        let (problem, seed) = (setup.problem.words.clone(), setup.seed);
        Ok(Self { problem, seed, is_sound: sentences.is_empty(), findings, sentences, noise })
    }
}

impl Report for Plain {
    fn text(&self) -> String {
        let verdict = match self.sentences.as_slice() {
            [] => format!("nothing wrong was found in {} samples", grouped(self.findings.samples)),
            sentences => format!("failed: {}", sentences.join("; ")),
        };
        let losses = match self.findings.slopes.as_slice() {
            [] => "it gives none".to_owned(),
            slopes => format!(
                "compared with gradients along {} coordinates and {} directions",
                self.findings.coordinates,
                slopes.len()
            ),
        };
        Table::labelled(vec![
            ("problem", self.problem.clone()),
            ("verdict", verdict),
            ("losses", losses),
            ("noise", self.noise.words(&self.findings)),
        ])
        .text()
    }
}

/// All that a check found. `docs/formats.md` has the keys.
#[derive(Serialize)]
struct Verdict {
    problem: String,
    seed: u64,
    is_sound: bool,
    hello: Hello,
    workers: usize,
    block: u64,
    #[serde(flatten)]
    findings: Findings,
    /// What is wrong, in sentences.
    sentences: Vec<String>,
    repeats: Repeats,
    noise: Noise,
    time: Time,
}

/// Whether an answer comes twice.
#[derive(Serialize)]
struct Repeats {
    same_worker: bool,
    /// `None` where there is only one.
    other_worker: Option<bool>,
}

/// The gradients at the start.
#[derive(Serialize)]
struct Noise {
    /// The norm of the mean.
    mean: f64,
    /// E|g - grad f|^2, estimated.
    variance: f64,
    samples: u64,
}

impl Noise {
    /// From the sum of [`SPREAD`] gradients and that of their squares.
    fn of(sum: &[f64], squares: f64) -> Self {
        let n = SPREAD as f64;
        let mean2 = sum.iter().map(|x| x * x).sum::<f64>() / (n * n);
        let variance = ((squares / n - mean2) * n / (n - 1.0)).max(0.0);
        Self { mean: mean2.sqrt(), variance, samples: SPREAD }
    }

    fn words(&self, findings: &Findings) -> String {
        let Self { mean, variance, samples } = *self;
        if let Some(note) = findings.note() {
            return note.into();
        }
        let (mean, variance) = (real(mean), real(variance));
        format!("at the start |mean g| is {mean} and E|g - grad f|^2 about {variance} ({samples} samples)")
    }
}

/// Seconds, as measured now on this machine.
#[derive(Serialize)]
struct Time {
    sample: f64,
    /// Of a request, beside its samples; `None` where the machine was too busy to tell.
    request: Option<f64>,
    /// Samples of a request of which one twentieth goes into asking.
    sensible_block: Option<u64>,
}

/// Samples that the noise is measured by.
const SPREAD: u64 = 64;

impl Verdict {
    fn new(setup: &Setup, simulator: &Simulated, findings: Findings) -> Result<Self, OracleError> {
        let (pipe, x) = (&*simulator.pipe, setup.problem.start.as_slice());
        let seed = |step| {
            let address = Address { seed: setup.seed, role: Role::Check, step, sample: 0 };
            address.stream().below(u64::MAX)
        };
        let hello = pipe.hello().clone();
        let workers = pipe.simulator().workers;
        let ask = |worker, samples: u64| one(pipe, x, worker, seed(1 << 40), 0..samples);
        let first = ask(0, 5)?;
        let repeats = Repeats {
            same_worker: bits(&first) == bits(&ask(0, 5)?),
            other_worker: if workers > 1 { Some(bits(&first) == bits(&ask(1, 5)?)) } else { None },
        };
        let mut sentences: Vec<String> = findings.slips.iter().map(ToString::to_string).collect();
        if hello.reproducible && repeats.other_worker == Some(false) && repeats.same_worker {
            sentences.push(
                "another worker gave another answer to the same request: an answer depends on the process"
                    .into(),
            );
        } else if hello.reproducible && !repeats.same_worker && sentences.is_empty() {
            sentences.push(
                "the same request got two answers, but the greeting says that samples are reproducible"
                    .into(),
            );
        }
        let noise = noise(pipe, x, seed(1 + (1 << 40)))?;
        let time = time(pipe, x, seed(2 + (1 << 40)))?;
        let is_sound = sentences.is_empty();
        let (problem, seed, block) = (setup.problem.words.clone(), setup.seed, pipe.simulator().block);
        Ok(Self { problem, seed, is_sound, hello, workers, block, findings, sentences, repeats, noise, time })
    }

    fn repeated(&self) -> String {
        let Repeats { same_worker, other_worker } = self.repeats;
        let same = if same_worker { "the same answer twice" } else { "two answers" };
        let other = match other_worker {
            Some(true) => ", and the same in another worker",
            Some(false) => ", and another in another worker",
            None => "; there is one worker only",
        };
        let claimed = match (self.hello.reproducible, same_worker && other_worker != Some(false)) {
            (true, _) => "",
            (false, true) => {
                ". Its greeting could say so (reproducible): then PAGE, resume and calibrate would work"
            }
            (false, false) => ", as its greeting says: no PAGE, no resume, no calibrate",
        };
        format!("the same seed gives {same}{other}{claimed}")
    }

    fn losses(&self) -> String {
        let Findings { slopes, slips, is_repeatable, coordinates, .. } = &self.findings;
        match slopes.as_slice() {
            [] if !self.hello.losses => "it gives none".into(),
            [] if !is_repeatable => {
                "cannot be compared with gradients, since samples cannot be repeated".into()
            }
            [] => "not compared with gradients, because of what is wrong".into(),
            [Slopes { losses, gradients, difference, error }, rest @ ..] => {
                let agree = if slips.iter().any(Slip::is_of_losses) { "do not belong" } else { "belong" };
                let compared = match coordinates {
                    0 => String::new(),
                    n => format!(", compared sample by sample along {n} coordinates"),
                };
                let [losses, gradients, difference, error] =
                    [losses, gradients, difference, error].map(|x| real(*x));
                format!(
                    "{agree} to the gradients{compared}: along one of {} directions they change at the rate {losses}, the gradients say \
                     {gradients}; the difference is {difference} +- {error}",
                    rest.len() + 1
                )
            }
        }
    }
}

/// What a worker says to samples of a seed.
fn one(
    pipe: &Pipe,
    x: &[f64],
    worker: usize,
    seed: u64,
    samples: std::ops::Range<u64>,
) -> Result<Sums, OracleError> {
    let hello = pipe.hello();
    let question = Question { seed, samples, points: &[x], losses: hello.losses, squares: hello.squares };
    pipe.ask_worker(worker, &question)
}

fn bits(sums: &Sums) -> Vec<u64> {
    [&sums.gradients, &sums.losses].iter().flat_map(|numbers| numbers.iter().map(|x| x.to_bits())).collect()
}

/// The mean and the spread of gradients: from sums of squares where there are any, from single samples otherwise.
fn noise(pipe: &Pipe, x: &[f64], seed: u64) -> Result<Noise, OracleError> {
    let square = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>();
    let (sum, squares) = if pipe.hello().squares {
        let sums = one(pipe, x, 0, seed, 0..SPREAD)?;
        (sums.gradients, sums.squares[0])
    } else {
        let (mut sum, mut squares) = (vec![0.0; x.len()], 0.0);
        for i in 0..SPREAD {
            let Sums { gradients, .. } = one(pipe, x, 0, seed, i..i + 1)?;
            squares += square(&gradients);
            sum.iter_mut().zip(&gradients).for_each(|(sum, g)| *sum += g);
        }
        (sum, squares)
    };
    Ok(Noise::of(&sum, squares))
}

/// Requests of one sample, and of so many that they take a while: the slope is a sample, what is left over is the request.
fn time(pipe: &Pipe, x: &[f64], seed: u64) -> Result<Time, OracleError> {
    const ENOUGH: f64 = 0.05;
    let fastest = |samples: u64, tries: u32| -> Result<f64, OracleError> {
        let mut best = f64::INFINITY;
        for _ in 0..tries {
            let clock = Instant::now();
            one(pipe, x, 0, seed, 0..samples)?;
            best = best.min(clock.elapsed().as_secs_f64());
        }
        Ok(best)
    };
    // The first answer of a process may be slow.
    let first = fastest(1, 2)?;
    let (tries, rounds) = if first < 0.1 { (20, ROUNDS) } else { (1, 1) };
    let mut single = fastest(1, tries)?.min(first);
    let (mut samples, mut many) = (2, fastest(2, tries.min(3))?);
    while many < ENOUGH && samples < 1 << 14 {
        samples *= 2;
        many = fastest(samples, 3)?;
    }
    // What else the machine does comes and goes: the least of several rounds.
    for _ in 1..rounds {
        single = single.min(fastest(1, tries)?);
        many = many.min(fastest(samples, 3)?);
    }
    Ok(Time::of(single, many, samples))
}

/// How often times are measured again.
const ROUNDS: u32 = 4;

impl Time {
    /// From the seconds of a request of one sample and of one of several.
    fn of(single: f64, many: f64, samples: u64) -> Self {
        let sample = ((many - single) / (samples - 1) as f64).max(1e-9);
        // No request takes no time.
        let request = Some(single - sample).filter(|request| *request > 0.0);
        let block = |request: f64| (20.0 * request / sample).ceil().clamp(1.0, 65_536.0) as u64;
        Self { sample, request, sensible_block: request.map(|request| block(request).next_power_of_two()) }
    }
}

/// A time as people say it.
pub(crate) fn seconds(time: f64) -> String {
    match time {
        t if t < 1e-3 => format!("{:.1} us", t * 1e6),
        t if t < 1.0 => format!("{:.2} ms", t * 1e3),
        t => format!("{t:.2} s"),
    }
}

impl Report for Verdict {
    fn text(&self) -> String {
        let Hello { losses, reproducible, squares, framing, .. } = &self.hello;
        let has = |has: bool, what: &str| format!("{}{what}", if has { "" } else { "no " });
        let framing = format!("{framing:?}").to_lowercase();
        let greeting = format!(
            "version 1, {framing} framing, {}, {}, {}",
            has(*losses, "losses"),
            if *reproducible { "reproducible samples" } else { "samples that cannot be repeated" },
            has(*squares, "sums of squares")
        );
        let verdict = match self.sentences.as_slice() {
            [] => format!("nothing wrong was found in {} samples", grouped(self.findings.samples)),
            sentences => format!("failed: {}", sentences.join("; ")),
        };
        let noise = self.noise.words(&self.findings);
        let Time { sample, request, sensible_block } = self.time;
        let (time, block) = match request.zip(sensible_block) {
            None => (
                format!("{} a sample; that of a request cannot be told from it", seconds(sample)),
                format!("{}; the machine is too busy to say which would be best: check again", self.block),
            ),
            Some((request, sensible)) => {
                let part = 100.0 * request / (request + self.block as f64 * sample);
                let each = [sample, request].map(seconds);
                (
                    format!("{} a sample, {} a request beside its samples", each[0], each[1]),
                    format!(
                        "with block = {} asking takes {part:.0} % of the time; block = {sensible} takes at most 5 %",
                        self.block
                    ),
                )
            }
        };
        Table::labelled(vec![
            ("problem", self.problem.clone()),
            ("verdict", verdict),
            ("greeting", greeting),
            ("repeated", self.repeated()),
            ("losses", self.losses()),
            ("noise", noise),
            ("time", time),
            ("block", block),
            ("workers", self.workers.to_string()),
        ])
        .text()
    }
}

#[cfg(test)]
mod tests {
    use super::Time;

    #[test]
    fn a_request_that_seems_to_take_no_time_makes_no_block() {
        // 10 us a sample and 40 us a request.
        let quiet = Time::of(50e-6, 40e-6 + 1000.0 * 10e-6, 1000);
        assert_eq!(quiet.sensible_block, Some(128));
        // The machine was busy whenever many samples were asked for.
        let busy = Time::of(50e-6, 0.1, 1000);
        assert_eq!((busy.request, busy.sensible_block), (None, None));
    }
}
