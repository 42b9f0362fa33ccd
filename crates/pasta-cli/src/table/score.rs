//! How well a model does on rows.

use pasta_opt::table::{Features, Model, TableError};
use serde::Serialize;

/// How well a model does on rows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Score {
    pub(crate) rows: usize,
    /// The mean loss, without the penalty.
    pub(crate) loss: f64,
    /// The share of rows whose class is right, for labels that are classes.
    pub(crate) accuracy: Option<f64>,
    /// 1 - sum of squared errors/sum of squares around the mean, for labels that are numbers; `None` where all are the same.
    pub(crate) r2: Option<f64>,
    /// Whether every class is right with room to spare: no score is on the border.
    #[serde(skip)]
    pub(crate) separated: bool,
}

/// The class that a row's scores are for.
pub(crate) fn class(scores: &[f64]) -> usize {
    match scores {
        [score] => usize::from(*score > 0.0),
        _ => (0..scores.len()).rev().max_by(|a, b| scores[*a].total_cmp(&scores[*b])).unwrap_or(0),
    }
}

pub(crate) fn score(
    model: &Model,
    features: &Features,
    labels: &[f64],
    has_classes: bool,
) -> Result<Score, TableError> {
    let scores = model.scores(features)?;
    let outputs = model.outputs();
    let (mut loss, mut right, mut squares, mut separated) = (0.0, 0_usize, 0.0, has_classes);
    let mut row_scores = vec![0.0; outputs];
    for (scores, &label) in scores.chunks_exact(outputs).zip(labels) {
        row_scores.copy_from_slice(scores);
        loss += model.loss.differentiate(&mut row_scores, label);
        if has_classes {
            let own = class(scores) as f64 == label;
            right += usize::from(own);
            let border = outputs == 1 && scores[0] == 0.0;
            separated &= own && !border;
        } else {
            row_scores.copy_from_slice(scores);
            model.loss.mean(&mut row_scores);
            squares += (row_scores[0] - label).powi(2);
        }
    }
    let rows = labels.len();
    let n = rows as f64;
    let mean = labels.iter().sum::<f64>() / n;
    let around: f64 = labels.iter().map(|label| (label - mean).powi(2)).sum();
    Ok(Score {
        rows,
        loss: loss / n,
        accuracy: has_classes.then(|| right as f64 / n),
        r2: (!has_classes && around > 0.0).then(|| 1.0 - squares / around),
        separated,
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
        format!("mean loss {}{quality} ({} rows)", real(self.loss), pasta_report::grouped(self.rows as u64))
    }
}
