//! Checks: the same fresh samples at two points say which of them is lower.

use super::Auto;
use super::blocks::{Block, Eval, ask};
use crate::draws::{Address, Role};
use crate::gate::{Gate, Halt};
use crate::kernels::{along, dot, minus, squared_norm};

impl Auto {
    /// What fresh samples say of the best point, where a comparison of losses needs it.
    pub(super) fn here(&self, gate: &mut Gate, blocks: &[Block]) -> Result<Option<Eval>, Halt> {
        let needed = gate.about().losses && !self.known.is_exact();
        needed.then(|| Eval::at(gate, &self.x, blocks)).transpose()
    }

    /// What fresh samples say of a point, against the best one.
    pub(super) fn compare(
        &self,
        gate: &mut Gate,
        there: Vec<f64>,
        here: Option<&Eval>,
        blocks: &[Block],
    ) -> Result<Found, Halt> {
        if self.known.is_exact() {
            let eval = Eval::exact(gate, &there)?;
            let lower = if gate.about().losses {
                eval.losses[0] <= self.known.losses[0]
            } else {
                dot(&along(&eval.gradient(), 1.0, &self.known.gradient()), &minus(&there, &self.x)) <= 0.0
            };
            let verdict = if lower { Verdict::Better } else { Verdict::Worse };
            let squared = squared_norm(&eval.gradient());
            return Ok(Found {
                x: there,
                squared,
                eval,
                verdict,
                mean: 0.0,
                deviation: 0.0,
                lopsided: false,
            });
        }
        let eval = Eval::at(gate, &there, blocks)?;
        let changes = self.changes(gate, &there, &eval, here, blocks)?;
        Ok(self.found(gate, there, eval, changes))
    }

    /// What fresh samples say of the best point, where losses are compared, and of others against it. Where rounds have a price, in one round, or without
    /// losses in two.
    pub(super) fn compare_all(
        &self,
        gate: &mut Gate,
        theres: Vec<Vec<f64>>,
        blocks: &[Block],
    ) -> Result<(Option<Eval>, Vec<Found>), Halt> {
        if gate.round_cost() == 0 || self.known.is_exact() {
            let here = self.here(gate, blocks)?;
            let found = theres.into_iter().map(|there| self.compare(gate, there, here.as_ref(), blocks));
            let found = found.collect::<Result<_, Halt>>()?;
            return Ok((here, found));
        }
        let losses = gate.about().losses;
        let here = losses.then_some(&*self.x);
        let points: Vec<&[f64]> = theres.iter().map(Vec::as_slice).chain(here).collect();
        let mut evals = Eval::at_all(gate, &points, blocks)?;
        let here = if losses { evals.pop() } else { None };
        let changes: Vec<Vec<f64>> = match &here {
            Some(here) => evals.iter().map(|eval| differences(eval, here)).collect(),
            None => self.slopes(gate, &theres, blocks)?,
        };
        let each = theres.into_iter().zip(evals).zip(changes);
        let found = each.map(|((there, eval), changes)| self.found(gate, there, eval, changes));
        let found = found.collect();
        Ok((here, found))
    }

    /// From the changes of f, block by block.
    fn found(&self, gate: &Gate, there: Vec<f64>, eval: Eval, mut changes: Vec<f64>) -> Found {
        let squared = self.stationarity(gate, &there, &eval);
        let rise = rise(gate, &self.x, &there);
        changes.iter_mut().for_each(|change| *change += rise);
        let (mean, deviation) = mean_and_error(&changes);
        let lopsided = is_lopsided(&changes);
        let verdict = Verdict::of(&changes, squared);
        Found { x: there, eval, squared, verdict, mean, deviation, lopsided }
    }

    /// f(there) - f(best), block by block: from the losses of the same samples, or from the slope at a random point of each block's
    /// part of the way.
    fn changes(
        &self,
        gate: &mut Gate,
        there: &[f64],
        eval: &Eval,
        here: Option<&Eval>,
        blocks: &[Block],
    ) -> Result<Vec<f64>, Halt> {
        if let Some(here) = here {
            return Ok(differences(eval, here));
        }
        let way = minus(there, &self.x);
        let mut changes = Vec::with_capacity(blocks.len());
        for (k, block) in blocks.iter().enumerate() {
            let at = self.place(gate, &way, k, blocks.len());
            let between = Eval::at(gate, &at, std::slice::from_ref(block))?;
            changes.push(dot(&between.gradients[0], &way));
        }
        Ok(changes)
    }

    /// A random place within a block's part of the way.
    fn place(&self, gate: &Gate, way: &[f64], block: usize, blocks: usize) -> Vec<f64> {
        let sample = block as u64;
        let address = Address { seed: gate.seed(), role: Role::Setup, step: self.state.next, sample };
        let share = (block as f64 + address.stream().uniform()) / blocks as f64;
        let mut at = along(&self.x, share, way);
        gate.keep_inside(&mut at);
        at
    }

    /// The slopes along the ways to some points, block by block, in one round.
    fn slopes(&self, gate: &mut Gate, theres: &[Vec<f64>], blocks: &[Block]) -> Result<Vec<Vec<f64>>, Halt> {
        let ways: Vec<Vec<f64>> = theres.iter().map(|there| minus(there, &self.x)).collect();
        let mut questions = Vec::with_capacity(ways.len() * blocks.len());
        for way in &ways {
            let places = blocks.iter().enumerate();
            questions.extend(places.map(|(k, block)| (self.place(gate, way, k, blocks.len()), *block)));
        }
        let answers = ask(gate, &questions)?;
        let of_way = |(way, answers): (&Vec<f64>, &[(Vec<f64>, f64)])| {
            answers.iter().map(|(gradient, _)| dot(gradient, way)).collect()
        };
        Ok(ways.iter().zip(answers.chunks(blocks.len().max(1))).map(of_way).collect())
    }
}

/// The changes of the losses of the same samples, block by block.
fn differences(there: &Eval, here: &Eval) -> Vec<f64> {
    here.losses.iter().enumerate().map(|(k, loss)| there.losses[k] - loss).collect()
}

/// h(there) - h(here).
pub(super) fn rise(gate: &Gate, here: &[f64], there: &[f64]) -> f64 {
    gate.term().map_or(0.0, |term| term.value(there) - term.value(here))
}

/// What a check found.
pub(super) struct Found {
    pub(super) x: Vec<f64>,
    pub(super) eval: Eval,
    /// |grad f|^2, without bias.
    pub(super) squared: f64,
    pub(super) verdict: Verdict,
    /// The change of f, and its standard error.
    pub(super) mean: f64,
    pub(super) deviation: f64,
    pub(super) lopsided: bool,
}

impl Found {
    /// How far `squared` may be off.
    pub(super) fn noise(&self) -> f64 {
        self.eval.variance() / self.eval.samples()
    }
}

/// |grad f|^2, without bias.
pub(super) fn unbiased(eval: &Eval) -> f64 {
    squared_norm(&eval.gradient()) - eval.variance() / eval.samples()
}

/// Whether f is lower there, as far as fresh samples tell.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Lower by half a standard error, or not higher by that and with a smaller gradient.
    Better,
    Open,
    /// Higher by two standard errors, or not finite.
    Worse,
}

impl Verdict {
    /// From the changes of f, block by block.
    fn of(changes: &[f64], squared: f64) -> Self {
        let (mean, deviation) = mean_and_error(changes);
        if !(mean + squared).is_finite() || mean > 2.0 * deviation {
            Self::Worse
        } else if mean < -0.5 * deviation && !is_lopsided(changes) {
            Self::Better
        } else {
            Self::Open
        }
    }
}

/// Whether one or two of the numbers make up nearly all of their spread: then events were seen that are too rare for a standard
/// error to mean anything.
pub(super) fn is_lopsided(values: &[f64]) -> bool {
    let (mean, _) = mean_and_error(values);
    let mut squares: Vec<f64> = values.iter().map(|value| (value - mean).powi(2)).collect();
    squares.sort_by(f64::total_cmp);
    let all: f64 = squares.iter().sum();
    squares.iter().rev().take(2).sum::<f64>() > 0.85 * all
}

/// The mean, and its standard error.
pub(super) fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let scatter: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (scatter / (n - 1.0) / n).sqrt())
}
