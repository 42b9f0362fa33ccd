//! Bounds on coordinates.

use std::sync::Arc;

use super::{Key, Kind, Outside, Piece, Steps, Term, TermError, entry, one_or_each};

/// lower <= x <= upper, coordinate by coordinate; ends may be infinite. One number holds for all coordinates.
#[derive(Debug, Clone, PartialEq)]
pub struct Interval {
    /// The lower ends: one, or one for each coordinate.
    pub lower: Vec<f64>,
    /// The upper ends: one, or one for each coordinate.
    pub upper: Vec<f64>,
}

pub(super) const KIND: Kind = Kind {
    name: "box",
    formula: "lower <= x <= upper",
    keys: &[
        Key::optional("lower", "a number or a list; -inf by default"),
        Key::optional("upper", "a number or a list; inf by default"),
    ],
    example: r#"{"kind": "box", "lower": [-1, 0, 0, "-inf", 1, 2], "upper": [1, "inf", 0, 0.5, 1, 3]}"#,
    build: |spec, _| {
        if spec.lower.is_none() && spec.upper.is_none() {
            return Err(TermError("give lower, upper or both".into()));
        }
        let lower = spec.lower.clone().map_or_else(|| vec![f64::NEG_INFINITY], |lower| lower.0);
        let upper = spec.upper.clone().map_or_else(|| vec![f64::INFINITY], |upper| upper.0);
        Ok(Arc::new(Interval { lower, upper }))
    },
};

pub(super) const NON_NEGATIVE: Kind = Kind {
    name: "non-negative",
    formula: "x >= 0",
    keys: &[],
    example: r#"{"kind": "non-negative"}"#,
    build: |_, _| Ok(Arc::new(Interval { lower: vec![0.0], upper: vec![f64::INFINITY] })),
};

impl Interval {
    fn ends(&self, i: usize) -> (f64, f64) {
        (entry(&self.lower, i), entry(&self.upper, i))
    }
}

impl Term for Interval {
    fn identity(&self) -> String {
        format!("box, lower {:?}, upper {:?}", self.lower, self.upper)
    }

    fn check(&self, dim: usize) -> Result<(), TermError> {
        one_or_each("lower", &self.lower, dim)?;
        one_or_each("upper", &self.upper, dim)?;
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

    fn piece(&self, i: usize) -> Option<Piece> {
        let (lower, upper) = self.ends(i);
        Some(Piece { lower, upper, ..Piece::default() })
    }
}
