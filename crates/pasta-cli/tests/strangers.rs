//! A problem of which nothing is known but samples: every command works, and says nothing that it does not know.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod place;

use place::{DECLARED, SGD, TestDir, unwrapped, with};
use predicates::str::contains;
use serde_json::Value;

fn stranger(text: &str) -> String {
    with(text, "start = [1.2]", "start = [1.2]\nformulas = false")
}

#[test]
fn a_run_without_formulas_takes_the_same_steps_and_says_what_is_not_known() {
    for text in [DECLARED, SGD] {
        let (known, unknown) = (TestDir::holding(text), TestDir::holding(&stranger(text)));
        let [known, there] = [&known, &unknown].map(|place| place.json("solve p.toml --output run", 0));
        assert_eq!((&known["point"], &known["ledger"]), (&there["point"], &there["ledger"]));
        assert_eq!(there["truth"], Value::Null);
        let printed = unknown.pasta("solve p.toml").output().unwrap().stdout;
        assert!(!unwrapped(&printed).contains(" there "), "{}", unwrapped(&printed));
        let trace = unknown.read("run/trace.jsonl");
        assert!(trace.lines().skip(1).all(|line| line.contains("\"gap\":null,\"gradient_squared\":null")));
        assert_eq!(unknown.json("resume run", 0), there);
    }
    let promise = &TestDir::holding(&stranger(DECLARED)).json("solve p.toml", 0)["promise"];
    assert!(promise["statement"].as_str().unwrap().ends_with("provided the constants are true"), "{promise}");
}

#[test]
fn what_would_rest_on_formulas_is_refused_with_what_to_give() {
    let place = TestDir::holding(&stranger(&with(DECLARED, "[recipe.constants]", "[other]")));
    place.write("p.toml", &stranger(place::BOWL));
    place.pasta("solve p.toml").assert().code(2).stderr(contains("nothing is proved about this problem"));
    let place = TestDir::holding(&stranger(DECLARED));
    let noise = "nothing is known about the noise on which a certificate could rest";
    place.pasta("solve p.toml --certify 0.5").assert().code(2).stderr(contains(noise));
    place.pasta("certify p.toml --at 0 --target 0.5").assert().code(2).stderr(contains(noise));
    let exact = "does not know its gradient exactly";
    place.pasta("certify p.toml --at 0 --target 0.5 --exact").assert().code(2).stderr(contains(exact));
    place.write("q.toml", &with(&stranger(DECLARED), "formulas = false", "formulas = 3"));
    place.pasta("solve q.toml").assert().code(2).stderr(contains("formulas: expected true or false, got"));
}

#[test]
fn every_command_works_on_samples_alone() {
    let text = stranger(DECLARED) + "\n[certificate]\ntarget = 0.5\nkurtosis = 10\n";
    let place = TestDir::holding(&text);
    let run = place.json("solve p.toml --output run", 0);
    assert_eq!(run["certificate"]["verdict"], "certified");
    assert!(run["forecast"]["middle"].as_f64().unwrap() > 0.0);
    let certified = place.json("certify run --target 0.6", 0);
    assert_eq!((&certified["truth"], &certified["point"]), (&Value::Null, &run["point"]));
    assert!(place.json("plan --pilot p.toml", 0)["forecast"]["middle"].as_f64().unwrap() > 0.0);
    let calibration = place.json("calibrate p.toml", 0);
    assert!(calibration["figures"].as_array().unwrap().iter().all(|f| f["proved_by_problem"] == Value::Null));
    place
        .pasta("certify p.toml --at 0.001 --target 0.5 --moreau 7 --rho 3 --kurtosis --points 1")
        .assert()
        .code(0);
}

#[test]
fn the_problems_are_listed_with_all_that_a_file_may_say_of_them() {
    let place = TestDir::new();
    let listed = place.json("problems", 0);
    let problems = listed["problems"].as_array().unwrap();
    assert_eq!(problems.len(), 10);
    let printed = unwrapped(&place.pasta("problems").assert().success().get_output().stdout);
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats.md")).unwrap();
    for problem in problems {
        let name = problem["name"].as_str().unwrap();
        assert!(printed.contains(name) && page.contains(&format!("| `{name}` |")), "{name}");
        for parameter in problem["parameters"].as_array().unwrap() {
            let parameter = parameter["name"].as_str().unwrap();
            assert!(
                printed.contains(parameter) && page.contains(&format!("`{parameter}`")),
                "{name} {parameter}"
            );
        }
    }
}

#[test]
fn a_plan_too_short_for_a_certificate_is_told_before_anything_is_drawn() {
    let text = with(SGD, "steps = 1000", "steps = 1000") + "\n[certificate]\ntarget = 0.05\n";
    let place = TestDir::holding(&text);
    let told = "sgd ends after 1,000 samples, which leaves 1,000 for certificates; one of |grad f| <= 0.05 takes at least";
    place.pasta("solve p.toml --output run").assert().code(2).stderr(contains(told));
    assert!(!place.path("run").exists());
    // One that is too short in all likelihood is told too.
    place.write("p.toml", &with(&text, "steps = 1000", "steps = 5000"));
    let output = place.pasta("solve p.toml --json").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.starts_with("note: sgd ends after 5,000 samples"), "{said}");
}

#[test]
fn the_pilot_of_plan_draws_a_tenth_of_the_budget_at_most() {
    let text = place::BOWL.to_owned() + "\n[certificate]\ntarget = 0.5\n";
    let place = TestDir::holding(&text);
    let pilot = |words: &str| place.json(words, 0)["pilot"]["samples"].as_u64().unwrap();
    assert!(pilot("plan --pilot p.toml --samples 3000") <= 3000);
    place.write("p.toml", &with(&text, "seed = 1", "seed = 1\nbudget = 20000"));
    assert!(pilot("plan --pilot p.toml") <= 2000);
    place.write("p.toml", &with(&text, "seed = 1", "seed = 1\nbudget = 9"));
    place.pasta("plan --pilot p.toml").assert().code(2).stderr(contains("leaves no samples for a pilot"));
}
