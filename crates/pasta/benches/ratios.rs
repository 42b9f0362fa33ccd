//! Speed, as ratios within one run: the numbers that mean the same on any machine.
//!
//! `cargo bench -p pasta-opt --bench ratios [name]` prints one table; a name keeps the rows that contain it.
//! Nothing here fails for being slow: a row says whether its goal is met, and the reader looks at the machine.
//!
//! Both sides of a ratio take turns in many short rounds, and the fastest round of each counts. Whatever else
//! the machine does only ever adds time, so the minimum is the round that was disturbed least; a mean or a
//! median would measure the neighbours as well.

mod harness;

use std::hint::black_box;
use std::sync::Arc;

use harness::{advance, fastest, print_row, sink};
use pasta_opt::draws::{Address, Role};
use pasta_opt::oracle::{About, Answer, Charge, Request};
use pasta_opt::prelude::*;
use pasta_opt::problems::{Quadratic, SineBowl};
use rand_distr::{Distribution, StandardNormal};
use rayon::{ThreadPool, ThreadPoolBuilder};

fn main() {
    harness::main(&[
        ("exact-batch", exact_batch),
        ("vector-work", vector_work),
        ("small-step", small_step),
        ("two-threads", two_threads),
        ("auto", auto),
    ]);
}

/// A step on an oracle that draws a batch from the law of its sum: a batch of 10^12 over a batch of one.
///
/// A batch of one needs no division of g by n, and where one two-point draw moves all coordinates that division
/// is a good part of the step. Over a batch of two, which divides as well, only what N itself costs is left.
fn exact_batch(name: &str) {
    let two_point = Tail::TwoPoint { probability: 0.3 };
    for (law, tail, few) in
        [("Gaussian", Tail::Gaussian, 1), ("two-point", two_point, 1), ("two-point", two_point, 2)]
    {
        for (d, steps) in [(1, 20_000), (100, 2_000), (100_000, 2)] {
            let start = vec![1.0; d];
            let noise = Noise { growth: 1.0, floor: 1.0, tail };
            let quadratic = Box::new(Quadratic { spectrum: vec![1.0; d] });
            let oracle = Noisy::new(quadratic, noise, start.clone()).expect("a valid noise");
            let oracle = Arc::new(oracle);
            let [mut huge, mut small] =
                [1_000_000_000_000, few].map(|n| endless(oracle.clone(), plain(n), &start));
            let [huge, small] = fastest(200, || advance(&mut huge, steps), || advance(&mut small, steps));
            let what = format!("step, {law}, d = {d}: N = 10^12 over N = {few}");
            print_row(name, &what, huge / small, ..=1.2);
        }
    }
}

/// Bytes per second of Algorithm 1's vector work over those of a triad a = b + s c.
///
/// Both count as STREAM does: each vector read and each vector written once, without the line that a cache
/// fetches before it is overwritten. The triad reads two and writes one. A step reads x, g and x0 and writes
/// x_{t+1}; it reads the anchor where beta > 0; a batch of n > 1 also writes g; and PAGE's correction reads
/// the sum of differences and writes g. (Counting the fetched lines would lower the ratios by a factor
/// between .94 and .86: of the step's vectors fewer are overwritten unread.)
fn vector_work(name: &str) {
    const TRIAD: f64 = 3.0;
    let d = 10_000_000;
    let [b, c] = [vec![1.0; d], vec![2.0; d]];
    let anchored = Schedule { beta: Sequence::Constant(0.5), ..plain(1) };
    // The coin of so small a p falls on a correction at every step but the first.
    let page = Estimator::Page { refresh: Sequence::Constant(1e-18), small: 10 };
    for (what, vectors, schedule) in [
        ("beta = 0, N = 1", 4.0, plain(1)),
        ("beta > 0, N = 1", 5.0, anchored.clone()),
        ("beta > 0, N = 10", 6.0, Schedule { large: BatchRule::Fixed(10), ..anchored.clone() }),
        ("beta = 0, PAGE's correction", 6.0, Schedule { estimator: page, ..plain(1) }),
        ("beta > 0, PAGE's correction", 7.0, Schedule { estimator: page, ..anchored }),
    ] {
        let mut walk = endless(Arc::new(Free(About::stream(d, "free"))), schedule, &b);
        let mut a = vec![0.0; d];
        let [step, triad] = fastest(60, || advance(&mut walk, 1), || add_scaled(&mut a, &b, 3.0, &c));
        let what = format!("bytes/s, d = 10^7, {what}: step over triad");
        print_row(name, &what, (vectors / step) / (TRIAD / triad), 0.8..);
    }
}

/// One step in one dimension, with its walk, ledger and checks, over a loop that does only the arithmetic.
fn small_step(name: &str) {
    const STEPS: u64 = 20_000;
    let bowl = Box::new(SineBowl { dimension: 1 });
    let noise = Noise { growth: GROWTH, floor: FLOOR, tail: Tail::Gaussian };
    let oracle = Arc::new(Noisy::new(bowl, noise, vec![START]).expect("a valid noise"));
    let schedule = Schedule::plain(Sequence::Constant(ETA), STEPS, 1);
    let walked = || {
        let (mut gate, walk) = endless(oracle.clone(), schedule.clone(), &[START]);
        walk.finish(&mut gate).expect("this oracle cannot fail").point[0]
    };
    let by_hand = || sine_bowl_by_hand(black_box(STEPS));
    assert_eq!(walked().to_bits(), by_hand().to_bits(), "both must do the same arithmetic");

    let [walked, by_hand] = fastest(200, || sink(walked()), || sink(by_hand()));
    print_row(name, "step, SineBowl, d = 1, N = 1: library over hand-written", walked / by_hand, ..=2.5);
    print_row(name, "ns per step, library", 1e9 * walked / STEPS as f64, ..);
    print_row(name, "ns per step, hand-written", 1e9 * by_hand / STEPS as f64, ..);
}

const START: f64 = 1.2;
const GROWTH: f64 = 0.5;
const FLOOR: f64 = 1.0;
const ETA: f64 = 0.01;
const SEED: u64 = 1;

/// What someone would write who needs nothing but this one run.
fn sine_bowl_by_hand(steps: u64) -> f64 {
    let mut x = START;
    for step in 0..steps {
        let address = Address { seed: SEED, role: Role::Large, step, sample: Address::WHOLE_BATCH };
        let u: f64 = StandardNormal.sample(&mut address.stream());
        let distance2 = (x - START) * (x - START);
        let g = x + libm::sin(2.0 * x) + (GROWTH * GROWTH * distance2 + FLOOR * FLOOR).sqrt() * u;
        x -= ETA * g;
    }
    x
}

/// A batch of a user's one-sample oracle on one thread over the same batch on two. Same bits or panic.
fn two_threads(name: &str) {
    const N: u64 = 4096;
    let oracle = Batched::new(Regression);
    let sum = |pool: &ThreadPool| {
        let mut out = vec![0.0; Regression::D];
        let batch = Batch { seed: SEED, role: Role::Large, step: 0, samples: 0..N };
        let request = Request::sums(batch, &[&[0.0; Regression::D]]);
        pool.install(|| oracle.answer(&request, &mut Answer::new(&mut out)))
            .expect("this oracle cannot fail");
        out
    };
    let [one, two] = [1, 2].map(|threads| {
        ThreadPoolBuilder::new().num_threads(threads).build().expect("a machine that can start threads")
    });
    let bits = |pool| sum(pool).iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&one), bits(&two), "the number of threads must not change a bit");

    let [one, two] = fastest(200, || sink(sum(&one)), || sink(sum(&two)));
    print_row(name, "batch of 4096, d = 100: 1 thread over 2 (needs 2 idle cores)", one / two, 1.8..);
    print_row(name, "microseconds per sample, 1 thread", 1e6 * one / N as f64, ..);
    print_row(name, "million samples per second, 2 threads", 1e-6 * N as f64 / two, ..);
}

/// A sample of the method without constants over a sample of plain SGD, on an oracle of about a microsecond and one thread.
fn auto(name: &str) {
    const SAMPLES: u64 = 20_000;
    let oracle = Arc::new(Batched::new(Regression));
    let start = [0.0; Regression::D];
    let mut drawn = 0;
    let mut without_constants = || {
        let mut gate = Gate::over(oracle.clone(), SEED).with_budget(u128::from(SAMPLES));
        let walk = Auto::start(&gate, &start, None).expect("a valid start");
        drawn = walk.finish(&mut gate).expect("this oracle cannot fail").ledger.samples();
    };
    let mut sgd = || {
        let mut gate = Gate::over(oracle.clone(), SEED);
        let rule = Rule::Sgd { eta: Sequence::Constant(1e-3) };
        let settings = Settings { rule, steps: SAMPLES, batch: 1 };
        let walk = Baseline::start(&gate, settings, &start).expect("valid settings");
        sink(walk.finish(&mut gate).expect("this oracle cannot fail"));
    };
    let one = ThreadPoolBuilder::new().num_threads(1).build().expect("a machine that can start a thread");
    let [ours, theirs] = one.install(|| fastest(20, &mut without_constants, &mut sgd));
    let (ours, theirs) = (ours / drawn as f64, theirs / SAMPLES as f64);
    print_row(name, "sample, d = 100: auto over SGD", ours / theirs, ..=1.2);
    print_row(name, "microseconds per sample, SGD", 1e6 * theirs, ..);
}

/// Least squares on a stream: a ~ N(0, I), y = <a, (1, .., 1)> + noise.
struct Regression;

impl Regression {
    const D: usize = 100;
}

impl Sampled for Regression {
    fn dim(&self) -> usize {
        Self::D
    }

    fn identity(&self) -> String {
        "regression".into()
    }
    fn add_gradient(
        &self,
        weight: f64,
        x: &[f64],
        xi: &mut Stream,
        out: &mut [f64],
    ) -> Result<(), OracleError> {
        let a: [f64; Self::D] = std::array::from_fn(|_| xi.normal());
        let error: f64 = a.iter().zip(x).map(|(a, x)| a * (x - 1.0)).sum();
        let residual = error - 0.1 * xi.normal();
        out.iter_mut().zip(&a).for_each(|(out, a)| *out += weight * residual * a);
        Ok(())
    }
}

/// Answers nothing: a step on it is the algorithm's own vector work.
struct Free(About);

impl Oracle for Free {
    fn about(&self) -> &About {
        &self.0
    }

    fn answer(&self, request: &Request<'_>, answer: &mut Answer<'_>) -> Result<Charge, OracleError> {
        touch(answer.gradients);
        Ok(request.usual_price(&self.0))
    }
}

/// Writes a vector of zeros once: until then the system backs it by a single page, which is no memory traffic.
fn touch(out: &mut [f64]) {
    if out[0] == 0.0 {
        out.fill(1e-9);
    }
}

/// a = b + s c: what memory can do.
#[inline(never)]
fn add_scaled(a: &mut [f64], b: &[f64], s: f64, c: &[f64]) {
    for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
        *a = b + s * c;
    }
    black_box(a);
}

/// One epoch that no benchmark gets to the end of, with batches of n.
fn plain(n: u64) -> Schedule {
    Schedule::plain(Sequence::Constant(1e-3), u64::MAX, n)
}

fn endless(oracle: Arc<dyn Oracle>, schedule: Schedule, start: &[f64]) -> (Gate, Pasta) {
    let gate = Gate::over(oracle, SEED);
    let walk = Pasta::start(&gate, schedule, start).expect("a valid schedule");
    (gate, walk)
}
