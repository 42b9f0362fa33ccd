//! Standard errors and what goes with them, against R and against formulas written out.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::unreadable_literal, reason = "numbers of R, as it prints them")]

use std::sync::Arc;

use pasta_opt::assess::Roc;
use pasta_opt::draws::{Address, Role};
use pasta_opt::fit::{Fit, Fitted, LeftOut, Redundant, Way};
use pasta_opt::inference::{Law, Omitted, StdErrors, Summary};
use pasta_opt::run::Target;
use pasta_opt::table::{Dense, Design, Features, Linear, Loss, Model, Sparse, Table};

/// Of R's `mtcars`: mpg, wt, hp, qsec, am, carb, gear.
const MTCARS: [[f64; 7]; 32] = [
    [21.0, 2.62, 110.0, 16.46, 1.0, 4.0, 4.0],
    [21.0, 2.875, 110.0, 17.02, 1.0, 4.0, 4.0],
    [22.8, 2.32, 93.0, 18.61, 1.0, 1.0, 4.0],
    [21.4, 3.215, 110.0, 19.44, 0.0, 1.0, 3.0],
    [18.7, 3.44, 175.0, 17.02, 0.0, 2.0, 3.0],
    [18.1, 3.46, 105.0, 20.22, 0.0, 1.0, 3.0],
    [14.3, 3.57, 245.0, 15.84, 0.0, 4.0, 3.0],
    [24.4, 3.19, 62.0, 20.0, 0.0, 2.0, 4.0],
    [22.8, 3.15, 95.0, 22.9, 0.0, 2.0, 4.0],
    [19.2, 3.44, 123.0, 18.3, 0.0, 4.0, 4.0],
    [17.8, 3.44, 123.0, 18.9, 0.0, 4.0, 4.0],
    [16.4, 4.07, 180.0, 17.4, 0.0, 3.0, 3.0],
    [17.3, 3.73, 180.0, 17.6, 0.0, 3.0, 3.0],
    [15.2, 3.78, 180.0, 18.0, 0.0, 3.0, 3.0],
    [10.4, 5.25, 205.0, 17.98, 0.0, 4.0, 3.0],
    [10.4, 5.424, 215.0, 17.82, 0.0, 4.0, 3.0],
    [14.7, 5.345, 230.0, 17.42, 0.0, 4.0, 3.0],
    [32.4, 2.2, 66.0, 19.47, 1.0, 1.0, 4.0],
    [30.4, 1.615, 52.0, 18.52, 1.0, 2.0, 4.0],
    [33.9, 1.835, 65.0, 19.9, 1.0, 1.0, 4.0],
    [21.5, 2.465, 97.0, 20.01, 0.0, 1.0, 3.0],
    [15.5, 3.52, 150.0, 16.87, 0.0, 2.0, 3.0],
    [15.2, 3.435, 150.0, 17.3, 0.0, 2.0, 3.0],
    [13.3, 3.84, 245.0, 15.41, 0.0, 4.0, 3.0],
    [19.2, 3.845, 175.0, 17.05, 0.0, 2.0, 3.0],
    [27.3, 1.935, 66.0, 18.9, 1.0, 1.0, 4.0],
    [26.0, 2.14, 91.0, 16.7, 1.0, 2.0, 5.0],
    [30.4, 1.513, 113.0, 16.9, 1.0, 2.0, 5.0],
    [15.8, 3.17, 264.0, 14.5, 1.0, 4.0, 5.0],
    [19.7, 2.77, 175.0, 15.5, 1.0, 6.0, 5.0],
    [15.0, 3.57, 335.0, 14.6, 1.0, 8.0, 5.0],
    [21.4, 2.78, 109.0, 18.6, 1.0, 2.0, 4.0],
];

/// R's `longley`: deflator, gross national product, unemployed, armed forces, population, year; employed.
const LONGLEY: [[f64; 7]; 16] = [
    [83.0, 234.289, 235.6, 159.0, 107.608, 1947.0, 60.323],
    [88.5, 259.426, 232.5, 145.6, 108.632, 1948.0, 61.122],
    [88.2, 258.054, 368.2, 161.6, 109.773, 1949.0, 60.171],
    [89.5, 284.599, 335.1, 165.0, 110.929, 1950.0, 61.187],
    [96.2, 328.975, 209.9, 309.9, 112.075, 1951.0, 63.221],
    [98.1, 346.999, 193.2, 359.4, 113.270, 1952.0, 63.639],
    [99.0, 365.385, 187.0, 354.7, 115.094, 1953.0, 64.989],
    [100.0, 363.112, 357.8, 335.0, 116.219, 1954.0, 63.761],
    [101.2, 397.469, 290.4, 304.8, 117.388, 1955.0, 66.019],
    [104.6, 419.180, 282.2, 285.7, 118.734, 1956.0, 67.857],
    [108.4, 442.769, 293.6, 279.8, 120.445, 1957.0, 68.169],
    [110.8, 444.546, 468.1, 263.7, 121.950, 1958.0, 66.513],
    [112.6, 482.704, 381.3, 255.2, 123.366, 1959.0, 68.655],
    [114.2, 502.601, 393.1, 251.4, 125.368, 1960.0, 69.564],
    [115.7, 518.173, 480.6, 257.2, 127.852, 1961.0, 69.331],
    [116.9, 554.894, 400.7, 282.7, 130.081, 1962.0, 70.551],
];

/// What R says about a fit, coefficients in its order. With `X <- model.matrix(m)`, w the weights of an `lm` or `m$family$variance(fitted(m))` of a `glm`, r the residuals of
/// the response times the weights and `q <- qr(X * sqrt(w))`, standard errors of a `glm` are `sqrt(diag(chol2inv(qr.R(q))))` (those of `summary` belong to the last step but one) and
/// those of a sandwich `sqrt(rowSums(backsolve(qr.R(q), t(qr.Q(q) * r / sqrt(w)))^2))`.
struct Said {
    /// `coef(summary(m))[, 1]`, and `[, 2]` and `[, 4]` of an `lm`.
    estimates: &'static [f64],
    std_errors: &'static [f64],
    p_values: &'static [f64],
    hc0: &'static [f64],
    hc1: &'static [f64],
    /// `confint(m)` of an `lm`, with `qnorm(.975)` of a `glm`: lower ends, then upper ones.
    intervals: &'static [f64],
    /// `deviance(m)`, `logLik(m)`, `AIC(m)`.
    fit: [f64; 3],
}

/// `lm(Employed ~ ., longley)`
const LONGLEY_LM: Said = Said {
    estimates: &[
        -3482.258634595815,
        0.015061872271372779,
        -0.035819179292591,
        -0.02020229803816824,
        -0.010332268671735891,
        -0.051104105653579195,
        1.8291514646135503,
    ],
    std_errors: &[
        890.4203836073757,
        0.08491492577476738,
        0.03349100777224341,
        0.004883996816517028,
        0.0021427416316167573,
        0.22607320006937262,
        0.45547849914221344,
    ],
    p_values: &[
        0.003560403663726324,
        0.8631408328092198,
        0.3126810610927144,
        0.0025350917341113947,
        0.0009443667641618245,
        0.8262117957636538,
        0.0030368033416303623,
    ],
    hc0: &[
        832.2115805803189,
        0.051220347445664643,
        0.024575997582644546,
        0.0038323911092599215,
        0.0014624500114098309,
        0.15820849621992483,
        0.4283843755350941,
    ],
    hc1: &[
        1109.6154407737586,
        0.06829379659421952,
        0.03276799677685939,
        0.005109854812346562,
        0.0019499333485464413,
        0.21094466162656644,
        0.5711791673801254,
    ],
    intervals: &[
        -5496.529483274765,
        -0.17702903529849515,
        -0.11158110241390179,
        -0.03125066641973587,
        -0.015179487001723651,
        -0.562517214507222,
        0.7987875152784161,
        -1467.9877859168648,
        0.20715277984124073,
        0.03994274382871979,
        -0.009153929656600614,
        -0.005485050341748132,
        0.4603090032000637,
        2.8595154139486842,
    ],
    fit: [0.8364240555059197, 0.9066496552335839, 14.186700689532833],
};
/// `lm(mpg ~ wt + hp, mtcars)`
const MTCARS_LM: Said = Said {
    estimates: &[37.2272701164472, -3.877830742404682, -0.031772946982161],
    std_errors: &[1.598787537999394, 0.6327334943773953, 0.009029709675855722],
    p_values: &[2.5654585119837577e-20, 1.1196471362000422e-06, 0.0014512285315694238],
    hc0: &[1.9389139564175553, 0.6199275052898963, 0.00664605790818313],
    hc1: &[2.036735001912966, 0.6512037548099445, 0.00698136125202141],
    intervals: &[
        33.95738245225847,
        -5.171916040675537,
        -0.05024077687107361,
        40.49715778063593,
        -2.583745444133827,
        -0.013305117093248393,
    ],
    fit: [195.04775474146638, -74.32616941282066, 156.65233882564132],
};
/// `lm(mpg ~ wt + hp, mtcars, weights = qsec)`
const MTCARS_WEIGHTED: Said = Said {
    estimates: &[37.41418479301851, -3.8928905063047416, -0.032532969294088235],
    std_errors: &[1.6102836811478842, 0.654386723257653, 0.009637002795323686],
    p_values: &[2.722621860867328e-20, 1.8325953335283437e-06, 0.0021090523597454215],
    hc0: &[1.9815473851377037, 0.6207644584966704, 0.006696198178017596],
    hc1: &[2.0815193494795414, 0.6520829335303606, 0.0070340311718181114],
    intervals: &[
        34.12078487609229,
        -5.231261630129383,
        -0.05224285307239996,
        40.707584709944726,
        -2.5545193824800996,
        -0.01282308551577651,
    ],
    fit: [3574.456818563684, -74.82536889721034, 157.65073779442068],
};
/// `lm(Sepal.Length ~ Sepal.Width + Petal.Length, iris)`
const IRIS_LM: Said = Said {
    estimates: &[2.249140160383231, 0.5955247487435908, 0.4719200393271325],
    std_errors: &[0.24796962675619538, 0.06932816233496543, 0.017117679035250147],
    p_values: &[7.038509911293221e-16, 1.1632543439045718e-14, 5.847914373676178e-60],
    hc0: &[0.22923607779880334, 0.06409460580856036, 0.016557114067481594],
    hc1: &[0.23156340729162975, 0.06474532914958815, 0.016725210905707735],
    intervals: &[
        1.7590943243932973,
        0.4585161250927302,
        0.43809151184669204,
        2.7391859963731644,
        0.7325333723944515,
        0.505748566807573,
    ],
    fit: [16.328764184228785, -46.51274990979578, 101.02549981959156],
};
/// `glm(am ~ wt, binomial, mtcars, control = glm.control(1e-15, 100))`
const AM_GLM: Said = Said {
    estimates: &[12.04036972865732, -4.023969962173202],
    std_errors: &[4.510066238966766, 1.43652775262356],
    p_values: &[0.007592677016790076, 0.005091642306971483],
    hc0: &[4.956064586450137, 1.5577431596537186],
    hc1: &[5.118601494946594, 1.6088302173352997],
    intervals: &[3.2008023323924437, -6.839512620107643, 20.879937124922193, -1.2084273042387603],
    fit: [19.176084807445086, -9.588042403722543, 23.176084807445086],
};
/// `glm(carb ~ hp + wt, poisson, mtcars, control = glm.control(1e-15, 100))`
const CARB_GLM: Said = Said {
    estimates: &[0.1387882909503194, 0.005487240249142542, 0.004481935795756901],
    std_errors: &[0.39866809201849995, 0.0016441480510831772, 0.13097204407161525],
    p_values: &[0.7277426152257709, 0.000845549420723466, 0.9727012770919764],
    hc0: &[0.21401094255402914, 0.0007228956258617973, 0.05149756904312836],
    hc1: &[0.22480810767773254, 0.0007593667676944736, 0.05409569673600369],
    intervals: &[
        -0.6425868111912405,
        0.0022647692837677942,
        -0.25221855356620165,
        0.9201633930918793,
        0.00870971121451729,
        0.26118242515771545,
    ],
    fit: [12.27803883671787, -50.82184424706283, 107.64368849412566],
};
/// `gear ~ wt + hp` by Newton's method in R: for each of the classes 4 and 5 beside 3 the intercept, wt, hp.
const GEAR: [&[f64]; 3] = [
    &[
        10.491725768093417,
        -0.4872325951435662,
        -0.07570249842080498,
        20.24984703195928,
        -12.68424999277295,
        0.09589501023243756,
    ],
    &[
        4.975412731865802,
        2.077409370435328,
        0.047286046429795905,
        10.824347696299691,
        7.861967249879106,
        0.07427881434291277,
    ],
    &[
        5.14894064143826,
        2.4329409942533102,
        0.03771818361864206,
        5.190204999348831,
        2.6438134614439703,
        0.02546015191345392,
    ],
];

fn table(rows: &[Vec<f64>], labels: Vec<f64>, weights: Option<Vec<f64>>) -> Arc<Table> {
    let columns = rows[0].len();
    let values: Vec<f64> = rows.concat();
    let features = Features::Dense(Dense { rows: rows.len(), columns, values: values.into() });
    let names = (0..columns).map(|j| format!("c{j}")).collect();
    Arc::new(Table::new(features, Arc::new(labels), weights.map(|w| Arc::new(w) as _), names).unwrap())
}

fn fitted(table: Arc<Table>, loss: Loss, design: Design) -> (Arc<Linear>, Fitted) {
    let linear = Arc::new(Linear::new(table, loss, design).unwrap());
    // Losses of several scores have no last steps in twice the precision.
    let target = (loss.outputs() > 1).then_some(Target::Norm(1e-11));
    let fit = Fit { way: Way::usual(&linear), start: None, target, budget: None, seed: 1 };
    let fitted = fit.run(&linear, linear.clone(), Arc::default(), &mut |_| ()).unwrap();
    (linear, fitted)
}

fn summary(table: &Arc<Table>, loss: Loss, kind: Option<StdErrors>) -> Summary {
    let (linear, fitted) = fitted(Arc::clone(table), loss, Design::default());
    Summary::of(&linear, &fitted, kind)
}

/// Relative to the number that is wanted.
fn near(got: impl IntoIterator<Item = f64>, want: &[f64], tolerance: f64) {
    let got: Vec<f64> = got.into_iter().collect();
    assert_eq!(got.len(), want.len());
    let is_near = |(got, want): (&f64, &f64)| (got - want).abs() <= tolerance * want.abs();
    assert!(got.iter().zip(want).all(is_near), "{got:?}\n{want:?}");
}

fn errors(summary: &Summary) -> Vec<f64> {
    assert_eq!(summary.omitted, None);
    summary.coefficients.iter().map(|one| one.std_error.unwrap()).collect()
}

/// Everything that R says, with nine digits: of Longley's table R itself has about eleven.
fn agrees(table: &Arc<Table>, loss: Loss, said: &Said) {
    const DIGITS: f64 = 1e-9;
    let classical = summary(table, loss, None);
    let all = || classical.coefficients.iter();
    near(all().map(|one| one.estimate), said.estimates, DIGITS);
    near(errors(&classical), said.std_errors, DIGITS);
    // A tail magnifies what its argument is wrong by.
    near(all().map(|one| one.p_value.unwrap()), said.p_values, 100.0 * DIGITS);
    let ends = |place: usize| all().map(move |one| one.interval.unwrap()[place]);
    near(ends(0).chain(ends(1)), said.intervals, 10.0 * DIGITS);
    let explained = classical.explained;
    let fit = [explained.deviance, explained.log_likelihood, explained.aic];
    near(fit.map(Option::unwrap), &said.fit, DIGITS);
    near(errors(&summary(table, loss, Some(StdErrors::Hc0))), said.hc0, DIGITS);
    near(errors(&summary(table, loss, Some(StdErrors::Hc1))), said.hc1, DIGITS);
}

fn mtcars(columns: &[usize], label: usize, weight: Option<usize>) -> Arc<Table> {
    let rows: Vec<Vec<f64>> = MTCARS.iter().map(|row| columns.iter().map(|j| row[*j]).collect()).collect();
    let column = |j: usize| MTCARS.iter().map(|row| row[j]).collect::<Vec<f64>>();
    table(&rows, column(label), weight.map(column))
}

fn iris() -> Vec<Vec<f64>> {
    let text = include_str!("../../../examples/iris.csv");
    let numbers = |line: &str| line.split(',').take(4).map(|cell| cell.parse().unwrap()).collect();
    text.lines().skip(1).map(numbers).collect()
}

#[test]
fn least_squares_has_the_errors_of_lm() {
    let rows: Vec<Vec<f64>> = LONGLEY.iter().map(|row| row[..6].to_vec()).collect();
    let longley = table(&rows, LONGLEY.iter().map(|row| row[6]).collect(), None);
    agrees(&longley, Loss::LeastSquares, &LONGLEY_LM);
    agrees(&mtcars(&[1, 2], 0, None), Loss::LeastSquares, &MTCARS_LM);
    agrees(&mtcars(&[1, 2], 0, Some(3)), Loss::LeastSquares, &MTCARS_WEIGHTED);
    let flowers = iris();
    let rows: Vec<Vec<f64>> = flowers.iter().map(|row| row[1..3].to_vec()).collect();
    let flowers = table(&rows, flowers.iter().map(|row| row[0]).collect(), None);
    agrees(&flowers, Loss::LeastSquares, &IRIS_LM);
    // R: sigma(m), summary(m)$fstatistic, and pf of it.
    let explained = summary(&longley, Loss::LeastSquares, None).explained;
    near([explained.residual_deviation.unwrap()], &[0.3048540735619657], 1e-9);
    let test = explained.test.unwrap();
    near([test.statistic, test.p_value], &[330.2853392345862, 4.984030528724918e-10], 1e-7);
    assert_eq!(test.degrees, (6.0, Some(9.0)));
}

#[test]
fn likelihoods_have_the_errors_of_glm() {
    let am = mtcars(&[1], 4, None);
    agrees(&am, Loss::Logistic, &AM_GLM);
    near([summary(&am, Loss::Logistic, None).explained.null_deviance.unwrap()], &[43.22973327685781], 1e-12);
    let carb = mtcars(&[2, 1], 5, None);
    agrees(&carb, Loss::Poisson, &CARB_GLM);
    near(
        [summary(&carb, Loss::Poisson, None).explained.null_deviance.unwrap()],
        &[27.043357450132145],
        1e-12,
    );
}

#[test]
fn a_multinomial_model_is_compared_with_its_first_class() {
    let rows: Vec<Vec<f64>> = MTCARS.iter().map(|row| row[1..3].to_vec()).collect();
    let gears = table(&rows, MTCARS.iter().map(|row| row[6] - 3.0).collect(), None);
    let loss = Loss::Multinomial { classes: 3 };
    let classical = summary(&gears, loss, None);
    // The gradient is 1e-11, of second derivatives of 1e-4 at least.
    let digits = 1e-6;
    near(classical.coefficients.iter().map(|one| one.estimate), GEAR[0], digits);
    near(errors(&classical), GEAR[1], digits);
    near(errors(&summary(&gears, loss, Some(StdErrors::Hc0))), GEAR[2], digits);
    let classes: Vec<_> = classical.coefficients.iter().map(|one| one.class).collect();
    assert_eq!(classes, [1, 1, 1, 2, 2, 2].map(Some));
    assert_eq!((classical.reference, classical.law), (Some(0), Some(Law::Normal)));
    let explained = classical.explained;
    near(
        [explained.log_likelihood.unwrap(), explained.null_deviance.unwrap()],
        &[-10.070527868656583, 64.83345302686318],
        1e-9,
    );
    // R: 12 - 2*ll
    near([explained.aic.unwrap()], &[32.14105573731317], 1e-9);
}

/// Numbers between -1 and 1 that repeat from run to run.
fn numbers(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }
}

/// The inverse of a symmetric positive matrix, by Gauss and Jordan.
fn inverse(matrix: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let d = matrix.len();
    let unit = |i: usize| (0..d).map(move |j| f64::from(u8::from(i == j)));
    let mut a: Vec<Vec<f64>> =
        matrix.iter().enumerate().map(|(i, row)| row.iter().copied().chain(unit(i)).collect()).collect();
    for k in 0..d {
        let pivot = a[k][k];
        a[k].iter_mut().for_each(|v| *v /= pivot);
        let row = a[k].clone();
        for (i, other) in a.iter_mut().enumerate().filter(|(i, _)| *i != k) {
            let times = other[k];
            assert_ne!(i, k);
            other.iter_mut().zip(&row).for_each(|(v, r)| *v -= times * r);
        }
    }
    a.into_iter().map(|row| row[d..].to_vec()).collect()
}

/// Rows with an intercept in front; the sum of c x x'.
fn gram(rows: &[Vec<f64>], c: &[f64], d: usize) -> Vec<Vec<f64>> {
    let entry = |i: usize, j: usize| rows.iter().zip(c).map(|(x, c)| c * x[i] * x[j]).sum::<f64>();
    (0..d).map(|i| (0..d).map(|j| entry(i, j)).collect()).collect()
}

#[test]
fn random_tables_have_the_errors_of_the_formulas() {
    for (seed, standardise, intercept) in [(1, true, true), (2, false, true), (3, true, false)] {
        let mut next = numbers(seed);
        let rows: Vec<Vec<f64>> =
            (0..80).map(|_| vec![3.0 + 2.0 * next(), 0.01 * next(), 100.0 * next() - 500.0]).collect();
        let score = |x: &[f64]| 0.6 * (x[0] - 3.0) + 80.0 * x[1] + 0.01 * (x[2] + 500.0);
        let labels: Vec<f64> = rows.iter().map(|x| (score(x) + 2.0 * next()).round().max(0.0)).collect();
        let signs: Vec<f64> =
            rows.iter().map(|x| if score(x) + 2.0 * next() > 0.0 { 1.0 } else { 0.0 }).collect();
        let weights: Vec<f64> = (0..80).map(|_| (4.0 + 4.0 * next()).floor()).collect();
        let design = Design { standardise, intercept, ..Design::default() };
        for (loss, labels) in
            [(Loss::Logistic, &signs), (Loss::Poisson, &labels), (Loss::LeastSquares, &labels)]
        {
            let of = table(&rows, labels.clone(), Some(weights.clone()));
            let (linear, fit) = fitted(of, loss, design);
            let model = linear.raw_weights(&fit.point);
            let first = usize::from(intercept);
            let with: Vec<Vec<f64>> = rows.iter().map(|x| [&[1.0][1 - first..], &x[..]].concat()).collect();
            let d = 3 + first;
            let means: Vec<[f64; 2]> = rows
                .iter()
                .map(|x| {
                    let z =
                        model.intercepts[0] + x.iter().zip(&model.weights).map(|(a, w)| a * w).sum::<f64>();
                    match loss {
                        Loss::Logistic => {
                            let p = 1.0 / (1.0 + (-z).exp());
                            [p, p * (1.0 - p)]
                        }
                        Loss::Poisson => [z.exp(), z.exp()],
                        _ => [z, 1.0],
                    }
                })
                .collect();
            let bends: Vec<f64> = means.iter().zip(&weights).map(|(m, w)| w * m[1]).collect();
            let n = weights.iter().filter(|w| **w > 0.0).count() as f64;
            let squares: f64 =
                means.iter().zip(labels).zip(&weights).map(|((m, y), w)| w * (y - m[0]).powi(2)).sum();
            let dispersion = if loss == Loss::LeastSquares { squares / (n - d as f64) } else { 1.0 };
            let bread = inverse(&gram(&with, &bends, d));
            let classical: Vec<f64> = (0..d).map(|i| (dispersion * bread[i][i]).sqrt()).collect();
            let scores: Vec<f64> =
                means.iter().zip(labels).zip(&weights).map(|((m, y), w)| (w * (y - m[0])).powi(2)).collect();
            let middle = gram(&with, &scores, d);
            let product = |i: usize| -> f64 {
                let pairs = (0..d).flat_map(|k| (0..d).map(move |l| (k, l)));
                pairs.map(|(k, l)| bread[i][k] * middle[k][l] * bread[l][i]).sum()
            };
            let hc1: Vec<f64> = (0..d).map(|i| (n / (n - d as f64) * product(i)).sqrt()).collect();
            // Plain inverses of columns of such sizes lose some eight digits.
            near(errors(&Summary::of(&linear, &fit, None)), &classical, 1e-7);
            near(errors(&Summary::of(&linear, &fit, Some(StdErrors::Hc1))), &hc1, 1e-7);
        }
    }
}

#[test]
fn columns_that_agree_to_seven_digits_have_the_errors_of_the_formula() {
    // A factorial design: a and b are orthogonal, and the second column is a + 2^-24 b, without rounding.
    let small = 2_f64.powi(-24);
    let mut next = numbers(5);
    let sign = |i: usize, bit: u32| if i >> bit & 1 == 0 { -1.0 } else { 1.0 };
    let rows: Vec<Vec<f64>> = (0..64).map(|i| vec![sign(i, 0), sign(i, 0) + small * sign(i, 1)]).collect();
    let labels: Vec<f64> = (0..64).map(|i| sign(i, 0) + 0.5 * sign(i, 1) + next()).collect();
    let got = summary(&table(&rows, labels, None), Loss::LeastSquares, None);
    let deviation = got.explained.residual_deviation.unwrap();
    let (of_one, of_other) = (deviation / 8.0, deviation / 8.0 / small);
    // Of a condition number of 10^7 a triangle of the rows leaves nine digits.
    near(errors(&got), &[of_one, of_one.hypot(of_other), of_other], 1e-8);
}

#[test]
fn sparse_rows_and_dense_ones_have_the_same_errors() {
    let mut next = numbers(7);
    let rows: Vec<Vec<f64>> = (0..50).map(|_| (0..4).map(|_| next().max(0.3) - 0.3).collect()).collect();
    let labels: Vec<f64> = rows.iter().map(|x| if x[0] - x[1] + next() > 0.0 { 1.0 } else { -1.0 }).collect();
    let dense = summary(&table(&rows, labels.clone(), None), Loss::Logistic, None);
    let (mut starts, mut indices, mut values) = (vec![0_u64], Vec::new(), Vec::new());
    for row in &rows {
        for (j, value) in row.iter().enumerate().filter(|(_, value)| **value != 0.0) {
            indices.push(j as u32);
            values.push(*value);
        }
        starts.push(values.len() as u64);
    }
    let sparse =
        Sparse { columns: 4, starts: Arc::new(starts), indices: Arc::new(indices), values: values.into() };
    let table = Table::new(Features::Sparse(sparse), Arc::new(labels), None, Vec::new()).unwrap();
    near(errors(&summary(&Arc::new(table), Loss::Logistic, None)), &errors(&dense), 1e-9);
}

#[test]
fn a_column_that_is_left_out_has_no_error_and_the_others_have_those_without_it() {
    let rows: Vec<Vec<f64>> = MTCARS.iter().map(|row| vec![row[1], row[2], row[1] + row[2], 7.0]).collect();
    let (linear, fit) = fitted(
        table(&rows, MTCARS.iter().map(|row| row[0]).collect(), None),
        Loss::LeastSquares,
        Design::default(),
    );
    let left_out: Vec<(usize, Redundant)> =
        fit.left_out.iter().map(|LeftOut { feature, why }| (*feature, *why)).collect();
    assert_eq!(left_out, [(2, Redundant::Dependent), (3, Redundant::Constant)]);
    let got = Summary::of(&linear, &fit, None);
    let some: Vec<f64> = got.coefficients.iter().filter_map(|one| one.std_error).collect();
    near(some, MTCARS_LM.std_errors, 1e-9);
    assert!(got.coefficients[3..].iter().all(|one| one.std_error.is_none() && one.estimate == 0.0));
}

#[test]
fn where_there_are_no_errors_it_says_why() {
    let am = mtcars(&[1], 4, None);
    let why = |loss: Loss, kind: Option<StdErrors>, penalty: f64| {
        let (linear, fit) = fitted(Arc::clone(&am), loss, Design { penalty, ..Design::default() });
        let got = Summary::of(&linear, &fit, kind);
        assert_eq!(got.omitted.is_none(), got.coefficients.iter().all(|one| one.std_error.is_some()));
        assert_eq!(got.omitted.is_none(), got.std_errors.is_some());
        got.omitted
    };
    let hc1 = Some(StdErrors::Hc1);
    assert_eq!(why(Loss::Logistic, None, 0.1), Some(Omitted::Penalty));
    assert_eq!(why(Loss::Hinge, hc1, 0.0), Some(Omitted::Kinks { loss: "hinge" }));
    assert_eq!(why(Loss::Tukey { scale: 4.0 }, hc1, 0.0), Some(Omitted::NotConvex { loss: "tukey" }));
    assert_eq!(why(Loss::Huber { delta: 1.0 }, None, 0.0), Some(Omitted::NotLikelihood { loss: "huber" }));
    assert_eq!(why(Loss::Huber { delta: 1.0 }, hc1, 0.0), None);
    let line = |labels: &[f64]| {
        let rows: Vec<Vec<f64>> = (0..labels.len()).map(|i| vec![i as f64]).collect();
        table(&rows, labels.to_vec(), None)
    };
    let omitted = |labels: &[f64], loss| summary(&line(labels), loss, None).omitted;
    assert_eq!(omitted(&[0.0, 0.0, 1.0, 1.0], Loss::Logistic), Some(Omitted::Separated));
    let none = Omitted::NoDegrees { rows: 2, coefficients: 2 };
    assert_eq!(omitted(&[1.0, 3.0], Loss::LeastSquares), Some(none));
    assert_eq!(omitted(&[1.0, 3.0, 5.0, 7.0], Loss::LeastSquares), Some(Omitted::Perfect));
    assert_eq!(none.to_string(), "no degrees of freedom are left (rows: 2, coefficients: 2)");
}

#[test]
fn huber_with_a_wide_delta_has_the_sandwich_of_least_squares() {
    let table = mtcars(&[1, 2], 0, None);
    let got = summary(&table, Loss::Huber { delta: 1e3 }, Some(StdErrors::Hc0));
    near(errors(&got), MTCARS_LM.hc0, 1e-6);
}

/// Numbers between 0 and 1, several for each row.
fn draws(rows: usize, each: usize) -> Vec<Vec<f64>> {
    let row = |sample| {
        let mut stream = Address { seed: 11, role: Role::Setup, step: 3, sample }.stream();
        (0..each).map(|_| stream.uniform()).collect()
    };
    (0..rows as u64).map(row).collect()
}

/// A column of numbers and labels 1 + 2 a + noise, whose deviation grows with a if asked for.
fn noisy_line(rows: usize, funnel: bool) -> Arc<Table> {
    let draws = draws(rows, 3);
    let noise = |row: &[f64]| {
        let normal = (-2.0 * (1.0 - row[1]).ln()).sqrt() * (std::f64::consts::TAU * row[2]).cos();
        normal * if funnel { 3.0 * row[0] } else { 1.0 }
    };
    let labels: Vec<f64> = draws.iter().map(|row| 1.0 + 2.0 * row[0] + noise(row)).collect();
    let values: Vec<f64> = draws.iter().map(|row| row[0]).collect();
    let features = Features::Dense(Dense { rows, columns: 1, values: values.into() });
    Arc::new(Table::new(features, Arc::new(labels), None, vec!["a".into()]).unwrap())
}

fn bootstrapped(table: &Arc<Table>, loss: Loss, resamples: u32) -> Summary {
    let linear = Arc::new(Linear::new(Arc::clone(table), loss, Design::default()).unwrap());
    let fit = Fit { way: Way::usual(&linear), start: None, target: None, budget: None, seed: 1 };
    let fitted = fit.run(&linear, linear.clone(), Arc::default(), &mut |_| ()).unwrap();
    let names = linear.feature_names();
    Summary::bootstrapped(&linear, &fitted, &names, resamples, 1, &Arc::default()).unwrap().0
}

#[test]
fn resamples_spread_as_the_sandwich_says() {
    let table = noisy_line(600, true);
    let (got, other) = (
        bootstrapped(&table, Loss::LeastSquares, 400),
        summary(&table, Loss::LeastSquares, Some(StdErrors::Hc0)),
    );
    let resamples = got.resamples.unwrap();
    assert_eq!((resamples.used, resamples.asked, got.std_errors), (400, 400, Some(StdErrors::Bootstrap)));
    for (got, other) in got.coefficients.iter().zip(&other.coefficients) {
        assert_eq!(got.estimate, other.estimate);
        let ratio = got.std_error.unwrap() / other.std_error.unwrap();
        // A deviation over 400 draws has itself the deviation 1/sqrt(800) = .035; five of these, and .01 for what is of order 1/600.
        assert!((ratio - 1.0).abs() < 0.19, "{ratio}");
        // The middle 95 % of a normal law are 3.92 deviations wide; an end of them over 400 draws is off by .13 deviations, two of these ends five times by .93.
        let [low, high] = got.interval.unwrap();
        assert!(((high - low) / got.std_error.unwrap() - 3.92).abs() < 0.93);
    }
}

#[test]
fn losses_with_kinks_have_errors_from_resamples() {
    let rows = 500;
    let got = bootstrapped(&noisy_line(rows, false), Loss::Absolute, 200);
    // Median regression with normal noise of deviation 1: sqrt(pi/2) times the error of least squares, whose column is uniform.
    let expected = (std::f64::consts::FRAC_PI_2 * 12.0 / rows as f64).sqrt();
    let ratio = got.coefficients[1].std_error.unwrap() / expected;
    // The density of the residuals at 0 is known from 500 of them to some 15 %, and 200 draws add 5 %.
    assert!((ratio - 1.0).abs() < 0.45, "{ratio}");
}

#[test]
fn resamples_have_the_same_bits_on_one_thread() {
    let table = noisy_line(50, false);
    let all = bootstrapped(&table, Loss::LeastSquares, 40);
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    assert_eq!(one.install(|| bootstrapped(&table, Loss::LeastSquares, 40)), all);
}

#[test]
fn resamples_without_a_column_do_not_count() {
    // The second column is 1 in the first row alone, which (1 - 1/60)^60 = .365 of the resamples lack.
    let line = noisy_line(60, false);
    let a = draws(60, 3);
    let values: Vec<f64> = (0..60).flat_map(|k| [a[k][0], if k == 0 { 1.0 } else { 0.0 }]).collect();
    let features = Features::Dense(Dense { rows: 60, columns: 2, values: values.into() });
    let names = vec!["a".into(), "first".into()];
    let table = Arc::new(Table::new(features, Arc::clone(&line.labels), None, names).unwrap());
    let resamples = bootstrapped(&table, Loss::LeastSquares, 400).resamples.unwrap();
    // Of 400 draws 254 with a deviation of 9.6, five of them at most off.
    assert!((206..=302).contains(&resamples.used), "{resamples:?}");
    // Two of them leave a quarter of resamples at most, and nothing is said.
    let lonely: Vec<f64> = (0..60)
        .flat_map(|k| {
            [a[k][0], f64::from(u8::from(k == 0)), f64::from(u8::from(k == 1)), f64::from(u8::from(k == 2))]
        })
        .collect();
    let features = Features::Dense(Dense { rows: 60, columns: 4, values: lonely.into() });
    let names = ["a", "b", "c", "d"].map(String::from).to_vec();
    let table = Arc::new(Table::new(features, Arc::clone(&line.labels), None, names).unwrap());
    let got = bootstrapped(&table, Loss::LeastSquares, 400);
    assert!(matches!(got.omitted, Some(Omitted::Resamples { asked: 400, .. })), "{:?}", got.omitted);
    assert!(got.coefficients.iter().all(|one| one.std_error.is_none()));
}

#[test]
fn the_area_under_the_curve_counts_pairs_in_order() {
    let rows = 300;
    let draws = draws(rows, 3);
    // Scores on a grid, so that many are tied.
    let scores: Vec<f64> = draws.iter().map(|row| (8.0 * row[0]).floor()).collect();
    let labels: Vec<f64> = draws.iter().map(|row| f64::from(u8::from(row[1] < 0.2 + 0.6 * row[0]))).collect();
    let weights: Vec<f64> = draws.iter().map(|row| (3.0 * row[2]).floor()).collect();
    let features = Features::Dense(Dense { rows, columns: 1, values: scores.clone().into() });
    let model = Model {
        loss: Loss::Logistic,
        columns: 1,
        degree: 1,
        scaling: None,
        weights: vec![1.0],
        intercepts: vec![-4.0],
    };
    let roc = Roc::of(&model, &features, &labels, Some(&weights)).unwrap().unwrap();
    let (mut right, mut all) = (0.0, 0.0);
    for one in (0..rows).filter(|row| labels[*row] == 1.0) {
        for zero in (0..rows).filter(|row| labels[*row] == 0.0) {
            let weight = weights[one] * weights[zero];
            all += weight;
            right += weight
                * if scores[one] == scores[zero] {
                    0.5
                } else {
                    f64::from(u8::from(scores[one] > scores[zero]))
                };
        }
    }
    assert!((roc.area - right / all).abs() < 1e-12);
    // By trapezia between its points, of which there is one for each of the eight scores.
    let area: f64 = roc.points.windows(2).map(|p| (p[1].0 - p[0].0) * 0.5 * (p[0].1 + p[1].1)).sum();
    assert_eq!(roc.points.len(), 9);
    assert!((area - roc.area).abs() < 1e-12);
    // Of one class alone there is none.
    assert!(Roc::of(&model, &features, &vec![1.0; rows], None).unwrap().is_none());
}
