//! L-BFGS on exact passes over a table: what a user would run who has all rows at hand.

use pasta_opt::draws::Role;
use pasta_opt::gate::{Gate, Halt};
use pasta_opt::oracle::{Answer, Request};

/// Pairs of steps and changes that are kept.
const PAIRS: usize = 10;
/// Sufficient decrease and curvature of the weak Wolfe conditions.
const DECREASE: f64 = 1e-4;
const CURVATURE: f64 = 0.9;

/// A point with its loss and gradient.
#[derive(Clone)]
struct At {
    x: Vec<f64>,
    loss: f64,
    gradient: Vec<f64>,
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// One pass. Where it is not finite, the loss is infinite.
fn pass(gate: &mut Gate, x: Vec<f64>) -> Result<At, Halt> {
    let mut gradient = vec![0.0; x.len()];
    let mut losses = [0.0];
    let points = [x.as_slice()];
    let mut answer = Answer { losses: &mut losses, ..Answer::new(&mut gradient) };
    match gate.ask(Request { losses: true, ..Request::everything(Role::Large, &points) }, &mut answer) {
        Ok(_) => {}
        Err(Halt::NotFinite { .. }) => losses[0] = f64::INFINITY,
        Err(halt) => return Err(halt),
    }
    Ok(At { loss: losses[0], x, gradient })
}

/// Passes until the gradient is at most `part` of the one at the start; `None` if the gate's budget ends before, or no step helps.
pub(super) fn passes_to(gate: &mut Gate, start: &[f64], part: f64, rows: u64) -> Result<Option<f64>, Halt> {
    match walk(gate, start, part) {
        Ok(true) => Ok(Some(gate.ledger().samples() as f64 / rows as f64)),
        Ok(false) | Err(Halt::OverBudget { .. }) => Ok(None),
        Err(halt) => Err(halt),
    }
}

/// Whether it gets there.
fn walk(gate: &mut Gate, start: &[f64], part: f64) -> Result<bool, Halt> {
    let mut at = pass(gate, start.to_vec())?;
    let goal = part * dot(&at.gradient, &at.gradient).sqrt();
    let mut pairs: Vec<(Vec<f64>, Vec<f64>)> = Vec::new();
    while dot(&at.gradient, &at.gradient).sqrt() > goal {
        let mut direction = descent(&at.gradient, &pairs);
        if dot(&direction, &at.gradient) >= 0.0 {
            pairs.clear();
            direction = descent(&at.gradient, &pairs);
        }
        let first = if pairs.is_empty() { 1.0 / dot(&direction, &direction).sqrt() } else { 1.0 };
        let Some(next) = search(gate, &at, &direction, first)? else {
            if pairs.is_empty() {
                return Ok(false);
            }
            pairs.clear();
            continue;
        };
        let minus = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>();
        let pair = (minus(&next.x, &at.x), minus(&next.gradient, &at.gradient));
        if dot(&pair.0, &pair.1) > 0.0 {
            pairs.push(pair);
            if pairs.len() > PAIRS {
                pairs.remove(0);
            }
        }
        at = next;
    }
    Ok(true)
}

/// The two-loop recursion (Nocedal 1980).
fn descent(gradient: &[f64], pairs: &[(Vec<f64>, Vec<f64>)]) -> Vec<f64> {
    let mut q: Vec<f64> = gradient.iter().map(|g| -g).collect();
    let mut along = Vec::with_capacity(pairs.len());
    for (s, y) in pairs.iter().rev() {
        let a = dot(s, &q) / dot(s, y);
        q.iter_mut().zip(y).for_each(|(q, y)| *q -= a * y);
        along.push(a);
    }
    if let Some((s, y)) = pairs.last() {
        let scale = dot(s, y) / dot(y, y);
        q.iter_mut().for_each(|q| *q *= scale);
    }
    for ((s, y), a) in pairs.iter().zip(along.iter().rev()) {
        let b = dot(y, &q) / dot(s, y);
        q.iter_mut().zip(s).for_each(|(q, s)| *q += (a - b) * s);
    }
    q
}

/// Most passes of one search.
const MOST: usize = 40;

/// A point along the direction that meets the weak Wolfe conditions, by bisection; `None` if there is none to be found.
fn search(gate: &mut Gate, at: &At, direction: &[f64], first: f64) -> Result<Option<At>, Halt> {
    let slope = dot(&at.gradient, direction);
    let (mut low, mut high, mut step) = (0.0, f64::INFINITY, first);
    for _ in 0..MOST {
        let x = at.x.iter().zip(direction).map(|(x, d)| x + step * d).collect();
        let next = pass(gate, x)?;
        // Near the end the losses no longer tell two points apart; their slopes still do.
        let rounding = 1e-14 * at.loss.abs();
        let lower = next.loss <= at.loss + DECREASE * step * slope + rounding;
        if !lower {
            high = step;
        } else if dot(&next.gradient, direction) < CURVATURE * slope {
            low = step;
        } else {
            return Ok(Some(next));
        }
        step = if high.is_finite() { 0.5 * (low + high) } else { 2.0 * step };
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use pasta_opt::gate::Gate;

    use super::passes_to;
    use crate::leaderboard::problems::PROBLEMS;

    #[test]
    fn a_small_table_is_solved_in_a_few_passes_and_a_short_budget_is_no_answer() {
        let problem = PROBLEMS.iter().find(|problem| problem.name == "lsq-small").unwrap();
        let instance = problem.instance();
        let mut gate = Gate::over(instance.oracle.clone(), 1);
        let passes = passes_to(&mut gate, &instance.start, 1e-6, 442).unwrap().unwrap();
        assert!((5.0..200.0).contains(&passes), "{passes}");
        let mut gate = Gate::over(instance.oracle.clone(), 1).with_budget(442 * 4);
        assert_eq!(passes_to(&mut gate, &instance.start, 1e-6, 442).unwrap(), None);
    }
}
