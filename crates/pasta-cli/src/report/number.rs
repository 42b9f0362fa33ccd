//! Numbers for people to read.

/// A count with its thousands apart: 2,805,114.
pub(crate) fn grouped(count: u128) -> String {
    with_commas(&count.to_string())
}

/// A value with so many significant digits: 0.0315, 1,234, 3.87e9.
pub(crate) fn significant(value: f64, digits: usize) -> String {
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

/// A number that was given, not measured: no more digits than it needs, and at most ten.
pub(crate) fn given(value: f64) -> String {
    // The shortest digits of the nearest double that has ten: 0.2 * 0.2 is 0.04.
    let rounded: f64 = format!("{value:.9e}").parse().unwrap_or(value);
    rounded.to_string()
}

/// A value with so many decimals, its thousands apart.
pub(super) fn fixed(value: f64, decimals: usize) -> String {
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
    use super::{fixed, given, grouped, significant};

    #[test]
    fn thousands_stand_apart() {
        let shown = [0, 999, 1_000, 2_805_114].map(grouped);
        assert_eq!(shown, ["0", "999", "1,000", "2,805,114"]);
        assert_eq!(fixed(-1234.5, 2), "-1,234.50");
        assert_eq!(fixed(-0.25, 1), "-0.2");
    }

    #[test]
    fn given_numbers_look_as_they_were_given() {
        assert_eq!([0.2 * 0.2, 0.0625, 9.0].map(given), ["0.04", "0.0625", "9"]);
    }

    #[test]
    fn significant_digits_survive_every_magnitude() {
        let shown = [0.031_49, 999.96, 1234.4, 3.874e9, 2e-7, 0.0, f64::INFINITY].map(|v| significant(v, 3));
        assert_eq!(shown, ["0.0315", "1,000", "1,234", "3.87e9", "2.00e-7", "0", "inf"]);
    }
}
