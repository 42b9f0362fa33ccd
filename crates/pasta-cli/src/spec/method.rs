//! The table `recipe`: which method, with which constants, and why its promise may fail.

use pasta_opt::baseline::{Baseline, Rule, Settings};
use pasta_opt::objective::Measure;
use pasta_opt::oracle::Noisy;
use pasta_opt::recipe::{self, Constant, Constants, Plan, RecipeError};
use pasta_opt::schedule::{Schedule, ScheduleError, Sequence};
use pasta_opt::walk::StartError;

use super::section::{Section, WHOLE};
use pasta_report::console::Failure;

/// What to run.
#[derive(Debug)]
pub(crate) enum Method {
    /// A recipe, with its constants and its plan. `doubts` are reasons why its promise may not hold for this problem;
    /// that some of its constants are only `estimated` is one.
    Recipe { constants: Box<Constants>, plan: Box<Plan>, doubts: Vec<String>, estimated: Vec<Constant> },
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
    pub(super) fn aimed_at(&self, target: f64) -> Result<Option<Schedule>, RecipeError> {
        let Self::Recipe { constants, plan, .. } = self else { return Ok(None) };
        let row = recipe::find(plan.recipe).filter(|_| plan.guarantee.measure == Measure::GradientSquared);
        let Some(row) = row else { return Ok(None) };
        let mut constants = **constants;
        constants.set(Constant::Target, target);
        row.plan(&constants).map(|plan| Some(plan.schedule))
    }
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

/// A target that a flag gives.
#[derive(Debug, Clone, Copy)]
pub(super) struct Aim {
    pub(super) flag: &'static str,
    pub(super) target: f64,
}

pub(super) fn read_method(
    section: &Section<'_>,
    oracle: &Noisy,
    aim: Option<Aim>,
) -> Result<Method, Failure> {
    let name = section.required_text("name", "the name of a recipe")?;
    if let Some(row) = recipe::find(name) {
        return read_recipe(section, row, oracle, aim);
    }
    let Some(&(name, keys)) = OTHERS.iter().find(|(other, _)| *other == name) else {
        let recipes = recipe::TABLE.iter().map(|row| row.name);
        let all: Vec<_> = recipes.chain(OTHERS.iter().map(|(name, _)| *name)).collect();
        let expected = format!("unknown recipe {name:?}; expected one of {}", all.join(", "));
        return Err(section.complain("name", &expected));
    };
    if let Some(Aim { flag, .. }) = aim {
        return Err(Failure::input(format!("{flag}: {name} has no target")));
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

/// What the user chooses, as against what is true of the problem.
const CHOICES: [Constant; 3] = [Constant::Target, Constant::Variance, Constant::Lambda];

fn read_recipe(
    section: &Section<'_>,
    row: &recipe::Row,
    oracle: &Noisy,
    aim: Option<Aim>,
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
    let mut doubts = if given.is_some() { doubts(row, oracle, &constants, &proved) } else { Vec::new() };
    doubts.extend(estimates(&estimated));
    Ok(Method::Recipe { constants: Box::new(constants), plan: Box::new(plan), doubts, estimated })
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
