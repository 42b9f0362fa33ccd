//! A stage: quasi-Newton steps from an anchor on a model made of shared samples, down to the model's own noise.
//!
//! The anchor a has a good gradient estimate g, of error variance E. A sub-sample of m of its samples carries the way and the
//! curvature: phi(x) = f_m(x) - f_m(a) + <g - g_m(a), x - a> + pull/2 |x - a|^2. Its gradient is wrong by E at the anchor and by the
//! noise of paired differences, Vd(x)/m, away from it. Vd is measured, and so is how fast it grows with the distance: the pull
//! towards the anchor is sqrt(Vd/m)/|x - a|, the paper's anchoring with a strength that nobody has to know.

use super::blocks::{Eval, fresh, norm};
use super::memory::Memory;
use crate::gate::{Gate, Halt};
use crate::kernels::{along, dot, minus, squared_norm};

/// The sub-sample has this share of the anchor's samples, and at least so many.
const SHARE: f64 = 1.0 / 16.0;
const LEAST: f64 = 32.0;
/// A sub-sample whose noise stops the way is replaced by one so many times larger.
const GROW: f64 = 4.0;
/// The noise of pairs may be this share of |g|^2; beyond, the model says nothing.
const NOISY: f64 = 0.5;
/// A stage costs at most so many times the anchor's samples, and this share of what is left.
const WORK: f64 = 4.0;
const LEFT: f64 = 0.6;
/// Where a round has a price: a sub-sample that is replaced costs rounds, so it is all of the anchor's samples from the start.
const WIDE_WORK: f64 = 10.0;
const WIDE_SHARE: f64 = 1.0;
/// A step that goes on down the model ends at this share of the anchor's error.
const ENOUGH: f64 = 0.5;
/// Steps with one sub-sample, and with a whole table before the caller looks.
const STEPS: u32 = 32;
const EXACT_STEPS: u32 = 4;
/// Losses of a whole table that are closer than this, relatively, are the same.
const ROUNDING: f64 = 1e-10;

/// What a stage starts from.
pub(super) struct Stage<'s> {
    pub(super) anchor: &'s [f64],
    /// All that is known of the anchor's samples.
    pub(super) known: &'s Eval,
    /// The estimate of its gradient, and the variance of its error.
    pub(super) gradient: &'s [f64],
    pub(super) error: f64,
    /// No farther than this from the anchor.
    pub(super) radius: f64,
    /// Length of the first step where nothing is known about curvature.
    pub(super) first: f64,
    /// The curvatures of the coordinates, up to a factor, as far as gradients tell.
    pub(super) units: &'s [f64],
    /// How fast the deviation of pairs grows with the distance, from earlier stages.
    pub(super) growth: f64,
    /// Samples that are left.
    pub(super) left: f64,
    /// Whether rounds have a price.
    pub(super) is_wide: bool,
}

/// Where a stage ended.
pub(super) struct Reached {
    pub(super) x: Vec<f64>,
    /// The model's gradient there, without the pull, and the variance of its error.
    pub(super) gradient: Vec<f64>,
    pub(super) error: f64,
    /// Length of the last step.
    pub(super) length: f64,
    pub(super) growth: f64,
    /// Where the last model was the whole table, what it says: no check is needed then.
    pub(super) exact: Option<Eval>,
}

/// A point on the model.
#[derive(Clone)]
struct Point {
    x: Vec<f64>,
    eval: Eval,
    gradient: Vec<f64>,
    /// phi(x) - phi(a), without the pull; 0 where there are no losses.
    value: f64,
    /// Vd.
    paired: f64,
}

/// The samples of the model, and what corrects them.
struct Model<'s> {
    stage: &'s Stage<'s>,
    sub: Eval,
    correction: Vec<f64>,
    losses: bool,
}

impl<'s> Model<'s> {
    /// On at least so many samples: some of the anchor's, or all of them, or new ones where the anchor's are a whole table.
    fn new(gate: &mut Gate, next: &mut u64, stage: &'s Stage<'s>, samples: f64) -> Result<Self, Halt> {
        let Stage { anchor, known, gradient, .. } = stage;
        let sub = if samples > known.samples() / 3.0 {
            (*known).clone()
        } else if known.is_exact() {
            Eval::at(gate, anchor, &fresh(next, samples))?
        } else {
            known.first(samples)
        };
        let correction = minus(gradient, &sub.gradient());
        Ok(Self { stage, sub, correction, losses: gate.about().losses })
    }

    fn is_all(&self) -> bool {
        self.sub.blocks.len() == self.stage.known.blocks.len() && self.sub.rows == self.stage.known.rows
    }

    fn at_anchor(&self) -> Point {
        Point {
            x: self.stage.anchor.to_vec(),
            eval: self.sub.clone(),
            gradient: self.stage.gradient.to_vec(),
            value: 0.0,
            paired: 0.0,
        }
    }

    fn at(&self, gate: &mut Gate, x: Vec<f64>) -> Result<Point, Halt> {
        let eval = self.sub.again(gate, &x)?;
        let gradient = along(&eval.gradient(), 1.0, &self.correction);
        let way = dot(&self.correction, &minus(&x, self.stage.anchor));
        let value = if self.losses { eval.mean(|k| eval.losses[k] - self.sub.losses[k]) + way } else { 0.0 };
        let paired = eval.paired_variance(&self.sub);
        Ok(Point { x, eval, gradient, value, paired })
    }
}

/// Why the way on one model ended.
#[derive(PartialEq)]
enum End {
    /// The error of the anchor's gradient is all that is left.
    Noise,
    /// The sub-sample is too small: its pairs are too noisy, or its steps lead nowhere.
    Pairs,
    /// At the radius, or out of work.
    Far,
    /// The table's model has taken its steps.
    Exact,
}

impl Stage<'_> {
    /// Goes down the model, on larger sub-samples when the noise of one stops the way.
    pub(super) fn run(&self, gate: &mut Gate, next: &mut u64, memory: &mut Memory) -> Result<Reached, Halt> {
        let begun = gate.ledger().samples();
        let (work, share) = if self.is_wide { (WIDE_WORK, WIDE_SHARE) } else { (WORK, SHARE) };
        let most = (work * self.known.samples()).min(LEFT * self.left);
        let mut samples = LEAST.max(share * self.known.samples());
        let mut model = Model::new(gate, next, self, samples)?;
        let mut way = Way { here: model.at_anchor(), length: self.first, growth: self.growth };
        loop {
            let spent = |gate: &Gate| (gate.ledger().samples() - begun) as f64 > most;
            let end = way.descend(gate, &model, memory, spent);
            // What is left belongs to the check.
            if let Err(Halt::OverBudget { .. }) = end {
                break;
            }
            if end? != End::Pairs || model.is_all() {
                break;
            }
            memory.keep_sure();
            samples = GROW * model.sub.samples();
            if 2.0 * samples > gate.left() as f64 {
                break;
            }
            model = Model::new(gate, next, self, samples)?;
            way.here = self.moved(gate, &model, way.here.x)?;
            if !model.sub.is_exact() && squared_norm(&way.here.gradient) <= ENOUGH * self.error {
                break;
            }
        }
        let Way { here, length, growth } = way;
        let exact = model.sub.is_exact();
        let error = if exact { 0.0 } else { self.error + here.paired / model.sub.samples() };
        let Point { x, gradient, eval, .. } = here;
        Ok(Reached { x, gradient, error, length, growth, exact: exact.then_some(eval) })
    }

    /// The point on a new model; back at the anchor if that calls it worse.
    fn moved(&self, gate: &mut Gate, model: &Model<'_>, x: Vec<f64>) -> Result<Point, Halt> {
        if x == self.anchor {
            return Ok(model.at_anchor());
        }
        let there = model.at(gate, x)?;
        let squared = squared_norm(&there.gradient);
        let worse = there.value > 0.0 && (model.sub.is_exact() || squared > squared_norm(self.gradient));
        Ok(if worse || !(there.value + squared).is_finite() { model.at_anchor() } else { there })
    }
}

/// The way so far.
struct Way {
    here: Point,
    length: f64,
    growth: f64,
}

impl Way {
    /// Steps on one model until it has no more to say.
    fn descend(
        &mut self,
        gate: &mut Gate,
        model: &Model<'_>,
        memory: &mut Memory,
        spent: impl Fn(&Gate) -> bool,
    ) -> Result<End, Halt> {
        let stage = model.stage;
        let exact = model.sub.is_exact();
        let samples = model.sub.samples();
        let allowed = NOISY * squared_norm(stage.gradient) * samples;
        for _ in 0..if exact { EXACT_STEPS } else { STEPS } {
            if !exact && spent(gate) {
                return Ok(End::Far);
            }
            let pull = if exact { 0.0 } else { self.growth / samples.sqrt() };
            let Some(line) = Line::from(self, model, memory, pull) else { return Ok(End::Far) };
            let Some(found) = line.search(gate, model, &self.here, allowed)? else {
                if exact && !memory.is_empty() {
                    memory.clear();
                    continue;
                }
                return Ok(if exact { End::Exact } else { End::Pairs });
            };
            let step = minus(&found.x, &self.here.x);
            let along: Vec<f64> = found
                .eval
                .gradients
                .iter()
                .zip(&self.here.eval.gradients)
                .map(|(new, old)| dot(&minus(new, old), &step))
                .collect();
            self.length = norm(&step);
            memory.add(step, minus(&found.gradient, &self.here.gradient), is_positive(&along));
            self.here = found;
            let away = minus(&self.here.x, stage.anchor);
            self.growth = self.here.paired.sqrt() / norm(&away).max(1e-300);
            if exact {
                continue;
            }
            let pulled = crate::kernels::along(&self.here.gradient, self.growth / samples.sqrt(), &away);
            let squared = squared_norm(&self.here.gradient).min(squared_norm(&pulled));
            // Where the noise has grown, so has the error that matters.
            let grown = (self.here.eval.variance() / stage.known.variance().max(1e-300)).max(1.0);
            let (noise, pairs) = (ENOUGH * stage.error * grown, self.here.paired / samples);
            if squared <= noise.max(pairs) || self.here.paired > 0.5 * allowed {
                return Ok(if noise >= pairs { End::Noise } else { End::Pairs });
            }
            if stage.known.is_exact() && squared <= 0.01 * squared_norm(stage.gradient) {
                return Ok(End::Noise);
            }
            if norm(&away) > 0.99 * stage.radius {
                return Ok(End::Far);
            }
        }
        Ok(if exact { End::Exact } else { End::Pairs })
    }
}

/// Whether numbers have a mean that is positive beyond twice its error.
fn is_positive(values: &[f64]) -> bool {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let scatter: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    values.len() < 2 || mean > 2.0 * (scatter / (n - 1.0) / n).sqrt()
}

/// A line from the present point.
struct Line {
    direction: Vec<f64>,
    /// The slope at its beginning, pull included.
    slope: f64,
    pull: f64,
    /// The first trial, and the longest.
    first: f64,
    longest: f64,
    trials: u32,
}

impl Line {
    /// The quasi-Newton direction; the steepest where nothing is known. `None` at the radius.
    fn from(way: &Way, model: &Model<'_>, memory: &mut Memory, pull: f64) -> Option<Self> {
        let stage = model.stage;
        let away = minus(&way.here.x, stage.anchor);
        let gradient = along(&way.here.gradient, pull, &away);
        let mut direction = memory.direction(&gradient, pull, stage.units);
        let mut slope = dot(&direction, &gradient);
        let downhill = slope < -1e-10 * norm(&direction) * norm(&gradient);
        if !downhill {
            memory.clear();
            direction = memory.direction(&gradient, pull, stage.units);
            slope = dot(&direction, &gradient);
        }
        let length = norm(&direction);
        if !(length > 0.0 && length.is_finite()) {
            return None;
        }
        let exact = model.sub.is_exact();
        let longest = if exact { f64::INFINITY } else { length_to_edge(&away, &direction, stage.radius) };
        if longest * length < 0.01 * stage.radius && !exact {
            return None;
        }
        let first = if memory.is_empty() { way.length / length } else { 1.0 };
        let trials = if exact || memory.is_empty() { 30 } else { 12 };
        Some(Self { direction, slope, pull, first: first.min(longest), longest, trials })
    }

    /// A point with the weak Wolfe conditions, by secants and bisection: low enough (or not past the valley, where losses are noisy or there are none), and
    /// the slope no longer steep. Nowhere farther than the noise of pairs allows.
    fn search(
        &self,
        gate: &mut Gate,
        model: &Model<'_>,
        from: &Point,
        allowed: f64,
    ) -> Result<Option<Point>, Halt> {
        let exact = model.sub.is_exact();
        let anchor = model.stage.anchor;
        let pulled = |point: &Point| point.value + 0.5 * self.pull * squared_norm(&minus(&point.x, anchor));
        let value_here = pulled(from);
        let (mut low, mut high, mut slope_low) = (0.0, f64::INFINITY, self.slope);
        let (mut step, mut longest) = (self.first, self.longest);
        let mut best: Option<Point> = None;
        for trial in 0..self.trials {
            let point = model.at(gate, along(&from.x, step, &self.direction))?;
            let away = minus(&point.x, anchor);
            let slope = dot(&self.direction, &along(&point.gradient, self.pull, &away));
            let noisy = !exact && point.paired > allowed;
            let lower = model.losses && pulled(&point) <= value_here + 1e-4 * step * self.slope;
            let finite = (point.value + slope + point.paired).is_finite();
            if finite && noisy && high == f64::INFINITY {
                // Vd grows like the square of the distance.
                let within = (0.8 * allowed / point.paired).sqrt() * norm(&away);
                let start = minus(&from.x, anchor);
                let inside = if norm(&start) < within {
                    length_to_edge(&start, &self.direction, within)
                } else {
                    0.1 * step
                };
                longest = longest.min(inside);
                if low < longest && longest < step {
                    step = longest;
                    continue;
                }
            }
            // Exact losses may not rise by more than rounding: a flat slope says nothing where a loss is flat far out.
            let level = !exact
                || !model.losses
                || pulled(&point) <= value_here + ROUNDING * from.eval.losses[0].abs();
            let far = !finite || noisy || !(slope <= -0.9998 * self.slope && level || lower);
            if far {
                high = step;
            } else {
                let flat = slope >= 0.9 * self.slope;
                best = Some(point);
                if flat || step >= longest {
                    break;
                }
                (low, slope_low) = (step, slope);
            }
            if high == f64::INFINITY {
                let stretch = if slope > self.slope { self.slope / (self.slope - slope) } else { 100.0 };
                step = (step * stretch.clamp(2.0, 100.0)).min(longest);
            } else {
                if (best.is_some() && trial > 8) || high - low < 1e-12 * high {
                    break;
                }
                let share = if far && !noisy && slope.is_finite() && slope > 0.0 {
                    slope_low / (slope_low - slope)
                } else if low > 0.0 {
                    0.5
                } else {
                    0.1
                };
                let least = if low == 0.0 { 1e-4 } else { 0.1 };
                step =
                    (low + (high - low) * share).clamp(low + least * (high - low), high - 0.1 * (high - low));
            }
        }
        Ok(best)
    }
}

/// How far one can go from `away` along a direction without leaving the ball around 0.
fn length_to_edge(away: &[f64], direction: &[f64], radius: f64) -> f64 {
    if radius == f64::INFINITY {
        return f64::INFINITY;
    }
    let (a, b) = (squared_norm(direction), dot(away, direction));
    let c = squared_norm(away) - radius * radius;
    (-b + (b * b - a * c).max(0.0).sqrt()) / a
}
