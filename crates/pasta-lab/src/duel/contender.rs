//! The methods of the library's table, with settings that suit the instance where none are given.

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Arg, ArgMatches};
use pasta_opt::baseline::{self, Rule};
use pasta_opt::bounds::{CHAIN_NOISE, LowerBound};
use pasta_opt::method::{self, Engine, METHODS, Method, Values};
use pasta_opt::objective::Facts;
use pasta_opt::recipe::{Constant, Constants, Plan, RecipeError, RecipeRow};

use super::instance::Instance;
use pasta_report::console::Failure;
use pasta_report::console::flags::{self, FlagSet};

/// What suits the instance: a setting, its formula where it has one, and its value.
type Suits = (&'static str, Option<&'static str>, fn(&Instance) -> f64);

/// The classical step size.
const CLASSICAL: Suits = ("eta", Some("1/L"), |instance| 1.0 / instance.bound.effective_smoothness);

/// The methods without a theorem that take part: those that something suits. Left out are methods that this instance shows
/// nothing about: krasnoselskii-mann takes the steps of sgd, sgd-decaying is still on the slope after any number of steps
/// that one would wait for, and halpern is drawn back to the start, where there is nothing to find.
const DEFAULTS: &[(&str, &[Suits])] = &[
    ("sgd", &[CLASSICAL]),
    // No coordinate of the chain is steeper than this threshold, so what it cuts is noise.
    ("clipped-sgd", &[CLASSICAL, ("threshold", Some("46 eps"), |i| 2.0 * CHAIN_NOISE as f64 * i.target())]),
    ("storm", &[CLASSICAL, ("momentum", None, |_| 0.1)]),
    // Steps of about the size of a coordinate, or of the whole way: these methods divide by what they see.
    ("adam", &[("eta", Some("lambda/20"), |i| i.bound.lambda / 20.0)]),
    (
        "adagrad-norm",
        &[
            ("eta", Some("D/10"), |i| i.bound.distance / 10.0),
            ("offset", Some("2 eps"), |i| 2.0 * i.target()),
        ],
    ),
];

/// The methods that are no recipes: they promise nothing.
fn others() -> Vec<&'static Method> {
    DEFAULTS.iter().filter_map(|(name, _)| method::find(name)).collect()
}

/// The recipes whose hypotheses an instance meets and whose constants it knows. (weakly-convex asks for a lambda, and
/// promises something about an envelope; with lambda = 2L it is smooth-anchored.)
fn recipes() -> impl Iterator<Item = &'static RecipeRow> {
    use Constant::{Floor, Gap, Growth, Lipschitz, MsSmoothness, Smoothness, Target};
    let facts =
        Facts { smoothness: Some(1.0), lipschitz: Some(1.0), weak_convexity: Some(1.0), ..Facts::default() };
    let known = [Smoothness, MsSmoothness, Lipschitz, Gap, Growth, Floor, Target];
    METHODS
        .iter()
        .filter_map(Method::row)
        .filter(move |row| (row.applies)(&facts) && row.needs.iter().all(|need| known.contains(need)))
}

/// The values that the command line accepts.
pub(super) fn names() -> PossibleValuesParser {
    let recipes = recipes()
        .map(|row| PossibleValue::new(row.name).help(format!("{}: {}", row.reference, row.for_problems)));
    let others = others().into_iter().map(|other| PossibleValue::new(other.name).help(other.about));
    recipes.chain(others).collect::<Vec<_>>().into()
}

/// What was set about a method. Each refuses what it does not use.
#[derive(Debug, Clone, Default)]
pub(super) struct Settings {
    values: Values,
    batch: Option<u64>,
    variance: Option<f64>,
}

const HEADING: &str = "Settings of the method (those that it uses; the others are refused)";
const BATCH: &str = "batch";
const VARIANCE: Constant = Constant::Variance;

impl FlagSet for Settings {
    fn flags() -> Vec<Arg> {
        let batch = Arg::new(BATCH).long(BATCH).value_name("N").help("Samples a step").help_heading(HEADING);
        let mut all = flags::settings(&others(), HEADING);
        all.push(batch.value_parser(flags::count));
        all.push(flags::constant(VARIANCE, HEADING, ""));
        all
    }

    fn take(matches: &ArgMatches) -> Self {
        let values = flags::take_settings(matches, &others());
        let (batch, variance) = (matches.get_one(BATCH), matches.get_one(VARIANCE.name()));
        Self { values, batch: batch.copied(), variance: variance.copied() }
    }
}

impl Settings {
    /// Those that were given, by name.
    pub(super) fn given(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let rest = [(BATCH, self.batch.map(|batch| batch as f64)), (VARIANCE.name(), self.variance)];
        self.values.iter().chain(rest.into_iter().filter_map(|(name, given)| Some((name, given?))))
    }

    /// Without a method there is nothing to set.
    pub(super) fn refuse_all(&self) -> Result<(), Failure> {
        let Some((name, _)) = self.given().next() else { return Ok(()) };
        let user = others().into_iter().find(|other| uses(other).contains(&name));
        let example = user.map_or("smooth", |other| other.name);
        Err(Failure::input(format!("--{name} is a setting of one method; name the method"))
            .hint(format!("for example: pasta-lab duel {example} --{name} ..")))
    }

    /// Refuses, by name, what was given but has no effect.
    fn refuse_unused(&self, method: &Method) -> Result<(), Failure> {
        let (name, used) = (method.name, uses(method));
        let Some((unused, _)) = self.given().find(|(given, _)| !used.contains(given)) else { return Ok(()) };
        let instead = match &used[..] {
            [] => "its theorem settles everything".to_owned(),
            used => format!("it uses {}", used.join(", ")),
        };
        Err(Failure::input(format!("{name}: does not use {unused}; {instead}")))
    }
}

/// The names of what can be set about a method.
fn uses(method: &Method) -> Vec<&'static str> {
    match method.row() {
        Some(row) if row.uses(VARIANCE) => vec![VARIANCE.name()],
        Some(_) => Vec::new(),
        None => method.settings().iter().map(|setting| setting.name).chain([BATCH]).collect(),
    }
}

/// A method that is ready to start.
#[derive(Debug)]
pub(super) struct Contender {
    pub(super) name: &'static str,
    /// As they are shown, with where they come from if they were not given.
    pub(super) settings: Vec<Setting>,
    /// The number of steps that its theorem plans.
    pub(super) planned: Option<u128>,
    pub(super) engine: Engine,
}

/// A setting of a method.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    pub(super) name: &'static str,
    pub(super) value: f64,
    /// The formula of a default, if it is one.
    pub(super) formula: Option<&'static str>,
}

/// Every method that the instance admits, with its defaults; or its name, and why it cannot be set up.
pub(super) fn all(instance: &Instance) -> Vec<Result<Contender, (&'static str, Failure)>> {
    let known = instance.known();
    let admitted = recipes().filter(|row| row.needs.iter().all(|&need| known.get(need).is_some()));
    let names = admitted.map(|row| row.name).chain(DEFAULTS.iter().map(|(name, _)| *name));
    let set_up = |name| Contender::new(name, &Settings::default(), instance).map_err(|error| (name, error));
    names.map(set_up).collect()
}

impl Contender {
    /// The method of that name.
    pub(super) fn new(name: &str, settings: &Settings, instance: &Instance) -> Result<Self, Failure> {
        let method = method::find(name).ok_or_else(|| Failure::input(format!("{name} is not a method")))?;
        settings.refuse_unused(method)?;
        match method.row() {
            Some(row) => Self::recipe(row, settings.variance, instance).map_err(refusal),
            None => Self::other(method, settings, instance),
        }
    }

    fn recipe(
        row: &'static RecipeRow,
        variance: Option<f64>,
        instance: &Instance,
    ) -> Result<Self, RecipeError> {
        let mut constants: Constants = row.relevant(&instance.known());
        if let Some(variance) = variance {
            constants.set(VARIANCE, variance);
        }
        let Plan { schedule, .. } = row.plan(&constants)?;
        let derived = [VARIANCE, Constant::Lipschitz].into_iter().filter_map(|constant| {
            Some(Setting { name: constant.name(), value: constants.get(constant)?, formula: None })
        });
        let eta = Setting { name: "eta", value: schedule.eta.at(0), formula: None };
        Ok(Self {
            name: row.name,
            settings: [eta].into_iter().chain(derived).collect(),
            planned: Some(schedule.total_steps()),
            engine: Engine::Schedule(schedule),
        })
    }

    fn other(method: &'static Method, given: &Settings, instance: &Instance) -> Result<Self, Failure> {
        let suits = DEFAULTS.iter().find(|(name, _)| *name == method.name).map_or(&[][..], |row| row.1);
        let mut values = given.values.clone();
        let mut settings = Vec::new();
        for &method::Setting { name, default, .. } in method.settings() {
            let suiting = suits.iter().find(|suit| suit.0 == name).filter(|_| values.given(name).is_none());
            let (formula, value) = match suiting {
                Some(&(_, formula, value)) => (formula, Some(value(instance))),
                None => (None, values.given(name).or(default)),
            };
            if let Some(value) = value {
                values.set(name, value);
                settings.push(Setting { name, value, formula });
            }
        }
        let batch = given.batch.unwrap_or(1);
        settings.push(Setting { name: BATCH, value: batch as f64, formula: None });
        let engine = method.engine(&values, u64::MAX, batch).map_err(Failure::input)?;
        Ok(Self { name: method.name, settings, planned: None, engine })
    }

    /// How far one revealing sample throws the first coordinate of the chain, in units of lambda, where the step
    /// is plainly eta g. The coordinate's slope is sqrt(e) 2 eps, and the sample shows it 1/p times as steep.
    pub(super) fn leap(&self, instance: &Instance) -> Option<f64> {
        let LowerBound { p, lambda, .. } = instance.bound;
        match self.engine {
            Engine::Baseline(baseline::Settings { rule: Rule::Sgd { eta }, batch: 1, .. }) => {
                Some(eta.at(0) * 2.0 * instance.target() * 0.5_f64.exp() / (p * lambda))
            }
            _ => None,
        }
    }

    /// At least so many steps lie between the start and u = D/2. Up to there the oracle has no noise, the
    /// gradient is (-2 eps, 0, ..), so no point on the way is good enough and the way is known beforehand.
    pub(super) fn steps_on_slope(&self, instance: &Instance) -> f64 {
        let (slope, way) = (2.0 * instance.target(), 0.5 * instance.bound.distance);
        match &self.engine {
            // An anchor only holds back, and sequences of step sizes do not grow.
            Engine::Schedule(schedule) => way / (schedule.eta.at(0) * slope),
            Engine::Baseline(settings) => match settings.rule {
                Rule::Sgd { eta } => way / (eta.at(0) * slope),
                Rule::ClippedSgd { eta, threshold } => way / (eta.at(0) * slope.min(threshold)),
                // |mhat| <= sqrt(vhat) for a constant gradient.
                Rule::Adam { eta, .. } => way / eta.at(0),
                // The sum of slope/sqrt(k slope^2) up to t is at most 2 sqrt(t).
                Rule::AdaGradNorm { eta, .. } => (0.5 * way / eta).powi(2),
                // Of the others nothing is known beforehand.
                _ => 0.0,
            },
            Engine::Auto { .. } | Engine::Hedged { .. } | Engine::Universal { .. } | Engine::Fit(_) => 0.0,
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
