//! `pasta verify`: the certificate of a result, made again and compared.

use std::path::{Path, PathBuf};

use clap::Args;
use pasta_opt::certificate::CertificateError;
use pasta_opt::verify::{Given, Unverified, Verified, verify};
use serde::{Deserialize, Serialize};

use crate::solve::{point_in, result_file, spec_file};
use crate::spec::trust::Origin;
use crate::spec::{self, Overrides, Simulated};
use crate::world::{self, At};
use pasta_report::console::{self, Exit, Failure, Report, Signals, flags, with_threads};

/// Verify the certificate of a result: draw its samples again and compare every number.
///
/// The samples of a certificate have addresses: seed, attempt and number. They are drawn again at the point of the result, the bound, the verdict and all
/// numbers behind them are computed anew, and so is what the ledger says about certificates. Of a table all rows are read again. Exits with 0 if every bit is
/// the same, and with 4, and the first number that differs, if one is not.
///
/// It does not see how the run came to its point, or whether seeds were tried until one was lucky: for that, certify the point with a seed of your own
/// (pasta certify DIR --seed N). docs/formats.md lists what is compared.
///
/// Of a simulator it starts the program that the problem file names; that of a folder which your pasta did not write on this machine needs --trust.
#[derive(Args)]
#[command(after_long_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The output folder of a run, or a result: result.json, or what `pasta certify --json` printed
    #[arg(value_name = "DIR or FILE")]
    path: PathBuf,
    /// The problem file [default: problem.toml beside the result]
    #[arg(long, value_name = "FILE")]
    problem: Option<PathBuf>,
    /// Threads; does not change a bit of the result
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = flags::thread_count())]
    threads: Option<u16>,
    /// Start the simulator of a folder that your pasta did not write on this machine
    #[arg(long)]
    trust: bool,
    /// Print one JSON object instead of a sentence
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
Examples:
  # A run, and its certificate again.
  pasta solve examples/sine-bowl.toml --certify 0.1 --output run
  pasta verify run

  # A certificate by hand.
  pasta certify examples/sine-bowl.toml --at 0.001 --target 0.1 --json > c.json
  pasta verify c.json --problem examples/sine-bowl.toml

proof/verify.py does the same for built-in problems and small tables, in
Python without this program.";

/// What tells a certificate by hand from that of a run.
#[derive(Deserialize)]
struct Kind {
    certificate: Option<Whose>,
}

#[derive(Deserialize)]
struct Whose {
    /// Earlier formats, which `verify` refuses, do not have it.
    #[serde(default)]
    by_hand: bool,
}

/// Runs `pasta verify`.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let path = &arguments.path;
    let is_folder = world::look(path).map_err(Failure::system)? == At::Folder;
    let result = if is_folder { result_file(path) } else { path.clone() };
    let name = result.display().to_string();
    let text = world::read_to_string(&result).map_err(|error| Failure::input(error).in_file(&name))?;
    let (file, origin) = if let Some(file) = &arguments.problem {
        (file.clone(), Origin::Named)
    } else {
        let beside = result.parent().filter(|folder| !folder.as_os_str().is_empty());
        (spec_file(beside.unwrap_or(Path::new(".")))?, Origin::folder(arguments.trust))
    };
    let kind: Kind = serde_json::from_str(&text).map_err(|error| Failure::input(error).in_file(&name))?;
    let is_by_hand = kind.certificate.is_some_and(|certificate| certificate.by_hand);
    let overrides = Overrides { threads: arguments.threads, origin, ..Overrides::default() };
    let (problem, task, threads) = if is_by_hand {
        let setup = spec::read_setup(&file, &overrides)?;
        (setup.problem, None, setup.threads)
    } else {
        let spec = spec::read(&file, &overrides)?;
        (spec.problem, Some(spec.task), spec.threads)
    };
    let point = point_in(&result, &text)?;
    with_threads(threads, || {
        let signals = Signals::register()?;
        let mut given = Given::of(problem.what());
        (given.task, given.point) = (task.as_ref(), point);
        given.files =
            (!is_by_hand).then(|| problem.simulator.as_ref().map_or_else(Vec::new, Simulated::files));
        let answer = match verify(&text, &given, world::watch(signals.flag())) {
            Ok(verified) => Answer::Verified(Box::new(verified)),
            Err(error) if error.is_interrupted() => {
                return Ok(signals.received().unwrap_or(Exit::Interrupted));
            }
            Err(Unverified::Differs { name, written, recomputed }) => {
                Answer::Differs(Differs { name, written, recomputed })
            }
            Err(Unverified::Certificate(CertificateError::Halt(halt))) => return Err(Failure::system(halt)),
            Err(error) => return Err(Failure::input(error).in_file(&name)),
        };
        console::print(
            &Said { verified: matches!(answer, Answer::Verified(_)), answer: &answer },
            arguments.json,
        )?;
        Ok(match answer {
            Answer::Verified(_) => Exit::Done,
            Answer::Differs(_) => Exit::NotCertified,
        })
    })
}

/// What came of it.
#[derive(Serialize)]
#[serde(untagged)]
enum Answer {
    Verified(Box<Verified>),
    Differs(Differs),
}

/// The first number that differs.
#[derive(Serialize)]
struct Differs {
    name: String,
    written: String,
    recomputed: String,
}

#[derive(Serialize)]
struct Said<'a> {
    verified: bool,
    #[serde(flatten)]
    answer: &'a Answer,
}

impl Report for Said<'_> {
    fn text(&self) -> String {
        match self.answer {
            Answer::Verified(verified) => {
                let (version, seed) = (env!("CARGO_PKG_VERSION"), verified.seed);
                format!(
                    "{}\nIt rests on: {}; seed {seed}; pasta {version}.\n{}",
                    verified.sentence(),
                    verified.oracle,
                    verified.certificate.statement()
                )
            }
            Answer::Differs(Differs { name, written, recomputed }) => {
                format!("not verified: {name} is {written} as written, but {recomputed} if computed again")
            }
        }
    }
}
