//! The methods, with step sizes that suit the instance where none are given.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use pasta_opt::algorithm::Pasta;
use pasta_opt::baseline::{Baseline, Rule};
use pasta_opt::bounds::{CHAIN_NOISE, LowerBound};
use pasta_opt::objective::Facts;
use pasta_opt::oracle::Oracle;
use pasta_opt::recipe::{self, Constant, Constants, Plan, RecipeError, Row};
use pasta_opt::schedule::{Schedule, ScheduleError, Sequence};
use pasta_opt::walk::{StartError, Walk};

use super::instance::Instance;
use pasta_report::console::{Failure, flags};

/// What can be set about a method. Each refuses those that it does not use.
#[derive(Debug, Clone, Copy, Default, Args)]
#[command(next_help_heading = "Settings of the method (those that it uses; the others are refused)")]
pub(super) struct Settings {
    /// Step size
    #[arg(long, value_name = "ETA", allow_hyphen_values = true)]
    eta: Option<f64>,
    /// Samples a step
    #[arg(long, value_name = "N", value_parser = flags::count)]
    batch: Option<u64>,
    /// clipped-sgd: the largest norm of a gradient that is used as it is
    #[arg(long, value_name = "NORM", allow_hyphen_values = true)]
    threshold: Option<f64>,
    /// storm: weight of the fresh samples
    #[arg(long, value_name = "A", allow_hyphen_values = true)]
    momentum: Option<f64>,
    /// adam: decay of the first moment
    #[arg(long, value_name = "DECAY", allow_hyphen_values = true)]
    first: Option<f64>,
    /// adam: decay of the second moment
    #[arg(long, value_name = "DECAY", allow_hyphen_values = true)]
    second: Option<f64>,
    /// adam: added to the root of the second moment
    #[arg(long, value_name = "EPSILON", allow_hyphen_values = true)]
    epsilon: Option<f64>,
    /// adagrad-norm: the root's value before the first step
    #[arg(long, value_name = "OFFSET", allow_hyphen_values = true)]
    offset: Option<f64>,
    /// smooth: variance that the batches are sized for
    #[arg(long, value_name = "SIGMA2", allow_hyphen_values = true)]
    variance: Option<f64>,
}

impl Settings {
    /// Those that were given, by name.
    pub(super) fn given(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let given = [
            ("eta", self.eta),
            ("batch", self.batch.map(|batch| batch as f64)),
            ("threshold", self.threshold),
            ("momentum", self.momentum),
            ("first", self.first),
            ("second", self.second),
            ("epsilon", self.epsilon),
            ("offset", self.offset),
            ("variance", self.variance),
        ];
        given.into_iter().filter_map(|(name, given)| Some((name, given?)))
    }

    /// Without a method there is nothing to set.
    pub(super) fn refuse_all(&self) -> Result<(), Failure> {
        match self.given().next() {
            None => Ok(()),
            Some((name, _)) => {
                Err(Failure::input(format!("--{name} is a setting of one method; name the method"))
                    .hint(format!("for example: pasta-lab duel {} --{name} ..", example(name))))
            }
        }
    }

    /// Refuses, by name, what was given but has no effect.
    fn refuse_unused(&self, method: &str, used: &[&str]) -> Result<(), Failure> {
        match self.given().map(|(name, _)| name).find(|name| !used.contains(name)) {
            None => Ok(()),
            Some(name) if used.is_empty() => {
                Err(Failure::input(format!("{method}: does not use {name}; its theorem settles everything")))
            }
            Some(name) => {
                Err(Failure::input(format!("{method}: does not use {name}; it uses {}", used.join(", "))))
            }
        }
    }
}

/// A method that uses a setting.
fn example(setting: &str) -> &'static str {
    OTHERS.iter().find(|other| other.uses.contains(&setting)).map_or("smooth", |other| other.name)
}

/// A method that is no recipe: it promises nothing.
struct Other {
    name: &'static str,
    about: &'static str,
    uses: &'static [&'static str],
}

const OTHERS: &[Other] = &[
    Other { name: "sgd", about: "x - eta g", uses: &["eta", "batch"] },
    Other {
        name: "clipped-sgd",
        about: "x - eta g min(1, threshold/|g|)",
        uses: &["eta", "batch", "threshold"],
    },
    Other {
        name: "storm",
        about: "recursive momentum, each sample at two points",
        uses: &["eta", "batch", "momentum"],
    },
    Other {
        name: "adam",
        about: "moments of each coordinate",
        uses: &["eta", "batch", "first", "second", "epsilon"],
    },
    Other {
        name: "adagrad-norm",
        about: "steps that shrink with the gradients seen",
        uses: &["eta", "batch", "offset"],
    },
];

/// The recipes whose hypotheses an instance meets and whose constants it knows. (weakly-convex asks for a lambda, and
/// promises something about an envelope; with lambda = 2L it is smooth-anchored.)
fn recipes() -> impl Iterator<Item = &'static Row> {
    use Constant::{Floor, Gap, Growth, Lipschitz, MsSmoothness, Smoothness, Target};
    let facts =
        Facts { smoothness: Some(1.0), lipschitz: Some(1.0), weak_convexity: Some(1.0), ..Facts::default() };
    let known = [Smoothness, MsSmoothness, Lipschitz, Gap, Growth, Floor, Target];
    recipe::TABLE
        .iter()
        .filter(move |row| (row.applies)(&facts) && row.needs.iter().all(|need| known.contains(need)))
}

/// The values that the command line accepts.
pub(super) fn names() -> PossibleValuesParser {
    let recipes = recipes()
        .map(|row| PossibleValue::new(row.name).help(format!("{}: {}", row.reference, row.for_problems)));
    recipes
        .chain(OTHERS.iter().map(|other| PossibleValue::new(other.name).help(other.about)))
        .collect::<Vec<_>>()
        .into()
}

/// A method that is ready to start.
#[derive(Debug)]
pub(super) struct Contender {
    pub(super) name: &'static str,
    /// As they are shown, with where they come from if they were not given.
    pub(super) settings: Vec<Setting>,
    /// The number of steps that its theorem plans.
    pub(super) planned: Option<u128>,
    kind: Kind,
}

/// A setting of a method.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    pub(super) name: &'static str,
    pub(super) value: f64,
    /// The formula of a default, if it is one.
    pub(super) formula: Option<&'static str>,
}

#[derive(Debug)]
enum Kind {
    /// Algorithm 1.
    Schedule(Schedule),
    Baseline {
        rule: Rule,
        batch: u64,
    },
}

/// Every method that the instance admits, with its defaults; or why there is none.
pub(super) fn all(instance: &Instance) -> Vec<Result<Contender, (&'static str, RecipeError)>> {
    let known = instance.known();
    let admitted = recipes().filter(|row| row.needs.iter().all(|&need| known.get(need).is_some()));
    let recipes =
        admitted.map(|row| Contender::recipe(row, None, instance).map_err(|error| (row.name, error)));
    let others = OTHERS.iter().map(|other| Ok(other.set_up(&Settings::default(), instance)));
    recipes.chain(others).collect()
}

impl Contender {
    /// The method of that name.
    pub(super) fn new(name: &str, settings: &Settings, instance: &Instance) -> Result<Self, Failure> {
        if let Some(row) = recipe::find(name) {
            let uses: &[_] = if row.uses(Constant::Variance) { &["variance"] } else { &[] };
            settings.refuse_unused(row.name, uses)?;
            return Self::recipe(row, settings.variance, instance).map_err(refusal);
        }
        let other = OTHERS.iter().find(|other| other.name == name);
        let other = other.ok_or_else(|| Failure::input(format!("{name} is not a method")))?;
        settings.refuse_unused(other.name, other.uses)?;
        let contender = other.set_up(settings, instance);
        contender.check(instance)?;
        Ok(contender)
    }

    fn recipe(row: &'static Row, variance: Option<f64>, instance: &Instance) -> Result<Self, RecipeError> {
        let mut constants: Constants = row.relevant(&instance.known());
        if let Some(variance) = variance {
            constants.set(Constant::Variance, variance);
        }
        let Plan { schedule, .. } = row.plan(&constants)?;
        let derived = [Constant::Variance, Constant::Lipschitz].into_iter().filter_map(|constant| {
            Some(Setting { name: constant.name(), value: constants.get(constant)?, formula: None })
        });
        let eta = Setting { name: "eta", value: schedule.eta.at(0), formula: None };
        Ok(Self {
            name: row.name,
            settings: [eta].into_iter().chain(derived).collect(),
            planned: Some(schedule.total_steps()),
            kind: Kind::Schedule(schedule),
        })
    }

    /// How far one revealing sample throws the first coordinate of the chain, in units of lambda, where the step
    /// is plainly eta g. The coordinate's slope is sqrt(e) 2 eps, and the sample shows it 1/p times as steep.
    pub(super) fn leap(&self, instance: &Instance) -> Option<f64> {
        let LowerBound { p, lambda, .. } = *instance.bound();
        match self.kind {
            Kind::Baseline { rule: Rule::Sgd { eta }, batch: 1 } => {
                Some(eta.at(0) * 2.0 * instance.target() * 0.5_f64.exp() / (p * lambda))
            }
            _ => None,
        }
    }

    /// Starts a run from x0 = 0.
    pub(super) fn start<'o>(
        &self,
        oracle: &'o dyn Oracle,
        steps: u64,
        seed: u64,
    ) -> Result<Box<dyn Walk + 'o>, StartError> {
        let start = vec![0.0; oracle.dim()];
        Ok(match &self.kind {
            Kind::Schedule(schedule) => Box::new(Pasta::start(oracle, schedule.clone(), &start, seed)?),
            Kind::Baseline { rule, batch } => {
                Box::new(Baseline::start(oracle, *rule, steps, *batch, &start, seed)?)
            }
        })
    }

    /// Refuses settings that no run can mean.
    fn check(&self, instance: &Instance) -> Result<(), Failure> {
        match self.start(&instance.hard, 1, 0) {
            Ok(_) => Ok(()),
            Err(StartError::Schedule(ScheduleError { name, needs, got })) => {
                Err(Failure::input(format!("{}: {name} must be {needs}, but is {got}", self.name)))
            }
            Err(error) => Err(Failure::input(error)),
        }
    }

    /// At least so many steps lie between the start and u = D/2. Up to there the oracle has no noise, the
    /// gradient is (-2 eps, 0, ..), so no point on the way is good enough and the way is known beforehand.
    pub(super) fn steps_on_slope(&self, instance: &Instance) -> f64 {
        let (slope, way) = (2.0 * instance.target(), 0.5 * instance.bound().reach);
        match &self.kind {
            // An anchor only holds back, and sequences of step sizes do not grow.
            Kind::Schedule(schedule) => way / (schedule.eta.at(0) * slope),
            Kind::Baseline { rule, .. } => match *rule {
                Rule::Sgd { eta } => way / (eta.at(0) * slope),
                Rule::ClippedSgd { eta, threshold } => way / (eta.at(0) * slope.min(threshold)),
                // |mhat| <= sqrt(vhat) for a constant gradient.
                Rule::Adam { eta, .. } => way / eta.at(0),
                // The sum of slope/sqrt(k slope^2) up to t is at most 2 sqrt(t).
                Rule::AdaGradNorm { eta, .. } => (0.5 * way / eta).powi(2),
            },
        }
    }
}

/// Why a recipe cannot be used on this instance, and what to do about it.
fn refusal(error: RecipeError) -> Failure {
    let failure = Failure::input(&error);
    match error {
        RecipeError::Missing { constant: Constant::MsSmoothness, .. } => failure.hint(
            "the oracle of Theorem 1's instance jumps where a coordinate is revealed, so it is not mean-square \
             smooth; that of Theorem 2's instance is: --instance mss",
        ),
        RecipeError::TooMany { .. } => failure.hint("take a larger --target or a smaller --growth"),
        _ => failure,
    }
}

impl Other {
    fn set_up(&self, given: &Settings, instance: &Instance) -> Contender {
        let bound = instance.bound();
        let mut settings = Vec::new();
        let mut choose = |name, given: Option<f64>, default: f64, formula: Option<&'static str>| {
            let formula = formula.filter(|_| given.is_none());
            let value = given.unwrap_or(default);
            settings.push(Setting { name, value, formula });
            value
        };
        // The classical step size.
        let classical = (1.0 / bound.effective_smoothness, Some("1/L"));
        // Of about the size of a coordinate, or of the whole way: these methods divide by what they see.
        let (default, formula) = match self.name {
            "adam" => (bound.lambda / 20.0, Some("lambda/20")),
            "adagrad-norm" => (bound.reach / 10.0, Some("D/10")),
            _ => classical,
        };
        let eta = choose("eta", given.eta, default, formula);
        let batch = given.batch.unwrap_or(1);
        let baseline = |rule| Kind::Baseline { rule, batch };
        let kind = match self.name {
            "clipped-sgd" => {
                // No coordinate of the chain is steeper, so what it cuts is noise.
                let steepest = 2.0 * CHAIN_NOISE as f64 * instance.target();
                let threshold = choose("threshold", given.threshold, steepest, Some("46 eps"));
                baseline(Rule::ClippedSgd { eta: Sequence::Constant(eta), threshold })
            }
            "storm" => {
                let momentum = choose("momentum", given.momentum, 0.1, None);
                Kind::Schedule(Schedule::storm(eta, momentum, u64::MAX, batch))
            }
            "adam" => {
                let first = choose("first", given.first, 0.9, None);
                let second = choose("second", given.second, 0.999, None);
                let epsilon = choose("epsilon", given.epsilon, 1e-8, None);
                baseline(Rule::Adam { eta: Sequence::Constant(eta), first, second, epsilon })
            }
            "adagrad-norm" => {
                let offset = choose("offset", given.offset, 2.0 * instance.target(), Some("2 eps"));
                baseline(Rule::AdaGradNorm { eta, offset })
            }
            _ => baseline(Rule::Sgd { eta: Sequence::Constant(eta) }),
        };
        settings.push(Setting { name: "batch", value: batch as f64, formula: None });
        Contender { name: self.name, settings, planned: None, kind }
    }
}
