//! The noise, diagnosed: what samples say of it, beside the truth.

use pasta_opt::calibrate::{Calibration, Diagnosis, Estimate, Ray, USUAL_BUDGET};
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
    /// Whether some B and b bound the variance by B^2 r^2 + b^2, as far as the samples show: in a word, ..
    bg0: &'static str,
    /// .. and in a sentence.
    #[serde(skip)]
    pub(super) verdict: &'static str,
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

/// The power with which the variance of the demonstration's oracle grows far out.
const TRUE_EXPONENT: f64 = 2.0;

/// Measures as `pasta calibrate` does, with its usual number of samples.
pub(super) fn measure(setting: &Setting, seed: u64) -> Result<Calibration, Failure> {
    Calibration::measure(&mut setting.gate(seed), &[START], USUAL_BUDGET, &mut |_| {}).map_err(broken)
}

impl Diagnosed {
    pub(super) fn new(setting: &Setting, calibration: &Calibration) -> Self {
        let figure = |name: String, estimated, truth| Figure { name, estimated, truth };
        let rays = &calibration.rays;
        let mut figures = vec![
            figure("b (noise at the start)".into(), Some(calibration.floor), NOISE.floor),
            figure("B (growth)".into(), calibration.growth, NOISE.growth),
        ];
        let exponent = |ray: &Ray| figure(format!("exponent {}", ray.direction), ray.exponent, TRUE_EXPONENT);
        figures.extend(rays.iter().map(exponent));
        let smoothness = Some(calibration.smoothness);
        figures.push(figure("L (smoothness, from below)".into(), smoothness, setting.recipe.smoothness));
        let fine = |ray: &Ray| matches!(ray.diagnosis, Diagnosis::Plausible | Diagnosis::Bounded);
        let (bg0, verdict) = if calibration.breaks_bg0() {
            let verdict = "BG-0 fails: the variance seems to grow faster than the square of the distance r, so that no \
                           B^2 r^2 + b^2 bounds it.";
            ("fails", verdict)
        } else if rays.iter().all(fine) {
            let verdict = "BG-0 plausible: the variance grows like the square of the distance r; some B^2 r^2 + b^2 \
                           bounds it, as far as was looked.";
            ("plausible", verdict)
        } else {
            let verdict = "The samples do not tell whether some B^2 r^2 + b^2 bounds the variance (BG-0).";
            ("cannot-tell", verdict)
        };
        let one_way = |ray: &Ray| OneWay {
            direction: ray.direction.to_string(),
            exponent: ray.exponent,
            verdict: calibration::verdict(ray),
        };
        let samples = calibration.cost.samples as f64;
        Self { samples, figures, rays: rays.iter().map(one_way).collect(), bg0, verdict }
    }

    pub(super) fn table(&self) -> Table {
        let row = |Figure { name, estimated, truth }: &Figure| {
            let (value, interval) = match estimated {
                Some(Estimate { value, low, high }) => {
                    (significant(*value, 3), format!("{} to {}", significant(*low, 3), significant(*high, 3)))
                }
                None => ("-".into(), "-".into()),
            };
            vec![name.clone(), given(*truth), value, interval]
        };
        Table {
            caption: format!("The noise, from {} samples", grouped(self.samples as u128)),
            columns: Column::all(b"lrrl", ["", "true", "estimated", "interval (about 95 %)"]),
            rows: self.figures.iter().map(row).collect(),
        }
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
