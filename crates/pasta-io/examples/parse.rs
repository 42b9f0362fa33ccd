//! Reads a table and prints how long that took, in seconds, its shape, and the most memory that the program had, in bytes (0 where the
//! system does not say): what `cargo xtask bench-parse` compares with others.
#![expect(clippy::print_stdout, reason = "it is a program")]

use std::time::Instant;

use pasta_io::{Options, Source, read};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("which file?")?;
    let threads = std::env::args().nth(2).map_or(Ok(0), |n| n.parse())?;
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    let begun = Instant::now();
    let data = read(&Source::named(path), &Options::default(), None, &|_, _| {})?;
    let seconds = begun.elapsed().as_secs_f64();
    let (rows, columns, entries) = (data.features.rows(), data.features.columns(), data.features.entries());
    println!("{seconds} {rows} {columns} {entries} {}", peak().unwrap_or(0));
    Ok(())
}

/// The largest resident set so far, as Linux tells it.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(1024 * line.split_whitespace().next()?.parse::<u64>().ok()?)
}
