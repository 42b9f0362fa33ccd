//! What statisticians ask of a fit: standard errors, intervals, and how much the columns explain.
//!
//! Everything is about the minimiser of a fit that is certified, has no penalty and is unique; [`Omitted`] says why standard errors are left out elsewhere. They belong to the
//! weights of the table's own columns, by the delta method: a linear map of the coordinates of the fit.
//!
//! | loss | classical | law | degrees of freedom |
//! |---|---|---|---|
//! | least-squares | s^2 (X'WX)^-1, s^2 the weighted sum of squared residuals over n - p | t | n - p |
//! | logistic, poisson, multinomial | the inverse of the observed information | z | |
//! | huber, squared-hinge | none: use a sandwich | z | |
//!
//! n counts rows with a weight above 0, p the coefficients that are not left out. The sandwich `hc0` is H^-1 (sum of g g') H^-1, g the gradient of a row with its weight; `hc1`
//! is n/(n - p) times that. The bootstrap fits rows that are drawn with replacement, as many as there are, and takes the spread of their coefficients: for all
//! losses, kinks too.
//!
//! ```
//! use std::sync::Arc;
//!
//! use pasta_opt::fit::{Fit, Way};
//! use pasta_opt::inference::Summary;
//! use pasta_opt::table::{Dense, Design, Features, Linear, Loss, Table};
//!
//! let features = Features::Dense(Dense { rows: 4, columns: 1, values: vec![0.0, 1.0, 2.0, 3.0].into() });
//! let table = Table::new(features, Arc::new(vec![0.0, 2.0, 1.0, 3.0]), None, vec!["a".into()])?;
//! let linear = Arc::new(Linear::new(Arc::new(table), Loss::LeastSquares, Design::default())?);
//! let fit = Fit { way: Way::usual(&linear), start: None, target: None, budget: None, seed: 1 };
//! let fitted = fit.run(&linear, linear.clone(), Arc::default(), &mut |_| ())?;
//! let summary = Summary::of(&linear, &fitted, None);
//! // R: coef(summary(lm(c(0, 2, 1, 3) ~ c(0, 1, 2, 3))))
//! let slope = &summary.coefficients[1];
//! assert_eq!(slope.name, "a");
//! assert!((slope.estimate - 0.8).abs() < 1e-14);
//! assert!((slope.std_error.unwrap_or(0.0) - 0.424_264_068_711_928_5).abs() < 1e-14);
//! assert!((slope.p_value.unwrap_or(0.0) - 0.2).abs() < 1e-14);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bootstrap;
mod caution;
mod law;

use serde::{Deserialize, Serialize, Serializer};

use crate::fit::{Fitted, Verdict};
use crate::score::{class, has_classes};
use crate::table::{Class, Information, Linear, Loss, MOST_FULL};

pub use bootstrap::Resamples;
pub use caution::Caution;
pub use law::Law;
use law::{chi_square_tail, fisher_tail};

/// The probability with which an interval covers what it is for.
pub const LEVEL: f64 = 0.95;
/// Resamples of the rows, unless another number of them is asked for.
pub const RESAMPLES: u32 = 400;
/// The name of the intercept among coefficients.
pub const INTERCEPT: &str = "(intercept)";
/// Multiplications up to which standard errors are computed without being asked for: about a second.
const USUAL: f64 = 1e10;

/// How standard errors are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StdErrors {
    /// From the second derivatives alone: right if the model is.
    Classical,
    /// The sandwich: right for large tables also where the noise varies from row to row.
    Hc0,
    /// The same times n/(n - p).
    Hc1,
    /// The spread of fits of rows drawn with replacement, by [`Summary::bootstrapped`] alone.
    Bootstrap,
    /// Not at all.
    None,
}

impl StdErrors {
    /// All, with their names.
    pub const ALL: [(&'static str, Self); 5] = [
        ("classical", Self::Classical),
        ("hc0", Self::Hc0),
        ("hc1", Self::Hc1),
        ("bootstrap", Self::Bootstrap),
        ("none", Self::None),
    ];

    /// Its name in flags and files.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }
}

/// Why there are no standard errors.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Omitted {
    /// Nobody asked for them.
    #[error("not asked for")]
    NotAsked,
    /// A penalty pulls the weights to 0.
    #[error(
        "the penalty pulls the weights towards 0, and standard errors do not count that; fit without a penalty for them"
    )]
    Penalty,
    /// Weights are held at 0 or at a bound.
    #[error(
        "l1 or bounds hold weights where they are, and standard errors do not count that; fit without them for errors"
    )]
    Term,
    /// The loss has kinks.
    #[error(
        "the {loss} loss has kinks, where second derivatives say nothing; resample the rows instead (bootstrap)"
    )]
    Kinks {
        /// Its name.
        loss: &'static str,
    },
    /// The loss is not convex.
    #[error("the {loss} loss is not convex; resample the rows instead (bootstrap)")]
    NotConvex {
        /// Its name.
        loss: &'static str,
    },
    /// The loss is not a likelihood.
    #[error("the {loss} loss is not the likelihood of a model; ask for sandwich errors (hc1)")]
    NotLikelihood {
        /// Its name.
        loss: &'static str,
    },
    /// The point is not certified.
    #[error("the fit is not certified, so the point need not be the minimiser")]
    NotCertified,
    /// The classes can be separated.
    #[error("the classes can be separated, so the loss has no minimiser")]
    Separated,
    /// The second derivatives do not decide some weights.
    #[error("the second derivatives do not decide the weights: rank {rank} of {of}")]
    Singular {
        /// The coordinates that are decided.
        rank: usize,
        /// All coordinates.
        of: usize,
    },
    /// Least squares with as many coefficients as rows.
    #[error("no degrees of freedom are left (rows: {rows}, coefficients: {coefficients})")]
    NoDegrees {
        /// The rows.
        rows: u64,
        /// The coefficients.
        coefficients: usize,
    },
    /// All labels are met.
    #[error("the model meets every label up to rounding, so there is no noise to estimate")]
    Perfect,
    /// The matrix is too large.
    #[error("{coordinates} coefficients, more than {MOST_FULL}")]
    TooMany {
        /// The coefficients.
        coordinates: usize,
    },
    /// Rows are to be resampled, which [`Summary::of`] does not do.
    #[error("resampling the rows takes fits of its own, and none was made")]
    NotResampled,
    /// Most resamples have no fit to compare with.
    #[error("only {used} of {asked} resamples of the rows have a certified fit of the same columns")]
    Resamples {
        /// How many have.
        used: usize,
        /// How many were drawn.
        asked: usize,
    },
    /// It takes longer than most fits, and nobody asked.
    #[error("they take about {:.0e} multiplications here; ask for them (classical or hc1)", .work)]
    Costly {
        /// The multiplications.
        work: f64,
    },
}

impl Serialize for Omitted {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A weight of the table's own column, or an intercept.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Coefficient {
    /// The feature, or [`INTERCEPT`].
    pub name: String,
    /// Of several classes: which one is compared with the [reference](Summary::reference).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<usize>,
    /// Its value.
    pub estimate: f64,
    /// By how much the score changes as the column moves by its standard deviation; `None` for an intercept, and where columns are not standardised.
    pub effect: Option<f64>,
    /// Its standard error; `None` where it has none.
    pub std_error: Option<f64>,
    /// An interval that covers it with probability [`LEVEL`].
    pub interval: Option<[f64; 2]>,
    /// Estimate over standard error: t or z.
    pub statistic: Option<f64>,
    /// The probability of a statistic at least as far from 0 if the weight were 0.
    pub p_value: Option<f64>,
}

/// What a fit says about the coefficients and the labels.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// Intercept first, then features in their order; for one class after another.
    pub coefficients: Vec<Coefficient>,
    /// How standard errors were computed; `None` where there are none.
    pub std_errors: Option<StdErrors>,
    /// Where they are from resamples: how many these were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resamples: Option<Resamples>,
    /// The law of the statistics.
    #[serde(flatten)]
    pub law: Option<Law>,
    /// Why there are no standard errors.
    pub omitted: Option<Omitted>,
    /// Of several classes: the one that all others are compared with, whose coefficients are 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<usize>,
    /// True if coefficients belong to products of standardised columns.
    pub standardised: bool,
    /// How much the columns explain.
    pub explained: Explained,
}

/// How much the columns of a model explain, weighted if the rows are.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Explained {
    /// Rows with a weight above 0.
    pub rows: u64,
    /// Coefficients that are not left out.
    pub coefficients: usize,
    /// The mean loss at the minimiser, without the penalty.
    pub loss: f64,
    /// The mean loss of the best model without columns; `None` where it is not known.
    pub null_loss: Option<f64>,
    /// The standard deviation of the residuals of least squares, by n - p.
    pub residual_deviation: Option<f64>,
    /// Twice the log likelihood that is missing to a model that meets every label; for least squares the sum of squared residuals.
    pub deviance: Option<f64>,
    /// The deviance of the best model without columns.
    pub null_deviance: Option<f64>,
    /// The logarithm of the likelihood, where the loss is one.
    pub log_likelihood: Option<f64>,
    /// Akaike's criterion; `None` with a penalty.
    pub aic: Option<f64>,
    /// Whether all columns together explain more than chance would; `None` with a penalty, and without an intercept.
    pub test: Option<Test>,
}

/// A test of the hypothesis that all weights are 0.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Test {
    /// F of least squares, the fall of the deviance otherwise.
    pub statistic: f64,
    /// Its degrees of freedom: of the columns, and of the residuals for F.
    pub degrees: (f64, Option<f64>),
    /// The probability of a statistic at least as large.
    pub p_value: f64,
}

impl Explained {
    /// 1 - deviance/null deviance, or losses where there is no likelihood: the share of what a model without columns leaves that the columns explain.
    pub fn share(&self) -> Option<f64> {
        let (left, null) = self.deviance.zip(self.null_deviance).or(Some(self.loss).zip(self.null_loss))?;
        (null > 0.0).then(|| 1.0 - left / null)
    }
}

/// Sums over the rows.
struct Sums {
    rows: f64,
    loss: f64,
    null: f64,
    /// What the log likelihood has beside the losses.
    constant: f64,
    /// Twice the log likelihood of a model that meets every label, beside that.
    saturated: f64,
    /// Weighted squares of the labels around their mean.
    labels: f64,
    /// Rows whose class is wrong, or on the border.
    wrong: f64,
}

impl Sums {
    fn of(linear: &Linear, x: &[f64]) -> Self {
        let (loss, table) = (linear.loss(), linear.table());
        let (labels, weights) = ((*table.labels).as_ref(), table.weights.as_ref().map(|w| (**w).as_ref()));
        let weight = |row: usize| weights.map_or(1.0, |weights| weights[row]);
        let offsets = table.offsets.as_ref().map(|offsets| (**offsets).as_ref());
        let constant = if linear.design().intercept { linear.best_constant() } else { linear.start() };
        let stride = linear.features() + usize::from(linear.design().intercept);
        let intercept = |output: &[f64]| output.get(linear.features()).copied().unwrap_or(0.0);
        let null: Vec<f64> = constant.chunks(stride.max(1)).map(intercept).collect();
        let mean = if linear.design().intercept { null[0] } else { 0.0 };
        let sums = linear.sum_scores(x, 7, &|row, scores, out| {
            let (w, y) = (weight(row), labels[row]);
            if w == 0.0 {
                return;
            }
            out[0] += 1.0;
            out[1] += w * value(loss, scores, y);
            out[2] += w * value(loss, &null, y);
            match loss {
                Loss::LeastSquares => {
                    out[3] += 0.5 * libm::log(w);
                    out[5] += w * (y - mean).powi(2);
                }
                Loss::Poisson => {
                    // The likelihood is that of the counts, not of the rates.
                    let offset = offsets.map_or(0.0, |offsets| offsets[row]);
                    let exposure = libm::exp(offset);
                    let count = y * exposure;
                    out[3] += w / exposure * (count * offset - libm::lgamma(count + 1.0));
                    out[4] += if y > 0.0 { 2.0 * w * (y * libm::log(y) - y) } else { 0.0 };
                }
                _ if has_classes(loss) => {
                    let own = class(scores) == if y > 0.0 { y as usize } else { 0 };
                    let border = scores.len() == 1 && scores[0] == 0.0;
                    out[6] += f64::from(u8::from(!own || border));
                }
                _ => {}
            }
        });
        let [rows, loss, null, constant, saturated, labels, wrong] = [0, 1, 2, 3, 4, 5, 6].map(|i| sums[i]);
        Self { rows, loss, null, constant, saturated, labels, wrong }
    }

    /// With a term (l1, bounds), as with a penalty, tests and AIC would count weights that are not free.
    fn explained(&self, linear: &Linear, coefficients: usize, has_term: bool) -> Explained {
        let (n, p) = (self.rows, coefficients as f64);
        let (loss, design, total) = (linear.loss(), linear.design(), linear.total_weight());
        let is_squares = loss == Loss::LeastSquares;
        let residual = n - p;
        let (deviance, null_deviance) = match loss {
            Loss::LeastSquares => (Some(2.0 * self.loss), Some(self.labels)),
            Loss::Logistic | Loss::Multinomial { .. } => (Some(2.0 * self.loss), Some(2.0 * self.null)),
            Loss::Poisson => (Some(2.0 * self.loss + self.saturated), Some(2.0 * self.null + self.saturated)),
            _ => (None, None),
        };
        let log_likelihood = match loss {
            Loss::LeastSquares => {
                let variance = 2.0 * self.loss / n;
                Some(self.constant - 0.5 * n * (libm::log(2.0 * std::f64::consts::PI * variance) + 1.0))
            }
            _ => deviance.map(|_| self.constant - self.loss),
        };
        let log_likelihood = log_likelihood.filter(|value| value.is_finite());
        let is_plain = design.penalty == 0.0 && !has_term;
        let columns = p - if design.intercept { (loss.outputs().max(2) - 1) as f64 } else { 0.0 };
        let fall = deviance.zip(null_deviance).map(|(left, null)| (null - left).max(0.0));
        let test = fall.filter(|_| is_plain && design.intercept && columns > 0.0).and_then(|fall| {
            if !is_squares {
                let p_value = chi_square_tail(fall, columns);
                return Some(Test { statistic: fall, degrees: (columns, None), p_value });
            }
            let statistic = fall / columns / (2.0 * self.loss / residual);
            let p_value = fisher_tail(statistic, columns, residual);
            let degrees = (columns, Some(residual));
            (residual > 0.0 && statistic.is_finite()).then_some(Test { statistic, degrees, p_value })
        });
        let has_null = !matches!(loss, Loss::Cauchy { .. } | Loss::Welsch { .. } | Loss::Tukey { .. })
            && !matches!(loss, Loss::Hinge | Loss::Sigmoid | Loss::PhaseRetrieval);
        Explained {
            rows: n as u64,
            coefficients,
            loss: self.loss / total,
            null_loss: (has_null || !design.intercept).then_some(self.null / total),
            residual_deviation: (is_squares && residual > 0.0 && !has_term)
                .then(|| (2.0 * self.loss / residual).sqrt()),
            deviance,
            null_deviance,
            log_likelihood,
            aic: log_likelihood
                .filter(|_| is_plain)
                .map(|value| 2.0 * (p + f64::from(u8::from(is_squares))) - 2.0 * value),
            test,
        }
    }
}

impl Summary {
    /// The coefficients of a fit with standard errors, if these can be had. Without a kind of errors: classical ones where the loss is a likelihood and they
    /// take about a second at most.
    pub fn of(linear: &Linear, fitted: &Fitted, kind: Option<StdErrors>) -> Self {
        Self::named(linear, fitted, kind, &linear.feature_names())
    }

    /// The same with other names of the features.
    pub fn named(linear: &Linear, fitted: &Fitted, kind: Option<StdErrors>, names: &[String]) -> Self {
        let sums = Sums::of(linear, &fitted.point);
        let stride = linear.features() + usize::from(linear.design().intercept);
        let without: Vec<usize> =
            fitted.left_out.iter().map(|one| one.feature).filter(|feature| *feature < stride).collect();
        let outputs = linear.loss().outputs();
        let scores = if outputs > 1 { outputs - 1 } else { 1 };
        let count = scores * (stride - without.len());
        let explained = sums.explained(linear, count, fitted.has_term);
        let asked = Asked { kind: kind.unwrap_or(StdErrors::Classical), explained: &explained };
        let variance = match asked.refused(linear, fitted, &sums, kind.is_none()) {
            Some(why) => Err(why),
            None if asked.kind == StdErrors::Bootstrap => Err(Omitted::NotResampled),
            None => asked.variances(linear, &fitted.point, &without),
        };
        // Columns that were not looked at before may depend on each other.
        let explained = match variance {
            Err(Omitted::Singular { rank, .. }) => sums.explained(linear, rank, fitted.has_term),
            _ => explained,
        };
        let law = match (linear.loss(), explained.residual_deviation) {
            (Loss::LeastSquares, _) => {
                Law::Student { degrees: explained.rows as f64 - explained.coefficients as f64 }
            }
            _ => Law::Normal,
        };
        Self {
            coefficients: coefficients(linear, &fitted.point, names, &without, variance.as_deref().ok(), law),
            std_errors: variance.is_ok().then_some(asked.kind),
            resamples: None,
            law: variance.is_ok().then_some(law),
            omitted: variance.err(),
            reference: (outputs > 1).then_some(0),
            standardised: linear.design().degree > 1 && linear.scaling().is_some(),
            explained,
        }
    }
}

/// The loss of a row. Most have one score, which needs no room.
fn value(loss: Loss, scores: &[f64], label: f64) -> f64 {
    match scores {
        [score] => loss.differentiate(&mut [*score], label),
        _ => loss.differentiate(&mut scores.to_vec(), label),
    }
}

/// Standard errors that are asked for.
struct Asked<'a> {
    kind: StdErrors,
    explained: &'a Explained,
}

impl Asked<'_> {
    /// Why there can be none, if that is clear without a pass.
    fn refused(&self, linear: &Linear, fitted: &Fitted, sums: &Sums, is_usual: bool) -> Option<Omitted> {
        let (loss, row) = (linear.loss(), linear.loss().row());
        let is_likelihood = self.explained.deviance.is_some();
        let (rows, coefficients) = (self.explained.rows, self.explained.coefficients);
        let coordinates = linear.dim();
        let work = linear.table().rows() as f64 * (coordinates as f64).powi(2);
        match row.class {
            _ if self.kind == StdErrors::None => return Some(Omitted::NotAsked),
            _ if self.kind == StdErrors::Bootstrap => {}
            Class::LipschitzConvex | Class::WeaklyConvex => return Some(Omitted::Kinks { loss: row.name }),
            Class::SmoothNonConvex => return Some(Omitted::NotConvex { loss: row.name }),
            Class::SmoothConvex | Class::LocallySmoothConvex => {}
        }
        if fitted.has_term {
            Some(Omitted::Term)
        } else if linear.design().penalty > 0.0 {
            Some(Omitted::Penalty)
        } else if !is_likelihood && self.kind == StdErrors::Classical {
            Some(Omitted::NotLikelihood { loss: row.name })
        } else if matches!(loss, Loss::Logistic | Loss::Multinomial { .. }) && sums.wrong == 0.0 {
            Some(Omitted::Separated)
        } else if fitted.verdict != Verdict::Certified {
            Some(Omitted::NotCertified)
        } else if rows <= coefficients as u64 && (loss == Loss::LeastSquares || self.kind == StdErrors::Hc1) {
            Some(Omitted::NoDegrees { rows, coefficients })
        } else if loss == Loss::LeastSquares && sums.is_perfect() {
            Some(Omitted::Perfect)
        } else if self.kind == StdErrors::Bootstrap {
            None
        } else if coordinates > MOST_FULL {
            Some(Omitted::TooMany { coordinates })
        } else if is_usual && work > USUAL {
            Some(Omitted::Costly { work })
        } else {
            None
        }
    }

    /// The variance of each coefficient in the order of [`coefficients`], 0 for those that are left out.
    fn variances(&self, linear: &Linear, x: &[f64], without: &[usize]) -> Result<Vec<f64>, Omitted> {
        let stride = linear.features() + usize::from(linear.design().intercept);
        let scores = linear.loss().outputs().max(2) - 1;
        let dim = scores * stride;
        let sandwich = self.kind != StdErrors::Classical;
        let information = linear.information(x, without, sandwich);
        let lost = information.as_ref().map_or(dim, |it| it.left_out().len());
        let information = match information {
            Some(information) if lost == scores * without.len() => information,
            _ => return Err(Omitted::Singular { rank: dim - lost, of: dim - scores * without.len() }),
        };
        let (n, p) = (self.explained.rows as f64, self.explained.coefficients as f64);
        let factor = match (self.kind, self.explained.residual_deviation) {
            (StdErrors::Classical, Some(deviation)) => deviation * deviation,
            (StdErrors::Hc1, _) => n / (n - p),
            _ => 1.0,
        };
        let of = |(score, feature): (usize, usize)| {
            let mut t = vec![0.0; dim];
            linear.visit_raw(feature, |coordinate, times| t[score * stride + coordinate] = times);
            if without.contains(&feature) { 0.0 } else { factor * variance(&information, &t) }
        };
        Ok(order(linear).map(of).collect())
    }
}

fn variance(information: &Information, t: &[f64]) -> f64 {
    // In units in which nothing overflows.
    let size = t.iter().fold(0.0_f64, |size, t| size.max(t.abs()));
    let unit: Vec<f64> = t.iter().map(|t| t / size).collect();
    information.variance(&unit) * size * size
}

impl Sums {
    /// Whether least squares left nothing but rounding.
    fn is_perfect(&self) -> bool {
        /// Of residuals over the labels, squared.
        const ROUNDING: f64 = 1e-26;
        2.0 * self.loss <= ROUNDING * self.labels
    }
}

/// Scores but the reference, and in each the intercept, then the features.
fn order(linear: &Linear) -> impl Iterator<Item = (usize, usize)> {
    let (features, intercept) = (linear.features(), linear.design().intercept);
    let scores = linear.loss().outputs().max(2) - 1;
    let one = move |score: usize| {
        let first = intercept.then_some(features);
        first.into_iter().chain(0..features).map(move |feature| (score, feature))
    };
    (0..scores).flat_map(one)
}

fn coefficients(
    linear: &Linear,
    x: &[f64],
    names: &[String],
    without: &[usize],
    variances: Option<&[f64]>,
    law: Law,
) -> Vec<Coefficient> {
    let (model, features) = (linear.raw_weights(x), linear.features());
    let is_several = model.outputs() > 1;
    let raw = |output: usize, feature: usize| {
        if feature == features {
            model.intercepts[output]
        } else {
            model.weights[output * features + feature]
        }
    };
    let scaling = linear.scaling().map(|scaling| match linear.design().degree {
        1 => &scaling.scale[..],
        _ => &[],
    });
    let wide = variances.map(|_| law.exceeded(1.0 - LEVEL));
    // Of a wide table many may be left out.
    let mut is_out = vec![false; features + 1];
    without.iter().for_each(|feature| is_out[*feature] = true);
    let one = |(place, (score, feature)): (usize, (usize, usize))| {
        let estimate = if is_several { raw(score + 1, feature) - raw(0, feature) } else { raw(0, feature) };
        let std_error = variances.filter(|_| !is_out[feature]).map(|variances| variances[place].sqrt());
        let statistic = std_error.map(|error| estimate / error).filter(|value| value.is_finite());
        Coefficient {
            name: match names.get(feature) {
                Some(name) if feature < features => name.clone(),
                _ => INTERCEPT.to_owned(),
            },
            class: is_several.then_some(score + 1),
            estimate,
            effect: scaling.filter(|_| feature < features).map(|scale| match scale.get(feature) {
                Some(scale) if estimate != 0.0 => estimate * scale,
                // Products are of standardised columns.
                _ => estimate,
            }),
            std_error,
            interval: std_error.zip(wide).map(|(error, wide)| {
                let half = wide * error;
                [estimate - half, estimate + half]
            }),
            statistic,
            p_value: statistic.map(|value| law.two_sided(value)),
        }
    };
    order(linear).enumerate().map(one).collect()
}
