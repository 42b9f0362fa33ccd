//! A table `problem` with a command: a simulator in any language.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use pasta_opt::digest::Digest;
use pasta_opt::run::{self, Named};
use pasta_pipe::{Counts, Pipe, Simulator, StartError};
use toml_edit::Value;

use super::problem::Problem;
use super::section::Section;
use super::trust::{self, Origin};
use crate::Failure;
use crate::talk::pass_on;
use crate::world;

/// The workers of a problem file.
#[derive(Debug, Clone)]
pub struct Simulated {
    /// The pipe to them.
    pub pipe: Arc<Pipe>,
    /// True if the file wants it checked before a run.
    pub check: bool,
}

impl Simulated {
    /// What its workers have done, those of all ranks together. All have to call it; if they are gone, it is what this one's did.
    pub fn counts(&self) -> Counts {
        let own = self.pipe.counts();
        let all = serde_json::to_vec(&own).map(world::gather);
        let Ok(Ok(all)) = all else { return own };
        all.iter().filter_map(|one| serde_json::from_slice(one).ok()).fold(Counts::default(), Counts::plus)
    }

    /// The files that its command names, as they are now.
    pub fn files(&self) -> Vec<Named> {
        let Simulator { command, directory, .. } = self.pipe.simulator();
        let directory = directory.as_deref().unwrap_or(Path::new("."));
        let named = |name: &String| {
            let bytes = std::fs::read(directory.join(name)).ok()?;
            Some(Named { name: name.clone(), sha256: Digest::of(&bytes) })
        };
        command.iter().filter_map(named).collect()
    }

    /// Where it runs.
    pub(super) fn directory(&self) -> String {
        let directory = self.pipe.simulator().directory.as_deref().unwrap_or(Path::new("."));
        directory.display().to_string()
    }
}

const COMMAND: &str = "command";
pub(super) const DIRECTORY: &str = "directory";

/// The keys of a table `problem` with a command.
pub(super) const KEYS: [&str; 12] = [
    COMMAND,
    "dimension",
    "start",
    "workers",
    "block",
    "timeout",
    "greeting",
    "retries",
    DIRECTORY,
    "environment",
    "check",
    "pathwise",
];

/// What stands for the name of a file where the command line is all there is.
pub(super) const COMMAND_LINE: &str = "--command";

/// The simulator of a table `problem`, its first worker started; `None` if the table names no command.
pub(super) fn read(
    root: &Section<'_>,
    problem: &Section<'_>,
    threads: Option<usize>,
    origin: Origin,
) -> Result<Option<Problem>, Failure> {
    if problem.item(COMMAND).is_none() {
        return Ok(None);
    }
    problem.only(&KEYS)?;
    if root.item("noise").is_some() {
        return Err(
            root.complain("noise", "a simulator has its own noise; the table is for built-in problems")
        );
    }
    let simulator = simulator(problem, threads)?;
    let start = problem.start(simulator.dimension)?;
    let check = problem.flag("check")?.unwrap_or(true);
    trust::before_start(root.source, origin, &simulator)?;
    // What a worker has to say is heard, whichever process started it.
    let of_rank = world::rank().map_or_else(String::new, |rank| format!("rank {rank}, "));
    let talk = move |worker: usize, line: &str| pass_on(&format!("{of_rank}worker {worker}: {line}"));
    let pipe = Pipe::start(simulator, talk).map_err(|error| match error {
        StartError::Setting { name, needs } => problem.complain(name, &format!("expected {needs}")),
        other => problem.complain(COMMAND, &other.to_string()),
    })?;
    let name = &pipe.hello().name;
    let words = match name.as_str() {
        "" => format!("simulator {}, {} coordinates", pipe.simulator().words(), start.len()),
        name => format!("{name} (simulator {}), {} coordinates", pipe.simulator().words(), start.len()),
    };
    let pipe = Arc::new(pipe);
    let simulator = Some(Simulated { pipe: Arc::clone(&pipe), check });
    let what =
        run::Problem { oracle: world::spread_once(pipe), start, term: None, truth: None, table: None, words };
    Ok(Some(Problem::simulated(what, simulator)))
}

fn simulator(problem: &Section<'_>, threads: Option<usize>) -> Result<Simulator, Failure> {
    const WORDS: &str = "a list of words, the program and its arguments, such as [\"python3\", \"sim.py\"]";
    let command = strings(problem, COMMAND, WORDS)?.unwrap_or_default();
    let usual = Simulator::of(command);
    let count = |key, most: u64, expected: &str| match problem.count(key)? {
        Some(n) if n == 0 || n > most => Err(problem.complain(key, &format!("expected {expected}, got {n}"))),
        count => Ok(count),
    };
    let dimension = match count("dimension", 1 << 40, "a number of coordinates, at least 1")? {
        Some(dimension) => dimension as usize,
        None => match problem.item("start") {
            Some(item) if item.is_array() => problem.numbers("start")?.unwrap_or_default().len(),
            _ => return Err(problem.missing("dimension", "the number of coordinates")),
        },
    };
    let workers = count("workers", 4096, "a number of processes from 1 to 4096")?;
    let all = || thread::available_parallelism().map_or(1, usize::from);
    let block = count("block", 1 << 32, "a number of samples from 1 to 2^32")?;
    let timeout = seconds(problem, "timeout")?;
    // To load a model may take longer than to answer with it.
    let greeting = seconds(problem, "greeting")?.or(timeout.map(|timeout| timeout.max(usual.start_timeout)));
    let retries = problem.count("retries")?.map_or(usual.retries, |n| n.min(1000) as u32);
    Ok(Simulator {
        dimension,
        workers: workers.map_or_else(|| threads.unwrap_or_else(all), |n| n as usize),
        block: block.unwrap_or(usual.block),
        timeout: timeout.unwrap_or(usual.timeout),
        start_timeout: greeting.unwrap_or(usual.start_timeout),
        retries,
        directory: Some(directory(problem)?),
        environment: environment(problem)?,
        pathwise: problem.flag("pathwise")?,
        ..usual
    })
}

fn seconds(problem: &Section<'_>, key: &str) -> Result<Option<Duration>, Failure> {
    let Some(seconds) = problem.number(key)? else { return Ok(None) };
    if seconds.is_nan() || seconds <= 0.0 {
        return Err(problem.complain(key, &format!("expected a number of seconds above 0, got {seconds}")));
    }
    // For ever, if it is beyond what a clock can say.
    Ok(Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)))
}

/// Where the simulator runs: a relative directory is taken from that of the file.
fn directory(problem: &Section<'_>) -> Result<PathBuf, Failure> {
    let of_file = Path::new(problem.source.file).parent().unwrap_or(Path::new(""));
    let directory = of_file.join(problem.text(DIRECTORY)?.unwrap_or(""));
    let directory = if directory.as_os_str().is_empty() { PathBuf::from(".") } else { directory };
    directory.canonicalize().map_err(|error| {
        let shown = directory.display();
        problem.complain(DIRECTORY, &format!("{shown}: {error}"))
    })
}

fn environment(problem: &Section<'_>) -> Result<Vec<(String, String)>, Failure> {
    let Some(item) = problem.item("environment") else { return Ok(Vec::new()) };
    let expected = "a table of texts, such as { MODEL = \"large\" }";
    let table = item.as_table_like().ok_or_else(|| problem.wrong_type("environment", expected, item))?;
    let pair = |(name, item): (&str, &toml_edit::Item)| match item.as_str() {
        _ if name.is_empty() || name.contains(['=', '\0']) => {
            Err(problem.complain("environment", &format!("{name:?} is no name of a variable")))
        }
        Some(text) if !text.contains('\0') => Ok((name.to_owned(), text.to_owned())),
        _ => Err(problem.complain("environment", &format!("{name}: expected {expected}"))),
    };
    table.iter().map(pair).collect()
}

/// A list of texts.
fn strings(section: &Section<'_>, key: &str, expected: &str) -> Result<Option<Vec<String>>, Failure> {
    let Some(item) = section.item(key) else { return Ok(None) };
    let list = item.as_array().ok_or_else(|| section.wrong_type(key, expected, item))?;
    let words: Option<Vec<String>> = list.iter().map(|word| word.as_str().map(str::to_owned)).collect();
    match words {
        Some(words)
            if words.first().is_some_and(|word| !word.is_empty())
                && !words.iter().any(|w| w.contains('\0')) =>
        {
            Ok(Some(words))
        }
        _ => Err(section.wrong_type(key, expected, item)),
    }
}

/// A simulator on the command line, without a file.
#[derive(Debug, Clone, Copy)]
pub struct QuickTry<'a> {
    /// The program and its arguments, quoted as for a shell.
    pub command: &'a str,
    /// The number of coordinates.
    pub dimension: u32,
    /// The start: one number for all coordinates, or as many as there are with commas between.
    pub start: &'a str,
}

/// What a certificate assumes of noise of which nothing is declared.
const KURTOSIS: i64 = 100;

impl QuickTry<'_> {
    /// The problem file that says the same.
    pub(super) fn file(&self, certified: bool) -> Result<String, Failure> {
        let Self { command, dimension, start } = *self;
        let Some(words) = shlex::split(command).filter(|words| !words.is_empty()) else {
            return Err(Failure::input(format!(
                "--command: {command:?} is no command, or a quote does not end"
            )));
        };
        let numbers: Result<Vec<f64>, _> = start.split(',').map(|x| x.trim().parse()).collect();
        let start: Value = match numbers.as_deref() {
            Ok([x]) => (*x).into(),
            Ok(numbers) => numbers.iter().copied().collect::<toml_edit::Array>().into(),
            Err(_) => {
                return Err(Failure::input(format!(
                    "--start: expected numbers with commas between, got {start:?}"
                )));
            }
        };
        let mut problem = toml_edit::Table::new();
        problem["command"] = toml_edit::value(words.into_iter().collect::<toml_edit::Array>());
        problem["dimension"] = toml_edit::value(i64::from(dimension));
        problem["start"] = toml_edit::value(start);
        let mut file = toml_edit::DocumentMut::new();
        file["problem"] = toml_edit::Item::Table(problem);
        file["recipe"] = toml_edit::table();
        file["recipe"]["name"] = toml_edit::value("auto");
        if certified {
            file["certificate"] = toml_edit::table();
            file["certificate"]["kurtosis"] = toml_edit::value(KURTOSIS);
        }
        Ok(file.to_string())
    }

    /// What there is to say about what was not asked for.
    pub fn note(certified: bool) -> Option<String> {
        let assumed = format!(
            "certificates assume that the kurtosis of the noise is at most {KURTOSIS}; a file can say otherwise"
        );
        certified.then_some(assumed)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::section::{Section, Source};
    use super::simulator;

    #[test]
    fn starting_may_take_a_minute_or_as_long_as_a_request_unless_the_file_says_otherwise() {
        let cases =
            [("", 60), ("timeout = 5", 60), ("timeout = 900", 900), ("timeout = 900\ngreeting = 3", 3)];
        for (keys, seconds) in cases {
            let text = format!("command = [\"x\"]\ndimension = 1\n{keys}\n");
            let document = toml_edit::Document::parse(text.as_str()).expect("it is TOML");
            let source = Source { file: "p.toml", text: &text };
            let table = Section { source, name: "problem".into(), table: document.as_table(), line: 1 };
            let read = simulator(&table, None).expect("it is a simulator");
            assert_eq!(read.start_timeout, Duration::from_secs(seconds), "{keys}");
        }
    }
}
