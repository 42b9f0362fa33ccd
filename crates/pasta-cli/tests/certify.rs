//! Certificates from outside: `pasta certify`, certified runs of `pasta solve`, and the forecast of `pasta plan`.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod place;

use std::fs;
use std::path::PathBuf;

use place::{PASTA, TestDir, unwrapped};
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;

const BOWL: &str = r#"
[problem]
name = "sine-bowl"
start = [1.2]

[noise]
tail = "gaussian"
growth = 9.0
floor = 1.0

[recipe]
name = "smooth"
target = 0.1
constants = "problem"
"#;

/// A run that cannot end by its plan within a human life, but is certified after some ten thousand steps.
const STREAM: &str = r#"
[problem]
name = "quadratic"
spectrum = [2.0, 0.5]
start = [1.0, 1.0]

[noise]
tail = "student-t"
dof = 3.0
growth = 0.5
floor = 1.0

[recipe]
name = "sgd"
eta = 1e-3
steps = 1e15

[certificate]
target = 0.05
pilot = 0
"#;

#[test]
fn a_good_point_is_certified_with_its_confidence_and_its_assumption() {
    let place = TestDir::holding(BOWL);
    place
        .pasta("certify p.toml --at 0.001 --target 0.1")
        .assert()
        .code(0)
        .stdout(predicates::str::starts_with("certified  |grad f| <= 0.0"))
        .stdout(contains("(target 0.1), 95 % confidence"))
        .stdout(contains("declared"));
    let answer = place.json("certify p.toml --at 0.001", 0);
    let certificate = &answer["certificate"];
    assert_eq!((&certificate["verdict"], &certificate["target"]), (&"certified".into(), &0.1.into()));
    let (bound, truth) =
        (answer["certificate"]["bound"].as_f64().unwrap(), answer["truth"].as_f64().unwrap());
    assert!(truth <= bound && bound <= 0.1, "{truth} {bound}");
}

#[test]
fn a_bad_point_is_not_certified_and_the_exit_code_says_so() {
    let place = TestDir::holding(BOWL);
    let above = place.json("certify p.toml --at 1.1", 4);
    assert_eq!(above["certificate"]["verdict"], "above");
    let poor = place.json("certify p.toml --at 0.001 --budget 1000", 4);
    assert_eq!(poor["certificate"]["verdict"], "out-of-budget");
    assert_eq!(poor["ledger"]["samples"], poor["certificate"]["samples"]);
    assert!(poor["ledger"]["samples"].as_u64().unwrap() <= 1000);
}

#[test]
fn every_basis_names_what_it_rests_on() {
    let place = TestDir::holding(BOWL);
    let statement = |flags: &str, code| {
        let answer = place.json(&format!("certify p.toml --at 0.001 --target 0.1 {flags}"), code);
        answer["certificate"]["statement"].as_str().unwrap().to_owned()
    };
    assert!(statement("--variance 120", 0).contains("E|g - grad f|^2 <= 120 at x (declared)"));
    assert!(statement("--growth 10 --floor 2", 0).contains("(B = 10, b = 2, declared)"));
    assert!(statement("--kurtosis", 0).contains("kurtosis at most 100 (assumed; samples cannot verify it)"));
    assert!(statement("--kurtosis 10", 0).contains("kurtosis at most 10 "));
    assert!(statement("--exact", 0).contains("|grad f(x)| = 0.0030000"));
    // An approximation is never called a certificate, by no word and by no exit code.
    let likely = statement("--approximate", 4);
    assert!(likely.starts_with("About 95 % by normal approximation, not a guarantee"), "{likely}");
    assert!(!likely.contains("certif"), "{likely}");
}

#[test]
fn what_follows_is_said_with_what_it_needs() {
    let place = TestDir::holding(BOWL);
    let answer = place.json("certify p.toml --at 0.001 --mu 0.25 --radius 1.5", 0);
    let bound = answer["certificate"]["bound"].as_f64().unwrap();
    let gaps = &answer["certificate"]["gaps"];
    // Rounded up.
    assert_eq!(gaps[0]["bound"].as_f64().unwrap(), (1.5 * bound).next_up());
    assert_eq!(gaps[1]["bound"].as_f64().unwrap(), ((bound * bound).next_up() / 0.5).next_up());
    place.pasta("certify p.toml --at 0.001 --mu 0.25").assert().code(0).stdout(contains("it follows"));
    place.pasta("certify p.toml --at 0 --mu -1").assert().code(2).stderr(contains("mu must be positive"));
}

#[test]
fn a_kink_is_certified_by_the_moreau_envelope() {
    let place =
        TestDir::holding(&BOWL.replace("sine-bowl", "absolute").replace("smooth", "lipschitz-convex"));
    let base = "certify p.toml --at 0.01 --target 0.6 --variance 150";
    place.pasta(base).assert().code(4);
    let answer = place.json(&format!("{base} --moreau 2 --rho 0"), 0);
    let certificate = &answer["certificate"];
    assert_eq!((&certificate["of"], &certificate["points"]), (&"moreau".into(), &256.into()));
    assert_eq!(certificate["verdict"], "certified");
    assert!(answer["truth"].as_f64().unwrap() <= certificate["bound"].as_f64().unwrap());
    let refused = [
        ("--moreau 2", "--rho"),
        ("--moreau 1 --rho 1", "lambda must be finite and larger than rho"),
        ("--moreau 2 --rho 0 --approximate", "cannot be used with"),
        ("--moreau 2 --rho 0 --points 5000", "points must be from 1 to 4096"),
    ];
    for (flags, message) in refused {
        place.pasta(&format!("{base} {flags}")).assert().code(2).stderr(contains(message));
    }
}

#[test]
fn points_come_from_flags_files_and_runs() {
    let place = TestDir::holding(&BOWL.replace("target = 0.1", "target = 0.5"));
    fs::write(place.path("x.json"), "[0.001]").unwrap();
    assert_eq!(place.json("certify p.toml --at @x.json", 0)["point"], serde_json::json!([0.001]));
    place.pasta("solve p.toml --output run").assert().code(0);
    let result: Value = serde_json::from_str(&place.read("run/result.json")).unwrap();
    assert_eq!(place.json("certify run --target 5", 0)["point"], result["point"]);
    // A run that has not ended is certified where it stands.
    fs::remove_file(place.path("run/result.json")).unwrap();
    assert_eq!(place.json("certify run --target 5", 0)["point"], result["point"]);
}

#[test]
fn what_the_file_asks_of_a_certificate_holds_unless_a_flag_says_otherwise() {
    let place = TestDir::holding(&format!("{BOWL}\n[certificate]\ndelta = 0.001\nkurtosis = 50\n"));
    let statement = |flags: &str| {
        let answer = place.json(&format!("certify p.toml --at 0.001 {flags}"), 0);
        answer["certificate"]["statement"].as_str().unwrap().to_owned()
    };
    for flags in ["", "--target 0.2"] {
        let said = statement(flags);
        assert!(said.contains("at least 99.9 %") && said.contains("kurtosis at most 50"), "{said}");
    }
    let other = statement("--delta 0.1 --variance 120");
    assert!(other.contains("at least 90 %") && other.contains("<= 120 at x"), "{other}");
}

#[test]
fn bad_questions_are_refused_with_a_hint() {
    let place = TestDir::holding(BOWL);
    let cases = [
        ("certify", "FILE or DIR"),
        ("certify nothing.toml --at 1", "nothing.toml"),
        ("certify p.toml", "which point?"),
        ("certify p.toml --at 1,2", "the point has 2 coordinates, but the oracle has 1"),
        ("certify p.toml --at 1,x", "expected numbers with commas between"),
        ("certify p.toml --at nan", "the point must be finite"),
        ("certify p.toml --at @none.json", "none.json"),
        ("certify p.toml --at 0 --delta 0", "delta must be at least 1e-100 and below 1"),
        ("certify p.toml --at 0 --target 0", "expected a positive number such as 0.1"),
        ("certify p.toml --at 0 --variance -1", "variance must be finite, at least 0"),
        ("certify p.toml --at 0 --variance 1 --kurtosis", "cannot be used with"),
        ("certify p.toml --at 0 --growth 1", "--floor"),
        ("certify p.toml --at 1e200", "the square of the distance overflows"),
    ];
    for (words, message) in cases {
        place.pasta(words).assert().code(2).stderr(contains(message));
    }
}

#[test]
fn the_same_seed_gives_the_same_certificate_on_any_number_of_threads() {
    let place = TestDir::holding(STREAM);
    let of =
        |threads: u8| place.json(&format!("certify p.toml --at 0.001,0 --target 0.2 --threads {threads}"), 0);
    assert_eq!(of(1), of(2));
    assert_ne!(of(1), place.json("certify p.toml --at 0.001,0 --target 0.2 --seed 9", 0));
}

#[test]
fn a_certified_run_shows_forecast_worst_case_and_actual_and_counts_everything() {
    let place = TestDir::holding(BOWL);
    let result = place.json("solve p.toml --certify 0.1", 0);
    assert_eq!(result["stop"]["kind"], "certified");
    let ledger = &result["ledger"];
    let count = |role: &str| ledger["by_role"][role]["samples"].as_u64().unwrap();
    let total = ledger["samples"].as_u64().unwrap();
    assert_eq!(total, ["large", "certificate", "look"].map(count).iter().sum::<u64>());
    assert!(count("certificate") + count("look") <= count("large"));
    // The run is its own pilot: its forecast comes early and takes no samples.
    let after = result["forecast"]["after"].as_u64().unwrap();
    assert!((1000..total / 2).contains(&after), "{after} of {total}");
    let share = result["forecast"]["share"].as_f64().unwrap();
    assert!((0.7..1.0).contains(&share), "what was measured for this kind of method: {share}");
    assert!(result["promise"]["predicted"]["samples"].as_f64().unwrap() > total as f64);
    assert_eq!(result["promise"]["holds"], false);
    place
        .pasta("solve p.toml --certify 0.1 --details")
        .assert()
        .code(0)
        .stdout(predicates::str::starts_with("certified"))
        .stdout(contains("worst case"))
        .stdout(contains("forecast"))
        .stdout(contains("other samples"))
        .stderr(contains("forecast: about"));
    // The answer comes first, and nothing is said that was not asked for.
    let brief = place.pasta("solve p.toml --certify 0.1").output().unwrap().stdout;
    let brief = String::from_utf8(brief).unwrap();
    assert!(brief.starts_with("certified  |grad f| <= ") && brief.lines().count() <= 9, "{brief}");
    for word in ["none", "not needed", "worst case", "evaluations"] {
        assert!(!brief.contains(word), "{word}: {brief}");
    }
    let done = place.pasta("solve p.toml --target 0.5").assert().code(0);
    done.stdout(predicates::str::starts_with("done  ")).stdout(contains("certif").not());
}

#[test]
fn a_forecast_can_be_put_off_or_left_out_and_changes_nothing_else() {
    let place = TestDir::holding(BOWL);
    let mut whole = place.json("solve p.toml --certify 0.1", 0);
    for (flag, why) in [
        ("--pilot none", "none was asked for"),
        ("--pilot 1e12", "the run ended before its first forecast, after 1000000000000 samples"),
    ] {
        let mut other = place.json(&format!("solve p.toml --certify 0.1 {flag}"), 0);
        assert_eq!(other["forecast_silent"], why);
        for result in [&mut whole, &mut other] {
            let result = result.as_object_mut().unwrap();
            for key in ["forecast", "forecast_silent"] {
                result.remove(key);
            }
        }
        assert_eq!(other, whole);
    }
    place.write("q.toml", &format!("{BOWL}\n[certificate]\ntarget = 0.1\npilot = \"none\"\n"));
    assert_eq!(place.json("solve q.toml", 0)["forecast_silent"], "none was asked for");
    place.pasta("solve p.toml --pilot some").assert().code(2).stderr(contains("or none"));
}

#[test]
fn a_price_is_in_the_forecast_the_report_and_the_result() {
    let place = TestDir::holding(BOWL);
    let words = "solve p.toml --certify 0.1 --budget 1e9 --output run --price";
    let output = place.pasta(words).arg("0.2 EUR").output().unwrap();
    let (said, printed) = (unwrapped(&output.stderr), unwrapped(&output.stdout));
    assert!(
        said.contains("forecast: about") && said.contains("; limit 1.0e9 samples, 200,000,000 EUR"),
        "{said}"
    );
    let result: Value = serde_json::from_str(&place.read("run/result.json")).unwrap();
    let samples = result["ledger"]["samples"].as_f64().unwrap();
    assert_eq!(result["cost"]["amount"], 0.2 * samples);
    assert_eq!(result["cost"]["price"], serde_json::json!({ "amount": 0.2, "unit": "EUR" }));
    assert!(printed.contains(" EUR at 0.2 EUR a sample"), "{printed}");
    assert!(said.contains(" a sample), ") && said.trim_end().ends_with("EUR"), "{said}");
    // A file keeps it, as a number or as a text.
    assert!(place.read("run/problem.toml").contains("price = \"0.2 EUR\""));
    place.write("q.toml", &format!("price = 3\n{BOWL}"));
    assert_eq!(place.json("solve q.toml", 0)["cost"]["price"]["amount"], 3.0);
    for wrong in ["-1", "\"EUR\"", "true"] {
        place.write("q.toml", &format!("price = {wrong}\n{BOWL}"));
        place.pasta("solve q.toml").assert().code(2).stderr(contains("q.toml:1: price"));
    }
}

#[test]
fn a_table_of_certificates_may_leave_its_target_to_the_flag() {
    let sgd =
        TestDir::holding(&STREAM.replace("target = 0.05\npilot = 0\n", "delta = 0.01\nvariance = 20\n"));
    let certified = sgd.json("certify p.toml --at 0.001,0.001 --target 0.5", 0);
    assert_eq!(certified["certificate"]["delta"], 0.01);
    assert_eq!(certified["certificate"]["basis"]["variance"], 20.0, "{certified}");
    sgd.pasta("certify p.toml --at 0,0").assert().code(2).stderr(contains("target is missing"));
}

#[test]
fn a_point_that_was_drawn_at_random_says_so() {
    let place = TestDir::holding(BOWL);
    let result = place.json("solve p.toml", 0);
    let (drawn, steps) = (result["drawn_at"].as_u64().unwrap(), result["steps"].as_u64().unwrap());
    assert!(drawn < steps && result["last"].is_array());
    let printed = unwrapped(&place.pasta("solve p.toml").output().unwrap().stdout);
    let told =
        format!("drawn uniformly among the iterates, as the theorem requires: that of step {drawn} of");
    assert!(printed.contains(&told) && printed.contains("the last one is"), "{printed}");
}

#[test]
fn a_recipe_aims_at_a_certified_target_that_is_finer_than_its_own() {
    let place = TestDir::holding(BOWL);
    let aims = |folder: &str| place.read(&format!("{folder}/problem.toml"));
    place.pasta("solve p.toml --certify 0.05 --output a").assert().code(0);
    assert!(aims("a").contains("target = 0.05\nconstants"), "{}", aims("a"));
    place.pasta("solve p.toml --certify 1e9 --output b").assert().code(0);
    assert!(aims("b").contains("target = 0.1\nconstants"), "{}", aims("b"));
    let note = "the recipe aims at a coarser target than the certificate's";
    let both = place.pasta("solve p.toml --certify 0.3 --target 0.4 --output c").assert();
    both.stderr(contains(note));
    assert!(aims("c").contains("target = 0.4\nconstants"), "{}", aims("c"));
    place.pasta("solve p.toml --certify 0.4 --target 0.3").assert().code(0).stderr(contains(note).not());
}

#[test]
fn what_the_file_knows_to_be_false_is_said_to_be() {
    let place = TestDir::holding(BOWL);
    for flags in ["--variance 0.01", "--growth 1 --floor 1", "--kurtosis 2.9"] {
        let words = format!("certify p.toml --at 0.03 --target 0.1 {flags}");
        let told = "VOID: the declared noise is wrong: [noise] has";
        place
            .pasta(&words)
            .assert()
            .code(4)
            .stderr(contains(told))
            .stdout(predicates::str::starts_with("VOID  "));
        let certificate = &place.json(&words, 4)["certificate"];
        assert_eq!((&certificate["verdict"], &certificate["bound"]), (&"void".into(), &Value::Null));
        assert!(certificate["statement"].as_str().unwrap().starts_with(told), "{certificate}");
    }
    let moreau = place.json("certify p.toml --at 0.01 --target 9 --variance 1 --moreau 3 --rho 1", 4);
    assert_eq!(moreau["certificate"]["verdict"], "void");
    for flags in ["", "--variance 200", "--growth 9 --floor 1", "--kurtosis 3"] {
        let words = format!("certify p.toml --at 0.03 --target 0.3 {flags}");
        place.pasta(&words).assert().code(0).stderr(contains("VOID").not());
    }
    place.write("q.toml", &STREAM.replace("pilot = 0", "pilot = 0\nkurtosis = 100"));
    let output = place.pasta("solve q.toml --output run").output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    let void = "the declared noise is wrong: [noise] has kurtosis inf";
    let (printed, said) = (unwrapped(&output.stdout), unwrapped(&output.stderr));
    assert!(
        printed.starts_with(&format!("VOID {void}")) && said.contains(&format!("VOID: {void}")),
        "{printed}"
    );
    assert!(unwrapped(&output.stderr).contains("every certificate of this run will be void"));
    // Nobody who reads a file of the run is told that it is certified.
    let result: Value = serde_json::from_str(&place.read("run/result.json")).unwrap();
    assert_eq!(
        (&result["stop"]["kind"], &result["certificate"]["verdict"]),
        (&"void".into(), &"void".into())
    );
    assert_eq!(result["promise"], Value::Null);
    let trace = place.read("run/trace.jsonl");
    assert!(!trace.contains(r#""certified""#) && trace.contains(r#""verdict":"void""#), "{trace}");
}

#[test]
fn rare_events_behind_a_kurtosis_make_a_certificate_void() {
    let rare = BOWL.replace(r#"tail = "gaussian""#, "tail = \"two-point\"\nprobability = 1e-4");
    let place = TestDir::holding(&rare);
    // True, but void: what it rests on is not.
    let answer = place.json("certify p.toml --at 0.001 --target 5 --kurtosis", 4);
    assert_eq!(answer["certificate"]["verdict"], "void");
    assert_eq!(place.json("solve p.toml --certify 5 --budget 1e5", 0)["stop"]["kind"], "certified");
    place.write("q.toml", &format!("{rare}\n[certificate]\ntarget = 5\nkurtosis = 100\npilot = 0\n"));
    assert_eq!(place.json("solve q.toml --budget 1e5", 4)["certificate"]["verdict"], "void");
}

#[test]
fn attempts_by_hand_share_delta_and_have_samples_of_their_own() {
    let place = TestDir::holding(BOWL);
    let of = |flags: &str| {
        let answer = place.json(&format!("certify p.toml --at 0.001 --target 0.1 --delta 0.06 {flags}"), 0);
        answer["certificate"].clone()
    };
    let (alone, first, third) = (of(""), of("--attempt 1"), of("--attempt 3"));
    assert_eq!((&alone["attempt"], &alone["attempts"]), (&Value::Null, &1.into()));
    let share = |certificate: &Value| certificate["made"]["claim"]["delta"].as_f64().unwrap();
    assert_eq!((share(&first), share(&third)), (0.03, 0.005));
    // The statement is made for all of them, and a smaller share of delta takes more samples.
    assert!(third["statement"].as_str().unwrap().contains("at least 94 %"), "{third}");
    let samples = |certificate: &Value| certificate["samples"].as_u64().unwrap();
    assert!(samples(&alone) < samples(&first) && samples(&first) < samples(&third));
    let words = "certify p.toml --at 0.001 --target 0.1 --attempt";
    let told = place.pasta(&format!("{words} 2")).output().unwrap();
    assert!(unwrapped(&told.stdout).contains("if those before were made with --attempt 1 to 1"));
    place.pasta(&format!("{words} 0")).assert().code(2).stderr(contains("--attempt"));
}

#[test]
fn noise_of_another_exponent_is_declared_where_the_point_is_known_and_asked_for_elsewhere() {
    let place = TestDir::holding(&STREAM.replace("growth = 0.5", "growth = 0.5\nexponent = 3.0"));
    place.write("point.toml", place.read("p.toml").split_once("[certificate]").unwrap().0);
    let answer = place.json("certify point.toml --at 0,0 --target 0.05", 0);
    // B^2 |x - x0|^3 + b^2 at the origin.
    let declared = answer["certificate"]["basis"]["variance"].as_f64().unwrap();
    assert!((declared - (0.25 * 2f64.powf(1.5) + 1.0)).abs() < 1e-12);
    place.pasta("certify p.toml --at 0,0").assert().code(0);
    let answer = place.json("certify p.toml --at 0,0 --kurtosis 1000", 4);
    assert_eq!(answer["certificate"]["basis"]["kurtosis"], 1000.0);
    assert_eq!(answer["certificate"]["verdict"], "void");
    // The points near x on which a Moreau certificate rests are noisier.
    let moreau = "certify point.toml --at 0,0 --target 0.5 --moreau 3 --rho 1";
    place.pasta(moreau).assert().code(2).stderr(contains("growth and floor do not bound this noise"));
    place.pasta(&format!("{moreau} --variance 2")).assert().code(0);
    place.pasta("solve p.toml").assert().code(2).stderr(contains("do not bound a noise with exponent 3"));
    place.write("q.toml", &(place.read("p.toml") + "kurtosis = 100\n"));
    place.pasta("solve q.toml --budget 1000").assert().code(4);
}

#[test]
fn a_run_that_makes_certificates_cannot_go_on_without_them() {
    let place = TestDir::holding(STREAM);
    place.pasta("solve p.toml --budget 1000 --output run").assert().code(4);
    let text = place.read("run/problem.toml");
    let (before, _) = text.split_once("[certificate]").unwrap();
    place.write("run/problem.toml", before);
    place.pasta("resume run --budget 2000").assert().code(2).stderr(contains("but none is asked for"));
}

#[test]
fn counts_beyond_64_bits_are_written_in_full() {
    let sgd =
        STREAM.replace("student-t\"\ndof = 3.0", "gaussian\"").replace("target = 0.05", "target = 5e-10");
    let place = TestDir::holding(&sgd.replace("eta = 1e-3", "eta = 0.3\nbatch = 100000000000000000"));
    let result = place.json("solve p.toml --output run", 0);
    assert!(result["certificate"]["samples"].as_f64().unwrap() > u64::MAX as f64, "{result}");
    assert_eq!(place.json("resume run", 0), result);
}

#[test]
fn a_run_that_asked_for_a_certificate_and_got_none_exits_with_4() {
    let place = TestDir::holding(BOWL);
    let result = place.json("solve p.toml --certify 0.1 --budget 100000", 4);
    assert_eq!(result["stop"]["kind"], "out-of-budget");
    assert!(result["ledger"]["samples"].as_u64().unwrap() <= 100_000);
}

#[test]
fn a_run_that_is_stopped_by_budgets_goes_on_and_no_attempt_is_counted_twice() {
    let place = TestDir::holding(STREAM);
    place.pasta("solve p.toml --output whole").assert().code(0);
    // Budgets that grow stop the run at many places; each time the certificates go on where they were.
    place.pasta("solve p.toml --output parts --budget 1000").assert().code(4);
    for budget in [20_000, 77_777, 150_000] {
        place.pasta(&format!("resume parts --budget {budget}")).assert().code(predicate::in_iter([0, 4]));
    }
    place.pasta("resume parts --budget 1e9").assert().code(0);
    let read = |name: &str| -> Value { serde_json::from_str(&place.read(name)).unwrap() };
    let (whole, parts) = (read("whole/result.json"), read("parts/result.json"));
    assert_eq!([&whole, &parts].map(|run| &run["stop"]["kind"]), ["certified"; 2]);
    // A stop for want of budget may cost an attempt, and error with it: never is the same error spent twice.
    let attempts: Vec<u64> = place
        .read("parts/trace.jsonl")
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).unwrap()["attempt"].as_u64())
        .collect();
    assert_eq!(attempts, (1..=attempts.len() as u64).collect::<Vec<_>>());
    assert_eq!(attempts.len() as u64, parts["certificate"]["attempts"].as_u64().unwrap());
    // A finished run says the same again.
    let again = place.json("resume whole", 0);
    place
        .pasta("resume whole")
        .assert()
        .code(0)
        .stderr(contains("the run already ended (certified): nothing to resume"));
    assert_eq!(again["certificate"], whole["certificate"]);
    assert_eq!(again["point"], whole["point"]);
}

#[test]
fn a_killed_certified_run_is_resumed_bit_for_bit() {
    let place = TestDir::holding(&STREAM.replace("0.05", "0.02"));
    place.pasta("solve p.toml --output whole").assert().code(0);
    let mut child = std::process::Command::new(PASTA)
        .args(["solve", "p.toml", "--output", "killed", "--checkpoint-every", "0"])
        .current_dir(place.0.path())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    while !place.path("killed/checkpoint.pasta").exists() {
        assert!(child.try_wait().unwrap().is_none());
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    place.pasta("resume killed").assert().code(0);
    assert_eq!(place.read("killed/result.json"), place.read("whole/result.json"));
    assert_eq!(place.read("killed/trace.jsonl"), place.read("whole/trace.jsonl"));
}

#[test]
fn tables_of_certificates_are_checked_with_file_and_line() {
    let cases = [
        ("target = 0", "p.toml:16: [certificate] target: certificate: target must be positive"),
        ("delta = 1", "p.toml:16: [certificate] delta:"),
        ("share = 1", "p.toml:16: [certificate] share:"),
        ("kurtosis = 0.5", "p.toml:16: [certificate] kurtosis:"),
        ("growth = 1", "expected one of: variance; growth with floor; kurtosis"),
        ("variance = 1\nkurtosis = 1", "expected one of"),
        ("pilot = -1", "p.toml:16: [certificate] pilot: expected a whole number of samples"),
        ("size = 1", "p.toml:16: [certificate] size: unknown key"),
    ];
    for (line, message) in cases {
        let place = TestDir::holding(&format!("{}\n[certificate]\n{line}\n", BOWL.trim_end()));
        place.pasta("solve p.toml").assert().code(2).stderr(contains(message));
    }
    let sgd = TestDir::holding(&STREAM.replace("target = 0.05\n", ""));
    sgd.pasta("solve p.toml").assert().code(2).stderr(contains("target is missing: sgd has no target"));
    let place = TestDir::holding(BOWL);
    for (target, message) in [
        ("0", "'--certify <EPS>': expected a positive number such as 0.1"),
        ("1e-60", "--certify: smooth: K would be"),
    ] {
        let words = format!("solve p.toml --certify {target}");
        place.pasta(&words).assert().code(2).stderr(contains(message));
    }
}

#[test]
fn a_forecast_is_labelled_beside_worst_case_and_lower_bound() {
    let place = TestDir::holding(BOWL);
    place
        .pasta("plan --pilot p.toml --target 0.05")
        .assert()
        .code(0)
        .stdout(contains("forecast, not a bound"))
        .stdout(contains("such ranges held in 36 of 38 runs"))
        .stdout(contains("worst case"))
        .stdout(contains("lower bound"));
    let outlook = place.json("plan --pilot p.toml --samples 50000", 0);
    assert_eq!(outlook["target"], 0.1);
    assert!(outlook["pilot"]["samples"].as_u64().unwrap() <= 50_000);
    let forecast = |key: &str| outlook["forecast"][key].as_f64().unwrap();
    assert!(forecast("low") < forecast("middle") && forecast("middle") < forecast("high"));
    assert_eq!(place.json("plan --pilot p.toml --samples 500", 0)["forecast"], Value::Null);
    let cases = [
        ("plan --pilot p.toml --mu 1", "--mu cannot be used with --pilot: it is taken from the file"),
        ("plan --pilot none.toml", "none.toml"),
        ("plan smooth --pilot p.toml", "cannot be used with"),
        ("plan smooth --samples 5", "cannot be used with"),
        ("plan --pilot p.toml --target -1", "target must be finite and not negative"),
    ];
    for (words, message) in cases {
        place.pasta(words).assert().code(2).stderr(contains(message));
    }
}

#[test]
fn the_examples_of_the_help_run() {
    let place = TestDir::holding(BOWL);
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let help = String::from_utf8(place.pasta("certify --help").output().unwrap().stdout).unwrap();
    let examples: Vec<_> = help.lines().filter_map(|line| line.trim().strip_prefix("pasta ")).collect();
    assert!(examples.len() >= 5, "{help}");
    for example in examples {
        // They name files as seen from the root of the project, and a folder that need not stay there.
        let words = example.replace("examples/", &format!("{}/examples/", root.display()));
        place.pasta(&words).assert().code(0);
    }
}

#[test]
fn a_target_may_be_a_share_of_the_gradient_at_the_start() {
    // |grad f| at the start is 1.2 + sin 2.4 = 1.8755, and known by a formula.
    let bowl = BOWL.replace("\"smooth\"\ntarget = 0.1\nconstants = \"problem\"", "\"auto\"");
    let place = TestDir::holding(&bowl);
    let words = "target 0.0937732: 5% of |grad f| at the start, 1.8755";
    place.pasta("solve p.toml --target 5% --output run --json").assert().code(0).stderr(contains(words));
    let result: Value = serde_json::from_str(&place.read("run/result.json")).unwrap();
    let target = result["certificate"]["target"].as_f64().unwrap();
    assert!((target - 0.05 * (1.2 + 2.4_f64.sin())).abs() < 1e-15, "{target}");
    assert_eq!(result["of_start"]["share"], 0.05);
    // The folder says what was asked for, and goes on from there.
    assert!(fs::read_to_string(place.path("run/problem.toml")).unwrap().contains("target = \"5%\""));
    place.pasta("resume run").assert().code(0).stdout(contains("is 5% of |grad f| at the start"));
    place.pasta("certify p.toml --at 0.001 --target 5%").assert().code(0).stderr(contains(words));
    place
        .pasta("compare p.toml --target 5% --methods auto --seeds 1")
        .assert()
        .code(0)
        .stderr(contains(words));
    let in_file = TestDir::holding(&format!("{bowl}\n[certificate]\ntarget = \"5%\"\n"));
    in_file.pasta("solve p.toml").assert().code(0).stderr(contains(words));
    in_file.pasta("plan --pilot p.toml --samples 2000").assert().stderr(contains(words));
    for (text, says) in [("100%", "a share of the gradient at the start such as 1%"), ("0%", "0%")] {
        place.pasta(&format!("solve p.toml --target {text}")).assert().code(2).stderr(contains(says));
    }
    let wrong = TestDir::holding(&format!("{bowl}\n[certificate]\ntarget = \"much\"\n"));
    wrong
        .pasta("solve p.toml")
        .assert()
        .code(2)
        .stderr(contains("p.toml:15: [certificate] target: expected a positive number"));
    // A theorem is about a number.
    let recipe = TestDir::holding(BOWL);
    recipe
        .pasta("solve p.toml --target 5%")
        .assert()
        .code(2)
        .stderr(contains("a recipe is planned for a number"));
}
