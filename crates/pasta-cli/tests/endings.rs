//! Runs that cannot end well say so, with numbers, and with the right exit code.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod place;

use place::TestDir;
use predicates::str::contains;

const SDK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk");

/// A simulator of one sample, whose body is given.
fn simulator(body: &str, more: &str) -> TestDir {
    let place = TestDir::holding(&format!(
        "seed = 1\n{more}\n\n[problem]\ncommand = [\"python3\", \"sim.py\"]\nenvironment = {{ PYTHONPATH = \"{SDK}\" }}\n\
         dimension = 2\nstart = 3.0\nretries = 0\n"
    ));
    place.write(
        "sim.py",
        &format!(
            "import pasta\n\ndef sample(x, rng):\n{body}\n\npasta.serve(sample, losses=True, name=\"odd\")\n"
        ),
    );
    place
}

const BOWL: &str = "    nan = rng.random() < 0.02
    g = [v - rng.gauss(1.0, 1.0) for v in x]
    return [float('nan')] * 2 if nan else g, sum(v * v for v in g) / 2";

#[test]
fn answers_that_are_nan_now_and_then_stop_a_run_or_are_left_out_and_are_counted() {
    let place = simulator(BOWL, "");
    let stopped = place.json("solve p.toml --budget 3000 --no-check", 3);
    assert_eq!(stopped["stop"]["kind"], "not-finite");
    assert!(stopped["stop"]["step"].as_u64().unwrap() < 100);
    let count = stopped["ledger"]["not_finite"].as_u64().unwrap();
    assert!(count > 0);
    let meaning = stopped["stop"]["meaning"].as_str().unwrap();
    assert!(meaning.ends_with(&format!("; {count} answers of the oracle were not finite")), "{meaning}");
    let told = contains("answers of the oracle at one point are not finite (seen at step ");
    place.pasta("solve p.toml --budget 3000 --no-check").assert().code(3).stderr(told);

    let skipped = place.json("solve p.toml --budget 3000 --no-check --on-nan skip", 0);
    assert_eq!(skipped["stop"]["kind"], "planned-end");
    assert!(skipped["stop"]["meaning"].as_str().unwrap().contains("were left out, which biases the result"));
    assert!(skipped["ledger"]["not_finite"].as_u64().unwrap() > 20);
    // The file says the same, and is refused if it says neither.
    let file = simulator(BOWL, "budget = 3000\non_nan = \"skip\"");
    assert_eq!(file.json("solve p.toml --no-check", 0)["point"], skipped["point"]);
    let odd = simulator(BOWL, "on_nan = \"maybe\"");
    odd.pasta("solve p.toml --budget 3000")
        .assert()
        .code(2)
        .stderr(contains("expected \"stop\" or \"skip\""));
}

#[test]
fn what_rests_on_samples_that_were_chosen_is_void() {
    let place = simulator(BOWL, "[certificate]\ntarget = 0.9\nkurtosis = 9\npilot = 0");
    let void = place.json("solve p.toml --no-check --on-nan skip", 4);
    assert_eq!((&void["stop"]["kind"], &void["certificate"]["verdict"]), (&"void".into(), &"void".into()));
    assert!(void["certificate"]["doubt"].as_str().unwrap().contains("were not finite and were left out"));
}

#[test]
fn a_function_without_a_minimum_ends_as_lost() {
    let place = simulator("    return [-1.0 + 0.1 * rng.gauss(0.0, 1.0) for v in x], -sum(x)", "");
    let end = place.json("solve p.toml --budget 3000 --no-check", 3);
    assert!(["unbounded", "diverged"].contains(&end["stop"]["kind"].as_str().unwrap()), "{}", end["stop"]);
}

#[test]
fn a_target_out_of_reach_ends_a_run_without_a_budget_and_a_budget_goes_on() {
    let place = TestDir::holding(
        "seed = 1\n[problem]\nname = \"sine-bowl\"\nstart = [1.2]\n[noise]\ntail = \"gaussian\"\ngrowth = 1.0\nfloor = 1.0\n\
         [recipe]\nname = \"auto\"\n[certificate]\ntarget = 1e-6\npilot = 0\n",
    );
    let end = place.json("solve p.toml --output run", 4);
    assert_eq!(end["stop"]["kind"], "hopeless");
    let told = contains("its certificate needs about ");
    let told = predicates::prelude::PredicateBooleanExt::and(
        told,
        contains("go on with: pasta resume run --budget SAMPLES, or --no-limit"),
    );
    place.pasta("resume run").assert().code(4).stderr(told);
    let drawn = end["ledger"]["samples"].as_u64().unwrap();
    let more = place.json(&format!("resume run --budget {}", 2 * drawn), 4);
    assert!(
        more["ledger"]["samples"].as_u64().unwrap() > drawn && more["stop"]["kind"] != "hopeless",
        "{}",
        more["stop"]
    );
}
