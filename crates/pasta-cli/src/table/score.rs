//! How well a model does on rows.

use pasta_opt::table::{Features, Model, TableError};
use serde::Serialize;

/// How well a model does on rows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Score {
    pub(crate) rows: usize,
    /// The mean loss, without the penalty; weighted if the rows are, as all of this.
    pub(crate) loss: f64,
    /// The share of rows whose class is right, for labels that are classes.
    pub(crate) accuracy: Option<f64>,
    /// 1 - sum of squared errors/sum of squares around the mean, for labels that are numbers; `None` where all are the same.
    pub(crate) r2: Option<f64>,
    /// Whether every class is right with room to spare: no score is on the border.
    #[serde(skip)]
    pub(crate) separated: bool,
    /// Whether rows count by their weights.
    #[serde(skip)]
    pub(crate) weighted: bool,
}

/// The class that a row's scores are for.
pub(crate) fn class(scores: &[f64]) -> usize {
    match scores {
        [score] => usize::from(*score > 0.0),
        _ => (0..scores.len()).rev().max_by(|a, b| scores[*a].total_cmp(&scores[*b])).unwrap_or(0),
    }
}

/// What rows add to a score.
struct Sums {
    loss: f64,
    right: f64,
    /// Squared errors.
    squares: f64,
    separated: bool,
}

impl Sums {
    /// Of some rows, from the scores of one after those of another. A row that has no weight does not count.
    fn of(model: &Model, scores: &[f64], labels: &[f64], weights: Option<&[f64]>, has_classes: bool) -> Self {
        let mut losses = vec![0.0; labels.len()];
        model.loss.differentiate_rows(&mut scores.to_vec(), labels, &mut losses);
        let weight = |row: usize| weights.map_or(1.0, |weights| weights[row]);
        let loss = losses.iter().enumerate().map(|(row, loss)| weight(row) * loss).sum();
        let mut sums = Self { loss, right: 0.0, squares: 0.0, separated: has_classes };
        let outputs = model.outputs();
        for (row, (scores, &label)) in scores.chunks_exact(outputs).zip(labels).enumerate() {
            let weight = weight(row);
            if has_classes {
                let own = class(scores) as f64 == label;
                sums.right += if own { weight } else { 0.0 };
                let border = outputs == 1 && scores[0] == 0.0;
                sums.separated &= weight == 0.0 || own && !border;
            } else {
                let mut mean = [scores[0]];
                model.loss.mean(&mut mean);
                sums.squares += weight * (mean[0] - label).powi(2);
            }
        }
        sums
    }

    fn plus(self, other: Self) -> Self {
        Self {
            loss: self.loss + other.loss,
            right: self.right + other.right,
            squares: self.squares + other.squares,
            separated: self.separated && other.separated,
        }
    }
}

/// Scores a model on rows, in one pass on all threads, with the same bits on any number of them.
pub(crate) fn score(
    model: &Model,
    features: &Features,
    labels: &[f64],
    weights: Option<&[f64]>,
    has_classes: bool,
) -> Result<Score, TableError> {
    let blocks = model.map_scores(features, |rows, scores| {
        Sums::of(model, scores, &labels[rows.clone()], weights.map(|weights| &weights[rows]), has_classes)
    })?;
    let none = Sums { loss: 0.0, right: 0.0, squares: 0.0, separated: has_classes };
    let Sums { loss, right, squares, separated } = blocks.into_iter().fold(none, Sums::plus);
    let rows = labels.len();
    let weight = |row: usize| weights.map_or(1.0, |weights| weights[row]);
    let n: f64 = (0..rows).map(weight).sum();
    let mean = labels.iter().enumerate().map(|(row, label)| weight(row) * label).sum::<f64>() / n;
    let around: f64 =
        labels.iter().enumerate().map(|(row, label)| weight(row) * (label - mean).powi(2)).sum();
    Ok(Score {
        rows,
        loss: loss / n,
        accuracy: has_classes.then(|| right / n),
        r2: (!has_classes && around > 0.0).then(|| 1.0 - squares / around),
        separated,
        weighted: weights.is_some(),
    })
}

impl Score {
    pub(crate) fn words(&self) -> String {
        use pasta_report::number::real;
        let quality = match (self.accuracy, self.r2) {
            (Some(accuracy), _) => format!(", accuracy {accuracy:.4}"),
            (None, Some(r2)) => format!(", R2 {r2:.4}"),
            (None, None) => String::new(),
        };
        let rows = super::counted(self.rows as u64, "row");
        let weighted = if self.weighted { ", weighted" } else { "" };
        format!("mean loss {}{quality} ({rows}{weighted})", real(self.loss))
    }
}
