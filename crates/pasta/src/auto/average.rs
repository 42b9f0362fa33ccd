//! A walk of small steps from the start, and its averages: where noise rules, nothing is better than the mean of many small steps.
//!
//! The step is distance over gradients, as DoG and DoWG take it, made safe and scaled:
//! - the distance is that of the average, which noise does not inflate, and not of the iterate;
//! - gradients count by the square of the distance that the walk had when it took them, so that a start on the wrong scale is forgotten;
//! - gradients count at least as much as the latest ones, which are the noisiest where the noise grows with the distance;
//! - each coordinate is measured in units of its own gradients.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::blocks::{Block, Eval, norm};
use super::sizes::Sizes;
use crate::draws::Role;
use crate::gate::{Gate, Halt};
use crate::kernels::{along, dot, squared_distance, squared_norm};
use crate::oracle::{Answer, Charge, Draw, Request};
use crate::term::{Steps, Term, keep_inside};

/// The least and the largest first distance, over 1 + |x0|, and how a probe goes from one to the next.
const LEAST: f64 = 1e-6;
const MOST: f64 = 1e-2;
const PROBE: f64 = 8.0;
/// Gradients that count as the latest.
const LATEST: usize = 16;
/// A walk that was lost begins again with a radius so many times smaller.
const SHORTER: f64 = 16.0;
/// Steps are this share of what distance over gradients would take.
const SHORT: f64 = 0.4;
/// The weights of the averages grow like these powers of the step.
const SLOW: i32 = 1;
const FAST: f64 = 8.0;
/// What noise alone makes of the squared distance, over the sum of all squared steps.
const NOISE: f64 = 1.0;
/// Tails are heavy where the kurtosis below is above this, over the root of the samples of a step. With four samples a step normal noise has 1 in many
/// dimensions and about 4 in one, events of 1 % have 25 or more.
const HEAVY: f64 = 14.0;
/// Coordinates are uneven where the mean squares of the largest and of a quarter differ by more than this factor.
const UNEVEN: f64 = 1e4;
/// Other samples that are asked for to tell whether an answer that is not finite is the oracle's fault, and how often that is asked.
const OTHERS: u64 = 32;
const DOUBTED: u128 = 64;
/// The units of two coordinates differ by no more than this.
const FLATTEST: f64 = 1e-8;

/// The walk and its averages.
#[derive(Debug, Clone)]
pub(super) struct Average {
    pub(super) numbers: Numbers,
    pub(super) z: Vec<f64>,
    /// The mean with weights that grow slowly: where noise rules, the best.
    pub(super) slow: Vec<f64>,
    /// The mean of the latest points: where the way rules, the best.
    pub(super) fast: Vec<f64>,
    /// The sums of squared gradients, coordinate by coordinate.
    pub(super) squares: Vec<f64>,
}

/// Where it stands, besides vectors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Numbers {
    pub(super) sizes: Sizes,
    pub(super) step: u64,
    /// The radius that it began with, and what it has become.
    first: f64,
    pub(super) radius: f64,
    /// The sums of radius^2 |g|^2, of radius^2, and of the weights of the slow average.
    weighed: f64,
    weights: f64,
    slow: f64,
    latest: Vec<f64>,
    /// The sum of all squared steps.
    stepped: f64,
    /// The sums of t |g|^2 and t |g|^4.
    moments: [f64; 2],
    /// The sums of t, t u and t u^2, where u is |g|^2 over its mean in the steps before.
    tail: [f64; 3],
}

/// The distance of two points over that of their gradients.
fn curvature_radius(x: &[f64], at_x: &[f64], y: &[f64], at_y: &[f64]) -> Option<f64> {
    let radius = (squared_distance(x, y) / squared_distance(at_x, at_y)).sqrt();
    (radius > 0.0 && radius.is_finite()).then_some(radius)
}

/// How far a leg of the walk came: its round may be interrupted, and takes it up again.
#[derive(Debug, Clone)]
pub(super) struct Leg {
    pub(super) done: Done,
    pub(super) walk: Average,
}

/// The small steps of a leg, and what they cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Done {
    /// The budget that it was planned for.
    pub(super) budget: Option<u128>,
    pub(super) steps: u64,
    pub(super) samples: u128,
    pub(super) evaluations: u128,
}

impl Done {
    /// Counts it: when its leg is taken up again, or was walked in vain.
    pub(super) fn count(&self, gate: &mut Gate) {
        let Self { samples, evaluations, .. } = *self;
        gate.count_again(Role::Large, Charge { samples, evaluations, exact: false }, self.steps);
    }
}

impl Leg {
    /// Goes on from where an interrupted leg had come to, and counts it.
    fn take_up(leg: Option<Self>, gate: &mut Gate, steps: u64, walk: &mut Average) -> Done {
        let none = Done { budget: gate.budget(), ..Done::default() };
        let Some(Self { done, walk: there }) = leg else { return none };
        done.count(gate);
        // It cannot be longer than the leg is to be, unless the file that it is from says so.
        if done.steps > steps {
            return none;
        }
        *walk = there;
        done
    }
}

impl Average {
    /// What a checkpoint has besides the numbers.
    pub(super) fn vectors(&self) -> impl Iterator<Item = &[f64]> {
        [&self.z, &self.slow, &self.fast, &self.squares].into_iter().map(Vec::as_slice)
    }

    /// At the start, on the smallest scale.
    pub(super) fn start(start: &[f64], sizes: Sizes) -> Self {
        Self::with_radius(start, LEAST * (1.0 + norm(start)), sizes)
    }

    /// Before the first step: the largest first distance at which the slope along the gradient is still half of what it is at the start,
    /// on the same samples. The answer is about 1/L, as far as the last of the points tells.
    pub(super) fn probe(&mut self, gate: &mut Gate, start: &[f64], blocks: &[Block]) -> Result<f64, Halt> {
        let gradient = Eval::at(gate, start, blocks)?.gradient();
        let slope = squared_norm(&gradient);
        let length = slope.sqrt();
        let mut radius = self.numbers.radius;
        // What takes the place of 1/L.
        let mut seen = radius / length;
        let point = |gate: &Gate, radius: f64| {
            let mut there = along(start, -PROBE * radius / length, &gradient);
            if let Some(term) = gate.term() {
                term.prox(Steps::One(PROBE * radius / length), &mut there);
            }
            there
        };
        let is_open =
            |radius: f64| slope > 0.0 && slope.is_finite() && PROBE * radius <= MOST * (1.0 + norm(start));
        // Where a round has a price, all points are asked for in one.
        let mut asked = VecDeque::new();
        if gate.round_cost() > 0 {
            let radii = std::iter::successors(Some(radius), |radius| Some(PROBE * radius));
            let points: Vec<_> =
                radii.take_while(|radius| is_open(*radius)).map(|radius| point(gate, radius)).collect();
            let all: Vec<&[f64]> = points.iter().map(Vec::as_slice).collect();
            let evals = Eval::at_all(gate, &all, blocks)?;
            asked = points.iter().cloned().zip(evals).collect();
        }
        while is_open(radius) {
            let (there, eval) = if let Some(asked) = asked.pop_front() {
                asked
            } else {
                let there = point(gate, radius);
                let eval = Eval::at(gate, &there, blocks)?;
                (there, eval)
            };
            let ahead = eval.gradient();
            if let Some(gamma) = curvature_radius(start, &gradient, &there, &ahead) {
                seen = gamma;
            }
            let ahead = dot(&ahead, &gradient);
            // Also where it is not a number.
            if ahead.is_nan() || ahead < 0.5 * slope {
                break;
            }
            radius *= PROBE;
        }
        *self = Self::with_radius(start, radius, self.numbers.sizes);
        Ok(if seen > 0.0 && seen.is_finite() { seen } else { 1.0 })
    }

    fn with_radius(start: &[f64], radius: f64, sizes: Sizes) -> Self {
        let numbers = Numbers {
            sizes,
            step: 0,
            first: radius,
            radius,
            weighed: 0.0,
            weights: 0.0,
            slow: 0.0,
            latest: Vec::new(),
            stepped: 0.0,
            moments: [0.0; 2],
            tail: [0.0; 3],
        };
        let x = || start.to_vec();
        Self { numbers, z: x(), slow: x(), fast: x(), squares: vec![0.0; start.len()] }
    }

    /// Walks for about `samples` samples, from where an interrupted leg had come to. How far it comes is left in `leg`, also on success: what
    /// follows it in its round may be interrupted.
    pub(super) fn go(
        &mut self,
        gate: &mut Gate,
        start: &[f64],
        next: &mut u64,
        samples: f64,
        leg: &mut Option<Leg>,
    ) -> Result<(), Halt> {
        let steps = (samples / self.numbers.sizes.batch as f64) as u64;
        let mut done = Leg::take_up(leg.take(), gate, steps, self);
        let before = done.steps;
        let mut g = vec![0.0; self.z.len()];
        let came = loop {
            if done.steps == steps {
                break Ok(());
            }
            if gate.is_paused() && done.steps > before {
                break Err(Halt::Paused);
            }
            match self.small_step(gate, start, *next + done.steps, &mut g) {
                Ok(charge) => {
                    done.steps += 1;
                    done.samples += charge.samples;
                    done.evaluations += charge.evaluations;
                }
                Err(halt) => break Err(halt),
            }
        };
        *next += done.steps;
        *leg = Some(Leg { done, walk: self.clone() });
        came
    }

    /// One small step.
    fn small_step(
        &mut self,
        gate: &mut Gate,
        start: &[f64],
        address: u64,
        g: &mut [f64],
    ) -> Result<Charge, Halt> {
        let size = self.numbers.sizes.batch;
        let batch = gate.batch(Role::Large, address, size);
        let charge = gate.ask_for_step(Request::sums(batch.clone(), &[&self.z]), &mut Answer::new(g))?;
        g.iter_mut().for_each(|g| *g /= size as f64);
        let square = squared_norm(g);
        if !square.is_finite() {
            // Its own fault, or the oracle's?
            gate.notice(&Draw::Batch(batch), &self.z, false);
            if gate.ledger().not_finite() <= DOUBTED
                && let Some(mixed) = gate.blame(start, OTHERS, 0)?
            {
                return Err(Halt::Mixed(mixed));
            }
            // It has left the region where numbers mean something: again, with shorter steps.
            *self = Self::with_radius(start, self.numbers.first / SHORTER, self.numbers.sizes);
        } else if square > 0.0 {
            self.step(start, g, square, gate.term().map(|term| &**term));
        }
        Ok(charge)
    }

    /// The mean squares of the coordinates' gradients over their mean: near a solution of a model fitted to data, its curvatures up to
    /// a factor.
    pub(super) fn units(&self) -> Vec<f64> {
        let mean = self.squares.iter().sum::<f64>() / self.squares.len() as f64;
        let unit = |square: &f64| if mean > 0.0 { (square / mean).max(FLATTEST) } else { 1.0 };
        self.squares.iter().map(unit).collect()
    }

    /// Whether single gradients stand out from the sixteen before them: rare events, which a small check may not see.
    pub(super) fn is_heavy(&self) -> bool {
        let [weights, mean, square] = self.numbers.tail;
        let most = HEAVY / (self.numbers.sizes.batch as f64).sqrt();
        // Squares that overflow are heavy, too.
        mean > 0.0 && (square.is_infinite() || weights * square > most * mean * mean)
    }

    /// Whether a quarter of the coordinates have gradients so small that the noise of the others hides what they do.
    pub(super) fn is_uneven(&self) -> bool {
        // Those that never moved hide nothing, and nothing hides them.
        let mut squares: Vec<f64> = self.squares.iter().copied().filter(|square| *square > 0.0).collect();
        squares.sort_by(f64::total_cmp);
        let quarter = squares.get(squares.len() / 4).copied().unwrap_or(0.0);
        squares.last().is_some_and(|most| *most > UNEVEN * quarter)
    }

    /// The number of samples among which one makes up most of the squares of all gradients, if one makes up all of its batch.
    pub(super) fn rarity(&self) -> f64 {
        let [weights, mean, square] = self.numbers.tail;
        self.numbers.sizes.batch as f64 * weights * square / (mean * mean)
    }

    fn step(&mut self, start: &[f64], g: &[f64], square: f64, term: Option<&dyn Term>) {
        let Numbers { step, radius, weighed, weights, slow, latest, stepped, moments, tail, sizes, .. } =
            &mut self.numbers;
        *step += 1;
        let t = *step as f64;
        let weight = *radius * *radius;
        *weighed += weight * square;
        *weights += weight;
        // Without this gradient: a step that an event itself makes shorter than the others is off to the side that events do not come from.
        let recent = latest.iter().sum::<f64>() / latest.len().max(1) as f64;
        let eta = SHORT * weight / weighed.max(*weights * recent).sqrt();
        if latest.len() == LATEST {
            let u = square / recent;
            tail.iter_mut().zip([t, t * u, t * u * u]).for_each(|(sum, term)| *sum += term);
            latest.remove(0);
        }
        latest.push(square);
        // Where steps grow wider, each counts by its samples.
        let wide = if sizes.round_cost > 0 { sizes.batch as f64 } else { 1.0 };
        let in_slow = wide * weight * t.powi(SLOW);
        *slow += in_slow;
        moments.iter_mut().zip([t * square, t * square * square]).for_each(|(sum, term)| *sum += term);
        let (to_slow, to_fast) = (in_slow / *slow, (FAST + 1.0) / (FAST + t));
        self.squares.iter_mut().zip(g).for_each(|(square, g)| *square += g * g);
        let unit = self.squares.iter().sum::<f64>() / g.len() as f64;
        if let Some(term) = term {
            let before = self.z.clone();
            let lengths: Vec<f64> =
                self.squares.iter().map(|square| eta / (square / unit).sqrt().max(FLATTEST)).collect();
            self.z.iter_mut().zip(g).zip(&lengths).for_each(|((z, g), length)| *z -= length * g);
            term.prox(Steps::Each(&lengths), &mut self.z);
            *stepped += squared_distance(&self.z, &before);
            for ((z, slow), fast) in self.z.iter().zip(&mut self.slow).zip(&mut self.fast) {
                *slow += to_slow * (z - *slow);
                *fast += to_fast * (z - *fast);
            }
            keep_inside(term, &mut self.slow);
            keep_inside(term, &mut self.fast);
        } else {
            let vectors = self.z.iter_mut().zip(&mut self.slow).zip(&mut self.fast).zip(&self.squares).zip(g);
            for ((((z, slow), fast), square), g) in vectors {
                let dz = eta * g / (square / unit).sqrt().max(FLATTEST);
                *stepped += dz * dz;
                *z -= dz;
                *slow += to_slow * (*z - *slow);
                *fast += to_fast * (*z - *fast);
            }
        }
        let growth = libm::exp2(sizes.batch as f64 / sizes.doubles);
        let beyond = squared_distance(&self.slow, start) - NOISE * *stepped;
        *radius = radius.max(beyond.max(0.0).sqrt().min(growth * *radius));
    }
}
