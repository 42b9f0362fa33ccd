//! Exact rational arithmetic for the formulas that end in a count.
//!
//! A ceiling taken in doubles can come out one too large: 4 Delta/(eta eps^2) is an integer more often than
//! one would think. Constants are doubles, doubles are rationals, so the count is computed exactly and every
//! real that is reported is rounded once.

use std::ops::{Add, Div, Mul, Sub};

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{Signed, ToPrimitive, Zero};

/// A rational number, closed under the four operations by value and by reference.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Exact(BigRational);

/// The largest batch, step or epoch count: beyond it a sum of counts could not be told from a wrapped one.
pub(crate) const MAX_COUNT: u64 = 1 << 63;

impl Exact {
    /// The value of a finite double; callers have checked that it is finite.
    pub(crate) fn from_f64(value: f64) -> Self {
        Self(BigRational::from_float(value).expect("constants are checked to be finite before arithmetic"))
    }

    pub(crate) fn from_count(value: u64) -> Self {
        Self(BigRational::from_integer(BigInt::from(value)))
    }

    pub(crate) fn ratio(numerator: u64, denominator: u64) -> Self {
        Self(BigRational::new(BigInt::from(numerator), BigInt::from(denominator)))
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.0.is_zero()
    }

    pub(crate) fn is_positive(&self) -> bool {
        self.0.is_positive()
    }

    pub(crate) fn pow(&self, exponent: i32) -> Self {
        Self(self.0.pow(exponent))
    }

    /// The nearest double.
    pub(crate) fn to_f64(&self) -> f64 {
        self.0.to_f64().expect("a rational always has a nearest double")
    }

    /// The smallest integer at or above this, or the number itself if it exceeds [`MAX_COUNT`].
    pub(crate) fn ceil_count(&self) -> Result<u64, f64> {
        within_count(&self.0.ceil().to_integer())
    }

    /// The largest integer at or below this.
    pub(crate) fn floor_count(&self) -> Result<u64, f64> {
        within_count(&self.0.floor().to_integer())
    }

    /// The largest integer whose square is at or below this.
    pub(crate) fn floor_sqrt_count(&self) -> Result<u64, f64> {
        within_count(&self.0.floor().to_integer().sqrt())
    }
}

fn within_count(integer: &BigInt) -> Result<u64, f64> {
    match integer.to_u64() {
        Some(count) if count <= MAX_COUNT => Ok(count),
        _ => Err(integer.to_f64().unwrap_or(f64::INFINITY)),
    }
}

/// The smallest integer whose square is at or above `n`.
pub(crate) fn ceil_sqrt(n: u64) -> u64 {
    let root = n.isqrt();
    root + u64::from(root * root < n)
}

macro_rules! operator {
    ($trait:ident, $method:ident) => {
        impl $trait<Exact> for Exact {
            type Output = Exact;
            fn $method(self, other: Exact) -> Exact {
                Exact($trait::$method(self.0, other.0))
            }
        }
        impl $trait<&Exact> for Exact {
            type Output = Exact;
            fn $method(self, other: &Exact) -> Exact {
                Exact($trait::$method(self.0, &other.0))
            }
        }
        impl $trait<Exact> for &Exact {
            type Output = Exact;
            fn $method(self, other: Exact) -> Exact {
                Exact($trait::$method(&self.0, other.0))
            }
        }
        impl $trait<&Exact> for &Exact {
            type Output = Exact;
            fn $method(self, other: &Exact) -> Exact {
                Exact($trait::$method(&self.0, &other.0))
            }
        }
        impl $trait<Exact> for u64 {
            type Output = Exact;
            fn $method(self, other: Exact) -> Exact {
                Exact($trait::$method(Exact::from_count(self).0, other.0))
            }
        }
        impl $trait<&Exact> for u64 {
            type Output = Exact;
            fn $method(self, other: &Exact) -> Exact {
                Exact($trait::$method(Exact::from_count(self).0, &other.0))
            }
        }
    };
}

operator!(Add, add);
operator!(Sub, sub);
operator!(Mul, mul);
operator!(Div, div);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ceiling_that_is_an_integer_is_not_rounded_up() {
        // 0.1 * 0.1 rounds up in doubles, so 3/(0.1 * 0.1) computed there lands below its true value.
        let tenth = Exact::from_f64(0.1);
        assert_eq!((3 * &tenth / &tenth).ceil_count(), Ok(3));
        // The double nearest 1/10 is above it, so 1/0.1 is just below ten.
        assert_eq!((1 / &tenth).ceil_count(), Ok(10));
        assert_eq!((1 / &tenth).floor_count(), Ok(9));
    }

    #[test]
    fn counts_beyond_two_to_the_53_are_exact() {
        let n = (1u64 << 60) + 1;
        assert_eq!(Exact::from_count(n).ceil_count(), Ok(n));
        assert!(Exact::from_f64(1e300).ceil_count().is_err());
    }

    #[test]
    fn integer_square_roots_are_exact() {
        assert_eq!(ceil_sqrt(2401), 49);
        assert_eq!(ceil_sqrt(2402), 50);
        assert_eq!(ceil_sqrt(0), 0);
        assert_eq!(Exact::from_count(48).floor_sqrt_count(), Ok(6));
        let root = 3_037_000_499u64;
        assert_eq!(ceil_sqrt(root * root), root);
    }
}
