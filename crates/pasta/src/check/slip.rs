//! What can be wrong with an oracle, in words and numbers.

use serde::Serialize;

/// A slip that a check found in an oracle.
#[derive(Debug, Clone, PartialEq, Serialize, thiserror::Error)]
#[serde(rename_all = "kebab-case", tag = "kind")]
#[non_exhaustive]
pub enum Slip {
    /// NaN, infinity, or too large to be squared.
    #[error("its answer {away} from the start is not finite, or too large to be squared")]
    NotFinite {
        /// How far from the start.
        away: f64,
    },
    /// Two answers to one question.
    #[error(
        "asked twice for the same {samples} samples, it gave two answers, {relative:.1e} apart (relatively): it draws from a generator of \
         its own instead of that of the sample, keeps something from one call to the next, or depends on its process"
    )]
    OwnGenerator {
        /// How many samples.
        samples: u64,
        /// The distance of the answers over their size.
        relative: f64,
    },
    /// The last sample stands for the sum.
    #[error(
        "the sum of {samples} samples is the last of them: it overwrites the sum instead of adding to it"
    )]
    Overwrites {
        /// How many samples.
        samples: u64,
    },
    /// A sum that is not the sum.
    #[error(
        "the sum of {samples} samples is not the sum of the same samples asked for one by one, but off by {relative:.1e} of it: a sample \
         must depend on its address alone, and a sum must hold each once"
    )]
    NotAdditive {
        /// How many samples.
        samples: u64,
        /// The error of the sum over the size of its terms.
        relative: f64,
    },
    /// The mean, or a single sample, in place of the sum.
    #[error(
        "the sum of the {} of {samples} samples is no larger than that of one sample ({sum:.3e} against {single:.3e} in the mean square): it is \
         their mean, or leaves out all but one",
        if *of_losses { "losses" } else { "gradients" }
    )]
    MeanForSum {
        /// How many samples.
        samples: u64,
        /// True if it is the losses that are not added up, rather than the gradients.
        of_losses: bool,
        /// The size of a sum, in the mean square.
        sum: f64,
        /// The size of one sample.
        single: f64,
    },
    /// Other addresses, the same samples.
    #[error(
        "{addresses} batches of {samples} samples under different addresses have the same sum to the last bit: it ignores the generator that \
         it is given (a fixed seed inside it?)"
    )]
    IgnoresSeed {
        /// Samples of a batch.
        samples: u64,
        /// How many batches.
        addresses: u64,
    },
    /// The sum of gradients in place of the difference.
    #[error("the difference of two points is g(x) + g(y): it ignores its weight, which is -1 at y")]
    IgnoresWeight,
    /// A difference that is not the difference.
    #[error(
        "the difference of two points is not g(x) - g(y) of the same samples, but off by {relative:.1e} of the gradients"
    )]
    NotTheDifference {
        /// The error over the size of the gradients.
        relative: f64,
    },
    /// Losses that change at another rate than the gradient says.
    #[error("{}", loss_sentence(*losses, *gradients, *difference, *error, *factor, *disagreeing, *samples))]
    Loss {
        /// The mean rate of change of the losses.
        losses: f64,
        /// The mean of the gradients along the direction.
        gradients: f64,
        /// The difference of the two means.
        difference: f64,
        /// By how much chance and rounding may move it.
        error: f64,
        /// What the gradient of every sample is times the rate of its loss, if they are proportional.
        factor: Option<f64>,
        /// In how many samples the two rates differ; `None` where only their means were compared.
        disagreeing: Option<u64>,
        /// How many samples.
        samples: u64,
    },
    /// Losses that do not depend on the point.
    #[error(
        "the losses of {samples} samples do not change at all near the point, where the gradients say that they do: the loss is a constant"
    )]
    ConstantLoss {
        /// How many samples.
        samples: u64,
    },
    /// A coordinate of the gradient that is never written.
    #[error(
        "coordinate {coordinate} (counted from 0) of the gradient is exactly 0 in all {samples} samples, but their losses change along it, at \
         the rate {losses:.4e} in the mean: it was forgotten"
    )]
    Forgotten {
        /// Which, counted from 0.
        coordinate: usize,
        /// The mean rate of change of the losses along it.
        losses: f64,
        /// How many samples.
        samples: u64,
    },
    /// Two coordinates of the gradient stand in each other's place.
    #[error(
        "coordinates {first} and {second} (counted from 0) of the gradient are swapped: along each of them the losses of {samples} samples \
         change as the other one says"
    )]
    Swapped {
        /// One of them, counted from 0.
        first: usize,
        /// The other.
        second: usize,
        /// How many samples.
        samples: u64,
    },
    /// A coordinate of the gradient that does not belong to the losses, beside others that do.
    #[error(
        "coordinate {coordinate} (counted from 0) of the gradient does not belong to the loss, and others do: in {disagreeing} of {samples} \
         samples the loss changes at another rate than the gradient says ({losses:.4e} against {gradients:.4e} in the mean)"
    )]
    Coordinate {
        /// Which, counted from 0.
        coordinate: usize,
        /// The mean rate of change of the losses along it.
        losses: f64,
        /// The mean of the gradients along it.
        gradients: f64,
        /// In how many samples they differ.
        disagreeing: u64,
        /// How many samples.
        samples: u64,
    },
}

impl Slip {
    /// True if it is about losses beside gradients.
    pub fn is_of_losses(&self) -> bool {
        matches!(
            self,
            Self::Loss { .. }
                | Self::ConstantLoss { .. }
                | Self::Forgotten { .. }
                | Self::Swapped { .. }
                | Self::Coordinate { .. }
        )
    }
}

fn loss_sentence(
    losses: f64,
    gradients: f64,
    difference: f64,
    error: f64,
    factor: Option<f64>,
    disagreeing: Option<u64>,
    samples: u64,
) -> String {
    let rates = format!(
        "the loss does not belong to the gradient: along a direction the losses of {samples} samples change at the rate {losses:.4e} in \
         the mean, where their gradients say {gradients:.4e}"
    );
    match (factor, disagreeing) {
        (Some(factor), _) => {
            format!("{rates}; the gradient of each sample is {factor:.4} times what its loss says")
        }
        (None, Some(wrong)) => format!(
            "{rates}; they differ in {wrong} samples (if the gradient of a sample is not that of its loss, as with likelihood ratios, declare \
             pathwise = false, and only the means are compared)"
        ),
        (None, None) => format!(
            "{rates}; the difference is {difference:.1e}, and chance and rounding explain {error:.1e}"
        ),
    }
}

/// The slips as one line of sentences.
pub fn sentences(slips: &[Slip]) -> String {
    slips.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
