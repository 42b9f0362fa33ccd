//! The leaderboard as one page.

use pasta_report::{Axis, Chart, Page, Part, Section, Series, Shape, Tone};

use super::standing::Standing;

pub(super) fn page(standing: &Standing, command: String) -> Page {
    let mut problems = vec![Part::Figure(chart(standing)), Part::Table(standing.problem_table())];
    problems.push(Part::Text(
        "A bad end is a point whose value is above the start's, or no point at all. Ratios below 1e-8 count as 1e-8 and above 10 as 10."
            .into(),
    ));
    let totals = standing.total_tables().into_iter().map(Part::Table).collect();
    Page {
        title: "The leaderboard".into(),
        lead: standing.summary(),
        sections: vec![
            Section::new("Goals", vec![Part::Table(standing.goal_table())]),
            Section::new("All problems together", totals),
            Section::new("Every problem", problems),
            Section::new("Once more", vec![Part::Command(command)]),
        ],
    }
}

/// The champion's end against that of the best other, problem by problem.
fn chart(standing: &Standing) -> Chart {
    let (streams, tables) = (standing.pairs("stream"), standing.pairs("table"));
    let ends = streams.iter().chain(&tables).flat_map(|(x, y)| [*x, *y]);
    let (low, high) = ends.fold((1.0, 1e-3), |(low, high): (f64, f64), end| (low.min(end), high.max(end)));
    let diagonal = vec![(low, low), (high, high)];
    Chart {
        id: "ends",
        title: format!("{} against the best of the others", standing.champion()),
        caption:
            "Final over initial gradient, a mark for each problem. Below the line the champion is ahead."
                .into(),
        x: Axis::log("best untuned peer"),
        y: Axis::log(standing.champion()),
        series: vec![
            Series::new("equal", Tone::Grey, Shape::Line(diagonal)),
            Series::new("streams", Tone::Blue, Shape::Points(streams)),
            Series::new("tables", Tone::Red, Shape::Crosses(tables)),
        ],
        references: Vec::new(),
    }
}
