//! The formats that others read: their keys come and go with a version, never without.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod place;

use std::fs;

use place::{BOWL, SGD, TestDir, with};
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;

/// The paths of all keys, in order; `[]` stands for the first entry of a list.
fn keys(value: &Value) -> Vec<String> {
    let mut paths = Vec::new();
    collect(value, "", &mut paths);
    paths
}

fn collect(value: &Value, path: &str, paths: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                paths.push(path.clone());
                collect(value, &path, paths);
            }
        }
        Value::Array(list) => {
            if let Some(first) = list.first() {
                collect(first, &format!("{path}[]"), paths);
            }
        }
        _ => {}
    }
}

/// The keys of `format 2`, nested as they stand.
const RESULT: &[&str] = &[
    "format",
    "method",
    "problem",
    "seed",
    "stop",
    "stop.kind",
    "stop.meaning",
    "stop.step",
    "point",
    "point_file",
    "steps",
    "distance",
    "ledger",
    "ledger.samples",
    "ledger.evaluations",
    "ledger.by_role",
];

const PROMISE: &[&str] = &["promise", "promise.holds", "promise.statement", "promise.guarantee"];

const CERTIFICATE: &[&str] = &[
    "certificate",
    "certificate.verdict",
    "certificate.of",
    "certificate.bound",
    "certificate.target",
    "certificate.delta",
    "certificate.basis",
    "certificate.samples",
    "certificate.rows",
    "certificate.words",
    "certificate.statement",
    "certificate.doubt",
    "certificate.by_hand",
    "certificate.about",
    "certificate.attempts",
    "certificate.attempt",
    "certificate.gaps",
    "certificate.made",
    "certificate.made.seed",
    "certificate.made.attempt",
    "certificate.made.claim",
    "certificate.made.claim.target",
    "certificate.made.claim.delta",
    "certificate.made.claim.basis",
    "certificate.made.claim.budget",
    "certificate.made.claim.guess",
    "certificate.made.point",
    "certificate.made.samples_each",
    "certificate.made.sub_batches",
    "certificate.made.planned",
    "certificate.made.scales",
    "certificate.made.variance",
    "certificate.made.mean",
    "certificate.made.scatter",
    "certificate.made.before",
    "rests_on",
    "rests_on.version",
    "rests_on.oracle",
    "rests_on.files",
];

const FORECAST: &[&str] =
    &["forecast", "forecast.low", "forecast.middle", "forecast.high", "forecast.share", "forecast_silent"];

#[test]
fn the_keys_of_a_result_are_those_of_format_2() {
    let place = TestDir::holding(BOWL);
    let certified = place.json("solve p.toml --certify 0.5", 0);
    let plain = place.json("solve p.toml", 0);
    let all = keys(&certified);
    for key in RESULT.iter().chain(PROMISE).chain(CERTIFICATE).chain(FORECAST) {
        assert!(all.iter().any(|known| known == key), "{key} is missing of {all:?}");
    }
    // The outermost keys are always the same, and in the same order.
    let outermost = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let expected = [
        "format",
        "method",
        "problem",
        "term",
        "seed",
        "stop",
        "point",
        "point_file",
        "steps",
        "drawn_at",
        "last",
        "distance",
        "ledger",
        "promise",
        "by",
        "truth",
        "asked",
        "of_start",
        "certificate",
        "forecast",
        "forecast_silent",
        "rests_on",
        "cost",
        "simulator",
    ];
    assert_eq!(outermost(&certified), expected);
    assert_eq!(outermost(&plain), expected);
    assert_eq!(outermost(&TestDir::holding(SGD).json("solve p.toml --budget 10", 5)), expected);
    assert_eq!((&plain["certificate"], &plain["forecast"]), (&Value::Null, &Value::Null));
    assert_eq!(plain["forecast_silent"], "the run is not to be certified");
    assert_eq!(certified["forecast_silent"], Value::Null);
}

/// The run of an earlier version, with a term and a certificate that failed: its checkpoint has `grade`, and gamma without `of`.
#[test]
fn a_run_that_was_written_in_format_1_goes_on_and_its_result_is_not_verified() {
    let place = TestDir::holding("");
    fs::create_dir(place.path("run")).unwrap();
    for name in ["problem.toml", "trace.jsonl", "checkpoint.pasta", "result.json"] {
        let from = format!("{}/tests/data/format-1/{name}", env!("CARGO_MANIFEST_DIR"));
        fs::copy(from, place.path(&format!("run/{name}"))).unwrap();
    }
    let refused = place.pasta("verify run").assert().code(2);
    refused.stderr(contains("it is of format 1, and this version verifies format 2"));
    let resumed = place.json("resume run --budget 8e4", 4);
    // What the version that wrote it makes of it.
    assert_eq!(resumed["point"], serde_json::json!([-0.03204257650018377]));
    let certificate = &resumed["certificate"];
    assert_eq!((&certificate["of"], &certificate["attempts"]), (&"gradient-mapping".into(), &1.into()));
    assert_eq!(certificate["bound"], 0.14297935048031074);
    assert!(certificate["basis"]["growth"].is_object(), "{certificate}");
    assert!(certificate["gamma"].is_f64(), "{certificate}");
}

#[test]
fn the_keys_of_a_trace_are_those_of_format_2() {
    let place = TestDir::holding(BOWL);
    place.json("solve p.toml --certify 0.5 --output run", 0);
    let text = place.read("run/trace.jsonl");
    let of = |event: &str| {
        let line = text.lines().find(|line| line.contains(&format!("\"event\":\"{event}\""))).unwrap();
        serde_json::from_str::<Value>(line).unwrap().as_object().unwrap().keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(of("start"), ["event", "format", "method", "problem", "seed", "crc"]);
    let standing = ["step", "samples", "evaluations", "distance", "gap", "gradient_squared"];
    let with = |before: &[&str], after: &[&str]| {
        [before, &standing, after].concat().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(of("step"), with(&["event"], &["epoch", "t", "kind", "batch", "crc"]));
    assert_eq!(of("tried"), ["event", "step", "attempt", "samples", "certificate", "crc"]);
    assert_eq!(of("end"), with(&["event"], &["stop", "crc"]));
}

#[test]
fn the_sections_of_a_checkpoint_are_those_of_format_3() {
    let place = TestDir::holding(BOWL);
    place.json("solve p.toml --certify 0.5 --output run", 0);
    let bytes = fs::read(place.path("run/checkpoint.pasta")).unwrap();
    let mut lines = bytes.split(|byte| *byte == b'\n');
    assert_eq!(lines.next().unwrap(), b"pasta checkpoint 3");
    let header: Value = serde_json::from_slice(lines.next().unwrap()).unwrap();
    let sections = header["sections"].as_array().unwrap();
    let names: Vec<_> = sections.iter().map(|section| section["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["gate", "pasta", "certificate", "run", "forecast"]);
    let gate: Vec<_> = sections[0]["data"].as_object().unwrap().keys().collect();
    assert_eq!(gate, ["identity", "dim", "seed", "ledger", "on_nan", "endless"]);
}

#[test]
fn results_and_traces_of_no_known_format_are_refused_with_a_sentence() {
    let place = TestDir::holding(BOWL);
    place.json("solve p.toml --output run --budget 1e4", 5);
    let result = place.read("run/result.json");
    for altered in [with(&result, "\"format\": 2,", ""), with(&result, "\"format\": 2", "\"format\": 3")] {
        place.write("run/result.json", &altered);
        let said = contains("run/result.json").and(contains("format is not understood"));
        place.pasta("certify run --target 1").assert().code(2).stderr(said);
    }
    let trace = place.read("run/trace.jsonl");
    place.write("run/trace.jsonl", trace.split_once('\n').unwrap().1);
    let said = contains("run/trace.jsonl").and(contains("no start of a trace that this version understands"));
    place.pasta("resume run --budget 1e5").assert().code(2).stderr(said);
}

#[test]
fn a_result_lives_in_no_problem_file() {
    let forecast = "\n[certificate]\n[certificate.forecast]\npilot = 5\nlow = 1\nmiddle = 2\nhigh = 3\n";
    let place = TestDir::holding(&(BOWL.to_owned() + forecast));
    place.pasta("solve p.toml").assert().code(2).stderr(contains("forecast: unknown key"));
    let place = TestDir::holding(BOWL);
    let run = place.json("solve p.toml --certify 0.5 --output run", 0);
    assert!(!place.read("run/problem.toml").contains("forecast"));
    assert_eq!(place.json("resume run", 0)["forecast"], run["forecast"]);
}

#[test]
fn a_large_point_goes_into_a_file_that_numpy_reads_and_is_certified_from_there() {
    let text = with(SGD, "start = [1.2]", "dimension = 20000\nstart = 1.2");
    let place = TestDir::holding(&with(&text, "steps = 1000", "steps = 3"));
    let result = place.json("solve p.toml --output run", 0);
    assert_eq!((&result["point"], &result["point_file"]), (&Value::Null, &"point.npy".into()));
    let bytes = fs::read(place.path("run/point.npy")).unwrap();
    assert!(bytes.starts_with(b"\x93NUMPY\x01\x00"));
    assert_eq!(bytes.len() % 64, (20_000 * 8) % 64);
    assert!(fs::metadata(place.path("run/result.json")).unwrap().len() < 4_000);
    let answer = place.json("certify run --target 1e3 --exact", 0);
    let last = f64::from_le_bytes(*bytes.last_chunk().unwrap());
    assert_eq!(answer["point"][19_999].as_f64(), Some(last));
    // Without a folder there is nowhere to put it.
    assert_eq!(place.json("solve p.toml", 0)["point"].as_array().unwrap().len(), 20_000);
}
