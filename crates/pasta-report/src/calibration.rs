//! A calibration, as a chart and in words.

use pasta_opt::calibrate::{Calibration, Diagnosis, Ray, Trend};

use crate::{Axis, Chart, Series, Shape, Tone, significant};

/// The diagnosis of a ray in plain words.
pub fn verdict(ray: &Ray) -> String {
    // Below a thousandth an exponent is a zero with a tail.
    let rounded = |e: f64| format!("{e:.1}").replace("-0.0", "0.0");
    let (word, otherwise) = match ray.diagnosis {
        Diagnosis::WorseThanQuadratic => ("BG-0 fails along this direction", ""),
        Diagnosis::Plausible => ("BG-0 plausible", ""),
        Diagnosis::Bounded => ("bounded", ": no noise at the far end"),
        Diagnosis::CannotTell => ("cannot tell", ": too few points with noise"),
    };
    let changing = ray.diagnosis == Diagnosis::CannotTell && ray.trend != Trend::Settled;
    let changing = if changing { ", not settled" } else { "" };
    match ray.exponent {
        Some(e) => {
            let [value, low, high] = [e.value, e.low, e.high].map(rounded);
            format!("{word}: exponent {value} ({low} to {high}){changing}")
        }
        None => format!("{word}{otherwise}"),
    }
}

const TONES: [Tone; 4] = [Tone::Blue, Tone::Red, Tone::Green, Tone::Pink];

/// The noise against the distance, with what was fitted to it.
pub fn chart(calibration: &Calibration) -> Chart {
    let mut series = vec![fit(calibration)];
    for (ray, tone) in calibration.rays.iter().zip(TONES.into_iter().cycle()) {
        let points: Vec<_> = ray.points.iter().map(|p| (p.radius, p.variance.value)).collect();
        let band: Vec<_> = ray.points.iter().map(|p| (p.radius, p.variance.low, p.variance.high)).collect();
        let name = ray.direction.to_string();
        series.push(Series::new(name.clone(), tone, Shape::Band(band)));
        series.push(Series::new(name, tone, Shape::Points(points)));
    }
    Chart {
        id: "noise",
        title: "Variance of one sample against the distance from the start".into(),
        caption: "Points are measured, bands are their intervals of about 95 %. A straight line of slope 2 is what BG-0 \
                  allows; the fit has the b of the start and the largest B seen."
            .into(),
        x: Axis::log("distance |x - x_0|"),
        y: Axis::log("E|g - grad f|^2"),
        series,
        references: Vec::new(),
    }
}

/// B^2 r^2 + b^2 over the distances that the rays cover.
fn fit(calibration: &Calibration) -> Series {
    let radii = calibration.rays.iter().flat_map(|ray| &ray.points).map(|p| p.radius).filter(|r| *r > 0.0);
    let (near, far) = radii.fold((f64::INFINITY, 0.0f64), |(near, far), r| (near.min(r), far.max(r)));
    let growth2 = calibration.growth.map_or(0.0, |growth| growth.value * growth.value);
    let floor2 = calibration.floor.value * calibration.floor.value;
    let name = format!("fit: {} r^2 + {}", significant(growth2, 3), significant(floor2, 3));
    Series::new(name, Tone::Grey, curve(growth2, floor2, (near, far)))
}

/// B^2 r^2 + b^2 from one distance to another, on a logarithmic axis.
pub fn curve(growth2: f64, floor2: f64, (near, far): (f64, f64)) -> Shape {
    const STEPS: u32 = 48;
    let radii = (0..=STEPS).map(|i| near * (far / near).powf(f64::from(i) / f64::from(STEPS)));
    Shape::Line(radii.map(|r| (r, growth2 * r * r + floor2)).collect())
}
