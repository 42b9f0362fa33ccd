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
    /// Whether some classes are right by so much, and none wrong by more than a trace of that, that the weights are all but a direction in which the loss falls for ever.
    #[serde(skip)]
    pub(crate) nearly_separated: bool,
}

/// By how much classes are right in the mean, in nats, if that is to say something: models with a minimiser have a few.
const ENDLESS: f64 = 1e3;
/// By how much, over that, the worst row may be wrong.
const TRACE: f64 = 1e-3;

/// By how much the score of a row's class is above the others.
fn margin(scores: &[f64], label: f64) -> f64 {
    if let [score] = scores {
        return if label > 0.0 { *score } else { -score };
    }
    let own = label as usize;
    let others = scores.iter().enumerate().filter(|(class, _)| *class != own);
    scores[own] - others.map(|(_, score)| *score).fold(f64::NEG_INFINITY, f64::max)
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
    right: usize,
    /// Squared errors.
    squares: f64,
    separated: bool,
    /// Margins of rows that are right, and the least margin.
    margins: f64,
    worst: f64,
}

impl Sums {
    fn none(has_classes: bool) -> Self {
        Self { loss: 0.0, right: 0, squares: 0.0, separated: has_classes, margins: 0.0, worst: f64::INFINITY }
    }

    /// Of some rows, from the scores of one after those of another.
    fn of(model: &Model, scores: &[f64], labels: &[f64], has_classes: bool) -> Self {
        let mut losses = vec![0.0; labels.len()];
        model.loss.differentiate_rows(&mut scores.to_vec(), labels, &mut losses);
        let mut sums = Self { loss: losses.iter().sum(), ..Self::none(has_classes) };
        let outputs = model.outputs();
        for (scores, &label) in scores.chunks_exact(outputs).zip(labels) {
            if has_classes {
                let own = class(scores) as f64 == label;
                sums.right += usize::from(own);
                let border = outputs == 1 && scores[0] == 0.0;
                sums.separated &= own && !border;
                let margin = margin(scores, label);
                sums.margins += margin.max(0.0);
                sums.worst = sums.worst.min(margin);
            } else {
                let mut mean = [scores[0]];
                model.loss.mean(&mut mean);
                sums.squares += (mean[0] - label).powi(2);
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
            margins: self.margins + other.margins,
            worst: self.worst.min(other.worst),
        }
    }
}

/// Scores a model on rows, in one pass on all threads, with the same bits on any number of them.
pub(crate) fn score(
    model: &Model,
    features: &Features,
    labels: &[f64],
    has_classes: bool,
) -> Result<Score, TableError> {
    let blocks =
        model.map_scores(features, |rows, scores| Sums::of(model, scores, &labels[rows], has_classes))?;
    let sums = blocks.into_iter().fold(Sums::none(has_classes), Sums::plus);
    let Sums { loss, right, squares, separated, margins, worst } = sums;
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
        nearly_separated: has_classes && margins / n >= ENDLESS && -worst <= TRACE * margins / n,
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pasta_opt::table::{Dense, Features, Loss, Model};

    use super::score;

    /// Rows of the classes 0 and 1 at these scores.
    fn nearly(scores: Vec<f64>, labels: &[f64]) -> (bool, bool) {
        let model = Model {
            loss: Loss::Logistic,
            columns: 1,
            degree: 1,
            scaling: None,
            weights: vec![1.0],
            intercepts: vec![0.0],
        };
        let rows = scores.len();
        let values = pasta_opt::table::Values::F64(Arc::new(scores));
        let features = Features::Dense(Dense { rows, columns: 1, values });
        let score = score(&model, &features, labels, true).expect("a good table");
        (score.separated, score.nearly_separated)
    }

    #[test]
    fn margins_without_end_beside_a_few_wrong_rows_are_nearly_separated() {
        let labels = [1.0, 0.0, 1.0, 0.0];
        assert_eq!(nearly(vec![2e7, -2e7, -1.5, 1.5], &labels), (false, true));
        // Some rows with large margins, as outliers have; classes that overlap; classes that do not.
        assert_eq!(nearly(vec![500.0, -2.0, -1.5, 1.5], &labels), (false, false));
        assert_eq!(nearly(vec![2e7, -2e7, -1e5, 1.5], &labels), (false, false));
        assert_eq!(nearly(vec![3.0, -2.0, 1.5, -1.5], &labels), (true, false));
    }
}
