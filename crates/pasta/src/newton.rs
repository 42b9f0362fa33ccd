//! Second-order steps on a table: for a smooth convex loss, the quickest way to a gradient of zero.
//!
//! Each step solves H v = -grad f(x) with a Cholesky factor of the [second derivatives](Linear::hessian) of all rows at this point or an earlier
//! one, corrected by what the gradients of the steps since then said about curvature (L-BFGS with H as its first matrix). A new matrix is
//! made where the way that is left would take more passes than the matrix costs. Where it costs many passes, its diagonal stands for it at
//! first, and with more than 512 weights of a score to the end; where rows have several scores, one matrix for the columns serves all of them. For least squares the first step is
//! the direct solution by normal equations, and those after it refine it by exact gradients, which makes up for the digits that normal equations
//! lose. Where columns nearly depend on each other, the factor is made of the rows themselves, by a QR factorisation, which loses half as many.
//!
//! A fit without a target of its own takes a few steps more, until rounding is all that is left: by gradients in twice the precision, where the columns ask for that.
//!
//! Second derivatives may vanish where a run begins (all rows on the flat part of Huber's loss) or say nothing about the next point. So H counts each row
//! by a curvature between its second derivative and one that majorises its loss, whose step always leads down. A run begins with the majoriser; each
//! matrix that keeps its promise makes the next one bolder, and each that breaks it more cautious, as in the method of Levenberg and Marquardt.
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

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::auto::memory::{Base, Memory, Pair};
use crate::checkpoint::{Checkpoint, CheckpointError, Saver};
use crate::draws::Role;
use crate::estimator::Kind;
use crate::gate::{Gate, Halt};
use crate::kernels::double::Double;
use crate::kernels::{along, dot, minus, squared_distance, squared_norm};
use crate::oracle::{Answer, Charge, Request};
use crate::stop::Stop;
use crate::table::{Class, Columns, Factor, Linear, Loss, MOST_FULL, TableError, Tails};
use crate::walk::{Advance, Record, View, Walk};

/// When a run ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Until {
    /// |grad f| is at most this.
    Gradient(f64),
    /// It is, and a step by a whole matrix no longer promises to lower f where that counts.
    Flat(f64),
}

/// A run of second-order steps on a table.
#[derive(Debug, Clone)]
pub struct Newton {
    linear: Arc<Linear>,
    until: Until,
    /// f at the start, once it is known.
    first: Option<f64>,
    start: Vec<f64>,
    x: Vec<f64>,
    /// f and its gradient at x, once they are known.
    here: Option<(f64, Vec<f64>)>,
    factor: Option<Arc<Curved>>,
    /// What the first whole matrix said about the columns.
    columns: Option<Arc<Columns>>,
    /// What the steps since then said.
    memory: Arc<Memory>,
    /// The share of the majoriser in the next matrix.
    caution: f64,
    /// |grad f| at the points since then.
    norms: Vec<f64>,
    steps: u64,
    ended: Option<Stop>,
}

/// The factor of second derivatives at a point of the run.
#[derive(Debug, Clone)]
struct Curved {
    factor: Factor,
    /// Whether it is whole, for the coordinates of one score, or the diagonal of all.
    whole: bool,
    /// The share of the majoriser in it.
    caution: f64,
    /// Where it was made.
    at: Vec<f64>,
}

impl Curved {
    /// The factor of the matrix at a point; `None` if that is zero or not finite.
    fn new(linear: &Linear, at: &[f64], whole: bool, caution: f64, columns: &Columns) -> Option<Self> {
        let factor = if whole {
            linear.factor_of_one(at, caution, columns)?
        } else {
            linear.hessian_diagonal(at, caution).factor()?
        };
        Some(Self { factor, whole, caution, at: at.to_vec() })
    }
}

impl Base for Factor {
    /// One factor may serve the coordinates of several scores.
    fn solve(&self, scale: f64, v: &mut [f64]) {
        for v in v.chunks_mut(self.dim()) {
            let solved = Self::solve(self, v);
            v.iter_mut().zip(solved).for_each(|(v, solved)| *v = scale * solved);
        }
    }

    fn squared(&self, v: impl Iterator<Item = f64>) -> f64 {
        let v: Vec<f64> = v.collect();
        v.chunks(self.dim()).map(|v| dot(v, &Self::solve(self, v))).sum()
    }
}

/// A point, f and its gradient there.
type Evaluated = (Vec<f64>, f64, Vec<f64>);

/// Trials of a step before the run ends.
const TRIALS: u32 = 40;
/// A promised fall that counts, over f where it is promised and at the start.
const PROMISED: (f64, f64) = (1e-10, 1e-14);
/// Of the fall that the slope promises, a step must have this share; the slope at its end has at most this share of that at its beginning.
const ENOUGH: f64 = 1e-4;
const FLATTER: f64 = 0.9;
/// Losses that are closer than this, relatively, are the same.
const ROUNDING: f64 = 1e-10;
/// A run begins with a whole matrix if that costs at most so many passes; with least squares it ends the run.
const CHEAP: f64 = 8.0;
const CHEAP_AND_FINAL: f64 = 24.0;
/// Passes that are needed after a new matrix.
const AFTER: f64 = 3.0;
/// Steps before a matrix is given up: a diagonal, one for several scores, one that is right.
const PATIENCE: (usize, usize, usize) = (8, 25, 1);
/// Steps back that the present speed is measured over.
const SPEED: usize = 8;
/// Of the fall that a matrix promises for its first whole step: above the first share the next one is bolder, below the second more cautious.
const KEPT: f64 = 0.5;
const BROKEN: f64 = 0.25;
/// How much bolder and more cautious, and from where on at least.
const BOLDER: f64 = 0.05;
const WARIER: f64 = 10.0;
const WARY: f64 = 0.1;
/// The last digits take at most so many steps, and new matrices.
const POLISHES: u32 = 12;
const MATRICES: u32 = 3;
/// Of the fall that a step promises, the next one promises less than the first share, or the step is not taken; above the second a new matrix is worth its price.
const FALLS: f64 = 0.25;
const QUICKLY: f64 = 1e-3;
/// Below this share of <x, H x> a promise is rounding.
const FLOOR: f64 = 1e-26;
/// Plain sums lose digits as columns are far from 0 and depend on each other: up to so many times a rounding, some four digits, sums in twice the precision are not worth their price.
const CAREFUL: f64 = 1e4;

/// Refuses losses that are not smooth and convex, which second-order steps do not fit. For the others they are the quickest way that is known.
pub fn applies(linear: &Linear) -> Result<(), TableError> {
    let row = linear.loss().row();
    match row.class {
        Class::SmoothConvex | Class::LocallySmoothConvex => Ok(()),
        _ => Err(TableError::NotSmoothConvex { loss: row.name }),
    }
}

/// Whether a whole matrix of second derivatives can be had, and costs at most as much as some dozen passes.
pub(crate) fn is_cheap(linear: &Linear) -> bool {
    may_be_whole(linear) && matrix_cost(linear) <= CHEAP_AND_FINAL
}

/// Whether a matrix may be whole: with more weights of a score, its diagonal is all there is.
fn may_be_whole(linear: &Linear) -> bool {
    linear.dim() / linear.loss().outputs() <= MOST_FULL
}

/// The passes that a whole matrix costs: multiplications, where a loss counts as much as twenty.
fn matrix_cost(linear: &Linear) -> f64 {
    let outputs = linear.loss().outputs() as f64;
    let columns = linear.dim() as f64 / outputs;
    let stored = (linear.table().features.entries() as f64 / linear.table().rows() as f64).max(1.0);
    let read = if linear.design().degree > 1 { columns } else { stored };
    0.5 * columns * columns / (outputs * (2.0 * read + 20.0))
}

impl Newton {
    /// A run from the usual start, until |grad f| is at most the target. Refuses losses that are not smooth and convex.
    pub fn start(linear: Arc<Linear>, target: f64) -> Result<Self, TableError> {
        let start = linear.start();
        Self::from(linear, start, Until::Gradient(target), None)
    }

    /// A run from a point, where f and its gradient may be known.
    pub(crate) fn from(
        linear: Arc<Linear>,
        start: Vec<f64>,
        until: Until,
        here: Option<(f64, Vec<f64>)>,
    ) -> Result<Self, TableError> {
        applies(&linear)?;
        let (x, memory) = (start.clone(), Arc::default());
        Ok(Self {
            linear,
            until,
            first: None,
            start,
            x,
            here,
            factor: None,
            columns: None,
            memory,
            caution: 1.0,
            norms: Vec::new(),
            steps: 0,
            ended: None,
        })
    }

    /// f and its gradient at x, which goes through the gate.
    pub(crate) fn evaluate(gate: &mut Gate, role: Role, x: &[f64]) -> Result<(f64, Vec<f64>), Halt> {
        let (mut gradient, mut losses) = (vec![0.0; x.len()], [0.0]);
        let mut answer = Answer { losses: &mut losses, ..Answer::new(&mut gradient) };
        gate.ask(Request { losses: true, ..Request::everything(role, &[x]) }, &mut answer)?;
        Ok((losses[0], gradient))
    }

    /// Whether a matrix should be made here, and then whether it should be whole.
    fn wanted(&self, norm: f64) -> Option<bool> {
        let cost = matrix_cost(&self.linear);
        let squares = self.linear.loss() == Loss::LeastSquares;
        let Some(curved) = &self.factor else {
            let most = if squares { CHEAP_AND_FINAL } else { CHEAP };
            return Some(may_be_whole(&self.linear) && cost <= most);
        };
        if !may_be_whole(&self.linear) {
            // Another diagonal is worth less than what the steps said.
            return None;
        }
        let patience = match (curved.whole, self.linear.loss().outputs()) {
            // Those of least squares are the same everywhere.
            (true, _) if squares => return None,
            (false, _) => PATIENCE.0,
            (true, 1) => PATIENCE.2,
            (true, _) => PATIENCE.1,
        };
        let steps = self.norms.len();
        if steps < patience {
            return None;
        }
        if norm <= self.target() {
            // What is left is for second derivatives alone to see.
            return Some(true);
        }
        let back = steps.min(SPEED);
        // By how much a step lowers ln |grad f|.
        let speed = libm::log(self.norms[steps - back] / norm) / back as f64;
        let left = libm::log(norm / self.target()) / speed;
        (speed <= 0.0 || left > cost + AFTER).then_some(true)
    }

    /// Makes a matrix at x; the first that is whole says what the columns are worth.
    fn look(&mut self, gate: &mut Gate, whole: bool) -> Result<(), Halt> {
        count_pass(&self.linear, gate)?;
        let curved = match &self.columns {
            None if whole => self.first_look(gate)?,
            columns => {
                let columns = columns.clone().unwrap_or_default();
                Curved::new(&self.linear, &self.x, whole, self.caution, &columns)
            }
        };
        self.factor = curved.map(Arc::new);
        self.memory = Arc::default();
        self.norms.clear();
        Ok(())
    }

    /// The first whole matrix. If it loses digits, the rows themselves say which columns depend on others.
    fn first_look(&mut self, gate: &mut Gate) -> Result<Option<Curved>, Halt> {
        let (linear, caution) = (Arc::clone(&self.linear), self.caution);
        let curved = |factor: Factor, at: &[f64]| Curved { factor, whole: true, caution, at: at.to_vec() };
        let Some(factor) = linear.hessian_of_one(&self.x, caution).factor() else { return Ok(None) };
        if let Some(columns) = linear.columns_by(&factor) {
            self.columns = Some(Arc::new(columns));
            return Ok(Some(curved(factor, &self.x)));
        }
        count_pass(&linear, gate)?;
        let (columns, factor) = linear.columns_by_rows();
        let columns = Arc::new(columns);
        self.columns = Some(Arc::clone(&columns));
        match factor {
            Some(factor) if linear.loss() == Loss::LeastSquares => Ok(Some(curved(factor, &self.x))),
            _ => {
                count_pass(&linear, gate)?;
                Ok(Curved::new(&linear, &self.x, true, caution, &columns))
            }
        }
    }

    /// Whether no other matrix would lead further from x than this one.
    fn is_last_resort(&self) -> bool {
        let whole = may_be_whole(&self.linear);
        self.factor.as_ref().is_some_and(|it| it.whole == whole && it.caution == 1.0 && it.at == self.x)
    }

    /// Chooses the caution of the next matrix by what the first step of this one had of the fall that was promised.
    fn learn(&mut self, gain: f64) {
        let Some(curved) = self.factor.as_ref().filter(|curved| curved.whole) else { return };
        if self.norms.len() == 1 {
            self.caution = match gain {
                gain if gain >= KEPT => BOLDER * curved.caution,
                gain if gain >= BROKEN => curved.caution,
                _ => (WARIER * curved.caution).clamp(WARY, 1.0),
            };
        }
    }

    /// The direction of a step from x, where the gradient is g; `None` where there is none that leads down.
    fn direction(&mut self, gradient: &[f64]) -> Option<Vec<f64>> {
        let factor = &Arc::clone(self.factor.as_ref()?).factor;
        let leads_down = |way: &Vec<f64>| dot(way, gradient) < 0.0 && dot(way, way).is_finite();
        let way = self.memory.direction(gradient, 0.0, factor);
        if leads_down(&way) {
            return Some(way);
        }
        self.memory = Arc::default();
        Some(self.memory.direction(gradient, 0.0, factor)).filter(leads_down)
    }

    /// Whether a step promises to lower f where that counts: in units in which some columns hardly vary, their part of the gradient is small far from the minimiser, too.
    fn promises_more(&mut self, value: f64, gradient: &[f64]) -> bool {
        let is_whole = self.factor.as_ref().is_some_and(|curved| curved.whole);
        if matches!(self.until, Until::Gradient(_)) || !is_whole {
            return false;
        }
        let counts = (PROMISED.0 * value.abs()).max(PROMISED.1 * self.first.unwrap_or(value).abs());
        self.direction(gradient).is_some_and(|way| -dot(&way, gradient) > counts)
    }

    /// Goes a step, or ends; the step and what the gradient changed along it.
    fn step(&mut self, gate: &mut Gate) -> Result<Option<(Vec<f64>, Vec<f64>)>, Halt> {
        let (value, gradient) = match self.here.take() {
            Some(here) => here,
            None => Self::evaluate(gate, Role::Large, &self.x)?,
        };
        self.first = self.first.or(Some(value));
        let norm = squared_norm(&gradient).sqrt();
        let mut found = None;
        if norm > self.target() || self.promises_more(value, &gradient) {
            if let Some(whole) = self.wanted(norm) {
                if self.factor.as_ref().is_some_and(|curved| !curved.whole) {
                    // The way that a diagonal went is behind the first whole matrix.
                    self.caution = self.caution.min(norm / self.norms[0]);
                }
                if norm <= self.target() {
                    // A majoriser hides what second derivatives alone see.
                    self.caution = 0.0;
                }
                self.look(gate, whole)?;
            }
            self.norms.push(norm);
            found = self.search(gate, value, &gradient)?;
            if found.is_none() && !self.is_last_resort() {
                self.caution = 1.0;
                self.look(gate, may_be_whole(&self.linear))?;
                self.norms.push(norm);
                found = self.search(gate, value, &gradient)?;
            }
        }
        let Some((x, lower, next)) = found else {
            self.ended = Some(Stop::Settled);
            let polished = match self.until {
                Until::Gradient(_) => None,
                Until::Flat(_) => match self.polish(gate, value, &gradient) {
                    // It has arrived all the same.
                    Err(Halt::OverBudget { .. }) => None,
                    polished => polished?,
                },
            };
            let (x, value, gradient) = polished.unwrap_or_else(|| (self.x.clone(), value, gradient));
            self.x = x;
            self.here = Some((value, gradient));
            return Ok(None);
        };
        let pair = (minus(&x, &self.x), minus(&next, &gradient));
        self.x = x;
        self.here = Some((lower, next));
        Ok(Some(pair))
    }

    /// A point along the direction with the weak Wolfe conditions, f and its gradient there; or the lowest that was seen, if any is lower.
    fn search(&mut self, gate: &mut Gate, value: f64, gradient: &[f64]) -> Result<Option<Evaluated>, Halt> {
        let Some(way) = self.direction(gradient) else { return Ok(None) };
        let slope = dot(&way, gradient);
        let (mut low, mut high, mut share) = (0.0, f64::INFINITY, 1.0);
        let mut best = None;
        for trial in 0..TRIALS {
            let there = along(&self.x, share, &way);
            let evaluated = Self::evaluate(gate, Role::Large, &there);
            if trial == 0 {
                self.learn(evaluated.as_ref().map_or(0.0, |(lower, _)| (lower - value) / (0.5 * slope)));
            }
            let is_low = match evaluated {
                Ok((lower, next)) => {
                    let end = dot(&way, &next);
                    // At the end f no longer shows what the slope does.
                    let same = lower <= value + ROUNDING * value.abs() && end <= (2.0 * ENOUGH - 1.0) * slope;
                    let is_low = lower <= value + ENOUGH * share * slope || same;
                    if is_low {
                        best = Some((there, lower, next));
                        if end >= FLATTER * slope {
                            break;
                        }
                    }
                    is_low
                }
                Err(Halt::NotFinite { .. }) => false,
                Err(halt) => return Err(halt),
            };
            if is_low {
                low = share;
            } else {
                high = share;
            }
            share = if high == f64::INFINITY { 4.0 * share } else { 0.5 * (low + high) };
        }
        Ok(best)
    }

    /// The last digits: steps by the matrix that is there, and by a new one where those do not lead on, until rounding is all that is left. f no longer shows them, so what
    /// counts is the fall that a step promises. `None` where that leads nowhere.
    ///
    /// Where columns nearly depend on each other, or are far from 0, gradients have twice the precision, and so has the point until the end.
    fn polish(&mut self, gate: &mut Gate, value: f64, gradient: &[f64]) -> Result<Option<Evaluated>, Halt> {
        let linear = Arc::clone(&self.linear);
        let Some(mut curved) =
            self.factor.clone().filter(|curved| curved.whole && linear.loss().outputs() == 1)
        else {
            return Ok(None);
        };
        let careful = linear.offset().max(1.0) > CAREFUL * curved.factor.least();
        let evaluate = |gate: &mut Gate, x: &[Double]| -> Result<Evaluated, Halt> {
            let at: Vec<f64> = x.iter().map(|x| x.rounded()).collect();
            if careful {
                count_pass(&linear, gate)?;
                return Ok((at, value, linear.precise_gradient(x)));
            }
            Self::evaluate(gate, Role::Large, &at).map(|(value, gradient)| (at, value, gradient))
        };
        let mut x: Vec<Double> = self.x.iter().map(|x| Double::from(*x)).collect();
        let mut here = (self.x.clone(), value, gradient.to_vec());
        if careful {
            here = evaluate(gate, &x)?;
        }
        let mut matrices = if linear.loss() == Loss::LeastSquares { 0 } else { MATRICES };
        let mut left = curved.factor.promised(&here.2);
        let mut has_moved = false;
        for _ in 0..POLISHES {
            let floor = if careful { 0.0 } else { FLOOR * curved.factor.squared_length(&here.0) };
            if left <= floor || !left.is_finite() {
                break;
            }
            let way = curved.factor.solve(&here.2);
            let there: Vec<Double> = x.iter().zip(&way).map(|(x, way)| *x - Double::from(*way)).collect();
            let next = match evaluate(gate, &there) {
                Ok(next) => Some(next),
                Err(Halt::NotFinite { .. }) => None,
                Err(halt) => return Err(halt),
            };
            let then = next.as_ref().map_or(f64::INFINITY, |next| curved.factor.promised(&next.2));
            let share = then / left;
            if let Some(next) = next.filter(|_| share < FALLS) {
                (x, here, left, has_moved) = (there, next, then, true);
            }
            if share < QUICKLY || (matrices == 0 && share < FALLS) {
                continue;
            }
            if matrices == 0 {
                break;
            }
            matrices -= 1;
            count_pass(&linear, gate)?;
            let columns = self.columns.clone().unwrap_or_default();
            let Some(new) = Curved::new(&linear, &here.0, true, 0.0, &columns) else { break };
            curved = Arc::new(new);
            left = curved.factor.promised(&here.2);
        }
        if !has_moved {
            return Ok(None);
        }
        if careful {
            // What is handed out is rounded, and so is its gradient; where plain sums have too few digits to show that it is small, those of all digits do.
            let (at, _, _) = here;
            let (value, gradient) = Self::evaluate(gate, Role::Large, &at)?;
            here = (at, value, gradient);
            if squared_norm(&here.2).sqrt() > self.target() {
                count_pass(&linear, gate)?;
                let at: Vec<Double> = here.0.iter().map(|x| Double::from(*x)).collect();
                here.2 = linear.precise_gradient(&at);
            }
        }
        // Plain sums show where f is only as far as their digits go.
        Ok(Some(here).filter(|(_, after, _)| careful || *after <= value + ROUNDING * value.abs()))
    }

    /// The run that a checkpoint was taken of, from where it was taken, bit for bit.
    pub(crate) fn resume(
        linear: Arc<Linear>,
        until: Until,
        checkpoint: &mut Checkpoint,
    ) -> Result<Self, CheckpointError> {
        let damaged = || CheckpointError::damaged("the vectors of its run do not fit the problem");
        let (saved, mut vectors): (Saved, Vec<Vec<f64>>) = checkpoint.take(Self::SECTION)?;
        let Saved { steps, ended, value, norms, whole, caution, of_matrix, first, columns } = saved;
        let known = 2 + usize::from(value.is_some()) + usize::from(whole.is_some());
        let pairs = vectors.len().checked_sub(known).filter(|rest| rest % 2 == 0).ok_or_else(damaged)?;
        if applies(&linear).is_err() || vectors.iter().any(|v| v.len() != linear.dim()) {
            return Err(damaged());
        }
        let mut rest = vectors.split_off(vectors.len() - pairs).into_iter();
        let mut memory = Memory::default();
        while let (Some(step), Some(change)) = (rest.next(), rest.next()) {
            memory.pairs.push(Pair { step, change, sure: true });
        }
        let mut vectors = vectors.into_iter();
        let mut take = || vectors.next().unwrap_or_default();
        let (start, x) = (take(), take());
        let here = value.map(|value| (value, take()));
        let factor = match whole {
            None => None,
            Some(whole) => {
                // The same matrix once more, which no ledger counts again.
                let columns = columns.clone().unwrap_or_default();
                let curved = Curved::new(&linear, &take(), whole, of_matrix, &columns);
                Some(Arc::new(curved.ok_or_else(damaged)?))
            }
        };
        let (memory, columns) = (Arc::new(memory), columns.map(Arc::new));
        Ok(Self {
            linear,
            until,
            first,
            start,
            x,
            here,
            factor,
            columns,
            memory,
            caution,
            norms,
            steps,
            ended,
        })
    }

    /// The same run with columns that another run of the same table has looked at.
    pub(crate) fn knowing(mut self, columns: Option<Arc<Columns>>) -> Self {
        self.columns = columns;
        self
    }

    /// What it knows of the columns.
    pub(crate) fn columns(&self) -> Option<&Arc<Columns>> {
        self.columns.as_ref()
    }

    /// The table and its loss.
    pub(crate) fn linear(&self) -> &Arc<Linear> {
        &self.linear
    }

    /// |grad f| at which it ends.
    pub(crate) fn target(&self) -> f64 {
        match self.until {
            Until::Gradient(target) | Until::Flat(target) => target,
        }
    }

    /// Where it stands.
    pub(crate) fn point(&self) -> &[f64] {
        &self.x
    }

    /// The name of its section in a checkpoint.
    pub(crate) const SECTION: &'static str = "newton";
}

/// What a checkpoint holds besides vectors. Those of earlier versions end before the caution, and knew second derivatives alone.
#[derive(Debug, Serialize, Deserialize)]
struct Saved {
    steps: u64,
    ended: Option<Stop>,
    /// f where the run stands.
    value: Option<f64>,
    /// |grad f| since the last matrix.
    norms: Vec<f64>,
    /// Whether that is whole.
    whole: Option<bool>,
    #[serde(default)]
    caution: f64,
    /// The caution with which the matrix was made.
    #[serde(default)]
    of_matrix: f64,
    /// f at the start.
    #[serde(default)]
    first: Option<f64>,
    #[serde(default)]
    columns: Option<Columns>,
}

impl Walk for Newton {
    fn advance(&mut self, gate: &mut Gate) -> Result<Advance, Halt> {
        if let Some(stop) = self.ended {
            return Ok(Advance::Stop(stop));
        }
        let (before, mut next) = (gate.ledger().clone(), self.clone());
        let pair = match next.step(gate) {
            Ok(pair) => pair,
            Err(halt) => {
                if halt.drops_work() {
                    gate.rewind(before);
                }
                return Err(halt);
            }
        };
        *self = next;
        if let Some((step, change)) = pair {
            // The memory is this run's alone by now, and is not copied.
            Arc::make_mut(&mut self.memory).add(step, change, true);
        }
        if let Some(stop) = self.ended {
            return Ok(Advance::Stop(stop));
        }
        self.steps += 1;
        let n = u64::try_from(gate.ledger().samples() - before.samples()).unwrap_or(u64::MAX);
        let distance2 = squared_distance(&self.x, &self.start);
        Ok(Advance::Step(Record { epoch: self.steps, t: 0, kind: Kind::Fresh, n, distance2 }))
    }

    fn view(&self) -> View<'_> {
        let mut view = View::new(self.steps, &self.start, &self.x);
        view.ended = self.ended;
        view.exact = self.here.as_ref().map(|(value, gradient)| (*value, squared_norm(gradient).sqrt()));
        view.left_out = self.columns.as_ref().map(|columns| &columns.left_out[..]);
        view
    }

    fn save<'a>(&'a self, to: &mut Saver<'a>) {
        let Self { start, x, here, factor, memory, caution, norms, steps, ended, .. } = self;
        let whole = factor.as_ref().map(|curved| curved.whole);
        let of_matrix = factor.as_ref().map_or(0.0, |curved| curved.caution);
        let known = here.iter().map(|(_, gradient)| &gradient[..]);
        let at = factor.iter().map(|curved| &curved.at[..]);
        let pairs = memory.pairs.iter().flat_map(|pair| [&pair.step[..], &pair.change[..]]);
        let vectors = [&start[..], &x[..]].into_iter().chain(known).chain(at).chain(pairs);
        let value = here.as_ref().map(|(value, _)| *value);
        let (steps, ended, norms, caution, first) = (*steps, *ended, norms.clone(), *caution, self.first);
        let columns = self.columns.as_deref().cloned();
        let data = Saved { steps, ended, value, norms, whole, caution, of_matrix, first, columns };
        to.put(Self::SECTION, &data, vectors);
    }
}

/// Whether f falls for ever from x, where it is nearly at its least: the loss has no minimiser.
///
/// It does where there is a direction in which no row's loss rises and some fall: rows of certain classes, or counts that are zero wherever a column is not. What is looked
/// at:
///
/// - the intercept, which the labels decide, and each column for itself, by the signs of its values;
/// - x itself, which is such a direction where every row is right;
/// - up to [`MOST_FULL`] coordinates, the steps of second order from x. The slope of a row's loss is some l_i > 0 towards what the row wants, and its curvature at most l_i. With c
///   the step, H c = -grad f, the numbers l_i (1 - <a_i, c>) for rows of classes (signs as each row wants them) make a gradient of zero; if all are positive, no direction helps some rows
///   and hurts none, by Stiemke's lemma, and f has a minimiser. So f falls for ever only if every step, however close to the end, takes some row further by 1 or more.
///   Where f has a minimiser steps get shorter instead. The same holds for counts of zero. With several scores each step promises 1/e of the fall of the one before, to several digits, again and again.
///
/// Costs a few passes, some dozen with steps that do not end; `None` for a loss that always has a minimiser in such directions.
pub fn has_no_minimiser(linear: &Arc<Linear>, gate: &mut Gate, x: &[f64]) -> Result<Option<bool>, Halt> {
    /// Steps from x, and those in a row that must promise what a tail does.
    const STEPS: u32 = 15;
    const IN_A_ROW: u32 = 4;
    /// Below this a row goes no further: 1, less rounding of the step.
    const FURTHER: f64 = 0.9;
    /// What the next step promises on a tail, over what this one does: 1/e, to some digits.
    const TAIL: Range<f64> = 0.36..0.376;
    /// A promise below this share of f is rounding.
    const ROUNDING: f64 = 1e-14;
    let Some(tails) = Tails::of(linear) else { return Ok(None) };
    if tails.intercept_alone() {
        return Ok(Some(true));
    }
    if linear.design().penalty > 0.0 {
        return Ok(Some(false));
    }
    count_pass(linear, gate)?;
    if tails.some_column() {
        return Ok(Some(true));
    }
    count_pass(linear, gate)?;
    if tails.are_right_at(x) {
        return Ok(Some(true));
    }
    let work = linear.table().rows() as f64 * (linear.dim() as f64).powi(2);
    if applies(linear).is_err() || linear.dim() > MOST_FULL || work > MOST_WORK {
        return Ok(Some(false));
    }
    let mut x = x.to_vec();
    let (mut value, mut gradient) = Newton::evaluate(gate, Role::Large, &x)?;
    let (mut before, mut in_a_row) = (f64::INFINITY, 0);
    let one_score = linear.loss().outputs() == 1;
    for _ in 0..STEPS {
        let Some(way) = full_step(linear, gate, &x, &gradient)? else { break };
        let promised = -dot(&way, &gradient);
        if one_score {
            count_pass(linear, gate)?;
            if tails.furthest(&way) < FURTHER {
                return Ok(Some(false));
            }
        }
        if promised <= ROUNDING * value.abs() {
            // Nothing is left to fall by, and still some row goes on.
            return Ok(Some(one_score));
        }
        in_a_row = if TAIL.contains(&(promised / before)) { in_a_row + 1 } else { 0 };
        if in_a_row >= IN_A_ROW {
            return Ok(Some(true));
        }
        before = promised;
        let Some(found) = halved(gate, &x, value, &gradient, &way)? else { break };
        (x, value, gradient) = found;
    }
    Ok(Some(false))
}

/// Counts a pass over all rows that does not go through the gate.
pub(crate) fn count_pass(linear: &Linear, gate: &mut Gate) -> Result<(), Halt> {
    let rows = linear.table().rows() as u128;
    gate.count(Role::Large, Charge { samples: rows, evaluations: rows, exact: true })
}

/// Multiplications that a matrix of second derivatives may take in a look for directions without a minimiser.
const MOST_WORK: f64 = 4e9;

/// The step by all second derivatives at x; `None` where there are none.
fn full_step(
    linear: &Linear,
    gate: &mut Gate,
    x: &[f64],
    gradient: &[f64],
) -> Result<Option<Vec<f64>>, Halt> {
    count_pass(linear, gate)?;
    let factor = match linear.loss().outputs() {
        1 => linear.factor_of_one(x, 0.0, &Columns::default()),
        _ => linear.hessian(x).factor(),
    };
    Ok(factor.map(|factor| factor.solve(gradient).iter().map(|v| -v).collect()))
}

/// Halves a step until f falls; where f and its gradient are then.
fn halved(
    gate: &mut Gate,
    x: &[f64],
    value: f64,
    gradient: &[f64],
    way: &[f64],
) -> Result<Option<Evaluated>, Halt> {
    let (slope, length2) = (dot(way, gradient), squared_norm(gradient));
    let mut share = 1.0;
    for _ in 0..TRIALS {
        let there = along(x, share, way);
        match Newton::evaluate(gate, Role::Large, &there) {
            // At the end f no longer shows what the gradient does.
            Ok((lower, next))
                if lower <= value + ENOUGH * share * slope
                    || (squared_norm(&next) < 0.25 * length2 && lower <= value + 1e-9 * value.abs()) =>
            {
                return Ok(Some((there, lower, next)));
            }
            Ok(_) | Err(Halt::NotFinite { .. }) => share *= 0.5,
            Err(halt) => return Err(halt),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::Saved;

    #[test]
    fn a_checkpoint_of_an_earlier_version_went_by_second_derivatives_alone() {
        let saved: Saved =
            serde_json::from_str("[3,null,0.5,[1.0,0.5],true]").expect("five parts, as they were");
        assert_eq!((saved.steps, saved.value, saved.whole), (3, Some(0.5), Some(true)));
        assert_eq!((saved.caution, saved.of_matrix), (0.0, 0.0));
    }
}
