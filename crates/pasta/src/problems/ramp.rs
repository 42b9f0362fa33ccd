use super::proximal::is_single_valued;
use crate::objective::{Facts, Objective};

/// A long even descent that ends in a plain, in one dimension: f(0) = 0, f' = -slope up to `reach`, then f'
/// rises at the rate `curvature` until it is 0 at reach + slope/curvature, and stays 0.
///
/// * f' never falls, moves by at most `curvature` times the distance, and stays in \[-slope, 0\]: convex,
///   L = curvature, G = slope.
/// * inf f = -(slope reach + slope^2/(2 curvature)), the area under f'.
/// * The minimisers are all points from reach + slope/curvature on, so neither PL (with a unique minimiser)
///   nor star-convexity is stated.
///
/// ```
/// use pasta_opt::objective::Objective;
/// use pasta_opt::problems::Ramp;
///
/// let ramp = Ramp { slope: 0.5, reach: 2.0, curvature: 0.25 };
/// assert_eq!((ramp.infimum(), ramp.end()), (-1.5, 4.0));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ramp {
    /// How fast f falls at first; positive.
    pub slope: f64,
    /// How far the even descent goes; not negative.
    pub reach: f64,
    /// How fast the descent flattens out; positive.
    pub curvature: f64,
}

impl Ramp {
    /// The ramp that moves with the target eps, on which the eps^-6 of Theorem 3 shows: slope 2 eps, reach
    /// gap/(2 eps), curvature smoothness/2. From 0 a method must walk the whole reach before |f'| <= eps.
    ///
    /// `gap` is what the even descent alone gains. The rounded end adds slope^2/(2 curvature), so that
    /// f(0) - inf f = gap + 4 eps^2/smoothness. The ramp's own L is half the given smoothness.
    ///
    /// ```
    /// use pasta_opt::objective::Objective;
    /// use pasta_opt::problems::Ramp;
    ///
    /// let ramp = Ramp::family(1.0, 1.0, 0.25);
    /// assert_eq!(ramp, Ramp { slope: 0.5, reach: 2.0, curvature: 0.5 });
    /// assert_eq!(ramp.gap(&[0.0]), 1.0 + 4.0 * 0.25 * 0.25);
    /// ```
    pub fn family(smoothness: f64, gap: f64, target: f64) -> Self {
        Self { slope: 2.0 * target, reach: gap / (2.0 * target), curvature: 0.5 * smoothness }
    }

    /// Where the plain begins: the smallest minimiser.
    pub fn end(&self) -> f64 {
        self.reach + self.slope / self.curvature
    }
}

impl Objective for Ramp {
    fn identity(&self) -> String {
        let Self { slope, reach, curvature } = self;
        format!("ramp(slope = {slope:?}, reach = {reach:?}, curvature = {curvature:?})")
    }

    fn dim(&self) -> usize {
        1
    }

    fn value(&self, x: &[f64]) -> f64 {
        let (x, end) = (x[0], self.end());
        if x <= self.reach {
            -self.slope * x
        } else if x >= end {
            self.infimum()
        } else {
            // From the end, so that no rounding falls below the infimum.
            self.infimum() + 0.5 * self.curvature * (end - x) * (end - x)
        }
    }

    #[inline]
    fn gradient(&self, x: &[f64], out: &mut [f64]) {
        let (x, end) = (x[0], self.end());
        out[0] = if x <= self.reach {
            -self.slope
        } else if x >= end {
            0.0
        } else {
            self.curvature * (x - end)
        };
    }

    fn infimum(&self) -> f64 {
        -(self.slope * self.reach + 0.5 * self.slope * self.slope / self.curvature)
    }

    fn nearest_minimiser(&self, x: &[f64], out: &mut [f64]) -> bool {
        out[0] = if x[0] < self.end() { self.end() } else { x[0] };
        true
    }

    fn facts(&self) -> Facts {
        Facts {
            smoothness: Some(self.curvature),
            lipschitz: Some(self.slope),
            weak_convexity: Some(0.0),
            pl: None,
            star: None,
        }
    }

    fn prox(&self, lambda: f64, x: &[f64], out: &mut [f64]) -> bool {
        if !is_single_valued(lambda, 0.0) {
            return false;
        }
        let (x, end) = (x[0], self.end());
        let descended = x + self.slope / lambda;
        out[0] = if descended <= self.reach {
            descended
        } else if x >= end {
            x
        } else {
            // curvature (y - end) + lambda (y - x) = 0
            end - lambda / (lambda + self.curvature) * (end - x)
        };
        true
    }
}
