//! `pasta init`: a small problem that works, to be changed into one's own.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use pasta_report::console::{self, Exit, Failure};
use pasta_report::write;

/// Write a small working problem into a new folder, to turn into your own.
#[derive(Args)]
pub(crate) struct Arguments {
    /// What you have: a simulator in any language, a table of data, or an oracle in Python or Rust.
    #[arg(value_enum, default_value_t = Kind::Simulator)]
    kind: Kind,
    /// The folder; it must not exist, or be empty [default: pasta-KIND]
    folder: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// A program that answers with stochastic gradients, here in Python, without a dependency
    Simulator,
    /// Rows in a file, fitted by a loss
    Table,
    /// A script for the package pasta_opt
    Python,
    /// A program with the crate pasta-opt
    Rust,
}

/// A file: its name and its text.
type Template = (&'static str, &'static str);

const SIMULATOR: &[Template] = &[
    ("sim.py", include_str!("../../templates/simulator/sim.py")),
    ("pasta.py", include_str!("../../templates/simulator/pasta.py")),
    ("problem.toml", include_str!("../../templates/simulator/problem.toml")),
];
const TABLE: &[Template] = &[
    ("iris.csv", include_str!("../../templates/table/iris.csv")),
    ("problem.toml", include_str!("../../templates/table/problem.toml")),
];
const PYTHON: &[Template] = &[("problem.py", include_str!("../../templates/python/problem.py"))];
const RUST: &[Template] = &[
    ("Cargo.toml", include_str!("../../templates/rust/Cargo.toml.in")),
    ("src/main.rs", include_str!("../../templates/rust/src/main.rs")),
];

/// The file that names the schema, beside it.
const SCHEMA: &str = "problem.schema.json";

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Simulator => "simulator",
            Self::Table => "table",
            Self::Python => "python",
            Self::Rust => "rust",
        }
    }

    fn templates(self) -> &'static [Template] {
        match self {
            Self::Simulator => SIMULATOR,
            Self::Table => TABLE,
            Self::Python => PYTHON,
            Self::Rust => RUST,
        }
    }

    /// What to type next, in the folder.
    fn commands(self) -> &'static [&'static str] {
        match self {
            Self::Simulator => &["pasta check problem.toml", "pasta solve problem.toml"],
            Self::Table => &[
                "pasta inspect iris.csv --label species",
                "pasta fit iris.csv --loss multinomial --label species --penalty 0.001 -o iris.json",
                "pasta predict iris.json iris.csv --probabilities",
                "pasta solve problem.toml",
            ],
            Self::Python => &["python3 problem.py"],
            Self::Rust => &["cargo run --release"],
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let kind = arguments.kind;
    let folder = arguments.folder.clone().unwrap_or_else(|| format!("pasta-{}", kind.name()).into());
    refuse_others(&folder)?;
    let mut names = Vec::new();
    for (name, text) in kind.templates() {
        let (place, file) =
            name.split_once('/').map_or((folder.clone(), *name), |(inner, file)| (folder.join(inner), file));
        write(&place, file, text.replace("\"VERSION\"", concat!("\"", env!("CARGO_PKG_VERSION"), "\"")))?;
        names.push(*name);
    }
    if names.contains(&"problem.toml") {
        write(&folder, SCHEMA, super::schema_text()? + "\n")?;
        names.push(SCHEMA);
    }
    let to = folder.display();
    let next =
        std::iter::once(format!("cd {to}")).chain(kind.commands().iter().map(|&command| command.to_owned()));
    let next: Vec<_> = next.map(|command| format!("  {command}")).collect();
    console::answer(&format!("wrote {} to {to}\nnext:\n{}", names.join(", "), next.join("\n")))?;
    Ok(Exit::Done)
}

/// Nothing that is there is written over.
fn refuse_others(folder: &Path) -> Result<(), Failure> {
    let is_taken = match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => folder.exists(),
    };
    if is_taken {
        let message = format!("{} is there already, and not an empty folder", folder.display());
        return Err(Failure::input(message).hint("name another: pasta init KIND FOLDER"));
    }
    Ok(())
}
