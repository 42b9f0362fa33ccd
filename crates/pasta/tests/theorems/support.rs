//! Runs over seeds and their means.

use pasta_opt::objective::Measure;
use pasta_opt::prelude::*;
use rayon::prelude::*;
use std::sync::Arc;

/// The one-sided level of every comparison with a bound.
const LEVEL: f64 = 0.001;

/// A mean with its standard error.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mean {
    pub(crate) value: f64,
    pub(crate) error: f64,
    /// Values less one: the degrees of freedom of Student's law.
    freedom: u32,
}

impl Mean {
    pub(crate) fn of(values: &[f64]) -> Self {
        assert!(values.len() > 1, "one value has no standard error");
        let n = values.len() as f64;
        let value = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|v| (v - value).powi(2)).sum::<f64>() / (n - 1.0);
        Self { value, error: (variance / n).sqrt(), freedom: values.len() as u32 - 1 }
    }

    /// How far the true mean may be from the measured one, to one side.
    fn half_width(self) -> f64 {
        student_quantile(self.freedom, LEVEL) * self.error
    }

    /// The true mean is below the bound, at level .001.
    pub(crate) fn is_below(self, bound: f64) -> bool {
        self.value + self.half_width() <= bound
    }

    /// The true mean is above the bound, at level .001. An infinite mean is.
    pub(crate) fn is_above(self, bound: f64) -> bool {
        self.value == f64::INFINITY || self.value - self.half_width() > bound
    }
}

/// The point that Student's law exceeds with probability `level`, for a level below 1/2.
fn student_quantile(freedom: u32, level: f64) -> f64 {
    // The tail falls as the angle grows from 0 to a right angle; 60 halvings exhaust a double.
    let (mut low, mut high) = (0.0, std::f64::consts::FRAC_PI_2);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if student_tail(freedom, middle) > level { low = middle } else { high = middle }
    }
    f64::from(freedom).sqrt() * high.tan()
}

/// The probability that Student's law exceeds sqrt(freedom) tan(angle): for whole degrees of freedom the integral of
/// cos^(freedom - 1) is a finite sum, by parts.
fn student_tail(freedom: u32, angle: f64) -> f64 {
    let (sin, cos) = angle.sin_cos();
    let odd = freedom % 2 == 1;
    let (mut term, mut sum) = (if odd { cos } else { 1.0 }, 0.0);
    let first = u32::from(odd);
    for power in (first..freedom.saturating_sub(1)).step_by(2) {
        sum += term;
        term *= cos * cos * f64::from(power + 1) / f64::from(power + 2);
    }
    let inside = if odd { (angle + sin * sum) / std::f64::consts::FRAC_PI_2 } else { sin * sum };
    0.5 * (1.0 - inside)
}

#[test]
fn students_quantile_is_that_of_the_tables() {
    let table = [
        (1, 0.001, 318.309),
        (2, 0.001, 22.327),
        (3, 0.001, 10.215),
        (4, 0.001, 7.173),
        (11, 0.001, 4.025),
        (15, 0.001, 3.733),
        (30, 0.001, 3.385),
        (60, 0.001, 3.232),
        (120, 0.001, 3.160),
        (1, 0.05, 6.314),
        (2, 0.025, 4.303),
        (5, 0.05, 2.015),
        (10, 0.01, 2.764),
    ];
    for (freedom, level, value) in table {
        let quantile = student_quantile(freedom, level);
        assert!((quantile - value).abs() < 6e-4, "{freedom} degrees, {level}: {quantile}, not {value}");
    }
}

#[test]
fn two_values_say_little_and_sixteen_say_more() {
    // The normal quantile, 3.09, would accept both.
    let mean = |n: usize| Mean::of(&(0..n).map(|i| if i % 2 == 0 { 0.9 } else { 1.1 }).collect::<Vec<_>>());
    let (two, sixteen) = (mean(2), mean(16));
    assert!(two.value + 3.09 * two.error < 1.4 && !two.is_below(1.4));
    assert!(sixteen.is_below(1.4) && !sixteen.is_below(1.05));
    assert!(!two.is_above(0.6) && sixteen.is_above(0.6));
    // A run that diverged.
    assert!(!Mean::of(&[1.0, f64::INFINITY]).is_below(f64::MAX));
}

/// What many runs of one schedule did.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outcome {
    /// The promised measure.
    pub(crate) measure: Mean,
    /// Samples drawn.
    pub(crate) samples: Mean,
}

/// Gaussian BG-0 noise around an objective.
pub(crate) fn noisy(
    objective: impl Objective + 'static,
    growth: f64,
    floor: f64,
    start: &[f64],
) -> Arc<Noisy> {
    let noise = Noise { growth, floor, tail: Tail::Gaussian };
    Arc::new(Noisy::new(Box::new(objective), noise, start.to_vec()).unwrap())
}

/// Runs a schedule over the seeds 1..=seeds and measures what its output rule promises.
pub(crate) fn outcome(oracle: &Arc<Noisy>, schedule: &Schedule, measure: Measure, seeds: u64) -> Outcome {
    let runs: Vec<_> = (1..=seeds).into_par_iter().map(|seed| one(oracle, schedule, measure, seed)).collect();
    let (measures, samples): (Vec<_>, Vec<_>) = runs.into_iter().unzip();
    Outcome { measure: Mean::of(&measures), samples: Mean::of(&samples) }
}

/// The measure of one run: over the points that a random output is drawn from, their mean. A run that diverges
/// has an infinite measure.
fn one(oracle: &Arc<Noisy>, schedule: &Schedule, measure: Measure, seed: u64) -> (f64, f64) {
    let at = |x: &[f64]| measure.at(oracle.objective(), x).unwrap();
    let mut gate = Gate::over(oracle.clone(), seed);
    let mut run = Pasta::start(&gate, schedule.clone(), oracle.start()).unwrap();
    let (mut total, mut points) = (0.0, 0.0);
    let stop = loop {
        let state = run.state();
        let candidate = match schedule.output {
            Output::Uniform => true,
            Output::RandomAnchor => state.t == 0,
            Output::Last | Output::Average => false,
        };
        let here = if candidate { at(&state.x) } else { 0.0 };
        match run.advance(&mut gate).unwrap() {
            Advance::Step(_) if candidate => {
                total += here;
                points += 1.0;
            }
            Advance::Stop(stop) => break stop,
            _ => {}
        }
    };
    let measured = match (stop, schedule.output) {
        (Stop::Diverged(_), _) => f64::INFINITY,
        (_, Output::Uniform | Output::RandomAnchor) => total / points,
        (_, Output::Last | Output::Average) => at(run.state().output()),
    };
    (measured, gate.ledger().samples() as f64)
}

/// The promise and the cost bound of a plan hold on this oracle.
pub(crate) fn assert_promise(oracle: &Arc<Noisy>, plan: &Plan, seeds: u64) -> Outcome {
    let outcome = outcome(oracle, &plan.schedule, plan.guarantee.measure, seeds);
    assert!(outcome.measure.is_below(plan.guarantee.bound), "{outcome:?} breaks {:?}", plan.guarantee);
    match plan.cost.exact {
        Some(exact) => assert_eq!(outcome.samples.value, exact as f64),
        None => assert!(outcome.samples.is_below(plan.cost.samples), "{outcome:?} breaks {:?}", plan.cost),
    }
    outcome
}

/// The promise of a plan is broken on this oracle: for oracles noisier than the plan was told.
pub(crate) fn assert_broken(oracle: &Arc<Noisy>, plan: &Plan, seeds: u64) {
    let outcome = outcome(oracle, &plan.schedule, plan.guarantee.measure, seeds);
    assert!(outcome.measure.is_above(plan.guarantee.bound), "{outcome:?} keeps {:?}", plan.guarantee);
}

/// A way to break a schedule that the theorem's hypotheses forbid.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Mutation {
    /// Steps five times as long, as many of them.
    LongSteps,
    /// A tenth of the samples in each batch, rounded up.
    SmallBatches,
}

impl Mutation {
    pub(crate) fn of(self, schedule: &Schedule) -> Schedule {
        let mut schedule = schedule.clone();
        match self {
            Self::LongSteps => {
                let Sequence::Constant(eta) = schedule.eta else {
                    panic!("the theorems' steps are constant")
                };
                schedule.eta = Sequence::Constant(5.0 * eta);
            }
            Self::SmallBatches => {
                [schedule.first, schedule.large] = [schedule.first, schedule.large].map(tenth);
                if let Estimator::Page { small, .. } = &mut schedule.estimator {
                    *small = small.div_ceil(10);
                }
            }
        }
        schedule
    }

    fn name(self) -> &'static str {
        match self {
            Self::LongSteps => "5 η",
            Self::SmallBatches => "N/10",
        }
    }
}

fn tenth(rule: BatchRule) -> BatchRule {
    match rule {
        BatchRule::Fixed(n) => BatchRule::Fixed(n.div_ceil(10)),
        BatchRule::Drift { growth, floor, target_variance, at_least } => BatchRule::Drift {
            growth,
            floor,
            target_variance: 10.0 * target_variance,
            at_least: at_least.div_ceil(10),
        },
    }
}

/// The promise holds, comes as near to its bound as docs/theorems.md says, and the mutated schedules break it: what
/// shows that the test would notice a wrong schedule.
pub(crate) fn assert_sharp(oracle: &Arc<Noisy>, plan: &Plan, seeds: u64, mutations: &[Mutation]) {
    let kept = assert_promise(oracle, plan, seeds).measure;
    let bound = plan.guarantee.bound;
    for mutation in mutations {
        let broken = outcome(oracle, &mutation.of(&plan.schedule), plan.guarantee.measure, seeds).measure;
        assert!(broken.is_above(bound), "{}: {mutation:?} is not seen: {broken:?}, {bound}", plan.recipe);
    }
    assert_documented(plan.recipe, kept.value / bound, mutations);
}

/// The page's table of sharpness has this row.
pub(crate) fn assert_documented(recipe: &str, ratio: f64, mutations: &[Mutation]) {
    let page = include_str!("../../../../docs/theorems.md");
    let names: Vec<_> = mutations.iter().map(|mutation| mutation.name()).collect();
    let end = format!("| {ratio:.2} | {} |", names.join(", "));
    let row = page.lines().find(|line| line.starts_with("| on ") && line.contains(&format!("`{recipe}`")));
    let row = row.unwrap_or_else(|| panic!("docs/theorems.md has no row for {recipe}: {end}"));
    assert!(row.ends_with(&end), "docs/theorems.md: {row} should end with {end}");
}

/// How the predicted cost grows when the target is halved, as a power of two.
pub(crate) fn cost_exponent(plan: impl Fn(f64) -> Plan, target: f64) -> f64 {
    (plan(target / 2.0).cost.samples / plan(target).cost.samples).log2()
}
