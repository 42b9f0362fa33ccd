//! Real workers: same bits whoever answers, every fault, nothing left behind.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use pasta_opt::draws::Role;
use pasta_opt::oracle::{Answer, Batch, ErrorKind, Form, Oracle, OracleError, Request};
use pasta_pipe::{Fault, Framing, Pipe, Question, Simulator, StartError, Wrong};

const TESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
const SDK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk");

fn simulator(variables: &[(&str, &str)]) -> Simulator {
    Simulator {
        dimension: 3,
        workers: 2,
        block: 4,
        timeout: Duration::from_secs(30),
        environment: variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        directory: Some(TESTS.into()),
        ..Simulator::of(["python3", "worker.py"])
    }
}

fn pipe(simulator: Simulator) -> Pipe {
    Pipe::start(simulator, |_, _| ()).unwrap()
}

fn batch(samples: std::ops::Range<u64>) -> Batch {
    Batch { seed: 5, role: Role::Large, step: 9, samples }
}

const X: [f64; 3] = [1.0, -2.0, 0.5];
const Y: [f64; 3] = [1.5, -2.0, 0.25];

fn ask(pipe: &Pipe, samples: std::ops::Range<u64>) -> Result<Vec<f64>, OracleError> {
    let mut out = vec![0.0; 3];
    pipe.answer(&Request::sums(batch(samples), &[&X]), &mut Answer::new(&mut out)).map(|_| out)
}

/// A path that nothing is at.
fn fresh(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("pasta-pipe-{}-{name}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

fn is_alive(pid: &str) -> bool {
    // A zombie has ended, but nobody has waited for it: that counts as left behind.
    std::path::Path::new("/proc").join(pid.trim()).exists()
}

#[test]
fn the_bits_do_not_depend_on_the_workers_or_on_what_is_asked_together() {
    let alone = pipe(Simulator { workers: 1, ..simulator(&[]) });
    let crowd = pipe(Simulator { workers: 5, ..simulator(&[]) });
    for samples in [0..1, 0..4, 0..37, 4..20, 6..7, 3..30] {
        assert_eq!(ask(&alone, samples.clone()).unwrap(), ask(&crowd, samples).unwrap());
    }
    // Parts at the places of the tree have the bits of the whole; others have them up to rounding.
    let [left, right] = batch(0..37).halves(4).unwrap();
    let [left, right] = [left, right].map(|part| ask(&crowd, part.samples).unwrap());
    let sum: Vec<f64> = left.iter().zip(&right).map(|(a, b)| a + b).collect();
    assert_eq!(ask(&alone, 0..37).unwrap(), sum);
    let [left, right] = [0..6, 6..37].map(|part| ask(&crowd, part).unwrap());
    let whole = ask(&alone, 0..37).unwrap();
    // 37 terms of size below 10.
    assert!(
        left.iter()
            .zip(&right)
            .zip(&whole)
            .all(|((a, b), whole)| (a + b - whole).abs() < 37.0 * 37.0 * 10.0 * f64::EPSILON)
    );
    assert_eq!(crowd.counts().repeated_requests, 0);
}

#[test]
fn differences_and_losses_belong_to_the_same_samples() {
    let pipe = pipe(simulator(&[]));
    let mut sums = vec![0.0; 6];
    let mut losses = vec![0.0; 2];
    let points: [&[f64]; 2] = [&X, &Y];
    let mut answer = Answer { gradients: &mut sums, losses: &mut losses, support: 3 };
    let request = Request { losses: true, ..Request::sums(batch(0..10), &points) };
    pipe.answer(&request, &mut answer).unwrap();
    assert_eq!(&sums[..3], ask(&pipe, 0..10).unwrap());
    let mut difference = vec![0.0; 3];
    let request = Request { form: Form::Differences, ..Request::sums(batch(0..10), &points) };
    pipe.answer(&request, &mut Answer::new(&mut difference)).unwrap();
    // g(x) - g(y) = x - y for every sample.
    for i in 0..3 {
        assert!((difference[i] - 10.0 * (X[i] - Y[i])).abs() < 1e-12, "{difference:?}");
        assert!((sums[i] - sums[3 + i] - difference[i]).abs() < 1e-12);
    }
    assert!(losses[0] > 0.0 && losses[0] != losses[1]);
}

#[test]
fn both_framings_and_the_sdk_say_the_same_as_a_formula() {
    // The SDK in Python speaks binary. Its sample is deterministic, so that the sum is known.
    let script = "import pasta\n\
        def sample(x, rng):\n    r = rng.random()\n    return [v * 2 for v in x], sum(x) + 0 * r\n\
        pasta.serve(sample, losses=True, name='twice')";
    let pipe = pipe(Simulator {
        dimension: 3,
        workers: 2,
        environment: vec![("PYTHONPATH".into(), SDK.into())],
        ..Simulator::of(["python3", "-c", script])
    });
    assert_eq!((pipe.hello().framing, pipe.hello().name.as_str()), (Framing::Binary, "twice"));
    assert_eq!(ask(&pipe, 0..20).unwrap(), X.map(|x| 40.0 * x));
    let question = Question { seed: 1, samples: 3..7, points: &[&X, &Y], losses: true, squares: true };
    let sums = pipe.ask_worker(1, &question).unwrap();
    assert_eq!(sums.gradients, [X, Y].concat().iter().map(|x| 8.0 * x).collect::<Vec<_>>());
    assert_eq!(sums.losses, [X, Y].map(|x| 4.0 * x.iter().sum::<f64>()));
    assert_eq!(sums.squares, [X, Y].map(|x| 16.0 * x.iter().map(|x| x * x).sum::<f64>()));
}

#[test]
fn a_fault_once_is_repaired_and_changes_no_bit() {
    let expected = ask(&pipe(simulator(&[])), 0..40).unwrap();
    for fault in ["dies", "hangs", "garbage", "nan", "short", "missing", "id", "busy"] {
        let once = fresh(fault);
        let variables = [("FAULT", fault), ("AT", "3"), ("ONCE", once.to_str().unwrap())];
        let timeout = Duration::from_millis(if fault == "hangs" { 500 } else { 30_000 });
        let pipe = pipe(Simulator { timeout, ..simulator(&variables) });
        assert_eq!(ask(&pipe, 0..40).unwrap(), expected, "{fault}");
        let counts = pipe.counts();
        assert_eq!(
            (counts.requests, counts.repeated_requests, counts.repeated_samples),
            (10, 1, 4),
            "{fault}"
        );
        assert!(counts.workers_started == 3 || counts.workers_started == 2, "{fault}: {counts:?}");
        assert!(pipe.last_fault().is_some());
        let _ = std::fs::remove_file(once);
    }
}

#[test]
fn a_fault_that_stays_is_told_with_request_reply_and_stderr() {
    let told = |fault: &str, retries: u32| {
        let timeout = Duration::from_millis(if fault == "hangs" { 300 } else { 30_000 });
        let pipe =
            pipe(Simulator { retries, workers: 1, timeout, ..simulator(&[("FAULT", fault), ("AT", "2")]) });
        let error = ask(&pipe, 0..40).unwrap_err();
        let fault = std::error::Error::source(&error).unwrap().downcast_ref::<Fault>().unwrap().clone();
        (error.kind(), fault)
    };
    let (kind, fault) = told("dies", 0);
    assert_eq!((kind, fault.times), (ErrorKind::Fatal, 1));
    assert_eq!(fault.stderr, ["one", "two", "the model cannot be read"]);
    let text = fault.to_string();
    for part in [
        "worker 1 (python3 worker.py) ended without an answer (exit status: 3)",
        "\n  request: {\"id\": 2, \"seed\": \"",
        "\"first\": 0, \"count\": 4, \"points\": [[1.0,-2.0,0.5]]}",
        "\n  stderr: the model cannot be read",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    let (kind, fault) = told("hangs", 0);
    assert_eq!((kind, &fault.wrong), (ErrorKind::TimedOut, &Wrong::TimedOut("0.3".into())));
    assert_eq!(fault.stderr, ["thinking"]);
    let (_, fault) = told("garbage", 0);
    assert!(
        fault.to_string().contains(
            "wrote what is no reply: expected value at line 1 column 1; standard output is for replies only"
        ),
        "{fault}"
    );
    assert_eq!(fault.reply, "here I am");
    // A second process fails at its second request, too: with AT = 2 the repeated request is its first, which succeeds.
    let always = |fault: &str, retries| {
        let pipe = pipe(Simulator { retries, workers: 1, ..simulator(&[("FAULT", fault)]) });
        ask(&pipe, 0..4).unwrap_err().to_string()
    };
    assert!(
        always("short", 2)
            .contains("wrote 2 numbers in a gradient, where 3 belong; it was the third failure")
    );
    assert!(always("missing", 1).contains("wrote 0 gradients, where 1 belong; it was the second failure"));
    assert!(always("id", 0).contains("answered request 2, not request 1"));
    let refused = always("error", 2);
    assert!(
        refused.contains("says: the queue is unstable\n") && !refused.contains("failure of this"),
        "{refused}"
    );
    assert!(always("busy", 3).contains("says: the queue is busy; it was the 4th failure"));
}

#[test]
fn what_is_never_finite_is_handed_to_the_gate() {
    let pipe = pipe(Simulator { retries: 1, workers: 1, ..simulator(&[("FAULT", "nan")]) });
    assert!(ask(&pipe, 0..4).unwrap()[0].is_nan());
    let counts = pipe.counts();
    assert_eq!((counts.not_finite, counts.repeated_requests), (1, 1));
    assert!(pipe.last_fault().unwrap().reply.contains("NaN"));
}

#[test]
fn a_bad_greeting_is_told_at_the_start() {
    let start = |variables: &[(&str, &str)]| {
        let simulator = Simulator { start_timeout: Duration::from_secs(5), ..simulator(variables) };
        Pipe::start(simulator, |_, _| ()).unwrap_err().to_string()
    };
    assert!(start(&[("FAULT", "greeting")]).contains("it speaks version 2, not 1"));
    assert!(start(&[("FAULT", "dimension")]).contains("it has dimension 7, but 3 was asked for"));
    assert!(start(&[("FAULT", "refuse")]).contains("says: no licence at this hour"));
    let mute = Simulator { start_timeout: Duration::from_millis(300), ..simulator(&[("FAULT", "mute")]) };
    assert!(
        Pipe::start(mute, |_, _| ()).unwrap_err().to_string().contains("did not answer within 0.3 seconds")
    );
    let of = |words: &[&str]| Pipe::start(Simulator::of(words.iter().copied()), |_, _| ()).unwrap_err();
    assert!(of(&["no-such-program"]).to_string().contains("there is no program \"no-such-program\""));
    assert!(of(&["false"]).to_string().contains("ended without an answer (exit status: 1)"));
    assert!(of(&["echo", "hello"]).to_string().contains("\n  reply: hello"));
    assert!(matches!(of(&[]), StartError::Setting { name: "command", .. }));
    let nowhere = Simulator { directory: Some("/no/such/place".into()), ..simulator(&[]) };
    assert!(
        Pipe::start(nowhere, |_, _| ())
            .unwrap_err()
            .to_string()
            .contains("there is no directory /no/such/place")
    );
    for wrong in [
        Simulator { block: 0, ..simulator(&[]) },
        Simulator { workers: 0, ..simulator(&[]) },
        Simulator { dimension: 0, ..simulator(&[]) },
    ] {
        assert!(matches!(Pipe::start(wrong, |_, _| ()), Err(StartError::Setting { .. })));
    }
}

#[test]
fn lines_of_stderr_are_handed_on_with_the_workers_number() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let book = Arc::clone(&heard);
    let simulator = Simulator { retries: 0, workers: 1, ..simulator(&[("FAULT", "dies")]) };
    let pipe =
        Pipe::start(simulator, move |worker, line| book.lock().unwrap().push(format!("{worker}: {line}")))
            .unwrap();
    ask(&pipe, 0..1).unwrap_err();
    assert_eq!(*heard.lock().unwrap(), ["1: one", "1: two", "1: the model cannot be read"]);
}

#[test]
fn an_interrupt_ends_a_long_request_and_no_worker_is_left() {
    let pids = fresh("pids");
    let variables = [("FAULT", "hangs"), ("AT", "2"), ("PIDS", pids.to_str().unwrap())];
    let pipe = pipe(simulator(&variables));
    let stop = AtomicBool::new(false);
    let error = thread::scope(|scope| {
        scope.spawn(|| {
            // Until both workers hang at their second request.
            while pipe.counts().requests < 2 {
                thread::sleep(Duration::from_millis(5));
            }
            stop.store(true, Ordering::Relaxed);
        });
        let points: [&[f64]; 1] = [&X];
        let request = Request { stop: Some(&stop), ..Request::sums(batch(0..100), &points) };
        pipe.answer(&request, &mut Answer::new(&mut [0.0; 3])).unwrap_err()
    });
    assert_eq!(error.kind(), ErrorKind::Interrupted);
    drop(pipe);
    let pids = std::fs::read_to_string(pids).unwrap();
    assert_eq!(pids.lines().count(), 2);
    assert!(pids.lines().all(|pid| !is_alive(pid)), "{pids}");
}

#[test]
fn what_a_worker_has_started_ends_with_it() {
    let pids = fresh("group");
    let script = "sleep 1000 & echo $! > \"$PIDS\"; exec python3 worker.py";
    let pipe = pipe(Simulator {
        command: ["sh", "-c", script].map(Into::into).to_vec(),
        ..simulator(&[("PIDS", pids.to_str().unwrap())])
    });
    ask(&pipe, 0..1).unwrap();
    let sleeper = std::fs::read_to_string(&pids).unwrap().lines().next().unwrap().to_owned();
    assert!(is_alive(&sleeper));
    drop(pipe);
    // It is nobody's child here, so whoever adopts it waits for it in a moment.
    let until = Instant::now() + Duration::from_secs(10);
    let state = || std::fs::read_to_string(format!("/proc/{sleeper}/stat")).unwrap_or_default();
    while is_alive(&sleeper) && !state().contains(") Z") {
        assert!(Instant::now() < until, "it lives: {}", state());
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn many_threads_share_few_workers() {
    let pipe = pipe(simulator(&[]));
    let alone: Vec<_> = (0..16u64).map(|i| ask(&pipe, i..i + 20).unwrap()).collect();
    let together: Vec<_> = thread::scope(|scope| {
        let asked: Vec<_> = (0..16u64)
            .map(|i| {
                scope.spawn({
                    let pipe = &pipe;
                    move || ask(pipe, i..i + 20).unwrap()
                })
            })
            .collect();
        asked.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(alone, together);
    assert_eq!(pipe.counts().workers_started, 2);
}

#[test]
fn a_worker_may_write_megabytes_to_stderr_and_each_of_its_lines_is_handed_on() {
    let heard = Arc::new(Mutex::new(0));
    let lines = Arc::clone(&heard);
    let pipe = Pipe::start(simulator(&[("FAULT", "talks")]), move |_, line| {
        assert_eq!(line.len(), 1000);
        *lines.lock().unwrap() += 1;
    })
    .unwrap();
    ask(&pipe, 0..4).unwrap();
    drop(pipe);
    assert_eq!(*heard.lock().unwrap(), 5000);
}

#[test]
fn two_workers_answer_the_first_two_questions() {
    let path = fresh("pids");
    let pids = || std::fs::read_to_string(&path).unwrap_or_default().lines().count();
    let pipe = pipe(Simulator { workers: 3, ..simulator(&[("PIDS", path.to_str().unwrap())]) });
    let first = ask(&pipe, 0..4).unwrap();
    assert_eq!(pids(), 1);
    assert_eq!(ask(&pipe, 0..4).unwrap(), first);
    assert_eq!(pids(), 2);
    // Further questions of one request need no further process.
    assert_eq!(ask(&pipe, 0..4).unwrap(), first);
    assert_eq!((pids(), pipe.counts().workers_started), (2, 2));
}

#[test]
fn parts_of_a_question_add_up_to_its_answer_bit_for_bit() {
    let pipe = pipe(simulator(&[]));
    let whole = ask(&pipe, 2..75).unwrap();
    let [left, right] = batch(2..75).halves(pipe.leaf().unwrap()).unwrap();
    let [left, right] = [left, right].map(|part| ask(&pipe, part.samples).unwrap());
    let sum: Vec<f64> = left.iter().zip(&right).map(|(a, b)| a + b).collect();
    assert_eq!(sum, whole);
}
