//! What a recipe asks for, and refusals by name.

use clap::builder::{PossibleValue, PossibleValuesParser};
use pasta_opt::recipe::{self, Constant, Constants, RecipeRow, TABLE};

use pasta_report::console::Failure;

/// The constants that were given, and the budget that may stand in for a target.
#[derive(Clone, Copy)]
pub(super) struct Given {
    pub(super) constants: Constants,
    pub(super) budget: Option<f64>,
}

/// The values that the command line accepts.
pub(super) fn names() -> PossibleValuesParser {
    TABLE.iter().map(|row| PossibleValue::new(row.name).help(row.for_problems)).collect::<Vec<_>>().into()
}

/// One line for each recipe.
pub(super) fn list() -> String {
    let lines: Vec<_> = TABLE.iter().map(|row| format!("  {:24}  {}", row.name, row.for_problems)).collect();
    lines.join("\n")
}

/// The recipe of that name.
pub(super) fn find(name: &str) -> Result<&'static RecipeRow, Failure> {
    recipe::find(name).ok_or_else(|| {
        Failure::input(format!("no recipe is called {name:?}")).hint(format!("the recipes are\n{}", list()))
    })
}

/// A constant in the paper's letter and in words.
pub(super) fn described(constant: Constant) -> String {
    format!("{}, {}", constant.symbol(), constant.meaning())
}

impl Given {
    /// No theorem has a use for a constant that is negative, infinite or not a number.
    pub(super) fn check_numbers(&self) -> Result<(), Failure> {
        for (constant, value) in self.constants.known() {
            if !(value >= 0.0 && value.is_finite()) {
                let (name, described) = (constant.name(), described(constant));
                let message = format!("{name} must be finite and not negative, but is {value}");
                return Err(Failure::input(message).hint(format!("{name} is {described}")));
            }
        }
        match self.budget {
            Some(budget) if !(budget > 0.0 && budget.is_finite()) => {
                Err(Failure::input(format!("the budget must be positive and finite, but is {budget}")))
            }
            _ => Ok(()),
        }
    }

    /// Refuses, by name, what a recipe does not use, and names with symbol and meaning what it needs and was not given.
    pub(super) fn check_for(&self, row: &RecipeRow) -> Result<(), Failure> {
        if let Some((unused, _)) = self.constants.known().find(|(constant, _)| !row.uses(*constant)) {
            let used: Vec<_> = row.needs.iter().chain(row.takes).map(|constant| constant.name()).collect();
            let message =
                format!("{}: does not use {}; it uses {}", row.name, unused.name(), used.join(", "));
            return Err(Failure::input(message));
        }
        let missing: Vec<_> = self.missing(row).into_iter().map(in_words).collect();
        let message = match missing.as_slice() {
            [] => return Ok(()),
            [one] => format!("{}: needs {one}", row.name),
            several => format!("{}: needs\n  {}", row.name, several.join("\n  ")),
        };
        Err(Failure::input(message).hint(self.usage(row)))
    }

    /// What a recipe needs and was not given. A budget stands in for the target.
    pub(super) fn missing(&self, row: &RecipeRow) -> Vec<Constant> {
        let known = |constant| {
            self.constants.get(constant).is_some() || (constant == Constant::Target && self.budget.is_some())
        };
        row.needs.iter().copied().filter(|&constant| !known(constant)).collect()
    }

    /// The whole command, with the values that were given.
    fn usage(&self, row: &RecipeRow) -> String {
        let value = |constant: Constant| match self.constants.get(constant) {
            Some(value) => value.to_string(),
            None => format!("<{}>", constant.symbol()),
        };
        let flags = row.needs.iter().map(|&constant| match self.budget {
            Some(budget) if constant == Constant::Target => format!("--budget {budget}"),
            _ => format!("--{} {}", constant.name(), value(constant)),
        });
        format!("pasta plan {} {}", row.name, flags.collect::<Vec<_>>().join(" "))
    }
}

/// A constant that is missing.
fn in_words(constant: Constant) -> String {
    let alternative = if constant == Constant::Target { ", or a budget" } else { "" };
    format!("{} ({}){alternative}", constant.name(), described(constant))
}
