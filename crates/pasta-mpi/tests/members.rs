//! Members that are threads of this process: the laws of working together, over the same protocol as on MPI.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use common::{Fault, Faulty, Regression, WORKS, fail, logistic, work};
use pasta_mpi::{Local, Sharing, Spread, World};
use pasta_opt::draws::Role;
use pasta_opt::oracle::{About, Answer, Charge, Draw, ErrorKind, Request};
use pasta_opt::prelude::*;
use pasta_opt::table::Design;

/// What each of so many members makes of it.
fn members<T: Send>(size: usize, sharing: Sharing, run: impl Fn(&World) -> T + Sync) -> Vec<T> {
    let run = &run;
    thread::scope(|scope| {
        let threads: Vec<_> = Local::wires(size)
            .into_iter()
            .map(|wire| scope.spawn(move || run(&World::new(wire, sharing))))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn any_number_of_members_gives_the_bits_of_one() {
    for name in WORKS {
        let alone = work(name, None);
        for sharing in [Sharing::Always, Sharing::Measured] {
            for size in [1, 2, 3, 4, 7] {
                for (rank, together) in
                    members(size, sharing, |world| work(name, Some(world))).into_iter().enumerate()
                {
                    assert_eq!(together, alone, "{name} on {size} members, {sharing:?}, rank {rank}");
                }
            }
        }
    }
}

/// What a member finds that holds its own rows alone: in place of the others it has nonsense.
fn own_rows(world: Option<&World>, rows: usize, sizes: &[u64]) -> Result<Vec<u64>, String> {
    let (rank, size) = world.map_or((0, 1), |world| (world.rank(), world.size()));
    let mine = rows * rank / size..rows * (rank + 1) / size;
    let design = Design { intercept: true, standardise: false, degree: 1, penalty: 0.0 };
    let spoilt = |row, value| if mine.contains(&row) { value } else { 1e300 };
    let oracle: Arc<dyn Oracle> = Arc::new(logistic(rows, design, spoilt));
    let oracle = match world {
        Some(world) => Arc::new(Spread::new(oracle, world)),
        None => oracle,
    };
    let (mut gate, mut found) = (Gate::over(oracle, 5), Vec::new());
    let x = [0.3, -0.1, 0.2];
    let mut out = [0.0; 3];
    gate.exact(Role::Large, &x, &mut out).map_err(|halt| halt.to_string())?;
    found.extend(out.map(f64::to_bits));
    for (step, n) in sizes.iter().enumerate() {
        let batch = gate.batch(Role::Large, step as u64, *n);
        let (mut out, mut losses) = ([0.0; 3], [0.0; 2]);
        let points: &[&[f64]] = &[&x, &[0.0; 3]];
        let request = Request { losses: true, ..Request::differences(batch, points) };
        let mut answer = Answer { losses: &mut losses, ..Answer::new(&mut out) };
        gate.ask(request, &mut answer).map_err(|halt| halt.to_string())?;
        found.extend(out.map(f64::to_bits));
        found.extend(losses.map(f64::to_bits));
    }
    Ok(found)
}

#[test]
fn a_member_reads_no_rows_of_a_table_but_its_own() {
    // 32 blocks; batches of 10,000 have leaves of one block, and one of 2,000 has leaves of four.
    let (rows, sizes) = (32 << 16, [10_000, 2_000]);
    let alone = own_rows(None, rows, &sizes);
    assert!(alone.is_ok(), "{alone:?}");
    for size in [2, 4] {
        for together in members(size, Sharing::Always, |world| own_rows(Some(world), rows, &sizes)) {
            assert_eq!(together, alone, "on {size} members");
        }
    }
    // The test can fail: in a batch of 100 all rows are one leaf, which every member reads.
    let few = members(2, Sharing::Always, |world| own_rows(Some(world), rows, &[100]));
    assert_ne!(few[0], own_rows(None, rows, &[100]));
}

/// Samples that come from nowhere: two members would never get the same.
struct Nowhere {
    about: About,
    drawn: Arc<AtomicU64>,
}

impl Oracle for Nowhere {
    fn about(&self) -> &About {
        &self.about
    }

    fn answer(&self, request: &Request<'_>, answer: &mut Answer<'_>) -> Result<Charge, OracleError> {
        let Draw::Batch(batch) = &request.draw else { panic!("no batch") };
        request.sum_over(batch, 8, answer.gradients, &|samples, out| {
            samples
                .into_iter()
                .for_each(|_| out[0] += 1.0 / (1.0 + self.drawn.fetch_add(1, Ordering::Relaxed) as f64));
            Ok(())
        })?;
        Ok(request.usual_price(&self.about))
    }
}

#[test]
fn samples_that_cannot_be_repeated_are_drawn_once_and_all_get_them() {
    for sharing in [Sharing::Always, Sharing::Measured] {
        for size in [2, 3, 7] {
            let drawn = Arc::new(AtomicU64::new(0));
            let ends = members(size, sharing, |world| {
                let about = About { shared: false, ..About::stream(1, "nowhere") };
                let oracle = Nowhere { about, drawn: Arc::clone(&drawn) };
                let mut gate = Gate::new(Spread::new(oracle, world), 5).without_check();
                let rule = Rule::Sgd { eta: Sequence::Constant(0.05) };
                // Batches of one leaf and of several.
                [4, 100].map(|batch| {
                    let settings = Settings { rule, steps: 20, batch };
                    let walk = Baseline::start(&gate, settings, &[1.0]).unwrap();
                    walk.finish(&mut gate).unwrap().point[0].to_bits()
                })
            });
            assert_eq!(ends, vec![ends[0]; size]);
            assert_eq!(drawn.load(Ordering::Relaxed), 20 * 104);
        }
    }
}

#[test]
fn what_each_has_to_say_all_hear_by_rank() {
    for size in [1, 2, 3, 7] {
        let all = members(size, Sharing::Measured, |world| {
            world.gather("rank ".repeat(world.rank()).as_bytes()).unwrap()
        });
        let expected: Vec<_> = (0..size).map(|rank| "rank ".repeat(rank).into_bytes()).collect();
        assert_eq!(all, vec![expected; size]);
    }
    // Also after all have been stopped.
    let all = members(3, Sharing::Always, |world| {
        fail(Fault::Member(1), world);
        world.gather(&[world.rank() as u8]).unwrap()
    });
    assert_eq!(all, vec![vec![[0], [1], [2]]; 3]);
}

#[test]
fn a_failure_of_one_is_told_by_all_in_the_same_words_at_the_same_step() {
    let ends = |fault| members(4, Sharing::Always, |world| fail(fault, world));
    // The last sample of a batch is rank 3's.
    for kind in [ErrorKind::Fatal, ErrorKind::Retry] {
        let bad_sample = (12, "the oracle failed: a bad sample (on rank 3)".to_owned());
        assert_eq!(ends(Fault::Sample(kind)), vec![bad_sample; 4], "{kind:?}");
    }
    let late = (12, "the oracle did not answer in time: a bad sample (on rank 3)".to_owned());
    assert_eq!(ends(Fault::Sample(ErrorKind::TimedOut)), vec![late; 4]);
    let broken = (12, "the oracle failed: this member is broken (on rank 2)".to_owned());
    assert_eq!(ends(Fault::Member(2)), vec![broken; 4]);
}

#[test]
fn what_is_not_a_number_ends_all_at_the_same_step() {
    for end in members(3, Sharing::Always, |world| fail(Fault::NotANumber, world)) {
        assert_eq!(end, (12, "Diverged(Gradient { step: 12 })".to_owned()));
    }
}

#[test]
fn members_that_disagree_stop_and_say_where() {
    let ends = members(4, Sharing::Always, |world| fail(Fault::Differs(1), world));
    assert!(ends.iter().all(|(_, message)| *message == ends[0].1), "{ends:?}");
    // Rank 1's answer to question 13 differs, so its question 14 does: step 13, counted from 0.
    let expected =
        "the ranks disagree: rank 0 is at question 14 (role Large, step 13), rank 1 at question 14";
    assert!(ends[0].1.contains(expected), "{}", ends[0].1);
    // The test can fail.
    let agreed = members(2, Sharing::Always, |world| work("stream", Some(world)));
    assert_eq!(agreed[0], agreed[1]);
}

#[test]
fn a_flag_that_one_member_sees_stops_all_at_the_same_step() {
    for told in [0, 2] {
        let stops = members(3, Sharing::Always, |world| {
            let flag = Arc::new(AtomicBool::new(false));
            let mut gate = Gate::new(Spread::new(Batched::new(Regression), world), 5)
                .with_stop(world.watch(Arc::clone(&flag)));
            let rule = Rule::Sgd { eta: Sequence::Constant(0.05) };
            let settings = Settings { rule, steps: 1_000_000, batch: 500 };
            let mut walk = Baseline::start(&gate, settings, &[0.0; 3]).unwrap();
            loop {
                if walk.view().step == 25 && world.rank() == told {
                    flag.store(true, Ordering::Relaxed);
                }
                match walk.advance(&mut gate) {
                    Err(Halt::Interrupted) => return walk.view().step,
                    other => assert!(!matches!(other.unwrap(), Advance::Stop(_))),
                }
            }
        });
        assert_eq!(stops, [25; 3]);
    }
}

#[test]
fn all_end_when_one_ends_and_exit_as_the_first() {
    let ends = members(4, Sharing::Measured, |world| {
        if world.rank() == 2 {
            return (String::new(), world.finish(1, "error: no disk").unwrap());
        }
        let (_, message) = fail(Fault::Member(9), world);
        (message, world.finish(u8::try_from(world.rank()).unwrap() + 4, "").unwrap())
    });
    for (rank, (message, code)) in ends.iter().enumerate().filter(|(rank, _)| *rank != 2) {
        let expected = "rank 2 ended with exit code 1 (error: no disk) while rank";
        assert!(message.contains(expected), "{rank}: {message}");
        assert_eq!(*code, 4);
    }
    assert_eq!(ends[2].1, 4);
}

#[test]
fn a_member_that_is_gone_is_missed() {
    let messages = members(3, Sharing::Always, |world| {
        if world.rank() == 2 { String::new() } else { fail(Fault::Member(9), world).1 }
    });
    assert_eq!(messages[0], "the oracle failed: rank 2 is gone");
}

#[test]
fn what_the_first_finds_all_get() {
    for (rank, told) in members(5, Sharing::Measured, |world| {
        let found = world.tell(|| {
            assert_eq!(world.rank(), 0);
            b"a file of rank 0".to_vec()
        });
        found.unwrap()
    })
    .into_iter()
    .enumerate()
    {
        assert_eq!(told, b"a file of rank 0", "{rank}");
    }
}

#[test]
fn an_exchange_is_two_messages_for_each_member_but_the_first() {
    for size in [2, 3, 7] {
        let tallies = members(size, Sharing::Always, |world| {
            let mut gate = Gate::new(Spread::new(Batched::new(Regression), world), 5).without_check();
            let rule = Rule::Sgd { eta: Sequence::Constant(0.05) };
            let settings = Settings { rule, steps: 10, batch: 4096 };
            Baseline::start(&gate, settings, &[0.0; 3]).unwrap().finish(&mut gate).unwrap();
            world.tally()
        });
        assert!(tallies.iter().all(|tally| tally.exchanges == 10));
        let messages: u64 = tallies.iter().map(|tally| tally.messages).sum();
        assert_eq!(messages, 2 * (size as u64 - 1) * 10);
    }
}

#[test]
fn a_faulty_oracle_alone_is_what_it_is_meant_to_be() {
    // Without a world the fault of another member does nothing, and that of a sample is told as it is.
    let mut gate = Gate::new(Faulty::new(Fault::Sample(ErrorKind::Fatal), 0), 5);
    let rule = Rule::Sgd { eta: Sequence::Constant(0.05) };
    let walk = Baseline::start(&gate, Settings { rule, steps: 100, batch: 500 }, &[0.0; 3]).unwrap();
    let error = walk.finish(&mut gate).unwrap_err();
    assert_eq!(error.to_string(), "the oracle failed: a bad sample");
}
