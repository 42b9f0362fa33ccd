//! Problem files: TOML in, a ready oracle and method out. Every complaint has a file, a line and what was expected.

use std::path::{Path, PathBuf};

use pasta_opt::algorithm::Pasta;
use pasta_opt::baseline::{Baseline, Rule, Settings};
use pasta_opt::certificate::{Grade, RequestError};
use pasta_opt::forecast::Forecast;
use pasta_opt::objective::Measure;
use pasta_opt::oracle::{Noise, NoiseError, Noisy, Tail};
use pasta_opt::problems::{self, Parameters};
use pasta_opt::recipe::{self, Constant, Constants, Plan, RecipeError};
use pasta_opt::schedule::{Schedule, ScheduleError, Sequence};
use pasta_opt::walk::{StartError, StopRule, Walk};
use toml_edit::{Document, DocumentMut, Item, TableLike};

use crate::error::Failure;

/// What a problem file says, with the flags that override it.
#[derive(Debug)]
pub(crate) struct Spec {
    pub(crate) seed: u64,
    pub(crate) threads: Option<usize>,
    pub(crate) budget: Option<u128>,
    pub(crate) output: Option<PathBuf>,
    pub(crate) oracle: Noisy,
    pub(crate) method: Method,
    /// How the run is to be certified, if it is.
    pub(crate) certification: Option<Certification>,
    /// The file with the overrides written into it: what `resume` reads.
    pub(crate) effective: String,
}

/// What to run.
#[derive(Debug)]
pub(crate) enum Method {
    /// A recipe, with its constants and its plan. `doubts` are reasons why its promise may not hold for this problem;
    /// that some of its constants are only `estimated` is one.
    Recipe { constants: Constants, plan: Plan, doubts: Vec<String>, estimated: Vec<Constant> },
    /// A named special case of Algorithm 1, without a promise.
    Named { name: &'static str, schedule: Schedule },
    /// A baseline, without a promise.
    Baseline { name: &'static str, settings: Settings },
}

impl Method {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Recipe { plan, .. } => plan.recipe,
            Self::Named { name, .. } | Self::Baseline { name, .. } => name,
        }
    }
}

/// The table [certificate].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Certification {
    /// Without the budget, which is the run's.
    pub(crate) rule: StopRule,
    /// The most samples that a forecast before the run may take.
    pub(crate) pilot: u128,
    /// What the pilot came to, once it is flown.
    pub(crate) flown: Option<Flown>,
}

/// A forecast, or none, and the samples that it took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flown {
    pub(crate) forecast: Option<Forecast>,
    pub(crate) samples: u128,
}

impl Method {
    /// The target for the norm of the gradient, if it is a recipe that promises one.
    pub(crate) fn gradient_target(&self) -> Option<f64> {
        match self {
            Self::Recipe { constants, plan, .. } if plan.guarantee.measure == Measure::GradientSquared => {
                constants.get(Constant::Target)
            }
            _ => None,
        }
    }

    /// The same method for a gradient of norm `target`, if it is a recipe that promises one: then its schedule depends
    /// on it.
    fn aimed_at(&self, target: f64) -> Result<Option<Schedule>, RecipeError> {
        let Self::Recipe { constants, plan, .. } = self else { return Ok(None) };
        let row = recipe::find(plan.recipe).filter(|_| plan.guarantee.measure == Measure::GradientSquared);
        let Some(row) = row else { return Ok(None) };
        let mut constants = *constants;
        constants.set(Constant::Target, target);
        row.plan(&constants).map(|plan| Some(plan.schedule))
    }
}

impl Certification {
    /// Samples that the forecast took.
    pub(crate) fn pilot_samples(&self) -> u128 {
        self.flown.map_or(0, |flown| flown.samples)
    }
}

impl Spec {
    /// The walk that the file asks for, at its start; for another target of |grad f| and with another seed, if they
    /// are given.
    pub(crate) fn walk(&self, aim: Option<(f64, u64)>) -> Result<Box<dyn Walk + '_>, Failure> {
        let (oracle, x0) = (&self.oracle, self.oracle.start());
        let seed = aim.map_or(self.seed, |(_, seed)| seed);
        let schedule = match (&self.method, aim) {
            (Method::Baseline { settings: Settings { rule, steps, batch }, .. }, _) => {
                let run = Baseline::start(oracle, *rule, *steps, *batch, x0, seed);
                return Ok(Box::new(run.map_err(Failure::input)?));
            }
            (Method::Named { schedule, .. }, _) => schedule.clone(),
            (method @ Method::Recipe { plan, .. }, Some((target, _))) => {
                // A target too coarse for the recipe is run as the file says: finer than asked.
                method.aimed_at(target).ok().flatten().unwrap_or_else(|| plan.schedule.clone())
            }
            (Method::Recipe { plan, .. }, None) => plan.schedule.clone(),
        };
        Ok(Box::new(Pasta::start(oracle, schedule, x0, seed).map_err(Failure::input)?))
    }

    /// After how many samples the run will end, if that is known or forecast.
    pub(crate) fn likely_end(&self) -> Option<u128> {
        let forecast = self.certification.and_then(|certification| certification.flown?.forecast);
        self.budget.into_iter().chain(forecast.map(|forecast| forecast.middle as u128)).min()
    }

    /// Writes the forecast down, so that a resumed run has it too.
    pub(crate) fn set_forecast(&mut self, flown: Flown) -> Result<(), Failure> {
        let Some(certification) = &mut self.certification else { return Ok(()) };
        certification.flown = Some(flown);
        let mut document: DocumentMut = self.effective.parse().map_err(Failure::system)?;
        let table = &mut document["certificate"]["forecast"];
        *table = toml_edit::table();
        table["pilot"] = Item::Value(integer_or_float(flown.samples));
        if let Some(Forecast { low, middle, high }) = flown.forecast {
            for (key, value) in [("low", low), ("middle", middle), ("high", high)] {
                table[key] = toml_edit::value(value);
            }
        }
        self.effective = document.to_string();
        Ok(())
    }
}

/// A count as TOML can hold it.
fn integer_or_float(n: u128) -> toml_edit::Value {
    i64::try_from(n).map_or_else(|_| (n as f64).into(), i64::into)
}

/// What a problem file says of the problem alone: all it takes to draw samples.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) seed: u64,
    pub(crate) threads: Option<usize>,
    pub(crate) oracle: Noisy,
}

/// The largest whole number that a TOML file can hold.
const LARGEST: u64 = i64::MAX as u64;
const WHOLE: &str = "a whole number from 0 to 2^63 - 1";

/// A number of samples, which may be beyond the whole numbers of TOML: then it is written 1e20.
const SAMPLES: &str = "a whole number of samples, such as 1000 or 1e20";

pub(crate) fn sample_count(text: &str) -> Result<u128, String> {
    let whole = text.parse::<u64>().ok().filter(|n| *n <= LARGEST).map(u128::from);
    whole.or_else(|| text.parse().ok().and_then(whole_float)).ok_or_else(|| format!("expected {SAMPLES}"))
}

fn whole_float(x: f64) -> Option<u128> {
    (x.fract() == 0.0 && (0.0..1e38).contains(&x)).then_some(x as u128)
}

/// More threads than this are a mistake.
const MOST_THREADS: u16 = 1024;

pub(crate) fn thread_count() -> impl clap::builder::TypedValueParser<Value = u16> {
    clap::value_parser!(u16).range(1..=i64::from(MOST_THREADS))
}

pub(crate) fn seed() -> impl clap::builder::TypedValueParser<Value = u64> {
    clap::value_parser!(u64).range(..=LARGEST)
}

/// Flags that override a file.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Overrides {
    /// Seed of all randomness (overrides the file; default 1).
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    #[arg(value_parser = seed())]
    pub(crate) seed: Option<u64>,
    /// Threads for batches that are drawn sample by sample; does not change a bit of the result.
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = thread_count())]
    pub(crate) threads: Option<u16>,
    /// Stop before drawing more samples than this.
    #[arg(long, allow_negative_numbers = true, value_name = "SAMPLES", value_parser = sample_count)]
    pub(crate) budget: Option<u128>,
    /// Target accuracy of the recipe.
    #[arg(long, allow_negative_numbers = true, value_name = "EPS")]
    pub(crate) target: Option<f64>,
    /// Stop when |grad f| <= EPS is certified by fresh samples (as the table [certificate] of the file does).
    #[arg(long, allow_negative_numbers = true, value_name = "EPS")]
    pub(crate) certify: Option<f64>,
    /// Folder for trace, checkpoint and result; a relative one is taken from where you are.
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
}

/// Reads a problem file.
pub(crate) fn read(path: &Path, overrides: &Overrides) -> Result<Spec, Failure> {
    let (name, text) = load(path)?;
    parse(&name, &text, overrides)
}

/// Reads what a problem file says of the problem. It need not have a [recipe], and what it has is not looked at.
pub(crate) fn read_problem(path: &Path, overrides: &Overrides) -> Result<Problem, Failure> {
    let (name, text) = load(path)?;
    let document = open(&name, &text)?;
    problem(&root(&name, &text, &document)?, overrides)
}

fn load(path: &Path) -> Result<(String, String), Failure> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| Failure::input(format!("{name}: {error}")))?;
    Ok((name, text))
}

fn open<'d>(file: &str, text: &'d str) -> Result<Document<&'d str>, Failure> {
    Document::parse(text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_at(text, span.start));
        Failure::input(format!("{file}:{line}: {}", error.message()))
    })
}

fn root<'d>(file: &'d str, text: &'d str, document: &'d Document<&str>) -> Result<Section<'d>, Failure> {
    let source = Source { file, text };
    let root = Section { source, name: String::new(), table: document.as_table(), line: 1 };
    root.only(&["seed", "threads", "budget", "output", "problem", "noise", "recipe", "certificate"])?;
    Ok(root)
}

fn problem(root: &Section<'_>, overrides: &Overrides) -> Result<Problem, Failure> {
    let seed = overrides.seed.or(root.count("seed")?).unwrap_or(1);
    let threads = match root.count("threads")? {
        Some(n) if !(1..=u64::from(MOST_THREADS)).contains(&n) => {
            let message = format!("expected a whole number from 1 to {MOST_THREADS}, got {n}");
            return Err(root.complain("threads", &message));
        }
        file => overrides.threads.map(usize::from).or(file.map(|n| n as usize)),
    };
    let oracle = read_oracle(&root.section("problem")?, &root.section("noise")?)?;
    Ok(Problem { seed, threads, oracle })
}

fn parse(file: &str, text: &str, overrides: &Overrides) -> Result<Spec, Failure> {
    let document = open(file, text)?;
    let root = root(file, text, &document)?;
    let budget = overrides.budget.or(root.samples("budget")?);
    let output = overrides.output.clone().or(root.text("output")?.map(PathBuf::from));
    let Problem { seed, threads, oracle } = problem(&root, overrides)?;

    let method = read_method(&root.section("recipe")?, &oracle, overrides.target)?;
    let certificate = root.item("certificate").map(|_| root.section("certificate")).transpose()?;
    let certification = read_certification(certificate.as_ref(), &oracle, &method, overrides.certify)?;
    let effective = write_overrides(document, overrides);
    Ok(Spec { seed, threads, budget, output, oracle, method, certification, effective })
}

/// Writes the flags into the file's text, so that resuming needs no flags. The copy is kept in the output
/// folder, wherever that may be moved to, and names none.
fn write_overrides(document: Document<&str>, overrides: &Overrides) -> String {
    let mut document = document.into_mut();
    document.remove("output");
    let mut set = |key: &str, value: Option<toml_edit::Value>| {
        if let Some(value) = value {
            document.insert(key, Item::Value(value));
        }
    };
    set("seed", overrides.seed.map(|n| (n as i64).into()));
    set("threads", overrides.threads.map(|n| i64::from(n).into()));
    set("budget", overrides.budget.map(integer_or_float));
    if let (Some(target), Some(recipe)) =
        (overrides.target, document.get_mut("recipe").and_then(Item::as_table_like_mut))
    {
        recipe.insert("target", Item::Value(target.into()));
    }
    if let Some(target) = overrides.certify {
        document.entry("certificate").or_insert(toml_edit::table())["target"] = toml_edit::value(target);
    }
    document.to_string()
}

fn read_oracle(problem: &Section<'_>, noise: &Section<'_>) -> Result<Noisy, Failure> {
    let name = problem.required_text("name", "the name of a problem")?;
    let parameters: Parameters = problem
        .keys()
        .filter(|key| !["name", "start"].contains(key))
        .map(|key| Ok((key.to_owned(), problem.parameter(key)?)))
        .collect::<Result<_, Failure>>()?;
    let objective = problems::build(name, &parameters).map_err(|error| {
        let key = error.parameter().unwrap_or("name").to_owned();
        problem.complain(&key, &error.to_string())
    })?;
    let start = problem.start(objective.dim())?;

    let tail_name = noise.required_text("tail", "gaussian, student-t, lognormal or two-point")?;
    let (tail, own) = match tail_name {
        "gaussian" => (Tail::Gaussian, None),
        "student-t" => (Tail::StudentT { dof: noise.required("dof")? }, Some("dof")),
        "lognormal" => (Tail::Lognormal { sigma: noise.required("sigma")? }, Some("sigma")),
        "two-point" => (Tail::TwoPoint { probability: noise.required("probability")? }, Some("probability")),
        other => {
            let expected = format!("expected gaussian, student-t, lognormal or two-point, got {other:?}");
            return Err(noise.complain("tail", &expected));
        }
    };
    let known: Vec<_> = ["tail", "growth", "floor", "exponent"].into_iter().chain(own).collect();
    noise.only(&known)?;
    let law = Noise { growth: noise.required("growth")?, floor: noise.required("floor")?, tail };
    let mut oracle = Noisy::new(objective, law, start).map_err(|error| match error {
        NoiseError::Constant { name, needs, got } => {
            noise.complain(name, &format!("expected {needs}, got {got}"))
        }
        NoiseError::Dimension { .. } => problem.complain("start", &error.to_string()),
    })?;
    match noise.number("exponent")? {
        Some(exponent) if !(exponent.is_finite() && exponent >= 0.0) => {
            let expected = format!("expected a finite number, at least 0, got {exponent}");
            return Err(noise.complain("exponent", &expected));
        }
        exponent => oracle.exponent = exponent.unwrap_or(oracle.exponent),
    }
    Ok(oracle)
}

/// The methods that are not recipes, with their keys.
const OTHERS: &[(&str, &[&str])] = &[
    ("sgd", &["eta", "steps", "batch"]),
    ("sgd-decaying", &["eta", "steps", "batch"]),
    ("clipped-sgd", &["eta", "steps", "batch", "threshold"]),
    ("halpern", &["eta", "steps", "batch"]),
    ("krasnoselskii-mann", &["eta", "steps", "batch", "beta"]),
    ("storm", &["eta", "steps", "batch", "momentum"]),
];

fn read_method(section: &Section<'_>, oracle: &Noisy, target: Option<f64>) -> Result<Method, Failure> {
    let name = section.required_text("name", "the name of a recipe")?;
    if let Some(row) = recipe::find(name) {
        return read_recipe(section, row, oracle, target);
    }
    let Some(&(name, keys)) = OTHERS.iter().find(|(other, _)| *other == name) else {
        let recipes = recipe::TABLE.iter().map(|row| row.name);
        let all: Vec<_> = recipes.chain(OTHERS.iter().map(|(name, _)| *name)).collect();
        let expected = format!("unknown recipe {name:?}; expected one of {}", all.join(", "));
        return Err(section.complain("name", &expected));
    };
    if target.is_some() {
        return Err(Failure::input(format!("--target: {name} has no target")));
    }
    let known: Vec<_> = ["name"].into_iter().chain(keys.iter().copied()).collect();
    section.only(&known)?;
    let eta = section.required("eta")?;
    let steps = section.count("steps")?.ok_or_else(|| section.missing("steps", WHOLE))?;
    let batch = section.count("batch")?.unwrap_or(1);
    let refuse = |error: ScheduleError| {
        section.complain(error.name, &format!("expected {}, got {}", error.needs, error.got))
    };
    let named = |schedule: Schedule| match schedule.check() {
        Ok(()) => Ok(Method::Named { name, schedule }),
        Err(error) => Err(refuse(error)),
    };
    let baseline = |rule| match Baseline::start(oracle, rule, steps, batch, oracle.start(), 0) {
        Ok(_) => Ok(Method::Baseline { name, settings: Settings { rule, steps, batch } }),
        Err(StartError::Schedule(error)) => Err(refuse(error)),
        Err(error) => Err(section.complain("", &error.to_string())),
    };
    match name {
        "sgd" => baseline(Rule::Sgd { eta: Sequence::Constant(eta) }),
        "sgd-decaying" => baseline(Rule::Sgd { eta: Sequence::InverseRoot { scale: eta, shift: 1.0 } }),
        "clipped-sgd" => {
            let threshold = section.required("threshold")?;
            baseline(Rule::ClippedSgd { eta: Sequence::Constant(eta), threshold })
        }
        "halpern" => named(Schedule::halpern(eta, steps, batch)),
        "krasnoselskii-mann" => {
            named(Schedule::krasnoselskii_mann(eta, section.required("beta")?, steps, batch))
        }
        _ => named(Schedule::storm(eta, section.required("momentum")?, steps, batch)),
    }
}

/// Samples of the pilot before a certified run, unless the file says otherwise.
pub(crate) const PILOT: u128 = 100_000;
const DELTA: f64 = 0.05;
const SHARE: f64 = 0.5;
const KURTOSIS: f64 = 100.0;

fn read_certification(
    section: Option<&Section<'_>>,
    oracle: &Noisy,
    method: &Method,
    flag: Option<f64>,
) -> Result<Option<Certification>, Failure> {
    let number = |key| section.map_or(Ok(None), |section| section.number(key));
    if section.is_none() && flag.is_none() {
        return Ok(None);
    }
    if let Some(section) = section {
        let keys =
            ["target", "delta", "share", "variance", "growth", "floor", "kurtosis", "pilot", "forecast"];
        section.only(&keys)?;
    }
    let Some(target) = flag.or(number("target")?).or(method.gradient_target()) else {
        let message =
            format!("target is missing: {} has no target for |grad f| to take it from", method.name());
        return Err(
            section.map_or_else(|| Failure::input(&message), |section| section.complain("", &message))
        );
    };
    let rule = StopRule {
        target,
        delta: number("delta")?.unwrap_or(DELTA),
        grade: read_grade(section, oracle)?,
        share: number("share")?.unwrap_or(SHARE),
        budget: None,
    };
    rule.check(oracle).map_err(|error| match (&error, section) {
        (RequestError::Number { name: "target", .. }, _) if flag.is_some() => {
            Failure::input(format!("--certify: {error}"))
        }
        (RequestError::Number { name, .. }, Some(section)) => section.complain(name, &error.to_string()),
        _ => Failure::input(&error),
    })?;
    let pilot = section.map_or(Ok(None), |section| section.samples("pilot"))?.unwrap_or(PILOT);
    let flown = match section.filter(|section| section.item("forecast").is_some()) {
        None => None,
        Some(section) => Some(read_forecast(&section.section("forecast")?)?),
    };
    Ok(Some(Certification { rule, pilot, flown }))
}

fn read_forecast(table: &Section<'_>) -> Result<Flown, Failure> {
    table.only(&["pilot", "low", "middle", "high"])?;
    let samples = table.samples("pilot")?.ok_or_else(|| table.missing("pilot", SAMPLES))?;
    let forecast = match table.item("middle") {
        None => None,
        Some(_) => Some(Forecast {
            low: table.required("low")?,
            middle: table.required("middle")?,
            high: table.required("high")?,
        }),
    };
    Ok(Flown { forecast, samples })
}

/// The target that a file has for the norm of the gradient, in its [certificate] or its recipe.
pub(crate) fn certificate_target(path: &Path) -> Result<Option<f64>, Failure> {
    let spec = read(path, &Overrides::default())?;
    Ok(spec.certification.map(|certification| certification.rule.target).or(spec.method.gradient_target()))
}

/// What a file declares about its noise, at the start: growth and floor, or, where it grows with another power of the
/// distance than 2, only the usual kurtosis.
pub(crate) fn declared_noise(oracle: &Noisy) -> Grade {
    let Noise { growth, floor, .. } = oracle.noise();
    if oracle.exponent == 2.0 {
        Grade::Growth { growth, floor, distance: 0.0 }
    } else {
        Grade::Kurtosis(KURTOSIS)
    }
}

/// What a certificate rests on: what the table says, or else what [noise] says about the noise.
fn read_grade(section: Option<&Section<'_>>, oracle: &Noisy) -> Result<Grade, Failure> {
    let of_problem = declared_noise(oracle);
    let Some(section) = section else { return Ok(of_problem) };
    let [variance, growth, floor, kurtosis] =
        ["variance", "growth", "floor", "kurtosis"].map(|key| section.number(key));
    match (variance?, growth?, floor?, kurtosis?) {
        (None, None, None, None) => Ok(of_problem),
        (Some(variance), None, None, None) => Ok(Grade::Variance(variance)),
        (None, Some(growth), Some(floor), None) => Ok(Grade::Growth { growth, floor, distance: 0.0 }),
        (None, None, None, Some(kurtosis)) => Ok(Grade::Kurtosis(kurtosis)),
        _ => {
            let message = "expected one of: variance; growth with floor; kurtosis; or none of them, for the growth \
                           and floor of [noise]";
            Err(section.complain("", message))
        }
    }
}

/// What the user chooses, as against what is true of the problem.
const CHOICES: [Constant; 3] = [Constant::Target, Constant::Variance, Constant::Lambda];

fn read_recipe(
    section: &Section<'_>,
    row: &recipe::Row,
    oracle: &Noisy,
    target: Option<f64>,
) -> Result<Method, Failure> {
    section.only(&["name", "constants", "target", "variance", "lambda"])?;
    let proved = proved_constants(row, oracle);
    let item = section
        .item("constants")
        .ok_or_else(|| section.missing("constants", "\"problem\", or a table of constants"))?;
    let (mut constants, given, estimated) = if let Some(table) = item.as_table_like() {
        let table = section.subsection("constants", table);
        let (constants, estimated) = read_constants(&table, row)?;
        (constants, Some(table), estimated)
    } else if item.as_str() == Some("problem") {
        if let Some(doubt) = not_covered(row, oracle).or_else(|| other_growth(oracle)) {
            return Err(section.complain("constants", &doubt));
        }
        (row.relevant(&proved), None, Vec::new())
    } else {
        return Err(section.wrong_type("constants", "\"problem\" or a table", item));
    };
    for choice in CHOICES {
        if let Some(value) = section.number(choice.name())? {
            constants.set(choice, value);
        }
    }
    if let Some(target) = target {
        constants.set(Constant::Target, target);
    }
    let refuse = |error: RecipeError| {
        let failure = refuse_recipe(section, given.as_ref(), target, &error);
        match error {
            RecipeError::TooMany { .. } => failure.hint("a larger target or less noise needs fewer"),
            _ => failure,
        }
    };
    let plan = row.plan(&constants).map_err(refuse)?;
    // Constants at the very edge of the doubles may be admitted and still give a step size of zero.
    plan.schedule.check().map_err(|error| section.complain("", &format!("{}: {error}", row.name)))?;
    let mut doubts = if given.is_some() { doubts(row, oracle, &constants, &proved) } else { Vec::new() };
    doubts.extend(estimates(&estimated));
    Ok(Method::Recipe { constants, plan, doubts, estimated })
}

/// Points at the constant that is to blame, in its flag, its table or its section; where none is, at the
/// target, which is the one to choose.
fn refuse_recipe(
    section: &Section<'_>,
    table: Option<&Section<'_>>,
    flag: Option<f64>,
    error: &RecipeError,
) -> Failure {
    let message = error.to_string();
    let key = error.constant().unwrap_or("target");
    match table {
        _ if key == "target" && flag.is_some() => Failure::input(format!("--target: {message}")),
        Some(table) if table.item(key).is_some() => table.complain(key, &message),
        Some(table) if !CHOICES.iter().any(|choice| choice.name() == key) => table.complain("", &message),
        _ if section.item(key).is_some() => section.complain(key, &message),
        _ => section.complain("", &message),
    }
}

/// The key under which a table of constants names those that were measured and not proved.
const ESTIMATED: &str = "estimated";

/// The constants, and which of them are estimates. Estimates that the recipe does not use are left out, so that what
/// `pasta calibrate` prints serves every recipe.
fn read_constants(table: &Section<'_>, row: &recipe::Row) -> Result<(Constants, Vec<Constant>), Failure> {
    let natural: Vec<_> = Constant::ALL.iter().copied().filter(|c| !CHOICES.contains(c)).collect();
    table.only(&natural.iter().map(|c| c.name()).chain([ESTIMATED]).collect::<Vec<_>>())?;
    let mut estimated = read_estimated(table, &natural)?;
    let used = |constant: &Constant| row.needs.contains(constant) || row.takes.contains(constant);
    let mut constants = Constants::default();
    for constant in natural {
        if let Some(value) = table.number(constant.name())?
            && (used(&constant) || !estimated.contains(&constant))
        {
            constants.set(constant, value);
        }
    }
    estimated.retain(used);
    Ok((constants, estimated))
}

fn read_estimated(table: &Section<'_>, natural: &[Constant]) -> Result<Vec<Constant>, Failure> {
    let Some(item) = table.item(ESTIMATED) else { return Ok(Vec::new()) };
    let expected = "a list of names of constants, such as [\"smoothness\", \"growth\"]";
    let array = item.as_array().ok_or_else(|| table.wrong_type(ESTIMATED, expected, item))?;
    let constant = |value: &toml_edit::Value| {
        let name = value.as_str().ok_or_else(|| table.wrong_type(ESTIMATED, expected, item))?;
        let Some(constant) = natural.iter().find(|constant| constant.name() == name) else {
            let names: Vec<_> = natural.iter().map(|constant| constant.name()).collect();
            let message = format!("unknown constant {name:?}; expected some of {}", names.join(", "));
            return Err(table.complain(ESTIMATED, &message));
        };
        match table.item(name) {
            Some(_) => Ok(*constant),
            None => {
                Err(table.complain(ESTIMATED, &format!("{name} is called an estimate, but is not given")))
            }
        }
    };
    array.iter().map(constant).collect()
}

/// That constants were measured is a reason why the promise may fail.
fn estimates(estimated: &[Constant]) -> Option<String> {
    let names: Vec<_> = estimated.iter().map(|constant| constant.name()).collect();
    match names.as_slice() {
        [] => None,
        [name] => Some(format!("{name} is an estimate")),
        _ => Some(format!("{} are estimates", names.join(", "))),
    }
}

fn proved_constants(row: &recipe::Row, oracle: &Noisy) -> Constants {
    let mut proved = proved_by(oracle);
    if let Some(mu) = (row.mu)(&oracle.objective().facts()) {
        proved.set(Constant::Mu, mu);
    }
    proved
}

/// What is proved about the problem of a file, seen from its start; of noise that does not grow with the square of the
/// distance, nothing.
pub(crate) fn proved_by(oracle: &Noisy) -> Constants {
    let all = Constants::of(oracle.objective(), &oracle.noise(), oracle.start());
    let of_noise = [Constant::MsSmoothness, Constant::Growth, Constant::Floor];
    let mut proved = Constants::default();
    let kept = all.known().filter(|(c, _)| oracle.exponent == 2.0 || !of_noise.contains(c));
    kept.for_each(|(constant, value)| proved.set(constant, value));
    proved
}

/// Why BG-0 may fail: the noise grows with another power of the distance than the square.
fn other_growth(oracle: &Noisy) -> Option<String> {
    let exponent = oracle.exponent;
    let consequence = match exponent {
        2.0 => return None,
        above if above > 2.0 => "so no B and b bound it: BG-0 fails",
        _ => "and BG-0 is proved only for the power 2",
    };
    Some(format!("the noise grows with the distance to the power {exponent} (variance), {consequence}"))
}

/// Why the theorem may say nothing about this problem.
fn not_covered(row: &recipe::Row, oracle: &Noisy) -> Option<String> {
    let objective = oracle.objective();
    (!(row.applies)(&objective.facts())).then(|| {
        let (problem, name, what) = (objective.identity(), row.name, row.for_problems);
        format!("{name} is not proved to cover {problem}; it is for: {what}")
    })
}

/// The truth is itself a rounded number: a declared constant may miss it by so much, relatively.
const ROUNDING: f64 = 1e-12;

/// Why the promise may fail although the constants as given admit it.
fn doubts(row: &recipe::Row, oracle: &Noisy, given: &Constants, proved: &Constants) -> Vec<String> {
    let mut doubts: Vec<_> = not_covered(row, oracle).into_iter().chain(other_growth(oracle)).collect();
    for (constant, value) in given.known().filter(|(c, _)| !CHOICES.contains(c)) {
        if let Some(truth) = proved.get(constant) {
            // mu is a bound from below, all the others are bounds from above.
            let too_bold = match constant {
                Constant::Mu => value > truth * (1.0 + ROUNDING),
                _ => value < truth * (1.0 - ROUNDING),
            };
            if too_bold {
                doubts.push(format!("{} = {value} is declared, but {truth} is true", constant.name()));
            }
        }
    }
    doubts
}

/// The file at hand.
#[derive(Clone, Copy)]
struct Source<'d> {
    file: &'d str,
    text: &'d str,
}

/// A table of the file, with its full name and line for complaints.
struct Section<'d> {
    source: Source<'d>,
    name: String,
    table: &'d dyn TableLike,
    line: usize,
}

impl<'d> Section<'d> {
    fn item(&self, key: &str) -> Option<&'d Item> {
        self.table.get(key)
    }

    fn keys(&self) -> impl Iterator<Item = &'d str> {
        self.table.iter().map(|(key, _)| key)
    }

    fn section(&self, key: &'d str) -> Result<Section<'d>, Failure> {
        match self.item(key) {
            None => Err(self.missing(&format!("[{key}]"), "a table")),
            Some(item) => match item.as_table_like() {
                Some(table) => Ok(self.subsection(key, table)),
                None => Err(self.wrong_type(key, "a table", item)),
            },
        }
    }

    fn subsection(&self, key: &'d str, table: &'d dyn TableLike) -> Section<'d> {
        let name = if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) };
        Section { source: self.source, name, table, line: self.line_of(key) }
    }

    fn number(&self, key: &str) -> Result<Option<f64>, Failure> {
        let Some(item) = self.item(key) else { return Ok(None) };
        let number = item.as_float().or_else(|| item.as_integer().map(|n| n as f64));
        number.map(Some).ok_or_else(|| self.wrong_type(key, "a number", item))
    }

    fn required(&self, key: &str) -> Result<f64, Failure> {
        match self.number(key)? {
            Some(number) if number.is_finite() => Ok(number),
            Some(number) => Err(self.complain(key, &format!("expected a finite number, got {number}"))),
            None => Err(self.missing(key, "a number")),
        }
    }

    /// A whole number, which may be written as 1e6.
    fn whole(&self, key: &str, expected: &str) -> Result<Option<u128>, Failure> {
        let Some(item) = self.item(key) else { return Ok(None) };
        let whole = match item.as_integer() {
            Some(n) => u128::try_from(n).ok(),
            None => item.as_float().and_then(whole_float),
        };
        whole.map(Some).ok_or_else(|| self.wrong_type(key, expected, item))
    }

    fn samples(&self, key: &str) -> Result<Option<u128>, Failure> {
        self.whole(key, SAMPLES)
    }

    fn count(&self, key: &str) -> Result<Option<u64>, Failure> {
        match self.whole(key, WHOLE)? {
            Some(n) if n > u128::from(LARGEST) => {
                Err(self.complain(key, &format!("expected {WHOLE}, got {:e}", n as f64)))
            }
            whole => Ok(whole.map(|n| n as u64)),
        }
    }

    fn text(&self, key: &str) -> Result<Option<&'d str>, Failure> {
        let Some(item) = self.item(key) else { return Ok(None) };
        item.as_str().map(Some).ok_or_else(|| self.wrong_type(key, "a string", item))
    }

    fn required_text(&self, key: &str, expected: &str) -> Result<&'d str, Failure> {
        self.text(key)?.ok_or_else(|| self.missing(key, expected))
    }

    fn numbers(&self, key: &str) -> Result<Option<Vec<f64>>, Failure> {
        let Some(item) = self.item(key) else { return Ok(None) };
        let numbers = item.as_array().map(|array| {
            let number = |v: &toml_edit::Value| v.as_float().or_else(|| v.as_integer().map(|n| n as f64));
            array.iter().map(number).collect::<Option<Vec<_>>>()
        });
        numbers.flatten().map(Some).ok_or_else(|| self.wrong_type(key, "a list of numbers", item))
    }

    fn parameter(&self, key: &str) -> Result<problems::Value, Failure> {
        match self.item(key) {
            Some(item) if item.is_array() => {
                Ok(problems::Value::List(self.numbers(key)?.unwrap_or_default()))
            }
            _ => Ok(problems::Value::Number(self.required(key)?)),
        }
    }

    /// The start: a list, or one number for all coordinates.
    fn start(&self, dimension: usize) -> Result<Vec<f64>, Failure> {
        let expected = "a list of numbers, or one number for all coordinates";
        let start = match self.item("start") {
            None => return Err(self.missing("start", expected)),
            Some(item) if item.is_array() => self.numbers("start")?.unwrap_or_default(),
            Some(item) if item.is_str() => return Err(self.wrong_type("start", expected, item)),
            Some(_) => vec![self.required("start")?; dimension],
        };
        if start.len() != dimension {
            let got = start.len();
            let message =
                format!("expected as many numbers as the dimension, which is {dimension}; got {got}");
            return Err(self.complain("start", &message));
        }
        match start.iter().find(|x| !x.is_finite()) {
            Some(x) => Err(self.complain("start", &format!("expected finite numbers, got {x}"))),
            None => Ok(start),
        }
    }

    /// Refuses keys that are not among these.
    fn only(&self, known: &[&str]) -> Result<(), Failure> {
        match self.keys().find(|key| !known.contains(key)) {
            None => Ok(()),
            Some(key) => {
                Err(self.complain(key, &format!("unknown key; expected one of {}", known.join(", "))))
            }
        }
    }

    fn missing(&self, key: &str, expected: &str) -> Failure {
        self.complain("", &format!("{key} is missing; expected {expected}"))
    }

    fn wrong_type(&self, key: &str, expected: &str, got: &Item) -> Failure {
        // As it is written, if that is one line.
        let written = got.as_value().and_then(toml_edit::Value::span).map(|span| &self.source.text[span]);
        let written = written.filter(|text| !text.contains('\n')).unwrap_or_default();
        let got = format!("{} {written}", got.type_name());
        self.complain(key, &format!("expected {expected}, got {}", got.trim_end()))
    }

    /// `file:line: [section] key: message`; an empty key speaks of the whole section.
    fn complain(&self, key: &str, message: &str) -> Failure {
        let line = if key.is_empty() { self.line } else { self.line_of(key) };
        let section = if self.name.is_empty() { String::new() } else { format!("[{}] ", self.name) };
        let key = if key.is_empty() { String::new() } else { format!("{key}: ") };
        Failure::input(format!("{}:{line}: {section}{key}{message}", self.source.file))
    }

    fn line_of(&self, key: &str) -> usize {
        let span = self.table.get_key_value(key).and_then(|(key, item)| key.span().or(item.span()));
        span.map_or(self.line, |span| line_at(self.source.text, span.start))
    }
}

fn line_at(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|b| *b == b'\n').count() + 1
}
