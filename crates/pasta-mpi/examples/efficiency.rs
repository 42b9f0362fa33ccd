//! How much faster several ranks are than one, for a stream of samples of one microsecond:
//!
//! ```sh
//! mpirun -n 2 cargo run --release -p pasta-mpi --features mpi --example efficiency
//! ```
//!
//! For each size of a batch, alone and together take turns, and the best of several rounds counts: whatever else the machine
//! does can only slow a round down. Efficiency is the time alone over the time together times the ranks. One thread a rank.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Instant;

use pasta_mpi::{Mpi, Sharing, Spread, World};
use pasta_opt::prelude::*;

/// A gradient of so many coordinates that takes about a microsecond.
struct Busy {
    dim: usize,
    turns: u32,
}

impl Sampled for Busy {
    fn dim(&self) -> usize {
        self.dim
    }

    fn identity(&self) -> String {
        format!("busy for {} turns", self.turns)
    }

    fn add_gradient(
        &self,
        weight: f64,
        x: &[f64],
        xi: &mut Stream,
        out: &mut [f64],
    ) -> Result<(), OracleError> {
        let mut noise = xi.normal().abs();
        for _ in 0..self.turns {
            noise = noise.mul_add(0.999, 1e-9).sqrt();
        }
        out.iter_mut().zip(x).for_each(|(out, x)| *out += weight * (x + noise));
        Ok(())
    }
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

const ROUNDS: usize = 100;

fn main() -> Result<(), Failure> {
    let mpi = Mpi::start()?;
    let world = World::new(mpi.wire(), Sharing::Always);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    pool.install(|| measure(&world))?;
    world.finish(0, "")?;
    Ok(())
}

/// Seconds for some steps.
fn seconds(oracle: impl Oracle + 'static, dim: usize, batch: u64, steps: u64) -> Result<f64, Failure> {
    let mut gate = Gate::new(oracle, 1);
    let rule = Rule::Sgd { eta: Sequence::Constant(0.01) };
    let walk = Baseline::start(&gate, Settings { rule, steps, batch }, &vec![1.0; dim])?;
    let started = Instant::now();
    let end = walk.finish(&mut gate)?;
    if end.stop != Stop::PlannedEnd {
        return Err(format!("the run ended early: {:?}", end.stop).into());
    }
    Ok(started.elapsed().as_secs_f64())
}

fn measure(world: &World) -> Result<(), Failure> {
    let (size, first) = (world.size(), world.rank() == 0);
    // All ranks must be busy for the same time: rank 0 measures, and tells.
    let turns = world.tell(|| {
        let trial = Busy { dim: 10, turns: 1_000 };
        let best = (0..20).filter_map(|_| seconds(Batched::new(Busy { ..trial }), 10, 1_000, 1).ok());
        let per_turn = best.fold(f64::INFINITY, f64::min) / 1e6;
        ((1e-6 / per_turn) as u32).max(1).to_le_bytes().to_vec()
    })?;
    let turns = u32::from_le_bytes(turns.try_into().map_err(|_| "four bytes")?);
    if first {
        println!("{size} ranks, one thread each, 10 coordinates, best of {ROUNDS} rounds");
        println!(
            "{:>9} {:>14} {:>14} {:>11} {:>14} {:>15}",
            "batch", "us/sample", "us/step", "efficiency", "messages/step", "bytes/step"
        );
    }
    for batch in [100, 1_000, 10_000, 100_000] {
        // Short rounds, so that some are left alone by whatever else runs.
        let steps = (20_000 / batch).max(1);
        let (mut alone, mut together) = (f64::INFINITY, f64::INFINITY);
        // Of steps alone, without the exchange before each round.
        let mut sent = [0; 2];
        for _ in 0..ROUNDS {
            // The others wait meanwhile, as they would where they were not started.
            if first {
                alone = alone.min(seconds(Batched::new(Busy { dim: 10, turns }), 10, batch, steps)?);
            }
            world.tell(Vec::new)?;
            let before = world.tally();
            together = together.min(seconds(
                Spread::new(Batched::new(Busy { dim: 10, turns }), world),
                10,
                batch,
                steps,
            )?);
            let after = world.tally();
            sent[0] += after.messages - before.messages;
            sent[1] += after.bytes - before.bytes;
        }
        // What the others sent, rank 0 learns in their turn.
        let (mut messages, mut bytes) = (0, 0);
        for rank in 0..size {
            let [m, b] = share(world, rank, sent)?;
            (messages, bytes) = (messages + m, bytes + b);
        }
        if first {
            let rounds = ROUNDS as u64;
            let per_step = |n: u64| n as f64 / (rounds * steps) as f64;
            println!(
                "{batch:>9} {:>14.3} {:>14.1} {:>11.3} {:>14.2} {:>15.1}",
                alone * 1e6 / (steps * batch) as f64,
                together * 1e6 / steps as f64,
                alone / (together * size as f64),
                per_step(messages),
                per_step(bytes)
            );
        }
    }
    Ok(())
}

/// The numbers of one rank, for all.
fn share(world: &World, rank: usize, mine: [u64; 2]) -> Result<[u64; 2], OracleError> {
    use pasta_opt::oracle::Team;
    let mut rows = vec![0; 2 * world.size()];
    world.share(u128::MAX, 2, &mut rows, &|range, rows| {
        range.zip(rows.chunks_mut(2)).for_each(|(_, row)| row.copy_from_slice(&mine));
        Ok(())
    })?;
    Ok([rows[2 * rank], rows[2 * rank + 1]])
}
