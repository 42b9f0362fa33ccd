//! The table `recipe`: which method, with which constants.

use std::collections::BTreeMap;

use pasta_opt::method::{self, AUTO, MethodError};
use pasta_opt::recipe::{self, Constant, Constants, RecipeError};
use pasta_opt::run::{self, CHOICES, ChoiceError, Chosen, MethodSpec};

use super::problem::Problem;
use super::section::{Section, WHOLE, meant};
use crate::Failure;

/// The key that names what runs beside a recipe.
pub(super) const FALLBACK: &str = "fallback";

/// The table `recipe`: as it is written, and ready for the problem.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) spec: MethodSpec,
    pub(super) chosen: Chosen,
}

impl Read {
    /// The method of a file that names none: the quickest that is known for the problem.
    pub(super) fn usual(problem: &Problem) -> Self {
        Self { spec: MethodSpec::Usual, chosen: Chosen::usual(problem) }
    }
}

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
) -> Result<Read, Failure> {
    let name = section.required_text("name", "the name of a recipe")?;
    let Some(method) = method::find(name) else {
        let all = run::names();
        let expected = format!("unknown recipe {name:?}; expected one of {}", all.join(", "));
        return Err(meant(section.complain("name", &expected), name, all));
    };
    if let Some(row) = method.row() {
        return read_recipe(section, row, problem, aim);
    }
    let name = method.name;
    if !method.has_steps() {
        section.only(&["name"])?;
        if name == AUTO {
            return Ok(Read { spec: MethodSpec::Auto, chosen: Chosen::auto(None) });
        }
        let spec = MethodSpec::Named { name: name.into(), settings: BTreeMap::new(), steps: 1, batch: 1 };
        let chosen = spec.choose(problem).map_err(|error| section.complain("name", &error.to_string()))?;
        return Ok(Read { spec, chosen });
    }
    if let Some(Aim { flag, .. }) = aim {
        let hint = "`steps` says how long it runs; --certify EPS stops it on a certificate";
        return Err(Failure::input(format!("{flag}: {name} has no target")).hint(hint));
    }
    let settings = method.settings();
    let known: Vec<_> =
        ["name", "steps", "batch"].into_iter().chain(settings.iter().map(|setting| setting.name)).collect();
    section.only(&known)?;
    let mut values = BTreeMap::new();
    for setting in settings {
        if setting.default.is_none() || section.item(setting.name).is_some() {
            values.insert(setting.name.to_owned(), section.required(setting.name)?);
        }
    }
    let steps = section.count("steps")?.ok_or_else(|| section.missing("steps", WHOLE))?;
    let batch = section.count("batch")?.unwrap_or(1);
    let spec = MethodSpec::Named { name: name.into(), settings: values, steps, batch };
    let chosen = spec.choose(problem).map_err(|error| match error {
        ChoiceError::Method(MethodError::Number { error, .. }) => {
            section.complain(error.name, &format!("expected {}, got {}", error.needs, error.got))
        }
        other => section.complain("", &other.to_string()),
    })?;
    Ok(Read { spec, chosen })
}

/// The keys of the table `recipe` that names a recipe.
pub(super) const OF_RECIPES: [&str; 6] = ["name", "constants", "target", "variance", "lambda", FALLBACK];

fn read_recipe(
    section: &Section<'_>,
    row: &'static recipe::RecipeRow,
    problem: &Problem,
    aim: Option<Aim>,
) -> Result<Read, Failure> {
    section.only(&OF_RECIPES)?;
    let fallback = match section.text(FALLBACK)? {
        None => false,
        Some(AUTO) => true,
        Some(other) => {
            let message = format!("unknown fall-back {other:?}; expected {AUTO:?}, or no fall-back");
            return Err(meant(section.complain(FALLBACK, &message), other, [AUTO]));
        }
    };
    let item = section
        .item("constants")
        .ok_or_else(|| section.missing("constants", "\"problem\", or a table of constants"))?;
    let mut choices = Constants::default();
    for choice in CHOICES {
        if let Some(value) = section.number(choice.name())? {
            choices.set(choice, value);
        }
    }
    if let Some(Aim { target, .. }) = aim {
        choices.set(Constant::Target, target);
    }
    let (constants, estimated, table) = if let Some(table) = item.as_table_like() {
        let table = section.subsection("constants", table);
        let (mut constants, estimated) = read_constants(&table, row)?;
        choices.known().for_each(|(choice, value)| constants.set(choice, value));
        (constants, estimated, Some(table))
    } else if item.as_str() == Some("problem") {
        (choices, Vec::new(), None)
    } else {
        return Err(section.wrong_type("constants", "\"problem\" or a table", item));
    };
    let proved = table.is_none();
    let spec = MethodSpec::Recipe { name: row.name.into(), constants, estimated, proved, fallback };
    let chosen = spec.choose(problem).map_err(|error| match &error {
        ChoiceError::Recipe(error) => {
            let failure = refuse_recipe(section, table.as_ref(), aim, error);
            match error {
                RecipeError::TooMany { .. } => failure.hint("a larger target or less noise needs fewer"),
                _ => failure,
            }
        }
        ChoiceError::NotProved { .. } | ChoiceError::Table(_) => {
            section.complain("constants", &error.to_string())
        }
        _ => section.complain("", &error.to_string()),
    })?;
    Ok(Read { spec, chosen })
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
pub(super) const ESTIMATED: &str = "estimated";

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
            return Err(meant(table.complain(ESTIMATED, &message), name, names));
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
