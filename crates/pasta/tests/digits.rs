//! Digits of coefficients, against least squares in rational arithmetic and Newton's method in 60 digits.
//!
//! The references are for the doubles that the tables hold. Those of least squares are from normal equations over Python's `fractions.Fraction`, those of logistic and
//! Poisson models from Newton's method over `mpmath` with 60 digits; each is rounded once. The intercept comes first.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use pasta_opt::fit::{Fit, Fitted, Verdict, Way};
use pasta_opt::table::{Dense, Design, Features, Linear, Loss, Table};

const LONGLEY: &[f64] = &[
    -3482258.6345958184,
    15.061872271373323,
    -0.03581917929259102,
    -2.020229803816825,
    -1.033226867173592,
    -0.05110410565358071,
    1829.151464613552,
];
const WAMPLER1: &[f64] = &[1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
const WAMPLER2: &[f64] = &[
    1.0000000000000004,
    0.09999999999999867,
    0.010000000000000604,
    0.0009999999999999033,
    0.00010000000000000624,
    9.999999999999864e-6,
];
const WAMPLER3: &[f64] = &[1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
const WAMPLER4: &[f64] = &[1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
const WAMPLER5: &[f64] = &[1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
const FILIP: &[f64] = &[
    -1467.4896313887714,
    -2772.1796242619316,
    -2316.371108609359,
    -1127.9739541497518,
    -354.4782378552308,
    -75.12420262435174,
    -10.875318164699452,
    -1.0622149986404843,
    -0.06701911627445624,
    -0.002467810813235648,
    -4.029625301456807e-5,
];
const NEAR_7: &[f64] = &[1.0298221187399812, 29678748.59050988, -29678746.581569307];
const NEAR_9: &[f64] = &[1.0298221266832581, 2967874674.453364, -2967874672.444423];
const OFFSETS: &[f64] = &[-1099802328810.444, 0.5008852055101066, -1.9963904110054522];
const LOGISTIC: &[f64] = &[-1.9858714954238574, 18.71743788040155, -7.167463837599287];
const POISSON: &[f64] = &[-0.9812190444835915, 0.4875507324465295, 1.2632266324191739];
const LOGISTIC_NEAR: &[f64] = &[-1.985871495571418, 7167475.387009889, -7167463.837035847];
const POISSON_NEAR: &[f64] = &[-0.9812190444128862, -1263224.8815345843, 1263226.6323119493];

/// Longley's table (1967), as NIST has it: deflator, gross national product, unemployed, armed forces, population, year; employment.
const LONGLEY_ROWS: [[f64; 7]; 16] = [
    [83.0, 234289.0, 2356.0, 1590.0, 107608.0, 1947.0, 60323.0],
    [88.5, 259426.0, 2325.0, 1456.0, 108632.0, 1948.0, 61122.0],
    [88.2, 258054.0, 3682.0, 1616.0, 109773.0, 1949.0, 60171.0],
    [89.5, 284599.0, 3351.0, 1650.0, 110929.0, 1950.0, 61187.0],
    [96.2, 328975.0, 2099.0, 3099.0, 112075.0, 1951.0, 63221.0],
    [98.1, 346999.0, 1932.0, 3594.0, 113270.0, 1952.0, 63639.0],
    [99.0, 365385.0, 1870.0, 3547.0, 115094.0, 1953.0, 64989.0],
    [100.0, 363112.0, 3578.0, 3350.0, 116219.0, 1954.0, 63761.0],
    [101.2, 397469.0, 2904.0, 3048.0, 117388.0, 1955.0, 66019.0],
    [104.6, 419180.0, 2822.0, 2857.0, 118734.0, 1956.0, 67857.0],
    [108.4, 442769.0, 2936.0, 2798.0, 120445.0, 1957.0, 68169.0],
    [110.8, 444546.0, 4681.0, 2637.0, 121950.0, 1958.0, 66513.0],
    [112.6, 482704.0, 3813.0, 2552.0, 123366.0, 1959.0, 68655.0],
    [114.2, 502601.0, 3931.0, 2514.0, 125368.0, 1960.0, 69564.0],
    [115.7, 518173.0, 4806.0, 2572.0, 127852.0, 1961.0, 69331.0],
    [116.9, 554894.0, 4007.0, 2827.0, 130081.0, 1962.0, 70551.0],
];

/// What is added to the polynomial of Wampler's third table, and in hundreds and ten thousands to those of the fourth and fifth.
const WAMPLER_ERRORS: [f64; 21] = [
    759.0, -2048.0, 2048.0, -2048.0, 2523.0, -2048.0, 2048.0, -2048.0, 1838.0, -2048.0, 2048.0, -2048.0,
    1838.0, -2048.0, 2048.0, -2048.0, 2523.0, -2048.0, 2048.0, -2048.0, 759.0,
];

/// Filippelli's table, as NIST has it.
const FILIP_X: [f64; 82] = [
    -6.860120914,
    -4.324130045,
    -4.358625055,
    -4.358426747,
    -6.955852379,
    -6.661145254,
    -6.355462942,
    -6.118102026,
    -7.115148017,
    -6.815308569,
    -6.519993057,
    -6.204119983,
    -5.853871964,
    -6.109523091,
    -5.79832982,
    -5.482672118,
    -5.171791386,
    -4.851705903,
    -4.517126416,
    -4.143573228,
    -3.709075441,
    -3.499489089,
    -6.300769497,
    -5.953504836,
    -5.642065153,
    -5.031376979,
    -4.680685696,
    -4.329846955,
    -3.928486195,
    -8.56735134,
    -8.363211311,
    -8.107682739,
    -7.823908741,
    -7.522878745,
    -7.218819279,
    -6.920818754,
    -6.628932138,
    -6.323946875,
    -5.991399828,
    -8.781464495,
    -8.663140179,
    -8.473531488,
    -8.247337057,
    -7.971428747,
    -7.676129393,
    -7.352812702,
    -7.072065318,
    -6.774174009,
    -6.478861916,
    -6.159517513,
    -6.835647144,
    -6.53165267,
    -6.224098421,
    -5.910094889,
    -5.598599459,
    -5.290645224,
    -4.974284616,
    -4.64454848,
    -4.290560426,
    -3.885055584,
    -3.408378962,
    -3.13200249,
    -8.726767166,
    -8.66695597,
    -8.511026475,
    -8.165388579,
    -7.886056648,
    -7.588043762,
    -7.283412422,
    -6.995678626,
    -6.691862621,
    -6.392544977,
    -6.067374056,
    -6.684029655,
    -6.378719832,
    -6.065855188,
    -5.752272167,
    -5.132414673,
    -4.811352704,
    -4.098269308,
    -3.66174277,
    -3.2644011,
];
const FILIP_Y: [f64; 82] = [
    0.8116, 0.9072, 0.9052, 0.9039, 0.8053, 0.8377, 0.8667, 0.8809, 0.7975, 0.8162, 0.8515, 0.8766, 0.8885,
    0.8859, 0.8959, 0.8913, 0.8959, 0.8971, 0.9021, 0.909, 0.9139, 0.9199, 0.8692, 0.8872, 0.89, 0.891,
    0.8977, 0.9035, 0.9078, 0.7675, 0.7705, 0.7713, 0.7736, 0.7775, 0.7841, 0.7971, 0.8329, 0.8641, 0.8804,
    0.7668, 0.7633, 0.7678, 0.7697, 0.77, 0.7749, 0.7796, 0.7897, 0.8131, 0.8498, 0.8741, 0.8061, 0.846,
    0.8751, 0.8856, 0.8919, 0.8934, 0.894, 0.8957, 0.9047, 0.9129, 0.9209, 0.9219, 0.7739, 0.7681, 0.7665,
    0.7703, 0.7702, 0.7761, 0.7809, 0.7961, 0.8253, 0.8602, 0.8809, 0.8301, 0.8664, 0.8834, 0.8898, 0.8964,
    0.8963, 0.9074, 0.9119, 0.9228,
];

type Columns = Vec<Vec<f64>>;

/// x, x^2, .., each the product of the one before it with x.
fn powers(x: &[f64], degree: usize) -> Columns {
    let next = |p: &Vec<f64>| Some(p.iter().zip(x).map(|(p, x)| p * x).collect());
    std::iter::successors(Some(x.to_vec()), next).take(degree).collect()
}

/// The fraction of i a/m.
fn fraction(i: usize, a: usize, m: usize) -> f64 {
    ((i * a) % m) as f64 / m as f64
}

fn linear(columns: &Columns, labels: Vec<f64>, loss: Loss) -> Arc<Linear> {
    let rows = labels.len();
    let values: Vec<f64> = (0..rows).flat_map(|i| columns.iter().map(move |column| column[i])).collect();
    let features = Features::Dense(Dense { rows, columns: columns.len(), values: values.into() });
    let table = Table::new(features, Arc::new(labels), None, Vec::new()).unwrap();
    Arc::new(Linear::new(Arc::new(table), loss, Design::default()).unwrap())
}

fn fitted(linear: &Arc<Linear>) -> Fitted {
    let fit = Fit { way: Way::usual(linear), start: None, target: None, budget: None, seed: 1 };
    fit.run(linear, linear.clone(), Arc::default(), &mut |_| ()).unwrap()
}

/// Digits of the worst weight and of the intercept: minus the decimal logarithm of the relative error.
fn both_digits(columns: &Columns, labels: Vec<f64>, loss: Loss, truth: &[f64]) -> (f64, f64) {
    let linear = linear(columns, labels, loss);
    let fitted = fitted(&linear);
    assert_eq!(fitted.verdict, Verdict::Certified, "{:?}", fitted.end);
    assert!(fitted.left_out.is_empty(), "{:?}", fitted.left_out);
    let model = linear.raw_weights(&fitted.point);
    let error = |(got, truth): (&f64, &f64)| ((got - truth) / truth).abs();
    let worst = model.weights.iter().zip(&truth[1..]).map(error).fold(f64::EPSILON, f64::max);
    let intercept = error((&model.intercepts[0], &truth[0])).max(f64::EPSILON);
    (-libm::log10(worst), -libm::log10(intercept))
}

/// Digits of the worst coefficient.
fn digits(columns: &Columns, labels: Vec<f64>, loss: Loss, truth: &[f64]) -> f64 {
    let (weights, intercept) = both_digits(columns, labels, loss, truth);
    weights.min(intercept)
}

#[test]
fn longley_has_all_digits() {
    let columns = (0..6).map(|j| LONGLEY_ROWS.iter().map(|row| row[j]).collect()).collect();
    let labels = LONGLEY_ROWS.iter().map(|row| row[6]).collect();
    let got = digits(&columns, labels, Loss::LeastSquares, LONGLEY);
    assert!(got >= 15.0, "{got}");
}

#[test]
fn polynomials_of_wampler_have_all_digits_that_their_labels_have() {
    let x: Vec<f64> = (0..21).map(f64::from).collect();
    let columns = powers(&x, 5);
    let sum = |times: [f64; 5]| -> Vec<f64> {
        (0..21)
            .map(|i| 1.0 + columns.iter().zip(times).map(|(column, t)| t * column[i]).sum::<f64>())
            .collect()
    };
    let whole = sum([1.0; 5]);
    let with_errors = |times: f64| whole.iter().zip(WAMPLER_ERRORS).map(|(y, e)| y + times * e).collect();
    let tables: [(Vec<f64>, &[f64]); 5] = [
        (whole.clone(), WAMPLER1),
        (sum([0.1, 0.01, 0.001, 0.0001, 0.00001]), WAMPLER2),
        (with_errors(1.0), WAMPLER3),
        (with_errors(100.0), WAMPLER4),
        (with_errors(10000.0), WAMPLER5),
    ];
    // R's `lm` has 9.8, 13.1, 9.3, 7.5 and 5.5. The intercept is a difference of numbers up to 10^6 times as large; those of the second table are of its own size.
    let least = [10.0, 13.5, 10.0, 10.0, 10.0];
    for (number, ((labels, truth), least)) in tables.into_iter().zip(least).enumerate() {
        let got = digits(&columns, labels, Loss::LeastSquares, truth);
        assert!(got >= least, "Wampler {}: {got}", number + 1);
    }
}

#[test]
fn filippellis_polynomial_of_degree_ten_has_thirteen_digits() {
    let got = digits(&powers(&FILIP_X, 10), FILIP_Y.to_vec(), Loss::LeastSquares, FILIP);
    assert!(got >= 13.0, "{got}");
}

/// Two columns that agree but for a difference of this size, which is what the labels depend on.
fn near(size: f64) -> (Columns, Vec<f64>) {
    let a: Vec<f64> = (0..60).map(|i| fraction(i, 37, 101)).collect();
    let d: Vec<f64> = (0..60).map(|i| fraction(i, 53, 89)).collect();
    let label = |i: usize| 1.0 + 2.0 * a[i] - 3.0 * d[i] + 0.1 * fraction(i, 29, 97);
    let labels = (0..60).map(label).collect();
    let b = a.iter().zip(&d).map(|(a, d)| a + size * d).collect();
    (vec![a, b], labels)
}

#[test]
fn columns_that_nearly_agree_have_a_weight_each() {
    // Weights of 3/size that cancel, each rounded to a double, leave an intercept of order 1 no more digits than that.
    for (size, truth, least) in [(1e-7, NEAR_7, 8.0), (1e-9, NEAR_9, 6.0)] {
        let (columns, labels) = near(size);
        let (weights, intercept) = both_digits(&columns, labels, Loss::LeastSquares, truth);
        assert!(weights >= 15.0 && intercept >= least, "{size}: {weights} {intercept}");
    }
}

#[test]
fn columns_far_from_zero_keep_all_digits() {
    let a = (0..60).map(|i| 1e12 + f64::from((i * 37) % 101)).collect();
    let b = (0..60).map(|i| -3e11 + f64::from((i * 53) % 89)).collect();
    let label =
        |i: usize| 1.0 + 0.5 * ((i * 37) % 101) as f64 - 2.0 * ((i * 53) % 89) as f64 + fraction(i, 29, 97);
    let got = digits(&vec![a, b], (0..60).map(label).collect(), Loss::LeastSquares, OFFSETS);
    assert!(got >= 14.5, "{got}");
}

#[test]
fn smooth_losses_have_the_digits_of_newtons_method() {
    let rows = 80;
    let a: Vec<f64> = (0..rows).map(|i| fraction(i, 37, 101)).collect();
    let d: Vec<f64> = (0..rows).map(|i| fraction(i, 53, 89)).collect();
    let sign = |i: usize| 2.0 * a[i] - 1.5 * d[i] + 1.2 * fraction(i, 29, 97) - 0.8 > 0.0;
    let signs: Vec<f64> = (0..rows).map(|i| f64::from(u8::from(sign(i)))).collect();
    let counts: Vec<f64> =
        (0..rows).map(|i| (6.0 * a[i] * fraction(i, 29, 97) + 2.0 * d[i]).trunc()).collect();
    // One column is the other plus this times something else.
    for (size, logistic, poisson, least) in
        [(1.0, LOGISTIC, POISSON, 12.0), (1e-6, LOGISTIC_NEAR, POISSON_NEAR, 9.0)]
    {
        let b = a.iter().zip(&d).map(|(a, d)| a + size * d).collect();
        let columns = vec![a.clone(), b];
        let got = digits(&columns, signs.clone(), Loss::Logistic, logistic);
        assert!(got >= least, "logistic, {size}: {got}");
        let got = digits(&columns, counts.clone(), Loss::Poisson, poisson);
        assert!(got >= least, "poisson, {size}: {got}");
    }
}
