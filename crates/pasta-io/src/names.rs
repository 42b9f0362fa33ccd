//! Names of classes: texts, also where they look like numbers.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt::Write as _;

use crate::fault::{Fault, Located};
use crate::number::{Number, leading};

/// Names of classes, numbered as they appear, with the line where each appears first; 0 where there are no lines.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    texts: Vec<(String, u64)>,
    numbers: HashMap<String, u32>,
}

impl Names {
    pub(crate) fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }

    pub(crate) fn number(&mut self, text: &str, line: u64) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.texts.len() as u32;
        self.texts.push((text.to_owned(), line));
        self.numbers.insert(text.to_owned(), number);
        number
    }

    /// A label that stands for a name until all names are known.
    pub(crate) fn mark(&mut self, text: &str, line: u64) -> f64 {
        f64::marked(self.number(text, line) + 1)
    }

    /// Takes the names of a part of a file that begins behind so many lines, and gives its labels their numbers here.
    pub(crate) fn join(&mut self, part: &Self, lines: u64, labels: &mut [f64]) {
        if part.is_empty() {
            return;
        }
        let numbers: Vec<u32> =
            part.texts.iter().map(|(text, line)| self.number(text, lines + line)).collect();
        for label in labels {
            if let Some(code) = label.code().filter(|code| *code > 0) {
                *label = f64::marked(numbers[code as usize - 1] + 1);
            }
        }
    }

    /// Refuses two names that are one number: nobody can tell whether `1` and `1.0` are meant to be one class.
    pub(crate) fn check(&self) -> Result<(), Located> {
        let mut seen: HashMap<Decimal, &str> = HashMap::new();
        for (text, line) in &self.texts {
            let Some(number) = Decimal::of(text) else { continue };
            let first = *seen.entry(number).or_insert(text);
            if bare(first) != bare(text) {
                let fault = Fault::Alike { first: first.to_owned(), second: text.clone() };
                return Err(Located { line: Some(*line).filter(|line| *line > 0), column: None, fault });
            }
        }
        Ok(())
    }

    /// The classes that some label stands for, in their order, and each label as the number of its class. Numbers are ordered by size; where
    /// there is a word, all are in the order of the alphabet.
    pub(crate) fn settle(&self, labels: &mut [f64]) -> Vec<String> {
        // Then a NaN is no name, whatever it carries: an array may hold any.
        if self.is_empty() {
            return Vec::new();
        }
        let code = |label: &f64| label.code().filter(|code| *code > 0).map(|code| code as usize - 1);
        let mut used = vec![false; self.texts.len()];
        labels.iter().filter_map(code).for_each(|k| used[k] = true);
        // The shortest spelling of each class: with a plus or without.
        let mut classes: HashMap<&str, &str> = HashMap::new();
        for (text, _) in self.texts.iter().zip(&used).filter(|(_, used)| **used).map(|(name, _)| name) {
            let class = classes.entry(bare(text)).or_insert(text);
            *class = if text.len() < class.len() { text } else { class };
        }
        let mut order: Vec<(&str, Option<Decimal>)> =
            classes.values().map(|text| (*text, Decimal::of(text))).collect();
        let numbers = order.iter().all(|(_, number)| number.is_some());
        order.sort_by(|(a, x), (b, y)| if numbers { x.cmp(y).then(a.cmp(b)) } else { a.cmp(b) });
        let places: HashMap<&str, f64> =
            order.iter().enumerate().map(|(place, (text, _))| (bare(text), place as f64)).collect();
        let place = |(text, _): &(String, u64)| places.get(bare(text)).copied().unwrap_or(0.0);
        let places: Vec<f64> = self.texts.iter().map(place).collect();
        for label in labels {
            if let Some(k) = code(label) {
                *label = places[k];
            }
        }
        order.into_iter().map(|(text, _)| text.to_owned()).collect()
    }
}

/// A number without the plus before it; any other text as it is.
fn bare(text: &str) -> &str {
    text.strip_prefix('+').filter(|_| Decimal::of(text).is_some()).unwrap_or(text)
}

/// Whether two texts are exactly the same number: `1` and `1.0` are, and two whole numbers that only a double takes for one are not.
///
/// ```
/// use pasta_io::is_same_number;
///
/// assert!(is_same_number("+1", "1.0") && is_same_number("007", "7"));
/// assert!(!is_same_number("9007199254740993", "9007199254740992") && !is_same_number("a", "a"));
/// ```
pub fn is_same_number(a: &str, b: &str) -> bool {
    let number = Decimal::of(a);
    number.is_some() && number == Decimal::of(b)
}

/// A decimal number, of any length: 0.d1 d2 .. times a power of ten, with the first and the last digit not 0.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Decimal {
    negative: bool,
    power: i64,
    digits: Vec<u8>,
}

impl Decimal {
    fn of(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        leading(bytes).filter(|(value, length)| *length == bytes.len() && value.is_finite())?;
        let negative = bytes[0] == b'-';
        let unsigned = &bytes[usize::from(matches!(bytes[0], b'+' | b'-'))..];
        let end = unsigned.iter().position(|byte| matches!(byte, b'e' | b'E')).unwrap_or(unsigned.len());
        let mantissa = &unsigned[..end];
        let before = mantissa.iter().position(|byte| *byte == b'.').unwrap_or(mantissa.len());
        let all = || mantissa.iter().copied().filter(u8::is_ascii_digit);
        let zeros = all().take_while(|digit| *digit == b'0').count();
        let mut digits: Vec<u8> = all().skip(zeros).collect();
        digits.truncate(digits.iter().rposition(|digit| *digit != b'0').map_or(0, |last| last + 1));
        if digits.is_empty() {
            return Some(Self { negative: false, power: 0, digits });
        }
        // One that does not fit is so small that no power tells it from another.
        let exponent = unsigned.get(end + 1..).unwrap_or_default();
        let exponent = std::str::from_utf8(exponent).ok()?.parse().unwrap_or(i64::from(i32::MIN));
        let exponent = if end == unsigned.len() { 0 } else { exponent };
        Some(Self { negative, power: exponent.saturating_add(before as i64 - zeros as i64), digits })
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let sign = |number: &Self| match (number.digits.is_empty(), number.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        };
        let size = (self.power, &self.digits).cmp(&(other.power, &other.digits));
        sign(self).cmp(&sign(other)).then(if self.negative { size.reverse() } else { size })
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The name of a class that is a number of an array: all digits of a whole number, as few as tell any other from its neighbours.
pub(crate) fn name_of(value: f64) -> String {
    const EXACT: f64 = (1_u64 << 53) as f64;
    let mut name = String::new();
    // Adding 0 makes 0 of -0. A string takes whatever is written.
    let _ = if value.abs() < EXACT { write!(name, "{}", value + 0.0) } else { write!(name, "{value:.0}") };
    name
}

#[cfg(test)]
mod tests {
    use super::{Decimal, Names, is_same_number, name_of};
    use crate::number::whole;

    #[test]
    fn decimals_are_ordered_as_the_numbers_that_they_are() {
        let texts = [
            "-1e5", "-99", "-1.5", "-1", "-.5", "-1e-7", "0", "1e-9", "0.05", "0.5", "1", "1.05", "9", "10",
            "1e2",
        ];
        for (k, a) in texts.iter().enumerate() {
            for (l, b) in texts.iter().enumerate() {
                assert_eq!(Decimal::of(a).cmp(&Decimal::of(b)), k.cmp(&l), "{a} and {b}");
            }
        }
        // Beyond what doubles tell apart.
        assert!(Decimal::of("900719925474099300") < Decimal::of("900719925474099301"));
        assert_eq!(whole(b"900719925474099300"), whole(b"900719925474099301"));
    }

    #[test]
    fn the_same_number_in_other_words_is_the_same_number() {
        for (a, b) in
            [("1", "+1"), ("1.0", "1"), ("007", "7"), ("1e5", "100000"), ("1.10", "1.1"), ("0", "-0.0e7")]
        {
            assert!(is_same_number(a, b), "{a} and {b}");
        }
        for (a, b) in [("1", "-1"), ("1", "10"), ("0.1", "0.01"), ("x", "x"), ("", "0"), ("1e400", "1e400")] {
            assert!(!is_same_number(a, b), "{a} and {b}");
        }
    }

    #[test]
    fn a_class_is_called_by_its_shortest_spelling_and_only_if_a_label_is_left() {
        let mut names = Names::default();
        let mut labels: Vec<f64> = ["+1", "-1", "1", "-1"].iter().map(|text| names.mark(text, 0)).collect();
        names.mark("gone", 0);
        assert!(names.check().is_ok());
        assert_eq!(names.settle(&mut labels), ["-1", "1"]);
        assert_eq!(labels, [1.0, 0.0, 1.0, 0.0]);
    }

    #[test]
    fn names_of_numbers_are_exact() {
        let names = [-0.0, 1.0, -1.0, 0.1, 9_007_199_254_740_994.0, 900_719_925_474_099_200.0].map(name_of);
        assert_eq!(names, ["0", "1", "-1", "0.1", "9007199254740994", "900719925474099200"]);
    }
}
