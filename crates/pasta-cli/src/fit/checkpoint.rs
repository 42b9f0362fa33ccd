//! The checkpoint of a fit that was interrupted.

use std::path::{Path, PathBuf};

use pasta_opt::checkpoint::{Checkpoint, Saver};
use pasta_opt::run::{Run, Target};
use pasta_report::console::{self, Failure};
use serde::Deserialize;

use super::arguments::Arguments;

/// The section of a checkpoint with what a fit was asked for, besides the problem.
const SECTION: &str = "fit";

/// Writes a checkpoint beside the model, or here.
pub(super) fn keep(arguments: &Arguments, run: &Run) -> Result<Option<PathBuf>, Failure> {
    let mut path = arguments.output.clone().unwrap_or_else(|| PathBuf::from("fit")).into_os_string();
    path.push(".checkpoint");
    let path = PathBuf::from(path);
    if console::is_muted() {
        // The first of several processes writes.
        return Ok(Some(path));
    }
    let mut saver = Saver::default();
    run.save(&mut saver);
    saver.put(SECTION, &asked(arguments), []);
    saver.save(&path).map_err(Failure::system)?;
    Ok(Some(path))
}

/// What a checkpoint says that was asked for.
#[derive(Deserialize)]
#[serde(untagged)]
enum Asked {
    Parts(Vec<(String, String)>),
    /// As earlier versions wrote it.
    Line(String),
}

fn in_a_line(arguments: &Arguments) -> String {
    let Arguments { target, budget, validation, steps, batch, set, seed, .. } = arguments;
    let method = arguments.method.as_deref().unwrap_or("usual");
    let target = target.and_then(Target::norm);
    format!("{method} {target:?} {budget:?} {validation:?} {steps:?} {batch} {set:?} {seed}")
}

/// What was asked for, by name and in words.
fn asked(arguments: &Arguments) -> Vec<(String, String)> {
    fn words<T: ToString>(value: Option<&T>) -> String {
        value.map_or_else(|| "not given".to_owned(), T::to_string)
    }
    let Arguments { target, budget, validation, steps, batch, set, seed, .. } = arguments;
    let set: Vec<_> = set.iter().map(|(key, value)| format!("{key}={value}")).collect();
    [
        ("method", words(arguments.method.as_ref())),
        ("target", words(target.as_ref())),
        ("budget", words(budget.as_ref())),
        ("validation", words(validation.as_ref())),
        ("steps", words(steps.as_ref())),
        ("batch", batch.to_string()),
        ("set", words(Some(set.join(",")).filter(|set| !set.is_empty()).as_ref())),
        ("seed", seed.to_string()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// The checkpoint of a run, which must be the one that the command asks for.
pub(super) fn asked_before(arguments: &Arguments, path: &Path) -> Result<Checkpoint, Failure> {
    let file = path.display().to_string();
    let mut checkpoint = Checkpoint::load(path).map_err(Failure::input)?;
    let (then, _): (Asked, _) =
        checkpoint.take(SECTION).map_err(|error| Failure::input(error).in_file(&file))?;
    let differences: Vec<String> = match then {
        Asked::Parts(then) => {
            let pairs = asked(arguments).into_iter().zip(then).filter(|(now, then)| now != then);
            pairs.map(|((name, now), (_, then))| format!("--{name} was {then}, and is {now}")).collect()
        }
        Asked::Line(then) if then == in_a_line(arguments) => Vec::new(),
        Asked::Line(_) => {
            vec!["method, target, budget, validation, steps, batch, settings or seed differ".into()]
        }
    };
    if !differences.is_empty() {
        let message = format!("a checkpoint of another command: {}", differences.join("; "));
        return Err(Failure::input(message).in_file(&file));
    }
    Ok(checkpoint)
}
