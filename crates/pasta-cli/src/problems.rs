//! `pasta problems`: the built-in problems, with their formulas and parameters.

use clap::Args;
use pasta_opt::problems::{Kind, Parameter, TABLE};
use serde::Serialize;

use pasta_report::console::{self, Exit, Failure, Report};
use pasta_report::{Column, Table, fitted};

/// List the built-in problems: what each computes and which parameters a file may give it.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let problems = TABLE.iter().map(|row| Listed {
        name: row.name,
        formula: row.formula,
        parameters: row.parameters.iter().map(Described::of).collect(),
    });
    console::print(&Problems { problems: problems.collect() }, arguments.json)
}

#[derive(Serialize)]
struct Problems {
    problems: Vec<Listed>,
}

#[derive(Serialize)]
struct Listed {
    name: &'static str,
    formula: &'static str,
    parameters: Vec<Described>,
}

#[derive(Serialize)]
struct Described {
    name: &'static str,
    meaning: &'static str,
    kind: Kind,
    needs: &'static str,
    default: Option<f64>,
}

impl Described {
    fn of(parameter: &Parameter) -> Self {
        let Parameter { name, meaning, kind, needs, default, .. } = *parameter;
        Self { name, meaning, kind, needs, default }
    }

    fn words(&self) -> String {
        let default = self.default.map_or(String::new(), |default| format!(" [{default} if not given]"));
        format!("{} ({}): {}{default}", self.name, self.meaning, self.needs)
    }
}

impl Report for Problems {
    fn text(&self) -> String {
        let rows = self.problems.iter().map(|row| {
            let parameters: Vec<_> = row.parameters.iter().map(Described::words).collect();
            vec![row.name.to_owned(), row.formula.to_owned(), parameters.join("\n")]
        });
        let table = Table {
            caption: String::new(),
            columns: ["name", "f(x)", "parameters"].map(Column::left).to_vec(),
            rows: rows.collect(),
        };
        let note = fitted(
            "The start is a list of numbers, or one number for all coordinates. With formulas = false a problem is \
             treated as a stranger's: nothing but samples.",
        );
        format!("{}\n\n{note}", table.text())
    }
}
