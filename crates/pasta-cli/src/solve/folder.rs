//! What a run leaves behind, in its output folder: problem.toml, trace.jsonl, checkpoint.pasta, result.json.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use pasta_opt::checkpoint::{Checkpoint, CheckpointError};
use pasta_opt::trace::{Attempt, Line};
use pasta_opt::walk::Walk;

use super::summary::Summary;
use pasta_report as report;
use pasta_report::console::{Failure, say};

const SPEC: &str = "problem.toml";
const TRACE: &str = "trace.jsonl";
const CHECKPOINT: &str = "checkpoint.pasta";
const RESULT: &str = "result.json";

/// The problem file of an earlier run.
pub(crate) fn spec_file(folder: &Path) -> Result<PathBuf, Failure> {
    let file = folder.join(SPEC);
    let lacks = if file.is_file() {
        return Ok(file);
    } else if folder.is_dir() {
        "it has no problem.toml"
    } else {
        "there is no such folder"
    };
    Err(Failure::input(format!("{} is not the output folder of a run: {lacks}", folder.display())))
}

/// The checkpoint of an earlier run.
pub(super) fn checkpoint(folder: &Path) -> Result<Checkpoint, Failure> {
    let path = folder.join(CHECKPOINT);
    let (folder, file) = (folder.display(), path.display());
    let again = || format!("start it again with `pasta solve {folder}/{SPEC} --output {folder} --overwrite`");
    Checkpoint::load(&path).map_err(|error| match error {
        CheckpointError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            Failure::input(format!("{folder} holds no checkpoint: the run was stopped before its first"))
                .hint(again())
        }
        CheckpointError::Io { .. } => Failure::system(error),
        _ => Failure::input(format!("{file}: {error}")).hint(again()),
    })
}

/// The point that an earlier run handed out, or would hand out if it ended where it stands.
pub(crate) fn point(folder: &Path) -> Result<Vec<f64>, Failure> {
    let path = folder.join(RESULT);
    match fs::read_to_string(&path) {
        Ok(text) => {
            let result: serde_json::Value = serde_json::from_str(&text)
                .map_err(|error| Failure::input(format!("{}: {error}", path.display())))?;
            serde_json::from_value(result["point"].clone())
                .map_err(|error| Failure::input(format!("{}: point: {error}", path.display())))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Ok(checkpoint(folder)?.state.output().to_vec())
        }
        Err(error) => Err(failed(&path)(error)),
    }
}

/// What a run keeps: in a folder, or in memory as long as it has none.
pub(super) struct Keep {
    folder: Option<Folder>,
    /// Lines of the trace that are not in the folder yet. A trace is a few thousand lines at most.
    lines: Vec<u8>,
}

struct Folder {
    path: PathBuf,
    /// Locked as long as the run goes on.
    trace: File,
}

impl Keep {
    /// A run that writes nothing.
    pub(super) fn in_memory() -> Self {
        Self { folder: None, lines: Vec::new() }
    }

    /// A new run in a folder.
    pub(super) fn create(path: &Path, spec: &str, overwrite: bool) -> Result<Self, Failure> {
        let [spec_file, trace, checkpoint, result] =
            [SPEC, TRACE, CHECKPOINT, RESULT].map(|name| path.join(name));
        if !overwrite && [&spec_file, &trace, &checkpoint, &result].into_iter().any(|file| file.exists()) {
            let message = format!("{} already holds a run", path.display());
            let hint = format!("go on with `pasta resume {}`, or give --overwrite", path.display());
            return Err(Failure::input(message).hint(hint));
        }
        fs::create_dir_all(path).map_err(failed(path))?;
        let trace = lock(&trace, path)?;
        // First what would let the old run be taken for the new one.
        remove(&checkpoint)?;
        remove(&result)?;
        report::write(path, SPEC, spec)?;
        trace.set_len(0).map_err(failed(path))?;
        Ok(Self { folder: Some(Folder { path: path.to_owned(), trace }), lines: Vec::new() })
    }

    /// An earlier run in its folder, which stands at `state`. Trace lines beyond, which a killed run may have
    /// left, are dropped: the resumed run writes them again. So is a result that is not the last word.
    pub(super) fn open(path: &Path, spec: &str, walk: &dyn Walk) -> Result<Self, Failure> {
        let (state, attempts) = (walk.state(), walk.certification().map_or(0, |progress| progress.attempts));
        let name = path.join(TRACE);
        let trace = lock(&name, path)?;
        report::write(path, SPEC, spec)?;
        if state.ended.is_none() {
            remove(&path.join(RESULT))?;
        }
        let text = fs::read(&name).map_err(failed(&name))?;
        let (mut length, mut last) = (0, 0);
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            match read(line) {
                Some((step, None)) if step <= state.step => (length, last) = (length + line.len(), step),
                Some((step, Some(attempt))) if step <= state.step && attempt <= attempts => {
                    length += line.len();
                }
                _ => break,
            }
        }
        if last != last_milestone(state.step) {
            say(&format!("warning: {} is damaged; it goes on from step {last}", name.display()));
        }
        trace.set_len(length as u64).map_err(failed(&name))?;
        Ok(Self { folder: Some(Folder { path: path.to_owned(), trace }), lines: Vec::new() })
    }

    /// The folder, if there is one.
    pub(super) fn path(&self) -> Option<&Path> {
        self.folder.as_ref().map(|folder| folder.path.as_path())
    }

    pub(super) fn trace(&mut self, line: &Line) -> Result<(), Failure> {
        line.write(&mut self.lines).map_err(failed(Path::new(TRACE)))
    }

    pub(super) fn trace_attempt(&mut self, line: &Attempt) -> Result<(), Failure> {
        line.write(&mut self.lines).map_err(failed(Path::new(TRACE)))
    }

    /// Writes a checkpoint, if there is a folder; the trace up to it goes first.
    pub(super) fn save(&mut self, walk: &dyn Walk) -> Result<(), Failure> {
        let Some(Folder { path, trace }) = &mut self.folder else { return Ok(()) };
        let written = trace.write_all(&self.lines).and_then(|()| trace.sync_data());
        written.map_err(failed(&path.join(TRACE)))?;
        self.lines.clear();
        walk.checkpoint().save(&path.join(CHECKPOINT)).map_err(Failure::system)
    }

    /// The folder of a run that is to be resumed; a run without one is saved to a new folder at or near `path`.
    pub(super) fn or_rescue(&mut self, path: &Path, spec: &str, walk: &dyn Walk) -> Result<PathBuf, Failure> {
        if let Some(folder) = &self.folder {
            return Ok(folder.path.clone());
        }
        let path = free(path);
        self.folder = Self::create(&path, spec, false)?.folder;
        self.save(walk)?;
        Ok(path)
    }

    pub(super) fn write_result(&self, summary: &Summary) -> Result<(), Failure> {
        match self.path() {
            Some(path) => report::write(path, RESULT, &format!("{:#}\n", summary.json())).map(drop),
            None => Ok(()),
        }
    }
}

/// Opens the trace of a run in `folder` for this process alone. The system lets go of it when the process ends, however it
/// ends.
fn lock(trace: &Path, folder: &Path) -> Result<File, Failure> {
    let file = File::options().append(true).create(true).open(trace).map_err(failed(trace))?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            let message = format!("another process is at work in {}", folder.display());
            Err(Failure::input(message).hint("wait until it has ended, or choose another folder"))
        }
        // A file system without locks is no reason not to run.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(file),
    }
}

/// The first of `path`, `path-2`, `path-3`, .. that does not exist: an earlier rescue is not overwritten.
fn free(path: &Path) -> PathBuf {
    let numbered = |n: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!("-{n}"));
        PathBuf::from(name)
    };
    let mut candidates = std::iter::once(path.to_owned()).chain((2..).map(numbered));
    candidates.find(|path| !path.exists()).expect("not every number is taken")
}

/// The last step up to `step` that a trace keeps; see `is_milestone`.
fn last_milestone(step: u64) -> u64 {
    let spacing = step.max(1).ilog2().saturating_sub(6);
    step >> spacing << spacing
}

/// The step of a whole trace line, with the number of the certificate that it may be about; `None` for a torn one.
fn read(line: &[u8]) -> Option<(u64, Option<u64>)> {
    let line: serde_json::Value = serde_json::from_slice(line.strip_suffix(b"\n")?).ok()?;
    Some((line.get("step")?.as_u64()?, line.get("attempt").and_then(serde_json::Value::as_u64)))
}

/// Removes a file that may not be there.
fn remove(path: &Path) -> Result<(), Failure> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(path)(error)),
        _ => Ok(()),
    }
}

fn failed(path: &Path) -> impl Fn(io::Error) -> Failure {
    let path = path.display().to_string();
    move |error| Failure::system(format!("{path}: {error}"))
}
