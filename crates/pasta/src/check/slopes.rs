//! Losses against gradients: central differences along lines through a point, the same samples at all points.
//!
//! The gradient of a sample is that of its loss, unless the oracle says otherwise ([`About::pathwise`](crate::oracle::About::pathwise)), so the two rates
//! agree sample by sample, whatever the noise. What does not agree is looked at again, with fresh samples at five scales: what kinks
//! and curvature do shrinks with the scale, what rounding does grows, and what a slip does stays. Where gradients are not pathwise, means are compared.

use serde::Serialize;

use super::slip::Slip;
use super::{Early, finite, norm};
use crate::draws::{Address, Role};
use crate::gate::Gate;
use crate::oracle::{Answer, Batch, Request};

/// How losses and gradients compare along a direction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Slopes {
    /// The mean rate of change of the losses.
    pub losses: f64,
    /// The mean of the gradients along the direction.
    pub gradients: f64,
    /// Their difference.
    pub difference: f64,
    /// By how much chance and rounding may move the difference.
    pub error: f64,
}

/// How much is compared.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    /// Samples of the survey.
    pub(super) samples: u64,
    /// Samples along each coordinate.
    pub(super) each: u64,
    /// The most evaluations along coordinates.
    pub(super) evaluations: u64,
    /// Fresh samples where something does not agree.
    pub(super) confirming: u64,
}

/// What a comparison found.
#[derive(Debug)]
pub(super) struct Compared {
    pub(super) slopes: Slopes,
    pub(super) slips: Vec<Slip>,
    /// Coordinates along which samples were compared one by one.
    pub(super) coordinates: usize,
    /// Samples of the survey whose loss changes, so that there was something to compare.
    pub(super) moving: u64,
}

/// Compares along so many coordinates at most. Of more, these are chosen by address.
const COORDINATES: usize = 64;
/// So many coordinates that do not agree are looked at again.
const SUSPECTS: usize = 8;
/// As parts of the size of a coordinate: the two scales of the direction, and those besides that confirm. At the finest even a function is
/// straight that varies over a millionth of the size of its coordinates.
const SCALES: [f64; 5] = [1e-2, 1e-4, 1e-6, 1e-8, 1e-10];
/// The scale of the survey's coordinates.
const MIDDLE: f64 = 1e-3;
/// Rates of one sample that are apart by more than this part of their sizes differ. Gradients by finite differences are closer.
const OFF: f64 = 3e-3;
/// Numbers of an answer are held at a time.
const NUMBERS: usize = 4_000_000;

/// Where losses and gradients are compared, and with samples of which address.
pub(super) struct Place<'a> {
    pub(super) gate: &'a mut Gate,
    pub(super) x: &'a [f64],
    pub(super) role: Role,
    /// The first step of the samples' addresses.
    pub(super) base: u64,
}

impl Place<'_> {
    /// Compares along a random direction of this number and, sample by sample, along coordinates.
    pub(super) fn compare(&mut self, number: u64, plan: Plan) -> Result<Compared, Early> {
        let is_pathwise = self.gate.about().pathwise;
        let direction = Line::Direction(direction(self.gate.seed(), self.role, self.base + number, self.x));
        let coordinates = if is_pathwise { self.coordinates(number, plan) } else { Vec::new() };
        let survey = self.survey(2 + number, plan, &direction, &coordinates)?;
        let (Slopes { losses, gradients, difference, error }, wrong) = survey.means();
        let (factor, samples) = (wrong.flatten(), plan.samples);
        let loss =
            |disagreeing| Slip::Loss { losses, gradients, difference, error, factor, disagreeing, samples };
        let mut slips = Vec::new();
        if is_pathwise && plan.confirming > 2 {
            let suspects = survey.suspects();
            if wrong.is_some() || !suspects.is_empty() || survey.direction_is_suspect() {
                let some_agree = survey.some_coordinate_agrees();
                let chosen: Vec<&Line> = suspects.iter().map(|i| &coordinates[*i]).collect();
                let seen = self.confirm(number, plan.confirming, &direction, &chosen)?;
                slips = seen.slips(some_agree, loss);
            }
        } else if !is_pathwise && wrong.is_some() && survey.losses_are_smooth() && plan.confirming >= 16 {
            // Few samples of a skewed law are off more often than those of a normal one, but hardly twice.
            let plan = Plan { samples: plan.confirming, ..plan };
            let (again, is_wrong) = self.survey(700 + number, plan, &direction, &[])?.means();
            if is_wrong.is_some() && again.difference * difference > 0.0 {
                slips.push(loss(None));
            }
        }
        let slopes = Slopes { losses, gradients, difference, error };
        let moving = survey.direction.iter().filter(|rates| rates[0].moves(survey.unit)).count() as u64;
        Ok(Compared { slopes, slips, coordinates: coordinates.len(), moving })
    }

    /// The coordinates along which samples are compared: all, or some chosen by address. In one dimension the direction is the coordinate.
    fn coordinates(&self, number: u64, plan: Plan) -> Vec<Line> {
        let d = self.x.len();
        let seen_at_once = (NUMBERS / d.max(1)).saturating_sub(4) / 2;
        let at_once = seen_at_once.saturating_mul(plan.period() as usize);
        let most = usize::try_from(plan.evaluations / 2).unwrap_or(usize::MAX);
        let count = if d == 1 { 0 } else { d.min(COORDINATES).min(at_once).min(most) };
        let mut indices: Vec<usize> = (0..d.min(COORDINATES)).collect();
        if d > count {
            let (seed, sample) = (self.gate.seed(), Address::WHOLE_BATCH - 2);
            let mut xi = Address { seed, role: self.role, step: self.base + number, sample }.stream();
            indices.clear();
            while indices.len() < count {
                let index = xi.below(d as u64) as usize;
                if !indices.contains(&index) {
                    indices.push(index);
                }
            }
            indices.sort_unstable();
        }
        let usual = usual_size(self.x);
        let line = |index: usize| Line::Coordinate { index, size: size_of(self.x[index], usual) };
        indices.into_iter().take(count).map(line).filter(|line| self.stays_a_coordinate(line)).collect()
    }

    /// True if the ends of a line differ in its coordinate alone, also where a term moves them into its domain.
    fn stays_a_coordinate(&self, line: &Line) -> bool {
        let differs = |h: f64| {
            let mut end = line.at(self.x, h);
            self.gate.keep_inside(&mut end);
            end.iter().zip(self.x).enumerate().any(|(k, (end, x))| end != x && line.index() != Some(k))
        };
        self.gate.term().is_none() || !(differs(SCALES[0]) || differs(-SCALES[0]))
    }

    /// Each sample along the direction at two scales, and along some of the coordinates at one.
    fn survey(
        &mut self,
        step: u64,
        plan: Plan,
        direction: &Line,
        coordinates: &[Line],
    ) -> Result<Survey, Early> {
        let period = Plan { each: plan.each_of(coordinates.len()), ..plan }.period();
        let mut survey = Survey {
            direction: Vec::new(),
            coordinates: vec![Vec::new(); coordinates.len()],
            unit: f64::from(f32::EPSILON),
        };
        for i in 0..plan.samples {
            let mine: Vec<usize> =
                (0..coordinates.len()).filter(|c| *c as u64 % period == i % period).collect();
            let along = [(direction, SCALES[0]), (direction, SCALES[1])];
            let probes: Vec<(&Line, f64)> =
                along.into_iter().chain(mine.iter().map(|c| (&coordinates[*c], MIDDLE))).collect();
            let mut rates = self.measure(step, i, &probes, &[], &mut survey.unit)?;
            for (c, rates) in mine.iter().zip(rates.drain(2..)) {
                survey.coordinates[*c].push(rates);
            }
            survey.direction.push(rates);
        }
        Ok(survey)
    }

    /// Fresh samples, along the direction and the coordinates that did not agree, at all scales.
    fn confirm(
        &mut self,
        number: u64,
        samples: u64,
        direction: &Line,
        suspects: &[&Line],
    ) -> Result<Seen, Early> {
        let at_once = (NUMBERS / self.x.len().max(1) / (2 * SCALES.len())).max(1) - 1;
        let suspects = &suspects[..suspects.len().min(SUSPECTS).min(at_once)];
        let lines: Vec<&Line> = [direction].into_iter().chain(suspects.iter().copied()).collect();
        let watched: Vec<usize> = suspects.iter().filter_map(|line| line.index()).collect();
        let mut seen = Seen {
            indices: watched.clone(),
            rates: vec![Vec::new(); lines.len()],
            unit: f64::from(f32::EPSILON),
        };
        let probes: Vec<(&Line, f64)> =
            lines.iter().flat_map(|line| SCALES.map(|scale| (*line, scale))).collect();
        for i in 0..samples {
            let rates = self.measure(500 + number, i, &probes, &watched, &mut seen.unit)?;
            for (all, rates) in seen.rates.iter_mut().zip(rates.chunks(SCALES.len())) {
                all.push(rates.to_vec());
            }
        }
        Ok(seen)
    }

    /// The rates of one sample along some lines, each at a scale. `unit` becomes the rounding of double precision once a loss needs it.
    fn measure(
        &mut self,
        step: u64,
        sample: u64,
        probes: &[(&Line, f64)],
        watched: &[usize],
        unit: &mut f64,
    ) -> Result<Vec<Rates>, Early> {
        let d = self.x.len();
        let mut places: Vec<Vec<f64>> =
            probes.iter().flat_map(|(line, h)| [line.at(self.x, *h), line.at(self.x, -h)]).collect();
        // No oracle is asked outside of a domain: what leads out ends at its border, and the rates are those from end to end.
        places.iter_mut().for_each(|place| self.gate.keep_inside(place));
        let has_term = self.gate.term().is_some();
        let points: Vec<&[f64]> = places.iter().map(Vec::as_slice).collect();
        let (mut gradients, mut losses) = (vec![0.0; points.len() * d], vec![0.0; points.len()]);
        let batch = Batch { samples: sample..sample + 1, ..self.gate.batch(self.role, self.base + step, 0) };
        let mut answer = Answer { gradients: &mut gradients, losses: &mut losses, support: d };
        let asked = self.gate.ask(Request { losses: true, ..Request::sums(batch, &points) }, &mut answer);
        let away = probes.iter().map(|(line, h)| h * line.length()).fold(0.0, f64::max);
        finite(asked, away)?;
        if losses.iter().any(|loss| f64::from(*loss as f32).to_bits() != loss.to_bits()) {
            *unit = f64::EPSILON;
        }
        let rates =
            probes.iter().zip(places.chunks(2)).zip(losses.chunks(2)).zip(gradients.chunks(2 * d.max(1)));
        Ok(rates
            .map(|((((line, h), ends), losses), gradients)| {
                let (here, there) = gradients.split_at(d);
                let mean = |k: usize| 0.5 * (here[k] + there[k]);
                let chord = has_term.then(|| {
                    let v = ends[0].iter().zip(&ends[1]).map(|(a, b)| (a - b) / (2.0 * h));
                    Line::Direction(v.collect())
                });
                let along = chord.as_ref().unwrap_or(line);
                Rates {
                    h: *h,
                    losses: (losses[0] - losses[1]) / (2.0 * h),
                    gradients: along.rate(mean),
                    size: losses[0].abs().max(losses[1].abs()),
                    watched: watched.iter().map(|k| along.length() * mean(*k)).collect(),
                    is_zero: line.index().is_some_and(|k| here[k] == 0.0 && there[k] == 0.0),
                }
            })
            .collect())
    }
}

impl Plan {
    /// Samples along each of so many coordinates.
    fn each_of(&self, coordinates: usize) -> u64 {
        (self.evaluations / (2 * coordinates.max(1) as u64)).clamp(1, self.each)
    }

    /// Every so manieth sample goes along a coordinate.
    fn period(&self) -> u64 {
        (self.samples / self.each.max(1)).max(1)
    }
}

/// A line through the point, in units of its own.
enum Line {
    Direction(Vec<f64>),
    Coordinate { index: usize, size: f64 },
}

impl Line {
    fn at(&self, x: &[f64], h: f64) -> Vec<f64> {
        let mut y = x.to_vec();
        match self {
            Self::Direction(v) => y.iter_mut().zip(v).for_each(|(y, v)| *y += h * v),
            Self::Coordinate { index, size } => y[*index] += h * size,
        }
        y
    }

    /// The rate along the line, of a gradient whose coordinates are these.
    fn rate(&self, gradient: impl Fn(usize) -> f64) -> f64 {
        match self {
            Self::Direction(v) => v.iter().enumerate().map(|(k, v)| v * gradient(k)).sum(),
            Self::Coordinate { index, size } => size * gradient(*index),
        }
    }

    fn length(&self) -> f64 {
        match self {
            Self::Direction(v) => norm(v),
            Self::Coordinate { size, .. } => *size,
        }
    }

    fn index(&self) -> Option<usize> {
        match self {
            Self::Direction(_) => None,
            Self::Coordinate { index, .. } => Some(*index),
        }
    }
}

/// What one sample says along a line at a scale.
#[derive(Debug, Clone)]
struct Rates {
    h: f64,
    /// The rate of change of the loss.
    losses: f64,
    /// The gradient along the line.
    gradients: f64,
    /// Of the losses.
    size: f64,
    /// The coordinates of the gradient that are watched, in units of the line.
    watched: Vec<f64>,
    /// True if the gradient's own coordinate is exactly 0.
    is_zero: bool,
}

impl Rates {
    fn difference(&self) -> f64 {
        self.losses - self.gradients
    }

    fn sizes(&self) -> f64 {
        self.losses.abs() + self.gradients.abs()
    }

    /// What the rounding of losses does to their rate.
    fn rounding(&self, unit: f64) -> f64 {
        8.0 * unit * self.size / self.h
    }

    fn moves(&self, unit: f64) -> bool {
        self.sizes() > 4.0 * self.rounding(unit)
    }

    /// Whether the loss says something else than this rate.
    fn differs_from(&self, rate: f64, unit: f64) -> bool {
        (self.losses - rate).abs() > OFF * (self.losses.abs() + rate.abs()) + 4.0 * self.rounding(unit)
    }

    fn differs(&self, unit: f64) -> bool {
        self.differs_from(self.gradients, unit)
    }

    /// Whether both rates differ at this scale, and as they do at a finer one.
    fn differs_as(&self, finer: &Self, unit: f64) -> bool {
        let (here, there) = (self.difference(), finer.difference());
        self.differs(unit) && (here - there).abs() <= 0.2 * here.abs()
    }

    /// Whether the loss changes at one rate at this scale and at a finer one, and at both the gradient says something else.
    fn is_straight(&self, finer: &Self, unit: f64) -> bool {
        let is_same = (self.losses - finer.losses).abs() <= 0.01 * finer.losses.abs();
        let resolved = finer.rounding(unit) < 0.01 * finer.losses.abs();
        is_same && resolved && self.differs(unit) && finer.differs(unit)
    }

    /// Whether the difference is gone at this scale, as far as rounding tells.
    fn heals(&self, coarser: &Self, unit: f64) -> bool {
        let before = coarser.difference().abs();
        self.rounding(unit) < 0.1 * before && self.difference().abs() < 0.5 * before
    }
}

/// The first samples.
struct Survey {
    /// Sample by sample, at two scales.
    direction: Vec<Vec<Rates>>,
    /// Coordinate by coordinate.
    coordinates: Vec<Vec<Rates>>,
    /// The rounding of one.
    unit: f64,
}

impl Survey {
    /// The mean rates along the direction at the finer scale, and how they contradict each other at both, if they do.
    fn means(&self) -> (Slopes, Contradiction) {
        let [coarse, fine] = [0, 1].map(|scale| self.in_the_mean(scale));
        // What kinks and curvature do depends on the scale, what a slip does does not: a start on a kink is off by a hundredth at a hundredth of the scale.
        let is_everywhere = fine.0.difference.abs() > 0.1 * coarse.0.difference.abs();
        (fine.0, fine.1.filter(|_| coarse.1.is_some() && is_everywhere))
    }

    /// Along the direction, of all samples at one of the scales.
    fn in_the_mean(&self, scale: usize) -> (Slopes, Contradiction) {
        let rates = || self.direction.iter().map(|rates| &rates[scale]);
        let pairs: Vec<(f64, f64)> = rates().map(|rates| (rates.losses, rates.gradients)).collect();
        let size = rates().map(|rates| rates.size).sum::<f64>() / pairs.len().max(1) as f64;
        in_the_mean(&pairs, SCALES[scale], 8.0 * self.unit * size / SCALES[scale])
    }

    /// Whether the losses of most samples change, and at the same rate at both scales. The mean of losses that jump rests on jumps that few samples show.
    fn losses_are_smooth(&self) -> bool {
        let is_smooth = |rates: &&Vec<Rates>| {
            let [coarse, fine] = [rates[0].losses, rates[1].losses];
            fine != 0.0 && (coarse - fine).abs() <= 0.2 * coarse.abs()
        };
        4 * self.direction.iter().filter(is_smooth).count() >= 3 * self.direction.len()
    }

    /// The coordinates along which half of what changes does not agree.
    fn suspects(&self) -> Vec<usize> {
        let is_suspect = |rates: &Vec<Rates>| {
            let [moving, wrong] = self.counts(rates);
            wrong > 0 && 2 * wrong >= moving
        };
        (0..self.coordinates.len()).filter(|c| is_suspect(&self.coordinates[*c])).collect()
    }

    fn some_coordinate_agrees(&self) -> bool {
        self.coordinates.iter().any(|rates| {
            let [moving, wrong] = self.counts(rates);
            moving > 0 && wrong == 0
        })
    }

    fn counts(&self, rates: &[Rates]) -> [usize; 2] {
        let count = |of: &dyn Fn(&Rates) -> bool| rates.iter().filter(|rates| of(rates)).count();
        [count(&|rates| rates.moves(self.unit)), count(&|rates| rates.differs(self.unit))]
    }

    fn direction_is_suspect(&self) -> bool {
        let unit = self.unit;
        let moving = self.direction.iter().filter(|rates| rates[0].moves(unit)).count();
        let is_wrong = |rates: &&Vec<Rates>| rates[1].differs(unit) || rates[0].differs_as(&rates[1], unit);
        let wrong = self.direction.iter().filter(is_wrong).count();
        wrong > 1 && 2 * wrong >= moving
    }
}

/// The samples that confirm: the direction first, then the suspects, each sample at all scales.
struct Seen {
    /// The coordinates of the suspects.
    indices: Vec<usize>,
    rates: Vec<Vec<Vec<Rates>>>,
    unit: f64,
}

impl Seen {
    /// Whether the rates of a sample differ at two neighbouring scales and agree at none below them. At both the difference must be the same, or the
    /// losses straight: then it is the gradients that are not.
    fn is_wrong(&self, rates: &[Rates]) -> bool {
        let unit = self.unit;
        let is_alike = |k: usize| {
            let (here, finer) = (&rates[k], &rates[k + 1]);
            let resolved = finer.rounding(unit) < 0.1 * here.difference().abs();
            here.differs_as(finer, unit) && (k == 0 || resolved) || here.is_straight(finer, unit)
        };
        (0..rates.len() - 1).any(|k| is_alike(k) && !rates[k + 1..].iter().any(|r| r.heals(&rates[k], unit)))
    }

    /// In how many samples a line is wrong, if it is in half of those that change along it and in three at least.
    fn wrong(&self, line: usize) -> Option<u64> {
        let samples = &self.rates[line];
        let moving = samples.iter().filter(|rates| rates.iter().any(|r| r.moves(self.unit))).count();
        let wrong = samples.iter().filter(|rates| self.is_wrong(rates)).count();
        (wrong >= 3 && 2 * wrong >= moving).then_some(wrong as u64)
    }

    fn all(&self) -> impl Iterator<Item = &Rates> {
        self.rates.iter().flatten().flatten()
    }

    /// The mean rates along a line at a scale at which most functions are straight.
    fn means(&self, line: usize) -> [f64; 2] {
        let samples = &self.rates[line];
        let mean = |of: &dyn Fn(&Rates) -> f64| {
            samples.iter().map(|rates| of(&rates[1])).sum::<f64>() / samples.len().max(1) as f64
        };
        [mean(&|rates| rates.losses), mean(&|rates| rates.gradients)]
    }

    /// Whether the losses change along suspect `a` as the coordinate of suspect `b` says.
    fn is_other(&self, a: usize, b: usize) -> bool {
        let samples = &self.rates[a + 1];
        let agrees = |rates: &&Vec<Rates>| !rates[1].differs_from(rates[1].watched[b], self.unit);
        10 * samples.iter().filter(agrees).count() >= 9 * samples.len()
    }

    /// What is wrong, in the simplest words that fit.
    fn slips(&self, some_agree: bool, loss: impl Fn(Option<u64>) -> Slip) -> Vec<Slip> {
        let samples = self.rates[0].len() as u64;
        let along = self.wrong(0);
        if along.is_some() && self.all().all(|rates| rates.losses == 0.0) {
            return vec![Slip::ConstantLoss { samples }];
        }
        let accused: Vec<(usize, u64)> =
            (0..self.indices.len()).filter_map(|i| Some((i, self.wrong(i + 1)?))).collect();
        let is_forgotten = |i: usize| self.rates[i + 1].iter().flatten().all(|rates| rates.is_zero);
        let partner = |i: usize| {
            let is_swapped = |j: &usize| *j != i && self.is_other(i, *j) && self.is_other(*j, i);
            accused.iter().map(|(j, _)| *j).filter(|j| !is_forgotten(*j)).find(is_swapped)
        };
        let (mut named, mut others) = (Vec::new(), Vec::new());
        for &(i, disagreeing) in &accused {
            let (coordinate, [losses, gradients]) = (self.indices[i], self.means(i + 1));
            if is_forgotten(i) {
                named.push(Slip::Forgotten { coordinate, losses, samples });
            } else if let Some(j) = partner(i) {
                if i < j {
                    named.push(Slip::Swapped { first: coordinate, second: self.indices[j], samples });
                }
            } else {
                others.push(Slip::Coordinate { coordinate, losses, gradients, disagreeing, samples });
            }
        }
        // Where nothing agrees it is the loss as a whole, and not some of the coordinates.
        if named.is_empty() && (others.is_empty() || !some_agree) {
            let disagreeing = along.or_else(|| accused.first().map(|(_, wrong)| *wrong));
            return disagreeing.map(|wrong| loss(Some(wrong))).into_iter().collect();
        }
        named.extend(others);
        named.truncate(3);
        named
    }
}

/// The mean difference of the two rates of each sample must be within this many of its standard errors. Student's law with 15, 7 or 3 degrees of
/// freedom goes beyond with probability 10^-6.
fn errors(samples: usize) -> f64 {
    match samples {
        16.. => 8.0,
        8..16 => 15.0,
        _ => 110.0,
    }
}

/// `None` where nothing speaks against the losses; the factor where each sample is off by the same one.
type Contradiction = Option<Option<f64>>;

/// Whether rates of losses and of gradients contradict each other in the mean, or by a factor.
fn in_the_mean(pairs: &[(f64, f64)], h: f64, rounding: f64) -> (Slopes, Contradiction) {
    let n = pairs.len() as f64;
    let mean = |of: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / n;
    let (losses, gradients) = (mean(&|p| p.0), mean(&|p| p.1));
    let difference = mean(&|p| p.0 - p.1);
    let variance = mean(&|p| (p.0 - p.1 - difference).powi(2)) * n / (n - 1.0);
    let sizes = mean(&|p| p.0.abs() + p.1.abs());
    // Curvature of the third order, and the rounding of losses.
    let allowed = (10.0 * h * h + 1e-6) * sizes + rounding;
    let error = errors(pairs.len()) * (variance / n).sqrt() + allowed;
    // Rates of the same samples that are proportional, but not equal, say it with far fewer samples than their means.
    let (square, product) = (mean(&|p| p.0 * p.0), mean(&|p| p.0 * p.1));
    let factor = product / square;
    let residual = mean(&|p| (p.1 - factor * p.0).powi(2)).sqrt();
    let is_proportional = square > 0.0 && residual <= 1e-3 * sizes + allowed && (factor - 1.0).abs() > 1e-2;
    let off = is_proportional && (factor - 1.0).abs() * square.sqrt() > 4.0 * allowed;
    let contradiction = match (off, difference.abs() > error) {
        (true, _) => Some(Some(factor)),
        (false, true) => Some(None),
        (false, false) => None,
    };
    (Slopes { losses, gradients, difference, error }, contradiction)
}

/// A random direction in which each coordinate moves by about its own size, so that none leaves its domain.
pub(super) fn direction(seed: u64, role: Role, number: u64, x: &[f64]) -> Vec<f64> {
    let mut xi = Address { seed, role, step: number, sample: Address::WHOLE_BATCH - 1 }.stream();
    let usual = usual_size(x);
    x.iter().map(|&x| size_of(x, usual) * xi.normal()).collect()
}

/// The size of a coordinate that is zero.
fn usual_size(x: &[f64]) -> f64 {
    let mean = x.iter().map(|x| x.abs()).sum::<f64>() / x.len().max(1) as f64;
    if mean > 0.0 && mean.is_finite() { mean } else { 1.0 }
}

fn size_of(x: f64, usual: f64) -> f64 {
    if x == 0.0 { usual } else { x.abs() }
}
