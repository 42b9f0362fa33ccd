//! `cargo xtask py`: the Python package, built as `pip install .` builds it, installed, and tested from outside the source tree.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the tests need besides the package: scikit-learn brings scipy.
const PEERS: &str = "-m pip install --quiet numpy pytest mypy scikit-learn pandas matplotlib loky";

/// Makes a fresh environment, installs the package into it, and runs its tests, the examples of its documentation and the type checker.
/// `--jax` and `--torch` install JAX (with NumPyro and optax) and PyTorch, whose tests then run too, and `--engines` dask, Ray and mpi4py (which needs an MPI library and `mpiexec`), whose workers then
/// compute oracles; other arguments go to pytest.
pub(crate) fn run(arguments: &[String]) -> bool {
    let with = |name: &str| arguments.iter().any(|argument| argument == name);
    let (jax, torch, engines) = (with("--jax"), with("--torch"), with("--engines"));
    let ours = ["--jax", "--torch", "--engines"];
    let rest = arguments.iter().filter(|argument| !ours.contains(&argument.as_str()));
    let root = match Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize() {
        Ok(root) => root,
        Err(error) => return complain(&format!("no source tree: {error}")),
    };
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let environment = target.join("py");
    let outside = environment.join("outside");
    let python = environment.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    let in_environment = |arguments: &[&OsStr]| {
        // Built where cargo builds, not in a copy: what the other commands compiled is used again.
        succeeds(Command::new(&python).args(arguments).env("CARGO_TARGET_DIR", &target).current_dir(&outside))
    };
    let words = |text: &'static str| text.split(' ').map(OsStr::new).collect::<Vec<_>>();
    let (tests, package) = (root.join("crates/pasta-py/tests"), root.join("crates/pasta-py"));
    let page = root.join("docs/python.md");
    // The profile of the tests: quicker to build than the one that `pip install .` has by itself.
    let install = words("-m pip install --quiet --config-settings=build-args=--profile=dev");
    let pytest = words("-m pytest -q -p no:cacheprovider --import-mode=importlib");
    let doctest = words("-m pytest -q -p no:cacheprovider --doctest-modules --pyargs pasta_opt");
    let of_page = words("-m pytest -q -p no:cacheprovider --doctest-glob=*.md");
    let mypy = words("-m mypy --strict --cache-dir=mypy -p pasta_opt");
    let rest: Vec<&OsStr> = rest.map(OsStr::new).collect();
    let optional = |is_wanted: bool, names: &'static str| {
        !is_wanted || in_environment(&[words("-m pip install --quiet"), words(names)].concat())
    };
    // A module that needs what is not installed has no doctests to run.
    let absent = words("--doctest-ignore-import-errors");
    let absent: &[&OsStr] = if jax && torch { &[] } else { &absent };
    if environment.exists() && fs::remove_dir_all(&environment).is_err() {
        return complain(&format!("{} is in the way", environment.display()));
    }
    succeeds(Command::new("python3").args(["-m", "venv"]).arg(&environment))
        && fs::create_dir_all(&outside).is_ok()
        && in_environment(&words(PEERS))
        && optional(jax, "jax")
        && optional(jax, "numpyro")
        && optional(jax, "optax")
        && optional(torch, "torch")
        && optional(engines, "distributed ray mpi4py")
        && in_environment(&[&install[..], &[root.as_os_str()]].concat())
        && in_environment(&[&pytest[..], &[tests.as_os_str()], &rest].concat())
        && in_environment(&[&doctest[..], absent].concat())
        && in_environment(&[&of_page[..], &[page.as_os_str()]].concat())
        && in_environment(&mypy)
        && in_environment(
            &[&words("-m mypy --strict --cache-dir=mypy")[..], &[package.join("examples").as_os_str()]]
                .concat(),
        )
}

/// Installs the package as a user does, and compares calls through it with calls in a loop.
pub(crate) fn bench() -> bool {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let environment = target.join("bench-py");
    let python = environment.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    succeeds(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))
        && succeeds(
            Command::new(&python)
                .args(["-m", "pip", "install", "--quiet", "scikit-learn"])
                .arg(&root)
                .env("CARGO_TARGET_DIR", &target),
        )
        && succeeds(Command::new(&python).arg(root.join("xtask/bench_py.py")))
}

fn complain(what: &str) -> bool {
    eprintln!("{what}");
    false
}

fn succeeds(command: &mut Command) -> bool {
    match command.status() {
        Ok(status) => status.success(),
        Err(error) => complain(&format!("{} did not start: {error}", command.get_program().display())),
    }
}
