//! `pasta-lab demo`, from outside.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::process::Output;
use std::sync::OnceLock;

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

/// Runs `pasta-lab demo` in a folder and demands that it succeeds. `threads` are as many as there are, unless it says.
fn demo(folder: &Path, arguments: &[&str], threads: Option<&str>) -> Output {
    let mut command = Command::cargo_bin("pasta-lab").unwrap();
    command.current_dir(folder).arg("demo").args(arguments);
    if let Some(threads) = threads {
        command.env("RAYON_NUM_THREADS", threads);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

/// What one run gave: what it printed, and its page.
struct Shown {
    output: Output,
    page: String,
}

fn shown(arguments: &[&str], page: &str, threads: Option<&str>) -> Shown {
    let folder = TempDir::new().unwrap();
    let output = demo(folder.path(), arguments, threads);
    let page = fs::read_to_string(folder.path().join(page)).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "only the folder that was asked for");
    Shown { output, page }
}

/// The plain run, once for all tests.
fn plain() -> &'static Shown {
    static SHOWN: OnceLock<Shown> = OnceLock::new();
    SHOWN.get_or_init(|| shown(&[], "pasta-demo/index.html", None))
}

/// The run with --json, in another folder.
fn json() -> &'static (Shown, Value) {
    static SHOWN: OnceLock<(Shown, Value)> = OnceLock::new();
    SHOWN.get_or_init(|| {
        let shown =
            shown(&["--json", "--seed", "1", "--output", "else/where"], "else/where/index.html", None);
        let value = serde_json::from_slice(&shown.output.stdout).unwrap();
        (shown, value)
    })
}

fn method<'a>(findings: &'a Value, id: &str) -> &'a Value {
    let methods = findings["methods"].as_array().unwrap();
    methods.iter().find(|method| method["id"] == id).unwrap()
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_any_number_of_threads() {
    for threads in ["1", "3"] {
        let again = shown(&["--seed", "1"], "pasta-demo/index.html", Some(threads));
        assert!(plain().output.stdout == again.output.stdout);
        assert!(plain().page == again.page);
    }
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
    for needed in [
        "BG-0 plausible",
        "PASTA",
        // Names that are broken into lines.
        "SGD, eta =",
        "eps^2/(2 L",
        "not run",
        "predicted",
        "happened",
    ] {
        // On the page no cell is broken into lines.
        let set = needed
            .replace("^2", "²")
            .replace("eps", "ε")
            .replace("eta = ", "η\u{a0}=\u{a0}")
            .replace('/', "&#x2f;");
        assert!(text.contains(needed) || plain().page.contains(&set), "{needed}: {text}");
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
    assert_eq!(page.matches("role=\"img\"").count(), 4);
    assert!(page.contains("pasta-lab demo --seed 1"));
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
    assert!(pasta["samples"].as_f64() <= findings["predicted"]["worst_case"]["samples"].as_f64());

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
fn the_page_tells_the_story_in_order_and_in_a_minute() {
    let page = &plain().page;
    let headings = [
        "1. The noise, diagnosed",
        "2. The cost, predicted",
        "3. SGD fails",
        "4. PASTA arrives",
        "5. The certificate",
    ];
    let places: Vec<usize> = headings.iter().map(|heading| page.find(heading).unwrap()).collect();
    assert!(places.is_sorted(), "{places:?}");
    // A slow reader reads some 350 words in a minute or so. Titles and captions of figures and tables are not counted.
    let paragraphs = page.split("<p>").chain(page.split("<p class=\"lead\">").skip(1));
    let texts = paragraphs.skip(1).filter_map(|rest| rest.split("</p>").next());
    let words: usize = texts.map(|text| text.split_whitespace().count()).sum();
    assert!((200..=360).contains(&words), "{words}");
}

#[test]
fn the_estimates_stand_beside_the_truth() {
    let diagnosed = &json().1["diagnosed"];
    assert_eq!(diagnosed["bg0"], "plausible");
    let figures = diagnosed["figures"].as_array().unwrap();
    for name in ["b (", "B ("] {
        let figure =
            figures.iter().find(|figure| figure["figure"].as_str().unwrap().starts_with(name)).unwrap();
        let (estimated, truth) = (&figure["estimated"]["value"], figure["true"].as_f64().unwrap());
        // More than five standard errors of either: each rests on thousands of samples.
        assert!((estimated.as_f64().unwrap() / truth - 1.0).abs() < 0.1, "{figure}");
    }
    for ray in diagnosed["rays"].as_array().unwrap() {
        assert!((ray["exponent"]["value"].as_f64().unwrap() - 2.0).abs() < 0.1, "{ray}");
        assert!(ray["verdict"].as_str().unwrap().starts_with("BG-0 plausible"), "{ray}");
    }
}

#[test]
fn predictions_say_what_they_are() {
    let text = String::from_utf8(plain().output.stdout.clone()).unwrap();
    for shown in [&text, &plain().page] {
        for label in ["worst case", "a proved bound, in expectation", "forecast", "not a bound"] {
            assert!(shown.contains(label), "{label}");
        }
    }
    let predicted = &json().1["predicted"];
    let [low, middle, high] =
        ["low", "middle", "high"].map(|end| predicted["forecast"][end].as_f64().unwrap());
    assert!(low < middle && middle < high && high < predicted["worst_case"]["samples"].as_f64().unwrap());
}

#[test]
fn a_certificate_stands_whole_beside_the_truth() {
    let text = String::from_utf8(plain().output.stdout.clone()).unwrap();
    let certified = &json().1["certified"];
    let first = &certified["first"];
    let statement = first["statement"].as_str().unwrap();
    assert!(statement.contains("With probability at least 95 %"), "{statement}");
    assert!(statement.contains(", provided E|g - grad f|^2 <= B^2 |x - x0|^2 + b^2 = "), "{statement}");
    assert!(statement.ends_with("(B = 9, b = 1, declared)."), "{statement}");
    // Lines are broken to the width of the console.
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(statement), "{text}");
    // The page says it letter for letter.
    let escaped = statement.replace('<', "&lt;").replace('\'', "&#x27;");
    assert!(plain().page.contains(&escaped), "{escaped}");
    assert!(first["gradient"].as_f64().unwrap() <= first["bound"].as_f64().unwrap());

    let count = |key: &str| certified[key].as_u64().unwrap();
    let (runs, succeeded, mistaken) = (count("runs"), count("certified_runs"), count("false_certificates"));
    assert_eq!(runs, json().1["runs"].as_u64().unwrap());
    // All but a few of the runs, and no more false ones than promised.
    assert!(10 * succeeded >= 9 * runs && 20 * mistaken <= succeeded, "{certified}");
    let sentence = format!("{mistaken} of {succeeded} certificates were false; at most 5 % are promised");
    assert!(text.contains(&sentence) && plain().page.contains(&sentence), "{sentence}");
    let against = &certified["against_forecast"];
    let counted: u64 = ["below", "within", "above"].iter().map(|key| against[key].as_u64().unwrap()).sum();
    assert_eq!(counted, succeeded);
}

#[test]
fn a_folder_that_cannot_be_made_is_a_system_failure() {
    let folder = TempDir::new().unwrap();
    // Not even an administrator can make a folder inside a file.
    fs::write(folder.path().join("file"), "in the way").unwrap();
    let output = Command::cargo_bin("pasta-lab")
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
