//! Standard errors from resamples: the spread of fits of rows drawn with replacement.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rayon::prelude::*;
use serde::Serialize;

use super::{LEVEL, Law, Omitted, StdErrors, Summary, Sums, coefficients};
use crate::draws::{Address, Role};
use crate::fit::{Fit, FitError, Fitted, Verdict, Way};
use crate::gate::Gate;
use crate::score::has_classes;
use crate::table::{Linear, Table};

/// How many resamples there were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Resamples {
    /// Those that count: with a certified fit, and without the same columns.
    pub used: usize,
    /// All.
    pub asked: usize,
}

impl Summary {
    /// The coefficients of a fit with standard errors from resamples of its rows, and what their fits have read. The features have these names. Rows with weight 0 are not drawn.
    ///
    /// The standard error is the deviation of a coefficient over the resamples, and its interval is between their percentiles. A resample does not count whose fit has no minimiser, is
    /// not certified or leaves out other columns; there are no errors if fewer than half of them count.
    pub fn bootstrapped(
        linear: &Arc<Linear>,
        fitted: &Fitted,
        names: &[String],
        resamples: u32,
        seed: u64,
        stop: &Arc<AtomicBool>,
    ) -> Result<(Self, Gate), FitError> {
        let mut summary = Self::named(linear, fitted, Some(StdErrors::Bootstrap), names);
        let mut gate = Gate::over(Arc::clone(linear) as _, seed);
        if summary.omitted != Some(Omitted::NotResampled) {
            return Ok((summary, gate));
        }
        let without: Vec<usize> = fitted.left_out.iter().map(|one| one.feature).collect();
        let fits: Vec<(Gate, Option<Vec<f64>>)> = (0..resamples)
            .into_par_iter()
            .map(|number| estimates(linear, &without, u64::from(number), seed, stop))
            .collect::<Result<_, _>>()?;
        let mut columns: Vec<Vec<f64>> = vec![Vec::new(); summary.coefficients.len()];
        for (own, estimates) in fits {
            gate.merge(&own);
            let estimates = estimates.into_iter().flatten();
            columns.iter_mut().zip(estimates).for_each(|(column, estimate)| column.push(estimate));
        }
        let used = columns.first().map_or(0, Vec::len);
        let asked = resamples as usize;
        if used < 2 || 2 * used < asked {
            summary.omitted = Some(Omitted::Resamples { used, asked });
            return Ok((summary, gate));
        }
        (summary.std_errors, summary.law) = (Some(StdErrors::Bootstrap), Some(Law::Normal));
        (summary.omitted, summary.resamples) = (None, Some(Resamples { used, asked }));
        let is_left_out = |name: &String| without.iter().any(|feature| names.get(*feature) == Some(name));
        for (coefficient, mut column) in summary.coefficients.iter_mut().zip(columns) {
            if is_left_out(&coefficient.name) {
                continue;
            }
            column.sort_by(f64::total_cmp);
            let error = deviation(&column);
            let statistic = Some(coefficient.estimate / error).filter(|value| value.is_finite());
            coefficient.std_error = Some(error);
            coefficient.interval =
                Some([0.5 * (1.0 - LEVEL), 0.5 * (1.0 + LEVEL)].map(|share| percentile(&column, share)));
            coefficient.statistic = statistic;
            coefficient.p_value = statistic.map(|value| Law::Normal.two_sided(value));
        }
        Ok((summary, gate))
    }
}

/// The coefficients of a resample, if it counts, and what its fit has read.
fn estimates(
    linear: &Linear,
    without: &[usize],
    number: u64,
    seed: u64,
    stop: &Arc<AtomicBool>,
) -> Result<(Gate, Option<Vec<f64>>), FitError> {
    let table = linear.table();
    let (features, labels) = (table.features.clone(), Arc::clone(&table.labels));
    let weights = Some(Arc::new(drawn(linear, number, seed)) as _);
    let drawn = Arc::new(Table::new(features, labels, weights, table.names.clone())?);
    let linear = Arc::new(Linear::new(drawn, linear.loss(), linear.design())?);
    let fit = Fit { way: Way::usual(&linear), start: None, target: None, budget: None, seed };
    let fitted = fit.run(&linear, linear.clone(), Arc::clone(stop), &mut |_| ());
    let mut fitted = fitted.map_err(|error| {
        // A checkpoint of it would be of no use.
        if error.is_interrupted() { FitError::Interrupted(None) } else { error }
    })?;
    let is_separated = || has_classes(linear.loss()) && Sums::of(&linear, &fitted.point).wrong == 0.0;
    let own: Vec<usize> = fitted.left_out.iter().map(|one| one.feature).collect();
    let counts = fitted.verdict == Verdict::Certified && own == without && !is_separated();
    let counts = counts && !fitted.has_no_minimiser(&linear, None, Arc::clone(stop)).map_err(halted)?;
    let all = || coefficients(&linear, &fitted.point, &[], without, None, Law::Normal);
    let estimates = counts.then(|| all().iter().map(|one| one.estimate).collect());
    Ok((fitted.gate, estimates))
}

fn halted(halt: crate::gate::Halt) -> FitError {
    match halt {
        crate::gate::Halt::Interrupted => FitError::Interrupted(None),
        halt => halt.into(),
    }
}

/// How often each row is drawn, times its weight.
fn drawn(linear: &Linear, number: u64, seed: u64) -> Vec<f64> {
    let table = linear.table();
    let given = table.weights.as_ref().map(|weights| (**weights).as_ref());
    let weight = |row: usize| given.map_or(1.0, |weights: &[f64]| weights[row]);
    let rows: Vec<usize> = (0..table.rows()).filter(|row| weight(*row) > 0.0).collect();
    // A step that no batch of a run has, no fold and no share of rows that is put aside.
    let mut stream = Address { seed, role: Role::Setup, step: u64::MAX - 2, sample: number }.stream();
    let mut weights = vec![0.0; table.rows()];
    for _ in 0..rows.len() {
        let place = ((stream.uniform() * rows.len() as f64) as usize).min(rows.len() - 1);
        weights[rows[place]] += weight(rows[place]);
    }
    weights
}

fn deviation(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().map(|value| value / n).sum::<f64>();
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt()
}

/// Between the two sorted values next to this share.
fn percentile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let (below, part) = (place.floor() as usize, place.fract());
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] * (1.0 - part) + sorted[above] * part
}
