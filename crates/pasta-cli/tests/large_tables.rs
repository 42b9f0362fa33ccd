//! Tables larger than memory, streams, second-order fits, and fits that are interrupted.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::format_collect, reason = "files of tests are made line by line")]
#![cfg(target_os = "linux")]

mod place;

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use place::{PASTA, TestDir, unwrapped};
use predicates::str::contains;
use serde_json::{Value, json};

/// A number in [-1, 1) by multiplication.
fn number(k: u64) -> f64 {
    let mixed = (k + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((mixed ^ (mixed >> 32)) >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}

/// The values and the label of a row: y = a_1 - a_2 + .. and noise.
fn row(row: u64, columns: u64) -> (Vec<f64>, f64) {
    let values: Vec<f64> = (0..columns).map(|j| number(row * (columns + 1) + j)).collect();
    let signs = values.iter().enumerate().map(|(j, v)| if j % 2 == 0 { *v } else { -v });
    let label = signs.sum::<f64>() + number(row * (columns + 1) + columns);
    (values, label)
}

fn write_pairs(to: impl std::io::Write, rows: u64, columns: u64) {
    let mut to = BufWriter::new(to);
    let mut line = String::new();
    for k in 0..rows {
        line.clear();
        let (values, label) = row(k, columns);
        let _ = write!(line, "{label:.5}");
        values.iter().zip(1..).for_each(|(value, j)| {
            let _ = write!(line, " {j}:{value:.5}");
        });
        line.push('\n');
        // A reader that ends early is seen by its exit code.
        if to.write_all(line.as_bytes()).is_err() {
            return;
        }
    }
}

fn write_array(path: &Path, shape: &str, numbers: impl Iterator<Item = f64>) {
    let mut file = BufWriter::new(File::create(path).unwrap());
    let mut header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    file.write_all(b"\x93NUMPY\x01\x00").unwrap();
    file.write_all(&(header.len() as u16).to_le_bytes()).unwrap();
    file.write_all(header.as_bytes()).unwrap();
    numbers.for_each(|number| file.write_all(&number.to_le_bytes()).unwrap());
}

/// The program with at most so many megabytes of memory of its own: heap and private maps, not files that are mapped.
fn limited(place: &TestDir, megabytes: u64, words: &str) -> Command {
    let mut command = Command::new("sh");
    let script = format!("ulimit -d {} && exec {PASTA} {words} --threads 1", 1024 * megabytes);
    command.args(["-c", &script]).current_dir(place.path(".")).stderr(Stdio::piped()).stdout(Stdio::piped());
    command
}

#[test]
fn tables_larger_than_the_memory_that_is_allowed_are_mapped_and_fitted() {
    let place = TestDir::new();
    // 32 MB of values.
    let (rows, columns) = (40_000, 100);
    write_pairs(File::create(place.path("train.svm")).unwrap(), rows, columns);
    let all = |part: fn((Vec<f64>, f64)) -> Vec<f64>| (0..rows).flat_map(move |k| part(row(k, columns)));
    write_array(&place.path("x.npy"), &format!("({rows}, {columns})"), all(|(values, _)| values));
    write_array(&place.path("y.npy"), &format!("({rows},)"), all(|(_, label)| vec![label]));
    let run = |megabytes: u64, words: &str| limited(&place, megabytes, words).output().unwrap();
    let (memory, fit) = (30, "fit train.svm --loss least-squares");
    // Without a cache there is not enough; with twice as much there is.
    assert!(!run(memory, fit).status.success());
    assert!(run(3 * memory, fit).status.success());
    let built = run(memory, &format!("{fit} --cache -o cached.json"));
    let said = String::from_utf8_lossy(&built.stderr).into_owned();
    assert!(built.status.success() && said.contains("writing the cache train.svm.cache"), "{said}");
    let again = run(memory, &format!("{fit} --cache -o again.json"));
    let said = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(again.status.success() && said.contains("mapped from the cache train.svm.cache"), "{said}");
    assert_eq!(place.read("cached.json"), place.read("again.json"));
    let mapped = run(memory, "fit x.npy --labels y.npy --loss least-squares");
    assert!(mapped.status.success(), "{}", String::from_utf8_lossy(&mapped.stderr));
}

#[test]
fn reading_needs_at_most_1_3_times_the_memory_of_the_table() {
    let place = TestDir::new();
    // 40,000 rows of 100 values of 8 bytes and a label: 32.3 million bytes.
    write_pairs(File::create(place.path("dense.svm")).unwrap(), 40_000, 100);
    // 100,000 rows of 26 values of 8 bytes, indices of 4, a place of 8 and a label: 32.8 million.
    let mut text = String::new();
    for k in 0..100_000_u64 {
        let _ = write!(text, "{:.5}", number(k));
        (0..26).for_each(|j| {
            let _ = write!(text, " {}:{:.5}", 1 + 190 * j + (k + j) % 190, number(26 * k + j));
        });
        text.push('\n');
    }
    place.write("sparse.svm", &text);
    for (file, bytes) in [("dense.svm", 32_300_000_u64), ("sparse.svm", 32_800_000)] {
        // All that the program has, not the table alone.
        let run = |bytes: u64| {
            limited(&place, bytes >> 20, &format!("inspect {file} --json")).output().unwrap().status
        };
        assert!(run(bytes * 13 / 10).success(), "{file}");
        assert!(!run(bytes * 9 / 10).success(), "{file}: the limit does not bite");
    }
}

#[test]
fn text_larger_than_half_of_the_free_memory_gets_a_cache_unasked() {
    let place = TestDir::new();
    write_pairs(File::create(place.path("a.svm")).unwrap(), 2000, 5);
    let size = std::fs::metadata(place.path("a.svm")).unwrap().len();
    let words = "fit a.svm --loss least-squares -o";
    let run = |free: &str, model: &str| {
        let mut command = place.pasta(&format!("{words} {model}"));
        command.env("PASTA_FREE_MEMORY", free);
        command.assert()
    };
    run(&(2 * size).to_string(), "read.json").success();
    assert!(!place.path("a.svm.cache").exists());
    run(&(2 * size - 2).to_string(), "mapped.json")
        .success()
        .stderr(contains("writing the cache a.svm.cache"));
    assert!(place.path("a.svm.cache/about.json").exists());
    assert_eq!(place.read("read.json"), place.read("mapped.json"));
    run("much", "never.json").code(2).stderr(contains("PASTA_FREE_MEMORY: expected a number of bytes"));
}

#[test]
fn a_cache_gives_the_same_model_and_is_written_again_when_the_text_changes() {
    let place = TestDir::new();
    // More than one block of 4 MB, and sparse; the first block has no index 0 and fewer columns.
    let mut text = String::new();
    for k in 0..300_000_u64 {
        let extra = if k > 290_000 { format!(" {}:1.5", 50 + k % 3) } else { String::new() };
        let _ = writeln!(text, "{} {}:{:.3}{extra}", k % 2, 1 + k % 40, number(k));
    }
    place.write("a.svm", &text);
    let fit = |more: &str| format!("fit a.svm --loss logistic --penalty 0.01 --target 1e-4 {more}");
    place.pasta(&fit("-o plain.json")).assert().success();
    place
        .pasta(&fit("--cache=folder -o cached.json"))
        .assert()
        .success()
        .stderr(contains("writing the cache"));
    assert_eq!(place.read("plain.json"), place.read("cached.json"));
    assert!(place.path("folder/a.svm.cache/about.json").exists());
    place.write("a.svm", &text.replacen("0 1:", "0 0:", 1));
    place.pasta(&fit("--cache=folder -o zero.json")).assert().success().stderr(contains("writing the cache"));
    let model: Value = serde_json::from_str(&place.read("zero.json")).unwrap();
    assert_eq!(model["encoding"]["numbered"], json!({ "columns": 53, "first_index": 0 }));
    // Another text of the same size, with the time of the first.
    let times = std::fs::FileTimes::new()
        .set_modified(std::fs::metadata(place.path("a.svm")).unwrap().modified().unwrap());
    place.write("a.svm", &text.replacen("0 1:", "1 0:", 1));
    File::options().append(true).open(place.path("a.svm")).unwrap().set_times(times).unwrap();
    place.pasta(&fit("--cache=folder")).assert().success().stderr(contains("writing the cache"));
    place.pasta(&fit("--cache=folder")).assert().success().stderr(contains("mapped from the cache"));
    // Rows that are dense at first, and wider later.
    let wide: String = (0..120_000_u64)
        .map(|k| {
            let extra = if k == 119_999 { " 4:1" } else { "" };
            format!(
                "{:.5} 1:{:.9} 2:{:.9} 3:{:.9}{extra}\n",
                number(k),
                number(k + 1),
                number(k + 2),
                number(k + 3)
            )
        })
        .collect();
    place.write("b.svm", &wide);
    for storage in ["", "--storage dense"] {
        let words = format!("fit b.svm --loss huber --method exact {storage}");
        place.pasta(&format!("{words} --cache -o one.json")).assert().success();
        place.pasta(&format!("{words} -o two.json")).assert().success();
        let weights = |name: &str| {
            let model: Value = serde_json::from_str(&place.read(name)).unwrap();
            model["weights"].as_object().unwrap().values().map(|w| w.as_f64().unwrap()).collect::<Vec<_>>()
        };
        // Sparse rows are added up in another order than dense ones.
        let close = weights("one.json").iter().zip(weights("two.json")).all(|(a, b)| (a - b).abs() < 1e-5);
        assert!(close && weights("one.json").len() == 4);
    }
    place.write("words.csv", "y,a\n1,red\n2,blue\n");
    let words = place.pasta("fit words.csv --loss huber --one-hot --cache").assert().code(2);
    words.stderr(contains("cannot be read through a cache"));
    let piped = place.pasta("fit - --loss huber --cache").write_stdin("1 1:1\n").assert().code(2);
    piped.stderr(contains("standard input has no file"));
}

#[test]
fn a_stream_is_learnt_in_memory_that_does_not_grow() {
    let place = TestDir::new();
    let fit = "fit - --one-pass --block 1000000 --loss least-squares -o m.json --json";
    // 15 and 60 MB of text, which would be 10 and 40 MB of values.
    for rows in [62_500, 250_000] {
        let mut child = limited(&place, 24, fit).stdin(Stdio::piped()).spawn().unwrap();
        let pipe = child.stdin.take().unwrap();
        write_pairs(pipe, rows, 20);
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{said}");
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(result["data"]["rows"], rows);
        let tail = &result["certificate"]["tail"];
        let (bound, target) =
            (tail["bound"].as_f64().unwrap(), result["certificate"]["target"].as_f64().unwrap());
        assert!(bound <= target && result["tail"]["rows"] == tail["rows"], "{result:#}");
        // The weights are 1 and -1; noise of variance 1/3 in so many rows moves each by 1/sqrt(rows), of which seven are far.
        for (weight, sign) in result["weights"].as_object().unwrap().values().zip([1.0, -1.0].iter().cycle())
        {
            let error = (weight.as_f64().unwrap() - sign).abs();
            assert!(error < 7.0 / (rows as f64).sqrt(), "{error}");
        }
    }
    // The same rows do not fit as a whole.
    let mut child = limited(&place, 24, "fit - --loss least-squares").stdin(Stdio::piped()).spawn().unwrap();
    write_pairs(child.stdin.take().unwrap(), 250_000, 20);
    assert!(!child.wait_with_output().unwrap().status.success());
}

#[test]
fn a_stream_can_be_predicted_with_and_its_faults_have_lines() {
    let place = TestDir::new();
    let rows = |from: u64, to: u64| -> String {
        (from..to)
            .map(|k| {
                let (values, label) = row(k, 3);
                format!(
                    "{},{},{},{}\n",
                    values[0],
                    values[1],
                    values[2],
                    if label > 0.0 { "yes" } else { "no" }
                )
            })
            .collect()
    };
    let text = "a,b,c,label\n".to_owned() + &rows(0, 12_000);
    let fit = "fit - --one-pass --loss logistic --block 65536 -o m.json --target 0.2 --kurtosis 20";
    let done = place.pasta(fit).write_stdin(text.clone()).assert().success();
    let said = String::from_utf8_lossy(&done.get_output().stdout).into_owned();
    assert!(said.contains("certified") && said.contains("kurtosis at most 20"), "{said}");
    place.write("new.csv", &("a,b,c,label\n".to_owned() + &rows(12_000, 14_000)));
    let score = place.json("predict m.json new.csv", 0)["score"]["accuracy"].as_f64().unwrap();
    // The noise is right nine times out of ten.
    assert!(score > 0.8, "{score}");
    // The same bits for any number of threads.
    let once = place.read("m.json");
    place.pasta(&format!("{fit} --threads 1")).write_stdin(text.clone()).assert().success();
    assert_eq!(once, place.read("m.json"));
    let refused = |text: String, what: &'static str| {
        place.pasta(fit).write_stdin(text).assert().code(2).stderr(contains(what));
    };
    refused(text.clone() + "1,2\n", "standard input:12002: 2 columns, but the first line has 4");
    refused(text.clone() + "1,2,3,maybe\n", "the label \"maybe\" is none of no, yes");
    refused("a,b,c,label\n1,2,3,yes\n1,2,4,no\n".into(), "2 rows are too few");
    refused(String::new(), "it has no rows");
    let wider = (0..20_000).map(|k| format!("{} 1:{}\n", k % 2, number(k))).collect::<String>() + "1 2:1\n";
    // A column that comes later was 0 before, unless it is said how many there are.
    let grown =
        place.pasta("fit - --one-pass --loss logistic --block 65536").write_stdin(wider.clone()).output();
    assert_ne!(grown.unwrap().status.code(), Some(2));
    let fixed = "fit - --one-pass --loss logistic --block 65536 --columns 1";
    let beyond = place.pasta(fixed).write_stdin(wider.clone()).assert().code(2);
    beyond
        .stderr(contains("standard input:20001: column 3: index 2 is beyond 1"))
        .stderr(contains("--columns N"));
    let declared = "fit - --one-pass --loss logistic --block 65536 --columns 2";
    assert_ne!(place.pasta(declared).write_stdin(wider).output().unwrap().status.code(), Some(2));
    place.pasta("fit x --one-pass --loss hinge --budget 5").assert().code(2);
    let other =
        place.pasta("fit - --one-pass --loss logistic --method exact").write_stdin("").assert().code(2);
    other.stderr(contains("does not learn in one pass"));
}

#[test]
fn a_tail_that_contradicts_its_certificate_has_none() {
    let place = TestDir::new();
    let stream = |outlier: &str| -> String {
        (0..40_000_u64)
            .map(|k| {
                let label = 2.0 * number(k) + number(k + 50_000);
                let label = if k == 39_990 { outlier.to_owned() } else { format!("{label:.6}") };
                format!("{label} 1:{:.6}\n", number(k))
            })
            .collect()
    };
    let fit = "fit - --one-pass --loss least-squares --block 200000 -o m.json";
    place.pasta(fit).write_stdin(stream("0.1")).assert().success();
    // A row of the tail whose label is 10^9 makes |grad f| over it, and with that the target; the median of means does not see it.
    let refused = place.pasta(fit).write_stdin(stream("1e9")).assert().code(4);
    let said = unwrapped(&refused.get_output().stdout);
    assert!(
        said.contains("not certified") && said.contains("no bound: the noise of the tail has kurtosis"),
        "{said}"
    );
    refused.stderr(contains("the rows that were kept back contradict"));
    let model: Value = serde_json::from_str(&place.read("m.json")).unwrap();
    assert_eq!(model["certificate"]["tail"]["bound"], Value::Null);
    assert_eq!(model["certificate"]["verdict"], "not-certified");
}

#[test]
fn a_stream_whose_start_has_no_gradient_is_certified_there() {
    let place = TestDir::new();
    let text: String = (0..40_000_u64).map(|k| format!("0 1:{:.6}\n", number(k))).collect();
    let fit = "fit - --one-pass --loss least-squares --block 65536 --json";
    let done = place.pasta(fit).write_stdin(text).assert().success();
    let result: Value = serde_json::from_slice(&done.get_output().stdout).unwrap();
    assert_eq!(
        (&result["certificate"]["verdict"], &result["weights"]["1"]),
        (&json!("certified"), &json!(0.0))
    );
    assert!(result["certificate"]["tail"]["bound"].as_f64().unwrap() <= 1e-100, "{result:#}");
}

#[test]
fn a_sorted_stream_is_not_certified() {
    let place = TestDir::new();
    // What was learnt first says the opposite of what comes last.
    let text: String = (0..40_000_u64)
        .map(|k| {
            let a = number(k);
            format!("{:.6} 1:{a:.6}\n", if k < 28_000 { 5.0 * a } else { -5.0 * a })
        })
        .collect();
    let mut command = place.pasta("fit - --one-pass --loss least-squares --block 65536 -o m.json");
    let code = command.write_stdin(text).output().unwrap().status.code();
    assert!(code == Some(3) || code == Some(4), "{code:?}");
}

#[test]
fn second_order_steps_say_so_and_refuse_what_they_cannot() {
    let place = TestDir::new();
    let text: String = (0..2000)
        .map(|k| {
            let (values, label) = row(k, 3);
            format!("{},{},{},{label}\n", values[0], 1e3 * values[1] + 1e5, values[0] + 1e-4 * values[2])
        })
        .collect();
    place.write("bad.csv", &text);
    let result = place.json("fit bad.csv --label 4 --loss least-squares --method exact -o m.json", 0);
    assert_eq!(
        (&result["method"], &result["certificate"]["verdict"]),
        (&json!("exact"), &json!("certified"))
    );
    assert!(result["passes"].as_f64().unwrap() < 10.0, "{result:#}");
    let refuse = |words: &str, what: &'static str| {
        place.pasta(words).assert().code(2).stderr(contains(what));
    };
    refuse("fit bad.csv --label 4 --loss tukey --method exact", "not smooth and convex");
    refuse("fit bad.csv --label 4 --loss huber --method exact --steps 5", "ends by itself");
    // Weights of 10^4 leave slopes of a narrow smoothing few digits: the bound with kinks is by corrected ones.
    let kinks = place.json("fit bad.csv --label 4 --loss absolute", 0);
    assert!(kinks["passes"].as_f64().unwrap() < 1000.0, "{kinks:#}");
    let by_auto = place.json("fit bad.csv --label 4 --loss absolute --method auto", 4);
    let objective = |result: &Value| result["certificate"]["objective"].as_f64().unwrap();
    assert!(objective(&kinks) < objective(&by_auto) + 1e-6, "{kinks:#} {by_auto:#}");
}

#[test]
fn quasi_separation_and_counts_without_a_minimiser_get_a_verdict() {
    let place = TestDir::new();
    let rows = "1,0,1\n1,0,0\n0,0,1\n0,0,0\n1,1,1\n2,1,1\n3,1,1\n2,0,0\n3,0,1\n";
    place.write("q.csv", rows);
    for method in ["auto", "exact"] {
        let words = format!("fit q.csv --label 3 --loss logistic -o m.json --method {method}");
        place.pasta(&words).assert().code(3).stderr(contains("quasi-separation"));
    }
    place.write("p.csv", "1,0,1\n1,0,0\n0,0,1\n0,0,0\n1,1,0\n2,1,0\n3,1,0\n2,0,2\n3,0,1\n");
    let words = "fit p.csv --label 3 --loss poisson -o m.json";
    place.pasta(words).assert().code(3).stderr(contains("labels are zero wherever some columns are not"));
    assert!(!place.path("m.json").exists());
    place.pasta(&format!("{words} --penalty 1e-3")).assert().success();
    // No penalty on the weights stops an intercept that all labels push one way.
    place.write("z.csv", "1,0\n2,0\n4,0\n3,0\n");
    let zeros = "fit z.csv --label 2 --loss poisson --penalty 1e-3";
    place.pasta(zeros).assert().code(3).stderr(contains("all labels ask for the same"));
    place.write("s.csv", "1,1\n2,1\n-4,0\n-3,0\n");
    let separated = "fit s.csv --label 2 --loss sigmoid";
    place.pasta(separated).assert().code(3).stderr(contains("the classes can be separated"));
}

#[test]
fn an_interrupted_fit_goes_on_to_the_same_model() {
    let place = TestDir::new();
    write_pairs(File::create(place.path("a.svm")).unwrap(), 20_000, 20);
    // Kinks: more than a hundred passes.
    let words = "fit a.svm --loss absolute -o m.json";
    place.pasta(words).assert().success();
    let whole = place.read("m.json");
    std::fs::remove_file(place.path("m.json")).unwrap();
    let child = Command::new(PASTA)
        .args(words.split(' '))
        .current_dir(place.path("."))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut child = child;
    // Its first line comes when the run begins.
    let mut said = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut said, &mut line).unwrap();
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    std::io::Read::read_to_string(&mut said, &mut line).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{line}");
    // Before the first round there is nothing to go on with.
    if line.contains("--resume m.json.checkpoint") {
        place
            .pasta(&format!("{words} --seed 2 --resume m.json.checkpoint"))
            .assert()
            .code(2)
            .stderr(contains("a checkpoint of another command: --seed was 1, and is 2\n"));
        place.pasta(&format!("{words} --resume m.json.checkpoint")).assert().success();
        assert_eq!(place.read("m.json"), whole);
        assert!(!place.path("m.json.checkpoint").exists());
    } else {
        assert!(line.contains("nothing was written"), "{line}");
    }
}
