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
//!   dominated by those that are not centred, as E aa' only grows by that;
//! * there too, [`Lanczos`]' method from random starts, unless the others are seen to be as good. Its bound alone is not certain: it holds
//!   except with probability [`FAILURE`], and what rests on it says so.
//!
//! Sums of positive terms are raised by [`SLACK`] to cover their rounding.

use std::ops::Range;

use serde::Serialize;

use super::design::Scaling;
use super::lanczos::{FAILURE, Lanczos};
use super::linear::{Reader, Way};
use super::matrix::{Matrix, ROUNDOFF};
use super::{Features, Linear, TableError};
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

const CHOLESKY: &str = "its matrix, verified by Cholesky";
const LANCZOS: &str = "Lanczos' method, except with probability 1e-12 over its random starts";

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
    /// The probability that it does not hold, over the random starts of Lanczos' method: 0 if it is certain.
    pub failure: f64,
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

    /// Puts a constant that is certain.
    fn put(&mut self, constant: Constant, value: f64, how: impl Into<String>) {
        self.put_unless(constant, value, how, 0.0);
    }

    /// Puts a constant that holds except with a probability.
    fn put_unless(&mut self, constant: Constant, value: f64, how: impl Into<String>, failure: f64) {
        if value.is_finite() {
            self.constants.push(ProvedConstant { constant, value, how: how.into(), failure });
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
    /// The constants that are proved for a run from this start, in a few passes over the table; in some forty over one that is too wide
    /// for its matrix, of which constants may hold except with a small probability that they state.
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
            eigenvalue: spectrum.first.value,
            eigenvalue_from: spectrum.first.from,
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
            let Spectrum { first, second, .. } = spectrum;
            let how = format!("h lambda + penalty: curvature h = {h}, lambda(E aa') from {}", first.from);
            proved.put_unless(Constant::Smoothness, h * first.value + penalty, how, first.failure);
            let how = format!("h sqrt(lambda(E |a|^2 aa')) + penalty: h = {h}, lambda from {}", second.from);
            let value = h * second.value.sqrt() + penalty;
            proved.put_unless(Constant::MsSmoothness, value, how, second.failure);
            proved.row_smoothness = Some(h * proved.largest_square + penalty);
        }
        if let (Some(slope), true) = (bounds.slope, penalty == 0.0) {
            // |E c a| <= E |c||a|, and <E c a, v> = E c <a, v> <= slope sqrt(v' E aa' v).
            let how = "slope of the loss times the smaller of E |a| and sqrt(lambda(E aa'))";
            let root = spectrum.first.value.sqrt();
            if spectrum.norm <= root {
                proved.put(Constant::Lipschitz, slope * spectrum.norm, how);
            } else {
                let (how, failure) = (spectrum.first.saying(how), spectrum.first.failure);
                proved.put_unless(Constant::Lipschitz, slope * root, how, failure);
            }
        }
    }

    /// B and b.
    fn put_noise(&self, proved: &mut Proved, sums: &RowSums, spectrum: &Spectrum) {
        let bounds = self.loss().bounds();
        let second = spectrum.second;
        // Every sample's gradient is bounded: the variance is at most E |c|^2 |a|^2.
        let bounded = bounds.slope.map(|slope| slope * sums.square.sqrt());
        // Mean-square smoothness: Var g(x) <= 2 E|g(x) - g(x0)|^2 + 2 Var g(x0). The penalty has no variance.
        let smooth = bounds.curvature.map(|h| {
            let growth = std::f64::consts::SQRT_2 * h * second.value.sqrt() * (1.0 + SLACK);
            (growth, (2.0 * sums.variance).sqrt())
        });
        match (bounded, smooth) {
            (Some(floor), other) if other.is_none_or(|(_, small)| floor <= 4.0 * small) => {
                proved.put(Constant::Growth, 0.0, "every sample's gradient is bounded");
                proved.put(Constant::Floor, floor, "slope of the loss times sqrt(E |a|^2)");
            }
            (_, Some((growth, floor))) => {
                let how = second.saying("sqrt 2 h sqrt(lambda(E |a|^2 aa')), by mean-square smoothness");
                proved.put_unless(Constant::Growth, growth, how, second.failure);
                proved.put(Constant::Floor, floor, "sqrt(2 Var(x0)), by mean-square smoothness");
            }
            _ if self.loss().is_even() => {
                // |g| = 2 |z||a|: E |g|^2 = 4 E |a|^2 z^2, and z^2 <= 2 <a, x - x0>^2 + 2 z0^2.
                let how = "E |g|^2 = 4 E |a|^2 <a, x>^2, split at the start";
                let growth = (8.0 * second.value).sqrt();
                proved.put_unless(Constant::Growth, growth, second.saying(how), second.failure);
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
            let first = spectrum.first;
            if concavity == 0.0 {
                proved.put(Constant::Rho, 0.0, "the loss is convex");
            } else {
                let value = (concavity * first.value - convex).max(0.0);
                let how = first.saying("concavity of the loss times lambda(E aa')");
                proved.put_unless(Constant::Rho, value, how, first.failure);
            }
        }
        let convex = bounds.concavity == Some(0.0);
        let mu = match spectrum.least {
            Some(least) if self.loss().is_quadratic() => {
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
        self.in_blocks(|squares| squares.fold(0.0, f64::max)).into_iter().fold(0.0, f64::max)
    }

    /// |a|^2 of every row; 0 if it has no weight.
    fn squares(&self) -> Vec<f64> {
        self.in_blocks(|squares| squares.collect::<Vec<f64>>()).concat()
    }

    /// What becomes of |a|^2 of the rows of each block; of those without weight it is 0.
    fn in_blocks<T: Send>(&self, make: impl Fn(&mut dyn Iterator<Item = f64>) -> T + Sync) -> Vec<T> {
        use rayon::prelude::*;
        const BLOCK: usize = 1024;
        let rows = self.table().rows();
        let of_block = |block: usize| {
            let mut reader = Reader::new(self);
            let rows = block * BLOCK..((block + 1) * BLOCK).min(rows);
            make(&mut rows.map(|row| {
                let counts = reader.weights.is_none_or(|weights| weights[row] > 0.0);
                if counts {
                    reader.open(row);
                    reader.squared_length(row)
                } else {
                    0.0
                }
            }))
        };
        (0..rows.div_ceil(BLOCK)).into_par_iter().map(of_block).collect()
    }

    /// Sums over all rows that have weight, in an order that no number of threads changes.
    fn over_rows<F>(&self, width: usize, add: &F) -> Vec<f64>
    where
        F: Fn(&mut Reader<'_>, usize, f64, &mut [f64]) + Sync,
    {
        let block = self.block().max((4 * width).next_power_of_two().min(1 << 20));
        self.over_blocks(block, width, add)
    }

    /// The same with leaves of so many rows.
    fn over_blocks<F>(&self, block: usize, width: usize, add: &F) -> Vec<f64>
    where
        F: Fn(&mut Reader<'_>, usize, f64, &mut [f64]) + Sync,
    {
        let mut sums = vec![0.0; width];
        let rows = self.table().rows();
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
            first: Bound::certain(sums.square, "its trace"),
            second: Bound::certain(sums.fourth, "its trace"),
            norm: sums.norm,
            least: None,
        };
        let Spectrum { first, second, least, .. } = &mut spectrum;
        let work = self.table().rows() as f64 * (d * d) as f64;
        let modest = d <= MODEST && work <= MOST_WORK;
        if modest {
            let matrices = self.matrices();
            let rows = self.table().rows().min(1 << 20) as f64;
            for (bound, matrix) in [&mut *first, second].into_iter().zip(&matrices) {
                if let Some(value) = matrix.largest(rows) {
                    bound.lower(Bound::certain(value, CHOLESKY));
                }
            }
            let [matrix, _] = matrices;
            *least = matrix.with_penalty(self.design().penalty, self.features()).least(rows);
        } else {
            first.lower(Bound::certain(self.collatz_wielandt(), "Collatz and Wielandt's bound"));
        }
        let value = sums.largest * first.value;
        second.lower(Bound::certain(value, "the largest |a|^2 times lambda(E aa')"));
        if !modest {
            let bounds = self.lanczos(sums, [first.value, second.value]);
            for (bound, value) in [first, second].into_iter().zip(bounds) {
                bound.lower(Bound { value, from: LANCZOS, failure: FAILURE });
            }
        }
        spectrum
    }

    /// Upper bounds of the largest eigenvalues of E aa' and E |a|^2 aa' by Lanczos' method, given bounds that are known. The known one is
    /// returned where there is no better one, or where it is seen to be good.
    fn lanczos(&self, sums: &RowSums, known: [f64; 2]) -> [f64; 2] {
        // Products of the smallest numbers vanish, which the bounds of rounding below do not know.
        const SMALLEST: f64 = 1e-200;
        if !known.iter().all(|known| known.is_finite() && *known > SMALLEST) {
            return known;
        }
        let (d, rows) = (self.stride(), self.table().rows());
        // A leaf costs much more than the sums that are added up, and has few additions one after another, as they round.
        let values = match self.way() {
            Way::Stored => (self.table().features.entries() / rows).max(1),
            Way::Computed => self.features(),
        };
        let block = (32 * d / values).clamp(256, 1 << 20).next_power_of_two();
        // With centred sums the rounding of a score <a, v> and of a sum of scores times a is relative to rows of |a_j| + 2 |shift_j|/scale_j,
        // which bounds (|value| + |shift|)/scale: at most as many roundings as numbers are added, and some more. By Minkowski's
        // inequality the mean squares of those rows, and with factors |a|^2, are at most these.
        let offset = if self.way() == Way::Stored { 2.0 * self.squared_offset().sqrt() } else { 0.0 };
        let sizes = [
            (sums.square.sqrt() + offset).powi(2),
            (sums.fourth.sqrt() + offset * sums.square.sqrt()).powi(2),
        ];
        let roundings = (d + block.min(rows) + 512) as f64;
        let mut methods =
            [0, 1].map(|k| Lanczos::new(d, k as u64, known[k], 1.1 * roundings * ROUNDOFF * sizes[k]));
        let squares = self.squares();
        loop {
            let vectors = methods.each_ref().map(|method| method.vectors());
            let counts = vectors.each_ref().map(Vec::len);
            if counts == [0, 0] {
                break;
            }
            let products = self.products(block, &vectors.concat().concat(), counts[0], &squares);
            let (first, second) = products.split_at(counts[0] * d);
            for (method, products) in methods.iter_mut().zip([first, second]) {
                if !products.is_empty() {
                    method.advance(products);
                }
            }
        }
        // The sum of the weights, and |a|^2, are rounded too.
        let up = 1.0 + SLACK + 2.0 * rows as f64 * ROUNDOFF;
        methods.map(|method| method.bound() * up)
    }

    /// E aa' times the first vectors, E |a|^2 aa' times the others, in one pass.
    fn products(&self, block: usize, vectors: &[f64], first: usize, squares: &[f64]) -> Vec<f64> {
        let point = self.point(vectors);
        let width = self.features() + 1;
        let sums = self.over_blocks(block, point.outputs.len() * width, &|reader, row, weight, out| {
            reader.open(row);
            for (k, ((u, offset), out)) in point.outputs.iter().zip(out.chunks_mut(width)).enumerate() {
                let factor = if k < first { weight } else { weight * squares[row] };
                let c = factor * (reader.product(row, u) + offset);
                let (sums, slopes) = out.split_at_mut(width - 1);
                reader.add(row, c, sums);
                slopes[0] += c;
            }
        });
        let mut products = vec![0.0; vectors.len()];
        self.finish(&sums, vectors, None, 0.0, 1.0 / self.total_weight(), &mut products);
        products
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

/// What is known of the eigenvalues of E aa' and E |a|^2 aa'.
#[derive(Debug)]
struct Spectrum {
    /// Of the largest of E aa'.
    first: Bound,
    /// Of the largest of E |a|^2 aa'.
    second: Bound,
    /// E |a|
    norm: f64,
    /// A lower bound of the smallest eigenvalue of E aa' plus the penalty.
    least: Option<f64>,
}

/// An upper bound, where it is from, and the probability that it does not hold.
#[derive(Debug, Clone, Copy)]
struct Bound {
    value: f64,
    from: &'static str,
    failure: f64,
}

impl Bound {
    fn certain(value: f64, from: &'static str) -> Self {
        Self { value, from, failure: 0.0 }
    }

    /// Takes another bound if it is smaller.
    fn lower(&mut self, other: Self) {
        if other.value < self.value {
            *self = other;
        }
    }

    /// What follows from it, with where it is from unless it is certain.
    fn saying(&self, how: &str) -> String {
        if self.failure > 0.0 { format!("{how}; lambda from {}", self.from) } else { how.into() }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::draws::Address;
    use crate::table::{Dense, Design, Loss, Sparse, Table, Values};

    /// Random rows of one of several kinds; sparse ones leave out their zeros.
    fn features(rows: usize, columns: usize, kind: u64, sparse: bool, seed: u64) -> Features {
        let mut xi = Address { seed, role: Role::Setup, step: 3, sample: 0 }.stream();
        let common: Vec<f64> = (0..columns).map(|_| xi.normal()).collect();
        let value = |i: usize| {
            let (row, j, normal) = (i / columns, i % columns, xi.normal());
            match kind {
                // Alike; of very different size; rank one; far from zero; many zeros; two rows apart from the others.
                0 => normal,
                1 => normal * libm::exp2((j % 11) as f64 - 5.0),
                2 => common[j] * (1.0 + row as f64),
                3 => normal + 100.0 * common[j],
                4 => {
                    if xi.bernoulli(0.8) {
                        0.0
                    } else {
                        normal.abs()
                    }
                }
                _ => {
                    if row < 2 {
                        50.0 * normal
                    } else {
                        normal
                    }
                }
            }
        };
        let values: Vec<f64> = (0..rows * columns).map(value).collect();
        if !sparse {
            return Features::Dense(Dense { rows, columns, values: values.into() });
        }
        let (mut starts, mut indices, mut entries) = (vec![0], Vec::new(), Vec::new());
        for row in values.chunks(columns) {
            for (j, value) in row.iter().enumerate().filter(|(_, value)| **value != 0.0) {
                indices.push(j as u32);
                entries.push(*value);
            }
            starts.push(entries.len() as u64);
        }
        let values = Values::F64(Arc::new(entries));
        Features::Sparse(Sparse { columns, starts: Arc::new(starts), indices: Arc::new(indices), values })
    }

    /// The largest eigenvalue from below, by Rayleigh quotients.
    fn from_below(matrix: &Matrix) -> f64 {
        let mut v: Vec<f64> = (0..matrix.d).map(|i| 1.0 + (i as f64 * 0.7).sin()).collect();
        let mut quotient = 0.0;
        for _ in 0..3000 {
            let length = squared_norm(&v).sqrt();
            if length == 0.0 {
                return 0.0;
            }
            v.iter_mut().for_each(|v| *v /= length);
            let next: Vec<f64> = matrix.entries.chunks(matrix.d).map(|row| rows::dot(row, &v)).collect();
            quotient = rows::dot(&next, &v);
            v = next;
        }
        quotient
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

        /// The matrix-free bounds of any table beside its matrices: never below, and as near as promised.
        #[test]
        fn lanczos_bounds_both_matrices_of_any_table(
            rows in 1..60usize,
            columns in 1..24usize,
            kind in 0..6u64,
            flags in 0..32u8,
            seed in any::<u64>(),
        ) {
            let flag = |bit: u8| flags >> bit & 1 == 1;
            let design =
                Design { intercept: flag(0), standardise: flag(1), degree: if flag(4) && columns < 8 { 2 } else { 1 }, penalty: 0.0 };
            let weights: Vec<f64> = (0..rows).map(|row| [1.0, 0.0, 0.3, 7.0][row % 4]).collect();
            let weights = flag(2).then(|| Arc::new(weights) as _);
            let features = features(rows, columns, kind, flag(3), seed);
            let table = Table::new(features, Arc::new(vec![0.0; rows]), weights, Vec::new())
                .map_err(|error| TestCaseError::fail(error.to_string()))?;
            let linear = Linear::new(Arc::new(table), Loss::LeastSquares, design)
                .map_err(|error| TestCaseError::fail(error.to_string()))?;
            let sums = linear.row_sums(&linear.start());
            let known = [sums.square, sums.fourth];
            let bounds = linear.lanczos(&sums, known);
            for ((matrix, bound), known) in linear.matrices().iter().zip(bounds).zip(known) {
                // The matrix is itself rounded.
                let rounding = matrix.rounding(rows as f64);
                let truth = from_below(matrix);
                prop_assert!(bound >= truth - rounding, "{bound} < {truth}");
                // 3000 steps of the power method are within a thousandth. A table with one row, or columns far from zero, is bounded less well:
                // by rounding, of which there is more than there are digits in the worst case.
                let margin = if kind == 3 { 1.5 } else { 1.051 };
                prop_assert!(bound <= (margin * truth + 1e-9 * known).max(1e-200), "{bound} for {truth}, trace {known}");
            }
        }
    }
}
