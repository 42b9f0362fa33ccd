//! Numbers in text, and how they are kept.

/// What a value is kept as.
pub(crate) trait Number:
    crate::store::IntoValues + Copy + Send + Sync + Default + PartialEq + 'static
{
    /// Its name in messages.
    const NAME: &'static str;
    /// The most codes that [`marked`](Self::marked) can hold.
    const CODES: u32;
    fn of(value: f64) -> Self;
    fn wide(self) -> f64;
    /// A NaN that carries a code. Files hold none, so a cell that is no number can be kept in place.
    fn marked(code: u32) -> Self;
    /// The code of such a NaN.
    fn code(self) -> Option<u32>;
}

impl Number for f64 {
    const NAME: &'static str = "a double";
    const CODES: u32 = u32::MAX;

    #[inline]
    fn of(value: f64) -> Self {
        value
    }

    #[inline]
    fn wide(self) -> f64 {
        self
    }

    fn marked(code: u32) -> Self {
        Self::from_bits(0x7ff8_0000_0000_0000 | u64::from(code))
    }

    #[inline]
    fn code(self) -> Option<u32> {
        self.is_nan().then(|| self.to_bits() as u32)
    }
}

impl Number for f32 {
    const NAME: &'static str = "a float of 32 bits";
    const CODES: u32 = (1 << 22) - 1;

    #[inline]
    fn of(value: f64) -> Self {
        value as Self
    }

    #[inline]
    fn wide(self) -> f64 {
        f64::from(self)
    }

    fn marked(code: u32) -> Self {
        Self::from_bits(0x7fc0_0000 | (code & Self::CODES))
    }

    #[inline]
    fn code(self) -> Option<u32> {
        self.is_nan().then(|| self.to_bits() & Self::CODES)
    }
}

/// Powers of ten that are doubles.
const TENS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];

/// The decimal number that the bytes begin with, and its length. Infinite if it is too large for a double.
#[inline]
pub(crate) fn leading(bytes: &[u8]) -> Option<(f64, usize)> {
    let mut at = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    let (mut mantissa, mut digits, mut exponent) = (0_u64, 0_usize, 0_i64);
    let (mut any, mut point, mut many) = (false, false, false);
    while let Some(&byte) = bytes.get(at) {
        // Eight at a time where so many are likely, once the first digit that counts is there.
        if many && (mantissa > 0 || byte > b'0') {
            if let Some(eight) = bytes[at..].first_chunk().copied().and_then(eight_digits) {
                (any, digits) = (true, digits + 8);
                mantissa = mantissa.wrapping_mul(100_000_000).wrapping_add(eight);
                exponent -= 8 * i64::from(point);
                at += 8;
                continue;
            }
            many = false;
        }
        let digit = byte.wrapping_sub(b'0');
        if digit < 10 {
            any = true;
            // Zeros before the first other digit are no digits of the mantissa.
            digits += usize::from(mantissa > 0 || digit > 0);
            mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(digit));
            exponent -= i64::from(point);
        } else if byte == b'.' && !point {
            (point, many) = (true, true);
        } else {
            break;
        }
        at += 1;
    }
    if !any {
        return None;
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let begin = at + 1 + sign;
        let length = bytes[begin.min(bytes.len())..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if length == 0 {
            return None;
        }
        let size = bytes[begin..begin + length]
            .iter()
            .fold(0_i64, |size, digit| (size * 10 + i64::from(digit - b'0')).min(100_000));
        exponent += if bytes.get(at + 1) == Some(&b'-') { -size } else { size };
        at = begin + length;
    }
    // Both are doubles, so one multiplication or division rounds correctly.
    let exact = digits <= 19 && mantissa <= 1 << 53 && (-22..=22).contains(&exponent);
    if !exact {
        let text = std::str::from_utf8(&bytes[..at]).ok()?;
        return Some((text.parse().ok()?, at));
    }
    let ten = TENS[exponent.unsigned_abs() as usize];
    let size = if exponent < 0 { mantissa as f64 / ten } else { mantissa as f64 * ten };
    Some((if bytes[0] == b'-' { -size } else { size }, at))
}

/// The number that eight digits are, if all of them are digits: pairs first, then fours, then all, side by side in one word.
#[inline]
fn eight_digits(bytes: [u8; 8]) -> Option<u64> {
    const HIGH: u64 = 0xf0f0_f0f0_f0f0_f0f0;
    let word = u64::from_le_bytes(bytes);
    // 6 more than a byte above 9 reaches its upper half.
    if word & HIGH != 0x3030_3030_3030_3030 || word.wrapping_add(0x0606_0606_0606_0606) & HIGH != word & HIGH
    {
        return None;
    }
    let digits = word & !HIGH;
    let pairs = (digits.wrapping_mul(10) + (digits >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(100) + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    Some((fours.wrapping_mul(10_000) + (fours >> 32)) & 0xffff_ffff)
}

/// The number that all of the bytes are; infinities and NaN by name too.
pub(crate) fn whole(bytes: &[u8]) -> Option<f64> {
    match leading(bytes) {
        Some((value, length)) if length == bytes.len() => Some(value),
        // Rust knows them by the names that others write.
        _ if bytes.first().is_some_and(|byte| b"+-iInN".contains(byte)) => {
            std::str::from_utf8(bytes).ok()?.parse::<f64>().ok().filter(|value| !value.is_finite())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Number, eight_digits, leading, whole};

    #[test]
    fn numbers_are_read_as_the_standard_library_reads_them() {
        let texts = [
            "0",
            "-0",
            "+1",
            "1.",
            ".5",
            "-.5e3",
            "1e22",
            "1e23",
            "9007199254740993",
            "0.1",
            "1.7976931348623157e308",
            "5e-324",
            "123456789012345678901234567890",
            "0.000000000000000000000000000012345",
            "1e400",
            "3E-7",
            "00000000000000000000000000001.5",
            "179769313486231580793e289",
            "12345678",
            "12345678.12345678",
            "0.12345678901234567",
            "0.00000000123456789",
            "-123456789012345678.5",
            "1000000000000000000000000",
            "0.6369616873214543",
            "12345678e-8",
        ];
        for text in texts {
            let (value, length) = leading(text.as_bytes()).unwrap();
            assert_eq!(
                (value.to_bits(), length),
                (text.parse::<f64>().unwrap().to_bits(), text.len()),
                "{text}"
            );
        }
        // Every mantissa and exponent of a grid, on both sides of where the quick way ends.
        for mantissa in (1..2000_u64).map(|k| k.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (k % 60)) {
            for exponent in [-330, -30, -23, -22, -5, 0, 5, 22, 23, 290] {
                let text = format!("{mantissa}e{exponent}");
                assert_eq!(leading(text.as_bytes()).unwrap().0, text.parse::<f64>().unwrap(), "{text}");
            }
        }
    }

    #[test]
    fn eight_digits_are_the_number_that_they_are() {
        for k in
            (0..2000_u64).map(|k| k.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 100_000_000).chain([0, 99_999_999])
        {
            let text = format!("{k:08}");
            assert_eq!(eight_digits(*text.as_bytes().first_chunk().unwrap()), Some(k));
        }
        // One byte of any other kind at any place.
        for at in 0..8 {
            for byte in (0..=u8::MAX).filter(|byte| !byte.is_ascii_digit()) {
                let mut bytes = *b"90909090";
                bytes[at] = byte;
                assert_eq!(eight_digits(bytes), None, "{byte} at {at}");
            }
        }
    }

    #[test]
    fn what_is_no_number_is_none() {
        for text in ["", "+", "-", ".", "e5", "1e", "1e+", "abc", "--1", "0x10", "1 2", "1,5"] {
            assert!(whole(text.as_bytes()).is_none(), "{text}");
        }
        assert_eq!(leading(b"12:5"), Some((12.0, 2)));
        assert!(whole(b"NaN").unwrap().is_nan() && whole(b"-inf").unwrap() == f64::NEG_INFINITY);
    }

    #[test]
    fn a_marked_number_keeps_its_code() {
        for code in [0, 1, 77, f32::CODES] {
            assert_eq!((f64::marked(code).code(), f32::marked(code).code()), (Some(code), Some(code)));
        }
        assert_eq!((1.5_f64.code(), 1.5_f32.code()), (None, None));
    }
}
