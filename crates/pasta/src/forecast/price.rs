//! What a sample costs.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What a sample costs, in any unit.
///
/// ```
/// use pasta_opt::forecast::Price;
///
/// let price: Price = "0.2 EUR".parse()?;
/// assert_eq!((price.amount, price.unit.as_str(), price.of(15_000.0)), (0.2, "EUR", 3_000.0));
/// assert_eq!(price.to_string(), "0.2 EUR");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Price {
    /// Of one sample.
    pub amount: f64,
    /// The unit; empty if none was given.
    pub unit: String,
}

/// Why a text is no price.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected the price of a sample, such as 0.2 or \"0.2 EUR\"")]
pub struct PriceError;

impl Price {
    /// A price without a unit.
    pub fn new(amount: f64) -> Result<Self, PriceError> {
        let is_price = amount.is_finite() && amount >= 0.0;
        is_price.then_some(Self { amount, unit: String::new() }).ok_or(PriceError)
    }

    /// What this many samples cost.
    pub fn of(&self, samples: f64) -> f64 {
        self.amount * samples
    }
}

impl FromStr for Price {
    type Err = PriceError;

    /// A number, and perhaps its unit.
    fn from_str(text: &str) -> Result<Self, PriceError> {
        let (amount, unit) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), ""));
        let price = Self::new(amount.parse().map_err(|_| PriceError)?)?;
        Ok(Self { unit: unit.trim().to_owned(), ..price })
    }
}

impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { amount, unit } = self;
        write!(f, "{amount}{}{unit}", if unit.is_empty() { "" } else { " " })
    }
}

#[cfg(test)]
mod tests {
    use super::Price;

    #[test]
    fn a_price_is_a_finite_number_and_perhaps_a_unit() {
        for (text, shown) in
            [("0.2", "0.2"), (" 3  US cents ", "3 US cents"), ("1e-3 EUR", "0.001 EUR"), ("0", "0")]
        {
            assert_eq!(text.parse::<Price>().map(|price| price.to_string()), Ok(shown.to_owned()));
        }
        for wrong in ["", "EUR", "EUR 0.2", "-1", "nan", "inf EUR"] {
            assert!(wrong.parse::<Price>().is_err(), "{wrong}");
        }
    }
}
