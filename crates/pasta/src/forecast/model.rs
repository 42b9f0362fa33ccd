//! The model: a run costs what its way takes or what its noise takes, whichever is more, times a factor by which runs scatter.
//!
//! At a target eps = e^-u a run costs e^z max(e^c N(u), n(u) e^(a + s (u - u_0))). N is what a certificate needs against the noise, n the samples
//! of a step; both are known where the pilot was and continued from there. Not known are the number of steps, a, and how it grows, s; how
//! far N is off, c; and the standard deviation of z. Each has a prior, and all of them together are a grid, so that the posterior is a sum.
//!
//! z is skewed: a run whose first certificate fails draws half as much again before it tries the next.

use super::{Forecast, Pilot, PilotRun, QUANTILES, Rules, Silence, WIDEST, unclaimed};

/// s: steps grow like this power of 1/eps. A quadratic has logarithms, a flat minimum powers.
const GROWTHS: usize = 31;
const MOST_GROWTH: f64 = 3.0;
const GROWTH: (f64, f64) = (0.3, 0.5);
/// What may be different beyond the pilot.
struct Doubt {
    /// s may be another: the standard deviation of the change.
    change: f64,
    /// So may the noise, the more the farther it is (in u): the standard deviation of log N.
    drift: f64,
    /// z scatters by this at least.
    scatter: f64,
    /// Fewer runs than this make no forecast.
    runs: usize,
}
/// A pilot has runs of its own, from the start to several targets.
const OF_A_PILOT: Doubt = Doubt { change: 0.4, drift: 0.0, scatter: 0.0, runs: 1 };
/// A run that is its own pilot is one way, seen a few times: its ladder scatters less than runs do, and begins farther from the target.
const OF_ITSELF: Doubt = Doubt { change: 1.0, drift: 0.3, scatter: 0.6, runs: 2 };
const CHANGES: [f64; 5] = [-1.4, -0.7, 0.0, 0.7, 1.4];
/// The standard deviation of z, and the weight of each before anything is known.
const SCATTERS: [(f64, f64); 5] = [(0.2, 1.0), (0.35, 2.0), (0.6, 2.0), (0.9, 1.0), (1.4, 0.5)];
/// A run whose largest step has this share of its samples moves in rounds: one round more or less is a factor, which a pilot of a few runs
/// does not show. So the scatter is at least this.
const ROUND: f64 = 0.15;
const LEAST_OF_ROUNDS: f64 = 0.6;
/// So many runs do not succeed with their first certificate; they take longer by e^1 or so, give or take as much again.
const LATE: f64 = 0.35;
const LATER: f64 = 0.92;
const LATER_SPREAD: f64 = 0.6;
/// c, in units of its standard deviation.
const OFFSETS: [f64; 5] = [-1.4, -0.7, 0.0, 0.7, 1.4];
const OFFSET: (f64, f64) = (0.0, 0.25);
/// a goes from this far below the cheapest run to this far above the dearest.
const BELOW: f64 = 6.0;
const ABOVE: f64 = 3.0;
const LEVELS: usize = 61;
/// Beyond the pilot the variance goes on changing for this long (in u), at half its rate.
const DRIFT: f64 = 1.0;
/// How often the samples of a step are taken for constant, or for proportional to V/eps^2: up to this slope.
const NEARLY: f64 = 0.35;
/// Runs that show how n and V change.
const RECENT: usize = 4;
/// The way rules where it takes this many times what the noise takes.
const RULING: f64 = 2.0;
/// Runs that scatter by more than this factor (its logarithm) follow no law.
const LAWLESS: f64 = 0.8;

/// A run of the pilot as the model sees it.
struct Seen {
    u: f64,
    /// log of the samples.
    samples: f64,
    certified: bool,
    /// log N at its target, by the pilot's own basis.
    noise: f64,
    /// log of the samples of a step.
    step: f64,
}

/// n and V beyond the pilot.
struct Continued {
    u: f64,
    /// log n there.
    step: f64,
    step_slope: f64,
    tracks: bool,
    /// log V there.
    variance: f64,
    variance_slope: f64,
}

impl Continued {
    fn of(runs: &[&PilotRun]) -> Option<Self> {
        let finest = runs.last()?;
        let recent = &runs[runs.len().saturating_sub(RECENT)..];
        let slope = |value: &dyn Fn(&PilotRun) -> f64| {
            slope(&recent.iter().map(|run| (-run.target.ln(), value(run))).collect::<Vec<_>>())
        };
        let (step_slope, variance_slope) = (slope(&log_step), slope(&log_variance));
        let tracks = recent.len() > 1 && (step_slope - variance_slope - 2.0).abs() < NEARLY;
        let step_slope = if step_slope.abs() < NEARLY { 0.0 } else { step_slope.clamp(-1.0, 4.0) };
        let (step, variance) = (log_step(finest), log_variance(finest));
        Some(Self { u: -finest.target.ln(), step, step_slope, tracks, variance, variance_slope })
    }

    fn variance(&self, u: f64) -> f64 {
        let beyond = (u - self.u).clamp(0.0, DRIFT);
        self.variance + 0.5 * self.variance_slope.clamp(-2.0, 2.0) * beyond
    }

    fn step(&self, u: f64) -> f64 {
        let beyond = u - self.u;
        if self.tracks {
            self.step + self.variance(u) - self.variance + 2.0 * beyond
        } else {
            self.step + self.step_slope * beyond
        }
    }
}

fn log_step(run: &PilotRun) -> f64 {
    (run.step_samples.max(1) as f64 / run.steps.max(1) as f64).ln()
}

fn log_variance(run: &PilotRun) -> f64 {
    run.variance.max(1e-300).ln()
}

/// Of the straight line by least squares.
fn slope(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let mean = |part: fn(&(f64, f64)) -> f64| points.iter().map(part).sum::<f64>() / n;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let spread: f64 = points.iter().map(|p| (p.0 - x).powi(2)).sum();
    let joint: f64 = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
    if spread > 0.0 { joint / spread } else { 0.0 }
}

pub(super) fn forecast(pilot: &Pilot, target: f64) -> Result<Forecast, Silence> {
    if pilot.recursive {
        return Err(Silence::Recursive);
    }
    let certified: Vec<&PilotRun> = pilot.runs.iter().filter(|run| run.certified).collect();
    let samples = pilot.samples;
    let nothing =
        if pilot.own { Silence::TooEarly { samples } } else { Silence::NothingCertified { samples } };
    let (Some(continued), Some(finest)) = (Continued::of(&certified), certified.last()) else {
        return Err(nothing);
    };
    let doubt = if pilot.own { OF_ITSELF } else { OF_A_PILOT };
    if certified.len() < doubt.runs {
        return Err(nothing);
    }
    let own = unclaimed(pilot.rule.basis);
    let seen: Vec<Seen> = pilot
        .runs
        .iter()
        .map(|run| {
            // A run that was cut off says nothing about n and V at its end.
            let u = -run.target.ln();
            let (step, variance) = if run.certified {
                (log_step(run), run.variance)
            } else {
                (continued.step(u), continued.variance(u).exp())
            };
            let noise = pilot.noise(own, run.target, variance).ln();
            let samples = (run.samples.max(1) as f64).ln();
            Seen { u, samples, certified: run.certified, noise, step }
        })
        .collect();
    let u = -target.ln();
    let there = There {
        noise: pilot.noise(pilot.rule.basis, target, continued.variance(u).exp()).ln(),
        step: continued.step(u),
        beyond: (u - continued.u).max(0.0),
        u,
    };
    let at_finest = pilot.noise(own, finest.target, finest.variance);
    let beyond_noise = (finest.samples as f64 - at_finest).max(0.0) as u64;
    let rules = if finest.samples as f64 > RULING * at_finest {
        Rules::Way { beyond_noise, of: u64::try_from(finest.samples).unwrap_or(u64::MAX) }
    } else {
        Rules::Noise
    };
    let in_rounds = finest.largest_step as f64 >= ROUND * finest.step_samples as f64;
    let least = if in_rounds { LEAST_OF_ROUNDS } else { doubt.scatter };
    let posterior = Posterior::of(&seen, continued.u, &there, least, &doubt);
    let quantiles = posterior.quantiles();
    let forecast = Forecast::from_quantiles(quantiles, rules);
    let Forecast { low, high, .. } = forecast;
    if high <= WIDEST * low {
        return Ok(forecast);
    }
    let scatter = posterior.scatter();
    let times = finest.target / target;
    if scatter > LAWLESS || times < 1.5 {
        return Err(Silence::Scattered { factor: scatter.exp(), low, high });
    }
    Err(Silence::TooFar { times, finest: finest.target, low, high, rules })
}

/// What is known about the run that is forecast.
struct There {
    u: f64,
    noise: f64,
    step: f64,
    /// How far beyond the pilot.
    beyond: f64,
}

/// Costs of the run (their logarithms) with their weights, for each standard deviation of z.
struct Posterior {
    parts: Vec<(f64, Vec<f64>)>,
    first: f64,
}

/// The width of the cells in which costs are counted.
const CELL: f64 = 0.05;

impl Posterior {
    fn of(seen: &[Seen], u_0: f64, there: &There, least_scatter: f64, doubt: &Doubt) -> Self {
        let scatters = || SCATTERS.into_iter().filter(|(scatter, _)| *scatter >= least_scatter);
        // Costs in steps, to place the grid of a.
        let steps = seen.iter().map(|run| run.samples - run.step);
        let (low, high) = steps.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(x), h.max(x)));
        let (low, high) = (low - BELOW, high + ABOVE);
        let levels: Vec<f64> =
            (0..LEVELS).map(|i| low + (high - low) * i as f64 / (LEVELS - 1) as f64).collect();
        let growths: Vec<f64> = (0..GROWTHS).map(|i| MOST_GROWTH * i as f64 / (GROWTHS - 1) as f64).collect();
        let mut cells: Vec<(f64, Vec<(f64, f64)>)> =
            scatters().map(|(scatter, _)| (scatter, Vec::new())).collect();
        let mut largest = f64::NEG_INFINITY;
        for &level in &levels {
            for &growth in &growths {
                let way = |run: &Seen| run.step + level + growth * (run.u - u_0);
                for offset in OFFSETS {
                    let c = OFFSET.0 + OFFSET.1 * offset;
                    let errors: Vec<(f64, bool)> = seen
                        .iter()
                        .map(|run| (run.samples - way(run).max(run.noise + c), run.certified))
                        .collect();
                    for ((scatter, costs), (_, weight)) in cells.iter_mut().zip(scatters()) {
                        let prior = weight.ln()
                            - 0.5 * ((growth - GROWTH.0) / GROWTH.1).powi(2)
                            - 0.5 * offset * offset;
                        let evidence: f64 =
                            errors.iter().map(|(e, whole)| log_density(*e, *scatter, *whole)).sum();
                        let log = prior + evidence;
                        largest = largest.max(log);
                        for change in CHANGES {
                            let later = (growth + doubt.change * change).max(0.0);
                            let growing = growth * (there.u - there.beyond - u_0) + later * there.beyond;
                            let cost = (there.step + level + growing)
                                .max(there.noise + c + doubt.drift * there.beyond * change);
                            costs.push((cost, log - 0.5 * change * change));
                        }
                    }
                }
            }
        }
        let all = cells.iter().flat_map(|(_, costs)| costs).filter(|(_, log)| *log > largest - 30.0);
        let (first, last) =
            all.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), (cost, _)| (l.min(*cost), h.max(*cost)));
        let count = (((last - first) / CELL).ceil() as usize).min(20_000) + 1;
        let parts = cells
            .into_iter()
            .map(|(scatter, costs)| {
                let mut weights = vec![0.0; count];
                for (cost, log) in costs.into_iter().filter(|(_, log)| *log > largest - 30.0) {
                    weights[(((cost - first) / CELL).round() as usize).min(count - 1)] +=
                        (log - largest).exp();
                }
                (scatter, weights)
            })
            .collect();
        Self { parts, first }
    }

    /// The part of runs whose cost has at most this logarithm.
    fn below(&self, cost: f64) -> f64 {
        let (mut below, mut all) = (0.0, 0.0);
        for (scatter, weights) in &self.parts {
            for (i, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
                below += weight * below_in_law(cost - self.first - CELL * i as f64, *scatter);
                all += weight;
            }
        }
        below / all
    }

    fn quantiles(&self) -> [f64; QUANTILES] {
        let cells = self.parts.first().map_or(0, |(_, weights)| weights.len());
        let widest = SCATTERS.iter().fold(0.0, |most: f64, (scatter, _)| most.max(*scatter));
        let (low, high) = (self.first - 4.0 * widest, self.first + CELL * cells as f64 + 4.0 * widest);
        let at = |part: f64| {
            let (mut low, mut high) = (low, high);
            while high - low > 1e-3 {
                let middle = 0.5 * (low + high);
                if self.below(middle) < part { low = middle } else { high = middle }
            }
            high.exp()
        };
        std::array::from_fn(|i| at(part_of(i)))
    }

    /// The typical standard deviation of z.
    fn scatter(&self) -> f64 {
        let weight = |weights: &[f64]| weights.iter().sum::<f64>();
        let all: f64 = self.parts.iter().map(|(_, weights)| weight(weights)).sum();
        self.parts.iter().map(|(scatter, weights)| scatter * weight(weights)).sum::<f64>() / all
    }
}

/// The logarithm of the density of z, or for a run that was cut off, of the probability of more.
fn log_density(error: f64, scatter: f64, whole: bool) -> f64 {
    if whole {
        let normal = |error: f64, scatter: f64| (-0.5 * (error / scatter).powi(2)).exp() / scatter;
        let late = normal(error - LATER, scatter.hypot(LATER_SPREAD));
        ((1.0 - LATE) * normal(error, scatter) + LATE * late).max(1e-300).ln()
    } else {
        (1.0 - below_in_law(error, scatter)).max(1e-12).ln()
    }
}

/// The probability that z is at most this.
fn below_in_law(error: f64, scatter: f64) -> f64 {
    let late = normal_below((error - LATER) / scatter.hypot(LATER_SPREAD));
    (1.0 - LATE) * normal_below(error / scatter) + LATE * late
}

fn normal_below(z: f64) -> f64 {
    0.5 * libm::erfc(-z * std::f64::consts::FRAC_1_SQRT_2)
}

/// The part of runs below the quantile i.
pub(super) fn part_of(i: usize) -> f64 {
    (i + 1) as f64 / (QUANTILES + 1) as f64
}

/// z with a normal variable below it with this probability.
fn normal_quantile(part: f64) -> f64 {
    let (mut low, mut high) = (-8.0, 8.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if normal_below(middle) < part { low = middle } else { high = middle }
    }
    high
}

/// Between and beyond the quantiles costs are those of a lognormal law.
pub(super) fn quantile(quantiles: &[f64; QUANTILES], part: f64) -> f64 {
    let z = normal_quantile(part.clamp(1e-12, 1.0 - 1e-12));
    let i = (0..QUANTILES).take_while(|i| part_of(*i) < part).count().clamp(1, QUANTILES - 1);
    let [z0, z1] = [i - 1, i].map(|i| normal_quantile(part_of(i)));
    let [q0, q1] = [i - 1, i].map(|i| quantiles[i].ln());
    (q0 + (q1 - q0).max(1e-3) * (z - z0) / (z1 - z0)).exp()
}

/// The part of runs that cost less.
pub(super) fn part_below(quantiles: &[f64; QUANTILES], samples: f64) -> f64 {
    let i = quantiles.iter().take_while(|q| **q < samples).count().clamp(1, QUANTILES - 1);
    let [z0, z1] = [i - 1, i].map(|i| normal_quantile(part_of(i)));
    let [q0, q1] = [i - 1, i].map(|i| quantiles[i].ln());
    normal_below(z0 + (z1 - z0) * (samples.ln() - q0) / (q1 - q0).max(1e-3))
}
