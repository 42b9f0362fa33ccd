//! Finite tables: rows drawn with replacement, or all of them.

use std::ops::Range;

use pasta_opt::draws::Role;
use pasta_opt::oracle::{About, Answer, Batch, Charge, Draw, Form, Oracle, OracleError, Request, Source};

use super::{Truth, norm};

/// The rows of a table.
pub(super) trait Rows: Send + Sync + 'static {
    fn rows(&self) -> usize;
    fn start(&self) -> Vec<f64>;
    /// Adds `weight` times the gradient of one row's loss to `out`, and gives the loss.
    fn row(&self, row: usize, weight: f64, x: &[f64], out: &mut [f64]) -> f64;
    /// What takes the place of |grad f| where that never gets small.
    fn error(&self, _x: &[f64]) -> Option<f64> {
        None
    }
}

/// A table as an oracle, and as its own truth.
pub(super) struct Table<R> {
    rows: R,
    about: About,
}

/// Rows that are added one after another: part of the bits of an answer.
const BLOCK: u64 = 64;

impl<R: Rows> Table<R> {
    pub(super) fn new(name: &'static str, rows: R) -> Self {
        let source = Source::Table { rows: rows.rows() as u64 };
        let about = About { source, losses: true, ..About::stream(rows.start().len(), name) };
        Self { rows, about }
    }

    pub(super) fn start(&self) -> Vec<f64> {
        self.rows.start()
    }

    /// Adds what is asked of one row, gradients first and losses after them.
    fn add(&self, request: &Request<'_>, row: usize, out: &mut [f64]) {
        let dim = self.about.dim;
        let (gradients, losses) = out.split_at_mut(request.rows() * dim);
        for (i, x) in request.points.iter().enumerate() {
            let loss = match request.form {
                Form::Sums => self.rows.row(row, 1.0, x, &mut gradients[i * dim..(i + 1) * dim]),
                Form::Differences if i < request.rows() => {
                    let out = &mut gradients[i * dim..(i + 1) * dim];
                    self.rows.row(row, -1.0, request.base(), out);
                    self.rows.row(row, 1.0, x, out)
                }
                Form::Differences => self.rows.row(row, 0.0, x, &mut vec![0.0; dim]),
            };
            if let Some(sum) = losses.get_mut(i) {
                *sum += loss;
            }
        }
    }
}

impl<R: Rows> Oracle for Table<R> {
    fn about(&self) -> &About {
        &self.about
    }

    fn answer(&self, request: &Request<'_>, answer: &mut Answer<'_>) -> Result<Charge, OracleError> {
        let rows = self.rows.rows() as u64;
        let (batch, all) = match &request.draw {
            Draw::Batch(batch) => (batch.clone(), false),
            Draw::Everything(role) => (Batch { seed: 0, role: *role, step: 0, samples: 0..rows }, true),
        };
        let add = |samples: Range<u64>, out: &mut [f64]| {
            request.interrupted()?;
            for i in samples {
                let row = if all { i } else { batch.sample(i).below(rows) };
                self.add(request, row as usize, out);
            }
            Ok(())
        };
        let losses = if request.losses { answer.losses.len() } else { 0 };
        let mut sums = vec![0.0; answer.gradients.len() + losses];
        batch.sum_over(BLOCK, &mut sums, &add)?;
        if all {
            sums.iter_mut().for_each(|sum| *sum /= rows as f64);
        }
        let (gradients, values) = sums.split_at(answer.gradients.len());
        answer.gradients.copy_from_slice(gradients);
        answer.losses[..losses].copy_from_slice(values);
        Ok(request.usual_price(&self.about))
    }
}

impl<R: Rows> Truth for Table<R> {
    fn error(&self, x: &[f64]) -> f64 {
        self.rows.error(x).unwrap_or_else(|| {
            let mut gradient = vec![0.0; x.len()];
            let points = [x];
            match self.answer(&Request::everything(Role::Setup, &points), &mut Answer::new(&mut gradient)) {
                Ok(_) => norm(&gradient),
                Err(_) => f64::NAN,
            }
        })
    }

    fn value(&self, x: &[f64]) -> f64 {
        let mut scratch = vec![0.0; x.len()];
        let losses = (0..self.rows.rows()).map(|row| self.rows.row(row, 0.0, x, &mut scratch));
        losses.sum::<f64>() / self.rows.rows() as f64
    }
}
