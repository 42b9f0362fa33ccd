//! `cargo xtask fuzz`: the laws of whole runs, and the readers, on many more cases than the tests try.

use std::env;
use std::process::Command;
use std::time::{Duration, Instant};

/// Cases of each law at a time, where a time is given.
const AT_A_TIME: u64 = 200;

/// Kilobytes of memory that readers may take: what a damaged file asks for beyond that is an error of theirs.
const MEMORY: u64 = 4_000_000;

/// The tests of the readers: arguments of `cargo test`, and the variable that says how many files they try.
const READERS: [(&str, &[&str], &str); 7] = [
    ("CSV, LIBSVM, NPY, NPZ, gzip, zstd", &["--package", "pasta-io", "--test", "mutations"], "MUTATIONS"),
    ("problem files", &["--package", "pasta-cli", "--lib", "mutations"], "PROPTEST_CASES"),
    ("models", &["--package", "pasta-cli", "--lib", "damaged_models"], "FUZZ_CASES"),
    ("checkpoints and traces", &["--package", "pasta-opt", "--test", "readers"], "PROPTEST_CASES"),
    ("results", &["--package", "pasta-opt", "--test", "verify", "damaged_results"], "FUZZ_CASES"),
    ("frames of pipes", &["--package", "pasta-pipe", "--lib", "damaged_replies"], "FUZZ_CASES"),
    ("messages of ranks", &["--package", "pasta-mpi", "--lib", "damaged_messages"], "FUZZ_CASES"),
];

/// `fuzz [--cases N | --seconds N]`, or `fuzz readers [--cases N]`.
pub(crate) fn run(arguments: &[String]) -> bool {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<u64>().ok();
    match words.as_slice() {
        [] => laws(0, 1000),
        ["--cases", cases] => number(cases).is_some_and(|cases| laws(0, cases)),
        ["--seconds", seconds] => number(seconds).is_some_and(laws_for),
        ["readers"] => readers(100_000),
        ["readers", "--cases", cases] => number(cases).is_some_and(readers),
        _ => {
            eprintln!("cargo xtask fuzz [--cases N | --seconds N], or cargo xtask fuzz readers [--cases N]");
            false
        }
    }
}

fn laws(first: u64, cases: u64) -> bool {
    let [first, cases] = [first, cases].map(|n| n.to_string());
    let variables = [("FUZZ_FIRST", first.as_str()), ("FUZZ_CASES", cases.as_str())];
    crate::cargo(&["test", "--quiet", "--package", "pasta-opt", "--test", "metamorphic"], &[], &variables)
}

/// Until the time is over, always other cases. The time of the last ones is not cut off.
fn laws_for(seconds: u64) -> bool {
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut first = 0;
    while Instant::now() < end {
        if !laws(first, AT_A_TIME) {
            return false;
        }
        first += AT_A_TIME;
    }
    eprintln!("{first} cases of each law");
    true
}

/// All readers, each on so many damaged files of each kind, with a bound on memory where the system has one.
fn readers(cases: u64) -> bool {
    let cargo = env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    READERS.iter().all(|(what, arguments, variable)| {
        let clock = Instant::now();
        let built = crate::cargo(&["test", "--quiet", "--no-run"], &owned(arguments), &[]);
        let mut command = if cfg!(unix) {
            let mut shell = Command::new("sh");
            shell.args(["-c", &format!("ulimit -v {MEMORY}; exec \"$@\""), "sh", &cargo]);
            shell
        } else {
            Command::new(&cargo)
        };
        command.args(["test", "--quiet"]).args(*arguments).env(variable, cases.to_string());
        let done = built && command.status().is_ok_and(|status| status.success());
        let seconds = clock.elapsed().as_secs();
        eprintln!(
            "{what}: {cases} of each kind, {}, {seconds} s",
            if done { "none broke it" } else { "BROKEN" }
        );
        done
    })
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
