//! One sample is what a user writes; a parallel batch is what the algorithm asks.

use super::{Batch, Oracle, OracleError, tree};
use crate::draws::Stream;

/// A stochastic gradient, one sample at a time: all that a user of the library has to write.
///
/// ```
/// use pasta_opt::draws::Stream;
/// use pasta_opt::oracle::{Batched, Sampled};
///
/// /// Least squares on a stream: a ~ N(0, I), y = <a, truth> + noise.
/// struct Regression { truth: Vec<f64> }
///
/// impl Sampled for Regression {
///     fn dim(&self) -> usize { self.truth.len() }
///
///     fn add_gradient(&self, weight: f64, x: &[f64], xi: &mut Stream, out: &mut [f64]) {
///         let a: Vec<f64> = x.iter().map(|_| xi.normal()).collect();
///         let error: f64 = a.iter().zip(x).zip(&self.truth).map(|((a, x), t)| a * (x - t)).sum();
///         let residual = error - 0.1 * xi.normal();
///         for (o, a) in out.iter_mut().zip(&a) { *o += weight * residual * a; }
///     }
/// }
///
/// let oracle = Batched::new(Regression { truth: vec![1.0, -2.0] });
/// ```
pub trait Sampled: Sync {
    /// The number of coordinates.
    fn dim(&self) -> usize;

    /// Adds `weight` times g(x, xi) to `out`; xi is whatever is drawn from the stream.
    fn add_gradient(&self, weight: f64, x: &[f64], xi: &mut Stream, out: &mut [f64]);

    /// Adds `weight` times g(x, xi) - g(y, xi). Override it where one pass can do both points.
    fn add_difference(&self, weight: f64, x: &[f64], y: &[f64], xi: &mut Stream, out: &mut [f64]) {
        let mut again = xi.clone();
        self.add_gradient(weight, x, xi, out);
        self.add_gradient(-weight, y, &mut again, out);
    }

    /// What this is, parameters included; see [`Oracle::identity`].
    fn identity(&self) -> String {
        format!("a sampled oracle in dimension {}", self.dim())
    }
}

/// Makes an [`Oracle`] of a [`Sampled`]: parallel over the current rayon pool, same bits on any number of threads.
#[derive(Debug, Clone)]
pub struct Batched<P> {
    /// The one-sample oracle.
    pub sampled: P,
    /// How many samples are added one after another before the tree of sums begins. Part of the result's
    /// bits; a single expensive sample (a simulation) is worth a block of its own.
    pub block: u64,
}

impl<P: Sampled> Batched<P> {
    /// Blocks of eight samples: right for a sample of a tenth of a microsecond and more.
    pub fn new(sampled: P) -> Self {
        Self { sampled, block: 8 }
    }
}

impl<P: Sampled> Oracle for Batched<P> {
    fn dim(&self) -> usize {
        self.sampled.dim()
    }

    fn sum(&self, x: &[f64], batch: &Batch, out: &mut [f64]) -> Result<(), OracleError> {
        tree::sum_over(0..batch.n, self.block.max(1), out, &|samples, out: &mut [f64]| {
            for i in samples {
                self.sampled.add_gradient(1.0, x, &mut batch.sample(i), out);
            }
        });
        Ok(())
    }

    fn sum_difference(
        &self,
        x: &[f64],
        y: &[f64],
        batch: &Batch,
        out: &mut [f64],
    ) -> Result<(), OracleError> {
        tree::sum_over(0..batch.n, self.block.max(1), out, &|samples, out: &mut [f64]| {
            for i in samples {
                self.sampled.add_difference(1.0, x, y, &mut batch.sample(i), out);
            }
        });
        Ok(())
    }

    fn identity(&self) -> String {
        self.sampled.identity()
    }
}
