//! Softmax regression on a table.

use super::table::Rows;
use super::{Instance, dot, geometric, normals, setup, table};

const CLASSES: usize = 5;
const FEATURES: usize = 31;

struct Softmax {
    matrix: Vec<f64>,
    labels: Vec<usize>,
}

/// Non-negative features, half of them absent from the centre of a class, as the pixels of images are, and a constant.
pub(super) fn softmax() -> Instance {
    let mut xi = setup(21);
    let scales = geometric(1.0, 0.05, FEATURES - 1);
    let centres: Vec<Vec<f64>> = (0..CLASSES)
        .map(|_| {
            let strengths = normals(&mut xi, FEATURES - 1);
            strengths.iter().map(|s| if xi.uniform() < 0.5 { s.abs() } else { 0.0 }).collect()
        })
        .collect();
    let labels: Vec<usize> = (0..1_500).map(|_| xi.below(CLASSES as u64) as usize).collect();
    let mut matrix = Vec::with_capacity(1_500 * FEATURES);
    for label in &labels {
        let centre = &centres[*label];
        matrix.extend(centre.iter().zip(&scales).map(|(c, scale)| scale * (c + 0.5 * xi.normal()).max(0.0)));
        matrix.push(1.0);
    }
    table("softmax", Softmax { matrix, labels })
}

impl Rows for Softmax {
    fn rows(&self) -> usize {
        self.labels.len()
    }

    fn start(&self) -> Vec<f64> {
        vec![0.0; CLASSES * FEATURES]
    }

    fn row(&self, row: usize, weight: f64, x: &[f64], out: &mut [f64]) -> f64 {
        let a = &self.matrix[row * FEATURES..(row + 1) * FEATURES];
        let scores: [f64; CLASSES] = std::array::from_fn(|k| dot(a, &x[k * FEATURES..(k + 1) * FEATURES]));
        let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let parts = scores.map(|score| (score - most).exp());
        let sum: f64 = parts.iter().sum();
        for (k, out) in out.chunks_exact_mut(FEATURES).enumerate() {
            let excess = parts[k] / sum - if k == self.labels[row] { 1.0 } else { 0.0 };
            let scale = weight * excess;
            out.iter_mut().zip(a).for_each(|(out, a)| *out += scale * a);
        }
        sum.ln() + most - scores[self.labels[row]]
    }
}
