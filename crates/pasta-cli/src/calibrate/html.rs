//! The page: the noise against the distance, with what was fitted to it, and the tables.

use pasta_opt::calibrate::Calibration;

use super::findings::Findings;
use pasta_report::calibration::{chart, verdict};
use pasta_report::{Page, Part, Section};

pub(super) fn page(findings: &Findings<'_>) -> Page {
    let mut noise = vec![Part::Figure(chart(findings.calibration)), Part::Table(findings.ray_table())];
    noise.extend(findings.meanings.iter().map(|meaning| Part::Text((*meaning).into())));
    noise.push(Part::Text(findings.tail()));
    Page {
        title: "What samples say about the constants".into(),
        lead: lead(findings.calibration),
        sections: vec![
            Section::new("The noise", noise),
            Section::new(
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
            Section::new(
                "For pasta solve",
                vec![
                    Part::Text("Copy this into a problem file. With it a run has no promise.".into()),
                    Part::Command(findings.constants.trim_end().into()),
                ],
            ),
            Section::new("What was measured", vec![Part::Text(findings.setting()), Part::Text(findings.ledger())]),
        ],
    }
}

fn lead(calibration: &Calibration) -> String {
    let verdicts: Vec<_> =
        calibration.rays.iter().map(|ray| format!("{}: {}", ray.direction, verdict(ray))).collect();
    format!("Along the rays from the start: {}.", verdicts.join("; "))
}
