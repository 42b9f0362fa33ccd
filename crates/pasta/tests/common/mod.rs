//! What several test files share: oracles made of a closure, and questions to an oracle without a gate.
#![allow(dead_code, reason = "each test file uses some of it")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pasta_opt::draws::Role;
use pasta_opt::oracle::{About, Answer, Charge, Form, Request};
use pasta_opt::prelude::*;

/// The first n samples of a step.
pub(crate) fn batch_of(seed: u64, role: Role, step: u64, n: u64) -> Batch {
    Batch { seed, role, step, samples: 0..n }
}

/// The sum over a batch at x, asked past any gate.
pub(crate) fn sum_at(oracle: &dyn Oracle, x: &[f64], batch: &Batch, out: &mut [f64]) {
    oracle.answer(&Request::sums(batch.clone(), &[x]), &mut Answer::new(out)).unwrap();
}

/// The sum of differences over a batch, asked past any gate.
pub(crate) fn difference_at(oracle: &dyn Oracle, x: &[f64], y: &[f64], batch: &Batch, out: &mut [f64]) {
    oracle.answer(&Request::differences(batch.clone(), &[x, y]), &mut Answer::new(out)).unwrap();
}

/// An oracle that is a closure, at the usual price.
pub(crate) struct Made<F> {
    pub(crate) about: About,
    pub(crate) answer: F,
}

impl<F> Oracle for Made<F>
where
    F: Fn(&Request<'_>, &mut Answer<'_>) -> Result<(), OracleError> + Send + Sync,
{
    fn about(&self) -> &About {
        &self.about
    }
    fn answer(&self, request: &Request<'_>, answer: &mut Answer<'_>) -> Result<Charge, OracleError> {
        (self.answer)(request, answer)?;
        Ok(request.usual_price(&self.about))
    }
}

/// An oracle with a closure around its answers.
pub(crate) struct Around<O, F> {
    pub(crate) inner: O,
    pub(crate) answer: F,
}

impl<O, F> Oracle for Around<O, F>
where
    O: Oracle,
    F: Fn(&O, &Request<'_>, &mut Answer<'_>) -> Result<Charge, OracleError> + Send + Sync,
{
    fn about(&self) -> &About {
        self.inner.about()
    }
    fn price(&self, request: &Request<'_>) -> Charge {
        self.inner.price(request)
    }
    fn answer(&self, request: &Request<'_>, answer: &mut Answer<'_>) -> Result<Charge, OracleError> {
        (self.answer)(&self.inner, request, answer)
    }
}

/// Counts samples and evaluations by its own account: from the ranges and the points of what it is asked.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) samples: AtomicU64,
    pub(crate) evaluations: AtomicU64,
}

impl Counts {
    pub(crate) fn seen(&self) -> (u128, u128) {
        [&self.samples, &self.evaluations].map(|n| u128::from(n.load(Ordering::Relaxed))).into()
    }
}

/// Makes an oracle count what it answers.
pub(crate) fn counted(inner: impl Oracle + 'static) -> (Arc<Counts>, Arc<dyn Oracle>) {
    let counts = Arc::new(Counts::default());
    let seen = Arc::clone(&counts);
    let answer = move |inner: &_, request: &Request<'_>, answer: &mut Answer<'_>| {
        let charge = Oracle::answer(inner, request, answer)?;
        if let pasta_opt::oracle::Draw::Batch(batch) = &request.draw {
            let n = batch.samples.end - batch.samples.start;
            let points = match request.form {
                Form::Sums => request.rows() as u64,
                Form::Differences => request.rows() as u64 + 1,
            };
            seen.samples.fetch_add(n, Ordering::Relaxed);
            seen.evaluations.fetch_add(n * points, Ordering::Relaxed);
        }
        Ok(charge)
    };
    (counts, Arc::new(Around { inner, answer }))
}
