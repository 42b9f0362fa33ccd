//! An answer from the sums of its parts, so that several machines can share it.

use std::ops::Range;

use super::super::sampling::Leaves;
use super::Linear;
use super::reader::{Ask, Point, Reader};
use crate::draws::Role;
use crate::oracle::{About, Answer, Batch, Charge, Draw, Form, Oracle, OracleError, Request};

/// Rows that are looked at between two questions whether the answer is still wanted.
const PATIENCE: usize = 4096;

/// Which rows are added up, leaf by leaf.
#[derive(Debug)]
pub(super) enum Rows<'a> {
    /// All of them, in blocks of so many, with their weights.
    All { block: usize, rows: usize },
    /// Those of a batch, each as often as it occurs.
    Drawn { batch: &'a Batch, leaves: Leaves<'a> },
}

impl Oracle for Linear {
    fn about(&self) -> &About {
        &self.about
    }

    fn price(&self, request: &Request<'_>) -> Charge {
        if self.pass(&request.draw).is_none() {
            return request.usual_price(&self.about);
        }
        let samples = self.table.rows() as u128;
        Charge { samples, evaluations: samples * request.points.len() as u128, exact: true }
    }

    fn answer(&self, request: &Request<'_>, answer: &mut Answer<'_>) -> Result<Charge, OracleError> {
        let parts = self.parts(request);
        let mut sums = vec![0.0; parts.width()];
        let tree = Batch { seed: 0, role: Role::Setup, step: 0, samples: 0..parts.count() };
        let charge = self.price(request);
        let rows = u64::try_from(charge.samples).unwrap_or(u64::MAX);
        request.sum_leaves(rows, &tree, 1, &mut sums, &|leaves: Range<u64>, out: &mut [f64]| {
            leaves.into_iter().try_for_each(|leaf| parts.add(leaf, out))
        })?;
        parts.complete(&sums, answer);
        Ok(charge)
    }
}

/// The parts of an answer, for machines that each hold some of the rows.
///
/// The rows are cut into parts, and the sums of the parts are added down the tree of [`Batch::halves`] with blocks of one: whoever adds
/// them in this order has the bits of [`Linear`]'s own answer.
#[derive(Debug)]
pub struct Parts<'a> {
    linear: &'a Linear,
    request: &'a Request<'a>,
    points: Vec<Point<'a>>,
    rows: Rows<'a>,
}

impl Linear {
    /// The parts of the answer to a request.
    pub fn parts<'a>(&'a self, request: &'a Request<'a>) -> Parts<'a> {
        let rows = match (&request.draw, self.pass(&request.draw)) {
            (Draw::Batch(batch), None) => Rows::Drawn { batch, leaves: self.sampler.leaves(batch) },
            _ => Rows::All { block: self.sampler.block, rows: self.table.rows() },
        };
        let points = request.points.iter().map(|x| self.point(x)).collect();
        Parts { linear: self, request, points, rows }
    }
}

impl Parts<'_> {
    /// How many parts there are.
    pub fn count(&self) -> u64 {
        match &self.rows {
            Rows::All { block, rows } => rows.div_ceil(*block) as u64,
            Rows::Drawn { leaves, .. } => leaves.count(),
        }
    }

    /// The rows that a part may read. Its samples are among them.
    pub fn rows(&self, part: u64) -> Range<usize> {
        match &self.rows {
            Rows::All { block, rows } => part as usize * block..((part as usize + 1) * block).min(*rows),
            Rows::Drawn { leaves, .. } => leaves.rows_of_leaf(part),
        }
    }

    /// How many numbers the sum of a part has.
    pub fn width(&self) -> usize {
        self.ask().width(self.linear)
    }

    pub(super) fn ask(&self) -> Ask<'_> {
        Ask { points: &self.points, form: self.request.form, losses: self.request.losses }
    }

    /// Adds the sum of a part to `out`.
    pub fn add(&self, part: u64, out: &mut [f64]) -> Result<(), OracleError> {
        let (ask, mut reader) = (self.ask(), Reader::new(self.linear));
        match &self.rows {
            Rows::All { .. } => {
                let rows = self.rows(part);
                for first in rows.clone().step_by(PATIENCE) {
                    self.request.interrupted()?;
                    reader.add_rows(&ask, first..(first + PATIENCE).min(rows.end), out);
                }
            }
            Rows::Drawn { batch, leaves } => {
                for drawn in leaves.draws(batch, part).chunks(PATIENCE) {
                    self.request.interrupted()?;
                    reader.add_drawn(&ask, drawn, out);
                }
            }
        }
        Ok(())
    }

    /// Makes the answer of the sum of all parts.
    pub fn complete(&self, sums: &[f64], answer: &mut Answer<'_>) {
        let Self { linear, request, .. } = self;
        // A pass has the mean, times the number of samples that were asked for; a batch has its sum.
        let (weight, factor) = match (linear.pass(&request.draw), &request.draw) {
            (Some(times), _) => (times, times / linear.total),
            (None, Draw::Batch(batch)) => (batch.count() as f64, 1.0),
            (None, Draw::Everything(_)) => unreachable!("everything is a pass"),
        };
        let width = linear.loss.outputs() * (linear.features + 1);
        let (sums, losses) = sums.split_at(request.rows() * width);
        let base = match request.form {
            Form::Sums => None,
            Form::Differences => Some(request.base()),
        };
        let out = answer.gradients.chunks_mut(linear.about.dim);
        for ((x, raw), out) in request.points.iter().zip(sums.chunks(width)).zip(out) {
            linear.finish(raw, x, base, weight, factor, out);
        }
        if request.losses {
            for ((x, loss), out) in request.points.iter().zip(losses).zip(answer.losses.iter_mut()) {
                *out = factor * loss + weight * 0.5 * linear.design.penalty * linear.squared_weights(x);
            }
        }
    }
}
