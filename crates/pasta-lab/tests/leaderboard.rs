//! `pasta-lab leaderboard`, from outside. Nothing here runs a problem that was kept back.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::process::Output;

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

/// Two streams and a table with tiny budgets.
const TINY: &[&str] = &["--only", "quad-1,newsvendor,lsq-small", "--budget", "3000", "--seeds", "2"];

fn leaderboard(arguments: &[&str], threads: &str) -> Output {
    let mut command = Command::cargo_bin("pasta-lab").unwrap();
    command.env("RAYON_NUM_THREADS", threads).arg("leaderboard").args(arguments).output().unwrap()
}

fn shown(arguments: &[&str]) -> String {
    let output = leaderboard(arguments, "2");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.stderr, b"", "talk stays off pipes");
    String::from_utf8(output.stdout).unwrap()
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&shown(&[arguments, &["--json"]].concat())).unwrap()
}

fn refused(arguments: &[&str]) -> String {
    let output = leaderboard(arguments, "2");
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{message}");
    message
}

#[test]
fn every_method_runs_on_every_problem_and_the_goals_of_the_race_are_told() {
    let answer = json(TINY);
    assert_eq!((answer["format"].as_u64(), answer["champion"].as_str()), (Some(2), Some("auto")));
    let entries = answer["entries"].as_array().unwrap();
    // quad-1 has no losses, so no sps, which else runs with two batches as the nine others do; auto runs once.
    assert_eq!(entries.len(), 3 * 19 + 2 * 2);
    for entry in entries {
        let ends = entry["ends"].as_array().unwrap();
        assert_eq!(ends.len(), 2);
        assert!(ends.iter().all(|end| end["samples"].as_u64().unwrap() <= 3000), "{entry}");
    }
    let goals: Vec<_> = answer["goals"].as_array().unwrap().iter().map(|goal| &goal["what"]).collect();
    assert!(goals.iter().any(|what| *what == "bad ends"), "{goals:?}");
    assert!(goals.iter().any(|what| *what == "final gradient of quad-1"), "{goals:?}");
    let small = answer["problems"].as_array().unwrap().iter().find(|row| row["problem"] == "lsq-small");
    assert_eq!(small.unwrap()["kind"], "table");
}

#[test]
fn one_thread_and_three_give_the_same_bytes() {
    let arguments = [TINY, &["--methods", "auto,dog,sps", "--json"]].concat();
    let [one, three] = ["1", "3"].map(|threads| leaderboard(&arguments, threads).stdout);
    assert!(!one.is_empty() && one == three);
}

#[test]
fn runs_of_peers_are_kept_and_give_the_same_answer_and_others_are_refused() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("peers.json");
    let arguments =
        [TINY, &["--methods", "auto,dog,adam", "--json", "--peers", file.to_str().unwrap()]].concat();
    let first = shown(&arguments);
    let kept = fs::read_to_string(&file).unwrap();
    assert!(kept.contains("\"dog\"") && !kept.contains("\"auto\""));
    assert_eq!(shown(&arguments), first);
    let message = refused(&["--only", "quad-1", "--seeds", "3", "--peers", file.to_str().unwrap()]);
    assert!(message.contains("--budget 3000 --seeds 2"), "{message}");
}

#[test]
fn the_page_has_the_goals_and_says_where_the_champion_loses() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("page");
    let text = shown(&[TINY, &["--methods", "auto,dog", "--output", path.to_str().unwrap()]].concat());
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let page = fs::read_to_string(path.join("index.html")).unwrap();
    for word in ["Goals", "bad ends", "lsq-small", "pasta-lab leaderboard --problems dev --budget 3000"] {
        assert!(page.contains(word), "{word}");
    }
    let results: Value =
        serde_json::from_str(&fs::read_to_string(path.join("results.json")).unwrap()).unwrap();
    assert_eq!(results["seeds"], 2);
}

#[test]
fn names_that_are_not_there_are_refused_with_those_that_are() {
    let message = refused(&["--only", "quad-2"]);
    assert!(message.contains("quad-2") && message.contains("quad-10"), "{message}");
    // A kept-back problem is not among the development problems.
    let message = refused(&["--only", "cauchy"]);
    assert!(message.contains("cauchy"), "{message}");
    let message = refused(&["--methods", "smooth"]);
    assert!(message.contains("smooth") && message.contains("dog"), "{message}");
}

#[test]
fn the_goals_beside_the_race_are_measured_when_they_are_asked_for() {
    let answer = json(&[
        "--only",
        "lsq-small",
        "--methods",
        "auto,dog",
        "--budget",
        "2000",
        "--seeds",
        "1",
        "--goals",
    ]);
    let goals = answer["goals"].as_array().unwrap();
    let about =
        |word: &str| goals.iter().filter(|goal| goal["what"].as_str().unwrap().contains(word)).count();
    assert_eq!([about("certified"), about("hard instance")], [1, 1]);
    for goal in goals {
        let measured = goal["measured"].as_f64().unwrap_or(f64::INFINITY);
        assert_eq!(goal["met"], measured <= goal["most"].as_f64().unwrap(), "{goal}");
    }
}
