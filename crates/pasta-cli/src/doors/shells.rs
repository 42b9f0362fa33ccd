//! `pasta completions` and `pasta man`: what is made from the flags themselves.

use std::io;
use std::path::PathBuf;

use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use pasta_report::console::{self, Exit, Failure};
use pasta_report::write;

use crate::Program;

/// Print the completions of a shell.
///
/// For bash: pasta completions bash > ~/.local/share/bash-completion/completions/pasta. For zsh: into a folder of $fpath, as _pasta. For fish: into
/// ~/.config/fish/completions/pasta.fish.
#[derive(Args)]
pub(crate) struct CompletionArguments {
    /// The shell.
    shell: Shell,
}

pub(crate) fn completions(arguments: &CompletionArguments) -> Result<Exit, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut Program::command(), "pasta", &mut text);
    printed(&text)
}

/// Print a man page, or write all of them.
///
/// pasta man solve | man -l - shows one; pasta man --output ~/.local/share/man/man1 installs all.
#[derive(Args)]
pub(crate) struct ManArguments {
    /// The command; pasta itself if none is named.
    #[arg(conflicts_with = "output")]
    command: Option<String>,
    /// Write the pages of all commands into this folder.
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
}

pub(crate) fn man(arguments: &ManArguments) -> Result<Exit, Failure> {
    let mut program = Program::command();
    program.build();
    let commands = || program.get_subcommands().filter(|command| command.get_name() != "help");
    if let Some(folder) = &arguments.output {
        for command in std::iter::once(&program).chain(commands()) {
            write(folder, &format!("{}.1", full_name(command)), page(command)?)?;
        }
        return Ok(Exit::Done);
    }
    let command = match &arguments.command {
        None => &program,
        Some(name) => commands().find(|command| command.get_name() == name).ok_or_else(|| {
            let names: Vec<_> = commands().map(Command::get_name).collect();
            Failure::input(format!("{name:?} is no command; expected one of {}", names.join(", ")))
        })?,
    };
    printed(&page(command)?)
}

/// As in `pasta-solve`.
fn full_name(command: &Command) -> String {
    match command.get_name() {
        "pasta" => "pasta".into(),
        name => format!("pasta-{name}"),
    }
}

fn page(command: &Command) -> Result<Vec<u8>, Failure> {
    let mut page = Vec::new();
    let made: io::Result<()> = Man::new(command.clone()).title(full_name(command)).render(&mut page);
    made.map_err(Failure::system).map(|()| page)
}

fn printed(text: &[u8]) -> Result<Exit, Failure> {
    console::answer(String::from_utf8_lossy(text).trim_end()).map(|()| Exit::Done)
}
