//! The hard instances of the lower bounds: functions on which no zero-respecting method is fast.
//!
//! F(u, y) = f0(u) + phi(u) Fs(y). A slope f0 leads away from the start; far out, phi switches a chain Fs on, whose
//! coordinates an oracle reveals one at a time, each with a small probability p. By then the distance is so large that
//! BG-0 allows noise that makes p of order eps^4. See [`bounds`](crate::bounds) for what follows from it.

mod chain;
mod mask;
mod rotation;

pub use mask::Mask;
pub use rotation::{Rotation, RotationError};

use crate::bounds::{LowerBound, LowerMeanSquareSmooth, LowerSmooth};
use crate::objective::{Facts, Objective};
use crate::oracle::{About, Answer, Batch, Charge, Draw, Form, Oracle, OracleError, Request, Source};
use crate::recipe::RecipeError;

/// A hard instance with its oracle. The first coordinate is u, the others are y (or a rotation of y).
///
/// ```
/// use pasta_opt::bounds::LowerSmooth;
/// use pasta_opt::hard::HardInstance;
/// use pasta_opt::objective::Objective;
///
/// let limit = LowerSmooth { smoothness: 1.0, gap: 1.0, growth: 1.0, floor: 0.5, target: 0.001 };
/// let instance = HardInstance::smooth(limit)?;
/// assert_eq!(instance.bound().chain, 8);
/// let mut gradient = vec![0.0; 9];
/// instance.gradient(&[0.0; 9], &mut gradient);
/// // At the start only the slope is seen.
/// assert_eq!((gradient[0], gradient[1]), (-0.002, 0.0));
/// # Ok::<(), pasta_opt::hard::InstanceError>(())
/// ```
#[derive(Debug, Clone)]
pub struct HardInstance {
    mask: Mask,
    gap: f64,
    target: f64,
    bound: LowerBound,
    rotation: Option<Rotation>,
    about: About,
}

/// Why there is no instance.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum InstanceError {
    /// A constant is out of range.
    #[error(transparent)]
    Constants(#[from] RecipeError),
    /// The target is too large for a chain of two coordinates.
    #[error(
        "the {theorem} instance needs T >= 2, that is eps <= {largest:e}, but eps = {target:e} gives T = {chain}"
    )]
    Target {
        /// Which instance.
        theorem: &'static str,
        /// The largest admissible target.
        largest: f64,
        /// The target.
        target: f64,
        /// T.
        chain: u64,
    },
    /// The noise grows too fast for mean-square smoothness.
    #[error(
        "the mean-square smooth instance needs B < varsigma Lbar/(96 lbar1) = {limit:e}, but B = {growth:e}"
    )]
    Growth {
        /// The limit, not attained.
        limit: f64,
        /// B.
        growth: f64,
    },
    /// A parameter of the instance cannot be held, or divided by, in doubles.
    #[error("the {theorem} instance needs {name} between 1e-300 and 1e300, but {name} = {value:e}")]
    Range {
        /// Which instance.
        theorem: &'static str,
        /// p, D, lambda, or the scale.
        name: &'static str,
        /// Its value, as far as doubles go.
        value: f64,
    },
    /// The rotation does not fit.
    #[error(transparent)]
    Rotation(#[from] RotationError),
}

impl HardInstance {
    /// The instance of Theorem 1.
    pub fn smooth(limit: LowerSmooth) -> Result<Self, InstanceError> {
        let name = format!("hard instance {limit:?}");
        Self::new(Mask::Basic, limit.gap, limit.target, limit.evaluate()?, name)
    }

    /// The instance of Theorem 2.
    pub fn mean_square_smooth(limit: LowerMeanSquareSmooth) -> Result<Self, InstanceError> {
        let bound = limit.evaluate()?;
        if limit.growth >= limit.growth_limit() {
            return Err(InstanceError::Growth { limit: limit.growth_limit(), growth: limit.growth });
        }
        let name = format!("hard instance {limit:?}");
        Self::new(Mask::MeanSquareSmooth, limit.gap, limit.target, bound, name)
    }

    fn new(
        mask: Mask,
        gap: f64,
        target: f64,
        bound: LowerBound,
        name: String,
    ) -> Result<Self, InstanceError> {
        let theorem = match mask {
            Mask::Basic => "smooth",
            Mask::MeanSquareSmooth => "mean-square smooth",
        };
        let LowerBound { admissible, eps_max: largest, chain, p, distance, lambda, scale, .. } = bound;
        if !admissible {
            return Err(InstanceError::Target { theorem, largest, target, chain });
        }
        let parameters = [("p", p), ("D", distance), ("lambda", lambda), ("scale", scale)];
        if let Some((name, value)) =
            parameters.into_iter().find(|(_, value)| !(1e-300..1e300).contains(value))
        {
            return Err(InstanceError::Range { theorem, name, value });
        }
        let about = about(1 + bound.chain as usize, name);
        Ok(Self { mask, gap, target, bound, rotation: None, about })
    }

    /// The same instance with y = U' x, U the rotation's orthonormal columns.
    pub fn rotated(self, rotation: Rotation) -> Result<Self, InstanceError> {
        rotation.fits(self.bound.chain as usize)?;
        let name = format!("{} rotated by {}", self.about.identity, rotation.identity());
        let about = about(1 + rotation.dim(), name);
        Ok(Self { rotation: Some(rotation), about, ..self })
    }

    /// The parameters: T, p, D, lambda, scale, and the bounds.
    pub fn bound(&self) -> &LowerBound {
        &self.bound
    }

    /// Which mask hides the frontier.
    pub fn mask(&self) -> Mask {
        self.mask
    }

    /// eps: the instance is hard for this target.
    pub fn target(&self) -> f64 {
        self.target
    }

    /// The supremum of the base chain, which the chain is shifted by.
    pub fn shift(&self) -> f64 {
        chain::supremum(self.bound.chain)
    }

    /// Fbar(y/lambda), the base chain before scaling and shift.
    pub fn base_value(&self, y: &[f64]) -> f64 {
        chain::evaluate(y, self.bound.lambda, self.bound.chain, &mut vec![0.0; y.len()])
    }

    /// The largest i with |y_i/lambda| > threshold, counted from 1; 0 if there is none.
    pub fn progress(&self, y: &[f64], threshold: f64) -> usize {
        progress(y, threshold * self.bound.lambda)
    }

    /// m_i of the mask at y.
    pub fn mask_at(&self, y: &[f64]) -> Vec<f64> {
        let mut mask = vec![0.0; y.len()];
        self.mask.visit(y, self.bound.lambda, |i, m| mask[i] = m);
        mask
    }

    /// The stochastic gradient at x for a given z, or for the mean z of a batch: the estimator is affine in z.
    pub fn stochastic_gradient(&self, x: &[f64], z: f64, out: &mut [f64]) {
        self.estimate_at(x, Some(z / self.bound.p), out);
    }

    /// Evaluates in the chain's own coordinates: y = U' x, and the answer goes back by U.
    fn through(
        &self,
        rotation: &Rotation,
        x: &[f64],
        out: &mut [f64],
        evaluate: impl FnOnce(&[f64], &mut [f64]) -> f64,
    ) -> f64 {
        let mut own = vec![0.0; 1 + self.bound.chain as usize];
        own[0] = x[0];
        rotation.apply_transpose(&x[1..], &mut own[1..]);
        let mut answer = vec![0.0; own.len()];
        let value = evaluate(&own, &mut answer);
        out[0] = answer[0];
        rotation.apply(&answer[1..], &mut out[1..]);
        value
    }

    /// The gradient of F at (u, y), or its estimate for z/p, into `out`; returns F(u, y). `x` may be cut short:
    /// coordinates beyond it are zero.
    fn estimate(&self, x: &[f64], reveal: Option<f64>, out: &mut [f64]) -> f64 {
        let LowerBound { lambda, scale, chain: length, .. } = self.bound;
        let [u, y @ ..] = x else { return 0.0 };
        let [out_u, out_y @ ..] = out else { return 0.0 };
        let (slope_value, slope) = self.slope(*u);
        let (switch, switch_slope) = self.switch(*u);
        *out_u = slope;
        if switch == 0.0 {
            out_y.fill(0.0);
            return slope_value;
        }
        let base = chain::evaluate(y, lambda, length, out_y);
        let chain_value = scale * (base - chain::supremum(length));
        *out_u += switch_slope * chain_value;
        // grad Fs = 2 eps grad Fbar(y/lambda).
        let factor = 2.0 * self.target * switch;
        out_y.iter_mut().for_each(|g| *g *= factor);
        if let Some(reveal) = reveal {
            // 1 + m (z/p - 1), so written that it is z/p itself where m = 1.
            self.mask.visit(y, lambda, |i, m| out_y[i] *= (1.0 - m) + m * reveal);
        }
        slope_value + switch * chain_value
    }

    /// f0 and its slope: -2 eps up to D, rising at the rate L/2 to 0 at D + 4 eps/L.
    fn slope(&self, u: f64) -> (f64, f64) {
        let (eps, far) = (self.target, self.bound.distance);
        let rise = 0.5 * self.bound.effective_smoothness;
        let beyond = (u - far).clamp(0.0, 2.0 * eps / rise);
        let value = -2.0 * eps * (u.min(far) + beyond) + 0.5 * rise * beyond * beyond;
        (value, (rise * beyond - 2.0 * eps).min(0.0))
    }

    /// phi and its slope: 0 up to D/2, 1 from D on.
    fn switch(&self, u: f64) -> (f64, f64) {
        let t = 2.0 * u / self.bound.distance - 1.0;
        if t <= 0.0 {
            return (0.0, 0.0);
        }
        if t >= 1.0 {
            return (1.0, 0.0);
        }
        let value = t * t * t * (10.0 + t * (6.0 * t - 15.0));
        (value, 30.0 * t * t * (1.0 - t) * (1.0 - t) * 2.0 / self.bound.distance)
    }

    /// The mean of a batch's z over p: one Binomial stands for all of them.
    fn reveal(&self, batch: &Batch) -> f64 {
        let count = batch.whole().binomial(batch.count(), self.bound.p);
        count as f64 / (batch.count() as f64 * self.bound.p)
    }

    fn estimate_at(&self, x: &[f64], reveal: Option<f64>, out: &mut [f64]) -> f64 {
        match &self.rotation {
            None => self.estimate(x, reveal, out),
            Some(rotation) => self.through(rotation, x, out, |x, out| self.estimate(x, reveal, out)),
        }
    }

    /// If x is zero from coordinate `active` on, its gradients are zero from this one on: a chain coordinate wakes only its
    /// successor, and u, which is always awake, the first. A rotation mixes them all.
    pub fn support(&self, active: usize) -> usize {
        let dim = self.about.dim;
        if self.rotation.is_some() { dim } else { active.max(1).saturating_add(1).min(dim) }
    }
}

fn about(dim: usize, identity: String) -> About {
    About { source: Source::Formula, trusted: true, ..About::stream(dim, identity) }
}

impl Objective for HardInstance {
    fn identity(&self) -> String {
        self.about.identity.clone()
    }

    fn dim(&self) -> usize {
        self.about.dim
    }

    fn value(&self, x: &[f64]) -> f64 {
        self.estimate_at(x, None, &mut vec![0.0; x.len()])
    }

    fn gradient(&self, x: &[f64], out: &mut [f64]) {
        self.estimate_at(x, None, out);
    }

    /// Slope and chain reach their infima together, far out; neither is attained.
    fn infimum(&self) -> f64 {
        let LowerBound { scale, chain: length, effective_smoothness: l, .. } = self.bound;
        let slope = -(0.5 * self.gap + 4.0 * self.target * self.target / l);
        slope + scale * (chain::infimum(length) - chain::supremum(length))
    }

    fn nearest_minimiser(&self, _x: &[f64], _out: &mut [f64]) -> bool {
        false
    }

    fn facts(&self) -> Facts {
        let l = Some(self.bound.effective_smoothness);
        Facts { smoothness: l, weak_convexity: l, ..Facts::default() }
    }
}

impl Oracle for HardInstance {
    fn about(&self) -> &About {
        &self.about
    }

    fn answer(&self, request: &Request<'_>, answer: &mut Answer<'_>) -> Result<Charge, OracleError> {
        // Coordinates beyond the support are zero in every point and every row.
        let awake = ..self.support(request.active);
        answer.support = awake.end;
        let (n, reveal) = match &request.draw {
            Draw::Batch(batch) => (batch.count() as f64, Some(self.reveal(batch))),
            Draw::Everything(_) => (1.0, None),
        };
        let rows = answer.gradients.chunks_mut(self.about.dim).map(|row| &mut row[awake]);
        match request.form {
            Form::Sums => {
                for (x, row) in request.points.iter().zip(rows) {
                    self.estimate_at(&x[awake], reveal, row);
                    row.iter_mut().for_each(|g| *g *= n);
                }
            }
            Form::Differences => {
                let mut at_base = vec![0.0; awake.end];
                self.estimate_at(&request.base()[awake], reveal, &mut at_base);
                for (x, row) in request.points.iter().zip(rows) {
                    self.estimate_at(&x[awake], reveal, row);
                    row.iter_mut().zip(&at_base).for_each(|(g, y)| *g = n * (*g - y));
                }
            }
        }
        Ok(request.usual_price(&self.about))
    }
}

/// The largest i with |y_i| > threshold, counted from 1; 0 if there is none.
fn progress(y: &[f64], threshold: f64) -> usize {
    y.iter().rposition(|y| y.abs() > threshold).map_or(0, |i| i + 1)
}
