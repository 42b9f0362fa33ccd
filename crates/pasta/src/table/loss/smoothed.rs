//! A loss of two straight parts with a parabola where they meet: its Moreau envelope.

use serde::{Deserialize, Serialize};

use super::{Bounds, Class, Labels, Loss, LossRow, Scalar, sign};

/// Not a row of the table of losses: a fit of a loss with a kink goes through it, and nobody asks for it by name.
pub(super) const ROW: LossRow = LossRow {
    name: "smoothed",
    formula: "max over p in [lo, hi] of p t - width p^2/2",
    class: Class::SmoothConvex,
    labels: Labels::Real,
    parameter: None,
};

/// A convex loss of two straight parts, max(lo t, hi t) for a t that is linear in the score.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Kink {
    /// t = 1 - s z, slopes 0 and 1.
    Hinge,
    /// t = z - y, slopes -1 and 1.
    Absolute,
    /// t = z - y, slopes -level and 1 - level.
    Quantile {
        /// The level, in (0, 1).
        level: f64,
    },
}

impl Kink {
    /// That of a loss, if it has one such and is convex.
    pub(crate) fn of(loss: Loss) -> Option<Self> {
        match loss {
            Loss::Hinge => Some(Self::Hinge),
            Loss::Absolute => Some(Self::Absolute),
            Loss::Quantile { level } => Some(Self::Quantile { level }),
            _ => None,
        }
    }

    /// The slopes of both parts in t.
    #[inline]
    pub(crate) fn slopes(self) -> (f64, f64) {
        match self {
            Self::Hinge => (0.0, 1.0),
            Self::Absolute => (-1.0, 1.0),
            Self::Quantile { level } => (-level, 1.0 - level),
        }
    }

    /// The larger of the slopes' sizes.
    pub(crate) fn steepest(self) -> f64 {
        let (low, high) = self.slopes();
        high.max(-low)
    }

    /// t, and its derivative in the score.
    #[inline]
    pub(crate) fn inner(self, z: f64, y: f64) -> (f64, f64) {
        match self {
            Self::Hinge => (1.0 - sign(y) * z, -sign(y)),
            Self::Absolute | Self::Quantile { .. } => (z - y, 1.0),
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Smoothed {
    pub(crate) kink: Kink,
    pub(crate) width: f64,
}

impl Smoothed {
    /// The slope in t where the maximum is.
    #[inline]
    fn best(self, t: f64) -> f64 {
        let (low, high) = self.kink.slopes();
        (t / self.width).clamp(low, high)
    }
}

impl Scalar for Smoothed {
    #[inline]
    fn value(self, z: f64, y: f64) -> f64 {
        let (t, _) = self.kink.inner(z, y);
        let p = self.best(t);
        p * (t - 0.5 * self.width * p)
    }

    #[inline]
    fn slope(self, z: f64, y: f64) -> f64 {
        let (t, dt) = self.kink.inner(z, y);
        self.best(t) * dt
    }

    #[inline]
    fn curvature(self, z: f64, y: f64) -> f64 {
        let ((t, _), (low, high)) = (self.kink.inner(z, y), self.kink.slopes());
        if low * self.width < t && t < high * self.width { 1.0 / self.width } else { 0.0 }
    }

    /// Up to a linear part it is Huber's loss around the middle of the parabola.
    #[inline]
    fn majoriser(self, z: f64, y: f64) -> f64 {
        let ((t, _), (low, high)) = (self.kink.inner(z, y), self.kink.slopes());
        let (middle, half) = (0.5 * (low + high) * self.width, 0.5 * (high - low));
        (half / (t - middle).abs()).min(1.0 / self.width)
    }

    fn bounds(self) -> Bounds {
        let slope = Some(self.kink.steepest());
        Bounds { curvature: Some(1.0 / self.width), concavity: Some(0.0), slope }
    }
}
