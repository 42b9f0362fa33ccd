//! Members that are threads of this process: the laws of working together, over the same protocol as on MPI.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use common::{Fault, Faulty, Regression, WORKS, fail, work};
use pasta_mpi::{Local, Sharing, Spread, World};
use pasta_opt::oracle::ErrorKind;
use pasta_opt::prelude::*;

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
            let mut gate = Gate::new(Spread::new(Batched::new(Regression), world), 5).believing();
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
