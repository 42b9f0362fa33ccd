//! Second-order steps on a table: with few coordinates, the quickest way to a gradient of zero.
//!
//! Each step solves H v = -grad f(x) with the [second derivatives](Linear::hessian) of all rows and a Cholesky factor, and halves v until the
//! loss falls. For least squares H is formed once: the first step is the direct solution by normal equations, and those after it refine it by
//! exact gradients, which makes up for the digits that normal equations lose.
//!
//! ```
//! use std::sync::Arc;
//!
//! use pasta_opt::gate::Gate;
//! use pasta_opt::newton::Newton;
//! use pasta_opt::table::{Dense, Design, Features, Linear, Loss, Table};
//! use pasta_opt::walk::Walk;
//!
//! // y = 3 a - 1 at a = 0, 1, 2, 3.
//! let features = Features::Dense(Dense { rows: 4, columns: 1, values: vec![0.0, 1.0, 2.0, 3.0].into() });
//! let table = Table::new(features, Arc::new(vec![-1.0, 2.0, 5.0, 8.0]), None, Vec::new())?;
//! let plain = Design { standardise: false, ..Design::default() };
//! let problem = Arc::new(Linear::new(Arc::new(table), Loss::LeastSquares, plain)?);
//! let mut gate = Gate::over(problem.clone(), 1);
//! let end = Newton::start(problem, 1e-12)?.finish(&mut gate)?;
//! assert!((end.point[0] - 3.0).abs() < 1e-12 && (end.point[1] + 1.0).abs() < 1e-12);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::sync::Arc;

use crate::checkpoint::Saver;
use crate::draws::Role;
use crate::estimator::Kind;
use crate::gate::{Gate, Halt};
use crate::kernels::{along, dot, squared_distance, squared_norm};
use crate::oracle::{Answer, Charge, Request};
use crate::stop::Stop;
use crate::table::{Class, Factor, Linear, Loss, MOST_FULL, TableError};
use crate::walk::{Advance, Record, View, Walk};

/// A run of second-order steps on a table.
#[derive(Debug, Clone)]
pub struct Newton {
    linear: Arc<Linear>,
    target: f64,
    start: Vec<f64>,
    x: Vec<f64>,
    /// f and its gradient at x, once they are known.
    here: Option<(f64, Vec<f64>)>,
    /// The factor, where it is the same everywhere.
    factor: Option<Factor>,
    steps: u64,
    ended: Option<Stop>,
}

/// A step is halved so often before the run ends.
const HALVINGS: u32 = 40;
/// Of the fall that the slope promises, a step must have this share.
const ENOUGH: f64 = 1e-4;
/// Steps that many losses never need.
const MOST_STEPS: u64 = 200;

impl Newton {
    /// A run from the usual start, until |grad f| is at most the target. Refuses losses that are not smooth and convex, and more
    /// coordinates than a matrix should have.
    pub fn start(linear: Arc<Linear>, target: f64) -> Result<Self, TableError> {
        let name = linear.loss().row().name;
        if !matches!(linear.loss().row().class, Class::SmoothConvex | Class::LocallySmoothConvex) {
            return Err(TableError::NotSmoothConvex { loss: name });
        }
        if linear.dim() > MOST_FULL {
            let got = linear.dim() as f64;
            return Err(TableError::Setting {
                name: "coordinates of a second-order method",
                needs: "at most 512",
                got,
            });
        }
        let start = linear.start();
        let x = start.clone();
        Ok(Self { linear, target, start, x, here: None, factor: None, steps: 0, ended: None })
    }

    fn evaluate(gate: &mut Gate, x: &[f64]) -> Result<(f64, Vec<f64>), Halt> {
        let (mut gradient, mut losses) = (vec![0.0; x.len()], [0.0]);
        let mut answer = Answer { losses: &mut losses, ..Answer::new(&mut gradient) };
        gate.ask(Request { losses: true, ..Request::everything(Role::Large, &[x]) }, &mut answer)?;
        Ok((losses[0], gradient))
    }

    /// The direction of a step from x, where the gradient is g.
    fn direction(&mut self, gate: &mut Gate, gradient: &[f64]) -> Result<Option<Vec<f64>>, Halt> {
        if self.factor.is_none() {
            let rows = self.linear.table().rows() as u128;
            gate.count(Role::Large, Charge { samples: rows, evaluations: rows, exact: true })?;
            self.factor = self.linear.hessian(&self.x).factor();
        }
        let v = self.factor.as_ref().map(|factor| factor.solve(gradient));
        if self.linear.loss() != Loss::LeastSquares {
            self.factor = None;
        }
        Ok(v.map(|v| v.iter().map(|v| -v).collect()))
    }

    fn step(&mut self, gate: &mut Gate) -> Result<(), Halt> {
        let (value, gradient) = match self.here.take() {
            Some(here) => here,
            None => Self::evaluate(gate, &self.x)?,
        };
        let settle = |this: &mut Self, value, gradient| {
            this.ended = Some(Stop::Settled);
            this.here = Some((value, gradient));
            Ok(())
        };
        let length2 = squared_norm(&gradient);
        if length2.sqrt() <= self.target || self.steps >= MOST_STEPS {
            return settle(self, value, gradient);
        }
        let Some(way) = self.direction(gate, &gradient)? else { return settle(self, value, gradient) };
        let slope = dot(&way, &gradient);
        let mut share = 1.0;
        for _ in 0..HALVINGS {
            let there = along(&self.x, share, &way);
            match Self::evaluate(gate, &there) {
                // At the end f no longer shows what the gradient does.
                Ok((lower, next))
                    if lower <= value + ENOUGH * share * slope
                        || (squared_norm(&next) < 0.25 * length2 && lower <= value + 1e-9 * value.abs()) =>
                {
                    self.x = there;
                    self.here = Some((lower, next));
                    return Ok(());
                }
                Ok(_) | Err(Halt::NotFinite { .. }) => share *= 0.5,
                Err(halt) => return Err(halt),
            }
        }
        settle(self, value, gradient)
    }
}

impl Walk for Newton {
    fn advance(&mut self, gate: &mut Gate) -> Result<Advance, Halt> {
        if let Some(stop) = self.ended {
            return Ok(Advance::Stop(stop));
        }
        let (before, mut next) = (gate.ledger().clone(), self.clone());
        if let Err(halt) = next.step(gate) {
            if halt.drops_work() {
                gate.rewind(before);
            }
            return Err(halt);
        }
        next.steps += 1;
        *self = next;
        if let Some(stop) = self.ended {
            return Ok(Advance::Stop(stop));
        }
        let n = u64::try_from(gate.ledger().samples() - before.samples()).unwrap_or(u64::MAX);
        let distance2 = squared_distance(&self.x, &self.start);
        Ok(Advance::Step(Record { epoch: self.steps, t: 0, kind: Kind::Fresh, n, distance2 }))
    }

    fn view(&self) -> View<'_> {
        let mut view = View::new(self.steps, &self.start, &self.x);
        view.ended = self.ended;
        view
    }

    fn save<'a>(&'a self, to: &mut Saver<'a>) {
        to.put("newton", &(self.steps, self.ended), [&self.start[..], &self.x[..]]);
    }
}

/// Whether f falls for ever from x, where it is nearly at its least: the loss has no minimiser.
///
/// A few steps of second order come first: where some directions have a minimiser, they all but reach it. Let v be the step after them, so that f is to fall by
/// g'v/2. Where f has a minimiser, v ends close to it, and a thousand times as far f is higher by 500,000 g'v. Where some rows can be told
/// apart with certainty, or counts are zero wherever a column is not, f does not rise at all. What is between counts as a minimiser.
///
/// Costs about ten passes; `None` where there are too many coordinates, or the loss always has a minimiser in such directions.
pub fn falls_for_ever(linear: &Arc<Linear>, gate: &mut Gate, x: &[f64]) -> Result<Option<bool>, Halt> {
    const FAR: f64 = 1000.0;
    const POLISHED: u32 = 3;
    let grows = matches!(linear.loss(), Loss::Logistic | Loss::Multinomial { .. } | Loss::Poisson);
    if linear.dim() > MOST_FULL || !grows {
        return Ok(None);
    }
    let (start, x) = (x.to_vec(), x.to_vec());
    let mut newton = Newton {
        linear: Arc::clone(linear),
        target: 0.0,
        start,
        x,
        here: None,
        factor: None,
        steps: 0,
        ended: None,
    };
    for _ in 0..POLISHED {
        newton.step(gate)?;
        if newton.ended.is_some() {
            break;
        }
    }
    let (value, gradient) = match newton.here.take() {
        Some(here) => here,
        None => Newton::evaluate(gate, &newton.x)?,
    };
    // Where f has no curvature left in any direction, every score is beyond all others' reach.
    let Some(way) = newton.direction(gate, &gradient)? else { return Ok(Some(true)) };
    let rise = -0.5 * FAR * FAR * dot(&gradient, &way);
    // A gradient that is all rounding points anywhere, also where f is flat.
    if rise <= 1e-9 * value.abs() {
        return Ok(Some(false));
    }
    match Newton::evaluate(gate, &along(&newton.x, FAR, &way)) {
        Ok((there, _)) => Ok(Some(there < value + 0.01 * rise)),
        Err(Halt::NotFinite { .. }) => Ok(Some(false)),
        Err(halt) => Err(halt),
    }
}
