//! What was measured, in words and tables: the same for the terminal, the page and machines.

use pasta_opt::calibrate::{Calibration, Diagnosis, Estimate, Found, MeanSquare, Ray, RayEnd};
use pasta_opt::recipe::{Constant, Constants};
use serde_json::{Value, json};

use super::block;
use crate::spec::Setup;
use pasta_report::calibration::verdict;
use pasta_report::{Column, Table, fitted, given, grouped, significant};

/// Everything there is to say.
pub(super) struct Findings<'f> {
    pub(super) calibration: &'f Calibration,
    pub(super) problem: String,
    pub(super) seed: u64,
    pub(super) budget: u64,
    pub(super) figures: Vec<Figure>,
    /// A table [recipe.constants].
    pub(super) constants: String,
}

/// One number that someone may want.
pub(super) struct Figure {
    /// Which constant of the recipes it is, if it is one.
    pub(super) constant: Option<Constant>,
    pub(super) name: String,
    pub(super) measured: Measured,
    /// What the problem proves it to be.
    pub(super) proved: Option<f64>,
    pub(super) use_for: &'static str,
}

/// What samples say of a figure.
pub(super) enum Measured {
    /// A number, and where it was found.
    Estimate(Estimate, String),
    /// Nothing this time, for this reason.
    Unclear(String),
    /// Nothing, ever.
    Never,
}

impl<'f> Findings<'f> {
    pub(super) fn new(setup: &Setup, budget: u64, calibration: &'f Calibration) -> Self {
        let mut proved = Constants::default();
        if let Some(truth) = &setup.problem.truth {
            proved = truth.proved();
            let facts = truth.objective().facts();
            // mu means two things; that of Polyak and Lojasiewicz is the larger class's.
            if let Some(mu) = facts.pl.or(facts.star) {
                proved.set(Constant::Mu, mu);
            }
        }
        let mut figures = measured(calibration);
        figures.extend(NEVER.iter().map(|&(constant, use_for)| Figure {
            constant: Some(constant),
            name: if constant.symbol() == constant.name() {
                constant.name().into()
            } else {
                format!("{} ({})", constant.symbol(), constant.name())
            },
            measured: Measured::Never,
            proved: None,
            use_for,
        }));
        for figure in &mut figures {
            figure.proved = figure.constant.and_then(|constant| proved.get(constant));
        }
        let constants = block::constants(&figures, calibration);
        let (problem, seed) = (setup.problem.words.clone(), setup.seed);
        Self { calibration, problem, seed, budget, figures, constants }
    }

    pub(super) fn text(&self) -> String {
        let parts = [
            fitted(&self.setting()),
            self.figure_table().text(),
            self.ray_table().text(),
            fitted(&self.meanings().join("\n")),
            fitted(&self.ledger()),
            format!(
                "For `pasta solve`; with estimates nothing is promised:\n\n{}",
                self.constants.trim_end()
            ),
        ];
        parts.join("\n\n")
    }

    pub(super) fn setting(&self) -> String {
        format!("{}\nmeasured around the start, seed {}", self.problem, self.seed)
    }

    pub(super) fn ledger(&self) -> String {
        let ledger = self.calibration.cost;
        let budget = grouped(self.budget);
        format!(
            "Drew {} samples of {budget} allowed, and evaluated {} gradients with them.",
            grouped(ledger.samples),
            grouped(ledger.evaluations)
        )
    }

    pub(super) fn figure_table(&self) -> Table {
        Table {
            caption: "Figures, with intervals of about 95 % (sampling error only)".into(),
            columns: vec![
                Column::left("figure"),
                Column::right("value"),
                Column::left("interval"),
                Column::left("where from"),
                Column::left("use it for"),
            ],
            rows: self.figures.iter().map(Figure::row).collect(),
        }
    }

    pub(super) fn ray_table(&self) -> Table {
        Table {
            caption: "Rays from the start, the same samples at all points of a ray".into(),
            columns: vec![
                Column::left("ray"),
                Column::right("to distance"),
                Column::right("variance there"),
                Column::right("at the start"),
                Column::left("diagnosis"),
            ],
            rows: self.calibration.rays.iter().map(ray_row).collect(),
        }
    }

    /// What the diagnoses mean for the recipes; each once.
    pub(super) fn meanings(&self) -> Vec<String> {
        let seen = |diagnosis| self.calibration.rays.iter().any(|ray| ray.diagnosis == diagnosis);
        let mut meanings: Vec<String> = MEANINGS
            .iter()
            .filter(|(diagnosis, _)| seen(*diagnosis))
            .map(|(_, text)| (*text).into())
            .collect();
        if self.calibration.mean_square.jumps() {
            meanings.push(JUMPS.into());
        }
        meanings
    }

    pub(super) fn json(&self) -> Value {
        let c = self.calibration;
        let rays: Vec<_> = c
            .rays
            .iter()
            .map(|ray| {
                let mut value = json!(ray);
                value["verdict"] = json!(verdict(ray));
                value
            })
            .collect();
        json!({
            "problem": self.problem,
            "seed": self.seed,
            "budget": self.budget,
            "samples": c.cost.samples as u64,
            "evaluations": c.cost.evaluations as u64,
            "gradient": c.gradient,
            "unit": c.unit,
            "figures": self.figures.iter().map(Figure::json).collect::<Vec<_>>(),
            "mean_square": c.mean_square,
            "rays": rays,
            "bg0_fails": c.breaks_bg0(),
            "meanings": self.meanings(),
            "constants": self.constants,
        })
    }
}

/// What samples cannot tell, and why not.
const NEVER: &[(Constant, &str)] = &[
    (Constant::Gap, "declare it: nobody has seen inf f"),
    (Constant::Distance, "declare it: nobody has seen a minimiser"),
    (Constant::Mu, "declare it: a bound from below over all of space"),
    (Constant::Rho, "declare it: a bound over all of space"),
    (Constant::Lipschitz, "declare it: a bound over all of space"),
];

fn measured(c: &Calibration) -> Vec<Figure> {
    let figure = |constant: Option<Constant>, name: &str, measured, use_for| Figure {
        constant,
        name: name.into(),
        measured,
        proved: None,
        use_for,
    };
    let ms_smoothness = match c.ms_smoothness {
        Some(estimate) => Measured::Estimate(estimate, place(c.ms_smoothness_found)),
        None => Measured::Unclear("none exists: gradients of single samples jump".into()),
    };
    let growth = match c.growth {
        Some(estimate) => Measured::Estimate(estimate, place(c.growth_found)),
        None => Measured::Unclear("growth too faint to measure".into()),
    };
    let power = match c.mean_square {
        MeanSquare::Power(estimate) => Measured::Estimate(estimate, place(Found::AtStart)),
        MeanSquare::Unknown(reason) => Measured::Unclear(reason.into()),
    };
    let floor_place = if c.growth_found == Found::Nowhere { "largest noise seen" } else { "at the start" };
    vec![
        figure(
            Some(Constant::Smoothness),
            "L (smoothness)",
            Measured::Estimate(c.smoothness, place(c.smoothness_found)),
            "plans; from below, may be larger elsewhere",
        ),
        figure(
            Some(Constant::MsSmoothness),
            "Lbar (ms-smoothness)",
            ms_smoothness,
            "plans; from below, may be larger elsewhere",
        ),
        figure(
            Some(Constant::Growth),
            "B (growth)",
            growth,
            if c.breaks_bg0() {
                "a warning: no B is large enough, see the rays"
            } else {
                "plans; from below, few directions were tried"
            },
        ),
        figure(
            Some(Constant::Floor),
            "b (floor)",
            Measured::Estimate(c.floor, floor_place.into()),
            "plans and first batches",
        ),
        figure(
            None,
            "power of paired differences",
            power,
            "a warning if near 1; near 2 PAGE and STORM may do",
        ),
        figure(
            None,
            "smallest curvature seen",
            Measured::Estimate(c.least_curvature, place(Found::AtStart)),
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
        Found::Nowhere => "no ray shows growth".into(),
    }
}

impl Figure {
    fn row(&self) -> Vec<String> {
        let proved = self.proved.map(|truth| format!("proved by the problem: {}", given(truth)));
        let (value, interval, from) = match &self.measured {
            Measured::Estimate(estimate, place) => {
                (significant(estimate.value, 4), interval(*estimate), format!("estimated {place}"))
            }
            Measured::Unclear(reason) => ("-".into(), "-".into(), format!("not estimated: {reason}")),
            Measured::Never => ("-".into(), "-".into(), "cannot be measured".into()),
        };
        let from = [Some(from), proved].into_iter().flatten().collect::<Vec<_>>().join("; ");
        vec![self.name.clone(), value, interval, from, self.use_for.into()]
    }

    fn json(&self) -> Value {
        let mut value = json!({
            "figure": self.name,
            "constant": self.constant.map(Constant::name),
            "proved_by_problem": self.proved,
            "use": self.use_for,
        });
        match &self.measured {
            Measured::Estimate(estimate, place) => {
                value["provenance"] = json!("estimated");
                value["estimate"] = json!(estimate);
                value["found"] = json!(place);
            }
            Measured::Unclear(reason) => {
                value["provenance"] = json!("not-estimated");
                value["reason"] = json!(reason);
            }
            Measured::Never => value["provenance"] = json!("cannot-be-measured"),
        }
        value
    }
}

pub(super) fn interval(estimate: Estimate) -> String {
    format!("{} to {}", significant(estimate.low, 4), significant(estimate.high, 4))
}

fn ray_row(ray: &Ray) -> Vec<String> {
    let start = ray.points.first().map_or(f64::NAN, |point| point.variance.value);
    let (radius, last) = ray.points.last().map_or((f64::NAN, f64::NAN), |p| (p.radius, p.variance.value));
    let end = if ray.end == RayEnd::NotFinite { "; beyond, the gradients are not finite" } else { "" };
    vec![
        ray.direction.to_string(),
        significant(radius, 3),
        significant(last, 3),
        significant(start, 3),
        format!("{}{end}", verdict(ray)),
    ]
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
        "Cannot tell: the samples do not decide how fast the noise grows. More of them (--budget) may; until then \
         expect nothing from recipes that go far.",
    ),
];

const JUMPS: &str = "Jumps: the gradients of single samples jump, so that there is no Lbar. mean-square-smooth, PAGE and \
                     STORM have no theorem here; the other recipes do not mind.";
