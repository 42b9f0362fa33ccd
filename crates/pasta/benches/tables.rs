//! Speed on tables: what memory allows, and what others need for the same work.
//!
//! `cargo bench -p pasta-opt --bench tables` prints ratios within this program. `cargo xtask bench-peers` runs it with `--serve`:
//! it then reads the name of a task from each line of standard input, does it once and prints the seconds, so that
//! another program can take turns with it. Seconds are those of the processor, so that other programs on a busy machine count
//! little.
#![expect(clippy::print_stdout, reason = "numbers are what the program is for")]

use std::hint::black_box;
use std::io::BufRead;
use std::sync::Arc;

use cpu_time::ThreadTime;
use multiversion::multiversion;
use pasta_opt::draws::{Address, Role};
use pasta_opt::oracle::{Answer, Batch, Oracle, Request};
use pasta_opt::table::{Dense, Design, Features, Linear, Loss, Sparse, Table, Values, shared};
use rayon::ThreadPoolBuilder;

const ROWS: usize = 200_000;
const COLUMNS: usize = 100;
const SPARSE_COLUMNS: u64 = 50_000;
const ENTRIES: usize = 75;
const PLAIN: Design = Design { intercept: false, standardise: false, degree: 1, penalty: 0.0 };

fn main() {
    // One thread: the work of each is compared, not how it is shared out.
    let pool = ThreadPoolBuilder::new().num_threads(1).build().expect("one thread can be had");
    pool.install(|| {
        let tasks = Tasks::new();
        if std::env::args().any(|argument| argument == "--serve") {
            for line in std::io::stdin().lock().lines() {
                let Ok(name) = line else { return };
                println!("{:?}", tasks.seconds(name.trim()));
            }
        } else {
            print_ratios(&tasks);
        }
    });
}

/// Both sides of a ratio take turns, and the fastest round of each counts.
fn print_ratios(tasks: &Tasks) {
    let row = |what: &str, value: f64, goal: &str| println!("{what:<68} {value:>7.2}  {goal}");
    let fastest = |a: &str, b: &str, rounds: u32| {
        let mut best = [f64::INFINITY; 2];
        for _ in 0..rounds {
            best[0] = best[0].min(tasks.seconds(a));
            best[1] = best[1].min(tasks.seconds(b));
        }
        best
    };
    let [read, full] = fastest("read", "gradient-f64", 15);
    row("full gradient, dense f64: share of the read bandwidth", read / full, ">= 0.9");
    row("  GB/s", 8.0 * (ROWS * COLUMNS) as f64 / full / 1e9, "");
    let [valued, full] = fastest("losses-f64", "gradient-f64", 10);
    row("full gradient with its value over that without", valued / full, "");
    let [full, single] = fastest("gradient-f64", "gradient-f32", 10);
    row("full gradient: f64 over f32", full / single, "");
    let [plain, ours] = fastest("shuffled-plain", "shuffled", 6);
    row("epoch of random rows, batch 1024: plain loop over ours", plain / ours, ">= 1.3");
    let [huge, full] = fastest("huge-batch", "gradient-f64", 10);
    row("batch of 10^9 rows over a full gradient", huge / full, "<= 1.3");
    let [sampled, full] = fastest("all-but-one", "gradient-f64", 6);
    row("batch of as many rows less one over a full gradient", sampled / full, "");
    let [sparse, read] = fastest("sparse", "read-sparse", 10);
    row("sparse logistic gradient over reading the table", sparse / read, "");
}

struct Tasks {
    values: Vec<f64>,
    labels: Arc<Vec<f64>>,
    dense: Linear,
    single: Linear,
    sparse: Linear,
    shuffled: Vec<u32>,
}

fn linear(features: Features, labels: Arc<Vec<f64>>, loss: Loss) -> Linear {
    let table = Table::new(features, labels, None, Vec::new()).expect("a good table");
    Linear::new(Arc::new(table), loss, PLAIN).expect("a good problem")
}

impl Tasks {
    fn new() -> Self {
        let mut xi = Address { seed: 1, role: Role::Setup, step: 0, sample: 0 }.stream();
        let values: Vec<f64> = (0..ROWS * COLUMNS).map(|_| xi.normal()).collect();
        let single: Vec<f32> = values.iter().map(|v| *v as f32).collect();
        let labels: Arc<Vec<f64>> = Arc::new((0..ROWS).map(|_| xi.normal()).collect());
        let dense = |values| Features::Dense(Dense { rows: ROWS, columns: COLUMNS, values });
        let (mut starts, mut indices) = (vec![0u64], Vec::new());
        for _ in 0..ROWS {
            // As words are: the first columns are the most frequent.
            let mut row: Vec<u32> =
                (0..ENTRIES).map(|_| (SPARSE_COLUMNS as f64 * xi.uniform() * xi.uniform()) as u32).collect();
            row.sort_unstable();
            row.dedup();
            indices.extend(row);
            starts.push(indices.len() as u64);
        }
        let sparse_values: Vec<f64> = indices.iter().map(|_| xi.uniform()).collect();
        let sparse = Features::Sparse(Sparse {
            columns: SPARSE_COLUMNS as usize,
            starts: shared(starts),
            indices: shared(indices),
            values: sparse_values.into(),
        });
        let signs: Arc<Vec<f64>> = Arc::new(labels.iter().map(|y| y.signum()).collect());
        let mut shuffled: Vec<u32> = (0..ROWS as u32).collect();
        for i in (1..ROWS).rev() {
            shuffled.swap(i, xi.below(i as u64 + 1) as usize);
        }
        Self {
            dense: linear(dense(values.clone().into()), labels.clone(), Loss::LeastSquares),
            single: linear(dense(single.into()), labels.clone(), Loss::LeastSquares),
            sparse: linear(sparse, signs, Loss::Logistic),
            values,
            labels,
            shuffled,
        }
    }

    /// Does a task once, and says how long it took. Not a number for a task that there is not.
    fn seconds(&self, name: &str) -> f64 {
        let clock = ThreadTime::now();
        match name {
            "read" => read(stored(&self.dense)),
            "read-sparse" => read(stored(&self.sparse)),
            "gradient-f64" => full(&self.dense),
            "losses-f64" => with_losses(&self.dense),
            "losses-f32" => with_losses(&self.single),
            "losses-sparse" => with_losses(&self.sparse),
            "gradient-f32" => full(&self.single),
            "sparse" => full(&self.sparse),
            "huge-batch" => batch(&self.dense, 0, 1_000_000_000, &mut vec![0.0; COLUMNS]),
            "all-but-one" => batch(&self.dense, 0, ROWS as u64 - 1, &mut vec![0.0; COLUMNS]),
            "shuffled" => {
                let mut gradient = vec![0.0; COLUMNS];
                (0..ROWS as u64 / 1024).for_each(|step| batch(&self.dense, step, 1024, &mut gradient));
            }
            "shuffled-plain" => self.shuffled_plain(),
            "epoch-1" => sweep(&self.dense, 1),
            "epoch-32" => sweep(&self.dense, 32),
            "epoch-1024" => sweep(&self.dense, 1024),
            "epoch-1-f32" => sweep(&self.single, 1),
            "epoch-32-f32" => sweep(&self.single, 32),
            "epoch-1024-f32" => sweep(&self.single, 1024),
            "sparse-epoch-1" => sweep(&self.sparse, 1),
            _ => return f64::NAN,
        }
        clock.elapsed().as_secs_f64()
    }

    /// What one writes first: rows in a random order, one after another.
    fn shuffled_plain(&self) {
        let w = vec![0.01; COLUMNS];
        for rows in self.shuffled.chunks(1024) {
            let mut gradient = vec![0.0; COLUMNS];
            for &row in rows {
                let row = row as usize;
                let a = &self.values[row * COLUMNS..(row + 1) * COLUMNS];
                let z: f64 = a.iter().zip(&w).map(|(a, w)| a * w).sum();
                let residual = z - self.labels[row];
                gradient.iter_mut().zip(a).for_each(|(g, a)| *g += residual * a);
            }
            black_box(gradient);
        }
    }
}

/// Reads all values once, with the widest registers and enough sums under way that only memory is waited for.
#[multiversion(targets("x86_64+avx2"))]
fn read(values: &[f64]) {
    let mut sums = [0.0; 64];
    for chunk in values.as_chunks::<64>().0 {
        sums.iter_mut().zip(chunk).for_each(|(sum, value)| *sum += value);
    }
    black_box(sums);
}

/// The values of a table in double precision.
fn stored(problem: &Linear) -> &[f64] {
    let values = match &problem.table().features {
        Features::Dense(dense) => &dense.values,
        Features::Sparse(sparse) => &sparse.values,
    };
    match values {
        Values::F64(values) => (**values).as_ref(),
        Values::F32(_) => &[],
    }
}

fn full(problem: &Linear) {
    let x = vec![0.01; problem.dim()];
    let mut gradient = vec![0.0; problem.dim()];
    problem
        .answer(&Request::everything(Role::Large, &[&x]), &mut Answer::new(&mut gradient))
        .expect("a table answers");
    black_box(gradient);
}

/// Gradient and value, which is what a fit asks for.
fn with_losses(problem: &Linear) {
    let x = vec![0.01; problem.dim()];
    let (mut gradient, mut losses) = (vec![0.0; problem.dim()], [0.0]);
    let points = [&x[..]];
    let request = Request { losses: true, ..Request::everything(Role::Large, &points) };
    let mut answer = Answer { losses: &mut losses, ..Answer::new(&mut gradient) };
    problem.answer(&request, &mut answer).expect("a table answers");
    black_box((gradient, losses));
}

fn batch(problem: &Linear, step: u64, n: u64, gradient: &mut [f64]) {
    let x = vec![0.01; problem.dim()];
    let batch = Batch { seed: 1, role: Role::Large, step, samples: 0..n };
    problem.answer(&Request::sums(batch, &[&x]), &mut Answer::new(gradient)).expect("a table answers");
    black_box(gradient);
}

fn sweep(problem: &Linear, batch: usize) {
    let mut x = vec![0.0; problem.dim()];
    problem.sweep(0..ROWS, batch, 1e-4, &mut x);
    black_box(x);
}
