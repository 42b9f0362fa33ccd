//! The vector loops. Fixed order of additions, no fused multiply-add: the same bits on every x86-64 and aarch64.

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

/// Coordinates handled together: small enough for the first-level cache, so that the two loops over a block
/// read memory once.
const BLOCK: usize = 512;

/// Algorithm 1's vector work in one pass: completes g_t, writes x_{t+1} = beta a + (1 - beta) x_t - eta g_t
/// to `next`, and returns |x_{t+1} - x0|^2, which sizes the next batch and shows a runaway.
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
        Blend::Divide(n) if n != 1.0 => pass(|g, _| g / n, moved, g, [x, anchor, start, x], next),
        Blend::AddMean { sum, n } => pass(|g, sum| g + sum / n, moved, g, [x, anchor, start, sum], next),
        Blend::Divide(_) | Blend::Ready => pass(|g, _| g, moved, g, [x, anchor, start, x], next),
    }
}

/// [`blended_step`] with g_t = completed(g, sum). Both are written in one loop: the divisions overlap with the
/// traffic.
#[inline]
fn pass(
    completed: impl Fn(f64, f64) -> f64,
    moved: impl Fn(f64, f64, f64) -> f64,
    g: &mut [f64],
    [x, anchor, start, sum]: [&[f64]; 4],
    next: &mut [f64],
) -> f64 {
    let d = x.len();
    let mut distance2 = 0.0;
    if d <= LANES {
        // The same without blocks and lanes, which would be most of the work.
        let (g, next, anchor, start, sum) =
            (&mut g[..d], &mut next[..d], &anchor[..d], &start[..d], &sum[..d]);
        for i in 0..d {
            g[i] = completed(g[i], sum[i]);
            next[i] = moved(x[i], anchor[i], g[i]);
            distance2 += (next[i] - start[i]) * (next[i] - start[i]);
        }
        return distance2;
    }
    for from in (0..d).step_by(BLOCK) {
        let block = from..(from + BLOCK).min(d);
        let (x, anchor, sum) = (&x[block.clone()], &anchor[block.clone()], &sum[block.clone()]);
        let (g, next) = (&mut g[block.clone()], &mut next[block.clone()]);
        for ((((next, x), a), g), sum) in next.iter_mut().zip(x).zip(anchor).zip(g).zip(sum) {
            *g = completed(*g, *sum);
            *next = moved(*x, *a, *g);
        }
        distance2 += squared_distance(next, &start[block]);
    }
    distance2
}

/// mean += (x - mean)/count: the running mean of `count` points, the newest of which is x.
pub(crate) fn update_mean(mean: &mut [f64], x: &[f64], count: u64) {
    let count = count as f64;
    mean.iter_mut().zip(x).for_each(|(mean, x)| *mean += (x - *mean) / count);
}
