//! Numbers for people to read.

/// A count with its thousands apart: 2,805,114.
pub fn grouped(count: impl Into<u128>) -> String {
    with_commas(&count.into().to_string())
}

/// A measured value with so many significant digits: 0.0315, 1,234, 3.87e9.
pub fn significant(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let last = digits.max(1) - 1;
    // Rounding first: 999.96 has three digits before the point, but four once it is rounded.
    let scientific = format!("{value:.last$e}");
    match scientific.split_once('e').and_then(|(_, exponent)| exponent.parse::<i32>().ok()) {
        Some(exponent @ -4..=6) => fixed(value, usize::try_from(last as i32 - exponent).unwrap_or(0)),
        _ => scientific,
    }
}

/// The shortest text that reads back as the same number.
pub fn exactly(value: f64) -> String {
    if value == 0.0 || (1e-4..1e7).contains(&value.abs()) || !value.is_finite() {
        value.to_string()
    } else {
        format!("{value:e}")
    }
}

/// At most so many significant digits, and no more than the number needs: 0.04, 9, 1e-8.
pub fn digits(value: f64, digits: usize) -> String {
    let last = digits.max(1) - 1;
    exactly(format!("{value:.last$e}").parse().unwrap_or(value))
}

/// A number that was given, not measured: at most ten digits, so that 0.2 * 0.2 is 0.04.
pub fn given(value: f64) -> String {
    digits(value, 10)
}

/// A computed number: at most six digits.
pub fn real(value: f64) -> String {
    digits(value, 6)
}

/// A limit from above, in four digits that do not exceed it.
pub fn ceiling(limit: f64) -> String {
    if !(limit > 0.0 && limit.is_finite()) {
        return real(limit);
    }
    let unit = 10f64.powf(limit.log10().floor() - 3.0);
    real((limit / unit).floor() * unit)
}

/// An upper bound, in at most six digits that are not below it.
///
/// ```
/// use pasta_io::words::{real, upward};
///
/// assert_eq!((real(1.2345671), upward(1.2345671)), ("1.23457".to_owned(), "1.23457".to_owned()));
/// assert_eq!((real(1.2345611), upward(1.2345611)), ("1.23456".to_owned(), "1.23457".to_owned()));
/// assert_eq!(upward(0.5), "0.5");
/// ```
pub fn upward(bound: f64) -> String {
    const DIGITS: usize = 6;
    let nearest = format!("{bound:.*e}", DIGITS - 1);
    let Some((digits, exponent)) = nearest.split_once('e') else { return real(bound) };
    let (Ok(shown), Ok(whole), Ok(exponent)) =
        (nearest.parse::<f64>(), digits.replace('.', "").parse::<i64>(), exponent.parse::<i32>())
    else {
        return real(bound);
    };
    if shown >= bound {
        return exactly(shown);
    }
    // One more in the last digit, by text: powers of ten are no doubles.
    let above: Result<f64, _> = format!("{}e{}", whole + 1, exponent - (DIGITS as i32 - 1)).parse();
    above.map_or_else(|_| real(bound), exactly)
}

/// Counts from here on are shown in three digits.
const IN_FULL: f64 = 1e15;

/// A count in full, its digits in threes, or in three digits from 10^15 on.
pub fn whole(count: impl Into<u128>) -> String {
    at_most(count.into() as f64)
}

/// An upper bound on a number of samples: rounded up to a whole number where that shows.
pub fn at_most(samples: f64) -> String {
    counted(samples, IN_FULL)
}

/// A lower bound on a number of samples: rounded down where it is large.
pub fn at_least(samples: f64) -> String {
    if samples < 1e4 { real(samples) } else { counted(samples.floor(), IN_FULL) }
}

/// A count in at most seven characters.
pub fn short(count: f64) -> String {
    if count == f64::INFINITY { ">1e308".to_owned() } else { counted(count, 1e6) }
}

/// A number of samples that is only a guess, in two digits: 120,000, 1.2e14.
pub fn rough(samples: f64) -> String {
    let scientific = format!("{samples:.1e}");
    match scientific.parse::<f64>() {
        Ok(rounded) if rounded < 1e7 => at_most(rounded),
        _ => scientific,
    }
}

/// A count, rounded up: its digits in threes below `limit`, three digits from there on.
fn counted(count: f64, limit: f64) -> String {
    match count {
        count if count.ceil() < limit => grouped(count.ceil() as u128),
        count if count.is_finite() => format!("{count:.2e}"),
        _ => count.to_string(),
    }
}

/// A value with so many decimals, its thousands apart.
pub fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.as_str()),
    };
    match digits.split_once('.') {
        Some((whole, fraction)) => format!("{sign}{}.{fraction}", with_commas(whole)),
        None => format!("{sign}{}", with_commas(digits)),
    }
}

fn with_commas(digits: &str) -> String {
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{at_least, at_most, ceiling, fixed, given, grouped, short, significant};

    #[test]
    fn thousands_stand_apart() {
        let shown = [0u32, 999, 1_000, 2_805_114].map(grouped);
        assert_eq!(shown, ["0", "999", "1,000", "2,805,114"]);
        assert_eq!(fixed(-1234.5, 2), "-1,234.50");
        assert_eq!(fixed(-0.25, 1), "-0.2");
    }

    #[test]
    fn given_numbers_look_as_they_were_given() {
        assert_eq!([0.2 * 0.2, 0.0625, 9.0, 1e-300].map(given), ["0.04", "0.0625", "9", "1e-300"]);
    }

    #[test]
    fn significant_digits_survive_every_magnitude() {
        let shown = [0.031_49, 999.96, 1234.4, 3.874e9, 2e-7, 0.0, f64::INFINITY].map(|v| significant(v, 3));
        assert_eq!(shown, ["0.0315", "1,000", "1,234", "3.87e9", "2.00e-7", "0", "inf"]);
    }

    #[test]
    fn a_bound_is_rounded_to_its_safe_side() {
        assert_eq!([at_most(1234.1), at_most(2e15)], ["1,235", "2.00e15"]);
        assert_eq!([at_least(12.5), at_least(12_345.9)], ["12.5", "12,345"]);
        assert_eq!([ceiling(0.123_49), short(999_999.5)], ["0.1234", "1.00e6"]);
    }
}
