//! Reads a table and prints how long that took, in seconds, and its shape: what `cargo xtask bench-parse` compares with others.
#![expect(clippy::print_stdout, reason = "it is a program")]

use std::time::Instant;

use pasta_data::{Options, Source, read};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("which file?")?;
    let threads = std::env::args().nth(2).map_or(Ok(0), |n| n.parse())?;
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    let begun = Instant::now();
    let data = read(&Source::named(path), &Options::default(), None, &|_, _| {})?;
    let seconds = begun.elapsed().as_secs_f64();
    println!("{seconds} {} {} {}", data.features.rows(), data.features.columns(), data.features.entries());
    Ok(())
}
