//! Logarithms that keep coordinates positive.

use std::sync::Arc;

use super::{Key, Kind, Outside, Piece, Steps, Term, TermError, entry, one_or_each};

/// -sum w_i log x_i on x > 0, as in the entropy of scales.
#[derive(Debug, Clone, PartialEq)]
pub struct LogBarrier {
    /// The weights w > 0: one, or one for each coordinate.
    pub weight: Vec<f64>,
}

pub(super) const KIND: Kind = Kind {
    name: "log",
    formula: "-sum of weight log x_i, x > 0",
    keys: &[Key::optional("weight", "a number or a list, above 0; 1 by default")],
    example: r#"{"kind": "log", "weight": 0.5}"#,
    build: |spec, _| {
        let weight = spec.weight.clone().map_or_else(|| vec![1.0], |weight| weight.0);
        Ok(Arc::new(LogBarrier { weight }))
    },
};

impl LogBarrier {
    fn at(&self, i: usize) -> Piece {
        Piece { log_weight: entry(&self.weight, i), ..Piece::default() }
    }
}

impl Term for LogBarrier {
    fn identity(&self) -> String {
        format!("log barrier, weight {:?}", self.weight)
    }

    fn check(&self, dim: usize) -> Result<(), TermError> {
        one_or_each("weight", &self.weight, dim)?;
        match self.weight.iter().find(|&&w| !(w.is_finite() && w > 0.0)) {
            Some(wrong) => Err(TermError(format!("weight must be finite and above 0, but is {wrong}"))),
            None => Ok(()),
        }
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
        x.iter().enumerate().find_map(|(i, &x)| self.at(i).leaves(i, x))
    }

    fn piece(&self, i: usize) -> Option<Piece> {
        Some(self.at(i))
    }
}
