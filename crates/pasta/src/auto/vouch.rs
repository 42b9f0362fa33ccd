//! The last look: fresh samples at the start and at the point, before it is handed out.
//!
//! Where a few samples or a few coordinates make up nearly all of the noise, they must show that f is lower at the point than at the start, since a rise
//! could hide in that noise. Elsewhere it is enough that they do not speak against it. If not, the point halfway is tried; otherwise the start is
//! handed out.
//!
//! It is a test of one mean, the change of f, group by group of samples. With losses a group's change is the difference of the losses of the
//! same samples. Without, it is the slope along the way, at places that are spread over the whole way within each group, so that
//! what the slope itself does along the way is no noise between groups. Student's t with Johnson's correction for skewness decides. Each of at most three
//! tests of a run has a level of 1/160, as far as the means of groups are normal.

use super::blocks::{Block, Eval, ask};
use super::compare::{is_lopsided, mean_and_error, rise};
use super::{Auto, Way};
use crate::draws::{Address, Role};
use crate::gate::{Gate, Halt};
use crate::kernels::{along, dot, minus};

/// Groups of samples in a draw, if it has as many samples.
const GROUPS: u64 = 32;
/// Fewer than this are no test.
const FEWEST: usize = 6;
/// Places of the way at which a group's slopes are taken: half of them mirror the others, so that a slope that changes evenly is met exactly.
/// Two are enough where there are few samples.
const PLACES: u64 = 4;
const FEW: f64 = 48.0;
/// Where a point must be proved to be lower, the first of two draws takes this share.
const FIRST: f64 = 0.33;
/// A point that need not be proved to be lower is refused if f seems higher by this many standard errors.
const DOUBTFUL: f64 = 0.5;
/// The point between, by its share of the way. Where the way ends at a minimum, f falls by 3/4 as much there, with 1/2 of the noise.
const BETWEEN: f64 = 0.5;
/// The normal quantile of 1/160: a point is tested twice at most, and one between once.
const QUANTILE: f64 = 2.5;
/// Where gradients have heavy tails, the quantile of 1/740.
const HEAVY_QUANTILE: f64 = 3.0;
/// Where gradients have heavy tails, slopes must have room for this many of their rare events: all are missed with probability exp(-6).
pub(super) const EVENTS: f64 = 6.0;

impl Auto {
    /// Hands out the point, or one between, only if fresh samples show that f is lower there than at the start.
    pub(super) fn vouch(&mut self, gate: &mut Gate) -> Result<(), Halt> {
        if self.x == self.start || self.known.is_exact() || gate.budget().is_none() {
            return Ok(());
        }
        let point = std::mem::replace(&mut self.x, self.start.clone());
        match self.proved(gate, point) {
            Ok(Some(point)) => self.x = point,
            Ok(None) | Err(Halt::OverBudget { .. }) => {}
            Err(halt) => return Err(halt),
        }
        Ok(())
    }

    /// The point, or one between, if it is proved to be lower than the start.
    fn proved(&mut self, gate: &mut Gate, point: Vec<f64>) -> Result<Option<Vec<f64>>, Halt> {
        let mut look = Look::new(self, gate);
        // A point that a stage found is compared with the walk's as well, which has seen more samples.
        let walked = (self.state.lead == Some(Way::Stages)).then(|| self.walk.slow.clone());
        // Evaluations of each sample: at the point and at one between, and with losses at the start; of the first samples also at the walk's point,
        // and, without losses, to choose.
        let each = if look.losses { 3.0 } else { 2.0 };
        let more = match (&walked, look.losses) {
            (None, _) => 0.0,
            (Some(_), true) => 1.0,
            (Some(_), false) => 3.0,
        };
        let first = if look.strict { FIRST } else { 1.0 };
        let all = gate.left() as f64 / (each + first * more);
        look.draw(gate, &mut self.state.next, first * all)?;
        let mut test = look.test(gate, point)?;
        if let Some(walked) = walked {
            let walked = look.test(gate, walked)?;
            if look.judge(&walked) != Verdict::Higher && look.prefers(self, gate, &walked, &test)? {
                test = walked;
            }
        }
        if look.judge(&test) == Verdict::Open {
            look.draw(gate, &mut self.state.next, (1.0 - first) * all)?;
            look.go_on(gate, &mut test)?;
        }
        if look.judge(&test) == Verdict::Lower {
            return Ok(Some(test.x));
        }
        let mut between = along(&self.start, BETWEEN, &test.way);
        gate.keep_inside(&mut between);
        let between = look.test(gate, between)?;
        Ok((look.judge(&between) == Verdict::Lower).then_some(between.x))
    }
}

/// The samples of a last look.
struct Look {
    start: Vec<f64>,
    losses: bool,
    /// Whether the point must be proved to be lower.
    strict: bool,
    /// Where gradients have heavy tails, or may have: the number of samples among which one makes up most of their squares.
    rare: Option<f64>,
    /// Places at which the slopes of a group are taken; the first draw decides.
    places: u64,
    groups: Vec<Block>,
    /// With losses: their means at the start.
    at_start: Vec<f64>,
}

/// What a look says of one point.
struct Test {
    x: Vec<f64>,
    /// From the start to x.
    way: Vec<f64>,
    /// f(x) - f(start), group by group.
    changes: Vec<f64>,
    /// What samples say of x itself, where they were asked.
    here: Option<Eval>,
}

/// Whether f is lower than at the start.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Lower,
    Open,
    Higher,
}

impl Look {
    fn new(auto: &Auto, gate: &Gate) -> Self {
        Self {
            start: auto.start.clone(),
            losses: gate.about().losses,
            strict: auto.needs_proof(),
            // The gradient of a wide step has the mean of its events in it, so that they do not stand out.
            rare: (auto.walk.is_heavy() || auto.is_wide()).then(|| auto.walk.rarity()),
            places: 0,
            groups: Vec::new(),
            at_start: Vec::new(),
        }
    }

    /// Draws about `samples` more samples.
    fn draw(&mut self, gate: &mut Gate, next: &mut u64, samples: f64) -> Result<(), Halt> {
        if self.places == 0 {
            self.places = if samples < FEW { 2 } else { PLACES };
        }
        let least = if self.losses { 1 } else { self.places };
        let count = (samples as u64 / least).min(GROUPS);
        if count == 0 {
            return Ok(());
        }
        let size = samples as u64 / least / count * least;
        let groups: Vec<Block> = (0..count).map(|k| Block::new(*next, k * size, size)).collect();
        *next += 1;
        if self.losses {
            self.at_start.extend(Eval::at(gate, &self.start, &groups)?.losses);
        }
        self.groups.extend(groups);
        Ok(())
    }

    fn test(&self, gate: &mut Gate, x: Vec<f64>) -> Result<Test, Halt> {
        let way = minus(&x, &self.start);
        let mut test = Test { x, way, changes: Vec::new(), here: None };
        self.go_on(gate, &mut test)?;
        Ok(test)
    }

    /// Asks for the groups that a test has not seen.
    fn go_on(&self, gate: &mut Gate, test: &mut Test) -> Result<(), Halt> {
        let seen = test.changes.len();
        let rise = rise(gate, &self.start, &test.x);
        let groups = &self.groups[seen..];
        if groups.is_empty() {
            return Ok(());
        }
        if self.losses {
            let eval = Eval::at(gate, &test.x, groups)?;
            test.changes.extend(
                eval.losses.iter().zip(&self.at_start[seen..]).map(|(there, here)| there - here + rise),
            );
            if seen == 0 {
                test.here = Some(eval);
            }
            return Ok(());
        }
        // Where rounds have a price, all groups in one.
        let at_once = if gate.round_cost() > 0 { groups.len() } else { 1 };
        for groups in groups.chunks(at_once) {
            for change in self.slopes(gate, &test.way, groups)? {
                test.changes.push(change + rise);
            }
        }
        Ok(())
    }

    /// The mean slopes along the way, over the samples of each group.
    fn slopes(&self, gate: &mut Gate, way: &[f64], groups: &[Block]) -> Result<Vec<f64>, Halt> {
        let questions: Vec<_> = groups.iter().flat_map(|group| self.places_of(gate, way, group)).collect();
        let places = self.places as usize;
        let at_once = if gate.round_cost() > 0 { questions.len() } else { 1 };
        let mut slopes = Vec::with_capacity(questions.len());
        for questions in questions.chunks(at_once.max(1)) {
            slopes.extend(ask(gate, questions)?.into_iter().map(|(gradient, _)| dot(&gradient, way)));
        }
        let mean = |slopes: &[f64]| slopes.iter().fold(0.0, |sum, slope| sum + slope) / places as f64;
        Ok(slopes.chunks(places.max(1)).map(mean).collect())
    }

    /// Where a group's slopes are taken, each with its part of the group.
    fn places_of(&self, gate: &Gate, way: &[f64], group: &Block) -> Vec<(Vec<f64>, Block)> {
        let mut asked = Vec::new();
        let address = Address { seed: gate.seed(), role: Role::Setup, step: group.step, sample: group.from };
        let mut xi = address.stream();
        let places = self.places;
        for half in 0..places / 2 {
            let share = (half as f64 + xi.uniform()) / places as f64;
            for (place, share) in [(2 * half, share), (2 * half + 1, 1.0 - share)] {
                let part = group.part(place, places);
                let mut there = along(&self.start, share, way);
                gate.keep_inside(&mut there);
                asked.push((there, part));
            }
        }
        asked
    }

    /// Whether the first point has the smaller gradient, within its noise.
    fn prefers(&self, auto: &Auto, gate: &mut Gate, first: &Test, second: &Test) -> Result<bool, Halt> {
        let eval = |gate: &mut Gate, test: &Test| match &test.here {
            Some(eval) => Ok(eval.clone()),
            None => Eval::at(gate, &test.x, &self.groups),
        };
        let (one, other) = (eval(gate, first)?, eval(gate, second)?);
        let [first, second] =
            [(first, &one), (second, &other)].map(|(test, eval)| auto.stationarity(gate, &test.x, eval));
        Ok(first < second + other.variance() / other.samples())
    }

    fn judge(&self, test: &Test) -> Verdict {
        let changes = &test.changes;
        let count = changes.len() as f64;
        let (mean, error) = mean_and_error(changes);
        if changes.len() < FEWEST {
            // There is no room to find out anything.
            return if self.strict { Verdict::Open } else { Verdict::Lower };
        }
        if !(mean + error).is_finite() {
            return Verdict::Higher;
        }
        if !self.strict {
            return if mean <= DOUBTFUL * error { Verdict::Lower } else { Verdict::Higher };
        }
        let quantile = if self.rare.is_some() { HEAVY_QUANTILE } else { QUANTILE };
        let limit = student(quantile, count - 1.0) * error;
        if mean > limit {
            return Verdict::Higher;
        }
        if is_lopsided(changes) {
            let all_lower = self.losses && changes.iter().all(|change| *change < 0.0);
            return if all_lower { Verdict::Lower } else { Verdict::Open };
        }
        // Slopes without an event say nothing of those that have one.
        let samples: f64 = self.groups.iter().map(|group| group.size as f64).sum();
        if !self.losses && self.rare.is_some_and(|rare| samples < EVENTS * rare) {
            return Verdict::Open;
        }
        if corrected(changes, mean, error) + limit < 0.0 { Verdict::Lower } else { Verdict::Open }
    }
}

/// The mean with Johnson's correction for the skewness of its sample, where that speaks against a fall.
///
/// The correction grows with the square of the mean, and is meant for means near 0: as it stands, groups that are all far below 0 would say less than the same groups a little
/// higher. So a mean counts only down to where the corrected one is lowest: what the groups show when they are moved up that far, they show where they are.
fn corrected(values: &[f64], mean: f64, error: f64) -> f64 {
    let n = values.len() as f64;
    let variance = n * error * error;
    let third = values.iter().map(|value| (value - mean).powi(3)).sum::<f64>() / n;
    if variance > 0.0 && third > 0.0 {
        let slope = third / (3.0 * variance * variance);
        let mean = mean.max(-0.5 / slope);
        mean + slope * mean * mean + third / (6.0 * variance * n)
    } else {
        mean
    }
}

/// Student's quantile from the normal one, by its expansion in 1/degrees.
fn student(z: f64, degrees: f64) -> f64 {
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    z + first / degrees + second / (degrees * degrees)
}

#[cfg(test)]
mod tests {
    use super::{corrected, mean_and_error};

    /// A sample that leans to the right, moved by so much.
    fn moved(by: f64) -> Vec<f64> {
        (0..64).map(|k| by + (f64::from(k) / 20.0).exp() - 7.0).collect()
    }

    #[test]
    fn groups_that_are_lower_never_say_less() {
        let value = |by: f64| {
            let values = moved(by);
            let (mean, error) = mean_and_error(&values);
            corrected(&values, mean, error)
        };
        let all: Vec<f64> = (0..200).map(|k| value(-f64::from(k))).collect();
        assert!(all.windows(2).all(|pair| pair[1] <= pair[0] + 1e-9), "{all:?}");
        // Near 0 it is Johnson's.
        let values = moved(0.0);
        let (mean, error) = mean_and_error(&values);
        assert!(corrected(&values, mean, error) > mean);
        // Far below 0 it says so: without the limit it would be above 0 there.
        assert!(value(-199.0) < 0.0);
    }
}
