//! `pasta-lab leaderboard`: every method without constants on every problem of the race.

mod goals;
mod html;
pub(crate) mod problems;
mod race;
mod rounds;
mod standing;

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use self::problems::{Kind, PROBLEMS, Problem, Set};
use self::race::{Contender, Entry, Limits, untuned};
use self::standing::Standing;
use pasta_report as report;
use pasta_report::console::{self, Exit, Failure, flags};

/// Race all methods that need no constants over many problems
///
/// Each method runs untuned, as published, from the same starts on the same problems with the same budget of samples. What counts is the
/// true gradient of the point that it hands out, over that of the start. Methods with a batch run with 1 and with 8, and the better one
/// counts. A bad end is a point whose value is above the start's, or no point at all.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Which problems: those that may be looked at while a method is being chosen, those that were kept back, or all
    #[arg(long, value_name = "SET", default_value = "dev")]
    problems: Problems,
    /// The same as --problems kept-back
    #[arg(long, conflicts_with = "problems")]
    kept_back: bool,
    /// Only these of them, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<String>,
    /// Which methods, separated by commas; the first, or auto, is compared with the others [default: all that need nothing set]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    methods: Vec<String>,
    /// Samples of each run
    #[arg(long, value_name = "SAMPLES", default_value = "50000", value_parser = flags::count)]
    budget: u64,
    /// Runs of each method on each problem
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// Seed of the first run; the others count up from it
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// File with the runs of the others, which is read if it is there and fits, and written: they do not change while one method does
    #[arg(long, value_name = "FILE")]
    peers: Option<PathBuf>,
    /// Measure the goals beside the race too: the cost of a certificate, the hard instance of Theorem 1
    #[arg(long)]
    goals: bool,
    /// Instead of the race: run auto to a certified share of the gradient at the start, on streams, where a round costs so many samples, for each of these
    /// costs (0: free), and count samples and rounds
    #[arg(long, value_name = "COSTS", value_delimiter = ',', conflicts_with_all = ["methods", "peers", "goals", "output"])]
    round_costs: Vec<u64>,
    /// The share that is certified with --round-costs
    #[arg(long, value_name = "SHARE", default_value_t = 0.1, requires = "round_costs")]
    share: f64,
    /// Folder for a page, index.html, and results.json; made if it is not there
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Print one JSON object, in full precision, instead of the tables
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Problems {
    Dev,
    KeptBack,
    All,
}

/// Runs `pasta-lab leaderboard`.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let problems = arguments.chosen()?;
    if !arguments.round_costs.is_empty() {
        let streams: Vec<_> = problems.into_iter().filter(|problem| problem.kind == Kind::Stream).collect();
        let Arguments { share, budget, seeds, seed, .. } = *arguments;
        let terms = rounds::Terms { share, budget, seeds, seed };
        let rounds = rounds::run(&streams, &arguments.round_costs, terms)?;
        return console::print(&rounds, arguments.json);
    }
    if let Some(folder) = &arguments.output {
        report::folder_for_page(folder)?;
    }
    let methods: Vec<String> = if arguments.methods.is_empty() {
        untuned().into_iter().map(str::to_owned).collect()
    } else {
        arguments.methods.clone()
    };
    let mut contenders = Vec::new();
    for name in &methods {
        contenders.extend(Contender::all(name)?);
    }
    let champion = methods.iter().find(|name| *name == "auto").unwrap_or(&methods[0]);
    let limits = Limits { budget: arguments.budget, seeds: arguments.seeds, seed: arguments.seed };
    let mut known = match &arguments.peers {
        Some(file) => Peers::read(file, limits)?,
        None => Vec::new(),
    };
    known.retain(|entry| entry.method != *champion);
    let entries = race::run(&problems, &contenders, limits, &known)?;
    if let Some(file) = &arguments.peers {
        Peers::write(file, limits, champion, &entries, known)?;
    }
    let mut standing = Standing::new(limits, champion, &problems, &methods, entries);
    if arguments.goals {
        standing.add(goals::beside_the_race(arguments.seeds, arguments.seed)?);
    }
    if let Some(folder) = &arguments.output {
        report::write(folder, "results.json", console::pretty_json(&standing)?)?;
        report::write(folder, "index.html", html::page(&standing, arguments.command()).html()?)?;
    }
    console::print(&standing, arguments.json)
}

impl Arguments {
    /// The command that does the same again.
    fn command(&self) -> String {
        let set = match (self.kept_back, self.problems) {
            (false, Problems::Dev) => "dev",
            (false, Problems::All) => "all",
            _ => "kept-back",
        };
        let mut words = format!(
            "pasta-lab leaderboard --problems {set} --budget {} --seeds {} --seed {}",
            self.budget, self.seeds, self.seed
        );
        for (flag, names) in [("only", &self.only), ("methods", &self.methods)] {
            if !names.is_empty() {
                words.extend([" --", flag, " ", &names.join(",")]);
            }
        }
        if self.goals {
            words.push_str(" --goals");
        }
        words + " --output leaderboard"
    }

    fn chosen(&self) -> Result<Vec<&'static Problem>, Failure> {
        let set = if self.kept_back { Problems::KeptBack } else { self.problems };
        let mut chosen: Vec<_> = PROBLEMS
            .iter()
            .filter(|problem| match set {
                Problems::Dev => problem.set == Set::Development,
                Problems::KeptBack => problem.set == Set::KeptBack,
                Problems::All => true,
            })
            .collect();
        if let Some(stranger) = self.only.iter().find(|name| chosen.iter().all(|p| p.name != name.as_str())) {
            let names: Vec<_> = chosen.iter().map(|problem| problem.name).collect();
            let message = format!("no problem of this set is called {stranger:?}");
            return Err(Failure::input(message).hint(format!("its problems: {}", names.join(", "))));
        }
        if !self.only.is_empty() {
            chosen.retain(|problem| self.only.iter().any(|name| name == problem.name));
        }
        Ok(chosen)
    }
}

/// Runs that need not be made again.
#[derive(Serialize, Deserialize)]
struct Peers {
    #[serde(flatten)]
    limits: Limits,
    entries: Vec<Entry>,
}

impl Peers {
    /// What the file knows of races like this one; nothing if it is not there.
    fn read(file: &Path, limits: Limits) -> Result<Vec<Entry>, Failure> {
        let text = match fs::read_to_string(file) {
            Ok(text) => text,
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(cause) => return Err(Failure::input(cause).in_file(file.display().to_string())),
        };
        let peers: Self = serde_json::from_str(&text)
            .map_err(|cause| Failure::input(cause).in_file(file.display().to_string()))?;
        if peers.limits != limits {
            let Limits { budget, seeds, seed } = peers.limits;
            let message = format!("its runs have --budget {budget} --seeds {seeds} --seed {seed}");
            return Err(Failure::input(message)
                .in_file(file.display().to_string())
                .hint("give the same, or name another file"));
        }
        Ok(peers.entries)
    }

    /// What was run now, and what the file knew besides.
    fn write(
        file: &Path,
        limits: Limits,
        champion: &str,
        entries: &[Entry],
        mut known: Vec<Entry>,
    ) -> Result<(), Failure> {
        let same =
            |a: &Entry, b: &Entry| a.problem == b.problem && a.method == b.method && a.batch == b.batch;
        known.retain(|old| !entries.iter().any(|new| same(old, new)));
        let new = entries.iter().filter(|entry| entry.method != champion).cloned();
        let peers = Self { limits, entries: known.into_iter().chain(new).collect() };
        let text = serde_json::to_string(&peers).map_err(Failure::system)?;
        pasta_report::write_file(file, text).map(|_| ())
    }
}
