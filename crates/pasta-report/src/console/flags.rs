//! Parsers of flags.

use std::ops::Deref;

use clap::builder::TypedValueParser;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
pub use pasta_io::limits::{LARGEST, MOST_THREADS, SAMPLES, sample_count, whole_float};
use pasta_opt::method::{Method, Setting, Values};
use pasta_opt::recipe::{Constant, Constants};

/// A number as people write it: 3, 0.5, 1e-3.
pub fn number(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| "not a number".to_owned())
}

/// A count: 1000 or 1e3.
pub fn count(text: &str) -> Result<u64, String> {
    let count = text.parse().ok().or_else(|| whole_float(text.parse().ok()?)?.try_into().ok());
    count.ok_or_else(|| "not a whole number between 0 and 2^64 - 1".to_owned())
}

/// A number of threads.
pub fn thread_count() -> impl TypedValueParser<Value = u16> {
    clap::value_parser!(u16).range(1..=i64::from(MOST_THREADS))
}

/// A seed that a problem file can hold.
pub fn seed() -> impl TypedValueParser<Value = u64> {
    clap::value_parser!(u64).range(..=LARGEST)
}

/// The flag of a constant, with what its help says besides its meaning.
pub fn constant(constant: Constant, heading: &'static str, besides: &str) -> Arg {
    real(constant.name(), constant.symbol(), heading)
        .help(format!("{}{besides}", capitalised(constant.meaning())))
}

/// The flags of all that can be set about these methods, each once. Its help names the methods that have it, unless all do.
pub fn settings(methods: &[&Method], heading: &'static str) -> Vec<Arg> {
    let flag = |setting: &Setting| {
        let users = || methods.iter().filter(|method| has(method, setting.name)).map(|method| method.name);
        let help = if users().count() == methods.len() {
            capitalised(setting.meaning)
        } else {
            format!("{}: {}", users().collect::<Vec<_>>().join(", "), setting.meaning)
        };
        real(setting.name, "NUMBER", heading).help(help)
    };
    distinct(methods).into_iter().map(flag).collect()
}

/// The settings whose flags were given.
pub fn take_settings(matches: &ArgMatches, methods: &[&Method]) -> Values {
    let mut values = Values::default();
    for Setting { name, .. } in distinct(methods) {
        if let Some(&value) = matches.get_one::<f64>(name) {
            values.set(name, value);
        }
    }
    values
}

fn has(method: &Method, name: &str) -> bool {
    method.settings().iter().any(|setting| setting.name == name)
}

/// What can be set about these methods, each by the first that has it.
fn distinct(methods: &[&Method]) -> Vec<&'static Setting> {
    let first = |(i, method): (usize, &&Method)| {
        let before = &methods[..i];
        let new = |setting: &&Setting| !before.iter().any(|other| has(other, setting.name));
        method.settings().iter().filter(new).collect::<Vec<_>>()
    };
    methods.iter().enumerate().flat_map(first).collect()
}

fn real(name: &'static str, symbol: &'static str, heading: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .value_name(symbol)
        .help_heading(heading)
        // So that -1, -1e-3 and -inf reach the message that says what is wrong with them.
        .allow_hyphen_values(true)
        .value_parser(number)
}

fn capitalised(text: &str) -> String {
    let (first, rest) = text.split_at(text.chars().next().map_or(0, char::len_utf8));
    format!("{}{rest}", first.to_uppercase())
}

/// The constants whose flags were given. A command need not have a flag for each.
pub fn take_constants(matches: &ArgMatches) -> Constants {
    let mut constants = Constants::default();
    for &constant in Constant::ALL {
        if let Ok(Some(&value)) = matches.try_get_one::<f64>(constant.name()) {
            constants.set(constant, value);
        }
    }
    constants
}

/// Flags that a table of the library decides.
pub trait FlagSet: Sized {
    /// All of them.
    fn flags() -> Vec<Arg>;
    /// What they were given as.
    fn take(matches: &ArgMatches) -> Self;
}

/// A set of flags, to be flattened into the arguments of a command. Boxed: the commands share an enum, and the others are
/// small.
#[derive(Debug)]
pub struct Given<S> {
    set: Box<S>,
}

impl<S> Deref for Given<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.set
    }
}

impl<S: FlagSet> Args for Given<S> {
    fn augment_args(command: Command) -> Command {
        command.args(S::flags())
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<S: FlagSet> FromArgMatches for Given<S> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self { set: Box::new(S::take(matches)) })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        Self::from_arg_matches(matches).map(|given| *self = given)
    }
}

#[cfg(test)]
mod tests {
    use super::{count, sample_count};

    #[test]
    fn counts_may_be_written_with_an_exponent_and_are_whole() {
        assert_eq!((count("1e3"), count("18446744073709551615")), (Ok(1000), Ok(u64::MAX)));
        assert_eq!((sample_count("1e20"), sample_count("7")), (Ok(100_000_000_000_000_000_000), Ok(7)));
        for wrong in ["1.5", "-1", "1e39", "nan", "many", ""] {
            assert!(count(wrong).is_err() && sample_count(wrong).is_err(), "{wrong}");
        }
    }
}
