//! Absolute values and squares.

use std::sync::Arc;

use super::{
    Key, Kind, Numbers, Outside, Piece, Steps, Term, TermError, entry, finite_and_non_negative, not_a_number,
    one_or_each,
};

/// sum a_i |x_i| + b_i x_i^2/2. With a = 0 it is a ridge.
#[derive(Debug, Clone, PartialEq)]
pub struct ElasticNet {
    /// The weights a: one, or one for each coordinate.
    pub l1: Vec<f64>,
    /// The weights b: one, or one for each coordinate.
    pub l2: Vec<f64>,
}

pub(super) const KIND: Kind = Kind {
    name: "elastic-net",
    formula: "sum of l1 |x_i| + l2 x_i^2/2",
    keys: &[
        Key::required("l1", "a number or a list, at least 0"),
        Key::required("l2", "a number or a list, at least 0"),
    ],
    example: r#"{"kind": "elastic-net", "l1": 0.5, "l2": [0, 1, 2, 0, 1, 0.1]}"#,
    build: |spec, _| {
        let weights = |numbers: &Option<Numbers>| numbers.clone().map_or_else(Vec::new, |weight| weight.0);
        Ok(Arc::new(ElasticNet { l1: weights(&spec.l1), l2: weights(&spec.l2) }))
    },
};

impl ElasticNet {
    fn at(&self, i: usize) -> Piece {
        Piece { l1: entry(&self.l1, i), l2: entry(&self.l2, i), ..Piece::default() }
    }
}

impl Term for ElasticNet {
    fn identity(&self) -> String {
        format!("elastic net, l1 {:?}, l2 {:?}", self.l1, self.l2)
    }

    fn check(&self, dim: usize) -> Result<(), TermError> {
        for (name, weights) in [("l1", &self.l1), ("l2", &self.l2)] {
            one_or_each(name, weights, dim)?;
            finite_and_non_negative(name, weights)?;
        }
        Ok(())
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
