//! The constants that are proved of a loss on a table.
//!
//! Write a for the features of a row, standardised or expanded as the design says and with a 1 for the intercept, and E for the
//! weighted mean over the rows. With |loss''| <= h the Hessian of f lies between -h E aa' and h E aa' (plus the penalty), so
//! everything rests on bounds of the largest eigenvalues of E aa' and of E |a|^2 aa':
//!
//! * the trace;
//! * up to [`MODEST`] features, the matrix itself: t I - E aa' has a Cholesky factor, and the backward error of that
//!   factorisation is bounded (Rump, "Verification of positive definiteness", BIT 46, 2006);
//! * beyond, Collatz and Wielandt's bound: max_j (Mv)_j/v_j for any positive v bounds the spectral radius of the non-negative
//!   matrix M = E |a||a|', which bounds that of E aa'. Some steps of the power method choose v. Centred sparse rows are
//!   dominated by those that are not centred, as E aa' only grows by that.
//!
//! Sums of positive terms are raised by [`SLACK`] to cover their rounding.

use std::ops::Range;

use serde::Serialize;

use super::design::Scaling;
use super::linear::{Reader, Way};
use super::matrix::Matrix;
use super::{Features, Linear, Loss, TableError};
use crate::draws::Role;
use crate::kernels::rows;
use crate::kernels::squared_norm;
use crate::oracle::{Batch, OracleError};
use crate::recipe::{Constant, Constants};

/// The most coordinates of one output whose matrix is formed.
const MODEST: usize = 512;

/// The most multiplications for it.
const MOST_WORK: f64 = 8e9;

/// Steps of the power method for Collatz and Wielandt's bound.
const POWER_STEPS: usize = 12;

/// Relative excess that covers the rounding of sums of up to 2^21 positive terms in a row.
const SLACK: f64 = 1e-9;

/// A constant with the argument that proves it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ProvedConstant {
    /// Which constant.
    pub constant: Constant,
    /// Its value: an upper bound, or a lower bound for mu.
    pub value: f64,
    /// Why it holds.
    pub how: String,
}

/// What is proved of a loss on a table, for a run from one start.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[non_exhaustive]
pub struct Proved {
    /// The constants that recipes use.
    pub constants: Vec<ProvedConstant>,
    /// An upper bound on the smoothness constant of a single row's loss.
    pub row_smoothness: Option<f64>,
    /// An upper bound on the largest eigenvalue of E aa'.
    pub eigenvalue: f64,
    /// Where that bound is from.
    pub eigenvalue_from: &'static str,
    /// E |a|^2, the trace of that matrix.
    pub mean_square: f64,
    /// The largest |a|^2.
    pub largest_square: f64,
    /// The variance of a sample at the start.
    pub start_variance: f64,
    /// f at the start.
    pub start_value: f64,
    /// |grad f| at the start.
    pub start_gradient: f64,
}

impl Proved {
    /// The value of a constant, if it is proved.
    pub fn get(&self, constant: Constant) -> Option<f64> {
        self.constants.iter().find(|proved| proved.constant == constant).map(|proved| proved.value)
    }

    fn put(&mut self, constant: Constant, value: f64, how: impl Into<String>) {
        if value.is_finite() {
            self.constants.push(ProvedConstant { constant, value, how: how.into() });
        }
    }
}

impl From<&Proved> for Constants {
    fn from(proved: &Proved) -> Self {
        let mut constants = Self::default();
        proved.constants.iter().for_each(|proved| constants.set(proved.constant, proved.value));
        constants
    }
}

impl Linear {
    /// The constants that are proved for a run from this start: a few passes over the table, some more without a bound on
    /// the number of features.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use pasta_opt::recipe::Constant;
    /// use pasta_opt::table::{Dense, Design, Features, Linear, Loss, Table, Values};
    ///
    /// let values = Values::F64(Arc::new(vec![0.0, 10.0, 20.0, 30.0]));
    /// let features = Features::Dense(Dense { rows: 4, columns: 1, values });
    /// let table = Table::new(features, Arc::new(vec![0.0, 0.0, 1.0, 1.0]), None, Vec::new())?;
    /// let problem = Linear::new(Arc::new(table), Loss::Logistic, Design::default())?;
    /// let proved = problem.constants(&problem.start())?;
    /// // A standardised column and an intercept: both eigenvalues are 1, and the loss has curvature at most 1/4.
    /// let smoothness = proved.get(Constant::Smoothness).ok_or("proved")?;
    /// assert!((0.25..0.2500001).contains(&smoothness));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn constants(&self, start: &[f64]) -> Result<Proved, TableError> {
        if start.len() != self.dim() {
            let (needs, got) = (self.dim(), start.len());
            return Err(TableError::Shape { what: "coordinates of the start", needs, got });
        }
        let sums = self.row_sums(start);
        let spectrum = self.spectrum(&sums);
        let mut proved = Proved {
            eigenvalue: spectrum.first,
            eigenvalue_from: spectrum.from,
            mean_square: sums.square,
            largest_square: sums.largest,
            start_variance: sums.variance,
            start_value: sums.value,
            start_gradient: sums.gradient,
            ..Proved::default()
        };
        self.put_smoothness(&mut proved, &spectrum);
        self.put_noise(&mut proved, &sums, &spectrum);
        self.put_convexity(&mut proved, &sums, &spectrum);
        Ok(proved)
    }

    /// L, Lbar, G.
    fn put_smoothness(&self, proved: &mut Proved, spectrum: &Spectrum) {
        let (bounds, penalty) = (self.loss().bounds(), self.design().penalty);
        if let Some(h) = bounds.curvature {
            let how = format!("h lambda + penalty: curvature h = {h}, lambda(E aa') from {}", spectrum.from);
            proved.put(Constant::Smoothness, h * spectrum.first + penalty, how);
            let how = format!(
                "h sqrt(lambda(E |a|^2 aa')) + penalty: h = {h}, lambda from {}",
                spectrum.second_from
            );
            proved.put(Constant::MsSmoothness, h * spectrum.second.sqrt() + penalty, how);
            proved.row_smoothness = Some(h * proved.largest_square + penalty);
        }
        if let (Some(slope), true) = (bounds.slope, penalty == 0.0) {
            // |E c a| <= E |c||a|, and <E c a, v> = E c <a, v> <= slope sqrt(v' E aa' v).
            let how = "slope of the loss times the smaller of E |a| and sqrt(lambda(E aa'))";
            proved.put(Constant::Lipschitz, slope * spectrum.norm.min(spectrum.first.sqrt()), how);
        }
    }

    /// B and b.
    fn put_noise(&self, proved: &mut Proved, sums: &RowSums, spectrum: &Spectrum) {
        let bounds = self.loss().bounds();
        // Every sample's gradient is bounded: the variance is at most E |c|^2 |a|^2.
        let bounded = bounds.slope.map(|slope| slope * sums.square.sqrt());
        // Mean-square smoothness: Var g(x) <= 2 E|g(x) - g(x0)|^2 + 2 Var g(x0). The penalty has no variance.
        let smooth = bounds.curvature.map(|h| {
            let growth = std::f64::consts::SQRT_2 * h * spectrum.second.sqrt() * (1.0 + SLACK);
            (growth, (2.0 * sums.variance).sqrt())
        });
        match (bounded, smooth) {
            (Some(floor), other) if other.is_none_or(|(_, small)| floor <= 4.0 * small) => {
                proved.put(Constant::Growth, 0.0, "every sample's gradient is bounded");
                proved.put(Constant::Floor, floor, "slope of the loss times sqrt(E |a|^2)");
            }
            (_, Some((growth, floor))) => {
                proved.put(
                    Constant::Growth,
                    growth,
                    "sqrt 2 h sqrt(lambda(E |a|^2 aa')), by mean-square smoothness",
                );
                proved.put(Constant::Floor, floor, "sqrt(2 Var(x0)), by mean-square smoothness");
            }
            _ if self.loss() == Loss::PhaseRetrieval => {
                // |g| = 2 |z||a|: E |g|^2 = 4 E |a|^2 z^2, and z^2 <= 2 <a, x - x0>^2 + 2 z0^2.
                let how = "E |g|^2 = 4 E |a|^2 <a, x>^2, split at the start";
                proved.put(Constant::Growth, (8.0 * spectrum.second).sqrt(), how);
                proved.put(Constant::Floor, (8.0 * sums.scored).sqrt(), how);
            }
            _ => {}
        }
    }

    /// Delta, rho, mu, the distance.
    fn put_convexity(&self, proved: &mut Proved, sums: &RowSums, spectrum: &Spectrum) {
        let (bounds, design) = (self.loss().bounds(), self.design());
        let gap = (sums.value - sums.least).max(0.0);
        let how = "f(x0) less the mean of the least loss of each row";
        proved.put(Constant::Gap, gap + SLACK * (sums.value.abs() + sums.least.abs()), how);
        if let Some(concavity) = bounds.concavity {
            let convex = if design.intercept { 0.0 } else { design.penalty };
            let (value, how) = match concavity {
                0.0 => (0.0, "the loss is convex"),
                _ => (
                    (concavity * spectrum.first - convex).max(0.0),
                    "concavity of the loss times lambda(E aa')",
                ),
            };
            proved.put(Constant::Rho, value, how);
        }
        let convex = bounds.concavity == Some(0.0);
        let mu = match spectrum.least {
            Some(least) if self.loss() == Loss::LeastSquares => {
                Some((least, "smallest eigenvalue of the Hessian, verified by Cholesky"))
            }
            _ if convex && design.penalty > 0.0 && !design.intercept => {
                Some((design.penalty, "the penalty, on all coordinates"))
            }
            _ => None,
        };
        if let Some((mu, how)) = mu {
            proved.put(Constant::Mu, mu, how);
            // The strongly convex f: mu |x0 - x*| <= |grad f(x0)|.
            proved.put(Constant::Distance, sums.gradient / mu * (1.0 + SLACK), "|grad f(x0)|/mu");
        }
    }

    /// Means over the rows, in one pass.
    fn row_sums(&self, start: &[f64]) -> RowSums {
        let point = self.point(start);
        let outputs = self.loss().outputs();
        let width = outputs * (self.features() + 1);
        // |a|, |a|^2, |a|^4, |c|^2 |a|^2, |a|^2 |z|^2, loss, least loss; then the gradient.
        const MEANS: usize = 7;
        let sums = self.over_rows(MEANS + width, &|reader, row, weight, out| {
            let (means, raw) = out.split_at_mut(MEANS);
            let mut scores: Vec<f64> = {
                reader.open(row);
                point.outputs.iter().map(|(u, offset)| reader.product(row, u) + offset).collect()
            };
            let square = reader.squared_length(row);
            let scored = square * squared_norm(&scores);
            let label = reader.labels[row];
            let value = self.loss().differentiate(&mut scores, label);
            let terms = [
                square.sqrt(),
                square,
                square * square,
                square * squared_norm(&scores),
                scored,
                value,
                self.loss().least(label),
            ];
            means.iter_mut().zip(terms).for_each(|(mean, term)| *mean += weight * term);
            for (raw, c) in raw.chunks_mut(self.features() + 1).zip(&scores) {
                let (sums, slopes) = raw.split_at_mut(self.features());
                reader.add(row, weight * c, sums);
                slopes[0] += weight * c;
            }
        });
        let largest = self.largest_square();
        let mean = |i: usize| sums[i] / self.total_weight();
        let up = |value: f64| value * (1.0 + SLACK);
        let mut gradient = vec![0.0; self.dim()];
        let factor = 1.0 / self.total_weight();
        self.finish(&sums[MEANS..], start, None, 0.0, factor, &mut gradient);
        let loss_gradient = squared_norm(&gradient);
        self.finish(&sums[MEANS..], start, None, 1.0, factor, &mut gradient);
        let penalty = 0.5 * self.design().penalty * self.squared_weights(start);
        RowSums {
            norm: up(mean(0)),
            square: up(mean(1)),
            fourth: up(mean(2)),
            variance: (mean(3) - loss_gradient + SLACK * mean(3)).max(0.0),
            scored: up(mean(4)),
            value: mean(5) + penalty,
            least: mean(6),
            largest: up(largest),
            gradient: squared_norm(&gradient).sqrt(),
        }
    }

    /// The largest |a|^2 among rows that have weight.
    fn largest_square(&self) -> f64 {
        use rayon::prelude::*;
        const BLOCK: usize = 1024;
        let rows = self.table().rows();
        let largest = |block: usize| {
            let mut reader = Reader::new(self);
            let rows = block * BLOCK..((block + 1) * BLOCK).min(rows);
            let squares = rows.filter_map(|row| {
                let counts = reader.weights.is_none_or(|weights| weights[row] > 0.0);
                counts.then(|| {
                    reader.open(row);
                    reader.squared_length(row)
                })
            });
            squares.fold(0.0, f64::max)
        };
        (0..rows.div_ceil(BLOCK)).into_par_iter().map(largest).reduce(|| 0.0, f64::max)
    }

    /// Sums over all rows that have weight, in an order that no number of threads changes.
    fn over_rows<F>(&self, width: usize, add: &F) -> Vec<f64>
    where
        F: Fn(&mut Reader<'_>, usize, f64, &mut [f64]) + Sync,
    {
        let mut sums = vec![0.0; width];
        let rows = self.table().rows();
        let block = self.block().max((4 * width).next_power_of_two().min(1 << 20));
        let tree = Batch { seed: 0, role: Role::Setup, step: 0, samples: 0..rows.div_ceil(block) as u64 };
        let add_block = |blocks: Range<u64>, out: &mut [f64]| -> Result<(), OracleError> {
            let mut reader = Reader::new(self);
            for row in blocks.start as usize * block..(blocks.end as usize * block).min(rows) {
                let weight = reader.weights.map_or(1.0, |weights| weights[row]);
                if weight > 0.0 {
                    add(&mut reader, row, weight, out);
                }
            }
            Ok(())
        };
        tree.sum_over(1, &mut sums, &add_block).expect("adding cannot fail");
        sums
    }

    /// Bounds of the eigenvalues.
    fn spectrum(&self, sums: &RowSums) -> Spectrum {
        let d = self.stride();
        let mut spectrum = Spectrum {
            first: sums.square,
            from: "its trace",
            second: sums.fourth,
            second_from: "its trace",
            norm: sums.norm,
            least: None,
        };
        let work = self.table().rows() as f64 * (d * d) as f64;
        if d <= MODEST && work <= MOST_WORK {
            let [first, second] = self.matrices();
            let rows = self.table().rows().min(1 << 20) as f64;
            if let Some(bound) = first.largest(rows) {
                spectrum.lower_first(bound, "its matrix, verified by Cholesky");
            }
            if let Some(bound) = second.largest(rows) {
                spectrum.lower_second(bound, "its matrix, verified by Cholesky");
            }
            spectrum.least = first.with_penalty(self.design().penalty, self.features()).least(rows);
        } else {
            spectrum.lower_first(self.collatz_wielandt(), "Collatz and Wielandt's bound");
        }
        spectrum.lower_second(sums.largest * spectrum.first, "the largest |a|^2 times lambda(E aa')");
        spectrum
    }

    /// E aa' and E |a|^2 aa'.
    fn matrices(&self) -> [Matrix; 2] {
        let d = self.stride();
        let sums = self.over_rows(2 * d * d, &|reader, row, weight, out| {
            let a = reader.whole_row(row);
            let square = squared_norm(&a);
            let (first, second) = out.split_at_mut(d * d);
            for (matrix, factor) in [(first, weight), (second, weight * square)] {
                for (i, matrix) in matrix.chunks_mut(d).enumerate() {
                    rows::add(factor * a[i], &a[i..], &mut matrix[i..]);
                }
            }
        });
        [&sums[..d * d], &sums[d * d..]].map(|sums| {
            let mut entries: Vec<f64> = sums.iter().map(|sum| sum / self.total_weight()).collect();
            for i in 0..d {
                (0..i).for_each(|j| entries[i * d + j] = entries[j * d + i]);
            }
            Matrix { d, entries }
        })
    }

    /// An upper bound on the largest eigenvalue of E aa' by E |a||a|'.
    fn collatz_wielandt(&self) -> f64 {
        let d = self.stride();
        // A centred column has nothing in common with the intercept, whose eigenvalue is 1.
        let apart = self.design().intercept && self.centred_sparse();
        let mut v = vec![1.0; d];
        let mut best = f64::INFINITY;
        for _ in 0..POWER_STEPS {
            let sums = self.over_rows(d, &|reader, row, weight, out| {
                let mut z = 0.0;
                reader.dominating_row(row, &mut |j, value| z += value * v[j]);
                reader.dominating_row(row, &mut |j, value| out[j] += weight * z * value);
            });
            let total = self.total_weight();
            let ratios = sums.iter().zip(&v).map(|(sum, v)| sum / total / v);
            best = ratios.fold(0.0, f64::max).min(best);
            // Every coordinate stays positive, and none so small that it alone decides the ratio.
            let mean = sums.iter().sum::<f64>() / d as f64;
            v.iter_mut().zip(&sums).for_each(|(v, sum)| *v = (sum + 1e-3 * mean) / total);
            if mean <= 0.0 {
                break;
            }
        }
        let bound = best * (1.0 + SLACK);
        if apart { bound.max(1.0) * (1.0 + SLACK) } else { bound }
    }

    fn centred_sparse(&self) -> bool {
        matches!(self.table().features, Features::Sparse(_))
            && self.way() == Way::Stored
            && self.scaling().is_some()
    }
}

impl Reader<'_> {
    /// |a|^2 of an opened row, an upper bound.
    fn squared_length(&self, row: usize) -> f64 {
        let linear = self.linear;
        let intercept = f64::from(u8::from(linear.design().intercept));
        let features = &linear.table().features;
        let scaling = linear.scaling().filter(|_| linear.way() == Way::Stored);
        let mut sum = 0.0;
        match (scaling, features) {
            _ if linear.way() == Way::Computed => sum = squared_norm(self.computed()),
            (None, _) => features.visit_row(row, |_, value| sum += value * value),
            (Some(Scaling { shift, scale }), Features::Dense(_)) => features.visit_row(row, |j, value| {
                let a = (value - shift[j]) / scale[j];
                sum += a * a;
            }),
            (Some(Scaling { shift, scale }), Features::Sparse(_)) => {
                // All entries as if zero, corrected where they are not; the sizes of what cancels bound the rounding.
                let mut size = 0.0;
                features.visit_row(row, |j, value| {
                    let (a, zero) = ((value - shift[j]) / scale[j], shift[j] / scale[j]);
                    sum += a * a - zero * zero;
                    size += a * a + zero * zero;
                });
                let zeros = linear.squared_offset();
                sum += zeros + 1e-12 * (size + zeros);
            }
        }
        sum + intercept
    }

    /// All coordinates of a row's a, the intercept's last.
    fn whole_row(&mut self, row: usize) -> Vec<f64> {
        let mut a = vec![0.0; self.linear.stride()];
        self.write_row(row, &mut a);
        a
    }

    /// The same, written to `a`.
    pub(super) fn write_row(&mut self, row: usize, a: &mut [f64]) {
        self.open(row);
        let linear = self.linear;
        let (features, intercept) = a.split_at_mut(linear.features());
        if let Some(scaling) = linear.scaling().filter(|_| linear.way() == Way::Stored) {
            self.write_scaled(row, scaling, features);
        } else {
            features.fill(0.0);
            self.add(row, 1.0, features);
        }
        intercept.fill(1.0);
    }

    /// Entries of a non-negative row that dominates |a|; of a sparse row that is centred, the row before it is centred, without
    /// the intercept.
    fn dominating_row(&mut self, row: usize, visit: &mut dyn FnMut(usize, f64)) {
        let linear = self.linear;
        let features = &linear.table().features;
        match (linear.scaling(), linear.way()) {
            (Some(Scaling { scale, .. }), Way::Stored) if linear.centred_sparse() => {
                features.visit_row(row, |j, value| visit(j, value.abs() / scale[j]));
                return;
            }
            (Some(Scaling { shift, scale }), Way::Stored) => {
                features.visit_row(row, |j, value| visit(j, ((value - shift[j]) / scale[j]).abs()));
            }
            (None, Way::Stored) => features.visit_row(row, |j, value| visit(j, value.abs())),
            (_, Way::Computed) => {
                self.open(row);
                self.visit_computed(|j, value| visit(j, value.abs()));
            }
        }
        if linear.design().intercept {
            visit(linear.features(), 1.0);
        }
    }
}

/// Means over the rows, at the start where they depend on a point.
#[derive(Debug)]
struct RowSums {
    /// E |a|
    norm: f64,
    /// E |a|^2
    square: f64,
    /// E |a|^4
    fourth: f64,
    /// The largest |a|^2.
    largest: f64,
    /// Var(x0)
    variance: f64,
    /// E |a|^2 |z|^2
    scored: f64,
    /// f(x0)
    value: f64,
    /// The mean of the least loss.
    least: f64,
    /// |grad f(x0)|
    gradient: f64,
}

/// Upper bounds of the largest eigenvalues of E aa' and E |a|^2 aa', and where they are from.
#[derive(Debug)]
struct Spectrum {
    first: f64,
    from: &'static str,
    second: f64,
    second_from: &'static str,
    /// E |a|
    norm: f64,
    /// A lower bound of the smallest eigenvalue of E aa' plus the penalty.
    least: Option<f64>,
}

impl Spectrum {
    fn lower_first(&mut self, bound: f64, from: &'static str) {
        if bound < self.first {
            (self.first, self.from) = (bound, from);
        }
    }

    fn lower_second(&mut self, bound: f64, from: &'static str) {
        if bound < self.second {
            (self.second, self.second_from) = (bound, from);
        }
    }
}
