//! What can be asked of a fit on the command line.

use std::iter;
use std::path::{Path, PathBuf};

use clap::Args;
use pasta_opt::fit::Way;
use pasta_opt::inference::{RESAMPLES, StdErrors};
use pasta_opt::method::{self, Values};
pub(super) use pasta_opt::method::{AUTO, EXACT};
use pasta_opt::proximal::Penalties;
use pasta_opt::run::Target;
use pasta_report::console::{Failure, flags};
use pasta_report::nearest;

use crate::table::{Reading, Shaping, losses};

/// Fit a linear model to a table, and certify it by exact passes over the rows.
///
/// Minimises the mean loss of the rows plus the penalty until the exact gradient is a millionth of that at the start. You set no
/// step size. Columns are standardised during the fit; the weights in the model are in the columns' own units. A model is written
/// only if it is certified, or if --budget or kinks in the loss prevent that; the exit code then says so.
#[derive(Args)]
#[command(after_long_help = after_help())]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct Arguments {
    /// The table: LIBSVM, CSV, NPY or NPZ, text also compressed by gzip or zstd; - reads standard input
    pub(super) data: PathBuf,
    /// The loss of a prediction, given the label; --help lists all [default: by the labels: logistic for two values, multinomial for words,
    /// otherwise least-squares; the first line says which]
    #[arg(long, value_name = "LOSS")]
    pub(super) loss: Option<String>,
    /// Write the model to this file
    #[arg(long, short, value_name = "MODEL")]
    pub(super) output: Option<PathBuf>,
    /// Stop when |grad f| is at most EPS, or a share of that at the start, such as 0.01%; by exact on a loss with kinks, when f is at most EPS above its least value [default: 1e-6 of that at the
    /// start]
    #[arg(long, value_name = "EPS", allow_hyphen_values = true)]
    pub(super) target: Option<Target>,
    /// Add L times the sum of |w| to the loss (lasso): it makes weights exactly 0. Like --penalty it is about the weights of standardised columns
    #[arg(long, value_name = "L", value_parser = weight, allow_hyphen_values = true)]
    pub(super) penalty_l1: Option<f64>,
    /// Give this share of --penalty to the sum of |w|, the rest to |w|^2/2 (elastic net): 0 is ridge, 1 lasso
    #[arg(long, value_name = "RATIO", value_parser = share, allow_hyphen_values = true, requires = "penalty", conflicts_with = "penalty_l1")]
    pub(super) elastic_net: Option<f64>,
    /// Keep all weights at 0 or above
    #[arg(long, conflicts_with = "lower")]
    pub(super) non_negative: bool,
    /// Lower bounds of the weights, in the columns' own units: a number, or COLUMN=NUMBER, separated by commas
    #[arg(long, value_name = "BOUNDS", allow_hyphen_values = true, value_delimiter = ',')]
    pub(super) lower: Vec<String>,
    /// Upper bounds of the weights, likewise
    #[arg(long, value_name = "BOUNDS", allow_hyphen_values = true, value_delimiter = ',')]
    pub(super) upper: Vec<String>,
    /// Read at most this many rows; a row counts each time it is read [default: 2000 passes over the table, or more over a small one]
    #[arg(long, value_name = "ROWS", allow_negative_numbers = true, value_parser = flags::sample_count)]
    pub(super) budget: Option<u128>,
    /// Score the model on another file, or on this share of the rows, which is then not fitted
    #[arg(long, value_name = "FILE|SHARE")]
    pub(super) validation: Option<String>,
    /// Score by cross-validation: cut the rows into K folds, and score on each a model of the others
    #[arg(long, value_name = "K", allow_negative_numbers = true, conflicts_with_all = ["budget", "one_pass", "resume"],
          value_parser = clap::value_parser!(u32).range(2..))]
    pub(super) cv: Option<u32>,
    /// The method: exact, second-order steps for convex losses (whole matrices up to 512 weights of a class, their diagonals beyond); auto, which
    /// needs no matrix and takes any loss; or another from docs/formats.md, with --steps and --set [default: exact for convex losses (with kinks:
    /// only if a matrix costs at most a few dozen passes), otherwise auto; the first line says which]
    #[arg(long, value_name = "NAME")]
    pub(super) method: Option<String>,
    /// Steps of a method that has no end of its own
    #[arg(long, value_name = "N", value_parser = flags::count, allow_negative_numbers = true)]
    pub(super) steps: Option<u64>,
    /// Rows of a step of such a method
    #[arg(long, value_name = "N", value_parser = flags::count, allow_negative_numbers = true, default_value_t = 1)]
    pub(super) batch: u64,
    /// Settings of such a method, with commas between: --set eta=0.1
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',', value_parser = setting)]
    pub(super) set: Vec<(String, f64)>,
    /// Learn from a stream in one pass, in memory that does not grow, and certify by rows kept back from its end
    #[arg(long, conflicts_with_all = ["budget", "validation", "steps", "set", "page", "constants", "resume", "weight", "offset", "interact", "labels", "cache"])]
    pub(super) one_pass: bool,
    /// With --one-pass: assume that the noise of a row's gradient has at most this kurtosis; the certificate rests on it
    #[arg(long, value_name = "K", default_value_t = 100.0, value_parser = kurtosis, requires = "one_pass")]
    pub(super) kurtosis: f64,
    /// With --one-pass: bytes of text learnt at a time; about five such blocks are in memory
    #[arg(long, value_name = "BYTES", default_value_t = 16 << 20, requires = "one_pass",
          value_parser = clap::value_parser!(u32).range(1 << 16..=1 << 30))]
    pub(super) block: u32,
    /// Continue an interrupted fit; the rest of the command must be the same as before
    #[arg(long, value_name = "CHECKPOINT", conflicts_with = "page")]
    pub(super) resume: Option<PathBuf>,
    /// Seed of all randomness
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = flags::seed(), default_value_t = 1)]
    pub(super) seed: u64,
    /// Threads; does not change a bit of the result
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = flags::thread_count())]
    pub(super) threads: Option<u16>,
    /// Write a page with the curve of the run to this file; takes a pass for each point of the curve, which is not counted and changes nothing
    #[arg(long, value_name = "FILE")]
    pub(super) page: Option<PathBuf>,
    /// How standard errors are computed: classical (from second derivatives), hc0 or hc1 (sandwich), bootstrap (from fits of resampled rows, for all losses), or none [default: classical, for losses that are
    /// likelihoods, if that takes about a second at most]
    #[arg(long, value_name = "KIND", value_parser = ["classical", "hc0", "hc1", "bootstrap", "none"], conflicts_with_all = ["robust", "one_pass"])]
    pub(super) std_errors: Option<String>,
    /// With --std-errors bootstrap: resamples of the rows, each of which is fitted
    #[arg(long, value_name = "N", default_value_t = RESAMPLES, requires = "std_errors", allow_negative_numbers = true,
          value_parser = clap::value_parser!(u32).range(20..=100_000))]
    pub(super) resamples: u32,
    /// Sandwich standard errors, for noise that varies from row to row: the same as --std-errors hc1
    #[arg(long, conflicts_with = "one_pass")]
    pub(super) robust: bool,
    /// Weigh rows so that all classes weigh the same: balanced
    #[arg(long, value_name = "balanced", value_parser = ["balanced"], conflicts_with = "one_pass")]
    pub(super) class_weight: Option<String>,
    /// Prove constants for the model file also where that takes as long as the fit (`pasta inspect` shows them)
    #[arg(long)]
    pub(super) constants: bool,
    /// Show everything about the run: every setting, why it stopped, the objective, the scores, the rows read
    #[arg(long, conflicts_with = "json")]
    pub(super) details: bool,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) reading: Reading,
    #[command(flatten)]
    pub(super) shaping: Shaping,
}

fn after_help() -> String {
    format!(
        "{}\n
Examples:
  pasta fit table.csv --label price
  pasta fit train.svm --loss logistic -o model.json
  pasta fit houses.csv --loss huber --label price --one-hot --missing median --validation 0.2
  zcat rows.csv.gz | pasta fit - --loss least-squares --label 1 --penalty 1e-3
  cat parts/*.svm | pasta fit - --one-pass --loss logistic --columns 500 -o model.json
  pasta predict model.json new.csv

docs/fit.md is a tutorial.",
        losses()
    )
}

fn weight(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    number.filter(|x| *x >= 0.0 && x.is_finite()).ok_or_else(|| "expected a number of at least 0".into())
}

fn share(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    number.filter(|x| (0.0..=1.0).contains(x)).ok_or_else(|| "expected a number from 0 to 1".into())
}

fn kurtosis(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    number.filter(|x| *x >= 1.0 && x.is_finite()).ok_or_else(|| "expected a number of at least 1".into())
}

fn setting(text: &str) -> Result<(String, f64), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    let value = value.trim().parse().map_err(|_| format!("{value:?} is not a number"))?;
    Ok((key.trim().to_owned(), value))
}

/// The bounds of features: one for all, or one for each that is named.
fn bounds(flag: &str, texts: &[String], none: f64, names: &[String]) -> Result<Vec<f64>, Failure> {
    let number = |text: &str| {
        let number = text.trim().parse::<f64>().ok().filter(|number| !number.is_nan());
        number.ok_or_else(|| {
            Failure::input(format!("{flag}: expected a number or COLUMN=NUMBER, got {text:?}"))
        })
    };
    if let [one] = texts
        && !one.contains('=')
    {
        return Ok(vec![number(one)?]);
    }
    let mut all = if texts.is_empty() { Vec::new() } else { vec![none; names.len()] };
    for text in texts {
        let (name, value) = text.rsplit_once('=').unwrap_or((text, ""));
        let Some(place) = names.iter().position(|own| own == name.trim()) else {
            let hint = nearest(name, names.iter().map(String::as_str))
                .map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
            return Err(Failure::input(format!("{flag}: there is no column {name:?}{hint}")));
        };
        all[place] = number(value)?;
    }
    Ok(all)
}

impl Arguments {
    /// The kind of standard errors that was asked for; `None` leaves it to the loss and the table.
    pub(super) fn std_errors(&self) -> Option<StdErrors> {
        // Weights that are not those of the likelihood leave classical errors wrong.
        let is_robust = self.robust || self.class_weight.is_some() && self.std_errors.is_none();
        let name = if is_robust { Some("hc1") } else { self.std_errors.as_deref() };
        StdErrors::ALL.iter().find(|(known, _)| Some(*known) == name).map(|(_, kind)| *kind)
    }

    /// The share of the rows that is put aside.
    pub(super) fn share(&self) -> Result<Option<f64>, Failure> {
        let Some(share) = self.validation.as_ref().and_then(|text| text.parse::<f64>().ok()) else {
            return Ok(None);
        };
        if share > 0.0 && share < 1.0 {
            Ok(Some(share))
        } else {
            Err(Failure::input(format!(
                "--validation: expected a file, or a share between 0 and 1, got {share}"
            )))
        }
    }

    /// The files that are read.
    pub(super) fn inputs(&self) -> Vec<&Path> {
        let others =
            self.validation.as_deref().map(Path::new).into_iter().chain(self.reading.labels.as_deref());
        iter::once(self.data.as_path()).chain(others).collect()
    }

    /// The share of --penalty that is the ridge's.
    pub(super) fn ridge(&self) -> f64 {
        self.shaping.design().penalty * (1.0 - self.elastic_net.unwrap_or(0.0))
    }

    /// Penalties and bounds besides the ridge's, for features of these names; `None` if there are none.
    pub(super) fn penalties(&self, names: &[String]) -> Result<Option<Penalties>, Failure> {
        let l1 = self.penalty_l1.unwrap_or(self.shaping.design().penalty * self.elastic_net.unwrap_or(0.0));
        let lower = if self.non_negative {
            vec![0.0]
        } else {
            bounds("--lower", &self.lower, f64::NEG_INFINITY, names)?
        };
        let upper = bounds("--upper", &self.upper, f64::INFINITY, names)?;
        let penalties = Penalties { l1, lower, upper };
        if penalties.is_empty() {
            return Ok(None);
        }
        self.shaping.refuse_auto("a fit with l1 or bounds")?;
        match &self.method {
            Some(name) if name != EXACT => {
                Err(Failure::input(format!("--method: {name} knows no l1 and no bounds; leave it out")))
            }
            _ if self.one_pass => Err(Failure::input("--one-pass knows no l1 and no bounds")),
            _ if self.cv.is_some() => Err(Failure::input("--cv knows no l1 and no bounds")),
            _ => Ok(Some(penalties)),
        }
    }

    /// The name of the method that runs.
    pub(super) fn method_name(&self, way: &Way) -> String {
        match (&self.method, way) {
            (Some(name), _) => name.clone(),
            (None, Way::SecondOrder | Way::Proximal(_)) => EXACT.to_owned(),
            (None, _) => AUTO.to_owned(),
        }
    }

    /// The way that was asked for; `None` leaves the choice to the table.
    pub(super) fn way(&self) -> Result<Option<Way>, Failure> {
        let name = match &self.method {
            None if self.steps.is_some() || !self.set.is_empty() => AUTO,
            None => return Ok(None),
            Some(name) => name,
        };
        if self.one_pass && name != AUTO {
            return Err(Failure::input(format!("--method: {name} does not learn in one pass; leave it out")));
        }
        if name == EXACT {
            return match (self.steps, self.set.first()) {
                (None, None) => Ok(Some(Way::SecondOrder)),
                (Some(_), _) => Err(Failure::input("--steps: exact ends by itself")),
                (_, Some(_)) => Err(Failure::input("--set: exact has no settings")),
            };
        }
        let found = method::find(name).filter(|method| method.row().is_none());
        let Some(method) = found else {
            let names: Vec<_> = method::METHODS
                .iter()
                .filter(|method| method.row().is_none())
                .map(|method| method.name)
                .collect();
            let message = format!("--method: unknown method {name:?}; expected one of {}", names.join(", "));
            let usual = "a recipe with constants runs by `pasta solve` and a problem file";
            return Err(Failure::input(message).hint(match nearest(name, names.iter().copied()) {
                Some(meant) => format!("did you mean {meant}? {usual}"),
                None => usual.into(),
            }));
        };
        let mut values = Values::default();
        for (key, value) in &self.set {
            let Some(setting) = method.settings().iter().find(|setting| setting.name == key) else {
                return Err(Failure::input(format!("--set: {name} has no setting {key:?}")));
            };
            values.set(setting.name, *value);
        }
        let steps = match self.steps {
            Some(steps) if method.has_steps() => steps,
            Some(_) => return Err(Failure::input(format!("--steps: {name} ends by itself"))),
            None if method.has_steps() => return Err(Failure::input(format!("{name} needs --steps N"))),
            None => 0,
        };
        let engine = method.engine(&values, steps, self.batch).map_err(Failure::input)?;
        Ok(Some(Way::Method(engine)))
    }
}
