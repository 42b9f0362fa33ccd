//! What was measured, in words and tables: the same for the terminal, the page and machines.

use pasta_opt::calibrate::{
    Calibration, Diagnosis, Estimate, Found, MeanSquare, Ray, RayEnd, TailShape, Trial,
};
use pasta_opt::recipe::{Constant, Constants};
use serde::Serialize;

use super::block;
use crate::spec::Setup;
use pasta_report::calibration::verdict;
use pasta_report::console::Report;
use pasta_report::{Column, Table, fitted, given, grouped, significant};

/// Everything there is to say.
#[derive(Serialize)]
pub(super) struct Findings<'f> {
    problem: String,
    seed: u64,
    budget: u64,
    samples: u64,
    evaluations: u64,
    gradient: f64,
    unit: f64,
    figures: Vec<Figure>,
    mean_square: MeanSquare,
    rays: Vec<Diagnosed<'f>>,
    bg0_fails: bool,
    /// The tail of the noise at the start.
    tail: TailShape,
    /// A short run with the constants as they are printed.
    #[serde(rename = "flight")]
    trial: Option<Trial>,
    /// The same in words.
    #[serde(skip)]
    tried: Option<String>,
    /// What the diagnoses mean for the recipes; each once.
    pub(super) meanings: Vec<&'static str>,
    /// A table [recipe.constants].
    pub(super) constants: String,
    #[serde(skip)]
    pub(super) calibration: &'f Calibration,
}

/// One number that someone may want.
#[derive(Serialize)]
pub(super) struct Figure {
    #[serde(rename = "figure")]
    name: String,
    /// Which constant of the recipes it is, if it is one.
    pub(super) constant: Option<Constant>,
    /// What the problem proves it to be.
    #[serde(rename = "proved_by_problem")]
    proved: Option<f64>,
    #[serde(rename = "use")]
    use_for: &'static str,
    #[serde(flatten)]
    pub(super) measured: Evidence,
}

/// What samples say of a figure.
#[derive(Serialize)]
#[serde(tag = "provenance", rename_all = "kebab-case")]
pub(super) enum Evidence {
    /// A number, and where it was found.
    Estimated { estimate: Estimate, found: String },
    /// Nothing this time, for this reason.
    NotEstimated { reason: String },
    /// Nothing, ever.
    CannotBeMeasured,
}

/// A ray, and what it shows.
#[derive(Serialize)]
struct Diagnosed<'f> {
    #[serde(flatten)]
    ray: &'f Ray,
    verdict: String,
}

impl<'f> Findings<'f> {
    pub(super) fn new(setup: &Setup, budget: u64, calibration: &'f Calibration) -> Self {
        let mut proved = Constants::default();
        if let Ok(Some((of_problem, facts))) = setup.problem.proved() {
            proved = of_problem;
            // mu means two things; that of Polyak and Lojasiewicz is the larger class's.
            if let Some(mu) = facts.pl.or(facts.star) {
                proved.set(Constant::Mu, mu);
            }
        }
        // Of a table that is known, whatever samples show.
        let no_smoothness = setup.problem.table.is_some() && setup.problem.has_kinks();
        let mut figures = measured(calibration);
        for figure in figures.iter_mut().filter(|_| no_smoothness) {
            if matches!(figure.constant, Some(Constant::Smoothness | Constant::MsSmoothness)) {
                figure.measured = Evidence::NotEstimated { reason: KINKS.into() };
            }
        }
        figures.extend(NEVER.iter().map(|&(constant, use_for)| {
            let (symbol, name) = (constant.symbol(), constant.name());
            let name = if symbol == name { name.into() } else { format!("{symbol} ({name})") };
            Figure::new(Some(constant), &name, Evidence::CannotBeMeasured, use_for)
        }));
        for figure in &mut figures {
            figure.proved = figure.constant.and_then(|constant| proved.get(constant));
        }
        let tried = if no_smoothness { Some(NO_TRIAL.into()) } else { block::tried(calibration) };
        Self {
            problem: setup.problem.words.clone(),
            seed: setup.seed,
            budget,
            samples: calibration.cost.samples as u64,
            evaluations: calibration.cost.evaluations as u64,
            gradient: calibration.gradient,
            unit: calibration.unit,
            constants: block::constants(
                &figures,
                calibration,
                tried.as_deref(),
                setup.problem.table.is_some(),
            ),
            figures,
            mean_square: calibration.mean_square,
            rays: calibration.rays.iter().map(|ray| Diagnosed { ray, verdict: verdict(ray) }).collect(),
            bg0_fails: calibration.breaks_bg0(),
            tail: calibration.tail,
            trial: calibration.trial.filter(|_| !no_smoothness),
            tried,
            meanings: meanings(calibration),
            calibration,
        }
    }

    pub(super) fn setting(&self) -> String {
        format!("{}\nmeasured around the start, seed {}", self.problem, self.seed)
    }

    /// The tail of the noise, in words.
    pub(super) fn tail(&self) -> String {
        let TailShape { index, largest_share, samples, may_be_infinite, .. } = self.tail;
        let samples = grouped(samples);
        let index = match index {
            Some(Estimate { value, low, high }) => {
                let [value, low, high] = [value, low, high].map(|x| significant(x, 2));
                format!("index {value} ({low} to {high}; above 2 the variance is finite)")
            }
            None => "no index: too few samples stand out".into(),
        };
        let share = significant(100.0 * largest_share, 2);
        let warning = if may_be_infinite {
            " WARNING: the variance may be infinite; then b and B mean nothing, and no batch is large enough."
        } else {
            ""
        };
        format!(
            "Tail of the noise at the start: {index}; the largest of {samples} samples carries {share} % of b^2. b and B are lower \
             estimates: events rarer than one in {samples} leave no trace in them.{warning}"
        )
    }

    pub(super) fn ledger(&self) -> String {
        let [samples, budget, evaluations] = [self.samples, self.budget, self.evaluations].map(grouped);
        format!(
            "Drew {samples} samples of {budget} allowed, and evaluated {evaluations} gradients with them."
        )
    }

    pub(super) fn figure_table(&self) -> Table {
        Table {
            caption: "Figures, with intervals of about 95 % (sampling error only)".into(),
            columns: Column::all(b"lrlll", ["figure", "value", "interval", "where from", "use it for"]),
            rows: self.figures.iter().map(Figure::row).collect(),
        }
    }

    pub(super) fn ray_table(&self) -> Table {
        let names = ["ray", "to distance", "variance there", "at the start", "diagnosis"];
        Table {
            caption: "Rays from the start, the same samples at all points of a ray".into(),
            columns: Column::all(b"lrrrl", names),
            rows: self.rays.iter().map(Diagnosed::row).collect(),
        }
    }
}

impl Report for Findings<'_> {
    fn text(&self) -> String {
        let constants = self.constants.trim_end();
        let parts = [
            fitted(&self.setting()),
            self.figure_table().text(),
            self.ray_table().text(),
            fitted(&self.meanings.join("\n")),
            fitted(&self.tail()),
            fitted(self.tried.as_deref().unwrap_or("No curvature was found, so nothing was tried.")),
            fitted(&self.ledger()),
            format!("For `pasta solve`; with estimates nothing is promised:\n\n{constants}"),
        ];
        parts.join("\n\n")
    }
}

fn meanings(calibration: &Calibration) -> Vec<&'static str> {
    let seen = |diagnosis| calibration.rays.iter().any(|ray| ray.diagnosis == diagnosis);
    let diagnosed = MEANINGS.iter().filter(|(diagnosis, _)| seen(*diagnosis)).map(|(_, text)| *text);
    diagnosed.chain(calibration.mean_square.jumps().then_some(JUMPS)).collect()
}

const KINKS: &str = "none exists: the loss has kinks";
const NO_TRIAL: &str = "The loss has kinks, so there is no L to try.";

/// What samples cannot tell, and why not.
const NEVER: &[(Constant, &str)] = &[
    (Constant::Gap, "declare it: nobody has seen inf f"),
    (Constant::Distance, "declare it: nobody has seen a minimiser"),
    (Constant::Mu, "declare it: a bound from below over all of space"),
    (Constant::Rho, "declare it: a bound over all of space"),
    (Constant::Lipschitz, "declare it: a bound over all of space"),
];

fn measured(c: &Calibration) -> Vec<Figure> {
    let estimated = |estimate, found| Evidence::Estimated { estimate, found: place(found) };
    let or_reason = |estimate: Option<_>, found, reason: &str| match estimate {
        Some(estimate) => estimated(estimate, found),
        None => Evidence::NotEstimated { reason: reason.into() },
    };
    let no_lbar = "none exists: gradients of single samples jump";
    let ms_smoothness = or_reason(c.ms_smoothness, c.ms_smoothness_found, no_lbar);
    let growth = or_reason(c.growth, c.growth_found, "growth too faint to measure");
    let power = match c.mean_square {
        MeanSquare::Power(estimate) => estimated(estimate, Found::AtStart),
        MeanSquare::Unknown(reason) => Evidence::NotEstimated { reason: reason.into() },
    };
    let found = if c.growth_found == Found::Nowhere { "largest noise seen" } else { "at the start" };
    let floor = Evidence::Estimated { estimate: c.floor, found: found.into() };
    let from_below = "plans; from below, may be larger elsewhere";
    let use_of_growth = if c.breaks_bg0() {
        "a warning: no B is large enough, see the rays"
    } else {
        "plans; from below, few directions were tried"
    };
    let smoothness = estimated(c.smoothness, c.smoothness_found);
    let curvature = estimated(c.least_curvature, Found::AtStart);
    vec![
        Figure::new(Some(Constant::Smoothness), "L (smoothness)", smoothness, from_below),
        Figure::new(Some(Constant::MsSmoothness), "Lbar (ms-smoothness)", ms_smoothness, from_below),
        Figure::new(Some(Constant::Growth), "B (growth)", growth, use_of_growth),
        Figure::new(
            Some(Constant::Floor),
            "b (floor)",
            floor,
            "plans and first batches; from below, rare events may be missing",
        ),
        Figure::new(
            None,
            "power of paired differences",
            power,
            "a warning if near 1; near 2 PAGE and STORM may do",
        ),
        Figure::new(
            None,
            "smallest curvature seen",
            curvature,
            "nothing that needs mu: it is an upper bound",
        ),
    ]
}

fn place(found: Found) -> String {
    match found {
        Found::AtStart => "at the start".into(),
        Found::Between { direction, from, to } => {
            format!("{direction}, distance {} to {}", significant(from, 3), significant(to, 3))
        }
        Found::At { direction, radius } => format!("{direction}, distance {}", significant(radius, 3)),
        Found::OnTheWay { distance } => {
            format!("on the way of a short run, distance {}", significant(distance, 3))
        }
        Found::Nowhere => "no ray shows growth".into(),
    }
}

impl Figure {
    fn new(constant: Option<Constant>, name: &str, measured: Evidence, use_for: &'static str) -> Self {
        Self { name: name.into(), constant, proved: None, use_for, measured }
    }

    fn row(&self) -> Vec<String> {
        let (value, interval, from) = match &self.measured {
            Evidence::Estimated { estimate, found } => {
                (significant(estimate.value, 4), interval(*estimate), format!("estimated {found}"))
            }
            Evidence::NotEstimated { reason } => ("-".into(), "-".into(), format!("not estimated: {reason}")),
            Evidence::CannotBeMeasured => ("-".into(), "-".into(), "cannot be measured".into()),
        };
        let proved = self.proved.map(|truth| format!("; proved by the problem: {}", given(truth)));
        vec![self.name.clone(), value, interval, from + &proved.unwrap_or_default(), self.use_for.into()]
    }
}

pub(super) fn interval(estimate: Estimate) -> String {
    format!("{} to {}", significant(estimate.low, 4), significant(estimate.high, 4))
}

impl Diagnosed<'_> {
    fn row(&self) -> Vec<String> {
        let Ray { points, end, direction, .. } = self.ray;
        let start = points.first().map_or(f64::NAN, |point| point.variance.value);
        let (radius, last) = points.last().map_or((f64::NAN, f64::NAN), |p| (p.radius, p.variance.value));
        let end = match end {
            RayEnd::NotFinite => "; beyond, the gradients are not finite",
            RayEnd::Boundary => "; there the domain ends",
            _ => "",
        };
        let [radius, last, start] = [radius, last, start].map(|value| significant(value, 3));
        vec![direction.to_string(), radius, last, start, format!("{}{end}", self.verdict)]
    }
}

const MEANINGS: &[(Diagnosis, &str)] = &[
    (
        Diagnosis::WorseThanQuadratic,
        "BG-0 fails: the variance grows faster than the square of the distance, so no B and b bound it. Every \
         recipe rests on BG-0, so none promises anything for runs that may go far in such a direction, whatever B is \
         declared. A bounded domain, regularisation or another parametrisation may help.",
    ),
    (
        Diagnosis::Plausible,
        "BG-0 plausible: B^2 r^2 + b^2 can cover the noise as far as these rays go. The recipes may be used; what they \
         promise still needs a B that holds in all directions, which only you can declare.",
    ),
    (
        Diagnosis::Bounded,
        "Bounded: the noise does not grow along the ray. If that holds everywhere, growth = 0 and a floor do, and \
         the recipes ask for far fewer samples.",
    ),
    (
        Diagnosis::CannotTell,
        "Cannot tell: the samples do not decide how fast the noise grows. They show no noise there although the start \
         has some (its events may be rare), or a growth that still changes where the ray ends. More samples (--budget) \
         may help; until then expect nothing from recipes that go far.",
    ),
];

const JUMPS: &str = "Jumps: the gradients of single samples jump, so that there is no Lbar. mean-square-smooth, PAGE and \
                     STORM have no theorem here; the other recipes do not mind.";
