//! `pasta plan`: the numbers of the reference, the refusals, and what a new user sees.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;

fn pasta(arguments: &str) -> Command {
    let mut command = assert_cmd::cargo::cargo_bin_cmd!("pasta");
    command.arg("plan").args(arguments.split_whitespace());
    command
}

/// What the program prints when it succeeds, without complaint.
fn text(arguments: &str) -> String {
    let output = pasta(arguments).assert().success().stderr("").get_output().stdout.clone();
    String::from_utf8(output).unwrap()
}

/// Its lines joined again where a table broke them.
fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn json(arguments: &str) -> Value {
    let text = text(&format!("{arguments} --json"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments}: {error} in {text}"))
}

/// Bad input: exit code 2, nothing on stdout, and these words on stderr.
fn refuses(arguments: &str, words: &[&str]) {
    let mut assert = pasta(arguments).assert().code(2).stdout("");
    for word in words {
        assert = assert.stderr(contains(*word));
    }
}

fn real(case: &Value, key: &str) -> f64 {
    case[key].as_f64().unwrap_or_else(|| panic!("{key} in {case}"))
}

/// The bounds are sums and products of at most forty roundings, each at most 2^-53.
fn close(ours: f64, reference: f64) {
    assert!((ours - reference).abs() <= 1e-14 * reference.abs(), "{ours:?} is not {reference:?}");
}

/// Calls `check(answer, out)` on every case of a section of the reference, the case's inputs given as flags.
/// Noise that a section leaves out is zero.
fn cases(section: &str, recipe: &str, check: impl Fn(&Value, &Value)) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/golden.json");
    let golden: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let cases = golden[section].as_array().unwrap();
    assert!(!cases.is_empty());
    for case in cases {
        let mut inputs = case["in"].as_object().unwrap().clone();
        inputs.entry("B").or_insert(0.0.into());
        inputs.entry("b").or_insert(0.0.into());
        let flags: Vec<String> = inputs.iter().map(|(key, value)| flag(key, value)).collect();
        check(&json(&format!("{recipe} {}", flags.join(" "))), &case["out"]);
    }
}

fn flag(key: &str, value: &Value) -> String {
    let name = match key {
        "L" => "smoothness",
        "Lbar" => "ms-smoothness",
        "Delta" => "gap",
        // The reference gives |x0 - x*|^2; a root squared again is off by a rounding, which no count here notices.
        "R2" => return format!("--distance {:?}", value.as_f64().unwrap().sqrt()),
        "B" => "growth",
        "b" => "floor",
        "G" => "lipschitz",
        "lam" => "lambda",
        "sigma2" => "variance",
        "eps" => "target",
        "mu" | "rho" => key,
        other => panic!("no flag for {other}"),
    };
    format!("--{name} {value}")
}

/// Step sizes and probabilities are rationals rounded once: equal to the last bit. Counts are exact.
fn same_schedule(answer: &Value, out: &Value) {
    for key in ["K", "S", "N", "N0", "N_ref", "b"] {
        if let Some(count) = out[key].as_u64() {
            assert_eq!(answer[key].as_u64(), Some(count), "{key} of {answer}");
        }
    }
    for key in ["eta", "beta", "p"] {
        if let Some(value) = out[key].as_f64() {
            assert_eq!(real(answer, key), value, "{key} of {answer}");
        }
    }
    assert!(out["K"].is_u64());
}

fn same_samples(answer: &Value, out: &Value) {
    close(real(answer, "samples"), out.as_f64().unwrap());
}

#[test]
fn every_recipe_prints_the_schedules_of_the_reference() {
    for (section, recipe) in [
        ("smooth_recipe", "smooth"),
        ("convex_smooth_recipe", "smooth-convex"),
        ("convex_lipschitz_recipe", "lipschitz-convex"),
        ("mss_recipe", "mean-square-smooth"),
        ("pl_recipe", "pl"),
        ("star_recipe", "star-convex"),
        ("weak_recipe_corrected", "weakly-convex"),
        ("tuned_sgd_n1_recipe_extra", "horizon-sgd"),
    ] {
        cases(section, recipe, |answer, out| {
            assert_eq!(answer["recipe"], recipe);
            same_schedule(answer, out);
        });
    }
}

#[test]
fn every_cost_is_that_of_the_reference() {
    cases("smooth_bound_unsimplified", "smooth", same_samples);
    cases("convex_smooth_bound", "smooth-convex", same_samples);
    cases("convex_lipschitz_bound", "lipschitz-convex", same_samples);
    cases("mss_bound_printed", "mean-square-smooth", same_samples);
    cases("pl_complexity", "pl", |answer, out| assert_eq!(&answer["samples"], out));
    cases("star_complexity", "star-convex", |answer, out| assert_eq!(&answer["samples"], out));
    cases("weak_recipe_corrected", "weakly-convex", |answer, out| {
        assert_eq!(answer["samples"], out["queries_exact"]);
        assert_eq!(answer["exact_samples"], true);
    });
}

#[test]
fn smooth_anchored_is_weakly_convex_at_two_thirds_of_the_target() {
    let noise = "--gap 0.5 --growth 0.25 --floor 1 --lipschitz 1";
    let anchored = json(&format!("smooth-anchored --smoothness 1 {noise} --target 0.75"));
    let weakly_convex = json(&format!("weakly-convex --rho 1 --lambda 2 {noise} --target 0.5"));
    for key in ["eta", "beta", "K", "S", "N0", "N", "samples"] {
        assert_eq!(anchored[key], weakly_convex[key], "{key}");
    }
    assert_eq!(anchored["promise"]["measure"], "|grad f|^2");
    assert_eq!(anchored["promise"]["bound"], 0.5625);
}

const SMOOTH: &str = "smooth --smoothness 3 --gap 1.6 --growth 9 --floor 1";

#[test]
fn people_see_the_schedule_the_promise_and_the_cost() {
    let text = unwrapped(&text(&format!("{SMOOTH} --target 0.1")));
    for words in [
        "Theorem 3",
        "eta = 0.333333",
        "K = 1,920",
        "S = 1",
        "max(1, ceil((81 |x - x0|^2 + 1)/0.005))",
        "E |grad f|^2 <= 0.01 for an iterate drawn uniformly from",
        "at most 254,870,709,120 in expectation",
        "no lower bound at this target (needs eps <= 0.004534)",
    ] {
        assert!(text.contains(words), "{words:?} is not in\n{text}");
    }
}

#[test]
fn no_line_of_a_table_is_wider_than_eighty_columns() {
    let weakly_convex = "--rho 1 --lambda 2 --lipschitz 1 --gap 1 --growth 0.5 --floor 0.5 --target 1e-3";
    let all = "--all --smoothness 3 --mu 0.25 --gap 1.6 --distance 1.2 --growth 0.5 --floor 0.5 --rho 1 \
               --lambda 2 --lipschitz 3 --ms-smoothness 4";
    for arguments in [
        &format!("{SMOOTH} --target 0.1"),
        &format!("{SMOOTH} --budget 1e6"),
        &format!("weakly-convex {weakly_convex}"),
        &format!("{all} --target 1e-3"),
        &format!("{all} --budget 1e9"),
        "--all --smoothness 1 --gap 1 --growth 1 --floor 1 --target 1e-3",
    ] {
        for line in text(arguments).lines() {
            assert!(line.chars().count() <= 80 && line.is_ascii(), "{arguments}: {line}");
            assert_eq!(line, line.trim_end(), "{arguments}");
        }
    }
}

#[test]
fn an_exact_cost_says_exactly_and_is_an_integer_in_full() {
    // S (N_0 + (K - 1) N) is beyond 2^64, where a double has long lost the last digits.
    let arguments =
        "weakly-convex --rho 1 --lambda 2 --lipschitz 1 --gap 1 --growth 0.5 --floor 0.5 --target 0.003";
    let json = text(&format!("{arguments} --json"));
    let (k, s, n0, n) = (6_111_097_874_u128, 14_222_223, 1, 44_606_066);
    assert!(json.contains(&format!("\"samples\":{},", s * (n0 + (k - 1) * n))), "{json}");
    assert!(text(arguments).contains("exactly 3.88e24"));
}

#[test]
fn keys_that_do_not_apply_are_absent() {
    let absent = |answer: &Value, keys: &[&str]| {
        for key in keys {
            assert!(answer.get(key).is_none(), "{key} in {answer}");
        }
    };
    let smooth = json(&format!("{SMOOTH} --target 0.1"));
    absent(&smooth, &["N", "N0", "N_ref", "b", "budget"]);
    assert_eq!(smooth["batch_rule"]["growth"], 9.0);
    assert_eq!(smooth["batch_rule"]["at_least"], 1);
    // eps^2/2, squared in doubles here and exactly in the library.
    close(real(&smooth, "variance"), 0.1 * 0.1 / 2.0);
    assert_eq!(smooth["constants"]["gap"], 1.6);
    assert_eq!(smooth["lower_bound"]["admissible"], false);

    let pl = json("pl --smoothness 3 --mu 0.25 --gap 1.6 --growth 0.5 --floor 0.5 --target 0.1");
    absent(&pl, &["N_ref", "b", "batch_rule", "variance", "lower_bound"]);
    assert_eq!(pl["N"], 1);

    let page = json("mean-square-smooth --ms-smoothness 2 --gap 1 --growth 1 --floor 1 --target 0.1");
    absent(&page, &["N", "variance"]);
    assert_eq!(page["batch_rule"]["at_least"], page["N_ref"]);
    assert_eq!(page["lower_bound"]["theorem"], "lower-mss");
}

#[test]
fn the_lower_bound_beside_a_plan_is_that_of_the_library() {
    let (smoothness, gap, growth, floor, target) = (1.0, 1.0, 1.0, 0.5, 0.001);
    let alone = pasta_opt::bounds::LowerSmooth { smoothness, gap, growth, floor, target }.evaluate().unwrap();
    let constants = "--smoothness 1 --gap 1 --growth 1 --floor 0.5 --target 0.001";
    let beside = &json(&format!("smooth {constants}"))["lower_bound"];
    assert_eq!(beside["binds"], "zero-respecting methods");
    assert_eq!((beside["T"].as_u64(), beside["bound"].as_f64()), (Some(8), alone.bound));
    assert!(
        text(&format!("smooth {constants}"))
            .contains("at least 7,907,086 samples for zero-respecting methods")
    );
}

#[test]
fn a_flag_that_a_recipe_does_not_use_is_refused_by_name() {
    let uses = "it uses smoothness, gap, growth, floor, target, variance";
    for flag in ["lambda", "mu", "distance"] {
        let message = format!("error: smooth: does not use {flag}; {uses}");
        refuses(&format!("{SMOOTH} --target 0.1 --{flag} 2"), &[&message]);
    }
}

#[test]
fn a_missing_constant_is_named_with_symbol_and_meaning() {
    refuses(
        "smooth --smoothness 3 --growth 9 --floor 1 --target 0.1",
        &["error: smooth: needs gap (Delta, an upper bound on f(x0) - inf f)"],
    );
    refuses(
        "smooth --smoothness 3",
        &[
            "gap (Delta,",
            "growth (B,",
            "floor (b,",
            "target (eps, target accuracy), or a budget",
            "--smoothness 3 --gap",
        ],
    );
}

#[test]
fn exactly_one_of_target_and_budget_is_needed() {
    refuses(SMOOTH, &["smooth: needs target (eps, target accuracy), or a budget"]);
    refuses(&format!("{SMOOTH} --target 1 --budget 9"), &["--target", "cannot be used with", "--budget"]);
    refuses("--all --gap 1", &["--all: needs target (eps, target accuracy), or a budget"]);
    refuses("--all --gap 1 --target 1 --budget 9", &["--target", "cannot be used with", "--budget"]);
}

#[test]
fn constants_that_no_theorem_means_are_refused() {
    for value in ["-1", "-1e-3", "-.5", "nan", "inf", "-inf", "1e400"] {
        for recipe in ["smooth", "--all"] {
            let arguments = format!("{recipe} --smoothness 1 --growth 1 --floor 1 --target 1 --gap {value}");
            refuses(&arguments, &["error: gap must be finite and not negative, but is"]);
        }
        refuses(&format!("{SMOOTH} --budget {value}"), &["the budget must be positive and finite, but is"]);
    }
    refuses("smooth --gap one", &["--gap", "not a number"]);
    refuses("smooth --smoothness 0 --gap 1 --growth 1 --floor 1 --target 1", &["positive", "smoothness = 0"]);
    refuses("smooth --smoothness 1 --gap 1 --growth 1 --floor 1 --target 0", &["positive", "target = 0"]);
}

#[test]
fn a_hypothesis_that_fails_is_named_with_its_number() {
    let noise = "--gap 1 --growth 1 --floor 1 --target 0.1";
    refuses(&format!("pl --smoothness 1 --mu 2 {noise}"), &["pl: needs mu <= L", "mu = 2"]);
    refuses(
        &format!("weakly-convex --rho 2 --lambda 1 --lipschitz 1 {noise}"),
        &["weakly-convex: needs lambda > rho, but lambda = 1"],
    );
}

#[test]
fn a_count_beyond_all_counts_is_refused() {
    refuses(&format!("{SMOOTH} --target 1e-12"), &["smooth: K would be", "more than 2^63"]);
}

#[test]
fn numbers_beyond_doubles_are_refused() {
    let squares = "smooth --smoothness 1 --gap 1 --growth 1e200 --floor 1 --target 0.1";
    refuses(squares, &["smooth: N would be beyond all bounds"]);
}

#[test]
fn zero_constants_drop_their_terms() {
    let noiseless = json("smooth --smoothness 1 --gap 1 --growth 0 --floor 0 --target 0.5");
    // K = 4 L Delta/eps^2 steps of one sample.
    assert_eq!(noiseless["K"], 16);
    assert_eq!(noiseless["samples"], 16.0);

    for arguments in [
        "smooth --smoothness 1 --gap 0 --growth 1 --floor 1 --target 0.5",
        "smooth-convex --smoothness 1 --distance 0 --growth 1 --floor 1 --target 0.5",
        "lipschitz-convex --lipschitz 1 --distance 0 --growth 1 --floor 1 --target 0.5",
        "pl --smoothness 1 --mu 1 --gap 0 --growth 1 --floor 1 --target 0.5",
    ] {
        let answer = json(arguments);
        assert_eq!((answer["K"].as_u64(), answer["samples"].as_f64()), (Some(0), Some(0.0)), "{arguments}");
        assert!(text(arguments).contains("for the start x0, without a single sample"));
    }
    let anchored =
        json("weakly-convex --rho 0 --lambda 1 --lipschitz 0 --gap 0 --growth 0 --floor 0 --target 1");
    assert_eq!((anchored["S"].as_u64(), anchored["samples"].as_u64()), (Some(0), Some(0)));
}

#[test]
fn an_unknown_recipe_gets_the_list_and_the_nearest_name() {
    refuses("smoth", &["smoth", "smooth-convex", "similar", "'smooth'"]);
}

#[test]
fn without_a_recipe_the_recipes_are_listed() {
    refuses("", &["--all", "smooth-convex ", "horizon-sgd "]);
}

const ALL: &str = "--all --smoothness 3 --mu 0.25 --gap 1.6 --growth 0.5 --floor 0.5 --ms-smoothness 4";

#[test]
fn all_compares_the_recipes_whose_constants_are_given() {
    let answer = json(&format!("{ALL} --target 0.1"));
    let names = |list: &Value, key: &str| -> Vec<String> {
        list.as_array().unwrap().iter().map(|entry| entry[key].as_str().unwrap().to_owned()).collect()
    };
    let planned = ["smooth", "mean-square-smooth", "pl", "star-convex", "horizon-sgd"];
    assert_eq!(names(&answer["plans"], "recipe"), planned);
    let missing = ["smooth-convex", "lipschitz-convex", "weakly-convex", "smooth-anchored"];
    assert_eq!(names(&answer["missing"], "recipe"), missing);
    assert_eq!(answer["missing"][1]["needs"], serde_json::json!(["lipschitz", "distance"]));
    assert_eq!(names(&answer["lower_bounds"], "theorem"), ["lower-smooth", "lower-mss"]);

    let text = text(&format!("{ALL} --target 0.1"));
    assert!(text.contains("needs lipschitz (G), distance (|x0 - x*|)"), "{text}");
    for name in planned {
        assert!(
            text.lines().any(|line| line.trim().starts_with(name) && line.contains(" <= ")),
            "{name} in\n{text}"
        );
    }
}

#[test]
fn a_plan_among_all_is_the_plan_alone() {
    let all = json(&format!("{ALL} --target 0.1"));
    let alone = json("pl --smoothness 3 --mu 0.25 --gap 1.6 --growth 0.5 --floor 0.5 --target 0.1");
    // But for the format, with which every answer begins.
    let bare = alone.as_object().unwrap().iter().filter(|(key, _)| *key != "format");
    assert_eq!(
        all["plans"][2],
        Value::Object(bare.map(|(key, value)| (key.clone(), value.clone())).collect())
    );
}

#[test]
fn all_lists_the_recipes_whose_hypotheses_fail() {
    let answer = json("--all --smoothness 1 --gap 1 --growth 1 --floor 1 --mu 2 --target 2");
    let reason = |recipe: &str| {
        let refused = answer["refused"].as_array().unwrap();
        refused.iter().find(|entry| entry["recipe"] == recipe).unwrap()["reason"].as_str().unwrap().to_owned()
    };
    assert!(reason("pl").starts_with("needs mu <= L"));
    assert_eq!(reason("horizon-sgd"), "needs eps^2 <= L Delta, but target = 2.0");
}

#[test]
fn all_takes_no_recipe() {
    refuses("--all smooth", &["--all", "cannot be used with", "RECIPE"]);
}

#[test]
fn all_without_a_single_plan_lists_what_is_missing_and_fails() {
    pasta("--all --target 1")
        .assert()
        .code(2)
        .stdout(contains("needs smoothness (L)"))
        .stderr(contains("no recipe"));
}

#[test]
fn a_budget_buys_the_best_target_it_can() {
    let noise = "--growth 0.5 --floor 0.5";
    for recipe in [
        &format!("smooth --smoothness 3 --gap 1.6 {noise}"),
        &format!("smooth-convex --smoothness 3 --distance 1.2 {noise}"),
        &format!("lipschitz-convex --lipschitz 3 --distance 1.2 {noise}"),
        &format!("mean-square-smooth --ms-smoothness 3 --gap 1.6 {noise}"),
        &format!("pl --smoothness 3 --mu 0.25 --gap 1.6 {noise}"),
        &format!("star-convex --smoothness 3 --mu 0.25 --gap 1.6 {noise}"),
        &format!("weakly-convex --rho 1 --lambda 2 --lipschitz 1 --gap 1 {noise}"),
        &format!("smooth-anchored --smoothness 1 --lipschitz 1 --gap 1 {noise}"),
        &format!("horizon-sgd --smoothness 3 --gap 1.6 {noise}"),
    ] {
        let budget = 1e8;
        let answer = json(&format!("{recipe} --budget {budget}"));
        assert!(real(&answer, "samples") <= budget, "{answer}");
        let target = real(&answer["constants"], "target");
        // The printed target is the whole answer: it gives the same plan.
        let again = json(&format!("{recipe} --target {target:?}"));
        assert_eq!(again["samples"], answer["samples"], "{recipe}");
        // The plans here have enough steps for a ceiling to matter less than one part in a hundred.
        let harder = json(&format!("{recipe} --target {:?}", 0.99 * target));
        assert!(real(&harder, "samples") > budget, "{recipe}: {harder}");
        let text = unwrapped(&text(&format!("{recipe} --budget {budget}")));
        assert!(text.contains("the best for 100,000,000 samples"), "{text}");
    }
}

#[test]
fn a_budget_for_all_gives_each_recipe_its_own_target() {
    let answer = json(&format!("{ALL} --budget 1e8"));
    let plans = answer["plans"].as_array().unwrap();
    assert!(plans.len() >= 4);
    for plan in plans {
        assert!(real(plan, "samples") <= 1e8, "{plan}");
        assert!(real(&plan["constants"], "target") > 0.0);
    }
}

#[test]
fn a_budget_that_buys_nothing_is_refused() {
    let arguments = "mean-square-smooth --ms-smoothness 1 --gap 1 --growth 1 --floor 1 --budget 0.5";
    refuses(arguments, &["mean-square-smooth: no target costs at most 0.5 samples"]);
}

#[test]
fn the_help_names_every_recipe_and_constant() {
    let help = text("--help");
    for row in pasta_opt::recipe::TABLE {
        assert!(help.contains(&format!("- {}:", row.name)), "{}", row.name);
    }
    for constant in pasta_opt::recipe::Constant::ALL {
        assert!(
            help.contains(&format!("--{} <{}>", constant.name(), constant.symbol())),
            "{}",
            constant.name()
        );
    }
    assert!(help.contains("What a promise means"));
}

#[test]
fn the_examples_of_the_help_run() {
    let help = text("--help").replace("\\\n", " ");
    let examples: Vec<_> = help.lines().filter_map(|line| line.strip_prefix("  pasta plan ")).collect();
    assert!(examples.len() >= 3, "{help}");
    for example in examples {
        // They name files as seen from the root of the project.
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        pasta(example)
            .current_dir(root)
            .assert()
            .success()
            .stdout(predicate::str::is_empty().not())
            .stderr("");
    }
}

#[test]
fn a_reader_that_hangs_up_is_no_failure() {
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("pasta"))
        .args(["plan"])
        .args(SMOOTH.split_whitespace())
        .args(["--target", "0.1"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}
