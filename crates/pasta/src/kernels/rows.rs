//! Loops over the rows of a table.

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

/// Independent accumulators of a product: coordinate i belongs to lane i mod 8.
const LANES: usize = 8;

/// The sum of the lanes, in a fixed order.
#[inline(always)]
fn total(lanes: [f64; LANES]) -> f64 {
    let [a, b, c, d, e, f, g, h] = lanes;
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

/// <a, u>.
#[inline]
pub(crate) fn dot<T: Element>(a: &[T], u: &[f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    let (a, a_rest) = a.as_chunks::<LANES>();
    let (u, u_rest) = u.as_chunks::<LANES>();
    for (a, u) in a.iter().zip(u) {
        for i in 0..LANES {
            lanes[i] += a[i].real() * u[i];
        }
    }
    for ((lane, a), u) in lanes.iter_mut().zip(a_rest).zip(u_rest) {
        *lane += a.real() * u;
    }
    total(lanes)
}

/// out += c a.
#[inline]
pub(crate) fn add<T: Element>(c: f64, a: &[T], out: &mut [f64]) {
    out.iter_mut().zip(a).for_each(|(out, a)| *out += c * a.real());
}

/// <a, u> for a sparse a.
#[inline]
pub(crate) fn sparse_dot<T: Element>(indices: &[u32], values: &[T], u: &[f64]) -> f64 {
    let mut lanes = [0.0; 4];
    let (i4, i_rest) = indices.as_chunks::<4>();
    let (v4, v_rest) = values.as_chunks::<4>();
    for (i, v) in i4.iter().zip(v4) {
        for k in 0..4 {
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
