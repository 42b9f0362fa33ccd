//! The table `recipe`: which method, with which constants, and why its promise may fail.

use pasta_opt::method::{self, Engine, MethodError, Values};
use pasta_opt::objective::{Facts, Measure, Objective};
use pasta_opt::recipe::{self, Constant, Constants, Plan, RecipeError};
use pasta_opt::walk::StopRule;

use super::problem::{Problem, Truth};
use super::section::{Section, WHOLE, meant};
use pasta_report::console::Failure;

/// What to run.
#[derive(Debug)]
pub(crate) struct Method {
    pub(crate) name: &'static str,
    pub(crate) engine: Engine,
    /// For a recipe.
    pub(crate) promise: Option<Promise>,
    /// Whether the method without constants is to run beside a recipe.
    pub(crate) fallback: bool,
}

/// A recipe's plan, and what speaks against its promise.
#[derive(Debug)]
pub(crate) struct Promise {
    pub(crate) constants: Constants,
    pub(crate) plan: Plan,
    /// Reasons why the promise may not hold for this problem; that some constants are only `estimated` is one.
    pub(crate) doubts: Vec<String>,
    pub(crate) estimated: Vec<Constant>,
    /// Whether the constants are proved, and not given.
    pub(crate) proved: bool,
}

impl Method {
    /// The method without constants.
    pub(super) fn auto() -> Self {
        Self { name: AUTO, engine: Engine::Auto { target: None }, promise: None, fallback: false }
    }

    /// Gives the method without constants something to aim at.
    pub(super) fn aim(&mut self, at: Option<f64>) {
        if let Engine::Auto { target } = &mut self.engine {
            *target = at;
        }
    }

    /// Runs the method without constants beside a recipe that asks for it: the certificates of this rule choose between them.
    pub(super) fn hedge(&mut self, rule: StopRule) {
        if let Some(Promise { plan, .. }) = self.promise.as_ref().filter(|_| self.fallback) {
            self.engine = Engine::Hedged { schedule: plan.schedule.clone(), rule };
        }
    }

    /// Whether it has an end of its own.
    pub(super) fn is_endless(&self) -> bool {
        matches!(self.engine, Engine::Auto { .. })
    }

    /// The target for the norm of the gradient, if it is a recipe that promises one.
    pub(crate) fn gradient_target(&self) -> Option<f64> {
        let Promise { constants, plan, .. } = self.promise.as_ref()?;
        let promised = plan.guarantee.measure == Measure::GradientSquared;
        constants.get(Constant::Target).filter(|_| promised)
    }

    /// The same method for a gradient of norm `target`, if it is a recipe that promises one and admits it; as it is, finer
    /// than asked, otherwise.
    pub(super) fn aimed_at(&self, target: f64) -> Engine {
        if self.is_endless() {
            return Engine::Auto { target: Some(target) };
        }
        let aimed = || {
            self.gradient_target()?;
            let Promise { constants, plan, .. } = self.promise.as_ref()?;
            let mut constants = *constants;
            constants.set(Constant::Target, target);
            Some(Engine::Schedule(recipe::find(plan.recipe)?.plan(&constants).ok()?.schedule))
        };
        aimed().unwrap_or_else(|| self.engine.clone())
    }

    /// The most samples that it will draw, or is expected to draw; `None` where that is not planned.
    pub(crate) fn planned_samples(&self) -> Option<f64> {
        match (&self.promise, &self.engine) {
            // What runs beside a recipe has no plan.
            (_, Engine::Hedged { .. }) | (None, Engine::Schedule(_) | Engine::Auto { .. }) => None,
            (Some(promise), _) => Some(promise.plan.cost.samples),
            (None, Engine::Baseline(settings)) => Some(settings.steps as f64 * settings.batch as f64),
        }
    }
}

/// The key that names what runs beside a recipe.
pub(super) const FALLBACK: &str = "fallback";

/// The method of a file that names none.
pub(super) const AUTO: &str = "auto";

/// A target that a flag gives.
#[derive(Debug, Clone, Copy)]
pub(super) struct Aim {
    pub(super) flag: &'static str,
    pub(super) target: f64,
}

pub(super) fn read_method(
    section: &Section<'_>,
    problem: &Problem,
    aim: Option<Aim>,
) -> Result<Method, Failure> {
    let name = section.required_text("name", "the name of a recipe")?;
    let Some(method) = method::find(name) else {
        let all: Vec<_> = method::METHODS.iter().map(|method| method.name).collect();
        let expected = format!("unknown recipe {name:?}; expected one of {}", all.join(", "));
        return Err(meant(section.complain("name", &expected), name, all));
    };
    if let Some(row) = method.row() {
        return read_recipe(section, row, problem, aim);
    }
    let name = method.name;
    if !method.has_steps() {
        section.only(&["name"])?;
        return Ok(Method::auto());
    }
    if let Some(Aim { flag, .. }) = aim {
        let hint = "`steps` says how long it runs; --certify EPS stops it on a certificate";
        return Err(Failure::input(format!("{flag}: {name} has no target")).hint(hint));
    }
    let settings = method.settings();
    let known: Vec<_> =
        ["name", "steps", "batch"].into_iter().chain(settings.iter().map(|setting| setting.name)).collect();
    section.only(&known)?;
    let mut values = Values::default();
    for setting in settings {
        if setting.default.is_none() || section.item(setting.name).is_some() {
            values.set(setting.name, section.required(setting.name)?);
        }
    }
    let steps = section.count("steps")?.ok_or_else(|| section.missing("steps", WHOLE))?;
    let batch = section.count("batch")?.unwrap_or(1);
    let engine = method.engine(&values, steps, batch).map_err(|error| match error {
        MethodError::Number { error, .. } => {
            section.complain(error.name, &format!("expected {}, got {}", error.needs, error.got))
        }
        other => section.complain("", &other.to_string()),
    })?;
    Ok(Method { name, engine, promise: None, fallback: false })
}

/// What the user chooses, as against what is true of the problem.
const CHOICES: [Constant; 3] = [Constant::Target, Constant::Variance, Constant::Lambda];

fn read_recipe(
    section: &Section<'_>,
    row: &'static recipe::RecipeRow,
    problem: &Problem,
    aim: Option<Aim>,
) -> Result<Method, Failure> {
    section.only(&["name", "constants", "target", "variance", "lambda", FALLBACK])?;
    let fallback = match section.text(FALLBACK)? {
        None => false,
        Some(AUTO) => true,
        Some(other) => {
            let message = format!("unknown fall-back {other:?}; expected {AUTO:?}, or no fall-back");
            return Err(section.complain(FALLBACK, &message));
        }
    };
    let item = section
        .item("constants")
        .ok_or_else(|| section.missing("constants", "\"problem\", or a table of constants"))?;
    let (mut constants, given, estimated) = if let Some(table) = item.as_table_like() {
        let table = section.subsection("constants", table);
        let (constants, estimated) = read_constants(&table, row)?;
        (constants, Some(table), estimated)
    } else if item.as_str() == Some("problem") {
        let proved = proved_for(row, problem).map_err(|doubt| section.complain("constants", &doubt))?;
        (row.relevant(&proved), None, Vec::new())
    } else {
        return Err(section.wrong_type("constants", "\"problem\" or a table", item));
    };
    for choice in CHOICES {
        if let Some(value) = section.number(choice.name())? {
            constants.set(choice, value);
        }
    }
    if let Some(Aim { target, .. }) = aim {
        constants.set(Constant::Target, target);
    }
    let refuse = |error: RecipeError| {
        let failure = refuse_recipe(section, given.as_ref(), aim, &error);
        match error {
            RecipeError::TooMany { .. } => failure.hint("a larger target or less noise needs fewer"),
            _ => failure,
        }
    };
    let plan = row.plan(&constants).map_err(refuse)?;
    // Constants at the very edge of the doubles may be admitted and still give a step size of zero.
    plan.schedule.check().map_err(|error| section.complain("", &format!("{}: {error}", row.name)))?;
    let mut doubts = match &problem.truth {
        Some(truth) if given.is_some() => doubts(row, truth, &constants),
        _ => Vec::new(),
    };
    doubts.extend(estimates(&estimated));
    let engine = Engine::Schedule(plan.schedule.clone());
    Ok(Method {
        name: row.name,
        engine,
        promise: Some(Promise { constants, plan, doubts, estimated, proved: given.is_none() }),
        fallback,
    })
}

/// A recipe with the constants that are proved about the problem.
pub(crate) fn proved_recipe(
    row: &'static recipe::RecipeRow,
    problem: &Problem,
    target: f64,
) -> Result<Method, String> {
    let mut constants = row.relevant(&proved_for(row, problem)?);
    constants.set(Constant::Target, target);
    let plan = row.plan(&constants).map_err(|error| error.to_string())?;
    plan.schedule.check().map_err(|error| error.to_string())?;
    let engine = Engine::Schedule(plan.schedule.clone());
    let promise = Some(Promise { constants, plan, doubts: Vec::new(), estimated: Vec::new(), proved: true });
    Ok(Method { name: row.name, engine, promise, fallback: false })
}

/// What is proved about the problem, or why the recipe cannot rest on that.
fn proved_for(row: &recipe::RecipeRow, problem: &Problem) -> Result<Constants, String> {
    let Some((mut proved, facts)) = problem.proved()? else {
        return Err("nothing is proved about this problem; give a table [recipe.constants]".into());
    };
    let name = || problem.objective().map_or_else(|| problem.words.clone(), Objective::identity);
    if let Some(doubt) =
        not_covered(row, &facts, name).or_else(|| problem.truth.as_ref().and_then(other_growth))
    {
        return Err(doubt);
    }
    if let Some(mu) = (row.mu)(&facts) {
        proved.set(Constant::Mu, mu);
    }
    Ok(proved)
}

/// Points at the constant that is to blame, in its flag, its table or its section; where none is, at the
/// target, which is the one to choose.
fn refuse_recipe(
    section: &Section<'_>,
    table: Option<&Section<'_>>,
    aim: Option<Aim>,
    error: &RecipeError,
) -> Failure {
    let message = error.to_string();
    let key = error.constant().unwrap_or("target");
    match (table, aim) {
        (_, Some(Aim { flag, .. })) if key == "target" => Failure::input(format!("{flag}: {message}")),
        (Some(table), _) if table.item(key).is_some() => table.complain(key, &message),
        (Some(table), _) if !CHOICES.iter().any(|choice| choice.name() == key) => {
            table.complain("", &message)
        }
        _ if section.item(key).is_some() => section.complain(key, &message),
        _ => section.complain("", &message),
    }
}

/// The key under which a table of constants names those that were measured and not proved.
const ESTIMATED: &str = "estimated";

/// The constants, and which of them are estimates. Estimates that the recipe does not use are left out, so that what
/// `pasta calibrate` prints serves every recipe.
fn read_constants(
    table: &Section<'_>,
    row: &recipe::RecipeRow,
) -> Result<(Constants, Vec<Constant>), Failure> {
    let natural: Vec<_> = Constant::ALL.iter().copied().filter(|c| !CHOICES.contains(c)).collect();
    table.only(&natural.iter().map(|c| c.name()).chain([ESTIMATED]).collect::<Vec<_>>())?;
    let mut estimated = read_estimated(table, &natural)?;
    let mut constants = Constants::default();
    for constant in natural {
        if let Some(value) = table.number(constant.name())?
            && (row.uses(constant) || !estimated.contains(&constant))
        {
            constants.set(constant, value);
        }
    }
    estimated.retain(|constant| row.uses(*constant));
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

fn proved_constants(row: &recipe::RecipeRow, truth: &Truth) -> Constants {
    let mut proved = truth.proved();
    if let Some(mu) = (row.mu)(&truth.objective().facts()) {
        proved.set(Constant::Mu, mu);
    }
    proved
}

/// Why BG-0 may fail: the noise grows with another power of the distance than the square.
fn other_growth(truth: &Truth) -> Option<String> {
    let exponent = truth.exponent();
    let consequence = match exponent {
        2.0 => return None,
        above if above > 2.0 => "so no B and b bound it: BG-0 fails",
        _ => "and BG-0 is proved only for the power 2",
    };
    Some(format!("the noise grows with the distance to the power {exponent} (variance), {consequence}"))
}

/// Why the theorem may say nothing about this problem.
fn not_covered(row: &recipe::RecipeRow, facts: &Facts, problem: impl FnOnce() -> String) -> Option<String> {
    (!(row.applies)(facts)).then(|| {
        let (problem, name, what) = (problem(), row.name, row.for_problems);
        format!("{name} is not proved to cover {problem}; it is for: {what}")
    })
}

/// The truth is itself a rounded number: a declared constant may miss it by so much, relatively.
const ROUNDING: f64 = 1e-12;

/// Why the promise may fail although the constants as given admit it.
fn doubts(row: &recipe::RecipeRow, truth: &Truth, given: &Constants) -> Vec<String> {
    let proved = proved_constants(row, truth);
    let mut doubts: Vec<_> = not_covered(row, &truth.objective().facts(), || truth.objective().identity())
        .into_iter()
        .chain(other_growth(truth))
        .collect();
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
