//! The checkpoint of a fit that was interrupted.

use std::path::{Path, PathBuf};

use pasta_opt::checkpoint::{Checkpoint, Saver};
use pasta_opt::gate::Gate;
use pasta_opt::walk::Walk;
use pasta_report::console::{self, Failure};

use super::arguments::Arguments;

/// The section of a checkpoint with what a fit was asked for, besides the problem.
const SECTION: &str = "fit";

/// Writes a checkpoint beside the model, or here.
pub(super) fn keep(arguments: &Arguments, gate: &Gate, walk: &dyn Walk) -> Result<Option<PathBuf>, Failure> {
    let mut path = arguments.output.clone().unwrap_or_else(|| PathBuf::from("fit")).into_os_string();
    path.push(".checkpoint");
    let path = PathBuf::from(path);
    if console::is_muted() {
        // The first of several processes writes.
        return Ok(Some(path));
    }
    let mut saver = Saver::default();
    gate.save(&mut saver);
    walk.save(&mut saver);
    saver.put(SECTION, &asked(arguments), []);
    saver.save(&path).map_err(Failure::system)?;
    Ok(Some(path))
}

fn asked(arguments: &Arguments) -> String {
    let Arguments { target, budget, validation, steps, batch, set, seed, .. } = arguments;
    let method = arguments.method.as_deref().unwrap_or("usual");
    format!("{method} {target:?} {budget:?} {validation:?} {steps:?} {batch} {set:?} {seed}")
}

/// The checkpoint of a run, which must be the one that the command asks for.
pub(super) fn asked_before(arguments: &Arguments, path: &Path) -> Result<Checkpoint, Failure> {
    let file = path.display().to_string();
    let mut checkpoint = Checkpoint::load(path).map_err(Failure::input)?;
    let (then, _): (String, _) =
        checkpoint.take(SECTION).map_err(|error| Failure::input(error).in_file(&file))?;
    let now = asked(arguments);
    if then != now {
        let message = format!(
            "a checkpoint of another command: method, target, budget, validation, steps, batch, settings and seed were {then}, and are {now}"
        );
        return Err(Failure::input(message).in_file(&file));
    }
    Ok(checkpoint)
}
