//! A folder of its own for a test, with helpers to run the program in it, and the problem files of several tests.
#![allow(dead_code, reason = "each test uses its part")]

use std::fs;
use std::path::PathBuf;

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

/// The variable that names the user's state directory.
pub(crate) const STATE: &str = "XDG_STATE_HOME";

pub(crate) const PASTA: &str = env!("CARGO_BIN_EXE_pasta");

/// Ends by itself, in a blink. Line numbers below refer to it.
pub(crate) const BOWL: &str = r#"seed = 1

[problem]
name = "sine-bowl"
start = [1.2]

[noise]
tail = "gaussian"
growth = 9.0
floor = 1.0

[recipe]
name = "smooth"
target = 0.5
constants = "problem"
"#;

/// The same with declared constants, which are safe.
pub(crate) const DECLARED: &str = r#"seed = 1

[problem]
name = "sine-bowl"
start = [1.2]

[noise]
tail = "gaussian"
growth = 9.0
floor = 1.0

[recipe]
name = "smooth"
target = 0.5

[recipe.constants]
smoothness = 3.0
gap = 1.6
growth = 9.0
floor = 1.0
"#;

/// A baseline on the same problem.
pub(crate) const SGD: &str = r#"seed = 1

[problem]
name = "sine-bowl"
start = [1.2]

[noise]
tail = "gaussian"
growth = 0.5
floor = 1.0

[recipe]
name = "sgd"
eta = 0.05
steps = 1000
"#;

/// Replaces what must be there.
pub(crate) fn with(text: &str, old: &str, new: &str) -> String {
    assert!(text.contains(old), "{old:?} is not in:\n{text}");
    text.replacen(old, new, 1)
}

/// What was printed, its lines joined again where a table broke them.
pub(crate) fn unwrapped(printed: &[u8]) -> String {
    String::from_utf8_lossy(printed).split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(crate) struct TestDir(pub(crate) TempDir);

impl TestDir {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// With this problem file, p.toml.
    pub(crate) fn holding(text: &str) -> Self {
        let place = Self::new();
        place.write("p.toml", text);
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// `pasta` with these words, separated by blanks.
    pub(crate) fn pasta(&self, words: &str) -> Command {
        let mut command = Command::new(PASTA);
        command.args(words.split_whitespace()).current_dir(self.0.path()).env(STATE, self.state());
        command
    }

    /// Where the program remembers which folders it wrote: the value of [`STATE`].
    pub(crate) fn state(&self) -> PathBuf {
        self.path(".state")
    }

    /// The JSON object that the program prints before it exits with this code.
    pub(crate) fn json(&self, words: &str, code: i32) -> Value {
        let output = self.pasta(words).arg("--json").assert().code(code).get_output().stdout.clone();
        serde_json::from_slice(&output).unwrap()
    }

    /// Every name in the place, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}
