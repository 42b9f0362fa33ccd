//! The noise, diagnosed: what samples say of it, beside the truth.

use pasta_opt::calibrate::{Calibration, Diagnosis, Estimate, USUAL_BUDGET};
use serde::Serialize;

use super::{NOISE, START, Setting, broken};
use pasta_report::console::Failure;
use pasta_report::{Chart, Column, Reference, Series, Table, Tone, calibration, given, grouped, significant};

/// What was measured before the runs.
#[derive(Serialize)]
pub(super) struct Diagnosed {
    samples: f64,
    figures: Vec<Figure>,
    rays: Vec<OneWay>,
    bg0: Bg0,
}

/// A constant, estimated and true.
#[derive(Serialize)]
struct Figure {
    #[serde(rename = "figure")]
    name: String,
    /// None where the samples do not say.
    estimated: Option<Estimate>,
    #[serde(rename = "true")]
    truth: f64,
}

/// What one ray from the start says.
#[derive(Serialize)]
struct OneWay {
    direction: String,
    /// The power of the distance with which the variance grows.
    exponent: Option<Estimate>,
    verdict: String,
}

/// Whether some B and b bound the variance by B^2 r^2 + b^2, as far as the samples show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Bg0 {
    Plausible,
    Fails,
    CannotTell,
}

/// The power with which the variance of the demonstration's oracle grows far out.
const TRUE_EXPONENT: f64 = 2.0;

/// Measures as `pasta calibrate` does, with its usual number of samples.
pub(super) fn measure(setting: &Setting, seed: u64) -> Result<Calibration, Failure> {
    Calibration::measure(&mut setting.gate(seed), &[START], USUAL_BUDGET, &mut |_| {}).map_err(broken)
}

impl Diagnosed {
    pub(super) fn new(setting: &Setting, calibration: &Calibration) -> Self {
        let figure = |name: &str, estimated, truth| Figure { name: name.into(), estimated, truth };
        let mut figures = vec![
            figure("b (noise at the start)", Some(calibration.floor), NOISE.floor),
            figure("B (growth)", calibration.growth, NOISE.growth),
        ];
        figures.extend(
            calibration
                .rays
                .iter()
                .map(|ray| figure(&format!("exponent {}", ray.direction), ray.exponent, TRUE_EXPONENT)),
        );
        figures.push(figure(
            "L (smoothness, from below)",
            Some(calibration.smoothness),
            setting.recipe.smoothness,
        ));
        let every = |wanted: &[Diagnosis]| calibration.rays.iter().all(|ray| wanted.contains(&ray.diagnosis));
        Self {
            samples: calibration.cost.samples as f64,
            figures,
            rays: calibration
                .rays
                .iter()
                .map(|ray| OneWay {
                    direction: ray.direction.to_string(),
                    exponent: ray.exponent,
                    verdict: calibration::verdict(ray),
                })
                .collect(),
            bg0: if calibration.breaks_bg0() {
                Bg0::Fails
            } else if every(&[Diagnosis::Plausible, Diagnosis::Bounded]) {
                Bg0::Plausible
            } else {
                Bg0::CannotTell
            },
        }
    }

    pub(super) fn table(&self) -> Table {
        Table {
            caption: format!("The noise, from {} samples", grouped(self.samples as u128)),
            columns: Column::all(b"lrrl", ["", "true", "estimated", "interval (about 95 %)"]),
            rows: self.figures.iter().map(Figure::row).collect(),
        }
    }

    pub(super) fn verdict(&self) -> &'static str {
        match self.bg0 {
            Bg0::Plausible => {
                "BG-0 plausible: the variance grows like the square of the distance r; some B^2 r^2 + b^2 bounds it, as \
                 far as was looked."
            }
            Bg0::Fails => {
                "BG-0 fails: the variance seems to grow faster than the square of the distance r, so that no \
                 B^2 r^2 + b^2 bounds it."
            }
            Bg0::CannotTell => {
                "The samples do not tell whether some B^2 r^2 + b^2 bounds the variance (BG-0)."
            }
        }
    }
}

impl Figure {
    fn row(&self) -> Vec<String> {
        let (value, interval) = match self.estimated {
            Some(Estimate { value, low, high }) => {
                (significant(value, 3), format!("{} to {}", significant(low, 3), significant(high, 3)))
            }
            None => ("-".into(), "-".into()),
        };
        vec![self.name.clone(), given(self.truth), value, interval]
    }
}

/// The chart of `pasta calibrate` with the truth, also where no ray has a point: near the start, and at the minimum.
pub(super) fn chart(setting: &Setting, calibration: &Calibration) -> Chart {
    let mut chart = calibration::chart(calibration);
    let [growth2, floor2] = [NOISE.growth, NOISE.floor].map(|constant| constant * constant);
    // Nearer than this the growth does not show.
    let near = 0.1 * NOISE.floor / NOISE.growth;
    let radii = calibration.rays.iter().flat_map(|ray| &ray.points).map(|point| point.radius);
    let far = radii.fold(near, f64::max);
    let name = format!("truth: {} r^2 + {}", given(growth2), given(floor2));
    let truth = calibration::curve(growth2, floor2, (near, far));
    chart.series.push(Series::new(name, Tone::Pink, truth));
    let at_start = calibration.variance_at_start.value;
    let label = format!("measured at the start: {}", significant(at_start, 3));
    chart.references.push(Reference::y(label, at_start));
    let minimum = setting.oracle.objective().distance_to_minimiser(&[START]);
    chart.references.extend(minimum.map(|distance| Reference::x("minimum", distance)));
    chart
}
