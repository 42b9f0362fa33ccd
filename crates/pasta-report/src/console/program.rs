//! The outermost layer of a program: flags in, exit code out.

use std::env;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};

use clap::Parser;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::{Exit, Failure, answer, is_muted, say};
use pasta_io::safe;

/// The exit codes, for the help.
pub const EXIT_CODES: &str = "Exit codes: 0 done, 1 system failure, 2 bad input, 3 diverged, 4 not certified though that \
     was asked for, 5 out of budget, 129/130/143 interrupted (a run that had begun has written a checkpoint), 137 stopped at once by a \
     second signal (nothing was written).";

/// Reads the command line and runs the command. A failure is told on stderr, and where the command line has `--json`
/// on stdout too, as an object.
pub fn program<P: Parser>(run: impl FnOnce(P) -> Result<Exit, Failure>) -> Exit {
    program_with(env::args_os().collect(), run)
}

/// The same for a command line that another program hands over, its own name first.
pub fn program_with<P: Parser>(
    arguments: Vec<OsString>,
    run: impl FnOnce(P) -> Result<Exit, Failure>,
) -> Exit {
    super::signals::survive_large_files();
    let as_json = arguments.iter().any(|argument| argument == "--json");
    match P::try_parse_from(arguments) {
        Ok(program) => run(program).unwrap_or_else(|failure| {
            say(&failure.to_string());
            tell(&failure, as_json)
        }),
        Err(mut error) if error.use_stderr() => {
            explain(&mut error);
            let text = error.render();
            if is_muted() {
                // Another process complains.
            } else if io::stderr().is_terminal() && text.to_string().len() < LONGEST_COMPLAINT {
                let _ = write!(io::stderr(), "{}", text.ansi());
            } else {
                let _ = write!(io::stderr(), "{}", safe(&text.to_string(), LONGEST_COMPLAINT));
            }
            tell(&refusal(&text.to_string()), as_json)
        }
        // Help or the version, which were asked for.
        Err(asked) => {
            if !is_muted() {
                let _ = asked.print();
            }
            Exit::Done
        }
    }
}

/// Flags of other programs, and what there is here in their place.
const ELSEWHERE: [(&[&str], &str); 5] = [
    (
        &["--lr", "--learning-rate", "--step-size", "--stepsize", "--eta0"],
        "there is no learning rate to set: auto and exact choose their steps. A method with a step size of your own is named in a problem \
         file: [recipe] name = \"sgd\", eta = 0.1, steps = 10000",
    ),
    (
        &["--epochs", "--max-iter", "--max-iterations", "--iterations", "--n-iter", "--num-epochs"],
        "a run ends at its target (--target EPS) or its budget (--budget SAMPLES), not after a number of epochs; an epoch of a table is as \
         many samples as it has rows",
    ),
    (
        &["--tol", "--tolerance", "--eps", "--gtol"],
        "--target EPS stops a run when |grad f| <= EPS is certified; --target 1% means 1 % of the gradient at the start",
    ),
    (
        &["--batch-size", "--minibatch", "--batch"],
        "auto chooses its batches. A method with a batch of your own is named in a problem file: [recipe] name = \"sgd\", batch = 32",
    ),
    (
        &["--l2", "--alpha", "--weight-decay", "--reg"],
        "--penalty L adds L/2 |w|^2 to a fit, --penalty auto chooses L by cross-validation",
    ),
];

/// Adds a sentence about a flag that other programs have.
fn explain(error: &mut clap::Error) {
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else { return };
    let name = flag.split('=').next().unwrap_or_default();
    let Some((_, sentence)) = ELSEWHERE.iter().find(|(names, _)| names.contains(&name)) else { return };
    if error.kind() == ErrorKind::UnknownArgument {
        // What clap found to be similar is not what was meant.
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::TrailingArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(*sentence)]));
    }
}

/// Longer than any usage.
const LONGEST_COMPLAINT: usize = 4000;

fn tell(failure: &Failure, as_json: bool) -> Exit {
    if as_json {
        // The exit code says it too, if stdout is closed.
        let _ = answer(&failure.json());
    }
    failure.exit
}

/// What is wrong with the command line; the usage and the way to more help are not for programs.
fn refusal(text: &str) -> Failure {
    let end = ["\n\nUsage:", "\n\nFor more information"].iter().filter_map(|end| text.find(end)).min();
    let text = text[..end.unwrap_or(text.len())].trim();
    Failure::input(text.strip_prefix("error: ").unwrap_or(text))
}

/// Works on so many threads; `None` is as many as the machine has.
pub fn with_threads(
    threads: Option<usize>,
    work: impl FnOnce() -> Result<Exit, Failure> + Send,
) -> Result<Exit, Failure> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0)).build();
    pool.map_err(|error| Failure::system(format!("no threads: {error}")))?.install(work)
}

#[cfg(test)]
mod tests {
    use clap::{Arg, Command};

    use super::{explain, refusal};

    #[test]
    fn a_flag_of_another_program_is_explained() {
        let command = Command::new("pasta").arg(Arg::new("target").long("target"));
        let told = |flag: &str| {
            let mut error = command.clone().try_get_matches_from(["pasta", flag]).expect_err("unknown");
            explain(&mut error);
            error.to_string()
        };
        assert!(told("--lr=0.1").contains("no learning rate to set"), "{}", told("--lr=0.1"));
        assert!(told("--tol").contains("tip: --target EPS stops"), "{}", told("--tol"));
        assert!(told("--targt").contains("--target") && !told("--targt").contains("EPS"));
    }

    #[test]
    fn a_refused_command_line_is_told_without_its_usage() {
        let text = "error: unexpected argument '--x' found\n\nUsage: pasta <COMMAND>\n\nFor more information, try '--help'.\n";
        assert_eq!(refusal(text).to_string(), "error: unexpected argument '--x' found");
    }
}
