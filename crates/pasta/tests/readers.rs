//! Files with something changed at random, by proptest: a checkpoint or a line of a trace is read or refused, and nothing
//! panics. The checksums are made right again, so that the readers behind them are reached.
//!
//! `PROPTEST_CASES=100000 cargo test -p pasta-opt --test readers` tries more of each kind.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use pasta_opt::estimator::Kind;
use pasta_opt::method::{self, Engine};
use pasta_opt::prelude::*;
use pasta_opt::problems::SineBowl;
use pasta_opt::trace::{Event, FORMAT, Mark};
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// One change to a text.
#[derive(Debug, Clone)]
enum Edit {
    /// A word, as a number, a name or a mark is one, becomes another.
    Word(Index, &'static str),
    /// A word becomes another one of the same text.
    Borrow(Index, Index),
    /// Bytes go.
    Cut(Index, usize),
    /// Bytes stand twice.
    Twice(Index, usize),
    /// A byte becomes another.
    Byte(Index, u8),
}

/// What breaks readers of numbers and of JSON.
const WORDS: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "1.5",
    "-0.0",
    "1e999",
    "1e308",
    "5e-324",
    "9223372036854775807",
    "18446744073709551615",
    "18446744073709551616",
    "340282366920938463463374607431768211455",
    "null",
    "true",
    "[]",
    "{}",
    "\"\"",
    "\"NaN\"",
    "[0]",
    "[[]]",
    "{\"Constant\":0}",
    ",",
    ":",
    "\\u0000",
    "é",
];

fn edit() -> impl Strategy<Value = Edit> {
    let at = any::<Index>;
    prop_oneof![
        4 => (at(), select(WORDS)).prop_map(|(at, word)| Edit::Word(at, word)),
        2 => (at(), at()).prop_map(|(at, from)| Edit::Borrow(at, from)),
        1 => (at(), 1..12usize).prop_map(|(at, n)| Edit::Cut(at, n)),
        1 => (at(), 1..40usize).prop_map(|(at, n)| Edit::Twice(at, n)),
        1 => (at(), any::<u8>()).prop_map(|(at, byte)| Edit::Byte(at, byte)),
    ]
}

/// Where the words of a text are.
fn words(text: &[u8]) -> Vec<std::ops::Range<usize>> {
    let inside = |c: u8| c.is_ascii_alphanumeric() || b"_+-.".contains(&c);
    let mut words = Vec::new();
    let mut start = 0;
    for i in 0..text.len() {
        if !inside(text[i]) {
            words.extend((start < i).then_some(start..i));
            words.push(i..i + 1);
            start = i + 1;
        }
    }
    words.extend((start < text.len()).then_some(start..text.len()));
    words
}

fn apply(mut text: Vec<u8>, edits: &[Edit]) -> Vec<u8> {
    for edit in edits.iter().cloned() {
        if text.is_empty() {
            break;
        }
        let until = |from: usize, n: usize| (from + n).min(text.len());
        match edit {
            Edit::Word(at, word) => {
                let words = words(&text);
                text.splice(words[at.index(words.len())].clone(), word.bytes());
            }
            Edit::Borrow(at, from) => {
                let words = words(&text);
                let word = text[words[from.index(words.len())].clone()].to_vec();
                text.splice(words[at.index(words.len())].clone(), word);
            }
            Edit::Cut(at, n) => {
                let from = at.index(text.len());
                let until = until(from, n);
                text.drain(from..until);
            }
            Edit::Twice(at, n) => {
                let from = at.index(text.len());
                let copy = text[from..until(from, n)].to_vec();
                text.splice(from..from, copy);
            }
            Edit::Byte(at, byte) => {
                let at = at.index(text.len());
                text[at] = byte;
            }
        }
    }
    text
}

fn bowl() -> Arc<Noisy> {
    let noise = Noise { growth: 1.0, floor: 1.0, tail: Tail::Gaussian };
    Arc::new(Noisy::new(Box::new(SineBowl { dimension: 2 }), noise, vec![1.0, -1.0]).unwrap())
}

const RULE: StopRule = StopRule { target: 0.1, delta: 0.05, basis: Basis::Variance(4.0), share: 0.5 };

/// Some steps of a run of each method, saved; the first is certified.
fn saved() -> Vec<Vec<u8>> {
    let oracle = bowl();
    let page = MeanSquareSmooth { ms_smoothness: 4.0, gap: 3.0, growth: 1.0, floor: 1.0, target: 0.5 };
    let adam = Rule::Adam { eta: Sequence::Constant(0.1), first: 0.9, second: 0.999, epsilon: 1e-8 };
    let engines = [
        Engine::Schedule(Schedule::plain(Sequence::Constant(0.1), 100, 3)),
        Engine::Schedule(page.plan().unwrap().schedule),
        Engine::Baseline(Settings { rule: adam, steps: 100, batch: 2 }),
        Engine::Auto { target: Some(0.1) },
        Engine::Hedged { schedule: Schedule::plain(Sequence::Constant(0.1), 100, 3), rule: RULE },
        Engine::Universal { rule: Some(RULE) },
    ];
    let of = |(i, engine): (usize, Engine)| {
        let mut gate = Gate::over(oracle.clone(), 1).with_budget(100_000);
        let mut walk = engine.start(&gate, oracle.start()).unwrap();
        if i == 0 {
            walk = Box::new(walk.certified(&gate, RULE).unwrap());
        }
        for _ in 0..8 {
            walk.advance(&mut gate).unwrap();
        }
        let mut saver = Saver::default();
        gate.save(&mut saver);
        walk.save(&mut saver);
        saver.to_bytes()
    };
    engines.into_iter().enumerate().map(of).collect()
}

/// The file with these edits to its line of JSON and this many bytes more or less of vectors, its checksum right.
fn damaged(file: &[u8], edits: &[Edit], vectors: isize) -> Vec<u8> {
    let mut ends = file.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(i, _)| i);
    let (first, second) = (ends.next().unwrap() + 1, ends.next().unwrap());
    let mut body = file[second..file.len() - 4].to_vec();
    body.resize(body.len().saturating_add_signed(vectors).max(1), 0);
    let mut file = [&file[..first], &apply(file[first..second].to_vec(), edits), &body].concat();
    file.extend(crc32fast::hash(&file).to_le_bytes());
    file
}

/// Reads a checkpoint as `resume` does, and goes on for some steps where that is possible. Says whether it was.
fn goes_on(file: &[u8]) -> bool {
    let Ok(mut checkpoint) = Checkpoint::from_bytes(file) else { return false };
    let Ok(gate) = Gate::resume(bowl(), &mut checkpoint) else { return false };
    let mut gate = gate.with_budget(20_000);
    let Ok(walk) = method::resume(&gate, &mut checkpoint) else { return false };
    let mut walk: Box<dyn Walk> = if checkpoint.has("certificate") {
        let Ok(walk) = walk.certified_again(&gate, RULE, &mut checkpoint) else { return false };
        Box::new(walk)
    } else {
        walk
    };
    (0..3).all(|_| walk.advance(&mut gate).is_ok())
}

#[test]
fn the_files_that_are_changed_below_are_good_ones() {
    for file in saved() {
        assert_eq!(damaged(&file, &[], 0), file);
        assert!(goes_on(&file));
    }
}

fn config() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").map_or(3000, |n| n.parse().unwrap());
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_checkpoint_whose_sections_were_changed_is_read_or_refused(
        which in 0..4usize,
        edits in prop::collection::vec(edit(), 1..4),
        vectors in prop_oneof![4 => Just(0isize), 1 => -40..40isize],
    ) {
        use std::sync::LazyLock;
        static SAVED: LazyLock<Vec<Vec<u8>>> = LazyLock::new(saved);
        goes_on(&damaged(&SAVED[which], &edits, vectors));
    }

    #[test]
    fn bytes_that_are_no_checkpoint_are_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..200), title in any::<bool>()) {
        if title {
            bytes = [b"pasta checkpoint 2\n", &bytes[..]].concat();
            bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        }
        prop_assert!(Checkpoint::from_bytes(&bytes).is_err());
    }

    #[test]
    fn a_line_of_a_trace_that_was_changed_is_read_or_refused(
        edits in prop::collection::vec(edit(), 1..4),
        repaired in any::<bool>(),
    ) {
        let mut line = Vec::new();
        Event::Start { format: FORMAT, method: "sgd".into(), problem: "p".into(), seed: 1 }.write(&mut line).unwrap();
        let end = line.windows(7).rposition(|window| window == b",\"crc\":").unwrap();
        let altered = if repaired {
            let body = apply(line[..end].to_vec(), &edits);
            let checksum = crc32fast::hash(&body);
            [&body[..], format!(",\"crc\":\"{checksum:08x}\"}}\n").as_bytes()].concat()
        } else {
            apply(line.clone(), &edits)
        };
        let mark = Mark::read(&altered);
        // With its old checksum only the old line is a line.
        prop_assert!(repaired || mark.is_none() || altered == line);
    }

    #[test]
    fn what_is_written_is_read_back(step in any::<u64>(), t in any::<u64>(), epoch in any::<u64>(), n in any::<u64>()) {
        let oracle = bowl();
        let gate = Gate::over(oracle.clone(), 1);
        let walk = Pasta::start(&gate, Schedule::plain(Sequence::Constant(0.1), 100, 3), oracle.start()).unwrap();
        let mut at = pasta_opt::trace::Standing::new(&walk.view(), gate.ledger(), None);
        at.step = step;
        let event = Event::Step { at, epoch, t, kind: Kind::Fresh, batch: n };
        let mut line = Vec::new();
        event.write(&mut line).unwrap();
        let mark = Mark::read(&line).unwrap();
        prop_assert_eq!((mark.event.as_str(), mark.step), ("step", Some(step)));
    }
}
