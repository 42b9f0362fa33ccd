//! `cargo xtask evidence`: what takes too long for every change. Each has a name; without one, all run.

use std::env;
use std::process::Command;

/// Something long: a command of cargo, with its environment.
struct Evidence {
    name: &'static str,
    shows: &'static str,
    arguments: &'static [&'static str],
    variables: &'static [(&'static str, &'static str)],
}

const ALL: [Evidence; 8] = [
    Evidence {
        name: "auto",
        shows: "none of 7,560 runs of the method without constants ends above its start (docs/auto.md)",
        arguments: &["test", "--package", "pasta-opt", "--test", "auto", "--", "--ignored"],
        variables: &[],
    },
    Evidence {
        name: "certificates",
        shows: "how often certificates are false, over 10,000 seeds (docs/certificate.md)",
        arguments: &[
            "run",
            "--release",
            "--package",
            "pasta-lab",
            "--",
            "self-test",
            "--output",
            "target/self-test",
        ],
        variables: &[],
    },
    Evidence {
        name: "forecasts",
        shows: "how often the ranges of forecasts hold (docs/forecast.md)",
        arguments: &["run", "--release", "--package", "pasta-lab", "--", "forecast"],
        variables: &[],
    },
    Evidence {
        name: "reproduce",
        shows: "the paper's rates, guarantees and bounds at full length",
        arguments: &[
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
        variables: &[],
    },
    Evidence {
        name: "packages",
        shows: "every package that is published compiles from its own files",
        arguments: &["package", "--workspace", "--exclude", "xtask", "--exclude", "pasta-py"],
        variables: &[],
    },
    Evidence {
        name: "problem-files",
        shows: "100,000 damaged problem files are read or refused",
        arguments: &["test", "--package", "pasta-cli", "--lib", "mutations"],
        variables: &[("PROPTEST_CASES", "100000")],
    },
    Evidence {
        name: "readers",
        shows: "300,000 damaged checkpoints and lines of traces are read or refused",
        arguments: &["test", "--package", "pasta-opt", "--test", "readers"],
        variables: &[("PROPTEST_CASES", "300000")],
    },
    Evidence {
        name: "tables",
        shows: "a million damaged tables of each kind are read or refused",
        arguments: &["test", "--package", "pasta-data", "--test", "mutations"],
        variables: &[("MUTATIONS", "1000000")],
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
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let status = Command::new(cargo).args(self.arguments).envs(self.variables.iter().copied()).status();
        status.is_ok_and(|status| status.success())
    }
}
