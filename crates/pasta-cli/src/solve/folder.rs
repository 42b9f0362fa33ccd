//! The output folder of a run: problem.toml, trace.jsonl, checkpoint.pasta, result.json.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use pasta_opt::checkpoint::Checkpoint;
use pasta_opt::trace::Line;

use super::summary::Summary;
use crate::error::Failure;

const SPEC: &str = "problem.toml";
const TRACE: &str = "trace.jsonl";
const CHECKPOINT: &str = "checkpoint.pasta";
const RESULT: &str = "result.json";

/// A folder that a run writes to.
pub(super) struct Folder {
    path: PathBuf,
    trace: BufWriter<File>,
}

impl Folder {
    /// Prepares a folder for a new run.
    pub(super) fn create(path: &Path, spec: &str, overwrite: bool) -> Result<Self, Failure> {
        let checkpoint = path.join(CHECKPOINT);
        if checkpoint.exists() && !overwrite {
            let message = format!("{} already holds a run", path.display());
            let hint = format!("go on with `pasta resume {}`, or give --overwrite", path.display());
            return Err(Failure::input(message).hint(hint));
        }
        fs::create_dir_all(path).map_err(failed(path))?;
        for stale in [&checkpoint, &path.join(RESULT)] {
            match fs::remove_file(stale) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(stale)(error)),
                _ => {}
            }
        }
        fs::write(path.join(SPEC), spec).map_err(failed(&path.join(SPEC)))?;
        let trace = path.join(TRACE);
        let file = File::create(&trace).map_err(failed(&trace))?;
        Ok(Self { path: path.to_owned(), trace: BufWriter::new(file) })
    }

    /// Opens the folder of an earlier run, with its checkpoint. Trace lines beyond the checkpoint, which a
    /// killed run may have left, are dropped: the resumed run writes them again.
    pub(super) fn open(path: &Path) -> Result<(Self, Checkpoint), Failure> {
        let checkpoint = Checkpoint::load(&path.join(CHECKPOINT)).map_err(|error| {
            Failure::input(format!("{}: {error}", path.display())).hint("give the output folder of a run")
        })?;
        let trace = path.join(TRACE);
        let text = fs::read_to_string(&trace).map_err(failed(&trace))?;
        let kept: usize = text
            .split_inclusive('\n')
            .take_while(|line| step_of(line).is_some_and(|step| step <= checkpoint.state.step))
            .map(str::len)
            .sum();
        let file = OpenOptions::new().append(true).open(&trace).map_err(failed(&trace))?;
        file.set_len(kept as u64).map_err(failed(&trace))?;
        Ok((Self { path: path.to_owned(), trace: BufWriter::new(file) }, checkpoint))
    }

    /// The problem file of an earlier run.
    pub(super) fn spec_file(path: &Path) -> Result<PathBuf, Failure> {
        let file = path.join(SPEC);
        if file.is_file() {
            Ok(file)
        } else {
            Err(Failure::input(format!(
                "{} is not the output folder of a run: it has no {SPEC}",
                path.display()
            )))
        }
    }

    /// Saves an interrupted run that had no folder of its own.
    pub(super) fn rescue(path: &Path, spec: &str, checkpoint: &Checkpoint) -> Result<PathBuf, Failure> {
        let mut folder = Self::create(path, spec, true)?;
        folder.save(checkpoint)?;
        Ok(folder.path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn trace(&mut self, line: &Line) -> Result<(), Failure> {
        line.write(&mut self.trace).map_err(failed(&self.path.join(TRACE)))
    }

    /// Writes the checkpoint; the trace up to it goes first.
    pub(super) fn save(&mut self, checkpoint: &Checkpoint) -> Result<(), Failure> {
        self.trace.flush().map_err(failed(&self.path.join(TRACE)))?;
        checkpoint.save(&self.path.join(CHECKPOINT)).map_err(Failure::system)
    }

    pub(super) fn write_result(&self, summary: &Summary) -> Result<(), Failure> {
        let path = self.path.join(RESULT);
        fs::write(&path, format!("{:#}\n", summary.json())).map_err(failed(&path))
    }
}

/// The step of a whole trace line; `None` for a torn one.
fn step_of(line: &str) -> Option<u64> {
    let line = line.strip_suffix('\n')?;
    serde_json::from_str::<serde_json::Value>(line).ok()?.get("step")?.as_u64()
}

fn failed(path: &Path) -> impl Fn(io::Error) -> Failure {
    let path = path.display().to_string();
    move |error| Failure::system(format!("{path}: {error}"))
}
