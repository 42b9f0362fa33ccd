//! Binomial and Poisson counts whose error does not grow with the count.
//!
//! Doubles hold integers up to 2^53, and a log-probability of order one is lost in log-factorials of order
//! n ln n. So a large count is drawn as mode + j: the mode is an exact integer, only the offset j, some
//! standard deviations long, is ever a double, and the log-probability relative to the mode is a sum of terms
//! that are themselves of order one.
//!
//! Hörmann, "The generation of binomial random variates", J. Stat. Comput. Simul. 46 (1993): the transformed
//! rejection BTRS. Loader, "Fast and accurate computation of binomial probabilities" (2000): the deviance.
//!
//! The uniform draws have 52 bits. Probabilities below 2^-52 are not resolved, and at n = 2^63 the weight of
//! a single count near the mode is right to about 2^-20; sums over many counts are as good as the doubles.

use super::Stream;

/// From this mean on the constants of [`Hat`] are valid; below it, stepping through the counts is cheap.
const SEARCH_BELOW: f64 = 10.0;

/// `p` outside [0, 1] acts like the nearer end; NaN is a caller's error and acts like 0.
pub(super) fn binomial(xi: &mut Stream, n: u64, p: f64) -> u64 {
    debug_assert!(!p.is_nan(), "a probability must be a number");
    if p > 0.5 {
        // 1 - p is exact for p in [1/2, 1].
        n - binomial(xi, n, 1.0 - p)
    } else if p > 0.0 {
        let trials = n as f64;
        if trials * p < SEARCH_BELOW {
            let odds = p / (1.0 - p);
            let none = libm::exp(trials * libm::log1p(-p));
            search(xi, none, |k| (trials - k).max(0.0) * odds)
        } else {
            Law::binomial(n, p).draw(xi)
        }
    } else {
        0
    }
}

/// A negative mean acts like 0. NaN and a mean from 2^63 on are a caller's error and act like 0 and 2^63.
pub(super) fn poisson(xi: &mut Stream, mean: f64) -> u64 {
    const LIMIT: f64 = (1u64 << 63) as f64;
    debug_assert!(mean < LIMIT, "a Poisson mean must be a number below 2^63");
    if mean >= SEARCH_BELOW {
        Law::poisson(mean.min(LIMIT)).draw(xi)
    } else if mean > 0.0 {
        search(xi, libm::exp(-mean), |_| mean)
    } else {
        0
    }
}

/// Inversion by sequential search: `none` is the probability of 0, and the probability of k + 1 is that of k
/// times `growth(k)` / (k + 1).
fn search(xi: &mut Stream, none: f64, growth: impl Fn(f64) -> f64) -> u64 {
    // With a mean below 10 a count of 110 has probability below 1e-70: only a uniform draw above the rounded
    // sum of all probabilities, one in about 1e15, gets there, and it is drawn again.
    const END: u32 = 110;
    loop {
        let mut rest = xi.uniform();
        let mut mass = none;
        for k in 0..END {
            if rest < mass {
                return u64::from(k);
            }
            rest -= mass;
            mass *= growth(f64::from(k)) / f64::from(k + 1);
        }
    }
}

/// A law of counts seen from its mode m = floor((n + 1) p): the binomial, or the Poisson law as its limit for
/// p -> 0 with (n + 1) p = mean.
#[derive(Debug)]
struct Law {
    /// m
    mode: u64,
    /// n
    most: u64,
    /// (n + 1) p - m
    fraction: f64,
    /// p
    p: f64,
    /// n - m + 1
    failures: f64,
    /// sqrt(n p (1 - p))
    deviation: f64,
}

impl Law {
    /// For p in (0, 1/2] and n p >= [`SEARCH_BELOW`].
    fn binomial(n: u64, p: f64) -> Law {
        // (n + 1) p = product / 2^shift without rounding. The product has at most 118 bits; n p >= 10 with
        // n < 2^64 implies p > 2^-61, so the shift is below 128.
        let (mantissa, exponent) = libm::frexp(p);
        let shift = 53 - exponent;
        let product = (u128::from(n) + 1) * (libm::ldexp(mantissa, 53) as u128);
        let mode = product >> shift;
        let fraction = libm::ldexp((product - (mode << shift)) as f64, -shift);
        let mode = mode as u64;
        Law {
            mode,
            most: n,
            fraction,
            p,
            failures: (n - mode) as f64 + 1.0,
            deviation: (n as f64 * p * (1.0 - p)).sqrt(),
        }
    }

    /// For a mean in [[`SEARCH_BELOW`], 2^63].
    fn poisson(mean: f64) -> Law {
        Law {
            mode: mean as u64,
            most: u64::MAX,
            fraction: mean - mean.floor(),
            p: 0.0,
            failures: f64::INFINITY,
            deviation: mean.sqrt(),
        }
    }

    /// ln P(m + j) / P(m), for 0 <= m + j <= n.
    ///
    /// With M = m + 1 and N = n - m + 1 it is -ln Γ(M + j)/Γ(M) - ln Γ(N - j)/Γ(N) + j ln(p/q). Taking j ln M
    /// and -j ln N out of the first two leaves j ln(p N / (q M)), and p N - q M = (n + 1) p - m - q.
    fn log_ratio(&self, j: f64) -> f64 {
        let q = 1.0 - self.p;
        let successes = self.mode as f64 + 1.0;
        let tilt = libm::log1p((self.fraction - q) / (q * successes));
        j * tilt - log_gamma_rise(successes, j) - log_gamma_rise(self.failures, -j)
    }

    fn draw(&self, xi: &mut Stream) -> u64 {
        let hat = Hat::over(self);
        loop {
            let u = xi.open_uniform() - 0.5;
            let v = xi.open_uniform();
            let edge = 0.5 - u.abs();
            let j = hat.offset(u, edge);
            // Counts are compared as integers. The cast saturates: an offset of 2^63 is more than 2^30 σ, and
            // its log-ratio, hugely negative or NaN, rejects it below if it is not rejected here.
            let Some(k) = self.mode.checked_add_signed(j as i64).filter(|&k| k <= self.most) else {
                continue;
            };
            if edge >= Hat::SQUEEZE_FROM && v <= hat.squeeze
                || libm::log(v / hat.height(edge)) <= self.log_ratio(j)
            {
                return k;
            }
        }
    }
}

/// Hörmann's hat over P / P(m). The offset of a uniform u in (-1/2, 1/2) grows with slope a / edge^2 + b,
/// edge = 1/2 - |u|, so its density is 1 / slope. The letters and the fitted constants are the paper's; that
/// they also cover the Poisson limit, for which Hörmann has a fit of its own (PTRS), is tested below.
#[derive(Debug)]
struct Hat {
    a: f64,
    b: f64,
    /// α, an upper bound of slope P / P(m).
    alpha: f64,
    /// v_r, a lower bound of slope P / (α P(m)) for edge >= [`Hat::SQUEEZE_FROM`].
    squeeze: f64,
    /// n p + 1/2 - m
    centre: f64,
}

impl Hat {
    const SQUEEZE_FROM: f64 = 0.07;

    fn over(law: &Law) -> Hat {
        let b = 1.15 + 2.53 * law.deviation;
        Hat {
            a: -0.0873 + 0.0248 * b + 0.01 * law.p,
            b,
            alpha: (2.83 + 5.1 / b) * law.deviation,
            squeeze: 0.92 - 4.2 / b,
            centre: law.fraction - law.p + 0.5,
        }
    }

    fn offset(&self, u: f64, edge: f64) -> f64 {
        ((2.0 * self.a / edge + self.b) * u + self.centre).floor()
    }

    /// slope / α: an offset is kept with probability height P / P(m) <= 1.
    fn height(&self, edge: f64) -> f64 {
        (self.a / (edge * edge) + self.b) / self.alpha
    }
}

/// ln Γ(z + j) - ln Γ(z) - j ln z for integers z >= 1 and j > -z; 0 for infinite z.
///
/// By Stirling it is z D(x) - ln(1 + x) / 2 + s(z + j) - s(z) with x = j / z and the deviance
/// D(x) = (1 + x) ln(1 + x) - x of Loader (2000).
fn log_gamma_rise(z: f64, j: f64) -> f64 {
    let x = j / z;
    // ln(1 + x), and D(x) / x: the factor j in front keeps an infinite z finite.
    let (log, excess) = if x.abs() < 0.1 {
        // ln(1 + x) = 2 artanh v = 2 v (1 + tail): D is O(x^2), and none of its terms is larger. The first
        // term left out is v^14 / 15 < 1e-19.
        let v = x / (2.0 + x);
        let w = v * v;
        let series = 1.0 / 7.0 + w * (1.0 / 9.0 + w * (1.0 / 11.0 + w * (1.0 / 13.0)));
        let tail = w * (1.0 / 3.0 + w * (1.0 / 5.0 + w * series));
        (2.0 * v * (1.0 + tail), v + 2.0 * (1.0 + x) / (2.0 + x) * tail)
    } else {
        let log = libm::log1p(x);
        (log, (z + j) / j * log - 1.0)
    };
    j * excess - 0.5 * log + stirling(z + j) - stirling(z)
}

/// s(z) = ln Γ(z) - (z - 1/2) ln z + z - ln(2 π) / 2 for integers z >= 1.
fn stirling(z: f64) -> f64 {
    const FIRST: [f64; 9] = [
        0.08106146679532726,
        0.04134069595540929,
        0.02767792568499834,
        0.020790672103765093,
        0.016644691189821193,
        0.013876128823070748,
        0.01189670994589177,
        0.010411265261972096,
        0.009255462182712733,
    ];
    // From z = 10 on the first term left out of the asymptotic series is below 2e-14.
    let asymptotic = || {
        let w = 1.0 / (z * z);
        let series = 1.0 / 1260.0 - w * (1.0 / 1680.0 - w * (1.0 / 1188.0));
        (1.0 / 12.0 - w * (1.0 / 360.0 - w * series)) / z
    };
    FIRST.get((z as usize).wrapping_sub(1)).copied().unwrap_or_else(asymptotic)
}

#[cfg(test)]
mod tests {
    use super::{Hat, Law};

    /// n, p, the mode, j and ln P(m + j) / P(m), from log-gammas of 80 digits (mpmath).
    const BINOMIAL: [(u64, f64, u64, f64, f64); 16] = [
        (40, 0.3, 12, -12.0, -12.27610775726753),
        (40, 0.3, 12, 1.0, -0.08004270767353648),
        (40, 0.3, 12, 28.0, -46.16802217275568),
        (1000, 0.5, 500, -50.0, -5.003345045430719),
        (1000, 0.5, 500, 111.0, -24.823255631794724),
        (1_000_000_000, 1e-7, 100, -40.0, -9.095606127631825),
        (1_000_000_000, 1e-7, 100, 30.0, -4.238344641828693),
        (1_000_000_000_000_000, 1e-7, 100_000_000, -35_000.0, -6.125540290295805),
        (1_000_000_000_000_000, 0.3, 300_000_000_000_000, 1.0, -3.386201096410716e-15),
        (1_000_000_000_000_000, 0.3, 300_000_000_000_000, 72_456_884.0, -12.499999590614663),
        (1 << 63, 0.3, 2_767_011_611_056_432_640, -3_479_321_169.0, -3.1250000000483604),
        (1 << 63, 0.5, 1 << 62, 1.0, -2.168404344971009e-19),
        (1 << 63, 0.5, 1 << 62, 6_074_001_000.0, -8.000000000126179),
        (1 << 63, 0.5, 1 << 62, -12_148_002_000.0, -32.00000000050471),
        (1 << 63, 1e-7, 922_337_203_685, 5_762_303.0, -17.99996257495889),
        (u64::MAX, 0.1, 1_844_674_407_370_955_264, -1_288_490_189.0, -0.4999999998706496),
    ];

    /// The mean, j and ln P(m + j) / P(m), likewise.
    const POISSON: [(f64, f64, f64); 6] = [
        (12.75, -12.0, -10.559160763591336),
        (12.75, -3.0, -0.4512067992328889),
        (12.75, 20.0, -10.660119528364448),
        (1_000_000.5, -4500.0, -10.140216686492),
        (1_000_000.5, 1.0, -4.999996250002917e-7),
        (4_611_686_018_428_436_480.0, 6_442_450_944.0, -4.499999998601993),
    ];

    fn assert_log_ratio(law: &Law, j: f64, exact: f64) {
        let got = law.log_ratio(j);
        // The deviance of |x| >= 0.1 is a difference that loses a factor 2/|x| <= 20: with a few roundings,
        // 64 units of 2^-53 relative to the value. The Stirling series is good to 2e-14 at z = 10 and is used
        // twice; only the laws with a mode below 100 can see that.
        let series = if law.mode < 100 { 4e-14 } else { 0.0 };
        let tolerance = 64.0 * 0.5 * f64::EPSILON * exact.abs() + series;
        assert!((got - exact).abs() <= tolerance, "{law:?}, j = {j}: {got} instead of {exact}");
    }

    #[test]
    fn log_ratios_to_the_mode_agree_with_eighty_digit_arithmetic() {
        for (n, p, mode, j, exact) in BINOMIAL {
            let law = Law::binomial(n, p);
            assert_eq!(law.mode, mode);
            assert_log_ratio(&law, j, exact);
        }
        for (mean, j, exact) in POISSON {
            assert_log_ratio(&Law::poisson(mean), j, exact);
        }
    }

    #[test]
    fn the_hat_covers_every_law_and_the_squeeze_lies_below_it() {
        let means = (0..60).map(|i| 10.0 * libm::exp2(f64::from(i)));
        let early = (0..400).map(|i| 10.0 + 0.1 * f64::from(i));
        for mean in early.chain(means) {
            assert_covered(&Law::poisson(mean.min((1u64 << 63) as f64)));
            for p in [1e-3, 0.01, 0.05, 0.2, 0.35, 0.5] {
                // Rounded up, so that n p >= 10; the cast saturates at the largest n.
                assert_covered(&Law::binomial((mean / p).ceil() as u64, p));
            }
        }
    }

    fn assert_covered(law: &Law) {
        let hat = Hat::over(law);
        for i in -999..1000 {
            let u = f64::from(i) / 2000.0;
            let edge = 0.5 - u.abs();
            let j = hat.offset(u, edge);
            if j < -(law.mode as f64) || j > law.failures - 1.0 {
                continue;
            }
            let kept = hat.height(edge) * libm::exp(law.log_ratio(j));
            assert!(kept <= 1.0, "{law:?}: kept with probability {kept} at u = {u}");
            assert!(edge < Hat::SQUEEZE_FROM || kept >= hat.squeeze, "{law:?}: {kept} at u = {u}");
        }
    }
}
