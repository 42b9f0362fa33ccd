//! What reading a table must not do in silence: lose a column, drop a line, change a result by looking at it, take all memory.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::format_collect, reason = "files of tests are made line by line")]

mod place;

use std::fs;

use place::{TestDir, unwrapped};
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;

/// A number in [-1, 1) by multiplication.
fn number(k: u64) -> f64 {
    let mixed = (k + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((mixed ^ (mixed >> 32)) >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}

/// y = a + 3 b and noise; b is 5 before the row `on`.
fn switched_on(rows: u64, on: u64) -> String {
    let line = |k: u64| {
        let (a, b) = (number(2 * k), if k < on { 5.0 } else { 5.0 + 10.0 * number(2 * k + 1) });
        format!("{:.5},{a:.5},{b:.5}\n", a + 3.0 * b + 0.1 * number(k + (1 << 40)))
    };
    "y,a,b\n".to_owned() + &(0..rows).map(line).collect::<String>()
}

const ONE_PASS: &str = "fit - --one-pass --block 65536 --loss least-squares";

#[test]
fn a_column_that_begins_late_in_a_stream_is_learnt() {
    let place = TestDir::new();
    let done = place.pasta(&format!("{ONE_PASS} --json")).write_stdin(switched_on(40_000, 20_000)).assert();
    let result: Value = serde_json::from_slice(&done.success().get_output().stdout).unwrap();
    assert!(result["tail"]["r2"].as_f64().unwrap() > 0.999, "{result:#}");
    // The noise has deviation 0.06: in 20,000 rows of deviation 5.8 it moves the weight by 1e-4.
    assert!((result["weights"]["b"].as_f64().unwrap() - 3.0).abs() < 1e-3);
    assert!((result["weights"]["a"].as_f64().unwrap() - 1.0).abs() < 5e-3);
    assert_eq!(result["certificate"]["verdict"], "certified");
}

#[test]
fn a_column_that_only_the_end_of_a_stream_shows_is_not_certified() {
    let place = TestDir::new();
    // The tail is the last block, some 2,400 rows.
    let text = switched_on(40_000, 38_500);
    let done = place.pasta(&format!("{ONE_PASS} -o m.json")).write_stdin(text).assert().code(4);
    let said = unwrapped(&done.get_output().stdout);
    assert!(said.contains("no bound: 1 column (b) varies in the tail alone"), "{said}");
    let model: Value = serde_json::from_str(&place.read("m.json")).unwrap();
    assert_eq!(model["certificate"]["tail"]["bound"], Value::Null);
}

#[test]
fn new_words_and_new_columns_of_a_stream_are_learnt() {
    let place = TestDir::new();
    // y is 1, 2 or 3 by the colour, 10 times a, and noise; green comes late.
    let line = |k: u64| {
        let (a, late) = (number(k), k > 15_000 && k.is_multiple_of(3));
        let (colour, y) = if late { ("green", 3.0) } else { [("red", 1.0), ("blue", 2.0)][k as usize % 2] };
        format!("{:.5},{colour},{a:.5}\n", y + 10.0 * a + 0.1 * number(k + (1 << 40)))
    };
    let text = "y,c,a\n".to_owned() + &(0..40_000).map(line).collect::<String>();
    let fit = format!("{ONE_PASS} --one-hot -o m.json --json");
    let done = place.pasta(&fit).write_stdin(text).assert().success();
    let result: Value = serde_json::from_slice(&done.get_output().stdout).unwrap();
    assert!(result["tail"]["r2"].as_f64().unwrap() > 0.999, "{result:#}");
    place.write("new.csv", "c,a\ngreen,0\nred,0\nblue,1\n");
    let predicted = place.pasta("predict m.json new.csv").assert().success();
    let text = String::from_utf8_lossy(&predicted.get_output().stdout).into_owned();
    for (line, expected) in text.lines().zip([3.0, 1.0, 12.0]) {
        assert!((line.parse::<f64>().unwrap() - expected).abs() < 0.02, "{text}");
    }
    let line = |k: u64| {
        let a = number(k);
        let late = if k > 15_000 { format!(" 4:{:.5}", number(k + 7)) } else { String::new() };
        let y = a + if k > 15_000 { -2.0 * number(k + 7) } else { 0.0 } + 0.1 * number(k + (1 << 40));
        format!("{y:.5} 1:{a:.5}{late}\n")
    };
    let text: String = (0..40_000).map(line).collect();
    let done = place.pasta(&format!("{ONE_PASS} --json")).write_stdin(text).assert().success();
    let result: Value = serde_json::from_slice(&done.get_output().stdout).unwrap();
    assert!((result["weights"]["4"].as_f64().unwrap() + 2.0).abs() < 0.01, "{result:#}");
    assert!(result["weights"]["3"] == 0.0 && result["tail"]["r2"].as_f64().unwrap() > 0.99);
}

/// Labels in one tail row that are far out change |grad f| over it, and the target no longer.
#[test]
fn the_target_of_a_stream_comes_from_other_rows_than_those_that_certify() {
    let place = TestDir::new();
    let target = |outlier: &str| {
        let line = |k: u64| {
            let y = if k == 39_990 { outlier.to_owned() } else { format!("{:.5}", 2.0 * number(k)) };
            format!("{y} 1:{:.5}\n", number(k))
        };
        let text: String = (0..40_000).map(line).collect();
        let output = place.pasta(&format!("{ONE_PASS} --json")).write_stdin(text).output().unwrap();
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        result["certificate"]["target"].as_f64().unwrap()
    };
    assert_eq!(target("0.1").to_bits(), target("1e3").to_bits());
}

#[test]
fn features_with_one_name_are_refused_where_they_are_fitted() {
    let place = TestDir::new();
    place.write("words.csv", "y,c,c=r\n1,r,2\n2,b,3\n3,r,5\n");
    let words = place.pasta("fit words.csv --loss least-squares --one-hot -o m.json").assert().code(2);
    words.stderr(contains("two features would be called \"c=r\"").and(contains("--ignore")));
    let rows: String = (0..40).map(|k| format!("{},{},{},{}\n", k % 5, k % 3, k % 7, k % 4)).collect();
    place.write("products.csv", &("y,a,b,a*b\n".to_owned() + &rows));
    for more in ["", "--one-pass"] {
        let fit = format!("fit products.csv --loss least-squares --degree 2 --penalty 1e-3 {more} -o m.json");
        place.pasta(&fit).assert().code(2).stderr(contains("two features would be called \"a*b\""));
    }
    assert!(!place.path("m.json").exists());
    place.pasta("fit products.csv --loss least-squares -o m.json").assert().success();
    place.pasta("predict m.json products.csv").assert().success();
}

#[test]
fn predictions_keep_the_lines_of_their_rows_and_filled_cells_are_counted() {
    let place = TestDir::new();
    let rows: String = (0..40).map(|k| format!("{},{k},{}\n", 2 * k, k % 7)).collect();
    place.write("t.csv", &("y,a,b\n".to_owned() + &rows));
    place.pasta("fit t.csv --loss least-squares -o m.json").assert().success();
    place.write("new.csv", "a,b\n,1\n1,1\nNA,2\n2,\n3,3\n");
    let done = place.pasta("predict m.json new.csv --missing drop-row").assert().success();
    let text = String::from_utf8_lossy(&done.get_output().stdout).into_owned();
    let is_missing: Vec<bool> = text.lines().map(|line| line == "NA").collect();
    assert_eq!(is_missing, [true, false, true, true, false]);
    done.stderr(contains("new.csv: 3 rows with a missing value: NA in the output"));
    let json = place.json("predict m.json new.csv --missing drop-row", 0);
    assert_eq!((&json["rows"], &json["left_out"]), (&5.into(), &3.into()));
    assert!(json["predictions"][0].is_null() && json["predictions"][4].is_f64());
    place.pasta("predict m.json new.csv --missing drop-row -o p.npy").assert().success();
    let numbers = fs::read(place.path("p.npy")).unwrap();
    assert!(f64::from_le_bytes(*numbers.last_chunk().unwrap()).is_finite());
    assert_eq!(numbers.len() % 64, 5 * 8);
    place.write("gaps.csv", &("y,a,b\n1,,2\n2,3,\n3,,\n".to_owned() + &rows));
    let fit =
        place.pasta("fit gaps.csv --loss least-squares --missing mean -o filled.json").assert().success();
    fit.stderr(contains("gaps.csv: 4 missing cells filled in"));
    let predict = place.pasta("predict filled.json new.csv").assert().success();
    predict.stderr(contains("new.csv: 3 missing cells filled in"));
    let text: String =
        (0..40).map(|k| format!("{},{},{}\n", ["u", "v"][k % 2], (k * k) % 11, k % 7)).collect();
    place.write("classes.csv", &("y,a,b\n".to_owned() + &text));
    place.pasta("fit classes.csv --loss logistic --penalty 1e-3 -o c.json").assert().success();
    let chances = place.pasta("predict c.json new.csv --missing drop-row --probabilities").assert().success();
    assert_eq!(String::from_utf8_lossy(&chances.get_output().stdout).lines().nth(1), Some("NA,NA"));
}

#[test]
fn a_page_changes_nothing() {
    let place = TestDir::new();
    let line = |k: u64| {
        let (a, b) = (number(3 * k), number(3 * k + 1));
        format!("{},{a},{}\n", if a - b + number(3 * k + 2) > 0.0 { "u" } else { "v" }, 100.0 * b)
    };
    place.write("t.csv", &("y,a,b\n".to_owned() + &(0..300).map(line).collect::<String>()));
    for (more, code) in
        [("", 0), ("--method auto", 0), ("--method auto --budget 2000", 5), ("--budget 6000", 0)]
    {
        let fit = format!("fit t.csv --loss logistic {more}");
        let plain = place.json(&format!("{fit} -o plain.json"), code);
        let with = place.json(&format!("{fit} --page page.html -o page.json"), code);
        assert_eq!((&plain["passes"], &plain["ledger"]), (&with["passes"], &with["ledger"]), "{more}");
        assert_eq!(place.read("plain.json"), place.read("page.json"), "{more}");
    }
    assert!(place.read("page.html").contains("</html>"));
}

#[test]
fn a_table_that_takes_more_memory_than_it_may_is_refused() {
    let place = TestDir::new();
    let rows: String = (0..40_000).map(|k| format!("{},{k},{}\n", 2 * k, k % 7)).collect();
    let said = |words: &str, text: &str| {
        let failed = place.pasta(words).write_stdin(text.to_owned()).assert().code(1);
        String::from_utf8_lossy(&failed.get_output().stderr).into_owned()
    };
    let fit = said("fit - --loss least-squares --label 1 --memory 100K", &rows);
    assert!(
        fit.contains("bytes of memory, and the limit is 102400") && fit.contains("--memory SIZE"),
        "{fit}"
    );
    said("inspect - --label 1 --memory 0.1M", &rows);
    place.pasta("fit - --loss least-squares --label 1 --memory 3M").write_stdin(rows).assert().success();
    place.pasta("fit - --loss least-squares --memory 3X").assert().code(2).stderr(contains("such as 500M"));
    // A table of 34 bytes that would be 5 GB.
    place.write("wide.svm", "1 1:1\n0 167000000:1\n1 2:1 3:1\n");
    let wide = place.pasta("fit wide.svm --loss logistic").assert().code(2);
    wide.stderr(contains("index 167000000 makes").and(contains("--columns N")));
    let declared =
        place.pasta("fit wide.svm --loss logistic --columns 167000000 --memory 4G").assert().code(1);
    declared.stderr(contains("a fit of 167000000 columns takes about"));
    place.pasta("fit wide.svm --loss logistic --columns 0 --first-index 0").assert().code(2);
    if cfg!(unix) {
        place.pasta("inspect /dev/zero").assert().code(2).stderr(contains("longer than 67108864 bytes"));
    }
}

#[test]
fn a_flipped_bit_in_a_cache_is_no_certificate() {
    let place = TestDir::new();
    let rows: String =
        (0..400).map(|k| format!("{} 1:{} 2:{}\n", k % 2, number(k), number(k + 999))).collect();
    place.write("t.svm", &rows);
    let fit = "fit t.svm --loss logistic --cache";
    place.pasta(fit).assert().success();
    place.pasta(fit).assert().success();
    let file = place.path("t.svm.cache/values");
    let mut bytes = fs::read(&file).unwrap();
    bytes[1000] ^= 0x40;
    fs::write(&file, bytes).unwrap();
    let damaged = place.pasta(fit).assert().code(1);
    damaged.stderr(
        contains("t.svm.cache is damaged").and(contains("values")).and(contains("delete the folder")),
    );
}
