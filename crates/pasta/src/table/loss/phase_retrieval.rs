//! |z^2 - y|: robust phase retrieval.

use super::{Bounds, Class, Labels, LossRow, Scalar};

pub(super) const ROW: LossRow = LossRow {
    name: "phase-retrieval",
    formula: "|z^2 - y|",
    class: Class::WeaklyConvex,
    labels: Labels::Real,
    parameter: None,
};

#[derive(Debug, Clone, Copy)]
pub(crate) struct PhaseRetrieval;

impl Scalar for PhaseRetrieval {
    #[inline]
    fn value(self, z: f64, y: f64) -> f64 {
        (z * z - y).abs()
    }

    #[inline]
    fn slope(self, z: f64, y: f64) -> f64 {
        let r = z * z - y;
        if r > 0.0 {
            2.0 * z
        } else if r < 0.0 {
            -2.0 * z
        } else {
            0.0
        }
    }

    /// |z^2 - y| + z^2 = max(2 z^2 - y, y) is convex, so rho = 2. The slope 2|z| has no bound, and jumps.
    fn bounds(self) -> Bounds {
        Bounds { curvature: None, concavity: Some(2.0), slope: None }
    }

    /// z^2 cannot reach a negative label.
    fn least(self, y: f64) -> f64 {
        (-y).max(0.0)
    }
}
