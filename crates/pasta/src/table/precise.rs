//! Gradients in twice the precision, for the last steps of a fit.
//!
//! A matrix of second derivatives takes a gradient to a step. Where columns nearly depend on each other, it makes as much of the gradient's rounding as of the
//! gradient: of a condition number of 10^10 sums in plain doubles leave no digit. Here a row's features, its score and the sums have some 31 digits.
//! They are those of real numbers, not of rounded ones: (value - shift)/scale.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use super::Linear;
use super::design::Scaling;
use super::hessian::Factor;
use super::loss::{Scalar, with_scalar};
use crate::kernels::double::Double;

/// Rows that are added up before anything else is.
const BLOCK: usize = 4096;

/// The features of a row, in units of their own.
struct Row<'a> {
    linear: &'a Linear,
    base: Vec<Double>,
    features: Vec<Double>,
}

impl<'a> Row<'a> {
    fn new(linear: &'a Linear) -> Self {
        Self { linear, base: Vec::new(), features: Vec::new() }
    }

    fn fill(&mut self, row: usize) {
        let features = &self.linear.table().features;
        self.base.clear();
        self.base.resize(features.columns(), Double::default());
        let base = &mut self.base;
        match self.linear.scaling() {
            None => features.visit_row(row, |j, value| base[j] = Double::from(value)),
            Some(scaling @ Scaling { shift, scale }) => {
                base.iter_mut().zip(shift).for_each(|(base, shift)| *base = Double::from(-shift));
                features.visit_row(row, |j, value| base[j] = Double::difference(value, shift[j]));
                // What does not vary is 0, and its scale no number to divide by.
                let varies = |j: usize| scaling.varies(j);
                base.iter_mut()
                    .enumerate()
                    .filter(|(j, _)| !varies(*j))
                    .for_each(|(_, base)| *base = Double::default());
                if self.linear.design().degree > 1 {
                    let scales = base.iter_mut().zip(scale).enumerate().filter(|(j, _)| varies(*j));
                    scales.for_each(|(_, (base, scale))| *base = *base / *scale);
                }
            }
        }
        expand(&self.base, self.linear.design().degree, &mut self.features);
    }
}

/// All monomials, in the order of [`super::design::monomials`].
fn expand(base: &[Double], degree: u32, out: &mut Vec<Double>) {
    out.clear();
    out.extend_from_slice(base);
    if degree > 1 {
        (0..base.len()).for_each(|i| out.extend(base[i..].iter().map(|b| base[i] * *b)));
    }
    if degree > 2 {
        for i in 0..base.len() {
            for j in i..base.len() {
                let two = base[i] * base[j];
                out.extend(base[j..].iter().map(|c| two * *c));
            }
        }
    }
}

impl Linear {
    /// What the features of [`Row`] are to be divided by: nothing but where they are plain columns that are standardised.
    fn units(&self) -> Vec<f64> {
        match self.scaling() {
            Some(scaling) if self.design().degree == 1 => {
                let unit = |(j, scale): (usize, &f64)| if scaling.varies(j) { *scale } else { 1.0 };
                scaling.scale.iter().enumerate().map(unit).collect()
            }
            _ => vec![1.0; self.features()],
        }
    }

    /// The gradient of f at x, for a loss of one score, by a pass over all rows.
    pub(crate) fn precise_gradient(&self, x: &[Double]) -> Vec<f64> {
        let labels = self.table().label_slice();
        with_scalar!(self.loss(), loss => {
            self.precise_sums(x, &|row, z| loss.precise_slope(z, labels[row]))
        }, vec![f64::NAN; x.len()])
    }

    /// The mean over the rows of `slope` (of a row and its score at x) times the row, plus the penalty's part.
    pub(super) fn precise_sums(
        &self,
        x: &[Double],
        slope: &(impl Fn(usize, Double) -> Double + Sync),
    ) -> Vec<f64> {
        let (units, features) = (self.units(), self.features());
        let weights = self.table().weight_slice();
        let u: Vec<Double> = x.iter().zip(&units).map(|(w, unit)| *w / *unit).collect();
        let offset = x.get(features).copied().unwrap_or_default();
        let add = |rows: Range<usize>| {
            let mut sums = vec![Double::default(); features + 1];
            let mut a = Row::new(self);
            for row in rows {
                a.fill(row);
                let mut z = offset;
                a.features.iter().zip(&u).for_each(|(a, u)| z += *a * *u);
                let s = slope(row, z) * Double::from(weights.map_or(1.0, |weights| weights[row]));
                sums.iter_mut().zip(&a.features).for_each(|(sum, a)| *sum += s * *a);
                sums[features] += s;
            }
            sums
        };
        let rows = self.table().rows();
        let blocks = (0..rows.div_ceil(BLOCK)).into_par_iter();
        let parts: Vec<_> = blocks.map(|b| add(b * BLOCK..((b + 1) * BLOCK).min(rows))).collect();
        let mut sums = vec![Double::default(); features + 1];
        parts.iter().for_each(|part| sums.iter_mut().zip(part).for_each(|(sum, part)| *sum += *part));
        let penalty = Double::from(self.design().penalty);
        let mean = |(i, sum): (usize, &Double)| {
            let mean = *sum / units.get(i).copied().unwrap_or(1.0) / self.total_weight();
            if i < features { (mean + penalty * x[i]).rounded() } else { mean.rounded() }
        };
        sums.iter().enumerate().take(x.len()).map(mean).collect()
    }

    /// True if a feature is a combination of those that a factor of the columns does not leave out, and the intercept, in all rows: to some 24 digits, where doubles have 16.
    pub(crate) fn depends_exactly(&self, feature: usize, factor: &Factor) -> bool {
        /// What is left of a column of deviation 1, by rounding in twice the precision.
        const ROUNDING: f64 = 1e-24;
        /// A pass leaves less than this share of what the one before it did, or the column is one of its own.
        const FALLS: f64 = 1e-3;
        let mut x = vec![Double::default(); self.stride()];
        x[feature] = Double::from(-1.0);
        let mut before = f64::INFINITY;
        loop {
            // Bits of positive numbers are in the order of the numbers.
            let largest = AtomicU64::new(0);
            let sums = self.precise_sums(&x, &|_, z| {
                largest.fetch_max(z.hi.abs().to_bits(), Ordering::Relaxed);
                z
            });
            let largest = f64::from_bits(largest.into_inner());
            if largest <= ROUNDING {
                return true;
            }
            if largest.is_nan() || largest >= FALLS * before {
                return false;
            }
            before = largest;
            // The penalty is part of the sums, and of the factor, and of nothing else here: it is 0 where columns are left out.
            x.iter_mut().zip(factor.solve(&sums)).for_each(|(x, step)| *x = *x - Double::from(step));
        }
    }
}
