//! Simulators over a pipe: every command works on them, faults are told, and no worker is left behind.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod place;

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use place::{PASTA, STATE, TestDir, unwrapped, with};
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use serde_json::Value;

const SDK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk");
const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/simulators");

/// E |x - xi|^2/2 with xi normal around (1, -2). What goes wrong is in the file `fault`, if there is one.
const SIM: &str = r#"
import os, random, sys, time
import pasta

open("pids", "a").write(f"{os.getpid()}\n")
time.sleep(float(os.environ.get("LOADING", "0")))
own = random.Random()


def fault():
    try:
        return open("fault").read().strip()
    except FileNotFoundError:
        return ""


def sample(x, rng):
    what = fault()
    if what == "dies":
        print("the model is broken", file=sys.stderr, flush=True)
        os._exit(3)
    if what == "hangs":
        time.sleep(1000)
    if what == "nan":
        return [float("nan")] * len(x), 0.0
    if what == "raises":
        raise RuntimeError("no such queue")
    if what == "own":
        rng = own
    if what == "fixed":
        rng = random.Random(0)
    if what == "process":
        x = [v + 1e-6 * os.getpid() for v in x]
    g = [v - rng.gauss((1.0, -2.0)[i % 2], 1.0) for i, v in enumerate(x)]
    scale = 2.0 if what == "loss" else 1.0
    loss = scale * sum(v * v for v in g) / 2
    if what == "forgotten":
        g[1] = 0.0
    if what == "swapped":
        g.reverse()
    if what == "constant":
        loss = 0.0
    if what == "unrelated":
        loss = sum(v**4 for v in x)
    if what == "ratio":
        z = [rng.gauss(0.0, 1.0) for _ in x]
        loss = sum((v + w) ** 2 for v, w in zip(x, z))
        g = [loss * w for w in z]
    time.sleep(float(os.environ.get("PAUSE", "0")))
    if "COUNT" in os.environ:
        open("count", "a").write(".")
    return g, loss


pasta.serve(sample, losses=True, reproducible=os.environ.get("SEEDED") != "no", name=os.environ.get("NAME", "bowl"))
"#;

fn smooth(more: &str) -> String {
    format!(
        "seed = 1\n\n[problem]\ncommand = [\"python3\", \"sim.py\"]\nenvironment = {{ PYTHONPATH = \"{SDK}\" }}\ndimension = 2\n\
         start = 3.0\n{more}\n[recipe]\nname = \"smooth\"\ntarget = 0.5\n\n[recipe.constants]\nsmoothness = 1.0\ngap = 15.0\n\
         growth = 0.0\nfloor = 1.5\n"
    )
}

/// SGD for so many steps of eight samples.
fn sgd(steps: u64, more: &str) -> String {
    let (head, _) = smooth(more).split_once("[recipe]").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    format!("{head}[recipe]\nname = \"sgd\"\neta = 0.1\nsteps = {steps}\nbatch = 16\n")
}

fn place(text: &str) -> TestDir {
    let place = TestDir::holding(text);
    place.write("sim.py", SIM);
    place
}

/// The processes that simulated in this place, all of which must have ended.
fn assert_no_worker_left(place: &TestDir) {
    let pids = place.read("pids");
    assert!(!pids.is_empty());
    let until = Instant::now() + Duration::from_secs(20);
    for pid in pids.lines() {
        // One whose parent was killed is adopted, and waited for by whoever adopts it, if anybody does.
        let state = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        while !state().is_empty() && !state().contains(") Z") {
            assert!(Instant::now() < until, "worker {pid} lives: {}", state());
            thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn every_command_works_on_a_simulator_with_the_same_bits_for_any_workers() {
    let text = smooth("") + "\n[certificate]\ntarget = 0.5\nkurtosis = 10\npilot = 2000\n";
    let place = place(&text);
    let run = place.json("solve p.toml --output run --threads 2", 0);
    assert_eq!(run["certificate"]["verdict"], "certified");
    assert_eq!(
        (&run["problem"], &run["truth"]),
        (&"bowl (simulator python3 sim.py), 2 coordinates".into(), &Value::Null)
    );
    assert!(run["ledger"]["by_role"]["check"]["samples"].as_u64().unwrap() <= 48);
    assert_eq!(run["simulator"]["repeated_requests"], 0);
    for other in ["--threads 1", "--threads 2 --no-check"] {
        let other = place.json(&format!("solve p.toml {other}"), 0);
        assert_eq!((&run["point"], &run["certificate"]), (&other["point"], &other["certificate"]));
    }
    place.write("q.toml", &with(&text, "start = 3.0", "start = 3.0\nworkers = 5"));
    assert_eq!(place.json("solve q.toml", 0)["point"], run["point"]);
    // Blocks belong to the bits.
    place.write("q.toml", &with(&text, "start = 3.0", "start = 3.0\nblock = 5"));
    assert_ne!(place.json("solve q.toml", 0)["point"], run["point"]);

    let certified = place.json("certify run --target 0.6 --seed 2", 0);
    assert_eq!(certified["point"], run["point"]);
    assert!(place.json("plan --pilot p.toml", 0)["pilot"]["samples"].as_u64().unwrap() > 0);
    let calibration = place.json("calibrate p.toml --budget 6400", 0);
    assert!(calibration["figures"].as_array().is_some_and(|figures| !figures.is_empty()));
    assert_eq!(place.json("resume run", 0)["point"], run["point"]);
    assert_no_worker_left(&place);
}

#[test]
fn every_command_starts_its_simulator_once() {
    let text = smooth("workers = 1") + "\n[certificate]\ntarget = 0.5\nkurtosis = 10\npilot = 2000\n";
    let place = place(&text);
    for command in [
        "solve p.toml --output run",
        "resume run",
        "verify run",
        "certify run --seed 2",
        "certify run --target 0.6 --seed 2",
        "certify p.toml --at 1,-2",
        "plan --pilot p.toml",
        "plan --pilot p.toml --target 0.6",
        "calibrate p.toml --budget 6400",
        "compare p.toml --methods auto --budget 2000 --seeds 1",
        "compare p.toml --methods auto --budget 2000 --seeds 1 --target 0.6",
    ] {
        place.write("pids", "");
        place.json(command, 0);
        assert_eq!(place.read("pids").lines().count(), 1, "{command}");
    }
}

#[test]
fn a_run_in_two_parts_has_the_bits_of_one() {
    let place = place(&sgd(200, ""));
    let whole = place.json("solve p.toml", 0);
    place.json("solve p.toml --output run --budget 1500", 5);
    // The copy in the folder finds the simulator from anywhere.
    let resumed = place.json("resume run --budget 100000", 0);
    assert_eq!((&whole["point"], &whole["ledger"]), (&resumed["point"], &resumed["ledger"]));
    let page = place.read("p.toml").replace("\"sgd\"\neta = 0.1", "\"storm\"\neta = 0.1\nmomentum = 0.3");
    place.write("page.toml", &page);
    assert_eq!(place.json("solve page.toml", 0)["stop"]["kind"], "planned-end");
}

#[test]
fn a_simulator_that_fails_for_good_stops_the_run_with_a_checkpoint_and_a_message() {
    let place = place(&sgd(200, "retries = 1"));
    let whole = place.json("solve p.toml", 0);
    place.json("solve p.toml --output run --budget 1000", 5);
    for (fault, told) in [
        ("dies", "ended without an answer (exit status: 3); it was the second failure of this request"),
        ("raises", "says: RuntimeError: no such queue"),
    ] {
        place.write("fault", fault);
        let failed = place.pasta("resume run --budget 100000 --json").assert().code(1);
        let said = String::from_utf8_lossy(&failed.get_output().stderr).into_owned();
        for part in [told, "\n  request: {\"id\": ", "go on with: pasta resume run"] {
            assert!(said.contains(part), "{part} is not in {said}");
        }
        if fault == "dies" {
            assert!(
                said.contains("worker 1: the model is broken\n")
                    && said.contains("\n  stderr: the model is broken"),
                "{said}"
            );
        }
        let told: Value = serde_json::from_slice(&failed.get_output().stdout).unwrap();
        assert!(told["error"]["message"].as_str().unwrap().contains("worker "), "{told}");
    }
    std::fs::remove_file(place.path("fault")).unwrap();
    assert_eq!(place.json("resume run", 0)["point"], whole["point"]);
    // Without a folder, what was computed is kept beside the file.
    place.write("fault", "dies");
    place
        .pasta("solve p.toml --no-check")
        .assert()
        .code(1)
        .stderr(contains("the run is kept in p.interrupted"));
    std::fs::remove_file(place.path("fault")).unwrap();
    assert_eq!(place.json("resume p.interrupted", 0)["point"], whole["point"]);
    assert_no_worker_left(&place);
}

#[test]
fn nan_ends_a_run_as_diverged_and_shows_the_reply() {
    let place = place(&sgd(200, "retries = 1"));
    place.json("solve p.toml --output run --budget 1000", 5);
    place.write("fault", "nan");
    let told = contains("wrote numbers that are not finite").and(contains("request: {\"id\""));
    place.pasta("resume run --budget 100000").assert().code(3).stderr(told);
    let told = contains("the simulator failed its check: its answer 0 from the start is not finite");
    place.pasta("solve p.toml").assert().code(2).stderr(told);
}

#[test]
fn a_signal_ends_a_run_that_is_resumed_and_leaves_no_worker() {
    let place = place(&with(&sgd(400, ""), "environment = {", "environment = { PAUSE = \"0.0005\","));
    let whole = place.json("solve p.toml", 0);
    let mut child = Command::new(PASTA)
        .args(["solve", "p.toml", "--output", "run", "--checkpoint-every", "0"])
        .current_dir(place.path(""))
        .env(STATE, place.state())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let trace = || std::fs::read_to_string(place.path("run/trace.jsonl")).unwrap_or_default().lines().count();
    while trace() < 5 {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it could be interrupted");
        thread::sleep(Duration::from_millis(5));
    }
    let signal = |child: &std::process::Child, signal: &str| {
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
    };
    signal(&child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_no_worker_left(&place);
    // Killed without a word: the workers see their input end.
    let mut child = Command::new(PASTA)
        .args(["resume", "run", "--checkpoint-every", "0"])
        .current_dir(place.path(""))
        .env(STATE, place.state())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let before = trace();
    while trace() < before + 3 {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it could be killed");
        thread::sleep(Duration::from_millis(5));
    }
    signal(&child, "-KILL");
    child.wait().unwrap();
    assert_no_worker_left(&place);
    assert_eq!(place.json("resume run", 0)["point"], whole["point"]);
}

#[test]
fn ctrl_c_ends_a_worker_that_hangs() {
    let place = place(&sgd(400, "workers = 2"));
    place.write("fault", "hangs");
    let mut child = Command::new(PASTA)
        .args(["solve", "p.toml", "--no-check"])
        .current_dir(place.path(""))
        .env(STATE, place.state())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pids = || std::fs::read_to_string(place.path("pids")).unwrap_or_default().lines().count();
    while pids() < 2 {
        thread::sleep(Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_no_worker_left(&place);
    // The time-out of the file ends it too.
    place.write("p.toml", &sgd(400, "timeout = 0.3\nretries = 0"));
    place
        .pasta("solve p.toml --no-check")
        .assert()
        .code(1)
        .stderr(contains("did not answer within 0.3 seconds"));
    assert_no_worker_left(&place);
}

#[test]
fn slips_are_named_before_a_run_and_in_a_check() {
    let place = place(&sgd(20, "workers = 2"));
    let sound = place.json("check p.toml", 0);
    assert_eq!((&sound["is_sound"], &sound["repeats"]["other_worker"]), (&true.into(), &true.into()));
    assert_eq!(sound["slopes"].as_array().unwrap().len(), 4);
    // E|g - grad f|^2 = 2; 64 samples of a chi-square law with 2 degrees of freedom each: 2 +- 0.25 (one sigma).
    let variance = sound["noise"]["variance"].as_f64().unwrap();
    assert!((1.0..3.0).contains(&variance), "{variance}");
    // A busy machine cannot tell.
    assert!(sound["time"]["sensible_block"].as_u64().is_none_or(|block| block >= 1));
    let printed = unwrapped(&place.pasta("check p.toml").assert().code(0).get_output().stdout);
    for part in [
        "nothing wrong was found in",
        "the same seed gives the same answer twice, and the same in another worker",
        "belong to the gradients",
        " a sample",
    ] {
        assert!(printed.contains(part), "{part} is not in {printed}");
    }
    for (fault, told) in [
        ("own", "a generator of its own"),
        ("process", "or depends on its process"),
        ("loss", "the loss does not belong to the gradient"),
        ("forgotten", "coordinate 1 (counted from 0) of the gradient is exactly 0"),
        ("swapped", "coordinates 0 and 1 (counted from 0) of the gradient are swapped"),
        ("constant", "the loss is a constant"),
        ("unrelated", "the loss does not belong to the gradient"),
    ] {
        place.write("fault", fault);
        place.pasta("solve p.toml --output run").assert().code(2).stderr(contains(told));
        assert!(!place.path("run").exists());
        let verdict = place.json("check p.toml", 2);
        // Which worker answers is left to chance, so that there may be others.
        let sentences = verdict["sentences"].as_array().unwrap();
        assert!(sentences.iter().any(|said| said.as_str().unwrap().contains(told)), "{verdict}");
        place.pasta("solve p.toml --no-check").assert().code(0);
        place.write("q.toml", &sgd(20, "check = false"));
        place.pasta("solve q.toml").assert().code(0);
    }
    // A built-in problem needs no check, but can be checked.
    place.write("q.toml", place::SGD);
    place.pasta("check q.toml").assert().code(0).stdout(contains("nothing wrong was found"));
    let verdict = place.json("check q.toml", 0);
    assert_eq!(verdict["is_sound"], true, "{verdict}");
    assert!(verdict["noise"]["variance"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_certificate_of_a_simulator_looks_again() {
    let text = sgd(20_000, "") + "\n[certificate]\ntarget = 0.5\nkurtosis = 10\npilot = 0\n";
    let place = place(&text);
    let sound = place.json("solve p.toml", 0);
    assert_eq!(sound["certificate"]["agreement"]["samples"], 16, "{sound}");
    assert_eq!(sound["ledger"]["by_role"]["slopes"]["samples"], 16);
    let said = sound["certificate"]["statement"].as_str().unwrap();
    assert!(said.ends_with("Losses and gradients of 16 further samples agree at x."), "{said}");
    // Run all the same, it is not certified.
    place.write("fault", "forgotten");
    let told =
        contains("VOID: nothing is claimed: the losses of samples at x do not change along coordinate 1");
    place.pasta("solve p.toml --no-check").assert().code(4).stderr(told);
    let void = place.json("solve p.toml --no-check", 4);
    assert_eq!((&void["stop"]["kind"], &void["certificate"]["verdict"]), (&"void".into(), &"void".into()));
    // A fixed seed in every sample looks like no noise: that is said before, and nothing is certified.
    place.write("fault", "fixed");
    let told = contains("note: no noise at all was seen").and(contains("no noise was seen: "));
    place.pasta("solve p.toml").assert().code(4).stderr(told);
    let silent = place.json("solve p.toml", 4);
    assert_eq!(silent["certificate"]["verdict"], "no-noise", "{silent}");
    place.write("q.toml", &with(&text, "kurtosis = 10", "variance = 0"));
    assert_eq!(place.json("solve q.toml", 0)["certificate"]["verdict"], "certified");
    // Likelihood ratios are declared.
    place.write("fault", "ratio");
    place.pasta("check p.toml").assert().code(2).stdout(contains("pathwise = false"));
    place.write("q.toml", &with(&text, "start = 3.0", "start = 3.0\npathwise = false"));
    place.pasta("check q.toml").assert().code(0);
}

#[test]
fn a_comparison_checks_a_simulator_once_before_its_first_run() {
    let place = place(&sgd(20, ""));
    let race = "compare p.toml --budget 200 --seeds 2 --methods dog,sgd";
    let sound = place.json(race, 0);
    let samples = sound["check_samples"].as_u64().unwrap();
    assert!((1..=48).contains(&samples), "{samples}");
    // No run is charged for it.
    let runs = |race: &Value| {
        race["methods"].as_array().unwrap().iter().map(|m| m["runs"].clone()).collect::<Vec<_>>()
    };
    let trusted = place.json(&format!("{race} --no-check"), 0);
    assert_eq!((&trusted["check_samples"], runs(&trusted)), (&0.into(), runs(&sound)));
    place.pasta(race).assert().code(0).stdout(contains(format!("took {samples} samples")));
    place.write("fault", "loss");
    let told = contains("failed its check: the loss does not belong to the gradient");
    place.pasta(race).assert().code(2).stderr(told);
    place.pasta(&format!("{race} --no-check")).assert().code(0);
    // A problem of the library needs none.
    place.write("q.toml", place::SGD);
    assert_eq!(place.json("compare q.toml --budget 200 --seeds 2 --methods dog", 0)["check_samples"], 0);
}

#[test]
fn without_repeatable_samples_what_needs_them_is_refused_and_the_rest_works() {
    let unseeded = |text: String| with(&text, "environment = {", "environment = { SEEDED = \"no\",");
    let place = place(&unseeded(sgd(100, "")));
    place.write("fault", "own");
    let cannot = contains("note: the simulator's samples do not follow from their seeds");
    place.pasta("solve p.toml --output run").assert().code(0).stderr(cannot);
    place
        .pasta("resume run")
        .assert()
        .code(2)
        .stderr(contains("a resumed run would not be the run that stopped"));
    place
        .pasta("calibrate p.toml")
        .assert()
        .code(2)
        .stderr(contains("evaluates each sample at several points"));
    place.write(
        "q.toml",
        &with(
            &place.read("p.toml"),
            "name = \"sgd\"\neta = 0.1",
            "name = \"storm\"\neta = 0.1\nmomentum = 0.3",
        ),
    );
    place
        .pasta("solve q.toml")
        .assert()
        .code(2)
        .stderr(contains("the method evaluates each sample at two points, and the oracle cannot"));
    place.json("certify run --target 1 --kurtosis", 0);
    let checked = unwrapped(&place.pasta("check p.toml").assert().code(0).get_output().stdout);
    assert!(checked.contains("no PAGE, no resume, no calibrate"), "{checked}");
    let auto =
        unseeded(smooth("")).split("[recipe]").next().unwrap().to_owned() + "[recipe]\nname = \"auto\"\n";
    place.write("auto.toml", &auto);
    let point = place.json("solve auto.toml --budget 20000", 0)["point"].clone();
    let [x, y] = [0, 1].map(|i| point[i].as_f64().unwrap());
    // 20,000 samples of unit variance; a tenth is more than ten sigma.
    assert!((x - 1.0).abs() < 0.1 && (y + 2.0).abs() < 0.1, "{point}");
}

#[test]
fn a_quick_try_needs_no_file() {
    let place = place("");
    let solve = |words: &[&str], code: i32| {
        let mut command = place.pasta("solve --json --command");
        command.arg("python3 sim.py").args(words).env("PYTHONPATH", SDK);
        let output = command.assert().code(code).get_output().clone();
        (
            serde_json::from_slice::<Value>(&output.stdout).unwrap(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let (run, said) = solve(&["--dimension", "2", "--target", "0.3", "--start", "3,3"], 0);
    assert_eq!((&run["method"], &run["certificate"]["verdict"]), (&"auto".into(), &"certified".into()));
    assert!(
        said.contains("note: certificates assume that the kurtosis of the noise is at most 100"),
        "{said}"
    );
    let (run, _) = solve(&["--dimension", "2", "--budget", "3000"], 0);
    assert_eq!(run["certificate"], Value::Null);
    solve(&["--dimension", "2"], 2);
    let (refused, _) = solve(&["--dimension", "2", "--budget", "9999", "--start", "1,two"], 2);
    assert!(refused["error"]["message"].as_str().unwrap().contains("--start: expected numbers"));
    place.pasta("solve").assert().code(2);
    place
        .pasta("solve p.toml --command x --dimension 1")
        .assert()
        .code(2)
        .stderr(contains("cannot be used with"));
    place.pasta("solve --command x").assert().code(2).stderr(contains("--dimension"));
}

#[test]
fn every_way_to_misdescribe_a_simulator_is_told_with_its_line() {
    let place = place("");
    let text = sgd(20, "");
    let cases = [
        (
            "command = [\"python3\", \"sim.py\"]",
            "command = \"python3 sim.py\"",
            "q.toml:4: [problem] command: expected a list of words",
        ),
        (
            "command = [\"python3\", \"sim.py\"]",
            "command = []",
            "q.toml:4: [problem] command: expected a list of words",
        ),
        (
            "command = [\"python3\", \"sim.py\"]",
            "command = [\"no-such-program\"]",
            "there is no program \"no-such-program\"",
        ),
        ("command = [\"python3\", \"sim.py\"]", "command = [\"python3\", \"nothing.py\"]", "nothing.py"),
        ("dimension = 2\n", "", "[problem] dimension is missing"),
        ("dimension = 2", "dimension = 0", "dimension: expected a number of coordinates, at least 1, got 0"),
        (
            "start = 3.0",
            "start = [1.0]",
            "start: expected as many numbers as the dimension, which is 2; got 1",
        ),
        (
            "start = 3.0",
            "start = 3.0\nworkers = 0",
            "workers: expected a number of processes from 1 to 4096, got 0",
        ),
        ("start = 3.0", "start = 3.0\nblock = 0", "block: expected a number of samples"),
        ("start = 3.0", "start = 3.0\ntimeout = -1", "timeout: expected a number of seconds above 0, got -1"),
        ("start = 3.0", "start = 3.0\nretries = \"two\"", "retries: expected a whole number"),
        (
            "start = 3.0",
            "start = 3.0\ndirectory = \"nowhere\"",
            "directory: nowhere: No such file or directory",
        ),
        ("start = 3.0", "start = 3.0\nseeds = 3", "seeds: unknown key; expected one of command, dimension"),
        ("start = 3.0", "start = 3.0\ncheck = 1", "check: expected true or false"),
        ("[recipe]", "[noise]\ntail = \"gaussian\"\n[recipe]", "noise: a simulator has its own noise"),
        ("environment = {", "environment = { A = 1,", "environment: A: expected a table of texts"),
    ];
    for (old, new, told) in cases {
        place.write("q.toml", &with(&text, old, new));
        place.pasta("solve q.toml").assert().code(2).stderr(contains(told));
    }
}

/// The program, which the machine must have: CI installs it.
fn program(name: &str) {
    let found = Command::new("sh")
        .args(["-c", &format!("command -v {name}")])
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(
        found.success(),
        "{name} is not installed, and the SDK for its language cannot be tested without it"
    );
}

#[test]
fn the_examples_in_python_c_and_r_run_and_find_what_is_known() {
    ["python3", "cc", "Rscript"].iter().for_each(|name| program(name));
    let place = TestDir::new();
    let built = Command::new("cc")
        .args(["-O2", "-Wall", "-Wextra", "-Werror", "-I", SDK, "-o"])
        .arg(place.path("mm1"))
        .arg(Path::new(EXAMPLES).join("mm1.c"))
        .arg("-lm")
        .status()
        .unwrap();
    assert!(built.success());
    let read = |name: &str| std::fs::read_to_string(Path::new(EXAMPLES).join(name)).unwrap();
    for name in ["newsvendor", "mm1", "call-centre"] {
        place.write(&format!("{name}.toml"), &read(&format!("{name}.toml")).replace("../../sdk", SDK));
    }
    place.write("newsvendor.py", &read("newsvendor.py"));
    place.write("call-centre.R", &read("call-centre.R").replace("../../sdk", SDK));
    for name in ["newsvendor", "mm1", "call-centre"] {
        let checked = place.json(&format!("check {name}.toml"), 0);
        assert_eq!(
            (&checked["is_sound"], &checked["repeats"]["same_worker"]),
            (&true.into(), &true.into()),
            "{name}"
        );
    }
    let stocks = place.json("solve newsvendor.toml --budget 40000", 0)["point"].clone();
    for (i, stock) in stocks.as_array().unwrap().iter().enumerate() {
        // The median of demand. At 40,000 samples of a sign the error is a few per cent.
        let best = (5.0 + i as f64) * std::f64::consts::LN_2;
        assert!((stock.as_f64().unwrap() / best - 1.0).abs() < 0.15, "{i}: {stock} against {best}");
    }
    let speed = place.json("solve mm1.toml", 0);
    assert_eq!(speed["certificate"]["verdict"], "certified");
    // The queue is nearly stationary: C + d/dx 1/(x - 1) = 0 at x = 2.
    assert!((speed["point"][0].as_f64().unwrap() - 2.0).abs() < 0.15, "{}", speed["point"]);
    let agents = place.json("solve call-centre.toml --budget 4000", 0);
    assert!(
        agents["point"].as_array().unwrap().iter().all(|x| (2.5..5.0).contains(&x.as_f64().unwrap())),
        "{agents}"
    );
}

#[cfg(unix)]
#[test]
fn the_job_of_the_documentation_runs_with_a_stand_in_for_slurm_and_gives_the_bits_of_one_machine() {
    let page = include_str!("../../../docs/pipe.md");
    let section = page.split("## On a cluster").nth(1).unwrap();
    let block = |kind: &str| {
        let begun = section.split(&format!("```{kind}\n")).nth(1).unwrap();
        begun.split("```").next().unwrap().to_owned()
    };
    let place = TestDir::new();
    let example = |name: &str| std::fs::read_to_string(Path::new(EXAMPLES).join(name)).unwrap();
    place.write("newsvendor.py", &example("newsvendor.py"));
    place.write("cluster.toml", &block("toml"));
    place.write("job.sh", &block("sh"));
    // What a job step does to the command, and a note that it did.
    let stand_in =
        "#!/bin/sh\nwhile [ \"${1#-}\" != \"$1\" ]; do shift; done\necho step >> steps\nexec \"$@\"\n";
    std::fs::create_dir(place.path("bin")).unwrap();
    place.write("bin/srun", stand_in);
    let path = format!(
        "{}:{}:{}",
        place.path("bin").display(),
        Path::new(PASTA).parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    let job = || {
        let mut job = Command::new("sh");
        job.arg("job.sh")
            .current_dir(place.0.path())
            .env("PATH", &path)
            .env("PYTHONPATH", SDK)
            .env(STATE, place.state());
        job.output().unwrap()
    };
    assert!(Command::new("chmod").arg("+x").arg(place.path("bin/srun")).status().unwrap().success());
    let said = job();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let steps = place.read("steps").lines().count();
    assert!((1..=4).contains(&steps), "{steps}");
    let result: Value = serde_json::from_str(&place.read("run/result.json")).unwrap();
    let local = block("toml").replace("\"srun\", \"--ntasks=1\", \"--exact\", \"--unbuffered\", ", "");
    place.write("local.toml", &local.replace("workers = 4", "workers = 1"));
    let mut alone = place.pasta("solve local.toml --json");
    let alone = alone.env("PYTHONPATH", SDK).output().unwrap();
    let alone: Value = serde_json::from_slice(&alone.stdout).unwrap();
    assert_eq!(result["point"], alone["point"]);
    // Submitted again it goes on, or says that nothing is left to do.
    let again = job();
    assert!(unwrapped(&again.stderr).contains("the run already ended") || again.status.success());
}

#[test]
fn a_simulator_whose_rows_come_once_says_when_there_are_no_more() {
    let sim = r#"
import json, random, struct, sys
framing = sys.argv[1]
hello = json.loads(sys.stdin.buffer.readline())
say = sys.stdout.buffer
say.write(json.dumps({"pasta": 1, "dimension": 2, "reproducible": False, "framing": framing}).encode() + b"\n")
say.flush()
rows = iter([[1 + random.gauss(0, 1), -2 + random.gauss(0, 1)] for _ in range(3000)])
open("starts", "a").write("start\n")

def answer(x, count):
    taken = [row for _, row in zip(range(count), rows)]
    return None if len(taken) < count else [sum(x[i] - row[i] for row in taken) for i in range(2)]

while True:
    if framing == "json":
        line = sys.stdin.buffer.readline()
        if not line:
            break
        ask = json.loads(line)
        told = answer(ask["points"][0], ask["count"])
        reply = {"id": ask["id"], "ended": True} if told is None else {"id": ask["id"], "gradients": [told]}
        say.write(json.dumps(reply).encode() + b"\n")
    else:
        head = sys.stdin.buffer.read(40)
        if len(head) < 40:
            break
        request, seed, first, count, points, wanted = struct.unpack("<QQQQII", head)
        x = struct.unpack("<2d", sys.stdin.buffer.read(16))
        told = answer(x, count)
        say.write(struct.pack("<QII", request, 3, 0) if told is None else struct.pack("<QII2d", request, 0, 0, *told))
    say.flush()
"#;
    for framing in ["json", "binary"] {
        let place = TestDir::holding(&format!(
            "seed = 1\nbudget = 100000\n[problem]\ncommand = [\"python3\", \"once.py\", \"{framing}\"]\nstart = [0.0, 0.0]\nworkers = 1\n\
             [recipe]\nname = \"sgd\"\neta = 0.05\nsteps = 10000\nbatch = 8\n"
        ));
        place.write("once.py", sim);
        let result = place.json("solve p.toml", 5);
        assert_eq!(result["stop"]["kind"], "out-of-budget");
        assert!(
            result["stop"]["meaning"].as_str().unwrap().starts_with("the samples have come to an end"),
            "{result}"
        );
        let point: Vec<f64> = serde_json::from_value(result["point"].clone()).unwrap();
        // SGD with eta = 0.05 and 8 samples of variance 1: a deviation of sqrt(0.05/2/8) = 0.06, of which this is eight.
        assert!((point[0] - 1.0).abs() < 0.5 && (point[1] + 2.0).abs() < 0.5, "{point:?}");
        assert!(result["ledger"]["samples"].as_u64().unwrap() <= 3000);
        assert_eq!(place.read("starts").lines().count(), 1);
    }
}

/// Debian has no package of Julia, so CI cannot install it.
#[test]
fn a_simulator_in_julia_works_where_julia_is_installed() {
    if Command::new("julia").arg("--version").output().is_err() {
        println!("skipped: a_simulator_in_julia_works, since julia is not installed");
        return;
    }
    let place = TestDir::holding(
        "seed = 1\n\n[problem]\ncommand = [\"julia\", \"--startup-file=no\", \"sim.jl\"]\ndimension = 2\nstart = 3.0\nworkers = 2\n\n\
         [recipe]\nname = \"sgd\"\neta = 0.1\nsteps = 100\nbatch = 20\n",
    );
    let code = "function sample(x, rng, gradient)\n    x[1] > 50 && error(\"too far\")\n    e = x .- 1.0 .- randn(rng, length(x))\n    \
                gradient .+= e\n    sum(abs2, e) / 2\nend\nPasta.serve(sample; losses = true, name = \"bowl\")\n";
    place.write("sim.jl", &format!("include(\"{SDK}/pasta.jl\")\n{code}"));
    let checked = place.json("check p.toml", 0);
    assert_eq!((&checked["is_sound"], &checked["repeats"]["other_worker"]), (&true.into(), &true.into()));
    let point = place.json("solve p.toml", 0)["point"].clone();
    // SGD with eta = 0.1 and 20 samples of variance 1 stays within a few times sqrt(0.1/2/20) = 0.05 of the mean.
    assert!(point.as_array().unwrap().iter().all(|x| (x.as_f64().unwrap() - 1.0).abs() < 0.3), "{point}");
    place.write("p.toml", &with(&place.read("p.toml"), "start = 3.0", "start = 99.0"));
    place.pasta("solve p.toml").assert().code(1).stderr(contains("too far"));
}

#[test]
fn the_sdks_are_one_file_of_at_most_sixty_lines_each() {
    for name in ["pasta.py", "pasta.h", "pasta.R", "pasta.jl"] {
        let lines = std::fs::read_to_string(Path::new(SDK).join(name)).unwrap().lines().count();
        assert!(lines <= 60, "{name} has {lines} lines");
    }
}

#[test]
fn the_worker_of_the_documentation_works() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/pipe.md")).unwrap();
    let code = page.split("```python").nth(2).unwrap().split("```").next().unwrap();
    let place = place(&with(&sgd(200, ""), "start = 3.0", "start = 3.0\ncheck = true"));
    place.write("sim.py", code);
    let run = place.json("solve p.toml", 0);
    // E (x - xi)^2/2 with xi exponential: 1 in each coordinate, and SGD with eta = 0.1 and 16 samples stays within 0.4 of it.
    assert!(
        run["point"].as_array().unwrap().iter().all(|x| (x.as_f64().unwrap() - 1.0).abs() < 0.4),
        "{run}"
    );
    assert_eq!(place.json("check p.toml", 0)["is_sound"], true);
}

/// A copy of a folder without folders in it.
fn copy(place: &TestDir, from: &str, to: &str) {
    std::fs::create_dir(place.path(to)).unwrap();
    for entry in std::fs::read_dir(place.path(from)).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), place.path(to).join(entry.file_name())).unwrap();
    }
}

#[test]
fn the_program_of_a_folder_from_elsewhere_is_not_started_without_trust() {
    let place = place(&sgd(50, ""));
    let starting = contains("starting [\"python3\", \"sim.py\"] in ");
    place.pasta("solve p.toml --output run --budget 400").assert().code(5).stderr(starting.clone());
    let started = || place.read("pids").lines().count();
    copy(&place, "run", "copy");
    place.write("run/problem.toml", &place.read("run/problem.toml").replace("sim.py", "./sim.py"));
    let before = started();
    for words in ["resume copy", "certify copy --target 1 --kurtosis", "resume run"] {
        let told =
            contains("was not written by your pasta on this machine, and its run starts [\"python3\", \"")
                .and(contains("give --trust"));
        place.pasta(words).assert().code(2).stderr(told);
        assert_eq!(started(), before, "{words}");
    }
    place.pasta("certify copy --target 1 --kurtosis --trust").assert().stderr(starting.clone());
    place.pasta("resume copy --budget 500 --trust").assert().code(5).stderr(starting);
    // From here on it is one of ours.
    place.pasta("resume copy --budget 600").assert().code(5);
    // Nothing is started by problems without a program.
    let other = TestDir::holding(place::SGD);
    other.pasta("solve p.toml --output run --budget 500").assert().code(5);
    copy(&other, "run", "copy");
    other.pasta("resume copy --budget 600").assert().code(5);
    assert!(!other.state().exists());
}

#[test]
fn hostile_names_reach_no_terminal_as_they_are() {
    let evil = "\u{1b}[2J\u{7}evil";
    let place = place(&with(
        &sgd(20, ""),
        "environment = {",
        "environment = { NAME = \"\\u001b[2J\\u0007evil\", \"A\\u001b\" = \"\\u001b[2J\",",
    ));
    std::fs::create_dir(place.path(evil)).unwrap();
    place.write(&format!("{evil}.csv"), &format!("a,{evil},b\n1,{evil},0\n2,x,1\n3,{evil},1\n4,x,0\n"));
    place.write("q.toml", &with(&sgd(20, ""), "\"sim.py\"", "\"\\u001b[2Jsim.py\""));
    place.write("r.toml", &sgd(20, "\"\\u001b[2J\" = 1"));
    let table = format!("{evil}.csv");
    let folder = format!("{evil}/run");
    let runs: [(&[&str], i32); 9] = [
        (&["solve", "p.toml", "--output", &folder], 0),
        (&["check", "p.toml"], 0),
        (&["resume", &folder], 0),
        (&["solve", "q.toml"], 2),
        (&["solve", "r.toml"], 2),
        (&["solve", evil], 2),
        (&["inspect", &table, "--label", "b", "--one-hot"], 0),
        (&["fit", &table, "--label", "b", "--loss", "logistic", "--one-hot"], 0),
        (&["fit", &table, "--label", evil, "--loss", "logistic"], 0),
    ];
    for (words, code) in runs {
        let output = place.pasta("").args(words).assert().code(code).get_output().clone();
        for said in [&output.stdout, &output.stderr] {
            let raw = said.iter().any(|byte| byte.is_ascii_control() && *byte != b'\n');
            assert!(!raw, "{words:?}: {}", String::from_utf8_lossy(said).escape_debug());
        }
    }
}

#[test]
fn a_simulator_has_the_time_to_greet_that_the_file_gives_it() {
    let slow = |more: &str| with(&sgd(20, more), "environment = {", "environment = { LOADING = \"0.5\",");
    let place = place(&slow("greeting = 0.1"));
    place.pasta("solve p.toml").assert().code(2).stderr(contains("did not answer within 0.1 seconds"));
    // What a request may take is no limit to loading.
    place.write("p.toml", &slow("timeout = 0.4"));
    place.pasta("solve p.toml").assert().code(0);
    place.write("p.toml", &sgd(20, "greeting = 0"));
    place
        .pasta("solve p.toml")
        .assert()
        .code(2)
        .stderr(contains("greeting: expected a number of seconds above 0"));
}

#[test]
fn a_run_of_auto_that_is_stopped_again_and_again_ends_and_is_the_same_run() {
    let text = smooth("").split("[recipe]").next().unwrap().to_owned() + "[recipe]\nname = \"auto\"\n";
    let place = place(&with(&text, "environment = {", "environment = { PAUSE = \"0.001\", COUNT = \"yes\","));
    let whole = place.json("solve p.toml --budget 6000", 0);
    // A byte for each sample.
    let count = || std::fs::metadata(place.path("count")).map_or(0, |about| about.len());
    let (before, mut stops) = (count(), 0);
    let mut words = "solve p.toml --budget 6000 --output run --checkpoint-every 0.1".to_owned();
    loop {
        let mut child = Command::new(PASTA)
            .args(words.split(' '))
            .current_dir(place.path(""))
            .env(STATE, place.state())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let begun = count();
        while count() < begun + 800 && child.try_wait().unwrap().is_none() {
            thread::sleep(Duration::from_millis(5));
        }
        // Every other time without a word, so that checkpoints within a step are all there is.
        let signal = if stops % 2 == 0 { "-INT" } else { "-KILL" };
        let _ = Command::new("kill").args([signal, &child.id().to_string()]).stderr(Stdio::null()).status();
        if child.wait().unwrap().code() == Some(0) {
            break;
        }
        stops += 1;
        assert!(stops < 60, "it does not come to its end");
        words = "resume run --checkpoint-every 0.1".to_owned();
    }
    let run: Value = serde_json::from_str(&place.read("run/result.json")).unwrap();
    assert_eq!((&run["point"], &run["ledger"]), (&whole["point"], &whole["ledger"]));
    let (answered, counted) = (count() - before, run["ledger"]["samples"].as_u64().unwrap());
    println!("{stops} stops, {answered} samples answered, {counted} counted");
    // Steps of up to a third of all samples were dropped whole otherwise, again and again.
    assert!(stops >= 5 && answered < counted + counted / 2, "{stops} {answered} {counted}");
    assert_no_worker_left(&place);
}
