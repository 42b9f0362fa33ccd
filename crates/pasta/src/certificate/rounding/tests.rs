//! Bounds that were rounded against rational numbers, and against fixed-point numbers of 400 binary digits.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, Signed, Zero};

use super::super::sequential::shrink;
use super::*;
use crate::draws::{Address, Role, Stream};

/// Uniform numbers by address.
struct Random(Stream);

impl Random {
    fn new(seed: u64) -> Self {
        Self(Address { seed, role: Role::Certificate, step: 0, sample: 0 }.stream())
    }

    fn unit(&mut self) -> f64 {
        use rand_core::Rng;
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    fn below(&mut self, count: usize) -> usize {
        (self.unit() * count as f64) as usize
    }

    fn vector(&mut self, dim: usize, size: f64) -> Vec<f64> {
        (0..dim).map(|_| size * self.between(-1.0, 1.0)).collect()
    }
}

fn exact(x: f64) -> BigRational {
    BigRational::from_float(x).expect("a finite number")
}

fn ratio(a: i64, b: i64) -> BigRational {
    BigRational::new(a.into(), b.into())
}

/// An integer times a power of two: sums and products of floating-point numbers are such numbers, and nothing is cancelled, so that they are
/// quick.
#[derive(Clone)]
struct Dyadic(BigInt, i32);

impl Dyadic {
    fn of(x: f64) -> Self {
        let (mantissa, exponent, sign) = num_traits::float::FloatCore::integer_decode(x);
        Self(BigInt::from(mantissa) * sign, exponent.into())
    }

    fn times(&self, other: &Self) -> Self {
        Self(&self.0 * &other.0, self.1 + other.1)
    }

    fn minus(&self, other: &Self) -> Self {
        let exponent = self.1.min(other.1);
        let scaled = |x: &Self| &x.0 << (x.1 - exponent);
        Self(scaled(self) - scaled(other), exponent)
    }

    fn at_least(&self, other: &Self) -> bool {
        !self.minus(other).0.is_negative()
    }
}

/// Whether U - s U^2/2 >= b = |mean c| + s v/2 + log/(s k). Both sides are multiplied by s k: nothing is divided.
fn is_above_root(known: &Known, bound: &Dyadic) -> bool {
    let Known { mean, scale, log, count, variance } = *known;
    let [mean, s, log, k, v] = [mean, scale, log, count, variance].map(Dyadic::of);
    let half = s.times(&Dyadic::of(0.5));
    let left = bound.minus(&half.times(bound).times(bound)).minus(&mean).minus(&half.times(&v));
    left.times(&s).times(&k).at_least(&log)
}

#[test]
fn a_hundred_thousand_stated_bounds_are_not_below_the_root_and_hardly_above_it() {
    let mut random = Random::new(1);
    let (mut stated, mut plain_below) = (0, 0);
    for _ in 0..100_000 {
        let scale = 10f64.powf(random.between(-30.0, 30.0));
        let log = random.between(0.01, 250.0);
        // A few in a hundred are at the very edge of each of the three conditions.
        let near = |random: &mut Random| if random.unit() < 0.05 { 1.0 } else { random.unit() };
        let known = Known {
            mean: LARGEST_MEAN * near(&mut random) / scale,
            scale,
            log,
            count: (LEAST_COUNT * log / near(&mut random)).ceil(),
            variance: LARGEST_SPREAD * near(&mut random) / (scale * scale),
        };
        let Some(bound) = known.bound() else { continue };
        stated += 1;
        let b = known.mean + 0.5 * scale * known.variance + log / (scale * known.count);
        let plain = 2.0 * b / (1.0 + (1.0 - 2.0 * scale * b).sqrt());
        plain_below += usize::from(!is_above_root(&known, &Dyadic::of(plain)));
        let [s, v, mean, k, log] = [scale, known.variance, known.mean, known.count, log].map(Dyadic::of);
        let [one, hundred] = [1.0, 100.0].map(Dyadic::of);
        assert!(k.at_least(&log.times(&Dyadic::of(20.0))), "{known:?}");
        assert!(one.at_least(&s.times(&s).times(&v).times(&hundred)), "{known:?}");
        assert!(Dyadic::of(17.0).at_least(&s.times(&mean).times(&hundred)), "{known:?}");
        let bound = Dyadic::of(bound);
        assert!(one.at_least(&s.times(&bound)) && is_above_root(&known, &bound), "{known:?}");
        // Ten operations are rounded, each by at most two units in the last place.
        assert!(!is_above_root(&known, &bound.times(&Dyadic::of(1.0 - 0.5f64.powi(47)))), "{known:?}");
    }
    assert!(stated > 80_000, "{stated}");
    // The same formula, rounded to the nearest: this test sees it fail.
    assert!(plain_below > 20_000, "{plain_below}");
}

/// Binary digits after the point.
const DIGITS: u32 = 400;

/// A number of moderate size, exactly.
fn fixed(x: f64) -> BigInt {
    let scaled = exact(x) * BigRational::from(BigInt::one() << DIGITS);
    assert!(scaled.is_integer(), "{x} has digits beyond the last");
    scaled.to_integer()
}

fn times(a: &BigInt, b: &BigInt) -> BigInt {
    (a * b) >> DIGITS
}

fn over(a: &BigInt, b: &BigInt) -> BigInt {
    (a << DIGITS) / b
}

fn length(x: &[BigInt]) -> BigInt {
    x.iter().map(|x| x * x).sum::<BigInt>().sqrt()
}

/// log y for y >= 1, by the series of the area tangent.
fn log(y: &BigInt) -> BigInt {
    let (one, two) = (BigInt::one() << DIGITS, BigInt::from(2) << DIGITS);
    let series = |y: &BigInt| {
        let z = over(&(y - &one), &(y + &one));
        let square = times(&z, &z);
        let (mut power, mut sum, mut i) = (z, BigInt::zero(), 1);
        while !power.is_zero() {
            sum += &power / i;
            power = times(&power, &square);
            i += 2;
        }
        2 * sum
    };
    let (mut y, mut halvings) = (y.clone(), 0);
    while y >= two {
        y /= 2;
        halvings += 1;
    }
    series(&y) + halvings * series(&two)
}

#[test]
fn the_length_of_a_mean_of_clipped_vectors_is_not_below_the_exact_one() {
    let mut random = Random::new(2);
    for _ in 0..300 {
        let (dim, count) = (1 + random.below(20), 2 + random.below(30));
        let size = 2f64.powf(random.between(-20.0, 20.0));
        let scale = 10f64.powf(random.between(-9.0, 3.0)) / size;
        // Where vectors all but cancel, their errors are most of what is left.
        let cancels = random.unit() < 0.5;
        let first = random.vector(dim, size);
        let (mut sum, mut moments) = (vec![0.0; dim], Moments::new(dim));
        let (mut exact_sum, mut exact_squares) = (vec![BigInt::zero(); dim], BigInt::zero());
        for j in 0..count {
            let sign = if j % 2 == 0 { 1.0 } else { -1.0 };
            let x: Vec<f64> =
                if cancels { first.iter().map(|x| sign * x).collect() } else { random.vector(dim, size) };
            moments.add(&x);
            let factor = shrink(scale * squared_norm(&x).sqrt());
            sum.iter_mut().zip(&x).for_each(|(sum, x)| *sum += factor * x);
            let x: Vec<BigInt> = x.iter().map(|x| fixed(*x)).collect();
            exact_squares += x.iter().map(|x| x * x).sum::<BigInt>();
            let t = times(&fixed(scale), &length(&x));
            let psi = log(&((BigInt::one() << DIGITS) + &t + times(&t, &t) / 2));
            exact_sum.iter_mut().zip(&x).for_each(|(sum, x)| *sum += over(&times(x, &psi), &t));
        }
        let mean = length(&exact_sum) / count;
        let bound = mean_length_up(&sum, count as f64, &Spread::of(&moments));
        assert!(fixed_up(bound) >= mean, "{dim} {count} {scale}");
        // Half of the additions' error and none of the others' would be seen at once; a millionth of a millionth is never added.
        let root_mean_square = (exact_squares / count).sqrt();
        assert!(fixed_up(bound) <= mean + root_mean_square / 1_000_000_000_000u64, "{dim} {count} {scale}");
    }
}

/// A number of any size, to the last digit.
fn fixed_up(x: f64) -> BigInt {
    (exact(x) * BigRational::from(BigInt::one() << DIGITS)).ceil().to_integer()
}

#[test]
fn spread_and_size_of_vectors_are_not_below_the_exact_ones() {
    let mut random = Random::new(3);
    for _ in 0..1_000 {
        let (dim, count) = (1 + random.below(4), 2 + random.below(12));
        // Far from zero, the recursion loses most.
        let far = 10f64.powf(random.between(-3.0, 12.0));
        let offset = random.vector(dim, far);
        let vectors: Vec<Vec<f64>> = (0..count)
            .map(|_| random.vector(dim, 1.0).iter().zip(&offset).map(|(x, offset)| x + offset).collect())
            .collect();
        let mut moments = Moments::new(dim);
        vectors.iter().for_each(|x| moments.add(x));
        let k = BigRational::from(BigInt::from(count));
        let (mut squares, mut scatter) = (BigRational::zero(), BigRational::zero());
        for i in 0..dim {
            let column: Vec<BigRational> = vectors.iter().map(|x| exact(x[i])).collect();
            let mean = column.iter().sum::<BigRational>() / &k;
            squares += column.iter().map(|x| x * x).sum::<BigRational>();
            scatter += column.iter().map(|x| (x - &mean) * (x - &mean)).sum::<BigRational>();
        }
        let spread = Spread::of(&moments);
        let size = exact(spread.root_mean_square);
        assert!(&size * &size * &k >= squares, "{vectors:?}");
        assert!(exact(spread.variance) * (&k - BigRational::one()) >= scatter, "{vectors:?}");
    }
}

#[test]
fn sums_in_any_order_of_a_leaf_are_as_close_as_the_chain_of_additions_allows() {
    let mut random = Random::new(4);
    for _ in 0..20 {
        let samples: Vec<f64> =
            (0..4096).map(|_| 10f64.powf(random.between(-3.0, 3.0)) * random.between(-1.0, 1.0)).collect();
        let mean = samples.iter().sum::<f64>() / 4096.0;
        let total: BigRational = samples.iter().map(|x| exact(*x)).sum();
        let sizes: BigRational = samples.iter().map(|x| exact(x.abs())).sum();
        let off = (exact(mean) * ratio(4096, 1) - total).abs();
        assert!(off <= sizes * exact(ADDITIONS * f64::EPSILON));
    }
}

#[test]
fn a_norm_is_not_below_the_exact_one_however_small() {
    let mut random = Random::new(5);
    for _ in 0..1_000 {
        let size = 10f64.powf(random.between(-320.0, 100.0));
        let dim = 1 + random.below(40);
        let x = random.vector(dim, size);
        let norm = exact(norm_up(&x));
        let square: BigRational = x.iter().map(|x| exact(*x) * exact(*x)).sum();
        assert!(&norm * &norm >= square, "{x:?}");
    }
}
