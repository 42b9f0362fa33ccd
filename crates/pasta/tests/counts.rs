//! Binomial and Poisson draws have the law they are named after, at every size of the count.
//!
//! The statistical tests are fixed by their seed, so they pass always or never. Each states the level at
//! which a right sampler with another seed would fail it.

use pasta_opt::draws::{Address, Role, Stream};

fn stream(seed: u64) -> Stream {
    Address { seed, role: Role::Setup, step: 0, sample: 0 }.stream()
}

/// A law to draw from.
#[derive(Debug, Clone, Copy)]
enum Law {
    Binomial(u64, f64),
    Poisson(f64),
}

impl Law {
    fn draw(self, xi: &mut Stream) -> u64 {
        match self {
            Law::Binomial(n, p) => xi.binomial(n, p),
            Law::Poisson(mean) => xi.poisson(mean),
        }
    }

    fn variance(self) -> f64 {
        match self {
            Law::Binomial(n, p) => n as f64 * p * (1.0 - p),
            Law::Poisson(mean) => mean,
        }
    }

    /// E (k - mean)^4 / variance^2 - 3.
    fn excess_kurtosis(self) -> f64 {
        match self {
            Law::Binomial(_, p) => (1.0 - 6.0 * p * (1.0 - p)) / self.variance(),
            Law::Poisson(mean) => 1.0 / mean,
        }
    }

    /// k minus the mean, rounded once: with x = mantissa / 2^shift the difference of k 2^shift and n mantissa
    /// is an integer below 2^127 for every k near the mean.
    fn deviation(self, k: u64) -> f64 {
        let (n, x) = match self {
            Law::Binomial(n, p) => (n, p),
            Law::Poisson(mean) => (1, mean),
        };
        let (mantissa, exponent) = libm::frexp(x);
        // A Poisson mean above 2^53 is an integer, and no shift is needed.
        let shift = (53 - exponent).max(0);
        let scaled = libm::ldexp(mantissa, shift + exponent) as i128;
        libm::ldexp(((i128::from(k) << shift) - i128::from(n) * scaled) as f64, -shift)
    }

    /// The probabilities of 0, 1, ..., up to where they are negligible for a mean below 600.
    fn probabilities(self) -> Vec<f64> {
        let mut weights = vec![1.0];
        for k in 0..1000 {
            let growth = match self {
                Law::Binomial(n, p) => n.saturating_sub(k) as f64 * p / (1.0 - p),
                Law::Poisson(mean) => mean,
            };
            weights.push(weights[k as usize] * growth / (k + 1) as f64);
        }
        let total: f64 = weights.iter().sum();
        weights.iter().map(|w| w / total).collect()
    }
}

fn chi_square(observed: &[u64], expected: &[f64]) -> f64 {
    observed.iter().zip(expected).map(|(&o, &e)| (o as f64 - e) * (o as f64 - e) / e).sum()
}

#[test]
fn counts_up_to_a_thousand_fit_their_exact_probabilities() {
    const DRAWS: u64 = 4_000_000;
    // The cells are first, first + 1, ..., last; both ends take their tail, and expect at least 20 draws. The
    // limit is the chi-square quantile for last - first degrees of freedom at 1e-5: 1e-4 for all ten.
    let cases = [
        (Law::Binomial(20, 0.3), 0, 16, 52.24),
        (Law::Binomial(20, 0.5), 1, 19, 55.68),
        (Law::Binomial(25, 0.6), 4, 24, 59.04),
        (Law::Binomial(200, 0.1), 4, 41, 85.64),
        (Law::Binomial(1000, 0.5), 430, 570, 223.11),
        (Law::Binomial(1_000_000_000, 3e-9), 0, 13, 46.91),
        (Law::Poisson(3.0), 0, 13, 46.91),
        (Law::Poisson(9.99), 0, 27, 70.35),
        (Law::Poisson(12.0), 0, 30, 75.02),
        (Law::Poisson(80.5), 44, 123, 144.43),
    ];
    for (seed, (law, first, last, limit)) in (100..).zip(cases) {
        let mut expected = vec![0.0; last - first + 1];
        for (k, probability) in law.probabilities().into_iter().enumerate() {
            expected[k.clamp(first, last) - first] += DRAWS as f64 * probability;
        }
        let mut observed = vec![0; last - first + 1];
        let mut xi = stream(seed);
        for _ in 0..DRAWS {
            observed[(law.draw(&mut xi) as usize).clamp(first, last) - first] += 1;
        }
        let distance = chi_square(&observed, &expected);
        assert!(distance < limit, "{law:?}: chi-square {distance}, limit {limit}");
    }
}

/// The probabilities of k - mean < -3 σ, < -2 σ, > 2 σ and > 3 σ.
type Tails = [f64; 4];
const NORMAL: Tails = [0.001349898, 0.022750132, 0.022750132, 0.001349898];
const MEAN_1000: Tails = [0.0012146255, 0.0214566687, 0.0231551231, 0.0015979497];

/// Exact tails by summation in 40 digits (mpmath); the normal ones where σ > 3e4, so that the lattice and the
/// skewness change them by less than 3e-4 of their value, at most a fiftieth of the standard error below.
fn laws_and_tails() -> Vec<(Law, Tails)> {
    const MILLION: u64 = 1_000_000;
    let mut rows = vec![
        (Law::Binomial(MILLION, 1e-3), [0.0012086875, 0.0214052383, 0.0230999776, 0.0015901592]),
        (Law::Binomial(MILLION, 0.2), [0.0013465594, 0.0227771206, 0.0227231298, 0.0013532073]),
        (Law::Binomial(MILLION, 0.5), [0.0013454640, 0.0226961680, 0.0226961680, 0.0013454640]),
        (Law::Binomial(MILLION, 0.9), [0.0013731384, 0.0229122117, 0.0225882662, 0.0013268502]),
        (Law::Poisson(50.0), [0.0005105098, 0.0162138800, 0.0236032127, 0.0020102677]),
        (Law::Poisson(1e4), [0.0012698682, 0.0222111317, 0.0227492420, 0.0013867178]),
        (Law::Poisson(1e9 + 0.25), NORMAL),
        (Law::Poisson(1e15 + 0.5), NORMAL),
        (Law::Poisson(6.5e18), NORMAL),
    ];
    for n in [MILLION * MILLION, MILLION * MILLION * 1000, 1 << 60, 1 << 63] {
        rows.extend([1e-3, 0.2, 0.5, 0.9].map(|p| (Law::Binomial(n, p), NORMAL)));
        rows.push((Law::Binomial(n, 1000.0 / n as f64), MEAN_1000));
    }
    rows
}

#[test]
fn mean_variance_and_tails_are_right_up_to_two_to_the_63() {
    const DRAWS: u32 = 1_000_000;
    // 29 laws times six statistics at five standard errors, each of level 5.7e-7: 1e-4 together.
    const LEVEL: f64 = 5.0;
    for (seed, (law, tails)) in (200..).zip(laws_and_tails()) {
        let (draws, sigma) = (f64::from(DRAWS), law.variance().sqrt());
        let mut xi = stream(seed);
        let (mut sum, mut squares, mut beyond) = (0.0, 0.0, [0.0; 4]);
        for _ in 0..DRAWS {
            let z = law.deviation(law.draw(&mut xi)) / sigma;
            sum += z;
            squares += z * z;
            for (count, out) in beyond.iter_mut().zip([z < -3.0, z < -2.0, z > 2.0, z > 3.0]) {
                *count += f64::from(u8::from(out));
            }
        }
        let mean_score = sum / draws.sqrt();
        assert!(mean_score.abs() < LEVEL, "{law:?}: the mean is off by {mean_score} standard errors");
        let variance_score = (squares / draws - 1.0) / ((2.0 + law.excess_kurtosis()) / draws).sqrt();
        assert!(variance_score.abs() < LEVEL, "{law:?}: the variance is off by {variance_score}");
        for (count, probability) in beyond.into_iter().zip(tails) {
            let expected = draws * probability;
            let score = (count - expected) / (expected * (1.0 - probability)).sqrt();
            assert!(score.abs() < LEVEL, "{law:?}: {count} in a tail of {expected}, off by {score}");
        }
    }
}

/// How far the last three bits of a million counts are from equally likely.
fn last_bits_distance(mut draw: impl FnMut() -> u64) -> f64 {
    const DRAWS: u32 = 1_000_000;
    let mut observed = [0; 8];
    for _ in 0..DRAWS {
        observed[(draw() % 8) as usize] += 1;
    }
    chi_square(&observed, &[f64::from(DRAWS) / 8.0; 8])
}

/// The chi-square quantile for 7 degrees of freedom at 1e-5. With σ > 1e8 the last three bits are uniform to
/// far less than a million draws can see.
const LAST_BITS_LIMIT: f64 = 35.26;

#[test]
fn the_last_bits_of_a_huge_count_are_fair() {
    let laws = [
        Law::Binomial(1 << 60, 0.5),
        Law::Binomial(1 << 63, 0.3),
        Law::Binomial(u64::MAX, 0.9),
        Law::Poisson(4.5e18),
    ];
    for (seed, law) in (300..).zip(laws) {
        let mut xi = stream(seed);
        let distance = last_bits_distance(|| law.draw(&mut xi));
        assert!(distance < LAST_BITS_LIMIT, "{law:?}: chi-square {distance}");
    }
}

#[test]
fn the_test_of_the_last_bits_catches_a_count_that_was_a_double() {
    let (n, p) = (1u64 << 60, 0.5);
    let mut xi = stream(400);
    let rounded = || (n as f64 * p + xi.normal() * (n as f64 * p * (1.0 - p)).sqrt()) as u64;
    assert!(last_bits_distance(rounded) > LAST_BITS_LIMIT);
}

#[test]
fn certain_and_impossible_trials_need_no_luck() {
    let mut xi = stream(500);
    for n in [0, 1, 19, 1 << 60, u64::MAX] {
        for p in [0.0, -0.0, -1.0, f64::NEG_INFINITY] {
            assert_eq!(xi.binomial(n, p), 0);
        }
        for p in [1.0, 2.0, f64::INFINITY] {
            assert_eq!(xi.binomial(n, p), n);
        }
        // The smallest positive double: the chance of one success in 2^64 trials is 1e-304.
        assert_eq!(xi.binomial(n, 5e-324), 0);
    }
    assert_eq!(xi.poisson(0.0), 0);
    assert_eq!(xi.poisson(5e-324), 0);
}

#[test]
fn counts_stay_within_range_at_the_ends_of_the_parameters() {
    let mut xi = stream(501);
    for n in (0..64).chain([1 << 53, u64::MAX - 1, u64::MAX]) {
        for p in [1e-300, 1e-19, 1e-3, 0.1, 0.499, 0.5, 0.501, 0.9, 1.0 - 2f64.powi(-53)] {
            for _ in 0..200 {
                let k = xi.binomial(n, p);
                assert!(k <= n);
                let law = Law::Binomial(n, p);
                // Further out than 12 σ + 24 is less likely than 2 exp(-36) by Bernstein's inequality. With
                // a tiny p the mean is 0, and the exact deviation would need a shift beyond 128 bits.
                let off = if p < 1e-20 { k as f64 } else { law.deviation(k) };
                assert!(off.abs() <= 12.0 * law.variance().sqrt() + 24.0, "{law:?}: k = {k}");
            }
        }
    }
    // The largest mean below 2^63.
    let law = Law::Poisson(2f64.powi(63) * (1.0 - 2f64.powi(-53)));
    for _ in 0..1000 {
        assert!(law.deviation(law.draw(&mut xi)).abs() < 12.0 * law.variance().sqrt());
    }
}

#[test]
fn successes_and_failures_of_one_stream_add_up_to_the_trials() {
    for (sample, n) in (0..1000).zip([10, 100, 1 << 40, u64::MAX].into_iter().cycle()) {
        let address = Address { seed: 502, role: Role::Setup, step: 0, sample };
        // 1 - p is a double for p in [1/2, 1].
        let p = 0.5 + 0.5 * address.stream().open_uniform();
        assert_eq!(address.stream().binomial(n, p), n - address.stream().binomial(n, 1.0 - p));
    }
}

#[test]
fn counts_are_part_of_the_random_stream() {
    let mut xi = stream(1);
    let counts = [
        xi.binomial(20, 0.3),
        xi.binomial(1_000_000, 0.7),
        xi.binomial(1 << 60, 0.5),
        xi.binomial(u64::MAX, 0.1),
        xi.poisson(3.0),
        xi.poisson(1e15 + 0.5),
    ];
    // A run is named by its seed: a change here changes published runs and belongs in the changelog.
    assert_eq!(counts, [7, 699458, 576460752573113148, 1844674406166356473, 2, 1000000008410503]);
}
