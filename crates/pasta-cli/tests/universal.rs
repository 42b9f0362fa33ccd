//! `universal` from outside: a target, and no constant.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod place;

use place::{BOWL, TestDir, with};
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;

fn file() -> String {
    with(
        &with(BOWL, "name = \"smooth\"\ntarget = 0.5\nconstants = \"problem\"", "name = \"universal\""),
        "growth = 9.0",
        "growth = 1.0",
    )
}

#[test]
fn it_certifies_a_target_and_the_certificate_is_true_and_verifies() {
    let place = TestDir::holding(&file());
    let result = place.json("solve p.toml --target 0.5 --output run", 0);
    assert_eq!(result["stop"]["kind"], "certified");
    assert_eq!(result["certificate"]["target"], 0.5);
    assert!(result["truth"]["gradient_squared"].as_f64().unwrap() <= 0.25);
    place.pasta("verify run").assert().code(0);
}

#[test]
fn without_a_target_it_says_that_it_needs_one() {
    let place = TestDir::holding(&file());
    for words in
        ["solve p.toml", "solve p.toml --budget 1000", "compare p.toml --budget 1000 --methods universal"]
    {
        place.pasta(words).assert().code(2).stderr(contains("needs a target").and(contains("--target EPS")));
    }
    let other = TestDir::holding(BOWL);
    other
        .pasta("compare p.toml --budget 1000 --methods universal")
        .assert()
        .code(2)
        .stderr(contains("takes part as the file's own method"));
}

#[test]
fn a_run_that_ran_out_of_its_budget_resumes() {
    let place = TestDir::holding(&file());
    let whole = place.json("solve p.toml --target 0.5", 0);
    let drawn = whole["ledger"]["samples"].as_u64().unwrap();
    place.pasta(&format!("solve p.toml --target 0.5 --budget {} --output run", drawn / 2)).assert().code(4);
    let then = place.json("resume run --budget 1e7", 0);
    assert_eq!(then["stop"]["kind"], "certified");
    assert!(then["truth"]["gradient_squared"].as_f64().unwrap() <= 0.25);
}
