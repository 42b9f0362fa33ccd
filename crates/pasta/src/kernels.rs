//! The vector loops. Fixed order of additions, no fused multiply-add: the same bits on every x86-64 and aarch64.

pub(crate) mod double;
pub(crate) mod elementary;
pub(crate) mod huge;
pub(crate) mod rows;
#[cfg(test)]
mod tests;

/// Independent accumulators of a long sum: enough to keep the adders busy. Coordinate i belongs to lane i mod 8, so
/// that zeros at the end change nothing.
const LANES: usize = 8;

/// |x - y|^2.
#[inline]
pub(crate) fn squared_distance(x: &[f64], y: &[f64]) -> f64 {
    debug_assert_eq!(x.len(), y.len());
    if x.len() <= LANES {
        // One coordinate a lane: the same sum without the lanes.
        return x.iter().zip(y).fold(0.0, |sum, (x, y)| sum + (x - y) * (x - y));
    }
    squared_distance_in_lanes(x, y)
}

fn squared_distance_in_lanes(x: &[f64], y: &[f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    let (x_blocks, x_rest) = x.as_chunks::<LANES>();
    let (y_blocks, y_rest) = y.as_chunks::<LANES>();
    for (x, y) in x_blocks.iter().zip(y_blocks) {
        for i in 0..LANES {
            lanes[i] += (x[i] - y[i]) * (x[i] - y[i]);
        }
    }
    for ((lane, x), y) in lanes.iter_mut().zip(x_rest).zip(y_rest) {
        *lane += (x - y) * (x - y);
    }
    lanes.iter().sum()
}

/// |x|^2.
#[inline]
pub(crate) fn squared_norm(x: &[f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    let (blocks, rest) = x.as_chunks::<LANES>();
    for x in blocks {
        for i in 0..LANES {
            lanes[i] += x[i] * x[i];
        }
    }
    for (lane, x) in lanes.iter_mut().zip(rest) {
        *lane += x * x;
    }
    lanes.iter().sum()
}

/// How the estimator's answer becomes g_t.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Blend<'s> {
    /// g holds a sum over n samples: divide it.
    Divide(f64),
    /// g holds g_{t-1}: add the mean difference.
    AddMean { sum: &'s [f64], n: f64 },
    /// g holds g_t.
    Ready,
}

/// Coordinates whose squares are added up in lanes before they join |x_{t+1} - x0|^2. Part of its bits.
const BLOCK: usize = 512;

/// Algorithm 1's vector work in one pass over memory: completes g_t, writes
/// x_{t+1} = beta a + (1 - beta) x_t - eta g_t to `next`, and returns |x_{t+1} - x0|^2, which sizes the next
/// batch and shows a runaway.
#[inline]
pub(crate) fn anchored_step(
    beta: f64,
    eta: f64,
    blend: Blend<'_>,
    g: &mut [f64],
    points: [&[f64]; 3],
    next: &mut [f64],
) -> f64 {
    if beta == 0.0 {
        blended_step(blend, |x, _, g| x - eta * g, g, points, next)
    } else {
        blended_step(blend, |x, a, g| beta * a + (1.0 - beta) * x - eta * g, g, points, next)
    }
}

/// [`anchored_step`] with x_{t+1} = moved(x_t, a, g_t).
#[inline]
fn blended_step(
    blend: Blend<'_>,
    moved: impl Fn(f64, f64, f64) -> f64,
    g: &mut [f64],
    [x, anchor, start]: [&[f64]; 3],
    next: &mut [f64],
) -> f64 {
    // Where there is no sum of differences, x stands in for it and is not looked at.
    match blend {
        Blend::Divide(n) if n != 1.0 => fused_step(|g, _| g / n, moved, g, [x, anchor, start, x], next),
        Blend::AddMean { sum, n } => {
            fused_step(|g, sum| g + sum / n, moved, g, [x, anchor, start, sum], next)
        }
        Blend::Divide(_) | Blend::Ready => fused_step(|g, _| g, moved, g, [x, anchor, start, x], next),
    }
}

/// [`blended_step`] with g_t = completed(g, sum).
#[inline]
fn fused_step(
    completed: impl Fn(f64, f64) -> f64,
    moved: impl Fn(f64, f64, f64) -> f64,
    g: &mut [f64],
    [x, anchor, start, sum]: [&[f64]; 4],
    next: &mut [f64],
) -> f64 {
    let d = x.len();
    let mut distance2 = 0.0;
    if d <= LANES {
        // One coordinate a lane: the same sums without the lanes, which would be most of the work.
        let (g, next) = (&mut g[..d], &mut next[..d]);
        let [anchor, start, sum] = [anchor, start, sum].map(|v| &v[..d]);
        for i in 0..d {
            g[i] = completed(g[i], sum[i]);
            next[i] = moved(x[i], anchor[i], g[i]);
            distance2 += (next[i] - start[i]) * (next[i] - start[i]);
        }
        return distance2;
    }
    for from in (0..d).step_by(BLOCK) {
        let block = from..(from + BLOCK).min(d);
        let points = [x, anchor, start, sum].map(|v| &v[block.clone()]);
        distance2 += fused_block(&completed, &moved, &mut g[block.clone()], points, &mut next[block]);
    }
    distance2
}

/// [`fused_step`] on one block. A divider works while memory does: one loop takes the time of the slower.
#[inline]
fn fused_block(
    completed: &impl Fn(f64, f64) -> f64,
    moved: &impl Fn(f64, f64, f64) -> f64,
    g: &mut [f64],
    points: [&[f64]; 4],
    next: &mut [f64],
) -> f64 {
    let mut lanes = [0.0; LANES];
    let (next, next_rest) = next.as_chunks_mut::<LANES>();
    let (g, g_rest) = g.as_chunks_mut::<LANES>();
    let [(x, x_rest), (anchor, anchor_rest), (start, start_rest), (sum, sum_rest)] =
        points.map(|v| v.as_chunks::<LANES>());
    for (((((next, g), x), a), start), sum) in next.iter_mut().zip(g).zip(x).zip(anchor).zip(start).zip(sum) {
        // Whole lanes are stored at once: the compiler need not fear that a store changes the next load.
        *g = std::array::from_fn(|i| completed(g[i], sum[i]));
        *next = std::array::from_fn(|i| moved(x[i], a[i], g[i]));
        for i in 0..LANES {
            lanes[i] += (next[i] - start[i]) * (next[i] - start[i]);
        }
    }
    for i in 0..x_rest.len() {
        g_rest[i] = completed(g_rest[i], sum_rest[i]);
        next_rest[i] = moved(x_rest[i], anchor_rest[i], g_rest[i]);
        lanes[i] += (next_rest[i] - start_rest[i]) * (next_rest[i] - start_rest[i]);
    }
    lanes.iter().sum()
}

/// mean += (x - mean)/count: the running mean of `count` points, the newest of which is x.
pub(crate) fn update_mean(mean: &mut [f64], x: &[f64], count: u64) {
    let count = count as f64;
    mean.iter_mut().zip(x).for_each(|(mean, x)| *mean += (x - *mean) / count);
}

/// <x, y>.
pub(crate) fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// x + length v.
pub(crate) fn along(x: &[f64], length: f64, v: &[f64]) -> Vec<f64> {
    x.iter().zip(v).map(|(x, v)| x + length * v).collect()
}

/// x - y.
pub(crate) fn minus(x: &[f64], y: &[f64]) -> Vec<f64> {
    x.iter().zip(y).map(|(x, y)| x - y).collect()
}
