//! The run of a fit, to its end or to where it is interrupted.

use std::path::PathBuf;
use std::sync::Arc;

use pasta_opt::draws::Role;
use pasta_opt::fit::{Exactly, Fit, FitError, Fitted, Way, exactly};
use pasta_opt::gate::Gate;
use pasta_opt::run;
use pasta_opt::table::{Linear, Loss};
use pasta_report::console::{self, Bar, Exit, Failure, Signals};

use super::arguments::Arguments;
use super::checkpoint::{asked_before, keep};
use crate::world;

/// What a run came to.
pub(super) struct Run {
    pub(super) fitted: Fitted,
    /// Samples and the exact state after rounds, where a page is asked for.
    pub(super) curve: Vec<(u128, Exactly)>,
}

/// How a run ended.
pub(super) enum Descent {
    Done(Box<Run>),
    /// It can go on from this file, if there is one.
    Interrupted(Option<PathBuf>),
}

/// Runs the method to its end.
pub(super) fn descend(
    arguments: &Arguments,
    way: Way,
    linear: &Arc<Linear>,
    budget: u128,
    signals: &Signals,
) -> Result<Descent, Failure> {
    let rows = linear.table().rows() as u128;
    let mut before = match &arguments.resume {
        Some(path) => Some(asked_before(arguments, path)?),
        None => None,
    };
    let bar = Bar::endless("");
    let mut curve = Vec::new();
    let mut watch = |run: &run::Run| {
        let (ledger, view) = (run.gate().ledger(), run.view());
        if bar.is_drawn() {
            let passes = ledger.samples() as f64 / rows as f64;
            bar.say(format!("round {}, {passes:.1} passes", view.step));
        }
        if arguments.page.is_some() && !console::is_muted() && curve.len() < 1000 {
            // By a gate of its own: looking is not part of the run. What goes wrong here shows in the next round.
            let mut look = Gate::over(linear.clone(), arguments.seed);
            if let Ok(state) = exactly(&mut look, Role::Look, view.point) {
                curve.push((ledger.samples(), state));
            }
        }
    };
    let (target, seed) = (arguments.target, arguments.seed);
    let fit = Fit { way, start: None, target, budget: Some(budget), seed };
    let (oracle, stop) = (world::spread(linear.clone()), world::watch(signals.flag()));
    let fitted = match &mut before {
        Some(checkpoint) => fit.resume(linear, oracle, checkpoint, stop, &mut watch),
        None => fit.run(linear, oracle, stop, &mut watch),
    };
    drop(bar);
    match fitted {
        Ok(fitted) => {
            curve.insert(0, (rows, fitted.start));
            curve.push((fitted.gate.ledger().samples(), fitted.end));
            Ok(Descent::Done(Box::new(Run { fitted, curve })))
        }
        Err(FitError::Interrupted(None)) => Ok(Descent::Interrupted(None)),
        Err(FitError::Interrupted(Some(unfinished))) => {
            keep(arguments, &unfinished).map(Descent::Interrupted)
        }
        Err(error) if error.is_not_finite() => Err(not_finite(&error, linear.loss())),
        Err(error @ FitError::Halt(_)) => Err(Failure::system(error)),
        Err(error @ FitError::Table(_)) => Err(Failure::input(error).hint("--method auto fits any loss")),
        Err(error @ FitError::Checkpoint(_)) => {
            let file = arguments.resume.as_ref().map_or_else(String::new, |path| path.display().to_string());
            Err(Failure::input(error).in_file(&file))
        }
        Err(error) => Err(Failure::input(error)),
    }
}

/// A gradient that no number holds.
pub(super) fn not_finite(error: &FitError, loss: Loss) -> Failure {
    let mut failure = Failure::input(format!("the gradient of the loss is not finite: {error}"));
    failure.exit = Exit::Diverged;
    // Its square is part of the loss.
    let too_large = |scale: f64| !(scale * scale).is_finite();
    failure.hint(match loss.parameter() {
        Some(scale) if loss.convex_surrogate().is_some() && too_large(scale) => {
            "the square of --scale is no finite number; a smaller one does"
        }
        _ => "the labels or columns are too large for this loss; scale them down",
    })
}
