//! Checkpoints: what is refused, and with which words.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use pasta_opt::checkpoint::CheckpointError;
use pasta_opt::prelude::*;

fn bowl(floor: f64) -> Noisy {
    let noise = Noise { growth: 1.0, floor, tail: Tail::Gaussian };
    Noisy::new(Box::new(SineBowl { dimension: 2 }), noise, vec![1.0, -1.0]).unwrap()
}

fn taken(oracle: &Noisy) -> Checkpoint {
    let schedule = Schedule::plain(Sequence::Constant(0.1), 100, 3);
    let mut run = Pasta::start(oracle, schedule, oracle.start(), 1).unwrap();
    for _ in 0..10 {
        run.advance().unwrap();
    }
    run.checkpoint()
}

#[test]
fn every_changed_byte_is_noticed() {
    let bytes = taken(&bowl(1.0)).to_bytes();
    for i in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[i] ^= 0x10;
        assert!(Checkpoint::from_bytes(&damaged).is_err(), "byte {i}");
    }
    for length in 0..bytes.len() {
        assert!(Checkpoint::from_bytes(&bytes[..length]).is_err(), "cut to {length}");
    }
}

#[test]
fn other_files_and_other_versions_are_refused_by_name() {
    let refuse = |bytes: &[u8]| Checkpoint::from_bytes(bytes).unwrap_err().to_string();
    assert_eq!(refuse(b""), "not a pasta checkpoint");
    assert_eq!(refuse(b"{\"json\": true}"), "not a pasta checkpoint");
    let later = refuse(b"pasta checkpoint 2\n{}\n");
    assert_eq!(later, "checkpoint format 2 is not understood by this version, which reads format 1");
    let mut cut = taken(&bowl(1.0)).to_bytes();
    cut.truncate(200);
    assert!(refuse(&cut).starts_with("damaged checkpoint"));
}

#[test]
fn another_problem_and_another_method_are_refused() {
    let checkpoint = taken(&bowl(1.0));
    let other = bowl(2.0);
    let error = Pasta::resume(&other, checkpoint.clone()).unwrap_err();
    assert!(matches!(error, CheckpointError::Problem { .. }));
    let message = error.to_string();
    assert!(message.contains("floor 1 ") && message.contains("floor 2 "), "{message}");
    let oracle = bowl(1.0);
    let error = Baseline::resume(&oracle, checkpoint).unwrap_err();
    assert_eq!(error.to_string(), "the checkpoint is of Algorithm 1, not of a baseline");
}

#[test]
fn a_saved_file_is_whole_or_the_old_one() {
    let folder = std::env::temp_dir().join(format!("pasta-checkpoints-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("run.pasta");
    let checkpoint = taken(&bowl(1.0));
    checkpoint.save(&path).unwrap();
    assert_eq!(Checkpoint::load(&path).unwrap(), checkpoint);
    // The draft cannot be written: the old file stays as it was.
    std::fs::create_dir(folder.join("run.draft")).unwrap();
    assert!(matches!(checkpoint.save(&path), Err(CheckpointError::Io { .. })));
    assert_eq!(Checkpoint::load(&path).unwrap(), checkpoint);
    std::fs::remove_dir_all(&folder).unwrap();
    let missing = Checkpoint::load(&path).unwrap_err().to_string();
    assert!(missing.contains("run.pasta"), "{missing}");
}
