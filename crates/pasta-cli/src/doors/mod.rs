//! The ways in: `pasta init`, `schema`, `completions` and `man`.

mod init;
mod shells;

use clap::Args;
use pasta_report::console::{self, Exit, Failure};

pub(crate) use init::{Arguments as InitArguments, run as init};
pub(crate) use shells::{CompletionArguments, ManArguments, completions, man};

/// Print the JSON schema of problem files, with which editors complete keys and mark mistakes.
///
/// Save it beside a problem file (pasta schema > problem.schema.json) and let the file's first line be `#:schema ./problem.schema.json`: Even Better TOML
/// (VS Code), taplo and tombi read that line. `pasta init` writes both.
#[derive(Args)]
pub(crate) struct SchemaArguments {}

pub(crate) fn schema(_: &SchemaArguments) -> Result<Exit, Failure> {
    console::answer(&schema_text()?).map(|()| Exit::Done)
}

/// The schema in lines.
fn schema_text() -> Result<String, Failure> {
    serde_json::to_string_pretty(&pasta_io::spec::schema()).map_err(Failure::system)
}
