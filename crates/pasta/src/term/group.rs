//! Lengths of groups of coordinates.

use std::sync::Arc;

use super::{
    Key, Kind, Outside, Steps, Term, TermError, entry, finite_and_non_negative, norm, not_a_number, root,
};

/// sum over groups of w_g |x_g|: it makes whole groups exactly 0. Groups share no coordinate; coordinates in no group are free.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupL2 {
    /// The coordinates of each group.
    pub groups: Vec<Vec<usize>>,
    /// The weights w: one, or one for each group.
    pub weight: Vec<f64>,
}

pub(super) const KIND: Kind = Kind {
    name: "group-l2",
    formula: "sum over groups of weight |x_group|",
    keys: &[
        Key::required("weight", "a number or a list with one for each group"),
        Key::optional("groups", "lists of coordinates, counted from 0 inside the block"),
        Key::optional("size", "the size of consecutive groups, instead of groups"),
    ],
    example: r#"{"kind": "group-l2", "weight": 0.7, "size": 2}"#,
    build: |spec, dim| {
        let groups = match (&spec.groups, spec.size) {
            (Some(groups), None) => groups.clone(),
            (None, Some(size)) if size > 0 && dim % size == 0 => {
                (0..dim / size).map(|g| (g * size..(g + 1) * size).collect()).collect()
            }
            (None, Some(size)) => {
                return Err(TermError(format!("size {size} does not divide {dim} coordinates")));
            }
            _ => return Err(TermError("give either groups or size".into())),
        };
        let weight = spec.weight.clone().map_or_else(Vec::new, |weight| weight.0);
        Ok(Arc::new(GroupL2 { groups, weight }))
    },
};

/// |x_group|.
fn length(group: &[usize], x: &[f64]) -> f64 {
    norm(group.iter().map(|&i| x[i]))
}

impl Term for GroupL2 {
    fn identity(&self) -> String {
        format!("group l2, groups {:?}, weight {:?}", self.groups, self.weight)
    }

    fn check(&self, dim: usize) -> Result<(), TermError> {
        let (n, groups) = (self.weight.len(), self.groups.len());
        if n != 1 && n != groups {
            return Err(TermError(format!("weight has {n} numbers for {groups} groups: give 1 or {groups}")));
        }
        finite_and_non_negative("weight", &self.weight)?;
        let mut seen = vec![false; dim];
        for &i in self.groups.iter().flatten() {
            match seen.get_mut(i) {
                None => {
                    return Err(TermError(format!(
                        "a group has coordinate {i}, but there are only {dim} (the first is 0)"
                    )));
                }
                Some(true) => {
                    return Err(TermError(format!("coordinate {i} is in two groups, or twice in one")));
                }
                Some(seen) => *seen = true,
            }
        }
        Ok(())
    }

    fn value(&self, x: &[f64]) -> f64 {
        if self.outside(x).is_some() {
            return f64::INFINITY;
        }
        let groups = self.groups.iter().enumerate();
        groups.map(|(g, group)| entry(&self.weight, g) * length(group, x)).sum()
    }

    /// z_i = v_i rho/(rho + gamma_i w) with rho = |z|: closed if the group's gamma are equal, else by bisection.
    fn prox(&self, steps: Steps<'_>, v: &mut [f64]) {
        for (g, group) in self.groups.iter().enumerate() {
            let weight = entry(&self.weight, g);
            let length = length(group, v);
            if weight == 0.0 || length == 0.0 {
                continue;
            }
            // 0 is the minimiser if and only if |v_i/gamma_i| <= w.
            if norm(group.iter().map(|&i| v[i] / steps.at(i))) <= weight {
                group.iter().for_each(|&i| v[i] = 0.0);
                continue;
            }
            let shifts = group.iter().map(|&i| steps.at(i) * weight);
            let most = shifts.clone().fold(0.0, f64::max);
            let least = shifts.fold(f64::INFINITY, f64::min);
            let rho = if most > least {
                let one = |rho: f64| norm(group.iter().map(|&i| v[i] / (rho + steps.at(i) * weight)));
                root((length - most).max(0.0), length - least, |rho| 1.0 - one(rho))
            } else {
                (length - most).max(0.0)
            };
            for &i in group {
                v[i] *= if rho > 0.0 { 1.0 / (1.0 + steps.at(i) * weight / rho) } else { 0.0 };
            }
        }
    }

    fn outside(&self, x: &[f64]) -> Option<Outside> {
        not_a_number(x)
    }
}
