//! One flag for every constant of the library.

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use pasta_opt::recipe::{Constant, Constants};
use pasta_report::console::flags::number;

/// The constants that were given. Boxed: the commands share an enum, and the others are small.
pub(super) struct ConstantFlags(pub(super) Box<Constants>);

impl Args for ConstantFlags {
    fn augment_args(command: Command) -> Command {
        command.args(Constant::ALL.iter().map(|&constant| flag(constant)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn flag(constant: Constant) -> Arg {
    Arg::new(constant.name())
        .long(constant.name())
        .value_name(constant.symbol())
        .help(capitalised(constant.meaning()))
        .help_heading("Constants (those that the regime uses; the others are refused)")
        // So that -1, -1e-3 and -inf reach the message that says what is wrong with them.
        .allow_hyphen_values(true)
        .value_parser(number)
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters
        .next()
        .map_or_else(String::new, |first| format!("{}{}", first.to_uppercase(), characters.as_str()))
}

impl FromArgMatches for ConstantFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Self(Box::default());
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for &constant in Constant::ALL {
            if let Some(&value) = matches.get_one::<f64>(constant.name()) {
                self.0.set(constant, value);
            }
        }
        Ok(())
    }
}
