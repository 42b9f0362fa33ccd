//! Samples in blocks, the same ones at any number of points.

use serde::{Deserialize, Serialize};

use crate::draws::Role;
use crate::exact::MAX_COUNT;
use crate::gate::{Gate, Halt, Samples};
use crate::kernels::{squared_distance, squared_norm};
use crate::oracle::{Answer, Batch, Request};

/// Blocks of a draw.
pub(super) const BLOCKS: u64 = 8;

/// Some samples by their addresses.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Block {
    /// The address of the draw.
    pub(super) step: u64,
    /// The first sample.
    pub(super) from: u64,
    pub(super) size: u64,
}

impl Block {
    pub(super) fn new(step: u64, from: u64, size: u64) -> Self {
        Self { step, from, size }
    }

    /// One of `of` equal parts.
    pub(super) fn part(&self, number: u64, of: u64) -> Self {
        let size = self.size / of;
        Self { from: self.from + number * size, size, ..*self }
    }
}

/// New samples: about `n` in eight blocks, at least two in each, drawn under the next address.
pub(super) fn fresh(next: &mut u64, n: f64) -> Vec<Block> {
    let size = ((n / BLOCKS as f64) as u64).clamp(2, u64::MAX / 16);
    *next += 1;
    (0..BLOCKS).map(|k| Block { step: *next - 1, from: k * size, size }).collect()
}

/// Asks for blocks, each at a point of its own, in one round. The answers are mean gradients and losses, and may be anything, also infinite.
pub(super) fn ask(
    gate: &mut Gate,
    questions: &[(impl AsRef<[f64]> + Sync, Block)],
) -> Result<Vec<(Vec<f64>, f64)>, Halt> {
    let losses = gate.about().losses;
    let most = questions.iter().map(|(_, block)| u128::from(block.size)).sum();
    let points: Vec<[&[f64]; 1]> = questions.iter().map(|(x, _)| [x.as_ref()]).collect();
    let answers = gate.window(Role::Large, most, |window| {
        window.each(questions.len(), Samples::New, |i| {
            let Block { step, from, size } = questions[i].1;
            let batch = Batch { samples: from..from + size, ..window.batch(step, 0) };
            Request { losses, ..Request::sums(batch, &points[i]) }
        })
    })?;
    let of_block = |(i, (_, block)): (usize, &(_, Block))| {
        let size = block.size as f64;
        let gradient = answers.gradients(i).iter().map(|g| g / size).collect();
        (gradient, answers.losses(i).first().map_or(0.0, |loss| loss / size))
    };
    Ok(questions.iter().enumerate().map(of_block).collect())
}

/// What blocks say at a point: their mean gradients, and mean losses where there are any.
#[derive(Debug, Clone, Default)]
pub(super) struct Eval {
    pub(super) blocks: Vec<Block>,
    /// The rows of the table, where the answer rests on all of them.
    pub(super) rows: Option<u64>,
    pub(super) gradients: Vec<Vec<f64>>,
    pub(super) losses: Vec<f64>,
}

impl Eval {
    /// Asks for blocks at x. The answer may be anything, also infinite. Every evaluation counts as a sample: a simulator runs
    /// as often.
    pub(super) fn at(gate: &mut Gate, x: &[f64], blocks: &[Block]) -> Result<Self, Halt> {
        let questions: Vec<(&[f64], Block)> = blocks.iter().map(|block| (x, *block)).collect();
        let (gradients, losses) = ask(gate, &questions)?.into_iter().unzip();
        Ok(Self { blocks: blocks.to_vec(), rows: None, gradients, losses })
    }

    /// The same blocks at several points; in one round, where rounds have a price.
    pub(super) fn at_all(gate: &mut Gate, points: &[&[f64]], blocks: &[Block]) -> Result<Vec<Self>, Halt> {
        if gate.round_cost() == 0 {
            return points.iter().map(|x| Self::at(gate, x, blocks)).collect();
        }
        let questions: Vec<(&[f64], Block)> =
            points.iter().flat_map(|x| blocks.iter().map(move |block| (*x, *block))).collect();
        let mut answers = ask(gate, &questions)?.into_iter();
        let eval = |_: &&[f64]| {
            let (gradients, losses) = answers.by_ref().take(blocks.len()).unzip();
            Self { blocks: blocks.to_vec(), rows: None, gradients, losses }
        };
        Ok(points.iter().map(eval).collect())
    }

    /// The exact gradient and loss of a table.
    pub(super) fn exact(gate: &mut Gate, x: &[f64]) -> Result<Self, Halt> {
        let (mut gradient, mut loss) = (vec![0.0; x.len()], [0.0]);
        let losses = gate.about().losses;
        let mut answer = Answer::new(&mut gradient);
        if losses {
            answer.losses = &mut loss;
        }
        gate.ask_and_keep(Request { losses, ..Request::everything(Role::Large, &[x]) }, &mut answer)?;
        let rows = gate.about().full_pass();
        Ok(Self { blocks: Vec::new(), rows, gradients: vec![gradient], losses: loss.to_vec() })
    }

    /// The same question at another point.
    pub(super) fn again(&self, gate: &mut Gate, x: &[f64]) -> Result<Self, Halt> {
        if self.is_exact() { Self::exact(gate, x) } else { Self::at(gate, x, &self.blocks) }
    }

    /// Whether its parts belong together: what a checkpoint says need not.
    pub(super) fn fits(&self) -> bool {
        let sound = |block: &Block| block.size > 0 && block.from < MAX_COUNT && block.size < MAX_COUNT;
        let answers = if self.is_exact() { 1 } else { self.blocks.len() };
        self.gradients.len() == answers && self.losses.len() == answers && self.blocks.iter().all(sound)
    }

    pub(super) fn is_exact(&self) -> bool {
        self.rows.is_some()
    }

    pub(super) fn samples(&self) -> f64 {
        match self.rows {
            Some(rows) => rows as f64,
            None => self.blocks.iter().map(|block| block.size as f64).sum(),
        }
    }

    pub(super) fn join(&mut self, other: Self) {
        self.blocks.extend(other.blocks);
        self.gradients.extend(other.gradients);
        self.losses.extend(other.losses);
    }

    /// The leading blocks that hold at least so many samples.
    pub(super) fn first(&self, samples: f64) -> Self {
        let mut held = 0.0;
        let enough = self.blocks.iter().position(|block| {
            held += block.size as f64;
            held >= samples
        });
        let count =
            enough.map_or(self.blocks.len(), |last| last + 1).max(BLOCKS as usize).min(self.blocks.len());
        Self {
            blocks: self.blocks[..count].to_vec(),
            rows: None,
            gradients: self.gradients[..count].to_vec(),
            losses: self.losses[..count].to_vec(),
        }
    }

    /// The mean over blocks of something that each has, weighed by their sizes.
    pub(super) fn mean(&self, of: impl Fn(usize) -> f64) -> f64 {
        if self.is_exact() {
            return of(0);
        }
        let total: f64 = self.blocks.iter().enumerate().map(|(k, block)| block.size as f64 * of(k)).sum();
        total / self.samples()
    }

    pub(super) fn gradient(&self) -> Vec<f64> {
        mean_of(&self.gradients, &self.weights())
    }

    fn weights(&self) -> Vec<f64> {
        if self.is_exact() {
            return vec![1.0];
        }
        let all = self.samples();
        self.blocks.iter().map(|block| block.size as f64 / all).collect()
    }

    /// The variance of one sample's gradient, from the spread of the blocks.
    pub(super) fn variance(&self) -> f64 {
        self.spread(|k| self.gradients[k].clone())
    }

    /// The variance of one sample's difference to the same sample at another point.
    pub(super) fn paired_variance(&self, other: &Self) -> f64 {
        self.spread(|k| self.gradients[k].iter().zip(&other.gradients[k]).map(|(a, b)| a - b).collect())
    }

    fn spread(&self, of: impl Fn(usize) -> Vec<f64>) -> f64 {
        if self.blocks.len() < 2 {
            return 0.0;
        }
        let rows: Vec<Vec<f64>> = (0..self.blocks.len()).map(of).collect();
        let mean = mean_of(&rows, &self.weights());
        let scatter: f64 = rows
            .iter()
            .zip(&self.blocks)
            .map(|(row, block)| block.size as f64 * squared_distance(row, &mean))
            .sum();
        scatter / (rows.len() as f64 - 1.0)
    }
}

fn mean_of(rows: &[Vec<f64>], weights: &[f64]) -> Vec<f64> {
    let mut mean = vec![0.0; rows.first().map_or(0, Vec::len)];
    for (row, weight) in rows.iter().zip(weights) {
        mean.iter_mut().zip(row).for_each(|(mean, g)| *mean += weight * g);
    }
    mean
}

/// |x|.
pub(super) fn norm(x: &[f64]) -> f64 {
    squared_norm(x).sqrt()
}
