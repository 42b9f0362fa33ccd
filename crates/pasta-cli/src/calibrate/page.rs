//! The page: the noise against the distance, with what was fitted to it, and the tables.

use pasta_opt::calibrate::Calibration;

use super::findings::{Findings, verdict};
use crate::report::{Axis, Chart, Page, Part, Scale, Section, Series, Shape, Tone, significant};

pub(super) fn page(findings: &Findings<'_>) -> Page {
    let section = |heading: &str, parts| Section { heading: heading.into(), parts };
    let mut noise = vec![Part::Figure(chart(findings.calibration)), Part::Table(findings.ray_table())];
    noise.extend(findings.meanings().into_iter().map(Part::Text));
    Page {
        title: "What samples say about the constants".into(),
        lead: lead(findings.calibration),
        sections: vec![
            section("The noise", noise),
            section(
                "The figures",
                vec![
                    Part::Table(findings.figure_table()),
                    Part::Text(
                        "An interval covers the error of sampling, at about 95 %, and nothing else. L, Lbar and B are \
                         the largest seen in a few places, so the truth may be larger; no theorem holds because of them."
                            .into(),
                    ),
                ],
            ),
            section(
                "For pasta solve",
                vec![
                    Part::Text("Copy this into a problem file. With it a run has no promise.".into()),
                    Part::Command(findings.constants.trim_end().into()),
                ],
            ),
            section("What was measured", vec![Part::Text(findings.setting()), Part::Text(findings.ledger())]),
        ],
    }
}

fn lead(calibration: &Calibration) -> String {
    let verdicts: Vec<_> =
        calibration.rays.iter().map(|ray| format!("{}: {}", ray.direction, verdict(ray))).collect();
    format!("Along the rays from the start: {}.", verdicts.join("; "))
}

const TONES: [Tone; 4] = [Tone::Blue, Tone::Red, Tone::Green, Tone::Pink];

pub(crate) fn chart(calibration: &Calibration) -> Chart {
    let axis = |label: &str| Axis { label: label.into(), scale: Scale::Log, range: None };
    let mut series = vec![fit(calibration)];
    for (ray, tone) in calibration.rays.iter().zip(TONES.into_iter().cycle()) {
        let points: Vec<_> = ray.points.iter().map(|p| (p.radius, p.variance.value)).collect();
        let band: Vec<_> = ray.points.iter().map(|p| (p.radius, p.variance.low, p.variance.high)).collect();
        let name = ray.direction.to_string();
        series.push(Series { name: name.clone(), tone, shape: Shape::Band(band) });
        series.push(Series { name, tone, shape: Shape::Points(points) });
    }
    Chart {
        id: "noise",
        title: "Variance of one sample against the distance from the start".into(),
        caption: "Points are measured, bands are their intervals of about 95 %. A straight line of slope 2 is what BG-0 \
                  allows; the fit has the b of the start and the largest B seen."
            .into(),
        x: axis("distance |x - x_0|"),
        y: axis("E|g - grad f|^2"),
        series,
        references: Vec::new(),
    }
}

/// B^2 r^2 + b^2 over the distances that the rays cover.
fn fit(calibration: &Calibration) -> Series {
    const STEPS: u32 = 48;
    let radii = calibration.rays.iter().flat_map(|ray| &ray.points).map(|p| p.radius).filter(|r| *r > 0.0);
    let (near, far) = radii.fold((f64::INFINITY, 0.0f64), |(near, far), r| (near.min(r), far.max(r)));
    let growth2 = calibration.growth.map_or(0.0, |growth| growth.value * growth.value);
    let floor2 = calibration.floor.value * calibration.floor.value;
    let curve = (0..=STEPS)
        .map(|i| near * (far / near).powf(f64::from(i) / f64::from(STEPS)))
        .map(|r| (r, growth2 * r * r + floor2))
        .collect();
    let name = format!("fit: {} r^2 + {}", significant(growth2, 3), significant(floor2, 3));
    Series { name, tone: Tone::Grey, shape: Shape::Line(curve) }
}
