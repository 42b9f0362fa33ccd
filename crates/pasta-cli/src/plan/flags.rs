//! One flag for every constant of the library.

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use pasta_opt::recipe::{Constant, Constants};

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

/// A number as people write it: 3, 0.5, 1e-3.
pub(crate) fn number(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| "not a number".to_owned())
}

/// A number of samples: 1000 or 1e3.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    let not_a_count = || "not a whole number between 0 and 2^64 - 1".to_owned();
    if let Ok(count) = text.parse() {
        return Ok(count);
    }
    let real = number(text)?;
    let whole = real.fract() == 0.0 && (0.0..u64::MAX as f64).contains(&real);
    if whole { Ok(real as u64) } else { Err(not_a_count()) }
}
