//! The losses: one file and one row of [`LOSSES`] each.
//!
//! All but the multinomial loss are functions of one score z = <a, w> + b and the label y of a row.

mod absolute;
mod cauchy;
mod hinge;
mod huber;
mod least_squares;
mod logistic;
pub(super) mod multinomial;
mod phase_retrieval;
mod poisson;
mod quantile;
mod sigmoid;
mod smoothed;
mod squared_hinge;
mod tukey;
mod welsch;

use multiversion::multiversion;
use serde::{Deserialize, Serialize};

use super::TableError;
use crate::kernels::double::Double;
use crate::kernels::elementary::exp;

pub use smoothed::Kink;

/// Makes of the table of losses the enum, the rows, and what must be said of every loss: which code computes it, its parameter, its name.
///
/// A line is: how many scores a row has, the variant with its field, and the file.
macro_rules! losses {
    ($d:tt $($(#[$about:meta])* $scores:ident $variant:ident $({ $(#[$of_field:meta])* $field:ident: $kind:ty })? in $file:ident,)*) => {
        /// What a prediction is charged with, given the label.
        #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "name", rename_all = "kebab-case", deny_unknown_fields)]
        #[non_exhaustive]
        pub enum Loss {
            $($(#[$about])* $variant $({ $(#[$of_field])* $field: $kind })?,)*
            /// A loss with a kink that is a parabola near it. Not one of [`LOSSES`]: a fit goes through it.
            #[doc(hidden)]
            #[serde(skip_deserializing)]
            Smoothed {
                /// The loss with the kink.
                kink: Kink,
                /// How far from the kink the parabola reaches, over the slope there.
                width: f64,
            },
        }

        /// All losses.
        pub const LOSSES: &[LossRow] = &[$($file::ROW),*];

        impl Loss {
            /// Its row of [`LOSSES`].
            pub fn row(&self) -> &'static LossRow {
                match self {
                    $(Self::$variant $({ $field: _ })? => &$file::ROW,)*
                    Self::Smoothed { .. } => &smoothed::ROW,
                }
            }

            /// The number in its variant.
            fn number(&self) -> Option<f64> {
                match *self {
                    $(Self::$variant $({ $field })? => None$(.or(Some(Number::get($field))))?,)*
                    Self::Smoothed { .. } => None,
                }
            }

            /// The loss of this name with this number.
            fn with_number(name: &str, value: f64, classes: usize) -> Option<Self> {
                $(if name == $file::ROW.name {
                    return Some(Self::$variant $({ $field: <$kind>::of(value, classes) })?);
                })*
                None
            }
        }

        /// Calls `$work` with `$loss` bound to the [`Scalar`] behind a [`Loss`], or gives `$multinomial` where a row has a score for each class.
        macro_rules! with_scalar {
            ($d value:expr, $d loss:ident => $d work:expr, $d multinomial:expr) => {
                match $d value {
                    $($crate::table::Loss::$variant $({ $field })? => {
                        $crate::table::loss::$scores!($variant $({ $field })?, $d loss => $d work, $d multinomial)
                    })*
                    $crate::table::Loss::Smoothed { kink, width } => {
                        let $d loss = $crate::table::loss::scalars::Smoothed { kink, width };
                        $d work
                    }
                }
            };
        }
    };
}

losses! { $
    /// (z - y)^2/2.
    one LeastSquares in least_squares,
    /// ln(1 + exp(-s z)), s the sign of the label.
    one Logistic in logistic,
    /// ln(sum_k exp(z_k)) - z_y, labels 0, 1, .., `classes` - 1.
    several Multinomial {
        /// How many classes there are, at least 2.
        classes: usize
    } in multinomial,
    /// max(0, 1 - s z)^2/2.
    one SquaredHinge in squared_hinge,
    /// Quadratic up to `delta`, then linear.
    one Huber {
        /// Where it becomes linear.
        delta: f64
    } in huber,
    /// exp(z) - y z, labels at least 0.
    one Poisson in poisson,
    /// max(0, 1 - s z).
    one Hinge in hinge,
    /// |z - y|.
    one Absolute in absolute,
    /// Minimised by the quantile of this level.
    one Quantile {
        /// The level, in (0, 1).
        level: f64
    } in quantile,
    /// c^2/2 ln(1 + (r/c)^2), r = z - y.
    one Cauchy {
        /// c.
        scale: f64
    } in cauchy,
    /// c^2/2 (1 - exp(-(r/c)^2)).
    one Welsch {
        /// c.
        scale: f64
    } in welsch,
    /// Tukey's biweight.
    one Tukey {
        /// c, beyond which errors count the same.
        scale: f64
    } in tukey,
    /// 1/(1 + exp(s z)).
    one Sigmoid in sigmoid,
    /// |z^2 - y|.
    one PhaseRetrieval in phase_retrieval,
}
pub(super) use with_scalar;

/// What [`with_scalar`] does for a loss of one score.
macro_rules! one {
    ($variant:ident $({ $field:ident })?, $loss:ident => $work:expr, $multinomial:expr) => {{
        let $loss = $crate::table::loss::scalars::$variant $({ $field })?;
        $work
    }};
}
pub(super) use one;

/// What [`with_scalar`] does for a loss of a score for each class.
macro_rules! several {
    ($variant:ident { $classes:ident }, $loss:ident => $work:expr, $multinomial:expr) => {{
        let _ = $classes;
        $multinomial
    }};
}
pub(super) use several;

/// The field of a variant: a parameter, or the number of classes.
trait Number {
    fn of(value: f64, classes: usize) -> Self;
    fn get(self) -> f64;
}

impl Number for f64 {
    fn of(value: f64, _classes: usize) -> Self {
        value
    }
    fn get(self) -> f64 {
        self
    }
}

impl Number for usize {
    fn of(_value: f64, classes: usize) -> Self {
        classes
    }
    fn get(self) -> f64 {
        self as f64
    }
}

/// What a loss is called, computes and asks for.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct LossRow {
    /// Its name in files and flags.
    pub name: &'static str,
    /// Its formula.
    pub formula: &'static str,
    /// Its class of functions, seen from the score.
    pub class: Class,
    /// The labels that fit.
    pub labels: Labels,
    /// Its parameter, if it has one.
    pub parameter: Option<Parameter>,
}

/// The parameter of a loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameter {
    /// Its name in files and flags.
    pub name: &'static str,
    /// A usual value, for errors of a standard deviation of 1.
    pub default: f64,
    /// Its range.
    pub range: Range,
}

/// The range of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Range {
    /// A size of errors, in the unit of the labels: positive and finite.
    Positive,
    /// A level: strictly between 0 and 1.
    Level,
}

impl Range {
    /// True if a value is in it.
    pub fn contains(self, value: f64) -> bool {
        value > 0.0 && value < if self == Self::Level { 1.0 } else { f64::INFINITY }
    }

    /// What a value must be.
    pub fn words(self) -> &'static str {
        match self {
            Self::Positive => "positive and finite",
            Self::Level => "strictly between 0 and 1",
        }
    }
}

/// Classes of losses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Class {
    /// Convex with a Lipschitz derivative.
    SmoothConvex,
    /// Convex and differentiable, but without a bound on the curvature.
    LocallySmoothConvex,
    /// Convex with bounded subgradients.
    LipschitzConvex,
    /// Lipschitz derivative, not convex.
    SmoothNonConvex,
    /// Convex after adding a quadratic, not differentiable.
    WeaklyConvex,
}

/// Labels that fit a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Labels {
    /// Any number.
    Real,
    /// -1 and 1, or 0 and 1.
    Signs,
    /// 0, 1, 2, ..
    Classes,
    /// At least 0.
    Counts,
}

/// Bounds on a loss as a function of the score, the same for all labels that fit. `None` where there is none.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bounds {
    /// The Lipschitz constant of the derivative.
    pub curvature: Option<f64>,
    /// rho: the loss plus rho z^2/2 is convex. 0 for a convex loss.
    pub concavity: Option<f64>,
    /// A bound on the derivative.
    pub slope: Option<f64>,
}

/// A loss of one score.
pub(crate) trait Scalar: Copy + Sync {
    /// The loss.
    fn value(self, z: f64, y: f64) -> f64;

    /// Its derivative in z; a subgradient where there is none.
    fn slope(self, z: f64, y: f64) -> f64;

    /// The loss and its derivative, with the bits that each has alone.
    #[inline]
    fn both(self, z: f64, y: f64) -> (f64, f64) {
        (self.value(z, y), self.slope(z, y))
    }

    /// Its derivative where the score is known to more digits than a double has.
    #[inline]
    fn precise_slope(self, z: Double, y: f64) -> Double {
        Double::from(self.slope(z.hi, y)) + Double::from(self.curvature(z.hi, y) * z.lo)
    }

    /// Its second derivative, or 0 where that is below; a difference of slopes unless it says better.
    #[inline]
    fn curvature(self, z: f64, y: f64) -> f64 {
        bend(self, z, y, 1e-5 * (1.0 + z.abs()))
    }

    /// A curvature w with l(u) <= l(z) + l'(z) (u - z) + w (u - z)^2/2 for all u: the bound on the second derivative unless it says better, and the
    /// second derivative itself where nothing bounds that.
    #[inline]
    fn majoriser(self, z: f64, y: f64) -> f64 {
        self.bounds().curvature.unwrap_or_else(|| self.curvature(z, y))
    }

    /// What is proved of it.
    fn bounds(self) -> Bounds;

    /// The convex conjugate, max over z of p z - l(z), for slopes p between 0 and one that the loss has; not a number where nobody has written it down.
    fn conjugate(self, _p: f64, _y: f64) -> f64 {
        f64::NAN
    }

    /// A lower bound over all z.
    fn least(self, _y: f64) -> f64 {
        0.0
    }
}

/// The second derivative by a difference of slopes over `width` on both sides; not below 0.
#[inline]
pub(super) fn bend(loss: impl Scalar, z: f64, y: f64, width: f64) -> f64 {
    let (above, below) = (z + width, z - width);
    ((loss.slope(above, y) - loss.slope(below, y)) / (above - below)).max(0.0)
}

/// Losses and slopes of many rows: the slopes are written over the scores.
#[multiversion(targets("x86_64+avx2"))]
pub(super) fn differentiate_all<L: Scalar>(loss: L, labels: &[f64], scores: &mut [f64], values: &mut [f64]) {
    for ((z, value), y) in scores.iter_mut().zip(values).zip(labels) {
        (*value, *z) = loss.both(*z, *y);
    }
}

/// Second derivatives of many rows, written over the scores; the share `caution` of the way from them to the majorisers.
#[multiversion(targets("x86_64+avx2"))]
pub(super) fn curvatures<L: Scalar>(loss: L, caution: f64, labels: &[f64], scores: &mut [f64]) {
    for (z, y) in scores.iter_mut().zip(labels) {
        let curvature = loss.curvature(*z, *y);
        *z = curvature + caution * (loss.majoriser(*z, *y) - curvature);
    }
}

/// What [`with_scalar`] names.
pub(super) mod scalars {
    pub(crate) use super::absolute::Absolute;
    pub(crate) use super::cauchy::Cauchy;
    pub(crate) use super::hinge::Hinge;
    pub(crate) use super::huber::Huber;
    pub(crate) use super::least_squares::LeastSquares;
    pub(crate) use super::logistic::Logistic;
    pub(crate) use super::phase_retrieval::PhaseRetrieval;
    pub(crate) use super::poisson::Poisson;
    pub(crate) use super::quantile::Quantile;
    pub(crate) use super::sigmoid::Sigmoid;
    pub(crate) use super::smoothed::Smoothed;
    pub(crate) use super::squared_hinge::SquaredHinge;
    pub(crate) use super::tukey::Tukey;
    pub(crate) use super::welsch::Welsch;
}

impl Loss {
    /// The loss of this name; `parameter` is its delta, level or scale, `classes` what the multinomial loss needs. `None` if
    /// there is no loss of this name. A parameter that is not given has its usual value.
    ///
    /// ```
    /// use pasta_opt::table::Loss;
    ///
    /// assert_eq!(Loss::named("huber", Some(2.0), 2), Some(Loss::Huber { delta: 2.0 }));
    /// assert_eq!(Loss::named("squared-hinge", None, 2), Some(Loss::SquaredHinge));
    /// assert_eq!(Loss::named("cube", None, 2), None);
    /// ```
    pub fn named(name: &str, parameter: Option<f64>, classes: usize) -> Option<Self> {
        let row = LOSSES.iter().find(|row| row.name == name)?;
        let value = parameter.or(row.parameter.map(|parameter| parameter.default)).unwrap_or(0.0);
        Self::with_number(name, value, classes)
    }

    /// Its parameter: delta, level or scale.
    pub fn parameter(&self) -> Option<f64> {
        self.row().parameter.and(self.number())
    }

    /// True if it is a parabola in the score, so that second derivatives are the same everywhere.
    pub fn is_quadratic(&self) -> bool {
        *self == Self::LeastSquares
    }

    /// True if z and -z are charged the same, so that 0 is a stationary point whatever the labels.
    pub fn is_even(&self) -> bool {
        *self == Self::PhaseRetrieval
    }

    /// True if [`mean`](Self::mean) gives probabilities of classes.
    pub fn has_probabilities(&self) -> bool {
        matches!(self, Self::Logistic | Self::Multinomial { .. })
    }

    /// True if it has no minimiser where classes can be separated: it falls for ever as the weights grow.
    pub fn needs_overlap(&self) -> bool {
        self.has_probabilities() || *self == Self::Sigmoid
    }

    /// True if its second derivative is above zero everywhere, so that steps by it lead to a minimiser.
    pub(crate) fn is_strictly_convex(&self) -> bool {
        let smooth = matches!(self.row().class, Class::SmoothConvex | Class::LocallySmoothConvex);
        smooth && !matches!(self, Self::Huber { .. } | Self::SquaredHinge)
    }

    /// The convex loss that agrees with this one near 0, for a loss that is flat far out: Huber's of the same scale, where a fit of this one begins. From
    /// 0, where all labels may be out of reach, such a loss has a gradient of next to nothing and any number of minima.
    ///
    /// ```
    /// use pasta_opt::table::Loss;
    ///
    /// assert_eq!(Loss::Tukey { scale: 4.0 }.convex_surrogate(), Some(Loss::Huber { delta: 4.0 }));
    /// assert_eq!(Loss::Absolute.convex_surrogate(), None);
    /// ```
    pub fn convex_surrogate(&self) -> Option<Self> {
        let is_flat = self.row().class == Class::SmoothNonConvex;
        self.parameter().filter(|_| is_flat).map(|delta| Self::Huber { delta })
    }

    /// The same loss for errors of this standard deviation, with its usual efficiency, for a loss that has a scale: Huber's, Cauchy's, Welsch's and Tukey's. `None` for others.
    ///
    /// ```
    /// use pasta_opt::table::Loss;
    ///
    /// let loss = Loss::Huber { delta: 1.0 };
    /// assert_eq!(loss.for_deviation(100.0), Some(Loss::Huber { delta: 134.5 }));
    /// assert_eq!(Loss::Absolute.for_deviation(100.0), None);
    /// ```
    pub fn for_deviation(&self, deviation: f64) -> Option<Self> {
        let Parameter { default, range, .. } = self.row().parameter?;
        let value = (range == Range::Positive).then_some(deviation * default)?;
        Self::with_number(self.row().name, value, 0)
    }

    /// How many classes there are, where a row has a score for each.
    pub fn classes(&self) -> Option<usize> {
        match *self {
            Self::Multinomial { classes } => Some(classes),
            _ => None,
        }
    }

    /// How many scores a row has.
    pub fn outputs(&self) -> usize {
        self.classes().unwrap_or(1)
    }

    /// What is proved of it as a function of the scores.
    pub fn bounds(&self) -> Bounds {
        with_scalar!(*self, loss => loss.bounds(), multinomial::BOUNDS)
    }

    /// The loss of a row from its scores, one for each [output](Self::outputs), and its gradient in the scores, which is
    /// written over them.
    ///
    /// ```
    /// use pasta_opt::table::Loss;
    ///
    /// let mut scores = [3.0];
    /// assert_eq!((Loss::LeastSquares.differentiate(&mut scores, 1.0), scores), (2.0, [2.0]));
    /// ```
    pub fn differentiate(&self, scores: &mut [f64], label: f64) -> f64 {
        with_scalar!(*self, loss => {
            let value = loss.value(scores[0], label);
            scores[0] = loss.slope(scores[0], label);
            value
        }, multinomial::differentiate(scores, label as usize))
    }

    /// The losses of many rows, from the scores of one after those of another, and their gradients in the scores, written over them: what
    /// [`differentiate`](Self::differentiate) gives for each row, and quicker where rows have one score.
    ///
    /// ```
    /// use pasta_opt::table::Loss;
    ///
    /// let (mut scores, mut losses) = ([3.0, 0.0], [0.0; 2]);
    /// Loss::LeastSquares.differentiate_rows(&mut scores, &[1.0, 1.0], &mut losses);
    /// assert_eq!((scores, losses), ([2.0, -1.0], [2.0, 0.5]));
    /// ```
    pub fn differentiate_rows(&self, scores: &mut [f64], labels: &[f64], losses: &mut [f64]) {
        with_scalar!(*self, loss => differentiate_all(loss, labels, scores, losses), {
            let rows = scores.chunks_exact_mut(self.outputs()).zip(labels).zip(losses);
            rows.for_each(|((scores, label), loss)| *loss = multinomial::differentiate(scores, *label as usize));
        });
    }

    /// Turns the scores of a row into what they say about its label: the probability of the label 1 (logistic), of each class
    /// (multinomial), the mean (Poisson), z^2 (phase retrieval), and z itself for the others.
    pub fn mean(&self, scores: &mut [f64]) {
        match self {
            Self::Logistic => scores[0] = logistic::sigmoid_of_minus(-scores[0]),
            Self::Multinomial { .. } => multinomial::probabilities(scores),
            Self::Poisson => scores[0] = exp(scores[0]),
            Self::PhaseRetrieval => scores[0] *= scores[0],
            _ => {}
        }
    }

    /// A lower bound of the loss of a row with this label.
    pub(super) fn least(&self, label: f64) -> f64 {
        with_scalar!(*self, loss => loss.least(label), 0.0)
    }

    /// Refuses a parameter out of its range.
    pub fn check(&self) -> Result<(), TableError> {
        let refuse = |name, needs, got| Err(TableError::Setting { name, needs, got });
        match (self.row().parameter, self.number()) {
            (Some(Parameter { name, range, .. }), Some(got)) if !range.contains(got) => {
                refuse(name, range.words(), got)
            }
            (None, Some(got)) if got < 2.0 => refuse("the number of classes", "at least 2", got),
            _ => Ok(()),
        }
    }

    /// Refuses the first label that does not fit.
    pub fn check_labels(&self, labels: &[f64]) -> Result<(), TableError> {
        let name = self.row().name;
        let refuse = |fits: &dyn Fn(f64) -> bool, needs: String| {
            let wrong = labels.iter().enumerate().find(|(_, y)| !fits(**y));
            wrong.map_or(Ok(()), |(row, &value)| Err(TableError::Label { row, value, needs }))
        };
        match (self.row().labels, self) {
            (Labels::Signs, _) => {
                // Whichever of -1 and 0 comes first stands for "no".
                let no = labels.iter().copied().find(|&y| y == 0.0 || y == -1.0).unwrap_or(-1.0);
                refuse(&|y| y == 1.0 || y == no, format!("the {name} loss needs labels -1 and 1, or 0 and 1"))
            }
            (Labels::Classes, Self::Multinomial { classes }) => refuse(
                &|y| y >= 0.0 && y < *classes as f64 && y.fract() == 0.0,
                format!("the {name} loss needs whole numbers from 0 to {}", classes - 1),
            ),
            (Labels::Counts, _) => {
                refuse(&|y| y >= 0.0, format!("the {name} loss needs labels of at least 0"))
            }
            _ => {
                let largest = labels.iter().fold(0.0, |largest: f64, y| largest.max(y.abs()));
                match largest {
                    _ if largest > 0.0 && largest < LEAST => Err(TableError::SmallLabels { largest }),
                    _ if largest > 1.0 / LEAST => Err(TableError::LargeLabels { largest }),
                    _ => Ok(()),
                }
            }
        }
    }
}

/// What is smaller is hardly a number any more once it is squared.
pub(in crate::table) const LEAST: f64 = 1e-150;

/// -1 for the labels -1 and 0, and 1 for the label 1.
#[inline]
pub(super) fn sign(y: f64) -> f64 {
    if y > 0.0 { 1.0 } else { -1.0 }
}

#[cfg(test)]
mod tests {
    use super::scalars::{
        Absolute, Cauchy, Hinge, Huber, LeastSquares, Logistic, Quantile, Sigmoid, Smoothed, SquaredHinge,
        Tukey, Welsch,
    };
    use super::{Kink, Scalar, curvatures};

    /// By how much the parabola of the majoriser at z is below the loss, over scores and labels; relative to what is subtracted.
    fn worst(loss: impl Scalar, labels: &[f64]) -> f64 {
        let scores = || (-80..=80_i32).map(|k| f64::from(k) * 0.37);
        let below = |z: f64, u: f64, y: f64| {
            let (there, slope) = (loss.value(z, y), loss.slope(z, y) * (u - z));
            let bend = 0.5 * loss.majoriser(z, y) * (u - z).powi(2);
            let value = loss.value(u, y);
            (value - there - slope - bend) / (1.0 + value.abs() + slope.abs() + bend)
        };
        let pairs = scores().flat_map(|z| scores().map(move |u| (z, u)));
        pairs.flat_map(|(z, u)| labels.iter().map(move |y| below(z, u, *y))).fold(f64::NEG_INFINITY, f64::max)
    }

    #[test]
    fn a_majoriser_is_nowhere_below_its_loss() {
        let (numbers, signs) = ([-3.0, 0.0, 40.0], [-1.0, 1.0]);
        let worst = [
            worst(LeastSquares, &numbers),
            worst(Huber { delta: 1.345 }, &numbers),
            worst(Huber { delta: 0.01 }, &numbers),
            worst(Cauchy { scale: 2.0 }, &numbers),
            worst(Welsch { scale: 2.0 }, &numbers),
            worst(Tukey { scale: 4.0 }, &numbers),
            worst(Logistic, &signs),
            worst(SquaredHinge, &signs),
            worst(Sigmoid, &signs),
            worst(Smoothed { kink: Kink::Absolute, width: 0.5 }, &numbers),
            worst(Smoothed { kink: Kink::Quantile { level: 0.2 }, width: 2.0 }, &numbers),
            worst(Smoothed { kink: Kink::Hinge, width: 0.1 }, &signs),
        ];
        // A few roundings of numbers of order 1.
        assert!(worst.iter().all(|worst| *worst <= 1e-14), "{worst:?}");
    }

    /// Below the loss, by at most half the width times the square of the slope; slopes and curvatures are those of differences.
    fn is_smoothed(loss: impl Scalar, smoothed: Smoothed, labels: &[f64]) {
        let (most, step) = (0.5 * smoothed.width * smoothed.kink.steepest().powi(2), 1e-6);
        for (k, y) in (-160..=160_i32).flat_map(|k| labels.iter().map(move |y| (k, *y))) {
            // Never where two parts meet.
            let z = f64::from(k) * 0.0371 + 0.001;
            let below = loss.value(z, y) - smoothed.value(z, y);
            assert!((-1e-15..=most + 1e-15).contains(&below), "{smoothed:?} at {z}: {below}");
            let slope = (smoothed.value(z + step, y) - smoothed.value(z - step, y)) / (2.0 * step);
            let bend = (smoothed.slope(z + step, y) - smoothed.slope(z - step, y)) / (2.0 * step);
            // Rounding of values of order 10 over a step of 1e-6.
            assert!((slope - smoothed.slope(z, y)).abs() < 1e-8, "{smoothed:?} at {z}");
            assert!((bend - smoothed.curvature(z, y)).abs() < 1e-8, "{smoothed:?} at {z}");
        }
    }

    #[test]
    fn smoothing_lies_below_the_loss_and_near_it() {
        for width in [0.25, 1.0] {
            is_smoothed(Absolute, Smoothed { kink: Kink::Absolute, width }, &[-1.0, 0.0, 2.0]);
            let kink = Kink::Quantile { level: 0.3 };
            is_smoothed(Quantile { level: 0.3 }, Smoothed { kink, width }, &[-1.0, 0.0, 2.0]);
            is_smoothed(Hinge, Smoothed { kink: Kink::Hinge, width }, &[-1.0, 1.0]);
        }
    }

    #[test]
    fn caution_leads_from_second_derivatives_to_majorisers() {
        let (loss, labels) = (Huber { delta: 1.0 }, [0.0, 0.0]);
        let bends = |caution| {
            let mut scores = [0.5, 4.0];
            curvatures(loss, caution, &labels, &mut scores);
            scores
        };
        assert_eq!([bends(0.0), bends(0.5), bends(1.0)], [[1.0, 0.0], [1.0, 0.125], [1.0, 0.25]]);
    }
}
