//! Which programs are started unasked. A problem file that you name may name a program, which is shown and started. The file in a run folder may be
//! another's: its program is started if this user's `pasta` wrote the file there, or if you say that you trust it.
//!
//! What was written is remembered in the user's state directory, a file for each folder: the path of the folder, and the text of its problem.toml.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::{env, fs};

use pasta_pipe::Simulator;

use super::pipe::COMMAND_LINE;
use super::section::Source;
use crate::Failure;
use crate::talk::{agrees, say};
use crate::world;

/// Where a problem file is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Origin {
    /// It was named on the command line.
    #[default]
    Named,
    /// It was found in the folder of a run that was named.
    Folder,
    /// It was found there, and is trusted.
    Trusted,
}

impl Origin {
    /// Of the file of a run folder.
    pub fn folder(trusted: bool) -> Self {
        if trusted { Self::Trusted } else { Self::Folder }
    }
}

/// Shows the program that is about to be started, and refuses one that you have not asked for.
pub(super) fn before_start(source: Source<'_>, origin: Origin, simulator: &Simulator) -> Result<(), Failure> {
    let program = shown(simulator);
    if origin == Origin::Folder {
        let folder = Path::new(source.file).parent().unwrap_or(Path::new(""));
        let may_start =
            world::decided(|| is_ours(folder, source.text) || is_wanted(folder, source.text, &program));
        if !may_start.map_err(Failure::system)? {
            let message = format!(
                "this folder was not written by your pasta on this machine, and its run starts {program}"
            );
            let hint = "a program can do all that you can: look at it, and give --trust if you trust it";
            return Err(Failure::input(message).in_file(source.file).hint(hint));
        }
    }
    static IS_SHOWN: AtomicBool = AtomicBool::new(false);
    if source.file != COMMAND_LINE && !IS_SHOWN.swap(true, Ordering::Relaxed) {
        say(&format!("starting {program}"));
    }
    Ok(())
}

/// A longer command is cut.
const LONGEST: usize = 1000;

/// The command, its variables and where it runs, with everything escaped that a terminal would not show as it is.
fn shown(simulator: &Simulator) -> String {
    let Simulator { command, environment, directory, .. } = simulator;
    let place = directory.as_ref().map(|path| format!(" in {:?}", path.display().to_string()));
    let variables = if environment.is_empty() { String::new() } else { format!(" with {environment:?}") };
    let text = format!("{command:?}{}{variables}", place.unwrap_or_default());
    match text.char_indices().nth(LONGEST) {
        None => text,
        Some((end, _)) => {
            let words = command.len() + environment.len();
            format!("{} .. (cut; {words} words in all, {} bytes)", &text[..end], text.len())
        }
    }
}

/// Asks, if there is somebody to ask.
fn is_wanted(folder: &Path, text: &str, program: &str) -> bool {
    let name = folder.display().to_string();
    let wanted = agrees(&format!("The run in {name:?} starts {program}.\nStart it?"));
    if wanted {
        remember(folder, text);
    }
    wanted
}

/// Remembers that the file of a run folder was written here, if it names a program. Where that cannot be remembered, the run is resumed with --trust.
pub fn remember(folder: &Path, text: &str) {
    if let Some((path, record)) = record(folder, text).filter(|_| text.contains("command")) {
        let _ = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(path, record));
    }
}

/// True if this user's program wrote this text into this folder.
fn is_ours(folder: &Path, text: &str) -> bool {
    record(folder, text)
        .is_some_and(|(path, record)| fs::read_to_string(path).is_ok_and(|written| written == record))
}

/// Where a folder is remembered, and what is remembered of it.
fn record(folder: &Path, text: &str) -> Option<(PathBuf, String)> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let folder = folder.canonicalize().ok()?.to_str()?.to_owned();
    // Two folders with the same name here would forget each other, not more.
    let name = folder.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    Some((state()?.join(format!("{name:016x}")), format!("{folder}\n{text}")))
}

fn state() -> Option<PathBuf> {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    Some(state.join("pasta/runs"))
}
