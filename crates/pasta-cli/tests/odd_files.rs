//! Odd files and slips in names: a clear sentence, the right exit code, and nothing of the user's written over.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod place;

use std::fs;

use place::{BOWL, TestDir, with};
use predicates::str::contains;

/// y = 2 a - b, where b is not a multiple of a.
fn rows(count: u32) -> String {
    let row = |k: u32| {
        let (a, b) = (k * 7919 % 101, k * 31 % 13);
        format!("{},{a},{b}\n", 2 * i64::from(a) - i64::from(b))
    };
    (0..count).map(row).collect()
}

fn place() -> TestDir {
    let place = TestDir::new();
    place.write("a.csv", &format!("Price,a,b\n{}", rows(60)));
    place.pasta("fit a.csv --loss least-squares --label Price -o m.json").assert().success();
    place
}

#[test]
fn a_name_that_is_close_to_another_gets_a_hint() {
    let place = place();
    let says = |words: &str, hint: &str| {
        place.pasta(words).assert().code(2).stderr(contains(format!("hint: did you mean {hint}?")));
    };
    says("fit a.csv --loss least-squares --label price", "Price");
    says("fit a.csv --loss leastsquares --label Price", "least-squares");
    says("inspect a.csv --label Prise", "Price");
    place.write("n.csv", "A,b\n1,2\n");
    says("predict m.json n.csv", "a");
    let far = place.pasta("fit a.csv --loss least-squares --label colour").assert().code(2);
    assert!(!String::from_utf8_lossy(&far.get_output().stderr).contains("did you mean"));
    place.write("p.toml", &with(BOWL, "target = 0.5", "tagret = 0.5"));
    says("solve p.toml", "target");
    place.write("p.toml", &with(BOWL, "name = \"smooth\"", "name = \"smoth\""));
    says("solve p.toml", "smooth");
}

#[test]
fn predictions_are_made_where_labels_are_missing_or_of_another_kind() {
    let place = place();
    let expected = "0\n1\n";
    place.write("n.csv", "a,b\n0,0\n1,1\n");
    let numbers = |file: &str| {
        let output = place.pasta(&format!("predict m.json {file}")).assert().success().get_output().clone();
        let lines = String::from_utf8_lossy(&output.stdout).into_owned();
        let close = lines.lines().zip(expected.lines()).all(|(a, b)| {
            let [a, b] = [a, b].map(|n| n.parse::<f64>().unwrap_or(f64::NAN));
            (a - b).abs() < 1e-9
        });
        assert!(close && lines.lines().count() == 2, "{lines}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert_eq!(numbers("n.csv"), "");
    place.write("n.csv", "Price,a,b\n,0,0\n1,1,1\n");
    assert_eq!(numbers("n.csv"), "");
    place.write("n.csv", "Price,a,b\ncheap,0,0\ndear,1,1\n");
    assert!(numbers("n.csv").contains("no score: labels are numbers here"));
    place.write("n.csv", "a,b\n1,\n");
    let refused = place.pasta("predict m.json n.csv --missing mean").assert().code(2);
    refused.stderr(contains("the model has none to put there"));
    place.write("n.csv", "a,b\n1,1\n1e308,-1e308\n");
    place.pasta("predict m.json n.csv").assert().code(2).stderr(contains("row 2: its values are too large"));
}

#[test]
fn a_label_that_becomes_a_word_late_in_a_stream_is_no_number() {
    let place = TestDir::new();
    let text = format!("y,a,b\n{}cheap,1,2\n", rows(20_000));
    let fit = "fit - --one-pass --loss least-squares --block 65536 -o m.json";
    place
        .pasta(fit)
        .write_stdin(text)
        .assert()
        .code(2)
        .stderr(contains("but \"y\" holds words such as \"cheap\""));
    assert!(!place.path("m.json").exists());
}

#[test]
fn nothing_that_is_read_is_written_over() {
    let place = place();
    let kept = [place.read("a.csv"), place.read("m.json")];
    let says = |words: &str, what: &str| {
        place.pasta(words).assert().code(2).stderr(contains(what));
    };
    says("predict m.json a.csv -o a.csv", "--output: a.csv would write over a.csv");
    says("predict m.json a.csv -o ./m.json", "would write over m.json");
    says("fit a.csv --one-pass --loss least-squares --label Price -o a.csv", "would write over a.csv");
    says("predict m.json a.csv -o -", "--output: - is not a file");
    says("predict m.json a.csv -o .", "--output: . is a folder");
    says("predict m.json a.csv -o nowhere/b.txt", "--output: there is no folder nowhere to write into");
    let fit = "fit a.csv --loss least-squares --label Price";
    says(&format!("{fit} -o no/where/m.json"), "--output: there is no folder no/where to write into");
    says(&format!("{fit} --one-pass -o nowhere/m.json"), "hint: mkdir -p nowhere");
    says(&format!("{fit} --page nowhere/p.html"), "--page: there is no folder nowhere");
    assert!(!place.path("nowhere").exists() && !place.path("no").exists());
    assert_eq!(kept, [place.read("a.csv"), place.read("m.json")]);
}

#[cfg(unix)]
#[test]
fn an_output_that_is_a_link_stays_a_link() {
    let place = place();
    place.write("file.txt", "old");
    std::os::unix::fs::symlink("file.txt", place.path("link.txt")).expect("a link");
    place.pasta("predict m.json a.csv -o link.txt").assert().success();
    assert!(fs::symlink_metadata(place.path("link.txt")).is_ok_and(|about| about.is_symlink()));
    assert_eq!(place.read("file.txt").lines().count(), 60);
}

#[test]
fn a_header_with_numbers_is_one_and_the_first_line_says_what_was_taken_for_it() {
    let place = TestDir::new();
    let body = rows(60);
    let said = |head: &str, more: &str, what: &str| {
        let text = format!("{head}{body}");
        for order in ["fit - --loss least-squares", "fit - --loss least-squares --one-pass", "inspect -"] {
            let output = place.pasta(&format!("{order} {more}")).write_stdin(text.clone()).assert();
            let output = output.get_output().clone();
            let all = String::from_utf8_lossy(&[output.stderr, output.stdout].concat()).into_owned();
            assert!(all.contains(what), "{order}: {all}");
            assert_eq!(what.is_empty(), !all.contains("header"), "{order}: {all}");
        }
    };
    said("400,410,y\n", "", ", the first line is a header");
    said("400,410,5\n", "--label 3", ", no header");
    said("400,410,5\n", "--label 5 --header yes", ", the first line is a header");
    said("a,b,y\n", "", "");
}
