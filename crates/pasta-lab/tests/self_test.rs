//! `pasta-lab self-test`, from outside, at a reduced size.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::process::Output;
use std::sync::OnceLock;

use assert_cmd::Command;
use predicates::str::contains;
use serde_json::Value;
use tempfile::TempDir;

fn self_test(arguments: &str) -> Command {
    let mut command = Command::cargo_bin("pasta-lab").unwrap();
    command.args(["self-test"]).args(arguments.split_whitespace());
    command
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

/// One dimension, where all bases are closest to their limits, once for all tests; and the files of the run.
fn one_dimension() -> &'static (Value, TempDir) {
    static RUN: OnceLock<(Value, TempDir)> = OnceLock::new();
    RUN.get_or_init(|| {
        let folder = TempDir::new().unwrap();
        let mut command = self_test("--seeds 1000 --dimension 1 --json --output");
        // Success: no proved basis is false more often than it says.
        let evidence = json(command.arg(folder.path()).assert().success().stderr("").get_output());
        (evidence, folder)
    })
}

fn rows(evidence: &Value) -> &[Value] {
    evidence["rows"].as_array().unwrap()
}

fn row<'e>(evidence: &'e Value, noise: &str, basis: &str) -> &'e Value {
    rows(evidence).iter().find(|row| row["noise"] == noise && row["basis"] == basis).unwrap()
}

fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("{key} in {row}"))
}

const NOISES: [&str; 11] = [
    "normal",
    "Student t(3)",
    "Student t(2.5)",
    "lognormal(1)",
    "lognormal(1.5)",
    "lognormal(2)",
    "mask, p = 0.01",
    "mask, p = 0.0001",
    "event, p = 0.0001",
    "event, p = 0.01",
    "event, p = 0.1",
];

#[test]
fn every_noise_has_a_row_in_every_dimension_and_basis() {
    // One seed, and one of it in a thousand dimensions: what is measured does not matter here.
    let evidence = json(self_test("--seeds 1 --json").assert().success().get_output());
    // Three bases, and one false declaration.
    assert_eq!(rows(&evidence).len(), 3 * NOISES.len() * 3 + 1);
    // Ten kinds of terms in each dimension, but for the simplex of one point and the polyhedron of a thousand coordinates.
    assert_eq!(evidence["terms"].as_array().unwrap().len(), 3 * 10 - 2);
    for noise in NOISES {
        for basis in ["declared", "kurtosis", "approximate"] {
            let of_row = |row: &&Value| row["noise"] == noise && row["basis"] == basis;
            let dimensions: Vec<_> =
                rows(&evidence).iter().filter(of_row).map(|row| row["dimension"].as_u64().unwrap()).collect();
            // The shortest chain has two coordinates, and one comes before it.
            let first = if noise.starts_with("mask") { 3 } else { 1 };
            assert_eq!(dimensions, [first, 10, 1000], "{noise}, {basis}");
        }
    }
}

#[test]
fn proved_bases_hold_where_their_assumption_does() {
    let (evidence, _) = one_dimension();
    assert_eq!((&evidence["holds"], &evidence["delta"]), (&true.into(), &0.05.into()));
    for row in rows(evidence) {
        let promised = row["assumption"] == "holds";
        assert_eq!(row["outcome"] == "holds", promised, "{row}");
        // Whatever the tails, the variance is what was declared.
        assert!(promised || row["basis"] != "declared", "{row}");
        if promised {
            assert!(number(row, "false_low") <= 0.05 && number(row, "certified") > 0.5, "{row}");
        }
    }
    // Kurtosis 3 and 98 are below 100; 114 and none at all are not.
    let assumption = |noise| &row(evidence, noise, "kurtosis")["assumption"];
    assert_eq!([assumption("normal"), assumption("event, p = 0.01")], ["holds", "holds"]);
    assert_eq!([assumption("lognormal(1)"), assumption("Student t(3)")], ["broken", "broken"]);
    assert!(row(evidence, "Student t(3)", "kurtosis")["kurtosis"].is_null());
    let worst = number(&evidence["worst"], "false_rate");
    assert!(rows(evidence).iter().all(|r| r["assumption"] != "holds" || number(r, "false_rate") <= worst));
}

#[test]
fn what_is_not_proved_is_seen_to_be_false_too_often() {
    let (evidence, _) = one_dimension();
    for (noise, basis) in [
        ("lognormal(2)", "approximate"),
        ("event, p = 0.0001", "approximate"),
        // Kurtosis 9,998: an event that has not happened yet is not seen.
        ("event, p = 0.0001", "kurtosis"),
        ("mask, p = 0.0001", "kurtosis"),
        // A quarter of the variance was declared.
        ("normal", "understated"),
    ] {
        let row = row(evidence, noise, basis);
        assert_eq!(row["outcome"], "false-too-often", "{row}");
        assert!(number(row, "false_low") > 0.05, "{row}");
    }
}

#[test]
fn certificates_that_are_due_cost_less_than_the_goals() {
    let (evidence, _) = one_dimension();
    let costs = evidence["costs"].as_array().unwrap();
    let of = |basis: &str| costs.iter().find(|cost| cost["basis"] == basis).unwrap();
    for (basis, goal) in [("declared", 72.0), ("kurtosis", 155.0)] {
        let cost = of(basis);
        assert_eq!((number(cost, "goal"), &cost["met"]), (goal, &true.into()), "{cost}");
        assert!(number(cost, "least") > 10.0 && number(cost, "greatest") < goal, "{cost}");
    }
}

#[test]
fn the_files_hold_what_is_printed() {
    let (evidence, folder) = one_dimension();
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&read("self-test.json")).unwrap(), *evidence);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    let csv = read("self-test.csv");
    let mut lines = csv.lines();
    let head: Vec<_> = lines.next().unwrap().split(',').collect();
    assert_eq!(lines.clone().count(), rows(evidence).len());
    let rate = head.iter().position(|name| *name == "false_rate").unwrap();
    for (line, row) in lines.zip(rows(evidence)) {
        let (noise, rest) = line.strip_prefix('"').unwrap().split_once("\",").unwrap();
        assert_eq!(noise, row["noise"]);
        let cells: Vec<_> = rest.split(',').collect();
        assert_eq!(cells.len() + 1, head.len());
        assert_eq!(cells[rate - 1].parse::<f64>().unwrap(), number(row, "false_rate"));
    }
}

#[test]
fn the_same_seed_gives_the_same_table_on_any_number_of_threads() {
    let on = |threads: &str, arguments: &str| {
        let mut command = self_test(arguments);
        let text = command.env("RAYON_NUM_THREADS", threads).assert().success().get_output().stdout.clone();
        String::from_utf8(text).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let ten = "--seeds 20 --dimension 10";
    let (one, two) = (on("1", ten), on("2", ten));
    assert_eq!(one, two);
    // Lines are broken to the width of the console.
    let words = one.split_whitespace().collect::<Vec<_>>().join(" ");
    for needed in ["Normal approximation: not a certificate.", "the goal of 155 is met"] {
        assert!(words.contains(needed), "{needed}: {one}");
    }
    assert_ne!(one, on("2", "--seeds 20 --dimension 10 --seed 2"));
}

#[test]
fn what_makes_no_sense_is_refused() {
    self_test("--seeds 0").assert().code(2).stderr(contains("0 is not in 1..=1000000"));
    self_test("--dimension 2").assert().code(2).stderr(contains("expected one of 1, 10, 1000"));
}
