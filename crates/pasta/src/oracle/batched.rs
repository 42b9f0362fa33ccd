//! One sample is what a user writes; a parallel batch is what the algorithm asks.

use super::{About, Answer, Charge, Draw, Form, Oracle, OracleError, Request, Source};
use crate::draws::Stream;

/// A stochastic gradient, one sample at a time: all that a user of the library has to write.
///
/// ```
/// use pasta_opt::draws::Stream;
/// use pasta_opt::oracle::{Batched, OracleError, Sampled};
///
/// /// Least squares on a stream: a ~ N(0, I), y = <a, truth> + noise.
/// struct Regression { truth: Vec<f64> }
///
/// impl Sampled for Regression {
///     fn dim(&self) -> usize { self.truth.len() }
///     fn identity(&self) -> String { format!("regression on {:?}", self.truth) }
///
///     fn add_gradient(&self, weight: f64, x: &[f64], xi: &mut Stream, out: &mut [f64]) -> Result<(), OracleError> {
///         let a: Vec<f64> = x.iter().map(|_| xi.normal()).collect();
///         let error: f64 = a.iter().zip(x).zip(&self.truth).map(|((a, x), t)| a * (x - t)).sum();
///         let residual = error - 0.1 * xi.normal();
///         for (o, a) in out.iter_mut().zip(&a) { *o += weight * residual * a; }
///         Ok(())
///     }
/// }
///
/// let oracle = Batched::new(Regression { truth: vec![1.0, -2.0] });
/// ```
pub trait Sampled: Send + Sync {
    /// The number of coordinates.
    fn dim(&self) -> usize;

    /// What this is, parameters included: a checkpoint is only resumed on an oracle of the same identity.
    fn identity(&self) -> String;

    /// Adds `weight` times g(x, xi) to `out`; xi is whatever is drawn from the stream.
    fn add_gradient(
        &self,
        weight: f64,
        x: &[f64],
        xi: &mut Stream,
        out: &mut [f64],
    ) -> Result<(), OracleError>;

    /// Adds `weight` times g(x, xi) - g(y, xi). Override it where one pass can do both points.
    fn add_difference(
        &self,
        weight: f64,
        x: &[f64],
        y: &[f64],
        xi: &mut Stream,
        out: &mut [f64],
    ) -> Result<(), OracleError> {
        let mut again = xi.clone();
        self.add_gradient(weight, x, xi, out)?;
        self.add_gradient(-weight, y, &mut again, out)
    }

    /// f(x, xi), whose gradient is g(x, xi), for the same draws from the stream. Override it together with
    /// [`gives_losses`](Self::gives_losses).
    fn loss(&self, _x: &[f64], _xi: &mut Stream) -> Result<f64, OracleError> {
        Err(OracleError::new("it gives no losses"))
    }

    /// Whether [`loss`](Self::loss) can be asked.
    fn gives_losses(&self) -> bool {
        false
    }

    /// True if the gradient of a sample is that of its loss: see [`About::pathwise`]. Override it for likelihood ratios.
    fn is_pathwise(&self) -> bool {
        true
    }
}

/// Makes an [`Oracle`] of a [`Sampled`]: parallel over the current rayon pool, same bits on any number of threads.
#[derive(Debug, Clone)]
pub struct Batched<P> {
    sampled: P,
    about: About,
    /// How many samples are added one after another before the tree of sums begins. Part of the result's
    /// bits; a single expensive sample (a simulation) is worth a block of its own.
    pub block: u64,
}

impl<P: Sampled> Batched<P> {
    /// Blocks of eight samples: right for a sample of a tenth of a microsecond and more.
    pub fn new(sampled: P) -> Self {
        let about = About {
            dim: sampled.dim(),
            identity: sampled.identity(),
            source: Source::Stream,
            losses: sampled.gives_losses(),
            shared: true,
            pathwise: sampled.is_pathwise(),
            additive: true,
            trusted: false,
        };
        Self { sampled, about, block: 8 }
    }

    /// Adds what is asked of one sample to the rows, and its losses to what follows them.
    fn add(&self, request: &Request<'_>, xi: &Stream, out: &mut [f64]) -> Result<(), OracleError> {
        let (rows, losses) = out.split_at_mut(request.rows() * self.about.dim);
        for (x, row) in request.points.iter().zip(rows.chunks_mut(self.about.dim.max(1))) {
            match request.form {
                Form::Sums => self.sampled.add_gradient(1.0, x, &mut xi.clone(), row)?,
                Form::Differences => {
                    self.sampled.add_difference(1.0, x, request.base(), &mut xi.clone(), row)?;
                }
            }
        }
        for (x, loss) in request.points.iter().zip(losses) {
            *loss += self.sampled.loss(x, &mut xi.clone())?;
        }
        Ok(())
    }
}

impl<P: Sampled> Oracle for Batched<P> {
    fn about(&self) -> &About {
        &self.about
    }

    fn answer(&self, request: &Request<'_>, answer: &mut Answer<'_>) -> Result<Charge, OracleError> {
        let Draw::Batch(batch) = &request.draw else {
            return Err(OracleError::new("it does not know its gradient, only samples of it"));
        };
        let add = |samples: std::ops::Range<u64>, out: &mut [f64]| {
            samples.into_iter().try_for_each(|i| {
                request.interrupted()?;
                self.add(request, &batch.sample(i), out)
            })
        };
        if request.losses {
            let mut both = vec![0.0; answer.gradients.len() + answer.losses.len()];
            request.sum_over(batch, self.block, &mut both, &add)?;
            let (gradients, losses) = both.split_at(answer.gradients.len());
            answer.gradients.copy_from_slice(gradients);
            answer.losses.copy_from_slice(losses);
        } else {
            request.sum_over(batch, self.block, answer.gradients, &add)?;
        }
        Ok(request.usual_price(&self.about))
    }

    fn leaf(&self) -> Option<u64> {
        Some(self.block)
    }
}
