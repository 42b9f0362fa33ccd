//! Tails of the normal law and Student's, Fisher's and the chi-square law.

use std::f64::consts::FRAC_1_SQRT_2;

use serde::{Deserialize, Serialize};

/// The law of an estimate over its standard error.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "law", rename_all = "kebab-case")]
pub enum Law {
    /// The standard normal law: z values.
    Normal,
    /// Student's law: t values.
    Student {
        /// Its degrees of freedom.
        degrees: f64,
    },
}

/// From here on Student's law is a normal one of a changed argument, to all digits.
const MANY: f64 = 1e4;
/// Terms of a continued fraction or a series, at most.
const TERMS: u32 = 100_000;

impl Law {
    /// The probability of a value at least as far from 0.
    ///
    /// ```
    /// use pasta_opt::inference::Law;
    ///
    /// // R: 2*pt(-2.5, 12), 2*pnorm(-2.5)
    /// assert!((Law::Student { degrees: 12.0 }.two_sided(2.5) - 0.027915399571325213).abs() < 1e-15);
    /// assert!((Law::Normal.two_sided(2.5) - 0.01241933065155227).abs() < 1e-16);
    /// ```
    pub fn two_sided(self, value: f64) -> f64 {
        match self {
            Self::Normal => libm::erfc(value.abs() * FRAC_1_SQRT_2),
            Self::Student { degrees } if degrees > MANY => {
                // Hill (1970), Algorithm 395; the next term is below a rounding.
                let w = degrees - 0.5;
                let z = (w * libm::log1p(value * value / degrees)).sqrt();
                libm::erfc((z + (z * z * z + 3.0 * z) / (48.0 * w * w)) * FRAC_1_SQRT_2)
            }
            Self::Student { degrees } => {
                let squared = value * value;
                let sum = degrees + squared;
                incomplete_beta(0.5 * degrees, 0.5, [degrees / sum, squared / sum])
            }
        }
    }

    /// The value that is exceeded in size with this probability, which is between 0 and 1.
    pub fn exceeded(self, probability: f64) -> f64 {
        let (mut low, mut high) = (0.0, 1.0);
        while self.two_sided(high) > probability && high < 1e300 {
            (low, high) = (high, 2.0 * high);
        }
        // Until the two are neighbours.
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            if self.two_sided(middle) > probability {
                low = middle;
            } else {
                high = middle;
            }
        }
        0.5 * (low + high)
    }
}

/// The probability of a value of Fisher's law of `over` and `under` degrees of freedom that is at least as large.
pub(super) fn fisher_tail(value: f64, over: f64, under: f64) -> f64 {
    let sum = under + over * value;
    incomplete_beta(0.5 * under, 0.5 * over, [under / sum, over * value / sum])
}

/// The probability of a value of the chi-square law that is at least as large.
pub(super) fn chi_square_tail(value: f64, degrees: f64) -> f64 {
    let (a, x) = (0.5 * degrees, 0.5 * value);
    if x <= 0.0 || a <= 0.0 {
        return 1.0;
    }
    let front = libm::exp(a * libm::log(x) - x - libm::lgamma(a));
    if x < a + 1.0 {
        // The series of the other tail.
        let (mut term, mut sum) = (1.0 / a, 1.0 / a);
        for k in 1..TERMS {
            term *= x / (a + f64::from(k));
            sum += term;
            if term <= f64::EPSILON * sum {
                break;
            }
        }
        return (1.0 - front * sum).max(0.0);
    }
    // x + 1 - a - 1 (1 - a)/(x + 3 - a - ..).
    let fraction = lentz(x + 1.0 - a, |k| (-k * (k - a), x + 1.0 - a + 2.0 * k));
    front / fraction
}

/// I_x(a, b), given x and 1 - x.
fn incomplete_beta(a: f64, b: f64, [x, rest]: [f64; 2]) -> f64 {
    if x <= 0.0 || rest <= 0.0 {
        return if x <= 0.0 { 0.0 } else { 1.0 };
    }
    // The fraction converges quickly on this side of the middle.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, [rest, x]);
    }
    let front =
        a * libm::log(x) + b * libm::log(rest) + libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b);
    let fraction = lentz(1.0, |k| {
        let m = (k / 2.0).floor();
        let numerator = if k % 2.0 == 0.0 {
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        } else {
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        };
        (numerator, 1.0)
    });
    libm::exp(front) / (a * fraction)
}

/// The continued fraction first + n_1/(d_1 + n_2/(d_2 + ..)), by the method of Lentz.
fn lentz(first: f64, term: impl Fn(f64) -> (f64, f64)) -> f64 {
    const TINY: f64 = 1e-300;
    let nonzero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let (mut value, mut above, mut below) = (nonzero(first), nonzero(first), 0.0);
    for k in 1..TERMS {
        let (numerator, denominator) = term(f64::from(k));
        below = 1.0 / nonzero(denominator + numerator * below);
        above = nonzero(denominator + numerator / above);
        value *= above * below;
        if (above * below - 1.0).abs() <= f64::EPSILON {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::{Law, chi_square_tail, fisher_tail};

    /// Agrees to ten digits: lgamma of thousands loses five.
    fn near(got: f64, want: f64) {
        assert!((got - want).abs() <= 1e-10 * want.abs(), "{got} {want}");
    }

    #[test]
    fn tails_are_those_of_r() {
        let student = |value: f64, degrees: f64| Law::Student { degrees }.two_sided(value);
        // R: sprintf("%.17g", 2*pt(-c(0.3, 1, 12.7, 40, 3, 8, 3, 30), c(1, 2, 1, 5, 1e4, 5e3, 1e6, 15)))
        near(student(0.3, 1.0), 0.8144528418445154);
        near(student(1.0, 2.0), 0.42264973081037427);
        near(student(12.7, 1.0), 0.05002432768934415);
        near(student(40.0, 5.0), 1.8411962171772952e-07);
        near(student(3.0, 10000.0), 0.0027064481899976654);
        near(student(8.0, 5000.0), 1.5339871886915433e-15);
        near(student(3.0, 1000000.0), 0.0026998625414217923);
        near(student(30.0, 15.0), 8.314807194324945e-15);
        // R: sprintf("%.17g", qt(.975, c(1, 2, 9, 100, 1e5)))
        near(Law::Student { degrees: 1.0 }.exceeded(0.05), 12.706204736174694);
        near(Law::Student { degrees: 2.0 }.exceeded(0.05), 4.302652729749462);
        near(Law::Student { degrees: 9.0 }.exceeded(0.05), 2.262157162798205);
        near(Law::Student { degrees: 100.0 }.exceeded(0.05), 1.9839715185235516);
        near(Law::Student { degrees: 100000.0 }.exceeded(0.05), 1.9599877075346088);
        near(Law::Normal.exceeded(0.05), 1.959_963_984_540_054);
        // R: sprintf("%.17g", pf(c(.5, 4, 330.3, 1.2, 3), c(3, 1, 6, 50, 4), c(10, 7, 9, 1e4, 1e7), lower.tail=FALSE))
        near(fisher_tail(0.5, 3.0, 10.0), 0.6906222455335573);
        near(fisher_tail(4.0, 1.0, 7.0), 0.08561932856297597);
        near(fisher_tail(330.3, 6.0, 9.0), 4.983041240487613e-10);
        near(fisher_tail(1.2, 50.0, 10000.0), 0.15800687062544724);
        // Here lgamma leaves eight.
        assert!((fisher_tail(3.0, 4.0, 1e7) - 0.017351309854223333).abs() < 1e-9);
        // R: sprintf("%.17g", pchisq(c(.1, 5, 80, 1000), c(1, 5, 30, 900), lower.tail=FALSE))
        near(chi_square_tail(0.1, 1.0), 0.7518296340458493);
        near(chi_square_tail(5.0, 5.0), 0.41588018699550794);
        near(chi_square_tail(80.0, 30.0), 1.975623243491064e-06);
        near(chi_square_tail(1000.0, 900.0), 0.010994608942135853);
    }

    #[test]
    fn tails_end_where_they_should() {
        assert_eq!([Law::Normal.two_sided(0.0), Law::Student { degrees: 3.0 }.two_sided(0.0)], [1.0, 1.0]);
        assert_eq!((chi_square_tail(0.0, 3.0), fisher_tail(0.0, 2.0, 5.0)), (1.0, 1.0));
    }
}
