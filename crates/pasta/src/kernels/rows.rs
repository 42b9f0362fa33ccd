//! Loops over the rows of a table: for each row a product with the weights, then a multiple of the row added to the sum.
//!
//! Every loop is compiled twice, with and without AVX2. Both do the same operations in the same order, and there is no fused
//! multiply-add: the bits are the same.
#![expect(clippy::inline_always, reason = "a loop has AVX2 only where it is part of a function that has it")]

use std::borrow::Cow;
use std::ops::Range;

use multiversion::multiversion;

/// A stored value of a table.
pub(crate) trait Element: Copy + Send + Sync {
    /// In double precision.
    fn real(self) -> f64;
}

impl Element for f64 {
    #[inline(always)]
    fn real(self) -> f64 {
        self
    }
}

impl Element for f32 {
    #[inline(always)]
    fn real(self) -> f64 {
        f64::from(self)
    }
}

/// Rows that are added up at a time. Their products are taken one row after another all the same: rows that are read side by side
/// are streams that a processor does not follow.
const TOGETHER: usize = 4;

/// Independent accumulators of a product: coordinate i belongs to lane i mod 8.
const LANES: usize = 8;

/// Bytes of rows between those that are worked on and those whose memory is asked for.
const AHEAD: usize = 12 << 10;

/// How many of the `reach` rows that come in their stored order shall be asked for ahead: all where the processor's own guesses end
/// with each page, as Intel's do, and none where it follows a stream by itself and asking costs more than it brings, as
/// AMD's do, which alone have SSE4a.
pub(crate) fn asked_in_order(reach: usize) -> usize {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("sse4a") {
        return 0;
    }
    reach
}

/// Rows above so many bytes are not asked for: they would push out what is still to be used.
const WIDE: usize = 16 << 10;

/// How many rows of so many bytes lie between, 0 for none.
#[inline(always)]
fn rows_ahead(bytes: usize) -> usize {
    if bytes > WIDE { 0 } else { (AHEAD / bytes.max(1)).clamp(1, 32) }
}

/// The sum of the lanes, in a fixed order.
#[inline(always)]
fn total(lanes: [f64; LANES]) -> f64 {
    let [a, b, c, d, e, f, g, h] = lanes;
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

#[inline(always)]
fn dot_loop<T: Element>(a: &[T], u: &[f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    let (u, u_rest) = u.as_chunks::<LANES>();
    // Slices of one length, as the compiler can see: no check of an index is left in the loop.
    let (a, a_rest) = (&a.as_chunks::<LANES>().0[..u.len()], &a[u.len() * LANES..][..u_rest.len()]);
    for (a, u) in a.iter().zip(u) {
        for i in 0..LANES {
            lanes[i] += a[i].real() * u[i];
        }
    }
    for (i, u) in u_rest.iter().enumerate() {
        lanes[i] += a_rest[i].real() * u;
    }
    total(lanes)
}

#[inline(always)]
fn add_loop<T: Element>(c: f64, a: &[T], out: &mut [f64]) {
    out.iter_mut().zip(a).for_each(|(out, a)| *out += c * a.real());
}

/// out += c_k a_k for some rows, with the bits of one after another: the sum is read and written once for all.
#[inline(always)]
fn add_rows<T: Element>(c: [f64; TOGETHER], a: [&[T]; TOGETHER], out: &mut [f64]) {
    let [a0, a1, a2, a3] = a.map(|a| &a[..out.len()]);
    for j in 0..out.len() {
        let two = (out[j] + c[0] * a0[j].real()) + c[1] * a1[j].real();
        out[j] = (two + c[2] * a2[j].real()) + c[3] * a3[j].real();
    }
}

/// <a, u>.
#[multiversion(targets("x86_64+avx2"))]
pub(crate) fn dot<T: Element>(a: &[T], u: &[f64]) -> f64 {
    dot_loop(a, u)
}

/// out += c a.
#[multiversion(targets("x86_64+avx2"))]
pub(crate) fn add<T: Element>(c: f64, a: &[T], out: &mut [f64]) {
    add_loop(c, a, out);
}

/// out = (a - shift)/scale.
#[multiversion(targets("x86_64+avx2"))]
pub(crate) fn standardise<T: Element>(a: &[T], shift: &[f64], scale: &[f64], out: &mut [f64]) {
    let (shift, scale) = (&shift[..a.len()], &scale[..a.len()]);
    out[..a.len()].iter_mut().enumerate().for_each(|(j, out)| *out = (a[j].real() - shift[j]) / scale[j]);
}

/// Weights and offset of each score of a row.
pub(crate) type Outputs<'a> = [(Cow<'a, [f64]>, f64)];

/// <a, u> + offset for each score.
#[multiversion(targets("x86_64+avx2"))]
pub(crate) fn dot_each<T: Element>(a: &[T], outputs: &Outputs<'_>, scores: &mut [f64]) {
    for (score, (u, offset)) in scores.iter_mut().zip(outputs) {
        *score = dot_loop(a, u) + offset;
    }
}

/// For each score: out += c a, and c to what stands after it.
#[multiversion(targets("x86_64+avx2"))]
pub(crate) fn add_to_each<T: Element>(c: &[f64], a: &[T], out: &mut [f64]) {
    for (c, out) in c.iter().zip(out.chunks_exact_mut(a.len() + 1)) {
        let (sums, slopes) = out.split_at_mut(a.len());
        add_loop(*c, a, sums);
        slopes[0] += c;
    }
}

/// Scores of rows that are computed before any row is added up.
pub(crate) const SCORED: usize = 64;

/// How many rows of so many bytes: few, so that memory is read evenly and rows are close by when they are added up.
pub(crate) fn scored(bytes: usize) -> usize {
    ((6 << 10) / bytes.max(1)).clamp(8, SCORED)
}

/// <a, u> + offset for the rows `row(i)`; `row` can be asked for `reach` of them.
#[multiversion(targets("x86_64+avx2"))]
pub(crate) fn dot_dense<T: Element, R: Fn(usize) -> usize>(
    table: DenseRows<'_, T>,
    reach: usize,
    row: R,
    (u, offset): (&[f64], f64),
    scores: &mut [f64],
) {
    let ahead = rows_ahead(size_of::<T>() * table.columns);
    for (i, score) in scores.iter_mut().enumerate() {
        if ahead > 0 && i + ahead < reach {
            prefetch(table.row(row(i + ahead)));
        }
        *score = dot_loop(table.row(row(i)), u) + offset;
    }
}

/// out += c_i a for the rows `row(i)`.
#[multiversion(targets("x86_64+avx2"))]
pub(crate) fn add_all_dense<T: Element, R: Fn(usize) -> usize>(
    table: DenseRows<'_, T>,
    row: R,
    c: &[f64],
    out: &mut [f64],
) {
    let (fours, rest) = c.as_chunks::<TOGETHER>();
    for (i, c) in fours.iter().enumerate() {
        let first = TOGETHER * i;
        add_rows(*c, table.together([row(first), row(first + 1), row(first + 2), row(first + 3)]), out);
    }
    let first = c.len() - rest.len();
    rest.iter().enumerate().for_each(|(i, c)| add_loop(*c, table.row(row(first + i)), out));
}

/// out += sum_k c_k a_k a_k' above the diagonal, for rows a_k of d numbers, one after another: the matrix is read and written once for
/// [`TOGETHER`] of them.
#[multiversion(targets("x86_64+avx2"))]
pub(crate) fn add_outer(c: &[f64], a: &[f64], d: usize, out: &mut [f64]) {
    let zeros = vec![0.0; d];
    for first in (0..c.len()).step_by(TOGETHER) {
        let row = |k: usize| if first + k < c.len() { &a[(first + k) * d..][..d] } else { &zeros[..] };
        let factor = |k: usize| c.get(first + k).copied().unwrap_or(0.0);
        let (a0, a1, a2, a3) = (row(0), row(1), row(2), row(3));
        let (c0, c1, c2, c3) = (factor(0), factor(1), factor(2), factor(3));
        for (i, row) in out.chunks_exact_mut(d).enumerate() {
            let (f0, f1, f2, f3) = (c0 * a0[i], c1 * a1[i], c2 * a2[i], c3 * a3[i]);
            let row = &mut row[i..];
            let (a0, a1, a2, a3) =
                (&a0[i..][..row.len()], &a1[i..][..row.len()], &a2[i..][..row.len()], &a3[i..][..row.len()]);
            for j in 0..row.len() {
                row[j] += (f0 * a0[j] + f1 * a1[j]) + (f2 * a2[j] + f3 * a3[j]);
            }
        }
    }
}

/// Dense rows, one after another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DenseRows<'a, T> {
    pub(crate) values: &'a [T],
    pub(crate) columns: usize,
}

impl<'a, T: Copy> DenseRows<'a, T> {
    #[inline(always)]
    pub(crate) fn row(self, row: usize) -> &'a [T] {
        &self.values[row * self.columns..(row + 1) * self.columns]
    }

    /// Rows that are added up at a time.
    #[inline(always)]
    fn together(self, [a, b, c, d]: [usize; TOGETHER]) -> [&'a [T]; TOGETHER] {
        [self.row(a), self.row(b), self.row(c), self.row(d)]
    }
}

/// For each of `count` visits i: c = slope(i, <a, u> + offset) with a the row `row(i)`, then out += c a. Returns `slopes` plus
/// all c. `row` can be asked for `limit` visits, of which those after the first `count` may come next.
#[multiversion(targets("x86_64+avx2"))]
pub(crate) fn add_dense<T: Element, R: Fn(usize) -> usize, S: Fn(usize, f64) -> f64>(
    table: DenseRows<'_, T>,
    visits: (usize, usize),
    row: R,
    slope: S,
    at: (&[f64], f64),
    out: &mut [f64],
    slopes: f64,
) -> f64 {
    dense_loop(table, visits, row, slope, at, out, slopes)
}

#[inline(always)]
fn dense_loop<T: Element, R: Fn(usize) -> usize, S: Fn(usize, f64) -> f64>(
    table: DenseRows<'_, T>,
    (count, limit): (usize, usize),
    row: R,
    slope: S,
    (u, offset): (&[f64], f64),
    out: &mut [f64],
    mut slopes: f64,
) -> f64 {
    let ahead = rows_ahead(size_of::<T>() * table.columns);
    let ask = |i: usize| {
        if ahead > 0 && i + ahead < limit {
            prefetch(table.row(row(i + ahead)));
        }
    };
    let together = count - count % TOGETHER;
    for first in (0..together).step_by(TOGETHER) {
        (first..first + TOGETHER).for_each(ask);
        let a = table.together([row(first), row(first + 1), row(first + 2), row(first + 3)]);
        // In a loop, not by a closure: that would be a function without AVX2.
        let mut c = [0.0; TOGETHER];
        for k in 0..TOGETHER {
            c[k] = slope(first + k, dot_loop(a[k], u) + offset);
        }
        add_rows(c, a, out);
        c.iter().for_each(|c| slopes += c);
    }
    for i in together..count {
        ask(i);
        let a = table.row(row(i));
        let c = slope(i, dot_loop(a, u) + offset);
        add_loop(c, a, out);
        slopes += c;
    }
    slopes
}

/// For each of these rows: c = slope(row, <a, u> + offset), then u -= c a and offset -= intercept c. Returns the offset.
#[multiversion(targets("x86_64+avx2"))]
pub(crate) fn sweep_dense<T: Element, S: Fn(usize, f64) -> f64>(
    table: DenseRows<'_, T>,
    rows: Range<usize>,
    slope: S,
    u: &mut [f64],
    (mut offset, intercept): (f64, f64),
) -> f64 {
    let (ahead, end) = (rows_ahead(size_of::<T>() * table.columns), asked_in_order(rows.end));
    for row in rows {
        if ahead > 0 && row + ahead < end {
            prefetch(table.row(row + ahead));
        }
        let a = table.row(row);
        let c = slope(row, dot_loop(a, u) + offset);
        add_loop(-c, a, u);
        offset -= intercept * c;
    }
    offset
}

/// Asks for the memory of a row.
#[inline(always)]
fn prefetch<T>(row: &[T]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        const LINE: usize = 64;
        let start = row.as_ptr().cast::<i8>();
        for byte in (0..size_of_val(row)).step_by(LINE) {
            #[expect(unsafe_code, reason = "a hint to the processor")]
            // SAFETY: `byte` is within the row, so the pointer stays inside its allocation; a prefetch reads and writes
            // nothing and cannot fault.
            unsafe {
                _mm_prefetch::<_MM_HINT_T0>(start.add(byte));
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = row;
}

/// Accumulators of a sparse product.
const SPARSE_LANES: usize = 4;

/// <a, u> for a sparse a.
#[inline]
pub(crate) fn sparse_dot<T: Element>(indices: &[u32], values: &[T], u: &[f64]) -> f64 {
    let mut lanes = [0.0; SPARSE_LANES];
    let (i4, i_rest) = indices.as_chunks::<SPARSE_LANES>();
    let (v4, v_rest) = values.as_chunks::<SPARSE_LANES>();
    for (i, v) in i4.iter().zip(v4) {
        for k in 0..SPARSE_LANES {
            lanes[k] += v[k].real() * u[i[k] as usize];
        }
    }
    for ((lane, i), v) in lanes.iter_mut().zip(i_rest).zip(v_rest) {
        *lane += v.real() * u[*i as usize];
    }
    (lanes[0] + lanes[2]) + (lanes[1] + lanes[3])
}

/// out += c a for a sparse a.
#[inline]
pub(crate) fn sparse_add<T: Element>(c: f64, indices: &[u32], values: &[T], out: &mut [f64]) {
    indices.iter().zip(values).for_each(|(i, v)| out[*i as usize] += c * v.real());
}

/// Sparse rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SparseRows<'a, T> {
    pub(crate) starts: &'a [u64],
    pub(crate) indices: &'a [u32],
    pub(crate) values: &'a [T],
}

impl<'a, T> SparseRows<'a, T> {
    #[inline(always)]
    pub(crate) fn row(self, row: usize) -> (&'a [u32], &'a [T]) {
        let entries = self.starts[row] as usize..self.starts[row + 1] as usize;
        (&self.indices[entries.clone()], &self.values[entries])
    }
}

/// [`add_dense`] for sparse rows.
#[inline]
pub(crate) fn add_sparse<T: Element, R: Fn(usize) -> usize, S: Fn(usize, f64) -> f64>(
    table: SparseRows<'_, T>,
    (count, limit): (usize, usize),
    row: R,
    slope: S,
    (u, offset): (&[f64], f64),
    out: &mut [f64],
    mut slopes: f64,
) -> f64 {
    // Rows are of different lengths, and short.
    const AHEAD: usize = 8;
    for i in 0..count {
        if i + AHEAD < limit {
            let (indices, values) = table.row(row(i + AHEAD));
            prefetch(indices);
            prefetch(values);
        }
        let (indices, values) = table.row(row(i));
        let c = slope(i, sparse_dot(indices, values, u) + offset);
        sparse_add(c, indices, values, out);
        slopes += c;
    }
    slopes
}

/// [`sweep_dense`] for sparse rows.
pub(crate) fn sweep_sparse<T: Element, S: Fn(usize, f64) -> f64>(
    table: SparseRows<'_, T>,
    rows: Range<usize>,
    slope: S,
    u: &mut [f64],
    (mut offset, intercept): (f64, f64),
) -> f64 {
    for row in rows {
        let (indices, values) = table.row(row);
        let c = slope(row, sparse_dot(indices, values, u) + offset);
        sparse_add(-c, indices, values, u);
        offset -= intercept * c;
    }
    offset
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn numbers(count: usize) -> impl Strategy<Value = Vec<f64>> {
        proptest::collection::vec(-100.0..100.0f64, count)
    }

    /// The definition: one row after another, lane by lane.
    fn plain(table: &[f64], columns: usize, rows: &[usize], u: &[f64], out: &mut [f64]) -> f64 {
        let mut slopes = 0.0;
        for (i, &row) in rows.iter().enumerate() {
            let a = &table[row * columns..(row + 1) * columns];
            let mut lanes = [0.0; LANES];
            (0..columns).for_each(|j| lanes[j % LANES] += a[j] * u[j]);
            let c = (i as f64 + 1.0) * (total(lanes) + 0.5);
            (0..columns).for_each(|j| out[j] += c * a[j]);
            slopes += c;
        }
        slopes
    }

    proptest! {
        /// With and without AVX2, and with memory asked for ahead (up to 32 rows): the bits of the plain loop.
        #[test]
        fn dense_rows_have_the_bits_of_the_plain_loop(
            columns in 1..40usize,
            rows in proptest::collection::vec(0..20usize, 0..80),
            seed in numbers(20 * 40),
            u in numbers(40),
        ) {
            let (values, u) = (&seed[..20 * columns], &u[..columns]);
            let table = DenseRows { values, columns };
            let mut expected = vec![1.0; columns];
            let slopes = plain(values, columns, &rows, u, &mut expected);
            let slope = |i: usize, z: f64| (i as f64 + 1.0) * z;
            let visits = (rows.len(), rows.len());
            let mut out = vec![1.0; columns];
            let got = add_dense(table, visits, |i| rows[i], slope, (u, 0.5), &mut out, 0.0);
            prop_assert_eq!(got.to_bits(), slopes.to_bits());
            prop_assert_eq!(&out, &expected);
            out.fill(1.0);
            let got = dense_loop(table, visits, |i| rows[i], slope, (u, 0.5), &mut out, 0.0);
            prop_assert_eq!(got.to_bits(), slopes.to_bits());
            prop_assert_eq!(&out, &expected);
            // Scores first, rows later.
            out.fill(1.0);
            let mut c = vec![0.0; rows.len()];
            dot_dense(table, rows.len(), |i| rows[i], (u, 0.5), &mut c);
            c.iter_mut().enumerate().for_each(|(i, c)| *c *= i as f64 + 1.0);
            add_all_dense(table, |i| rows[i], &c, &mut out);
            prop_assert_eq!(&out, &expected);
        }

        /// Single precision is double precision of the same numbers.
        #[test]
        fn single_precision_has_the_bits_of_the_same_numbers_in_double(
            columns in 1..40usize,
            rows in proptest::collection::vec(0..20usize, 0..30),
            seed in numbers(20 * 40),
            u in numbers(40),
        ) {
            let single: Vec<f32> = seed[..20 * columns].iter().map(|v| *v as f32).collect();
            let double: Vec<f64> = single.iter().map(|v| f64::from(*v)).collect();
            let u = &u[..columns];
            let mut expected = vec![0.0; columns];
            let slopes = plain(&double, columns, &rows, u, &mut expected);
            let mut out = vec![0.0; columns];
            let table = DenseRows { values: &single, columns };
            let slope = |i: usize, z: f64| (i as f64 + 1.0) * z;
            let got = add_dense(table, (rows.len(), rows.len()), |i| rows[i], slope, (u, 0.5), &mut out, 0.0);
            prop_assert_eq!(got.to_bits(), slopes.to_bits());
            prop_assert_eq!(&out, &expected);
        }

        /// Sparse rows of values that are all stored are close to dense rows.
        #[test]
        fn sparse_rows_agree_with_dense_ones(
            columns in 1..20usize,
            rows in proptest::collection::vec(0..20usize, 0..30),
            seed in numbers(20 * 20),
            u in numbers(20),
        ) {
            let (values, u) = (&seed[..20 * columns], &u[..columns]);
            let starts: Vec<u64> = (0..=20).map(|row| row * columns as u64).collect();
            let indices: Vec<u32> = (0..20 * columns).map(|i| (i % columns) as u32).collect();
            let table = SparseRows { starts: &starts, indices: &indices, values };
            let dense = DenseRows { values, columns };
            let slope = |_: usize, z: f64| 1e-3 * z;
            let (mut expected, mut got) = (vec![0.0; columns], vec![0.0; columns]);
            let row = |i: usize| rows[i];
            add_dense(dense, (rows.len(), rows.len()), row, slope, (u, 0.5), &mut expected, 0.0);
            add_sparse(table, (rows.len(), rows.len()), row, slope, (u, 0.5), &mut got, 0.0);
            for (a, b) in got.iter().zip(&expected) {
                // 30 terms of at most 1e5 each, rounded in another order.
                prop_assert!((a - b).abs() < 1e-8);
            }
        }
    }
}
