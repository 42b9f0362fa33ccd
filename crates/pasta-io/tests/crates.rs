//! Which crate uses which, by their Cargo.toml: a library stays free of what only a program needs.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use toml_edit::Document;

/// Each crate of the project, and the crates of the project that it may use.
const ALLOWED: [(&str, &[&str]); 8] = [
    ("pasta", &[]),
    ("pasta-pipe", &["pasta-opt"]),
    ("pasta-mpi", &["pasta-opt"]),
    ("pasta-io", &["pasta-opt", "pasta-pipe"]),
    ("pasta-report", &["pasta-io", "pasta-opt"]),
    ("pasta-lab", &["pasta-opt", "pasta-report"]),
    ("pasta-cli", &["pasta-io", "pasta-mpi", "pasta-opt", "pasta-pipe", "pasta-report"]),
    ("pasta-py", &["pasta-cli", "pasta-io", "pasta-opt", "pasta-report"]),
];

/// What belongs to a console program.
const CONSOLE: [&str; 4] = ["clap", "indicatif", "terminal_size", "signal-hook"];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The names of what a crate depends on, on any platform, tests apart.
fn dependencies(name: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(crates().join(name).join("Cargo.toml")).expect("a crate has one");
    let manifest = Document::parse(text.as_str()).expect("it is TOML");
    let mut tables = vec![manifest.get("dependencies")];
    if let Some(targets) = manifest.get("target").and_then(|item| item.as_table_like()) {
        tables.extend(targets.iter().map(|(_, target)| target.get("dependencies")));
    }
    let keys = |table: &dyn toml_edit::TableLike| table.iter().map(|(key, _)| key.to_owned()).collect();
    tables.into_iter().flatten().filter_map(|item| item.as_table_like()).flat_map::<Vec<_>, _>(keys).collect()
}

#[test]
fn every_crate_uses_only_the_crates_that_it_may() {
    let known: BTreeSet<_> = ALLOWED.iter().map(|(name, _)| (*name).to_owned()).collect();
    let there: BTreeSet<_> = fs::read_dir(crates())
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().join("Cargo.toml").is_file())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    assert_eq!(there, known, "a crate that has no row here, or a row without a crate");
    for (name, allowed) in ALLOWED {
        for used in dependencies(name).into_iter().filter(|used| used.starts_with("pasta")) {
            assert!(allowed.contains(&used.as_str()), "{name} must not use {used}");
        }
    }
}

#[test]
fn only_programs_and_what_they_show_know_of_a_console() {
    for name in ["pasta", "pasta-pipe", "pasta-mpi", "pasta-io"] {
        let used = dependencies(name);
        for console in CONSOLE {
            assert!(!used.contains(console), "{name} must not use {console}");
        }
    }
}

#[test]
fn files_are_read_without_a_word_on_the_console() {
    fn check(folder: &Path) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                check(&path);
                continue;
            }
            let text = fs::read_to_string(&path).expect("a text");
            for word in ["stdout()", "stderr()", "println!", "print!("] {
                assert!(!text.contains(word), "{} has {word}", path.display());
            }
        }
    }
    check(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
}
