//! exp and ln(1 + x) without branches and tables: a loop over many numbers becomes vector instructions, with the bits that one number
//! at a time has. The polynomials are those of fdlibm (Sun Microsystems, 1993), whose errors stay below one unit in the last place.

/// ln 2 as a number of 33 bits, whose multiples by an exponent are exact, and the rest.
const LN2: (f64, f64) = (6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10);

/// e^x: 0 below -708 and infinite above 709, a little before the range of numbers ends.
#[inline(always)]
pub(crate) fn exp(x: f64) -> f64 {
    const P: [f64; 5] = [
        1.666_666_666_666_660_2e-1,
        -2.777_777_777_701_559_3e-3,
        6.613_756_321_437_934e-5,
        -1.653_390_220_546_525_2e-6,
        4.138_136_797_057_238_5e-8,
    ];
    // Added to a number, it leaves the nearest whole number in the low bits.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    // Comparisons, not `clamp`: what is no number stays so.
    let inside = if x < -708.0 { -708.0 } else { x };
    let inside = if inside > 709.0 { 709.0 } else { inside };
    let shifted = inside * std::f64::consts::LOG2_E + ROUND;
    let k = shifted - ROUND;
    let (high, low) = (inside - k * LN2.0, k * LN2.1);
    let r = high - low;
    let r2 = r * r;
    let c = r - r2 * (P[0] + r2 * (P[1] + r2 * (P[2] + r2 * (P[3] + r2 * P[4]))));
    let y = 1.0 + ((r * c / (2.0 - c) - low) + high);
    let scale = f64::from_bits((shifted.to_bits() << 52).wrapping_add(1.0_f64.to_bits()));
    let e = y * scale;
    let e = if x < -708.0 { 0.0 } else { e };
    if x > 709.0 { f64::INFINITY } else { e }
}

/// ln(1 + x) for x from 0 to 1.
#[inline(always)]
pub(crate) fn ln_1p(x: f64) -> f64 {
    const L: [f64; 7] = [
        6.666_666_666_666_735e-1,
        3.999_999_999_940_942e-1,
        2.857_142_874_366_239e-1,
        2.222_219_843_214_978_4e-1,
        1.818_357_216_161_805e-1,
        1.531_383_769_920_937_3e-1,
        1.479_819_860_511_658_6e-1,
    ];
    // Above sqrt 2 - 1 the half of 1 + x is closer to 1.
    let is_far = x > std::f64::consts::SQRT_2 - 1.0;
    let f = if is_far { 0.5 * (x - 1.0) } else { x };
    let k = if is_far { 1.0 } else { 0.0 };
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let even = w * (L[1] + w * (L[3] + w * L[5]));
    let odd = z * (L[0] + w * (L[2] + w * (L[4] + w * L[6])));
    let half = 0.5 * f * f;
    k * LN2.0 - ((half - (s * (half + (even + odd)) + k * LN2.1)) - f)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{exp, ln_1p};

    /// Units in the last place between two numbers of one sign.
    fn ulps(a: f64, b: f64) -> u64 {
        a.to_bits().abs_diff(b.to_bits())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]
        /// libm is within one unit of the truth, and so are these.
        #[test]
        fn they_agree_with_libm_to_two_units(x in -708.0..709.0f64, small in -1.0..1.0f64, unit in 0.0..=1.0f64, digits in 0..300i32) {
            prop_assert!(ulps(exp(x), libm::exp(x)) <= 2);
            prop_assert!(ulps(exp(small), libm::exp(small)) <= 2);
            prop_assert!(ulps(ln_1p(unit), libm::log1p(unit)) <= 2);
            let tiny = unit * 10f64.powi(-digits);
            prop_assert!(ulps(ln_1p(tiny), libm::log1p(tiny)) <= 2);
        }
    }

    #[test]
    fn ends_and_what_is_no_number_are_kept() {
        assert_eq!((exp(0.0), exp(-0.0), ln_1p(0.0)), (1.0, 1.0, 0.0));
        assert_eq!((exp(f64::NEG_INFINITY), exp(-709.0), exp(f64::INFINITY)), (0.0, 0.0, f64::INFINITY));
        assert!(exp(f64::NAN).is_nan() && ln_1p(f64::NAN).is_nan());
        assert!(ulps(ln_1p(1.0), std::f64::consts::LN_2) <= 1);
    }
}
