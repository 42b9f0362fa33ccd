//! A ball around a point.

use std::sync::Arc;

use super::{Key, Kind, Outside, Steps, Term, TermError, entry, norm, not_a_number, one_or_each, root};

/// |x - centre| <= radius.
#[derive(Debug, Clone, PartialEq)]
pub struct Ball {
    /// The centre: one number, or one for each coordinate.
    pub centre: Vec<f64>,
    /// The radius.
    pub radius: f64,
}

pub(super) const KIND: Kind = Kind {
    name: "ball",
    formula: "|x - centre| <= radius",
    keys: &[
        Key::required("radius", "a number, at least 0"),
        Key::optional("centre", "a number or a list; 0 by default"),
    ],
    example: r#"{"kind": "ball", "radius": 2, "centre": [1, 0, 0, 0, 0, -1]}"#,
    build: |spec, _| {
        let centre = spec.centre.clone().map_or_else(|| vec![0.0], |centre| centre.0);
        Ok(Arc::new(Ball { centre, radius: spec.radius.unwrap_or(f64::NAN) }))
    },
};

/// Ratios of steps or lengths below this count as this.
const NEVER: f64 = 1e-100;

impl Ball {
    /// x - centre, coordinate by coordinate.
    fn offsets<'a>(&'a self, x: &'a [f64]) -> impl Iterator<Item = f64> + Clone + 'a {
        let difference = |(i, x): (usize, &f64)| (x - entry(&self.centre, i)).clamp(f64::MIN, f64::MAX);
        x.iter().enumerate().map(difference)
    }

    /// Moves x by a few rounding errors towards the centre until it is inside.
    fn pull_in(&self, x: &mut [f64]) {
        let mut shrink = f64::EPSILON;
        while norm(self.offsets(x)) > self.radius {
            for (i, x) in x.iter_mut().enumerate() {
                let centre = entry(&self.centre, i);
                // At shrink = 1 this is the centre itself.
                *x = centre + (*x - centre) * (1.0 - shrink);
            }
            shrink = (2.0 * shrink).min(1.0);
        }
    }
}

impl Term for Ball {
    fn identity(&self) -> String {
        format!("ball, centre {:?}, radius {:?}", self.centre, self.radius)
    }

    fn check(&self, dim: usize) -> Result<(), TermError> {
        one_or_each("centre", &self.centre, dim)?;
        if let Some(wrong) = self.centre.iter().find(|c| !c.is_finite()) {
            return Err(TermError(format!("centre must be finite, but is {wrong}")));
        }
        if !(self.radius.is_finite() && self.radius >= 0.0) {
            let radius = self.radius;
            return Err(TermError(format!("radius must be finite and at least 0, but is {radius}")));
        }
        Ok(())
    }

    fn value(&self, x: &[f64]) -> f64 {
        if self.outside(x).is_none() { 0.0 } else { f64::INFINITY }
    }

    /// z - centre = d/(1 + lambda gamma), d = v - centre, with the lambda >= 0 at which its length is the radius: a bisection unless all
    /// gamma are equal.
    fn prox(&self, steps: Steps<'_>, v: &mut [f64]) {
        let largest = self.offsets(v).fold(0.0, |most: f64, d| most.max(d.abs()));
        // In units of the largest coordinate, nothing overflows.
        let mut d: Vec<f64> = self.offsets(v).map(|d| d / largest).collect();
        let length = norm(d.iter().copied());
        if largest == 0.0 || largest * length <= self.radius {
            return;
        }
        let radius = self.radius / largest;
        if let Steps::Each(gammas) = steps {
            let most = gammas.iter().fold(0.0, |most: f64, &gamma| most.max(gamma));
            let ratio = |gamma: &f64| (gamma / most).max(NEVER);
            let least = gammas.iter().map(ratio).fold(1.0, f64::min);
            let low = length / radius - 1.0;
            let shrunk =
                |lambda: f64| d.iter().zip(gammas).map(move |(d, gamma)| d / (1.0 + lambda * ratio(gamma)));
            d = if low < 1.0 / NEVER {
                let lambda = root(low, low / least, |lambda| radius - norm(shrunk(lambda)));
                shrunk(lambda).collect()
            } else {
                // The limit of a small radius.
                d.iter().zip(gammas).map(|(d, gamma)| d / ratio(gamma)).collect()
            };
        }
        let length = norm(d.iter().copied());
        for (i, (v, d)) in v.iter_mut().zip(&d).enumerate() {
            *v = entry(&self.centre, i) + d / length * self.radius;
        }
        self.pull_in(v);
    }

    fn outside(&self, x: &[f64]) -> Option<Outside> {
        if let Some(outside) = not_a_number(x) {
            return Some(outside);
        }
        let distance = norm(self.offsets(x));
        let words = format!("x is {distance} from the centre, more than the radius {}", self.radius);
        (distance > self.radius).then_some(Outside { coordinate: None, words })
    }

    /// A subgradient v that is not 0 points out of the ball at a z on its boundary, and |x - centre| <= radius says
    /// <z - centre, x - z> <= -|x - z|^2/2: so <v, x - z> <= -(|v|/radius) |x - z|^2/2.
    fn modulus(&self, _: &[f64], least: f64, _: f64) -> f64 {
        if self.radius > 0.0 { least / self.radius } else { 0.0 }
    }
}
