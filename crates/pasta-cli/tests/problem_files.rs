//! Problem files and flags that are wrong: exit code 2, `file:line:`, and what was expected.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod place;

use std::fs;

use place::{BOWL, DECLARED, SGD, TestDir, with};
use predicates::prelude::*;
use predicates::str::contains;

/// Solves `text` with each replacement and expects the complaint at that line.
fn refuses(text: &str, cases: &[(&str, &str, usize, &str)]) {
    let place = TestDir::new();
    for (old, new, line, expected) in cases {
        place.write("p.toml", &with(text, old, new));
        let output = place.pasta("solve p.toml --output run").output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{new:?}: {said}");
        assert!(said.starts_with(&format!("error: p.toml:{line}: ")), "{new:?}: {said}");
        assert!(said.contains(expected), "{new:?}: {said}");
        assert!(output.stdout.is_empty());
        assert!(!place.path("run").exists(), "{new:?} wrote a folder");
    }
}

#[test]
fn text_that_is_not_toml_is_refused_with_its_line() {
    refuses(
        BOWL,
        &[
            ("seed = 1", "seed = ", 1, "expected"),
            ("seed = 1", "seed = 99999999999999999999", 1, "overflow"),
            ("[noise]", "[noise", 7, "unclosed table"),
            ("growth = 9.0", "growth 9.0", 9, "expected"),
            ("growth = 9.0", "growth = 9.0\ngrowth = 9.0", 10, "duplicate"),
            ("floor = 1.0", "floor = 1.0\n[noise]", 11, "duplicate"),
        ],
    );
    let place = TestDir::new();
    fs::write(place.path("p.toml"), b"seed = 1\n# \xff\n").unwrap();
    place.pasta("solve p.toml").assert().code(2).stderr(contains("p.toml: ").and(contains("UTF-8")));
    place.pasta("solve missing.toml").assert().code(2).stderr(contains("missing.toml: No such file"));
    place.pasta("solve .").assert().code(2).stderr(contains("directory"));
}

#[test]
fn line_ends_of_other_systems_are_understood() {
    let place = TestDir::holding(&BOWL.replace('\n', "\r\n"));
    assert_eq!(place.json("solve p.toml", 0), TestDir::holding(BOWL).json("solve p.toml", 0));
    place.write("p.toml", &with(BOWL, "9.0", "-9.0").replace('\n', "\r\n"));
    place.pasta("solve p.toml").assert().code(2).stderr(contains("p.toml:9: [noise] growth: "));
}

#[test]
fn an_unknown_key_is_refused_at_every_level() {
    refuses(
        BOWL,
        &[
            ("seed = 1", "seeds = 1", 1, "seeds: unknown key; expected one of seed, threads, budget, on_nan"),
            ("start = [1.2]", "start = [1.2]\nslope = 1", 6, "has no parameter \"slope\": it takes"),
            ("floor = 1.0", "floor = 1.0\ndof = 3", 11, "[noise] dof: unknown key; expected one of tail,"),
            ("target = 0.5", "target = 0.5\neta = 1", 15, "[recipe] eta: unknown key; expected one of name"),
            ("[recipe]", "[extra]\n[recipe]", 12, "extra: unknown key"),
        ],
    );
    refuses(
        DECLARED,
        &[
            ("gap = 1.6", "gap = 1.6\nfoo = 1", 19, "[recipe.constants] foo: unknown key; expected one of"),
            ("gap = 1.6", "gap = 1.6\ntarget = 1", 19, "[recipe.constants] target: unknown key"),
            ("gap = 1.6", "gap = 1.6\nrho = 1", 19, "does not use rho; it uses smoothness, gap, growth,"),
        ],
    );
    refuses(
        SGD,
        &[
            ("eta = 0.05", "eta = 0.05\nmomentum = 1", 15, "momentum: unknown key; expected one of name,"),
            ("eta = 0.05", "eta = 0.05\ntarget = 1", 15, "target: unknown key"),
        ],
    );
}

#[test]
fn what_is_missing_is_named_with_the_table_that_lacks_it() {
    let problem = "[problem]\nname = \"sine-bowl\"\nstart = [1.2]\n";
    let noise = "[noise]\ntail = \"gaussian\"\ngrowth = 9.0\nfloor = 1.0\n";
    let recipe = "[recipe]\nname = \"smooth\"\ntarget = 0.5\nconstants = \"problem\"\n";
    refuses(
        BOWL,
        &[
            (BOWL, "", 1, "[problem] is missing; expected a table"),
            (problem, "", 1, "[problem] is missing; expected a table"),
            (noise, "", 1, "[noise] is missing; expected a table"),
            (recipe, "", 1, "auto needs a target or a budget"),
            ("name = \"sine-bowl\"\n", "", 3, "[problem] name is missing; expected the name of a problem"),
            ("start = [1.2]\n", "", 3, "[problem] start is missing; expected a list of numbers"),
            ("\"sine-bowl\"", "\"ramp\"", 3, "ramp needs slope"),
            ("tail = \"gaussian\"\n", "", 7, "[noise] tail is missing; expected one of gaussian, student-t"),
            ("growth = 9.0\n", "", 7, "[noise] growth is missing; expected a number"),
            ("floor = 1.0\n", "", 7, "[noise] floor is missing; expected a number"),
            ("\"gaussian\"", "\"student-t\"", 7, "[noise] dof is missing; expected a number"),
            ("\"gaussian\"", "\"lognormal\"", 7, "[noise] sigma is missing"),
            ("\"gaussian\"", "\"two-point\"", 7, "[noise] probability is missing"),
            ("name = \"smooth\"\n", "", 12, "[recipe] name is missing; expected the name of a recipe"),
            ("target = 0.5\n", "", 12, "smooth: needs target (eps, target accuracy)"),
            ("constants = \"problem\"\n", "", 12, "[recipe] constants is missing; expected \"problem\", or"),
        ],
    );
    refuses(DECLARED, &[("gap = 1.6\n", "", 16, "[recipe.constants] smooth: needs gap (Delta, ")]);
    refuses(
        SGD,
        &[
            ("eta = 0.05\n", "", 12, "[recipe] eta is missing; expected a number"),
            ("steps = 1000\n", "", 12, "[recipe] steps is missing; expected a whole number"),
            ("\"sgd\"", "\"clipped-sgd\"", 12, "[recipe] threshold is missing"),
            ("\"sgd\"", "\"storm\"", 12, "[recipe] momentum is missing"),
            ("\"sgd\"", "\"krasnoselskii-mann\"", 12, "[recipe] beta is missing"),
        ],
    );
}

#[test]
fn a_wrong_type_is_refused_with_the_right_one() {
    refuses(
        BOWL,
        &[
            ("seed = 1", "seed = \"x\"", 1, "seed: expected a whole number from 0 to 2^63 - 1, got string"),
            ("seed = 1", "budget = [1]", 1, "budget: expected a whole number of samples"),
            ("seed = 1", "output = 3", 1, "output: expected a string, got integer 3"),
            ("[problem]", "[[problem]]", 3, "problem: expected a table, got array of tables"),
            ("\"sine-bowl\"", "3", 4, "[problem] name: expected a string, got integer 3"),
            ("[1.2]", "\"x\"", 5, "start: expected a list of numbers, or one number for all coordinates"),
            ("[1.2]", "[\"x\"]", 5, "start: expected a list of numbers, got array [\"x\"]"),
            ("start", "dimension = \"x\"\nstart", 5, "dimension: expected a number, got string \"x\""),
            ("start", "dimension = [1]\nstart", 5, "dimension must be a whole number from 1 to 1e9"),
            ("\"gaussian\"", "1", 8, "[noise] tail: expected a string, got integer 1"),
            ("9.0", "true", 9, "[noise] growth: expected a number, got boolean true"),
            ("0.5", "\"x\"", 14, "[recipe] target: expected a number, got string \"x\""),
            ("\"problem\"", "\"mine\"", 15, "constants: expected \"problem\" or a table, got string"),
            ("\"problem\"", "3", 15, "constants: expected \"problem\" or a table, got integer 3"),
        ],
    );
    refuses(DECLARED, &[("1.6", "\"x\"", 18, "[recipe.constants] gap: expected a number, got string \"x\"")]);
    refuses(
        SGD,
        &[
            ("1000", "1.5", 15, "[recipe] steps: expected a whole number from 0 to 2^63 - 1, got float 1.5"),
            ("0.05", "1979-05-27", 14, "[recipe] eta: expected a number, got datetime 1979-05-27"),
        ],
    );
}

#[test]
fn impossible_values_are_refused_with_their_range() {
    refuses(
        BOWL,
        &[
            ("seed = 1", "seed = -1", 1, "seed: expected a whole number from 0 to 2^63 - 1, got integer -1"),
            ("seed = 1", "seed = 1e30", 1, "seed: expected a whole number from 0 to 2^63 - 1, got 1e30"),
            ("seed = 1", "threads = 0", 1, "threads: expected a whole number from 1 to 1024, got 0"),
            ("seed = 1", "threads = 9999", 1, "threads: expected a whole number from 1 to 1024, got 9999"),
            ("seed = 1", "budget = -5", 1, "budget: expected a whole number of samples"),
            ("seed = 1", "budget = nan", 1, "budget: expected a whole number of samples"),
            ("[1.2]", "[1.2, 1.3]", 5, "start: expected as many numbers as the dimension, which is 1; got 2"),
            ("[1.2]", "[]", 5, "start: expected as many numbers as the dimension, which is 1; got 0"),
            ("[1.2]", "[nan]", 5, "start: expected finite numbers, got NaN"),
            ("[1.2]", "inf", 5, "start: expected a finite number, got inf"),
            ("start", "dimension = 0\nstart", 5, "dimension must be a whole number from 1 to 1e9, but is 0"),
            ("start", "dimension = 1e30\nstart", 5, "dimension must be a whole number from 1 to 1e9"),
            ("\"sine-bowl\"", "\"quadratic\"\nspectrum = [-1]", 5, "none below 0"),
            ("9.0", "-9.0", 9, "[noise] growth: expected a finite number, at least 0, got -9"),
            ("9.0", "nan", 9, "[noise] growth: expected a finite number, got NaN"),
            ("floor = 1.0", "floor = inf", 10, "[noise] floor: expected a finite number, got inf"),
            ("\"gaussian\"", "\"student-t\"\ndof = 2", 9, "[noise] dof: expected more than 2"),
            ("\"gaussian\"", "\"student-t\"\ndof = inf", 9, "[noise] dof: expected a finite number, got inf"),
            ("\"gaussian\"", "\"lognormal\"\nsigma = 9", 9, "[noise] sigma: expected in (0, 5]"),
            ("\"gaussian\"", "\"two-point\"\nprobability = 1", 9, "expected strictly between 0 and 1"),
            ("0.5", "0", 14, "[recipe] target: smooth: needs a positive finite constant, but target = 0"),
            ("0.5", "-0.5", 14, "needs a positive finite constant, but target = -0.5"),
            ("0.5", "nan", 14, "needs a positive finite constant, but target = NaN"),
            ("0.5", "1e-9", 14, "[recipe] target: smooth: K would be 1.9"),
            ("0.5", "1e-300", 14, "more than 2^63\n\nhint: a larger target or less noise needs fewer"),
            ("0.5", "0.5\nvariance = 0", 15, "needs a positive finite constant, but variance = 0"),
            ("0.5", "0.5\nlambda = 2", 15, "[recipe] lambda: smooth: does not use lambda"),
        ],
    );
    refuses(
        DECLARED,
        &[
            ("1.6", "-1", 18, "[recipe.constants] gap: smooth: needs a finite constant that is not negative"),
            ("1.6", "nan", 18, "needs a finite constant that is not negative, but gap = NaN"),
            ("smoothness = 3.0", "smoothness = inf", 17, "needs a positive finite constant, but smoothness"),
            ("1.6", "1e300", 14, "more than 2^63"),
        ],
    );
    refuses(
        SGD,
        &[
            ("0.05", "-1", 14, "[recipe] eta: expected positive and finite, got -1"),
            ("0.05", "inf", 14, "[recipe] eta: expected a finite number, got inf"),
            ("1000", "1e40", 15, "[recipe] steps: expected a whole number from 0 to 2^63 - 1, got float"),
            ("1000", "1000\nbatch = 0", 16, "[recipe] batch: expected positive and finite, got 0"),
            ("1000", "1000\nbatch = 1e19", 16, "[recipe] batch: expected a whole number from 0 to 2^63 - 1"),
            ("\"sgd\"", "\"clipped-sgd\"\nthreshold = 0", 14, "threshold: expected positive and finite,"),
            ("\"sgd\"", "\"storm\"\nmomentum = 2", 14, "momentum: expected in (0, 1], got 2"),
            ("\"sgd\"", "\"krasnoselskii-mann\"\nbeta = -2", 14, "beta: expected in [0, 1], got -2"),
        ],
    );
}

#[test]
fn unknown_names_are_refused_with_those_there_are() {
    refuses(
        BOWL,
        &[
            ("\"sine-bowl\"", "\"sin-bowl\"", 4, "did you mean \"sine-bowl\"?"),
            (
                "\"gaussian\"",
                "\"cauchy\"",
                8,
                "expected one of gaussian, student-t, lognormal, two-point, got",
            ),
            ("\"smooth\"", "\"smoooth\"", 13, "unknown recipe \"smoooth\"; expected one of smooth,"),
        ],
    );
}

#[test]
fn constants_of_the_problem_are_refused_where_the_theorem_does_not_cover_it() {
    refuses(
        BOWL,
        &[
            ("\"smooth\"", "\"weakly-convex\"\nlambda = 2", 16, "weakly-convex is not proved to cover"),
            ("\"smooth\"", "\"smooth-convex\"", 15, "smooth-convex is not proved to cover sine-bowl"),
            ("\"smooth\"", "\"star-convex\"", 15, "it is for: smooth, convex towards its minimiser"),
            ("\"sine-bowl\"", "\"absolute\"", 15, "smooth is not proved to cover absolute(dimension = 1)"),
        ],
    );
}

#[test]
fn bad_flags_are_refused_by_name() {
    let place = TestDir::holding(BOWL);
    for (flags, message) in [
        ("--target nan", "expected a positive number such as 0.1"),
        ("--target 1e-30", "error: --target: smooth: K would be"),
        ("--target -1", "expected a positive number such as 0.1"),
        ("--seed -1", "--seed"),
        ("--seed 9223372036854775808", "--seed"),
        ("--threads 0", "--threads"),
        ("--threads 1025", "--threads"),
        ("--budget -1", "--budget"),
        ("--budget 1.5", "expected a whole number of samples, such as 1000 or 1e20"),
        ("--checkpoint-every -1", "expected a number of seconds, not negative"),
        ("--checkpoint-every nan", "expected a number of seconds, not negative"),
        ("--frobnicate", "--frobnicate"),
    ] {
        place.pasta(&format!("solve p.toml {flags}")).assert().code(2).stdout("").stderr(contains(message));
    }
    place.write("p.toml", SGD);
    place.pasta("solve p.toml --target 0.1").assert().code(2).stderr(contains("--target: sgd has no target"));
}

#[test]
fn with_json_a_failure_is_an_object_on_stdout_too() {
    let place = TestDir::holding(&with(BOWL, "growth = 9.0", "growth = true"));
    let failed = |words: &str| {
        let output = place.pasta(words).assert().code(2).get_output().clone();
        assert!(output.stderr.starts_with(b"error: "), "{words}");
        output.stdout
    };
    let error = |words: &str| -> serde_json::Value { serde_json::from_slice(&failed(words)).unwrap() };
    let wrong = error("solve p.toml --json");
    assert_eq!((&wrong["format"], &wrong["error"]["file"]), (&2.into(), &"p.toml".into()));
    assert_eq!((&wrong["error"]["line"], &wrong["error"]["hint"]), (&9.into(), &serde_json::Value::Null));
    assert!(wrong["error"]["message"].as_str().unwrap().starts_with("[noise] growth: expected a number"));
    let refused = error("solve p.toml --json --no-such-flag");
    assert_eq!(refused["error"]["file"], serde_json::Value::Null);
    assert!(refused["error"]["message"].as_str().unwrap().contains("--no-such-flag"));
    // Files that cannot be read, or are no TOML, are named as well; and there is one object, whatever the command.
    place.write("bad.toml", "seed = 1\n[problem\n");
    let syntax = error("solve bad.toml --json");
    assert_eq!((&syntax["error"]["file"], &syntax["error"]["line"]), (&"bad.toml".into(), &2.into()));
    assert_eq!(error("solve none.toml --json")["error"]["file"], "none.toml");
    assert!(error("plan --all --gap 1 --target 0.1 --json")["error"]["message"].is_string());
    assert_eq!(failed("solve p.toml"), b"");
    place.pasta("solve --json --help").assert().code(0).stdout(contains("Usage"));
}

#[test]
fn a_huge_name_is_not_echoed_whole() {
    let place = TestDir::holding(&with(BOWL, "\"smooth\"", &format!("\"{}\"", "x".repeat(10 << 20))));
    let stderr = place.pasta("solve p.toml").assert().code(2).get_output().stderr.clone();
    assert!(stderr.len() < 2000, "{}", stderr.len());
}
