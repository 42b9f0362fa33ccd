//! Offsets: what a row adds to its score, a number that is known and not fitted.
//!
//! A loss of z + o with the label y is one of z with another label: y - o where it depends on z - y, and for counts e^o times that of y e^-o, up to a
//! constant. So rows with offsets are rows without, and whatever holds for these holds for them.

use super::{Loss, TableError};
use crate::kernels::elementary::exp;

/// Beyond this e^o is no number, or 0.
const MOST: f64 = 700.0;

impl Loss {
    /// Moves offsets into labels and weights. Refuses losses that have no labels for that, those of classes, and offsets of counts beyond 700 in size.
    ///
    /// ```
    /// use pasta_opt::table::Loss;
    ///
    /// let (mut labels, mut weights) = (vec![3.0, 8.0], None);
    /// Loss::LeastSquares.absorb(&[1.0, -1.0], &mut labels, &mut weights)?;
    /// assert_eq!((labels, weights), (vec![2.0, 9.0], None));
    /// // Counts become rates, which weigh as much as their exposure.
    /// let (mut labels, mut weights) = (vec![3.0, 8.0], None);
    /// Loss::Poisson.absorb(&[0.0, 4_f64.ln()], &mut labels, &mut weights)?;
    /// assert!((labels[1] - 2.0).abs() < 1e-14 && (weights.unwrap()[1] - 4.0).abs() < 1e-14);
    /// # Ok::<(), pasta_opt::table::TableError>(())
    /// ```
    pub fn absorb(
        &self,
        offsets: &[f64],
        labels: &mut [f64],
        weights: &mut Option<Vec<f64>>,
    ) -> Result<(), TableError> {
        self.check_labels(labels)?;
        let (needs, got) = (labels.len(), offsets.len());
        if needs != got {
            return Err(TableError::Shape { what: "offsets", needs, got });
        }
        match self {
            Self::LeastSquares
            | Self::Huber { .. }
            | Self::Absolute
            | Self::Quantile { .. }
            | Self::Cauchy { .. }
            | Self::Welsch { .. }
            | Self::Tukey { .. } => {
                labels.iter_mut().zip(offsets).for_each(|(label, offset)| *label -= offset);
                Ok(())
            }
            Self::Poisson => {
                if let Some(got) = offsets.iter().copied().find(|offset| offset.abs() > MOST) {
                    let name = "an offset of counts";
                    return Err(TableError::Setting { name, needs: "between -700 and 700", got });
                }
                let weights = weights.get_or_insert_with(|| vec![1.0; labels.len()]);
                for ((label, weight), offset) in labels.iter_mut().zip(weights).zip(offsets) {
                    let exposure = exp(*offset);
                    (*label, *weight) = (*label / exposure, *weight * exposure);
                }
                Ok(())
            }
            _ => Err(TableError::NoOffset { loss: self.row().name }),
        }
    }

    /// What a mean, or the end of an interval, of a row without its offset is with it.
    pub fn with_offset(&self, mean: f64, offset: f64) -> f64 {
        if *self == Self::Poisson { mean * exp(offset) } else { mean + offset }
    }
}
