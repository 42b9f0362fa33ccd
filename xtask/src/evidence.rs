//! `cargo xtask evidence`: what takes too long for every change. Each has a name; without one, all run.

use std::env;
use std::process::Command;

use crate::beside;

/// Something long.
struct Evidence {
    name: &'static str,
    shows: &'static str,
    work: Work,
}

enum Work {
    /// A command of cargo, with its environment.
    Cargo(&'static [&'static str], &'static [(&'static str, &'static str)]),
    Function(fn() -> bool),
}

const ALL: [Evidence; 10] = [
    Evidence {
        name: "auto",
        shows: "none of 7,560 runs of the method without constants ends above its start (docs/auto.md)",
        work: Work::Cargo(&["test", "--package", "pasta-opt", "--test", "auto", "--", "--ignored"], &[]),
    },
    Evidence {
        name: "certificates",
        shows: "how often certificates are false, over 10,000 seeds (docs/certificate.md)",
        work: Work::Cargo(
            &[
                "run",
                "--release",
                "--package",
                "pasta-lab",
                "--",
                "self-test",
                "--output",
                "target/self-test",
            ],
            &[],
        ),
    },
    Evidence {
        name: "forecasts",
        shows: "how often the ranges of forecasts hold (docs/forecast.md)",
        work: Work::Cargo(&["run", "--release", "--package", "pasta-lab", "--", "forecast"], &[]),
    },
    Evidence {
        name: "reproduce",
        shows: "the paper's rates, guarantees and bounds at full length",
        work: Work::Cargo(
            &[
                "run",
                "--release",
                "--package",
                "pasta-lab",
                "--",
                "reproduce",
                "--full",
                "--output",
                "target/reproduce",
            ],
            &[],
        ),
    },
    Evidence {
        name: "packages",
        shows: "every package that is published compiles from its own files",
        work: Work::Cargo(&["package", "--workspace", "--exclude", "xtask", "--exclude", "pasta-py"], &[]),
    },
    Evidence {
        name: "peers",
        shows: "optax still takes the steps that the tests of the peers have on record",
        work: Work::Function(beside::peers),
    },
    Evidence {
        name: "verify",
        shows: "fifty results are reproduced by pasta verify and by proof/verify.py, and refused with another bound",
        work: Work::Cargo(&["test", "--package", "pasta-cli", "--test", "verify", "--", "--ignored"], &[]),
    },
    Evidence {
        name: "problem-files",
        shows: "100,000 damaged problem files are read or refused",
        work: Work::Cargo(
            &["test", "--package", "pasta-cli", "--lib", "mutations"],
            &[("PROPTEST_CASES", "100000")],
        ),
    },
    Evidence {
        name: "readers",
        shows: "300,000 damaged checkpoints and lines of traces are read or refused",
        work: Work::Cargo(
            &["test", "--package", "pasta-opt", "--test", "readers"],
            &[("PROPTEST_CASES", "300000")],
        ),
    },
    Evidence {
        name: "tables",
        shows: "a million damaged tables of each kind are read or refused",
        work: Work::Cargo(
            &["test", "--package", "pasta-io", "--test", "mutations"],
            &[("MUTATIONS", "1000000")],
        ),
    },
];

/// Runs what is named, or everything; `--list` names them.
pub(crate) fn run(names: &[String]) -> bool {
    if names.iter().any(|name| name == "--list") {
        ALL.iter().for_each(|evidence| eprintln!("{:<14} {}", evidence.name, evidence.shows));
        return true;
    }
    if let Some(unknown) = names.iter().find(|name| ALL.iter().all(|evidence| evidence.name != *name)) {
        let known = ALL.map(|evidence| evidence.name).join(", ");
        eprintln!("no evidence is called {unknown}; there are {known}");
        return false;
    }
    let chosen =
        ALL.iter().filter(|evidence| names.is_empty() || names.iter().any(|name| name == evidence.name));
    // All of them, whatever one of them says.
    let failed: Vec<_> = chosen.filter(|evidence| !evidence.holds()).map(|evidence| evidence.name).collect();
    if !failed.is_empty() {
        eprintln!("failed: {}", failed.join(", "));
    }
    failed.is_empty()
}

impl Evidence {
    fn holds(&self) -> bool {
        eprintln!("{}: {}", self.name, self.shows);
        let (arguments, variables) = match self.work {
            Work::Cargo(arguments, variables) => (arguments, variables),
            Work::Function(holds) => return holds(),
        };
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let status = Command::new(cargo).args(arguments).envs(variables.iter().copied()).status();
        status.is_ok_and(|status| status.success())
    }
}
