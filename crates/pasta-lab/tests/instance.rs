//! `pasta-lab instance`: the hard instances of the reference, through the program, and what it refuses.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use assert_cmd::Command;
use predicates::str::contains;
use serde_json::{Value, json};

fn pasta(arguments: &str) -> Command {
    let mut command = assert_cmd::cargo::cargo_bin_cmd!("pasta-lab");
    command.arg("instance").args(arguments.split_whitespace());
    command
}

/// What the program prints when it succeeds, without complaint.
fn text(command: &mut Command) -> String {
    let output = command.assert().success().stderr("").get_output().stdout.clone();
    String::from_utf8(output).unwrap()
}

/// The answer at these points, given on standard input.
fn at(arguments: &str, points: &Value) -> Value {
    let mut command = pasta(&format!("{arguments} --at -"));
    serde_json::from_str(&text(command.write_stdin(points.to_string()))).unwrap()
}

/// Bad input: exit code 2, nothing on stdout, and these words on stderr.
fn refuses(command: &mut Command, words: &[&str]) {
    let mut assert = command.assert().code(2).stdout("");
    for word in words {
        assert = assert.stderr(contains(*word));
    }
}

fn refuses_point(point: &str, words: &[&str]) {
    refuses(pasta(&format!("{SMOOTH} --at -")).write_stdin(point), words);
}

/// T = 8.
const SMOOTH: &str = "smooth --smoothness 1 --gap 1 --growth 1 --floor 0.5 --target 0.001";

fn golden() -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/golden.json");
    let golden: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let cases = golden["hard_instances"].as_array().unwrap().clone();
    assert!(!cases.is_empty());
    cases
}

fn flags(case: &Value) -> String {
    let kind = case["kind"].as_str().unwrap();
    let [l, gap, growth, floor, target] =
        ["L", "Delta", "B", "b", "eps"].map(|key| real(&case["settings"], key).to_string());
    let smoothness = if kind == "smooth" { "smoothness" } else { "ms-smoothness" };
    format!("{kind} --{smoothness} {l} --gap {gap} --growth {growth} --floor {floor} --target {target}")
}

fn real(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key} in {value}"))
}

/// At most forty roundings, each at most 2^-53.
fn close(ours: f64, reference: f64) {
    assert!((ours - reference).abs() <= 1e-14 * reference.abs(), "{ours:?} is not {reference:?}");
}

fn list(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

/// Equal to 1e-12 of the largest entry. The first entry holds a difference of numbers of the size of the chain's
/// supremum; the reference says how many digits that leaves.
fn near_gradient(ours: &Value, reference: &Value, first_tolerance: f64) {
    let (ours, reference) = (list(ours), list(reference));
    let largest = reference.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    assert_eq!(ours.len(), reference.len());
    for (i, (a, b)) in ours.iter().zip(&reference).enumerate() {
        let tolerance = if i == 0 { first_tolerance.max(1e-12 * largest) } else { 1e-12 * largest };
        assert!((a - b).abs() <= tolerance, "entry {i}: {a:?} is not {b:?}");
    }
}

#[test]
fn the_constants_are_those_of_the_reference() {
    for case in golden() {
        let answer: Value =
            serde_json::from_str(&text(&mut pasta(&format!("{} --json", flags(&case))))).unwrap();
        assert_eq!(answer["instance"], case["kind"]);
        assert_eq!(answer["T"], case["T"]);
        assert_eq!(answer["admissible"], true);
        for (ours, reference) in [
            ("p", "p"),
            ("lambda", "lam"),
            ("D", "D"),
            ("scale", "scale"),
            ("effective_smoothness", "L_eff"),
            ("shift", "shift_sup"),
        ] {
            close(real(&answer, ours), real(&case, reference));
        }
        assert!(real(&answer, "eps_max") >= real(&case["settings"], "eps"));
        assert!(real(&answer, "sharp_bound") >= real(&answer, "bound"));
        assert!(answer.get("points").is_none());
    }
}

#[test]
fn the_points_are_those_of_the_reference() {
    for case in golden() {
        let points = case["points"].as_array().unwrap();
        for (z, key) in [(0.0, "stoch_z0"), (1.0, "stoch_z1"), (0.375, "stoch_zbar_0p375")] {
            let asked: Vec<_> = points.iter().map(|p| json!({"u": p["u"], "y": p["y"], "z": z})).collect();
            let answer = at(&flags(&case), &Value::from(asked));
            let answers = answer["points"].as_array().unwrap();
            assert_eq!(answers.len(), points.len());
            for (ours, reference) in answers.iter().zip(points) {
                for key in ["u", "y", "prog_quarter", "prog_half", "prog_one"] {
                    assert_eq!(ours[key], reference[key], "{key}");
                }
                assert_eq!(ours["z"], z);
                let tolerance = real(reference, "abs_tol_u");
                close(real(ours, "Fbar"), real(reference, "Fbar"));
                // Values of order one that hold a difference of numbers of the size of the supremum.
                assert!((real(ours, "value") - real(reference, "value")).abs() <= 1e-13);
                near_gradient(&ours["gradient"], &reference["grad"], tolerance);
                near_gradient(&ours["stochastic_gradient"], &reference[key], tolerance);
                for (ours, reference) in list(&ours["mask"]).iter().zip(list(&reference["mask"])) {
                    // The smooth step has slope up to 6 and is itself a quotient of integrals.
                    assert!((ours - reference).abs() <= 1e-13, "{ours} is not {reference}");
                }
            }
        }
    }
}

#[test]
fn one_point_an_array_and_named_points_are_all_understood() {
    let point = json!({"u": 300, "y": [1, 2, 3, 4, 5, 6, 7, 8]});
    let one = at(SMOOTH, &point);
    assert_eq!(one["points"].as_array().unwrap().len(), 1);
    assert!(one["points"][0].get("stochastic_gradient").is_none());
    assert_eq!(at(SMOOTH, &json!([point])), one);
    assert_eq!(at(SMOOTH, &json!({"points": [point]})), one);
    assert_eq!(at(SMOOTH, &json!([]))["points"], json!([]));

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("points.json");
    std::fs::write(&file, point.to_string()).unwrap();
    let from_file = text(pasta(SMOOTH).arg("--at").arg(&file));
    assert_eq!(serde_json::from_str::<Value>(&from_file).unwrap(), one);
}

#[test]
fn json_reads_back_as_the_same_doubles_and_zeros_have_no_sign() {
    let y = [0.1, 1.0 / 3.0, 2e-17, -1e-300, 5e-324, 0.7, -0.0, 0.30000000000000004];
    let answer = at(SMOOTH, &json!({"u": 300.1, "y": y, "z": 0}));
    assert_eq!(list(&answer["points"][0]["y"]), y);
    let answer = at(SMOOTH, &json!({"u": 300, "y": [2, 0, 0, 0, 0, 0, 0, 0], "z": 0}));
    let gradient = list(&answer["points"][0]["stochastic_gradient"]);
    assert!(gradient.iter().all(|g| *g != 0.0 || g.is_sign_positive()), "{gradient:?}");
}

#[test]
fn people_see_a_table_of_at_most_eighty_columns() {
    let mss = "mss --ms-smoothness 1 --gap 1 --growth 1e-4 --floor 0 --target 0.00085";
    for (arguments, words) in [
        (SMOOTH, ["Theorem 1", "T = 8 ", "p = 1.35422e-7", "D = 250", "lambda = 0.608", "eps <= 0.002069"]),
        (mss, ["Theorem 2", "T = 5 ", "p = 0.876072", "D = 294.118", "lambda = 1.19147", "eps <= 0.001402"]),
    ] {
        let table = text(&mut pasta(arguments));
        for word in words {
            assert!(table.contains(word), "{word:?} is not in\n{table}");
        }
        assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    }
}

#[test]
fn settings_without_an_instance_are_refused_with_the_condition_and_both_numbers() {
    let smooth = "smooth --smoothness 1 --gap 1 --growth 1 --floor 0.5";
    let large = &mut pasta(&format!("{smooth} --target 0.01"));
    refuses(large, &["T >= 2", "eps <= 2.069581807914131e-3", "eps = 1e-2", "T = 0"]);
    refuses(&mut pasta(&format!("{smooth} --target 0")), &["positive", "target = 0"]);
    refuses(&mut pasta(&format!("{smooth} --target nan")), &["positive", "target = NaN"]);
    refuses(&mut pasta(&format!("{smooth} --target -1")), &["positive", "target = -1"]);
    refuses(&mut pasta(&format!("{smooth} --target tiny")), &["--target", "not a number"]);
    refuses(&mut pasta(&format!("{smooth} --target 1e-13")), &["T would be", "more than 2^63"]);
    let mss = "mss --ms-smoothness 1 --gap 1 --floor 0 --target 0.00085";
    let fast = &mut pasta(&format!("{mss} --growth 1e-3"));
    refuses(fast, &["B < varsigma Lbar/(96 lbar1) = 7.304369918699187e-4", "B = 1e-3"]);
    refuses(&mut pasta(&format!("{mss} --growth 7e-4")), &["T >= 2", "eps = 8.5e-4"]);
    let faint = "smooth --smoothness 1 --gap 1 --growth 1e200 --floor 0 --target 1e-3";
    refuses(&mut pasta(faint), &["needs p between 1e-300 and 1e300, but p = 0"]);
}

#[test]
fn each_theorem_takes_its_own_smoothness() {
    let rest = "--gap 1 --growth 1e-4 --floor 0 --target 0.00085";
    for given in ["", "--ms-smoothness 1", "--smoothness 1 --ms-smoothness 1"] {
        let command = &mut pasta(&format!("smooth {given} {rest}"));
        refuses(command, &["smooth: needs smoothness, and does not use ms-smoothness"]);
    }
    for given in ["", "--smoothness 1", "--smoothness 1 --ms-smoothness 1"] {
        let command = &mut pasta(&format!("mss {given} {rest}"));
        refuses(command, &["mss: needs ms-smoothness, and does not use smoothness"]);
    }
    refuses(&mut pasta("smooth --smoothness 1 --gap 1"), &["--growth", "--floor", "--target"]);
    refuses(&mut pasta("rough --gap 1"), &["possible values: smooth, mss"]);
    refuses(&mut pasta(&format!("{SMOOTH} --distance 1")), &["--distance"]);
}

#[test]
fn points_of_the_wrong_shape_are_refused_with_their_place() {
    refuses_point(
        r#"[{"u": 1, "y": [0,0,0,0,0,0,0,0]}, {"u": 1, "y": [0,0,0,0,0,0,0]}]"#,
        &["standard input: point 2 of 2: y has 7 entries, but the chain has T = 8"],
    );
    for z in ["1.5", "-0.1", "-1e-300"] {
        let point = format!(r#"{{"u": 1, "y": [0,0,0,0,0,0,0,0], "z": {z}}}"#);
        refuses_point(&point, &["point 1 of 1: z must be from 0 to 1", &format!("but is {z}")]);
    }
    refuses_point(r#"{"u": 1}"#, &["missing field `y`", "line 1 column 8"]);
    refuses_point(r#"{"y": []}"#, &["missing field `u`"]);
    refuses_point(
        "{\"u\": 1,\n \"y\": [],\n \"w\": 2}",
        &["unknown field `w`, expected one of `u`, `y`, `z`", "line 3 column 4"],
    );
    refuses_point(r#"{"points": [], "seed": 2}"#, &["unknown field `seed`"]);
    refuses_point(
        r#"{"u": "one", "y": []}"#,
        &["invalid type: string \"one\", expected f64", "line 1 column 11"],
    );
    refuses_point(r#"{"u": 1, "y": [null]}"#, &["invalid type: null, expected f64", "line 1 column 19"]);
    refuses_point("[3]", &["invalid type: integer `3`, expected a point", "line 1 column 2"]);
    refuses_point("3", &["invalid type: integer `3`, expected a point", "line 1 column 1"]);
}

#[test]
fn what_is_no_json_is_refused_with_line_and_column() {
    refuses_point("", &["standard input: EOF while parsing a value at line 1 column 0"]);
    refuses_point("{\"u\": 1,\n \"y\": [0 0]}", &["expected `,` or `]` at line 2 column 10"]);
    refuses_point(r#"{"u": NaN, "y": []}"#, &["expected value at line 1 column 7"]);
    refuses_point(r#"{"u": 1e999, "y": []}"#, &["number out of range at line 1 column 11"]);
    let missing = &mut pasta(&format!("{SMOOTH} --at no/such/file.json"));
    refuses(missing, &["no/such/file.json: No such file or directory"]);
    refuses(&mut pasta(&format!("{SMOOTH} --at .")), &[".: "]);
    refuses(pasta(&format!("{SMOOTH} --at -")).write_stdin(b"\xff\xfe".to_vec()), &["valid UTF-8"]);
}

#[test]
fn numbers_beyond_doubles_are_refused_and_large_ones_are_not() {
    let large = "smooth --smoothness 1e10 --gap 1e10 --growth 1 --floor 1 --target 1e7";
    let answer: Value = serde_json::from_str(&text(&mut pasta(&format!("{large} --json")))).unwrap();
    let length = answer["T"].as_u64().unwrap() as usize;
    let point = |u: f64, y: f64| json!({"u": u, "y": vec![y; length], "z": 0.5});
    let beyond = pasta(&format!("{large} --at -")).write_stdin(point(-1e308, 0.0).to_string()).assert();
    beyond.code(2).stdout("").stderr(contains("point 1 of 1: the value or the gradient is beyond doubles"));
    for (u, y) in [(1e308, 1e308), (1e308, -1e308), (1e3, 1e-308)] {
        let answer = at(large, &point(u, y));
        assert!(list(&answer["points"][0]["gradient"]).iter().all(|g| g.is_finite()));
    }
}

#[test]
fn the_help_teaches_by_examples_that_work() {
    let help = text(pasta("").arg("--help"));
    let examples = help.split("Examples:").nth(1).unwrap().split("Constants in the JSON:").next().unwrap();
    let examples = examples.replace("\\\n", " ").replace("|\n", "| ");
    let commands: Vec<_> =
        examples.lines().map(str::trim).filter(|line| line.contains("pasta-lab ")).collect();
    assert_eq!(commands.len(), 3);
    for command in commands {
        let (point, command) = match command.split_once('|') {
            Some((echo, command)) => {
                let quoted = echo.trim().strip_prefix("echo '").and_then(|rest| rest.strip_suffix('\''));
                (quoted.unwrap(), command.trim())
            }
            None => ("", command),
        };
        let arguments = command.strip_prefix("pasta-lab instance ").unwrap();
        text(pasta(arguments).write_stdin(point));
    }
}
