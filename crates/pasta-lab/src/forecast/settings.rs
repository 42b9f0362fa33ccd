//! The settings on which forecasts are tried: a function, its noise, a method, a target. One row each.

use std::sync::Arc;

use pasta_opt::gate::Gate;
use pasta_opt::method::{Engine, Values, find};
use pasta_opt::objective::{Facts, Objective};
use pasta_opt::oracle::{Noise, Noisy, Oracle, Tail};
use pasta_opt::prelude::{Basis, Walk};
use pasta_opt::problems::{Clover, Huber, Quadratic, Ramp, SineBowl, SoftAbsolute};
use pasta_opt::recipe::{self, Constant, Constants};
use pasta_report::console::Failure;

use crate::leaderboard::problems::PROBLEMS;

/// A row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting {
    pub(super) name: &'static str,
    pub(super) set: Set,
    place: Subject,
    method: Method,
    /// |grad f| that is to be certified.
    pub(super) target: f64,
}

/// Who may look at a setting, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Set {
    /// The model of the forecast was chosen on these.
    Development,
    /// Fixed before any of them was run, and run once after the model was frozen.
    KeptBack,
}

/// What is minimised.
#[derive(Debug, Clone, Copy)]
enum Subject {
    /// A function with noise that is declared.
    Formula { objective: fn() -> Box<dyn Objective>, start: &'static [f64], noise: Noise },
    /// A stream of the race of methods, whose kurtosis is assumed.
    Stream { name: &'static str, kurtosis: f64 },
}

/// How.
#[derive(Debug, Clone, Copy)]
enum Method {
    /// A recipe that aims at the gradient, with the constants that are proved.
    Gradient(&'static str),
    /// A recipe that aims at this gap of values: the same run for every target of the gradient.
    Gap(&'static str, f64),
    /// Any other, with settings and a batch.
    Other(&'static str, &'static [(&'static str, f64)], u64),
    Auto,
}

use Method::{Auto, Gap, Gradient, Other};

/// Something that can be run.
pub(super) struct Ready {
    pub(super) oracle: Arc<dyn Oracle>,
    pub(super) start: Vec<f64>,
    pub(super) basis: Basis,
    pub(super) method: &'static str,
    /// The constants of a function whose formula is known.
    constants: Option<(Constants, Facts)>,
}

impl Setting {
    pub(super) fn ready(&self) -> Result<Ready, Failure> {
        let method = match self.method {
            Gradient(name) | Gap(name, _) | Other(name, ..) => name,
            Auto => "auto",
        };
        match self.place {
            Subject::Formula { objective, start, noise } => {
                let oracle = Noisy::new(objective(), noise, start.to_vec()).map_err(Failure::system)?;
                let constants = Constants::of(oracle.objective(), &noise, start);
                let facts = oracle.objective().facts();
                let Noise { growth, floor, .. } = noise;
                Ok(Ready {
                    oracle: Arc::new(oracle),
                    start: start.to_vec(),
                    basis: Basis::Growth { growth, floor, distance: 0.0 },
                    method,
                    constants: Some((constants, facts)),
                })
            }
            Subject::Stream { name, kurtosis } => {
                let problem = PROBLEMS.iter().find(|problem| problem.name == name);
                let problem = problem.ok_or_else(|| Failure::system(format!("no problem {name}")))?;
                let instance = problem.instance();
                Ok(Ready {
                    oracle: instance.oracle,
                    start: instance.start,
                    basis: Basis::Kurtosis(kurtosis),
                    method,
                    constants: None,
                })
            }
        }
    }

    /// The method for a target of the gradient, without an end.
    pub(super) fn walk(&self, ready: &Ready, gate: &Gate, target: f64) -> Result<Box<dyn Walk>, Failure> {
        let planned = |name: &str, target: f64| {
            let row = recipe::find(name).ok_or_else(|| Failure::system(format!("no recipe {name}")))?;
            let Some((mut constants, facts)) = ready.constants else {
                return Err(Failure::system("a recipe needs constants"));
            };
            if let Some(mu) = (row.mu)(&facts) {
                constants.set(Constant::Mu, mu);
            }
            constants.set(Constant::Target, target);
            let plan = row.plan(&row.relevant(&constants)).map_err(Failure::system)?;
            Ok(Engine::Schedule(plan.schedule).endless())
        };
        let engine = match self.method {
            Gradient(name) => planned(name, target)?,
            Gap(name, gap) => planned(name, gap)?,
            Other(name, settings, batch) => {
                let method = find(name).ok_or_else(|| Failure::system(format!("no method {name}")))?;
                let mut values = Values::default();
                settings.iter().for_each(|(name, value)| values.set(name, *value));
                method.engine(&values, 1 << 50, batch).map_err(Failure::system)?
            }
            Auto => Engine::Auto { target: Some(target) },
        };
        engine.start(gate, &ready.start).map_err(Failure::system)
    }
}

/// sum_i q(x_i), q(x) = x^4/4 up to |x| = 1 and a parabola of curvature 3 beyond: a flat minimum. L = 3.
#[derive(Debug)]
struct Quartic {
    dimension: usize,
}

impl Objective for Quartic {
    fn identity(&self) -> String {
        format!("quartic(dimension = {})", self.dimension)
    }

    fn dim(&self) -> usize {
        self.dimension
    }

    fn value(&self, x: &[f64]) -> f64 {
        let one = |x: &f64| match x.abs() {
            r if r <= 1.0 => r.powi(4) / 4.0,
            r => 0.25 + (r - 1.0) + 1.5 * (r - 1.0).powi(2),
        };
        x.iter().map(one).sum()
    }

    fn gradient(&self, x: &[f64], out: &mut [f64]) {
        let one = |x: f64| if x.abs() <= 1.0 { x.powi(3) } else { x.signum() * (3.0 * x.abs() - 2.0) };
        out.iter_mut().zip(x).for_each(|(out, x)| *out = one(*x));
    }

    fn infimum(&self) -> f64 {
        0.0
    }

    fn nearest_minimiser(&self, _x: &[f64], out: &mut [f64]) -> bool {
        out.fill(0.0);
        true
    }

    fn facts(&self) -> Facts {
        Facts { smoothness: Some(3.0), weak_convexity: Some(0.0), ..Facts::default() }
    }
}

const GAUSSIAN: Tail = Tail::Gaussian;
const T3: Tail = Tail::StudentT { dof: 3.0 };
const T4: Tail = Tail::StudentT { dof: 4.0 };
const LOGNORMAL: Tail = Tail::Lognormal { sigma: 1.0 };
const RARE: Tail = Tail::TwoPoint { probability: 0.02 };

const fn formula(
    objective: fn() -> Box<dyn Objective>,
    start: &'static [f64],
    growth: f64,
    floor: f64,
    tail: Tail,
) -> Subject {
    Subject::Formula { objective, start, noise: Noise { growth, floor, tail } }
}

const fn stream(name: &'static str, kurtosis: f64) -> Subject {
    Subject::Stream { name, kurtosis }
}

const fn seen(name: &'static str, place: Subject, method: Method, target: f64) -> Setting {
    Setting { name, set: Set::Development, place, method, target }
}

const fn kept(name: &'static str, place: Subject, method: Method, target: f64) -> Setting {
    Setting { name, set: Set::KeptBack, place, method, target }
}

fn bowl() -> Box<dyn Objective> {
    Box::new(SineBowl { dimension: 1 })
}

fn bowl_10() -> Box<dyn Objective> {
    Box::new(SineBowl { dimension: 10 })
}

fn steep() -> Box<dyn Objective> {
    Box::new(Quadratic { spectrum: vec![2.0, 0.5] })
}

fn ill() -> Box<dyn Objective> {
    Box::new(Quadratic { spectrum: vec![1.0, 0.1, 0.01] })
}

fn quartic() -> Box<dyn Objective> {
    Box::new(Quartic { dimension: 2 })
}

fn quartic_1() -> Box<dyn Objective> {
    Box::new(Quartic { dimension: 1 })
}

fn huber() -> Box<dyn Objective> {
    Box::new(Huber { dimension: 3, curvature: 1.0, lipschitz: 1.0 })
}

fn soft() -> Box<dyn Objective> {
    Box::new(SoftAbsolute { dimension: 5 })
}

fn clover() -> Box<dyn Objective> {
    Box::new(Clover { depth: 0.5 })
}

fn ramp() -> Box<dyn Objective> {
    Box::new(Ramp { slope: 0.5, reach: 2.0, curvature: 0.5 })
}

/// Every setting: those on which the model was chosen, then those that were kept back.
pub(super) const SETTINGS: &[Setting] = &[
    seen("smooth, sine bowl, B = 1", formula(bowl, &[1.2], 1.0, 1.0, GAUSSIAN), Gradient("smooth"), 0.01),
    seen("smooth, sine bowl, B = 9", formula(bowl, &[1.2], 9.0, 1.0, GAUSSIAN), Gradient("smooth"), 0.02),
    seen(
        "smooth, curvatures 1 to .01",
        formula(ill, &[1.0; 3], 1.0, 1.0, GAUSSIAN),
        Gradient("smooth"),
        0.01,
    ),
    seen(
        "smooth, flat minimum",
        formula(quartic, &[1.5, -1.0], 0.5, 1.0, GAUSSIAN),
        Gradient("smooth"),
        0.02,
    ),
    seen("smooth, Huber, t(3)", formula(huber, &[2.0; 3], 0.5, 1.0, T3), Gradient("smooth"), 0.03),
    seen(
        "smooth, clover, lognormal",
        formula(clover, &[1.0, 0.5], 2.0, 1.0, LOGNORMAL),
        Gradient("smooth"),
        0.05,
    ),
    seen("pl, quadratic", formula(steep, &[1.0, 1.0], 1.0, 1.0, GAUSSIAN), Gap("pl", 0.01), 0.05),
    seen("pl, sine bowl", formula(bowl, &[1.2], 0.5, 0.5, GAUSSIAN), Gap("pl", 0.05), 0.02),
    seen(
        "star-convex, clover",
        formula(clover, &[1.0, 0.5], 0.5, 1.0, GAUSSIAN),
        Gap("star-convex", 0.05),
        0.05,
    ),
    seen(
        "smooth-convex, quadratic",
        formula(steep, &[1.0, 1.0], 0.5, 1.0, GAUSSIAN),
        Gap("smooth-convex", 4e-4),
        0.02,
    ),
    seen(
        "sgd .01/L, quadratic, t(3)",
        formula(steep, &[1.0, 1.0], 0.5, 1.0, T3),
        Other("sgd", &[("eta", 0.005)], 1),
        0.03,
    ),
    seen(
        "sgd .001, quadratic, t(3)",
        formula(steep, &[1.0, 1.0], 0.5, 1.0, T3),
        Other("sgd", &[("eta", 0.001)], 1),
        0.1,
    ),
    seen(
        "sgd .3/L, sine bowl",
        formula(bowl, &[1.2], 1.0, 1.0, GAUSSIAN),
        Other("sgd", &[("eta", 0.1)], 1),
        0.02,
    ),
    seen(
        "sgd .3, curvatures 1 to .01",
        formula(ill, &[1.0, 3.0, 5.0], 0.0, 1.0, GAUSSIAN),
        Other("sgd", &[("eta", 0.3)], 1),
        0.01,
    ),
    seen(
        "sgd-decaying, flat minimum",
        formula(quartic, &[1.5, -1.0], 0.5, 1.0, GAUSSIAN),
        Other("sgd-decaying", &[("eta", 0.2)], 4),
        0.03,
    ),
    seen(
        "momentum, Huber, lognormal",
        formula(huber, &[4.0; 3], 0.1, 1.0, LOGNORMAL),
        Other("momentum", &[("eta", 0.001)], 1),
        0.03,
    ),
    seen("sgd, logistic stream", stream("logistic-stream", 50.0), Other("sgd", &[("eta", 0.1)], 8), 0.005),
    seen(
        "adam .001, sine bowl, d = 10",
        formula(bowl_10, &[1.0; 10], 0.2, 1.0, GAUSSIAN),
        Other("adam", &[("eta", 0.001)], 1),
        0.02,
    ),
    seen(
        "adam .01, quadratic, rare events",
        formula(steep, &[3.0, 3.0], 0.1, 1.0, RARE),
        Other("adam", &[("eta", 0.01)], 1),
        0.03,
    ),
    seen(
        "adam .003, logistic stream",
        stream("logistic-stream", 50.0),
        Other("adam", &[("eta", 0.003)], 1),
        0.005,
    ),
    seen(
        "adagrad-norm, curvatures 1 to .01",
        formula(ill, &[1.0; 3], 0.3, 1.0, GAUSSIAN),
        Other("adagrad-norm", &[("eta", 1.0)], 1),
        0.01,
    ),
    seen(
        "PAGE, ramp, rare events",
        formula(ramp, &[0.0], 1.0, 1.0, RARE),
        Gradient("mean-square-smooth"),
        0.02,
    ),
    seen(
        "PAGE, quadratic",
        formula(steep, &[1.0, 1.0], 0.5, 1.0, GAUSSIAN),
        Gradient("mean-square-smooth"),
        0.02,
    ),
    seen(
        "PAGE, sine bowl, B = 3",
        formula(bowl, &[1.2], 3.0, 1.0, GAUSSIAN),
        Gradient("mean-square-smooth"),
        0.03,
    ),
    seen(
        "storm, quadratic",
        formula(steep, &[1.0, 1.0], 0.5, 1.0, GAUSSIAN),
        Other("storm", &[("eta", 0.02), ("momentum", 0.05)], 2),
        0.02,
    ),
    seen("auto, sine bowl, B = 9", formula(bowl, &[1.2], 9.0, 1.0, GAUSSIAN), Auto, 0.02),
    seen("auto, curvatures 1 to .01", formula(ill, &[1.0; 3], 1.0, 1.0, T3), Auto, 0.01),
    seen("auto, logistic stream", stream("logistic-stream", 50.0), Auto, 0.005),
    seen("auto, least squares on a stream", stream("lsq-columns", 50.0), Auto, 0.01),
    seen("auto, Huber, t(3)", formula(huber, &[2.0; 3], 0.5, 1.0, T3), Auto, 0.03),
    seen(
        "auto, soft absolute, lognormal",
        formula(soft, &[1.0, -2.0, 1.0, 0.5, 3.0], 0.5, 1.0, LOGNORMAL),
        Auto,
        0.03,
    ),
    seen("auto, clover", formula(clover, &[1.0, 0.5], 0.5, 1.0, GAUSSIAN), Auto, 0.03),
    seen("auto, quadratic, rare events", formula(steep, &[3.0, 3.0], 0.3, 1.0, RARE), Auto, 0.03),
    seen("auto, flat minimum, growing noise", formula(quartic_1, &[3.0], 2.0, 0.5, GAUSSIAN), Auto, 0.03),
    seen("auto, Huber's loss on a stream", stream("huber", 100.0), Auto, 0.03),
    kept(
        "smooth, soft absolute, rare events",
        formula(soft, &[1.0, -2.0, 1.0, 0.5, 3.0], 1.0, 1.0, RARE),
        Gradient("smooth"),
        0.03,
    ),
    kept("smooth, ramp, B = 3", formula(ramp, &[0.0], 3.0, 1.0, GAUSSIAN), Gradient("smooth"), 0.03),
    kept(
        "smooth, curvatures 3 to .003",
        formula(
            || Box::new(Quadratic { spectrum: vec![3.0, 0.3, 0.03, 0.003] }),
            &[1.0, 1.0, 2.0, 2.0],
            0.3,
            1.0,
            GAUSSIAN,
        ),
        Gradient("smooth"),
        0.02,
    ),
    kept(
        "smooth, flat minimum, growing noise",
        formula(quartic_1, &[3.0], 2.0, 0.5, GAUSSIAN),
        Gradient("smooth"),
        0.03,
    ),
    kept(
        "smooth, sine bowl, d = 10, t(4)",
        formula(bowl_10, &[0.8; 10], 0.2, 2.0, T4),
        Gradient("smooth"),
        0.05,
    ),
    kept(
        "pl, quadratic, t(3)",
        formula(|| Box::new(Quadratic { spectrum: vec![1.0, 0.2, 0.2] }), &[2.0, 1.0, -1.0], 0.2, 1.0, T3),
        Gap("pl", 0.02),
        0.03,
    ),
    kept("pl, clover", formula(clover, &[0.5, 1.0], 0.5, 0.5, GAUSSIAN), Gap("pl", 0.02), 0.05),
    kept(
        "star-convex, quadratic",
        formula(|| Box::new(Quadratic { spectrum: vec![4.0, 0.4] }), &[1.0, 2.0], 0.3, 1.0, GAUSSIAN),
        Gap("star-convex", 0.05),
        0.05,
    ),
    kept(
        "smooth-convex, Huber",
        formula(huber, &[2.0, 1.0, -1.0], 0.5, 1.0, GAUSSIAN),
        Gap("smooth-convex", 1e-3),
        0.03,
    ),
    kept(
        "sgd .01/L, sine bowl",
        formula(bowl, &[2.0], 0.5, 1.0, GAUSSIAN),
        Other("sgd", &[("eta", 0.0033)], 1),
        0.02,
    ),
    kept(
        "sgd .2/L, curvatures 1 to .01",
        formula(ill, &[2.0, 2.0, 2.0], 0.3, 1.0, GAUSSIAN),
        Other("sgd", &[("eta", 0.2)], 2),
        0.01,
    ),
    kept(
        "clipped-sgd, soft absolute, t(3)",
        formula(soft, &[3.0; 5], 0.2, 1.0, T3),
        Other("clipped-sgd", &[("eta", 0.02), ("threshold", 10.0)], 1),
        0.05,
    ),
    kept(
        "sgd, least squares on a stream",
        stream("lsq-columns", 50.0),
        Other("sgd", &[("eta", 0.02)], 4),
        0.03,
    ),
    kept(
        "sgd-decaying, quadratic",
        formula(steep, &[2.0, -1.0], 0.5, 1.0, LOGNORMAL),
        Other("sgd-decaying", &[("eta", 0.3)], 1),
        0.03,
    ),
    kept(
        "adam .001, quadratic",
        formula(steep, &[1.0, -1.5], 0.5, 1.0, GAUSSIAN),
        Other("adam", &[("eta", 0.001)], 1),
        0.02,
    ),
    kept(
        "adam .01, soft absolute",
        formula(soft, &[2.0; 5], 0.2, 1.0, T4),
        Other("adam", &[("eta", 0.01)], 4),
        0.03,
    ),
    kept("adam .01, Poisson stream", stream("poisson", 100.0), Other("adam", &[("eta", 0.01)], 4), 0.05),
    kept(
        "adagrad-norm-averaged, sine bowl",
        formula(bowl, &[1.5], 1.0, 1.0, GAUSSIAN),
        Other("adagrad-norm-averaged", &[("eta", 1.0)], 1),
        0.02,
    ),
    kept("PAGE, Huber", formula(huber, &[1.5; 3], 0.5, 1.0, GAUSSIAN), Gradient("mean-square-smooth"), 0.03),
    kept(
        "PAGE, flat minimum",
        formula(quartic, &[1.2, 0.8], 0.5, 1.0, T4),
        Gradient("mean-square-smooth"),
        0.03,
    ),
    kept(
        "PAGE, clover",
        formula(clover, &[1.0, -0.5], 1.0, 0.5, GAUSSIAN),
        Gradient("mean-square-smooth"),
        0.03,
    ),
    kept(
        "storm, sine bowl",
        formula(bowl, &[1.2], 0.3, 1.0, GAUSSIAN),
        Other("storm", &[("eta", 0.05), ("momentum", 0.1)], 1),
        0.02,
    ),
    kept("auto, flat minimum", formula(quartic, &[1.5, 1.0], 0.5, 1.0, GAUSSIAN), Auto, 0.02),
    kept("auto, Huber, lognormal", formula(huber, &[2.0; 3], 1.0, 1.0, LOGNORMAL), Auto, 0.02),
    kept("auto, sine bowl, d = 10", formula(bowl_10, &[1.0; 10], 1.0, 1.0, GAUSSIAN), Auto, 0.02),
    kept("auto, Poisson stream", stream("poisson", 100.0), Auto, 0.03),
    kept("auto, soft absolute, t(3)", formula(soft, &[3.0; 5], 0.2, 1.0, T3), Auto, 0.03),
    kept("auto, ramp, B = 3", formula(ramp, &[0.0], 3.0, 1.0, GAUSSIAN), Auto, 0.03),
    kept(
        "auto, curvatures 3 to .003",
        formula(
            || Box::new(Quadratic { spectrum: vec![3.0, 0.3, 0.03, 0.003] }),
            &[1.0, 1.0, 2.0, 2.0],
            0.3,
            1.0,
            GAUSSIAN,
        ),
        Auto,
        0.02,
    ),
    kept("auto, clover, lognormal", formula(clover, &[0.5, 1.0], 1.0, 0.5, LOGNORMAL), Auto, 0.03),
    kept(
        "auto, quadratic, t(4)",
        formula(|| Box::new(Quadratic { spectrum: vec![4.0, 0.4] }), &[1.0, 2.0], 0.3, 1.0, T4),
        Auto,
        0.02,
    ),
    kept(
        "auto, Huber, d = 10, rare events",
        formula(
            || Box::new(Huber { dimension: 10, curvature: 2.0, lipschitz: 1.0 }),
            &[1.0; 10],
            0.5,
            1.0,
            RARE,
        ),
        Auto,
        0.03,
    ),
    kept("auto, logistic stream, outliers", stream("logistic-outliers", 100.0), Auto, 0.02),
    kept("auto, quantile stream", stream("quantile", 50.0), Auto, 0.02),
];
