//! The remark after Theorem 10: smooth, by anchored epochs.

use super::{Constant, Formulas, Guarantee, Hypotheses, Plan, Recipe, RecipeError, WeaklyConvex};
use crate::exact::Exact;
use crate::objective::Measure;
use crate::schedule::Output;

/// The remark after Theorem 10: an L-smooth and G-Lipschitz f treated as a weakly convex one.
///
/// **Problem.** f is L-smooth with |grad f| <= G everywhere, f(x0) - inf f <= Delta; the oracle is unbiased
/// with variance at most B^2 |x - x0|^2 + b^2.
///
/// **Schedule.** That of [`WeaklyConvex`] with rho = L, lambda = 2L and target (2/3) eps.
///
/// **Promise.** The mean over s <= S of E|grad f(x_{s-1})|^2 is at most eps^2, because
/// |grad f(x)| <= (3/2) |grad phi_{1/(2L)}(x)|.
///
/// **Tight?** Upper bound; order eps^-6, like [`Smooth`](super::Smooth), with far larger constants.
///
/// **Expected samples.** S (N_0 + (K - 1) N), exactly.
///
/// **Reference.** The remark on smooth functions after Theorem 10.
///
/// | field | symbol | range |
/// |---|---|---|
/// | smoothness | L | > 0 |
/// | lipschitz | G | >= 0 |
/// | gap | Delta | >= 0 |
/// | growth | B | >= 0 |
/// | floor | b | >= 0 |
/// | target | eps | > 0 |
///
/// ```
/// use pasta_opt::recipe::{Recipe, SmoothAnchored};
///
/// let recipe =
///     SmoothAnchored { smoothness: 1.0, lipschitz: 1.0, gap: 0.5, growth: 0.0, floor: 1.0, target: 0.75 };
/// // S = ceil(32 (2L)^2 Delta/(L (2 eps/3)^2)) = ceil(64/0.25).
/// assert_eq!(recipe.plan()?.schedule.epochs, 256);
/// # Ok::<(), pasta_opt::recipe::RecipeError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SmoothAnchored {
    /// L.
    pub smoothness: f64,
    /// G.
    pub lipschitz: f64,
    /// Delta.
    pub gap: f64,
    /// B.
    pub growth: f64,
    /// b.
    pub floor: f64,
    /// eps.
    pub target: f64,
}

impl Recipe for SmoothAnchored {
    fn plan(&self) -> Result<Plan, RecipeError> {
        let hypotheses = Hypotheses("smooth-anchored");
        hypotheses.positive(Constant::Smoothness, self.smoothness)?;
        let eps2 = hypotheses.positive(Constant::Target, self.target)?.pow(2);
        let as_weakly_convex = WeaklyConvex {
            rho: self.smoothness,
            lambda: 2.0 * self.smoothness,
            lipschitz: self.lipschitz,
            gap: self.gap,
            growth: self.growth,
            floor: self.floor,
            target: self.target,
            formulas: Formulas::Corrected,
        };
        let (schedule, cost) = as_weakly_convex.anchored_epochs(hypotheses, &(Exact::ratio(4, 9) * eps2))?;
        Ok(Plan {
            recipe: "smooth-anchored",
            schedule,
            guarantee: Guarantee {
                measure: Measure::GradientSquared,
                point: Output::RandomAnchor,
                bound: self.target * self.target,
            },
            cost,
        })
    }
}
