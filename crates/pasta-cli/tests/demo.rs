//! `pasta demo`, from outside.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::process::Output;
use std::sync::OnceLock;

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

/// Runs `pasta demo` in a folder and demands that it succeeds.
fn demo(folder: &Path, arguments: &[&str]) -> Output {
    let output = Command::cargo_bin("pasta")
        .unwrap()
        .current_dir(folder)
        .arg("demo")
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

/// What one run gave: what it printed, and its page.
struct Shown {
    output: Output,
    page: String,
}

fn shown(arguments: &[&str], page: &str) -> Shown {
    let folder = TempDir::new().unwrap();
    let output = demo(folder.path(), arguments);
    let page = fs::read_to_string(folder.path().join(page)).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "only the folder that was asked for");
    Shown { output, page }
}

/// The plain run, once for all tests.
fn plain() -> &'static Shown {
    static SHOWN: OnceLock<Shown> = OnceLock::new();
    SHOWN.get_or_init(|| shown(&[], "pasta-demo/index.html"))
}

/// The run with --json, in another folder.
fn json() -> &'static (Shown, Value) {
    static SHOWN: OnceLock<(Shown, Value)> = OnceLock::new();
    SHOWN.get_or_init(|| {
        let shown = shown(&["--json", "--seed", "1", "--output", "else/where"], "else/where/index.html");
        let value = serde_json::from_slice(&shown.output.stdout).unwrap();
        (shown, value)
    })
}

fn method<'a>(findings: &'a Value, id: &str) -> &'a Value {
    let methods = findings["methods"].as_array().unwrap();
    methods.iter().find(|method| method["id"] == id).unwrap()
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let again = shown(&["--seed", "1"], "pasta-demo/index.html");
    assert!(plain().output.stdout == again.output.stdout);
    assert!(plain().page == again.page);
    // Neither the folder nor --json is part of the page.
    assert!(plain().page == json().0.page);
}

#[test]
fn talk_stays_off_pipes() {
    assert_eq!(plain().output.stderr, b"");
    assert_eq!(json().0.output.stderr, b"");
}

#[test]
fn the_tables_name_every_method_and_the_page() {
    let text = String::from_utf8(plain().output.stdout.clone()).unwrap();
    for needed in
        ["PASTA", "SGD, eta = 1/L", "SGD, eta = eps^2/(2 L b^2)", "not run", "predicted", "happened"]
    {
        assert!(text.contains(needed), "{needed}: {text}");
    }
    let page = Path::new("pasta-demo").join("index.html");
    assert!(text.trim_end().ends_with(&page.display().to_string()), "{text}");
}

#[test]
fn the_page_needs_nothing_but_itself() {
    let page = &plain().page;
    for outside in ["http://", "https://", "url(", "<script", "<link", "@import", "src="] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert_eq!(page.matches("role=\"img\"").count(), 2);
    assert!(page.contains("pasta demo --seed 1"));
    assert!(page.len() < 200_000, "{}", page.len());
}

#[test]
fn pasta_keeps_its_promise_where_sgd_does_not() {
    let findings = &json().1;
    let goal = findings["goal"].as_f64().unwrap();
    let runs = findings["runs"].as_u64().unwrap();

    let pasta = method(findings, "pasta");
    assert!(pasta["measure"]["mean"].as_f64().unwrap() <= goal, "{pasta}");
    assert_eq!(pasta["verdict"], "met");
    assert!(pasta["samples"].as_f64() <= findings["predicted"]["samples"].as_f64());

    let classical = method(findings, "sgd-classical");
    assert_eq!(classical["diverged_runs"].as_u64(), Some(runs), "{classical}");
    assert_eq!(classical["verdict"], "diverged");
    assert_eq!(classical["measure"], Value::Null);

    // Such runs stall near 27 eps^2; ten is far from that and from the promise.
    for id in ["sgd-bounded", "sgd-bounded-same-samples"] {
        let bounded = method(findings, id);
        assert!(bounded["measure"]["mean"].as_f64().unwrap() > 10.0 * goal, "{bounded}");
        assert_eq!(bounded["verdict"], "missed");
    }
    assert_eq!(method(findings, "sgd-horizon")["verdict"], "not-run");
}

#[test]
fn the_tables_and_the_json_tell_the_same() {
    let text = String::from_utf8(plain().output.stdout.clone()).unwrap();
    let findings = &json().1;
    let goal = findings["goal"].as_f64().unwrap();
    let ratio = method(findings, "pasta")["measure"]["mean"].as_f64().unwrap() / goal;
    assert!(text.contains(&format!("{ratio:.3}")), "{ratio}: {text}");
    assert_eq!(findings["page"], Path::new("else/where").join("index.html").display().to_string());
}

#[test]
fn a_folder_that_cannot_be_made_is_a_system_failure() {
    let folder = TempDir::new().unwrap();
    // Not even an administrator can make a folder inside a file.
    fs::write(folder.path().join("file"), "in the way").unwrap();
    let output = Command::cargo_bin("pasta")
        .unwrap()
        .current_dir(folder.path())
        .args(["demo", "--output", "file/inside"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.starts_with("error: ") && message.contains("inside"), "{message}");
    assert_eq!(output.stdout, b"");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}
