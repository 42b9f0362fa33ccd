//! Directions in which f falls for ever: no row's loss rises along them, and some fall.
//!
//! Losses of classes fall as the score of a row's own class grows, and the loss of a count of zero as its score falls; they have no least value, so a direction that
//! only helps has no end. Whether a given direction is one is seen by a pass.

use super::linear::Reader;
use super::{Labels, Linear};

/// A table with a loss that falls for ever in some directions, if its rows let it.
#[derive(Debug)]
pub(crate) struct Tails<'a> {
    linear: &'a Linear,
    outputs: usize,
}

impl<'a> Tails<'a> {
    /// `None` for losses that have a minimiser in every direction that helps.
    pub(crate) fn of(linear: &'a Linear) -> Option<Self> {
        let outputs = linear.loss().outputs();
        let loss = linear.loss();
        let can_fall = loss.needs_overlap() || loss.row().labels == Labels::Counts;
        can_fall.then_some(Self { linear, outputs })
    }

    /// Which scores a row of this label wants to grow, 1, and to fall, -1; 0 if it wants neither.
    fn wants(&self, label: f64, output: usize) -> f64 {
        match self.linear.loss().row().labels {
            Labels::Classes if label == output as f64 => 1.0,
            Labels::Counts if label > 0.0 => 0.0,
            Labels::Signs | Labels::Real if label > 0.0 => 1.0,
            _ => -1.0,
        }
    }

    /// The labels of the rows that count.
    fn rows(&self) -> impl Iterator<Item = (usize, f64)> {
        let (labels, weights) = (self.linear.table().label_slice(), self.linear.table().weight_slice());
        let counts = move |row: &usize| weights.is_none_or(|weights| weights[*row] > 0.0);
        (0..labels.len()).filter(counts).map(|row| (row, labels[row]))
    }

    /// Whether all rows want the same of an intercept, whatever the columns: one class, a class that does not occur, or counts that are all zero.
    pub(crate) fn intercept_alone(&self) -> bool {
        let want_the_same = |output: usize| {
            let mut wants = self.rows().map(|(_, label)| self.wants(label, output));
            let first = wants.next().unwrap_or(0.0);
            first != 0.0 && wants.all(|wants| wants == first)
        };
        self.linear.design().intercept && (0..self.outputs).any(want_the_same)
    }

    /// Whether all rows in which some column is not zero want the same of its weight.
    pub(crate) fn some_column(&self) -> bool {
        /// Nothing seen yet; all want it to grow, or to fall; rows disagree.
        #[derive(Clone, Copy, PartialEq)]
        enum Seen {
            Nothing,
            All(bool),
            Both,
        }
        let columns = self.linear.table().columns();
        let features = &self.linear.table().features;
        let mut seen = vec![Seen::Nothing; columns * self.outputs];
        let mut undecided = seen.len();
        for (row, label) in self.rows() {
            features.visit_row(row, |column, value| {
                for output in 0..self.outputs {
                    let seen = &mut seen[column * self.outputs + output];
                    if value == 0.0 || *seen == Seen::Both {
                        continue;
                    }
                    let wants = value * self.wants(label, output);
                    let next = match *seen {
                        _ if wants == 0.0 => Seen::Both,
                        Seen::Nothing => Seen::All(wants > 0.0),
                        Seen::All(grow) if grow == (wants > 0.0) => Seen::All(grow),
                        _ => Seen::Both,
                    };
                    undecided -= usize::from(next == Seen::Both);
                    *seen = next;
                }
            });
            if undecided == 0 {
                return false;
            }
        }
        seen.iter().any(|seen| matches!(seen, Seen::All(_)))
    }

    /// Whether every score at x is right, by a pass: then f falls for ever along x itself.
    pub(crate) fn are_right_at(&self, x: &[f64]) -> bool {
        let point = self.linear.point(x);
        let counts = self.linear.add_up(2, &|rows, out| {
            let mut reader = Reader::new(self.linear);
            let mut scores = vec![0.0; self.outputs];
            for row in rows {
                if reader.weights.is_some_and(|weights| weights[row] == 0.0) {
                    continue;
                }
                reader.open(row);
                reader.write_each(row, &point.outputs, &mut scores);
                let gain = self.gain(reader.labels[row], &scores);
                out[0] += f64::from(u8::from(gain < 0.0));
                out[1] += f64::from(u8::from(gain > 0.0));
            }
        });
        counts[0] == 0.0 && counts[1] > 0.0
    }

    /// By how much a step takes the score of some row further to where the row wants it, at most, by a pass; for losses of one score. Minus infinity if no row wants anything.
    pub(crate) fn furthest(&self, way: &[f64]) -> f64 {
        let point = self.linear.point(way);
        let (u, offset) = &point.outputs[0];
        let mut reader = Reader::new(self.linear);
        let gains = self.rows().filter(|(_, label)| self.wants(*label, 0) != 0.0).map(|(row, label)| {
            reader.open(row);
            self.wants(label, 0) * (reader.product(row, u) + offset)
        });
        gains.fold(f64::NEG_INFINITY, f64::max)
    }

    /// By how much scores help a row of this label, or hurt it if less than 0.
    fn gain(&self, label: f64, scores: &[f64]) -> f64 {
        match self.linear.loss().row().labels {
            Labels::Counts if label > 0.0 => -scores[0].abs(),
            Labels::Classes => {
                let own = label as usize;
                let others = scores.iter().enumerate().filter(|(class, _)| *class != own);
                scores[own] - others.map(|(_, score)| *score).fold(f64::NEG_INFINITY, f64::max)
            }
            _ => self.wants(label, 0) * scores[0],
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::Tails;
    use crate::table::{Dense, Design, Features, Linear, Loss, Table};

    fn table(loss: Loss, columns: usize, values: &[f64], labels: &[f64]) -> Linear {
        let features = Features::Dense(Dense { rows: labels.len(), columns, values: values.to_vec().into() });
        let table = Table::new(features, Arc::new(labels.to_vec()), None, Vec::new()).expect("a good table");
        Linear::new(Arc::new(table), loss, Design::default()).expect("labels that fit")
    }

    #[test]
    fn a_column_helps_where_no_row_disagrees_however_little_it_says() {
        let helps = |values: &[f64]| {
            let linear = table(Loss::Logistic, 1, values, &[1.0, 1.0, 0.0, 0.0]);
            Tails::of(&linear).map(|tails| tails.some_column())
        };
        assert_eq!(helps(&[1e10, 1.0, 2.0, -1.0]), Some(false));
        assert_eq!(helps(&[1e10, 1.0, -2.0, -1.0]), Some(true));
        assert_eq!(helps(&[0.0, 1.0, 0.0, 0.0]), Some(true));
        assert_eq!(helps(&[0.0, 0.0, 0.0, 0.0]), Some(false));
    }

    #[test]
    fn scores_that_are_all_right_have_no_end() {
        let linear = table(Loss::Logistic, 1, &[3.0, 1.0, -2.0, -1.0], &[1.0, 1.0, 0.0, 0.0]);
        let tails = Tails::of(&linear).expect("a loss of classes");
        assert!(tails.are_right_at(&[1.0, 0.0]) && !tails.are_right_at(&[1.0, 2.0]));
    }

    #[test]
    fn one_class_and_zero_counts_need_no_column() {
        let alone = |loss, labels: &[f64]| {
            let linear = table(loss, 1, &[1.0, 2.0, 4.0], labels);
            Tails::of(&linear).map(|tails| tails.intercept_alone())
        };
        assert_eq!(alone(Loss::Poisson, &[0.0, 0.0, 0.0]), Some(true));
        assert_eq!(alone(Loss::Poisson, &[0.0, 1.0, 0.0]), Some(false));
        assert_eq!(alone(Loss::Logistic, &[1.0, 1.0, 1.0]), Some(true));
        assert_eq!(alone(Loss::Multinomial { classes: 3 }, &[0.0, 2.0, 0.0]), Some(true));
        assert_eq!(alone(Loss::Multinomial { classes: 2 }, &[0.0, 1.0, 0.0]), Some(false));
        assert_eq!(alone(Loss::Hinge, &[1.0, 1.0, 1.0]), None);
    }
}
