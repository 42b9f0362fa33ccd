//! Checkpoints: what is refused, and with which words.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use pasta_opt::checkpoint::CheckpointError;
use pasta_opt::prelude::*;
use pasta_opt::problems::SineBowl;

fn bowl(floor: f64) -> Arc<Noisy> {
    let noise = Noise { growth: 1.0, floor, tail: Tail::Gaussian };
    Arc::new(Noisy::new(Box::new(SineBowl { dimension: 2 }), noise, vec![1.0, -1.0]).unwrap())
}

/// Ten steps of a run.
fn run(oracle: &Arc<Noisy>) -> (Gate, Pasta) {
    let mut gate = Gate::over(oracle.clone(), 1);
    let schedule = Schedule::plain(Sequence::Constant(0.1), 100, 3);
    let mut walk = Pasta::start(&gate, schedule, oracle.start()).unwrap();
    for _ in 0..10 {
        walk.advance(&mut gate).unwrap();
    }
    (gate, walk)
}

fn taken(oracle: &Arc<Noisy>) -> Vec<u8> {
    let (gate, walk) = run(oracle);
    let mut saver = Saver::default();
    gate.save(&mut saver);
    walk.save(&mut saver);
    saver.to_bytes()
}

#[test]
fn every_changed_byte_is_noticed() {
    let bytes = taken(&bowl(1.0));
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
    for other in [1, 4] {
        assert_eq!(
            refuse(format!("pasta checkpoint {other}\n{{}}\n").as_bytes()),
            format!(
                "checkpoint format {other} is not understood by this version, which reads formats 2 to 3"
            )
        );
    }
    let mut cut = taken(&bowl(1.0));
    cut.truncate(200);
    assert!(refuse(&cut).starts_with("damaged checkpoint"));
}

#[test]
fn another_problem_and_another_method_are_refused() {
    let read = || Checkpoint::from_bytes(&taken(&bowl(1.0))).unwrap();
    let error = Gate::resume(bowl(2.0), &mut read()).unwrap_err();
    assert!(matches!(error, CheckpointError::Problem { .. }));
    let message = error.to_string();
    assert!(message.contains("floor 1 ") && message.contains("floor 2 "), "{message}");
    let mut checkpoint = read();
    let gate = Gate::resume(bowl(1.0), &mut checkpoint).unwrap();
    let error = Baseline::resume(&gate, &mut checkpoint).unwrap_err();
    assert_eq!(error.to_string(), "the checkpoint has no section \"baseline\"; it has pasta");
    let walk = Pasta::resume(&gate, &mut checkpoint).unwrap();
    let rule = StopRule { target: 0.1, delta: 0.05, basis: Basis::Variance(1.0), share: 0.5 };
    let error = walk.certified_again(&gate, rule, &mut checkpoint).unwrap_err();
    assert!(error.to_string().starts_with("the checkpoint has no section \"certificate\""), "{error}");
    let error = Gate::resume(bowl(1.0), &mut checkpoint).unwrap_err();
    assert!(matches!(error, CheckpointError::Section { .. }), "{error}");
}

#[test]
fn a_saved_file_is_whole_or_the_old_one() {
    let folder = std::env::temp_dir().join(format!("pasta-checkpoints-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("run.pasta");
    let (gate, walk) = run(&bowl(1.0));
    let mut saver = Saver::default();
    gate.save(&mut saver);
    walk.save(&mut saver);
    saver.save(&path).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), saver.to_bytes());
    assert!(Checkpoint::load(&path).unwrap().has("pasta"));
    // The draft cannot be written: the old file stays as it was.
    std::fs::create_dir(folder.join("run.draft")).unwrap();
    let mut other = Saver::default();
    gate.save(&mut other);
    assert!(matches!(other.save(&path), Err(CheckpointError::Io { .. })));
    assert_eq!(std::fs::read(&path).unwrap(), saver.to_bytes());
    std::fs::remove_dir_all(&folder).unwrap();
    let missing = Checkpoint::load(&path).unwrap_err().to_string();
    assert!(missing.contains("run.pasta"), "{missing}");
}
