//! The regimes by name: every recipe of the library, the lower bounds and the uncertainty principle.

use clap::builder::{PossibleValue, PossibleValuesParser};
use pasta_opt::recipe::{Constant, RecipeRow, TABLE};

use super::Arguments;
use super::limit::{THEOREMS, Theorem};
use pasta_report::console::Failure;

/// What can be planned or evaluated, and what it asks for.
pub(super) struct Regime {
    pub(super) name: &'static str,
    for_problems: &'static str,
    needs: &'static [Constant],
    takes: &'static [Constant],
    /// Flags that are not constants: those it needs, those it takes.
    needs_extra: &'static [&'static str],
    takes_extra: &'static [&'static str],
    pub(super) kind: Kind,
}

/// What answers for a regime.
pub(super) enum Kind {
    Recipe(&'static RecipeRow),
    Lower(&'static Theorem),
    Uncertainty,
}

/// All regimes.
pub(super) fn all() -> impl Iterator<Item = Regime> {
    let recipes = TABLE.iter().map(|row| Regime {
        name: row.name,
        for_problems: row.for_problems,
        needs: row.needs,
        takes: row.takes,
        needs_extra: &[],
        takes_extra: &["budget"],
        kind: Kind::Recipe(row),
    });
    let lower = THEOREMS.iter().map(|theorem| Regime {
        name: theorem.name,
        for_problems: theorem.about,
        needs: &theorem.needs,
        takes: &[],
        needs_extra: &[],
        takes_extra: &[],
        kind: Kind::Lower(theorem),
    });
    let uncertainty = Regime {
        name: "uncertainty",
        for_problems: "anchoring and samples that keep a step size stable",
        needs: &[Constant::Smoothness, Constant::Growth],
        takes: &[],
        needs_extra: &["eta"],
        takes_extra: &["beta", "batch"],
        kind: Kind::Uncertainty,
    };
    recipes.chain(lower).chain([uncertainty])
}

/// The values that the command line accepts.
pub(super) fn names() -> PossibleValuesParser {
    all().map(|regime| PossibleValue::new(regime.name).help(regime.for_problems)).collect::<Vec<_>>().into()
}

/// One line for each.
pub(super) fn list() -> String {
    let lines: Vec<_> =
        all().map(|regime| format!("  {:24}  {}", regime.name, regime.for_problems)).collect();
    lines.join("\n")
}

/// The regime of that name.
pub(super) fn find(name: &str) -> Result<Regime, Failure> {
    all().find(|regime| regime.name == name).ok_or_else(|| Failure::input(format!("{name} is not a regime")))
}

/// A constant in the paper's letter and in words.
pub(super) fn described(constant: Constant) -> String {
    format!("{}, {}", constant.symbol(), constant.meaning())
}

impl Regime {
    /// Refuses, by name, what was given but has no effect.
    pub(super) fn refuse_unused(&self, given: &Arguments) -> Result<(), Failure> {
        let constants = given.constants.0.known().map(|(constant, _)| constant.name());
        let mut unused =
            constants.chain(given.extras()).filter(|name| !self.names().any(|used| used == *name));
        let Some(name) = unused.next() else { return Ok(()) };
        let used: Vec<_> = self.names().filter(|used| *used != "budget").collect();
        Err(Failure::input(format!("{}: does not use {name}; it uses {}", self.name, used.join(", "))))
    }

    /// Names, with symbol and meaning, what has to be given and was not.
    pub(super) fn refuse_missing(&self, given: &Arguments) -> Result<(), Failure> {
        let extras = self.needs_extra.iter().filter(|extra| !given.extras().any(|name| name == **extra));
        let extras = extras.map(|name| format!("{name} (the step size)"));
        let constants = missing(self.needs, given).into_iter().map(|constant| {
            let alternative = match (constant, &self.kind) {
                (Constant::Target, Kind::Recipe(_)) => ", or a budget",
                _ => "",
            };
            format!("{} ({}){alternative}", constant.name(), described(constant))
        });
        let missing: Vec<_> = constants.chain(extras).collect();
        let message = match missing.as_slice() {
            [] => return Ok(()),
            [one] => format!("{}: needs {one}", self.name),
            several => format!("{}: needs\n  {}", self.name, several.join("\n  ")),
        };
        Err(Failure::input(message).hint(self.usage(given)))
    }

    /// Everything that it needs or takes.
    fn names(&self) -> impl Iterator<Item = &'static str> {
        let constants = self.needs.iter().chain(self.takes).map(|constant| constant.name());
        constants.chain(self.needs_extra.iter().chain(self.takes_extra).copied())
    }

    /// The whole command, with the values that were given.
    fn usage(&self, given: &Arguments) -> String {
        let value = |constant: Constant| match given.constants.0.get(constant) {
            Some(value) => value.to_string(),
            None => format!("<{}>", constant.symbol()),
        };
        let constants = self.needs.iter().map(|&constant| match given.budget {
            Some(budget) if constant == Constant::Target => format!("--budget {budget}"),
            _ => format!("--{} {}", constant.name(), value(constant)),
        });
        let extras = self.needs_extra.iter().map(|extra| format!("--{extra} <{extra}>"));
        let flags: Vec<_> = constants.chain(extras).collect();
        format!("pasta plan {} {}", self.name, flags.join(" "))
    }
}

/// What is needed and was not given. A budget stands in for the target.
pub(super) fn missing(needs: &[Constant], given: &Arguments) -> Vec<Constant> {
    let known = |constant| {
        given.constants.0.get(constant).is_some() || (constant == Constant::Target && given.budget.is_some())
    };
    needs.iter().copied().filter(|&constant| !known(constant)).collect()
}
