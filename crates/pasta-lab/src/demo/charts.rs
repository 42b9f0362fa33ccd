//! What the runs did, drawn.

use super::findings::Findings;
use super::methods::{BOUNDED, CLASSICAL, PASTA};
use super::runs::{Course, Round};
use super::{DRAWN, START, Setting, TARGET};
use pasta_report::{Axis, Chart, Reference, Series, Shape, Spread, Tone, grouped};

pub(super) fn progress_chart(setting: &Setting, rounds: &[Round]) -> Chart {
    type Choose = fn(&Round) -> &Course;
    let methods: [(&str, Tone, Choose); 3] = [
        (CLASSICAL, Tone::Red, |round| &round.classical),
        (BOUNDED, Tone::Green, |round| &round.patient),
        (PASTA, Tone::Blue, |round| &round.pasta),
    ];
    let goal = setting.goal();
    let mut series = Vec::new();
    for (name, tone, choose) in methods {
        let ratios =
            |run: &Course| run.trail.iter().map(|&(samples, measure)| (samples, measure / goal)).collect();
        let one = |shape| Series::new(name, tone, shape);
        series.extend(rounds.iter().take(DRAWN).map(|round| one(Shape::Line(ratios(choose(round))))));
        let ends = rounds.iter().map(choose).filter(|run| run.diverged.is_none());
        let ends = ends.map(|run| (run.samples as f64, run.measure / goal)).collect();
        series.push(one(Shape::Points(ends)));
    }
    let calm = rounds.iter().flat_map(|round| [&round.pasta, &round.patient]);
    let trails = calm.filter(|run| run.diverged.is_none()).flat_map(|run| &run.trail);
    let measures = Spread::of(trails.map(|(_, measure)| measure / goal));
    Chart {
        id: "progress",
        title: "How the mean of |grad f|^2 develops".into(),
        caption: format!(
            "The mean of |grad f|^2 over the iterates so far, for {DRAWN} runs of each method; dots are the ends of \
             all {} runs{}. The vertical line is where SGD with the short step would arrive if no sample were \
             noisier than at the start.",
            rounds.len(),
            if rounds.iter().any(|round| round.classical.diverged.is_some()) {
                " but those that diverged, which leave at the top"
            } else {
                ""
            },
        ),
        x: Axis::log("samples"),
        y: Axis {
            // Room for the curves that stay, and some for the others to leave.
            range: measures.map(|spread| (0.3 * spread.least.min(1.0), 300.0 * spread.greatest)),
            ..Axis::log("mean of |grad f|^2 so far, in units of eps^2")
        },
        series,
        references: vec![
            Reference::y("promise", 1.0),
            Reference::x("planned end of SGD", setting.bounded.schedule.total_steps() as f64),
        ],
    }
}

pub(super) fn batch_chart(setting: &Setting, rounds: &[Round]) -> Chart {
    let sizes = |t: usize| rounds.iter().filter_map(move |round| round.batches.get(t)).map(|&n| n as f64);
    let steps = rounds.iter().map(|round| round.batches.len()).max().unwrap_or(0);
    // Steps are counted from 1, for the logarithm.
    let band = (0..steps)
        .filter_map(|t| Spread::of(sizes(t)).map(|n| ((t + 1) as f64, n.least, n.greatest)))
        .collect();
    let first = rounds.first().map_or(&[][..], |round| &round.batches);
    let line = first.iter().enumerate().map(|(t, &n)| ((t + 1) as f64, n as f64)).collect();
    let distance = setting.oracle.objective().distance_to_minimiser(&[START]);
    let at_minimum = distance.and_then(|d| setting.pasta.schedule.large.size(d * d).ok());
    Chart {
        id: "batches",
        title: "How the batches of PASTA follow the distance".into(),
        caption: "N_t, the number of samples averaged in a step, grows as the iterate leaves the start and settles where \
                  the iterate does."
            .into(),
        x: Axis::log("step"),
        y: Axis::linear("samples in the step"),
        series: vec![
            Series::new(
                format!("least to greatest of {} runs", rounds.len()),
                Tone::Blue,
                Shape::Band(band),
            ),
            Series::new("one run", Tone::Blue, Shape::Line(line)),
        ],
        references: at_minimum
            .map(|n| Reference::y(format!("batch at the minimum: {}", grouped(n)), n as f64))
            .into_iter()
            .collect(),
    }
}

/// Where the certified runs ended, what was claimed of them and what is true.
pub(super) fn certificate_chart(findings: &Findings, rounds: &[Round]) -> Chart {
    let certified = || {
        let ends = rounds.iter().map(|round| &round.certified);
        ends.filter_map(|end| Some((end.samples as f64, end.gradient, end.certificate?.bound?)))
    };
    let highest = certified().map(|(_, gradient, _)| gradient).fold(TARGET, f64::max);
    let worst_case = findings.predicted.worst_case.samples;
    let forecast = findings.predicted.forecast.map(|range| {
        let band = Shape::Band(vec![(range.low, 0.0, TARGET), (range.high, 0.0, TARGET)]);
        Series::new("range of the forecast", Tone::Grey, band)
    });
    let bounds = Shape::Crosses(certified().map(|(samples, _, bound)| (samples, bound)).collect());
    let truth = Shape::Points(certified().map(|(samples, gradient, _)| (samples, gradient)).collect());
    let drawn =
        [Series::new("certified bound", Tone::Red, bounds), Series::new("true |grad f|", Tone::Blue, truth)];
    Chart {
        id: "certificates",
        title: "Where the runs stopped, and what is true there".into(),
        caption: "One cross and one dot for each certified run. A certificate is false where the dot is above its cross."
            .into(),
        x: Axis::log("samples, certificates included"),
        y: Axis::linear("|grad f|").within(0.0, 1.25 * highest),
        series: forecast.into_iter().chain(drawn).collect(),
        references: vec![
            Reference::y("eps", TARGET),
            Reference::x("worst case", worst_case),
        ],
    }
}
