//! Every call that changes a file fails once, or is the last before a kill: nothing is torn, nothing is lost, and what is said is true.
//!
//! A small library in C (`data/faults.c`) is preloaded into the program and makes the call fail, so it is the real program on the real files.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod place;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use place::{PASTA, SGD, STATE, TestDir, with};
use serde_json::Value;
use tempfile::TempDir;

/// ENOSPC and EIO; and the two deaths.
const KINDS: [&str; 4] = ["28", "5", "kill", "torn"];

/// The library, compiled once.
fn library() -> &'static Path {
    static BUILT: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = BUILT.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("faults.so");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/faults.c");
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .args([&path, Path::new(source)])
            .arg("-ldl")
            .status();
        assert!(compiled.expect("a C compiler").success());
        (folder, path)
    });
    path
}

/// `pasta` with these words; the `at`-th call that changes a file under the place fails in this way. How many such calls there were.
fn pasta(place: &TestDir, words: &str, fault: Option<(usize, &str)>) -> (Output, usize) {
    let counts = place.0.path().with_extension("count");
    let _ = fs::remove_file(&counts);
    let mut command = Command::new(PASTA);
    // The state directory remembers which folders the program wrote: it is not the user's file.
    command
        .args(words.split_whitespace())
        .current_dir(place.0.path())
        .env(STATE, counts.with_extension("state"));
    command
        .env("LD_PRELOAD", library())
        .env("FAULT_UNDER", place.0.path().canonicalize().unwrap())
        .env("FAULT_COUNT", &counts);
    if let Some((at, kind)) = fault {
        command.env("FAULT_AT", at.to_string()).env("FAULT_KIND", kind);
    }
    let output = command.output().unwrap();
    let calls = fs::read(&counts).map_or(0, |calls| calls.len());
    let _ = fs::remove_file(&counts);
    let _ = fs::remove_dir_all(counts.with_extension("state"));
    (output, calls)
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Files that a write leaves behind if it is not finished.
fn unfinished(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|is| is == "unfinished" || is == "draft")).collect()
}

fn short() -> String {
    with(SGD, "steps = 1000", "steps = 5")
}

const SOLVE: &str = "solve p.toml --output run --checkpoint-every 0";

/// Point, ledger and steps of a result.
fn end(place: &TestDir) -> [Value; 3] {
    let result: Value = serde_json::from_str(&place.read("run/result.json")).unwrap();
    ["point", "ledger", "steps"].map(|key| result[key].clone())
}

#[test]
fn a_run_survives_the_failure_of_any_one_call_on_its_files() {
    let whole = TestDir::holding(&short());
    let (output, calls) = pasta(&whole, SOLVE, None);
    assert!(output.status.success(), "{}", said(&output));
    assert!(calls > 30, "only {calls} calls on files: is the library preloaded?");
    let expected = end(&whole);
    let (mut failed, mut resumed, mut anew) = (0, 0, 0);
    for kind in KINDS {
        for at in 1..=calls {
            let place = TestDir::holding(&short());
            let context = format!("{kind} at call {at}");
            let (output, _) = pasta(&place, SOLVE, Some((at, kind)));
            match output.status.code() {
                // What is not the user's result may fail: it is said, or does not matter.
                Some(0) => assert_eq!(end(&place), expected, "{context}"),
                Some(1) => {
                    failed += 1;
                    let said = said(&output);
                    assert!(said.contains("error: "), "{context}: {said}");
                }
                None => {}
                other => panic!("{context}: exit code {other:?}: {}", said(&output)),
            }
            // A result is whole or not there.
            if place.path("run/result.json").exists() {
                assert_eq!(end(&place), expected, "{context}");
            }
            let (output, _) = pasta(&place, "resume run", None);
            match output.status.code() {
                Some(0) => resumed += 1,
                Some(2) => {
                    anew += 1;
                    let said = said(&output);
                    let begun =
                        said.contains("holds no checkpoint") || said.contains("is not the output folder");
                    assert!(begun, "{context}: {said}");
                    let (output, _) = pasta(&place, &format!("{SOLVE} --overwrite"), None);
                    assert!(output.status.success(), "{context}");
                }
                other => panic!("{context}: resume ended with {other:?}: {}", said(&output)),
            }
            assert_eq!(end(&place), expected, "{context}");
            assert_eq!(place.read("run/trace.jsonl"), whole.read("run/trace.jsonl"), "{context}");
            assert_eq!(unfinished(&place.path("run")), Vec::<PathBuf>::new(), "{context}");
        }
    }
    assert!(failed > 30 && resumed > 30 && anew > 0, "{failed} failed, {resumed} resumed, {anew} anew");
}

#[test]
fn so_does_a_run_that_is_resumed() {
    let begun = || {
        let place = TestDir::holding(&short());
        place.pasta(&format!("{SOLVE} --budget 2")).assert().code(5);
        place
    };
    let words = "resume run --budget 9 --checkpoint-every 0";
    let whole = begun();
    let (output, calls) = pasta(&whole, words, None);
    assert!(output.status.success() && calls > 15, "{calls} calls: {}", said(&output));
    for kind in ["28", "torn"] {
        for at in 1..=calls {
            let place = begun();
            let context = format!("{kind} at call {at}");
            let (output, _) = pasta(&place, words, Some((at, kind)));
            assert!(matches!(output.status.code(), Some(0 | 1) | None), "{context}: {}", said(&output));
            let (output, _) = pasta(&place, words, None);
            assert!(output.status.success(), "{context}: {}", said(&output));
            assert_eq!(end(&place), end(&whole), "{context}");
            assert_eq!(place.read("run/trace.jsonl"), whole.read("run/trace.jsonl"), "{context}");
        }
    }
}

/// Runs a command that writes files once for each call on them; `check` looks at the files that are there afterwards.
fn survive(words: &str, files: &[(&str, &str)], outputs: &[&str]) {
    let hold = || {
        let place = TestDir::new();
        files.iter().for_each(|(name, text)| place.write(name, text));
        place
    };
    let whole = hold();
    let (output, calls) = pasta(&whole, words, None);
    assert!(output.status.success(), "{words}: {}", said(&output));
    assert!(calls >= 3 * outputs.len(), "{words}: only {calls} calls on files");
    for kind in KINDS {
        for at in 1..=calls {
            let place = hold();
            // What an earlier command wrote is there until the new one is whole.
            outputs.iter().for_each(|name| place.write(name, "old"));
            let context = format!("{words}: {kind} at call {at}");
            let (output, _) = pasta(&place, words, Some((at, kind)));
            assert!(matches!(output.status.code(), Some(0 | 1) | None), "{context}: {}", said(&output));
            if output.status.code() == Some(1) {
                assert!(said(&output).contains("error: "), "{context}: {}", said(&output));
                assert_eq!(unfinished(place.0.path()), Vec::<PathBuf>::new(), "{context}");
            }
            for name in outputs {
                let bytes = fs::read(place.path(name)).unwrap();
                let is_whole = bytes == fs::read(whole.path(name)).unwrap();
                assert!(is_whole || bytes == b"old", "{context}: {name} is torn");
                assert!(is_whole || output.status.code() != Some(0), "{context}: {name} was not written");
            }
            // And the command does its work when it is repeated.
            let (output, _) = pasta(&place, words, None);
            assert!(output.status.success(), "{context}: {}", said(&output));
            for name in outputs {
                assert_eq!(
                    fs::read(place.path(name)).unwrap(),
                    fs::read(whole.path(name)).unwrap(),
                    "{context}"
                );
            }
            assert_eq!(unfinished(place.0.path()), Vec::<PathBuf>::new(), "{context}");
        }
    }
}

const TABLE: &str = "y,a,b\n1,0,1\n3,1,0.5\n5,2,2\n7.5,3,1\n9,4,0\n10.5,5,1.5\n";

#[test]
fn models_and_predictions_are_whole_or_what_they_were() {
    survive("fit t.csv --loss least-squares --label y -o model.json", &[("t.csv", TABLE)], &["model.json"]);
    let place = TestDir::new();
    place.write("t.csv", TABLE);
    place.pasta("fit t.csv --loss least-squares --label y -o model.json").assert().code(0);
    let model = place.read("model.json");
    survive("predict model.json t.csv -o out.csv", &[("t.csv", TABLE), ("model.json", &model)], &["out.csv"]);
}

#[test]
fn a_cache_that_was_not_finished_is_never_read() {
    let words = "fit t.csv --loss least-squares --label y --cache=c -o model.json";
    let whole = TestDir::new();
    whole.write("t.csv", TABLE);
    let (output, calls) = pasta(&whole, words, None);
    assert!(output.status.success(), "{}", said(&output));
    let expected = whole.read("model.json");
    for kind in KINDS {
        for at in 1..=calls {
            let place = TestDir::new();
            place.write("t.csv", TABLE);
            let (output, _) = pasta(&place, words, Some((at, kind)));
            let context = format!("{kind} at call {at}");
            assert!(matches!(output.status.code(), Some(0 | 1) | None), "{context}: {}", said(&output));
            let (output, _) = pasta(&place, words, None);
            assert!(output.status.success(), "{context}: {}", said(&output));
            assert_eq!(place.read("model.json"), expected, "{context}");
        }
    }
}
