//! Constraints and penalties in problem files and flags.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod place;

use place::{TestDir, unwrapped, with};
use predicates::prelude::*;
use predicates::str::contains;

const SDK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk");

/// Its minimiser is 0, and the bounds leave it out.
const BOUNDED: &str = r#"seed = 1

[problem]
name = "quadratic"
spectrum = [1.0, 1.0]
start = [1.0, 1.5]

[noise]
tail = "gaussian"
growth = 0.0
floor = 1.0

[[term]]
kind = "box"
lower = [0.5, -inf]
upper = 2

[certificate]
target = 0.1
"#;

#[test]
fn a_run_with_bounds_is_certified_by_its_gradient_mapping() {
    let place = TestDir::holding(BOUNDED);
    let result = place.json("solve p.toml --output run", 0);
    assert_eq!(result["term"], "box, lower [0.5, -inf], upper [2.0]");
    assert_eq!(result["point"][0], 0.5);
    assert!(result["point"][1].as_f64().unwrap().abs() <= 0.1);
    let certificate = &result["certificate"];
    assert_eq!(certificate["gamma"], 1.0);
    let statement = certificate["statement"].as_str().unwrap();
    assert!(
        statement.contains("|x - prox(x - gamma grad f(x))|/gamma <= ") && statement.contains("gamma = 1 "),
        "{statement}"
    );
    assert!(!statement.contains("|grad f(x)|"), "{statement}");
    // What formulas say of f alone is not said of f + h.
    assert_eq!(result["truth"], serde_json::Value::Null);
    // Anybody can make the certificate again, and an altered one is refused.
    place.pasta("verify run").assert().code(0).stdout(contains("reproduced to the bit"));
    let altered = place.read("run/result.json").replacen("\"gamma\": 1.0", "\"gamma\": 2.0", 1);
    place.write("altered.json", &altered);
    place.pasta("verify altered.json --problem p.toml").assert().code(4);
    // Also where samples choose gamma.
    let simplex =
        BOUNDED.replace("kind = \"box\"\nlower = [0.5, -inf]\nupper = 2", "kind = \"simplex\"\ntotal = 2.5");
    place.write("q.toml", &simplex.replace("[1.0, 1.0]", "[1.0, 3.0]"));
    place.pasta("solve q.toml --output other").assert().code(0);
    place.pasta("verify other").assert().code(0);
    let certified = place.json("certify run", 0);
    assert_eq!(
        (&certified["certificate"]["gamma"], &certified["certificate"]["of"]),
        (&1.0.into(), &"gradient-mapping".into())
    );
    place.pasta("certify run --radius 2").assert().code(2).stderr(contains("--radius and --mu"));
    let finer = place.json("certify run --gamma 0.25", 0);
    assert_eq!(finer["certificate"]["gamma"], 0.25);
    place.pasta("certify p.toml --at 0.4,0").assert().code(2).stderr(contains("x0 = 0.4 is below 0.5"));
    place
        .pasta("certify run --moreau 2 --rho 0")
        .assert()
        .code(2)
        .stderr(contains("not proved where a term"));
}

#[test]
fn bounds_can_be_given_by_flags_and_are_kept_for_resume() {
    let plain = with(BOUNDED, "[[term]]\nkind = \"box\"\nlower = [0.5, -inf]\nupper = 2\n", "");
    let place = TestDir::holding(&plain);
    let by_flags = place.json("solve p.toml --lower=0.5,-inf --upper 2 --output run", 0);
    let other = TestDir::holding(BOUNDED);
    let by_file = other.json("solve p.toml", 0);
    assert_eq!(by_flags["point"], by_file["point"]);
    assert!(place.read("run/problem.toml").contains("[[term]]"));
    let sgd = "[recipe]\nname = \"sgd\"\neta = 0.05\nsteps = 20000\n";
    place.write("sgd.toml", &format!("{plain}\n{sgd}"));
    place.json("solve sgd.toml --lower=0.5,-inf --upper 2 --budget 300 --output short", 4);
    let resumed = place.json("resume short --budget 20000", 0);
    assert_eq!((&resumed["point"][0], &resumed["stop"]["kind"]), (&0.5.into(), &"certified".into()));
    // Another term is another run.
    let kept = place.read("short/problem.toml");
    place.write("short/problem.toml", &with(&kept, "upper = 2.0", "upper = 3.0"));
    place.pasta("resume short").assert().failure().stderr(contains("the run was started with the term box"));
}

#[test]
fn a_start_outside_is_refused_or_projected() {
    let place = TestDir::holding(&with(BOUNDED, "start = [1.0, 1.5]", "start = [0.0, 1.5]"));
    place.pasta("solve p.toml").assert().code(2).stderr(contains("x0 = 0 is below 0.5"));
    assert_eq!(place.json("solve p.toml --project-start", 0)["point"][0], 0.5);
    place.write("q.toml", &format!("project_start = true\n{}", place.read("p.toml")));
    place.json("solve q.toml", 0);
}

#[test]
fn wrong_terms_are_refused_with_their_file() {
    let refused = |old: &str, new: &str, message: &str| {
        let place = TestDir::holding(&with(BOUNDED, old, new));
        let printed = place.pasta("solve p.toml").assert().code(2).get_output().stderr.clone();
        let printed = unwrapped(&printed);
        assert!(printed.contains("p.toml:13") && printed.contains(message), "{printed}");
    };
    refused("kind = \"box\"", "kind = \"bxo\"", "there is no kind \"bxo\"");
    refused("upper = 2", "uper = 2", "uper");
    refused("upper = 2", "upper = 0.4", "coordinate 0 lies nowhere");
    refused("lower = [0.5, -inf]", "lower = [0.5, 1, 2]", "lower has 3 numbers for 2 coordinates");
    let gamma = TestDir::holding(&with(BOUNDED, "target = 0.1", "target = 0.1\ngamma = 0"));
    gamma.pasta("solve p.toml").assert().code(2).stderr(contains("expected a positive number, got 0"));
}

#[test]
fn a_target_can_be_a_share_of_the_gradient_mapping_at_the_start() {
    let place = TestDir::holding(&with(BOUNDED, "target = 0.1", "target = \"5%\""));
    let result = place.json("solve p.toml --output run", 0);
    let of_start = &result["of_start"];
    // At (1, 1.5) a step of length 1 goes to (0.5, 0): so the mapping is (0.5, 1.5).
    let [mapping, target, gamma] = ["gradient", "target", "gamma"].map(|key| of_start[key].as_f64().unwrap());
    assert_eq!(gamma, 1.0);
    assert!((mapping / 2.5f64.sqrt() - 1.0).abs() < 0.2 && target == 0.05 * mapping, "{of_start}");
    assert_eq!(result["certificate"]["target"], target);
    place.pasta("verify run").assert().code(0).stdout(contains("reproduced to the bit"));
    let altered =
        place.read("run/result.json").replacen(&format!("\"target\": {target}"), "\"target\": 0.5", 1);
    place.write("altered.json", &altered);
    place.pasta("verify altered.json --problem p.toml").assert().code(4);
    let by_hand = place.json("certify run --target 5%", 0);
    assert_eq!(by_hand["certificate"]["gamma"], 1.0);
    let compared = place.json("compare p.toml --target 5% --budget 5000 --seeds 2 --methods dog,auto", 0);
    assert_eq!(compared["gamma"], 1.0);
    place.pasta("plan --pilot p.toml").assert().code(0);
}

#[test]
fn calibrate_stays_in_the_domain() {
    let place = TestDir::holding(BOUNDED);
    let found = place.json("calibrate p.toml --budget 10000", 0);
    assert!((found["figures"][0]["estimate"]["value"].as_f64().unwrap() - 1.0).abs() < 0.1, "{found}");
    let ends: Vec<_> =
        found["rays"].as_array().unwrap().iter().map(|ray| ray["end"].as_str().unwrap()).collect();
    assert!(ends.contains(&"boundary"), "{ends:?}");
    place.write(
        "simplex.toml",
        &with(BOUNDED, "kind = \"box\"\nlower = [0.5, -inf]\nupper = 2", "kind = \"simplex\"\ntotal = 2.5"),
    );
    place.json("calibrate simplex.toml --budget 10000", 0);
    place.write("out.toml", &with(BOUNDED, "start = [1.0, 1.5]", "start = [0.0, 1.5]"));
    place.pasta("calibrate out.toml").assert().code(2).stderr(contains("x0 = 0 is below 0.5"));
}

#[test]
fn methods_are_compared_by_their_gradient_mappings() {
    let place = TestDir::holding(BOUNDED);
    let compared = place.json("compare p.toml --budget 2000 --seeds 2 --methods dog,auto", 0);
    assert!(compared["gamma"].as_f64().is_some_and(|gamma| gamma == 1.0), "{compared}");
}

/// A simulator that ends where a scale is not positive.
const SIM: &str = r#"
import os, sys
import pasta


def sample(x, rng):
    if min(x) <= 0.0:
        print("a scale is not positive", file=sys.stderr, flush=True)
        os._exit(3)
    g = [v - rng.gauss(-0.5 if i == 0 else 1.0, 0.5) for i, v in enumerate(x)]
    return g, sum(v * v for v in g) / 2


pasta.serve(sample, losses=True, name="scales")
"#;

#[test]
fn a_simulator_never_sees_a_point_outside() {
    let place = TestDir::holding(&format!(
        "seed = 1\n\n[problem]\ncommand = [\"python3\", \"sim.py\"]\nenvironment = {{ PYTHONPATH = \"{SDK}\" }}\ndimension = 2\n\
         start = 0.01\n\n[certificate]\ntarget = 0.2\nkurtosis = 10\n"
    ));
    place.write("sim.py", SIM);
    let result = place.json("solve p.toml --lower 0.01 --budget 20000", 0);
    assert_eq!(result["point"][0], 0.01);
    // Without bounds it fails.
    place
        .pasta("solve p.toml --budget 20000")
        .assert()
        .failure()
        .stderr(contains("a scale is not positive").or(contains("ended")));
}
