//! Rows that go by once: a model from blocks of a stream, in memory that does not grow.
//!
//! Each block is fitted while it is in memory, with one more term: what the blocks before it have taught. That is a
//! quadratic around the point that they led to, whose matrix is the sum of their [second derivatives](Linear::hessian) there. For least squares
//! with up to [`MOST_FULL`] coordinates nothing is lost by that, and the end is the fit of all rows; for
//! other smooth losses what is lost is of the order of the square of a block's error. Beyond that number of coordinates only the diagonal is
//! kept.
//!
//! With the whole matrix at hand a block of a smooth convex loss takes second-order steps, most often one; with the diagonal it goes by L-BFGS that begins with
//! it. Other losses go by [`Auto`].
//!
//! Columns are scaled by the first block. One that does not vary there is scaled when it first does, and one that the first block does not have
//! ([`OnePass::widen`]) was 0 until then: in both cases nothing that was learnt before changes.
//!
//! What the point is worth is said by rows that were kept back ([`OnePass::certify`]): each is read once, as a fresh sample. The gradient is then that in coordinates in which
//! each column has deviation 1 over all rows that were learnt from.
//!
//! ```
//! use std::sync::Arc;
//!
//! use pasta_opt::one_pass::OnePass;
//! use pasta_opt::table::{Dense, Design, Features, Loss, Table, TableError};
//!
//! // y = 3 a - 1, ten rows at a time.
//! let block = |first: usize| -> Result<_, TableError> {
//!     let a: Vec<f64> = (first..first + 10).map(|i| (i as f64).sin()).collect();
//!     let labels: Vec<f64> = a.iter().map(|a| 3.0 * a - 1.0).collect();
//!     let features = Features::Dense(Dense { rows: 10, columns: 1, values: a.into() });
//!     Table::new(features, Arc::new(labels), None, Vec::new()).map(Arc::new)
//! };
//! let mut learner = OnePass::start(block(0)?, Loss::LeastSquares, Design::default(), 1)?;
//! for first in [0, 10, 20] {
//!     learner.learn(block(first)?, &Arc::default())?;
//! }
//! let model = learner.problem(block(30)?)?.raw_weights(learner.point());
//! assert!((model.weights[0] - 3.0).abs() < 1e-3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod columns;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rayon::prelude::*;

use crate::auto::Auto;
use crate::auto::memory::Memory;
use crate::certificate::{Certificate, CertificateError, Certifier, Claim, PILOT};
use crate::draws::{Role, derived_seed};
use crate::gate::{Gate, Halt};
use crate::kernels::{along, dot, minus, squared_norm};
use crate::ledger::Ledger;
use crate::oracle::{About, Answer, Charge, Draw, Form, Oracle, OracleError, Request, Source};
use crate::stop::Stop;
use crate::table::{Design, Factor, Hessian, Linear, Loss, MOST_FULL, Scaling, Table, TableError, monomials};
use crate::walk::{Advance, Walk};

use columns::{Columns, own_scaling, spread_out};

/// A fit in one pass over a stream, block by block.
#[derive(Debug, Clone)]
pub struct OnePass {
    loss: Loss,
    design: Design,
    columns: Columns,
    /// How many columns there are.
    width: usize,
    seed: u64,
    start: Vec<f64>,
    x: Vec<f64>,
    /// The second derivatives of each block, times its rows.
    past: Hessian,
    /// The gradient of each block at the start, times its rows.
    first: Vec<f64>,
    rows: u64,
    blocks: u64,
    ledger: Ledger,
}

/// Why a block was not learnt from.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LearnError {
    /// The rows do not fit the pass.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The gate gave no answer.
    #[error(transparent)]
    Halt(#[from] Halt),
}

/// A block is worked on until the gradient of its term is so much smaller; the first, which has farther to go, more.
const FIRST: f64 = 1e-4;
const NEXT: f64 = 1e-2;
/// Passes over a block at most.
const PASSES: u128 = 100;
/// Second-order steps on a block at most, and trials of each.
const STEPS: u32 = 30;
const TRIALS: u32 = 20;
/// Of the fall that the slope promises, a step must have this share.
const ENOUGH: f64 = 1e-4;
/// A matrix is made anew where a step with it left more than this of the gradient.
const SLOW: f64 = 0.3;

impl OnePass {
    /// Starts a pass. Columns are scaled by the first block; those that do not vary there, by the first block in which they do.
    pub fn start(first: Arc<Table>, loss: Loss, design: Design, seed: u64) -> Result<Self, TableError> {
        let (columns, width) = (Columns::of(&first, &design)?, first.columns());
        let start = Linear::scaled(first, loss, design, columns.scaling().cloned())?.start();
        Ok(Self {
            loss,
            design,
            columns,
            width,
            seed,
            x: start.clone(),
            past: Hessian::zero(start.len()),
            first: vec![0.0; start.len()],
            start,
            rows: 0,
            blocks: 0,
            ledger: Ledger::default(),
        })
    }

    /// Rows of the stream as a problem of their own, in the coordinates of the pass.
    pub fn problem(&self, rows: Arc<Table>) -> Result<Arc<Linear>, TableError> {
        self.check(&rows)?;
        Linear::scaled(rows, self.loss, self.design, self.columns.scaling().cloned()).map(Arc::new)
    }

    /// Refuses rows that do not belong to the stream.
    fn check(&self, rows: &Table) -> Result<(), TableError> {
        if rows.weights.is_some() {
            return Err(TableError::Setting {
                name: "weights of rows in a stream",
                needs: "left out",
                got: 1.0,
            });
        }
        if rows.columns() != self.width {
            return Err(TableError::Shape { what: "columns", needs: self.width, got: rows.columns() });
        }
        Ok(())
    }

    /// The scaling that rows of the stream have of their own; `None` where columns are taken as they are.
    fn own_scaling(&self, rows: &Table) -> Result<Option<Scaling>, TableError> {
        self.check(rows)?;
        own_scaling(rows, &self.design)
    }

    /// Makes room for columns that rows from here on have, and which were 0 in all rows before: column k becomes column `places[k]` of `columns`. The order of columns must
    /// stay.
    pub fn widen(&mut self, places: &[usize], columns: usize) -> Result<(), TableError> {
        let is_order = places.windows(2).all(|pair| pair[0] < pair[1]);
        if places.len() != self.width || !is_order || places.last().is_some_and(|last| *last >= columns) {
            return Err(TableError::Setting {
                name: "places of columns",
                needs: "one for each, in the order of the columns",
                got: places.len() as f64,
            });
        }
        let (had, stride) = (self.design.features(self.width)?, self.start.len() / self.loss.outputs());
        let features = self.design.features(columns)?;
        let wider = features + stride - had;
        let of_one = self.places_of_features(places, columns);
        // The intercept comes after the features.
        let of_one = of_one.into_iter().chain((had..stride).map(|k| k - had + features)).collect::<Vec<_>>();
        let coordinates: Vec<usize> = (0..self.loss.outputs())
            .flat_map(|k| of_one.iter().map(move |place| k * wider + place))
            .collect();
        let dim = wider * self.loss.outputs();
        self.columns.widen(places, columns);
        // Phase retrieval starts with equal weights, all others at 0.
        let start = if self.loss.is_even() { self.start[0] } else { 0.0 };
        self.x = spread_out(&self.x, &coordinates, dim, start);
        self.start = spread_out(&self.start, &coordinates, dim, start);
        self.first = spread_out(&self.first, &coordinates, dim, 0.0);
        let pull = self.design.penalty * self.rows as f64;
        let new = (0..dim).map(|i| if i % wider < features { pull } else { 0.0 }).collect();
        self.past = widened(&self.past, &coordinates, new);
        self.width = columns;
        Ok(())
    }

    /// Where the features of the columns stand among those of more columns.
    fn places_of_features(&self, places: &[usize], columns: usize) -> Vec<usize> {
        if self.design.degree == 1 {
            return places.to_vec();
        }
        let of: HashMap<Vec<usize>, usize> =
            monomials(columns, self.design.degree).enumerate().map(|(k, of)| (of, k)).collect();
        let moved = |of: Vec<usize>| of.into_iter().map(|k| places[k]).collect::<Vec<_>>();
        monomials(self.width, self.design.degree).map(|monomial| of[&moved(monomial)]).collect()
    }

    /// The coordinates of the features that have one of these columns in them.
    fn coordinates_of(&self, woken: &[usize]) -> Vec<usize> {
        let stride = self.start.len() / self.loss.outputs();
        let features: Vec<usize> = match self.design.degree {
            1 => woken.to_vec(),
            degree => {
                let has = |of: &Vec<usize>| of.iter().any(|column| woken.binary_search(column).is_ok());
                let all = monomials(self.width, degree).enumerate();
                all.filter(|(_, of)| has(of)).map(|(k, _)| k).collect()
            }
        };
        (0..self.loss.outputs()).flat_map(|k| features.iter().map(move |f| k * stride + f)).collect()
    }

    /// Wakes the columns that vary for the first time in rows with this scaling of their own. Their features were 0 in all rows before, so whatever weight they have had
    /// is none.
    fn wake(&mut self, own: &Scaling) -> Result<(), TableError> {
        let woken = self.columns.wake(own)?;
        if woken.is_empty() {
            return Ok(());
        }
        let pull = self.design.penalty * self.rows as f64;
        for i in self.coordinates_of(&woken) {
            self.x[i] = self.start[i];
            match &mut self.past {
                Hessian::Full { dim, entries } => {
                    for j in 0..*dim {
                        let h = if i == j { pull } else { 0.0 };
                        (entries[i * *dim + j], entries[j * *dim + i]) = (h, h);
                    }
                }
                Hessian::Diagonal(diagonal) => diagonal[i] = pull,
            }
        }
        Ok(())
    }

    /// Columns that did not vary in any row that was learnt from, but do in these.
    pub fn first_seen(&self, rows: &Table) -> Result<Vec<usize>, TableError> {
        match self.own_scaling(rows)? {
            Some(own) => self.columns.clone().wake(&own),
            None => Ok(Vec::new()),
        }
    }

    /// The coordinates of a certificate.
    fn standard(&self) -> Standard {
        let features = self.start.len() / self.loss.outputs() - usize::from(self.design.intercept);
        let (means, spreads) = self.columns.moments();
        let (means, units) = match self.design.degree {
            _ if spreads.is_empty() => (Vec::new(), vec![1.0; features]),
            1 if self.design.intercept => (means, spreads),
            degree => {
                let unit = |of: Vec<usize>| of.into_iter().map(|column| spreads[column]).product();
                (Vec::new(), monomials(self.width, degree).map(unit).collect())
            }
        };
        Standard { means, units, stride: features + usize::from(self.design.intercept) }
    }

    /// |grad f| at the start, by the rows that were learnt from, in the coordinates of a [certificate](Self::certify).
    pub fn start_gradient(&self) -> f64 {
        let mut gradient = self.first.clone();
        self.standard().turn(&mut gradient);
        squared_norm(&gradient).sqrt() / self.rows.max(1) as f64
    }

    /// f over some rows, and |grad f| in the coordinates of a [certificate](Self::certify), at the point. Here columns that these rows [see
    /// first](Self::first_seen) have coordinates, too, in which their deviation over these rows is 1.
    pub fn look(&self, rows: &Arc<Table>, stop: &Arc<AtomicBool>) -> Result<(f64, f64), LearnError> {
        let mut awake = self.clone();
        if let Some(own) = self.own_scaling(rows)? {
            awake.wake(&own)?;
        }
        let problem = awake.problem(Arc::clone(rows))?;
        let mut gate = Gate::over(problem, self.seed).with_stop(Arc::clone(stop));
        let (value, mut gradient) = evaluate(&mut gate, &awake.x)?;
        awake.standard().turn(&mut gradient);
        Ok((value, squared_norm(&gradient).sqrt()))
    }

    /// Where the blocks so far have led.
    pub fn point(&self) -> &[f64] {
        &self.x
    }

    /// Where the pass began.
    pub fn origin(&self) -> &[f64] {
        &self.start
    }

    /// Rows that were learnt from.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Blocks that were learnt from.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// What was asked of the blocks, in memory.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Learns from a block, and says how the work on it ended. After an error nothing that was learnt has changed.
    pub fn learn(&mut self, rows: Arc<Table>, stop: &Arc<AtomicBool>) -> Result<Stop, LearnError> {
        let own = self.own_scaling(&rows)?;
        if let Some(own) = &own {
            self.wake(own)?;
        }
        let block = &self.problem(rows)?;
        let rows = block.table().rows() as u64;
        let oracle = Remembering::new(
            Arc::clone(block),
            self.x.clone(),
            self.past.clone(),
            self.rows as f64,
            rows as f64,
        );
        let mut gate = Gate::over(Arc::new(oracle), derived_seed(self.seed, Role::Pilot, self.blocks))
            .with_budget(PASSES * u128::from(rows))
            .with_stop(Arc::clone(stop));
        let worked = match &self.past {
            _ if !self.loss.is_strictly_convex() => None,
            Hessian::Full { .. } => self.second_order(block, &mut gate)?,
            Hessian::Diagonal(past) => self.by_pairs(block, past, &mut gate)?,
        };
        let (x, ended, seen) = match worked {
            Some(worked) => worked,
            None => self.auto(&mut gate)?,
        };
        let mut look = Gate::over(Arc::clone(block) as _, self.seed).with_stop(Arc::clone(stop));
        let mut at_start = vec![0.0; x.len()];
        look.exact(Role::Look, &self.start, &mut at_start)?;
        gate.merge(&look);
        self.first.iter_mut().zip(&at_start).for_each(|(sum, g)| *sum += rows as f64 * g);
        self.past.add(rows as f64, &seen.unwrap_or_else(|| block.hessian(&x)));
        self.x = x;
        self.rows += rows;
        self.blocks += 1;
        if let Some(own) = &own {
            self.columns.count(rows as f64, own);
        }
        for (role, entry) in gate.ledger().by_role() {
            let charge = Charge { samples: entry.samples, evaluations: entry.evaluations, exact: false };
            self.ledger.charge(role, charge);
        }
        Ok(ended)
    }

    /// How much smaller the gradient of a block's term shall be.
    fn share(&self) -> f64 {
        if self.blocks == 0 { FIRST } else { NEXT }
    }

    /// Works on a block by random rows and L-BFGS: any loss, any number of coordinates.
    fn auto(&self, gate: &mut Gate) -> Result<Worked, Halt> {
        let mut gradient = vec![0.0; self.x.len()];
        gate.exact(Role::Look, &self.x, &mut gradient)?;
        let target = self.share() * squared_norm(&gradient).sqrt();
        let mut walk = match Auto::start(gate, &self.x, Some(target)) {
            Ok(walk) => walk,
            Err(error) => return Err(Halt::Oracle(OracleError::new(error))),
        };
        let ended = loop {
            match walk.advance(gate) {
                Ok(Advance::Stop(stop)) => break stop,
                Ok(_) => {}
                Err(halt) => match halt.stop() {
                    Some(stop) if stop != Stop::Interrupted => break stop,
                    _ => return Err(halt),
                },
            }
        };
        Ok((walk.view().point.to_vec(), ended, None))
    }

    /// Works on a block by second-order steps: the matrix is that of the blocks before, and this block's own. `None` if a step leads nowhere.
    fn second_order(&self, block: &Linear, gate: &mut Gate) -> Result<Option<Worked>, Halt> {
        let rows = block.table().rows();
        let pass = Charge { samples: rows as u128, evaluations: rows as u128, exact: true };
        let mut x = self.x.clone();
        let (mut value, mut gradient) = evaluate(gate, &x)?;
        let mut norm = squared_norm(&gradient).sqrt();
        let target = self.share() * norm;
        let mut matrix: Option<(Hessian, Factor)> = None;
        let mut steps = 0;
        while norm > target && steps < STEPS {
            let (own, factor) = if let Some(matrix) = matrix.take() {
                matrix
            } else {
                gate.count(Role::Large, pass)?;
                let own = block.hessian(&x);
                let mut whole = self.past.clone();
                whole.add(rows as f64, &own);
                let Some(factor) = whole.factor() else { return Ok(None) };
                (own, factor)
            };
            // The matrix is a sum over rows, the gradient a mean.
            let mut way = factor.solve(&gradient);
            way.iter_mut().for_each(|way| *way *= -(rows as f64));
            let (there, lower, next) = match search(gate, &x, value, &gradient, &way) {
                Ok(Some(found)) => found,
                Ok(None) => return Ok(None),
                Err(Halt::OverBudget { .. }) => return Ok(Some((x, Stop::OutOfBudget, None))),
                Err(halt) => return Err(halt),
            };
            let left = squared_norm(&next).sqrt();
            (x, value, gradient) = (there, lower, next);
            steps += 1;
            // One step to the target says that the second derivatives hardly change on the way: those at its beginning are as good as those at its end.
            if left <= target && steps == 1 && self.blocks > 0 {
                return Ok(Some((x, Stop::Settled, Some(own))));
            }
            if left <= SLOW * norm || self.loss.is_quadratic() {
                matrix = Some((own, factor));
            }
            norm = left;
        }
        Ok(Some((x, Stop::Settled, None)))
    }

    /// Works on a block by L-BFGS, whose first matrix is the diagonal: that of the blocks before, and this block's own. A pass over a block of sparse rows
    /// costs as much as a few steps by single rows, which move all coordinates. `None` if a step leads nowhere.
    fn by_pairs(&self, block: &Linear, past: &[f64], gate: &mut Gate) -> Result<Option<Worked>, Halt> {
        let rows = block.table().rows();
        gate.count(Role::Large, Charge { samples: rows as u128, evaluations: rows as u128, exact: true })?;
        let Hessian::Diagonal(own) = block.hessian(&self.x) else { return Ok(None) };
        let mut units: Vec<f64> = past.iter().zip(&own).map(|(past, own)| past / rows as f64 + own).collect();
        // Columns that no row has had yet.
        let least = f64::EPSILON * units.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        units.iter_mut().for_each(|unit| *unit = unit.max(least));
        let mut x = self.x.clone();
        let (mut value, mut gradient) = evaluate(gate, &x)?;
        let target = self.share() * squared_norm(&gradient).sqrt();
        let mut memory = Memory::default();
        while squared_norm(&gradient).sqrt() > target {
            let way = memory.direction(&gradient, 0.0, &units[..]);
            let (there, lower, next) = match search(gate, &x, value, &gradient, &way) {
                Ok(Some(found)) => found,
                // At the end of what rounding shows, or astray from the beginning.
                Ok(None) => return Ok((!memory.is_empty()).then_some((x, Stop::Settled, None))),
                Err(Halt::OverBudget { .. }) => return Ok(Some((x, Stop::OutOfBudget, None))),
                Err(halt) => return Err(halt),
            };
            memory.add(minus(&there, &x), minus(&next, &gradient), true);
            (x, value, gradient) = (there, lower, next);
        }
        Ok(Some((x, Stop::Settled, None)))
    }

    /// Bounds |grad f| at the point, f being the mean over the law that the rows come from, by rows that were kept back: each is read once, as
    /// a fresh sample. Holds under the claim's assumption and if these rows are independent draws from one law, and the claim's target does not depend on them:
    /// a share of [`start_gradient`](Self::start_gradient) does not.
    ///
    /// The gradient is that in coordinates in which each column has deviation 1 over all rows that were learnt from (columns as they are if they are not standardised). It says
    /// nothing about columns that these rows [see first](Self::first_seen); [`look`](Self::look) does.
    pub fn certify(
        &self,
        tail: &Arc<Linear>,
        claim: Claim,
        stop: &Arc<AtomicBool>,
    ) -> Result<Certificate, CertificateError> {
        let rows = tail.table().rows() as u128;
        let mut gate = Gate::over(Arc::new(Tail::new(Arc::clone(tail), self.standard())), self.seed)
            .with_budget(rows)
            .with_stop(Arc::clone(stop));
        let certificate = Certifier::start(&mut gate, &self.x, claim, 0)?.finish(&mut gate)?;
        Ok(certificate)
    }

    /// The kurtosis that rows which were kept back show themselves, at the point: of the noise of means of `each` rows that follow each other, the mean of its fourth
    /// power over the square of that of its second. 1 where there is no noise. Few rows show less than there is; what they show can refute the assumption
    /// of a certificate, and not confirm it.
    pub fn seen_kurtosis(&self, tail: &Linear, each: usize) -> f64 {
        let each = each.clamp(1, tail.table().rows());
        let groups = tail.table().rows() / each;
        let standard = self.standard();
        let sum = |rows: Range<usize>| {
            let mut sum = vec![0.0; self.x.len()];
            tail.sum_stored(rows, &self.x, &mut sum);
            standard.turn(&mut sum);
            sum
        };
        let mut mean = sum(0..groups * each);
        mean.iter_mut().for_each(|mean| *mean /= groups as f64);
        let squares: Vec<f64> = (0..groups)
            .into_par_iter()
            .map(|group| squared_norm(&minus(&sum(group * each..(group + 1) * each), &mean)))
            .collect();
        // Over the largest, so that no power overflows.
        let largest = squares.iter().copied().fold(0.0, f64::max);
        if largest == 0.0 {
            return 1.0;
        }
        let (mut second, mut fourth) = (0.0, 0.0);
        for square in squares {
            second += square / largest;
            fourth += (square / largest).powi(2);
        }
        fourth * groups as f64 / (second * second)
    }
}

/// A matrix whose k-th coordinate becomes the one at `places[k]` of so many as `diagonal` has, which is the matrix of the new ones.
fn widened(past: &Hessian, places: &[usize], mut diagonal: Vec<f64>) -> Hessian {
    let dim = diagonal.len();
    match past {
        Hessian::Full { dim: before, entries } if dim <= MOST_FULL => {
            let mut wider = vec![0.0; dim * dim];
            diagonal.iter().enumerate().for_each(|(i, h)| wider[i * dim + i] = *h);
            for (row, i) in entries.chunks(*before).zip(places) {
                row.iter().zip(places).for_each(|(h, j)| wider[i * dim + j] = *h);
            }
            return Hessian::Full { dim, entries: wider };
        }
        Hessian::Full { dim: before, entries } => {
            places.iter().enumerate().for_each(|(k, i)| diagonal[*i] = entries[k * before + k]);
        }
        Hessian::Diagonal(before) => places.iter().zip(before).for_each(|(i, h)| diagonal[*i] = *h),
    }
    Hessian::Diagonal(diagonal)
}

/// Coordinates in which every column shows: columns have mean 0 and deviation 1 over all rows that were learnt from, monomials are those of columns of deviation 1.
#[derive(Debug)]
struct Standard {
    /// The mean of each feature, where it has an intercept beside it.
    means: Vec<f64>,
    /// The deviation of each feature.
    units: Vec<f64>,
    /// Coordinates of one output.
    stride: usize,
}

impl Standard {
    /// Turns a gradient in the coordinates of a pass into that in these.
    fn turn(&self, gradient: &mut [f64]) {
        for output in gradient.chunks_mut(self.stride) {
            let (features, intercept) = output.split_at_mut(self.units.len());
            if let [slope] = *intercept {
                features.iter_mut().zip(&self.means).for_each(|(g, mean)| *g -= mean * slope);
            }
            features.iter_mut().zip(&self.units).for_each(|(g, unit)| *g /= unit);
        }
    }
}

/// Where work on a block led, how it ended, and the block's second derivatives if they are known well enough.
type Worked = (Vec<f64>, Stop, Option<Hessian>);

/// The value of a block's term and its gradient, by a pass over the block.
fn evaluate(gate: &mut Gate, x: &[f64]) -> Result<(f64, Vec<f64>), Halt> {
    let (mut gradient, mut losses) = (vec![0.0; x.len()], [0.0]);
    let mut answer = Answer { losses: &mut losses, ..Answer::new(&mut gradient) };
    gate.ask(Request { losses: true, ..Request::everything(Role::Large, &[x]) }, &mut answer)?;
    Ok((losses[0], gradient))
}

/// The first of x + way, x + way/2, .. that is lower by a share of what the slope promises, with value and gradient there.
fn search(
    gate: &mut Gate,
    x: &[f64],
    value: f64,
    gradient: &[f64],
    way: &[f64],
) -> Result<Option<(Vec<f64>, f64, Vec<f64>)>, Halt> {
    let slope = dot(way, gradient);
    if !(slope < 0.0 && slope.is_finite()) {
        return Ok(None);
    }
    let mut length = 1.0;
    for _ in 0..TRIALS {
        let there = along(x, length, way);
        match evaluate(gate, &there) {
            Ok((lower, next)) if lower <= value + ENOUGH * length * slope => {
                return Ok(Some((there, lower, next)));
            }
            Ok(_) | Err(Halt::NotFinite { .. }) => length /= 2.0,
            Err(halt) => return Err(halt),
        }
    }
    Ok(None)
}

/// The rows of a block, and what the blocks before it taught: weight/2 (x - c)' H (x - c), over the rows of this block.
#[derive(Debug)]
struct Remembering {
    block: Arc<Linear>,
    centre: Vec<f64>,
    past: Hessian,
    rows: f64,
    about: About,
}

impl Remembering {
    fn new(block: Arc<Linear>, centre: Vec<f64>, past: Hessian, before: f64, rows: f64) -> Self {
        let mut about = block.about().clone();
        about.identity = format!("{}, after {before} rows of a stream", about.identity);
        Self { block, centre, past, rows, about }
    }

    /// The gradient of the term at x, and its value.
    fn term(&self, x: &[f64]) -> (Vec<f64>, f64) {
        let away = minus(x, &self.centre);
        let mut pull = self.past.times(&away);
        pull.iter_mut().for_each(|pull| *pull /= self.rows);
        let value = 0.5 * dot(&pull, &away);
        (pull, value)
    }
}

impl Oracle for Remembering {
    fn about(&self) -> &About {
        &self.about
    }

    fn price(&self, request: &Request<'_>) -> Charge {
        self.block.price(request)
    }

    fn answer(&self, request: &Request<'_>, answer: &mut Answer<'_>) -> Result<Charge, OracleError> {
        let charge = self.block.answer(request, answer)?;
        let samples = match &request.draw {
            Draw::Batch(batch) => batch.count() as f64,
            Draw::Everything(_) => 1.0,
        };
        let terms: Vec<_> = request.points.iter().map(|x| self.term(x)).collect();
        let rows = answer.gradients.chunks_mut(self.about.dim);
        for (out, (pull, _)) in rows.zip(&terms) {
            out.iter_mut().zip(pull).for_each(|(out, pull)| *out += samples * pull);
            if request.form == Form::Differences
                && let Some((base, _)) = terms.last()
            {
                out.iter_mut().zip(base).for_each(|(out, base)| *out -= samples * base);
            }
        }
        if request.losses {
            answer.losses.iter_mut().zip(&terms).for_each(|(loss, (_, value))| *loss += samples * value);
        }
        Ok(charge)
    }
}

/// Rows that were kept back, as a stream: the address of a batch says which of them it has, no row is in two.
#[derive(Debug)]
struct Tail {
    rows: Arc<Linear>,
    standard: Standard,
    about: About,
}

impl Tail {
    fn new(rows: Arc<Linear>, standard: Standard) -> Self {
        let mut about = rows.about().clone();
        about.identity = format!("{}, each row once", about.identity);
        about.source = Source::Stream;
        (about.losses, about.shared) = (false, false);
        Self { rows, standard, about }
    }
}

impl Oracle for Tail {
    fn about(&self) -> &About {
        &self.about
    }

    fn answer(&self, request: &Request<'_>, answer: &mut Answer<'_>) -> Result<Charge, OracleError> {
        let Draw::Batch(batch) = &request.draw else {
            return Err(OracleError::new("a tail has samples, not a whole"));
        };
        request.interrupted()?;
        // The pilot's rows come first; then each sub-batch of the certificate, of which all have one size.
        let first = match batch.role {
            Role::Pilot => batch.step,
            _ => PILOT + batch.step * batch.count(),
        };
        let rows = self.rows.table().rows() as u64;
        if first + batch.count() > rows {
            return Err(OracleError::new(format!("the tail has {rows} rows, and all were read")));
        }
        let place = first as usize..(first + batch.count()) as usize;
        self.rows.sum_stored(place, request.points[0], answer.gradients);
        self.standard.turn(answer.gradients);
        Ok(request.usual_price(&self.about))
    }
}
