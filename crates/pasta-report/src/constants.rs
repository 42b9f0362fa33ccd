//! The constants of a recipe, for people and for programs.

use pasta_opt::recipe::Constants;
use serde::{Serialize, Serializer};

use crate::number::exactly;
use crate::table::unbroken;

/// "L = 3, Delta = 1.6, ..", the values as they were given.
pub fn equations(constants: &Constants) -> String {
    let equation = |(constant, value): (pasta_opt::recipe::Constant, f64)| {
        unbroken(&format!("{} = {}", constant.symbol(), exactly(value)))
    };
    constants.known().map(equation).collect::<Vec<_>>().join(", ")
}

/// The constants as an object, by name.
#[derive(Debug)]
pub struct Echo(pub Constants);

impl Serialize for Echo {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.known().map(|(constant, value)| (constant.name(), value)))
    }
}
