//! What else follows from a bound on the gradient, if more is declared about f.

use serde::{Deserialize, Serialize};

use super::{Certificate, ClaimError, Quantity, demand, rounded_up};

/// A bound on f(x) - inf f that follows from |grad f(x)| <= U.
///
/// Neither constant can be measured from samples: both are declared.
///
/// ```
/// use pasta_opt::certificate::Consequence;
/// use pasta_opt::prelude::*;
/// use pasta_opt::problems::Quadratic;
///
/// let noise = Noise { tail: Tail::Gaussian, growth: 1.0, floor: 1.0 };
/// let f = Quadratic { spectrum: vec![1.0] };
/// let mut gate = Gate::new(Noisy::new(Box::new(f), noise, vec![1.0])?, 1);
/// let claim = Claim { target: 0.1, delta: 0.05, basis: Basis::Variance(2.0), budget: None, guess: None };
/// let certificate = Certifier::start(&mut gate, &[0.01], claim, 0)?.finish(&mut gate)?;
/// let bound = certificate.bound.unwrap(); // on |grad f|
/// // Rounded up.
/// assert_eq!(Consequence::Convex { radius: 2.0 }.gap(&certificate), Some((2.0 * bound).next_up()));
/// assert!(Consequence::Pl { mu: 0.5 }.gap(&certificate).is_some_and(|gap| gap > bound * bound));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Consequence {
    /// f is convex and a minimiser lies within R of x: f(x) - f* <= <grad f(x), x - x*> <= R U.
    Convex {
        /// R.
        radius: f64,
    },
    /// 2 mu (f - inf f) <= |grad f|^2 (strong convexity implies it): f(x) - inf f <= U^2/(2 mu).
    Pl {
        /// mu.
        mu: f64,
    },
}

impl Consequence {
    /// Refuses a constant that is negative, zero or not finite.
    pub fn check(&self) -> Result<(), ClaimError> {
        let (name, value) = match *self {
            Self::Convex { radius } => ("radius", radius),
            Self::Pl { mu } => ("mu", mu),
        };
        demand(name, "positive and finite", value, value > 0.0 && value.is_finite())
    }

    /// The bound on f(x) - inf f, where the certificate has a bound on the gradient; `None` where it is one of something else. Rounded up.
    pub fn gap(&self, certificate: &Certificate) -> Option<f64> {
        let bound = certificate.bound.filter(|_| certificate.of == Quantity::Gradient)?;
        let gap = match *self {
            // The gradient is known to be zero.
            _ if bound == 0.0 => 0.0,
            Self::Convex { radius } => (radius * bound).next_up(),
            Self::Pl { mu } => ((bound * bound).next_up() / (2.0 * mu)).next_up(),
        };
        Some(gap).filter(|gap| gap.is_finite())
    }

    /// The claim in words, with all it rests on.
    pub fn statement(&self, certificate: &Certificate) -> String {
        let Some(gap) = self.gap(certificate) else { return "nothing: there is no finite bound".into() };
        let also = match *self {
            Self::Convex { radius } => {
                format!("f is convex with a minimiser within {radius} of x (declared)")
            }
            Self::Pl { mu } => format!("2 mu (f - inf f) <= |grad f|^2 with mu = {mu} (declared)"),
        };
        certificate.claim(&format!("f(x) - inf f <= {}", rounded_up(gap)), Some(also))
    }
}

/// What follows for f, with its words.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct GapBound {
    /// What is declared.
    pub declared: Consequence,
    /// The bound on f(x) - inf f, if there is one.
    pub bound: Option<f64>,
    /// The claim.
    pub statement: String,
}

impl GapBound {
    /// What follows from a certificate.
    pub fn of(certificate: &Certificate, declared: Consequence) -> Self {
        Self { declared, bound: declared.gap(certificate), statement: declared.statement(certificate) }
    }
}
