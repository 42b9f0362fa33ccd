//! `pasta plan --all`: the recipes side by side.

use pasta_opt::recipe::{Constant, RecipeError, TABLE};
use serde::Serialize;

use super::limit::{self, Limit};
use super::recipe::{Given, described};
use super::single::{Planned, plan};
use pasta_report::console::{self, Exit, Failure, Report};
use pasta_report::constants::{Echo, equations};
use pasta_report::number::at_most;
use pasta_report::{Column, Table};

/// Every recipe: planned, or why not.
#[derive(Serialize)]
struct Comparison {
    constants: Echo,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<f64>,
    plans: Vec<Planned>,
    missing: Vec<Missing>,
    refused: Vec<Refused>,
    lower_bounds: Vec<Limit>,
}

#[derive(Serialize)]
struct Missing {
    recipe: &'static str,
    needs: Vec<Constant>,
}

#[derive(Serialize)]
struct Refused {
    recipe: &'static str,
    reason: String,
}

impl Refused {
    fn new(recipe: &'static str, reason: &RecipeError) -> Self {
        let reason = reason.to_string();
        // The recipe has a key, or a column, of its own.
        let bare = reason.strip_prefix(recipe).and_then(|rest| rest.strip_prefix(": "));
        Self { recipe, reason: bare.unwrap_or(&reason).to_owned() }
    }
}

pub(super) fn run(given: &Given, as_json: bool) -> Result<Exit, Failure> {
    if given.constants.get(Constant::Target).is_none() && given.budget.is_none() {
        let (name, described) = (Constant::Target.name(), described(Constant::Target));
        return Err(Failure::input(format!("--all: needs {name} ({described}), or a budget")));
    }
    let comparison = Comparison::of(given);
    let none = comparison.plans.is_empty();
    // One object is enough for a program; people see what each recipe lacks.
    if !(none && as_json) {
        console::print(&comparison, as_json)?;
    }
    if none {
        return Err(Failure::input("no recipe can be planned from these constants"));
    }
    Ok(Exit::Done)
}

impl Comparison {
    fn of(given: &Given) -> Self {
        let constants = &given.constants;
        let mut comparison = Self {
            constants: Echo(*constants),
            budget: given.budget,
            plans: Vec::new(),
            missing: Vec::new(),
            refused: Vec::new(),
            lower_bounds: Vec::new(),
        };
        for row in TABLE {
            let needs = given.missing(row);
            if !needs.is_empty() {
                comparison.missing.push(Missing { recipe: row.name, needs });
                continue;
            }
            match plan(row, constants, given.budget) {
                Ok(planned) => comparison.plans.push(planned),
                Err(reason) => comparison.refused.push(Refused::new(row.name, &reason)),
            }
        }
        for (theorem, limit) in limit::all(constants) {
            match limit {
                Ok(limit) => comparison.lower_bounds.push(limit),
                Err(reason) => comparison.refused.push(Refused::new(theorem, &reason)),
            }
        }
        comparison
    }

    fn plans(&self) -> String {
        let names = ["recipe", "eps", "K", "S", "samples", "evals", "promise"];
        let mut columns = Column::all(b"lrrrrrl", names);
        let mut rows: Vec<_> = self.plans.iter().map(Planned::cells).collect();
        // The target is a column only where it differs from row to row.
        if self.budget.is_none() {
            columns.remove(1);
            rows.iter_mut().for_each(|row| drop(row.remove(1)));
        }
        Table { caption: String::new(), columns, rows }.text()
    }

    fn legend(&self) -> String {
        let mut legend = "K steps an epoch, S epochs; samples and evaluations (evals) at most, expected.\n\
             A target bounds f - inf f itself, but |grad f|^2 by its square."
            .to_owned();
        if self.plans.iter().any(Planned::is_about_the_envelope) {
            legend += "\nphi is the Moreau envelope of f with parameter 1/lambda.";
        }
        legend
    }

    /// Why the other recipes are not planned, by name.
    fn others(&self) -> Vec<(&'static str, String)> {
        let refused = self.refused.iter().map(|Refused { recipe, reason }| (*recipe, reason.clone()));
        let missing = self.missing.iter().map(|Missing { recipe, needs }| {
            let names: Vec<_> = needs.iter().map(|c| format!("{} ({})", c.name(), c.symbol())).collect();
            (*recipe, format!("needs {}", names.join(", ")))
        });
        refused.chain(missing).collect()
    }
}

impl Report for Comparison {
    fn text(&self) -> String {
        let mut rows = vec![("given", equations(self.constants.0.known()))];
        if let Some(budget) = self.budget {
            let bought = "eps is the best target that they buy";
            rows.push(("budget", format!("{} samples; {bought}", at_most(budget))));
        }
        let mut sections = vec![Table::labelled(rows).text()];
        if !self.plans.is_empty() {
            sections.push(self.plans());
            sections.push(self.legend());
        }
        let bounds: Vec<_> =
            self.lower_bounds.iter().map(|limit| (limit.theorem, limit.sentence())).collect();
        if !bounds.is_empty() {
            sections.push(format!("Lower bounds\n{}", Table::labelled(bounds).text()));
        }
        let others = self.others();
        if !others.is_empty() {
            sections.push(format!("Not planned\n{}", Table::labelled(others).text()));
        }
        sections.join("\n\n")
    }
}
