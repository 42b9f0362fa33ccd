//! Tables of data: fit, predict, inspect, and problem files whose samples are rows.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::format_collect, reason = "files of tests are made line by line")]

mod place;

use place::{PASTA, TestDir, unwrapped};
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use serde_json::{Value, json};

/// y = 3 a - 2 b + 1 and a little more; b is a thousand times larger than a.
fn plane() -> String {
    let rows = (0..60).map(|k| {
        let (a, b) = (f64::from(k % 7), 1000.0 * f64::from(k % 5));
        let more = 0.01 * f64::from(k % 3 - 1);
        format!("{a},{b},{},{}\n", ["red", "blue"][k as usize % 2], 3.0 * a - 2.0 * b + 1.0 + more)
    });
    "a,b,colour,y\n".to_owned() + &rows.collect::<String>()
}

/// Two classes that overlap, as pairs.
fn pairs() -> String {
    let row = |k: u32| {
        let (a, b) = (f64::from(k * 7919 % 101) / 50.0 - 1.0, f64::from(k * 104_729 % 97) / 48.0 - 1.0);
        let label = if a + b + f64::from(k * 31 % 13) / 6.0 - 1.0 > 0.0 { 1 } else { -1 };
        format!("{label} 1:{a} 2:{b}\n")
    };
    (1..400).map(row).collect()
}

fn place() -> TestDir {
    let place = TestDir::new();
    place.write("plane.csv", &plane());
    place.write("pairs.svm", &pairs());
    place
}

#[test]
fn least_squares_finds_the_plane_and_says_so_in_the_model() {
    let place = place();
    let words = "fit plane.csv --loss least-squares --ignore colour -o model.json";
    let result = place.json(words, 0);
    assert_eq!(result["certificate"]["verdict"], "certified");
    assert_eq!(result["certificate"]["exact"], true);
    let model: Value = serde_json::from_str(&place.read("model.json")).unwrap();
    let weight = |name: &str| model["weights"][name].as_f64().unwrap();
    // The rows differ from the plane by 0.01 at most, and |grad f| by a millionth of the start's.
    assert!((weight("a") - 3.0).abs() < 1e-2 && (weight("b") + 2.0).abs() < 1e-4, "{model:#}");
    assert_eq!((&model["format"], &model["label"], &model["classes"]), (&json!(1), &json!("y"), &json!([])));
    assert_eq!((&model["data"]["rows"], &model["seed"]), (&json!(60), &json!(1)));
    assert!(model["scaling"]["scale"][1].as_f64().unwrap() > 1000.0);
    assert!(model["ledger"]["samples"].as_u64().unwrap() > 0);
    // Any number of threads gives the same bits.
    for threads in ["1", "3"] {
        place.pasta(&format!("{words}.{threads} --threads {threads}")).assert().success();
    }
    assert_eq!(place.read("model.json.1"), place.read("model.json.3"));
    assert_eq!(place.read("model.json.1"), place.read("model.json"));
}

#[test]
fn a_line_says_what_is_fitted_and_stdout_has_only_the_answer() {
    let place = place();
    let fit = "fit pairs.svm --loss logistic --penalty 0.01 --seed 7 --threads 2";
    let output = place.pasta(fit).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let header = said.lines().next().unwrap();
    assert_eq!(
        header,
        "pairs.svm: 399 rows, 2 columns, 2 classes; loss logistic, penalty 0.01; method exact"
    );
    let answer = unwrapped(&output.stdout);
    assert!(answer.contains("certificate |grad f| =") && answer.contains("accuracy 0."), "{answer}");
    assert!(answer.contains("not written (-o FILE writes it)"), "{answer}");
    let told = unwrapped(&place.pasta(&format!("{fit} --details")).output().unwrap().stdout);
    let settings = "settings dense f64, intercept, standardised, degree 1, penalty 0.01; method exact (the quickest for this table), |grad f| <= \
                    1e-6 of the start, at most 39,900,000 rows read, seed 7, threads 2";
    assert!(told.contains(settings), "{told}");
}

#[test]
fn one_word_among_numbers_is_an_error_unless_the_column_holds_categories() {
    let place = place();
    let rows = |word: &str| {
        let row = |k: u32| format!("{k},{},{}\n", ["r", "g", "b"][k as usize % 3], 2 * k + k % 2);
        "a,c,y\n".to_owned() + &(0..30).map(row).collect::<String>() + word
    };
    place.write("stray.csv", &rows("unknown,r,3\n"));
    let fit = "fit stray.csv --loss least-squares --one-hot --penalty 1e-3";
    let refused = place.pasta(fit).assert().code(2);
    refused
        .stderr(contains(
            "stray.csv:32: column 1: column \"a\" holds 30 different numbers, but \"unknown\" here",
        ))
        .stderr(contains("--categories COLUMN"));
    let result = place.json(&format!("{fit} --categories a"), 0);
    assert_eq!(result["data"]["columns"], 31 + 3);
    // A few numbers beside words are categories, and that is said.
    place.write("few.csv", "a,y\n0,1\n1,2\n2,4\n3+,5\n1,2.5\n");
    let few = place.pasta("fit few.csv --loss least-squares --one-hot --penalty 1e-3").assert().success();
    let said = String::from_utf8_lossy(&few.get_output().stderr).into_owned();
    assert!(said.contains("few.csv: 5 rows, 4 columns, label"), "{said}");
    few.stderr(contains("note: column \"a\" has 1 word and 3 numbers, and each of them is a category"));
}

#[test]
fn auto_names_exact_where_a_loss_has_kinks() {
    let place = place();
    let hint = "hint: --method exact";
    for loss in ["absolute", "quantile"] {
        let auto =
            place.pasta(&format!("fit plane.csv --loss {loss} --ignore colour --method auto")).assert();
        auto.code(4).stderr(contains(hint));
    }
    place.write("one.csv", "a,y\n1,1\n2,3\n");
    let one = place.pasta("fit one.csv --loss least-squares").assert().success();
    one.stderr(contains("one.csv: 2 rows, 1 column, label"));
    place.pasta("fit pairs.svm --loss hinge --method auto").assert().code(4).stderr(contains(hint));
    // A scale whose square is no number is to blame itself.
    let scale = place.pasta("fit plane.csv --loss cauchy --scale 1e200 --ignore colour").assert().code(3);
    scale.stderr(contains("the square of --scale"));
    // One that exact does not take has no such hint.
    let other =
        place.pasta("fit plane.csv --loss phase-retrieval --ignore colour --method auto").output().unwrap();
    assert!(!String::from_utf8_lossy(&other.stderr).contains(hint));
}

#[test]
fn scores_are_weighted_as_the_objective_is() {
    let place = place();
    // The rows of one weight say y = a, those of a hundredth of it y = 1 - a.
    let row = |k: u32| {
        let (a, odd) = (f64::from(k % 10) / 10.0, k % 4 == 3);
        format!("{a},{},{}\n", if odd { 1.0 - a } else { a }, if odd { 0.01 } else { 1.0 })
    };
    place.write("w.csv", &("a,y,w\n".to_owned() + &(0..100).map(row).collect::<String>()));
    for loss in ["least-squares", "huber"] {
        let fit = format!("fit w.csv --loss {loss} --weight w");
        let result = place.json(&fit, 0);
        let (objective, mean) = (
            result["certificate"]["objective"].as_f64().unwrap(),
            result["training"]["loss"].as_f64().unwrap(),
        );
        // The same sum, in another order.
        assert!((objective - mean).abs() <= 1e-12 * objective, "{result:#}");
        assert!(result["training"]["r2"].as_f64().unwrap() > 0.9, "{result:#}");
        let said = place.pasta(&format!("{fit} --details")).assert().success();
        assert!(unwrapped(&said.get_output().stdout).contains("(100 rows, weighted)"));
    }
    // A row without weight is told apart by nobody, and hides nothing.
    place.write("s.csv", "a,y,w\n1,0,1\n2,0,1\n3,1,1\n4,1,1\n1,1,0\n");
    let separated = place.pasta("fit s.csv --loss logistic --weight w --penalty 0").assert().code(3);
    separated.stderr(contains("the classes can be separated"));
}

#[test]
fn predictions_match_columns_by_name_and_score_what_has_labels() {
    let place = place();
    place.pasta("fit plane.csv --loss least-squares --one-hot -o m.json").assert().success();
    place.write("new.csv", "colour,b,a\nblue,1000,2\nred,0,1\n");
    let lines = String::from_utf8(
        place.pasta("predict m.json new.csv").assert().success().get_output().stdout.clone(),
    )
    .unwrap();
    let values: Vec<f64> = lines.lines().map(|line| line.parse().unwrap()).collect();
    assert!((values[0] - (6.0 - 2000.0 + 1.0)).abs() < 0.1 && (values[1] - 4.0).abs() < 0.1, "{values:?}");
    let same = place.json("predict m.json new.csv", 0);
    assert_eq!(
        same["predictions"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect::<Vec<_>>(),
        values
    );
    assert_eq!(same["score"], Value::Null);
    let scored = place.json("predict m.json plane.csv", 0);
    assert!(scored["score"]["r2"].as_f64().unwrap() > 0.999_99);
    let refused = |text: &str, what: &'static str| {
        place.write("bad.csv", text);
        place.pasta("predict m.json bad.csv").assert().code(2).stderr(contains(what));
    };
    refused("colour,a\nred,1\n", "there is no column \"b\"");
    refused("colour,a,b,c\nred,1,2,3\n", "column \"c\" is unknown");
    refused("colour,a,b\ngreen,1,2\n", "\"green\" is not one of its 2 categories");
    place.pasta("predict m.json pairs.svm").assert().code(2).stderr(contains("matched by name"));
    place.pasta("fit pairs.svm --loss logistic -o pairs.json").assert().success();
    place.write("wide.svm", "1 1:1 4:1\n");
    let wide = place.pasta("predict pairs.json wide.svm").assert().code(2);
    wide.stderr(contains("index 4 is beyond 2")).stderr(contains("hint: columns that a model did not see"));
    place.pasta("predict m.json new.csv -o out.txt").assert().success().stdout("");
    assert_eq!(place.read("out.txt"), lines);
    place.pasta("predict m.json new.csv -o out.npy").assert().success();
    assert!(place.path("out.npy").exists());
    place
        .pasta("predict m.json new.csv --probabilities")
        .assert()
        .code(2)
        .stderr(contains("least-squares loss has none"));
}

#[test]
fn classes_keep_their_names_and_pipes_work() {
    let place = place();
    let text: String = (0..90)
        .map(|k| {
            let class = k % 3;
            let noise = f64::from(k * 37 % 11) / 4.0;
            format!(
                "{},{},{}\n",
                f64::from(class) + noise,
                f64::from(k % 5) - 0.5 * f64::from(class),
                ["cat", "dog", "eel"][class as usize]
            )
        })
        .collect();
    let fit = place
        .pasta("fit - --loss multinomial --label 3 --penalty 1e-3 -o m.json --json")
        .write_stdin(text.clone())
        .assert()
        .success();
    let fitted: Value = serde_json::from_slice(&fit.get_output().stdout).unwrap();
    let model: Value = serde_json::from_str(&place.read("m.json")).unwrap();
    assert_eq!(model["classes"], json!(["cat", "dog", "eel"]));
    assert_eq!(model["weights"]["1"].as_array().unwrap().len(), 3);
    let without: String =
        text.lines().map(|line| line.rsplit_once(',').unwrap().0.to_owned() + "\n").collect();
    let said = place.pasta("predict m.json -").write_stdin(without.clone()).assert().success();
    let lines = String::from_utf8_lossy(&said.get_output().stdout).into_owned();
    let right = lines.lines().zip(text.lines()).filter(|(said, row)| row.ends_with(said)).count();
    assert_eq!(right as f64 / 90.0, fitted["training"]["accuracy"].as_f64().unwrap());
    let chances = place.pasta("predict m.json - --probabilities").write_stdin(without).assert().success();
    let chances = String::from_utf8_lossy(&chances.get_output().stdout).into_owned();
    assert!(chances.starts_with("cat,dog,eel\n"));
    let row: Vec<f64> = chances.lines().nth(1).unwrap().split(',').map(|p| p.parse().unwrap()).collect();
    // Probabilities add up to 1 but for rounding.
    assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-12);
}

/// Rows with noise whose class, of these, a line decides.
fn classed(names: [&str; 2]) -> String {
    let rows = (0..200).map(|k| {
        let (a, noise) = (f64::from(k % 20) - 9.5, f64::from(k * 7 % 11) - 5.0);
        format!("{a},{}\n", names[usize::from(a + noise > 0.0)])
    });
    "a,y\n".to_owned() + &rows.collect::<String>()
}

#[test]
fn classes_that_look_like_numbers_are_predicted_as_the_file_writes_them() {
    let place = TestDir::new();
    place.write("new.csv", "a\n-9\n9\n");
    for names in
        [["02139", "10001"], ["900719925474099300", "900719925474099301"], ["-1", "+1"], ["1.10", "1.2"]]
    {
        place.write("t.csv", &classed(names));
        for loss in ["logistic", "squared-hinge", "multinomial"] {
            for more in ["", "--one-pass"] {
                // A short stream may end without a certificate, but with a model.
                let fit = place.pasta(&format!("fit t.csv --loss {loss} {more} -o m.json")).assert();
                assert!(matches!(fit.get_output().status.code(), Some(0 | 4)), "{fit:?}");
                let model: Value = serde_json::from_str(&place.read("m.json")).unwrap();
                assert_eq!(model["classes"], json!(names), "{loss} {more}");
                let predicted = place.pasta("predict m.json new.csv").assert().success();
                predicted.stdout(format!("{}\n{}\n", names[0], names[1]));
            }
        }
        let found = place.json("inspect t.csv --loss logistic", 0);
        assert_eq!(found["labels"]["classes"][1][0], json!(names[1]));
    }
}

#[test]
fn a_class_that_is_written_in_two_ways_is_refused_where_it_is_learnt_and_known_where_it_is_scored() {
    let place = TestDir::new();
    let text = classed(["0", "1"]);
    place.write("t.csv", &text);
    place.write("both.csv", &(text.clone() + "3,1.0\n"));
    for more in ["", "--one-pass"] {
        let refused = place.pasta(&format!("fit both.csv --loss logistic {more}")).assert().code(2);
        refused.stderr(
            contains("both.csv:202: the labels \"1\" and \"1.0\" are the same number: one class or two?")
                .and(contains("hint: write one class in one way")),
        );
    }
    place.write("floats.csv", &classed(["0.0", "1.0"]));
    let fit = "fit t.csv --loss logistic --validation floats.csv -o m.json --details";
    place.pasta(fit).assert().success().stdout(contains("(200 rows) of floats.csv"));
    place
        .pasta("predict m.json floats.csv")
        .assert()
        .success()
        .stderr(contains("accuracy 0.").and(contains("(200 rows)")));
}

#[test]
fn a_validation_file_or_share_is_scored_and_not_fitted() {
    let place = place();
    let shared = place.json("fit plane.csv --loss least-squares --ignore colour --validation 0.25", 0);
    let (kept, held) =
        (shared["data"]["rows"].as_u64().unwrap(), shared["validation"]["rows"].as_u64().unwrap());
    assert_eq!(kept + held, 60);
    assert!((5..30).contains(&held) && shared["validation"]["r2"].as_f64().unwrap() > 0.999);
    place.write("other.csv", "y,b,a\n1.0,0,0\n4,0,1\n");
    let other = place.json("fit plane.csv --loss least-squares --ignore colour --validation other.csv", 2);
    // --ignore names a column that the other file has not: it is told, not guessed.
    assert!(other["error"]["message"].as_str().unwrap().contains("no column \"colour\""), "{other}");
    place.write("other.csv", "y,b,a,colour\n1.0,0,0,x\n4,0,1,y\n");
    let other = place.json("fit plane.csv --loss least-squares --ignore colour --validation other.csv", 0);
    assert_eq!(other["validation"]["rows"], 2);
    place
        .pasta("fit plane.csv --loss huber --ignore colour --validation 1.5")
        .assert()
        .code(2)
        .stderr(contains("between 0 and 1"));
}

#[test]
fn separable_classes_get_a_verdict_and_no_model() {
    let place = TestDir::new();
    place.write("two.svm", "1 1:1\n1 1:2\n-1 1:-1\n-1 1:-3\n");
    let assert = place.pasta("fit two.svm --loss logistic --penalty 0 -o m.json").assert().code(3);
    assert
        .stderr(contains("the classes can be separated, so the loss has no minimiser"))
        .stderr(contains("hint: --penalty"));
    assert!(!place.path("m.json").exists());
    place.pasta("fit two.svm --loss logistic --penalty 1e-3 -o m.json").assert().success();
    assert!(place.path("m.json").exists());
}

#[test]
fn separable_classes_get_the_usual_penalty_where_none_is_given() {
    let place = TestDir::new();
    place.write("two.svm", "1 1:1\n1 1:2\n-1 1:-1\n-1 1:-3\n");
    let fitted = place.json("fit two.svm --loss logistic", 0);
    assert_eq!(fitted["design"]["penalty"], 1e-4);
    let same = place.json("fit two.svm --loss logistic --penalty 1e-4", 0);
    assert_eq!(fitted["weights"], same["weights"]);
    // Both fits are paid for.
    assert!(fitted["passes"].as_f64().unwrap() > same["passes"].as_f64().unwrap());
    let said = place.pasta("fit two.svm --loss logistic").assert().success();
    let words = unwrapped(&said.get_output().stdout);
    assert!(words.contains("penalty 0.0001, since without one the classes can be separated"), "{words}");
    assert!(words.contains("no std. errors: the penalty pulls the weights towards 0"), "{words}");
}

#[test]
fn a_loss_that_is_left_out_is_chosen_by_the_labels() {
    let place = TestDir::new();
    let chosen = |labels: &[&str], loss: &str, why: &str| {
        let row = |(k, label): (usize, &&str)| format!("{},{label}\n", (k * k) % 7);
        let rows: String = labels.iter().cycle().take(30).enumerate().map(|(k, l)| row((k, l))).collect();
        place.write("t.csv", &format!("a,y\n{rows}"));
        let said = place.pasta("fit t.csv").assert().success();
        let first = String::from_utf8(said.get_output().stderr.clone()).unwrap();
        assert!(first.contains(&format!("loss {loss} (guessed: {why}")), "{first}");
    };
    chosen(&["0", "1", "1"], "logistic", "two labels, 0 and 1)");
    chosen(&["no", "yes", "no"], "logistic", "two labels, no and yes)");
    chosen(&["red", "green", "blue", "red"], "multinomial", "3 labels that are words)");
    chosen(&["1", "2", "3", "4"], "least-squares", "4 different numbers; --loss multinomial if");
    chosen(&["1.5", "2", "3", "4"], "least-squares", "labels that are numbers)");
}

/// A number between -1 and 1 that the others say nothing about.
fn noise(k: u64) -> f64 {
    let x = (k + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (x >> 40) as f64 / f64::from(1 << 23) - 1.0
}

/// y = 1 + 2 a + noise that a does not explain; z is noise alone.
fn noisy(place: &TestDir) {
    let row = |k: u64| {
        let a = (k % 10) as f64;
        format!("{a},{},{},{}\n", noise(k + 1000), 1.0 + 2.0 * a + noise(k), noise(k + 2000))
    };
    place.write("n.csv", &format!("a,b,y,z\n{}", (0..60).map(row).collect::<String>()));
}

#[test]
fn a_fit_shows_its_coefficients_and_its_score_beside_the_null_model() {
    let place = TestDir::new();
    noisy(&place);
    let said = place.pasta("fit n.csv --label y --ignore z").assert().success();
    let words = unwrapped(&said.get_output().stdout);
    assert!(words.starts_with("certified R2 0.9"), "{words}");
    assert!(words.contains("(the mean alone has 0)"), "{words}");
    assert!(words.contains("t on 57 degrees of freedom"), "{words}");
    let fitted = place.json("fit n.csv --label y --ignore z -o m.json", 0);
    let summary = &fitted["summary"];
    let slope = &summary["coefficients"][1];
    assert_eq!((slope["name"].as_str(), summary["std_errors"].as_str()), (Some("a"), Some("classical")));
    assert_eq!(slope["estimate"], fitted["weights"]["a"]);
    let (error, low) = (slope["std_error"].as_f64().unwrap(), slope["interval"][0].as_f64().unwrap());
    assert!(error > 0.0 && low < 2.0, "{slope}");
    // The model keeps it, and predicts all the same.
    let model: Value = serde_json::from_str(&place.read("m.json")).unwrap();
    assert_eq!(&model["summary"], summary);
    place.pasta("predict m.json n.csv --ignore z").assert().success();
    let robust = place.json("fit n.csv --label y --ignore z --robust", 0);
    assert_eq!(robust["summary"]["std_errors"], "hc1");
    assert_eq!(robust["weights"], fitted["weights"]);
    let none = place.json("fit n.csv --label y --ignore z --std-errors none", 0);
    assert_eq!(none["summary"]["omitted"], "not asked for");
}

#[test]
fn a_model_that_explains_nothing_is_not_headlined_as_certified_alone() {
    let place = TestDir::new();
    noisy(&place);
    let said = place.pasta("fit n.csv --label z --ignore y").assert().success();
    let words = unwrapped(&said.get_output().stdout);
    assert!(words.starts_with("certified R2 0.0"), "{words}");
    assert!(words.contains("chance would explain as much (p = "), "{words}");
}

#[test]
fn of_many_coefficients_the_largest_are_shown() {
    let place = TestDir::new();
    let names: String = (0..40).map(|j| format!("c{j},")).collect();
    let row = |i: u64| {
        let cells: Vec<f64> = (0..40).map(|j| noise(40 * i + j)).collect();
        let y = 3.0 * cells[7] - 5.0 * cells[33] + noise(i + 100_000);
        cells.iter().map(|cell| format!("{cell},")).collect::<String>() + &format!("{y}\n")
    };
    place.write("w.csv", &format!("{names}y\n{}", (0..200).map(row).collect::<String>()));
    let said = place.pasta("fit w.csv").assert().success();
    let words = unwrapped(&said.get_output().stdout);
    assert!(words.contains("c7 ") && words.contains("c33 "), "{words}");
    assert!(words.contains("the 20 largest of z or t of 41; --json has all"), "{words}");
}

#[test]
fn an_interval_covers_and_what_was_not_seen_is_said() {
    let place = TestDir::new();
    noisy(&place);
    place.pasta("fit n.csv --label y --ignore z --validation 0.4 -o m.json").assert().success();
    let model: Value = serde_json::from_str(&place.read("m.json")).unwrap();
    let (rows, errors) = (&model["conformal"]["rows"], model["conformal"]["errors"].as_array().unwrap());
    assert_eq!(rows.as_u64().unwrap() as usize, errors.len());
    // The range of a is that of the rows that were fitted: two values at least are not from there.
    place.write("new.csv", "a,b\n5,0\n1000,0\n-3,2\n");
    let said = place.pasta("predict m.json new.csv --interval 0.8").assert().success();
    let lines = String::from_utf8(said.get_output().stdout.clone()).unwrap();
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!((lines[0], lines.len()), ("prediction,low,high", 4));
    let numbers: Vec<f64> = lines[1].split(',').map(|cell| cell.parse().unwrap()).collect();
    assert!(numbers[1] < 11.0 && 11.0 < numbers[2] && numbers[2] - numbers[1] < 3.0, "{numbers:?}");
    said.stderr(contains(
        "2 rows with values outside of the range that the model was fitted on: a (2), b (1)",
    ));
    let none = place.pasta("predict m.json new.csv --interval 0.999").assert().code(2);
    none.stderr(contains("an interval of level 0.999 needs at least 999 rows that were not fitted"));
    place.pasta("fit n.csv --label y --ignore z -o plain.json").assert().success();
    let none = place.pasta("predict plain.json new.csv --interval 0.9").assert().code(2);
    none.stderr(contains("hint: fit it with --validation 0.2"));
}

#[test]
fn balanced_classes_weigh_the_same() {
    let place = TestDir::new();
    let row = |k: u64| format!("{},{}\n", noise(k), u8::from(noise(k) + 2.0 * noise(k + 500) > 1.2));
    place.write("u.csv", &format!("a,y\n{}", (0..200).map(row).collect::<String>()));
    let plain = place.json("fit u.csv", 0);
    let fitted = place.json("fit u.csv --class-weight balanced", 0);
    // The base rate of weighted rows.
    assert!((fitted["training"]["base_rate"].as_f64().unwrap() - 0.5).abs() < 1e-12, "{fitted:#}");
    assert!(plain["training"]["base_rate"].as_f64().unwrap() > 0.6);
    assert_eq!(fitted["summary"]["std_errors"], "hc1");
    // As many rows are given one class as the other weighs: the intercept moved.
    assert!(fitted["intercept"].as_f64().unwrap() > plain["intercept"].as_f64().unwrap());
    place
        .pasta("fit u.csv --label a --class-weight balanced")
        .assert()
        .code(2)
        .stderr(contains("no classes"));
}

#[test]
fn what_cannot_be_fitted_is_refused_with_a_reason() {
    let place = place();
    let says = |words: &str, code: i32, what: &'static str| {
        place.pasta(words).assert().code(code).stderr(contains(what));
    };
    says("fit plane.csv --loss cubic", 2, "unknown loss \"cubic\"; expected one of least-squares,");
    says(
        "fit plane.csv --loss huber",
        2,
        "plane.csv:2: column 3: column \"colour\": expected a number, found \"red\"",
    );
    says("fit none.csv --loss huber", 2, "No such file");
    says("fit plane.csv --loss huber --label z", 2, "there is no column \"z\"; the file has a, b, colour, y");
    says("fit plane.csv --loss logistic --ignore colour", 2, "tells two classes apart, but there are");
    says("fit plane.csv --loss least-squares --label colour", 2, "holds words such as \"blue\"");
    says(
        "fit pairs.svm --loss poisson",
        2,
        "the label -1 does not fit, the poisson loss needs labels of at least 0",
    );
    says(
        "fit pairs.svm --loss logistic --penalty=-1",
        2,
        "penalty must be a finite number, at least 0, but is -1",
    );
    says("fit pairs.svm --loss logistic --delta 2", 2, "the logistic loss has no delta");
    says("fit pairs.svm --loss logistic --budget 10", 2, "less than 3 passes over 399 rows");
    says("fit pairs.svm --loss logistic --method sgd", 2, "sgd needs --steps N");
    says("fit pairs.svm --loss logistic --method newton", 2, "unknown method \"newton\"; expected one of");
    place.write("one.svm", "1 1:1\n1 1:2\n");
    says("fit one.svm --loss logistic", 2, "every row has the label \"1\": there is nothing to tell apart");
    place.write("huge.svm", "1e308 1:1\n-1e308 1:2\n3 1:3\n");
    says(
        "fit huge.svm --loss least-squares",
        2,
        "some labels are 1.000e308 in size, too large to be squared",
    );
}

#[test]
fn a_run_that_does_not_get_there_is_not_a_model_unless_a_budget_was_asked_for() {
    let place = place();
    let coarse = "fit pairs.svm --loss logistic --method sgd --steps 50 --set eta=0.01 -o m.json";
    place.pasta(coarse).assert().code(4).stderr(contains("not certified: all planned steps were taken"));
    assert!(!place.path("m.json").exists());
    let bought = place.json("fit pairs.svm --loss logistic --budget 2000 --target 1e-12 -o m.json", 5);
    assert_eq!(bought["certificate"]["verdict"], "not-certified");
    assert!(bought["ledger"]["samples"].as_u64().unwrap() <= 2000);
    assert!(place.path("m.json").exists());
    // Kinks: second-order steps bound how far f is above its least value; of another method the model is kept, and nothing is claimed.
    let gap = place.json("fit plane.csv --loss absolute --ignore colour", 0);
    assert_eq!((&gap["method"], &gap["certificate"]["verdict"]), (&"exact".into(), &"certified".into()));
    assert!(gap["certificate"]["gap"].as_f64() <= gap["certificate"]["target"].as_f64());
    let kinks = place.json("fit plane.csv --loss absolute --ignore colour --budget 60000 --method auto", 4);
    assert_eq!(kinks["certificate"]["verdict"], "kinks");
    assert!(kinks["certificate"]["gap"].is_null());
}

#[test]
fn a_fit_arrives_where_every_row_begins_on_the_flat_part_of_its_loss() {
    let place = TestDir::new();
    let row =
        |k: u32| format!("{},{}\n", f64::from(k) / 7.0, 1000.0 + 3.0 * f64::from(k) + f64::from(k * k % 11));
    place.write("far.csv", &format!("x,y\n{}", (0..60).map(row).collect::<String>()));
    for (method, ran) in [("", "exact"), ("--method auto", "auto")] {
        let fitted = place.json(&format!("fit far.csv --loss huber --label y {method}"), 0);
        assert_eq!(
            (&fitted["certificate"]["verdict"], &fitted["method"]),
            (&json!("certified"), &json!(ran))
        );
    }
}

#[test]
fn models_of_another_kind_or_a_newer_format_are_refused() {
    let place = place();
    place.pasta("fit pairs.svm --loss logistic --penalty 0.1 -o m.json").assert().success();
    let model: Value = serde_json::from_str(&place.read("m.json")).unwrap();
    let refused = |change: &dyn Fn(&mut Value), what: &'static str| {
        let mut changed = model.clone();
        change(&mut changed);
        place.write("bad.json", &changed.to_string());
        place.pasta("predict bad.json pairs.svm").assert().code(2).stderr(contains(what));
    };
    refused(&|m| m["format"] = json!(2), "a model of format 2, but this program knows format 1");
    refused(&|m| m["format"] = json!("x"), "not a model of this program");
    refused(&|m| m["more"] = json!(1), "unknown field `more`");
    refused(&|m| m["weights"] = json!({"1": 0.5}), "it has not as many weights as features");
    refused(&|m| m["weights"] = json!({"1": 0.5, "3": 1}), "\"2\" has no weight");
    refused(&|m| m["intercept"] = json!([1, 2]), "the table needs 1 intercepts, but has 2");
    refused(&|m| m["classes"] = json!(["a"]), "it has not a name for each class");
    place.write("bad.json", "{\"format\": 1,");
    place.pasta("predict bad.json pairs.svm").assert().code(2).stderr(contains("not a model: EOF"));
    place.write("wide.svm", "1 1:1 3:1\n");
    place.pasta("predict m.json wide.svm").assert().code(2).stderr(contains("index 3 is beyond 2"));
}

#[test]
fn cross_validation_scores_rows_that_were_not_fitted_and_chooses_a_penalty() {
    let place = TestDir::new();
    noisy(&place);
    let fitted = place.json("fit n.csv --label y --ignore z --cv 5", 0);
    let crossed = &fitted["cross_validation"];
    assert_eq!((crossed["folds"].as_u64(), crossed["path"].as_array().unwrap().len()), (Some(5), 1));
    let (held, training) = (&crossed["path"][0]["r2"], &fitted["training"]["r2"]);
    assert!(held.as_f64().unwrap() > 0.9 && held.as_f64() < training.as_f64(), "{held} {training}");
    // Noise alone: the largest penalty does best, or nearly.
    let noise = place.json("fit n.csv --label z --ignore y --penalty auto --page p.html", 0);
    assert_eq!(noise["cross_validation"]["path"].as_array().unwrap().len(), 15);
    assert!(noise["design"]["penalty"].as_f64().unwrap() >= 0.3, "{}", noise["design"]);
    assert!(place.read("p.html").contains("Mean loss over penalties"));
    let signal = place.json("fit n.csv --label y --ignore z --penalty auto", 0);
    assert!(signal["design"]["penalty"].as_f64().unwrap() <= 0.1, "{}", signal["design"]);
    place.pasta("fit n.csv --label y --cv 61 --ignore z").assert().code(2).stderr(contains("--cv 61"));
    place.pasta("inspect n.csv --label y --penalty auto").assert().code(2).stderr(contains("chooses none"));
}

#[test]
fn inspect_goes_on_past_what_is_missing_and_past_words_and_says_how_to_fit() {
    let place = TestDir::new();
    let row = |k: u64| {
        let colour = ["red", "green", ""][(k % 3) as usize];
        let rooms = if k % 5 == 4 { String::new() } else { (k % 7).to_string() };
        format!("{colour},{rooms},{},{k}\n", noise(k))
    };
    place.write("h.csv", &format!("colour,rooms,age,my price\n{}", (0..30).map(row).collect::<String>()));
    let found = place.json("inspect h.csv --label 4", 0);
    assert_eq!(found["missing"], json!([["colour", 10], ["rooms", 6]]));
    assert_eq!(found["words"], json!([["colour", 2]]));
    let command = "pasta fit h.csv --label 4 --loss least-squares --missing median --one-hot -o model.json";
    assert_eq!(found["command"], command);
    let said = place.pasta("inspect h.csv --label 4").assert().success();
    let words = unwrapped(&said.get_output().stdout);
    assert!(words.contains("missing colour (10), rooms (6)") && words.contains(command), "{words}");
    // What it proposes runs.
    place.pasta(command.strip_prefix("pasta ").unwrap()).assert().success();
    // A label that is missing cannot be filled in.
    place.write("l.csv", "a,y\n1,2\n2,\n3,5\n4,9\n");
    let found = place.json("inspect l.csv", 0);
    assert_eq!(found["command"], "pasta fit l.csv --loss least-squares --missing drop-row -o model.json");
    // A table without gaps and words needs neither flag.
    place.write("p.csv", "a,y\n1,2\n2,3\n3,5\n4,9\n");
    assert_eq!(
        place.json("inspect p.csv", 0)["command"],
        "pasta fit p.csv --loss least-squares -o model.json"
    );
}

#[test]
fn inspect_tells_rows_labels_scales_and_the_usual_loss() {
    let place = place();
    let found = place.json("inspect plane.csv --ignore colour", 0);
    assert_eq!(
        (&found["rows"], &found["columns_in_all"], &found["loss"]),
        (&json!(60), &json!(2), &json!("least-squares"))
    );
    let b = found["columns"].as_array().unwrap().iter().find(|c| c["name"] == "b").unwrap().clone();
    assert_eq!((b["min"].as_f64(), b["max"].as_f64()), (Some(0.0), Some(4000.0)));
    // Means are taken step by step: the last digits may differ.
    assert!((b["mean"].as_f64().unwrap() - 2000.0).abs() < 1e-9);
    assert!((b["sd"].as_f64().unwrap() - 2_000_000_f64.sqrt()).abs() < 1e-6);
    let dense = place.json("inspect pairs.svm", 0);
    let sparse = place.json("inspect pairs.svm --storage sparse", 0);
    assert_eq!(dense["loss"], "logistic");
    assert_eq!(
        (&dense["labels"]["classes"], &dense["density"]),
        (&sparse["labels"]["classes"], &sparse["density"])
    );
    let printed = unwrapped(&place.pasta("inspect pairs.svm").assert().success().get_output().stdout);
    assert!(
        printed.contains("2 classes: -1 (") && printed.contains("column min max mean sd zeros"),
        "{printed}"
    );
}

const AUTO: &str = "seed = 1\n[problem]\ntable = \"data/pairs.svm\"\nloss = \"logistic\"\npenalty = 0.01\n[recipe]\nname = \"auto\"\n";

#[test]
fn every_command_works_on_a_table() {
    let place = TestDir::holding(AUTO);
    std::fs::create_dir(place.path("data")).unwrap();
    place.write("data/pairs.svm", &pairs());
    let run = place.json("solve p.toml --target 1e-5 --output run", 0);
    assert_eq!(run["certificate"]["verdict"], "certified");
    assert_eq!(run["certificate"]["basis"], "exact");
    assert_eq!(run["certificate"]["rows"], 399);
    // People read of the same pass.
    let printed = unwrapped(&place.pasta("solve p.toml --target 1e-5").output().unwrap().stdout);
    let gradient = run["certificate"]["bound"].as_f64().unwrap();
    assert!(
        printed.starts_with("certified |grad f| = ") && printed.contains("a pass over all 399 rows"),
        "{printed}"
    );
    let shown: f64 = printed.split_whitespace().nth(4).unwrap().parse().unwrap();
    assert!((gradient..1.001 * gradient).contains(&shown), "{gradient}: {printed}");
    assert!(printed.contains("weights of standardised columns"), "{printed}");
    // The folder can be used from anywhere: its file names the table from the root.
    let moved = tempfile::tempdir().unwrap();
    std::fs::rename(place.path("run"), moved.path().join("run")).unwrap();
    let folder = moved.path().join("run");
    let resumed = std::process::Command::new(PASTA).args(["resume", "--json"]).arg(&folder).output().unwrap();
    let resumed: Value = serde_json::from_slice(&resumed.stdout).unwrap();
    assert_eq!(resumed, run);
    let certified = std::process::Command::new(PASTA)
        .args(["certify", "--json", "--target", "1e-4"])
        .arg(&folder)
        .output()
        .unwrap();
    let certified: Value = serde_json::from_slice(&certified.stdout).unwrap();
    assert_eq!(certified["certificate"]["verdict"], "certified");
    place.json("certify p.toml --at 0,0,0 --target 1e-4", 4);
    let calibration = place.json("calibrate p.toml", 0);
    assert!(calibration["gradient"].as_f64().unwrap() > 0.0);
    // A loss with kinks has no smoothness, whatever samples show.
    place.write("kinks.toml", &AUTO.replace("loss = \"logistic\"", "loss = \"hinge\""));
    let kinks = place.json("calibrate kinks.toml", 0);
    let constants = kinks["constants"].as_str().unwrap();
    assert!(constants.contains("# smoothness =    # L: none exists: the loss has kinks"), "{constants}");
    assert!(!constants.contains("without a contradiction") && kinks["flight"].is_null(), "{kinks:#}");
    assert!(constants.contains("constants = \"problem\""), "{constants}");
    place.write("c.toml", &format!("{AUTO}[certificate]\ntarget = 1e-3\n"));
    let plan = place.json("plan --pilot c.toml", 0);
    assert!(plan["forecast"].is_null(), "{plan:#}");
    assert!(plan["forecast_silent"].as_str().unwrap().contains("exact passes over all rows"));
    // What is proved about the table serves a recipe.
    let recipe = "name = \"smooth\"\ntarget = 0.1\nconstants = \"problem\"";
    place.write("smooth.toml", &AUTO.replace("name = \"auto\"", recipe));
    let smooth = place.json("solve smooth.toml", 0);
    assert_eq!(smooth["promise"]["holds"], true, "{smooth}");
    let statement = smooth["promise"]["statement"].as_str().unwrap();
    assert!(!statement.contains("provided"), "{statement}");
    // A baseline too; and an interrupted budget is resumed bit for bit.
    let sgd = AUTO.replace("name = \"auto\"", "name = \"sgd\"\neta = 0.1\nsteps = 500\nbatch = 4");
    place.write("sgd.toml", &sgd);
    let whole = place.json("solve sgd.toml", 0);
    place.json("solve sgd.toml --budget 900 --output half", 5);
    assert_eq!(place.json("resume half --budget 1e6", 0)["point"], whole["point"]);
    // The fit and the solved problem are the same objective.
    let fitted = place.json("fit data/pairs.svm --loss logistic --penalty 0.01 --target 1e-5", 0);
    assert!(fitted["certificate"]["gradient"].as_f64().unwrap() <= 1e-5);
}

/// 1500 rows of about 60 signs in 600 columns: too wide for a matrix, and far from what absolute values say.
fn signs() -> String {
    let mut state = 1_u64;
    let mut below = |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    let sign = |below: &mut dyn FnMut(u64) -> u64| if below(2) == 1 { "1" } else { "-1" };
    let mut row = || {
        let mut columns: Vec<u64> = (0..60).map(|_| below(600) + 1).collect();
        columns.sort_unstable();
        columns.dedup();
        let label = sign(&mut below);
        let entries = columns.iter().map(|column| format!(" {column}:{}", sign(&mut below)));
        format!("{label}{}\n", entries.collect::<String>())
    };
    (0..1500).map(|_| row()).collect()
}

#[test]
fn constants_that_hold_with_a_probability_say_so_wherever_they_are_used() {
    let place = TestDir::new();
    place.write("signs.svm", &signs());
    let is_random = |constant: &Value| {
        let how = constant["how"].as_str().unwrap();
        assert_eq!(how.contains("except with probability 1e-12"), constant["failure"] == 1e-12, "{constant}");
        constant["failure"] == 1e-12
    };
    let found = place.json("inspect signs.svm --loss logistic", 0);
    // Independent signs, standardised: the eigenvalues end at (1 + sqrt(600/1500))^2 = 2.66, about.
    let eigenvalue = found["constants"]["eigenvalue"].as_f64().unwrap();
    assert!((2.5..2.9).contains(&eigenvalue), "{eigenvalue}");
    let constants = found["constants"]["constants"].as_array().unwrap();
    let random: Vec<_> = constants.iter().filter(|c| is_random(c)).map(|c| c["constant"].clone()).collect();
    assert_eq!(random, ["smoothness", "ms-smoothness", "lipschitz"]);
    let printed = unwrapped(&place.pasta("inspect signs.svm").assert().success().get_output().stdout);
    assert!(printed.contains("except with probability 1e-12 over its random starts"), "{printed}");
    // The model file has them too; without the flag it has none of a table of this size.
    place.pasta("fit signs.svm --loss logistic --constants -o m.json").assert().success();
    let model: Value = serde_json::from_str(&place.read("m.json")).unwrap();
    assert_eq!(model["constants"].as_array().unwrap(), constants);
    place.pasta("fit signs.svm --loss logistic -o m.json").assert().success();
    let model: Value = serde_json::from_str(&place.read("m.json")).unwrap();
    assert_eq!(model["constants"], json!([]));
    // And a promise that rests on them.
    let problem = "seed = 1\n[problem]\ntable = \"signs.svm\"\nloss = \"logistic\"\npenalty = 0.01\n";
    let recipe = "[recipe]\nname = \"smooth\"\ntarget = 0.3\nconstants = \"problem\"\n";
    place.write("p.toml", &format!("{problem}{recipe}"));
    let solved = place.json("solve p.toml", 0);
    assert_eq!(solved["promise"]["holds"], true, "{solved}");
    let statement = solved["promise"]["statement"].as_str().unwrap();
    assert!(
        statement.ends_with("if the constants hold, which they do except with probability 1e-12"),
        "{statement}"
    );
}

#[test]
fn a_changed_table_is_not_resumed() {
    let place = TestDir::holding(AUTO);
    std::fs::create_dir(place.path("data")).unwrap();
    place.write("data/pairs.svm", &pairs());
    place.json("solve p.toml --budget 2000 --output run", 0);
    place.write("data/pairs.svm", &(pairs() + "1 1:0.5\n"));
    place.pasta("resume run --budget 9000").assert().code(2).stderr(contains("checksum"));
}

#[test]
fn a_problem_file_with_a_table_is_checked_key_by_key() {
    let place = TestDir::new();
    place.write("pairs.svm", &pairs());
    let says = |old: &str, new: &str, what: &'static str| {
        let text = AUTO.replace("data/", "");
        assert!(text.contains(old));
        place.write("p.toml", &text.replace(old, new));
        place.pasta("solve p.toml --target 1e-3").assert().code(2).stderr(contains(what));
    };
    says("loss = \"logistic\"", "", "loss is missing; expected the name of a loss");
    says("\"logistic\"", "\"cubic\"", "p.toml:4: [problem] loss: unknown loss \"cubic\"");
    says("penalty = 0.01", "penalti = 1", "unknown key; expected one of table, loss");
    says("penalty = 0.01", "degree = 4", "degree: expected 1, 2 or 3, got 4");
    says("penalty = 0.01", "storage = \"thin\"", "storage: expected one of dense, sparse, got \"thin\"");
    says("penalty = 0.01", "start = [1]", "expected as many numbers as the dimension, which is 3; got 1");
    says("[recipe]", "[noise]\nfloor = 1\n[recipe]", "a table has no [noise]");
    says("pairs.svm", "none.svm", "No such file");
}

#[test]
fn a_page_shows_the_curve() {
    let place = place();
    place.pasta("fit pairs.svm --loss logistic --penalty 0.01 --page run.html").assert().success();
    let page = place.read("run.html");
    assert!(page.contains("passes over the table") && page.contains("logistic loss on pairs.svm"));
}

#[test]
fn columns_that_are_left_out_are_named_on_screen_in_json_and_in_the_model() {
    let place = place();
    let words = "fit plane.csv --loss least-squares --one-hot";
    let text = unwrapped(&place.pasta(words).assert().success().get_output().stdout);
    assert!(
        text.contains("the minimiser is not unique: rank 3 of 4; left out, with weight 0: colour="),
        "{text}"
    );
    assert!(text.contains("of colour: other words of the column are compared with it"), "{text}");
    let fitted = place.json(&format!("{words} -o model.json"), 0);
    let left_out = fitted["left_out"].as_array().unwrap();
    assert_eq!((left_out.len(), &left_out[0]["why"]), (1, &json!("dependent")));
    let model: Value = serde_json::from_str(&place.read("model.json")).unwrap();
    assert_eq!(model["left_out"], fitted["left_out"]);
    assert_eq!(model["weights"][left_out[0]["feature"].as_str().unwrap()], json!(0.0));
    place.pasta("predict model.json plane.csv").assert().success();
    // A penalty decides between them.
    assert_eq!(place.json(&format!("{words} --penalty 1e-3"), 0)["left_out"], json!([]));
}

#[test]
fn the_scale_of_a_robust_loss_follows_the_labels_and_is_said() {
    let place = TestDir::new();
    let row = |k: u32, unit: f64| {
        let error = if k.is_multiple_of(9) { 400.0 } else { f64::from(k * 31 % 13) - 6.0 };
        format!("{},{}\n", f64::from(k) / 7.0, unit * (3.0 * f64::from(k) + error))
    };
    let table = |unit: f64| format!("x,y\n{}", (0..90).map(|k| row(k, unit)).collect::<String>());
    place.write("dollars.csv", &table(1000.0));
    place.write("thousands.csv", &table(1.0));
    for loss in ["huber", "tukey"] {
        let fit = |file: &str| place.json(&format!("fit {file} --loss {loss} --label y -o model.json"), 0);
        let (dollars, thousands) = (fit("dollars.csv"), fit("thousands.csv"));
        let number = |of: &Value| of.as_f64().unwrap();
        let ratio = number(&dollars["weights"]["x"]) / number(&thousands["weights"]["x"]);
        // Gradients of a millionth of those at the start.
        assert!((ratio - 1000.0).abs() < 0.1, "{loss}: {ratio}");
        let model: Value = serde_json::from_str(&place.read("model.json")).unwrap();
        assert_eq!(model["deviation"], thousands["deviation"]);
        // Errors of -6, .., 6, which have the deviation 3.7, and a ninth far off.
        assert!((2.5..7.0).contains(&number(&thousands["deviation"])), "{thousands:#}");
        let mut said = place.pasta(&format!("fit thousands.csv --loss {loss} --label y"));
        let said = said.assert().success().stderr(contains("from the residuals"));
        assert!(unwrapped(&said.get_output().stdout).contains("from the residuals of an absolute fit"));
    }
    let given = place.json("fit dollars.csv --loss huber --delta 2 --label y", 0);
    assert_eq!((&given["loss"]["delta"], &given["deviation"]), (&json!(2.0), &Value::Null));
}

#[test]
fn an_l1_penalty_makes_weights_zero_and_bounds_are_kept() {
    let place = place();
    let fit =
        |flags: &str| place.json(&format!("fit plane.csv --loss least-squares --ignore colour {flags}"), 0);
    let weight = |result: &Value, name: &str| result["weights"][name].as_f64().unwrap();
    // The column b carries nearly all of the variance, so the lasso drops a.
    let lasso = fit("--penalty-l1 10");
    assert_eq!((weight(&lasso, "a"), &lasso["method"]), (0.0, &json!("exact")));
    assert!(
        lasso["certificate"]["gap"].as_f64().unwrap() <= lasso["certificate"]["target"].as_f64().unwrap()
    );
    assert_eq!(fit("--penalty 10 --elastic-net 1")["weights"], lasso["weights"]);
    let bounded = fit("--lower b=-1.5 --upper 2");
    // Up to the last digit, and never beyond.
    assert!(
        (-1.5..-1.5 + 1e-12).contains(&weight(&bounded, "b")) && weight(&bounded, "a") <= 2.0,
        "{bounded:#}"
    );
    let positive = fit("--non-negative");
    assert_eq!(weight(&positive, "b"), 0.0);
    assert!(positive["certificate"]["gap"].is_null());
    for (flags, words) in [
        ("--lower c=0", "--lower: there is no column \"c\""),
        ("--upper much", "--upper: expected a number or COLUMN=NUMBER"),
        ("--penalty-l1 1 --method auto", "--method: auto knows no l1 and no bounds"),
        ("--lower 1 --upper 0", "lies nowhere"),
    ] {
        let asked = format!("fit plane.csv --loss least-squares --ignore colour {flags}");
        place.pasta(&asked).assert().failure().stderr(contains(words));
    }
}
