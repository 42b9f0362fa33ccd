//! Bounds on coordinates.

use super::{Outside, Steps, Term, TermError};

/// lower <= x <= upper, coordinate by coordinate; ends may be infinite. One number holds for all coordinates.
#[derive(Debug, Clone, PartialEq)]
pub struct Interval {
    /// The lower ends: one, or one for each coordinate.
    pub lower: Vec<f64>,
    /// The upper ends: one, or one for each coordinate.
    pub upper: Vec<f64>,
}

impl Interval {
    fn ends(&self, i: usize) -> (f64, f64) {
        let end = |ends: &[f64]| if ends.len() == 1 { ends[0] } else { ends[i] };
        (end(&self.lower), end(&self.upper))
    }
}

impl Term for Interval {
    fn identity(&self) -> String {
        format!("box, lower {:?}, upper {:?}", self.lower, self.upper)
    }

    fn check(&self, dim: usize) -> Result<(), TermError> {
        for (name, ends) in [("lower", &self.lower), ("upper", &self.upper)] {
            if ends.len() != 1 && ends.len() != dim {
                let n = ends.len();
                return Err(TermError(format!(
                    "{name} has {n} numbers for {dim} coordinates: give 1 or {dim}"
                )));
            }
        }
        for i in 0..dim {
            let (lower, upper) = self.ends(i);
            // Not a number is in no order.
            let holds = lower <= upper && lower < f64::INFINITY && upper > f64::NEG_INFINITY;
            if !holds {
                return Err(TermError(format!(
                    "coordinate {i} lies nowhere: lower = {lower}, upper = {upper}"
                )));
            }
        }
        Ok(())
    }

    fn value(&self, x: &[f64]) -> f64 {
        if self.outside(x).is_none() { 0.0 } else { f64::INFINITY }
    }

    fn prox(&self, _: Steps<'_>, v: &mut [f64]) {
        for (i, v) in v.iter_mut().enumerate() {
            let (lower, upper) = self.ends(i);
            *v = v.max(lower).min(upper);
        }
    }

    fn outside(&self, x: &[f64]) -> Option<Outside> {
        x.iter().enumerate().find_map(|(i, &x)| {
            let (lower, upper) = self.ends(i);
            let words = if x < lower {
                format!("x{i} = {x} is below {lower}")
            } else if x > upper {
                format!("x{i} = {x} is above {upper}")
            } else if x.is_nan() {
                format!("x{i} is not a number")
            } else {
                return None;
            };
            Some(Outside { coordinate: Some(i), words })
        })
    }
}
