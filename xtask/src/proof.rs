//! `cargo xtask proof`: the proof of the certificate, checked by Coq.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The theorems of the page, each of which must rest on nothing but the axioms of Coq's real numbers.
const THEOREMS: [&str; 15] = [
    "exponential_inequality",
    "ville",
    "all_k_at_once",
    "smaller_root",
    "one_track",
    "declared_variance",
    "declared_variance_of_samples",
    "variance_look",
    "kurtosis_of_mean_bound",
    "kurtosis_basis",
    "kurtosis_basis_of_samples",
    "attempts",
    "moreau_step",
    "gradient_mapping",
    "terms_track",
];

/// The axioms from which Coq's library makes the real numbers, and classical logic.
const AXIOMS: [&str; 4] = [
    "ClassicalDedekindReals.sig_not_dec",
    "ClassicalDedekindReals.sig_forall_dec",
    "FunctionalExtensionality.functional_extensionality_dep",
    "Classical_Prop.classic",
];

const INSTALL: &str =
    "no coqc: install Coq 8.16 or later (Debian: apt-get install --no-install-recommends coq)";

/// Compiles proof/Certificate.v, and a file that asks what the theorems rest on.
pub(crate) fn run() -> bool {
    match check() {
        Ok(()) => {
            eprintln!("proof: {} theorems, on the axioms of Coq's real numbers alone", THEOREMS.len());
            true
        }
        Err(why) => {
            eprintln!("{why}");
            false
        }
    }
}

fn check() -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let source = root.join("proof/Certificate.v");
    let text = fs::read_to_string(&source).map_err(|error| format!("{}: {error}", source.display()))?;
    // Compiled in a copy: Coq writes its files beside the source.
    let target =
        env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from).join("proof");
    // Asked of all at once, since each answer takes a walk through Coq's library.
    let all = THEOREMS.map(|name| format!("@{name}")).join(", ");
    let question =
        format!("Require Import Certificate.\nDefinition all := ({all}).\nPrint Assumptions all.\n");
    fs::create_dir_all(&target)
        .and_then(|()| fs::write(target.join("Certificate.v"), text))
        .and_then(|()| fs::write(target.join("Assumptions.v"), question))
        .map_err(|error| format!("{}: {error}", target.display()))?;
    compile(&target, "Certificate.v")?;
    rests_on_the_axioms(&compile(&target, "Assumptions.v")?)
}

/// What coqc prints.
fn compile(folder: &Path, file: &str) -> Result<String, String> {
    let output = Command::new("coqc").args(["-q", "-Q", ".", "", file]).current_dir(folder).output();
    let output = output.map_err(|_| INSTALL.to_owned())?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("proof/{file}: {}", String::from_utf8_lossy(&output.stderr)))
    }
}

/// Whether the answer lists known axioms only. An axiom's name stands at the beginning of a line, what it says is indented.
fn rests_on_the_axioms(answer: &str) -> Result<(), String> {
    if !answer.starts_with("Axioms:\n") {
        return Err(format!("proof: Coq does not say on which axioms the theorems rest, but:\n{answer}"));
    }
    let names = answer.lines().skip(1).filter(|line| !line.starts_with(' ') && !line.is_empty());
    let mut names = names.map(|line| line.split([' ', ':']).next().unwrap_or(line));
    match names.find(|name| !AXIOMS.contains(name)) {
        None => Ok(()),
        Some(name) => {
            Err(format!("proof: something rests on {name}, which is no axiom of Coq's real numbers"))
        }
    }
}
