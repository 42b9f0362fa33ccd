//! Second-order steps on a table with penalties and bounds on the weights: lasso, elastic net, non-negative least squares, and the same for other losses.
//!
//! F = f + h is minimised, f the mean loss of the rows (with the ridge penalty of the [`Design`](crate::table::Design)), h a sum of [pieces](Piece), one for each
//! weight. Each step minimises the quadratic model of f at x plus h: by coordinate descent, which finds the weights that are 0 or at a bound, and
//! by a Cholesky factor on the others, which finds their digits. For least squares the model is f itself. Tables of more than 512 weights are
//! worked on by sets: the weights that are not 0, and those with the largest slopes among the others. A step is halved until F falls.
//!
//! A weight that the penalty makes 0 is exactly 0. The end is judged by a duality gap, a bound on F(x) - inf F by two passes over the rows; where
//! nothing but the loss keeps a weight finite, as in non-negative least squares, there is none, and |x - prox(x - grad f)| is the measure.
//!
//! ```
//! use std::sync::Arc;
//!
//! use pasta_opt::fit::{Fit, Verdict, Way};
//! use pasta_opt::proximal::Penalties;
//! use pasta_opt::table::{Dense, Design, Features, Linear, Loss, Table};
//!
//! // y = 2 a + noise, and b says nothing.
//! let values = vec![0.0, 1.0, 1.0, -1.0, 2.0, 1.0, 3.0, -1.0];
//! let features = Features::Dense(Dense { rows: 4, columns: 2, values: values.into() });
//! let table = Table::new(features, Arc::new(vec![0.1, 1.9, 4.1, 5.9]), None, Vec::new())?;
//! let linear = Arc::new(Linear::new(Arc::new(table), Loss::LeastSquares, Design::default())?);
//! let lasso = Penalties { l1: 0.2, ..Penalties::default() };
//! let fit = Fit { way: Way::Proximal(lasso.term(&linear)?), start: None, target: None, budget: None, seed: 1 };
//! let fitted = fit.run(&linear, linear.clone(), Arc::default(), &mut |_| ())?;
//! assert_eq!(fitted.verdict, Verdict::Certified);
//! assert!(fitted.gap.is_some_and(|gap| gap < 1e-12));
//! let model = linear.raw_weights(&fitted.point);
//! assert!(model.weights[0] > 1.5 && model.weights[1] == 0.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::checkpoint::{Checkpoint, CheckpointError, Saver};
use crate::draws::Role;
use crate::estimator::Kind;
use crate::gate::{Gate, Halt};
use crate::kernels::{dot, rows, squared_distance};
use crate::newton::{Newton, count_pass};
use crate::stop::Stop;
use crate::table::{Class, Hessian, Linear, Loss, MOST_FULL, Scaling, TableError};
use crate::term::{Piece, Separable, Steps, Term, TermError};
use crate::walk::{Advance, Record, View, Walk};

/// Penalties and bounds on the weights of a linear model, besides the ridge penalty of its design. The intercept has none.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Penalties {
    /// l of the term l |w|_1. As for the ridge penalty, w are the weights of the columns as they are fitted: standardised, unless the design says otherwise.
    pub l1: f64,
    /// The least that a weight of the table's own columns (of the features, with monomials) may be: one number, one for each feature, or none.
    pub lower: Vec<f64>,
    /// The most.
    pub upper: Vec<f64>,
}

impl Penalties {
    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The term for the coordinates of a table's model.
    pub fn term(&self, linear: &Linear) -> Result<Separable, TermError> {
        let features = linear.features();
        for (name, numbers) in [("lower", &self.lower), ("upper", &self.upper)] {
            if ![0, 1, features].contains(&numbers.len()) {
                let n = numbers.len();
                return Err(TermError(format!(
                    "{name} has {n} numbers for {features} features: give 1 or {features}"
                )));
            }
        }
        let of = |numbers: &[f64], j: usize, none: f64| match numbers {
            [] => none,
            [one] => *one,
            all => all[j],
        };
        let scaling = linear.scaling().filter(|_| linear.design().degree == 1);
        let own = |j: usize| {
            let (lower, upper) = (of(&self.lower, j, f64::NEG_INFINITY), of(&self.upper, j, f64::INFINITY));
            let scale = scaling.map_or(1.0, |Scaling { scale, .. }| scale[j]);
            let (lower, upper) = (scaled(lower, scale, f64::next_up), scaled(upper, scale, f64::next_down));
            Piece { lower, upper, l1: self.l1, ..Piece::default() }
        };
        let of_score: Vec<Piece> = (0..linear.dim() / linear.loss().outputs())
            .map(|j| if j < features { own(j) } else { Piece::default() })
            .collect();
        let term = Separable { pieces: of_score.repeat(linear.loss().outputs()) };
        term.check(linear.dim())
            .map_err(|TermError(words)| TermError(words.replace("coordinate", "feature")))?;
        Ok(term)
    }
}

/// A bound times a scale, moved inwards until it is kept when the scale is taken off again.
fn scaled(bound: f64, scale: f64, inwards: impl Fn(f64) -> f64) -> f64 {
    let mut end = bound * scale;
    if !end.is_finite() || scale == 1.0 {
        // A column that does not vary has the largest scale there is, and weight 0 unless a bound forbids that.
        return if bound == 0.0 { 0.0 } else { end };
    }
    for _ in 0..4 {
        let kept = if inwards(0.0) > 0.0 { end / scale >= bound } else { end / scale <= bound };
        if kept {
            break;
        }
        end = inwards(end);
    }
    end
}

/// Refuses losses that are not smooth and convex, terms with logarithms, and models too large for a matrix of several scores.
fn check(linear: &Linear, term: &Separable) -> Result<(), TableError> {
    let row = linear.loss().row();
    if !matches!(row.class, Class::SmoothConvex | Class::LocallySmoothConvex) {
        return Err(TableError::NotSmoothConvex { loss: row.name });
    }
    if linear.loss().outputs() > 1 && linear.dim() > MOST_FULL {
        let (name, needs) = ("the number of weights of all classes", "at most 512 with l1 or bounds");
        return Err(TableError::Setting { name, needs, got: linear.dim() as f64 });
    }
    if let Some(piece) = term.pieces.iter().find(|piece| piece.log_weight > 0.0) {
        return Err(TableError::Setting {
            name: "the weight of -log",
            needs: "0 on a table",
            got: piece.log_weight,
        });
    }
    let (needs, got) = (linear.dim(), term.pieces.len());
    if got == needs { Ok(()) } else { Err(TableError::Shape { what: "pieces of the term", needs, got }) }
}

/// A run of second-order steps with a term.
#[derive(Debug, Clone)]
pub struct Proximal {
    linear: Arc<Linear>,
    term: Arc<Separable>,
    start: Vec<f64>,
    x: Vec<f64>,
    /// f and its gradient at x, once they are known.
    here: Option<(f64, Vec<f64>)>,
    /// The matrix of least squares, which is the same everywhere, and its coordinates.
    matrix: Option<Arc<(Vec<usize>, Vec<f64>)>>,
    /// The share of the majoriser in the next matrix.
    caution: f64,
    /// |x - prox(x - grad f)| at the start.
    first: Option<f64>,
    steps: u64,
    ended: Option<Stop>,
}

/// Steps of a run, at most.
const STEPS: u64 = 200;
/// Halvings of a step before the run ends.
const TRIALS: u32 = 40;
/// Armijo's constant.
const ARMIJO: f64 = 1e-4;
/// A promised fall below this share of F is rounding.
const FLAT: f64 = 1e-15;
/// Differences of F below this share of it are rounding.
const ROUNDING: f64 = 1e-12;
/// Of what it was at the start, the slope is small below this share.
const NEAR: f64 = 1e-7;
/// How the caution changes: after a whole step, after a shorter one, and from where on at least.
const BOLDER: f64 = 0.05;
const WARIER: f64 = 10.0;
const WARY: f64 = 0.1;
/// Weights that a set has at least beyond those that are not 0, and at most in all.
const MORE: usize = 64;
const MOST: usize = 1024;

impl Proximal {
    /// A run from a point, which is moved into the domain of the term.
    pub fn start(linear: Arc<Linear>, term: Arc<Separable>, mut start: Vec<f64>) -> Result<Self, TableError> {
        check(&linear, &term)?;
        term.prox(Steps::One(f64::MIN_POSITIVE), &mut start);
        let x = start.clone();
        Ok(Self {
            linear,
            term,
            start,
            x,
            here: None,
            matrix: None,
            caution: 0.0,
            first: None,
            steps: 0,
            ended: None,
        })
    }

    /// The run that a checkpoint was taken of, from where it was taken, bit for bit.
    pub(crate) fn resume(
        linear: Arc<Linear>,
        term: Arc<Separable>,
        checkpoint: &mut Checkpoint,
    ) -> Result<Self, CheckpointError> {
        let damaged = || CheckpointError::damaged("the vectors of its run do not fit the problem");
        let (Saved { steps, ended, caution, first, value, set }, vectors): (Saved, Vec<Vec<f64>>) =
            checkpoint.take(Self::SECTION)?;
        let dim = linear.dim();
        let fits = vectors.iter().all(|vector| vector.len() == dim)
            && vectors.len() == 2 + usize::from(value.is_some())
            && set.iter().flatten().all(|i| *i < dim);
        if !fits {
            return Err(damaged());
        }
        let mut vectors = vectors.into_iter();
        let mut take = || vectors.next().unwrap_or_default();
        let (start, x) = (take(), take());
        let here = value.map(|value| (value, take()));
        let mut run = Self::start(linear, term, start.clone()).map_err(|_| damaged())?;
        (run.start, run.x, run.here, run.caution, run.first) = (start, x, here, caution, first);
        (run.steps, run.ended) = (steps, ended);
        // The same matrix once more, which no ledger counts again.
        run.matrix = set.map(|set| Arc::new(run.entries(set)));
        Ok(run)
    }

    /// The name of its section in a checkpoint.
    pub(crate) const SECTION: &'static str = "proximal";

    /// |x - prox(x - grad f)|: 0 at a minimiser alone, and |grad f| without a term.
    fn mapping(&self, x: &[f64], gradient: &[f64]) -> f64 {
        let mut z: Vec<f64> = x.iter().zip(gradient).map(|(x, g)| x - g).collect();
        self.term.prox(Steps::One(1.0), &mut z);
        squared_distance(x, &z).sqrt()
    }

    /// F and |x - prox(x - grad f)| where it stands, by a pass unless they are known.
    pub(crate) fn exactly(&mut self, gate: &mut Gate) -> Result<(f64, f64), Halt> {
        if self.here.is_none() {
            self.here = Some(Newton::evaluate(gate, Role::Certificate, &self.x)?);
        }
        Ok(self.view().exact.unwrap_or((f64::NAN, f64::NAN)))
    }

    /// By how much F can be above its least value at x, by two passes over the rows; `None` where that cannot be told.
    pub(crate) fn look(&self, gate: &mut Gate, x: &[f64]) -> Result<Option<f64>, Halt> {
        count_pass(&self.linear, gate)?;
        count_pass(&self.linear, gate)?;
        Ok(self.linear.duality_gap(x, &self.term.pieces))
    }

    /// The coordinates that a step is about.
    fn set(&self, gradient: &[f64]) -> Vec<usize> {
        let dim = self.x.len();
        if dim <= MOST_FULL {
            return (0..dim).collect();
        }
        let pieces = &self.term.pieces;
        let violation = |i: usize| (self.x[i] - pieces[i].prox(1.0, self.x[i] - gradient[i])).abs();
        // The intercept and whatever else has no term, and weights that are neither 0 nor at rest at a bound, come first.
        let is_at_end = |i: usize| self.x[i] == pieces[i].lower || self.x[i] == pieces[i].upper;
        let is_open = |i: usize| {
            pieces[i] == Piece::default() || (self.x[i] != 0.0 && (!is_at_end(i) || violation(i) > 0.0))
        };
        let mut set: Vec<usize> = (0..dim).filter(|i| is_open(*i)).collect();
        let mut others: Vec<(f64, usize)> =
            (0..dim).filter(|i| !is_open(*i)).map(|i| (violation(i), i)).filter(|(v, _)| *v > 0.0).collect();
        others.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let more = set.len().max(MORE);
        set.extend(others.into_iter().take(more).map(|(_, i)| i));
        if set.len() > MOST {
            set.sort_unstable_by(|a, b| violation(*b).total_cmp(&violation(*a)).then(a.cmp(b)));
            set.truncate(MOST);
        }
        set.sort_unstable();
        set
    }

    /// The matrix of second derivatives on a set, by a pass unless it is known.
    fn matrix(&mut self, gate: &mut Gate, set: Vec<usize>) -> Result<Arc<(Vec<usize>, Vec<f64>)>, Halt> {
        if let Some(known) = self.matrix.as_ref().filter(|known| known.0 == set) {
            return Ok(Arc::clone(known));
        }
        count_pass(&self.linear, gate)?;
        let matrix = Arc::new(self.entries(set));
        if self.linear.loss() == Loss::LeastSquares {
            self.matrix = Some(Arc::clone(&matrix));
        }
        Ok(matrix)
    }

    /// The second derivatives where it stands on a set of coordinates, with that set.
    fn entries(&self, set: Vec<usize>) -> (Vec<usize>, Vec<f64>) {
        let entries = match (self.linear.loss().outputs(), set.len() == self.x.len()) {
            (1, true) => self.linear.hessian_of_one(&self.x, self.caution),
            (1, false) => Hessian::Diagonal(self.linear.hessian_on(&self.x, self.caution, &set)),
            _ => self.linear.hessian(&self.x),
        };
        let (Hessian::Full { entries, .. } | Hessian::Diagonal(entries)) = entries;
        (set, entries)
    }

    fn step(&mut self, gate: &mut Gate) -> Result<(), Halt> {
        let (f, gradient) = match self.here.take() {
            Some(here) => here,
            None => Newton::evaluate(gate, Role::Large, &self.x)?,
        };
        let value = f + self.term.value(&self.x);
        let matrix = self.matrix(gate, self.set(&gradient))?;
        let (set, entries) = (&matrix.0, &matrix.1);
        let of = |all: &[f64]| -> Vec<f64> { set.iter().map(|i| all[*i]).collect() };
        let pieces: Vec<Piece> = set.iter().map(|i| self.term.pieces[*i]).collect();
        let mut model = Model { entries, pieces, z: of(&self.x), slopes: of(&gradient) };
        model.minimise();
        let mut end = self.x.clone();
        set.iter().zip(&model.z).for_each(|(i, z)| end[*i] = *z);
        let way: Vec<f64> = end.iter().zip(&self.x).map(|(end, x)| end - x).collect();
        // What the slope and the term promise for the whole step.
        let promised = dot(&gradient, &way) + self.term.value(&end) - self.term.value(&self.x);
        let size = value.abs().max(f.abs());
        let before = self.mapping(&self.x, &gradient);
        self.first.get_or_insert(before);
        // Not a number promises nothing.
        let is_falling = promised < -FLAT * size;
        let is_flat = !is_falling;
        let mut share = 1.0;
        for _ in 0..TRIALS {
            let mut there = end.clone();
            if share < 1.0 {
                there
                    .iter_mut()
                    .zip(self.x.iter().zip(&way))
                    .for_each(|(there, (x, way))| *there = x + share * way);
                self.term.prox(Steps::One(f64::MIN_POSITIVE), &mut there);
            }
            match Newton::evaluate(gate, Role::Large, &there) {
                Ok((next, slopes)) => {
                    let lower = next + self.term.value(&there);
                    let falls = lower <= value + ARMIJO * share * promised && !is_flat;
                    // At the end F no longer shows what its slopes do.
                    let settles =
                        lower <= value + ROUNDING * size && self.mapping(&there, &slopes) < 0.5 * before;
                    if falls || settles {
                        self.caution = match share {
                            1.0 => BOLDER * self.caution,
                            _ => (WARIER * self.caution).clamp(WARY, 1.0),
                        };
                        (self.x, self.here) = (there, Some((next, slopes)));
                        self.steps += 1;
                        if self.steps >= STEPS {
                            self.ended = Some(Stop::Settled);
                        }
                        return Ok(());
                    }
                }
                Err(Halt::NotFinite { .. }) => {}
                Err(halt) => return Err(halt),
            }
            if is_flat {
                break;
            }
            share *= 0.5;
        }
        self.here = Some((f, gradient));
        let is_far = before > NEAR * self.first.unwrap_or(before) && self.linear.loss() != Loss::LeastSquares;
        if is_far && self.caution < 1.0 {
            // The majoriser leads down from everywhere, also where the loss does not bend.
            self.caution = 1.0;
        } else {
            self.ended = Some(Stop::Settled);
        }
        Ok(())
    }
}

impl Walk for Proximal {
    fn advance(&mut self, gate: &mut Gate) -> Result<Advance, Halt> {
        let (before, mut next) = (gate.ledger().clone(), self.clone());
        if self.ended.is_none() {
            if let Err(halt) = next.step(gate) {
                if halt.drops_work() {
                    gate.rewind(before);
                }
                return Err(halt);
            }
            *self = next;
        }
        if let Some(stop) = self.ended {
            return Ok(Advance::Stop(stop));
        }
        let n = u64::try_from(gate.ledger().samples() - before.samples()).unwrap_or(u64::MAX);
        let distance2 = squared_distance(&self.x, &self.start);
        Ok(Advance::Step(Record { epoch: self.steps.max(1), t: 0, kind: Kind::Fresh, n, distance2 }))
    }

    /// `exact` is F and |x - prox(x - grad f)|.
    fn view(&self) -> View<'_> {
        let mut view = View::new(self.steps, &self.start, &self.x);
        view.ended = self.ended;
        let exact = |(f, g): &(f64, Vec<f64>)| (f + self.term.value(&self.x), self.mapping(&self.x, g));
        view.exact = self.here.as_ref().map(exact);
        view
    }

    fn save<'a>(&'a self, to: &mut Saver<'a>) {
        let Self { start, x, here, matrix, caution, first, steps, ended, .. } = self;
        let (steps, ended, caution, first) = (*steps, *ended, *caution, *first);
        let value = here.as_ref().map(|(value, _)| *value);
        let set = matrix.as_ref().map(|known| known.0.clone());
        let known = here.iter().map(|(_, gradient)| &gradient[..]);
        let vectors = [&start[..], &x[..]].into_iter().chain(known);
        to.put(Self::SECTION, &Saved { steps, ended, caution, first, value, set }, vectors);
    }
}

/// What a checkpoint holds besides vectors.
#[derive(Debug, Serialize, Deserialize)]
struct Saved {
    steps: u64,
    ended: Option<Stop>,
    caution: f64,
    first: Option<f64>,
    /// f where the run stands, without the term.
    value: Option<f64>,
    /// The coordinates of the matrix of least squares.
    set: Option<Vec<usize>>,
}

/// A quadratic function plus a separable one: <slopes, d> + <d, H d>/2 + h(z), d the way to z. The slopes are those at z throughout.
struct Model<'a> {
    /// H, row by row.
    entries: &'a [f64],
    pieces: Vec<Piece>,
    z: Vec<f64>,
    slopes: Vec<f64>,
}

/// Rounds of sweeps and solutions.
const ROUNDS: u32 = 500;
/// Sweeps over the weights that are not at rest, after one over all.
const SWEEPS: u32 = 5;
/// A sweep that moves no weight by more than this share of the largest, each by its curvature, ends the rounds.
const STILL: f64 = 1e-13;
/// Added to curvatures, relatively, before a system is solved; the next round makes up for it.
const RIDGE: f64 = 1e-12;

impl Model<'_> {
    fn minimise(&mut self) {
        let all: Vec<usize> = (0..self.z.len()).collect();
        for _ in 0..ROUNDS {
            let moved = self.sweep(&all);
            let largest =
                all.iter().map(|j| self.z[*j].powi(2) * self.curvature(*j)).fold(0.0, f64::max).sqrt();
            if moved <= STILL * largest {
                return;
            }
            let free = self.free();
            for _ in 0..SWEEPS {
                if self.sweep(&free) <= STILL * largest {
                    break;
                }
            }
            self.solve();
        }
    }

    fn curvature(&self, j: usize) -> f64 {
        self.entries[j * self.z.len() + j]
    }

    /// Minimises over one coordinate after another; the largest move, times the root of its curvature.
    fn sweep(&mut self, some: &[usize]) -> f64 {
        let mut most: f64 = 0.0;
        for &j in some {
            let curvature = self.curvature(j);
            // A column that counts for nothing.
            let gamma = if curvature > 0.0 { 1.0 / curvature } else { continue };
            let to = self.pieces[j].prox(gamma, self.z[j] - gamma * self.slopes[j]);
            let by = to - self.z[j];
            if by != 0.0 {
                self.shift(j, to);
                most = most.max(by.abs() * curvature.sqrt());
            }
        }
        most
    }

    /// Moves one coordinate.
    fn shift(&mut self, j: usize, to: f64) {
        let k = self.z.len();
        rows::add(to - self.z[j], &self.entries[j * k..(j + 1) * k], &mut self.slopes);
        self.z[j] = to;
    }

    /// The coordinates where h has a derivative.
    fn free(&self) -> Vec<usize> {
        let is_free = |j: &usize| {
            let (z, piece) = (self.z[*j], &self.pieces[*j]);
            self.curvature(*j) > 0.0 && piece.lower < z && z < piece.upper && (piece.l1 == 0.0 || z != 0.0)
        };
        (0..self.z.len()).filter(is_free).collect()
    }

    /// Goes to the minimiser over the free coordinates, or on the way there to where the first of them meets 0 or a bound.
    fn solve(&mut self) {
        let (k, all) = (self.z.len(), self.entries);
        loop {
            let free = self.free();
            let entries: Vec<f64> =
                free.iter().flat_map(|i| free.iter().map(move |j| all[i * k + j])).collect();
            let slope = |j: usize| {
                let (z, piece) = (self.z[j], &self.pieces[j]);
                self.slopes[j] + if piece.l1 > 0.0 { piece.l1 * z.signum() } else { 0.0 } + piece.l2 * z
            };
            let mut matrix = Hessian::Full { dim: free.len(), entries };
            if let Hessian::Full { entries, .. } = &mut matrix {
                // A direction in which nothing bends, as all intercepts of a multinomial loss together, is left as it is.
                free.iter().enumerate().for_each(|(i, j)| {
                    let own = &mut entries[i * free.len() + i];
                    *own += self.pieces[*j].l2 + RIDGE * *own;
                });
            }
            let Some(factor) = (!free.is_empty()).then(|| matrix.factor()).flatten() else { return };
            let way = factor.solve(&free.iter().map(|j| -slope(*j)).collect::<Vec<f64>>());
            // The share of the way at which the first meets an end, and where.
            let mut first = (1.0, None);
            for (&j, &way) in free.iter().zip(&way) {
                let (z, piece) = (self.z[j], &self.pieces[j]);
                let mut end = if way > 0.0 { piece.upper } else { piece.lower };
                if piece.l1 > 0.0 && z * way < 0.0 {
                    end = if way > 0.0 { end.min(0.0) } else { end.max(0.0) };
                }
                let share = (end - z) / way;
                if share < first.0 {
                    first = (share, Some((j, end)));
                }
            }
            for (&j, &way) in free.iter().zip(&way) {
                match first.1 {
                    Some((blocked, end)) if blocked == j => self.shift(j, end),
                    _ => self.shift(j, self.z[j] + first.0 * way),
                }
            }
            if first.1.is_none() {
                return;
            }
        }
    }
}
