//! What a run leaves behind, in its output folder: problem.toml, trace.jsonl, checkpoint.pasta, result.json.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use pasta_opt::checkpoint::{Checkpoint, CheckpointError};
use pasta_opt::run::{RunError, Stored};
use pasta_opt::trace::{Event, FORMATS, Mark, last_milestone};
use serde::Deserialize;

use super::result::Outcome;
use super::{Live, Run};
use crate::spec::{Problem, trust};
use crate::world::{self, At};
use pasta_report as report;
use pasta_report::console::{self, Failure, say};

const SPEC: &str = "problem.toml";
const TRACE: &str = "trace.jsonl";
const CHECKPOINT: &str = "checkpoint.pasta";
const RESULT: &str = "result.json";
const POINT: &str = "point.npy";

/// Larger points are kept in a file of their own.
const POINT_IN_RESULT: usize = 10_000;

/// The problem file of an earlier run.
pub(crate) fn spec_file(folder: &Path) -> Result<PathBuf, Failure> {
    let file = folder.join(SPEC);
    let look = |path: &Path| world::look(path).map_err(Failure::system);
    let lacks = match (look(&file)?, look(folder)?) {
        (At::File, _) => return Ok(file),
        (_, At::Folder) => "it has no problem.toml",
        (_, At::File) => "it is a file",
        _ => "there is no such folder",
    };
    let message = format!("{} is not the output folder of a run: {lacks}", folder.display());
    Err(Failure::input(message).hint("`pasta solve FILE --output DIR` makes one"))
}

/// The checkpoint of an earlier run.
pub(super) fn checkpoint(folder: &Path) -> Result<Checkpoint, Failure> {
    let path = folder.join(CHECKPOINT);
    let (folder, file) = (folder.display(), path.display());
    let again = || format!("start it again with `pasta solve {folder}/{SPEC} --output {folder} --overwrite`");
    let io = |source| CheckpointError::Io { path: file.to_string(), source };
    let loaded = world::read(&path).map_err(io).and_then(|bytes| Checkpoint::from_bytes(&bytes));
    loaded.map_err(|error| match error {
        CheckpointError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            Failure::input(format!("{folder} holds no checkpoint: the run was stopped before its first"))
                .hint(again())
        }
        CheckpointError::Io { source, .. } => Failure::system(source).in_file(file.to_string()),
        _ => Failure::input(error).in_file(file.to_string()).hint(again()),
    })
}

/// What is read of an earlier result.
#[derive(Deserialize)]
struct Earlier {
    format: Option<u32>,
    point: Option<Vec<f64>>,
    point_file: Option<String>,
}

/// The point that an earlier run handed out, or would hand out if it ended where it stands.
pub(crate) fn point(folder: &Path, problem: &Problem) -> Result<Vec<f64>, Failure> {
    let path = folder.join(RESULT);
    let refuse = |what: &str| Failure::input(what).in_file(path.display().to_string());
    let text = match world::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let refuse = |error: RunError| Failure::input(error).in_file(folder.display().to_string());
            let run = Stored::walk(problem, &mut checkpoint(folder)?).map_err(refuse)?;
            return Ok(run.view().point.to_vec());
        }
        Err(error) => return Err(failed(&path)(error)),
    };
    point_in(&path, &text)?.ok_or_else(|| refuse("it has no point"))
}

/// The point that the text of a result hands out, or names a file for.
pub(crate) fn point_in(path: &Path, text: &str) -> Result<Option<Vec<f64>>, Failure> {
    let refuse = |what: &str| Failure::input(what).in_file(path.display().to_string());
    let earlier: Earlier = serde_json::from_str(text).map_err(|error| refuse(&error.to_string()))?;
    match earlier {
        // Points are the same in all formats so far.
        Earlier { format, .. } if !format.is_some_and(|format| (1..=console::FORMAT).contains(&format)) => {
            Err(refuse("a result of another version, whose format is not understood"))
        }
        Earlier { point: Some(point), .. } => Ok(Some(point)),
        Earlier { point_file: Some(name), .. } => {
            let path = path.with_file_name(name);
            let bytes = world::read(&path).map_err(failed(&path))?;
            let point = pasta_io::vector_from_npy(&bytes);
            point.map(Some).map_err(|fault| Failure::input(fault).in_file(path.display().to_string()))
        }
        _ => Ok(None),
    }
}

/// The result of an earlier run.
pub(crate) fn result_file(folder: &Path) -> PathBuf {
    folder.join(RESULT)
}

/// The trace of a run in its folder.
pub(super) fn trace_file(folder: &Path) -> PathBuf {
    folder.join(TRACE)
}

/// What a run keeps: in a folder, or in memory as long as it has none.
#[derive(Default)]
pub(super) struct RunFolder {
    folder: Option<Folder>,
    /// Lines of the trace that are not in the folder yet. A trace is a few thousand lines at most.
    lines: Vec<u8>,
    /// Whether the trace has lines already.
    pub(super) is_begun: bool,
}

struct Folder {
    path: PathBuf,
    /// Locked as long as the run goes on.
    trace: File,
    /// The length of the trace after the last write that did not fail.
    whole: u64,
    /// The problem file.
    spec: String,
}

impl RunFolder {
    /// A new run in a folder.
    pub(super) fn create(path: &Path, spec: &str, overwrite: bool) -> Result<Self, Failure> {
        if console::is_muted() {
            return Ok(Self::default());
        }
        let files = [SPEC, TRACE, CHECKPOINT, RESULT, POINT].map(|name| path.join(name));
        if !overwrite && files.iter().any(|file| file.exists()) {
            let message = format!("{} already holds a run", path.display());
            let hint = format!("go on with `pasta resume {}`, or give --overwrite", path.display());
            return Err(Failure::input(message).hint(hint));
        }
        fs::create_dir_all(path).map_err(failed(path))?;
        let [_, trace, old @ ..] = &files;
        let trace = lock(trace, path)?;
        // First what would let the old run be taken for the new one.
        old.iter().try_for_each(|file| remove(file))?;
        report::write(path, SPEC, spec)?;
        trust::remember(path, spec);
        trace.set_len(0).map_err(failed(path))?;
        let folder = Folder { path: path.to_owned(), trace, whole: 0, spec: spec.to_owned() };
        Ok(Self { folder: Some(folder), ..Self::default() })
    }

    /// An earlier run in its folder. Trace lines beyond where it stands, which a killed run may have left, are dropped: the
    /// resumed run writes them again. So is a result that is not the last word.
    pub(super) fn open(path: &Path, spec: &str, run: &Run) -> Result<Self, Failure> {
        if console::is_muted() {
            return Ok(Self::default());
        }
        let view = run.view();
        let attempts = view.certification.map_or(0, |log| log.attempts);
        let name = path.join(TRACE);
        let trace = lock(&name, path)?;
        let text = fs::read(&name).map_err(failed(&name))?;
        let first = text.split_inclusive(|byte| *byte == b'\n').next();
        match first.and_then(Mark::read) {
            Some(Mark { format: Some(format), .. }) if FORMATS.contains(&format) => {}
            _ if text.is_empty() => {}
            _ => {
                let message = "its first line is no start of a trace that this version understands";
                return Err(Failure::input(message).in_file(name.display().to_string()));
            }
        }
        report::write(path, SPEC, spec)?;
        trust::remember(path, spec);
        if view.ended.is_none() {
            remove(&path.join(RESULT))?;
        }
        let (mut length, mut last) = (0, 0);
        let (mut damaged, mut is_whole) = (false, false);
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let mark = Mark::read(line);
            // A kill may tear the last line; any other that cannot be read was altered.
            damaged = mark.is_none() && length + line.len() < text.len();
            match mark {
                Some(Mark { event, .. }) if event == "start" => {}
                Some(Mark { event, step: Some(step), .. }) if event == "step" && step <= view.step => {
                    last = step;
                }
                Some(Mark { step: Some(step), attempt: Some(attempt), .. })
                    if step <= view.step && attempt <= attempts => {}
                Some(Mark { event, step, .. }) if event == "end" => {
                    // A method may end within its last step, which has no line of its own.
                    is_whole = step == Some(view.step);
                    break;
                }
                _ => break,
            }
            length += line.len();
        }
        if damaged || (last != last_milestone(view.step) && !is_whole) {
            say(&format!("warning: {} is damaged; it goes on from step {last}", name.display()));
        }
        let whole = length as u64;
        trace.set_len(whole).map_err(failed(&name))?;
        let folder = Folder { path: path.to_owned(), trace, whole, spec: spec.to_owned() };
        Ok(Self { folder: Some(folder), lines: Vec::new(), is_begun: length > 0 })
    }

    /// The folder, if there is one.
    pub(super) fn path(&self) -> Option<&Path> {
        self.folder.as_ref().map(|folder| folder.path.as_path())
    }

    pub(super) fn trace(&mut self, event: &Event) -> Result<(), Failure> {
        event.write(&mut self.lines).map_err(failed(Path::new(TRACE)))
    }

    /// Writes a checkpoint, if there is a folder; the trace up to it goes first.
    pub(super) fn save(&mut self, live: &Live) -> Result<(), Failure> {
        self.follow()?;
        match self.put(live) {
            // It may have been removed just now.
            Err(_) if self.follow()? => self.put(live),
            done => done,
        }
    }

    fn put(&mut self, live: &Live) -> Result<(), Failure> {
        let Some(Folder { path, trace, whole, .. }) = &mut self.folder else { return Ok(()) };
        append(trace, whole, &self.lines).map_err(failed(&path.join(TRACE)))?;
        self.lines.clear();
        live.saver().save(&path.join(CHECKPOINT)).map_err(Failure::system)
    }

    /// Goes on in a new folder beside the old one, if that was removed or replaced while the run went on: the run is in memory, and its trace, which is
    /// still open, can be read. True if it did.
    fn follow(&mut self) -> Result<bool, Failure> {
        let Some(Folder { path, trace, spec, .. }) = &mut self.folder else { return Ok(false) };
        if is_there(trace, &path.join(TRACE)) {
            return Ok(false);
        }
        let beside = free(&numbered(path, 2));
        let Some(mut folder) = Self::create(&beside, spec, false)?.folder else { return Ok(false) };
        say(&format!(
            "warning: {} was removed or replaced while the run went on; it goes on in {}",
            path.display(),
            beside.display()
        ));
        let mut lines = Vec::new();
        // What cannot be read any more is missing in the trace, and nowhere else.
        let _ = trace.rewind().and_then(|()| trace.read_to_end(&mut lines));
        append(&mut folder.trace, &mut folder.whole, &lines).map_err(failed(&beside.join(TRACE)))?;
        self.folder = Some(folder);
        Ok(true)
    }

    /// The folder of a run that is to be resumed; a run without one is saved to a new folder at or near `path`.
    pub(super) fn or_rescue(&mut self, path: &Path, spec: &str, live: &Live) -> Result<PathBuf, Failure> {
        if let Some(folder) = &self.folder {
            return Ok(folder.path.clone());
        }
        if console::is_muted() {
            return Ok(path.to_owned());
        }
        let path = free(path);
        self.folder = Self::create(&path, spec, false)?.folder;
        self.save(live)?;
        Ok(path)
    }

    /// Writes the result. A large point goes into a file beside it.
    pub(super) fn write_result(&self, outcome: &mut Outcome) -> Result<(), Failure> {
        let Some(path) = self.path() else { return Ok(()) };
        let report = &mut outcome.report;
        if let Some(point) = report.point.take_if(|point| point.len() > POINT_IN_RESULT) {
            report::write(path, POINT, pasta_io::vector_to_npy(&point))?;
            (report.point_file, report.last) = (Some(POINT.into()), None);
        }
        report::write(path, RESULT, console::pretty_json(outcome)?).map(drop)
    }
}

/// Writes lines behind the first `whole` bytes of a trace. What a write that failed left there goes first: its lines are among these.
fn append(trace: &mut File, whole: &mut u64, lines: &[u8]) -> io::Result<()> {
    if trace.metadata()?.len() != *whole {
        trace.set_len(*whole)?;
    }
    trace.write_all(lines)?;
    trace.sync_data()?;
    *whole += lines.len() as u64;
    Ok(())
}

/// Opens the trace of a run in `folder` for this process alone. The system lets go of it when the process ends, however it
/// ends.
fn lock(trace: &Path, folder: &Path) -> Result<File, Failure> {
    let file = File::options().read(true).append(true).create(true).open(trace).map_err(failed(trace))?;
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
    let mut candidates = std::iter::once(path.to_owned()).chain((2..).map(|n| numbered(path, n)));
    candidates.find(|path| !path.exists()).expect("not every number is taken")
}

fn numbered(path: &Path, n: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!("-{n}"));
    PathBuf::from(name)
}

/// True if the file that is open here is the one that has this name.
fn is_there(file: &File, name: &Path) -> bool {
    let Ok(named) = fs::metadata(name) else { return false };
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        file.metadata().is_ok_and(|open| (open.dev(), open.ino()) == (named.dev(), named.ino()))
    }
    #[cfg(not(unix))]
    {
        let _ = (file, named);
        true
    }
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
    move |error| Failure::system(error).in_file(&path)
}
