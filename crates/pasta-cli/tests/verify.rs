//! `pasta verify`, and `proof/verify.py` beside it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stderr, reason = "a test that is skipped says so")]

mod place;

use std::process::Command;

use place::{TestDir, with};
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;

const SECOND: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../proof/verify.py");
const SDK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk");

/// A built-in problem that `auto` solves, with this noise and this basis.
fn built_in(problem: &str, noise: &str, basis: &str, seed: usize) -> String {
    format!(
        "seed = {seed}\n\n[problem]\n{problem}\n\n[noise]\n{noise}\nfloor = 1.0\n\n[certificate]\ntarget = 0.4\n{basis}\n"
    )
}

const PROBLEMS: [&str; 7] = [
    "name = \"sine-bowl\"\nstart = [1.2]",
    "name = \"quadratic\"\nspectrum = [1.0, 0.5, 0.25]\nstart = [1.0, -1.0, 2.0]",
    "name = \"soft-absolute\"\ndimension = 2\nstart = 1.0",
    "name = \"huber\"\ndimension = 3\ncurvature = 1.0\nlipschitz = 2.0\nstart = 0.5",
    "name = \"clover\"\ndepth = 0.3\nstart = [0.7, 0.2]",
    "name = \"ramp\"\nslope = 1.0\nreach = 1.0\ncurvature = 1.0\nstart = [0.0]",
    "name = \"flat\"\ndimension = 12\nstart = 1.0",
];
const NOISES: [&str; 3] = [
    "tail = \"gaussian\"\ngrowth = 0.5",
    "tail = \"student-t\"\ndof = 6.0\ngrowth = 0.0",
    "tail = \"lognormal\"\nsigma = 0.8\ngrowth = 0.25",
];
const BASES: [&str; 3] = ["", "kurtosis = 100", "variance = 20"];

/// Numbers that look like chance, and two kinds of labels.
fn table() -> String {
    let row = |k: u32| {
        let (a, b) = (f64::from(k * 7919 % 101) / 50.0 - 1.0, f64::from(k * 104_729 % 97));
        let noise = f64::from(k * 31 % 13) / 6.0 - 1.0;
        format!("{a},{b},{},{}\n", a + 0.02 * b + noise, i32::from(a + noise > 0.0))
    };
    "a,b,y,sign\n".to_owned() + &(1..200).map(row).collect::<String>()
}

/// A table with its loss and the column of its label.
fn of_table(loss: &str, label: &str, other: &str) -> String {
    format!(
        "[problem]\ntable = \"t.csv\"\nloss = \"{loss}\"\nlabel = \"{label}\"\nignore = [\"{other}\"]\npenalty = 0.001\n\n[recipe]\nname = \"auto\"\n\n[certificate]\ntarget = 0.001\n"
    )
}

/// The i-th of many problem files.
fn numbered(i: usize) -> String {
    match i % 8 {
        6 => of_table("least-squares", "y", "sign"),
        7 => of_table("logistic", "sign", "y"),
        _ => built_in(PROBLEMS[i % 7], NOISES[i / 2 % 3], BASES[i / 3 % 3], i + 1),
    }
}

/// True if there is a Python that reads TOML.
fn has_python() -> bool {
    let found = Command::new("python3").args(["-c", "import tomllib"]).output();
    let has = found.is_ok_and(|output| output.status.success());
    if !has {
        eprintln!("skipped: proof/verify.py needs python3, 3.11 or later");
    }
    has
}

/// The exit code of the second verifier, and what it says.
fn second(place: &TestDir, arguments: &[&str]) -> (Option<i32>, String) {
    let output =
        Command::new("python3").arg(SECOND).args(arguments).current_dir(place.0.path()).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&said).into_owned())
}

/// Both verifiers accept what a run wrote, and refuse it with another bound.
fn both_agree(text: &str, has_python: bool) {
    let place = TestDir::holding(text);
    place.write("t.csv", &table());
    let result = place.json("solve p.toml --output run --budget 3e5", 0);
    assert_eq!(result["certificate"]["verdict"], "certified", "{text}");
    place.pasta("verify run").assert().code(0).stdout(contains("reproduced to the bit"));
    let written = place.read("run/result.json");
    let bound = result["certificate"]["bound"].to_string();
    let smaller = format!("{:e}", result["certificate"]["bound"].as_f64().unwrap() * 0.999);
    let altered = with(&written, &format!("\"bound\": {bound}"), &format!("\"bound\": {smaller}"));
    if has_python {
        assert_eq!(second(&place, &["run"]).0, Some(0), "{:?} of {text}", second(&place, &["run"]));
        place.write("run/result.json", &altered);
        let (code, said) = second(&place, &["run"]);
        assert!(code == Some(4) && said.contains("certificate.bound"), "{said} of {text}");
    }
    place.write("run/result.json", &altered);
    place.pasta("verify run").assert().code(4).stdout(contains("certificate.bound is"));
}

#[test]
fn both_verifiers_reproduce_a_handful_of_results() {
    let has_python = has_python();
    [0, 3, 6, 7, 10].into_iter().for_each(|i| both_agree(&numbered(i), has_python));
}

#[test]
#[ignore = "takes minutes: cargo xtask evidence verify"]
fn both_verifiers_reproduce_fifty_results() {
    assert!(has_python(), "this needs python3");
    (0..50).for_each(|i| both_agree(&numbered(i), true));
}

#[test]
fn a_certificate_by_hand_is_verified_with_its_problem_file() {
    let place = TestDir::holding(&numbered(0));
    for flags in ["", " --attempt 3", " --kurtosis", " --exact", " --variance 3"] {
        let output =
            place.pasta(&format!("certify p.toml --at 0.01 --target 0.5{flags} --json")).output().unwrap();
        place.write("c.json", std::str::from_utf8(&output.stdout).unwrap());
        place.pasta("verify c.json --problem p.toml").assert().code(0).stdout(contains("verified: "));
        if has_python() {
            let (code, said) = second(&place, &["c.json", "p.toml"]);
            assert_eq!(code, Some(0), "{said} of {flags}");
        }
        let text = place.read("c.json");
        place.write("c.json", &with(&text, "\"point\":[0.01]", "\"point\":[0.011]"));
        place.pasta("verify c.json --problem p.toml").assert().code(4).stdout(contains("made.point"));
    }
    place.pasta("verify c.json").assert().code(2).stderr(contains("it has no problem.toml"));
}

#[test]
fn another_problem_file_is_refused() {
    let place = TestDir::holding(&numbered(0));
    place.json("solve p.toml --output run", 0);
    let text = place.read("run/problem.toml");
    let changes = [
        ("floor = 1.0", "floor = 0.5", "problem"),
        ("target = 0.4", "target = 0.5", "certificate.made.claim.target"),
        ("seed = 1", "seed = 2", "seed"),
        ("start = [1.2]", "start = [1.3]", "rests_on.oracle"),
    ];
    for (old, new, name) in changes {
        place.write("run/problem.toml", &with(&text, old, new));
        let said = contains(format!("not verified: {name} is "));
        place.pasta("verify run").assert().code(4).stdout(said);
    }
    place.write("run/problem.toml", &text);
    let verified = place.json("verify run", 0);
    assert_eq!((&verified["format"], &verified["verified"]), (&2.into(), &true.into()));
    assert!(verified["made"]["sub_batches"].as_u64().unwrap() > 0, "{verified:#}");
    assert_eq!(place.json("verify run --threads 3", 0), verified);
}

#[test]
fn what_has_no_certificate_cannot_be_verified() {
    let place = TestDir::holding(&with(&numbered(0), "[certificate]\ntarget = 0.4\n", ""));
    place.json("solve p.toml --output run --budget 1000", 0);
    place.pasta("verify run").assert().code(2).stderr(contains("the result has no certificate"));
    place.pasta("verify nowhere").assert().code(2);
}

/// A simulator is asked again, if it is trusted; a changed program is noticed before that.
#[test]
fn a_simulator_is_asked_again_unless_its_file_has_changed() {
    let place = TestDir::holding(
        "[problem]\ncommand = [\"python3\", \"sim.py\"]\ndimension = 2\nstart = 0.0\nblock = 64\n\n[certificate]\ntarget = 0.5\nkurtosis = 20\n",
    );
    let simulator = format!(
        "import sys\nsys.path.insert(0, {SDK:?})\nimport pasta\npasta.serve(lambda x, rng: [c - rng.gauss(1.0, 1.0) for c in x])\n"
    );
    place.write("sim.py", &simulator);
    let solved = place.pasta("solve p.toml --output run --json").output().unwrap();
    assert!(solved.status.success(), "{}", String::from_utf8_lossy(&solved.stderr));
    let result: Value = serde_json::from_slice(&solved.stdout).unwrap();
    assert_eq!(result["rests_on"]["files"][0]["name"], "sim.py", "{result:#}");
    place.pasta("verify run").assert().code(0).stdout(contains("verified: "));
    let elsewhere = place.pasta("verify run").env(place::STATE, place.path("other")).assert().code(2);
    elsewhere.stderr(contains("--trust"));
    place.pasta("verify run --trust").env(place::STATE, place.path("other")).assert().code(0);
    place.write("sim.py", &(simulator + "# changed\n"));
    let said = contains("not verified: rests_on.files[0].sha256 is ").and(contains("if computed again"));
    place.pasta("verify run").assert().code(4).stdout(said);
}
