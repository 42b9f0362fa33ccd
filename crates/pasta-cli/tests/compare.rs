//! `pasta compare` from outside: who runs, what is counted, what is written, and what is refused.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod place;

use place::{BOWL, SGD, TestDir, with};
use predicates::str::contains;
use serde_json::Value;

fn row<'a>(answer: &'a Value, method: &str, batch: Option<u64>) -> &'a Value {
    let rows = answer["methods"].as_array().unwrap();
    let found = rows.iter().find(|row| row["method"] == method && row["batch"].as_u64() == batch);
    found.unwrap_or_else(|| panic!("no {method} ({batch:?}) in {answer}"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

#[test]
fn all_methods_that_need_nothing_run_with_both_batches_and_the_file_s_own_once() {
    let place = TestDir::holding(BOWL);
    let answer = place.json("compare p.toml --budget 2000 --seeds 3", 0);
    assert_eq!((answer["format"].as_u64(), answer["judged_by"].as_str()), (Some(2), Some("formula")));
    let rows = answer["methods"].as_array().unwrap();
    // Nine methods with two batches (sps needs losses, which additive noise does not have), auto, and smooth.
    assert_eq!(rows.len(), 9 * 2 + 2, "{answer}");
    assert_eq!(row(&answer, "smooth", None)["entry"], "file");
    for row in rows {
        let runs = row["runs"].as_array().unwrap();
        assert_eq!(runs.len(), 3);
        assert!(runs.iter().all(|run| run["samples"].as_u64().unwrap() <= 2000), "{row}");
        assert_eq!(row["samples_to_target"], Value::Null);
    }
    assert_eq!(row(&answer, "auto", None)["worse"], 0);
}

#[test]
fn with_a_target_a_run_ends_when_it_is_there_and_recipes_are_planned_for_it() {
    let place = TestDir::holding(BOWL);
    let answer = place.json("compare p.toml --target 0.3 --seeds 4 --methods auto,dog,smooth,pl", 0);
    for (method, batch) in
        [("auto", None), ("dog", Some(1)), ("dog", Some(8)), ("smooth", None), ("pl", None)]
    {
        let row = row(&answer, method, batch);
        for run in row["runs"].as_array().unwrap().iter().filter(|run| !run["reached"].is_null()) {
            assert!(number(&run["gradient"]) <= 0.3, "{row}");
            assert_eq!(run["reached"], run["samples"]);
        }
    }
    let auto = row(&answer, "auto", None);
    assert_eq!(auto["reached"], 4);
    let interval = &auto["samples_to_target"];
    assert!(
        number(&interval["low"]) <= number(&interval["mean"])
            && number(&interval["mean"]) <= number(&interval["high"])
    );
    // pl is not the file's, so it rests on what is proved.
    assert_eq!(
        (&row(&answer, "pl", None)["entry"], &row(&answer, "smooth", None)["entry"]),
        (&"proved".into(), &"file".into())
    );
}

#[test]
fn where_only_samples_are_known_a_certificate_says_when_a_run_is_there() {
    let hidden = with(BOWL, "start = [1.2]", "start = [1.2]\nformulas = false");
    let hidden = with(
        &hidden,
        "constants = \"problem\"",
        "constants = { smoothness = 3.0, gap = 1.6, growth = 9.0, floor = 1.0 }",
    );
    let place = TestDir::holding(&hidden);
    let words = "compare p.toml --target 0.5 --budget 100000 --seeds 2 --methods auto,dog";
    place.pasta(words).assert().code(2).stderr(contains("kurtosis = 100"));
    place.write("p.toml", &format!("{hidden}\n[certificate]\nkurtosis = 100\n"));
    let answer = place.json(words, 0);
    assert_eq!(answer["judged_by"], "samples");
    let auto = row(&answer, "auto", None);
    for run in auto["runs"].as_array().unwrap() {
        let certified = run["stop"] == "certified";
        assert_eq!(certified, !run["reached"].is_null(), "{run}");
    }
    assert!(auto["reached"].as_u64().unwrap() >= 1, "{auto}");
}

#[test]
fn a_grid_adds_the_best_and_the_median_of_every_method_with_a_step_size() {
    let place = TestDir::holding(SGD);
    let answer = place.json("compare p.toml --budget 500 --seeds 2 --methods auto,sgd,clipped-sgd --grid", 0);
    let entries = |method: &str| -> Vec<(String, f64)> {
        let rows = answer["methods"].as_array().unwrap().iter().filter(|row| row["method"] == method);
        rows.map(|row| {
            (
                row["entry"].as_str().unwrap().to_owned(),
                row["gradient"]["mean"].as_f64().unwrap_or(f64::INFINITY),
            )
        })
        .collect()
    };
    let clipped = entries("clipped-sgd");
    assert_eq!(
        clipped.iter().map(|(entry, _)| entry.as_str()).collect::<Vec<_>>(),
        ["grid-best", "grid-median"]
    );
    assert!(clipped[0].1 <= clipped[1].1);
    let mut names: Vec<_> = entries("sgd").into_iter().map(|(entry, _)| entry).collect();
    names.sort();
    assert_eq!(names, ["file", "grid-best", "grid-median", "untuned", "untuned"]);
    assert_eq!(entries("auto").len(), 1);
}

#[test]
fn one_thread_and_three_write_the_same_bytes() {
    let place = TestDir::holding(BOWL);
    let words = "compare p.toml --target 0.4 --budget 3000 --seeds 3 --grid --methods auto,adam,dog";
    for threads in ["1", "3"] {
        let files = format!("--csv runs{threads}.csv --page page{threads}.html --threads {threads}");
        let out =
            place.pasta(&format!("{words} {files} --json")).assert().success().get_output().stdout.clone();
        place.write(&format!("answer{threads}.json"), &String::from_utf8(out).unwrap());
    }
    for name in ["answer?.json", "runs?.csv", "page?.html"] {
        let [one, three] = ["1", "3"].map(|threads| place.read(&name.replace('?', threads)));
        assert!(!one.is_empty() && one == three, "{name}");
    }
    let csv = place.read("runs1.csv");
    // auto, two batches of adam and dog, best and median of adam's grid; three seeds each; and the header.
    assert_eq!(csv.lines().count(), 1 + 3 * (1 + 2 + 2 + 2));
    let page = place.read("page1.html");
    assert!(page.contains("<svg") && page.contains("On the way"));
}

#[test]
fn tables_fit_and_a_run_that_diverges_is_counted_and_not_hidden() {
    let wild = with(SGD, "growth = 0.5", "growth = 40.0");
    let place = TestDir::holding(&wild);
    let output =
        place.pasta("compare p.toml --budget 20000 --seeds 3 --methods dog,prodigy,auto").assert().success();
    let text = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let answer = place.json("compare p.toml --budget 20000 --seeds 3 --methods dog,prodigy,auto", 0);
    assert_eq!(
        (&row(&answer, "auto", None)["diverged"], &row(&answer, "auto", None)["worse"]),
        (&0.into(), &0.into())
    );
    let failed = |row: &Value| row["diverged"].as_u64().unwrap() + row["worse"].as_u64().unwrap();
    let dog = row(&answer, "dog", Some(1));
    assert!(failed(dog) > 0, "B = 40 is more than DoG bears: {dog}");
    let interval = dog["failure"].as_array().unwrap();
    assert!(number(&interval[0]) > 0.0 && number(&interval[1]) <= 1.0);
}

#[test]
fn what_cannot_be_compared_is_refused_with_a_way_out() {
    let place = TestDir::holding(BOWL);
    for (words, told) in [
        ("compare p.toml", "--target"),
        ("compare p.toml --budget 0", "at least 1"),
        ("compare p.toml --target -1", "positive"),
        ("compare p.toml --budget 100 --methods adamw", "schedule-free-adamw"),
        ("compare p.toml --budget 100 --methods clipped-sgd", "--grid"),
        ("compare p.toml --budget 100 --methods sps", "losses"),
        ("compare p.toml --budget 100 --methods smooth-convex", "smooth-convex"),
        ("compare q.toml --budget 100", "q.toml"),
    ] {
        place.pasta(words).assert().code(2).stdout("").stderr(contains(told));
    }
}
