//! How well a count of runs tells a probability.

/// What the interval leaves out on either side.
const BEYOND: f64 = 0.025;

/// The exact 95 % interval of a probability after `hits` in `runs` (Clopper and Pearson): on either side it ends where
/// a count as extreme as this one would have had probability 2.5 %.
pub fn clopper_pearson(hits: u64, runs: u64) -> (f64, f64) {
    (lowest(hits, runs), 1.0 - lowest(runs - hits, runs))
}

/// The p at which `hits` or more in `runs` have probability 2.5 %.
fn lowest(hits: u64, runs: u64) -> f64 {
    if hits == 0 {
        return 0.0;
    }
    let (k, n) = (hits as f64, runs as f64);
    let log_ways: f64 = (1..=hits.min(runs - hits)).map(|i| ((n + 1.0 - i as f64) / i as f64).ln()).sum();
    // At p = hits/runs the probability is about one half, and it falls with p.
    let (mut low, mut high) = (0.0, k / n);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        let first = (log_ways + k * middle.ln() + (n - k) * (-middle).ln_1p()).exp();
        if upper_tail(first, k, n, middle) < BEYOND { low = middle } else { high = middle }
    }
    low
}

/// The probability of k or more in n, given that of k, for p < k/n: the terms fall from the first on.
fn upper_tail(first: f64, k: f64, n: f64, p: f64) -> f64 {
    let odds = p / (1.0 - p);
    let (mut term, mut sum, mut i) = (first, first, k);
    while i < n && term > 1e-17 * sum {
        term *= odds * (n - i) / (i + 1.0);
        sum += term;
        i += 1.0;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::clopper_pearson;

    #[test]
    fn extreme_counts_have_intervals_in_closed_form() {
        // No hits: (1 - p)^n = 0.025; all hits: p^n = 0.025.
        let (low, high) = clopper_pearson(0, 1000);
        assert!(low == 0.0 && (high - (1.0 - 0.025f64.powf(1e-3))).abs() < 1e-12, "{high}");
        let (low, high) = clopper_pearson(20, 20);
        assert!((low - 0.025f64.powf(0.05)).abs() < 1e-12 && high == 1.0, "{low}");
        assert!((clopper_pearson(1, 1).0 - 0.025).abs() < 1e-15);
    }

    #[test]
    fn the_ends_make_the_count_as_improbable_as_they_should() {
        for (hits, runs) in [(1, 10), (5, 10), (30, 1000), (500, 10_000), (9_990, 10_000)] {
            let (low, high) = clopper_pearson(hits, runs);
            // Both tails term by term, from the other end of the sum than the code under test starts at.
            let tail = |p: f64, counts: std::ops::RangeInclusive<u64>| -> f64 {
                let mut log_term = runs as f64 * (1.0 - p).ln();
                let mut sum = 0.0;
                for i in 0..=runs {
                    if counts.contains(&i) {
                        sum += log_term.exp();
                    }
                    log_term += (p / (1.0 - p)).ln() + ((runs - i) as f64 / (i as f64 + 1.0)).ln();
                }
                sum
            };
            // Ten thousand logarithms are added, each rounded at a size of up to 10^5.
            assert!((tail(low, hits..=runs) - 0.025).abs() < 1e-7, "{hits} of {runs}: {low}");
            assert!((tail(high, 0..=hits) - 0.025).abs() < 1e-7, "{hits} of {runs}: {high}");
        }
    }
}
