//! How far a penalised f can be above its least value: by slopes of the rows, for a smooth convex loss.
//!
//! With any slopes p_i of which the conjugate l* is known, the loss of a row is at least p_i z - l*(p_i), so with c = mean of p_i a_i
//!
//! F(x) = mean l(z_i) + h(w) >= -mean l*(p_i) - sum h_j*(-c_j) for every x, if the p_i have mean 0 (where there is an intercept).
//!
//! Taken are the slopes at x, made smaller on one side of 0 until their mean is 0, then all by one factor until every h_j* is finite. (A
//! conjugate is finite between 0 and a slope.) Where x is the minimiser nothing has to be changed, and the two sides meet.

use rayon::prelude::*;

use super::linear::{Reader, Way};
use super::loss::with_scalar;
use super::{Linear, Scaling};
use crate::kernels::rows::{self, SCORED};
use crate::term::Piece;

/// Rows that a thread scores at a time.
const BLOCK: usize = 4096;
/// What rounding may have made of a sum, over the sum of the sizes of its parts.
const ROUNDING: f64 = 1e-14;

impl Linear {
    /// A bound on F(x) - inf F, F = f + the sum of the pieces; `None` where there is none: a loss with several scores or without a known
    /// conjugate, or a weight that nothing keeps finite (no penalty, and an infinite end). Reads the rows twice.
    pub(crate) fn duality_gap(&self, x: &[f64], pieces: &[Piece]) -> Option<f64> {
        let kept = |piece: &Piece| {
            let l2 = piece.l2 + self.design().penalty;
            piece.l1 > 0.0 || l2 > 0.0 || (piece.lower.is_finite() && piece.upper.is_finite())
        };
        let features = self.features();
        if self.loss().outputs() != 1 || !pieces[..features].iter().all(kept) {
            return None;
        }
        let weights = self.table().weight_slice();
        let weight = |row: usize| weights.map_or(1.0, |weights| weights[row]);
        let labels = self.table().label_slice();
        let scores = self.scores(x);
        // The loss of every row, and its slope.
        let (losses, mut slopes): (Vec<f64>, Vec<f64>) = with_scalar!(
            self.loss(),
            loss => {
                use super::loss::Scalar;
                scores.iter().zip(labels).map(|(z, y)| loss.both(*z, *y)).unzip()
            },
            return None
        );
        if self.design().intercept {
            let side = |sign: f64| -> f64 {
                slopes.iter().enumerate().map(|(row, p)| weight(row) * (sign * p).max(0.0)).sum()
            };
            let (above, below) = (side(1.0), side(-1.0));
            let (up, down) = (
                if above > below { below / above } else { 1.0 },
                if below > above { above / below } else { 1.0 },
            );
            slopes.iter_mut().for_each(|p| *p *= if *p > 0.0 { up } else { down });
        }
        let mut c = self.mean_rows(&slopes);
        let share =
            pieces.iter().zip(&c[..features]).map(|(piece, c)| self.reach(piece, -c)).fold(1.0, f64::min);
        slopes.iter_mut().for_each(|p| *p *= share);
        c.iter_mut().for_each(|c| *c *= share);
        let (mut sum, mut size) = (0.0, 0.0);
        for (row, (loss, p)) in losses.iter().zip(&slopes).enumerate() {
            let conjugate = with_scalar!(self.loss(), loss => {
                use super::loss::Scalar;
                loss.conjugate(*p, labels[row])
            }, f64::NAN);
            sum += weight(row) * (loss + conjugate);
            size += weight(row) * (loss.abs() + conjugate.abs());
        }
        let (mut gap, mut rounding) = (sum / self.total_weight(), size / self.total_weight());
        for ((piece, c), w) in pieces.iter().zip(&c[..features]).zip(x) {
            let piece = Piece { l2: piece.l2 + self.design().penalty, ..*piece };
            let (value, conjugate) = (piece.value(*w), conjugate(&piece, -c));
            gap += value + conjugate;
            rounding += value.abs() + conjugate.abs() + (c * w).abs();
        }
        let gap = gap.max(0.0) + ROUNDING * rounding;
        gap.is_finite().then_some(gap)
    }

    /// The largest share of s, at most 1, at which the conjugate of a piece is finite.
    fn reach(&self, piece: &Piece, s: f64) -> f64 {
        let is_open = if s > 0.0 { piece.upper == f64::INFINITY } else { piece.lower == f64::NEG_INFINITY };
        let l2 = piece.l2 + self.design().penalty;
        if is_open && l2 == 0.0 && s.abs() > piece.l1 { piece.l1 / s.abs() } else { 1.0 }
    }

    /// The score of every row at x, for a loss with one.
    fn scores(&self, x: &[f64]) -> Vec<f64> {
        let point = self.point(x);
        let (u, offset) = &point.outputs[0];
        let mut scores = vec![0.0; self.table().rows()];
        scores.par_chunks_mut(BLOCK).enumerate().for_each(|(block, scores)| {
            let (first, mut reader) = (block * BLOCK, Reader::new(self));
            if self.way() == Way::Computed {
                for (i, z) in scores.iter_mut().enumerate() {
                    reader.open(first + i);
                    *z = reader.product(first + i, u) + offset;
                }
            } else {
                reader.write_scores(scores.len(), |i| first + i, (u, *offset), scores);
            }
        });
        scores
    }

    /// The weighted mean of `numbers[i]` times row i, features and intercept.
    fn mean_rows(&self, numbers: &[f64]) -> Vec<f64> {
        let features = self.features();
        let mut sums = self.add_up(features + 1, &|rows, out| {
            let mut reader = Reader::new(self);
            let (out, all) = out.split_at_mut(features);
            for row in rows {
                let c = numbers[row] * reader.weights.map_or(1.0, |weights| weights[row]);
                reader.open(row);
                reader.add(row, c, out);
                all[0] += c;
            }
        });
        let all = sums[features];
        if let Some(Scaling { shift, scale }) = self.scaling().filter(|_| self.way() == Way::Stored) {
            for ((sum, shift), scale) in sums.iter_mut().zip(shift).zip(scale) {
                *sum = (*sum - all * shift) / scale;
            }
        }
        sums.iter_mut().for_each(|sum| *sum /= self.total_weight());
        sums
    }

    /// The second derivatives of f in some coordinates of the only score, row by row, with the same `caution` as in
    /// [`hessian_of_one`](Self::hessian_of_one).
    pub(crate) fn hessian_on(&self, x: &[f64], caution: f64, some: &[usize]) -> Vec<f64> {
        let (point, k, stride) = (self.point(x), some.len(), self.stride());
        let mut places = vec![usize::MAX; stride];
        some.iter().enumerate().for_each(|(place, i)| places[*i] = place);
        let sums = self.add_up(k * k, &|rows, out| {
            let mut reader = Reader::new(self);
            let block = rows::scored(size_of::<f64>() * k);
            let (mut room, mut bends, mut whole) = (vec![0.0; block * k], [0.0; SCORED], vec![0.0; stride]);
            for first in rows.clone().step_by(block) {
                let chunk = first..(first + block).min(rows.end);
                let bends = &mut bends[..chunk.len()];
                self.write_smooth_bends(&mut reader, chunk.clone(), &point, caution, bends);
                for (row, a) in chunk.zip(room.chunks_exact_mut(k)) {
                    self.write_some(&mut reader, row, some, &places, &mut whole, a);
                }
                rows::add_outer(bends, &room, k, out);
            }
        });
        let mut entries = self.means(k, &sums);
        some.iter().enumerate().for_each(|(place, i)| entries[place * k + place] += self.penalty_of(*i));
        entries
    }

    /// Some coordinates of a row; `whole` is room for all.
    fn write_some(
        &self,
        reader: &mut Reader<'_>,
        row: usize,
        some: &[usize],
        places: &[usize],
        whole: &mut [f64],
        a: &mut [f64],
    ) {
        if self.way() == Way::Computed {
            reader.write_row(row, whole);
            a.iter_mut().zip(some).for_each(|(a, i)| *a = whole[*i]);
            return;
        }
        let (features, scaling) = (self.features(), self.scaling());
        let scaled = |j: usize, value: f64| match scaling {
            Some(Scaling { shift, scale }) => (value - shift[j]) / scale[j],
            None => value,
        };
        a.iter_mut().zip(some).for_each(|(a, i)| *a = if *i < features { scaled(*i, 0.0) } else { 1.0 });
        self.table().features.visit_row(row, |j, value| {
            if let Some(a) = a.get_mut(places[j]) {
                *a = scaled(j, value);
            }
        });
    }
}

/// max over w of s w - h(w), for an h without logarithm.
fn conjugate(piece: &Piece, s: f64) -> f64 {
    let value = |w: f64| s * w - piece.value(w);
    let clip = |w: f64| w.max(piece.lower).min(piece.upper);
    if piece.l2 > 0.0 {
        let soft = if s > piece.l1 { s - piece.l1 } else { (s + piece.l1).min(0.0) };
        return value(clip(soft / piece.l2));
    }
    // Linear on both sides of 0: the best is an end, or 0. An end that is not there is not wanted, up to rounding.
    let ends = [piece.lower, piece.upper, clip(0.0)];
    ends.into_iter().filter(|w| w.is_finite()).map(value).fold(f64::NEG_INFINITY, f64::max)
}
