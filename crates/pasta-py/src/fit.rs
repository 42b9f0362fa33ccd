//! Linear models: a fit to an exact certificate, and a pass over rows that stream by.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use numpy::{PyArray1, PyReadonlyArray1};
use pasta_opt::Ledger;
use pasta_opt::checkpoint::{Checkpoint, Saver};
use pasta_opt::fit::{AtScale, Fit, FitError, Fitted, LeftOut, PENALTY, Way};
use pasta_opt::gate::Gate;
use pasta_opt::inference::{StdErrors, Summary};
use pasta_opt::method::{self, AUTO, EXACT, Values};
use pasta_opt::oracle::{About, Answer, Charge, Draw, Form, Oracle, OracleError, Request};
use pasta_opt::proximal::Penalties;
use pasta_opt::run::{Event, Run};
use pasta_opt::score::Score;
use pasta_opt::table::Linear;
use pyo3::exceptions::{PyKeyboardInterrupt, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Serialize;

use crate::native::Native;
use crate::{MethodOf, TargetOf, alone, value_error};

/// The end of a fit, with the keys of a model file.
#[derive(Serialize)]
struct Outcome {
    method: String,
    stop: &'static str,
    meaning: String,
    steps: u64,
    passes: f64,
    ledger: Ledger,
    certificate: Certificate,
    /// Whether the loss has no minimiser.
    has_no_minimiser: bool,
    /// The penalty: the usual one where none was given and there is no minimiser without one.
    penalty: f64,
    /// The coefficients, where standard errors were asked for.
    summary: Option<Summary>,
    /// Of a loss whose scale was taken from the residuals: their standard deviation.
    deviation: Option<f64>,
    /// The parameter of the loss.
    parameter: Option<f64>,
    left_out: Vec<LeftOut>,
    /// What to say about these.
    redundant: Option<String>,
}

#[derive(Serialize)]
struct Certificate {
    verdict: pasta_opt::fit::Verdict,
    exact: bool,
    gradient: f64,
    target: f64,
    start_gradient: f64,
    objective: f64,
    gap: Option<f64>,
}

fn linear(table: &Bound<'_, Native>) -> PyResult<Arc<Linear>> {
    table.get().linear.clone().ok_or_else(|| PyTypeError::new_err("it is no table"))
}

/// l1 and the bounds of the weights, as `Penalties` has them.
type PenaltiesOf = (f64, Vec<f64>, Vec<f64>);

/// The way of a method; without one, the quickest that is known for the table, and its name. Only second-order steps know penalties besides the ridge's, and bounds.
fn way(
    method: Option<MethodOf>,
    linear: &Arc<Linear>,
    penalties: Option<PenaltiesOf>,
) -> PyResult<(Way, String)> {
    if let Some((l1, lower, upper)) = penalties {
        if let Some(other) = method.filter(|method| method.name() != EXACT) {
            let name = other.name();
            return Err(value_error(format!("the method {name} knows no l1 and no bounds; leave it out")));
        }
        let term = Penalties { l1, lower, upper }.term(linear).map_err(value_error)?;
        return Ok((Way::Proximal(term), EXACT.to_owned()));
    }
    let Some(method) = method else {
        let way = Way::usual(linear);
        let name = if matches!(way, Way::SecondOrder) { EXACT } else { AUTO };
        return Ok((way, name.to_owned()));
    };
    let name = method.name().to_owned();
    let way = if name == EXACT { Way::SecondOrder } else { Way::Method(method.engine(linear.clone())?) };
    Ok((way, name))
}

/// The kind of standard errors of this name.
fn kind(name: &str) -> PyResult<StdErrors> {
    // Resampling is the program's.
    let known = || StdErrors::ALL.iter().filter(|(_, kind)| !matches!(kind, StdErrors::Bootstrap));
    let names = known().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    known()
        .find(|(known, _)| *known == name)
        .map(|(_, kind)| *kind)
        .ok_or_else(|| value_error(format!("std_errors must be one of {names}, but is {name:?}")))
}

/// True if every row has its class with room to spare, under a loss that then has no minimiser.
fn is_separated(linear: &Linear, fitted: &Fitted) -> Result<bool, FitError> {
    if !linear.loss().needs_overlap() {
        return Ok(false);
    }
    let (model, table) = (linear.raw_weights(&fitted.point), linear.table());
    let weights = table.weights.as_ref().map(|weights| (**weights).as_ref());
    Ok(Score::of(&model, &table.features, (*table.labels).as_ref(), weights)?.separated)
}

/// Fits a model to a table, by the quickest way if no method is named. The outcome as JSON, and the point. If the scale of the loss was left to the table, it is that of the residuals.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "Python's keywords")]
pub(crate) fn fit(
    table: Bound<'_, Native>,
    names: Vec<String>,
    method: Option<MethodOf>,
    target: Option<TargetOf>,
    budget: Option<u128>,
    seed: u64,
    threads: usize,
    may_penalise: bool,
    std_errors: Option<String>,
    penalties: Option<PenaltiesOf>,
) -> PyResult<(String, Bound<'_, PyArray1<f64>>)> {
    let target = target.map(TargetOf::read).transpose()?;
    let (py, linear) = (table.py(), linear(&table)?);
    let rows = linear.table().rows() as f64;
    let again = way(method.clone(), &linear, None)?.0;
    let may_penalise = may_penalise && penalties.is_none();
    let (way, method) = way(method, &linear, penalties)?;
    let kind = std_errors.as_deref().map(kind).transpose()?;
    let follows = table.get().follows;
    let fitted = alone(py, threads, move |stop| {
        let half = budget.map(|budget| budget / 2);
        let at_scale = if follows { AtScale::of(&linear, half, seed, Arc::clone(stop))? } else { None };
        let linear = at_scale.as_ref().map_or(linear, |at_scale| Arc::clone(&at_scale.linear));
        let before = at_scale.as_ref().map_or(0, |at_scale| at_scale.gate.ledger().samples());
        let budget = budget.map(|budget| budget.saturating_sub(before));
        let fit = Fit { way, start: None, target, budget, seed };
        let mut fitted = fit.run(&linear, linear.clone(), Arc::clone(stop), &mut |_| ())?;
        let mut falls = fitted.has_no_minimiser(&linear, budget, Arc::clone(stop))?;
        let mut linear = linear;
        if may_penalise && (falls || is_separated(&linear, &fitted)?) {
            linear = Arc::new(linear.with_penalty(PENALTY)?);
            let budget = budget.map(|budget| budget.saturating_sub(fitted.gate.ledger().samples()));
            let fit = Fit { way: again, start: None, target, budget, seed };
            let first = fitted.gate;
            fitted = fit.run(&linear, linear.clone(), Arc::clone(stop), &mut |_| ())?;
            fitted.gate.merge(&first);
            falls = false;
        }
        let summary = kind.map(|kind| Summary::named(&linear, &fitted, Some(kind), &names));
        if let Some(at_scale) = &at_scale {
            fitted.gate.merge(&at_scale.gate);
        }
        let penalty = linear.design().penalty;
        let redundant = LeftOut::words(&fitted.left_out, &names);
        let deviation = at_scale.map(|at_scale| at_scale.deviation);
        Ok((fitted, falls, deviation, linear.loss().parameter(), penalty, summary, redundant))
    })?;
    let (fitted, has_no_minimiser, deviation, parameter, penalty, summary, redundant) = fitted.map_err(|error: FitError| match error {
        error if error.is_interrupted() => PyKeyboardInterrupt::new_err("interrupted"),
        error if error.is_not_finite() => value_error(format!(
            "the gradient of the loss is not finite: {error}; the labels or columns are too large for this loss, or the weights of rows too small; scale them"
        )),
        error => value_error(error),
    })?;
    let Fitted { gate, point, stop, steps, target, start, end, gap, verdict, left_out, .. } = fitted;
    let outcome = Outcome {
        method,
        stop: stop.kind(),
        meaning: stop.meaning(),
        steps,
        passes: gate.ledger().samples() as f64 / rows,
        ledger: gate.ledger().clone(),
        certificate: Certificate {
            verdict,
            exact: true,
            gradient: end.gradient,
            target,
            start_gradient: start.gradient,
            objective: end.objective,
            gap,
        },
        has_no_minimiser,
        penalty,
        summary,
        deviation,
        parameter,
        redundant,
        left_out,
    };
    Ok((serde_json::to_string(&outcome).map_err(value_error)?, PyArray1::from_vec(py, point)))
}

/// Rows of a table in their stored order, once: the samples of step s are the rows of its batch.
struct Passing {
    linear: Arc<Linear>,
    about: About,
    /// The step of the first row.
    first: AtomicU64,
}

impl Oracle for Passing {
    fn about(&self) -> &About {
        &self.about
    }

    fn answer(&self, request: &Request<'_>, answer: &mut Answer<'_>) -> Result<Charge, OracleError> {
        let (Draw::Batch(batch), Form::Sums, [x]) = (&request.draw, request.form, request.points) else {
            return Err(OracleError::new("rows that stream by can be asked once, at one point"));
        };
        let table = self.linear.table();
        let size = batch.count();
        let begin = (batch.step - self.first.load(Ordering::Relaxed)) * size;
        let rows = begin as usize..((begin + size) as usize).min(table.rows());
        let weight: f64 = match &table.weights {
            None => rows.len() as f64,
            Some(weights) => (**weights).as_ref()[rows.clone()].iter().sum(),
        };
        answer.gradients.fill(0.0);
        if weight > 0.0 {
            self.linear.sum_stored(rows, x, answer.gradients);
            // The last batch may be short.
            answer.gradients.iter_mut().for_each(|g| *g *= size as f64 / weight);
        }
        Ok(request.usual_price(&self.about))
    }
}

/// Rows of a step of a pass.
const STREAMED: u64 = 8;
/// A method without a step size, which averages.
const STREAM_METHOD: &str = "dog";

/// Goes over the rows of a table once, from where the last call ended; the first step is about as long as `radius`. What is needed to go on, the point, and the stop, if it
/// came to one.
#[pyfunction]
pub(crate) fn stream<'py>(
    table: Bound<'py, Native>,
    state: Option<&[u8]>,
    start: PyReadonlyArray1<'py, f64>,
    radius: f64,
) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyArray1<f64>>, Option<String>)> {
    let (py, linear) = (table.py(), linear(&table)?);
    let start = start.as_slice()?.to_vec();
    let steps = (linear.table().rows() as u64).div_ceil(STREAMED);
    let about = About::stream(linear.dim(), "rows that stream by");
    let oracle = Arc::new(Passing { linear, about, first: AtomicU64::new(0) });
    let stored = state.map(Checkpoint::from_bytes).transpose().map_err(value_error)?;
    let dog = method::find(STREAM_METHOD).expect("it is a method");
    let mut settings = Values::default();
    // DoG takes its first step in units of 1 + |x0|, and an intercept far from 0 says nothing about how far there is to go.
    settings.set("radius", radius / (1.0 + start.iter().map(|x| x * x).sum::<f64>().sqrt()));
    // Where weights are small, gradients may be, and what is added to their squares has to be smaller still.
    settings.set("epsilon", 1e-8 * (100.0 * radius).clamp(1e-100, 1.0).powi(2));
    let dog = dog.engine(&settings, 1 << 62, STREAMED).map_err(value_error)?;
    let passed = alone(py, 1, move |stop| -> Result<_, String> {
        let said = |error: &dyn std::fmt::Display| error.to_string();
        let (mut gate, walk) = if let Some(mut stored) = stored {
            let gate = Gate::resume(oracle.clone(), &mut stored).map_err(|error| said(&error))?;
            let walk = method::resume(&gate, &mut stored).map_err(|error| said(&error))?;
            (gate, walk)
        } else {
            let gate = Gate::over(oracle.clone(), 0);
            let walk = dog.start(&gate, &start).map_err(|error| said(&error))?;
            (gate, walk)
        };
        gate = gate.with_stop(Arc::clone(stop));
        oracle.first.store(walk.view().step, Ordering::Relaxed);
        let mut run = Run::of(gate.without_check(), walk);
        let mut ended = None;
        for _ in 0..steps {
            if let Event::End(stop) = run.next().map_err(|halt| said(&halt))? {
                ended = Some(stop.meaning());
                break;
            }
        }
        let mut saver = Saver::default();
        run.save(&mut saver);
        Ok((saver.to_bytes(), run.view().point.to_vec(), ended))
    })?;
    let (bytes, point, ended) = passed.map_err(value_error)?;
    Ok((PyBytes::new(py, &bytes), PyArray1::from_vec(py, point), ended))
}
