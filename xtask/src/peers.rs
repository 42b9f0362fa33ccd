//! `cargo xtask bench-peers`: the library's speed on tables beside that of others, in one run.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What is compared with. cyanure is compiled where there is no wheel, which needs a compiler and a BLAS.
const NEEDED: [&str; 4] = ["numpy", "scipy", "scikit-learn", "jax[cpu]"];
const WELCOME: [&str; 1] = ["cyanure"];

/// Makes the environment if there is none, builds the benchmark and runs the comparison. Says whether all of it worked.
pub(crate) fn run() -> bool {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let environment = target.join("peers");
    let Some(program) = built(&root) else {
        eprintln!("the benchmark was not built");
        return false;
    };
    made(&environment)
        && succeeds(Command::new(python(&environment)).arg(root.join("xtask/peers.py")).arg(program))
}

fn python(environment: &Path) -> PathBuf {
    let inside = if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" };
    environment.join(inside)
}

/// A virtual environment with the peers. A file in it says that it is complete.
fn made(environment: &Path) -> bool {
    let complete = environment.join("complete");
    if complete.exists() {
        return true;
    }
    let install = |packages: &[&str]| {
        let mut pip = Command::new(python(environment));
        succeeds(pip.args(["-m", "pip", "install", "--quiet"]).args(packages))
    };
    let made = succeeds(Command::new("python3").args(["-m", "venv"]).arg(environment)) && install(&NEEDED);
    if made && !install(&WELCOME) {
        eprintln!("cyanure could not be installed and is left out");
    }
    made && std::fs::write(complete, "").is_ok()
}

/// Builds the benchmark `tables`, and finds where it is in what cargo prints.
fn built(root: &Path) -> Option<PathBuf> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["bench", "--package", "pasta-opt", "--bench", "tables", "--no-run"])
        .current_dir(root)
        .stderr(Stdio::piped())
        .output()
        .ok()?;
    let said = String::from_utf8_lossy(&output.stderr);
    eprint!("{said}");
    let name =
        said.lines().find_map(|line| line.trim().strip_prefix("Executable")?.split(['(', ')']).nth(1))?;
    // Relative to the root where the target folder is inside it.
    Some(root.join(name)).filter(|_| output.status.success())
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
