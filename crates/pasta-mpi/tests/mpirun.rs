//! The same on real processes of MPI: `mpirun` starts this very program, once for each rank.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::process::{Command, Stdio};
use std::{env, fs};

use common::{Fault, WORKS, fail, work};
use pasta_mpi::{Mpi, Sharing, World};

/// Where a rank writes what it found: it was started by one of the tests below.
const FOLDER: &str = "PASTA_TEST_FOLDER";

/// One rank. Does everything that is compared, and writes it down.
#[test]
#[ignore = "a rank, which mpirun starts"]
fn member() {
    let Some(folder) = env::var_os(FOLDER) else { return };
    let mpi = Mpi::start().unwrap();
    for (sharing, name) in [(Sharing::Always, "always"), (Sharing::Measured, "measured")] {
        let world = World::new(mpi.wire(), sharing);
        let mut found: Vec<String> = WORKS.iter().map(|name| work(name, Some(&world))).collect();
        assert_eq!(world.finish(7, "").unwrap(), 7);
        // Worlds that end badly, one after another over the same wire.
        for fault in [Fault::Member(1), Fault::NotANumber, Fault::Differs(1)] {
            let world = World::new(mpi.wire(), Sharing::Always);
            found.push(fail(fault, &world).1);
            world.finish(1, "").unwrap();
        }
        let path = std::path::Path::new(&folder).join(format!("{name}-{}", world.rank()));
        fs::write(path, found.join("\n")).unwrap();
    }
    drop(mpi);
}

/// What every rank wrote.
fn on(ranks: usize) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let variables = [
        ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
        ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
        ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
        ("OMPI_MCA_hwloc_base_binding_policy", "none"),
        ("OMPI_MCA_mpi_yield_when_idle", "1"),
        ("OMPI_MCA_btl_vader_single_copy_mechanism", "none"),
        ("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"),
    ];
    // MPICH calls it mpirun.mpich where Open MPI is installed as well.
    let output = Command::new(env::var_os("MPIRUN").unwrap_or_else(|| "mpirun".into()))
        .envs(variables)
        .env(FOLDER, folder.path())
        .env("RAYON_NUM_THREADS", (1 + ranks % 2).to_string())
        .args(["-n", &ranks.to_string()])
        .arg(env::current_exe().unwrap())
        .args(["--exact", "member", "--ignored", "--nocapture"])
        .stdin(Stdio::null())
        .output()
        .expect("mpirun is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read = |name: String| fs::read_to_string(folder.path().join(name)).unwrap();
    (0..ranks).flat_map(|rank| ["always", "measured"].map(|name| read(format!("{name}-{rank}")))).collect()
}

#[test]
fn any_number_of_ranks_gives_the_bits_of_one_process() {
    let alone: Vec<String> = WORKS.iter().map(|name| work(name, None)).collect();
    for ranks in [1, 2, 3, 4, 7] {
        let found = on(ranks);
        for of_rank in &found {
            assert_eq!(*of_rank, found[0], "on {ranks} ranks");
            let lines: Vec<&str> = of_rank.lines().collect();
            let (works, faults) = lines.split_at(WORKS.len());
            assert_eq!(works, alone, "on {ranks} ranks");
            if ranks > 1 {
                assert_eq!(faults[0], "the oracle failed: this member is broken (on rank 1)");
                assert_eq!(faults[1], "Diverged(Gradient { step: 12 })");
                assert!(
                    faults[2].contains("disagree: rank 0 is at question 14 (role Large, step 13)"),
                    "{}",
                    faults[2]
                );
            }
        }
    }
}
