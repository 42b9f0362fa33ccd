//! Sums over coordinates: bounds, absolute values, squares and logarithms of each.

use super::{Outside, Steps, Term, TermError};

/// l1 |x| + l2 x^2/2 - log_weight log x on lower <= x <= upper, of one coordinate.
///
/// Such functions add up to one of their own kind, so sums of box, l1, elastic net and -log have an exact prox: in one dimension,
/// bounds clip the prox of the rest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Piece {
    /// The lower end, perhaps infinite.
    pub lower: f64,
    /// The upper end, perhaps infinite.
    pub upper: f64,
    /// The weight of |x|.
    pub l1: f64,
    /// The weight of x^2/2.
    pub l2: f64,
    /// The weight of -log x, which is infinite unless x > 0; 0 for none.
    pub log_weight: f64,
}

impl Default for Piece {
    /// 0 everywhere.
    fn default() -> Self {
        Self { lower: f64::NEG_INFINITY, upper: f64::INFINITY, l1: 0.0, l2: 0.0, log_weight: 0.0 }
    }
}

impl Piece {
    /// The sum of two.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            lower: self.lower.max(other.lower),
            upper: self.upper.min(other.upper),
            l1: self.l1 + other.l1,
            l2: self.l2 + other.l2,
            log_weight: self.log_weight + other.log_weight,
        }
    }

    /// Its value at x.
    pub fn value(&self, x: f64) -> f64 {
        if self.leaves(0, x).is_some() {
            return f64::INFINITY;
        }
        let log = if self.log_weight > 0.0 { -self.log_weight * x.ln() } else { 0.0 };
        // A weight of 0 is 0 at infinity, too.
        let of = |weight: f64, x: f64| if weight > 0.0 { weight * x } else { 0.0 };
        of(self.l1, x.abs()) + of(self.l2, x * x / 2.0) + log
    }

    /// The minimiser z of its value plus (z - v)^2/(2 gamma).
    pub fn prox(&self, gamma: f64, v: f64) -> f64 {
        let clip = |z: f64| z.max(self.lower).min(self.upper);
        if self.log_weight > 0.0 {
            // x > 0, so |x| = x: a x^2 - u x - gamma w = 0. The form without cancellation is taken; neither squares u.
            let (u, a) = (v - gamma * self.l1, 1.0 + gamma * self.l2);
            let product = 2.0 * a.sqrt() * (gamma * self.log_weight).sqrt();
            let root = u.hypot(product);
            let z = if u >= 0.0 {
                (u / 2.0 + root / 2.0) / a
            } else {
                2.0 * gamma * (self.log_weight / (root - u))
            };
            return clip(z.clamp(f64::MIN_POSITIVE, f64::MAX));
        }
        let threshold = gamma * self.l1;
        let soft = if v > threshold {
            v - threshold
        } else if v < -threshold {
            v + threshold
        } else {
            0.0
        };
        // Where gamma l2 overflows, the result is 0.
        clip(if self.l2 > 0.0 { soft / (1.0 + gamma * self.l2) } else { soft })
    }

    /// A curvature that it has at least wherever |z - x| <= `reach`, kinks and ends apart, which only add to it.
    pub fn modulus(&self, x: f64, reach: f64) -> f64 {
        let log = if self.log_weight > 0.0 { self.log_weight / (x.abs() + reach).powi(2) } else { 0.0 };
        self.l2 + log
    }

    /// Why x, called coordinate i, is outside of its domain.
    pub(super) fn leaves(&self, i: usize, x: f64) -> Option<Outside> {
        let words = if x.is_nan() {
            format!("x{i} is not a number")
        } else if self.log_weight > 0.0 && x <= 0.0 {
            format!("x{i} = {x} is not above 0")
        } else if x < self.lower {
            format!("x{i} = {x} is below {}", self.lower)
        } else if x > self.upper {
            format!("x{i} = {x} is above {}", self.upper)
        } else {
            return None;
        };
        Some(Outside { coordinate: Some(i), words })
    }

    pub(super) fn check(&self, i: usize) -> Result<(), TermError> {
        let Self { lower, upper, .. } = *self;
        let floor = if self.log_weight > 0.0 { 0.0 } else { f64::NEG_INFINITY };
        if !(lower <= upper && lower < f64::INFINITY && upper > floor) {
            return Err(TermError(format!("coordinate {i} lies nowhere: lower = {lower}, upper = {upper}")));
        }
        for (name, weight) in [("l1", self.l1), ("l2", self.l2), ("the weight of -log", self.log_weight)] {
            if !(weight.is_finite() && weight >= 0.0) {
                return Err(TermError(format!(
                    "coordinate {i}: {name} must be finite and at least 0, but is {weight}"
                )));
            }
        }
        Ok(())
    }
}

/// A sum of pieces, one for each coordinate.
#[derive(Debug, Clone, PartialEq)]
pub struct Separable {
    /// One for each coordinate.
    pub pieces: Vec<Piece>,
}

impl Term for Separable {
    fn identity(&self) -> String {
        format!("separable, {:?}", self.pieces)
    }

    fn check(&self, dim: usize) -> Result<(), TermError> {
        if self.pieces.len() != dim {
            let n = self.pieces.len();
            return Err(TermError(format!("{n} pieces for {dim} coordinates")));
        }
        self.pieces.iter().enumerate().try_for_each(|(i, piece)| piece.check(i))
    }

    fn value(&self, x: &[f64]) -> f64 {
        self.pieces.iter().zip(x).map(|(piece, &x)| piece.value(x)).sum()
    }

    fn prox(&self, steps: Steps<'_>, v: &mut [f64]) {
        for (i, (piece, v)) in self.pieces.iter().zip(v).enumerate() {
            *v = piece.prox(steps.at(i), *v);
        }
    }

    fn outside(&self, x: &[f64]) -> Option<Outside> {
        self.pieces.iter().zip(x).enumerate().find_map(|(i, (piece, &x))| piece.leaves(i, x))
    }

    fn piece(&self, i: usize) -> Option<Piece> {
        self.pieces.get(i).copied()
    }
}
