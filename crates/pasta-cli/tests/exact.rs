//! `exact` in problem files and comparisons: the same method as that of `pasta fit`.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod place;

use place::TestDir;
use serde_json::Value;

/// Two classes that overlap.
fn place() -> TestDir {
    let row = |k: u32| {
        let (a, b) = (f64::from(k * 7919 % 101) / 50.0 - 1.0, f64::from(k * 104_729 % 97) / 48.0 - 1.0);
        let label = if a + b + f64::from(k * 31 % 13) / 6.0 - 1.0 > 0.0 { 1 } else { -1 };
        format!("{label} 1:{a} 2:{b}\n")
    };
    let place = TestDir::new();
    place.write("pairs.svm", &(1..400).map(row).collect::<String>());
    place
}

fn problem(loss: &str, recipe: &str, target: Option<&str>) -> String {
    let problem = format!("seed = 1\n[problem]\ntable = \"pairs.svm\"\nloss = \"{loss}\"\npenalty = 0.01\n");
    let recipe = if recipe.is_empty() { String::new() } else { format!("[recipe]\nname = \"{recipe}\"\n") };
    let target = target.map_or(String::new(), |target| format!("[certificate]\ntarget = {target}\n"));
    problem + &recipe + &target
}

#[test]
fn a_fit_and_a_solve_of_the_same_table_loss_and_target_are_one_run() {
    let place = place();
    for (loss, target) in [
        ("logistic", Some("1e-6")),
        ("logistic", Some("\"1%\"")),
        ("logistic", None),
        ("huber", Some("1e-4")),
        ("hinge", Some("1e-5")),
    ] {
        let flags = target.map_or(String::new(), |target| format!(" --target {}", target.replace('"', "")));
        let scale = if loss == "huber" { " --delta 0.7" } else { "" };
        let fit = format!("fit pairs.svm --loss {loss}{scale} --penalty 0.01{flags}");
        let fitted = place.json(&fit, 0);
        for recipe in ["", "exact"] {
            let mut text = problem(loss, recipe, target);
            if loss == "huber" {
                text = text.replace("penalty", "delta = 0.7\npenalty");
            }
            place.write("p.toml", &text);
            let solved = place.json("solve p.toml", 0);
            let what = format!("{loss} {target:?} {recipe}");
            assert_eq!((&solved["method"], &fitted["method"]), (&"exact".into(), &"exact".into()), "{what}");
            assert_eq!(solved["ledger"], fitted["ledger"], "{what}");
            assert_eq!(solved["stop"]["kind"], fitted["stop"], "{what}");
            let Some(_) = target else {
                assert_eq!(solved["certificate"], Value::Null, "{what}");
                continue;
            };
            let (of_solve, of_fit) = (&solved["certificate"], &fitted["certificate"]);
            let measure = if of_fit["gap"].is_null() { "gradient" } else { "gap" };
            assert_eq!((&of_solve["bound"], &of_solve["of"]), (&of_fit[measure], &measure.into()), "{what}");
            assert_eq!(of_solve["target"], of_fit["target"], "{what}");
        }
    }
}

#[test]
fn a_solve_by_exact_says_what_it_did_goes_on_and_is_verified() {
    let place = place();
    place.write("p.toml", &problem("logistic", "exact", Some("1e-7")));
    let text =
        place.pasta("solve p.toml --budget 1500 --output run").assert().code(4).get_output().stdout.clone();
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("|grad f| ="), "{text}");
    let resumed = place.json("resume run --budget 100000", 0);
    let whole = place.json("solve p.toml --budget 100000", 0);
    assert_eq!((&resumed["point"], &resumed["steps"]), (&whole["point"], &whole["steps"]));
    assert_eq!(resumed["stop"]["kind"], "certified");
    place.pasta("verify run").assert().success();
    place.pasta("certify run --target 1e-6").assert().success();
}

#[test]
fn exact_takes_part_in_a_comparison_of_methods_on_a_table() {
    let place = place();
    place.write("p.toml", &problem("logistic", "", None));
    let compared =
        place.json("compare p.toml --methods exact,auto --target 1e-3 --budget 40000 --seeds 1", 0);
    let rows = compared["methods"].as_array().unwrap();
    let names: Vec<_> = rows.iter().map(|row| row["method"].as_str().unwrap()).collect();
    assert!(names.contains(&"exact") && names.contains(&"auto"), "{compared:#}");
}

#[test]
fn exact_is_refused_where_there_is_no_table_and_for_losses_that_it_does_not_fit() {
    let place = place();
    let bowl = place::BOWL.split("[recipe]").next().unwrap().to_owned() + "[recipe]\nname = \"exact\"\n";
    place.write("bowl.toml", &bowl);
    let refused = place.pasta("solve bowl.toml").assert().code(2).get_output().stderr.clone();
    let refused = String::from_utf8(refused).unwrap();
    assert!(refused.contains("exact is for tables of data"), "{refused}");
    place.write("p.toml", &problem("sigmoid", "exact", Some("1e-3")));
    let refused = place.pasta("solve p.toml").assert().code(2).get_output().stderr.clone();
    let refused = String::from_utf8(refused).unwrap();
    assert!(refused.contains("p.toml:7") && refused.contains("sigmoid"), "{refused}");
}
