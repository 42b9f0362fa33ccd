//! One flag for every constant of the library.

use clap::{ArgMatches, Args, Command, FromArgMatches};
use pasta_opt::recipe::{Constant, Constants};
use pasta_report::console::flags;

/// The constants that were given. Boxed: the commands share an enum, and the others are small.
pub(super) struct ConstantFlags(pub(super) Box<Constants>);

impl Args for ConstantFlags {
    fn augment_args(command: Command) -> Command {
        command.args(Constant::ALL.iter().map(|&constant| flags::constant(constant, HEADING, "")))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

const HEADING: &str = "Constants (those that the regime uses; the others are refused)";

impl FromArgMatches for ConstantFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Self(Box::default());
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        flags::take_constants(matches, &mut self.0);
        Ok(())
    }
}
