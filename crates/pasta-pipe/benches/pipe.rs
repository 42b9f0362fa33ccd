//! Speed of simulators over a pipe, as ratios and times of one run.
//!
//! `cargo bench -p pasta-pipe --bench pipe [name]` prints one table. The workers are this program, started again with the word `serve`.

#[path = "../../pasta/benches/harness/mod.rs"]
#[allow(dead_code, reason = "the other benchmarks use the rest of it")]
mod harness;

use std::cell::RefCell;
use std::hint::black_box;
use std::io::{BufRead, BufWriter, Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use harness::{fastest, print_row};
use pasta_opt::draws::Role;
use pasta_opt::oracle::{Answer, Batch, Oracle, Request};
use pasta_pipe::{Pipe, Simulator};

fn main() {
    let mut words = std::env::args().skip(1);
    match words.next().as_deref() {
        Some("serve") => {
            serve(&words.next().unwrap_or_default(), words.next().and_then(|n| n.parse().ok()).unwrap_or(0));
        }
        Some("swallow") => swallow(),
        _ => harness::main(&[("two-workers", two_workers), ("request", request), ("bandwidth", bandwidth)]),
    }
}

/// A millisecond a sample, of waiting (for another machine, say) and of work: two workers against the same loop without a pipe. Work
/// needs two idle processors.
fn two_workers(name: &str) {
    let samples = 200;
    for (how, microseconds) in [("waiting", 1000), ("work", -1000)] {
        for framing in ["binary", "json"] {
            let two =
                pipe(framing, microseconds, Simulator { dimension: 10, workers: 2, ..Simulator::of([""]) });
            let bare = || (0..samples).for_each(|_| spend(microseconds));
            let [two, bare] = fastest(5, || ask(&two, &[0.5; 10], samples), bare);
            let what = format!("samples/s, 1 ms of {how} each, {framing}: two workers over a loop");
            print_row(name, &what, bare / two, 1.9..);
        }
    }
}

/// A request beside its samples, d = 100, in microseconds.
fn request(name: &str) {
    let x: Vec<f64> = (0..100).map(|i| f64::from(i).sin()).collect();
    for (framing, most) in [("binary", 30.0), ("json", 100.0)] {
        let one = pipe(framing, 0, Simulator { dimension: 100, block: 1, ..Simulator::of([""]) });
        let requests = 500;
        // One after another, as a run with small batches asks; and a batch of as many blocks.
        let [single, batch] =
            fastest(20, || (0..requests).for_each(|_| ask(&one, &x, 1)), || ask(&one, &x, requests));
        let each = |seconds: f64| 1e6 * seconds / requests as f64;
        print_row(
            name,
            &format!("microseconds a request, d = 100, {framing}, one by one"),
            each(single),
            ..=most,
        );
        print_row(
            name,
            &format!("microseconds a request, d = 100, {framing}, in one batch"),
            each(batch),
            ..=most,
        );
    }
}

/// Bytes per second of requests and replies, d = 10^5, over those of a pipe.
fn bandwidth(name: &str) {
    let d = 100_000;
    let x: Vec<f64> = (0..d).map(|i| f64::from(i).sin()).collect();
    let one = pipe("binary", 0, Simulator { dimension: x.len(), block: 1, ..Simulator::of([""]) });
    let (requests, mib) = (2, MIB);
    let bytes = vec![1u8; 1 << 20];
    let mut child = Command::new(this())
        .arg("swallow")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this program can be started");
    let (mut down, mut up) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
    let bare = || {
        (0..mib).for_each(|_| down.write_all(&bytes).expect("it reads"));
        up.read_exact(&mut [0]).expect("it answers");
    };
    let [asked, plain] = fastest(200, || (0..requests).for_each(|_| ask(&one, &x, 1)), bare);
    drop(down);
    child.wait().expect("it ends");
    let ours = (requests as usize * 2 * 8 * x.len()) as f64 / asked;
    let pipe = (mib << 20) as f64 / plain;
    print_row(name, "GB/s of a pipe of the standard library", pipe / 1e9, ..);
    print_row(name, "bytes/s, d = 10^5, binary: requests and replies over a pipe", ours / pipe, 0.5..);
}

/// What goes through a pipe at a time.
const MIB: usize = 4;

fn this() -> std::path::PathBuf {
    std::env::current_exe().expect("a program has a name")
}

fn pipe(framing: &str, microseconds: i64, simulator: Simulator) -> Pipe {
    let command =
        vec![this().display().to_string(), "serve".into(), framing.into(), microseconds.to_string()];
    Pipe::start(Simulator { command, ..simulator }, |_, _| ()).expect("this program is a worker")
}

fn ask(pipe: &Pipe, x: &[f64], samples: u64) {
    let batch = Batch { seed: 1, role: Role::Large, step: 0, samples: 0..samples };
    // A run has its vectors, too.
    thread_local!(static OUT: RefCell<Vec<f64>> = const { RefCell::new(Vec::new()) });
    OUT.with_borrow_mut(|out| {
        out.resize(x.len(), 0.0);
        pipe.answer(&Request::sums(batch, &[x]), &mut Answer::new(out)).expect("these workers cannot fail");
        black_box(out);
    });
}

/// So many microseconds: of waiting, or of work if they are negative.
fn spend(microseconds: i64) {
    let time = Duration::from_micros(microseconds.unsigned_abs());
    match microseconds {
        0 => {}
        1.. => std::thread::sleep(time),
        _ => {
            let clock = Instant::now();
            while clock.elapsed() < time {
                std::hint::spin_loop();
            }
        }
    }
}

/// Reads some MiB and says so, again and again.
fn swallow() {
    let (mut input, mut bytes, mut seen) = (std::io::stdin().lock(), vec![0; 1 << 20], 0);
    while let Ok(n @ 1..) = input.read(&mut bytes) {
        seen += n;
        if seen == MIB << 20 {
            seen = 0;
            let mut output = std::io::stdout().lock();
            output.write_all(&[1]).and_then(|()| output.flush()).expect("it is read");
        }
    }
}

/// A worker: every sample takes so many microseconds, and its gradient is the point.
fn serve(framing: &str, microseconds: i64) {
    // Lines are the business of JSON; stdout of the standard library looks for them in all that is written.
    let (mut input, mut output) = (std::io::stdin().lock(), BufWriter::new(std::io::stdout().lock()));
    let mut line = String::new();
    input.read_line(&mut line).expect("a greeting");
    let dimension: usize = line
        .trim_end_matches(|c: char| !c.is_ascii_digit())
        .rsplit(' ')
        .next()
        .and_then(|d| d.parse().ok())
        .expect("a dimension");
    writeln!(
        output,
        "{{\"pasta\": 1, \"dimension\": {dimension}, \"reproducible\": true, \"framing\": \"{framing}\"}}"
    )
    .expect("it is read");
    output.flush().expect("it is read");
    let samples = |count: u64| (0..count).for_each(|_| spend(microseconds));
    if framing == "json" {
        let mut line = String::new();
        while input.read_line(&mut line).is_ok_and(|n| n > 0) {
            let asked: serde_json::Value = serde_json::from_str(&line).expect("a request");
            samples(asked["count"].as_u64().unwrap_or(0));
            let points: Vec<Vec<f64>> = serde_json::from_value(asked["points"].clone()).expect("points");
            let reply = serde_json::json!({"id": asked["id"], "gradients": points});
            writeln!(output, "{reply}").and_then(|()| output.flush()).expect("it is read");
            line.clear();
        }
        return;
    }
    let mut request = vec![0; 40 + 8 * dimension];
    while input.read_exact(&mut request).is_ok() {
        samples(u64::from_le_bytes(request[24..32].try_into().expect("eight bytes")));
        // Id, status 0, no text; the gradient is the point.
        let (head, x) = request.split_at(40);
        output.write_all(&head[..8]).and_then(|()| output.write_all(&[0; 8])).expect("it is read");
        output.write_all(x).and_then(|()| output.flush()).expect("it is read");
    }
}
