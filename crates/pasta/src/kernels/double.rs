//! Numbers of twice the precision: a double and what rounding took from it (Dekker, 1971). No fused multiply-add, so the bits are the same
//! everywhere.

use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};

/// `hi + lo`, where `hi` is the double next to it. Some 31 digits.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Double {
    pub(crate) hi: f64,
    pub(crate) lo: f64,
}

/// a + b and what rounding took from it.
#[inline]
fn sum(a: f64, b: f64) -> Double {
    let hi = a + b;
    let of_b = hi - a;
    Double { hi, lo: (a - (hi - of_b)) + (b - of_b) }
}

/// The same for |a| >= |b|.
#[inline]
fn quick_sum(a: f64, b: f64) -> Double {
    let hi = a + b;
    Double { hi, lo: b - (hi - a) }
}

/// A number of 26 bits and the rest.
#[inline]
fn split(a: f64) -> (f64, f64) {
    let scaled = 134_217_729.0 * a;
    let high = scaled - (scaled - a);
    (high, a - high)
}

/// a b and what rounding took from it.
#[inline]
fn product(a: f64, b: f64) -> Double {
    let hi = a * b;
    let ((a1, a2), (b1, b2)) = (split(a), split(b));
    Double { hi, lo: ((a1 * b1 - hi) + a1 * b2 + a2 * b1) + a2 * b2 }
}

impl Double {
    /// a - b, exactly.
    #[inline]
    pub(crate) fn difference(a: f64, b: f64) -> Self {
        sum(a, -b)
    }

    /// The double next to it.
    #[inline]
    pub(crate) fn rounded(self) -> f64 {
        self.hi
    }
}

impl From<f64> for Double {
    #[inline]
    fn from(hi: f64) -> Self {
        Self { hi, lo: 0.0 }
    }
}

impl Neg for Double {
    type Output = Self;

    #[inline]
    fn neg(self) -> Self {
        Self { hi: -self.hi, lo: -self.lo }
    }
}

impl Add for Double {
    type Output = Self;

    #[inline]
    fn add(self, other: Self) -> Self {
        let (high, low) = (sum(self.hi, other.hi), sum(self.lo, other.lo));
        let first = quick_sum(high.hi, high.lo + low.hi);
        quick_sum(first.hi, first.lo + low.lo)
    }
}

impl Sub for Double {
    type Output = Self;

    #[inline]
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl AddAssign for Double {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Mul for Double {
    type Output = Self;

    #[inline]
    fn mul(self, other: Self) -> Self {
        let high = product(self.hi, other.hi);
        quick_sum(high.hi, high.lo + (self.hi * other.lo + self.lo * other.hi))
    }
}

impl Div<f64> for Double {
    type Output = Self;

    #[inline]
    fn div(self, by: f64) -> Self {
        let first = self.hi / by;
        let rest = self - product(first, by);
        let second = rest.hi / by;
        let rest = rest - product(second, by);
        quick_sum(first, second) + Self::from(rest.hi / by)
    }
}

#[cfg(test)]
mod tests {
    use super::Double;

    #[test]
    fn what_rounding_takes_is_kept() {
        // (1 + 2^-40)^2 = 1 + 2^-39 + 2^-80.
        let e = 2.0_f64.powi(-40);
        let square = Double::from(1.0 + e) * Double::from(1.0 + e);
        assert_eq!((square.hi, square.lo), (1.0 + 2.0 * e, e * e));
        assert_eq!(square - Double::from(1.0 + 2.0 * e), Double::from(e * e));
        let third = Double::from(1.0) / 3.0;
        let back = third * Double::from(3.0) - Double::from(1.0);
        // A few units of 2^-106.
        assert!(back.hi.abs() < 1e-31, "{back:?}");
        let mut tenth = Double::default();
        (0..10).for_each(|_| tenth += Double::from(1.0) / 10.0);
        assert!((tenth - Double::from(1.0)).hi.abs() < 1e-31);
        assert_eq!(Double::difference(1e16, 1.0).rounded(), 1e16 - 1.0);
    }
}
