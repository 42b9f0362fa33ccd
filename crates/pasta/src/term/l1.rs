//! Absolute values, weighted.

use std::sync::Arc;

use super::{
    Key, Kind, Outside, Piece, Steps, Term, TermError, entry, finite_and_non_negative, not_a_number,
    one_or_each,
};

/// sum w_i |x_i|: it makes coordinates exactly 0. A coordinate of weight 0 is free.
#[derive(Debug, Clone, PartialEq)]
pub struct L1 {
    /// The weights w: one, or one for each coordinate.
    pub weight: Vec<f64>,
}

pub(super) const KIND: Kind = Kind {
    name: "l1",
    formula: "sum of weight |x_i|",
    keys: &[Key::required("weight", "a number or a list, at least 0")],
    example: r#"{"kind": "l1", "weight": [0.5, 0, 1, 2, 0.1, 0.5]}"#,
    build: |spec, _| {
        let weight = spec.weight.clone().map_or_else(Vec::new, |weight| weight.0);
        Ok(Arc::new(L1 { weight }))
    },
};

impl L1 {
    fn at(&self, i: usize) -> Piece {
        Piece { l1: entry(&self.weight, i), ..Piece::default() }
    }
}

impl Term for L1 {
    fn identity(&self) -> String {
        format!("l1, weight {:?}", self.weight)
    }

    fn check(&self, dim: usize) -> Result<(), TermError> {
        one_or_each("weight", &self.weight, dim)?;
        finite_and_non_negative("weight", &self.weight)
    }

    fn value(&self, x: &[f64]) -> f64 {
        x.iter().enumerate().map(|(i, &x)| self.at(i).value(x)).sum()
    }

    fn prox(&self, steps: Steps<'_>, v: &mut [f64]) {
        for (i, v) in v.iter_mut().enumerate() {
            *v = self.at(i).prox(steps.at(i), *v);
        }
    }

    fn outside(&self, x: &[f64]) -> Option<Outside> {
        not_a_number(x)
    }

    fn piece(&self, i: usize) -> Option<Piece> {
        Some(self.at(i))
    }
}
