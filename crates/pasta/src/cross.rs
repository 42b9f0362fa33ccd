//! Cross-validation: how well a model does on rows that it was not fitted to, and which penalty does best.
//!
//! The rows are cut into folds, each class and each part of the sorted labels evenly. For each fold the others are fitted, along the penalties from the largest to the smallest, each fit from where
//! the one before ended, and scored on the fold. Rows are left out by weights of 0, so nothing is copied. Columns are standardised by the rows that are fitted.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::Serialize;

use crate::draws::{Address, Role};
use crate::fit::{Fit, FitError, Way};
use crate::gate::Gate;
use crate::score::Score;
use crate::table::{Linear, Table, TableError};
use crate::target::Target;

/// Penalties that are tried where none is known, for standardised columns.
pub const PENALTIES: [f64; 15] =
    [10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6, 1e-6];

/// Scores on rows that were not fitted.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct CrossValidation {
    /// The parts of the rows.
    pub folds: usize,
    /// The penalties in decreasing order.
    pub path: Vec<Tried>,
    /// What it has read.
    #[serde(skip)]
    pub gate: Gate,
}

/// A penalty, and how well models with it do; means over the folds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Tried {
    /// The penalty.
    pub penalty: f64,
    /// The mean loss, without the penalty.
    pub loss: f64,
    /// Its standard error, by its spread over the folds.
    pub std_error: f64,
    /// The accuracy, for labels that are classes.
    pub accuracy: Option<f64>,
    /// R2, for labels that are numbers.
    pub r2: Option<f64>,
}

impl CrossValidation {
    /// Fits and scores along some penalties.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use pasta_opt::cross::CrossValidation;
    /// use pasta_opt::table::{Dense, Design, Features, Linear, Loss, Table};
    ///
    /// // y = 3 a, and a penalty only harms.
    /// let a: Vec<f64> = (0..20).map(f64::from).collect();
    /// let labels = a.iter().map(|a| 3.0 * a).collect::<Vec<f64>>();
    /// let features = Features::Dense(Dense { rows: 20, columns: 1, values: a.into() });
    /// let table = Arc::new(Table::new(features, Arc::new(labels), None, Vec::new())?);
    /// let linear = Arc::new(Linear::new(table, Loss::LeastSquares, Design::default())?);
    /// let crossed = CrossValidation::of(&linear, &[0.1, 1.0, 1e-6], 5, 1, &Arc::default())?;
    /// assert_eq!(crossed.best().penalty, 1e-6);
    /// assert!(crossed.best().r2.is_some_and(|r2| r2 > 0.999));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of(
        linear: &Arc<Linear>,
        penalties: &[f64],
        folds: usize,
        seed: u64,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, FitError> {
        let rows = linear.table().rows();
        let refuse = |name, needs, got| Err(TableError::Setting { name, needs, got }.into());
        if !(2..=rows).contains(&folds) {
            return refuse("folds", "at least 2, and at most as many as rows", folds as f64);
        }
        if penalties.is_empty() {
            return refuse("penalties", "one at least", 0.0);
        }
        let mut penalties = penalties.to_vec();
        penalties.sort_by(|a, b| b.total_cmp(a));
        let fold_of = fold_of(linear, folds, seed);
        let mut gate = Gate::over(Arc::clone(linear) as _, seed);
        let mut scores: Vec<Vec<Score>> = vec![Vec::new(); penalties.len()];
        for fold in 0..folds {
            let held = weights(linear, |row| fold_of[row] == fold);
            let fitted = along(linear, &penalties, weights(linear, |row| fold_of[row] != fold), seed, stop)?;
            for (place, (fitted, model)) in fitted.into_iter().enumerate() {
                gate.merge(&fitted);
                let table = linear.table();
                let score = Score::of(&model, &table.features, (*table.labels).as_ref(), Some(&held))?;
                scores[place].push(score);
            }
        }
        let path =
            penalties.iter().zip(&scores).map(|(penalty, scores)| Tried::of(*penalty, scores)).collect();
        Ok(Self { folds, path, gate })
    }

    /// The penalty with the smallest mean loss; of several the largest.
    pub fn best(&self) -> &Tried {
        let least = |best: usize, place: usize| {
            if self.path[place].loss < self.path[best].loss { place } else { best }
        };
        &self.path[(0..self.path.len()).fold(0, least)]
    }
}

impl Tried {
    fn of(penalty: f64, scores: &[Score]) -> Self {
        let n = scores.len() as f64;
        let loss = scores.iter().map(|score| score.loss).sum::<f64>() / n;
        let spread: f64 = scores.iter().map(|score| (score.loss - loss).powi(2)).sum();
        let mean = |of: fn(&Score) -> Option<f64>| {
            let found: Vec<f64> = scores.iter().filter_map(of).collect();
            (!found.is_empty()).then(|| found.iter().sum::<f64>() / found.len() as f64)
        };
        Self {
            penalty,
            loss,
            std_error: (spread / (n * (n - 1.0))).sqrt(),
            accuracy: mean(|score| score.accuracy),
            r2: mean(|score| score.r2),
        }
    }
}

/// The fold of each row: rows in the order of their labels, equal ones at random, are dealt out in turn.
fn fold_of(linear: &Linear, folds: usize, seed: u64) -> Vec<usize> {
    let labels: &[f64] = (*linear.table().labels).as_ref();
    // A step that no batch of a run has, and no share of rows that is put aside.
    let address = |row: usize| Address { seed, role: Role::Setup, step: u64::MAX - 1, sample: row as u64 };
    let mut order: Vec<(f64, f64, usize)> = labels
        .iter()
        .enumerate()
        .map(|(row, label)| (*label, address(row).stream().uniform(), row))
        .collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    // In each group of as many rows as folds, at random again: sorted labels would leave each fold a little above the one before.
    let mut fold_of = vec![0; labels.len()];
    for group in order.chunks_mut(folds) {
        group.sort_by(|a, b| a.1.total_cmp(&b.1));
        group.iter().enumerate().for_each(|(fold, (_, _, row))| fold_of[*row] = fold);
    }
    fold_of
}

/// The weights of some rows, and 0 for the others.
fn weights(linear: &Linear, is_in: impl Fn(usize) -> bool) -> Vec<f64> {
    let given = linear.table().weights.as_ref().map(|weights| (**weights).as_ref());
    let weight = |row: usize| given.map_or(1.0, |weights| weights[row]);
    (0..linear.table().rows()).map(|row| if is_in(row) { weight(row) } else { 0.0 }).collect()
}

/// Models along the penalties, each from where the one before ended, and what each has read.
fn along(
    linear: &Linear,
    penalties: &[f64],
    weights: Vec<f64>,
    seed: u64,
    stop: &Arc<AtomicBool>,
) -> Result<Vec<(Gate, crate::table::Model)>, FitError> {
    let table = linear.table();
    let (features, labels) = (table.features.clone(), Arc::clone(&table.labels));
    let part = Arc::new(Table::new(features, labels, Some(Arc::new(weights)), table.names.clone())?);
    let whole = Linear::new(part, linear.loss(), linear.design())?;
    let (mut start, mut target) = (None, None);
    let mut models = Vec::new();
    for penalty in penalties {
        let linear = Arc::new(whole.with_penalty(*penalty)?);
        let fit = Fit { way: Way::usual(&linear), start, target, budget: None, seed };
        let fitted = fit.run(&linear, linear.clone(), Arc::clone(stop), &mut |_| ()).map_err(|error| {
            // A checkpoint of it would be of no use.
            if error.is_interrupted() { FitError::Interrupted(None) } else { error }
        })?;
        // Where the way begins near its end, a share of the gradient there would ask for too much.
        target = Some(Target::Norm(target.and_then(Target::norm).unwrap_or(fitted.target)));
        models.push((fitted.gate, linear.raw_weights(&fitted.point)));
        start = Some(fitted.point);
    }
    Ok(models)
}
