//! The constants of a recipe, for people and for programs.

use pasta_opt::recipe::{Constant, Constants};
use serde::{Serialize, Serializer};

use crate::number::exactly;
use crate::table::unbroken;

/// "L = 3, Delta = 1.6, ..", the values as they were given.
pub fn equations(constants: impl Iterator<Item = (Constant, f64)>) -> String {
    let equation =
        |(constant, value): (Constant, _)| unbroken(&format!("{} = {}", constant.symbol(), exactly(value)));
    constants.map(equation).collect::<Vec<_>>().join(", ")
}

/// The constants as an object, by name.
#[derive(Debug)]
pub struct Echo(pub Constants);

impl Serialize for Echo {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.known().map(|(constant, value)| (constant.name(), value)))
    }
}
