//! What a fit knows of its start and its end, by passes over all rows of a table.

use serde::{Deserialize, Serialize};

/// f and its gradient, by a pass over the rows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Exactly {
    /// f, the penalty included.
    pub objective: f64,
    /// |grad f|.
    pub gradient: f64,
}

impl From<(f64, f64)> for Exactly {
    fn from((objective, gradient): (f64, f64)) -> Self {
        Self { objective, gradient }
    }
}

/// What an exact pass says about the end of a fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The gradient, or the gap of a loss with kinks, is at most the target.
    Certified,
    /// It is larger.
    NotCertified,
    /// It is larger, but the loss has kinks, where the gradient need not be small.
    Kinks,
    /// f is larger than at the start, whatever its gradient: far out a loss that is not convex is flat.
    Worse,
}

/// How far a fit has come: where it began, what it aims at, and how it ended.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FitLog {
    /// f and its gradient at the start.
    pub start: Exactly,
    /// The gradient, or the gap, that is small enough.
    pub target: f64,
    /// The loss of a typical row at the start, where f is told by its gap because the loss has kinks.
    pub typical: Option<f64>,
    /// True if f is told by a duality gap.
    pub has_gap: bool,
    /// Its end, once the method has ended.
    pub end: Option<Ending>,
}

/// The end of a fit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Ending {
    /// f and its gradient there.
    pub at: Exactly,
    /// By how much f can be above its least value, where that was looked for; infinite where it was not found.
    #[serde(with = "infinite")]
    pub gap: Option<f64>,
    /// What the point is worth.
    pub verdict: Verdict,
}

impl Ending {
    /// What is compared with the target.
    pub fn measure(&self) -> f64 {
        self.gap.unwrap_or(self.at.gradient)
    }
}

/// JSON knows no infinity: a gap as text.
mod infinite {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[expect(clippy::ref_option, reason = "serde asks like this")]
    pub(super) fn serialize<S: Serializer>(gap: &Option<f64>, to: S) -> Result<S::Ok, S::Error> {
        gap.map(|gap| format!("{gap:?}")).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| text.parse().map_err(D::Error::custom)).transpose()
    }
}
