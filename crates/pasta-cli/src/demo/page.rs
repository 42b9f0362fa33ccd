//! The page: why, what happened, what was predicted.

use pasta_opt::prelude::*;

use super::findings::{BOUNDED, CLASSICAL, FOOTNOTE, Findings, PASTA};
use super::{DRAWN, Forecast, NOISE, Round, Run, START};
use crate::report::{
    Axis, Chart, Page, Part, Reference, Scale, Section, Series, Shape, Spread, Tone, Where, given, grouped,
    significant,
};

pub(super) fn page(forecast: &Forecast, findings: &Findings, rounds: &[Round]) -> Page {
    let text = |text: String| Part::Text(text);
    let section = |heading: &str, parts| Section { heading: heading.into(), parts };
    Page {
        title: "When the noise grows with the distance".into(),
        lead: findings.sentences(),
        sections: vec![
            section("Why", vec![text(why_sgd_breaks(forecast)), text(what_batches_do(forecast))]),
            section(
                "What happened",
                vec![
                    text(findings.setting()),
                    Part::Figure(progress_chart(forecast, rounds)),
                    Part::Table(findings.comparison()),
                    text(FOOTNOTE.into()),
                    Part::Figure(batch_chart(forecast, rounds)),
                ],
            ),
            section(
                "What was predicted",
                vec![
                    Part::Table(findings.forecast_check()),
                    text(findings.envelope()),
                    text(honesty(forecast)),
                ],
            ),
            section(
                "Do it again",
                vec![
                    text("The same seed gives these numbers and this page again, byte for byte.".into()),
                    Part::Command(format!("pasta demo --seed {}", findings.seed)),
                ],
            ),
        ],
    }
}

/// N(x*)/N(x0) without its rounding: how much noisier a sample is at the minimum than at the start.
fn noise_ratio(forecast: &Forecast) -> Option<f64> {
    let distance = forecast.oracle.objective().distance_to_minimiser(&[START])?;
    Some((NOISE.growth * distance / NOISE.floor).powi(2) + 1.0)
}

fn why_sgd_breaks(forecast: &Forecast) -> String {
    let ratio = noise_ratio(forecast).map_or_else(|| "many".into(), |ratio| significant(ratio, 3));
    format!(
        "Stochastic gradient descent is mostly studied as if all samples were equally noisy. Here they are not: \
         the farther from the start, the noisier, so that a sample at the minimum has {ratio} times the variance \
         of a sample at the start. A noisy sample throws the iterate out; where it lands, the next sample is \
         noisier still. With a long step this feedback wins over the pull of the minimum. With a step that is \
         short enough for the noise at the start there is no explosion, but the iterate keeps shaking with the \
         noise that it meets on its way, and going on for longer does not calm it."
    )
}

fn what_batches_do(forecast: &Forecast) -> String {
    let sigma2 = match forecast.pasta.schedule.large {
        BatchRule::Drift { target_variance, .. } => format!("sigma^2 = {}", given(target_variance)),
        BatchRule::Fixed(_) => "sigma^2".into(),
    };
    format!(
        "PASTA keeps the long step and lets the number of samples answer the distance. Before each step it \
         looks how far it has come and averages as many samples as bring the variance down to the same \
         {sigma2}: few near the start, many far away. To the descent it is as if the noise were bounded. \
         That is enough to promise something before the first sample is drawn: in expectation, the mean of \
         |grad f|^2 over all iterates is at most eps^2 = {} (Theorem 3), and the samples it takes have a bound too.",
        given(forecast.goal()),
    )
}

fn honesty(forecast: &Forecast) -> String {
    format!(
        "None of this makes one sample a step hopeless. SGD whose step is tuned to how far it may stray in its \
         own time, eta = {}, comes with the same promise. It pays for the worst case in advance: {} steps, one \
         after the other, which is why it was not run here. PASTA pays for the distance that it goes.",
        significant(forecast.horizon.schedule.eta.at(0), 2),
        significant(forecast.horizon.cost.samples, 2),
    )
}

fn progress_chart(forecast: &Forecast, rounds: &[Round]) -> Chart {
    type Choose = fn(&Round) -> &Run;
    let methods: [(&str, Tone, Choose); 3] = [
        (CLASSICAL, Tone::Red, |round| &round.classical),
        (BOUNDED, Tone::Green, |round| &round.patient),
        (PASTA, Tone::Blue, |round| &round.pasta),
    ];
    let goal = forecast.goal();
    let mut series = Vec::new();
    for (name, tone, choose) in methods {
        let ratios =
            |run: &Run| run.trail.iter().map(|&(samples, measure)| (samples, measure / goal)).collect();
        let one = |shape| Series { name: name.into(), tone, shape };
        series.extend(rounds.iter().take(DRAWN).map(|round| one(Shape::Line(ratios(choose(round))))));
        let ends = rounds.iter().map(choose).filter(|run| run.diverged.is_none());
        let ends = ends.map(|run| (run.samples as f64, run.measure / goal)).collect();
        series.push(one(Shape::Points(ends)));
    }
    let calm = rounds.iter().flat_map(|round| [&round.pasta, &round.patient]);
    let measures = Spread::of(
        calm.filter(|run| run.diverged.is_none())
            .flat_map(|run| run.trail.iter().map(|&(_, measure)| measure / goal)),
    );
    Chart {
        id: "progress",
        title: "How the mean of |grad f|^2 develops".into(),
        caption: format!(
            "The mean of |grad f|^2 over the iterates so far, in units of eps^2, for {DRAWN} runs of each method; \
             the dots are the ends of all {} runs{}. The vertical line is as far as SGD with the \
             shorter step would have to go if no sample were noisier than at the start. PASTA starts further right \
             because its first step already takes a batch.",
            rounds.len(),
            if rounds.iter().any(|round| round.classical.diverged.is_some()) {
                ", but for those that diverged, which leave at the top"
            } else {
                ""
            },
        ),
        x: Axis { label: "samples".into(), scale: Scale::Log, range: None },
        y: Axis {
            label: "mean of |grad f|^2 so far, in units of eps^2".into(),
            scale: Scale::Log,
            // Room for the curves that stay, and some for the others to leave.
            range: measures.map(|spread| (0.3 * spread.least.min(1.0), 300.0 * spread.greatest)),
        },
        series,
        references: vec![
            Reference { label: "promise".into(), at: Where::Y(1.0) },
            Reference {
                label: "planned end of SGD".into(),
                at: Where::X(forecast.bounded.schedule.total_steps() as f64),
            },
        ],
    }
}

fn batch_chart(forecast: &Forecast, rounds: &[Round]) -> Chart {
    let sizes = |t: usize| rounds.iter().filter_map(move |round| round.batches.get(t)).map(|&n| n as f64);
    let steps = rounds.iter().map(|round| round.batches.len()).max().unwrap_or(0);
    // Steps are counted from 1, for the logarithm.
    let band = (0..steps)
        .filter_map(|t| Spread::of(sizes(t)).map(|n| ((t + 1) as f64, n.least, n.greatest)))
        .collect();
    let first = rounds.first().map_or(&[][..], |round| &round.batches);
    let line = first.iter().enumerate().map(|(t, &n)| ((t + 1) as f64, n as f64)).collect();
    let distance = forecast.oracle.objective().distance_to_minimiser(&[START]);
    let at_minimum = distance.and_then(|d| forecast.pasta.schedule.large.size(d * d).ok());
    Chart {
        id: "batches",
        title: "How the batches of PASTA follow the distance".into(),
        caption:
            "N_t, the number of samples averaged in a step. It grows as the iterate leaves the start and \
                  settles where the iterate does."
                .into(),
        x: Axis { label: "step".into(), scale: Scale::Log, range: None },
        y: Axis { label: "samples in the step".into(), scale: Scale::Linear, range: None },
        series: vec![
            Series {
                name: format!("least to greatest of {} runs", rounds.len()),
                tone: Tone::Blue,
                shape: Shape::Band(band),
            },
            Series { name: "one run".into(), tone: Tone::Blue, shape: Shape::Line(line) },
        ],
        references: at_minimum
            .map(|n| Reference {
                label: format!("batch at the minimum: {}", grouped(n.into())),
                at: Where::Y(n as f64),
            })
            .into_iter()
            .collect(),
    }
}
