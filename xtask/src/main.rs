//! Developer commands: `cargo xtask test`, `cargo xtask check`, `cargo xtask evidence` and the others that [`HELP`] lists.
#![expect(clippy::print_stderr, reason = "stderr is where a program talks")]

mod beside;
mod evidence;
mod fuzz;
mod packages;
mod peers;
mod proof;
mod python;
mod release;
mod site;

use std::env;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

const HELP: &str = "\
cargo xtask COMMAND

  test   all tests: unit, integration, documentation examples
  check  what has to hold besides: formatting, clippy, rustdoc, all without a warning; licences of all
         dependencies and the compiler they need; licences, readme and metadata in each package (the
         last two alone: packages)
  browser
         looks at the pages of a reproduction with chromium or google-chrome, and fails without one
  msrv   compiles with the oldest compiler that is promised; needs rustup toolchain install 1.89;
         arguments select packages
  miri   looks for undefined behaviour in the vector loops with Miri; needs rustup toolchain install nightly
         --component miri --component rust-src
  evidence
         what takes too long for every change; names select, --list lists
  fuzz   laws of whole runs (docs/laws.md) on many cases: --cases N of each, or --seconds N; or readers
         [--cases N]: damaged files and messages, N of each kind, which are read or refused
  mpi    clippy and tests of what needs MPI, on real ranks; needs mpirun, mpicc and libclang. Where MPICH is installed beside
         Open MPI (mpicc.mpich, mpirun.mpich), ranks of MPICH are tested too
  proof  the proof of the certificate, checked by Coq; needs coqc
  py     the Python package, installed into a fresh environment and tested there; needs python3 with
         venv; --jax and --torch add the tests of what needs JAX and PyTorch, which are installed
         for it; other arguments go to pytest
  release --dry-run
         what a release consists of, built and checked in target/dist: verified crates, a manylinux wheel that is tried in a fresh environment
         (PASTA_PYTHON names the Python), the program in an archive with completions and man pages, static if the musl target is installed,
         checksums, notes; uploads nothing. Names select: notes, crates, wheel, program, checksums
  site   docs/ as a site in target/site that needs no network, with a search and a reference that the program writes; follows all links
  bench  benchmarks, printed as ratios of the same run; an argument selects by name
  bench-peers
         speed on tables beside NumPy, scikit-learn, JAX and cyanure; makes a Python environment
         under the target folder on its first run
  fit-peers
         passes and time of a fit to a small gradient beside scikit-learn and cyanure, likewise; arguments
         are the beginnings of names of tables
  bench-parse
         speed and memory of reading LIBSVM and CSV text beside scikit-learn and pandas, likewise
  bench-stream
         one pass over a stream beside Vowpal Wabbit and scikit-learn's partial_fit, likewise; streams,
         tables and tail select a part
  bench-py
         what a call of an oracle in Python costs beside a loop in Python, and a fit of PastaRegressor
         beside the program and SGDRegressor, likewise
  bench-mpi
         efficiency of two ranks for samples of a microsecond, messages and bytes a step; needs MPI and
         two idle cores
  raw-tables
         public tables, raw columns, defaults: writes docs/raw-tables.md, likewise";

const BENCHES: [(&str, &str); 4] =
    [("pasta-opt", "ratios"), ("pasta-opt", "hard"), ("pasta-opt", "tables"), ("pasta-pipe", "pipe")];

fn main() -> ExitCode {
    let mut arguments = env::args().skip(1);
    let command = arguments.next().unwrap_or_default();
    let rest: Vec<String> = arguments.collect();
    let succeeded = match command.as_str() {
        "test" => cargo(&["test", "--workspace"], &rest, &[]),
        "check" => check(),
        "browser" => browser(),
        "packages" => packages::dependencies() && packages::contents(),
        "msrv" => msrv(&rest),
        "miri" => miri(),
        "evidence" => evidence::run(&rest),
        "fuzz" => fuzz::run(&rest),
        "mpi" => mpi(&rest),
        "proof" => proof::run(),
        "py" => python::run(&rest),
        "release" => release::run(&rest),
        "site" => site::run(),
        "bench-peers" => peers::run(),
        "fit-peers" => beside::fit_peers(&rest),
        "bench-parse" => beside::bench_parse(),
        "bench-stream" => beside::bench_stream(&rest),
        "bench-py" => python::bench(),
        "bench-mpi" => bench_mpi(),
        "raw-tables" => beside::raw_tables(),
        "bench" => BENCHES.iter().all(|(package, bench)| {
            cargo(&["bench", "--package", package, "--bench", bench, "--"], &rest, &[])
        }),
        _ => {
            eprintln!("{HELP}");
            false
        }
    };
    if succeeded { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn check() -> bool {
    cargo(&["fmt", "--all", "--check"], &[], &[])
        && cargo(&["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"], &[], &[])
        && cargo(
            &["doc", "--workspace", "--no-deps", "--document-private-items"],
            &[],
            &[("RUSTDOCFLAGS", "--deny warnings")],
        )
        && packages::dependencies()
        && packages::contents()
}

/// The oldest compiler that Cargo.toml promises.
const MSRV: &str = env!("CARGO_PKG_RUST_VERSION");

/// The test that needs a browser, which `cargo test` ignores.
fn browser() -> bool {
    let name = "a_browser_shows_every_figure_and_complains_about_nothing";
    cargo(
        &["test", "--package", "pasta-lab", "--test", "reproduce", "--", "--ignored", "--exact", name],
        &[],
        &[],
    )
}

/// The loops with unsafe blocks in Miri. Its processor has no AVX2, so it sees the other of the two versions of a loop.
fn miri() -> bool {
    let mut rustup = Command::new("rustup");
    rustup.args(["run", "nightly", "cargo", "miri", "test", "--target-dir", "target/miri"]);
    rustup.args(["--package", "pasta-opt", "--lib", "--", "kernels::tests", "kernels::huge"]);
    // The property tests of the rows take a quarter of an hour there; `kernels::tests` has the same loops on few rows.
    run_of(rustup)
}

/// Compiles with the oldest toolchain that is promised, in a folder of its own: two compilers share nothing.
fn msrv(packages: &[String]) -> bool {
    let mut rustup = Command::new("rustup");
    rustup.args(["run", MSRV, "cargo", "check", "--target-dir", "target/msrv"]);
    if packages.is_empty() {
        rustup.args(["--workspace", "--all-targets"]);
    }
    rustup.args(packages);
    run_of(rustup)
}

/// Runs the cargo of another toolchain.
fn run_of(mut rustup: Command) -> bool {
    // This cargo's own choice of compiler must not reach the other.
    rustup.env_remove("CARGO").env_remove("RUSTC").env_remove("RUSTUP_TOOLCHAIN");
    match rustup.status() {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("rustup did not start: {error}");
            false
        }
    }
}

/// What needs MPI. Debian has it in libopenmpi-dev, openmpi-bin and libclang-dev; MPICH does as well.
fn mpi(rest: &[String]) -> bool {
    let is_there = |program: &str| {
        let found = Command::new(program).arg("--version").output().is_ok();
        if !found {
            eprintln!("no {program}: install MPI (Debian: libopenmpi-dev openmpi-bin libclang-dev)");
        }
        found
    };
    let packages =
        ["--package", "pasta-mpi", "--package", "pasta-cli", "--features", "pasta-mpi/mpi,pasta-cli/mpi"];
    let with = |command: &'static str, more: &[&'static str]| [&[command], &packages[..], more].concat();
    is_there("mpirun")
        && is_there("mpicc")
        && cargo(&with("clippy", &["--all-targets", "--", "--deny", "warnings"]), &[], &[])
        && cargo(&with("test", &["--test", "mpirun", "--test", "mpi"]), rest, &[])
        && mpich(rest)
}

/// The same ranks on MPICH, where it is installed beside another MPI. Debian calls its programs so.
fn mpich(rest: &[String]) -> bool {
    let is_there = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if !is_there("mpicc.mpich") || !is_there("mpirun.mpich") {
        eprintln!(
            "ranks of MPICH are not tested: mpicc.mpich and mpirun.mpich are not installed (Debian: mpich libmpich-dev)"
        );
        return true;
    }
    // What is built with one MPI does not run with the other, and cargo does not know which it was.
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from).join("mpich");
    let Some(target) = target.to_str() else {
        eprintln!("the name of the target folder is no text");
        return false;
    };
    let variables = [("MPICC", "mpicc.mpich"), ("MPIRUN", "mpirun.mpich"), ("CARGO_TARGET_DIR", target)];
    cargo(&["test", "--package", "pasta-mpi", "--features", "mpi", "--test", "mpirun"], rest, &variables)
}

/// Two ranks against one, in the same run.
fn bench_mpi() -> bool {
    const EXAMPLE: [&str; 7] =
        ["--release", "--package", "pasta-mpi", "--features", "mpi", "--example", "efficiency"];
    let cargo_program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let together = || {
        let mut mpirun = Command::new("mpirun");
        mpirun.args(["-n", "2"]).arg(cargo_program).args(["run", "--quiet"]).args(EXAMPLE);
        mpirun.status().is_ok_and(|status| status.success())
    };
    cargo(&[&["build"], &EXAMPLE[..]].concat(), &[], &[]) && together()
}

/// Runs cargo and says whether it succeeded.
fn cargo(fixed: &[&str], rest: &[String], variables: &[(&str, &str)]) -> bool {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    eprintln!("cargo {} {}", fixed.join(" "), rest.join(" "));
    match Command::new(cargo).args(fixed).args(rest).envs(variables.iter().copied()).status() {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("cargo did not start: {error}");
            false
        }
    }
}
