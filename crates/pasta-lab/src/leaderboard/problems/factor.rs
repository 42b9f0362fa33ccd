//! Matrices of low rank from their entries.

use super::table::Rows;
use super::{Instance, dot, normals, setup, table};

/// Entries (i, j, m) of a matrix that is sought as U V', both with `rank` columns; U comes first in x.
struct Factor {
    entries: Vec<(usize, usize, f64)>,
    height: usize,
    rank: usize,
    start: Vec<f64>,
}

/// A matrix of this rank plus noise, seen where `seen` says so, from a random start.
fn factor(seed: u64, size: [usize; 2], rank: usize, noise: f64, most: usize) -> Factor {
    let mut xi = setup(seed);
    let [height, width] = size;
    let (u, v) = (normals(&mut xi, height * rank), normals(&mut xi, width * rank));
    let mut entries = Vec::new();
    for i in 0..height {
        for j in 0..width {
            let entry = dot(&u[i * rank..(i + 1) * rank], &v[j * rank..(j + 1) * rank]) + noise * xi.normal();
            entries.push((i, j, entry));
        }
    }
    // The first of a random order.
    for i in 0..entries.len() {
        let other = i + xi.below((entries.len() - i) as u64) as usize;
        entries.swap(i, other);
    }
    entries.truncate(most);
    let start = normals(&mut xi, (height + width) * rank).iter().map(|x| 0.3 * x).collect();
    Factor { entries, height, rank, start }
}

pub(super) fn full() -> Instance {
    table("factor", factor(22, [20, 15], 3, 0.1, 300))
}

pub(super) fn completion() -> Instance {
    table("completion", factor(23, [40, 25], 2, 0.2, 400))
}

impl Rows for Factor {
    fn rows(&self) -> usize {
        self.entries.len()
    }

    fn start(&self) -> Vec<f64> {
        self.start.clone()
    }

    fn row(&self, row: usize, weight: f64, x: &[f64], out: &mut [f64]) -> f64 {
        let (i, j, entry) = self.entries[row];
        let (u, v) = (i * self.rank, (self.height + j) * self.rank);
        let error = dot(&x[u..u + self.rank], &x[v..v + self.rank]) - entry;
        for k in 0..self.rank {
            out[u + k] += weight * error * x[v + k];
            out[v + k] += weight * error * x[u + k];
        }
        0.5 * error * error
    }
}
