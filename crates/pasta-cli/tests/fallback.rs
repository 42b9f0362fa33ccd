//! `fallback = "auto"`: a recipe with the method without constants beside it, from outside.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod place;

use place::{BOWL, DECLARED, TestDir, with};
use predicates::str::contains;

/// A recipe with true constants and a fall-back.
fn hedged() -> String {
    with(BOWL, "name = \"smooth\"", "name = \"smooth\"\nfallback = \"auto\"")
}

#[test]
fn a_recipe_with_a_fallback_is_certified_at_its_own_target_and_says_whose_point_it_is() {
    let place = TestDir::holding(&hedged());
    let result = place.json("solve p.toml --output run", 0);
    assert_eq!(result["stop"]["kind"], "certified");
    assert_eq!(result["certificate"]["target"], 0.5);
    assert_eq!(result["certificate"]["delta"], 0.05);
    assert!(["recipe", "auto"].iter().any(|by| result["by"] == *by), "{}", result["by"]);
    assert!(result["truth"]["gradient_squared"].as_f64().unwrap() <= 0.25);
    assert!(result["forecast_silent"].as_str().unwrap().contains("side by side"));
    // The copy in the folder says all that a resumed run needs.
    place.pasta("resume run").assert().code(0).stdout(contains("with auto beside it"));
    assert_eq!(place.json("solve p.toml", 0)["ledger"], result["ledger"]);
    let plain = TestDir::holding(BOWL);
    assert!(plain.json("solve p.toml --certify 0.5", 0)["by"].is_null());
}

#[test]
fn absurd_constants_do_not_spoil_the_run() {
    // The recipe ends after one step, as planned and far away.
    let bold = with(DECLARED, "smoothness = 3.0", "smoothness = 3e-6");
    let alone = TestDir::holding(&bold);
    alone.pasta("solve p.toml --certify 0.5 --budget 1e6").assert().code(4);
    let place = TestDir::holding(&with(&bold, "name = \"smooth\"", "name = \"smooth\"\nfallback = \"auto\""));
    let result = place.json("solve p.toml --budget 1e6", 0);
    assert_eq!((&result["stop"]["kind"], &result["by"]), (&"certified".into(), &"auto".into()));
}

#[test]
fn a_run_that_ran_out_of_its_budget_resumes() {
    let place = TestDir::holding(&hedged());
    let first = place.json("solve p.toml --certify 0.3 --budget 2000 --output run", 4);
    assert!(first["ledger"]["samples"].as_u64().unwrap() <= 2_000);
    let then = place.json("resume run --budget 1e7", 0);
    assert_eq!(then["stop"]["kind"], "certified");
    // A file that was changed is refused.
    let file = place.read("run/problem.toml");
    place.write("run/problem.toml", &with(&file, "fallback = \"auto\"\n", ""));
    place.pasta("resume run").assert().code(2).stderr(contains("the checkpoint is of another method"));
}

#[test]
fn what_cannot_be_chosen_between_is_refused() {
    let unknown = TestDir::holding(&with(&hedged(), "\"auto\"", "\"sgd\""));
    unknown.pasta("solve p.toml").assert().code(2).stderr(contains("unknown fall-back \"sgd\""));
    // A recipe that aims at values has no target for the gradient to take.
    let gap = with(&hedged(), "name = \"smooth\"", "name = \"pl\"");
    let place = TestDir::holding(&gap);
    place.pasta("solve p.toml").assert().code(2).stderr(contains("give --certify EPS"));
    assert_eq!(place.json("solve p.toml --certify 0.5", 0)["stop"]["kind"], "certified");
    let place = TestDir::holding(&hedged());
    place.pasta("plan --pilot p.toml").assert().code(2).stderr(contains("leave the fall-back out"));
}

#[test]
fn it_takes_part_in_a_comparison() {
    let place = TestDir::holding(&hedged());
    let race = place.json("compare p.toml --target 0.5 --budget 1e5 --seeds 3 --methods auto,smooth", 0);
    let rows = race["methods"].as_array().or(race["rows"].as_array()).unwrap();
    let smooth = rows.iter().find(|row| row["method"] == "smooth").unwrap();
    assert_eq!((&smooth["entry"], &smooth["reached"]), (&"file".into(), &3.into()), "{smooth}");
}
