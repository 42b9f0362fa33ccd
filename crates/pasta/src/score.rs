//! How well a model does on rows, beside a model without columns.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::table::{Features, Labels, Loss, Model, TableError};

/// How well a model does on rows; weighted if the rows are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Score {
    /// The rows.
    pub rows: usize,
    /// The mean loss, without the penalty.
    pub loss: f64,
    /// The share of rows whose class is right, for labels that are classes.
    pub accuracy: Option<f64>,
    /// The share of the most frequent class: the accuracy of a model without columns.
    pub base_rate: Option<f64>,
    /// 1 - sum of squared errors/sum of squares around the mean, for labels that are numbers; `None` where all are the same. A model without columns has 0.
    pub r2: Option<f64>,
    /// The weight of the rows of each class (row of this matrix) that are given each class (column), for up to [`MOST_CLASSES`] classes.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub confusion: Vec<Vec<f64>>,
    /// What probabilities are worth, for losses that have them: those of label 1, or of the class that a row is given, in ten parts of 0 to 1; parts without rows are left out.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub calibration: Vec<Bin>,
    /// True if every class is right with room to spare: no score is on the border.
    #[serde(skip)]
    pub separated: bool,
    /// True if rows count by their weights.
    #[serde(skip)]
    pub weighted: bool,
}

/// Rows whose predicted probabilities are close to each other.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bin {
    /// Their weight.
    pub weight: f64,
    /// The mean of their predicted probabilities.
    pub predicted: f64,
    /// The share of them for which it came true.
    pub observed: f64,
}

/// How well scores tell the second of two classes from the first, whatever the threshold.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Roc {
    /// The probability that a row of the second class has a larger score than one of the first; a tie counts half.
    pub area: f64,
    /// Shares of the first class and of the second with a score above a threshold, from (0, 0) to (1, 1): at most some 400 points.
    pub points: Vec<(f64, f64)>,
}

impl Roc {
    /// Points of the curve are at least this far from each other, along one of the axes.
    const APART: f64 = 1.0 / 200.0;

    /// The curve of a model on rows, weighted if they are; `None` unless the model tells two classes by one score, and both are there.
    ///
    /// ```
    /// use pasta_opt::assess::Roc;
    /// use pasta_opt::table::{Dense, Features, Loss, Model};
    ///
    /// let (weights, intercepts) = (vec![1.0], vec![0.0]);
    /// let model = Model { loss: Loss::Logistic, columns: 1, degree: 1, scaling: None, weights, intercepts };
    /// let features = Features::Dense(Dense { rows: 4, columns: 1, values: vec![0.0, 1.0, 1.0, 2.0].into() });
    /// // Of four pairs three are in order, and one is a tie.
    /// let roc = Roc::of(&model, &features, &[0.0, 0.0, 1.0, 1.0], None)?.unwrap();
    /// assert_eq!(roc.area, 3.5 / 4.0);
    /// assert_eq!(roc.points, [(0.0, 0.0), (0.0, 0.5), (0.5, 1.0), (1.0, 1.0)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of(
        model: &Model,
        features: &Features,
        labels: &[f64],
        weights: Option<&[f64]>,
    ) -> Result<Option<Self>, TableError> {
        if !has_classes(model.loss) || model.outputs() != 1 {
            return Ok(None);
        }
        let weight = |row: usize| weights.map_or(1.0, |weights| weights[row]);
        let scores = model.scores(features)?;
        let mut rows: Vec<(f64, usize, f64)> = scores
            .iter()
            .zip(labels)
            .enumerate()
            .map(|(row, (score, label))| (*score, class_of(*label), weight(row)))
            .filter(|row| row.2 > 0.0)
            .collect();
        let mut totals = [0.0; 2];
        rows.iter().for_each(|(_, class, weight)| totals[*class] += weight);
        if totals[0] == 0.0 || totals[1] == 0.0 {
            return Ok(None);
        }
        // Stable, so that the sums of weights have the same bits on any number of threads.
        rows.par_sort_by(|a, b| b.0.total_cmp(&a.0));
        let (mut above, mut area, mut points) = ([0.0; 2], 0.0, vec![(0.0, 0.0)]);
        for tied in rows.chunk_by(|a, b| a.0 == b.0) {
            let mut here = [0.0; 2];
            tied.iter().for_each(|(_, class, weight)| here[*class] += weight);
            area += here[0] * (above[1] + 0.5 * here[1]);
            above = [above[0] + here[0], above[1] + here[1]];
            let point = (above[0] / totals[0], above[1] / totals[1]);
            let last = points[points.len() - 1];
            if point.0 - last.0 >= Self::APART || point.1 - last.1 >= Self::APART {
                points.push(point);
            }
        }
        if points[points.len() - 1] != (1.0, 1.0) {
            points.push((1.0, 1.0));
        }
        Ok(Some(Self { area: area / totals[0] / totals[1], points }))
    }
}

/// Parts of the probabilities.
const BINS: usize = 10;

/// The most classes that a [confusion matrix](Score::confusion) is made for.
pub const MOST_CLASSES: usize = 50;

/// The class that a row's scores are for.
pub fn class(scores: &[f64]) -> usize {
    match scores {
        [score] => usize::from(*score > 0.0),
        _ => (0..scores.len()).rev().max_by(|a, b| scores[*a].total_cmp(&scores[*b])).unwrap_or(0),
    }
}

/// True if the labels of a loss are classes.
pub fn has_classes(loss: Loss) -> bool {
    matches!(loss.row().labels, Labels::Signs | Labels::Classes)
}

/// The class of a label: -1 and 0 are the first of two.
fn class_of(label: f64) -> usize {
    if label > 0.0 { label as usize } else { 0 }
}

/// Weights with which all classes weigh the same, in all as much as before.
///
/// ```
/// use pasta_opt::score::balanced;
///
/// assert_eq!(balanced(&[0.0, 0.0, 0.0, 1.0], None), [2.0 / 3.0, 2.0 / 3.0, 2.0 / 3.0, 2.0]);
/// ```
pub fn balanced(labels: &[f64], weights: Option<&[f64]>) -> Vec<f64> {
    let weight = |row: usize| weights.map_or(1.0, |weights| weights[row]);
    let classes = labels.iter().map(|label| class_of(*label) + 1).max().unwrap_or(0);
    let mut of_class = vec![0.0; classes];
    labels.iter().enumerate().for_each(|(row, label)| of_class[class_of(*label)] += weight(row));
    let present = of_class.iter().filter(|sum| **sum > 0.0).count() as f64;
    let total: f64 = of_class.iter().sum();
    let one = |(row, label): (usize, &f64)| match of_class[class_of(*label)] {
        0.0 => 0.0,
        sum => weight(row) * total / (present * sum),
    };
    labels.iter().enumerate().map(one).collect()
}

/// What rows add to a score.
struct Sums {
    loss: f64,
    /// Squared errors.
    squares: f64,
    separated: bool,
    /// The weight of rows of class k that are given class l, at k classes + l.
    classes: Vec<f64>,
    /// Weight, predicted and observed of each part of the probabilities.
    bins: [[f64; 3]; BINS],
}

impl Sums {
    fn none(classes: usize) -> Self {
        Self {
            loss: 0.0,
            squares: 0.0,
            separated: classes > 0,
            classes: vec![0.0; classes * classes],
            bins: [[0.0; 3]; BINS],
        }
    }

    /// Of some rows, from the scores of one after those of another. A row that has no weight does not count.
    fn of(model: &Model, scores: &[f64], labels: &[f64], weights: Option<&[f64]>, classes: usize) -> Self {
        let mut losses = vec![0.0; labels.len()];
        model.loss.differentiate_rows(&mut scores.to_vec(), labels, &mut losses);
        let weight = |row: usize| weights.map_or(1.0, |weights| weights[row]);
        let mut sums = Self::none(classes);
        sums.loss = losses.iter().enumerate().map(|(row, loss)| weight(row) * loss).sum();
        let outputs = model.outputs();
        let has_chances = model.loss.has_probabilities();
        let mut chances = vec![0.0; outputs];
        for (row, (scores, &label)) in scores.chunks_exact(outputs).zip(labels).enumerate() {
            let weight = weight(row);
            if classes > 0 {
                let (own, given) = (class_of(label), class(scores));
                sums.classes[own * classes + given] += weight;
                if has_chances {
                    chances.copy_from_slice(scores);
                    model.loss.mean(&mut chances);
                    let (chance, came) = match chances[..] {
                        [chance] => (chance, own == 1),
                        _ => (chances[given], own == given),
                    };
                    let bin = &mut sums.bins[((BINS as f64 * chance) as usize).min(BINS - 1)];
                    *bin =
                        [bin[0] + weight, bin[1] + weight * chance, bin[2] + if came { weight } else { 0.0 }];
                }
                let border = outputs == 1 && scores[0] == 0.0;
                sums.separated &= weight == 0.0 || own == given && !border;
            } else {
                let mut mean = [scores[0]];
                model.loss.mean(&mut mean);
                sums.squares += weight * (mean[0] - label).powi(2);
            }
        }
        sums
    }

    fn plus(mut self, other: &Self) -> Self {
        self.loss += other.loss;
        self.squares += other.squares;
        self.separated &= other.separated;
        self.classes.iter_mut().zip(&other.classes).for_each(|(sum, part)| *sum += part);
        let bins = self.bins.iter_mut().flatten().zip(other.bins.iter().flatten());
        bins.for_each(|(sum, part)| *sum += part);
        self
    }
}

impl Score {
    /// Scores a model on rows, in one pass on all threads, with the same bits on any number of them. Refuses features with another number of columns.
    ///
    /// ```
    /// use pasta_opt::score::Score;
    /// use pasta_opt::table::{Dense, Features, Loss, Model};
    ///
    /// let (weights, intercepts) = (vec![2.0], vec![-3.0]);
    /// let model = Model { loss: Loss::Logistic, columns: 1, degree: 1, scaling: None, weights, intercepts };
    /// let features = Features::Dense(Dense { rows: 4, columns: 1, values: vec![0.0, 1.0, 2.0, 3.0].into() });
    /// let score = Score::of(&model, &features, &[0.0, 1.0, 1.0, 1.0], None)?;
    /// assert_eq!((score.accuracy, score.base_rate), (Some(0.75), Some(0.75)));
    /// assert_eq!(score.confusion, [[1.0, 0.0], [1.0, 2.0]]);
    /// // 1/(1 + e^3) and 1/(1 + e), of which none and one came true, and two of more than 0.7.
    /// assert_eq!(score.calibration.iter().map(|bin| bin.observed).collect::<Vec<_>>(), [0.0, 1.0, 1.0, 1.0]);
    /// # Ok::<(), pasta_opt::table::TableError>(())
    /// ```
    pub fn of(
        model: &Model,
        features: &Features,
        labels: &[f64],
        weights: Option<&[f64]>,
    ) -> Result<Self, TableError> {
        let classes = if has_classes(model.loss) { model.outputs().max(2) } else { 0 };
        let blocks = model.map_scores(features, |rows, scores| {
            Sums::of(model, scores, &labels[rows.clone()], weights.map(|weights| &weights[rows]), classes)
        })?;
        let sums = blocks.iter().fold(Sums::none(classes), Sums::plus);
        let rows = labels.len();
        let weight = |row: usize| weights.map_or(1.0, |weights| weights[row]);
        let n: f64 = (0..rows).map(weight).sum();
        let mean = labels.iter().enumerate().map(|(row, label)| weight(row) * label).sum::<f64>() / n;
        let around: f64 =
            labels.iter().enumerate().map(|(row, label)| weight(row) * (label - mean).powi(2)).sum();
        let given: Vec<Vec<f64>> = sums.classes.chunks(classes.max(1)).map(<[f64]>::to_vec).collect();
        let right: f64 = given.iter().enumerate().map(|(k, row)| row[k]).sum();
        let most = given.iter().map(|row| row.iter().sum::<f64>()).fold(0.0, f64::max);
        Ok(Self {
            rows,
            loss: sums.loss / n,
            accuracy: (classes > 0).then(|| right / n),
            base_rate: (classes > 0).then(|| most / n),
            r2: (classes == 0 && around > 0.0).then(|| 1.0 - sums.squares / around),
            confusion: if classes <= MOST_CLASSES { given } else { Vec::new() },
            calibration: sums
                .bins
                .iter()
                .filter(|bin| bin[0] > 0.0)
                .map(|[weight, predicted, observed]| Bin {
                    weight: *weight,
                    predicted: predicted / weight,
                    observed: observed / weight,
                })
                .collect(),
            separated: sums.separated,
            weighted: weights.is_some(),
        })
    }
}
