//! The contract of `pasta solve` and `pasta resume`, from outside: exit codes, messages, files, bits.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod place;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{self, Child, ChildStderr, Stdio};

use assert_cmd::Command;
use place::{BOWL, DECLARED, PASTA, SGD, TestDir, unwrapped, with};
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;

impl TestDir {
    fn spawn(&self, words: &str) -> Running {
        let mut command = process::Command::new(PASTA);
        command.args(words.split_whitespace()).current_dir(self.0.path());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(child.stderr.take().unwrap());
        Running(child, said)
    }

    /// The data of a section of a checkpoint, once there is one.
    fn section(&self, folder: &str, names: &[&str]) -> Option<Value> {
        let bytes = fs::read(self.path(folder).join("checkpoint.pasta")).ok()?;
        let header: Value = serde_json::from_slice(bytes.split(|b| *b == b'\n').nth(1).unwrap()).unwrap();
        let mut sections = header["sections"].as_array().unwrap().iter();
        Some(
            sections.find(|section| names.iter().any(|name| section["name"] == *name)).unwrap()["data"]
                .clone(),
        )
    }

    fn checkpoint_step(&self, folder: &str) -> Option<u64> {
        self.section(folder, &["pasta", "baseline"])?[1]["step"].as_u64()
    }

    fn checkpoint_samples(&self, folder: &str) -> u64 {
        self.section(folder, &["gate"]).unwrap()["ledger"]["samples"].as_u64().unwrap()
    }
}

/// A child that a failing test does not leave behind.
struct Running(Child, BufReader<ChildStderr>);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// Waits until the checkpoint in `folder` has come to `step`. The program may take as long as it likes, but
    /// not for ever.
    fn until(&mut self, place: &TestDir, folder: &str, step: u64) {
        for _ in 0..10_000_000 {
            if place.checkpoint_step(folder).is_some_and(|at| at >= step) {
                return;
            }
            assert!(self.0.try_wait().unwrap().is_none(), "the run ended before step {step}");
            std::thread::yield_now();
        }
        panic!("the run did not come to step {step}");
    }

    fn signal(&self, name: &str) {
        let pid = self.0.id().to_string();
        assert!(process::Command::new("kill").args([name, &pid]).status().unwrap().success());
    }

    /// Waits for the next line on stderr.
    fn read_line(&mut self, beginning: &str) {
        let mut line = String::new();
        self.1.read_line(&mut line).unwrap();
        assert!(line.starts_with(beginning), "{line}");
    }

    /// The exit code and the rest of what was said on stderr.
    fn end(mut self) -> (Option<i32>, String) {
        let said = std::io::read_to_string(&mut self.1).unwrap();
        (self.0.wait().unwrap().code(), said)
    }
}

/// Numbers that look random and are the same every time.
fn scattered(seed: u64, below: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(seed), |s| Some(s.wrapping_mul(6364136223846793005).wrapping_add(1)))
        .skip(1)
        .map(move |s| (s >> 33) % below)
}

// ---------------------------------------------------------------------------------------------------------
// Solving.

#[test]
fn every_example_ends_with_the_exit_code_that_it_documents() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut seen = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "toml") {
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("# Exit code ").nth(1).unwrap()[..1].parse::<i32>().unwrap();
            let output = Command::new(PASTA).arg("solve").arg(&path).arg("--json").output().unwrap();
            assert_eq!(output.status.code(), Some(code), "{}", path.display());
            let result: Value = serde_json::from_slice(&output.stdout).unwrap();
            // What ends well is worth something: by a theorem, or by a certificate.
            let promised = result["promise"]["holds"] == true;
            let certified = result["certificate"]["verdict"] == "certified";
            assert_eq!(promised || certified, code == 0, "{}", path.display());
            seen += 1;
        }
    }
    assert!(seen >= 4);
}

#[test]
fn the_table_goes_to_stdout_and_a_quiet_run_says_nothing_on_stderr() {
    let place = TestDir::holding(BOWL);
    let promise = "E |grad f|^2 <= 0.25 for an iterate drawn uniformly";
    place
        .pasta("solve p.toml")
        .assert()
        .code(0)
        .stdout(contains("smooth").and(contains(promise)).and(contains("all planned steps were taken")))
        .stderr("");
}

#[test]
fn json_is_one_object_on_stdout_and_agrees_with_result_json() {
    let place = TestDir::holding(BOWL);
    let output = place.pasta("solve p.toml --json --output run").assert().code(0).get_output().clone();
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let kept: Value = serde_json::from_str(&place.read("run/result.json")).unwrap();
    assert_eq!(printed, kept);
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 1);
    assert_eq!((&printed["format"], &printed["stop"]["kind"]), (&2.into(), &"planned-end".into()));
    assert_eq!(printed["promise"]["holds"], true);
    assert_eq!(printed["problem"], "sine-bowl(dimension = 1), gaussian noise, growth 9, floor 1");
}

#[test]
fn nothing_is_written_without_an_output_folder() {
    let place = TestDir::holding(BOWL);
    place.json("solve p.toml", 0);
    place.pasta("solve p.toml --budget 10").assert().code(5);
    assert_eq!(place.names(), ["p.toml"]);
}

#[test]
fn flags_override_the_file_and_are_kept_for_resuming() {
    let place =
        TestDir::holding(&with(BOWL, "seed = 1", "seed = 1\nbudget = 10\nthreads = 2\noutput = \"file\""));
    let flags = "--seed 7 --budget 1e20 --target 0.4 --threads 1 --output flag";
    let result = place.json(&format!("solve p.toml {flags}"), 0);
    assert_eq!((&result["seed"], &result["stop"]["kind"]), (&7.into(), &"planned-end".into()));
    assert_eq!(result["promise"]["guarantee"]["bound"], 0.4 * 0.4);
    assert_eq!(place.names(), ["flag", "p.toml"]);
    assert_eq!(place.json("resume flag", 0), result);
    let plain = place.json("solve flag/problem.toml", 0);
    assert_eq!(plain, result, "the copy describes the run, and names no folder");
    assert_eq!(place.names(), ["flag", "p.toml"]);
}

#[test]
fn a_relative_output_folder_is_taken_from_where_the_program_runs() {
    let place = TestDir::new();
    fs::create_dir(place.path("sub")).unwrap();
    place.write("sub/p.toml", &with(BOWL, "seed = 1", "output = \"runs/bowl\""));
    place.json("solve sub/p.toml", 0);
    assert!(place.path("runs/bowl/result.json").exists());
}

#[test]
fn the_trace_has_one_event_a_line_adds_up_and_has_the_last_step() {
    let place = TestDir::holding(&with(SGD, "steps = 1000", "steps = 1000\nbatch = 3"));
    place.json("solve p.toml --output run", 0);
    let lines: Vec<Value> =
        place.read("run/trace.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [start, steps @ .., end] = lines.as_slice() else { panic!("no lines") };
    assert_eq!((&start["event"], &start["format"]), (&"start".into(), &2.into()));
    assert_eq!(
        (&end["event"], &end["step"], &end["stop"]),
        (&"end".into(), &1000.into(), &"planned-end".into())
    );
    assert!(steps.iter().all(|line| line["event"] == "step"));
    let numbers: Vec<_> = steps.iter().map(|line| line["step"].as_u64().unwrap()).collect();
    assert_eq!(numbers[..130], (1..=128).chain([130, 132]).collect::<Vec<_>>()[..]);
    assert!(lines[1..].iter().all(|line| line["samples"] == 3 * line["step"].as_u64().unwrap()));
    assert!(lines[1..].iter().all(|line| line["gap"].as_f64().unwrap() >= 0.0));
}

#[test]
fn one_thread_and_two_give_the_same_bits_under_student_t_noise() {
    let noise = "tail = \"student-t\"\ndof = 2.5";
    let place = TestDir::holding(&with(BOWL, "tail = \"gaussian\"", noise));
    for threads in [1, 2] {
        place.json(&format!("solve p.toml --threads {threads} --output t{threads}"), 0);
    }
    for file in ["result.json", "trace.jsonl"] {
        assert_eq!(place.read(&format!("t1/{file}")), place.read(&format!("t2/{file}")));
    }
}

#[test]
fn counts_beyond_64_bits_survive_result_and_resume() {
    let place = TestDir::holding(&with(SGD, "steps = 1000", "steps = 100\nbatch = 9e18"));
    let result = place.json("solve p.toml --output run", 0);
    assert_eq!(result["ledger"]["samples"].as_f64(), Some(9e20));
    assert!(place.read("run/result.json").contains("\"samples\": 900000000000000000000,"));
    assert!(place.read("run/trace.jsonl").contains("\"samples\":900000000000000000000,"));
    assert_eq!(place.json("resume run", 0), result);
    assert_eq!(place.json("resume run --budget 1e21", 0), result);
}

#[test]
fn a_problem_that_starts_solved_takes_no_step() {
    let place = TestDir::holding(&with(BOWL, "[1.2]", "0"));
    let result = place.json("solve p.toml", 0);
    assert_eq!((&result["steps"], &result["ledger"]["samples"]), (&0.into(), &0.into()));
    assert_eq!(result["promise"]["holds"], true);
}

#[test]
fn every_other_method_runs() {
    for method in [
        "name = \"sgd-decaying\"",
        "name = \"clipped-sgd\"\nthreshold = 1.0",
        "name = \"halpern\"",
        "name = \"krasnoselskii-mann\"\nbeta = 0.5",
        "name = \"storm\"\nmomentum = 0.1",
        "name = \"adam\"",
        "name = \"adam\"\nfirst = 0.5\nsecond = 0.9\nepsilon = 1e-4",
        "name = \"adagrad-norm\"\noffset = 1",
    ] {
        let place = TestDir::holding(&with(SGD, "name = \"sgd\"", method));
        let result = place.json("solve p.toml --output run", 0);
        let (steps, stop) = (&result["steps"], &result["stop"]["kind"]);
        assert_eq!((steps, stop), (&1000.into(), &"planned-end".into()), "{method}");
        assert_eq!(result["promise"], Value::Null);
        assert_eq!(place.json("resume run", 0), result);
    }
}

#[test]
fn a_method_without_constants_takes_a_budget_or_a_target_and_resumes() {
    let (problem, _) = BOWL.split_once("[recipe]").unwrap();
    let place = TestDir::holding(&format!("{problem}[recipe]\nname = \"auto\"\n"));
    let needs = contains("auto needs a target or a budget").and(contains("--target EPS"));
    place.pasta("solve p.toml").assert().code(2).stderr(needs);
    let spent = place.json("solve p.toml --budget 20000 --output run", 0);
    assert_eq!((&spent["method"], &spent["stop"]["kind"]), (&"auto".into(), &"planned-end".into()));
    assert!(spent["ledger"]["samples"].as_u64().unwrap() <= 20_000);
    assert!(spent["truth"]["gap"].as_f64().unwrap() < 1.5);
    assert_eq!(place.json("resume run", 0), spent);
    let certified = place.json("solve p.toml --target 0.5 --output certified", 0);
    assert_eq!(
        (&certified["stop"]["kind"], &certified["certificate"]["target"]),
        (&"certified".into(), &0.5.into())
    );
    assert_eq!(place.json("resume certified", 0), certified);
}

#[test]
fn tables_may_be_written_inline_or_dotted() {
    let inline = "noise = { tail = \"gaussian\", growth = 9.0, floor = 1.0 }\nproblem.name = \"sine-bowl\"\n\
                  problem.start = 1.2\nrecipe.name = \"smooth\"\nrecipe.target = 0.5\n\
                  recipe.constants = { smoothness = 3, gap = 1.6, growth = 9, floor = 1 }\n";
    let (a, b) = (TestDir::holding(inline), TestDir::holding(DECLARED));
    assert_eq!(a.json("solve p.toml --target 0.6", 0), b.json("solve p.toml --target 0.6", 0));
    a.write("p.toml", &with(inline, "gap = 1.6", "gap = -1"));
    a.pasta("solve p.toml").assert().code(2).stderr(contains("p.toml:6: [recipe.constants] gap: "));
}

// ---------------------------------------------------------------------------------------------------------
// Promises.

#[test]
fn declared_constants_that_are_safe_keep_the_promise() {
    let result = TestDir::holding(DECLARED).json("solve p.toml", 0);
    let promise = &result["promise"];
    assert_eq!((&promise["holds"], &promise["doubts"]), (&true.into(), &Value::Array(vec![])));
}

#[test]
fn declared_constants_that_are_too_bold_give_a_doubt_instead_of_a_promise() {
    for (old, new, doubt) in [
        ("smoothness = 3.0", "smoothness = 1.0", "smoothness = 1 is declared, but 3 is true"),
        ("gap = 1.6", "gap = 0.1", "gap = 0.1 is declared, but 1.588"),
        (
            "growth = 9.0\nfloor = 1.0\n\n[r",
            "growth = 9.5\nfloor = 1.0\n\n[r",
            "growth = 9 is declared, but 9.5",
        ),
    ] {
        let place = TestDir::holding(&with(DECLARED, old, new));
        let none = format!("none for this problem: {doubt}");
        let output =
            place.pasta("solve p.toml").assert().code(0).stderr(contains(doubt)).get_output().clone();
        assert!(unwrapped(&output.stdout).contains(&none), "{none}");
        let result = place.json("solve p.toml", 0);
        assert_eq!(result["promise"]["holds"], false);
        assert!(result["promise"]["doubts"][0].as_str().unwrap().starts_with(doubt));
    }
}

#[test]
fn a_curvature_that_is_declared_too_large_is_too_bold() {
    let pl = with(DECLARED, "\"smooth\"", "\"pl\"");
    let place = TestDir::holding(&with(&pl, "gap = 1.6", "gap = 1.6\nmu = 0.2525"));
    assert_eq!(place.json("solve p.toml --budget 0", 5)["promise"]["doubts"], Value::Array(vec![]));
    place.write("p.toml", &with(&pl, "gap = 1.6", "gap = 1.6\nmu = 0.3"));
    let doubt = "mu = 0.3 is declared, but 0.2525 is true";
    place.pasta("solve p.toml --budget 0").assert().code(5).stderr(contains(doubt));
}

#[test]
fn a_theorem_for_other_problems_gives_a_doubt() {
    let text = with(DECLARED, "\"smooth\"", "\"smooth-convex\"");
    let place = TestDir::holding(&with(&text, "gap = 1.6", "distance = 1.2"));
    let doubt = "smooth-convex is not proved to cover sine-bowl(dimension = 1)";
    let output = place.pasta("solve p.toml").assert().code(0).stderr(contains(doubt)).get_output().clone();
    assert!(unwrapped(&output.stdout).contains(doubt));
}

// ---------------------------------------------------------------------------------------------------------
// Budgets.

#[test]
fn a_run_out_of_budget_never_overspends_and_promises_nothing() {
    let place = TestDir::holding(BOWL);
    for budget in [0, 1, 8, 1_000, 10_000] {
        let result = place.json(&format!("solve p.toml --budget {budget}"), 5);
        assert!(result["ledger"]["samples"].as_u64().unwrap() <= budget);
        assert_eq!(result["stop"]["kind"], "out-of-budget");
        assert_eq!(result["promise"]["holds"], false);
    }
    let nothing = place.json("solve p.toml --budget 0", 5);
    assert_eq!((&nothing["ledger"]["samples"], &nothing["point"][0]), (&0.into(), &1.2.into()));
}

#[test]
fn a_larger_budget_resumes_to_the_result_of_the_run_that_had_it_from_the_start() {
    let place = TestDir::holding(BOWL);
    let whole = place.json("solve p.toml --output whole --budget 1e9", 0);
    assert_eq!(whole["stop"]["kind"], "planned-end");
    place.json("solve p.toml --output parts --budget 0", 5);
    for (budget, code) in [("1000", 5), ("20000", 5), ("20000", 5), ("1e9", 0)] {
        place.json(&format!("resume parts --budget {budget}"), code);
    }
    for file in ["result.json", "trace.jsonl"] {
        assert_eq!(place.read(&format!("whole/{file}")), place.read(&format!("parts/{file}")));
    }
}

#[test]
fn a_new_budget_holds_for_later_resumes_too() {
    let place = TestDir::holding(BOWL);
    place.json("solve p.toml --output run --budget 10", 5);
    let more = place.json("resume run --budget 10000", 5);
    assert_eq!(place.json("resume run", 5), more);
}

#[test]
fn a_budget_below_what_was_drawn_is_refused_and_changes_nothing() {
    let place = TestDir::holding(BOWL);
    let before = place.json("solve p.toml --output run --budget 10000", 5);
    let drawn = &before["ledger"]["samples"];
    let message = format!("already drawn {drawn} samples, more than the budget of 5");
    place.pasta("resume run --budget 5").assert().code(2).stderr(contains(message)).stdout("");
    assert_eq!(place.json("resume run", 5), before);
}

// ---------------------------------------------------------------------------------------------------------
// Interruption. These runs would take years or at least many minutes: none ends before the signal comes.

/// One run of each kind of estimator and output.
fn endless() -> [(&'static str, String); 4] {
    let page = with(BOWL, "growth = 9.0", "growth = 0.01");
    let page = with(&page, "\"smooth\"\ntarget = 0.5", "\"mean-square-smooth\"\ntarget = 1e-4");
    let well = with(BOWL, "\"sine-bowl\"", "\"kinked-well\"");
    let well = with(&well, "\"smooth\"\ntarget = 0.5", "\"weakly-convex\"\nlambda = 2.0\ntarget = 0.01");
    let absolute = with(BOWL, "\"sine-bowl\"", "\"absolute\"");
    let absolute = with(&absolute, "\"gaussian\"", "\"student-t\"\ndof = 3");
    let absolute = with(&absolute, "\"smooth\"\ntarget = 0.5", "\"lipschitz-convex\"\ntarget = 1e-6");
    [
        ("page", page),
        ("anchored epochs", well),
        ("average under student-t noise", absolute),
        ("baseline", with(SGD, "1000", "1e15")),
    ]
}

/// One whose first words on stderr say that it has begun: it notes that its gap is declared too small.
fn endless_and_bold() -> String {
    with(&with(DECLARED, "gap = 1.6", "gap = 1.0"), "target = 0.5", "target = 1e-5")
}

/// Lets the run in `folder` go on for a thousand steps or so and compares it with one that was never stopped.
fn assert_same_as_uninterrupted(place: &TestDir, folder: &str, name: &str) {
    let (step, drawn) = (place.checkpoint_step(folder).unwrap(), place.checkpoint_samples(folder));
    let budget = drawn + 1000 * drawn.div_ceil(step.max(1)).max(1);
    let resumed = place.json(&format!("resume {folder} --budget {budget}"), 5);
    let whole = place.json(&format!("solve p.toml --budget {budget} --output whole --overwrite"), 5);
    assert!(resumed["steps"].as_u64().unwrap() > step, "{name}");
    assert_eq!(resumed, whole, "{name}");
    for file in ["result.json", "trace.jsonl"] {
        assert_eq!(place.read(&format!("{folder}/{file}")), place.read(&format!("whole/{file}")), "{name}");
    }
}

#[test]
fn a_run_that_is_signalled_again_and_again_equals_the_run_that_is_not() {
    for (seed, (name, text)) in (1..).zip(endless()) {
        let place = TestDir::holding(&text);
        let mut verb = "solve p.toml --output run";
        let ends = [("-INT", Some(130)), ("-TERM", Some(143)), ("-KILL", None), ("-INT", Some(130))];
        for ((signal, code), further) in ends.into_iter().zip(scattered(seed, 20_000)) {
            let before = place.checkpoint_step("run").unwrap_or(0);
            let mut running = place.spawn(&format!("{verb} --checkpoint-every 0"));
            running.until(&place, "run", before + further);
            running.signal(signal);
            let (ended, said) = running.end();
            assert_eq!(ended, code, "{name}: {said}");
            assert_eq!(said.contains("go on with: pasta resume run"), code.is_some(), "{name}: {said}");
            assert!(!place.path("run/result.json").exists(), "{name}");
            verb = "resume run";
        }
        assert_same_as_uninterrupted(&place, "run", name);
    }
}

#[test]
fn a_run_that_is_killed_between_checkpoints_equals_the_run_that_is_not() {
    let (name, text) = &endless()[0];
    let place = TestDir::holding(text);
    let mut verb = "solve p.toml --output run";
    for further in scattered(99, 20_000).take(3) {
        let before = place.checkpoint_step("run").unwrap_or(0);
        let mut running = place.spawn(&format!("{verb} --checkpoint-every 0.05"));
        running.until(&place, "run", before + 1 + further);
        running.signal("-KILL");
        assert_eq!(running.end().0, None);
        verb = "resume run";
    }
    assert_same_as_uninterrupted(&place, "run", name);
}

#[test]
fn a_folder_belongs_to_one_run_at_a_time_and_is_free_again_after_a_kill() {
    let place = TestDir::holding(&with(SGD, "1000", "1e15"));
    let mut running = place.spawn("solve p.toml --output run --checkpoint-every 0");
    running.until(&place, "run", 1000);
    for command in ["resume run", "solve p.toml --output run --overwrite"] {
        place.pasta(command).assert().code(2).stderr(contains("another process is at work in run"));
    }
    let reached = place.checkpoint_step("run").unwrap();
    running.until(&place, "run", reached + 1000);
    running.signal("-KILL");
    assert_eq!(running.end().0, None);
    assert_same_as_uninterrupted(&place, "run", "after another was turned away");
}

#[test]
fn an_interrupted_run_without_a_folder_is_rescued_with_its_whole_trace() {
    let place = TestDir::holding(&endless_and_bold());
    for (signal, code, rescue) in
        [("-INT", 130, "p.interrupted"), ("-TERM", 143, "p.interrupted-2"), ("-HUP", 129, "p.interrupted-3")]
    {
        let mut running = place.spawn("solve p.toml");
        running.read_line("note: nothing is promised");
        running.signal(signal);
        let (ended, said) = running.end();
        assert_eq!(ended, Some(code), "{said}");
        assert!(said.contains(&format!("the run is kept in {rescue}\n")), "{said}");
        assert!(said.contains(&format!("go on with: pasta resume {rescue}\n")), "{said}");
    }
    assert_eq!(place.names(), ["p.interrupted", "p.interrupted-2", "p.interrupted-3", "p.toml"]);
    assert_same_as_uninterrupted(&place, "p.interrupted", "first rescue");
    assert_same_as_uninterrupted(&place, "p.interrupted-2", "second rescue");
}

#[test]
fn a_step_that_would_take_years_is_dropped_and_the_state_before_it_is_kept() {
    // Student t samples are drawn one by one, and the first step wants 10^16 of them.
    let text = with(&endless_and_bold(), "\"gaussian\"", "\"student-t\"\ndof = 3");
    for (signal, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        // A folder for each: the checkpoint of an earlier run would say too early that this one listens.
        let place = TestDir::holding(&with(&text, "target = 1e-5", "target = 1e-8"));
        let mut running = place.spawn("solve p.toml --output run --json");
        running.until(&place, "run", 0);
        running.signal(signal);
        let printed = running.0.stdout.take().unwrap();
        let (ended, said) = running.end();
        assert_eq!(ended, Some(code), "{said}");
        assert!(said.contains("stopped at step 0 with 0 samples; the run is kept in run"), "{said}");
        let printed: Value = serde_json::from_reader(printed).unwrap();
        assert_eq!((&printed["stop"]["kind"], &printed["steps"]), (&"interrupted".into(), &0.into()));
        assert_eq!((place.checkpoint_step("run"), place.checkpoint_samples("run")), (Some(0), 0));
    }
}

#[test]
fn a_certificate_that_is_interrupted_in_its_own_pilot_exits_as_interrupted() {
    // 256 samples in 100,000 dimensions, drawn one by one, take a while.
    let text = with(BOWL, "\"gaussian\"", "\"student-t\"\ndof = 3");
    let place = TestDir::holding(&with(&text, "start = [1.2]", "dimension = 100000\nstart = 1.2"));
    place.write("x.json", &format!("[{}1.0]", "1.0,".repeat(99_999)));
    let mut running = place.spawn("certify p.toml --at @x.json --target 5 --kurtosis --json");
    // Nobody says when it has begun: ask until it is heard, and no more.
    for _ in 0..1_000_000 {
        if running.0.try_wait().unwrap().is_some() {
            break;
        }
        let pid = running.0.id().to_string();
        let handled = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        // SIGTERM is caught (bit 14 of SigCgt) from when the program listens.
        let caught = handled.lines().find_map(|line| line.strip_prefix("SigCgt:\t").map(str::to_owned));
        if caught.is_some_and(|mask| u64::from_str_radix(&mask, 16).unwrap() & (1 << 14) != 0) {
            running.signal("-TERM");
            break;
        }
        std::thread::yield_now();
    }
    assert_eq!(running.end().0, Some(143));
}

// ---------------------------------------------------------------------------------------------------------
// Resuming what cannot be resumed.

#[test]
fn a_finished_run_prints_its_result_again() {
    let place = TestDir::holding(BOWL);
    let table = place.pasta("solve p.toml --output run").assert().code(0).get_output().stdout.clone();
    let [before, trace] = ["run/result.json", "run/trace.jsonl"].map(|file| place.read(file));
    let again = place.pasta("resume run").assert().code(0).stdout(table);
    again.stderr(contains("the run already ended (planned-end): nothing to resume"));
    assert_eq!([before, trace], ["run/result.json", "run/trace.jsonl"].map(|file| place.read(file)));
}

#[test]
fn a_damaged_checkpoint_is_refused_wherever_the_damage_is() {
    let place = TestDir::holding(BOWL);
    place.json("solve p.toml --output run --budget 1e4", 5);
    let [trace, whole] = ["run/trace.jsonl", "run/checkpoint.pasta"].map(|file| place.path(file));
    let (trace_before, bytes) = (fs::read(&trace).unwrap(), fs::read(&whole).unwrap());
    let refused = || {
        let why = contains("damaged").or(contains("not a pasta checkpoint")).or(contains("format"));
        contains("run/checkpoint.pasta: ").and(why)
    };
    let flips = (0..bytes.len()).step_by(29).map(|at| {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1;
        flipped
    });
    let cuts = (0..bytes.len()).step_by(61).map(|length| bytes[..length].to_vec());
    for damaged in flips.chain(cuts) {
        fs::write(&whole, damaged).unwrap();
        place.pasta("resume run --budget 1e5").assert().code(2).stdout("").stderr(refused());
    }
    assert_eq!(fs::read(&trace).unwrap(), trace_before, "a refused resume changes nothing");
    fs::write(&whole, &bytes).unwrap();
    place.json("resume run --budget 1e5", 0);
}

#[test]
fn a_checkpoint_of_another_version_is_refused_by_its_number() {
    let place = TestDir::holding(BOWL);
    place.json("solve p.toml --output run --budget 1e4", 5);
    let bytes = fs::read(place.path("run/checkpoint.pasta")).unwrap();
    let rest = bytes.strip_prefix(b"pasta checkpoint 3\n").unwrap();
    for other in ["1", "7"] {
        let altered = [format!("pasta checkpoint {other}\n").as_bytes(), rest].concat();
        fs::write(place.path("run/checkpoint.pasta"), altered).unwrap();
        let said = contains(format!("format {other}")).and(contains("reads formats 2 to 3"));
        place.pasta("resume run").assert().code(2).stderr(said);
    }
}

#[test]
fn a_checkpoint_of_another_run_than_problem_toml_describes_is_refused() {
    let other = [
        (BOWL, "floor = 1.0", "floor = 2.0", "of another problem"),
        (BOWL, "[1.2]", "[1.3]", "of another problem"),
        (BOWL, "\"gaussian\"", "\"lognormal\"\nsigma = 1.0", "of another problem"),
        (BOWL, "target = 0.5", "target = 0.4", "of another method"),
        (BOWL, "\"smooth\"", "\"mean-square-smooth\"", "of another method"),
        (BOWL, "seed = 1", "seed = 2", "of seed 1, but 2 is asked for"),
        (SGD, "eta = 0.05", "eta = 0.06", "of another method"),
        (SGD, "\"sgd\"", "\"halpern\"", "of another method"),
    ];
    for (text, old, new, message) in other {
        let place = TestDir::holding(text);
        place.json("solve p.toml --output run --budget 100", 5);
        place.write("run/problem.toml", &with(&place.read("run/problem.toml"), old, new));
        let said = contains(message).and(contains("hint: problem.toml must stay"));
        place.pasta("resume run --budget 1000").assert().code(2).stdout("").stderr(said);
    }
}

#[test]
fn a_folder_that_is_no_run_is_refused() {
    let place = TestDir::holding(BOWL);
    fs::create_dir(place.path("empty")).unwrap();
    place
        .pasta("resume nowhere")
        .assert()
        .code(2)
        .stderr(contains("nowhere is not").and(contains("no such folder")));
    place
        .pasta("resume empty")
        .assert()
        .code(2)
        .stderr(contains("empty is not").and(contains("no problem.toml")));
    place.pasta("resume p.toml").assert().code(2).stderr(contains("p.toml is not"));
    place.json("solve p.toml --output run", 0);
    fs::remove_file(place.path("run/checkpoint.pasta")).unwrap();
    let hint = "pasta solve run/problem.toml --output run --overwrite";
    place.pasta("resume run").assert().code(2).stderr(contains("no checkpoint").and(contains(hint)));
    place.pasta(hint.strip_prefix("pasta ").unwrap()).assert().code(0);
}

#[test]
fn a_damaged_trace_is_cut_with_a_warning_and_the_run_goes_on() {
    let place = TestDir::holding(BOWL);
    let whole = place.json("solve p.toml --output run", 0);
    place.json("solve p.toml --output run --budget 1e4 --overwrite", 5);
    let trace = place.read("run/trace.jsonl");
    let lines: Vec<_> = trace.split_inclusive('\n').collect();
    // Torn, and with one flipped bit in a number: neither goes unnoticed.
    let torn = [lines[..6].concat().as_bytes(), b"\xff\xfe"].concat();
    let flipped = lines.concat().replacen("\"step\":6,", "\"step\":7,", 1).into_bytes();
    for damaged in [torn, flipped] {
        place.json("solve p.toml --output run --budget 1e4 --overwrite", 5);
        fs::write(place.path("run/trace.jsonl"), damaged).unwrap();
        let warning = contains("warning: run/trace.jsonl is damaged; it goes on from step 5");
        let output = place
            .pasta("resume run --budget 1e9 --json")
            .assert()
            .code(0)
            .stderr(warning)
            .get_output()
            .clone();
        assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap(), whole);
        assert!(place.read("run/trace.jsonl").starts_with(&lines[..6].concat()));
    }
}

// ---------------------------------------------------------------------------------------------------------
// Divergence.

#[test]
fn a_diverged_run_exits_with_3_names_the_step_and_keeps_the_last_finite_point() {
    let place =
        TestDir::holding(&with(&with(SGD, "growth = 0.5", "growth = 9.0"), "eta = 0.05", "eta = 0.333"));
    let output = place.pasta("solve p.toml --output run").assert().code(3).get_output().clone();
    let result: Value = serde_json::from_str(&place.read("run/result.json")).unwrap();
    let step = &result["steps"];
    assert_eq!((&result["stop"]["kind"], &result["stop"]["step"]), (&"diverged".into(), step));
    assert!(result["point"][0].as_f64().unwrap().is_finite());
    let message = format!("the iterate after step {step} is more than 1e50 from the start");
    for said in [&output.stdout, &output.stderr] {
        assert!(unwrapped(said).contains(&message));
    }
    // And again when resumed, even with a larger budget.
    let again = place.pasta("resume run --budget 1e9").assert().code(3).get_output().clone();
    assert_eq!((again.stdout, again.stderr), (output.stdout, output.stderr));
}

#[test]
fn numbers_that_overflow_are_null_in_json_and_never_break_it() {
    // The curvature is finite, but f and the step are not.
    let text = with(&with(SGD, "\"sine-bowl\"", "\"quadratic\"\nspectrum = [1e308]"), "[1.2]", "[1e20]");
    let place = TestDir::holding(&text);
    let output = place.pasta("solve p.toml --json --output run").assert().code(3).get_output().stdout.clone();
    let result: Value = serde_json::from_slice(&output).unwrap();
    assert_eq!((&result["point"][0], &result["truth"]["gap"]), (&1e20.into(), &Value::Null));
    assert_eq!((&result["stop"]["kind"], &result["stop"]["step"]), (&"diverged".into(), &0.into()));
    place.pasta("resume run").assert().code(3);
}

// ---------------------------------------------------------------------------------------------------------
// Folders and streams that do not cooperate.

#[test]
fn a_folder_that_holds_a_run_is_overwritten_only_when_asked() {
    let place = TestDir::holding(BOWL);
    let first = place.json("solve p.toml --output run --budget 1e4", 5);
    let said = contains("run already holds a run").and(contains("hint: go on with `pasta resume run`"));
    place
        .pasta("solve p.toml --output run --seed 2")
        .assert()
        .code(2)
        .stderr(said.and(contains("--overwrite")));
    assert_eq!(place.json("resume run", 5), first);
    // Nor is it touched by a run that cannot start.
    place.pasta("solve p.toml --output run --target -1 --overwrite").assert().code(2);
    assert_eq!(place.json("resume run", 5), first);
    let second = place.json("solve p.toml --output run --seed 2 --overwrite", 0);
    assert_eq!((&second["seed"], &second["stop"]["kind"]), (&2.into(), &"planned-end".into()));
    assert_eq!(place.json("resume run", 0), second);
}

#[test]
fn a_problem_file_of_the_user_is_not_overwritten_by_the_copy() {
    let place = TestDir::new();
    place.write("problem.toml", BOWL);
    place.pasta("solve problem.toml --output . --seed 5").assert().code(2).stderr(contains("--overwrite"));
    assert_eq!(place.read("problem.toml"), BOWL);
}

#[test]
fn a_folder_that_cannot_be_made_is_a_system_failure() {
    let place = TestDir::holding(BOWL);
    place
        .pasta("solve p.toml --output p.toml/run")
        .assert()
        .code(1)
        .stdout("")
        .stderr(contains("p.toml/run"));
    place.pasta("solve p.toml --output /dev/full").assert().code(1).stdout("").stderr(contains("/dev/full"));
}

/// `pasta` where no file may grow beyond some kilobytes, as on a disk that is nearly full.
fn pasta_on_a_full_disk(place: &TestDir, words: &str) -> Command {
    let mut shell = Command::new("sh");
    let script = format!("trap '' XFSZ; ulimit -f 4; exec {PASTA} {words}");
    shell.args(["-c", &script]).current_dir(place.0.path());
    shell
}

#[test]
fn a_full_disk_under_the_trace_is_a_system_failure_and_the_run_can_go_on_later() {
    let place = TestDir::holding(&endless()[3].1);
    let run = "solve p.toml --output run --checkpoint-every 0";
    let said = contains("run/trace.jsonl: ").and(contains("too large"));
    pasta_on_a_full_disk(&place, run).assert().code(1).stdout("").stderr(said);
    assert_same_as_uninterrupted(&place, "run", "full disk");
}

#[test]
fn a_full_disk_under_the_checkpoint_leaves_the_old_one_whole() {
    // 200 coordinates: the checkpoint is larger than the limit.
    let place = TestDir::holding(&with(&endless()[3].1, "start = [1.2]", "dimension = 200\nstart = 1.2"));
    place.json("solve p.toml --output run --budget 100", 5);
    let before = fs::read(place.path("run/checkpoint.pasta")).unwrap();
    let said = contains("run/checkpoint.pasta: ").and(contains("too large"));
    pasta_on_a_full_disk(&place, "resume run --budget 200").assert().code(1).stdout("").stderr(said);
    assert_eq!(fs::read(place.path("run/checkpoint.pasta")).unwrap(), before);
    assert!(!place.path("run/checkpoint.draft").exists());
    assert_same_as_uninterrupted(&place, "run", "full disk");
}

#[test]
fn a_reader_that_leaves_is_no_failure_and_a_full_stdout_is_one() {
    let place = TestDir::holding(BOWL);
    for words in ["solve p.toml", "solve p.toml --json"] {
        let mut running = place.spawn(words);
        drop(running.0.stdout.take());
        let (code, said) = running.end();
        assert_eq!((code, said.as_str()), (Some(0), ""));
    }
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = process::Command::new(PASTA);
    let output = command.args(["solve", "p.toml"]).current_dir(place.0.path()).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("error: stdout: "));
}

#[test]
fn a_run_that_ended_as_planned_is_whole_and_has_nothing_left_to_do() {
    let place = TestDir::holding(
        "[problem]\nname = \"quadratic\"\nstart = 2.0\nspectrum = [1.0, 3.0]\n\
         [noise]\ntail = \"gaussian\"\ngrowth = 0.5\nfloor = 1.0\n[recipe]\nname = \"auto\"\n",
    );
    place.pasta("solve p.toml --output run --budget 3000").assert().code(0);
    let again = place.pasta("resume run --budget 20000").assert().code(0);
    again.stderr(contains("nothing to resume").and(contains("damaged").not()));
}

#[test]
fn a_run_whose_folder_is_removed_goes_on_in_another_beside_it() {
    let text = with(SGD, "steps = 1000", "steps = 20000000");
    let place = TestDir::holding(&text);
    let whole = place.json("solve p.toml --output whole --budget 3000000", 5);
    let mut running = place.spawn("solve p.toml --output run --checkpoint-every 0 --budget 3000000");
    running.until(&place, "run", 5);
    fs::rename(place.path("run"), place.path("elsewhere")).unwrap();
    let said = std::io::read_to_string(&mut running.1).unwrap();
    assert_eq!(running.0.wait().unwrap().code(), Some(5), "{said}");
    assert!(
        said.contains("run was removed or replaced while the run went on; it goes on in run-2"),
        "{said}"
    );
    let kept: Value = serde_json::from_str(&place.read("run-2/result.json")).unwrap();
    assert_eq!((&kept["point"], &kept["ledger"]), (&whole["point"], &whole["ledger"]));
    assert_eq!(place.read("run-2/trace.jsonl"), place.read("whole/trace.jsonl"));
    assert!(!place.path("run").exists());
    place.pasta("resume run-2 --budget 3100000").assert().code(5);
}

#[cfg(unix)]
#[test]
fn a_limit_on_the_size_of_files_is_told_in_a_sentence() {
    let place = TestDir::holding(BOWL);
    let mut command = process::Command::new("sh");
    // Half a kilobyte: enough for the problem file, too little for a checkpoint.
    command
        .args(["-c", "ulimit -f 1; exec \"$0\" solve p.toml --output run", PASTA])
        .current_dir(place.0.path());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("error: ") && said.contains("File too large"), "{said}");
}

#[cfg(not(feature = "mpi"))]
#[test]
fn one_of_several_processes_of_mpi_says_that_it_was_built_without() {
    let place = TestDir::holding(SGD);
    for name in ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"] {
        let told = contains("started by MPI as one of 4 processes, but built without MPI");
        place.pasta("solve p.toml --output run").env(name, "4").assert().code(2).stderr(told);
        assert!(!place.path("run").exists());
        place.pasta("problems").env(name, "1").assert().code(0);
    }
    // No feature, nothing to name.
    place.pasta("--version").assert().code(0).stdout(format!("pasta {}\n", env!("CARGO_PKG_VERSION")));
}
