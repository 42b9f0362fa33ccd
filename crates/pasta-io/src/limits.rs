//! Whole numbers as people write them.

/// The largest whole number that a problem file can hold.
pub const LARGEST: u64 = i64::MAX as u64;

/// What [`sample_count`] reads. A number of samples may be beyond the whole numbers of TOML: then it is written 1e20.
pub const SAMPLES: &str = "a whole number of samples, such as 1000 or 1e20";

/// More threads than this are a mistake.
pub const MOST_THREADS: u16 = 1024;

/// A number of samples: 1000 or 1e20.
pub fn sample_count(text: &str) -> Result<u128, String> {
    let whole = text.parse::<u64>().ok().filter(|n| *n <= LARGEST).map(u128::from);
    whole.or_else(|| text.parse().ok().and_then(whole_float)).ok_or_else(|| format!("expected {SAMPLES}"))
}

/// A double that is a count.
pub fn whole_float(x: f64) -> Option<u128> {
    (x.fract() == 0.0 && (0.0..1e38).contains(&x)).then_some(x as u128)
}
